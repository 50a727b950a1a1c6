"""Why a sample got its label, on arrays: evidence per variable and the training rows behind a density."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from corral._core.density import ClassDensity, DensityPlan
from corral._core.model import FittedModel
from corral._core.settings import Floats, Integers


class UntiledClass(NamedTuple):
    """A class as explanations read it, row by row.

    Attributes
    ----------
    X : (n_rows, n_used) scaled rows, on the variables used.
    log_weights : (n_rows,)
    log_total : logarithm of the sum of the weights.
    plan : variables and bandwidths of the density.
    """

    X: Floats
    log_weights: Floats
    log_total: float
    plan: DensityPlan

    @classmethod
    def of(cls, density: ClassDensity) -> UntiledClass:
        """Undo the tiles of a class."""
        rows = density.rows
        log_total = math.log(rows.measure.total) if rows.n_rows else -math.inf
        return cls(rows.all(), np.log(rows.weight(np.arange(rows.n_rows))), log_total, density.plan)


def explain_samples(
    model: FittedModel, X: Floats, h: Floats, label: Integers, rival: Integers
) -> tuple[Floats, list[Floats]]:
    """Evidence of each variable for the label over its rival, and the shares of the label's rows.

    Parameters
    ----------
    model : FittedModel
    X : (n_samples, n_features) samples.
    h : (n_samples, n_classes, n_features) bandwidths there.
    label, rival : (n_samples,) numbers of classes.

    Returns
    -------
    evidence : (n_samples, n_features)
    shares : per sample (n_rows of the label,)
    """
    scaled = model.scale.transform(X)
    classes = {a: UntiledClass.of(model.densities[a]) for a in np.union1d(label, rival).tolist()}
    evidence, shares = np.empty(X.shape), []
    for i, (a, b) in enumerate(zip(label.tolist(), rival.tolist(), strict=True)):
        units = model.bandwidths.widths, model.scale.mixing
        own, share = conditional_log_densities(scaled[i], h[i, a], classes[a], *units)
        other, _ = conditional_log_densities(scaled[i], h[i, b], classes[b], *units)
        evidence[i] = own - other
        shares.append(share)
    return evidence, shares


def conditional_log_densities(
    x: Floats, h: Floats, rows: UntiledClass, widths: Floats, mixing: Floats | None
) -> tuple[Floats, Floats]:
    """Log density of each variable given all others, and each row's share of the density.

    With the bandwidths h held, p(x_j | others) is the kernel estimate with all factors divided by the
    one that leaves the factor of variable j out. A variable taken as uniform has the density
    1 / width, given anything. Where variables are taken as independent, each has its own
    one-dimensional density, and a row's share is the mean of its shares in them. Where x is a mixture
    of the variables, kernels are normal densities with the precision matrix P = M diag(h)^-2 M of the
    unmixed ones, and leaving variable j out takes (P d)_j^2 / P_jj from the quadratic form of d.
    """
    conditional = -np.log(widths)
    used, X, log_w = rows.plan.variables, rows.X, rows.log_weights
    if not len(X):  # nothing is known of the class
        return conditional, np.zeros(0)
    log_norm = np.log(h[used]) + 0.5 * math.log(2.0 * math.pi)
    if rows.plan.separate:
        exponents = log_w[:, np.newaxis] - 0.5 * ((x[used] - X) / h[used]) ** 2
        conditional[used] = logsumexp(exponents, axis=0) - rows.log_total - log_norm
        return conditional, softmax(exponents, axis=0).mean(axis=1)
    # Exponents relative to the nearest row, as products, and sums over all other variables from both
    # sides: a difference of large sums would lose the digits of the small terms in it.
    nearest = X[(((x[used] - X) / h[used]) ** 2).sum(axis=1).argmin()]
    terms = 0.5 * ((nearest - X) / h[used]) * (((x[used] - nearest) + (x[used] - X)) / h[used])
    if mixing is None:
        others = _sums_before(terms) + _sums_before(terms[:, ::-1])[:, ::-1]
        left_out = 0.5 * ((x[used] - nearest) / h[used]) ** 2
    else:
        factor = mixing / h
        precision = (factor**2).sum(axis=1)
        of_nearest = ((x - nearest) / h) @ factor.T
        more = ((nearest - X) / h) @ factor.T
        others = terms.sum(axis=1, keepdims=True) - 0.5 * more * (more + 2.0 * of_nearest) / precision
        left_out = 0.5 * of_nearest**2 / precision
        log_norm = 0.5 * np.log(2.0 * math.pi / precision)
    whole = log_w - terms.sum(axis=1)
    ratio = logsumexp(whole) - logsumexp(log_w[:, np.newaxis] - others, axis=0)
    conditional[used] = ratio - left_out - log_norm
    return conditional, softmax(whole)


def _sums_before(terms: Floats) -> Floats:
    """Sum of the terms to the left of each."""
    sums = np.zeros_like(terms)
    np.cumsum(terms[:, :-1], axis=1, out=sums[:, 1:])
    return sums

"""Why samples get their labels, on arrays: evidence per variable and the training rows behind a density."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from corral._core.density import ClassDensity, DensityPlan
from corral._core.model import FittedModel
from corral._core.rodeo import rodeo
from corral._core.settings import Computation, Floats, Integers

# Evidence for a class is averaged over at most so many of its rows, evenly spread over all of them.
_MAX_POINTS = 50


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

    def without(self, row: int) -> UntiledClass:
        """Leave a row out; -1 stands for none."""
        if row < 0:
            return self
        X, log_weights = np.delete(self.X, row, axis=0), np.delete(self.log_weights, row)
        log_total = float(logsumexp(log_weights)) if len(X) else -math.inf
        return UntiledClass(X, log_weights, log_total, self.plan)


def strongest_rivals(log_proba: Floats, label: Integers) -> Integers:
    """Number the most probable class other than the label of each sample."""
    others = log_proba.copy()
    others[np.arange(len(label)), label] = -np.inf
    rival: Integers = others.argmax(axis=1)
    # Where every other class has density zero, any of them will do.
    rival[rival == label] = (label[rival == label] == 0).astype(np.int64)
    return rival


def class_evidence(model: FittedModel, computation: Computation) -> Floats:
    """Mean evidence (n_classes, n_features) of each variable for a class at its own rows.

    Each row is compared with the most probable other class, and leaves itself and its copies out of both. So
    this is what the labels rest on, which variables that act only jointly are part of. It is 0 for a class
    without rows.
    """
    evidence = np.zeros(model.relevant.shape)
    classes = [UntiledClass.of(density) for density in model.densities]
    for a, members in enumerate(model.data.members()):
        if members.size:
            spread = np.linspace(0, members.size - 1, min(members.size, _MAX_POINTS))
            own = np.unique(spread.round().astype(np.int64))
            weights = model.densities[a].rows.weight(own)
            evidence[a] = np.average(
                _own_evidence(model, classes, a, own, computation), axis=0, weights=weights
            )
    return evidence


def _own_evidence(
    model: FittedModel, classes: Sequence[UntiledClass], a: int, own: Integers, computation: Computation
) -> Floats:
    """Evidence (n_points, n_features) for class a at its rows `own`, each left out of all classes."""
    members = model.data.members()
    at = members[a][own]
    X, density = model.data.X[at], model.densities[a]
    log_density, h = model.estimate(X, computation, bandwidths=True)
    scaled = model.scale.transform(X)
    if density.plan.fixed is None:
        used = scaled[:, density.plan.variables]
        left, steps = rodeo(density.rows, density.grid, used, model.settings.rodeo.update, own)
        _, h[:, a] = density.completed(left, density.grid[steps], X.shape[1])
    rivals = strongest_rivals(model.joint(log_density), np.full(own.size, a))
    units = model.bandwidths.widths, model.scale.mixing
    evidence = np.empty(X.shape)
    for i, (x, b) in enumerate(zip(scaled, rivals.tolist(), strict=True)):
        copy = np.flatnonzero(model.data.units[members[b]] == model.data.units[at[i]])
        rival = classes[b].without(int(copy[0]) if copy.size else -1)
        of_label, _ = conditional_log_densities(x, h[i, a], classes[a].without(int(own[i])), *units)
        of_rival, _ = conditional_log_densities(x, h[i, b], rival, *units)
        evidence[i] = of_label - of_rival
    return evidence


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

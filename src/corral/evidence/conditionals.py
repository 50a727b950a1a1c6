"""Log densities of each variable given all others, and the shares that training rows have in a density."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from corral import kernels
from corral.array_types import Floats
from corral.data.missing import patterns
from corral.data.tiles import TINY, ClassRows
from corral.pool.densities import Mixture
from corral.pool.general_densities import MixedMixture
from corral.rodeo.density import ClassDensity, DensityPlan
from corral.rodeo.factors import log_factors


class UntiledClass(NamedTuple):
    """A class as explanations read it, row by row.

    Attributes
    ----------
    X : (n_rows, n_used) scaled rows, on the variables used.
    log_weights : (n_rows,)
    plan : variables and bandwidths of the density.
    """

    X: Floats
    log_weights: Floats
    plan: DensityPlan

    @classmethod
    def of(cls, density: ClassDensity) -> UntiledClass:
        """Undo the tiles of a class."""
        rows = density.rows
        return cls(rows.all(), np.log(rows.weight(np.arange(rows.n_rows))), density.plan)


def conditional_log_densities(
    x: Floats, h: Floats, rows: UntiledClass, widths: Floats
) -> tuple[Floats, Floats]:
    """Log density of each variable given all others, and each row's share of the density.

    With the bandwidths h held, p(x_j | others) is the kernel estimate with all factors divided by the
    one that leaves the factor of variable j out. A variable taken as uniform has the density
    1 / width, given anything.
    """
    conditional = -np.log(widths)
    used, X, log_w = rows.plan.variables, rows.X, rows.log_weights
    if not len(X):  # nothing is known of the class
        return conditional, np.zeros(0)
    log_norm = np.log(h[used]) + kernels.LOG_ROOT
    # Exponents relative to the nearest row, as products, and sums over all other variables from both
    # sides: a difference of large sums would lose the digits of the small terms in it.
    nearest = X[(((x[used] - X) / h[used]) ** 2).sum(axis=1).argmin()]
    terms = 0.5 * ((nearest - X) / h[used]) * (((x[used] - nearest) + (x[used] - X)) / h[used])
    others = _sums_before(terms) + _sums_before(terms[:, ::-1])[:, ::-1]
    left_out = 0.5 * ((x[used] - nearest) / h[used]) ** 2
    whole = log_w - terms.sum(axis=1)
    ratio = logsumexp(whole) - logsumexp(log_w[:, np.newaxis] - others, axis=0)
    conditional[used] = ratio - left_out - log_norm
    return conditional, softmax(whole)


def _sums_before(terms: Floats) -> Floats:
    """Sum of the terms to the left of each."""
    sums = np.zeros_like(terms)
    np.cumsum(terms[:, :-1], axis=1, out=sums[:, 1:])
    return sums


def general_conditionals(
    x: Floats, h: Floats, general: ClassRows, rows: UntiledClass, widths: Floats
) -> tuple[Floats, Floats]:
    """As `conditional_log_densities`, where values are missing or levels; 0 for the gaps of the sample."""
    conditional = np.where(np.isnan(x), 0.0, -np.log(widths))
    used, log_w = rows.plan.variables, rows.log_weights
    if not general.n_rows:  # nothing is known of the class
        return conditional, np.zeros(0)
    found = log_factors(general, x[np.newaxis, used], h[np.newaxis, used], np.array([-1]))[0]
    factors = np.ascontiguousarray(found.T)
    whole = log_w + factors.sum(axis=1)
    conditional[used] = logsumexp(whole) - logsumexp(whole[:, np.newaxis] - factors, axis=0)
    conditional[np.isnan(x)] = 0.0
    return conditional, softmax(whole)


def member_conditionals(mixture: Mixture | MixedMixture, x: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Log density of each variable given all others, 0 for gaps, and each row's share of the density."""
    if isinstance(mixture, MixedMixture):
        return _mixed_conditionals(mixture, x)
    conditional, shares = np.zeros(x.shape), np.empty((len(x), weights.size))
    for at, missing in patterns(np.isnan(x)):
        kept = np.delete(np.arange(x.shape[1]), missing)
        known = np.nan_to_num(x[at])  # the marginal does not look at what is missing
        conditional[at], shares[at] = mixture_conditionals(mixture.marginal(kept), known, weights)
    return conditional, shares


def _mixed_conditionals(mixture: MixedMixture, x: Floats) -> tuple[Floats, Floats]:
    """The same by leaving each variable out in turn, which is exact whatever is missing."""
    whole = mixture.log_density(x)
    conditional = np.zeros(x.shape)
    has_rows = whole > -np.inf  # a class may have none
    for j in np.flatnonzero(~np.isnan(x).all(axis=0)).tolist():
        without = x.copy()
        without[:, j] = np.nan
        known = ~np.isnan(x[:, j]) & has_rows
        conditional[known, j] = whole[known] - mixture.log_density(without[known])
    return conditional, mixture.shares(x)


def mixture_conditionals(mixture: Mixture, x: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Log density of each variable given all others, and each row's share of the density.

    Leaving variable j out takes (P d)_j^2 / P_jj from the quadratic form of d, with P = B B^T. A density
    with a single centre rests on all rows alike. A variable that takes no part has the density 1.

    Parameters
    ----------
    mixture : the density of a class.
    x : (n_samples, n_features) scaled samples.
    weights : (n_rows,) of the rows of the class.

    Returns
    -------
    conditional : (n_samples, n_features)
    shares : (n_samples, n_rows)
    """
    conditional = np.zeros(x.shape)
    shares = np.tile(weights, (len(x), 1))
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), TINY)
    n = len(mixture.centres)
    single = mixture.pull == 0.0
    precision = np.vecdot(mixture.factor, mixture.factor)
    used = precision > 0.0
    if not n or not used.any():
        return conditional, shares
    origin = mixture.centres.mean(axis=0)
    c, z = ((rows - origin) @ mixture.factor for rows in (mixture.centres, x[:, mixture.variables]))
    pull_c, pull_z = (rows @ mixture.factor[used].T for rows in (c, z))
    relative, ratio = np.empty((len(x), n)), np.empty(pull_z.shape)
    nearest = np.empty(len(x), dtype=np.int64)
    kernels.conditional_sums(
        z,
        np.ascontiguousarray(c.T),
        np.zeros(n) if single else np.log(weights),
        pull_z,
        np.ascontiguousarray(pull_c.T),
        0.5 / precision[used],
        relative,
        np.empty((2, n)),
        nearest,
        ratio,
    )
    apart = 0.5 * (pull_z - pull_c[nearest]) ** 2 / precision[used]
    log_norm = 0.5 * np.log(precision[used] / (2.0 * math.pi))
    conditional[:, mixture.variables[used]] = ratio - apart + log_norm
    return conditional, shares if single else softmax(-relative, axis=1)

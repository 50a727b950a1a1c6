"""Log densities of each variable given all others, and the shares that training rows have in a density."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from corral import kernels
from corral.array_types import Floats
from corral.data.tiles import ClassRows
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

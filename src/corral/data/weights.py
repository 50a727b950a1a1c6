r"""Weights of rows: effective numbers, design effects, and sums over groups.

The effective number of weighted rows is Kish's, :math:`(\sum_i w_i)^2 / \sum_i w_i^2`. The design effect of
groups is the factor by which the variance of a weighted mean is larger than for independent rows. With an
intraclass correlation :math:`\rho` it is :math:`1 + \rho (D - 1)`. The largest design effect,

.. math:: D = \sum_g \Big(\sum_{i \in g} w_i\Big)^2 \Big/ \sum_i w_i^2,

is reached if all rows of a group have equal values. The effective number of rows is then Kish's number for
the total weights of the groups.
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers


def effective_number(weights: Floats) -> float:
    """Return Kish's effective number of weighted rows, (sum w)^2 / sum w^2.

    If all weights are equal, this is the number of rows. A common factor of all weights does not change it.
    """
    shares = weights / weights.max(initial=np.finfo(np.float64).tiny)
    return float(shares.sum() ** 2 / max((shares * shares).sum(), 1.0))


def effective_sizes(codes: Integers, weights: Floats | None, n_classes: int) -> Floats:
    """Return the effective number of rows of each class (n_classes,); weights of None are equal."""
    if weights is None:
        return np.bincount(codes, minlength=n_classes).astype(np.float64)
    return np.array([effective_number(weights[codes == y]) for y in range(n_classes)])


def effective_weights(weights: Floats, groups: Integers, n_groups: int) -> Floats:
    """Rescale weights so that the weights of each group sum to the effective number of its rows."""
    total = np.bincount(groups.ravel(), weights.ravel(), n_groups)
    squares = np.bincount(groups.ravel(), weights.ravel() ** 2, n_groups)
    factors = np.divide(total, squares, out=np.zeros(n_groups), where=squares > 0)
    return np.asarray(weights * factors[groups])


def largest_design_effect(weights: Floats, groups: Integers) -> float:
    """Return the design effect, at least 1, if all rows of a group have equal values."""
    return float((sums_by_group(weights, groups) ** 2).sum() / (weights @ weights))


def design_effect(residuals: Floats, weights: Floats, groups: Integers) -> float:
    """Estimate the design effect from the residuals (n_rows,) of a weighted mean.

    If all residuals are zero, the largest design effect is returned.
    """
    largest = largest_design_effect(weights, groups)
    alone = float(((weights * residuals) ** 2).sum())
    if alone == 0.0:
        return largest
    together = float((sums_by_group(weights * residuals, groups) ** 2).sum())
    return float(np.clip(together / alone, 1.0, largest))


def weights_or_ones(weights: Floats | None, n: int) -> Floats:
    """Return the weights of n rows; n ones if `weights` is None."""
    return np.ones(n) if weights is None else weights


def sums_by_group(values: Floats, group_ids: Integers) -> Floats:
    """Sum values (..., n_rows) over the rows of each group: (..., n_groups)."""
    order = np.argsort(group_ids, kind="stable")
    first = np.flatnonzero(np.diff(group_ids[order], prepend=group_ids[order[0]] - 1))
    sums: Floats = np.add.reduceat(values[..., order], first, axis=-1)
    return sums


def shares_of_largest(weights: Floats | None) -> Floats | None:
    """Divide weights by the largest weight; return None if all weights are equal.

    The smallest result is 1e-100: too small to change a sum, but with a positive square.
    """
    if weights is None or not weights.size or (weights == weights[0]).all():
        return None
    shares: Floats = np.maximum(weights / weights.max(), 1e-100)
    return shares


def lower_median(x: Floats, weights: Floats) -> float:
    """Return the lower weighted median; 0 if there are no values."""
    if not x.size:
        return 0.0
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    return float(x[order[np.searchsorted(below, 0.5 * below[-1])]])

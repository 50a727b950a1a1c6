"""Weights of rows: how many rows of equal weight they are worth, and sums over groups."""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers


def effective_number(weights: Floats) -> float:
    """Return Kish's effective number of weighted rows, (sum w)^2 / sum w^2.

    It is the number of rows where all weights are alike, does not change when all are multiplied, and does
    not jump when the weight of a row goes to zero.
    """
    shares = weights / weights.max(initial=np.finfo(np.float64).tiny)
    return float(shares.sum() ** 2 / max((shares * shares).sum(), 1.0))


def weights_or_ones(weights: Floats | None, n: int) -> Floats:
    """Weights of n rows, 1 if all matter alike (None)."""
    return np.ones(n) if weights is None else weights


def sums_by_unit(values: Floats, units: Integers) -> Floats:
    """Sums (..., n_units) over the points (..., n_points) of each unit."""
    order = np.argsort(units, kind="stable")
    first = np.flatnonzero(np.diff(units[order], prepend=units[order[0]] - 1))
    sums: Floats = np.add.reduceat(values[..., order], first, axis=-1)
    return sums


def shares_of_largest(weights: Floats | None) -> Floats | None:
    """Divide weights by the largest one, since only shares matter; None if all are alike.

    A share of 1e-100 is the least: it changes nothing, and its square is still a number.
    """
    if weights is None or not weights.size or (weights == weights[0]).all():
        return None
    shares: Floats = np.maximum(weights / weights.max(), 1e-100)
    return shares


def lower_median(x: Floats, weights: Floats) -> float:
    """The weighted median, the lower one of two; 0 of nothing."""
    if not x.size:
        return 0.0
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    return float(x[order[np.searchsorted(below, 0.5 * below[-1])]])

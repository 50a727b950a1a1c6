"""Missing values: patterns of missing columns, and replacement by means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corral.array_types import Bools, Floats, Integers


def patterns(is_missing: Bools) -> Iterator[tuple[Integers, Integers]]:
    """Yield for each pattern of missing values the rows with this pattern and the missing columns.

    `is_missing` is (n_rows, n_columns). Rows without missing values come first.
    """
    different, which = np.unique(is_missing, axis=0, return_inverse=True)
    which = which.reshape(-1)
    rows = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    yield from zip(rows, map(np.flatnonzero, different), strict=True)


def without_missing(x: Floats) -> Floats:
    """Replace missing values by the mean of their column, so that they add no difference between classes."""
    missing = np.isnan(x)
    means = np.where(missing, 0.0, x).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, means, x)

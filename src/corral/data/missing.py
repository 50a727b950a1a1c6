"""Missing values: rows that lack the same columns, and columns with means in place of missing values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corral.array_types import Bools, Floats, Integers


def patterns(is_missing: Bools) -> Iterator[tuple[Integers, Integers]]:
    """Rows that lack the same columns, and these columns; rows that lack none come first."""
    different, which = np.unique(is_missing, axis=0, return_inverse=True)
    which = which.reshape(-1)
    rows = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    yield from zip(rows, map(np.flatnonzero, different), strict=True)


def without_missing(x: Floats) -> Floats:
    """Columns with their means in place of missing values, which then favour no class."""
    missing = np.isnan(x)
    means = np.where(missing, 0.0, x).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, means, x)

"""Gaps in tables: which rows have the same ones, and columns without them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corral.array_types import Bools, Floats, Integers


def patterns(gaps: Bools) -> Iterator[tuple[Integers, Integers]]:
    """Rows that miss the same columns, and these columns; first those that miss none, if there are any."""
    is_complete = ~gaps.any(axis=1)
    if is_complete.any():
        yield np.flatnonzero(is_complete), np.empty(0, dtype=np.int64)
    some = np.flatnonzero(~is_complete)
    if not some.size:
        return
    different, which = np.unique(gaps[some], axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    for at, pattern in zip(np.split(some[order], np.cumsum(np.bincount(which))[:-1]), different, strict=True):
        yield at, np.flatnonzero(pattern)


def without_gaps(x: Floats) -> Floats:
    """Columns with their means in place of gaps, so that rows without a value speak for no class."""
    gaps = np.isnan(x)
    means = np.where(gaps, 0.0, x).sum(axis=0) / np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, means, x)

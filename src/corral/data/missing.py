"""Gaps in tables: which rows have the same ones, and columns without them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corral.array_types import Bools, Floats, Integers


def patterns(gaps: Bools) -> Iterator[tuple[Integers, Integers]]:
    """Rows that miss the same columns, and these columns; first those that miss none, if there are any."""
    different, which = np.unique(gaps, axis=0, return_inverse=True)
    which = which.reshape(-1)
    rows = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    yield from zip(rows, map(np.flatnonzero, different), strict=True)


def without_missing(x: Floats) -> Floats:
    """Columns with their means in place of gaps, so that rows without a value speak for no class."""
    gaps = np.isnan(x)
    means = np.where(gaps, 0.0, x).sum(axis=0) / np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, means, x)

"""A sample of many rows: the same ones however a table is ordered or parted."""

from __future__ import annotations

import numpy as np

from corral._core.copies import row_keys
from corral._core.rows import LabelledRows
from corral._core.settings import Floats, Integers

# About so many rows are a sample, and of each class at least as many as it may have representatives.
SAMPLE_ROWS = 100_000

# Ranks and normal scores are known at about so many values of each column, with so many rows for each.
MAX_KNOTS = 1000
_ROWS_PER_KNOT = 5


def n_knots(n_sample: int) -> int:
    """At how many values of each column ranks are known from a sample of so many rows."""
    return min(MAX_KNOTS, n_sample // _ROWS_PER_KNOT)


def sample_sizes(sizes: Integers, max_rows: int) -> Integers:
    """How many rows (n_classes,) of classes of these sizes are a sample."""
    shares = np.ceil(sizes / sizes.sum() * SAMPLE_ROWS).astype(np.int64)
    of_classes: Integers = np.minimum(sizes, np.maximum(shares, max_rows))
    return of_classes


def sampling_keys(X: Floats, seed: int) -> Integers:
    """Random numbers of the rows of a class that depend on their values and on the seed alone.

    The rows with the smallest ones are a sample of the class, in whatever order it is. Rows that are equal
    are numbered, so that they are drawn one by one.
    """
    d = X.shape[1]
    keys = row_keys(X, np.arange(d) + seed)
    order = np.argsort(keys, kind="stable")
    begins = np.concatenate([[True], np.diff(keys[order]) != 0])
    at = np.arange(keys.size)
    repeats = at - np.maximum.accumulate(np.where(begins, at, 0))
    again = order[repeats > 0]
    keys[again] += row_keys(repeats[repeats > 0, np.newaxis].astype(np.float64), np.array([d + seed]))
    return keys.view(np.int64)


def choose_sample(data: LabelledRows, max_rows: int, seed: int) -> Integers:
    """Positions of the rows of a sample, class by class, in an order that depends on their values alone."""
    sizes = sample_sizes(np.bincount(data.codes, minlength=data.labels.size), max_rows)
    chosen = [
        of_class[np.argsort(sampling_keys(data.X[of_class], seed), kind="stable")[:size]]
        for of_class, size in zip(data.members(), sizes.tolist(), strict=True)
    ]
    return np.concatenate(chosen)

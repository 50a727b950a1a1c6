"""Subsamples: rows picked at random or evenly.

A random subsample of a class has the rows with the smallest keys. Keys depend on the values of the rows
(`sampling_keys`), on their ranks by their values (`splits.shuffle`), or on positions in the table (the keys
of `dask.sample`).
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.hashing import Words, row_keys
from corral.data.splits import shuffle

# A sample has about so many rows, and of each class at least as many as it may have centroids.
SAMPLE_ROWS = 100_000

# A subsample in proportion to the classes has at least so many rows of each of them.
_FEWEST_ROWS = 10

# Ranks and normal scores are interpolated between about so many values of each column, each of so many rows.
MAX_KNOTS = 1000
_ROWS_PER_KNOT = 5


def n_knots(n_sample: int) -> int:
    """Number of values of each column between which ranks learnt from a sample are interpolated."""
    return min(MAX_KNOTS, n_sample // _ROWS_PER_KNOT)


def sample_sizes(sizes: Integers, max_rows: int) -> Integers:
    """How many rows (n_classes,) a sample has from classes of the given sizes."""
    return proportional_sizes(sizes, SAMPLE_ROWS, max_rows)


def proportional_sizes(sizes: Integers, n_rows: int, least: int) -> Integers:
    """Divide about `n_rows` among classes of the given sizes; each gets at least `least`, or all its rows."""
    shares = np.ceil(sizes / sizes.sum() * n_rows).astype(np.int64)
    limited: Integers = np.minimum(sizes, np.maximum(shares, least))
    return limited


def smallest_by_class(keys: Integers | Words, codes: Integers, sizes: Integers) -> Integers:
    """Positions of the `sizes` (n_classes,) rows of each class with the smallest keys, class by class."""
    classes = [np.flatnonzero(codes == y) for y in range(sizes.size)]
    ordered = [rows[np.argsort(keys[rows], kind="stable")] for rows in classes]
    return np.concatenate([rows[:size] for rows, size in zip(ordered, sizes.tolist(), strict=True)])


def proportional_subsample(
    data: LabelledRows, order: Integers, n_rows: int, random: np.random.RandomState
) -> Integers:
    """Positions, in order, of about `n_rows` random rows in proportion to the classes.

    `order` has the ranks of the rows by their values, so that their order in the table does not matter.
    """
    sizes = np.bincount(data.codes, minlength=data.labels.size)  # rows, not weights, take time
    sizes = proportional_sizes(sizes, n_rows, _FEWEST_ROWS)
    return np.sort(smallest_by_class(shuffle(order, random), data.codes, sizes))


def balanced_subsample(
    data: LabelledRows, order: Integers, n_rows: int, random: np.random.RandomState
) -> Integers:
    """Positions, in order, of about `n_rows` random rows, the same number of each class."""
    sizes = np.full(data.labels.size, max(n_rows // data.labels.size, 1))
    return np.sort(smallest_by_class(shuffle(order, random), data.codes, sizes))


def choose_sample(data: LabelledRows, max_rows: int, seed: int) -> Integers:
    """Positions of the rows of a sample, class by class, in an order that depends on their values alone."""
    keys = np.empty(len(data.X), dtype=np.int64)
    for rows in data.members():
        keys[rows] = sampling_keys(data.X[rows], seed)
    sizes = np.bincount(data.codes, minlength=data.labels.size)
    return smallest_by_class(keys, data.codes, sample_sizes(sizes, max_rows))


def example_rows(X: Floats, weights: Floats, max_rows: int) -> Integers:
    """Positions of at most `max_rows` rows of a class, by their values; equal rows by their weights."""
    if len(X) <= max_rows:
        return np.arange(len(X))
    by_weight = np.argsort(-weights, kind="stable")
    return by_weight[np.argsort(sampling_keys(X[by_weight], 0), kind="stable")[:max_rows]]


def sampling_keys(X: Floats, seed: int) -> Integers:
    """Random numbers (n_rows,) of the rows of a class that depend on their values and on the seed alone.

    Equal rows get different numbers, so that they are picked one by one.
    """
    d = X.shape[1]
    keys = row_keys(X, np.arange(d) + seed)
    order = np.argsort(keys, kind="stable")
    is_first = np.concatenate([[True], np.diff(keys[order]) != 0])
    positions = np.arange(keys.size)
    repeats = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    again = order[repeats > 0]
    keys[again] += row_keys(repeats[repeats > 0, np.newaxis].astype(np.float64), np.array([d + seed]))
    return keys.view(np.int64)


def random_rows(n_rows: int, max_rows: int, random: np.random.RandomState | np.random.Generator) -> Integers:
    """Positions of all rows, or of `max_rows` random ones, in order."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, max_rows, replace=False))


def evenly_spaced(n_rows: int, max_rows: int) -> Integers:
    """Positions of all rows, or of `max_rows` evenly spaced ones, in order."""
    return np.linspace(0, n_rows - 1, min(n_rows, max_rows)).round().astype(np.int64)


def evenly_spaced_by_class(codes: Integers, n_classes: int, max_rows: int) -> Integers:
    """Positions of about `max_rows` rows, the same number of each class, evenly spaced in the class."""
    if codes.size <= max_rows:
        return np.arange(codes.size)
    limit = max(max_rows // n_classes, 1)
    classes = [np.flatnonzero(codes == y) for y in range(n_classes)]
    return np.sort(np.concatenate([rows[evenly_spaced(rows.size, limit)] for rows in classes]))

"""Subsamples: random or evenly spaced selections of rows.

A random subsample of a class has the rows with the smallest keys. A key is computed from the values of a row
(`sampling_keys`), from its rank by values (`splits.shuffle`), or from its position in the table
(`dask.sample`).
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.hashing import Words, row_keys
from corral.data.splits import shuffle

# Approximate number of rows of a sample for tables with compressed classes. From each class it has at least
# as many rows as the class may have centroids.
SAMPLE_ROWS = 100_000

# Smallest number of rows of each class in a subsample in proportion to the classes.
_FEWEST_ROWS = 10

# Largest number of values of each column between which ranks and normal scores are interpolated, and smallest
# number of sampled rows for each of these values.
MAX_KNOTS = 1000
_ROWS_PER_KNOT = 5


def n_knots(n_sample: int) -> int:
    """Return the number of values per column between which the ranks from a sample are interpolated."""
    return min(MAX_KNOTS, n_sample // _ROWS_PER_KNOT)


def sample_sizes(sizes: Integers, max_rows: int) -> Integers:
    """Return the number of rows (n_classes,) of each class in a sample, from the sizes of the classes."""
    return proportional_sizes(sizes, SAMPLE_ROWS, max_rows)


def proportional_sizes(sizes: Integers, n_rows: int, least: int) -> Integers:
    """Divide about `n_rows` among classes in proportion to their sizes.

    Each class has at least `least` rows in the result, or all of its rows.
    """
    shares = np.ceil(sizes / sizes.sum() * n_rows).astype(np.int64)
    limited: Integers = np.minimum(sizes, np.maximum(shares, least))
    return limited


def smallest_by_class(keys: Integers | Words, codes: Integers, sizes: Integers) -> Integers:
    """Return the positions of the sizes[y] rows of each class y with the smallest keys, class by class."""
    classes = [np.flatnonzero(codes == y) for y in range(sizes.size)]
    ordered = [rows[np.argsort(keys[rows], kind="stable")] for rows in classes]
    return np.concatenate([rows[:size] for rows, size in zip(ordered, sizes.tolist(), strict=True)])


def proportional_subsample(
    data: LabelledRows, order: Integers, n_rows: int, random: np.random.RandomState
) -> Integers:
    """Return the sorted positions of about `n_rows` random rows, in proportion to the class sizes.

    `order` (n_rows,) are the ranks of the rows by values. So the selection does not depend on the order of
    the table.
    """
    sizes = np.bincount(data.codes, minlength=data.labels.size)  # not weights: the aim is to limit the time
    sizes = proportional_sizes(sizes, n_rows, _FEWEST_ROWS)
    return np.sort(smallest_by_class(shuffle(order, random), data.codes, sizes))


def balanced_subsample(
    data: LabelledRows, order: Integers, n_rows: int, random: np.random.RandomState
) -> Integers:
    """Return the sorted positions of at most about `n_rows` random rows, equally many from each class.

    All rows of a smaller class are returned. `order` (n_rows,) are the ranks of the rows by values.
    """
    sizes = np.full(data.labels.size, max(n_rows // data.labels.size, 1))
    return np.sort(smallest_by_class(shuffle(order, random), data.codes, sizes))


def choose_sample(data: LabelledRows, max_rows: int, seed: int) -> Integers:
    """Return the positions of the rows of a sample, class by class, in an order by values."""
    keys = np.empty(len(data.X), dtype=np.int64)
    for rows in data.members():
        keys[rows] = sampling_keys(data.X[rows], seed)
    sizes = np.bincount(data.codes, minlength=data.labels.size)
    return smallest_by_class(keys, data.codes, sample_sizes(sizes, max_rows))


def example_rows(X: Floats, weights: Floats, max_rows: int) -> Integers:
    """Return the positions of at most `max_rows` rows of a class.

    The selection is random but depends on the values only; of equal rows, heavier rows are selected first.
    """
    if len(X) <= max_rows:
        return np.arange(len(X))
    by_weight = np.argsort(-weights, kind="stable")
    return by_weight[np.argsort(sampling_keys(X[by_weight], 0), kind="stable")[:max_rows]]


def sampling_keys(X: Floats, seed: int) -> Integers:
    """Return random keys (n_rows,) of the rows of a class that depend on values and the seed only.

    Equal rows get different keys, so that a subsample may contain a part of them.
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
    """Return the sorted positions of `max_rows` random rows, or of all rows if there are not more."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, max_rows, replace=False))


def evenly_spaced(n_rows: int, max_rows: int) -> Integers:
    """Return the sorted positions of `max_rows` evenly spaced rows, or of all rows if there are not more."""
    return np.linspace(0, n_rows - 1, min(n_rows, max_rows)).round().astype(np.int64)


def evenly_spaced_by_class(codes: Integers, n_classes: int, max_rows: int) -> Integers:
    """Return sorted positions of at most about `max_rows` rows: evenly spaced rows of each class.

    Each class contributes the same number of rows, or all of its rows.
    """
    if codes.size <= max_rows:
        return np.arange(codes.size)
    limit = max(max_rows // n_classes, 1)
    classes = [np.flatnonzero(codes == y) for y in range(n_classes)]
    return np.sort(np.concatenate([rows[evenly_spaced(rows.size, limit)] for rows in classes]))

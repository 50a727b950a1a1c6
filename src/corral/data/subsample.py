"""Subsamples: some of many rows.

A random subsample of a class has the rows with the smallest keys. It depends on what the keys depend on:
`sampling_keys` on the values of the rows, `splits.shuffle` on their order by what they hold, and the keys of
`dask.sample` on positions in the table.
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.hashing import Words, row_keys
from corral.data.splits import shuffle

# About so many rows are a sample, and of each class at least as many as it may have representatives.
SAMPLE_ROWS = 100_000

# A subsample in proportion to the classes has at least so many rows of each of them.
_FEWEST_ROWS = 10

# Ranks and normal scores are known at about so many values of each column, with so many rows for each.
MAX_KNOTS = 1000
_ROWS_PER_KNOT = 5


def n_knots(n_sample: int) -> int:
    """At how many values of each column ranks are known from a sample of so many rows."""
    return min(MAX_KNOTS, n_sample // _ROWS_PER_KNOT)


def sample_sizes(sizes: Integers, max_rows: int) -> Integers:
    """How many rows (n_classes,) of classes of these sizes are a sample."""
    return proportional_sizes(sizes, SAMPLE_ROWS, max_rows)


def proportional_sizes(sizes: Integers, n_rows: int, least: int) -> Integers:
    """Divide about `n_rows` rows among classes of these sizes; each has at least `least`, or all its rows."""
    shares = np.ceil(sizes / sizes.sum() * n_rows).astype(np.int64)
    limited: Integers = np.minimum(sizes, np.maximum(shares, least))
    return limited


def smallest_by_class(keys: Integers | Words, codes: Integers, sizes: Integers) -> Integers:
    """Positions of so many rows (n_classes,) of each class, those with the smallest keys, class by class."""
    chosen = []
    for y, size in enumerate(sizes.tolist()):
        of_class = np.flatnonzero(codes == y)
        chosen.append(of_class[np.argsort(keys[of_class], kind="stable")[:size]])
    return np.concatenate(chosen)


def proportional_subsample(
    data: LabelledRows, order: Integers, n_rows: int, random: np.random.RandomState
) -> Integers:
    """Positions, in order, of about `n_rows` random rows in proportion to the classes.

    `order` numbers the rows by what they hold, so that their order in the table does not matter.
    """
    sizes = np.bincount(data.codes, minlength=data.labels.size)  # rows, not weights, take time
    sizes = proportional_sizes(sizes, n_rows, _FEWEST_ROWS)
    return np.sort(smallest_by_class(shuffle(order, random), data.codes, sizes))


def balanced_subsample(
    data: LabelledRows, order: Integers, n_rows: int, random: np.random.RandomState
) -> Integers:
    """Positions, in order, of about `n_rows` random rows, the same number of each class; see above."""
    sizes = np.full(data.labels.size, max(n_rows // data.labels.size, 1))
    return np.sort(smallest_by_class(shuffle(order, random), data.codes, sizes))


def choose_sample(data: LabelledRows, max_rows: int, seed: int) -> Integers:
    """Positions of the rows of a sample, class by class, in an order that depends on their values alone."""
    keys = np.empty(len(data.X), dtype=np.int64)
    for of_class in data.members():
        keys[of_class] = sampling_keys(data.X[of_class], seed)
    sizes = np.bincount(data.codes, minlength=data.labels.size)
    return smallest_by_class(keys, data.codes, sample_sizes(sizes, max_rows))


def example_rows(X: Floats, weights: Floats, max_rows: int) -> Integers:
    """Positions of at most so many rows of a class, chosen by their values, and equal rows by weights."""
    if len(X) <= max_rows:
        return np.arange(len(X))
    by_weight = np.argsort(-weights, kind="stable")
    return by_weight[np.argsort(sampling_keys(X[by_weight], 0), kind="stable")[:max_rows]]


def sampling_keys(X: Floats, seed: int) -> Integers:
    """Random numbers of the rows of a class that depend on their values and on the seed alone.

    Rows that are equal are numbered, so that they are drawn one by one.
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


def random_rows(n_rows: int, max_rows: int, random: np.random.RandomState | np.random.Generator) -> Integers:
    """Positions of all rows, or of `max_rows` random ones, in order."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, max_rows, replace=False))


def evenly_spaced(n_rows: int, max_rows: int) -> Integers:
    """Positions of all rows, or of `max_rows` that are evenly spread over them, in order."""
    return np.linspace(0, n_rows - 1, min(n_rows, max_rows)).round().astype(np.int64)


def evenly_spaced_by_class(codes: Integers, n_classes: int, max_rows: int) -> Integers:
    """Positions of about `max_rows` rows, the same number of each class, evenly spread over all of it."""
    if codes.size <= max_rows:
        return np.arange(codes.size)
    limit = max(max_rows // n_classes, 1)
    classes = [np.flatnonzero(codes == y) for y in range(n_classes)]
    return np.sort(np.concatenate([of_class[evenly_spaced(of_class.size, limit)] for of_class in classes]))

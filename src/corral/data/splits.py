"""Divisions of rows into folds and parts, and groups that are held out.

All rows of a group, and duplicates with different labels, are always in the same fold or part. The divisions
of `LabelledRows` do not depend on the order of rows in the table: random numbers are assigned by `order`
(n_rows,), the ranks of the rows by values from `LabelledRows.content_order`.
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Bools, Integers
from corral.data.dataset import LabelledRows
from corral.data.duplicates import filled

# Equal rows of a class are in the same fold if the class has at least this number of different rows per fold.
_VALUES_PER_FOLD = 20


def shuffle(order: Integers, random: np.random.RandomState) -> Integers:
    """Return random ranks (n_rows,), assigned to rows by their ranks `order` (n_rows,)."""
    positions: Integers = random.permutation(order.size)[np.argsort(np.argsort(order))]
    return positions


def stratified_folds(
    data: LabelledRows, order: Integers, n_folds: int, random: np.random.RandomState
) -> Integers:
    """Return the index (n_rows,) of the fold of each row; each class is divided evenly, by groups or rows."""
    divide = _folds_of_groups if data.grouped else _folds_of_rows
    return divide(data, shuffle(order, random), n_folds)


def _folds_of_rows(data: LabelledRows, shuffled: Integers, n_folds: int) -> Integers:
    folds = np.empty(len(data.X), dtype=np.int64)
    X = filled(data.X)
    for rows in data.members():
        # Equal rows are only kept together if a class has many different rows. Otherwise a fold could contain
        # a large part of the class.
        positions = shuffled[rows]
        distinct, value = np.unique(X[rows], axis=0, return_inverse=True)
        if len(distinct) >= _VALUES_PER_FOLD * n_folds:
            least, value = _least_by_group(positions, value.reshape(-1))
            positions = least[value]
        folds[rows] = np.unique(positions, return_inverse=True)[1] % n_folds
    # All duplicates with different labels get the fold of one of these rows.
    least, group = _least_by_group(shuffled, data.group_ids)
    return folds[np.argsort(shuffled)[least[group]]]


def _folds_of_groups(data: LabelledRows, shuffled: Integers, n_folds: int) -> Integers:
    """Divide the groups class by class, so that each class is divided evenly even if it has few groups."""
    least, group = _least_by_group(shuffled, data.group_ids)
    folds = np.full(least.size, -1)
    n_placed = 0
    classes = [rows for rows in data.members() if rows.size]
    for rows in sorted(classes, key=lambda rows: int(shuffled[rows].min())):
        groups = np.unique(group[rows])
        groups = groups[folds[groups] < 0]  # a group with rows of several classes may already have a fold
        folds[groups[np.argsort(least[groups])]] = (n_placed + np.arange(groups.size)) % n_folds
        n_placed += groups.size
    return folds[group]


def stratified_parts(
    data: LabelledRows, order: Integers, n_parts: int, random: np.random.RandomState
) -> Integers:
    """Return the index (n_rows,) of the part of each row; groups are divided evenly, also within classes."""
    least, group = _least_by_group(order, data.group_ids)
    is_first = order == least[group]
    codes = np.empty(least.size, dtype=np.int64)
    codes[group[is_first]] = data.codes[is_first]
    parts = np.empty(least.size, dtype=np.int64)
    # The classes are divided as one sequence. So the parts have nearly equal numbers of groups even if the
    # number of groups of a class is not a multiple of n_parts.
    parts[np.lexsort((shuffle(least, random), codes))] = np.arange(least.size) % n_parts
    return parts[group]


def random_parts(
    data: LabelledRows, order: Integers, n_parts: int, random: np.random.RandomState
) -> Integers:
    """Return the index (n_rows,) of the part of each row; groups are divided at random, ignoring classes.

    The parts are for scores with priors that are estimated from the other parts. If parts were stratified as
    folds are, these priors would favor the classes that are rarer in the part, and noise would seem
    predictable.
    """
    least, group = _least_by_group(order, data.group_ids)
    return (shuffle(least, random) % n_parts)[group]


def spread_parts(data: LabelledRows, order: Integers, n_parts: int) -> Integers:
    """Return the index (n_rows,) of the part of each row; groups are assigned in turn, by `order`."""
    least, group = _least_by_group(order, data.group_ids)
    parts: Integers = (np.argsort(np.argsort(least)) % n_parts)[group]
    return parts


def _least_by_group(positions: Integers, groups: Integers) -> tuple[Integers, Integers]:
    """Return the smallest position of each group (n_groups,), and the index (n_rows,) of each row's group."""
    names, group = np.unique(groups, return_inverse=True)
    least = np.full(names.size, np.iinfo(np.int64).max)
    np.minimum.at(least, group, positions)
    return least, group


def held_out_groups(groups: Integers, codes: Integers, share: float, random: np.random.RandomState) -> Bools:
    """Hold out whole groups with about `share` of the rows of each class; returns a mask (n_rows,).

    Groups are considered in random order. A group is held out if this brings the class counts of held-out
    rows closer to the share, and if each class keeps rows outside the held-out groups. If no group qualifies,
    the smallest group is held out after which each class keeps rows.
    """
    _, group = np.unique(groups, return_inverse=True)
    counts = np.zeros((group.max() + 1, codes.max() + 1))
    np.add.at(counts, (group, codes), 1.0)
    missing, left = share * counts.sum(axis=0), counts.sum(axis=0)
    held_out = np.zeros(len(counts), dtype=np.bool_)
    for g in random.permutation(len(counts)):
        nearer = np.abs(missing - counts[g]).sum() < np.abs(missing).sum()
        if nearer and (left > counts[g]).all():
            held_out[g] = True
            missing, left = missing - counts[g], left - counts[g]
    if not held_out.any():
        sizes = np.where((left > counts).all(axis=1), counts.sum(axis=1), np.inf)
        held_out[sizes.argmin()] = True
    return held_out[group]

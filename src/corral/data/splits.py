"""Divisions of rows into folds and parts, and groups that are held out.

All rows of a group, and duplicates with different labels, are always on the same side of a division. No
division depends on the order of rows in the table: random numbers follow `order` (n_rows,), the ranks of the
rows by their values that `LabelledRows.content_order` returns.
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Bools, Integers
from corral.data.dataset import LabelledRows
from corral.data.duplicates import filled

# Equal rows of a class share a fold if the class has so many different rows for each fold.
_VALUES_PER_FOLD = 20


def shuffle(order: Integers, random: np.random.RandomState) -> Integers:
    """Random ranks (n_rows,) of rows with the given ranks by their values."""
    positions: Integers = random.permutation(order.size)[np.argsort(np.argsort(order))]
    return positions


def stratified_folds(
    data: LabelledRows, order: Integers, n_folds: int, random: np.random.RandomState
) -> Integers:
    """Divide each class into folds (n_rows,): its groups, or its rows if there are no groups."""
    divide = _folds_of_groups if data.grouped else _folds_of_rows
    return divide(data, shuffle(order, random), n_folds)


def _folds_of_rows(data: LabelledRows, shuffled: Integers, n_folds: int) -> Integers:
    folds = np.empty(len(data.X), dtype=np.int64)
    X = filled(data.X)
    for rows in data.members():
        # If few rows of a class differ, equal rows are divided: a fold should not hold a large part of a
        # class.
        positions = shuffled[rows]
        distinct, value = np.unique(X[rows], axis=0, return_inverse=True)
        if len(distinct) >= _VALUES_PER_FOLD * n_folds:
            least, value = _least_by_group(positions, value.reshape(-1))
            positions = least[value]
        folds[rows] = np.unique(positions, return_inverse=True)[1] % n_folds
    # Duplicates with different labels are in the fold of one of them.
    least, group = _least_by_group(shuffled, data.group_ids)
    return folds[np.argsort(shuffled)[least[group]]]


def _folds_of_groups(data: LabelledRows, shuffled: Integers, n_folds: int) -> Integers:
    """Divide the groups of one class after the other, so that few groups do not share a fold by chance."""
    least, group = _least_by_group(shuffled, data.group_ids)
    folds = np.full(least.size, -1)
    n_placed = 0
    classes = [rows for rows in data.members() if rows.size]
    for rows in sorted(classes, key=lambda rows: int(shuffled[rows].min())):
        groups = np.unique(group[rows])
        groups = groups[folds[groups] < 0]  # a group with several classes may have a fold already
        folds[groups[np.argsort(least[groups])]] = (n_placed + np.arange(groups.size)) % n_folds
        n_placed += groups.size
    return folds[group]


def stratified_parts(
    data: LabelledRows, order: Integers, n_parts: int, random: np.random.RandomState
) -> Integers:
    """Divide groups into parts (n_rows,) of equal size that have their share of every class."""
    least, group = _least_by_group(order, data.group_ids)
    is_first = order == least[group]
    codes = np.empty(least.size, dtype=np.int64)
    codes[group[is_first]] = data.codes[is_first]
    parts = np.empty(least.size, dtype=np.int64)
    # Classes follow each other, so that the parts have as many rows though classes cannot be divided evenly.
    parts[np.lexsort((shuffle(least, random), codes))] = np.arange(least.size) % n_parts
    return parts[group]


def random_parts(
    data: LabelledRows, order: Integers, n_parts: int, random: np.random.RandomState
) -> Integers:
    """Divide groups into parts (n_rows,) without regard to classes.

    If each part had its share of every class, as folds have, priors from the other parts would favour the
    classes that are rarer in it, and noise would seem to be predictable.
    """
    least, group = _least_by_group(order, data.group_ids)
    return (shuffle(least, random) % n_parts)[group]


def spread_parts(data: LabelledRows, order: Integers, n_parts: int) -> Integers:
    """Divide groups into parts (n_rows,) in turns, in the order of their first rows."""
    least, group = _least_by_group(order, data.group_ids)
    parts: Integers = (np.argsort(np.argsort(least)) % n_parts)[group]
    return parts


def _least_by_group(positions: Integers, groups: Integers) -> tuple[Integers, Integers]:
    """Least position among the rows of each group (n_groups,), and numbers of groups (n_rows,) from 0 on."""
    names, group = np.unique(groups, return_inverse=True)
    least = np.full(names.size, np.iinfo(np.int64).max)
    np.minimum.at(least, group, positions)
    return least, group


def held_out_groups(groups: Integers, codes: Integers, share: float, random: np.random.RandomState) -> Bools:
    """Which rows (n_rows,) are held out: whole groups with about the given share of the rows of each class.

    Groups are tried in random order. A group is held out if this brings the numbers of held-out rows nearer
    to the share and leaves rows of each class to learn from. If no group is, the smallest possible one is
    held out.
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

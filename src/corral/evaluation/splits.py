"""Splits of a table into training rows and held-out rows.

Distinct rows are the rows without duplicates of earlier rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit

from corral.array_types import Integers
from corral.data.duplicates import duplicates_and_groups, number_duplicates
from corral.data.splits import held_out_groups
from corral.estimators.encoding import encoded
from corral.sentences.numbers import counted

# A target with more different values than this, and fewer than two rows per value, has no classes.
_MANY = 20

# Tables with fewer rows are cross-validated: scores of one held-out part would be too uncertain.
FEW_ROWS = 1000
N_FOLDS = 5

# Fewest rows, or groups, of a class: one is held out and one is fitted.
_FEWEST = 2

# Share of a larger table that is held out.
TEST_SIZE = 0.25


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Rows of a table that are held out together: duplicates and groups."""

    duplicates: Integers  # (n_rows,) id of the distinct row; equal rows of different groups are distinct
    # (n_rows,) id of the group, None without groups; groups that share most of their rows are one group
    groups: Integers | None = None

    @property
    def n_duplicates(self) -> int:
        """Number of rows that are duplicates of earlier rows."""
        return self.duplicates.size - np.unique(self.duplicates).size

    @classmethod
    def from_table(cls, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None) -> RowGroups:
        """Find the duplicates and groups of a frame, which may have missing values and categories."""
        duplicates = number_duplicates(encoded(X), np.unique(y, return_inverse=True)[1])
        numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
        duplicates, row_groups = duplicates_and_groups(duplicates, numbers, len(X))
        return cls(
            np.arange(len(X)) if duplicates is None else duplicates, None if groups is None else row_groups
        )

    @property
    def distinct(self) -> Integers:
        """Positions of the distinct rows: of equal rows only the first."""
        return np.unique(self.duplicates, return_index=True)[1]


# Positions of training rows, and of held-out rows without their duplicates.
Split = tuple[Integers, Integers]


def split_rows(
    y: NDArray[Any],
    row_groups: RowGroups,
    *,
    test_size: float | None,
    cv: int | None,
    seed: int,
    if_few_rows: str = "",
) -> list[Split]:
    """Hold out one part of the rows, or each of `cv` parts in turn, stratified by class.

    If `test_size` and `cv` are None, each of five parts (or fewer, if groups or classes do not allow five) is
    held out in tables with fewer than `FEW_ROWS` distinct rows, and one part in larger tables. Groups are
    held out as a whole, so classes are stratified as far as groups allow. `if_few_rows` is advice at the end
    of the error message on a class with too few rows or groups.
    """
    distinct = row_groups.distinct
    _check_classes(y[distinct])
    _check_sizes(y, row_groups, cv or _FEWEST, if_few_rows)
    if cv is not None:
        return _splits(row_groups, _folds(y, row_groups, cv, seed))
    if test_size is None and distinct.size < FEW_ROWS:
        for n_folds in range(min(N_FOLDS, _most_folds(y, row_groups)), 1, -1):
            splits = _splits(row_groups, _folds(y, row_groups, n_folds, seed))
            if all(test.size and _leaves_enough(y, row_groups, train) for train, test in splits):
                return splits
    return _splits(row_groups, [_one_part(y, row_groups, test_size or TEST_SIZE, seed)])


def _folds(y: NDArray[Any], row_groups: RowGroups, n_folds: int, seed: int) -> list[Split]:
    """Return positions, among distinct rows, of training and held-out rows of each fold."""
    distinct = row_groups.distinct
    groups = None if row_groups.groups is None else row_groups.groups[distinct]
    make = StratifiedKFold if groups is None else StratifiedGroupKFold
    with (
        warnings.catch_warnings()
    ):  # a class with fewer rows than folds is still in the training rows of every fold
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(make(n_folds, shuffle=True, random_state=seed).split(distinct, y[distinct], groups))


def _one_part(y: NDArray[Any], row_groups: RowGroups, test_size: float, seed: int) -> Split:
    """Return positions, among distinct rows, of training and held-out rows."""
    distinct = row_groups.distinct
    if row_groups.groups is not None:
        codes = np.unique(y[distinct], return_inverse=True)[1]
        random = np.random.RandomState(seed)
        held_out = held_out_groups(row_groups.groups[distinct], codes, test_size, random)
        return np.flatnonzero(~held_out), np.flatnonzero(held_out)
    _check_share(y[distinct], test_size)
    splitter = StratifiedShuffleSplit(1, test_size=test_size, random_state=seed)
    train, held_out = next(splitter.split(distinct, y[distinct]))
    return train, held_out


def _splits(row_groups: RowGroups, parts: Sequence[Split]) -> list[Split]:
    """Return positions among all rows, where duplicates of training rows are training rows."""
    distinct = row_groups.distinct
    place = np.searchsorted(row_groups.duplicates[distinct], row_groups.duplicates)  # among distinct rows
    return [(np.flatnonzero(np.isin(place, kept)), distinct[held_out]) for kept, held_out in parts]


def _most_folds(y: NDArray[Any], row_groups: RowGroups) -> int:
    """Return the largest number of folds: the number of groups, or of rows of the largest class."""
    if row_groups.groups is not None:
        return int(np.unique(row_groups.groups).size)
    return int(np.unique(y[row_groups.distinct], return_counts=True)[1].max())


def _leaves_enough(y: NDArray[Any], row_groups: RowGroups, train: Integers) -> bool:
    """Return whether training rows have all classes, and two groups of some class if rows have groups."""
    if np.unique(y[train]).size < np.unique(y).size:
        return False
    return row_groups.groups is None or max(counts_by_class(row_groups.groups[train], y[train])) > 1


def counts_by_class(numbers: Integers, y: NDArray[Any]) -> list[int]:
    """Count the different ids of groups, or of distinct rows, in each class."""
    return [np.unique(numbers[y == label]).size for label in np.unique(y)]


def _check_sizes(y: NDArray[Any], row_groups: RowGroups, needed: int, if_few_rows: str) -> None:
    """Raise ValueError if a class has fewer rows, or groups, than needed."""
    counts = counts_by_class(row_groups.duplicates if row_groups.groups is None else row_groups.groups, y)
    least = min(counts)
    if least >= needed:
        return
    label = np.unique(y).tolist()[counts.index(least)]
    n_rows, advice = int((y == label).sum()), if_few_rows and f"; {if_few_rows}"
    noun = "row" if row_groups.groups is None else "group"
    number = counted(least, noun)
    if advice and needed == _FEWEST and sum(n >= needed for n in counts) < 2:
        advice = f"; collect more {noun}s: without such classes only one class would be left"
    if row_groups.groups is None:
        number += f" ({n_rows} with duplicates)" if n_rows > least else ""
    raise ValueError(
        f"class {label!r} has {number}, fewer than the {needed} needed to hold some out{advice}."
    )


def _check_share(y: NDArray[Any], test_size: float) -> None:
    """Raise ValueError if held-out rows or training rows would be fewer than the classes."""
    n_classes, n_test = np.unique(y).size, math.ceil(test_size * y.size)
    if not n_classes <= n_test <= y.size - n_classes:
        raise ValueError(
            f"a held-out share of {test_size:g} is {n_test} of {y.size} rows; training rows and held-out "
            f"rows need a row of each of the {n_classes} classes."
        )


def _check_classes(y: NDArray[Any]) -> None:
    """Raise ValueError if the target has only one class or too many values."""
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError(
            f"the target must hold at least two classes, got one class: {classes.tolist()[0]!r}."
        )
    if classes.size > max(_MANY, 0.5 * y.size):
        raise ValueError(
            f"the target has {classes.size} different values in {y.size} rows: these are not classes."
        )

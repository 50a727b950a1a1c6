"""How rows are divided into those that are learnt from and those that are held out."""

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

# So many values, most of them in one row only, are measurements.
_MANY = 20

# Below so many rows, each row is held out once: a part of them would say too little.
FEW_ROWS = 1000
N_FOLDS = 5

# One row or group of a class is held out, and another one is learnt from.
_FEWEST_UNITS = 2

# The share of more rows that is held out.
TEST_SIZE = 0.25


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Which rows of a table are held out together."""

    # (n_rows,) numbers that copies of a row, and only they, share; they count as one row, but for those in
    # groups that stay apart
    duplicates: Integers
    # (n_rows,) numbers that rows of a group share, and groups that share most of their rows; None if rows
    # have no groups
    groups: Integers | None = None

    @property
    def n_duplicates(self) -> int:
        """How many rows are copies of others."""
        return self.duplicates.size - np.unique(self.duplicates).size

    @classmethod
    def of(cls, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None) -> RowGroups:
        """Number the rows of a frame, which may have gaps and columns of levels, given their labels."""
        duplicates = number_duplicates(encoded(X), np.unique(y, return_inverse=True)[1])
        numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
        duplicates, row_groups = duplicates_and_groups(duplicates, numbers, len(X))
        return cls(
            np.arange(len(X)) if duplicates is None else duplicates, None if groups is None else row_groups
        )

    @property
    def distinct(self) -> Integers:
        """Positions of the rows without their copies, the first of each."""
        return np.unique(self.duplicates, return_index=True)[1]


# Positions of the rows to learn from, and of held-out rows, of which the first of each duplicate.
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
    """Hold out one part of the rows, or each of `cv` parts in turn, with the same shares of the classes.

    Without both, tables of few rows have five parts, or fewer where groups do not allow it, and others one.
    Groups are held out whole, so that shares of classes are the same only as far as groups allow it.
    `if_few_rows` ends the sentence that refuses a class of too few rows or groups: what can be done about it.
    """
    distinct = row_groups.distinct
    _check_classes(y[distinct])
    _check_sizes(y, row_groups, cv or _FEWEST_UNITS, if_few_rows)
    if cv is not None:
        return _splits(row_groups, _folds(y, row_groups, cv, seed))
    if test_size is None and distinct.size < FEW_ROWS:
        for n_folds in range(min(N_FOLDS, _most_folds(y, row_groups)), 1, -1):
            splits = _splits(row_groups, _folds(y, row_groups, n_folds, seed))
            if all(test.size and _leaves_enough(y, row_groups, train) for train, test in splits):
                return splits
    return _splits(row_groups, [_one_part(y, row_groups, test_size or TEST_SIZE, seed)])


def _folds(y: NDArray[Any], row_groups: RowGroups, n_folds: int, seed: int) -> list[Split]:
    """Positions, among distinct rows, of training and held-out rows of each fold."""
    distinct = row_groups.distinct
    groups = None if row_groups.groups is None else row_groups.groups[distinct]
    make = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():  # a class of fewer rows than folds, which is left in every training part
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(make(n_folds, shuffle=True, random_state=seed).split(distinct, y[distinct], groups))


def _one_part(y: NDArray[Any], row_groups: RowGroups, test_size: float, seed: int) -> Split:
    """Positions, among distinct rows, of training and held-out rows."""
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
    """Positions among all rows, where duplicates of training rows are training rows."""
    distinct = row_groups.distinct
    row = np.searchsorted(
        row_groups.duplicates[distinct], row_groups.duplicates
    )  # among those that are distinct
    return [(np.flatnonzero(np.isin(row, kept)), distinct[held_out]) for kept, held_out in parts]


def _most_folds(y: NDArray[Any], row_groups: RowGroups) -> int:
    """As many folds as the largest class has rows, or as there are groups."""
    if row_groups.groups is not None:
        return int(np.unique(row_groups.groups).size)
    return int(np.unique(y[row_groups.distinct], return_counts=True)[1].max())


def _leaves_enough(y: NDArray[Any], row_groups: RowGroups, train: Integers) -> bool:
    """Whether training rows have all classes, and two groups of some class if rows have groups."""
    if np.unique(y[train]).size < np.unique(y).size:
        return False
    return row_groups.groups is None or max(counts_by_class(row_groups.groups[train], y[train])) > 1


def counts_by_class(numbers: Integers, y: NDArray[Any]) -> list[int]:
    """How many different numbers, of groups or of rows without duplicates, each class has."""
    return [np.unique(numbers[y == label]).size for label in np.unique(y)]


def _check_sizes(y: NDArray[Any], row_groups: RowGroups, needed: int, if_few_rows: str) -> None:
    """Refuse a class of fewer rows, or groups, than are needed."""
    counts = counts_by_class(row_groups.duplicates if row_groups.groups is None else row_groups.groups, y)
    least = min(counts)
    if least >= needed:
        return
    label = np.unique(y).tolist()[counts.index(least)]
    n_rows, advice = int((y == label).sum()), if_few_rows and f"; {if_few_rows}"
    unit = "row" if row_groups.groups is None else "group"
    what = counted(least, unit)
    if advice and needed == _FEWEST_UNITS and sum(n >= needed for n in counts) < 2:
        advice = f"; collect more {unit}s, since one class would be left without such classes"
    if row_groups.groups is None:
        what += f" ({n_rows} with copies)" if n_rows > least else ""
    raise ValueError(f"class {label!r} has {what}, fewer than the {needed} needed to hold some out{advice}.")


def _check_share(y: NDArray[Any], test_size: float) -> None:
    """Refuse a share of the rows that leaves one of the parts without a row of each class."""
    n_classes, n_test = np.unique(y).size, math.ceil(test_size * y.size)
    if not n_classes <= n_test <= y.size - n_classes:
        raise ValueError(
            f"a share of {test_size:g} held out is {n_test} of {y.size} rows; both parts need a row of each "
            f"of the {n_classes} classes."
        )


def _check_classes(y: NDArray[Any]) -> None:
    """Refuse a target that holds one class only, or no classes."""
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError(
            f"the target must hold at least two classes, got one class: {classes.tolist()[0]!r}."
        )
    if classes.size > max(_MANY, 0.5 * y.size):
        raise ValueError(
            f"the target has {classes.size} different values in {y.size} rows: these are not classes."
        )

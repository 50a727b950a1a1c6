"""How rows are divided into those that are learnt from and those that are held out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit

from corral.array_types import Integers
from corral.data.duplicates import copies_and_units, number_copies
from corral.data.splits import held_out_groups
from corral.estimators.encoding import encoded
from corral.sentences.numbers import counted

# So many values, most of them in one row only, are measurements.
_MANY = 20


@dataclass(frozen=True, eq=False)
class Units:
    """Which rows of a table are held out together."""

    # (n_rows,) numbers that copies of a row, and only they, share; they count as one row, but for those in
    # groups that stay apart
    copies: Integers
    # (n_rows,) numbers that rows of a group share, and groups that share most of their rows; None if rows
    # have no groups
    groups: Integers | None = None

    @property
    def n_copies(self) -> int:
        """How many rows are copies of others."""
        return self.copies.size - np.unique(self.copies).size

    @classmethod
    def of(cls, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None) -> Units:
        """Number the rows of a frame, which may have gaps and columns of levels, given their labels."""
        copies = number_copies(encoded(X), np.unique(y, return_inverse=True)[1])
        numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
        copies, units = copies_and_units(copies, numbers, len(X))
        return cls(np.arange(len(X)) if copies is None else copies, None if groups is None else units)

    @property
    def distinct(self) -> Integers:
        """Positions of the rows without their copies, the first of each."""
        return np.unique(self.copies, return_index=True)[1]


# Positions of the rows to learn from, and of held-out rows, of which the first of each duplicate.
Split = tuple[Integers, Integers]


def split_rows(
    y: NDArray[Any], units: Units, *, test_size: float, cv: int | None, seed: int, if_few_rows: str = ""
) -> list[Split]:
    """Hold out one part of the rows, or each of `cv` parts in turn, with the same shares of the classes.

    Groups are held out whole, so that shares of classes are the same only as far as groups allow it.
    `if_few_rows` ends the sentence that refuses a class of too few rows: what can be done about it.
    """
    distinct = units.distinct
    groups = None if units.groups is None else units.groups[distinct]
    _check_classes(y[distinct])
    _check_sizes(y, units, cv or 2, if_few_rows)
    if cv is not None:
        make = StratifiedKFold if groups is None else StratifiedGroupKFold
        splits = make(cv, shuffle=True, random_state=seed).split(distinct, y[distinct], groups)
    elif groups is not None:
        codes = np.unique(y[distinct], return_inverse=True)[1]
        held_out = held_out_groups(groups, codes, test_size, np.random.RandomState(seed))
        splits = [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]
    else:
        _check_share(y[distinct], test_size)
        splitter = StratifiedShuffleSplit(1, test_size=test_size, random_state=seed)
        splits = splitter.split(distinct, y[distinct])
    row = np.searchsorted(units.copies[distinct], units.copies)  # among those that are distinct
    return [(np.flatnonzero(np.isin(row, kept)), distinct[held_out]) for kept, held_out in splits]


def counts_by_class(numbers: Integers, y: NDArray[Any]) -> list[int]:
    """How many different numbers, of groups or of rows without duplicates, each class has."""
    return [np.unique(numbers[y == label]).size for label in np.unique(y)]


def _check_sizes(y: NDArray[Any], units: Units, needed: int, if_few_rows: str) -> None:
    """Refuse a class of fewer rows, or groups, than are needed."""
    counts = counts_by_class(units.copies if units.groups is None else units.groups, y)
    least = min(counts)
    if least >= needed:
        return
    label = np.unique(y).tolist()[counts.index(least)]
    n_rows, advice = int((y == label).sum()), ""
    what = counted(least, "row" if units.groups is None else "group")
    if units.groups is None:
        what += f" ({n_rows} with copies)" if n_rows > least else ""
        advice = if_few_rows and f"; {if_few_rows}"
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

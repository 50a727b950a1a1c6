"""How rows are divided into those that are learnt from and those that are held out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit

from corral.array_types import Integers
from corral.data.duplicates import copies_and_units, number_copies
from corral.estimators.encoding import encoded

# So many values, most of them in one row only, are measurements.
_MANY = 20


@dataclass(frozen=True, eq=False)
class Units:
    """Which rows of a table are held out together.

    Attributes
    ----------
    copies : (n_rows,) numbers that copies of a row, and only they, share; they count as one row, but for
        those in groups that stay apart.
    groups : (n_rows,) numbers that rows of a group share, and groups that share most of their rows; None if
        rows have no groups.
    """

    copies: Integers
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


def splitter(
    y: NDArray[Any], units: Units, *, test_size: float, cv: int | None, seed: int, if_few_rows: str = ""
) -> Any:
    """One part held out, or each of `cv` parts in turn; in all of them classes as in the whole.

    Groups are held out whole, so that classes are as in the whole only as far as groups allow it.
    `if_few_rows` ends the sentence that refuses a class of too few rows: what can be done about it.
    """
    n_rows, distinct = Counter(y.tolist()), units.distinct
    y = y[distinct]
    _check_classes(y)
    needed = cv or 2
    classes, counts = np.unique(y, return_counts=True)
    if units.groups is not None:
        groups = units.groups[distinct]
        counts = np.array([np.unique(groups[y == label]).size for label in classes])
    least = int(counts.min())
    if least < needed:
        label = classes.tolist()[int(counts.argmin())]
        if units.groups is not None:
            what, advice = f"{least} group{'s' * (least > 1)}", ""
        else:
            what, advice = _rows_in_words(least, n_rows[label]), f"; {if_few_rows}" if if_few_rows else ""
        raise ValueError(
            f"class {label!r} has {what}, fewer than the {needed} needed to hold some out{advice}."
        )
    if units.groups is not None:
        return (
            StratifiedGroupKFold(cv, shuffle=True, random_state=seed)
            if cv
            else GroupsHeldOut(test_size, seed)
        )
    if cv is not None:
        return StratifiedKFold(cv, shuffle=True, random_state=seed)
    n_test = math.ceil(test_size * y.size)
    if not classes.size <= n_test <= y.size - classes.size:
        raise ValueError(
            f"a share of {test_size:g} held out is {n_test} of {y.size} rows; both parts need a row of each "
            f"of the {classes.size} classes."
        )
    return StratifiedShuffleSplit(1, test_size=test_size, random_state=seed)


def _rows_in_words(n_distinct: int, n_rows: int) -> str:
    """Say how many rows there are; copies are counted apart."""
    copies = f" ({n_rows} with copies)" if n_rows > n_distinct else ""
    return f"{n_distinct} row{'s' * (n_distinct != 1)}{copies}"


def _check_classes(y: NDArray[Any]) -> None:
    """Refuse a target that holds one class only, or no classes."""
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError(
            f"the target must hold at least two classes, got one class: {classes.tolist()[0]!r}."
        )
    if classes.size > max(_MANY, 0.5 * y.size):
        raise ValueError(
            f"the target has {classes.size} different values in {y.size} rows: these are no classes."
        )


@dataclass(frozen=True)
class GroupsHeldOut:
    """Holds out whole groups with about a share of the rows of each class, as scikit-learn's splitters do.

    Groups are taken in random order; one is held out if this brings the numbers of held-out rows nearer to
    the share, and leaves rows of each class to learn from. If none is, it is the smallest that may be.

    Attributes
    ----------
    test_size : the share.
    seed : of the order.
    """

    test_size: float
    seed: int

    def get_n_splits(self) -> int:
        """Number of splits."""
        return 1

    def split(self, X: Any, y: NDArray[Any], groups: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Give the positions of rows to learn from and of held-out rows."""
        _, group = np.unique(groups, return_inverse=True)
        _, code = np.unique(y, return_inverse=True)
        counts = np.zeros((group.max() + 1, code.max() + 1))
        np.add.at(counts, (group, code), 1.0)
        missing = self.test_size * counts.sum(axis=0)
        left = counts.sum(axis=0)
        held_out = np.zeros(len(counts), dtype=np.bool_)
        for g in np.random.RandomState(self.seed).permutation(len(counts)):
            nearer = np.abs(missing - counts[g]).sum() < np.abs(missing).sum()
            if nearer and (left > counts[g]).all():
                held_out[g] = True
                missing, left = missing - counts[g], left - counts[g]
        if not held_out.any():
            sizes = np.where((left > counts).all(axis=1), counts.sum(axis=1), np.inf)
            held_out[sizes.argmin()] = True
        yield np.flatnonzero(~held_out[group]), np.flatnonzero(held_out[group])

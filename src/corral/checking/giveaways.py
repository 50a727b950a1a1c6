"""Columns that give the label away, or name what rows belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.checking.columns import numbered_texts
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.rows import group_numbers
from corral.data.duplicates import number_copies
from corral.data.subsample import random_rows

if TYPE_CHECKING:
    import pandas as pd


# A column gives the label away if it leaves so small a share of the errors of the most frequent class.
_ERRORS_LEFT = 0.03
_ROWS_TRIED = 5000

# Values that stand in so many rows on average, and so many of which each class has, may name patients.
_ROWS_OF_PATIENT = 2
_PATIENTS_OF_CLASS = 3


def giveaways(
    variables: pd.DataFrame,
    numeric: dict[str, Floats],
    y: NDArray[Any],
    known: Bools,
    skipped: set[str],
    groups: pd.Series[Any] | None = None,
    repeated: Integers | None = None,
) -> Iterator[Finding]:
    """Columns that predict the label nearly alone, of rows whose groups are held out if there are some.

    Rows that are `repeated` (positions of near duplicates) are left out: any column finds their twins.
    """
    considered = [name for name in variables.columns if name not in skipped]
    if repeated is not None:
        known = known & ~np.isin(np.arange(known.size), repeated)
    rows = _distinct_rows(variables[considered], numeric, y, known)
    rows = rows[random_rows(rows.size, _ROWS_TRIED, np.random.default_rng(0))]
    classes, codes, counts = np.unique(y[rows].astype(str), return_inverse=True, return_counts=True)
    if classes.size < 2 or rows.size < 2 * ENOUGH_ROWS:
        return
    baseline = counts.max() / rows.size
    units = np.arange(len(y)) if groups is None else group_numbers(groups)
    held_out = "" if groups is None else ", each by rows of other groups"
    for name in considered:
        x = _as_codes(variables[name], numeric)[rows]
        accuracy = _accuracy_of_one(x, codes, units[rows], ordered=name in numeric)
        if 1.0 - accuracy <= _ERRORS_LEFT * (1.0 - baseline):
            names_groups = _may_name_groups(x, codes)
            yield Finding(
                "names groups" if names_groups else "gives the label away",
                (name,),
                (),
                f"column {name!r} alone gives {accuracy:.1%} of the rows their label{held_out}, where the "
                f"most frequent class gives {baseline:.1%}"
                + (", and each of its values stands in several rows of one class" if names_groups else ""),
                "if it names patients or the like, name it as the group, otherwise leave it out"
                if names_groups
                else "leave it out, unless it will be known before the label is",
            )


def _as_codes(column: pd.Series[Any], numeric: dict[str, Floats]) -> Floats:
    """The numbers of a column, or numbers in place of its texts; NaN where there is none."""
    return numeric[column.name] if column.name in numeric else numbered_texts(column)


def _distinct_rows(
    variables: pd.DataFrame, numeric: dict[str, Floats], y: NDArray[Any], known: Bools
) -> Integers:
    """Positions of rows whose class is known, and of copies with the same class the first alone."""
    rows = np.flatnonzero(known)
    if not rows.size or not len(variables.columns):
        return rows
    X = np.column_stack([_as_codes(variables[name], numeric)[rows] for name in variables.columns])
    labels = np.unique(y[rows].astype(str), return_inverse=True)[1]
    units = number_copies(X, labels)
    if units is None:
        return rows
    first = np.unique(np.column_stack([units, labels]), axis=0, return_index=True)[1]
    return rows[np.sort(first)]


def _may_name_groups(x: Floats, codes: Integers) -> bool:
    """Whether values may name what rows belong to: whole numbers or texts, each in several rows of one class.

    As many values as classes, or hardly more, are rather the classes in other words.
    """
    there = np.isfinite(x)
    if (x[there] != np.round(x[there])).any():
        return False
    pairs = np.unique(np.column_stack([x[there], codes[there]]), axis=0)
    values = np.unique(pairs[:, 0])
    of_class = np.bincount(pairs[:, 1].astype(np.int64), minlength=int(codes.max()) + 1)
    return bool(
        len(pairs) == values.size
        and there.sum() >= _ROWS_OF_PATIENT * values.size
        and of_class.min() >= _PATIENTS_OF_CLASS
    )


def _accuracy_of_one(x: Floats, codes: Integers, units: Integers, *, ordered: bool) -> float:
    """Share of rows whose class is that of most others with their value or, without any, of the nearest.

    Others are rows of other `units`, numbers of what is left out together. Only numbers are `ordered`, so
    that a value has nearest ones. A missing value is a value, but has none.
    """
    values, which = np.unique(x, return_inverse=True)
    votes = np.zeros((values.size, codes.max() + 1))
    np.add.at(votes, (which, codes), 1.0)
    pairs, of_pair = np.unique(units * values.size + which, return_inverse=True)
    of_unit = np.zeros((pairs.size, votes.shape[1]))
    np.add.at(of_unit, (of_pair, codes), 1.0)
    others = votes[which] - of_unit[of_pair]  # a row has no vote on itself
    alone = ~others.any(axis=1) & ~np.isnan(x)
    rows = np.arange(codes.size)
    own = others[rows, codes]
    others[rows, codes] = -1.0
    right = own > others.max(axis=1)
    if ordered and alone.any():
        nearest = _nearest_of_others(values, which, units)[alone]
        found = nearest >= 0
        sought = (units[alone] * values.size + nearest)[found]
        at = np.minimum(np.searchsorted(pairs, sought), pairs.size - 1)
        left = votes[nearest[found]] - np.where((pairs[at] == sought)[:, np.newaxis], of_unit[at], 0.0)
        right[np.flatnonzero(alone)[found]] = left.argmax(axis=1) == codes[alone][found]
    return float(right.mean())


def _nearest_of_others(values: Floats, which: Integers, units: Integers) -> Integers:
    """Numbers of the values nearest to those of the rows that rows of other units have; -1 if there are none.

    Of a row whose value only its own unit has, these are the ends of the run of such values.
    """
    numbers = values[~np.isnan(values)]  # a gap comes last
    lowest = np.full(values.size, units.max())
    np.minimum.at(lowest, which, units)
    highest = np.zeros_like(lowest)
    np.maximum.at(highest, which, units)
    of_one = np.where(lowest == highest, lowest, -1)[: numbers.size]
    starts = np.flatnonzero(np.append(True, of_one[1:] != of_one[:-1]) | (of_one < 0))
    run = np.searchsorted(starts, np.arange(values.size), side="right") - 1
    below = starts[run] - 1
    above = np.append(starts[1:], numbers.size)[run]
    padded = np.concatenate([[-np.inf], numbers, [np.inf]])
    here = values if numbers.size == values.size else np.append(numbers, 0.0)
    down, up = here - padded[below + 1], padded[above + 1] - here
    nearest = np.where(down <= up, below, above)
    nearest[(down == np.inf) & (up == np.inf)] = -1
    found: Integers = nearest[which]
    return found

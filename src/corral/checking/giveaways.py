"""Columns that give the label away, or name what rows belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from corral.array_types import Floats, Integers
from corral.checking.findings import ENOUGH_ROWS, Finding
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
    coded: pd.DataFrame,
    numeric: Collection[str],
    labels: Integers,
    rows: Integers,
    groups: Integers | None,
) -> Iterator[Finding]:
    """Columns that predict the label nearly alone, of rows whose groups are held out if there are some.

    Parameters
    ----------
    coded : columns of numbers, and of codes of texts, NaN where values are missing.
    numeric : names of the columns of numbers.
    labels : (n_rows,) numbers of the classes.
    rows : positions of rows of which none is a duplicate: any column finds their twins.
    groups : (n_rows,) numbers of groups, or None.
    """
    rows = rows[random_rows(rows.size, _ROWS_TRIED, np.random.default_rng(0))]
    codes = np.unique(labels[rows], return_inverse=True)[1]
    counts = np.bincount(codes)
    if counts.size < 2 or rows.size < 2 * ENOUGH_ROWS:
        return
    baseline = counts.max() / rows.size
    units = rows if groups is None else groups[rows]
    held_out = "" if groups is None else ", each by rows of other groups"
    for name in coded.columns:
        x = coded[name].to_numpy()[rows]
        accuracy = _accuracy_of_one(x, codes, units, ordered=name in numeric)
        if 1.0 - accuracy > _ERRORS_LEFT * (1.0 - baseline):
            continue
        kind, advice = "gives the label away", "leave it out, unless it will be known before the label is"
        found = (
            f"column {name!r} alone gives {accuracy:.1%} of the rows their label{held_out}, where the most "
            f"frequent class gives {baseline:.1%}"
        )
        if _may_name_groups(x, codes):
            kind = "names groups"
            found += ", and each of its values stands in several rows of one class"
            advice = "if it names patients or the like, name it as the group, otherwise leave it out"
        yield Finding(kind, found, advice, (name,))


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
    """Share of rows whose class is that of most others with their value or, without any, with the nearest.

    Others are rows of other `units`, numbers of what is left out together. Only numbers are `ordered`, so
    that a value has nearest ones. A missing value is a value, but has none.
    """
    order = np.lexsort((units, x))  # missing values come last
    x, codes, units = x[order], codes[order], units[order]
    value = np.unique(x, return_inverse=True)[1]
    votes = np.zeros((value[-1] + 1, codes.max() + 1))
    np.add.at(votes, (value, codes), 1.0)
    pairs, pair = np.unique(units * len(votes) + value, return_inverse=True)
    of_unit = np.zeros((pairs.size, votes.shape[1]))
    np.add.at(of_unit, (pair, codes), 1.0)
    others = votes[value] - of_unit[pair]  # a row has no vote on itself
    if ordered:
        nearest = _nearest_of_others(x, units)
        alone = np.flatnonzero(~others[: nearest.size].any(axis=1) & (nearest >= 0))
        sought = units[alone] * len(votes) + value[nearest[alone]]
        at = np.minimum(np.searchsorted(pairs, sought), pairs.size - 1)
        own = np.where((pairs[at] == sought)[:, np.newaxis], of_unit[at], 0.0)
        others[alone] = votes[value[nearest[alone]]] - own
    rows = np.arange(codes.size)
    right = others[rows, codes]
    others[rows, codes] = -1.0
    return float((right > others.max(axis=1)).mean())


def _nearest_of_others(x: Floats, units: Integers) -> Integers:
    """Position of the row of another unit whose value is nearest, -1 if there is none.

    The rows are in order of their values; those without a value, the last ones, are left out.
    """
    x = x[~np.isnan(x)]
    units = units[: x.size]
    begins = np.flatnonzero(np.append(True, units[1:] != units[:-1]))[: x.size]  # of runs of one unit
    run = np.searchsorted(begins, np.arange(x.size), side="right") - 1
    below, above = begins[run] - 1, np.append(begins[1:], x.size)[run]
    padded = np.concatenate([[-np.inf], x, [np.inf]])
    down, up = x - padded[below + 1], padded[above + 1] - x
    return np.where(np.isinf(down) & np.isinf(up), -1, np.where(down <= up, below, above))

"""Find columns that seem to identify groups of rows, such as patients with several visits.

Accuracies are compared: with rows held out at random, and with whole groups held out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.ids import is_called_id
from corral.checking.order import is_called_time
from corral.checking.quick_model import held_out_hits, modelled_rows, ranked_columns
from corral.sentences.numbers import number_text

if TYPE_CHECKING:
    import pandas as pd

# The least average number of rows in a group.
_ROWS_OF_GROUP = 2
# Equal values count as consecutive up to this number of runs (of equal consecutive values) per value.
_RUNS_PER_VALUE = 1.05
# Texts whose equal values are not consecutive may identify groups if there are at least so many.
_MANY_TEXTS = 20
# A column without the name of an id is reported if the accuracy with held-out groups is lower by this much,
# and by this many standard errors.
_LEAST_LOSS, _STANDARD_ERRORS = 0.02, 3.0
# Columns whose loss of accuracy is at least this share of the largest loss explain it about as well.
_SAME_LOSS = 0.75
# The number of columns that are tried; the quick model of each uses one _PART-th of the usual number of rows.
_MOST_TRIED, _PART = 3, 4


class _Grouping(NamedTuple):
    """A column that may identify groups."""

    name: str
    group_ids: Integers  # (n_rows,) codes; a row without a value is a group of one row
    is_id: bool  # whether the column is reported whatever the accuracies are
    in_blocks: bool  # whether the rows of a group are consecutive


class _Accuracies(NamedTuple):
    """Accuracies of a quick model, in two ways to hold rows out."""

    by_rows: float  # if rows are held out at random
    by_groups: float  # if whole groups are held out
    error: float  # standard error of the difference

    @property
    def loss(self) -> float:
        return self.by_rows - self.by_groups

    @property
    def is_clear(self) -> bool:
        return self.loss >= max(_LEAST_LOSS, _STANDARD_ERRORS * self.error)


def likely_groups(
    coded: pd.DataFrame,
    numeric: Collection[str],
    considered: pd.DataFrame,
    codes: Integers | None,
    rows: Integers,
) -> Iterator[Finding]:
    """Yield findings about columns that seem to identify groups, with the two accuracies.

    Parameters
    ----------
    coded : (n_rows, n_columns) columns that may identify groups, with texts as codes.
    numeric : names of the numeric columns.
    considered : columns that the quick model may use.
    codes : (n_rows,) index of the class of each row; None if the table has no classes.
    rows : positions of rows that have a label, without duplicates.
    """
    groupings = [_grouping(name, coded[name].to_numpy(), name in numeric) for name in coded.columns]
    likely = [grouping for grouping in groupings if grouping is not None]
    likely.sort(key=lambda grouping: (not grouping.is_id, not grouping.in_blocks))
    clear = []
    for grouping in likely[:_MOST_TRIED]:
        variables = considered.drop(columns=grouping.name, errors="ignore")
        accuracies = None
        if codes is not None and variables.shape[1] and np.unique(codes[rows]).size > 1:
            accuracies = _accuracies(variables, codes, grouping.group_ids, rows)
        if grouping.is_id:
            yield _finding(grouping, accuracies)
        elif accuracies is not None and accuracies.is_clear:
            clear.append((grouping, accuracies))
    if clear:
        # Several columns may explain the loss, for example a patient and a ward; the one with most groups is
        # reported.
        largest = max(accuracies.loss for _, accuracies in clear)
        explaining = [pair for pair in clear if pair[1].loss >= _SAME_LOSS * largest]
        yield _finding(*max(explaining, key=lambda pair: np.unique(pair[0].group_ids).size))


def _grouping(name: str, x: Floats, is_number: bool) -> _Grouping | None:
    """Return the groups that a column may identify; None if its values cannot be ids of groups."""
    present = np.isfinite(x)
    values, codes, counts = np.unique(x[present], return_inverse=True, return_counts=True)
    has_fractions = is_number and bool((values != np.round(values)).any())
    if has_fractions or not ENOUGH_ROWS <= values.size <= present.sum() / _ROWS_OF_GROUP:
        return None
    n_runs = 1 + int((codes[1:] != codes[:-1]).sum())
    in_blocks = n_runs <= _RUNS_PER_VALUE * values.size
    is_balanced = counts.min() == counts.max() and not is_called_time(name)
    is_id = is_called_id(name) or (in_blocks and is_balanced)
    if not (is_id or in_blocks or (not is_number and values.size >= _MANY_TEXTS)):
        return None
    group_ids = values.size + np.arange(x.size)
    group_ids[present] = codes
    return _Grouping(name, group_ids, is_id, in_blocks)


def _accuracies(variables: pd.DataFrame, codes: Integers, group_ids: Integers, rows: Integers) -> _Accuracies:
    """Measure the accuracy with rows held out at random and with whole groups held out."""
    size = modelled_rows(rows, variables.shape[1], _PART).size
    order = np.random.default_rng(0).permutation(group_ids.max() + 1)[group_ids[rows]]
    rows = rows[np.argsort(order, kind="stable")[:size]]  # whole groups; only the last group may be cut
    X, labels = ranked_columns(variables.iloc[rows]), np.unique(codes[rows], return_inverse=True)[1]
    by_rows, by_groups = held_out_hits(X, labels, rows), held_out_hits(X, labels, group_ids[rows])
    error = _standard_error(by_rows, by_groups, group_ids[rows])
    return _Accuracies(float(by_rows.mean()), float(by_groups.mean()), error)


def _standard_error(one: Bools, other: Bools, group_ids: Integers) -> float:
    """Return the standard error of a difference of accuracies, clustered by group."""
    difference = one.astype(np.float64) - other
    sums = np.bincount(group_ids, weights=difference - difference.mean())
    return float(np.sqrt((sums**2).sum())) / group_ids.size


def _finding(grouping: _Grouping, accuracies: _Accuracies | None) -> Finding:
    counts = np.unique(grouping.group_ids, return_counts=True)[1]
    description = (
        f"column {grouping.name!r} has {counts.size} different values, each in {_sizes(counts)}"
        f"{' consecutive' * grouping.in_blocks} rows"
    )
    if accuracies is not None:
        description += (
            f", and seems to identify groups: a quick model predicts {accuracies.by_rows:.1%} of the labels "
            f"right if rows are held out at random, and {accuracies.by_groups:.1%} if all rows with the same "
            "value are held out together"
        )
    return Finding(
        "likely groups",
        description,
        "use it as the group column if it identifies groups such as patients, otherwise leave it out",
        (grouping.name,),
    )


def _sizes(counts: Integers) -> str:
    if counts.min() == counts.max():
        return str(counts[0])
    return f"{counts.min()} to {counts.max()} (median {number_text(float(np.median(counts)))})"

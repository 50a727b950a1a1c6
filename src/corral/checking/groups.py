"""Columns that seem to name what several rows belong to, and what that does to the accuracy."""

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

_ROWS_OF_GROUP = 2
# Equal values stand in consecutive rows if there are hardly more runs than values.
_RUNS_PER_VALUE = 1.05
# Texts in no order may name groups if there are so many of them.
_MANY_TEXTS = 20
# A column that is not called an id names groups if accuracy falls by so much, and by so many standard errors.
_LEAST_GAP, _STANDARD_ERRORS = 0.02, 3.0
# Gaps are nearly the same if one is at least this share of the other.
_SAME_GAP = 0.75
# Candidates that are tried, and the part of the quick model's rows that each may have.
_MOST_TRIED, _PART = 3, 4


class _Candidate(NamedTuple):
    """A column that may name groups."""

    name: str
    group_ids: Integers  # (n_rows,) numbers of the groups; a row without one is a group of its own
    is_id: bool  # whether its name or its equal counts say so, without a measurement
    in_blocks: bool  # whether the rows of a group are consecutive


class _Accuracies(NamedTuple):
    """Shares of rows that get their label by a quick model."""

    by_rows: float  # if rows are held out at random
    by_groups: float  # if whole groups are
    error: float  # standard error of the difference

    @property
    def gap(self) -> float:
        return self.by_rows - self.by_groups

    @property
    def is_clear(self) -> bool:
        return self.gap >= max(_LEAST_GAP, _STANDARD_ERRORS * self.error)


def likely_groups(
    coded: pd.DataFrame,
    numeric: Collection[str],
    considered: pd.DataFrame,
    codes: Integers | None,
    rows: Integers,
) -> Iterator[Finding]:
    """Columns that name groups, with the accuracy if rows and if groups are held out.

    Parameters
    ----------
    coded : columns that may name groups.
    numeric : names of the columns of numbers.
    considered : columns that the quick model may use.
    codes : (n_rows,) numbers of the classes; None if there are none.
    rows : positions of rows that have a label, of which none is a copy.
    """
    candidates = [_candidate(name, coded[name].to_numpy(), name in numeric) for name in coded.columns]
    likely = [each for each in candidates if each is not None]
    likely.sort(key=lambda each: (not each.is_id, not each.in_blocks))
    clear = []
    for candidate in likely[:_MOST_TRIED]:
        variables = considered.drop(columns=candidate.name, errors="ignore")
        accuracies = None
        if codes is not None and variables.shape[1] and np.unique(codes[rows]).size > 1:
            accuracies = _accuracies(variables, codes, candidate.group_ids, rows)
        if candidate.is_id:
            yield _finding(candidate, accuracies)
        elif accuracies is not None and accuracies.is_clear:
            clear.append((candidate, accuracies))
    if clear:
        yield _finding(*_finest(clear))


def _finest(clear: list[tuple[_Candidate, _Accuracies]]) -> tuple[_Candidate, _Accuracies]:
    """Of columns that explain nearly the same gap the one that names most groups: others join its groups."""
    largest = max(accuracies.gap for _, accuracies in clear)
    explaining = [pair for pair in clear if pair[1].gap >= _SAME_GAP * largest]
    return max(explaining, key=lambda pair: np.unique(pair[0].group_ids).size)


def _candidate(name: str, x: Floats, is_number: bool) -> _Candidate | None:
    """What a column says about groups; None if it cannot name any."""
    present = np.isfinite(x)
    values, codes, counts = np.unique(x[present], return_inverse=True, return_counts=True)
    whole = not is_number or bool((values == np.round(values)).all())
    if not whole or not ENOUGH_ROWS <= values.size <= present.sum() / _ROWS_OF_GROUP:
        return None
    n_runs = 1 + int((codes[1:] != codes[:-1]).sum())
    in_blocks = n_runs <= _RUNS_PER_VALUE * values.size
    is_balanced = counts.min() == counts.max() and not is_called_time(name)
    is_id = is_called_id(name) or (in_blocks and is_balanced)
    if not (is_id or in_blocks or (not is_number and values.size >= _MANY_TEXTS)):
        return None
    group_ids = values.size + np.arange(x.size)
    group_ids[present] = codes
    return _Candidate(name, group_ids, is_id, in_blocks)


def _accuracies(variables: pd.DataFrame, codes: Integers, group_ids: Integers, rows: Integers) -> _Accuracies:
    """Accuracies if rows and if whole groups are held out."""
    size = modelled_rows(rows, variables.shape[1], _PART).size
    order = np.random.default_rng(0).permutation(group_ids.max() + 1)[group_ids[rows]]
    rows = rows[np.argsort(order, kind="stable")[:size]]  # whole groups, but for one
    X, labels = ranked_columns(variables.iloc[rows]), np.unique(codes[rows], return_inverse=True)[1]
    by_rows, by_groups = held_out_hits(X, labels, rows), held_out_hits(X, labels, group_ids[rows])
    error = _standard_error(by_rows, by_groups, group_ids[rows])
    return _Accuracies(float(by_rows.mean()), float(by_groups.mean()), error)


def _standard_error(one: Bools, other: Bools, group_ids: Integers) -> float:
    """Standard error of a difference of shares, where rows of a group are not independent."""
    difference = one.astype(np.float64) - other
    sums = np.bincount(group_ids, weights=difference - difference.mean())
    return float(np.sqrt((sums**2).sum())) / group_ids.size


def _finding(candidate: _Candidate, accuracies: _Accuracies | None) -> Finding:
    counts = np.unique(candidate.group_ids, return_counts=True)[1]
    found = f"column {candidate.name!r} has {counts.size} different values, each in {_sizes(counts)} rows"
    found += ", which are consecutive" if candidate.in_blocks else ""
    if accuracies is not None:
        found += (
            f", and seems to name groups: a quick model gives {accuracies.by_rows:.1%} of the rows their "
            f"label if rows are held out at random, and {accuracies.by_groups:.1%} if all rows of a value are"
        )
    return Finding(
        "likely groups", found, "name it as the group, or leave it out if it names nothing", (candidate.name,)
    )


def _sizes(counts: Integers) -> str:
    if counts.min() == counts.max():
        return str(counts[0])
    return f"{counts.min()} to {counts.max()} ({number_text(float(np.median(counts)))} in the middle)"

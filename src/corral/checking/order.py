"""The order of rows: by class, or by time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from corral.array_types import Floats, Integers
from corral.checking.findings import Finding
from corral.checking.quick_model import predicted_hits

_CALLED_TIME = re.compile(
    r"(?i:(^|[^a-z])(time|date|datetime|timestamp|year|month|week|day|hour)s?$|^(year|week|day)of)"
)

_FEWEST_ROWS = 20
# Labels come in runs if they change at most this share of the times that they would change at random.
_FEW_CHANGES = 0.5
# Rows are in order of time if nearly all steps go one way, and there are some steps.
_NEARLY_ALL = 0.99
_FEWEST_TIMES = 5
# The share of rows, the latest ones, by which a model of the earlier ones is judged.
_LAST = 0.3


def is_called_time(name: str) -> bool:
    """Whether a column has a name like 'year' or 'visit_time'."""
    return _CALLED_TIME.search(str(name)) is not None  # names may be numbers in Python


def class_order(codes: Integers) -> Iterator[Finding]:
    """Rows sorted by their labels, or whose labels come in runs."""
    if codes.size < _FEWEST_ROWS:
        return
    counts = np.bincount(codes)
    n_changes = int((codes[1:] != codes[:-1]).sum())
    expected = (codes.size - 1) * (1.0 - ((counts / codes.size) ** 2).sum())
    if n_changes == np.count_nonzero(counts) - 1:
        description = (
            "the rows are in order of their labels, so that the first rows of the file have one class"
        )
        yield Finding("class order", description, "shuffle the rows before a part of the file is used")
    elif n_changes <= _FEW_CHANGES * expected:
        yield Finding(
            "class order",
            f"labels come in runs: they change {n_changes} times from row to row, where {expected:.0f} "
            "times would be expected in random order",
            "if neighbouring rows belong together, name the column that says so as the group",
        )


def time_columns(dates: Mapping[str, Floats], numeric: Mapping[str, Floats]) -> dict[str, Floats]:
    """Columns by which rows are sorted: dates, in days, and numbers with names like 'year' or 'time'."""
    named = {name: x for name, x in numeric.items() if is_called_time(name)}
    return {name: x for name, x in (dict(dates) | named).items() if _is_sorted(x)}


def _is_sorted(x: Floats) -> bool:
    present = x[np.isfinite(x)]
    if present.size < _FEWEST_ROWS or np.unique(present).size < _FEWEST_TIMES:
        return False
    return max(_share_of_steps(x), _share_of_steps(-x)) >= _NEARLY_ALL


def _share_of_steps(x: Floats) -> float:
    """Share of the steps from row to row that do not go down."""
    return float((np.diff(x[np.isfinite(x)]) >= 0.0).mean())


def time_order(
    X: Floats | None, codes: Integers, rows: Integers, times: Mapping[str, Floats]
) -> Iterator[Finding]:
    """Rows in order of time, and how much worse later rows are predicted than rows held out at random.

    Parameters
    ----------
    X : (n, n_variables) ranks of the rows that have a label, None if no model can be made.
    codes : (n,) numbers of their classes.
    rows : (n,) their positions in the table, in order.
    times : columns by which all rows are sorted; the finding names the first.
    """
    if not times:
        return
    name = next(iter(times))
    latest_first = _share_of_steps(-times[name]) > _share_of_steps(times[name])
    description = f"the rows are in order of {name!r}" + ", the latest first" * latest_first
    place = "first" if latest_first else "last"
    if X is not None:
        held_out = np.argsort(np.nan_to_num(times[name][rows]), kind="stable")[-int(_LAST * codes.size) :]
        is_last = np.isin(np.arange(codes.size), held_out)
        by_time = predicted_hits(X, codes, is_last)[is_last].mean()
        at_random = np.random.default_rng(0).permutation(is_last)
        by_chance = predicted_hits(X, codes, at_random)[at_random].mean()
        description += (
            f"; a quick model gives {by_chance:.1%} of rows held out at random their label, and "
            f"{by_time:.1%} of the {place} {_LAST:.0%} of the rows if it is learnt from earlier times"
        )
    advice = f"if new rows will be later ones, keep the {place} rows apart and judge the model by them"
    yield Finding("time order", description, advice, (name,))

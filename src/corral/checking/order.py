"""Find rows that are sorted by class or by time."""

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
# Labels come in runs if they change from row to row at most this share as often as in random order.
_FEW_CHANGES = 0.5
# Rows are sorted by time if this share of the steps from row to row does not go back, and there are at least
# so many different times.
_NEARLY_ALL = 0.99
_FEWEST_TIMES = 5
# The share of the rows, the latest ones, that a model fitted to the earlier rows predicts.
_LAST = 0.3


def is_called_time(name: str) -> bool:
    """Whether a column has a name like 'year' or 'visit_time'."""
    return _CALLED_TIME.search(str(name)) is not None  # names may be numbers in Python


def class_order(codes: Integers) -> Iterator[Finding]:
    """Yield a finding if rows are sorted by their labels, or if labels come in runs."""
    if codes.size < _FEWEST_ROWS:
        return
    counts = np.bincount(codes)
    n_changes = int((codes[1:] != codes[:-1]).sum())
    expected = (codes.size - 1) * (1.0 - ((counts / codes.size) ** 2).sum())
    if n_changes == np.count_nonzero(counts) - 1:
        description = (
            "the rows are sorted by their labels, so the first rows of the file are all of one class"
        )
        yield Finding("class order", description, "shuffle the rows before you use a part of the file")
    elif n_changes <= _FEW_CHANGES * expected:
        yield Finding(
            "class order",
            f"labels come in runs: the label changes {n_changes} times from row to row; {expected:.0f} "
            "changes "
            "would be expected in random order",
            "if neighboring rows belong together, use the column that identifies them as the group column",
        )


def time_columns(dates: Mapping[str, Floats], numeric: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the columns by which rows are sorted: dates, as days, and numbers with a name like 'year'."""
    named = {name: x for name, x in numeric.items() if is_called_time(name)}
    return {name: x for name, x in (dict(dates) | named).items() if _is_sorted(x)}


def _is_sorted(x: Floats) -> bool:
    present = x[np.isfinite(x)]
    if present.size < _FEWEST_ROWS or np.unique(present).size < _FEWEST_TIMES:
        return False
    return max(_share_of_steps(x), _share_of_steps(-x)) >= _NEARLY_ALL


def _share_of_steps(x: Floats) -> float:
    """Return the share of the steps from row to row that do not go down."""
    return float((np.diff(x[np.isfinite(x)]) >= 0.0).mean())


def time_order(
    X: Floats | None, codes: Integers, rows: Integers, times: Mapping[str, Floats]
) -> Iterator[Finding]:
    """Yield a finding if rows are sorted by time, with the accuracies for later rows and for random rows.

    Parameters
    ----------
    X : (n, n_variables) ranks of the variables in rows that have a label; None if no model can be fitted.
    codes : (n,) index of the class of each of these rows.
    rows : (n,) positions of these rows in the table, ascending.
    times : columns by which all rows are sorted, by name; only the first column is reported.
    """
    if not times:
        return
    name = next(iter(times))
    latest_first = _share_of_steps(-times[name]) > _share_of_steps(times[name])
    description = f"the rows are sorted by {name!r}" + ", the latest first" * latest_first
    place = "first" if latest_first else "last"
    if X is not None:
        held_out = np.argsort(np.nan_to_num(times[name][rows]), kind="stable")[-int(_LAST * codes.size) :]
        is_last = np.isin(np.arange(codes.size), held_out)
        by_time = predicted_hits(X, codes, is_last)[is_last].mean()
        at_random = np.random.default_rng(0).permutation(is_last)
        by_chance = predicted_hits(X, codes, at_random)[at_random].mean()
        description += (
            f"; a quick model predicts {by_chance:.1%} of the labels right in rows held out at random, and "
            f"{by_time:.1%} in the latest {_LAST:.0%} of the rows if it is fitted to the earlier rows"
        )
    advice = f"if new rows will be later, hold out the {place} rows and score the model on them"
    yield Finding("time order", description, advice, (name,))

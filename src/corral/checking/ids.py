"""Find columns of ids that are unique or nearly unique. Module `groups` finds ids that repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from corral.array_types import Floats
from corral.checking.columns import Content
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.written_numbers import numbers_as_written

if TYPE_CHECKING:
    import pandas as pd

_NUMBER = r"id|index|key|nr|no|number"
_THING = (
    "patient|subject|person|participant|respondent|individual|animal|specimen|sample|student|customer|client|"
    "user|account|record|household|case"
)
_CALLED_ID = re.compile(rf"(?i:(^|[^a-z])({_NUMBER}|({_THING})([^a-z]?({_NUMBER}|name|code))?))$|[a-z]I[dD]$")

# Whole numbers without a repeated value are ids if their range is less than _RANGE_PER_ROW times the number
# of rows: among so many measurements in so narrow a range some would be equal. This needs _ROWS_TO_NUMBER
# rows.
_RANGE_PER_ROW = 2
_ROWS_TO_NUMBER = 40

# Ids are nearly unique if there are more than this number of different ids per row.
_NEARLY_UNIQUE = 0.5

_ADVICE = "if it identifies rows, pass it as the id, or leave it out"


def is_called_id(name: str) -> bool:
    """Whether a column has a name like 'patient', 'sample_no' or 'visitID'."""
    return _CALLED_ID.search(str(name)) is not None  # names may be numbers in Python


def identifiers(
    variables: pd.DataFrame, contents: Mapping[str, Content], numeric: Mapping[str, Floats]
) -> Iterator[Finding]:
    """Yield findings about columns with a different text or whole number in every row or nearly every row."""
    for name, column in variables.items():
        n_values, n_present = column.nunique(), int(column.notna().sum())
        if n_values <= _NEARLY_UNIQUE * n_present:
            continue
        if name in numeric:
            yield from _numbers_as_ids(name, numeric[name], n_values)
        elif contents[name].kind != "slips" and n_values >= ENOUGH_ROWS:
            yield from _texts_as_ids(name, column, n_values)


def _texts_as_ids(name: str, column: pd.Series[Any], n_values: int) -> Iterator[Finding]:
    if n_values < len(column):
        if is_called_id(name):
            yield _nearly_unique(name, n_values, "texts", len(column))
    elif numbers_as_written(column) is None:
        description = f"column {name!r} has a different text in every row, as ids have"
        yield Finding("identifier", description, _ADVICE, (name,))


def _nearly_unique(name: str, n_values: int, what: str, n_rows: int) -> Finding:
    description = f"column {name!r} has {n_values} different {what} in {n_rows} rows, as ids have"
    advice = "if rows with the same id belong together, use it as the group column, otherwise leave it out"
    return Finding("nearly unique ids", description, advice, (name,))


def _numbers_as_ids(name: str, x: Floats, n_values: int) -> Iterator[Finding]:
    present = x[np.isfinite(x)]
    if (present != np.round(present)).any():
        return
    if n_values < x.size:
        if is_called_id(name) and n_values >= ENOUGH_ROWS:
            yield _nearly_unique(name, n_values, "whole numbers", x.size)
        return
    steps = np.diff(x)
    in_order = x.size >= ENOUGH_ROWS and bool((steps > 0.0).all() or (steps < 0.0).all())
    is_dense = x.size >= _ROWS_TO_NUMBER and bool(np.ptp(x) < _RANGE_PER_ROW * x.size)
    if in_order or is_dense or is_called_id(name):
        description = f"column {name!r} has a different whole number in every row" + ", in order" * in_order
        yield Finding("identifier", description, _ADVICE, (name,))

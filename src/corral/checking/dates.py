"""Columns of dates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from corral.checking.findings import Finding
from corral.data.date_variables import varying_parts
from corral.data.dates import Dates, parse_dates
from corral.sentences.numbers import MOST_LISTED, counted
from corral.sentences.tables import variables_of_dates

if TYPE_CHECKING:
    import pandas as pd


def dated_columns(variables: pd.DataFrame, categorical: Collection[str]) -> dict[str, Dates]:
    """Dates in the columns that hold dates, as text or as such."""
    names = [
        name for name in variables.columns if name not in categorical and _may_hold_dates(variables[name])
    ]
    parsed = {name: parse_dates(variables[name]) for name in names}
    return {name: dates for name, dates in parsed.items() if dates is not None}


def _may_hold_dates(column: pd.Series[Any]) -> bool:
    cells = column.cat.categories if hasattr(column.dtype, "categories") else column
    return cells.dtype.kind not in "biufcm"


def date_findings(variables: pd.DataFrame, columns: Mapping[str, Dates]) -> Iterator[Finding]:
    """Columns of dates, with a note if day and month may be confused or if some texts are no dates."""
    for name, dates in columns.items():
        column = variables[name]
        row = column.index[~(column.isna().to_numpy() | dates.unreadable)][0]
        description = f"column {name!r} holds dates, such as '{str(column[row]).strip()}' in row {row}"
        if dates.form.ambiguous:
            description += ", where either number may be the month"
        wrong = column[dates.unreadable]
        if len(wrong):
            description += (
                f", but no date in {counted(len(wrong), 'row')}, such as {str(wrong.iloc[0])[:40]!r} in row "
                f"{wrong.index[0]}"
            )
        made = variables_of_dates(varying_parts(dates.times))
        yield Finding(
            "dates",
            description,
            f"a fit makes {made} of it; leave it out if new rows have later dates",
            (name,),
            tuple(wrong.index[:MOST_LISTED]),
        )

"""Find columns of dates."""

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
    """Return the dates in each column that holds dates, as date values or as text."""
    names = [
        name for name in variables.columns if name not in categorical and _may_hold_dates(variables[name])
    ]
    parsed = {name: parse_dates(variables[name]) for name in names}
    return {name: dates for name, dates in parsed.items() if dates is not None}


def _may_hold_dates(column: pd.Series[Any]) -> bool:
    cells = column.cat.categories if hasattr(column.dtype, "categories") else column
    return cells.dtype.kind not in "biufcm"


def date_findings(variables: pd.DataFrame, columns: Mapping[str, Dates]) -> Iterator[Finding]:
    """Yield a finding about each column of dates, with ambiguous months and texts that are not dates."""
    for name, dates in columns.items():
        column = variables[name]
        row = column.index[~(column.isna().to_numpy() | dates.unreadable)][0]
        description = f"column {name!r} holds dates, such as '{str(column[row]).strip()}' in row {row}"
        if dates.form.ambiguous:
            description += ", where either the first or the second number may be the month"
        wrong = column[dates.unreadable]
        if len(wrong):
            description += (
                f", and text that is not a date in {counted(len(wrong), 'row')}, such as "
                f"{str(wrong.iloc[0])[:40]!r} in row {wrong.index[0]}"
            )
        made = variables_of_dates(varying_parts(dates.times))
        yield Finding(
            "dates",
            description,
            f"a fit replaces the column with {made}; leave the column out if new rows have later dates",
            (name,),
            tuple(wrong.index[:MOST_LISTED]),
        )

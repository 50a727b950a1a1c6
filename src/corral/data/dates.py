"""Dates and times that are written as text.

All dates of a column have the same form: year, month and day in one order, with or without a time of day. If
each of the first two numbers may be the month in all texts, as in 05/01/2020, the form is ambiguous. Then the
first number is read as the month; but if points separate the numbers, as in 05.01.2020, the first number is
read as the day. At most one in twenty distinct texts may have another form or not be a date.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Order = Literal["year month day", "day month year", "month day year"]
Times = NDArray[np.datetime64]

# A column has dates if at most one in this number of its distinct texts is not a date.
_ONE_UNREADABLE_IN = 20

# A year of two digits is in the last century if it is at least this number, as in POSIX.
_LAST_CENTURY = 69

_MISSING = ("", "None", "nan", "NaN", "NaT", "<NA>")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = rf"(?P<name>(?:{'|'.join(_MONTHS)})[a-z]*\.?)"
_CLOCK = (
    r"(?:(?:[T ]|, ?)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    r" ?(?P<half>[ap]\.?m\.?)? ?(?:Z|UTC|[+-]\d\d:?\d\d)?)?"
)
_YEAR = r"(?P<year>[12]\d{3}|\d\d)"
_PATTERNS: dict[str, re.Pattern[str]] = {
    kind: re.compile(pattern + _CLOCK, re.IGNORECASE)
    for kind, pattern in {
        "year first": r"(?P<year>[12]\d{3})(?P<mark>[-/.])(?P<one>\d{1,2})(?P=mark)(?P<two>\d{1,2})",
        "year last": rf"(?P<one>\d{{1,2}})(?P<mark>[-/.])(?P<two>\d{{1,2}})(?P=mark){_YEAR}",
        "day, name": rf"(?P<one>\d{{1,2}})(?P<mark>[-/. ]){_NAME}(?P=mark),?{_YEAR}",
        "name, day": rf"{_NAME}(?P<mark>[-/. ])(?P<one>\d{{1,2}})(?:, ?|(?P=mark)){_YEAR}",
    }.items()
}


@dataclass(frozen=True)
class DateForm:
    """The form in which the dates of a column are written."""

    kind: str  # key of `_PATTERNS`: the position of the year, and whether months have names
    order: Order  # order of year, month and day
    ambiguous: bool = False  # whether the texts can also be read with day and month exchanged


YEAR_FIRST = DateForm("year first", "year month day")


class Dates(NamedTuple):
    """The dates of a column."""

    times: Times  # (n,) local times, datetime64[s]; NaT if a text is missing or not a date
    form: DateForm
    unreadable: NDArray[np.bool_]  # (n,) whether a text is neither missing nor a date


def parse_dates(texts: Iterable[Any]) -> Dates | None:
    """Read a column of dates; None if too few texts are dates of one form.

    Parameters
    ----------
    texts : cells of the column. Missing values are None, NaN or an empty text. Other cells that are not text,
        such as date objects, are converted by `str`.
    """
    cells, values = _different(texts)
    for kind, pattern in _PATTERNS.items():
        matches = [pattern.fullmatch(value) for value in values]
        readable = [match for match in matches if match is not None]
        if not readable or _ONE_UNREADABLE_IN * (len(values) - len(readable)) > len(values):
            continue
        for form in _forms(kind, readable):
            times = _times(values, form)
            if _ONE_UNREADABLE_IN * np.isnat(times).sum() <= len(values):
                return _column_dates(cells, times, form)
    return None


def read_dates(texts: Iterable[Any], form: DateForm) -> Dates:
    """Read dates in a form that was found in training cells; texts with the year first are read, too.

    The time of a text does not depend on the other texts.
    """
    cells, values = _different(texts)
    return _column_dates(cells, _times(values, form), form)


def _different(texts: Iterable[Any]) -> tuple[list[int], list[str]]:
    """Return the different texts, and for each cell the index of its text; -1 for a missing cell.

    The indices are returned first.
    """
    positions: dict[str, int] = dict.fromkeys(_MISSING, -1)
    values: list[str] = []
    cells: list[int] = []
    for cell in texts:
        text = str(cell).strip()
        if text not in positions:
            positions[text] = len(values)
            values.append(text)
        cells.append(positions[text])
    return cells, values


def _column_dates(cells: list[int], times: Times, form: DateForm) -> Dates:
    """Return the dates of all cells from the times of the distinct texts; see `_different`."""
    positions = np.array(cells, dtype=np.int64)
    column = np.append(times, np.datetime64("NaT", "s"))[positions]
    return Dates(column, form, np.isnat(column) & (positions >= 0))


def _forms(kind: str, matches: list[re.Match[str]]) -> list[DateForm]:
    """Return the forms in which texts of a kind can be read, the preferred form first."""
    if kind == "year first":
        return [YEAR_FIRST]
    if kind != "year last":
        return [DateForm(kind, "day month year" if kind == "day, name" else "month day year")]
    orders: list[Order] = ["month day year", "day month year"]
    if matches[0]["mark"] == ".":
        orders.reverse()
    limit = len(matches) / _ONE_UNREADABLE_IN
    may_be = {
        order: sum(int(match[part]) > len(_MONTHS) for match in matches) <= limit
        for order, part in (("month day year", "one"), ("day month year", "two"))
    }
    return [DateForm(kind, order, all(may_be.values())) for order in orders if may_be[order]]


def _times(values: list[str], form: DateForm) -> Times:
    """Return the times of texts in a form or with the year first, which is never ambiguous; otherwise NaT."""
    return np.array([_time(text, form) or _time(text, YEAR_FIRST) for text in values], dtype="datetime64[s]")


def _time(text: str, form: DateForm) -> datetime.datetime | None:
    """Return the time of a text; None if it has another form, or if the day or time does not exist."""
    match = _PATTERNS[form.kind].fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 1900 if year >= _LAST_CENTURY else 2000
    if "name" in parts:
        day, month = int(parts["one"]), _MONTHS.index(parts["name"][:3].lower()) + 1
    elif form.order == "day month year":
        day, month = int(parts["one"]), int(parts["two"])
    else:
        month, day = int(parts["one"]), int(parts["two"])
    hour, minute, second = (int(parts[part] or 0) for part in ("hour", "minute", "second"))
    if parts["half"]:
        hour = hour % 12 + 12 * (parts["half"][0] in "pP")
    try:
        return datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None

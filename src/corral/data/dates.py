"""Dates and times that are written as text.

A column is read in one form: year, month and day in one order, with or without a time of day. Where each of
the first two numbers may be a month in all texts, as in 05/01/2020, the form is ambiguous. Then the month is
read first; only where points separate the numbers, as in 05.01.2020, the day is.
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

# A column holds dates if at most one in so many of its different texts is none.
_ONE_UNREADABLE_IN = 20

# Two digits from here on are years of the last century, as in POSIX.
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
    """How the dates of a column are written."""

    kind: str  # one of the patterns: where the year stands, and whether months have names
    order: Order
    ambiguous: bool = False  # whether day and month may be the other way round in every text


YEAR_FIRST = DateForm("year first", "year month day")


class Dates(NamedTuple):
    """The dates of a column."""

    times: Times  # (n,) datetime64[s] as the clock showed, NaT where a text is missing or no date
    form: DateForm
    unreadable: NDArray[np.bool_]  # (n,) texts that are neither missing nor dates


def parse_dates(texts: Iterable[Any]) -> Dates | None:
    """Read a column of dates; None if it holds none, or if they are written in several forms.

    Parameters
    ----------
    texts : cells of a column, missing ones as None, NaN or an empty text. Cells that are no text, such as
        dates of Python, are read as `str` writes them.
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
    """Read a column whose form was learnt from a training table; texts with the year first are read, too.

    What a text means does not depend on the other texts.
    """
    cells, values = _different(texts)
    return _column_dates(cells, _times(values, form), form)


def _different(texts: Iterable[Any]) -> tuple[list[int], list[str]]:
    """For each cell the position of its text among the different ones, -1 if it is missing, and these."""
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
    """Times of all cells; a missing one has the position -1, where NaT is added."""
    positions = np.array(cells, dtype=np.int64)
    column = np.append(times, np.datetime64("NaT", "s"))[positions]
    return Dates(column, form, np.isnat(column) & (positions >= 0))


def _forms(kind: str, matches: list[re.Match[str]]) -> list[DateForm]:
    """Forms that texts may have, the likely one first."""
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
    """What texts mean in a form or with the year first, which no other form is confused with; else NaT."""
    return np.array([_time(text, form) or _time(text, YEAR_FIRST) for text in values], dtype="datetime64[s]")


def _time(text: str, form: DateForm) -> datetime.datetime | None:
    """What a text means, None if it is written otherwise, or if there is no such day or time."""
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

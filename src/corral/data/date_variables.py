"""Conversion of date columns to variables: days since 2000, month, weekday and hour.

A column keeps the variables that vary in the training rows.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats
from corral.data.dates import YEAR_FIRST, DateForm, Times, parse_dates, read_dates

Part = Literal["days since 2000", "month", "weekday", "hour"]

_PARTS: tuple[Part, ...] = ("days since 2000", "month", "weekday", "hour")

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

# Days are counted from a fixed date, so that the variable does not depend on the training rows.
_FIRST_DAY = np.datetime64("2000-01-01", "s")
_FIRST_MONDAY = np.datetime64("2000-01-03", "D")


@dataclass(frozen=True)
class DateColumn:
    """Conversion of one column of dates to variables."""

    position: int  # index of the column in the table
    # form of dates that are written as text; None if at least one training cell is a date object
    form: DateForm | None
    parts: Sequence[Part]  # the variables, at least one

    def validate(self) -> None:
        """Raise ValueError if the position is negative or if parts are missing or repeated."""
        if self.position < 0 or not self.parts or len(set(self.parts)) != len(self.parts):
            raise ValueError(
                "a date column has a negative position, or its variables are missing or repeated"
            )

    @classmethod
    def learn(cls, position: int, cells: Sequence[Any]) -> Self | None:
        """Find the variables of a column of dates; None if the column does not contain dates.

        Dates may be date objects or text.
        """
        if any(map(is_date, cells)):
            return cls(position, None, varying_parts(_read(cells, YEAR_FIRST)[0]))
        dates = parse_dates(cells)
        return None if dates is None else cls(position, dates.form, varying_parts(dates.times))

    @property
    def assumed_order(self) -> str:
        """Order of day and month in texts, if the other order is also possible; otherwise empty."""
        return self.form.order if self.form is not None and self.form.ambiguous else ""

    def names(self, column: str) -> list[str]:
        """Return the names of the variables that a column with this name becomes."""
        return [f"{column} ({part})" for part in self.parts]

    def times(self, column: str, cells: Sequence[Any]) -> tuple[Times, Counter[str]]:
        """Return the times of the cells, and the texts that are not dates with their numbers of cells.

        Such texts become missing values. If a training cell was a date object, texts must have the year
        first, because the order of day and month is unknown; otherwise ValueError is raised.
        """
        times, unreadable = _read(cells, self.form or YEAR_FIRST)
        if self.form is None and unreadable:
            opening = "mixes dates and text" if any(map(is_date, cells)) else "held dates in fit"
            raise ValueError(
                f"Column {column!r} {opening}: {str(cells[unreadable[0]])[:40]!r} is neither a date nor "
                "written like 2020-12-31. Convert the column to dates."
            )
        return times, Counter(str(cells[row]) for row in unreadable)


def is_date(value: Any) -> bool:
    """Return whether a value is a date object, with or without a time of day; NaT is not a date."""
    if isinstance(value, np.datetime64):
        return not np.isnat(value)
    return isinstance(value, datetime.date) and type(value).__name__ != "NaTType"


def _read(cells: Sequence[Any], form: DateForm) -> tuple[Times, list[int]]:
    """Return the times of date objects and texts, and the positions of other cells that are not missing."""
    written = read_dates([None if is_date(cell) else cell for cell in cells], form)
    times = as_times(cells)
    return np.where(np.isnat(times), written.times, times), np.flatnonzero(written.unreadable).tolist()


def varying_parts(times: Times) -> list[Part]:
    """Return the variables that vary; if none varies, return the days."""
    times = times[~np.isnat(times)]
    parts = [part for part in _PARTS if len(set(part_of_dates(part, times).tolist())) > 1]
    return parts or [*_PARTS[:1]]


def as_times(cells: Sequence[Any]) -> Times:
    """Return date objects as local times without time zone; NaT for other cells."""
    values = [cell if is_date(cell) else None for cell in cells]
    local = [v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for v in values]
    return np.array(local, dtype="datetime64[s]")


def part_of_dates(part: Part, times: Times) -> NDArray[Any]:
    """Compute one variable of dates: names for weekdays, otherwise floats; missing if the date is missing."""
    missing = np.isnat(times)
    filled = np.where(missing, _FIRST_DAY, times)
    if part != "weekday":
        return np.where(missing, np.nan, _numbers(part, filled))
    days = (filled.astype("datetime64[D]") - _FIRST_MONDAY).astype(np.int64) % 7
    names: NDArray[Any] = np.array([*WEEKDAYS, None], dtype=object)[np.where(missing, -1, days)]
    return names


def _numbers(part: Part, times: Times) -> Floats:
    """Return days since 2000 with fractions, months 1 to 12, or hours 0 to 23."""
    if part == "days since 2000":
        numbers: Floats = (times - _FIRST_DAY).astype(np.float64) / 86_400.0
    elif part == "month":
        numbers = (times.astype("datetime64[M]").astype(np.int64) % 12 + 1).astype(np.float64)
    else:
        numbers = np.floor((times - times.astype("datetime64[D]")).astype(np.float64) / 3600.0)
    return numbers

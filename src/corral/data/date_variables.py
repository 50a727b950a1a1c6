"""Variables of dates: days, month, weekday and hour, of which those are kept that vary in training."""

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

# Days are counted from here: what a variable means must not depend on the rows of a fit.
_FIRST_DAY = np.datetime64("2000-01-01", "s")
_FIRST_MONDAY = np.datetime64("2000-01-03", "D")


@dataclass(frozen=True)
class DateColumn:
    """How a column of dates becomes variables."""

    position: int  # of the column in the table
    form: DateForm | None  # how training rows write dates; None if some of their cells are dates
    parts: Sequence[Part]  # the variables, at least one

    def validate(self) -> None:
        """Refuse a negative position, and parts that are missing or repeated."""
        if self.position < 0 or not self.parts or len(set(self.parts)) != len(self.parts):
            raise ValueError("the variables of a date do not fit one column")

    @classmethod
    def learn(cls, position: int, cells: Sequence[Any]) -> Self | None:
        """Find the variables of a column of dates, as such or as text; None if it holds other cells."""
        if any(map(is_date, cells)):
            return cls(position, None, varying_parts(_read(cells, YEAR_FIRST)[0]))
        dates = parse_dates(cells)
        return None if dates is None else cls(position, dates.form, varying_parts(dates.times))

    @property
    def assumed_order(self) -> str:
        """The order in which texts were read, where they may be read in another; else empty."""
        return self.form.order if self.form is not None and self.form.ambiguous else ""

    def names(self, column: str) -> list[str]:
        """Names of the variables of a column."""
        return [f"{column} ({part})" for part in self.parts]

    def times(self, column: str, cells: Sequence[Any]) -> tuple[Times, Counter[str]]:
        """Times of the cells of a column, and counts of texts that are no dates and count as missing.

        If cells of training rows are dates, texts must have the year first: the order of other texts is
        unknown.
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
    """Whether a value is a date, with or without a time of day; NaT is no date."""
    if isinstance(value, np.datetime64):
        return not np.isnat(value)
    return isinstance(value, datetime.date) and type(value).__name__ != "NaTType"


def _read(cells: Sequence[Any], form: DateForm) -> tuple[Times, list[int]]:
    """Times of dates and of texts in a form, and positions of cells that are neither and not missing."""
    written = read_dates([None if is_date(cell) else cell for cell in cells], form)
    times = as_times(cells)
    return np.where(np.isnat(times), written.times, times), np.flatnonzero(written.unreadable).tolist()


def varying_parts(times: Times) -> list[Part]:
    """The variables that dates become: all that vary, or days if none does."""
    times = times[~np.isnat(times)]
    parts = [part for part in _PARTS if len(set(part_of_dates(part, times).tolist())) > 1]
    return parts or [*_PARTS[:1]]


def as_times(cells: Sequence[Any]) -> Times:
    """Dates in local time, without time zones; NaT where a cell is no date."""
    values = [cell if is_date(cell) else None for cell in cells]
    local = [v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for v in values]
    return np.array(local, dtype="datetime64[s]")


def part_of_dates(part: Part, times: Times) -> NDArray[Any]:
    """One variable of dates, missing where a date is: names of weekdays, else numbers."""
    missing = np.isnat(times)
    filled = np.where(missing, _FIRST_DAY, times)
    if part != "weekday":
        return np.where(missing, np.nan, _numbers(part, filled))
    days = (filled.astype("datetime64[D]") - _FIRST_MONDAY).astype(np.int64) % 7
    names: NDArray[Any] = np.array([*WEEKDAYS, None], dtype=object)[np.where(missing, -1, days)]
    return names


def _numbers(part: Part, times: Times) -> Floats:
    """Days with their fraction, months from 1 on, or hours of the day."""
    if part == "days since 2000":
        numbers: Floats = (times - _FIRST_DAY).astype(np.float64) / 86_400.0
    elif part == "month":
        numbers = (times.astype("datetime64[M]").astype(np.int64) % 12 + 1).astype(np.float64)
    else:
        numbers = np.floor((times - times.astype("datetime64[D]")).astype(np.float64) / 3600.0)
    return numbers

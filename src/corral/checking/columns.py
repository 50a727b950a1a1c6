"""Mistakes in single columns: those that are empty, constant or names, odd texts, levels and numbers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator, Mapping
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corral.array_types import Bools, Floats
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.labels import ALIKE, alike
from corral.checking.written_numbers import numbers_as_written
from corral.data.date_variables import is_date
from corral.estimators.encoding import are_slips
from corral.sentences.numbers import MOST_LISTED, counted, exact_text, listed, number_text

if TYPE_CHECKING:
    import pandas as pd

_CALLED_ID = re.compile(r"(?i:(^|[^a-z])(id|index|key|nr|no|number))$|[a-z]I[dD]$")

# What stands for a missing number in files of programs that have no other word for it.
_SENTINEL = re.compile(r"-1|-9|-?9{2,}")


def numbers_in(column: pd.Series[Any]) -> Floats:
    """A column as floats, NaN where there is none."""
    import pandas as pd

    if column.dtype.kind not in "biuf":
        # As text, or dates would become numbers; yes and no are numbers.
        column = column.map(lambda value: float(value) if isinstance(value, bool) else str(value))
        column = pd.to_numeric(column, errors="coerce")
    numbers: Floats = column.to_numpy(np.float64, na_value=np.nan)
    return numbers


class Content(NamedTuple):
    """What the cells of a column are, where texts that can be read as numbers are numbers."""

    # "number"; "levels"; "slips", numbers but for a few cells; or "strange", dates, lists and the like
    kind: str
    numbers: Floats  # (n_rows,) numbers, NaN where there is none
    # (n_rows,) which cells are neither missing nor finite numbers; in a strange column, nor texts
    wrong: Bools

    @property
    def is_numeric(self) -> bool:
        """Whether all cells are numbers, yes or no, or missing."""
        return not self.wrong.any() and bool(np.isfinite(self.numbers).any())


def content_of(column: pd.Series[Any]) -> Content:
    """Decide what a column of a file holds, as estimators decide it."""
    known = column.notna().to_numpy()
    if hasattr(column.dtype, "categories"):
        return Content("levels", np.full(len(column), np.nan), known)
    numbers = numbers_in(column)
    wrong = ~np.isfinite(numbers) & known
    if column.dtype.kind in "mM":
        return Content("strange", numbers, wrong)
    if are_slips(int(wrong.sum()), int(known.sum())):
        return Content("slips", numbers, wrong)
    if column.dtype == object:
        taken = (str, bool, np.bool_, Number)
        strange = known & np.array([not isinstance(value, taken) for value in column], dtype=np.bool_)
        if strange.any():
            return Content("strange", numbers, strange)
    are_truths = column.dtype.kind == "b" or all(isinstance(value, bool) for value in column[known])
    return Content("levels" if wrong.any() or are_truths else "number", numbers, wrong)


def is_time(value: Any) -> bool:
    """Whether a value is a date, a time of day or a span of time."""
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta)


def neither_numbers_nor_text(
    columns: pd.DataFrame, contents: Mapping[str, Content], categorical: Collection[str]
) -> Iterator[Finding]:
    """Columns that no fit takes: of times without a date, unless they are levels, of lists and the like."""
    for name in columns.columns:
        if contents[name].kind != "strange":
            continue
        held = columns[name][contents[name].wrong]
        row, shown = held.index[0], repr(str(held.iloc[0])[:40])
        if not is_time(held.iloc[0]):
            found = f"column {name!r} holds {shown} in row {row}, which is neither a number nor text"
            yield Finding("neither numbers nor text", found, "leave it out", (name,), (row,))
        elif name not in categorical and not is_date(held.iloc[0]):
            found = f"column {name!r} holds times, which are not taken, such as {shown} in row {row}"
            advice = "leave it out, or write a number in its place, such as hours"
            yield Finding("times", found, advice, (name,), (row,))


def mostly_empty(variables: pd.DataFrame) -> Iterator[Finding]:
    """Columns of which more than half of the values are missing."""
    counts = variables.isna().sum()
    mostly = counts[2 * counts > len(variables)]
    if len(mostly):
        shown = listed([f"{name!r} ({n})" for name, n in mostly.items()], str)
        yield Finding(
            "mostly empty",
            f"more than half of {counted(len(variables), 'value')} are missing in "
            f"{counted(len(mostly), 'column')}: {shown}",
            _leave_out(mostly),
            tuple(mostly.index),
        )


def _leave_out(columns: Collection[Any]) -> str:
    return "leave it out" if len(columns) == 1 else "leave them out"


def identifiers(
    variables: pd.DataFrame, contents: Mapping[str, Content], numeric: Mapping[str, Floats]
) -> Iterator[Finding]:
    """Columns that seem to name rows: another text or whole number in each of them."""
    for name, column in variables.items():
        if not (column.notna().all() and column.is_unique):
            continue
        if name in numeric:
            steps = np.diff(numeric[name])
            in_order = len(column) >= ENOUGH_ROWS and bool((steps > 0.0).all() or (steps < 0.0).all())
            if (numeric[name] == np.round(numeric[name])).all() and (in_order or _CALLED_ID.search(name)):
                found = f"column {name!r} holds another whole number in every row" + ", in order" * in_order
                yield Finding("identifier", found, "if it names rows, say so, or leave it out", (name,))
        elif (
            len(column) >= ENOUGH_ROWS
            and contents[name].kind != "slips"
            and numbers_as_written(column) is None
        ):
            found = f"column {name!r} holds another text in every row, as names of rows do"
            yield Finding("identifier", found, "say that it names rows, or leave it out", (name,))


def text_among_numbers(columns: pd.DataFrame, contents: Mapping[str, Content]) -> Iterator[Finding]:
    """Columns that would be numeric but for the text of a few rows."""
    for name in columns.columns:
        if contents[name].kind != "slips":
            continue
        held = columns[name][contents[name].wrong].astype(str)
        row, text = held.index[0], held.iloc[0]
        rest = f", and there is no number in {counted(len(held) - 1, 'more row')}" if len(held) > 1 else ""
        is_one = held.nunique() == 1
        yield Finding(
            "text among numbers",
            f"column {name!r} would be numeric, but row {row} holds {text[:40]!r}{rest}",
            f"mend it, or say that {text[:40]!r} stands for a missing value" if is_one else "mend them",
            (name,),
            tuple(held.index[:MOST_LISTED]),
            (text,) if is_one else (),
        )


def odd_levels(columns: pd.DataFrame, contents: Mapping[str, Content]) -> Iterator[Finding]:
    """Levels that may be one, and columns of so many levels that they are rather remarks."""
    for name in columns.columns:
        if contents[name].kind == "slips":
            continue
        known = columns[name].dropna().astype(str)
        levels = sorted(known.unique().tolist())
        shown = alike(levels)
        if shown:
            found = f"levels of column {name!r} that {ALIKE} are levels of their own: {shown}"
            yield Finding("levels alike", found, "write each level in one way", (name,))
        if ENOUGH_ROWS <= 0.5 * len(known) < len(levels):
            yield Finding(
                "many levels",
                f"column {name!r} holds {len(levels)} different texts in {counted(len(known), 'row')}, so "
                "that most of a new table's will be unknown",
                "leave it out, or make a few levels of them",
                (name,),
            )


def constants(variables: pd.DataFrame) -> Iterator[Finding]:
    """Columns that hold one value in every row."""
    values = {name: column.dropna().unique() for name, column in variables.items()}
    constant = {name: of_column[0] for name, of_column in values.items() if len(of_column) == 1}
    if constant:
        said = [f"column {name!r} holds {_value(value)}" for name, value in constant.items()]
        shown = listed(said, str, rest=" columns are constant")
        found = f"{shown} in every row, which tells nothing"
        yield Finding("constant", found, _leave_out(constant), tuple(constant))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:40])
    return exact_text(float(value)) if isinstance(value, int | float | np.number) else str(value)


def sentinels(variables: pd.DataFrame, numeric: Mapping[str, Floats]) -> Iterator[Finding]:
    """Numbers like -999, which seem to stand for missing values."""
    for name, x in numeric.items():
        finite = x[np.isfinite(x)]
        values, counts = np.unique(finite, return_counts=True)
        for end, side, beside in ((0, "below", 1), (-1, "above", -2)):
            value, n = float(values[end]), int(counts[end])
            if _is_sentinel(value, n, finite[finite != value]):
                text = number_text(value)
                yield Finding(
                    "sentinel",
                    f"column {name!r} holds {text} in {counted(n, 'row')} and nothing else {side} "
                    f"{exact_text(values[beside])}",
                    f"say that {text} stands for a missing value",
                    (name,),
                    tuple(variables.index[x == value][:MOST_LISTED]),
                    (text,),
                )


def _is_sentinel(value: float, n: int, rest: Floats) -> bool:
    """Whether the first or last of a column's values is written like a sentinel, and is far from the rest."""
    if not _SENTINEL.fullmatch(f"{value:.17g}") or (n < 2 and abs(value) < 999):
        return False
    others = np.unique(rest)
    if others.size < 3:
        return False
    spread = float(np.subtract(*np.quantile(rest, [0.75, 0.25])))
    gap = float(np.abs(others - value).min())
    if value in (-1.0, -9.0):  # the only negative number, of a column that seems to have none
        return bool(others.size >= ENOUGH_ROWS and gap > max(0.25 * spread, abs(value)))
    return gap > max(spread, 0.25 * abs(value))

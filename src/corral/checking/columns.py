"""Mistakes in single columns: those that are empty, constant or names, odd texts, levels and numbers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.labels import alike
from corral.checking.written_numbers import numbers_as_written
from corral.estimators.encoding import are_slips
from corral.sentences import MOST_LISTED, counted, exact_text, listed, number_text

if TYPE_CHECKING:
    import pandas as pd

_CALLED_ID = re.compile(r"(?i:(^|[^a-z])(id|index|key|nr|no|number))$|[a-z]I[dD]$")

# A column is nearly constant if so small a share of rows, and so few of one class, differ.
_RARE = 0.005
_FEW_OF_CLASS = 5

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


def numbered_texts(column: pd.Series[Any]) -> Floats:
    """Numbers in place of the texts of a column; NaN where there is none."""
    codes = column.factorize()[0].astype(np.float64)
    return np.where(codes < 0.0, np.nan, codes)


class Content(NamedTuple):
    """What the cells of a column are, where texts that can be read as numbers are numbers.

    Attributes
    ----------
    kind : "number"; "levels"; "slips", numbers but for a few cells; or "strange", dates, lists and the like.
    numbers : (n_rows,) numbers, NaN where there is none.
    wrong : (n_rows,) which cells are neither missing nor finite numbers.
    """

    kind: str
    numbers: Floats
    wrong: Bools

    @property
    def is_numeric(self) -> bool:
        """Whether all cells are numbers, yes or no, or missing."""
        return not self.wrong.any() and bool(np.isfinite(self.numbers).any())


def content_of(column: pd.Series[Any], *, is_levels: bool = False) -> Content:
    """Decide what a column of a file holds, as estimators decide it; `is_levels` is what a user says."""
    numbers, known = numbers_in(column), column.notna().to_numpy()
    wrong = ~np.isfinite(numbers) & known
    if is_levels or hasattr(column.dtype, "categories"):
        kind = "levels"
    elif column.dtype.kind in "mM":
        kind = "strange"
    elif are_slips(int(wrong.sum()), int(known.sum())):
        kind = "slips"
    elif column.dtype == object and any(map(_is_strange, column[known])):
        kind = "strange"
    else:
        are_truths = column.dtype.kind == "b" or all(isinstance(value, bool) for value in column[known])
        kind = "levels" if wrong.any() or are_truths else "number"
    return Content(kind, numbers, wrong)


def _is_strange(value: Any) -> bool:
    return not isinstance(value, str | bool | np.bool_ | Number)


def first_strange(column: pd.Series[Any]) -> pd.Series[Any]:
    """The first value of a strange column that is neither number nor text."""
    known = column.dropna()
    return known[:1] if column.dtype.kind in "mM" else known[known.map(_is_strange).astype(bool)][:1]


def is_time(value: Any) -> bool:
    """Whether a value is a date, a time of day or a span of time."""
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta)


def neither_numbers_nor_text(columns: pd.DataFrame, categorical: Collection[str]) -> Iterator[Finding]:
    """Columns that no fit takes: of dates and times, unless they are levels, and of lists and the like."""
    for name in columns.columns:
        if content_of(columns[name]).kind != "strange":
            continue
        value = first_strange(columns[name])
        row, shown = value.index[0], str(value.iloc[0])[:40]
        if not is_time(value.iloc[0]):
            yield Finding(
                "neither numbers nor text",
                (name,),
                (row,),
                f"column {name!r} holds {shown!r} in row {row}, which is neither a number nor text",
                "leave it out",
            )
        elif name not in categorical:
            yield Finding(
                "dates",
                (name,),
                (row,),
                f"column {name!r} holds dates or times, which are not taken, such as {shown!r} in row {row}",
                "leave it out, or write a number in its place, such as the days since a certain one",
            )


def texts_name_rows(column: pd.Series[Any]) -> bool:
    """Whether a column of text seems to name rows: another text in each of them."""
    different = len(column) >= ENOUGH_ROWS and column.notna().all() and column.is_unique
    return bool(different and content_of(column).kind != "slips" and not numbers_as_written(column))


def names_rows(name: str, values: Floats) -> bool:
    """Whether a column of numbers seems to name rows: whole numbers, all different, in order or called id."""
    if not np.isfinite(values).all() or (values != np.round(values)).any():
        return False
    return np.unique(values).size == values.size and (
        _is_in_order(values) or _CALLED_ID.search(name) is not None
    )


def _is_in_order(values: Floats) -> bool:
    steps = np.diff(values)
    return values.size >= ENOUGH_ROWS and bool((steps > 0.0).all() or (steps < 0.0).all())


def mostly_empty(variables: pd.DataFrame) -> Iterator[Finding]:
    """Columns of which more than half of the values are missing."""
    counts = {name: int(n) for name, n in variables.isna().sum().items() if n}
    n = len(variables)
    mostly = [name for name, missing in counts.items() if 2 * missing > n]
    if mostly:
        shown = ", ".join(f"{name!r} ({counts[name]})" for name in mostly[:MOST_LISTED])
        yield Finding(
            "mostly empty",
            tuple(mostly),
            (),
            f"more than half of {counted(n, 'value')} are missing in {counted(len(mostly), 'column')}: "
            f"{shown}",
            "leave them out" if len(mostly) > 1 else "leave it out",
        )


def identifiers(variables: pd.DataFrame, numeric: dict[str, Floats]) -> Iterator[Finding]:
    """Columns that seem to name rows."""
    for name in variables.columns:
        column = variables[name]
        if name in numeric:
            if names_rows(name, numeric[name]):
                yield Finding(
                    "identifier",
                    (name,),
                    (),
                    f"column {name!r} holds another whole number in every row"
                    + (", in order" if _is_in_order(numeric[name]) else ""),
                    "if it names rows, say so, or leave it out",
                )
        elif texts_name_rows(column):
            yield Finding(
                "identifier",
                (name,),
                (),
                f"column {name!r} holds another text in every row, as names of rows do",
                "say that it names rows, or leave it out",
            )


def text_among_numbers(columns: pd.DataFrame) -> Iterator[Finding]:
    """Columns that would be numeric but for the text of a few rows."""
    for name in columns.columns:
        content = content_of(columns[name])
        if content.kind != "slips":
            continue
        held = columns[name][content.wrong]
        distinct = held.astype(str).unique().tolist()
        values = f"row {held.index[0]} holds {str(held.iloc[0])[:40]!r}"
        rest = f", and {len(held) - 1} more rows do not hold numbers either" if len(held) > 1 else ""
        yield Finding(
            "text among numbers",
            (name,),
            tuple(held.index[:MOST_LISTED]),
            f"column {name!r} would be numeric, but {values}{rest}",
            f"mend it, or say that {distinct[0][:40]!r} stands for a missing value"
            if len(distinct) == 1
            else "mend them",
            tuple(distinct) if len(distinct) == 1 else (),
        )


def odd_levels(columns: pd.DataFrame) -> Iterator[Finding]:
    """Levels that may be one, and columns of so many levels that they are rather remarks."""
    for name in columns.columns:
        known = columns[name].dropna().astype(str)
        levels = sorted(known.unique().tolist())
        if content_of(columns[name]).kind == "slips":
            continue
        groups = alike(levels)
        if groups:
            shown = ", ".join(f"({listed(group)})" for group in groups[:MOST_LISTED])
            yield Finding(
                "levels alike",
                (name,),
                (),
                f"levels of column {name!r} that differ only by case, by spaces around them or in how a "
                f"number is written are levels of their own: {shown}",
                "write each level in one way",
            )
        if ENOUGH_ROWS <= 0.5 * len(known) < len(levels):
            yield Finding(
                "many levels",
                (name,),
                (),
                f"column {name!r} holds {len(levels)} different texts in {counted(len(known), 'row')}, so "
                "that most of a new table's will be unknown",
                "leave it out, or make a few levels of them",
            )


def constants(
    variables: pd.DataFrame, numeric: dict[str, Floats], y: NDArray[Any] | None
) -> Iterator[Finding]:
    """Columns that hold one value in every row, or in nearly every one."""
    constant, nearly = [], []
    for name in variables.columns:
        codes, values = variables[name].factorize()
        counts = np.bincount(codes[codes >= 0], minlength=1)
        if len(values) == 1:
            constant.append((name, values[0]))
        elif name in numeric and len(values) > 1 and 0 < counts.sum() - counts.max() <= _RARE * counts.sum():
            rare = (codes != counts.argmax()) & (codes >= 0)
            if y is None or not _marks_a_class(rare, y):
                nearly.append((name, values[counts.argmax()], int(rare.sum())))
    if constant:
        one = len(constant) == 1
        said = [f"column {name!r} holds {_value(value)}" for name, value in constant]
        yield Finding(
            "constant",
            tuple(name for name, _ in constant),
            (),
            f"{listed(said, str, rest=' columns are constant')} in every row, which tells nothing",
            "leave it out" if one else "leave them out",
        )
    if nearly:
        one = len(nearly) == 1
        said = [
            f"column {name!r} holds {_value(value)} in all but {counted(n, 'row')}"
            for name, value, n in nearly
        ]
        yield Finding(
            "nearly constant",
            tuple(name for name, _, _ in nearly),
            (),
            listed(said, str, rest=" columns do alike"),
            f"leave {'it' if one else 'them'} out, unless these rows matter",
        )


def _marks_a_class(rare: Bools, y: NDArray[Any]) -> bool:
    """Whether most rows with a rare value, and more than a few, are of one class."""
    counts = np.unique(y[rare].astype(str), return_counts=True)[1]
    return bool(counts.max() >= max(_FEW_OF_CLASS, 0.8 * rare.sum()))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:40])
    return exact_text(float(value)) if isinstance(value, int | float | np.number) else str(value)


def sentinels(variables: pd.DataFrame, numeric: dict[str, Floats]) -> Iterator[Finding]:
    """Numbers like -999, which seem to stand for missing values."""
    for name, x in numeric.items():
        finite = x[np.isfinite(x)]
        values, counts = np.unique(finite, return_counts=True)
        for end in {0, values.size - 1}:
            value, n = float(values[end]), int(counts[end])
            others = np.delete(values, end)
            if _is_sentinel(value, n, finite[finite != value], others):
                side, limit = ("below", others[0]) if end == 0 else ("above", others[-1])
                text = number_text(value)
                rows = variables.index[x == value]
                yield Finding(
                    "sentinel",
                    (name,),
                    tuple(rows[:MOST_LISTED]),
                    f"column {name!r} holds {text} in {counted(n, 'row')} and nothing else {side} "
                    f"{exact_text(limit)}",
                    f"say that {text} stands for a missing value",
                    (text,),
                )


def _is_sentinel(value: float, n: int, rest: Floats, others: Floats) -> bool:
    """Whether a value at the end of a column is written like a sentinel and lies far from all others."""
    if others.size < 3 or not _SENTINEL.fullmatch(f"{value:.17g}"):
        return False
    if n < 2 and abs(value) < 999:
        return False
    spread = float(np.subtract(*np.quantile(rest, [0.75, 0.25])))
    gap = float(np.abs(others - value).min())
    if value in (-1.0, -9.0):  # the only negative number, of a column that seems to have none
        return bool(others.size >= ENOUGH_ROWS and gap > max(0.25 * spread, abs(value)))
    return gap > max(spread, 0.25 * abs(value))

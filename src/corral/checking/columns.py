"""Decide what a column holds, and find columns that are empty, constant, or neither numbers nor text."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corral.array_types import Bools, Floats
from corral.checking.findings import Finding
from corral.data.date_variables import is_date
from corral.estimators.encoding import are_slips
from corral.sentences.numbers import MOST_LISTED, counted, exact_text, listed

if TYPE_CHECKING:
    import pandas as pd


def numbers_in(column: pd.Series[Any]) -> Floats:
    """Return the cells of a column as numbers (n_rows,); NaN for a cell that is not a number."""
    import pandas as pd

    if column.dtype.kind not in "biuf":
        # Converted to text first, because pandas would convert dates to numbers. True and False are 1 and 0.
        column = column.map(lambda value: float(value) if isinstance(value, bool) else str(value))
        column = pd.to_numeric(column, errors="coerce")
    numbers: Floats = column.to_numpy(np.float64, na_value=np.nan)
    return numbers


class Content(NamedTuple):
    """What the cells of a column hold; a text that can be read as a number counts as a number."""

    # "number"; "categories"; "slips" if all cells but a few are numbers; "strange" if some cells are dates,
    # lists, or complex or infinite numbers
    kind: str
    numbers: Floats  # (n_rows,); NaN for a cell that is not a number
    # (n_rows,) whether a cell is neither missing nor a finite number; texts are not marked in a strange
    # column of Python objects
    wrong: Bools

    @property
    def is_numeric(self) -> bool:
        """Whether each cell is a number, True, False or missing, and at least one is not missing."""
        return not self.wrong.any() and bool(np.isfinite(self.numbers).any())


def content_of(column: pd.Series[Any]) -> Content:
    """Decide what a column holds, by the rules of the estimators."""
    has_value = column.notna().to_numpy()
    if hasattr(column.dtype, "categories"):
        return Content("categories", np.full(len(column), np.nan), has_value)
    numbers = numbers_in(column)
    wrong = ~np.isfinite(numbers) & has_value
    if column.dtype.kind in "mMc":
        return Content("strange", numbers, wrong)
    if are_slips(int(wrong.sum()), int(has_value.sum())):
        return Content("slips", numbers, wrong)
    if column.dtype.kind == "f" and wrong.any():
        return Content("strange", numbers, wrong)
    if column.dtype == object:
        strange = has_value & np.array([not _is_taken(value) for value in column], dtype=np.bool_)
        if strange.any():
            return Content("strange", numbers, strange)
    are_truths = column.dtype.kind == "b" or all(isinstance(value, bool) for value in column[has_value])
    return Content("categories" if wrong.any() or are_truths else "number", numbers, wrong)


def _is_taken(value: Any) -> bool:
    return isinstance(value, str | bool | np.bool_ | Number) and not _is_complex(value)


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex | np.complexfloating)


def is_time(value: Any) -> bool:
    """Whether a value is a date, a time of day or a span of time."""
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta)


def neither_numbers_nor_text(
    columns: pd.DataFrame, contents: Mapping[str, Content], categorical: Collection[str]
) -> Iterator[Finding]:
    """Yield findings about columns that a fit refuses: infinite numbers, times without a date, lists."""
    for name in columns.columns:
        if contents[name].kind != "strange" or not contents[name].wrong.any():
            continue
        held = columns[name][contents[name].wrong]
        first, row, shown = held.iloc[0], held.index[0], repr(str(held.iloc[0])[:40])
        may_be_categories = held.dtype.kind == "f" or is_time(first)
        if may_be_categories and (name in categorical or is_date(first)):
            continue
        if held.dtype.kind == "f":
            description = (
                f"column {name!r} holds infinite values in {counted(len(held), 'row')}, such as row {row}"
            )
            advice = "replace them with finite numbers, or leave these cells empty"
            yield Finding("infinite values", description, advice, (name,), tuple(held.index[:MOST_LISTED]))
        elif is_time(first):
            description = f"column {name!r} holds times, such as {shown} in row {row}, which a fit refuses"
            advice = "leave the column out, or convert the times to numbers, such as hours"
            yield Finding("times", description, advice, (name,), (row,))
        else:
            what = "a complex number" if _is_complex(first) else "neither a number nor text"
            description = f"column {name!r} holds {shown} in row {row}, which is {what}"
            yield Finding("neither numbers nor text", description, "leave it out", (name,), (row,))


def mostly_empty(variables: pd.DataFrame) -> Iterator[Finding]:
    """Yield a finding about the columns in which more than half of the values are missing."""
    counts = variables.isna().sum()
    mostly = counts[2 * counts > len(variables)]
    if len(mostly):
        shown = listed([f"{name!r} ({n})" for name, n in mostly.items()], str)
        yield Finding(
            "mostly empty",
            f"{counted(len(mostly), 'column')} {'has' if len(mostly) == 1 else 'have'} no value in more than "
            f"half of the {len(variables)} rows (rows without a value in parentheses): {shown}",
            _leave_out(mostly),
            tuple(mostly.index),
        )


def _leave_out(columns: Collection[Any]) -> str:
    return "leave it out" if len(columns) == 1 else "leave them out"


def text_among_numbers(columns: pd.DataFrame, contents: Mapping[str, Content]) -> Iterator[Finding]:
    """Yield a finding about each column of numbers that holds text in a few rows."""
    for name in columns.columns:
        if contents[name].kind != "slips":
            continue
        held = columns[name][contents[name].wrong].astype(str)
        row, text, n_more = held.index[0], held.iloc[0], len(held) - 1
        rest = f", and {n_more} more row{' holds' if n_more == 1 else 's hold'} no number" if n_more else ""
        is_one = held.nunique() == 1
        yield Finding(
            "text among numbers",
            f"column {name!r} would be numeric, but row {row} holds {text[:40]!r}{rest}",
            "correct the text, or replace it with NaN if it stands for a missing value"
            if is_one
            else "correct these cells",
            (name,),
            tuple(held.index[:MOST_LISTED]),
            (text,) if is_one else (),
        )


def text_and_numbers(columns: pd.DataFrame, contents: Mapping[str, Content]) -> Iterator[Finding]:
    """Yield a finding about each column with text in some rows and numbers in others.

    Columns with so few texts that the texts must be errors are in `text_among_numbers`.
    """
    for name, column in columns.items():
        content = contents[name]
        if content.kind != "categories" or not 0 < content.wrong.sum() < column.notna().sum():
            continue
        held = column[content.wrong]
        yield Finding(
            "text and numbers",
            f"column {name!r} holds text in {len(held)} of {len(column)} rows, such as "
            f"{str(held.iloc[0])[:40]!r}, and numbers in other rows",
            "each text and each number counts as a category",
            (str(name),),
            tuple(held.index[:MOST_LISTED]),
        )


def constants(variables: pd.DataFrame) -> Iterator[Finding]:
    """Yield a finding about the columns that have the same value in all rows that are not empty."""
    values = {name: column.dropna().unique() for name, column in variables.items()}
    constant = {name: different[0] for name, different in values.items() if len(different) == 1}
    if not constant:
        return
    counts = variables[list(constant)].notna().sum()
    shown = [
        f"column {name!r} holds {_value(value)} in "
        + ("every row" if counts[name] == len(variables) else f"all {counts[name]} rows that have a value")
        for name, value in constant.items()
    ]
    more = len(shown) - MOST_LISTED
    rest = (
        f", and {counted(more, 'more column')} {'are' if more > 1 else 'is'} constant, too"
        if more > 0
        else ""
    )
    have = "a constant column has" if len(shown) == 1 else "constant columns have"
    description = f"{', '.join(shown[:MOST_LISTED])}{rest}; {have} no information about the label"
    yield Finding("constant", description, _leave_out(constant), tuple(constant))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:40])
    return exact_text(float(value)) if isinstance(value, int | float | np.number) else str(value)

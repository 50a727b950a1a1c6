"""Numbers that are written with a unit, a percent sign or marks of thousands, and therefore are text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from corral.checking.findings import ENOUGH_ROWS, Finding

if TYPE_CHECKING:
    import pandas as pd

# So many different texts tell what a column holds, and nearly all of them must be written alike.
_TEXTS_TRIED = 1000
_NEARLY_ALL = 0.9
# Where more of them are plain numbers, the others are slips.
_NEARLY_PLAIN = 0.8

# A number between a currency and a unit, which has no digits but a power, as in m2. Digits after a zero are
# rather a code.
_CELL = re.compile(
    r"(?P<before>[$€£¥]?)\s?(?P<number>[+-]?(?!0\d)\d(?:[\d.,'\u2019\s]*\d)?)\s?"
    r"(?P<after>(?:(?:[^\W\d_]|[%‰°$€£¥])[^\s\d,;]{0,11}[23]?)?)"
)
_PLAIN = re.compile(r"[+-]?\d+(?:\.\d+)?")
_ONE_COMMA = re.compile(r"[+-]?\d+,\d+")
_POINTED_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_MARK = re.compile(r"[,'\u2019\s]")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:(?P<mark>[,'\u2019\s])\d{3}(?:(?P=mark)\d{3})*)?(?:\.\d+)?")


class _Written(NamedTuple):
    """A text that is a number: the number in it, what stands beside it, and the row that holds it."""

    text: str
    number: str
    unit: str
    row: Any

    @property
    def is_plain(self) -> bool:
        return not self.unit and _PLAIN.fullmatch(self.number) is not None


def numbers_as_text(columns: pd.DataFrame) -> Iterator[Finding]:
    """Columns of text whose cells are numbers with a unit, a percent sign or marks of thousands."""
    for name in columns.columns:
        written = numbers_as_written(columns[name])
        if written:
            yield _finding(name, written)


def _finding(name: str, written: Sequence[_Written]) -> Finding:
    """Say how the numbers of a column are written, and what to do about it."""
    unit = next((each.unit for each in written if each.unit), "")
    marked = [each.number for each in written if _PLAIN.fullmatch(each.number) is None]
    # Other marks, two commas, and a comma before a point are those of thousands.
    by_comma = bool(marked) and all(map(_ONE_COMMA.fullmatch, marked))
    beside = ["a comma" if by_comma else "marks of thousands"] if marked else []
    beside += [repr(unit)] if unit else []
    example = next(each for each in written if not each.is_plain)
    found = (
        f"column {name!r} holds numbers with {' and '.join(beside)}, such as {example.text!r} in row "
        f"{example.row}, which makes text of them"
    )
    if by_comma and not unit:
        advice = "take the comma out if it marks thousands, or say that it is a decimal one"
        return Finding("numbers with a comma", (name,), (example.row,), found, advice)
    is_certain = not by_comma and _POINTED_THOUSANDS.fullmatch(example.number) is None
    plain = f", such as {_MARK.sub('', example.number)}" if is_certain else ""
    advice = f"write plain numbers{plain}, or each of them is a level of its own"
    return Finding("numbers as text", (name,), (example.row,), found, advice)


def numbers_as_written(column: pd.Series[Any]) -> list[_Written]:
    """The numbers that a column holds as text; none if these are not nearly all, or few different ones.

    A unit must be the same in all of them. Few different texts, such as doses, may well be levels.
    """
    known = column.dropna()
    first = known[~known.duplicated()].iloc[:_TEXTS_TRIED]
    cells = [_as_written(str(value), row) for row, value in first.items()]
    units = Counter(cell.unit for cell in cells if cell is not None and cell.unit)
    usual = units.most_common(1)[0][0] if units else ""
    alike = [cell for cell in cells if cell is not None and cell.unit in ("", usual)]
    enough = max(ENOUGH_ROWS, _NEARLY_ALL * len(cells))
    n_plain = sum(cell.is_plain for cell in alike)
    return alike if len(alike) >= enough and n_plain < _NEARLY_PLAIN * len(alike) else []


def _as_written(text: str, row: Any) -> _Written | None:
    """A text taken apart; None if it is no number."""
    cell = _CELL.fullmatch(text.strip())
    if cell is None or (cell["before"] and cell["after"]):
        return None
    number = cell["number"]
    if not any(form.fullmatch(number) for form in (_PLAIN, _ONE_COMMA, _THOUSANDS)):
        return None
    return _Written(text, number, cell["before"] or cell["after"], row)

"""Numbers that are written with a unit, a percent sign or marks of thousands, and therefore are text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
_CELL = (
    r"^(?P<before>[$€£¥]?)\s?"
    r"(?P<number>[+-]?(?!0\d)"
    r"(?:\d{1,3}(?P<mark>[,'\u2019\s])\d{3}(?:(?P=mark)\d{3})*(?:\.\d+)?|\d+(?:[.,]\d+)?))\s?"
    r"(?P<after>(?:(?:[^\W\d_]|[%‰°$€£¥])[^\s\d,;]{0,11}[23]?)?)$"
)
_MARK = r"[,'\u2019\s]"
_ONE_COMMA = r"[+-]?\d+,\d+"


def numbers_as_text(columns: pd.DataFrame, fewest: int = ENOUGH_ROWS) -> Iterator[Finding]:
    """Columns of text whose cells are numbers with a unit, a percent sign or marks of thousands.

    They have at least `fewest` different texts: of fewer, doses for example, each may well be a level.
    """
    for name, column in columns.items():
        written = numbers_as_written(column, fewest)
        if not len(written):
            continue
        unit, marked = written["unit"].max(), written["number"][written["number"].str.contains(_MARK)]
        # Other marks, two commas, and a comma before a point are those of thousands.
        by_comma = len(marked) > 0 and marked.str.fullmatch(_ONE_COMMA).all()
        beside = ["a comma" if by_comma else "marks of thousands"] if len(marked) else []
        beside += [repr(unit)] if unit else []
        row = written.index[~_are_plain(written)][0]
        found = (
            f"column {name!r} holds numbers with {' and '.join(beside)}, such as {written['text'][row]!r} in "
            f"row {row}, which makes text of them"
        )
        kind, advice = "numbers as text", "write plain numbers, or each of them is a level of its own"
        if by_comma and not unit:
            kind = "numbers with a comma"
            advice = "take the comma out if it marks thousands, or say that it is a decimal one"
        yield Finding(kind, found, advice, (str(name),), (row,))


def numbers_as_written(column: pd.Series[Any], fewest: int = ENOUGH_ROWS) -> pd.DataFrame:
    """The different texts of a column, the numbers in them and their unit, the same in all that have one.

    There are none where texts that are no numbers are more than a few, or where fewer texts differ.
    """
    texts = column.dropna().drop_duplicates().iloc[:_TEXTS_TRIED].astype(str)
    parts = texts.str.strip().str.extract(_CELL).assign(text=texts)
    parts = parts[(parts["before"] == "") | (parts["after"] == "")]
    parts["unit"] = parts["before"] + parts["after"]
    usual = parts["unit"][parts["unit"] != ""].mode()[:1]
    alike = parts[parts["unit"].isin(["", *usual])]
    are_enough = len(alike) >= max(fewest, _NEARLY_ALL * len(texts))
    return alike if are_enough and _are_plain(alike).sum() < _NEARLY_PLAIN * len(alike) else alike[:0]


def _are_plain(written: pd.DataFrame) -> pd.Series[bool]:
    return (written["unit"] == "") & ~written["number"].str.contains(_MARK)

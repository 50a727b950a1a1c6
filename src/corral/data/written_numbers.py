"""Detection of numbers that are written as text, with units, percent signs or thousands separators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

# Largest number of different texts of a column that are read, and share of them that must be numbers with the
# same unit or without a unit.
_TEXTS_TRIED = 1000
_NEARLY_ALL = 0.9

# With fewer different texts, such as doses, the texts are probably categories.
FEWEST_TEXTS = 10

# A number with an optional currency before it or unit after it. The only digit of a unit is a final 2 or 3,
# as in m2. Texts with a leading zero before other digits are probably codes, not numbers.
_CELL = re.compile(
    r"(?P<before>[$€£¥]?)\s?"
    r"(?P<number>[+-]?(?!0\d)"
    r"(?:\d{1,3}(?P<mark>[,'\u2019\s])\d{3}(?:(?P=mark)\d{3})*(?:\.\d+)?|\d+(?:[.,]\d+)?(?P<power>e[+-]?\d+)?))\s?"
    r"(?P<after>(?:(?:[^\W\d_]|[%‰°$€£¥])[^\s\d,;]{0,11}[23]?)?)"
)
_SEPARATOR = re.compile(r"[,'\u2019\s]")
_ONE_COMMA = re.compile(r"[+-]?\d+,\d+")


class WrittenNumbers(NamedTuple):
    """The form in which the numbers of a text column are written.

    A plain number has no unit and no separator.
    """

    example: str  # the first text that is not a plain number; if all are plain numbers, the first text
    unit: str  # unit, percent sign or currency that the numbers share; empty if no number has one
    has_comma: bool  # whether the only separators are single commas, which may be decimal commas
    has_separators: bool  # whether there are other separators
    plain_share: float  # share of plain numbers among the different texts that are numbers

    @property
    def beside(self) -> list[str]:
        """Descriptions of the separators and the unit in the numbers; empty if all numbers are plain."""
        separators = ["a comma"] * self.has_comma + ["marks of thousands"] * self.has_separators
        return separators + ([repr(self.unit)] if self.unit else [])


def written_numbers(texts: Iterable[str], fewest: int = FEWEST_TEXTS) -> WrittenNumbers | None:
    """Return the form of the numbers in a text column, from the different texts of the column.

    Returns None if more than a tenth of the texts are not numbers or have different units, or if fewer than
    `fewest` texts are numbers.
    """
    tried = list(islice(texts, _TEXTS_TRIED))
    cells = [(text, match) for text in tried if (match := _CELL.fullmatch(text.strip()))]
    cells = [(text, match) for text, match in cells if not (match["before"] and match["after"])]
    units = Counter(unit for _, match in cells if (unit := match["before"] + match["after"]))
    unit = min(units, key=lambda each: (-units[each], each), default="")
    cells = [(text, match) for text, match in cells if match["before"] + match["after"] in ("", unit)]
    if len(cells) < max(fewest, _NEARLY_ALL * len(tried), 1):
        return None
    separated = [match["number"] for _, match in cells if _SEPARATOR.search(match["number"])]
    has_comma = bool(separated) and all(_ONE_COMMA.fullmatch(number) for number in separated)
    others = [
        text
        for text, match in cells
        if match["before"] + match["after"] or _SEPARATOR.search(match["number"])
    ]
    return WrittenNumbers(
        example=(others or [text for text, _ in cells])[0],
        unit=unit,
        has_comma=has_comma,
        has_separators=bool(separated) and not has_comma,
        plain_share=1.0 - len(others) / len(cells),
    )

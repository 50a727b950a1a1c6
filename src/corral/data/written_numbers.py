"""Numbers that are written as text, with or without a unit, a percent sign or thousands separators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

# So many different texts of a column are read, and nearly all of them must be written alike.
_TEXTS_TRIED = 1000
_NEARLY_ALL = 0.9

# With fewer different texts, doses for example, each may well be a category.
FEWEST_TEXTS = 10

# A number between a currency and a unit, which has no digits but a power, as in m2. Digits after a zero are
# rather a code.
_CELL = re.compile(
    r"(?P<before>[$€£¥]?)\s?"
    r"(?P<number>[+-]?(?!0\d)"
    r"(?:\d{1,3}(?P<mark>[,'\u2019\s])\d{3}(?:(?P=mark)\d{3})*(?:\.\d+)?|\d+(?:[.,]\d+)?(?P<power>e[+-]?\d+)?))\s?"
    r"(?P<after>(?:(?:[^\W\d_]|[%‰°$€£¥])[^\s\d,;]{0,11}[23]?)?)"
)
_SEPARATOR = re.compile(r"[,'\u2019\s]")
_ONE_COMMA = re.compile(r"[+-]?\d+,\d+")


class WrittenNumbers(NamedTuple):
    """How the numbers of a text column are written."""

    example: str  # the first text that is no plain number, or the first if all are
    unit: str  # the unit, percent sign or currency of all numbers that have one; empty if none has
    has_comma: bool  # whether the only separators are single commas, which may be decimal commas
    has_separators: bool  # whether there are other thousands separators
    plain_share: float  # share of the different texts that are plain numbers

    @property
    def beside(self) -> list[str]:
        """What turns the numbers into text, in words; empty if all are plain."""
        separators = ["a comma"] * self.has_comma + ["marks of thousands"] * self.has_separators
        return separators + ([repr(self.unit)] if self.unit else [])


def written_numbers(texts: Iterable[str], fewest: int = FEWEST_TEXTS) -> WrittenNumbers | None:
    """How the different texts of a column write numbers.

    None if many texts are no numbers or have other units, or if fewer than `fewest` texts differ.
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

"""Numbers that are stored as text, with or without a unit, a percent sign or marks of thousands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

# So many different texts tell what a column holds, and nearly all of them must be written alike.
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
_MARK = re.compile(r"[,'\u2019\s]")
_ONE_COMMA = re.compile(r"[+-]?\d+,\d+")


class WrittenNumbers(NamedTuple):
    """How the numbers of a text column are written."""

    example: str  # the first text that is no plain number, or the first if all are
    unit: str  # what stands beside them, the same wherever something does; empty if nothing does
    has_comma: bool  # whether the only marks in the numbers are single commas, which may be decimal ones
    has_marks: bool  # whether there are marks of thousands
    plain_share: float  # share of the different texts that are plain numbers

    @property
    def beside(self) -> list[str]:
        """What makes text of the numbers, in words; empty if all are plain."""
        marks = ["a comma"] * self.has_comma + ["marks of thousands"] * self.has_marks
        return marks + ([repr(self.unit)] if self.unit else [])


def written_numbers(texts: Iterable[str], fewest: int = FEWEST_TEXTS) -> WrittenNumbers | None:
    """Tell how the different texts of a column write numbers.

    None if more than a few are no numbers, if they have several units, or if fewer than `fewest` differ.
    """
    tried = list(islice(texts, _TEXTS_TRIED))
    cells = [(text, match) for text in tried if (match := _CELL.fullmatch(text.strip()))]
    cells = [(text, match) for text, match in cells if not (match["before"] and match["after"])]
    group_ids = Counter(unit for _, match in cells if (unit := match["before"] + match["after"]))
    unit = min(group_ids, key=lambda each: (-group_ids[each], each)) if group_ids else ""
    cells = [(text, match) for text, match in cells if match["before"] + match["after"] in ("", unit)]
    if len(cells) < max(fewest, _NEARLY_ALL * len(tried), 1):
        return None
    marked = [match["number"] for _, match in cells if _MARK.search(match["number"])]
    has_comma = bool(marked) and all(_ONE_COMMA.fullmatch(number) for number in marked)
    others = [
        text for text, match in cells if match["before"] + match["after"] or _MARK.search(match["number"])
    ]
    return WrittenNumbers(
        example=(others or [text for text, _ in cells])[0],
        unit=unit,
        has_comma=has_comma,
        has_marks=bool(marked) and not has_comma,
        plain_share=1.0 - len(others) / len(cells),
    )

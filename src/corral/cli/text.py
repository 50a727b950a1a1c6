"""Text of others that must not be obeyed: escape sequences by terminals, formulas by spreadsheets."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# OWASP's list of how a formula may begin.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


# Words and texts that are longer are shortened when they are printed, and what is left of them then.
_MOST_OF_WORD, _LEFT_OF_WORD = 300, 60
_MOST_OF_TEXT, _LEFT_OF_TEXT = 4000, 1000


def visible(text: str) -> str:
    r"""The text with control characters, and all others that cannot be seen, written as in Python: \x1b.

    Names of classes, columns or levels may be of any length, and only their beginning is shown.
    """
    return "".join(
        each if each.isprintable() or unicodedata.category(each) == "Zs" else ascii(each)[1:-1]
        for each in _shortened(text)
    )


def _shortened(text: str) -> str:
    """The text without the rest of very long words and, if it is still very long, without its middle."""
    text = re.sub(rf"(\S{{{_LEFT_OF_WORD}}})\S{{{_MOST_OF_WORD - _LEFT_OF_WORD},}}", r"\1…", text)
    if len(text) <= _MOST_OF_TEXT:
        return text
    return f"{text[:_LEFT_OF_TEXT]} … {text[-_LEFT_OF_TEXT:]}"


def may_be_formula(value: Any) -> bool:
    """Whether a spreadsheet may calculate what stands in a cell; numbers, and signs alone, are harmless."""
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(_FORMULA_STARTS):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def quoted(value: Any) -> Any:
    """The value with an apostrophe before it if it may be a formula: spreadsheets then take it as text."""
    return f"'{value}" if may_be_formula(value) else value

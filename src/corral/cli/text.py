"""Text of others that must not be obeyed: escape sequences by terminals, formulas by spreadsheets."""

from __future__ import annotations

import unicodedata
from typing import Any

# OWASP's list of how a formula may begin.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def visible(text: str) -> str:
    r"""The text with control characters, and all others that cannot be seen, written as in Python: \x1b."""
    return "".join(
        each if each.isprintable() or unicodedata.category(each) == "Zs" else ascii(each)[1:-1]
        for each in text
    )


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

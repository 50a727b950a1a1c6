"""Numbers, values and lists as text.

Numbers have four significant digits. Whole numbers keep all their digits, since they may be codes or dates.
Numbers that are compared have as many digits as they need to look different.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

# Significant digits of measured numbers, most digits of numbers that are compared, and most digits of numbers
# that a person wrote: a number with more digits was calculated.
_DIGITS = 4
_MOST_DIGITS = 12
_DIGITS_WRITTEN = 10

# Whole numbers below this limit have at most 15 digits, which a float holds exactly.
_TOO_LONG = 1e15

# Most names in a list.
MOST_LISTED = 5


def rounded_number(value: float, digits: int = _DIGITS) -> int | float:
    """Round to significant digits, keeping all digits before the point; return whole numbers as integers."""
    value = float(value)
    if math.isfinite(value) and not value.is_integer():
        value = float(f"{value:.{digits}g}") if abs(value) < 10.0**digits else float(round(value))
    return int(value) if value.is_integer() and abs(value) < _TOO_LONG else value


def number_text(value: float, digits: int = _DIGITS) -> str:
    """Write a number rounded by `rounded_number`, such as 47.654 as "47.65" and 24730.5 as "24730".

    Only numbers below 1e-4 and from 1e15 on have an exponent.
    """
    rounded = rounded_number(value, digits)
    return str(rounded) if isinstance(rounded, int) else f"{rounded:.{digits}g}"


def different_texts(values: Sequence[float], least_digits: int = _DIGITS) -> list[str]:
    """Write numbers with so many digits that different numbers look different, as in 52.371 and 52.375.

    Numbers with the same twelve digits are treated as equal.
    """
    n_different = len({f"{value:.{_MOST_DIGITS - 1}e}" for value in values})
    for digits in range(least_digits, _MOST_DIGITS):
        texts = [number_text(value, digits) for value in values]
        if len(set(texts)) >= n_different:
            return texts
    return [number_text(value, _MOST_DIGITS) for value in values]


def range_texts(*ranges: Sequence[float]) -> list[str]:
    """Write ranges, such as "1.2 to 1.5", so that the wider one of the first two ranges also looks wider."""
    ends = [end for each in ranges for end in each]
    wider = _compare_widths(ends)
    for digits in range(_DIGITS, _MOST_DIGITS + 1):
        texts = different_texts(ends, digits)
        if _compare_widths([float(text) for text in texts]) == wider:
            break
    return [f"{low} to {high}" for low, high in zip(texts[::2], texts[1::2], strict=True)]


def percent_texts(shares: Sequence[float]) -> list[str]:
    """Write percentages, with up to two decimals if the first two shares differ but look alike."""
    for digits in range(3):
        texts = [f"{share:.{digits}%}" for share in shares]
        if shares[0] == shares[1] or texts[0] != texts[1]:
            break
    return texts


def _compare_widths(ends: Sequence[float]) -> int:
    """Return 1 if the first of two ranges is wider, -1 if the second is wider, 0 if both are equally wide."""
    widths = ends[1] - ends[0], ends[3] - ends[2]
    if math.isclose(*widths, rel_tol=1e-9, abs_tol=1e-12 * max(map(abs, ends))):
        return 0
    return 1 if widths[0] > widths[1] else -1


def exact_text(value: float) -> str:
    """Write a number with all digits of the table; with four digits if it has more than ten."""
    value = float(value)
    if value.is_integer() or float(f"{value:.{_DIGITS_WRITTEN}g}") != value:
        return number_text(value)
    return number_text(value, _DIGITS_WRITTEN)


def interval_text(interval: tuple[float, float] | None, style: str = ".3f") -> str:
    """Write the ends of an interval; empty if `interval` is None."""
    return "" if interval is None else f"{interval[0]:{style}} to {interval[1]:{style}}"


def counted(n: float, what: str) -> str:
    """Write a count with its noun, as in "1 row" and "2 rows"."""
    return f"{number_text(n)} {what}" if n == 1 else f"{number_text(n)} {what}s"


def listed(
    names: Sequence[Any], show: Callable[[Any], str] = repr, most: int = MOST_LISTED, rest: str = ""
) -> str:
    """List the first `most` names and the count of the others; `rest` stands behind that count."""
    more = f" and {len(names) - most} more{rest}" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more


def joined(names: Sequence[str]) -> str:
    """Join names, as in "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def begun(sentence: str) -> str:
    """Return the sentence with a capital letter at its beginning."""
    return sentence[:1].upper() + sentence[1:]


_MISSING = ("None", "nan", "NaT", "<NA>")  # how libraries write missing values


# Text behind a category that no training row has.
NOT_IN_TRAINING = " (not in training rows)"


def value_text(value: Any, *, unknown: bool = False) -> str:
    """Write a number, a category or "missing"; an `unknown` category is one that no training row has."""
    if not isinstance(value, str) and str(value) in _MISSING:
        return "missing"
    return (number_text(value) if isinstance(value, float) else str(value)) + NOT_IN_TRAINING * unknown


def named_value(name: str, value: Any, text: str | None = None) -> str:
    """Write a variable and its value, as in "length = 1.5"; text values are quoted."""
    text = value_text(value) if text is None else text
    return f'{name} = "{text}"' if isinstance(value, str) else f"{name} = {text}"

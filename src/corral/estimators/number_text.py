"""Numbers in words: how values are written in sentences, on the console and on the page.

Four digits are enough to read, but not to tell codes or dates apart: whole numbers keep all their digits, and
what is compared gets as many as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# Digits of numbers that were measured, of numbers that are told apart, and of numbers that somebody wrote:
# what has more is the result of a calculation.
_DIGITS = 4
_MOST_DIGITS = 12
_DIGITS_WRITTEN = 10

# Whole numbers below it have at most 15 digits, all of which a float knows.
_TOO_LONG = 1e15


def rounded_number(value: float, digits: int = _DIGITS) -> int | float:
    """Round a number to some digits, more only before the point; whole numbers stay as they are.

    Parameters
    ----------
    value : float
    digits : int, default=4
        Significant digits.

    Returns
    -------
    rounded : int or float
        An integer if it is whole and has at most 15 digits.
    """
    value = float(value)
    if math.isfinite(value) and not value.is_integer():
        value = float(f"{value:.{digits}g}") if abs(value) < 10.0**digits else float(round(value))
    return int(value) if value.is_integer() and abs(value) < _TOO_LONG else value


def number_text(value: float, digits: int = _DIGITS) -> str:
    """Write a number: a whole one with all its digits, another with four, or all that stand before the point.

    Parameters
    ----------
    value : float
    digits : int, default=4
        Significant digits.

    Returns
    -------
    text : str
        With an exponent only below 1e-4 and from 1e15 on.

    Examples
    --------
    >>> from corral.estimators.number_text import number_text
    >>> [number_text(value) for value in (38.7, 47.654, 123456.0, 24730.5, 9999.97, 1.5e-7)]
    ['38.7', '47.65', '123456', '24730', '10000', '1.5e-07']
    """
    rounded = rounded_number(value, digits)
    return str(rounded) if isinstance(rounded, int) else f"{rounded:.{digits}g}"


def different_texts(values: Sequence[float], least_digits: int = _DIGITS) -> list[str]:
    """Write numbers that are compared, with so many digits that those that differ look different.

    Parameters
    ----------
    values : sequence of float
        Numbers that agree in twelve digits count as one.
    least_digits : int, default=4
        Significant digits, at least.

    Returns
    -------
    texts : list of str

    Examples
    --------
    >>> from corral.estimators.number_text import different_texts
    >>> different_texts([52.3712, 52.3748]), different_texts([52.3712, 60.0])
    (['52.371', '52.375'], ['52.37', '60'])
    """
    n_different = len({f"{value:.{_MOST_DIGITS - 1}e}" for value in values})
    for digits in range(least_digits, _MOST_DIGITS):
        texts = [number_text(value, digits) for value in values]
        if len(set(texts)) >= n_different:
            return texts
    return [number_text(value, _MOST_DIGITS) for value in values]


def range_texts(first: Sequence[float], second: Sequence[float]) -> list[str]:
    """Write two ranges that are compared, with so many digits that the wider one looks wider.

    Parameters
    ----------
    first, second : sequence of two floats
        Lower and upper end.

    Returns
    -------
    texts : list of str

    Examples
    --------
    >>> from corral.estimators.number_text import range_texts
    >>> range_texts([1.2, 1.5], [0.2, 2.0]), range_texts([10012.4, 10015.6], [10011.6, 10015.4])
    (['1.2 to 1.5', '0.2 to 2'], ['10012.4 to 10015.6', '10011.6 to 10015.4'])
    """
    ends = [*first, *second]
    wider = _compare_widths(ends)
    for digits in range(_DIGITS, _MOST_DIGITS + 1):
        texts = different_texts(ends, digits)
        if _compare_widths([float(text) for text in texts]) == wider:
            break
    return [f"{texts[0]} to {texts[1]}", f"{texts[2]} to {texts[3]}"]


def _compare_widths(ends: Sequence[float]) -> int:
    """1 if the first of two ranges is wider, -1 if the second one is, 0 if they are equally wide."""
    widths = ends[1] - ends[0], ends[3] - ends[2]
    if math.isclose(*widths, rel_tol=1e-9, abs_tol=1e-12 * max(map(abs, ends))):
        return 0
    return 1 if widths[0] > widths[1] else -1


def exact_text(value: float) -> str:
    """Write a number that is the value of many rows as the table has it; what was calculated is rounded.

    Parameters
    ----------
    value : float

    Returns
    -------
    text : str
        All digits, if there are at most ten; otherwise as by `number_text`.

    Examples
    --------
    >>> from corral.estimators.number_text import exact_text
    >>> exact_text(1013.25), exact_text(2 / 3)
    ('1013.25', '0.6667')
    """
    value = float(value)
    if value.is_integer() or float(f"{value:.{_DIGITS_WRITTEN}g}") != value:
        return number_text(value)
    return number_text(value, _DIGITS_WRITTEN)

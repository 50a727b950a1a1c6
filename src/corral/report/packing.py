"""Numbers as short text, which the page's script unpacks: rows to browse are most of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_LETTERS = ascii_uppercase + ascii_lowercase + digits + "+/"
_LARGEST = 2**52  # the script has whole numbers up to twice that

# What is told of a row, and how many digits behind the point it has. All rows have lists of one length.
DECIMALS = {
    "position": 0,
    "truth": 0,
    "label": 0,
    "rival": 0,
    "judge": 0,
    "torn": 0,
    "novel": 0,
    "nearest": 0,
    "rests_on": 0,
    "effective": 0,
    "support": 0,
    "base": 2,
    "odds": 2,
    "rest": 2,
    "score": 2,
    "evidence": 2,
    "proba": 3,
    "typicality": 3,
    "shares": 3,
}


def pack(numbers: ArrayLike, decimals: int = 0) -> dict[str, Any]:
    """Write numbers of so many digits behind the point as text; of a matrix also the length of its lines.

    A number becomes whole and is written as in source maps: five bits a letter, the lowest first, of which
    the very first is the sign; a sixth says that more letters follow.
    """
    array = np.asarray(numbers)
    whole = array if array.dtype.kind == "i" and not decimals else np.rint(array * 10.0**decimals)
    packed: dict[str, Any] = {"text": _text(whole.astype(np.int64).ravel().tolist())}
    if decimals:
        packed["decimals"] = decimals
    if array.ndim > 1:
        packed["width"] = array.shape[1]
    return packed


def _text(whole: Sequence[int]) -> str:
    words = {number: _word(number) for number in set(whole)}
    return "".join([words[number] for number in whole])


def _word(number: int) -> str:
    left = 2 * abs(number) + (number < 0)
    letters = ""
    while left > 31:
        letters += _LETTERS[32 + left % 32]
        left //= 32
    return letters + _LETTERS[left]


def pack_column(cells: Sequence[Any]) -> dict[str, Any]:
    """Write a column of a table: numbers from their middle on, or places among all values that there are.

    Gaps, which are None, are listed.
    """
    known = [cell for cell in cells if cell is not None]
    whole = None if any(isinstance(cell, str) for cell in known) else _whole(known)
    packed: dict[str, Any]
    if whole is None:
        places = {value: place for place, value in enumerate(dict.fromkeys(known))}
        packed = pack([places[value] for value in known]) | {"among": list(places)}
    else:
        numbers, decimals = whole
        middle = sorted(numbers)[len(numbers) // 2] if numbers else 0
        packed = {"text": _text([number - middle for number in numbers]), "middle": middle}
        if decimals:
            packed["decimals"] = decimals
    gaps = [i for i, cell in enumerate(cells) if cell is None]
    return packed | {"gaps": gaps} if gaps else packed


def _whole(numbers: Sequence[float]) -> tuple[list[int], int] | None:
    """Numbers times a power of ten that makes them whole, and its exponent; None if they become too large."""
    written = {number: Decimal(repr(number)) for number in set(numbers)}
    exponents = [of.as_tuple().exponent for of in written.values()]
    decimals = max((-exponent for exponent in exponents if isinstance(exponent, int)), default=0)
    decimals = max(decimals, 0)
    if decimals > 15 or any(abs(of) * 10**decimals > _LARGEST for of in written.values()):
        return None
    whole = {number: int(of.scaleb(decimals)) for number, of in written.items()}
    return [whole[number] for number in numbers], decimals


def pack_rows(rows: Sequence[Mapping[str, Any]], values: Sequence[int]) -> dict[str, Any]:
    """Write rows to browse column by column; `values` are the lines of the table of values that they have."""
    packed: dict[str, Any] = {"values": pack(values)}
    for key in rows[0] if rows else ():
        of_rows = [row[key] for row in rows]
        if key in DECIMALS:
            packed[key] = pack(of_rows, DECIMALS[key])
        elif key in ("name", "unlike"):
            packed[key] = of_rows
    return packed

r"""Sums that are the same bits in any order: of integers, as which numbers up to 1 are written.

A number x of at most 1 in magnitude is :math:`2^{-40} a + 2^{-80} b` with integers a and b, but for less
than :math:`2^{-81}`. Sums of integers depend neither on how rows are divided nor on the order of the parts.

Rounding must not depend on that, because the centre of a cell of two rows is equally far from both: the last
bit of a unit decides which of them stands for the cell.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from corral.array_types import Floats, Integers

_BITS = 40
_UNIT = float(2**_BITS)

# So many integers of 40 bits, and a sign, have a sum that fits 64 bits.
_CHUNK = 1 << 22


def exact_sums(x: Floats) -> list[int]:
    """Sums of columns (n_rows, n_columns) of numbers from -1 to 1, in units of 2^-80."""
    totals = [0] * x.shape[1]
    for first in range(0, len(x), _CHUNK):
        scaled = x[first : first + _CHUNK] * _UNIT
        high = np.rint(scaled)
        low = np.rint((scaled - high) * _UNIT)
        of_columns = zip(high.astype(np.int64).sum(axis=0), low.astype(np.int64).sum(axis=0), strict=True)
        totals = [t + (int(a) << _BITS) + int(b) for t, (a, b) in zip(totals, of_columns, strict=True)]
    return totals


def add_sums(parts: list[list[int]]) -> list[int]:
    """Add sums of parts of the rows."""
    return [sum(of_column) for of_column in zip(*parts, strict=True)]


def as_floats(totals: list[int]) -> Floats:
    """Sums as numbers, each rounded once."""
    return np.array([total / (1 << 2 * _BITS) for total in totals])


def exact_totals(weights: Floats | None, codes: Integers, n_classes: int) -> list[Fraction]:
    """Sums of the weights of the rows of each class; their numbers if there are no weights."""
    if weights is None:
        return [Fraction(n) for n in np.bincount(codes, minlength=n_classes).tolist()]
    exponent = int(np.frexp(weights.max(initial=0.0))[1])
    shares = np.ldexp(weights, -exponent)
    of_classes = [exact_sums(shares[codes == a, np.newaxis])[0] for a in range(n_classes)]
    return [Fraction(total, 1 << 2 * _BITS) * Fraction(2) ** exponent for total in of_classes]

"""Which rows of a table may be training rows, also where numbers have lost digits on their way.

A table is rounded when it is printed, by a spreadsheet for instance, and single precision or another
reader of CSV files moves the last bits. So two numbers agree if single precision cannot tell them apart, or
if one is written with fewer digits than the other and they differ by at most one unit of its last digit:
rounded or cut off, one may come from the other. Levels agree if they are equal, and gaps with gaps. A row
that agrees with no training row in all columns is new, as far as its values tell.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corral._core.settings import Bools, Floats, Integers

_SINGLE = 2.0**-23  # relative distance of numbers in single precision
_MOST_DIGITS = 15  # of a decimal number that survives double precision
_MOST_PAIRS = 1_000_000  # that are compared at once


def agreeing_rows(X: Floats, training: Floats, is_level: Bools | None = None) -> Bools:
    """Which rows of `X` agree with some training row in all columns; `is_level` says which hold levels."""
    exact = np.zeros(X.shape[1], dtype=np.bool_) if is_level is None else is_level
    gaps, training_gaps = np.isnan(X), np.isnan(training)
    X, training = np.where(gaps, 0.0, X), np.where(training_gaps, 0.0, training)  # zeros tell of no digits
    units, training_units = _units(X, training), _units(training, X)
    # The column in which training rows differ most settles most pairs, so it goes first.
    columns = np.argsort([-np.unique(column).size for column in training.T], kind="stable")
    first = columns[0]
    agrees = np.zeros(len(X), dtype=np.bool_)
    for rows, others in _near_pairs(
        X[:, first], units[:, first], training[:, first], training_units[:, first]
    ):
        for j in columns:
            x, y = X[rows, j], training[others, j]
            close = x == y if exact[j] else _agree(x, units[rows, j], y, training_units[others, j])
            close &= gaps[rows, j] == training_gaps[others, j]
            rows, others = rows[close], others[close]  # noqa: PLW2901
        agrees[rows] = True
    return agrees


def _near_pairs(
    x: Floats, x_units: Floats, y: Floats, y_units: Floats
) -> Iterator[tuple[Integers, Integers]]:
    """Positions in x and in y of all pairs of numbers that may agree, and of a few more; in parts."""
    for unit in np.unique(y_units):  # there are few
        members = np.flatnonzero(y_units == unit)
        members = members[np.argsort(y[members], kind="stable")]
        reach = np.where(x_units == unit, 0.0, np.maximum(x_units, unit)) + 2.0 * _SINGLE * np.abs(x)
        start = np.searchsorted(y[members], x - reach, side="left")
        counts = np.searchsorted(y[members], x + reach, side="right") - start
        parts = np.flatnonzero(np.diff(np.cumsum(counts) // _MOST_PAIRS)) + 1
        for rows in np.split(np.arange(x.size), parts):
            n = counts[rows]
            within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
            yield np.repeat(rows, n), members[np.repeat(start[rows], n) + within]


def _agree(x: Floats, x_units: Floats, y: Floats, y_units: Floats) -> Bools:
    """Whether numbers may be one and the same, with different digits."""
    gap = np.abs(x - y)
    same = gap <= _SINGLE * np.maximum(np.abs(x), np.abs(y))
    rounded = (x_units != y_units) & (gap <= np.maximum(x_units, y_units))
    agree: Bools = same | rounded
    return agree


def _units(X: Floats, other: Floats) -> Floats:
    """One unit of the last digit that each number of `X` is written with; of whole numbers, 1.

    Zeros at the end are not known, so a number is taken to have as many decimals as any in its column. But
    rows of different origin may have come together: it has not more than any in its row. The same goes for
    significant digits; where there are fewer of them than in a column of the `other` table, numbers may
    have been rounded to so many, whole ones as well.
    """
    exponents, digits = _written(X)
    nonzero = X != 0.0
    own = np.where(nonzero, np.minimum(_power_of_ten(exponents - digits + 1), 1.0), 1.0)
    of_row = np.where(nonzero.any(axis=1), own.min(axis=1), 0.0)
    units: Floats = np.maximum(own.min(axis=0), of_row[:, np.newaxis])
    most_digits = np.minimum(digits.max(axis=0), digits.max(axis=1)[:, np.newaxis])
    fewer = nonzero & (most_digits < _written(other)[1].max(axis=0))
    units[fewer] = np.maximum(units, _power_of_ten(exponents - most_digits + 1))[fewer]
    return units


def _written(X: Floats) -> tuple[Integers, Integers]:
    """Decimal exponents of numbers, and how many digits from there on write them; zero has none."""
    exponents = np.floor(np.log10(np.abs(X), out=np.zeros(X.shape), where=X != 0.0)).astype(np.int64)
    digits = np.full(X.shape, _MOST_DIGITS)
    for n in range(_MOST_DIGITS - 1, 0, -1):
        with np.errstate(divide="ignore", invalid="ignore"):  # where a unit is too small to be a number
            scaled = X / _power_of_ten(exponents - n + 1)
            short = np.abs(scaled - np.rint(scaled)) <= 4.0 * np.finfo(np.float64).eps * np.abs(scaled)
        digits[short] = n
    digits[X == 0.0] = 0
    return exponents, digits


def _power_of_ten(exponents: Integers) -> Floats:
    powers: Floats = np.power(10.0, exponents)
    return powers

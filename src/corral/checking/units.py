"""Find columns with mixed units, such as a few lengths in cm among lengths in mm.

The few values in the other unit are the minority here, all other positive values the majority.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.checking.findings import Finding
from corral.sentences.numbers import MOST_LISTED, counted, exact_text

if TYPE_CHECKING:
    import pandas as pd

# Factors between common units: powers of ten; inch, foot, pound and ounce in metric units.
_FACTORS = (10.0, 100.0, 1000.0, 1e6, 2.54, 25.4, 30.48, 2.2046, 28.35)

# The minority is at most this share of the values, and has at least this number of different values: fewer
# may be typing errors.
_MOST_SHARE, _FEWEST = 0.25, 3
# The least number of different values of the majority.
_FEWEST_DIFFERENT = 20
# After conversion, the median of the minority must lie between these quantiles of the majority, and nearly
# all of the minority within the range of the majority. Factors other than powers of ten have the second,
# stricter pair of quantiles, because they match by chance more often.
_MIDDLE, _MIDDLE_OF_OTHERS = (0.1, 0.9), (0.25, 0.75)
_NEARLY_ALL = 0.9
# The minority is at most this share of the rows of each class: a class may truly have other values.
_MOST_OF_CLASS = 0.5


def mixed_units(
    variables: pd.DataFrame, numeric: Mapping[str, Floats], labels: Integers
) -> Iterator[Finding]:
    """Yield a finding about each column in which a few values seem to be in another unit."""
    for name, x in numeric.items():
        apart, factor = _values_apart(x, labels)
        if not apart.any():
            continue
        others = x[~apart & (x > 0.0)]  # a zero is the same in all units
        is_smaller = x[apart].max() < others.min()
        row = int(np.flatnonzero(apart)[0])
        yield Finding(
            "mixed units",
            f"{counted(int(apart.sum()), 'value')} of column {name!r}, such as {exact_text(x[row])} in row "
            f"{variables.index[row]}, are far from all other values (median {exact_text(np.median(others))}) "
            f"and would fit {'multiplied' if is_smaller else 'divided'} by {factor:g}",
            "write all values in one unit",
            (name,),
            tuple(variables.index[apart][:MOST_LISTED]),
        )


def _values_apart(x: Floats, labels: Integers) -> tuple[Bools, float]:
    """Return which values (n_rows,) seem to be in another unit, and the factor between the units."""
    none = np.zeros(x.size, dtype=np.bool_)
    positive = np.nan_to_num(x) > 0.0
    logs = np.sort(np.log(x[positive]))
    n, few = logs.size, int(_MOST_SHARE * logs.size)
    if few < _FEWEST or np.nanmin(x) < 0.0:
        return none, 1.0
    steps = np.diff(logs)
    for split in (steps[:few].argmax() + 1, n - few + steps[n - few - 1 :].argmax()):
        lower, upper = logs[:split], logs[split:]
        is_lower = split <= few
        factor = _factor_between(*((lower, upper) if is_lower else (upper, lower)))
        limit = np.exp((lower[-1] + upper[0]) / 2.0)
        apart = positive & ((np.nan_to_num(x) < limit) == is_lower)
        if factor and not _is_a_class(apart, labels):
            return apart, factor
    return none, 1.0


def _factor_between(minority: Floats, majority: Floats) -> float:
    """Return the factor that converts the minority to the unit of the majority; 0 if no factor fits.

    Both are sorted logarithms. The distance between minority and majority must be twice the largest step
    within either, and half the width of the majority, because long tails have large steps, too. Without
    logarithms the distance must also be half the width, because logarithms stretch numbers near zero. Powers
    of ten are tried before other factors.
    """
    if np.unique(minority).size < _FEWEST or np.unique(majority).size < _FEWEST_DIFFERENT:
        return 0.0
    low, first, last, high = np.quantile(majority, [0.02, *_MIDDLE, 0.98])
    inside = np.diff(majority[(majority >= low) & (majority <= high)]).max(initial=0.0)
    inside = max(inside, np.diff(minority).max(initial=0.0))
    ends = (minority[-1], majority[0]) if minority[-1] < majority[0] else (majority[-1], minority[0])
    width = 0.5 * (np.exp(last) - np.exp(first))
    if (
        ends[1] - ends[0] < max(2.0 * inside, 0.5 * (last - first))
        or np.exp(ends[1]) - np.exp(ends[0]) < width
    ):
        return 0.0
    distance = float(np.median(majority) - np.median(minority))
    for factor in sorted(_FACTORS, key=lambda f: (not _is_power(f), abs(abs(distance) - np.log(f)))):
        converted = minority + np.sign(distance) * np.log(factor)
        middle = np.quantile(majority, _MIDDLE if _is_power(factor) else _MIDDLE_OF_OTHERS)
        are_inside = (converted >= majority[0]) & (converted <= majority[-1])
        if middle[0] <= np.median(converted) <= middle[1] and are_inside.mean() >= _NEARLY_ALL:
            return factor
    return 0.0


def _is_power(factor: float) -> bool:
    return float(np.log10(factor)).is_integer()


def _is_a_class(apart: Bools, labels: Integers) -> bool:
    """Whether most rows of some class are in the minority."""
    shares = np.bincount(labels, weights=apart) / np.maximum(np.bincount(labels), 1)
    return bool(shares.size > 1 and shares.max() > _MOST_OF_CLASS)

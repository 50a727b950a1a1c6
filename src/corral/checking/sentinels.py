"""Find numbers that stand for missing values: sentinels such as -999, and zeros far below other values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from corral.array_types import Floats
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.sentences.numbers import MOST_LISTED, counted, exact_text, listed, number_text

if TYPE_CHECKING:
    import pandas as pd

# Numbers that programs often write in place of a missing value.
_SENTINEL = re.compile(r"-1|-9|-?9{2,}")

# Zeros are suspicious if each other value is positive, at least this share of the median of the other values,
# and greater than the interquartile range of the other values. Amounts and counts that may be zero also have
# values near zero, and so do not meet this.
_SHARE_OF_MEDIAN = 0.25
_MOST_ZEROS = 0.5


def sentinels(variables: pd.DataFrame, numeric: Mapping[str, Floats]) -> Iterator[Finding]:
    """Yield findings about numbers such as -999 that seem to stand for missing values."""
    for name, x in numeric.items():
        finite = x[np.isfinite(x)]
        values, counts = np.unique(finite, return_counts=True)
        for end, side, beside in ((0, "below", 1), (-1, "above", -2)):
            value, n = float(values[end]), int(counts[end])
            if _is_sentinel(value, n, finite[finite != value]):
                text = number_text(value)
                yield Finding(
                    "sentinel",
                    f"column {name!r} holds {text} in {counted(n, 'row')}, and no other value {side} "
                    f"{exact_text(values[beside])}",
                    f"replace {text} with NaN",
                    (name,),
                    tuple(variables.index[x == value][:MOST_LISTED]),
                    (text,),
                )


def _is_sentinel(value: float, n: int, rest: Floats) -> bool:
    """Whether an extreme value of a column looks like a sentinel and is far from the `rest` of the values."""
    if not _SENTINEL.fullmatch(f"{value:.17g}") or (n < 2 and abs(value) < 999):
        return False
    others = np.unique(rest)
    if others.size < 3:
        return False
    spread = float(np.subtract(*np.quantile(rest, [0.75, 0.25])))
    distance = float(np.abs(others - value).min())
    if value in (-1.0, -9.0):  # the only negative number in the column
        return bool(others.size >= ENOUGH_ROWS and distance > max(0.25 * spread, abs(value)))
    return distance > max(spread, 0.25 * abs(value))


def zeros_for_missing(variables: pd.DataFrame, numeric: Mapping[str, Floats]) -> Iterator[Finding]:
    """Yield a finding about columns of zeros and of numbers far above zero."""
    suspicious = {name: x for name, x in numeric.items() if _are_zeros_missing(x)}
    if not suspicious:
        return
    counts = {name: counted(int((x == 0.0).sum()), "row") for name, x in suspicious.items()}
    shown = [
        f"{name!r} in {counts[name]} (the least other value is {exact_text(x[x > 0.0].min())})"
        for name, x in suspicious.items()
    ]
    # `--na-values 0` would also make the zeros of all other columns missing.
    elsewhere = any((x == 0.0).any() for name, x in numeric.items() if name not in suspicious)
    rows = variables.index[np.any([x == 0.0 for x in suspicious.values()], axis=0)]
    yield Finding(
        "zeros",
        f"0 is far from all other values of column{'s' * (len(shown) > 1)} {listed(shown, str)}",
        "if 0 stands for a missing value, "
        f"{'leave these cells empty' if elsewhere else 'replace it with NaN'}",
        tuple(suspicious),
        tuple(rows[:MOST_LISTED]),
        () if elsewhere else ("0",),
    )


def _are_zeros_missing(x: Floats) -> bool:
    present = x[np.isfinite(x)]
    n_zeros, rest = int((present == 0.0).sum()), present[present != 0.0]
    if not 0 < n_zeros <= _MOST_ZEROS * present.size or np.unique(rest).size < ENOUGH_ROWS:
        return False
    low, median, high = np.quantile(rest, [0.25, 0.5, 0.75])
    return bool(rest.min() > high - low and rest.min() >= _SHARE_OF_MEDIAN * median)

"""Numbers that stand for missing values: -999 and the like, and zeros far below all other values."""

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

# Numbers that programs write for a missing number.
_SENTINEL = re.compile(r"-1|-9|-?9{2,}")

# Zeros are suspicious if all other values are positive, at least this share of their median, and farther from
# zero than their quartiles are from each other. Amounts and counts that may be zero have values near zero.
_SHARE_OF_MEDIAN = 0.25
_MOST_ZEROS = 0.5


def sentinels(variables: pd.DataFrame, numeric: Mapping[str, Floats]) -> Iterator[Finding]:
    """Numbers like -999, which seem to stand for missing values."""
    for name, x in numeric.items():
        finite = x[np.isfinite(x)]
        values, counts = np.unique(finite, return_counts=True)
        for end, side, beside in ((0, "below", 1), (-1, "above", -2)):
            value, n = float(values[end]), int(counts[end])
            if _is_sentinel(value, n, finite[finite != value]):
                text = number_text(value)
                yield Finding(
                    "sentinel",
                    f"column {name!r} holds {text} in {counted(n, 'row')} and nothing else {side} "
                    f"{exact_text(values[beside])}",
                    f"say that {text} stands for a missing value",
                    (name,),
                    tuple(variables.index[x == value][:MOST_LISTED]),
                    (text,),
                )


def _is_sentinel(value: float, n: int, rest: Floats) -> bool:
    """Whether the first or last of a column's values is written like a sentinel, and is far from the rest."""
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
    """Columns of positive numbers far from zero that hold zeros in a few rows."""
    suspicious = {name: x for name, x in numeric.items() if _are_zeros_missing(x)}
    if not suspicious:
        return
    counts = {name: counted(int((x == 0.0).sum()), "row") for name, x in suspicious.items()}
    shown = [
        f"{name!r} in {counts[name]} (nothing else below {exact_text(x[x > 0.0].min())})"
        for name, x in suspicious.items()
    ]
    # The option that names missing values holds for all columns: elsewhere a zero may be one.
    elsewhere = any((x == 0.0).any() for name, x in numeric.items() if name not in suspicious)
    rows = variables.index[np.any([x == 0.0 for x in suspicious.values()], axis=0)]
    yield Finding(
        "zeros",
        f"0 is far from all other values of column{'s' * (len(shown) > 1)} {listed(shown, str)}",
        f"if it stands for a missing value, {'leave these cells empty' if elsewhere else 'say so'}",
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

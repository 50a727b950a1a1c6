"""Find columns that are functions of another column and so add no information."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from corral.array_types import Integers
from corral.checking.findings import Finding
from corral.data.subsample import random_rows
from corral.sentences.numbers import MOST_LISTED, counted

if TYPE_CHECKING:
    import pandas as pd

# The average number of rows per value of the other column; with fewer rows, columns agree by chance.
_ROWS_PER_VALUE = 3
# The least logarithm of the odds against agreement by chance.
_LEAST_ODDS = 20.0
# Two measurements count as functions of each other from this rank correlation on. It is below 1 because of
# rounding.
_RANK_CORRELATION = 0.99995
_FEWEST_DIFFERENT = 20
# Number of rows in the sample that rules out most pairs of columns, and number of columns that are compared.
_ROWS_TRIED, _MOST_COLUMNS = 200, 300


def functions(coded: pd.DataFrame, numeric: Collection[str]) -> Iterator[Finding]:
    """Yield a finding about columns that can be computed from another column."""
    coded = coded.loc[:, (coded.nunique() > 1).to_numpy()].iloc[:, :_MOST_COLUMNS]
    if coded.shape[1] < 2:
        return
    pairs = _monotone_pairs(coded[[name for name in coded.columns if name in numeric]])
    monotone = {name for pair in pairs for name in pair}
    pairs += [pair for pair in _determined_pairs(coded) if not monotone >= set(pair)]
    if not pairs:
        return
    shown = [f"{one!r} from {other!r}" for one, other in pairs]
    more = len(shown) - MOST_LISTED
    rest = f", and {counted(more, 'more column')}" if more > 0 else ""
    yield Finding(
        "functions",
        f"a column can be computed from another one: {', '.join(shown[:MOST_LISTED])}{rest}",
        "keep one column of each pair, since the other adds no information",
        tuple(dict.fromkeys(one for one, _ in pairs)),
    )


def _determined_pairs(coded: pd.DataFrame) -> list[tuple[str, str]]:
    """Return pairs: a column, and a column that determines it. Two columns form at most one pair."""
    codes = coded.apply(lambda column: column.factorize(use_na_sentinel=False)[0]).to_numpy()
    n, sizes = len(codes), codes.max(axis=0, initial=0) + 1
    sample = codes[random_rows(n, _ROWS_TRIED, np.random.default_rng(0))]
    pairs = []
    for one in range(codes.shape[1]):
        # Columns with few values are tried first, so that the coarsest column that determines `one` is
        # reported.
        for other in np.argsort(sizes, kind="stable"):
            may_be = other != one and sizes[one] <= sizes[other] <= n / _ROWS_PER_VALUE
            if may_be and _follows(sample, one, other) and _follows(codes, one, other):
                is_twin = sizes[one] == sizes[other] and (coded.columns[other], coded.columns[one]) in pairs
                if not is_twin and _odds(codes[:, one], codes[:, other]) > _LEAST_ODDS:
                    pairs.append((str(coded.columns[one]), str(coded.columns[other])))
                break
    return pairs


def _follows(codes: Integers, one: int, other: int) -> bool:
    joint = codes[:, other] * (codes[:, one].max() + 1) + codes[:, one]
    return np.unique(joint).size == np.unique(codes[:, other]).size


def _odds(one: Integers, other: Integers) -> float:
    """Return minus the log probability that rows with equal `other` have equal `one` by chance."""
    shares = np.bincount(one) / one.size
    n_repeats = one.size - np.unique(other).size
    return float(-n_repeats * np.log((shares**2).sum()))


def _monotone_pairs(columns: pd.DataFrame) -> list[tuple[str, str]]:
    """Return pairs of measurements whose ranks are almost perfectly correlated; each column is first once."""
    names = [name for name in columns.columns if columns[name].nunique() >= _FEWEST_DIFFERENT]
    if len(names) < 2:
        return []
    missing = columns[names].isna().to_numpy()
    ranks = columns[names].rank()
    correlation = np.abs(np.corrcoef(ranks.fillna(ranks.mean()).to_numpy(), rowvar=False))
    pairs: dict[str, str] = {}
    for i, j in np.argwhere(np.triu(correlation > _RANK_CORRELATION, 1)):
        if names[j] not in pairs and (missing[:, i] == missing[:, j]).all():
            pairs[names[j]] = names[i]
    return list(pairs.items())

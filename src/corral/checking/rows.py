"""Mistakes in rows: copies, near duplicates, ids that repeat, and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats, Integers
from corral.checking.columns import numbered_texts
from corral.checking.findings import Finding
from corral.data.duplicates import number_copies
from corral.data.near_duplicates import NearDuplicates, near_duplicates
from corral.estimators.warned import are_many, near_duplicates_words
from corral.sentences import counted, listed, number_text

if TYPE_CHECKING:
    import pandas as pd


def copies(numeric: dict[str, Floats], levels: pd.DataFrame, y: NDArray[Any] | None) -> Iterator[Finding]:
    """Rows that are copies of others, counted as a fit counts them."""
    if len(numeric) + levels.shape[1] < 2 or len(levels) < 2:  # in one column, rows agree by chance
        return
    X = np.column_stack([*numeric.values(), *(numbered_texts(levels[name]) for name in levels.columns)])
    labels = None if y is None else np.unique(y.astype(str), return_inverse=True)[1]
    units = number_copies(X, labels)
    if units is not None:
        yield from _exact_copies(units, levels.index, y)


def near_duplicates_of(
    numeric: dict[str, Floats], variables: pd.DataFrame, groups: pd.Series[Any] | None
) -> NearDuplicates | None:
    """Rows that repeat others but for one value or small differences, if no group holds them together."""
    X = np.column_stack(
        [numeric[name] if name in numeric else numbered_texts(variables[name]) for name in variables.columns]
        or [np.empty((len(variables), 0))]
    )
    levels = np.array([name not in numeric for name in variables.columns], dtype=np.int64)
    return near_duplicates(X, levels, None if groups is None else group_numbers(groups))


def of_near_duplicates(duplicates: NearDuplicates, variables: pd.DataFrame) -> Finding:
    """Say how many rows are near duplicates, and what follows where they are many."""
    first, second = (variables.index[i] for i in duplicates.pairs[0])
    n = len(variables)
    words = near_duplicates_words(duplicates, n, [str(name) for name in variables.columns])
    words += f", such as rows {first} and {second}"
    if are_many(duplicates.n_rows, n):
        words += ", so that scores and probabilities are not to be believed"
    drop = "" if duplicates.column is None else "leave the column out, "
    advice = f"{drop}keep one of them, or name a group that holds them together"
    return Finding("near duplicates", (), (first, second), words, advice)


def group_numbers(groups: pd.Series[Any]) -> Integers:
    """Numbers of the groups of rows; a row without one is a group of its own."""
    codes: Integers = groups.factorize()[0].astype(np.int64)
    return np.where(codes < 0, codes.max(initial=-1) + 1 + np.arange(codes.size), codes)


def _exact_copies(units: Integers, index: Any, y: NDArray[Any] | None) -> Iterator[Finding]:
    order = np.argsort(units, kind="stable")
    again = np.flatnonzero(np.diff(units[order]) == 0)
    n = len(units) - np.unique(units).size
    first, second = index[order[again[0]]], index[order[again[0] + 1]]
    yield Finding(
        "copies",
        (),
        (first, second),
        f"{n} of {len(units)} rows {'is a copy' if n == 1 else 'are copies'} of another one, such as rows "
        f"{first} and {second}",
        "if they are one measurement, keep one of them",
    )
    if y is None:
        return
    labels = y[order].astype(str)
    torn = again[labels[again] != labels[again + 1]]
    if torn.size:
        first, second = index[order[torn[0]]], index[order[torn[0] + 1]]
        yield Finding(
            "copies of two classes",
            (),
            (first, second),
            f"{counted(torn.size, 'pair')} of equal rows have different labels, such as rows {first} and "
            f"{second}",
            "look which label is right",
        )


def repeated_ids(table: pd.DataFrame, ids: Sequence[str], group: str | None) -> Iterator[Finding]:
    """Columns that name rows, but some of them twice."""
    for name in ids:
        n, distinct = int(table[name].notna().sum()), int(table[name].nunique())
        if distinct < n and name != group:
            row = table.index[table[name].duplicated().to_numpy() & table[name].notna().to_numpy()][0]
            yield Finding(
                "repeated ids",
                (name,),
                (row,),
                f"column {name!r} names {distinct} different things in {n} rows, one of them again in row "
                f"{row}",
                "name it as the group, or rows of one are held out and learnt from, which makes scores too "
                "good",
            )


def of_groups(groups: pd.Series[Any], name: str, y: NDArray[Any] | None) -> Iterator[Finding]:
    """How many groups there are, and classes that have one alone."""
    counts = groups.value_counts()
    if len(counts) == len(groups):
        yield Finding(
            "groups", (name,), (), f"column {name!r} names another group in every row", "name no group"
        )
        return
    yield Finding(
        "groups",
        (name,),
        (),
        f"column {name!r} names {len(counts)} groups of {counts.min()} to {counts.max()} rows, "
        f"{number_text(counts.median())} in the middle",
        f"take it that there are {len(counts)} observations rather than {len(groups)}",
    )
    if y is None:
        return
    labels = y.astype(str)
    few = [label for label in np.unique(labels).tolist() if groups[labels == label].nunique() < 2]
    if few:
        yield Finding(
            "classes of one group",
            (name,),
            (),
            f"all rows of the class{'es' * (len(few) > 1)} {listed(few)} are of one group",
            "collect another group, or nothing can be said of new ones",
        )

"""Mistakes in rows: copies, near duplicates, ids that repeat, and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Integers
from corral.checking.findings import Finding
from corral.data.near_duplicates import NearDuplicates
from corral.estimators.warned import are_many, near_duplicates_words
from corral.sentences.numbers import counted, listed, number_text

if TYPE_CHECKING:
    import pandas as pd


def duplicates(numbers: Integers, labels: Integers, index: pd.Index[Any]) -> Iterator[Finding]:
    """Rows that share a number with another one, and those of them whose labels differ."""
    pairs = _neighbors(numbers)
    first, second = index[pairs[0]]
    n = len(pairs)
    yield Finding(
        "copies",
        f"{n} of {len(numbers)} rows {'is a copy' if n == 1 else 'are copies'} of another one, such as rows "
        f"{first} and {second}",
        "if they are one measurement, keep one of them",
        rows=(first, second),
    )
    torn = pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]]
    if len(torn):
        first, second = index[torn[0]]
        yield Finding(
            "copies of two classes",
            f"{counted(len(torn), 'pair')} of equal rows have different labels, such as rows {first} and "
            f"{second}",
            "look which label is right",
            rows=(first, second),
        )


def _neighbors(numbers: Integers) -> Integers:
    """Positions (n_pairs, 2) of rows that share a number, each with the next one that has it."""
    order = np.argsort(numbers, kind="stable")
    again = np.flatnonzero(np.diff(numbers[order]) == 0)
    return np.column_stack([order[again], order[again + 1]])


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
    return Finding("near duplicates", words, advice, rows=(first, second))


def group_numbers(groups: pd.Series[Any]) -> Integers:
    """Numbers of the groups of rows; a row without one is a group of its own."""
    codes: Integers = groups.factorize()[0].astype(np.int64)
    return np.where(codes < 0, codes.max(initial=-1) + 1 + np.arange(codes.size), codes)


def repeated_ids(table: pd.DataFrame, ids: Sequence[str]) -> Iterator[Finding]:
    """Columns that name rows, but some of them twice."""
    for name in ids:
        known = table[name].dropna()
        again = known[known.duplicated()]
        if len(again):
            yield Finding(
                "repeated ids",
                f"column {name!r} names {known.nunique()} different things in {len(known)} rows, one of them "
                f"again in row {again.index[0]}",
                "name it as the group, or rows of one are held out and learnt from, which makes scores too "
                "good",
                (name,),
                (again.index[0],),
            )


def of_groups(groups: pd.Series[Any], y: NDArray[Any] | None) -> Iterator[Finding]:
    """How many groups there are, and classes that have one alone."""
    name, counts = str(groups.name), groups.value_counts()
    if len(counts) == len(groups):
        yield Finding("groups", f"column {name!r} names another group in every row", "name no group", (name,))
        return
    yield Finding(
        "groups",
        f"column {name!r} names {len(counts)} groups of {counts.min()} to {counts.max()} rows, "
        f"{number_text(counts.median())} in the middle",
        f"take it that there are {len(counts)} observations rather than {len(groups)}",
        (name,),
    )
    if y is not None:
        yield from classes_of_one_group(name, groups.to_numpy(), y)


def classes_of_one_group(name: str, groups: NDArray[Any], y: NDArray[Any]) -> Iterator[Finding]:
    """Classes that a fit by groups refuses, since their only group cannot be held out."""
    import pandas as pd

    n_groups = pd.Series(groups).groupby(y.astype(str)).nunique()
    few = n_groups.index[n_groups < 2].tolist()
    if not few:
        return
    is_enough = len(n_groups) - len(few) >= 2
    classes = f"{'the class' if len(few) == 1 else 'each of the classes'} {listed(few)}"
    yield Finding(
        "classes of one group" if is_enough else "too few groups",
        f"all rows of {classes} are of one group of column {name!r}, so that a fit by groups cannot hold any "
        "out",
        "collect another group" + (", or leave such classes out" if is_enough else ", or name no group"),
        (name,),
    )

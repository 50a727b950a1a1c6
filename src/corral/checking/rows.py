"""Findings about rows: duplicates, near duplicates, ids that repeat, and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Integers
from corral.checking.findings import Finding
from corral.data.near_duplicates import NearDuplicates, equal_neighbors
from corral.estimators.warned import are_many, near_duplicates_words
from corral.sentences.numbers import counted, listed, number_text

if TYPE_CHECKING:
    import pandas as pd


def duplicates(numbers: Integers, labels: Integers, index: pd.Index[Any]) -> Iterator[Finding]:
    """Duplicates, which share their `numbers` (n_rows,), and duplicates whose labels differ."""
    pairs = equal_neighbors(numbers)
    first, second = index[pairs[0]]
    n = len(pairs)
    yield Finding(
        "duplicates",
        f"{n} of {len(numbers)} rows {'is a duplicate' if n == 1 else 'are duplicates'} of another one, such "
        f"as rows {first} and {second}",
        "if they are one measurement, keep one of them",
        rows=(first, second),
    )
    ambiguous = pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]]
    if len(ambiguous):
        first, second = index[ambiguous[0]]
        yield Finding(
            "duplicates of two classes",
            f"{counted(len(ambiguous), 'pair')} of equal rows have different labels, such as rows {first} "
            f"and {second}",
            "look which label is right",
            rows=(first, second),
        )


def near_duplicates_finding(duplicates: NearDuplicates, variables: pd.DataFrame) -> Finding:
    """How many rows are near duplicates, and what follows if they are many."""
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
    """Columns of ids that name several rows by the same id."""
    for name in ids:
        values = table[name].dropna()
        again = values[values.duplicated()]
        if len(again):
            yield Finding(
                "repeated ids",
                f"column {name!r} names {values.nunique()} different things in {len(values)} rows, one of "
                f"them again in row {again.index[0]}",
                "name it as the group, or rows of one are held out and learnt from, which makes scores too "
                "good",
                (name,),
                (again.index[0],),
            )


def group_findings(groups: pd.Series[Any], y: NDArray[Any] | None) -> Iterator[Finding]:
    """How many groups there are, and which classes have only one."""
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
    """Classes that a fit with groups refuses: their only group cannot be held out."""
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

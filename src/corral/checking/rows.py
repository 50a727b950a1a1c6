"""Findings about duplicates, near duplicates, repeated ids and groups."""

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
    """Yield findings about equal rows, which have equal `numbers` (n_rows,), and about their labels."""
    pairs = equal_neighbors(numbers)
    first, second = index[pairs[0]]
    n = len(pairs)
    yield Finding(
        "duplicates",
        f"{n} of {len(numbers)} rows {'repeats' if n == 1 else 'repeat'} an earlier row, such as row "
        f"{second}, "
        f"which equals row {first}",
        "if equal rows are the same measurement, keep one of them",
        rows=(first, second),
    )
    ambiguous = pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]]
    if len(ambiguous):
        first, second = index[ambiguous[0]]
        n_sets = np.unique(numbers[ambiguous[:, 0]]).size  # a set may have several such pairs
        yield Finding(
            "duplicates of two classes",
            f"{counted(n_sets, 'set')} of equal rows {'has' if n_sets == 1 else 'have'} different labels, "
            "such "
            f"as rows {first} and {second}",
            "check which label is right",
            rows=(first, second),
        )


def near_duplicates_finding(duplicates: NearDuplicates, variables: pd.DataFrame) -> Finding:
    """Return a finding with the number of near duplicates and the reason why they do harm."""
    first, second = (variables.index[i] for i in duplicates.pairs[0])
    n = len(variables)
    words = near_duplicates_words(duplicates, n, [str(name) for name in variables.columns])
    words += f", such as rows {first} and {second}"
    if are_many(duplicates.n_rows, n):
        words += ", so scores and probabilities are too good"
    drop = "" if duplicates.column is None else "leave the column out, "
    advice = f"{drop}keep one of these rows, or use a group column in which these rows have the same value"
    return Finding("near duplicates", words, advice, rows=(first, second))


def group_numbers(groups: pd.Series[Any]) -> Integers:
    """Return a code (n_rows,) of the group of each row; a row without a value is a group of one row."""
    codes: Integers = groups.factorize()[0].astype(np.int64)
    return np.where(codes < 0, codes.max(initial=-1) + 1 + np.arange(codes.size), codes)


def repeated_ids(table: pd.DataFrame, ids: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding about each column of ids in which an id repeats."""
    for name in ids:
        values = table[name].dropna()
        again = values[values.duplicated()]
        if len(again):
            yield Finding(
                "repeated ids",
                f"column {name!r} has {values.nunique()} different ids in {len(values)} rows; row "
                f"{again.index[0]} repeats an earlier one",
                "use it as the group column; otherwise rows with the same id are both trained on and held "
                "out, "
                "and scores are too good",
                (name,),
                (again.index[0],),
            )


def group_findings(groups: pd.Series[Any], y: NDArray[Any] | None) -> Iterator[Finding]:
    """Yield findings about the number of groups, and about classes that have only one group."""
    name, counts, n_missing = str(groups.name), groups.value_counts(), int(groups.isna().sum())
    n_groups = len(counts) + n_missing  # a row without a value is a group of one row
    if n_groups == len(groups):
        description = f"column {name!r} has a different value in every row" + " that has a value" * bool(
            n_missing
        )
        yield Finding("groups", description, "do not pass it as the group column", (name,))
        return
    without = f"; {counted(n_missing, 'row')} without a value: each counts as a group" if n_missing else ""
    yield Finding(
        "groups",
        f"column {name!r} identifies {len(counts)} groups of {counts.min()} to {counts.max()} rows (median "
        f"{number_text(counts.median())}){without}",
        f"treat the table as {n_groups} independent observations, not {len(groups)}",
        (name,),
    )
    if y is not None:
        yield from classes_of_one_group(name, groups.to_numpy(), y)


def classes_of_one_group(name: str, groups: NDArray[Any], y: NDArray[Any]) -> Iterator[Finding]:
    """Yield a finding about classes with fewer than two groups, which a fit with groups refuses."""
    import pandas as pd

    n_groups = pd.Series(groups).groupby(y.astype(str)).nunique()
    few = n_groups.index[n_groups < 2].tolist()
    if not few:
        return
    is_enough = len(n_groups) - len(few) >= 2
    classes = f"{'the class' if len(few) == 1 else 'each of the classes'} {listed(few)}"
    yield Finding(
        "classes of one group" if is_enough else "too few groups",
        f"{classes} has fewer than two groups in column {name!r}, so a fit with groups cannot hold out one "
        "of "
        "them",
        "collect more groups" + (", or leave these classes out" if is_enough else ", or use no group column"),
        (name,),
    )

"""Mistakes in rows: copies, near copies, ids that repeat, and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral._checking.columns import numbered_texts
from corral._checking.findings import ENOUGH_ROWS, Finding, counted, listed
from corral._core.copies import filled, number_copies
from corral._core.settings import Floats, Integers
from corral._estimators.number_text import number_text

if TYPE_CHECKING:
    import pandas as pd


# Standard deviations within which two rows are nearly the same, and the radius that tells whether by chance.
_NEAR = 1e-3
_WIDER = 8.0
_MOST_STEPS = 1000


def copies(numeric: dict[str, Floats], levels: pd.DataFrame, y: NDArray[Any] | None) -> Iterator[Finding]:
    """Rows that are copies of others, counted as a fit counts them, or nearly so."""
    d = len(numeric)
    if d + levels.shape[1] < 2 or len(levels) < 2:  # in one column, rows agree by chance
        return
    X = np.column_stack([*numeric.values(), *(numbered_texts(levels[name]) for name in levels.columns)])
    labels = None if y is None else np.unique(y.astype(str), return_inverse=True)[1]
    units = number_copies(X, labels)
    if units is not None:
        yield from _exact_copies(units, levels.index, y)
    complete = np.flatnonzero(np.isfinite(X[:, :d]).all(axis=1))
    pairs = complete[_near_pairs(X[complete, :d])]
    same_levels = filled(X[:, d:])
    pairs = pairs[(same_levels[pairs[:, 0]] == same_levels[pairs[:, 1]]).all(axis=1)]
    if len(pairs):
        first, second = (levels.index[i] for i in pairs[0])
        n = np.unique(pairs).size
        yield Finding(
            "near copies",
            (),
            (first, second),
            f"{n} of {len(X)} rows are nearly the same as another one, such as rows {first} and {second}",
            "if they are one measurement, keep one of them",
        )


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


def _near_pairs(X: Floats) -> Integers:
    """Pairs of rows that differ, but by far less than others do; empty if chance explains them."""
    import pandas as pd

    none = np.empty((0, 2), dtype=np.int64)
    if len(X) < ENOUGH_ROWS or X.shape[1] < 2:
        return none
    first = np.flatnonzero(~pd.DataFrame(X).duplicated().to_numpy())
    spread = _spread(X[first])
    if first.size < ENOUGH_ROWS or np.count_nonzero(spread) < 2:
        return none
    Z = X[first][:, spread > 0.0] / spread[spread > 0.0]
    near = _pairs_within(Z, _NEAR)
    if not len(near) or 2 * len(near) < len(_pairs_within(Z, _WIDER * _NEAR)):
        return none
    return first[near[np.lexsort((near[:, 1], near[:, 0]))]]


def _spread(X: Floats) -> Floats:
    """The standard deviation of each column, as its quartiles let expect it, which no outlier enlarges."""
    quartiles = np.quantile(X, [0.25, 0.75], axis=0)
    robust = (quartiles[1] - quartiles[0]) / 1.35
    spread: Floats = np.where(robust > 0.0, robust, X.std(axis=0))
    return spread


def _pairs_within(Z: Floats, radius: float) -> Integers:
    """Pairs of rows at a distance of at most `radius`, or many of them if there are very many.

    Rows are no nearer to each other than their projections are. So only those are compared that follow each
    other closely in the order of one projection, and of these only the ones that are near in two others.
    """
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(Z.shape[1], min(3, Z.shape[1]))))[0]
    shadow = Z @ axes
    order = np.argsort(shadow[:, 0])
    shadow = shadow[order]
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for k in range(1, min(len(Z), _MOST_STEPS)):
        at = np.flatnonzero(shadow[k:, 0] - shadow[:-k, 0] <= radius)
        if not at.size:
            break
        at = at[(np.abs(shadow[at + k] - shadow[at]) <= radius).all(axis=1)]
        found = np.sort(np.stack([order[at], order[at + k]], axis=1), axis=1)
        pairs.append(found[np.linalg.norm(Z[found[:, 0]] - Z[found[:, 1]], axis=1) <= radius])
    return np.concatenate(pairs)


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
                "rows of one belong together, so name it as the group",
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

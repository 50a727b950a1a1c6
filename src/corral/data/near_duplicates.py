r"""Near duplicates: rows that equal another row except for one value or for small differences.

Exact duplicates are merged (`duplicates`). A duplicate with a missing cell, with a counter or date of its
own, with rounded values or with added noise is not merged. Its twin then predicts it, so that leave-one-out
scores of pure noise are near 1. Such rows are found in two ways, and both compare them with chance.

*One value differs.* Let :math:`M_k` pairs of rows differ in exactly k columns. If columns take few values,
and agree independently of each other, Newton's inequality bounds

.. math::

    M_1 \le \tfrac 2 3 M_2^2 / M_3.

Rows are near duplicates if this bound is less than a fifth of :math:`M_1`, and :math:`M_2` at most
:math:`M_1`.

*Small differences.* Continuous columns, which have at least three different values for ten rows, are scaled;
rows must agree in all other columns, in numbers up to a ten-thousandth of their range. Let :math:`r_5` be the
median distance of rows to their fifth neighbor. A row has a twin if one to four others are nearer than
:math:`t r_5`, for t = 0.03, 0.01 or 0.001, and the next one is ten times as far away. If rows spread over m
dimensions, a share :math:`5 t^m` of them has such a near neighbor by chance; m follows from the distances to
the fifth and to the tenth neighbor. Rows with a twin are near duplicates if they are ten times as many as by
chance, more than a Poisson number reaches in one of a thousand tables, and at least half of the rows with a
neighbor within :math:`10 t r_5`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist
from scipy.special import pdtrc

from corral.array_types import Bools, Floats, Integers
from corral.data.duplicates import ONE_IN, filled, n_equal_pairs
from corral.data.hashing import Words, cell_keys, row_keys
from corral.data.subsample import random_rows

Kind = Literal["one value", "a missing value", "small differences"]

# In fewer rows nothing can be much more frequent than by chance.
_LEAST_ROWS = 12

# Fewer pairs that differ in one value are not compared with chance.
_LEAST_PAIRS = 5

# A column is continuous if it has so many different values per row.
_DISTINCT_SHARE = 0.3

# Numbers of few different values, which are not continuous, agree if they differ by less than this part of
# their range.
_STEP = 1e-4

# Radii around twins, as multiples of the distance to the fifth neighbor.
_NEAR = (0.03, 0.01, 0.001)
_APART = 10.0
_MOST_TWINS = 4
_TIMES_CHANCE = 10.0
_SIGNIFICANCE_LEVEL = 1e-3
_NEIGHBORS = (5, 10)

# Bounds of the work: rows and cells that are searched, rows of a sample that is compared with all of them,
# and coordinates that are compared.
_MOST_ROWS = 50_000
_MOST_CELLS = 20_000_000
_LEAST_SAMPLE, _MOST_SAMPLE = 50, 1000
_MOST_COMPARED = 40_000_000
_N_AXES = 3


class NearDuplicates(NamedTuple):
    """Rows that repeat others, but not exactly."""

    n_rows: int  # number of such rows, twins included; an estimate if there are many rows
    pairs: Integers  # (n_pairs, 2) positions of twins, in order; of a subsample if there are many rows
    kind: Kind  # what twins differ in
    column: int | None  # position of the column that differs in every pair; None if it depends on the pair


def near_duplicates(
    X: Floats, n_categories: Integers | None = None, groups: Integers | None = None
) -> NearDuplicates | None:
    """Find rows that equal another row except for one value or small differences; None if by chance.

    Only the first one of exact duplicates is compared with other rows.

    Parameters
    ----------
    X : (n_rows, n_features) values, NaN for missing ones.
    n_categories : (n_features,) numbers of categories, 0 for measurements; None if all are measurements.
    groups : (n_rows,) numbers of groups, within which rows may be alike; None if there are no groups.
    """
    n, d = X.shape
    if n < _LEAST_ROWS or d < 2:
        return None
    rows = _sample(n, min(_MOST_ROWS, _MOST_CELLS // d))
    complete = filled(X[rows])
    first = np.sort(np.unique(row_keys(complete, np.arange(d)), return_index=True)[1])
    if first.size < _LEAST_ROWS:
        return None
    n_searched, rows, complete = rows.size, rows[first], complete[first]
    missing = np.isnan(X[rows])
    differing = _pairs_but_one_value(complete)
    close = _close_pairs(complete, missing, n_categories)
    if groups is not None:
        group = groups[rows]
        differing, close = (pairs[group[pairs[:, 0]] != group[pairs[:, 1]]] for pairs in (differing, close))
    pairs = np.unique(rows[np.concatenate([differing, close])], axis=0)
    if not len(pairs):
        return None
    # Both twins are in a subsample with the square of the probability of one row.
    n_rows = min(round(np.unique(pairs).size * (n / n_searched) ** 2), n)
    if len(close) > len(differing):
        return NearDuplicates(n_rows, pairs, "small differences", None)
    changed = (complete[differing[:, 0]] != complete[differing[:, 1]]).argmax(axis=1)
    lost = missing[differing, changed[:, np.newaxis]].any(axis=1)
    kind: Kind = "a missing value" if 2 * lost.sum() > lost.size else "one value"
    column = int(changed[0]) if (changed == changed[0]).all() else None
    return NearDuplicates(n_rows, pairs, kind, column)


def _sample(n: int, size: int) -> Integers:
    """Positions, in order, of a random subsample of n rows; the same in every call."""
    return random_rows(n, size, np.random.default_rng(0))


# One value differs


def _pairs_but_one_value(X: Floats) -> Integers:
    """Pairs (n_pairs, 2) of rows, all different, that differ in one column; none if chance explains them."""
    none = np.empty((0, 2), dtype=np.int64)
    if X.shape[1] < 3 or not _any_agree_in_half(X):
        return none
    hashes = cell_keys(X).T
    others = hashes.sum(axis=0, dtype=np.uint64) - hashes
    n_differing = sum(map(n_equal_pairs, others))
    if n_differing < _LEAST_PAIRS or _explained_by_chance(X, n_differing):
        return none
    return np.concatenate([equal_neighbors(keys) for keys in others])


def _any_agree_in_half(X: Floats) -> bool:
    """Whether two rows agree in one half of the columns, as rows that differ in one value do."""
    columns = np.arange(X.shape[1])
    halves = (columns[::2], columns[1::2])
    return any(n_equal_pairs(row_keys(np.ascontiguousarray(X[:, half]), half)) > 0.0 for half in halves)


def equal_neighbors(keys: Words | Integers) -> Integers:
    """Positions (n_pairs, 2) of equal keys: each key, in its order, and the next one that equals it."""
    order = np.argsort(keys, kind="stable")
    equal = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    return np.stack([order[equal], order[equal + 1]], axis=1)


def _explained_by_chance(X: Floats, n_differing: float) -> bool:
    """Whether pairs that differ in two and three columns explain those that differ in one."""
    n, d = X.shape
    size = min(max(np.sqrt(200 * n), _MOST_SAMPLE), 2 * _MOST_SAMPLE, np.sqrt(_MOST_COMPARED / d))
    rows = _sample(n, int(size))
    n_different = np.rint(d * pdist(X[rows], "hamming"))
    pairs_per_counted = (n / rows.size) ** 2
    two, three = (np.count_nonzero(n_different == k) * pairs_per_counted for k in (2, 3))
    unseen = 0.5 * pairs_per_counted if rows.size < n else 0.0
    by_chance = max(two + unseen, ONE_IN * (2.0 / 3.0) * two**2 / max(three, 1.0))
    return bool(by_chance > n_differing)


# Small differences


def _close_pairs(X: Floats, missing: Bools, n_categories: Integers | None) -> Integers:
    """Pairs (n_pairs, 2) of rows that are much nearer to each other than to all other rows."""
    none = np.empty((0, 2), dtype=np.int64)
    values = np.where(missing, np.nan, X)
    in_order = np.sort(values, axis=0)
    n_present = (~missing).sum(axis=0)
    is_continuous = (in_order[1:] > in_order[:-1]).sum(axis=0) >= np.maximum(_DISTINCT_SHARE * n_present, 5)
    if n_categories is not None:
        is_continuous &= n_categories == 0
    if np.count_nonzero(is_continuous) < 2:
        return none
    Z = _scaled(values[:, is_continuous])
    n, d = Z.shape
    sample = _sample(n, min(max(_MOST_COMPARED // (n * d), _LEAST_SAMPLE), _MOST_SAMPLE))
    tree = KDTree(Z, leafsize=100)  # in many dimensions smaller leaves save little
    distances = tree.query(Z[sample], _NEIGHBORS[1] + 1)[0]  # the first is the row itself
    fifth, tenth = distances[:, _NEIGHBORS[0]], distances[:, _NEIGHBORS[1]]
    if not fifth.min() > 0.0:
        return none
    r_5 = float(np.median(fifth))
    dimension = max(np.log(2.0) / max(float(np.log(tenth / fifth).mean()), 1e-3), 1.0)
    is_measured = ~is_continuous if n_categories is None else ~is_continuous & (n_categories == 0)
    exact = np.where(is_measured, _coarse(X), X)[:, ~is_continuous]
    exact = np.column_stack([exact, missing[:, is_continuous]])
    keys = row_keys(exact, np.arange(exact.shape[1]))
    for t in _NEAR:
        pairs = _pairs_within(Z, t * r_5)
        pairs = pairs[keys[pairs[:, 0]] == keys[pairs[:, 1]]]
        if not len(pairs):
            return none
        n_close, pairs = _isolated(tree, pairs, t * r_5, sample.size)
        n_wider = n * float((distances[:, 1] <= _APART * t * r_5).mean())
        by_chance = n * _NEIGHBORS[0] * t**dimension
        are_enough = n_close >= max(_TIMES_CHANCE * by_chance, n_wider / 2.0, 2.0)
        if are_enough and pdtrc(n_close // 2 - 1, by_chance / 2.0) < _SIGNIFICANCE_LEVEL:
            return pairs
    return none


def _coarse(X: Floats) -> Floats:
    """Columns in steps of a small part of their range, so that small differences make equal values."""
    low, high = X.min(axis=0), X.max(axis=0)
    half = high / 2.0 - low / 2.0  # the range itself may overflow
    steps: Floats = np.round((X / 2.0 - low / 2.0) / np.where(half > 0.0, _STEP * half, 1.0))
    return steps


def _scaled(X: Floats) -> Floats:
    """Columns scaled by their quartiles, long tails shortened; a missing value is the median."""
    low, middle, high = np.nanquantile(X, (0.25, 0.5, 0.75), axis=0, method="lower")
    spread = np.where(high > low, high - low, 1.0)
    scaled: Floats = np.nan_to_num(np.arcsinh((X - middle) / spread))
    return scaled


def _pairs_within(Z: Floats, radius: float) -> Integers:
    """Pairs (n_pairs, 2) of rows within a radius, the first before the second.

    Projections are at most as far apart as the rows themselves, so that a tree of projections finds all
    pairs.
    """
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(Z.shape[1], min(_N_AXES, Z.shape[1]))))[0]
    pairs: Integers = KDTree(Z @ axes).query_pairs(radius, output_type="ndarray").astype(np.int64)
    close: Bools = np.linalg.norm(Z[pairs[:, 0]] - Z[pairs[:, 1]], axis=1) <= radius
    return pairs[close]


def _isolated(tree: KDTree, pairs: Integers, radius: float, n_checked: int) -> tuple[float, Integers]:
    """Count the rows of pairs whose next row is ten times as far away, and drop pairs of other rows.

    Only a subsample of at most `n_checked` rows is checked.
    """
    rows = np.unique(pairs)
    checked = rows[_sample(rows.size, n_checked)]
    distances = tree.query(tree.data[checked], _MOST_TWINS + 2)[0]
    last = (distances <= radius).sum(axis=1) - 1  # the farthest duplicate
    row, following = np.arange(checked.size), np.minimum(last + 1, _MOST_TWINS + 1)
    isolated = (last <= _MOST_TWINS) & (distances[row, following] >= _APART * distances[row, last])
    crowded = np.isin(pairs, checked[~isolated]).any(axis=1)
    return float(isolated.mean() * rows.size), pairs[~crowded]

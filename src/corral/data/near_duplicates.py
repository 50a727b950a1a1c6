r"""Near duplicates: rows that equal another row except for one value or for small differences.

Exact duplicates are merged (see `duplicates`). A row that repeats another row, but with a missing value, a
different counter or date, rounded values or added noise, is not merged. The two rows are twins. If one twin
is left out, the other twin predicts it, so that even labels of pure noise get leave-one-out scores near 1.
There are two searches for twins. Both compare the number of twins with the number expected by chance.

*One value differs.* Let :math:`M_k` be the number of pairs of rows that differ in exactly k columns. If
columns have few values, and agreements in different columns are independent, Newton's inequality implies

.. math::

    M_1 \le \tfrac 2 3 M_2^2 / M_3.

Rows that differ in one value are near duplicates if this bound is less than a fifth of :math:`M_1`, and
:math:`M_2` is at most :math:`M_1`.

*Small differences.* A column is continuous if the number of its different values is at least 30% of the
number of its values. Distances are computed in the continuous columns, which are scaled. Twins must agree in
all other columns; numbers agree if they differ by less than about a ten-thousandth of the range. Let
:math:`r_5` be the median distance of a row to its fifth neighbor. A row has a twin if one to four other rows
are within :math:`t r_5`, for t = 0.03, 0.01 or 0.001, and the next row is at least ten times as far away as
the farthest of them. If rows are spread over m dimensions, a share :math:`5 t^m` of the rows has such a
neighbor by chance. The dimension m is estimated from the distances to the fifth and to the tenth neighbor.
Rows with a twin are near duplicates if three conditions hold: there are at least ten times as many as
expected by chance; a Poisson test at the significance level 1/1000 rejects chance; and they are at least half
of the rows with a neighbor within :math:`10 t r_5`.
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

# In smaller tables, twins cannot be distinguished from chance.
_LEAST_ROWS = 12

# With fewer pairs that differ in one value, no near duplicates are reported.
_LEAST_PAIRS = 5

# A column is continuous if the number of its different values divided by the number of rows is at least this.
_DISTINCT_SHARE = 0.3

# Values of numeric columns that are not continuous are rounded to multiples of this share of the range.
_STEP = 1e-4

# Radii within which twins are searched, as multiples of the median distance to the fifth neighbor; then the
# limits of the rule in the module docstring.
_NEAR = (0.03, 0.01, 0.001)
_APART = 10.0
_MOST_TWINS = 4
_TIMES_CHANCE = 10.0
_SIGNIFICANCE_LEVEL = 1e-3
_NEIGHBORS = (5, 10)

# Limits of the computation: numbers of rows and cells that are searched, number of rows of a sample that is
# compared with all of these rows, and number of coordinates that are compared.
_MOST_ROWS = 50_000
_MOST_CELLS = 20_000_000
_LEAST_SAMPLE, _MOST_SAMPLE = 50, 1000
_MOST_COMPARED = 40_000_000
_N_AXES = 3


class NearDuplicates(NamedTuple):
    """Pairs of rows that are nearly equal (twins)."""

    n_rows: int  # number of rows with a twin; an estimate if only a subsample was searched
    pairs: Integers  # (n_pairs, 2) sorted positions of twins; only of a subsample if there are many rows
    kind: Kind  # difference between twins
    column: int | None  # index of the column that differs in every pair; None if the column is not the same


def near_duplicates(
    X: Floats, n_categories: Integers | None = None, groups: Integers | None = None
) -> NearDuplicates | None:
    """Find rows that equal another row except for one value or small differences.

    Returns None if there are none, or if they may be due to chance. Of exact duplicates, only the first row
    is compared with other rows.

    Parameters
    ----------
    X : (n_rows, n_features) values, NaN for missing values.
    n_categories : (n_features,) number of categories of each column, 0 for a numeric column; None if all
        columns are numeric.
    groups : (n_rows,) group ids; None if there are no groups. Pairs of rows of one group are ignored.
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
    # The probability that both twins are in the subsample is the square of the probability of one row.
    n_rows = min(round(np.unique(pairs).size * (n / n_searched) ** 2), n)
    if len(close) > len(differing):
        return NearDuplicates(n_rows, pairs, "small differences", None)
    changed = (complete[differing[:, 0]] != complete[differing[:, 1]]).argmax(axis=1)
    lost = missing[differing, changed[:, np.newaxis]].any(axis=1)
    kind: Kind = "a missing value" if 2 * lost.sum() > lost.size else "one value"
    column = int(changed[0]) if (changed == changed[0]).all() else None
    return NearDuplicates(n_rows, pairs, kind, column)


def _sample(n: int, size: int) -> Integers:
    """Return sorted positions of a random subsample of n rows; the seed is fixed."""
    return random_rows(n, size, np.random.default_rng(0))


# One value differs


def _pairs_but_one_value(X: Floats) -> Integers:
    """Return pairs (n_pairs, 2) of rows that differ in one column; no pairs if they may be due to chance.

    The rows of X must be different.
    """
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
    """Return whether any two rows agree in every second column, as two rows that differ in one value do."""
    columns = np.arange(X.shape[1])
    halves = (columns[::2], columns[1::2])
    return any(n_equal_pairs(row_keys(np.ascontiguousarray(X[:, half]), half)) > 0.0 for half in halves)


def equal_neighbors(keys: Words | Integers) -> Integers:
    """Return positions (n_pairs, 2) of equal keys: each position and the next position with an equal key."""
    order = np.argsort(keys, kind="stable")
    equal = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    return np.stack([order[equal], order[equal + 1]], axis=1)


def _explained_by_chance(X: Floats, n_differing: float) -> bool:
    """Return whether the number of pairs that differ in one column may be due to chance.

    The number is compared with the numbers of pairs that differ in two and in three columns.
    """
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
    """Return pairs (n_pairs, 2) of rows that are much closer to each other than to all other rows.

    There are no pairs if they may be due to chance.
    """
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
    """Divide columns by a small part of their range and round them, so that close values become equal."""
    low, high = X.min(axis=0), X.max(axis=0)
    half = high / 2.0 - low / 2.0  # the range itself may overflow
    steps: Floats = np.round((X / 2.0 - low / 2.0) / np.where(half > 0.0, _STEP * half, 1.0))
    return steps


def _scaled(X: Floats) -> Floats:
    """Scale columns by their quartiles and shorten long tails; missing values become the median."""
    low, middle, high = np.nanquantile(X, (0.25, 0.5, 0.75), axis=0, method="lower")
    spread = np.where(high > low, high - low, 1.0)
    scaled: Floats = np.nan_to_num(np.arcsinh((X - middle) / spread))
    return scaled


def _pairs_within(Z: Floats, radius: float) -> Integers:
    """Return pairs (n_pairs, 2) of rows whose distance is at most the radius; the smaller position is first.

    The distance of two projected rows is at most the distance of the rows. So a search among projections on a
    few axes finds all pairs.
    """
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(Z.shape[1], min(_N_AXES, Z.shape[1]))))[0]
    pairs: Integers = KDTree(Z @ axes).query_pairs(radius, output_type="ndarray").astype(np.int64)
    close: Bools = np.linalg.norm(Z[pairs[:, 0]] - Z[pairs[:, 1]], axis=1) <= radius
    return pairs[close]


def _isolated(tree: KDTree, pairs: Integers, radius: float, n_checked: int) -> tuple[float, Integers]:
    """Drop pairs with a row that has too many close rows, and estimate the number of other rows in pairs.

    The next row after the rows within the radius must be at least ten times as far away. At most `n_checked`
    rows are checked, a random subsample; pairs whose rows are not checked are kept.
    """
    rows = np.unique(pairs)
    checked = rows[_sample(rows.size, n_checked)]
    distances = tree.query(tree.data[checked], _MOST_TWINS + 2)[0]
    last = (distances <= radius).sum(axis=1) - 1  # index of the farthest row within the radius
    row, following = np.arange(checked.size), np.minimum(last + 1, _MOST_TWINS + 1)
    isolated = (last <= _MOST_TWINS) & (distances[row, following] >= _APART * distances[row, last])
    crowded = np.isin(pairs, checked[~isolated]).any(axis=1)
    return float(isolated.mean() * rows.size), pairs[~crowded]

"""Copies of rows, and how many observations weighted rows are worth.

Two rows may agree in every column because a table repeats a row, or because its columns take few values. A
copy says nothing new: what leaves the row out must leave the copy out, too. Rows that agree by chance are
separate observations, and leaving all of them out would blind a row to its own class.

The two are told apart by the rows that agree in all columns *but one*. Of the pairs that agree in all
columns but j, chance would let a share agree in j as well: :math:`p_j` for each :math:`1 - p_j` that do not,
where :math:`p_j` is the share of all pairs of rows that agree in column j. So it explains about
:math:`N_j p_j / (1 - p_j)` pairs of equal rows, where :math:`N_j` pairs agree in all columns but j; the
median over the columns counts. Equal rows are copies if this is less than half of their pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# A column with more values is not looked at for being determined by others, as indicators of levels are.
_FEW_VALUES = 20

# Rows that agree in a single column, or as few rows as there are values, are copies only if they are not
# repeated more often than this on average.
_FEW_COPIES = 4

# As many rows tell chance from copies.
_ENOUGH_ROWS = 20_000

_CHUNK = 4096


def effective_number(weights: Floats) -> float:
    """Return Kish's effective number of weighted rows, (sum w)^2 / sum w^2.

    It is the number of rows where all weights are alike, does not change when all are multiplied, and does
    not jump when the weight of a row goes to zero.
    """
    shares = weights / weights.max(initial=np.finfo(np.float64).tiny)
    return float(shares.sum() ** 2 / max((shares * shares).sum(), 1.0))


def merge_copies(X: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Make one row of all copies of it, with the sum of their weights."""
    numbers = number_copies(X)
    if numbers is None:
        return X, weights
    _, first = np.unique(numbers, return_index=True)
    merged = np.bincount(numbers, weights).astype(np.float64)
    return X[first], None if (merged == merged[0]).all() else merged


def number_copies(X: Floats) -> Integers | None:
    """Number the rows of a table so that copies, and only they, share a number; None if there are none."""
    keys = _row_keys(X)
    in_order = np.sort(keys)
    if (in_order[1:] != in_order[:-1]).all():  # which is nearly always so, and found in a moment
        return None
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(X[first][codes], X):  # rows that differ share a key
        _, first, codes = np.unique(X, axis=0, return_index=True, return_inverse=True)
    m = np.bincount(codes.reshape(-1))
    if m.size == len(X) or _agree_by_chance(X[first], m):
        return None
    rank = np.argsort(np.argsort(first))  # numbers rise with the first row of each
    return rank[codes.reshape(-1)]


def _agree_by_chance(distinct: Floats, m: Integers) -> bool:
    """Whether chance explains at least half of the pairs of equal rows.

    Parameters
    ----------
    distinct : (n_distinct, n_features) rows that differ.
    m : (n_distinct,) how many rows there are of each.
    """
    equal, often = _n_pairs(m), m.sum() > _FEW_COPIES * m.size
    # Some of the rows will do: pairs among them are fewer by the square of their share.
    step = -(-m.size // _ENOUGH_ROWS)
    distinct, m = distinct[::step], m[::step]
    kept = _independent_columns(distinct)
    if kept.size <= 1 or (m.size <= _FEW_VALUES and often):
        return bool(often)
    hashes = _mixed(_bits(distinct[:, kept]), kept.astype(np.uint64))
    whole = hashes.sum(axis=1, dtype=np.uint64)
    explained = []
    for values in hashes.T:
        agree = _n_pairs(_totals(values, m))
        all_but_one = _n_pairs(_totals(whole - values, m)) - _n_pairs(m)
        explained.append(all_but_one * agree / max(_n_pairs(m.sum()) - agree, 1.0))
    return bool(np.median(explained) * step**2 >= 0.5 * equal)


def _independent_columns(X: Floats) -> Integers:
    """Columns that vary, without those of few values that are sums of others of them, as indicators are."""
    n_values = np.array([np.unique(x).size for x in X.T])
    few = np.flatnonzero((n_values > 1) & (n_values <= _FEW_VALUES))
    if few.size:
        centred = X[:, few] - X[:, few].mean(axis=0)
        R, order = qr(centred / np.abs(centred).max(axis=0), mode="r", pivoting=True)
        size = np.abs(np.diag(R))
        few = few[order[: size.size][size > 1e-9 * size[0]]]
    return np.sort(np.concatenate([few, np.flatnonzero(n_values > _FEW_VALUES)]))


def _n_pairs(counts: Integers) -> float:
    """Number of pairs within groups of these sizes."""
    sizes = np.asarray(counts, dtype=np.float64)
    return float((0.5 * sizes * (sizes - 1.0)).sum())


def _totals(keys: Words, m: Integers) -> Integers:
    """Sums of m over equal keys."""
    _, group = np.unique(keys, return_inverse=True)
    return np.bincount(group, m).astype(np.int64)


def _row_keys(X: Floats) -> Words:
    """One number per row, which equal rows share and others hardly ever do."""
    salt = np.arange(X.shape[1], dtype=np.uint64)
    keys = np.empty(len(X), dtype=np.uint64)
    for first in range(0, len(X), _CHUNK):  # which stays in the cache
        chunk = slice(first, first + _CHUNK)
        keys[chunk] = _mixed(_bits(X[chunk]), salt).sum(axis=1, dtype=np.uint64)
    return keys


def _bits(X: Floats) -> Words:
    """The bits of doubles; of both zeros those of the positive one."""
    return (X + 0.0).view(np.uint64)


def _mixed(bits: Words, salt: Words) -> Words:
    """Scatter bits (splitmix64): numbers that differ in few of them become unlike each other."""
    z = bits + (salt + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = z ^ (z >> np.uint64(31))
    return mixed

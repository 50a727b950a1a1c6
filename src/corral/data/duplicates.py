r"""Duplicates: rows that a table repeats, distinguished from rows that agree by chance.

Two rows may agree in every column because a table repeats a row, or because its columns take few values. A
duplicate has no new information: leaving a row out must leave out its duplicates, too. Rows that agree by
chance are separate observations, and leaving all of them out would hide a part of the class.

Rows that nearly agree distinguish the two. Let :math:`N_j` pairs of rows differ in column j alone, and
:math:`N_{jk}` in j and k alone. Among pairs that agree in all other columns, agreeing in j and agreeing in k
are nearly independent, so chance explains :math:`N_j N_k / N_{jk}` pairs of equal rows, or, from all pairs of
columns together,

.. math::

    \sum_{j<k} N_j N_k \Big/ \sum_{j<k} N_{jk}.

Equal rows are duplicates if this is less than a fifth of their pairs, and if so many are improbable by chance
where columns are independent. Of all N pairs of rows, E are equal and :math:`A_j` agree in j. Either the
number of repeated rows is too large for a Poisson number of mean :math:`N \prod_j (A_j / N)`, or E is too
large for a binomial number of :math:`E + N_j` pairs with the probability :math:`A_j / N`, where j is the
column in which most pairs agree. Each test has the level 1/1000: at most about two tables of noise in 1,000
are said to have duplicates.

Columns of few values that depend on each other linearly, as indicators of the categories of one variable do,
count as one column (few are at most twenty, and at most half as many as different rows). Rows that repeat
more than three times on average are separate in a single column. In several columns they are separate if at
most twenty rows differ, unless two columns order at least four different rows differently and have fractions
and no ties: such measurements tie only in duplicates.

A single column has no others to agree in. If :math:`f_k` values stand in k rows each, chance (a mixture of
Poisson distributions) makes :math:`f_2^2` at most :math:`\tfrac 3 2 f_1 f_3`: equal rows are duplicates if
:math:`\sqrt{3 f_1 f_3 / 2}` is less than a fifth of :math:`f_2`.

A table that is appended to itself has duplicates of rows that agree by chance, too. It is recognized by how
often rows occur, labels included: any mixture of Poisson distributions has :math:`f_k^2 \le \frac{k + 1}{k}
f_{k-1} f_{k+1}` on average. If more than twenty different rows occur k times each, and these are more than
five times the root of the right side, then k of the equal rows of a class are one row, and the next k
another.

If rows belong to groups, two groups count as one if more than half of the different rows of the smaller group
are duplicates of rows of the other: a group was entered twice. Otherwise each group keeps its duplicates as
separate rows, since groups may share a blank, a control or a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import betainc, pdtrc

from corral.array_types import Bools, Floats, Integers
from corral.data.hashing import Words, row_keys

# A column with more values is not tested for being determined by others, as indicators of categories are.
_FEW_VALUES = 20

# Rows that agree in a single column, or in a table of as few different rows, are duplicates only if they do
# not repeat more often than this on average.
_FEW_REPEATS = 3

# Fewer rows may have the same order in two columns, or the reverse one, by chance.
_LEAST_ORDERED = 4

# If chance explains one in so many pairs of equal rows, it may explain all: the number is only an estimate.
ONE_IN = 5

# The level of each test that equal rows are more than independent columns have by chance.
_SIGNIFICANCE_LEVEL = 1e-3

# So many rows, and about so many pairs of columns, are enough to distinguish duplicates from chance.
_ENOUGH_ROWS = 20_000
_ENOUGH_PAIRS = 200

# If more groups hold a row, each is compared only with the next in size: pairs would be too many.
_FEW_HOLDERS = 3

_ROUNDING = 1e-6


def merge_duplicates(numbers: Integers, weights: Floats | None) -> tuple[Integers, Floats]:
    """Make one row of all rows that share a number, with the sum of their weights.

    Returns the positions of the first row of each number, in order, and the weights.
    """
    numbers = _in_order(numbers)
    first = np.unique(numbers, return_index=True)[1]
    return first, np.bincount(numbers, weights).astype(np.float64)


def number_duplicates(X: Floats, codes: Integers | None = None) -> Integers | None:
    """Number the rows of a table so that duplicates, and only they, share a number; None if there are none.

    A missing value counts as a value like others, but a row without any value is no duplicate of another.
    `codes` (n_rows,) are numbers of classes, None if all rows are of one class.
    """
    codes = np.zeros(len(X), dtype=np.int64) if codes is None else codes
    has_values = ~np.isnan(X).all(axis=1)
    duplicates = _number_complete(filled(X[has_values]), codes[has_values])
    if duplicates is None:
        return None
    numbers = np.arange(len(X), 2 * len(X))  # rows without any value have numbers of their own
    numbers[has_values] = duplicates
    return _in_order(numbers)


def duplicates_and_groups(
    duplicates: Integers | None, groups: Integers | None, n_rows: int
) -> tuple[Integers | None, Integers]:
    """Combine duplicates and groups: which rows are merged, and which are left out together.

    Parameters
    ----------
    duplicates, groups : (n_rows,) numbers that duplicates, and rows of a group, share, or None.

    Returns
    -------
    duplicates : (n_rows,) numbers of duplicates; equal rows of groups that stay apart are none. None if there
        are no duplicates.
    group_ids : (n_rows,) numbers of what is left out together.
    """
    if groups is None:
        return duplicates, np.arange(n_rows) if duplicates is None else duplicates
    _, group = np.unique(groups, return_inverse=True)
    if duplicates is None:
        return None, group
    group_ids = _joined_groups(duplicates, group)[group]
    duplicates = _in_order(duplicates * (group_ids.max(initial=-1) + 1) + group_ids)
    return duplicates if np.unique(duplicates).size < n_rows else None, group_ids


def _joined_groups(duplicates: Integers, group: Integers) -> Integers:
    """Numbers (n_groups,) shared by groups that share most of their rows.

    A group that holds a row is compared with the next larger one that holds it, and with all if they are few.
    """
    n_groups = int(group.max(initial=-1)) + 1
    row, holder = np.divmod(np.unique(duplicates * n_groups + group), max(n_groups, 1))
    n_different = np.bincount(holder, minlength=n_groups)
    order = np.lexsort((holder, n_different[holder], row))
    row, holder = row[order], holder[order]
    are_few = np.bincount(row)[row] <= _FEW_HOLDERS
    pairs = []
    for step in range(1, _FEW_HOLDERS):
        is_pair = (row[step:] == row[:-step]) & (are_few[step:] | (step == 1))
        smaller, larger = holder[:-step][is_pair], holder[step:][is_pair]
        pairs.append(smaller * n_groups + larger)
    pair, n_shared = np.unique(np.concatenate(pairs), return_counts=True)
    smaller, larger = np.divmod(pair, max(n_groups, 1))
    alike = 2 * n_shared > n_different[smaller]
    ones = np.ones(np.count_nonzero(alike))
    links = coo_array((ones, (smaller[alike], larger[alike])), shape=(n_groups, n_groups))
    joined: Integers = connected_components(links, directed=False)[1].astype(np.int64)
    return joined


def filled(X: Floats) -> Floats:
    """Replace the missing values of each column by a value that no row has."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    largest = np.where(missing, -np.inf, X).max(axis=0, initial=-np.inf)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(over="ignore"):
        unused = largest + 1.0 + np.abs(largest)
    for j in np.flatnonzero(np.isinf(unused)):
        unused[j] = largest[j]
        while unused[j] in X[:, j]:
            unused[j] = np.nextafter(unused[j], 0.0)
    return np.where(missing, unused, X)


def _number_complete(X: Floats, labels: Integers) -> Integers | None:
    """Number the rows of a table without missing values, as `number_duplicates` does."""
    _, first, codes = np.unique(row_keys(X, np.arange(X.shape[1])), return_index=True, return_inverse=True)
    if first.size == len(X):
        return None
    if not np.array_equal(X[first][codes], X):  # rows that differ share a key
        _, first, codes = np.unique(X, axis=0, return_index=True, return_inverse=True)
        codes = codes.reshape(-1)
    m = np.bincount(codes)
    if m.size == len(X):
        return None
    if not _agree_by_chance(X[first], m):
        return codes
    labelled = np.unique(codes * (labels.max() + 1) + labels, return_inverse=True)[1]
    n_times = _times_repeated(np.bincount(labelled))
    return None if n_times == 1 else _divided(labelled, n_times)


def _in_order(codes: Integers) -> Integers:
    """Renumber codes 0, 1, ... in order of first appearance."""
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    rank: Integers = np.argsort(np.argsort(first))
    return rank[which]


def _times_repeated(m: Integers) -> int:
    """How often a table was appended to itself, from the number `m` of equal rows of each; 1 if never."""
    f = np.bincount(m, minlength=3)
    fewer, equal, more = (np.append(f, 0)[k : k + f.size - 1] for k in (0, 1, 2))
    k = np.arange(1, f.size)
    by_chance = np.sqrt((k + 1) / k * np.maximum(fewer, 1) * np.maximum(more, 1))
    repeats = k[(k > 1) & (equal > _FEW_VALUES) & (equal > ONE_IN * by_chance)]
    return int(repeats[0]) if repeats.size else 1


def _divided(codes: Integers, n_times: int) -> Integers:
    """Divide rows that share a code into numbers of `n_times` rows each, or a few more.

    In a table that is appended to itself, duplicates are in the order of the rows that agree by chance.
    """
    order = np.argsort(codes, kind="stable")
    m = np.bincount(codes)
    n_rows = np.maximum(m // n_times, 1)
    occurrence = np.arange(codes.size) - np.repeat(m.cumsum() - m, m)
    numbers = np.empty(codes.size, dtype=np.int64)
    numbers[order] = np.repeat(n_rows.cumsum() - n_rows, m) + occurrence % np.repeat(n_rows, m)
    return numbers


def _agree_by_chance(distinct: Floats, m: Integers) -> bool:
    """Whether chance explains enough of the pairs of equal rows; `m` (n_distinct,) rows are equal to each."""
    often = bool(m.sum() > _FEW_REPEATS * m.size)
    # A subsample is enough: it has fewer pairs of different rows by the square of its share of the rows.
    step = -(-m.size // _ENOUGH_ROWS)
    subsample = distinct[::step]
    variables = _variables(subsample)
    if len(variables) <= 1:
        return often or _repeats_mix(m)
    if m.size <= _FEW_VALUES and often and not _tie_only_whole(distinct):
        return True
    pairs = _count_pairs(subsample, variables, m[::step], times=step**2)
    return _chance_explains(pairs, _n_pairs(m), n_repeats=int(m.sum()) - m.size, n_total=_n_pairs(m.sum()))


def _chance_explains(pairs: _PairCounts, n_equal: float, *, n_repeats: int, n_total: float) -> bool:
    """Whether chance explains the pairs of equal rows; the module docstring has the rule."""
    if pairs.expected >= n_equal / ONE_IN:
        return True
    shares = (n_equal + pairs.agreeing_in_one) / n_total
    coarsest = shares.argmax()
    n_others = n_equal + pairs.differing_in_one[coarsest]  # pairs that agree in all other variables
    by_numbers = pdtrc(n_repeats - 1, n_total * shares.prod())
    by_coarsest = betainc(n_equal, n_others - n_equal + 1.0, shares[coarsest])
    return bool(min(by_numbers, by_coarsest) > _SIGNIFICANCE_LEVEL)


def _tie_only_whole(distinct: Floats) -> bool:
    """Whether two columns are measurements without ties, and neither is a function of the other's ranks.

    Codes of categories have no fractions, and a column that is computed from another mostly keeps its order.
    """
    if len(distinct) < _LEAST_ORDERED:
        return False
    orders = set()
    for x in distinct.T:
        if (x != np.rint(x)).any() and np.unique(x).size == x.size:
            order = tuple(np.argsort(x).tolist())
            orders.add(min(order, order[::-1]))
    return len(orders) > 1


def _repeats_mix(m: Integers) -> bool:
    """Whether numbers of values that occur once and thrice explain enough of the values that occur twice."""
    once, twice, thrice = np.bincount(m, minlength=4)[1:4].tolist()
    return bool(1.5 * once * thrice >= (max(twice, 1) / ONE_IN) ** 2)


class _PairCounts(NamedTuple):
    """Numbers of pairs of rows that are not equal, by the variables in which they agree."""

    agreeing_in_one: Floats  # (n_variables,) in at least this one
    differing_in_one: Floats  # (n_variables,) in all others
    expected: (
        float  # how many pairs of equal rows the pairs that differ in one and in two variables let expect
    )


def _count_pairs(distinct: Floats, variables: Sequence[Integers], m: Integers, *, times: int) -> _PairCounts:
    """Count pairs of unequal rows; `m` (n_distinct,) rows equal each distinct row. Counts are multiplied."""
    hashes = [row_keys(distinct[:, columns], columns) for columns in variables]
    row_hashes = np.sum(hashes, axis=0, dtype=np.uint64)
    equal = _n_pairs(m)
    agreeing = np.array([n_equal_pairs(values, m) for values in hashes]) - equal
    one = np.array([n_equal_pairs(row_hashes - values, m) for values in hashes]) - equal
    expected = differing = 0.0
    for j, k in _pairs(len(variables)):
        differing += n_equal_pairs(row_hashes - hashes[j] - hashes[k], m) - one[j] - one[k] - equal
        expected += one[j] * one[k]
    return _PairCounts(times * agreeing, times * one, times * expected / max(differing, 1.0))


def _pairs(d: int) -> list[tuple[int, int]]:
    """All pairs of d variables or, if they are too many, each variable with a few that follow it."""
    n_next = min(-(-_ENOUGH_PAIRS // d), d - 1)
    pairs = [(j, (j + s) % d) for j in range(d) for s in range(1, n_next + 1)]
    return sorted({(min(pair), max(pair)) for pair in pairs})


def _variables(X: Floats) -> list[Integers]:
    """Columns that vary; columns of few values that depend on each other linearly are one variable."""
    n_values = np.array([np.unique(x).size for x in X.T])
    # In a small table a column of measurements has few values, too, but nearly as many as rows.
    are_few = (n_values <= _FEW_VALUES) & (2 * n_values <= len(X))
    few = np.flatnonzero((n_values > 1) & are_few)
    single = [np.array([j]) for j in np.flatnonzero((n_values > 1) & ~are_few)]
    if not few.size:
        return single
    shares = X[:, few] / np.abs(X[:, few]).max(axis=0)  # so that sums do not overflow
    centered = shares - shares.mean(axis=0)
    centered /= np.linalg.norm(centered, axis=0)
    if len(centered) > few.size:  # fewer numbers with the same lengths and angles
        squares, axes = eigh(centered.T @ centered)
        centered = np.sqrt(np.maximum(squares, 0.0))[:, np.newaxis] * axes.T
    n_groups, group = connected_components(_dependent(centered))
    return [few[group == a] for a in range(n_groups)] + single


def _dependent(X: Floats) -> Bools:
    """Mask (n_columns, n_columns): column i, of length 1, is a linear combination that contains column j."""
    R, order = qr(X, mode="r", pivoting=True)
    rank = int((np.abs(np.diag(R)) > _ROUNDING).sum())
    coefficients = np.linalg.solve(R[:rank, :rank], R[:rank, rank:])
    made_of = np.zeros((X.shape[1], X.shape[1]), dtype=np.bool_)
    made_of[np.ix_(order[rank:], order[:rank])] = np.abs(coefficients.T) > _ROUNDING
    return made_of


def n_equal_pairs(keys: Words, m: Integers | None = None) -> float:
    """Number of pairs of rows with equal keys; each key stands for `m` (n_keys,) rows, or for one."""
    if m is None:
        return _n_pairs(np.unique(keys, return_counts=True)[1])
    return _n_pairs(np.bincount(np.unique(keys, return_inverse=True)[1], m))


def _n_pairs(sizes: Integers | Floats) -> float:
    """Number of pairs within groups of these sizes."""
    return float(np.sum(0.5 * sizes * (sizes - 1.0)))

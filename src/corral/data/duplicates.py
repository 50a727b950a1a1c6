r"""Duplicates: rows that a table repeats, distinguished from rows that agree by chance.

Rows are equal if they have the same value in every column. Equal rows are duplicates if the table repeats a
row. Otherwise they are equal by chance, because columns have few values. A duplicate has no new information:
if a row is left out, its duplicates must be left out, too. Rows that are equal by chance are separate
observations, and leaving out all of them would remove a part of the class.

The number of pairs that are equal by chance is estimated from pairs of rows that are nearly equal. Let
:math:`N_j` pairs of rows differ in column j only, and :math:`N_{jk}` pairs in j and k only. Consider the
pairs that agree in all columns except perhaps j and k. If agreement in j and agreement in k are nearly
independent among these pairs, then :math:`N_j N_k / N_{jk}` pairs of rows are equal by chance. The estimate
from all pairs of columns together is

.. math::

    \sum_{j<k} N_j N_k \Big/ \sum_{j<k} N_{jk}.

Equal rows are duplicates if two conditions hold. First, the estimate is less than a fifth of the number of
pairs of equal rows. Second, at least one of two tests rejects the hypothesis that columns are independent, at
the significance level 1/1000. Let N be the number of all pairs of rows, E the number of equal pairs, and
:math:`A_j` the number of pairs that agree in column j. One test compares the number of repeated rows with a
Poisson distribution of mean :math:`N \prod_j (A_j / N)`. The other test compares E with a binomial
distribution of :math:`E + N_j` pairs and probability :math:`A_j / N`, where j is the column in which most
pairs agree. So duplicates are found in at most about two of 1,000 tables of noise.

**Dependent columns.** Columns of few values that are linearly dependent, such as indicators of the categories
of one variable, are treated as one column. A column has few values if it has at most twenty, and at most half
as many as there are different rows.

**Few different rows.** Suppose that each different row occurs more than three times on average. In a table of
a single column, equal rows are then not duplicates. In a table of several columns, they are not duplicates if
there are at most twenty different rows, with one exception: the rule above still applies if there are at
least four different rows, and if two columns with fractions have no ties among the different rows and have
neither the same nor the reverse order. Such columns are measurements, which are rarely equal by chance.

**A single column.** Here no other column can be compared. Let :math:`f_k` be the number of values that occur
in k rows each. If these numbers come from a mixture of Poisson distributions, :math:`f_2^2` is on average at
most :math:`\tfrac 3 2 f_1 f_3`. Equal rows are duplicates if :math:`\sqrt{3 f_1 f_3 / 2}` is less than a
fifth of :math:`f_2`.

**Tables appended to themselves.** Such a table may contain both duplicates and rows that are equal by chance.
It is recognized by how often rows occur, labels included: any mixture of Poisson distributions has
:math:`f_k^2 \le \frac{k + 1}{k} f_{k-1} f_{k+1}` on average. If more than twenty different rows occur k times
each, and :math:`f_k` is more than five times the square root of the right side, then each row of the original
table is assumed to occur k times.

**Groups.** If more than half of the different rows of a group are duplicates of rows of a larger group, the
two groups are merged: a group was entered twice. Otherwise duplicates in different groups stay separate rows,
because groups may share a blank, a control or a default.
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

# Largest number of values of a column that may be an indicator of a category, and largest number of different
# rows to which `_FEW_REPEATS` applies.
_FEW_VALUES = 20

# In a table of a single column or of few different rows, equal rows are duplicates only if each different row
# occurs at most this number of times on average.
_FEW_REPEATS = 3

# Fewer different rows may have the same or the reverse order in two columns by chance.
_LEAST_ORDERED = 4

# If at least one in this number of pairs of equal rows is expected by chance, all of them may be equal by
# chance, because the expected number is only an estimate.
ONE_IN = 5

# Significance level of each test of the number of equal rows.
_SIGNIFICANCE_LEVEL = 1e-3

# Limit of the number of different rows, and approximate limit of the number of pairs of columns, that are
# compared.
_ENOUGH_ROWS = 20_000
_ENOUGH_PAIRS = 200

# If a row occurs in more groups than this, each group is compared only with the next larger group, because
# there would be too many pairs of groups.
_FEW_HOLDERS = 3

_ROUNDING = 1e-6


def merge_duplicates(numbers: Integers, weights: Floats | None) -> tuple[Integers, Floats]:
    """Merge the rows with equal entries of `numbers` (n_rows,) into one row with the sum of their weights.

    Returns the position of the first row of each number, sorted, and the weight of each merged row.
    """
    numbers = _in_order(numbers)
    first = np.unique(numbers, return_index=True)[1]
    return first, np.bincount(numbers, weights).astype(np.float64)


def number_duplicates(X: Floats, codes: Integers | None = None) -> Integers | None:
    """Return a number for each row (n_rows,) that only duplicates share; None if there are no duplicates.

    Two missing values are equal, but a row in which all values are missing is not a duplicate. `codes`
    (n_rows,) are class codes; None if all rows are in one class.
    """
    codes = np.zeros(len(X), dtype=np.int64) if codes is None else codes
    has_values = ~np.isnan(X).all(axis=1)
    duplicates = _number_complete(filled(X[has_values]), codes[has_values])
    if duplicates is None:
        return None
    numbers = np.arange(len(X), 2 * len(X))  # rows without values get numbers that no other row has
    numbers[has_values] = duplicates
    return _in_order(numbers)


def duplicates_and_groups(
    duplicates: Integers | None, groups: Integers | None, n_rows: int
) -> tuple[Integers | None, Integers]:
    """Combine duplicates and groups: which rows are merged, and which rows are left out together.

    Parameters
    ----------
    duplicates : (n_rows,) numbers that duplicates share; None if there are no duplicates.
    groups : (n_rows,) group ids; None if there are no groups.

    Returns
    -------
    duplicates : (n_rows,) numbers that duplicates in the same group share; None if there are no duplicates.
    group_ids : (n_rows,) ids that are equal for rows that are left out together.
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
    """Return a number for each group (n_groups,), equal for groups that are merged.

    For each row, every group that contains the row is compared with the next larger group that contains it.
    If at most `_FEW_HOLDERS` groups contain the row, all pairs of these groups are compared.
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
    """Replace the missing values of each column by a value that does not occur in the column."""
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
    """Apply `number_duplicates` to a table without missing values."""
    _, first, codes = np.unique(row_keys(X, np.arange(X.shape[1])), return_index=True, return_inverse=True)
    if first.size == len(X):
        return None
    if not np.array_equal(X[first][codes], X):  # different rows have equal keys
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
    """Return how many times each row of the original table occurs; 1 if the table was not repeated.

    `m` (n_distinct,) is the number of rows that equal each different row.
    """
    f = np.bincount(m, minlength=3)
    fewer, equal, more = (np.append(f, 0)[k : k + f.size - 1] for k in (0, 1, 2))
    k = np.arange(1, f.size)
    by_chance = np.sqrt((k + 1) / k * np.maximum(fewer, 1) * np.maximum(more, 1))
    repeats = k[(k > 1) & (equal > _FEW_VALUES) & (equal > ONE_IN * by_chance)]
    return int(repeats[0]) if repeats.size else 1


def _divided(codes: Integers, n_times: int) -> Integers:
    """Divide rows with equal codes into sets of `n_times` duplicates, or a few more; returns set numbers.

    In a table that was appended to itself, the rows that are equal by chance occur in the same order in each
    repetition. So every n-th row belongs to the same set.
    """
    order = np.argsort(codes, kind="stable")
    m = np.bincount(codes)
    n_rows = np.maximum(m // n_times, 1)
    occurrence = np.arange(codes.size) - np.repeat(m.cumsum() - m, m)
    numbers = np.empty(codes.size, dtype=np.int64)
    numbers[order] = np.repeat(n_rows.cumsum() - n_rows, m) + occurrence % np.repeat(n_rows, m)
    return numbers


def _agree_by_chance(distinct: Floats, m: Integers) -> bool:
    """Return whether rows may be equal by chance; the module docstring has the rules.

    `m` (n_distinct,) is the number of rows that equal each row of `distinct`.
    """
    often = bool(m.sum() > _FEW_REPEATS * m.size)
    # Numbers of pairs of different rows are estimated from a subsample of one in `step` rows, which has about
    # one in step**2 pairs.
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
    """Return whether the number of pairs of equal rows may be due to chance.

    Parameters
    ----------
    pairs : numbers of pairs of unequal rows.
    n_equal : number of pairs of equal rows.
    n_repeats : number of rows minus the number of different rows.
    n_total : number of all pairs of rows.
    """
    if pairs.expected >= n_equal / ONE_IN:
        return True
    shares = (n_equal + pairs.agreeing_in_one) / n_total
    coarsest = shares.argmax()
    n_others = n_equal + pairs.differing_in_one[coarsest]  # pairs that agree in all other variables
    by_numbers = pdtrc(n_repeats - 1, n_total * shares.prod())
    by_coarsest = betainc(n_equal, n_others - n_equal + 1.0, shares[coarsest])
    return bool(min(by_numbers, by_coarsest) > _SIGNIFICANCE_LEVEL)


def _tie_only_whole(distinct: Floats) -> bool:
    """Return whether two columns are measurements without ties, in different orders.

    A column is a measurement if it has fractions, which codes of categories do not have. The columns must not
    have the same or the reverse order, because one of them may be computed from the other.
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
    """Return whether values of a single column may be equal by chance; the module docstring has the rule."""
    once, twice, thrice = np.bincount(m, minlength=4)[1:4].tolist()
    return bool(1.5 * once * thrice >= (max(twice, 1) / ONE_IN) ** 2)


class _PairCounts(NamedTuple):
    """Numbers of pairs of unequal rows. A variable is a column or a set of dependent columns."""

    agreeing_in_one: Floats  # (n_variables,) number of pairs that agree at least in this variable
    differing_in_one: Floats  # (n_variables,) number of pairs that differ in this variable only
    expected: float  # number of pairs of equal rows that is expected by chance


def _count_pairs(distinct: Floats, variables: Sequence[Integers], m: Integers, *, times: int) -> _PairCounts:
    """Count pairs of unequal rows, and multiply the counts by `times`.

    `m` (n_distinct,) is the number of rows that equal each row of `distinct`.
    """
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
    """Return all pairs of d variables; if there are too many, pairs of each variable with the next few."""
    n_next = min(-(-_ENOUGH_PAIRS // d), d - 1)
    pairs = [(j, (j + s) % d) for j in range(d) for s in range(1, n_next + 1)]
    return sorted({(min(pair), max(pair)) for pair in pairs})


def _variables(X: Floats) -> list[Integers]:
    """Return the variables: sets of columns that vary, with dependent columns of few values in one set."""
    n_values = np.array([np.unique(x).size for x in X.T])
    # In a small table, a column of measurements has few values, too, but nearly as many values as rows.
    are_few = (n_values <= _FEW_VALUES) & (2 * n_values <= len(X))
    few = np.flatnonzero((n_values > 1) & are_few)
    single = [np.array([j]) for j in np.flatnonzero((n_values > 1) & ~are_few)]
    if not few.size:
        return single
    shares = X[:, few] / np.abs(X[:, few]).max(axis=0)  # so that sums do not overflow
    centered = shares - shares.mean(axis=0)
    centered /= np.linalg.norm(centered, axis=0)
    if len(centered) > few.size:  # a smaller matrix whose columns have the same lengths and angles
        squares, axes = eigh(centered.T @ centered)
        centered = np.sqrt(np.maximum(squares, 0.0))[:, np.newaxis] * axes.T
    n_groups, group = connected_components(_dependent(centered))
    return [few[group == a] for a in range(n_groups)] + single


def _dependent(X: Floats) -> Bools:
    """Return a mask (n_columns, n_columns): whether column i is a linear combination that contains column j.

    The columns of X have length 1.
    """
    R, order = qr(X, mode="r", pivoting=True)
    rank = int((np.abs(np.diag(R)) > _ROUNDING).sum())
    coefficients = np.linalg.solve(R[:rank, :rank], R[:rank, rank:])
    made_of = np.zeros((X.shape[1], X.shape[1]), dtype=np.bool_)
    made_of[np.ix_(order[rank:], order[:rank])] = np.abs(coefficients.T) > _ROUNDING
    return made_of


def n_equal_pairs(keys: Words, m: Integers | None = None) -> float:
    """Return the number of pairs of rows with equal keys; each key represents `m` (n_keys,) rows, or one."""
    if m is None:
        return _n_pairs(np.unique(keys, return_counts=True)[1])
    return _n_pairs(np.bincount(np.unique(keys, return_inverse=True)[1], m))


def _n_pairs(sizes: Integers | Floats) -> float:
    """Return the number of pairs of two elements of one set, summed over sets of the given sizes."""
    return float(np.sum(0.5 * sizes * (sizes - 1.0)))

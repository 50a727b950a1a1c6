"""Duplicates of rows, and the groups that they join, in plain loops over fractions."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike


def number_duplicates(X: ArrayLike, y: ArrayLike | None = None) -> list[int] | None:
    """Numbers of the rows, in order of first appearance, that duplicates share; None if there are none."""
    rows = [tuple(row) for row in np.asarray(X, dtype=float).tolist()]
    labels = [0] * len(rows) if y is None else np.asarray(y).tolist()
    first: dict[object, int] = {}
    if len(set(rows)) == len(rows):
        return None
    if not agree_by_chance(rows):
        return [first.setdefault(row, len(first)) for row in rows]
    counts = Counter(zip(rows, labels, strict=True))
    f = Counter(counts.values())
    for k in range(2, max(f) + 1):
        if f[k] > 20 and k * f[k] ** 2 > 25 * (k + 1) * max(f[k - 1], 1) * max(f[k + 1], 1):
            break
    else:
        return None
    seen: Counter = Counter()
    numbers = []
    for row in zip(rows, labels, strict=True):
        numbers.append(first.setdefault((row, seen[row] % max(counts[row] // k, 1)), len(first)))
        seen[row] += 1
    return numbers


def agree_by_chance(rows: list[tuple]) -> bool:
    """Whether equal rows are separate observations, from all pairs of rows; duplicates.py has the rule."""
    counts = Counter(rows)
    often = len(rows) > 3 * len(counts)
    variables = variables_of(list(counts))
    if len(variables) < 2:
        f = Counter(counts.values())
        return often or Fraction(3, 2) * f[1] * f[3] >= Fraction(max(f[2], 1), 5) ** 2
    if often and len(counts) <= 20 and not _tie_only_whole(list(counts)):
        return True
    equal = total = 0
    one, two, agreeing = [0] * len(variables), 0, [0] * len(variables)
    for a, b in itertools.combinations(rows, 2):
        differing = [v for v, columns in enumerate(variables) if any(a[j] != b[j] for j in columns)]
        total += 1
        equal += len(differing) == 0
        for v in set(range(len(variables))) - set(differing):
            agreeing[v] += len(differing) > 0
        two += len(differing) == 2
        if len(differing) == 1:
            one[differing[0]] += 1
    expected = sum(N_j * N_k for N_j, N_k in itertools.combinations(one, 2))
    if Fraction(expected, max(two, 1)) >= Fraction(equal, 5):
        return True
    shares = [Fraction(pairs + equal, total) for pairs in agreeing]
    mean, n_repeats = float(total * math.prod(shares)), len(rows) - len(counts)
    terms = itertools.accumulate(
        range(1, n_repeats), lambda term, k: term * mean / k, initial=math.exp(-mean)
    )
    by_numbers = 1.0 - math.fsum(terms)
    coarsest = shares.index(max(shares))
    n, q = equal + one[coarsest], float(shares[coarsest])
    by_coarsest = math.fsum(math.comb(n, k) * q**k * (1.0 - q) ** (n - k) for k in range(equal, n + 1))
    return min(by_numbers, by_coarsest) > 1e-3


def _tie_only_whole(rows: list[tuple]) -> bool:
    """Whether two columns with fractions have no ties among different rows, and two orders of them."""
    measured = [x for x in zip(*rows, strict=True) if len(set(x)) == len(x) and any(v != round(v) for v in x)]
    for x, z in itertools.combinations(measured, 2):
        pairs = itertools.combinations(range(len(rows)), 2)
        if len(rows) >= 4 and len({(x[i] < x[j]) == (z[i] < z[j]) for i, j in pairs}) == 2:
            return True
    return False


def variables_of(rows: list[tuple]) -> list[list[int]]:
    """Columns that vary, in groups: a linear combination of columns with at most 20 values joins them."""
    groups: list[list[int]] = []
    basis: list[int] = []
    for j in range(len(rows[0])):
        x = [Fraction(row[j]) for row in rows]
        if len(set(x)) == 1:
            continue
        groups.append([j])
        if len(set(x)) > 20 or 2 * len(set(x)) > len(rows):
            continue
        basis_columns = [[Fraction(1)] * len(rows)] + [[Fraction(row[k]) for row in rows] for k in basis]
        shares = _combination(basis_columns, x)
        if shares is None:
            basis.append(j)
            continue
        parts = {j} | {k for k, share in zip(basis, shares[1:], strict=True) if share != 0}
        joined = sorted(k for group in groups if parts & set(group) for k in group)
        groups = [group for group in groups if not parts & set(group)] + [joined]
    return groups


def _combination(columns: list[list[Fraction]], x: list[Fraction]) -> list[Fraction] | None:
    """Shares of independent columns whose sum is x, by elimination; None where there are none."""
    lines = [list(line) for line in zip(*columns, x, strict=True)]
    for k in range(len(columns)):
        pivot = next(i for i in range(k, len(lines)) if lines[i][k] != 0)
        lines[k], lines[pivot] = lines[pivot], lines[k]
        lines[k] = [value / lines[k][k] for value in lines[k]]
        for i in range(len(lines)):
            if i != k:
                lines[i] = [v - lines[i][k] * p for v, p in zip(lines[i], lines[k], strict=True)]
    if any(line[-1] != 0 for line in lines[len(columns) :]):
        return None
    return [line[-1] for line in lines[: len(columns)]]


def merge_duplicates(
    X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Rows, labels, weights and numbers after duplicates of a class are merged into one row."""
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    X, y, w = X[w > 0], y[w > 0], w[w > 0]
    numbers = number_duplicates(X, y)
    if numbers is None:
        return X, y, w, list(range(len(X)))
    merged: dict[tuple, list[float]] = {}
    first = {}
    for i, (number, label) in enumerate(zip(numbers, y.tolist(), strict=True)):
        merged.setdefault((number, label), []).append(w[i])
        first.setdefault((number, label), i)
    kept = list(first.values())
    return X[kept], y[kept], np.array([math.fsum(parts) for parts in merged.values()]), [n for n, _ in first]


def joined_groups(duplicates: list[int], groups: list[int]) -> dict[int, int]:
    """The least group that each is joined with: by rows of which the smaller has more than half in common.

    Of a row that more than three groups hold, each is compared with the next in size only.
    """
    rows: dict[int, set[int]] = {}
    for number, group in zip(duplicates, groups, strict=True):
        rows.setdefault(group, set()).add(number)
    shared: Counter[tuple[int, int]] = Counter()
    for number in set(duplicates):
        holders = sorted((group for group in rows if number in rows[group]), key=lambda g: (len(rows[g]), g))
        pairs = itertools.combinations(holders, 2) if len(holders) <= 3 else itertools.pairwise(holders)
        shared.update(pairs)
    joined = {group: group for group in rows}
    for (smaller, larger), n_shared in shared.items():
        if n_shared > len(rows[smaller]) / 2:
            least, other = sorted((joined[smaller], joined[larger]))
            joined = {group: least if to == other else to for group, to in joined.items()}
    return joined


def midrank(column: ArrayLike, weights: ArrayLike, value: float) -> float:
    """Share of the weight of rows below a value, and half of that at it."""
    below = equal = total = 0.0
    for x, weight in zip(column, weights, strict=True):
        total += weight
        if x < value:
            below += weight
        elif x == value:
            equal += weight
    return (below + 0.5 * equal) / total

"""Typicality, novelty and sets of labels, in plain loops over all rows."""

import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from statistics import median_low

import numpy as np
from numpy.typing import ArrayLike

from paper_oracle import floats


def conformal_pvalue(values: ArrayLike, weights: ArrayLike, x: float) -> float:
    """Share of weighted numbers that are at most x, x counted among them; n is Kish's number of them."""
    m = [Fraction(w) for w in floats(weights)]
    if not any(m):
        return 1.0
    n = sum(m) ** 2 / sum(w * w for w in m)
    at_most = sum((w for v, w in zip(floats(values), m, strict=True) if v <= x), Fraction(0))
    return float((1 + n * at_most / sum(m)) / (1 + n))


def nearest_distance(
    column: ArrayLike, group_ids: ArrayLike, x: float, group_id: Hashable, deviation: float
) -> float:
    """How far x lies from the nearest value of another group, in deviations; 0 if there is none, or no x."""
    apart = [
        abs(v - x) / deviation
        for v, row_group in zip(floats(column), list(group_ids), strict=True)
        if row_group != group_id and not math.isnan(v)
    ]
    return 0.0 if math.isnan(x) or not apart else min(apart)


class _TableWithout:
    """Columns and weights of the rows of a table without one group, with medians."""

    def __init__(self, X: ArrayLike, group_ids: ArrayLike, weights: ArrayLike, group_id: Hashable) -> None:
        left = [i for i, row_group in enumerate(list(group_ids)) if row_group != group_id]
        self.columns = [floats(column) for column in np.asarray(X, dtype=float)[left].T]
        self.weights = [floats(weights)[i] for i in left]
        self.medians = [
            median_low([v for v in column if not math.isnan(v)] or [math.nan]) for column in self.columns
        ]

    def deviation_from_median(self, j: int, x: float) -> float:
        return (x - self.medians[j]) / deviation_with(self.columns[j], self.weights, x)

    def strangeness(self, j: int, x: float, z: float) -> tuple[int, float]:
        """How many rows lie as far out on the same side, and the distance; smaller is stranger."""
        return sum(v >= x if z > 0.0 else v <= x for v in self.columns[j]), -abs(z)


def outlying_bound(X: ArrayLike, group_ids: ArrayLike, weights: ArrayLike) -> tuple[float, float]:
    """The strangest cell of the last row that is among the most outlying, each compared without its group.

    As many rows may be that with one more they are a hundredth, and at least one.
    """
    X, cells = np.asarray(X, dtype=float), []
    for i, group_id in enumerate(group_ids):
        others = _TableWithout(X, group_ids, weights, group_id)
        for j, x in enumerate(floats(X[i])):
            z = others.deviation_from_median(j, x)
            if abs(z) > 7.0:
                cells.append((*others.strangeness(j, x, z), i))
    n_most, rows = max(int(0.01 * (len(X) + 1)) - 1, 1), []
    for company, distance, i in sorted(cells):
        if i in rows:
            continue
        rows.append(i)
        if len(rows) == n_most:
            last = company, distance
    return last if len(rows) > n_most else (math.inf, 0.0)


def extremes(
    X: ArrayLike,
    group_ids: ArrayLike,
    x: ArrayLike,
    group_id: Hashable,
    weights: ArrayLike,
    bound: tuple[float, float] | None = None,
) -> list[float]:
    """How far values lie from the medians of their columns, in deviations; 0 but for the strangest beyond 7.

    A row of a group is compared with rows of other groups alone. `bound` is `outlying_bound`, if it has been
    computed.
    """
    others, results = _TableWithout(X, group_ids, weights, group_id), []
    bound = outlying_bound(X, group_ids, weights) if bound is None else bound
    for j, x_j in enumerate(floats(x)):
        z = others.deviation_from_median(j, x_j)
        counts = abs(z) > 7.0 and others.strangeness(j, x_j, z) <= bound
        results.append(abs(z) if counts else 0.0)
    return results


def extreme_term(apart: float) -> float:
    """What a distance from the median takes from a score: nothing up to 7, 64 from 9 on."""
    return 64.0 * min(1.0, max(0.0, (apart - 7.0) / 2.0))


def robust_deviation(column: ArrayLike, weights: ArrayLike) -> float:
    """Weighted deviation of a column, at most ten times that without the half per cent farthest out.

    It is 1 of a column that is constant, and at least what rounding makes of numbers so large.
    """
    present = [(v, w) for v, w in zip(floats(column), floats(weights), strict=True) if not math.isnan(v)]

    def deviation(values: list[tuple[float, float]]) -> float:
        total = sum(w for _, w in values)
        mean = sum(w * v for v, w in values) / total
        return math.sqrt(sum(w * (v - mean) ** 2 for v, w in values) / total)

    if not present:
        return 1.0
    deviation_of_all, rest = deviation(present) if len({v for v, _ in present}) > 1 else 1.0, present
    if len(present) >= 20:
        median = median_low([v for v, _ in present])
        nearest_first = sorted(present, key=lambda value: abs(value[0] - median))
        rest = nearest_first[: len(present) - math.ceil(0.005 * len(present))]
        if len({v for v, _ in rest}) > 1:
            deviation_of_all = min(deviation_of_all, 10.0 * deviation(rest))
    return max(deviation_of_all, 2e-12 * max(abs(v) for v, _ in rest))


def deviation_with(column: ArrayLike, weights: ArrayLike, x: float) -> float:
    """Deviation of a column; of a constant one what it has with x as one more row, if that is less.

    It is infinite if x is the constant, but for rounding.
    """
    present = [v for v in floats(column) if not math.isnan(v)]
    if len(set(present)) != 1 or math.isnan(x):
        return robust_deviation(column, weights)
    if abs(x - present[0]) <= (1e-6 * abs(present[0]) or 2e-12):
        return math.inf
    mean = (sum(present) + x) / (len(present) + 1)
    deviation_of_all = math.sqrt(sum((v - mean) ** 2 for v in [*present, x]) / (len(present) + 1))
    return min(robust_deviation(column, weights), deviation_of_all)


def outlyingness_in_class(
    X: ArrayLike,
    codes: ArrayLike,
    group_ids: ArrayLike,
    y: int,
    x: ArrayLike,
    group_id: Hashable,
    weights: ArrayLike,
) -> float:
    """Four times the sum of squares of how far values lie beyond three deviations from the values of class y.

    A class without values in a column is judged by the values of all rows. A row of a group is compared with
    rows of other groups alone, and so are the deviations.
    """
    X, group_ids, total = np.asarray(X, dtype=float), np.asarray(group_ids), 0.0
    others = _TableWithout(X, group_ids, weights, group_id)
    for j, x_j in enumerate(floats(x)):
        rows = (np.asarray(codes) == y) & ~np.isnan(X[:, j])
        rows = rows if rows.any() else np.ones(len(X), dtype=bool)
        deviation = deviation_with(others.columns[j], others.weights, x_j)
        apart = nearest_distance(X[rows, j], group_ids[rows], x_j, group_id, deviation)
        total += 4.0 * max(0.0, apart - 3.0) ** 2
    return total


def outlyingness(
    X: ArrayLike,
    codes: ArrayLike,
    group_ids: ArrayLike,
    x: ArrayLike,
    group_id: Hashable,
    weights: ArrayLike,
    bound: tuple[float, float] | None = None,
) -> list[float]:
    """What values far out take from the scores of a row in each class."""
    extreme = extreme_term(max(extremes(X, group_ids, x, group_id, weights, bound)))
    return [
        extreme + outlyingness_in_class(X, codes, group_ids, y, x, group_id, weights)
        for y in range(max(np.asarray(codes)) + 1)
    ]


def told_apart(unscaled_score: ArrayLike, codes: ArrayLike, weights: ArrayLike) -> float:
    """Share of pairs of a row of a class and one of others that its other classes rank, mean over classes."""
    codes, m, unscaled_score = (
        list(codes),
        floats(weights),
        [floats(row) for row in np.asarray(unscaled_score)],
    )
    scores_of = typical_scores(unscaled_score, codes, m)
    n_classes, results = len(unscaled_score[0]), []
    scores = [scores_of(row, [0.0] * n_classes) for row in unscaled_score]
    for y in range(n_classes):
        # Nine digits: what differs by rounding is equal.
        best = [float(f"{max(u for k, u in enumerate(row) if k != y):.8e}") for row in scores]
        pairs = [
            (m[i] * m[k], 1.0 if best[i] < best[k] else 0.5 if best[i] == best[k] else 0.0)
            for i, code in enumerate(codes)
            for k, other in enumerate(codes)
            if code == y and other != y
        ]
        results.append(sum(w * right for w, right in pairs) / sum(w for w, _ in pairs))
    return sum(results) / n_classes


def weighted_median(pairs: list[tuple[float, float]]) -> float:
    """The lower median of values with weights; 0 of none."""
    half, below = 0.5 * sum(w for _, w in pairs), 0.0
    for value, w in sorted(pairs):
        below += w
        if below >= half:
            return value
    return 0.0


def typical_scores(
    left_out: ArrayLike, codes: ArrayLike, weights: ArrayLike
) -> Callable[[ArrayLike, ArrayLike], list[float]]:
    """What makes scores of log densities by class, given log densities of left-out rows and their classes.

    The centre of a class is halfway between the lower weighted median of its rows' own log densities and that
    of all rows, the spread twice the mean deviation below the medians of the classes.
    """
    left_out = np.asarray(left_out, dtype=float)
    n_classes = left_out.shape[1]
    own = [
        (float(left_out[i, y]), y, float(w))
        for i, (y, w) in enumerate(zip(codes, weights, strict=True))
        if w > 0
    ]

    median_of_all = weighted_median([(value, w) for value, _, w in own])
    by_class = [[(value, w) for value, a, w in own if a == y] for y in range(n_classes)]
    medians = [weighted_median(rows) if rows else median_of_all for rows in by_class]
    lower = sum(w * max(0.0, medians[y] - value) for value, y, w in own)
    spread = 2.0 * lower / sum(w for _, _, w in own) or 1.0
    centers = [(m + median_of_all) / 2.0 for m in medians]
    return lambda log_density, terms: [
        (log_p - c) / spread - term
        for log_p, c, term in zip(floats(log_density), centers, floats(terms), strict=True)
    ]


def interpolated_pvalue(values: ArrayLike, weights: ArrayLike, x: float) -> float:
    """P-value of x, interpolated between the ranks of values, and by the margin below the lowest of them."""
    rows = sorted((value, w) for value, w in zip(floats(values), floats(weights), strict=True) if w > 0.0)
    total = sum(w for _, w in rows)
    n = total**2 / sum(w**2 for _, w in rows)
    numbers, x = [value for value, _ in rows], x + 1e-9 * (1.0 + abs(x))
    if x >= numbers[-1]:
        return 1.0
    if x >= numbers[0]:
        i = max(i for i, value in enumerate(numbers) if value <= x)
        way = (x - numbers[i]) / (numbers[i + 1] - numbers[i])
        return (1.0 + n / total * (sum(w for _, w in rows[:i]) + way * rows[i][1])) / (1.0 + n)
    margin, apart = numbers[0] - x, [value - numbers[0] for value in numbers]
    if margin >= apart[-1]:
        k = len(numbers) * margin / apart[-1]
    else:
        i = max(i for i, distance in enumerate(apart) if distance <= margin)
        k = 1.0 + i + (margin - apart[i]) / (apart[i + 1] - apart[i])
    return 2.0 / (k + 1.0) / (1.0 + n)


def judge(
    X: ArrayLike,
    codes: ArrayLike,
    group_ids: ArrayLike,
    weights: ArrayLike,
    samples: ArrayLike,
    log_density: Callable[[list[float], int, Hashable], float],
    n_classes: int,
) -> tuple[list[list[float]], list[float]]:
    """Typicality of samples by class, and their novelty, every training row being left out with its group.

    ``log_density`` takes a row, a class, and the group to leave out, None for a sample. Weights are 0
    where a class has no row of another group.
    """
    X = np.asarray(X, dtype=float)
    m = [
        w if any(c == y and u != group_id for c, u in zip(codes, group_ids, strict=True)) else 0.0
        for w, y, group_id in zip(floats(weights), codes, group_ids, strict=True)
    ]
    left_out = [
        [log_density(floats(x), y, group_id) for y in range(n_classes)]
        for x, group_id in zip(X, group_ids, strict=True)
    ]
    scores_of, bound = typical_scores(left_out, codes, m), outlying_bound(X, group_ids, weights)

    def terms(x: ArrayLike, group_id: Hashable) -> list[float]:
        return outlyingness(X, codes, group_ids, x, group_id, weights, bound)

    row_scores = [
        scores_of(log_p, terms(x, group_id))
        for log_p, x, group_id in zip(left_out, X, group_ids, strict=True)
    ]
    typicality, novelty = [], []
    for x in np.asarray(samples, dtype=float):
        scores = scores_of([log_density(floats(x), y, None) for y in range(n_classes)], terms(x, None))
        pvalues = []
        for y in range(n_classes):
            has_rows = any(w > 0 and c == y for w, c in zip(m, codes, strict=True))
            rows = [i for i, c in enumerate(codes) if c == y or not has_rows]
            own = [row_scores[i][codes[i]] for i in rows]
            pvalues.append(conformal_pvalue(own, [m[i] for i in rows], scores[y]))
        typicality.append(pvalues)
        novelty.append(interpolated_pvalue([max(row_group) for row_group in row_scores], m, max(scores)))
    return typicality, novelty

"""Shapley values by all orders, the evidence and the novelty that they divide, in plain loops."""

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from conformal.conformal_oracle import extreme_term, extremes, outlyingness_in_class, weighted_median
from paper_oracle import floats, kernel_log_density


def mean_evidence(
    X: ArrayLike,
    y: ArrayLike,
    bandwidths: Callable[[int, int | None, tuple[float, ...]], list[float]],
    priors: ArrayLike,
    weights: ArrayLike | None = None,
) -> list[list[float]]:
    """Mean evidence of each variable for each class at its own rows, each row left out, without scaling.

    The evidence is what a variable adds to the log odds of the class and the most probable other one.
    ``bandwidths`` takes a class, the position of the row to leave out of it, if any, and x.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    m = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    d, classes = X.shape[1], sorted(set(y.tolist()))

    def log_density(a: int, i: int, coalition: frozenset[int]) -> float:
        h = bandwidths(a, i if y[i] == a else None, tuple(floats(X[i])))
        h = [h_j if j in coalition else math.inf for j, h_j in enumerate(h)]
        others = np.where(np.arange(len(X)) == i, 0.0, m)
        return kernel_log_density(X[y == a], X[i], h, weights=others[y == a])

    means = []
    for a in classes:
        sums = [0.0] * d
        for i in np.flatnonzero(y == a):
            scores = {
                b: math.log(priors[classes.index(b)]) + log_density(b, i, frozenset(range(d)))
                for b in classes
                if b != a
            }
            rival = max(scores, key=scores.__getitem__)
            contributions = shapley(
                lambda coalition, i=i, a=a, b=rival: (
                    log_density(a, i, coalition) - log_density(b, i, coalition)
                ),
                list(range(d)),
            )
            for j in range(d):
                sums[j] += m[i] * contributions[j]
        means.append([total / m[y == a].sum() for total in sums])
    return means


def shapley(value: Callable[[frozenset[int]], float], players: list[int]) -> list[float]:
    """What each player adds to the value of those before him, on average over all orders."""
    values = {
        frozenset(s): value(frozenset(s))
        for k in range(len(players) + 1)
        for s in itertools.combinations(players, k)
    }
    sums = dict.fromkeys(players, 0.0)
    for order in itertools.permutations(players):
        before: frozenset[int] = frozenset()
        for j in order:
            sums[j] += values[before | {j}] - values[before]
            before |= {j}
    return [sums[j] / math.factorial(len(players)) for j in players]


def novelty_parts(
    X: ArrayLike,
    codes: ArrayLike,
    group_ids: ArrayLike,
    weights: ArrayLike,
    y: int,
    x: ArrayLike,
    log_density: Callable[[int | None, frozenset[int]], float],
    spread: float,
) -> list[float]:
    """How much each variable makes x unlike class y, where log densities have a spread.

    ``log_density`` takes the position of a row, which is left out with its group, or for None, which is
    x, and for the variables that are known.
    """
    X, x, m = np.asarray(X, dtype=float), floats(x), floats(weights)

    def parts(i: int | None) -> dict[int, float]:
        players = [j for j, x_j in enumerate(x if i is None else floats(X[i])) if not math.isnan(x_j)]
        return dict(zip(players, shapley(lambda coalition: log_density(i, coalition), players), strict=True))

    rows = [i for i, code in enumerate(codes) if code == y]
    parts_of_rows, sample_parts, contributions = {i: parts(i) for i in rows}, parts(None), []
    for j in range(X.shape[1]):
        if j not in sample_parts:
            contributions.append(0.0)
            continue
        median = weighted_median(
            [(row_parts[j], m[i]) for i, row_parts in parts_of_rows.items() if j in row_parts]
        )
        alone = [x[k] if k == j else math.nan for k in range(len(x))]
        contributions.append(
            (median - sample_parts[j]) / spread
            + outlyingness_in_class(X, codes, group_ids, y, alone, None, m)
        )
    apart = extremes(X, group_ids, x, None, m)
    contributions[apart.index(max(apart))] += extreme_term(max(apart))
    return contributions

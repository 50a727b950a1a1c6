"""Scales of columns, and the rival, least squares probabilistic classification.

The rival solves linear equations, so its numbers are rounded.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from data.data_oracle import midrank


def scaling_function(
    X: np.ndarray, scale: str | None, weights: ArrayLike | None = None
) -> Callable[[np.ndarray], np.ndarray]:
    """The scale of pooled rows, by the formulas of the documentation; as a function of new rows."""
    if scale == "rank":
        w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)

        def ranks(Q: np.ndarray) -> np.ndarray:
            columns = []
            for x, q in zip(X.T, Q.T, strict=True):
                values = np.unique(x)
                share = [midrank(x, w, value) for value in values]
                columns.append(np.interp(q, values, share))
            return np.column_stack(columns)

        return ranks
    center, width = center_and_width(X, scale, weights)
    return lambda Q: (Q - center) / width


def center_and_width(
    X: np.ndarray, scale: str | None, weights: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Center and width of each column on a scale other than ranks; the width of a constant column is 1."""
    if scale is None:
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    center, width = X.min(axis=0), np.ptp(X, axis=0)
    constant = width == 0
    if scale == "standard":
        center = np.average(X, axis=0, weights=weights)
        width = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weights))
    return np.where(constant, X.min(axis=0), center), np.where(constant, 1.0, width)


def least_squares_outputs(
    X: ArrayLike,
    y: ArrayLike,
    new_rows: ArrayLike,
    *,
    sigma: float,
    lam: float,
    centers: ArrayLike | None = None,
) -> np.ndarray:
    """Outputs q_y of the least-squares classifier at new rows, one column per class.

    q_y(x) = sum_j a_j K(x, c_j) minimises (1/n) sum_i (q_y(x_i) - [y_i = y])^2 + lam sum_j a_j^2, whose
    normal equations are solved as they stand. Centres are all rows of the class, or those whose positions are
    given.
    """
    X, new_rows = np.asarray(X, dtype=float).tolist(), np.asarray(new_rows, dtype=float).tolist()
    y, n = np.asarray(y).tolist(), len(X)
    allowed = range(n) if centers is None else np.asarray(centers).tolist()
    columns = []
    for label in sorted(set(y)):
        basis = [j for j in allowed if y[j] == label]
        phi = [[_gaussian(x, X[j], sigma) for j in basis] for x in X]
        H = np.zeros((len(basis), len(basis)))
        h = np.zeros(len(basis))
        for i in range(n):
            for a in range(len(basis)):
                h[a] += phi[i][a] * (y[i] == label) / n
                for b in range(len(basis)):
                    H[a, b] += phi[i][a] * phi[i][b] / n
        coefficients = np.linalg.solve(H + lam * np.eye(len(basis)), h) if basis else h
        columns.append(
            [
                math.fsum(coefficients[k] * _gaussian(x, X[j], sigma) for k, j in enumerate(basis))
                for x in new_rows
            ]
        )
    return np.array(columns).T


def least_squares_probabilities(outputs: ArrayLike) -> np.ndarray:
    """Clip at zero and normalise; where nothing is left, the class with the largest output has it all."""
    rows = []
    for q in np.asarray(outputs).tolist():
        clipped = [max(value, 0.0) for value in q]
        if sum(clipped) == 0:
            clipped = [float(k == q.index(max(q))) for k in range(len(q))]
        rows.append([value / math.fsum(clipped) for value in clipped])
    return np.array(rows)


def least_squares_score(outputs: ArrayLike, codes: ArrayLike) -> float:
    """Share of rows whose own class, given by its column, has the largest output by more than 1e-10."""
    right = 0
    for q, code in zip(np.asarray(outputs).tolist(), np.asarray(codes).tolist(), strict=True):
        right += q[code] > max(q[:code] + q[code + 1 :]) + 1e-10
    return right / len(codes)


def _gaussian(x: list[float], c: list[float], sigma: float) -> float:
    """exp(-|x - c|^2 / (2 sigma^2 d))."""
    square = math.fsum((x_j - c_j) ** 2 for x_j, c_j in zip(x, c, strict=True))
    return math.exp(-square / (2 * sigma**2 * len(x)))

"""Members of the pool, their losses, missing values, categories and centroids, in plain loops."""

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from paper_oracle import floats, kernel_log_density


def mixture_log_density(density: Any, x: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Log density of a `Mixture` at scaled x, perhaps with other weights of its rows.

    It is a mean of kernels on rows that are shrunk towards the mean of the class. Values that x misses are
    integrated out.
    """
    weights = density.weights if weights is None else weights
    w = [1.0] * len(density.rows) if weights is None else floats(weights)
    transform, scales = density.transform, (density.bandwidth, density.shrinkage)
    kernel = diagonal_log_kernel if np.ndim(transform.factor) == 1 else normal_log_kernel
    exponents = [
        math.log(w_i)
        + kernel(x[transform.variables], row[transform.variables], transform, *scales)
        + category_log_kernel(x, row, transform.categories, density.bandwidth)
        for w_i, row in zip(w, density.rows, strict=True)
        if w_i > 0.0
    ]
    return logsumexp(exponents) - math.log(math.fsum(w)) if exponents else -math.inf


def diagonal_log_kernel(
    x: np.ndarray, row: np.ndarray, transform: Any, bandwidth: float, shrinkage: float
) -> float:
    """Logarithm of a product of normal kernels; where the row misses a value, the density of the class."""
    width, missing = 1.0 / transform.factor, np.isnan(row)
    center = transform.mean + np.where(
        missing, transform.missing_mean * width, shrinkage * (row - transform.mean)
    )
    deviation = np.where(missing, transform.missing_deviation, bandwidth) * width
    return float(np.nansum(norm.logpdf(x, center, deviation)))


def normal_log_kernel(
    x: np.ndarray, row: np.ndarray, transform: Any, bandwidth: float, shrinkage: float
) -> float:
    """Logarithm of a normal kernel with a covariance; a missing value of the row is at its expectation."""
    covariance = np.linalg.inv(transform.factor @ transform.factor.T)
    apart, missing = row - transform.mean, np.isnan(row)
    given = covariance[np.ix_(~missing, ~missing)]
    apart[missing] = covariance[np.ix_(missing, ~missing)] @ np.linalg.solve(given, apart[~missing])
    has = ~np.isnan(x)
    center, kernel_covariance = (
        (transform.mean + shrinkage * apart)[has],
        bandwidth**2 * covariance[np.ix_(has, has)],
    )
    return float(multivariate_normal.logpdf(x[has], center, kernel_covariance)) if has.any() else 0.0


def category_log_kernel(x: np.ndarray, row: np.ndarray, categories: Any, bandwidth: float) -> float:
    """Logarithm of the kernels of variables with categories."""
    log_kernel = 0.0
    for k, j in enumerate(categories.columns):
        if math.isnan(x[j]):
            continue
        shares, same = np.exp(categories.log_shares[k]), x[j] == row[j]
        probability = float(shares[int(x[j])])
        if not math.isnan(row[j]) and categories.precision is None:
            probability = (1.0 - bandwidth**2) * same + bandwidth**2 * probability
        elif not math.isnan(row[j]):
            other = math.exp(-0.5 * categories.precision[k] / bandwidth**2)
            probability = (1.0 if same else other) / (1.0 + (len(shares) - 1) * other)
        log_kernel += math.log(probability)
    return log_kernel


def left_out_normal_loss(X: ArrayLike, codes: ArrayLike, weights: ArrayLike, shrinkage: float) -> float:
    """Mean of -2 log density of rows by normal densities that were fitted to all others, but for a constant.

    Their covariance is that of residuals from the class means, divided by the weight of all rows and drawn
    towards the mean variance of all rows.
    """
    X, codes, weights = np.asarray(X, dtype=float), np.asarray(codes), np.asarray(weights, dtype=float)

    def mean(rows: np.ndarray) -> np.ndarray:
        return sum(weights[i] * X[i] for i in rows) / sum(weights[i] for i in rows)

    def scatter(rows: np.ndarray) -> np.ndarray:
        means = {y: mean(rows[codes[rows] == y]) for y in set(codes[rows].tolist())}
        residuals = {i: X[i] - means[codes[i]] for i in rows}
        return sum(weights[i] * np.outer(residuals[i], residuals[i]) for i in rows) / weights.sum()

    everything = np.arange(len(X))
    target = np.trace(scatter(everything)) / X.shape[1] * np.eye(X.shape[1])
    loss = 0.0
    for i in everything:
        others = np.delete(everything, i)
        covariance = (1.0 - shrinkage) * scatter(others) + shrinkage * target
        residual = X[i] - mean(others[codes[others] == codes[i]])
        squares = residual @ np.linalg.solve(covariance, residual)
        loss += weights[i] / weights.sum() * (math.log(np.linalg.det(covariance)) + squares)
    return loss


def class_variance(x: ArrayLike, codes: ArrayLike, y: int) -> float:
    """Variance of one class in one column, as if rows with the variance within all classes were added.

    Twice the share of repeated values are added to the sum of squares, and one to its logarithm.
    """
    x, codes = np.asarray(x, dtype=float), np.asarray(codes)
    groups = [x[codes == k] for k in np.unique(codes)]
    squares = [math.fsum((group - group.mean()) ** 2) for group in groups]
    floor, within = 1e-3 * x.var(), sum(squares) / (len(x) - len(groups))
    extra = 2.0 * (1.0 - (len(set(x.tolist())) - 1) / (len(x) - 1))
    n = len(groups[y])
    own = (squares[y] + extra * within) / (n - 1 + extra)
    return math.exp(((n - 1) * math.log(own + floor) + math.log(within + floor)) / n)


def pooled_log_loss(
    log_densities: ArrayLike,
    log_weights: ArrayLike,
    codes: ArrayLike,
    point_weights: ArrayLike,
    priors: ArrayLike,
    *,
    center: ArrayLike,
    deviation: float,
    count: float,
) -> float:
    """Mean log loss of a pool and the prior of its weights, from log densities by member, point and class."""
    log_densities, priors = np.asarray(log_densities, dtype=float), floats(priors)
    u, center = floats(log_weights), floats(center)
    loss = sum((u_m - c_m) ** 2 for u_m, c_m in zip(u, center, strict=True)) / (2 * deviation**2 * count)
    for i, (y, v) in enumerate(zip(codes, floats(point_weights), strict=True)):
        scores = [
            math.log(priors[k]) + math.fsum(math.exp(u[m]) * log_densities[m, i, k] for m in range(len(u)))
            for k in range(len(priors))
        ]
        loss -= v * (scores[y] - logsumexp(scores))
    return loss


def refined_loss(
    X: ArrayLike,
    codes: ArrayLike,
    group_ids: ArrayLike,
    weights: ArrayLike,
    point_weights: ArrayLike,
    priors: ArrayLike,
    theta: ArrayLike,
    log_power: float,
    *,
    deviation: float,
    count: float,
) -> float:
    """Leave-one-out log loss of kernel densities with inverse bandwidths exp(theta), with its priors."""
    X, codes, theta = np.asarray(X, dtype=float), np.asarray(codes), np.asarray(theta)
    weights, group_ids = np.asarray(weights, dtype=float), np.asarray(group_ids)
    h = [math.exp(-t) for t in theta]
    log_densities = [
        [
            kernel_log_density(
                X[codes == y], x, h, weights=np.where(group_ids == group, 0.0, weights)[codes == y]
            )
            for y in range(len(floats(priors)))
        ]
        for x, group in zip(X, group_ids, strict=True)
    ]
    loss = pooled_log_loss(
        [log_densities], [log_power], codes, point_weights, priors, center=[0.0], deviation=1.0, count=count
    )
    mean = sum(theta) / len(theta)
    return loss + sum((t - mean) ** 2 for t in theta) / (2 * deviation**2 * count)


def value_density(values: list[tuple[float, float]], x: float, n_categories: int) -> float:
    """The density of one variable in a class, from pairs of a value and a weight; 1 if there are none."""
    values = [(value, w) for value, w in values if not math.isnan(value)]
    total = sum(w for _, w in values)
    if n_categories:
        return (sum(w for value, w in values if value == x) + 1 / n_categories) / (total + 1)
    if not values:
        return 1.0
    mean = sum(w * value for value, w in values) / total
    deviation = math.sqrt(sum(w * (value - mean) ** 2 for value, w in values) / total)
    n = total**2 / sum(w * w for _, w in values)
    h = 1.06 * deviation * n**-0.2 if deviation > 1e-12 else 1.0
    kernels = [w * math.exp(-0.5 * ((x - value) / h) ** 2) for value, w in values]
    return sum(kernels) / total / (h * math.sqrt(2 * math.pi))


def mixed_factor(value: float, x: float, h: float, n_categories: int) -> float:
    """The kernel of one variable at x: normal, or exp(-1 / (2 h^2)) for another level, over its sum."""
    if n_categories:
        other = math.exp(-0.5 / h**2)
        return (1.0 if value == x else other) / (1 + (n_categories - 1) * other)
    return math.exp(-0.5 * ((x - value) / h) ** 2) / (h * math.sqrt(2 * math.pi))


def mixed_factors(
    X: ArrayLike, weights: ArrayLike, x: ArrayLike, h: ArrayLike, categories: list[int]
) -> list[list[float]]:
    """The factors of each row's kernel: 1 where x has no value, a density where the row has none."""
    factors = []
    for row in X:
        row_factors = []
        for j, n_categories in enumerate(categories):
            if math.isnan(x[j]):
                row_factors.append(1.0)
            elif math.isnan(row[j]):
                column = [(float(other[j]), float(w)) for other, w in zip(X, weights, strict=True)]
                row_factors.append(value_density(column, x[j], n_categories))
            else:
                row_factors.append(mixed_factor(row[j], x[j], h[j], n_categories))
        factors.append(row_factors)
    return factors


def mixed_log_density(
    X: ArrayLike, weights: ArrayLike, x: ArrayLike, h: ArrayLike, categories: list[int]
) -> float:
    """The log density of a class at x, with missing values or categories."""
    products = [math.prod(row_factors) for row_factors in mixed_factors(X, weights, x, h, categories)]
    total = sum(weights)
    return math.log(sum(w * product for w, product in zip(weights, products, strict=True)) / total)


def mixed_rodeo(
    X: ArrayLike, x: ArrayLike, categories: list[int], grid: list[float], update: str
) -> tuple[list[float], float]:
    """Algorithm 1 with missing values or categories; Z_ji by a symmetric difference of the kernels."""
    n, d = len(X), len(categories)
    ones = [1.0] * n
    steps = [0] * d
    lowest = 1 / math.sqrt(2 * math.log(max(n, 2)))
    active = [j for j in range(d) if not math.isnan(x[j])]

    def derivatives(steps: list[int], j: int) -> list[float]:
        h = [grid[k] for k in steps]
        above, below = ([*h[:j], h[j] * (1 + e), *h[j + 1 :]] for e in (1e-6, -1e-6))
        high, low = (
            [math.prod(row_factors) for row_factors in mixed_factors(X, ones, x, near, categories)]
            for near in (above, below)
        )
        return [(a - b) / (2e-6 * h[j]) for a, b in zip(high, low, strict=True)]

    while active:
        kept = []
        at_start = list(steps)
        for j in active:
            Z = derivatives(at_start if update == "simultaneous" else steps, j)
            mean = sum(Z) / n
            variance = sum((z - mean) ** 2 for z in Z) / (n - 1)
            c_n = math.log(max(n, 16))
            more = steps[j] + 1 < len(grid) and (not categories[j] or grid[steps[j] + 1] >= lowest)
            if mean**2 > variance / n * 2 * math.log(n * c_n) and more:
                steps[j] += 1
                kept.append(j)
        active = kept
    h = [grid[k] for k in steps]
    return h, mixed_log_density(X, ones, x, h, categories)


def level_share(
    column: ArrayLike,
    codes: ArrayLike,
    group_ids: ArrayLike,
    weights: ArrayLike,
    n_categories: int,
    category: float,
    y: int,
    group: Hashable,
) -> float:
    """Frequency of a category in class y without a group, shrunk towards all classes as if by two rows."""
    category_weight = class_weight = joint_weight = total_weight = 0.0
    for value, c, u, w in zip(floats(column), codes, group_ids, floats(weights), strict=True):
        if u == group or math.isnan(value):
            continue
        total_weight += w
        category_weight += w if value == category else 0.0
        class_weight += w if c == y else 0.0
        joint_weight += w if c == y and value == category else 0.0
    pooled = (category_weight + 1.0 / n_categories) / (total_weight + 1.0)
    return (joint_weight + 2.0 * pooled) / (class_weight + 2.0)


def cells_of(X: np.ndarray, weights: np.ndarray, first: np.ndarray, n_rounds: int) -> np.ndarray:
    """Lloyd's algorithm from some first centers: the cell of each row after some rounds."""
    centers = first.copy()

    def nearest() -> np.ndarray:
        return np.array([np.argmin([math.dist(row, center) for center in centers]) for row in X])

    for _ in range(n_rounds):
        cells = nearest()
        for k in set(cells.tolist()):
            centers[k] = np.average(X[cells == k], axis=0, weights=weights[cells == k])
    return nearest()


def averages(
    X: np.ndarray, weights: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted means of the rows of each cell, their weights, and the scatter of rows around these means."""
    mine = [cells == k for k in sorted(set(cells.tolist()))]
    means = [np.average(X[rows], axis=0, weights=weights[rows]) for rows in mine]
    scatter = sum(
        w * np.outer(x - mean, x - mean)
        for rows, mean in zip(mine, means, strict=True)
        for x, w in zip(X[rows], weights[rows], strict=True)
    )
    return np.array(means), np.array([weights[rows].sum() for rows in mine]), scatter


def averaged_log_density(
    X: np.ndarray,
    weights: np.ndarray,
    cells: np.ndarray,
    x: np.ndarray,
    H: np.ndarray,
    mean: np.ndarray,
    pull: float,
) -> float:
    """Log density at x of normal kernels on averages of rows, shrunk towards a mean.

    Kernels have the covariance H plus the covariance of the shrunk rows around their averages.
    """
    means, totals, scatter = averages(X, weights, cells)
    covariance = H + pull**2 * scatter / totals.sum()
    return logsumexp(
        [
            math.log(total / totals.sum())
            + multivariate_normal.logpdf(x, mean + pull * (center - mean), covariance)
            for center, total in zip(means, totals, strict=True)
        ]
    )

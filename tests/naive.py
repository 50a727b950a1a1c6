"""Algorithms 1-4 of the paper, its rival and the search as plain loops: the slow referee for every fast path.

Read it next to the paper: one Python loop per sum, the paper's letters for the paper's quantities.
It is written to be right rather than fast. A float is a fraction, so squared distances, exponents,
means and variances of the algorithms are computed exactly with ``fractions.Fraction``; only ``exp``, ``log``
and the number that is returned are rounded. Therefore a query may lie arbitrarily far from the data, a common
factor of all weights changes no bit, and the order of the rows cannot matter. The rival solves linear
equations, for which rounded numbers have to do.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq


def initial_bandwidth(n: float, c0: float = 1.0) -> float:
    """h_0 = c_0 / log log n, with n at least 16 so that small classes get a positive bandwidth."""
    return c0 / math.log(math.log(max(n, 16)))


def effective_number(X: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Kish's effective number of rows, (sum w_i)^2 / sum w_i^2."""
    return float(sum(_rows_and_weights(X, weights)[1]))


def rodeo(
    X: ArrayLike,
    x: ArrayLike,
    *,
    h0: float,
    floor: float,
    beta: float = 0.9,
    update: str = "simultaneous",
    weights: ArrayLike | None = None,
    sweeps: list[tuple[list[float], dict[int, float]]] | None = None,
) -> tuple[list[float], float]:
    """Algorithm 1: the bandwidths h_1..h_d of one class at the point x, and its log density there.

    To ``sweeps``, if given, every sweep adds the bandwidths after it and |Z_j| / lambda_j of the active j.
    """
    if not (0 < beta < 1 and floor > 0 and h0 > 0):
        raise ValueError("beta must lie between 0 and 1, h0 and floor above 0")
    if update not in ("simultaneous", "sequential"):
        raise ValueError(f"unknown update {update!r}")
    x = _floats(x)
    d = len(x)
    X, m = _rows_and_weights(X, weights)
    n = sum(m)
    h = [h0] * d
    if n == 0:
        return h, -math.inf

    # squares[i][j] = (x_j - x_ij)^2
    squares = [[(Fraction(x[j]) - Fraction(row[j])) ** 2 for j in range(d)] for row in X]
    exponents = [_exponent(row, h) for row in squares]

    steps = [0] * d  # h_j = h_0 beta^steps_j
    active = list(range(d)) if n > 1 else []  # a single row has no variance: nothing shrinks
    while active:
        still_active = []
        ratios = {}
        at_start = list(exponents)
        for j in active:
            column = [row[j] for row in squares]
            Z_j, s2_j = _derivative(column, at_start if update == "simultaneous" else exponents, h[j], m)
            c_n = math.log(max(n, 16))
            lambda2_j = s2_j * Fraction(2 * math.log(n * c_n))
            if sweeps is not None:
                ratios[j] = _root_of_quotient(Z_j**2, lambda2_j)
            smaller = h0 * beta ** (steps[j] + 1)
            if Z_j**2 > lambda2_j and smaller >= floor:  # |Z_j| > lambda_j
                # The j-th term of every exponent changes; fractions are exact, so nothing drifts.
                change = _half_inverse_square(smaller) - _half_inverse_square(h[j])
                exponents = [E - square * change for E, square in zip(exponents, column, strict=True)]
                h[j] = smaller
                steps[j] += 1
                still_active.append(j)
        active = still_active
        if sweeps is not None:
            sweeps.append((list(h), ratios))
    return h, _log_density(squares, h, m)


def leave_one_out(
    X: ArrayLike,
    i: int,
    *,
    h0: float,
    floor: float,
    beta: float = 0.9,
    update: str = "simultaneous",
    weights: ArrayLike | None = None,
) -> tuple[list[float], float]:
    """Algorithm 1 at row i against its class without row i, whatever its weight."""
    x = _floats(np.asarray(X)[i])
    weights = [1.0] * len(X) if weights is None else _floats(weights)
    weights[i] = 0.0
    return rodeo(X, x, h0=h0, floor=floor, beta=beta, update=update, weights=weights)


def mean_bandwidths(
    X: ArrayLike,
    *,
    h0: float,
    floor: float,
    beta: float = 0.9,
    update: str = "simultaneous",
    weights: ArrayLike | None = None,
) -> list[float]:
    """Algorithm 2, steps 1-2: weighted mean over the rows of leave-one-out bandwidths."""
    m = [1.0] * len(X) if weights is None else _floats(weights)
    n = sum(Fraction(m_i) for m_i in m)
    if n == 0:
        raise ValueError("a class without rows has no mean bandwidths")
    totals = [Fraction(0)] * np.asarray(X).shape[1]
    for i, m_i in enumerate(m):
        if m_i > 0:
            h, _ = leave_one_out(X, i, h0=h0, floor=floor, beta=beta, update=update, weights=weights)
            totals = [total + Fraction(m_i) * Fraction(h_j) for total, h_j in zip(totals, h, strict=True)]
    return [float(total / n) for total in totals]


def zscores(bandwidths: ArrayLike) -> list[float]:
    """Algorithm 2, step 3: centre and divide by the standard deviation (divisor d - 1); zero if all equal."""
    h = [Fraction(h_j) for h_j in _floats(bandwidths)]
    mean = sum(h) / len(h)
    squares = sum((h_j - mean) ** 2 for h_j in h)
    if squares == 0:
        return [0.0] * len(h)
    variance = squares / (len(h) - 1)
    return [(1 if h_j > mean else -1) * math.sqrt((h_j - mean) ** 2 / variance) for h_j in h]


def classify(
    classes: Mapping[Hashable, tuple],
    x: ArrayLike,
    *,
    priors: Mapping[Hashable, float],
    floor: Callable[[float, float], float],
    c0: float = 1.0,
    beta: float = 0.9,
    update: str = "simultaneous",
) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
    """Algorithm 3 at one point: log(prior_y p_y(x)) and the posterior probability of every label y.

    ``classes`` maps a label to ``(rows,)`` or ``(rows, weights)``; ``floor(n, h0)`` gives the class's floor.
    Where every density is zero there is no evidence, and the posterior is the prior.
    """
    joint = {}
    log_priors = {}
    for label, (rows, *rest) in classes.items():
        weights = rest[0] if rest else None
        n = effective_number(rows, weights)
        h0 = initial_bandwidth(n, c0)
        _, log_p = rodeo(rows, x, h0=h0, floor=floor(n, h0), beta=beta, update=update, weights=weights)
        log_priors[label] = math.log(priors[label]) if priors[label] > 0 else -math.inf
        joint[label] = log_priors[label] + log_p
    evidence = joint if max(joint.values()) > -math.inf else log_priors
    log_total = _log_sum_exp(list(evidence.values()))
    return joint, {label: math.exp(value - log_total) for label, value in evidence.items()}


def density(X: ArrayLike, x: ArrayLike, h: ArrayLike) -> float:
    """(1/n) sum_i prod_j (1/h_j) phi((x_j - x_ij)/h_j), in plain floats."""
    X, x, h = np.asarray(X, dtype=float).tolist(), _floats(x), _floats(h)
    total = 0.0
    for row in X:
        product = 1.0
        for x_j, x_ij, h_j in zip(x, row, h, strict=True):
            product *= math.exp(-(((x_j - x_ij) / h_j) ** 2) / 2) / (h_j * math.sqrt(2 * math.pi))
        total += product
    return total / len(X)


def second_derivative(X: ArrayLike, x: ArrayLike, h: ArrayLike, j: int) -> float:
    """Second derivative of the density with respect to x_j: phi'' (u) = (u^2 - 1) phi(u)."""
    X, x, h = np.asarray(X, dtype=float).tolist(), _floats(x), _floats(h)
    total = 0.0
    for row in X:
        u_j = (x[j] - row[j]) / h[j]
        total += (u_j**2 - 1) / h[j] ** 2 * density([row], x, h)
    return total / len(X)


def equation_a2(n: int, r: int) -> float:
    """A_y = n_y^((2 + r_y) / (4 + r_y))."""
    return n ** ((2 + r) / (4 + r))


def equation_b2(X: ArrayLike, samples: ArrayLike, bandwidths: ArrayLike) -> float:
    """B_y from rows, samples predicted as y and the bandwidths there, all on the r relevant variables."""
    n, r = np.shape(X)
    alpha = 1.0  # integral of u^2 phi(u)
    beta = math.sqrt((1 / (2 * math.sqrt(math.pi))) ** r)  # phi^2 integrates to 1 / (2 sqrt(pi))
    first, second = [], []
    for x, h in zip(samples, bandwidths, strict=True):
        f = density(X, x, h)
        k = [h_j * n ** (1 / (4 + r)) for h_j in h]
        curvature = sum(k[j] ** 2 * second_derivative(X, x, h, j) for j in range(r))
        first.append(abs(curvature) / f)
        second.append(math.prod(k) ** -0.5 * math.sqrt(f) / f)
    return alpha / 2 * sum(first) / len(first) + beta * sum(second) / len(second)


def rearrange(B: list[float], r: list[int], N: int, low: int, high: list[int]) -> list[int]:
    """Sizes that sum to N with A proportional to B: one row at a time for the class that lags most."""
    n = [low] * len(B)
    while sum(n) < N:
        open_ = [y for y in range(len(B)) if n[y] < high[y]]
        lagging = min(open_, key=lambda y: equation_a2(n[y] + 1, r[y]) / B[y])
        n[lagging] += 1
    return n


def sample_sizes(
    pools: Mapping[Hashable, ArrayLike],
    *,
    tolerance: float,
    initial_size: int,
    test_size: int,
    step: int,
    cutpoint: float,
    empty: str,
    floor: Callable[[float, float], float],
) -> list[dict]:
    """Algorithm 4 in raw units: what every pass found, until epsilon or the rows of a class come to an end.

    The first ``test_size`` rows of a pool are its test samples, the next ones its training rows.
    """
    labels = list(pools)
    tests = [(x, label) for label in labels for x in pools[label][:test_size]]
    most = [len(pools[label]) - test_size for label in labels]
    n = [initial_size] * len(labels)
    passes = []
    while True:
        training = {
            y: np.asarray(pools[y])[test_size : test_size + n_y] for y, n_y in zip(labels, n, strict=True)
        }
        priors = dict.fromkeys(labels, 1 / len(labels))
        predicted = []
        for x, _ in tests:
            joint, _ = classify({y: (rows,) for y, rows in training.items()}, x, priors=priors, floor=floor)
            predicted.append(max(joint, key=joint.get))
        r, A, B = [], [], []
        for y in labels:
            n_y = len(training[y])
            h0 = initial_bandwidth(n_y)
            settings = {"h0": h0, "floor": floor(n_y, h0)}
            z = zscores(mean_bandwidths(training[y], **settings))
            R = [j for j, z_j in enumerate(z) if z_j <= cutpoint + 1e-9]
            if not R and empty == "all":
                R = list(range(len(z)))
            samples = [x for (x, _), label in zip(tests, predicted, strict=True) if label == y]
            samples = samples or [x for x, label in tests if label == y]
            h = [rodeo(training[y], x, **settings)[0] for x in samples]
            r.append(len(R))
            A.append(equation_a2(n_y, len(R)))
            B.append(equation_b2(training[y][:, R], np.asarray(samples)[:, R], np.asarray(h)[:, R]))
        epsilon = sum(A_y * B_y for A_y, B_y in zip(A, B, strict=True)) / sum(n)
        right = sum(label == guess for (_, label), guess in zip(tests, predicted, strict=True))
        passes.append(
            {"sizes": n, "r": r, "A": A, "B": B, "epsilon": epsilon, "accuracy": right / len(tests)}
        )
        N = sum(n) + step
        wanted = rearrange(B, r, N, initial_size, [N] * len(labels))
        if (epsilon <= tolerance and all(r)) or any(
            now == m < w for now, m, w in zip(n, most, wanted, strict=True)
        ):
            return passes
        n = rearrange(B, r, min(N, sum(most)), initial_size, most)


def power_law_weights(
    levels: list[float],
    times: list[float],
    rises: list[float],
    covariance: ArrayLike,
    *,
    shares: list[float],
    rates: list[float],
    prior: Callable[[float, float], float],
    misfit: float,
    gap: float = math.inf,
) -> dict[tuple[float, float, float], float]:
    """Posterior probabilities of (D, u, c) by their definition; the levels stay equally probable.

    No law falls by more than the gap: where it is less than D, all u are multiplied by gap / D.
    """
    whole = np.array(covariance, dtype=float).reshape(len(times), len(times))
    for k, (t, rise) in enumerate(zip(times, rises, strict=True)):
        whole[k, k] += (misfit * max(rise, 0.0) * math.log2(1 / t)) ** 2
    inverse = np.linalg.inv(whole)
    weights = {}
    for D in levels:
        of_level = {}
        for u in shares:
            for c in rates:
                falls = min(D, gap) * u
                off = [falls * (t**-c - 1) - rise for t, rise in zip(times, rises, strict=True)]
                square = sum(
                    off[k] * inverse[k, m] * off[m] for k in range(len(times)) for m in range(len(times))
                )
                of_level[D, u, c] = prior(u, c) * math.exp(-square / 2)
        total = sum(of_level.values())
        weights |= {point: weight / total / len(levels) for point, weight in of_level.items()}
    return weights


def kernel_log_density(
    X: ArrayLike, x: ArrayLike, h: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Kernel log density with given bandwidths; a variable whose h_j is infinite takes no part."""
    used = [j for j, h_j in enumerate(_floats(h)) if h_j < math.inf]
    h, x = [_floats(h)[j] for j in used], [_floats(x)[j] for j in used]
    X, m = _rows_and_weights(X, weights)
    if not X:
        return -math.inf
    squares = [[(Fraction(x_j) - Fraction(row[j])) ** 2 for x_j, j in zip(x, used, strict=True)] for row in X]
    return _log_density(squares, h, m)


def posterior(log_densities: ArrayLike, priors: ArrayLike, *, lapse: float = 0.0) -> list[float]:
    """(1 - lapse) pi_y p_y / sum + lapse pi_y; without any density, the prior."""
    priors = _floats(priors)
    log_priors = [math.log(pi) if pi > 0 else -math.inf for pi in priors]
    joint = [log_p + log_pi for log_p, log_pi in zip(_floats(log_densities), log_priors, strict=True)]
    evidence = joint if max(joint) > -math.inf else log_priors
    log_total = _log_sum_exp(evidence)
    return [
        (1 - lapse) * math.exp(value - log_total) + lapse * pi
        for value, pi in zip(evidence, priors, strict=True)
    ]


def mean_evidence(
    X: ArrayLike,
    y: ArrayLike,
    bandwidths: Callable[[int, int | None, list[float]], list[float]],
    priors: ArrayLike,
    weights: ArrayLike | None = None,
) -> list[list[float]]:
    """Mean evidence of each variable for each class at its own rows, each row left out, in raw units.

    The evidence is what a variable adds to the log odds of the class and the most probable other one.
    ``bandwidths`` is asked for a class, for the position of the row to leave out of it, if any, and for x.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    m = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    d, classes = X.shape[1], sorted(set(y.tolist()))

    def log_density(a: int, i: int, known: frozenset[int]) -> float:
        h = bandwidths(a, i if y[i] == a else None, _floats(X[i]))
        h = [h_j if j in known else math.inf for j, h_j in enumerate(h)]
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
            found = shapley(
                lambda known, i=i, a=a, b=rival: log_density(a, i, known) - log_density(b, i, known),
                list(range(d)),
            )
            for j in range(d):
                sums[j] += m[i] * found[j]
        means.append([total / m[y == a].sum() for total in sums])
    return means


def shapley(value: Callable[[frozenset[int]], float], players: list[int]) -> list[float]:
    """What each player adds to the value of those before him, on average over all orders."""
    known = {
        frozenset(s): value(frozenset(s))
        for k in range(len(players) + 1)
        for s in itertools.combinations(players, k)
    }
    sums = dict.fromkeys(players, 0.0)
    for order in itertools.permutations(players):
        before: frozenset[int] = frozenset()
        for j in order:
            sums[j] += known[before | {j}] - known[before]
            before |= {j}
    return [sums[j] / math.factorial(len(players)) for j in players]


def mixture_log_density(
    x: ArrayLike,
    centres: ArrayLike,
    factor: ArrayLike,
    log_volume: float,
    *,
    weights: ArrayLike | None = None,
) -> float:
    """Log density of a mixture of normal ones, |B| (2 pi)^(-q/2) exp(-|B^T (x - c_i)|^2 / 2), at x."""
    x, B = _floats(x), np.asarray(factor, dtype=float).tolist()
    centres = np.asarray(centres, dtype=float).tolist()
    w = [1.0] * len(centres) if weights is None else _floats(weights)
    n_axes = len(B[0]) if B else 0
    exponents = []
    for c in centres:
        axes = [math.fsum(B[j][k] * (x[j] - c[j]) for j in range(len(x))) for k in range(n_axes)]
        exponents.append(-0.5 * math.fsum(z * z for z in axes))
    kept = [math.log(w_i) + e for w_i, e in zip(w, exponents, strict=True) if w_i > 0]
    if not kept:
        return -math.inf
    return _log_sum_exp(kept) - math.log(math.fsum(w)) + log_volume - 0.5 * n_axes * math.log(2 * math.pi)


def pulled_log_density(
    x: ArrayLike,
    X: ArrayLike,
    mean: ArrayLike,
    factor: ArrayLike,
    log_volume: float,
    *,
    bandwidth: float,
    pull: float,
    weights: ArrayLike | None = None,
) -> float:
    """Log density of a class whose rows are pulled towards a mean and blurred, at x."""
    mean, factor = np.asarray(mean), np.asarray(factor)
    centres = [
        [m_j + pull * (x_j - m_j) for x_j, m_j in zip(row, mean, strict=True)] for row in np.asarray(X)
    ]
    log_volume -= factor.shape[1] * math.log(bandwidth)
    return mixture_log_density(x, centres, factor / bandwidth, log_volume, weights=weights)


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
    labels = sorted(set(codes.tolist()))
    groups = {k: [v for v, c in zip(x, codes, strict=True) if c == k] for k in labels}
    means = {k: math.fsum(group) / len(group) for k, group in groups.items()}
    squares = {k: math.fsum((v - means[k]) ** 2 for v in group) for k, group in groups.items()}
    center = math.fsum(x) / len(x)
    floor = 1e-3 * math.fsum((v - center) ** 2 for v in x) / len(x)
    within = math.fsum(squares.values()) / (len(x) - len(labels))
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
    log_densities, priors = np.asarray(log_densities, dtype=float), _floats(priors)
    u, center = _floats(log_weights), _floats(center)
    loss = sum((u_m - c_m) ** 2 for u_m, c_m in zip(u, center, strict=True)) / (2 * deviation**2 * count)
    for i, (y, v) in enumerate(zip(codes, _floats(point_weights), strict=True)):
        scores = [
            math.log(priors[k]) + math.fsum(math.exp(u[m]) * log_densities[m, i, k] for m in range(len(u)))
            for k in range(len(priors))
        ]
        loss -= v * (scores[y] - _log_sum_exp(scores))
    return loss


def refined_loss(
    X: ArrayLike,
    codes: ArrayLike,
    units: ArrayLike,
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
    weights, units = np.asarray(weights, dtype=float), np.asarray(units)
    h = [math.exp(-t) for t in theta]
    log_densities = [
        [
            kernel_log_density(X[codes == y], x, h, weights=np.where(units == unit, 0.0, weights)[codes == y])
            for y in range(len(_floats(priors)))
        ]
        for x, unit in zip(X, units, strict=True)
    ]
    loss = pooled_log_loss(
        [log_densities], [log_power], codes, point_weights, priors, center=[0.0], deviation=1.0, count=count
    )
    mean = sum(theta) / len(theta)
    return loss + sum((t - mean) ** 2 for t in theta) / (2 * deviation**2 * count)


def number_copies(X: ArrayLike, y: ArrayLike | None = None) -> list[int] | None:
    """Numbers of the rows, in the order of their first appearance, that copies share; None without copies."""
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
    """Whether equal rows are separate observations, from all pairs of rows; copies.py has the rule."""
    counts = Counter(rows)
    often = len(rows) > 3 * len(counts)
    variables = variables_of(list(counts))
    if len(variables) < 2:
        f = Counter(counts.values())
        return often or Fraction(3, 2) * f[1] * f[3] >= Fraction(max(f[2], 1), 5) ** 2
    if often and len(counts) <= 20 and not _tie_only_whole(list(counts)):
        return True
    equal = 0
    one, two = [0] * len(variables), 0
    for a, b in itertools.combinations(rows, 2):
        differing = [v for v, columns in enumerate(variables) if any(a[j] != b[j] for j in columns)]
        equal += len(differing) == 0
        two += len(differing) == 2
        if len(differing) == 1:
            one[differing[0]] += 1
    expected = sum(N_j * N_k for N_j, N_k in itertools.combinations(one, 2))
    return Fraction(expected, max(two, 1)) >= Fraction(equal, 5)


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
        known = [[Fraction(1)] * len(rows)] + [[Fraction(row[k]) for row in rows] for k in basis]
        shares = _combination(known, x)
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


def merge_copies(
    X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Rows, labels, weights and numbers after copies of a class have become one row with their weights."""
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    X, y, w = X[w > 0], y[w > 0], w[w > 0]
    numbers = number_copies(X, y)
    if numbers is None:
        return X, y, w, list(range(len(X)))
    merged: dict[tuple, list[float]] = {}
    first = {}
    for i, (number, label) in enumerate(zip(numbers, y.tolist(), strict=True)):
        merged.setdefault((number, label), []).append(w[i])
        first.setdefault((number, label), i)
    kept = list(first.values())
    return X[kept], y[kept], np.array([math.fsum(parts) for parts in merged.values()]), [n for n, _ in first]


def joined_groups(copies: list[int], groups: list[int]) -> dict[int, int]:
    """The least group that each is joined with: by rows of which the smaller has more than half in common.

    Of a row that more than three groups hold, each is compared with the next in size only.
    """
    rows: dict[int, set[int]] = {}
    for copy, group in zip(copies, groups, strict=True):
        rows.setdefault(group, set()).add(copy)
    shared: Counter[tuple[int, int]] = Counter()
    for copy in set(copies):
        holders = sorted((group for group in rows if copy in rows[group]), key=lambda g: (len(rows[g]), g))
        pairs = itertools.combinations(holders, 2) if len(holders) <= 3 else itertools.pairwise(holders)
        shared.update(pairs)
    joined = {group: group for group in rows}
    for (smaller, larger), n_shared in shared.items():
        if n_shared > len(rows[smaller]) / 2:
            least, other = sorted((joined[smaller], joined[larger]))
            joined = {group: least if to == other else to for group, to in joined.items()}
    return joined


def least_squares_outputs(
    X: ArrayLike,
    y: ArrayLike,
    queries: ArrayLike,
    *,
    sigma: float,
    lam: float,
    centers: ArrayLike | None = None,
) -> np.ndarray:
    """Outputs q_y of the least-squares classifier at the queries, one column per class.

    q_y(x) = sum_j a_j K(x, c_j) minimises (1/n) sum_i (q_y(x_i) - [y_i = y])^2 + lam sum_j a_j^2, whose
    normal equations are solved as they stand. Centres are all rows of the class, or those whose positions are
    given.
    """
    X, queries = np.asarray(X, dtype=float).tolist(), np.asarray(queries, dtype=float).tolist()
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
                for x in queries
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


def _exponent(squares: list[Fraction], h: list[float]) -> Fraction:
    """Exponent of one row's kernel, -sum_j (x_j - x_ij)^2 / (2 h_j^2)."""
    return -sum(square * _half_inverse_square(h_j) for square, h_j in zip(squares, h, strict=True))


def _derivative(
    column: list[Fraction], exponents: list[Fraction], h: float, m: list[Fraction]
) -> tuple[Fraction, Fraction]:
    """Z_j and s_j^2 = v_j^2 / n, from Z_ji times a positive factor common to all rows.

    Z_ji is ((x_j - x_ij)^2 - h_j^2) exp(exponent_i) times 1/h_j^3, prod_k 1/h_k and (2 pi)^(-d/2). The last
    three are common to all rows and left out, and every exponent is taken relative to the largest one of a
    row with Z_ji != 0: |Z_j| and lambda_j scale together, so |Z_j| > lambda_j does not change, and at least
    one Z_ji survives however far x is from the data.
    """
    n = sum(m)
    h2 = Fraction(h) ** 2
    numerators = [square - h2 for square in column]
    nonzero = [E for E, numerator in zip(exponents, numerators, strict=True) if numerator != 0]
    if not nonzero:
        return Fraction(0), Fraction(0)
    largest = max(nonzero)
    Z = []
    for E, numerator in zip(exponents, numerators, strict=True):
        Z.append(numerator * Fraction(math.exp(_to_float(E - largest))) if numerator != 0 else Fraction(0))
    total = sum(m_i * Z_i for m_i, Z_i in zip(m, Z, strict=True))
    total_of_squares = sum(m_i * Z_i**2 for m_i, Z_i in zip(m, Z, strict=True))
    v2 = (total_of_squares - total**2 / n) / (n - 1)  # exact, so the difference loses nothing
    return total / n, v2 / n


def _log_density(squares: list[list[Fraction]], h: list[float], m: list[Fraction]) -> float:
    """log of (1/n) sum_i m_i prod_j (1/h_j) phi((x_j - x_ij)/h_j)."""
    exponents = [_exponent(row, h) for row in squares]
    largest = max(exponents)
    total = sum(m_i * Fraction(math.exp(_to_float(E - largest))) for m_i, E in zip(m, exponents, strict=True))
    terms = [_to_float(largest), math.log(total / sum(m))]
    terms += [-math.log(h_j) - math.log(2 * math.pi) / 2 for h_j in h]
    return math.fsum(terms)


def _root_of_quotient(square: Fraction, other: Fraction) -> float:
    """sqrt(square / other); 0 / 0 is 0, and anything else over 0 infinite."""
    if other == 0:
        return math.inf if square else 0.0
    return math.sqrt(_to_float(square / other))


def _half_inverse_square(h: float) -> Fraction:
    """1 / (2 h^2)."""
    return 1 / (2 * Fraction(h) ** 2)


def _log_sum_exp(values: list[float]) -> float:
    """log sum exp, without overflow."""
    largest = max(values)
    return largest + math.log(math.fsum(math.exp(value - largest) for value in values))


def _to_float(number: Fraction) -> float:
    """Nearest float; infinite where no finite float is near."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _floats(values: ArrayLike) -> list[float]:
    """One-dimensional input as a list of floats."""
    return np.asarray(values, dtype=float).tolist()


def _rows_and_weights(X: ArrayLike, weights: ArrayLike | None) -> tuple[list[list[float]], list[Fraction]]:
    """Rows of positive weight, and weights that sum to the effective number of rows, 1 if all are alike."""
    rows = np.asarray(X, dtype=float).tolist()
    w = [1.0] * len(rows) if weights is None else _floats(weights)
    if min(w, default=0) < 0:
        raise ValueError("weights must not be negative")
    kept = [(row, Fraction(w_i)) for row, w_i in zip(rows, w, strict=True) if w_i > 0]
    factor = sum(w_i for _, w_i in kept) / sum(w_i**2 for _, w_i in kept) if kept else 1
    return [row for row, _ in kept], [w_i * factor for _, w_i in kept]


# --------------------------------------------------------------------------------------------- contrast
# Variables that describe a class, as contrast.py and rank_tests.py in src/corral/markers say it in words.
# Counts, mid-ranks and polynomials are fractions, so that only roots, logarithms and tails are rounded.


def contrast(
    X: ArrayLike,
    codes: ArrayLike,
    n_classes: int,
    *,
    weights: ArrayLike | None = None,
    level: float = 0.01,
    min_effect: float = 0.15,
    max_cells: int = 500,
) -> list[list[dict[str, object]]]:
    """What can be said of class a (outer list) in variable j (inner list)."""
    columns = np.asarray(X, dtype=float).T.tolist()
    codes = np.asarray(codes).tolist()
    w = [Fraction(w_i) for w_i in ([1.0] * len(codes) if weights is None else _floats(weights))]
    by_variable, n_varying = [], 0
    for column in columns:
        rows = [
            (x, a, w_i) for x, a, w_i in zip(column, codes, w, strict=True) if w_i > 0 and not math.isnan(x)
        ]
        n_varying += len({x for x, _, _ in rows}) > 1
        by_variable.append(_contrast_of_variable(rows, n_classes, level, min_effect, max_cells))
    for of_classes in by_variable:
        for found in of_classes:
            found["pvalue"] = min(1.0, found["pvalue"] * max(n_varying, 1))
            found["markers"] = found["noticeable"] and found["pvalue"] <= level
    return [[of_classes[a] for of_classes in by_variable] for a in range(n_classes)]


def effects_of_groups(
    x: ArrayLike, codes: ArrayLike, n_classes: int, weights: ArrayLike, groups: ArrayLike
) -> list[tuple[float, float, float]]:
    """Worth, variance and error of each class in one variable, as design_effect.py says it."""
    rows = [r for r in zip(*map(_floats, (x, codes, weights, groups)), strict=True) if not math.isnan(r[0])]
    cells: dict[tuple[float, float], list[int]] = {}
    for i, (_, a, _, g) in enumerate(rows):
        cells.setdefault((a, g), []).append(i)
    cells_agree = all(len({rows[i][0] for i in members}) == 1 for members in cells.values())
    result = []
    for a in range(n_classes):
        rho = 0.0
        for classes in ([a], list(range(n_classes))):
            rho = max(rho, _intraclass_correlation(rows, cells, classes))
        if len(cells) == len({b for b, _ in cells}) or (cells_agree and len(rows) > len(cells)):
            rho = 1.0
        total = sum(w for _, b, w, _ in rows if b == a)
        squares = sum(w**2 for _, b, w, _ in rows if b == a)
        sums = [sum(rows[i][2] for i in members) ** 2 for (b, _), members in cells.items() if b == a]
        if not total:
            result.append((1.0, 0.0, 0.0))
            continue
        variance, gamma = sum(sums) / total**2, 1.0 - squares / sum(sums)
        error = (gamma * variance) ** 2 / max(len(sums) - 1, 1)
        result.append((1.0 / (1.0 + rho * (sum(sums) / squares - 1.0)), variance, error))
    return result


def _intraclass_correlation(
    rows: list[tuple[float, ...]], cells: Mapping[tuple[float, float], list[int]], classes: list[int]
) -> float:
    """The largest correlation of rows of a cell over the polynomials of ranks, in the classes together."""
    cells = {cell: members for cell, members in cells.items() if cell[0] in classes}
    members = {a: [i for i, r in enumerate(rows) if r[1] == a] for a in classes}
    members = {a: i for a, i in members.items() if i}
    n = sum(map(len, members.values()))
    between, within = len(cells) - len(members), n - len(cells)
    if not between or not within:
        return 0.0
    size = (n - sum(len(i) ** 2 / len(members[a]) for (a, _), i in cells.items())) / between
    distinct = sorted({r[0] for r in rows})
    counts = [Fraction(sum(r[0] == value for r in rows)) for value in distinct]
    rho = 0.0
    for polynomial in rank_polynomials(counts):
        values = [float(polynomial[distinct.index(r[0])]) for r in rows]
        mean = {a: sum(values[i] for i in of_class) / len(of_class) for a, of_class in members.items()}
        ssb = ssw = 0.0
        for (a, _), of_cell in cells.items():
            center = sum(values[i] for i in of_cell) / len(of_cell)
            ssb += len(of_cell) * (center - mean[a]) ** 2
            ssw += sum((values[i] - center) ** 2 for i in of_cell)
        variance = max((ssb / between - ssw / within) / size, 0.0)
        rho = max(rho, variance / (variance + ssw / within) if variance else 0.0)
    return rho


def least_pvalue(first: Mapping[object, int], second: Mapping[object, int]) -> float:
    """Two over the number of ways to label rows within groups and groups of one label, as counts say."""
    alone = {g: g in first for g in set(first) ^ set(second)}
    ways = math.comb(len(alone), sum(alone.values()))
    for g in set(first) & set(second):
        ways *= math.comb(first[g] + second[g], first[g])
    return min(2.0 / ways, 1.0)


def _contrast_of_variable(
    rows: list[tuple[float, int, Fraction]], n_classes: int, level: float, min_effect: float, max_cells: int
) -> list[dict[str, object]]:
    counts, values = _cell_counts(rows, n_classes, max_cells)
    active = [a for a in range(n_classes) if sum(counts[a]) >= 3]
    pair_p, pair_statistic = {}, {}
    for a in active:
        for b in active:
            if a != b:
                p, statistic = two_sample_pvalue(counts[min(a, b)], counts[max(a, b)])
                if p <= level and effect_size(counts[a], counts[b]) < min_effect:
                    p = 1.0
                pair_p[a, b], pair_statistic[a, b] = p, statistic
    background = _contrast_background(counts, active, pair_p, pair_statistic, level, min_effect)

    found = []
    for a in range(n_classes):
        others = [b for b in (background or active) if b != a]
        result: dict[str, object] = {"markers": False, "noticeable": False, "pvalue": 1.0, "direction": ""}
        result |= {"effect": 0.0, "location": 0.0, "spread": 0.0, "size": 0.0, "background": a in background}
        found.append(result)
        if a not in active or not others:
            continue
        pooled = [sum(counts[b][v] for b in others) for v in range(len(values))]
        delta, effects = sample_effects(counts[a], pooled)
        size = effect_size(counts[a], pooled)
        if size <= 1e-12:
            continue
        if background:
            p = two_sample_pvalue(counts[a], pooled)[0]
        else:
            r = len(active) // 2  # half of the others at least
            p = min(1.0, sorted(pair_p[a, b] for b in others)[r - 1] * (len(active) - r))
        spread = min(max(effects[1], -1.0), 1.0)
        direction, effect = _direction(delta, effects, counts[a], pooled, values, min_effect)
        result |= {"noticeable": size >= min_effect, "pvalue": p, "location": delta}
        result |= {"spread": spread, "size": size, "direction": direction, "effect": effect}
    return found


def _direction(
    delta: float,
    effects: list[float],
    own: list[Fraction],
    other: list[Fraction],
    values: list[float],
    min_effect: float,
) -> tuple[str, float]:
    """The word of the largest effect that quartiles and medians do not contradict, and its strength."""
    (q1, median, q3), (r1, middle, r3) = (
        [_quantile(counts, values, Fraction(k, 4)) for k in (1, 2, 3)] for counts in (own, other)
    )
    sign = -1.0 if delta < 0 else 1.0
    moves = [sign * (x - y) for x, y in ((q1, r1), (median, middle), (q3, r3))]
    spread = min(max(effects[1], -1.0), 1.0)
    wider = (q3 - q1) - (r3 - r1)
    largest = max(map(abs, effects))
    words = []
    if moves[1] > 0 or (moves[1] == 0 and min(moves) >= 0):
        words.append((abs(effects[0]), "low" if delta < 0 else "high", delta))
    if (wider < 0 if spread < 0 else wider > 0) or (q1 == r1 and q3 == r3):
        words.append((abs(effects[1]), "narrow" if spread < 0 else "wide", spread))
    words = [word for word in words if word[0] >= min_effect or word[0] == largest]
    words.append((max(abs(effects[2]), abs(effects[3])), "shape", min(largest, 1.0)))
    _, direction, effect = max(words, key=lambda word: word[0])  # the first of equal ones
    return direction, effect


def _quantile(counts: list[Fraction], values: list[float], q: Fraction) -> float:
    """The mean of the two neighbouring values where exactly a share q of the rows lies below both."""
    total, below, ends = sum(counts), Fraction(0), []
    for c, value in zip(counts, values, strict=True):
        below += c
        if below >= q * total and not ends:
            ends.append(value)
        if below > q * total:
            return 0.5 * (ends[0] + value)
    raise AssertionError("counts sum to their total")


def _cell_counts(
    rows: list[tuple[float, int, Fraction]], n_classes: int, max_cells: int
) -> tuple[list[list[Fraction]], list[float]]:
    """Effective numbers of rows by class and cell, and the smallest value of each cell."""
    values = sorted({x for x, _, _ in rows})
    factor = []
    for a in range(n_classes):
        squares = sum(w_i**2 for _, b, w_i in rows if b == a)
        factor.append(sum(w_i for _, b, w_i in rows if b == a) / squares if squares else Fraction(0))
    counts = [
        [
            sum((w_i * factor[a] for x, b, w_i in rows if b == a and x == value), Fraction(0))
            for value in values
        ]
        for a in range(n_classes)
    ]
    if len(values) <= max_cells:
        return counts, values
    total, below = sum(map(sum, counts)), Fraction(0)
    cells: dict[int, list[int]] = {}
    for v in range(len(values)):
        here = sum(of_class[v] for of_class in counts)
        # Half-integers go to the even neighbour.
        cells.setdefault(round(round(max_cells * (below + here / 2) / total, 6)), []).append(v)
        below += here
    merged = [[sum(of_class[v] for v in cell) for cell in cells.values()] for of_class in counts]
    return merged, [values[cell[0]] for cell in cells.values()]


def _contrast_background(
    counts: list[list[Fraction]],
    active: list[int],
    pair_p: Mapping[tuple[int, int], float],
    pair_statistic: Mapping[tuple[int, int], float],
    level: float,
    min_effect: float,
) -> set[int]:
    """The classes of the background; none if there is no background."""
    if len(active) <= 2:
        return set(active) if len(active) == 2 else set()
    n_pairs = len(active) * (len(active) - 1) // 2
    groups = []
    for seed in active:
        group = {seed}
        for b in sorted(set(active) - {seed}, key=lambda b, seed=seed: pair_statistic[seed, b]):
            if all(min(pair_p[b, c], pair_p[c, b]) > level / n_pairs for c in group):
                group.add(b)
        groups.append(group)
    eligible = [group for group in groups if 2 * len(group) > len(active)]
    if not eligible:
        for group in groups:
            if len(group) == 1:
                continue
            inside = [sum(counts[b][v] for b in group) for v in range(len(counts[0]))]
            outside = [sum(counts[b][v] for b in active if b not in group) for v in range(len(counts[0]))]
            location, spread, *_ = sample_effects(inside, outside)[1]
            if spread >= min_effect and spread > abs(location):
                eligible.append(group)
    if not eligible:
        return set()
    largest = [group for group in eligible if len(group) == max(map(len, eligible))]
    within = [sum(pair_statistic[b, c] for b in group for c in group if b != c) for group in largest]
    close = [
        group for group, sum_ in zip(largest, within, strict=True) if sum_ <= min(within) * (1 + 1e-9) + 1e-9
    ]
    return set().union(*close)


def rank_polynomials(counts: list[Fraction], n_degrees: int = 4) -> list[list[Fraction]]:
    """Polynomials of the mid-ranks, orthogonal over counted cells; as many as there are, not normalised."""
    total, below, v = sum(counts), Fraction(0), []
    for c in counts:
        v.append(2 * (below + c / 2) / total - 1)
        below += c
    n_values = sum(c > 0 for c in counts)
    polynomials: list[list[Fraction]] = []
    for k in range(1, min(n_degrees, n_values - 1) + 1):
        p = [v_i**k for v_i in v]
        for q in [[Fraction(1)] * len(v), *polynomials]:
            square = sum(c * q_i**2 for c, q_i in zip(counts, q, strict=True))
            part = sum(c * p_i * q_i for c, p_i, q_i in zip(counts, p, q, strict=True)) / square
            p = [p_i - part * q_i for p_i, q_i in zip(p, q, strict=True)]
        polynomials.append(p)
    return polynomials


def sample_effects(first: list[Fraction], second: list[Fraction]) -> tuple[float, list[float]]:
    """Cliff's delta, and 2 / sqrt(3) times the correlations of membership with the four polynomials."""
    n1, n2 = sum(first), sum(second)
    delta, below = Fraction(0), Fraction(0)
    for f, g in zip(first, second, strict=True):
        above = n2 - below - g
        delta += f * (below - above)
        below += g
    halves = [f / n1 / 2 + g / n2 / 2 for f, g in zip(first, second, strict=True)]
    effects = [0.0] * 4
    for k, p in enumerate(rank_polynomials(halves)):
        difference = sum((f / n1 - g / n2) / 2 * p_v for f, g, p_v in zip(first, second, p, strict=True))
        norm = sum(h * p_v**2 for h, p_v in zip(halves, p, strict=True))
        effects[k] = 2 / math.sqrt(3) * _signed_root(difference * abs(difference) / norm)
    return float(delta / (n1 * n2)), effects


def effect_size(first: list[Fraction], second: list[Fraction]) -> float:
    """The largest effect; without the correction for ties where the first sample lacks rare values."""
    n1, n2 = sum(first), sum(second)
    halves = [f / n1 / 2 + g / n2 / 2 for f, g in zip(first, second, strict=True)]
    top = halves.index(max(halves))
    size = max(map(abs, sample_effects(first, second)[1]))
    if 2 * halves[top] > 1 and first[top] / n1 > second[top] / n2:
        size *= math.sqrt(1 - sum(h**3 for h in halves))
    return size


def two_sample_pvalue(first: list[Fraction], second: list[Fraction]) -> tuple[float, float]:
    """The combined p-value of two counted samples, and their largest squared standardised statistic."""
    both = [f + g for f, g in zip(first, second, strict=True)]
    n1, n2 = sum(first), sum(second)
    p_values, squares, lengths = [], [0.0], [Fraction(0)] * len(both)
    for polynomial in rank_polynomials(both):
        norm = sum(c * p_v**2 for c, p_v in zip(both, polynomial, strict=True)) / (n1 + n2)
        total = sum(f * p_v for f, p_v in zip(first, polynomial, strict=True))
        lengths = [of + p_v**2 / norm for of, p_v in zip(lengths, polynomial, strict=True)]
        z = _signed_root(total * abs(total) / norm * (n1 + n2 - 1) / (n1 * n2))
        squares.append(z * z)
        is_fisher = sum(c > 0 for c in both) == 2 and all(c.denominator == 1 for c in first + second)
        if abs(z) <= 2 and not is_fisher:
            p_values.append(math.erfc(abs(z) / math.sqrt(2)))
        else:
            scores = [(1 if z >= 0 else -1) * p_v for p_v in polynomial]
            p_values.append(min(1.0, 2 * permutation_tail(first, second, scores, norm)))
    if not p_values:
        return 1.0, 0.0
    kurtosis = sum(c * of**2 for c, of in zip(both, lengths, strict=True)) / (n1 + n2)
    least_rows = max(5 * ((n1 - n2) / (n1 + n2)) ** 2 * kurtosis, 2 * (kurtosis - 29))
    dependent = 2 * max(both) > n1 + n2 or min(n1, n2) < least_rows
    least, level = math.inf, 0.0
    for smaller, most, share in ((0, 1, 0.5), (1, 2, 0.25), (2, 4, 0.25)):
        if len(p_values) > smaller:
            together = p_values[:most]
            if dependent:
                p = len(together) * min(together)
            else:
                p = _chi_squared_tail(sum(NormalDist().inv_cdf(p / 2) ** 2 for p in together), len(together))
            least = min(least, p / share)
            level += share
    return min(1.0, least * level), max(squares)


def permutation_tail(
    first: list[Fraction], second: list[Fraction], scores: list[Fraction], square: Fraction
) -> float:
    """P(S >= s) of the sum of scores in a sample without replacement; `square` is the mean squared score."""
    cells = [(f, g, x) for f, g, x in zip(first, second, scores, strict=True) if f + g > 0]
    lowest, highest = min(x for f, _, x in cells if f > 0), max(x for _, g, x in cells if g > 0)
    n1, n = sum(first), sum(first) + sum(second)
    if lowest >= highest:
        drawn, left = (sum(c[i] for c in cells if c[2] == lowest) for i in (0, 1))
        return math.exp(_log_choose(drawn + left, drawn) - _log_choose(n, n1))
    if len(cells) == 2 and all(c.denominator == 1 for f, g, _ in cells for c in (f, g)):
        f, g, _ = max(cells, key=lambda cell: cell[2])
        ways = [
            math.comb(int(f + g), k) * math.comb(int(n - f - g), int(n1) - k)
            for k in range(int(f), int(min(f + g, n1)) + 1)
        ]
        return float(Fraction(sum(ways), math.comb(int(n), int(n1))))
    return _saddlepoint_tail([(float(f), float(g), _signed_root(x * abs(x) / square)) for f, g, x in cells])


def _saddlepoint_tail(cells: list[tuple[float, float, float]]) -> float:
    """The logistic regression of membership on the score: first the intercept for a slope, then the slope."""
    n1, n2 = math.fsum(f for f, _, _ in cells), math.fsum(g for _, g, _ in cells)
    n, total = n1 + n2, math.fsum(f * x for f, _, x in cells)

    def chance(intercept: float, slope: float, x: float) -> float:
        return 1 / (1 + math.exp(-min(max(intercept + slope * x, -700.0), 700.0)))

    def intercept_at(slope: float) -> float:
        def excess_at(a: float) -> float:
            return math.fsum((f + g) * chance(a, slope, x) for f, g, x in cells) - n1

        return brentq(excess_at, -700.0, 700.0, xtol=1e-14)

    def excess(slope: float) -> float:
        a = intercept_at(slope)
        return math.fsum((f + g) * x * chance(a, slope, x) for f, g, x in cells) - total

    largest = 1.0
    while excess(largest) < 0:
        largest *= 2
    slope = brentq(excess, 0.0, largest, xtol=1e-14)
    intercept = intercept_at(slope)
    gain = intercept * n1 + slope * total - n1 * math.log(n1 / n) - n2 * math.log(n2 / n)
    gain -= math.fsum((f + g) * math.log1p(math.exp(intercept + slope * x)) for f, g, x in cells)
    i00 = i01 = i11 = 0.0
    for f, g, x in cells:
        p = chance(intercept, slope, x)
        i00, i01, i11 = (i + (f + g) * p * (1 - p) * x**k for k, i in enumerate((i00, i01, i11)))
    w, tilt = math.sqrt(2 * gain), slope
    if len(cells) == 2:
        distance = abs(cells[0][2] - cells[1][2])
        tilt = -math.expm1(-distance * slope) / distance
    u = tilt * math.sqrt((i00 * i11 - i01**2) / (n1 * n2 / n))
    return math.erfc((w + math.log(u / w) / w) / math.sqrt(2)) / 2


def _chi_squared_tail(x: float, degrees: int) -> float:
    """P(chi-squared >= x) for one to four degrees of freedom."""
    if degrees % 2:
        tail = math.erfc(math.sqrt(x / 2))
        return tail if degrees == 1 else tail + math.sqrt(2 * x / math.pi) * math.exp(-x / 2)
    return math.exp(-x / 2) * (1 if degrees == 2 else 1 + x / 2)


def _log_choose(n: Fraction, k: Fraction) -> float:
    """Logarithm of a binomial coefficient, also of numbers that are not whole."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _signed_root(square: Fraction) -> float:
    """The root of a square with the sign of what was squared."""
    return math.copysign(math.sqrt(abs(square)), square)


def value_density(values: list[tuple[float, float]], x: float, n_levels: int) -> float:
    """The density of one variable in a class, from pairs of a value and a weight; 1 if there are none."""
    values = [(value, w) for value, w in values if not math.isnan(value)]
    total = sum(w for _, w in values)
    if n_levels:
        return (sum(w for value, w in values if value == x) + 1 / n_levels) / (total + 1)
    if not values:
        return 1.0
    mean = sum(w * value for value, w in values) / total
    deviation = math.sqrt(sum(w * (value - mean) ** 2 for value, w in values) / total)
    n = total**2 / sum(w * w for _, w in values)
    h = 1.06 * deviation * n**-0.2 if deviation > 1e-12 else 1.0
    kernels = [w * math.exp(-0.5 * ((x - value) / h) ** 2) for value, w in values]
    return sum(kernels) / total / (h * math.sqrt(2 * math.pi))


def mixed_factor(value: float, x: float, h: float, n_levels: int) -> float:
    """The kernel of one variable at x: normal, or exp(-1 / (2 h^2)) for another level, over its sum."""
    if n_levels:
        other = math.exp(-0.5 / h**2)
        return (1.0 if value == x else other) / (1 + (n_levels - 1) * other)
    return math.exp(-0.5 * ((x - value) / h) ** 2) / (h * math.sqrt(2 * math.pi))


def mixed_factors(
    X: ArrayLike, weights: ArrayLike, x: ArrayLike, h: ArrayLike, levels: list[int]
) -> list[list[float]]:
    """The factors of each row's kernel: 1 for gaps of x, the density of the variable for gaps of the row."""
    factors = []
    for row in X:
        of_row = []
        for j, n_levels in enumerate(levels):
            if math.isnan(x[j]):
                of_row.append(1.0)
            elif math.isnan(row[j]):
                column = [(float(other[j]), float(w)) for other, w in zip(X, weights, strict=True)]
                of_row.append(value_density(column, x[j], n_levels))
            else:
                of_row.append(mixed_factor(row[j], x[j], h[j], n_levels))
        factors.append(of_row)
    return factors


def mixed_log_density(
    X: ArrayLike, weights: ArrayLike, x: ArrayLike, h: ArrayLike, levels: list[int]
) -> float:
    """The log density of a class at x, where values are missing or levels."""
    products = [math.prod(of_row) for of_row in mixed_factors(X, weights, x, h, levels)]
    total = sum(weights)
    return math.log(sum(w * product for w, product in zip(weights, products, strict=True)) / total)


def mixed_rodeo(
    X: ArrayLike, x: ArrayLike, levels: list[int], grid: list[float], update: str
) -> tuple[list[float], float]:
    """Algorithm 1 where values are missing or levels; Z_ji by a symmetric difference of the kernels."""
    n, d = len(X), len(levels)
    ones = [1.0] * n
    steps = [0] * d
    lowest = 1 / math.sqrt(2 * math.log(max(n, 2)))
    active = [j for j in range(d) if not math.isnan(x[j])]

    def derivatives(steps: list[int], j: int) -> list[float]:
        h = [grid[k] for k in steps]
        above, below = ([*h[:j], h[j] * (1 + e), *h[j + 1 :]] for e in (1e-6, -1e-6))
        high, low = (
            [math.prod(of_row) for of_row in mixed_factors(X, ones, x, near, levels)]
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
            more = steps[j] + 1 < len(grid) and (not levels[j] or grid[steps[j] + 1] >= lowest)
            if mean**2 > variance / n * 2 * math.log(n * c_n) and more:
                steps[j] += 1
                kept.append(j)
        active = kept
    h = [grid[k] for k in steps]
    return h, mixed_log_density(X, ones, x, h, levels)


def midrank(column: ArrayLike, weights: ArrayLike, value: float) -> float:
    """Share of the weight of rows below a value, and half of that at it."""
    below = at = total = 0.0
    for x, weight in zip(column, weights, strict=True):
        total += weight
        if x < value:
            below += weight
        elif x == value:
            at += weight
    return (below + 0.5 * at) / total


def conformal_pvalue(values: ArrayLike, weights: ArrayLike, x: float) -> float:
    """Share of weighted numbers that are at most x, x counted among them; n is Kish's number of them."""
    m = [Fraction(w) for w in _floats(weights)]
    if not any(m):
        return 1.0
    n = sum(m) ** 2 / sum(w * w for w in m)
    at_most = sum((w for v, w in zip(_floats(values), m, strict=True) if v <= x), Fraction(0))
    return float((1 + n * at_most / sum(m)) / (1 + n))


def nearest_distance(
    column: ArrayLike, units: ArrayLike, x: float, unit: Hashable, deviation: float
) -> float:
    """How far x lies from the nearest value of another unit, in deviations; 0 if there is none, or no x."""
    apart = [
        abs(v - x) / deviation
        for v, of_row in zip(_floats(column), list(units), strict=True)
        if of_row != unit and not math.isnan(v)
    ]
    return 0.0 if math.isnan(x) or not apart else min(apart)


def lower_median(values: list[float]) -> float:
    """The lower one of two medians."""
    return sorted(values)[(len(values) - 1) // 2]


class _TableWithout:
    """Columns and weights of the rows of a table that are not of a unit, with medians."""

    def __init__(self, X: ArrayLike, units: ArrayLike, weights: ArrayLike, unit: Hashable) -> None:
        left = [i for i, of_row in enumerate(list(units)) if of_row != unit]
        self.columns = [_floats(column) for column in np.asarray(X, dtype=float)[left].T]
        self.weights = [_floats(weights)[i] for i in left]
        self.medians = [
            lower_median([v for v in column if not math.isnan(v)] or [math.nan]) for column in self.columns
        ]

    def deviation_from_median(self, j: int, x: float) -> float:
        return (x - self.medians[j]) / deviation_with(self.columns[j], self.weights, x)

    def strangeness(self, j: int, x: float, z: float) -> tuple[int, float]:
        """How many rows lie as far out on the same side, and the distance; smaller is stranger."""
        return sum(v >= x if z > 0.0 else v <= x for v in self.columns[j]), -abs(z)


def outlying_bound(X: ArrayLike, units: ArrayLike, weights: ArrayLike) -> tuple[float, float]:
    """The strangest cell of the last row that is among the most outlying, each compared without its unit.

    As many rows may be that with one more they are a hundredth, and at least one.
    """
    X, cells = np.asarray(X, dtype=float), []
    for i, unit in enumerate(units):
        others = _TableWithout(X, units, weights, unit)
        for j, x in enumerate(_floats(X[i])):
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
    units: ArrayLike,
    x: ArrayLike,
    unit: Hashable,
    weights: ArrayLike,
    bound: tuple[float, float] | None = None,
) -> list[float]:
    """How far values lie from the medians of their columns, in deviations; 0 but for the strangest beyond 7.

    A row of a unit is compared with rows of other units alone. `bound` is `outlying_bound`, if it is known.
    """
    others, found = _TableWithout(X, units, weights, unit), []
    bound = outlying_bound(X, units, weights) if bound is None else bound
    for j, x_j in enumerate(_floats(x)):
        z = others.deviation_from_median(j, x_j)
        counts = abs(z) > 7.0 and others.strangeness(j, x_j, z) <= bound
        found.append(abs(z) if counts else 0.0)
    return found


def extreme_term(apart: float) -> float:
    """What a distance from the median takes from a score: nothing up to 7, 64 from 9 on."""
    return 64.0 * min(1.0, max(0.0, (apart - 7.0) / 2.0))


def robust_deviation(column: ArrayLike, weights: ArrayLike) -> float:
    """Weighted deviation of a column, at most ten times that without the half per cent farthest out.

    It is 1 of a column that is constant, and at least what rounding makes of numbers so large.
    """
    known = [(v, w) for v, w in zip(_floats(column), _floats(weights), strict=True) if not math.isnan(v)]

    def deviation(values: list[tuple[float, float]]) -> float:
        total = sum(w for _, w in values)
        mean = sum(w * v for v, w in values) / total
        return math.sqrt(sum(w * (v - mean) ** 2 for v, w in values) / total)

    if not known:
        return 1.0
    whole, rest = deviation(known) if len({v for v, _ in known}) > 1 else 1.0, known
    if len(known) >= 20:
        median = lower_median([v for v, _ in known])
        nearest_first = sorted(known, key=lambda value: abs(value[0] - median))
        rest = nearest_first[: len(known) - math.ceil(0.005 * len(known))]
        if len({v for v, _ in rest}) > 1:
            whole = min(whole, 10.0 * deviation(rest))
    return max(whole, 2e-12 * max(abs(v) for v, _ in rest))


def deviation_with(column: ArrayLike, weights: ArrayLike, x: float) -> float:
    """Deviation of a column; of a constant one what it has with x as one more row, if that is less.

    It is infinite if x is the constant, but for rounding.
    """
    known = [v for v in _floats(column) if not math.isnan(v)]
    if len(set(known)) != 1 or math.isnan(x):
        return robust_deviation(column, weights)
    if abs(x - known[0]) <= (1e-6 * abs(known[0]) or 2e-12):
        return math.inf
    mean = (sum(known) + x) / (len(known) + 1)
    whole = math.sqrt(sum((v - mean) ** 2 for v in [*known, x]) / (len(known) + 1))
    return min(robust_deviation(column, weights), whole)


def remoteness(
    X: ArrayLike, codes: ArrayLike, units: ArrayLike, y: int, x: ArrayLike, unit: Hashable, weights: ArrayLike
) -> float:
    """Four times the sum of squares of how far values lie beyond three deviations from those of class y.

    A class without values in a column is judged by those of all rows. A row of a unit is compared with rows
    of other units alone, of which the deviations are as well.
    """
    X, units, total = np.asarray(X, dtype=float), np.asarray(units), 0.0
    others = _TableWithout(X, units, weights, unit)
    for j, x_j in enumerate(_floats(x)):
        rows = (np.asarray(codes) == y) & ~np.isnan(X[:, j])
        rows = rows if rows.any() else np.ones(len(X), dtype=bool)
        deviation = deviation_with(others.columns[j], others.weights, x_j)
        apart = nearest_distance(X[rows, j], units[rows], x_j, unit, deviation)
        total += 4.0 * max(0.0, apart - 3.0) ** 2
    return total


def unlikeness(
    X: ArrayLike,
    codes: ArrayLike,
    units: ArrayLike,
    weights: ArrayLike,
    y: int,
    x: ArrayLike,
    log_density: Callable[[int | None, frozenset[int]], float],
    spread: float,
) -> list[float]:
    """How much each variable makes x unlike class y, where log densities have a spread.

    ``log_density`` is asked for the position of a row, which is left out with its unit, or for None, which is
    x, and for the variables that are known.
    """
    X, x, m = np.asarray(X, dtype=float), _floats(x), _floats(weights)

    def parts(i: int | None) -> dict[int, float]:
        players = [j for j, x_j in enumerate(x if i is None else _floats(X[i])) if not math.isnan(x_j)]
        return dict(zip(players, shapley(lambda known: log_density(i, known), players), strict=True))

    rows = [i for i, code in enumerate(codes) if code == y]
    of_rows, of_x, found = {i: parts(i) for i in rows}, parts(None), []
    for j in range(X.shape[1]):
        if j not in of_x:
            found.append(0.0)
            continue
        known = sorted((of_row[j], m[i]) for i, of_row in of_rows.items() if j in of_row)
        below, median = 0.0, 0.0
        for value, w in known:
            if below < 0.5 * sum(w for _, w in known):
                median = value
            below += w
        alone = [x[k] if k == j else math.nan for k in range(len(x))]
        found.append((median - of_x[j]) / spread + remoteness(X, codes, units, y, alone, None, m))
    apart = extremes(X, units, x, None, m)
    found[apart.index(max(apart))] += extreme_term(max(apart))
    return found


def level_share(
    column: ArrayLike,
    codes: ArrayLike,
    units: ArrayLike,
    weights: ArrayLike,
    n_levels: int,
    level: float,
    y: int,
    unit: Hashable,
) -> float:
    """Frequency of a level in class y without a unit, drawn towards that of all classes by two rows."""
    of_level = of_class = of_both = of_all = 0.0
    for value, c, u, w in zip(_floats(column), codes, units, _floats(weights), strict=True):
        if u == unit or math.isnan(value):
            continue
        of_all += w
        of_level += w if value == level else 0.0
        of_class += w if c == y else 0.0
        of_both += w if c == y and value == level else 0.0
    pooled = (of_level + 1.0 / n_levels) / (of_all + 1.0)
    return (of_both + 2.0 * pooled) / (of_class + 2.0)


def told_apart(likeness: ArrayLike, codes: ArrayLike, weights: ArrayLike) -> float:
    """Share of pairs of a row of a class and one of others that its other classes rank, mean over classes."""
    codes, m, likeness = list(codes), _floats(weights), [_floats(row) for row in np.asarray(likeness)]
    scores_of = typical_scores(likeness, codes, m)
    n_classes, found = len(likeness[0]), []
    scores = [scores_of(row, [0.0] * n_classes) for row in likeness]
    for y in range(n_classes):
        best = [max(u for k, u in enumerate(row) if k != y) for row in scores]
        pairs = [
            (m[i] * m[k], 1.0 if best[i] < best[k] else 0.5 if best[i] == best[k] else 0.0)
            for i, code in enumerate(codes)
            for k, other in enumerate(codes)
            if code == y and other != y
        ]
        found.append(sum(w * right for w, right in pairs) / sum(w for w, _ in pairs))
    return sum(found) / n_classes


def typical_scores(
    left_out: ArrayLike, codes: ArrayLike, weights: ArrayLike
) -> Callable[[ArrayLike, ArrayLike], list[float]]:
    """What makes scores of log densities by class, given those of left-out rows and their classes.

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

    def median(rows: list[tuple[float, int, float]]) -> float:
        half, below = 0.5 * sum(w for _, _, w in rows), 0.0
        for value, _, w in sorted(rows):
            below += w
            if below >= half:
                return value
        return 0.0

    medians = [median([row for row in own if row[1] == y] or own) for y in range(n_classes)]
    lower = sum(w * max(0.0, medians[y] - value) for value, y, w in own)
    spread = 2.0 * lower / sum(w for _, _, w in own) or 1.0
    centers = [(m + median(own)) / 2.0 for m in medians]
    return lambda log_density, terms: [
        (log_p - c) / spread - term
        for log_p, c, term in zip(_floats(log_density), centers, _floats(terms), strict=True)
    ]


def judge(
    X: ArrayLike,
    codes: ArrayLike,
    units: ArrayLike,
    weights: ArrayLike,
    samples: ArrayLike,
    log_density: Callable[[list[float], int, Hashable], float],
    n_classes: int,
) -> tuple[list[list[float]], list[float]]:
    """Typicality of samples by class, and their novelty, every training row being left out with its unit.

    ``log_density`` is asked for a row, a class, and the unit to leave out, None for a sample. Weights are 0
    where a class has no row of another unit.
    """
    X = np.asarray(X, dtype=float)
    m = [
        w if any(c == y and u != unit for c, u in zip(codes, units, strict=True)) else 0.0
        for w, y, unit in zip(_floats(weights), codes, units, strict=True)
    ]
    left_out = [
        [log_density(_floats(x), y, unit) for y in range(n_classes)] for x, unit in zip(X, units, strict=True)
    ]
    scores_of, bound = typical_scores(left_out, codes, m), outlying_bound(X, units, weights)

    def terms(x: ArrayLike, unit: Hashable) -> list[float]:
        extreme = extreme_term(max(extremes(X, units, x, unit, weights, bound)))
        return [extreme + remoteness(X, codes, units, y, x, unit, weights) for y in range(n_classes)]

    of_rows = [scores_of(log_p, terms(x, unit)) for log_p, x, unit in zip(left_out, X, units, strict=True)]
    typicality, novelty = [], []
    for x in np.asarray(samples, dtype=float):
        scores = scores_of([log_density(_floats(x), y, None) for y in range(n_classes)], terms(x, None))
        pvalues = []
        for y in range(n_classes):
            has_rows = any(w > 0 and c == y for w, c in zip(m, codes, strict=True))
            rows = [i for i, c in enumerate(codes) if c == y or not has_rows]
            own = [of_rows[i][codes[i]] for i in rows]
            pvalues.append(conformal_pvalue(own, [m[i] for i in rows], scores[y]))
        typicality.append(pvalues)
        novelty.append(conformal_pvalue([max(of_row) for of_row in of_rows], m, max(scores)))
    return typicality, novelty


def cells_of(X: ArrayLike, weights: ArrayLike, first: ArrayLike, n_rounds: int) -> list[int]:
    """Lloyd's algorithm from some first centres: the cell of each row after some rounds."""
    rows, w = [[Fraction(v) for v in row] for row in _lists(X)], [Fraction(v) for v in _floats(weights)]
    centres = [[Fraction(v) for v in row] for row in _lists(first)]

    def nearest(row: list[Fraction]) -> int:
        apart = [sum((a - b) ** 2 for a, b in zip(row, centre, strict=True)) for centre in centres]
        return apart.index(min(apart))

    for _ in range(n_rounds):
        cells = [nearest(row) for row in rows]
        for k in range(len(centres)):
            mine = [i for i, cell in enumerate(cells) if cell == k]
            if mine:
                total = sum(w[i] for i in mine)
                centres[k] = [sum(w[i] * rows[i][j] for i in mine) / total for j in range(len(rows[0]))]
    return [nearest(row) for row in rows]


def averages(
    X: ArrayLike, weights: ArrayLike, cells: list[int]
) -> tuple[list[list[float]], list[float], list[list[float]]]:
    """Weighted means of the rows of each cell, their weights, and the scatter of rows around these means."""
    rows, w = [[Fraction(v) for v in row] for row in _lists(X)], [Fraction(v) for v in _floats(weights)]
    d = len(rows[0])
    means, totals = [], []
    scatter = [[Fraction(0)] * d for _ in range(d)]
    for k in sorted(set(cells)):
        mine = [i for i, cell in enumerate(cells) if cell == k]
        total = sum((w[i] for i in mine), Fraction(0))
        mean = [sum((w[i] * rows[i][j] for i in mine), Fraction(0)) / total for j in range(d)]
        for i in mine:
            for a, b in itertools.product(range(d), repeat=2):
                scatter[a][b] += w[i] * (rows[i][a] - mean[a]) * (rows[i][b] - mean[b])
        means.append([float(v) for v in mean])
        totals.append(float(total))
    return means, totals, [[float(v) for v in row] for row in scatter]


def averaged_log_density(
    X: ArrayLike,
    weights: ArrayLike,
    cells: list[int],
    x: ArrayLike,
    H: ArrayLike,
    mean: ArrayLike,
    pull: float,
) -> float:
    """Log density at x of normal kernels on averages of rows, pulled towards a mean.

    Kernels have the covariance H and what rows, pulled as well, vary around their averages.
    """
    means, totals, scatter = averages(X, weights, cells)
    spread = np.array(scatter) / sum(totals)
    covariance = np.asarray(H, dtype=float) + pull**2 * spread
    inverse, (_, log_det) = np.linalg.inv(covariance), np.linalg.slogdet(covariance)
    exponents = []
    for centre, total in zip(means, totals, strict=True):
        apart = np.asarray(x) - (np.asarray(mean) + pull * (np.array(centre) - np.asarray(mean)))
        exponents.append(math.log(total) - 0.5 * float(apart @ inverse @ apart))
    d = len(means[0])
    return _log_sum_exp(exponents) - math.log(sum(totals)) - 0.5 * (log_det + d * math.log(2.0 * math.pi))


def accuracy_of_one_column(x: ArrayLike, codes: ArrayLike, units: ArrayLike, *, ordered: bool) -> float:
    """Share of rows whose class is that of most rows of other units with their value, or with the nearest."""
    values, labels, of = _floats(x), list(map(int, codes)), list(map(int, units))
    n_right = 0
    for i, value in enumerate(values):
        others = [k for k in range(len(values)) if of[k] != of[i]]
        same = [k for k in others if values[k] == value or (math.isnan(values[k]) and math.isnan(value))]
        if same:
            mine = sum(labels[k] == labels[i] for k in same)
            n_right += all(mine > sum(labels[k] == c for k in same) for c in set(labels) - {labels[i]})
            continue
        known = [k for k in others if not math.isnan(values[k])]
        if not ordered or math.isnan(value) or not known:
            continue
        # Of two that are equally near the lower one, and of classes that are equally frequent the first.
        nearest = min({values[k] for k in known}, key=lambda v: (abs(v - value), v))
        there = [labels[k] for k in known if values[k] == nearest]
        n_right += min(set(there), key=lambda c: (-there.count(c), c)) == labels[i]
    return n_right / len(values)


def _lists(X: ArrayLike) -> list[list[float]]:
    return [_floats(row) for row in np.asarray(X, dtype=float)]

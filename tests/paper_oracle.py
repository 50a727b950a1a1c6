"""Algorithms 1 to 4 of the paper as plain loops: the slow referee for every fast path.

Read it next to the paper: one Python loop per sum, the paper's letters for the paper's quantities.
It is written to be right rather than fast. A float is a fraction, so squared distances, exponents,
means and variances of the algorithms are computed exactly with ``fractions.Fraction``; only ``exp``, ``log``
and the number that is returned are rounded. Therefore a row may lie arbitrarily far from the data, a common
factor of all weights changes no bit, and the order of the rows cannot matter.

What is not in the paper has its oracle beside its tests, for example in tests/pool/pool_oracle.py.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp


def initial_bandwidth(n: float, c0: float = 1.0) -> float:
    """h_0 = c_0 / log log n, with n at least 16 so that small classes get a positive bandwidth."""
    return c0 / math.log(math.log(max(n, 16)))


def effective_number(X: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Kish's effective number of rows, (sum w_i)^2 / sum w_i^2."""
    return float(sum(rows_and_weights(X, weights)[1]))


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
    x = floats(x)
    d = len(x)
    X, m = rows_and_weights(X, weights)
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
    return h, log_density(squares, h, m)


def leave_one_out(
    X: ArrayLike, i: int, *, weights: ArrayLike | None = None, **settings: Any
) -> tuple[list[float], float]:
    """Algorithm 1 at row i against its class without row i, whatever its weight."""
    x = floats(np.asarray(X)[i])
    weights = [1.0] * len(X) if weights is None else floats(weights)
    weights[i] = 0.0
    return rodeo(X, x, weights=weights, **settings)


def mean_bandwidths(X: ArrayLike, *, weights: ArrayLike | None = None, **settings: Any) -> list[float]:
    """Algorithm 2, steps 1-2: weighted mean over the rows of leave-one-out bandwidths."""
    m = [1.0] * len(X) if weights is None else floats(weights)
    n = sum(Fraction(m_i) for m_i in m)
    totals = [Fraction(0)] * np.asarray(X).shape[1]
    for i, m_i in enumerate(m):
        if m_i > 0:
            h, _ = leave_one_out(X, i, weights=weights, **settings)
            totals = [total + Fraction(m_i) * Fraction(h_j) for total, h_j in zip(totals, h, strict=True)]
    return [float(total / n) for total in totals]


def zscores(bandwidths: ArrayLike) -> list[float]:
    """Algorithm 2, step 3: centre and divide by the standard deviation (divisor d - 1); zero if all equal."""
    h = [Fraction(h_j) for h_j in floats(bandwidths)]
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
    **settings: Any,
) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
    """Algorithm 3 at one point: log(prior_y p_y(x)) and the posterior probability of every label y.

    ``classes`` maps a label to ``(rows,)`` or ``(rows, weights)``; ``floor(n, h0)`` gives the class's floor.
    """
    log_densities = []
    for rows, *rest in classes.values():
        weights = rest[0] if rest else None
        n = effective_number(rows, weights)
        h0 = initial_bandwidth(n, c0)
        log_densities.append(rodeo(rows, x, h0=h0, floor=floor(n, h0), weights=weights, **settings)[1])
    in_order = [priors[label] for label in classes]
    joint, probabilities = joint_log_probability(log_densities, in_order), posterior(log_densities, in_order)
    return dict(zip(classes, joint, strict=True)), dict(zip(classes, probabilities, strict=True))


def joint_log_probability(log_densities: ArrayLike, priors: ArrayLike) -> list[float]:
    """log(pi_y p_y)."""
    log_priors = [math.log(pi) if pi > 0 else -math.inf for pi in floats(priors)]
    return [log_p + log_pi for log_p, log_pi in zip(floats(log_densities), log_priors, strict=True)]


def posterior(log_densities: ArrayLike, priors: ArrayLike, *, prior_mixing: float = 0.0) -> list[float]:
    """(1 - prior_mixing) pi_y p_y / sum + prior_mixing pi_y; where every density is zero, the prior."""
    joint = joint_log_probability(log_densities, priors)
    if max(joint) == -math.inf:
        joint = joint_log_probability(np.zeros(len(joint)), priors)
    log_total = logsumexp(joint)
    return [
        (1 - prior_mixing) * math.exp(value - log_total) + prior_mixing * pi
        for value, pi in zip(joint, floats(priors), strict=True)
    ]


def kernel_log_density(
    X: ArrayLike, x: ArrayLike, h: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Kernel log density with given bandwidths; a variable whose h_j is infinite takes no part."""
    used = [j for j, h_j in enumerate(floats(h)) if h_j < math.inf]
    h, x = [floats(h)[j] for j in used], [floats(x)[j] for j in used]
    X, m = rows_and_weights(X, weights)
    if not X:
        return -math.inf
    squares = [[(Fraction(x_j) - Fraction(row[j])) ** 2 for x_j, j in zip(x, used, strict=True)] for row in X]
    return log_density(squares, h, m)


def density(X: ArrayLike, x: ArrayLike, h: ArrayLike) -> float:
    """(1/n) sum_i prod_j (1/h_j) phi((x_j - x_ij)/h_j)."""
    return math.exp(kernel_log_density(X, x, h))


def second_derivative(X: ArrayLike, x: ArrayLike, h: ArrayLike, j: int) -> float:
    """Second derivative of the density with respect to x_j: phi'' (u) = (u^2 - 1) phi(u)."""
    X, x, h = np.asarray(X, dtype=float).tolist(), floats(x), floats(h)
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
    """Algorithm 4 without scaling: the results of every pass, until epsilon is reached or a class is used up.

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


def log_density(squares: list[list[Fraction]], h: list[float], m: list[Fraction]) -> float:
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


def _to_float(number: Fraction) -> float:
    """Nearest float; infinite where no finite float is near."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def floats(values: ArrayLike) -> list[float]:
    """One-dimensional input as a list of floats."""
    return np.asarray(values, dtype=float).tolist()


def rows_and_weights(X: ArrayLike, weights: ArrayLike | None) -> tuple[list[list[float]], list[Fraction]]:
    """Rows of positive weight, and weights that sum to the effective number of rows, 1 if all are alike."""
    rows = np.asarray(X, dtype=float).tolist()
    w = [1.0] * len(rows) if weights is None else floats(weights)
    kept = [(row, Fraction(w_i)) for row, w_i in zip(rows, w, strict=True) if w_i > 0]
    factor = sum(w_i for _, w_i in kept) / sum(w_i**2 for _, w_i in kept) if kept else 1
    return [row for row, _ in kept], [w_i * factor for _, w_i in kept]

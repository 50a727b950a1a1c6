"""The local classifier in plain NumPy, as fast as array operations get it: the peer of the compiled kernels.

Algorithm 1 with simultaneous updates, in logarithms, for the settings of `RodeoClassifier()`: range scale,
beta = 0.9, c0 = 1, floor h0 / n. Both versions choose the same bandwidths as the kernels; the benchmark
checks it.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rodeo = Callable[[Floats, Floats, Floats, float], tuple[Integers, Floats]]

# In a variable that few queries still shrink, single pairs cost less than products for all queries.
_RARE = 0.1


class NumpyRodeoClassifier:
    """`RodeoClassifier()` with one of the functions below in place of the compiled kernels."""

    def __init__(self, rodeo: Rodeo) -> None:
        self.rodeo = rodeo

    def fit(self, X: Floats, y: NDArray) -> "NumpyRodeoClassifier":
        """Store the scaled rows of each class."""
        self.low, self.width = X.min(axis=0), np.ptp(X, axis=0)
        self.labels = np.unique(y)
        self.rows = [(X[y == label] - self.low) / self.width for label in self.labels]
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Probability of each class, with uniform priors."""
        log_density, _ = self.estimate(X)
        joint = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        return joint / joint.sum(axis=1, keepdims=True)

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Log densities (n_samples, n_classes) and bandwidths (n_samples, n_classes, n_features)."""
        x = (X - self.low) / self.width
        log_density = np.empty((len(x), len(self.rows)))
        bandwidths = np.empty((len(x), len(self.rows), x.shape[1]))
        for y, rows in enumerate(self.rows):
            n, d = rows.shape
            h0 = 1.0 / math.log(math.log(max(n, 16)))
            h = h0 * 0.9 ** np.arange(math.floor(math.log(n) / -math.log(0.9)) + 1)
            L = 2.0 * math.log(n * math.log(max(n, 16)))
            steps, log_sum = self.rodeo(rows, x, h, L * n / (n - 1.0 + L))
            bandwidths[:, y] = h[steps]
            log_norm = np.log(bandwidths[:, y]).sum(axis=1) + 0.5 * d * math.log(2.0 * math.pi) + math.log(n)
            log_density[:, y] = log_sum - log_norm
        return log_density, bandwidths


def one_query_at_a_time(X: Floats, x: Floats, h: Floats, critical: float) -> tuple[Integers, Floats]:
    """Broadcast over rows and active variables, in a loop over queries.

    Parameters
    ----------
    X : (n, d) scaled rows of the class.
    x : (n_queries, d) scaled queries.
    h : the bandwidths h0 beta^k.
    critical : a variable shrinks where (sum Z_ji)^2 > critical * sum Z_ji^2.

    Returns
    -------
    steps : (n_queries, d) index of each bandwidth in `h`.
    log_sum : (n_queries,) log of sum_i exp(-sum_j (x_j - x_ij)^2 / (2 h_j^2)).
    """
    columns = np.ascontiguousarray(X.T)
    steps = np.zeros(x.shape, dtype=np.int64)
    log_sum = np.empty(len(x))
    for q, point in enumerate(x):
        squares = (columns - point[:, np.newaxis]) ** 2
        exponent = squares.sum(axis=0) * (-0.5 / h[0] ** 2)
        active = np.arange(len(point))
        for k in range(len(h)):
            largest = exponent.max()
            weight = np.exp(exponent - largest)
            Z = (squares / h[k] ** 2 - 1.0) * weight
            shrinks = Z.sum(axis=1) ** 2 > critical * np.einsum("ji,ji->j", Z, Z)
            if k + 1 == len(h):
                shrinks[:] = False
            if not shrinks.all():
                steps[q, active[~shrinks]] = k
                active, squares = active[shrinks], squares[shrinks]
                if not active.size:
                    log_sum[q] = largest + math.log(weight.sum())
                    break
            exponent -= squares.sum(axis=0) * (0.5 / h[k + 1] ** 2 - 0.5 / h[k] ** 2)
    return steps, log_sum


def matrix_products(X: Floats, x: Floats, h: Floats, critical: float) -> tuple[Integers, Floats]:
    """All queries at once; arguments and results as above.

    As all active bandwidths are equal, the exponent of a row is frozen + distance / (2 h^2), with the
    squared distance over the active variables. What all rows of a class share (squares of the query's own
    coordinates) is kept apart, since it does not change the test.
    """
    n, d = X.shape
    center = X.mean(axis=0)  # keeps the powers small and hence their differences accurate
    X, x = X - center, x - center
    powers = np.stack([X, X**2, X**3, X**4], axis=1)  # (n, 4, d)
    parts = np.stack([X.T**2, -2.0 * X.T], axis=1)  # (d, 2, n): times 1 and x they give (x - x_i)^2 - x^2
    steps = np.zeros(x.shape, dtype=np.int64)
    log_sum = np.empty(len(x))

    query, variable = np.arange(len(x)), np.arange(d)  # those with something active
    active = np.ones(x.shape, dtype=bool)
    distance = x @ parts[:, 1] + parts[:, 0].sum(axis=0)
    frozen, shared = np.zeros_like(distance), np.zeros(len(x))
    for k in range(len(h)):
        c = 1.0 / h[k] ** 2
        weight = distance * (-0.5 * c)
        weight -= frozen
        largest = weight.max(axis=1, keepdims=True)
        weight -= largest
        np.exp(weight, out=weight)
        total = weight.sum(axis=1, keepdims=True)
        if k + 1 < len(h):
            shrinks = _shrinks(powers[:, :, variable], x, active, weight, total, c, critical)
        else:
            shrinks = np.zeros_like(active)

        stops = active & ~shrinks
        some = np.flatnonzero(stops.any(axis=0))
        if not some.size:
            continue
        q, j = np.nonzero(stops)
        steps[query[q], variable[j]] = k
        factors = np.empty((len(x), some.size, 2))
        factors[:, :, 0] = stops[:, some]
        np.multiply(factors[:, :, 0], x[:, some], out=factors[:, :, 1])
        shared += np.einsum("qj,qj->q", factors[:, :, 1], x[:, some]) * (0.5 * c)
        stopped = factors.reshape(len(x), -1) @ parts[variable[some]].reshape(-1, n)
        distance -= stopped
        stopped *= 0.5 * c
        frozen += stopped

        going = shrinks.any(axis=1)
        done = ~going  # its bandwidths stay, so these weights are its last
        log_sum[query[done]] = np.log(total[done, 0]) + largest[done, 0] - shared[done]
        if not going.any():
            break
        kept = np.flatnonzero(shrinks.any(axis=0))
        variable, query, shared = variable[kept], query[going], shared[going]
        x, active = x[going][:, kept], shrinks[going][:, kept]
        if done.any():
            distance, frozen = distance[going], frozen[going]
    return steps, log_sum


def _shrinks(
    powers: Floats,
    x: Floats,
    active: NDArray[np.bool_],
    weight: Floats,
    total: Floats,
    c: float,
    critical: float,
) -> NDArray[np.bool_]:
    """Whether each variable shrinks at each query."""
    share = active.mean(axis=0)
    shrinks = np.zeros(active.shape, dtype=bool)
    often = np.flatnonzero(share > _RARE)
    if often.size:
        shrinks[:, often] = _shrinks_by_moments(powers[:, :, often], x[:, often], weight, total, c, critical)
        shrinks &= active
    rarely = np.flatnonzero(share <= _RARE)
    q, j = np.nonzero(active[:, rarely])
    if q.size:
        j = rarely[j]
        Z = powers[:, 0].T[j]
        Z -= x[q, j, np.newaxis]
        Z *= Z
        Z *= c
        Z -= 1.0
        Z *= weight[q]
        shrinks[q, j] = Z.sum(axis=1) ** 2 > critical * np.einsum("qi,qi->q", Z, Z)
    return shrinks


def _shrinks_by_moments(
    powers: Floats, x: Floats, weight: Floats, w0: Floats, c: float, critical: float
) -> NDArray[np.bool_]:
    """The same for all queries and variables, whether active or not.

    With weights w, sum_i Z_ji = sum_i w_i ((x_j - x_ij)^2 / h^2 - 1) is a polynomial in x_j whose
    coefficients are the sums of w_i x_ij^p, and sum_i Z_ji^2 likewise with w_i^2 and up to p = 4: matrix
    products of the weights and powers of the rows.
    """
    n, _, d = powers.shape
    moments = powers.reshape(n, 4 * d)
    w1, w2 = np.hsplit(weight @ moments[:, : 2 * d], 2)
    square = weight * weight
    v0 = square.sum(axis=1, keepdims=True)
    v1, v2, v3, v4 = np.hsplit(square @ moments, 4)
    s1 = ((w0 * x - 2.0 * w1) * x + w2) * c - w0
    second = (v0 * x - 2.0 * v1) * x + v2
    fourth = (((v0 * x - 4.0 * v1) * x + 6.0 * v2) * x - 4.0 * v3) * x + v4
    return s1 * s1 > critical * ((fourth * c - 2.0 * second) * c + v0)

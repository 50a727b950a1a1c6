r"""The Rodeo with expected values instead of sums over rows, so that bandwidths are not random.

If the density of a class is known, the mean and the variance of the derivative :math:`Z_j` at a point can be
computed for any bandwidths. Both determine the bandwidth at which algorithm 1 stops. With a product
kernel and independent variables, mean and variance are products of four integrals of each variable, where
:math:`f` is the density of the variable:

.. math::

    m = \int K_h f, \quad m' = \int \frac{\partial K_h}{\partial h} f, \quad
    q = \int K_h^2 f, \quad w = \int \Big(\frac{\partial K_h}{\partial h}\Big)^2 f.

So bandwidths can be computed for arbitrarily many rows, and under the assumption that a step of the proof of
theorem 1 holds.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

_BETA = 0.9


class Integrals(NamedTuple):
    """The four integrals (n_points, n_variables) of each variable at each point."""

    m: np.ndarray
    dm: np.ndarray
    q: np.ndarray
    w: np.ndarray


def normal_integrals(x: np.ndarray, h: np.ndarray, mean: float, deviation: float) -> Integrals:
    """Compute the integrals of a normal variable; smoothing adds the variance of the kernel."""
    u = x - mean
    variance = deviation**2 + h**2
    m = _normal(u, variance)
    dm = m * h * (u**2 - variance) / variance**2
    # A squared kernel is a kernel that is narrower by the square root of 2, so distances are normal again.
    squared = deviation**2 + 0.5 * h**2
    q = _normal(u, squared) / (2.0 * np.sqrt(np.pi) * h)
    center, spread = u * 0.5 * h**2 / squared, deviation**2 * 0.5 * h**2 / squared
    second = center**2 + spread
    fourth = center**4 + 6.0 * center**2 * spread + 3.0 * spread**2
    return Integrals(m, dm, q, q * (fourth - 2.0 * h**2 * second + h**4) / h**6)


def uniform_integrals(x: np.ndarray, h: np.ndarray) -> Integrals:
    """Compute the integrals of a variable that is uniform on [0, 1]."""
    low, high = -x / h, (1.0 - x) / h
    m = ndtr(high) - ndtr(low)
    dm = (low * _normal(low) - high * _normal(high)) / h
    low, high = low * np.sqrt(2.0), high * np.sqrt(2.0)
    at_low, at_high = _normal(low), _normal(high)
    none = ndtr(high) - ndtr(low)
    second = none - (high * at_high - low * at_low)
    fourth = 3.0 * second - (high**3 * at_high - low**3 * at_low)
    norm = 2.0 * np.sqrt(np.pi) * h
    return Integrals(m, dm, none / norm, (0.25 * fourth - second + none) / (norm * h**2))


def expected_rodeo(
    x: np.ndarray, n: float, relevant: np.ndarray, deviation: float, *, others_stay: bool = False
) -> np.ndarray:
    """Compute the bandwidths (n_points, n_variables) of algorithm 1 with the settings of the paper.

    Parameters
    ----------
    x : (n_points, n_variables) points, with coordinates between 0 and 1.
    n : number of rows of the class.
    relevant : (n_variables,) true for relevant variables, which are normal around 0.5; the others are
        uniform.
    deviation : standard deviation of relevant variables.
    others_stay : whether uniform variables keep the initial bandwidth, as the proof assumes.
    """
    initial = 1.0 / np.log(np.log(n))
    threshold = 2.0 * np.log(n * np.log(n)) / n
    h = np.full(x.shape, initial)
    active = np.broadcast_to(relevant | (not others_stay), x.shape)
    while active.any():
        pairs = zip(normal_integrals(x, h, 0.5, deviation), uniform_integrals(x, h), strict=True)
        m, dm, q, w = (np.where(relevant, *pair) for pair in pairs)
        # All terms are divided by the squared mean of the estimate.
        rise = dm / m
        second = w / q * np.exp((np.log(q) - 2.0 * np.log(m)).sum(axis=1, keepdims=True))
        active = active & (rise**2 > threshold * (second - rise**2)) & (_BETA * h >= initial / n)
        h = np.where(active, _BETA * h, h)
    return h


def smoothing_error(h: np.ndarray, deviation: float, x: np.ndarray) -> float:
    """Compute the L1 distance between a product of normal densities and its kernel-smoothed density (bias).

    Parameters
    ----------
    h : (n_relevant,) bandwidths.
    deviation : standard deviation of the normal densities.
    x : (n_points, n_relevant) samples of the density, around 0.5.
    """
    ratio = (_normal(x - 0.5, deviation**2 + h**2) / _normal(x - 0.5, deviation**2)).prod(axis=1)
    return float(2.0 * np.maximum(1.0 - ratio, 0.0).mean())


def _normal(u: np.ndarray, variance: float | np.ndarray = 1.0) -> np.ndarray:
    """Density of a normal variable with mean 0."""
    return np.exp(-0.5 * u**2 / variance) / np.sqrt(2.0 * np.pi * variance)

r"""The Rodeo with expectations in the place of sums over rows: its bandwidths without any chance.

From the density of a class follow the mean and the variance of the derivative :math:`Z_j` at a point, for any
bandwidths, and with them the step at which algorithm 1 stops. With a product kernel and independent variables
both are products of four integrals of each variable, over its density :math:`f`:

.. math::

    m = \int K_h f, \quad m' = \int \frac{\partial K_h}{\partial h} f, \quad
    q = \int K_h^2 f, \quad w = \int \Big(\frac{\partial K_h}{\partial h}\Big)^2 f.

So bandwidths can be computed for numbers of rows that nobody could fit, also under the assumption that a step
of the proof of theorem 1 holds.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

_BETA = 0.9


class Integrals(NamedTuple):
    """The four integrals of each variable at each point."""

    m: np.ndarray
    dm: np.ndarray
    q: np.ndarray
    w: np.ndarray


def normal_integrals(x: np.ndarray, h: np.ndarray, mean: float, deviation: float) -> Integrals:
    """Integrals of a normal variable: the variances of variable and kernel add."""
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
    """Integrals of a variable that is uniform on [0, 1]; they depend on the distance from its ends."""
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
    """Bandwidths (n_points, n_variables) of algorithm 1 with the paper's settings, for n rows of a class.

    Parameters
    ----------
    x : (n_points, n_variables) points, with coordinates between 0 and 1.
    n : rows of the class.
    relevant : (n_variables,) which are normal around 0.5; the others are uniform.
    deviation : of the relevant ones.
    others_stay : keep the others at the initial bandwidth, as the proof does.
    """
    initial = 1.0 / np.log(np.log(n))
    threshold = 2.0 * np.log(n * np.log(n)) / n
    h = np.full(x.shape, initial)
    active = np.broadcast_to(relevant | (not others_stay), x.shape)
    while active.any():
        pairs = zip(normal_integrals(x, h, 0.5, deviation), uniform_integrals(x, h), strict=True)
        m, dm, q, w = (np.where(relevant, *pair) for pair in pairs)
        # Over the square of the mean estimate, which all variables share.
        rise = dm / m
        second = w / q * np.exp((np.log(q) - 2.0 * np.log(m)).sum(axis=1, keepdims=True))
        active = active & (rise**2 > threshold * (second - rise**2)) & (_BETA * h >= initial / n)
        h = np.where(active, _BETA * h, h)
    return h


def smoothing_error(h: np.ndarray, deviation: float, x: np.ndarray) -> float:
    """L1 distance of a product of normal densities from itself smoothed by a kernel: an estimate's bias.

    Parameters
    ----------
    h : (n_relevant,) bandwidths.
    deviation : of the density.
    x : (n_points, n_relevant) drawn from it, around 0.5.
    """
    ratio = (_normal(x - 0.5, deviation**2 + h**2) / _normal(x - 0.5, deviation**2)).prod(axis=1)
    return float(2.0 * np.maximum(1.0 - ratio, 0.0).mean())


def _normal(u: np.ndarray, variance: float | np.ndarray = 1.0) -> np.ndarray:
    """Density of a normal variable with mean 0."""
    return np.exp(-0.5 * u**2 / variance) / np.sqrt(2.0 * np.pi * variance)

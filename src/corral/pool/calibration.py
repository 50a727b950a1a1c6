r"""Weights of log densities, fitted to labels: one of them is a temperature, several make a pool.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with :math:`w_m > 0`. The
logarithms of the weights have a normal prior, and minimise the mean log loss less its logarithm per row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.posterior import log_posterior

# Newton's steps change no weight by more than this factor (as a logarithm), and end when the loss does not.
_LONGEST_STEP = 2.0
_MAX_STEPS = 50
_MAX_HALVINGS = 30
_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Target:
    """The labels that scores are fitted to.

    Attributes
    ----------
    codes : (n_points,) right classes.
    weights : (n_points,) that sum to 1, in each class to its prior.
    log_prior : (n_classes,)
    count : how many points of equal weight they are worth, also those that `without` leaves out: the prior of
        fitted weights counts as one of so many in every part of the points.
    """

    codes: Integers
    weights: Floats
    log_prior: Floats
    count: float

    def without(self, left_out: Bools) -> Target:
        """Give points no weight where `left_out` is true."""
        weights = np.where(left_out, 0.0, self.weights)
        return replace(self, weights=weights / max(weights.sum(), 1e-300))

    def right(self, log_proba: Floats) -> Floats:
        """Log probabilities of the right classes, 0 for points that do not count."""
        right = log_proba[np.arange(self.codes.size), self.codes]
        return np.where(self.weights > 0.0, right, 0.0)


def fit_log_weights(
    log_density: Floats, target: Target, center: Floats, deviation: float, start: Floats | None = None
) -> tuple[Floats, float]:
    """Fit logarithms of weights by Newton's method, with Fisher's information as the curvature.

    Parameters
    ----------
    log_density : (n_members, n_points, n_classes), finite.
    target : what is to be predicted.
    center, deviation : (n_members,) and number, of the normal prior.
    start : (n_members,) where to begin, the center by default.

    Returns
    -------
    log_weights : (n_members,)
    objective : the mean log loss and the prior.
    """
    strength = 1.0 / (deviation**2 * target.count)
    if len(log_density) == 1:
        begin = center if start is None else start
        log_power, value = _fit_log_power(log_density[0], target, float(center[0]), strength, float(begin[0]))
        return np.array([log_power]), value

    def objective(u: Floats) -> tuple[float, Floats]:
        score = target.log_prior + np.tensordot(np.exp(u), log_density, 1)
        log_proba = log_posterior(score)
        penalty = 0.5 * strength * float(((u - center) ** 2).sum())
        return penalty - float(target.weights @ target.right(log_proba)), log_proba

    u = center if start is None else start
    value, log_proba = objective(u)
    for _ in range(_MAX_STEPS):
        gradient, curvature = _derivatives(log_density, target, np.exp(u), log_proba)
        gradient += strength * (u - center)
        curvature.flat[:: u.size + 1] += strength
        step = -_solve(curvature, gradient)
        step *= _LONGEST_STEP / max(_LONGEST_STEP, np.abs(step).max())
        expected = -float(gradient @ step)
        if expected < _TOLERANCE:  # the last step is safe without a look at the loss
            return u + step, value - 0.5 * expected
        for _ in range(_MAX_HALVINGS):
            tried, tried_log_proba = objective(u + step)
            if tried <= value - 1e-4 * expected:
                break
            step, expected = 0.5 * step, 0.5 * expected
        else:
            break
        u, value, log_proba = u + step, tried, tried_log_proba
    return u, value


def _solve(curvature: Floats, gradient: Floats) -> Floats:
    """Solve the equations of a Newton step; the shortest solution if rounding leaves them without one."""
    try:
        step: Floats = np.linalg.solve(curvature, gradient).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:  # beside log densities of an outlier the prior has no digit left
        step = np.linalg.lstsq(curvature, gradient)[0].astype(np.float64, copy=False)
    return step


def _fit_log_power(
    log_density: Floats, target: Target, center: float, strength: float, start: float
) -> tuple[float, float]:
    """The same for one member, as most fits are, in fewer operations."""
    right = log_density[np.arange(target.codes.size), target.codes]

    def objective(u: float) -> tuple[float, float, float]:
        power = np.exp(u)
        log_proba = log_posterior(target.log_prior + power * log_density)
        proba = np.exp(log_proba)
        mean = np.vecdot(proba, log_density)
        # Roots first: far below the others, a log density may have no finite square.
        centred = (log_density - mean[:, np.newaxis]) * np.sqrt(proba)
        variance = np.vecdot(centred, centred)
        excess = power * float(target.weights @ (mean - right))
        curvature = power**2 * float(target.weights @ variance) + max(excess, 0.0)
        loss = 0.5 * strength * (u - center) ** 2 - float(target.weights @ target.right(log_proba))
        return loss, excess + strength * (u - center), curvature + strength

    u = start
    value, gradient, curvature = objective(u)
    for _ in range(_MAX_STEPS):
        step = -gradient / curvature
        step *= _LONGEST_STEP / max(_LONGEST_STEP, abs(step))
        expected = -gradient * step
        if expected < _TOLERANCE:
            return u + step, value - 0.5 * expected
        for _ in range(_MAX_HALVINGS):
            tried = objective(u + step)
            if tried[0] <= value - 1e-4 * expected:
                break
            step, expected = 0.5 * step, 0.5 * expected
        else:
            break
        u, (value, gradient, curvature) = u + step, tried
    return u, value


def _derivatives(
    log_density: Floats, target: Target, weights: Floats, log_proba: Floats
) -> tuple[Floats, Floats]:
    """Gradient and a positive curvature of the mean log loss by the logarithms of the weights."""
    proba = np.exp(log_proba)
    mean = np.vecdot(log_density, proba)
    right = log_density[:, np.arange(target.codes.size), target.codes]
    gradient = weights * ((mean - right) @ target.weights)
    centred = (log_density - mean[..., np.newaxis]) * np.sqrt(proba * target.weights[:, np.newaxis])
    flat = centred.reshape(weights.size, -1) * weights[:, np.newaxis]
    return gradient, flat @ flat.T + np.diag(np.maximum(gradient, 0.0))

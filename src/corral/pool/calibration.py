r"""Weights of log densities, fitted to labels: one of them is a temperature, several make a pool.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with :math:`w_m > 0`. The
logarithms of the weights have a normal prior, and minimise the mean log loss less its logarithm per row.
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats
from corral.pool.fold_plan import FoldPlan
from corral.posterior import log_posterior

# Newton's steps change no weight by more than this factor (as a logarithm), and end when the loss does not.
_LONGEST_STEP = 2.0
_MAX_STEPS = 50
_MAX_HALVINGS = 30
_TOLERANCE = 1e-8


def fit_log_weights(
    log_density: Floats, plan: FoldPlan, center: Floats, deviation: float, start: Floats | None = None
) -> tuple[Floats, float]:
    """Fit logarithms (n_members,) of weights by Newton's method, with Fisher's information as the curvature.

    From finite log densities (n_members, n_points, n_classes), and a normal prior with a center (n_members,),
    where the fit starts by default. Returns the mean log loss with the prior, too.
    """
    strength = 1.0 / (deviation**2 * plan.count)

    def objective(u: Floats) -> tuple[float, Floats]:
        score = plan.log_prior + np.tensordot(np.exp(u), log_density, 1)
        log_proba = log_posterior(score)
        penalty = 0.5 * strength * float(((u - center) ** 2).sum())
        return penalty + plan.log_loss(log_proba), log_proba

    u = center if start is None else start
    value, log_proba = objective(u)
    for _ in range(_MAX_STEPS):
        gradient, curvature = _derivatives(log_density, plan, np.exp(u), log_proba)
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


def _derivatives(
    log_density: Floats, plan: FoldPlan, weights: Floats, log_proba: Floats
) -> tuple[Floats, Floats]:
    """Gradient and a positive curvature of the mean log loss by the logarithms of the weights."""
    proba = np.exp(log_proba)
    mean = np.vecdot(log_density, proba)
    right = log_density[:, np.arange(plan.codes.size), plan.codes]
    gradient = weights * ((mean - right) @ plan.weights)
    # Roots first: far below the others, a log density may have no finite square.
    centered = (log_density - mean[..., np.newaxis]) * np.sqrt(proba * plan.weights[:, np.newaxis])
    flat = centered.reshape(weights.size, -1) * weights[:, np.newaxis]
    return gradient, flat @ flat.T + np.diag(np.maximum(gradient, 0.0))

r"""Weights of log densities, fitted to labels: one of them is a temperature, several make a pool.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with :math:`w_m > 0`. The
logarithms of the weights have a normal prior, and minimise the mean log loss less its logarithm per row.
"""

from __future__ import annotations

import numpy as np

from corral import kernels
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
    mean_loss = _loss_of_one if len(log_density) == 1 else _loss_of_several

    def objective(u: Floats) -> tuple[float, Floats, Floats]:
        loss, gradient, curvature = mean_loss(log_density, plan, u)
        apart = u - center
        curvature.flat[:: u.size + 1] += strength
        return loss + 0.5 * strength * float(apart @ apart), gradient + strength * apart, curvature

    u = center if start is None else start
    value, gradient, curvature = objective(u)
    for _ in range(_MAX_STEPS):
        step = -_solve(curvature, gradient)
        step *= _LONGEST_STEP / max(_LONGEST_STEP, np.abs(step).max())
        expected = -float(gradient @ step)
        if expected < _TOLERANCE:  # the last step is safe without a look at the loss
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


def _solve(curvature: Floats, gradient: Floats) -> Floats:
    """Solve the equations of a Newton step; the shortest solution if rounding leaves them without one."""
    if gradient.size == 1 and curvature[0, 0] > 0.0:
        one: Floats = gradient / curvature[0]
        return one
    try:
        step: Floats = np.linalg.solve(curvature, gradient).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:  # beside log densities of an outlier the prior has no digit left
        step = np.linalg.lstsq(curvature, gradient)[0].astype(np.float64, copy=False)
    return step


def _loss_of_one(log_density: Floats, plan: FoldPlan, u: Floats) -> tuple[float, Floats, Floats]:
    """The same as `_loss_of_several` for one member, compiled: most of all fits are of one temperature."""
    derivatives = np.empty(2)
    work = np.empty(plan.log_prior.size)
    loss = kernels.loss_by_log_power(
        log_density[0], plan.codes, plan.weights, plan.log_prior, float(u[0]), work, derivatives
    )
    return loss, derivatives[:1], derivatives[1:].reshape(1, 1)


def _loss_of_several(log_density: Floats, plan: FoldPlan, u: Floats) -> tuple[float, Floats, Floats]:
    """Mean log loss, its gradient and a positive curvature by the logarithms of the weights."""
    weights = np.exp(u)
    log_proba = log_posterior(plan.log_prior + np.tensordot(weights, log_density, 1))
    proba = np.exp(log_proba)
    mean = np.vecdot(log_density, proba)
    right = log_density[:, np.arange(plan.codes.size), plan.codes]
    gradient: Floats = weights * ((mean - right) @ plan.weights)
    # Roots first: far below the others, a log density may have no finite square.
    centered = (log_density - mean[..., np.newaxis]) * np.sqrt(proba * plan.weights[:, np.newaxis])
    flat = centered.reshape(weights.size, -1) * weights[:, np.newaxis]
    return plan.log_loss(log_proba), gradient, flat @ flat.T + np.diag(np.maximum(gradient, 0.0))

r"""Weights of log densities, fitted to labels: one of them is a temperature, several make a pool.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with :math:`w_m > 0`. The
logarithms of the weights have a normal prior, and minimise the mean log loss less its logarithm per row.
"""

from __future__ import annotations

import numpy as np

from corral import kernels
from corral.array_types import Floats
from corral.pool.fold_plan import FoldPlan

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

    def objective(u: Floats) -> tuple[float, Floats, Floats]:
        loss, gradient, curvature = _mean_loss(log_density, plan, u)
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


def _mean_loss(log_density: Floats, plan: FoldPlan, u: Floats) -> tuple[float, Floats, Floats]:
    """Mean log loss, its gradient and a positive curvature by the logarithms of the weights."""
    gradient, centered = np.empty(u.size), np.empty(log_density.shape)
    work = np.empty(plan.log_prior.size)
    loss = kernels.pool_loss(
        log_density, plan.codes, plan.weights, plan.log_prior, np.exp(u), work, gradient, centered
    )
    flat = centered.reshape(u.size, -1)
    curvature: Floats = flat @ flat.T
    curvature.flat[:: u.size + 1] += np.maximum(gradient, 0.0)
    return loss, gradient, curvature

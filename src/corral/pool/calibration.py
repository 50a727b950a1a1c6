r"""Weights of log densities, fitted to labels. The weight of a single member is its inverse temperature.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with weights :math:`w_m > 0` of
the members m. The logarithms of the weights have a normal prior. The fitted weights minimize the mean log
loss of the points of a fold plan minus the log prior density per row.
"""

from __future__ import annotations

import numpy as np

from corral import kernels
from corral.array_types import Floats
from corral.pool.fold_plan import FoldPlan

# Largest change of the logarithm of a weight in one Newton step, limits of the numbers of steps and halvings,
# and the expected decrease of the loss at which the iteration ends.
_LONGEST_STEP = 2.0
_MAX_STEPS = 50
_MAX_HALVINGS = 30
_TOLERANCE = 1e-8


def fit_log_weights(
    log_density: Floats, plan: FoldPlan, center: Floats, deviation: float, start: Floats | None = None
) -> tuple[Floats, float]:
    """Fit logarithms of weights by Newton's method, with the Fisher information as the curvature.

    Parameters
    ----------
    log_density : (n_members, n_points, n_classes) finite log densities of points.
    plan : classes and weights of the points.
    center, deviation : mean (n_members,) and standard deviation of the prior of the logarithms.
    start : (n_members,) where the iteration starts; by default the center.

    Returns
    -------
    log_weights : (n_members,) logarithms of the weights.
    loss : mean log loss plus the penalty of the prior.
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
        if expected < _TOLERANCE:  # a step this small need not be checked
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
    """Solve the linear equations of a Newton step; if they are singular, return a least-squares solution."""
    if gradient.size == 1 and curvature[0, 0] > 0.0:
        one: Floats = gradient / curvature[0]
        return one
    try:
        step: Floats = np.linalg.solve(curvature, gradient).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:  # log densities of outliers can be so large that the prior is rounded off
        step = np.linalg.lstsq(curvature, gradient)[0].astype(np.float64, copy=False)
    return step


def _mean_loss(log_density: Floats, plan: FoldPlan, u: Floats) -> tuple[float, Floats, Floats]:
    """Return the mean log loss, its gradient (n_members,) and a positive curvature (n_members, n_members).

    The derivatives are with respect to `u` (n_members,), the logarithms of the weights.
    """
    gradient, centered = np.empty(u.size), np.empty(log_density.shape)
    work = np.empty(plan.log_prior.size)
    loss = kernels.pool_loss(
        log_density, plan.codes, plan.weights, plan.log_prior, np.exp(u), work, gradient, centered
    )
    flat = centered.reshape(u.size, -1)
    curvature: Floats = flat @ flat.T
    curvature.flat[:: u.size + 1] += np.maximum(gradient, 0.0)
    return loss, gradient, curvature

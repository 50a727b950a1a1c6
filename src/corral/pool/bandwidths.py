r"""Refined bandwidths: one multiplier per variable, shared by the classes, fitted by leave-one-out.

Let all classes have the kernel densities
:math:`p_y(x) \propto \sum_i w_i \exp(-\frac12 \sum_j e^{2 \theta_j} (x_j - x_{ij})^2)`. The logarithms
:math:`\theta_j` of the inverse bandwidths and a temperature minimise the leave-one-out log loss, with a
normal prior that draws the :math:`\theta_j` towards their mean. If :math:`M_{qi}` is the derivative of the
loss by the exponent of row i at point q, the derivative by :math:`\theta_j` is

.. math::

    e^{2 \theta_j} \sum_{q, i} M_{qi} (x_{qj} - x_{ij})^2 = e^{2 \theta_j} \Bigl( \sum_q M_{q \cdot} x_{qj}^2
        + \sum_i M_{\cdot i} x_{ij}^2 - 2 \sum_q x_{qj} \sum_i M_{qi} x_{ij} \Bigr),

one matrix product more than the loss itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from corral import kernels
from corral.array_types import Floats, Integers
from corral.pool.calibration import Target, fit_log_weights
from corral.posterior import known, log_posterior

# Of the minimisation.
OPTIONS = {"maxiter": 15, "ftol": 1e-5}

# The largest theta: a step of the minimisation may be far too long where the loss is flat.
LARGEST_THETA = 50.0

# Common bandwidths to begin with, in units of the mean deviation of the variables.
STARTS = 2.0 ** np.arange(-3.0, 1.5)


class RefinedRows(NamedTuple):
    """The points that leave themselves out, and the rows that predict them, sorted by class.

    Attributes
    ----------
    points : (n_points, n_variables)
    unit_of_point : (n_points,) numbers; rows that share a point's are left out.
    rows : (n_rows, n_variables)
    unit_of_row : (n_rows,)
    weights : (n_rows,)
    starts : (n_classes + 1,) where the rows of each class begin.
    target : the points' classes.
    """

    points: Floats
    unit_of_point: Integers
    rows: Floats
    unit_of_row: Integers
    weights: Floats
    starts: Integers
    target: Target


def refine(sample: RefinedRows, deviation: float) -> Floats:
    """Fit theta (n_variables,), whose prior has a standard deviation around the mean of all of them."""
    start = _common_bandwidth(sample)
    found = minimize(
        refined_loss,
        start,
        args=(sample, deviation),
        jac=True,
        method="L-BFGS-B",
        options=OPTIONS,
    )
    theta: Floats = np.minimum(found.x[:-1], LARGEST_THETA)
    return theta


def refined_loss(parameters: Floats, sample: RefinedRows, deviation: float) -> tuple[float, Floats]:
    """Penalised leave-one-out log loss and its gradient, by theta and the log inverse temperature."""
    theta, log_power = np.minimum(parameters[:-1], LARGEST_THETA), parameters[-1]
    x, c = sample.points * np.exp(theta), sample.rows * np.exp(theta)
    shares = x @ c.T
    total, log_mean = _weigh_kernels(shares, 0.5 * np.vecdot(x, x), 0.5 * np.vecdot(c, c), sample)
    labels = LossOfLabels.of(log_mean, log_power, sample.target)
    factor = labels.factors(total)
    of_row = scale_weights(shares, sample.starts, factor)
    of_point = (factor * total).sum(axis=1)
    gradient = of_point @ x**2 + of_row @ c**2 - 2.0 * np.vecdot(x.T, (shares @ c).T)
    return labels.penalised(gradient, theta - theta.mean(), deviation)


class LossOfLabels(NamedTuple):
    """The log loss of points by log densities that are multiplied by an inverse temperature.

    Attributes
    ----------
    loss : the weighted mean.
    by_score : (n_points, n_classes) its derivatives by the multiplied log densities.
    by_log_power : by the logarithm of the inverse temperature.
    log_power : this logarithm.
    n_points : how many points of equal weight there are.
    """

    loss: float
    by_score: Floats
    by_log_power: float
    log_power: float
    n_points: float

    @classmethod
    def of(cls, log_mean: Floats, log_power: float, target: Target) -> LossOfLabels:
        """Predict the points by log densities (n_points, n_classes), -inf where no row is left."""
        power, log_density = np.exp(log_power), known(log_mean)
        log_proba = log_posterior(target.log_prior + power * log_density)
        excess = np.exp(log_proba)
        excess[np.arange(len(excess)), target.codes] -= 1.0
        excess *= target.weights[:, np.newaxis]
        by_log_power = power * float((excess * log_density).sum())
        loss = -float(target.weights @ target.right(log_proba))
        return cls(loss, power * excess, by_log_power, log_power, target.count)

    def factors(self, total: Floats) -> Floats:
        """What makes derivatives by exponents of the weights of rows, whose sums by class are given."""
        return np.divide(-self.by_score, total, out=np.zeros_like(total), where=total > 0.0)

    def penalised(self, gradient: Floats, deviations: Floats, deviation: float) -> tuple[float, Floats]:
        """Loss and gradient with the priors of theta and of the temperature.

        Parameters
        ----------
        gradient : (n_parameters,) by theta, without the prior.
        deviations : (n_parameters,) of theta from the centre of its prior.
        deviation : standard deviation of that.
        """
        squares = float(deviations @ deviations) / deviation**2 + self.log_power**2
        loss = self.loss + 0.5 * squares / self.n_points
        by_theta = gradient + deviations / (deviation**2 * self.n_points)
        return loss, np.append(by_theta, self.by_log_power + self.log_power / self.n_points)


def _weigh_kernels(
    product: Floats, half_x: Floats, half_c: Floats, sample: RefinedRows
) -> tuple[Floats, Floats]:
    """Turn products into weights of rows; return sums by class, and log densities up to a common factor."""
    total = np.empty((len(product), sample.starts.size - 1))
    log_mean = np.empty_like(total)
    kernels.kernel_weights(
        product,
        half_x,
        half_c,
        sample.weights,
        sample.unit_of_point,
        sample.unit_of_row,
        sample.starts,
        total,
        log_mean,
    )
    return total, log_mean


def scale_weights(shares: Floats, starts: Integers, factor: Floats) -> Floats:
    """Multiply weights (n_points, n_rows) by a factor (n_points, n_classes), and sum them over points."""
    for y in range(starts.size - 1):
        shares[:, starts[y] : starts[y + 1]] *= factor[:, y, np.newaxis]
    of_row: Floats = shares.sum(axis=0)
    return of_row


def _common_bandwidth(sample: RefinedRows) -> Floats:
    """The best of a few bandwidths that all variables share, as theta, with its log inverse temperature."""
    spread = np.sqrt(np.mean(sample.rows.var(axis=0)))
    best, start = np.inf, np.zeros(sample.rows.shape[1] + 1)
    log_power = np.zeros(1)
    product = sample.points @ sample.rows.T
    half_x = 0.5 * np.vecdot(sample.points, sample.points)
    half_c = 0.5 * np.vecdot(sample.rows, sample.rows)
    for h in STARTS * max(spread, 1e-300):
        precision = h**-2.0
        _, log_mean = _weigh_kernels(precision * product, precision * half_x, precision * half_c, sample)
        log_density = known(log_mean)[np.newaxis]
        log_power, loss = fit_log_weights(log_density, sample.target, np.zeros(1), 1.0, log_power)
        if loss < best:
            best, start = loss, np.append(np.full(sample.rows.shape[1], -np.log(h)), log_power)
    return start

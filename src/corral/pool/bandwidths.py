r"""Refined bandwidths: one for each variable, shared by the classes, fitted by leave-one-out.

Let all classes have the kernel densities
:math:`p_y(x) \propto \sum_i w_i \exp(-\frac12 \sum_j e^{2 \theta_j} (x_j - x_{ij})^2)`. The logarithms
:math:`\theta_j` of the inverse bandwidths and a temperature minimise the leave-one-out log loss, with a
normal prior that shrinks the :math:`\theta_j` towards their mean. If :math:`M_{qi}` is the derivative of the
loss by the exponent of row i at point q, the derivative by :math:`\theta_j` is

.. math::

    e^{2 \theta_j} \sum_{q, i} M_{qi} (x_{qj} - x_{ij})^2 = e^{2 \theta_j} \Bigl( \sum_q M_{q \cdot} x_{qj}^2
        + \sum_i M_{\cdot i} x_{ij}^2 - 2 \sum_q x_{qj} \sum_i M_{qi} x_{ij} \Bigr),

one matrix product more than the loss itself. A variable that some row misses takes two products more: its
squares are summed over the pairs that both have it. The squared distance of two categories is 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from corral import kernels
from corral.array_types import Floats, Integers
from corral.data.scaling import ScaleKind
from corral.data.subsample import proportional_subsample
from corral.pool.calibration import Target, fit_log_weights
from corral.pool.categories import LevelsOfRows
from corral.pool.fold_plan import make_target
from corral.pool.scaled_rows import RowsInUnits
from corral.pool.transforms import ClassTransform
from corral.posterior import known, log_posterior

# Bandwidths are fitted to at most so many points and rows.
_MOST_POINTS = 300
_MOST_ROWS = 1500

# Standard deviation of the logarithm of a bandwidth by variable. Less makes hardly a difference to a pool,
# since its weights do not trust what fits its own fold alone.
DEVIATION = 0.4

# Of the minimisation.
_OPTIONS = {"maxiter": 15, "ftol": 1e-5}

# The largest theta: a step of the minimisation may be far too long where the loss is flat.
_LARGEST_THETA = 50.0

# Common bandwidths to begin with, in units of the mean deviation of the variables.
_STARTS = 2.0 ** np.arange(-3.0, 1.5)

# The theta towards which those of categories are shrunk: a distance of 1 means the same in every column,
# unlike one of measurements. Another category weighs exp(-e^{2 theta} / 2), here 0.44.
_THETA_OF_CATEGORIES = 0.25


class RefinementSample(NamedTuple):
    """The points that leave themselves out, and the rows that predict them, sorted by class.

    Attributes
    ----------
    points, rows : (n_points, n_features) and (n_rows, n_features) scaled.
    unit_of_point, unit_of_row : (n_points,) and (n_rows,) numbers; rows that share a point's are left out.
    weights : (n_rows,)
    starts : (n_classes + 1,) where the rows of each class begin.
    target : the points' classes.
    transforms : of the classes, with bandwidth 1 for each variable.
    """

    points: Floats
    rows: Floats
    unit_of_point: Integers
    unit_of_row: Integers
    weights: Floats
    starts: Integers
    target: Target
    transforms: Sequence[ClassTransform]

    @classmethod
    def choose(
        cls,
        rows: RowsInUnits,
        scale: ScaleKind,
        transforms: Sequence[ClassTransform],
        prior: Floats,
        seed: int,
    ) -> RefinementSample:
        """Choose rows, and points among them, in proportion to the classes."""
        random = np.random.RandomState(seed)
        chosen = proportional_subsample(rows.data, rows.rank, _MOST_ROWS, random)
        by_class = rows.take(chosen[np.argsort(rows.data.codes[chosen], kind="stable")])
        data, scaled = by_class.data, by_class.scaled[scale]
        points = proportional_subsample(data, by_class.rank, _MOST_POINTS, random)
        return cls(
            points=scaled[points],
            rows=scaled,
            unit_of_point=data.units[points],
            unit_of_row=data.units,
            weights=data.all_weights,
            starts=np.searchsorted(data.codes, np.arange(prior.size + 1)),
            target=make_target(data, points, prior),
            transforms=transforms,
        )


def refine(sample: RefinementSample, deviation: float = DEVIATION) -> list[ClassTransform]:
    """Fit one bandwidth for each variable, and put them into the transforms.

    The logarithms have a prior with a standard deviation around their mean.
    """
    state = RefinementState(sample)
    found = minimize(
        state.loss, state.start(), args=(deviation,), jac=True, method="L-BFGS-B", options=_OPTIONS
    )
    theta, theta_of_categories = state.split(np.minimum(found.x[:-1], _LARGEST_THETA))
    return [
        transform.with_bandwidths(np.exp(-theta), np.exp(2.0 * theta_of_categories))
        for transform in sample.transforms
    ]


class RefinementState:
    """The leave-one-out loss by theta, of numeric variables and then of those with categories."""

    def __init__(self, sample: RefinementSample) -> None:
        transform = sample.transforms[0]
        columns = transform.categories.columns
        x, c = sample.points[:, transform.variables], sample.rows[:, transform.variables]
        center = _means(c, sample.weights)  # relative to it products keep their digits
        has, given = ~np.isnan(c), ~np.isnan(x)
        self.sample = sample
        self._partly = ~(has.all(axis=0) & given.all(axis=0))
        self._given = given.astype(np.float64)
        self._x, self._c = np.nan_to_num(x - center), np.nan_to_num(c - center)
        squares = 0.5 * self._c[:, self._partly] ** 2
        self._factors = np.hstack([self._c, has[:, self._partly], squares])
        self._has = has
        self._x_categories = np.ascontiguousarray(sample.points[:, columns])
        self._c_categories = LevelsOfRows.of(sample.rows, columns)
        self._n_categories = transform.categories.sizes

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """Theta of numeric variables, and of those with categories."""
        numeric, categories = np.split(theta, [self._partly.size])
        return numeric, categories

    def start(self) -> Floats:
        """The best of a few bandwidths that all numeric variables share, with its log inverse temperature."""
        n_numeric, n_categories = self._partly.size, self._n_categories.size
        best, start, log_power = math.inf, np.zeros(n_numeric + n_categories + 1), np.zeros(1)
        for h in (_STARTS * self._spread()).tolist() if n_numeric else [1.0]:
            theta = np.repeat([-math.log(h), _THETA_OF_CATEGORIES], [n_numeric, n_categories])
            _, log_mean, _ = self.weigh(theta)
            log_density = known(log_mean)[np.newaxis]
            log_power, loss = fit_log_weights(log_density, self.sample.target, np.zeros(1), 1.0, log_power)
            if loss < best:
                best, start = loss, np.append(theta, log_power)
        return start

    def _spread(self) -> float:
        """Mean deviation of the numeric variables."""
        counts = np.maximum(self._has.sum(axis=0), 1.0)
        means = self._c.sum(axis=0) / counts
        squares = (self._has * (self._c - means) ** 2).sum(axis=0) / counts
        return math.sqrt(float(squares.mean())) if squares.any() else 1.0

    def weigh(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Shares of rows in the densities of their classes, log densities, and sums of shares by class."""
        sample, partly = self.sample, self._partly
        theta, of_categories = self.split(theta)
        squared, log_norm = np.exp(2.0 * theta), kernels.LOG_ROOT - theta
        halves = 0.5 * squared * self._x**2
        of_partly = -(halves + log_norm * self._given)[:, partly], -(squared * self._given)[:, partly]
        product = np.hstack([squared * self._x, *of_partly]) @ self._factors.T
        if self._of_missing is not None:
            product -= self._of_missing
        kappa = np.exp(2.0 * of_categories)
        log_n = np.log1p((self._n_categories - 1.0) * np.exp(-0.5 * kappa))
        if kappa.size:
            kernels.subtract_level_exponents(
                self._x_categories, *self._c_categories, 0.5 * kappa, log_n, product
            )
        total = np.empty((len(product), sample.starts.size - 1))
        log_mean = np.empty_like(total)
        kernels.kernel_weights(
            product,
            halves[:, ~partly].sum(axis=1) + log_norm[~partly].sum(),
            0.5 * self._c[:, ~partly] ** 2 @ squared[~partly],
            sample.weights,
            sample.unit_of_point,
            sample.unit_of_row,
            sample.starts,
            total,
            log_mean,
        )
        return product, log_mean, total

    @cached_property
    def _of_missing(self) -> Floats | None:
        """Exponents (n_points, n_rows) of variables that only the point has; None if rows miss nothing."""
        sample = self.sample
        if self._has.all() and not self._c_categories.has_gaps.any():
            return None
        exponents = np.zeros((len(sample.points), len(sample.rows)))
        for y, transform in enumerate(sample.transforms):
            part = slice(sample.starts[y], sample.starts[y + 1])
            x, deviation = sample.points[:, transform.variables], transform.missing_deviation
            alone = 0.5 * ((x - transform.missing_mean) / deviation) ** 2
            alone = np.nan_to_num(alone + np.log(deviation) + kernels.LOG_ROOT)
            exponents[:, part] = alone @ ~self._has[part].T
            of_categories = -transform.categories.log_shares_at(self._x_categories)
            exponents[:, part] += of_categories @ np.isnan(self._c_categories.c[:, part])
        return exponents

    def loss(self, parameters: Floats, deviation: float) -> tuple[float, Floats]:
        """Penalised leave-one-out log loss and its gradient, by theta and the log inverse temperature."""
        theta, log_power = np.minimum(parameters[:-1], _LARGEST_THETA), parameters[-1]
        shares, log_mean, total = self.weigh(theta)
        labels = LossOfLabels.of(log_mean, log_power, self.sample.target)
        factor = labels.factors(total)
        of_row = _scale_weights(shares, self.sample.starts, factor)
        gradient = self._gradient(shares, (factor * total).sum(axis=1), of_row, theta)
        return labels.penalised(gradient, self._deviations(theta), deviation)

    def _deviations(self, theta: Floats) -> Floats:
        """How far theta is from its mean, or from that of categories."""
        theta, of_categories = self.split(theta)
        mean = theta.mean() if theta.size else 0.0
        return np.concatenate([theta - mean, of_categories - _THETA_OF_CATEGORIES])

    def _gradient(self, shares: Floats, of_point: Floats, of_row: Floats, theta: Floats) -> Floats:
        """Derivatives of the loss, whose derivatives by the exponents are the shares, with sums of these."""
        d, partly, x, c = self._partly.size, self._partly, self._x, self._c
        of_factors = shares @ self._factors
        of_has, of_squares = np.split(of_factors[:, d:], 2, axis=1)
        squares, pairs = -2.0 * np.vecdot(x.T, of_factors[:, :d].T), np.full(d, of_point.sum())
        squares[~partly] += of_point @ x[:, ~partly] ** 2 + of_row @ c[:, ~partly] ** 2
        squares[partly] += (x[:, partly] ** 2 * of_has).sum(axis=0)
        squares[partly] += 2.0 * (self._given[:, partly] * of_squares).sum(axis=0)
        pairs[partly] = (self._given[:, partly] * of_has).sum(axis=0)
        theta, of_categories = self.split(theta)
        kappa = np.exp(2.0 * of_categories)
        others = (self._n_categories - 1.0) * np.exp(-0.5 * kappa)
        expected = others / (1.0 + others)
        apart, both = np.empty(kappa.size), np.empty(kappa.size)
        if kappa.size:
            kernels.level_shares(self._x_categories, *self._c_categories, shares, of_point, apart, both)
        by_categories = kappa * (apart - expected * both)
        return np.concatenate([np.exp(2.0 * theta) * squares - pairs, by_categories])


def _scale_weights(shares: Floats, starts: Integers, factor: Floats) -> Floats:
    """Multiply weights (n_points, n_rows) by a factor (n_points, n_classes), and sum them over points."""
    for y in range(starts.size - 1):
        shares[:, starts[y] : starts[y + 1]] *= factor[:, y, np.newaxis]
    of_row: Floats = shares.sum(axis=0)
    return of_row


def _means(x: Floats, weights: Floats) -> Floats:
    """Weighted means (n_variables,) of the values that are there, 0 if there are none."""
    has = ~np.isnan(x)
    means: Floats = weights @ np.nan_to_num(x) / np.maximum(weights @ has, 1e-300)
    return means


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

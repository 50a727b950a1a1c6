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

import numpy as np
from scipy.optimize import minimize

from corral import kernels
from corral.array_types import Floats
from corral.data.scaling import ScaleKind
from corral.data.subsample import proportional_subsample
from corral.pool.calibration import fit_log_weights
from corral.pool.categories import CategoriesOfRows
from corral.pool.fold_plan import FoldPlan
from corral.pool.scaled_rows import ScaledRows
from corral.pool.transforms import ClassTransform
from corral.posterior import finite_log_densities, log_posterior

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

# Common bandwidths to begin with, relative to the mean deviation of the variables.
_STARTS = 2.0 ** np.arange(-3.0, 1.5)

# The theta of categories is shrunk towards this one: a distance of 1 means the same in every column,
# unlike one of measurements. Another category weighs exp(-e^{2 theta} / 2), here 0.44.
_THETA_OF_CATEGORIES = 0.25


class Refinement:
    """The leave-one-out loss by theta, of numeric variables and then of those with categories.

    Parameters
    ----------
    rows : a subsample of them, in proportion to the classes, predict each other.
    scale : on which they are compared.
    transforms : of the classes, with bandwidth 1 for each variable.
    prior : (n_classes,)
    seed : chooses the rows, and the points among them that are predicted.

    Attributes
    ----------
    plan : the rows, sorted by class, and the points.
    rows, points : scaled.
    starts : (n_classes + 1,) where the rows of each class begin.
    """

    def __init__(
        self,
        rows: ScaledRows,
        scale: ScaleKind,
        transforms: Sequence[ClassTransform],
        prior: Floats,
        seed: int,
    ) -> None:
        random = np.random.RandomState(seed)
        chosen = proportional_subsample(rows.data, rows.rank, _MOST_ROWS, random)
        rows = rows.take(chosen[np.argsort(rows.data.codes[chosen], kind="stable")])
        points = proportional_subsample(rows.data, rows.rank, _MOST_POINTS, random)
        self.plan = FoldPlan.without_folds(rows.data, points, prior)
        self.transforms = transforms
        self.rows = rows.scaled[scale]
        self.points = self.rows[points]
        self.starts = np.searchsorted(rows.data.codes, np.arange(prior.size + 1))
        variables, categories = transforms[0].variables, transforms[0].categories
        x, c = self.points[:, variables], self.rows[:, variables]
        self._has, given = ~np.isnan(c), ~np.isnan(x)
        weights = rows.data.all_weights
        # Relative to the means of the values that are there products keep their digits.
        center = weights @ np.nan_to_num(c) / np.maximum(weights @ self._has, 1e-300)
        self._partly = ~(self._has.all(axis=0) & given.all(axis=0))
        self._any_partly, self._fully = bool(self._partly.any()), (~self._partly).astype(np.float64)
        self._given = given.astype(np.float64)
        self._x, self._c = np.nan_to_num(x - center), np.nan_to_num(c - center)
        self._half_x, self._half_c = 0.5 * self._x**2, 0.5 * self._c**2
        partly = np.flatnonzero(self._partly)
        self._factors = np.hstack([self._c, self._has[:, partly], self._half_c[:, partly]])
        self._group_ids, self._group_of_point = rows.data.group_ids, rows.data.group_ids[points]
        self._weights = weights
        self._x_categories = np.ascontiguousarray(self.points[:, categories.columns])
        self._c_categories = CategoriesOfRows.from_rows(self.rows, categories.columns)
        self._n_categories = categories.sizes

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """Theta of numeric variables, and of those with categories."""
        return theta[: self._partly.size], theta[self._partly.size :]

    def fit(self, deviation: float = DEVIATION) -> list[ClassTransform]:
        """Fit one bandwidth for each variable, and put them into the transforms.

        The logarithms have a prior with a standard deviation around their mean.
        """
        fitted = minimize(
            self.loss, self._start(), args=(deviation,), jac=True, method="L-BFGS-B", options=_OPTIONS
        )
        theta, category_theta = self.split(np.minimum(fitted.x[:-1], _LARGEST_THETA))
        return [
            transform.with_bandwidths(np.exp(-theta), np.exp(2.0 * category_theta))
            for transform in self.transforms
        ]

    def _start(self) -> Floats:
        """The best of a few bandwidths that all numeric variables share, with its log inverse temperature."""
        n_numeric, n_categories = self._partly.size, self._n_categories.size
        best, start, log_power = math.inf, np.zeros(n_numeric + n_categories + 1), np.zeros(1)
        for h in (_STARTS * self._spread()).tolist() if n_numeric else [1.0]:
            theta = np.repeat([-math.log(h), _THETA_OF_CATEGORIES], [n_numeric, n_categories])
            log_density = finite_log_densities(self.weigh(theta)[1])[np.newaxis]
            log_power, loss = fit_log_weights(log_density, self.plan, np.zeros(1), 1.0, log_power)
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
        partly = self._partly
        theta, category_theta = self.split(theta)
        squared, log_norm = np.exp(2.0 * theta), kernels.LOG_ROOT - theta
        product = squared * self._x
        if self._any_partly:
            halves = squared * self._half_x
            partial_terms = -(halves + log_norm * self._given)[:, partly], -(squared * self._given)[:, partly]
            product = np.hstack([product, *partial_terms])
        product = product @ self._factors.T
        if self._missing_exponents is not None:
            product -= self._missing_exponents
        if category_theta.size:
            self._subtract_categories(np.exp(2.0 * category_theta), product)
        total = np.empty((len(product), self.starts.size - 1))
        log_mean = np.empty_like(total)
        kernels.kernel_weights(
            product,
            self._half_x @ (squared * self._fully) + log_norm @ self._fully,
            self._half_c @ (squared * self._fully),
            self._weights,
            self._group_of_point,
            self._group_ids,
            self.starts,
            total,
            log_mean,
        )
        return product, log_mean, total

    def _subtract_categories(self, kappa: Floats, product: Floats) -> None:
        """Subtract the exponents of categories with such precisions from products (n_points, n_rows)."""
        log_n = np.log1p((self._n_categories - 1.0) * np.exp(-0.5 * kappa))
        by_category = np.repeat([-log_n, -log_n - 0.5 * kappa, 0.0 * kappa], self._n_categories, axis=1)
        offsets = self.transforms[0].categories.offsets
        kernels.add_category_exponents(by_category, offsets, self._x_categories, *self._c_categories, product)

    @cached_property
    def _missing_exponents(self) -> Floats | None:
        """Exponents (n_points, n_rows) of variables that only the point has; None if rows miss nothing."""
        if self._has.all() and not self._c_categories.has_missing.any():
            return None
        exponents = np.zeros((len(self.points), len(self.rows)))
        for y, transform in enumerate(self.transforms):
            part = slice(self.starts[y], self.starts[y + 1])
            alone = transform.missing_exponents(self.points[:, transform.variables])
            exponents[:, part] = np.nan_to_num(alone + kernels.LOG_ROOT) @ ~self._has[part].T
            category_exponents = -transform.categories.log_shares_at(self._x_categories)
            exponents[:, part] += category_exponents @ np.isnan(self._c_categories.c[:, part])
        return exponents

    def loss(self, parameters: Floats, deviation: float) -> tuple[float, Floats]:
        """Penalised leave-one-out log loss and its gradient, by theta and the log inverse temperature."""
        theta, log_power, plan = np.minimum(parameters[:-1], _LARGEST_THETA), parameters[-1], self.plan
        shares, log_mean, total = self.weigh(theta)
        power, log_density = np.exp(log_power), finite_log_densities(log_mean)
        log_proba = log_posterior(plan.log_prior + power * log_density)
        excess = np.exp(log_proba)
        excess[np.arange(len(excess)), plan.codes] -= 1.0
        excess *= plan.weights[:, np.newaxis]
        by_log_power = power * float((excess * log_density).sum())
        # The derivative by the log density of a class is divided among its rows by their shares.
        factor = np.divide(-power * excess, total, out=np.zeros_like(total), where=total > 0.0)
        for y in range(total.shape[1]):
            shares[:, self.starts[y] : self.starts[y + 1]] *= factor[:, y : y + 1]
        gradient = self._gradient(shares, (factor * total).sum(axis=1), theta)
        numeric, category_theta = self.split(theta)
        mean = numeric.mean() if numeric.size else 0.0
        apart = np.concatenate([numeric - mean, category_theta - _THETA_OF_CATEGORIES])
        penalty = 0.5 * (float(apart @ apart) / deviation**2 + log_power**2) / plan.count
        gradient += apart / (deviation**2 * plan.count)
        return plan.log_loss(log_proba) + penalty, np.append(gradient, by_log_power + log_power / plan.count)

    def _gradient(self, shares: Floats, point_sums: Floats, theta: Floats) -> Floats:
        """Derivatives of the loss by theta, from those by the exponents (n_points, n_rows) and their sums."""
        d, partly, x = self._partly.size, self._partly, self._x
        factor_sums = shares @ self._factors
        apart = point_sums @ self._half_x + shares.sum(axis=0) @ self._half_c
        squares = 2.0 * (self._fully * apart - (x * factor_sums[:, :d]).sum(axis=0))
        pairs = np.full(d, point_sums.sum())
        if self._any_partly:
            value_sums, square_sums = np.split(factor_sums[:, d:], 2, axis=1)
            squares[partly] += 2.0 * (self._half_x[:, partly] * value_sums).sum(axis=0)
            squares[partly] += 2.0 * (self._given[:, partly] * square_sums).sum(axis=0)
            pairs[partly] = (self._given[:, partly] * value_sums).sum(axis=0)
        theta, category_theta = self.split(theta)
        by_theta: Floats = np.exp(2.0 * theta) * squares - pairs
        if not category_theta.size:
            return by_theta
        return np.concatenate([by_theta, self._category_gradient(shares, point_sums, category_theta)])

    def _category_gradient(self, shares: Floats, point_sums: Floats, theta: Floats) -> Floats:
        """The same for the variables with categories."""
        kappa = np.exp(2.0 * theta)
        others = (self._n_categories - 1.0) * np.exp(-0.5 * kappa)
        expected = others / (1.0 + others)
        apart, both = np.empty(kappa.size), np.empty(kappa.size)
        kernels.category_shares(self._x_categories, *self._c_categories, shares, point_sums, apart, both)
        return kappa * (apart - expected * both)

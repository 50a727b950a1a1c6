r"""Refined bandwidths: one for each variable, shared by the classes, fitted by leave-one-out.

Each class y has the kernel density
:math:`p_y(x) \propto \sum_i w_i \exp(-\frac12 \sum_j e^{2 \theta_j} (x_j - x_{ij})^2)`, a sum over its rows
i. The logarithms :math:`\theta_j` of the inverse bandwidths and a temperature minimize the leave-one-out log
loss of points, which are rows of a subsample, plus the penalty of a normal prior that shrinks the
:math:`\theta_j` towards their mean. If :math:`M_{qi}` is the derivative of the loss by the exponent of row i
at point q, the derivative by :math:`\theta_j` is

.. math::

    e^{2 \theta_j} \sum_{q, i} M_{qi} (x_{qj} - x_{ij})^2 = e^{2 \theta_j} \Bigl( \sum_q M_{q \cdot} x_{qj}^2
        + \sum_i M_{\cdot i} x_{ij}^2 - 2 \sum_q x_{qj} \sum_i M_{qi} x_{ij} \Bigr),

which needs one more matrix product than the loss. A variable with missing values needs two more products: its
squares are summed over the pairs of point and row in which neither value is missing. The squared distance of
two different categories is 1.
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

# Approximate limits of the numbers of points and rows to which bandwidths are fitted.
_MOST_POINTS = 300
_MOST_ROWS = 1500

# Standard deviation of the prior of the logarithm of a bandwidth. A smaller value hardly changes a pool: if
# the bandwidths of a member overfit, its weight falls anyway, because weights are fitted to left-out rows.
DEVIATION = 0.4

# Options of the minimization.
_OPTIONS = {"maxiter": 15, "ftol": 1e-5}

# Largest theta. If the loss is flat, a step of the minimization may be much too long.
_LARGEST_THETA = 50.0

# Common bandwidths among which the minimization chooses its start, as multiples of the mean standard
# deviation of the variables.
_STARTS = 2.0 ** np.arange(-3.0, 1.5)

# The theta of a column of categories is shrunk towards this constant and not towards the mean of all thetas,
# because the distance of two categories is 1 in every column. The kernel of a row with another category is
# then exp(-e^{2 theta} / 2) = 0.44 times as high.
_THETA_OF_CATEGORIES = 0.25


class Refinement:
    """The leave-one-out loss as a function of theta, and its minimization.

    Theta has the numeric variables first, then the variables with categories.

    Parameters
    ----------
    rows : training rows; the loss is computed from a subsample in proportion to the classes.
    scale : kind of scale on which rows are compared.
    transforms : transform of each class, with bandwidth 1 for each variable.
    prior : (n_classes,) prior probabilities.
    seed : random seed of the subsample of rows and of the points.

    Attributes
    ----------
    plan : fold plan with the subsample of rows, sorted by class, and the points.
    rows : (n_rows, n_features) scaled rows of the subsample.
    points : (n_points, n_features) scaled rows of the subsample that are predicted.
    starts : (n_classes + 1,) position of the first row of each class, then the number of rows.
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
        # Products of values relative to their mean lose fewer digits.
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
        """Split theta into the part of numeric variables and the part of variables with categories."""
        return theta[: self._partly.size], theta[self._partly.size :]

    def fit(self, deviation: float = DEVIATION) -> list[ClassTransform]:
        """Fit one bandwidth for each variable, and return the transforms with these bandwidths.

        `deviation` is the standard deviation of the prior of the logarithms of the bandwidths.
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
        """Return the start of the minimization: theta and the log inverse temperature.

        The start is the best of a few bandwidths that all numeric variables share.
        """
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
        """Return the root mean square standard deviation of the numeric variables; 1 if all are constant."""
        counts = np.maximum(self._has.sum(axis=0), 1.0)
        means = self._c.sum(axis=0) / counts
        squares = (self._has * (self._c - means) ** 2).sum(axis=0) / counts
        return math.sqrt(float(squares.mean())) if squares.any() else 1.0

    def weigh(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Evaluate the kernels of all rows at all points.

        Returns
        -------
        shares : (n_points, n_rows) kernels times weights, up to a factor for each point and class.
        log_density : (n_points, n_classes) log densities.
        total : (n_points, n_classes) sums of the shares of the rows of each class.
        """
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
        """Subtract the exponents of categories from products (n_points, n_rows) in place.

        `kappa` (n_columns,) are the precisions exp(2 theta) of the columns with categories.
        """
        log_n = np.log1p((self._n_categories - 1.0) * np.exp(-0.5 * kappa))
        by_category = np.repeat([-log_n, -log_n - 0.5 * kappa, 0.0 * kappa], self._n_categories, axis=1)
        offsets = self.transforms[0].categories.offsets
        kernels.add_category_exponents(by_category, offsets, self._x_categories, *self._c_categories, product)

    @cached_property
    def _missing_exponents(self) -> Floats | None:
        """(n_points, n_rows) exponents of the values of points that are missing in the row.

        None if no row has a missing value.
        """
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
        """Return the penalized leave-one-out log loss and its gradient.

        `parameters` is theta, followed by the log inverse temperature.
        """
        theta, log_power, plan = np.minimum(parameters[:-1], _LARGEST_THETA), parameters[-1], self.plan
        shares, log_mean, total = self.weigh(theta)
        power, log_density = np.exp(log_power), finite_log_densities(log_mean)
        log_proba = log_posterior(plan.log_prior + power * log_density)
        excess = np.exp(log_proba)
        excess[np.arange(len(excess)), plan.codes] -= 1.0
        excess *= plan.weights[:, np.newaxis]
        by_log_power = power * float((excess * log_density).sum())
        # By the chain rule, the derivative by the exponent of a row is proportional to the share of the row.
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
        """Return the gradient of the loss by theta.

        Parameters
        ----------
        shares : (n_points, n_rows) derivatives of the loss by the exponents.
        point_sums : (n_points,) sums of these derivatives over rows.
        theta : logarithms of inverse bandwidths.
        """
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
        """Return the gradient of the loss by the theta of variables with categories; see `_gradient`."""
        kappa = np.exp(2.0 * theta)
        others = (self._n_categories - 1.0) * np.exp(-0.5 * kappa)
        expected = others / (1.0 + others)
        apart, both = np.empty(kappa.size), np.empty(kappa.size)
        kernels.category_shares(self._x_categories, *self._c_categories, shares, point_sums, apart, both)
        return kappa * (apart - expected * both)

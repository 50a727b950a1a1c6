r"""Transforms of the scaled rows of each class to the coordinates of the kernels of a member.

The transform of class y has a mean :math:`\mu_y` and a factor :math:`B_y` such that :math:`B_y B_y^T` is the
inverse of a covariance. So the coordinates :math:`B_y^T (x - \mu_y)` have about the variance 1 in the class.
The factor is a matrix, or a diagonal. Variables with categories are not transformed; `categories` has their
kernels.

**Missing values.** Means are computed from the values that are not missing. For covariances, a missing value
is replaced by its expectation given the other values of the row, and its conditional covariance is added.
`exponents` explains missing values in kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from corral import kernels
from corral.array_types import (
    LARGEST_COORDINATE,
    LARGEST_INTEGER,
    Bools,
    Floats,
    Integers,
    check_array,
    check_positions,
)
from corral.data.missing import without_missing
from corral.data.scaling import spreads
from corral.data.weights import effective_sizes, weights_or_ones
from corral.pool.categories import EXTRA_ROWS, CategoryKernels, learn_category_kernels
from corral.pool.covariance import inverse_root, shared_inverse_root, shrunk
from corral.pool.variable_selection import differing

Covariance = Literal["own", "shared", "diagonal", "selected", "none"]

# The covariance of a class is shrunk towards the shared covariance. The strength of the shrinkage is computed
# as if the class had only this share of its rows, because too little shrinkage harms more than too much.
TRUSTED_SHARE = 0.5

# This share of the variance of a variable over all rows is added to its variance in each class. So the
# variance is positive if all values of the class are equal.
_LEAST_SHARE = 1e-3

# If more than this share of the values of a variable are equal, a class may lack all other values by chance.
# The standard deviation of such a variable is then its range in all rows, in each class.
_RARE = 0.9

# Number of iterations for the shared covariance if values are missing. The iteration starts with the
# covariance from pairs of values that are not missing; its eigenvalues are at least _LEAST_VARIANCE times
# their mean.
_N_ITERATIONS = 4
_LEAST_VARIANCE = 0.02

# Limit of factors: below it, squares of distances divided by bandwidths do not overflow.
_LARGEST_FACTOR = 1e24

# Replaces a divisor of 0 if a sum is empty.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class ClassTransform:
    """The transform of one class, and the category kernels of the class."""

    variables: Integers  # (n_used,) indices of the numeric columns that the density uses
    mean: Floats  # (n_used,) mean that is subtracted from scaled rows
    factor: Floats  # factor B (n_used, n_used), or its diagonal (n_used,)
    # missing_mean, missing_deviation: (n_used,) mean and standard deviation of each coordinate in the class.
    # If the factor is diagonal, they define the density that replaces the kernel of a missing value of a row.
    missing_mean: Floats
    missing_deviation: Floats
    categories: CategoryKernels  # kernels of the variables with categories

    def validate(self) -> None:
        """Raise ValueError if a field is out of range or the factor is singular."""
        n, largest = self.variables.size, LARGEST_COORDINATE
        check_positions("variables", self.variables, LARGEST_INTEGER)
        check_array("mean", self.mean, (n,), -largest, largest)
        check_array("missing_mean", self.missing_mean, (n,), -largest, largest)
        check_array("missing_deviation", self.missing_deviation, (n,), 1.0 / largest, largest)
        if self.is_diagonal:
            check_array("factor", self.factor, (n,), 1.0 / largest, _LARGEST_FACTOR)
            return
        check_array("factor", self.factor, (n, n), -_LARGEST_FACTOR, _LARGEST_FACTOR)
        sign, log_determinant = np.linalg.slogdet(self.factor)
        if sign == 0.0 or log_determinant < -n * np.log(largest):
            raise ValueError("factor is singular")

    def validate_for(self, n_categories: Integers) -> None:
        """Raise ValueError if the transform does not fit columns with `n_categories` (n_features,)."""
        columns = self.categories.columns
        check_positions("variables", self.variables, n_categories.size)
        check_positions("columns", columns, n_categories.size)
        if n_categories[self.variables].any() or not np.array_equal(
            n_categories[columns], self.categories.sizes
        ):
            raise ValueError("the transform and the columns have different numbers of categories")

    @classmethod
    def standard(
        cls, variables: Integers, mean: Floats, factor: Floats, categories: CategoryKernels
    ) -> ClassTransform:
        """Return a transform to coordinates with mean 0 and variance 1 in the class."""
        return cls(variables, mean, factor, np.zeros(mean.size), np.ones(mean.size), categories)

    @property
    def is_diagonal(self) -> bool:
        """Whether the factor is stored as a diagonal, so that each coordinate depends on one variable."""
        return self.factor.ndim == 1

    @property
    def used(self) -> Integers:
        """Indices of all used columns: numeric columns, then columns with categories."""
        return np.concatenate([self.variables, self.categories.columns])

    @property
    def full_factor(self) -> Floats:
        """(n_used, n_used) the factor as a matrix."""
        return np.diag(self.factor) if self.is_diagonal else self.factor

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the factor."""
        if self.is_diagonal:
            return float(np.log(self.factor).sum())
        return float(np.linalg.slogdet(self.factor)[1])

    @cached_property
    def precision(self) -> Floats:
        """(n_used, n_used) inverse of the covariance; only if `is_diagonal` is false."""
        return self.factor @ self.factor.T

    def centered(self, scaled: Floats) -> Floats:
        """Return the used numeric variables of scaled rows minus the mean (n_rows, n_used).

        The result is in C order. `scaled[:, variables]` is not, and matrix products of arrays in another
        order are rounded differently.
        """
        centered = scaled.take(self.variables, axis=1)
        centered -= self.mean
        return centered

    def coordinates(self, centered: Floats) -> Floats:
        """Return the coordinates (n_rows, n_used) of centered rows."""
        if self.is_diagonal:
            return centered * self.factor
        return centered @ self.factor

    def missing_exponents(self, z: Floats) -> Floats:
        """Return the exponents (n_samples, n_used) that replace kernels on rows with missing values.

        The exponents come from a normal density with the mean and standard deviation of the class, without
        its constant. `z` (n_samples, n_used) are coordinates of samples; the factor must be diagonal.
        """
        deviation = self.missing_deviation
        exponents: Floats = 0.5 * ((z - self.missing_mean) / deviation) ** 2 + np.log(deviation)
        return exponents

    def with_bandwidths(self, bandwidths: Floats, precision: Floats) -> ClassTransform:
        """Divide the coordinates by bandwidths (n_used,); the factor must be diagonal.

        `precision` (n_columns,) becomes the precision of the kernels of variables with categories.
        """
        return replace(
            self,
            factor=self.factor / bandwidths,
            missing_mean=self.missing_mean / bandwidths,
            missing_deviation=self.missing_deviation / bandwidths,
            categories=self.categories._replace(precision=precision),
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted means and residuals of rows by class; missing values are ignored."""

    x: Floats  # (n_rows, n_variables) scaled numeric columns
    codes: Integers  # (n_rows,) class codes
    weights: Floats  # (n_rows,) weights
    has: Bools  # (n_rows, n_variables) whether the value is not missing
    residuals: Floats  # (n_rows, n_variables) value minus the mean of its class; 0 for a missing value
    means: Floats  # (n_classes, n_variables) means; the mean of all rows if a class has no value
    sizes: Floats  # (n_classes,) effective number of rows of each class

    @classmethod
    def from_rows(cls, x: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> Moments:
        """Compute the moments of scaled numeric columns `x` (n_rows, n_variables)."""
        has, sizes = ~np.isnan(x), effective_sizes(codes, weights, n_classes)
        weights = weights_or_ones(weights, len(codes))
        by_class = _indicators(codes, weights, n_classes)
        values, counted = np.where(has, x, 0.0), has.astype(np.float64)
        totals = by_class @ counted
        center = weights @ values / np.maximum(weights @ counted, _TINY)
        means = np.where(totals > 0.0, by_class @ values / np.maximum(totals, _TINY), center)
        residuals = counted * (values - means[codes])
        return cls(x, codes, weights, has, residuals, means, sizes)

    @cached_property
    def variances(self) -> Floats:
        """(n_classes, n_variables) shrunk variances; see `class_variances`."""
        weights, counted, squares = self.weights, self.has.astype(np.float64), self.residuals**2
        by_class = _indicators(self.codes, weights, self.sizes.size)
        totals, total = by_class @ counted, np.maximum(weights @ counted, _TINY)
        values = np.where(self.has, self.x, 0.0)
        center = weights @ values / total
        return class_variances(
            own=by_class @ squares / np.maximum(totals, _TINY),
            within=weights @ squares / total,
            total=weights @ (counted * (values - center) ** 2) / total,
            sizes=self.sizes[:, np.newaxis] * totals / np.maximum(by_class.sum(axis=1, keepdims=True), _TINY),
            repeats=repeated(self.x),
        )

    @cached_property
    def complete(self) -> bool:
        """Whether there are no missing values."""
        return bool(self.has.all())

    def take_columns(self, columns: Bools) -> Moments:
        """Return the moments of the variables for which `columns` (n_variables,) is true."""
        if columns.all():
            return self
        names = ("x", "has", "residuals", "means")
        return replace(self, **{name: getattr(self, name)[:, columns] for name in names})

    def pairwise_precision(self) -> Floats:
        """Return a precision matrix; each covariance is from the rows in which neither value is missing."""
        weights, r = self.weights[:, np.newaxis], self.residuals
        covariance = (weights * r).T @ r / np.maximum((weights * self.has).T @ self.has, _TINY)
        least = _LEAST_VARIANCE * covariance.trace() / len(covariance)
        if least <= 0.0:
            return np.eye(len(covariance))
        variances, directions = np.linalg.eigh(covariance)
        precision: Floats = (directions / np.maximum(variances, least)) @ directions.T
        return precision

    def completed(self, precision: Floats, rows: Bools) -> tuple[Floats, Floats]:
        """Replace missing values of some rows by their expectations given a precision matrix.

        Parameters
        ----------
        precision : (n_variables, n_variables)
        rows : (n_rows,) whether to use the row.

        Returns
        -------
        residuals : (n_used_rows, n_variables) residuals with expectations in place of missing values.
        covariance : (n_variables, n_variables) weighted mean over the rows of the conditional covariance of
            their missing values.
        """
        residuals, has, d = self.residuals[rows], self.has[rows], len(precision)
        covariance = np.zeros(precision.shape)
        if self.complete:
            return residuals, covariance
        weights = self.weights[rows]
        kernels.add_conditional_covariances(
            precision,
            np.ascontiguousarray(~has),
            weights,
            np.empty(d, dtype=np.int64),
            np.empty((d, d)),
            np.empty((d, d)),
            covariance,
        )
        return complete(precision, np.where(has, residuals, np.nan)), covariance / weights.sum()


def _indicators(codes: Integers, weights: Floats, n_classes: int) -> Floats:
    """Return a matrix (n_classes, n_rows) with the weight of each row in its class, 0 in other classes."""
    indicators = np.zeros((n_classes, codes.size))
    indicators[codes, np.arange(codes.size)] = weights
    return indicators


def complete(precision: Floats, residuals: Floats) -> Floats:
    """Replace the missing values of centered rows by their expectations given the other values of the row."""
    # C order: the kernel would be compiled again for another order, and might round sums differently.
    is_missing, d = np.ascontiguousarray(np.isnan(residuals)), len(precision)
    completed = np.ascontiguousarray(np.where(is_missing, 0.0, residuals))
    if is_missing.any():
        kernels.complete_rows(precision, is_missing, completed, np.empty(d, dtype=np.int64), np.empty((d, d)))
    return completed


def learn_transforms(
    covariance: Covariance,
    scaled: Floats,
    codes: Integers,
    weights: Floats | None,
    n_classes: int,
    variables: Integers,
    n_categories: Integers,
) -> list[ClassTransform]:
    """Fit a transform for each class, including classes without rows.

    Parameters
    ----------
    covariance : "shared": the covariance of all rows around the means of their classes. "own": the covariance
        of each class, shrunk towards the shared covariance. "diagonal": the variances of each class.
        "selected": as "diagonal", but only for variables in which the class differs from all rows. The
        density is uniform in all other variables, so the scale must be ranks, which are uniform over all
        rows. "none": coordinates are the scaled values.
    scaled : (n_rows, n_features) scaled rows.
    codes, weights : (n_rows,) class codes and weights of the rows; weights of None are equal.
    n_classes : number of classes.
    variables : indices of the numeric columns that may be used; each of these columns varies.
    n_categories : (n_features,) number of categories of each column, 0 for a numeric column.
    """
    categories = learn_category_kernels(
        scaled, codes, weights, n_classes, n_categories, shrunk=covariance != "none"
    )
    x = scaled[:, variables]
    moments = Moments.from_rows(x, codes, weights, n_classes)
    if covariance == "none":
        zeros, ones = np.zeros(variables.size), np.ones(variables.size)
        by_class = zip(moments.means, np.sqrt(moments.variances), categories, strict=True)
        return [ClassTransform(variables, zeros, ones, *class_values) for class_values in by_class]
    ranges = np.where(hardly_varies(x), spreads(x), 0.0)
    used = np.ones(moments.means.shape, dtype=bool)
    if covariance in ("own", "shared"):
        factors = _covariance_factors(moments, ranges, own=covariance == "own")
    else:
        if covariance == "selected":
            used = differing(without_missing(x), codes, weights, n_classes)
        inverse = 1.0 / np.where(ranges > 0.0, ranges, np.sqrt(moments.variances))
        factors = [class_values[use] for class_values, use in zip(inverse, used, strict=True)]
    return [
        ClassTransform.standard(variables[use], mean[use], factor, class_values)
        for use, mean, factor, class_values in zip(used, moments.means, factors, categories, strict=True)
    ]


def hardly_varies(scaled: Floats) -> Bools:
    """Return for each column whether more than the share `_RARE` of its values are equal."""
    ordered, n = np.sort(scaled, axis=0), (~np.isnan(scaled)).sum(axis=0)  # missing values last
    apart = np.ceil(_RARE * n).astype(np.int64)
    first = np.arange(len(scaled))[:, np.newaxis][: (n - apart).max(initial=0)]
    last = np.minimum(first + apart, len(scaled) - 1)
    repeats = np.take_along_axis(ordered, last, axis=0) == ordered[: len(first)]
    hardly: Bools = (repeats & (first + apart < n)).any(axis=0)
    return hardly


def repeated(scaled: Floats) -> Floats:
    """Return the share (n_variables,) of repeated values: 0 if all values differ, 1 if all are equal."""
    ordered = np.sort(scaled, axis=0)  # missing values last
    is_new = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[1:])
    most = np.maximum((~np.isnan(scaled)).sum(axis=0) - 1, 1)
    shares: Floats = 1.0 - is_new.sum(axis=0) / most
    return shares


def class_variances(own: Floats, within: Floats, total: Floats, sizes: Floats, repeats: Floats) -> Floats:
    """Return shrunk variances (n_classes, n_variables); 1 if all values of a variable are equal.

    The logarithm of the variance of a class is shrunk towards the logarithm of the variance of all classes,
    with the weight of one row. If rows were added to the sum of squares instead, the variance of a class of
    few rows could not be much smaller than the variance of other classes. If values repeat, rows are added to
    the sum of squares as well.

    Parameters
    ----------
    own : (n_classes, n_variables) mean squares of the residuals of each class.
    within : (n_variables,) mean squares of all residuals.
    total : (n_variables,) mean squares of all rows around their mean.
    sizes : (n_classes, n_variables) effective numbers of values.
    repeats : (n_variables,) result of `repeated`.
    """
    n = sizes.sum(axis=0)
    floor = _LEAST_SHARE * total
    within = within * n / np.maximum(n - (sizes > 0.0).sum(axis=0), 1.0)
    freedom, extra = np.maximum(sizes - 1.0, 0.0), EXTRA_ROWS * repeats
    squares = np.where(sizes > 1.0, sizes * own, 0.0) + extra * within
    own = np.divide(squares, freedom + extra, out=np.zeros_like(squares), where=freedom + extra > 0.0) + floor
    within = within + floor
    exists = (own > 0.0) & (within > 0.0)  # false if all values of the variable are equal
    ratio = np.divide(own, within, out=np.ones_like(own), where=exists)
    return np.where(exists, within, 1.0) * ratio ** (freedom / (freedom + 1.0))


def _covariance_factors(moments: Moments, ranges: Floats, *, own: bool) -> list[Floats]:
    """Return the factor of each class.

    Parameters
    ----------
    moments : moments of the rows.
    ranges : (n_variables,) standard deviations of variables that hardly vary, 0 for other variables.
    own : whether each class has its own covariance; otherwise all classes have the shared covariance.
    """
    varies = ranges == 0.0
    grid = np.ix_(varies, varies)
    part = moments.take_columns(varies)
    root = _shared_root(part) if varies.any() else np.eye(0)
    factors = []
    for y in range(moments.sizes.size):
        factor = np.diag(1.0 / np.where(varies, 1.0, ranges))
        factor[grid] = _own_root(part, y, root) if own and varies.any() else root
        factors.append(factor)
    return factors


def _shared_root(moments: Moments) -> Floats:
    """Return the inverse square root of the shared covariance.

    If values are missing, the covariance is computed by the iteration of Dempster, Laird and Rubin (EM):
    missing values are replaced by expectations given the current covariance, and the covariance is computed
    again.
    """
    everything = np.ones(moments.codes.size, dtype=bool)
    precision = np.eye(moments.means.shape[1]) if moments.complete else moments.pairwise_precision()
    for _ in range(1 if moments.complete else _N_ITERATIONS):
        residuals, missing = moments.completed(precision, everything)
        covariance = _scatter(residuals, moments.weights) + missing
        root = shared_inverse_root(covariance, residuals, moments.weights, moments.codes)
        precision = root @ root
    return root


def _own_root(moments: Moments, y: int, root: Floats) -> Floats:
    """Return the factor of class y; its covariance is shrunk towards the shared covariance.

    `root` (n_variables, n_variables) is the inverse square root of the shared covariance.
    """
    rows = moments.codes == y
    if rows.sum() < 2:
        return root
    residuals, missing = moments.completed(root @ root, rows)
    whitened = _scatter(residuals @ root, moments.weights[rows]) + root @ missing @ root
    covariance = shrunk(whitened, TRUSTED_SHARE * float(moments.sizes[y]))
    return root if covariance is None else root @ inverse_root(covariance)


def _scatter(residuals: Floats, weights: Floats) -> Floats:
    """Return the weighted mean (n_variables, n_variables) of the outer products of residuals."""
    scatter: Floats = (residuals * (weights / weights.sum())[:, np.newaxis]).T @ residuals
    return scatter

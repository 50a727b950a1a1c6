r"""Transforms: in which coordinates a member sees the rows of each class, learnt from some of the rows.

The transform of class y has a mean :math:`\mu_y` and a factor :math:`B_y`, whose :math:`B_y B_y^T` is the
inverse of a covariance, so that :math:`B_y^T (x - \mu_y)` has about the variance 1 in the class. Variables
with categories have kernels of their own, see `categories`.

**Missing values.** Means come from the rows that have the values, and covariances from all rows, missing
values being expected given the others. `exponents` says what a missing value does in a kernel.
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

# The covariance of a class is shrunk towards that of all classes as if it had this share of its rows: it
# costs more to trust it too much than too little.
TRUSTED_SHARE = 0.5

# Variances of a class are shrunk as if this share of the variable's whole variance were added: a point mass
# is not infinitely dense.
_LEAST_SHARE = 1e-3

# Where one value has more than this share of the rows, a class that never has another looks like one that
# has not had it yet: in each class such a variable has its whole range as its deviation.
_RARE = 0.9

# How often missing values are expected given a covariance, before it is taken. The first one is that of the
# pairs of values that are there, with variances along all directions above this share of their mean.
_N_ITERATIONS = 4
_LEAST_VARIANCE = 0.02

# Within it no square of a distance over a bandwidth overflows.
_LARGEST_FACTOR = 1e24

# Divisors that are 0 where a sum is empty.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class ClassTransform:
    """The coordinates of one class, and the density of each variable alone."""

    variables: Integers  # (n_used,) numeric columns that take part; the others are uniform
    mean: Floats  # (n_used,) what coordinates are relative to
    factor: Floats  # (n_used, n_used) B, or (n_used,) its diagonal
    # missing_mean, missing_deviation: (n_used,) of the variables in the class, as coordinates: along a
    # diagonal, the density of a value that a row misses
    missing_mean: Floats
    missing_deviation: Floats
    categories: CategoryKernels  # variables with categories

    def validate(self) -> None:
        """Refuse what no fit could have learnt."""
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
        """Refuse variables that rows with such numbers of categories (n_features,) do not have."""
        columns = self.categories.columns
        check_positions("variables", self.variables, n_categories.size)
        check_positions("columns", columns, n_categories.size)
        if n_categories[self.variables].any() or not np.array_equal(
            n_categories[columns], self.categories.sizes
        ):
            raise ValueError("columns have other categories")

    @classmethod
    def standard(
        cls, variables: Integers, mean: Floats, factor: Floats, categories: CategoryKernels
    ) -> ClassTransform:
        """A transform in whose coordinates the variables have mean 0 and variance 1."""
        return cls(variables, mean, factor, np.zeros(mean.size), np.ones(mean.size), categories)

    @property
    def is_diagonal(self) -> bool:
        """Whether each coordinate depends on one variable."""
        return self.factor.ndim == 1

    @property
    def used(self) -> Integers:
        """Columns that take part, those with categories last."""
        return np.concatenate([self.variables, self.categories.columns])

    @property
    def full_factor(self) -> Floats:
        """The factor (n_used, n_used) as a matrix."""
        return np.diag(self.factor) if self.is_diagonal else self.factor

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the factor."""
        if self.is_diagonal:
            return float(np.log(self.factor).sum())
        return float(np.linalg.slogdet(self.factor)[1])

    @cached_property
    def precision(self) -> Floats:
        """The inverse (n_used, n_used) of the covariance; not along a diagonal."""
        return self.factor @ self.factor.T

    def centered(self, scaled: Floats) -> Floats:
        """The variables of scaled rows (n_rows, n_used) less the mean.

        In C order, which `scaled[:, variables]` has not: products of matrices in another order are rounded
        in another way.
        """
        centered = scaled.take(self.variables, axis=1)
        centered -= self.mean
        return centered

    def coordinates(self, centered: Floats) -> Floats:
        """Coordinates (n_rows, n_used) of rows less the mean."""
        if self.is_diagonal:
            return centered * self.factor
        return centered @ self.factor

    def missing_exponents(self, z: Floats) -> Floats:
        """Exponents (n_rows, n_used) of coordinates along a diagonal for a row that misses the variable.

        From a normal density with the mean and deviation of the class, but for its constant.
        """
        deviation = self.missing_deviation
        exponents: Floats = 0.5 * ((z - self.missing_mean) / deviation) ** 2 + np.log(deviation)
        return exponents

    def with_bandwidths(self, bandwidths: Floats, precision: Floats) -> ClassTransform:
        """Divide coordinates along a diagonal by bandwidths (n_used,); categories get a precision."""
        return replace(
            self,
            factor=self.factor / bandwidths,
            missing_mean=self.missing_mean / bandwidths,
            missing_deviation=self.missing_deviation / bandwidths,
            categories=self.categories._replace(precision=precision),
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted means and residuals of rows by class, of the values that are there."""

    x: Floats  # (n_rows, n_variables) scaled numeric columns
    # codes, weights: (n_rows,)
    codes: Integers
    weights: Floats
    has: Bools  # (n_rows, n_variables) whether there is a value
    residuals: Floats  # (n_rows, n_variables) values less the means of their classes, 0 for missing ones
    means: Floats  # (n_classes, n_variables); of all rows where a class has no value
    sizes: Floats  # (n_classes,) how many rows of equal weight each class is worth

    @classmethod
    def from_rows(cls, x: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> Moments:
        """Gather the moments of scaled numeric columns."""
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
        """(n_classes, n_variables) shrunk variances, of all rows where a class has no value."""
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
        """Whether no value is missing."""
        return bool(self.has.all())

    def take_columns(self, columns: Bools) -> Moments:
        """Keep some of the variables."""
        if columns.all():
            return self
        names = ("x", "has", "residuals", "means")
        return replace(self, **{name: getattr(self, name)[:, columns] for name in names})

    def pairwise_precision(self) -> Floats:
        """A precision, from the rows that have both values of a pair."""
        weights, r = self.weights[:, np.newaxis], self.residuals
        covariance = (weights * r).T @ r / np.maximum((weights * self.has).T @ self.has, _TINY)
        least = _LEAST_VARIANCE * covariance.trace() / len(covariance)
        if least <= 0.0:
            return np.eye(len(covariance))
        variances, directions = np.linalg.eigh(covariance)
        precision: Floats = (directions / np.maximum(variances, least)) @ directions.T
        return precision

    def completed(self, precision: Floats, rows: Bools) -> tuple[Floats, Floats]:
        """Residuals of some rows with missing values at their expectations given a precision.

        And the covariance of the missing values around these, as a mean of rows.
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
    """(n_classes, n_rows) the weight of each row in its class, 0 in the others."""
    indicators = np.zeros((n_classes, codes.size))
    indicators[codes, np.arange(codes.size)] = weights
    return indicators


def complete(precision: Floats, residuals: Floats) -> Floats:
    """Rows of mean 0 with missing values at their expectations given the others."""
    # Code for another order of memory is compiled for itself, and might round sums in another way.
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
    """Learn a transform for each class, also for one without rows.

    Parameters
    ----------
    covariance : "own", of each class, shrunk towards the "shared" one; "diagonal", of its own variances
        alone; or "selected", the same of variables in which the class differs from all rows, the
        others being uniform: for ranks alone, which all rows together make uniform. "none" leaves the scale
        as it is.
    scaled, codes, weights : the rows, their class numbers and weights.
    variables : numeric columns that may take part, all of which vary.
    n_categories : (n_features,) numbers of categories, 0 for a numeric column.
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
    """Tell in which columns one value has more than a share _RARE of the values that are there."""
    ordered, n = np.sort(scaled, axis=0), (~np.isnan(scaled)).sum(axis=0)  # missing values last
    apart = np.ceil(_RARE * n).astype(np.int64)
    first = np.arange(len(scaled))[:, np.newaxis][: (n - apart).max(initial=0)]
    last = np.minimum(first + apart, len(scaled) - 1)
    repeats = np.take_along_axis(ordered, last, axis=0) == ordered[: len(first)]
    hardly: Bools = (repeats & (first + apart < n)).any(axis=0)
    return hardly


def repeated(scaled: Floats) -> Floats:
    """Shares (n_variables,) of values that repeat others: 0 if all differ, 1 if none do."""
    ordered = np.sort(scaled, axis=0)  # missing values last
    is_new = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[1:])
    most = np.maximum((~np.isnan(scaled)).sum(axis=0) - 1, 1)
    shares: Floats = 1.0 - is_new.sum(axis=0) / most
    return shares


def class_variances(own: Floats, within: Floats, total: Floats, sizes: Floats, repeats: Floats) -> Floats:
    """Shrunk variances (n_classes, n_variables), 1 where all values are equal.

    Where all values differ a class has its own variance, shrunk by its logarithm towards that of all classes
    as if by one row: with rows added to the sum of squares instead, a class of few rows could not have a much
    smaller variance than others. Where values repeat rows are added, too.

    `own` and `sizes` (n_classes, n_variables) are mean squares of the residuals of a class, and of how many
    rows; `within` and `total` are mean squares of all residuals, and of all rows around their mean. `repeats`
    comes from `repeated`.
    """
    n = sizes.sum(axis=0)
    floor = _LEAST_SHARE * total
    within = within * n / np.maximum(n - (sizes > 0.0).sum(axis=0), 1.0)
    freedom, extra = np.maximum(sizes - 1.0, 0.0), EXTRA_ROWS * repeats
    squares = np.where(sizes > 1.0, sizes * own, 0.0) + extra * within
    own = np.divide(squares, freedom + extra, out=np.zeros_like(squares), where=freedom + extra > 0.0) + floor
    within = within + floor
    exists = (own > 0.0) & (within > 0.0)  # of values that are all alike nothing is known
    ratio = np.divide(own, within, out=np.ones_like(own), where=exists)
    return np.where(exists, within, 1.0) * ratio ** (freedom / (freedom + 1.0))


def _covariance_factors(moments: Moments, ranges: Floats, *, own: bool) -> list[Floats]:
    """Factors of all classes, by the covariance of all classes or by its own.

    Where a range (n_variables,) is given, and not 0, the variable has it as its deviation.
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
    """The inverse root of the covariance of all classes.

    Dempster, Laird and Rubin's iteration: missing values are expected given a covariance, and that is learnt
    from them. Without missing values the first covariance is the last.
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
    """The factor of class y, whose covariance is shrunk towards that of all classes with this root."""
    rows = moments.codes == y
    if rows.sum() < 2:
        return root
    residuals, missing = moments.completed(root @ root, rows)
    whitened = _scatter(residuals @ root, moments.weights[rows]) + root @ missing @ root
    covariance = shrunk(whitened, TRUSTED_SHARE * float(moments.sizes[y]))
    return root if covariance is None else root @ inverse_root(covariance)


def _scatter(residuals: Floats, weights: Floats) -> Floats:
    """Weighted mean of the squares (n_variables, n_variables) of residuals."""
    scatter: Floats = (residuals * (weights / weights.sum())[:, np.newaxis]).T @ residuals
    return scatter

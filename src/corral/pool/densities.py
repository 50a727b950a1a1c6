r"""Class densities of members: the interface `MemberDensity`, and `Mixture`, a mean of kernels.

All kernels of a mixture have the same precision. On the scale s of a member, which is monotone in each
variable, the density of class y is

.. math::

    \log p(x \mid y) = \log \sum_i w_i \exp\bigl(-\tfrac1{2 h^2} \|B_y^T (s(x) - c_i)\|^2\bigr)
        - \log \sum_i w_i - \tfrac q2 \log 2 \pi h^2 + \log |B_y|

with centers :math:`c_i`, weights :math:`w_i`, a bandwidth h and a factor :math:`B_y` of q columns, times
kernels of the variables with categories. The centers are the rows, moved towards the mean of their class by a
shrinkage factor. With factor 1 the density is a kernel density of the rows. With factor 0 all centers are the
mean, and the density is a normal density.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax

from corral import kernels
from corral.array_types import (
    LARGEST_COORDINATE,
    SMALLEST,
    Floats,
    Integers,
    check_array,
    check_number,
    check_shape,
)
from corral.data.tiles import TINY
from corral.data.weights import weights_or_ones
from corral.pool.exponents import KernelRows
from corral.pool.marginals import SetDensity, mixture_marginals
from corral.pool.transforms import ClassTransform
from corral.shapley import Coalitions

# Number of terms of kernels in memory at a time.
_BLOCK_OF_TERMS = 1_000_000


class MemberDensity(ABC):
    """The density of one class on the scale of a member.

    A subclass is a dataclass. A model file keeps its fields, without the training rows. If values of a sample
    are missing, `log_density` returns the marginal log density of the other variables. So the marginal
    density of a set of variables is the density of samples in which all other variables are missing. The
    default methods for explanations use this property.
    """

    @property
    @abstractmethod
    def used(self) -> Integers:
        """Indices of the columns that the density uses; the density is constant in all other columns."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of floats that one evaluation reads, for the division of work among threads."""

    @property
    @abstractmethod
    def row_weights(self) -> Floats:
        """(n_rows,) weights of the training rows of the class."""

    @abstractmethod
    def log_density(self, scaled: Floats) -> Floats:
        """Return log densities (n_samples,) of scaled samples, integrated over their missing values."""

    @abstractmethod
    def without_rows(self) -> Self:
        """Return the density without training rows, as a model file keeps it."""

    @abstractmethod
    def on_rows(self, scaled: Floats, weights: Floats | None) -> Self:
        """Return the density with the scaled training rows (n_rows, n_features) of the class."""

    @abstractmethod
    def validate_for(self, n_categories: Integers) -> None:
        """Raise ValueError if the density does not fit columns with `n_categories` (n_features,)."""

    @property
    def has_covariances(self) -> bool:
        """Whether the kernels have covariances between variables."""
        return False

    def log_density_without(self, scaled: Floats, group_ids: Integers, group_of_x: Integers) -> Floats:
        """Return log densities (n_samples,) of scaled samples, each without a group of rows.

        Sample i is estimated without the rows whose entry of `group_ids` (n_rows,) equals `group_of_x[i]`. By
        default no row is left out, because leaving out a few rows hardly changes a few parameters.
        """
        return self.log_density(scaled)

    def shares(self, scaled: Floats) -> Floats:
        """Return the shares (n_samples, n_rows) of training rows in the density of each sample.

        By default the shares are in proportion to the weights of the rows.
        """
        weights = self.row_weights
        return np.tile(weights / max(weights.sum(), TINY), (len(scaled), 1))

    def conditionals(self, scaled: Floats) -> tuple[Floats, Floats]:
        """Return conditional log densities of variables, and the shares of rows.

        Returns
        -------
        conditional : (n_samples, n_features) log density of each variable given all other variables; 0 for
            missing values and for variables that the density does not use.
        shares : (n_samples, n_rows) see `shares`.
        """
        log_density = self.log_density(scaled)
        conditional = np.zeros(scaled.shape)
        exists = log_density > -np.inf  # a class may have no rows
        for j in self.used.tolist():
            without = scaled.copy()
            without[:, j] = np.nan
            has = ~np.isnan(scaled[:, j]) & exists
            conditional[has, j] = log_density[has] - self.log_density(without[has])
        return conditional, self.shares(scaled)

    def marginals(self, sets: Coalitions, group_ids: Integers) -> SetDensity:
        """Return a function that computes marginal densities of sets of variables.

        By default the function evaluates `log_density` once for each set, and leaves no row out.

        Parameters
        ----------
        sets : sets of variables.
        group_ids : (n_rows,) group ids of the training rows.
        """

        def log_density(x: Floats, left_out: Integers, log_shares: Floats | None) -> Floats:
            by_set = [self.log_density(np.where(members, x, np.nan)) for members in sets.members]
            return np.column_stack(by_set)

        return log_density


@dataclass(frozen=True, eq=False)
class Mixture(MemberDensity):
    """A mean of kernels on the rows of a class.

    If all values of the rows and of a sample are numeric and none is missing, a faster computation is used.
    """

    rows: Floats  # (n_rows, n_features) scaled rows of the class
    weights: Floats | None  # (n_rows,) weights of the rows; None if all weights are equal
    transform: ClassTransform  # transforms rows to the coordinates of the kernels
    bandwidth: float  # bandwidth of the kernels
    shrinkage: float  # factor, 0 to 1, by which differences of rows from the class mean are multiplied
    averaged: bool = False  # whether rows are centroids of a compressed class

    def validate(self) -> None:
        """Raise ValueError if a field is out of range."""
        largest = LARGEST_COORDINATE
        check_array("rows", self.rows, (None, None), -largest, largest, nan=not self.averaged)
        if self.averaged and self.transform.categories.columns.size:
            raise ValueError("centroids have categories")
        if self.weights is not None:
            check_array("weights", self.weights, (len(self.rows),), SMALLEST)
        check_number("bandwidth", self.bandwidth, 1e-10, 1e10)
        check_number("shrinkage", self.shrinkage, 0.0, 1.0)

    def validate_for(self, n_categories: Integers) -> None:
        """Raise ValueError if the density does not fit columns with `n_categories` (n_features,)."""
        self.transform.validate_for(n_categories)

    def without_rows(self) -> Mixture:
        """Return the density without rows; centroids are kept, because they are not rows of the table."""
        return replace(self, rows=self.rows if self.averaged else self.rows[:0], weights=None)

    def on_rows(self, scaled: Floats, weights: Floats | None) -> Mixture:
        """Return the density with kernels on the given scaled rows; centroids are kept."""
        if not self.averaged:
            return replace(self, rows=scaled, weights=weights)
        check_shape("rows", self.rows, scaled.shape)
        return replace(self, weights=weights)

    def on_centroids(self, centroids: Floats, weights: Floats, spread: Floats) -> Mixture:
        """Return the density with kernels on centroids, which are means of scaled rows.

        `spread` (n_features, n_features) is the covariance of the rows around their centroids. It is added to
        the covariance of the kernels.
        """
        variables, factor = self.transform.variables, self.transform.full_factor / self.bandwidth
        lost = self.shrinkage**2 * factor.T @ spread[np.ix_(variables, variables)] @ factor
        root = np.linalg.cholesky(np.eye(len(lost)) + lost)
        wider: Floats = np.linalg.solve(root, factor.T).T
        transform = replace(self.transform, factor=wider)
        return Mixture(centroids, weights, transform, 1.0, self.shrinkage, averaged=True)

    @property
    def is_normal(self) -> bool:
        """Whether all rows share a single kernel at the mean of the class."""
        return self.shrinkage == 0.0 and len(self.rows) > 0

    @property
    def row_weights(self) -> Floats:
        """(n_rows,) weights of the rows."""
        return weights_or_ones(self.weights, len(self.rows))

    @cached_property
    def kernel_rows(self) -> KernelRows:
        """Rows with kernels: all rows, or a single row at the mean of the class if `is_normal`."""
        if not self.is_normal:
            return self._all_rows
        row = np.zeros((1, self.rows.shape[1]))
        row[0, self.transform.variables] = self.transform.mean
        return KernelRows(self.transform, row, np.ones(1))

    @cached_property
    def _all_rows(self) -> KernelRows:
        """All rows, each with its own kernel, also if `is_normal`."""
        return KernelRows(self.transform, self.rows, self.row_weights)

    @property
    def size(self) -> int:
        """Number of floats that one evaluation reads."""
        return max(self.rows.size, 1)

    @property
    def used(self) -> Integers:
        """Indices of the columns that the density uses."""
        return self.transform.used

    @property
    def has_covariances(self) -> bool:
        """Whether the factor is not diagonal."""
        factor = self.transform.full_factor
        return bool(np.any(factor - np.diag(np.diag(factor))))

    def log_density(self, scaled: Floats) -> Floats:
        """Return log densities (n_samples,) of scaled samples, integrated over their missing values."""
        log_density: Floats = self.kernel_rows.log_densities(scaled, *self._kernel)[0]
        return log_density

    def log_density_without(self, scaled: Floats, group_ids: Integers, group_of_x: Integers) -> Floats:
        """Return log densities (n_samples,) of scaled samples, each without a group of rows.

        Sample i is estimated without the kernels of rows whose entry of `group_ids` (n_rows,) equals
        `group_of_x[i]`. The transform, and therefore a normal density, stays the same.
        """
        log_density: Floats = self._all_rows.log_densities(scaled, *self._kernel, group_ids, group_of_x)[0]
        return log_density

    @property
    def _kernel(self) -> tuple[Floats, Floats]:
        """Arrays (1,) of the bandwidth and of the shrinkage, for `KernelRows`."""
        return np.array([self.bandwidth]), np.array([self.shrinkage])

    @cached_property
    def centers(self) -> Floats:
        """(n_centers, n_used) centers of the kernels; only for rows without missing values."""
        transform = self.transform
        return transform.mean + self.shrinkage * transform.centered(self.kernel_rows.rows)

    @cached_property
    def _kernel_transform(self) -> ClassTransform:
        """Transform to coordinates in which the kernels have bandwidth 1.

        Coordinates are relative to the mean of the centers, so that products lose fewer digits.
        """
        transform, centers = self.transform, self.centers
        mean = centers.mean(axis=0) if len(centers) else transform.mean
        return replace(transform, mean=mean, factor=transform.factor / self.bandwidth)

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are not pickled, so that less data is sent to the workers of a cluster.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def conditionals(self, scaled: Floats) -> tuple[Floats, Floats]:
        """Compute the conditionals of all variables in one pass over the rows; see `MemberDensity`."""
        conditional, shares = np.zeros(scaled.shape), np.empty((len(scaled), len(self.rows)))
        fast = self.kernel_rows.is_fast(scaled)
        conditional[fast], shares[fast] = self._complete_conditionals(scaled[fast])
        others, step = np.flatnonzero(~fast), max(1, _BLOCK_OF_TERMS // max(self.rows.size, 1))
        for first in range(0, others.size, step):
            block = others[first : first + step]
            conditional[block], shares[block] = self._general_conditionals(scaled[block])
        return conditional, shares

    def _general_conditionals(self, x: Floats) -> tuple[Floats, Floats]:
        """Compute `conditionals` for any samples and rows.

        Each conditional is a log sum of kernels minus the log sum of kernels without the variable.
        """
        rows, conditional, by_weight = self.kernel_rows, np.zeros(x.shape), super().shares(x)
        if not len(rows.rows):
            return conditional, by_weight
        (exponents,) = rows.exponents(rows.pairs(x), *self._kernel)
        exponents -= np.log(rows.weights)
        by_variable = rows.conditional_terms(x, self.bandwidth, self.shrinkage)
        log_sum = _log_sums(exponents)
        for j, terms in zip(self.used.tolist(), by_variable, strict=True):
            has = ~np.isnan(x[:, j])
            conditional[has, j] = log_sum[has] - _log_sums((exponents - terms)[has])
        return conditional, by_weight if self.is_normal else softmax(-exponents, axis=1)

    def _complete_conditionals(self, x: Floats) -> tuple[Floats, Floats]:
        """Compute `conditionals` for samples and rows that are numeric and have no missing values.

        Let d be the difference of a sample and a center, and P = B B^T / h^2. Without variable j, the
        quadratic form of d is smaller by (P d)_j^2 / P_jj.
        """
        conditional = np.zeros(x.shape)
        by_weight, transform = super().shares(x), self._kernel_transform
        if not len(self.centers) or not transform.variables.size:
            return conditional, by_weight
        c = transform.coordinates(self.centers - transform.mean)
        z = transform.coordinates(transform.centered(x))
        factor = transform.full_factor
        precision = np.vecdot(factor, factor)
        pull_c, pull_z = c @ factor.T, z @ factor.T
        nearest = cdist(z, c, "sqeuclidean").argmin(axis=1)
        relative = -np.tile(np.log(self.kernel_rows.weights), (len(x), 1))
        ratio, work = np.empty(pull_z.shape), np.empty((2, len(c)))
        columns = np.ascontiguousarray(c.T), np.ascontiguousarray(pull_c.T)
        kernels.conditional_log_ratios(
            z, columns[0], pull_z, columns[1], 0.5 / precision, nearest, relative, work, ratio
        )
        apart = 0.5 * (pull_z - pull_c[nearest]) ** 2 / precision
        conditional[:, transform.variables] = ratio - apart + 0.5 * np.log(precision) - kernels.LOG_ROOT
        return conditional, by_weight if self.is_normal else softmax(-relative, axis=1)

    def marginals(self, sets: Coalitions, group_ids: Integers) -> SetDensity:
        """Compute the marginals of all sets in one walk over the variables; see `MemberDensity`."""
        return mixture_marginals(self, sets, group_ids)


def _log_sums(exponents: Floats) -> Floats:
    """Return the logarithms (n_samples,) of the sums of exp(-exponents) over rows."""
    least = exponents.min(axis=1)
    log_sums: Floats = np.log(np.exp(least[:, np.newaxis] - exponents).sum(axis=1)) - least
    return log_sums

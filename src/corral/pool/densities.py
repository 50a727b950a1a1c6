r"""Class densities of members: what each of them does, and mixtures of kernels with a common precision.

On the scale s of a member, which is monotone in each variable, the density of class y is

.. math::

    \log p(x \mid y) = \log \sum_i w_i \exp\bigl(-\tfrac1{2 h^2} \|B_y^T (s(x) - c_i)\|^2\bigr)
        - \log \sum_i w_i - \tfrac q2 \log 2 \pi h^2 + \log |B_y|

with centers :math:`c_i`, weights :math:`w_i`, a bandwidth h and a factor :math:`B_y` of q columns, times
kernels of the variables with categories. A kernel density has a center for each row, a normal density a
single one; between them the centers are the rows, shrunk towards the mean of their class.
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

# Terms of kernels that are held at once.
_BLOCK_OF_TERMS = 1_000_000


class MemberDensity(ABC):
    """The density of one class on the scale of a member.

    A subclass is a dataclass, which a model file keeps field by field, but for the training rows. It is a
    density of all variables: where a sample misses some, `log_density` is that of the others. So the marginal
    density of a set of variables is `log_density` of samples that miss the other ones, and by default all
    that explanations need follows from that.
    """

    @property
    @abstractmethod
    def used(self) -> Integers:
        """Columns that take part; the others are uniform."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Numbers that an estimate reads."""

    @property
    @abstractmethod
    def row_weights(self) -> Floats:
        """(n_rows,) how much each training row of the class counts."""

    @abstractmethod
    def log_density(self, scaled: Floats) -> Floats:
        """Log densities (n_samples,) of scaled samples, integrated over the values that they miss."""

    @abstractmethod
    def without_rows(self) -> Self:
        """The density without training rows, as a model file keeps it."""

    @abstractmethod
    def on_rows(self, scaled: Floats, weights: Floats | None) -> Self:
        """The same density with the training rows (n_rows, n_features) of the class and their weights."""

    @abstractmethod
    def validate_for(self, n_categories: Integers) -> None:
        """Refuse variables that rows with such numbers of categories (n_features,) do not have."""

    @property
    def has_covariances(self) -> bool:
        """Whether the density of a variable depends on the others."""
        return False

    def log_density_without(self, scaled: Floats, group_ids: Integers, group_of_x: Integers) -> Floats:
        """The same without the rows (n_rows,) of each sample's group (n_samples,).

        By default no row is left out, since one of many hardly changes a few parameters.
        """
        return self.log_density(scaled)

    def shares(self, scaled: Floats) -> Floats:
        """Shares (n_samples, n_rows) of the training rows in the density, by default by their weights."""
        weights = self.row_weights
        return np.tile(weights / max(weights.sum(), TINY), (len(scaled), 1))

    def conditionals(self, scaled: Floats) -> tuple[Floats, Floats]:
        """Log density (n_samples, n_features) of each variable given all others, and the shares of the rows.

        0 for missing values and for a variable that takes no part.
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
        """Densities of sets of variables, all others integrated out; `group_ids` (n_rows,): groups of rows.

        By default one evaluation for each set, with no row left out.
        """

        def log_density(x: Floats, left_out: Integers, log_shares: Floats | None) -> Floats:
            by_set = [self.log_density(np.where(members, x, np.nan)) for members in sets.members]
            return np.column_stack(by_set)

        return log_density


@dataclass(frozen=True, eq=False)
class Mixture(MemberDensity):
    """A mean of kernels on the rows of a class.

    A class whose rows are complete and numeric has a fast path for samples that are, too. It is chosen by
    `kernel_rows`, once for each class.
    """

    rows: Floats  # (n_rows, n_features) all rows of the class, scaled; none if the class has no rows
    weights: Floats | None  # (n_rows,) or None if all rows count alike
    transform: ClassTransform  # the coordinates
    bandwidth: float  # of the kernels
    shrinkage: float  # by which factor differences of rows from the mean are multiplied to become centers
    averaged: bool = False  # whether rows are averages of many rows

    def validate(self) -> None:
        """Refuse what no fit could have learnt."""
        largest = LARGEST_COORDINATE
        check_array("rows", self.rows, (None, None), -largest, largest, nan=not self.averaged)
        if self.averaged and self.transform.categories.columns.size:
            raise ValueError("rows with categories are averaged")
        if self.weights is not None:
            check_array("weights", self.weights, (len(self.rows),), SMALLEST)
        check_number("bandwidth", self.bandwidth, 1e-10, 1e10)
        check_number("shrinkage", self.shrinkage, 0.0, 1.0)

    def validate_for(self, n_categories: Integers) -> None:
        """Refuse variables that rows with such numbers of categories (n_features,) do not have."""
        self.transform.validate_for(n_categories)

    def without_rows(self) -> Mixture:
        """The density without its rows, which `on_rows` puts back; centroids are not rows of the table."""
        return replace(self, rows=self.rows if self.averaged else self.rows[:0], weights=None)

    def on_rows(self, scaled: Floats, weights: Floats | None) -> Mixture:
        """The same density with kernels on other rows; centroids stay where they are."""
        if not self.averaged:
            return replace(self, rows=scaled, weights=weights)
        check_shape("rows", self.rows, scaled.shape)
        return replace(self, weights=weights)

    def on_centroids(self, centroids: Floats, weights: Floats, spread: Floats) -> Mixture:
        """The same density with kernels on means of scaled rows, which get the spread that these have lost.

        `spread` (n_features, n_features) is the covariance of rows around their means.
        """
        variables, factor = self.transform.variables, self.transform.full_factor / self.bandwidth
        lost = self.shrinkage**2 * factor.T @ spread[np.ix_(variables, variables)] @ factor
        root = np.linalg.cholesky(np.eye(len(lost)) + lost)
        wider: Floats = np.linalg.solve(root, factor.T).T
        transform = replace(self.transform, factor=wider)
        return Mixture(centroids, weights, transform, 1.0, self.shrinkage, averaged=True)

    @property
    def is_normal(self) -> bool:
        """Whether all rows together have a single kernel, at the mean of the class."""
        return self.shrinkage == 0.0 and len(self.rows) > 0

    @property
    def row_weights(self) -> Floats:
        """(n_rows,) how much each row counts."""
        return weights_or_ones(self.weights, len(self.rows))

    @cached_property
    def kernel_rows(self) -> KernelRows:
        """Rows that have kernels: all, or one at the mean of the class if all kernels are the same."""
        if not self.is_normal:
            return self._all_rows
        row = np.zeros((1, self.rows.shape[1]))
        row[0, self.transform.variables] = self.transform.mean
        return KernelRows(self.transform, row, np.ones(1))

    @cached_property
    def _all_rows(self) -> KernelRows:
        """All rows with a kernel each, also if all kernels are the same."""
        return KernelRows(self.transform, self.rows, self.row_weights)

    @property
    def size(self) -> int:
        """Numbers that an estimate reads."""
        return max(self.rows.size, 1)

    @property
    def used(self) -> Integers:
        """Columns that take part."""
        return self.transform.used

    @property
    def has_covariances(self) -> bool:
        """Whether the factor mixes variables."""
        factor = self.transform.full_factor
        return bool(np.any(factor - np.diag(np.diag(factor))))

    def log_density(self, scaled: Floats) -> Floats:
        """Log densities (n_samples,) of scaled samples, integrated over the values that they miss."""
        log_density: Floats = self.kernel_rows.log_densities(scaled, *self._kernel)[0]
        return log_density

    def log_density_without(self, scaled: Floats, group_ids: Integers, group_of_x: Integers) -> Floats:
        """The same without the rows (n_rows,) of each sample's group (n_samples,).

        The transform keeps them, and so does a normal density.
        """
        log_density: Floats = self._all_rows.log_densities(scaled, *self._kernel, group_ids, group_of_x)[0]
        return log_density

    @property
    def _kernel(self) -> tuple[Floats, Floats]:
        """Bandwidth and shrinkage (1,) as `KernelRows` takes them."""
        return np.array([self.bandwidth]), np.array([self.shrinkage])

    @cached_property
    def centers(self) -> Floats:
        """Centers (n_centers, n_used) of the kernels of complete rows."""
        transform = self.transform
        return transform.mean + self.shrinkage * transform.centered(self.kernel_rows.rows)

    @cached_property
    def _kernel_transform(self) -> ClassTransform:
        """Coordinates in which kernels have bandwidth 1, relative to the mean of the centers.

        Relative to it they keep their digits.
        """
        transform, centers = self.transform, self.centers
        mean = centers.mean(axis=0) if len(centers) else transform.mean
        return replace(transform, mean=mean, factor=transform.factor / self.bandwidth)

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the rows is made again: a model is sent to the workers of a cluster.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def conditionals(self, scaled: Floats) -> tuple[Floats, Floats]:
        """See `MemberDensity`; one pass over the rows serves all variables."""
        conditional, shares = np.zeros(scaled.shape), np.empty((len(scaled), len(self.rows)))
        fast = self.kernel_rows.is_fast(scaled)
        conditional[fast], shares[fast] = self._complete_conditionals(scaled[fast])
        others, step = np.flatnonzero(~fast), max(1, _BLOCK_OF_TERMS // max(self.rows.size, 1))
        for first in range(0, others.size, step):
            block = others[first : first + step]
            conditional[block], shares[block] = self._general_conditionals(scaled[block])
        return conditional, shares

    def _general_conditionals(self, x: Floats) -> tuple[Floats, Floats]:
        """The same for any samples and rows: log means with and without the terms of each variable."""
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
        """The same for complete samples and rows of numbers.

        Leaving variable j out takes (P d)_j^2 / P_jj from the quadratic form of d, with P = B B^T / h^2.
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
        """See `MemberDensity`; one walk over the variables serves all sets."""
        return mixture_marginals(self, sets, group_ids)


def _log_sums(exponents: Floats) -> Floats:
    """Logarithms (n_samples,) of the sums of exp(-exponents)."""
    least = exponents.min(axis=1)
    log_sums: Floats = np.log(np.exp(least[:, np.newaxis] - exponents).sum(axis=1)) - least
    return log_sums

r"""The exponent of a kernel, for all pairs of samples and rows of a class.

Let z be the coordinates of a sample and :math:`c_i` the coordinates of row i, both relative to the mean of
the class (see `transforms`). With the bandwidth h and the shrinkage a the exponent of the kernel is

.. math:: e_i = \frac{1}{2 h^2} \bigl(\|z\|^2 - 2 a z^T c_i + a^2 \|c_i\|^2\bigr) + q \log h

over q coordinates, plus the exponents of the variables with categories (see `categories`).

**Missing values of a sample.** The variable is integrated out, exactly: along a diagonal its factor is left
out. Along a covariance let J be the missing variables. The exponent is largest over :math:`d_J` where
:math:`B_A^T d_A + B_J^T d_J` is orthogonal to the rows of :math:`B_J`; this takes
:math:`u_J^T P_{JJ}^{-1} u_J` from the squared lengths, with :math:`P = B B^T` and :math:`u = P d`, and
divides the density by the root of the determinant of :math:`P_{JJ}`.

**Missing values of a row.** Along a diagonal the factor is the density of the variable in its class, a normal
one with its mean and variance, or its frequencies. Along a covariance a missing value is at its expectation
given the others, which is the same projection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.data.missing import patterns
from corral.pool.categories import CategoriesOfRows, category_exponents
from corral.pool.transforms import ClassTransform, complete

# Numbers in a block of exponents, and in one of products of complete rows, which should stay in the cache.
_BLOCK = 60_000
_BLOCK_OF_PRODUCTS = 100_000

# Beyond this exponent at the mean of the class, a product of coordinates loses more than 1e-11 by rounding.
_LARGEST_PRODUCT = 1e-11 * 2.0**53

# A sample with this number belongs to no row.
NO_GROUP = -1


class Pairs(NamedTuple):
    """What the exponents of samples and rows are made of, whatever the bandwidth."""

    # squares, has: (n_samples, n_parts) squared lengths of samples, and numbers of coordinates that they
    # have, over the variables that no row misses, then for each of the others alone
    squares: Floats
    has: Floats
    # (n_samples, n_parts) exponents for rows without a value; in the first part less the sum of all others,
    # which the variables that a row has take away again
    alone: Floats
    rows_have: Floats  # (n_parts, n_rows) 1 where a row has a value, and in the first part
    categories: Floats  # (n_samples, n_columns) in the variables with categories
    # xc, cc: (n_samples, n_rows) products, and squared lengths of rows, over the variables that both have
    xc: Floats
    cc: Floats
    log_norm: Floats  # (n_samples,) logarithms of what divides the mean of the kernels


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Rows of a class that have kernels."""

    transform: ClassTransform  # of the class
    rows: Floats  # (n_rows, n_features) scaled
    weights: Floats  # (n_rows,)

    @cached_property
    def complete(self) -> bool:
        """Whether all variables that take part are numeric, and no row misses one."""
        return not self.transform.categories.columns.size and not np.isnan(self._centered_rows).any()

    def is_fast(self, x: Floats) -> Bools:
        """Which scaled samples (n_samples,) take the path for complete samples and rows of numbers."""
        if not self.complete:
            return np.zeros(len(x), dtype=bool)
        missing = np.isnan(x)
        if not missing.any():  # the usual case, without a copy of the columns
            return np.ones(len(x), dtype=bool)
        return np.asarray(~missing[:, self.transform.variables].any(axis=1))

    @cached_property
    def _centered_rows(self) -> Floats:
        """(n_rows, n_used) rows less the mean."""
        return self.transform.centered(self.rows)

    @cached_property
    def _centered(self) -> Floats:
        """The same, along a covariance with expectations of missing values."""
        centered = self._centered_rows
        if self.complete or self.transform.is_diagonal:
            return centered
        return complete(self.transform.precision, centered)

    @cached_property
    def _coordinates(self) -> Floats:
        """(n_rows, n_used) coordinates of the rows."""
        return self.transform.coordinates(self._centered)

    @cached_property
    def _lengths(self) -> Floats:
        """(n_rows,) squared lengths of the coordinates."""
        lengths: Floats = np.vecdot(self._coordinates, self._coordinates)
        return lengths

    @cached_property
    def _values(self) -> Floats:
        """(n_used, n_rows) coordinates, 0 for missing values."""
        return np.ascontiguousarray(np.nan_to_num(self._coordinates).T)

    @cached_property
    def _products(self) -> Floats:
        """(n_used, n_rows) products of the precision with the rows."""
        return np.ascontiguousarray((self._centered @ self.transform.precision).T)

    @cached_property
    def _categories(self) -> CategoriesOfRows:
        return CategoriesOfRows.from_rows(self.rows, self.transform.categories.columns)

    def pairs(self, x: Floats) -> Pairs:
        """Compare scaled samples with all rows."""
        return self._variance_pairs(x) if self.transform.is_diagonal else self._covariance_pairs(x)

    def _variance_pairs(self, x: Floats) -> Pairs:
        transform, rows_have = self.transform, ~np.isnan(self._coordinates).T
        partly = ~rows_have.all(axis=1)
        z = transform.coordinates(transform.centered(x))
        has_value = ~np.isnan(z)
        has, z = has_value.astype(np.float64), np.where(has_value, z, 0.0)
        alone = (has * transform.missing_exponents(z))[:, partly]

        def parts(by_variable: Floats) -> Floats:
            return np.column_stack([by_variable[:, ~partly].sum(axis=1), by_variable[:, partly]])

        return Pairs(
            squares=parts(z * z),
            has=parts(has),
            alone=np.column_stack([-alone.sum(axis=1), alone]),
            rows_have=np.vstack([np.ones(len(self.rows)), rows_have[partly]]),
            categories=self._categories_of(x),
            xc=z @ self._values,
            cc=has @ self._values**2,
            log_norm=np.vecdot(has, kernels.LOG_ROOT - np.log(transform.factor)),
        )

    def _covariance_pairs(self, x: Floats) -> Pairs:
        """The same along a covariance: samples are integrated over what they miss."""
        transform, n_rows, original = self.transform, len(self.rows), x
        x = transform.centered(x)
        missing, d = np.isnan(x), x.shape[1]
        z = transform.coordinates(complete(transform.precision, x))
        cc, log_volume = np.tile(self._lengths, (len(x), 1)), np.zeros(len(x))
        if missing.any():
            kernels.integrated_lengths(
                transform.precision,
                missing,
                self._products,
                self._lengths,
                np.empty(d, dtype=np.int64),
                np.empty((d, d)),
                np.empty((d, n_rows)),
                cc,
                log_volume,
            )
        n_left = d - missing.sum(axis=1).astype(np.float64)
        return Pairs(
            squares=np.vecdot(z, z)[:, np.newaxis],
            has=n_left[:, np.newaxis],
            alone=np.zeros((len(x), 1)),
            rows_have=np.ones((1, n_rows)),
            categories=self._categories_of(original),
            xc=z @ self._values,
            cc=cc,
            log_norm=log_volume - transform.log_determinant + kernels.LOG_ROOT * n_left,
        )

    def _categories_of(self, x: Floats) -> Floats:
        return x.take(self.transform.categories.columns, axis=1)

    def exponents(self, pairs: Pairs, bandwidths: Floats, shrinkages: Floats) -> Iterator[Floats]:
        """Exponents (n_samples, n_rows) of all pairs of samples and rows, for one kernel after another.

        The only place where they are formed, but for loops that are faster: for complete rows
        `kernels.shrunken_log_means` and `kernels.kernel_sums`, by variable `terms` and
        `kernels.walk_squares`, without one variable in turn `Mixture.conditionals` (complete rows), and
        `bandwidths.Refinement`.
        """
        categories = self.transform.categories
        by_category, offsets = categories.exponents(bandwidths), categories.offsets
        halves, log_bandwidths = 0.5 * bandwidths**-2.0, np.log(bandwidths)
        each = zip(halves.tolist(), log_bandwidths.tolist(), shrinkages.tolist(), by_category, strict=True)
        for half, log_bandwidth, shrinkage, exponents_by_category in each:
            by_part = half * pairs.squares + log_bandwidth * pairs.has - pairs.alone
            exponents: Floats = by_part @ pairs.rows_have
            kernels.add_exponents(
                pairs.xc,
                pairs.cc,
                half,
                shrinkage,
                exponents_by_category,
                offsets,
                pairs.categories,
                *self._categories,
                exponents,
            )
            yield exponents

    def log_densities(
        self,
        x: Floats,
        bandwidths: Floats,
        shrinkages: Floats,
        group_ids: Integers | None = None,
        group_of_x: Integers | None = None,
    ) -> Floats:
        """Log densities (n_bandwidths, n_samples) of scaled samples, integrated over the values they miss.

        Without the rows (n_rows,) that share the group of a sample (n_samples,); -inf where no row is left.
        """
        group_ids = np.zeros(len(self.rows), dtype=np.int64) if group_ids is None else group_ids
        group_of_x = np.full(len(x), NO_GROUP) if group_of_x is None else group_of_x
        is_fast, kernel = self.is_fast(x), (bandwidths, shrinkages, group_ids)
        if is_fast.all():
            return self._complete_log_densities(x, *kernel, group_of_x)
        log_density = np.empty((bandwidths.size, len(x)))
        if is_fast.any():
            log_density[:, is_fast] = self._complete_log_densities(x[is_fast], *kernel, group_of_x[is_fast])
        others, step = np.flatnonzero(~is_fast), max(1, _BLOCK // max(len(self.rows), 1))
        for first in range(0, others.size, step):
            block = others[first : first + step]
            log_density[:, block] = self._log_densities(x[block], *kernel, group_of_x[block])
        return log_density

    def _log_densities(
        self, x: Floats, bandwidths: Floats, shrinkages: Floats, group_ids: Integers, group_of_x: Integers
    ) -> Floats:
        pairs = self.pairs(x)
        log_mean = np.empty((bandwidths.size, len(x)))
        for k, exponents in enumerate(self.exponents(pairs, bandwidths, shrinkages)):
            kernels.log_means(exponents, self.weights, group_of_x, group_ids, log_mean[k])
        return log_mean - pairs.log_norm

    def _complete_log_densities(
        self, x: Floats, bandwidths: Floats, shrinkages: Floats, group_ids: Integers, group_of_x: Integers
    ) -> Floats:
        """The same for complete samples and rows of numbers.

        Distances come from matrix products of coordinates relative to the mean of the class. What they lose
        is small against the squared length of the coordinates, and so against the exponent of any row, unless
        row and sample both lie far from the mean and near each other. Then differences take their place.
        """
        c, transform, precisions = self._coordinates, self.transform, bandwidths**-2.0
        z = transform.coordinates(transform.centered(x))
        half_z, half_c, work = 0.5 * np.vecdot(z, z), 0.5 * self._lengths, np.empty((1, max(len(c), 1)))
        log_density = np.empty((bandwidths.size, len(z)))
        step = max(1, _BLOCK_OF_PRODUCTS // max(len(c), 1))
        longest = half_c.max(initial=0.0)  # 0 for a single row at the mean, whose products lose nothing
        farthest = max(longest, half_z.max(initial=0.0)) if longest > 0.0 else 0.0
        # A training row (it has a group) that lies so far from a class has no weight in what is chosen.
        is_new = (group_of_x == NO_GROUP).any()
        by_differences = is_new and farthest > _LARGEST_PRODUCT * bandwidths.min() ** 2
        for first in range(0, len(z), step):
            block = slice(first, first + step)
            log_mean = np.empty((bandwidths.size, len(z[block])))
            kernels.shrunken_log_means(
                z[block] @ c.T,
                half_z[block],
                half_c,
                self.weights,
                group_of_x[block],
                group_ids,
                shrinkages,
                precisions,
                work,
                log_mean,
            )
            log_density[:, block] = log_mean
            for k, precision in enumerate(precisions.tolist() if by_differences else []):
                reach = np.maximum(half_z[block], shrinkages[k] ** 2 * longest)
                far = first + np.flatnonzero(reach * precision > _LARGEST_PRODUCT)
                if not far.size:  # `log_means` need not be compiled
                    continue
                exponents = 0.5 * precision * cdist(z[far], shrinkages[k] * c, "sqeuclidean")
                far_log_mean = np.empty(far.size)
                kernels.log_means(exponents, self.weights, group_of_x[far], group_ids, far_log_mean)
                log_density[k, far] = far_log_mean
        log_norm = c.shape[1] * (np.log(bandwidths) + kernels.LOG_ROOT) - transform.log_determinant
        log_density -= log_norm[:, np.newaxis]
        return log_density

    def terms(
        self, x: Floats, bandwidth: float, shrinkage: float, log_shares: Floats | None = None
    ) -> Floats:
        """Exponents (n_samples, n_terms, n_rows) by variable with their norms; any where the sample has none.

        Along a covariance only variables with categories have terms. `log_shares` (n_samples, n_columns)
        are logarithms of the frequencies of the samples' categories, by default in the class.
        """
        if not self.transform.is_diagonal:
            return self._category_terms(x, bandwidth, log_shares)
        terms = self._numeric_terms(x, bandwidth, shrinkage)
        if not self.transform.categories.columns.size:
            return terms
        return np.concatenate([terms, self._category_terms(x, bandwidth, log_shares)], axis=1)

    def conditional_terms(self, x: Floats, bandwidth: float, shrinkage: float) -> Floats:
        """Exponents (n_terms, n_samples, n_rows) that each variable adds to the exponents of all others.

        As `terms`; along a covariance the exponent of d_j given the others, (P d)_j^2 / 2 P_jj, where P is
        the precision of the variables that the sample has.
        """
        terms = self.terms(x, bandwidth, shrinkage).swapaxes(0, 1)
        if self.transform.is_diagonal:
            return terms
        precision, centers = self.transform.precision, shrinkage * self._centered
        x = self.transform.centered(x)
        normal = np.zeros((len(precision), len(x), len(centers)))
        for samples, missing in patterns(np.isnan(x)):
            has = np.setdiff1d(np.arange(len(precision)), missing)
            explained = np.linalg.solve(precision[np.ix_(missing, missing)], precision[np.ix_(missing, has)])
            P = precision[np.ix_(has, has)] - precision[np.ix_(has, missing)] @ explained
            products = (x[np.ix_(samples, has)] @ P).T[:, :, np.newaxis]
            products = (products - (centers[:, has] @ P).T[:, np.newaxis]) / bandwidth
            own = np.diag(P)[:, np.newaxis, np.newaxis]
            log_norm = kernels.LOG_ROOT + math.log(bandwidth) - 0.5 * np.log(own)
            normal[np.ix_(has, samples)] = 0.5 * products**2 / own + log_norm
        return np.concatenate([normal, terms])

    def _numeric_terms(self, x: Floats, bandwidth: float, shrinkage: float) -> Floats:
        transform = self.transform
        z = transform.coordinates(transform.centered(x))
        c = self._coordinates.T
        terms: Floats = z[:, :, np.newaxis] - np.ascontiguousarray(shrinkage * c)
        terms /= bandwidth
        terms *= terms
        terms *= 0.5
        terms += kernels.LOG_ROOT + math.log(bandwidth)
        if np.isnan(c).any():
            alone = transform.missing_exponents(z) + kernels.LOG_ROOT
            terms = np.where(np.isnan(c), alone[:, :, np.newaxis], terms)
        terms -= np.log(transform.factor)[:, np.newaxis]
        return terms

    def _category_terms(self, x: Floats, bandwidth: float, log_shares: Floats | None) -> Floats:
        categories = self.transform.categories
        rows, x = self.rows[:, categories.columns].T, x[:, categories.columns]
        log_p = categories.log_shares_at(x) if log_shares is None else log_shares
        by_row = category_exponents(log_p, categories.sizes, categories.precision, bandwidth)
        equal, other, missing = (np.broadcast_to(term, x.shape)[:, :, np.newaxis] for term in by_row)
        terms = np.where(x[:, :, np.newaxis] == rows, equal, other)
        return np.where(np.isnan(rows), missing, terms)

r"""Kernels of single variables, whose product is the kernel of a row.

A measurement has the normal kernel. This module defines the kernel of a category and the factor of a missing
value, and leaves out groups.

**Categories.** The kernel of a variable with L categories is
:math:`e^{-\delta / 2 h^2} / (1 + (L - 1) e^{-1 / 2 h^2})`, with :math:`\delta = 0` for equal categories and
:math:`\delta = 1` for different categories. The kernel sums to 1 over the categories. It is the kernel of
Aitchison and Aitken with another parameter: here the bandwidth has the same role as in the normal kernel. The
derivative of the logarithm of the normal kernel and of this kernel by the bandwidth is

.. math:: \frac{\delta_{ij} - \mathrm{E}_h \delta}{h^3},

where :math:`\delta_{ij}` is the squared distance and :math:`\mathrm{E}_h \delta` its mean under the kernel:
:math:`h^2` for measurements, :math:`(L - 1) e^{-1 / 2 h^2} / (1 + (L - 1) e^{-1 / 2 h^2})` for categories.
The bandwidth of a category does not fall below :math:`1 / \sqrt{2 \log n}`, where
:math:`e^{-1 / 2 h^2} = 1 / n`. So the density of a category that is not in the training rows of the class
stays above 0.

**Missing values.** If variable j is missing in a new row, the density is integrated over the variable. Each
kernel :math:`k_{ij}` integrates to 1, so the kernels of the variable are left out of the products:

.. math:: \hat p(x) = \frac 1 n \sum_i \prod_{j : x_j \text{ given}} k_{ij}(x_j).

If variable j is missing in training row i, the density of the variable in the class replaces the kernel:
:math:`k_{ij}(x_j) = \hat f_j(x_j)`, estimated from the rows of the class that have a value. For measurements,
:math:`\hat f_j` is a kernel density estimate with the normal reference bandwidth
:math:`1.06\, s_j n_j^{-1/5}` (1 if all values are equal). For category l, :math:`\hat f_j` is the frequency
:math:`(n_{jl} + 1 / L) / (n_j + 1)`. :math:`\hat f_j` does not depend on :math:`h_j`, so :math:`Z_{ji} = 0`.

**Groups.** If a new row belongs to a group, training rows of the same group are left out of :math:`\hat p`
and of :math:`\hat f_j`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corral import kernels
from corral.array_types import Floats, Integers
from corral.data.tiles import TINY, ClassRows

# Id of a group that no row belongs to.
NO_GROUP = -1


def log_norms(h: Floats, n_categories: Integers) -> Floats:
    """Compute log norms of kernels with bandwidths `h` (..., n_features); 0 if a bandwidth is infinite."""
    measured = np.log(h) + kernels.LOG_ROOT
    log_norm = np.where(n_categories > 0, np.log1p(_odds_of_others(h, n_categories)), measured)
    return np.where(np.isinf(h), 0.0, log_norm)


def expected_distances(h: Floats, n_categories: Integers) -> Floats:
    """Compute mean squared distances under kernels with bandwidths `h` (..., n_features)."""
    others = _odds_of_others(h, n_categories)
    return np.where(n_categories > 0, others / (1.0 + others), h**2)


def _odds_of_others(h: Floats, n_categories: Integers) -> Floats:
    """Compute the kernel sum over all different categories, divided by the kernel of the equal category.

    The result (..., n_features) is 0 for measurements.
    """
    odds: Floats = np.maximum(n_categories - 1.0, 0.0) * np.exp(-0.5 / h**2)
    return odds


class Values(NamedTuple):
    """The rows of a class that have a value of one variable."""

    # values, groups, weights: (n_rows_with_value,)
    values: Floats
    groups: Integers
    weights: Floats
    n_categories: int  # number of categories, 0 for a measurement

    @classmethod
    def collect(cls, rows: ClassRows, j: int) -> Values:
        """Collect the values of variable j of a class."""
        values = rows.tiles[:, j].ravel()[: rows.n_rows]
        present = np.flatnonzero(~np.isnan(values))
        return cls(values[present], rows.group(present), rows.weight(present), int(rows.n_categories[j]))

    def log_densities(self, x: Floats, group: Integers) -> tuple[Floats, Floats]:
        """Return the training value nearest to each new value, and the log density at the new value.

        Both results have the shape (n_new,). If no training value remains, they are the new value and 0.
        `x` (n_new,) are new values, and `group` (n_new,) are ids of groups to leave out, or NO_GROUP.
        """
        if self.n_categories:
            return x, self._log_frequencies(x, group)
        if not self.values.size:
            return x, np.zeros(x.size)
        squares = x[:, np.newaxis] - self.values
        squares *= squares
        if (group != NO_GROUP).any():
            squares[group[:, np.newaxis] == self.groups] = np.inf
        nearest = self.values[squares.argmin(axis=1)]
        h, log_mean = self.reference_bandwidths(group), np.empty(x.size)
        squares *= (0.5 / h**2)[:, np.newaxis]
        kernels.log_means(squares, self.weights, group, self.groups, log_mean)
        is_left = log_mean > -np.inf
        log_density = np.where(is_left, log_mean - np.log(h) - kernels.LOG_ROOT, 0.0)
        return np.where(is_left, nearest, x), log_density

    def reference_bandwidths(self, group: Integers) -> Floats:
        """Compute normal reference bandwidths (n_new,), each from the rows outside a group to leave out."""
        weights = self.weights
        centered = self.values - weights @ self.values / weights.sum()
        numbers, position = np.unique(self.groups, return_inverse=True)
        mine = np.minimum(np.searchsorted(numbers, group), numbers.size - 1)
        exists = numbers[mine] == group
        W, squares, first, second = (
            power.sum() - np.where(exists, np.bincount(position, power)[mine], 0.0)
            for power in (weights, weights**2, weights * centered, weights * centered**2)
        )
        is_left = 1e-12 * weights.sum() < W  # a smaller remainder is a rounding error
        W = np.where(is_left, W, 1.0)
        variance = np.where(is_left, second / W - (first / W) ** 2, 0.0)
        n = np.maximum(W**2 / np.maximum(squares, TINY), 1.0)
        varies = variance > 1e-12 * (weights @ centered**2) / weights.sum()
        h: Floats = np.where(varies, 1.06 * np.sqrt(np.maximum(variance, 0.0)) * n**-0.2, 1.0)
        return h

    def frequencies(self) -> Floats:
        """Sum the weights of each category (n_categories,), plus 1 / n_categories."""
        frequencies: Floats = np.full(self.n_categories, 1.0 / self.n_categories)
        np.add.at(frequencies, self.values.astype(np.int64), self.weights)
        return frequencies

    def _log_frequencies(self, x: Floats, group: Integers) -> Floats:
        """Compute log frequencies (n_new,) of the new categories, each without a group to leave out."""
        counts, total = self.frequencies()[x.astype(np.int64)], np.full(x.size, self.weights.sum() + 1.0)
        for q in np.flatnonzero(group != NO_GROUP).tolist():
            mine = self.groups == group[q]
            total[q] -= self.weights[mine].sum()
            counts[q] -= self.weights[mine & (self.values == x[q])].sum()
        share = np.maximum(counts, 1.0 / self.n_categories) / np.maximum(total, 1.0)
        log_share: Floats = np.log(share)
        return log_share


def variable_densities(rows: ClassRows, x: Floats, group: Integers) -> tuple[Floats, Floats]:
    """Return nearest training values and log densities of single variables, both (n_new, n_features).

    A variable without missing values in the class is not evaluated: its results are the new value and 0. The
    nearest value of a category is the category itself. `group` (n_new,) are ids of groups to leave out, or
    NO_GROUP.
    """
    nearest, log_value = x.copy(), np.zeros(x.shape)
    for j in np.flatnonzero(rows.has_missing).tolist():
        present = np.flatnonzero(~np.isnan(x[:, j]))
        column = Values.collect(rows, j)
        nearest[present, j], log_value[present, j] = column.log_densities(x[present, j], group[present])
    return nearest, log_value


def log_factors(rows: ClassRows, x: Floats, h: Floats, own: Integers) -> Floats:
    """Compute the logarithms (n_new, n_features, n_rows) of kernels; 0 if the new value is missing.

    `x` and `h` (n_new, n_features) are new rows and bandwidths. `own` (n_new,) are indices of class rows
    whose groups are left out of the densities that replace kernels of missing values; -1 for none.
    """
    columns, is_category = rows.all().T, rows.n_categories[:, np.newaxis] > 0
    _, log_value = variable_densities(rows, np.ascontiguousarray(x), rows.group(own))
    apart = (x[:, :, np.newaxis] - columns) ** 2
    apart = np.where(is_category, np.minimum(apart, 1.0), apart)
    log_kernels = -0.5 * apart / h[:, :, np.newaxis] ** 2 - log_norms(h, rows.n_categories)[:, :, np.newaxis]
    factors = np.where(np.isnan(columns), log_value[:, :, np.newaxis], log_kernels)
    return np.where(np.isnan(x)[:, :, np.newaxis], 0.0, factors)


def draw_kernels(
    rows: ClassRows, centers: Floats, h: Floats, noise: Floats, random: np.random.RandomState
) -> Floats:
    """Sample one row from the kernel around each row of `centers` (n, n_features).

    `h` (n, n_features) are bandwidths, `noise` (n, n_features) standard normal numbers. A missing value is
    sampled from the density of the variable in the class. The value stays missing if no row of the class has
    one.
    """
    sample = centers + noise * h
    for j in np.flatnonzero(rows.has_missing | (rows.n_categories > 0)).tolist():
        column, missing = Values.collect(rows, j), np.isnan(centers[:, j])
        if column.n_categories:
            sample[:, j] = _draw_categories(column, centers[:, j], h[:, j], random)
        elif missing.any() and column.values.size:
            (reference,) = column.reference_bandwidths(np.array([NO_GROUP]))
            others = random.choice(column.values, missing.sum(), p=column.weights / column.weights.sum())
            sample[missing, j] = others + noise[missing, j] * reference
    return sample


def _draw_categories(column: Values, centers: Floats, h: Floats, random: np.random.RandomState) -> Floats:
    """Sample categories (n,) from kernels, or from the frequencies of the class if the center is missing."""
    n = column.n_categories
    sample, missing = centers.copy(), np.isnan(centers)
    if missing.any() and column.values.size:
        share = column.frequencies()
        sample[missing] = random.choice(n, missing.sum(), p=share / share.sum())
    moves = random.uniform(size=centers.size) < expected_distances(h, np.full(h.size, n))
    moves &= ~missing
    sample[moves] = (sample[moves] + random.randint(1, max(n, 2), moves.sum())) % n
    return sample

r"""Factors of kernels, one for each variable: measurements, categories and missing values.

**Categories.** The kernel of a variable with L categories is
:math:`e^{-\delta / 2 h^2} / (1 + (L - 1) e^{-1 / 2 h^2})`, with :math:`\delta` 0 for equal categories and 1
for others. It sums to 1 over the categories (Aitchison and Aitken's kernel in another parameter), and has the
form of the normal one, so that a bandwidth means the same. The derivative of the logarithm of either kernel
by its bandwidth is

.. math:: \frac{\delta_{ij} - \mathrm{E}_h \delta}{h^3},

where :math:`\delta_{ij}` is the squared distance and :math:`\mathrm{E}_h \delta` its mean under the kernel:
:math:`h^2` for measurements, :math:`(L - 1) e^{-1 / 2 h^2} / (1 + (L - 1) e^{-1 / 2 h^2})` for categories.
The bandwidth of categories does not fall below :math:`1 / \sqrt{2 \log n}`, where another category weighs as
much as one row of n: a category may occur in a class although no training row has it.

**Missing values.** If a new row has no value of variable j, the density is integrated over the variable.
Kernels are products of factors that integrate to 1, so the factors of the variable are left out,

.. math:: \hat p(x) = \frac 1 n \sum_i \prod_{j : x_j \text{ given}} k_{ij}(x_j).

A training row without a value has the density of the variable in its class as its factor, estimated from the
rows of the class that have one, :math:`k_{ij}(x_j) = \hat f_j(x_j)`: the row holds no information on the
variable beyond its class. :math:`\hat f_j` is a kernel estimate with the normal reference bandwidth
:math:`1.06\, s_j n_j^{-1/5}` (1 if all values agree), or the frequency of the category,
:math:`(n_{jl} + 1 / L) / (n_j + 1)`. It does not depend on :math:`h_j`, so that :math:`Z_{ji} = 0` for such
rows.

**Groups.** Training rows in the group of the new row are left out, of :math:`\hat f_j` as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corral import kernels
from corral.array_types import Floats, Integers
from corral.data.tiles import TINY, ClassRows

# A group without rows.
NO_GROUP = -1


def log_norms(h: Floats, n_categories: Integers) -> Floats:
    """Logarithms of the norms of kernels with bandwidths h (..., n_features); 0 if h is infinite."""
    measured = np.log(h) + kernels.LOG_ROOT
    log_norm = np.where(n_categories > 0, np.log1p(_odds_of_others(h, n_categories)), measured)
    return np.where(np.isinf(h), 0.0, log_norm)


def expected_distances(h: Floats, n_categories: Integers) -> Floats:
    """Means of squared distances (..., n_features) under the kernels."""
    others = _odds_of_others(h, n_categories)
    return np.where(n_categories > 0, others / (1.0 + others), h**2)


def _odds_of_others(h: Floats, n_categories: Integers) -> Floats:
    """Weight of all other categories together over the weight of the same category; 0 for measurements."""
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
        """The training value nearest to each new value, and the log density there; 0 if no row has a value.

        `x` and `group` (n_new,) are new values, and the groups to leave out, or NO_GROUP.
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
        """Normal reference bandwidths (n_new,) of the rows outside each group to leave out."""
        weights = self.weights
        centered = self.values - weights @ self.values / weights.sum()
        numbers, position = np.unique(self.groups, return_inverse=True)
        mine = np.minimum(np.searchsorted(numbers, group), numbers.size - 1)
        exists = numbers[mine] == group
        W, squares, first, second = (
            power.sum() - np.where(exists, np.bincount(position, power)[mine], 0.0)
            for power in (weights, weights**2, weights * centered, weights * centered**2)
        )
        is_left = 1e-12 * weights.sum() < W  # a smaller difference is a rounding error
        W = np.where(is_left, W, 1.0)
        variance = np.where(is_left, second / W - (first / W) ** 2, 0.0)
        n = np.maximum(W**2 / np.maximum(squares, TINY), 1.0)
        varies = variance > 1e-12 * (weights @ centered**2) / weights.sum()
        h: Floats = np.where(varies, 1.06 * np.sqrt(np.maximum(variance, 0.0)) * n**-0.2, 1.0)
        return h

    def frequencies(self) -> Floats:
        """Weights (n_categories,) of the categories, with one more row that all categories share."""
        frequencies: Floats = np.full(self.n_categories, 1.0 / self.n_categories)
        np.add.at(frequencies, self.values.astype(np.int64), self.weights)
        return frequencies

    def _log_frequencies(self, x: Floats, group: Integers) -> Floats:
        """Logarithms (n_new,) of the frequencies of categories, outside each group to leave out."""
        counts, total = self.frequencies()[x.astype(np.int64)], np.full(x.size, self.weights.sum() + 1.0)
        for q in np.flatnonzero(group != NO_GROUP).tolist():
            mine = self.groups == group[q]
            total[q] -= self.weights[mine].sum()
            counts[q] -= self.weights[mine & (self.values == x[q])].sum()
        share = np.maximum(counts, 1.0 / self.n_categories) / np.maximum(total, 1.0)
        log_share: Floats = np.log(share)
        return log_share


def variable_densities(rows: ClassRows, x: Floats, group: Integers) -> tuple[Floats, Floats]:
    """Nearest values of the class and log densities of single variables, both (n_new, n_features).

    Only variables with missing values in the class are evaluated; for the others the result is the new value
    and 0. The nearest value of a category is the category. `group` (n_new,) are groups to leave out, or
    NO_GROUP.
    """
    nearest, log_value = x.copy(), np.zeros(x.shape)
    for j in np.flatnonzero(rows.has_missing).tolist():
        present = np.flatnonzero(~np.isnan(x[:, j]))
        column = Values.collect(rows, j)
        nearest[present, j], log_value[present, j] = column.log_densities(x[present, j], group[present])
    return nearest, log_value


def log_factors(rows: ClassRows, x: Floats, h: Floats, own: Integers) -> Floats:
    """Logarithms of the factors (n_new, n_features, n_rows) of kernels, 0 where a new row has no value.

    Bandwidths `h` have the shape of `x`; `own` (n_new,) are class rows to leave out, or -1.
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
    """Sample from kernels around rows `centers` (n, n_features); `h` and `noise` have the same shape.

    A missing value is sampled from the density of the variable in the class, if any row has a value: from the
    kernel of such a row with the normal reference bandwidth, or by the frequencies of categories.
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
    """Sample categories (n,) from kernels; for missing values by the frequencies, if any row has a value."""
    n = column.n_categories
    sample, missing = centers.copy(), np.isnan(centers)
    if missing.any() and column.values.size:
        share = column.frequencies()
        sample[missing] = random.choice(n, missing.sum(), p=share / share.sum())
    moves = random.uniform(size=centers.size) < expected_distances(h, np.full(h.size, n))
    moves &= ~missing
    sample[moves] = (sample[moves] + random.randint(1, max(n, 2), moves.sum())) % n
    return sample

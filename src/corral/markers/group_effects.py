r"""Effects of groups on tests: effective numbers of rows, degrees of freedom, and least p-values.

A group is a set of rows from one source, such as a patient or a recording. Rows of a group are similar, so
the p-values of a test that takes rows as independent are too small.

**Effective number of rows.** Let :math:`\rho` be the correlation of two rows of a group within a class (the
intraclass correlation), and :math:`w` the weights of the rows of a class. The variance of a weighted mean
equals the variance of a mean of

.. math:: n = \frac{(\sum_i w_i)^2}{(1 - \rho) \sum_i w_i^2 + \rho \sum_g (\sum_{i \in g} w_i)^2}

independent rows. This is Kish's effective number of rows if :math:`\rho = 0`, and Kish's effective number of
groups if :math:`\rho = 1`. Each class has its own correlation, because rows of a group may be less alike in
one class than in another. The correlation of a class is not smaller than the correlation over all classes,
because few groups give poor estimates: 300 rows of six patients without a symptom, which is rare, look
independent.

**Degrees of freedom.** The estimate of :math:`\rho` is uncertain if there are few groups. Let :math:`v_1` and
:math:`v_2` be the variances of the means of the two samples if all rows of a group were equal, divided by the
variance of a row, and :math:`G_1`, :math:`G_2` the numbers of groups. The normal distribution in the p-value
is replaced by Student's distribution with 1.5 times Satterthwaite's degrees of freedom,

.. math:: \nu = \frac{1.5\, (v_1 + v_2)^2}
          {\tau^2 \big(\gamma_1^2 v_1^2 / (G_1 - 1) + \gamma_2^2 v_2^2 / (G_2 - 1)\big)}, \qquad
          \gamma = 1 - \frac{\sum_i w_i^2}{\sum_g (\sum_{i \in g} w_i)^2}.

:math:`\gamma` is 0 if each group has one row. :math:`\tau` is the total variation distance between the
distributions of the two samples over the groups. It is 0 if each group has the same share of both samples:
then differences between groups cancel out. The factor is greater than 1 because the correlation is the
largest of several estimates and therefore too large; `benchmarks/contrast.py` measures error rates and power.

**Least p-value.** A p-value is not smaller than the least p-value of a permutation test. If classes do not
differ, two kinds of permutations of labels leave the distribution of the table unchanged: permutations of the
labels within a group, and permutations of the labels of groups that have only one label. Let :math:`m_g` and
:math:`n_g` be the numbers of rows of group g in the first and in the second sample, :math:`M` the number of
groups with rows in the first sample only, and :math:`N` the number with rows in the second sample only. There
are

.. math:: W = \binom{M + N}{M} \prod_g \binom{m_g + n_g}{m_g}

permutations. The observed table is one of them, so the tail probability of any statistic is at least
:math:`1 / W`, and a two-sided p-value is at least :math:`2 / W`. This is 1/3 if each of two classes has two
groups; it is too small to matter if each row is a group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from corral.array_types import Bools, Floats, Integers
from corral.markers.rank_tests import log_choose, rank_polynomials

# The factor of Satterthwaite's degrees of freedom, chosen by simulation. The factor 1 reduces the power by 6%
# for classes with twenty groups or more. With the factor 2, 2% of the classes that do not differ have a
# marker if eight groups of 100 similar rows are compared with 300 groups of three less similar rows.
_DEGREES_FACTOR = 1.5

# Scores have a variance of 1. A smaller variance between groups is rounding error.
_ROUNDING = 1e-20


class Clusters(NamedTuple):
    """Groups of samples: what the corrections of p-values need.

    The leading axes (...) are variables and samples, such as classes.
    """

    counts: Integers  # (..., n_groups) rows with a value in each group; n_groups is 0 if there are no groups
    # (...) v: the variance of the mean of a sample if all rows of a group were equal, over that of a row
    variance: Floats
    error: Floats  # (...) gamma^2 v^2 / (G - 1), the sample's term in the denominator of nu

    def take(self, *index: Integers) -> Clusters:
        """Pick samples by their indices along the leading axes."""
        return Clusters(self.counts[index], self.variance[index], self.error[index])

    def pool(self, members: Bools, sizes: Floats) -> Clusters:
        """Pool samples.

        `members` (n_variables, n_pooled, n_samples) are the samples in each pooled sample, and `sizes`
        (n_variables, n_samples) the effective numbers of their rows.
        """
        sums = np.stack([sizes, sizes**2 * self.variance, sizes**4 * self.error], axis=2)
        total, variance, error = np.moveaxis(members @ sums, 2, 0)
        total = np.where(total > 0.0, total, 1.0)
        return Clusters(members.astype(np.int64) @ self.counts, variance / total**2, error / total**4)


def pvalues_with_groups(log_p: Floats, first: Clusters, second: Clusters) -> Floats:
    """Correct logarithms of p-values (...) for the number of groups.

    `log_p` (...) are logarithms of p-values from effective numbers of rows. They are corrected by Student's
    distribution and by the least p-value; see the module.
    """
    if not first.counts.shape[-1]:
        return log_p
    shares = [n / np.maximum(n.sum(axis=-1, keepdims=True), 1) for n in (first.counts, second.counts)]
    distance = 0.5 * np.abs(shares[0] - shares[1]).sum(axis=-1)
    numerator = _DEGREES_FACTOR * (first.variance + second.variance) ** 2
    denominator = distance**2 * (first.error + second.error)
    few = denominator > 1e-12 * numerator
    degrees = np.divide(numerator, denominator, out=np.ones_like(log_p), where=few)
    tail = special.stdtr(degrees, special.ndtri_exp(log_p - np.log(2.0)))
    student = np.log(2.0) + np.log(np.maximum(tail, np.finfo(np.float64).tiny))
    return np.maximum(np.where(few, student, log_p), least_log_pvalues(first.counts, second.counts))


def least_log_pvalues(first: Integers, second: Integers) -> Floats:
    """Logarithms (...) of least p-values; `first` and `second` (..., n_groups) are the rows in each group."""
    within = log_choose(first, second).sum(axis=-1)
    M, N = (((a > 0) & (b == 0)).sum(axis=-1) for a, b in ((first, second), (second, first)))
    return np.asarray(np.minimum(np.log(2.0) - log_choose(M, N) - within, 0.0))


def effects_of_groups(
    X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers | None
) -> tuple[Floats, Clusters]:
    """Compute inverse design effects of groups (n_features, n_classes), and the `Clusters` of the classes.

    The inverse design effect is the factor by which groups reduce the effective number of rows (see
    `data.weights`); it is 1 for a class without rows. It depends on the correlation of rows of a group, which
    is estimated for each polynomial of ranks that `rank_tests` tests, since groups may differ in location,
    spread, skewness or modes. Each estimate is an analysis of variance, once with the groups of the class and
    once with the groups of all classes, each class around its own mean. The largest estimate is used.

    X is (n_rows, n_features), with NaN for missing values. `groups` (n_rows,) are group codes, or None if
    there are no groups.
    """
    shape = (X.shape[1], n_classes)
    n_groups = 0 if groups is None else int(groups.max(initial=0)) + 1
    worth, (variance, error) = np.ones(shape), np.zeros((2, *shape))
    counts = np.zeros((*shape, n_groups), dtype=np.int64)
    if groups is None:
        return worth, Clusters(counts, variance, error)
    for j, x in enumerate(X.T):
        present = ~np.isnan(x)
        w, cell = weights[present], (codes * n_groups + groups)[present]
        counts[j], cell_weights = (
            np.bincount(cell, each, n_classes * n_groups).reshape(n_classes, n_groups) for each in (None, w)
        )
        totals, squares = (np.bincount(codes[present], each, n_classes) for each in (w, w**2))
        # The largest design effect of each class (if all rows of a group are equal), minus 1. Multiplied by
        # the correlation, which may come from all classes, it is the design effect minus 1.
        sums = (cell_weights**2).sum(axis=1)
        excess = np.divide(sums, squares, out=np.ones(n_classes), where=squares > 0.0) - 1.0
        excess = np.maximum(excess, 0.0)
        worth[j] = 1.0 / (1.0 + _correlations(x[present], cell, counts[j]) * excess)
        variance[j] = np.divide(sums, totals**2, out=np.zeros(n_classes), where=totals > 0.0)
        degrees = np.maximum((counts[j] > 0).sum(axis=1) - 1, 1)
        error[j] = (variance[j] * excess / (1.0 + excess)) ** 2 / degrees
    return worth, Clusters(counts, variance, error)


def _correlations(x: Floats, cell: Integers, sizes: Integers) -> Floats:
    """Estimate correlations (n_classes,) of two rows of a cell, which is a group within a class.

    They are from 0 to 1. All are 1 if no class has two groups, since groups and classes cannot be
    distinguished then, and if all values in each cell are equal. They are 0 if each cell has one row. `x` and
    `cell` (n_rows,) are the value and the cell of each row; `sizes` (n_classes, n_groups) are the numbers of
    rows of cells.
    """
    n_classes, n_cells, n_rows = len(sizes), (sizes > 0).sum(axis=1), sizes.sum(axis=1)
    between, within = (_with_sum(n) for n in (np.maximum(n_cells - 1, 0), n_rows - n_cells))
    if not between.any():
        return np.ones(n_classes)
    if not within.any():
        return np.zeros(n_classes)
    _, position, counts = np.unique(x, return_inverse=True, return_counts=True)
    a_value = np.zeros(sizes.size, dtype=np.int64)
    a_value[cell] = position
    if (position == a_value[cell]).all():
        return np.ones(n_classes)
    # n_rows minus the mean size of the groups of a class, weighted by their rows: the factor of the variance
    # between groups in the expected sum of squares between groups.
    spare = n_rows - (sizes.astype(np.float64) ** 2).sum(axis=1) / np.maximum(n_rows, 1)
    size = _with_sum(spare) / np.maximum(between, 1)
    polynomials, exist = rank_polynomials(counts[np.newaxis].astype(np.float64))
    # Share of the variance within a class that is between groups; the last element is for all classes.
    shares = np.zeros(n_classes + 1)
    for scores in polynomials[exist[:, 0], 0][:, position]:
        sums = np.bincount(cell, scores, sizes.size).reshape(sizes.shape)
        means = sums / np.maximum(sizes, 1)
        class_means = sums.sum(axis=1, keepdims=True) / np.maximum(n_rows, 1)[:, np.newaxis]
        squares = np.bincount(cell, (scores - means.ravel()[cell]) ** 2, sizes.size).reshape(sizes.shape)
        mean_between = _with_sum((sizes * (means - class_means) ** 2).sum(axis=1)) / np.maximum(between, 1)
        mean_within = _with_sum(squares.sum(axis=1)) / np.maximum(within, 1)
        exceeds = (between > 0) & (within > 0) & (mean_between > np.maximum(mean_within, _ROUNDING))
        variance = (mean_between - mean_within)[exceeds] / size[exceeds]
        shares[exceeds] = np.maximum(shares[exceeds], variance / (variance + mean_within[exceeds]))
    return np.asarray(np.maximum(shares[:-1], shares[-1]))


def _with_sum(numbers: Floats | Integers) -> Floats:
    """Append the sum of the numbers (n_classes,) of all classes."""
    return np.append(numbers, numbers.sum()).astype(np.float64)

r"""What rows of groups are worth, in independent rows.

Rows of one patient or recording are alike, so that a test which counts each of them believes too much. Let
:math:`\rho` be the correlation of two rows of a group within a class (the intraclass correlation), and
:math:`w` the weights of the rows of a class. The variance of a weighted mean is then that of

.. math:: n = \frac{(\sum_i w_i)^2}{(1 - \rho) \sum_i w_i^2 + \rho \sum_g (\sum_{i \in g} w_i)^2}

independent rows: Kish's effective number without correlation, and that of the groups where their rows agree.
Rows of groups may be less alike in one class than in another, as where one class has few patients with many
rows each and the other has many patients with few. So each class has a correlation of its own, but none less
than that of all classes together, because rare values in few groups say little: six patients that all lack a
symptom look like 300 independent rows.

Few groups tell little of :math:`\rho`. Let :math:`v_1` and :math:`v_2` be the variances that the means of the
two samples would have if all rows of a group agreed, in variances of a row, and :math:`G_1`, :math:`G_2` the
numbers of their groups. The p-value becomes that of Student's distribution with 1.5 times Satterthwaite's
degrees of freedom,

.. math:: \nu = \frac{1.5\, (v_1 + v_2)^2}
          {\tau^2 \big(\gamma_1^2 v_1^2 / (G_1 - 1) + \gamma_2^2 v_2^2 / (G_2 - 1)\big)}, \qquad
          \gamma = 1 - \frac{\sum_i w_i^2}{\sum_g (\sum_{i \in g} w_i)^2}.

:math:`\gamma` is 0 where each row is a group. :math:`\tau` is the total variation distance between the
distributions of the two samples over the groups: 0 where each group has the same share of both samples, so
that differences between groups cancel out. The factor is more than 1 because the correlation is the largest
of several estimates and errs upwards; `benchmarks/contrast.py` measures error rates and power.

Where a column is constant within groups, nothing is known of :math:`\rho`. So no test is surer than a
permutation could be. Two ways to give labels to other rows change nothing if the classes are alike: to give
the labels within a group to other rows of it, and to give the labels of groups that have only one to other
such groups. Let :math:`m_g` and :math:`n_g` rows of group g be in the first and in the second sample, and let
:math:`M` and :math:`N` groups have rows in one of them alone. There are

.. math:: W = \binom{M + N}{M} \prod_g \binom{m_g + n_g}{m_g}

ways. The data are one of them, so that the tail of any statistic has at least a probability of :math:`1 / W`,
and a two-sided p-value is at least :math:`2 / W`: 1/3 where each of two classes has two groups, and nothing
that would be felt where each row is a group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from corral.array_types import Bools, Floats, Integers
from corral.markers.rank_tests import log_choose, rank_polynomials

# Factor of Satterthwaite's degrees of freedom, as said above. Chosen by simulation: a factor of 1 costs 6 %
# of the power of classes with twenty groups or more; with 2, 2 % of the classes that do not differ are marked
# where eight groups of 100 alike rows stand against 300 groups of three that are less alike.
_DEGREES_FACTOR = 1.5

# Scores have a variance of 1; so little variance between groups is none.
_ROUNDING = 1e-20


class Clusters(NamedTuple):
    """Groups of samples, in each variable."""

    # (..., n_groups) rows of each group that have a value; no groups where each row stands alone
    counts: Integers
    # (...) variance of the mean of a sample if all rows of a group agreed, in variances of a row
    variance: Floats
    error: Floats  # (...) the term of the sample in the denominator of the degrees of freedom

    def take(self, *index: Integers) -> Clusters:
        """Pick samples by their numbers along the leading axes."""
        return Clusters(self.counts[index], self.variance[index], self.error[index])

    def pool(self, members: Bools, sizes: Floats) -> Clusters:
        """Put the samples `members` (n_variables, n_pooled, n_samples) together, of effective sizes."""
        sums = np.stack([sizes, sizes**2 * self.variance, sizes**4 * self.error], axis=2)
        total, variance, error = np.moveaxis(members @ sums, 2, 0)
        total = np.where(total > 0.0, total, 1.0)
        return Clusters(members.astype(np.int64) @ self.counts, variance / total**2, error / total**4)


def pvalues_with_groups(log_p: Floats, first: Clusters, second: Clusters) -> Floats:
    """Logarithms of p-values (...) that allow for few groups, from p-values of as many independent rows."""
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
    """Logarithms of the least p-values (...) that groups with so many rows (..., n_groups) allow."""
    within = log_choose(first, second).sum(axis=-1)
    M, N = (((a > 0) & (b == 0)).sum(axis=-1) for a, b in ((first, second), (second, first)))
    return np.asarray(np.minimum(np.log(2.0) - log_choose(M, N) - within, 0.0))


def effects_of_groups(
    X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers | None
) -> tuple[Floats, Clusters]:
    """Inverse design effects of groups (n_features, n_classes), see `data.weights`, and their `Clusters`.

    The correlation of a class is the largest over the polynomials of ranks that `rank_tests` tests,
    so that it serves all their questions: groups may differ in place, in spread, in skewness or in having two
    modes. It is estimated by the analysis of variance of the groups of the class, and once more by that of
    the groups of all classes together, each class around its own mean; the larger estimate counts.

    Rows (n_rows, n_features) have NaN for missing values; `groups` (n_rows,) are numbers, or None if each row
    stands alone. A class without rows has the effect 1.
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
        # `largest_design_effect` of all classes at once, less 1. The design effect follows from it and from a
        # correlation that classes can share, whereas `data.weights.design_effect` has residuals of one mean.
        sums = (cell_weights**2).sum(axis=1)
        excess = np.divide(sums, squares, out=np.ones(n_classes), where=squares > 0.0) - 1.0
        excess = np.maximum(excess, 0.0)
        worth[j] = 1.0 / (1.0 + _correlations(x[present], cell, counts[j]) * excess)
        variance[j] = np.divide(sums, totals**2, out=np.zeros(n_classes), where=totals > 0.0)
        degrees = np.maximum((counts[j] > 0).sum(axis=1) - 1, 1)
        error[j] = (variance[j] * excess / (1.0 + excess)) ** 2 / degrees
    return worth, Clusters(counts, variance, error)


def _correlations(x: Floats, cell: Integers, sizes: Integers) -> Floats:
    """Correlations (n_classes,) of two rows of a cell, which is a group within a class, between 0 and 1.

    They are 1 where no class has two groups, for then nothing tells groups from classes, and where all rows
    of a cell agree, for then no cell shows more than one row would. `sizes` (n_classes, n_groups) are the
    numbers of rows (n_rows,) of the cells.
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
    # Rows less the mean size of the groups of a class, each row counted with its group.
    spare = n_rows - (sizes.astype(np.float64) ** 2).sum(axis=1) / np.maximum(n_rows, 1)
    size = _with_sum(spare) / np.maximum(between, 1)
    polynomials, exist = rank_polynomials(counts[np.newaxis].astype(np.float64))
    shares = np.zeros(
        n_classes + 1
    )  # of the variance within classes that lies between groups; at last of all
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
    """Numbers (n_classes,) of the classes, followed by their sum."""
    return np.append(numbers, numbers.sum()).astype(np.float64)

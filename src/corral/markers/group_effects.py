r"""What rows of groups are worth, in rows that are drawn one by one.

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
from corral.markers.rank_tests import rank_polynomials

# Factor of Satterthwaite's degrees of freedom, as said above. Chosen by simulation: a factor of 1 costs 6 %
# of the power of classes with twenty groups or more; with 2, 2 % of the classes that do not differ are marked
# where eight groups of 100 alike rows stand against 300 groups of three that are less alike.
_DEGREES_FACTOR = 1.5

# Scores have a variance of 1; so little variance between groups is none.
_ROUNDING = 1e-20


class Clusters(NamedTuple):
    """Groups of samples, in each variable.

    Attributes
    ----------
    counts : (..., n_groups) rows of each group that have a value; no groups where each row stands alone.
    variance : (...) variance of the mean of a sample if all rows of a group agreed, in variances of a row.
    error : (...) the term of the sample in the denominator of the degrees of freedom.
    """

    counts: Integers
    variance: Floats
    error: Floats

    def take(self, *index: Integers) -> Clusters:
        """Pick samples by their numbers along the leading axes."""
        return Clusters(self.counts[index], self.variance[index], self.error[index])

    def pool(self, members: Bools, sizes: Floats) -> Clusters:
        """Put samples together.

        Parameters
        ----------
        members : (n_variables, n_pooled, n_samples) samples that belong to each of the pooled ones.
        sizes : (n_variables, n_samples) effective numbers of rows.
        """
        total = (members @ sizes[:, :, np.newaxis])[:, :, 0]
        total = np.where(total > 0.0, total, 1.0)
        variance = (members @ (sizes**2 * self.variance)[:, :, np.newaxis])[:, :, 0] / total**2
        error = (members @ (sizes**4 * self.error)[:, :, np.newaxis])[:, :, 0] / total**4
        return Clusters(members.astype(np.int64) @ self.counts, variance, error)


def pvalues_with_groups(log_p: Floats, first: Clusters, second: Clusters) -> Floats:
    """Return logarithms of p-values (...) that allow for few groups, as said above.

    Parameters
    ----------
    log_p : (...) logarithms of the p-values of as many rows as the groups are worth.
    first, second : the samples that are compared.
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
    """Return logarithms of the least p-values (...) that groups allow, as said above.

    Parameters
    ----------
    first, second : (..., n_groups) numbers of rows in either sample.
    """
    most = max(int((first + second).max(initial=0)), first.shape[-1])
    log_factorial = special.gammaln(np.arange(most + 1) + 1.0)
    within = log_factorial[first + second] - log_factorial[first] - log_factorial[second]
    M, N = (((a > 0) & (b == 0)).sum(axis=-1) for a, b in ((first, second), (second, first)))
    between = log_factorial[M + N] - log_factorial[M] - log_factorial[N]
    return np.asarray(np.minimum(np.log(2.0) - between - within.sum(axis=-1), 0.0))


def effects_of_groups(
    X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers | None
) -> tuple[Floats, Clusters]:
    """Return the inverse design effects of groups (see `data.weights`), and what few groups leave open.

    The correlation of a class is the largest of those of the polynomials of ranks that `rank_tests` tests,
    so that it serves all their questions: groups may differ in place, in spread, in skewness or in having two
    modes. It is estimated by the analysis of variance of the groups of the class, and once more by that of
    the groups of all classes together, each class around its own mean; the larger estimate counts.

    Parameters
    ----------
    X : (n_rows, n_features) values; NaN where one is missing.
    codes, weights, groups : (n_rows,) class numbers below `n_classes`, importance, and numbers that rows of
        a group share, or None if each row stands alone.

    Returns
    -------
    worth : (n_features, n_classes) by which factor groups lower Kish's effective number of rows; 1 for a
        class without rows.
    clusters : groups of the classes (n_features, n_classes); variance and error are 0 without rows.
    """
    shape = (X.shape[1], n_classes)
    n_groups = 0 if groups is None else int(groups.max(initial=0)) + 1
    worth, variance, error = np.ones(shape), np.zeros(shape), np.zeros(shape)
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
    of a cell agree, for then no cell shows more than one row would.

    Parameters
    ----------
    x, cell : (n_rows,) values, and the cells that they belong to.
    sizes : (n_classes, n_groups) numbers of rows of the cells.
    """
    n_classes, n_cells, n_rows = len(sizes), (sizes > 0).sum(axis=1), sizes.sum(axis=1)
    between, within = np.maximum(n_cells - 1, 0), n_rows - n_cells
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
    polynomials, exist = rank_polynomials(counts[np.newaxis].astype(np.float64))
    correlations = np.zeros(n_classes)
    for scores in polynomials[exist[:, 0], 0][:, position]:
        sums = np.bincount(cell, scores, sizes.size).reshape(sizes.shape)
        means = sums / np.maximum(sizes, 1)
        class_means = sums.sum(axis=1, keepdims=True) / np.maximum(n_rows, 1)[:, np.newaxis]
        squared_residuals = (scores - means.ravel()[cell]) ** 2
        analysis = (
            (sizes * (means - class_means) ** 2).sum(axis=1),
            np.bincount(cell, squared_residuals, sizes.size).reshape(sizes.shape).sum(axis=1),
            between,
            within,
            spare,
        )
        own, pooled = (
            _share_between(*analysis),
            _share_between(*(part.sum(keepdims=True) for part in analysis)),
        )
        correlations = np.maximum(correlations, np.maximum(own, pooled))
    return correlations


def _share_between(
    squares_between: Floats, squares_within: Floats, between: Integers, within: Integers, spare: Floats
) -> Floats:
    """Share of a variance within classes that lies between groups, by sums of squares and their degrees."""
    mean_between = squares_between / np.maximum(between, 1)
    mean_within = squares_within / np.maximum(within, 1)
    size = spare / np.maximum(between, 1)
    defined = (mean_between > _ROUNDING) & (between > 0) & (within > 0)
    variance = np.maximum(np.where(defined, mean_between - mean_within, 0.0), 0.0) / np.where(
        defined, size, 1.0
    )
    return np.divide(variance, variance + mean_within, out=np.zeros_like(variance), where=variance > 0.0)

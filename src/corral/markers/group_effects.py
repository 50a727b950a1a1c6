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

from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of samples of several variables.

    Attributes
    ----------
    counts : (n_variables, n_samples, n_groups) rows of each group that have a value; no groups where each row
        stands alone.
    variance : (n_variables, n_samples) variance of the mean of a sample if all rows of a group agreed, in
        variances of a row.
    error : (n_variables, n_samples) the term of the sample in the denominator of the degrees of freedom.
    """

    counts: Integers
    variance: Floats
    error: Floats

    def take(self, samples: Integers) -> Clusters:
        """Pick samples by their numbers."""
        return Clusters(self.counts[:, samples], self.variance[:, samples], self.error[:, samples])

    def take_variables(self, variables: Integers) -> Clusters:
        """Pick variables by their numbers."""
        return Clusters(self.counts[variables], self.variance[variables], self.error[variables])

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
    """Return logarithms of p-values (n_variables * n_samples,) that allow for few groups, as said above.

    Parameters
    ----------
    log_p : (n_variables * n_samples,) logarithms of the p-values of as many rows as the groups are worth.
    first, second : the samples that are compared.
    """
    n_groups = first.counts.shape[2]
    if not n_groups:
        return log_p
    counts = [sample.counts.reshape(-1, n_groups) for sample in (first, second)]
    shares = [n / np.maximum(n.sum(axis=1, keepdims=True), 1) for n in counts]
    distance = 0.5 * np.abs(shares[0] - shares[1]).sum(axis=1)
    error = distance**2 * (first.error + second.error).ravel()
    variance = _DEGREES_FACTOR * (first.variance + second.variance).ravel() ** 2
    return np.maximum(_student_log_pvalues(log_p, variance, error), least_log_pvalues(*counts))


def _student_log_pvalues(log_p: Floats, numerator: Floats, denominator: Floats) -> Floats:
    """Logarithms of p-values of Student's distribution with numerator / denominator degrees of freedom."""
    few = denominator > 1e-12 * numerator
    degrees = numerator[few] / denominator[few]
    tail = special.stdtr(degrees, special.ndtri_exp(log_p[few] - np.log(2.0)))
    student = log_p.copy()
    student[few] = np.log(2.0) + np.log(np.maximum(tail, np.finfo(np.float64).tiny))
    return student


def count_groups(known: Bools, codes: Integers, n_classes: int, groups: Integers) -> Integers:
    """Count rows (n_features, n_classes, n_groups) of each class and group.

    Parameters
    ----------
    known : (n_features, n_rows) where rows have a value.
    codes, groups : (n_rows,) class numbers below `n_classes`, and numbers of the groups.
    """
    n_groups = int(groups.max(initial=0)) + 1
    cell = codes * n_groups + groups
    counts = [np.bincount(cell[of], minlength=n_classes * n_groups) for of in known]
    return np.array(counts, dtype=np.int64).reshape(-1, n_classes, n_groups)


def least_log_pvalues(first: Integers, second: Integers) -> Floats:
    """Return logarithms of the least p-values (n_tests,) that groups allow, as said above.

    Parameters
    ----------
    first, second : (n_tests, n_groups) numbers of rows in either sample.
    """
    most = max(int((first + second).max(initial=0)), first.shape[1])
    log_factorial = special.gammaln(np.arange(most + 1) + 1.0)
    within = log_factorial[first + second] - log_factorial[first] - log_factorial[second]
    M, N = (((a > 0) & (b == 0)).sum(axis=1) for a, b in ((first, second), (second, first)))
    whole = log_factorial[M + N] - log_factorial[M] - log_factorial[N]
    return np.asarray(np.minimum(np.log(2.0) - whole - within.sum(axis=1), 0.0))


def effects_of_groups(
    X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers
) -> tuple[Floats, Floats, Floats]:
    """Return the inverse design effects of groups (see `data.weights`), and what few groups leave open.

    The correlation of a class is the largest of those of the polynomials of ranks that `rank_tests` tests,
    so that it serves all their questions: groups may differ in place, in spread, in skewness or in having two
    modes. It is estimated by the analysis of variance of the groups of the class, and once more by that of
    the groups of all classes together, each class around its own mean; the larger estimate counts.

    Parameters
    ----------
    X : (n_rows, n_features) values; NaN where one is missing.
    codes, weights, groups : (n_rows,) class numbers below `n_classes`, importance, and numbers that rows of
        a group share.

    Returns
    -------
    worth : (n_features, n_classes) by which factor groups lower Kish's effective number of rows; 1 for a
        class without rows.
    variance, error : (n_features, n_classes) as in `Clusters`; 0 for a class without rows.
    """
    worth = np.ones((X.shape[1], n_classes))
    variance, error = np.zeros_like(worth), np.zeros_like(worth)
    for j, x in enumerate(X.T):
        present = ~np.isnan(x)
        if not present.any():
            continue
        class_of_row, w = codes[present], weights[present]
        cells, cell = np.unique(class_of_row * (groups.max() + 1) + groups[present], return_inverse=True)
        class_of_cell = cells // (groups.max() + 1)
        correlation = _correlations(x[present], class_of_row, n_classes, cell, class_of_cell)
        totals = np.bincount(class_of_row, w, n_classes)
        squares = np.bincount(class_of_row, w**2, n_classes)
        sums = np.bincount(class_of_cell, np.bincount(cell, w) ** 2, n_classes)
        excess = np.divide(sums, squares, out=np.ones(n_classes), where=squares > 0.0) - 1.0
        excess = np.maximum(excess, 0.0)
        worth[j] = 1.0 / (1.0 + correlation * excess)
        variance[j] = np.divide(sums, totals**2, out=np.zeros(n_classes), where=totals > 0.0)
        degrees = np.maximum(np.bincount(class_of_cell, minlength=n_classes) - 1, 1)
        error[j] = (variance[j] * excess / (1.0 + excess)) ** 2 / degrees
    return worth, variance, error


def _correlations(
    x: Floats, codes: Integers, n_classes: int, cell: Integers, class_of_cell: Integers
) -> Floats:
    """Correlations (n_classes,) of two rows of a cell, which is a group within a class, between 0 and 1.

    They are 1 where no class has two groups, for then nothing tells groups from classes, and where all rows
    of a cell agree, for then no cell shows more than one row would.
    """
    sizes = np.bincount(cell)
    n_rows, n_cells = (np.bincount(of, minlength=n_classes) for of in (codes, class_of_cell))
    between, within = np.maximum(n_cells - 1, 0), n_rows - n_cells
    if not between.any():
        return np.ones(n_classes)
    if not within.any():
        return np.zeros(n_classes)
    if (x == x[np.unique(cell, return_index=True)[1]][cell]).all():
        return np.ones(n_classes)
    # Rows less the mean size of the groups of a class, each row counted with its group.
    spare = n_rows - np.bincount(class_of_cell, sizes.astype(np.float64) ** 2, n_classes) / np.maximum(
        n_rows, 1
    )
    _, position, counts = np.unique(x, return_inverse=True, return_counts=True)
    polynomials, exist = rank_polynomials(counts[np.newaxis].astype(np.float64))
    correlations = np.zeros(n_classes)
    for scores in polynomials[exist[:, 0], 0][:, position]:
        means = np.bincount(cell, scores) / sizes
        class_means = np.bincount(codes, scores, n_classes) / np.maximum(n_rows, 1)
        deviations = means - class_means[class_of_cell]
        squares_between = np.asarray(np.bincount(class_of_cell, sizes * deviations**2, n_classes), np.float64)
        squares_within = np.asarray(np.bincount(codes, (scores - means[cell]) ** 2, n_classes), np.float64)
        own = _share_between(squares_between, squares_within, between, within, spare)
        pooled = _share_between(
            squares_between.sum(keepdims=True),
            squares_within.sum(keepdims=True),
            between.sum(keepdims=True),
            within.sum(keepdims=True),
            spare.sum(keepdims=True),
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

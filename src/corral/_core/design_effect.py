r"""What rows of groups are worth, in rows that are drawn one by one.

Rows of one patient or recording are alike, so that a test which counts each of them believes too much. Let
:math:`\rho` be the correlation of two rows of a group within a class (the intraclass correlation), and
:math:`w` the weights of the rows of a class. The variance of a weighted mean is then that of

.. math:: n = \frac{(\sum_i w_i)^2}{(1 - \rho) \sum_i w_i^2 + \rho \sum_g (\sum_{i \in g} w_i)^2}

independent rows: Kish's effective number without correlation, and that of the groups where their rows agree.

Few groups tell little of :math:`\rho`, and nothing where a column is constant within them. So no test is
surer than a permutation could be. Two ways to give labels to other rows change nothing if the classes are
alike: to give the labels within a group to other rows of it, and to give the labels of groups that have only
one to other such groups. Let :math:`m_g` and :math:`n_g` rows of group g be in the first and in the second
sample, and let :math:`M` and :math:`N` groups have rows in one of them alone. There are

.. math:: W = \binom{M + N}{M} \prod_g \binom{m_g + n_g}{m_g}

ways. The data are one of them, so that the tail of any statistic has at least a probability of :math:`1 / W`,
and a two-sided p-value is at least :math:`2 / W`: 1/3 where each of two classes has two groups, and nothing
that would be felt where each row is a group.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import f

from corral._core.settings import Bools, Floats, Integers
from corral._core.two_samples import rank_polynomials

# Few groups tell little of how alike their rows are, and to believe them too different invents differences
# between classes. So the correlation is the upper end of a one-sided interval that misses it in this share.
_DOUBT = 0.25

# Scores have a variance of 1; so little variance between groups is none.
_ROUNDING = 1e-20


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
    log_factorial = gammaln(np.arange(most + 1) + 1.0)
    within = log_factorial[first + second] - log_factorial[first] - log_factorial[second]
    M, N = (((a > 0) & (b == 0)).sum(axis=1) for a, b in ((first, second), (second, first)))
    whole = log_factorial[M + N] - log_factorial[M] - log_factorial[N]
    return np.asarray(np.minimum(np.log(2.0) - whole - within.sum(axis=1), 0.0))


def worth_of_rows(X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers) -> Floats:
    r"""Return by which factor groups lower Kish's effective number of rows.

    The correlation is the largest of those of the polynomials of ranks that `two_samples` tests, so that it
    serves all their questions: groups may differ in place, in spread, in skewness or in having two modes. It
    is estimated by the analysis of variance of the groups of all classes together, each class around its own
    mean.

    Parameters
    ----------
    X : (n_rows, n_features) values; NaN where one is missing.
    codes, weights, groups : (n_rows,) class numbers below `n_classes`, importance, and numbers that rows of
        a group share.

    Returns
    -------
    worth : (n_features, n_classes) at most 1; 1 for a class without rows.
    """
    worth = np.ones((X.shape[1], n_classes))
    for j, x in enumerate(X.T):
        known = ~np.isnan(x)
        if not known.any():
            continue
        of_class, w = codes[known], weights[known]
        cells, cell = np.unique(of_class * (groups.max() + 1) + groups[known], return_inverse=True)
        class_of_cell = cells // (groups.max() + 1)
        rho = _correlation(x[known], of_class, n_classes, cell, class_of_cell)
        squares = np.bincount(of_class, w**2, n_classes)
        sums = np.bincount(class_of_cell, np.bincount(cell, w) ** 2, n_classes)
        excess = np.divide(sums, squares, out=np.ones(n_classes), where=squares > 0.0) - 1.0
        worth[j] = 1.0 / (1.0 + rho * np.maximum(excess, 0.0))
    return worth


def _correlation(
    x: Floats, codes: Integers, n_classes: int, cell: Integers, class_of_cell: Integers
) -> float:
    """Correlation of two rows of a cell, which is a group within a class, between 0 and 1.

    It is 1 where no class has two groups, for then nothing tells groups from classes, and where all rows of a
    cell agree, for then no cell shows more than one row would.
    """
    n, n_cells = x.size, class_of_cell.size
    sizes = np.bincount(cell)
    in_class = np.bincount(codes, minlength=n_classes)
    between = n_cells - int(np.count_nonzero(in_class))
    if between == 0:
        return 1.0
    if n == n_cells:
        return 0.0
    if (x == x[np.unique(cell, return_index=True)[1]][cell]).all():
        return 1.0
    usual = (n - float((sizes**2 / in_class[class_of_cell]).sum())) / between
    _, at, counts = np.unique(x, return_inverse=True, return_counts=True)
    polynomials, exist = rank_polynomials(counts[np.newaxis].astype(np.float64))
    scores = polynomials[exist[:, 0], 0][:, at]
    return max(_share_between(s, codes, cell, class_of_cell, usual, between) for s in scores)


def _share_between(
    scores: Floats, codes: Integers, cell: Integers, class_of_cell: Integers, usual: float, between: int
) -> float:
    """Share of the variance within classes that lies between their groups, of a `usual` size."""
    sizes = np.bincount(cell)
    means = np.bincount(cell, scores) / sizes
    of_class = np.bincount(codes, scores) / np.maximum(np.bincount(codes), 1)
    within = float(((scores - means[cell]) ** 2).sum()) / (scores.size - sizes.size)
    mean_square = float((sizes * (means - of_class[class_of_cell]) ** 2).sum()) / between
    if mean_square < _ROUNDING:
        return 0.0
    mean_square /= f.ppf(_DOUBT, between, scores.size - sizes.size)
    variance = max((mean_square - within) / usual, 0.0)
    return variance / (variance + within) if variance > 0.0 else 0.0

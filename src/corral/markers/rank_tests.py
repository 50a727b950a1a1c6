r"""Rank tests: p-values and effects of the difference between two samples in one variable.

**Statistics.** Let :math:`v` be the mid-ranks of the two samples together, scaled to :math:`(-1, 1)`, and
:math:`\varphi_1, \dots, \varphi_4` the polynomials of degree 1 to 4 in :math:`v` that are orthonormal over
all rows. They detect whether the first sample differs in location (*high* or *low*), in spread (*wide* or
*narrow*), in skewness, and in having two modes. A column with :math:`m` distinct values has only the first
:math:`m - 1` polynomials. If both samples come from one distribution, all ways to divide the :math:`N` rows
into samples of :math:`n_1` and :math:`n_2` rows are equally likely, so that

.. math:: S_k = \sum_{i \in \text{first}} \varphi_k(v_i), \qquad
          \mathrm{E}\, S_k = 0, \quad \mathrm{Var}\, S_k = \frac{n_1 n_2}{N - 1}, \quad
          \mathrm{Cov}(S_k, S_l) = 0,

for any ties. P-values are tail probabilities of :math:`S_k` in this permutation distribution, not in a normal
distribution. They are exact for columns of two values (Fisher's hypergeometric test) and if the samples do
not overlap, and saddlepoint approximations (:func:`_saddlepoint`) otherwise. So they are valid for rare
values and for small classes. Only if :math:`S_k` is below two standard deviations, the normal distribution is
used.

**Combination.** The p-values of the polynomials are combined for three nested sets: location only, location
and spread, and all four. Each combined p-value is divided by its share of the significance level: a half, a
quarter and a quarter. The result is the least quotient. Lancaster's method combines two or four p-values
into one by the sum of their squared normal quantiles, which has a chi-squared distribution if they are
independent. The statistics are uncorrelated, but they are dependent if few rows determine all of them. In
these cases
Bonferroni's inequality, the least p-value times the number of p-values, replaces Lancaster's method. There
are two such cases. First, one value has more than half of the rows, so that all statistics depend on the few
other rows. Second, the smaller sample, with a share :math:`f` of all rows, has few rows:

.. math:: \min(n_1, n_2) < \max\{5\, (1 - 2 f)^2\, \kappa,\; 2\, (\kappa - 29)\}, \qquad
          \kappa = \frac{1}{N} \sum_i \Big(\sum_k \varphi_k(v_i)^2\Big)^2.

The kurtosis :math:`\kappa` of the scores is 29 without ties. So Lancaster's method needs about 147 rows in a
class that is a very small share of all rows, and 37 rows in a class with a quarter of all rows. It is always
used for samples of equal sizes without ties, because their sums have no skewness. The kurtosis is larger if
rare values at one end have large scores in all polynomials: it is 50 to 100 for counts with a Poisson
distribution of mean 1, which need about 80 rows in samples of equal sizes.

**Effects** do not depend on the sizes of the samples: both samples have the same weight. The effect of
location is Cliff's delta, :math:`P(X > Y) - P(X < Y)`. Let :math:`c_k` be the correlation between
:math:`\varphi_k` and membership in the first sample. Without ties, delta is :math:`2 c_1 / \sqrt{3}`, so the
effect of spread is defined as :math:`2 c_2 / \sqrt{3}`. It is -0.45 if the standard deviation of a normal
distribution is halved, and 0 if the distribution is shifted. The *size* of a difference is the largest
:math:`2 |c_k| / \sqrt{3}`. With ties, the size exceeds delta: if 5% of the rows of a class have a flag and
no other rows have it, the delta of the flag is only 0.05, although it identifies these rows with certainty.
Its size is 0.19.
The absence of a rare value identifies no rows: if one value has more than half of the rows and is more
frequent in the class than in the other sample, the size is not corrected for ties.

Samples are counts of values (n_tests, n_cells), with the same cells in both samples. Effects and polynomials
allow any leading axes (..., n_cells).
"""

from __future__ import annotations

import numpy as np
from scipy import special
from scipy.stats import hypergeom

from corral.array_types import Bools, Floats, Integers

# The number of polynomials, and the share of the significance level for each number of combined p-values.
_N_DEGREES = 4
_SHARES = {1: 0.5, 2: 0.25, _N_DEGREES: 0.25}

# A polynomial whose norm is smaller is rounding error.
_LEAST_NORM = 1e-6

# The first bound on the rows that Lancaster's method needs. Chosen by simulation of millions of samples that
# do not differ, without ties, against at least 100,000 other rows. The frequencies of p-values of at most
# 0.001, 0.0001 and 0.00001, divided by these limits, are 1.13, 1.71 and 2.9 with 30 rows; 0.95, 1.19 and 1.7
# with 90 rows; 0.88, 0.85 and 0.85 with 200 rows. With Bonferroni's inequality they are 0.5 to 0.9.
_ROWS_PER_KURTOSIS = 5.0

# The second bound, which samples of equal sizes need as well. Chosen by all ways to divide counts with a
# Poisson distribution of mean 1 into two samples of 20 or 40 rows. The frequency of p-values of at most 2e-6,
# divided by this limit, is 1.9 and 1.6 with Lancaster's method (1.3 with 80 rows), and 0.6 and 0.75 with this
# bound.
_KURTOSIS_WITHOUT_TIES = 29.0
_ROWS_PER_EXCESS = 2.0

# If a standardized statistic is smaller, its p-value is not small, and the normal distribution is accurate
# enough. Columns of two values always get Fisher's test, which is exact and fast.
_SMALL_STATISTIC = 2.0

# The largest number of Newton's steps, and of halvings of a step; usually there are about ten.
_MAX_STEPS = 50

# The ratio of Cliff's delta and the correlation with the first polynomial, if there are no ties.
_DELTA_SCALE = 2.0 / np.sqrt(3.0)


def effects_between(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Compute Cliff's delta (...), and the effects of all polynomials (n_degrees, ...) on its scale."""
    first, second = shares_of_sum(first), shares_of_sum(second)
    delta = (first * (2.0 * second.cumsum(axis=-1) - second - 1.0)).sum(axis=-1)
    polynomials, _ = rank_polynomials(first + second)
    return delta, 0.5 * _DELTA_SCALE * np.vecdot(polynomials, first - second)


def size_of_difference(first: Floats, second: Floats, effects: Floats) -> Floats:
    """Compute the size of the difference (...) for the first sample.

    `effects` (n_degrees, ...) are corrected for ties. The correction is removed if the first sample differs
    by the absence of rare values; see the module.
    """
    first, second = shares_of_sum(first), shares_of_sum(second)
    halves = 0.5 * (first + second)
    lacks = (halves > 0.5) & (first > second)
    ties = np.sqrt(np.maximum(1.0 - (halves**3).sum(axis=-1), 0.0))
    return np.asarray(np.abs(effects).max(axis=0) * np.where(lacks.any(axis=-1), ties, 1.0))


def shares_of_sum(counts: Floats) -> Floats:
    """Divide counts (..., n_cells) by their sum over the cells; 0 if there are no rows."""
    shares: Floats = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1e-300)
    return shares


def rank_polynomials(counts: Floats) -> tuple[Floats, Bools]:
    """Compute orthonormal polynomials (n_degrees, ..., n_cells) of mid-ranks, and whether each exists.

    A polynomial does not exist if there are too few distinct values; its values are 0.
    """
    shares = shares_of_sum(counts)
    v = 2.0 * shares.cumsum(axis=-1) - shares - 1.0
    n_values = (counts > 0).sum(axis=-1)
    ones = np.ones_like(v)
    previous, current = np.zeros_like(v), ones
    polynomials = np.zeros((_N_DEGREES, *v.shape))
    exist = np.zeros((_N_DEGREES, *v.shape[:-1]), dtype=bool)
    for k in range(_N_DEGREES):
        following = v * current
        for lower in (current, previous, ones):
            following -= np.vecdot(shares * following, lower)[..., np.newaxis] * lower
        norm = np.sqrt(np.vecdot(shares * following, following))
        exist[k] = (n_values > k + 1) & (norm > _LEAST_NORM)
        following *= np.divide(1.0, norm, out=np.zeros_like(norm), where=exist[k])[..., np.newaxis]
        polynomials[k] = following
        previous, current = current, following
    return polynomials, exist


def occupied_cells(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Drop the cells of each test that are empty in both samples, if this halves the number of cells."""
    occupied = first + second > 0.0
    width = max(int(occupied.sum(axis=1).max(initial=0)), 1)
    if 2 * width > first.shape[1]:
        return first, second
    tests, cells = np.nonzero(occupied)
    places = (occupied.cumsum(axis=1) - 1)[tests, cells]
    packed = np.zeros((2, len(first), width))
    packed[:, tests, places] = first[tests, cells], second[tests, cells]
    return packed[0], packed[1]


def log_pvalues(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Compute logarithms of p-values (n_tests,), and largest squared standardized statistics (n_tests,)."""
    n1, n2 = first.sum(axis=1), second.sum(axis=1)
    polynomials, exist = rank_polynomials(first + second)
    exist &= (n1 > 0) & (n2 > 0)
    deviation = np.sqrt(np.maximum(n1 * n2, 1e-300) / np.maximum(n1 + n2 - 1.0, 1e-300))
    z = np.where(exist, np.vecdot(polynomials, first) / deviation, 0.0)
    log_p = np.log(2.0) + special.log_ndtr(-np.abs(z))
    rounding = np.abs(first - np.rint(first)) + np.abs(second - np.rint(second))
    is_binary = ((first + second > 0).sum(axis=1) == 2) & (rounding.max(axis=1) < 1e-9)
    degrees, tests = np.nonzero(exist & ((np.abs(z) > _SMALL_STATISTIC) | is_binary))
    scores = polynomials[degrees, tests] * np.where(z[degrees, tests] < 0.0, -1.0, 1.0)[:, np.newaxis]
    log_p[degrees, tests] = np.log(2.0) + _log_tails(first[tests], second[tests], scores, is_binary[tests])
    log_p = np.where(exist, np.minimum(log_p, 0.0), 0.0)
    dependent = _are_dependent(first, second, polynomials)
    return np.log(_combine(log_p, exist.sum(axis=0), dependent)), (z**2).max(axis=0)


def _are_dependent(first: Floats, second: Floats, polynomials: Floats) -> Bools:
    """Whether p-values of different polynomials are dependent (n_tests,): the two cases of the module."""
    n1, n2, both = first.sum(axis=1), second.sum(axis=1), first + second
    kurtosis = (shares_of_sum(both) * (polynomials**2).sum(axis=0) ** 2).sum(axis=1)
    imbalance = (n1 - n2) / np.maximum(n1 + n2, 1e-300)
    least_rows = np.maximum(
        _ROWS_PER_KURTOSIS * imbalance**2 * kurtosis, _ROWS_PER_EXCESS * (kurtosis - _KURTOSIS_WITHOUT_TIES)
    )
    has_few_rows = np.minimum(n1, n2) < least_rows
    is_dominated = 2.0 * both.max(axis=1) > n1 + n2
    return np.asarray(is_dominated | has_few_rows)


def _combine(log_p: Floats, n_degrees: Integers, dependent: Bools) -> Floats:
    """Combine the p-values of the polynomials of each test, and return p-values (n_tests,).

    `log_p` (n_degrees, n_tests) are their logarithms. The first `n_degrees` (n_tests,) polynomials exist.
    `dependent` (n_tests,) selects Bonferroni's inequality.
    """
    squares = special.ndtri_exp(log_p - np.log(2.0)) ** 2
    least, total_share = np.full(log_p.shape[1], np.inf), np.zeros(log_p.shape[1])
    fewer = 0
    for most, share in _SHARES.items():
        used = np.minimum(n_degrees, most)
        together = special.gammaincc(np.maximum(used, 1) / 2.0, squares[:most].sum(axis=0) / 2.0)
        bounded = used * np.exp(log_p[:most].min(axis=0))
        p = np.where(dependent, bounded, together)
        is_used = n_degrees > fewer
        least = np.where(is_used, np.minimum(least, p / share), least)
        total_share += np.where(is_used, share, 0.0)
        fewer = most
    p = np.multiply(least, total_share, out=np.ones_like(total_share), where=n_degrees > 0)
    return np.asarray(np.clip(p, np.finfo(np.float64).tiny, 1.0))


def _log_tails(first: Floats, second: Floats, scores: Floats, is_binary: Bools) -> Floats:
    """Logarithms (n_tests,) of the probability of a sum of scores at least as large as in the first sample.

    The sum is over n rows chosen at random, without replacement, from both samples; n is the number of rows
    of the first sample.
    """
    lowest = np.where(first > 0, scores, np.inf).min(axis=1)
    highest = np.where(second > 0, scores, -np.inf).max(axis=1)
    separate = lowest >= highest - 1e-9
    binary, others = is_binary & ~separate, ~separate & ~is_binary
    log_p = np.empty(len(first))
    for these, method in ((separate, _separate_tail), (binary, _binary_tail), (others, _saddlepoint)):
        if these.any():
            log_p[these] = method(first[these], second[these], scores[these])
    return log_p


def _separate_tail(first: Floats, second: Floats, scores: Floats) -> Floats:
    """Exact tails of tests in which the first sample has the largest possible sum.

    The two samples have at most one score in common, the border.
    """
    border = np.where(first > 0, scores, np.inf).min(axis=1, keepdims=True)
    at_border = np.abs(scores - border) < 1e-9
    n_first, left = (first * at_border).sum(axis=1), (second * at_border).sum(axis=1)
    return log_choose(n_first, left) - log_choose(first.sum(axis=1), second.sum(axis=1))


def log_choose(n_first: Floats | Integers, left: Floats | Integers) -> Floats:
    """Logarithm of the number of ways to choose `n_first` of `n_first` + `left` rows."""
    return np.asarray(
        special.gammaln(n_first + left + 1.0) - special.gammaln(n_first + 1.0) - special.gammaln(left + 1.0)
    )


def _binary_tail(first: Floats, second: Floats, scores: Floats) -> Floats:
    """Tails of Fisher's exact test, for tests with two distinct scores."""
    both = np.rint(first + second)
    top = np.where(both > 0, scores, -np.inf).argmax(axis=1)[:, np.newaxis]
    n_first, there = (np.take_along_axis(c, top, axis=1)[:, 0] for c in (np.rint(first), both))
    tail = hypergeom.sf(n_first - 1.0, both.sum(axis=1), there, np.rint(first).sum(axis=1))
    return np.asarray(np.log(np.maximum(tail, np.finfo(np.float64).tiny)))


def _saddlepoint(first: Floats, second: Floats, scores: Floats) -> Floats:
    r"""Skovgaard's double saddlepoint approximation to the tails, in the form of Barndorff-Nielsen.

    Suppose that each row i is in the first sample independently, with log odds :math:`\alpha + t \varphi_i`.
    Given the number of rows in the first sample and :math:`t = 0`, this is a choice without replacement. So
    the approximation needs the logistic regression of membership on the score. Let :math:`g` be the gain in
    log likelihood over :math:`t = 0`, and :math:`\rho` the determinant of the information in
    :math:`(\alpha, t)` divided by the information in :math:`\alpha` at :math:`t = 0`. Then

    .. math:: P \approx \Phi\left(-w - \frac{1}{w} \log \frac{u}{w}\right), \qquad
              w = \sqrt{2 g}, \quad u = t \sqrt{\rho}.

    The approximation differs from the mid-p-value by a few percent even for classes of five rows. Columns
    of two values are approximated only if weights make the counts fractional. For them, with :math:`\delta`
    the distance between the two scores, :math:`t` in :math:`u` is replaced by :math:`(1 - e^{-\delta t}) /
    \delta`, so that the full probability of the observed sum is included, as in Fisher's test.
    """
    both = first + second
    n1, n = first.sum(axis=1), both.sum(axis=1)
    slope, gain, determinant = _logistic(both, scores, n1, (first * scores).sum(axis=1))
    there = both > 0
    distance = np.where(there, scores, -np.inf).max(axis=1) - np.where(there, scores, np.inf).min(axis=1)
    slope = np.where(there.sum(axis=1) == 2, -np.expm1(-distance * slope) / distance, slope)
    w = np.sqrt(2.0 * gain)
    u = slope * np.sqrt(determinant / (n1 * (1.0 - n1 / n)))
    return np.asarray(special.log_ndtr(-w - np.log(u / w) / w))


def _logistic(counts: Floats, scores: Floats, n1: Floats, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Regress membership in the first sample on scores by Newton's method, halving steps that reduce the fit.

    Parameters
    ----------
    counts, scores : (n_tests, n_cells) numbers of rows of both samples, and scores.
    n1 : (n_tests,) numbers of rows of the first sample.
    total : (n_tests,) sums of the scores of the first sample.

    Returns
    -------
    slope : (n_tests,) coefficient of the score.
    gain : (n_tests,) log likelihood minus the log likelihood with the slope 0.
    determinant : (n_tests,) determinant of the information.
    """
    n = counts.sum(axis=1)
    coefficients = np.stack([special.logit(n1 / n), np.zeros_like(n)])
    start = n1 * np.log(n1 / n) + (n - n1) * np.log1p(-n1 / n)
    likelihood, determinant, sums = start.copy(), np.ones_like(n), np.stack([n1, total])
    running = np.arange(n.size)
    for _ in range(_MAX_STEPS):
        score, expected = scores[running], counts[running].copy()
        p = special.expit(_log_odds(coefficients[:, running], score))
        expected *= p
        residual = sums[:, running] - [expected.sum(axis=1), (expected * score).sum(axis=1)]
        expected *= 1.0 - p
        i00, i01, i11 = ((expected * power).sum(axis=1) for power in (1.0, score, score**2))
        determinant[running] = np.maximum(i00 * i11 - i01**2, 1e-300)
        step = np.stack([i11 * residual[0] - i01 * residual[1], i00 * residual[1] - i01 * residual[0]])
        step /= determinant[running]
        more = (step * residual).sum(axis=0) > 1e-16  # about twice the gain by the step
        running, step = running[more], step[:, more]
        if not running.size:
            break
        for _ in range(_MAX_STEPS):
            tried = coefficients[:, running] + step
            softplus = np.logaddexp(0.0, _log_odds(tried, scores[running]))
            reached = (tried * sums[:, running]).sum(axis=0) - (counts[running] * softplus).sum(axis=1)
            falls = reached < likelihood[running] - 1e-9
            if not falls.any():
                break
            step[:, falls] *= 0.5
        coefficients[:, running], likelihood[running] = tried, reached
    return coefficients[1], np.maximum(likelihood - start, 1e-12), determinant


def _log_odds(coefficients: Floats, scores: Floats) -> Floats:
    """Log odds of membership (n_tests, n_cells) from the intercept and slope (2, n_tests)."""
    intercept, slope = coefficients[:, :, np.newaxis]
    return np.asarray(intercept + slope * scores)

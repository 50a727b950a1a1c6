r"""Conformal p-values: how typical a sample is of each class, whether it is novel, which labels are possible.

The score of a training row in its class is computed like the score of a new row: the row, its duplicates and
its group are left out of the densities. The p-value of a sample in a class is the share of rows, among the
rows of the class and the sample, whose score is at most the score of the sample. If the sample is a further
row of the class, exchangeable with the training rows, the p-value is at most a with probability at most a
(Vovk, Gammerman and Shafer, 2005).

**Score.** The score of x in class y, which is higher for more typical rows, is

.. math::

    u_y(x) = \frac{l_y(x) - c_y}{b} - 4 \sum_j \max(0, e_{yj}(x) - 3)^2
        - 64 \min(1, \max(0, (\max_j |z_j(x)| - 7) / 2)).

The unscaled score :math:`l_y` is the log density of the class. A pool is a weighted combination of several
density models, its members: there :math:`l_y` is a weighted mean of the members' log densities, each divided
by its own spread. The weights of this mean are not the weights that the pool has for probabilities. A member
has a larger weight here the better it distinguishes rows of an unknown class from known classes, measured by
leaving out each training class in turn (`shares_of_members`).

The spread :math:`b` is twice the mean deviation of the unscaled scores of training rows, each left out, below
the medians of their classes. The center :math:`c_y` is halfway between the median of the class and the median
of all rows. With a center of 0, rows of unknown classes are detected best, but too many rows of wide classes
are novel. With the median of the class as center, fewer rows of unknown classes are detected, but the rows of
wide classes are not novel too often.

The second and the third term are penalties for far values of single columns: see `outlyingness`. For a
training row they are computed from the other training rows, so that p-values keep their level.

**Typicality** is the p-value of the score in class y. With n rows of equal weight in the class (Kish's
effective number if weights differ) it is

.. math:: t_y(x) = \frac{1 + n \, \mathrm{share}_{i \in y}(u_y(x_i) \le u_y(x))}{n + 1}.

**Novelty** is the p-value of the best score :math:`\max_y u_y` among the best scores of all training rows. It
is small for novel rows. P-values of ranks have steps of 1 / (n + 1), so the p-values of novelty are
interpolated and extrapolated below the lowest score: `Distribution.interpolated_pvalues`. A row is novel at a
significance level if its p-value is at most the significance level.

**Prediction sets.** A label is in the set of a sample if the p-value of the label's log odds, among the rows
of the class, exceeds 1 - coverage. In a pool, the log odds of a training row come from members and weights
that were fitted without the fold of the row.

**Missing values.** The log density of a row depends on how many of its values are present. So the average
change by the missing values is subtracted from an unscaled score (see `missing_values`), and the spread is
multiplied by the root of the share of variables that are present. Training rows keep their own missing
values. If values are missing at random, with the same frequencies in new rows as in training rows, then new
and training rows are exchangeable, and p-values keep their level even if the estimated changes are wrong.
Otherwise p-values are only as accurate as the estimated changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.stats import betabinom

from corral.array_types import Bools, Floats, Integers
from corral.conformal.missing_values import ExpectedChanges, draw_removals, expected_changes, learn_changes
from corral.conformal.outlyingness import Columns
from corral.data.dataset import LabelledRows
from corral.data.tiles import TINY
from corral.data.weights import effective_number, lower_median
from corral.parallel import Computation
from corral.posterior import odds_of_classes

# The number of calibration points: training rows that are scored with the row left out.
MAX_POINTS = 2000

# If a member distinguishes rows of an unknown class with a probability that is lower by this difference, its
# share in the unscaled score is smaller by the factor e.
_BEHIND = 0.05

# Lower bounds of the difference between the median log odds of a class and the log odds of its prior, and of
# the share of this difference that remains after values are missing: quotients of smaller numbers are noise.
_LEAST_ODDS = 0.5
_LEAST_SHARE = 0.05

# Scores or log densities that differ by less than this are equal up to rounding errors.
_ROUNDING_OF_SCORES = 1e-9
_DIGITS_OF_SCORES = 9

# The largest k in `interpolated_pvalues`, so that no p-value is 0.
_LARGEST_K = 1e9


class Estimates(NamedTuple):
    """Log densities and unscaled scores of samples in classes."""

    log_density: Floats  # (n_samples, n_classes), from which probabilities are computed
    unscaled_score: Floats  # (n_samples, n_classes), from which typicality and novelty are computed
    # (n_samples, n_classes, n_features), None unless they are requested from a model of the Rodeo
    bandwidths: Floats | None = None


class _Densities(Protocol):
    """The interface of a model that `Trust` uses: class densities that can leave training rows out."""

    @property
    def compared_rows(self) -> LabelledRows: ...
    @property
    def used(self) -> Bools: ...
    def calibration_points(self) -> Integers: ...
    def leave_out(self, points: Integers, computation: Computation) -> Estimates: ...
    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates: ...
    def joint(self, log_density: Floats) -> Floats: ...


class Distribution(NamedTuple):
    """A weighted empirical distribution, such as the distribution of the scores of training rows."""

    values: Floats  # (n_values,) ascending
    below: Floats  # (n_values + 1,) sum of the weights of the first k values, for k from 0 to n_values

    @classmethod
    def from_values(cls, values: Floats, weights: Floats) -> Distribution:
        """Sort the values of positive weight and scale the weights so that they sum to Kish's number.

        Values are rounded: if values differed only by rounding errors, their order would depend on the order
        of the rows.
        """
        values, weights = rounded(values[weights > 0.0]), weights[weights > 0.0]
        order = np.argsort(values, kind="stable")
        if weights.size and (weights != weights[0]).any():
            weights = weights * (effective_number(weights) / weights.sum())
        else:
            weights = np.ones(weights.size)
        return cls(values[order], np.concatenate([[0.0], np.cumsum(weights[order])]))

    @property
    def n(self) -> float:
        """The effective number of values: Kish's number, or the number of values if weights are equal."""
        return float(self.below[-1])

    def pvalues(self, x: Floats) -> Floats:
        """P-values of x: (1 + weight of the values that are at most x) / (1 + n)."""
        at_most = self.below[np.searchsorted(self.values, _upper_bounds(x), side="right")]
        pvalues: Floats = (1.0 + at_most) / (1.0 + self.n)
        return pvalues

    def interpolated_pvalues(self, x: Floats) -> Floats:
        """P-values of x: the p-values of ranks, interpolated between the values and extrapolated below them.

        The p-value of a rank is k / (n + 1) at the k-th lowest value: a new exchangeable number is below this
        value with this probability. P-values of x between two values are interpolated.

        If x is below the lowest value, the p-value depends on the margin between x and the lowest value. If
        the lower tail is exponential, the distance between the k-th lowest value and the next is exponential
        with rate k. The first distance exceeds the sum of the next k - 1 with probability 2 / (k + 1). So a
        margin equal to the distance between the lowest and the k-th lowest value has the p-value
        2 / (k + 1) / (n + 1). For margins beyond the largest distance, k grows in proportion to the margin.
        """
        if not self.values.size:
            return np.ones(x.shape)
        x, distances = _upper_bounds(x), self.values - self.values[0]
        rank = 1.0 + np.interp(x, self.values, self.below[:-1], right=self.n)
        margin, largest = np.maximum(self.values[0] - x, 0.0), max(distances[-1], TINY)
        k = np.interp(margin, distances, np.arange(1, distances.size + 1))
        with np.errstate(over="ignore"):
            k = np.where(margin > largest, distances.size * (margin / largest), k)
        lowest_rank = 2.0 / (1.0 + np.minimum(k, _LARGEST_K))
        pvalues: Floats = np.where(margin > 0.0, lowest_rank, rank) / (1.0 + self.n)
        return pvalues


def _upper_bounds(x: Floats) -> Floats:
    """Add the largest possible rounding error to x, so that rounding does not break ties."""
    size = np.where(np.isfinite(x), np.abs(x), 0.0)  # a sample without values has infinite log odds
    bounds: Floats = x + _ROUNDING_OF_SCORES * (1.0 + size)
    return bounds


class Reference(NamedTuple):
    """Distributions of the scores of training rows, each left out, with which samples are compared."""

    # (n_classes,) halfway between the medians of the unscaled scores of the class and of all rows
    center: Floats
    spread: float  # twice the mean deviation of unscaled scores below the medians of their classes
    odds_center: Floats  # (n_classes,) median of the log odds of each class at its rows
    odds_of_prior: Floats  # (n_classes,) log odds of a row without any value
    typical: Sequence[Distribution] = ()  # for each class, the scores of its rows in the class
    best: Distribution = Distribution(np.empty(0), np.zeros(1))  # the best scores of all rows
    odds: Sequence[Distribution] = ()  # for each class, the standardized log odds of its rows

    def scores(self, unscaled_score: Floats, outlyingness: Floats, expected: ExpectedChanges) -> Floats:
        """Compute the scores (n_samples, n_classes) of samples in classes; see the module.

        `outlyingness` (n_samples, n_classes) are the penalties, and `expected` the changes by missing values.
        """
        apart = unscaled_score - self.center - expected.unscaled_score
        scores: Floats = apart / self.spreads(expected)[:, np.newaxis]
        scores[expected.has_none] = self.best.values.max(initial=0.0)
        return scores - outlyingness

    def spreads(self, expected: ExpectedChanges) -> Floats:
        """Spreads (n_samples,) of unscaled scores, reduced for samples with missing values."""
        return self.spread * np.sqrt(expected.present)

    def odds_scores(self, log_odds: Floats, expected: ExpectedChanges) -> Floats:
        """Standardize log odds (n_samples, n_classes) for the missing values of each sample.

        The mean is the median of the class plus the expected change. The variance is proportional to the
        difference between the mean and the log odds of the prior. This holds for normal densities of equal
        covariance.
        """
        odds_of_variables = np.maximum(self.odds_center - self.odds_of_prior, _LEAST_ODDS)
        share = np.clip(1.0 + expected.odds / odds_of_variables, _LEAST_SHARE, 1.0)
        scores: Floats = (log_odds - self.odds_center - expected.odds) / np.sqrt(share)
        scores[expected.has_none] = np.inf
        return scores


def rounded(values: Floats, smallest: float = 1.0) -> Floats:
    """Round values to nine significant digits; values below `smallest` to the decimals of `smallest`."""
    size = np.maximum(np.abs(np.where(np.isfinite(values), values, 0.0)), smallest)
    last_digit = 10.0 ** (np.floor(np.log10(size)) - _DIGITS_OF_SCORES + 1.0)
    return np.round(values / last_digit) * last_digit


def excess_pvalue(n_novel: int, n_rows: int, significance_level: float, n_training: float) -> float:
    """Probability that at least `n_novel` of `n_rows` rows are novel by chance: a beta-binomial test.

    Rows are novel if their score is below a quantile of the scores of `n_training` rows. If the rows have the
    distribution of the training rows, the share of rows below this quantile has a beta distribution around
    the significance level, and their number has a beta-binomial distribution.
    """
    rank = significance_level * (n_training + 1.0)
    return float(betabinom.sf(n_novel - 1, n_rows, rank, n_training + 1.0 - rank))


def _by_class(values: Floats, codes: Integers, weights: Floats, n_classes: int) -> list[Distribution]:
    """Distributions of the values of each class; of all values if the class has no weight.

    `values`, `codes` and `weights` are (n_points,). A class has no weight if none of its rows can be left
    out.
    """
    by_class = [Distribution.from_values(values[codes == y], weights[codes == y]) for y in range(n_classes)]
    all_classes = Distribution.from_values(values, weights)
    return [shares if shares.n > 0.0 else all_classes for shares in by_class]


def center_and_spread(own: Floats, codes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, float]:
    """Compute centers (n_classes,) halfway between the medians of classes and of all rows, and the spread.

    `own` (n_points,) are the unscaled scores of rows in their own classes.
    """
    medians, spread = medians_and_spread(own, codes, weights, n_classes)
    usable = weights > 0.0
    return 0.5 * medians + 0.5 * lower_median(own[usable], weights[usable]), spread


def medians_and_spread(own: Floats, codes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, float]:
    """Compute the medians (n_classes,) of values of each class, and the spread.

    `own` (n_points,) are scores or log odds of rows in their own classes. Classes without weight have the
    median of all rows. The spread is twice the mean deviation below the medians, or 1 if this is 0.
    """
    usable = weights > 0.0
    own, codes, weights = own[usable], codes[usable], weights[usable]
    medians = np.full(n_classes, lower_median(own, weights))
    for y in np.unique(codes).tolist():
        medians[y] = lower_median(own[codes == y], weights[codes == y])
    below = np.maximum(medians[codes] - own, 0.0)
    spread = 2.0 * float(weights @ below / max(weights.sum(), 1e-300))
    return medians, spread if spread > _ROUNDING_OF_SCORES else 1.0


class Judgement(NamedTuple):
    """Scores and p-values of samples."""

    scores: Floats  # (n_samples, n_classes), higher for more typical samples; comparable between classes
    typicality: Floats  # (n_samples, n_classes) p-values of the scores in each class
    # (n_samples,) interpolated p-value of the best score among the best scores of training rows
    novelty: Floats
    n_rows: float  # effective number of training rows with which the best scores are compared
    spread: Floats  # (n_samples,) spreads by which unscaled scores are divided

    @property
    def nearest(self) -> Integers:
        """Code of the class (n_samples,) in which each sample has its highest score."""
        nearest: Integers = self.scores.argmax(axis=1)
        return nearest

    def is_novel(self, significance_level: float) -> Bools:
        """Whether the p-values of novelty (n_samples,) are at most the significance level."""
        return self.novelty <= significance_level

    @property
    def is_beyond(self) -> Bools:
        """Whether samples (n_samples,) are clearly less typical than every training row.

        The p-value is at most half the p-value 1 / (n_rows + 1) of a sample just below every training row.
        """
        return self.is_novel(0.5 / (1.0 + self.n_rows))


class Trust:
    """Compares samples with the scores of training rows, each left out of the densities."""

    def __init__(self, densities: _Densities) -> None:
        data = densities.compared_rows
        self._densities = densities
        self.columns = Columns.learn(data)
        points = densities.calibration_points()
        self._points, self._codes = points, data.codes[points]
        self._weights = weigh_points(data, points)
        self._reference: Reference | None = None
        self._changes: Floats | None = None

    def judge(self, X: Floats, unscaled_score: Floats, computation: Computation) -> Judgement:
        """Compare samples (n_samples, n_features) and their unscaled scores (n_samples, n_classes)."""
        reference, expected = self.reference(computation), self._expected(X, computation)
        scores = reference.scores(unscaled_score, self.columns.outlyingness(X), expected)
        novelty = reference.best.interpolated_pvalues(scores.max(axis=1))
        typicality = _pvalues(reference.typical, scores)
        return Judgement(scores, typicality, novelty, reference.best.n, reference.spreads(expected))

    def label_pvalues(self, X: Floats, log_density: Floats, computation: Computation) -> Floats:
        """P-values (n_samples, n_classes) of the log odds of each class among the rows of the class.

        X is (n_samples, n_features) and `log_density` (n_samples, n_classes).
        """
        reference, expected = self.reference(computation), self._expected(X, computation)
        return _pvalues(reference.odds, reference.odds_scores(self._log_odds(log_density), expected))

    def histograms(
        self, n_bars: int, least: float, computation: Computation
    ) -> list[tuple[float, float, Integers]]:
        """Histograms of the scores of the training rows of each class: lowest score, highest score, counts.

        The range begins at `least` or above; lower scores are counted in the first bar.
        """
        bars = []
        for scores in (shares.values for shares in self.reference(computation).typical):
            low, high = max(float(scores.min(initial=0.0)), least), float(scores.max(initial=1.0))
            counts, _ = np.histogram(np.maximum(scores, low), bins=n_bars, range=(low, high))
            bars.append((low, high, counts))
        return bars

    def reference(self, computation: Computation) -> Reference:
        """Scores of the training rows, each left out; computed when they are first needed."""
        if self._reference is None:
            self._reference = self._learn_reference(computation)
        return self._reference

    def _learn_reference(self, computation: Computation) -> Reference:
        data, codes, weights = self._densities.compared_rows, self._codes, self._weights
        own, n_classes = np.arange(codes.size), data.labels.size
        log_density, unscaled_score, _ = self._densities.leave_out(self._points, computation)
        log_odds = self._log_odds(log_density)
        expected = self._expected(data.X[self._points], computation)
        rows = codes, weights, n_classes
        center, spread = center_and_spread((unscaled_score - expected.unscaled_score)[own, codes], *rows)
        odds_center, _ = medians_and_spread((log_odds - expected.odds)[own, codes], *rows)
        odds_of_prior = self._log_odds(np.zeros((1, n_classes)))[0]
        reference = Reference(center, spread, odds_center, odds_of_prior)
        outlyingness = self.columns.outlyingness(data.X[self._points], self._points)
        scores = reference.scores(unscaled_score, outlyingness, expected)
        odds = reference.odds_scores(log_odds, expected)
        return reference._replace(
            typical=_by_class(scores[own, codes], *rows),
            best=Distribution.from_values(scores.max(axis=1), weights),
            odds=_by_class(odds[own, codes], *rows),
        )

    def _log_odds(self, log_density: Floats) -> Floats:
        return odds_of_classes(self._densities.joint(log_density))

    def _expected(self, X: Floats, computation: Computation) -> ExpectedChanges:
        """Changes by missing values; learnt when a sample first has a missing value in a used variable."""
        missing, used = np.isnan(X), self._densities.used
        if self._changes is None and missing[:, used].any():
            self._changes = self._learn_changes(used, computation)
        none = np.zeros((2, self._densities.compared_rows.labels.size, used.size))
        return expected_changes(missing, used, none if self._changes is None else self._changes)

    def _learn_changes(self, used: Bools, computation: Computation) -> Floats:
        """Changes (2, n_classes, n_features) of unscaled scores and log odds by missing values."""
        densities = self._densities
        X = densities.compared_rows.X[self._points]
        rows, removed = draw_removals(X, used)
        distinct, position = np.unique(rows, return_inverse=True)
        before = densities.leave_out_of(self._points[distinct], X[distinct], computation)
        after = densities.leave_out_of(self._points[rows], np.where(removed, np.nan, X[rows]), computation)
        codes, weights = self._codes[rows], self._weights[rows]
        own, n_classes = np.arange(codes.size), densities.compared_rows.labels.size
        changes = []
        for new, old in (
            (after.unscaled_score, before.unscaled_score),
            (self._log_odds(after.log_density), self._log_odds(before.log_density)),
        ):
            with np.errstate(invalid="ignore"):  # -inf less -inf in a class without other rows
                difference = new[own, codes] - old[position][own, codes]
            changes.append(learn_changes(difference, removed, codes, weights, n_classes, used))
        return np.array(changes)


def _pvalues(distributions: Sequence[Distribution], scores: Floats) -> Floats:
    """P-values (n_samples, n_classes) of scores (n_samples, n_classes) in the distribution of each class."""
    columns = zip(distributions, scores.T, strict=True)
    return np.column_stack([distribution.pvalues(column) for distribution, column in columns])


def shares_of_members(left_out: Floats, codes: Integers, weights: Floats) -> Floats:
    """Compute shares (n_members,) of the members in the unscaled score.

    A member has a larger share the better it distinguishes rows of an unknown class from rows of known
    classes. `left_out` (n_members, n_points, n_classes) are log densities at rows that are left out.
    """
    behind = np.array([-_told_apart(log_density, codes, weights) for log_density in left_out])
    shares: Floats = np.exp((behind.min() - behind) / _BEHIND)
    shares /= shares.sum()
    return shares


def with_least_share(shares: Floats, chosen: Bools, least: float) -> Floats:
    """Raise the sum of the chosen shares (n_members,) to at least `least`, unless it is 0.

    The shares sum to 1 before and after. `chosen` (n_members,) marks the shares to raise in proportion.
    """
    part = float(shares[chosen].sum())
    if part == 0.0 or part >= least:
        return shares
    raised: Floats = np.where(chosen, shares * (least / part), shares * ((1.0 - least) / (1.0 - part)))
    return raised


def _told_apart(unscaled_score: Floats, codes: Integers, weights: Floats) -> float:
    """Probability that a row of an unknown class is less typical of known classes than a row of them.

    Each class in turn is taken as unknown: the best scores of its rows in the other classes are compared with
    the best scores of the rows of these other classes. Returns the mean over the classes, or 0.5 if there is
    only one class.
    """
    rows, n_classes = np.arange(codes.size), unscaled_score.shape[1]
    center, spread = center_and_spread(unscaled_score[rows, codes], codes, weights, n_classes)
    scores = (unscaled_score - center) / spread
    chances = []
    for y in range(n_classes if n_classes > 1 else 0):
        best = np.delete(scores, y, axis=1).max(axis=1)
        members, others = (codes == y) & (weights > 0.0), (codes != y) & (weights > 0.0)
        if members.any() and others.any():
            shares = Distribution.from_values(best[others], weights[others])
            scores_of_members = rounded(best[members])
            ends = [
                np.searchsorted(shares.values, scores_of_members, side=side) for side in ("left", "right")
            ]
            above = 1.0 - shares.below[ends].mean(axis=0) / shares.n  # ties count half
            chances.append(float(weights[members] @ above / weights[members].sum()))
    return float(np.mean(chances)) if chances else 0.5


def weigh_points(data: LabelledRows, points: Integers) -> Floats:
    """Weights (n_points,) of the calibration points, rescaled to the total weight of each class.

    The weight is 0 if the point's group is the only group of its class, which cannot be left out.
    """
    given, codes = data.all_weights, data.codes[points]
    class_totals, point_totals = (
        np.bincount(data.codes[rows], given[rows], minlength=data.labels.size)
        for rows in (slice(None), points)
    )
    factor = class_totals / np.maximum(point_totals, 1e-300)
    return np.where(data.is_alone[points], 0.0, given[points] * factor[codes])

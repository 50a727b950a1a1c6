r"""Whether a sample is like anything in training, and which labels may be its own: conformal p-values.

Every training row is left out with its duplicates and its group. Its score in its class is then computed as
the score of a new row is. So the share of a class's rows that are at most as typical as a sample is a
p-value: if the sample is another row of the class, exchangeable with the others, it is at most a with
probability a (Vovk, Gammerman and Shafer, 2005).

**Score.** How typical x is of class y is measured by

.. math::

    u_y(x) = \frac{l_y(x) - c_y}{b} - 4 \sum_j \max(0, e_{yj}(x) - 3)^2
        - 64 \min(1, \max(0, (\max_j |z_j(x)| - 7) / 2)).

The unscaled score :math:`l_y` is the log density of the class; in a pool it is a mean of its members' log
densities, each over its own spread. The weights of a pool serve to distinguish known classes from each other.
In this mean a member counts the more, the better it distinguishes the rows of each class from the rows of the
others when the class is unknown. The spread :math:`b` is twice the mean deviation of the unscaled scores of
training rows, each left out, below the medians of their classes. The center :math:`c_y` is halfway between
the median of the class and the median of all rows. Without a center, rows of unknown classes are found best,
but too many rows of wide classes are novel; with the median of the class it is the other way round.

The other terms are about values of single columns: see `outlyingness`. Training rows have the same terms,
from the values of other rows, so that the level is kept.

**Typicality** of class y, where the class has n rows of equal weight (Kish's number if weights differ):

.. math:: t_y(x) = \frac{1 + n \, \mathrm{share}_{i \in y}(u_y(x_i) \le u_y(x))}{n + 1}.

**Novelty** is a p-value of :math:`\max_y u_y`, among the rows of all classes together. Ranks have only
coarse p-values, so the p-values of novelty are interpolated, also below the least of them:
`Distribution.interpolated_pvalues`. A row is novel at every significance level from its p-value on.

**Sets.** A label is in the set of a sample if the p-value of its log odds, among the rows of the class,
exceeds 1 less the coverage. Log odds of training rows come from members that were fitted without their fold,
with weights that were fitted without them.

**Missing values.** Fewer values make another log density. So a score compares the log density of a row with
what rows of the class have on average where the same values are missing, and the spread is that of as many
variables: see `missing_values`. Training rows are compared as they are, with the values that they lack. If
new rows lack values as often as training rows, by chance, both are exchangeable, and p-values keep their
level whatever the averages are; otherwise as far as these are right.
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

# Rows that are left out.
MAX_POINTS = 2000

# A member that tells rows of an unknown class so much less often has a share that is smaller by a factor e.
_BEHIND = 0.05

# The least difference between the log odds of a class and of its prior, and the least share of it that is
# left whatever is missing: quotients of smaller numbers would be noise.
_LEAST_ODDS = 0.5
_LEAST_SHARE = 0.05

# Scores that differ by less than this are equal but for rounding, and so are log densities.
_ROUNDING_OF_SCORES = 1e-9
_DIGITS_OF_SCORES = 9

# So that no p-value is 0, however far a row is below all others.
_LARGEST_K = 1e9


class Estimates(NamedTuple):
    """Log densities and scores of samples in classes."""

    log_density: Floats  # (n_samples, n_classes) what probabilities are made of
    unscaled_score: Floats  # (n_samples, n_classes) what typicality ranks
    # (n_samples, n_classes, n_features) of the Rodeo, if they were asked for
    bandwidths: Floats | None = None


class _Densities(Protocol):
    """Class densities that can leave training rows out: what `Trust` needs of a model."""

    @property
    def compared_rows(self) -> LabelledRows: ...
    @property
    def used(self) -> Bools: ...
    def calibration_points(self) -> Integers: ...
    def leave_out(self, points: Integers, computation: Computation) -> Estimates: ...
    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates: ...
    def joint(self, log_density: Floats) -> Floats: ...


class Distribution(NamedTuple):
    """The distribution of some numbers, such as the scores of training rows."""

    values: Floats  # (n_values,) in order
    below: Floats  # (n_values + 1,) sums of the weights of the first ones

    @classmethod
    def from_values(cls, values: Floats, weights: Floats) -> Distribution:
        """Sort numbers; those without weight are left out. Weights sum to Kish's number afterwards.

        Numbers that differ by rounding only are equal, or their order would depend on the order of the rows.
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
        """How many numbers of equal weight there are."""
        return float(self.below[-1])

    def pvalues(self, x: Floats) -> Floats:
        """Shares of the numbers that are at most x, x itself counted among them."""
        at_most = self.below[np.searchsorted(self.values, _upper_bounds(x), side="right")]
        pvalues: Floats = (1.0 + at_most) / (1.0 + self.n)
        return pvalues

    def interpolated_pvalues(self, x: Floats) -> Floats:
        """P-values of x, interpolated between those that ranks can have, and below the least of them.

        One of n + 1 exchangeable numbers is below all others with the probability 1 / (n + 1), below all but
        one with 2 / (n + 1), and so on; between the numbers p-values are interpolated. Below the lowest
        number they depend on the margin. The distances between the lowest numbers of an exponential tail are
        exponential with rates 1, 2, 3 and so on, so that the first distance exceeds the next k - 1 together
        with the probability 2 / (k + 1): a margin that equals the distance from the lowest number to the k-th
        lowest has the p-value 2 / (k + 1) / (n + 1). Larger margins continue in proportion.
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
    """Numbers that are larger by as much as rounding may have made them smaller."""
    size = np.where(np.isfinite(x), np.abs(x), 0.0)  # a sample without values ties with all rows
    bounds: Floats = x + _ROUNDING_OF_SCORES * (1.0 + size)
    return bounds


class Reference(NamedTuple):
    """What left-out rows have in the place of samples."""

    center: (
        Floats  # (n_classes,) of unscaled scores at the rows of each class, halfway to the median of all rows
    )
    spread: float  # of unscaled scores below the medians of their classes
    odds_center: Floats  # (n_classes,) medians of log odds at the rows of each class
    odds_of_prior: Floats  # (n_classes,) log odds of a row without any value
    typical: Sequence[Distribution] = ()  # for each class the scores of its rows
    best: Distribution = Distribution(np.empty(0), np.zeros(1))  # the best scores of all rows
    odds: Sequence[Distribution] = ()  # for each class the standardized log odds of its rows

    def scores(self, unscaled_score: Floats, outlyingness: Floats, expected: ExpectedChanges) -> Floats:
        """How typical samples are of each class (n_samples, n_classes), on a common scale."""
        apart = unscaled_score - self.center - expected.unscaled_score
        scores: Floats = apart / self.spreads(expected)[:, np.newaxis]
        scores[expected.has_none] = self.best.values.max(initial=0.0)
        return scores - outlyingness

    def spreads(self, expected: ExpectedChanges) -> Floats:
        """Spreads (n_samples,) of the unscaled scores of as many variables as samples have."""
        return self.spread * np.sqrt(expected.present)

    def odds_scores(self, log_odds: Floats, expected: ExpectedChanges) -> Floats:
        """Log odds (n_samples, n_classes), relative to rows of the class that lack the same values.

        Mean and variance of log odds are both proportional to what the variables add to the log odds of the
        class, as they are for normal densities of equal covariance.
        """
        odds_of_variables = np.maximum(self.odds_center - self.odds_of_prior, _LEAST_ODDS)
        share = np.clip(1.0 + expected.odds / odds_of_variables, _LEAST_SHARE, 1.0)
        scores: Floats = (log_odds - self.odds_center - expected.odds) / np.sqrt(share)
        scores[expected.has_none] = np.inf
        return scores


def rounded(values: Floats, smallest: float = 1.0) -> Floats:
    """Numbers with nine significant digits; those below `smallest` with as many decimals as it has."""
    size = np.maximum(np.abs(np.where(np.isfinite(values), values, 0.0)), smallest)
    last_digit = 10.0 ** (np.floor(np.log10(size)) - _DIGITS_OF_SCORES + 1.0)
    return np.round(values / last_digit) * last_digit


def excess_pvalue(n_novel: int, n_rows: int, significance_level: float, n_training: float) -> float:
    """Probability that at least so many of n rows are novel at a level by chance: a beta-binomial test.

    The score below which rows are novel is a quantile of the scores of `n_training` rows. So the share of
    like rows below it has a beta distribution around the level, and their number a beta-binomial one.
    """
    rank = significance_level * (n_training + 1.0)
    return float(betabinom.sf(n_novel - 1, n_rows, rank, n_training + 1.0 - rank))


def _by_class(values: Floats, codes: Integers, weights: Floats, n_classes: int) -> list[Distribution]:
    """Distributions in each class; of all rows where a class has none that could be left out."""
    by_class = [Distribution.from_values(values[codes == y], weights[codes == y]) for y in range(n_classes)]
    all_classes = Distribution.from_values(values, weights)
    return [shares if shares.n > 0.0 else all_classes for shares in by_class]


def center_and_spread(own: Floats, codes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, float]:
    """Centers (n_classes,) halfway from the medians of classes to that of all rows, and the spread."""
    medians, spread = medians_and_spread(own, codes, weights, n_classes)
    usable = weights > 0.0
    return 0.5 * medians + 0.5 * lower_median(own[usable], weights[usable]), spread


def medians_and_spread(own: Floats, codes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, float]:
    """Medians (n_classes,) of what rows have in their own classes, and twice the mean deviation below them.

    Classes without weight have the median of all rows. The spread is 1 if there is none, as where no variable
    has values.
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
    """How typical samples are."""

    scores: Floats  # (n_samples, n_classes) how typical they are, on a scale that classes share
    typicality: Floats  # (n_samples, n_classes) p-values of these scores
    novelty: (
        Floats  # (n_samples,) interpolated p-value of the best score among the best scores of training rows
    )
    n_rows: float  # how many training rows of equal weight these are
    spread: Floats  # (n_samples,) of unscaled scores, by which they are divided

    @property
    def nearest(self) -> Integers:
        """The class (n_samples,) that each sample is most typical of, by its score."""
        nearest: Integers = self.scores.argmax(axis=1)
        return nearest

    def is_novel(self, significance_level: float) -> Bools:
        """Whether samples are less typical than all but a share of the rows."""
        return self.novelty <= significance_level

    @property
    def is_beyond(self) -> Bools:
        """Whether samples are clearly less typical than every row: half as often as a row by chance is."""
        return self.is_novel(0.5 / (1.0 + self.n_rows))


class Trust:
    """Training rows, each left out by the densities, as the reference of samples."""

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
        """Compare samples and their unscaled scores with training rows."""
        reference, expected = self.reference(computation), self._expected(X, computation)
        scores = reference.scores(unscaled_score, self.columns.outlyingness(X), expected)
        novelty = reference.best.interpolated_pvalues(scores.max(axis=1))
        typicality = _pvalues(reference.typical, scores)
        return Judgement(scores, typicality, novelty, reference.best.n, reference.spreads(expected))

    def label_pvalues(self, X: Floats, log_density: Floats, computation: Computation) -> Floats:
        """P-values (n_samples, n_classes) of the log odds of each class among its own rows."""
        reference, expected = self.reference(computation), self._expected(X, computation)
        return _pvalues(reference.odds, reference.odds_scores(self._log_odds(log_density), expected))

    def histograms(
        self, n_bars: int, least: float, computation: Computation
    ) -> list[tuple[float, float, Integers]]:
        """For each class the lowest score of its training rows, at least `least`, the highest, and counts."""
        bars = []
        for scores in (shares.values for shares in self.reference(computation).typical):
            low, high = max(float(scores.min(initial=0.0)), least), float(scores.max(initial=1.0))
            counts, _ = np.histogram(np.maximum(scores, low), bins=n_bars, range=(low, high))
            bars.append((low, high, counts))
        return bars

    def reference(self, computation: Computation) -> Reference:
        """Training rows as they are, each left out; computed when it is first needed."""
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
        """What missing values change; learnt when samples first lack a value of a variable that is used."""
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
            with np.errstate(invalid="ignore"):  # a class without other rows has no density
                difference = new[own, codes] - old[position][own, codes]
            changes.append(learn_changes(difference, removed, codes, weights, n_classes, used))
        return np.array(changes)


def _pvalues(distributions: Sequence[Distribution], scores: Floats) -> Floats:
    """P-values (n_samples, n_classes) of scores, each among the scores of the rows of its class."""
    columns = zip(distributions, scores.T, strict=True)
    return np.column_stack([distribution.pvalues(column) for distribution, column in columns])


def shares_of_members(left_out: Floats, codes: Integers, weights: Floats) -> Floats:
    """Shares (n_members,) of members by how well they tell rows of a class that is not known from others.

    `left_out` (n_members, n_points, n_classes) are log densities of rows that are left out.
    """
    behind = np.array([-_told_apart(log_density, codes, weights) for log_density in left_out])
    shares: Floats = np.exp((behind.min() - behind) / _BEHIND)
    shares /= shares.sum()
    return shares


def with_least_share(shares: Floats, chosen: Bools, least: float) -> Floats:
    """Shares that sum to 1, of which those chosen have at least a part, if they have any."""
    part = float(shares[chosen].sum())
    if part == 0.0 or part >= least:
        return shares
    raised: Floats = np.where(chosen, shares * (least / part), shares * ((1.0 - least) / (1.0 - part)))
    return raised


def _told_apart(unscaled_score: Floats, codes: Integers, weights: Floats) -> float:
    """How often a row of a class is less typical of all other classes than a row of one of these is.

    It is the mean over the classes; half where there is but one.
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
    """Weights of the calibration rows, rescaled to the class total; 0 where a class has no other group."""
    given, codes = data.all_weights, data.codes[points]
    class_totals, point_totals = (
        np.bincount(data.codes[rows], given[rows], minlength=data.labels.size)
        for rows in (slice(None), points)
    )
    factor = class_totals / np.maximum(point_totals, 1e-300)
    return np.where(data.is_alone[points], 0.0, given[points] * factor[codes])

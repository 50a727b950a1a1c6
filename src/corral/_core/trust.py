r"""Whether a sample is like anything in training, and which labels may be its own: conformal p-values.

Every training row is left out with its copies and its group, and what its class then says of it is what a
class says of a new row. So the share of a class's rows that are said to be at most as typical as a sample is
a p-value: if the sample is another row of the class, exchangeable with the others, it is at most a with
probability a (Vovk, Gammerman and Shafer, 2005).

**Score.** How typical x is of class y is measured by

.. math::

    u_y(x) = \frac{l_y(x) - c_y}{b} - 4 \sum_j \max(0, e_{yj}(x) - 3)^2
        - 64 \min(1, \max(0, (\max_j |z_j(x)| - 7) / 2)).

The likeness :math:`l_y` is the log density of the class; of a pool it is a mean of its members' log
densities, each over its own spread. The weights of a pool are those that tell classes apart best, and not
those that know rows from others; so a member's share in this mean is larger the better it would tell the rows
of each class from those of the others if the class were not known. The spread :math:`b` is twice the mean
deviation of the likenesses of training rows, each left out, below the medians of their classes. The centre
:math:`c_y` is halfway between the median of the class and that of all rows: log densities as they are tell
rows of other classes best, but call too many rows of wide classes novel; with the median of the class it is
the other way round.

The other terms are about values of single columns: see `remoteness`. Training rows have the same terms, from
the values of other rows, so that the level is kept.

**Typicality** of class y, where the class has n rows of equal weight (Kish's number if weights differ):

.. math:: t_y(x) = \frac{1 + n \, \mathrm{share}_{i \in y}(u_y(x_i) \le u_y(x))}{n + 1}.

**Novelty** is the same p-value of :math:`\max_y u_y`, among the rows of all classes together. A small class
has only coarse p-values; together they are as fine as the whole table is large.

**Sets.** A label is in the set of a sample if the p-value of its log posterior, among the rows of the class,
exceeds 1 less the coverage.

**Gaps.** A sample without some variables is compared with rows without these. What the rows themselves lack
is filled with the value of the nearest row of the class, so that all are compared in the same variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from corral._core.calibration import log_posterior
from corral._core.copies import effective_number
from corral._core.gaps import patterns
from corral._core.remoteness import Columns, lower_median
from corral._core.rows import LabelledRows
from corral._core.scale import Scale
from corral._core.settings import Bools, Computation, Floats, Integers

# Rows that are left out, and fewer for each further set of variables, of which there may be many.
MAX_POINTS = 2000
_MAX_POINTS_OF_PATTERN = 500
_FEWEST_OF_CLASS = 20

# How many sets of variables are remembered.
_MAX_PATTERNS = 256

# A member that tells rows of an unknown class so much less often has a share that is smaller by a factor e.
_BEHIND = 0.05

# Scores that differ by less than this are equal but for rounding, and so are log densities.
_ROUNDING_OF_SCORES = 1e-9


class Estimates(NamedTuple):
    """What classes say of samples.

    Attributes
    ----------
    log_density : (n_samples, n_classes) what probabilities are made of.
    likeness : (n_samples, n_classes) what typicality ranks.
    """

    log_density: Floats
    likeness: Floats


class Densities(Protocol):
    """Class densities that can leave training rows out."""

    @property
    def compared_rows(self) -> LabelledRows:
        """Training rows that samples are compared with."""

    def calibration_points(self) -> Integers:
        """Which of them are left out, one by one."""

    def leave_out(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Estimates of X (n_points, n_features) without these rows, their copies and groups."""

    def joint(self, log_density: Floats) -> Floats:
        """Logarithm of prior times tempered density, from log densities."""


class Shares(NamedTuple):
    """How numbers are distributed.

    Attributes
    ----------
    values : (n_values,) in order.
    below : (n_values + 1,) sums of the weights of the first ones.
    """

    values: Floats
    below: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> Shares:
        """Sort numbers; those without weight are left out. Weights sum to Kish's number afterwards."""
        values, weights = values[weights > 0.0], weights[weights > 0.0]
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
        size = np.where(np.isfinite(x), np.abs(x), 0.0)
        equal = x + _ROUNDING_OF_SCORES * (1.0 + size)  # a sample without values ties with all rows
        at_most = self.below[np.searchsorted(self.values, equal, side="right")]
        pvalues: Floats = (1.0 + at_most) / (1.0 + self.n)
        return pvalues


@dataclass(frozen=True, eq=False)
class Reference:
    """What left-out rows have in the place of samples that know the same variables.

    Attributes
    ----------
    center : (n_classes,) of likenesses at the rows of each class, halfway to that of all rows.
    spread : of likenesses below the medians of their classes.
    typical : for each class the scores of its rows.
    best : the best scores of all rows.
    posterior : for each class the log posteriors of its rows.
    """

    center: Floats
    spread: float
    typical: Sequence[Shares]
    best: Shares
    posterior: Sequence[Shares]

    @classmethod
    def learn(
        cls, likeness: Floats, log_posteriors: Floats, remoteness: Floats, codes: Integers, weights: Floats
    ) -> Reference:
        """Learn from points: likenesses, log posteriors and terms of columns (n_points, n_classes)."""
        n_classes = likeness.shape[1]
        rows = np.arange(codes.size)
        center, spread = center_and_spread(likeness[rows, codes], codes, weights, n_classes)
        scores = (likeness - center) / spread - remoteness
        return cls(
            center,
            spread,
            _by_class(scores[rows, codes], codes, weights, n_classes),
            Shares.of(scores.max(axis=1), weights),
            _by_class(log_posteriors[rows, codes], codes, weights, n_classes),
        )

    def scores(self, likeness: Floats, remoteness: Floats) -> Floats:
        """How typical samples are of each class (n_samples, n_classes), on a common scale."""
        scores: Floats = (likeness - self.center) / self.spread - remoteness
        return scores


def _by_class(values: Floats, codes: Integers, weights: Floats, n_classes: int) -> list[Shares]:
    """Distributions in each class; of all rows where a class has none that could be left out."""
    found = [Shares.of(values[codes == y], weights[codes == y]) for y in range(n_classes)]
    everything = Shares.of(values, weights)
    return [shares if shares.n > 0.0 else everything for shares in found]


def center_and_spread(own: Floats, codes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, float]:
    """Centers (n_classes,) halfway from the medians of classes to that of all rows, and the spread."""
    medians, spread = medians_and_spread(own, codes, weights, n_classes)
    usable = weights > 0.0
    return 0.5 * medians + 0.5 * lower_median(own[usable], weights[usable]), spread


def medians_and_spread(own: Floats, codes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, float]:
    """Medians (n_classes,) of what rows have in their own classes, and twice the mean deviation below them.

    Classes without rows of some weight have the median of all. The spread is 1 if there is none, as where no
    variable is known.
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
    """What is said of samples.

    Attributes
    ----------
    scores : (n_samples, n_classes) how typical they are, on a scale that classes share.
    typicality : (n_samples, n_classes) p-values of these scores.
    novelty : (n_samples,) p-value of the best score among all training rows.
    n : (n_samples,) how many rows of equal weight these are.
    spread : (n_samples,) of likenesses, which scores are in units of.
    """

    scores: Floats
    typicality: Floats
    novelty: Floats
    n: Floats
    spread: Floats

    @property
    def nearest(self) -> Integers:
        """The class (n_samples,) that each sample is most typical of, by its score."""
        nearest: Integers = self.scores.argmax(axis=1)
        return nearest

    def is_novel(self, level: float) -> Bools:
        """Whether samples are less typical than all but a share of the rows, or than every single one."""
        return (self.n > 0.0) & (self.novelty <= np.maximum(level, 1.0 / (self.n + 1.0)))


class Trust:
    """Training rows, each left out, as a yardstick for samples.

    Parameters
    ----------
    densities : the classes.

    Attributes
    ----------
    columns : values of columns.
    """

    def __init__(self, densities: Densities) -> None:
        data = densities.compared_rows
        self._densities = densities
        self.columns = Columns.learn(data)
        points = densities.calibration_points()
        self._points, self._codes = points, data.codes[points]
        self._weights = weigh_points(data, points)
        self._filled = _filled(data, points, self.columns.scale)
        self._references: dict[bytes, Reference] = {}

    def judge(self, X: Floats, likeness: Floats, computation: Computation) -> Judgement:
        """Compare samples and their likenesses with training rows."""
        scores, typicality = np.empty(likeness.shape), np.empty(likeness.shape)
        novelty, n, spread = np.empty(len(X)), np.empty(len(X)), np.empty(len(X))
        far = self.columns.remoteness(X)
        for at, missing in patterns(np.isnan(X)):
            reference = self.reference(missing, computation)
            scores[at] = reference.scores(likeness[at], far[at])
            for y, shares in enumerate(reference.typical):
                typicality[at, y] = shares.pvalues(scores[at, y])
            novelty[at] = reference.best.pvalues(scores[at].max(axis=1))
            n[at], spread[at] = reference.best.n, reference.spread
        return Judgement(scores, typicality, novelty, n, spread)

    def label_pvalues(self, X: Floats, log_density: Floats, computation: Computation) -> Floats:
        """P-values (n_samples, n_classes) of the log posterior of each class among its own rows."""
        log_posteriors = log_posterior(self._densities.joint(log_density))
        pvalues = np.empty(log_density.shape)
        for at, missing in patterns(np.isnan(X)):
            for y, shares in enumerate(self.reference(missing, computation).posterior):
                pvalues[at, y] = shares.pvalues(log_posteriors[at, y])
        return pvalues

    def scores_of_rows(self, computation: Computation) -> list[Floats]:
        """For each class the scores of its training rows, each left out, in order."""
        nothing = np.empty(0, dtype=np.int64)
        return [shares.values for shares in self.reference(nothing, computation).typical]

    def reference(self, missing: Integers, computation: Computation) -> Reference:
        """Rows as they are without some variables."""
        key = missing.tobytes()
        found = self._references.get(key)
        if found is None:
            if len(self._references) >= _MAX_PATTERNS:
                self._references.clear()
            found = self._references[key] = self._learn(missing, computation)
        return found

    def _learn(self, missing: Integers, computation: Computation) -> Reference:
        some = np.arange(self._points.size)
        if missing.size:
            n_classes = self._densities.compared_rows.labels.size
            some = spread_rows(self._codes, n_classes, _MAX_POINTS_OF_PATTERN, _FEWEST_OF_CLASS)
        X, points = self._filled[some].copy(), self._points[some]
        X[:, missing] = np.nan
        compared = self._densities.compared_rows
        rows, units = compared.X[points], compared.units[points]
        rows[:, missing] = np.nan
        left_out = self._densities.leave_out(points, X, computation)
        log_posteriors = log_posterior(self._densities.joint(left_out.log_density))
        far = self.columns.remoteness(rows, units)
        return Reference.learn(left_out.likeness, log_posteriors, far, self._codes[some], self._weights[some])


class Calibration(NamedTuple):
    """What is known of rows that were held out, when the rows themselves are not.

    Attributes
    ----------
    codes : (n_points,) their classes.
    weights : (n_points,)
    remoteness : (n_points, n_classes) what values far from those of a class take from their scores.
    """

    codes: Integers
    weights: Floats
    remoteness: Floats


class TrustWithoutRows(Trust):
    """Rows that were held out as a yardstick for samples, when the rows themselves are not known.

    Parameters
    ----------
    densities : the classes; what they have in the place of rows are averages of them.
    calibration : what is known of the rows that were held out.
    left_out : what the classes say of them.
    """

    def __init__(self, densities: Densities, calibration: Calibration, left_out: Estimates) -> None:
        self._densities = densities
        self.columns = Columns.learn(densities.compared_rows)
        self._reference = Reference.learn(
            left_out.likeness,
            log_posterior(densities.joint(left_out.log_density)),
            calibration.remoteness,
            calibration.codes,
            calibration.weights,
        )

    def reference(self, missing: Integers, computation: Computation) -> Reference:
        """Rows as they were; what they are without some variables is not known."""
        if missing.size:
            raise ValueError(
                "the model was saved without training rows, so that samples with gaps cannot be compared "
                "with them."
            )
        return self._reference


def spread_rows(codes: Integers, n_classes: int, max_rows: int, fewest: int = 1) -> Integers:
    """Positions of about `max_rows` rows, the same number of each class, evenly spread over all of it."""
    if codes.size <= max_rows:
        return np.arange(codes.size)
    limit = max(max_rows // n_classes, fewest)
    chosen = []
    for y in range(n_classes):
        members = np.flatnonzero(codes == y)
        at = np.linspace(0, members.size - 1, min(members.size, limit)).round().astype(np.int64)
        chosen.append(members[np.unique(at)])
    return np.sort(np.concatenate(chosen))


def shares_of_members(left_out: Floats, codes: Integers, weights: Floats) -> Floats:
    """Shares (n_members,) of members by how well they tell rows of a class that is not known from others.

    Parameters
    ----------
    left_out : (n_members, n_points, n_classes) log densities of rows that are left out.
    codes, weights : (n_points,) their classes and weights.
    """
    behind = np.array([-_told_apart(log_density, codes, weights) for log_density in left_out])
    shares: Floats = np.exp((behind.min() - behind) / _BEHIND)
    shares /= shares.sum()
    return shares


def _told_apart(likeness: Floats, codes: Integers, weights: Floats) -> float:
    """How often a row of a class is less typical of all other classes than a row of one of these is.

    It is the mean over the classes; half where there is but one.
    """
    rows, n_classes = np.arange(codes.size), likeness.shape[1]
    center, spread = center_and_spread(likeness[rows, codes], codes, weights, n_classes)
    scores = (likeness - center) / spread
    found = []
    for y in range(n_classes if n_classes > 1 else 0):
        best = np.delete(scores, y, axis=1).max(axis=1)
        of_class, others = (codes == y) & (weights > 0.0), (codes != y) & (weights > 0.0)
        if of_class.any() and others.any():
            shares = Shares.of(best[others], weights[others])
            below = shares.below[np.searchsorted(shares.values, best[of_class], side="left")]
            up_to = shares.below[np.searchsorted(shares.values, best[of_class], side="right")]
            above = 1.0 - 0.5 * (below + up_to) / shares.n
            found.append(float(weights[of_class] @ above / weights[of_class].sum()))
    return float(np.mean(found)) if found else 0.5


def weigh_points(data: LabelledRows, points: Integers) -> Floats:
    """Weights of points, those of each class together as its rows; 0 if the class has no row but its unit."""
    n_classes = data.labels.size
    given = data.all_weights
    codes = data.codes[points]
    of_class = np.bincount(data.codes, given, minlength=n_classes)
    of_points = np.bincount(codes, given[points], minlength=n_classes)
    factor = of_class / np.maximum(of_points, 1e-300)
    if points.size == len(data.X):
        factor = np.ones(n_classes)
    return np.where(data.is_alone[points], 0.0, given[points] * factor[codes])


def _filled(data: LabelledRows, points: Integers, scale: Scale) -> Floats:
    """Points with values of the nearest row of their class, of another unit, in place of gaps.

    Rows are compared in the variables that both have. What no other row has stays missing.
    """
    X = data.X[points].copy()
    gaps = np.isnan(X)
    scaled, is_level = scale.transform(X), data.level_counts > 0
    for y in np.unique(data.codes[points][gaps.any(axis=1)]).tolist():
        at = np.flatnonzero(data.codes[points] == y)
        apart, common = np.zeros((at.size, at.size)), np.zeros((at.size, at.size))
        for j in range(X.shape[1]):
            difference = np.abs(scaled[at, j, np.newaxis] - scaled[at, j])
            known = ~np.isnan(difference)
            apart += np.where(known, np.minimum(difference, 1.0 if is_level[j] else np.inf) ** 2, 0.0)
            common += known
        apart = np.where(common > 0.0, apart / np.maximum(common, 1.0), np.finfo(np.float64).max)
        units = data.units[points[at]]
        apart[units[:, np.newaxis] == units] = np.inf
        for j in np.flatnonzero(gaps[at].any(axis=0)).tolist():
            lacking, having = at[gaps[at, j]], np.flatnonzero(~gaps[at, j])
            if having.size:
                among = apart[np.ix_(gaps[at, j], having)]
                nearest = among.argmin(axis=1)
                found = np.isfinite(among.min(axis=1))
                X[lacking[found], j] = X[at[having[nearest[found]]], j]
    return X

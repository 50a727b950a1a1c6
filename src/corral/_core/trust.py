r"""Whether a sample is like anything in training, and which labels may be its own: conformal p-values.

Every training row is left out with its copies and its group, and what its class then says of it is what a
class says of a new row. So the share of a class's rows that are said to be at most as typical as a sample is
a p-value: if the sample is another row of the class, exchangeable with the others, it is at most a with
probability a (Vovk, Gammerman and Shafer, 2005).

**Score.** How typical x is of class y is measured by

.. math::

    u_y(x) = \frac{\log \hat p_y(x) - c_y}{b_y} - 4 \sum_j \max(0, e_j(x) - 1)^2.

:math:`c_y` is the median of the log density at the rows of the class, each left out, and :math:`b_y` twice
their mean deviation below it (drawn towards that of all classes), so that classes compare. :math:`e_j` is
how far :math:`x_j` lies from the nearest value of the column in training, in standard deviations of the
column. It sees what densities may not: ranks end with the training range, and a density may make little use
of a column. Training rows have the same term, from the values of other rows, so that the level is kept.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from corral._core.calibration import log_posterior
from corral._core.copies import effective_number
from corral._core.mixed import patterns
from corral._core.rows import LabelledRows
from corral._core.scale import Scale, learn_scale
from corral._core.settings import Bools, Computation, Floats, Integers

# Rows that are left out, and fewer for each further set of variables, of which there may be many.
MAX_POINTS = 2000
_MAX_POINTS_OF_PATTERN = 500
_FEWEST_OF_CLASS = 20

# How many sets of variables are remembered.
_MAX_PATTERNS = 256

# Values that lie nearer than this to others, in deviations of the column, are nothing special.
_NEAR = 1.0

# What a squared distance beyond that takes from a score.
_STRENGTH = 4.0

# The spread of a class counts as if so many rows with that of all classes were added.
_EXTRA_ROWS = 10.0

# Scores that differ by less than this are equal but for rounding, and so are log densities.
_ROUNDING_OF_SCORES = 1e-9

# A column that varies by less than this share of its values is constant but for rounding.
_ROUNDING = 1e-12


class Densities(Protocol):
    """Class densities that can leave training rows out."""

    @property
    def data(self) -> LabelledRows:
        """The training rows."""

    def calibration_points(self) -> Integers:
        """Which rows are left out, one by one."""

    def leave_out(self, points: Integers, X: Floats, computation: Computation) -> Floats:
        """Log densities of X (n_points, n_features) without these rows, their copies and groups."""

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
    center, spread : (n_classes,) of log densities at the rows of each class.
    typical : for each class the scores of its rows.
    best : the best scores of all rows.
    posterior : for each class the log posteriors of its rows.
    """

    center: Floats
    spread: Floats
    typical: Sequence[Shares]
    best: Shares
    posterior: Sequence[Shares]

    @classmethod
    def learn(
        cls, left_out: Floats, log_posteriors: Floats, remoteness: Floats, codes: Integers, weights: Floats
    ) -> Reference:
        """Learn from points: log densities, log posteriors (n_points, n_classes) and terms of columns."""
        n_classes = left_out.shape[1]
        rows = np.arange(codes.size)
        own = left_out[rows, codes]
        center, spread = _centers(own, codes, weights, n_classes)
        scores = (left_out - center) / spread - remoteness[:, np.newaxis]
        return cls(
            center,
            spread,
            _by_class(scores[rows, codes], codes, weights, n_classes),
            Shares.of(scores.max(axis=1), weights),
            _by_class(log_posteriors[rows, codes], codes, weights, n_classes),
        )

    def scores(self, log_density: Floats, remoteness: Floats) -> Floats:
        """How typical samples are of each class (n_samples, n_classes), on a common scale."""
        scores: Floats = (log_density - self.center) / self.spread - remoteness[:, np.newaxis]
        return scores


def _by_class(values: Floats, codes: Integers, weights: Floats, n_classes: int) -> list[Shares]:
    """Distributions in each class; of all rows where a class has none that could be left out."""
    found = [Shares.of(values[codes == y], weights[codes == y]) for y in range(n_classes)]
    everything = Shares.of(values, weights)
    return [shares if shares.n > 0.0 else everything for shares in found]


def _centers(own: Floats, codes: Integers, weights: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Medians of the log densities of each class at its own rows, and spreads below them."""
    usable = weights > 0.0
    own, codes, weights = own[usable], codes[usable], weights[usable]
    center = np.full(n_classes, lower_median(own, weights))
    deviation, sizes = np.zeros(n_classes), np.zeros(n_classes)
    for y in np.unique(codes).tolist():
        m, x = weights[codes == y], own[codes == y]
        center[y] = lower_median(x, m)
        deviation[y] = 2.0 * float(m @ np.maximum(center[y] - x, 0.0) / m.sum())
        sizes[y] = effective_number(m)
    of_all = float(sizes @ deviation / max(sizes.sum(), 1.0))
    if of_all <= _ROUNDING_OF_SCORES:  # all densities are the same, as where no variable is known
        return center, np.ones(n_classes)
    return center, (sizes * deviation + _EXTRA_ROWS * of_all) / (sizes + _EXTRA_ROWS)


def lower_median(x: Floats, weights: Floats) -> float:
    """The weighted median, the lower one of two; 0 of nothing."""
    if not x.size:
        return 0.0
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    return float(x[order[np.searchsorted(below, 0.5 * below[-1])]])


@dataclass(frozen=True, eq=False)
class Columns:
    """Values that columns of measurements take in training, in their deviations.

    Attributes
    ----------
    scale : standard units.
    values : for each column its distinct values in order, scaled; none for levels and empty columns.
    """

    scale: Scale
    values: Sequence[Floats]

    @classmethod
    def learn(cls, data: LabelledRows) -> Columns:
        """Learn units and values."""
        units = learn_scale(data.X, data.weights, "standard", levels=data.levels)
        largest = np.where(np.isnan(data.X), 0.0, np.abs(data.X)).max(axis=0, initial=0.0)
        scale = Scale(units.center, np.maximum(units.half_width, _ROUNDING * largest))
        scaled = scale.transform(data.X)
        measured = data.level_counts == 0
        values = [
            np.unique(x[~np.isnan(x)]) if is_measured else np.empty(0)
            for x, is_measured in zip(scaled.T, measured, strict=True)
        ]
        return cls(scale, values)

    def distances(self, X: Floats) -> Floats:
        """How far values (n_samples, n_features) lie from the nearest one in training.

        0 for gaps, and for values of at most one deviation that lie between others: only more counts.
        """
        scaled = self.scale.transform(X)
        apart = np.zeros(X.shape)
        for j, values in enumerate(self.values):
            if not values.size:
                continue
            x = scaled[:, j]
            if (np.diff(values) <= 2.0 * _NEAR).all():  # within the range every value is near another
                apart[:, j] = np.maximum(np.maximum(values[0] - x, x - values[-1]), 0.0)
                continue
            right = np.searchsorted(values, x)
            above, below = values[np.minimum(right, values.size - 1)], values[np.maximum(right - 1, 0)]
            apart[:, j] = np.minimum(np.abs(x - above), np.abs(x - below))
        return np.nan_to_num(apart, copy=False, nan=0.0)

    def distances_of_rows(self, data: LabelledRows, points: Integers) -> Floats:
        """The same for training rows, from values of other units."""
        scaled = self.scale.transform(data.X)
        apart = np.zeros((points.size, scaled.shape[1]))
        for j, values in enumerate(self.values):
            known = np.flatnonzero(~np.isnan(scaled[:, j]))
            if values.size:
                of_rows = np.zeros(len(scaled))
                of_rows[known] = _distances_to_others(scaled[known, j], data.units[known])
                apart[:, j] = of_rows[points]
        return apart


def _distances_to_others(x: Floats, units: Integers) -> Floats:
    """How far each value lies from the nearest one of another unit; 0 if there is none."""
    order = np.lexsort((units, x))
    values, of_unit = x[order], units[order]
    begins = np.flatnonzero(np.concatenate([[True], of_unit[1:] != of_unit[:-1]]))
    run = np.searchsorted(begins, np.arange(x.size), side="right") - 1
    # Neighbours of a run of values of one unit are of others.
    padded = np.concatenate([[-np.inf], values, [np.inf]])
    ends = np.append(begins[1:], x.size)
    apart = np.minimum(values - padded[begins[run]], padded[ends[run] + 1] - values)
    found = np.zeros(x.size)
    found[order] = np.where(np.isfinite(apart), apart, 0.0)
    return found


def column_terms(distances: Floats) -> Floats:
    """What distances from the nearest values take from a score, by variable (n_samples, n_features)."""
    terms: Floats = _STRENGTH * np.maximum(distances - _NEAR, 0.0) ** 2
    return terms


def remoteness(distances: Floats) -> Floats:
    """What distances from the nearest values (n_samples, n_features) take from a score (n_samples,)."""
    term: Floats = column_terms(distances).sum(axis=1)
    return term


class Judgement(NamedTuple):
    """What is said of samples.

    Attributes
    ----------
    scores : (n_samples, n_classes) how typical they are, on a scale that classes share.
    typicality : (n_samples, n_classes) p-values of these scores.
    novelty : (n_samples,) p-value of the best score among all training rows.
    n : (n_samples,) how many rows of equal weight these are.
    spread : (n_samples, n_classes) of log densities, which scores are in units of.
    far : (n_samples, n_features) what values take from scores because they are far from all others.
    """

    scores: Floats
    typicality: Floats
    novelty: Floats
    n: Floats
    spread: Floats
    far: Floats

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
    """

    def __init__(self, densities: Densities) -> None:
        data = densities.data
        self._densities = densities
        self._columns = Columns.learn(data)
        points = densities.calibration_points()
        self._points, self._codes = points, data.codes[points]
        self._weights = _weigh(data, points)
        self._distances = self._columns.distances_of_rows(data, points)
        self._filled = _filled(data, points, self._columns.scale)
        self._references: dict[bytes, Reference] = {}

    def judge(self, X: Floats, log_density: Floats, computation: Computation) -> Judgement:
        """Compare samples and their log densities with training rows."""
        scores, typicality = np.empty(log_density.shape), np.empty(log_density.shape)
        novelty, n, spread = np.empty(len(X)), np.empty(len(X)), np.empty(log_density.shape)
        distances = self._columns.distances(X)
        far = remoteness(distances)
        for at, missing in _by_pattern(X):
            reference = self.reference(missing, computation)
            scores[at] = reference.scores(log_density[at], far[at])
            for y, shares in enumerate(reference.typical):
                typicality[at, y] = shares.pvalues(scores[at, y])
            novelty[at] = reference.best.pvalues(scores[at].max(axis=1))
            n[at], spread[at] = reference.best.n, reference.spread
        return Judgement(scores, typicality, novelty, n, spread, column_terms(distances))

    def label_pvalues(self, X: Floats, log_density: Floats, computation: Computation) -> Floats:
        """P-values (n_samples, n_classes) of the log posterior of each class among its own rows."""
        log_posteriors = log_posterior(self._densities.joint(log_density))
        pvalues = np.empty(log_density.shape)
        for at, missing in _by_pattern(X):
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
            n_classes = self._densities.data.labels.size
            some = spread_rows(self._codes, n_classes, _MAX_POINTS_OF_PATTERN, _FEWEST_OF_CLASS)
        X = self._filled[some].copy()
        X[:, missing] = np.nan
        distances = self._distances[some].copy()
        distances[:, missing] = 0.0
        left_out = self._densities.leave_out(self._points[some], X, computation)
        log_posteriors = log_posterior(self._densities.joint(left_out))
        return Reference.learn(
            left_out, log_posteriors, remoteness(distances), self._codes[some], self._weights[some]
        )


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


def _by_pattern(X: Floats) -> Iterator[tuple[Integers, Integers]]:
    """Rows that miss the same columns, and these columns, none first."""
    gaps = np.isnan(X)
    complete = np.flatnonzero(~gaps.any(axis=1))
    if complete.size:
        yield complete, np.empty(0, dtype=np.int64)
    yield from patterns(gaps)


def _weigh(data: LabelledRows, points: Integers) -> Floats:
    """Weights of points, those of each class together as its rows; 0 if the class has no row but its unit."""
    n_classes = data.labels.size
    given = np.ones(len(data.X)) if data.weights is None else data.weights
    codes = data.codes[points]
    of_class = np.bincount(data.codes, given, minlength=n_classes)
    of_points = np.bincount(codes, given[points], minlength=n_classes)
    factor = of_class / np.maximum(of_points, 1e-300)
    if points.size == len(data.X):
        factor = np.ones(n_classes)
    _, unit = np.unique(data.units * np.int64(n_classes) + data.codes, return_inverse=True)
    is_alone = np.bincount(unit)[unit] == np.bincount(data.codes)[data.codes]
    return np.where(is_alone[points], 0.0, given[points] * factor[codes])


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

r"""A logarithmic pool of few members, each a classifier by class densities that stands on its own.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with weights :math:`w_m > 0`;
the posterior gives a share of its probability to the prior, as that of a single classifier does.

**Members.** Each has its units and its frame (see `frames`), in which the rows of a class are pulled
towards their mean by :math:`a = \sqrt{1 - h^2}` and blurred with the bandwidth h, which keeps the
covariance of the class (West, 1993): h = 1 is a normal density, a small h a kernel density of the rows. Two
more members are kernel densities of the rows as they are, with bandwidths refined by variable (see
`refine`), and one has the same bandwidth for all variables.

**Leave-one-out.** Every point is predicted by rows of other units alone, and whatever was fitted to labels
(frames and refined bandwidths) is fitted anew without the fold of the point. One bandwidth and one
temperature for each member, and the weights, see all points; `PoolScores` are of choices that do not.

**Weights.** The prior of :math:`\log w_m` has its center at :math:`\log (s_m / T_m)`, where :math:`T_m` is
the temperature at which the member is calibrated on its own, and the shares :math:`s_m`, which sum to 1,
are nearly equal unless its log loss then is much larger than that of the best. Members whose share is small
are dropped, and the weights of the others are fitted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from corral._core import kernels
from corral._core.calibration import Target, fit_log_weights, known, log_posterior
from corral._core.copies import effective_number
from corral._core.frames import ClassFrame, Covariance, learn_frames, rank_statistics
from corral._core.members import Member, Mixture
from corral._core.mixed import (
    MixedFrame,
    MixedMixture,
    MixedSample,
    learn_mixed_frames,
    mixed_log_densities,
    patterns,
    refine_mixed,
    refined_frames,
    without_gaps,
)
from corral._core.model import (
    Examples,
    LocalModel,
    evenly_spread,
    joint_log_probability,
    learn_contrast,
    log_probability,
)
from corral._core.parallel import progress
from corral._core.refine import RefinedRows, refine
from corral._core.rows import LabelledRows, TrainingRows
from corral._core.scale import Scale, blurred_range, learn_scale, spreads
from corral._core.settings import Bools, Computation, Floats, Integers, ScaleKind
from corral._core.thinning import Representatives
from corral._core.trial import N_FOLDS, Trial
from corral._core.trust import (
    Calibration,
    Estimates,
    Trust,
    TrustWithoutRows,
    medians_and_spread,
    weigh_points,
)

# The search reads at most so many rows, and asks at most so many of them to leave themselves out.
SEARCH_ROWS = 20_000
SEARCH_POINTS = 2000

# Bandwidths of pulled kernels, in units of the deviations of the class.
_BANDWIDTHS = np.array([0.25, 0.4, 0.55, 0.7, 0.85, 1.0])

# Bandwidths of plain kernels, in units of the ranges of the variables.
_PLAIN_BANDWIDTHS = 2.0 ** np.arange(-4.5, 1.0, 0.5)

# Factors of refined bandwidths, which were fitted to fewer rows.
_FACTORS = 2.0 ** np.arange(-0.75, 0.5, 0.25)

# Refined bandwidths are fitted to at most so many points and rows, and without one part of the folds in turn:
# fewer parts than folds, because each costs as much as all other members together.
_REFINE_POINTS = 300
_REFINE_ROWS = 1500
_REFINE_PARTS = 3

# Standard deviation of the logarithm of a bandwidth by variable. Less makes hardly a difference to a pool,
# since its weights do not trust what fits its own fold alone.
_REFINE_DEVIATION = 0.4

# Standard deviation of the logarithm of a weight around its prior. A member's share is expected to be exp(-k)
# times that of the best if its log loss is larger by k times so much, up to a largest k; and the least share.
_WEIGHT_DEVIATION = 0.7
_LARGER_LOSS = 0.1
_FURTHEST_BEHIND = 4.0
_LEAST_SHARE = 0.02

# Members that are kept at most.
_MOST_MEMBERS = 6

# Of wide tables half as many variables are kept as there are rows, but at least and at most so many.
_FEWEST_VARIABLES, _MOST_VARIABLES = 30, 200

# At least so many rows of each class are read, if it has them.
_FEWEST_ROWS = 10

# Numbers in a block of products.
_BLOCK = 2_000_000


_NAMES = {
    "own": "kernels along the covariance of each class",
    "shared": "kernels along the shared covariance",
    "diagonal": "kernels along the variances of each class",
    "selected": "kernels on the variables of each class",
    "none": "plain kernels",
    None: "bandwidths refined by variable",
}

AnyFrame = ClassFrame | MixedFrame


class Kind(NamedTuple):
    """A way to make a member.

    Attributes
    ----------
    scale : kind of units.
    covariance : kind of frame, or None for bandwidths refined by variable.
    """

    scale: ScaleKind
    covariance: Covariance | None = None

    @property
    def name(self) -> str:
        """Name in tables and progress bars."""
        units = "normal scores" if self.scale == "score" else f"{self.scale} units"
        return f"{_NAMES[self.covariance]}, {units}"

    @property
    def n_parts(self) -> int:
        """Into how many parts the rows are divided, each of which is predicted without its labels."""
        return _REFINE_PARTS if self.covariance is None else N_FOLDS

    def kernels(self) -> tuple[Floats, Floats]:
        """Bandwidths and pulls to try."""
        if self.covariance is None:
            return _FACTORS, np.ones(_FACTORS.size)
        if self.covariance == "none":
            return _PLAIN_BANDWIDTHS, np.ones(_PLAIN_BANDWIDTHS.size)
        return _BANDWIDTHS, np.sqrt(1.0 - _BANDWIDTHS**2)


KINDS = (
    Kind("score", "own"),
    Kind("standard", "shared"),
    Kind("standard", "diagonal"),
    Kind("rank", "selected"),
    Kind("range", "none"),
    Kind("rank"),
    Kind("score"),
)

# In which units members are, by their names.
UNITS_OF_MEMBERS = {kind.name: kind.scale for kind in KINDS}


def wanted_units(kinds: Sequence[Kind] = KINDS) -> list[ScaleKind]:
    """List the units of some kinds of members, and ranks, by which variables are selected."""
    return list(dict.fromkeys([*(kind.scale for kind in kinds), "rank"]))


@dataclass(frozen=True, eq=False)
class Candidate:
    """Leave-one-out results of one kind of member.

    Attributes
    ----------
    kind : the way it is made.
    tried : (n_bandwidths, n_points, n_classes) finite log densities with each bandwidth.
    log_powers : (n_bandwidths,) logarithms of inverse temperatures.
    losses : (n_bandwidths, n_points) log losses at these temperatures.
    best : which bandwidth is taken.
    """

    kind: Kind
    tried: Floats
    log_powers: Floats
    losses: Floats
    best: int

    @classmethod
    def calibrate(cls, kind: Kind, tried: Floats, target: Target) -> Candidate:
        """Fit a temperature for each bandwidth, and take the best one."""
        log_powers, losses = np.zeros(len(tried)), np.empty(tried.shape[:2])
        start = np.zeros(1)
        for k, log_density in enumerate(tried):
            start, _ = fit_log_weights(log_density[np.newaxis], target, np.zeros(1), 1.0, start)
            log_powers[k] = start[0]
            log_proba = log_posterior(target.log_prior + np.exp(start) * log_density)
            losses[k] = -target.right(log_proba)
        return cls(kind, tried, log_powers, losses, 0).chosen_for(target)

    def chosen_for(self, target: Target) -> Candidate:
        """Take the bandwidth that is best for some of the points."""
        objective = self.losses @ target.weights + 0.5 * self.log_powers**2 / target.count
        return replace(self, best=int(objective.argmin()))

    def recalibrated(self, target: Target) -> Candidate:
        """Take the bandwidth and the temperature that are best for some of the points."""
        chosen = self.chosen_for(target)
        start = np.array([chosen.log_power])
        fitted, _ = fit_log_weights(chosen.log_density[np.newaxis], target, np.zeros(1), 1.0, start)
        log_powers = chosen.log_powers.copy()
        log_powers[chosen.best] = fitted[0]
        return replace(chosen, log_powers=log_powers)

    @property
    def bandwidth(self) -> float:
        """Bandwidth of its kernels."""
        return float(self.kind.kernels()[0][self.best])

    @property
    def pull(self) -> float:
        """How much of the distance to the mean of their class is left to rows."""
        return float(self.kind.kernels()[1][self.best])

    @property
    def log_density(self) -> Floats:
        """Log densities (n_points, n_classes)."""
        log_density: Floats = self.tried[self.best]
        return log_density

    @property
    def log_power(self) -> float:
        """Logarithm of its inverse temperature."""
        return float(self.log_powers[self.best])


class PoolScores(NamedTuple):
    """What to expect of a pool, from points that had no part in the choices by which they are judged.

    Attributes
    ----------
    accuracy, log_loss : with classes weighing as the priors say.
    balanced_accuracy : mean of the recalls of classes that have points.
    recall : (n_classes,) NaN for classes that have none.
    """

    accuracy: float
    log_loss: float
    balanced_accuracy: float
    recall: Floats


class CrossFitted(NamedTuple):
    """Log densities of training rows that were left out, and whose fold the members did not know.

    Attributes
    ----------
    points : (n_points,) which rows.
    log_density : (n_members, n_points, n_classes)
    refined : (n_members,) whether bandwidths were fitted to labels: then log densities change their level
        from fold to fold, and only differences between classes compare.
    """

    points: Integers
    log_density: Floats
    refined: Bools

    def of_member(self, m: int) -> CrossFitted:
        """Keep those of one member."""
        return CrossFitted(self.points, self.log_density[m : m + 1], self.refined[m : m + 1])


@dataclass(frozen=True, eq=False)
class Pool:
    """Members and their weights.

    Attributes
    ----------
    members : classifiers by class densities, the heaviest first.
    weights : (n_members,) of their log densities.
    temperatures : (n_members,) at which each is calibrated on its own.
    prior : (n_classes,)
    lapse : share of probabilities given to the prior.
    scores : what to expect.
    table : columns about all members tried.
    cross_fitted : log densities of training rows; None of a pool that was saved without them.
    """

    members: Sequence[Member]
    weights: Floats
    temperatures: Floats
    prior: Floats
    lapse: float
    scores: PoolScores
    table: dict[str, Any]
    cross_fitted: CrossFitted | None

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Weighted sums (n_samples, n_classes) of the members' log densities."""
        log_density: Floats = self.weighted_sums(X, self.weights[np.newaxis], computation)[0]
        return log_density

    def weighted_sums(self, X: Floats, weights: Floats, computation: Computation) -> Floats:
        """The same with several sets of weights (n_sets, n_members): (n_sets, n_samples, n_classes)."""
        found = np.zeros((len(weights), len(X), self.prior.size))
        for member, of_member in zip(self.members, weights.T, strict=True):
            log_density = member.log_densities(X, computation)
            for k, weight in enumerate(of_member.tolist()):
                found[k] += weight * log_density
        return found

    def log_score(self, X: Floats, computation: Computation) -> Floats:
        """Log scores (n_samples, n_classes): log prior and weighted log densities."""
        return joint_log_probability(self.log_densities(X, computation), self.prior, 1.0)

    def posterior(self, log_score: Floats) -> Floats:
        """Logarithms of probabilities, from log scores."""
        return log_probability(log_score, self.prior, self.lapse)


@dataclass(frozen=True, eq=False)
class Thinning:
    """How the classes of a pool are represented where rows are many.

    Attributes
    ----------
    held_out : rows of thinned classes that are in no cell, by which the pool is calibrated.
    classes : the representatives of each class, None for one whose rows have kernels each.
    kinds : the units that representatives are averaged in.
    importance : for each class (n_features,) what weighs squared differences in the first of them.
    standard : units in which averages can be brought back to those of the table.
    n_rows : how many training rows were given.
    calibration : what is known of rows that were held out, if `held_out` has none because the model was saved
        without rows: then `data` has averages of rows, without numbers (-1).
    """

    held_out: LabelledRows
    classes: Sequence[Representatives | None]
    kinds: Sequence[ScaleKind]
    importance: Sequence[Floats]
    standard: Scale
    n_rows: int
    calibration: Calibration | None = None

    def log_densities_without(
        self, member: Member, data: LabelledRows, points: Integers, X: Floats
    ) -> Floats:
        """Log densities (n_points, n_classes) of X by a member without some of the rows that are compared.

        Only classes that are not thinned know any of these rows.
        """
        log_density = member.log_densities(X, Computation())
        whole = np.array([of_class is None for of_class in self.classes])
        inside = points < len(data.X)
        if inside.any():
            without = member_without_rows(member, data, points[inside], X[inside])
            log_density[np.ix_(inside, whole)] = without[:, whole]
        return known(log_density)


@dataclass(frozen=True, eq=False, kw_only=True)
class PoolModel(LocalModel):
    """A pool of members, each with a density for each class.

    Attributes
    ----------
    pool : members, weights, and what to expect of them.
    thinning : how classes are represented, if some are thinned; then `data` has the rows that are nearest to
        the centres of their cells, with the weights of these.
    """

    pool: Pool
    thinning: Thinning | None = None

    @property
    def temperature(self) -> float:
        """1, since the weights have the temperature in them."""
        return 1.0

    @property
    def lapse(self) -> float:
        """Share of every probability that is given to the prior."""
        return self.pool.lapse

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Weighted sums (n_samples, n_classes) of the members' log densities."""
        return self.pool.log_densities(X, computation)

    def alone(self, m: int) -> PoolModel:
        """Take one member, at the temperature at which it is calibrated on its own."""
        kept = self.pool.cross_fitted
        pool = replace(
            self.pool,
            members=[self.pool.members[m]],
            weights=1.0 / self.pool.temperatures[m : m + 1],
            temperatures=self.pool.temperatures[m : m + 1],
            cross_fitted=None if kept is None else kept.of_member(m),
        )
        return replace(self, pool=pool)

    @property
    def knows_typicality(self) -> bool:
        """Whether log densities of rows left out are known; an earlier corral did not keep them."""
        return self.pool.cross_fitted is not None

    @cached_property
    def compared_rows(self) -> LabelledRows:
        """Training rows that samples are compared with."""
        return self.data if self.thinning is None else self.data.extended(self.thinning.held_out)

    @property
    def n_rows(self) -> int:
        """How many training rows were given."""
        return super().n_rows if self.thinning is None else self.thinning.n_rows

    @cached_property
    def trust(self) -> Trust:
        """Training rows, each left out, as a yardstick for samples; computed when it is first needed."""
        if self._calibration is None:
            return Trust(self)
        both = np.array([self.pool.weights, self._likeness_weights])
        return TrustWithoutRows(
            self, self._calibration, Estimates(*np.tensordot(both, self._cross_fitted.log_density, 1))
        )

    @property
    def _calibration(self) -> Calibration | None:
        return None if self.thinning is None else self.thinning.calibration

    @property
    def has_rows(self) -> bool:
        """Whether training rows are known, and not only averages of them."""
        return self._calibration is None

    @property
    def has_all_rows(self) -> bool:
        """Whether `training` has all rows that were given, and not only those that a file has kept."""
        return self.has_rows and len(self.training.X) == self.n_rows

    def rows_by_number(self, numbers: Integers) -> Floats:
        """Training rows (n_numbers, n_features) by their positions among those that were given."""
        if self.thinning is None:
            return super().rows_by_number(numbers)
        rows = self.compared_rows
        order = np.argsort(rows.numbers, kind="stable")
        return rows.X[order[np.searchsorted(rows.numbers[order], numbers)]]

    def rows_behind(self, a: int) -> Integers:
        """How many training rows each row of a class in `data` stands for."""
        thinned = None if self.thinning is None else self.thinning.classes[a]
        return super().rows_behind(a) if thinned is None else thinned.counts

    def examples(self, a: int) -> Examples:
        """Rows of a class to look at: of a thinned class, some that are in no cell."""
        if self.thinning is None or self.thinning.classes[a] is None or not self.has_rows:
            return super().examples(a)
        of_class = self.thinning.held_out.members()[a]
        at = of_class[evenly_spread(of_class.size)]
        nothing = np.full(at.size, -1)
        return self.examples_of(self.thinning.held_out, at, nothing, nothing)

    def calibration_points(self) -> Integers:
        """Which of the compared rows are left out, one by one: those that the search has left out."""
        return self._cross_fitted.points

    @cached_property
    def _likeness_weights(self) -> Floats:
        """Weights (n_members,) with which members count alike: inverse spreads of their log densities."""
        kept = self._cross_fitted
        if self._calibration is None:
            codes = self.compared_rows.codes[kept.points]
            weights = weigh_points(self.compared_rows, kept.points)
        else:
            codes, weights, _ = self._calibration
        own = self._left_out[:, np.arange(codes.size), codes]
        spreads = [medians_and_spread(of_member, codes, weights, self.prior.size)[1] for of_member in own]
        return 1.0 / (np.array(spreads) * len(spreads))

    @cached_property
    def yardstick(self) -> PoolModel:
        """The pool with weights by which members count alike; see `trust`."""
        return replace(self, pool=replace(self.pool, weights=self._likeness_weights))

    def estimates(self, X: Floats, computation: Computation) -> Estimates:
        """Log densities and likenesses (n_samples, n_classes), in the time of one of them."""
        both = np.array([self.pool.weights, self._likeness_weights])
        return Estimates(*self.pool.weighted_sums(X, both, computation))

    def leave_out(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Estimates of rows without themselves, and without what was learnt from their fold.

        The latter is known of the rows as they are. Where they are asked about in other variables, what their
        fold adds is taken to be in proportion to the number of variables, and at most what it adds there.
        Refined bandwidths keep their folds: those of other folds would give densities of another level.
        """
        kept = self._cross_fitted
        at = np.searchsorted(kept.points, points)
        rows = self.compared_rows.X[points]
        as_they_are = np.array_equal(rows, X, equal_nan=True)
        share = np.minimum((~np.isnan(X)).sum(axis=1) / np.maximum((~np.isnan(rows)).sum(axis=1), 1), 1.0)
        found = np.zeros((2, points.size, self.prior.size))
        for m, member in enumerate(self.pool.members):
            log_density = self._left_out[m, at]
            if not as_they_are:
                log_density = self._without(member, points, X)
                if not kept.refined[m]:
                    log_density += share[:, np.newaxis] * self._gains[m, at]
            found[0] += self.pool.weights[m] * log_density
            found[1] += self._likeness_weights[m] * log_density
        return Estimates(*found)

    @cached_property
    def _left_out(self) -> Floats:
        """Log densities (n_members, n_points, n_classes) of rows as they are, left out."""
        kept = self._cross_fitted
        found = kept.log_density.copy()
        for m in np.flatnonzero(kept.refined).tolist():
            rows = self.compared_rows.X[kept.points]
            found[m] = self._without(self.pool.members[m], kept.points, rows)
        return found

    @cached_property
    def _gains(self) -> Floats:
        """What log densities (n_members, n_points, n_classes) of rows gain where their fold is not known."""
        kept = self._cross_fitted
        gains, rows = np.zeros(kept.log_density.shape), self.compared_rows.X[kept.points]
        for m in np.flatnonzero(~kept.refined).tolist():
            gains[m] = kept.log_density[m] - self._without(self.pool.members[m], kept.points, rows)
        return gains

    def _without(self, member: Member, points: Integers, X: Floats) -> Floats:
        with threadpool_limits(1, user_api="blas"):
            if self.thinning is not None:
                return self.thinning.log_densities_without(member, self.data, points, X)
            return known(member_without_rows(member, self.data, points, X))

    @property
    def _cross_fitted(self) -> CrossFitted:
        if self.pool.cross_fitted is None:
            raise ValueError(
                "the model comes from a file without log densities of rows left out, which an earlier corral "
                "has written: fit it again."
            )
        return self.pool.cross_fitted


def learn_pool(
    training: TrainingRows,
    data: LabelledRows,
    prior: Floats,
    min_effect: float,
    random: np.random.RandomState,
    computation: Computation,
    *,
    empirical: bool,
    scales: Mapping[ScaleKind, Scale] | None = None,
) -> PoolModel:
    """Learn a pool, see `fit_pool`, and what marks each class whatever the pool uses."""
    differences = learn_contrast(data, min_effect)
    return PoolModel(
        labels=data.labels,
        counts=data.counts,
        prior=prior,
        relevant=differences.relevant,
        n_copies=data.n_copies,
        training=training,
        data=data,
        min_effect=min_effect,
        learnt_contrast=differences,
        pool=fit_pool(data, prior, random, computation, empirical=empirical, scales=scales),
    )


@dataclass(frozen=True, eq=False)
class RowsInUnits:
    """Rows in the units of all kinds, which are learnt from all rows, since they do not look at labels.

    Attributes
    ----------
    data : the rows as they were given.
    scales : by kind.
    scaled : (n_rows, n_features) by kind.
    rank : (n_rows,) their order by value, so that random choices do not depend on the order of rows.
    mixed : whether values are missing or levels, also if not in these rows.
    """

    data: LabelledRows
    scales: Mapping[ScaleKind, Scale]
    scaled: dict[ScaleKind, Floats]
    rank: Integers
    mixed: bool

    @classmethod
    def learn(cls, data: LabelledRows, kinds: Sequence[Kind], max_knots: int | None = None) -> RowsInUnits:
        """Learn the units of some kinds of members, and ranks, by which variables are selected.

        If `max_knots` is given, it limits the values at which ranks are known, and units tell of no row.
        """
        scales = {
            kind: learn_scale(data.X, data.weights, kind, levels=data.levels) for kind in wanted_units(kinds)
        }
        if max_knots is not None:
            scales = {kind: scale.with_fewer_knots(max_knots) for kind, scale in scales.items()}
            scales["range"] = blurred_range(data.X)
        return cls.in_units(data, scales)

    @classmethod
    def in_units(cls, data: LabelledRows, scales: Mapping[ScaleKind, Scale]) -> RowsInUnits:
        """Bring rows into units that are known, perhaps from more rows than these."""
        scaled = {kind: scale.transform(data.X) for kind, scale in scales.items()}
        return cls(data, scales, scaled, np.argsort(np.lexsort(data.X.T)), data.mixed)

    def take(self, positions: Integers) -> RowsInUnits:
        """Keep some of the rows, and the units."""
        scaled = {kind: rows[positions] for kind, rows in self.scaled.items()}
        return RowsInUnits(self.data.take(positions), self.scales, scaled, self.rank[positions], self.mixed)

    def choose(self, max_rows: Integers, random: np.random.RandomState) -> Integers:
        """Positions of at most so many rows of each class, in order."""
        chosen = [
            members
            if members.size <= limit
            else random.choice(members[np.argsort(self.rank[members])], limit, replace=False)
            for members, limit in zip(self.data.members(), max_rows, strict=True)
        ]
        return np.sort(np.concatenate(chosen))

    def shares(self, max_rows: int) -> Integers:
        """How many rows each class may have so that there are about `max_rows`, and no class has too few."""
        sizes = np.bincount(self.data.codes, minlength=self.data.labels.size)  # rows, not weights, take time
        shares: Integers = np.maximum(np.ceil(sizes / sizes.sum() * max_rows), _FEWEST_ROWS).astype(np.int64)
        return shares


def fit_pool(
    data: LabelledRows,
    prior: Floats,
    random: np.random.RandomState,
    computation: Computation,
    kinds: Sequence[Kind] = KINDS,
    *,
    empirical: bool = False,
    scales: Mapping[ScaleKind, Scale] | None = None,
) -> Pool:
    """Try members of some kinds, weigh them, and fit those that are kept to all rows.

    Parameters
    ----------
    data : the rows; those that share a unit are left out together.
    prior : (n_classes,)
    random : chooses folds, and rows where there are many.
    computation : threads and progress.
    kinds : members to try.
    empirical : whether the prior was estimated from the rows: then no row has a say in the prior that it is
        judged by, either.
    scales : units, if they are known of more rows than these.
    """
    whole = RowsInUnits.learn(data, kinds) if scales is None else RowsInUnits.in_units(data, scales)
    found = search(whole, prior, 1.0 / (data.n + 2.0), random, computation, kinds, empirical=empirical)
    with threadpool_limits(1, user_api="blas"):
        parallel = Parallel(n_jobs=computation.n_jobs, require="sharedmem", return_as="generator")
        members = list(
            parallel(delayed(_build)(candidate, whole, prior, found.seed) for candidate in found.kept)
        )
    return Pool(
        members=members,
        weights=found.weights,
        temperatures=np.exp([-candidate.log_power for candidate in found.kept]),
        prior=prior,
        lapse=found.trial.lapse,
        scores=found.scores,
        table=found.table,
        cross_fitted=CrossFitted(
            found.points,
            np.array([candidate.log_density for candidate in found.kept]),
            found.refined,
        ),
    )


class Search(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    candidates : all kinds of members that were tried.
    log_weights : (n_candidates,) logarithms of their weights, -inf for those that are dropped.
    order : which candidates are kept, the heaviest first.
    trial, target : points, folds, and what was predicted.
    chosen : (n_chosen,) which rows the search has read.
    scores : what to expect.
    table : columns about all candidates.
    seed : of the rows by which bandwidths are refined.
    """

    candidates: Sequence[Candidate]
    log_weights: Floats
    order: Sequence[int]
    trial: Trial
    target: Target
    chosen: Integers
    scores: PoolScores
    table: dict[str, Any]
    seed: int

    @property
    def kept(self) -> list[Candidate]:
        """Candidates that are kept, the heaviest first."""
        return [self.candidates[m] for m in self.order]

    @property
    def weights(self) -> Floats:
        """Their weights."""
        weights: Floats = np.exp(self.log_weights[list(self.order)])
        return weights

    @property
    def points(self) -> Integers:
        """Which rows were left out, one by one."""
        points: Integers = self.chosen[self.trial.points]
        return points

    @property
    def refined(self) -> Bools:
        """(n_kept,) whether bandwidths were fitted to labels."""
        return np.array([candidate.kind.covariance is None for candidate in self.kept])


def search(
    whole: RowsInUnits,
    prior: Floats,
    lapse: float,
    random: np.random.RandomState,
    computation: Computation,
    kinds: Sequence[Kind] = KINDS,
    *,
    empirical: bool = False,
) -> Search:
    """Try members of some kinds on some of the rows, and weigh them; see `fit_pool`."""
    chosen = whole.choose(whole.shares(SEARCH_ROWS), random)
    some = whole.take(chosen)
    points = some.choose(np.full(prior.size, max(SEARCH_POINTS // prior.size, 1)), random)
    trial = Trial.prepare(some.data, points, prior, lapse, random)
    target = make_target(some.data, points, prior)
    seed, seed_of_parts = random.randint(2**31 - 1, size=2).tolist()
    parallel = Parallel(n_jobs=computation.n_jobs, require="sharedmem", return_as="generator")
    with (
        threadpool_limits(1, user_api="blas"),  # so that sums have the same bits on any number of processors
        progress(len(kinds), "Search", computation.verbose) as advance,
    ):
        candidates = []
        for candidate in parallel(delayed(attempt)(kind, some, trial, target, seed) for kind in kinds):
            candidates.append(candidate)
            advance(1)
        log_weights = weigh(candidates, target)
        parts = divide(some, np.random.RandomState(seed_of_parts))
        scores = judge(candidates, trial, target, parts, empirical=empirical)
    table = _table(candidates, log_weights, trial, target)
    order = heaviest_first(candidates, log_weights)
    return Search(candidates, log_weights, order, trial, target, chosen, scores, table, seed)


def heaviest_first(candidates: Sequence[Candidate], log_weights: Floats) -> list[int]:
    """Which candidates are kept, in the order of their shares."""
    heaviest = np.argsort(-shares_of(candidates, log_weights), kind="stable")
    return [m for m in heaviest.tolist() if np.isfinite(log_weights[m])]


def make_target(data: LabelledRows, points: Integers, prior: Floats) -> Target:
    """Weigh points as the priors weigh their classes; those without another row in their class not at all."""
    codes = data.codes[points]
    weights = np.ones(len(data.X)) if data.weights is None else data.weights
    _, unit = np.unique(data.units * np.int64(prior.size) + data.codes, return_inverse=True)
    is_alone = np.bincount(unit)[unit] == np.bincount(data.codes)[data.codes]
    sums = np.bincount(codes, weights[points], minlength=prior.size)
    shares = weights[points] / np.maximum(sums, 1e-300)[codes] * prior[codes]
    target = Target(codes, shares, _log(prior), effective_number(weights[points]))
    return target.without(is_alone[points])


# ----------------------------------------------------------------------------------------- candidates


def attempt(kind: Kind, rows: RowsInUnits, trial: Trial, target: Target, seed: int) -> Candidate:
    """Predict all points by one kind of member, and choose its bandwidth."""
    bandwidths, pulls = kind.kernels()
    log_density = np.empty((bandwidths.size, trial.points.size, trial.prior.size))
    parts = trial.folds % kind.n_parts
    for part in np.unique(parts[trial.points]):
        outside = np.flatnonzero(parts != part)
        if not outside.size:
            outside = np.arange(len(parts))
        frames = frames_of_kind(kind, rows.take(outside), trial.prior, seed)
        inside = parts[trial.points] == part
        log_density[:, inside] = left_out_log_densities(
            frames, rows.data, rows.scaled[kind.scale], trial.points[inside], bandwidths, pulls
        )
    return Candidate.calibrate(kind, known(log_density), target)


def left_out_log_densities(
    frames: Sequence[AnyFrame],
    data: LabelledRows,
    scaled: Floats,
    points: Integers,
    bandwidths: Floats,
    pulls: Floats,
    x: Floats | None = None,
) -> Floats:
    """Log densities (n_bandwidths, n_points, n_classes) of some rows by all others of other units.

    If `x` (n_points, n_features) is given, it stands in the place of these rows.

    Distances come from matrix products of coordinates relative to the mean of the class. What they lose is
    small against the squared length of the coordinates, and so against the exponent of any row, unless row
    and point both lie far from the mean and near each other; training rows in standard units do not lie
    further than the root of their number.
    """
    weights = np.ones(len(scaled)) if data.weights is None else data.weights
    scaled_points = scaled[points] if x is None else x
    log_density = np.empty((bandwidths.size, points.size, len(frames)))
    for y, (frame, of_class) in enumerate(zip(frames, data.members(), strict=True)):
        if isinstance(frame, MixedFrame):
            log_density[:, :, y] = mixed_log_densities(
                frame,
                scaled[of_class],
                weights[of_class],
                data.units[of_class],
                scaled_points,
                data.units[points],
                bandwidths,
                pulls,
            )
            continue
        c = frame.coordinates(scaled[of_class])
        z = frame.coordinates(scaled_points)
        log_mean = np.empty((bandwidths.size, points.size))
        step = max(1, _BLOCK // max(of_class.size, 1))
        for first in range(0, points.size, step):
            block = slice(first, first + step)
            part = np.empty((bandwidths.size, z[block].shape[0]))
            kernels.pulled_log_means(
                z[block] @ c.T,
                0.5 * np.vecdot(z[block], z[block]),
                0.5 * np.vecdot(c, c),
                weights[of_class],
                data.units[points[block]],
                data.units[of_class],
                pulls,
                bandwidths**-2.0,
                np.empty((1, max(of_class.size, 1))),
                part,
            )
            log_mean[:, block] = part
        n_axes = frame.factor.shape[1]
        log_norm = n_axes * (np.log(bandwidths) + 0.5 * np.log(2.0 * np.pi)) - frame.log_volume
        log_density[:, :, y] = log_mean - log_norm[:, np.newaxis]
    return log_density


def member_without_rows(member: Member, data: LabelledRows, points: Integers, X: Floats) -> Floats:
    """Log densities (n_points, n_classes) of X by a member without some rows and those of their units.

    `X` (n_points, n_features) stands in the place of the rows. Means, covariances and bandwidths keep them.
    """
    scaled, x = member.scale.transform(data.X), member.scale.transform(X)
    gaps = np.isnan(x)
    complete = np.flatnonzero(~gaps.any(axis=1))
    log_density = np.empty((points.size, len(member.classes)))
    for at, missing in [(complete, np.empty(0, dtype=np.int64)), *patterns(gaps)]:
        kept = np.delete(np.arange(x.shape[1]), missing)
        frames = [_frame_of(mixture, kept) for mixture in member.classes]
        first = member.classes[0]
        bandwidth = first.bandwidth if isinstance(first, MixedMixture) else 1.0  # or it is in the factors
        log_density[at] = left_out_log_densities(
            frames, data, scaled, points[at], np.array([bandwidth]), np.array([first.pull]), x[at]
        )[0]
    return log_density


def _frame_of(mixture: Mixture | MixedMixture, kept: Integers) -> AnyFrame:
    """The coordinates of a density of some of the variables; mixed ones know of gaps by themselves."""
    if isinstance(mixture, MixedMixture):
        return mixture.frame
    part = mixture.marginal(kept)
    return ClassFrame(part.variables, part.mean, part.factor, part.log_volume)


def frames_of_kind(kind: Kind, rows: RowsInUnits, prior: Floats, seed: int) -> Sequence[AnyFrame]:
    """Learn what a member of this kind knows of some rows."""
    data, scaled = rows.data, rows.scaled[kind.scale]
    variables = _choose_variables(data, rows.scaled["rank"])
    if rows.mixed:
        frames = learn_mixed_frames(
            kind.covariance or "none",
            scaled,
            data.codes,
            data.weights,
            prior.size,
            variables,
            data.level_counts,
        )
        return frames if kind.covariance is not None else _refine_mixed(frames, rows, scaled, prior, seed)
    if kind.covariance is not None:
        return learn_frames(kind.covariance, scaled, data.codes, data.weights, prior.size, variables)
    if not variables.size:
        return [ClassFrame(variables, np.empty(0), np.empty((0, 0)), 0.0)] * prior.size
    sample = sample_for_refinement(rows, scaled[:, variables], prior, seed)
    theta = refine(sample, _REFINE_DEVIATION)
    frame = ClassFrame(variables, np.zeros(theta.size), np.diag(np.exp(theta)), float(theta.sum()))
    return [frame] * prior.size


def _refine_mixed(
    frames: list[MixedFrame], rows: RowsInUnits, scaled: Floats, prior: Floats, seed: int
) -> list[MixedFrame]:
    """Refine the bandwidths of each variable where values may be missing or levels."""
    if not frames[0].variables.size + frames[0].levels.columns.size:
        return frames
    chosen, points = choose_for_refinement(rows, seed)
    some = rows.take(chosen).data
    sample = MixedSample(
        scaled[chosen][points],
        scaled[chosen],
        some.units[points],
        some.units,
        np.ones(chosen.size) if some.weights is None else some.weights,
        np.searchsorted(some.codes, np.arange(prior.size + 1)),
        make_target(some, points, prior),
        frames,
        some.level_counts[frames[0].levels.columns],
    )
    return refined_frames(sample, refine_mixed(sample, _REFINE_DEVIATION))


def _choose_variables(data: LabelledRows, ranks: Floats) -> Integers:
    """Columns of measurements that vary; of a wide table those in which the ranks of classes differ most."""
    variables = np.flatnonzero((spreads(ranks) > 0.0) & (data.level_counts == 0))
    limit = int(np.clip(0.5 * data.n, _FEWEST_VARIABLES, _MOST_VARIABLES))
    if variables.size <= limit:
        return variables
    statistics = rank_statistics(
        without_gaps(ranks[:, variables]), data.codes, data.weights, data.labels.size
    ).max(axis=0)
    strongest = np.argsort(-statistics, kind="stable")[:limit]
    return np.sort(variables[strongest])


def choose_for_refinement(rows: RowsInUnits, seed: int) -> tuple[Integers, Integers]:
    """Choose rows, sorted by class, and points among them, in proportion to the classes."""
    random = np.random.RandomState(seed)
    chosen = rows.choose(rows.shares(_REFINE_ROWS), random)
    chosen = chosen[np.argsort(rows.data.codes[chosen], kind="stable")]
    sorted_rows = rows.take(chosen)
    return chosen, sorted_rows.choose(sorted_rows.shares(_REFINE_POINTS), random)


def sample_for_refinement(rows: RowsInUnits, scaled: Floats, prior: Floats, seed: int) -> RefinedRows:
    """Put rows and points for refined bandwidths together."""
    chosen, points = choose_for_refinement(rows, seed)
    some = rows.take(chosen).data
    weights = np.ones(chosen.size) if some.weights is None else some.weights
    centred = scaled[chosen] - weights @ scaled[chosen] / weights.sum()
    return RefinedRows(
        centred[points],
        some.units[points],
        centred,
        some.units,
        weights,
        np.searchsorted(some.codes, np.arange(prior.size + 1)),
        make_target(some, points, prior),
    )


def _build(candidate: Candidate, rows: RowsInUnits, prior: Floats, seed: int) -> Member:
    """Fit a member to all rows."""
    kind, data = candidate.kind, rows.data
    scaled = rows.scaled[kind.scale]
    frames = frames_of_kind(kind, rows, prior, seed)
    classes = [
        density_of(scaled[at], data.weights_of(at), frame, candidate.bandwidth, candidate.pull)
        for frame, at in zip(frames, data.members(), strict=True)
    ]
    return Member(kind.name, rows.scales[kind.scale], classes)


def density_of(
    scaled: Floats, weights: Floats | None, frame: AnyFrame, bandwidth: float, pull: float
) -> Mixture | MixedMixture:
    """Put a kernel on each row of a class."""
    if isinstance(frame, MixedFrame):
        return MixedMixture.of_rows(scaled, weights, frame, bandwidth, pull)
    return Mixture.of_rows(scaled, weights, frame, bandwidth, pull)


# -------------------------------------------------------------------------------------------- weights


def weigh(candidates: Sequence[Candidate], target: Target) -> Floats:
    """Logarithms of the weights, -inf for candidates that are dropped."""
    kept = list(range(len(candidates)))
    while True:
        fitted = fit_weights([candidates[m] for m in kept], target)
        log_weights = np.full(len(candidates), -np.inf)
        log_weights[kept] = fitted
        shares = shares_of(candidates, log_weights)[kept]
        if shares.min() >= _LEAST_SHARE and len(kept) <= _MOST_MEMBERS:
            return log_weights
        kept = [m for m in kept if m != kept[int(shares.argmin())]]


def fit_weights(candidates: Sequence[Candidate], target: Target) -> Floats:
    """Logarithms of the weights of candidates, all of which are kept."""
    log_density = np.array([candidate.log_density for candidate in candidates])
    losses = np.array([candidate.losses[candidate.best] for candidate in candidates]) @ target.weights
    log_powers = np.array([candidate.log_power for candidate in candidates])
    return fit_log_weights(log_density, target, log_powers + log_prior_shares(losses), _WEIGHT_DEVIATION)[0]


def log_prior_shares(losses: Floats) -> Floats:
    """Logarithms of the shares that members with such log losses (n_members,) are expected to have."""
    behind = np.minimum((losses - losses.min()) / _LARGER_LOSS, _FURTHEST_BEHIND)
    log_shares: Floats = -behind - np.log(np.exp(-behind).sum())
    return log_shares


def shares_of(candidates: Sequence[Candidate], log_weights: Floats) -> Floats:
    """Shares of the pool, weights being measured by those at which each member is calibrated."""
    log_powers = np.array([candidate.log_power for candidate in candidates])
    shares: Floats = np.exp(log_weights - log_powers)
    shares /= shares.sum()
    return shares


def judge(
    candidates: Sequence[Candidate],
    trial: Trial,
    target: Target,
    parts: Integers,
    *,
    empirical: bool,
) -> PoolScores:
    """Judge each part of the rows by what is chosen for the others: bandwidths, weights, perhaps priors."""
    return _scores(cross_fitted(candidates, trial, target, parts, empirical=empirical), trial)


def cross_fitted(
    candidates: Sequence[Candidate],
    trial: Trial,
    target: Target,
    parts: Integers,
    *,
    empirical: bool,
) -> Floats:
    """Log probabilities (n_points, n_classes) of each part of the rows by what is chosen for the others."""
    log_proba = np.empty(candidates[0].log_density.shape)
    data = trial.data
    row_weights = np.ones(parts.size) if data.weights is None else data.weights
    for part in np.unique(parts):
        inside = parts[trial.points] == part
        others = target.without(inside)
        prior = trial.prior
        if empirical and (parts != part).any():
            left = np.where(parts == part, 0.0, row_weights)
            shares = np.bincount(data.codes, left, minlength=prior.size) / left.sum()
            # A class that is all in this part has not been ruled out.
            prior = (1.0 - trial.lapse) * shares + trial.lapse * prior
        refitted = [candidate.recalibrated(others) for candidate in candidates]
        weights = np.exp(weigh(refitted, others))
        log_density = np.array([candidate.log_density[inside] for candidate in refitted])
        score = _log(prior) + np.tensordot(weights, log_density, 1)
        log_proba[inside] = log_probability(score, prior, trial.lapse)
    return log_proba


def divide(rows: RowsInUnits, random: np.random.RandomState) -> Integers:
    """Divide the units into fifths (n_rows,), without regard to classes.

    If each part had its share of every class, as folds have, priors from the others would know the more
    frequent ones, and noise would seem to be predictable.
    """
    _, unit = np.unique(rows.data.units, return_inverse=True)
    first = np.full(unit.max() + 1, unit.size)
    np.minimum.at(first, unit, np.argsort(np.argsort(rows.rank)))
    by_value = np.argsort(np.argsort(first))
    parts: Integers = (random.permutation(first.size) % N_FOLDS)[by_value[unit]]
    return parts


def _scores(log_proba: Floats, trial: Trial) -> PoolScores:
    codes, weights = trial.codes, trial.weights
    is_hit = log_proba.argmax(axis=1) == codes
    right = np.where(weights > 0.0, log_proba[np.arange(codes.size), codes], 0.0)
    of_rows = np.ones(codes.size) if trial.data.weights is None else trial.data.weights[trial.points]
    totals = np.bincount(codes, of_rows, minlength=trial.prior.size)
    hits = np.bincount(codes, of_rows * is_hit, minlength=trial.prior.size)
    recall = np.divide(hits, totals, out=np.full(totals.size, np.nan), where=totals > 0.0)
    accuracy = min(float(weights @ is_hit), 1.0)  # the weights sum to 1 but for rounding
    return PoolScores(accuracy, -float(weights @ right), float(np.nanmean(recall)), recall)


def _table(
    candidates: Sequence[Candidate], log_weights: Floats, trial: Trial, target: Target
) -> dict[str, Any]:
    """Tabulate all candidates, each on its own at its temperature."""
    scores = []
    for candidate in candidates:
        score = target.log_prior + np.exp(candidate.log_power) * candidate.log_density
        scores.append(_scores(log_probability(score, trial.prior, trial.lapse), trial))
    return {
        "member": np.array([candidate.kind.name for candidate in candidates], dtype=object),
        "scale": np.array([candidate.kind.scale for candidate in candidates], dtype=object),
        "bandwidth": np.array([candidate.bandwidth for candidate in candidates]),
        "pull": np.array([candidate.pull for candidate in candidates]),
        "temperature": np.exp([-candidate.log_power for candidate in candidates]),
        "accuracy": np.array([score.accuracy for score in scores]),
        "log_loss": np.array([score.log_loss for score in scores]),
        "weight": np.exp(log_weights),
        "share": shares_of(candidates, log_weights),
    }


def _log(prior: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(prior)
    return logarithms

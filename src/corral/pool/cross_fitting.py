"""Members of each kind, tried by leave-one-out; those that are kept are built of all rows.

Every point is predicted by rows of other units alone, and whatever was fitted to labels (frames and refined
bandwidths) is fitted anew without the fold of the point. One bandwidth and one temperature for each member
see all points; `pool.PoolScores` are of choices that do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.missing import without_gaps
from corral.data.scaling import ScaleKind, spreads
from corral.data.subsample import proportional_subsample
from corral.pool.bandwidths import RefinementSample, refine
from corral.pool.calibration import Target, fit_log_weights
from corral.pool.densities import Member, Mixture
from corral.pool.fold_plan import Trial, make_target
from corral.pool.leave_one_out import left_out_log_densities
from corral.pool.member_specs import Kind, RowsInUnits
from corral.pool.selection import rank_statistics
from corral.pool.transforms import ClassTransform, learn_transforms
from corral.posterior import known, log_posterior

# Refined bandwidths are fitted to at most so many points and rows.
_REFINE_POINTS = 300
_REFINE_ROWS = 1500

# Standard deviation of the logarithm of a bandwidth by variable. Less makes hardly a difference to a pool,
# since its weights do not trust what fits its own fold alone.
_REFINE_DEVIATION = 0.4


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


def attempt(
    kinds: Sequence[Kind], rows: RowsInUnits, trial: Trial, target: Target, seed: int, folds: Folds
) -> list[Candidate]:
    """Predict all points by kinds of members that share a frame, and choose the bandwidth of each."""
    kernels = [kind.kernels() for kind in kinds]
    bandwidths, pulls = np.concatenate(kernels, axis=1)
    kind = kinds[0]
    log_density = np.empty((bandwidths.size, trial.points.size, trial.prior.size))
    for inside, others, scaled in folds[kind.n_parts]:
        transforms = learn_member(kind, others, trial.prior, seed)
        log_density[:, inside] = left_out_log_densities(
            transforms, rows.data, scaled[kind.scale], trial.points[inside], bandwidths, pulls
        )
    n_divisions = kind.n_divisions(trial.n_divisions)
    for division in range(n_divisions, trial.n_divisions):
        again = trial.division == division % n_divisions
        log_density[:, trial.division == division] = log_density[:, again]
    ends = np.cumsum([of_kind.size for of_kind, _ in kernels])
    tried = np.split(known(log_density), ends[:-1])
    return [Candidate.calibrate(*each, target) for each in zip(kinds, tried, strict=True)]


class Fold(NamedTuple):
    """Points that are predicted by frames that do not know them.

    Attributes
    ----------
    inside : (n_points,) which points they are.
    others : rows outside of the fold.
    scaled : (n_rows, n_features) all rows with kernels in the units of the others, by kind of units.
    """

    inside: Bools
    others: RowsInUnits
    scaled: Mapping[ScaleKind, Floats]


# By number of parts into which rows are divided.
Folds = Mapping[int, Sequence[Fold]]


def folds_of(
    rows: RowsInUnits, trial: Trial, kinds: Sequence[Kind], learnt_from: RowsInUnits | None = None
) -> Folds:
    """Leave out each part that has points.

    Frames are learnt from the same rows in units of their own, or from `learnt_from` if it is given: more
    rows, in the same units. Then a row is outside of a part if its unit is.
    """
    folds: dict[int, list[Fold]] = {}
    for n_parts in sorted({kind.n_parts for kind in kinds}):
        divided_so = [kind for kind in kinds if kind.n_parts == n_parts]
        n_divisions = divided_so[0].n_divisions(trial.n_divisions)
        folds[n_parts] = [
            _leave_out(rows, trial, division, divided_so, part, learnt_from)
            for division in range(n_divisions)
            for part in np.unique(trial.divisions[division][trial.points] % n_parts).tolist()
        ]
    return folds


def _leave_out(
    rows: RowsInUnits,
    trial: Trial,
    division: int,
    kinds: Sequence[Kind],
    part: int,
    learnt_from: RowsInUnits | None,
) -> Fold:
    """Leave out one part of a division; see `folds_of`."""
    parts = trial.divisions[division] % kinds[0].n_parts
    inside = (trial.division == division) & (parts[trial.points] == part)
    left_out = (parts == part) & (parts != part).any()  # if all rows are in one part, nothing else is there
    if learnt_from is None:
        return Fold(inside, *rows.without(left_out, kinds))
    gone = np.isin(learnt_from.data.units, trial.data.units[left_out])
    return Fold(inside, learnt_from.take(np.flatnonzero(~gone | gone.all())), rows.scaled)


def learn_member(kind: Kind, rows: RowsInUnits, prior: Floats, seed: int) -> list[ClassTransform]:
    """Learn the transforms that a member of this kind has from some rows."""
    data, scaled = rows.data, rows.scaled[kind.scale]
    transforms = learn_transforms(
        kind.covariance or "none",
        scaled,
        data.codes,
        data.weights,
        prior.size,
        _choose_variables(rows),
        data.level_counts,
    )
    if kind.covariance is not None or not transforms[0].used.size:
        return transforms
    return refine(sample_for_refinement(rows, scaled, transforms, prior, seed), _REFINE_DEVIATION)


def _choose_variables(rows: RowsInUnits) -> Integers:
    """Columns of measurements that vary; of a wide table those in which the ranks of classes differ most."""
    data, ranks = rows.data, rows.scaled["rank"]
    variables = np.flatnonzero((spreads(ranks) > 0.0) & (data.level_counts == 0))
    if variables.size <= rows.most_variables:
        return variables
    statistics = rank_statistics(
        without_gaps(ranks[:, variables]), data.codes, data.weights, data.labels.size
    ).max(axis=0)
    strongest = np.argsort(-statistics, kind="stable")[: rows.most_variables]
    return np.sort(variables[strongest])


def choose_for_refinement(rows: RowsInUnits, seed: int) -> tuple[Integers, Integers]:
    """Choose rows, sorted by class, and points among them, in proportion to the classes."""
    random = np.random.RandomState(seed)
    chosen = proportional_subsample(rows.data, rows.rank, _REFINE_ROWS, random)
    chosen = chosen[np.argsort(rows.data.codes[chosen], kind="stable")]
    sorted_rows = rows.take(chosen)
    return chosen, proportional_subsample(sorted_rows.data, sorted_rows.rank, _REFINE_POINTS, random)


def sample_for_refinement(
    rows: RowsInUnits, scaled: Floats, transforms: Sequence[ClassTransform], prior: Floats, seed: int
) -> RefinementSample:
    """Put rows and points for refined bandwidths together."""
    chosen, points = choose_for_refinement(rows, seed)
    some = rows.take(chosen).data
    return RefinementSample(
        points=scaled[chosen][points],
        rows=scaled[chosen],
        unit_of_point=some.units[points],
        unit_of_row=some.units,
        weights=some.all_weights,
        starts=np.searchsorted(some.codes, np.arange(prior.size + 1)),
        target=make_target(some, points, prior),
        transforms=transforms,
    )


def build_member(
    candidate: Candidate, rows: RowsInUnits, sample: RowsInUnits, prior: Floats, seed: int
) -> Member:
    """Put kernels on rows, with transforms that are learnt from a sample, which may be the same rows."""
    kind, data = candidate.kind, rows.data
    scaled = rows.scaled[kind.scale]
    classes = [
        Mixture(scaled[at], data.weights_of(at), transform, candidate.bandwidth, candidate.pull)
        for transform, at in zip(learn_member(kind, sample, prior, seed), data.members(), strict=True)
    ]
    return Member(kind.name, rows.scales[kind.scale], classes)

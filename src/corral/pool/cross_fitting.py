"""Members of each kind, tried by leave-one-out; those that are kept are built of all rows.

Every point is predicted by rows of other groups alone, and whatever is fitted to labels (transforms and
refined bandwidths) is fitted anew without the fold of the point. One bandwidth and one temperature per member
are fitted to all points; `model.PoolScores` come from choices without the part of the point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from corral.array_types import Bools, Floats
from corral.data.scaling import ScaleKind
from corral.pool.calibration import fit_log_weights
from corral.pool.fold_plan import FoldPlan
from corral.pool.member_kind import Kernels
from corral.pool.members import AnyKind, Member
from corral.pool.scaled_rows import ScaledRows
from corral.posterior import finite_log_densities, log_posterior

# Which points (n_points,) a fold has, the rows outside of it, and all rows on the scales of these, by kind.
Fold = tuple[Bools, ScaledRows, Mapping[ScaleKind, Floats]]

# By the number of parts into which rows are divided, and of divisions.
Folds = Mapping[tuple[int, int], Sequence[Fold]]


@dataclass(frozen=True, eq=False)
class TriedMember:
    """Leave-one-out results of one kind of member."""

    kind: AnyKind  # the way it is made
    tried: Floats  # (n_bandwidths, n_points, n_classes) finite log densities with each bandwidth
    log_powers: Floats  # (n_bandwidths,) logarithms of inverse temperatures
    losses: Floats  # (n_bandwidths, n_points) log losses at these temperatures
    best: int  # which bandwidth is taken

    @classmethod
    def calibrate(cls, kind: AnyKind, tried: Floats, plan: FoldPlan) -> TriedMember:
        """Fit a temperature for each bandwidth, and take the best one."""
        log_powers, losses = np.zeros(len(tried)), np.empty(tried.shape[:2])
        start = np.zeros(1)
        for k, log_density in enumerate(tried):
            start, _ = fit_log_weights(log_density[np.newaxis], plan, np.zeros(1), 1.0, start)
            log_powers[k] = start[0]
            log_proba = log_posterior(plan.log_prior + np.exp(start) * log_density)
            losses[k] = plan.losses(log_proba)
        return cls(kind, tried, log_powers, losses, 0).chosen_for(plan)

    def chosen_for(self, plan: FoldPlan) -> TriedMember:
        """Take the bandwidth that is best for some of the points."""
        objective = self.losses @ plan.weights + 0.5 * self.log_powers**2 / plan.count
        return replace(self, best=int(objective.argmin()))

    def recalibrated(self, plan: FoldPlan) -> TriedMember:
        """Take the bandwidth and the temperature that are best for some of the points."""
        chosen = self.chosen_for(plan)
        start = np.array([chosen.log_power])
        fitted, _ = fit_log_weights(chosen.log_density[np.newaxis], plan, np.zeros(1), 1.0, start)
        log_powers = chosen.log_powers.copy()
        log_powers[chosen.best] = fitted[0]
        return replace(chosen, log_powers=log_powers)

    @property
    def bandwidth(self) -> float:
        """Bandwidth of its kernels."""
        return float(self.kind.kernels().bandwidths[self.best])

    @property
    def shrinkage(self) -> float:
        """How much of the distance to the mean of their class is left to rows."""
        return float(self.kind.kernels().shrinkages[self.best])

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
    kinds: Sequence[AnyKind], rows: ScaledRows, plan: FoldPlan, seed: int, folds: Folds
) -> list[TriedMember]:
    """Predict all points by kinds of members that learn the same, and choose the bandwidth of each."""
    kernels = [kind.kernels() for kind in kinds]
    tried_together, kind = Kernels(*np.concatenate(kernels, axis=1)), kinds[0]
    n_divisions = kind.n_divisions(plan.n_divisions)
    log_density = np.empty((tried_together.bandwidths.size, plan.points.size, plan.prior.size))
    for inside, others, scaled in folds[kind.n_parts, n_divisions]:
        learnt = kind.learn(others, plan.prior, seed)
        log_density[:, inside] = kind.left_out(
            learnt, rows.data, scaled[kind.scale], plan.points[inside], tried_together
        )
    for division in range(n_divisions, plan.n_divisions):
        again = plan.division == division % n_divisions
        log_density[:, plan.division == division] = log_density[:, again]
    ends = np.cumsum([len(kind_kernels.bandwidths) for kind_kernels in kernels])
    tried = np.split(finite_log_densities(log_density), ends[:-1])
    return [TriedMember.calibrate(*each, plan) for each in zip(kinds, tried, strict=True)]


def folds_of(
    rows: ScaledRows, plan: FoldPlan, kinds: Sequence[AnyKind], learnt_from: ScaledRows | None = None
) -> Folds:
    """Leave out each part that has points.

    Members learn from the same rows on scales of their own, or from `learnt_from` if it is given: more rows,
    on the same scales. Then a row is outside of a part if its group is.
    """
    scales: dict[tuple[int, int], list[ScaleKind]] = {}
    for kind in kinds:
        scales.setdefault((kind.n_parts, kind.n_divisions(plan.n_divisions)), []).append(kind.scale)
    folds: dict[tuple[int, int], list[Fold]] = {key: [] for key in scales}
    for (n_parts, n_divisions), scale_kinds in scales.items():
        for division, fold_numbers in enumerate(plan.divisions[:n_divisions]):
            parts = fold_numbers % n_parts
            for part in np.unique(parts[plan.points]).tolist():
                inside = (plan.division == division) & (parts[plan.points] == part)
                # If all rows are in one part, nothing else is there.
                left_out = (parts == part) & (parts != part).any()
                if learnt_from is None:
                    others, scaled = rows.without(left_out, scale_kinds)
                else:
                    gone = np.isin(learnt_from.data.group_ids, plan.data.group_ids[left_out])
                    others, scaled = learnt_from.take(np.flatnonzero(~gone | gone.all())), rows.scaled
                folds[n_parts, n_divisions].append((inside, others, scaled))
    return folds


def build_member(
    tried_member: TriedMember, rows: ScaledRows, sample: ScaledRows, prior: Floats, seed: int
) -> Member:
    """Build a member of all rows that learns from a sample, which may be the same rows."""
    kind, scaled = tried_member.kind, rows.scaled[tried_member.kind.scale]
    learnt = kind.learn(sample, prior, seed)
    classes = kind.build(learnt, rows.data, scaled, tried_member.bandwidth, tried_member.shrinkage)
    return Member(kind.identifier, rows.scales[kind.scale], classes)

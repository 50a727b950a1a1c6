"""Cross-fitting of members: each point of the fold plan is predicted by a fit that leaves the point out.

A point is a row to predict in one division of the rows into folds (see `fold_plan`). The kernels that predict
a point are on rows of other groups. Transforms and refined bandwidths, which are fitted to labels, are fitted
without the fold of the point. Then one bandwidth and one temperature per member are fitted to all points. For
`model.PoolScores` the bandwidth and the temperature are chosen again without the part of the rows that
contains the point (see `weights.judge`).

`build_member` fits a member that is kept to all rows.
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

# Whether each point is in the fold (n_points,), the rows outside the fold, and by kind of scale all rows on
# the scale that was fitted to the rows outside the fold.
Fold = tuple[Bools, ScaledRows, Mapping[ScaleKind, Floats]]

# Folds by the number of parts of a division and the number of divisions.
Folds = Mapping[tuple[int, int], Sequence[Fold]]


@dataclass(frozen=True, eq=False)
class TriedMember:
    """Cross-fitted log densities of one kind of member, with one temperature for each bandwidth."""

    kind: AnyKind
    tried: Floats  # (n_bandwidths, n_points, n_classes) finite log densities with each bandwidth
    log_powers: Floats  # (n_bandwidths,) logarithms of inverse temperatures
    losses: Floats  # (n_bandwidths, n_points) log losses at these temperatures
    best: int  # index of the chosen bandwidth

    @classmethod
    def calibrate(cls, kind: AnyKind, tried: Floats, plan: FoldPlan) -> TriedMember:
        """Fit a temperature for each bandwidth, and choose the best bandwidth."""
        log_powers, losses = np.zeros(len(tried)), np.empty(tried.shape[:2])
        start = np.zeros(1)
        for k, log_density in enumerate(tried):
            start, _ = fit_log_weights(log_density[np.newaxis], plan, np.zeros(1), 1.0, start)
            log_powers[k] = start[0]
            log_proba = log_posterior(plan.log_prior + np.exp(start) * log_density)
            losses[k] = plan.losses(log_proba)
        return cls(kind, tried, log_powers, losses, 0).chosen_for(plan)

    def chosen_for(self, plan: FoldPlan) -> TriedMember:
        """Choose the best bandwidth for the weights of a plan, which may be 0 for some points."""
        objective = self.losses @ plan.weights + 0.5 * self.log_powers**2 / plan.count
        return replace(self, best=int(objective.argmin()))

    def recalibrated(self, plan: FoldPlan) -> TriedMember:
        """Choose the best bandwidth for the weights of a plan, and fit its temperature with these weights."""
        chosen = self.chosen_for(plan)
        start = np.array([chosen.log_power])
        fitted, _ = fit_log_weights(chosen.log_density[np.newaxis], plan, np.zeros(1), 1.0, start)
        log_powers = chosen.log_powers.copy()
        log_powers[chosen.best] = fitted[0]
        return replace(chosen, log_powers=log_powers)

    @property
    def bandwidth(self) -> float:
        """Chosen bandwidth of the kernels."""
        return float(self.kind.kernels().bandwidths[self.best])

    @property
    def shrinkage(self) -> float:
        """Factor by which kernels are moved towards the mean of their class: 1 not at all, 0 completely."""
        return float(self.kind.kernels().shrinkages[self.best])

    @property
    def log_density(self) -> Floats:
        """(n_points, n_classes) log densities with the chosen bandwidth."""
        log_density: Floats = self.tried[self.best]
        return log_density

    @property
    def log_power(self) -> float:
        """Logarithm of the inverse temperature for the chosen bandwidth."""
        return float(self.log_powers[self.best])


def attempt(
    kinds: Sequence[AnyKind], rows: ScaledRows, plan: FoldPlan, seed: int, folds: Folds
) -> list[TriedMember]:
    """Predict all points by kinds of members that share one fit, and choose the bandwidth of each kind."""
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
    """Prepare the rows of each fold for some kinds of members; parts without points are skipped.

    If `learnt_from` is None, members are fitted to the rows outside the fold, on scales fitted to these rows.
    Otherwise members are fitted to the rows of `learnt_from` whose groups are outside the fold, on the scales
    of `rows`.
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
                # If all rows are in one part, no other rows remain: then nothing is left out.
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
    """Build a member with kernels on all rows; its transforms are fitted to `sample`."""
    kind, scaled = tried_member.kind, rows.scaled[tried_member.kind.scale]
    learnt = kind.learn(sample, prior, seed)
    classes = kind.build(learnt, rows.data, scaled, tried_member.bandwidth, tried_member.shrinkage)
    return Member(kind.identifier, rows.scales[kind.scale], classes)

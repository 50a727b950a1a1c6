"""Candidates on trial: each predicts training rows from all others, and is judged by its log loss.

What describes a class is learnt without the fold that it is tried on: a row must not choose the bandwidths
and variables that then speak for it. Kernel sums need no fold: they leave the row itself out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from corral._core.copies import effective_number
from corral._core.density import DensityPlan, leave_one_out_densities
from corral._core.model import ClassBandwidths, joint_log_probability, learn_contrast, log_probability
from corral._core.rows import ClassRows, LabelledRows
from corral._core.scale import learn_scale
from corral._core.settings import (
    Bandwidth,
    Bools,
    Computation,
    Features,
    Floats,
    Integers,
    RodeoSettings,
    Rule,
    ScaleKind,
)

N_FOLDS = 5
_MANY_VALUES = 20 * N_FOLDS
_TEMPERATURES = 2.0 ** np.arange(-3.0, 8.5, 0.5)

# Bandwidths are averaged over at most so many rows of a class while searching.
_ROUGH_POINTS = 200


class Kind(NamedTuple):
    """A way to estimate the densities of classes; the rule is one that selects variables, or None."""

    bandwidth: Bandwidth
    features: Features
    rule: Rule | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """Leave-one-out results of one candidate.

    Attributes
    ----------
    scale, c0, kind : what distinguishes it from others.
    log_density : (n_points, n_classes)
    losses : (n_temperatures, n_points) negative log probabilities of the right class.
    hits : (n_temperatures, n_points) whether it was the most probable one.
    objective : (n_temperatures,) weighted mean loss and the prior of the temperature.
    """

    scale: ScaleKind
    c0: float
    kind: Kind
    log_density: Floats
    losses: Floats
    hits: Bools
    objective: Floats

    @property
    def best(self) -> int:
        """Number of the best temperature."""
        return int(self.objective.argmin())

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of `RodeoClassifier`, but for the temperature."""
        named = {"scale": self.scale, "c0": self.c0, **self.kind._asdict()}
        return {name: value for name, value in named.items() if name != "rule" or value is not None}


class UnitRows(NamedTuple):
    """Rows in one kind of units, as one fold sees them.

    Attributes
    ----------
    scaled : (n_rows, n_features) all rows.
    whole : all rows of each class.
    others : the rows of each class outside the fold.
    spread : (n_features,) range of each variable outside the fold.
    """

    scaled: Floats
    whole: list[ClassRows]
    others: list[ClassRows]
    spread: Floats


class Planned(NamedTuple):
    """The densities of one kind.

    Attributes
    ----------
    kind : the way they are estimated.
    plans : by fold and class.
    selects : whether they differ from those of all variables, if variables are to be selected.
    """

    kind: Kind
    plans: list[list[DensityPlan]]
    selects: bool


@dataclass(frozen=True, eq=False)
class Trial:
    """What candidates are judged by.

    Attributes
    ----------
    data : the rows of the search.
    points : (n_points,) which of them are predicted from all others.
    folds : (n_rows,) which fifth each row belongs to; copies of a row to the same.
    weights : (n_points,) that sum to 1, in each class to its prior.
    count : how many points of equal weight there are.
    prior : (n_classes,)
    lapse : share of probabilities given to the prior.
    min_effect : least difference that makes a variable relevant by contrast.
    """

    data: LabelledRows
    points: Integers
    folds: Integers
    weights: Floats
    count: float
    prior: Floats
    lapse: float
    min_effect: float

    @classmethod
    def prepare(
        cls,
        data: LabelledRows,
        points: Integers,
        prior: Floats,
        lapse: float,
        min_effect: float,
        random: np.random.RandomState,
    ) -> Trial:
        """Divide rows into fifths of each class, and weigh points as the priors weigh their classes."""
        folds = np.empty(len(data.X), dtype=np.int64)
        for members in data.members():
            # By value, so that the order of rows does not matter. Rows that agree by chance share a fold
            # where there are enough different ones: a fold should not hide a large part of a class.
            distinct, value = np.unique(data.X[members], axis=0, return_inverse=True)
            if len(distinct) < _MANY_VALUES:
                value = np.argsort(np.argsort(value.reshape(-1), kind="stable"))
            folds[members] = (random.permutation(value.max(initial=0) + 1) % N_FOLDS)[value.reshape(-1)]
        _, first, unit = np.unique(data.units, return_index=True, return_inverse=True)
        folds = folds[first][unit]
        codes = data.codes[points]
        weights = np.ones(points.size) if data.weights is None else data.weights[points]
        count = effective_number(weights)
        shares = np.maximum(np.bincount(codes, weights, minlength=prior.size), 1e-300)
        weights = weights / shares[codes] * prior[codes]
        weights /= max(weights.sum(), 1e-300)  # no weight at all if only classes without rows have a prior
        return cls(data, points, folds, weights, count, prior, lapse, min_effect)

    @property
    def codes(self) -> Integers:
        """The right classes of the points."""
        return self.data.codes[self.points]

    @cached_property
    def described(self) -> list[Bools]:
        """For each fold, which variables tell each class from its background in the rows outside it."""
        parts = [self._outside(fold) for fold in range(N_FOLDS)]
        return [learn_contrast(part, self.min_effect).relevant for part in parts]

    def arrange(self, kind: ScaleKind) -> list[UnitRows]:
        """Bring the rows into units, once for all candidates that share them; one entry per fold."""
        by_fold = []
        scaled, whole = np.empty(0), list[ClassRows]()
        for fold in range(N_FOLDS):
            part = self._outside(fold)
            if kind == "whiten" or fold == 0:  # which looks at the labels, and so must not see the fold
                learnt_from = part if kind == "whiten" else self.data
                units = learn_scale(learnt_from.X, learnt_from.weights, kind, learnt_from.codes)
                scaled = units.transform(self.data.X)
                whole = self.data.arrange(scaled)
            of_part = scaled[self.folds != fold] if len(part.X) < len(scaled) else scaled
            by_fold.append(UnitRows(scaled, whole, part.arrange(of_part), np.ptp(of_part, axis=0)))
        return by_fold

    def _outside(self, fold: int) -> LabelledRows:
        """Rows outside a fold, or all of them where it holds them all."""
        outside = np.flatnonzero(self.folds != fold)
        return self.data.take(outside) if outside.size else self.data

    def plan(
        self,
        units: Sequence[UnitRows],
        settings: RodeoSettings,
        kinds: Sequence[Kind],
        cutpoint: float,
        random: np.random.RandomState,
        computation: Computation,
    ) -> list[Planned]:
        """Plan the densities of candidates of some kinds with the same units and constants."""
        shadows = any(kind.rule == "shadow" for kind in kinds)
        learnt = [
            ClassBandwidths.learn(
                of_fold.others,
                of_fold.spread,
                settings,
                random,
                computation,
                shadows=shadows,
                n_points=_ROUGH_POINTS,
            )
            for of_fold in units
        ]
        planned = []
        for kind in kinds:
            relevant = (
                self.described
                if kind.rule == "contrast"
                else [of_fold.relevant(kind.rule or "zscore", cutpoint) for of_fold in learnt]
            )
            plans = [
                of_fold.plans(kind.bandwidth, kind.features, found)
                for of_fold, found in zip(learnt, relevant, strict=True)
            ]
            planned.append(Planned(kind, plans, kind.features != "selected" or bool(np.any(relevant))))
        return planned

    def log_densities(
        self,
        units: Sequence[UnitRows],
        plans: Sequence[Sequence[Sequence[DensityPlan]]],
        computation: Computation,
    ) -> Floats:
        """Log densities (n_candidates, n_points, n_classes) of the points, each leaving itself out.

        Parameters
        ----------
        units : the rows as each fold sees them.
        plans : by candidate, fold and class.
        computation : threads and progress.
        """
        members = self.data.members()
        log_density = np.empty((len(plans), self.points.size, len(members)))
        for fold, of_fold in enumerate(units):
            inside = self.folds[self.points] == fold
            at = self.points[inside]
            own = [_positions(self.data.units[of_class], self.data.units[at]) for of_class in members]
            for separate in (False, True):
                chosen = [k for k, plan in enumerate(plans) if plan[0][0].separate == separate]
                if not chosen or not at.size:
                    continue
                h, outside = _vectors([plans[k][fold] for k in chosen], of_fold.scaled.shape[1])
                found = leave_one_out_densities(
                    of_fold.whole, of_fold.scaled[at], own, h, computation, separate=separate
                )
                log_density[np.ix_(chosen, inside)] = found + outside[:, np.newaxis]
        return log_density

    def candidate(self, scale: ScaleKind, c0: float, kind: Kind, log_density: Floats) -> Candidate:
        """Try all temperatures."""
        tried = [self._losses(log_density, temperature) for temperature in _TEMPERATURES]
        losses = np.array([loss for loss, _ in tried])
        hits = np.array([hit for _, hit in tried])
        objective = losses @ self.weights + self._penalty(_TEMPERATURES)
        return Candidate(scale, c0, kind, log_density, losses, hits, objective)

    def best_temperature(self, candidate: Candidate) -> float:
        """The best temperature between the neighbours of the best one tried."""
        k = candidate.best
        bounds = np.log(_TEMPERATURES[[max(k - 1, 0), min(k + 1, _TEMPERATURES.size - 1)]])

        def objective(log_temperature: float) -> float:
            temperature = np.exp(log_temperature)
            loss, _ = self._losses(candidate.log_density, temperature)
            return float(loss @ self.weights + self._penalty(temperature))

        found = minimize_scalar(objective, bounds=bounds, method="bounded", options={"xatol": 1e-6})
        return float(np.exp(found.x))

    def cross_fitted(self, candidates: Sequence[Candidate]) -> tuple[float, float]:
        """Accuracy and log loss where each fold is judged by the choice of the others."""
        hits, losses = np.zeros(self.points.size), np.zeros(self.points.size)
        folds = self.folds[self.points]
        for fold in np.unique(folds):
            inside = folds == fold
            others = np.where(inside, 0.0, self.weights)
            others /= max(others.sum(), 1e-300)
            objectives = [
                candidate.losses @ others + self._penalty(_TEMPERATURES) for candidate in candidates
            ]
            best, k = divmod(int(np.argmin(objectives)), _TEMPERATURES.size)
            hits[inside] = candidates[best].hits[k, inside]
            losses[inside] = candidates[best].losses[k, inside]
        return self._share(hits), float(losses @ self.weights)

    def table(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """Tabulate candidates, each at its best temperature, as `cv_results_`."""
        objective = np.array([candidate.objective.min() for candidate in candidates])
        params = [candidate.params for candidate in candidates]
        names = ("scale", "c0", "bandwidth", "features", "rule")
        columns = {name: np.array([of.get(name) for of in params], dtype=object) for name in names}
        return {
            "params": params,
            **{f"param_{name}": values for name, values in columns.items()},
            "log_loss": np.array([c.losses[c.best] @ self.weights for c in candidates]),
            "accuracy": np.array([self._share(c.hits[c.best]) for c in candidates]),
            "temperature": _TEMPERATURES[[candidate.best for candidate in candidates]],
            "rank": np.argsort(np.argsort(objective, kind="stable"), kind="stable") + 1,
        }

    def _losses(self, log_density: Floats, temperature: float) -> tuple[Floats, Bools]:
        """Minus the log probability of the right class, and whether it is the most probable one."""
        joint = joint_log_probability(log_density, self.prior, temperature)
        log_proba = log_probability(joint, self.prior, self.lapse)
        right = log_proba[np.arange(self.points.size), self.codes]
        # Without weight where the prior forbids the class.
        return -np.where(self.weights > 0.0, right, 0.0), log_proba.argmax(axis=1) == self.codes

    def _share(self, hits: NDArray[Any]) -> float:
        """Weighted share of the points that were hit, at most 1: the weights sum to it but for rounding."""
        return min(float(hits @ self.weights), 1.0)

    def _penalty(self, temperature: Any) -> Any:
        """Minus the logarithm of a standard normal prior of log T, per point."""
        return 0.5 * np.log(temperature) ** 2 / self.count


def _positions(units: Integers, wanted: Integers) -> Integers:
    """Where the wanted units stand, none of which stands twice; -1 for those that do not."""
    if not units.size:
        return np.full(wanted.size, -1)
    order = np.argsort(units)
    found = order[np.minimum(np.searchsorted(units, wanted, sorter=order), units.size - 1)]
    return np.where(units[found] == wanted, found, -1)


def _vectors(candidates: Sequence[Sequence[DensityPlan]], d: int) -> tuple[Floats, Floats]:
    """Bandwidths (n_candidates, n_classes, d), infinite where unused, and the rest of the log densities."""
    h = np.full((len(candidates), len(candidates[0]), d), np.inf)
    for of_candidate, densities in zip(h, candidates, strict=True):
        for of_class, density in zip(of_candidate, densities, strict=True):
            of_class[density.variables] = density.fixed
    return h, np.array([[density.outside for density in densities] for densities in candidates])

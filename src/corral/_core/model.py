r"""The fitted model: all that a fit has learnt of classes, in one object, and how it is learnt.

The classes' densities, weighed by the priors, give the posterior; a pool gives a share
:math:`\varepsilon` (the lapse) of it to the prior instead,

.. math::

    P(y \mid x) = (1 - \varepsilon) \frac{\pi_y \hat p_y(x)}{\sum_{y'} \pi_{y'} \hat p_{y'}(x)}
        + \varepsilon \pi_y.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from corral._core.calibration import log_of_prior
from corral._core.contrast import Contrast, contrast, mixed_contrast
from corral._core.density import ClassDensity, DensityPlan, class_log_densities
from corral._core.relevance import mean_bandwidths, zscores
from corral._core.rows import AnyRows, LabelledRows, TrainingRows
from corral._core.sampling import sampling_keys
from corral._core.scale import Scale, learn_scale, spreads
from corral._core.settings import (
    Bandwidth,
    Bools,
    Computation,
    Features,
    Floats,
    Integers,
    ModelSettings,
    RodeoSettings,
)
from corral._core.trust import MAX_POINTS, Estimates, Trust, spread_rows

# Evidence for a class is averaged over at most so many of its rows, evenly spread over all of them.
_MAX_EXAMPLES = 50


@dataclass(frozen=True, eq=False)
class ClassBandwidths:
    """What algorithm 2 learns of the classes, in one kind of units.

    Attributes
    ----------
    initial : (n_classes,) bandwidths that all variables of a class start from.
    means : (n_classes, n_features) mean leave-one-out bandwidths.
    zscores : (n_classes, n_features) the same, standardised over the variables of a class.
    widths : (n_features,) range of each variable in all rows, 1 where it is constant.
    varies : (n_features,) which variables are not constant.
    """

    initial: Floats
    means: Floats
    zscores: Floats
    widths: Floats
    varies: Bools

    @classmethod
    def collect(cls, initial: Floats, means: Floats, spread: Floats) -> ClassBandwidths:
        """Put together mean bandwidths and the ranges (n_features,) of the variables."""
        return cls(
            initial,
            means,
            np.array([zscores(h) for h in means]),
            np.where(spread > 0.0, spread, 1.0),
            spread > 0.0,
        )

    @classmethod
    def learn(
        cls,
        rows: Sequence[AnyRows],
        spread: Floats,
        settings: RodeoSettings,
        random: np.random.RandomState,
        computation: Computation,
    ) -> ClassBandwidths:
        """Learn from the rows of each class."""
        means = mean_bandwidths(rows, settings, random, computation)
        initial = np.array([settings.initial_bandwidth(of_class.measure.n) for of_class in rows])
        return cls.collect(initial, means, spread)

    def relevant(self, cutpoint: float) -> Bools:
        """Tell in which variables (n_classes, n_features) bandwidths shrink enough to describe each class."""
        relevant = self.zscores <= cutpoint + 1e-9  # evenly spaced ones are -1 but for rounding
        varying: Bools = relevant & self.varies  # what never varies tells no class from another
        return varying

    def plans(self, bandwidth: Bandwidth, features: Features, relevant: Bools) -> list[DensityPlan]:
        """Plan the density of each class; a class without relevant variables keeps them all."""
        plans = []
        for a in range(self.initial.size):
            used = relevant[a] if features == "selected" and relevant[a].any() else np.ones_like(self.varies)
            variables = np.flatnonzero(used)
            fixed = self.means[a, variables] if bandwidth == "class" else None
            outside = -float(np.log(self.widths[~used]).sum())
            plans.append(DensityPlan(variables, fixed, outside))
        return plans


class Examples(NamedTuple):
    """Rows of a class to look at, which must not speak for themselves.

    Attributes
    ----------
    X : (n_examples, n_features)
    weights : (n_examples,)
    own : (n_examples,) their positions among the rows of the class, -1 for rows that densities do not know.
    left_out : (n_examples,) their positions among all rows, likewise.
    """

    X: Floats
    weights: Floats
    own: Integers
    left_out: Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalModel(ABC):
    """What a fit has learnt of the classes, with the training rows.

    Attributes
    ----------
    labels : (n_classes,) classes in order.
    counts : (n_classes,) training rows of each class, weights counted.
    prior : (n_classes,) probability of each class before a sample is seen.
    n_copies : how many training rows are copies of others.
    training : the rows as they were given.
    data : the rows that count, sorted by class, with their positions among those given.
    min_effect : least difference from the background that makes a variable a marker.
    learnt_contrast : how classes differ, if the fit had to know it.
    """

    labels: NDArray[Any]
    counts: Floats
    prior: Floats
    n_copies: int
    training: TrainingRows
    data: LabelledRows
    min_effect: float
    learnt_contrast: Contrast | None = None

    @property
    def lapse(self) -> float:
        """Share of every probability that is given to the prior; a pool has one."""
        return 0.0

    @abstractmethod
    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Log densities (n_samples, n_classes) in scaled units."""

    def joint(self, log_density: Floats) -> Floats:
        """Logarithm of prior times density, from log densities."""
        return joint_log_probability(log_density, self.prior)

    def posterior(self, log_density: Floats) -> Floats:
        """Logarithm of the posterior, from log densities."""
        return log_probability(self.joint(log_density), self.prior, self.lapse)

    @cached_property
    def contrast(self) -> Contrast:
        """How each class differs from its background in each variable, whatever the densities use."""
        return self.learnt_contrast or learn_contrast(self.data, self.min_effect)

    @cached_property
    def gap_contrast(self) -> Contrast | None:
        """How each class differs from its background in what is missing; None if nothing is."""
        return learn_gap_contrast(self.data, self.min_effect)

    @cached_property
    def empty_columns(self) -> Integers:
        """Columns in which no training row that counts has a value; those of samples count as missing."""
        return np.flatnonzero(np.isnan(self.data.X).all(axis=0))

    @cached_property
    def trust(self) -> Trust:
        """Training rows, each left out, as a yardstick for samples; computed when it is first needed."""
        return Trust(self)

    @property
    def compared_rows(self) -> LabelledRows:
        """Training rows that samples are compared with."""
        return self.data

    @property
    def all_rows(self) -> LabelledRows:
        """All training rows that count, sorted by class, however few of them densities are made of."""
        return self.data

    @property
    def n_rows(self) -> int:
        """How many training rows were given."""
        return len(self.training.X)

    @property
    def has_all_rows(self) -> bool:
        """Whether `training` has all rows that were given, and not only those that a file has kept."""
        return len(self.training.X) == self.n_rows

    def rows_by_number(self, numbers: Integers) -> Floats:
        """Training rows (n_numbers, n_features) by their positions among those that were given."""
        return self.training.X[numbers]

    def rows_behind(self, a: int) -> Integers:
        """How many training rows each row of a class in `data` stands for."""
        return np.ones(self.data.members()[a].size, dtype=np.int64)

    def examples(self, a: int) -> Examples:
        """Rows of a class to look at, drawn from all of them."""
        of_class = self.data.members()[a]
        own = example_rows(self.data, of_class)
        return self.examples_of(self.data, of_class[own], own, of_class[own])

    @staticmethod
    def examples_of(rows: LabelledRows, at: Integers, own: Integers, left_out: Integers) -> Examples:
        """Look at some of the rows."""
        return Examples(rows.X[at], rows.all_weights[at], own, left_out)

    def calibration_points(self) -> Integers:
        """Which of these rows are left out, one by one: all, or some that are spread over each class."""
        return spread_rows(self.data.codes, self.labels.size, MAX_POINTS)

    @property
    def yardstick(self) -> LocalModel:
        """The model whose log densities are likenesses: what typicality ranks."""
        return self

    def estimates(self, X: Floats, computation: Computation) -> Estimates:
        """Log densities and likenesses (n_samples, n_classes), in the time of one of them."""
        log_density = self.log_densities(X, computation)
        return Estimates(log_density, log_density)

    @property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        return np.asarray(~np.isnan(self.data.X).all(axis=0))

    def leave_out(self, points: Integers, computation: Computation) -> Estimates:
        """Estimates (n_points, n_classes) of some rows, each without itself, its copies and its group."""
        return self.leave_out_of(points, self.compared_rows.X[points], computation)

    @abstractmethod
    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Estimates (n_points, n_classes) of X by all rows but some, their copies and groups.

        `X` are the rows at `points`, of which values may be missing.
        """


def example_rows(rows: LabelledRows, of_class: Integers) -> Integers:
    """Positions among the rows of a class of those to look at, drawn by their values in whatever order.

    Of equal rows those of large weight are drawn first.
    """
    if of_class.size <= _MAX_EXAMPLES:
        return np.arange(of_class.size)
    by_weight = np.argsort(-rows.all_weights[of_class], kind="stable")
    keys = sampling_keys(rows.X[of_class[by_weight]], 0)
    return by_weight[np.argsort(keys, kind="stable")[:_MAX_EXAMPLES]]


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(LocalModel):
    """Classes whose densities have bandwidths that the Rodeo chooses.

    Attributes
    ----------
    settings : what was asked for.
    scale : units of the densities.
    densities : one per class.
    bandwidths : what algorithm 2 has learnt.
    relevant : (n_classes, n_features) which variables are relevant for each class.
    """

    settings: ModelSettings
    scale: Scale
    densities: Sequence[ClassDensity]
    bandwidths: ClassBandwidths
    relevant: Bools

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Log densities (n_samples, n_classes) in scaled units."""
        return self.estimate(X, computation)[0]

    def estimate(
        self,
        X: Floats,
        computation: Computation,
        *,
        bandwidths: bool = False,
        own: Sequence[Integers] | None = None,
    ) -> tuple[Floats, Floats]:
        """Log densities (n_samples, n_classes) in scaled units and, if asked for, their bandwidths.

        `own` are for each class (n_samples,) its rows that samples leave out, or -1.
        """
        scaled = self.scale.transform(X)
        update = self.settings.rodeo.update
        log_density, h = class_log_densities(
            self.densities, scaled, update, computation, bandwidths=bandwidths, own=own
        )
        gaps = np.isnan(X)
        if gaps.any():  # of variables that a class takes as uniform
            for y, density in enumerate(self.densities):
                log_widths = np.log(self.bandwidths.widths)
                log_widths[density.plan.variables] = 0.0
                log_density[:, y] += gaps @ log_widths
        return log_density, h

    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Log densities of rows without themselves; bandwidths of classes have seen them."""
        log_density, _ = self.estimate(X, computation.quieter(), own=self.data.own_rows(points))
        return Estimates(log_density, log_density)


def learn_model(
    training: TrainingRows,
    data: LabelledRows,
    prior: Floats,
    settings: ModelSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> FittedModel:
    """Learn units, bandwidths, relevant variables and densities of all classes."""
    units = learn_scale(data.X, data.weights, settings.scale, levels=data.levels)
    rows, bandwidths = _learn_bandwidths(data, units, settings.rodeo, random, computation)
    relevant = bandwidths.relevant(settings.cutpoint)
    plans = bandwidths.plans(settings.bandwidth, settings.features, relevant)
    densities = [
        ClassDensity.build(of_class, settings.rodeo.grid(of_class.measure.n), plan)
        for of_class, plan in zip(rows, plans, strict=True)
    ]
    return FittedModel(
        settings=settings,
        labels=data.labels,
        counts=data.counts,
        prior=prior,
        scale=units,
        densities=densities,
        bandwidths=bandwidths,
        relevant=relevant,
        n_copies=data.n_copies,
        training=training,
        data=data,
        min_effect=settings.min_effect,
    )


def learn_contrast(data: LabelledRows, min_effect: float) -> Contrast:
    """Compare each class with its background; a row and its copies are one observation."""
    compare = contrast
    if data.levels is not None and data.levels.any():
        compare = partial(mixed_contrast, levels=data.levels)
    return compare(
        data.X,
        data.codes,
        data.labels.size,
        weights=data.weights,
        groups=data.units if data.grouped else None,
        min_effect=min_effect,
    )


def learn_gap_contrast(data: LabelledRows, min_effect: float) -> Contrast | None:
    """Compare what each class and its background lack; None if nothing is missing."""
    gaps = np.isnan(data.X)
    if not gaps.any():
        return None
    return learn_contrast(replace(data, X=gaps.astype(np.float64), levels=None), min_effect)


def _learn_bandwidths(
    data: LabelledRows,
    units: Scale,
    settings: RodeoSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> tuple[Sequence[AnyRows], ClassBandwidths]:
    scaled = units.transform(data.X)
    rows = data.arrange(scaled)
    spread = spreads(scaled)
    spread = np.where((data.level_counts > 0) & (spread > 0.0), data.level_counts, spread)
    return rows, ClassBandwidths.learn(rows, spread, settings, random, computation)


def joint_log_probability(log_density: Floats, prior: Floats) -> Floats:
    """Logarithm of prior times density."""
    log_prior = log_of_prior(prior)
    joint: Floats = log_density + log_prior
    # Only classes without rows may be left with a positive prior: then nothing is known but it.
    return np.where(np.isneginf(joint).all(axis=1, keepdims=True), log_prior, joint)


def log_probability(joint: Floats, prior: Floats, lapse: float) -> Floats:
    """Logarithm of the posterior, a share `lapse` of which is given to the prior instead.

    Not before it sums to 1: far away, logarithms of densities are so large that the share would vanish in
    their last digit.
    """
    log_proba: Floats = log_softmax(joint, axis=1)
    if lapse > 0.0:
        log_proba = np.logaddexp(np.log1p(-lapse) + log_proba, np.log(lapse) + log_of_prior(prior))
    return log_proba

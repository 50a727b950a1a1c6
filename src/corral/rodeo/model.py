"""A fitted model whose class densities have bandwidths that the Rodeo chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from corral.array_types import SMALLEST, Bools, Floats, Integers, check_array, check_number, check_shape
from corral.conformal.typicality import Estimates
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.scaling import Scale, learn_scale, spreads
from corral.data.tiles import ClassRows
from corral.model import LocalModel
from corral.parallel import Computation
from corral.rodeo.density import ClassDensity, DensityPlan, class_log_densities
from corral.rodeo.relevance import mean_bandwidths, zscores
from corral.rodeo.settings import Bandwidth, Features, ModelSettings, RodeoSettings

# Bounds of bandwidths: within them no square of a distance over a bandwidth overflows.
BANDWIDTH_BOUNDS = (1e-21, 1e11)


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

    def validate(self) -> None:
        """Refuse bandwidths that the Rodeo cannot choose."""
        k, d = self.means.shape
        check_array("initial", self.initial, (k,), *BANDWIDTH_BOUNDS)
        check_array("means", self.means, (k, d), *BANDWIDTH_BOUNDS)
        check_array("zscores", self.zscores, (k, d))
        check_array("widths", self.widths, (d,), SMALLEST)
        check_shape("varies", self.varies, (d,))

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
        rows: Sequence[ClassRows],
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


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(LocalModel):
    """Classes whose densities have bandwidths that the Rodeo chooses.

    Attributes
    ----------
    settings : what was asked for.
    scale : units of the densities.
    bandwidths : what algorithm 2 has learnt.
    relevant : (n_classes, n_features) which variables are relevant for each class.
    """

    settings: ModelSettings
    scale: Scale
    bandwidths: ClassBandwidths
    relevant: Bools

    def validate(self) -> None:
        """Refuse parts that do not belong together."""
        super().validate()
        shape = self.prior.size, self.n_features
        check_shape("means", self.bandwidths.means, shape)
        check_shape("relevant", self.relevant, shape)
        check_shape("center", self.scale.center, shape[1:])

    @cached_property
    def densities(self) -> Sequence[ClassDensity]:
        """The density of each class."""
        rows = self.data.arrange(self.scale.transform(self.data.X))
        plans = self.bandwidths.plans(self.settings.bandwidth, self.settings.features, self.relevant)
        return [
            ClassDensity.build(of_class, self.settings.rodeo.grid(of_class.measure.n), plan)
            for of_class, plan in zip(rows, plans, strict=True)
        ]

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

    def estimates(
        self,
        X: Floats,
        computation: Computation,
        *,
        bandwidths: bool = False,
        own: Sequence[Integers] | None = None,
    ) -> Estimates:
        """Log densities (n_samples, n_classes), which are likenesses as well; see `estimate`."""
        log_density, h = self.estimate(X, computation, bandwidths=bandwidths, own=own)
        return Estimates(log_density, log_density, h if bandwidths else None)

    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Log densities of rows without themselves; bandwidths of classes have seen them."""
        return self.estimates(X, computation.quieter(), own=self.data.own_rows(points))


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
    bandwidths = _learn_bandwidths(data, units, settings.rodeo, random, computation)
    return FittedModel(
        settings=settings,
        prior=prior,
        scale=units,
        bandwidths=bandwidths,
        relevant=bandwidths.relevant(settings.cutpoint),
        n_copies=data.n_copies,
        training=training,
        data=data,
        min_effect=settings.min_effect,
    )


def _learn_bandwidths(
    data: LabelledRows,
    units: Scale,
    settings: RodeoSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> ClassBandwidths:
    scaled = units.transform(data.X)
    rows = data.arrange(scaled)
    spread = spreads(scaled)
    spread = np.where((data.level_counts > 0) & (spread > 0.0), data.level_counts, spread)
    return ClassBandwidths.learn(rows, spread, settings, random, computation)


@dataclass(frozen=True, eq=False)
class DensityModel:
    """The density of all rows together.

    Attributes
    ----------
    data : the rows that count, as one class.
    scale : units of the density.
    settings : how bandwidths are found.
    """

    data: LabelledRows
    scale: Scale
    settings: RodeoSettings

    def validate(self) -> None:
        """Refuse several classes, and units that do not tell the density of raw rows."""
        check_shape("X", self.data.X, (None, self.scale.center.size))
        check_number("n_rows", len(self.data.X), 1)
        if self.scale.knots is not None or self.data.labels.size != 1:
            raise ValueError("the scale or the classes are not those of a density")

    @cached_property
    def density(self) -> ClassDensity:
        """The rows as compiled loops read them, and the bandwidths that they may have."""
        (rows,) = self.data.arrange(self.scale.transform(self.data.X))
        return ClassDensity(rows, self.settings.grid(rows.measure.n), DensityPlan(np.arange(rows.n_features)))

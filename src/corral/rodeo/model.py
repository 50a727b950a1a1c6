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
from corral.rodeo.density import ClassDensity, class_log_densities
from corral.rodeo.relevance import mean_bandwidths, zscores
from corral.rodeo.settings import ModelSettings, RodeoSettings

# Bounds of bandwidths: within them no square of a distance over a bandwidth overflows.
BANDWIDTH_BOUNDS = (1e-21, 1e11)


@dataclass(frozen=True, eq=False)
class ClassBandwidths:
    """What algorithm 2 learns about the classes, on one scale."""

    initial: Floats  # (n_classes,) bandwidths that all variables of a class start from
    means: Floats  # (n_classes, n_features) mean leave-one-out bandwidths
    zscores: Floats  # (n_classes, n_features) the same, standardised over the variables of a class
    widths: Floats  # (n_features,) range of each variable in all rows, 1 where it is constant
    varies: Bools  # (n_features,) which variables are not constant

    def validate(self) -> None:
        """Refuse bandwidths that the Rodeo cannot choose."""
        k, d = self.means.shape
        check_array("initial", self.initial, (k,), *BANDWIDTH_BOUNDS)
        check_array("means", self.means, (k, d), *BANDWIDTH_BOUNDS)
        check_array("zscores", self.zscores, (k, d))
        check_array("widths", self.widths, (d,), SMALLEST)
        check_shape("varies", self.varies, (d,))

    @classmethod
    def learn(
        cls,
        rows: Sequence[ClassRows],
        spread: Floats,
        settings: RodeoSettings,
        random: np.random.RandomState,
        computation: Computation,
    ) -> ClassBandwidths:
        """Learn from the rows of each class, and from the ranges (n_features,) of the variables."""
        means = mean_bandwidths(rows, settings, random, computation)
        return cls(
            np.array([settings.initial_bandwidth(class_rows.n) for class_rows in rows]),
            means,
            np.array([zscores(h) for h in means]),
            np.where(spread > 0.0, spread, 1.0),
            spread > 0.0,
        )

    def relevant(self, cutpoint: float) -> Bools:
        """Variables (n_classes, n_features) whose bandwidths shrink enough to describe each class."""
        # The tolerance is for evenly spaced scores, which are -1 but for rounding. A constant variable
        # cannot distinguish classes.
        relevant: Bools = (self.zscores <= cutpoint + 1e-9) & self.varies
        return relevant

    def density(self, a: int, rows: ClassRows, relevant: Bools, settings: ModelSettings) -> ClassDensity:
        """The density of class a, on its `relevant` (n_features,) variables if any, or on all of them."""
        used = np.ones_like(self.varies)
        if settings.features == "selected" and relevant.any():
            used, rows = relevant, rows.select(np.flatnonzero(relevant))
        return ClassDensity(
            rows,
            settings.rodeo.grid(rows.n),
            np.flatnonzero(used),
            self.means[a, used] if settings.bandwidth == "class" else None,
            -float(np.log(self.widths[~used]).sum()),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(LocalModel):
    """Classes whose densities have bandwidths that the Rodeo chooses."""

    settings: ModelSettings
    scale: Scale  # transforms rows before densities are evaluated
    bandwidths: ClassBandwidths  # result of algorithm 2
    relevant: Bools  # (n_classes, n_features) which variables are relevant for each class

    def validate(self) -> None:
        """Refuse parts that do not belong together."""
        super().validate()
        shape = self.prior.size, self.n_features
        check_shape("means", self.bandwidths.means, shape)
        check_shape("relevant", self.relevant, shape)
        self.scale.validate_for(self.data.category_counts)

    @cached_property
    def densities(self) -> Sequence[ClassDensity]:
        """The density of each class."""
        rows = self.data.arrange(self.scale.transform(self.data.X))
        return [
            self.bandwidths.density(a, class_rows, self.relevant[a], self.settings)
            for a, class_rows in enumerate(rows)
        ]

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Log densities (n_samples, n_classes) of scaled rows."""
        return self.estimates(X, computation).log_density

    def estimates(
        self,
        X: Floats,
        computation: Computation,
        *,
        bandwidths: bool = False,
        own: Sequence[Integers] | None = None,
    ) -> Estimates:
        """Log densities (n_samples, n_classes) of scaled rows, which also score typicality.

        `own` has for each class the numbers (n_samples,) of its rows to leave out, or -1.
        """
        log_density, h = class_log_densities(
            self.densities,
            self.scale.transform(X),
            self.settings.rodeo.update,
            computation,
            bandwidths=bandwidths,
            own=own,
        )
        missing = np.isnan(X)
        if missing.any():  # variables that a class takes as uniform integrate to 1
            for y, density in enumerate(self.densities):
                log_widths = np.log(self.bandwidths.widths)
                log_widths[density.variables] = 0.0
                log_density[:, y] += missing @ log_widths
        return Estimates(log_density, log_density, h if bandwidths else None)

    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Log densities of training rows that are left out; class bandwidths are not learnt again."""
        own = [self.data.own_rows(class_rows, points) for class_rows in self.data.members()]
        return self.estimates(X, computation.quieter(), own=own)


def learn_model(
    training: TrainingRows,
    data: LabelledRows,
    prior: Floats,
    settings: ModelSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> FittedModel:
    """Learn a scale, bandwidths, relevant variables and densities of all classes."""
    scale = learn_scale(data.X, data.weights, settings.scale, n_categories=data.n_categories)
    scaled = scale.transform(data.X)
    spread = spreads(scaled)
    spread = np.where((data.category_counts > 0) & (spread > 0.0), data.category_counts, spread)
    bandwidths = ClassBandwidths.learn(data.arrange(scaled), spread, settings.rodeo, random, computation)
    return FittedModel(
        settings=settings,
        prior=prior,
        scale=scale,
        bandwidths=bandwidths,
        relevant=bandwidths.relevant(settings.cutpoint),
        n_duplicates=data.n_duplicates,
        training=training,
        data=data,
        min_effect=settings.min_effect,
    )


@dataclass(frozen=True, eq=False)
class DensityModel:
    """The density of all rows together."""

    data: LabelledRows  # the rows that count, as one class
    scale: Scale  # transforms rows before the density is evaluated
    settings: RodeoSettings

    def validate(self) -> None:
        """Refuse several classes, and a scale that has no density of unscaled rows."""
        self.scale.validate_for(self.data.category_counts)
        check_number("n_rows", len(self.data.X), 1)
        if self.scale.knots is not None or self.data.labels.size != 1:
            raise ValueError("a density has one class and no scale of ranks")

    @cached_property
    def density(self) -> ClassDensity:
        """The density of the scaled rows."""
        (rows,) = self.data.arrange(self.scale.transform(self.data.X))
        return ClassDensity(rows, self.settings.grid(rows.n), np.arange(rows.n_features))

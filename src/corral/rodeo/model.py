"""Fitted models whose class densities have bandwidths that the Rodeo chooses."""

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

# Bounds of bandwidths that prevent overflow of squared distances divided by squared bandwidths.
BANDWIDTH_BOUNDS = (1e-21, 1e11)


@dataclass(frozen=True, eq=False)
class ClassBandwidths:
    """Bandwidths that algorithm 2 of the paper chooses for each class from the scaled rows."""

    initial: Floats  # (n_classes,) initial bandwidth of all variables
    means: Floats  # (n_classes, n_features) mean leave-one-out bandwidths
    zscores: Floats  # (n_classes, n_features) `means`, standardized over the variables of each class
    # (n_features,) ranges of measurements, or numbers of categories; 1 for constant variables
    widths: Floats
    varies: Bools  # (n_features,) true for variables that are not constant

    def validate(self) -> None:
        """Raise ValueError if shapes do not match or a bandwidth is outside the bounds."""
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
        """Run algorithm 2 on the scaled rows of each class.

        `spread` (n_features,) has ranges of measurements and numbers of categories, 0 for constant variables.
        """
        means = mean_bandwidths(rows, settings, random, computation)
        return cls(
            np.array([settings.initial_bandwidth(class_rows.n) for class_rows in rows]),
            means,
            np.array([zscores(h) for h in means]),
            np.where(spread > 0.0, spread, 1.0),
            spread > 0.0,
        )

    def relevant(self, cutpoint: float) -> Bools:
        """Return the relevant variables of each class as a mask (n_classes, n_features).

        A variable is relevant if its z-score is at most the cutpoint, and if it is not constant.
        """
        # If bandwidths are evenly spaced, a score is exactly -1. The tolerance lets it reach the cutpoint
        # -1 even if rounding has made it slightly larger.
        relevant: Bools = (self.zscores <= cutpoint + 1e-9) & self.varies
        return relevant

    def density(self, a: int, rows: ClassRows, relevant: Bools, settings: ModelSettings) -> ClassDensity:
        """Make the density of class a.

        If the setting `features` is "selected" and any variable is `relevant` (n_features,), the density uses
        the relevant variables. Otherwise it uses all variables.
        """
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
    """Fitted model of `RodeoClassifier`."""

    settings: ModelSettings
    scale: Scale  # transforms rows before densities are evaluated
    bandwidths: ClassBandwidths  # result of algorithm 2
    relevant: Bools  # (n_classes, n_features) true for the relevant variables of each class

    def validate(self) -> None:
        """Raise ValueError if the shapes of the parts do not match."""
        super().validate()
        shape = self.prior.size, self.n_features
        check_shape("means", self.bandwidths.means, shape)
        check_shape("relevant", self.relevant, shape)
        self.scale.validate_for(self.data.category_counts)

    @cached_property
    def densities(self) -> Sequence[ClassDensity]:
        """Densities of the scaled rows of each class (n_classes)."""
        rows = self.data.arrange(self.scale.transform(self.data.X))
        return [
            self.bandwidths.density(a, class_rows, self.relevant[a], self.settings)
            for a, class_rows in enumerate(rows)
        ]

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Compute log densities (n_samples, n_classes) of the rows on the scale."""
        return self.estimates(X, computation).log_density

    def estimates(
        self,
        X: Floats,
        computation: Computation,
        *,
        bandwidths: bool = False,
        own: Sequence[Integers] | None = None,
    ) -> Estimates:
        """Compute log densities (n_samples, n_classes) of the rows on the scale.

        The log densities are also the scores of typicality. `own` has an array (n_samples,) for each class:
        the index of the class row to leave out for each row; -1 for none.
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
        if missing.any():  # values of unused variables that are missing have no factor 1 / width
            for y, density in enumerate(self.densities):
                log_widths = np.log(self.bandwidths.widths)
                log_widths[density.variables] = 0.0
                log_density[:, y] += missing @ log_widths
        return Estimates(log_density, log_density, h if bandwidths else None)

    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Compute log densities of training rows, each left out of the density; class bandwidths are kept."""
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
    """Fit the scale, the bandwidths and the relevant variables of all classes."""
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
    """Fitted model of `RodeoDensity`: one density of all rows."""

    data: LabelledRows  # rows with positive weight, all of one class
    scale: Scale  # transforms rows before the density is evaluated
    settings: RodeoSettings

    def validate(self) -> None:
        """Raise ValueError if there are several classes, or if the scale is made of ranks."""
        self.scale.validate_for(self.data.category_counts)
        check_number("n_rows", len(self.data.X), 1)
        if self.scale.knots is not None or self.data.labels.size != 1:
            raise ValueError("a density has one class and no scale of ranks")

    @cached_property
    def density(self) -> ClassDensity:
        """Density of the scaled rows."""
        (rows,) = self.data.arrange(self.scale.transform(self.data.X))
        return ClassDensity(rows, self.settings.grid(rows.n), np.arange(rows.n_features))

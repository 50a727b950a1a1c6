"""Algorithm 2 for all classes of a training set: their rows, bandwidths, relevant variables and densities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from corral._copies import effective_number, number_copies
from corral._rodeo import (
    SHADOW_ROUNDS,
    ClassDensity,
    ClassRows,
    Floats,
    Integers,
    mean_bandwidths,
    shadow_scores,
    zscores,
)
from corral._scale import Scale
from corral._validation import check_classes

Bandwidth = Literal["local", "class", "initial"]
Features = Literal["all", "selected", "separate"]
Rule = Literal["zscore", "shadow"]

# The share of classes in which noise may be taken for a relevant variable by rule="shadow".
_SHADOW_LEVEL = 0.01


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Training rows that count, with numbers for their classes; copies in a class are one row.

    Attributes
    ----------
    X : (n_rows, n_features)
    codes : (n_rows,) class numbers.
    weights : (n_rows,) how much each row matters, or None if all matter alike.
    labels : (n_classes,) classes in order, some perhaps without rows.
    counts : (n_classes,) rows, weights counted.
    numbers : (n_rows,) positions among the rows that were given, of copies that of the first.
    units : (n_rows,) numbers that copies with other labels share: they are left out together.
    n_copies : how many of the rows that were given are copies of others.
    """

    X: Floats
    codes: Integers
    weights: Floats | None
    labels: NDArray[Any]
    counts: Floats
    numbers: Integers
    units: Integers
    n_copies: int

    @classmethod
    def sort(
        cls,
        X: Floats,
        y: NDArray[Any],
        weights: Floats | None,
        classes: NDArray[Any] | None,
        *,
        merge: bool = True,
    ) -> LabelledRows:
        """Drop rows without weight and number the classes, those in `classes` and in y.

        Copies are merged, unless `merge` is False: then all rows are kept as they are.
        """
        numbers = np.arange(len(X))
        if weights is not None:
            numbers = np.flatnonzero(weights)
            X, y, weights = X[numbers], y[numbers], weights[numbers]
        labels, codes = check_classes(y, classes)
        counts = np.bincount(codes, weights, minlength=labels.size).astype(np.float64)
        units = number_copies(X) if merge else None
        if units is None:
            return cls(X, codes, weights, labels, counts, numbers, np.arange(len(X)), 0)
        n_copies = units.size - int(units.max()) - 1
        _, first, which = np.unique(np.stack([units, codes]), axis=1, return_index=True, return_inverse=True)
        merged = np.bincount(which.reshape(-1), weights).astype(np.float64)
        weights = None if (merged == merged[0]).all() else merged
        return cls(X[first], codes[first], weights, labels, counts, numbers[first], units[first], n_copies)

    def take(self, which: Integers) -> LabelledRows:
        """Some of the rows, all classes kept."""
        weights = None if self.weights is None else self.weights[which]
        counts = np.bincount(self.codes[which], weights, minlength=self.labels.size).astype(np.float64)
        return replace(
            self,
            X=self.X[which],
            codes=self.codes[which],
            weights=weights,
            counts=counts,
            numbers=self.numbers[which],
            units=self.units[which],
        )

    @property
    def n(self) -> float:
        """How many rows of equal weight they are worth."""
        return float(len(self.X)) if self.weights is None else effective_number(self.weights)

    def members(self) -> list[Integers]:
        """Positions of the rows of each class."""
        return [np.flatnonzero(self.codes == a) for a in range(self.labels.size)]


@dataclass(frozen=True, eq=False)
class Classes:
    """What is learnt of the classes, in one kind of units and with one set of parameters.

    Attributes
    ----------
    scale : units, learnt on all rows together.
    rows : one per class.
    widths : (n_features,) range of each variable in all rows, 1 where it is constant.
    varies : (n_features,) which variables are not constant.
    bandwidths : (n_classes, n_features) mean leave-one-out bandwidths.
    zscores : (n_classes, n_features) the same, standardised over the variables of a class.
    shadow_scores : (n_classes, n_features) or None if not asked for.
    """

    scale: Scale
    rows: list[ClassRows]
    widths: Floats
    varies: NDArray[np.bool_]
    bandwidths: Floats
    zscores: Floats
    shadow_scores: Floats | None

    @classmethod
    def learn(
        cls,
        data: LabelledRows,
        scale: Scale,
        *,
        settings: dict[str, Any],
        shadows: bool,
        random: np.random.RandomState,
        computation: dict[str, Any],
        n_points: int | None = None,
    ) -> Classes:
        """Learn from training rows.

        `settings` go to `ClassRows.arrange`; bandwidths are averaged over `n_points` rows of a class, if
        it has more.
        """
        scaled = scale.transform(data.X)
        members = [scaled[which] for which in data.members()]
        weights = [None if data.weights is None else data.weights[which] for which in data.members()]
        rows = [ClassRows.arrange(part, w, **settings) for part, w in zip(members, weights, strict=True)]
        means = mean_bandwidths(rows, random, **computation, n_points=n_points)
        shadow = None
        if shadows:
            shadow = shadow_scores(members, weights, random, settings=settings, **computation)
        spread = np.ptp(scaled, axis=0)
        return cls(
            scale,
            rows,
            np.where(spread > 0.0, spread, 1.0),
            spread > 0.0,
            means,
            np.array([zscores(h) for h in means]),
            shadow,
        )

    def relevant(self, rule: Rule, cutpoint: float) -> NDArray[np.bool_]:
        """Which variables (n_classes, n_features) describe each class."""
        if rule == "zscore":
            found = self.zscores <= cutpoint + 1e-9  # evenly spaced ones are -1 but for rounding
        else:
            assert self.shadow_scores is not None
            # Student's t, since the standard error is estimated from so many differences.
            d = self.widths.size
            found = self.shadow_scores <= stdtrit((SHADOW_ROUNDS - 1) * d, _SHADOW_LEVEL / d)
        chosen: NDArray[np.bool_] = found & self.varies  # what never varies tells no class from another
        return chosen

    def densities(
        self, bandwidth: Bandwidth, features: Features, relevant: NDArray[np.bool_]
    ) -> list[ClassDensity]:
        """How the density of each class is estimated; a class without relevant variables keeps them all."""
        densities = []
        for a, rows in enumerate(self.rows):
            used = relevant[a] if features == "selected" and relevant[a].any() else np.ones_like(self.varies)
            variables = np.flatnonzero(used)
            h = {
                "local": None,
                "class": self.bandwidths[a, variables],
                "initial": np.full(variables.size, rows.h[0]),
            }[bandwidth]
            densities.append(
                ClassDensity(
                    rows if used.all() else rows.select(variables),
                    variables,
                    h,
                    outside=-float(np.log(self.widths[~used]).sum()),
                    separate=features == "separate",
                )
            )
        return densities

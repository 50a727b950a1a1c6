"""The rows of a search: which of them are predicted from all others, in which folds, and how they weigh."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.splits import stratified_folds
from corral.data.weights import effective_number
from corral.pool.calibration import Target
from corral.posterior import log_of_prior

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Trial:
    """What members of a pool are judged by.

    Attributes
    ----------
    data : the rows of the search.
    points : (n_points,) which of them are predicted from all others.
    divisions : (n_divisions, n_rows) which fifth each row belongs to; copies of a row to the same.
    division : (n_points,) by which division each point is predicted. Where there are several, every point is
        among `points` once for each.
    weights : (n_points,) that sum to 1, in each class to its prior.
    prior : (n_classes,)
    lapse : share of probabilities given to the prior.
    """

    data: LabelledRows
    points: Integers
    divisions: Integers
    division: Integers
    weights: Floats
    prior: Floats
    lapse: float

    @classmethod
    def prepare(
        cls,
        data: LabelledRows,
        points: Integers,
        prior: Floats,
        lapse: float,
        random: np.random.RandomState,
        n_divisions: int = 1,
    ) -> Trial:
        """Divide rows into fifths of each class, and weigh points as the priors weigh their classes."""
        rank = data.content_order()
        divisions = np.array([stratified_folds(data, rank, N_FOLDS, random) for _ in range(n_divisions)])
        division = np.repeat(np.arange(n_divisions), points.size)
        points = np.tile(points, n_divisions)
        weights = _normalised_weights(data, points, prior)
        return cls(data, points, divisions, division, weights, prior, lapse)

    def restricted_to(self, positions: Integers) -> Trial:
        """Keep some of the points, given by their positions in `rows`, and one division."""
        points = self.rows[positions]
        weights = _normalised_weights(self.data, points, self.prior)
        division = np.zeros(points.size, dtype=np.int64)
        return replace(self, points=points, divisions=self.divisions[:1], division=division, weights=weights)

    @property
    def codes(self) -> Integers:
        """The right classes of the points."""
        return self.data.codes[self.points]

    @property
    def n_divisions(self) -> int:
        """How often rows are divided."""
        return len(self.divisions)

    @property
    def rows(self) -> Integers:
        """The points, each of them once."""
        once: Integers = self.points[self.division == 0]
        return once

    def target(self) -> Target:
        """What is to be predicted. Several divisions say more of a point, but are not several points."""
        target = make_target(self.data, self.points, self.prior)
        return replace(target, count=target.count / self.n_divisions)


def weights_by_prior(data: LabelledRows, points: Integers, prior: Floats) -> Floats:
    """Weights (n_points,) of points, those of each class together its prior; nothing for one without any."""
    codes, weights = data.codes[points], data.all_weights[points]
    of_class = np.maximum(np.bincount(codes, weights, minlength=prior.size), 1e-300)
    shares: Floats = weights / of_class[codes] * prior[codes]
    return shares


def _normalised_weights(data: LabelledRows, points: Integers, prior: Floats) -> Floats:
    """Weights (n_points,) that sum to 1; all are 0 if only classes without rows have a prior."""
    weights = weights_by_prior(data, points, prior)
    weights /= max(weights.sum(), 1e-300)
    return weights


def make_target(data: LabelledRows, points: Integers, prior: Floats) -> Target:
    """Weigh points as the priors weigh their classes; those without another row in their class not at all."""
    target = Target(
        codes=data.codes[points],
        weights=weights_by_prior(data, points, prior),
        log_prior=log_of_prior(prior),
        count=effective_number(data.all_weights[points]),
    )
    return target.without(data.is_alone[points])

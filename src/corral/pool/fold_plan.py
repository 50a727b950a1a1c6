"""The fold plan of a search: which rows are predicted, in which folds, and how much each of them counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.splits import stratified_folds
from corral.data.weights import effective_number
from corral.posterior import log_of_prior

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """Rows that are predicted without themselves, and the folds without which members are learnt."""

    data: LabelledRows  # the rows of the search
    points: Integers  # (n_points,) which of them are predicted from all others, once for each division
    divisions: Integers  # (n_divisions, n_rows) the fold of each row; duplicates of a row have the same
    prior: Floats  # (n_classes,)
    prior_mixing: float  # share of probabilities given to the prior
    # (n_points,) by which temperatures and member weights are fitted. They sum to 1, in each class to its
    # prior; 0 for a point whose class has no row of another group, and for points that `without` leaves out.
    weights: Floats

    @classmethod
    def prepare(
        cls,
        data: LabelledRows,
        points: Integers,
        prior: Floats,
        prior_mixing: float,
        random: np.random.RandomState,
        n_divisions: int = 1,
    ) -> FoldPlan:
        """Divide the rows of each class into folds, several times."""
        order = data.content_order()
        divisions = np.array([stratified_folds(data, order, N_FOLDS, random) for _ in range(n_divisions)])
        return cls._weighed(data, np.tile(points, n_divisions), divisions, prior, prior_mixing)

    @classmethod
    def without_folds(cls, data: LabelledRows, points: Integers, prior: Floats) -> FoldPlan:
        """Leave points out one by one, where nothing else is learnt from labels."""
        return cls._weighed(data, points, np.zeros((1, len(data.X)), dtype=np.int64), prior, 0.0)

    @classmethod
    def _weighed(
        cls, data: LabelledRows, points: Integers, divisions: Integers, prior: Floats, prior_mixing: float
    ) -> FoldPlan:
        plan = cls(data, points, divisions, prior, prior_mixing, weights_by_prior(data, points, prior))
        return plan.without(data.is_alone[points])

    def restricted_to(self, positions: Integers) -> FoldPlan:
        """Keep some of the points, given by their positions in `rows`, and one division."""
        return self._weighed(
            self.data, self.rows[positions], self.divisions[:1], self.prior, self.prior_mixing
        )

    def without(self, left_out: Bools) -> FoldPlan:
        """Give points no weight where `left_out` (n_points,) is true."""
        return replace(self, weights=_normalized(np.where(left_out, 0.0, self.weights)))

    @cached_property
    def division(self) -> Integers:
        """(n_points,) by which division each point is predicted."""
        return np.repeat(np.arange(self.n_divisions), self.points.size // self.n_divisions)

    @cached_property
    def codes(self) -> Integers:
        """(n_points,) the right classes."""
        return self.data.codes[self.points]

    @cached_property
    def score_weights(self) -> Floats:
        """(n_points,) weights by which the pool is scored: all points count, as the priors weigh classes."""
        return _normalized(weights_by_prior(self.data, self.points, self.prior))

    @cached_property
    def log_prior(self) -> Floats:
        """(n_classes,) logarithms of the prior, -inf for a class that is ruled out."""
        return log_of_prior(self.prior)

    @cached_property
    def count(self) -> float:
        """How many rows of equal weight all points are worth, also those that `without` leaves out.

        The prior of fitted weights counts as one of so many rows. Several divisions of the rows do not make
        several points of one.
        """
        return effective_number(self.data.all_weights[self.points]) / self.n_divisions

    @property
    def n_divisions(self) -> int:
        """How often rows are divided."""
        return len(self.divisions)

    @property
    def rows(self) -> Integers:
        """The points, each of them once."""
        once: Integers = self.points[self.division == 0]
        return once

    def log_loss(self, log_proba: Floats) -> float:
        """Weighted mean log loss of log probabilities (n_points, n_classes)."""
        return float(self.weights @ self.losses(log_proba))

    def losses(self, log_proba: Floats) -> Floats:
        """Log losses (n_points,) of log probabilities (n_points, n_classes), 0 for points without weight."""
        right = log_proba[np.arange(self.codes.size), self.codes]
        return np.where(self.weights > 0.0, -right, 0.0)


def weights_by_prior(data: LabelledRows, points: Integers, prior: Floats) -> Floats:
    """Weights (n_points,) of points, which sum to the prior in each class that has points."""
    codes, weights = data.codes[points], data.all_weights[points]
    class_totals = np.maximum(np.bincount(codes, weights, minlength=prior.size), 1e-300)
    shares: Floats = weights / class_totals[codes] * prior[codes]
    return shares


def _normalized(weights: Floats) -> Floats:
    """Weights that sum to 1; all are 0 if only classes without rows have a prior."""
    normalized: Floats = weights / max(weights.sum(), 1e-300)
    return normalized

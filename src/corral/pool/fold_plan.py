"""The fold plan of a search: the rows to predict, their folds, and their weights.

A division assigns each row to one of `N_FOLDS` folds. With few rows there are several divisions. A point is
one prediction: a row to predict in one division, by members that are fitted without its fold. So there are
n_points = n_divisions times the number of rows to predict.
"""

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
    """The rows to predict, each by models fitted without it, and the folds that are left out in turn."""

    data: LabelledRows  # the rows of the search
    points: Integers  # (n_points,) position in `data` of the row of each point, division after division
    divisions: Integers  # (n_divisions, n_rows) index of the fold of each row; equal for rows of a group
    prior: Floats  # (n_classes,) prior probabilities
    prior_mixing: float  # share of the prior in each posterior probability
    # (n_points,) weights of the points when temperatures and member weights are fitted: in proportion to the
    # weights of `weights_by_prior`, with sum 1. The weight is 0 if the class of the point has no row of
    # another group, or if `without` has left the point out.
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
        """Divide the rows of each class into folds, `n_divisions` times."""
        order = data.content_order()
        divisions = np.array([stratified_folds(data, order, N_FOLDS, random) for _ in range(n_divisions)])
        return cls._weighed(data, np.tile(points, n_divisions), divisions, prior, prior_mixing)

    @classmethod
    def without_folds(cls, data: LabelledRows, points: Integers, prior: Floats) -> FoldPlan:
        """Return a plan that leaves out each point alone, for models that fit nothing else to labels."""
        return cls._weighed(data, points, np.zeros((1, len(data.X)), dtype=np.int64), prior, 0.0)

    @classmethod
    def _weighed(
        cls, data: LabelledRows, points: Integers, divisions: Integers, prior: Floats, prior_mixing: float
    ) -> FoldPlan:
        plan = cls(data, points, divisions, prior, prior_mixing, weights_by_prior(data, points, prior))
        return plan.without(data.is_alone[points])

    def restricted_to(self, positions: Integers) -> FoldPlan:
        """Keep the rows to predict at the given positions in `rows`, and the first division."""
        return self._weighed(
            self.data, self.rows[positions], self.divisions[:1], self.prior, self.prior_mixing
        )

    def without(self, left_out: Bools) -> FoldPlan:
        """Set weights of points to 0 if `left_out` (n_points,) is true; rescale the rest to sum 1."""
        return replace(self, weights=_normalized(np.where(left_out, 0.0, self.weights)))

    @cached_property
    def division(self) -> Integers:
        """(n_points,) index of the division of each point."""
        return np.repeat(np.arange(self.n_divisions), self.points.size // self.n_divisions)

    @cached_property
    def codes(self) -> Integers:
        """(n_points,) codes of the true classes."""
        return self.data.codes[self.points]

    @cached_property
    def score_weights(self) -> Floats:
        """(n_points,) weights of the points in scores: of all points, in proportion to `weights_by_prior`."""
        return _normalized(weights_by_prior(self.data, self.points, self.prior))

    @cached_property
    def log_prior(self) -> Floats:
        """(n_classes,) logarithms of the prior; -inf for a prior of 0."""
        return log_of_prior(self.prior)

    @cached_property
    def count(self) -> float:
        """Effective number of rows to predict, including rows that `without` leaves out.

        The prior of fitted weights has the weight of one of these rows. A row counts once, not once for each
        division.
        """
        return effective_number(self.data.all_weights[self.points]) / self.n_divisions

    @property
    def n_divisions(self) -> int:
        """Number of divisions."""
        return len(self.divisions)

    @property
    def rows(self) -> Integers:
        """Positions of the rows to predict, each row once."""
        once: Integers = self.points[self.division == 0]
        return once

    def log_loss(self, log_proba: Floats) -> float:
        """Return the weighted mean log loss of log probabilities (n_points, n_classes)."""
        return float(self.weights @ self.losses(log_proba))

    def losses(self, log_proba: Floats) -> Floats:
        """Return log losses (n_points,) of log probabilities (n_points, n_classes).

        The loss is 0 for points of weight 0.
        """
        right = log_proba[np.arange(self.codes.size), self.codes]
        return np.where(self.weights > 0.0, -right, 0.0)


def weights_by_prior(data: LabelledRows, points: Integers, prior: Floats) -> Floats:
    """Return weights (n_points,) of points. In each class with points, they sum to the prior of the class."""
    codes, weights = data.codes[points], data.all_weights[points]
    class_totals = np.maximum(np.bincount(codes, weights, minlength=prior.size), 1e-300)
    shares: Floats = weights / class_totals[codes] * prior[codes]
    return shares


def _normalized(weights: Floats) -> Floats:
    """Rescale weights to sum 1; if all weights are 0, return them unchanged."""
    normalized: Floats = weights / max(weights.sum(), 1e-300)
    return normalized

"""The rows of a search: which of them are predicted from all others, in which folds, and how they weigh."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corral._core.calibration import Target, log_of_prior
from corral._core.copies import effective_number, filled
from corral._core.rows import LabelledRows
from corral._core.settings import Floats, Integers

N_FOLDS = 5
_MANY_VALUES = 20 * N_FOLDS


@dataclass(frozen=True, eq=False)
class Trial:
    """What members of a pool are judged by.

    Attributes
    ----------
    data : the rows of the search.
    points : (n_points,) which of them are predicted from all others.
    folds : (n_rows,) which fifth each row belongs to; copies of a row to the same.
    weights : (n_points,) that sum to 1, in each class to its prior.
    prior : (n_classes,)
    lapse : share of probabilities given to the prior.
    """

    data: LabelledRows
    points: Integers
    folds: Integers
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
    ) -> Trial:
        """Divide rows into fifths of each class, and weigh points as the priors weigh their classes."""
        folds = _folds_of_groups(data, random) if data.grouped else _folds_of_rows(data, random)
        return cls(data, points, folds, _normalised_weights(data, points, prior), prior, lapse)

    def restricted_to(self, positions: Integers) -> Trial:
        """Keep some of the points, given by their positions among all points."""
        points = self.points[positions]
        return replace(self, points=points, weights=_normalised_weights(self.data, points, self.prior))

    @property
    def codes(self) -> Integers:
        """The right classes of the points."""
        return self.data.codes[self.points]


def _folds_of_rows(data: LabelledRows, random: np.random.RandomState) -> Integers:
    """Divide the rows of each class into fifths (n_rows,)."""
    folds = np.empty(len(data.X), dtype=np.int64)
    X = filled(data.X)
    for members in data.members():
        # By value, so that the order of rows does not matter. Rows that agree by chance share a fold
        # where there are enough different ones: a fold should not hide a large part of a class.
        distinct, value = np.unique(X[members], axis=0, return_inverse=True)
        if len(distinct) < _MANY_VALUES:
            value = np.argsort(np.argsort(value.reshape(-1), kind="stable"))
        folds[members] = (random.permutation(value.max(initial=0) + 1) % N_FOLDS)[value.reshape(-1)]
    _, first, unit = np.unique(data.units, return_index=True, return_inverse=True)
    return folds[first][unit]


def _folds_of_groups(data: LabelledRows, random: np.random.RandomState) -> Integers:
    """Divide the groups of each class into fifths (n_rows,): few groups must not share a fold by chance."""
    _, unit = np.unique(data.units, return_inverse=True)
    rank = np.argsort(np.lexsort(filled(data.X).T))  # the order of rows does not matter
    first = np.full(unit.max() + 1, unit.size)
    np.minimum.at(first, unit, rank)
    folds = np.full(first.size, -1)
    n_placed = 0
    for members in data.members():
        groups = np.unique(unit[members])
        groups = groups[folds[groups] < 0]  # a group with several classes has its place already
        groups = random.permutation(groups[np.argsort(first[groups])])
        folds[groups] = (n_placed + np.arange(groups.size)) % N_FOLDS
        n_placed += groups.size
    return folds[unit]


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

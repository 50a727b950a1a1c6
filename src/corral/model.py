r"""`LocalModel`, the base class of the fitted models of the pool and of the Rodeo.

A model estimates a density :math:`\hat p_y` for each class. The posterior combines the densities with the
priors :math:`\pi_y`,

.. math::

    P(y \mid x) = (1 - \varepsilon) \frac{\pi_y \hat p_y(x)}{\sum_{y'} \pi_{y'} \hat p_{y'}(x)}
        + \varepsilon \pi_y,

where :math:`\varepsilon` is the prior mixing: positive in a pool, 0 in the Rodeo.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers, check_array, check_number, check_shape, equal_or_none
from corral.conformal.typicality import MAX_POINTS, Estimates, Trust
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.subsample import evenly_spaced_by_class, example_rows
from corral.markers.comparison import Comparison, learn_comparison
from corral.markers.contrast import Contrast, learn_contrast, learn_missing_contrast
from corral.parallel import Computation
from corral.posterior import joint_log_probability, log_probability

# Evidence for a class is averaged over at most this number of its rows.
MAX_EXAMPLES = 50


class Examples(NamedTuple):
    """Training rows to explain; each row is left out of the densities in its own explanation."""

    X: Floats  # (n_examples, n_features)
    # codes, weights: (n_examples,)
    codes: Integers
    weights: Floats
    # own: (n_examples,) positions of the examples among the rows of their class
    # left_out: (n_examples,) positions of the examples among all rows
    # both are -1 for a row that no density contains
    own: Integers
    left_out: Integers

    @classmethod
    def choose(cls, rows: LabelledRows, positions: Integers, own: Integers, left_out: Integers) -> Examples:
        """Return the rows at the given positions as examples."""
        return cls(rows.X[positions], rows.codes[positions], rows.all_weights[positions], own, left_out)

    def take(self, positions: Integers) -> Examples:
        """Return the examples at the given positions."""
        X, codes, weights, own, left_out = self
        return Examples(
            X[positions], codes[positions], weights[positions], own[positions], left_out[positions]
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Examples]) -> Examples:
        """Concatenate the examples of several classes."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalModel(ABC):
    """A fitted model: class densities, priors and training rows.

    Terms: the background of a class is the rows of all other classes. A marker is a variable in which a class
    differs from its background.
    """

    prior: Floats  # (n_classes,) prior probability of each class
    n_duplicates: int  # number of training rows that are duplicates of other training rows
    training: TrainingRows  # the rows as they were given
    data: LabelledRows  # the rows with positive weight; duplicates in a class are merged
    min_effect: float  # smallest difference from the background that makes a variable a marker
    learnt_contrast: Contrast | None = None  # value of `contrast`, if the fit has computed the contrast
    # value of `comparison`, if the fit has computed the comparison because the model does not keep all rows
    learnt_comparison: Comparison | None = None

    def validate(self) -> None:
        """Raise ValueError if the fields are inconsistent; each field has already been validated alone."""
        n_classes, d = self.labels.size, self.n_features
        check_array("prior", self.prior, (n_classes,), 0.0, 1.0)
        if abs(self.prior.sum() - 1.0) > 1e-8:
            raise ValueError("prior does not sum to 1")
        check_number("n_duplicates", self.n_duplicates, 0)
        check_number("min_effect", self.min_effect, 0.0, 1.0)
        if not np.isin(self.training.y, self.labels).all():
            raise ValueError("y contains labels that are not classes of the model")
        check_shape("X", self.training.X, (None, d))
        if not equal_or_none(self.training.n_categories, self.data.n_categories):
            raise ValueError("training and data have different numbers of categories")
        if self.data.numbers.max(initial=-1) >= self.n_rows:
            raise ValueError("numbers contains a position that is not below n_rows")
        if self.learnt_contrast is not None:
            check_shape("markers", self.learnt_contrast.markers, (n_classes, d))
            self._check_categories("value", self.learnt_contrast.value)
        if self.learnt_comparison is not None:
            check_shape("direction", self.learnt_comparison.direction, (n_classes, d))
            self._check_categories("bounds", self.learnt_comparison.bounds)
            self._check_categories("middles", self.learnt_comparison.middles)

    def _check_categories(self, name: str, numbers: Floats) -> None:
        """Raise ValueError if codes (..., n_features) are not codes of categories; NaN stands for none."""
        n_categories = self.data.category_counts
        values = np.nan_to_num(numbers[..., n_categories > 0])
        if ((values < 0.0) | (values >= n_categories[n_categories > 0])).any():
            raise ValueError(f"{name} contains a code that is not the code of a category")

    @property
    def labels(self) -> NDArray[Any]:
        """(n_classes,) class labels, sorted."""
        return self.data.labels

    @property
    def n_features(self) -> int:
        """Number of variables."""
        return int(self.data.X.shape[1])

    @property
    def prior_mixing(self) -> float:
        """Share of the prior in each posterior probability; 0 unless a subclass overrides it."""
        return 0.0

    @abstractmethod
    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Return log densities (n_samples, n_classes) of samples (n_samples, n_features)."""

    def joint(self, log_density: Floats) -> Floats:
        """Return the logarithm of prior times density (n_samples, n_classes) from log densities."""
        return joint_log_probability(log_density, self.prior)

    def posterior(self, log_density: Floats) -> Floats:
        """Return the logarithm of the posterior (n_samples, n_classes) from log densities."""
        return log_probability(self.joint(log_density), self.prior, self.prior_mixing)

    @cached_property
    def contrast(self) -> Contrast:
        """Differences of each class from its background, also in variables that no density uses."""
        return self.learnt_contrast or learn_contrast(self.data, self.min_effect)

    @cached_property
    def comparison(self) -> Comparison:
        """Summaries of each class and of all other rows, on the scale of the table."""
        return self.learnt_comparison or learn_comparison(self.training, self.labels, self.contrast)

    @cached_property
    def missing_contrast(self) -> Contrast | None:
        """Differences of each class from its background in missing values; None if no value is missing."""
        return learn_missing_contrast(self.data, self.min_effect)

    @cached_property
    def trust(self) -> Trust:
        """Scores of training rows, each left out in turn: the reference for the typicality of samples."""
        return Trust(self)

    @property
    def compared_rows(self) -> LabelledRows:
        """Training rows that samples are compared with."""
        return self.data

    @property
    def all_rows(self) -> LabelledRows:
        """All training rows with positive weight, also rows that no density contains."""
        return self.data

    @property
    def n_rows(self) -> int:
        """Number of training rows that were given."""
        return len(self.training.X)

    @property
    def kept_rows(self) -> Integers | None:
        """Positions in the training table of the rows that a model file keeps; None if it keeps all rows."""
        return None

    @property
    def has_all_rows(self) -> bool:
        """Whether `training` contains all rows that were given, not only the rows that a file keeps."""
        return len(self.training.X) == self.n_rows

    @cached_property
    def class_ranges(self) -> Floats | None:
        """Lowest and highest training values (n_classes, 2, n_features); None if not all rows are kept.

        If a class has no value of a variable, the lowest value is infinity and the highest minus infinity.
        """
        if not self.has_all_rows:
            return None
        X, y, weights, *_ = self.training
        counted = np.ones(len(X), dtype=np.bool_) if weights is None else weights > 0.0
        rows_by_class = [X[counted & (y == label)] for label in self.labels]
        return np.array(
            [[np.fmin.reduce(x, initial=np.inf), np.fmax.reduce(x, initial=-np.inf)] for x in rows_by_class]
        )

    def rows_by_number(self, numbers: Integers) -> Floats:
        """Return training rows (n_numbers, n_features), given their positions in the training table."""
        if self.kept_rows is None:
            return self.training.X[numbers]
        order = np.argsort(self.kept_rows)
        return self.compared_rows.X[order[np.searchsorted(self.kept_rows, numbers, sorter=order)]]

    def rows_behind(self, a: int) -> Integers:
        """Return how many training rows each row of class `a` in `data` represents."""
        return np.ones(self.data.members()[a].size, dtype=np.int64)

    def examples(self, a: int) -> Examples:
        """Return at most `MAX_EXAMPLES` rows of class `a` to explain."""
        rows_of_class = self.data.members()[a]
        own = example_rows(self.data.X[rows_of_class], self.data.all_weights[rows_of_class], MAX_EXAMPLES)
        return Examples.choose(self.data, rows_of_class[own], own, rows_of_class[own])

    def calibration_points(self) -> Integers:
        """Return positions of the rows to leave out one by one: all, or evenly spaced rows of each class."""
        return evenly_spaced_by_class(self.data.codes, self.labels.size, MAX_POINTS)

    @abstractmethod
    def estimates(self, X: Floats, computation: Computation, *, bandwidths: bool = False) -> Estimates:
        """Return log densities and unscaled scores (n_samples, n_classes), computed in one pass.

        If `bandwidths` is true, the Rodeo also returns the bandwidths that it chooses.
        """

    @property
    def used(self) -> Bools:
        """(n_features,) whether the density of at least one class uses the variable."""
        return np.asarray(~np.isnan(self.data.X).all(axis=0))

    def leave_out(self, points: Integers, computation: Computation) -> Estimates:
        """Return estimates (n_points, n_classes) of the rows at `points`.

        Each row is left out of its own estimate, with its duplicates and its group.
        """
        return self.leave_out_of(points, self.compared_rows.X[points], computation)

    @abstractmethod
    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Return estimates (n_points, n_classes) of X.

        `X` (n_points, n_features) has the rows at `points`; some of their values may be replaced by NaN. Each
        row is left out of its own estimate, with its duplicates and its group.
        """

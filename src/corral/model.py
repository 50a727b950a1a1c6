r"""What the fitted models of the pool and of the Rodeo share: classes, priors, rows and the posterior.

The classes' densities, weighed by the priors, give the posterior; a pool gives a share
:math:`\varepsilon` (prior mixing) of it to the prior instead,

.. math::

    P(y \mid x) = (1 - \varepsilon) \frac{\pi_y \hat p_y(x)}{\sum_{y'} \pi_{y'} \hat p_{y'}(x)}
        + \varepsilon \pi_y.
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

# Evidence for a class is averaged over at most so many of its rows, evenly spread over all of them.
MAX_EXAMPLES = 50


class Examples(NamedTuple):
    """Training rows to explain, each of them without itself in the densities."""

    X: Floats  # (n_examples, n_features)
    # codes, weights: (n_examples,)
    codes: Integers
    weights: Floats
    # own, left_out: (n_examples,) their positions among the rows of the class, and among all rows; -1 for
    # rows that no density contains
    own: Integers
    left_out: Integers

    @classmethod
    def choose(cls, rows: LabelledRows, positions: Integers, own: Integers, left_out: Integers) -> Examples:
        """The rows at some positions."""
        return cls(rows.X[positions], rows.codes[positions], rows.all_weights[positions], own, left_out)

    def take(self, positions: Integers) -> Examples:
        """Some of the examples."""
        X, codes, weights, own, left_out = self
        return Examples(
            X[positions], codes[positions], weights[positions], own[positions], left_out[positions]
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Examples]) -> Examples:
        """Put the examples of several classes together."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalModel(ABC):
    """What a fit has learnt of the classes, with the training rows."""

    prior: Floats  # (n_classes,) probability of each class before a sample is seen
    n_duplicates: int  # how many training rows are duplicates of others
    training: TrainingRows  # the rows as they were given
    data: LabelledRows  # the rows that count, sorted by class, with their positions among those given
    min_effect: float  # least difference from the background that makes a variable a marker
    learnt_contrast: Contrast | None = None  # how classes differ, if the fit had to know it
    # classes beside all other rows, if the model does not keep all rows
    learnt_comparison: Comparison | None = None

    def validate(self) -> None:
        """Refuse parts that do not belong together; each of them has checked itself."""
        n_classes, d = self.labels.size, self.n_features
        check_array("prior", self.prior, (n_classes,), 0.0, 1.0)
        if abs(self.prior.sum() - 1.0) > 1e-8:
            raise ValueError("prior does not sum to 1")
        check_number("n_copies", self.n_duplicates, 0)
        check_number("min_effect", self.min_effect, 0.0, 1.0)
        if not np.isin(self.training.y, self.labels).all():
            raise ValueError("y holds labels of no class")
        check_shape("X", self.training.X, (None, d))
        if not equal_or_none(self.training.n_categories, self.data.n_categories):
            raise ValueError("the rows have other categories")
        if self.data.numbers.max(initial=-1) >= self.n_rows:
            raise ValueError("numbers holds a number that no row has")
        if self.learnt_contrast is not None:
            check_shape("markers", self.learnt_contrast.markers, (n_classes, d))
            self._check_categories("value", self.learnt_contrast.value)
        if self.learnt_comparison is not None:
            check_shape("direction", self.learnt_comparison.direction, (n_classes, d))
            self._check_categories("bounds", self.learnt_comparison.bounds)
            self._check_categories("middles", self.learnt_comparison.middles)

    def _check_categories(self, name: str, numbers: Floats) -> None:
        """Refuse numbers (..., n_features) of categories that there are not; NaN stands for none."""
        n_categories = self.data.category_counts
        values = np.nan_to_num(numbers[..., n_categories > 0])
        if ((values < 0.0) | (values >= n_categories[n_categories > 0])).any():
            raise ValueError(f"{name} holds a category that there is not")

    @property
    def labels(self) -> NDArray[Any]:
        """(n_classes,) classes in order."""
        return self.data.labels

    @property
    def n_features(self) -> int:
        """Number of variables."""
        return int(self.data.X.shape[1])

    @property
    def prior_mixing(self) -> float:
        """Share of every probability that is given to the prior; a pool has one."""
        return 0.0

    @abstractmethod
    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Log densities (n_samples, n_classes) of scaled samples."""

    def joint(self, log_density: Floats) -> Floats:
        """Logarithm of prior times density, from log densities."""
        return joint_log_probability(log_density, self.prior)

    def posterior(self, log_density: Floats) -> Floats:
        """Logarithm of the posterior, from log densities."""
        return log_probability(self.joint(log_density), self.prior, self.prior_mixing)

    @cached_property
    def contrast(self) -> Contrast:
        """How each class differs from its background in each variable, whatever the densities use."""
        return self.learnt_contrast or learn_contrast(self.data, self.min_effect)

    @cached_property
    def comparison(self) -> Comparison:
        """Each class beside all other rows, as the table has them."""
        return self.learnt_comparison or learn_comparison(self.training, self.labels, self.contrast)

    @cached_property
    def missing_contrast(self) -> Contrast | None:
        """How each class differs from its background in what is missing; None if nothing is."""
        return learn_missing_contrast(self.data, self.min_effect)

    @cached_property
    def trust(self) -> Trust:
        """Training rows, each left out, as a reference for samples; computed when it is first needed."""
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
    def kept_rows(self) -> Integers | None:
        """Positions of the training rows that a file keeps, among those that were given; None if all."""
        return None

    @property
    def has_all_rows(self) -> bool:
        """Whether `training` has all rows that were given, and not only those that a file has kept."""
        return len(self.training.X) == self.n_rows

    @cached_property
    def class_ranges(self) -> Floats | None:
        """Lowest and highest values (n_classes, 2, n_features) of training rows; None if too few are kept.

        A class without any value of a variable has the range from infinity to minus infinity.
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
        """Training rows (n_numbers, n_features) by their positions among those that were given."""
        if self.kept_rows is None:
            return self.training.X[numbers]
        order = np.argsort(self.kept_rows)
        return self.compared_rows.X[order[np.searchsorted(self.kept_rows, numbers, sorter=order)]]

    def rows_behind(self, a: int) -> Integers:
        """How many training rows each row of a class in `data` stands for."""
        return np.ones(self.data.members()[a].size, dtype=np.int64)

    def examples(self, a: int) -> Examples:
        """Rows of a class to explain, a subsample of all of them."""
        rows_of_class = self.data.members()[a]
        own = example_rows(self.data.X[rows_of_class], self.data.all_weights[rows_of_class], MAX_EXAMPLES)
        return Examples.choose(self.data, rows_of_class[own], own, rows_of_class[own])

    def calibration_points(self) -> Integers:
        """Which of these rows are left out, one by one: all, or some that are spread over each class."""
        return evenly_spaced_by_class(self.data.codes, self.labels.size, MAX_POINTS)

    @abstractmethod
    def estimates(self, X: Floats, computation: Computation, *, bandwidths: bool = False) -> Estimates:
        """Log densities and likenesses (n_samples, n_classes), in the time of one of them.

        With the bandwidths that the Rodeo chooses, if they are asked for and there are any.
        """

    @property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        return np.asarray(~np.isnan(self.data.X).all(axis=0))

    def leave_out(self, points: Integers, computation: Computation) -> Estimates:
        """Estimates (n_points, n_classes) of some rows, each without itself, its duplicates and its group."""
        return self.leave_out_of(points, self.compared_rows.X[points], computation)

    @abstractmethod
    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Estimates (n_points, n_classes) of X without some rows, their duplicates and their groups.

        `X` are the rows at `points`, of which values may be missing.
        """

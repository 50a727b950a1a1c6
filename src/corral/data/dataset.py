"""Training rows as they were given, and sorted by class with weights, duplicates and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.array_types import (
    LARGEST_INTEGER,
    SMALLEST,
    Bools,
    Floats,
    Integers,
    check_array,
    check_labels,
)
from corral.data.duplicates import duplicates_and_groups, merge_duplicates, number_duplicates
from corral.data.hashing import content_keys
from corral.data.tiles import ClassRows
from corral.data.weights import effective_number, shares_of_largest, weights_or_ones


class TrainingRows(NamedTuple):
    """Training rows as they were given."""

    X: Floats  # (n_rows, n_features)
    y: NDArray[Any]  # (n_rows,) labels
    weights: Floats | None  # (n_rows,) or None if all weights are equal
    # (n_features,) numbers of categories, 0 for measurements; None if all columns are measurements
    n_categories: Integers | None = None
    # (n_rows,) numbers of groups, whose rows are left out together; None if there are no groups
    groups: Integers | None = None

    def validate(self) -> None:
        """Refuse what no fit could have kept."""
        n, d = len(self.X), self.X.shape[-1]
        check_array("X", self.X, (None, None), nan=True)
        if self.y.shape != (n,):
            raise ValueError(f"y has the shape {self.y.shape} and not {(n,)}")
        if self.weights is not None:
            check_array("weights", self.weights, (n,), 0.0)
        if self.n_categories is not None:
            check_array("n_categories", self.n_categories, (d,), 0, LARGEST_INTEGER)
        if self.groups is not None:
            check_array("groups", self.groups, (n,), 0, LARGEST_INTEGER)

    def extended(self, more: TrainingRows) -> TrainingRows:
        """These rows, followed by more rows."""
        weights = groups = None
        if self.weights is not None or more.weights is not None:
            weights = np.concatenate([weights_or_ones(rows.weights, len(rows.X)) for rows in (self, more)])
        if self.groups is not None and more.groups is not None:
            groups = np.concatenate([self.groups, more.groups + self.groups.max(initial=-1) + 1])
        X, y = np.concatenate([self.X, more.X]), np.concatenate([self.y, more.y])
        return TrainingRows(X, y, weights, self.n_categories, groups)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Training rows with weight and numbered classes; duplicates in a class are merged into one row."""

    X: Floats  # (n_rows, n_features)
    codes: Integers  # (n_rows,) class numbers
    weights: Floats | None  # (n_rows,) weights, 1 at most, or None if all are equal
    labels: NDArray[Any]  # (n_classes,) classes in order; some may have no rows
    # (n_classes,) sums of the weights as given, or numbers of rows; after `take`, sums of `weights`
    counts: Floats
    numbers: Integers  # (n_rows,) positions among the given rows; the first one of duplicates
    # (n_rows,) numbers of what is left out together: rows of a group, duplicates with different labels
    group_ids: Integers
    # numbers that duplicates share, of all rows with weight before duplicates were merged; None if there are
    # none
    duplicates: Integers | None
    n_categories: Integers | None = None  # (n_features,) numbers of categories, 0 for measurements
    grouped: bool = False  # whether rows of a class may share a group

    @classmethod
    def sort(cls, training: TrainingRows, expected: NDArray[Any] | None = None) -> LabelledRows:
        """Drop rows without weight, number the classes, `expected` ones included, and merge duplicates."""
        X, y, weights, n_categories, groups = training
        numbers = np.arange(len(X))
        if weights is not None:
            numbers = np.flatnonzero(weights)
            X, y, weights = X[numbers], y[numbers], weights[numbers]
            groups = None if groups is None else groups[numbers]
        labels = np.unique(y) if expected is None else np.union1d(expected, y)
        codes = np.searchsorted(labels, y)
        counts = np.bincount(codes, weights, minlength=labels.size).astype(np.float64)
        duplicates, group_ids = duplicates_and_groups(number_duplicates(X, codes), groups, len(X))
        first = np.arange(len(X))
        if duplicates is not None:
            first, weights = merge_duplicates(duplicates * labels.size + codes, weights)
        return cls(
            X[first],
            codes[first],
            shares_of_largest(weights),
            labels,
            counts,
            numbers[first],
            group_ids[first],
            duplicates,
            n_categories,
            groups is not None,
        )

    def validate(self) -> None:
        """Refuse what no fit could have kept: positions, classes and weights that are out of bounds."""
        n = len(self.X)
        check_labels("labels", self.labels)
        check_array("X", self.X, (None, None), nan=True)
        check_array("codes", self.codes, (n,), 0, self.labels.size - 1)
        check_array("counts", self.counts, (self.labels.size,), 0.0)
        check_array("group_ids", self.group_ids, (n,), 0, LARGEST_INTEGER)
        check_array("numbers", self.numbers, (n,), 0, LARGEST_INTEGER)
        if np.unique(self.numbers).size != n:
            raise ValueError("numbers are not different")
        if self.weights is not None:
            check_array("weights", self.weights, (n,), SMALLEST, 1.0)
        if self.duplicates is not None:
            check_array("duplicates", self.duplicates, (None,), 0, LARGEST_INTEGER)
        if self.n_categories is not None:
            _check_categories(self.X, self.n_categories)

    @property
    def n_duplicates(self) -> int:
        """How many of the given rows are duplicates of others."""
        return 0 if self.duplicates is None else self.duplicates.size - np.unique(self.duplicates).size

    def take(self, positions: Integers) -> LabelledRows:
        """The rows at some positions, with all classes."""
        weights = None if self.weights is None else self.weights[positions]
        counts = np.bincount(self.codes[positions], weights, minlength=self.labels.size).astype(np.float64)
        return replace(
            self,
            X=self.X[positions],
            codes=self.codes[positions],
            weights=weights,
            counts=counts,
            numbers=self.numbers[positions],
            group_ids=self.group_ids[positions],
            duplicates=None,
        )

    def extended(self, more: LabelledRows) -> LabelledRows:
        """These rows, followed by more rows of the same classes; `counts` stay."""
        weights = None
        if self.weights is not None or more.weights is not None:
            weights = np.concatenate([self.all_weights, more.all_weights])
        return replace(
            self,
            X=np.concatenate([self.X, more.X]),
            codes=np.concatenate([self.codes, more.codes]),
            weights=weights,
            numbers=np.concatenate([self.numbers, more.numbers]),
            group_ids=np.concatenate([self.group_ids, more.group_ids]),
            duplicates=None,
        )

    @property
    def n(self) -> float:
        """Effective number of rows."""
        return float(len(self.X)) if self.weights is None else effective_number(self.weights)

    def members(self) -> list[Integers]:
        """Positions of the rows of each class."""
        return [np.flatnonzero(self.codes == a) for a in range(self.labels.size)]

    def content_order(self) -> Integers:
        """Ranks (n_rows,) of the rows by their values, whatever the order of rows, columns and labels is.

        Equal rows are ranked by the values in their classes.
        """
        keys = content_keys(self.X)
        class_keys = np.zeros(self.labels.size, dtype=np.uint64)
        np.add.at(class_keys, self.codes, keys)
        return np.argsort(np.lexsort((class_keys[self.codes], keys)))

    def own_rows(self, rows_of_class: Integers, positions: Integers) -> Integers:
        """Positions within a class of a row in the same group as each given row.

        Parameters
        ----------
        rows_of_class : positions of the rows of the class.
        positions : (n,) positions of the given rows, or -1.

        Returns
        -------
        own : (n,), -1 if the class has no row of the group, and for the position -1.
        """
        group_ids, first = np.unique(self.group_ids[rows_of_class], return_index=True)
        if not group_ids.size:
            return np.full(positions.size, -1)
        wanted = self.group_ids[positions]
        nearest = np.minimum(np.searchsorted(group_ids, wanted), group_ids.size - 1)
        return np.where((positions >= 0) & (group_ids[nearest] == wanted), first[nearest], -1)

    def weights_of(self, positions: Integers) -> Floats | None:
        """Weights of the rows at some positions, or None if all weights are equal."""
        return None if self.weights is None else self.weights[positions]

    @property
    def all_weights(self) -> Floats:
        """(n_rows,) weights, 1 if all are equal."""
        return weights_or_ones(self.weights, len(self.X))

    @property
    def is_alone(self) -> Bools:
        """(n_rows,) whether the class of a row has no row of another group."""
        _, group = np.unique(self.group_ids * np.int64(self.labels.size) + self.codes, return_inverse=True)
        is_alone: Bools = np.bincount(group)[group] == np.bincount(self.codes)[self.codes]
        return is_alone

    @property
    def mixed(self) -> bool:
        """Whether there are missing values or categories."""
        return bool(self.category_counts.any()) or bool(np.isnan(self.X).any())

    @property
    def general(self) -> bool:
        """Whether there are missing values, categories or groups."""
        return self.grouped or self.mixed

    @property
    def category_counts(self) -> Integers:
        """(n_features,) numbers of categories, 0 for measurements."""
        return np.zeros(self.X.shape[1], dtype=np.int64) if self.n_categories is None else self.n_categories

    def arrange(self, scaled: Floats) -> Sequence[ClassRows]:
        """The scaled rows of each class in the layout of the compiled loops."""
        return [
            ClassRows.arrange(
                scaled[rows],
                self.weights_of(rows),
                self.category_counts,
                self.group_ids[rows] if self.grouped else None,
            )
            for rows in self.members()
        ]


def _check_categories(X: Floats, n_categories: Integers) -> None:
    """Refuse columns of categories that hold anything but their numbers."""
    check_array("n_categories", n_categories, (X.shape[1],), 0, LARGEST_INTEGER)
    numbers = np.where(np.isnan(X), 0.0, X)[:, n_categories > 0]
    is_number = (numbers >= 0.0) & (numbers < n_categories[n_categories > 0]) & (numbers % 1.0 == 0.0)
    if not is_number.all():
        raise ValueError("X holds something else than numbers of categories")

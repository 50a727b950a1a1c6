"""Training rows as they were given (`TrainingRows`), and prepared for a fit (`LabelledRows`).

A group is a set of rows that are left out together, for example the rows of one patient. A code is the index
of a class among the sorted labels, or of a category among the categories of a column.
"""

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

    X: Floats  # (n_rows, n_features) values, codes of categories, NaN for missing values
    y: NDArray[Any]  # (n_rows,) labels
    weights: Floats | None  # (n_rows,) weights; None if all weights are equal
    # (n_features,) number of categories of each column, 0 for a numeric column; None if all are numeric
    n_categories: Integers | None = None
    groups: Integers | None = None  # (n_rows,) group ids; None if there are no groups

    def validate(self) -> None:
        """Raise ValueError if shapes are inconsistent or a value is out of range."""
        n, d = len(self.X), self.X.shape[-1]
        check_array("X", self.X, (None, None), nan=True)
        if self.y.shape != (n,):
            raise ValueError(f"y has shape {self.y.shape} instead of {(n,)}")
        if self.weights is not None:
            check_array("weights", self.weights, (n,), 0.0)
        if self.n_categories is not None:
            check_array("n_categories", self.n_categories, (d,), 0, LARGEST_INTEGER)
        if self.groups is not None:
            check_array("groups", self.groups, (n,), 0, LARGEST_INTEGER)

    def extended(self, more: TrainingRows) -> TrainingRows:
        """Return these rows, followed by `more` rows with other groups."""
        weights = groups = None
        if self.weights is not None or more.weights is not None:
            weights = np.concatenate([weights_or_ones(rows.weights, len(rows.X)) for rows in (self, more)])
        if self.groups is not None and more.groups is not None:
            groups = np.concatenate([self.groups, more.groups + self.groups.max(initial=-1) + 1])
        X, y = np.concatenate([self.X, more.X]), np.concatenate([self.y, more.y])
        return TrainingRows(X, y, weights, self.n_categories, groups)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Training rows with positive weight and class codes; duplicates in a class are merged into one row."""

    X: Floats  # (n_rows, n_features) values, codes of categories, NaN for missing values
    codes: Integers  # (n_rows,) class codes
    weights: Floats | None  # (n_rows,) weights, at most 1; None if all weights are equal
    labels: NDArray[Any]  # (n_classes,) sorted class labels; a class may have no rows
    # (n_classes,) sums of the given weights, or numbers of rows if weights were not given; after `take`, sums
    # of `weights` of the remaining rows
    counts: Floats
    numbers: Integers  # (n_rows,) positions in the given table; of merged duplicates, the first position
    # (n_rows,) ids; rows with equal ids are left out together: groups, duplicates with different labels
    group_ids: Integers
    # ids that duplicates share, one for each row with positive weight before duplicates were merged; None if
    # there are no duplicates
    duplicates: Integers | None
    # (n_features,) number of categories of each column, 0 for a numeric column; None if all are numeric
    n_categories: Integers | None = None
    grouped: bool = False  # whether rows of a class may share a group

    @classmethod
    def sort(cls, training: TrainingRows, expected: NDArray[Any] | None = None) -> LabelledRows:
        """Drop rows of weight 0, compute class codes, and merge duplicates.

        Parameters
        ----------
        training : the given rows, in any order; the rows of the result are in the same order.
        expected : labels that are classes even if no row has them.
        """
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
        """Raise ValueError if shapes are inconsistent or positions, codes or weights are out of range."""
        n = len(self.X)
        check_labels("labels", self.labels)
        check_array("X", self.X, (None, None), nan=True)
        check_array("codes", self.codes, (n,), 0, self.labels.size - 1)
        check_array("counts", self.counts, (self.labels.size,), 0.0)
        check_array("group_ids", self.group_ids, (n,), 0, LARGEST_INTEGER)
        check_array("numbers", self.numbers, (n,), 0, LARGEST_INTEGER)
        if np.unique(self.numbers).size != n:
            raise ValueError("numbers contains a position twice")
        if self.weights is not None:
            check_array("weights", self.weights, (n,), SMALLEST, 1.0)
        if self.duplicates is not None:
            check_array("duplicates", self.duplicates, (None,), 0, LARGEST_INTEGER)
        if self.n_categories is not None:
            _check_categories(self.X, self.n_categories)

    @property
    def n_duplicates(self) -> int:
        """Number of given rows that are duplicates of an earlier row."""
        return 0 if self.duplicates is None else self.duplicates.size - np.unique(self.duplicates).size

    def take(self, positions: Integers) -> LabelledRows:
        """Return the rows at the given positions; all classes are kept, even without rows."""
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
        """Return these rows, followed by `more` rows of the same classes; `counts` is not changed."""
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
        """Return a list of n_classes arrays: the positions of the rows of each class."""
        return [np.flatnonzero(self.codes == a) for a in range(self.labels.size)]

    def content_order(self) -> Integers:
        """Return ranks (n_rows,) of the rows that depend on values only.

        The ranks do not depend on the order of rows or columns, or on the labels. Equal rows of different
        classes are ranked by all values of their classes.
        """
        keys = content_keys(self.X)
        class_keys = np.zeros(self.labels.size, dtype=np.uint64)
        np.add.at(class_keys, self.codes, keys)
        return np.argsort(np.lexsort((class_keys[self.codes], keys)))

    def own_rows(self, rows_of_class: Integers, positions: Integers) -> Integers:
        """Find for each given row a row of a class that is in the same group.

        Parameters
        ----------
        rows_of_class : positions of the rows of the class.
        positions : (n,) positions of the given rows, or -1.

        Returns
        -------
        own : (n,) index in `rows_of_class` of the first row of the same group; -1 if there is none, or if the
            position is -1.
        """
        group_ids, first = np.unique(self.group_ids[rows_of_class], return_index=True)
        if not group_ids.size:
            return np.full(positions.size, -1)
        wanted = self.group_ids[positions]
        nearest = np.minimum(np.searchsorted(group_ids, wanted), group_ids.size - 1)
        return np.where((positions >= 0) & (group_ids[nearest] == wanted), first[nearest], -1)

    def weights_of(self, positions: Integers) -> Floats | None:
        """Return the weights of the rows at the given positions; None if all weights are equal."""
        return None if self.weights is None else self.weights[positions]

    @property
    def all_weights(self) -> Floats:
        """(n_rows,) weights; 1 if all weights are equal."""
        return weights_or_ones(self.weights, len(self.X))

    @property
    def is_alone(self) -> Bools:
        """(n_rows,) whether all rows of the class of a row are in the group of the row."""
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
        """(n_features,) number of categories of each column, 0 for a numeric column."""
        return np.zeros(self.X.shape[1], dtype=np.int64) if self.n_categories is None else self.n_categories

    def arrange(self, scaled: Floats) -> Sequence[ClassRows]:
        """Return for each class its scaled rows in the layout of the compiled loops."""
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
    """Raise ValueError if a column with categories contains anything but codes of categories and NaN."""
    check_array("n_categories", n_categories, (X.shape[1],), 0, LARGEST_INTEGER)
    numbers = np.where(np.isnan(X), 0.0, X)[:, n_categories > 0]
    is_number = (numbers >= 0.0) & (numbers < n_categories[n_categories > 0]) & (numbers % 1.0 == 0.0)
    if not is_number.all():
        raise ValueError("X contains a value that is not the code of a category")

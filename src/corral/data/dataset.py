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
    weights: Floats | None  # (n_rows,) or None if all rows matter alike
    # (n_features,) how many levels each column has whose values are numbers of levels, 0 for a column of
    # measurements; None if all are
    n_categories: Integers | None = None
    # (n_rows,) numbers; rows that share one are left out together. None if each row stands alone.
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
            check_array("levels", self.n_categories, (d,), 0, LARGEST_INTEGER)
        if self.groups is not None:
            check_array("groups", self.groups, (n,), 0, LARGEST_INTEGER)

    def extended(self, more: TrainingRows) -> TrainingRows:
        """Put further rows behind these."""
        weights = groups = None
        if self.weights is not None or more.weights is not None:
            weights = np.concatenate([weights_or_ones(rows.weights, len(rows.X)) for rows in (self, more)])
        if self.groups is not None and more.groups is not None:
            groups = np.concatenate([self.groups, more.groups + self.groups.max(initial=-1) + 1])
        X, y = np.concatenate([self.X, more.X]), np.concatenate([self.y, more.y])
        return TrainingRows(X, y, weights, self.n_categories, groups)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Training rows that count, with numbers for their classes; copies in a class are one row."""

    X: Floats  # (n_rows, n_features)
    codes: Integers  # (n_rows,) class numbers
    weights: Floats | None  # (n_rows,) how much each row matters, or None if all matter alike
    labels: NDArray[Any]  # (n_classes,) classes in order, some perhaps without rows
    # (n_classes,) sums of the weights as given, or numbers of rows; of a part, sums of `weights`
    counts: Floats
    numbers: Integers  # (n_rows,) positions among the rows that were given, of copies that of the first
    # (n_rows,) numbers that copies with other labels and rows of a group share: they are left out together
    group_ids: Integers
    # numbers that copies of one unit share, of all rows that count, before copies were merged; None without
    # any
    duplicates: Integers | None
    n_categories: Integers | None = None  # (n_features,) numbers of levels, 0 for a column of measurements
    grouped: bool = False  # whether rows of a class may share a unit

    @classmethod
    def sort(cls, training: TrainingRows, expected: NDArray[Any] | None = None) -> LabelledRows:
        """Drop rows without weight, number the classes, also those expected, and merge copies."""
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
        check_array("units", self.group_ids, (n,), 0, LARGEST_INTEGER)
        check_array("numbers", self.numbers, (n,), 0, LARGEST_INTEGER)
        if np.unique(self.numbers).size != n:
            raise ValueError("numbers are not different")
        if self.weights is not None:
            check_array("weights", self.weights, (n,), SMALLEST, 1.0)
        if self.duplicates is not None:
            check_array("copies", self.duplicates, (None,), 0, LARGEST_INTEGER)
        if self.n_categories is not None:
            _check_categories(self.X, self.n_categories)

    @property
    def n_duplicates(self) -> int:
        """How many of the rows that were given are copies of others."""
        return 0 if self.duplicates is None else self.duplicates.size - np.unique(self.duplicates).size

    def take(self, positions: Integers) -> LabelledRows:
        """Keep some of the rows, and all classes."""
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
        """Put further rows of the same classes behind these; the counts stay."""
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
        """How many rows of equal weight they are worth."""
        return float(len(self.X)) if self.weights is None else effective_number(self.weights)

    def members(self) -> list[Integers]:
        """List the positions of the rows of each class."""
        return [np.flatnonzero(self.codes == a) for a in range(self.labels.size)]

    def content_order(self) -> Integers:
        """Number the rows (n_rows,) by what they hold: the order of rows, columns and labels does not matter.

        Equal rows are numbered by what their classes hold.
        """
        keys = content_keys(self.X)
        of_classes = np.zeros(self.labels.size, dtype=np.uint64)
        np.add.at(of_classes, self.codes, keys)
        return np.argsort(np.lexsort((of_classes[self.codes], keys)))

    def own_rows(self, of_class: Integers, positions: Integers) -> Integers:
        """Where in a class, whose rows are given, a row stands that shares the unit of each of some rows.

        It is -1 if there is none, and for the position -1.
        """
        group_ids, first = np.unique(self.group_ids[of_class], return_index=True)
        if not group_ids.size:
            return np.full(positions.size, -1)
        wanted = self.group_ids[positions]
        at = np.minimum(np.searchsorted(group_ids, wanted), group_ids.size - 1)
        return np.where((positions >= 0) & (group_ids[at] == wanted), first[at], -1)

    def weights_of(self, positions: Integers) -> Floats | None:
        """Weights of some of the rows, or None if all rows matter alike."""
        return None if self.weights is None else self.weights[positions]

    @property
    def all_weights(self) -> Floats:
        """(n_rows,) how much each row matters, 1 if all matter alike."""
        return weights_or_ones(self.weights, len(self.X))

    @property
    def is_alone(self) -> Bools:
        """(n_rows,) whether the class of a row has no row of another unit."""
        _, unit = np.unique(self.group_ids * np.int64(self.labels.size) + self.codes, return_inverse=True)
        is_alone: Bools = np.bincount(unit)[unit] == np.bincount(self.codes)[self.codes]
        return is_alone

    @property
    def mixed(self) -> bool:
        """Whether values are missing or levels."""
        return bool(self.category_counts.any()) or bool(np.isnan(self.X).any())

    @property
    def general(self) -> bool:
        """Whether values are missing or levels, or rows are left out together."""
        return self.grouped or self.mixed

    @property
    def category_counts(self) -> Integers:
        """Number of levels of each column, 0 for measurements."""
        return np.zeros(self.X.shape[1], dtype=np.int64) if self.n_categories is None else self.n_categories

    def arrange(self, scaled: Floats) -> Sequence[ClassRows]:
        """Put the rows of each class, scaled, in the order in which kernels read them."""
        return [
            ClassRows.arrange(
                scaled[at],
                self.weights_of(at),
                self.category_counts,
                self.group_ids[at] if self.grouped else None,
            )
            for at in self.members()
        ]


def _check_categories(X: Floats, n_categories: Integers) -> None:
    """Refuse columns of levels that hold anything but their numbers."""
    check_array("levels", n_categories, (X.shape[1],), 0, LARGEST_INTEGER)
    numbers = np.where(np.isnan(X), 0.0, X)[:, n_categories > 0]
    if (
        (numbers < 0.0).any()
        or (numbers >= n_categories[n_categories > 0]).any()
        or (numbers % 1.0 != 0.0).any()
    ):
        raise ValueError("X holds something else than numbers of levels")

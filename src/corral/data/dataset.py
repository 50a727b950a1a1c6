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
from corral.data.duplicates import copies_and_units, merge_copies, number_copies
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
    levels: Integers | None = None
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
        if self.levels is not None:
            check_array("levels", self.levels, (d,), 0, LARGEST_INTEGER)
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
        return TrainingRows(X, y, weights, self.levels, groups)


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
    units: Integers
    # numbers that copies of one unit share, of all rows that count, before copies were merged; None without
    # any
    copies: Integers | None
    levels: Integers | None = None  # (n_features,) numbers of levels, 0 for a column of measurements
    grouped: bool = False  # whether rows of a class may share a unit

    @classmethod
    def sort(cls, training: TrainingRows, expected: NDArray[Any] | None = None) -> LabelledRows:
        """Drop rows without weight, number the classes, also those expected, and merge copies."""
        X, y, weights, levels, groups = training
        numbers = np.arange(len(X))
        if weights is not None:
            numbers = np.flatnonzero(weights)
            X, y, weights = X[numbers], y[numbers], weights[numbers]
            groups = None if groups is None else groups[numbers]
        labels = np.unique(y) if expected is None else np.union1d(expected, y)
        codes = np.searchsorted(labels, y)
        counts = np.bincount(codes, weights, minlength=labels.size).astype(np.float64)
        copies, units = copies_and_units(number_copies(X, codes), groups, len(X))
        first = np.arange(len(X))
        if copies is not None:
            first, weights = merge_copies(copies * labels.size + codes, weights)
        return cls(
            X[first],
            codes[first],
            shares_of_largest(weights),
            labels,
            counts,
            numbers[first],
            units[first],
            copies,
            levels,
            groups is not None,
        )

    def validate(self) -> None:
        """Refuse what no fit could have kept: positions, classes and weights that are out of bounds."""
        n = len(self.X)
        check_labels("labels", self.labels)
        check_array("X", self.X, (None, None), nan=True)
        check_array("codes", self.codes, (n,), 0, self.labels.size - 1)
        check_array("counts", self.counts, (self.labels.size,), 0.0)
        check_array("units", self.units, (n,), 0, LARGEST_INTEGER)
        check_array("numbers", self.numbers, (n,), 0, LARGEST_INTEGER)
        if np.unique(self.numbers).size != n:
            raise ValueError("numbers are not different")
        if self.weights is not None:
            check_array("weights", self.weights, (n,), SMALLEST, 1.0)
        if self.copies is not None:
            check_array("copies", self.copies, (None,), 0, LARGEST_INTEGER)
        if self.levels is not None:
            _check_levels(self.X, self.levels)

    @property
    def n_copies(self) -> int:
        """How many of the rows that were given are copies of others."""
        return 0 if self.copies is None else self.copies.size - np.unique(self.copies).size

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
            units=self.units[positions],
            copies=None,
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
            units=np.concatenate([self.units, more.units]),
            copies=None,
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
        units, first = np.unique(self.units[of_class], return_index=True)
        if not units.size:
            return np.full(positions.size, -1)
        wanted = self.units[positions]
        at = np.minimum(np.searchsorted(units, wanted), units.size - 1)
        return np.where((positions >= 0) & (units[at] == wanted), first[at], -1)

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
        _, unit = np.unique(self.units * np.int64(self.labels.size) + self.codes, return_inverse=True)
        is_alone: Bools = np.bincount(unit)[unit] == np.bincount(self.codes)[self.codes]
        return is_alone

    @property
    def mixed(self) -> bool:
        """Whether values are missing or levels."""
        return bool(self.level_counts.any()) or bool(np.isnan(self.X).any())

    @property
    def general(self) -> bool:
        """Whether values are missing or levels, or rows are left out together."""
        return self.grouped or self.mixed

    @property
    def level_counts(self) -> Integers:
        """Number of levels of each column, 0 for measurements."""
        return np.zeros(self.X.shape[1], dtype=np.int64) if self.levels is None else self.levels

    def arrange(self, scaled: Floats) -> Sequence[ClassRows]:
        """Put the rows of each class, scaled, in the order in which kernels read them."""
        return [
            ClassRows.arrange(
                scaled[at], self.weights_of(at), self.level_counts, self.units[at] if self.grouped else None
            )
            for at in self.members()
        ]


def _check_levels(X: Floats, levels: Integers) -> None:
    """Refuse columns of levels that hold anything but their numbers."""
    check_array("levels", levels, (X.shape[1],), 0, LARGEST_INTEGER)
    numbers = np.where(np.isnan(X), 0.0, X)[:, levels > 0]
    if (numbers < 0.0).any() or (numbers >= levels[levels > 0]).any() or (numbers % 1.0 != 0.0).any():
        raise ValueError("X holds something else than numbers of levels")

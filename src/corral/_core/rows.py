"""Training rows: sorted by class, weighed, and cut into tiles as the kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral._core import kernels
from corral._core.copies import (
    content_keys,
    copies_and_units,
    effective_number,
    merge_copies,
    number_copies,
    shares_of_largest,
    weights_or_ones,
)
from corral._core.settings import SMALLEST_COUNT, Bools, Floats, Integers

TINY = float(np.finfo(np.float64).tiny)


class TrainingRows(NamedTuple):
    """Training rows as they were given.

    Attributes
    ----------
    X : (n_rows, n_features)
    y : (n_rows,) labels.
    weights : (n_rows,) or None if all rows matter alike.
    levels : (n_features,) how many levels each column has whose values are numbers of levels, 0 for a column
        of measurements; None if all are.
    groups : (n_rows,) numbers; rows that share one are left out together. None if each row stands alone.
    """

    X: Floats
    y: NDArray[Any]
    weights: Floats | None
    levels: Integers | None = None
    groups: Integers | None = None

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
    """Training rows that count, with numbers for their classes; copies in a class are one row.

    Attributes
    ----------
    X : (n_rows, n_features)
    codes : (n_rows,) class numbers.
    weights : (n_rows,) how much each row matters, or None if all matter alike.
    labels : (n_classes,) classes in order, some perhaps without rows.
    counts : (n_classes,) sums of the weights as given, or numbers of rows; of a part, sums of `weights`.
    numbers : (n_rows,) positions among the rows that were given, of copies that of the first.
    units : (n_rows,) numbers that copies with other labels and rows of a group share: they are left out
        together.
    copies : numbers that copies of one unit share, of all rows that count, before copies were merged; None
        without any.
    levels : (n_features,) numbers of levels, 0 for a column of measurements.
    grouped : whether rows of a class may share a unit.
    """

    X: Floats
    codes: Integers
    weights: Floats | None
    labels: NDArray[Any]
    counts: Floats
    numbers: Integers
    units: Integers
    copies: Integers | None
    levels: Integers | None = None
    grouped: bool = False

    @classmethod
    def sort(
        cls,
        training: TrainingRows,
        expected: NDArray[Any] | None = None,
        *,
        find_copies: Callable[[Floats, Integers], Integers | None] = number_copies,
    ) -> LabelledRows:
        """Drop rows without weight, number the classes, also those expected, and merge copies.

        `find_copies` numbers the rows that are left, given their class numbers, so that copies share a
        number, or returns None.
        """
        X, y, weights, levels, groups = training
        numbers = np.arange(len(X))
        if weights is not None:
            numbers = np.flatnonzero(weights)
            X, y, weights = X[numbers], y[numbers], weights[numbers]
            groups = None if groups is None else groups[numbers]
        labels = np.unique(y) if expected is None else np.union1d(expected, y)
        codes = np.searchsorted(labels, y)
        counts = np.bincount(codes, weights, minlength=labels.size).astype(np.float64)
        copies, units = copies_and_units(find_copies(X, codes), groups, len(X))
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

    def own_rows(self, positions: Integers) -> list[Integers]:
        """For each class where in it a row stands that shares the unit of each of some rows; -1 if none."""
        return [self.own_rows_in(of_class, positions) for of_class in self.members()]

    def own_rows_in(self, of_class: Integers, positions: Integers) -> Integers:
        """The same for one class, whose rows are given; -1 for the position -1 as well."""
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

    def arrange(self, scaled: Floats) -> Sequence[AnyRows]:
        """Put the rows of each class, scaled, in the order in which kernels read them."""
        if not self.general:
            return [ClassRows.arrange(scaled[at], self.weights_of(at)) for at in self.members()]
        return [
            GeneralRows.arrange(scaled[at], self.weights_of(at), self.level_counts, self.units[at])
            for at in self.members()
        ]


def squared_factor(n: Floats | np.float64) -> Floats:
    """Return L = 2 log(n log n), where lambda_j^2 = L s_j^2."""
    L: Floats = 2.0 * np.log(n * np.log(np.maximum(n, SMALLEST_COUNT)))
    return L


def critical_ratio(n: Floats) -> Floats:
    """Return what (sum Z_ji)^2 / sum Z_ji^2 must exceed for a bandwidth to shrink."""
    enough = np.maximum(n, 1.0 + 1e-9)
    L = squared_factor(enough)
    # One row has no variance, so nothing can be told from noise: no ratio exceeds n (Cauchy-Schwarz).
    return np.where(n > 1.0, L * enough / (enough - 1.0 + L), 2.0)


class Left(NamedTuple):
    """What is left of a class at some queries, each of which may leave one row out: (n_queries,) arrays.

    Attributes
    ----------
    total : sum of the weights.
    n : effective number of rows.
    """

    total: Floats
    n: Floats

    @property
    def critical(self) -> Floats:
        """What (sum w_i Z_ji)^2 / sum w_i Z_ji^2 must exceed for a bandwidth to shrink."""
        ratio: Floats = critical_ratio(self.n) * (self.total / np.maximum(self.n, TINY))
        return ratio


@dataclass(frozen=True)
class Measure:
    """How much the rows of a class weigh together, when the heaviest row weighs 1.

    Attributes
    ----------
    largest : the largest weight as given, by which weights are divided.
    alike : whether all rows have that weight.
    total, squares : sums of the weights and of their squares, after that.
    rest, rest_squares : the same without the heaviest row: a difference could lose all digits.
    n : the number of rows that they are worth in formulas.
    """

    largest: float
    alike: bool
    total: float
    squares: float
    rest: float
    rest_squares: float
    n: float

    @classmethod
    def of(cls, n_rows: int, weights: Floats | None) -> Measure:
        """Measure the rows of a class."""
        largest = 1.0 if weights is None else float(weights.max(initial=0.0))
        if weights is None or (weights == largest).all():
            n, rest = float(n_rows), max(n_rows - 1.0, 0.0)
            return cls(largest, True, n, n, rest, rest, n)
        others = np.delete(np.maximum(weights / largest, 1e-100), weights.argmax())
        rest, rest_squares = float(others.sum()), float((others * others).sum())
        total, squares = 1.0 + rest, 1.0 + rest_squares
        return cls(largest, False, total, squares, rest, rest_squares, total * total / squares)

    def left(self, weight: Floats) -> Left:
        """What is left when rows of these weights are left out."""
        heaviest = weight == 1.0
        total = np.where(heaviest, self.rest, self.total - weight)
        squares = np.where(heaviest, self.rest_squares, self.squares - weight * weight)
        n = np.where(weight > 0.0, total * total / np.maximum(squares, TINY), self.n)
        return Left(total, n)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows of one class as the kernels read them.

    Attributes
    ----------
    tiles : (n_tiles, n_features, tile) scaled rows.
    n_rows : number of rows; the tiles hold copies of the first one behind the last.
    weights : (n_rows,) how much each row matters, at most 1, or None if all matter alike.
    measure : how much they weigh together.
    """

    tiles: Floats
    n_rows: int
    weights: Floats | None
    measure: Measure

    @classmethod
    def arrange(cls, X: Floats, weights: Floats | None, tile_rows: int | None = None) -> ClassRows:
        """Cut scaled rows into tiles.

        A tile has at most `tile_rows` rows, a multiple of `kernels.LANES`; by default `kernels.TILE`.
        """
        n_rows, d = X.shape
        measure = Measure.of(n_rows, weights)
        if weights is not None:
            weights = None if measure.alike else np.maximum(weights / measure.largest, 1e-100)
        n_tiles = max(1, -(-n_rows // (tile_rows or kernels.TILE)))
        size = max(1, -(-n_rows // (n_tiles * kernels.LANES))) * kernels.LANES
        tiles = np.zeros((n_tiles, d, size))
        for t in range(n_tiles):
            tile = X[t * size : (t + 1) * size]
            tiles[t, :, : len(tile)] = tile.T
            if n_rows:
                tiles[t, :, len(tile) :] = X[:1].T
        return cls(tiles, n_rows, weights, measure)

    @property
    def n_features(self) -> int:
        """Number of variables."""
        return int(self.tiles.shape[1])

    @property
    def size(self) -> int:
        """Numbers that an estimate reads."""
        return int(self.tiles.size)

    def left(self, own: Integers) -> Left:
        """What is left of the class when each query leaves a row out, or none (-1)."""
        return self.measure.left(self.weight(own))

    def select(self, variables: Integers) -> ClassRows:
        """Keep some of the variables."""
        return replace(self, tiles=np.ascontiguousarray(self.tiles[:, variables]))

    def take(self, positions: Integers) -> Floats:
        """Return some of the scaled rows, (n_positions, n_features)."""
        size = self.tiles.shape[2]
        return self.tiles[positions // size, :, positions % size]

    def all(self) -> Floats:
        """Return all scaled rows, (n_rows, n_features)."""
        return self.take(np.arange(self.n_rows))

    def weight(self, positions: Integers) -> Floats:
        """Return the weights of some of the rows; 0 for row -1, which is none."""
        if self.weights is None or not self.n_rows:
            return np.where(positions >= 0, 1.0, 0.0)
        return np.where(positions >= 0, self.weights[positions], 0.0)

    def root(self) -> Floats | None:
        """Square roots of the weights, in tiles."""
        if self.weights is None:
            return None
        n_tiles, _, size = self.tiles.shape
        root = np.zeros(n_tiles * size)
        root[: self.n_rows] = np.sqrt(self.weights)
        return root.reshape(n_tiles, size)


@dataclass(frozen=True, eq=False)
class GeneralRows:
    """The rows of one class where values are missing or levels, or rows are left out together.

    Attributes
    ----------
    X : (n_features, n_rows) scaled rows, NaN for gaps; of a column of levels their numbers.
    levels : (n_features,) number of levels, 0 for a column of measurements.
    units : (n_rows,) numbers; rows that share one are left out together.
    weights : (n_rows,) how much each row matters, at most 1, or None if all matter alike.
    measure : of all rows together.
    """

    X: Floats
    levels: Integers
    units: Integers
    weights: Floats | None
    measure: Measure

    @classmethod
    def arrange(cls, X: Floats, weights: Floats | None, levels: Integers, units: Integers) -> GeneralRows:
        """Lay scaled rows (n_rows, n_features) out variable by variable."""
        measure = Measure.of(len(X), weights)
        if weights is not None:
            weights = None if measure.alike else np.maximum(weights / measure.largest, 1e-100)
        return cls(np.ascontiguousarray(X.T), levels, units, weights, measure)

    @classmethod
    def of(cls, rows: ClassRows) -> GeneralRows:
        """Lay out rows without gaps, of which samples may have some."""
        levels = np.zeros(rows.n_features, dtype=np.int64)
        units = np.arange(rows.n_rows)
        return cls(np.ascontiguousarray(rows.all().T), levels, units, rows.weights, rows.measure)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[1])

    @property
    def n_features(self) -> int:
        """Number of variables."""
        return int(self.X.shape[0])

    @property
    def size(self) -> int:
        """Numbers that an estimate reads."""
        return max(int(self.X.size), 1)

    def left(self, own: Integers) -> Left:
        """What is left of the class when each query leaves the unit of a row out, or nothing (-1)."""
        w = self.weight(np.arange(self.n_rows))
        _, unit = np.unique(self.units, return_inverse=True)
        out, squares = np.bincount(unit, w), np.bincount(unit, w * w)
        if not self.n_rows:
            return self.measure.left(np.zeros(own.size))
        heavy = int(out.argmax())  # of which a difference could lose all digits
        rest = np.where(np.arange(out.size) == heavy, w[unit != heavy].sum(), w.sum() - out)
        rest_squares = (w * w).sum() - squares
        rest_squares[heavy] = (w[unit != heavy] ** 2).sum()
        at = unit[np.maximum(own, 0)]
        total = np.where(own >= 0, rest[at], self.measure.total)
        left_squares = np.where(own >= 0, rest_squares[at], self.measure.squares)
        n = total * total / np.maximum(left_squares, TINY)
        return Left(total, np.where(own >= 0, np.where(total > 0.0, n, 0.0), self.measure.n))

    def select(self, variables: Integers) -> GeneralRows:
        """Keep some of the variables."""
        return replace(self, X=np.ascontiguousarray(self.X[variables]), levels=self.levels[variables])

    def take(self, positions: Integers) -> Floats:
        """Return some of the scaled rows, (n_positions, n_features)."""
        return self.X[:, positions].T

    def all(self) -> Floats:
        """Return all scaled rows, (n_rows, n_features)."""
        return self.X.T

    def weight(self, positions: Integers) -> Floats:
        """Return the weights of some of the rows; 0 for row -1, which is none."""
        if self.weights is None or not self.n_rows:
            return np.where(positions >= 0, 1.0, 0.0)
        return np.where(positions >= 0, self.weights[positions], 0.0)


AnyRows = ClassRows | GeneralRows

"""Rows of one class as the compiled loops read them: in tiles, or variable by variable."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corral import kernels
from corral.array_types import Floats, Integers

TINY = float(np.finfo(np.float64).tiny)


class Left(NamedTuple):
    """What is left of a class at some queries, each of which may leave one row out: (n_queries,) arrays.

    Attributes
    ----------
    total : sum of the weights.
    n : effective number of rows.
    """

    total: Floats
    n: Floats


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

    @cached_property
    def tiled_weights(self) -> Floats | None:
        """Weights (n_tiles, tile), 0 behind the last row; None if all rows matter alike."""
        return None if self.weights is None else self._in_tiles(self.weights)

    def _in_tiles(self, values: Floats) -> Floats:
        n_tiles, _, size = self.tiles.shape
        tiles = np.zeros(n_tiles * size)
        tiles[: self.n_rows] = values
        return tiles.reshape(n_tiles, size)

    @cached_property
    def root(self) -> Floats | None:
        """Square roots of the weights, in tiles."""
        return None if self.tiled_weights is None else np.sqrt(self.tiled_weights)

    @cached_property
    def mass(self) -> Floats:
        """Weights (n_tiles, tile), 1 if all rows matter alike, 0 behind the last row."""
        return self._in_tiles(np.ones(self.n_rows) if self.weights is None else self.weights)


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


def tile_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Logarithms of kernel density estimates with given bandwidths, at queries without missing values.

    Parameters
    ----------
    rows : the class.
    x : (n_queries, n_features) scaled queries.
    h : (n_features,) bandwidths, infinite where a variable takes no part.
    own : (n_queries,) for each query the row that it is, which is left out, or -1.

    Returns
    -------
    log_density : (n_queries,), -inf where no row is left.
    """
    if rows.n_rows == 0:
        return np.full(len(x), -np.inf)
    own = np.full(len(x), -1) if own is None else own
    log_sum = np.empty(len(x))
    kernels.kernel_sums(
        rows.tiles,
        rows.n_rows,
        rows.tiled_weights,
        np.ascontiguousarray(x),
        own,
        0.5 / (h * h),
        np.empty(rows.tiles.shape[2]),
        np.empty(len(x)),
        log_sum,
    )
    log_sum[log_sum < -0.5 * kernels.EXCLUDED] = -np.inf
    log_total = np.log(np.maximum(rows.left(own).total, TINY))
    used = np.isfinite(h)
    log_norm = np.log(h[used]).sum() + used.sum() * kernels.LOG_ROOT
    log_density: Floats = log_sum - log_norm - log_total
    return log_density


def unit_density(rows: ClassRows, x: Floats) -> Floats:
    """Logarithms (n_queries,) of kernel density estimates with the bandwidth 1, for many queries and rows.

    As `tile_density` but for rounding, in less time, above all if tiles are small. There are rows, and no
    gaps, and coordinates are relative to a point near the rows.
    """
    log_sum = np.empty(len(x))
    half_squares = 0.5 * (rows.tiles * rows.tiles).sum(axis=1)
    work = np.empty((4, rows.tiles.shape[2])), np.empty(len(x))
    kernels.unit_sums(rows.tiles, half_squares, rows.mass, np.ascontiguousarray(x), *work, log_sum)
    log_norm = kernels.LOG_ROOT * x.shape[1] + math.log(rows.measure.total)
    log_density: Floats = log_sum - log_norm
    return log_density

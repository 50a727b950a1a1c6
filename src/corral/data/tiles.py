"""Rows of one class as the compiled loops read them, in tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.data.weights import effective_number, shares_of_largest

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows of one class as the kernels read them."""

    tiles: Floats  # (n_tiles, n_features, tile) scaled rows, NaN for missing values, numbers of categories
    n_rows: int  # number of rows; behind the last row the tiles are filled with the first one
    weights: Floats | None  # (n_rows,) weights, 1 at most, or None if all are equal
    n_categories: Integers  # (n_features,) number of categories of each variable, 0 for measurements
    groups: Integers | None  # (n_rows,) numbers of groups that are left out together, None if there are none

    @classmethod
    def arrange(
        cls,
        X: Floats,
        weights: Floats | None,
        n_categories: Integers | None = None,
        groups: Integers | None = None,
    ) -> ClassRows:
        """Cut scaled rows into tiles."""
        n_rows, d = X.shape
        n_tiles = max(1, -(-n_rows // kernels.TILE))
        size = max(1, -(-n_rows // (n_tiles * kernels.LANES))) * kernels.LANES
        tiles = np.zeros((n_tiles, d, size))
        for t in range(n_tiles):
            tile = X[t * size : (t + 1) * size]
            tiles[t, :, : len(tile)] = tile.T
            if n_rows:
                tiles[t, :, len(tile) :] = X[:1].T
        n_categories = np.zeros(d, dtype=np.int64) if n_categories is None else n_categories
        return cls(tiles, n_rows, shares_of_largest(weights), n_categories, groups)

    @property
    def n_features(self) -> int:
        """Number of variables."""
        return int(self.tiles.shape[1])

    @property
    def size(self) -> int:
        """How many numbers the tiles hold."""
        return max(int(self.tiles.size), 1)

    @cached_property
    def has_missing(self) -> Bools:
        """Which variables (n_features,) have missing values."""
        return np.array([np.isnan(self.tiles[:, j]).any() for j in range(self.n_features)], dtype=np.bool_)

    @cached_property
    def is_plain(self) -> bool:
        """Whether there are no groups, no categories and no missing values."""
        return self.groups is None and not self.n_categories.any() and not self.has_missing.any()

    @cached_property
    def n(self) -> float:
        """Effective number of rows."""
        return float(self.n_rows) if self.weights is None else effective_number(self.weights)

    def left(self, own: Integers) -> tuple[Floats, Floats]:
        """Sums of weights and effective numbers (n,) of the rows that remain without a row and its group.

        `own` (n,) are positions of left-out rows, -1 if none is left out.
        """
        group, total, n = self._left_by_group
        return total[group[own]], n[group[own]]

    @cached_property
    def _left_by_group(self) -> tuple[Integers, Floats, Floats]:
        """Group of each row; sums of weights and effective numbers without a group, last of all rows."""
        rows = np.arange(self.n_rows)
        weights = self.weight(rows)
        names, group = np.unique(self.group(rows), return_inverse=True)
        sums = np.empty((2, names.size + 1))
        for left, powers in zip(sums, (weights, weights * weights), strict=True):
            inside = np.bincount(group, powers, names.size + 1)
            left[:] = powers.sum() - inside
            heaviest = inside.argmax()  # the difference could lose all digits
            left[heaviest] = powers[group != heaviest].sum()
        total, squares = sums
        n = np.where(total > 0.0, total * total / np.maximum(squares, TINY), 0.0)
        n[-1] = self.n
        return np.append(group, names.size), total, n

    def select(self, variables: Integers) -> ClassRows:
        """The class with the given variables alone."""
        tiles = np.ascontiguousarray(self.tiles[:, variables])
        return replace(self, tiles=tiles, n_categories=self.n_categories[variables])

    def take(self, positions: Integers) -> Floats:
        """Scaled rows (n_positions, n_features) at some positions."""
        size = self.tiles.shape[2]
        return self.tiles[positions // size, :, positions % size]

    def all(self) -> Floats:
        """All scaled rows (n_rows, n_features)."""
        return self.take(np.arange(self.n_rows))

    def weight(self, positions: Integers) -> Floats:
        """Weights of the rows at some positions; 0 for the position -1."""
        if self.weights is None or not self.n_rows:
            return np.where(positions >= 0, 1.0, 0.0)
        return np.where(positions >= 0, self.weights[positions], 0.0)

    def group(self, positions: Integers) -> Integers:
        """Groups of the rows at some positions, or the positions if there are no groups; -1 for -1."""
        if self.groups is None or not self.n_rows:
            return positions
        return np.where(positions >= 0, self.groups[positions], -1)

    @cached_property
    def _tiled_positions(self) -> Integers:
        """Positions of the rows (n_tiles, tile), -1 behind the last row."""
        n_tiles, _, size = self.tiles.shape
        rows = np.arange(n_tiles * size).reshape(n_tiles, size)
        return np.where(rows < self.n_rows, rows, -1)

    @cached_property
    def tiled_groups(self) -> Integers:
        """Groups (n_tiles, tile), -1 behind the last row."""
        return self.group(self._tiled_positions)

    @cached_property
    def tiled_weights(self) -> Floats:
        """Weights (n_tiles, tile), 0 behind the last row."""
        return self.weight(self._tiled_positions)

    @cached_property
    def root(self) -> Floats:
        """Square roots (n_tiles, tile) of the weights."""
        root: Floats = np.sqrt(self.tiled_weights)
        return root


def tile_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Logarithms of kernel density estimates with given bandwidths, at points without missing values.

    Parameters
    ----------
    rows : the class.
    x : (n_points, n_features) scaled points.
    h : (n_features,) bandwidths, infinite for a variable that is not used.
    own : (n_points,) positions of rows that are left out, -1 if none is.

    Returns
    -------
    log_density : (n_points,), -inf if no row remains.
    """
    if rows.n_rows == 0:
        return np.full(len(x), -np.inf)
    own = np.full(len(x), -1) if own is None else own
    log_sum = np.empty(len(x))
    kernels.kernel_sums(
        rows.tiles,
        rows.n_rows,
        None if rows.weights is None else rows.tiled_weights,
        np.ascontiguousarray(x),
        own,
        0.5 / (h * h),
        log_sum,
    )
    log_sum[log_sum < -0.5 * kernels.EXCLUDED] = -np.inf
    log_total = np.log(np.maximum(rows.left(own)[0], TINY))
    used = np.isfinite(h)
    log_norm = np.log(h[used]).sum() + used.sum() * kernels.LOG_ROOT
    log_density: Floats = log_sum - log_norm - log_total
    return log_density

"""Rows of one class in the layout of the compiled loops: tiles, which are blocks of transposed rows."""

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
    """The rows of one class in tiles, with weights and groups."""

    tiles: Floats  # (n_tiles, n_features, tile) scaled rows, NaN for missing values, codes of categories
    n_rows: int  # number of rows; after the last row, the tiles are filled with the first row
    weights: Floats | None  # (n_rows,) weights, at most 1; None if all weights are equal
    n_categories: Integers  # (n_features,) number of categories of each variable, 0 for a numeric variable
    groups: Integers | None  # (n_rows,) group ids; None if there are no groups

    @classmethod
    def arrange(
        cls,
        X: Floats,
        weights: Floats | None,
        n_categories: Integers | None = None,
        groups: Integers | None = None,
    ) -> ClassRows:
        """Arrange scaled rows X (n_rows, n_features) in tiles."""
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
        """Number of floats in the tiles, at least 1."""
        return max(int(self.tiles.size), 1)

    @cached_property
    def has_missing(self) -> Bools:
        """(n_features,) whether the variable has missing values."""
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
        """Return the sums of weights (n,) and the effective numbers (n,) of the remaining rows.

        `own` (n,) are the positions of rows that are left out with their groups; -1 if no row is left out.
        """
        group, total, n = self._left_by_group
        return total[group[own]], n[group[own]]

    @cached_property
    def _left_by_group(self) -> tuple[Integers, Floats, Floats]:
        """Return the group index of each row, then a total and an effective number for each group.

        The sum of weights and the effective number are of the rows outside the group. The last entry, for no
        group, is for all rows.
        """
        rows = np.arange(self.n_rows)
        weights = self.weight(rows)
        names, group = np.unique(self.group(rows), return_inverse=True)
        sums = np.empty((2, names.size + 1))
        for left, powers in zip(sums, (weights, weights * weights), strict=True):
            inside = np.bincount(group, powers, names.size + 1)
            left[:] = powers.sum() - inside
            heaviest = inside.argmax()  # for this group the difference could lose all digits
            left[heaviest] = powers[group != heaviest].sum()
        total, squares = sums
        n = np.where(total > 0.0, total * total / np.maximum(squares, TINY), 0.0)
        n[-1] = self.n
        return np.append(group, names.size), total, n

    def select(self, variables: Integers) -> ClassRows:
        """Return the rows with the given variables only."""
        tiles = np.ascontiguousarray(self.tiles[:, variables])
        return replace(self, tiles=tiles, n_categories=self.n_categories[variables])

    def take(self, positions: Integers) -> Floats:
        """Return the scaled rows (n_positions, n_features) at the given positions."""
        size = self.tiles.shape[2]
        return self.tiles[positions // size, :, positions % size]

    def all(self) -> Floats:
        """Return all scaled rows (n_rows, n_features)."""
        return self.take(np.arange(self.n_rows))

    def weight(self, positions: Integers) -> Floats:
        """Return the weights of the rows at the given positions; 0 for position -1."""
        if self.weights is None or not self.n_rows:
            return np.where(positions >= 0, 1.0, 0.0)
        return np.where(positions >= 0, self.weights[positions], 0.0)

    def group(self, positions: Integers) -> Integers:
        """Return the group ids of the rows at the given positions; -1 for position -1.

        If there are no groups, the positions are returned.
        """
        if self.groups is None or not self.n_rows:
            return positions
        return np.where(positions >= 0, self.groups[positions], -1)

    @cached_property
    def _tiled_positions(self) -> Integers:
        """(n_tiles, tile) positions of the rows, -1 after the last row."""
        n_tiles, _, size = self.tiles.shape
        rows = np.arange(n_tiles * size).reshape(n_tiles, size)
        return np.where(rows < self.n_rows, rows, -1)

    @cached_property
    def tiled_groups(self) -> Integers:
        """(n_tiles, tile) group ids of the rows, -1 after the last row."""
        return self.group(self._tiled_positions)

    @cached_property
    def tiled_weights(self) -> Floats:
        """(n_tiles, tile) weights of the rows, 0 after the last row."""
        return self.weight(self._tiled_positions)

    @cached_property
    def root(self) -> Floats:
        """(n_tiles, tile) square roots of the weights."""
        root: Floats = np.sqrt(self.tiled_weights)
        return root


def tile_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Return logarithms of kernel density estimates with given bandwidths.

    Parameters
    ----------
    rows : rows of the class.
    x : (n_points, n_features) scaled points without missing values.
    h : (n_features,) bandwidths; infinite for a variable that is not used.
    own : (n_points,) position of the row to leave out at each point; -1 for none.

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

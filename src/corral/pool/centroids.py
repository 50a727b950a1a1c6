r"""Centroids: few weighted means that stand for the many rows of a class.

K-means divides the rows into cells. Cell k is represented by the weighted mean :math:`c_k` of its rows and by
their total weight. The covariance of the rows around the centroids of their cells,

.. math:: S = \frac{\sum_i w_i (x_i - c_{k(i)}) (x_i - c_{k(i)})^T}{\sum_i w_i},

is added to the kernel: a normal kernel with covariance H becomes one with H + S. So the mean and the
covariance of a class stay exactly what they were, whatever the cells are, and finer structure stays as far as
cells are small against the kernel.

**Distances.** Squared differences are weighted by the importance of their variable: the inverse square of the
bandwidth that the densities have in it. A variable with a wide kernel needs no small cells.

**Scales.** The members of a pool have different scales, which are not linear in each other. So a centroid is
a mean on each of them. Distances are those on the first scale.

**Parts.** The cells are learnt from a sample. Then rows are assigned to them part by part, wherever they lie:
means, weights and S are sums, so that in exact arithmetic the parts do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats, Integers
from corral.data.scaling import Scale
from corral.data.weights import weights_or_ones

# Cells are learnt from so many rows for each of them, in so many rounds of Lloyd's algorithm; more of either
# makes hardly a difference.
_ROWS_PER_CELL = 10
_N_ROUNDS = 4

# Distances that are held at once.
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class Centroids:
    """Weighted means of the rows in each cell of a class, and the row that is nearest to the centre of each.

    A row can be written as a centroid of itself, so that rows and the centroids of several parts of them are
    averaged in the same way.

    Attributes
    ----------
    means : for each scale (n_cells, n_features).
    weights : (n_cells,) sums of the weights of the rows, 0 for a cell without rows.
    counts : (n_cells,) numbers of rows.
    scatter : for each scale (n_features, n_features) sums over all rows of weighted products of the
        differences from their means.
    distances : (n_cells,) squared distance of the nearest row, inf for a cell without rows.
    numbers : (n_cells,) position of the nearest row in the table, -1 for a cell without rows.
    X : (n_cells, n_features) the nearest row.
    """

    means: Sequence[Floats]
    weights: Floats
    counts: Integers
    scatter: Sequence[Floats]
    distances: Floats
    numbers: Integers
    X: Floats

    @classmethod
    def merge(cls, parts: Sequence[Centroids]) -> Centroids:
        """Average the centroids of several parts of the rows, which have the same cells."""
        n_cells = parts[0].weights.size
        together = cls(
            [np.concatenate(means) for means in zip(*(part.means for part in parts), strict=True)],
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.counts for part in parts]),
            [np.sum(scatter, axis=0) for scatter in zip(*(part.scatter for part in parts), strict=True)],
            np.concatenate([part.distances for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.X for part in parts]),
        )
        return together.averaged(np.tile(np.arange(n_cells), len(parts)), n_cells)

    def averaged(self, cells: Integers, n_cells: int) -> Centroids:
        """Average the centroids that share a cell (n_centroids,), a number below `n_cells`."""
        weights = np.bincount(cells, self.weights, minlength=n_cells).astype(np.float64)
        divisor = np.where(weights > 0.0, weights, 1.0)[:, np.newaxis]
        means, scatter = [], []
        for x, lost in zip(self.means, self.scatter, strict=True):
            mean = _sums(x, self.weights, cells, n_cells) / divisor
            apart = x - mean[cells]
            means.append(mean)
            scatter.append(lost + (apart * self.weights[:, np.newaxis]).T @ apart)
        counts = np.bincount(cells, self.counts, minlength=n_cells).astype(np.int64)
        distances, numbers = np.full(n_cells, np.inf), np.full(n_cells, -1)
        X = np.zeros((n_cells, self.X.shape[1]))
        order = np.lexsort((self.numbers, self.distances, cells))
        filled, first = np.unique(cells[order], return_index=True)
        nearest = order[first]
        distances[filled], numbers[filled] = self.distances[nearest], self.numbers[nearest]
        X[filled] = self.X[nearest]
        return Centroids(means, weights, counts, scatter, distances, numbers, X)

    def filled(self) -> Centroids:
        """Keep the cells that have rows."""
        kept = self.weights > 0.0
        return replace(
            self,
            means=[mean[kept] for mean in self.means],
            weights=self.weights[kept],
            counts=self.counts[kept],
            distances=self.distances[kept],
            numbers=self.numbers[kept],
            X=self.X[kept],
        )

    def spread(self, scale: int) -> Floats:
        """Covariance (n_features, n_features) of the rows around their means, on one of the scales."""
        spread: Floats = self.scatter[scale] / self.weights.sum()
        return spread


@dataclass(frozen=True, eq=False)
class Cells:
    """The division of a class by k-means: each row belongs to the nearest of the centres.

    Attributes
    ----------
    scales : on which rows are averaged; distances are those on the first.
    importance : (n_features,) weights of squared differences.
    centers : (n_cells, n_used) in the variables that have any importance, times its roots.
    """

    scales: Sequence[Scale]
    importance: Floats
    centers: Floats

    @classmethod
    def learn(
        cls,
        scales: Sequence[Scale],
        X: Floats,
        weights: Floats | None,
        n_cells: int,
        importance: Floats,
        seed: int,
    ) -> Cells:
        """Divide rows (n_rows, n_features) by Lloyd's algorithm, which reads a subsample of them."""
        subsample = np.random.RandomState(seed).permutation(len(X))[: _ROWS_PER_CELL * n_cells]
        w = weights_or_ones(weights, len(X))[subsample]
        x = _coordinates(scales[0].transform(X[subsample]), importance)
        centers = x[:n_cells].copy()
        for _ in range(_N_ROUNDS):
            cells = nearest(x, centers)
            totals = np.bincount(cells, w, minlength=n_cells)
            filled = totals > 0.0
            centers[filled] = _sums(x, w, cells, n_cells)[filled] / totals[filled, np.newaxis]
        return cls(scales, importance, centers)

    def average(self, X: Floats, weights: Floats | None, numbers: Integers) -> Centroids:
        """Average a part of the rows (n_rows, n_features); `numbers` are their positions in the table."""
        scaled = [scale.transform(X) for scale in self.scales]
        x = _coordinates(scaled[0], self.importance)
        cells = nearest(x, self.centers)
        apart = x - self.centers[cells]
        rows = Centroids(
            scaled,
            weights_or_ones(weights, len(X)),
            np.ones(len(X), dtype=np.int64),
            [np.zeros((X.shape[1], X.shape[1])) for _ in scaled],
            np.vecdot(apart, apart),
            numbers,
            X,
        )
        return rows.averaged(cells, len(self.centers))


def nearest(x: Floats, centers: Floats) -> Integers:
    """Number the nearest centre for each row (n_rows, n_used).

    In single precision, which takes half the time: of two centres at nearly the same distance either will do.
    """
    cells = np.empty(len(x), dtype=np.int64)
    origin = centers.mean(axis=0)  # so that products keep their digits
    c: NDArray[np.float32] = (centers - origin).astype(np.float32)
    half_squares = np.float32(0.5) * np.vecdot(c, c)
    step = max(1, _BLOCK // len(c))
    for first in range(0, len(x), step):
        block = slice(first, first + step)
        product = (x[block] - origin).astype(np.float32) @ c.T
        np.subtract(half_squares, product, out=product)
        cells[block] = product.argmin(axis=1)
    return cells


def _coordinates(x: Floats, importance: Floats) -> Floats:
    """Coordinates (n_rows, n_used) in which distances are Euclidean."""
    used = importance > 0.0
    coordinates: Floats = x[:, used] * np.sqrt(importance[used])
    return coordinates


def _sums(x: Floats, weights: Floats, cells: Integers, n_cells: int) -> Floats:
    """Weighted sums (n_cells, n_columns) of rows by cell."""
    sums = np.empty((n_cells, x.shape[1]))
    for j, column in enumerate(x.T):
        sums[:, j] = np.bincount(cells, weights * column, minlength=n_cells)
    return sums

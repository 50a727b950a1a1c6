r"""Thinning: many rows of a class, represented by few weighted averages of rows that lie near each other.

The rows are divided into cells by k-means. Each cell k is represented by its weighted mean :math:`c_k` with
the weight :math:`W_k` of its rows, and the spread that rows have around the means of their cells,

.. math:: S = \frac{\sum_i w_i (x_i - c_{k(i)}) (x_i - c_{k(i)})^T}{\sum_i w_i},

is given back to the kernel: a normal kernel with covariance H becomes one with H + S. So mean and covariance
of a class stay exactly what they were, whatever the cells are, and finer features stay as far as the cells
are small against the kernel.

**Where cells should be small.** Squared distances between rows weigh each variable by its importance: the
inverse square of the bandwidth that densities have in it. Variables in which a kernel is wide are not worth
a cell.

**Units.** A pool has members in different units, which are not linear in each other, so a row is given in
all of them, and a representative is an average in each. Distances are those in the first.

**Parts.** Cells are learnt from some of the rows. Then all rows can be divided among them part by part,
wherever they lie, since averages, weights and the spread are sums: in exact arithmetic the parts do not
matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corral._core.settings import Floats, Integers

# Cells are learnt from so many rows for each of them, in so many rounds of Lloyd's algorithm; more of either
# makes hardly a difference.
_ROWS_PER_CELL = 10
_N_ROUNDS = 4

# Distances that are held at once.
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class Representatives:
    """Weighted averages of rows, in several units.

    Attributes
    ----------
    centres : for each kind of units (n_representatives, n_features) averages.
    weights : (n_representatives,) sums of the weights of the rows behind them.
    counts : (n_representatives,) how many rows these are.
    scatter : for each kind of units (n_features, n_features) sums of weighted products of the differences
        between rows and their averages.
    """

    centres: Sequence[Floats]
    weights: Floats
    counts: Integers
    scatter: Sequence[Floats]

    @classmethod
    def of_rows(cls, units: Sequence[Floats], weights: Floats | None = None) -> Representatives:
        """Let each row, given in several units, stand for itself."""
        n = len(units[0])
        weights = np.ones(n) if weights is None else weights
        return cls(units, weights, np.ones(n, dtype=np.int64), [np.zeros((x.shape[1],) * 2) for x in units])

    @classmethod
    def together(cls, parts: Sequence[Representatives]) -> Representatives:
        """Put the representatives of several parts of the rows together."""
        return cls(
            [np.concatenate(centres) for centres in zip(*(part.centres for part in parts), strict=True)],
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.counts for part in parts]),
            [np.sum(scatter, axis=0) for scatter in zip(*(part.scatter for part in parts), strict=True)],
        )

    @property
    def spreads(self) -> list[Floats]:
        """For each kind of units the covariance (n_features, n_features) of rows around their averages."""
        return [scatter / self.weights.sum() for scatter in self.scatter]

    def take(self, positions: Integers) -> Representatives:
        """Keep some of them, and the whole scatter."""
        centres = [x[positions] for x in self.centres]
        return Representatives(centres, self.weights[positions], self.counts[positions], self.scatter)

    def averaged(self, cells: Integers, n_cells: int) -> Representatives:
        """Average those that share a cell (n_representatives,); cells without any have weight 0."""
        weights = np.bincount(cells, self.weights, minlength=n_cells)
        whole = np.where(weights > 0.0, weights, 1.0)[:, np.newaxis]
        centres, scatter = [], []
        for x, lost in zip(self.centres, self.scatter, strict=True):
            means = _sums(x, self.weights, cells, n_cells) / whole
            apart = x - means[cells]
            centres.append(means)
            scatter.append(lost + (apart * self.weights[:, np.newaxis]).T @ apart)
        counts = np.bincount(cells, self.counts, minlength=n_cells).astype(np.int64)
        return Representatives(centres, weights.astype(np.float64), counts, scatter)


@dataclass(frozen=True, eq=False)
class Cells:
    """A division of all possible rows: each belongs to the nearest of some centres.

    Attributes
    ----------
    importance : (n_features,) weights of squared differences.
    centres : (n_cells, n_used) in the variables that have any, times the roots of their importance.
    """

    importance: Floats
    centres: Floats

    @classmethod
    def learn(cls, x: Floats, weights: Floats | None, n_cells: int, importance: Floats, seed: int) -> Cells:
        """Divide rows (n_rows, n_features) by Lloyd's algorithm, of which some are chosen by a seed."""
        some = np.random.RandomState(seed).permutation(len(x))[: _ROWS_PER_CELL * n_cells]
        weights = np.ones(some.size) if weights is None else weights[some]
        x = _coordinates(x[some], importance)
        centres = x[:n_cells].copy()
        for _ in range(_N_ROUNDS):
            cells = nearest(x, centres)
            totals = np.bincount(cells, weights, minlength=n_cells)
            filled = totals > 0.0
            centres[filled] = _sums(x, weights, cells, n_cells)[filled] / totals[filled, np.newaxis]
        return cls(importance, centres)

    def __len__(self) -> int:
        return len(self.centres)

    def divide(self, x: Floats) -> Integers:
        """Number the cell of each row (n_rows, n_features)."""
        return nearest(_coordinates(x, self.importance), self.centres)

    def summarise(
        self, units: Sequence[Floats], weights: Floats | None, X: Floats, numbers: Integers
    ) -> CellSummary:
        """Summarise a part of the rows by cell.

        Parameters
        ----------
        units : for each kind of units (n_rows, n_features); those in which rows are compared come first.
        weights : (n_rows,) or None if all rows count alike.
        X : (n_rows, n_features) the rows as they were given.
        numbers : (n_rows,) by which the rows are known.
        """
        x = _coordinates(units[0], self.importance)
        cells = nearest(x, self.centres)
        averages = Representatives.of_rows(units, weights).averaged(cells, len(self))
        apart = x - self.centres[cells]
        distances = np.vecdot(apart, apart)
        order = np.lexsort((numbers, distances, cells))
        filled, first = np.unique(cells[order], return_index=True)
        summary = CellSummary(
            averages, np.full(len(self), np.inf), np.full(len(self), -1), np.zeros((len(self), X.shape[1]))
        )
        at = order[first]
        summary.distances[filled], summary.numbers[filled], summary.X[filled] = (
            distances[at],
            numbers[at],
            X[at],
        )
        return summary


@dataclass(frozen=True, eq=False)
class CellSummary:
    """What is known of the rows in each cell of a class.

    Attributes
    ----------
    averages : of the rows of each cell; of weight 0 where there is none.
    distances : (n_cells,) squared distance of the row that is nearest to the centre of its cell.
    numbers : (n_cells,) the number of this row, -1 if there is none.
    X : (n_cells, n_features) this row.
    """

    averages: Representatives
    distances: Floats
    numbers: Integers
    X: Floats

    @classmethod
    def merge(cls, parts: Sequence[CellSummary]) -> CellSummary:
        """Summarise all parts together."""
        n_cells = parts[0].distances.size
        cells = np.tile(np.arange(n_cells), len(parts))
        averages = Representatives.together([part.averages for part in parts]).averaged(cells, n_cells)
        distances, numbers = (
            np.stack([getattr(part, of) for part in parts]) for of in ("distances", "numbers")
        )
        best = np.lexsort((numbers, distances), axis=0)[0]
        cell = np.arange(n_cells)
        X = np.stack([part.X for part in parts])
        return cls(averages, distances[best, cell], numbers[best, cell], X[best, cell])

    def filled(self) -> CellSummary:
        """Keep the cells that have rows."""
        at = np.flatnonzero(self.averages.weights > 0.0)
        return CellSummary(self.averages.take(at), self.distances[at], self.numbers[at], self.X[at])


def nearest(x: Floats, centres: Floats) -> Integers:
    """Number the nearest of some centres for each row.

    In single precision, which takes half the time: of two centres at nearly the same distance either will do.
    """
    found = np.empty(len(x), dtype=np.int64)
    origin = centres.mean(axis=0)  # so that products keep their digits
    c: NDArray[np.float32] = (centres - origin).astype(np.float32)
    half_squares = np.float32(0.5) * np.vecdot(c, c)
    step = max(1, _BLOCK // len(c))
    for first in range(0, len(x), step):
        block = slice(first, first + step)
        product = (x[block] - origin).astype(np.float32) @ c.T
        np.subtract(half_squares, product, out=product)
        found[block] = product.argmin(axis=1)
    return found


def _coordinates(x: Floats, importance: Floats) -> Floats:
    """Coordinates (n_rows, n_used) whose distances tell which rows are near each other."""
    used = importance > 0.0
    coordinates: Floats = x[:, used] * np.sqrt(importance[used])
    return coordinates


def _sums(x: Floats, weights: Floats, cells: Integers, n_cells: int) -> Floats:
    """Weighted sums (n_cells, n_columns) of rows by cell."""
    sums = np.empty((n_cells, x.shape[1]))
    for j, column in enumerate(x.T):
        sums[:, j] = np.bincount(cells, weights * column, minlength=n_cells)
    return sums

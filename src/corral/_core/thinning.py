r"""Thinning: many rows of a class, represented by few weighted averages of rows that lie near each other.

The rows are divided into cells by k-means. Each cell k is represented by its weighted mean :math:`c_k` with
the weight :math:`W_k` of its rows, and the spread that rows have around the means of their cells,

.. math:: S = \frac{\sum_i w_i (x_i - c_{k(i)}) (x_i - c_{k(i)})^T}{\sum_i w_i},

is given back to the kernel: a normal kernel with covariance H becomes one with H + S. So mean and covariance
of a class stay exactly what they were, whatever the cells are, and finer features stay as far as the cells
are small against the kernel.

**Where cells should be small.** Squared distances between rows weigh each variable by its `importance`: the
inverse square of the bandwidth that densities have in it. Variables in which a kernel is wide are not worth
a cell.

**Units.** A pool has members in different units, which are not linear in each other, so a row is given in
all of them, and a representative is an average in each.

**Parts.** Representatives are rows with weights, counts and a spread that they have lost already. So they
can be put together and thinned again: rows that lie in many places are thinned where they are. In exact
arithmetic, sums of weights, means and covariances do not depend on the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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

    def __len__(self) -> int:
        return self.weights.size

    @property
    def spreads(self) -> list[Floats]:
        """For each kind of units the covariance (n_features, n_features) of rows around their averages."""
        return [scatter / self.weights.sum() for scatter in self.scatter]

    def averaged(self, cells: Integers) -> Representatives:
        """Average those that share a cell (n_representatives,); cells are numbered without gaps."""
        n_cells = int(cells.max(initial=-1)) + 1
        weights = np.bincount(cells, self.weights, minlength=n_cells)
        centres, scatter = [], []
        for x, lost in zip(self.centres, self.scatter, strict=True):
            means = _sums(x, self.weights, cells, n_cells) / weights[:, np.newaxis]
            apart = x - means[cells]
            centres.append(means)
            scatter.append(lost + (apart * self.weights[:, np.newaxis]).T @ apart)
        counts = np.bincount(cells, self.counts, minlength=n_cells).astype(np.int64)
        return Representatives(centres, weights.astype(np.float64), counts, scatter)


def thin(
    rows: Representatives, max_rows: int, importance: Sequence[Floats], seed: int, *, min_count: int = 1
) -> tuple[Representatives, Integers]:
    """Represent rows by at most `max_rows` averages of them.

    Parameters
    ----------
    rows : the rows, or representatives of parts of them; all weights are positive.
    max_rows : how many there may be; rows that are not more stay as they are.
    importance : for each kind of units (n_features,) the weights of squared distances.
    seed : of the random choice of rows that cells are learnt from.
    min_count : how many rows must be behind each average.

    Returns
    -------
    thinned : the averages.
    cells : for each of the rows the number of its average.
    """
    everything = np.arange(len(rows))
    if len(rows) <= max_rows and (rows.counts >= min_count).all():
        return rows, everything
    x = coordinates(rows, importance)
    centres = x if len(rows) <= max_rows else _cell_centres(x, rows.weights, max_rows, seed)
    cells = everything if len(rows) <= max_rows else nearest(x, centres)
    counts = np.bincount(cells, rows.counts, minlength=len(centres))
    enough = np.flatnonzero(counts >= min_count)
    few = np.flatnonzero(counts[cells] < min_count)
    if not enough.size:
        cells = np.zeros(len(rows), dtype=np.int64)
    elif few.size:
        cells[few] = enough[nearest(x[few], centres[enough])]
    _, cells = np.unique(cells, return_inverse=True)
    return rows.averaged(cells), cells


def coordinates(rows: Representatives, importance: Sequence[Floats]) -> Floats:
    """Coordinates (n_representatives, n_coordinates) whose distances tell which rows are near each other."""
    of_units = [
        x[:, weight > 0.0] * np.sqrt(weight[weight > 0.0])
        for x, weight in zip(rows.centres, importance, strict=True)
    ]
    return np.concatenate(of_units, axis=1)


def nearest(x: Floats, centres: Floats) -> Integers:
    """Number the nearest of some centres for each row, the first of several."""
    found = np.empty(len(x), dtype=np.int64)
    origin = centres.mean(axis=0)  # so that products keep their digits
    centres = centres - origin
    half_squares = 0.5 * np.vecdot(centres, centres)
    step = max(1, _BLOCK // len(centres))
    for first in range(0, len(x), step):
        block = slice(first, first + step)
        found[block] = (half_squares - (x[block] - origin) @ centres.T).argmin(axis=1)
    return found


def nearest_to_centres(x: Floats, cells: Integers, centres: Floats) -> Integers:
    """For each of the cells (n_rows,) the position of the row that is nearest to its centre."""
    apart = x - centres[cells]
    order = np.lexsort((np.vecdot(apart, apart), cells))
    first: Integers = order[np.searchsorted(cells[order], np.arange(len(centres)))]
    return first


def _cell_centres(x: Floats, weights: Floats, n_cells: int, seed: int) -> Floats:
    """Centres of cells, learnt from some of the rows."""
    random = np.random.RandomState(seed)
    some = random.permutation(len(x))[: _ROWS_PER_CELL * n_cells]
    x, weights = x[some], weights[some]
    centres = x[:n_cells].copy()
    for _ in range(_N_ROUNDS):
        cells = nearest(x, centres)
        totals = np.bincount(cells, weights, minlength=n_cells)
        filled = totals > 0.0
        centres[filled] = _sums(x, weights, cells, n_cells)[filled] / totals[filled, np.newaxis]
    return centres


def _sums(x: Floats, weights: Floats, cells: Integers, n_cells: int) -> Floats:
    """Weighted sums (n_cells, n_columns) of rows by cell."""
    sums = np.empty((n_cells, x.shape[1]))
    for j, column in enumerate(x.T):
        sums[:, j] = np.bincount(cells, weights * column, minlength=n_cells)
    return sums

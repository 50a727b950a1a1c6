r"""Algorithm 1 sweep by sweep, so that every sweep can be looked at (see `path.py`).

The Rodeo asks the rows for sums only: of the weights, of :math:`Z_{ji}` and of :math:`Z_{ji}^2`. `Descent`
says which sums it needs next, and decides from them which bandwidths shrink. Weights are relative to the
strongest row, so nothing underflows, and exponents to the row nearest to the query, so they stay accurate
however far away it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.data.tiles import ClassRows, Left
from corral.rodeo.descent import squared_factor, weighted_critical_ratio
from corral.rodeo.settings import Update


class Question(NamedTuple):
    """What a sweep asks the rows at some queries; all arrays are (n_queries, n_features).

    Attributes
    ----------
    x : the queries.
    reference : the rows that exponents are relative to.
    half_c : 1 / (2 h_j^2).
    asked : which variables j are tested.
    """

    x: Floats
    reference: Floats
    half_c: Floats
    asked: Bools


class Sums(NamedTuple):
    """The answer: sums over rows with the weights exp(least - g_i).

    Attributes
    ----------
    least : (n_queries,) the smallest exponent g_i.
    density : (n_queries,) sum of the weights.
    first, second : (n_queries, n_features) sums of Z_ji and of Z_ji^2, 0 where they were not asked for.
    """

    least: Floats
    density: Floats
    first: Floats
    second: Floats


def nearest(rows: ClassRows, x: Floats) -> Floats:
    """The rows (n_queries, n_features) nearest to queries; there is at least one row."""
    row = np.empty(len(x), dtype=np.int64)
    kernels.nearest_rows(
        rows.tiles, rows.n_rows, np.ascontiguousarray(x), np.empty(rows.tiles.shape[2]), np.empty(len(x)), row
    )
    return rows.take(row)


def sweep(rows: ClassRows, question: Question) -> Sums:
    """The answer of the rows; there is at least one."""
    sums = Sums(
        *(np.empty(len(question.x)) for _ in range(2)), *(np.empty(question.x.shape) for _ in range(2))
    )
    kernels.sweep_sums(
        rows.tiles,
        rows.n_rows,
        rows.root,
        *(np.ascontiguousarray(array) for array in question),
        np.empty((1, rows.tiles.shape[2])),
        *sums,
    )
    return sums


@dataclass(eq=False)
class Descent:
    """Algorithm 1 at many queries at once, as far as the answers so far go.

    Either all active variables are tested in one sweep, or, if bandwidths change inside a sweep, the next one
    of each query.

    Attributes
    ----------
    x, reference : (n_queries, n_features) the queries and the rows nearest to them.
    h : the grid of bandwidths, from the initial one to the smallest.
    left : what queries leave of the class.
    update : whether bandwidths change after a sweep or inside it.
    steps : (n_queries, n_features) indices of the bandwidths in h.
    active : (n_queries, n_features) which variables may still shrink.
    n_steps : (n_queries, n_features) how many of the bandwidths may be chosen.
    """

    x: Floats
    reference: Floats
    h: Floats
    left: Left
    update: Update
    steps: Integers = field(init=False)
    active: Bools = field(init=False)
    n_steps: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.steps = np.zeros(self.x.shape, dtype=np.int64)
        self.active = np.ones(self.x.shape, dtype=np.bool_)
        self._critical = weighted_critical_ratio(self.left)[:, np.newaxis]
        self.n_steps = np.full(self.x.shape, self.h.size)
        self._next = np.zeros(len(self.x), dtype=np.int64)  # where a sequential sweep has come to

    @property
    def going(self) -> Integers:
        """Positions of the queries that are not done."""
        return np.flatnonzero(self.active.any(axis=1))

    def question(self) -> Question:
        """What to ask next, at the queries that are not done."""
        going = self.going
        half_c = 0.5 / self.h[self.steps[going]] ** 2
        return Question(self.x[going], self.reference[going], half_c, self._asked(going))

    def answer(self, sums: Sums) -> None:
        """Shrink what the answer says should shrink; the rest stops."""
        going = self.going
        asked = self._asked(going)
        shrinks = asked & (sums.first**2 > self._critical[going] * sums.second)
        shrinks &= self.steps[going] + 1 < self.n_steps[going]
        self.steps[going] += shrinks
        self.active[going] &= shrinks | ~asked
        if self.update == "sequential":
            self._next[going] = asked.argmax(axis=1) + 1

    def ratios(self, sums: Sums) -> Floats:
        """|Z_j| / lambda_j of the variables asked about, at the queries that are not done; 0 for others."""
        going = self.going
        total, n = (of_left[going, np.newaxis] for of_left in self.left)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = sums.first**2 / (total * sums.second)  # 1 where all Z_ji are alike
            squares = share * (n - 1.0) / (squared_factor(n) * np.maximum(1.0 - share, 0.0))
        squares[(1.0 - share) < 1e-14 * np.maximum(n, 1.0)] = np.inf
        squares[np.isnan(squares)] = np.inf  # so far away that all rows are alike
        return np.where(self._asked(going) & (n > 1.0) & (sums.first != 0.0), np.sqrt(squares), 0.0)

    def _asked(self, going: Integers) -> Bools:
        active = self.active[going]
        if self.update == "simultaneous":
            return active
        ahead = active & (np.arange(active.shape[1]) >= self._next[going, np.newaxis])
        ahead = np.where(ahead.any(axis=1, keepdims=True), ahead, active)  # or the next sweep begins
        asked: Bools = np.arange(active.shape[1]) == ahead.argmax(axis=1)[:, np.newaxis]
        return asked

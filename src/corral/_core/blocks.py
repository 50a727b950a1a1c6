r"""Algorithm 1 on a class whose rows lie in several blocks, which need not be in one place.

The Rodeo asks the rows for sums only: of the weights, of :math:`Z_{ji}` and of :math:`Z_{ji}^2`. So each
block answers with its own (`nearest`, `sweep`), the answers are merged in the order of the blocks
(`merge_nearest`, `merge_sums`), and `Descent` decides from them which bandwidths shrink. Queries and
answers are small; rows never move. Weights are relative to the strongest row of a block until they are
merged, so nothing underflows, and exponents to the row nearest to the query of all blocks, so they stay
accurate however far away it is.

A block is a `ClassRows` with the measure of the whole class. One block that is the whole class will do: then
every sweep can be looked at (see `path.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corral._core import kernels
from corral._core.rodeo import answered, normalised
from corral._core.rows import ClassRows, Left, squared_factor
from corral._core.settings import Bools, Floats, Integers, Update


class Nearest(NamedTuple):
    """The rows nearest to some queries: squared distances (n_queries,) and the rows themselves."""

    distance: Floats
    row: Floats


class Question(NamedTuple):
    """What a sweep asks every block at some queries; all arrays are (n_queries, n_features).

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


def nearest(block: ClassRows, x: Floats, own: Integers | None = None) -> Nearest:
    """The rows of a block nearest to queries; `own` are rows to leave out, or -1."""
    own = np.full(len(x), -1) if own is None else own
    found = Nearest(np.full(len(x), kernels.EXCLUDED), np.zeros(x.shape))
    asked = answered(block, own)
    distance, row = np.empty(asked.size), np.empty(asked.size, dtype=np.int64)
    kernels.nearest_rows(
        block.tiles,
        block.n_rows,
        np.ascontiguousarray(x[asked]),
        own[asked],
        np.empty(block.tiles.shape[2]),
        distance,
        row,
    )
    found.distance[asked], found.row[asked] = distance, block.take(row)
    return found


def merge_nearest(parts: Sequence[Nearest]) -> Nearest:
    """The nearest of the nearest; of several that of the first block."""
    distance = np.stack([part.distance for part in parts])
    best = distance.argmin(axis=0), np.arange(distance.shape[1])
    return Nearest(distance[best], np.stack([part.row for part in parts])[best])


def sweep(block: ClassRows, question: Question, own: Integers | None = None) -> Sums:
    """The answer of one block; `own` as above."""
    n_queries = len(question.x)
    own = np.full(n_queries, -1) if own is None else own
    sums = Sums(
        np.full(n_queries, kernels.EXCLUDED),
        np.zeros(n_queries),
        np.zeros(question.x.shape),
        np.zeros(question.x.shape),
    )
    asked = answered(block, own)
    some = Sums(*(np.empty_like(of_all[asked]) for of_all in sums))
    x, reference, half_c, tested = (np.ascontiguousarray(array[asked]) for array in question)
    kernels.sweep_sums(
        block.tiles,
        block.n_rows,
        block.root(),
        x,
        own[asked],
        reference,
        half_c,
        tested,
        np.empty((1, block.tiles.shape[2])),
        *some,
    )
    for of_all, of_some in zip(sums, some, strict=True):
        of_all[asked] = of_some
    return sums


def merge_sums(parts: Sequence[Sums]) -> Sums:
    """The answer of several blocks together, as one of them."""
    least = np.stack([part.least for part in parts]).min(axis=0)
    density = np.zeros_like(parts[0].density)
    first, second = np.zeros_like(parts[0].first), np.zeros_like(parts[0].second)
    for part in parts:
        factor = np.exp(least - part.least)
        density += factor * part.density
        first += factor[:, np.newaxis] * part.first
        second += (factor * factor)[:, np.newaxis] * part.second
    return Sums(least, density, first, second)


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
    log_sum : (n_queries,) logarithm of the kernel sum, known where no variable is active.
    n_steps : (n_queries, n_features) how many of the bandwidths may be chosen.
    """

    x: Floats
    reference: Floats
    h: Floats
    left: Left
    update: Update
    steps: Integers = field(init=False)
    active: Bools = field(init=False)
    log_sum: Floats = field(init=False)
    n_steps: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.steps = np.zeros(self.x.shape, dtype=np.int64)
        self.active = np.ones(self.x.shape, dtype=np.bool_)
        self.log_sum = np.full(len(self.x), -np.inf)
        self._critical = self.left.critical[:, np.newaxis]
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
        """Shrink what the merged answer of all blocks says should shrink; the rest stops."""
        going = self.going
        asked = self._asked(going)
        shrinks = asked & (sums.first**2 > self._critical[going] * sums.second)
        shrinks &= self.steps[going] + 1 < self.n_steps[going]
        half_c = 0.5 / self.h[self.steps[going]] ** 2
        exponent = (half_c * (self.x[going] - self.reference[going]) ** 2).sum(axis=1)
        # Right where nothing is active any more: the last test was made at the bandwidths that stay.
        self.log_sum[going] = np.log(sums.density) - sums.least - exponent
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

    def log_density(self) -> Floats:
        """Log densities of the queries, once all are done."""
        return normalised(self.log_sum, self.h[self.steps], self.left.total)

    def _asked(self, going: Integers) -> Bools:
        active = self.active[going]
        if self.update == "simultaneous":
            return active
        ahead = active & (np.arange(active.shape[1]) >= self._next[going, np.newaxis])
        ahead = np.where(ahead.any(axis=1, keepdims=True), ahead, active)  # or the next sweep begins
        asked: Bools = np.arange(active.shape[1]) == ahead.argmax(axis=1)[:, np.newaxis]
        return asked

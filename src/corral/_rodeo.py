r"""Algorithms 1 and 2 of the paper, on arrays in scaled units.

For a class with rows :math:`x_1, \dots, x_n` and a query :math:`x`, the Rodeo starts from one wide
bandwidth :math:`h_j = h_0` for all variables and shrinks each by the factor :math:`\beta` as long as

.. math::

    |Z_j| > \lambda_j = s_j \sqrt{2 \log(n \log n)}, \qquad
    Z_j = \frac{\partial \hat p(x)}{\partial h_j} = \frac 1 n \sum_i Z_{ji},

where :math:`s_j^2` is the sample variance of the :math:`Z_{ji}` over :math:`n`. With
:math:`L = 2 \log(n \log n)` this is the same as

.. math::

    \Big(\sum_i Z_{ji}\Big)^2 > \frac{L n}{n - 1 + L} \sum_i Z_{ji}^2,

which needs no difference of nearly equal sums and no common factor of the :math:`Z_{ji}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from corral import _kernels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Update = Literal["simultaneous", "sequential"]

# Below this size log log n is too small (or negative) to start from or to test with.
SMALLEST_COUNT = 16

# A query costs at most about 10 ns per row and variable, so one call of a kernel takes about 0.1 s:
# often enough for Ctrl-C and for a progress bar.
_CHUNK = 10_000_000

_KERNELS: dict[str, Callable[..., None]] = {
    "simultaneous": _kernels.simultaneous,
    "sequential": _kernels.sequential,
}


def initial_bandwidth(n: float, c0: float) -> float:
    """Return the bandwidth to start from, ``c0 / log log max(n, 16)``."""
    return c0 / math.log(math.log(max(n, SMALLEST_COUNT)))


def smallest_bandwidth(n: float, c0: float) -> float:
    """Return the default floor under bandwidths, ``h0 / max(n, 1)``.

    The theory asks for n h -> infinity: at h = h0 / n a window holds about one row of a variable that
    spreads over its range, and no derivative can be told from noise. Only where rows coincide, at a
    point mass, does the test still say "shrink", for ever.
    """
    return initial_bandwidth(n, c0) / max(n, 1.0)


def bandwidth_grid(h0: float, beta: float, floor: float) -> Floats:
    """Return h0 beta^k for k = 0, 1, ... as far as it is not below the floor; h0 in any case."""
    n_steps = max(0, math.ceil(math.log(floor / h0) / math.log(beta)) + 1)
    h: Floats = np.float64(h0) * beta ** np.arange(n_steps + 1)
    kept: Floats = h[(h >= floor) | (h == h0)]
    return kept


def critical_ratio(n: Floats) -> Floats:
    """Return what (sum Z_ji)^2 / sum Z_ji^2 must exceed for a bandwidth to shrink."""
    enough = np.maximum(n, 1.0 + 1e-9)
    L = 2.0 * np.log(enough * np.log(np.maximum(enough, SMALLEST_COUNT)))
    # One row has no variance, so nothing can be told from noise.
    return np.where(n > 1.0, L * enough / (enough - 1.0 + L), 1e300)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows of one class as the kernels read them, and the bandwidths they may have.

    Attributes
    ----------
    tiles : (n_tiles, n_features, tile) scaled rows.
    n_rows : number of rows; the tiles hold copies of the first one behind the last.
    multiplicity : (n_rows,) how often each row counts, or None if all count once.
    total : n, the sum of the multiplicities.
    h : the grid of bandwidths, from the initial one to the smallest.
    """

    tiles: Floats
    n_rows: int
    multiplicity: Floats | None
    total: float
    h: Floats

    @classmethod
    def arrange(
        cls,
        X: Floats,
        multiplicity: Floats | None,
        *,
        beta: float,
        c0: float,
        min_bandwidth: float | None,
    ) -> ClassRows:
        """Cut scaled rows into tiles; ``min_bandwidth=None`` stands for `smallest_bandwidth`."""
        n_rows, d = X.shape
        total = float(n_rows if multiplicity is None else multiplicity.sum())
        n_tiles = max(1, -(-n_rows // _kernels.TILE))
        size = max(1, -(-n_rows // (n_tiles * _kernels.LANES))) * _kernels.LANES
        tiles = np.zeros((n_tiles, d, size))
        for t in range(n_tiles):
            tile = X[t * size : (t + 1) * size]
            tiles[t, :, : len(tile)] = tile.T
            tiles[t, :, len(tile) :] = X[:1].T
        h0 = initial_bandwidth(total, c0)
        floor = smallest_bandwidth(total, c0) if min_bandwidth is None else min_bandwidth
        return cls(tiles, n_rows, multiplicity, total, bandwidth_grid(h0, beta, floor))

    def take(self, which: Integers) -> Floats:
        """Some of the scaled rows, (len(which), n_features)."""
        size = self.tiles.shape[2]
        return self.tiles[which // size, :, which % size]

    def root(self) -> Floats | None:
        """Square roots of the multiplicities, in tiles."""
        if self.multiplicity is None:
            return None
        n_tiles, _, size = self.tiles.shape
        root = np.zeros(n_tiles * size)
        root[: self.n_rows] = np.sqrt(self.multiplicity)
        return root.reshape(n_tiles, size)


def rodeo(rows: ClassRows, x: Floats, update: Update, own: Integers | None = None) -> tuple[Floats, Integers]:
    """Algorithm 1 at each query.

    Parameters
    ----------
    rows : ClassRows
    x : (n_queries, n_features) scaled queries.
    update : whether bandwidths change after a sweep or inside it.
    own : (n_queries,) for each query the row that it is; one copy of it is left out.

    Returns
    -------
    log_density : (n_queries,), -inf where no row is left.
    steps : (n_queries, n_features) indices of the bandwidths in ``rows.h``.
    """
    n_queries, d = x.shape
    log_sum = np.full(n_queries, -np.inf)
    steps = np.zeros((n_queries, d), dtype=np.int64)
    total = np.full(n_queries, rows.total)
    root = rows.root()
    copies_left = np.zeros(0, dtype=np.int64)  # queries whose own row keeps some multiplicity
    if own is None:
        own = np.full(n_queries, -1)
        computable = total > 0.0
    else:
        m = np.ones(n_queries) if rows.multiplicity is None else rows.multiplicity[own]
        total -= np.minimum(m, 1.0)
        copies_left = np.flatnonzero(m > 1.0)
        computable = (m <= 1.0) & (rows.n_rows > 1)
    critical = critical_ratio(total)

    def run(which: Integers, own: Integers, root: Floats | None) -> None:
        some_steps, some_sums = np.zeros((which.size, d), dtype=np.int64), np.empty(which.size)
        _KERNELS[update](
            rows.tiles,
            rows.n_rows,
            root,
            np.ascontiguousarray(x[which]),
            own,
            total[which],
            critical[which],
            rows.h,
            _kernels.workspace(rows.tiles),
            some_steps,
            some_sums,
        )
        steps[which], log_sum[which] = some_steps, some_sums

    which = np.flatnonzero(computable)
    if which.size:
        run(which, own[which], root)
    for q in copies_left:
        assert root is not None
        reduced = root.copy()
        reduced.reshape(-1)[own[q]] = math.sqrt(m[q] - 1.0)
        run(np.array([q]), np.array([-1]), reduced)

    log_norm = np.log(rows.h)[steps].sum(axis=1) + 0.5 * d * math.log(2.0 * math.pi)
    return log_sum - log_norm - np.log(np.maximum(total, np.finfo(float).tiny)), steps


def local_estimates(
    classes: Sequence[ClassRows],
    x: Floats,
    *,
    update: Update,
    n_jobs: int | None,
    verbose: int,
    bandwidths: bool = False,
) -> tuple[Floats, Floats]:
    """Algorithm 1 for every query and class.

    Returns log densities (n_queries, n_classes) and, if asked for, bandwidths (n_queries, n_classes,
    n_features), else an empty array. Each query is computed on its own, so the numbers do not depend
    on chunks or threads.
    """
    n_queries, d = x.shape
    log_density = np.empty((n_queries, len(classes)))
    h = np.empty((n_queries if bandwidths else 0, len(classes), d))

    def estimate(y: int, chunk: slice) -> int:
        log_density[chunk, y], steps = rodeo(classes[y], x[chunk], update)
        if bandwidths:
            h[chunk, y] = classes[y].h[steps]
        return len(steps)

    tasks = [
        partial(estimate, y, chunk)
        for y, rows in enumerate(classes)
        for chunk in _chunks(n_queries, rows, n_jobs)
    ]
    _run(tasks, n_queries * len(classes), "Rodeo", n_jobs, verbose)
    return log_density, h


def leave_one_out_bandwidths(
    classes: Sequence[ClassRows],
    points: Sequence[Integers],
    *,
    update: Update,
    n_jobs: int | None,
    verbose: int,
) -> list[Floats]:
    """Bandwidths (n_points, n_features) at some of each class's own rows, one copy of the row left out."""
    h = [np.empty((at.size, rows.tiles.shape[1])) for rows, at in zip(classes, points, strict=True)]

    def estimate(y: int, chunk: slice) -> int:
        own = points[y][chunk]
        _, steps = rodeo(classes[y], classes[y].take(own), update, own)
        h[y][chunk] = classes[y].h[steps]
        return len(steps)

    tasks = [
        partial(estimate, y, chunk)
        for y, rows in enumerate(classes)
        for chunk in _chunks(points[y].size, rows, n_jobs)
    ]
    _run(tasks, sum(at.size for at in points), "Leave-one-out", n_jobs, verbose)
    return h


def zscores(mean_bandwidths: Floats) -> Floats:
    """Standardise the mean bandwidths of a class over its variables (equation "zscore")."""
    spread = mean_bandwidths.std()
    if spread <= 1e-12 * mean_bandwidths.mean():  # equal but for rounding: no variable stands out
        return np.zeros_like(mean_bandwidths)
    z: Floats = (mean_bandwidths - mean_bandwidths.mean()) / spread
    return z


def _chunks(n_queries: int, rows: ClassRows, n_jobs: int | None) -> Iterator[slice]:
    """Cut queries into pieces that take about 0.1 s at most and keep every thread busy."""
    fair = -(-n_queries // (4 * effective_n_jobs(n_jobs)))
    size = max(1, min(_CHUNK // rows.tiles.size, max(fair, 64)))
    for start in range(0, n_queries, size):
        yield slice(start, min(start + size, n_queries))


def _run(tasks: Iterable[Callable[[], int]], total: int, what: str, n_jobs: int | None, verbose: int) -> None:
    """Run tasks on threads (the kernels release the GIL); each returns how many queries it did."""
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator_unordered")
    done = parallel(delayed(task)() for task in tasks)
    if not verbose:
        for _ in done:
            pass
        return
    from rich.console import Console  # only where a bar is asked for: it takes time to import
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        line = bar.add_task(what, total=total)
        for n in done:
            bar.advance(line, n)

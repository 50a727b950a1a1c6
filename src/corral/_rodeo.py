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

Rows may have weights, which say how much each of them matters: sums and means over rows become weighted
ones, and :math:`n` is Kish's effective number of rows, :math:`(\sum_i w_i)^2 / \sum_i w_i^2`. So a common
factor of the weights changes nothing. A row that is left out takes all its weight with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from corral import _kernels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Update = Literal["simultaneous", "sequential"]

# Below this size log log n is too small (or negative) to start from or to test with.
SMALLEST_COUNT = 16

# Numbers read in one call of a kernel, which takes about 0.03 s for them, and 0.3 s where all bandwidths
# fall to the floor: often enough for Ctrl-C and for a progress bar. The other two kinds of estimate
# cost more and less than the simultaneous Rodeo.
_CHUNK = 10_000_000
_COST = {"simultaneous": 1.0, "sequential": 5.0, "fixed": 0.1, "many": 5.0}

# Leave-one-out bandwidths are averaged over at most this many rows of a class.
MAX_POINTS = 1000

# How often shadows are drawn.
SHADOW_ROUNDS = 5

_KERNELS: dict[str, Callable[..., None]] = {
    "simultaneous": _kernels.simultaneous,
    "sequential": _kernels.sequential,
}


_TINY = float(np.finfo(np.float64).tiny)


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
    n_steps = 0 if floor >= h0 else math.ceil(math.log(floor / h0) / math.log(beta)) + 1
    h: Floats = np.float64(h0) * beta ** np.arange(n_steps + 1)
    kept: Floats = h[(h >= floor) | (h == h0)]
    return kept


def squared_factor(n: Floats) -> Floats:
    """Return L = 2 log(n log n), where lambda_j^2 = L s_j^2."""
    L: Floats = 2.0 * np.log(n * np.log(np.maximum(n, SMALLEST_COUNT)))
    return L


def critical_ratio(n: Floats) -> Floats:
    """Return what (sum Z_ji)^2 / sum Z_ji^2 must exceed for a bandwidth to shrink."""
    enough = np.maximum(n, 1.0 + 1e-9)
    L = squared_factor(enough)
    # One row has no variance, so nothing can be told from noise.
    return np.where(n > 1.0, L * enough / (enough - 1.0 + L), 1e300)


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
        ratio: Floats = critical_ratio(self.n) * self.total / np.maximum(self.n, _TINY)
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
        others = np.delete(weights, weights.argmax()) / largest
        return cls.of_sums(largest, float(others.sum()), float((others * others).sum()))

    @classmethod
    def of_sums(cls, largest: float, rest: float, rest_squares: float) -> Measure:
        """Measure rows of different weights by sums over all but the heaviest one."""
        total, squares = 1.0 + rest, 1.0 + rest_squares
        return cls(largest, False, total, squares, rest, rest_squares, total * total / squares)

    def left(self, weight: Floats) -> Left:
        """What is left when rows of these weights are left out."""
        heaviest = weight == 1.0
        total = np.where(heaviest, self.rest, self.total - weight)
        squares = np.where(heaviest, self.rest_squares, self.squares - weight * weight)
        n = np.where(weight > 0.0, total * total / np.maximum(squares, _TINY), self.n)
        return Left(total, n)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows of one class as the kernels read them, and the bandwidths they may have.

    Attributes
    ----------
    tiles : (n_tiles, n_features, tile) scaled rows.
    n_rows : number of rows; the tiles hold copies of the first one behind the last.
    weights : (n_rows,) how much each row matters, at most 1, or None if all matter alike.
    measure : of the whole class, which these rows may be a part of.
    h : the grid of bandwidths, from the initial one to the smallest.
    """

    tiles: Floats
    n_rows: int
    weights: Floats | None
    measure: Measure
    h: Floats

    @classmethod
    def arrange(
        cls,
        X: Floats,
        weights: Floats | None,
        *,
        beta: float,
        c0: float,
        min_bandwidth: float | None,
        measure: Measure | None = None,
    ) -> ClassRows:
        """Cut scaled rows into tiles; ``min_bandwidth=None`` stands for `smallest_bandwidth`.

        Where the rows are a part of a class, `measure` is that of the whole class.
        """
        n_rows, d = X.shape
        if measure is None:
            measure = Measure.of(n_rows, weights)
        if weights is not None:
            weights = None if measure.alike else weights / measure.largest
        n_tiles = max(1, -(-n_rows // _kernels.TILE))
        size = max(1, -(-n_rows // (n_tiles * _kernels.LANES))) * _kernels.LANES
        tiles = np.zeros((n_tiles, d, size))
        for t in range(n_tiles):
            tile = X[t * size : (t + 1) * size]
            tiles[t, :, : len(tile)] = tile.T
            if n_rows:
                tiles[t, :, len(tile) :] = X[:1].T
        h0 = initial_bandwidth(measure.n, c0)
        floor = smallest_bandwidth(measure.n, c0) if min_bandwidth is None else min_bandwidth
        return cls(tiles, n_rows, weights, measure, bandwidth_grid(h0, beta, floor))

    def select(self, variables: Integers) -> ClassRows:
        """The same rows with some of the variables."""
        return replace(self, tiles=np.ascontiguousarray(self.tiles[:, variables]))

    def take(self, which: Integers) -> Floats:
        """Some of the scaled rows, (len(which), n_features)."""
        size = self.tiles.shape[2]
        return self.tiles[which // size, :, which % size]

    def weight(self, which: Integers) -> Floats:
        """Weights of some of the rows; 0 for row -1, which is none."""
        if self.weights is None or not self.n_rows:
            return np.where(which >= 0, 1.0, 0.0)
        return np.where(which >= 0, self.weights[which], 0.0)

    def root(self) -> Floats | None:
        """Square roots of the weights, in tiles."""
        if self.weights is None:
            return None
        n_tiles, _, size = self.tiles.shape
        root = np.zeros(n_tiles * size)
        root[: self.n_rows] = np.sqrt(self.weights)
        return root.reshape(n_tiles, size)


def rodeo(rows: ClassRows, x: Floats, update: Update, own: Integers | None = None) -> tuple[Floats, Integers]:
    """Algorithm 1 at each query.

    Parameters
    ----------
    rows : ClassRows
    x : (n_queries, n_features) scaled queries.
    update : whether bandwidths change after a sweep or inside it.
    own : (n_queries,) for each query the row that it is, which is left out, or -1.

    Returns
    -------
    log_density : (n_queries,), -inf where no row is left.
    steps : (n_queries, n_features) indices of the bandwidths in ``rows.h``.
    """
    n_queries, d = x.shape
    log_sum = np.full(n_queries, -np.inf)
    steps = np.zeros((n_queries, d), dtype=np.int64)
    own = np.full(n_queries, -1) if own is None else own
    left = rows.measure.left(rows.weight(own))
    which = answered(rows, own)
    if which.size:
        some_steps, some_sums = np.zeros((which.size, d), dtype=np.int64), np.empty(which.size)
        _KERNELS[update](
            rows.tiles,
            rows.n_rows,
            rows.root(),
            np.ascontiguousarray(x[which]),
            own[which],
            left.total[which],
            left.critical[which],
            rows.h,
            _kernels.workspace(rows.tiles),
            some_steps,
            some_sums,
        )
        steps[which], log_sum[which] = some_steps, some_sums
    return normalised(log_sum, rows.h[steps], left.total), steps


def answered(rows: ClassRows, own: Integers) -> Integers:
    """Positions of the queries that some row is left for; kernels must not be asked the others."""
    return np.flatnonzero(rows.n_rows > (own >= 0))


def normalised(log_sum: Floats, h: Floats, total: Floats) -> Floats:
    """Log densities from the logarithms of kernel sums, bandwidths (n_queries, n_features) and weights."""
    log_norm = np.log(h).sum(axis=1) + 0.5 * h.shape[1] * math.log(2.0 * math.pi)
    log_density: Floats = log_sum - log_norm - np.log(np.maximum(total, _TINY))
    return log_density


def kernel_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Logarithms of kernel density estimates with given bandwidths.

    Parameters
    ----------
    rows : ClassRows
    x : (n_queries, n_features) scaled queries.
    h : (..., n_features) bandwidths, one estimate for each vector; infinite where a variable takes no part.
    own : (n_queries,) for each query the row that it is, which is left out, or -1.

    Returns
    -------
    log_density : (..., n_queries), -inf where no row is left.
    """
    vectors = h.reshape(-1, h.shape[-1])
    shape = (*h.shape[:-1], len(x))
    own = np.full(len(x), -1) if own is None else own
    if rows.n_rows == 0:
        return np.full(shape, -np.inf)
    log_sum = np.empty((len(vectors), len(x)))
    _kernels.kernel_sums(
        rows.tiles,
        rows.n_rows,
        rows.root(),
        np.ascontiguousarray(x),
        own,
        0.5 / (vectors * vectors),
        np.empty((2, rows.tiles.shape[2])),
        np.empty((len(vectors), rows.tiles.shape[2])),
        np.empty(log_sum.shape),
        log_sum,
    )
    log_sum[log_sum < -0.5 * _kernels.EXCLUDED] = -np.inf
    log_total = np.log(np.maximum(rows.measure.left(rows.weight(own)).total, _TINY))
    used = np.isfinite(vectors)
    log_norm = np.log(np.where(used, math.sqrt(2.0 * math.pi) * vectors, 1.0)).sum(axis=1)
    log_density: Floats = log_sum - log_norm[:, np.newaxis] - log_total
    return log_density.reshape(shape)


def separate_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """The same with variables taken as independent: the sum of their one-dimensional log densities."""
    log_density = np.zeros((*h.shape[:-1], len(x)))
    for j in range(x.shape[1]):
        log_density += kernel_density(rows.select(np.array([j])), x[:, j : j + 1], h[..., j : j + 1], own)
    return log_density


@dataclass(frozen=True, eq=False)
class ClassDensity:
    """How the density of one class is estimated.

    Attributes
    ----------
    rows : the class, on the variables used.
    variables : (n_used,) which columns those are.
    fixed : (n_used,) their bandwidths, or None where the Rodeo chooses them at each query.
    outside : logarithm of the density of all other variables, which are taken as uniform.
    separate : whether variables are taken as independent within the class (with fixed bandwidths only).
    """

    rows: ClassRows
    variables: Integers
    fixed: Floats | None = None
    outside: float = 0.0
    separate: bool = False

    def estimate(self, x: Floats, update: Update) -> tuple[Floats, Floats]:
        """Log densities (n_queries,) and bandwidths (n_queries, n_features), the initial one outside."""
        used = x[:, self.variables]
        if self.fixed is None:
            log_density, steps = rodeo(self.rows, used, update)
            return self.completed(log_density, self.rows.h[steps], x.shape[1])
        density = separate_density if self.separate else kernel_density
        return self.completed(density(self.rows, used, self.fixed), self.fixed, x.shape[1])

    def completed(self, log_density: Floats, h: Floats, d: int) -> tuple[Floats, Floats]:
        """Both for all d variables, from those for the variables used."""
        h_of_all = np.full((log_density.size, d), self.rows.h[0])
        h_of_all[:, self.variables] = h
        return log_density + self.outside, h_of_all


def estimates(
    classes: Sequence[ClassDensity],
    x: Floats,
    *,
    update: Update,
    n_jobs: int | None,
    verbose: int,
    bandwidths: bool = False,
) -> tuple[Floats, Floats]:
    """Log densities of every query in every class, and the bandwidths that gave them.

    Returns arrays (n_queries, n_classes) and, if bandwidths are asked for, (n_queries, n_classes,
    n_features), else an empty one. Each query is computed on its own, so the numbers do not depend on
    chunks or threads.
    """
    n_queries, d = x.shape
    log_density = np.empty((n_queries, len(classes)))
    h = np.empty((n_queries if bandwidths else 0, len(classes), d))

    def estimate(y: int, chunk: slice) -> int:
        log_density[chunk, y], chosen = classes[y].estimate(x[chunk], update)
        if bandwidths:
            h[chunk, y] = chosen
        return len(chosen)

    total = n_queries * len(classes)
    fair = _fair_share(total, n_jobs)
    tasks = [
        partial(estimate, y, chunk)
        for y, density in enumerate(classes)
        for chunk in _chunks(n_queries, fair, density.rows, update if density.fixed is None else "fixed")
    ]
    what = "Rodeo" if any(density.fixed is None for density in classes) else "Kernel sums"
    _run(tasks, total, what, n_jobs, verbose)
    return log_density, h


def leave_one_out_densities(
    classes: Sequence[ClassRows],
    x: Floats,
    own: Sequence[Integers],
    h: Floats,
    *,
    separate: bool,
    n_jobs: int | None,
    verbose: int,
) -> Floats:
    """Log densities of training rows under many choices of bandwidths, each row leaving itself out.

    Parameters
    ----------
    classes : the rows of each class.
    x : (n_points, n_features) the rows to evaluate, scaled.
    own : for each class (n_points,) their positions in it, -1 for rows of other classes.
    h : (n_choices, n_classes, n_features) bandwidths, infinite where a variable takes no part.
    separate : whether variables are taken as independent within classes.

    Returns
    -------
    log_density : (n_choices, n_points, n_classes)
    """
    log_density = np.empty((len(h), len(x), len(classes)))
    density = separate_density if separate else kernel_density

    def estimate(y: int, chunk: slice) -> int:
        log_density[:, chunk, y] = density(classes[y], x[chunk], h[:, y], own[y][chunk])
        return len(x[chunk])

    total = len(x) * len(classes)
    fair = _fair_share(total, n_jobs)
    tasks = [
        partial(estimate, y, chunk)
        for y, rows in enumerate(classes)
        for chunk in _chunks(len(x), fair, rows, "many")
    ]
    _run(tasks, total, "Candidates", n_jobs, verbose)
    return log_density


def leave_one_out_bandwidths(
    classes: Sequence[ClassRows],
    points: Sequence[Integers],
    *,
    update: Update,
    n_jobs: int | None,
    verbose: int,
) -> list[Floats]:
    """Bandwidths (n_points, n_features) at some of each class's own rows, the row left out."""
    h = [np.empty((at.size, rows.tiles.shape[1])) for rows, at in zip(classes, points, strict=True)]

    def estimate(y: int, chunk: slice) -> int:
        own = points[y][chunk]
        _, steps = rodeo(classes[y], classes[y].take(own), update, own)
        h[y][chunk] = classes[y].h[steps]
        return len(steps)

    total = sum(at.size for at in points)
    fair = _fair_share(total, n_jobs)
    tasks = [
        partial(estimate, y, chunk)
        for y, rows in enumerate(classes)
        for chunk in _chunks(points[y].size, fair, rows, update)
    ]
    _run(tasks, total, "Leave-one-out", n_jobs, verbose)
    return h


def mean_bandwidths(
    classes: Sequence[ClassRows],
    random: np.random.RandomState,
    *,
    update: Update,
    n_jobs: int | None,
    verbose: int,
    n_points: int | None = None,
) -> Floats:
    """Mean leave-one-out bandwidths (n_classes, n_features) of each class.

    They are averaged over `n_points` random rows (by default MAX_POINTS) of a larger class. The initial
    bandwidth stands in for a class without rows.
    """
    points = [some_rows(rows.n_rows, n_points or MAX_POINTS, random) for rows in classes]
    local = leave_one_out_bandwidths(classes, points, update=update, n_jobs=n_jobs, verbose=verbose)
    means = np.empty((len(classes), classes[0].tiles.shape[1]))
    for mean, rows, at, h in zip(means, classes, points, local, strict=True):
        mean[:] = np.average(h, axis=0, weights=rows.weight(at)) if at.size else rows.h[0]
    return means


def zscores(means: Floats) -> Floats:
    """Standardise the mean bandwidths of a class over its variables (equation "zscore").

    The variance divides by d - 1, as in the published tables: the squares of their scores sum to d - 1.
    """
    spread = means.std(ddof=1) if means.size > 1 else 0.0
    if spread <= 1e-12 * means.mean():  # equal but for rounding: no variable stands out
        return np.zeros_like(means)
    z: Floats = (means - means.mean()) / spread
    return z


def shadow_scores(
    classes: Sequence[Floats],
    weights: Sequence[Floats | None],
    random: np.random.RandomState,
    *,
    settings: dict[str, Any],
    update: Update,
    n_jobs: int | None,
    verbose: int,
    rounds: int = SHADOW_ROUNDS,
    n_points: int = 200,
) -> Floats:
    """How many standard errors each mean bandwidth lies above that of its shadow.

    The shadows of a class's variables are columns of rows drawn from all classes in equal parts, put
    beside the class's own rows at random. Variables that are distributed in the class as in the pool,
    independently of the others, cannot be told from their shadows when both take part in the same
    Rodeo; so the difference of their mean leave-one-out bandwidths has mean zero, whatever the units.
    Its standard error is that of the shadows over the rounds, pooled over the variables of the class.

    Parameters
    ----------
    classes : scaled rows (n_rows, n_features) of each class.
    weights : of the rows, as in ClassRows.arrange.
    random : source of the shadows and, in large classes, of the points to average over.
    settings : arguments of ClassRows.arrange.

    Returns
    -------
    scores : (n_classes, n_features)
    """
    d = classes[0].shape[1]
    means = np.empty((rounds, len(classes), 2 * d))
    pools = [(X, w) for X, w in zip(classes, weights, strict=True) if len(X)]
    for k in range(rounds):
        rows = [
            ClassRows.arrange(np.hstack([X, _shadow(len(X), pools, random)]), w, **settings)
            for X, w in zip(classes, weights, strict=True)
        ]
        means[k] = mean_bandwidths(
            rows, random, update=update, n_jobs=n_jobs, verbose=verbose, n_points=n_points
        )
    variable, shadow = means[:, :, :d], means[:, :, d:]
    variance = shadow.var(axis=0, ddof=1).mean(axis=1, keepdims=True)
    # Where no shadow moves, nothing less than one step at one row can be told apart.
    step = np.array(
        [[(of_class.h[0] - of_class.h[1:2].sum()) / max(of_class.n_rows, 1)] for of_class in rows]
    )
    difference = variable.mean(axis=0) - shadow.mean(axis=0)
    scores: Floats = difference / np.sqrt(np.maximum(variance * (1.0 + 1.0 / rounds), step**2))
    return scores


def _shadow(n: int, pools: Sequence[tuple[Floats, Floats | None]], random: np.random.RandomState) -> Floats:
    """Draw n whole rows, in equal parts from all classes and in proportion to weights."""
    drawn = []
    for part, (X, w) in zip(np.array_split(np.arange(n), len(pools)), pools, strict=True):
        order = random.permutation(len(X))
        ends = np.arange(1, len(X) + 1) if w is None else np.cumsum(w[order])
        # Systematic sampling repeats a row only where it must: ties would narrow bandwidths.
        at = (random.uniform() + np.arange(part.size)) / max(part.size, 1) * ends[-1]
        drawn.append(X[order[np.searchsorted(ends, at, side="right")]])
    return random.permutation(np.concatenate(drawn))


def some_rows(n_rows: int, most: int, random: np.random.RandomState) -> Integers:
    """All rows, or a random choice of `most` of them, in order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, most, replace=False))


def _fair_share(total: int, n_jobs: int | None) -> int:
    """How many of all queries, counted once per class, a chunk may have so that every thread stays busy."""
    n_chunks: int = 4 * effective_n_jobs(n_jobs)
    return max(64, -(-total // n_chunks))


def _chunks(n_queries: int, fair: int, rows: ClassRows, kind: str) -> Iterator[slice]:
    """Cut the queries of a class into pieces of a fair share at most, short enough for Ctrl-C."""
    size = max(1, min(int(_CHUNK / (rows.tiles.size * _COST[kind])), fair))
    for start in range(0, n_queries, size):
        yield slice(start, min(start + size, n_queries))


def _run(tasks: Iterable[Callable[[], int]], total: int, what: str, n_jobs: int | None, verbose: int) -> None:
    """Run tasks on threads (the kernels release the GIL); each returns how many queries it did."""
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator_unordered")
    with progress(total, what, verbose) as advance:
        for n in parallel(delayed(task)() for task in tasks):
            advance(n)


@contextmanager
def progress(total: int, what: str, verbose: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on the standard error stream, if `verbose`; gives what moves it on."""
    if verbose <= 0:
        yield lambda n: None
        return
    from rich.console import Console  # only where a bar is asked for: it takes time to import
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        line = bar.add_task(what, total=total)
        yield lambda n: bar.advance(line, n)

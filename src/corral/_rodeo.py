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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

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


def squared_factor(n: Floats | np.float64) -> Floats:
    """Return L = 2 log(n log n), where lambda_j^2 = L s_j^2."""
    L: Floats = 2.0 * np.log(n * np.log(np.maximum(n, SMALLEST_COUNT)))
    return L


def critical_ratio(n: Floats) -> Floats:
    """Return what (sum Z_ji)^2 / sum Z_ji^2 must exceed for a bandwidth to shrink."""
    enough = np.maximum(n, 1.0 + 1e-9)
    L = squared_factor(enough)
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
        total: float | None = None,
    ) -> ClassRows:
        """Cut scaled rows into tiles; ``min_bandwidth=None`` stands for `smallest_bandwidth`.

        Where the rows are a part of a class, `total` is that of the whole class.
        """
        n_rows, d = X.shape
        if total is None:
            total = float(n_rows if multiplicity is None else multiplicity.sum())
        n_tiles = max(1, -(-n_rows // _kernels.TILE))
        size = max(1, -(-n_rows // (n_tiles * _kernels.LANES))) * _kernels.LANES
        tiles = np.zeros((n_tiles, d, size))
        for t in range(n_tiles):
            tile = X[t * size : (t + 1) * size]
            tiles[t, :, : len(tile)] = tile.T
            if n_rows:
                tiles[t, :, len(tile) :] = X[:1].T
        h0 = initial_bandwidth(total, c0)
        floor = smallest_bandwidth(total, c0) if min_bandwidth is None else min_bandwidth
        return cls(tiles, n_rows, multiplicity, total, bandwidth_grid(h0, beta, floor))

    def select(self, variables: Integers) -> ClassRows:
        """The same rows with some of the variables."""
        return replace(self, tiles=np.ascontiguousarray(self.tiles[:, variables]))

    def take(self, which: Integers) -> Floats:
        """Some of the scaled rows, (len(which), n_features)."""
        size = self.tiles.shape[2]
        return self.tiles[which // size, :, which % size]

    def copies(self, which: Integers) -> Floats:
        """How often some of the rows count; 0 for row -1, which is none."""
        if self.multiplicity is None or not self.n_rows:
            return np.where(which >= 0, 1.0, 0.0)
        return np.where(which >= 0, self.multiplicity[which], 0.0)

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
    own = np.full(n_queries, -1) if own is None else own
    total = rows.total - np.minimum(rows.copies(own), 1.0)
    critical = critical_ratio(total)
    for which, own_of_which, root in leaving_out(rows, own):
        some_steps, some_sums = np.zeros((which.size, d), dtype=np.int64), np.empty(which.size)
        _KERNELS[update](
            rows.tiles,
            rows.n_rows,
            root,
            np.ascontiguousarray(x[which]),
            own_of_which,
            total[which],
            critical[which],
            rows.h,
            _kernels.workspace(rows.tiles),
            some_steps,
            some_sums,
        )
        steps[which], log_sum[which] = some_steps, some_sums
    return normalised(log_sum, rows.h[steps], total), steps


def leaving_out(rows: ClassRows, own: Integers) -> Iterator[tuple[Integers, Integers, Floats | None]]:
    """Divide queries among calls of a kernel, which leaves out rows, not single copies of them.

    Yields positions of queries, the rows to leave out and the roots of the multiplicities. Queries that no
    row is left for are not among them.
    """
    root = rows.root()
    copies = rows.copies(own)
    whole = np.flatnonzero((copies <= 1.0) & (rows.n_rows > (own >= 0)))
    if whole.size:
        yield whole, own[whole], root
    for q in np.flatnonzero(copies > 1.0):
        assert root is not None
        reduced = root.copy()
        reduced.reshape(-1)[own[q]] = math.sqrt(copies[q] - 1.0)
        yield np.array([q]), np.array([-1]), reduced


def normalised(log_sum: Floats, h: Floats, total: Floats) -> Floats:
    """Log densities from the logarithms of kernel sums, bandwidths (n_queries, n_features) and n."""
    log_norm = np.log(h).sum(axis=1) + 0.5 * h.shape[1] * math.log(2.0 * math.pi)
    log_density: Floats = log_sum - log_norm - np.log(np.maximum(total, np.finfo(float).tiny))
    return log_density


def kernel_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Logarithms of kernel density estimates with given bandwidths.

    Parameters
    ----------
    rows : ClassRows
    x : (n_queries, n_features) scaled queries.
    h : (..., n_features) bandwidths, one estimate for each vector; infinite where a variable takes no part.
    own : (n_queries,) for each query the row that it is, of which one copy is left out, or -1.

    Returns
    -------
    log_density : (..., n_queries), -inf where no row is left.
    """
    vectors = h.reshape(-1, h.shape[-1])
    shape = (*h.shape[:-1], len(x))
    own = np.full(len(x), -1) if own is None else own
    left_out = rows.copies(own)
    total = rows.total - np.minimum(left_out, 1.0)
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
    with np.errstate(divide="ignore"):
        # The kernel leaves all copies of a row out; those that stay are at no distance.
        log_sum = np.logaddexp(log_sum, np.log(np.maximum(left_out - 1.0, 0.0)))
        log_sum[log_sum < -0.5 * _kernels.EXCLUDED] = -np.inf
        log_total = np.log(np.maximum(total, np.finfo(float).tiny))
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
    """Bandwidths (n_points, n_features) at some of each class's own rows, one copy of the row left out."""
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
        m = None if rows.multiplicity is None else rows.multiplicity[at]
        mean[:] = np.average(h, axis=0, weights=m) if at.size else rows.h[0]
    return means


def zscores(means: Floats) -> Floats:
    """Standardise the mean bandwidths of a class over its variables (equation "zscore")."""
    spread = means.std()
    if spread <= 1e-12 * means.mean():  # equal but for rounding: no variable stands out
        return np.zeros_like(means)
    z: Floats = (means - means.mean()) / spread
    return z


def shadow_scores(
    classes: Sequence[Floats],
    multiplicities: Sequence[Floats | None],
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
    multiplicities : of the rows, as in ClassRows.
    random : source of the shadows and, in large classes, of the points to average over.
    settings : arguments of ClassRows.arrange.

    Returns
    -------
    scores : (n_classes, n_features)
    """
    d = classes[0].shape[1]
    means = np.empty((rounds, len(classes), 2 * d))
    pools = [(X, m) for X, m in zip(classes, multiplicities, strict=True) if len(X)]
    for k in range(rounds):
        rows = [
            ClassRows.arrange(np.hstack([X, _shadow(len(X), pools, random)]), m, **settings)
            for X, m in zip(classes, multiplicities, strict=True)
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
    """Draw n whole rows, in equal parts from all classes and in proportion to multiplicities."""
    drawn = []
    for part, (X, m) in zip(np.array_split(np.arange(n), len(pools)), pools, strict=True):
        order = random.permutation(len(X))
        ends = np.arange(1, len(X) + 1) if m is None else np.cumsum(m[order])
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

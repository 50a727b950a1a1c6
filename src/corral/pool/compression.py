r"""A pool with compressed classes: kernels on centroids of all rows, everything else fitted to a sample.

A class with more than `max_rows` rows is compressed: its rows are divided into cells, and each cell has one
kernel, at its centroid. Scales, members, their transforms and the markers are fitted to a sample. The sample
does not depend on the order or the partitions of the table. Then each row of a compressed class is assigned
to a cell.

**Cells.** K-means divides the rows of a class. Cell k is represented by the weighted mean :math:`c_k` of its
rows, the centroid, and by their total weight. The covariance of the rows around the centroids of their cells,

.. math:: S = \frac{\sum_i w_i (x_i - c_{k(i)}) (x_i - c_{k(i)})^T}{\sum_i w_i},

is added to the covariance of the kernels: a normal kernel with covariance H becomes a normal kernel with
covariance H + S. So compression does not change the mean and the covariance of a class, and it keeps finer
structure if the cells are small relative to the kernel. K-means weights the squared difference in a variable
by the inverse square of the bandwidth of the densities in this variable. The scales of different members are
not linear functions of each other. Therefore each centroid is computed on every scale, but distances are
computed on one scale only.

**Parts.** Rows are assigned to cells in parts, in several threads or on several workers. Means, weights and S
are computed from sums, so that the division into parts does not matter, except for rounding.

**Bandwidths.** The search finds a bandwidth h of a member for the :math:`n_y` rows of a class that the search
reads. For all :math:`N_y` rows of the class the bandwidth is reduced at the rate of kernel densities with r
relevant variables,

.. math:: h_y = h \, (N_y / n_y)^{-1 / (4 + r)},

where r is the number of coordinates in which the standard deviation of the class is larger than h. A
bandwidth of 1 is not reduced if the member is a normal density.

**Calibration.** Calibration points are rows that the search has left out of their own predictions. In
compressed classes these rows are held out: they are in no cell. At the end the temperatures and weights of
the members are fitted again to the calibration points, with kernels on the centroids, and with transforms
that are fitted without the fold of the point. Scores, typicality and prediction sets are computed from the
same points. In classes that are not compressed, a calibration point has a kernel and is left out of its own
prediction.

If the table has missing values or categories, rows cannot be averaged. If the table has groups, rows can only
be left out with their group. In these cases `learning` puts the kernels on a subsample of the rows instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import Scale, ScaleKind
from corral.data.weights import weights_or_ones
from corral.parallel import Computation, on_threads, one_blas_thread, progress
from corral.pool.cross_fitting import TriedMember, folds_of
from corral.pool.densities import Mixture
from corral.pool.members import AnyKind, Member
from corral.pool.model import Compression, Pool
from corral.pool.scaled_rows import ScaledRows
from corral.pool.search import Search, make_pool
from corral.pool.weights import fit_weights, shares_of
from corral.posterior import finite_log_densities

# Largest share of the rows of a compressed class that is held out of its cells.
_HELD_OUT = 0.2

# Kind of scale on which distances between rows are computed.
_COMPARED: ScaleKind = "score"

# Number of rows per cell to which k-means is fitted, and number of rounds of Lloyd's algorithm. Larger
# numbers hardly change the results.
_ROWS_PER_CELL = 10
_N_ROUNDS = 4

# Number of rows in a part, and number of distances in memory at a time.
PART_ROWS = 50_000
_BLOCK = 2_000_000

# Fields of `Centroids` with one entry per cell.
_BY_CELL = ("weights", "counts", "distances", "numbers", "X")


@dataclass(frozen=True, eq=False)
class Centroids:
    """Weighted means of the rows in each cell of a class, and for each cell the row nearest to its center.

    A single row is represented as the centroid of a cell with one row. So rows and the centroids of parts are
    averaged by the same function.
    """

    means: Mapping[ScaleKind, Floats]  # by kind of scale, (n_cells, n_features) weighted means
    weights: Floats  # (n_cells,) sums of the weights of the rows, 0 for a cell without rows
    counts: Integers  # (n_cells,) numbers of rows
    # by kind of scale, (n_features, n_features) weighted sum over all rows of the outer products of their
    # differences from the centroids
    scatter: Mapping[ScaleKind, Floats]
    distances: Floats  # (n_cells,) squared distance of the nearest row, inf for a cell without rows
    numbers: Integers  # (n_cells,) position of the nearest row in the table, -1 for a cell without rows
    X: Floats  # (n_cells, n_features) the nearest row

    @classmethod
    def merge(cls, parts: Sequence[Centroids]) -> Centroids:
        """Merge the centroids of several parts of the rows; all parts have the same cells."""
        n_cells, kinds = parts[0].weights.size, parts[0].means
        together = cls(
            means={kind: np.concatenate([part.means[kind] for part in parts]) for kind in kinds},
            scatter={kind: np.sum([part.scatter[kind] for part in parts], axis=0) for kind in kinds},
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_CELL},
        )
        return together.averaged(np.tile(np.arange(n_cells), len(parts)), n_cells)

    def averaged(self, cells: Integers, n_cells: int) -> Centroids:
        """Merge the centroids with the same entry of `cells` (n_centroids,), an index below `n_cells`."""
        weights = np.bincount(cells, self.weights, minlength=n_cells).astype(np.float64)
        divisor = np.where(weights > 0.0, weights, 1.0)[:, np.newaxis]
        means, scatter = {}, {}
        for kind, x in self.means.items():
            means[kind] = _sums(x, self.weights, cells, n_cells) / divisor
            apart = x - means[kind][cells]
            scatter[kind] = self.scatter[kind] + (apart * self.weights[:, np.newaxis]).T @ apart
        counts = np.bincount(cells, self.counts, minlength=n_cells).astype(np.int64)
        distances, numbers = np.full(n_cells, np.inf), np.full(n_cells, -1)
        X = np.zeros((n_cells, self.X.shape[1]))
        # The two rows of a cell of two rows are equally far from their mean. Distances are rounded so that
        # rounding errors do not decide which row is the nearest.
        mantissa, exponent = np.frexp(self.distances)
        order = np.lexsort((self.numbers, np.ldexp(np.round(mantissa, 9), exponent), cells))
        filled, first = np.unique(cells[order], return_index=True)
        nearest = order[first]
        distances[filled], numbers[filled] = self.distances[nearest], self.numbers[nearest]
        X[filled] = self.X[nearest]
        return Centroids(means, weights, counts, scatter, distances, numbers, X)

    def filled(self) -> Centroids:
        """Return the centroids of the cells that have rows."""
        kept = self.weights > 0.0
        means = {kind: mean[kept] for kind, mean in self.means.items()}
        return replace(self, means=means, **{name: getattr(self, name)[kept] for name in _BY_CELL})

    def spread(self, kind: ScaleKind) -> Floats:
        """Return the covariance (n_features, n_features) of the rows around their centroids on a scale."""
        spread: Floats = self.scatter[kind] / self.weights.sum()
        return spread


@dataclass(frozen=True, eq=False)
class Cells:
    """The division of a class by k-means: each row belongs to the cell with the nearest center."""

    scales: Mapping[ScaleKind, Scale]  # scales on which rows are averaged
    importance: Floats  # (n_features,) weights of squared differences in distances
    centers: Floats  # (n_cells, n_used) centers; see `_coordinates`

    @classmethod
    def learn(
        cls,
        scales: Mapping[ScaleKind, Scale],
        X: Floats,
        weights: Floats | None,
        n_cells: int,
        importance: Floats,
        seed: int,
    ) -> Cells:
        """Fit the centers by Lloyd's algorithm to a subsample of the rows X (n_rows, n_features)."""
        subsample = np.random.RandomState(seed).permutation(len(X))[: _ROWS_PER_CELL * n_cells]
        w = weights_or_ones(weights, len(X))[subsample]
        x = _coordinates(scales[_COMPARED].transform(X[subsample]), importance)
        centers = x[:n_cells].copy()
        for _ in range(_N_ROUNDS):
            cells = nearest(x, centers)
            totals = np.bincount(cells, w, minlength=n_cells)
            filled = totals > 0.0
            centers[filled] = _sums(x, w, cells, n_cells)[filled] / totals[filled, np.newaxis]
        return cls(scales, importance, centers)

    def average(self, X: Floats, weights: Floats | None, numbers: Integers) -> Centroids:
        """Compute the centroids of a part of the rows.

        Parameters
        ----------
        X : (n_rows, n_features) rows of the part.
        weights : (n_rows,) weights; None if all weights are equal.
        numbers : (n_rows,) positions of the rows in the table.
        """
        scaled = {kind: scale.transform(X) for kind, scale in self.scales.items()}
        x = _coordinates(scaled[_COMPARED], self.importance)
        cells = nearest(x, self.centers)
        apart = x - self.centers[cells]
        rows = Centroids(
            scaled,
            weights_or_ones(weights, len(X)),
            np.ones(len(X), dtype=np.int64),
            {kind: np.zeros((X.shape[1], X.shape[1])) for kind in scaled},
            np.vecdot(apart, apart),
            numbers,
            X,
        )
        return rows.averaged(cells, len(self.centers))


def nearest(x: Floats, centers: Floats) -> Integers:
    """Return the index (n_rows,) of the nearest center for each row of x (n_rows, n_used).

    Single precision takes half of the time. It does not matter which of two centers at nearly the same
    distance is returned.
    """
    cells = np.empty(len(x), dtype=np.int64)
    origin = centers.mean(axis=0)  # products of values relative to their mean lose fewer digits
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
    """Return coordinates (n_rows, n_used) whose Euclidean distance is the distance between rows.

    The variables with positive importance are used, multiplied by the root of their importance.
    """
    used = importance > 0.0
    coordinates: Floats = x[:, used] * np.sqrt(importance[used])
    return coordinates


def _sums(x: Floats, weights: Floats, cells: Integers, n_cells: int) -> Floats:
    """Return weighted sums (n_cells, n_columns) of rows by cell."""
    sums = np.empty((n_cells, x.shape[1]))
    for j, column in enumerate(x.T):
        sums[:, j] = np.bincount(cells, weights * column, minlength=n_cells)
    return sums


@dataclass(frozen=True, eq=False)
class CompressionPlan:
    """Everything that is fitted to a sample before the other rows are read."""

    sample: ScaledRows  # sample of all classes on the scales of all members
    search_result: Search  # result of the search on the sample
    # for each member of `search_result.kept` one density for each class, without rows
    members: Sequence[Sequence[Mixture]]
    cells: Mapping[int, Cells]  # cells of each compressed class, by class code
    points: Integers  # positions in the sample of the calibration points

    @classmethod
    def learn(
        cls,
        sample: ScaledRows,
        search_result: Search,
        sizes: Integers,
        max_rows: int,
        computation: Computation,
    ) -> CompressionPlan:
        """Divide each class with more than `max_rows` rows into cells.

        Parameters
        ----------
        sample : the sample.
        search_result : members that a search on the sample has kept.
        sizes : (n_classes,) number of rows of each class in the whole table.
        max_rows : largest number of cells of a class.
        computation : number of threads.
        """
        rows, prior = sample.data, search_result.plan.prior
        n_read = np.bincount(rows.codes[search_result.chosen], minlength=prior.size)
        points = _calibration_points(search_result.points, rows, sizes, max_rows)
        in_cells = np.isin(np.arange(len(rows.X)), points, invert=True)
        with one_blas_thread():
            plans = [
                partial(plan_member, tried_member, sample, sizes, n_read, prior, search_result.seed)
                for tried_member in search_result.kept
            ]
            members = list(on_threads(plans, computation.n_jobs))
            used = {_COMPARED, *(tried_member.kind.scale for tried_member in search_result.kept)}
            scales = {kind: scale for kind, scale in sample.scales.items() if kind in used}
            compressed = np.flatnonzero(sizes > max_rows).tolist()
            divisions = []
            for y in compressed:
                inside = np.flatnonzero(in_cells & (rows.codes == y))
                data = rows.X[inside], rows.weights_of(inside), min(max_rows, inside.size)
                importance = _importance(y, members, search_result, sample)
                divisions.append(partial(Cells.learn, scales, *data, importance, search_result.seed))
            cells = dict(zip(compressed, on_threads(divisions, computation.n_jobs), strict=True))
        return cls(sample, search_result, members, cells, points)

    @property
    def rows(self) -> LabelledRows:
        """The rows of the sample."""
        return self.sample.data

    @property
    def is_compressed(self) -> Bools:
        """(n_sample,) whether the class of each row of the sample is compressed."""
        return np.isin(self.rows.codes, list(self.cells))

    @property
    def held_out(self) -> Integers:
        """Positions in the sample of the rows in no cell: calibration points of compressed classes."""
        held_out: Integers = self.points[self.is_compressed[self.points]]
        return held_out

    def build(
        self, centroids: Mapping[int, Centroids], n_rows: int
    ) -> tuple[LabelledRows, Compression, Pool]:
        """Build the pool.

        Parameters
        ----------
        centroids : centroids of each compressed class, by class code.
        n_rows : number of rows of the table.

        Returns
        -------
        data : for compressed classes the row nearest to the center of each cell; all rows of other classes.
        compression : held-out rows, and numbers of training rows that rows of `data` represent.
        pool : the pool.
        """
        centroids = {y: class_centroids.filled() for y, class_centroids in centroids.items()}
        data, held_out = self._kept_rows(centroids)
        counts = np.ones(len(data.X), dtype=np.int64)
        for y, class_centroids in centroids.items():
            counts[data.codes == y] = class_centroids.counts
        with one_blas_thread():
            return data, Compression(held_out, counts, n_rows), self._calibrated(data, held_out, centroids)

    def _kept_rows(self, centroids: Mapping[int, Centroids]) -> tuple[LabelledRows, LabelledRows]:
        """Return the rows that represent cells with all rows of other classes, and the held-out rows."""
        held_out = self.rows.take(self.held_out)
        others = np.flatnonzero(~self.is_compressed)  # the sample has all rows of these classes
        rows = self.rows.take(others[np.argsort(self.rows.numbers[others])])
        rows = replace(rows, weights=rows.all_weights, counts=self.rows.counts)
        # Each centroid gets a group id of its own, so that no point leaves a centroid out.
        first_group = 1 + max(held_out.group_ids.max(initial=0), rows.group_ids.max(initial=0))
        for y, class_centroids in centroids.items():
            nearest = replace(
                rows,
                X=class_centroids.X,
                codes=np.full(class_centroids.numbers.size, y),
                weights=class_centroids.weights,
                numbers=class_centroids.numbers,
                group_ids=first_group + class_centroids.numbers,
            )
            rows = rows.extended(nearest)
        largest = rows.all_weights.max()
        return (
            replace(rows, weights=rows.all_weights / largest),
            replace(held_out, weights=held_out.all_weights / largest, counts=rows.counts),
        )

    def _calibrated(
        self, data: LabelledRows, held_out: LabelledRows, centroids: Mapping[int, Centroids]
    ) -> Pool:
        """Fit temperatures and weights to the calibration points, and score the pool."""
        search_result, rows = self.search_result, data.extended(held_out)
        order = np.argsort(rows.numbers)
        points = order[np.searchsorted(rows.numbers, self.rows.numbers[self.points], sorter=order)]
        plan = search_result.plan.restricted_to(np.searchsorted(search_result.points, self.points))
        tried_members = []
        for densities, tried in zip(self.members, search_result.kept, strict=True):
            log_density = np.empty((points.size, plan.prior.size))
            # Transforms of the whole sample were fitted to the points, so that scores would be too good.
            (folds,) = folds_of(self.sample, plan, [tried.kind], self.sample).values()
            for inside, others, _ in folds:
                learnt = zip(densities, tried.kind.learn(others, plan.prior, search_result.seed), strict=True)
                fold_densities = [replace(density, transform=transform) for density, transform in learnt]
                member = self._member(tried.kind, fold_densities, data, centroids)
                left_out = rows.take(points[inside])
                log_density[inside] = member.log_densities_without(data, left_out.X, left_out.group_ids)
            tried_members.append(
                TriedMember.calibrate(tried.kind, finite_log_densities(log_density)[np.newaxis], plan)
            )
        log_weights = fit_weights(tried_members, plan)
        table = {name: column.copy() for name, column in search_result.table.items()}
        table["weight"][search_result.order] = np.exp(log_weights)
        table["share"][search_result.order] = shares_of(tried_members, log_weights)
        table["temperature"][search_result.order] = np.exp(
            [-tried_member.log_power for tried_member in tried_members]
        )
        fitted = search_result._replace(
            tried_members=tried_members, log_weights=log_weights, plan=plan, table=table
        )
        kept = [(tried_members[m].kind, self.members[m]) for m in fitted.order]
        return make_pool(fitted, [self._member(*each, data, centroids) for each in kept], points)

    def _member(
        self,
        kind: AnyKind,
        densities: Sequence[Mixture],
        data: LabelledRows,
        centroids: Mapping[int, Centroids],
    ) -> Member:
        """Return a member with kernels on centroids and on all rows of classes that are not compressed."""
        scale, classes = self.sample.scales[kind.scale], []
        for y, (density, rows) in enumerate(zip(densities, data.members(), strict=True)):
            weights = data.all_weights[rows]
            if y in centroids:
                means, spread = centroids[y].means[kind.scale], centroids[y].spread(kind.scale)
                classes.append(density.on_centroids(means, weights, spread))
            else:
                classes.append(density.on_rows(scale.transform(data.X[rows]), weights))
        return Member(kind.identifier, scale, classes)


def plan_member(
    tried_member: TriedMember, sample: ScaledRows, sizes: Integers, n_read: Integers, prior: Floats, seed: int
) -> list[Mixture]:
    """Return a density for each class, without rows.

    Transforms are fitted to the sample. Bandwidths are reduced to bandwidths for all rows. `sizes` and
    `n_read` (n_classes,) are the numbers of all rows and of the rows that the search has read.
    """
    scaled, densities = sample.scaled[tried_member.kind.scale], []
    learnt = zip(tried_member.kind.learn(sample, prior, seed), sample.data.members(), strict=True)
    for y, (transform, rows) in enumerate(learnt):
        bandwidth, shrinkage = tried_member.bandwidth, tried_member.shrinkage
        if shrinkage > 0.0 and rows.size:
            coordinates = transform.coordinates(transform.centered(scaled[rows]))
            n_relevant = int((coordinates.std(axis=0) > bandwidth).sum())
            bandwidth *= carried_over(int(sizes[y]), int(n_read[y]), n_relevant)
            if shrinkage < 1.0:
                shrinkage = math.sqrt(1.0 - bandwidth**2)
        densities.append(Mixture(scaled[:0], None, transform, bandwidth, shrinkage))
    return densities


def carried_over(n_rows: int, n_read: int, n_relevant: int) -> float:
    """Return the factor that converts bandwidths for `n_read` rows to bandwidths for `n_rows` rows."""
    return float((n_rows / max(n_read, 1)) ** (-1.0 / (4.0 + n_relevant)))


def compress_rows(
    data: LabelledRows, plan: CompressionPlan, computation: Computation
) -> dict[int, Centroids]:
    """Return the centroids of each compressed class, by class code; held-out rows are excluded."""
    in_cells = np.isin(data.group_ids, plan.rows.group_ids[plan.held_out], invert=True)
    parts = []
    for y in plan.cells:
        inside = np.flatnonzero(in_cells & (data.codes == y))
        parts += [(y, inside[first : first + PART_ROWS]) for first in range(0, inside.size, PART_ROWS)]

    def average(y: int, part: Integers) -> tuple[int, Centroids]:
        return y, plan.cells[y].average(data.X[part], data.weights_of(part), data.numbers[part])

    centroids: dict[int, Centroids] = {}
    with (
        one_blas_thread(),
        progress(len(parts), "Cells", computation.verbose) as advance,
    ):
        for y, part in on_threads([partial(average, *part) for part in parts], computation.n_jobs):
            centroids[y] = Centroids.merge([centroids[y], part]) if y in centroids else part
            advance(1)
    return centroids


def _importance(
    y: int, members: Sequence[Sequence[Mixture]], search_result: Search, sample: ScaledRows
) -> Floats:
    """Return the weights (n_features,) of squared differences in distances between rows of class y.

    A weight is the weighted sum over members of their precision in the variable, on the scale `_COMPARED`.
    """
    deviation = sample.scaled[_COMPARED].std(axis=0)
    importance = np.zeros(deviation.size)
    for densities, tried_member, weight in zip(
        members, search_result.kept, search_result.weights.tolist(), strict=True
    ):
        density, precision = densities[y], np.zeros(deviation.size)
        factor = density.transform.full_factor
        by_variable = np.vecdot(factor, factor) / density.bandwidth**2
        precision[density.transform.variables] = density.shrinkage**2 * by_variable
        member_deviation = sample.scaled[tried_member.kind.scale].std(axis=0)
        ratio = np.divide(member_deviation, deviation, out=np.zeros(deviation.size), where=deviation > 0.0)
        importance += weight * ratio**2 * precision
    return importance


def _calibration_points(points: Integers, rows: LabelledRows, sizes: Integers, max_rows: int) -> Integers:
    """Return the calibration points: `points`, in compressed classes at most a share of the rows."""
    kept = []
    for y, size in enumerate(sizes.tolist()):
        class_centroids = points[rows.codes[points] == y]
        kept.append(class_centroids[: max(int(_HELD_OUT * size), 1)] if size > max_rows else class_centroids)
    return np.concatenate(kept)

r"""A pool with large classes: learnt from a sample, with kernels on centroids of all rows.

Scales, members, their transforms and the markers are learnt from a sample, which has the same rows however
the table is ordered or partitioned. Then the rows of each compressed class are assigned to its cells, once.

**Bandwidths.** The search finds the bandwidth h of a member for the :math:`n_y` rows of a class that it
reads. For all :math:`N_y` rows it is carried over by the rate of kernel densities with r relevant variables,

.. math:: h_y = h \, (N_y / n_y)^{-1 / (4 + r)},

where r is the number of coordinates in which the class varies by more than h. A bandwidth of 1, at which a
member is a normal density, stays.

**Calibration.** Rows that the search has left out are in no cell. At the end the temperatures and weights of
the members are fitted again to these rows, by the densities that the pool has then, with transforms that are
learnt without the fold of the row. The scores, typicality and prediction sets are measured by the same rows.
Rows of classes that are not compressed leave themselves out as always.

Rows with missing values or categories have no means, and rows of groups can only be left out with their
groups: `learning` puts kernels on a subsample of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import ScaleKind
from corral.parallel import Computation, on_threads, progress
from corral.pool.centroids import Cells, Centroids
from corral.pool.cross_fitting import Candidate, folds_of
from corral.pool.densities import Mixture
from corral.pool.members import AnyKind, Member
from corral.pool.model import CellMeans, Pool, Thinning
from corral.pool.scaled_rows import RowsInUnits
from corral.pool.search import Search, make_pool, search
from corral.pool.transforms import ClassTransform
from corral.pool.weights import fit_weights, heaviest_first, judge, shares_of

# At most so large a share of the rows of a compressed class is held out of its cells.
_HELD_OUT = 0.2

# Rows that are assigned to cells at once.
PART_ROWS = 50_000

# The scale on which distances between rows are measured.
_COMPARED: ScaleKind = "score"


@dataclass(frozen=True, eq=False)
class MemberPlan:
    """How a member is built.

    Attributes
    ----------
    kind : the way it is made.
    transforms : of the classes.
    bandwidths, shrinkages : (n_classes,) of their kernels.
    """

    kind: AnyKind
    transforms: Sequence[ClassTransform]
    bandwidths: Floats
    shrinkages: Floats

    @classmethod
    def learn(
        cls,
        candidate: Candidate,
        sample: RowsInUnits,
        sizes: Integers,
        n_read: Integers,
        prior: Floats,
        seed: int,
    ) -> MemberPlan:
        """Learn the transforms of a candidate from a sample, and carry its bandwidth over to all rows.

        `sizes` and `n_read` (n_classes,) are the numbers of all rows, and of those that the search has read.
        """
        transforms = candidate.kind.learn(sample, prior, seed)
        scaled = sample.scaled[candidate.kind.scale]
        bandwidths = np.full(sizes.size, candidate.bandwidth)
        shrinkages = np.full(sizes.size, candidate.shrinkage)
        for y, (transform, of_class) in enumerate(zip(transforms, sample.data.members(), strict=True)):
            if candidate.shrinkage == 0.0 or not of_class.size:
                continue
            coordinates = transform.coordinates(transform.centered(scaled[of_class]))
            n_relevant = int((coordinates.std(axis=0) > candidate.bandwidth).sum())
            bandwidths[y] *= carried_over(int(sizes[y]), int(n_read[y]), n_relevant)
            if candidate.shrinkage < 1.0:
                shrinkages[y] = np.sqrt(1.0 - bandwidths[y] ** 2)
        return cls(candidate.kind, transforms, bandwidths, shrinkages)

    def precision(self, y: int, d: int) -> Floats:
        """Inverse squares (d,) of the bandwidths of a class in each variable, 0 where it has one centre."""
        precision = np.zeros(d)
        transform = self.transforms[y]
        by_variable = np.vecdot(transform.full_factor, transform.full_factor) / self.bandwidths[y] ** 2
        precision[transform.variables] = self.shrinkages[y] ** 2 * by_variable
        return precision


def carried_over(n_rows: int, n_read: int, n_relevant: int) -> float:
    """The factor by which bandwidths are smaller for all rows than for those that the search has read."""
    return float((n_rows / max(n_read, 1)) ** (-1.0 / (4.0 + n_relevant)))


@dataclass(frozen=True, eq=False)
class CompressionPlan:
    """What is learnt from a sample, before the other rows are read.

    Attributes
    ----------
    sample : rows of all classes on the scales of all members.
    found : the result of the search.
    kinds : of the scales of centroids; distances are measured on the first.
    members : how members are built.
    cells : of the compressed classes, by class number.
    points : which rows of the sample calibrate the pool.
    """

    sample: RowsInUnits
    found: Search
    kinds: Sequence[ScaleKind]
    members: Sequence[MemberPlan]
    cells: Mapping[int, Cells]
    points: Integers

    @classmethod
    def learn(
        cls,
        sample: RowsInUnits,
        sizes: Integers,
        max_rows: int,
        lapse: float,
        prior: Floats,
        random: np.random.RandomState,
        computation: Computation,
        *,
        empirical: bool,
    ) -> CompressionPlan:
        """Search members on a sample, and divide classes of more than `max_rows` rows into cells.

        `sizes` (n_classes,) are the numbers of all rows; the other parameters are those of `search.search`.
        """
        rows = sample.data
        found = search(sample, prior, lapse, random, computation, empirical=empirical)
        n_read = np.bincount(rows.codes[found.chosen], minlength=prior.size)
        points = _calibration_points(found.points, rows, sizes, max_rows)
        in_cells = np.isin(np.arange(len(rows.X)), points, invert=True)
        with threadpool_limits(1, user_api="blas"):
            plans = [
                partial(MemberPlan.learn, candidate, sample, sizes, n_read, prior, found.seed)
                for candidate in found.kept
            ]
            members = list(on_threads(plans, computation.n_jobs))
            kinds = list(dict.fromkeys([_COMPARED, *(member.kind.scale for member in members)]))
            scales = [sample.scales[kind] for kind in kinds]
            compressed = np.flatnonzero(sizes > max_rows).tolist()
            importance = _importance(members, found.weights, sample)
            divisions = []
            for y in compressed:
                inside = np.flatnonzero(in_cells & (rows.codes == y))
                data = rows.X[inside], rows.weights_of(inside), min(max_rows, inside.size)
                divisions.append(partial(Cells.learn, scales, *data, importance[y], found.seed))
            cells = dict(zip(compressed, on_threads(divisions, computation.n_jobs), strict=True))
        return cls(sample, found, kinds, members, cells, points)

    @property
    def rows(self) -> LabelledRows:
        """The rows of the sample."""
        return self.sample.data

    @property
    def is_compressed(self) -> Bools:
        """(n_sample,) whether a row of the sample is of a compressed class."""
        return np.isin(self.rows.codes, list(self.cells))

    @property
    def held_out(self) -> Integers:
        """Which rows of the sample are in no cell: calibration points of compressed classes."""
        held_out: Integers = self.points[self.is_compressed[self.points]]
        return held_out

    def build(self, centroids: Mapping[int, Centroids], n_rows: int) -> tuple[LabelledRows, Thinning, Pool]:
        """Build the pool from the centroids of the compressed classes; the table has `n_rows` rows.

        Returns
        -------
        data : rows that are nearest to the centres of their cells, and all rows of the other classes.
        thinning, pool : see there.
        """
        centroids = {y: of_class.filled() for y, of_class in centroids.items()}
        data, held_out = self._kept_rows(centroids)
        means = {y: CellMeans(of_class.means, of_class.counts) for y, of_class in centroids.items()}
        thinning = Thinning(held_out, [means.get(y) for y in range(data.labels.size)], self.kinds, n_rows)
        with threadpool_limits(1, user_api="blas"):
            return data, thinning, self._calibrated(data, centroids, thinning)

    def _kept_rows(self, centroids: Mapping[int, Centroids]) -> tuple[LabelledRows, LabelledRows]:
        """Rows behind the centroids and rows of other classes, and rows that are held out."""
        held_out = self.rows.take(self.held_out)
        others = np.flatnonzero(~self.is_compressed)  # of which the sample has all rows
        rows = self.rows.take(others[np.argsort(self.rows.numbers[others])])
        rows = replace(rows, weights=rows.all_weights, counts=self.rows.counts)
        first_unit = 1 + max(held_out.units.max(initial=0), rows.units.max(initial=0))
        for y, of_class in centroids.items():
            nearest = replace(
                rows,
                X=of_class.X,
                codes=np.full(of_class.numbers.size, y),
                weights=of_class.weights,
                numbers=of_class.numbers,
                units=first_unit + of_class.numbers,  # which no other row has
            )
            rows = rows.extended(nearest)
        largest = rows.all_weights.max()
        return (
            replace(rows, weights=rows.all_weights / largest),
            replace(held_out, weights=held_out.all_weights / largest, counts=rows.counts),
        )

    def _member(self, plan: MemberPlan, data: LabelledRows, centroids: Mapping[int, Centroids]) -> Member:
        """Put kernels on centroids, and on the rows of classes that are not compressed."""
        scale, position = self.sample.scales[plan.kind.scale], self.kinds.index(plan.kind.scale)
        classes = []
        for y, of_class in enumerate(data.members()):
            weights = data.all_weights[of_class]
            kernel = plan.transforms[y], plan.bandwidths[y], plan.shrinkages[y]
            if y in centroids:
                means, spread = centroids[y].means[position], centroids[y].spread(position)
                classes.append(Mixture.of_representatives(means, weights, spread, *kernel))
            else:
                classes.append(Mixture(scale.transform(data.X[of_class]), weights, *kernel))
        return Member(plan.kind.identifier, scale, classes)

    def _calibrated(self, data: LabelledRows, centroids: Mapping[int, Centroids], thinning: Thinning) -> Pool:
        """Fit temperatures and weights to rows that the members have not learnt from, and score the pool."""
        found = self.found
        rows = data.extended(thinning.held_out)
        order = np.argsort(rows.numbers)
        points = order[np.searchsorted(rows.numbers, self.rows.numbers[self.points], sorter=order)]
        fold_plan = found.plan.restricted_to(np.searchsorted(found.points, self.points))
        candidates = []
        for plan in self.members:
            log_density = np.empty((points.size, fold_plan.prior.size))
            # Transforms of the whole sample have learnt from the points: noise would seem predictable.
            for inside, others, _ in next(
                iter(folds_of(self.sample, fold_plan, [plan.kind], self.sample).values())
            ):
                learnt = plan.kind.learn(others, fold_plan.prior, found.seed)
                member = self._member(replace(plan, transforms=learnt), data, centroids)
                left_out = points[inside]
                log_density[inside] = thinning.log_densities_without(member, data, left_out, rows.X[left_out])
            candidates.append(Candidate.calibrate(plan.kind, log_density[np.newaxis], fold_plan))
        log_weights = fit_weights(candidates, fold_plan)
        kept = heaviest_first(candidates, log_weights)
        return make_pool(
            [self._member(self.members[m], data, centroids) for m in kept],
            [candidates[m] for m in kept],
            np.exp(log_weights[kept]),
            fold_plan,
            points,
            judge(candidates, fold_plan, found.parts, empirical=found.empirical),
            self._table(candidates, log_weights),
        )

    def _table(self, candidates: Sequence[Candidate], log_weights: Floats) -> dict[str, Floats]:
        """The table of the search with the final weights."""
        table = {name: column.copy() for name, column in self.found.table.items()}
        kept = list(self.found.order)
        table["weight"][kept] = np.exp(log_weights)
        table["share"][kept] = shares_of(candidates, log_weights)
        table["temperature"][kept] = np.exp([-candidate.log_power for candidate in candidates])
        return table


def compress_rows(
    data: LabelledRows, plan: CompressionPlan, computation: Computation
) -> dict[int, Centroids]:
    """Average all rows of compressed classes that are not held out, part by part."""
    in_cells = np.isin(data.units, plan.rows.units[plan.held_out], invert=True)
    parts = []
    for y in plan.cells:
        inside = np.flatnonzero(in_cells & (data.codes == y))
        parts += [(y, inside[first : first + PART_ROWS]) for first in range(0, inside.size, PART_ROWS)]

    def average(y: int, part: Integers) -> tuple[int, Centroids]:
        return y, plan.cells[y].average(data.X[part], data.weights_of(part), data.numbers[part])

    centroids: dict[int, Centroids] = {}
    with (
        threadpool_limits(1, user_api="blas"),
        progress(len(parts), "Cells", computation.verbose) as advance,
    ):
        for y, part in on_threads([partial(average, *part) for part in parts], computation.n_jobs):
            centroids[y] = Centroids.merge([centroids[y], part]) if y in centroids else part
            advance(1)
    return centroids


def _importance(members: Sequence[MemberPlan], weights: Floats, sample: RowsInUnits) -> Floats:
    """Weights (n_classes, n_features) of squared differences: precisions of all members on one scale."""
    d = sample.data.X.shape[1]
    deviation = sample.scaled[_COMPARED].std(axis=0)
    importance = np.zeros((sample.data.labels.size, d))
    for member, weight in zip(members, weights.tolist(), strict=True):
        of_member = sample.scaled[member.kind.scale].std(axis=0)
        ratio = np.divide(of_member, deviation, out=np.zeros(d), where=deviation > 0.0)
        for y in range(len(importance)):
            importance[y] += weight * ratio**2 * member.precision(y, d)
    return importance


def _calibration_points(points: Integers, rows: LabelledRows, sizes: Integers, max_rows: int) -> Integers:
    """Which rows of the sample calibrate the pool: of compressed classes, a small share of their rows."""
    kept = []
    for y, size in enumerate(sizes.tolist()):
        of_class = points[rows.codes[points] == y]
        kept.append(of_class[: max(int(_HELD_OUT * size), 1)] if size > max_rows else of_class)
    return np.concatenate(kept)

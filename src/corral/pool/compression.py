r"""A pool of many rows: chosen on a sample, its classes represented by few averages of all rows.

Units, members, their frames and what marks the classes are learnt from a sample of the rows, which has the
same rows however the table is ordered or parted. All rows then go into the cells of their classes, once.

**Bandwidths.** The search finds the bandwidth h of a member for the :math:`n_y` rows of a class that it
reads. For all :math:`N_y` rows it is carried over by the rate of kernel densities with r relevant variables,

.. math:: h_y = h \, (N_y / n_y)^{-1 / (4 + r)},

where r is the number of coordinates in which the class varies by more than h. A bandwidth of 1, at which a
member is a normal density, stays.

**Calibration.** Rows that the search has left out are in no cell. At the end the members' temperatures and
weights are fitted again to these rows, by the densities that the pool has then, with frames that are learnt
without the fold of the row; the scores are those of these densities. Typicality and sets of labels are
measured by the same rows. Rows of classes that are not thinned leave themselves out as always.

Rows with gaps or levels have no averages, and rows of groups can only be left out with their groups: see
`subsampled`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import Scale, ScaleKind
from corral.parallel import Computation, on_threads, progress
from corral.pool.centroids import Cells, CellSummary, Representatives
from corral.pool.cross_fitting import Candidate, folds_of
from corral.pool.densities import Mixture
from corral.pool.fold_plan import Trial, make_target
from corral.pool.members import AnyKind, Member
from corral.pool.model import CellMeans, CrossFitted, Pool, Thinning
from corral.pool.scaled_rows import RowsInUnits
from corral.pool.search import Search, search
from corral.pool.transforms import ClassTransform
from corral.pool.weights import fit_weights, heaviest_first, judge, score_points, shares_of

# At most so large a share of the rows of a thinned class is held out of its cells.
_HELD_OUT = 0.2

# Rows that are put into cells at once.
PART_ROWS = 50_000

# The units in which rows are compared.
_COMPARED: ScaleKind = "score"


class Compressed(NamedTuple):
    """All rows of a table, those of thinned classes in cells.

    Attributes
    ----------
    summaries : of the cells of each class, None for one that is not thinned.
    rest : all rows of the classes that are not thinned.
    """

    summaries: Sequence[CellSummary | None]
    rest: LabelledRows


@dataclass(frozen=True, eq=False)
class MemberPlan:
    """How a member is made of representatives.

    Attributes
    ----------
    kind : the way it is made.
    frames : of the classes.
    bandwidths, pulls : (n_classes,) of their kernels.
    """

    kind: AnyKind
    frames: Sequence[ClassTransform]
    bandwidths: Floats
    pulls: Floats

    @classmethod
    def learn(
        cls,
        candidate: Candidate,
        whole: RowsInUnits,
        sizes: Integers,
        read: Integers,
        prior: Floats,
        seed: int,
    ) -> MemberPlan:
        """Learn frames from a sample, and carry the bandwidth over.

        Parameters
        ----------
        candidate : what the search has found.
        whole : the sample.
        sizes, read : (n_classes,) how many rows the classes have, and how many of them the search has read.
        prior : (n_classes,)
        seed : of the rows by which bandwidths are refined.
        """
        frames = candidate.kind.learn(whole, prior, seed)
        scaled = whole.scaled[candidate.kind.scale]
        bandwidths, pulls = np.full(sizes.size, candidate.bandwidth), np.full(sizes.size, candidate.shrinkage)
        for y, (frame, of_class) in enumerate(zip(frames, whole.data.members(), strict=True)):
            if candidate.shrinkage == 0.0 or not of_class.size:
                continue
            varies = frame.coordinates(frame.centered(scaled[of_class])).std(axis=0) > candidate.bandwidth
            bandwidths[y] *= carried_over(int(sizes[y]), int(read[y]), int(varies.sum()))
            if candidate.shrinkage < 1.0:
                pulls[y] = np.sqrt(1.0 - bandwidths[y] ** 2)
        return cls(candidate.kind, frames, bandwidths, pulls)

    def precision(self, y: int, d: int) -> Floats:
        """Inverse squares (d,) of the bandwidths of a class in each variable, 0 where it has one centre."""
        precision = np.zeros(d)
        frame = self.frames[y]
        by_variable = np.vecdot(frame.full_factor, frame.full_factor) / self.bandwidths[y] ** 2
        precision[frame.variables] = self.pulls[y] ** 2 * by_variable
        return precision


def carried_over(n_rows: int, n_read: int, n_relevant: int) -> float:
    """The factor by which bandwidths are smaller for all rows than for those that the search has read."""
    return float((n_rows / max(n_read, 1)) ** (-1.0 / (4.0 + n_relevant)))


@dataclass(frozen=True, eq=False)
class ThinningPlan:
    """All that is learnt from a sample, before the other rows are looked at.

    Attributes
    ----------
    whole : the rows of the sample, in the units of all kinds of members.
    found : what the search has found.
    kinds : the units of representatives, first those in which rows are compared.
    members : how members are made.
    importance : for each class (n_features,) weights of squared differences.
    cells : of each class, None for one that is not thinned.
    points : which rows of the sample the pool is calibrated by.
    """

    whole: RowsInUnits
    found: Search
    kinds: Sequence[ScaleKind]
    members: Sequence[MemberPlan]
    importance: Sequence[Floats]
    cells: Sequence[Cells | None]
    points: Integers

    @classmethod
    def learn(
        cls,
        whole: RowsInUnits,
        sizes: Integers,
        max_rows: int,
        lapse: float,
        prior: Floats,
        random: np.random.RandomState,
        computation: Computation,
        *,
        empirical: bool,
    ) -> ThinningPlan:
        """Search members on a sample, and divide classes of more than `max_rows` rows into cells.

        Parameters
        ----------
        whole : rows of all classes, the sample.
        sizes : (n_classes,) how many rows the classes have altogether.
        max_rows : how many representatives a class may have.
        lapse : share of probabilities given to the prior.
        prior, random, computation, empirical : as in `search.fit_pool`.
        """
        sample = whole.data
        found = search(whole, prior, lapse, random, computation, empirical=empirical)
        read = np.bincount(sample.codes[found.chosen], minlength=prior.size)
        with threadpool_limits(1, user_api="blas"):
            plans = [
                partial(MemberPlan.learn, candidate, whole, sizes, read, prior, found.seed)
                for candidate in found.kept
            ]
            members = list(on_threads(plans, computation.n_jobs))
            importance = _importance(members, found.weights, whole)
            points = _calibration_points(found.points, sample, sizes, max_rows)
            in_cells = np.isin(np.arange(len(sample.X)), points, invert=True)
            divisions = [
                partial(
                    _learn_cells,
                    whole,
                    of_class[in_cells[of_class]],
                    max_rows if size > max_rows else 0,
                    weight,
                    found.seed,
                )
                for of_class, weight, size in zip(sample.members(), importance, sizes.tolist(), strict=True)
            ]
            cells = list(on_threads(divisions, computation.n_jobs))
        kinds = list(dict.fromkeys([_COMPARED, *(member.kind.scale for member in members)]))
        return cls(whole, found, kinds, members, importance, cells, points)

    @property
    def sample(self) -> LabelledRows:
        """The rows of the sample."""
        return self.whole.data

    @property
    def scales(self) -> Mapping[ScaleKind, Scale]:
        """Units by their kinds."""
        return self.whole.scales

    @property
    def thinned(self) -> Bools:
        """(n_classes,) which classes are thinned."""
        return np.array([cells is not None for cells in self.cells])

    @property
    def held_out(self) -> Integers:
        """Which rows of the sample are in no cell: points of thinned classes."""
        held_out: Integers = self.points[self.thinned[self.sample.codes[self.points]]]
        return held_out

    def summarise(self, y: int, X: Floats, weights: Floats | None, numbers: Integers) -> CellSummary:
        """Put rows of a thinned class into its cells; those that are held out must not be among them."""
        cells = self.cells[y]
        assert cells is not None
        return cells.summarise([self.scales[kind].transform(X) for kind in self.kinds], weights, X, numbers)

    def conclude(self, compressed: Compressed, n_rows: int) -> tuple[LabelledRows, Thinning, Pool]:
        """Build the pool of all rows; `n_rows` training rows were given.

        Returns
        -------
        data : rows that are nearest to the centres of their cells, and the rest.
        thinning, pool : see there.
        """
        summaries = [None if summary is None else summary.filled() for summary in compressed.summaries]
        rest = replace(compressed.rest, counts=self.sample.counts)
        data, held_out = self._kept_rows(summaries, rest)
        representatives = [None if summary is None else summary.averages for summary in summaries]
        cells = [None if of is None else CellMeans(of.centres, of.counts) for of in representatives]
        thinning = Thinning(held_out, cells, self.kinds, n_rows)
        with threadpool_limits(1, user_api="blas"):
            pool = self._calibrated(data, representatives, thinning)
        return data, thinning, pool

    def _kept_rows(
        self, summaries: Sequence[CellSummary | None], rest: LabelledRows
    ) -> tuple[LabelledRows, LabelledRows]:
        """Rows behind representatives and rows of other classes, and rows that are held out."""
        held_out = self.sample.take(self.held_out)
        others = 1 + max(held_out.units.max(initial=0), rest.units.max(initial=0))
        rows = replace(rest, weights=rest.all_weights)
        for y, summary in enumerate(summaries):
            if summary is None:
                continue
            n = summary.numbers.size
            rows = rows.extended(
                replace(
                    rest,
                    X=summary.X,
                    codes=np.full(n, y),
                    weights=summary.averages.weights,
                    numbers=summary.numbers,
                    units=others + summary.numbers,  # which no other row has
                )
            )
        assert rows.weights is not None
        largest = rows.weights.max()
        return (
            replace(rows, weights=rows.weights / largest),
            replace(held_out, weights=held_out.all_weights / largest, counts=rest.counts),
        )

    def _build(
        self, plan: MemberPlan, data: LabelledRows, representatives: Sequence[Representatives | None]
    ) -> Member:
        """Put kernels on representatives, and on the rows of classes that are not thinned."""
        scale, of_units = self.scales[plan.kind.scale], self.kinds.index(plan.kind.scale)
        classes = []
        for y, (of_class, thinned) in enumerate(zip(data.members(), representatives, strict=True)):
            weights, kernel = data.weights_of(of_class), (plan.frames[y], plan.bandwidths[y], plan.pulls[y])
            if thinned is None:
                classes.append(Mixture(scale.transform(data.X[of_class]), weights, *kernel))
            else:
                assert weights is not None
                centres, spread = thinned.centres[of_units], thinned.spreads[of_units]
                classes.append(Mixture.of_representatives(centres, weights, spread, *kernel))
        return Member(plan.kind.identifier, scale, classes)

    def _calibrated(
        self, data: LabelledRows, representatives: Sequence[Representatives | None], thinning: Thinning
    ) -> Pool:
        """Fit temperatures and weights to rows that members do not know, and judge the pool by them."""
        found = self.found
        members = [self._build(plan, data, representatives) for plan in self.members]
        points = _positions(self.sample, self.points, data, thinning.held_out)
        trial = found.trial.restricted_to(np.searchsorted(found.points, self.points))
        target = make_target(self.sample, self.points, trial.prior)
        candidates = []
        for plan in self.members:
            log_density = self._cross_fitted(plan, data, representatives, thinning, points, trial)
            candidates.append(Candidate.calibrate(plan.kind, log_density[np.newaxis], target))
        log_weights = fit_weights(candidates, target)
        judged = judge(candidates, trial, target, found.parts, empirical=found.empirical)
        order = heaviest_first(candidates, log_weights)
        sorted_points = np.argsort(points)
        return Pool(
            members=[members[m] for m in order],
            weights=np.exp(log_weights[order]),
            temperatures=np.exp([-candidates[m].log_power for m in order]),
            prior=found.trial.prior,
            lapse=found.trial.lapse,
            scores=score_points(judged.log_proba, trial),
            table=self._table(candidates, log_weights),
            cross_fitted=CrossFitted(
                points[sorted_points],
                np.array([candidates[m].log_density[sorted_points] for m in order]),
                np.array([candidates[m].kind.refined for m in order]),
                judged.log_density[sorted_points],
            ),
        )

    def _cross_fitted(
        self,
        plan: MemberPlan,
        data: LabelledRows,
        representatives: Sequence[Representatives | None],
        thinning: Thinning,
        points: Integers,
        trial: Trial,
    ) -> Floats:
        """Log densities (n_points, n_classes) of points by a member whose frames do not know their folds.

        With frames of the whole sample, which have learnt from the points, noise seems to be predictable.
        """
        X = data.extended(thinning.held_out).X
        log_density = np.empty((points.size, trial.prior.size))
        for inside, others, _ in next(iter(folds_of(self.whole, trial, [plan.kind], self.whole).values())):
            frames = plan.kind.learn(others, trial.prior, self.found.seed)
            member = self._build(replace(plan, frames=frames), data, representatives)
            at = points[inside]
            log_density[inside] = thinning.log_densities_without(member, data, at, X[at])
        return log_density

    def _table(self, candidates: Sequence[Candidate], log_weights: Floats) -> dict[str, Floats]:
        """The table of the search, with the weights that the pool has at last."""
        table = {name: column.copy() for name, column in self.found.table.items()}
        kept = list(self.found.order)
        table["weight"][kept] = np.exp(log_weights)
        table["share"][kept] = shares_of(candidates, log_weights)
        table["temperature"][kept] = np.exp([-candidate.log_power for candidate in candidates])
        return table


def compress_rows(data: LabelledRows, plan: ThinningPlan, computation: Computation) -> Compressed:
    """Put all rows of thinned classes into cells, part by part."""
    is_held_out = np.isin(data.units, plan.sample.units[plan.held_out])
    in_cells = [np.flatnonzero((data.codes == y) & ~is_held_out) for y in range(len(plan.cells))]
    parts = [
        (y, in_cells[y][first : first + PART_ROWS])
        for y in np.flatnonzero(plan.thinned).tolist()
        for first in range(0, in_cells[y].size, PART_ROWS)
    ]

    def summarise(y: int, at: Integers) -> tuple[int, CellSummary]:
        return y, plan.summarise(y, data.X[at], data.weights_of(at), data.numbers[at])

    by_class: list[CellSummary | None] = [None] * len(plan.cells)
    with (
        threadpool_limits(1, user_api="blas"),
        progress(len(parts), "Cells", computation.verbose) as advance,
    ):
        for y, summary in on_threads([partial(summarise, *part) for part in parts], computation.n_jobs):
            before = by_class[y]
            by_class[y] = summary if before is None else CellSummary.merge([before, summary])
            advance(1)
    rest = data.take(np.flatnonzero(~plan.thinned[data.codes]))
    return Compressed(by_class, rest)


def _importance(members: Sequence[MemberPlan], weights: Floats, whole: RowsInUnits) -> list[Floats]:
    """Weights (n_features,) of squared differences in each class, as all members together see them."""
    d = whole.data.X.shape[1]
    deviation = whole.scaled[_COMPARED].std(axis=0)
    found = [np.zeros(d) for _ in range(whole.data.labels.size)]
    for member, weight in zip(members, weights.tolist(), strict=True):
        ratio = np.divide(
            whole.scaled[member.kind.scale].std(axis=0), deviation, out=np.zeros(d), where=deviation > 0.0
        )
        for y in range(len(found)):
            found[y] += weight * ratio**2 * member.precision(y, d)
    return found


def _calibration_points(points: Integers, sample: LabelledRows, sizes: Integers, max_rows: int) -> Integers:
    """Which rows of the sample the pool is calibrated by: of thinned classes, a small share of their rows."""
    kept = []
    for y, size in enumerate(sizes.tolist()):
        of_class = points[sample.codes[points] == y]
        kept.append(of_class[: max(int(_HELD_OUT * size), 1)] if size > max_rows else of_class)
    return np.concatenate(kept)


def _learn_cells(
    whole: RowsInUnits, at: Integers, n_cells: int, importance: Floats, seed: int
) -> Cells | None:
    """Divide some rows of a class into cells; None if it shall have none."""
    if not n_cells:
        return None
    weights = whole.data.weights_of(at)
    return Cells.learn(whole.scaled[_COMPARED][at], weights, min(n_cells, at.size), importance, seed)


def _positions(
    sample: LabelledRows, points: Integers, data: LabelledRows, held_out: LabelledRows
) -> Integers:
    """Where points of the sample are among rows of the pool and, behind these, those that are held out."""
    numbers = np.concatenate([data.numbers, held_out.numbers])
    order = np.argsort(numbers)
    found: Integers = order[np.searchsorted(numbers[order], sample.numbers[points])]
    return found

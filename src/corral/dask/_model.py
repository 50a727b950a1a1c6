"""The fitted model where the rows of each class lie in blocks on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corral._core.density import ClassDensity
from corral._core.model import ClassBandwidths, FittedModel, RodeoModel
from corral._core.parallel import progress
from corral._core.relevance import some_rows
from corral._core.rows import ClassRows, LabelledRows, Measure, TrainingRows
from corral._core.scale import Scale, largest_values, learn_scale, range_units, standard_units
from corral._core.settings import Computation, Floats, Integers, ModelSettings, ScaleKind, Update
from corral.dask._reductions import Blocks, Queries, compute, descend, estimates, keep, tree, within_cluster
from corral.dask._rows import (
    Overview,
    Pieces,
    Source,
    arranged,
    class_blocks,
    merge_weights,
    part,
    power_sums,
    together,
    weight_sums,
)

# What the queries that share a reduction may take, well below the 10 MB of a graph from which on dask warns;
# but never fewer queries than the least. A sweep sends 25 bytes for each variable and class, else it is 8.
_BYTES, _LEAST = 1 << 22, 64


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterModel(RodeoModel):
    """What a fit has learnt of rows on a cluster; the rows of its densities are `Blocks`.

    Attributes
    ----------
    client : the cluster that keeps the rows; None for threads of this process, or in a copy.
    sources : where the rows come from; None in a copy.
    """

    client: Any
    sources: list[Source] | None

    @classmethod
    def learn(
        cls,
        sources: list[Source],
        of_all: Overview,
        prior: Floats,
        settings: ModelSettings,
        random: np.random.RandomState,
        computation: Computation,
        *,
        client: Any,
        block_rows: int,
        n_points: int,
        persist: bool,
    ) -> ClusterModel:
        """Put the rows of each class into blocks and learn what `learn_model` learns from rows at hand."""
        sizes = of_all.n_rows.sum(axis=0)
        raw = class_blocks(sources, of_all, block_rows)
        units = _learn_units(settings.scale, raw, of_all, client)
        measures = _measures(raw, sizes, client, weighted=sources[0].weighted)
        tasks: Sequence[list[Any]] = [
            [arranged(units, measure, *pieces) for pieces in of_class]
            for of_class, measure in zip(raw, measures, strict=True)
        ]
        if persist:
            tasks = keep(tasks, client)
        rows = [Blocks(blocks, block_rows, m) for blocks, m in zip(tasks, measures, strict=True)]
        grids = [settings.rodeo.grid(measure.n) for measure in measures]
        points = [some_rows(int(size), n_points, random) for size in sizes]
        means = _mean_bandwidths(rows, grids, points, settings.rodeo.update, client, computation)
        # Units keep the order of numbers, so the bounds of scaled columns are the scaled bounds.
        spread = np.ptp(units.transform(np.stack([of_all.low, of_all.high])), axis=0)
        initial = np.array([grid[0] for grid in grids])
        bandwidths = ClassBandwidths.collect(initial, means, spread)
        relevant = bandwidths.relevant(settings.cutpoint)
        plans = bandwidths.plans(settings.bandwidth, settings.features, relevant)
        densities: list[Any] = [
            ClassDensity(
                of_class if plan.variables.size == spread.size else of_class.select(plan.variables),  # type: ignore[arg-type]
                grid,
                plan,
            )
            for of_class, grid, plan in zip(rows, grids, plans, strict=True)
        ]
        return cls(
            settings=settings,
            labels=of_all.labels,
            counts=of_all.totals,
            prior=prior,
            scale=units,
            densities=densities,
            bandwidths=bandwidths,
            relevant=relevant,
            n_copies=0,
            client=client,
            sources=sources,
        )

    def estimate(
        self, X: Floats, computation: Computation, *, bandwidths: bool = False
    ) -> tuple[Floats, Floats]:
        """Log densities (n_samples, n_classes) in scaled units and, if asked for, their bandwidths."""
        scaled = self.scale.transform(X)
        n_classes, d = self.bandwidths.means.shape
        log_density = np.empty((len(scaled), n_classes))
        h = np.empty((len(scaled) if bandwidths else 0, n_classes, d))
        title = "Rodeo" if self.settings.bandwidth == "local" else "Kernel sums"
        with (
            within_cluster(self.client) as client,
            progress(len(scaled), title, computation.verbose) as advance,
        ):
            for batch in _batches(len(scaled), self._payload()):
                found = estimates(self.densities, scaled[batch], self.settings.rodeo.update, client)
                for a, (log_density_of_class, h_of_class) in enumerate(found):
                    log_density[batch, a] = log_density_of_class
                    if bandwidths:
                        h[batch, a] = h_of_class
                advance(len(scaled[batch]))
        return log_density, h

    def to_local(self) -> FittedModel:
        """Bring all rows to this process."""
        if self.sources is None:
            raise RuntimeError("a copy does not know the source of the rows: call to_local of the original.")
        parts = [rows for rows in compute([part(s) for s in self.sources], self.client) if len(rows.X)]
        rows = together(parts)
        training = TrainingRows(rows.X, rows.y, rows.weights)
        data = LabelledRows.sort(training, find_copies=lambda X, codes: None)
        densities = [
            ClassDensity.build(rows, density.grid, density.plan)
            for rows, density in zip(data.arrange(self.scale.transform(data.X)), self.densities, strict=True)
        ]
        return FittedModel(
            settings=self.settings,
            labels=data.labels,
            counts=data.counts,
            prior=self.prior,
            scale=self.scale,
            densities=densities,
            bandwidths=self.bandwidths,
            relevant=self.relevant,
            n_copies=0,
            training=training,
            data=data,
            min_effect=self.settings.min_effect,
        )

    def _payload(self) -> int:
        """Bytes that a query sends in one reduction."""
        if self.settings.bandwidth != "local":
            return 8 * int(self.relevant.shape[1])
        several = any(len(density.rows.blocks) > 1 for density in self.densities)
        return (25 if several else 8) * int(self.relevant.size)


def _measures(raw: list[list[Pieces]], sizes: Integers, client: Any, *, weighted: bool) -> list[Measure]:
    """What `Measure.of` finds for rows at hand; sums over blocks, since these are always the same."""
    if not weighted:
        return [Measure.of(int(n), None) for n in sizes]
    tasks = [tree([weight_sums(*pieces) for pieces in of_class], merge_weights) for of_class in raw]
    return [sums.measure() for sums in compute(tasks, client)]


def _learn_units(kind: ScaleKind, raw: list[list[Pieces]], of_all: Overview, client: Any) -> Scale:
    """What `learn_scale` learns from rows at hand."""
    low, high = of_all.low, of_all.high
    if kind == "range":
        return range_units(low, high)
    if kind is None:
        return learn_scale(np.empty((0, low.size)), None, None)
    largest = largest_values(low, high)

    def mean(center: Floats, power: int) -> Floats:
        sums = [power_sums(largest, center, power, *pieces) for of_class in raw for pieces in of_class]
        of_rows: Floats = compute([tree(sums, sum)], client)[0] / of_all.totals.sum()
        return of_rows

    center = mean(np.zeros_like(low), 1)
    return standard_units(low, high, center, mean(center, 2))


def _mean_bandwidths(
    rows: list[Blocks],
    grids: list[Floats],
    points: list[Integers],
    update: Update,
    client: Any,
    computation: Computation,
) -> Floats:
    """What `mean_bandwidths` computes for rows at hand, at the same points."""
    asked = [of_class.ask(_rows_at, own=at) for of_class, at in zip(rows, points, strict=True)]
    found = [
        [np.concatenate(arrays) for arrays in zip(*of_class, strict=True)]
        for of_class in compute(asked, client)
    ]
    local: list[list[Floats]] = [[] for _ in rows]
    payload = 25 * len(rows) * found[0][0].shape[1]
    with progress(sum(at.size for at in points), "Leave-one-out", computation.verbose) as advance:
        for batch in _batches(max(at.size for at in points), payload):
            busy = [k for k, at in enumerate(points) if at[batch].size]
            start = []
            for k in busy:
                x, weight = found[k]
                left = rows[k].measure.left(weight[batch])
                start.append(Queries(rows[k], grids[k], x[batch], left, points[k][batch]))
            for k, (_, steps) in zip(busy, descend(start, update, client), strict=True):
                local[k].append(grids[k][steps])
                advance(len(steps))
    return np.array(
        [
            np.average(np.concatenate(h), axis=0, weights=weight)
            for h, (_, weight) in zip(local, found, strict=True)
        ]
    )


def _batches(n: int, payload: int) -> list[slice]:
    """Cut queries, each of which sends so many bytes, into batches."""
    size = max(_LEAST, _BYTES // payload)
    return [slice(first, first + size) for first in range(0, n, size)]


def _rows_at(rows: ClassRows, own: Integers) -> tuple[Floats, Floats]:
    """Scaled rows of a block and their weights; -1 is a row of another block."""
    inside = own[own >= 0]
    return rows.take(inside), rows.weight(inside)

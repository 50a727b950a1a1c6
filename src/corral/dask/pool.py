"""The pool of a search whose rows lie on a cluster: learnt from a sample, its classes from all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from threadpoolctl import threadpool_limits

from corral.array_types import Floats, Integers
from corral.dask.reductions import compute, shared, tree
from corral.dask.rows import Overview, Part, Pieces, Source, class_blocks, together
from corral.dask.sample import draw_rows
from corral.dask.units import learn_units
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.scaling import Scale, blurred_range
from corral.data.subsample import n_knots, sample_sizes
from corral.estimators.validation import check_groups, refuse_groups_of_whole_classes
from corral.markers.contrast import learn_contrast
from corral.parallel import Computation
from corral.pool.centroids import Cells, CellSummary
from corral.pool.compression import ThinningPlan
from corral.pool.member_specs import RowsInUnits, wanted_units
from corral.pool.model import Pool, PoolModel, Thinning
from corral.pool.subsampled import pool_of_drawn_rows


class Asked(NamedTuple):
    """What a search on a cluster is asked for.

    Attributes
    ----------
    prior : (n_classes,)
    empirical : whether the prior was estimated from the rows.
    min_effect : least difference that makes a variable describe a class.
    levels : (n_features,) numbers of levels, 0 for measurements; None if all are.
    max_rows : how many representatives a class may have.
    block_rows : how many rows of a class are put into cells at once.
    """

    prior: Floats
    empirical: bool
    min_effect: float
    levels: Integers | None
    max_rows: int
    block_rows: int


def all_rows(
    sources: Sequence[Source], of_all: Overview, levels: Integers | None, client: Any
) -> TrainingRows:
    """Bring all rows that count to this process."""
    drawn = draw_rows(sources, of_all, of_all.n_rows.sum(axis=0), 0, client)
    return _training(drawn.take(np.argsort(drawn.numbers)), levels)


def learn_cluster_pool(
    sources: Sequence[Source],
    of_all: Overview,
    asked: Asked,
    random: np.random.RandomState,
    computation: Computation,
    client: Any,
) -> PoolModel:
    """Learn a pool of classes some of which have more rows than they may have representatives.

    As `large.learn_large_pool` does, but that units are those of all rows.
    """
    n_rows = of_all.n_rows.sum(axis=0)
    sizes = sample_sizes(n_rows, asked.max_rows)
    drawn = draw_rows(sources, of_all, sizes, int(random.randint(2**31 - 1)), client)
    scales = learn_units(
        sources, of_all, drawn.X, asked.levels, wanted_units(), n_knots(len(drawn.X)), client
    )
    is_general = asked.levels is not None or of_all.has_gaps or sources[0].grouped
    if not is_general:
        scales["range"] = blurred_range(drawn.X)  # which tells of no row
    training = _training(drawn, asked.levels)
    sample = LabelledRows.sort(training)
    refuse_groups_of_whole_classes(training, sample)
    sample = replace(sample, numbers=drawn.numbers[sample.numbers], counts=of_all.totals)
    whole = RowsInUnits.in_units(sample, scales)
    differences = learn_contrast(sample, asked.min_effect)
    if is_general:
        data, thinning, pool = pool_of_drawn_rows(
            whole,
            n_rows,
            asked.max_rows,
            asked.prior,
            of_all.n_given,
            random,
            computation,
            empirical=asked.empirical,
        )
    else:
        plan = _plan(whole, n_rows, asked, random, computation)
        data, thinning, pool = _pool_of_averages(plan, drawn, sources, of_all, asked.block_rows, client)
    kept = data.extended(thinning.held_out)
    return PoolModel(
        labels=of_all.labels,
        counts=of_all.totals,
        prior=asked.prior,
        n_copies=sample.n_copies,
        training=TrainingRows(
            kept.X,
            kept.labels[kept.codes],
            kept.weights,
            kept.levels,
            kept.units if kept.grouped else None,
        ),
        data=data,
        min_effect=asked.min_effect,
        learnt_contrast=differences,
        pool=pool,
        thinning=thinning,
    )


def _training(rows: Part, levels: Integers | None) -> TrainingRows:
    return TrainingRows(rows.X, rows.y, rows.weights, levels, check_groups(rows.groups, len(rows.X)))


def _plan(
    sample: RowsInUnits,
    n_rows: Integers,
    asked: Asked,
    random: np.random.RandomState,
    computation: Computation,
) -> ThinningPlan:
    """Search on a sample of classes that have so many rows."""
    lapse = 1.0 / (n_rows.sum() * sample.data.n / len(sample.data.X) + 2.0)
    return ThinningPlan.learn(
        sample, n_rows, asked.max_rows, asked.prior, lapse, random, computation, empirical=asked.empirical
    )


def _pool_of_averages(
    plan: ThinningPlan,
    drawn: Part,
    sources: Sequence[Source],
    of_all: Overview,
    block_rows: int,
    client: Any,
) -> tuple[LabelledRows, Thinning, Pool]:
    """Put all rows of large classes into cells; `drawn` is the sample before copies are merged."""
    sample = plan.sample
    row_of_sample = np.arange(len(drawn.X)) if sample.copies is None else sample.copies
    held_out = drawn.numbers[np.isin(row_of_sample, sample.units[plan.held_out])]
    given = len(drawn.X) if drawn.weights is None else drawn.weights.sum()
    heaviest = given / (len(sample.X) if sample.weights is None else sample.weights.sum())
    blocks = class_blocks(sources, of_all, block_rows)
    summaries = _summarise(plan, blocks, held_out, heaviest, client)
    rest = replace(sample.take(np.flatnonzero(~plan.thinned[sample.codes])), counts=of_all.totals)
    return plan.conclude(summaries, rest, of_all.n_given)


def _summarise(
    plan: ThinningPlan, blocks: list[list[Pieces]], held_out: Integers, heaviest: float, client: Any
) -> list[CellSummary | None]:
    """Put all rows of thinned classes into cells, block by block."""
    scales = shared([plan.scales[kind] for kind in plan.kinds])
    left_aside = shared(held_out)
    tasks = [
        None
        if cells is None
        else tree(
            [_summarised(sent, scales, left_aside, heaviest, *pieces) for pieces in of_class],
            CellSummary.merge,
        )
        for of_class, cells, sent in zip(blocks, plan.cells, map(shared, plan.cells), strict=True)
    ]
    return compute(tasks, client)


@delayed
def _summarised(
    cells: Cells, scales: list[Scale], held_out: Integers, heaviest: float, *pieces: Part
) -> CellSummary:
    rows = together(pieces)
    rows = rows.take(~np.isin(rows.numbers, held_out))
    weights = None if rows.weights is None else rows.weights / heaviest
    with threadpool_limits(1, user_api="blas"):  # so that products have the same bits on any worker
        return cells.summarise([scale.transform(rows.X) for scale in scales], weights, rows.X, rows.numbers)

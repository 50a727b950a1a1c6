"""The pool of a search whose rows lie on a cluster: learnt from a sample, its classes from all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from threadpoolctl import threadpool_limits

from corral._core.kinds import RowsInUnits, wanted_units
from corral._core.large import ThinningPlan, n_knots, sample_sizes
from corral._core.model import learn_contrast
from corral._core.pool import PoolModel
from corral._core.rows import LabelledRows, TrainingRows
from corral._core.scale import Scale, blurred_range
from corral._core.search import learn_pool
from corral._core.settings import Computation, Floats, Integers
from corral._core.thinning import Cells, CellSummary
from corral._estimators.validation import check_groups, refuse_groups_of_whole_classes
from corral.dask._reductions import compute, shared, tree
from corral.dask._rows import Overview, Part, Source, class_blocks, together
from corral.dask._sample import draw_rows
from corral.dask._units import learn_units


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
) -> tuple[PoolModel, Integers | None]:
    """Learn a pool of classes some of which have more rows than they may have representatives.

    Where values are missing or levels, or rows belong to groups, representatives are rows that are drawn,
    and their positions in the whole table are returned as well; else they are averages of all rows, as in
    `large.learn_large_pool`.
    """
    n_rows = of_all.n_rows.sum(axis=0)
    is_general = asked.levels is not None or of_all.has_gaps or sources[0].grouped
    sizes = np.minimum(n_rows, asked.max_rows) if is_general else sample_sizes(n_rows, asked.max_rows)
    drawn = draw_rows(sources, of_all, sizes, int(random.randint(2**31 - 1)), client)
    max_knots = n_knots(len(drawn.X))
    scales = learn_units(sources, of_all, drawn.X, asked.levels, wanted_units(), max_knots, client)
    if not is_general:
        scales["range"] = blurred_range(drawn.X)  # which tells of no row
        return _learn_thinned(sources, of_all, asked, drawn, scales, random, computation, client), None
    factors = (n_rows / sizes)[np.searchsorted(of_all.labels, drawn.y)]
    weights = factors if drawn.weights is None else factors * drawn.weights
    training = _training(drawn._replace(weights=weights), asked.levels)
    model = learn_pool(
        training,
        LabelledRows.sort(training),
        asked.prior,
        asked.min_effect,
        random,
        computation,
        empirical=asked.empirical,
        scales=scales,
    )
    return replace(model, counts=of_all.totals), drawn.numbers


def _training(rows: Part, levels: Integers | None) -> TrainingRows:
    groups = check_groups(rows.groups, len(rows.X))
    refuse_groups_of_whole_classes(groups, rows.y, rows.weights)
    return TrainingRows(rows.X, rows.y, rows.weights, levels, groups)


def _learn_thinned(
    sources: Sequence[Source],
    of_all: Overview,
    asked: Asked,
    drawn: Part,
    scales: dict[Any, Scale],
    random: np.random.RandomState,
    computation: Computation,
    client: Any,
) -> PoolModel:
    """Search on a sample, and put all rows of large classes into cells."""
    n_rows = of_all.n_rows.sum(axis=0)
    sample = LabelledRows.sort(TrainingRows(drawn.X, drawn.y, drawn.weights))
    row_of_sample = np.arange(len(drawn.X)) if sample.copies is None else sample.copies
    heaviest = sample.counts.sum() / (len(sample.X) if sample.weights is None else sample.weights.sum())
    sample = replace(sample, numbers=drawn.numbers[sample.numbers], counts=of_all.totals)
    differences = learn_contrast(sample, asked.min_effect)
    lapse = 1.0 / (n_rows.sum() * sample.n / len(sample.X) + 2.0)
    plan = ThinningPlan.learn(
        RowsInUnits.in_units(sample, scales),
        n_rows,
        asked.max_rows,
        asked.prior,
        lapse,
        random,
        computation,
        empirical=asked.empirical,
    )
    held_out = drawn.numbers[np.isin(row_of_sample, sample.units[plan.held_out])]
    blocks = class_blocks(sources, of_all, asked.block_rows)
    summaries = _summarise(plan, blocks, held_out, heaviest, client)
    rest = replace(sample.take(np.flatnonzero(~plan.thinned[sample.codes])), counts=of_all.totals)
    data, thinning, pool = plan.conclude(summaries, rest, of_all.n_given)
    kept = data.extended(thinning.held_out)
    return PoolModel(
        labels=of_all.labels,
        counts=of_all.totals,
        prior=asked.prior,
        relevant=differences.relevant,
        n_copies=sample.n_copies,
        training=TrainingRows(kept.X, kept.labels[kept.codes], kept.weights),
        data=data,
        min_effect=asked.min_effect,
        learnt_contrast=differences,
        pool=pool,
        thinning=thinning,
    )


def _summarise(
    plan: ThinningPlan, blocks: list[list[Any]], held_out: Integers, heaviest: float, client: Any
) -> list[CellSummary | None]:
    """Put all rows of thinned classes into cells, block by block.

    Blocks, and so the order of all sums, depend neither on partitions nor on workers.
    """
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

"""Fit a pool on a cluster: members to a sample of the rows, centroids of compressed classes to all rows.

A class with more than `max_rows` rows is compressed: its rows are divided into cells, and each cell is
replaced by the mean of its rows, the centroid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dask.delayed import delayed

from corral.array_types import Integers
from corral.dask.reductions import compute, shared, tree
from corral.dask.rows import Overview, Part, Pieces, Source, class_blocks, concatenate
from corral.dask.sample import sample_rows
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.subsample import sample_sizes
from corral.estimators.validation import check_groups, refuse_groups_of_whole_classes
from corral.parallel import Computation, one_blas_thread
from corral.pool.compression import Cells, Centroids, CompressionPlan
from corral.pool.learning import LargeTable, PoolSettings, learn_large_pool
from corral.pool.model import PoolModel


def all_rows(
    sources: Sequence[Source], overview: Overview, categories: Integers | None, client: Any
) -> TrainingRows:
    """Return all rows with positive weight, in this process."""
    sampled = sample_rows(sources, overview, overview.n_rows.sum(axis=0), 0, client)
    return _training(sampled.take(np.argsort(sampled.numbers)), categories)


def learn_cluster_pool(
    sources: Sequence[Source],
    overview: Overview,
    settings: PoolSettings,
    categories: Integers | None,
    block_rows: int,
    random: np.random.RandomState,
    computation: Computation,
    client: Any,
) -> PoolModel:
    """Fit a pool, as `learn_pool` does, if a class has more than `max_rows` rows.

    `categories` (n_features,) are numbers of categories, 0 for measurements; None if all variables are
    measurements. A task averages at most `block_rows` rows of a class.
    """
    assert settings.max_rows is not None
    n_rows = overview.n_rows.sum(axis=0)
    sizes = sample_sizes(n_rows, settings.max_rows)
    sampled = sample_rows(sources, overview, sizes, int(random.randint(2**31 - 1)), client)
    training = _training(sampled, categories)
    sample = LabelledRows.sort(training)
    refuse_groups_of_whole_classes(training, sample)

    def compress(plan: CompressionPlan) -> dict[int, Centroids]:
        return _compress_rows(plan, sampled, class_blocks(sources, overview, block_rows), client)

    table = LargeTable(
        sample=replace(sample, numbers=sampled.numbers[sample.numbers], counts=overview.totals),
        sizes=n_rows,
        max_rows=settings.max_rows,
        n_rows=overview.n_given,
        n=n_rows.sum() * sample.n / len(sample.X),
        n_duplicates=sample.n_duplicates,
        general=categories is not None or overview.has_missing or sources[0].grouped,
        training=None,
        compress=compress,
    )
    return learn_large_pool(table, settings, random, computation)


def _training(rows: Part, categories: Integers | None) -> TrainingRows:
    return TrainingRows(rows.X, rows.y, rows.weights, categories, check_groups(rows.groups, len(rows.X)))


def _compress_rows(
    plan: CompressionPlan, sampled: Part, blocks: list[list[Pieces]], client: Any
) -> dict[int, Centroids]:
    """Compute the centroids of each compressed class (by code) from all rows, block by block.

    `sampled` is the sample before duplicates were merged. Rows that `plan` holds out are left out.
    """
    sample = plan.rows
    row_of_sample = np.arange(len(sampled.X)) if sample.duplicates is None else sample.duplicates
    held_out = shared(sampled.numbers[np.isin(row_of_sample, sample.group_ids[plan.held_out])])
    given = len(sampled.X) if sampled.weights is None else sampled.weights.sum()
    heaviest = given / sample.all_weights.sum()
    tasks = []
    for y, cells in plan.cells.items():
        sent = shared(cells)
        averages = [_average(sent, held_out, heaviest, *pieces) for pieces in blocks[y]]
        tasks.append(tree(averages, Centroids.merge))
    return dict(zip(plan.cells, compute(tasks, client), strict=True))


@delayed
def _average(cells: Cells, held_out: Integers, heaviest: float, *pieces: Part) -> Centroids:
    rows = concatenate(pieces)
    rows = rows.take(~np.isin(rows.numbers, held_out))
    weights = None if rows.weights is None else rows.weights / heaviest
    with one_blas_thread():
        return cells.average(rows.X, weights, rows.numbers)

"""The entry point of a fit: from labelled rows, here or on a cluster, to the fitted model.

A class with more than `max_rows` rows is compressed. Its kernels are put on centroids of all its rows
(`compression`), or on a subsample if values are missing or categories, or rows belong to groups: such rows
have no means. Scales, means, covariances and frequencies of categories are learnt from a larger sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.subsample import choose_sample, n_knots
from corral.data.weights import shares_of_largest
from corral.markers.comparison import learn_comparison
from corral.markers.contrast import learn_contrast
from corral.parallel import Computation
from corral.pool.compression import Centroids, CompressionPlan, compress_rows
from corral.pool.members import MEMBER_KINDS
from corral.pool.model import Compression, Pool, PoolModel, as_training_rows
from corral.pool.scaled_rows import ScaledRows
from corral.pool.search import fit_pool, search


class PoolSettings(NamedTuple):
    """What a user decides about a pool."""

    prior: Floats  # (n_classes,)
    empirical: bool  # whether the prior was estimated from the rows
    min_effect: float  # least difference from the background that makes a variable a marker
    max_rows: int | None  # how many kernels a class may have; None for no limit


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A table with classes of more than `max_rows` rows, wherever its rows lie."""

    # a random sample of each class, in random order, with the counts of all rows
    sample: LabelledRows
    sizes: Integers  # (n_classes,) how many rows the classes have altogether
    max_rows: int  # how many kernels a class may have
    n_rows: int  # how many training rows were given
    n: float  # how many rows of equal weight they are worth
    n_duplicates: int  # how many of them are duplicates of others
    general: bool  # whether values are missing or categories, or rows belong to groups
    # the rows as they were given; None where the model keeps only those that it needs
    training: TrainingRows | None
    # averages all rows of the compressed classes, by class number
    compress: Callable[[CompressionPlan], Mapping[int, Centroids]]


def learn_pool(
    training: TrainingRows,
    data: LabelledRows,
    settings: PoolSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> PoolModel:
    """Learn a pool from rows in this process, `data` being the rows of `training` that count."""
    if settings.max_rows is not None and np.bincount(data.codes).max() > settings.max_rows:
        table = large_table(training, data, settings.max_rows, random, computation)
        return learn_large_pool(table, settings, random, computation)
    return PoolModel(
        prior=settings.prior,
        n_duplicates=data.n_duplicates,
        training=training,
        data=data,
        min_effect=settings.min_effect,
        learnt_contrast=learn_contrast(data, settings.min_effect),
        pool=fit_pool(data, settings.prior, random, computation, empirical=settings.empirical),
    )


def large_table(
    training: TrainingRows,
    data: LabelledRows,
    max_rows: int,
    random: np.random.RandomState,
    computation: Computation,
) -> LargeTable:
    """Prepare rows in this process, some classes of which are too large; see `learn_pool`."""
    sample = data.take(choose_sample(data, max_rows, int(random.randint(2**31 - 1))))
    return LargeTable(
        sample=replace(sample, counts=data.counts),
        sizes=np.bincount(data.codes, minlength=data.labels.size),
        max_rows=max_rows,
        n_rows=len(training.X),
        n=data.n,
        n_duplicates=data.n_duplicates,
        general=data.general,
        training=training,
        compress=partial(compress_rows, data, computation=computation),
    )


def learn_large_pool(
    table: LargeTable, settings: PoolSettings, random: np.random.RandomState, computation: Computation
) -> PoolModel:
    """Learn a pool whose scales, members and markers are learnt from a sample of each class."""
    scales = [kind.scale for kind in MEMBER_KINDS]
    sample = ScaledRows.learn(table.sample, scales, n_knots(len(table.sample.X)))
    if table.general:
        data, compression, pool = _pool_of_subsample(sample, table, settings, random, computation)
    else:
        prior_mixing = 1.0 / (table.n + 2.0)
        search_result = search(
            sample, settings.prior, prior_mixing, random, computation, empirical=settings.empirical
        )
        plan = CompressionPlan.learn(sample, search_result, table.sizes, table.max_rows, computation)
        data, compression, pool = plan.build(table.compress(plan), table.n_rows)
    contrast = learn_contrast(table.sample, settings.min_effect)
    # On a cluster the sample stands for all rows.
    compared = table.training or as_training_rows(_weighted(table.sample, table.sizes))
    return PoolModel(
        prior=settings.prior,
        n_duplicates=table.n_duplicates,
        training=table.training or as_training_rows(data.extended(compression.held_out)),
        data=data,
        min_effect=settings.min_effect,
        learnt_contrast=contrast,
        learnt_comparison=learn_comparison(compared, data.labels, contrast),
        pool=pool,
        compression=compression,
    )


def _pool_of_subsample(
    sample: ScaledRows,
    table: LargeTable,
    settings: PoolSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> tuple[LabelledRows, Compression, Pool]:
    """Fit a pool to the first `max_rows` rows of each class in a sample, and return these rows as well.

    They are a random choice, so that whatever leaves rows out is as valid as with a smaller table.
    """
    first = np.concatenate([rows_of_class[: table.max_rows] for rows_of_class in sample.data.members()])
    data = replace(_weighted(sample.data.take(first), table.sizes), counts=sample.data.counts)
    sample = replace(sample, data=_weighted(sample.data, table.sizes))
    compression = Compression(data.take(first[:0]), np.ones(first.size, dtype=np.int64), table.n_rows)
    pool = fit_pool(data, settings.prior, random, computation, empirical=settings.empirical, sample=sample)
    return data, compression, pool


def _weighted(rows: LabelledRows, sizes: Integers) -> LabelledRows:
    """Rescale weights so that the rows of class y weigh as much as sizes[y] rows."""
    factors = sizes / np.maximum(np.bincount(rows.codes, minlength=sizes.size), 1)
    return replace(rows, weights=shares_of_largest(factors[rows.codes] * rows.all_weights))

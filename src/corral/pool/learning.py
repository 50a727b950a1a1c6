"""The entry point of a fit: from labelled rows, in this process or on a cluster, to the fitted model.

A class with more than `max_rows` rows is compressed. Usually its kernels are on centroids of its rows
(`compression`). If the table has missing values, categories or groups of rows, the rows cannot be averaged,
and the kernels are on a random subsample of `max_rows` rows. In both cases scales, means, covariances and
frequencies of categories are fitted to a larger sample.
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
    """Settings of a pool that a user chooses."""

    prior: Floats  # (n_classes,) prior probabilities
    empirical: bool  # whether the prior was estimated from the rows
    min_effect: float  # smallest difference from the rows of other classes that makes a variable a marker
    max_rows: int | None  # largest number of kernels of a class; None for no limit


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A table in which at least one class has more than `max_rows` rows, in this process or on a cluster."""

    # a random sample of each class, in random order; `sample.counts` are counts of all rows
    sample: LabelledRows
    sizes: Integers  # (n_classes,) number of rows of each class in the whole table
    max_rows: int  # largest number of kernels of a class
    n_rows: int  # number of training rows that were given
    n: float  # effective number of training rows
    n_duplicates: int  # number of training rows that are duplicates of other training rows
    general: bool  # whether there are missing values, categories or groups
    # the rows as they were given; None if the rows are on a cluster: the model then keeps a part of the rows
    training: TrainingRows | None
    # computes the centroids of each compressed class, by class code
    compress: Callable[[CompressionPlan], Mapping[int, Centroids]]


def learn_pool(
    training: TrainingRows,
    data: LabelledRows,
    settings: PoolSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> PoolModel:
    """Fit a pool to rows in this process; `data` is `LabelledRows.sort(training)`."""
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
    """Describe a table in this process that has classes of more than `max_rows` rows; see `learn_pool`."""
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
    """Fit a pool to a table with compressed classes.

    Scales, members and markers are fitted to the sample of the table.
    """
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
    # On a cluster the comparison of each class with all other rows is computed from the sample.
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
    """Fit a pool to the first `max_rows` rows of each class in a sample; also return these rows.

    The sample is in random order, so that these rows are a random subsample. Therefore cross-validation is as
    valid as with a smaller table.
    """
    first = np.concatenate([rows_of_class[: table.max_rows] for rows_of_class in sample.data.members()])
    data = replace(_weighted(sample.data.take(first), table.sizes), counts=sample.data.counts)
    sample = replace(sample, data=_weighted(sample.data, table.sizes))
    compression = Compression(data.take(first[:0]), np.ones(first.size, dtype=np.int64), table.n_rows)
    pool = fit_pool(data, settings.prior, random, computation, empirical=settings.empirical, sample=sample)
    return data, compression, pool


def _weighted(rows: LabelledRows, sizes: Integers) -> LabelledRows:
    """Rescale weights so that the total weight of class y is as large as the weight of sizes[y] rows."""
    factors = sizes / np.maximum(np.bincount(rows.codes, minlength=sizes.size), 1)
    return replace(rows, weights=shares_of_largest(factors[rows.codes] * rows.all_weights))

"""The entry point of a fit: from labelled rows, here or on a cluster, to the fitted model.

A class with more than `max_rows` rows is compressed: where all values are there and are numbers, its kernels
are put on centroids of all its rows (`compression`), else on a subsample (`subsampled`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.subsample import choose_sample, n_knots
from corral.markers.contrast import learn_contrast
from corral.parallel import Computation
from corral.pool.compression import Compressed, ThinningPlan, compress_rows
from corral.pool.members import MEMBER_KINDS, scales_of
from corral.pool.model import PoolModel
from corral.pool.scaled_rows import RowsInUnits
from corral.pool.search import fit_pool
from corral.pool.subsampled import pool_of_drawn_rows


class PoolSettings(NamedTuple):
    """What a user decides about a pool.

    Attributes
    ----------
    prior : (n_classes,)
    empirical : whether the prior was estimated from the rows.
    min_effect : least difference from the background that makes a variable a marker.
    max_rows : how many kernels a class may have; None for no limit.
    """

    prior: Floats
    empirical: bool
    min_effect: float
    max_rows: int | None


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A table some of whose classes have more than `max_rows` rows, wherever its rows lie.

    Attributes
    ----------
    sample : a sample of each class, with the counts of all rows.
    sizes : (n_classes,) how many rows the classes have altogether.
    n_rows : how many training rows were given.
    n : how many rows of equal weight they are worth.
    n_copies : how many of them are duplicates of others.
    general : whether values are missing or categories, or rows belong to groups.
    training : the rows as they were given; None where the model keeps only those that it needs.
    compress : puts all rows of large classes into the cells of a plan.
    """

    sample: LabelledRows
    sizes: Integers
    n_rows: int
    n: float
    n_copies: int
    general: bool
    training: TrainingRows | None
    compress: Callable[[ThinningPlan], Compressed]


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
        return learn_large_pool(table, settings, settings.max_rows, random, computation)
    return PoolModel(
        labels=data.labels,
        counts=data.counts,
        prior=settings.prior,
        n_copies=data.n_copies,
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
        n_rows=len(training.X),
        n=data.n,
        n_copies=data.n_copies,
        general=data.general,
        training=training,
        compress=partial(compress_rows, data, computation=computation),
    )


def learn_large_pool(
    table: LargeTable,
    settings: PoolSettings,
    max_rows: int,
    random: np.random.RandomState,
    computation: Computation,
) -> PoolModel:
    """Learn a pool whose scales, members and markers are learnt from a sample of each class."""
    sample = RowsInUnits.learn(table.sample, scales_of(MEMBER_KINDS), n_knots(len(table.sample.X)))
    search = (settings.prior, random, computation)
    if table.general:
        data, thinning, pool = pool_of_drawn_rows(
            sample, table.sizes, max_rows, table.n_rows, *search, empirical=settings.empirical
        )
    else:
        lapse = 1.0 / (table.n + 2.0)
        plan = ThinningPlan.learn(sample, table.sizes, max_rows, lapse, *search, empirical=settings.empirical)
        data, thinning, pool = plan.conclude(table.compress(plan), table.n_rows)
    return PoolModel(
        labels=data.labels,
        counts=data.counts,
        prior=settings.prior,
        n_copies=table.n_copies,
        training=_kept(data.extended(thinning.held_out)) if table.training is None else table.training,
        data=data,
        min_effect=settings.min_effect,
        learnt_contrast=learn_contrast(table.sample, settings.min_effect),
        pool=pool,
        thinning=thinning,
    )


def _kept(rows: LabelledRows) -> TrainingRows:
    """The rows that a model needs, as training rows."""
    groups = rows.units if rows.grouped else None
    return TrainingRows(rows.X, rows.labels[rows.codes], rows.weights, rows.levels, groups)

"""A pool of many rows with gaps or levels, or of groups: kernels on rows that are drawn from each class.

Such rows have no averages. A class has kernels on `max_rows` of them, the first of a sample, which is much
larger; units, means, covariances and frequencies of levels are learnt from the whole sample. The rows of a
class weigh together as much as all that it has, and those that are drawn are a random choice of them. So
whatever leaves rows out, their copies and groups, does it with the drawn ones as with a smaller table, and
is as valid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.weights import shares_of_largest
from corral.parallel import Computation
from corral.pool.model import Pool, Thinning
from corral.pool.scaled_rows import RowsInUnits
from corral.pool.search import fit_pool


def pool_of_drawn_rows(
    sample: RowsInUnits,
    sizes: Integers,
    max_rows: int,
    n_rows: int,
    prior: Floats,
    random: np.random.RandomState,
    computation: Computation,
    *,
    empirical: bool,
) -> tuple[LabelledRows, Thinning, Pool]:
    """Fit a pool to at most `max_rows` rows of each class.

    Parameters
    ----------
    sample : rows of all classes, those of a class in the order in which they were drawn.
    sizes : (n_classes,) how many rows the classes have altogether.
    max_rows : how many rows of a class may have kernels.
    n_rows : how many training rows were given.
    prior, random, computation, empirical : as in `search.fit_pool`.

    Returns
    -------
    data : the drawn rows.
    thinning : which says that all of these have kernels each.
    pool : see there.
    """
    first = np.concatenate([of_class[:max_rows] for of_class in sample.data.members()])
    drawn = replace(_weighed(sample.data.take(first), sizes), counts=sample.data.counts)
    sample = replace(sample, data=_weighed(sample.data, sizes))
    if not drawn.mixed:  # then so few rows have gaps that the others will do
        complete = ~np.isnan(sample.data.X).any(axis=1)
        sample = replace(sample.take(np.flatnonzero(complete)), mixed=False)
    pool = fit_pool(drawn, prior, random, computation, empirical=empirical, sample=sample)
    nothing = drawn.take(np.empty(0, dtype=np.int64))
    return drawn, Thinning(nothing, [None] * prior.size, [], n_rows), pool


def _weighed(rows: LabelledRows, sizes: Integers) -> LabelledRows:
    """Let the rows of each class weigh as much as if there were so many of them."""
    factors = sizes / np.maximum(np.bincount(rows.codes, minlength=sizes.size), 1)
    weights = factors[rows.codes] * (1.0 if rows.weights is None else rows.weights)
    return replace(rows, weights=shares_of_largest(weights))

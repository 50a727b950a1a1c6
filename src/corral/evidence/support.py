"""The training rows behind a label, what each variable adds when all others are known, and typical rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.subsample import evenly_spaced
from corral.data.tiles import TINY
from corral.data.weights import sums_by_unit
from corral.evidence.explainers import BLOCK, Explainer
from corral.model import LocalModel
from corral.parallel import Computation, on_threads

# Rows of a class among which typical ones are looked for.
_MOST_ROWS = 1000


class Support(NamedTuple):
    """The training rows that the densities of labels rest on."""

    # (n_samples, n_listed) numbers of the label's rows with the largest shares, -1 where it has fewer
    rows: Integers
    shares: Floats  # (n_samples, n_listed) their shares
    # (n_samples, n_listed) how many training rows each of them stands for, 0 where it has fewer
    stands_for: Integers
    # (n_samples,) 1 over the sum of squares: so many rows of equal shares carry as much
    effective_rows: Floats
    group_share: Floats  # (n_samples,) the largest share that the rows of one group have together


def conditionals_and_support(
    explainer: Explainer, label: Integers, rival: Integers, n_listed: int
) -> tuple[Floats, Support]:
    """Log p(x_j | others) (n_samples, n_features) in labels less that in rivals, and the support of labels.

    `label` and `rival` (n_samples,) are numbers of classes; `n_listed` of the supporting rows are listed.
    """
    n, model = label.size, explainer.model
    by_class = model.data.members()
    listed = (n, min(n_listed, max(rows.size for rows in by_class)))
    conditional = np.empty(explainer.X.shape)
    support = Support(
        np.full(listed, -1), np.zeros(listed), np.zeros(listed, dtype=np.int64), np.zeros(n), np.zeros(n)
    )

    def look_at_label(samples: Integers) -> None:
        a = int(label[samples[0]])
        conditional[samples], shares = explainer.conditional(samples, a)
        strongest = np.argsort(-shares, axis=1, kind="stable")[:, : listed[1]]
        places = (samples, slice(strongest.shape[1]))
        support.rows[places] = model.data.numbers[by_class[a]][strongest]
        support.shares[places] = np.take_along_axis(shares, strongest, axis=1)
        support.stands_for[places] = model.rows_behind(a)[strongest]
        squares = np.vecdot(shares, shares)
        support.effective_rows[samples] = np.where(squares > 0.0, 1.0 / np.maximum(squares, TINY), 0.0)
        if by_class[a].size:
            groups = model.data.units[by_class[a]]
            sums = sums_by_unit(shares, groups) if model.data.grouped else shares
            support.group_share[samples] = sums.max(axis=1)

    def look_at_rival(samples: Integers) -> None:
        conditional[samples] -= explainer.conditional(samples, int(rival[samples[0]]))[0]

    for look, codes in ((look_at_label, label), (look_at_rival, rival)):
        tasks = (partial(look, samples) for samples in _blocks_of_equals(codes))
        list(on_threads(tasks, explainer.computation.n_jobs))
    return conditional, support


def _blocks_of_equals(codes: Integers) -> Iterator[Integers]:
    """Positions of equal numbers, some at a time: shares of all rows for all samples would be large."""
    for code in np.unique(codes):
        at = np.flatnonzero(codes == code)
        for first in range(0, at.size, BLOCK):
            yield at[first : first + BLOCK]


def typical_rows(model: LocalModel, a: int, n_rows: int, computation: Computation) -> list[int]:
    """Positions of `n_rows` training rows of class a at which its density is highest, complete rows first."""
    rows = model.data.members()[a]
    if not rows.size:
        return []
    rows = rows[evenly_spaced(rows.size, _MOST_ROWS)]
    log_density = model.log_densities(model.data.X[rows], computation)[:, a]
    # Densities of rows with different missing values do not compare.
    highest = np.lexsort((-log_density, np.isnan(model.data.X[rows]).sum(axis=1)))[:n_rows]
    positions = model.data.numbers[rows[highest]]
    return [number for number in positions.tolist() if number >= 0]  # centroids have none

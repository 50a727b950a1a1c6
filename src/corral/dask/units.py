"""Units of rows on a cluster, from sums and counts over all of them that no order of partitions changes.

Ranks and normal scores are known exactly at some values of each column, those that a sample of rows has, and
interpolated between them, as `Scale` does between the values of rows at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed

from corral.array_types import Floats, Integers
from corral.dask.exact import add_sums, as_floats, exact_sums
from corral.dask.reductions import compute, shared, tree
from corral.dask.rows import Overview, Source, read_part
from corral.data.scaling import (
    Scale,
    ScaleKind,
    largest_values,
    learn_scale,
    normal_quantiles,
    range_units,
    standard_units,
)

# Weights are counted in such shares of the largest: sums over 10^10 rows fit 63 bits.
_WEIGHT_UNIT = 2.0**-30


class Question(NamedTuple):
    """What all partitions are asked for.

    Attributes
    ----------
    divisor, center, reach : (n_features,) of (x / divisor - center) / reach, which lies between -1 and 1.
    knots : for each column values at which rows are counted.
    heaviest : the largest weight.
    """

    divisor: Floats
    center: Floats
    reach: Floats
    knots: list[Floats]
    heaviest: float


class Answer(NamedTuple):
    """Sums and counts over some rows.

    Attributes
    ----------
    sums : of weights, of weighted values and of weighted squares, one after the other, of all columns.
    at_most, below : for each column the weight of rows up to each knot, and below it.
    totals : (n_features,) the weight of rows that have a value.
    """

    sums: list[int]
    at_most: list[Integers]
    below: list[Integers]
    totals: Integers


def learn_units(
    sources: Sequence[Source],
    of_all: Overview,
    sample: Floats,
    levels: Integers | None,
    kinds: Sequence[ScaleKind],
    max_knots: int,
    client: Any,
) -> dict[ScaleKind, Scale]:
    """Learn the units of all rows, as `learn_scale` does from rows at hand.

    Columns of levels, and those without any value, stay as they are.

    Parameters
    ----------
    sources, of_all : the rows.
    sample : (n_sample, n_features) some of them.
    levels : (n_features,) numbers of levels, 0 for measurements; None if all are.
    kinds : which units.
    max_knots : at about how many values of each column ranks are known.
    client : the cluster.
    """
    d = of_all.low.size
    measured = np.isfinite(of_all.low) & (np.ones(d, dtype=np.bool_) if levels is None else levels == 0)
    low, high = (np.where(measured, bound, 0.0) for bound in (of_all.low, of_all.high))
    ranks = learn_scale(np.where(measured, sample, np.nan), None, "rank").with_fewer_knots(max_knots)
    knots = [np.zeros(1) if of_column is None else of_column[0] for of_column in ranks.knots or ()]
    question = _ask(sample, knots, low, high, of_all.heaviest)
    sent = shared(question)
    answer: Answer = compute([tree([_answer(source, sent) for source in sources], _merge)], client)[0]
    return {kind: _units(kind, question, answer, low, high, measured.tolist()) for kind in kinds}


def _ask(sample: Floats, knots: list[Floats], low: Floats, high: Floats, heaviest: float) -> Question:
    """Ask for sums of differences from the means of a sample, or squares would lose their digits."""
    divisor = largest_values(low, high)
    center = np.zeros(low.size)
    for j, column in enumerate(sample.T):
        known = column[~np.isnan(column)]
        center[j] = np.mean(known / divisor[j]) if known.size else low[j] / divisor[j]
    reach = np.maximum(high / divisor - center, center - low / divisor)
    return Question(divisor, center, np.where(reach > 0.0, reach, 1.0), knots, heaviest)


@delayed
def _answer(source: Source, question: Question) -> Answer:
    """Answer for one partition."""
    part = read_part(source).weighty()
    weights = np.ones(len(part.X)) if part.weights is None else part.weights / question.heaviest
    whole = None if part.weights is None else np.rint(weights / _WEIGHT_UNIT).astype(np.int64)
    known = ~np.isnan(part.X)
    z = np.where(known, (part.X / question.divisor - question.center) / question.reach, 0.0)
    np.clip(z, -1.0, 1.0, out=z)  # a column of levels is not between its bounds, and not asked for
    w = weights[:, np.newaxis]
    sums = exact_sums(w * known) + exact_sums(w * z) + exact_sums(w * z * z)
    at_most, below = [], []
    for j, knots in enumerate(question.knots):
        here = known[:, j]
        upto, under = _weights_up_to(part.X[here, j], None if whole is None else whole[here], knots)
        at_most.append(upto)
        below.append(under)
    return Answer(sums, at_most, below, known.sum(axis=0) if whole is None else whole @ known)


def _weights_up_to(x: Floats, weights: Integers | None, knots: Floats) -> tuple[Integers, Integers]:
    """The weight of values up to each knot, and below it; each value counts once if there are no weights."""
    if weights is None:
        values = np.sort(x)
        return np.searchsorted(values, knots, side="right"), np.searchsorted(values, knots, side="left")
    order = np.argsort(x)
    totals = np.concatenate([[0], weights[order].cumsum()])
    at, before = (np.searchsorted(x[order], knots, side=side) for side in ("right", "left"))
    return totals[at], totals[before]


def _merge(parts: Sequence[Answer]) -> Answer:
    sums, at_most, below, totals = zip(*parts, strict=True)
    return Answer(
        add_sums(list(sums)),
        [np.sum(of_column, axis=0) for of_column in zip(*at_most, strict=True)],
        [np.sum(of_column, axis=0) for of_column in zip(*below, strict=True)],
        np.sum(totals, axis=0),
    )


def _units(
    kind: ScaleKind, question: Question, answer: Answer, low: Floats, high: Floats, measured: list[bool]
) -> Scale:
    """The units of one kind; a column that is not measured has a range of 0, and stays as it is."""
    if kind == "range":
        return range_units(low, high)
    if kind == "standard":
        weight, first, second = as_floats(answer.sums).reshape(3, -1)
        mean = first / np.maximum(weight, np.finfo(np.float64).tiny)
        square = second / np.maximum(weight, np.finfo(np.float64).tiny)
        variance = np.maximum(square - mean * mean, 0.0) * question.reach**2
        return standard_units(low, high, question.center + question.reach * mean, variance)
    of_columns = zip(
        measured, question.knots, answer.at_most, answer.below, answer.totals.tolist(), strict=True
    )
    knots = tuple(
        _knots(kind, values, at_most, below, total) if is_measured else None
        for is_measured, values, at_most, below, total in of_columns
    )
    return Scale(np.zeros(low.size), np.full(low.size, 0.5), knots)


def _knots(
    kind: ScaleKind, values: Floats, at_most: Integers, below: Integers, total: int
) -> tuple[Floats, Floats]:
    """Values, and their ranks or normal scores, of mean 0 over all rows as far as that is known.

    Values that no row lies between share a rank, which tells none of them from the others.
    """
    ranks = 0.5 * (at_most + below) / total
    rises = np.concatenate([[True], np.diff(ranks) > 0.0])
    values, ranks, at_most, below = values[rises], ranks[rises], at_most[rises], below[rises]
    if kind == "rank":
        return values, ranks
    scores = normal_quantiles(ranks)
    between = np.diff(np.concatenate([[0], at_most, [total]])) - np.append(at_most - below, 0)
    around = np.concatenate([scores[:1], scores, scores[-1:]])
    halfway = 0.5 * (around[1:] + around[:-1])
    return values, scores - ((at_most - below) @ scores + between @ halfway) / total

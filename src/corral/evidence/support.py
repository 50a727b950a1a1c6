"""The training rows behind a label, what each variable adds when all others are known, and typical rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.conformal.typicality import Distribution, rounded
from corral.data.dataset import LabelledRows
from corral.data.hashing import equality_keys
from corral.data.subsample import evenly_spaced
from corral.data.tiles import TINY
from corral.data.weights import sums_by_group
from corral.evidence.explainers import BLOCK, Explainer, explainer_of
from corral.model import LocalModel
from corral.parallel import Computation, on_threads

# Rows of a class among which typical ones are looked for.
_MOST_ROWS = 1000

# A label rests on few rows if one of them, or one group, has more than half of its density, and more than at
# 95 in 100 training rows, each left out. So many of these are enough for such a quantile.
_MORE_THAN_HALF = 0.5
_UNUSUAL = 0.05
_MOST_LEFT_OUT = 400

# Shares over weights that differ by less than this are equal but for rounding.
_ROUNDING = 1e-9

# Smaller shares are 0: rows that have them are ranked by distance.
_LEAST_SHARE = 1e-100

# Mean square of the difference of two rows in a variable whose standard deviation is 1: a missing value is as
# far away as a row at random, and so is another category.
_FAR = 2.0


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
    # (n_samples,) whether all rows are listed, or the first has a larger share than rows that are not, and
    # than its weight alone gives it; if not, the rows that are listed are the nearest ones
    stands_out: Bools
    n_tied: Integers  # (n_samples,) how many rows have the share of the first, and are as near as it
    equal: Bools  # (n_samples, n_listed) whether they have the values of the sample in all variables


def conditionals_and_support(
    explainer: Explainer, label: Integers, rival: Integers, importance: Floats, n_listed: int
) -> tuple[Floats, Support, Floats]:
    """Log p(x_j | others) (n_samples, n_features) in labels less that in rivals, and the support of labels.

    Also the largest share (n_samples,) of one row, or of the rows of one group, that does not equal the
    sample: a training row supports itself, which says nothing about its label.

    `label` and `rival` (n_samples,) are numbers of classes; `n_listed` of the supporting rows are listed.
    Where shares are equal, the nearest rows come first, by distances in which variables have an `importance`
    (n_samples, n_features).
    """
    n, model = label.size, explainer.model
    by_class = model.data.members()
    listed = (n, min(n_listed, max(rows.size for rows in by_class)))
    conditional, largest_of_others = np.empty(explainer.X.shape), np.zeros(n)
    support = Support(
        np.full(listed, -1),
        np.zeros(listed),
        np.zeros(listed, dtype=np.int64),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, dtype=np.bool_),
        np.ones(n, dtype=np.int64),
        np.zeros(listed, dtype=np.bool_),
    )

    def look_at_label(samples: Integers) -> None:
        a = int(label[samples[0]])
        rows = model.data.take(by_class[a])
        conditional[samples], shares = explainer.conditional(samples, a)
        equal = equality_keys(explainer.X[samples])[:, np.newaxis] == equality_keys(rows.X)
        strongest, support.stands_out[samples], support.n_tied[samples] = _strongest(
            shares, rows, explainer.X[samples], importance[samples], listed[1]
        )
        places = (samples, slice(strongest.shape[1]))
        support.rows[places] = rows.numbers[strongest]
        support.shares[places] = np.take_along_axis(shares, strongest, axis=1)
        support.equal[places] = np.take_along_axis(equal, strongest, axis=1)
        support.stands_for[places] = model.rows_behind(a)[strongest]
        squares = np.vecdot(shares, shares)
        support.effective_rows[samples] = np.where(squares > 0.0, 1.0 / np.maximum(squares, TINY), 0.0)
        support.group_share[samples] = _largest_shares(rows, shares)
        largest_of_others[samples] = _largest_shares(rows, np.where(_own(rows, equal), 0.0, shares))

    def look_at_rival(samples: Integers) -> None:
        conditional[samples] -= explainer.conditional(samples, int(rival[samples[0]]))[0]

    for look, codes in ((look_at_label, label), (look_at_rival, rival)):
        tasks = (partial(look, samples) for samples in _blocks_of_equals(codes))
        list(on_threads(tasks, explainer.computation.n_jobs))
    return conditional, support, largest_of_others


def _own(rows: LabelledRows, equal: Bools) -> Bools:
    """Which rows (n_samples, n_rows) of a class equal a sample, or share a group with one that does."""
    if not rows.grouped or not equal.any():
        return equal
    own: Bools = sums_by_group(equal.astype(np.float64), rows.group_ids) > 0.0
    return own[:, np.unique(rows.group_ids, return_inverse=True)[1]]


def _largest_shares(rows: LabelledRows, shares: Floats) -> Floats:
    """The largest share (n_samples,) of one row of a class, or of the rows of one group together."""
    if not len(rows.X):
        return np.zeros(len(shares))
    largest: Floats = (sums_by_group(shares, rows.group_ids) if rows.grouped else shares).max(axis=1)
    return largest


def _strongest(
    shares: Floats, rows: LabelledRows, X: Floats, importance: Floats, n_listed: int
) -> tuple[Integers, Bools, Integers]:
    """Positions (n_samples, n_listed) of the strongest rows of a class, whether they stand out, and ties.

    Rows are ranked by their shares (n_samples, n_rows), and where these are equal by their distances from the
    samples X. If shares are proportional to the weights of the rows, distances alone decide.
    """
    n_tied = np.ones(len(X), dtype=np.int64)
    if not len(rows.X):
        return np.empty((len(X), 0), dtype=np.int64), n_tied < 1, n_tied
    by_weight = np.ptp(shares / (rows.all_weights / rows.all_weights.sum()), axis=1) < _ROUNDING
    shares = rounded(shares, _LEAST_SHARE)
    keys = np.where(by_weight[:, np.newaxis], 0.0, -shares)
    order = np.argsort(keys, axis=1, kind="stable")
    first = np.take_along_axis(keys, order[:, : n_listed + 1], axis=1)
    for i in np.flatnonzero((np.diff(first, axis=1) == 0.0).any(axis=1)).tolist():
        apart = rounded(distances(X[i], rows, importance[i]))
        order[i] = np.lexsort((-shares[i], apart, keys[i]))
        nearest = order[i, 0]
        n_tied[i] = np.count_nonzero((keys[i] == keys[i, nearest]) & (apart == apart[nearest]))
    lists_all = len(rows.X) <= n_listed
    return order[:, :n_listed], (first[:, 0] < first[:, -1]) | lists_all, n_tied


def distances(x: Floats, rows: LabelledRows, importance: Floats) -> Floats:
    """Mean squares (n_rows,) of the differences of rows from a sample, by the importance of variables.

    They are relative to the variances of the rows. The sample's missing values have no part.
    """
    present = ~np.isnan(x)
    table = np.vstack([x[present], rows.X[:, present]])
    table /= np.maximum(np.fmax.reduce(np.abs(table)), TINY)  # so that no square is too large
    apart = table[1:] - table[0]
    weights = importance[present] if importance[present].any() else np.ones(apart.shape[1])
    is_number = rows.category_counts[present] == 0
    squares = np.where(
        is_number, apart**2 / np.maximum(np.nanvar(table, axis=0), TINY), _FAR * (apart != 0.0)
    )
    mean: Floats = np.where(np.isnan(apart), _FAR, squares) @ (weights / weights.sum())
    return mean


def rests_on_few(support: Support, largest_of_others: Floats, largest: Distribution) -> Bools:
    """Whether labels (n_samples,) rest on one row or group that is not the sample itself.

    Its share is compared with the `largest` shares at training rows, which are left out, too.
    """
    pvalues = largest.pvalues(-largest_of_others)
    is_row = support.stands_for[:, 0] <= 1  # and no mean of several rows
    return (largest_of_others > _MORE_THAN_HALF) & (pvalues <= _UNUSUAL) & is_row


def largest_shares(model: LocalModel, computation: Computation) -> Distribution:
    """Largest shares, times -1, of single rows or groups at training rows, each left out with its group.

    They are 1 where nothing else has a share. A class with two groups has but one when the other is left out.
    """
    by_class = model.data.members()
    n_each = max(1, _MOST_LEFT_OUT // len(by_class))
    values, weights = [np.empty(0)], [np.empty(0)]
    for a, rows in enumerate(by_class):
        if not rows.size:
            continue
        examples = model.examples(a)
        examples = examples.take(evenly_spaced(len(examples.X), n_each))
        explainer = explainer_of(model, examples.X, computation, examples=examples)
        group_ids = np.where(examples.left_out >= 0, model.data.group_ids[examples.left_out], -1)
        own = model.data.group_ids[rows] == group_ids[:, np.newaxis]
        _, shares = explainer.conditional(np.arange(len(own)), a, own)
        largest = _largest_shares(model.data.take(rows), shares)
        values.append(np.where(largest > 0.0, largest, 1.0))
        weights.append(np.full(len(own), model.data.counts[a] / len(own)))
    return Distribution.from_values(-np.concatenate(values), np.concatenate(weights))


def _blocks_of_equals(codes: Integers) -> Iterator[Integers]:
    """Positions of equal numbers, some at a time: shares of all rows for all samples would be large."""
    for code in np.unique(codes):
        positions = np.flatnonzero(codes == code)
        for first in range(0, positions.size, BLOCK):
            yield positions[first : first + BLOCK]


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

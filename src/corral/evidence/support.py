"""Support of labels by training rows, densities of each variable given all other variables, typical rows.

The density of a class at a sample is a sum of kernels at training rows; a row's share is its part of this
sum. The rows with the largest shares support the label.
"""

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

# The size of the subsample of a class in which typical rows are searched.
_MOST_ROWS = 1000

# A label rests on few rows if one row or group has a share above _MORE_THAN_HALF, and if so large a share
# occurs at no more than a proportion _UNUSUAL of the training rows, each left out of the densities.
# _MOST_LEFT_OUT training rows suffice to estimate this proportion.
_MORE_THAN_HALF = 0.5
_UNUSUAL = 0.05
_MOST_LEFT_OUT = 400

# Ratios of shares and weights that differ by less than this are considered equal.
_ROUNDING = 1e-9

# Smaller shares are rounded to 0; rows with the share 0 are ranked by distance.
_LEAST_SHARE = 1e-100

# The squared distance of a missing value or of a different category: the mean squared difference of two
# random rows in a variable with standard deviation 1.
_FAR = 2.0


class Support(NamedTuple):
    """The support of each label: the listed rows, which have the largest shares of its density."""

    # (n_samples, n_listed) positions of the listed rows in the training table, in order of their shares; -1
    # if the class has fewer rows, or if the row is a centroid of a compressed class
    rows: Integers
    shares: Floats  # (n_samples, n_listed) shares of the listed rows
    # (n_samples, n_listed) number of training rows that each listed row stands for: 1, more for a centroid of
    # a compressed class, 0 if the class has fewer rows
    stands_for: Integers
    effective_rows: Floats  # (n_samples,) 1 / sum of squared shares over all rows of the class
    group_share: Floats  # (n_samples,) the largest sum of the shares of the rows of one group
    # (n_samples,) whether all rows of the class are listed, or the first listed row has a larger share than
    # every row that is not listed; shares in proportion to the weights of the rows do not count as larger.
    # If False, the listed rows are just the nearest rows.
    stands_out: Bools
    n_tied: Integers  # (n_samples,) number of rows with the share and the distance of the first listed row
    equal: Bools  # (n_samples, n_listed) whether the listed row equals the sample in all variables


def conditionals_and_support(
    explainer: Explainer, label: Integers, rival: Integers, importance: Floats, n_listed: int
) -> tuple[Floats, Support, Floats]:
    """Compute log ratios of conditional densities in label and rival, and the support of labels.

    Parameters
    ----------
    explainer : densities at the samples.
    label, rival : (n_samples,) codes of classes.
    importance : (n_samples, n_features) weights of the variables in distances. Rows with equal shares are
        listed in the order of their distances from the sample.
    n_listed : number of supporting rows to list.

    Returns
    -------
    conditional : (n_samples, n_features) log density of each variable, given all other variables, in the
        label minus the same log density in the rival.
    support : support of the labels.
    largest_of_others : (n_samples,) the largest share of a row, or of the rows of a group, without rows that
        equal the sample and their groups: if the sample is a training row, its own share is no support.
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
    """Whether each row (n_samples, n_rows) of a class equals a sample or shares a group with an equal row."""
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
    """Rank the rows of a class by shares (n_samples, n_rows), then by distances from the samples X.

    If shares are proportional to the weights of the rows, the rows are ranked by distances only. Returns the
    positions (n_samples, n_listed) of the first rows, whether they stand out (n_samples,), and the number of
    rows tied with the first row (n_samples,); see `Support`.
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
    """Mean squared differences (n_rows,) between rows and a sample x (n_features,).

    Squares are divided by the variances of the variables in the rows and the sample, and weighted by their
    `importance` (n_features,). Variables in which the sample has no value are left out.
    """
    present = ~np.isnan(x)
    table = np.vstack([x[present], rows.X[:, present]])
    table /= np.maximum(np.fmax.reduce(np.abs(table)), TINY)  # so that no square overflows
    apart = table[1:] - table[0]
    weights = importance[present] if importance[present].any() else np.ones(apart.shape[1])
    is_number = rows.category_counts[present] == 0
    squares = np.where(
        is_number, apart**2 / np.maximum(np.nanvar(table, axis=0), TINY), _FAR * (apart != 0.0)
    )
    mean: Floats = np.where(np.isnan(apart), _FAR, squares) @ (weights / weights.sum())
    return mean


def rests_on_few(support: Support, largest_of_others: Floats, largest: Distribution) -> Bools:
    """Whether each label (n_samples,) rests on one row or group other than the sample itself.

    The largest share of such a row or group is compared with the distribution `largest` of such shares at
    training rows, each left out.
    """
    pvalues = largest.pvalues(-largest_of_others)
    is_row = support.stands_for[:, 0] <= 1  # False for a centroid of several rows
    return (largest_of_others > _MORE_THAN_HALF) & (pvalues <= _UNUSUAL) & is_row


def largest_shares(model: LocalModel, computation: Computation) -> Distribution:
    """Distribution, over the training rows, of minus the largest share of a row or group at each of them.

    Each training row is left out with its group. The largest share is 1 if no other row has a share. In a
    class with two groups it is 1 as well, because only one group is left.
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
    """Yield positions of samples with equal codes, in blocks that limit arrays (n_samples, n_rows)."""
    for code in np.unique(codes):
        positions = np.flatnonzero(codes == code)
        for first in range(0, positions.size, BLOCK):
            yield positions[first : first + BLOCK]


def typical_rows(model: LocalModel, a: int, n_rows: int, computation: Computation) -> list[int]:
    """Positions in the training table of up to `n_rows` rows of class a with the highest density."""
    rows = model.data.members()[a]
    if not rows.size:
        return []
    rows = rows[evenly_spaced(rows.size, _MOST_ROWS)]
    log_density = model.log_densities(model.data.X[rows], computation)[:, a]
    # Densities of rows with different missing values are not comparable, so complete rows come first.
    highest = np.lexsort((-log_density, np.isnan(model.data.X[rows]).sum(axis=1)))[:n_rows]
    positions = model.data.numbers[rows[highest]]
    return [position for position in positions.tolist() if position >= 0]  # -1 for centroids

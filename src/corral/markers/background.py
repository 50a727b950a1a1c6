"""The background of each variable: a set of classes that are alike in this variable.

Two classes differ if the p-value of their difference is at most the significance level divided by the number
of pairs of classes, and the difference is not negligible. A set of classes is alike if no two of them differ.

- The background is the largest alike set if it has more than half of the classes.
- Otherwise it is the largest alike set of at least two classes whose values are spread more widely than the
  values of the other classes, and more so than they are higher or lower. For example, most classes may each
  be concentrated at a value of their own, and the rest may be spread out.
- Otherwise the variable has no background, for example if all classes lie at different places.

If there are only two classes, both are the background: each class is compared with the other class.
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Bools, Floats
from corral.markers.group_effects import pvalues_with_groups
from corral.markers.rank_tests import (
    effects_between,
    log_choose,
    log_pvalues,
    occupied_cells,
    size_of_difference,
)
from corral.markers.value_counts import BLOCK, ValueCounts


def compare_pairs(table: ValueCounts, significance_level: float, min_effect: float) -> tuple[Floats, Floats]:
    """Test all pairs of classes: logarithms of p-values, and largest squared statistics.

    Both results are (n_variables, n_classes, n_classes). A p-value is 1 if the difference is significant but
    negligible for the first class, and for all pairs of a variable in which no pair has enough rows for a
    significant difference.
    """
    _, n_classes, n_cells = table.counts.shape
    log_p, statistic = np.zeros((2, len(table.counts), n_classes, n_classes))
    active = table.active & _may_differ(table, significance_level)[:, np.newaxis]
    tests = np.argwhere(np.triu(active[:, :, np.newaxis] & active[:, np.newaxis, :], 1))
    step = max(1, BLOCK // max(n_cells, table.clusters.counts.shape[2]))
    for start in range(0, len(tests), step):
        j, a, b = tests[start : start + step].T
        first, second = occupied_cells(table.counts[j, a], table.counts[j, b])
        p, squared = log_pvalues(first, second)
        p = pvalues_with_groups(p, table.clusters.take(j, a), table.clusters.take(j, b))
        log_p[j, a, b] = log_p[j, b, a] = p
        statistic[j, a, b] = statistic[j, b, a] = squared
        # Effects are needed only to set p-values of significant but negligible differences to 1.
        significant = p <= np.log(significance_level)
        j, a, b = j[significant], a[significant], b[significant]
        first, second = first[significant], second[significant]
        _, effects = effects_between(first, second)
        log_p[j, a, b] *= size_of_difference(first, second, effects) >= min_effect
        log_p[j, b, a] *= size_of_difference(second, first, effects) >= min_effect
    return log_p, statistic


def _may_differ(table: ValueCounts, significance_level: float) -> Bools:
    """Whether the two largest classes have enough rows for a small p-value, for each variable (n_variables,).

    The limit is the largest one that p-values of pairs are compared with: the significance level divided by
    the number of classes from which a class need not differ (see `contrast`). The significance level divided
    by the number of pairs is not larger.
    """
    active = table.active
    n_active = active.sum(axis=1)
    sizes = np.sort(np.where(active, table.counts.sum(axis=2), 0.0), axis=1)
    # The least two-sided p-value: 2 divided by the number of ways to divide the rows between two classes.
    least = np.log(2.0) - log_choose(sizes[:, -1], sizes[:, -2:].min(axis=1))
    return np.asarray(
        (n_active >= 2) & (least <= np.log(significance_level / np.maximum(n_active - n_active // 2, 1)))
    )


def find_background(
    table: ValueCounts, log_p: Floats, statistic: Floats, significance_level: float, min_effect: float
) -> Bools:
    """Whether each class is in the background of each variable (n_variables, n_classes).

    `log_p` and `statistic` are the results of `compare_pairs`.
    """
    active = table.active
    n_active = active.sum(axis=1)
    n_pairs = np.maximum(n_active * (n_active - 1) // 2, 1)
    is_negligible = log_p > np.log(significance_level / n_pairs)[:, np.newaxis, np.newaxis]
    comparable = active[:, :, np.newaxis] & active[:, np.newaxis, :]
    alike = is_negligible & is_negligible.swapaxes(1, 2) & comparable
    background = np.asarray(active & (n_active >= 2)[:, np.newaxis])
    # In most variables of a large table all classes are alike, so that all of them are the background.
    differ = np.flatnonzero((alike != comparable).any(axis=(1, 2)) & (n_active > 2))
    active, statistic = active[differ], statistic[differ]
    sets = _alike_sets(alike[differ], statistic)
    sizes = sets.sum(axis=2)
    eligible = 2 * sizes > n_active[differ, np.newaxis]
    undecided = ~eligible.any(axis=1)
    eligible[undecided] = _wider_than_rest(
        table.counts[differ[undecided]], sets[undecided], active[undecided], min_effect
    )
    background[differ] = _best_set(sets, eligible & (sizes >= 2), statistic)
    return background


def _alike_sets(alike: Bools, statistic: Floats) -> Bools:
    """Grow an alike set from each class; returns sets (n_variables, n_starts, n_classes).

    The other classes are considered in the order of their `statistic` against the start. A class joins the
    set if it does not differ from any class in the set.
    """
    n_classes = alike.shape[1]
    itself = np.eye(n_classes, dtype=bool)
    nearest = np.argsort(np.where(itself, -1.0, statistic), axis=2, kind="stable")
    sets = itself & alike
    for other in np.moveaxis(nearest, 2, 0)[1:]:
        like_other = np.take_along_axis(alike, other[:, :, np.newaxis], axis=1)
        joins = np.asarray((like_other | ~sets).all(axis=2) & sets.any(axis=2))
        sets |= itself[other] & joins[:, :, np.newaxis]
    return sets


def _wider_than_rest(counts: Floats, sets: Bools, active: Bools, min_effect: float) -> Bools:
    """Whether each set (n_variables, n_sets) is wide, more than high or low, against all other classes."""
    rest = active[:, np.newaxis, :] & ~sets
    _, (location, spread, *_) = effects_between(
        sets.astype(np.float64) @ counts, rest.astype(np.float64) @ counts
    )
    return np.asarray((spread >= min_effect) & (spread > np.abs(location)))


def _best_set(sets: Bools, eligible: Bools, statistic: Floats) -> Bools:
    """Pick the largest eligible set (n_variables, n_classes) from `sets` (n_variables, n_sets, n_classes).

    Among equally large sets, the set with the smallest sum of the `statistic` of pairs of classes is picked.
    """
    sizes = np.where(eligible, sets.sum(axis=2), 0)
    member = sets.astype(np.float64)
    within = np.einsum("jga,jab,jgb->jg", member, statistic, member)
    eligible &= sizes == sizes.max(axis=1, keepdims=True)
    within = np.where(eligible, within, np.inf)
    # If sums are equal up to rounding, the union of the sets, so that the order of classes does not matter.
    eligible &= within <= within.min(axis=1, keepdims=True) * (1.0 + 1e-9) + 1e-9
    return np.asarray((sets & eligible[:, :, np.newaxis]).any(axis=1))

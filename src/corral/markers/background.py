"""The background of each variable: the classes that are alike in it.

Two classes differ if their difference is significant at the significance level over the number of pairs, and
not negligible. Among the sets of classes of which no two differ, the background is the largest one, if most
classes belong to it. Where there is none, a smaller set will do that is wider than the other classes rather
than high or low: most classes may be concentrated, each in its own way, where the rest are spread out.
Otherwise the variable has no background, as where all classes lie at different places. Each of two classes is
the other's background.
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
    """Logarithms of p-values and largest squared statistics (n_variables, n_classes, n_classes) of all pairs.

    A p-value is 1 where the difference is significant but negligible for the first class, and where no pair
    of a variable can differ significantly at all.
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
        # Effects matter only where there is significance.
        significant = p <= np.log(significance_level)
        j, a, b = j[significant], a[significant], b[significant]
        first, second = first[significant], second[significant]
        _, effects = effects_between(first, second)
        log_p[j, a, b] *= size_of_difference(first, second, effects) >= min_effect
        log_p[j, b, a] *= size_of_difference(second, first, effects) >= min_effect
    return log_p, statistic


def _may_differ(table: ValueCounts, significance_level: float) -> Bools:
    """Whether the two largest classes of each variable (n_variables,) have enough rows for a small p-value.

    A p-value of a pair matters if it is at most the significance level over the number of classes that a
    class need not differ from (see `contrast`); the significance level over the number of pairs is less.
    """
    active = table.active
    n_active = active.sum(axis=1)
    sizes = np.sort(np.where(active, table.counts.sum(axis=2), 0.0), axis=1)
    # The least p-value: two of all ways to share out the rows.
    least = np.log(2.0) - log_choose(sizes[:, -1], sizes[:, -2:].min(axis=1))
    return np.asarray(
        (n_active >= 2) & (least <= np.log(significance_level / np.maximum(n_active - n_active // 2, 1)))
    )


def find_background(
    table: ValueCounts, log_p: Floats, statistic: Floats, significance_level: float, min_effect: float
) -> Bools:
    """Classes (n_variables, n_classes) of the background, by what `compare_pairs` returns."""
    active = table.active
    n_active = active.sum(axis=1)
    n_pairs = np.maximum(n_active * (n_active - 1) // 2, 1)
    is_negligible = log_p > np.log(significance_level / n_pairs)[:, np.newaxis, np.newaxis]
    comparable = active[:, :, np.newaxis] & active[:, np.newaxis, :]
    alike = is_negligible & is_negligible.swapaxes(1, 2) & comparable
    background = np.asarray(active & (n_active >= 2)[:, np.newaxis])
    # In most variables of a large table all classes are alike, and nothing is left to do.
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
    """From each class, the set that grows by the nearest class that is like all its classes so far."""
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
    """Which sets of classes are wide, more than high or low, against the rows of all other classes."""
    rest = active[:, np.newaxis, :] & ~sets
    _, (location, spread, *_) = effects_between(
        sets.astype(np.float64) @ counts, rest.astype(np.float64) @ counts
    )
    return np.asarray((spread >= min_effect) & (spread > np.abs(location)))


def _best_set(sets: Bools, eligible: Bools, statistic: Floats) -> Bools:
    """The largest eligible set, of equally large ones that whose classes are nearest to each other."""
    sizes = np.where(eligible, sets.sum(axis=2), 0)
    member = sets.astype(np.float64)
    within = np.einsum("jga,jab,jgb->jg", member, statistic, member)
    eligible &= sizes == sizes.max(axis=1, keepdims=True)
    within = np.where(eligible, within, np.inf)
    # Equal but for rounding: their union, so that the order of the classes does not matter.
    eligible &= within <= within.min(axis=1, keepdims=True) * (1.0 + 1e-9) + 1e-9
    return np.asarray((sets & eligible[:, :, np.newaxis]).any(axis=1))

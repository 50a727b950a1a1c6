r"""What missing values change, on average, in the log density and the log odds of a class at its own rows.

So that rows with different values missing can be compared, the number :math:`l_y(x)` of a row of class y is
taken to change by :math:`\sum_{j \in J} g_{yj}` on average if the variables J are missing. The changes are
learnt from training rows of which values are removed at random: a ridge regression of the differences on the
removed variables. All variables count alike at first; then each has a deviation from that, and another one in
each class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.subsample import evenly_spaced

# How many rows with removed values the changes are learnt from, and the shares of values that are removed.
_N_ROWS = 1000
_LEAST_REMOVED, _MOST_REMOVED = 0.05, 0.6

# Larger differences come from classes that are ruled out.
_LARGEST = 1e50


class ExpectedChanges(NamedTuple):
    """What the values that samples lack change, on average."""

    # unscaled_score, odds: (n_samples, n_classes) changes of unscaled scores and of log odds
    unscaled_score: Floats
    odds: Floats
    present: Floats  # (n_samples,) shares of the used variables that have a value; of one variable at least
    # (n_samples,) whether no used variable has a value: such a sample is as typical as any row
    has_none: Bools


def expected_changes(missing: Bools, used: Bools, changes: Floats) -> ExpectedChanges:
    """What the values `missing` (n_samples, n_features) change, on average.

    `changes` (2, n_classes, n_features) are what likenesses and log odds of a class's own rows gain if a
    variable is missing, and `used` (n_features,) the variables that both depend on.
    """
    n_used = int(used.sum())
    n_present = n_used - missing[:, used].sum(axis=1)
    unscaled_score, odds = missing.astype(np.float64) @ changes.swapaxes(1, 2)
    present, has_none = np.maximum(n_present, 1) / max(n_used, 1), (n_present == 0) & (n_used > 0)
    return ExpectedChanges(unscaled_score, odds, present, has_none)


def draw_removals(X: Floats, used: Bools) -> tuple[Integers, Bools]:
    """Remove values of used variables from every row several times, or from a subsample of many rows.

    Returns positions of rows (n_removals,) and the values removed (n_removals, n_features). At least one of
    the values of a row stays. The order of rows does not matter.
    """
    random = np.random.RandomState(0)
    by_value = np.lexsort(np.nan_to_num(X).T)
    rows = np.resize(by_value, _N_ROWS) if len(X) < _N_ROWS else by_value[evenly_spaced(len(X), _N_ROWS)]
    rates = random.permutation(np.linspace(_LEAST_REMOVED, _MOST_REMOVED, rows.size))
    keys = random.uniform(size=(rows.size, X.shape[1]))
    can_go = ~np.isnan(X[rows]) & used
    removed = can_go & (keys < rates[:, np.newaxis])
    stays = np.where(can_go, keys, -1.0).argmax(axis=1)
    removed[np.arange(rows.size), stays] = False
    return rows, removed


def learn_changes(
    difference: Floats, removed: Bools, codes: Integers, weights: Floats, n_classes: int, used: Bools
) -> Floats:
    """Learn changes (n_classes, n_features) from rows with removed values and the same rows as they are.

    `difference` (n_removals,) is that of the number in the class of each row, `removed` (n_removals,
    n_features) says which values were removed, and the number depends on the variables `used` (n_features,).
    """
    changes = np.zeros((n_classes, used.size))
    usable = (weights > 0.0) & (np.abs(difference) < _LARGEST)  # neither infinite nor of certain classes
    difference, codes, weights = difference[usable], codes[usable], weights[usable]
    design = removed[usable][:, used].astype(np.float64)
    count = design.sum(axis=1)
    total = weights @ count**2
    if total == 0.0:
        return changes
    common = float(weights @ (count * difference) / total)
    rest = difference - common * count
    # A deviation of one variable is taken to be as large as the common change.
    penalty = float(weights @ rest**2 / weights.sum()) / max(common**2, 1e-12)
    shared = _ridge(design, rest, weights, penalty)
    rest = rest - design @ shared
    for y in range(n_classes):
        members = codes == y
        own = _ridge(design[members], rest[members], weights[members], penalty)
        changes[y, used] = common + shared + own
    return changes


def _ridge(design: Floats, response: Floats, weights: Floats, penalty: float) -> Floats:
    """Coefficients (n_variables,) of a weighted ridge regression, by its dual where variables are many."""
    if not response.size:
        return np.zeros(design.shape[1])
    roots = np.sqrt(weights / weights.max())
    design, response = design * roots[:, np.newaxis], response * roots
    gram = design @ design.T
    gram.flat[:: len(gram) + 1] += max(penalty, 1e-9)
    coefficients: Floats = design.T @ np.linalg.solve(gram, response)
    return coefficients

r"""How much missing values change, on average, the unscaled score and the log odds of a class at its rows.

Scores of rows with different missing values are compared after the expected change is subtracted. If the
variables J of a row of class y are missing, the change of its unscaled score or log odds is taken to be
:math:`\sum_{j \in J} g_{yj}` on average. The :math:`g_{yj}` are learnt from training rows in which values are
removed at random: a regression of the observed changes on the removed variables. Each :math:`g_{yj}` is the
sum of a change common to all variables, a deviation of variable j, and a further deviation of j in class y.
Both deviations are estimated by ridge regression.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.subsample import evenly_spaced

# The number of rows with removed values, and the least and largest share of removed values in a row.
_N_ROWS = 1000
_LEAST_REMOVED, _MOST_REMOVED = 0.05, 0.6

# A larger difference means that the log odds come from a class that is ruled out: the row is not used.
_LARGEST = 1e50


class ExpectedChanges(NamedTuple):
    """Average changes of scores by the missing values of samples.

    Used variables are the variables on which the densities depend.
    """

    unscaled_score: Floats  # (n_samples, n_classes) changes of unscaled scores
    odds: Floats  # (n_samples, n_classes) changes of log odds
    # (n_samples,) shares of the used variables that have a value; at least the share of one variable
    present: Floats
    # (n_samples,) whether all used variables are missing: such a sample is as typical as any row
    has_none: Bools


def expected_changes(missing: Bools, used: Bools, changes: Floats) -> ExpectedChanges:
    """Compute the average changes of scores if the values `missing` (n_samples, n_features) are missing.

    `changes` (2, n_classes, n_features) are the changes of unscaled scores and of log odds of a class at its
    rows for each missing variable. `used` (n_features,) are the variables on which the densities depend.
    """
    n_used = int(used.sum())
    n_present = n_used - missing[:, used].sum(axis=1)
    unscaled_score, odds = missing.astype(np.float64) @ changes.swapaxes(1, 2)
    present, has_none = np.maximum(n_present, 1) / max(n_used, 1), (n_present == 0) & (n_used > 0)
    return ExpectedChanges(unscaled_score, odds, present, has_none)


def draw_removals(X: Floats, used: Bools) -> tuple[Integers, Bools]:
    """Choose values of used variables to remove from rows at random.

    A small table is repeated, so that each row has values removed several times; a large table is subsampled.
    Returns positions of rows (n_removals,) and which values are removed (n_removals, n_features). Each row
    keeps at least one value that it has. The result does not depend on the order of rows.
    """
    random = np.random.RandomState(0)
    by_value = np.lexsort(np.nan_to_num(X).T)
    rows = np.resize(by_value, _N_ROWS) if len(X) < _N_ROWS else by_value[evenly_spaced(len(X), _N_ROWS)]
    rates = random.permutation(np.linspace(_LEAST_REMOVED, _MOST_REMOVED, rows.size))
    keys = random.uniform(size=(rows.size, X.shape[1]))
    removable = ~np.isnan(X[rows]) & used
    removed = removable & (keys < rates[:, np.newaxis])
    retained = np.where(removable, keys, -1.0).argmax(axis=1)
    removed[np.arange(rows.size), retained] = False
    return rows, removed


def learn_changes(
    difference: Floats, removed: Bools, codes: Integers, weights: Floats, n_classes: int, used: Bools
) -> Floats:
    """Estimate the change (n_classes, n_features) of a score by each missing variable.

    Parameters
    ----------
    difference : (n_removals,) score of each row in its class after the removal of values, less the score
        before.
    removed : (n_removals, n_features) which values were removed.
    codes, weights : (n_removals,) class codes and weights of the rows.
    n_classes : number of classes.
    used : (n_features,) the variables on which the score depends.
    """
    changes = np.zeros((n_classes, used.size))
    usable = (weights > 0.0) & (np.abs(difference) < _LARGEST)  # False for NaN as well
    difference, codes, weights = difference[usable], codes[usable], weights[usable]
    design = removed[usable][:, used].astype(np.float64)
    count = design.sum(axis=1)
    total = weights @ count**2
    if total == 0.0:
        return changes
    common = float(weights @ (count * difference) / total)
    rest = difference - common * count
    # The ridge penalty of a prior in which deviations of variables are about as large as the common change.
    penalty = float(weights @ rest**2 / weights.sum()) / max(common**2, 1e-12)
    shared = _ridge(design, rest, weights, penalty)
    rest = rest - design @ shared
    for y in range(n_classes):
        members = codes == y
        own = _ridge(design[members], rest[members], weights[members], penalty)
        changes[y, used] = common + shared + own
    return changes


def _ridge(design: Floats, response: Floats, weights: Floats, penalty: float) -> Floats:
    """Coefficients (n_variables,) of a weighted ridge regression, computed in its dual form."""
    if not response.size:
        return np.zeros(design.shape[1])
    roots = np.sqrt(weights / weights.max())
    design, response = design * roots[:, np.newaxis], response * roots
    gram = design @ design.T
    gram.flat[:: len(gram) + 1] += max(penalty, 1e-9)
    coefficients: Floats = design.T @ np.linalg.solve(gram, response)
    return coefficients

"""A quick model that predicts the labels, to measure how much a problem of the table changes the accuracy.

The model is a forest of extremely randomized trees on ranks, so units and long tails do not matter. Fitting
takes about a second for 10,000 rows of 50 columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.subsample import random_rows

if TYPE_CHECKING:
    import pandas as pd

# Number of trees for out-of-bag probabilities, and for each fold if accuracies are compared.
_TREES, _TREES_OF_FOLD = 100, 30
# Leaves of one row would make probabilities 0 or 1 even if classes overlap.
_ROWS_OF_LEAF = 2
_VARIABLES_TRIED = 0.5

_FOLDS = 3

# Largest numbers of rows and cells that are used.
_MOST_ROWS, _MOST_CELLS = 10_000, 500_000


def ranked_columns(coded: pd.DataFrame) -> Floats:
    """Return the ranks (n_rows, n_columns) of the values in each column; NaN for a missing value."""
    ranks: Floats = coded.rank(method="dense").to_numpy(np.float64)
    return ranks


def modelled_rows(rows: Integers, n_columns: int, part: int = 1) -> Integers:
    """Return a subsample of rows that is small enough for a quick model, divided by `part`."""
    size = min(_MOST_ROWS, _MOST_CELLS // max(n_columns, 1)) // part
    return rows[random_rows(rows.size, size, np.random.default_rng(0))]


def left_out_probabilities(X: Floats, codes: Integers) -> Floats:
    """Return the out-of-bag probabilities (n_rows, n_classes) of the classes."""
    forest = _forest(_TREES, bootstrap=True, oob_score=True).fit(X, codes)
    probabilities: Floats = np.nan_to_num(forest.oob_decision_function_)
    return probabilities


def held_out_hits(X: Floats, codes: Integers, group_ids: Integers) -> Bools:
    """Return whether each row (n_rows,) is predicted right with its group held out, in stratified folds."""
    _, first, group = np.unique(group_ids, return_index=True, return_inverse=True)
    folds = np.empty(first.size, dtype=np.int64)
    order = np.lexsort((np.random.default_rng(0).random(first.size), codes[first]))
    folds[order] = np.arange(first.size) % _FOLDS
    hits = np.zeros(codes.size, dtype=np.bool_)
    for fold in range(_FOLDS):
        hits |= predicted_hits(X, codes, folds[group] == fold)
    return hits


def predicted_hits(X: Floats, codes: Integers, held_out: Bools) -> Bools:
    """Return which rows (n_rows,) are held out and predicted right by a model of all other rows."""
    hits = np.zeros(codes.size, dtype=np.bool_)
    if held_out.any() and not held_out.all():
        model = _forest(_TREES_OF_FOLD).fit(X[~held_out], codes[~held_out])
        hits[held_out] = model.predict(X[held_out]) == codes[held_out]
    return hits


def _forest(n_trees: int, **options: Any) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(
        n_trees, max_features=_VARIABLES_TRIED, min_samples_leaf=_ROWS_OF_LEAF, random_state=0, **options
    )

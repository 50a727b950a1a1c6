"""A quick model of the labels, which measures what a fault does to predictions.

It is a forest of extremely randomized trees on the ranks of the values, so that neither units nor long tails
matter. It takes about a second for 10,000 rows of 50 columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.subsample import random_rows

if TYPE_CHECKING:
    import pandas as pd

# Trees that give one row its left-out probabilities, and trees of each fold where accuracies are compared.
_TREES, _TREES_OF_FOLD = 100, 30
# Leaves of one row would make probabilities of 0 and 1 where classes overlap.
_ROWS_OF_LEAF = 2
_VARIABLES_TRIED = 0.5

_FOLDS = 3

# Bounds of the work, in rows and in cells.
_MOST_ROWS, _MOST_CELLS = 10_000, 500_000


def ranked_columns(coded: pd.DataFrame) -> Floats:
    """Ranks (n_rows, n_columns) of the values of columns, NaN where one is missing."""
    ranks: Floats = coded.rank(method="dense").to_numpy(np.float64)
    return ranks


def modelled_rows(rows: Integers, n_columns: int, part: int = 1) -> Integers:
    """A subsample of rows that takes seconds, or one `part`-th of that time; all rows if they are few."""
    size = min(_MOST_ROWS, _MOST_CELLS // max(n_columns, 1)) // part
    return rows[random_rows(rows.size, size, np.random.default_rng(0))]


def left_out_probabilities(X: Floats, codes: Integers) -> Floats:
    """Probabilities (n_rows, n_classes) of the classes by trees that were trained without the row."""
    forest = _forest(_TREES, bootstrap=True, oob_score=True).fit(X, codes)
    probabilities: Floats = np.nan_to_num(forest.oob_decision_function_)
    return probabilities


def held_out_hits(X: Floats, codes: Integers, group_ids: Integers) -> Bools:
    """Which rows get their label by a model of other groups; each fold has its share of every class."""
    _, first, group = np.unique(group_ids, return_index=True, return_inverse=True)
    folds = np.empty(first.size, dtype=np.int64)
    order = np.lexsort((np.random.default_rng(0).random(first.size), codes[first]))
    folds[order] = np.arange(first.size) % _FOLDS
    hits = np.zeros(codes.size, dtype=np.bool_)
    for fold in range(_FOLDS):
        hits |= predicted_hits(X, codes, folds[group] == fold)
    return hits


def predicted_hits(X: Floats, codes: Integers, held_out: Bools) -> Bools:
    """Which rows (n_rows,) are held out and get their label by a model of all others."""
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

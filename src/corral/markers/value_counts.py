"""Counts of the values of a variable in each class, which rank tests compare.

Counts are effective numbers of rows: they allow for weights and for groups of similar rows. A cell is one
value of a variable, or several neighboring values if the variable has very many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.weights import effective_weights, weights_or_ones
from corral.markers.group_effects import Clusters, effects_of_groups

# The size of the arrays of a block of variables, or of tests, that are processed at once.
BLOCK = 200_000

# A column with more distinct values is divided into about this many cells with similar numbers of rows. Cells
# do not depend on the classes, so all tests stay exact. The number is even, so that a mirrored column has the
# mirrored cells.
_MAX_CELLS = 500

# A class with a smaller effective number of rows is not compared.
_MIN_ROWS = 3


class ValueCounts(NamedTuple):
    """Counts of the values of several variables in each class."""

    # (n_variables, n_classes, n_cells) effective numbers of rows; variables with fewer cells are padded by
    # cells without rows
    counts: Floats
    values: Floats  # (n_variables, n_cells) the value of the middle row of each cell
    n_values: Integers  # (n_variables,) numbers of distinct values
    clusters: Clusters  # (n_variables, n_classes) groups of each class; empty if there are no groups

    @property
    def active(self) -> Bools:
        """Whether each class has enough rows to be compared (n_variables, n_classes)."""
        return np.asarray(self.counts.sum(axis=2) >= _MIN_ROWS - 1e-9)


def count_values(
    X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers | None
) -> Iterator[ValueCounts]:
    """Yield the counts of blocks of variables.

    X is (n_rows, n_features); `codes`, `weights` and `groups` are (n_rows,). `groups` is None if there are no
    groups.
    """
    n, d = X.shape
    n_groups = 0 if groups is None else int(groups.max(initial=0)) + 1
    step = max(1, BLOCK // max(n_classes * max(min(n, _MAX_CELLS), n_groups), n))
    for first in range(0, d, step):
        yield _count_block(X[:, first : first + step], codes, n_classes, weights, groups)


def _count_block(
    X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers | None
) -> ValueCounts:
    worth, clusters = effects_of_groups(X, codes, n_classes, weights, groups)
    values = np.ascontiguousarray(X.T)
    order = np.argsort(values, axis=1, kind="stable")  # missing values last
    values = np.take_along_axis(values, order, axis=1)
    m, present = len(values), ~np.isnan(values)
    rows = np.arange(m)[:, np.newaxis] * n_classes + codes[order]
    effective = effective_weights(np.where(present, weights[order], 0.0), rows, m * n_classes)
    effective *= worth.ravel()[rows]
    is_new = present.copy()
    is_new[:, 1:] &= values[:, 1:] != values[:, :-1]
    cells = np.maximum(is_new.cumsum(axis=1) - 1, 0)
    n_values = is_new.sum(axis=1)
    for j in np.flatnonzero(n_values > _MAX_CELLS):
        cells[j] = _coarse(cells[j], effective[j])
    n_cells = int(cells.max(initial=0)) + 1
    counts = np.bincount((rows * n_cells + cells).ravel(), effective.ravel(), m * n_classes * n_cells)
    # The value of a cell is the value of its middle row.
    variables = np.arange(m)[:, np.newaxis] * n_cells
    n_rows = np.bincount((variables + cells).ravel(), present.ravel(), m * n_cells).reshape(m, n_cells)
    middle = (n_rows.cumsum(axis=1) - n_rows + (n_rows - 1) // 2).astype(np.int64)
    return ValueCounts(
        counts=counts.astype(np.float64).reshape(m, n_classes, n_cells),
        values=np.take_along_axis(values, np.clip(middle, 0, values.shape[1] - 1), axis=1),
        n_values=n_values,
        clusters=clusters,
    )


def _coarse(cells: Integers, weights: Floats) -> Integers:
    """Merge neighboring cells with nearly equal mid-ranks; equal values stay in one cell."""
    counts = np.bincount(cells, weights)
    share = (counts.cumsum() - counts / 2.0) / counts.sum()
    # Rounded to six decimals first, so that rounding errors do not decide between two cells.
    coarse = np.rint(np.round(_MAX_CELLS * share, 6))
    merged = np.concatenate([[0], (np.diff(coarse) != 0).cumsum()])
    return np.asarray(merged[cells])


def category_counts(
    x: Floats, codes: Integers, weights: Floats | None, n_classes: int, n_categories: int
) -> Floats:
    """Sum the weights (n_classes, n_categories) of the rows of each class with each category.

    x (n_rows,) are codes of categories, NaN for missing values; `codes` (n_rows,) are codes of classes.
    """
    present = ~np.isnan(x)
    cells = codes[present] * n_categories + x[present].astype(np.int64)
    weights = weights_or_ones(weights, len(x))[present]
    counts = np.bincount(cells, weights, n_classes * n_categories).astype(np.float64)
    return counts.reshape(n_classes, n_categories)

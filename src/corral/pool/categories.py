"""Variables with categories: their kernels, and how often each category occurs in a class.

Where rows are shrunk towards the mean of their class, a row with category l has the probabilities
:math:`(1 - h^2) [l = l'] + h^2 p_y(l')`, which keep the frequencies :math:`p_y` of the class as a shrunk
kernel keeps its covariance: h = 1 is naive Bayes. Other kernels are as in `rodeo.factors`. Frequencies are
shrunk towards the frequencies in all classes, as if rows with these were added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corral.array_types import LARGEST_INTEGER, Bools, Floats, Integers, check_array, check_positions
from corral.data.dataset import LabelledRows
from corral.data.weights import weights_or_ones

# Where values repeat, so many rows with the variance or frequencies of all classes are added to each class,
# since a class may not have had another value yet.
EXTRA_ROWS = 2.0


class CategoryKernels(NamedTuple):
    """Kernels of a class in the variables with categories."""

    columns: Integers  # (n_columns,) which they are
    # for each of them (n_categories,) logarithms of the frequencies in the class
    log_shares: Sequence[Floats]
    # (n_columns,) inverse squared bandwidths where the common one is 1, or None if rows are shrunk towards
    # the frequencies
    precision: Floats | None

    def validate(self) -> None:
        """Refuse frequencies out of range, or not as many as the columns."""
        check_positions("columns", self.columns, LARGEST_INTEGER)
        if len(self.log_shares) != self.columns.size:
            raise ValueError(f"log_shares is not a list of {self.columns.size}")
        for log_share in self.log_shares:
            check_array("log_shares", log_share, (None,), -1e3, 0.0)
        if self.precision is not None:
            check_array("precision", self.precision, (self.columns.size,), 0.0, 1e30)

    @property
    def sizes(self) -> Integers:
        """(n_columns,) numbers of categories."""
        return np.array([log_share.size for log_share in self.log_shares], dtype=np.int64)

    @property
    def offsets(self) -> Integers:
        """(n_columns,) where the categories of each column begin if all are in one row."""
        return np.cumsum([0, *self.sizes])[:-1].astype(np.int64)

    def log_shares_at(self, x: Floats) -> Floats:
        """Logarithms of the frequencies of categories (n_samples, n_columns); 0 for missing values."""
        log_shares = np.zeros(x.shape)
        for k, log_share in enumerate(self.log_shares):
            has = ~np.isnan(x[:, k])
            log_shares[has, k] = log_share[x[has, k].astype(np.int64)]
        return log_shares

    def exponents(self, bandwidths: Floats) -> Floats:
        """Exponents (n_bandwidths, 3, n_categories), by the category of a row: equal, another, missing."""
        log_p, sizes = np.concatenate([np.zeros(0), *self.log_shares]), self.sizes
        precision = None if self.precision is None else np.repeat(self.precision, sizes)
        by_row = category_exponents(log_p, np.repeat(sizes, sizes), precision, bandwidths[:, np.newaxis])
        return np.stack(np.broadcast_arrays(*by_row), axis=1)


def category_exponents(
    log_p: Floats, sizes: Integers, precision: Floats | None, h: Floats | float
) -> tuple[Floats, Floats, Floats]:
    """Exponents of categories with frequencies p, by the category of a row: equal, another, missing.

    `sizes` are the numbers of categories of their columns, `precision` is that of `CategoryKernels`, and `h`
    are bandwidths; they broadcast with `log_p`.
    """
    if precision is None:
        log_far = 2.0 * np.log(h) + log_p
        return -np.logaddexp(np.log(np.maximum(1.0 - h**2, 1e-300)), log_far), -log_far, -log_p
    half = 0.5 * precision / h**2
    equal = np.log1p((sizes - 1.0) * np.exp(-half))
    return equal, equal + half, -log_p


class CategoriesOfRows(NamedTuple):
    """Categories of rows as compiled loops read them: (n_columns, n_rows), and whether some row has none."""

    c: Floats
    has_missing: Bools

    @classmethod
    def from_rows(cls, rows: Floats, columns: Integers) -> CategoriesOfRows:
        """Take the columns with categories from scaled rows."""
        c = np.ascontiguousarray(rows[:, columns].T)
        return cls(c, np.asarray(np.isnan(c).any(axis=1)))


def learn_category_kernels(
    scaled: Floats,
    codes: Integers,
    weights: Floats | None,
    n_classes: int,
    n_categories: Integers,
    *,
    shrunk: bool,
) -> list[CategoryKernels]:
    """Frequencies of categories in each class, shrunk towards the frequencies in all classes."""
    weights = weights_or_ones(weights, len(codes))
    columns = np.flatnonzero(n_categories)
    log_shares: list[list[Floats]] = [[] for _ in range(n_classes)]
    for j in columns.tolist():
        n_values = int(n_categories[j])
        counts = _category_counts(scaled[:, j], codes, weights, n_classes, n_values)
        shares = _shrunk_shares(counts, counts.sum(axis=1, keepdims=True), n_values)
        for y in range(n_classes):
            log_shares[y].append(np.log(shares[y]))
    precision = None if shrunk else np.ones(columns.size)
    return [CategoryKernels(columns, class_log_shares, precision) for class_log_shares in log_shares]


class CategoryCounts:
    """How often categories occur, so that rows can be left out of their frequencies.

    Parameters
    ----------
    data : the rows.
    """

    def __init__(self, data: LabelledRows) -> None:
        self._data = data
        self._columns = np.flatnonzero(data.category_counts)
        rows = data.codes, data.all_weights, data.labels.size
        self._counts = [
            _category_counts(data.X[:, j], *rows, int(data.category_counts[j])) for j in self._columns
        ]

    def log_shares_without(self, group_ids: Integers, X: Floats) -> Floats:
        """Logarithms (n_classes, n_samples, n_columns) of the frequencies of samples' categories.

        Without the rows of the group (n_samples,) that each sample leaves out. 0 for missing values of the
        samples (n_samples, n_features).
        """
        data, n_classes, n = self._data, self._data.labels.size, len(X)
        sample, row = np.nonzero(group_ids[:, np.newaxis] == data.group_ids)
        cell, weights = data.codes[row] * n + sample, data.all_weights[row]
        log_shares = np.zeros((n_classes, n, self._columns.size))
        for k, (j, counts) in enumerate(zip(self._columns, self._counts, strict=True)):
            has = ~np.isnan(X[:, j])
            category = np.where(has, X[:, j], 0.0).astype(np.int64)
            leaving = weights * ~np.isnan(data.X[row, j])
            totals = counts.sum(axis=1, keepdims=True) - _sums(cell, leaving, n_classes, n)
            alike = leaving * (data.X[row, j] == category[sample])
            left = counts[:, category] - _sums(cell, alike, n_classes, n)
            shares = _shrunk_shares(np.maximum(left, 0.0), np.maximum(totals, 0.0), counts.shape[1])
            log_shares[:, :, k] = np.where(has, np.log(shares), 0.0)
        return log_shares


def _category_counts(x: Floats, codes: Integers, weights: Floats, n_classes: int, n_values: int) -> Floats:
    """Sums of weights (n_classes, n_values) of the rows with each category."""
    has = ~np.isnan(x)
    return _sums(codes[has] * n_values + x[has].astype(np.int64), weights[has], n_classes, n_values)


def _shrunk_shares(counts: Floats, totals: Floats, n_values: int) -> Floats:
    """Frequencies of categories, shrunk as if rows with the frequencies in all classes were added.

    `counts` (n_classes, n_cells) count rows with one category, and `totals` count rows with any.
    """
    pooled = (counts.sum(axis=0) + 1.0 / n_values) / (totals.sum(axis=0) + 1.0)
    shares: Floats = (counts + EXTRA_ROWS * pooled) / (totals + EXTRA_ROWS)
    return shares


def _sums(cell: Integers, values: Floats, n_classes: int, n: int) -> Floats:
    """Sums (n_classes, n) of values by cell."""
    sums: Floats = np.bincount(cell, values, minlength=n_classes * n).astype(np.float64)
    return sums.reshape(n_classes, n)

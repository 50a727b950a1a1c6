"""Variables with categories: kernels, and frequencies of categories in each class.

In members with shrunk kernels (see `kernel_members`), the kernel on a row with category l has the
probabilities :math:`(1 - h^2) [l = l'] + h^2 p_y(l')` for a sample with category l', where :math:`p_y` are
the frequencies in class y and h is the bandwidth. The mean of these kernels over the class keeps the
frequencies. With h = 1 this is naive Bayes. In other members kernels are as in `rodeo.factors`. Frequencies
in a class are shrunk towards the frequencies in all classes: `EXTRA_ROWS` rows with the frequencies in all
classes are added to the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corral.array_types import LARGEST_INTEGER, Bools, Floats, Integers, check_array, check_positions
from corral.data.dataset import LabelledRows
from corral.data.weights import weights_or_ones

# Number of rows, with the frequencies (or, if values repeat, the variance) of all classes, that are added to
# each class. Otherwise a value that does not occur in the training rows of a class would be impossible in it.
EXTRA_ROWS = 2.0


class CategoryKernels(NamedTuple):
    """Kernels of one class in the variables with categories."""

    columns: Integers  # (n_columns,) indices of the columns with categories
    # for each column, the logarithms (n_categories,) of the frequencies of its categories in the class
    log_shares: Sequence[Floats]
    # (n_columns,) inverse squared bandwidths at a common bandwidth of 1; None for shrunk kernels
    precision: Floats | None

    def validate(self) -> None:
        """Raise ValueError if frequencies are out of range or their number is not the number of columns."""
        check_positions("columns", self.columns, LARGEST_INTEGER)
        if len(self.log_shares) != self.columns.size:
            raise ValueError(f"log_shares does not have {self.columns.size} entries")
        for log_share in self.log_shares:
            check_array("log_shares", log_share, (None,), -1e3, 0.0)
        if self.precision is not None:
            check_array("precision", self.precision, (self.columns.size,), 0.0, 1e30)

    @property
    def sizes(self) -> Integers:
        """(n_columns,) number of categories of each column."""
        return np.array([log_share.size for log_share in self.log_shares], dtype=np.int64)

    @property
    def offsets(self) -> Integers:
        """(n_columns,) position of the first category of each column if all categories are concatenated."""
        return np.cumsum([0, *self.sizes])[:-1].astype(np.int64)

    def log_shares_at(self, x: Floats) -> Floats:
        """Return log frequencies of the categories `x` (n_samples, n_columns); 0 for missing values."""
        log_shares = np.zeros(x.shape)
        for k, log_share in enumerate(self.log_shares):
            has = ~np.isnan(x[:, k])
            log_shares[has, k] = log_share[x[has, k].astype(np.int64)]
        return log_shares

    def exponents(self, bandwidths: Floats) -> Floats:
        """Return exponents (n_bandwidths, 3, n_categories) of the categories of a sample, concatenated.

        The second axis is the value of the row: the same category, another category, or missing.
        """
        log_p, sizes = np.concatenate([np.zeros(0), *self.log_shares]), self.sizes
        precision = None if self.precision is None else np.repeat(self.precision, sizes)
        by_row = category_exponents(log_p, np.repeat(sizes, sizes), precision, bandwidths[:, np.newaxis])
        return np.stack(np.broadcast_arrays(*by_row), axis=1)


def category_exponents(
    log_p: Floats, sizes: Integers, precision: Floats | None, h: Floats | float
) -> tuple[Floats, Floats, Floats]:
    """Return exponents of kernels at the category of a sample, for three values of the row.

    The row has the same category, another category, or a missing value. All parameters broadcast.

    Parameters
    ----------
    log_p : logarithms of the frequencies of the categories of samples.
    sizes : numbers of categories of the columns.
    precision : see `CategoryKernels`.
    h : bandwidths.
    """
    if precision is None:
        log_far = 2.0 * np.log(h) + log_p
        return -np.logaddexp(np.log(np.maximum(1.0 - h**2, 1e-300)), log_far), -log_far, -log_p
    half = 0.5 * precision / h**2
    equal = np.log1p((sizes - 1.0) * np.exp(-half))
    return equal, equal + half, -log_p


class CategoriesOfRows(NamedTuple):
    """Categories of rows in the layout of the compiled loops."""

    c: Floats  # (n_columns, n_rows) codes of categories, NaN for missing values
    has_missing: Bools  # (n_columns,) whether the value of at least one row is missing

    @classmethod
    def from_rows(cls, rows: Floats, columns: Integers) -> CategoriesOfRows:
        """Select the columns with categories from scaled rows (n_rows, n_features)."""
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
    """Fit the category kernels of each class.

    Frequencies are shrunk towards the frequencies in all classes.

    Parameters
    ----------
    scaled : (n_rows, n_features) rows; columns with categories have codes of categories.
    codes, weights : (n_rows,) class codes and weights of the rows; weights of None are equal.
    n_classes : number of classes.
    n_categories : (n_features,) number of categories of each column, 0 for a numeric column.
    shrunk : whether the kernels are shrunk kernels.
    """
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
    """Counts of categories, from which frequencies without some of the rows are computed.

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
        """Return log frequencies (n_classes, n_samples, n_columns) of the categories of samples.

        The rows of group `group_ids[i]` are left out of the frequencies for sample i. Missing values have 0.

        Parameters
        ----------
        group_ids : (n_samples,) id of the group to leave out for each sample.
        X : (n_samples, n_features) samples.
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
    """Return sums of weights (n_classes, n_values) of the rows with each category."""
    has = ~np.isnan(x)
    return _sums(codes[has] * n_values + x[has].astype(np.int64), weights[has], n_classes, n_values)


def _shrunk_shares(counts: Floats, totals: Floats, n_values: int) -> Floats:
    """Return shrunk frequencies (n_classes, n_cells) of categories; see the module docstring.

    A cell is a category, or a sample with its category. `counts` (n_classes, n_cells) are the numbers of rows
    with the category, and `totals` the numbers of rows whose value is not missing.
    """
    pooled = (counts.sum(axis=0) + 1.0 / n_values) / (totals.sum(axis=0) + 1.0)
    shares: Floats = (counts + EXTRA_ROWS * pooled) / (totals + EXTRA_ROWS)
    return shares


def _sums(cell: Integers, values: Floats, n_classes: int, n: int) -> Floats:
    """Return sums (n_classes, n) of values; `cell` is class code times n plus position."""
    sums: Floats = np.bincount(cell, values, minlength=n_classes * n).astype(np.float64)
    return sums.reshape(n_classes, n)

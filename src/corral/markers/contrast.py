"""Markers of each class: the variables in which the class differs from the background of the variable.

The background of a variable is a set of classes that do not differ in it (`background`). A class is compared
with the rows of the other classes of the background by the tests of `rank_tests`. All results depend only on
ranks, so increasing transformations of a column do not change them.

If a variable has no background, it can be a marker of the classes that differ from at least half of the other
classes. Let K be the number of classes and r = K // 2. The p-value of a class is K - r times the r-th
smallest of its p-values against single classes (a partial conjunction), and its effect is the effect against
all other rows.

The p-values of a class are multiplied by the number of variables that are not constant.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import special

from corral.array_types import Bools, Floats, Integers, check_array
from corral.data.dataset import LabelledRows
from corral.data.weights import weights_or_ones
from corral.markers.background import compare_pairs, find_background
from corral.markers.group_effects import pvalues_with_groups
from corral.markers.rank_tests import effects_between, log_pvalues, size_of_difference
from corral.markers.value_counts import ValueCounts, count_values

# Conventionally, a Cliff's delta below 0.147 is negligible (Romano et al., 2006).
MIN_EFFECT = 0.15

SIGNIFICANCE_LEVEL = 0.01

# A row with a smaller share of the largest weight in its class is left out. It would not change the result of
# a test, but the test would fail numerically: if only this row keeps two samples from being separate, the
# slope of the logistic regression is almost infinite.
_NEGLIGIBLE_SHARE = 1e-12

# The number of categories of a variable that are compared one by one: the most frequent categories.
_MAX_FLAGS = 50


@dataclass(frozen=True, eq=False)
class Contrast:
    """How each class differs from its background in each variable.

    Arrays have the shape (n_classes, n_features) unless another shape is given. If a class is not comparable,
    for example because it has one or two rows or the column is constant, its p-value is 1 and its effect 0.
    """

    markers: Bools  # whether the variable is a marker: its difference is significant and not negligible
    pvalue: Floats  # p-values, adjusted for the number of variables
    statistic: Floats  # normal quantiles of the p-values before adjustment, with the sign of the effect
    # Cliff's delta against the background, P(class > background) - P(class < background), from -1 to 1
    effect: Floats
    comparable: Bools  # whether both sides have enough rows to compare, and their values differ
    background: Bools  # whether the class is in the background; False for all classes if there is none
    value: Floats  # code of the category that differs most significantly; NaN for measurements
    n_values: Integers  # (n_features,) numbers of distinct values

    def validate(self) -> None:
        """Raise ValueError if a shape is wrong or a number is infinite; NaN is allowed."""
        shapes = {"n_values": self.markers.shape[1:]}
        for name, array in ((field.name, getattr(self, field.name)) for field in fields(self)):
            check_array(name, array, shapes.get(name, self.markers.shape), nan=True)


def contrast(
    X: Floats,
    codes: Integers,
    n_classes: int,
    *,
    n_categories: Integers | None = None,
    weights: Floats | None = None,
    groups: Integers | None = None,
    significance_level: float = SIGNIFICANCE_LEVEL,
    min_effect: float = MIN_EFFECT,
) -> Contrast:
    """Find the markers of each class.

    Each category is tested as a flag, a column that is 1 in the rows with this category and 0 in other rows.
    A variable is described by its strongest flag: the category that is most significantly more frequent in
    the class or, if there is none, less frequent. The code of this category is the `value`.

    Parameters
    ----------
    X : (n_rows, n_features) values, or codes of categories; NaN for missing values. A row is left out of the
        tests of variables in which its value is missing.
    codes : (n_rows,) class codes, below `n_classes`.
    n_classes : number of classes; a class may have no rows.
    n_categories : (n_features,) numbers of categories, 0 for measurements; None if all are measurements.
    weights : (n_rows,) weights, of which only ratios within a class matter. The effective number of rows of
        a class is Kish's number (sum w)^2 / sum w^2.
    groups : (n_rows,) group codes, or None if there are no groups. The more alike the rows of a group are,
        the smaller is the effective number of rows of the class. No p-value is smaller than a permutation of
        whole groups allows (see `group_effects`).
    significance_level : largest probability that a class that differs from no other class gets a marker.
    min_effect : least size of a difference that is not negligible. The default is close to the conventional
        limit of Cliff's delta, a shift of about a quarter of a standard deviation. A flag that is 0 in all
        other classes is not negligible if it is 1 in at least 3.3% of the class.

    Returns
    -------
    Contrast
        Does not depend on the order of rows; row a of each array is class a.
    """
    weights = weights_or_ones(weights, len(X))
    if n_categories is not None and n_categories.any():
        columns, variable, category = _flag_columns(X, n_categories)
        by_column = contrast(
            columns,
            codes,
            n_classes,
            weights=weights,
            groups=groups,
            significance_level=significance_level,
            min_effect=min_effect,
        )
        return _strongest_columns(by_column, variable, category, n_categories)
    # Weights are divided by the largest weight of the class: squares of very small or large weights would
    # underflow or overflow.
    largest = np.zeros(n_classes)
    np.maximum.at(largest, codes, weights)
    shares = weights / np.where(largest > 0.0, largest, 1.0)[codes]
    present = shares > _NEGLIGIBLE_SHARE
    if groups is not None:
        groups = np.unique(groups[present], return_inverse=True)[1]
    tables = count_values(X[present], codes[present], n_classes, shares[present], groups)
    blocks = [_compare(table, significance_level, min_effect) for table in tables]
    arrays = ([getattr(block, field.name) for block in blocks] for field in fields(Contrast))
    joined = Contrast(*(np.concatenate(parts, axis=-1) for parts in arrays))
    n_varying = max(int((joined.n_values > 1).sum()), 1)
    pvalue = np.minimum(joined.pvalue * n_varying, 1.0)
    return replace(joined, pvalue=pvalue, markers=joined.markers & (pvalue <= significance_level))


def _flag_columns(X: Floats, n_categories: Integers) -> tuple[Floats, Integers, Integers]:
    """Make the columns to compare: flags for categories, and measurements unchanged.

    Returns the columns (n_rows, n_columns), the index of the variable of each column (n_columns,), and the
    code of the category of each flag (n_columns,), -1 for measurements.
    """
    columns, variable, category = [], [], []
    for j, n_values in enumerate(n_categories.tolist()):
        x, categories = X[:, j], [-1]
        if n_values:
            counts = np.bincount(x[~np.isnan(x)].astype(np.int64), minlength=n_values)
            categories = sorted(np.argsort(-counts, kind="stable")[:_MAX_FLAGS].tolist())
        columns += [np.where(np.isnan(x), np.nan, x == k) if n_values else x for k in categories]
        variable += [j] * len(categories)
        category += categories
    return np.stack(columns, axis=1), np.array(variable), np.array(category)


def _strongest_columns(
    by_column: Contrast, variable: Integers, category: Integers, n_categories: Integers
) -> Contrast:
    """Pick the strongest column of each variable for each class; see `contrast`."""
    n_classes, is_category = len(by_column.markers), n_categories > 0
    strongest = np.zeros((n_classes, n_categories.size), dtype=np.int64)
    markers = np.zeros((n_classes, n_categories.size), dtype=np.bool_)
    for j in range(n_categories.size):
        columns = np.flatnonzero(variable == j)
        statistic, marked = by_column.statistic[:, columns], by_column.markers[:, columns]
        positive = np.where(marked & (statistic > 0.0), statistic, 0.0)
        more_often, any_way = positive.argmax(axis=1), np.abs(statistic).argmax(axis=1)
        strongest[:, j] = columns[np.where(positive.any(axis=1), more_often, any_way)]
        markers[:, j] = marked.any(axis=1)
    classes = np.arange(n_classes)[:, np.newaxis]
    arrays = {field.name: getattr(by_column, field.name) for field in fields(Contrast)}
    n_values = np.where(is_category, n_categories, arrays.pop("n_values")[strongest[0]])
    picked = Contrast(
        **{name: array[..., classes, strongest] for name, array in arrays.items()}, n_values=n_values
    )
    value = np.where(is_category, category[strongest], np.nan)
    return replace(picked, markers=markers, value=value)


def _compare(table: ValueCounts, significance_level: float, min_effect: float) -> Contrast:
    """Compare classes with their background.

    P-values are not adjusted for the number of variables, and `markers` is whether a difference is not
    negligible.
    """
    m, n_classes, n_cells = table.counts.shape
    log_p_of_pairs, statistic = compare_pairs(table, significance_level, min_effect)
    background = find_background(table, log_p_of_pairs, statistic, significance_level, min_effect)
    has_background = np.asarray(background.any(axis=1, keepdims=True))
    compared = np.where(has_background, background, table.active)
    others = compared[:, np.newaxis, :] & ~np.eye(n_classes, dtype=bool)
    own, other = table.counts, others.astype(np.float64) @ table.counts

    against_background, _ = log_pvalues(own.reshape(-1, n_cells), other.reshape(-1, n_cells))
    against_background = pvalues_with_groups(
        against_background.reshape(m, n_classes), table.clusters, table.clusters.pool(others, own.sum(axis=2))
    )
    log_p = np.where(has_background, against_background, _differs_from_half(log_p_of_pairs, table.active))
    location, effects = effects_between(own, other)
    size = size_of_difference(own, other, effects)
    comparable = table.active & others.any(axis=2) & (size > 1e-12)
    quantile = special.ndtri_exp(np.where(comparable, log_p, 0.0) - np.log(2.0))
    return Contrast(
        markers=(comparable & (size >= min_effect)).T,
        pvalue=np.where(comparable, np.exp(log_p), 1.0).T,
        statistic=np.where(location < 0, quantile, -quantile).T,
        effect=np.where(comparable, location, 0.0).T,
        comparable=comparable.T,
        background=background.T,
        value=np.full(comparable.T.shape, np.nan),
        n_values=table.n_values,
    )


def _differs_from_half(log_p: Floats, active: Bools) -> Floats:
    """Test whether a class differs from at least half of the other classes.

    Returns logarithms of p-values (n_variables, n_classes). `log_p` (n_variables, n_classes, n_classes) are
    logarithms of the p-values of pairs of classes.
    """
    n_classes, n_active = active.shape[1], active.sum(axis=1)
    least = np.maximum(n_active // 2, 1)
    is_other = active[:, np.newaxis, :] & ~np.eye(n_classes, dtype=bool)
    ordered = np.sort(np.where(is_other, log_p, 0.0), axis=2)
    smallest = np.take_along_axis(ordered, (least - 1)[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    return np.asarray(np.minimum(smallest + np.log(np.maximum(n_active - least, 1))[:, np.newaxis], 0.0))


def learn_contrast(data: LabelledRows, min_effect: float) -> Contrast:
    """Compare each class with its background; a row and its duplicates are one observation."""
    return contrast(
        data.X,
        data.codes,
        data.labels.size,
        n_categories=data.n_categories,
        weights=data.weights,
        groups=data.group_ids if data.grouped else None,
        min_effect=min_effect,
    )


def learn_missing_contrast(data: LabelledRows, min_effect: float) -> Contrast | None:
    """Compare how often values are missing in each class and its background; None if no value is missing."""
    is_missing = np.isnan(data.X)
    if not is_missing.any():
        return None
    return learn_contrast(replace(data, X=is_missing.astype(np.float64), n_categories=None), min_effect)

r"""Comparison of each class with all other rows: medians, quartiles, shares and effects for sentences.

`contrast` decides by tests which variables are markers of a class, compared with a background. Readers of a
report compare a class with all other rows. So medians, quartiles and shares are computed here from all given
rows, duplicates included, without regard to groups. Without weights, quantiles are interpolated linearly, as
in numpy and pandas. With weights, the quantile q is the smallest value up to which at least the share q of
the weight lies, or the mean of this value and the next if it is exactly the share q.

**The effect** is a number from -1 to 1 that measures how well a variable distinguishes the class from all
other rows. It is one of

- Cliff's delta, :math:`P(X > Y) - P(X < Y)`, which is twice the area under the ROC curve minus 1, if the
  class is described as *high* or *low*;
- Cliff's delta of the distance from the median of all rows, in ranks, if the class is described as *narrow*
  (negative) or *wide* (positive);
- the difference between the shares of a value, of a category, or of a range of values.

A class is described by location (high, low) or by width (narrow, wide): by the larger of the two effects,
unless medians and quartiles do not confirm it. A variable with few values may be described by a single value
instead. With many values, a marker is described by the range whose shares differ most (the range of Kuiper's
statistic) in two cases: if the effects of location and width are negligible, or if the shares of the range
differ by much more than these effects, for example in a class with two modes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers, check_array
from corral.data.dataset import TrainingRows
from corral.data.weights import shares_of_largest, weights_or_ones
from corral.markers.contrast import MIN_EFFECT, Contrast
from corral.markers.rank_tests import shares_of_sum
from corral.markers.value_counts import category_counts

# A class may be described by a single value if the variable has at most this number of distinct values.
FEW_VALUES = 10

# A range replaces location or width if the difference of its shares exceeds their effect by this factor.
# Between normal distributions that differ in mean or in width, the difference of shares is less than the
# effect; if a class has two modes, it is more.
_MUCH_MORE = 1.5

# Quantiles that are shown: quartiles and median.
_SHOWN_QUANTILES = np.array([0.25, 0.5, 0.75])

# Numbers of digits to try for the ends of a range; 17 digits identify a double.
_DIGITS = range(4, 18)

_DIRECTIONS = ("", "high", "low", "narrow", "wide", "more often", "less often")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Statistics of each class, of all other rows and of the background rows in each variable.

    Arrays have the shape (n_classes, n_features) unless another shape is given. A first axis of length 3
    stands for the class, all other rows, and the background rows: the rows with which the test compares the
    class.
    """

    # "high", "low", "narrow" or "wide"; "more often" or "less often" if the values within `bounds` are more
    # or less frequent in the class; "" if the variable does not describe the class
    direction: NDArray[np.str_]
    effect: Floats  # from -1 to 1 (see the module); negative for "low", "narrow" and "less often"
    middles: Floats  # (3, n_classes, n_features) medians, or most frequent categories; NaN without rows
    quartiles: Floats  # (2, 3, n_classes, n_features) lower and upper quartiles; NaN for categories
    # (2, n_classes, n_features) ends of the range that is more or less frequent, twice the value if it is one
    # value or category; NaN for an end without limit, and if the direction is high, low, narrow, wide or ""
    bounds: Floats
    shares: Floats  # (3, n_classes, n_features) shares of the values within the bounds, or NaN without bounds
    n_alike: Integers  # number of categories with the frequency of the category in `bounds`, itself included
    n_background: Integers  # number of classes in the background; 0 if these are all other classes
    missing: Floats  # shares of missing values in each class
    class_weights: Floats  # (n_classes,) numbers of rows, or sums of their weights

    def validate(self) -> None:
        """Raise ValueError if a shape or a direction is wrong or a number is infinite."""
        shape = self.direction.shape
        leading = {"middles": (3,), "quartiles": (2, 3), "bounds": (2,), "shares": (3,)}
        for name, array in ((field.name, getattr(self, field.name)) for field in fields(self)):
            if name != "direction":
                expected = shape[:1] if name == "class_weights" else (*leading.get(name, ()), *shape)
                check_array(name, array, expected, nan=True)
        if len(shape) != 2 or not np.isin(self.direction, _DIRECTIONS).all():
            raise ValueError(f"direction must be a table of {', '.join(map(repr, _DIRECTIONS))}")

    def missing_shares(self, background: Bools) -> Floats:
        """Shares of missing values (3, n_classes, n_features) in the class, other rows and background rows.

        `background` (n_classes, n_features) is the background in the test of missing values.
        """
        n_rows = np.broadcast_to(self.class_weights[:, np.newaxis], self.missing.shape)
        n_missing = n_rows * self.missing
        compared = compared_classes(background, self.class_weights > 0.0)
        sums = [np.stack([n, n.sum(axis=0) - n, _sums(compared, n)]) for n in (n_missing, n_rows)]
        return np.asarray(np.divide(sums[0], sums[1], out=np.zeros_like(sums[0]), where=sums[1] > 0.0))


def compared_classes(background: Bools, has_rows: Bools) -> Bools:
    """Whether the test compares a class with another class: (n_classes, n_other_classes, n_features).

    `background` is (n_classes, n_features), and `has_rows` (n_classes,). If a variable has no background, a
    class is compared with all other classes that have rows.
    """
    own = np.eye(len(background), dtype=bool)[:, :, np.newaxis]
    any_class = np.where(background.any(axis=0), background, has_rows[:, np.newaxis])
    return np.asarray(any_class & ~own)


def background_sizes(background: Bools, has_rows: Bools) -> Integers:
    """Number of classes (n_classes, n_features) in the background; 0 if these are all other classes."""
    sizes = compared_classes(background, has_rows).sum(axis=1)
    n_others = (has_rows.sum() - has_rows)[:, np.newaxis]
    return np.asarray(np.where(sizes < n_others, sizes, 0))


def _sums(compared: Bools, numbers: Floats) -> Floats:
    """For each class, sum `numbers` (n_classes, n_features) over the classes with which it is compared."""
    return np.asarray(np.einsum("abj,bj->aj", compared.astype(np.float64), numbers))


def learn_comparison(training: TrainingRows, labels: NDArray[Any], contrast: Contrast) -> Comparison:
    """Compare each class with all other rows; rows with the weight 0 are left out."""
    X, y, weights, n_categories, _ = training
    if weights is not None:
        counts = weights > 0.0
        X, y, weights = X[counts], y[counts], shares_of_largest(weights[counts])
    codes, n_classes = np.searchsorted(labels, y), labels.size
    class_weights = np.bincount(codes, weights, n_classes).astype(np.float64)
    has_rows = class_weights > 0.0
    compared = compared_classes(contrast.background, has_rows)
    n_categories = np.zeros(X.shape[1], dtype=np.int64) if n_categories is None else n_categories
    compared_columns, missing = [], np.zeros(contrast.markers.shape)
    for j, x in enumerate(X.T):
        column = _Column.sort(x, codes, weights, compared[:, :, j])
        missing[:, j] = np.bincount(codes, np.isnan(x) * weights_or_ones(weights, x.size), n_classes)
        test = _Test(contrast.markers[:, j], contrast.comparable[:, j], contrast.value[:, j])
        if n_categories[j]:
            compared_columns.append(_compare_categories(column, int(n_categories[j]), test))
        else:
            compared_columns.append(_compare_numbers(column, test))
    parts = zip(_Compared._fields, zip(*compared_columns, strict=True), strict=True)
    return Comparison(
        **{name: np.stack(arrays, axis=-1) for name, arrays in parts},
        n_background=background_sizes(contrast.background, has_rows),
        missing=missing / np.where(has_rows, class_weights, 1.0)[:, np.newaxis],
        class_weights=class_weights,
    )


class _Test(NamedTuple):
    """The fields of a `Contrast` in one variable, each (n_classes,)."""

    markers: Bools
    comparable: Bools  # whether there is anything to compare
    value: Floats  # the category that differs most significantly


class _Compared(NamedTuple):
    """The fields of a `Comparison` in one variable."""

    direction: NDArray[np.str_]
    effect: Floats
    middles: Floats
    quartiles: Floats
    bounds: Floats
    shares: Floats
    n_alike: Integers


class _Column(NamedTuple):
    """The sorted values of a variable that are not missing, with the classes and weights of their rows."""

    x: Floats  # (n_rows,) ascending
    codes: Integers  # (n_rows,) class codes
    weights: Floats | None  # (n_rows,), or None if all weights are equal
    compared: Bools  # (n_classes, n_classes) whether the test compares a class (first axis) with another

    @classmethod
    def sort(cls, x: Floats, codes: Integers, weights: Floats | None, compared: Bools) -> _Column:
        """Sort rows (n_rows,) by their values."""
        order = np.argsort(x, kind="stable")[: np.count_nonzero(~np.isnan(x))]
        return cls(x[order], codes[order], None if weights is None else weights[order], compared)

    @property
    def all_weights(self) -> Floats:
        """(n_rows,) weights, which are 1 if `weights` is None."""
        return weights_or_ones(self.weights, self.x.size)

    @property
    def class_weights(self) -> Floats:
        """(n_classes,) numbers of rows, or sums of their weights."""
        return np.bincount(self.codes, self.all_weights, len(self.compared)).astype(np.float64)

    def samples(self, a: int) -> list[Bools]:
        """Three masks (n_rows,): rows of class a, all other rows, and background rows of class a."""
        own = self.codes == a
        return [own, ~own, self.compared[a, self.codes]]

    def quantiles(self) -> Floats:
        """Compute lower quartiles, medians and upper quartiles (3, 3, n_classes); NaN without rows.

        The second axis stands for the samples: the class, all other rows, and background rows.
        """
        quantiles = np.full((3, 3, len(self.compared)), np.nan)
        for a in range(len(self.compared)):
            for i, rows in enumerate(self.samples(a)):
                if rows.any():
                    weights = None if self.weights is None else self.weights[rows]
                    quantiles[:, i, a] = _quantiles(self.x[rows], weights)
        return quantiles

    def shares(self, cells: Integers, n_cells: int) -> Floats:
        """Compute the shares (3, n_classes, n_cells) of cells in the three samples; 0 without rows.

        `cells` (n_rows,) is the cell of each row.
        """
        counts = category_counts(
            cells.astype(np.float64), self.codes, self.weights, len(self.compared), n_cells
        )
        others = 1.0 - np.eye(len(counts))
        return shares_of_sum(np.stack([counts, others @ counts, self.compared.astype(np.float64) @ counts]))


def _quantiles(x: Floats, weights: Floats | None) -> Floats:
    """Quartiles and median (3,) of sorted values."""
    if weights is None or (weights == weights[0]).all():
        position = _SHOWN_QUANTILES * (x.size - 1)
        lower, part = np.floor(position).astype(np.int64), position % 1.0
        # A weighted mean, since the difference of two values may overflow.
        return np.asarray(x[lower] * (1.0 - part) + x[np.minimum(lower + 1, x.size - 1)] * part)
    shares = weights.cumsum() / weights.sum()
    bounds = [np.searchsorted(shares, _SHOWN_QUANTILES + error) for error in (-1e-9, 1e-9)]
    lower, upper = (x[np.minimum(bound, x.size - 1)] for bound in bounds)
    return np.asarray(0.5 * lower + 0.5 * upper)


def _compare_categories(column: _Column, n_categories: int, test: _Test) -> _Compared:
    """Describe each class by the category that the test has selected."""
    n_classes = len(column.compared)
    shares = column.shares(column.x.astype(np.int64), n_categories)
    middles = np.where(shares.any(axis=2), shares.argmax(axis=2), np.nan)
    value = np.where(np.isnan(test.value), 0.0, test.value).astype(np.int64)
    shown = np.take_along_axis(shares, value[np.newaxis, :, np.newaxis], axis=2)
    # Other categories with the same frequencies as the selected category are included in its shares.
    alike = (np.abs(shares - shown)[:2] <= 1e-12).all(axis=0) & (
        test.markers & (shown[0, :, 0] > shown[1, :, 0])
    )[:, np.newaxis]
    alike[np.arange(n_classes), value] = True
    totals = np.where(alike, shares, 0.0).sum(axis=2)
    effect = np.where(test.comparable, totals[0] - totals[1], 0.0)
    direction = np.where(effect > 0.0, "more often", np.where(effect < 0.0, "less often", ""))
    quartiles = np.full((2, 3, n_classes), np.nan)
    bounds = np.stack([value, value]).astype(np.float64)
    return _Compared(direction, effect, middles, quartiles, bounds, totals, alike.sum(axis=1))


def _compare_numbers(column: _Column, test: _Test) -> _Compared:
    """Describe each class by location, width, a value or a range of values."""
    n_classes = len(column.compared)
    lower, middles, upper = column.quantiles()
    direction, effect = _place_or_width(column, lower, middles, upper)
    values, cells = np.unique(column.x, return_inverse=True)
    bounds, shares = np.full((2, n_classes), np.nan), np.full((3, n_classes), np.nan)
    few, faint = values.size <= FEW_VALUES, test.markers & (np.abs(effect) < MIN_EFFECT)
    by_value = few & ((values.size == 2) | (middles[0] == middles[1]) | (direction == "") | faint)
    value_shares = column.shares(cells, values.size) if few else np.empty((3, n_classes, 0))
    for a in np.flatnonzero(test.comparable & (by_value | (test.markers & (not few)))).tolist():
        if by_value[a]:
            best = int((value_shares[0, a] - value_shares[1, a]).argmax())
            ends, shown = np.full(2, values[best]), value_shares[:, a, best]
        else:
            ends, shown = _most_different_range(column, a, values)
        size = shown[0] - shown[1]
        if by_value[a] or faint[a] or abs(size) > _MUCH_MORE * abs(effect[a]):
            bounds[:, a], shares[:, a], effect[a] = ends, shown, size
            direction[a] = "more often" if size > 0.0 else "less often" if size < 0.0 else ""
    direction, effect = np.where(test.comparable, direction, ""), np.where(test.comparable, effect, 0.0)
    n_alike = np.ones(n_classes, dtype=np.int64)
    return _Compared(direction, effect, middles, np.stack([lower, upper]), bounds, shares, n_alike)


def _place_or_width(
    column: _Column, lower: Floats, middles: Floats, upper: Floats
) -> tuple[NDArray[np.str_], Floats]:
    """Choose location or width: directions and effects (n_classes,).

    The larger effect is chosen among the effects that quantiles confirm; "" and 0 if they confirm none.
    `lower`, `middles` and `upper` are quantiles (3, n_classes) of the samples.
    """
    place, score = _deltas(column.x, column)
    width, _ = _deltas(np.asarray(np.round(np.abs(score), 12), dtype=np.float64), column)
    quantiles = np.stack([lower, middles, upper])
    with np.errstate(over="ignore", invalid="ignore"):  # the sign of an infinite difference is right
        higher = np.where(place < 0.0, -1.0, 1.0) * (quantiles[:, 0] - quantiles[:, 1])
        wider = np.where(width < 0.0, -1.0, 1.0) * ((upper - lower)[0] - (upper - lower)[1])
    is_shifted = (higher[1] > 0.0) | ((higher[1] == 0.0) & (higher >= 0.0).all(axis=0) & higher.any(axis=0))
    sizes = np.stack([np.zeros(place.size), is_shifted * np.abs(place), (wider > 0.0) * np.abs(width)])
    words = [np.array(""), np.where(place < 0.0, "low", "high"), np.where(width < 0.0, "narrow", "wide")]
    choice = sizes.argmax(axis=0)
    return np.choose(choice, words).astype("<U10"), np.choose(choice, [sizes[0], place, width])


def _deltas(x: Floats, column: _Column) -> tuple[Floats, Floats]:
    """Compute Cliff's deltas (n_classes,) against all other rows, and mid-ranks (n_rows,) from -1 to 1.

    The sum of the mid-ranks of a class compares its rows with all rows. Pairs of rows within the class cancel
    out, so only pairs with other rows remain.
    """
    _, cells = np.unique(x, return_inverse=True)
    weights, own = column.all_weights, column.class_weights
    mass, total = np.bincount(cells, weights), max(float(own.sum()), 1e-300)
    score = ((2.0 * mass.cumsum() - mass) / total - 1.0)[cells] if x.size else x
    sums = np.bincount(column.codes, weights * score, own.size) * total
    pairs = own * (total - own)
    deltas = np.divide(sums, pairs, out=np.zeros(own.size), where=pairs > 1e-12 * total**2)
    return np.clip(deltas, -1.0, 1.0), score


def _most_different_range(column: _Column, a: int, values: Floats) -> tuple[Floats, Floats]:
    """Find the range of values whose shares in class a and in all other rows differ most.

    Returns its bounds (2,), NaN for an end without limit, and its shares (3,) in the samples. If values up to
    a bound are rarer in the class, the range of values above the bound is returned, because it is more
    frequent, which is easier to read.
    """
    samples = [shares_of_sum(rows * column.all_weights) for rows in column.samples(a)]
    last = np.searchsorted(column.x, values, side="right") - 1
    distributions = np.stack([np.append(0.0, sample.cumsum()[last]) for sample in samples])
    difference = distributions[0] - distributions[1]
    first, stop = sorted((int(difference.argmin()), int(difference.argmax())))
    if difference[first] > difference[stop] and first == 0:
        first, stop = stop, values.size
    elif difference[first] > difference[stop] and stop == values.size:
        first, stop = 0, first
    shares = np.clip(distributions[:, stop] - distributions[:, first], 0.0, 1.0)
    if stop == first + 1:
        return np.full(2, values[first]), shares
    return _short_bounds(values, first, stop), shares


def _short_bounds(values: Floats, first: int, stop: int) -> Floats:
    """Ends (2,) with few digits of a range that contains only values[first:stop]; NaN for no limit."""
    lower = upper = np.nan
    if first > 0:
        lower = _shortened(values[first], values[first - 1], ROUND_FLOOR)
    if stop < values.size:
        upper = _shortened(values[stop - 1], values[stop], ROUND_CEILING)
    return np.array([lower, upper])


def _shortened(value: float, neighbor: float, rounding: str) -> float:
    """Round a value towards its neighbor, to the fewest digits with which it does not reach the neighbor."""
    for digits in _DIGITS:
        rounded = float(Context(prec=digits, rounding=rounding).create_decimal_from_float(value))
        if min(value, neighbor) < rounded < max(value, neighbor) or rounded == value:
            return rounded
    return float(value)

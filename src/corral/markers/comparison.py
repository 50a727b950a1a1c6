r"""Each class beside all other rows: the numbers that sentences about a class show, as the table has them.

`contrast` decides by a test which variables mark a class, and compares it with a background. A reader
compares it with all other rows. So medians, quartiles and shares are computed here from the rows as they were
given, duplicates and all; groups do not matter. Without weights, quantiles are as in numpy and pandas
(linear interpolation). With weights, a quantile is the value up to which the share q of the weight lies, or
the mean of two values if exactly that share lies up to the first one.

**The effect** says how well a variable distinguishes the class from all other rows, from -1 to 1. It is one
of

- Cliff's delta, :math:`P(X > Y) - P(X < Y)` or twice the area under the ROC curve less 1, for a class that is
  *high* or *low*;
- Cliff's delta of the distance from the median of all rows, in ranks, for one that is *narrow* (negative) or
  *wide*;
- the difference of the shares of a value, of a category, or of a range of values.

Between high, low, narrow and wide the larger effect decides among those that medians and quartiles show as
well. Where a variable has few values, a value may say more. A marker is described by the range whose shares
differ most (that of Kuiper's statistic) where neither place nor width is noticeable, and where the shares
differ by much more, as for a class with two modes.
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

# In a variable with at most so many values, a single value may describe a class better than a direction.
FEW_VALUES = 10

# A range says more than place or width if its shares differ by so many times their effect. Between normal
# distributions that differ in mean or in width they differ by less than the effect, with two modes by more.
_MUCH_MORE = 1.5

# Quantiles that are shown: quartiles and median.
_SHOWN_QUANTILES = np.array([0.25, 0.5, 0.75])

# Digits of the ends of a range, at least and at most; a double has 17.
_DIGITS = range(4, 18)

_DIRECTIONS = ("", "high", "low", "narrow", "wide", "more often", "less often")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Each class, all other rows and the background, by class and variable (n_classes, n_features).

    A first axis of 3 stands for the class, all other rows, and the rows that the test compares it with.
    """

    # "high", "low", "narrow", "wide"; "more often" or "less often" of what lies within `bounds`; "" where
    # nothing can be said
    direction: NDArray[np.str_]
    effect: Floats  # from -1 to 1, as said above; negative for "low", "narrow" and "less often"
    middles: Floats  # (3, n_classes, n_features) medians, or the most frequent categories; NaN without rows
    quartiles: Floats  # (2, 3, n_classes, n_features) lower and upper ones; NaN for categories
    # (2, n_classes, n_features) the range, value or category that is more or less frequent; NaN for an end
    # without limit, and where the direction is another one
    bounds: Floats
    shares: Floats  # (3, n_classes, n_features) of the values that lie within the bounds; else NaN
    n_alike: Integers  # how many categories are as frequent as the one in `bounds`, with itself
    n_background: Integers  # classes that the test compares the class with; 0 if these are all others
    missing: Floats  # shares of the rows of each class that lack a value
    class_weights: Floats  # (n_classes,) numbers of rows, or sums of their weights

    def validate(self) -> None:
        """Refuse arrays of other shapes, and numbers that are not finite."""
        shape = self.direction.shape
        leading = {"middles": (3,), "quartiles": (2, 3), "bounds": (2,), "shares": (3,)}
        for name, array in ((field.name, getattr(self, field.name)) for field in fields(self)):
            if name != "direction":
                expected = shape[:1] if name == "class_weights" else (*leading.get(name, ()), *shape)
                check_array(name, array, expected, nan=True)
        if len(shape) != 2 or not np.isin(self.direction, _DIRECTIONS).all():
            raise ValueError("direction holds something else than directions")

    def missing_shares(self, background: Bools) -> Floats:
        """(3, n_classes, n_features) shares of missing values; `background` is that of missing values."""
        n_rows = np.broadcast_to(self.class_weights[:, np.newaxis], self.missing.shape)
        n_missing = n_rows * self.missing
        compared = compared_classes(background, self.class_weights > 0.0)
        sums = [np.stack([n, n.sum(axis=0) - n, _sums(compared, n)]) for n in (n_missing, n_rows)]
        return np.asarray(np.divide(sums[0], sums[1], out=np.zeros_like(sums[0]), where=sums[1] > 0.0))


def compared_classes(background: Bools, has_rows: Bools) -> Bools:
    """Which other classes (n_classes, n_classes, n_features) the first one is compared with by the test."""
    own = np.eye(len(background), dtype=bool)[:, :, np.newaxis]
    any_class = np.where(background.any(axis=0), background, has_rows[:, np.newaxis])
    return np.asarray(any_class & ~own)


def background_sizes(background: Bools, has_rows: Bools) -> Integers:
    """Number of classes (n_classes, n_features) in the background; 0 where it is all others, or none."""
    sizes = compared_classes(background, has_rows).sum(axis=1)
    n_others = (has_rows.sum() - has_rows)[:, np.newaxis]
    return np.asarray(np.where(sizes < n_others, sizes, 0))


def _sums(compared: Bools, numbers: Floats) -> Floats:
    """Sums (n_classes, ...) of the numbers (n_classes, ...) of the classes that each one is compared with."""
    return np.asarray(np.einsum("abj,bj->aj", compared.astype(np.float64), numbers))


def learn_comparison(training: TrainingRows, labels: NDArray[Any], contrast: Contrast) -> Comparison:
    """Compare each class with all other rows; rows without weight do not count."""
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
    """What `contrast` says of a variable, by class (n_classes,)."""

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
    """The values of a variable in ascending order, without those that are missing."""

    x: Floats  # (n_rows,)
    codes: Integers  # (n_rows,) class numbers
    weights: Floats | None  # (n_rows,) or None if all rows count alike
    compared: Bools  # (n_classes, n_classes) which other classes the test compares the first one with

    @classmethod
    def sort(cls, x: Floats, codes: Integers, weights: Floats | None, compared: Bools) -> _Column:
        """Sort rows (n_rows,) by their values."""
        order = np.argsort(x, kind="stable")[: np.count_nonzero(~np.isnan(x))]
        return cls(x[order], codes[order], None if weights is None else weights[order], compared)

    @property
    def all_weights(self) -> Floats:
        """(n_rows,) weights, 1 if all rows count alike."""
        return weights_or_ones(self.weights, self.x.size)

    @property
    def class_weights(self) -> Floats:
        """(n_classes,) numbers of rows, or sums of their weights."""
        return np.bincount(self.codes, self.all_weights, len(self.compared)).astype(np.float64)

    def samples(self, a: int) -> list[Bools]:
        """Rows (n_rows,) of class a, all other rows, and those that the test compares it with."""
        own = self.codes == a
        return [own, ~own, self.compared[a, self.codes]]

    def quantiles(self) -> Floats:
        """(3, 3, n_classes) quartiles and medians of the samples, NaN without rows."""
        quantiles = np.full((3, 3, len(self.compared)), np.nan)
        for a in range(len(self.compared)):
            for i, rows in enumerate(self.samples(a)):
                if rows.any():
                    weights = None if self.weights is None else self.weights[rows]
                    quantiles[:, i, a] = _quantiles(self.x[rows], weights)
        return quantiles

    def shares(self, cells: Integers, n_cells: int) -> Floats:
        """(3, n_classes, n_cells) shares of the samples in cells (n_rows,); 0 without rows."""
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
        # No difference of two values, which may be too large for a number.
        return np.asarray(x[lower] * (1.0 - part) + x[np.minimum(lower + 1, x.size - 1)] * part)
    shares = weights.cumsum() / weights.sum()
    bounds = [np.searchsorted(shares, _SHOWN_QUANTILES + error) for error in (-1e-9, 1e-9)]
    lower, upper = (x[np.minimum(bound, x.size - 1)] for bound in bounds)
    return np.asarray(0.5 * lower + 0.5 * upper)


def _compare_categories(column: _Column, n_categories: int, test: _Test) -> _Compared:
    """Describe classes by the category that the test has found."""
    n_classes = len(column.compared)
    shares = column.shares(column.x.astype(np.int64), n_categories)
    middles = np.where(shares.any(axis=2), shares.argmax(axis=2), np.nan)
    value = np.where(np.isnan(test.value), 0.0, test.value).astype(np.int64)
    shown = np.take_along_axis(shares, value[np.newaxis, :, np.newaxis], axis=2)
    # Where other categories are as frequent as the one that is named, they are counted with it.
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
    """Describe classes by place, width, a value or a range of values."""
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
    """Directions and effects (n_classes,): the larger one of place and width that the quantiles show, too."""
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
    """Cliff's deltas (n_classes,) of each class against all other rows, and mid-ranks (n_rows,) from -1 to 1.

    Rows of the class add nothing to their own sum: each pair of them counts once either way.
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
    """Bounds (2,) of the values whose shares in class a and in other rows differ most, and the shares (3,).

    NaN stands for an end without limit. If values up to one bound are rarer in the class, those above it are
    more frequent, which is easier to read.
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
    """Ends (2,) of a range with few digits that holds values[first:stop] and no others; NaN without limit."""
    lower = upper = np.nan
    if first > 0:
        lower = _shortened(values[first], values[first - 1], ROUND_FLOOR)
    if stop < values.size:
        upper = _shortened(values[stop - 1], values[stop], ROUND_CEILING)
    return np.array([lower, upper])


def _shortened(value: float, neighbour: float, rounding: str) -> float:
    """Round a value towards its neighbour, to as few digits as do not reach it."""
    for digits in _DIGITS:
        rounded = float(Context(prec=digits, rounding=rounding).create_decimal_from_float(value))
        if min(value, neighbour) < rounded < max(value, neighbour) or rounded == value:
            return rounded
    return float(value)

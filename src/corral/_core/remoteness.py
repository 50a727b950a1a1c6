r"""How far values of single columns lie from those of a class and of all rows, and what scores lose by that.

The score of `trust` has the terms :math:`4 \sum_j \max(0, e_{yj}(x) - 3)^2` and
:math:`64 \min(1, \max(0, (\max_j |z_j(x)| - 7) / 2))`.

:math:`e_{yj}` is how far :math:`x_j` lies from the nearest value of the column in the class, and :math:`z_j`
how far from the median of the column, both in standard deviations of the column, which the farthest values
may widen tenfold at most. They see what densities may not: ranks end with the training range, and a density
may make little use of a column; and a single row far out in a column is no reason to find others like it
usual. For :math:`z_j` only the strangest values count: those with the least company, that is with the fewest
rows that lie as far out in the column, on the same side; with equal company those farthest out. One row in a
hundred may have such values, so that not all novel rows of a table with long tails are such.

A column with the same value in all n rows has no deviation. Another value there lies as far out as if it were
one more row, :math:`(n + 1) / \sqrt{n}` deviations of the n + 1 values: exactly as far as a training row that
is the only one to differ, so that tables in which that is frequent keep their level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corral._core.rows import LabelledRows
from corral._core.scale import Scale, learn_scale
from corral._core.settings import Bools, Floats, Integers

# Values that lie nearer than this to others of a class, in deviations of the column, are nothing special.
_NEAR = 3.0

# What a squared distance beyond that takes from a score.
_STRENGTH = 4.0

# What a value far from the median takes from a score: nothing up to the first of two distances, all from the
# second on, if it is among the strangest: at most such a share of rows has one.
_EXTREME = 64.0
_EXTREME_FROM, _EXTREME_TO = 7.0, 9.0
_RARE = 0.01

# A share of the values of a column, those farthest out, may widen its deviation by a factor, if there are
# enough to tell.
_FARTHEST = 0.005
_WIDENED = 10.0
_ENOUGH_VALUES = 20

# A column that varies by less than this share of its values is constant but for rounding.
_ROUNDING = 1e-12

# Values that differ from a constant by less than this share of it may be the same number, written in fewer
# digits or kept in single precision; and what differs from 0 by less than rounding may be 0.
_DIGITS = 1e-6


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Values that a column of measurements takes in a class, in deviations of the column.

    Attributes
    ----------
    values : (n_values,) in order; none for levels and empty columns.
    units : (n_values,) of their rows, in order where values are equal.
    """

    values: Floats
    units: Integers

    @classmethod
    def of(cls, x: Floats, units: Integers) -> ColumnValues:
        """Sort values; gaps are left out."""
        known = np.flatnonzero(~np.isnan(x))
        order = known[np.lexsort((units[known], x[known]))]
        return cls(x[order], units[order])

    @cached_property
    def _has_no_holes(self) -> bool:
        """Whether all that lies between values is near one of them."""
        return bool((np.diff(self.values) <= 2.0 * _NEAR).all())

    @cached_property
    def _runs(self) -> tuple[Integers, Integers]:
        """Where the run of values of one unit that each value belongs to begins and ends."""
        begins = np.flatnonzero(np.concatenate([[True], self.units[1:] != self.units[:-1]]))
        run = np.searchsorted(begins, np.arange(self.units.size), side="right") - 1
        return begins[run], np.append(begins[1:], self.units.size)[run]

    def distances(self, x: Floats) -> Floats:
        """How far numbers (n_samples,) lie from the nearest value; perhaps 0 for those that are near it."""
        if self._has_no_holes:
            outside: Floats = np.maximum(np.maximum(self.values[0] - x, x - self.values[-1]), 0.0)
            return outside
        right = np.searchsorted(self.values, x)
        above = self.values[np.minimum(right, self.values.size - 1)]
        below = self.values[np.maximum(right - 1, 0)]
        apart: Floats = np.minimum(np.abs(x - above), np.abs(x - below))
        return apart

    def distances_to_others(self, x: Floats, units: Integers) -> Floats:
        """How far numbers of some units lie from the nearest value of another unit; 0 if there is none."""
        begins, ends = self._runs
        right = np.searchsorted(self.values, x)
        left = right - 1
        inside = np.minimum(right, self.values.size - 1)
        right = np.where((right < self.values.size) & (self.units[inside] == units), ends[inside], right)
        inside = np.maximum(left, 0)
        left = np.where((left >= 0) & (self.units[inside] == units), begins[inside] - 1, left)
        padded = np.concatenate([[-np.inf], self.values, [np.inf]])
        apart = np.minimum(padded[right + 1] - x, x - padded[left + 1])
        return np.where(np.isinf(apart), 0.0, apart)

    def beyond(self, x: Floats, units: Integers | None) -> Integers:
        """How many values, of other units if some are given, lie as far out as numbers, on their side."""
        if units is None:
            below = np.searchsorted(self.values, x, side="right")
            above = self.values.size - np.searchsorted(self.values, x, side="left")
            return np.where(x > 0.0, above, below)
        as_far = np.where(
            x[:, np.newaxis] > 0.0, self.values >= x[:, np.newaxis], self.values <= x[:, np.newaxis]
        )
        counts: Integers = (as_far & (self.units != units[:, np.newaxis])).sum(axis=1)
        return counts


class Bound(NamedTuple):
    """From where on a value far out is among the strangest: first by its company, then by its distance.

    Attributes
    ----------
    company : values with fewer others beyond them are, whatever their distance.
    distance : with as many, those that lie at least so far out.
    """

    company: int
    distance: float

    def includes(self, company: Integers, distance: Floats) -> Bools:
        """Whether values with so many others beyond them, so far out, are among the strangest."""
        included: Bools = (company < self.company) | ((company == self.company) & (distance >= self.distance))
        return included


@dataclass(frozen=True, eq=False)
class Columns:
    """Values that columns take in each class, and how far others lie from them.

    Attributes
    ----------
    scale : standard units, from the medians of the columns.
    values : by class and column; those of all classes where a class has none.
    extremes : by column those of all rows that lie far out.
    strangest : which of these count.
    n_equal : (n_features,) how many rows have the only value of a column; 0 where there are several or none.
    """

    scale: Scale
    values: Sequence[Sequence[ColumnValues]]
    extremes: Sequence[ColumnValues]
    strangest: Bound
    n_equal: Integers

    @classmethod
    def learn(cls, data: LabelledRows) -> Columns:
        """Learn units and values."""
        scale = _robust_units(data)
        scaled = np.where(data.level_counts > 0, np.nan, scale.transform(data.X))
        by_class = [[ColumnValues.of(x, data.units[at]) for x in scaled[at].T] for at in data.members()]
        for j, x in enumerate(scaled.T):
            lacking = [columns for columns in by_class if not columns[j].values.size]
            if lacking:
                of_all = ColumnValues.of(x, data.units)
                for columns in lacking:
                    columns[j] = of_all
        is_far = np.abs(scaled) > _EXTREME_FROM
        extremes = [ColumnValues.of(x[at], data.units[at]) for x, at in zip(scaled.T, is_far.T, strict=True)]
        strangest = _strangest(scaled, data.units, extremes)
        return cls(scale, by_class, extremes, strangest, _rows_of_constants(scaled, scale))

    def remoteness(self, X: Floats, units: Integers | None = None) -> Floats:
        """What values far from those of a class take from scores (n_samples, n_classes).

        `units` (n_samples,) are those of training rows, which are compared with rows of others.
        """
        scaled = np.ascontiguousarray(self._deviations(X).T)
        extreme = _extreme_term(self._from_medians(scaled, units).max(axis=0, initial=0.0))
        found = np.tile(extreme[:, np.newaxis], len(self.values))
        for y, columns in enumerate(self.values):
            for x, column in zip(scaled, columns, strict=True):
                if column.values.size:
                    at, term = _far_values(column, x, units)
                    found[at, y] += term
        return found

    def terms(self, X: Floats, codes: Integers) -> Floats:
        """The same by variable (n_samples, n_features), for a class of each sample."""
        found = np.zeros(X.shape)
        scaled = self._deviations(X)
        for y in np.unique(codes).tolist():
            of_class = np.flatnonzero(codes == y)
            for j, column in enumerate(self.values[y]):
                if column.values.size:
                    at, term = _far_values(column, scaled[of_class, j], None)
                    found[of_class[at], j] = term
        apart = self._from_medians(scaled.T, None)
        rows = np.arange(len(X))
        most = apart.argmax(axis=0)
        found[rows, most] += _extreme_term(apart[most, rows])
        return found

    def _deviations(self, X: Floats) -> Floats:
        """Samples in standard units; what differs from a constant, at least as a row that did so would be."""
        scaled = self.scale.transform(X)
        constant = np.flatnonzero(self.n_equal)
        x, n = scaled[:, constant], self.n_equal[constant]
        center = 0.5 * np.abs(self.scale.center[constant])
        same = np.where(center > 0.0, _DIGITS * center, _ROUNDING)
        differs = np.abs(x) > same / self.scale.half_width[constant]
        apart = np.maximum(np.abs(x), (n + 1) / np.sqrt(n))
        scaled[:, constant] = np.where(differs, np.copysign(apart, x), 0.0 * x)  # gaps stay
        return scaled

    def _from_medians(self, scaled: Floats, units: Integers | None) -> Floats:
        """How far scaled values (n_features, n_samples) lie from medians; 0 but for the strangest."""
        apart = np.zeros(scaled.shape)
        for x, known, others, found in zip(scaled, self.values[0], self.extremes, apart, strict=True):
            at = np.flatnonzero(np.abs(x) > _EXTREME_FROM)
            if at.size and known.values.size:
                company = others.beyond(x[at], None if units is None else units[at])
                distance = np.abs(x[at])
                found[at] = np.where(self.strangest.includes(company, distance), distance, 0.0)
        return apart


def _far_values(column: ColumnValues, x: Floats, units: Integers | None) -> tuple[Integers, Floats]:
    """Which numbers are far from the values of a column, and what that takes from their scores."""
    apart = column.distances(x) if units is None else column.distances_to_others(x, units)
    at = np.flatnonzero(apart > _NEAR)
    return at, _STRENGTH * (apart[at] - _NEAR) ** 2


def _strangest(scaled: Floats, units: Integers, extremes: Sequence[ColumnValues]) -> Bound:
    """The bound that as many rows (n_rows, n_features) reach as may be among the strangest."""
    rows, columns = np.nonzero(np.abs(scaled) > _EXTREME_FROM)  # gaps are not far out
    company = np.empty(rows.size, dtype=np.int64)
    for j in np.unique(columns).tolist():
        at = columns == j
        company[at] = extremes[j].beyond(scaled[rows[at], j], units[rows[at]])
    distance = np.abs(scaled[rows, columns])
    order = np.lexsort((-distance, company))
    _, first = np.unique(rows[order], return_index=True)  # where a row is met first
    first = np.sort(first)
    n_most = max(int(_RARE * (len(scaled) + 1)) - 1, 0)  # a sample that is one, too, is among the rarest
    if first.size <= n_most:
        return Bound(len(scaled), 0.0)
    last = order[first[n_most]]  # the first cell of the first row too many
    return Bound(int(company[last]), float(np.nextafter(distance[last], np.inf)))


def _rows_of_constants(scaled: Floats, scale: Scale) -> Integers:
    """How many rows (n_features,) have the only value of a column; 0 where there are several or none."""
    n_known = (~np.isnan(scaled)).sum(axis=0)
    widest = np.where(np.isnan(scaled), 0.0, np.abs(scaled)).max(axis=0, initial=0.0)
    rounding = _ROUNDING * np.abs(0.5 * scale.center) / scale.half_width
    return np.where(widest <= rounding, n_known, 0)


def _extreme_term(apart: Floats) -> Floats:
    """What distances (n_samples,) from the median of a column take from scores."""
    share = (apart - _EXTREME_FROM) / (_EXTREME_TO - _EXTREME_FROM)
    return _EXTREME * np.clip(share, 0.0, 1.0)


def _robust_units(data: LabelledRows) -> Scale:
    """Deviations of columns from their medians, which few values far out do not widen without bounds."""
    X, levels = data.X, data.levels
    units = learn_scale(X, data.weights, "standard", levels=levels)
    others, medians = X.copy(), np.zeros(X.shape[1])
    for j, x in enumerate(others.T):
        known = np.flatnonzero(~np.isnan(x))
        medians[j] = lower_median(x[known], np.ones(known.size))
        if known.size >= _ENOUGH_VALUES:
            apart = np.abs(0.5 * x[known] - 0.5 * medians[j])
            n_farthest = int(np.ceil(_FARTHEST * known.size))
            x[known[np.argsort(-apart, kind="stable")[:n_farthest]]] = np.nan
    bound = _WIDENED * learn_scale(others, data.weights, "standard", levels=levels).half_width
    varies = (np.where(np.isnan(others), -np.inf, others).max(axis=0, initial=-np.inf)) > (
        np.where(np.isnan(others), np.inf, others).min(axis=0, initial=np.inf)
    )
    half_width = np.where(varies, np.minimum(units.half_width, bound), units.half_width)
    largest = np.where(np.isnan(others), 0.0, np.abs(others)).max(axis=0, initial=0.0)
    return Scale(medians, np.maximum(half_width, _ROUNDING * largest))


def lower_median(x: Floats, weights: Floats) -> float:
    """The weighted median, the lower one of two; 0 of nothing."""
    if not x.size:
        return 0.0
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    return float(x[order[np.searchsorted(below, 0.5 * below[-1])]])

r"""Outlyingness: how far values of single columns lie from the values of a class and of all rows.

The score of `typicality` has the terms :math:`4 \sum_j \max(0, e_{yj}(x) - 3)^2` and
:math:`64 \min(1, \max(0, (\max_j |z_j(x)| - 7) / 2))`.

:math:`e_{yj}` is the distance of :math:`x_j` from the nearest value of the column in the class, and
:math:`z_j` the distance from the median of the column. Both are in standard deviations of the column, which
the farthest values may widen tenfold at most. The terms see what densities may not: ranks end with the
training range, and a density may make little use of a column; and a single row far out in a column is no
reason to find others like it typical. For :math:`z_j` only the most outlying rows count. A value is the more
outlying the fewer rows lie as far out in the column on the same side, and among equals the farther it lies
out. One row in a hundred may count, and at least one, so that not all novel rows of a table with long tails
are such.

**Training rows** get these terms exactly as a new row does: medians, deviations and nearest values come
from a table without the row and its group. Otherwise :math:`|z_j|` of a training row could not exceed
:math:`(n - 1) / \sqrt n`, whereas that of a new row has no bound, and too many new rows would be novel. In a
large table several groups are left out of medians and deviations together, to save time.

A column with the same value in all n rows has no deviation. Another value there lies as far out as if it were
one more row, :math:`(n + 1) / \sqrt{n}` deviations of the n + 1 values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.duplicates import filled
from corral.data.scaling import Scale, ranges_of_values, standard_of_values
from corral.data.splits import spread_parts

# Values that lie nearer than this to others of a class, in deviations of the column, are nothing special.
_NEAR = 3.0

# What a squared distance beyond that takes from a score.
_STRENGTH = 4.0

# What a value far from the median takes from a score: nothing up to the first of two distances, all from the
# second on, if its row is among the most outlying: at most such a share of rows is, and at least one.
_EXTREME = 64.0
_EXTREME_FROM, _EXTREME_TO = 7.0, 9.0
_RARE = 0.01

# A share of the values of a column, those farthest out, may widen its deviation by a factor, if there are
# enough values to tell.
_FARTHEST = 0.005
_WIDENED = 10.0
_ENOUGH_VALUES = 20

# A column that varies by less than this share of its values is constant but for rounding.
_ROUNDING = 1e-12

# Values that differ from a constant by less than this share of it may be the same number, written in fewer
# digits or kept in single precision; and what differs from 0 by less than rounding may be 0.
_DIGITS = 1e-6

# Medians and deviations of tables without some rows are learnt from about so many cells, and from at least so
# many tables.
_MAX_CELLS = 1_500_000
_FEWEST_PARTS = 8


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Values that a column of measurements takes in a class, in deviations of the column."""

    values: Floats  # (n_values,) in order; none for categories and empty columns
    group_ids: Integers  # (n_values,) of their rows, in order where values are equal

    @classmethod
    def sort(cls, x: Floats, group_ids: Integers) -> ColumnValues:
        """Sort values; missing ones are left out."""
        present = np.flatnonzero(~np.isnan(x))
        order = present[np.lexsort((group_ids[present], x[present]))]
        return cls(x[order], group_ids[order])

    @cached_property
    def _runs(self) -> tuple[Floats, Integers, Integers, Integers]:
        """Values between infinite ones, their groups, and the positions before and after each group's run."""
        group_ids = np.concatenate([[-1], self.group_ids, [-1]])
        begins = np.flatnonzero(np.diff(group_ids, prepend=-2))
        run = np.searchsorted(begins, np.arange(group_ids.size), side="right") - 1
        values = np.concatenate([[-np.inf], self.values, [np.inf]])
        return values, group_ids, begins[run] - 1, np.append(begins[1:], group_ids.size)[run]

    def distances(self, x: Floats, group_ids: Integers | None = None) -> Floats:
        """How far numbers (n_samples,) lie from the nearest value, perhaps of another group; 0 if none is."""
        values, owners, before, after = self._runs
        left = np.searchsorted(self.values, x)
        right = left + 1
        if group_ids is not None:
            right = np.where(owners[right] == group_ids, after[right], right)
            left = np.where(owners[left] == group_ids, before[left], left)
        apart = np.minimum(values[right] - x, x - values[left])
        return np.where(np.isinf(apart), 0.0, apart)

    def beyond(self, x: Floats, is_above: Bools, group_ids: Integers | None) -> Integers:
        """How many values, perhaps of other groups alone, lie at least as far out as numbers (n_samples,)."""
        if group_ids is None:
            below = np.searchsorted(self.values, x, side="right")
            above = self.values.size - np.searchsorted(self.values, x, side="left")
            return np.where(is_above, above, below)
        as_far = np.where(
            is_above[:, np.newaxis], self.values >= x[:, np.newaxis], self.values <= x[:, np.newaxis]
        )
        counts: Integers = (as_far & (self.group_ids != group_ids[:, np.newaxis])).sum(axis=1)
        return counts


class Deviations(NamedTuple):
    """What turns raw values into distances from the median, in standard deviations of the column.

    All arrays are (n_features,), or (n_samples, n_features) where each sample has its own.
    """

    # center, half_width: as in `Scale`
    center: Floats
    half_width: Floats
    n_equal: Integers  # how many rows have the only value of a column; 0 where there are several or none

    @classmethod
    def learn(cls, X: Floats, weights: Floats | None) -> Deviations:
        """Learn from rows (n_rows, n_features); few values far out do not widen deviations without bounds."""
        if not len(X):
            X = np.full((1, X.shape[1]), np.nan)
            weights = None
        values = np.sort(X, axis=0)  # missing values last
        n_values = (~np.isnan(X)).sum(axis=0)
        middle = np.maximum(np.ceil(0.5 * n_values).astype(np.int64) - 1, 0)
        medians = np.where(n_values > 0, values[middle, np.arange(X.shape[1])], 0.0)
        inner = _without_farthest(X, medians, n_values)
        widest = standard_of_values(X, weights).half_width
        bound = _WIDENED * standard_of_values(inner, weights).half_width
        low, high = ranges_of_values(inner)
        half_width = np.where(high > low, np.minimum(widest, bound), widest)
        largest = np.where(n_values > 0, np.maximum(np.abs(low), np.abs(high)), 0.0)
        half_width = np.maximum(half_width, _ROUNDING * largest)
        low, high = ranges_of_values(X)
        with np.errstate(invalid="ignore"):
            rounding = _ROUNDING * np.abs(0.5 * medians)
            constant = np.maximum(0.5 * high - 0.5 * medians, 0.5 * medians - 0.5 * low) <= rounding
        return cls(medians, half_width, np.where(constant & (n_values > 0), n_values, 0))

    def scaled(self, X: Floats) -> Floats:
        """Distances from medians; what differs from a constant is as far out as if it were one more row."""
        scaled = Scale(self.center, self.half_width).transform(X)
        constant = self.n_equal > 0
        if not constant.any():
            return scaled
        n = np.maximum(self.n_equal, 1)
        center = 0.5 * np.abs(self.center)
        differs = np.abs(scaled) > np.where(center > 0.0, _DIGITS * center, _ROUNDING) / self.half_width
        apart = np.maximum(np.abs(scaled), (n + 1) / np.sqrt(n))
        outside = np.where(differs, np.copysign(apart, scaled), 0.0 * scaled)  # missing values stay
        return np.where(constant, outside, scaled)

    def take(self, positions: Integers) -> Deviations:
        """The medians and deviations of the table that belongs to each sample, by its position."""
        return Deviations(self.center[positions], self.half_width[positions], self.n_equal[positions])


@dataclass(frozen=True, eq=False)
class Columns:
    """Values that columns take in each class, and how far others lie from them."""

    data: LabelledRows  # the rows
    deviations: Deviations  # of all rows, from the medians of the columns
    # (n_rows,) which rows are left out together, and `without_part` what is learnt without each part
    parts: Integers
    without_part: Deviations  # arrays (n_parts, n_features)
    # by class and column; the values of all classes where a class has none
    values: Sequence[Sequence[ColumnValues]]
    pooled: Sequence[ColumnValues]  # by column, of all classes

    @classmethod
    def learn(cls, data: LabelledRows) -> Columns:
        """Learn medians, deviations and values of the columns that are no categories."""
        X = np.where(data.category_counts > 0, np.nan, data.X)
        deviations = Deviations.learn(X, data.weights)
        n_parts = max(_MAX_CELLS // max(X.size, 1), _FEWEST_PARTS)
        parts = spread_parts(data, np.argsort(np.lexsort(filled(data.X).T)), n_parts)
        without_part = [
            Deviations.learn(X[others], data.weights_of(others))
            for others in (np.flatnonzero(parts != part) for part in range(parts.max(initial=-1) + 1))
        ]
        stacked = Deviations(*(np.array(arrays) for arrays in zip(*without_part, strict=True)))
        scaled = deviations.scaled(X)
        pooled = [ColumnValues.sort(x, data.group_ids) for x in scaled.T]
        by_class = [
            [
                ColumnValues.sort(x[rows], data.group_ids[rows])
                if (~np.isnan(x[rows])).any()
                else all_classes
                for x, all_classes in zip(scaled.T, pooled, strict=True)
            ]
            for rows in data.members()
        ]
        return cls(data, deviations, parts, stacked, by_class, pooled)

    def outlyingness(self, X: Floats, points: Integers | None = None) -> Floats:
        """What values far from the values of a class take from scores (n_samples, n_classes).

        The samples are new rows, or the training rows at positions `points`: these are compared with the rows
        of other groups alone, in the deviations that the columns have without their part.
        """
        scaled = apart = self.deviations.scaled(X)
        group_ids = None
        if points is not None:
            own = self.without_part.take(self.parts[points])
            apart, group_ids = own.scaled(X), self.data.group_ids[points]
        terms = np.zeros((len(X), len(self.values)))
        for y in range(len(self.values)):
            distances = self._distances(y, scaled, group_ids)
            if points is not None:
                is_other = (own.n_equal > 0) & (distances > 0.0)
                ratio = self.deviations.half_width / own.half_width
                distances = np.where(is_other, np.abs(apart), ratio * distances)
            terms[:, y] = _far_terms(distances).sum(axis=1)
        extreme = _extreme_term(self._most_outlying(scaled, apart, group_ids).max(axis=1, initial=0.0))
        return extreme[:, np.newaxis] + terms

    def terms(self, X: Floats, codes: Integers) -> Floats:
        """Terms of new rows by variable (n_samples, n_features), for a class of each row."""
        terms = np.zeros(X.shape)
        scaled = self.deviations.scaled(X)
        for y in np.unique(codes).tolist():
            terms[codes == y] = _far_terms(self._distances(y, scaled[codes == y]))
        apart = self._most_outlying(scaled, scaled)
        rows, most = np.arange(len(X)), apart.argmax(axis=1)
        terms[rows, most] += _extreme_term(apart[rows, most])
        return terms

    def _distances(self, y: int, scaled: Floats, group_ids: Integers | None = None) -> Floats:
        """Distances (n_samples, n_features) from the nearest values of a class; 0 where a column has none."""
        distances = np.zeros(scaled.shape)
        for j, column in enumerate(self.values[y]):
            if column.values.size:
                distances[:, j] = column.distances(scaled[:, j], group_ids)
        return distances

    @cached_property
    def _outlying_bound(self) -> tuple[int, float]:
        """From where on a value far out is among the most outlying: values beyond it, then its distance.

        As many training rows reach the bound as may be among the most outlying, at least one.
        """
        X = self.data.X
        scaled, apart = self.deviations.scaled(X), self.without_part.take(self.parts).scaled(X)
        rows, _, distance, n_beyond = self._beyond(scaled, apart, self.data.group_ids)
        order = np.lexsort((-distance, n_beyond))
        first = np.sort(np.unique(rows[order], return_index=True)[1])  # where each row is met first
        n_most = max(int(_RARE * (len(X) + 1)) - 1, 1)  # one more, a new row, is still a hundredth
        if first.size <= n_most:
            return len(X), 0.0
        last = order[first[n_most - 1]]
        return int(n_beyond[last]), float(distance[last])

    def _most_outlying(self, scaled: Floats, apart: Floats, group_ids: Integers | None = None) -> Floats:
        """Distances from medians (n_samples, n_features); 0 but for the most outlying rows."""
        rows, columns, distance, n_beyond = self._beyond(scaled, apart, group_ids)
        counted = np.zeros(apart.shape)
        if rows.size:
            most, least_distance = self._outlying_bound
            included = (n_beyond < most) | ((n_beyond == most) & (distance >= least_distance))
            counted[rows, columns] = np.where(included, distance, 0.0)
        return counted

    def _beyond(
        self, scaled: Floats, apart: Floats, group_ids: Integers | None
    ) -> tuple[Integers, Integers, Floats, Integers]:
        """Rows and columns of values far from medians, their distances, and how many others lie as far out.

        `scaled` is in deviations of all rows, as `pooled` is, and `apart` in deviations of the rows that
        samples are compared with; `group_ids` (n_samples,) are the groups of training rows, None for new
        rows.
        """
        has_values = np.array([column.values.size > 0 for column in self.pooled], dtype=bool)
        rows, columns = np.nonzero((np.abs(apart) > _EXTREME_FROM) & has_values)  # no missing values
        n_beyond = np.zeros(rows.size, dtype=np.int64)
        for j in np.unique(columns).tolist():
            cells = np.flatnonzero(columns == j)
            samples = rows[cells]
            n_beyond[cells] = self.pooled[j].beyond(
                scaled[samples, j], apart[samples, j] > 0.0, None if group_ids is None else group_ids[samples]
            )
        return rows, columns, np.abs(apart[rows, columns]), n_beyond


def _far_terms(apart: Floats) -> Floats:
    """What distances from the nearest value take from scores; 0 for missing values."""
    beyond: Floats = np.maximum(np.nan_to_num(apart) - _NEAR, 0.0)
    return _STRENGTH * beyond * beyond


def _extreme_term(apart: Floats) -> Floats:
    """What distances (n_samples,) from the median of a column take from scores."""
    share = (apart - _EXTREME_FROM) / (_EXTREME_TO - _EXTREME_FROM)
    return _EXTREME * np.clip(share, 0.0, 1.0)


def _without_farthest(X: Floats, medians: Floats, n_values: Integers) -> Floats:
    """Rows without the values of each column that lie farthest from the median, if there are enough."""
    n_farthest = np.where(n_values >= _ENOUGH_VALUES, np.ceil(_FARTHEST * n_values), 0).astype(np.int64)
    apart = np.abs(0.5 * X - 0.5 * medians)
    apart[np.isnan(apart)] = -1.0
    inner = X.copy()
    for rank in range(int(n_farthest.max(initial=0))):
        columns = np.flatnonzero(n_farthest > rank)
        farthest = apart[:, columns].argmax(axis=0)
        inner[farthest, columns] = np.nan
        apart[farthest, columns] = -1.0
    return inner

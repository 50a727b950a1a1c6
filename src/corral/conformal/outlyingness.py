r"""Outlyingness: a penalty for values of single columns far from the values of a class and of all rows.

`typicality` subtracts two penalties from the score of a sample in class y:

- :math:`4 \sum_j \max(0, e_{yj}(x) - 3)^2`, where :math:`e_{yj}` is the distance of :math:`x_j` from the
  nearest value of column j in the class, and
- :math:`64 \min(1, \max(0, (\max_j |z_j(x)| - 7) / 2))`, where :math:`z_j` is the distance of :math:`x_j`
  from the median of column j.

Both distances are in standard deviations of the column. The farthest values of a column can increase its
deviation at most tenfold. The penalties are needed because a class density can miss a far value: a scale by
ranks ends at the training range, and a density may give a column little weight. The second penalty also
keeps one far training row from making new rows near that row typical.

The second penalty applies only to the most outlying rows, so that long tails do not make most novel rows.
Values are ordered by the number of training rows at least as far out in the column on the same side (fewer
is more outlying), then by distance. A value is penalized only if it is at least as outlying as the bound
that about 1% of the training rows, and at least one, reach.

**Training rows** get the same penalties as new rows: medians, deviations and nearest values come from a
table without the row and its group. Otherwise a far value of a training row would increase the deviation in
which its own distance is measured. (If n - 1 of n values are equal, :math:`|z_j|` of the other value is
:math:`n / \sqrt{n - 1}`, however far out it is.) Distances of new rows are not reduced in this way, so too
many new rows would be novel. In a large table several groups are left out of medians and deviations
together, to save time.

If a column has the same value in all n rows, its standard deviation is 0. Any other value in this column is
taken to lie at least :math:`(n + 1) / \sqrt{n}` deviations out, as a single different value among n + 1 does.
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

# Distances up to _NEAR from the nearest value of a class, in deviations of the column, are not penalized. The
# square of the distance beyond _NEAR is multiplied by _STRENGTH.
_NEAR = 3.0
_STRENGTH = 4.0

# The penalty for the distance from the median rises from 0 at _EXTREME_FROM to _EXTREME at _EXTREME_TO. It
# applies to the most outlying rows: a share _RARE of the rows, and at least one row.
_EXTREME = 64.0
_EXTREME_FROM, _EXTREME_TO = 7.0, 9.0
_RARE = 0.01

# If a column has _ENOUGH_VALUES, the share _FARTHEST of its values that lie farthest from the median can
# increase the deviation at most by the factor _WIDENED.
_FARTHEST = 0.005
_WIDENED = 10.0
_ENOUGH_VALUES = 20

# A column whose values differ by less than this share of their size is constant up to rounding errors.
_ROUNDING = 1e-12

# A value whose relative difference from a constant is smaller may be the same number, written with fewer
# digits or kept in single precision. For the constant 0 the limit is _ROUNDING, an absolute difference.
_DIGITS = 1e-6

# Medians and deviations are computed once for each part of the groups that is left out. The number of parts
# is limited so that these tables have about _MAX_CELLS in total, but it is at least _FEWEST_PARTS.
_MAX_CELLS = 1_500_000
_FEWEST_PARTS = 8


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Sorted values of one column, of a class or of all rows, in deviations of the column."""

    values: Floats  # (n_values,) ascending; empty if the column has categories or no values
    group_ids: Integers  # (n_values,) the group of each value's row, ascending among equal values

    @classmethod
    def sort(cls, x: Floats, group_ids: Integers) -> ColumnValues:
        """Sort the values x (n_rows,) that are not missing."""
        present = np.flatnonzero(~np.isnan(x))
        order = present[np.lexsort((group_ids[present], x[present]))]
        return cls(x[order], group_ids[order])

    @cached_property
    def _runs(self) -> tuple[Floats, Integers, Integers, Integers]:
        """Values with -inf before and inf after, their groups, and the neighbors of each value's run.

        A run is a sequence of neighboring values of one group. The last two arrays are the positions just
        before and just after the run of each value. All four have the shape (n_values + 2,).
        """
        group_ids = np.concatenate([[-1], self.group_ids, [-1]])
        begins = np.flatnonzero(np.diff(group_ids, prepend=-2))
        run = np.searchsorted(begins, np.arange(group_ids.size), side="right") - 1
        values = np.concatenate([[-np.inf], self.values, [np.inf]])
        return values, group_ids, begins[run] - 1, np.append(begins[1:], group_ids.size)[run]

    def distances(self, x: Floats, group_ids: Integers | None = None) -> Floats:
        """Distances (n_samples,) of x from the nearest value; 0 if there is no such value.

        If `group_ids` (n_samples,) are given, only values of other groups are compared with a sample.
        """
        values, owners, before, after = self._runs
        left = np.searchsorted(self.values, x)
        right = left + 1
        if group_ids is not None:
            right = np.where(owners[right] == group_ids, after[right], right)
            left = np.where(owners[left] == group_ids, before[left], left)
        apart = np.minimum(values[right] - x, x - values[left])
        return np.where(np.isinf(apart), 0.0, apart)

    def beyond(self, x: Floats, is_above: Bools, group_ids: Integers | None) -> Integers:
        """Count values (n_samples,) that are at least x if `is_above`, at most x otherwise.

        If `group_ids` (n_samples,) are given, only values of other groups are counted for a sample.
        """
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
    """Medians and standard deviations of columns, which turn values into distances from the median.

    All arrays have the shape (n_features,), or (n_samples, n_features) if each sample has its own deviations.
    """

    center: Floats  # medians
    half_width: Floats  # halves of the deviations: a whole deviation may be too large for a number
    n_equal: Integers  # number of values if all values of the column are equal, otherwise 0

    @classmethod
    def learn(cls, X: Floats, weights: Floats | None) -> Deviations:
        """Compute medians, and deviations that a few far values cannot increase without limit.

        X is (n_rows, n_features); NaN is a missing value. `weights` (n_rows,) may be None.
        """
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
        """Return signed distances (n_samples, n_features) from medians; constant columns: see the module."""
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
        """Pick the medians and deviations at `positions` (n_samples,) of the first axis."""
        return Deviations(self.center[positions], self.half_width[positions], self.n_equal[positions])


@dataclass(frozen=True, eq=False)
class Columns:
    """Values of all columns in each class, which samples are compared with."""

    data: LabelledRows  # the training rows
    deviations: Deviations  # of all training rows
    parts: Integers  # (n_rows,) code of the part in which each training row is left out
    without_part: Deviations  # (n_parts, n_features) computed from the training rows outside each part
    # by class, then by column; the values of all classes if the class has none in the column
    values: Sequence[Sequence[ColumnValues]]
    pooled: Sequence[ColumnValues]  # by column, the values of all classes

    @classmethod
    def learn(cls, data: LabelledRows) -> Columns:
        """Compute medians, deviations and sorted values of the columns that are not categories."""
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
        """Compute the sums (n_samples, n_classes) of the two penalties, to be subtracted from scores.

        X (n_samples, n_features) are new rows. If `points` (n_samples,) is given, X are the training rows at
        these positions: they are compared with rows of other groups only, in the deviations `without_part`.
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
        """Compute the penalties of new rows by variable (n_samples, n_features).

        `codes` (n_samples,) are the classes with which the rows are compared. The penalty for the distance
        from the median is attributed to the variable in which this distance is largest.
        """
        terms = np.zeros(X.shape)
        scaled = self.deviations.scaled(X)
        for y in np.unique(codes).tolist():
            terms[codes == y] = _far_terms(self._distances(y, scaled[codes == y]))
        apart = self._most_outlying(scaled, scaled)
        rows, most = np.arange(len(X)), apart.argmax(axis=1)
        terms[rows, most] += _extreme_term(apart[rows, most])
        return terms

    def _distances(self, y: int, scaled: Floats, group_ids: Integers | None = None) -> Floats:
        """Distances (n_samples, n_features) from the nearest values of class y; 0 for columns without any."""
        distances = np.zeros(scaled.shape)
        for j, column in enumerate(self.values[y]):
            if column.values.size:
                distances[:, j] = column.distances(scaled[:, j], group_ids)
        return distances

    @cached_property
    def _outlying_bound(self) -> tuple[int, float]:
        """The least outlying value that is penalized: how many values lie as far out, and its distance.

        At most the share _RARE of the training rows reach this bound, but one row always may.
        """
        X = self.data.X
        scaled, apart = self.deviations.scaled(X), self.without_part.take(self.parts).scaled(X)
        rows, _, distance, n_beyond = self._beyond(scaled, apart, self.data.group_ids)
        order = np.lexsort((-distance, n_beyond))
        first = np.sort(np.unique(rows[order], return_index=True)[1])  # the most outlying value of each row
        n_most = max(int(_RARE * (len(X) + 1)) - 1, 1)  # leaves room for one new row within the share
        if first.size <= n_most:
            return len(X), 0.0
        last = order[first[n_most - 1]]
        return int(n_beyond[last]), float(distance[last])

    def _most_outlying(self, scaled: Floats, apart: Floats, group_ids: Integers | None = None) -> Floats:
        """Distances from medians (n_samples, n_features); 0 for values that do not reach the bound."""
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
        """List values far from medians: rows, columns, distances, and counts of values as far out.

        `scaled` and `apart` (n_samples, n_features) are the same values: `scaled` in deviations of all rows,
        as `pooled` is, `apart` in deviations of the rows with which a sample is compared. `group_ids`
        (n_samples,) are the groups of training rows, or None if the samples are new rows.
        """
        has_values = np.array([column.values.size > 0 for column in self.pooled], dtype=bool)
        rows, columns = np.nonzero((np.abs(apart) > _EXTREME_FROM) & has_values)  # False for missing values
        n_beyond = np.zeros(rows.size, dtype=np.int64)
        for j in np.unique(columns).tolist():
            cells = np.flatnonzero(columns == j)
            samples = rows[cells]
            n_beyond[cells] = self.pooled[j].beyond(
                scaled[samples, j], apart[samples, j] > 0.0, None if group_ids is None else group_ids[samples]
            )
        return rows, columns, np.abs(apart[rows, columns]), n_beyond


def _far_terms(apart: Floats) -> Floats:
    """Penalties for distances from the nearest value of a class; 0 for missing values."""
    beyond: Floats = np.maximum(np.nan_to_num(apart) - _NEAR, 0.0)
    return _STRENGTH * beyond * beyond


def _extreme_term(apart: Floats) -> Floats:
    """Penalties (n_samples,) for distances from the median of a column."""
    share = (apart - _EXTREME_FROM) / (_EXTREME_TO - _EXTREME_FROM)
    return _EXTREME * np.clip(share, 0.0, 1.0)


def _without_farthest(X: Floats, medians: Floats, n_values: Integers) -> Floats:
    """Replace the values farthest from the median by NaN in columns with enough values."""
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

"""Scales: transformations that make raw columns comparable before any bandwidth is chosen.

A scale is fitted to the training rows of all classes together (the pooled rows), so that it is the same for
all classes. Bandwidths and class densities refer to scaled rows. Missing values stay missing and are ignored.
Codes of categories are not changed.

The kinds of scales are "range" (smallest and largest value), "standard" (mean and standard deviation), "rank"
(ranks as shares of rows), "score" (normal scores of ranks), and None (values are not changed).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from corral.array_types import LARGEST_COORDINATE, SMALLEST, Bools, Floats, Integers, check_array, check_shape
from corral.data.weights import weights_or_ones

ScaleKind = Literal["range", "standard", "rank", "score"] | None

# Number of values in a mean that replaces the smallest or the largest value, so that no value is stored.
_FEW = 5

# Limit of scores in model files; normal scores of ranks are much smaller.
_LARGEST_SCORE = 1e3


@dataclass(frozen=True, eq=False)
class Scale:
    """Transformation of each column: ``(x - center) / width``, or interpolation between knots."""

    center: Floats  # (n_features,)
    half_width: Floats  # (n_features,) half of the width, because the width of a column can overflow
    # For ranks and normal scores: for each column sorted values and their scaled values, or None if the
    # column is not changed. None for other kinds of scales.
    knots: tuple[tuple[Floats, Floats] | None, ...] | None = None

    def validate(self) -> None:
        """Raise ValueError if a width is not positive or if knots are not strictly increasing."""
        d = self.center.size
        check_array("center", self.center, (d,))
        check_array("half_width", self.half_width, (d,), SMALLEST)
        if self.knots is None:
            return
        if len(self.knots) != d:
            raise ValueError(f"knots does not have {d} entries")
        for values, scores in (knots for knots in self.knots if knots is not None):
            check_array("knots", values, (None,))
            check_array("knots", scores, (values.size,), -_LARGEST_SCORE, _LARGEST_SCORE)
            if values.size < 1 or (np.diff(values) <= 0.0).any() or (np.diff(scores) <= 0.0).any():
                raise ValueError("knots are not strictly increasing")

    def validate_for(self, n_categories: Integers) -> None:
        """Raise ValueError if the scale has another number of columns or changes codes of categories.

        `n_categories` (n_features,) is the number of categories of each column, 0 for a numeric column.
        """
        check_shape("center", self.center, n_categories.shape)
        is_category = n_categories > 0
        if self.center[is_category].any() or (self.half_width[is_category] != 0.5).any():
            raise ValueError("center or half_width changes codes of categories")
        if any(self.knots is not None and self.knots[j] is not None for j in np.flatnonzero(is_category)):
            raise ValueError("knots change codes of categories")

    def transform(self, X: Floats) -> Floats:
        """Scale raw rows (n_rows, n_features); ranks and scores are interpolated between knots."""
        if self.knots is not None:
            columns = [
                x if knots is None else _interpolate(x, *knots)
                for x, knots in zip(X.T, self.knots, strict=True)
            ]
            return np.stack(columns, axis=1)
        scaled = 0.5 * X
        scaled -= 0.5 * self.center
        with np.errstate(over="ignore"):  # values that overflow become the largest coordinate
            scaled /= self.half_width
        return np.clip(scaled, -LARGEST_COORDINATE, LARGEST_COORDINATE, out=scaled)

    def restore(self, scaled: Floats) -> Floats:
        """Convert scaled rows to raw rows; not for ranks and scores."""
        with np.errstate(over="ignore"):
            halves = scaled * self.half_width + 0.5 * self.center
        largest = np.finfo(np.float64).max
        return 2.0 * np.clip(halves, -0.5 * largest, 0.5 * largest)

    def with_fewer_knots(self, max_knots: int) -> Scale:
        """Return a scale with about `max_knots` knots for each column that has more.

        Half of the knots are evenly spaced by rank, the others by normal score. Each knot is halfway between
        two values of rows, so that a model file does not contain values of rows of these columns. Columns
        with at most `max_knots` different values keep these values as knots.
        """
        if self.knots is None:
            return self
        return replace(self, knots=tuple(_fewer(knots, max_knots) for knots in self.knots))

    @property
    def log_widths(self) -> Floats:
        """(n_features,) logarithms of the raw widths that are scaled to width 1."""
        log_widths: Floats = np.log(self.half_width) + np.log(2.0)
        return log_widths


def learn_scale(
    X: Floats, weights: Floats | None, kind: ScaleKind, n_categories: Integers | None = None
) -> Scale:
    """Fit a scale to pooled rows (n_rows, n_features) and their weights.

    Columns with categories and columns in which all values are missing are not changed. By range or standard
    deviation, a constant column is centered but not rescaled.
    """
    d = X.shape[1]
    identity = Scale(np.zeros(d), np.full(d, 0.5))
    if kind is None:
        return identity
    missing = np.isnan(X)
    scaled = ~missing.all(axis=0) & (
        np.ones(d, dtype=np.bool_) if n_categories is None else n_categories == 0
    )
    if kind in ("rank", "score"):
        knots: list[tuple[Floats, Floats] | None] = [None] * d
        for j in np.flatnonzero(scaled).tolist():
            has_value = ~missing[:, j]
            knots[j] = _learn_knots(X[has_value, j], None if weights is None else weights[has_value], kind)
        return replace(identity, knots=tuple(knots))
    if not scaled.all():
        X = np.where(scaled, X, np.nan)
    scale = standard_of_values(X, weights) if kind == "standard" else _range_scale(*_finite_ranges(X))
    return Scale(np.where(scaled, scale.center, 0.0), np.where(scaled, scale.half_width, 0.5))


def standard_of_values(X: Floats, weights: Floats | None) -> Scale:
    """Return the scale by means and standard deviations; missing values are ignored."""
    low, high = _finite_ranges(X)
    largest = np.maximum(np.abs(low), np.abs(high))
    largest = np.where(largest == 0.0, 1.0, largest)  # without this factor squares could overflow
    shares, m = X / largest, weights_or_ones(weights, len(X))[:, np.newaxis]
    missing = np.isnan(shares)
    shares, m = np.where(missing, 0.0, shares), np.where(missing, 0.0, m)
    total = np.maximum(m.sum(axis=0), np.finfo(np.float64).tiny)
    mean = (m * shares).sum(axis=0) / total
    variance = (m * (shares - mean) ** 2).sum(axis=0) / total
    half_width = np.minimum(0.5 * np.sqrt(variance) * largest, 0.5 * high - 0.5 * low)
    return _centered(low, mean * largest, half_width)


def ranges_of_values(X: Floats) -> tuple[Floats, Floats]:
    """Return smallest and largest values of columns; inf and -inf if all values are missing."""
    return np.fmin.reduce(X, axis=0, initial=np.inf), np.fmax.reduce(X, axis=0, initial=-np.inf)


def _finite_ranges(X: Floats) -> tuple[Floats, Floats]:
    """Return smallest and largest values of columns; 0 if all values are missing."""
    low, high = ranges_of_values(X)
    return np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)


def _range_scale(low: Floats, high: Floats) -> Scale:
    """Return the scale by the smallest and largest values of columns."""
    return _centered(low, low, 0.5 * high - 0.5 * low)


def blurred_range(X: Floats) -> Scale:
    """Return the scale by the means of the five smallest and of the five largest values of columns."""
    few = min(_FEW, len(X))
    ordered = np.partition(X, [few - 1, len(X) - few], axis=0)
    return _range_scale(ordered[:few].mean(axis=0), ordered[len(X) - few :].mean(axis=0))


def _centered(low: Floats, center: Floats, half_width: Floats) -> Scale:
    """Return a scale with the given centers and half widths; constant columns keep their width."""
    constant = half_width < np.finfo(np.float64).tiny
    return Scale(np.where(constant, low, center), np.where(constant, 0.5, half_width))


def spreads(x: Floats) -> Floats:
    """Return largest minus smallest value of each column (n_features,); 0 if all values are missing."""
    low, high = _finite_ranges(x)
    return high - low


class SortedColumns:
    """Sorted columns, from which ranks and scores among a part of the rows are computed in a few passes.

    Parameters
    ----------
    X : (n_rows, n_features) raw rows.
    weights : (n_rows,) or None.
    """

    def __init__(self, X: Floats, weights: Floats | None) -> None:
        n, d = X.shape
        self._order = np.argsort(X, axis=0, kind="stable")  # missing values last
        self._x = np.take_along_axis(X, self._order, axis=0)
        self._weights = weights_or_ones(weights, n)[self._order]
        self._missing = np.isnan(self._x)
        positions = np.broadcast_to(np.arange(n)[:, np.newaxis], (n, d))
        is_new = np.ones((n, d), dtype=bool)
        is_new[1:] = self._x[1:] != self._x[:-1]
        is_last = np.ones((n, d), dtype=bool)
        is_last[:-1] = is_new[1:]
        self._first = np.maximum.accumulate(np.where(is_new, positions, 0), axis=0)
        self._last = np.minimum.accumulate(np.where(is_last, positions, n)[::-1], axis=0)[::-1]

    def among(self, is_learnt: Bools) -> tuple[Floats, Floats]:
        """Return ranks and normal scores (n_rows, n_features) of all rows, fitted to a part of the rows.

        `is_learnt` (n_rows,) is true for the rows of this part. The results equal `Scale.transform` of all
        rows by the scale that `learn_scale` fits to this part.
        """
        n, d = self._x.shape
        is_knot = is_learnt[self._order] & ~self._missing
        weights = np.where(is_knot, self._weights, 0.0)
        below = np.zeros((n + 1, d))
        np.cumsum(weights, axis=0, out=below[1:])
        total = np.where(below[-1] > 0.0, below[-1], 1.0)
        before = np.take_along_axis(below, self._first, axis=0)
        up_to = np.take_along_axis(below, self._last + 1, axis=0)
        ranks = (before + 0.5 * (up_to - before)) / total
        scores = _normal_quantiles(ranks)
        scores -= (weights * scores).sum(axis=0) / total
        by_rank, by_score = self._interpolated(np.array([ranks, scores]), is_knot)
        return by_rank, by_score

    def _interpolated(self, values: Floats, is_knot: Bools) -> Floats:
        """Interpolate values of all rows between values of knots.

        Parameters
        ----------
        values : (n_kinds, n_rows, n_features) values in the sorted order of each column, for several kinds
            of scales.
        is_knot : (n_rows, n_features) whether the row is a knot, in the same order.

        Returns
        -------
        interpolated : (n_kinds, n_rows, n_features) values in the order of the rows.
        """
        n, d = is_knot.shape
        positions = np.arange(n)[:, np.newaxis]
        # If a row equals a knot, the knot is both its left and its right neighbor.
        left = np.maximum.accumulate(np.where(is_knot, positions, -1), axis=0)
        left = np.take_along_axis(left, self._last, axis=0)
        right = np.minimum.accumulate(np.where(is_knot, positions, n)[::-1], axis=0)[::-1]
        right = np.take_along_axis(right, self._first, axis=0)
        left, right = np.where(left < 0, np.minimum(right, n - 1), left), np.where(right >= n, left, right)
        right = np.maximum(right, 0)
        columns = np.arange(d)
        left, right, order = left * d + columns, right * d + columns, self._order * d + columns
        x, values = self._x.ravel(), values.reshape(len(values), n * d)
        share = _share_of_way(self._x, x[left], x[right])
        interpolated = np.empty((len(values), n * d))
        for kind, numbers in enumerate(values):
            low = numbers[left]
            between = low + share * (numbers[right] - low)
            interpolated[kind, order] = np.where(self._missing, np.nan, between)
        return interpolated.reshape(-1, n, d)


def _learn_knots(x: Floats, weights: Floats | None, kind: ScaleKind) -> tuple[Floats, Floats]:
    """Return the distinct values of a column, and their ranks or normal scores.

    A rank is the share of rows with a smaller value, plus half the share of rows with an equal value. Scores
    have mean 0. Ties reduce the variance of the scores. The scores are not standardized, because this would
    make rare values outliers.
    """
    values, which = np.unique(x, return_inverse=True)
    counts = np.bincount(which, weights=weights, minlength=values.size).astype(np.float64)
    below = np.cumsum(counts)
    ranks = (below - 0.5 * counts) / below[-1]
    if kind == "rank":
        return values, ranks
    scores = _normal_quantiles(ranks)
    return values, scores - counts / below[-1] @ scores


def _fewer(knots: tuple[Floats, Floats] | None, max_knots: int) -> tuple[Floats, Floats] | None:
    """Return about `max_knots` knots halfway between knots of a column; all knots if there are not more."""
    if knots is None or knots[0].size <= max_knots:
        return knots
    values, ranks = knots
    by_score = ndtr(np.linspace(ndtri(0.5 / values.size), ndtri(1.0 - 0.5 / values.size), max_knots // 2))
    shares = np.concatenate([np.linspace(0.0, 1.0, max_knots - max_knots // 2), by_score])
    left = np.unique((shares * (values.size - 2)).round().astype(np.int64))
    halfway = 0.5 * values[left] + 0.5 * values[left + 1]
    between = (values[left] < halfway) & (halfway < values[left + 1])  # false for adjacent doubles
    return halfway[between], 0.5 * (ranks[left] + ranks[left + 1])[between]


def _normal_quantiles(ranks: Floats) -> Floats:
    """Return normal quantiles of ranks, which may be 0 or 1."""
    scores: Floats = ndtri(np.clip(ranks, 1e-9, 1.0 - 1e-9))
    return scores


def _interpolate(x: Floats, values: Floats, ranks: Floats) -> Floats:
    """Interpolate linearly, also between values so far apart that np.interp returns NaN."""
    if values.size == 1:
        return np.where(np.isnan(x), np.nan, ranks[0])
    left = np.clip(np.searchsorted(values, x, side="right") - 1, 0, values.size - 2)
    share = _share_of_way(x, values[left], values[left + 1])
    return ranks[left] + share * (ranks[left + 1] - ranks[left])


def _share_of_way(x: Floats, below: Floats, above: Floats) -> Floats:
    """Return (x - below) / (above - below), between 0 and 1; 0 if `below` and `above` are equal."""
    # Differences of the largest doubles overflow without the factor 1/2, which would round the smallest
    # doubles to 0.
    factor = np.where(np.maximum(np.abs(below), np.abs(above)) > 1.0, 0.5, 1.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        width = factor * above - factor * below
        share = np.where(width > 0.0, (factor * x - factor * below) / width, 0.0)
    return np.clip(share, 0.0, 1.0)

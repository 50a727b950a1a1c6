r"""Members of a pool on tables with gaps and levels.

A member's kernels are those of `members`, with these factors where a value is missing or a level.

**Levels.** Where rows are pulled towards the mean of their class, a row with level l has the probabilities
:math:`(1 - h^2) [l = l'] + h^2 p_y(l')`, which keep the frequencies :math:`p_y` of the class as a pulled
kernel keeps its covariance: h = 1 is naive Bayes. Other kernels are those of `general`. Frequencies are drawn
towards those of all classes, as if some rows with these were added.

**Gaps in a sample.** The variable is integrated out, exactly: along variances its factor is left out; along
covariances coordinates are projected on what is orthogonal to the rows of :math:`B_J` (see `members`).

**Gaps in a row.** Along variances the factor is the density of the variable in its class, a normal one with
its mean and variance, or its frequencies. Along covariances a missing value is at its expectation given the
others, which is the same projection. Means come from the rows that have the values, and covariances from
all rows, missing values being expected given the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from corral._core import kernels
from corral._core.calibration import Target, fit_log_weights, known, log_posterior
from corral._core.copies import effective_number
from corral._core.frames import (
    EXTRA_ROWS,
    TRUSTED_SHARE,
    Covariance,
    class_variances,
    differing,
    hardly_varies,
    repeated,
    shared_covariance,
)
from corral._core.general import NO_UNIT
from corral._core.refine import OPTIONS, STARTS
from corral._core.rows import LabelledRows
from corral._core.scale import inverse_root, shrunk, spreads
from corral._core.settings import Bools, Floats, Integers

# Numbers in a block of exponents.
_BLOCK = 400_000

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)

# The logarithm of the inverse bandwidth towards which those of levels are drawn: a distance of 1 means the
# same in every column, unlike one of measurements. Another level weighs exp(-e^{2 theta} / 2), here 0.44.
_USUAL_LEVELS = 0.25

# How often missing values are expected given a covariance, before it is taken. The first one is that of the
# pairs of values that are there, with variances along all directions above this share of their mean.
_N_ITERATIONS = 4
_LEAST_VARIANCE = 0.02


def _level_exponents(
    log_p: Floats, sizes: Integers, precision: Floats | None, h: Floats
) -> tuple[Floats, Floats, Floats]:
    """Exponents of levels with frequencies p, by the level of a row: equal, another, none.

    All arguments broadcast: logarithms of the frequencies, numbers of levels of their columns, inverse
    squared bandwidths of these (see `LevelKernels`), and the common bandwidths.
    """
    if precision is None:
        log_far = 2.0 * np.log(h) + log_p
        return -np.logaddexp(np.log(np.maximum(1.0 - h**2, 1e-300)), log_far), -log_far, -log_p
    half = 0.5 * precision / h**2
    equal = np.log1p((sizes - 1.0) * np.exp(-half))
    return equal, equal + half, -log_p


class LevelKernels(NamedTuple):
    """How a class sees variables with levels.

    Attributes
    ----------
    columns : (n_columns,) which they are.
    log_shares : for each of them (n_levels,) logarithms of the frequencies in the class.
    precision : (n_columns,) inverse squared bandwidths where the common one is 1, or None if rows are pulled
        towards the frequencies.
    """

    columns: Integers
    log_shares: Sequence[Floats]
    precision: Floats | None

    @property
    def sizes(self) -> Integers:
        """(n_columns,) numbers of levels."""
        return np.array([log_share.size for log_share in self.log_shares], dtype=np.int64)

    @property
    def offsets(self) -> Integers:
        """(n_columns,) where the levels of each column begin if all are in one row."""
        return np.cumsum([0, *self.sizes])[:-1].astype(np.int64)

    def log_shares_at(self, x: Floats) -> Floats:
        """Logarithms of the frequencies of levels (n_samples, n_columns); 0 for gaps."""
        found = np.zeros(x.shape)
        for k, log_share in enumerate(self.log_shares):
            known = ~np.isnan(x[:, k])
            found[known, k] = log_share[x[known, k].astype(np.int64)]
        return found

    def exponents(self, bandwidths: Floats) -> Floats:
        """Exponents (n_bandwidths, 3, n_levels) of each level, by that of a row: equal, another, none."""
        if not self.log_shares:
            return np.zeros((bandwidths.size, 3, 0))
        log_p, sizes = np.concatenate(self.log_shares), self.sizes
        precision = None if self.precision is None else np.repeat(self.precision, sizes)
        found = np.empty((bandwidths.size, 3, log_p.size))
        by_row = _level_exponents(log_p, np.repeat(sizes, sizes), precision, bandwidths[:, np.newaxis])
        for k, exponents in enumerate(by_row):
            found[:, k] = exponents
        return found


class _LevelsOfRows(NamedTuple):
    """Levels of rows as compiled loops read them: (n_columns, n_rows), and whether some row has none."""

    c: Floats
    has_gaps: Bools

    @classmethod
    def of(cls, rows: Floats, columns: Integers) -> _LevelsOfRows:
        """Take the columns with levels from scaled rows."""
        c = np.ascontiguousarray(rows[:, columns].T)
        return cls(c, np.asarray(np.isnan(c).any(axis=1)))


@dataclass(frozen=True, eq=False)
class MixedFrame:
    """The coordinates of one class, and what is known of single variables.

    Attributes
    ----------
    variables : (n_used,) columns of measurements that take part.
    mean : (n_used,) what coordinates are relative to.
    factor : (n_used, n_used) B, or (n_used,) its diagonal.
    gap_mean, gap_deviation : (n_used,) of the variables in the class, as coordinates; along variances.
    levels : variables with levels.
    """

    variables: Integers
    mean: Floats
    factor: Floats
    gap_mean: Floats
    gap_deviation: Floats
    levels: LevelKernels

    def sums(self, rows: Floats, x: Floats) -> _Sums:
        """Sums over variables for all pairs of scaled samples and rows."""
        rows, x = rows[:, self.variables] - self.mean, x[:, self.variables] - self.mean
        return self._along_variances(rows, x) if self.factor.ndim == 1 else self._along_covariance(rows, x)

    def completed(self, rows: Floats) -> Floats:
        """Scaled rows (n_rows, n_used) less the mean, with missing values expected; along covariances."""
        return complete(self.factor @ self.factor.T, rows[:, self.variables] - self.mean)

    def measured_terms(self, rows: Floats, x: Floats, bandwidth: float, pull: float) -> Floats:
        """Exponents (n_samples, n_used, n_rows) by variable, with their norms; along variances."""
        rows, x = ((of[:, self.variables] - self.mean) * self.factor for of in (rows, x))
        apart = (x[:, :, np.newaxis] - pull * rows.T) / bandwidth
        alone = 0.5 * ((x - self.gap_mean) / self.gap_deviation) ** 2 + np.log(self.gap_deviation)
        terms: Floats = np.where(
            np.isnan(rows.T), alone[:, :, np.newaxis], 0.5 * apart**2 + math.log(bandwidth)
        )
        terms += (_LOG_ROOT - np.log(self.factor))[:, np.newaxis]
        return terms

    def level_terms(
        self, rows: Floats, x: Floats, bandwidth: float, log_shares: Floats | None = None
    ) -> Floats:
        """Exponents (n_samples, n_columns, n_rows) of the variables with levels; any for gaps of samples.

        `log_shares` (n_samples, n_columns) are logarithms of the frequencies of the samples' levels, by
        default those of the class.
        """
        levels = self.levels
        rows, x = rows[:, levels.columns].T, x[:, levels.columns]
        log_p = levels.log_shares_at(x) if log_shares is None else log_shares
        by_row = _level_exponents(log_p, levels.sizes, levels.precision, np.array([bandwidth]))
        equal, other, gap = (np.broadcast_to(of, x.shape)[:, :, np.newaxis] for of in by_row)
        of_values = np.where(x[:, :, np.newaxis] == rows, equal, other)
        terms: Floats = np.where(np.isnan(rows), gap, of_values)
        return terms

    def _along_variances(self, rows: Floats, x: Floats) -> _Sums:
        rows, x = rows * self.factor, x * self.factor
        has, given = (~np.isnan(rows)).astype(np.float64), (~np.isnan(x)).astype(np.float64)
        rows, x = np.nan_to_num(rows), np.nan_to_num(x)
        return _Sums(
            xx=_product(x * x, has.T),
            xc=_product(x, rows.T),
            cc=_product(given, (rows * rows).T),
            known=_product(given, has.T),
            of_gaps=_product(self._alone(x, given), 1.0 - has.T),
            log_norm=given @ (_LOG_ROOT - np.log(self.factor)),
        )

    def exponents(self, rows: Floats, x: Floats, bandwidth: float, pull: float) -> tuple[Floats, Floats]:
        """Exponents (n_samples, n_rows) of measurements with one bandwidth, and `log_norm`: see `_Sums`.

        Along variances a single product has all of them.
        """
        half, log_h = 0.5 * bandwidth**-2.0, math.log(bandwidth)
        rows, x = rows[:, self.variables] - self.mean, x[:, self.variables] - self.mean
        if self.factor.ndim != 1:
            z, c, cc, n_known, log_norm = self._integrated(rows, x)
            cc *= half * pull**2
            cc += _product(-2.0 * half * pull * z, c.T)
            cc += (half * np.vecdot(z, z) + log_h * n_known)[:, np.newaxis]
            return cc, log_norm
        rows, x = rows * self.factor, x * self.factor
        has, given = (~np.isnan(rows)).astype(np.float64), (~np.isnan(x)).astype(np.float64)
        rows, x = np.nan_to_num(rows), np.nan_to_num(x)
        alone = self._alone(x, given)
        of_samples = (half * x * x + log_h * given - alone, -2.0 * half * pull * x, half * pull**2 * given)
        exponents = _product(np.hstack(of_samples), np.hstack([has, rows, rows * rows]).T)
        exponents += alone.sum(axis=1, keepdims=True)
        return exponents, given @ (_LOG_ROOT - np.log(self.factor))

    def _alone(self, x: Floats, given: Floats) -> Floats:
        """Exponents (n_samples, n_used) of variables that only the sample has."""
        alone: Floats = given * (
            0.5 * ((x - self.gap_mean) / self.gap_deviation) ** 2 + np.log(self.gap_deviation)
        )
        return alone

    def _along_covariance(self, rows: Floats, x: Floats) -> _Sums:
        z, c, cc, n_known, log_norm = self._integrated(rows, x)
        return _Sums(
            xx=np.repeat(np.vecdot(z, z)[:, np.newaxis], len(rows), axis=1),
            xc=_product(z, c.T),
            cc=cc,
            known=np.repeat(n_known[:, np.newaxis], len(rows), axis=1),
            of_gaps=np.zeros(cc.shape),
            log_norm=log_norm,
        )

    def _integrated(self, rows: Floats, x: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Integrate samples over their gaps, along a covariance.

        Returns
        -------
        z, c : (n_samples, n_used) and (n_rows, n_used) coordinates.
        cc : (n_samples, n_rows) squared lengths of rows in the coordinates that are left to a sample.
        n_known, log_norm : (n_samples,)
        """
        d = self.variables.size
        precision = self.factor @ self.factor.T
        gaps = np.isnan(x)
        completed, x = complete(precision, rows), complete(precision, x)
        c, z = _product(completed, self.factor), _product(x, self.factor)
        cc, log_volume = np.empty((len(x), len(rows))), np.empty(len(x))
        kernels.integrated_lengths(
            precision,
            gaps,
            np.ascontiguousarray((completed @ precision).T),
            np.vecdot(c, c),
            np.empty(d, dtype=np.int64),
            np.empty((d, d)),
            np.empty((d, len(rows))),
            cc,
            log_volume,
        )
        n_known = d - gaps.sum(axis=1).astype(np.float64)
        log_norm = log_volume - float(np.linalg.slogdet(self.factor)[1]) + _LOG_ROOT * n_known
        return z, c, cc, n_known, log_norm


def complete(precision: Floats, residuals: Floats) -> Floats:
    """Rows of mean 0 with missing values at their expectations given the others."""
    gaps, d = np.isnan(residuals), len(precision)
    completed = np.where(gaps, 0.0, residuals)
    kernels.complete_rows(precision, gaps, completed, np.empty(d, dtype=np.int64), np.empty((d, d)))
    return completed


class _Sums(NamedTuple):
    """Sums over variables, see `kernels.mixed_log_means`, and logarithms (n_samples,) of norms."""

    xx: Floats
    xc: Floats
    cc: Floats
    known: Floats
    of_gaps: Floats
    log_norm: Floats


def _product(A: Floats, B: Floats) -> Floats:
    """A product in which a row of A has the same bits whatever other rows there are."""
    product: Floats = kernels.product_by_rows(A, B)
    return product


def patterns(gaps: Bools) -> Iterator[tuple[Integers, Integers]]:
    """Rows that miss the same columns, and these columns; not those that miss none."""
    some = np.flatnonzero(gaps.any(axis=1))
    if not some.size:
        return
    patterns, which = np.unique(gaps[some], axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    for at, pattern in zip(np.split(some[order], np.cumsum(np.bincount(which))[:-1]), patterns, strict=True):
        yield at, np.flatnonzero(pattern)


# ------------------------------------------------------------------------------------------- frames


class _Moments(NamedTuple):
    """Means and residuals of rows by class, of the values that are there.

    Attributes
    ----------
    codes, weights : (n_rows,)
    known : (n_rows, n_variables) 1 where there is a value, else 0.
    residuals : (n_rows, n_variables) values less the means of their classes, 0 for gaps.
    means, variances : (n_classes, n_variables)
    within, total : (n_variables,) variances within classes, and of all rows.
    sizes : (n_classes,) how many rows of equal weight each class is worth.
    """

    codes: Integers
    weights: Floats
    known: Floats
    residuals: Floats
    means: Floats
    variances: Floats
    within: Floats
    total: Floats
    sizes: Floats

    @classmethod
    def of(cls, x: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> _Moments:
        """Gather the moments of scaled columns of measurements."""
        weights = np.ones(len(codes)) if weights is None else weights
        has = (~np.isnan(x)).astype(np.float64)
        x = np.nan_to_num(x)
        shares = np.zeros((n_classes, len(codes)))
        shares[codes, np.arange(len(codes))] = weights
        all_weights, of_class = weights @ has, shares @ has
        center = weights @ x / np.maximum(all_weights, 1e-300)
        means = np.where(of_class > 0.0, shares @ x / np.maximum(of_class, 1e-300), center)
        residuals = has * (x - means[codes])
        squares = residuals**2
        sizes = np.array([effective_number(weights[codes == y]) for y in range(n_classes)])
        known_share = of_class / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        own = shares @ squares / np.maximum(of_class, 1e-300)
        within = weights @ squares / np.maximum(all_weights, 1e-300)
        total = weights @ (has * (x - center) ** 2) / np.maximum(all_weights, 1e-300)
        n = sizes[:, np.newaxis] * known_share
        variances = class_variances(own, within, total, n, repeated(np.where(has > 0.0, x, np.nan)))
        return cls(codes, weights, has, residuals, means, variances, within, total, sizes)

    def of_pairs(self, columns: Bools) -> Floats:
        """A precision of some columns, from the rows that have both values of a pair."""
        has, r = self.known[:, columns], self.residuals[:, columns]
        weights = self.weights[:, np.newaxis]
        covariance = (weights * r).T @ r / np.maximum((weights * has).T @ has, 1e-300)
        least = _LEAST_VARIANCE * covariance.trace() / max(len(covariance), 1)
        if least <= 0.0:
            return np.eye(len(covariance))
        variances, directions = np.linalg.eigh(covariance)
        precision: Floats = (directions / np.maximum(variances, least)) @ directions.T
        return precision

    def completed(self, precision: Floats, columns: Bools, of_rows: Bools) -> tuple[Floats, Floats]:
        """Covariance of some rows and columns, expected where values are missing, given a precision.

        The residuals with their expectations are returned as well.
        """
        weights = self.weights[of_rows]
        has = self.known[of_rows][:, columns] > 0.0
        r = complete(precision, np.where(has, self.residuals[of_rows][:, columns], np.nan))
        conditional, d = np.zeros(precision.shape), len(precision)
        kernels.add_conditional_covariances(
            precision,
            ~has,
            weights,
            np.empty(d, dtype=np.int64),
            np.empty((d, d)),
            np.empty((d, d)),
            conditional,
        )
        return ((weights[:, np.newaxis] * r).T @ r + conditional) / weights.sum(), r


def learn_mixed_frames(
    covariance: Covariance,
    scaled: Floats,
    codes: Integers,
    weights: Floats | None,
    n_classes: int,
    variables: Integers,
    levels: Integers,
) -> list[MixedFrame]:
    """Learn a frame for each class; see `frames.learn_frames`. `levels` (n_features,) are their numbers."""
    pulled = covariance != "none"
    of_levels = learn_levels(scaled, codes, weights, n_classes, levels, pulled=pulled)
    x = scaled[:, variables]
    moments = _Moments.of(x, codes, weights, n_classes)
    deviations = np.sqrt(moments.variances)
    if covariance == "none":
        return [
            MixedFrame(variables, np.zeros(variables.size), np.ones(variables.size), mean, deviation, level)
            for mean, deviation, level in zip(moments.means, deviations, of_levels, strict=True)
        ]
    ranges = np.where(hardly_varies(x), spreads(x), 0.0)
    deviations = np.where(ranges > 0.0, ranges, deviations)
    used = np.ones(deviations.shape, dtype=bool)
    if covariance == "selected":
        used = differing(without_gaps(x), codes, weights, n_classes)
    if covariance in ("selected", "diagonal"):
        return [
            MixedFrame(
                variables[use],
                mean[use],
                1.0 / deviation[use],
                np.zeros(use.sum()),
                np.ones(use.sum()),
                level,
            )
            for use, mean, deviation, level in zip(used, moments.means, deviations, of_levels, strict=True)
        ]
    zeros, ones = np.zeros(variables.size), np.ones(variables.size)
    factors = _roots(moments, ranges, own=covariance == "own")
    return [
        MixedFrame(variables, mean, factor, zeros, ones, level)
        for mean, factor, level in zip(moments.means, factors, of_levels, strict=True)
    ]


def without_gaps(x: Floats) -> Floats:
    """Columns with their means in place of gaps, so that rows without a value speak for no class."""
    gaps = np.isnan(x)
    means = np.where(gaps, 0.0, x).sum(axis=0) / np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, means, x)


def _roots(moments: _Moments, ranges: Floats, *, own: bool) -> list[Floats]:
    """Factors of all classes, by the covariance of all classes or by its own.

    Dempster, Laird and Rubin's iteration: missing values are expected given a covariance, and that is learnt
    from them.
    """
    usual = ranges == 0.0
    grid = np.ix_(usual, usual)
    everything = np.ones(len(moments.codes), dtype=bool)
    precision = moments.of_pairs(usual)
    root = np.eye(len(precision))
    # Without gaps the first covariance is the last.
    for _ in range(_N_ITERATIONS if not moments.known[:, usual].all() else 1 if usual.any() else 0):
        covariance, residuals = moments.completed(precision, usual, everything)
        root, _ = inverse_root(shared_covariance(covariance, residuals, moments.weights, moments.codes))
        precision = root @ root
    factors = []
    for y, size in enumerate(moments.sizes):
        factor = np.diag(1.0 / np.where(usual, 1.0, ranges))
        factor[grid] = root
        of_class = moments.codes == y
        if own and usual.any() and of_class.sum() > 1:
            covariance, _ = moments.completed(precision, usual, of_class)
            whitened = shrunk(root @ covariance @ root, TRUSTED_SHARE * size)
            if whitened is not None:
                factor[grid] = root @ inverse_root(whitened)[0]
        factors.append(factor)
    return factors


def learn_levels(
    scaled: Floats,
    codes: Integers,
    weights: Floats | None,
    n_classes: int,
    levels: Integers,
    *,
    pulled: bool,
) -> list[LevelKernels]:
    """Frequencies of levels in each class, drawn towards those of all classes."""
    weights = np.ones(len(codes)) if weights is None else weights
    columns = np.flatnonzero(levels)
    log_shares: list[list[Floats]] = [[] for _ in range(n_classes)]
    for j in columns.tolist():
        n_levels = int(levels[j])
        counts = _level_counts(scaled[:, j], codes, weights, n_classes, n_levels)
        shares = _drawn_shares(counts, counts.sum(axis=1, keepdims=True), n_levels)
        for y in range(n_classes):
            log_shares[y].append(np.log(shares[y]))
    precision = None if pulled else np.ones(columns.size)
    return [LevelKernels(columns, of_class, precision) for of_class in log_shares]


def _level_counts(x: Floats, codes: Integers, weights: Floats, n_classes: int, n_levels: int) -> Floats:
    """Sums of weights (n_classes, n_levels) of the rows with each level."""
    has = ~np.isnan(x)
    return _sums(codes[has] * n_levels + x[has].astype(np.int64), weights[has], n_classes, n_levels)


def _drawn_shares(counts: Floats, totals: Floats, n_levels: int) -> Floats:
    """Frequencies of levels, drawn towards those of all classes, as if some rows with these were added.

    `counts` (n_classes, n_some) are those of some levels, and `totals` those of all levels together.
    """
    pooled = (counts.sum(axis=0) + 1.0 / n_levels) / (totals.sum(axis=0) + 1.0)
    shares: Floats = (counts + EXTRA_ROWS * pooled) / (totals + EXTRA_ROWS)
    return shares


class LevelCounts:
    """How often levels occur, so that rows can be left out of their frequencies.

    Parameters
    ----------
    data : the rows.
    """

    def __init__(self, data: LabelledRows) -> None:
        self._data = data
        self._weights = np.ones(len(data.X)) if data.weights is None else data.weights
        self._columns = np.flatnonzero(data.level_counts)
        self._by_unit = np.argsort(data.units, kind="stable")
        self._units = data.units[self._by_unit]
        self._counts = [
            _level_counts(
                data.X[:, j], data.codes, self._weights, data.labels.size, int(data.level_counts[j])
            )
            for j in self._columns.tolist()
        ]

    def log_shares_without(self, units: Integers, X: Floats) -> Floats:
        """Logarithms of the frequencies of samples' levels where all rows of a unit are left out.

        Parameters
        ----------
        units : (n_samples,) the unit that each sample leaves out.
        X : (n_samples, n_features) samples.

        Returns
        -------
        log_shares : (n_classes, n_samples, n_columns), 0 for gaps.
        """
        data, n_classes, n = self._data, self._data.labels.size, len(X)
        first, last = (np.searchsorted(self._units, units, side=side) for side in ("left", "right"))
        sample = np.repeat(np.arange(n), last - first)
        of_sample = np.arange(sample.size) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
        row = self._by_unit[np.repeat(first, last - first) + of_sample]
        cell = data.codes[row] * n + sample
        log_shares = np.zeros((n_classes, n, self._columns.size))
        for k, (j, counts) in enumerate(zip(self._columns.tolist(), self._counts, strict=True)):
            known = ~np.isnan(X[:, j])
            level = np.where(known, X[:, j], 0.0).astype(np.int64)
            leaving = self._weights[row] * ~np.isnan(data.X[row, j])
            totals = counts.sum(axis=1, keepdims=True) - _sums(cell, leaving, n_classes, n)
            alike = leaving * (data.X[row, j] == level[sample])
            left = counts[:, level] - _sums(cell, alike, n_classes, n)
            shares = _drawn_shares(np.maximum(left, 0.0), np.maximum(totals, 0.0), counts.shape[1])
            log_shares[:, :, k] = np.where(known, np.log(shares), 0.0)
        return log_shares


def _sums(cell: Integers, values: Floats, n_classes: int, n: int) -> Floats:
    """Sums (n_classes, n) of values by cell."""
    sums: Floats = np.bincount(cell, values, minlength=n_classes * n).astype(np.float64)
    return sums.reshape(n_classes, n)


# ---------------------------------------------------------------------------------------- densities


def mixed_log_densities(
    frame: MixedFrame,
    rows: Floats,
    weights: Floats,
    units: Integers,
    x: Floats,
    unit_of_x: Integers,
    bandwidths: Floats,
    pulls: Floats,
) -> Floats:
    """Log densities (n_bandwidths, n_samples) of a class; rows of a sample's unit are left out of it.

    Parameters
    ----------
    frame : of the class.
    rows, weights, units : (n_rows, n_features) scaled rows of the class, (n_rows,) and (n_rows,).
    x, unit_of_x : (n_samples, n_features) scaled samples and (n_samples,).
    bandwidths, pulls : (n_bandwidths,)
    """
    log_density = np.empty((bandwidths.size, len(x)))
    of_rows = _LevelsOfRows.of(rows, frame.levels.columns)
    step = max(1, _BLOCK // max(len(rows), 1))
    for first in range(0, len(x), step):
        block = slice(first, first + step)
        sums = frame.sums(rows, x[block])
        log_mean = np.empty((bandwidths.size, len(x[block])))
        kernels.mixed_log_means(
            *sums[:5],
            pulls,
            bandwidths**-2.0,
            np.log(bandwidths),
            frame.levels.exponents(bandwidths),
            frame.levels.offsets,
            np.ascontiguousarray(x[block][:, frame.levels.columns]),
            *of_rows,
            weights,
            unit_of_x[block],
            units,
            np.empty(len(rows)),
            log_mean,
        )
        log_density[:, block] = log_mean - sums.log_norm
    return log_density


class KernelRows(NamedTuple):
    """Rows on which a class has kernels.

    Attributes
    ----------
    rows, weights : (n_rows, n_features) and (n_rows,)
    by_row : whether they are those of the class.
    """

    rows: Floats
    weights: Floats
    by_row: bool


@dataclass(frozen=True, eq=False)
class MixedMixture:
    """The density of one class in the units of a member, where values may be missing or levels.

    Attributes
    ----------
    frame : coordinates, and single variables.
    rows : (n_rows, n_features) the class in the member's units; a single one where all are pulled into one.
    weights : (n_rows,)
    bandwidth, pull : of the kernels.
    """

    frame: MixedFrame
    rows: Floats
    weights: Floats
    bandwidth: float
    pull: float

    @classmethod
    def of_rows(
        cls, scaled: Floats, weights: Floats | None, frame: MixedFrame, bandwidth: float, pull: float
    ) -> MixedMixture:
        """Put a kernel on each row of a class."""
        weights = np.ones(len(scaled)) if weights is None else weights
        return cls(frame, scaled, weights, bandwidth, pull)

    @property
    def size(self) -> int:
        """Numbers that an estimate reads."""
        return max(self.rows.size, 1)

    @property
    def used(self) -> Integers:
        """Columns that take part."""
        return np.concatenate([self.frame.variables, self.frame.levels.columns])

    def log_density(self, scaled: Floats, left_out: Integers | None = None) -> Floats:
        """Log densities (n_samples,) of scaled samples, integrated over what they do not know.

        `left_out` (n_samples,) are rows whose kernels are left out, or -1.
        """
        out = np.full(len(scaled), NO_UNIT) if left_out is None else left_out
        rows, weights, by_row = self.kernel_rows()
        if not by_row:
            out = np.full(len(scaled), NO_UNIT)
        log_density = np.empty(len(scaled))
        step = max(1, _BLOCK // max(len(rows), 1))
        for first in range(0, len(scaled), step):
            block = slice(first, first + step)
            exponents, log_norm = self._exponents(rows, scaled[block])
            log_mean = np.empty(len(exponents))
            kernels.log_means(exponents, weights, out[block], log_mean)
            log_density[block] = log_mean - log_norm
        return log_density

    def _exponents(self, rows: Floats, scaled: Floats) -> tuple[Floats, Floats]:
        """Exponents (n_samples, n_rows) of all variables, and logarithms (n_samples,) of norms."""
        levels = self.frame.levels
        exponents, log_norm = self.frame.exponents(rows, scaled, self.bandwidth, self.pull)
        kernels.add_level_exponents(
            levels.exponents(np.array([self.bandwidth]))[0],
            levels.offsets,
            np.ascontiguousarray(scaled[:, levels.columns]),
            *_LevelsOfRows.of(rows, levels.columns),
            exponents,
        )
        return exponents, log_norm

    def kernel_rows(self) -> KernelRows:
        """Rows that have kernels: all, or one at the mean of the class if all kernels are the same."""
        if self.pull != 0.0 or not len(self.rows):
            return KernelRows(self.rows, self.weights, True)
        row = np.zeros((1, self.rows.shape[1]))
        row[0, self.frame.variables] = self.frame.mean
        return KernelRows(row, np.ones(1), False)

    def shares(self, scaled: Floats, left_out: Integers) -> Floats:
        """Shares (n_samples, n_rows) of the rows in the density; `left_out` are rows to leave out, or -1."""
        exponents, _ = self._exponents(self.rows, scaled)
        exponents[left_out[:, np.newaxis] == np.arange(len(self.rows))] = kernels.EXCLUDED
        least = exponents.min(axis=1, keepdims=True, initial=kernels.EXCLUDED)
        shares: Floats = np.where(exponents < kernels.EXCLUDED, self.weights * np.exp(least - exponents), 0.0)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        return shares


# --------------------------------------------------------------------------------- refined bandwidths


class MixedSample(NamedTuple):
    """Points and rows by which bandwidths are refined; see `refine.RefinedRows`.

    Attributes
    ----------
    points, rows : (n_points, n_features) and (n_rows, n_features) scaled, rows sorted by class.
    unit_of_point, unit_of_row, weights, starts, target : as there.
    frames : of the classes, with bandwidth 1 for each variable.
    n_levels : (n_columns,) of the variables with levels.
    """

    points: Floats
    rows: Floats
    unit_of_point: Integers
    unit_of_row: Integers
    weights: Floats
    starts: Integers
    target: Target
    frames: Sequence[MixedFrame]
    n_levels: Integers


def refine_mixed(sample: MixedSample, deviation: float) -> Floats:
    """Fit theta (n_used + n_columns,), logarithms of inverse bandwidths of measurements and of levels."""
    frame = sample.frames[0]
    n_used, n_columns = frame.variables.size, frame.levels.columns.size
    state = _RefinedState.prepare(sample)
    best, begin, log_power = math.inf, np.zeros(n_used + n_columns + 1), np.zeros(1)
    for h in (STARTS * state.spread()).tolist() if n_used else [1.0]:
        start = np.repeat([-math.log(h), _USUAL_LEVELS], [n_used, n_columns])
        _, log_mean, _ = state.weigh(start)
        log_power, loss = fit_log_weights(
            known(log_mean)[np.newaxis], sample.target, np.zeros(1), 1.0, log_power
        )
        if loss < best:
            best, begin = loss, np.append(start, log_power)
    found = minimize(state.loss, begin, args=(deviation,), jac=True, method="L-BFGS-B", options=OPTIONS)
    theta: Floats = found.x[:-1]
    return theta


@dataclass(frozen=True, eq=False)
class _RefinedState:
    """What the loss of refined bandwidths needs of points and rows, computed once.

    Where a variable has gaps, its squared distances are a sum of three products of what is known of points
    and rows. Where it has none, two of these are sums over points or rows alone.

    Attributes
    ----------
    sample : points and rows.
    partly : (n_used,) which variables have gaps.
    x, given : (n_points, n_used) values, 0 for gaps, and 1 where there is one.
    c : (n_rows, n_used) values, 0 for gaps.
    factors : (n_rows, n_used + 2 n_partly) values; and of variables with gaps whether a row has one, and
        half its square.
    of_gaps : (n_points, n_rows) exponents of variables that only the point has, or None.
    x_levels, c_levels : (n_points, n_columns) and (n_columns, n_rows) levels, and which columns have gaps.
    """

    sample: MixedSample
    partly: Bools
    x: Floats
    given: Floats
    c: Floats
    factors: Floats
    of_gaps: Floats | None
    x_levels: Floats
    c_levels: _LevelsOfRows

    @classmethod
    def prepare(cls, sample: MixedSample) -> _RefinedState:
        """Compare all points with all rows."""
        frame = sample.frames[0]
        x, c = sample.points[:, frame.variables], sample.rows[:, frame.variables]
        partly = np.asarray(np.isnan(c).any(axis=0) | np.isnan(x).any(axis=0))
        given, has = (~np.isnan(x)).astype(np.float64), (~np.isnan(c)).astype(np.float64)
        c_levels = _LevelsOfRows.of(sample.rows, frame.levels.columns)
        of_gaps = None
        if not has.all() or c_levels.has_gaps.any():
            of_gaps = _exponents_of_gaps(sample)
        x, c = np.nan_to_num(x), np.nan_to_num(c)
        return cls(
            sample,
            partly,
            x,
            given,
            c,
            np.hstack([c, has[:, partly], 0.5 * c[:, partly] ** 2]),
            of_gaps,
            np.ascontiguousarray(sample.points[:, frame.levels.columns]),
            c_levels,
        )

    def spread(self) -> float:
        """Mean deviation of the variables, 1 for levels alone."""
        rows = self.sample.rows[:, self.sample.frames[0].variables]
        has = ~np.isnan(rows)
        counts = np.maximum(has.sum(axis=0), 1.0)
        means = self.c.sum(axis=0) / counts
        squares = (has * (self.c - means) ** 2).sum(axis=0) / counts
        return math.sqrt(float(squares.mean())) if squares.any() else 1.0

    def weigh(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Shares of rows in the densities of their classes, log densities, and their sums by class."""
        of_measurements, partly = theta[: self.partly.size], self.partly
        squared = np.exp(2.0 * of_measurements)
        log_norm = _LOG_ROOT - of_measurements
        halves = 0.5 * squared * self.x**2
        of_points = np.hstack(
            [
                squared * self.x,
                -(halves + log_norm * self.given)[:, partly],
                -(squared * self.given)[:, partly],
            ]
        )
        product = of_points @ self.factors.T
        if self.of_gaps is not None:
            product -= self.of_gaps
        kappa = np.exp(2.0 * theta[self.partly.size :])
        log_n = np.log1p((self.sample.n_levels - 1.0) * np.exp(-0.5 * kappa))
        kernels.subtract_level_exponents(self.x_levels, *self.c_levels, 0.5 * kappa, log_n, product)
        total = np.empty((len(product), self.sample.starts.size - 1))
        log_mean = np.empty_like(total)
        kernels.kernel_weights(
            product,
            halves[:, ~partly].sum(axis=1) + log_norm[~partly].sum(),
            0.5 * self.c[:, ~partly] ** 2 @ squared[~partly],
            self.sample.weights,
            self.sample.unit_of_point,
            self.sample.unit_of_row,
            self.sample.starts,
            total,
            log_mean,
        )
        return product, log_mean, total

    def loss(self, parameters: Floats, deviation: float) -> tuple[float, Floats]:
        """Penalised leave-one-out log loss and its gradient; see `refine.refined_loss`."""
        theta, log_power = parameters[:-1], parameters[-1]
        target, power = self.sample.target, np.exp(log_power)
        shares, log_mean, total = self.weigh(theta)
        log_density = known(log_mean)
        log_proba = log_posterior(target.log_prior + power * log_density)
        excess = np.exp(log_proba)
        excess[np.arange(len(excess)), target.codes] -= 1.0
        excess *= target.weights[:, np.newaxis]
        factor = np.divide(-power * excess, total, out=np.zeros_like(total), where=total > 0.0)
        of_row = np.empty(shares.shape[1])
        kernels.scale_weights(shares, self.sample.starts, factor, of_row)
        gradient = self._gradient(shares, (factor * total).sum(axis=1), of_row, theta)
        deviations = self._deviations(theta)
        loss = -float(target.weights @ target.right(log_proba))
        loss += 0.5 * (float(deviations @ deviations) / deviation**2 + log_power**2) / target.count
        gradient += deviations / (deviation**2 * target.count)
        by_power = power * float((excess * log_density).sum()) + log_power / target.count
        return loss, np.append(gradient, by_power)

    def _deviations(self, theta: Floats) -> Floats:
        """How far logarithms are from the mean of those of measurements, or from the usual one of levels."""
        of_measurements, of_levels = np.split(theta, [self.partly.size])
        mean = of_measurements.mean() if of_measurements.size else 0.0
        return np.concatenate([of_measurements - mean, of_levels - _USUAL_LEVELS])

    def _gradient(self, shares: Floats, of_point: Floats, of_row: Floats, theta: Floats) -> Floats:
        """Derivatives of the loss, whose derivatives by the exponents are the shares, with sums of these."""
        d, partly = self.partly.size, self.partly
        of_factors = shares @ self.factors
        of_has, of_squares = np.split(of_factors[:, d:], 2, axis=1)
        squares, pairs = -2.0 * np.vecdot(self.x.T, of_factors[:, :d].T), np.full(d, of_point.sum())
        squares[~partly] += of_point @ self.x[:, ~partly] ** 2 + of_row @ self.c[:, ~partly] ** 2
        squares[partly] += (self.x[:, partly] ** 2 * of_has).sum(axis=0)
        squares[partly] += 2.0 * (self.given[:, partly] * of_squares).sum(axis=0)
        pairs[partly] = (self.given[:, partly] * of_has).sum(axis=0)
        kappa = np.exp(2.0 * theta[d:])
        others = (self.sample.n_levels - 1.0) * np.exp(-0.5 * kappa)
        expected = others / (1.0 + others)
        apart, both = np.empty(kappa.size), np.empty(kappa.size)
        kernels.level_shares(self.x_levels, *self.c_levels, shares, of_point, apart, both)
        return np.concatenate([np.exp(2.0 * theta[:d]) * squares - pairs, kappa * (apart - expected * both)])


def _exponents_of_gaps(sample: MixedSample) -> Floats:
    """Exponents (n_points, n_rows) of variables that only the point has."""
    frame = sample.frames[0]
    x, c = sample.points[:, frame.variables], sample.rows[:, frame.variables]
    columns = frame.levels.columns
    of_gaps = np.zeros((len(x), len(c)))
    for y, of_class in enumerate(sample.frames):
        part = slice(sample.starts[y], sample.starts[y + 1])
        alone = 0.5 * ((x - of_class.gap_mean) / of_class.gap_deviation) ** 2
        alone = np.nan_to_num(alone + np.log(of_class.gap_deviation) + _LOG_ROOT)
        of_gaps[:, part] = alone @ np.isnan(c[part]).T
        for j, log_share in zip(columns.tolist(), of_class.levels.log_shares, strict=True):
            level, missing = sample.points[:, j], np.flatnonzero(np.isnan(sample.rows[part, j]))
            of_level = np.where(np.isnan(level), 0.0, -log_share[np.nan_to_num(level).astype(np.int64)])
            of_gaps[:, part.start + missing] += of_level[:, np.newaxis]
    return of_gaps


def refined_frames(sample: MixedSample, theta: Floats) -> list[MixedFrame]:
    """Give each variable of the frames its refined bandwidth."""
    n_used = sample.frames[0].variables.size
    factor = np.exp(theta[:n_used])
    return [
        replace(
            frame,
            factor=factor,
            gap_mean=frame.gap_mean * factor,
            gap_deviation=frame.gap_deviation * factor,
            levels=frame.levels._replace(precision=np.exp(2.0 * theta[n_used:])),
        )
        for frame in sample.frames
    ]

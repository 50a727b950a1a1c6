"""Coordinates of classes where values are missing or levels: what they are, and how they are learnt.

**Gaps in a sample.** The variable is integrated out, exactly: along variances its factor is left out; along
covariances coordinates are projected on what is orthogonal to the rows of :math:`B_J` (see `densities`).

**Gaps in a row.** Along variances the factor is the density of the variable in its class, a normal one with
its mean and variance, or its frequencies. Along covariances a missing value is at its expectation given the
others, which is the same projection. Means come from the rows that have the values, and covariances from
all rows, missing values being expected given the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corral import kernels
from corral.array_types import (
    LARGEST_COORDINATE,
    LARGEST_INTEGER,
    Bools,
    Floats,
    Integers,
    check_array,
    check_positions,
)
from corral.data.missing import without_gaps
from corral.data.scaling import spreads
from corral.data.weights import effective_number, weights_or_ones
from corral.pool.categories import LevelKernels, learn_levels, level_exponents
from corral.pool.covariance import inverse_root, shrunk
from corral.pool.transforms import (
    TRUSTED_SHARE,
    Covariance,
    class_variances,
    differing,
    hardly_varies,
    repeated,
    shared_covariance,
)

# How often missing values are expected given a covariance, before it is taken. The first one is that of the
# pairs of values that are there, with variances along all directions above this share of their mean.
_N_ITERATIONS = 4
_LEAST_VARIANCE = 0.02


# Within it no square of a distance over a bandwidth overflows.
LARGEST_FACTOR = 1e24


def check_invertible(factor: Floats) -> None:
    """Refuse a square factor that explanations cannot invert."""
    if factor.shape[0] == factor.shape[1] and np.linalg.slogdet(factor)[0] == 0.0:
        raise ValueError("factor is singular")


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

    def validate(self) -> None:
        """Refuse what no fit could have learnt."""
        n, largest = self.variables.size, LARGEST_COORDINATE
        check_positions("variables", self.variables, LARGEST_INTEGER)
        check_array("mean", self.mean, (n,), -largest, largest)
        check_array("gap_mean", self.gap_mean, (n,), -largest, largest)
        check_array("gap_deviation", self.gap_deviation, (n,), 1.0 / largest, largest)
        if self.factor.ndim == 1:
            check_array("factor", self.factor, (n,), 1.0 / largest, LARGEST_FACTOR)
        else:
            check_array("factor", self.factor, (n, n), -LARGEST_FACTOR, LARGEST_FACTOR)
            check_invertible(self.factor)

    def prepare(self, rows: Floats) -> FrameRows:
        """Bring scaled rows into coordinates, once for all samples."""
        rows = self._centred(rows)
        if self.factor.ndim == 1:
            c = rows * self.factor
            has = np.ascontiguousarray((~np.isnan(c)).astype(np.float64).T)
            c = np.ascontiguousarray(np.nan_to_num(c).T)
            return FrameRows(c, c * c, has)
        precision = self.factor @ self.factor.T
        completed = complete(precision, rows)
        c = _product(completed, self.factor)
        return FrameRows(
            np.ascontiguousarray(c.T), np.vecdot(c, c), np.ascontiguousarray((completed @ precision).T)
        )

    def sums(self, rows: FrameRows, x: Floats) -> _Sums:
        """Sums over variables for all pairs of scaled samples and rows."""
        x = self._centred(x)
        return self._along_variances(rows, x) if self.factor.ndim == 1 else self._along_covariance(rows, x)

    def completed(self, rows: Floats) -> Floats:
        """Scaled rows (n_rows, n_used) less the mean, with missing values expected; along covariances."""
        return complete(self.factor @ self.factor.T, self._centred(rows))

    def measured_terms(self, rows: Floats, x: Floats, bandwidth: float, pull: float) -> Floats:
        """Exponents (n_samples, n_used, n_rows) by variable, with their norms; along variances."""
        rows, x = (self._centred(of) * self.factor for of in (rows, x))
        apart = (x[:, :, np.newaxis] - pull * rows.T) / bandwidth
        alone = 0.5 * ((x - self.gap_mean) / self.gap_deviation) ** 2 + np.log(self.gap_deviation)
        terms: Floats = np.where(
            np.isnan(rows.T), alone[:, :, np.newaxis], 0.5 * apart**2 + math.log(bandwidth)
        )
        terms += (kernels.LOG_ROOT - np.log(self.factor))[:, np.newaxis]
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
        by_row = level_exponents(log_p, levels.sizes, levels.precision, np.array([bandwidth]))
        equal, other, gap = (np.broadcast_to(of, x.shape)[:, :, np.newaxis] for of in by_row)
        of_values = np.where(x[:, :, np.newaxis] == rows, equal, other)
        terms: Floats = np.where(np.isnan(rows), gap, of_values)
        return terms

    def _along_variances(self, rows: FrameRows, x: Floats) -> _Sums:
        x, given = self._known(x)
        return _Sums(
            xx=_product(x * x, rows.others),
            xc=_product(x, rows.c),
            cc=_product(given, rows.squares),
            known=_product(given, rows.others),
            of_gaps=_product(self._alone(x, given), 1.0 - rows.others),
            log_norm=np.vecdot(given, kernels.LOG_ROOT - np.log(self.factor)),
        )

    def exponents(self, rows: FrameRows, x: Floats, bandwidth: float, pull: float) -> tuple[Floats, Floats]:
        """Exponents (n_samples, n_rows) of measurements with one bandwidth, and `log_norm`: see `_Sums`.

        Along variances a single product has all of them.
        """
        half, log_h = 0.5 * bandwidth**-2.0, math.log(bandwidth)
        x = self._centred(x)
        if self.factor.ndim != 1:
            z, cc, n_known, log_norm = self._integrated(rows, x)
            cc *= half * pull**2
            cc += _product(-2.0 * half * pull * z, rows.c)
            cc += (half * np.vecdot(z, z) + log_h * n_known)[:, np.newaxis]
            return cc, log_norm
        x, given = self._known(x)
        alone = self._alone(x, given)
        of_samples = (half * x * x + log_h * given - alone, -2.0 * half * pull * x, half * pull**2 * given)
        exponents = _product(np.hstack(of_samples), np.vstack([rows.others, rows.c, rows.squares]))
        exponents += alone.sum(axis=1, keepdims=True)
        return exponents, np.vecdot(given, kernels.LOG_ROOT - np.log(self.factor))

    def _centred(self, scaled: Floats) -> Floats:
        """The variables of scaled rows (n_rows, n_used) less the mean, in an order of memory of their own.

        NumPy chooses that of selected columns by the number of rows, and sums over columns are rounded by it.
        """
        return np.ascontiguousarray(scaled[:, self.variables] - self.mean)

    def _known(self, x: Floats) -> tuple[Floats, Floats]:
        """Coordinates of samples along variances, 0 for gaps, and 1 where there is a value."""
        x = x * self.factor
        return np.nan_to_num(x), (~np.isnan(x)).astype(np.float64)

    def _alone(self, x: Floats, given: Floats) -> Floats:
        """Exponents (n_samples, n_used) of variables that only the sample has."""
        alone: Floats = given * (
            0.5 * ((x - self.gap_mean) / self.gap_deviation) ** 2 + np.log(self.gap_deviation)
        )
        return alone

    def _along_covariance(self, rows: FrameRows, x: Floats) -> _Sums:
        z, cc, n_known, log_norm = self._integrated(rows, x)
        return _Sums(
            xx=np.repeat(np.vecdot(z, z)[:, np.newaxis], cc.shape[1], axis=1),
            xc=_product(z, rows.c),
            cc=cc,
            known=np.repeat(n_known[:, np.newaxis], cc.shape[1], axis=1),
            of_gaps=np.zeros(cc.shape),
            log_norm=log_norm,
        )

    def _integrated(self, rows: FrameRows, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Integrate samples over their gaps, along a covariance.

        Returns
        -------
        z : (n_samples, n_used) coordinates.
        cc : (n_samples, n_rows) squared lengths of rows in the coordinates that are left to a sample.
        n_known, log_norm : (n_samples,)
        """
        d = self.variables.size
        precision = self.factor @ self.factor.T
        gaps = np.isnan(x)
        z = _product(complete(precision, x), self.factor)
        n_rows = rows.squares.size
        cc, log_volume = np.empty((len(x), n_rows)), np.empty(len(x))
        kernels.integrated_lengths(
            precision,
            gaps,
            rows.others,
            rows.squares,
            np.empty(d, dtype=np.int64),
            np.empty((d, d)),
            np.empty((d, n_rows)),
            cc,
            log_volume,
        )
        n_known = d - gaps.sum(axis=1).astype(np.float64)
        log_norm = log_volume - float(np.linalg.slogdet(self.factor)[1]) + kernels.LOG_ROOT * n_known
        return z, cc, n_known, log_norm


def complete(precision: Floats, residuals: Floats) -> Floats:
    """Rows of mean 0 with missing values at their expectations given the others."""
    # Code for another order of memory is compiled for itself, and might round sums in another way.
    gaps, d = np.ascontiguousarray(np.isnan(residuals)), len(precision)
    completed = np.ascontiguousarray(np.where(gaps, 0.0, residuals))
    kernels.complete_rows(precision, gaps, completed, np.empty(d, dtype=np.int64), np.empty((d, d)))
    return completed


class FrameRows(NamedTuple):
    """What a frame keeps of rows, variable by variable.

    Attributes
    ----------
    c : (n_used, n_rows) coordinates; of gaps 0, or along a covariance their expectations.
    squares : (n_used, n_rows) their squares, or along a covariance (n_rows,) their sums.
    others : (n_used, n_rows) 1 where a row has a value, or along a covariance products with the precision.
    """

    c: Floats
    squares: Floats
    others: Floats


class _Sums(NamedTuple):
    """Sums over variables, see `kernels.mixed_log_means`, and logarithms (n_samples,) of norms."""

    xx: Floats
    xc: Floats
    cc: Floats
    known: Floats
    of_gaps: Floats
    log_norm: Floats


def _product(A: Floats, B: Floats) -> Floats:
    product: Floats = A @ B
    return product


class _Moments(NamedTuple):
    """Means and residuals of rows by class, of the values that are there.

    Attributes
    ----------
    codes, weights : (n_rows,)
    known : (n_rows, n_variables) 1 where there is a value, else 0.
    residuals : (n_rows, n_variables) values less the means of their classes, 0 for gaps.
    means, variances : (n_classes, n_variables)
    sizes : (n_classes,) how many rows of equal weight each class is worth.
    """

    codes: Integers
    weights: Floats
    known: Floats
    residuals: Floats
    means: Floats
    variances: Floats
    sizes: Floats

    @classmethod
    def of(cls, x: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> _Moments:
        """Gather the moments of scaled columns of measurements."""
        weights = weights_or_ones(weights, len(codes))
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
        return cls(codes, weights, has, residuals, means, variances, sizes)

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
        has = np.ascontiguousarray(self.known[of_rows][:, columns] > 0.0)
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

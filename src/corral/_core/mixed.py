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
from corral._core.scale import inverse_root, shrunk, spreads
from corral._core.settings import Bools, Floats, Integers

# Numbers in a block of exponents.
_BLOCK = 400_000

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)

# How often missing values are expected given a covariance, before it is taken.
_N_ITERATIONS = 12


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

    def exponents(self, x: Floats, bandwidth: float) -> Floats:
        """Exponents (3, n_samples, n_columns) of equal levels, of others, and of rows that have none."""
        found = np.zeros((3, *x.shape))
        for j, log_share in enumerate(self.log_shares):
            has_level = ~np.isnan(x[:, j])
            log_p = log_share[x[has_level, j].astype(np.int64)]
            if self.precision is None:
                log_far = 2.0 * math.log(bandwidth) + log_p
                equal, other = -np.logaddexp(math.log(max(1.0 - bandwidth**2, 1e-300)), log_far), -log_far
            else:
                half = 0.5 * float(self.precision[j]) / bandwidth**2
                equal = np.full(log_p.size, math.log1p((log_share.size - 1.0) * math.exp(-half)))
                other = equal + half
            found[:, has_level, j] = equal, other, -log_p
        return found


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

    def _along_variances(self, rows: Floats, x: Floats) -> _Sums:
        rows, x = rows * self.factor, x * self.factor
        has, given = (~np.isnan(rows)).astype(np.float64), (~np.isnan(x)).astype(np.float64)
        rows, x = np.nan_to_num(rows), np.nan_to_num(x)
        alone = given * (0.5 * ((x - self.gap_mean) / self.gap_deviation) ** 2 + np.log(self.gap_deviation))
        return _Sums(
            xx=_product(x * x, has.T),
            xc=_product(x, rows.T),
            cc=_product(given, (rows * rows).T),
            known=_product(given, has.T),
            of_gaps=_product(alone, 1.0 - has.T),
            log_norm=given @ (_LOG_ROOT - np.log(self.factor)),
        )

    def _along_covariance(self, rows: Floats, x: Floats) -> _Sums:
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
        return _Sums(
            xx=np.repeat(np.vecdot(z, z)[:, np.newaxis], len(rows), axis=1),
            xc=_product(z, c.T),
            cc=cc,
            known=np.repeat(n_known[:, np.newaxis], len(rows), axis=1),
            of_gaps=np.zeros(cc.shape),
            log_norm=log_volume - float(np.linalg.slogdet(self.factor)[1]) + _LOG_ROOT * n_known,
        )


def complete(precision: Floats, residuals: Floats) -> Floats:
    """Rows of mean 0 with missing values at their expectations given the others."""
    gaps, d = np.isnan(residuals), len(precision)
    completed = np.where(gaps, 0.0, residuals)
    kernels.complete_rows(precision, gaps, completed, np.empty(d, dtype=np.int64), np.empty((d, d)))
    return completed


class _Sums(NamedTuple):
    """Sums over variables, see `kernels.mixed_exponents`, and logarithms (n_samples,) of norms."""

    xx: Floats
    xc: Floats
    cc: Floats
    known: Floats
    of_gaps: Floats
    log_norm: Floats

    def exponents(
        self, levels: LevelKernels, rows: Floats, x: Floats, bandwidth: float, pull: float
    ) -> Floats:
        """Exponents (n_samples, n_rows), without `log_norm`."""
        out = np.empty(self.xx.shape)
        kernels.mixed_exponents(
            *self[:5],
            pull,
            bandwidth**-2.0,
            math.log(bandwidth),
            levels.exponents(x[:, levels.columns], bandwidth),
            np.ascontiguousarray(x[:, levels.columns]),
            np.ascontiguousarray(rows[:, levels.columns].T),
            out,
        )
        return out


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
    precision = np.diag(1.0 / np.where(moments.within > 0.0, moments.within, 1.0)[usual])
    root = np.sqrt(precision)
    for _ in range(_N_ITERATIONS if usual.any() else 0):
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
        has = ~np.isnan(scaled[:, j])
        cell = codes[has] * n_levels + scaled[has, j].astype(np.int64)
        counts = np.bincount(cell, weights[has], minlength=n_classes * n_levels).reshape(n_classes, n_levels)
        pooled = (counts.sum(axis=0) + 1.0 / n_levels) / (counts.sum() + 1.0)
        shares = (counts + EXTRA_ROWS * pooled) / (counts.sum(axis=1, keepdims=True) + EXTRA_ROWS)
        for y in range(n_classes):
            log_shares[y].append(np.log(shares[y]))
    precision = None if pulled else np.ones(columns.size)
    return [LevelKernels(columns, of_class, precision) for of_class in log_shares]


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
    step = max(1, _BLOCK // max(len(rows), 1))
    for first in range(0, len(x), step):
        block = slice(first, first + step)
        sums = frame.sums(rows, x[block])
        for k, (h, pull) in enumerate(zip(bandwidths.tolist(), pulls.tolist(), strict=True)):
            part = np.empty(len(x[block]))
            exponents = sums.exponents(frame.levels, rows, x[block], h, pull)
            kernels.log_means(exponents, weights, unit_of_x[block], units, part)
            log_density[k, block] = part - sums.log_norm
    return log_density


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

    def log_density(self, scaled: Floats, left_out: Integers | None = None) -> Floats:
        """Log densities (n_samples,) of scaled samples, integrated over what they do not know.

        `left_out` (n_samples,) are rows whose kernels are left out, or -1.
        """
        out = np.full(len(scaled), NO_UNIT) if left_out is None else left_out
        rows, weights = self.rows, self.weights
        if self.pull == 0.0 and len(rows):  # all kernels are the same
            rows, weights, out = self._middle(), np.ones(1), np.full(len(scaled), NO_UNIT)
        bandwidth, pull = np.array([self.bandwidth]), np.array([self.pull])
        of_rows = rows, weights, np.arange(len(rows))
        log_density: Floats = mixed_log_densities(self.frame, *of_rows, scaled, out, bandwidth, pull)[0]
        return log_density

    def _middle(self) -> Floats:
        """A row at the mean of the class."""
        row = np.zeros((1, self.rows.shape[1]))
        row[0, self.frame.variables] = self.frame.mean
        return row

    def shares(self, scaled: Floats, left_out: Integers) -> Floats:
        """Shares (n_samples, n_rows) of the rows in the density; `left_out` are rows to leave out, or -1."""
        exponents = self.frame.sums(self.rows, scaled).exponents(
            self.frame.levels, self.rows, scaled, self.bandwidth, self.pull
        )
        log_mean = np.empty(len(scaled))
        kernels.log_means(exponents, self.weights, left_out, np.arange(len(self.rows)), log_mean)
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
    n = frame.variables.size + frame.levels.columns.size
    state = _RefinedState.prepare(sample)
    best, begin = math.inf, np.zeros(n + 1)
    log_power = np.zeros(1)
    for h in (STARTS * state.spread()).tolist():
        _, log_mean, _ = state.weigh(np.full(n, -math.log(h)))
        log_power, loss = fit_log_weights(
            known(log_mean)[np.newaxis], sample.target, np.zeros(1), 1.0, log_power
        )
        if loss < best:
            best, begin = loss, np.append(np.full(n, -math.log(h)), log_power)
    found = minimize(state.loss, begin, args=(deviation,), jac=True, method="L-BFGS-B", options=OPTIONS)
    theta: Floats = found.x[:-1]
    return theta


@dataclass(frozen=True, eq=False)
class _RefinedState:
    """What the loss of refined bandwidths needs of points and rows, computed once.

    Attributes
    ----------
    sample : points and rows.
    x, given : (n_points, n_used) values, 0 for gaps, and 1 where there is one.
    c, has : (n_rows, n_used) likewise.
    of_gaps : (n_points, n_rows) exponents of variables that only the point has.
    x_levels, c_levels : (n_columns, n_points) and (n_columns, n_rows) levels.
    """

    sample: MixedSample
    x: Floats
    given: Floats
    c: Floats
    has: Floats
    of_gaps: Floats
    x_levels: Floats
    c_levels: Floats

    @classmethod
    def prepare(cls, sample: MixedSample) -> _RefinedState:
        """Compare all points with all rows."""
        frame = sample.frames[0]
        x, c = sample.points[:, frame.variables], sample.rows[:, frame.variables]
        of_gaps = np.zeros((len(x), len(c)))
        columns = frame.levels.columns
        for y, of_class in enumerate(sample.frames):
            part = slice(sample.starts[y], sample.starts[y + 1])
            alone = 0.5 * ((x - of_class.gap_mean) / of_class.gap_deviation) ** 2
            alone = np.nan_to_num(alone + np.log(of_class.gap_deviation) + _LOG_ROOT)
            of_gaps[:, part] = alone @ np.isnan(c[part]).T
            gaps = of_class.levels.exponents(sample.points[:, columns], 1.0)[2]
            of_gaps[:, part] += gaps @ np.isnan(sample.rows[part][:, columns]).T
        return cls(
            sample,
            np.nan_to_num(x),
            (~np.isnan(x)).astype(np.float64),
            np.nan_to_num(c),
            (~np.isnan(c)).astype(np.float64),
            of_gaps,
            np.ascontiguousarray(sample.points[:, columns].T),
            np.ascontiguousarray(sample.rows[:, columns].T),
        )

    def spread(self) -> float:
        """Mean deviation of the variables, 1 for levels alone."""
        counts = np.maximum(self.has.sum(axis=0), 1.0)
        means = self.c.sum(axis=0) / counts
        squares = (self.has * (self.c - means) ** 2).sum(axis=0) / counts
        return math.sqrt(float(squares.mean())) if squares.any() else 1.0

    def weigh(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Shares of rows in the densities of their classes, log densities, and their sums by class."""
        n_used = self.x.shape[1]
        scale = np.exp(theta[:n_used])
        x, c = self.x * scale, self.c * scale
        exponents = (0.5 * x * x + self.given * (_LOG_ROOT - theta[:n_used])) @ self.has.T
        exponents -= x @ c.T
        exponents += self.given @ (0.5 * c * c).T
        exponents += self.of_gaps
        kappa = np.exp(2.0 * theta[n_used:])
        log_n = np.log1p((self.sample.n_levels - 1.0) * np.exp(-0.5 * kappa))
        kernels.add_level_exponents(self.x_levels, self.c_levels, 0.5 * kappa, log_n, exponents)
        total = np.empty((len(x), self.sample.starts.size - 1))
        log_mean = np.empty_like(total)
        shares = np.negative(exponents, out=exponents)
        kernels.kernel_weights(
            shares,
            np.zeros(len(x)),
            np.zeros(len(c)),
            self.sample.weights,
            self.sample.unit_of_point,
            self.sample.unit_of_row,
            self.sample.starts,
            total,
            log_mean,
        )
        return shares, log_mean, total

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
        kernels.scale_weights(shares, self.sample.starts, factor, np.empty(shares.shape[1]))
        gradient = self._gradient(shares, theta)
        deviations = theta - theta.mean()
        loss = -float(target.weights @ target.right(log_proba))
        loss += 0.5 * (float(deviations @ deviations) / deviation**2 + log_power**2) / target.count
        gradient += deviations / (deviation**2 * target.count)
        by_power = power * float((excess * log_density).sum()) + log_power / target.count
        return loss, np.append(gradient, by_power)

    def _gradient(self, shares: Floats, theta: Floats) -> Floats:
        """Derivatives of the loss, whose derivatives by the exponents are the shares."""
        n_used = self.x.shape[1]
        squared = np.exp(2.0 * theta[:n_used])
        of_has = (shares @ self.has).T
        pairs = np.vecdot(self.given.T, of_has)
        squares = np.vecdot((self.x**2).T, of_has)
        squares += np.vecdot(self.given.T, (shares @ (self.c**2)).T)
        squares -= 2.0 * np.vecdot(self.x.T, (shares @ self.c).T)
        kappa = np.exp(2.0 * theta[n_used:])
        others = (self.sample.n_levels - 1.0) * np.exp(-0.5 * kappa)
        expected = others / (1.0 + others)
        apart, both = np.empty(kappa.size), np.empty(kappa.size)
        kernels.level_shares(self.x_levels, self.c_levels, shares, apart, both)
        return np.concatenate([squared * squares - pairs, kappa * (apart - expected * both)])


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

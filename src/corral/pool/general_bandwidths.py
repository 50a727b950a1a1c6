"""One bandwidth for each variable where values are missing or levels; see `bandwidths`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.pool.bandwidths import LARGEST_THETA, OPTIONS, STARTS, LossOfLabels, scale_weights
from corral.pool.calibration import Target, fit_log_weights
from corral.pool.categories import LevelsOfRows
from corral.pool.general_transforms import MixedFrame
from corral.posterior import known

# The logarithm of the inverse bandwidth towards which those of levels are drawn: a distance of 1 means the
# same in every column, unlike one of measurements. Another level weighs exp(-e^{2 theta} / 2), here 0.44.
_USUAL_LEVELS = 0.25


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
    theta: Floats = np.minimum(found.x[:-1], LARGEST_THETA)
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
    c_levels: LevelsOfRows

    @classmethod
    def prepare(cls, sample: MixedSample) -> _RefinedState:
        """Compare all points with all rows."""
        frame = sample.frames[0]
        x, c = sample.points[:, frame.variables], sample.rows[:, frame.variables]
        partly = np.asarray(np.isnan(c).any(axis=0) | np.isnan(x).any(axis=0))
        given, has = (~np.isnan(x)).astype(np.float64), (~np.isnan(c)).astype(np.float64)
        c_levels = LevelsOfRows.of(sample.rows, frame.levels.columns)
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
        log_norm = kernels.LOG_ROOT - of_measurements
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
        theta, log_power = np.minimum(parameters[:-1], LARGEST_THETA), parameters[-1]
        shares, log_mean, total = self.weigh(theta)
        labels = LossOfLabels.of(log_mean, log_power, self.sample.target)
        factor = labels.factors(total)
        of_row = scale_weights(shares, self.sample.starts, factor)
        gradient = self._gradient(shares, (factor * total).sum(axis=1), of_row, theta)
        return labels.penalised(gradient, self._deviations(theta), deviation)

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
        alone = np.nan_to_num(alone + np.log(of_class.gap_deviation) + kernels.LOG_ROOT)
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

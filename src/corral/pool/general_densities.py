"""Densities of members of a pool on tables with gaps and levels.

A member's kernels are those of `densities`, with the factors of `general_transforms` where a value is
missing, and those of `categories` where it is a level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from corral import kernels
from corral.array_types import (
    LARGEST_COORDINATE,
    SMALLEST,
    Floats,
    Integers,
    check_array,
    check_number,
    check_positions,
)
from corral.data.weights import weights_or_ones
from corral.pool.categories import LevelsOfRows
from corral.pool.general_transforms import FrameRows, MixedFrame

# Numbers in a block of exponents.
_BLOCK = 200_000


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
    in_frame, of_rows = frame.prepare(rows), LevelsOfRows.of(rows, frame.levels.columns)
    step = max(1, _BLOCK // max(len(rows), 1))
    for first in range(0, len(x), step):
        block = slice(first, first + step)
        sums = frame.sums(in_frame, x[block])
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
    rows : (n_rows, n_features) all rows of the class in the member's units; `kernel_rows` are those that have
        kernels.
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
        weights = weights_or_ones(weights, len(scaled))
        return cls(frame, scaled, weights, bandwidth, pull)

    def validate(self) -> None:
        """Refuse what no fit could have learnt."""
        check_array("rows", self.rows, (None, None), -LARGEST_COORDINATE, LARGEST_COORDINATE, nan=True)
        check_array("weights", self.weights, (len(self.rows),), SMALLEST)
        check_number("bandwidth", self.bandwidth, 1e-10, 1e10)
        check_number("pull", self.pull, 0.0, 1.0)

    def validate_for(self, level_counts: Integers, mixed: bool) -> None:
        """Refuse variables that the rows do not have, and rows that need another kind of density."""
        variables, levels = self.frame.variables, self.frame.levels
        check_positions("variables", variables, level_counts.size)
        check_positions("columns", levels.columns, level_counts.size)
        if level_counts[variables].any() or not np.array_equal(level_counts[levels.columns], levels.sizes):
            raise ValueError("columns have other levels")
        if not mixed:
            raise ValueError("members contradict the rows")

    def without_rows(self) -> MixedMixture:
        """The density without its rows, which `on_rows` puts back."""
        return replace(self, rows=self.rows[:0], weights=self.weights[:0])

    def on_rows(self, scaled: Floats, weights: Floats | None) -> MixedMixture:
        """The same density with kernels on other rows."""
        return MixedMixture.of_rows(scaled, weights, self.frame, self.bandwidth, self.pull)

    @property
    def size(self) -> int:
        """Numbers that an estimate reads."""
        return max(self.rows.size, 1)

    @property
    def used(self) -> Integers:
        """Columns that take part."""
        return np.concatenate([self.frame.variables, self.frame.levels.columns])

    @property
    def has_covariances(self) -> bool:
        """Whether the factor mixes variables."""
        return self.frame.factor.ndim == 2

    def log_density(self, scaled: Floats) -> Floats:
        """Log densities (n_samples,) of scaled samples, integrated over what they do not know."""
        rows, weights, _ = self.kernel_rows()
        prepared = self._prepared(rows)
        log_density = np.empty(len(scaled))
        step = max(1, _BLOCK // max(len(rows), 1))
        for first in range(0, len(scaled), step):
            block = slice(first, first + step)
            exponents, log_norm = self._exponents(*prepared, scaled[block])
            log_mean = np.empty(len(exponents))
            kernels.log_means(exponents, weights, log_mean)
            log_density[block] = log_mean - log_norm
        return log_density

    def _exponents(self, rows: FrameRows, of_levels: LevelsOfRows, scaled: Floats) -> tuple[Floats, Floats]:
        """Exponents (n_samples, n_rows) of all variables, and logarithms (n_samples,) of norms."""
        levels = self.frame.levels
        exponents, log_norm = self.frame.exponents(rows, scaled, self.bandwidth, self.pull)
        kernels.add_level_exponents(
            levels.exponents(np.array([self.bandwidth]))[0],
            levels.offsets,
            np.ascontiguousarray(scaled[:, levels.columns]),
            *of_levels,
            exponents,
        )
        return exponents, log_norm

    def _prepared(self, rows: Floats) -> tuple[FrameRows, LevelsOfRows]:
        """What is needed of rows, whatever the samples."""
        return self.frame.prepare(rows), LevelsOfRows.of(rows, self.frame.levels.columns)

    def kernel_rows(self) -> KernelRows:
        """Rows that have kernels: all, or one at the mean of the class if all kernels are the same."""
        if self.pull != 0.0 or not len(self.rows):
            return KernelRows(self.rows, self.weights, True)
        row = np.zeros((1, self.rows.shape[1]))
        row[0, self.frame.variables] = self.frame.mean
        return KernelRows(row, np.ones(1), False)

    def shares(self, scaled: Floats) -> Floats:
        """Shares (n_samples, n_rows) of the rows in the density."""
        exponents, _ = self._exponents(*self._prepared(self.rows), scaled)
        least = exponents.min(axis=1, keepdims=True, initial=kernels.EXCLUDED)
        shares: Floats = self.weights * np.exp(least - exponents)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        return shares

"""Units: how raw columns become comparable before any bandwidth is chosen.

A scale is learnt once on the pooled training rows, so that all classes are measured alike. Bandwidths
and class densities are in its units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Kind = Literal["range", "standard", "rank"] | None

# Squared distances of such numbers over the smallest bandwidth are still finite.
_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Scale:
    """Column-wise transformation ``(x - center) / width``, or a rank in the pooled rows.

    Attributes
    ----------
    center, width : (n_features,)
    knots : for ranks, per column the distinct pooled values and the share of rows below each of them,
        counting ties half; None otherwise.
    """

    center: Floats
    width: Floats
    knots: tuple[tuple[Floats, Floats], ...] | None = None

    def transform(self, X: Floats) -> Floats:
        """Bring raw rows into scaled units; values between pooled ones are interpolated."""
        if self.knots is not None:
            columns = (np.interp(x, *knots) for x, knots in zip(X.T, self.knots, strict=True))
            return np.stack(list(columns), axis=1)
        scaled = 0.5 * X  # halves, because a difference of two large numbers can overflow
        scaled -= 0.5 * self.center
        with np.errstate(over="ignore"):  # what overflows is as far away as can be told apart
            scaled /= 0.5 * self.width
        return np.clip(scaled, -_LARGEST, _LARGEST, out=scaled)

    def restore(self, scaled: Floats) -> Floats:
        """Bring rows back into raw units (not from ranks, which do not determine them)."""
        return scaled * self.width + self.center

    @property
    def log_volume(self) -> float:
        """Logarithm of the raw volume of a scaled unit cube."""
        return float(np.log(self.width).sum())


def learn_scale(X: Floats, weights: Floats | None, kind: Kind) -> Scale:
    """Learn a scale from pooled rows, each counting as often as its weight says.

    A constant column has no spread to divide by and keeps its own units.
    """
    d = X.shape[1]
    if kind == "rank":
        return Scale(np.zeros(d), np.ones(d), tuple(_midranks(x, weights) for x in X.T))
    if kind is None:
        return Scale(np.zeros(d), np.ones(d))
    low, high = X.min(axis=0), X.max(axis=0)
    # Halves and a division by the largest value keep numbers near the largest double from overflowing.
    if kind == "range":
        center, width = low, np.minimum(2.0 * (0.5 * high - 0.5 * low), np.finfo(np.float64).max)
    else:
        largest = np.maximum(np.maximum(np.abs(low), np.abs(high)), np.finfo(np.float64).tiny)
        mean = np.average(X / largest, axis=0, weights=weights)
        variance = np.average((X / largest - mean) ** 2, axis=0, weights=weights)
        center, width = mean * largest, np.sqrt(variance) * largest
    constant = (high == low) | (width <= 0.0)
    return Scale(np.where(constant, low, center), np.where(constant, 1.0, width))


def _midranks(x: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    values, which = np.unique(x, return_inverse=True)
    counts = np.bincount(which, weights=weights, minlength=values.size)
    below = np.cumsum(counts)
    return values, (below - 0.5 * counts) / below[-1]

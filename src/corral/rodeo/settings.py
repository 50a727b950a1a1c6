r"""Parameters of the Rodeo and of a classifier that uses it; the estimators check them.

The bandwidths of a class with :math:`n` rows start from :math:`h_0 = c_0 / \log\log \max(n, 16)` and shrink
by the factor :math:`\beta`, down to a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from corral.array_types import Floats
from corral.data.scaling import ScaleKind
from corral.markers.contrast import MIN_EFFECT

Update = Literal["simultaneous", "sequential"]

# Below this size log log n is too small (or negative) to start from or to test with.
SMALLEST_COUNT = 16

# A grid of more bandwidths than that would take hours at the first row, and much memory.
_MOST_STEPS = 10_000_000


@dataclass(frozen=True)
class RodeoSettings:
    """Parameters of algorithm 1.

    Attributes
    ----------
    update : whether bandwidths change after a sweep or inside it.
    beta : factor by which a bandwidth shrinks.
    c0 : constant of the initial bandwidth.
    min_bandwidth : floor under every bandwidth; None stands for h0 / n.
    """

    update: Update = "simultaneous"
    beta: float = 0.9
    c0: float = 1.0
    min_bandwidth: float | None = None

    def initial_bandwidth(self, n: float) -> float:
        """Return the bandwidth to start from in a class of n rows."""
        return self.c0 / math.log(math.log(max(n, SMALLEST_COUNT)))

    def floor(self, n: float) -> float:
        """Return the smallest bandwidth in a class of n rows.

        The theory requires n h -> infinity: at h = h0 / n a window holds about one row of a variable that
        spreads over its range, and every derivative is noise. Without a floor the bandwidth would shrink for
        ever at a point mass, where rows coincide.
        """
        if self.min_bandwidth is not None:
            return self.min_bandwidth
        return self.initial_bandwidth(n) / max(n, 1.0)

    def grid(self, n: float) -> Floats:
        """Return h0 beta^k for k = 0, 1, ... down to the floor; h0 even if it is below the floor."""
        h0, floor = self.initial_bandwidth(n), self.floor(n)
        n_steps = 0 if floor >= h0 else math.ceil(math.log(floor / h0) / math.log(self.beta)) + 1
        if n_steps > _MOST_STEPS:
            raise ValueError(
                f"beta={self.beta!r} is too close to 1: bandwidths would shrink {n_steps} times."
            )
        h: Floats = np.float64(h0) * self.beta ** np.arange(n_steps + 1)
        kept: Floats = h[(h >= floor) | (h == h0)]
        return kept


@dataclass(frozen=True)
class ModelSettings:
    """Parameters of a classifier by class densities, except its priors."""

    rodeo: RodeoSettings = RodeoSettings()
    scale: ScaleKind = "range"
    # whether bandwidths are chosen at each sample or for each class
    bandwidth: Literal["local", "class"] = "local"
    features: Literal["all", "selected"] = "all"  # which variables take part in the densities
    cutpoint: float = -1.0  # largest z-score of a relevant variable
    min_effect: float = MIN_EFFECT  # least difference from the background that makes a variable a marker

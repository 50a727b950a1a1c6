r"""Parameters of the Rodeo and of classifiers that use the Rodeo; the estimators check the values.

The bandwidths of a class with :math:`n` rows start from :math:`h_0 = c_0 / \log\log \max(n, 16)` and shrink
by the factor :math:`\beta`, but not below a smallest bandwidth.
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

# Classes with fewer rows use this number in log log n, which would be too small, or negative.
SMALLEST_COUNT = 16

# More bandwidths would need hours for one row, and much memory.
_MOST_STEPS = 10_000_000


@dataclass(frozen=True)
class RodeoSettings:
    """Parameters of algorithm 1.

    Attributes
    ----------
    update : "simultaneous" if bandwidths change after a sweep over the variables, "sequential" if inside it.
    beta : factor by which a bandwidth shrinks.
    c0 : factor of the initial bandwidth h0.
    min_bandwidth : smallest bandwidth; None for h0 / n.
    """

    update: Update = "simultaneous"
    beta: float = 0.9
    c0: float = 1.0
    min_bandwidth: float | None = None

    def initial_bandwidth(self, n: float) -> float:
        """Return the initial bandwidth h0 of a class with n rows."""
        return self.c0 / math.log(math.log(max(n, SMALLEST_COUNT)))

    def floor(self, n: float) -> float:
        """Return the smallest bandwidth of a class with n rows.

        The theory requires n h -> infinity. If h = h0 / n and the rows are spread over the range of a
        variable, a window of width h contains about one row, and the derivatives are noise. If many rows have
        equal values, the bandwidth would shrink forever without this limit.
        """
        if self.min_bandwidth is not None:
            return self.min_bandwidth
        return self.initial_bandwidth(n) / max(n, 1.0)

    def grid(self, n: float) -> Floats:
        """Return h0 and all smaller bandwidths h0 beta^k, k = 1, 2, ..., that are not below the floor."""
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
    """Parameters of `RodeoClassifier`, except the priors."""

    rodeo: RodeoSettings = RodeoSettings()
    scale: ScaleKind = "range"
    # "local": bandwidths are chosen at each new row; "class": one bandwidth per class and variable
    bandwidth: Literal["local", "class"] = "local"
    features: Literal["all", "selected"] = "all"  # "selected": densities use only relevant variables
    cutpoint: float = -1.0  # largest z-score of a relevant variable
    min_effect: float = MIN_EFFECT  # smallest effect of a marker

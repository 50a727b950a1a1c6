"""The power law of a learning curve, by its definition."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike


def power_law_weights(
    levels: list[float],
    times: list[float],
    rises: list[float],
    covariance: ArrayLike,
    *,
    shares: list[float],
    rates: list[float],
    prior: Callable[[float, float], float],
    misfit: float,
    gap: float = math.inf,
) -> dict[tuple[float, float, float], float]:
    """Posterior probabilities of (D, u, c) by their definition; the levels stay equally probable.

    No law falls by more than the gap: where it is less than D, all u are multiplied by gap / D.
    """
    whole = np.array(covariance, dtype=float).reshape(len(times), len(times))
    for k, (t, rise) in enumerate(zip(times, rises, strict=True)):
        whole[k, k] += (misfit * max(rise, 0.0) * math.log2(1 / t)) ** 2
    inverse = np.linalg.inv(whole)
    weights = {}
    for D in levels:
        of_level = {}
        for u in shares:
            for c in rates:
                falls = min(D, gap) * u
                off = np.array([falls * (t**-c - 1) - rise for t, rise in zip(times, rises, strict=True)])
                of_level[D, u, c] = prior(u, c) * math.exp(-off @ inverse @ off / 2)
        total = sum(of_level.values())
        weights |= {point: weight / total / len(levels) for point, weight in of_level.items()}
    return weights

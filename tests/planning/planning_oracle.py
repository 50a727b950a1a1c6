"""The power law of a learning curve, by its definition."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike


def power_law_weights(
    losses: list[float],
    times: list[float],
    rises: list[float],
    covariance: ArrayLike,
    *,
    shares: list[float],
    rates: list[float],
    prior: Callable[[float, float], float],
    misfit: float,
    most: float = math.inf,
) -> dict[tuple[float, float, float], float]:
    """Posterior probabilities of (D, u, c) by their definition; the current losses stay equally probable.

    No law falls by more than `most`: if it is less than D, all u are multiplied by most / D.
    """
    total_covariance = np.array(covariance, dtype=float).reshape(len(times), len(times))
    for k, (t, rise) in enumerate(zip(times, rises, strict=True)):
        total_covariance[k, k] += (misfit * max(rise, 0.0) * math.log2(1 / t)) ** 2
    inverse = np.linalg.inv(total_covariance)
    weights = {}
    for D in losses:
        by_loss = {}
        for u in shares:
            for c in rates:
                falls = min(D, most) * u
                off = np.array([falls * (t**-c - 1) - rise for t, rise in zip(times, rises, strict=True)])
                by_loss[D, u, c] = prior(u, c) * math.exp(-off @ inverse @ off / 2)
        total = sum(by_loss.values())
        weights |= {point: weight / total / len(losses) for point, weight in by_loss.items()}
    return weights

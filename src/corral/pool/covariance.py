"""Covariances of classes, shrunk towards a multiple of the identity, and their inverse roots."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from corral.array_types import Floats


def shrunk_covariance(residuals: Floats, weights: Floats, n: float) -> Floats | None:
    """The covariance of n rows, drawn towards equal variances; see `shrunk`."""
    return shrunk((residuals * (weights / weights.sum())[:, np.newaxis]).T @ residuals, n)


def shrunk(covariance: Floats, n: float) -> Floats | None:
    """A covariance of n rows, drawn in place towards equal variances as by `sklearn.covariance.oas`.

    None where all rows are alike, and nothing is known of it.
    """
    if np.trace(covariance) == 0.0:
        return None
    return drawn(covariance, oas_shrinkage(covariance, n))


def oas_shrinkage(covariance: Floats, n: float) -> float:
    """How far a covariance of n rows is drawn by `sklearn.covariance.oas`; its trace must not be 0."""
    d = len(covariance)
    mean_square, mean_variance = np.mean(covariance**2), np.trace(covariance) / d
    excess = (n + 1.0) * (mean_square - mean_variance**2 / d)
    return 1.0 if excess <= 0.0 else min(1.0, float((mean_square + mean_variance**2) / excess))


def drawn(covariance: Floats, shrinkage: float) -> Floats:
    """Draw a covariance, in place, towards equal variances; a shrinkage of 1 leaves nothing else."""
    d = len(covariance)
    mean_variance = np.trace(covariance) / d
    covariance *= 1.0 - shrinkage
    covariance.flat[:: d + 1] += shrinkage * mean_variance
    return covariance


def inverse_root(covariance: Floats) -> tuple[Floats, float]:
    """The symmetric inverse root of a covariance, and the logarithm of its determinant."""
    variances, directions = eigh(covariance)
    roots = np.sqrt(np.maximum(variances, 1e-12 * variances[-1]))  # where shrinkage is below rounding
    return (directions / roots) @ directions.T, -float(np.log(roots).sum())

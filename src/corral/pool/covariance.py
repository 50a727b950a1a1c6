"""Covariances that are shrunk towards a multiple of the identity, and their inverse square roots."""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.weights import effective_number

# Shrinkages to choose from: a multiple of the identity gets the weight of this number of rows.
_TRIED_ROWS = 2.0 ** np.arange(-4.0, 16.0)

# Smaller numbers are rounding errors.
_ROUNDING = 1e-12


def shrunk(covariance: Floats, n: float) -> Floats | None:
    """Shrink a covariance of n rows in place towards equal variances, as `sklearn.covariance.oas` does.

    Returns the shrunk covariance, or None if the covariance is 0.
    """
    if np.trace(covariance) == 0.0:
        return None
    shrinkage, d = oas_shrinkage(covariance, n), len(covariance)
    mean_variance = np.trace(covariance) / d
    covariance *= 1.0 - shrinkage
    covariance.flat[:: d + 1] += shrinkage * mean_variance
    return covariance


def oas_shrinkage(covariance: Floats, n: float) -> float:
    """Return the shrinkage, 0 to 1, of `sklearn.covariance.oas` for a covariance of n rows with trace > 0."""
    d = len(covariance)
    mean_square, mean_variance = np.mean(covariance**2), np.trace(covariance) / d
    excess = (n + 1.0) * (mean_square - mean_variance**2 / d)
    return 1.0 if excess <= 0.0 else min(1.0, float((mean_square + mean_variance**2) / excess))


def inverse_root(covariance: Floats) -> Floats:
    """Return the symmetric inverse square root of a covariance."""
    return _inverse_root(*np.linalg.eigh(covariance))


def _inverse_root(variances: Floats, directions: Floats) -> Floats:
    """Return the inverse square root from eigenvalues in ascending order and eigenvectors."""
    roots = np.sqrt(
        np.maximum(variances, 1e-12 * variances[-1])
    )  # if a tiny shrinkage leaves an eigenvalue 0
    inverse: Floats = (directions / roots) @ directions.T
    return inverse


def shared_inverse_root(covariance: Floats, residuals: Floats, weights: Floats, codes: Integers) -> Floats:
    """Return the inverse square root of the shrunk covariance of rows around the means of their classes.

    The shrinkage towards equal variances is the geometric mean of two shrinkages. The OAS shrinkage minimizes
    squared errors of the covariance, but it is too strong in directions of small variance, in which classes
    may differ most. The shrinkage of maximum likelihood (`likely_shrinkage`) is better in such directions,
    but too weak if rows are not normal. Shrinkage does not change eigenvectors, so that one decomposition is
    enough.

    Parameters
    ----------
    covariance : (n_variables, n_variables)
    residuals : (n_rows, n_variables) rows minus the means of their classes.
    weights, codes : (n_rows,) weights and class codes of the rows.
    """
    if np.trace(covariance) == 0.0:  # the rows of each class are equal
        return np.eye(len(covariance))
    variances, directions = np.linalg.eigh(covariance)
    likely = likely_shrinkage(variances, residuals @ directions, weights, codes)
    shrinkage = float(np.sqrt(oas_shrinkage(covariance, effective_number(weights)) * likely))
    return _inverse_root((1.0 - shrinkage) * variances + shrinkage * variances.mean(), directions)


def likely_shrinkage(variances: Floats, coordinates: Floats, weights: Floats, codes: Integers) -> float:
    """Return the shrinkage with the largest leave-one-out likelihood; see `left_out_losses`."""
    shrinkages = _TRIED_ROWS / (_TRIED_ROWS + effective_number(weights))
    losses = left_out_losses(variances, coordinates, weights, codes, shrinkages)
    return float(shrinkages[losses.argmin()])


def left_out_losses(
    variances: Floats, coordinates: Floats, weights: Floats, codes: Integers, shrinkages: Floats
) -> Floats:
    r"""Return mean leave-one-out losses (n_shrinkages,) of rows under normal densities.

    The loss of a row is twice its negative log density, up to a constant. Let S be the covariance of the rows
    around the means of their classes, t its mean variance, and :math:`M = (1 - s) S + s t I` the covariance
    with shrinkage s. Let row i have the residual :math:`r_i` and the weight :math:`w_i`, W be the sum of all
    weights, and :math:`W_y` the sum of the weights in its class. If row i is left out, :math:`c_i r_i r_i^T`
    is subtracted from M, with :math:`c_i = (1 - s) g_i w_i / W`, and the residual of row i is multiplied by
    :math:`g_i = 1 / (1 - w_i / W_y)`. So the loss is
    :math:`\log |M| + \log (1 - c_i q_i) + g_i^2 q_i / (1 - c_i q_i)` with :math:`q_i = r_i^T M^{-1} r_i`.

    Parameters
    ----------
    variances : (n_variables,) eigenvalues of S.
    coordinates : (n_rows, n_variables) residuals along the eigenvectors of S.
    weights, codes : (n_rows,) weights and class codes of the rows.
    shrinkages : (n_shrinkages,) values of s.
    """
    shares = weights / weights.sum()
    kept = 1.0 - shrinkages
    tried = np.outer(kept, np.maximum(variances, 0.0)) + np.outer(shrinkages, variances.mean())
    q = coordinates**2 @ (1.0 / tried).T
    left = 1.0 - weights / np.bincount(codes, weights)[codes]
    growth = np.divide(1.0, left, out=np.ones(left.size), where=left > _ROUNDING)[:, np.newaxis]
    rest = np.maximum(1.0 - kept * growth * shares[:, np.newaxis] * q, _ROUNDING)
    losses: Floats = np.log(tried).sum(axis=1) + shares @ (np.log(rest) + growth**2 * q / rest)
    return losses

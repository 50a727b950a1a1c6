"""Covariances of classes, shrunk towards a multiple of the identity, and their inverse roots."""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.weights import effective_number

# Shrinkages of a covariance that are tried, as numbers of rows that equal variances count for.
_TRIED_ROWS = 2.0 ** np.arange(-4.0, 16.0)

# Smaller shares are rounding errors.
_ROUNDING = 1e-12


def shrunk(covariance: Floats, n: float) -> Floats | None:
    """A covariance of n rows, shrunk in place towards equal variances as by `sklearn.covariance.oas`.

    None where all rows are alike, and nothing is known of it.
    """
    if np.trace(covariance) == 0.0:
        return None
    shrinkage, d = oas_shrinkage(covariance, n), len(covariance)
    mean_variance = np.trace(covariance) / d
    covariance *= 1.0 - shrinkage
    covariance.flat[:: d + 1] += shrinkage * mean_variance
    return covariance


def oas_shrinkage(covariance: Floats, n: float) -> float:
    """How far `sklearn.covariance.oas` shrinks a covariance of n rows; its trace must not be 0."""
    d = len(covariance)
    mean_square, mean_variance = np.mean(covariance**2), np.trace(covariance) / d
    excess = (n + 1.0) * (mean_square - mean_variance**2 / d)
    return 1.0 if excess <= 0.0 else min(1.0, float((mean_square + mean_variance**2) / excess))


def inverse_root(covariance: Floats) -> Floats:
    """The symmetric inverse root of a covariance."""
    return _inverse_root(*np.linalg.eigh(covariance))


def _inverse_root(variances: Floats, directions: Floats) -> Floats:
    """The same from eigenvalues in ascending order, and eigenvectors."""
    roots = np.sqrt(np.maximum(variances, 1e-12 * variances[-1]))  # where shrinkage is below rounding
    inverse: Floats = (directions / roots) @ directions.T
    return inverse


def shared_inverse_root(covariance: Floats, residuals: Floats, weights: Floats, codes: Integers) -> Floats:
    """The inverse root of the covariance of rows around the means of their classes.

    The covariance is shrunk towards equal variances, by the geometric mean of two shrinkages. That of OAS
    aims at squared errors, and blurs directions in which rows hardly vary, where classes may differ most.
    That at which rows are likeliest keeps them, but trusts them too much where rows are not normal. Shrinking
    keeps the eigenvectors, so one decomposition is enough. `residuals` (n_rows, n_variables) are rows less
    the means of their classes.
    """
    if np.trace(covariance) == 0.0:  # rows of a class are all alike
        return np.eye(len(covariance))
    variances, directions = np.linalg.eigh(covariance)
    likely = likely_shrinkage(variances, residuals @ directions, weights, codes)
    shrinkage = float(np.sqrt(oas_shrinkage(covariance, effective_number(weights)) * likely))
    return _inverse_root((1.0 - shrinkage) * variances + shrinkage * variances.mean(), directions)


def likely_shrinkage(variances: Floats, coordinates: Floats, weights: Floats, codes: Integers) -> float:
    """The shrinkage at which rows are likeliest by normal densities of the others, see `left_out_losses`."""
    shrinkages = _TRIED_ROWS / (_TRIED_ROWS + effective_number(weights))
    losses = left_out_losses(variances, coordinates, weights, codes, shrinkages)
    return float(shrinkages[losses.argmin()])


def left_out_losses(
    variances: Floats, coordinates: Floats, weights: Floats, codes: Integers, shrinkages: Floats
) -> Floats:
    r"""Mean losses of rows by the normal density of all others, for each shrinkage.

    Rows less the means of their classes have `coordinates` (n_rows, n_variables) along the eigenvectors of
    their covariance S, with eigenvalues `variances`. Let :math:`M = (1 - s) S + s t I` be S shrunk towards
    its mean variance t. Without row i, of weight :math:`w_i` among W, and :math:`W_y` in its class, it loses
    :math:`c_i r_i r_i^T` with :math:`c_i = (1 - s) g_i w_i / W`, and the residual :math:`r_i` grows by
    :math:`g_i = 1 / (1 - w_i / W_y)`. So with :math:`q_i = r_i^T M^{-1} r_i` twice the negative log density
    is, but for a constant, :math:`\log |M| + \log (1 - c_i q_i) + g_i^2 q_i / (1 - c_i q_i)`.
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

r"""Frames: in which coordinates the rows of each class are seen, learnt from some of the rows.

A frame has for each class y a mean :math:`\mu_y` and a factor :math:`B_y`, whose :math:`B_y B_y^T` is the
inverse of a covariance, so that :math:`B_y^T (x - \mu_y)` has about unit variances in the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.weights import effective_number, weights_or_ones
from corral.pool.covariance import drawn, inverse_root, oas_shrinkage, shrunk_covariance

Covariance = Literal["own", "shared", "diagonal", "selected", "none"]

# The covariance of a class is drawn towards that of all classes as if it had this share of its rows: it
# costs more to trust it too much than too little.
TRUSTED_SHARE = 0.5

# Variances and frequencies of a class count as if so many rows with those of all classes were added where
# values repeat, since a class may not have had another value yet.
EXTRA_ROWS = 2.0

# And variances as if this share of the variable's whole variance were added: a point mass is not infinitely
# dense.
_LEAST_SHARE = 1e-3

# Shrinkages of a covariance that are tried, as numbers of rows that equal variances count for.
_TRIED_ROWS = 2.0 ** np.arange(-4.0, 16.0)

# Where one value has more than this share of the rows, a class that never has another cannot be told from one
# that has not had it yet: in each class such a variable has its whole range as its deviation.
_RARE = 0.9

# The probability that a class gets a variable though it is like all rows in each of them.
_LEVEL = 0.1

# Smaller shares are rounding errors.
_ROUNDING = 1e-12

# A polynomial with a smaller deviation is rounding error.
_LEAST_DEVIATION = 1e-6


class ClassFrame(NamedTuple):
    """The coordinates of one class.

    Attributes
    ----------
    variables : (n_used,) columns that take part.
    mean : (n_used,) of the class.
    factor : (n_used, n_axes) B, by which differences from the mean become coordinates.
    log_volume : logarithm of the determinant of B, and of the density of the other columns.
    """

    variables: Integers
    mean: Floats
    factor: Floats
    log_volume: float

    def coordinates(self, scaled: Floats) -> Floats:
        """Coordinates (n_rows, n_axes) of scaled rows."""
        coordinates: Floats = (scaled[:, self.variables] - self.mean) @ self.factor
        return coordinates


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted means and residuals of rows, by class.

    Attributes
    ----------
    codes : (n_rows,) class numbers.
    weights : (n_rows,)
    sizes : (n_classes,) how many rows of equal weight each class is worth.
    means : (n_classes, n_variables); of all rows where a class has none.
    residuals : (n_rows, n_variables) rows less the means of their classes.
    total : (n_variables,) variances of all rows.
    """

    codes: Integers
    weights: Floats
    sizes: Floats
    means: Floats
    residuals: Floats
    total: Floats

    @classmethod
    def of(cls, scaled: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> Moments:
        """Gather the moments of scaled rows."""
        weights = weights_or_ones(weights, len(codes))
        shares = shares_of_rows(codes, weights, n_classes)
        center = weights @ scaled / weights.sum()
        means = np.where(shares.any(axis=1, keepdims=True), shares @ scaled, center)
        sizes = np.array([effective_number(weights[codes == y]) for y in range(n_classes)])
        total = weights @ (scaled - center) ** 2 / weights.sum()
        return cls(codes, weights, sizes, means, scaled - means[codes], total)


def shares_of_rows(codes: Integers, weights: Floats, n_classes: int) -> Floats:
    """Shares (n_classes, n_rows) that rows have of the weight of their class."""
    shares = np.zeros((n_classes, len(codes)))
    shares[codes, np.arange(len(codes))] = weights
    sums = shares.sum(axis=1, keepdims=True)
    return shares / np.where(sums > 0.0, sums, 1.0)


def learn_frames(
    covariance: Covariance,
    scaled: Floats,
    codes: Integers,
    weights: Floats | None,
    n_classes: int,
    variables: Integers,
) -> list[ClassFrame]:
    """Learn a frame for each class.

    Parameters
    ----------
    covariance : "own", of each class, drawn towards the "shared" one; "diagonal", of its own variances
        alone; or "selected", the same of variables in which the class differs from all rows, the
        others being uniform: for ranks alone, which all rows together make uniform. "none" leaves the units
        as they are.
    scaled : (n_rows, n_features)
    codes : (n_rows,) class numbers.
    weights : (n_rows,) or None.
    n_classes : number of classes, some perhaps without rows.
    variables : columns that may take part, all of which vary.
    """
    if covariance == "none":
        plain = ClassFrame(variables, np.zeros(variables.size), np.eye(variables.size), 0.0)
        return [plain] * n_classes
    moments = Moments.of(scaled[:, variables], codes, weights, n_classes)
    if not variables.size:
        return _diagonal(moments, variables, np.ones(moments.means.shape, dtype=bool), *[np.empty(0)] * 2)
    ranges = np.where(hardly_varies(scaled[:, variables]), np.ptp(scaled[:, variables], axis=0), 0.0)
    if covariance in ("diagonal", "selected"):
        used = np.ones(moments.means.shape, dtype=bool)
        if covariance == "selected":
            used = differing(scaled[:, variables], codes, weights, n_classes)
        return _diagonal(moments, variables, used, ranges, repeated(scaled[:, variables]))
    usual = ranges == 0.0
    part = moments if usual.all() else Moments.of(scaled[:, variables[usual]], codes, weights, n_classes)
    roots = (
        _covariance_roots(part, own=covariance == "own") if usual.any() else [(np.eye(0), 0.0)] * n_classes
    )
    frames = []
    for mean, (root, log_volume) in zip(moments.means, roots, strict=True):
        factor = np.zeros((variables.size, variables.size))
        factor[np.ix_(usual, usual)] = root
        factor[~usual, ~usual] = 1.0 / ranges[~usual]
        frames.append(ClassFrame(variables, mean, factor, log_volume - float(np.log(ranges[~usual]).sum())))
    return frames


def hardly_varies(scaled: Floats) -> Bools:
    """Tell in which columns one value has more than a share _RARE of the rows."""
    n = len(scaled)
    apart = int(np.ceil(_RARE * n))
    if apart >= n:
        return np.zeros(scaled.shape[1], dtype=bool)
    gaps = np.isnan(scaled)
    if gaps.any():
        columns = [
            hardly_varies(x[~missing, np.newaxis]) for x, missing in zip(scaled.T, gaps.T, strict=True)
        ]
        return np.concatenate(columns)
    ordered = np.sort(scaled, axis=0)
    repeats: Bools = (ordered[apart:] == ordered[: n - apart]).any(axis=0)
    return repeats


def repeated(scaled: Floats) -> Floats:
    """Shares (n_variables,) of values that repeat others: 0 if all differ, 1 if none do."""
    ordered = np.sort(scaled, axis=0)  # gaps last
    is_new = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[1:])
    most = np.maximum((~np.isnan(scaled)).sum(axis=0) - 1, 1)
    shares: Floats = 1.0 - is_new.sum(axis=0) / most
    return shares


def class_variances(own: Floats, within: Floats, total: Floats, sizes: Floats, repeats: Floats) -> Floats:
    """Variances (n_classes, n_variables) to be trusted, 1 where nothing is known.

    Where all values differ a class has its own variance, drawn by its logarithm towards that of all classes
    as if by one row: with rows added to the sum of squares instead, few rows could not tell that a class
    varies less than others. Where values repeat rows are added, too.

    Parameters
    ----------
    own : (n_classes, n_variables) mean squares of the residuals of a class.
    within : (n_variables,) of all residuals.
    total : (n_variables,) variances of all rows.
    sizes : (n_classes, n_variables) how many rows of equal weight they are of.
    repeats : (n_variables,) see `repeated`.
    """
    n = sizes.sum(axis=0)
    floor = _LEAST_SHARE * total
    within = within * n / np.maximum(n - (sizes > 0.0).sum(axis=0), 1.0)
    freedom, extra = np.maximum(sizes - 1.0, 0.0), EXTRA_ROWS * repeats
    squares = np.where(sizes > 1.0, sizes * own, 0.0) + extra * within
    own = np.divide(squares, freedom + extra, out=np.zeros_like(squares), where=freedom + extra > 0.0) + floor
    within = within + floor
    exists = (own > 0.0) & (within > 0.0)  # of values that are all alike nothing is known
    ratio = np.divide(own, within, out=np.ones_like(own), where=exists)
    return np.where(exists, within, 1.0) * ratio ** (freedom / (freedom + 1.0))


def _diagonal(
    moments: Moments, variables: Integers, used: Bools, ranges: Floats, repeats: Floats
) -> list[ClassFrame]:
    """Frames by variances alone, of the variables used (n_classes, n_variables) by each class.

    Where a range (n_variables,) is given, and not 0, it takes the place of the deviation.
    """
    squares = moments.residuals**2
    within = moments.weights @ squares / moments.weights.sum()
    own = shares_of_rows(moments.codes, moments.weights, moments.sizes.size) @ squares
    sizes = np.broadcast_to(moments.sizes[:, np.newaxis], moments.means.shape)
    variances = class_variances(own, within, moments.total, sizes, repeats)
    variances = np.where(ranges > 0.0, ranges**2, variances)
    frames = []
    for use, mean, variance in zip(used, moments.means, variances, strict=True):
        inverse = 1.0 / np.sqrt(variance[use])
        frames.append(ClassFrame(variables[use], mean[use], np.diag(inverse), float(np.log(inverse).sum())))
    return frames


def _covariance_roots(moments: Moments, *, own: bool) -> Sequence[tuple[Floats, float]]:
    """Factor and log determinant for each class, by the covariance of all classes or by its own."""
    shared = shared_covariance(
        (moments.residuals * (moments.weights / moments.weights.sum())[:, np.newaxis]).T @ moments.residuals,
        moments.residuals,
        moments.weights,
        moments.codes,
    )
    root, log_root = inverse_root(shared)
    if not own:
        return [(root, log_root)] * moments.sizes.size
    factors = []
    for y, size in enumerate(moments.sizes):
        of_class = moments.codes == y
        whitened = moments.residuals[of_class] @ root
        m = moments.weights[of_class]
        covariance = shrunk_covariance(whitened, m, TRUSTED_SHARE * size) if m.size > 1 else None
        if covariance is None:
            factors.append((root, log_root))
        else:
            own_root, log_own = inverse_root(covariance)
            factors.append((root @ own_root, log_root + log_own))
    return factors


def shared_covariance(covariance: Floats, residuals: Floats, weights: Floats, codes: Integers) -> Floats:
    """Draw the covariance of rows around the means of their classes, in place, towards equal variances.

    By the geometric mean of two shrinkages. That of OAS aims at squared errors, and blurs directions in which
    rows hardly vary, where classes may differ most. That at which rows are likeliest keeps them, but trusts
    them too much where rows are not normal.

    Parameters
    ----------
    covariance : (n_variables, n_variables) of the residuals.
    residuals : (n_rows, n_variables) rows less the means of their classes.
    weights : (n_rows,)
    codes : (n_rows,) class numbers.
    """
    if np.trace(covariance) == 0.0:  # rows of a class are all alike
        return np.eye(len(covariance))
    usual = oas_shrinkage(covariance, effective_number(weights))
    return drawn(covariance, float(np.sqrt(usual * likely_shrinkage(covariance, residuals, weights, codes))))


def likely_shrinkage(covariance: Floats, residuals: Floats, weights: Floats, codes: Integers) -> float:
    """The shrinkage at which rows are likeliest by normal densities of the others, see `left_out_losses`."""
    shrinkages = _TRIED_ROWS / (_TRIED_ROWS + effective_number(weights))
    losses = left_out_losses(covariance, residuals, weights, codes, shrinkages)
    return float(shrinkages[losses.argmin()])


def left_out_losses(
    covariance: Floats, residuals: Floats, weights: Floats, codes: Integers, shrinkages: Floats
) -> Floats:
    r"""Mean losses of rows by the normal density of all others, for each shrinkage.

    Let :math:`M = (1 - s) S + s t I` be the covariance S, drawn towards its mean variance t. Without row i,
    of weight :math:`w_i` among W, and :math:`W_y` in its class, it loses :math:`c_i r_i r_i^T` with
    :math:`c_i = (1 - s) g_i w_i / W`, and the residual :math:`r_i` grows by
    :math:`g_i = 1 / (1 - w_i / W_y)`. So with :math:`q_i = r_i^T M^{-1} r_i` twice the negative log density
    is, but for a constant, :math:`\log |M| + \log (1 - c_i q_i) + g_i^2 q_i / (1 - c_i q_i)`.
    """
    shares = weights / weights.sum()
    variances, directions = np.linalg.eigh(covariance)
    kept = 1.0 - shrinkages
    tried = np.outer(kept, np.maximum(variances, 0.0)) + np.outer(shrinkages, variances.mean())
    q = (residuals @ directions) ** 2 @ (1.0 / tried).T
    left = 1.0 - weights / np.bincount(codes, weights)[codes]
    growth = np.divide(1.0, left, out=np.ones(left.size), where=left > _ROUNDING)[:, np.newaxis]
    rest = np.maximum(1.0 - kept * growth * shares[:, np.newaxis] * q, _ROUNDING)
    losses: Floats = np.log(tried).sum(axis=1) + shares @ (np.log(rest) + growth**2 * q / rest)
    return losses


def differing(ranks: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> Bools:
    """Tell in which variables (n_classes, n_variables) a class differs from all rows together."""
    level = _LEVEL / max(ranks.shape[1], 1)
    # Twice minus the logarithm is the quantile of chi-squared with two degrees of freedom.
    differs: Bools = rank_statistics(ranks, codes, weights, n_classes) > -2.0 * np.log(level)
    return differs


def rank_statistics(ranks: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> Floats:
    """How far each class (n_classes, n_variables) is from all rows, about chi-squared if it is not.

    Squared standardised means of two polynomials of the ranks, of location and of spread. `contrast` asks
    more carefully, and what sets a class apart from its background rather than from all rows, but takes too
    long to be repeated in every fold.
    """
    weights = weights_or_ones(weights, len(codes))
    shares = weights / weights.sum()
    location = _standardised(ranks, shares)
    squares = ranks - shares @ ranks
    squares = squares * squares
    squares -= shares @ squares
    spread = _standardised(squares - location * (shares @ (location * squares)), shares)
    statistics = np.zeros((n_classes, ranks.shape[1]))
    n = effective_number(weights)
    for y in range(n_classes):
        of_class = codes == y
        m = weights[of_class]
        if m.size and not of_class.all():
            size = effective_number(m)
            factor = size / max(1.0 - size / n, 1.0 / n)
            for polynomial in (location, spread):
                statistics[y] += factor * (m @ polynomial[of_class] / m.sum()) ** 2
    return statistics


def _standardised(x: Floats, shares: Floats) -> Floats:
    """Columns of weighted mean 0 and variance 1; zero where there is nothing but rounding error."""
    x = x - shares @ x
    deviation = np.sqrt(shares @ (x * x))
    exists = deviation > _LEAST_DEVIATION
    return np.where(exists, x / np.where(exists, deviation, 1.0), 0.0)

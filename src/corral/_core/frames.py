r"""Frames: in which coordinates the rows of each class are seen, learnt from some of the rows.

A frame has for each class y a mean :math:`\mu_y` and a factor :math:`B_y`, whose :math:`B_y B_y^T` is the
inverse of a covariance, so that :math:`B_y^T (x - \mu_y)` has about unit variances in the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from corral._core.copies import effective_number
from corral._core.scale import inverse_root, shrunk_covariance
from corral._core.settings import Bools, Floats, Integers

Covariance = Literal["own", "shared", "diagonal", "selected", "none"]

# The covariance of a class is drawn towards that of all classes as if it had this share of its rows: it
# costs more to trust it too much than too little.
TRUSTED_SHARE = 0.5

# A class's variances count as if so many rows with those of all classes were added, and this share of the
# variable's whole variance: a point mass is not infinitely dense.
EXTRA_ROWS = 2.0
LEAST_SHARE = 1e-3

# Where one value has more than this share of the rows, a class that never has another cannot be told from one
# that has not had it yet: in each class such a variable has its whole range as its deviation.
_RARE = 0.9

# The probability that a class gets a variable though it is like all rows in each of them.
_LEVEL = 0.1

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
        weights = np.ones(len(codes)) if weights is None else weights
        shares = np.zeros((n_classes, len(codes)))
        shares[codes, np.arange(len(codes))] = weights
        sums = shares.sum(axis=1, keepdims=True)
        center = weights @ scaled / weights.sum()
        means = np.where(sums > 0.0, shares @ scaled / np.where(sums > 0.0, sums, 1.0), center)
        sizes = np.array([effective_number(weights[codes == y]) for y in range(n_classes)])
        total = weights @ (scaled - center) ** 2 / weights.sum()
        return cls(codes, weights, sizes, means, scaled - means[codes], total)


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
        return _diagonal(moments, variables, np.ones(moments.means.shape, dtype=bool), np.empty(0))
    ranges = np.where(hardly_varies(scaled[:, variables]), np.ptp(scaled[:, variables], axis=0), 0.0)
    if covariance in ("diagonal", "selected"):
        used = np.ones(moments.means.shape, dtype=bool)
        if covariance == "selected":
            used = differing(scaled[:, variables], codes, weights, n_classes)
        return _diagonal(moments, variables, used, ranges)
    usual = ranges == 0.0
    part = Moments.of(scaled[:, variables[usual]], codes, weights, n_classes)
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


def _diagonal(moments: Moments, variables: Integers, used: Bools, ranges: Floats) -> list[ClassFrame]:
    """Frames by variances alone, of the variables used (n_classes, n_variables) by each class.

    Where a range (n_variables,) is given, and not 0, it takes the place of the deviation.
    """
    within = moments.weights @ moments.residuals**2 / moments.weights.sum()
    frames = []
    for y, size in enumerate(moments.sizes):
        of_class = moments.codes == y
        m, squares = moments.weights[of_class], moments.residuals[of_class] ** 2
        own = m @ squares / m.sum() if m.size else np.zeros_like(within)
        variance = (size * own + EXTRA_ROWS * within) / (size + EXTRA_ROWS) + LEAST_SHARE * moments.total
        variance = np.where(ranges > 0.0, ranges**2, variance)
        # Of values that are all alike in these rows nothing is known.
        inverse = 1.0 / np.sqrt(np.where(variance > 0.0, variance, 1.0)[used[y]])
        mean = moments.means[y, used[y]]
        frames.append(ClassFrame(variables[used[y]], mean, np.diag(inverse), float(np.log(inverse).sum())))
    return frames


def _covariance_roots(moments: Moments, *, own: bool) -> Sequence[tuple[Floats, float]]:
    """Factor and log determinant for each class, by the covariance of all classes or by its own."""
    shared = shrunk_covariance(moments.residuals, moments.weights, effective_number(moments.weights))
    if shared is None:  # rows of a class are all alike
        shared = np.eye(moments.residuals.shape[1])
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
    weights = np.ones(len(codes)) if weights is None else weights
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

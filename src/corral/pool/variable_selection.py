"""Selection of variables by rank statistics, fast enough to be repeated in every fold."""

from __future__ import annotations

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.missing import without_missing
from corral.data.scaling import spreads
from corral.data.weights import effective_number, effective_sizes, weights_or_ones
from corral.pool.scaled_rows import ScaledRows

# Significance level for all variables together: the approximate probability that a class gets at least one
# variable although the class is distributed like all rows.
_SIGNIFICANCE_LEVEL = 0.1

# A smaller standard deviation of a polynomial is a rounding error.
_LEAST_DEVIATION = 1e-6


def choose_variables(rows: ScaledRows) -> Integers:
    """Return the numeric columns that members use: indices, sorted.

    These are all numeric columns that vary. If there are more than `rows.most_variables`, only the columns
    with the largest rank statistics are used.
    """
    data, ranks = rows.data, rows.scaled["rank"]
    variables = np.flatnonzero((spreads(ranks) > 0.0) & (data.category_counts == 0))
    if variables.size <= rows.most_variables:
        return variables
    statistics = rank_statistics(
        without_missing(ranks[:, variables]), data.codes, data.weights, data.labels.size
    ).max(axis=0)
    strongest = np.argsort(-statistics, kind="stable")[: rows.most_variables]
    return np.sort(variables[strongest])


def differing(ranks: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> Bools:
    """Return whether each class differs from all rows in each variable (n_classes, n_variables)."""
    significance_level = _SIGNIFICANCE_LEVEL / max(ranks.shape[1], 1)
    # -2 log(a) is the quantile of level 1 - a of chi-squared with two degrees of freedom.
    differs: Bools = rank_statistics(ranks, codes, weights, n_classes) > -2.0 * np.log(significance_level)
    return differs


def rank_statistics(ranks: Floats, codes: Integers, weights: Floats | None, n_classes: int) -> Floats:
    """Return statistics (n_classes, n_variables) that compare the ranks of each class with all rows.

    A statistic is the sum of the squared standardized means of two polynomials of the ranks. One polynomial
    measures location, the other spread. If the class is distributed like all rows, the statistic is
    approximately chi-squared with two degrees of freedom. `corral.markers.contrast` has more accurate tests,
    which are too slow to be repeated in every fold.
    """
    sizes = effective_sizes(codes, weights, n_classes)
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
        rows_of_class = codes == y
        m = weights[rows_of_class]
        if m.size and not rows_of_class.all():
            factor = sizes[y] / max(1.0 - sizes[y] / n, 1.0 / n)
            for polynomial in (location, spread):
                statistics[y] += factor * (m @ polynomial[rows_of_class] / m.sum()) ** 2
    return statistics


def _standardised(x: Floats, shares: Floats) -> Floats:
    """Return columns rescaled to weighted mean 0 and variance 1; 0 for a column that is constant."""
    x = x - shares @ x
    deviation = np.sqrt(shares @ (x * x))
    exists = deviation > _LEAST_DEVIATION
    return np.where(exists, x / np.where(exists, deviation, 1.0), 0.0)

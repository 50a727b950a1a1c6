"""Kernel densities of given bandwidths, in plain loops."""

import math
from fractions import Fraction

from numpy.typing import ArrayLike

from paper_oracle import floats, log_density, rows_and_weights


def kernel_log_density(
    X: ArrayLike, x: ArrayLike, h: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Kernel log density with given bandwidths; a variable whose h_j is infinite takes no part."""
    used = [j for j, h_j in enumerate(floats(h)) if h_j < math.inf]
    h, x = [floats(h)[j] for j in used], [floats(x)[j] for j in used]
    X, m = rows_and_weights(X, weights)
    if not X:
        return -math.inf
    squares = [[(Fraction(x_j) - Fraction(row[j])) ** 2 for x_j, j in zip(x, used, strict=True)] for row in X]
    return log_density(squares, h, m)

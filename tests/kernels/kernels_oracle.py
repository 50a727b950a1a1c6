"""Kernel densities of given bandwidths, and Bayes' rule, in plain loops."""

import math
from fractions import Fraction

from numpy.typing import ArrayLike

from paper_oracle import floats, log_density, log_sum_exp, rows_and_weights


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


def posterior(log_densities: ArrayLike, priors: ArrayLike, *, lapse: float = 0.0) -> list[float]:
    """(1 - lapse) pi_y p_y / sum + lapse pi_y; without any density, the prior."""
    priors = floats(priors)
    log_priors = [math.log(pi) if pi > 0 else -math.inf for pi in priors]
    joint = [log_p + log_pi for log_p, log_pi in zip(floats(log_densities), log_priors, strict=True)]
    evidence = joint if max(joint) > -math.inf else log_priors
    log_total = log_sum_exp(evidence)
    return [
        (1 - lapse) * math.exp(value - log_total) + lapse * pi
        for value, pi in zip(evidence, priors, strict=True)
    ]

r"""Power laws of learning curves: posterior distribution of a mean loss with more rows.

The model of a mean loss D(t) (error rate or log loss) with t times the current number of rows is

.. math::

    D(t) = D \, (1 - u + u \, t^{-c}), \qquad D \ge 0, \; 0 \le u \le 1, \; c > 0:

With more rows, the loss falls from the current loss D = D(1) towards (1 - u) D. The posterior of (D, u, c) is
tabulated on a grid. D is estimated from leave-one-out predictions with all rows. The parameters u and c are
estimated from the rises :math:`\bar d_k`: a rise is the increase of the mean loss of the same points if they
are predicted from a fraction :math:`t_k < 1` of the rows:

.. math::

    \bar d_k \sim N\bigl(D u (t_k^{-c} - 1), \; \Sigma\bigr).

The prior of c is log-normal. The prior density of u is proportional to :math:`u^2`, because most of the error
of a small table can be reduced. A power law does not hold exactly, so a diagonal matrix is added to
:math:`\Sigma`; its deviations are proportional to the rises, and larger for fewer rows. The constants were
not tuned on the tables of ``python -m benchmarks sample_size``, which measures the errors of the curves.

If the variables are independent of the classes, the best possible predictions are the class shares. The
surplus g is the current loss minus the loss of these predictions, and more rows reduce the loss by at most g,
so :math:`u D \le g`. The posterior is a mixture of this case and of the case without this limit. The
probability of independence (`Chance`) compares two models of the surplus of the log loss: its expected value
is 0, or is uniformly distributed between 0 and minus the entropy of the class shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, expit, gammaincinv, log_ndtr

from corral.array_types import Floats, Integers
from corral.data.weights import design_effect, sums_by_group

# Probability of the intervals.
INTERVAL = 0.9

# Prior of the rate c: median of c, and standard deviation of log c.
_RATE = 0.8
_RATE_DEVIATION = 0.3

# Power of u in the prior density of u.
_SHARE_POWER = 2.0

# Standard deviation of a rise from the power law, relative to the rise, with half of the rows; twice as large
# with a quarter of the rows.
_MISFIT = 0.15

# Leave-one-out predictions are not independent: n predictions have the information of WORTH * n independent
# ones.
WORTH = 0.5

# Prior numbers of errors and of correct labels: Jeffreys' prior multiplied by WORTH. The prior keeps the
# estimated error rate above 0 if there are no errors.
JEFFREYS = (0.5 * WORTH, 0.5 * WORTH)

# Prior probability that the variables are independent of the classes.
_INDEPENDENT = 0.05

# Sizes of the grid of (D, u, c).
_N_LOSSES, _N_SHARES, _N_RATES = 41, 41, 31


class Chance(NamedTuple):
    """Probability that variables and classes are independent, and the surplus g of the loss in that case."""

    probability: float
    surplus: float


class Estimate(NamedTuple):
    """Posterior median `value`, and 90% interval from `low` to `high`."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    @property
    def complement(self) -> Estimate:
        """One minus the estimate: converts an error rate to an accuracy."""
        return Estimate(1.0 - self.value, 1.0 - self.high, 1.0 - self.low)


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """Posterior of a learning curve: D, u and c at the points of a grid, and probabilities (n_points,)."""

    current: Floats  # D
    share: Floats  # u
    rate: Floats  # c
    weights: Floats  # posterior probabilities

    @classmethod
    def fit(
        cls, current: Floats, times: Floats, rises: Floats, covariance: Floats, chance: Chance
    ) -> PowerLaw:
        """Tabulate the posterior.

        `current` (n_losses,) are equally probable values of the current loss. `rises` (n_sizes,), with their
        covariance (n_sizes, n_sizes), are increases of the mean loss with fractions `times` of the rows.
        """
        limits = ((1.0 - chance.probability, math.inf), (chance.probability, max(chance.surplus, 0.0)))
        parts = [
            _tabulate(current, times, rises, covariance, most) * [[1.0], [1.0], [1.0], [probability]]
            for probability, most in limits
            if probability > 0.0
        ]
        return cls(*np.concatenate(parts, axis=1))

    def loss(self, times: float) -> Estimate:
        """Estimate the loss with `times` as many rows as now; `math.inf` for the limit."""
        return self._estimate(self.current * (1.0 - self.share + self.share * times**-self.rate))

    def times_needed(self, loss: float) -> tuple[Estimate, float]:
        """Estimate the multiple of the current rows at which the loss falls to `loss`.

        The second result is the probability that some number of rows is enough. The multiple is at most 1 if
        the current rows are enough, and infinite if no number is.
        """
        with np.errstate(over="ignore"):
            excess = loss / np.maximum(self.current, 1e-300) - (1.0 - self.share)
            power = np.maximum(excess, 1e-300) / np.maximum(self.share, 1e-300)
            times = np.where(excess > 0.0, np.maximum(power, 1e-300) ** (-1.0 / self.rate), np.inf)
        return self._estimate(times), float(self.weights[np.isfinite(times)].sum())

    def _estimate(self, values: Floats) -> Estimate:
        """Compute the posterior median and the interval of values (n_points,) on the grid."""
        order = np.argsort(values)
        middle = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
        quantiles = np.searchsorted(middle, [0.5, 0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL])
        value, low, high = values[order[np.minimum(quantiles, order.size - 1)]].tolist()
        return Estimate(value, low, high)


def _tabulate(losses: Floats, times: Floats, rises: Floats, covariance: Floats, most: float) -> Floats:
    """Return D, u, c and posterior probabilities (4, n_points) if the loss falls by at most `most`."""
    rates = _RATE * np.exp(_RATE_DEVIATION * np.linspace(-3.0, 3.0, _N_RATES))
    shares = (np.arange(_N_SHARES) + 0.5) / _N_SHARES
    current, share, rate = (axis.ravel() for axis in np.meshgrid(losses, shares, rates, indexing="ij"))
    log_weights = -0.5 * (np.log(rate / _RATE) / _RATE_DEVIATION) ** 2 + _SHARE_POWER * np.log(share)
    share = share * np.minimum(most / np.maximum(current, 1e-300), 1.0)
    if times.size:
        expected = (current * share)[:, np.newaxis] * (times ** -rate[:, np.newaxis] - 1.0)
        misfit = _MISFIT * np.maximum(rises, 0.0) * -np.log2(times)
        total = covariance + np.diag(misfit**2)
        residual = np.linalg.solve(np.linalg.cholesky(total), (expected - rises).T)
        log_weights = log_weights - 0.5 * (residual**2).sum(axis=0)
    # The rises must not change the distribution of D: its values stay equally probable.
    by_loss = log_weights.reshape(len(losses), -1)
    weights = np.exp(by_loss - by_loss.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True) * len(losses)
    return np.stack([current, share, rate, weights.ravel()])


def independence_probability(surplus: float, error: float, entropy: float) -> float:
    """Compute the posterior probability that the variables are independent of the classes.

    `surplus` is the log loss minus `entropy`, the entropy of the class shares; `error` is its standard error.
    The entropy is the log loss if the class shares are predicted for all rows.
    """
    error = max(error, 1e-9)
    if entropy <= 0.0:  # one class
        return 1.0
    independent = -0.5 * (surplus / error) ** 2 - math.log(error * math.sqrt(2.0 * math.pi))
    # Mean normal density of the surplus over expected values between minus the entropy and 0.
    near, far = log_ndtr(-surplus / error), log_ndtr(-(surplus + entropy) / error)
    dependent = float(near + np.log(-np.expm1(far - near))) - math.log(entropy)
    return float(expit(independent - dependent + math.log(_INDEPENDENT / (1.0 - _INDEPENDENT))))


def fit_share(
    losses: Floats,
    times: Floats,
    weights: Floats,
    group_ids: Integers,
    chance: Chance,
    prior: tuple[float, float] = JEFFREYS,
) -> PowerLaw:
    """Fit a power law to losses between 0 and 1, such as errors.

    Parameters
    ----------
    losses : (n_sizes, n_points) losses of points that are predicted from fractions of the rows.
    times : (n_sizes,) fractions of the rows; the first is 1.
    weights : (n_points,) weights with sum 1.
    group_ids : (n_points,) group ids; only points of different groups are independent.
    chance : probability that the variables are independent of the classes, and the surplus in that case.
    prior : prior numbers of points with loss 1 and with loss 0.
    """
    share = float(np.clip(losses[0] @ weights, 0.0, 1.0))
    effect = design_effect(losses[0] - share, weights, group_ids)
    count = WORTH / float(weights @ weights) / effect
    # The part of the prior that exceeds Jeffreys' prior is reduced like `count`. Otherwise it would outweigh
    # the data if a few groups have many points.
    wrong, right = (least + (n - least) / effect for n, least in zip(prior, JEFFREYS, strict=True))
    current = betaincinv(share * count + wrong, (1.0 - share) * count + right, _probabilities())
    return PowerLaw.fit(current, times[1:], *_rises(losses, weights, group_ids), chance)


def fit_mean(losses: Floats, times: Floats, weights: Floats, group_ids: Integers, chance: Chance) -> PowerLaw:
    """Fit a power law to losses without an upper bound; `fit_share` explains the arguments."""
    mean = max(float(losses[0] @ weights), 1e-12)
    error = error_of_mean(losses[0] - mean, weights, group_ids)
    shape = (mean / max(error, 1e-3 * mean)) ** 2
    current = gammaincinv(shape, _probabilities()) * (mean / shape)
    return PowerLaw.fit(current, times[1:], *_rises(losses, weights, group_ids), chance)


def error_of_mean(residuals: Floats, weights: Floats, group_ids: Integers) -> float:
    """Compute the standard error of a weighted mean from the residuals (n_points,) of the values."""
    return float(np.sqrt((sums_by_group(weights * residuals, group_ids) ** 2).sum() / WORTH))


def _rises(losses: Floats, weights: Floats, group_ids: Integers) -> tuple[Floats, Floats]:
    """Compute the increases of the mean loss with fewer rows (n_sizes - 1,), and their covariance matrix."""
    paired = losses[1:] - losses[0]
    rises = paired @ weights
    centered = sums_by_group((paired - rises[:, np.newaxis]) * weights, group_ids)
    # If no loss changes, the covariance must still be positive, because the loss of a new group may change.
    least = float((sums_by_group(weights, group_ids) ** 2).sum()) ** 2
    return rises, centered @ centered.T / WORTH + least * np.eye(len(rises))


def _probabilities() -> Floats:
    """Return the centers of _N_LOSSES equal intervals of (0, 1)."""
    return (np.arange(_N_LOSSES) + 0.5) / _N_LOSSES

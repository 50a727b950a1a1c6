r"""Learning curves as power laws: how a loss falls with more rows, with the uncertainty.

The model of a mean loss (a share of errors, or the log loss) at t times the current number of rows is

.. math::

    D(t) = D \, (1 - u + u \, t^{-c}), \qquad D \ge 0, \; 0 \le u \le 1, \; c > 0:

it falls from D, the current loss, towards (1 - u) D, and never below 0. The posterior of (D, u, c) is
tabulated on a grid. D is estimated from all rows, each predicted by the others; u and c are estimated from
the rises of the loss of the same points when they are predicted by fewer rows, :math:`t_k < 1`:

.. math::

    \bar d_k \sim N\bigl(D u (t_k^{-c} - 1), \; \Sigma\bigr).

The prior of c is log-normal. The prior density of u is proportional to its square: most of the error of a
small table can be reduced. A power law does not hold exactly, so :math:`\Sigma` also has a part in proportion
to the rises, which is larger for fewer rows. The constants were not chosen on the tables of
``python -m benchmarks sample_size``, which measures the errors of the curves.

If the variables are independent of the classes, more rows do not help: the loss can only fall by its surplus
g over the loss of guessing by the classes' shares, so u D is at most g. The posterior mixes both cases; a
`Chance` has the probability of independence. It compares a surplus of 0 with a surplus that is uniform
between 0 and minus the entropy of the shares.
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

# Median and deviation of the logarithm of the rate c.
_RATE = 0.8
_RATE_DEVIATION = 0.3

# The power of u in its prior.
_SHARE_POWER = 2.0

# Deviation of a rise from its power law at half of the rows, as a share of it; twice as much at a quarter.
_MISFIT = 0.15

# Predictions of rows by each other are not independent: n of them count as this share of n.
WORTH = 0.5

# Prior numbers of errors and right labels: Jeffreys' prior, with the same factor. It keeps the estimated
# error of few rows without errors above 0.
JEFFREYS = (0.5 * WORTH, 0.5 * WORTH)

# Prior probability that the variables are independent of the classes.
_INDEPENDENT = 0.05

# Points of the grid.
_N_LOSSES, _N_SHARES, _N_RATES = 41, 41, 31


class Chance(NamedTuple):
    """Probability that variables and classes are independent, and the surplus of the loss over guessing."""

    probability: float
    surplus: float


class Estimate(NamedTuple):
    """The posterior median of a number, with its 90 % interval from `low` to `high`."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    @property
    def complement(self) -> Estimate:
        """One minus the number: the share of right labels, from the share of errors."""
        return Estimate(1.0 - self.value, 1.0 - self.high, 1.0 - self.low)


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """A learning curve: D, u and c on a grid (n_points,), and their posterior probabilities `weights`."""

    current: Floats
    share: Floats
    rate: Floats
    weights: Floats

    @classmethod
    def fit(
        cls, current: Floats, times: Floats, rises: Floats, covariance: Floats, chance: Chance
    ) -> PowerLaw:
        """Tabulate the posterior, given equally probable values of the current loss.

        `rises` (n_sizes,) are the increases of the mean loss at fractions `times` of the rows.
        """
        limits = ((1.0 - chance.probability, math.inf), (chance.probability, max(chance.surplus, 0.0)))
        parts = [
            _tabulate(current, times, rises, covariance, most) * [[1.0], [1.0], [1.0], [probability]]
            for probability, most in limits
            if probability > 0.0
        ]
        return cls(*np.concatenate(parts, axis=1))

    def loss(self, times: float) -> Estimate:
        """Estimate the loss at a multiple of the current rows; `math.inf` stands for the limit."""
        return self._estimate(self.current * (1.0 - self.share + self.share * times**-self.rate))

    def times_needed(self, loss: float) -> tuple[Estimate, float]:
        """Estimate the multiple of the rows that a loss needs, and the probability that any number suffices.

        It is below 1 if the current rows suffice, and infinite if no number does.
        """
        with np.errstate(over="ignore"):
            excess = loss / np.maximum(self.current, 1e-300) - (1.0 - self.share)
            power = np.maximum(excess, 1e-300) / np.maximum(self.share, 1e-300)
            times = np.where(excess > 0.0, np.maximum(power, 1e-300) ** (-1.0 / self.rate), np.inf)
        return self._estimate(times), float(self.weights[np.isfinite(times)].sum())

    def _estimate(self, values: Floats) -> Estimate:
        """Median of the posterior, and its interval."""
        order = np.argsort(values)
        middle = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
        quantiles = np.searchsorted(middle, [0.5, 0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL])
        value, low, high = values[order[np.minimum(quantiles, order.size - 1)]].tolist()
        return Estimate(value, low, high)


def _tabulate(losses: Floats, times: Floats, rises: Floats, covariance: Floats, most: float) -> Floats:
    """D, u, c and their posterior probabilities (4, n_points), for laws that fall by at most `most`."""
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
    # The rises do not change the distribution of the current loss: its values stay equally probable.
    by_loss = log_weights.reshape(len(losses), -1)
    weights = np.exp(by_loss - by_loss.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True) * len(losses)
    return np.stack([current, share, rate, weights.ravel()])


def independence_probability(surplus: float, error: float, entropy: float) -> float:
    """Probability that the variables are independent of the classes.

    `surplus`, with its standard error, is the log loss minus the `entropy` of the classes' shares, which is
    the log loss of guessing by the shares.
    """
    error = max(error, 1e-9)
    if entropy <= 0.0:  # one class
        return 1.0
    independent = -0.5 * (surplus / error) ** 2 - math.log(error * math.sqrt(2.0 * math.pi))
    # The normal probability of surpluses between minus the entropy and 0, over the entropy.
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
    losses : (n_sizes, n_points) losses with all rows first, then with fractions of them.
    times : (n_sizes,) the fractions.
    weights : (n_points,) weights that sum to 1.
    group_ids : (n_points,) numbers of groups; only points of different groups are independent.
    chance : whether the variables are independent of the classes.
    prior : prior numbers of losses of 1 and of 0.
    """
    share = float(np.clip(losses[0] @ weights, 0.0, 1.0))
    effect = design_effect(losses[0] - share, weights, group_ids)
    count = WORTH / float(weights @ weights) / effect
    # The excess over Jeffreys' prior must not outweigh few groups that have many points.
    wrong, right = (least + (n - least) / effect for n, least in zip(prior, JEFFREYS, strict=True))
    current = betaincinv(share * count + wrong, (1.0 - share) * count + right, _probabilities())
    return PowerLaw.fit(current, times[1:], *_rises(losses, weights, group_ids), chance)


def fit_mean(losses: Floats, times: Floats, weights: Floats, group_ids: Integers, chance: Chance) -> PowerLaw:
    """Fit a power law to losses without an upper bound; for the parameters see `fit_share`."""
    mean = max(float(losses[0] @ weights), 1e-12)
    error = error_of_mean(losses[0] - mean, weights, group_ids)
    shape = (mean / max(error, 1e-3 * mean)) ** 2
    current = gammaincinv(shape, _probabilities()) * (mean / shape)
    return PowerLaw.fit(current, times[1:], *_rises(losses, weights, group_ids), chance)


def error_of_mean(residuals: Floats, weights: Floats, group_ids: Integers) -> float:
    """Standard error of a weighted mean, from the residuals (n_points,) of the values."""
    return float(np.sqrt((sums_by_group(weights * residuals, group_ids) ** 2).sum() / WORTH))


def _rises(losses: Floats, weights: Floats, group_ids: Integers) -> tuple[Floats, Floats]:
    """Increases of the mean loss with fewer rows, and their covariance."""
    paired = losses[1:] - losses[0]
    rises = paired @ weights
    centered = sums_by_group((paired - rises[:, np.newaxis]) * weights, group_ids)
    # If no point changes its loss, a new group still might: the covariance must not be 0.
    least = float((sums_by_group(weights, group_ids) ** 2).sum()) ** 2
    return rises, centered @ centered.T / WORTH + least * np.eye(len(rises))


def _probabilities() -> Floats:
    """Middles of equally probable parts of (0, 1)."""
    return (np.arange(_N_LOSSES) + 0.5) / _N_LOSSES

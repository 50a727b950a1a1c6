r"""Learning curves as power laws: how a loss falls with more rows, and how well that is known.

A mean loss (the share of errors, of one class perhaps, or the log loss) at t times as many rows as there are
is taken to be

.. math::

    D(t) = D \, (1 - u + u \, t^{-c}), \qquad D \ge 0, \; 0 \le u \le 1, \; c > 0:

it falls from D, the loss at the rows there are, towards (1 - u) D, and never below 0. The posterior of
(D, u, c) is tabulated on a grid. D is known from all rows, each predicted by the others; u and c are known
from how much the loss of the same points rises where they are predicted by fewer rows, :math:`t_k < 1`:

.. math::

    \bar d_k \sim N\bigl(D u (t_k^{-c} - 1), \; \Sigma\bigr).

The prior of c is a log-normal one, and that of u has a density in proportion to its square: most of the error
of a small table can be reduced. A power law does not hold exactly, so :math:`\Sigma` also has a part in
proportion to the rises, the larger the fewer rows there are. The constants were chosen on other tables than
those on which ``python -m benchmarks sample_size`` measures how far to trust them.

Where the rows say nothing of the classes, no number of them will: all that can be gained is the surplus g of
the loss over that of guessing by the classes' shares, and u D is at most g. With the probability that this is
so (a `Chance`) the law is such a one, else it is one as above. The probability is that of a surplus of 0
against one anywhere between 0 and minus the entropy of the shares.
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
LEVEL = 0.9

# Median and deviation of the logarithm of the rate c.
_RATE = 0.8
_RATE_DEVIATION = 0.3

# The power of u in its prior.
_SHARE_POWER = 2.0

# Deviation of a rise from its power law at half of the rows, as a share of it; twice as much at a quarter.
_MISFIT = 0.15

# Predictions of rows by each other are not independent: they are worth this share of independent ones.
WORTH = 0.5

# Errors and right labels that count as seen before: Jeffreys' prior, worth as little as rows are. No errors
# in few rows do not promise that there will be none.
JEFFREYS = (0.5 * WORTH, 0.5 * WORTH)

# How often rows say nothing of the classes, before any is seen.
_NOTHING = 0.05

# Points of the grid.
_N_LEVELS, _N_SHARES, _N_RATES = 41, 41, 31


class Chance(NamedTuple):
    """The probability that rows say nothing of the classes, and the gap between their loss and guessing's."""

    probability: float
    gap: float


class Estimate(NamedTuple):
    """A number, the median of what is probable, with its 90 % interval from `low` to `high`."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    @property
    def complement(self) -> Estimate:
        """The share of what is right, from that of what is wrong."""
        return Estimate(1.0 - self.value, 1.0 - self.high, 1.0 - self.low)


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """A learning curve: D, u and c on a grid (n_points,), and their posterior probabilities `weights`."""

    level: Floats
    share: Floats
    rate: Floats
    weights: Floats

    @classmethod
    def fit(
        cls, levels: Floats, times: Floats, rises: Floats, covariance: Floats, chance: Chance
    ) -> PowerLaw:
        """Tabulate the posterior, given equally probable levels.

        The mean loss `rises` (n_sizes,) where rows are predicted by fractions of the rows, `times`.
        """
        limits = ((1.0 - chance.probability, math.inf), (chance.probability, max(chance.gap, 0.0)))
        parts = [
            _tabulate(levels, times, rises, covariance, most) * [[1.0], [1.0], [1.0], [probability]]
            for probability, most in limits
            if probability > 0.0
        ]
        return cls(*np.concatenate(parts, axis=1))

    def loss(self, times: float) -> Estimate:
        """Estimate the loss at so many times the rows there are; `math.inf` asks for the limit."""
        return self._estimate(self.level * (1.0 - self.share + self.share * times**-self.rate))

    def times_needed(self, loss: float) -> tuple[Estimate, float]:
        """Estimate how many times the rows are needed for a loss, and the probability that any suffice.

        Less than 1 where the rows there are suffice already; infinite where no number does.
        """
        with np.errstate(over="ignore"):
            wanted = (loss / np.maximum(self.level, 1e-300) - (1.0 - self.share)) / np.maximum(
                self.share, 1e-300
            )
            times = np.where(wanted > 0.0, np.maximum(wanted, 1e-300) ** (-1.0 / self.rate), np.inf)
        return self._estimate(times), float(self.weights[np.isfinite(times)].sum())

    def _estimate(self, values: Floats) -> Estimate:
        """Median of the posterior, and its interval."""
        order = np.argsort(values)
        middle = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
        at = np.searchsorted(middle, [0.5, 0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL])
        value, low, high = values[order[np.minimum(at, order.size - 1)]].tolist()
        return Estimate(value, low, high)


def _tabulate(levels: Floats, times: Floats, rises: Floats, covariance: Floats, gap: float) -> Floats:
    """D, u, c and their posterior probabilities (4, n_points), of laws that fall by at most `gap`."""
    rates = _RATE * np.exp(_RATE_DEVIATION * np.linspace(-3.0, 3.0, _N_RATES))
    shares = (np.arange(_N_SHARES) + 0.5) / _N_SHARES
    level, share, rate = (axis.ravel() for axis in np.meshgrid(levels, shares, rates, indexing="ij"))
    log_weights = -0.5 * (np.log(rate / _RATE) / _RATE_DEVIATION) ** 2 + _SHARE_POWER * np.log(share)
    share = share * np.minimum(gap / np.maximum(level, 1e-300), 1.0)
    if times.size:
        expected = (level * share)[:, np.newaxis] * (times ** -rate[:, np.newaxis] - 1.0)
        misfit = _MISFIT * np.maximum(rises, 0.0) * -np.log2(times)
        whole = covariance + np.outer(misfit, misfit) * np.eye(times.size)
        residual = np.linalg.solve(np.linalg.cholesky(whole), (expected - rises).T)
        log_weights = log_weights - 0.5 * (residual**2).sum(axis=0)
    # The rises have no say in the level: its values stay equally probable.
    by_level = log_weights.reshape(len(levels), -1)
    weights = np.exp(by_level - by_level.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True) * len(levels)
    return np.stack([level, share, rate, weights.ravel()])


def probability_of_nothing(surplus: float, error: float, entropy: float) -> float:
    """Probability that rows say nothing of the classes.

    The `surplus`, which has a standard error, is that of their log loss over the `entropy` of the classes'
    shares, the log loss of guessing by them.
    """
    error = max(error, 1e-9)
    if entropy <= 0.0:  # one class: there is nothing to say
        return 1.0
    nothing = -0.5 * (surplus / error) ** 2 - math.log(error * math.sqrt(2.0 * math.pi))
    # The normal probability of surpluses between minus the entropy and 0, over the entropy.
    near, far = log_ndtr(-surplus / error), log_ndtr(-(surplus + entropy) / error)
    something = float(near + np.log(-np.expm1(far - near))) - math.log(entropy)
    return float(expit(nothing - something + math.log(_NOTHING / (1.0 - _NOTHING))))


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
    losses : (n_sizes, n_points) with all rows first, then with fractions of them, `times` (n_sizes,).
    weights : (n_points,) that sum to 1.
    units : (n_points,) numbers of units: points of one are alike, and only units are independent.
    chance : whether the rows say anything of the classes.
    prior : losses of 1 and of 0 that count as seen before.
    """
    share = float(np.clip(losses[0] @ weights, 0.0, 1.0))
    effect = design_effect(losses[0] - share, weights, group_ids)
    count = WORTH / float(weights @ weights) / effect
    # What goes beyond Jeffreys' prior must not outweigh few units that have many points.
    wrong, right = (least + (seen - least) / effect for seen, least in zip(prior, JEFFREYS, strict=True))
    levels = betaincinv(share * count + wrong, (1.0 - share) * count + right, _probabilities())
    return PowerLaw.fit(levels, times[1:], *_rises(losses, weights, group_ids), chance)


def fit_mean(losses: Floats, times: Floats, weights: Floats, group_ids: Integers, chance: Chance) -> PowerLaw:
    """Fit a power law to losses without an upper bound; parameters as of `fit_share`, but for the prior."""
    mean = max(float(losses[0] @ weights), 1e-12)
    error = error_of_mean(losses[0] - mean, weights, group_ids)
    shape = (mean / max(error, 1e-3 * mean)) ** 2
    levels = gammaincinv(shape, _probabilities()) * (mean / shape)
    return PowerLaw.fit(levels, times[1:], *_rises(losses, weights, group_ids), chance)


def error_of_mean(residuals: Floats, weights: Floats, group_ids: Integers) -> float:
    """Standard error of a weighted mean, from the residuals (n_points,) of what it is the mean of."""
    return float(np.sqrt((sums_by_group(weights * residuals, group_ids) ** 2).sum() / WORTH))


def _rises(losses: Floats, weights: Floats, group_ids: Integers) -> tuple[Floats, Floats]:
    """By how much mean losses rise with fewer rows, and the covariance of these numbers."""
    paired = losses[1:] - losses[0]
    rises = paired @ weights
    centred = sums_by_group((paired - rises[:, np.newaxis]) * weights, group_ids)
    # Where no point changes its loss, the next unit might.
    least = float((sums_by_group(weights, group_ids) ** 2).sum()) ** 2
    return rises, centred @ centred.T / WORTH + least * np.eye(len(rises))


def _probabilities() -> Floats:
    """Probabilities of the middles of equally probable parts."""
    return (np.arange(_N_LEVELS) + 0.5) / _N_LEVELS

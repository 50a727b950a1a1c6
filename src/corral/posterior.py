"""Joint and posterior log probabilities of classes. No other module computes them."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, logsumexp

from corral.array_types import Floats, Integers

# Log odds of a class if the prior of every other class is 0.
_LARGEST_ODDS = 1e100

# If two log ratios differ by less than this, a slope replaces their quotient, which would lose digits.
_CLOSE = 1e-4

# The log density of a class without rows is set to the lowest finite log density minus this number.
_UNKNOWN = 1000.0


def log_posterior(joint: Floats, axis: int = 1) -> Floats:
    """Return log probabilities from log scores of classes, which lie along the axis.

    At least one score along the axis must be finite. `scipy.special.log_softmax` has the same result but is
    slower for few classes.
    """
    shifted = joint - joint.max(axis=axis, keepdims=True)
    log_proba: Floats = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return log_proba


def finite_log_densities(log_density: Floats) -> Floats:
    """Replace -inf, the log density of a class without rows, by a finite number below the other classes."""
    unknown = np.isneginf(log_density)
    if not unknown.any():
        return log_density
    lowest = np.where(unknown, np.inf, log_density).min(axis=-1, keepdims=True)
    return np.where(unknown, np.where(np.isfinite(lowest), lowest, 0.0) - _UNKNOWN, log_density)


def log_of_prior(prior: Floats) -> Floats:
    """Return logarithms of priors; -inf for a prior of 0."""
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(prior)
    return logarithms


def joint_log_probability(log_density: Floats, prior: Floats) -> Floats:
    """Return the logarithm of prior times density (n_samples, n_classes)."""
    log_prior = log_of_prior(prior)
    joint: Floats = log_density + log_prior
    # If every class with a positive prior has density 0, the posterior is the prior.
    return np.where(np.isneginf(joint).all(axis=1, keepdims=True), log_prior, joint)


def log_probability(joint: Floats, prior: Floats, prior_mixing: float) -> Floats:
    """Return the logarithm of the posterior mixed with the prior.

    The mixture is (1 - prior_mixing) times the posterior plus prior_mixing times the prior. The posterior is
    normalized first: log densities of outliers are so large that prior_mixing would be lost by rounding.
    """
    log_proba = log_posterior(joint)
    return (
        log_proba if prior_mixing == 0.0 else _mixed_with_prior(log_proba, log_of_prior(prior), prior_mixing)
    )


def _mixed_with_prior(log_proba: Floats, log_prior: Floats, prior_mixing: float) -> Floats:
    mixed: Floats = np.logaddexp(np.log1p(-prior_mixing) + log_proba, np.log(prior_mixing) + log_prior)
    return mixed


def mixing_factors(
    log_density: Floats, prior: Floats, prior_mixing: float, label: Integers, rival: Integers
) -> Floats:
    """Return the factors (n_samples,) by which prior mixing shrinks log odds towards the prior log odds.

    The log odds are the log odds of class `label` against class `rival`, both (n_samples,) class codes. Let r
    be the ratio of a class density to the density of all classes. Without mixing, the log odds exceed the
    prior log odds by log r_label - log r_rival. With mixing, the excess is g(log r_label) - g(log r_rival),
    where g(t) = log((1 - prior_mixing) e^t + prior_mixing). The factor is the second excess divided by the
    first. It is a mean slope of g, between 0 and 1.
    """
    if prior_mixing == 0.0:
        return np.ones(label.size)
    samples = np.arange(label.size)
    with np.errstate(divide="ignore", invalid="ignore"):  # a prior may be 0, and prior_mixing may be 1
        log_ratio = log_posterior(joint_log_probability(log_density, prior)) - log_of_prior(prior)
        one, other = log_ratio[samples, label], log_ratio[samples, rival]
        mixed = [np.logaddexp(np.log1p(-prior_mixing) + t, np.log(prior_mixing)) for t in (one, other)]
        slope = expit(0.5 * (one + other) + logit(1.0 - prior_mixing))
        quotient = (mixed[0] - mixed[1]) / (one - other)
    factors: Floats = np.where(np.abs(one - other) < _CLOSE, slope, quotient)
    return factors


def odds_of_classes(joint: Floats) -> Floats:
    """Return log odds (n_samples, n_classes) of each class against all other classes.

    `joint` (n_samples, n_classes) has the logarithms of prior times density.
    """
    log_proba = log_posterior(joint)
    rows, best = np.arange(len(joint)), joint.argmax(axis=1)
    others = joint.copy()
    others[rows, best] = -np.inf
    log_odds = log_proba - np.log1p(-np.exp(np.minimum(log_proba, np.log(0.5))))
    # If the probability of the best class rounds to 1, its odds must be computed from the other classes.
    log_odds[rows, best] = joint[rows, best] - logsumexp(others, axis=1)
    return np.clip(log_odds, -_LARGEST_ODDS, _LARGEST_ODDS)

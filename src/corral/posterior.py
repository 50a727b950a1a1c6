"""Joint and posterior log probabilities of classes: the only place where they are computed."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, logsumexp

from corral.array_types import Floats, Integers

# Log odds of a class if all others are ruled out.
_LARGEST_ODDS = 1e100

# Log odds that differ by less have the slope between them instead of a quotient, which would lose digits.
_CLOSE = 1e-4

# How far below the others the log density of a class without rows is put.
_UNKNOWN = 1000.0


def log_posterior(joint: Floats, axis: int = 1) -> Floats:
    """Log probabilities from log scores; classes lie along the axis, and one score of each is finite.

    As `scipy.special.log_softmax`, which takes longer for so few numbers than they take to compute.
    """
    shifted = joint - joint.max(axis=axis, keepdims=True)
    log_proba: Floats = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return log_proba


def finite_log_densities(log_density: Floats) -> Floats:
    """Log densities with a low number in place of -inf, which classes without rows have."""
    unknown = np.isneginf(log_density)
    if not unknown.any():
        return log_density
    lowest = np.where(unknown, np.inf, log_density).min(axis=-1, keepdims=True)
    return np.where(unknown, np.where(np.isfinite(lowest), lowest, 0.0) - _UNKNOWN, log_density)


def log_of_prior(prior: Floats) -> Floats:
    """Logarithms of priors, -inf for classes that are ruled out."""
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(prior)
    return logarithms


def joint_log_probability(log_density: Floats, prior: Floats) -> Floats:
    """Logarithm of prior times density."""
    log_prior = log_of_prior(prior)
    joint: Floats = log_density + log_prior
    # If no class with rows has a positive prior, the posterior is the prior.
    return np.where(np.isneginf(joint).all(axis=1, keepdims=True), log_prior, joint)


def log_probability(joint: Floats, prior: Floats, prior_mixing: float) -> Floats:
    """Logarithm of the posterior, a share `prior_mixing` of which is given to the prior instead.

    Not before it sums to 1: far away, logarithms of densities are so large that the share would vanish in
    their last digit.
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
    """How far prior mixing shrinks the log odds (n_samples,) of label and rival towards the prior odds.

    Let r be the ratio of a class density to the density of all classes. Without mixing, the log odds exceed
    the prior log odds by log r_label - log r_rival. With mixing they exceed them by g(log r_label) - g(log
    r_rival), where g(t) = log((1 - prior_mixing) e^t + prior_mixing). The factor is the quotient of the two:
    a mean slope of g, between 0 and 1.
    """
    if prior_mixing == 0.0:
        return np.ones(label.size)
    samples = np.arange(label.size)
    with np.errstate(divide="ignore", invalid="ignore"):  # a prior may be 0, and the mixing 1
        log_ratio = log_posterior(joint_log_probability(log_density, prior)) - log_of_prior(prior)
        one, other = log_ratio[samples, label], log_ratio[samples, rival]
        mixed = [np.logaddexp(np.log1p(-prior_mixing) + t, np.log(prior_mixing)) for t in (one, other)]
        slope = expit(0.5 * (one + other) + logit(1.0 - prior_mixing))
        quotient = (mixed[0] - mixed[1]) / (one - other)
    factors: Floats = np.where(np.abs(one - other) < _CLOSE, slope, quotient)
    return factors


def odds_of_classes(joint: Floats) -> Floats:
    """Log odds (n_samples, n_classes) of each class against all others, from joint log probabilities."""
    log_proba = log_posterior(joint)
    rows, best = np.arange(len(joint)), joint.argmax(axis=1)
    others = joint.copy()
    others[rows, best] = -np.inf
    log_odds = log_proba - np.log1p(-np.exp(np.minimum(log_proba, np.log(0.5))))
    # Where a class is nearly certain, its probability does not show how small the other ones are.
    log_odds[rows, best] = joint[rows, best] - logsumexp(others, axis=1)
    return np.clip(log_odds, -_LARGEST_ODDS, _LARGEST_ODDS)

r"""Weights of members in a pool, and scores by points that took no part in fitting them.

The prior of :math:`\log w_m` has its center at :math:`\log (s_m / T_m)`, where :math:`T_m` is the temperature
at which the member is calibrated on its own, and the shares :math:`s_m`, which sum to 1, are nearly equal
unless its log loss then is much larger than that of the best. Members whose share is small are dropped, and
the weights of the others are fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import chdtr

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.pool.calibration import fit_log_weights
from corral.pool.cross_fitting import TriedMember
from corral.pool.fold_plan import FoldPlan
from corral.pool.model import PoolScores
from corral.posterior import log_of_prior, log_probability

# Standard deviation of the logarithm of a weight around its prior. A member's share is expected to be exp(-k)
# times that of the best if its log loss is larger by k times so much, up to a largest k; and the least share.
_WEIGHT_DEVIATION = 0.7
_LARGER_LOSS = 0.1
_FURTHEST_BEHIND = 4.0
_LEAST_SHARE = 0.02

# Classes are as alike in size by chance in at most so large a share of tables whose classes are equally
# frequent.
_MORE_EVEN = 0.05

# Members that are kept at most.
_MOST_MEMBERS = 6


def weigh(tried_members: Sequence[TriedMember], plan: FoldPlan) -> Floats:
    """Logarithms of the weights, -inf for members that are dropped."""
    kept = list(range(len(tried_members)))
    while True:
        fitted = fit_weights([tried_members[m] for m in kept], plan)
        log_weights = np.full(len(tried_members), -np.inf)
        log_weights[kept] = fitted
        shares = shares_of(tried_members, log_weights)[kept]
        if shares.min() >= _LEAST_SHARE and len(kept) <= _MOST_MEMBERS:
            return log_weights
        kept = [m for m in kept if m != kept[int(shares.argmin())]]


def fit_weights(tried_members: Sequence[TriedMember], plan: FoldPlan) -> Floats:
    """Logarithms of the weights of members, all of which are kept."""
    log_density = np.array([member.log_density for member in tried_members])
    losses = np.array([member.losses[member.best] for member in tried_members]) @ plan.weights
    log_powers = np.array([member.log_power for member in tried_members])
    return fit_log_weights(log_density, plan, log_powers + log_prior_shares(losses), _WEIGHT_DEVIATION)[0]


def log_prior_shares(losses: Floats) -> Floats:
    """Logarithms of the shares that members with such log losses (n_members,) are expected to have."""
    behind = np.minimum((losses - losses.min()) / _LARGER_LOSS, _FURTHEST_BEHIND)
    log_shares: Floats = -behind - np.log(np.exp(-behind).sum())
    return log_shares


def shares_of(tried_members: Sequence[TriedMember], log_weights: Floats) -> Floats:
    """Shares of the pool, weights being measured by those at which each member is calibrated."""
    log_powers = np.array([member.log_power for member in tried_members])
    shares: Floats = np.exp(log_weights - log_powers)
    shares /= shares.sum()
    return shares


def judge(
    tried_members: Sequence[TriedMember],
    plan: FoldPlan,
    parts: Integers,
    *,
    empirical: bool,
) -> tuple[Floats, Floats]:
    """Judge each part of the rows by what is chosen for the others: bandwidths, weights, perhaps priors.

    Returns log probabilities and weighted sums of log densities, both (n_points, n_classes).
    """
    log_proba, log_density = np.empty((2, *tried_members[0].log_density.shape))
    data = plan.data
    learnt = empirical and not even_classes(data)
    for part in np.unique(parts):
        inside = parts[plan.points] == part
        others = plan.without(inside)
        prior = plan.prior
        if learnt and (parts != part).any():
            left = np.where(parts == part, 0.0, data.all_weights)
            shares = np.bincount(data.codes, left, minlength=prior.size) / left.sum()
            # A class with all its rows in this part keeps a positive prior.
            prior = (1.0 - plan.prior_mixing) * shares + plan.prior_mixing * prior
        refitted = [member.recalibrated(others) for member in tried_members]
        weights = np.exp(weigh(refitted, others))
        log_density[inside] = np.tensordot(
            weights, np.array([member.log_density[inside] for member in refitted]), 1
        )
        score = log_of_prior(prior) + log_density[inside]
        log_proba[inside] = log_probability(score, prior, plan.prior_mixing)
    return log_proba, log_density


def even_classes(data: LabelledRows) -> bool:
    """Whether classes have numbers of rows that are more alike than chance would make them.

    Such numbers were chosen, so that the same priors hold for new rows. Priors from other rows would make the
    class of every row that is left out the rarest one.
    """
    if data.weights is not None:
        return False
    sizes = np.bincount(data.codes, minlength=data.labels.size)
    sizes = sizes[sizes > 0]
    squares = float(((sizes - sizes.mean()) ** 2).sum() / sizes.mean())
    return sizes.size > 1 and bool(chdtr(sizes.size - 1, squares) < _MORE_EVEN)


def score_points(log_proba: Floats, plan: FoldPlan) -> PoolScores:
    """Judge log probabilities (n_points, n_classes) of the points by their classes, weighed as the priors."""
    codes, weights = plan.codes, plan.score_weights
    is_hit = log_proba.argmax(axis=1) == codes
    right = np.where(weights > 0.0, log_proba[np.arange(codes.size), codes], 0.0)
    row_weights = plan.data.all_weights[plan.points]
    totals = np.bincount(codes, row_weights, minlength=plan.prior.size)
    hits = np.bincount(codes, row_weights * is_hit, minlength=plan.prior.size)
    recall = np.divide(hits, totals, out=np.full(totals.size, np.nan), where=totals > 0.0)
    accuracy = min(float(weights @ is_hit), 1.0)  # the weights sum to 1 but for rounding
    return PoolScores(accuracy, -float(weights @ right), recall)


def tabulate(tried_members: Sequence[TriedMember], log_weights: Floats, plan: FoldPlan) -> dict[str, Any]:
    """Tabulate all members that were tried, each on its own at its temperature."""
    scores = []
    for member in tried_members:
        score = plan.log_prior + np.exp(member.log_power) * member.log_density
        scores.append(score_points(log_probability(score, plan.prior, plan.prior_mixing), plan))
    return {
        "member": np.array([member.kind.identifier for member in tried_members], dtype=object),
        "scale": np.array([member.kind.scale for member in tried_members], dtype=object),
        "bandwidth": np.array([member.bandwidth for member in tried_members]),
        "pull": np.array([member.shrinkage for member in tried_members]),
        "temperature": np.exp([-member.log_power for member in tried_members]),
        "accuracy": np.array([score.accuracy for score in scores]),
        "log_loss": np.array([score.log_loss for score in scores]),
        "weight": np.exp(log_weights),
        "share": shares_of(tried_members, log_weights),
    }

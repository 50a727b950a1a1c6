r"""Weights of members in a pool, and scores of points by weights that were fitted without these points.

The prior of :math:`\log w_m` is normal with mean :math:`\log (s_m / T_m)`. Here :math:`T_m` is the
temperature of member m, fitted as if it were the only member, and :math:`s_m` is the expected share of the
member. The expected shares sum to 1. The larger the log loss of a member at its temperature, the smaller is
its expected share (see `log_prior_shares`).

The fitted share of a member is proportional to :math:`w_m T_m`. As long as the smallest share is below a
limit, or there are too many members, the member with the smallest share is dropped and the weights of the
remaining members are fitted again.

A point is a training row that is predicted by members fitted without its fold (see `fold_plan`).
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

# Standard deviation of the prior of the logarithm of a weight.
_WEIGHT_DEVIATION = 0.7

# If the log loss of a member exceeds the smallest log loss by k * _LARGER_LOSS, its expected share is exp(-k)
# times the expected share of the best member, with k at most _FURTHEST_BEHIND.
_LARGER_LOSS = 0.1
_FURTHEST_BEHIND = 4.0

# Smallest share of a member that is kept, and largest number of members that are kept.
_LEAST_SHARE = 0.02
_MOST_MEMBERS = 6

# Significance level of the test that class sizes are more equal than random class sizes would be.
_MORE_EVEN = 0.05


def weigh(tried_members: Sequence[TriedMember], plan: FoldPlan) -> Floats:
    """Fit the weights and drop members with small shares.

    Returns logarithms of the weights (n_members,), -inf for members that are dropped.
    """
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
    """Fit the weights without dropping members; returns their logarithms (n_members,)."""
    log_density = np.array([member.log_density for member in tried_members])
    losses = np.array([member.losses[member.best] for member in tried_members]) @ plan.weights
    log_powers = np.array([member.log_power for member in tried_members])
    return fit_log_weights(log_density, plan, log_powers + log_prior_shares(losses), _WEIGHT_DEVIATION)[0]


def log_prior_shares(losses: Floats) -> Floats:
    """Return the logarithms of the expected shares of members from their log losses, both (n_members,)."""
    behind = np.minimum((losses - losses.min()) / _LARGER_LOSS, _FURTHEST_BEHIND)
    log_shares: Floats = -behind - np.log(np.exp(-behind).sum())
    return log_shares


def shares_of(tried_members: Sequence[TriedMember], log_weights: Floats) -> Floats:
    """Return the shares (n_members,) of members: weights times temperatures, rescaled to sum 1."""
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
    """Predict the points of each part by bandwidths, temperatures and weights chosen without this part.

    Parameters
    ----------
    tried_members : members that the search has fitted.
    plan : the points.
    parts : (n_rows,) index of the part of each row of the plan.
    empirical : whether the prior was estimated from the rows. Then the prior for a part is estimated from the
        rows outside the part, unless classes are of nearly equal size (see `even_classes`).

    Returns
    -------
    log_proba : (n_points, n_classes) log probabilities.
    log_density : (n_points, n_classes) weighted sums of log densities.
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
    """Return whether class sizes are more equal than random sizes would be; False if rows have weights.

    Equal class sizes were chosen by design and are not a sample. If the prior were estimated without a
    left-out row, the class of this row would always be the rarest class.
    """
    if data.weights is not None:
        return False
    sizes = np.bincount(data.codes, minlength=data.labels.size)
    sizes = sizes[sizes > 0]
    squares = float(((sizes - sizes.mean()) ** 2).sum() / sizes.mean())
    return sizes.size > 1 and bool(chdtr(sizes.size - 1, squares) < _MORE_EVEN)


def score_points(log_proba: Floats, plan: FoldPlan) -> PoolScores:
    """Score log probabilities (n_points, n_classes); each class has the total weight of its prior."""
    codes, weights = plan.codes, plan.score_weights
    is_hit = log_proba.argmax(axis=1) == codes
    right = np.where(weights > 0.0, log_proba[np.arange(codes.size), codes], 0.0)
    row_weights = plan.data.all_weights[plan.points]
    totals = np.bincount(codes, row_weights, minlength=plan.prior.size)
    hits = np.bincount(codes, row_weights * is_hit, minlength=plan.prior.size)
    recall = np.divide(hits, totals, out=np.full(totals.size, np.nan), where=totals > 0.0)
    accuracy = min(float(weights @ is_hit), 1.0)  # weights may sum to slightly more than 1 by rounding
    return PoolScores(accuracy, -float(weights @ right), recall)


def tabulate(tried_members: Sequence[TriedMember], log_weights: Floats, plan: FoldPlan) -> dict[str, Any]:
    """Return a table (columns by name) of all members that the search has fitted.

    Accuracy and log loss are the scores of each member alone, at its own temperature.
    """
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

"""The search for a pool: members of all kinds are fitted and weighted on a subsample of the rows.

The members that get enough weight are then fitted to all rows. A point is a row to predict in one division of
the rows into folds (see `fold_plan`). A share is the relative weight of a member (see `weights`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.splits import random_parts
from corral.data.subsample import balanced_subsample, proportional_subsample
from corral.parallel import Computation, on_threads, one_blas_thread, progress
from corral.pool.cross_fitting import TriedMember, attempt, build_member, folds_of
from corral.pool.fold_plan import N_FOLDS, FoldPlan
from corral.pool.members import MEMBER_KINDS, AnyKind, Member, by_shared_fit
from corral.pool.model import CrossFitted, Pool
from corral.pool.scaled_rows import ScaledRows
from corral.pool.weights import judge, score_points, shares_of, tabulate, weigh

# Approximate limits of the number of rows that the search reads, and of the number of rows that it predicts.
SEARCH_ROWS = 20_000
SEARCH_POINTS = 2000

# With few rows, the chosen members depend much on the division into folds. Therefore the rows are divided
# several times, as long as the number of rows times the number of divisions is at most _DIVIDED_ROWS.
_DIVIDED_ROWS = 800
_MOST_DIVISIONS = 12


def fit_pool(
    data: LabelledRows,
    prior: Floats,
    random: np.random.RandomState,
    computation: Computation,
    kinds: Sequence[AnyKind] = MEMBER_KINDS,
    *,
    empirical: bool = False,
    sample: ScaledRows | None = None,
) -> Pool:
    """Search the members of the pool, and fit the members that are kept to all rows.

    Parameters
    ----------
    data : the rows; rows of a group are left out together.
    prior : (n_classes,) prior probabilities.
    random : random state that chooses folds and, if there are many rows, the subsample.
    computation : threads and progress.
    kinds : kinds of members to try.
    empirical : whether the prior was estimated from the rows. Then each part of the rows is scored with a
        prior that is estimated from the other parts.
    sample : None, or a larger sample of rows to which scales, means, covariances and frequencies of
        categories are fitted.
    """
    if sample is None:
        scaled_rows, learnt_from = ScaledRows.learn(data, [kind.scale for kind in kinds]), None
    else:
        scaled_rows = ScaledRows.on_scales(data, sample.scales)
        # Members are built with the same number of variables as in the search.
        learnt_from = replace(sample, most_variables=scaled_rows.most_variables)
    prior_mixing = 1.0 / (data.n + 2.0)
    search_result = search(
        scaled_rows,
        prior,
        prior_mixing,
        random,
        computation,
        kinds,
        empirical=empirical,
        learnt_from=learnt_from,
    )
    with one_blas_thread():
        builds = [
            partial(
                build_member, tried_member, scaled_rows, learnt_from or scaled_rows, prior, search_result.seed
            )
            for tried_member in search_result.kept
        ]
        members = list(on_threads(builds, computation.n_jobs))
    return make_pool(search_result, members, search_result.points)


class Search(NamedTuple):
    """Result of a search: all members that were fitted, their weights, and the fold plan."""

    tried_members: Sequence[TriedMember]  # n_tried members
    log_weights: Floats  # (n_tried,) logarithms of the weights, -inf for members that are dropped
    plan: FoldPlan  # points and folds of the rows that the search has read
    table: dict[str, Any]  # table of all members: columns by name
    chosen: Integers  # (n_chosen,) positions of the rows that the search has read
    parts: Integers  # (n_chosen,) index of the part of each row for scoring; see `weights.judge`
    empirical: bool  # whether the prior was estimated from the rows
    seed: int  # random seed for the fit of members

    @property
    def order(self) -> list[int]:
        """Indices in `tried_members` of the members that are kept, largest share first."""
        heaviest = np.argsort(-shares_of(self.tried_members, self.log_weights), kind="stable")
        return [m for m in heaviest.tolist() if np.isfinite(self.log_weights[m])]

    @property
    def kept(self) -> list[TriedMember]:
        """Members that are kept, largest share first."""
        return [self.tried_members[m] for m in self.order]

    @property
    def weights(self) -> Floats:
        """(n_kept,) weights of the members in `kept`."""
        return np.exp(self.log_weights[self.order])

    @property
    def points(self) -> Integers:
        """Positions of the rows that the search has predicted, each row once."""
        points: Integers = self.chosen[self.plan.rows]
        return points


def make_pool(search_result: Search, members: Sequence[Member], points: Integers) -> Pool:
    """Make a pool of fitted members and the scores of the search.

    The pool keeps the log densities of points in the first division only. The log densities of new rows come
    from one fit, and a mean over several divisions would vary less.

    Parameters
    ----------
    search_result : result of the search.
    members : fitted members, in the order of `search_result.kept`.
    points : (n_rows,) positions of `search_result.plan.rows` among the rows of the model.
    """
    plan, kept = search_result.plan, search_result.kept
    with one_blas_thread():
        log_proba, log_density = judge(
            search_result.tried_members, plan, search_result.parts, empirical=search_result.empirical
        )
    first, order = plan.division == 0, np.argsort(points)
    return Pool(
        members=members,
        weights=search_result.weights,
        temperatures=np.exp([-member.log_power for member in kept]),
        prior=plan.prior,
        prior_mixing=plan.prior_mixing,
        scores=score_points(log_proba, plan),
        table=search_result.table,
        cross_fitted=CrossFitted(
            points[order],
            np.array([member.log_density[first][order] for member in kept]),
            log_density[first][order],
        ),
    )


def search(
    scaled_rows: ScaledRows,
    prior: Floats,
    prior_mixing: float,
    random: np.random.RandomState,
    computation: Computation,
    kinds: Sequence[AnyKind] = MEMBER_KINDS,
    *,
    empirical: bool = False,
    learnt_from: ScaledRows | None = None,
) -> Search:
    """Cross-fit members of some kinds on a subsample of the rows, and fit their weights; see `fit_pool`.

    If `learnt_from` is given, transforms are fitted to these rows instead of the subsample.
    """
    chosen = proportional_subsample(scaled_rows.data, scaled_rows.rank, SEARCH_ROWS, random)
    rows = scaled_rows.take(chosen)
    points = balanced_subsample(rows.data, rows.rank, SEARCH_POINTS, random)
    n_divisions = int(np.clip(_DIVIDED_ROWS // max(chosen.size, 1), 1, _MOST_DIVISIONS))
    plan = FoldPlan.prepare(rows.data, points, prior, prior_mixing, random, n_divisions)
    seed, seed_of_parts = random.randint(2**31 - 1, size=2).tolist()
    kinds = [kind.for_rows(*rows.data.X.shape) for kind in kinds]
    folds = folds_of(rows, plan, kinds, learnt_from)
    attempts = [partial(attempt, each, rows, plan, seed, folds) for each in by_shared_fit(kinds)]
    with (
        one_blas_thread(),
        progress(len(kinds), "Search", computation.verbose) as advance,
    ):
        tried_members = []
        for tried in on_threads(attempts, computation.n_jobs):
            tried_members.extend(tried)
            advance(len(tried))
        log_weights = weigh(tried_members, plan)
    parts = random_parts(rows.data, rows.rank, N_FOLDS, np.random.RandomState(seed_of_parts))
    table = tabulate(tried_members, log_weights, plan)
    return Search(tried_members, log_weights, plan, table, chosen, parts, empirical, seed)

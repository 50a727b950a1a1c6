"""How a pool is found: members of all kinds are tried and weighed on some of the rows, then built of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.splits import random_parts
from corral.data.subsample import balanced_subsample, proportional_subsample
from corral.parallel import Computation, on_threads, progress
from corral.pool.cross_fitting import Candidate, attempt, build_member, folds_of
from corral.pool.fold_plan import N_FOLDS, Trial
from corral.pool.members import MEMBER_KINDS, AnyKind, by_shared_fit, scales_of
from corral.pool.model import CrossFitted, Pool, PoolScores
from corral.pool.scaled_rows import RowsInUnits
from corral.pool.weights import Judged, heaviest_first, judge, score_points, tabulate, weigh

# The search reads at most so many rows, and asks at most so many of them to leave themselves out.
SEARCH_ROWS = 20_000
SEARCH_POINTS = 2000

# Few rows are divided into folds several times, since what is chosen depends on the division: so often that
# there are at most so many rows in all divisions together.
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
    sample: RowsInUnits | None = None,
) -> Pool:
    """Try members of some kinds, weigh them, and fit those that are kept to all rows.

    Parameters
    ----------
    data : the rows; those that share a unit are left out together.
    prior : (n_classes,)
    random : chooses folds, and rows where there are many.
    computation : threads and progress.
    kinds : members to try.
    empirical : whether the prior was estimated from the rows: then no row has a say in the prior that it is
        judged by, either.
    sample : further rows, and their units, if means, covariances and frequencies are learnt from these.
    """
    whole = (
        RowsInUnits.learn(data, scales_of(kinds))
        if sample is None
        else RowsInUnits.in_units(data, sample.scales)
    )
    # Members are built with as many variables as they were tried with.
    learnt_from = whole if sample is None else replace(sample, most_variables=whole.most_variables)
    found = search(
        whole,
        prior,
        1.0 / (data.n + 2.0),
        random,
        computation,
        kinds,
        empirical=empirical,
        learnt_from=None if sample is None else learnt_from,
    )
    with threadpool_limits(1, user_api="blas"):
        builds = [
            partial(build_member, candidate, whole, learnt_from, prior, found.seed)
            for candidate in found.kept
        ]
        members = list(on_threads(builds, computation.n_jobs))
    return Pool(
        members=members,
        weights=found.weights,
        temperatures=np.exp([-candidate.log_power for candidate in found.kept]),
        prior=prior,
        lapse=found.trial.lapse,
        scores=found.scores,
        table=found.table,
        cross_fitted=CrossFitted(
            found.points,
            found.log_density,
            found.refined,
            found.in_one_division(found.judged.log_density),
        ),
    )


class Search(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    candidates : all kinds of members that were tried.
    log_weights : (n_candidates,) logarithms of their weights, -inf for those that are dropped.
    order : which candidates are kept, the heaviest first.
    trial : points and folds.
    chosen : (n_chosen,) which rows the search has read.
    scores : what to expect.
    table : columns about all candidates.
    seed : of the rows by which bandwidths are refined.
    parts : (n_chosen,) in which fifth each row is judged.
    empirical : whether the prior was estimated from the rows.
    judged : what points are given by choices in which they had no part.
    """

    candidates: Sequence[Candidate]
    log_weights: Floats
    order: Sequence[int]
    trial: Trial
    chosen: Integers
    scores: PoolScores
    table: dict[str, Any]
    seed: int
    parts: Integers
    empirical: bool
    judged: Judged

    @property
    def kept(self) -> list[Candidate]:
        """Candidates that are kept, the heaviest first."""
        return [self.candidates[m] for m in self.order]

    @property
    def weights(self) -> Floats:
        """Their weights."""
        weights: Floats = np.exp(self.log_weights[list(self.order)])
        return weights

    @property
    def points(self) -> Integers:
        """Which rows were left out, one by one."""
        points: Integers = self.chosen[self.trial.rows]
        return points

    @property
    def log_density(self) -> Floats:
        """Log densities (n_kept, n_points, n_classes) of these rows, in the first division."""
        return np.array([self.in_one_division(candidate.log_density) for candidate in self.kept])

    def in_one_division(self, values: Floats) -> Floats:
        """Values (n_points, n_classes) of these rows in the first division, from those in all.

        New rows are judged by one fit. A mean over divisions would vary less than what is said of them.
        """
        first: Floats = values[self.trial.division == 0]
        return first

    @property
    def refined(self) -> Bools:
        """(n_kept,) whether bandwidths were fitted to labels."""
        return np.array([candidate.kind.refined for candidate in self.kept])


def n_divisions(n_rows: int) -> int:
    """How often so many rows are divided into folds."""
    return int(np.clip(_DIVIDED_ROWS // max(n_rows, 1), 1, _MOST_DIVISIONS))


def search(
    whole: RowsInUnits,
    prior: Floats,
    lapse: float,
    random: np.random.RandomState,
    computation: Computation,
    kinds: Sequence[AnyKind] = MEMBER_KINDS,
    *,
    empirical: bool = False,
    learnt_from: RowsInUnits | None = None,
) -> Search:
    """Try members of some kinds on some of the rows, and weigh them; see `fit_pool`.

    Frames are learnt from the same rows, or from `learnt_from` if it is given.
    """
    chosen = proportional_subsample(whole.data, whole.rank, SEARCH_ROWS, random)
    some = whole.take(chosen)
    points = balanced_subsample(some.data, some.rank, SEARCH_POINTS, random)
    trial = Trial.prepare(some.data, points, prior, lapse, random, n_divisions(len(some.data.X)))
    target = trial.target()
    seed, seed_of_parts = random.randint(2**31 - 1, size=2).tolist()
    kinds = [kind.for_rows(*some.data.X.shape) for kind in kinds]
    folds = folds_of(some, trial, kinds, learnt_from)
    attempts = [partial(attempt, each, some, trial, target, seed, folds) for each in by_shared_fit(kinds)]
    with (
        threadpool_limits(1, user_api="blas"),  # so that sums have the same bits on any number of processors
        progress(len(kinds), "Search", computation.verbose) as advance,
    ):
        candidates = []
        for found in on_threads(attempts, computation.n_jobs):
            candidates.extend(found)
            advance(len(found))
        log_weights = weigh(candidates, target)
        parts = random_parts(some.data, some.rank, N_FOLDS, np.random.RandomState(seed_of_parts))
        judged = judge(candidates, trial, target, parts, empirical=empirical)
    scores = score_points(judged.log_proba, trial)
    table = tabulate(candidates, log_weights, trial, target)
    order = heaviest_first(candidates, log_weights)
    return Search(
        candidates, log_weights, order, trial, chosen, scores, table, seed, parts, empirical, judged
    )

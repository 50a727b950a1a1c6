"""Learning curves of a pool: how well rows are predicted by others, and by fewer and fewer of them.

The rows are divided into halves, quarters and eighths, and the rows of each part are predicted by
leave-one-out within it. So every row is predicted once at every size, by as many others, and what is compared
between sizes are losses of the same rows. All sizes together take about as long as four fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.splits import random_parts, stratified_parts
from corral.data.subsample import balanced_subsample, proportional_subsample
from corral.parallel import Computation, on_threads, one_blas_thread, progress
from corral.planning.power_law import (
    JEFFREYS,
    Chance,
    PowerLaw,
    error_of_mean,
    fit_mean,
    fit_share,
    probability_of_nothing,
)
from corral.pool.cross_fitting import attempt, folds_of
from corral.pool.fold_plan import N_FOLDS, FoldPlan
from corral.pool.members import MEMBER_KINDS, by_shared_fit
from corral.pool.scaled_rows import ScaledRows
from corral.pool.search import SEARCH_POINTS
from corral.pool.weights import judge

# At most so many rows are read.
CURVE_ROWS = 4000

# Into how many parts rows are divided, and the least mean number of rows of a part, and of a class in it.
_PARTS = (1, 2, 4, 8)
_FEWEST_ROWS = 20
_FEWEST_OF_CLASS = 2.5

# With so many rows errors that are counted say as much as those that probabilities expect.
_ROWS_TO_COUNT = 1000

# Errors and right labels that count as seen before: tables on which rows say something of the classes have
# errors like these. Chosen on other tables than those of ``python -m benchmarks sample_size``.
_USUAL = (0.6, 3.4)


@dataclass(frozen=True, eq=False)
class Curve:
    """Losses of the same rows at several sizes, all rows first."""

    # times, n_rows: (n_sizes,) fractions of the rows that are read, and how many these are
    times: Floats
    n_rows: int
    # codes, weights: (n_points,) right classes, and weights that sum to 1, in each class to its prior
    codes: Integers
    weights: Floats
    # (n_points,) numbers of units; points of one are predicted without each other, and not independent
    group_ids: Integers
    proba: Floats  # (n_sizes, n_points, n_classes) probabilities by leave-one-out

    @property
    def errors(self) -> Floats:
        """(n_sizes, n_points) 1 where the label is wrong."""
        errors: Floats = (self.proba.argmax(axis=2) != self.codes).astype(np.float64)
        return errors

    @property
    def log_losses(self) -> Floats:
        """(n_sizes, n_points) minus the logarithms of the right classes' probabilities."""
        right = self.proba[:, np.arange(self.codes.size), self.codes]
        log_losses: Floats = -np.log(np.maximum(right, np.finfo(np.float64).tiny))
        return log_losses

    @property
    def accuracies(self) -> Floats:
        """(n_sizes,) accuracies."""
        accuracies: Floats = 1.0 - self.errors @ self.weights
        return accuracies

    @property
    def mean_log_losses(self) -> Floats:
        """(n_sizes,) log losses."""
        means: Floats = self.log_losses @ self.weights
        return means

    @property
    def recalls(self) -> Floats:
        """(n_sizes, n_classes) shares of each class that get its label, NaN for a class without rows."""
        recalls = np.full((self.times.size, self.proba.shape[2]), np.nan)
        for y in np.unique(self.codes):
            of_class = np.where(self.codes == y, self.weights, 0.0)
            if of_class.any():
                recalls[:, y] = 1.0 - self.errors @ of_class / of_class.sum()
        return recalls

    @property
    def rows(self) -> Integers:
        """(n_sizes,) rows by which each row was predicted, and itself."""
        rows: Integers = np.rint(self.times * self.n_rows).astype(np.int64)
        return rows

    def accuracy_law(self) -> PowerLaw:
        """How the share of errors falls: part of it is counted, part expected from calibrated probabilities.

        The latter varies less, and is most of it where rows are few. Few rows are also shrunk towards the
        errors that tables usually have, unless they seem to say nothing of the classes.
        """
        counted = self.n_rows / (self.n_rows + _ROWS_TO_COUNT)
        errors = counted * self.errors + (1.0 - counted) * (1.0 - self.proba.max(axis=2))
        gap = float((errors[0] - (self.codes != self._prior.argmax())) @ self.weights)
        nothing = self._ignorance
        wrong, right = ((1.0 - nothing) * _USUAL[k] + nothing * JEFFREYS[k] for k in (0, 1))
        return fit_share(
            errors, self.times, self.weights, self.group_ids, Chance(nothing, gap), (wrong, right)
        )

    def log_loss_law(self) -> PowerLaw:
        """How the log loss falls."""
        gap = float(self._surplus @ self.weights)
        return fit_mean(
            self.log_losses, self.times, self.weights, self.group_ids, Chance(self._ignorance, gap)
        )

    @property
    def _prior(self) -> Floats:
        """(n_classes,) shares of the classes."""
        return np.bincount(self.codes, self.weights, minlength=self.proba.shape[2]).astype(np.float64)

    @property
    def _surplus(self) -> Floats:
        """(n_points,) by how much the log loss with all rows exceeds that of the classes' shares."""
        shares = np.maximum(self._prior[self.codes], np.finfo(np.float64).tiny)
        surplus: Floats = self.log_losses[0] + np.log(shares)
        return surplus

    @property
    def _ignorance(self) -> float:
        """Probability that the rows say nothing of the classes, so that their shares predict as well."""
        mean = float(self._surplus @ self.weights)
        error = error_of_mean(self._surplus - mean, self.weights, self.group_ids)
        prior = self._prior[self._prior > 0.0]
        return probability_of_nothing(mean, error, float(-prior @ np.log(prior)))

    def recall_law(self, y: int) -> PowerLaw | None:
        """How the share of errors in one class falls; None if the class has no rows."""
        weights = np.where(self.codes == y, self.weights, 0.0)
        if not weights.any():
            return None
        weights /= weights.sum()
        known = self.times * (self.codes == y).sum() >= _FEWEST_OF_CLASS
        known[0] = True
        # Where rows say nothing of the classes, a class gets its label as often as all rows get it.
        others = float((self.proba[0].argmax(axis=1) != y) @ self.weights)
        chance = Chance(self._ignorance, float(self.errors[0] @ weights) - others)
        return fit_share(self.errors[known], self.times[known], weights, self.group_ids, chance)


def learn_curve(
    data: LabelledRows,
    prior: Floats,
    random: np.random.RandomState,
    computation: Computation,
    *,
    empirical: bool,
) -> Curve:
    """Predict rows by all others, and by those of their half, quarter and eighth.

    Rows that share a unit stay together. `random` divides the rows, and subsamples them where there are many;
    `empirical` says that the prior was estimated from the rows.
    """
    whole = ScaledRows.learn(data, ())
    rows = whole.take(proportional_subsample(data, whole.rank, CURVE_ROWS, random))
    points = balanced_subsample(rows.data, rows.rank, SEARCH_POINTS, random)
    weights = FoldPlan.prepare(rows.data, points, prior, 0.0, random).score_weights
    n_rows = len(rows.data.X)
    fewest = max(_FEWEST_ROWS, _FEWEST_OF_CLASS * np.count_nonzero(rows.data.counts))
    n_groups = np.unique(rows.data.group_ids).size
    # A part of one unit would leave nothing to predict it by.
    sizes = [n for n in _PARTS if n == 1 or (n_rows >= n * fewest and n_groups >= 2 * n)]
    is_point = np.zeros(n_rows, dtype=bool)
    is_point[points] = True
    places, calls = [], []
    for k, n_parts in enumerate(sizes):
        parts = stratified_parts(rows.data, rows.rank, n_parts, random)
        for part in range(n_parts):
            inside = np.flatnonzero(parts == part)
            seed = random.randint(2**31 - 1)
            places.append((k, inside[is_point[inside]]))
            calls.append(partial(_predict, rows.data.take(inside), is_point[inside], prior, seed, empirical))
    proba = np.empty((len(sizes), n_rows, prior.size))
    with (
        one_blas_thread(),
        progress(len(calls), "Curve", computation.verbose) as advance,
    ):
        for place, log_proba in zip(places, on_threads(calls, computation.n_jobs), strict=True):
            proba[place] = np.exp(log_proba)
            advance(1)
    times = 1.0 / np.array(sizes, dtype=np.float64)
    return Curve(
        times, n_rows, rows.data.codes[points], weights, rows.data.group_ids[points], proba[:, points]
    )


def _predict(data: LabelledRows, is_point: Bools, prior: Floats, seed: int, empirical: bool) -> Floats:
    """Log probabilities (n_points, n_classes) of some rows by all others, as a fit to all of them would."""
    random = np.random.RandomState(seed)
    if empirical:
        prior = data.counts / data.counts.sum()
    rows, points = ScaledRows.learn(data, [kind.scale for kind in MEMBER_KINDS]), np.flatnonzero(is_point)
    plan = FoldPlan.prepare(data, points, prior, 1.0 / (data.n + 2.0), random)
    seed = random.randint(2**31 - 1)
    folds = folds_of(rows, plan, MEMBER_KINDS)
    tried_members = [
        tried_member
        for kinds in by_shared_fit(MEMBER_KINDS)
        for tried_member in attempt(kinds, rows, plan, seed, folds)
    ]
    parts = random_parts(data, rows.rank, N_FOLDS, random)
    return judge(tried_members, plan, parts, empirical=empirical)[0]

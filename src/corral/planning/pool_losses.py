"""Learning curves of a pool: losses of rows that are predicted by all other rows, and by fewer of them.

The rows are divided into halves, quarters and eighths, and the rows of each part are predicted by
leave-one-out within it. So every row is predicted once at every size, and sizes are compared by the losses of
the same rows. All sizes together take about as long as four fits.
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
    independence_probability,
)
from corral.pool.cross_fitting import attempt, folds_of
from corral.pool.fold_plan import N_FOLDS, FoldPlan
from corral.pool.members import MEMBER_KINDS, by_shared_fit
from corral.pool.scaled_rows import ScaledRows
from corral.pool.search import SEARCH_POINTS
from corral.pool.weights import judge

# Most rows that are used.
CURVE_ROWS = 4000

# Numbers of parts, and the least mean number of rows of a part, and of a class in a part.
_PARTS = (1, 2, 4, 8)
_FEWEST_ROWS = 20
_FEWEST_OF_CLASS = 2.5

# Number of rows at which counted errors and errors expected from probabilities have the same weight.
_ROWS_TO_COUNT = 1000

# Prior numbers of errors and right labels, for variables that depend on the classes. They were not chosen on
# the tables of ``python -m benchmarks sample_size``.
_PRIOR_COUNTS = (0.6, 3.4)


@dataclass(frozen=True, eq=False)
class Curve:
    """Losses of the same rows at several sizes, all rows first."""

    # times, n_rows: (n_sizes,) fractions of the rows that are used, and the number of these rows
    times: Floats
    n_rows: int
    # codes, weights: (n_points,) classes, and weights that sum to 1, and within a class to its prior
    codes: Integers
    weights: Floats
    # (n_points,) numbers of groups; points of a group are predicted without each other
    group_ids: Integers
    proba: Floats  # (n_sizes, n_points, n_classes) probabilities by leave-one-out

    @property
    def errors(self) -> Floats:
        """(n_sizes, n_points) 1 where the label is wrong."""
        errors: Floats = (self.proba.argmax(axis=2) != self.codes).astype(np.float64)
        return errors

    @property
    def log_losses(self) -> Floats:
        """(n_sizes, n_points) minus the log probabilities of the classes."""
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
            weights = np.where(self.codes == y, self.weights, 0.0)
            if weights.any():
                recalls[:, y] = 1.0 - self.errors @ weights / weights.sum()
        return recalls

    @property
    def rows(self) -> Integers:
        """(n_sizes,) number of rows in a part."""
        rows: Integers = np.rint(self.times * self.n_rows).astype(np.int64)
        return rows

    def accuracy_law(self) -> PowerLaw:
        """Power law of the share of errors.

        Counted errors are averaged with the errors that calibrated probabilities expect. The latter vary
        less, and have most of the weight if rows are few. Unless variables and classes seem independent, the
        prior is that of usual tables.
        """
        counted = self.n_rows / (self.n_rows + _ROWS_TO_COUNT)
        errors = counted * self.errors + (1.0 - counted) * (1.0 - self.proba.max(axis=2))
        surplus = float((errors[0] - (self.codes != self._prior.argmax())) @ self.weights)
        independent = self._independence
        wrong, right = ((1.0 - independent) * _PRIOR_COUNTS[k] + independent * JEFFREYS[k] for k in (0, 1))
        chance = Chance(independent, surplus)
        return fit_share(errors, self.times, self.weights, self.group_ids, chance, (wrong, right))

    def log_loss_law(self) -> PowerLaw:
        """Power law of the log loss."""
        chance = Chance(self._independence, float(self._surplus @ self.weights))
        return fit_mean(self.log_losses, self.times, self.weights, self.group_ids, chance)

    @property
    def _prior(self) -> Floats:
        """(n_classes,) shares of the classes."""
        return np.bincount(self.codes, self.weights, minlength=self.proba.shape[2]).astype(np.float64)

    @property
    def _surplus(self) -> Floats:
        """(n_points,) log losses with all rows, minus the log losses of guessing by the classes' shares."""
        shares = np.maximum(self._prior[self.codes], np.finfo(np.float64).tiny)
        surplus: Floats = self.log_losses[0] + np.log(shares)
        return surplus

    @property
    def _independence(self) -> float:
        """Probability that variables and classes are independent, so that the shares predict as well."""
        mean = float(self._surplus @ self.weights)
        error = error_of_mean(self._surplus - mean, self.weights, self.group_ids)
        prior = self._prior[self._prior > 0.0]
        return independence_probability(mean, error, float(-prior @ np.log(prior)))

    def recall_law(self, y: int) -> PowerLaw | None:
        """Power law of the share of errors in one class; None if the class has no rows."""
        weights = np.where(self.codes == y, self.weights, 0.0)
        if not weights.any():
            return None
        weights /= weights.sum()
        enough = self.times * (self.codes == y).sum() >= _FEWEST_OF_CLASS
        enough[0] = True
        # If variables and classes are independent, rows of the class get its label as often as all rows do.
        others = float((self.proba[0].argmax(axis=1) != y) @ self.weights)
        chance = Chance(self._independence, float(self.errors[0] @ weights) - others)
        return fit_share(self.errors[enough], self.times[enough], weights, self.group_ids, chance)


def learn_curve(
    data: LabelledRows,
    prior: Floats,
    random: np.random.RandomState,
    computation: Computation,
    *,
    empirical: bool,
) -> Curve:
    """Predict rows by all others, and by the others of their half, quarter and eighth.

    Rows of a group stay together. `random` divides the rows, and subsamples them if there are many;
    `empirical` is true if the prior was estimated from the rows.
    """
    every = ScaledRows.learn(data, ())
    rows = every.take(proportional_subsample(data, every.rank, CURVE_ROWS, random))
    points = balanced_subsample(rows.data, rows.rank, SEARCH_POINTS, random)
    weights = FoldPlan.prepare(rows.data, points, prior, 0.0, random).score_weights
    n_rows = len(rows.data.X)
    fewest = max(_FEWEST_ROWS, _FEWEST_OF_CLASS * np.count_nonzero(rows.data.counts))
    n_groups = np.unique(rows.data.group_ids).size
    # A part with a single group would have no rows to predict it by.
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
    """Log probabilities (n_points, n_classes) of rows by all others, as in a fit to all rows."""
    random = np.random.RandomState(seed)
    if empirical:
        prior = data.counts / data.counts.sum()
    rows, points = ScaledRows.learn(data, [kind.scale for kind in MEMBER_KINDS]), np.flatnonzero(is_point)
    plan = FoldPlan.prepare(data, points, prior, 1.0 / (data.n + 2.0), random)
    seed = random.randint(2**31 - 1)
    folds = folds_of(rows, plan, MEMBER_KINDS)
    members = [
        member for kinds in by_shared_fit(MEMBER_KINDS) for member in attempt(kinds, rows, plan, seed, folds)
    ]
    parts = random_parts(data, rows.rank, N_FOLDS, random)
    return judge(members, plan, parts, empirical=empirical)[0]

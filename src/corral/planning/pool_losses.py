"""Losses of a pool that is fitted to all rows, and to halves, quarters and eighths of the rows.

The rows are divided into parts, and the rows of each part are predicted by leave-one-out from the same part.
So every row is predicted once for every size, and the losses of all sizes belong to the same rows. The
predicted rows are called points; they are a subsample if there are many rows. All sizes together need about
the time of four fits.
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

# Largest number of rows that are used; more rows are subsampled.
CURVE_ROWS = 4000

# Numbers of parts. A part has on average at least _FEWEST_ROWS rows, and _FEWEST_OF_CLASS rows per class.
_PARTS = (1, 2, 4, 8)
_FEWEST_ROWS = 20
_FEWEST_OF_CLASS = 2.5

# Number of rows for which counted and expected errors have equal weights in `Curve.accuracy_law`.
_ROWS_TO_COUNT = 1000

# Prior numbers of errors and of correct labels if the variables depend on the classes. The values were not
# tuned on the tables of ``python -m benchmarks sample_size``.
_PRIOR_COUNTS = (0.6, 3.4)


@dataclass(frozen=True, eq=False)
class Curve:
    """Leave-one-out predictions of the same points from all rows, then from fractions of the rows."""

    times: Floats  # (n_sizes,) fractions of the rows from which points are predicted
    n_rows: int  # number of rows that fraction 1 stands for
    codes: Integers  # (n_points,) class codes
    weights: Floats  # (n_points,) weights with sum 1; the weights of a class sum to its prior
    group_ids: Integers  # (n_points,) a point is predicted from rows of other groups
    proba: Floats  # (n_sizes, n_points, n_classes) predicted probabilities

    @property
    def errors(self) -> Floats:
        """Errors (n_sizes, n_points): 1 if the predicted label is wrong, else 0."""
        errors: Floats = (self.proba.argmax(axis=2) != self.codes).astype(np.float64)
        return errors

    @property
    def log_losses(self) -> Floats:
        """Log losses (n_sizes, n_points): -log of the probability of the right class."""
        right = self.proba[:, np.arange(self.codes.size), self.codes]
        log_losses: Floats = -np.log(np.maximum(right, np.finfo(np.float64).tiny))
        return log_losses

    @property
    def accuracies(self) -> Floats:
        """Weighted accuracies (n_sizes,)."""
        accuracies: Floats = 1.0 - self.errors @ self.weights
        return accuracies

    @property
    def mean_log_losses(self) -> Floats:
        """Weighted mean log losses (n_sizes,)."""
        means: Floats = self.log_losses @ self.weights
        return means

    @property
    def recalls(self) -> Floats:
        """Recalls (n_sizes, n_classes); NaN for a class without points."""
        recalls = np.full((self.times.size, self.proba.shape[2]), np.nan)
        for y in np.unique(self.codes):
            weights = np.where(self.codes == y, self.weights, 0.0)
            if weights.any():
                recalls[:, y] = 1.0 - self.errors @ weights / weights.sum()
        return recalls

    @property
    def rows(self) -> Integers:
        """Mean numbers of rows in a part (n_sizes,)."""
        rows: Integers = np.rint(self.times * self.n_rows).astype(np.int64)
        return rows

    def accuracy_law(self) -> PowerLaw:
        """Fit a power law to the error rate.

        The loss of a point is a weighted average of the counted error, 0 or 1, and of the expected error, 1
        minus the largest probability. Expected errors vary less, and have more weight if there are fewer
        rows. The prior numbers of errors and correct labels are averages of `_PRIOR_COUNTS` and `JEFFREYS`;
        the weight of `JEFFREYS` is the probability that variables and classes are independent.
        """
        counted = self.n_rows / (self.n_rows + _ROWS_TO_COUNT)
        errors = counted * self.errors + (1.0 - counted) * (1.0 - self.proba.max(axis=2))
        surplus = float((errors[0] - (self.codes != self._prior.argmax())) @ self.weights)
        independent = self._independence
        wrong, right = ((1.0 - independent) * _PRIOR_COUNTS[k] + independent * JEFFREYS[k] for k in (0, 1))
        chance = Chance(independent, surplus)
        return fit_share(errors, self.times, self.weights, self.group_ids, chance, (wrong, right))

    def log_loss_law(self) -> PowerLaw:
        """Fit a power law to the log loss."""
        chance = Chance(self._independence, float(self._surplus @ self.weights))
        return fit_mean(self.log_losses, self.times, self.weights, self.group_ids, chance)

    @property
    def _prior(self) -> Floats:
        """Class shares (n_classes,): sums of the weights."""
        return np.bincount(self.codes, self.weights, minlength=self.proba.shape[2]).astype(np.float64)

    @property
    def _surplus(self) -> Floats:
        """Log losses (n_points,) with all rows, minus log losses of predicting the class shares."""
        shares = np.maximum(self._prior[self.codes], np.finfo(np.float64).tiny)
        surplus: Floats = self.log_losses[0] + np.log(shares)
        return surplus

    @property
    def _independence(self) -> float:
        """Probability that variables and classes are independent."""
        mean = float(self._surplus @ self.weights)
        error = error_of_mean(self._surplus - mean, self.weights, self.group_ids)
        prior = self._prior[self._prior > 0.0]
        return independence_probability(mean, error, float(-prior @ np.log(prior)))

    def recall_law(self, y: int) -> PowerLaw | None:
        """Fit a power law to the error rate of one class; None if the class has no points."""
        weights = np.where(self.codes == y, self.weights, 0.0)
        if not weights.any():
            return None
        weights /= weights.sum()
        enough = self.times * (self.codes == y).sum() >= _FEWEST_OF_CLASS
        enough[0] = True
        # If variables and classes are independent, the label of the class is equally frequent among the
        # predictions of the class and of all points.
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
    """Predict points from all other rows, and from the other rows of their half, quarter and eighth.

    The rows of a group are in the same part. `random` divides the rows, and subsamples many rows. `empirical`
    is true if the prior was estimated from the rows.
    """
    every = ScaledRows.learn(data, ())
    rows = every.take(proportional_subsample(data, every.rank, CURVE_ROWS, random))
    points = balanced_subsample(rows.data, rows.rank, SEARCH_POINTS, random)
    weights = FoldPlan.prepare(rows.data, points, prior, 0.0, random).score_weights
    n_rows = len(rows.data.X)
    fewest = max(_FEWEST_ROWS, _FEWEST_OF_CLASS * np.count_nonzero(rows.data.counts))
    n_groups = np.unique(rows.data.group_ids).size
    # If a part had only one group, no rows would remain to predict its rows.
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
    """Compute leave-one-out log probabilities (n_points, n_classes) of a pool that is fitted to `data`."""
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

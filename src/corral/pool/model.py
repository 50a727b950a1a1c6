r"""A fitted pool: a few members, each a classifier by class densities, and their weights.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with weights :math:`w_m > 0`.
The posterior from these scores is then mixed with the prior (see `corral.model`). The module `members` lists
the kinds of members that a search fits, and `search` chooses the members of the pool.

A calibration point, or point, is a training row that the search has left out of its own prediction. The
weights and scores of the pool are computed from the points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corral.array_types import (
    LARGEST_INTEGER,
    SMALLEST,
    Bools,
    Floats,
    Integers,
    check_array,
    check_number,
    check_positions,
    check_shape,
    equal_or_none,
)
from corral.conformal.typicality import (
    Estimates,
    medians_and_spread,
    shares_of_members,
    weigh_points,
    with_least_share,
)
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.subsample import example_rows
from corral.model import MAX_EXAMPLES, Examples, LocalModel
from corral.parallel import Computation, one_blas_thread
from corral.pool.members import Member, kind_of
from corral.posterior import finite_log_densities

# Members with covariances, if the pool has any, have at least this share of typicality scores. A member
# without covariances cannot detect a value that is atypical given the values of the other variables.
_LEAST_CORRELATED = 0.3


# Numeric columns of the table of members, with their lower and upper bounds; 1e-9 allows for rounding.
_NUMBERS_OF_MEMBERS = {
    "bandwidth": (0.0, np.inf),
    "pull": (0.0, 1.0),
    "temperature": (0.0, np.inf),
    "accuracy": (0.0, 1.0 + 1e-9),
    "log_loss": (-1e-9, np.inf),
    "weight": (0.0, np.inf),
    "share": (0.0, 1.0 + 1e-9),
}


class PoolScores(NamedTuple):
    """Cross-validated scores: each point is scored by bandwidths and weights chosen without the point."""

    accuracy: float  # weighted so that each class has the total weight of its prior
    log_loss: float  # weighted as the accuracy
    recall: Floats  # (n_classes,) NaN for classes without points

    def validate(self) -> None:
        """Raise ValueError if a score is out of range."""
        check_number("accuracy", self.accuracy, 0.0, 1.0)
        check_number("log_loss", self.log_loss, 0.0)
        check_array("recall", self.recall, (None,), 0.0, 1.0 + 1e-9, nan=True)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes with points."""
        return float(np.nanmean(self.recall))


class CrossFitted(NamedTuple):
    """Log densities of training rows by members that were fitted without the fold of the row."""

    points: Integers  # (n_points,) positions of the rows among the compared rows of the model
    log_density: Floats  # (n_members, n_points, n_classes)
    # (n_points, n_classes) weighted sums over members; the weights were fitted without the row
    log_density_of_pool: Floats

    def validate(self) -> None:
        """Raise ValueError if positions are not in ascending order or array shapes are inconsistent."""
        check_positions("points", self.points, LARGEST_INTEGER)
        if not self.points.size:
            raise ValueError("points are missing")
        check_array("log_density", self.log_density, (None, self.points.size, None))
        check_array("log_density_of_pool", self.log_density_of_pool, self.log_density.shape[1:])


@dataclass(frozen=True, eq=False)
class Pool:
    """Members and their weights."""

    members: Sequence[Member]  # sorted by share, largest first
    weights: Floats  # (n_members,) weights of the log densities of the members
    temperatures: Floats  # (n_members,) temperature of each member, fitted as if it were the only member
    prior: Floats  # (n_classes,) prior probabilities
    prior_mixing: float  # share of the prior in each posterior probability
    scores: PoolScores  # cross-validated scores
    table: dict[str, Any]  # table of all members that the search fitted: columns by name
    cross_fitted: CrossFitted  # log densities of training rows by members fitted without their fold

    def validate(self) -> None:
        """Raise ValueError if weights are not positive or numbers of members or classes are inconsistent."""
        n_members, n_classes = len(self.members), self.prior.size
        check_array("weights", self.weights, (n_members,), SMALLEST, 1e10)
        check_array("temperatures", self.temperatures, (n_members,), 1e-10, 1e10)
        check_number("prior_mixing", self.prior_mixing, 0.0, 1.0)
        check_shape("recall", self.scores.recall, (n_classes,))
        n_points = self.cross_fitted.points.size
        check_shape("log_density", self.cross_fitted.log_density, (n_members, n_points, n_classes))
        if not n_members or any(len(member.classes) != n_classes for member in self.members):
            raise ValueError("there are no members, or a member has another number of classes")
        self._validate_table()

    def _validate_table(self) -> None:
        """Raise ValueError if the table lacks a column or has other columns, lengths, kinds or ranges."""
        names = {"member", "scale", *_NUMBERS_OF_MEMBERS}
        if set(self.table) != names:
            raise ValueError(f"the columns of the table are not {', '.join(sorted(names))}")
        n_tried = len(self.table["member"])
        for name in ("member", "scale"):
            check_shape(name, self.table[name], (n_tried,))
        for identifier in self.table["member"]:
            kind_of(identifier)
        for name, (low, high) in _NUMBERS_OF_MEMBERS.items():
            check_array(name, self.table[name], (n_tried,), low, high)

    @property
    def refined(self) -> Bools:
        """(n_members,) whether the bandwidths of the member were fitted to labels; see `MemberKind`."""
        return np.array([kind_of(member.identifier).refined for member in self.members])

    def shares(self) -> dict[str, float]:
        """Return the share of each member in the pool by the title of the member, largest share first."""
        order = np.argsort(-self.table["share"], kind="stable").tolist()
        shares = ((kind_of(self.table["member"][m]).title, float(self.table["share"][m])) for m in order)
        return {title: share for title, share in shares if share > 0.0}

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Return weighted sums (n_samples, n_classes) of the log densities of the members."""
        log_density: Floats = self.weighted_sums(X, self.weights[np.newaxis], computation)[0]
        return log_density

    def weighted_sums(self, X: Floats, weights: Floats, computation: Computation) -> Floats:
        """Return weighted sums (n_sets, n_samples, n_classes) with several `weights` (n_sets, n_members)."""
        return weighted_sums((member.log_densities(X, computation) for member in self.members), weights)


def weighted_sums(log_densities: Iterable[Floats], weights: Floats) -> Floats:
    """Return weighted sums (n_sets, n_samples, n_classes) of the log densities of members.

    `weights` is (n_sets, n_members). The log densities of one member at a time are in memory.
    """
    sums: list[Floats | float] = [0.0] * len(weights)
    for log_density, member_weights in zip(log_densities, weights.T, strict=True):
        for k, weight in enumerate(member_weights.tolist()):
            if weight > 0.0:  # 0 times a log density of -inf would be NaN
                sums[k] = sums[k] + weight * log_density
    return np.array(sums)


@dataclass(frozen=True, eq=False)
class Compression:
    """Information about the training rows of a table in which some classes are compressed.

    A class with more than `max_rows` rows is compressed: its rows are divided into cells, and the model keeps
    one row per cell, or a subsample of its rows.
    """

    # rows of compressed classes that are in no cell; the pool is calibrated with these rows
    held_out: LabelledRows
    counts: Integers  # (n_data,) number of training rows that each row of `LocalModel.data` represents
    n_rows: int  # number of training rows that were given
    # (n_classes, 2, n_features) lowest and highest training values, in a model file, which does not keep the
    # training rows. None in other models, and if the training rows were on a cluster.
    ranges: Floats | None = None

    def validate(self) -> None:
        """Raise ValueError if counts are below 1 or ranges contain NaN."""
        check_array("counts", self.counts, (None,), 1, LARGEST_INTEGER)
        if self.ranges is not None:
            check_array("ranges", self.ranges, (None, 2, None), -np.inf, np.inf)


def as_training_rows(rows: LabelledRows) -> TrainingRows:
    """Convert sorted rows to training rows, for models that do not keep the given rows."""
    groups = rows.group_ids if rows.grouped else None
    return TrainingRows(rows.X, rows.labels[rows.codes], rows.weights, rows.n_categories, groups)


@dataclass(frozen=True, eq=False, kw_only=True)
class PoolModel(LocalModel):
    """A fitted pool with its training rows."""

    pool: Pool  # members, weights and scores
    # None if no class is compressed. Otherwise `data` has, for each compressed class, either the row nearest
    # to the center of each cell, with the weight of the cell, or a subsample of rows.
    compression: Compression | None = None

    def validate(self) -> None:
        """Raise ValueError if the fields are inconsistent."""
        super().validate()
        if not np.array_equal(self.prior, self.pool.prior):
            raise ValueError("prior is not the prior of the pool")
        if self.compression is not None:
            self._validate_compression(self.compression)
        check_positions("points", self.pool.cross_fitted.points, len(self.compared_rows.X))
        for member in self.pool.members:
            member.scale.validate_for(self.data.category_counts)
            for density in member.classes:
                density.validate_for(self.data.category_counts)

    def _validate_compression(self, compression: Compression) -> None:
        held_out = compression.held_out
        if not np.array_equal(held_out.labels, self.labels) or held_out.X.shape[1] != self.n_features:
            raise ValueError("held_out has other classes or variables")
        if not equal_or_none(held_out.n_categories, self.data.n_categories):
            raise ValueError("held_out has other categories than the rows")
        if len(held_out.X) and self.compared_rows.general:
            raise ValueError("rows with missing values, categories or groups are held out")
        if self.compared_rows.numbers.max(initial=0) >= compression.n_rows:
            raise ValueError("numbers contains a position that is not below n_rows")
        check_shape("counts", compression.counts, (len(self.data.X),))
        if compression.ranges is not None:
            check_shape("ranges", compression.ranges, (self.labels.size, 2, self.n_features))

    def packed(self) -> PoolModel:
        """Return the model as a file keeps it, without redundant rows.

        Members lose the rows of their kernels, which are also in `data`. If there are compressed classes, the
        training rows are dropped; `data` and `compression` remain.
        """
        pool = replace(self.pool, members=[member.without_rows() for member in self.pool.members])
        if self.compression is None:
            return replace(self, pool=pool)
        X, y, *_ = self.training
        training = self.training._replace(X=X[:0], y=y[:0], weights=None, groups=None)
        compression = replace(self.compression, ranges=self.class_ranges)
        return replace(self, pool=pool, training=training, compression=compression)

    def unpacked(self) -> PoolModel:
        """Return the model with the rows of kernels and training rows restored; see `packed`.

        If there are compressed classes, the training rows become the rows of `compared_rows`.
        """
        pool = replace(self.pool, members=[member.on_rows(self.data) for member in self.pool.members])
        training = self.training if self.compression is None else as_training_rows(self.compared_rows)
        return replace(self, pool=pool, training=training)

    @property
    def prior_mixing(self) -> float:
        """Share of the prior in each posterior probability."""
        return self.pool.prior_mixing

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Return weighted sums (n_samples, n_classes) of the log densities of the members."""
        return self.pool.log_densities(X, computation)

    @cached_property
    def single_members(self) -> list[PoolModel]:
        """One pool for each member, with this member only and its own temperature."""
        pool, kept, alone = self.pool, self.pool.cross_fitted, []
        for m, (member, log_density) in enumerate(zip(pool.members, kept.log_density, strict=True)):
            temperatures = pool.temperatures[m : m + 1]
            weights = 1.0 / temperatures
            member_weights = replace(
                pool,
                members=[member],
                weights=weights,
                temperatures=temperatures,
                cross_fitted=CrossFitted(kept.points, log_density[np.newaxis], weights[0] * log_density),
            )
            alone.append(replace(self, pool=member_weights))
        return alone

    @cached_property
    def compared_rows(self) -> LabelledRows:
        """Training rows that samples are compared with."""
        return self.data if self.compression is None else self.data.extended(self.compression.held_out)

    @property
    def all_rows(self) -> LabelledRows:
        """All training rows with positive weight; ValueError if the model has not kept all training rows."""
        if self.compression is None:
            return self.data
        if not self.has_all_rows:
            raise ValueError(
                f"this computation needs all {self.n_rows} training rows, and the model has kept only "
                f"{len(self.training.X)} of them."
            )
        return LabelledRows.sort(self.training, self.labels)

    @property
    def n_rows(self) -> int:
        """Number of training rows that were given."""
        return super().n_rows if self.compression is None else self.compression.n_rows

    @cached_property
    def class_ranges(self) -> Floats | None:
        """Lowest and highest training values (n_classes, 2, n_features); None if they were not kept."""
        if self.compression is not None and self.compression.ranges is not None:
            return self.compression.ranges
        return super().class_ranges

    @property
    def kept_rows(self) -> Integers | None:
        """Positions in the training table of the rows that a model file keeps; None if it keeps all rows."""
        return None if self.compression is None else self.compared_rows.numbers

    def rows_behind(self, a: int) -> Integers:
        """Return how many training rows each row of class `a` in `data` represents."""
        if self.compression is None:
            return super().rows_behind(a)
        counts: Integers = self.compression.counts[self.data.codes == a]
        return counts

    def examples(self, a: int) -> Examples:
        """Return at most `MAX_EXAMPLES` rows of class `a` to explain.

        If rows of the class are held out of the cells, the examples are held-out rows.
        """
        if self.compression is None or a not in self.compression.held_out.codes:
            return super().examples(a)
        held_out = self.compression.held_out
        rows_of_class = held_out.members()[a]
        positions = rows_of_class[
            example_rows(held_out.X[rows_of_class], held_out.all_weights[rows_of_class], MAX_EXAMPLES)
        ]
        unknown = np.full(positions.size, -1)
        return Examples.choose(held_out, positions, unknown, unknown)

    def calibration_points(self) -> Integers:
        """Return the positions of the calibration points among the compared rows."""
        return self.pool.cross_fitted.points

    @cached_property
    def score_weights(self) -> Floats:
        """(n_members,) weights of the members in the unscaled score.

        A weight is the share of the member in typicality divided by the spread of its log densities.
        """
        kept = self.pool.cross_fitted
        codes = self.compared_rows.codes[kept.points]
        weights = weigh_points(self.compared_rows, kept.points)
        own = self._left_out[:, np.arange(codes.size), codes]
        spreads = [medians_and_spread(scores, codes, weights, self.prior.size)[1] for scores in own]
        shares = shares_of_members(self._left_out, codes, weights)
        if not self.pool.refined.all():
            shares = np.where(self.pool.refined, 0.0, shares)
        correlated = np.array([member.sees_correlations for member in self.pool.members])
        shares = with_least_share(shares / shares.sum(), correlated, _LEAST_CORRELATED)
        score_weights: Floats = shares / np.array(spreads)
        return score_weights

    def estimates(self, X: Floats, computation: Computation, *, bandwidths: bool = False) -> Estimates:
        """Return log densities and unscaled scores (n_samples, n_classes), computed in one pass."""
        both = np.array([self.pool.weights, self.score_weights])
        return Estimates(*self.pool.weighted_sums(X, both, computation))

    def leave_out(self, points: Integers, computation: Computation) -> Estimates:
        """Return cross-fitted estimates of calibration points: members were fitted without their folds."""
        kept = self.pool.cross_fitted
        positions = np.searchsorted(kept.points, points)
        unscaled_score = np.tensordot(self.score_weights, self._left_out[:, positions], 1)
        return Estimates(kept.log_density_of_pool[positions], unscaled_score)

    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Return estimates of X; each row is estimated without the kernels of its group.

        `X` has the rows at `points`, and some of their values may be replaced by NaN. The transforms are not
        fitted again.
        """
        return self.estimates_without(self.compared_rows.group_ids[points], X)

    def estimates_without(self, group_ids: Integers, X: Floats) -> Estimates:
        """Return estimates of X; row i is estimated without the kernels of group `group_ids[i]`."""
        both = np.array([self.pool.weights, self.score_weights])
        without = (self._without(member, group_ids, X) for member in self.pool.members)
        return Estimates(*weighted_sums(without, both))

    @cached_property
    def used(self) -> Bools:
        """(n_features,) whether the density of at least one class uses the variable."""
        used = np.zeros(self.data.X.shape[1], dtype=bool)
        for member in self.pool.members:
            for mixture in member.classes:
                used[mixture.used] = True
        return used

    @cached_property
    def _left_out(self) -> Floats:
        """Log densities (n_members, n_points, n_classes) of points, each left out of its own estimate.

        Refined bandwidths differ between folds, so that log densities of different folds do not compare. If
        all members are refined, the log densities are therefore computed with the bandwidths of all rows.
        """
        kept = self.pool.cross_fitted
        if not self.pool.refined.all():
            return kept.log_density
        rows = self.compared_rows.X[kept.points]
        group_ids = self.compared_rows.group_ids[kept.points]
        return np.array([self._without(member, group_ids, rows) for member in self.pool.members])

    def _without(self, member: Member, group_ids: Integers, X: Floats) -> Floats:
        """Return log densities (n_samples, n_classes) of X; row i without the group `group_ids[i]`."""
        with one_blas_thread():
            return finite_log_densities(member.log_densities_without(self.data, X, group_ids))

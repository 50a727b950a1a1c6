r"""A fitted pool: few members, each a classifier by class densities, and their weights.

The log score of class y is :math:`\log \pi_y + \sum_m w_m \log p_m(x \mid y)` with weights :math:`w_m > 0`;
the posterior gives a share of its probability to the prior.
`members` lists the members that are tried, and `search` chooses the members that are kept.
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

# Members with covariances have at least this share of typicality scores, if there are some: to a member
# without them, a value that contradicts the other variables is as typical as any.
_LEAST_CORRELATED = 0.3


# Columns of numbers about members that were tried, with the least and the largest but for rounding.
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
    """Cross-validated scores of a pool: no point takes part in the choices by which it is scored."""

    # accuracy, log_loss: with classes weighing as the priors say
    accuracy: float
    log_loss: float
    recall: Floats  # (n_classes,) NaN for classes that have no points

    def validate(self) -> None:
        """Refuse scores out of range."""
        check_number("accuracy", self.accuracy, 0.0, 1.0)
        check_number("log_loss", self.log_loss, 0.0)
        check_array("recall", self.recall, (None,), 0.0, 1.0 + 1e-9, nan=True)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the recalls of classes that have points."""
        return float(np.nanmean(self.recall))


class CrossFitted(NamedTuple):
    """Log densities of training rows by members that were learnt without the fold of the row."""

    points: Integers  # (n_points,) which rows
    log_density: Floats  # (n_members, n_points, n_classes)
    log_density_of_pool: Floats  # (n_points, n_classes) sums with weights that were fitted to other rows

    def validate(self) -> None:
        """Refuse positions that are not in ascending order, and arrays of other shapes."""
        check_positions("points", self.points, LARGEST_INTEGER)
        if not self.points.size:
            raise ValueError("points are missing")
        check_array("log_density", self.log_density, (None, self.points.size, None))
        check_array("log_density_of_pool", self.log_density_of_pool, self.log_density.shape[1:])


@dataclass(frozen=True, eq=False)
class Pool:
    """Members and their weights."""

    members: Sequence[Member]  # classifiers by class densities, the heaviest first
    weights: Floats  # (n_members,) of their log densities
    temperatures: Floats  # (n_members,) at which each is calibrated on its own
    prior: Floats  # (n_classes,)
    prior_mixing: float  # share of probabilities given to the prior
    scores: PoolScores  # cross-validated
    table: dict[str, Any]  # columns about all members tried
    cross_fitted: CrossFitted  # log densities of training rows

    def validate(self) -> None:
        """Refuse weights that are not positive, and numbers of members or classes that differ."""
        n_members, n_classes = len(self.members), self.prior.size
        check_array("weights", self.weights, (n_members,), SMALLEST, 1e10)
        check_array("temperatures", self.temperatures, (n_members,), 1e-10, 1e10)
        check_number("prior_mixing", self.prior_mixing, 0.0, 1.0)
        check_shape("recall", self.scores.recall, (n_classes,))
        n_points = self.cross_fitted.points.size
        check_shape("log_density", self.cross_fitted.log_density, (n_members, n_points, n_classes))
        if not n_members or any(len(member.classes) != n_classes for member in self.members):
            raise ValueError("members lack classes")
        self._validate_table()

    def _validate_table(self) -> None:
        """Refuse a table of members that lacks a column, or has others than lists of names and numbers."""
        names = {"member", "scale", *_NUMBERS_OF_MEMBERS}
        if set(self.table) != names:
            raise ValueError(f"table has other columns than {', '.join(sorted(names))}")
        n_tried = len(self.table["member"])
        for name in ("member", "scale"):
            check_shape(name, self.table[name], (n_tried,))
        for identifier in self.table["member"]:
            kind_of(identifier)
        for name, (low, high) in _NUMBERS_OF_MEMBERS.items():
            check_array(name, self.table[name], (n_tried,), low, high)

    @property
    def refined(self) -> Bools:
        """(n_members,) whether bandwidths were fitted to labels; see `MemberKind`."""
        return np.array([kind_of(member.identifier).refined for member in self.members])

    def shares(self) -> dict[str, float]:
        """Share of each member in the pool, by its title, the heaviest first."""
        order = np.argsort(-self.table["share"], kind="stable").tolist()
        shares = ((kind_of(self.table["member"][m]).title, float(self.table["share"][m])) for m in order)
        return {title: share for title, share in shares if share > 0.0}

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Weighted sums (n_samples, n_classes) of the members' log densities."""
        log_density: Floats = self.weighted_sums(X, self.weights[np.newaxis], computation)[0]
        return log_density

    def weighted_sums(self, X: Floats, weights: Floats, computation: Computation) -> Floats:
        """The same with several sets of weights (n_sets, n_members): (n_sets, n_samples, n_classes)."""
        return weighted_sums((member.log_densities(X, computation) for member in self.members), weights)


def weighted_sums(log_densities: Iterable[Floats], weights: Floats) -> Floats:
    """Weighted sums (n_sets, n_samples, n_classes) over members, one of which is held at a time."""
    sums: list[Floats | float] = [0.0] * len(weights)
    for log_density, member_weights in zip(log_densities, weights.T, strict=True):
        for k, weight in enumerate(member_weights.tolist()):
            if weight > 0.0:  # a member without weight may have no rows of a class
                sums[k] = sums[k] + weight * log_density
    return np.array(sums)


@dataclass(frozen=True, eq=False)
class Compression:
    """What a pool keeps of a table in which some classes have more than `max_rows` rows."""

    held_out: LabelledRows  # rows of compressed classes that are in no cell, by which the pool is calibrated
    counts: Integers  # (n_data,) how many training rows each row of the model's `data` stands for
    n_rows: int  # how many training rows were given
    # (n_classes, 2, n_features) of all training rows, in a file, which does not keep them; None if they were
    # on a cluster
    ranges: Floats | None = None

    def validate(self) -> None:
        """Refuse counts below 1 and ranges without numbers."""
        check_array("counts", self.counts, (None,), 1, LARGEST_INTEGER)
        if self.ranges is not None:
            check_array("ranges", self.ranges, (None, 2, None), -np.inf, np.inf)


def as_training_rows(rows: LabelledRows) -> TrainingRows:
    """The rows that a model of compressed classes keeps, in place of the given rows."""
    groups = rows.group_ids if rows.grouped else None
    return TrainingRows(rows.X, rows.labels[rows.codes], rows.weights, rows.n_categories, groups)


@dataclass(frozen=True, eq=False, kw_only=True)
class PoolModel(LocalModel):
    """A pool of members, each with a density for each class."""

    pool: Pool  # members, weights and scores
    # of classes with more than `max_rows` rows, if there are any. Then `data` has the row nearest to the
    # center of each cell, with the weight of the cell, or a subsample
    compression: Compression | None = None

    def validate(self) -> None:
        """Refuse parts that do not belong together."""
        super().validate()
        if not np.array_equal(self.prior, self.pool.prior):
            raise ValueError("prior is not that of the pool")
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
            raise ValueError("numbers holds a number that no row has")
        check_shape("counts", compression.counts, (len(self.data.X),))
        if compression.ranges is not None:
            check_shape("ranges", compression.ranges, (self.labels.size, 2, self.n_features))

    def packed(self) -> PoolModel:
        """The model without rows that it repeats, as a file keeps it.

        Kernels lose their rows. Of compressed classes only the rows that samples are compared with are kept.
        """
        pool = replace(self.pool, members=[member.without_rows() for member in self.pool.members])
        if self.compression is None:
            return replace(self, pool=pool)
        X, y, *_ = self.training
        training = self.training._replace(X=X[:0], y=y[:0], weights=None, groups=None)
        compression = replace(self.compression, ranges=self.class_ranges)
        return replace(self, pool=pool, training=training, compression=compression)

    def unpacked(self) -> PoolModel:
        """The model with all rows that `packed` has left out."""
        pool = replace(self.pool, members=[member.on_rows(self.data) for member in self.pool.members])
        training = self.training if self.compression is None else as_training_rows(self.compared_rows)
        return replace(self, pool=pool, training=training)

    @property
    def prior_mixing(self) -> float:
        """Share of every probability that is given to the prior."""
        return self.pool.prior_mixing

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Weighted sums (n_samples, n_classes) of the members' log densities."""
        return self.pool.log_densities(X, computation)

    @cached_property
    def single_members(self) -> list[PoolModel]:
        """Each member on its own, at the temperature at which it is calibrated."""
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
        """All training rows that count, sorted by class; refused if the model has kept only some of them."""
        if self.compression is None:
            return self.data
        if not self.has_all_rows:
            raise ValueError(
                f"what is asked for needs all {self.n_rows} training rows, and the model has kept only "
                f"{len(self.training.X)} of them."
            )
        return LabelledRows.sort(self.training, self.labels)

    @property
    def n_rows(self) -> int:
        """How many training rows were given."""
        return super().n_rows if self.compression is None else self.compression.n_rows

    @cached_property
    def class_ranges(self) -> Floats | None:
        """Lowest and highest values of training rows; a file of compressed classes has kept them."""
        if self.compression is not None and self.compression.ranges is not None:
            return self.compression.ranges
        return super().class_ranges

    @property
    def kept_rows(self) -> Integers | None:
        """Positions of the training rows that a file keeps, among those that were given; None if all."""
        return None if self.compression is None else self.compared_rows.numbers

    def rows_behind(self, a: int) -> Integers:
        """How many training rows each row of a class in `data` stands for."""
        if self.compression is None:
            return super().rows_behind(a)
        counts: Integers = self.compression.counts[self.data.codes == a]
        return counts

    def examples(self, a: int) -> Examples:
        """Rows of a class to explain; for a compressed class, rows that are in no cell."""
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
        """Which of the compared rows are left out, one by one: the points of the search."""
        return self.pool.cross_fitted.points

    @cached_property
    def score_weights(self) -> Floats:
        """Weights (n_members,) of unscaled scores: member shares over spreads of log densities."""
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
        """Log densities and unscaled scores (n_samples, n_classes), in the time of one of them."""
        both = np.array([self.pool.weights, self.score_weights])
        return Estimates(*self.pool.weighted_sums(X, both, computation))

    def leave_out(self, points: Integers, computation: Computation) -> Estimates:
        """Estimates of rows without themselves, and without what was learnt from their fold."""
        kept = self.pool.cross_fitted
        positions = np.searchsorted(kept.points, points)
        unscaled_score = np.tensordot(self.score_weights, self._left_out[:, positions], 1)
        return Estimates(kept.log_density_of_pool[positions], unscaled_score)

    def leave_out_of(self, points: Integers, X: Floats, computation: Computation) -> Estimates:
        """Estimates of X, of which values may be missing, without the kernels of some rows."""
        return self.estimates_without(self.compared_rows.group_ids[points], X)

    def estimates_without(self, group_ids: Integers, X: Floats) -> Estimates:
        """Estimates of X by kernels without the rows of a group (n_samples,) for each of them."""
        both = np.array([self.pool.weights, self.score_weights])
        without = (self._without(member, group_ids, X) for member in self.pool.members)
        return Estimates(*weighted_sums(without, both))

    @cached_property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        used = np.zeros(self.data.X.shape[1], dtype=bool)
        for member in self.pool.members:
            for mixture in member.classes:
                used[mixture.used] = True
        return used

    @cached_property
    def _left_out(self) -> Floats:
        """Log densities (n_members, n_points, n_classes) of rows, each left out.

        Log densities with refined bandwidths have another level in each fold. So a pool that has nothing else
        uses the bandwidths of all rows.
        """
        kept = self.pool.cross_fitted
        if not self.pool.refined.all():
            return kept.log_density
        rows = self.compared_rows.X[kept.points]
        group_ids = self.compared_rows.group_ids[kept.points]
        return np.array([self._without(member, group_ids, rows) for member in self.pool.members])

    def _without(self, member: Member, group_ids: Integers, X: Floats) -> Floats:
        """Log densities (n_samples, n_classes) of X by a member without the group (n_samples,) of each."""
        with one_blas_thread():
            return finite_log_densities(member.log_densities_without(self.data, X, group_ids))

r"""Members of a pool: class densities that are mixtures of normal ones with a common precision.

In the units s of a member, which are monotone in each variable, the density of class y is

.. math::

    \log p(x \mid y) = \log \sum_i w_i \exp\bigl(-\tfrac12 \|B_y^T (s(x) - c_i)\|^2\bigr)
        - \log \sum_i w_i - \tfrac q2 \log 2 \pi + \log |B_y|

with centres :math:`c_i`, weights :math:`w_i` and a factor :math:`B_y` of q columns. A kernel density has a
centre for each row, a normal density a single one; between them the centres are the rows, pulled towards the
mean of their class.

**Marginals** are exact. Let A be the variables that are kept and J the others. The exponent is largest over
:math:`d_J` where :math:`B_A^T d_A + B_J^T d_J` is orthogonal to the rows of :math:`B_J`. So integrating J
out leaves the factor :math:`B_A N`, with N an orthonormal basis of the vectors orthogonal to these rows (the
Schur complement of :math:`B B^T`), and divides the density by the product of the singular values of
:math:`B_J`. Directions on which the density does not depend are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from corral.array_types import (
    LARGEST_COORDINATE,
    LARGEST_INTEGER,
    SMALLEST,
    Bools,
    Floats,
    Integers,
    check_array,
    check_number,
    check_positions,
)
from corral.data.missing import patterns
from corral.data.scaling import Scale
from corral.data.tiles import ClassRows, tile_density, unit_density
from corral.kernels import SMALL_TILE
from corral.parallel import Computation, for_each_class
from corral.pool.categories import LevelKernels
from corral.pool.general_densities import MixedMixture
from corral.pool.general_transforms import LARGEST_FACTOR, MixedFrame, check_invertible
from corral.pool.transforms import ClassFrame

# Singular values below this share of the largest one are rounding errors.
_RANK_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Mixture:
    """The density of one class in the units of a member.

    Attributes
    ----------
    variables : (n_used,) columns that take part; the others are uniform.
    centres : (n_centres, n_used); none if nothing is known of the class.
    weights : (n_centres,) or None if all centres count alike.
    factor : (n_used, n_axes) B.
    log_volume : logarithm of the determinant of B, and of the density of the other columns.
    mean : (n_used,) of the class.
    pull : by which factor differences of rows from it were multiplied to become centres.
    averaged : whether centres are made of averages of many rows.
    """

    variables: Integers
    centres: Floats
    weights: Floats | None
    factor: Floats
    log_volume: float
    mean: Floats
    pull: float
    averaged: bool = False

    @classmethod
    def of_rows(
        cls, scaled: Floats, weights: Floats | None, frame: ClassFrame, bandwidth: float, pull: float
    ) -> Mixture:
        """Put a kernel on each row of a class, pulled towards the mean; a pull of 0 leaves one centre."""
        log_volume = frame.log_volume - frame.factor.shape[1] * float(np.log(bandwidth))
        return cls.of_centres(
            scaled, weights, frame.variables, frame.factor / bandwidth, log_volume, frame.mean, pull
        )

    @classmethod
    def of_centres(
        cls,
        scaled: Floats,
        weights: Floats | None,
        variables: Integers,
        factor: Floats,
        log_volume: float,
        mean: Floats,
        pull: float,
        averaged: bool = False,
    ) -> Mixture:
        """Find the centres of scaled rows; the other parameters are the attributes."""
        differences = scaled[:, variables] - mean
        if pull == 0.0 and len(scaled):
            differences, weights = np.zeros((1, mean.size)), None
        return cls(variables, mean + pull * differences, weights, factor, log_volume, mean, pull, averaged)

    @classmethod
    def of_representatives(
        cls,
        centres: Floats,
        weights: Floats,
        spread: Floats,
        frame: ClassFrame,
        bandwidth: float,
        pull: float,
    ) -> Mixture:
        """Put a kernel on each of some averages of rows, and give it the spread that they have lost.

        Parameters
        ----------
        centres : (n_centres, n_features) averages of scaled rows.
        weights : (n_centres,)
        spread : (n_features, n_features) covariance of rows around their averages.
        frame, bandwidth, pull : as in `of_rows`.
        """
        factor = frame.factor / bandwidth
        lost = pull**2 * factor.T @ spread[np.ix_(frame.variables, frame.variables)] @ factor
        root = np.linalg.cholesky(np.eye(len(lost)) + lost)
        log_volume = frame.log_volume - factor.shape[1] * float(np.log(bandwidth))
        log_volume -= float(np.log(np.diag(root)).sum())
        wider: Floats = np.linalg.solve(root, factor.T).T
        return cls.of_centres(
            centres, weights, frame.variables, wider, log_volume, frame.mean, pull, averaged=True
        )

    def validate(self) -> None:
        """Refuse what no fit could have learnt."""
        n = self.variables.size
        check_positions("variables", self.variables, LARGEST_INTEGER)
        check_array("centres", self.centres, (None, n), -LARGEST_COORDINATE, LARGEST_COORDINATE)
        if self.weights is not None:
            check_array("weights", self.weights, (len(self.centres),), SMALLEST)
        check_array("factor", self.factor, (n, None), -LARGEST_FACTOR, LARGEST_FACTOR)
        check_invertible(self.factor)
        check_number("log_volume", self.log_volume)
        check_array("mean", self.mean, (n,), -LARGEST_COORDINATE, LARGEST_COORDINATE)
        check_number("pull", self.pull, 0.0, 1.0)

    def validate_for(self, level_counts: Integers, mixed: bool) -> None:
        """Refuse variables that the rows do not have, and rows that need another kind of density."""
        check_positions("variables", self.variables, level_counts.size)
        if mixed:
            raise ValueError("members contradict the rows")

    def without_rows(self) -> Mixture:
        """The density without its centres, which `on_rows` makes again."""
        return replace(self, centres=self.centres[:0], weights=None)

    def on_rows(self, scaled: Floats, weights: Floats | None) -> Mixture:
        """The same density with the centres of other rows."""
        return Mixture.of_centres(
            scaled,
            weights,
            self.variables,
            self.factor,
            self.log_volume,
            self.mean,
            self.pull,
            averaged=self.averaged,
        )

    @cached_property
    def _origin(self) -> Floats:
        """What coordinates are relative to, so that they keep their digits."""
        return self.centres.mean(axis=0) if len(self.centres) else np.zeros(self.variables.size)

    def _coordinates(self, rows: Floats) -> Floats:
        """Whitened rows, each with the same bits whatever other rows there are.

        BLAS rounds products of few rows in another way than those of many, and typicality compares the score
        of a row with those of training rows that may equal it.
        """
        coordinates: Floats = np.vecdot(
            (rows - self._origin)[:, np.newaxis], np.ascontiguousarray(self.factor.T)
        )
        return coordinates

    @cached_property
    def _rows(self) -> ClassRows:
        coordinates = self._coordinates(self.centres)
        tile_rows = SMALL_TILE if self.averaged else None
        return ClassRows.arrange(coordinates, self.weights, tile_rows=tile_rows)

    @property
    def size(self) -> int:
        """Numbers that an estimate reads."""
        return max(self._rows.tiles.size, 1)

    @property
    def used(self) -> Integers:
        """Columns that take part."""
        return self.variables

    def log_density(self, scaled: Floats) -> Floats:
        """Log densities (n_samples,) of scaled samples."""
        gaps = np.isnan(scaled[:, self.variables])
        if gaps.any():
            return self._integrated(scaled, gaps)
        if not self.factor.size:  # no variable is left, but something may be known of the class
            return np.full(len(scaled), self.log_volume if len(self.centres) else -np.inf)
        coordinates = self._coordinates(scaled[:, self.variables])
        if self.averaged:
            return unit_density(self._rows, coordinates) + self.log_volume
        of_axes: Floats = tile_density(self._rows, coordinates, np.ones(self.factor.shape[1]))
        return of_axes + self.log_volume

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the centres is made again: workers of a cluster get copies of models.
        return {of.name: getattr(self, of.name) for of in fields(self)}

    def _integrated(self, scaled: Floats, gaps: Bools) -> Floats:
        """Log densities of samples, some of which miss some of the variables."""
        log_density = np.empty(len(scaled))
        lacking = gaps.any(axis=1)
        log_density[~lacking] = self.log_density(scaled[~lacking])
        frame = self.general_frame
        if frame is None or not len(self.centres):
            for rows, missing in patterns(gaps[lacking]):
                marginal = self.marginal(np.delete(self.variables, missing))
                positions = np.flatnonzero(lacking)[rows]
                log_density[positions] = marginal.log_density(scaled[positions])
            return log_density
        # One pass for all combinations of missing values: a marginal for each of them takes far longer.
        used = replace(frame, variables=np.arange(self.variables.size), mean=self._origin)
        kernels_of_rows = MixedMixture.of_rows(self.centres, self.weights, used, 1.0, 1.0)
        log_density[lacking] = kernels_of_rows.log_density(scaled[np.ix_(lacking, self.variables)])
        log_density[lacking] += self.log_volume - self.log_determinant
        return log_density

    @cached_property
    def general_frame(self) -> MixedFrame | None:
        """The coordinates as tables with missing values have them; None if the factor is not square."""
        n_used, n_axes = self.factor.shape
        if n_used != n_axes or not n_used:
            return None
        return MixedFrame(
            self.variables,
            self.mean,
            self.factor if self.has_covariances else np.diag(self.factor),
            np.zeros(n_used),
            np.ones(n_used),
            LevelKernels(np.empty(0, dtype=np.int64), [], None),
        )

    @property
    def has_covariances(self) -> bool:
        """Whether the factor mixes variables."""
        n_used, n_axes = self.factor.shape
        return n_used != n_axes or not np.array_equal(self.factor, np.diag(np.diag(self.factor)))

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of a square factor."""
        return float(np.linalg.slogdet(self.factor)[1])

    def marginal(self, kept: Integers) -> Mixture:
        """The density of some of the variables, the others integrated out."""
        is_kept = np.isin(self.variables, kept)
        if is_kept.all():
            return self
        _, values, directions = np.linalg.svd(self.factor[~is_kept])
        rank = int((values > _RANK_TOLERANCE * values.max(initial=0.0)).sum())
        return replace(
            self,
            variables=self.variables[is_kept],
            centres=self.centres[:, is_kept],
            mean=self.mean[is_kept],
            factor=self.factor[is_kept] @ directions[rank:].T,
            log_volume=self.log_volume - float(np.log(values[:rank]).sum()),
        )


@dataclass(frozen=True, eq=False)
class Member:
    """A classifier's densities of all classes.

    Attributes
    ----------
    name : what kind it is.
    scale : its units.
    classes : the density of each class.
    """

    name: str
    scale: Scale
    classes: Sequence[Mixture | MixedMixture]

    def without_rows(self) -> Member:
        """The member without the rows of its kernels."""
        return replace(self, classes=[density.without_rows() for density in self.classes])

    @property
    def sees_correlations(self) -> bool:
        """Whether the density of a variable depends on the others beyond their kernels."""
        return any(mixture.has_covariances for mixture in self.classes)

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Log densities (n_samples, n_classes) of raw samples, in the member's units."""
        scaled = self.scale.transform(X)
        log_density = np.empty((len(X), len(self.classes)))

        def estimate(y: int, chunk: slice) -> None:
            log_density[chunk, y] = self.classes[y].log_density(scaled[chunk])

        sizes = [mixture.size for mixture in self.classes]
        n_classes = len(self.classes)
        for_each_class(estimate, [len(X)] * n_classes, sizes, ["fixed"] * n_classes, self.name, computation)
        return log_density

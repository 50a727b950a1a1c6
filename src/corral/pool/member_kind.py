"""What a kind of member is: all that the search, the model and model files need of it.

A member is a classifier by class densities. To add one, write a `MemberKind` and, unless a `Mixture` will do,
the `MemberDensity` that it builds, and list the kind in `members.MEMBER_KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import ScaleKind
from corral.pool.densities import MemberDensity
from corral.pool.fold_plan import N_FOLDS
from corral.pool.scaled_rows import ScaledRows

Learnt = TypeVar("Learnt")


class Kernels(NamedTuple):
    """Bandwidths and shrinkages (n_kernels,) that are tried; see `densities.Mixture`."""

    bandwidths: Floats
    shrinkages: Floats


class MemberKind(ABC, Generic[Learnt]):
    """A kind of member: how it is learnt, tried and built.

    Attributes
    ----------
    identifier : its name in model files, which must not change.
    scale : kind of scale that its rows are on.
    n_parts : into how many parts the rows are divided, each of which is predicted without its labels.
    refined : whether bandwidths are fitted to labels. Then log densities change their level from fold to
        fold, and only differences between classes compare.
    """

    identifier: str
    scale: ScaleKind
    n_parts: int = N_FOLDS
    refined: bool = False

    @property
    @abstractmethod
    def title(self) -> str:
        """Its name in tables and progress bars."""

    @property
    def shared_fit(self) -> Hashable:
        """Kinds with equal values learn the same from rows, once for all of them."""
        return self.identifier

    def n_divisions(self, most: int) -> int:
        """How many of the divisions into parts, at most so many, are worth their time."""
        return most

    def for_rows(self, n_rows: int, n_columns: int) -> MemberKind[Learnt]:
        """The kind that suits a table of so many rows and columns."""
        return self

    def kernels(self) -> Kernels:
        """What is tried; a kind without kernels tries one of them, and does not look at it."""
        return Kernels(np.ones(1), np.ones(1))

    @abstractmethod
    def learn(self, rows: ScaledRows, prior: Floats, seed: int) -> Learnt:
        """Learn from rows and their labels, whatever the bandwidth.

        Parameters
        ----------
        rows : all rows, or those outside of a fold.
        prior : (n_classes,)
        seed : of what is random.
        """

    @abstractmethod
    def build(
        self, learnt: Learnt, data: LabelledRows, scaled: Floats, bandwidth: float, shrinkage: float
    ) -> Sequence[MemberDensity]:
        """Build the density of each class.

        Parameters
        ----------
        learnt : see `learn`.
        data, scaled : the rows, and (n_rows, n_features) on the scale of the member.
        bandwidth, shrinkage : one of `kernels`.
        """

    def left_out(
        self, learnt: Learnt, data: LabelledRows, scaled: Floats, points: Integers, kernels: Kernels
    ) -> Floats:
        """Log densities (n_kernels, n_points, n_classes) of some rows, without the rows of their groups.

        `learnt` is learnt outside of their fold. That is enough for densities without kernels on rows.

        Parameters
        ----------
        learnt, data, scaled : see `build`.
        points : (n_points,) which rows are predicted.
        kernels : of all kinds that learn the same.
        """
        log_density = np.empty((kernels.bandwidths.size, points.size, data.labels.size))
        for k, kernel in enumerate(zip(*kernels, strict=True)):
            for y, density in enumerate(self.build(learnt, data, scaled, *kernel)):
                log_density[k, :, y] = density.log_density(scaled[points])
        return log_density

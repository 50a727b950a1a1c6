"""The interface of a kind of member, which the search, the model and model files use.

A member is a classifier by class densities. A kind is a recipe for fitting members. To add a kind, write a
subclass of `MemberKind` and list it in `members.MEMBER_KINDS`. If its densities are not of the class
`Mixture`, also write a subclass of `MemberDensity`.
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
    """Kernels among which the search chooses: (n_kernels,) bandwidths and shrinkages.

    `densities.Mixture` explains bandwidth and shrinkage.
    """

    bandwidths: Floats
    shrinkages: Floats


class MemberKind(ABC, Generic[Learnt]):
    """A kind of member: how members of this kind are fitted, cross-fitted and built.

    Attributes
    ----------
    identifier : name of the kind in model files, which must not change.
    scale : kind of scale on which the member reads rows.
    n_parts : number of parts of a division of the rows. Each part is predicted by a fit without this part.
    refined : whether bandwidths are fitted to labels. Then an additive constant of log densities differs from
        fold to fold, and only differences between classes are comparable.
    """

    identifier: str
    scale: ScaleKind
    n_parts: int = N_FOLDS
    refined: bool = False

    @property
    @abstractmethod
    def title(self) -> str:
        """Name of the member in tables and progress bars."""

    @property
    def shared_fit(self) -> Hashable:
        """Key of what `learn` returns: kinds with equal keys share one call of `learn`."""
        return self.identifier

    def n_divisions(self, most: int) -> int:
        """Return how many divisions of the rows are used, at most `most`."""
        return most

    def for_rows(self, n_rows: int, n_columns: int) -> MemberKind[Learnt]:
        """Return the kind adapted to a table with this number of rows and columns."""
        return self

    def kernels(self) -> Kernels:
        """Return the kernels to choose from; a kind without kernels returns one, which it ignores."""
        return Kernels(np.ones(1), np.ones(1))

    @abstractmethod
    def learn(self, rows: ScaledRows, prior: Floats, seed: int) -> Learnt:
        """Fit everything that does not depend on the bandwidth, such as transforms.

        Parameters
        ----------
        rows : the rows to fit: all rows, or the rows outside a fold.
        prior : (n_classes,) prior probabilities.
        seed : random seed.
        """

    @abstractmethod
    def build(
        self, learnt: Learnt, data: LabelledRows, scaled: Floats, bandwidth: float, shrinkage: float
    ) -> Sequence[MemberDensity]:
        """Build the density of each class.

        Parameters
        ----------
        learnt : result of `learn`.
        data : the rows.
        scaled : (n_rows, n_features) the rows on the scale of the member.
        bandwidth, shrinkage : the chosen kernel, an element of `kernels`.

        Returns
        -------
        n_classes densities.
        """

    def left_out(
        self, learnt: Learnt, data: LabelledRows, scaled: Floats, points: Integers, kernels: Kernels
    ) -> Floats:
        """Return log densities (n_kernels, n_points, n_classes) of the rows at `points`, each left out.

        `learnt` comes from rows outside the fold of the points. A kind with kernels on rows must override
        this method, so that each point is also estimated without the kernels of its group.

        Parameters
        ----------
        learnt, data, scaled : see `build`.
        points : (n_points,) positions of the rows to predict.
        kernels : the kernels of all kinds that share the fit.
        """
        log_density = np.empty((kernels.bandwidths.size, points.size, data.labels.size))
        for k, kernel in enumerate(zip(*kernels, strict=True)):
            for y, density in enumerate(self.build(learnt, data, scaled, *kernel)):
                log_density[k, :, y] = density.log_density(scaled[points])
        return log_density

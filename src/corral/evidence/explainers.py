"""How the densities of a model are looked at, variable by variable and set by set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.tiles import GeneralRows
from corral.evidence.conditionals import (
    UntiledClass,
    conditional_log_densities,
    general_conditionals,
    member_conditionals,
)
from corral.evidence.marginals import KernelClass, member_marginals
from corral.evidence.shapley import Coalitions
from corral.model import LocalModel
from corral.parallel import Computation
from corral.pool.categories import LevelCounts
from corral.pool.model import PoolModel
from corral.rodeo.density import local_density
from corral.rodeo.general_descent import NO_UNIT
from corral.rodeo.model import FittedModel

# Positions of samples, and for each of them that of a training row whose unit is left out of all classes, or
# -1, to log densities (n_samples, n_sets).
Marginals = Callable[[Integers, Integers], Floats]


class Explainer(ABC):
    """Looks at samples variable by variable, in the densities of a model.

    Attributes
    ----------
    log_density : (n_samples, n_classes) of the samples.
    bandwidths : (n_samples, n_classes, n_features) at the samples, or None where they have no meaning.
    """

    log_density: Floats
    bandwidths: Floats | None

    @property
    @abstractmethod
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""

    @abstractmethod
    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class, of each of its densities."""

    @abstractmethod
    def marginals(self, a: int, coalitions: Coalitions) -> Marginals:
        """Prepare the densities of sets of variables in one class."""

    @abstractmethod
    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class.

        Parameters
        ----------
        samples : (n_some,) their positions.
        a : number of the class.

        Returns
        -------
        conditional : (n_some, n_features) log density of each variable given all others.
        shares : (n_some, n_rows) the rows' shares of the density.
        """


class RodeoExplainer(Explainer):
    """Looks at samples in densities whose bandwidths the Rodeo chooses.

    Parameters
    ----------
    model : FittedModel
    X : (n_samples, n_features) samples.
    computation : threads and progress.
    own, of_class : (n_samples,) for training rows, their positions in their classes, and numbers of these;
        there bandwidths are those that the Rodeo chooses without the row.
    """

    def __init__(
        self,
        model: FittedModel,
        X: Floats,
        computation: Computation,
        own: Integers | None = None,
        of_class: Integers | None = None,
    ) -> None:
        self.log_density, h = model.estimate(X, computation, bandwidths=True)
        self._scaled = model.scale.transform(X)
        self._data = model.data
        self._widths = model.bandwidths.widths
        self._densities = model.densities
        self._untiled: dict[int, UntiledClass] = {}
        self._used = np.zeros(X.shape[1], dtype=bool)
        for density in model.densities:
            self._used[density.plan.variables] = True
        for a, density in enumerate(model.densities):
            if own is None or of_class is None or density.plan.fixed is not None:
                continue
            at = np.flatnonzero(of_class == a)
            if at.size:
                used = self._scaled[np.ix_(at, density.plan.variables)]
                left, steps = local_density(
                    density.rows, density.grid, used, model.settings.rodeo.update, own[at]
                )
                _, h[at, a] = density.completed(left, density.grid[steps], X.shape[1])
        self.bandwidths = h

    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class."""
        assert self.bandwidths is not None
        rows = self._rows(a)
        conditional = np.empty((samples.size, self._scaled.shape[1]))
        shares = np.zeros((samples.size, len(rows.X)))
        of_class = self._densities[a].rows
        for k, i in enumerate(samples.tolist()):
            x, h = self._scaled[i], self.bandwidths[i, a]
            if isinstance(of_class, GeneralRows) or np.isnan(x).any():
                general = of_class if isinstance(of_class, GeneralRows) else GeneralRows.of(of_class)
                conditional[k], shares[k] = general_conditionals(x, h, general, rows, self._widths)
            else:
                conditional[k], shares[k] = conditional_log_densities(x, h, rows, self._widths)
        return conditional, shares

    def _rows(self, a: int) -> UntiledClass:
        if a not in self._untiled:
            self._untiled[a] = UntiledClass.of(self._densities[a])
        return self._untiled[a]

    @property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        return self._used

    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class."""
        return [[density.rows.size] for density in self._densities]

    def marginals(self, a: int, coalitions: Coalitions) -> Marginals:
        """Prepare the densities of sets of variables in one class."""
        untiled, of_class = self._rows(a), self._densities[a].rows
        general = of_class if isinstance(of_class, GeneralRows) else None
        kernel_class = KernelClass(
            untiled.X,
            untiled.log_weights,
            general,
            untiled.plan.variables,
            np.log(self._widths),
        )
        coalitions.walk(untiled.plan.variables)  # once, before several threads ask for it
        at = self._data.members()[a]

        def log_densities(samples: Integers, left_out: Integers) -> Floats:
            assert self.bandwidths is not None
            x, h = self._scaled[samples], self.bandwidths[samples, a]
            return kernel_class.marginals(x, h, coalitions, self._data.own_rows_in(at, left_out))

        return log_densities


class PoolExplainer(Explainer):
    """Looks at samples in the densities of a pool: evidence and shares are weighted sums over its members.

    Parameters
    ----------
    model : PoolModel
    X : (n_samples, n_features) samples.
    computation : threads and progress.
    """

    def __init__(self, model: PoolModel, X: Floats, computation: Computation) -> None:
        self.log_density = model.log_densities(X, computation)
        self.bandwidths = None
        self._scaled = [member.scale.transform(X) for member in model.pool.members]
        self._X = X
        self._pool = model.pool
        self._data = model.data

    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class."""
        at = self._data.members()[a]
        weights = self._data.all_weights[at]
        conditional = np.zeros((samples.size, self._scaled[0].shape[1]))
        shares = np.zeros((samples.size, at.size))
        for member, weight, scaled in zip(self._pool.members, self._pool.weights, self._scaled, strict=True):
            found, share = member_conditionals(member.classes[a], scaled[samples], weights)
            conditional += weight * found
            shares += weight * share
        return conditional, shares / self._pool.weights.sum()

    @property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        used = np.zeros(self._scaled[0].shape[1], dtype=bool)
        for member in self._pool.members:
            for mixture in member.classes:
                used[mixture.used] = True
        return used

    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class, of each of its densities."""
        of_members = [[mixture.size for mixture in member.classes] for member in self._pool.members]
        return [list(sizes) for sizes in zip(*of_members, strict=True)]

    def marginals(self, a: int, coalitions: Coalitions) -> Marginals:
        """Prepare the densities of sets of variables in one class."""
        at = self._data.members()[a]
        weights = self._data.all_weights[at]
        units = self._data.units
        of_members = [
            member_marginals(member.classes[a], weights, units[at], coalitions)
            for member in self._pool.members
        ]
        level_counts = self._level_counts

        def log_densities(samples: Integers, left_out: Integers) -> Floats:
            found = np.zeros((samples.size, len(coalitions.members)))
            out, log_shares = np.where(left_out >= 0, units[left_out], NO_UNIT), None
            if level_counts is not None and (left_out >= 0).any():
                log_shares = level_counts.log_shares_without(out, self._X[samples])[a]
            for weight, scaled, density in zip(self._pool.weights, self._scaled, of_members, strict=True):
                found += weight * density(scaled[samples], out, log_shares)
            return found

        return log_densities

    @cached_property
    def _level_counts(self) -> LevelCounts | None:
        """How often levels occur, or None if there are none."""
        return LevelCounts(self._data) if self._data.level_counts.any() else None


def explainer_of(
    model: LocalModel,
    X: Floats,
    computation: Computation,
    own: Integers | None = None,
    of_class: Integers | None = None,
) -> Explainer:
    """Look at samples in the densities of a model; see `RodeoExplainer`."""
    if isinstance(model, PoolModel):
        return PoolExplainer(model, X, computation)
    assert isinstance(model, FittedModel)
    return RodeoExplainer(model, X, computation, own, of_class)

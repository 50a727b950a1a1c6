"""How the densities of a model are looked at, variable by variable and set by set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.conformal.typicality import Estimates
from corral.evidence.kernel_class import KernelClass
from corral.evidence.shapley import Coalitions
from corral.model import Examples, LocalModel
from corral.parallel import Computation, on_threads
from corral.pool.categories import LevelCounts
from corral.pool.model import PoolModel
from corral.rodeo.factors import NO_GROUP
from corral.rodeo.model import FittedModel

# Samples that are looked at together, and terms of kernels that are held at once.
BLOCK = 256
_MOST_TERMS = 100_000

# Positions of samples to estimates (n_samples, n_sets).
SetEstimates = Callable[[Integers], Estimates]


AnyModel = TypeVar("AnyModel", bound=LocalModel)


class Explainer(ABC, Generic[AnyModel]):
    """Looks at samples variable by variable, in the densities of a model.

    Parameters
    ----------
    model : what has been learnt.
    X : (n_samples, n_features) samples.
    computation : threads and progress.
    estimates : of the samples, if they are known.
    examples : the samples, if they are training rows: kernels of their units are left out of sets.
    """

    def __init__(
        self,
        model: AnyModel,
        X: Floats,
        computation: Computation,
        estimates: Estimates | None = None,
        examples: Examples | None = None,
    ) -> None:
        self.model = model
        self.X = X
        self.computation = computation
        self.examples = examples
        self.left_out: Integers = np.full(len(X), -1) if examples is None else examples.left_out
        self._given = estimates

    @cached_property
    def estimates(self) -> Estimates:
        """Log densities and likenesses (n_samples, n_classes) of the samples, with their bandwidths."""
        return self._evaluate() if self._given is None else self._given

    @property
    @abstractmethod
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""

    @abstractmethod
    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class, of each of its densities."""

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

    def of_sets(self, a: int, samples: Integers, coalitions: Coalitions) -> Estimates:
        """Estimates (n_some, n_sets) of some samples in one class, for each of the sets of variables."""
        found = Estimates(*np.empty((2, samples.size, len(coalitions.members))))
        marginals = self._marginals(a, coalitions)

        def estimate(block: slice) -> None:
            found.log_density[block], found.likeness[block], _ = marginals(samples[block])

        step = int(np.clip(_MOST_TERMS // max(self.sizes()[a]), 1, BLOCK))
        blocks = (slice(first, first + step) for first in range(0, samples.size, step))
        list(on_threads((partial(estimate, block) for block in blocks), self.computation.n_jobs))
        return found

    @abstractmethod
    def _evaluate(self) -> Estimates:
        """Evaluate the densities at the samples."""

    @abstractmethod
    def _marginals(self, a: int, coalitions: Coalitions) -> SetEstimates:
        """Prepare the densities of sets of variables in one class, for several threads."""


class RodeoExplainer(Explainer[FittedModel]):
    """Looks at samples in densities whose bandwidths the Rodeo chooses, at a training row without the row."""

    def _evaluate(self) -> Estimates:
        own = None
        if self.examples is not None:
            codes = self.examples.codes
            own = [np.where(codes == a, self.examples.own, -1) for a in range(self.model.labels.size)]
        return self.model.estimates(self.X, self.computation, bandwidths=True, own=own)

    @property
    def _bandwidths(self) -> Floats:
        assert self.estimates.bandwidths is not None
        return self.estimates.bandwidths

    @cached_property
    def _scaled(self) -> Floats:
        return self.model.scale.transform(self.X)

    @cached_property
    def _classes(self) -> list[KernelClass]:
        log_widths = np.log(self.model.bandwidths.widths)
        return [KernelClass(density, log_widths) for density in self.model.densities]

    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class."""
        conditional = np.empty((samples.size, self.X.shape[1]))
        shares = np.zeros((samples.size, self.model.densities[a].rows.n_rows))
        for k, i in enumerate(samples.tolist()):
            x, h = self._scaled[i], self._bandwidths[i, a]
            conditional[k], shares[k] = self._classes[a].conditionals(x, h)
        return conditional, shares

    @cached_property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        used = np.zeros(self.X.shape[1], dtype=bool)
        for density in self.model.densities:
            used[density.plan.variables] = True
        return used

    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class."""
        return [[density.rows.size] for density in self.model.densities]

    def _marginals(self, a: int, coalitions: Coalitions) -> SetEstimates:
        kernel_class, data = self._classes[a], self.model.data
        coalitions.walk(kernel_class.used)  # once, before several threads ask for it
        scaled, h = self._scaled, self._bandwidths[:, a]
        own = data.own_rows_in(data.members()[a], self.left_out)

        def estimate(samples: Integers) -> Estimates:
            log_density = kernel_class.marginals(scaled[samples], h[samples], coalitions, own[samples])
            return Estimates(log_density, log_density)

        return estimate


class PoolExplainer(Explainer[PoolModel]):
    """Looks at samples in the densities of a pool: evidence and shares are weighted sums over its members."""

    def _evaluate(self) -> Estimates:
        return self.model.estimates(self.X, self.computation)

    @cached_property
    def _scaled(self) -> list[Floats]:
        """The samples as each member scales them; several members share a scale."""
        scales = [member.scale for member in self.model.pool.members]
        by_scale = {scale: scale.transform(self.X) for scale in set(scales)}
        return [by_scale[scale] for scale in scales]

    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class."""
        pool, n_rows = self.model.pool, int((self.model.data.codes == a).sum())
        conditional = np.zeros((samples.size, self.X.shape[1]))
        shares = np.zeros((samples.size, n_rows))
        for member, weight, scaled in zip(pool.members, pool.weights, self._scaled, strict=True):
            found, share = member.classes[a].conditionals(scaled[samples])
            conditional += weight * found
            shares += weight * share
        return conditional, shares / pool.weights.sum()

    @property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        return self.model.used

    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class, of each of its densities."""
        of_members = [[mixture.size for mixture in member.classes] for member in self.model.pool.members]
        return [list(sizes) for sizes in zip(*of_members, strict=True)]

    def _marginals(self, a: int, coalitions: Coalitions) -> SetEstimates:
        data, members = self.model.data, self.model.pool.members
        at, units = data.members()[a], data.units
        out = np.where(self.left_out >= 0, units[self.left_out], NO_GROUP)
        of_members = [member.classes[a].marginals(coalitions, units[at]) for member in members]
        counts, in_scales = self._level_counts, self._scaled

        def estimate(samples: Integers) -> Estimates:
            sums = np.zeros((2, samples.size, len(coalitions.members)))
            log_shares = None
            if counts is not None and (self.left_out[samples] >= 0).any():
                log_shares = counts.log_shares_without(out[samples], self.X[samples])[a]
            both = zip(self.model.pool.weights, self.model.likeness_weights, strict=True)
            for of_member, scaled, density in zip(both, in_scales, of_members, strict=True):
                log_density = density(scaled[samples], out[samples], log_shares)
                for k, weight in enumerate(of_member):
                    if weight > 0.0:  # a member without weight may have no rows of a class
                        sums[k] += weight * log_density
            return Estimates(*sums)

        return estimate

    @cached_property
    def _level_counts(self) -> LevelCounts | None:
        """How often levels occur, or None if there are none."""
        return LevelCounts(self.model.data) if self.model.data.level_counts.any() else None


AnyExplainer = PoolExplainer | RodeoExplainer


def explainer_of(
    model: LocalModel,
    X: Floats,
    computation: Computation,
    estimates: Estimates | None = None,
    examples: Examples | None = None,
) -> AnyExplainer:
    """Look at samples in the densities of a model; see `Explainer`."""
    if isinstance(model, PoolModel):
        return PoolExplainer(model, X, computation, estimates, examples)
    assert isinstance(model, FittedModel)
    has_bandwidths = estimates is not None and estimates.bandwidths is not None
    return RodeoExplainer(model, X, computation, estimates if has_bandwidths else None, examples)

"""The registry of the kinds of members, and fitted members."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import Scale
from corral.parallel import Computation, for_each_class
from corral.pool.densities import MemberDensity
from corral.pool.kernel_members import KERNEL_MEMBERS
from corral.pool.member_kind import MemberKind

AnyKind = MemberKind[Any]

# The registry: every kind that a search tries. A new kind is added here.
MEMBER_KINDS: list[AnyKind] = [*KERNEL_MEMBERS]


def kind_of(identifier: str) -> AnyKind:
    """Return the kind with this identifier.

    Raises
    ------
    ValueError
        If no kind has this identifier.
    """
    for kind in MEMBER_KINDS:
        if kind.identifier == identifier:
            return kind
    raise ValueError(f"no kind of member has the identifier {identifier!r}")


def by_shared_fit(kinds: Sequence[AnyKind]) -> list[list[AnyKind]]:
    """Group the kinds that share one fit; see `MemberKind.shared_fit`."""
    together: dict[Hashable, list[AnyKind]] = {}
    for kind in kinds:
        together.setdefault(kind.shared_fit, []).append(kind)
    return list(together.values())


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted member: a scale, and on this scale a density of each class."""

    identifier: str  # identifier of the kind of the member
    scale: Scale  # transforms raw rows to the scale of the densities
    classes: Sequence[MemberDensity]  # n_classes densities

    def validate(self) -> None:
        """Raise ValueError if no kind has this identifier."""
        kind_of(self.identifier)

    @property
    def title(self) -> str:
        """Name of the member in tables and progress bars."""
        return kind_of(self.identifier).title

    def without_rows(self) -> Member:
        """Return the member without training rows, as a model file keeps it."""
        return replace(self, classes=[density.without_rows() for density in self.classes])

    def on_rows(self, data: LabelledRows) -> Member:
        """Return the member with the training rows that `without_rows` has removed."""
        scaled = self.scale.transform(data.X)
        by_class = zip(self.classes, data.members(), strict=True)
        return replace(
            self, classes=[density.on_rows(scaled[rows], data.weights_of(rows)) for density, rows in by_class]
        )

    @property
    def sees_correlations(self) -> bool:
        """Whether the kernels of at least one class have covariances between variables."""
        return any(density.has_covariances for density in self.classes)

    def log_densities(self, X: Floats, computation: Computation) -> Floats:
        """Return log densities (n_samples, n_classes) of raw samples (n_samples, n_features)."""
        scaled = self.scale.transform(X)
        log_density = np.empty((len(X), len(self.classes)))

        def estimate(y: int, chunk: slice) -> None:
            log_density[chunk, y] = self.classes[y].log_density(scaled[chunk])

        sizes = [density.size for density in self.classes]
        n_classes = len(self.classes)
        for_each_class(estimate, [len(X)] * n_classes, sizes, ["fixed"] * n_classes, self.title, computation)
        return log_density

    def log_densities_without(self, data: LabelledRows, X: Floats, group_ids: Integers) -> Floats:
        """Return log densities (n_samples, n_classes) of raw samples, each without a group of rows.

        Sample i is estimated without the kernels of the rows of `data` with group id `group_ids[i]`. The
        transforms are not fitted again.
        """
        scaled, log_density = self.scale.transform(X), np.empty((len(X), len(self.classes)))
        for y, (density, rows) in enumerate(zip(self.classes, data.members(), strict=True)):
            log_density[:, y] = density.log_density_without(scaled, data.group_ids[rows], group_ids)
        return log_density

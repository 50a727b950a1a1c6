r"""Kinds of members whose class densities are kernels on the rows, in the coordinates of a transform.

Shrunk kernels: the differences of the rows of a class from their mean are multiplied by
:math:`a = \sqrt{1 - h^2}`, and each row gets a kernel of bandwidth h. This keeps the covariance of the class
(West, 1993). With h = 1 the density is a normal density, with a small h nearly a kernel density of the rows.
Normal densities with a shared covariance make a linear discriminant, and normal densities with one covariance
for each class make a quadratic discriminant. Normal densities are kinds of their own, because in small tables
the log loss does not reliably choose between normal densities and kernels.

Plain kernels: kernels on the rows without shrinkage, with the same bandwidth for all variables. Refined
kernels have one bandwidth for each variable (see `bandwidths`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import ScaleKind
from corral.pool.bandwidths import Refinement
from corral.pool.densities import Mixture
from corral.pool.exponents import KernelRows
from corral.pool.member_kind import Kernels, MemberKind
from corral.pool.scaled_rows import ScaledRows
from corral.pool.transforms import ClassTransform, Covariance, learn_transforms
from corral.pool.variable_selection import choose_variables

# Bandwidths of shrunk kernels, as multiples of the standard deviations of the class.
_BANDWIDTHS = (0.25, 0.4, 0.55, 0.7, 0.85)

# Bandwidths of plain kernels are powers of two, as multiples of the ranges of the variables; these are the
# exponents. Tables with at least _ROWS_FOR_FINE_KERNELS rows also have smaller exponents, down to about the
# distance between neighboring rows, but not below _LEAST_EXPONENT.
_FIRST_EXPONENT, _LAST_EXPONENT, _EXPONENT_STEP = -4.5, 0.5, 0.5
_LEAST_EXPONENT = -8.0
_ROWS_FOR_FINE_KERNELS = 2000

# Factors by which refined bandwidths are multiplied: they were fitted to a subsample of the rows.
_FACTORS = 2.0 ** np.arange(-0.75, 0.5, 0.25)

# One fit of refined bandwidths takes as long as the fits of all other members together. Therefore there are
# fewer parts than folds, and only one in _DIVISIONS_PER_REFINED divisions of the rows is used.
_REFINE_PARTS = 3
_DIVISIONS_PER_REFINED = 3

# Parts of titles.
_KERNELS, _DENSITIES = "kernels", "normal densities"
_OWN, _SHARED = "along the covariance of each class", "along the shared covariance"
_VARIANCES, _SELECTED = "along the variances of each class", "on the variables of each class"
_SCALES: dict[ScaleKind, str] = {
    "score": "normal scores",
    "standard": "standard scale",
    "rank": "rank scale",
    "range": "range scale",
}


@dataclass(frozen=True)
class KernelMember(MemberKind[list[ClassTransform]]):
    """Kernels on the rows, with the same bandwidth in all coordinates of a transform.

    Attributes
    ----------
    identifier, scale : see `MemberKind`.
    name : name of the densities in the title.
    covariance : kind of transform, see `transforms.learn_transforms`.
    """

    identifier: str
    name: str
    scale: ScaleKind
    covariance: Covariance = "none"

    @property
    def title(self) -> str:
        """Name of the densities and of the scale."""
        return f"{self.name}, {_SCALES[self.scale]}"

    @property
    def shared_fit(self) -> Hashable:
        """Scale and kind of transform, which determine what `learn` returns."""
        return self.scale, self.covariance

    def learn(self, rows: ScaledRows, prior: Floats, seed: int) -> list[ClassTransform]:
        """Fit the transform of each class."""
        data = rows.data
        return learn_transforms(
            self.covariance,
            rows.scaled[self.scale],
            data.codes,
            data.weights,
            prior.size,
            choose_variables(rows),
            data.category_counts,
        )

    def build(
        self,
        learnt: list[ClassTransform],
        data: LabelledRows,
        scaled: Floats,
        bandwidth: float,
        shrinkage: float,
    ) -> list[Mixture]:
        """Return a mixture for each class, with a kernel on each row."""
        return [
            Mixture(scaled[rows], data.weights_of(rows), transform, float(bandwidth), float(shrinkage))
            for transform, rows in zip(learnt, data.members(), strict=True)
        ]

    def left_out(
        self,
        learnt: list[ClassTransform],
        data: LabelledRows,
        scaled: Floats,
        points: Integers,
        kernels: Kernels,
    ) -> Floats:
        """Return log densities (n_kernels, n_points, n_classes) by kernels on the rows of other groups."""
        weights, group_ids, x = data.all_weights, data.group_ids, scaled[points]
        log_density = np.empty((kernels.bandwidths.size, points.size, len(learnt)))
        for y, (transform, rows) in enumerate(zip(learnt, data.members(), strict=True)):
            kernel_rows = KernelRows(transform, scaled[rows], weights[rows])
            log_density[:, :, y] = kernel_rows.log_densities(x, *kernels, group_ids[rows], group_ids[points])
        return log_density


@dataclass(frozen=True)
class ShrunkKernels(KernelMember):
    """Kernels on rows that are shrunk towards the mean of their class."""

    # Bandwidths to choose from. With bandwidth 1, all rows of a class share one kernel, a normal density.
    bandwidths: tuple[float, ...] = (*_BANDWIDTHS, 1.0)

    def kernels(self) -> Kernels:
        """Return the bandwidths, and the shrinkages that keep the covariance of a class."""
        bandwidths = np.array(self.bandwidths)
        return Kernels(bandwidths, np.sqrt(1.0 - bandwidths**2))


@dataclass(frozen=True)
class PlainKernels(KernelMember):
    """Kernels on the rows without shrinkage, with the same bandwidth for all variables."""

    n_finer: int = 0  # number of additional bandwidths below the smallest bandwidth for small tables

    def for_rows(self, n_rows: int, n_columns: int) -> PlainKernels:
        """Add bandwidths down to the distance between neighboring rows, because clusters may be small."""
        if n_rows < _ROWS_FOR_FINE_KERNELS:
            return self
        neighbour = max(-np.log2(n_rows) / max(n_columns, 1), _LEAST_EXPONENT)
        return replace(self, n_finer=max(int((_FIRST_EXPONENT - neighbour) / _EXPONENT_STEP), 0))

    def kernels(self) -> Kernels:
        """Return bandwidths that are powers of two, without shrinkage."""
        first = _FIRST_EXPONENT - self.n_finer * _EXPONENT_STEP
        bandwidths = 2.0 ** np.arange(first, _LAST_EXPONENT + _EXPONENT_STEP, _EXPONENT_STEP)
        return Kernels(bandwidths, np.ones(bandwidths.size))


class RefinedKernels(KernelMember):
    """Kernels on the rows without shrinkage, with one bandwidth for each variable, fitted to labels."""

    n_parts = _REFINE_PARTS
    refined = True

    @property
    def shared_fit(self) -> Hashable:
        """The identifier: no other kind uses the same bandwidths."""
        return self.identifier

    def n_divisions(self, most: int) -> int:
        """Return a third of `most`, rounded up, because a fit is slow."""
        return -(-most // _DIVISIONS_PER_REFINED)

    def kernels(self) -> Kernels:
        """Return factors by which the refined bandwidths are multiplied."""
        return Kernels(_FACTORS, np.ones(_FACTORS.size))

    def learn(self, rows: ScaledRows, prior: Floats, seed: int) -> list[ClassTransform]:
        """Fit the transforms, and fit the bandwidth of each variable."""
        transforms = super().learn(rows, prior, seed)
        if not transforms[0].used.size:
            return transforms
        return Refinement(rows, self.scale, transforms, prior, seed).fit()


KERNEL_MEMBERS = (
    ShrunkKernels("own_kernels", f"{_KERNELS} {_OWN}", "score", "own", _BANDWIDTHS),
    ShrunkKernels("own_normal", f"{_DENSITIES} {_OWN}", "score", "own", (1.0,)),
    ShrunkKernels("shared_kernels", f"{_KERNELS} {_SHARED}", "standard", "shared", _BANDWIDTHS),
    ShrunkKernels("shared_normal", f"{_DENSITIES} {_SHARED}", "standard", "shared", (1.0,)),
    ShrunkKernels("diagonal_kernels", f"{_KERNELS} {_VARIANCES}", "standard", "diagonal"),
    ShrunkKernels("selected_kernels", f"{_KERNELS} {_SELECTED}", "rank", "selected"),
    PlainKernels("plain_kernels", f"plain {_KERNELS}", "range"),
    RefinedKernels("refined_rank", "bandwidths refined by variable", "rank"),
    RefinedKernels("refined_score", "bandwidths refined by variable", "score"),
)

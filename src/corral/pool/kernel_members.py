r"""Members whose class densities are kernels on the rows, along the coordinates of a transform.

The rows of a class are shrunk towards their mean by :math:`a = \sqrt{1 - h^2}` and blurred with the bandwidth
h, which keeps the covariance of the class (West, 1993): h = 1 is a normal density, a small h a kernel density
of the rows. Normal densities along covariances, of all classes or of each, make linear and quadratic
discriminants; they are kinds of their own beside the kernels, since few rows do not show which of them is
needless. Two more kinds are kernel densities of the rows as they are, with bandwidths refined by variable
(see `bandwidths`), and one has the same bandwidth for all variables.
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

# Bandwidths of shrunk kernels, relative to the deviations of the class.
_BANDWIDTHS = (0.25, 0.4, 0.55, 0.7, 0.85)

# Bandwidths of plain kernels, relative to the ranges of the variables, are powers of two with these
# exponents. From so many rows on there are smaller ones, down to the distance between neighbours if that is
# not below the least.
_FIRST_EXPONENT, _LAST_EXPONENT, _EXPONENT_STEP = -4.5, 0.5, 0.5
_LEAST_EXPONENT = -8.0
_ROWS_FOR_FINE_KERNELS = 2000

# Factors of refined bandwidths, which were fitted to fewer rows.
_FACTORS = 2.0 ** np.arange(-0.75, 0.5, 0.25)

# Refined bandwidths are fitted without one part of the folds in turn: fewer parts than folds, because each
# costs as much as all other members together. For the same reason they are fitted in one of so many
# divisions.
_REFINE_PARTS = 3
_DIVISIONS_PER_REFINED = 3

# Words of titles.
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
    """Kernels on the rows, as wide in all coordinates of a transform.

    Attributes
    ----------
    identifier, scale : see `MemberKind`.
    name : of the densities, for the title.
    covariance : which transform, see `transforms.learn_transforms`.
    """

    identifier: str
    name: str
    scale: ScaleKind
    covariance: Covariance = "none"

    @property
    def title(self) -> str:
        """Name and scale."""
        return f"{self.name}, {_SCALES[self.scale]}"

    @property
    def shared_fit(self) -> Hashable:
        """Kinds with the same transform learn the same."""
        return self.scale, self.covariance

    def learn(self, rows: ScaledRows, prior: Floats, seed: int) -> list[ClassTransform]:
        """Learn the transform of each class."""
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
        """Put a kernel on each row."""
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
        """Log densities (n_kernels, n_points, n_classes) of some rows by the rows of other groups."""
        weights, group_ids, x = data.all_weights, data.group_ids, scaled[points]
        log_density = np.empty((kernels.bandwidths.size, points.size, len(learnt)))
        for y, (transform, rows) in enumerate(zip(learnt, data.members(), strict=True)):
            kernel_rows = KernelRows(transform, scaled[rows], weights[rows])
            log_density[:, :, y] = kernel_rows.log_densities(x, *kernels, group_ids[rows], group_ids[points])
        return log_density


@dataclass(frozen=True)
class ShrunkKernels(KernelMember):
    """Kernels on rows that are shrunk towards the mean of their class."""

    # Those that are tried. That of a normal density, which has one kernel for all rows of a class, is 1.
    bandwidths: tuple[float, ...] = (*_BANDWIDTHS, 1.0)

    def kernels(self) -> Kernels:
        """Bandwidths, with the shrinkages that keep the covariance of a class."""
        bandwidths = np.array(self.bandwidths)
        return Kernels(bandwidths, np.sqrt(1.0 - bandwidths**2))


@dataclass(frozen=True)
class PlainKernels(KernelMember):
    """Kernels on the rows as they are, with the same bandwidth for all variables."""

    n_finer: int = 0  # how many smaller bandwidths are tried than in small tables

    def for_rows(self, n_rows: int, n_columns: int) -> PlainKernels:
        """Try kernels as fine as the distance of neighbours: few columns may have many small clusters."""
        if n_rows < _ROWS_FOR_FINE_KERNELS:
            return self
        neighbour = max(-np.log2(n_rows) / max(n_columns, 1), _LEAST_EXPONENT)
        return replace(self, n_finer=max(int((_FIRST_EXPONENT - neighbour) / _EXPONENT_STEP), 0))

    def kernels(self) -> Kernels:
        """Powers of two."""
        first = _FIRST_EXPONENT - self.n_finer * _EXPONENT_STEP
        bandwidths = 2.0 ** np.arange(first, _LAST_EXPONENT + _EXPONENT_STEP, _EXPONENT_STEP)
        return Kernels(bandwidths, np.ones(bandwidths.size))


class RefinedKernels(KernelMember):
    """Kernels on the rows as they are, with one bandwidth for each variable, fitted to labels."""

    n_parts = _REFINE_PARTS
    refined = True

    @property
    def shared_fit(self) -> Hashable:
        """Nothing else learns these bandwidths."""
        return self.identifier

    def n_divisions(self, most: int) -> int:
        """Fewer divisions, since each costs much."""
        return -(-most // _DIVISIONS_PER_REFINED)

    def kernels(self) -> Kernels:
        """Factors of the refined bandwidths."""
        return Kernels(_FACTORS, np.ones(_FACTORS.size))

    def learn(self, rows: ScaledRows, prior: Floats, seed: int) -> list[ClassTransform]:
        """Learn the transforms, and refine the bandwidth of each variable."""
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

"""Training rows, predicted by members of a pool without themselves and without rows of their units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.pool.densities import Member
from corral.pool.exponents import KernelRows
from corral.pool.transforms import ClassTransform


def left_out_log_densities(
    transforms: Sequence[ClassTransform],
    data: LabelledRows,
    scaled: Floats,
    points: Integers,
    bandwidths: Floats,
    shrinkages: Floats,
) -> Floats:
    """Log densities (n_bandwidths, n_points, n_classes) of some rows by all others of other units."""
    weights, units = data.all_weights, data.units
    log_density = np.empty((bandwidths.size, points.size, len(transforms)))
    for y, (transform, rows) in enumerate(zip(transforms, data.members(), strict=True)):
        kernel_rows = KernelRows(transform, scaled[rows], weights[rows])
        log_density[:, :, y] = kernel_rows.log_densities(
            scaled[points], bandwidths, shrinkages, units[rows], units[points]
        )
    return log_density


def member_without_rows(member: Member, data: LabelledRows, points: Integers, X: Floats) -> Floats:
    """Log densities (n_points, n_classes) of X by a member without some rows and those of their units.

    `X` (n_points, n_features) stands in the place of the rows. Means, covariances and bandwidths keep them.
    """
    scaled, log_density = member.scale.transform(X), np.empty((points.size, len(member.classes)))
    for y, (density, rows) in enumerate(zip(member.classes, data.members(), strict=True)):
        log_density[:, y] = density.log_density_without(scaled, data.units[rows], data.units[points])
    return log_density

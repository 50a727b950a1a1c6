"""Training rows, predicted by members of a pool without themselves and without rows of their units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corral import kernels
from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows
from corral.pool.densities import Member, Mixture
from corral.pool.general_densities import MixedMixture, mixed_log_densities
from corral.pool.general_transforms import MixedFrame
from corral.pool.transforms import ClassFrame

AnyFrame = ClassFrame | MixedFrame

# Numbers in a block of products.
_BLOCK = 2_000_000


def left_out_log_densities(
    frames: Sequence[AnyFrame],
    data: LabelledRows,
    scaled: Floats,
    points: Integers,
    bandwidths: Floats,
    pulls: Floats,
    x: Floats | None = None,
) -> Floats:
    """Log densities (n_bandwidths, n_points, n_classes) of some rows by all others of other units.

    If `x` (n_points, n_features) is given, it stands in the place of these rows.

    Distances come from matrix products of coordinates relative to the mean of the class. What they lose is
    small against the squared length of the coordinates, and so against the exponent of any row, unless row
    and point both lie far from the mean and near each other; training rows in standard units do not lie
    further than the root of their number.
    """
    weights = data.all_weights
    scaled_points = scaled[points] if x is None else x
    log_density = np.empty((bandwidths.size, points.size, len(frames)))
    for y, (frame, of_class) in enumerate(zip(frames, data.members(), strict=True)):
        if isinstance(frame, MixedFrame):
            log_density[:, :, y] = mixed_log_densities(
                frame,
                scaled[of_class],
                weights[of_class],
                data.units[of_class],
                scaled_points,
                data.units[points],
                bandwidths,
                pulls,
            )
            continue
        c = frame.coordinates(scaled[of_class])
        z = frame.coordinates(scaled_points)
        log_mean = np.empty((bandwidths.size, points.size))
        step = max(1, _BLOCK // max(of_class.size, 1))
        for first in range(0, points.size, step):
            block = slice(first, first + step)
            part = np.empty((bandwidths.size, z[block].shape[0]))
            kernels.pulled_log_means(
                z[block] @ c.T,
                0.5 * np.vecdot(z[block], z[block]),
                0.5 * np.vecdot(c, c),
                weights[of_class],
                data.units[points[block]],
                data.units[of_class],
                pulls,
                bandwidths**-2.0,
                np.empty((1, max(of_class.size, 1))),
                part,
            )
            log_mean[:, block] = part
        n_axes = frame.factor.shape[1]
        log_norm = n_axes * (np.log(bandwidths) + kernels.LOG_ROOT) - frame.log_volume
        log_density[:, :, y] = log_mean - log_norm[:, np.newaxis]
    return log_density


def member_without_rows(member: Member, data: LabelledRows, points: Integers, X: Floats) -> Floats:
    """Log densities (n_points, n_classes) of X by a member without some rows and those of their units.

    `X` (n_points, n_features) stands in the place of the rows. Means, covariances and bandwidths keep them.
    """
    scaled, x = member.scale.transform(data.X), member.scale.transform(X)
    log_density = np.empty((points.size, len(member.classes)))
    first = member.classes[0]
    bandwidth = first.bandwidth if isinstance(first, MixedMixture) else 1.0  # or it is in the factors
    lacking = np.isnan(x).any(axis=1)
    for rows, frame_of in ((~lacking, _frame), (lacking, _general_frame)):
        if rows.any():
            frames, offsets = zip(*(frame_of(mixture) for mixture in member.classes), strict=True)
            log_density[rows] = left_out_log_densities(
                frames, data, scaled, points[rows], np.array([bandwidth]), np.array([first.pull]), x[rows]
            )[0] + np.array(offsets)
    return log_density


def _frame(mixture: Mixture | MixedMixture) -> tuple[AnyFrame, float]:
    """The coordinates of a density of all its variables, and 0."""
    if isinstance(mixture, MixedMixture):
        return mixture.frame, 0.0
    return ClassFrame(mixture.variables, mixture.mean, mixture.factor, mixture.log_volume), 0.0


def _general_frame(mixture: Mixture | MixedMixture) -> tuple[AnyFrame, float]:
    """The same where values are missing, and what the density has besides the volume of the coordinates."""
    if isinstance(mixture, MixedMixture):
        return mixture.frame, 0.0
    frame = mixture.general_frame
    return (_frame(mixture)) if frame is None else (frame, mixture.log_volume - mixture.log_determinant)

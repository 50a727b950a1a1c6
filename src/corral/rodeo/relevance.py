"""Algorithm 2 of the paper: mean bandwidths at the training rows of each class, and z-scores of these means.

A variable with a low z-score has a small bandwidth, and is relevant for the class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.subsample import random_rows
from corral.data.tiles import ClassRows
from corral.parallel import Computation, for_each_class
from corral.rodeo.descent import rodeo
from corral.rodeo.settings import RodeoSettings

# Leave-one-out bandwidths are averaged over at most this many rows of a class.
MAX_POINTS = 1000


def leave_one_out_bandwidths(
    classes: Sequence[ClassRows],
    points: Sequence[Integers],
    settings: RodeoSettings,
    computation: Computation,
) -> list[Floats]:
    """Choose bandwidths (n_points, n_features) at some rows of each class, each left out of its own density.

    `points` has for each class the indices (n_points,) of these rows.
    """
    grids = [settings.grid(rows.n) for rows in classes]
    h = [np.empty((own.size, rows.n_features)) for rows, own in zip(classes, points, strict=True)]

    def estimate(y: int, chunk: slice) -> None:
        own = points[y][chunk]
        _, steps = rodeo(classes[y], grids[y], classes[y].take(own), settings.update, own)
        h[y][chunk] = grids[y][steps]

    for_each_class(
        estimate,
        [own.size for own in points],
        [rows.size for rows in classes],
        [settings.update] * len(classes),
        "Leave-one-out",
        computation,
    )
    return h


def mean_bandwidths(
    classes: Sequence[ClassRows],
    settings: RodeoSettings,
    random: np.random.RandomState,
    computation: Computation,
) -> Floats:
    """Compute mean leave-one-out bandwidths (n_classes, n_features).

    The mean is taken over at most MAX_POINTS random rows of a class. If all their values of a variable are
    missing, the result is the initial bandwidth.
    """
    points = [random_rows(rows.n_rows, MAX_POINTS, random) for rows in classes]
    local = leave_one_out_bandwidths(classes, points, settings, computation)
    means = np.empty((len(classes), classes[0].n_features))
    for mean, rows, own, h in zip(means, classes, points, local, strict=True):
        h0 = settings.initial_bandwidth(rows.n)
        # The Rodeo does not choose a bandwidth for a missing value.
        weight = np.where(np.isnan(rows.take(own)), 0.0, rows.weight(own)[:, np.newaxis])
        total = weight.sum(axis=0)
        mean[:] = np.where(total > 0.0, (weight * h).sum(axis=0) / np.maximum(total, 1e-300), h0)
    return means


def zscores(means: Floats) -> Floats:
    """Standardize the mean bandwidths (n_features,) of a class over its variables.

    The divisor of the variance is n_features - 1, as in the published tables, whose squared scores sum to it.
    """
    spread = means.std(ddof=1) if means.size > 1 else 0.0
    if spread <= 1e-12 * means.mean():  # equal up to rounding errors: no variable is relevant
        return np.zeros_like(means)
    z: Floats = (means - means.mean()) / spread
    return z

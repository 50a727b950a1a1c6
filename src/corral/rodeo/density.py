"""Class densities: kernel density estimates with given bandwidths, or with bandwidths of the Rodeo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.tiles import ClassRows
from corral.parallel import Computation, for_each_class
from corral.rodeo.descent import kernel_density, rodeo
from corral.rodeo.settings import Update


@dataclass(frozen=True, eq=False)
class ClassDensity:
    """The density of one class."""

    rows: ClassRows  # rows of the class, with the used variables only
    grid: Floats  # (n_grid,) bandwidths that the Rodeo may choose, in decreasing order
    variables: Integers  # (n_used,) indices of the used variables
    # (n_used,) bandwidths of the class, or None if the Rodeo chooses bandwidths at each new row
    fixed: Floats | None = None
    outside: float = 0.0  # log density of the unused variables, whose density is uniform

    def estimate(self, x: Floats, update: Update, own: Integers | None = None) -> tuple[Floats, Floats]:
        """Estimate log densities (n_new,) of new rows, and bandwidths (n_new, n_features).

        Unused variables have the initial bandwidth. `own` (n_new,) is the index of the class row to leave out
        for each new row; -1 for none.
        """
        used, h = x[:, self.variables], np.full(x.shape, self.grid[0])
        if self.fixed is None:
            log_density, steps = rodeo(self.rows, self.grid, used, update, own)
            h[:, self.variables] = self.grid[steps]
        else:
            log_density = kernel_density(self.rows, used, self.fixed, own)
            h[:, self.variables] = self.fixed
        return log_density + self.outside, h


def class_log_densities(
    densities: Sequence[ClassDensity],
    x: Floats,
    update: Update,
    computation: Computation,
    *,
    bandwidths: bool = False,
    own: Sequence[Integers] | None = None,
) -> tuple[Floats, Floats]:
    """Compute log densities (n_new, n_classes) of new rows, and bandwidths (n_new, n_classes, n_features).

    The array of bandwidths is empty unless `bandwidths` is true. `own` has an array (n_new,) for each class:
    the index of the class row to leave out for each new row; -1 for none.
    """
    n_new, d = x.shape
    log_density = np.empty((n_new, len(densities)))
    h = np.empty((n_new if bandwidths else 0, len(densities), d))

    def estimate(y: int, chunk: slice) -> None:
        left_out = None if own is None else own[y][chunk]
        log_density[chunk, y], chosen = densities[y].estimate(x[chunk], update, left_out)
        if bandwidths:
            h[chunk, y] = chosen

    local = any(density.fixed is None for density in densities)
    for_each_class(
        estimate,
        [n_new] * len(densities),
        [density.rows.size for density in densities],
        [update if density.fixed is None else "fixed" for density in densities],
        "Rodeo" if local else "Kernel sums",
        computation,
    )
    return log_density, h

"""Density curves of one variable in each class, for figures."""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers
from corral.data.tiles import ClassRows, tile_density

N_POINTS = 49  # number of points of a curve


def density_curves(
    x: Floats, codes: Integers, weights: Floats | None, n_classes: int
) -> tuple[Floats, Floats]:
    """Compute grid points (n_points,) and kernel densities (n_classes, n_points) at these points.

    Densities are divided by the highest density of all classes. The bandwidth of a class is Silverman's, or a
    step of the grid if that is larger, because a narrower peak could lie between two points. The grid ranges
    from the 0.5% to the 99.5% quantile, with a margin. It is empty if all values are missing.
    """
    present = ~np.isnan(x)
    if not present.any():
        return np.empty(0), np.empty((n_classes, 0))
    largest = np.abs(x[present]).max() or 1.0  # a divisor, so that no square overflows
    low, high = np.quantile(x[present] / largest, [0.005, 0.995])
    margin = 0.05 * (high - low) or 0.5
    grid = np.linspace(low - margin, high + margin, N_POINTS)
    log_density = []
    for a in range(n_classes):
        rows = present & (codes == a)
        arranged = ClassRows.arrange(
            x[rows, np.newaxis] / largest, None if weights is None else weights[rows]
        )
        bandwidth = max(_silverman(arranged), float(grid[1] - grid[0]))
        log_density.append(tile_density(arranged, grid[:, np.newaxis], np.array([bandwidth])))
    return grid * largest, np.exp(np.array(log_density) - np.max(log_density))


def _silverman(rows: ClassRows) -> float:
    """Silverman's bandwidth of one variable; 0 if there are fewer than two rows."""
    if rows.n_rows < 2:
        return 0.0
    x = rows.all()[:, 0]
    low, high = np.quantile(x, [0.25, 0.75])
    spread = min(x.std(), (high - low) / 1.34) or x.std()
    return float(0.9 * spread * rows.n**-0.2)

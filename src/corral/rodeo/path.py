"""Record of the sweeps of the Rodeo at one new row, for teaching and figures; slower than predictions.

A sweep tests every variable that has not stopped, and shrinks the bandwidths of some of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.data.tiles import ClassRows
from corral.rodeo.density import ClassDensity
from corral.rodeo.descent import sweep_ratios
from corral.rodeo.settings import Update


@dataclass(frozen=True, eq=False)
class RodeoPath:
    r"""Bandwidths and tests in the sweeps of the Rodeo, as returned by `bandwidth_path`.

    Attributes
    ----------
    bandwidths : ndarray of shape (n_sweeps + 1, n_features)
        Bandwidths of scaled variables: the initial ones, then those after each sweep.
    ratios : ndarray of shape (n_sweeps, n_features)
        Test ratio :math:`|Z_j| / \lambda_j`: a bandwidth shrinks if the ratio is greater than 1. Infinite if
        the derivatives :math:`Z_{ji}` of all rows are equal; 0 if the variable was not tested.
    tested : ndarray of shape (n_sweeps, n_features)
        True if the variable was tested in the sweep because it had not stopped before.

    See Also
    --------
    corral.RodeoPathDisplay : Plot of this object.
    corral.RodeoClassifier.bandwidth_path : Method that returns this object.

    Examples
    --------
    >>> import numpy as np
    >>> from corral import RodeoDensity
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(0.5, 0.1, 200), rng.uniform(size=200)])
    >>> path = RodeoDensity(scale=None, beta=0.5).fit(X).bandwidth_path([[0.5, 0.5]])
    >>> path.bandwidths.round(2)  # both shrink at first, the first variable further
    array([[0.6 , 0.6 ],
           [0.3 , 0.3 ],
           [0.15, 0.15],
           [0.07, 0.15],
           [0.07, 0.15]])
    >>> path.ratios.round(1)
    array([[35.3, 11. ],
           [ 9.4,  1.7],
           [ 2.6,  0. ],
           [ 0.9,  0. ]])
    """

    bandwidths: Floats
    ratios: Floats
    tested: Bools

    @property
    def n_tests(self) -> Integers:
        """Number of sweeps (n_features,) in which each variable was tested."""
        n: Integers = self.tested.sum(axis=0)
        return n

    @property
    def at_floor(self) -> Bools:
        """Mask (n_features,) of variables that stopped only because the bandwidth was the smallest."""
        last = np.take_along_axis(self.ratios, np.maximum(self.n_tests - 1, 0)[np.newaxis], axis=0)
        at_floor: Bools = last[0] > 1.0
        return at_floor


def rodeo_path(rows: ClassRows, grid: Floats, x: Floats, update: Update) -> RodeoPath:
    """Run algorithm 1 at one new row (n_features,) with bandwidths of a grid, and record every sweep."""
    if not rows.n_rows:  # one sweep in which no bandwidth shrinks
        h = np.full((2, x.size), grid[0])
        return RodeoPath(h, np.zeros((1, x.size)), np.ones((1, x.size), dtype=np.bool_))
    ratios = sweep_ratios(rows, grid, x, update)
    tested = ~np.isnan(ratios)
    shrunk = np.zeros((len(tested) + 1, x.size), dtype=np.int64)
    shrunk[1:-1] = tested[1:]  # a variable is tested again if, and only if, it has shrunk
    return RodeoPath(grid[shrunk.cumsum(axis=0)], np.where(tested, ratios, 0.0), tested)


def density_path(density: ClassDensity, x: Floats, update: Update) -> RodeoPath:
    """Run the Rodeo at one new row (n_features,), even if the density has class bandwidths.

    Variables that the density leaves out are not tested and keep the initial bandwidth.
    """
    path = rodeo_path(density.rows, density.grid, x[density.variables], update)

    def on_all_variables(values: NDArray[Any], unused: float) -> NDArray[Any]:
        filled = np.full((len(values), x.size), unused, dtype=values.dtype)
        filled[:, density.variables] = values
        return filled

    return RodeoPath(
        on_all_variables(path.bandwidths, density.grid[0]),
        on_all_variables(path.ratios, 0.0),
        on_all_variables(path.tested, False),
    )

"""The Rodeo at one query, with a record of every sweep: to be looked at, not to be fast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corral._rodeo import ClassDensity, ClassRows, Floats, Integers, Update, squared_factor


@dataclass(frozen=True, eq=False)
class RodeoPath:
    """How the Rodeo came to the bandwidths of one sample in one class, as returned by `bandwidth_path`.

    Attributes
    ----------
    bandwidths : (n_sweeps + 1, n_features) the initial ones, then those after each sweep, scaled units.
    ratios : (n_sweeps, n_features) |Z_j| / lambda_j, infinite where all rows agree; 0 where not tested.
    tested : (n_sweeps, n_features) which variables took part in a sweep: those that had not stopped.

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
    tested: NDArray[np.bool_]

    @property
    def n_tests(self) -> Integers:
        """(n_features,) how many sweeps each variable took part in."""
        n: Integers = self.tested.sum(axis=0)
        return n

    @property
    def at_floor(self) -> NDArray[np.bool_]:
        """(n_features,) which variables stopped at the smallest bandwidth, not by their last test."""
        last = np.take_along_axis(self.ratios, np.maximum(self.n_tests - 1, 0)[np.newaxis], axis=0)
        at_floor: NDArray[np.bool_] = last[0] > 1.0
        return at_floor


def rodeo_path(rows: ClassRows, x: Floats, update: Update) -> RodeoPath:
    """Algorithm 1 at one query (n_features,), with a record of every sweep.

    In a simultaneous sweep all variables are tested as one group, in a sequential one each is a group
    of its own, tested after the bandwidths of those before it have changed.
    """
    steps = np.zeros(x.size, dtype=np.int64)
    history, ratios, tested = [steps.copy()], [], []
    X = rows.take(np.arange(rows.n_rows))
    weights = rows.weight(np.arange(rows.n_rows))
    squares = (x - X) ** 2
    # Squares less those of the nearest row, as products that do not cancel (see _kernels).
    nearest = X[squares.sum(axis=1).argmin()] if rows.n_rows else x
    products = (nearest - X) * ((x - nearest) + (x - X))
    exponents = products.sum(axis=1) * 0.5 / rows.h[0] ** 2
    active = np.arange(x.size)
    while active.size:
        ratio = np.zeros(x.size)
        for group in [active] if update == "simultaneous" else active[:, np.newaxis]:
            ratio[group] = _test_ratios(
                squares[:, group], rows.h[steps[group]], exponents, weights, rows.measure.n
            )
            shrinking = group[(ratio[group] > 1.0) & (steps[group] + 1 < rows.h.size)]
            before = 0.5 / rows.h[steps[shrinking]] ** 2
            steps[shrinking] += 1
            exponents += products[:, shrinking] @ (0.5 / rows.h[steps[shrinking]] ** 2 - before)
        history.append(steps.copy())
        ratios.append(ratio)
        tested.append(np.isin(np.arange(x.size), active))
        active = np.flatnonzero(history[-1] > history[-2])
    return RodeoPath(rows.h[np.array(history)], np.array(ratios), np.array(tested))


def density_path(density: ClassDensity, x: Floats, update: Update) -> RodeoPath:
    """The Rodeo at one query (n_features,), whether or not the density takes its bandwidths from it.

    Variables that the density leaves out are not tested and keep the initial bandwidth.
    """
    used = rodeo_path(density.rows, x[density.variables], update)
    n_sweeps = len(used.ratios)
    path = RodeoPath(
        np.full((n_sweeps + 1, x.size), density.rows.h[0]),
        np.zeros((n_sweeps, x.size)),
        np.zeros((n_sweeps, x.size), dtype=np.bool_),
    )
    path.bandwidths[:, density.variables] = used.bandwidths
    path.ratios[:, density.variables] = used.ratios
    path.tested[:, density.variables] = used.tested
    return path


def _test_ratios(squares: Floats, h: Floats, exponents: Floats, weights: Floats, n: float) -> Floats:
    """|Z_j| / lambda_j of some variables, given the squared distances (n_rows, n_variables) in them.

    The rows are worth n of equal weight. Common factors of the Z_ji are left out, and the largest is brought
    to 1, so that no square of one overflows or vanishes.
    """
    if n <= 1.0:  # one row has no variance, so nothing can be told from noise
        return np.zeros(h.size)
    Z = np.exp(exponents.min() - exponents)[:, np.newaxis] * (squares - h**2)
    largest = np.abs(Z).max(axis=0)
    Z /= np.where(largest > 0.0, largest, 1.0)
    share = weights / weights.sum()
    mean = share @ Z
    s = np.sqrt(share @ (Z - mean) ** 2 / (n - 1.0))
    lam = s * np.sqrt(squared_factor(np.asarray(n)))
    ratio: Floats = np.divide(np.abs(mean), lam, out=np.where(mean == 0.0, 0.0, np.inf), where=lam > 0.0)
    return ratio

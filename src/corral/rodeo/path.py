"""The Rodeo at one query with a record of every sweep: to be looked at, not to be fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.tiles import AnyRows, ClassRows, GeneralRows
from corral.rodeo.density import ClassDensity
from corral.rodeo.general_descent import GeneralDescent, Surroundings, advance
from corral.rodeo.recorded_descent import Descent, nearest, sweep
from corral.rodeo.settings import Update


@dataclass(frozen=True, eq=False)
class RodeoPath:
    r"""How the Rodeo came to the bandwidths of one sample in one class, as returned by `bandwidth_path`.

    Attributes
    ----------
    bandwidths : ndarray of shape (n_sweeps + 1, n_features)
        The initial ones, then those after each sweep, in scaled units.
    ratios : ndarray of shape (n_sweeps, n_features)
        :math:`|Z_j| / \lambda_j` of each sweep; infinite where all rows agree, 0 where not tested.
    tested : ndarray of shape (n_sweeps, n_features)
        Which variables took part in a sweep: those that had not stopped.

    See Also
    --------
    corral.RodeoPathDisplay : Draws it.
    corral.RodeoClassifier.bandwidth_path : Makes it.

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
        """(n_features,) how many sweeps each variable took part in."""
        n: Integers = self.tested.sum(axis=0)
        return n

    @property
    def at_floor(self) -> Bools:
        """(n_features,) which variables stopped at the smallest bandwidth, not by their last test."""
        last = np.take_along_axis(self.ratios, np.maximum(self.n_tests - 1, 0)[np.newaxis], axis=0)
        at_floor: Bools = last[0] > 1.0
        return at_floor


def rodeo_path(rows: AnyRows, grid: Floats, x: Floats, update: Update) -> RodeoPath:
    """Run algorithm 1 at one query (n_features,) and record every sweep."""
    if isinstance(rows, ClassRows) and np.isnan(x).any():
        rows = GeneralRows.of(rows)
    h = [np.full(x.size, grid[0])]
    ratios: list[Floats] = []
    tested: list[Bools] = []
    if not rows.n_rows:  # one sweep, in which nothing can be told
        return RodeoPath(np.array(h * 2), np.zeros((1, x.size)), np.ones((1, x.size), dtype=np.bool_))
    descent, make_sweep = _sweeps(rows, grid, x[np.newaxis], update)
    last = x.size  # where the sweep has come to
    while descent.going.size:
        asked, ratio = (of_query[0] for of_query in make_sweep())
        if update == "simultaneous" or asked.argmax() <= last or not ratios:
            ratios.append(np.zeros(x.size))
            tested.append(np.zeros(x.size, dtype=np.bool_))
            h.append(h[-1])
        last = int(asked.argmax())
        ratios[-1] += ratio
        tested[-1] |= asked
        h[-1] = grid[descent.steps[0]]
    return RodeoPath(np.array(h), np.array(ratios), np.array(tested))


def _sweeps(
    rows: AnyRows, grid: Floats, queries: Floats, update: Update
) -> tuple[Descent, Callable[[], tuple[Bools, Floats]]]:
    """Begin algorithm 1 at a query; what makes a sweep returns the variables asked about and their ratios."""
    if isinstance(rows, GeneralRows):
        around = Surroundings.look(rows, queries, None)
        general = GeneralDescent.begin(rows, around, grid, np.full(1, -1), update)
        return general, partial(advance, rows, around, general)
    descent = Descent(queries, nearest(rows, queries), grid, rows.measure.left(np.zeros(1)), update)

    def make_sweep() -> tuple[Bools, Floats]:
        question = descent.question()
        sums = sweep(rows, question)
        ratios = descent.ratios(sums)
        descent.answer(sums)
        return question.asked, ratios

    return descent, make_sweep


def density_path(density: ClassDensity, x: Floats, update: Update) -> RodeoPath:
    """Run the Rodeo at one query (n_features,), whether or not the density takes its bandwidths from it.

    Variables that the density leaves out are not tested and keep the initial bandwidth.
    """
    variables = density.plan.variables
    used = rodeo_path(density.rows, density.grid, x[variables], update)
    n_sweeps = len(used.ratios)
    path = RodeoPath(
        np.full((n_sweeps + 1, x.size), density.grid[0]),
        np.zeros((n_sweeps, x.size)),
        np.zeros((n_sweeps, x.size), dtype=np.bool_),
    )
    path.bandwidths[:, variables] = used.bandwidths
    path.ratios[:, variables] = used.ratios
    path.tested[:, variables] = used.tested
    return path

r"""Algorithm 1 of the paper, the Rodeo, on arrays of scaled values.

For a class with rows :math:`x_1, \dots, x_n` and a new row :math:`x`, the Rodeo starts from one wide
bandwidth :math:`h_j = h_0` for all variables and shrinks each by the factor :math:`\beta` as long as

.. math::

    |Z_j| > \lambda_j = s_j \sqrt{2 \log(n \log n)}, \qquad
    Z_j = \frac{\partial \hat p(x)}{\partial h_j} = \frac 1 n \sum_i Z_{ji},

where :math:`s_j^2` is the sample variance of the :math:`Z_{ji}` over :math:`n`. With
:math:`L = 2 \log(n \log n)` this is the same as

.. math::

    \Big(\sum_i Z_{ji}\Big)^2 > \frac{L n}{n - 1 + L} \sum_i Z_{ji}^2,

which avoids differences of nearly equal sums and the common factor of the :math:`Z_{ji}`.

Rows may have weights: sums and means over rows become weighted ones, and :math:`n` is Kish's effective number
of rows, :math:`(\sum_i w_i)^2 / \sum_i w_i^2`. So a common factor of the weights changes nothing. If a row is
left out, its whole group is left out, with all weights.

`kernels.simultaneous` is the fast path for complete rows of measurements, when all bandwidths change after a
sweep. `kernels.descend` covers missing values, categories, groups, bandwidths that change inside a sweep, and
the record of the sweeps.
"""

from __future__ import annotations

import numpy as np

from corral import kernels
from corral.array_types import Floats, Integers
from corral.data.tiles import TINY, ClassRows, tile_density
from corral.rodeo.factors import expected_distances, log_norms, variable_densities
from corral.rodeo.settings import SMALLEST_COUNT, Update


def rodeo(
    rows: ClassRows, grid: Floats, x: Floats, update: Update, own: Integers | None = None
) -> tuple[Floats, Integers]:
    """Run algorithm 1 at each new row.

    Parameters
    ----------
    rows : rows of the class.
    grid : the bandwidths that may be chosen, from the initial one to the smallest.
    x : (n_new, n_features) scaled new rows, NaN for missing values.
    update : whether bandwidths change after a sweep or inside it.
    own : (n_new,) numbers of class rows to leave out, each with its group, or -1.

    Returns
    -------
    log_density : (n_new,), -inf where no row is left.
    steps : (n_new, n_features) indices of the bandwidths in the grid.
    """
    own = np.full(len(x), -1) if own is None else own
    log_density, steps = np.full(len(x), -np.inf), np.zeros(x.shape, dtype=np.int64)
    total, n = rows.left(own)
    critical = _weighted_critical_ratio(total, n)
    has_rows = total > 0.0
    fast = has_rows & (update == "simultaneous" and rows.is_plain) & ~np.isnan(x).any(axis=1)
    general = has_rows & ~fast
    if fast.any():
        log_density[fast], steps[fast] = _fast_descent(
            rows, grid, x[fast], own[fast], total[fast], critical[fast]
        )
    if general.any():
        log_density[general], steps[general] = _descend(
            rows,
            _bandwidths_by_variable(rows, grid),
            x[general],
            own[general],
            _numbers_of_bandwidths(rows, grid, n[general]),
            critical[general],
            update=update,
        )
    log_density[has_rows] -= np.log(total[has_rows])
    return log_density, steps


def _fast_descent(
    rows: ClassRows, grid: Floats, x: Floats, own: Integers, total: Floats, critical: Floats
) -> tuple[Floats, Integers]:
    """Log sums of kernels and steps; all bandwidths of a new row that still shrink are equal."""
    steps, log_sum = np.zeros(x.shape, dtype=np.int64), np.empty(len(x))
    kernels.simultaneous(
        rows.tiles,
        rows.n_rows,
        None if rows.weights is None else rows.root,
        np.ascontiguousarray(x),
        own,
        total,
        critical,
        grid,
        kernels.workspace(rows.tiles),
        steps,
        log_sum,
    )
    log_norm = np.log(grid[steps]).sum(axis=1) + x.shape[1] * kernels.LOG_ROOT
    return log_sum - log_norm, steps


def _bandwidths_by_variable(rows: ClassRows, grid: Floats) -> Floats:
    """The grid (n_grid, n_features) of each variable."""
    return np.tile(grid[:, np.newaxis], (1, rows.n_features))


def _numbers_of_bandwidths(rows: ClassRows, grid: Floats, n: Floats) -> Integers:
    """Number of bandwidths (n_new, n_features) that may be chosen: fewer for categories, see `factors`."""
    floor = 1.0 / np.sqrt(2.0 * np.log(np.maximum(n, 2.0)))
    enough = np.maximum((grid >= floor[:, np.newaxis]).sum(axis=1), 1)
    return np.where(rows.n_categories > 0, enough[:, np.newaxis], grid.size)


def kernel_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Logarithms (n_new,) of kernel density estimates with given bandwidths, see `tile_density`.

    Unlike there, values may be missing and variables may be categories.
    """
    own = np.full(len(x), -1) if own is None else own
    if rows.is_plain and not np.isnan(x).any():
        return tile_density(rows, x, h, own)
    total, _ = rows.left(own)
    log_density, has_rows = np.full(len(x), -np.inf), total > 0.0
    if has_rows.any():
        used = np.where(np.isfinite(h), x[has_rows], np.nan)
        no_tests = np.zeros(used.shape, dtype=np.int64)
        bandwidths = np.where(np.isfinite(h), h, 1.0)[np.newaxis]
        log_sum, _ = _descend(rows, bandwidths, used, own[has_rows], no_tests, np.ones(len(used)))
        log_density[has_rows] = log_sum - np.log(total[has_rows])
    return log_density


def sweep_ratios(rows: ClassRows, grid: Floats, x: Floats, update: Update) -> Floats:
    r"""Return |Z_j| / lambda_j (n_sweeps, n_features) at one new row (n_features,); NaN where not tested.

    It is infinite where all Z_ji are equal. The class must have a row.
    """
    own = np.full(1, -1)
    total, n = rows.left(own)
    sums = np.full((2, grid.size + 1, x.size), np.nan)
    h, n_steps = _bandwidths_by_variable(rows, grid), _numbers_of_bandwidths(rows, grid, n)
    critical = _weighted_critical_ratio(total, n)
    _descend(rows, h, x[np.newaxis], own, n_steps, critical, update=update, sums=sums)
    first, second = sums[:, ~np.isnan(sums[0]).all(axis=1)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = first**2 / (total * second)  # 1 where all Z_ji are equal
        squares = share * (n - 1.0) / (squared_factor(n) * np.maximum(1.0 - share, 0.0))
    squares[(1.0 - share) < 1e-14 * max(rows.n, 1.0)] = np.inf
    squares[np.isnan(squares)] = np.inf  # so far away that all kernels are 0
    ratios = np.where((n <= 1.0) | (first == 0.0), 0.0, np.sqrt(squares))
    return np.where(np.isnan(first), np.nan, ratios)


def _descend(
    rows: ClassRows,
    h: Floats,
    x: Floats,
    own: Integers,
    n_steps: Integers,
    critical: Floats,
    *,
    update: Update = "simultaneous",
    sums: Floats | None = None,
) -> tuple[Floats, Integers]:
    """Logarithms (n_new,) of kernel sums, and steps (n_new, n_features); see `kernels.descend`.

    Parameters
    ----------
    h : (n_grid, n_features) bandwidths that may be chosen.
    n_steps : (n_new, n_features) how many of them may be chosen; 0 for no test.
    sums : (2, n_recorded, n_features) output for a single new row: the sums of the first sweeps.
    """
    d, categories = rows.n_features, rows.n_categories
    x, group = np.ascontiguousarray(x), rows.group(own)
    work = np.empty((2, *rows.tiled_groups.shape))
    steps, log_sum = np.empty(x.shape, dtype=np.int64), np.empty(len(x))
    kernels.descend(
        rows.tiles,
        categories,
        rows.root,
        rows.tiled_groups,
        x,
        group,
        *variable_densities(rows, x, group),
        0.5 / h**2,
        log_norms(h, categories),
        expected_distances(h, categories),
        critical,
        n_steps,
        update == "sequential",
        np.empty(d),
        np.empty(d, dtype=np.int64),
        *work,
        steps,
        log_sum,
        *(np.empty((2, 0, d)) if sums is None else sums),
    )
    return log_sum, steps


def squared_factor(n: Floats) -> Floats:
    """Return L = 2 log(n log n); the threshold is lambda_j^2 = L s_j^2."""
    L: Floats = 2.0 * np.log(n * np.log(np.maximum(n, SMALLEST_COUNT)))
    return L


def critical_ratio(n: Floats) -> Floats:
    """Return the value above which (sum Z_ji)^2 / sum Z_ji^2 lets a bandwidth shrink."""
    enough = np.maximum(n, 1.0 + 1e-9)
    L = squared_factor(enough)
    # One row has no variance, so no bandwidth may shrink: no ratio exceeds n = 1 (Cauchy-Schwarz).
    return np.where(n > 1.0, L * enough / (enough - 1.0 + L), 2.0)


def _weighted_critical_ratio(total: Floats, n: Floats) -> Floats:
    """Return the same for (sum w_i Z_ji)^2 / sum w_i Z_ji^2, from the total of the weights."""
    ratio: Floats = critical_ratio(n) * (total / np.maximum(n, TINY))
    return ratio

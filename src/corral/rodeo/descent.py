r"""Algorithm 1 of the paper, the Rodeo, on arrays of scaled values.

For a class with rows :math:`x_1, \dots, x_n` and a new row :math:`x`, the Rodeo starts from one wide
bandwidth :math:`h_j = h_0` for all variables. A sweep tests every variable that has not stopped. A bandwidth
shrinks by the factor :math:`\beta` if

.. math::

    |Z_j| > \lambda_j = s_j \sqrt{2 \log(n \log n)}, \qquad
    Z_j = \frac{\partial \hat p(x)}{\partial h_j} = \frac 1 n \sum_i Z_{ji},

where :math:`s_j^2` is the sample variance of the :math:`Z_{ji}` divided by :math:`n`. Otherwise variable j
stops and keeps its bandwidth. With :math:`L = 2 \log(n \log n)` the condition is equivalent to

.. math::

    \Big(\sum_i Z_{ji}\Big)^2 > \frac{L n}{n - 1 + L} \sum_i Z_{ji}^2,

which does not subtract nearly equal sums, and in which a common factor of the :math:`Z_{ji}` cancels.

If rows have weights, sums and means over rows are weighted, and :math:`n` is Kish's effective number of rows,
:math:`(\sum_i w_i)^2 / \sum_i w_i^2`. A common factor of the weights does not change the result. If a row is
left out, all rows of its group are left out.

`kernels.simultaneous` is the fast path for rows without missing values, categories and groups, if all
bandwidths change after the sweep (``update="simultaneous"``). `kernels.descend` handles all other cases, and
records the sums of the sweeps.
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
    grid : (n_grid,) bandwidths that may be chosen, in decreasing order from the initial bandwidth.
    x : (n_new, n_features) scaled new rows, NaN for missing values.
    update : "simultaneous" if bandwidths change after a sweep, "sequential" if inside the sweep.
    own : (n_new,) for each new row, the index of the class row to leave out with its group; -1 for none.

    Returns
    -------
    log_density : (n_new,) log densities, -inf if no class row remains.
    steps : (n_new, n_features) indices of the chosen bandwidths in the grid.
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
    """Compute log kernel sums (n_new,) and steps (n_new, n_features) by `kernels.simultaneous`."""
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
    """Repeat the grid for each variable: (n_grid, n_features)."""
    return np.tile(grid[:, np.newaxis], (1, rows.n_features))


def _numbers_of_bandwidths(rows: ClassRows, grid: Floats, n: Floats) -> Integers:
    """Count the bandwidths (n_new, n_features) that may be chosen.

    Categories have fewer than measurements: the module docstring of `factors` explains their smallest
    bandwidth.
    """
    floor = 1.0 / np.sqrt(2.0 * np.log(np.maximum(n, 2.0)))
    enough = np.maximum((grid >= floor[:, np.newaxis]).sum(axis=1), 1)
    return np.where(rows.n_categories > 0, enough[:, np.newaxis], grid.size)


def kernel_density(rows: ClassRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Compute the logarithms (n_new,) of kernel density estimates with given bandwidths (n_features,).

    Unlike `tile_density`, this function accepts missing values and categories. A variable with an infinite
    bandwidth is left out.
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
    r"""Return the ratios |Z_j| / lambda_j (n_sweeps, n_features) of the tests at one new row (n_features,).

    The ratio is NaN if a variable was not tested in a sweep, 0 if n is at most 1 or the sum of the Z_ji is 0,
    and infinite if all Z_ji are equal but not 0. The class must have at least one row.
    """
    own = np.full(1, -1)
    total, n = rows.left(own)
    sums = np.full((2, grid.size + 1, x.size), np.nan)
    h, n_steps = _bandwidths_by_variable(rows, grid), _numbers_of_bandwidths(rows, grid, n)
    critical = _weighted_critical_ratio(total, n)
    _descend(rows, h, x[np.newaxis], own, n_steps, critical, update=update, sums=sums)
    first, second = sums[:, ~np.isnan(sums[0]).all(axis=1)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = first**2 / (total * second)  # 1 if all Z_ji are equal
        squares = share * (n - 1.0) / (squared_factor(n) * np.maximum(1.0 - share, 0.0))
    squares[(1.0 - share) < 1e-14 * max(rows.n, 1.0)] = np.inf
    squares[np.isnan(squares)] = np.inf  # overflow of first and second: the new row is far from all rows
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
    """Compute the logarithms (n_new,) of kernel sums and the steps (n_new, n_features) by `kernels.descend`.

    Parameters
    ----------
    h : (n_grid, n_features) bandwidths that may be chosen.
    n_steps : (n_new, n_features) number of bandwidths that may be chosen; 0 if the variable is not tested.
    sums : (2, n_recorded, n_features) filled with the sums of Z_ji and of Z_ji^2 in the first n_recorded
        sweeps, if there is only one new row.
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
    """Return L = 2 log(n log n) of the threshold lambda_j^2 = L s_j^2."""
    L: Floats = 2.0 * np.log(n * np.log(np.maximum(n, SMALLEST_COUNT)))
    return L


def critical_ratio(n: Floats) -> Floats:
    """Return the critical value of (sum Z_ji)^2 / sum Z_ji^2, above which a bandwidth shrinks."""
    enough = np.maximum(n, 1.0 + 1e-9)
    L = squared_factor(enough)
    # One row has no variance, so no bandwidth may shrink. The ratio is at most n = 1 (Cauchy-Schwarz) and
    # never reaches 2.
    return np.where(n > 1.0, L * enough / (enough - 1.0 + L), 2.0)


def _weighted_critical_ratio(total: Floats, n: Floats) -> Floats:
    """Return the critical value of (sum w_i Z_ji)^2 / sum w_i Z_ji^2, from n and the total of the weights."""
    ratio: Floats = critical_ratio(n) * (total / np.maximum(n, TINY))
    return ratio

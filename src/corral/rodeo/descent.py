r"""Algorithm 1 of the paper, the Rodeo, on arrays in scaled units.

For a class with rows :math:`x_1, \dots, x_n` and a query :math:`x`, the Rodeo starts from one wide
bandwidth :math:`h_j = h_0` for all variables and shrinks each by the factor :math:`\beta` as long as

.. math::

    |Z_j| > \lambda_j = s_j \sqrt{2 \log(n \log n)}, \qquad
    Z_j = \frac{\partial \hat p(x)}{\partial h_j} = \frac 1 n \sum_i Z_{ji},

where :math:`s_j^2` is the sample variance of the :math:`Z_{ji}` over :math:`n`. With
:math:`L = 2 \log(n \log n)` this is the same as

.. math::

    \Big(\sum_i Z_{ji}\Big)^2 > \frac{L n}{n - 1 + L} \sum_i Z_{ji}^2,

which needs no difference of nearly equal sums and no common factor of the :math:`Z_{ji}`.

Rows may have weights, which say how much each of them matters: sums and means over rows become weighted
ones, and :math:`n` is Kish's effective number of rows, :math:`(\sum_i w_i)^2 / \sum_i w_i^2`. So a common
factor of the weights changes nothing. A row that is left out takes all its weight with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corral import kernels
from corral.array_types import Floats, Integers
from corral.data.tiles import TINY, ClassRows, Left
from corral.rodeo.settings import SMALLEST_COUNT, Update

_KERNELS: dict[str, Callable[..., None]] = {
    "simultaneous": kernels.simultaneous,
    "sequential": kernels.sequential,
}


def rodeo(
    rows: ClassRows, grid: Floats, x: Floats, update: Update, own: Integers | None = None
) -> tuple[Floats, Integers]:
    """Run algorithm 1 at each query.

    Parameters
    ----------
    rows : the class.
    grid : the bandwidths that may be chosen, from the initial one to the smallest.
    x : (n_queries, n_features) scaled queries.
    update : whether bandwidths change after a sweep or inside it.
    own : (n_queries,) for each query the row that it is, which is left out, or -1.

    Returns
    -------
    log_density : (n_queries,), -inf where no row is left.
    steps : (n_queries, n_features) indices of the bandwidths in the grid.
    """
    n_queries, d = x.shape
    log_sum = np.full(n_queries, -np.inf)
    steps = np.zeros((n_queries, d), dtype=np.int64)
    own = np.full(n_queries, -1) if own is None else own
    left = rows.left(own)
    asked = np.flatnonzero(rows.n_rows > (own >= 0))  # kernels must not be asked where no row is left
    if asked.size:
        some_steps, some_sums = np.zeros((asked.size, d), dtype=np.int64), np.empty(asked.size)
        _KERNELS[update](
            rows.tiles,
            rows.n_rows,
            rows.root,
            np.ascontiguousarray(x[asked]),
            own[asked],
            left.total[asked],
            weighted_critical_ratio(left)[asked],
            grid,
            kernels.workspace(rows.tiles),
            some_steps,
            some_sums,
        )
        steps[asked], log_sum[asked] = some_steps, some_sums
    log_norm = np.log(grid[steps]).sum(axis=1) + d * kernels.LOG_ROOT
    return log_sum - log_norm - np.log(np.maximum(left.total, TINY)), steps


def squared_factor(n: Floats | np.float64) -> Floats:
    """Return L = 2 log(n log n), where lambda_j^2 = L s_j^2."""
    L: Floats = 2.0 * np.log(n * np.log(np.maximum(n, SMALLEST_COUNT)))
    return L


def critical_ratio(n: Floats) -> Floats:
    """Return what (sum Z_ji)^2 / sum Z_ji^2 must exceed for a bandwidth to shrink."""
    enough = np.maximum(n, 1.0 + 1e-9)
    L = squared_factor(enough)
    # One row has no variance, so nothing can be told from noise: no ratio exceeds n (Cauchy-Schwarz).
    return np.where(n > 1.0, L * enough / (enough - 1.0 + L), 2.0)


def weighted_critical_ratio(left: Left) -> Floats:
    """Return what (sum w_i Z_ji)^2 / sum w_i Z_ji^2 must exceed for a bandwidth to shrink."""
    ratio: Floats = critical_ratio(left.n) * (left.total / np.maximum(left.n, TINY))
    return ratio

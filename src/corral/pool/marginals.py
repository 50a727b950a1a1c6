r"""Densities of sets of variables in a mixture of kernels, all others integrated out.

The density of a class is a mean of kernels. Where these are products, integrating a variable out leaves its
factors out. Where they are normal with one covariance for all rows, the exponent of the variables
:math:`j_1, \dots, j_k` is :math:`\sum_k z_k^2 / 2`, where :math:`z_k` is the residual of :math:`j_k` given
those before it, over its deviation: one more variable adds one more square.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.data.missing import patterns
from corral.pool.exponents import NO_GROUP
from corral.pool.transforms import complete
from corral.shapley import Coalitions, Walk

if TYPE_CHECKING:
    from corral.pool.densities import Mixture

# From scaled samples (n_samples, n_features), the group that each leaves out, or NO_GROUP, and logarithms
# (n_samples, n_columns) of the frequencies of their categories then, or None, to log densities
# (n_samples, n_sets).
SetDensity = Callable[[Floats, Integers, Floats | None], Floats]


def beginnings(log_weights: Floats, group_ids: Integers, left_out: Integers) -> Floats:
    """Exponents (n_samples, n_rows) of no variables: minus log weights; EXCLUDED for groups left out."""
    start = np.tile(-log_weights, (left_out.size, 1))
    for q in np.flatnonzero(left_out != NO_GROUP).tolist():
        start[q, group_ids == left_out[q]] = kernels.EXCLUDED
    return start


def with_empty_classes(log_density: Floats, start: Floats) -> Floats:
    """Log densities, -inf where no row is left."""
    log_density[(start >= kernels.EXCLUDED).all(axis=1)] = -np.inf
    return log_density


def product_log_densities(walk: Walk, start: Floats, T: Floats, unknown: Bools) -> Floats:
    """Log densities (n_samples, n_sets) of products; see `kernels.walk_products`."""
    n, d = start.shape[1], T.shape[1]
    out = np.empty((len(start), walk.depth.size))
    if out.size:
        kernels.walk_products(
            walk.depth,
            walk.variable,
            start,
            np.ascontiguousarray(T),
            np.ascontiguousarray(unknown),
            np.empty((d, n)),
            np.empty(d),
            np.empty(n),
            np.empty((d + 1, n)),
            np.empty(d + 1),
            np.empty(d + 1, dtype=np.int64),
            np.empty(d + 1, dtype=np.int64),
            np.empty(d + 1),
            out,
        )
    return with_empty_classes(walk.spread(out), start)


def residual_directions(walk: Walk, G: Floats, unknown: Bools) -> tuple[Floats, Floats]:
    """Directions in which each step of a walk adds a coordinate: its variable's residual given those before.

    The covariance of the variables is G G^T, where G has the shape (n_variables, n_axes). With the known
    variables in the order of a path of the walk, G^T = Q R: their covariance is R^T R, and the columns of the
    inverse of R are the directions. A factorization of the covariance itself would lose half of the digits.

    Returns
    -------
    directions : (n_steps, n_variables), 0 for an unknown variable, which is integrated out.
    log_norm : (n_steps,) logarithms of the normal densities at their centres.
    """
    depth, variable = walk.depth, walk.variable
    directions, log_norm = np.zeros((depth.size, len(G))), np.zeros(depth.size)
    if not depth.size or unknown.all():
        return directions, log_norm
    # Each path ends where the next step is not deeper; the steps before its own belong to the last path.
    ends = np.flatnonzero(np.append(depth[1:], 0) <= depth)
    orders = np.empty((ends.size, int((~unknown).sum())), dtype=np.int64)
    steps, n_known, path = [], [], np.empty(len(G), dtype=np.int64)
    for k, (first, last) in enumerate(zip(np.append(0, ends[:-1] + 1), ends, strict=True)):
        steps.append(np.arange(first, last + 1))
        path[depth[steps[-1]]] = variable[steps[-1]]
        is_known = ~unknown[path[: depth[last] + 1]]
        n_known.append(np.cumsum(is_known)[depth[first] :])
        rest = ~unknown
        rest[path[: depth[last] + 1]] = False
        orders[k] = np.append(path[: depth[last] + 1][is_known], np.flatnonzero(rest))
    R = np.linalg.qr(G[orders].transpose(0, 2, 1), mode="r")
    inverse = np.linalg.inv(R)
    norms = np.cumsum(np.log(np.abs(np.diagonal(R, axis1=1, axis2=2))) + kernels.LOG_ROOT, axis=1)
    for k, (at_steps, count) in enumerate(zip(steps, n_known, strict=True)):
        log_norm[at_steps] = -np.append(0.0, norms[k])[count]
        is_known = ~unknown[variable[at_steps]]
        directions[np.ix_(at_steps[is_known], orders[k])] = inverse[k].T[count[is_known] - 1]
    return directions, log_norm


class NormalKernels:
    """Kernels of one covariance on the rows of a class, times the kernels of variables with categories.

    Parameters
    ----------
    mixture : the class.
    walk : over its variables, those with categories last.
    """

    def __init__(self, mixture: Mixture, walk: Walk) -> None:
        transform, kept = mixture.transform, mixture.kernel_rows
        n_numeric, n_used = transform.variables.size, mixture.used.size
        self._walk = walk
        # A root of the covariance and the rows, 0 for variables with categories, which have terms.
        self._G, self._rows = np.zeros((n_used, n_numeric)), np.zeros((len(kept.rows), n_used))
        self._G[:n_numeric] = mixture.bandwidth * np.linalg.inv(transform.factor).T
        completed = complete(transform.precision, transform.centered(kept.rows))
        self._rows[:, :n_numeric] = mixture.shrinkage * completed
        self._term = np.maximum(np.arange(n_used) - n_numeric, -1)
        # The missing variables that `_coordinates` was last called for, and what it returned.
        self._last: tuple[bytes, tuple[Floats, Floats, Floats]] | None = None

    @cached_property
    def _complete(self) -> tuple[Floats, Floats, Floats]:
        """What `_coordinates` returns for samples that miss nothing, which most do."""
        directions, key = self._walk.directions, self._G.tobytes()
        if key not in directions:
            directions[key] = residual_directions(self._walk, self._G, self._term >= 0)
        return *directions[key], directions[key][0] @ self._rows.T

    def _coordinates(self, missing: Integers) -> tuple[Floats, Floats, Floats]:
        """See `residual_directions`, for samples that miss some variables, and (n_steps, n_rows) of rows."""
        if not missing.size:
            return self._complete
        last, key = self._last, missing.tobytes()  # read once: threads may replace it
        if last is None or last[0] != key:
            is_other = self._term >= 0
            is_other[missing] = True
            directions, log_norm = residual_directions(self._walk, self._G, is_other)
            self._last = last = key, (directions, log_norm, directions @ self._rows.T)
        return last[1]

    def log_densities(self, x: Floats, start: Floats, T: Floats) -> Floats:
        """Log densities (n_samples, n_sets) of samples (n_samples, n_variables), NaN for missing values.

        `T` (n_samples, n_terms, n_rows) are the terms of the variables with categories.
        """
        step_log_densities = np.empty((len(x), self._walk.depth.size))
        for samples, missing in patterns(np.isnan(x)):
            step_log_densities[samples] = self._visit(missing, x[samples], start[samples], T[samples])
        return with_empty_classes(self._walk.spread(step_log_densities), start)

    def _visit(self, missing: Integers, x: Floats, start: Floats, T: Floats) -> Floats:
        """Log densities (n_samples, n_steps) of samples that miss the same variables."""
        depth, variable = self._walk.depth, self._walk.variable
        directions, log_norm, Z = self._coordinates(missing)
        out, (n, d) = np.empty((len(x), depth.size)), self._rows.shape
        tile = min(n, kernels.TILE)
        start_sums = np.logaddexp.reduceat(-start, np.arange(0, n, tile), axis=1)
        if out.size:
            kernels.walk_squares(
                depth,
                self._term[variable],
                start,
                start_sums,
                np.ascontiguousarray(T) if T.shape[1] else None,
                np.nan_to_num(x) @ directions.T,
                Z,
                np.ascontiguousarray(np.isnan(x)[:, variable]),
                np.empty((d + 1, tile)),
                np.empty(d + 1, dtype=np.int64),
                np.empty(d + 1),
                out,
            )
        return out + log_norm - np.logaddexp.reduce(start_sums, axis=1, keepdims=True)


def mixture_marginals(mixture: Mixture, sets: Coalitions, group_ids: Integers) -> SetDensity:
    """Densities of sets of variables in a class; `group_ids` (n_rows,): groups of rows."""
    kept, used, transform = mixture.kernel_rows, mixture.used, mixture.transform
    if not len(kept.rows):
        return lambda x, *_: np.full((len(x), len(sets.members)), -np.inf)
    group_ids = np.full(1, NO_GROUP) if mixture.is_normal else group_ids
    walk, log_weights = sets.walk(used), np.log(kept.weights)
    normal = None if transform.is_diagonal else NormalKernels(mixture, walk)

    def log_density(x: Floats, left_out: Integers, log_shares: Floats | None) -> Floats:
        start = beginnings(log_weights, group_ids, left_out)
        T = kept.terms(x, mixture.bandwidth, mixture.shrinkage, log_shares)
        if normal is None:
            return product_log_densities(walk, start, T, np.isnan(x[:, used]))
        coordinates = np.hstack([transform.centered(x), x[:, transform.categories.columns]])
        return normal.log_densities(coordinates, start, T)

    return log_density

"""Compiled loops, and nothing else: no checks, no randomness, no policy.

They are one file, in sections, because numba compiles a kernel anew when the file of the kernel has changed,
and does not look at the functions that it calls.

Layout. A class is an array ``X`` (n_tiles, n_features, tile) of scaled rows: rows are cut into tiles,
and within a tile each variable is contiguous. Rows beyond the last are padding: duplicates of a real row,
with the exponent ``EXCLUDED`` and hence no weight, so that no loop has a scalar tail.

Numerics. The weight of row i is exp(-g_i) with g_i = sum_j (d_ij^2 - d_rj^2) / (2 h_j^2), where d_ij is
the distance to the sample in variable j and r is the row nearest to the sample. Being relative to a row,
g stays accurate however far away the sample is; d_ij^2 - d_rj^2 is taken as the product
(x_rj - x_ij)(2 x_j - x_rj - x_ij), which does not cancel. The test |Z_j| > lambda_j does not change
under a common factor of the weights, so only the density needs the exponent of row r, once, at the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from corral.compiling import compiled

LANES = 16  # rows per step of an unrolled AVX2 loop: tiles are a multiple of it
TILE = 1024  # rows at most in a tile, so that their weights stay in the first cache
EXCLUDED = 1e300  # exponent of a row without weight
LOG_ROOT = 0.5 * math.log(2.0 * math.pi)  # of the norm of a normal density
_BATCH = 4  # samples that share one reading of a class too large for the cache
_LARGE = 1 << 15  # numbers in a class (256 KiB) from which on they do

# Sums may be reordered and contracted, so that they vectorise; NaN and infinity keep their meaning.
_FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}

# For the sake of the first call, only what Python calls gets a wrapper for it, and nothing one for C. What
# kernels call is inlined: else it would be there once for each of them, optimised in its place, and which
# one they all call, and so how sums are rounded, would depend on what the process has compiled or read.
_OUTER: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_OUTER, "no_cpython_wrapper": True, "forceinline": True}

# Squared distances up to R over 2 h^2 = 2 / c leave a rounding error of 2^-54 R c in an exponent. Above
# this limit (an error of 1e-11) they are summed anew instead of subtracted from a larger sum.
_ROUNDING_LIMIT = 1e-11 * 2.0**54

# While the sum of the weights is in this range they need no shift of the exponents.
_LOW, _HIGH = 1e-30, 1e30

# The least product, or sum of weights, that has not lost a row that matters.
_LEAST_PRODUCT = 1e-140

# Interpolation at Chebyshev points of |r| <= log(2)/2: (exp(r) - 1 - r)/r^2 for the exact exponential
# (relative error 2e-17 before rounding) and exp(r) for the rough one (1.02e-7).
_P0, _P1, _P2 = 0.5000000000000001, 0.16666666666666669, 0.04166666666662413
_P3, _P4, _P5 = 8.333333333330062e-3, 1.3888888917213717e-3, 1.9841269863053618e-4
_P6, _P7 = 2.4801521295954376e-5, 2.7557268459997064e-6
_P8, _P9 = 2.7620088445409746e-7, 2.510038549551032e-8
_R0, _R1, _R2 = 1.0000000754548972, 1.00000001077157, 0.49998869378303396
_R3, _R4, _R5 = 0.16666505260408124, 0.04191750724961526, 8.369148490856347e-3
ROUGH_ERROR = 1.1e-7
_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # k * high is exact
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, left in the lowest bits
_STRONGEST = 600.0  # a row with exponent -600 has no weight; +600 is out of range; exp_rough needs x <= 600


# --------------------------------------------------------------------------------------- exponentials


@intrinsic
def _bits(typing_context: Any, x: Any) -> Any:
    """The bits of a double as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _double(typing_context: Any, x: Any) -> Any:
    """The double that has these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


# The exponentials are compiled without "reassoc", which would cancel _ROUND, and must not be inlined by
# numba (LLVM may), since numba would compile them with the flags of their callers.


@compiled(**_OUTER, fastmath={"contract"})
def _exp(x):
    x = x if x > -_STRONGEST else -_STRONGEST
    x = x if x < _STRONGEST else _STRONGEST
    z = x * _LOG2E + _ROUND
    k = z - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    p = (_P0 + _P1 * r) + (_P2 + _P3 * r) * r2
    p += ((_P4 + _P5 * r) + (_P6 + _P7 * r) * r2 + (_P8 + _P9 * r) * r4) * r4
    return _double(_bits(p * r2 + r + 1.0) + (_bits(z) << 52))


@compiled(**_OUTER, fastmath={"contract"})
def _exp_rough(x):
    x = x if x > -_STRONGEST else -_STRONGEST
    z = x * _LOG2E + _ROUND
    r = x - (z - _ROUND) * _LN2
    p = (_R0 + _R1 * r) + ((_R2 + _R3 * r) + (_R4 + _R5 * r) * (r * r)) * (r * r)
    return _double(_bits(p) + (_bits(z) << 52))


@compiled(**_INNER, fastmath={"nnan", "nsz"})
def _least(e):
    """The smallest of some finite numbers ("nnan", which vectorises it, is safe for those), or EXCLUDED."""
    least = EXCLUDED
    for i in range(e.shape[0]):
        least = e[i] if e[i] < least else least
    return least


@compiled(**_INNER, fastmath=_FAST)
def _exponentiate(e, low, weights, out):
    """Write weights_i exp(low - e_i), with weights 1 if there are none, and return the sum."""
    total = 0.0
    for i in range(e.shape[0]):
        out[i] = _exp(low - e[i]) * (1.0 if weights is None else weights[i])
        total += out[i]
    return total


@compiled(**_INNER, fastmath=_FAST)
def _exponentiate_in_place(e, low, weights):
    """The same into e itself; two arrays that are one would keep the loop from being vectorised."""
    total = 0.0
    for i in range(e.shape[0]):
        e[i] = _exp(low - e[i]) * (1.0 if weights is None else weights[i])
        total += e[i]
    return total


@compiled(**_INNER, fastmath=_FAST)
def _weight_left(weights, group_of_row, group):
    """Sum of the weights of rows of other groups."""
    left = 0.0
    for i in range(weights.shape[0]):
        left += weights[i] if group_of_row[i] != group else 0.0
    return left


# ------------------------------------------------------------------------------------------ the Rodeo


def workspace(X: Any) -> tuple[Any, ...]:
    """Allocate the work space for a class, O(n) beyond the class; axis b is the sample within a batch."""
    n_tiles, d, tile = X.shape
    n_batch = _BATCH if X.size > _LARGE else 1
    return (
        np.empty(
            (n_batch, n_tiles, tile)
        ),  # D, per row: squared distances over active variables, less row r's
        np.empty((n_batch, n_tiles, tile)),  # G, per row: exponent from the frozen variables, less row r's
        np.empty(tile),  # a: weights
        np.empty((1, 1, tile)),  # part: sums over some variables
        np.empty((n_batch, d)),  # u: x_r, the row nearest to the sample
        np.empty((n_batch, d)),  # v: 2 x - x_r
        np.empty((n_batch, d)),  # s1: sum of Z_ji over rows, in the order of the active variables
        np.empty((n_batch, d)),  # s2: sum of Z_ji^2
        np.empty((n_batch, d), np.int64),  # order: the active variables, then those that have just stopped
        np.empty(
            (n_batch, 2), np.int64
        ),  # count: how many variables are active, and how many have just stopped
        np.empty(n_batch),  # spread: largest squared distance
        np.empty(n_batch),  # shift: what is added to -g to keep the sum of the weights in range
        np.empty(
            (n_batch, 2)
        ),  # nearest, row r: squared distance over active variables, exponent from frozen
        np.empty(n_batch),  # density: sum of the weights
    )


# The loops below index whole arrays: a view per variable would cost as much as the sum over it.


@compiled(**_INNER, fastmath=_FAST)
def _sum_products(X, t, b, order, begin, end, u, v, out, out_b, out_t):
    """out_i = sum over variables j of (u_j - x_ij)(v_j - x_ij), for the rows i of tile t."""
    for i in range(out.shape[2]):
        out[out_b, out_t, i] = 0.0
    for s in range(begin, end):
        j = order[b, s]
        uj, vj = u[b, j], v[b, j]
        for i in range(out.shape[2]):
            out[out_b, out_t, i] += (uj - X[t, j, i]) * (vj - X[t, j, i])


@compiled(**_INNER, fastmath=_FAST)
def _moments(X, root, t, j, xj, c, a):
    """Sums of Z_ji and of Z_ji^2 over tile t, up to the factor that Z_j and lambda_j share."""
    z1 = 0.0
    z2 = 0.0
    h2 = 1.0 / c  # d^2 - h^2 rather than d^2 / h^2 - 1: one multiplication less per row
    for i in range(a.shape[0]):
        difference = X[t, j, i] - xj
        z = a[i] * (difference * difference - h2)
        z1 += z if root is None else root[t, i] * z
        z2 += z * z
    return z1, z2


@compiled(**_INNER, fastmath=_FAST)
def _sum_weights(root, t, a):
    """Turn exp(-g) into weights, the square root of the row's own weight times it; return the density."""
    density = 0.0
    for i in range(a.shape[0]):
        weight = 1.0 if root is None else root[t, i]
        a[i] *= weight
        density += a[i] * weight
    return density


@compiled(**_INNER, fastmath=_FAST)
def _gather_all(X, root, b, x, q, order, begin, end, c, shift, D, G, a, s1, s2):
    """Sums over all rows for order[begin:end], with exact weights, shifted so that they are in range."""
    density = 0.0
    for attempt in range(2):
        if attempt == 1:  # let the strongest row have weight 1
            shift[b] = EXCLUDED
            for t in range(X.shape[0]):
                for i in range(a.shape[0]):
                    shift[b] = min(shift[b], G[b, t, i] + D[b, t, i] * 0.5 * c)
        for s in range(begin, end):
            s1[b, s] = 0.0
            s2[b, s] = 0.0
        density = 0.0
        for t in range(X.shape[0]):
            for i in range(a.shape[0]):
                a[i] = _exp(shift[b] - (G[b, t, i] + D[b, t, i] * 0.5 * c))
            density += _sum_weights(root, t, a)
            for s in range(begin, end):
                z1, z2 = _moments(X, root, t, order[b, s], x[q, order[b, s]], c, a)
                s1[b, s] += z1
                s2[b, s] += z2
        if _LOW < density < _HIGH:
            break
    return density


@compiled(**_INNER)
def _start(X, n_rows, x, q, own, b, D, G, u, v, count, spread, shift, nearest):
    """Turn squared distances in D into those relative to the nearest row, leaving row `own` out."""
    n_tiles, d, tile = X.shape
    nearest_t, nearest_i = 0, 0
    least, most = np.inf, 0.0
    for t in range(n_tiles):
        for i in range(tile):
            row = t * tile + i
            if row < n_rows and row != own:
                G[b, t, i] = 0.0
                most = max(most, D[b, t, i])
                if D[b, t, i] < least:
                    nearest_t, nearest_i, least = t, i, D[b, t, i]
            else:
                G[b, t, i] = EXCLUDED
    for t in range(n_tiles):
        for i in range(tile):
            D[b, t, i] -= least
    for j in range(d):
        u[b, j] = X[nearest_t, j, nearest_i]
        v[b, j] = 2.0 * x[q, j] - u[b, j]
    count[b, 0], count[b, 1] = d, 0
    spread[b], shift[b] = most, 0.0
    nearest[b, 0], nearest[b, 1] = least, 0.0


@compiled(**_OUTER, fastmath=_FAST)
def simultaneous(X, n_rows, root, x, own, total, critical, h, work, steps, log_sum):
    """Algorithm 1 with all active bandwidths shrinking together, for many samples and one class.

    In sweep k every active variable has the bandwidth h[k], so the exponent of row i is
    G_i + D_i / (2 h[k]^2), with D_i over the active variables and G_i over the frozen ones: a sweep
    costs one exponential per row and one pass per active variable.

    Parameters
    ----------
    X : (n_tiles, n_features, tile) the class.
    n_rows : rows that are not padding; at least one of them is not `own`.
    root : (n_tiles, tile) square roots of the rows' own weights, or None if all are 1.
    x : (n_samples, n_features) samples.
    own : (n_samples,) a row to leave out, or -1.
    total : (n_samples,) sum of the weights of the rows not left out.
    critical : (n_samples,) a variable shrinks where (sum Z_ji)^2 > critical * sum Z_ji^2.
    h : (n_steps + 1,) the bandwidths h0 beta^k, down to the floor.
    work : workspace(X).
    steps : (n_samples, n_features) written: each bandwidth's index in h.
    log_sum : (n_samples,) written: log of sum_i w_i exp(-sum_j d_ij^2 / (2 h_j^2)).
    """
    n_tiles, d, tile = X.shape
    D, G, a, part, u, v, s1, s2, order, count, spread, shift, nearest, density = work
    n_batch = count.shape[0]
    zero = np.int64(0)  # numba would compile the callees once more for a literal 0
    for first in range(0, x.shape[0], n_batch):
        size = min(n_batch, x.shape[0] - first)
        for b in range(size):
            for j in range(d):
                order[b, j] = j
                u[b, j] = x[first + b, j]
                v[b, j] = x[first + b, j]
                s1[b, j] = 0.0
                s2[b, j] = 0.0
            density[b] = 0.0
        for t in range(n_tiles):
            for b in range(size):
                _sum_products(X, t, b, order, zero, d, u, v, D, b, t)
        for b in range(size):
            _start(X, n_rows, x, first + b, own[first + b], b, D, G, u, v, count, spread, shift, nearest)
        going = size
        k = 0
        c_before = 0.0
        while going > 0:
            c = 1.0 / (h[k] * h[k])
            for t in range(n_tiles):
                for b in range(size):
                    q = first + b
                    n_active, n_stopped = count[b, 0], count[b, 1]
                    if n_active == 0:
                        continue
                    # Move variables that stopped in the last sweep from D to G. Summing the active ones
                    # anew is exact, and cheaper where fewer of them go on than stop.
                    exact = spread[b] * c > _ROUNDING_LIMIT
                    newly_exact = exact and not spread[b] * c_before > _ROUNDING_LIMIT
                    if n_stopped > 0 or newly_exact:
                        begin, end, keep, add = n_active, n_active + n_stopped, 1.0, -1.0
                        if exact or n_stopped >= n_active:
                            begin, end, keep, add = zero, n_active, 0.0, 1.0
                        _sum_products(X, t, b, order, begin, end, u, v, part, zero, zero)
                        for i in range(tile):
                            left = keep * D[b, t, i] + add * part[0, 0, i]
                            G[b, t, i] += (D[b, t, i] - left) * 0.5 * c_before
                            D[b, t, i] = left

                    # Relative to row r, no row weighs more than the inverse of row r's own kernel.
                    if shift[b] + nearest[b, 1] + nearest[b, 0] * 0.5 * c > _STRONGEST:
                        continue
                    half = tile // 2  # two rows at a time share the loading of constants
                    for i in range(half):
                        a[i] = _exp_rough(shift[b] - (G[b, t, i] + D[b, t, i] * 0.5 * c))
                        a[i + half] = _exp_rough(shift[b] - (G[b, t, i + half] + D[b, t, i + half] * 0.5 * c))
                    density[b] += _sum_weights(root, t, a)
                    for s in range(n_active):
                        z1, z2 = _moments(X, root, t, order[b, s], x[q, order[b, s]], c, a)
                        s1[b, s] += z1
                        s2[b, s] += z2

            for b in range(size):
                q = first + b
                n_active = count[b, 0]
                if n_active == 0:
                    continue
                if not _LOW < density[b] < _HIGH:
                    _gather_all(X, root, b, x, q, order, zero, n_active, c, shift, D, G, a, s1, s2)
                # Rough weights move sum Z_ji by at most error * sqrt(n sum Z_ji^2), by Cauchy-Schwarz,
                # and the root of sum Z_ji^2 by a factor 1 +- error: where that could turn the test,
                # exact weights decide.
                doubt = 1.01 * ROUGH_ERROR * (math.sqrt(total[q]) + math.sqrt(critical[q]))
                surely = (math.sqrt(critical[q]) + doubt) ** 2
                hardly = (math.sqrt(critical[q]) - doubt) ** 2
                kept = 0
                nearest[b, 0] = 0.0
                for s in range(n_active):
                    j = order[b, s]
                    square = s1[b, s] * s1[b, s]
                    shrinks = square > surely * s2[b, s]
                    if not shrinks and square > hardly * s2[b, s]:
                        _gather_all(X, root, b, x, q, order, s, s + 1, c, shift, D, G, a, s1, s2)
                        shrinks = s1[b, s] * s1[b, s] > critical[q] * s2[b, s]
                    s1[b, s] = 0.0
                    s2[b, s] = 0.0
                    difference = x[q, j] - u[b, j]
                    if shrinks and k + 1 < h.shape[0]:
                        nearest[b, 0] += difference * difference
                        order[b, s] = order[b, kept]
                        order[b, kept] = j
                        kept += 1
                    else:
                        nearest[b, 1] += difference * difference * 0.5 * c
                        steps[q, j] = k
                count[b, 0], count[b, 1] = kept, n_active - kept
                density[b] = 0.0
                if kept == 0:
                    going -= 1
                    last = _gather_all(X, root, b, x, q, order, zero, zero, c, shift, D, G, a, s1, s2)
                    log_sum[q] = math.log(last) - shift[b] - nearest[b, 1]
            c_before = c
            k += 1


# --------------------------------------------------------------------- sums over the tiles of a class


@compiled(**_OUTER, fastmath=_FAST)
def kernel_sums(X, n_rows, weights, x, own, half_c, log_sum):
    """Kernel sums for many samples and one class, with given bandwidths.

    Tiles are outermost, so that a tile serves all samples while it is in the cache.

    Parameters
    ----------
    X, n_rows, x, own : as above.
    weights : (n_tiles, tile) the rows' own weights, or None if all are 1.
    half_c : (n_features,) 1 / (2 h_j^2), or 0 for a variable that takes no part.
    log_sum : (n_samples,) written as above; about -EXCLUDED where no row is left.
    """
    n_tiles, d, tile = X.shape
    a, least = np.empty(tile), np.empty(x.shape[0])
    for q in range(x.shape[0]):
        least[q] = EXCLUDED
        log_sum[q] = 0.0  # the sum itself, times exp(least), until the end
    for t in range(n_tiles):
        begin = t * tile
        for q in range(x.shape[0]):
            for i in range(tile):
                a[i] = 0.0 if begin + i < n_rows else EXCLUDED
            for j in range(0, d, 2):  # two variables share the reading and writing of the sums
                other = j + 1 if j + 1 < d else j
                x0, x1, c0 = x[q, j], x[q, other], half_c[j]
                c1 = half_c[other] if other > j else 0.0
                for i in range(tile):
                    one, two = X[t, j, i] - x0, X[t, other, i] - x1
                    a[i] += one * one * c0 + two * two * c1
            if begin <= own[q] < begin + tile:
                a[own[q] - begin] = EXCLUDED
            low = _least(a)
            if low < least[q]:
                log_sum[q] *= _exp(low - least[q])
                least[q] = low
            if weights is None:  # one branch each: an expression of both would be compiled as a third type
                log_sum[q] += _exponentiate_in_place(a, least[q], None)
            else:
                log_sum[q] += _exponentiate_in_place(a, least[q], weights[t])
    for q in range(x.shape[0]):
        log_sum[q] = math.log(log_sum[q]) - least[q]


# ---------------------------------------------------------------------------------- members of a pool


@compiled(**_OUTER, fastmath=_FAST)
def shrunken_log_means(
    product, half_x, half_c, weights, group_of_x, group_of_c, pull, precision, a, log_mean
):
    """Means of kernels for many samples and one class, from products of coordinates, for several bandwidths.

    With the coordinates x_q of a sample and c_i of a row, both relative to the mean of the class, the centre
    of row i is pull c_i, and its exponent precision (x_q^2 / 2 - pull x_q c_i + pull^2 c_i^2 / 2).

    Parameters
    ----------
    product : (n_samples, n_rows) products x_q c_i.
    half_x, half_c : (n_samples,) and (n_rows,) halves of squared lengths.
    weights : (n_rows,)
    group_of_x, group_of_c : (n_samples,) and (n_rows,) groups; rows of the sample's group are left out. No
        row has a negative one.
    pull, precision : (m,)
    a : (1, n_rows) work space.
    log_mean : (m, n_samples) written: logarithms of weighted means; -inf where no row is left.
    """
    e, total_weight = a[0], _weight_left(weights, group_of_c, -1)
    for q in range(product.shape[0]):
        products, group = product[q], group_of_x[q]
        left = total_weight if group < 0 else _weight_left(weights, group_of_c, group)
        for k in range(pull.shape[0]):
            if left == 0.0 or pull[k] == 0.0:  # all centers are the mean of the class
                log_mean[k, q] = -np.inf if left == 0.0 else -precision[k] * half_x[q]
                continue
            by_product, by_length = precision[k] * pull[k], precision[k] * pull[k] * pull[k]
            for i in range(products.shape[0]):
                e[i] = by_length * half_c[i] - by_product * products[i]
            if group >= 0:
                for i in range(products.shape[0]):
                    e[i] = e[i] if group_of_c[i] != group else EXCLUDED
            low = _least(e)
            total = _exponentiate_in_place(e, low, weights)
            log_mean[k, q] = math.log(total / left) - low - precision[k] * half_x[q]


@compiled(**_OUTER, fastmath=_FAST)
def kernel_weights(product, half_x, half_c, weights, group_of_x, group_of_c, starts, total, log_mean):
    """Turn products of coordinates into the weights of rows in the kernel means of their classes.

    Parameters
    ----------
    product : (n_samples, n_rows) as above, with rows sorted by class; overwritten by weights that
        sum to `total`.
    half_x, half_c, weights, group_of_x, group_of_c : as above.
    starts : (n_classes + 1,) where the rows of each class begin.
    total, log_mean : (n_samples, n_classes) written: that sum, 0 where no row is left, and the logarithm of
        the weighted mean of the kernels.
    """
    for q in range(product.shape[0]):
        for i in range(product.shape[1]):
            g = half_x[q] + half_c[i] - product[q, i]
            product[q, i] = g if group_of_c[i] != group_of_x[q] else EXCLUDED
        for y in range(starts.shape[0] - 1):
            # Views, because an index that might be negative keeps loops from being vectorised.
            w = weights[starts[y] : starts[y + 1]]
            left = _weight_left(w, group_of_c[starts[y] : starts[y + 1]], group_of_x[q])
            e = product[q, starts[y] : starts[y + 1]]
            if left == 0.0:
                for i in range(e.shape[0]):
                    e[i] = 0.0
                total[q, y] = 0.0
                log_mean[q, y] = -np.inf
                continue
            low = _least(e)
            total[q, y] = _exponentiate_in_place(e, low, w)
            log_mean[q, y] = math.log(total[q, y] / left) - low


@compiled(**_OUTER)
def pool_loss(log_density, codes, weights, log_prior, factors, proba, gradient, centered):
    """Mean log loss of sums of log densities, each multiplied by its factor.

    Parameters
    ----------
    log_density : (n_members, n_samples, n_classes), finite.
    codes : (n_samples,) right classes.
    weights : (n_samples,); points of weight 0 do not count.
    log_prior : (n_classes,)
    factors : (n_members,)
    proba : (n_classes,) work space.
    gradient : (n_members,) written: derivatives of the loss by the logarithms of the factors.
    centered : (n_members, n_samples, n_classes) written: the sum of the products of two members over points
        and classes is Fisher's information about the logarithms of their factors.
    """
    # Loops in place of slices, which take long to compile.
    loss = 0.0
    for m in range(factors.shape[0]):
        gradient[m] = 0.0
    for q in range(codes.shape[0]):
        if weights[q] == 0.0:
            for m in range(factors.shape[0]):
                for y in range(proba.shape[0]):
                    centered[m, q, y] = 0.0
            continue
        highest = -np.inf
        for y in range(proba.shape[0]):
            proba[y] = log_prior[y]
            for m in range(factors.shape[0]):
                proba[y] += factors[m] * log_density[m, q, y]
            highest = proba[y] if proba[y] > highest else highest
        right = proba[codes[q]] - highest
        total = 0.0
        for y in range(proba.shape[0]):
            proba[y] = math.exp(proba[y] - highest)
            total += proba[y]
        loss -= weights[q] * (right - math.log(total))
        for m in range(factors.shape[0]):
            mean = 0.0
            for y in range(proba.shape[0]):
                mean += proba[y] * log_density[m, q, y]
            mean /= total
            gradient[m] += factors[m] * weights[q] * (mean - log_density[m, q, codes[q]])
            for y in range(proba.shape[0]):
                # The root first: far below the others, a log density may have no finite square.
                root = math.sqrt(weights[q] * proba[y] / total)
                centered[m, q, y] = factors[m] * root * (log_density[m, q, y] - mean)
    return loss


# ------------------------------------------------------------------ the Rodeo in the general case

# Values may be missing (NaN) or numbers of categories, rows are left out by groups, and bandwidths may differ
# from the first sweep on. No "nnan", so that a missing value is seen.


@compiled(**_INNER, fastmath=_FAST)
def _add_terms(X, j, is_category, xj, uj, c, missing, e):
    """Add c times the squared distance in variable j, less that of u_j; `missing` to rows without a value."""
    vj = 2.0 * xj - uj
    for t in range(X.shape[0]):
        for i in range(X.shape[2]):
            value = X[t, j, i]
            apart = (uj - value) * (vj - value)
            if is_category:
                apart = 0.0 if value == xj else 1.0
            e[t, i] += missing if math.isnan(value) else c * apart


@compiled(**_INNER, fastmath=_FAST)
def _derivative_sums(X, j, is_category, xj, expected, root, a):
    """Sums of Z_ji and of Z_ji^2 over rows, up to the factor that Z_j and lambda_j share."""
    z1 = 0.0
    z2 = 0.0
    for t in range(X.shape[0]):
        for i in range(X.shape[2]):
            value = X[t, j, i]
            apart = (value - xj) * (value - xj)
            if is_category:
                apart = 0.0 if value == xj else 1.0
            z = a[t, i] * (apart - expected)
            z = 0.0 if math.isnan(value) else z  # its factor does not depend on the bandwidth
            z1 += root[t, i] * z
            z2 += z * z
    return z1, z2


@compiled(**_INNER)
def _nearest_row(a):
    """Tile and place of the smallest number."""
    tile, place = 0, 0
    for t in range(a.shape[0]):
        for i in range(a.shape[1]):
            if a[t, i] < a[tile, place]:
                tile, place = t, i
    return tile, place


@compiled(**_INNER, fastmath=_FAST)
def _weigh_rows(e, root, a):
    """Write root_i exp(low - e_i), where low is the least exponent, which is returned."""
    low = EXCLUDED
    for t in range(e.shape[0]):
        least = _least(e[t])
        low = least if least < low else low
    for t in range(e.shape[0]):
        _exponentiate(e[t], low, root[t], a[t])
    return low


@compiled(**_OUTER, fastmath=_FAST)
def descend(
    X, n_categories, root, groups, x, group, nearest, log_value, half_c, log_norm, expected, critical,
    n_steps, sequential, u, order, e, a, steps, log_sum, first, second,
):  # fmt: skip
    """Algorithm 1 for many samples and one class.

    Parameters
    ----------
    X : (n_tiles, n_features, tile) the class.
    n_categories : (n_features,) 0 for measurements.
    root : (n_tiles, tile) square roots of the rows' own weights.
    groups : (n_tiles, tile) groups of the rows, negative for padding.
    x : (n_samples, n_features) samples; a variable that is NaN takes no part.
    group : (n_samples,) rows of this group are left out; some other row must be left.
    nearest, log_value : (n_samples, n_features) where some row has no value: the nearest value of any row,
        and the logarithm of the factor of a row without one.
    half_c, log_norm, expected : (n_grid, n_features) of the bandwidths that may be chosen: 1 / (2 h_j^2), the
        logarithm of the kernel's norm, and the mean of the squared distance under the kernel.
    critical : (n_samples,) a variable shrinks where (sum Z_ji)^2 > critical * sum Z_ji^2.
    n_steps : (n_samples, n_features) how many of the bandwidths may be chosen; 0 for no test at all.
    sequential : whether bandwidths change inside a sweep, as printed, or after it.
    u, order, e, a : (n_features,), (n_features,), (n_tiles, tile) and (n_tiles, tile) work space.
    steps : (n_samples, n_features) written: each bandwidth's index in the grid.
    log_sum : (n_samples,) written: logarithm of the weighted sum of the kernels.
    first, second : (n_recorded, n_features) written: the sums of Z_ji and of Z_ji^2 that were tested in the
        first sweeps, of the last sample. The others keep what they have.
    """
    n_tiles, d, tile = X.shape
    for q in range(x.shape[0]):
        for t in range(n_tiles):
            for i in range(tile):
                e[t, i] = EXCLUDED if groups[t, i] < 0 or groups[t, i] == group[q] else 0.0
                a[t, i] = e[t, i]
        for j in range(d):
            if x[q, j] == x[q, j]:
                beside = (x[q, j] - nearest[q, j]) * (x[q, j] - nearest[q, j])
                _add_terms(X, j, n_categories[j] > 0, x[q, j], x[q, j], 1.0, beside, a)
        nearest_t, nearest_i = _nearest_row(a)
        n_active = 0
        for j in range(d):
            steps[q, j] = 0
            if x[q, j] == x[q, j]:
                u[j] = X[nearest_t, j, nearest_i]
                u[j] = u[j] if u[j] == u[j] and n_categories[j] == 0 else nearest[q, j]
                own = (x[q, j] - u[j]) * (x[q, j] - u[j]) * half_c[0, j] + log_norm[0, j]
                _add_terms(X, j, n_categories[j] > 0, x[q, j], u[j], half_c[0, j], -log_value[q, j] - own, e)
                if n_steps[q, j] > 0:
                    order[n_active] = j
                    n_active += 1
        low = _weigh_rows(e, root, a)
        changed = False
        sweep = 0
        while n_active > 0:
            kept = 0
            for s in range(n_active):
                if changed and sequential:
                    low = _weigh_rows(e, root, a)
                    changed = False
                j = order[s]
                k = steps[q, j]
                z1, z2 = _derivative_sums(X, j, n_categories[j] > 0, x[q, j], expected[k, j], root, a)
                if sweep < first.shape[0]:
                    first[sweep, j] = z1
                    second[sweep, j] = z2
                if k + 1 < n_steps[q, j] and z1 * z1 > critical[q] * z2:
                    order[kept] = j
                    kept += 1
                    steps[q, j] = k + 1
                    change = half_c[k + 1, j] - half_c[k, j]
                    own = (x[q, j] - u[j]) * (x[q, j] - u[j]) * change + log_norm[k + 1, j] - log_norm[k, j]
                    _add_terms(X, j, n_categories[j] > 0, x[q, j], u[j], change, -own, e)
                    changed = True
            if changed:
                low = _weigh_rows(e, root, a)
                changed = False
            n_active = kept
            sweep += 1
        total = 0.0
        for t in range(n_tiles):
            for i in range(tile):
                total += root[t, i] * a[t, i]
        log_sum[q] = math.log(total) - low
        for j in range(d):
            if x[q, j] == x[q, j]:
                k = steps[q, j]
                log_sum[q] -= (x[q, j] - u[j]) * (x[q, j] - u[j]) * half_c[k, j] + log_norm[k, j]


# ------------------------------------------------------------------- categories, in members of a pool


@compiled(**_INNER, fastmath=_FAST)
def _add_categories(q, category_exponents, offsets, x, c, has_missing, a):
    """Add the exponents of the categories of sample q to the exponents (n_rows,) of measurements."""
    for j in range(x.shape[1]):
        xj = x[q, j]
        if math.isnan(xj):
            continue
        k = offsets[j] + int(xj)
        equal, other, missing = category_exponents[0, k], category_exponents[1, k], category_exponents[2, k]
        if has_missing[j]:
            for i in range(a.shape[0]):
                present = equal if c[j, i] == xj else other
                a[i] += present if c[j, i] == c[j, i] else missing
        else:
            for i in range(a.shape[0]):
                a[i] += equal if c[j, i] == xj else other


@compiled(**_OUTER, fastmath=_FAST)
def add_exponents(xc, cc, half, shrinkage, category_exponents, offsets, x, c, has_missing, exponents):
    """Add what rows, whose coordinates are shrunk, change in exponents (n_samples, n_rows) of kernels.

    Parameters
    ----------
    xc, cc : (n_samples, n_rows) products with rows, and squared lengths of rows in these coordinates.
    half, shrinkage : 1 / (2 h^2) of the bandwidth h, and the factor of rows' coordinates.
    category_exponents : (3, n_categories) exponents for each category of all columns that a sample may have:
        if the row has the same, if it has another, and if it has none.
    offsets : (n_columns,) where the categories of each column begin.
    x, c : (n_samples, n_columns) and (n_columns, n_rows) numbers of categories, NaN for missing values.
    has_missing : (n_columns,) whether some row has none.
    """
    twice, square = 2.0 * half * shrinkage, half * shrinkage * shrinkage
    for q in range(exponents.shape[0]):
        a, product, length = exponents[q], xc[q], cc[q]
        for i in range(a.shape[0]):
            a[i] += square * length[i] - twice * product[i]
        _add_categories(q, category_exponents, offsets, x, c, has_missing, a)


@compiled(**_OUTER, fastmath=_FAST)
def log_means(exponents, weights, group_of_x, group_of_c, log_mean):
    """Logarithms (n_samples,) of weighted means of exp(-exponents), which are overwritten.

    Rows that share the group of a sample are left out; the mean of no rows is -inf.
    """
    for q in range(exponents.shape[0]):
        e = exponents[q]
        for i in range(e.shape[0]):
            e[i] = e[i] if group_of_c[i] != group_of_x[q] else EXCLUDED
        left = _weight_left(weights, group_of_c, group_of_x[q])
        low = _least(e)
        log_mean[q] = (
            math.log(_exponentiate_in_place(e, low, weights) / left) - low if left > 0.0 else -np.inf
        )


@compiled(**_OUTER, fastmath=_FAST)
def add_category_exponents(category_exponents, offsets, x, c, has_missing, exponents):
    """Add the exponents of categories to others (n_samples, n_rows); parameters are as above."""
    for q in range(x.shape[0]):
        _add_categories(q, category_exponents, offsets, x, c, has_missing, exponents[q])


@compiled(**_OUTER, fastmath=_FAST)
def category_shares(x, c, has_missing, shares, totals, apart, both):
    """Sums (n_columns,) of shares (n_samples, n_rows) where categories differ, and where both have one.

    `totals` (n_samples,) are sums of the shares over rows; the other parameters are as above.
    """
    for j in range(x.shape[1]):
        apart[j] = 0.0
        both[j] = 0.0
    for q in range(x.shape[0]):
        share = shares[q]
        for j in range(x.shape[1]):
            xj = x[q, j]
            if math.isnan(xj):
                continue
            equal = 0.0
            for i in range(share.shape[0]):
                equal += share[i] if c[j, i] == xj else 0.0
            total = totals[q]
            if has_missing[j]:
                total = 0.0
                for i in range(share.shape[0]):
                    total += share[i] if c[j, i] == c[j, i] else 0.0
            apart[j] += total - equal
            both[j] += total


# ------------------------------------------------------------------ missing values along a covariance

# Normal rows of mean 0 with the precision matrix P: the values J that a row misses have the conditional
# precision P_JJ, and the expectation that solves P_JJ r_J = -P_JO r_O.


@compiled(**_INNER, fastmath=_FAST)
def _factorize(precision, is_missing, i, missing, L):
    """List the values J that row i misses, and write Cholesky's factor of P_JJ; return how many they are."""
    m = 0
    for j in range(is_missing.shape[1]):
        if is_missing[i, j]:
            missing[m] = j
            m += 1
    for a in range(m):
        for b in range(a + 1):
            value = precision[missing[a], missing[b]]
            for c in range(b):
                value -= L[a, c] * L[b, c]
            L[a, b] = math.sqrt(value) if a == b else value / L[b, b]
    return m


@compiled(**_OUTER, fastmath=_FAST)
def complete_rows(precision, is_missing, r, missing, L):
    """Put missing values at their expectations given the others.

    Parameters
    ----------
    precision : (d, d) P.
    is_missing : (n_rows, d) which values are missing.
    r : (n_rows, d) rows, 0 for missing values; written there.
    missing, L : (d,) and (d, d) work space.
    """
    solution = np.empty(r.shape[1])
    for i in range(r.shape[0]):
        m = _factorize(precision, is_missing, i, missing, L)
        for a in range(m):
            value = 0.0
            for j in range(r.shape[1]):
                value -= precision[missing[a], j] * r[i, j]
            for b in range(a):
                value -= L[a, b] * solution[b]
            solution[a] = value / L[a, a]
        for a in range(m - 1, -1, -1):
            value = solution[a]
            for b in range(a + 1, m):
                value -= L[b, a] * solution[b]
            solution[a] = value / L[a, a]
        for a in range(m):
            r[i, missing[a]] = solution[a]


@compiled(**_OUTER, fastmath=_FAST)
def add_conditional_covariances(precision, is_missing, weights, missing, L, inverse, covariance):
    """Add the weighted conditional covariances of what rows miss to a covariance; `inverse` is as L."""
    for i in range(is_missing.shape[0]):
        m = _factorize(precision, is_missing, i, missing, L)
        for a in range(m):  # the inverse of L, its columns as rows
            inverse[a, a] = 1.0 / L[a, a]
            for b in range(a + 1, m):
                value = 0.0
                for c in range(a, b):
                    value -= L[b, c] * inverse[a, c]
                inverse[a, b] = value / L[b, b]
        for a in range(m):
            for b in range(a + 1):
                value = 0.0
                for c in range(a, m):
                    value += inverse[a, c] * inverse[b, c]
                covariance[missing[a], missing[b]] += weights[i] * value
                if a != b:
                    covariance[missing[b], missing[a]] += weights[i] * value


@compiled(**_OUTER, fastmath=_FAST)
def integrated_lengths(precision, is_missing, U, lengths, missing, L, v, out, log_volume):
    """Squared lengths of rows in the coordinates that are left to samples with missing values.

    Integrating J out takes u_J P_JJ^-1 u_J from the length of a row r, with u = P r.

    Parameters
    ----------
    precision, missing, L : as above.
    is_missing : (n_samples, d) which values are missing.
    U, lengths : (d, n_rows) and (n_rows,)
    v : (d, n_rows) work space.
    out : (n_samples, n_rows) written.
    log_volume : (n_samples,) written: half the logarithm of the determinant of P_JJ.
    """
    n = lengths.shape[0]
    for q in range(is_missing.shape[0]):
        m = _factorize(precision, is_missing, q, missing, L)
        log_volume[q] = 0.0
        for i in range(n):
            out[q, i] = lengths[i]
        for a in range(m):
            log_volume[q] += math.log(L[a, a])
            j = missing[a]
            for i in range(n):
                v[a, i] = U[j, i]
            for b in range(a):
                factor = L[a, b]
                for i in range(n):
                    v[a, i] -= factor * v[b, i]
            factor = 1.0 / L[a, a]
            for i in range(n):
                v[a, i] *= factor
                out[q, i] -= v[a, i] * v[a, i]


# ------------------------------------------------------------------- each variable given all others


@compiled(**_INNER, fastmath=_FAST)
def _log_sum_from_least(a, k, n):
    """Logarithm of the sum of exp(-exponents k), relative to the least of them."""
    # The exponentials of the C library are slower than `_exp` and take a fraction of its time to compile.
    least = EXCLUDED
    for i in range(n):
        least = a[k, i] if a[k, i] < least else least
    total = 0.0
    for i in range(n):
        total += math.exp(least - a[k, i])
    return math.log(total) - least


@compiled(**_INNER, fastmath=_FAST)
def _add_relative_squares(old, z, c, j, reference, factor, new, shift):
    """Write old + factor ((z - c)^2 - (z - reference)^2) as new; return the sum of exp(shift - new)."""
    row = np.uint64(j)
    total = 0.0
    for i in range(old.shape[0]):
        new[i] = old[i] + factor * (reference - c[row, np.uint64(i)]) * (
            2.0 * z - reference - c[row, np.uint64(i)]
        )
        total += _exp(shift - new[i])
    return total


@compiled(**_OUTER, fastmath=_FAST)
def conditional_log_ratios(z, c, pull_z, pull_c, half_inverse, nearest, exponents, work, log_ratio):
    """Logarithms of kernel sums over those without the term of one variable, relative to a nearby row.

    Parameters
    ----------
    z, c : (n_samples, n_axes) and (n_axes, n_rows) coordinates of samples and rows.
    pull_z, pull_c : (n_samples, n_variables) and (n_variables, n_rows) numbers whose squared differences,
        times `half_inverse`, are the terms of the variables.
    half_inverse : (n_variables,)
    nearest : (n_samples,) a row near each sample.
    exponents : (n_samples, n_rows) minus logarithms of weights; written: exponents less that of `nearest`.
    work : (1, n_rows) work space.
    log_ratio : (n_samples, n_variables) written.
    """
    n = exponents.shape[1]
    for q in range(z.shape[0]):
        all_terms, row = exponents[q], nearest[q]
        for k in range(z.shape[1]):
            reference, twice = c[k, row], 2.0 * z[q, k] - c[k, row]
            for i in range(n):
                all_terms[i] += 0.5 * (reference - c[k, i]) * (twice - c[k, i])
        log_sum = _log_sum_from_least(exponents, q, n)
        for j in range(pull_z.shape[1]):
            total = _add_relative_squares(
                all_terms, pull_z[q, j], pull_c, j, pull_c[j, row], -half_inverse[j], work[0], -log_sum
            )
            if _LEAST_PRODUCT < total < _HIGH:
                log_ratio[q, j] = -math.log(total)
            else:
                log_ratio[q, j] = log_sum - _log_sum_from_least(work, 0, n)


# ---------------------------------------------------------------------------------- sets of variables

# Densities of sets of variables, each reached from another by adding one: a walk down a tree, whose state at
# depth k is kept until the walk comes back to it. A step that adds what a sample lacks changes nothing.


@compiled(**_INNER, fastmath=_FAST)
def _multiply(a, k, factor, j):
    """Write the product of weights k and factors j as weights k + 1, and return its sum."""
    # Unsigned, because an index that might be negative keeps loops from being vectorised, and a view costs
    # as much as the loop.
    old, new, row = np.uint64(k), np.uint64(k + 1), np.uint64(j)
    total = 0.0
    for i in range(a.shape[1]):
        product = a[old, i] * factor[row, i]
        a[new, i] = product
        total += product
    return total


@compiled(**_OUTER, fastmath=_FAST)
def walk_products(
    depth, variable, start, T, unknown, factor, least, e, a, shift, path, n_present, value, out
):
    """Logarithms of kernel means along a walk, where kernels are products over the variables.

    Each factor is an exponential that is taken once, relative to the largest one of its variable; products
    whose sum falls out of range are taken anew from the exponents.

    Parameters
    ----------
    depth, variable : (n_steps,) how many variables are there before the step, and the one that is added.
    start : (n_samples, n_rows) exponents of no variables: minus logarithms of weights, or EXCLUDED.
    T : (n_samples, n_variables, n_rows) exponents by variable.
    unknown : (n_samples, n_variables) which variables take no part.
    factor, least : (n_variables, n_rows) and (n_variables,) work space.
    e : (n_rows,) work space.
    a, shift : (n_variables + 1, n_rows) and (n_variables + 1,) work space: weights, and what they lack.
    path, n_present, value : (n_variables + 1,) work space, by depth: variables, how many are present, logs.
    out : (n_samples, n_steps) written.
    """
    n = start.shape[1]
    for q in range(start.shape[0]):
        for j in range(T.shape[1]):
            if not unknown[q, j]:
                t = T[q, j]
                least[j] = _least(t)
                _exponentiate(t, least[j], None, factor[j])
        n_present[0] = 0
        shift[0] = _least(start[q])
        log_weight = math.log(_exponentiate(start[q], shift[0], None, a[0])) - shift[0]
        value[0] = 0.0
        for s in range(depth.shape[0]):
            k, j = depth[s], variable[s]
            before = n_present[k]
            if unknown[q, j]:
                n_present[k + 1] = before
                value[k + 1] = value[k]
            else:
                after = before + 1
                n_present[k + 1] = after
                path[after] = j
                shift[after] = shift[before] + least[j]
                total = _multiply(a, before, factor, j)
                if total < _LEAST_PRODUCT:
                    for i in range(n):
                        e[i] = start[q, i]
                    for m in range(1, after + 1):
                        t = T[q, path[m]]
                        for i in range(n):
                            e[i] += t[i]
                    shift[after] = _least(e)
                    total = _exponentiate(e, shift[after], None, a[after])
                value[k + 1] = math.log(total) - shift[after] - log_weight
            out[q, s] = value[k + 1]


@compiled(**_INNER, fastmath=_FAST)
def _add_square(a, k, z, Z, s, first, n, shift):
    """Write exponents k plus half the squares of z - Z as exponents k + 1 = e; sum exp(shift - e)."""
    old, new, step, offset = np.uint64(k), np.uint64(k + 1), np.uint64(s), np.uint64(first)
    total = 0.0
    for i in range(n):
        difference = z - Z[step, offset + np.uint64(i)]
        exponent = a[old, np.uint64(i)] + 0.5 * difference * difference
        a[new, np.uint64(i)] = exponent
        total += _exp(shift - exponent)
    return total


@compiled(**_INNER, fastmath=_FAST)
def _add_term(a, k, T, q, j, first, n, shift):
    """The same with the terms of a variable that has categories."""
    old, new, sample, term = np.uint64(k), np.uint64(k + 1), np.uint64(q), np.uint64(j)
    offset = np.uint64(first)
    total = 0.0
    for i in range(n):
        exponent = a[old, np.uint64(i)] + T[sample, term, offset + np.uint64(i)]
        a[new, np.uint64(i)] = exponent
        total += _exp(shift - exponent)
    return total


@compiled(**_OUTER, fastmath=_FAST)
def walk_squares(depth, row, start, start_sums, T, z, Z, unknown, a, n_present, log_sum, out):
    """The same where the step adds half the square of a coordinate of its own, or a term.

    Rows are visited in tiles that stay in the cache. Exponents are relative to the sum over the tile before
    the step, so that one loop adds and exponentiates, and to the least one where their sum is out of range.

    Parameters
    ----------
    depth, start, n_present, out : as above.
    row : (n_steps,) the term that a step adds, or -1 for a coordinate.
    T : (n_samples, n_terms, n_rows) terms.
    z, Z : (n_samples, n_steps) and (n_steps, n_rows) coordinates.
    unknown : (n_samples, n_steps) which steps change nothing.
    start_sums : (n_samples, n_tiles) logarithms of the sums of exp(-start) over the rows of a tile.
    a : (n_variables + 1, tile) work space: exponents by depth.
    log_sum : (n_variables + 1,) work space, by depth: logarithms of sums over the rows of a tile.
    """
    tile = a.shape[1]
    for first in range(0, start.shape[1], tile):
        n = tile if tile < start.shape[1] - first else start.shape[1] - first
        for q in range(start.shape[0]):
            for i in range(n):
                a[0, i] = start[q, first + i]
            n_present[0] = 0
            log_sum[0] = start_sums[q, first // tile]
            for s in range(depth.shape[0]):
                k = depth[s]
                before = n_present[k]
                n_present[k + 1] = before
                if not unknown[q, s]:
                    after = before + 1
                    n_present[k + 1] = after
                    shift = -log_sum[before]
                    if T is None or row[s] < 0:
                        total = _add_square(a, before, z[q, s], Z, s, first, n, shift)
                    else:
                        total = _add_term(a, before, T, q, row[s], first, n, shift)
                    if _LEAST_PRODUCT < total < _HIGH:
                        log_sum[after] = math.log(total) - shift
                    else:
                        log_sum[after] = _log_sum_from_least(a, after, n)
                value = log_sum[n_present[k + 1]]
                if first > 0:
                    difference = value - out[q, s]
                    value = (value if difference > 0.0 else out[q, s]) + math.log1p(
                        math.exp(-abs(difference))
                    )
                out[q, s] = value

"""Compiled loops (kernels of numba), without checks of arguments and without randomness.

All kernels are in this one file, in sections: numba compiles a kernel again if the file of the kernel has
changed, but not if only the file of a function that it calls has changed.

The Rodeo is an algorithm that chooses the bandwidths h_j of a kernel density estimate at each sample. It
begins with large bandwidths. In each sweep over the active variables it tests the derivative Z_j of the
estimate by h_j. If |Z_j| exceeds a threshold lambda_j, h_j shrinks by the factor beta. Otherwise the variable
is frozen: its bandwidth stays, and it is no longer active. Z_j is a sum over rows i of the terms Z_ji.

Layout. A class is an array ``X`` (n_tiles, n_features, tile) of scaled rows: rows are divided into tiles, and
within a tile each variable is contiguous. The last tile is padded by duplicates of a real row with the
exponent ``EXCLUDED`` and hence the weight 0, so that no loop has a scalar remainder.

Numerics. The weight of row i is exp(-g_i) with g_i = sum_j (d_ij^2 - d_rj^2) / (2 h_j^2), where d_ij is the
distance between row i and the sample in variable j, and r is the row nearest to the sample. Exponents
relative to row r are accurate for samples at any distance. d_ij^2 - d_rj^2 is computed as the product
(x_rj - x_ij)(2 x_j - x_rj - x_ij), to avoid cancellation. The test |Z_j| > lambda_j does not depend on a
common factor of the weights, so the exponent of row r is needed only once, at the end, for the density.

In the parameters of a kernel, "written" means that the kernel writes its result into this array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from corral.compiling import compiled

LANES = 16  # rows per step of an unrolled AVX2 loop: the size of a tile is a multiple of LANES
TILE = 1024  # largest number of rows in a tile, so that their weights stay in the first-level cache
EXCLUDED = 1e300  # exponent of a row with the weight 0
LOG_ROOT = 0.5 * math.log(2.0 * math.pi)  # logarithm of the norm of a standard normal density
_BATCH = 4  # number of samples that are processed together if a class is too large for the cache
_LARGE = 1 << 15  # a class with more elements (256 KiB) is too large for the cache

# Sums may be reordered and contracted, so that they are vectorized; NaN and infinity keep their meaning.
_FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}

# To shorten compilation, only kernels that Python calls (_OUTER) get a wrapper for Python, and no kernel gets
# a wrapper for C. Kernels that other kernels call (_INNER) are inlined. Otherwise there would be several
# compiled versions with different rounding, and the one in use would depend on the order of compilation.
_OUTER: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_OUTER, "no_cpython_wrapper": True, "forceinline": True}

# If squared distances are at most R, and c = 1 / h^2, the rounding error of an exponent is 2^-54 R c. If R c
# exceeds this limit (an error of 1e-11), the exponents of active variables are summed again instead of
# subtracted from a larger sum.
_ROUNDING_LIMIT = 1e-11 * 2.0**54

# If the sum of the weights is in this range, exponents need not be shifted.
_LOW, _HIGH = 1e-30, 1e30

# A product or sum of weights that is smaller may lack rows whose weights have underflowed.
_LEAST_PRODUCT = 1e-140

# Coefficients of polynomials that interpolate at Chebyshev points of |r| <= log(2)/2: _P for the function
# (exp(r) - 1 - r)/r^2 in the exact exponential (relative error 2e-17 before rounding), _R for exp(r) in the
# rough exponential (relative error 1.02e-7).
_P0, _P1, _P2 = 0.5000000000000001, 0.16666666666666669, 0.04166666666662413
_P3, _P4, _P5 = 8.333333333330062e-3, 1.3888888917213717e-3, 1.9841269863053618e-4
_P6, _P7 = 2.4801521295954376e-5, 2.7557268459997064e-6
_P8, _P9 = 2.7620088445409746e-7, 2.510038549551032e-8
_R0, _R1, _R2 = 1.0000000754548972, 1.00000001077157, 0.49998869378303396
_R3, _R4, _R5 = 0.16666505260408124, 0.04191750724961526, 8.369148490856347e-3
ROUGH_ERROR = 1.1e-7
_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # k * high is exact
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding _ROUND rounds to an integer, in the lowest bits of the sum
_STRONGEST = 600.0  # arguments of _exp are clipped to +-600; _exp_rough needs arguments of at most 600


# --------------------------------------------------------------------------------------- exponentials


@intrinsic
def _bits(typing_context: Any, x: Any) -> Any:
    """Return the bits of a double as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _double(typing_context: Any, x: Any) -> Any:
    """Return the double with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


# The exponentials are compiled without "reassoc", which would cancel _ROUND. Numba must not inline them,
# because it would compile them with the flags of their callers; LLVM may inline them.


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
    """Return the smallest of the finite numbers e (n,), at most EXCLUDED; "nnan" is needed to vectorize."""
    least = EXCLUDED
    for i in range(e.shape[0]):
        least = e[i] if e[i] < least else least
    return least


@compiled(**_INNER, fastmath=_FAST)
def _exponentiate(e, low, weights, out):
    """Write weights_i exp(low - e_i) to `out` (n,), and return the sum; None stands for weights of 1."""
    total = 0.0
    for i in range(e.shape[0]):
        out[i] = _exp(low - e[i]) * (1.0 if weights is None else weights[i])
        total += out[i]
    return total


@compiled(**_INNER, fastmath=_FAST)
def _exponentiate_in_place(e, low, weights):
    """Overwrite e_i by weights_i exp(low - e_i), and return the sum.

    `_exponentiate` with e as both arguments would not be vectorized.
    """
    total = 0.0
    for i in range(e.shape[0]):
        e[i] = _exp(low - e[i]) * (1.0 if weights is None else weights[i])
        total += e[i]
    return total


@compiled(**_INNER, fastmath=_FAST)
def _weight_left(weights, group_of_row, group):
    """Return the sum of the weights (n_rows,) of the rows that are not in `group`."""
    left = 0.0
    for i in range(weights.shape[0]):
        left += weights[i] if group_of_row[i] != group else 0.0
    return left


# ------------------------------------------------------------------------------------------ the Rodeo


def workspace(X: Any) -> tuple[Any, ...]:
    """Allocate the work space of `simultaneous` for a class; n_batch samples are one batch."""
    n_tiles, d, tile = X.shape
    n_batch = _BATCH if X.size > _LARGE else 1
    return (
        # D: squared distance of each row over active variables, minus the squared distance of row r
        np.empty((n_batch, n_tiles, tile)),
        # G: exponent of each row from frozen variables, minus the exponent of row r
        np.empty((n_batch, n_tiles, tile)),
        np.empty(tile),  # a: weights
        np.empty((1, 1, tile)),  # part: sums over some variables
        np.empty((n_batch, d)),  # u: x_r, the row nearest to the sample
        np.empty((n_batch, d)),  # v: 2 x - x_r
        np.empty((n_batch, d)),  # s1: sum of Z_ji over rows, in the order of the active variables
        np.empty((n_batch, d)),  # s2: sum of Z_ji^2
        # order: the active variables, then the variables that were frozen in the last sweep
        np.empty((n_batch, d), np.int64),
        # count: number of active variables, and number of variables that were frozen in the last sweep
        np.empty((n_batch, 2), np.int64),
        np.empty(n_batch),  # spread: largest squared distance
        np.empty(n_batch),  # shift: added to -g, so that the sum of the weights is in range
        # nearest: squared distance of row r over active variables, and its exponent from frozen variables
        np.empty((n_batch, 2)),
        np.empty(n_batch),  # density: sum of the weights
    )


# The loops below index whole arrays: making a view for each variable would take as long as the sum.


@compiled(**_INNER, fastmath=_FAST)
def _sum_products(X, t, b, order, begin, end, u, v, out, out_b, out_t):
    """Write the sums over variables j of (u_j - x_ij)(v_j - x_ij) for the rows i of tile t.

    The variables are order[b, begin:end]; the sums are written to out[out_b, out_t].
    """
    for i in range(out.shape[2]):
        out[out_b, out_t, i] = 0.0
    for s in range(begin, end):
        j = order[b, s]
        uj, vj = u[b, j], v[b, j]
        for i in range(out.shape[2]):
            out[out_b, out_t, i] += (uj - X[t, j, i]) * (vj - X[t, j, i])


@compiled(**_INNER, fastmath=_FAST)
def _moments(X, root, t, j, xj, c, a):
    """Return the sums of Z_ji and of Z_ji^2 over tile t, without the common factor of Z_j and lambda_j."""
    z1 = 0.0
    z2 = 0.0
    h2 = 1.0 / c  # d^2 - h^2 instead of d^2 / h^2 - 1 saves a multiplication for each row
    for i in range(a.shape[0]):
        difference = X[t, j, i] - xj
        z = a[i] * (difference * difference - h2)
        z1 += z if root is None else root[t, i] * z
        z2 += z * z
    return z1, z2


@compiled(**_INNER, fastmath=_FAST)
def _sum_weights(root, t, a):
    """Multiply exp(-g_i) in `a` by the square roots of the rows' own weights; return the sum of weights."""
    density = 0.0
    for i in range(a.shape[0]):
        weight = 1.0 if root is None else root[t, i]
        a[i] *= weight
        density += a[i] * weight
    return density


@compiled(**_INNER, fastmath=_FAST)
def _gather_all(X, root, b, x, q, order, begin, end, c, shift, D, G, a, s1, s2):
    """Write s1 and s2 of order[begin:end] with exact weights, shifted; return the sum of the weights."""
    density = 0.0
    for attempt in range(2):
        if attempt == 1:  # shift exponents so that the largest weight is 1
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
    """Find the nearest row, make the squared distances in D relative to it, and leave row `own` out."""
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
    """Run Algorithm 1 with equal bandwidths of all active variables, for many samples and one class.

    In sweep k every active variable has the bandwidth h[k], so the exponent of row i is
    G_i + D_i / (2 h[k]^2), where D_i is a sum over active variables and G_i a sum over frozen variables. A
    sweep needs one exponential for each row and one pass over the rows for each active variable.

    Parameters
    ----------
    X : (n_tiles, n_features, tile) the class.
    n_rows : number of rows without padding; at least one of these rows is not `own`.
    root : (n_tiles, tile) square roots of the weights of rows, or None if all weights are 1.
    x : (n_samples, n_features) samples.
    own : (n_samples,) index of a row to leave out, or -1 for none.
    total : (n_samples,) sum of the weights of the rows that are not left out.
    critical : (n_samples,) a bandwidth shrinks if (sum Z_ji)^2 > critical * sum Z_ji^2.
    h : (n_steps + 1,) the bandwidths h0 beta^k that can be chosen.
    work : the result of workspace(X).
    steps : (n_samples, n_features) written: index of each chosen bandwidth in h.
    log_sum : (n_samples,) written: log of sum_i w_i exp(-sum_j d_ij^2 / (2 h_j^2)).
    """
    n_tiles, d, tile = X.shape
    D, G, a, part, u, v, s1, s2, order, count, spread, shift, nearest, density = work
    n_batch = count.shape[0]
    zero = np.int64(0)  # for a literal 0, numba would compile another version of the called functions
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
                    # Move variables that were frozen in the last sweep from D to G. Summing D again over the
                    # active variables is exact, and faster if fewer variables are active than were frozen.
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

                    # Weights could exceed the range of _exp_rough: _gather_all computes them below.
                    if shift[b] + nearest[b, 1] + nearest[b, 0] * 0.5 * c > _STRONGEST:
                        continue
                    half = tile // 2  # two rows at a time, so that constants are loaded once for both
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
                # By Cauchy-Schwarz, rough weights change sum Z_ji by at most error * sqrt(n sum Z_ji^2). They
                # change the root of sum Z_ji^2 by a factor within 1 +- error. If this could change the result
                # of the test, the test is repeated with exact weights.
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
    """Compute kernel sums for many samples and one class, with given bandwidths.

    The outer loop is over tiles, so that a tile is in the cache for all samples.

    Parameters
    ----------
    X, n_rows, x, own : as in `simultaneous`.
    weights : (n_tiles, tile) weights of the rows, or None if all are 1.
    half_c : (n_features,) 1 / (2 h_j^2), or 0 for a variable that is not used.
    log_sum : (n_samples,) written: as in `simultaneous`; about -EXCLUDED if no row remains.
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
            for j in range(0, d, 2):  # two variables at a time, to read and write the sums once for both
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
            if weights is None:  # two branches, since a conditional expression would have a third type
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
    """Compute means of shrunken kernels for many samples and one class, for several bandwidths.

    Let x_q be the coordinates of a sample and c_i the coordinates of a row, both relative to the mean of the
    class. The kernel of row i has the center pull c_i, shrunken towards the mean of the class, and the
    exponent precision (x_q^2 / 2 - pull x_q c_i + pull^2 c_i^2 / 2).

    Parameters
    ----------
    product : (n_samples, n_rows) products x_q c_i.
    half_x, half_c : (n_samples,) and (n_rows,) halves of squared lengths.
    weights : (n_rows,) weights of the rows.
    group_of_x, group_of_c : (n_samples,) and (n_rows,) group ids. The rows of a sample's group are left out;
        a negative id of a sample leaves no row out.
    pull, precision : (m,) factors of shrinking and precisions, for each of m bandwidths.
    a : (1, n_rows) work space.
    log_mean : (m, n_samples) written: logarithms of weighted means; -inf if no row remains.
    """
    e, total_weight = a[0], _weight_left(weights, group_of_c, -1)
    for q in range(product.shape[0]):
        products, group = product[q], group_of_x[q]
        left = total_weight if group < 0 else _weight_left(weights, group_of_c, group)
        for k in range(pull.shape[0]):
            if left == 0.0 or pull[k] == 0.0:  # no row remains, or all centers are the mean of the class
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
    """Compute the weights of rows in the kernel means of their classes from products of coordinates.

    Parameters
    ----------
    product : (n_samples, n_rows) products as in `shrunken_log_means`, with rows sorted by class; written:
        weights of the rows.
    half_x, half_c, weights, group_of_x, group_of_c : as in `shrunken_log_means`.
    starts : (n_classes + 1,) index of the first row of each class, and the number of rows.
    total : (n_samples, n_classes) written: sums of the weights of each class; 0 if no row remains.
    log_mean : (n_samples, n_classes) written: logarithms of the weighted means of the kernels.
    """
    for q in range(product.shape[0]):
        for i in range(product.shape[1]):
            g = half_x[q] + half_c[i] - product[q, i]
            product[q, i] = g if group_of_c[i] != group_of_x[q] else EXCLUDED
        for y in range(starts.shape[0] - 1):
            # Views, because loops are not vectorized if an index could be negative.
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
    """Compute the log loss of a pool, whose log density is a sum over members, each with its factor.

    Parameters
    ----------
    log_density : (n_members, n_samples, n_classes) log densities of members, all finite.
    codes : (n_samples,) codes of the right classes.
    weights : (n_samples,) weights of the samples in the loss; samples with the weight 0 are skipped.
    log_prior : (n_classes,) logarithms of the priors.
    factors : (n_members,) factors of the members.
    proba : (n_classes,) work space.
    gradient : (n_members,) written: derivatives of the loss by the logarithms of the factors.
    centered : (n_members, n_samples, n_classes) written: the sum over samples and classes of the products of
        two members is an element of Fisher's information about the logarithms of the factors.

    Returns the loss, a sum over samples with their weights.
    """
    # Loops instead of slices, which would take long to compile.
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
                # The root is taken first, because the square of a very low log density can overflow.
                root = math.sqrt(weights[q] * proba[y] / total)
                centered[m, q, y] = factors[m] * root * (log_density[m, q, y] - mean)
    return loss


# ------------------------------------------------------------------ the Rodeo in the general case

# Values may be missing (NaN) or codes of categories, rows are left out by groups, and bandwidths may differ
# from the first sweep on. These kernels are compiled without "nnan", so that tests for NaN work.


@compiled(**_INNER, fastmath=_FAST)
def _add_terms(X, j, is_category, xj, uj, c, missing, e):
    """Add the exponents of variable j to the exponents e (n_tiles, tile) of rows.

    The exponent of a row is c times its squared distance, minus the squared distance of u_j. The exponent is
    `missing` if the row has no value. The squared distance between different categories is 1.
    """
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
    """Return the sums of Z_ji and of Z_ji^2 over rows, without the common factor of Z_j and lambda_j."""
    z1 = 0.0
    z2 = 0.0
    for t in range(X.shape[0]):
        for i in range(X.shape[2]):
            value = X[t, j, i]
            apart = (value - xj) * (value - xj)
            if is_category:
                apart = 0.0 if value == xj else 1.0
            z = a[t, i] * (apart - expected)
            z = 0.0 if math.isnan(value) else z  # the factor of a missing value does not depend on h_j
            z1 += root[t, i] * z
            z2 += z * z
    return z1, z2


@compiled(**_INNER)
def _nearest_row(a):
    """Return the tile of the smallest element of a (n_tiles, tile), and its index in the tile."""
    tile, place = 0, 0
    for t in range(a.shape[0]):
        for i in range(a.shape[1]):
            if a[t, i] < a[tile, place]:
                tile, place = t, i
    return tile, place


@compiled(**_INNER, fastmath=_FAST)
def _weigh_rows(e, root, a):
    """Write root_i exp(low - e_i) to `a`, where low is the least exponent, and return low."""
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
    """Run Algorithm 1 for many samples and one class.

    Parameters
    ----------
    X : (n_tiles, n_features, tile) the class.
    n_categories : (n_features,) numbers of categories, 0 for measurements.
    root : (n_tiles, tile) square roots of the weights of rows.
    groups : (n_tiles, tile) group ids of the rows, negative for padding.
    x : (n_samples, n_features) samples; variables with the value NaN are skipped.
    group : (n_samples,) id of the group whose rows are left out; at least one row of another group is needed.
    nearest : (n_samples, n_features) the value nearest to the sample's among all rows, a reference value for
        categories and if the nearest row has no value.
    log_value : (n_samples, n_features) the logarithm of the factor of a row without a value.
    half_c, log_norm, expected : (n_grid, n_features) for each bandwidth of the grid: 1 / (2 h_j^2), the
        logarithm of the kernel's norm, and the mean of the squared distance under the kernel.
    critical : (n_samples,) a bandwidth shrinks if (sum Z_ji)^2 > critical * sum Z_ji^2.
    n_steps : (n_samples, n_features) number of bandwidths of the grid that can be chosen; 0 if the variable
        is not tested.
    sequential : whether a changed bandwidth is used within the same sweep, as in the published algorithm, or
        from the next sweep on.
    u, order, e, a : (n_features,), (n_features,), (n_tiles, tile) and (n_tiles, tile) work space.
    steps : (n_samples, n_features) written: index of each chosen bandwidth in the grid.
    log_sum : (n_samples,) written: logarithm of the weighted sum of the kernels.
    first, second : (n_recorded, n_features) written: the sums of Z_ji and of Z_ji^2 in the first sweeps. Each
        sample overwrites them; elements of variables that were not tested are not changed.
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
    """Add the exponents of the categories of sample q to the exponents a (n_rows,); see `add_exponents`."""
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
    """Add the parts of kernel exponents (n_samples, n_rows) that depend on rows.

    The coordinates of rows are multiplied by `shrinkage`. The other parts are in `exponents` already.

    Parameters
    ----------
    xc, cc : (n_samples, n_rows) products of samples and rows, and squared lengths of rows.
    half, shrinkage : 1 / (2 h^2) for the bandwidth h, and the factor of the coordinates of rows.
    category_exponents : (3, n_categories) exponents for each category of a sample, of all columns one after
        another: if the row has the same category, if it has another category, and if its value is missing.
    offsets : (n_columns,) index of the first category of each column in `category_exponents`.
    x, c : (n_samples, n_columns) and (n_columns, n_rows) codes of categories, NaN for missing values.
    has_missing : (n_columns,) whether some row has a missing value.
    exponents : (n_samples, n_rows) added to.
    """
    twice, square = 2.0 * half * shrinkage, half * shrinkage * shrinkage
    for q in range(exponents.shape[0]):
        a, product, length = exponents[q], xc[q], cc[q]
        for i in range(a.shape[0]):
            a[i] += square * length[i] - twice * product[i]
        _add_categories(q, category_exponents, offsets, x, c, has_missing, a)


@compiled(**_OUTER, fastmath=_FAST)
def log_means(exponents, weights, group_of_x, group_of_c, log_mean):
    """Write logarithms (n_samples,) of weighted means of exp(-exponents); `exponents` are overwritten.

    Rows of a sample's group are left out. The logarithm is -inf if no row remains.
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
    """Add the exponents of categories to `exponents` (n_samples, n_rows); see `add_exponents`."""
    for q in range(x.shape[0]):
        _add_categories(q, category_exponents, offsets, x, c, has_missing, exponents[q])


@compiled(**_OUTER, fastmath=_FAST)
def category_shares(x, c, has_missing, shares, totals, apart, both):
    """Sum shares of rows by column: if categories of sample and row differ, and if both have a category.

    Parameters
    ----------
    x, c, has_missing : as in `add_exponents`.
    shares, totals : (n_samples, n_rows) shares of rows, and (n_samples,) their sums.
    apart, both : (n_columns,) written: sums over samples and rows with different categories, and over samples
        and rows that both have a category.
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

# Rows have a normal distribution with the mean 0 and the precision matrix P. Given the values O of a row, its
# missing values J have the precision P_JJ and the expectation r_J that solves P_JJ r_J = -P_JO r_O.


@compiled(**_INNER, fastmath=_FAST)
def _factorize(precision, is_missing, i, missing, L):
    """Write the indices J of the missing values of row i to `missing`, and the Cholesky factor of P_JJ to L.

    Returns the number of missing values.
    """
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
    """Replace missing values by their expectations given the other values of the row.

    Parameters
    ----------
    precision : (d, d) the matrix P.
    is_missing : (n_rows, d) which values are missing.
    r : (n_rows, d) rows, with 0 for missing values; written: the expectations of the missing values.
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
    """Add the conditional covariances of missing values, times the weights of rows, to `covariance` (d, d).

    `weights` is (n_rows,), `inverse` (d, d) is work space; the other parameters are as in `complete_rows`.
    """
    for i in range(is_missing.shape[0]):
        m = _factorize(precision, is_missing, i, missing, L)
        for a in range(m):  # the inverse of L, transposed
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
    """Compute squared lengths of rows after the missing variables J of each sample are integrated out.

    The squared length of a row r is r P r. Integrating J out reduces it by u_J P_JJ^-1 u_J, with u = P r.

    Parameters
    ----------
    precision, missing, L : as in `complete_rows`.
    is_missing : (n_samples, d) which values are missing.
    U : (d, n_rows) the products u of all rows.
    lengths : (n_rows,) squared lengths of all rows.
    v : (d, n_rows) work space.
    out : (n_samples, n_rows) written: squared lengths without the missing variables.
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
    """Return the logarithm of the sum of exp(-a[k, i]) over i < n."""
    # `math.exp` is slower than `_exp`, but compiles in a fraction of the time.
    least = EXCLUDED
    for i in range(n):
        least = a[k, i] if a[k, i] < least else least
    total = 0.0
    for i in range(n):
        total += math.exp(least - a[k, i])
    return math.log(total) - least


@compiled(**_INNER, fastmath=_FAST)
def _add_relative_squares(old, z, c, j, reference, factor, new, shift):
    """Write old + factor ((z - c[j])^2 - (z - reference)^2) to `new`; return the sum of exp(shift - new)."""
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
    """Compute logarithms of ratios: the kernel sum over the kernel sum without the term of one variable.

    All exponents are relative to the exponent of a row near the sample.

    Parameters
    ----------
    z, c : (n_samples, n_axes) and (n_axes, n_rows) coordinates of samples and rows.
    pull_z, pull_c : (n_samples, n_variables) and (n_variables, n_rows) values of samples and rows: their
        squared difference times `half_inverse` is the term of a variable in an exponent.
    half_inverse : (n_variables,) factors of the squared differences.
    nearest : (n_samples,) index of a row near each sample.
    exponents : (n_samples, n_rows) minus logarithms of weights; written: exponents minus the exponent of the
        row `nearest`.
    work : (1, n_rows) work space.
    log_ratio : (n_samples, n_variables) written: the logarithms of the ratios.
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

# Densities of sets of variables. Each set is another set plus one variable, so the sets form a tree, and a
# walk visits all sets of the tree. The state of a set of k variables is kept at depth k until another set of
# this size is visited. A step that adds a missing variable of a sample does not change the density.


@compiled(**_INNER, fastmath=_FAST)
def _multiply(a, k, factor, j):
    """Write the products of a[k] and factor[j] to a[k + 1], and return their sum."""
    # Unsigned indices, because loops are not vectorized if an index could be negative, and making a view
    # takes as long as the loop.
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
    """Compute logarithms of kernel means along a walk, for kernels that are products over the variables.

    The factor of each row and variable is exponentiated once, relative to the largest factor of the variable.
    If the sum of the products is too small, the products are computed again from the exponents.

    Parameters
    ----------
    depth, variable : (n_steps,) number of variables before each step, and the variable that is added.
    start : (n_samples, n_rows) exponents of the empty set: minus logarithms of weights, or EXCLUDED.
    T : (n_samples, n_variables, n_rows) exponents of each variable.
    unknown : (n_samples, n_variables) which variables are missing and do not change the density.
    factor, least : (n_variables, n_rows) and (n_variables,) work space.
    e : (n_rows,) work space.
    a, shift : (n_variables + 1, n_rows) and (n_variables + 1,) work space: weights, and exponents by which
        they are scaled.
    path, n_present, value : (n_variables + 1,) work space, by depth: variables that are present, their
        number, and logarithms of the means.
    out : (n_samples, n_steps) written: logarithms of the means after each step.
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
    """Write a[k] + (z - Z[s])^2 / 2 to a[k + 1]; return the sum of exp(shift - a[k + 1]).

    The rows are the `n` rows of a tile, which begins at row `first` of Z.
    """
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
    """Write a[k] + T[q, j] to a[k + 1]; return the sum of exp(shift - a[k + 1]); see `_add_square`."""
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
    """Compute logarithms of kernel sums along a walk, for kernels that are not products over the variables.

    Each step adds half the squared difference between coordinates of sample and row to the exponents, or a
    term of categories. Each step has its own coordinates. Rows are processed in tiles that stay in the cache.
    Exponents are relative to the logarithm of the sum over the tile before the step, so that one loop adds
    and exponentiates. If the new sum is out of range, exponents are relative to the least exponent.

    Parameters
    ----------
    depth, start, n_present : as in `walk_products`.
    row : (n_steps,) index of the term that a step adds, or -1 if it adds a coordinate.
    start_sums : (n_samples, n_tiles) logarithms of the sums of exp(-start) over the rows of a tile.
    T : (n_samples, n_terms, n_rows) terms of categories; None if there are none.
    z, Z : (n_samples, n_steps) and (n_steps, n_rows) coordinates of samples and rows.
    unknown : (n_samples, n_steps) which steps add a missing variable and do not change the density.
    a : (n_variables + 1, tile) work space: exponents by depth.
    log_sum : (n_variables + 1,) work space, by depth: logarithms of sums over the rows of a tile.
    out : (n_samples, n_steps) written: logarithms of the sums after each step.
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

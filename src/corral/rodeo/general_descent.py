r"""Kernel densities and the Rodeo in the general case: gaps, levels, and rows that are left out together.

**Levels.** The kernel of a variable with L levels is
:math:`e^{-\delta / 2 h^2} / (1 + (L - 1) e^{-1 / 2 h^2})`, with :math:`\delta` 0 for equal levels and 1 for
others. It sums to 1 over the levels (Aitchison and Aitken's kernel in another parameter), and has the form of
the normal one, so that a bandwidth means the same. The derivative of the logarithm of either kernel by its
bandwidth is

.. math:: \frac{\delta_{ij} - \mathrm{E}_h \delta}{h^3},

where :math:`\delta_{ij}` is the squared distance and :math:`\mathrm{E}_h \delta` its mean under the kernel:
:math:`h^2` for measurements, and :math:`(L - 1) e^{-1 / 2 h^2} / (1 + (L - 1) e^{-1 / 2 h^2})` for levels.
The bandwidth of levels does not fall below :math:`1 / \sqrt{2 \log n}`, where another level weighs as much as
one row of n: that a class has not had it yet does not mean that it never will.

**Gaps.** A sample without a value of variable j is integrated over it: as kernels are products that each
integrate to 1, the factors of the variable are left out,

.. math:: \hat p(x) = \frac 1 n \sum_i \prod_{j : x_j \text{ known}} k_{ij}(x_j).

A row without a value has the density of the variable in its class as its factor, estimated from the rows of
the class that have one, :math:`k_{ij}(x_j) = \hat f_j(x_j)`: so the row says nothing of the variable beyond
its class. :math:`\hat f_j` is a kernel estimate with the normal reference bandwidth
:math:`1.06\, s_j n_j^{-1/5}` (1 if all values agree), or the frequency of the level,
:math:`(n_{jl} + 1 / L) / (n_j + 1)`. It does not depend on :math:`h_j`, so that :math:`Z_{ji} = 0` for such
rows.

**Units.** Rows that share a unit with a query are left out, of :math:`\hat f_j` as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.data.tiles import TINY, GeneralRows
from corral.rodeo.recorded_descent import Descent, Sums
from corral.rodeo.settings import Update

# The number of a unit that no row has.
NO_UNIT = -1


def log_norms(h: Floats, levels: Integers) -> Floats:
    """Logarithms of what kernels with bandwidths h (..., n_features) are divided by; 0 if h is infinite."""
    measured = np.log(h) + kernels.LOG_ROOT
    of_levels = np.log1p((levels - 1.0) * np.exp(-0.5 / h**2)) if levels.any() else measured
    log_norm: Floats = np.where(np.isinf(h), 0.0, np.where(levels > 0, of_levels, measured))
    return log_norm


def expected_distances(h: Floats, levels: Integers) -> Floats:
    """Means of squared distances (..., n_features) under the kernels."""
    others = (levels - 1.0) * np.exp(-0.5 / h**2)
    return np.where(levels > 0, others / (1.0 + others), h**2)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What single variables say at some queries, whatever the bandwidths.

    Attributes
    ----------
    x : (n_queries, n_features) the queries.
    units : (n_queries,) units to leave out, or NO_UNIT.
    reference : (n_queries, n_features) the nearest value of the class in each variable.
    log_values : (n_queries, n_features) log densities of the variables in the class, where a row has a gap.
    """

    x: Floats
    units: Integers
    reference: Floats
    log_values: Floats

    @classmethod
    def look(cls, rows: GeneralRows, x: Floats, own: Integers | None) -> Surroundings:
        """Look at queries; `own` are rows whose units are left out, or -1."""
        units = np.full(len(x), NO_UNIT)
        if own is not None:
            units = np.where(own >= 0, rows.units[np.maximum(own, 0)], NO_UNIT)
        reference, log_values = x.copy(), np.zeros(x.shape)
        w = rows.weight(np.arange(rows.n_rows))
        for j, n_levels in enumerate(rows.levels.tolist()):
            has_value = ~np.isnan(rows.X[j])
            asked = np.flatnonzero(~np.isnan(x[:, j]))
            some = rows.X[j, has_value], rows.units[has_value], w[has_value]
            at = x[asked, j], units[asked]
            if n_levels:
                if not has_value.all():
                    log_values[asked, j] = _level_log_frequencies(*some, *at, n_levels)
                continue
            reference[asked, j], log_density = _value_log_densities(*some, *at)
            if not has_value.all():
                log_values[asked, j] = log_density
        return cls(x, units, reference, log_values)

    def take(self, some: Integers) -> Surroundings:
        """Keep some of the queries."""
        return Surroundings(self.x[some], self.units[some], self.reference[some], self.log_values[some])

    def exponent(self, h: Floats, levels: Integers) -> Floats:
        """What exponents are relative to, by variable (n_queries, n_features); 0 where a query has a gap."""
        apart = np.where(levels > 0, 0.0, (self.x - self.reference) ** 2)
        return np.where(np.isnan(self.x), 0.0, 0.5 * apart / h**2 + log_norms(h, levels))

    def sums(self, rows: GeneralRows, h: Floats, asked: Bools) -> Sums:
        """Sums over rows with bandwidths h (n_queries, n_features); some row must be left at each query."""
        n_queries, d = self.x.shape
        sums = Sums(
            np.empty(n_queries), np.empty(n_queries), np.empty((n_queries, d)), np.empty((n_queries, d))
        )
        kernels.general_sums(
            rows.X,
            rows.levels,
            rows.units,
            np.sqrt(rows.weight(np.arange(rows.n_rows))),
            self.x,
            self.units,
            self.reference,
            0.5 / h**2,
            -self.log_values - self.exponent(h, rows.levels),
            expected_distances(h, rows.levels),
            asked,
            np.empty((1, rows.n_rows)),
            *sums,
        )
        return sums


def _value_log_densities(
    values: Floats, units: Integers, weights: Floats, x: Floats, unit_of_x: Integers
) -> tuple[Floats, Floats]:
    """The nearest value to each query, and the log density of the variable; 0 where no row has a value."""
    nearest, total, log_sum = np.empty(x.size), np.empty(x.size), np.empty(x.size)
    if not values.size:
        return x, np.zeros(x.size)
    h = _reference_bandwidths(values, units, weights, unit_of_x)
    kernels.value_sums(
        values,
        units,
        weights,
        np.ascontiguousarray(x),
        unit_of_x,
        0.5 / h**2,
        np.empty((1, values.size)),
        nearest,
        total,
        log_sum,
    )
    log_norm = np.log(h) + kernels.LOG_ROOT
    found = np.where(total > 0.0, log_sum - np.log(np.maximum(total, TINY)) - log_norm, 0.0)
    return nearest, found


def _reference_bandwidths(values: Floats, units: Integers, weights: Floats, unit_of_x: Integers) -> Floats:
    """Normal reference bandwidths (n_queries,) of the rows of other units than the query's."""
    centred = values - weights @ values / weights.sum()
    known, unit = np.unique(units, return_inverse=True)
    powers = (weights, weights**2, weights * centred, weights * centred**2)
    at = np.minimum(np.searchsorted(known, unit_of_x), known.size - 1)
    is_known = known[at] == unit_of_x
    W, squares, first, second = (
        of.sum() - np.where(is_known, np.bincount(unit, of)[at], 0.0) for of in powers
    )
    is_left = 1e-12 * weights.sum() < W  # less is what rounding has left of nothing
    W = np.where(is_left, W, 1.0)
    variance = np.where(is_left, second / W - (first / W) ** 2, 0.0)
    n = W**2 / np.maximum(squares, TINY)
    exists = variance > 1e-12 * (weights @ centred**2) / weights.sum()
    h: Floats = np.where(exists, 1.06 * np.sqrt(np.maximum(variance, 0.0)) * np.maximum(n, 1.0) ** -0.2, 1.0)
    return h


def _level_log_frequencies(
    values: Floats, units: Integers, weights: Floats, x: Floats, unit_of_x: Integers, n_levels: int
) -> Floats:
    """Logarithms of the frequencies of levels in the class, of rows of other units than the query's."""
    of_level = np.bincount(values.astype(np.int64), weights, minlength=n_levels)
    level = x.astype(np.int64)
    out, out_of_level = np.zeros(x.size), np.zeros(x.size)
    for q in np.flatnonzero(unit_of_x != NO_UNIT).tolist():
        mine = units == unit_of_x[q]
        out[q] = weights[mine].sum()
        out_of_level[q] = weights[mine & (values == x[q])].sum()
    share = (np.maximum(of_level[level] - out_of_level, 0.0) + 1.0 / n_levels) / (
        np.maximum(weights.sum() - out, 0.0) + 1.0
    )
    log_share: Floats = np.log(share)
    return log_share


class GeneralDescent(Descent):
    """Algorithm 1 where variables may be missing or levels.

    Attributes
    ----------
    log_sum : (n_queries,) logarithm of the kernel sum, known where no variable is active.
    """

    log_sum: Floats

    @classmethod
    def begin(
        cls, rows: GeneralRows, around: Surroundings, h: Floats, own: Integers, update: Update
    ) -> GeneralDescent:
        """Begin at the initial bandwidth; variables that a query has no value of are not tested."""
        descent = cls(around.x, around.reference, h, rows.left(own), update)
        descent.active = ~np.isnan(around.x)
        descent.log_sum = np.full(len(around.x), -np.inf)
        floor = 1.0 / np.sqrt(2.0 * np.log(np.maximum(descent.left.n, 2.0)))
        enough = (h >= floor[:, np.newaxis]).sum(axis=1)
        descent.n_steps = np.where(rows.levels > 0, np.maximum(enough, 1)[:, np.newaxis], h.size)
        return descent

    def bandwidths(self) -> Floats:
        """Bandwidths (n_queries, n_features) so far."""
        h: Floats = self.h[self.steps]
        return h

    def conclude(self, sums: Sums, exponent: Floats) -> None:
        """Take an answer, whose exponents are relative to some (n_going,)."""
        going = self.going
        self.answer(sums)
        # Right where nothing is active any more: the last test was made at the bandwidths that stay.
        self.log_sum[going] = np.log(sums.density) - sums.least - exponent


def general_rodeo(
    rows: GeneralRows, grid: Floats, x: Floats, update: Update, own: Integers | None = None
) -> tuple[Floats, Integers]:
    """Run algorithm 1 at each query; see `descent.rodeo`."""
    own = np.full(len(x), -1) if own is None else own
    log_density, steps = np.full(len(x), -np.inf), np.zeros(x.shape, dtype=np.int64)
    left = rows.left(own)
    asked = np.flatnonzero(left.total > 0.0)
    if not asked.size:
        return log_density, steps
    around = Surroundings.look(rows, np.ascontiguousarray(x[asked]), own[asked])
    descent = GeneralDescent.begin(rows, around, grid, own[asked], update)
    while descent.going.size:
        advance(rows, around, descent)
    # Queries without any value have been asked nothing: their density is 1.
    known = ~np.isnan(around.x).all(axis=1)
    log_density[asked] = np.where(known, descent.log_sum - np.log(left.total[asked]), 0.0)
    steps[asked] = descent.steps
    return log_density, steps


def advance(rows: GeneralRows, around: Surroundings, descent: GeneralDescent) -> tuple[Bools, Floats]:
    """Make one sweep; return which variables were asked about and |Z_j| / lambda_j, at queries not done."""
    going = descent.going
    some, h = around.take(going), descent.bandwidths()[going]
    asked = descent.question().asked
    sums = some.sums(rows, h, asked)
    ratios = descent.ratios(sums)
    descent.conclude(sums, some.exponent(h, rows.levels).sum(axis=1))
    return asked, ratios


def general_density(rows: GeneralRows, x: Floats, h: Floats, own: Integers | None = None) -> Floats:
    """Log densities (n_queries,) with given bandwidths (n_features,), infinite for what takes no part."""
    own = np.full(len(x), -1) if own is None else own
    log_density = np.full(len(x), -np.inf)
    left = rows.left(own)
    asked = np.flatnonzero(left.total > 0.0)
    if not asked.size:
        return log_density
    used = np.where(np.isfinite(h), x[asked], np.nan)
    around = Surroundings.look(rows, used, own[asked])
    bandwidths = np.tile(np.where(np.isfinite(h), h, 1.0), (asked.size, 1))
    sums = around.sums(rows, bandwidths, np.zeros(used.shape, dtype=np.bool_))
    exponent = around.exponent(bandwidths, rows.levels).sum(axis=1)
    log_density[asked] = np.log(sums.density) - sums.least - exponent - np.log(left.total[asked])
    return log_density


def log_factors(rows: GeneralRows, x: Floats, h: Floats, own: Integers) -> Floats:
    """Logarithms of the factors (n_queries, n_features, n_rows) of kernels, 0 where a query has a gap.

    Bandwidths `h` have the shape of the queries; `own` (n_queries,) are rows whose units are left out, or -1.
    """
    around = Surroundings.look(rows, np.ascontiguousarray(x), own)
    apart = (x[:, :, np.newaxis] - rows.X) ** 2
    is_level = rows.levels[:, np.newaxis] > 0
    apart = np.where(is_level, np.minimum(apart, 1.0), apart)
    of_values = -0.5 * apart / h[:, :, np.newaxis] ** 2 - log_norms(h, rows.levels)[:, :, np.newaxis]
    factors = np.where(np.isnan(rows.X), around.log_values[:, :, np.newaxis], of_values)
    return np.where(np.isnan(x)[:, :, np.newaxis], 0.0, factors)


def draw_kernels(
    rows: GeneralRows, centres: Floats, h: Floats, noise: Floats, random: np.random.RandomState
) -> Floats:
    """Draw from the kernels of rows (n_drawn, n_features), with bandwidths and normal noise of that shape.

    What a row lacks is drawn from the density of the variable in the class, if any row has a value: from the
    kernel of such a row with the normal reference bandwidth, or by the frequencies of levels.
    """
    drawn = centres + noise * h
    w = rows.weight(np.arange(rows.n_rows))
    for j, n_levels in enumerate(rows.levels.tolist()):
        has_value = ~np.isnan(rows.X[j])
        values, weights = rows.X[j, has_value], w[has_value]
        gaps = np.isnan(centres[:, j])
        if n_levels:
            drawn[:, j] = _draw_levels(values, weights, centres[:, j], h[:, j], n_levels, random)
        elif gaps.any() and values.size:
            (reference,) = _reference_bandwidths(values, rows.units[has_value], weights, np.array([NO_UNIT]))
            others = random.choice(values, gaps.sum(), p=weights / weights.sum())
            drawn[gaps, j] = others + noise[gaps, j] * reference
    return drawn


def _draw_levels(
    values: Floats,
    weights: Floats,
    centres: Floats,
    h: Floats,
    n_levels: int,
    random: np.random.RandomState,
) -> Floats:
    """Draw levels (n_drawn,) from kernels at some, and for gaps by their frequencies, if there are any."""
    drawn, gaps = centres.copy(), np.isnan(centres)
    if gaps.any() and values.size:
        share = np.bincount(values.astype(np.int64), weights, minlength=n_levels) + 1.0 / n_levels
        drawn[gaps] = random.choice(n_levels, gaps.sum(), p=share / share.sum())
    moves = random.uniform(size=centres.size) < expected_distances(h, np.full(h.size, n_levels))
    moves &= ~gaps
    drawn[moves] = (drawn[moves] + random.randint(1, max(n_levels, 2), moves.sum())) % n_levels
    return drawn

r"""Which variables describe each class: how its values differ from those of its background.

Everything here is a function of ranks, so units and increasing transformations of a column change nothing.

**Two samples.** Let :math:`v` be the mid-ranks of the two samples together, brought to :math:`(-1, 1)`, and
:math:`\varphi_1, \dots, \varphi_4` the polynomials of degree 1 to 4 in them that are orthonormal over all
rows. They ask four questions: are the values of the first sample *high*, are they *wide* apart, and is
there a skewness or a pair of modes that neither shows? A column with :math:`m` distinct values has the
first :math:`m - 1` of them. Where both samples come from one distribution, all ways to share out the
:math:`N` rows are equally likely, so that

.. math:: S_k = \sum_{i \in \text{first}} \varphi_k(v_i), \qquad
          \mathrm{E}\, S_k = 0, \quad \mathrm{Var}\, S_k = \frac{n_1 n_2}{N - 1}, \quad
          \mathrm{Cov}(S_k, S_l) = 0,

with ties and point masses as they are. The tail of :math:`S_k` comes from this distribution, not from the
normal one: exactly, by Fisher's hypergeometric test, for columns of two values, and by a saddlepoint
approximation (see :func:`_saddlepoint`) otherwise. So it holds for rare values and for small classes.

The p-values are combined in three nested ways: location alone, location and spread, all four; the least of
them counts, with half, a quarter and a quarter of the level. Two or four p-values become one by Lancaster's
method, the sum of their squared normal quantiles, which is chi-squared if they are independent. Where one
value holds more than half of the rows, all questions are about the few others and depend on each other;
Bonferroni's inequality takes its place there.

**Effects** do not depend on the sizes of the samples: in them both samples weigh the same. That of location
is Cliff's delta, :math:`P(X > Y) - P(X < Y)`. With :math:`c_k` the correlation between :math:`\varphi_k` and
membership in the first sample, delta is :math:`2 c_1 / \sqrt{3}` where there are no ties, so the effect of
spread is defined as :math:`2 c_2 / \sqrt{3}`: -0.45 if the standard deviation of a normal distribution is
halved, and 0 if it is shifted. The *size* of a difference is the largest :math:`2 |c_k| / \sqrt{3}`. With
ties it exceeds delta: a flag that 5 % of a class have and nobody else has a delta of 0.05, and yet marks
these rows beyond doubt. Its size is 0.19. But to *lack* a rare value marks nothing: if a class has more rows
with the value of most rows than the others have, ties are not allowed for.

**The background** of a variable is found from all pairs of classes. Two classes are told apart if their
difference is significant at the level over the number of pairs, and not negligible. Among the sets of
classes of which no two are told apart, the background is the largest one, if most classes belong to it. Where
there is none, a smaller set will do that is wider than the other classes rather than high or low: most
classes may be concentrated, each in its own way, where the rest are spread out. Otherwise the variable has
no background, as where all classes lie at different places. Each of two classes is the other's background.

**A class** is compared with the rows of the background that are not its own. Without a background, the
variable describes the classes that differ from at least half of the others: if r is the least such number,
the p-value of K classes is K - r times the r-th smallest one (a partial conjunction). Then the effect is that
against all other rows. The p-values of a class are multiplied by the number of variables that vary at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import hypergeom

from corral._core.design_effect import worth_of_rows
from corral._core.settings import MIN_EFFECT, Bools, Floats, Integers

LEVEL = 0.01

# Polynomials, and how the level is shared by the tests of the first, of the first two and of all of them.
_N_DEGREES = 4
_SHARES = {1: 0.5, 2: 0.25, _N_DEGREES: 0.25}

# A column with more distinct values is cut into so many cells of equal numbers of rows. The cells do not know
# of the classes, so all tests stay exact. Even, so that a column and its mirror image have the same cells.
_MAX_CELLS = 500

# Of a class with fewer rows nothing can be said.
_MIN_ROWS = 3

# A polynomial whose norm is smaller is rounding error.
_LEAST_NORM = 1e-6

# Below this statistic no p-value is small, and the normal distribution will do.
_SMALL_STATISTIC = 2.0

# Numbers in a block of variables that are compared at once.
_BLOCK = 200_000

# Newton's steps, and halvings of each of them; ten are usual.
_MAX_STEPS = 50

_DELTA_UNITS = 2.0 / np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class Contrast:
    """How each class differs from its background in each variable.

    Arrays have the shape (n_classes, n_features) unless another one is given. Where nothing can be said, as
    of a class of one or two rows or of a constant column, p-values are 1, effects are 0 and the direction is
    empty.

    Attributes
    ----------
    relevant : which variables describe the class: significant at the level and not negligible.
    pvalue : p-values, adjusted for the number of variables of the class.
    statistic : the same before adjustment as normal quantiles, with the sign of the effect.
    effect : from -1 to 1, what `direction` says: `location`, `spread` or the size of another difference.
    location : Cliff's delta, P(class > background) - P(class < background).
    spread : the counterpart for spread; negative where the class is narrow.
    size : largest of all differences whatever its direction, in the units of Cliff's delta without ties. This
        is compared with `min_effect`; where there is no background, sizes between classes are as well.
    direction : "high", "low", "narrow" (also of a class that lies between the others), "wide", "shape" (such
        as two modes) or "".
    background : whether the class belongs to the background of the variable; nowhere if it has none.
    typical, background_typical : medians of the class and of the rows that it is compared with.
    quartiles, background_quartiles : (2, n_classes, n_features) lower and upper quartiles, likewise.
    value : the value whose share in the class exceeds that in the background by most; it says more than a
        direction where there are few values.
    share, background_share : these two shares.
    n_values : (n_features,) number of distinct values.
    """

    relevant: Bools
    pvalue: Floats
    statistic: Floats
    effect: Floats
    location: Floats
    spread: Floats
    size: Floats
    direction: NDArray[np.str_]
    background: Bools
    typical: Floats
    background_typical: Floats
    quartiles: Floats
    background_quartiles: Floats
    value: Floats
    share: Floats
    background_share: Floats
    n_values: Integers

    def rounded(self) -> Contrast:
        """The same with four digits of values and quartiles, which may be those of single rows otherwise."""
        return replace(
            self,
            typical=_four_digits(self.typical),
            background_typical=_four_digits(self.background_typical),
            quartiles=_four_digits(self.quartiles),
            background_quartiles=_four_digits(self.background_quartiles),
            value=_four_digits(self.value),
        )


def _four_digits(x: Floats) -> Floats:
    """Numbers with four significant digits."""
    rounded = [float(f"{value:.4g}") for value in x.ravel().tolist()]
    return np.array(rounded).reshape(x.shape)


# A row of less than this share of the largest weight in its class changes no test, but none can be computed
# with it either: samples that it keeps from being separate have slopes without end.
_NEGLIGIBLE_SHARE = 1e-12


def contrast(
    X: Floats,
    codes: Integers,
    n_classes: int,
    *,
    weights: Floats | None = None,
    groups: Integers | None = None,
    level: float = LEVEL,
    min_effect: float = MIN_EFFECT,
) -> Contrast:
    """Find the variables that describe each class.

    Parameters
    ----------
    X : (n_rows, n_features) values; NaN where one is missing. A row is left out of the tests of variables in
        which it has no value.
    codes : (n_rows,) class numbers below `n_classes`.
    n_classes : number of classes, some perhaps without rows.
    weights : (n_rows,) importance of the rows, only relative to others of their class. A class counts as
        (sum w)^2 / sum w^2 rows, which is Kish's effective number.
    groups : (n_rows,) numbers that rows of a group share; a class then counts as fewer rows, the more alike
        those of a group are (see `design_effect`). None if each row stands alone.
    level : probability that a class gets a variable though it differs from the others in none.
    min_effect : least size of a difference that is worth mentioning. The default is where Cliff's delta
        conventionally stops being negligible, a shift of about a quarter of a standard deviation; a flag
        that no other class has must be there in 3.3 % of the class.

    Returns
    -------
    Contrast
        The same whatever the order of rows and classes, with class a in row a.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    if not 0.0 <= min_effect < 1.0:
        raise ValueError(f"min_effect must be at least 0 and below 1, got {min_effect!r}.")
    if weights is None:
        weights = np.ones(len(X))
    # Only ratios of weights in a class count, and squares of very small or large ones do not exist.
    largest = np.zeros(n_classes)
    np.maximum.at(largest, codes, weights)
    shares = weights / np.where(largest > 0.0, largest, 1.0)[codes]
    present = shares > _NEGLIGIBLE_SHARE
    X, codes, shares = X[present], codes[present], shares[present]
    worth = np.ones((X.shape[1], n_classes))
    if groups is not None:
        worth = worth_of_rows(X, codes, n_classes, shares, groups[present])
    blocks = _tabulate(X, codes, n_classes, shares, worth)
    found = _join([_compare(table, level, min_effect) for table in blocks])
    pvalue = np.minimum(found.pvalue * (found.n_values > 1).sum(), 1.0)
    return replace(found, pvalue=pvalue, relevant=found.relevant & (pvalue <= level))


def mixed_contrast(
    X: Floats,
    codes: Integers,
    n_classes: int,
    *,
    levels: Integers,
    weights: Floats | None = None,
    groups: Integers | None = None,
    min_effect: float = MIN_EFFECT,
) -> Contrast:
    """Find the variables that describe each class, some of which have levels.

    Each level counts as a flag, and a variable is described by its strongest one: the level that the class
    has most significantly more often or, if there is none, less often. Its number is the `value`, and
    `typical` is the most frequent level.

    Parameters
    ----------
    X, codes, n_classes, weights, groups, min_effect : as above; of a column of levels their numbers.
    levels : (n_features,) numbers of levels, 0 for measurements.
    """
    owner, level, columns = [], [], []
    for j, n_levels in enumerate(levels.tolist()):
        x = X[:, j]
        flags = [-1] if not n_levels else _frequent_levels(x, n_levels)
        for k in flags:
            owner.append(j)
            level.append(k)
            columns.append(x if k < 0 else np.where(np.isnan(x), np.nan, (x == k).astype(np.float64)))
    flagged = contrast(
        np.stack(columns, axis=1), codes, n_classes, weights=weights, groups=groups, min_effect=min_effect
    )
    owners, values = np.array(owner), np.array(level, dtype=np.float64)
    parts = []
    for j, n_levels in enumerate(levels.tolist()):
        at = np.flatnonzero(owners == j)
        if not n_levels:
            parts.append(_pick(flagged, np.tile(at, (n_classes, 1))))
            continue
        signed = np.where(flagged.relevant[:, at], flagged.statistic[:, at], -np.inf)
        some = np.isfinite(signed).any(axis=1) & (signed.max(axis=1) > 0.0)
        best = np.where(some, signed.argmax(axis=1), np.abs(flagged.statistic[:, at]).argmax(axis=1))
        part = _pick(flagged, at[best][:, np.newaxis])
        typical, background = _modes(X[:, j], codes, n_classes, n_levels, weights)
        parts.append(
            replace(
                part,
                value=values[at[best]][:, np.newaxis],
                typical=typical[:, np.newaxis],
                background_typical=background[:, np.newaxis],
                share=_shares_of_ones(part.share, part.value),
                background_share=_shares_of_ones(part.background_share, part.value),
                relevant=np.logical_or.reduce(flagged.relevant[:, at], axis=1, keepdims=True),
                n_values=np.array([n_levels]),
            )
        )
    return _join(parts)


# Levels that are looked at one by one, the most frequent ones.
_MAX_FLAGS = 50


def _frequent_levels(x: Floats, n_levels: int) -> list[int]:
    counts = np.bincount(x[~np.isnan(x)].astype(np.int64), minlength=n_levels)
    frequent = np.argsort(-counts, kind="stable")[:_MAX_FLAGS]
    return sorted(frequent.tolist())


def _pick(found: Contrast, at: Integers) -> Contrast:
    """One column for each class, (n_classes, 1) numbers of columns."""
    rows = np.arange(len(at))[:, np.newaxis]
    picked = {}
    for field in fields(Contrast):
        array = getattr(found, field.name)
        picked[field.name] = array[at[0]] if field.name == "n_values" else array[..., rows, at]
    return Contrast(**picked)


def _shares_of_ones(share: Floats, value: Floats) -> Floats:
    """Shares of a flag's 1, from those of the value that is named."""
    return np.where(value == 1.0, share, 1.0 - share)


def _modes(
    x: Floats, codes: Integers, n_classes: int, n_levels: int, weights: Floats | None
) -> tuple[Floats, Floats]:
    """The most frequent level of each class, and of all other rows; NaN where there is none."""
    known = ~np.isnan(x)
    cells = codes[known] * n_levels + x[known].astype(np.int64)
    of_cells = None if weights is None else weights[known]
    counts = np.bincount(cells, of_cells, minlength=n_classes * n_levels).reshape(n_classes, n_levels)
    others = counts.sum(axis=0) - counts
    own, rest = (
        np.where(of.sum(axis=1) > 0, of.argmax(axis=1).astype(np.float64), np.nan) for of in (counts, others)
    )
    return own, rest


def _join(parts: list[Contrast]) -> Contrast:
    """Put several blocks of variables together."""
    columns = ([getattr(part, field.name) for part in parts] for field in fields(Contrast))
    return Contrast(*(np.concatenate(arrays, axis=-1) for arrays in columns))


# -------------------------------------------------------------------------------------------- counts


@dataclass(frozen=True, eq=False)
class _Table:
    """How often each class has each value of some variables.

    Attributes
    ----------
    counts : (n_variables, n_classes, n_cells) effective numbers of rows; a cell is a value, or neighbouring
        ones where a variable has too many, and cells of no rows may follow.
    values : (n_variables, n_cells) a value of each cell.
    n_values : (n_variables,) distinct values, before any were put into one cell.
    """

    counts: Floats
    values: Floats
    n_values: Integers

    @property
    def active(self) -> Bools:
        """Classes of which something can be said, (n_variables, n_classes)."""
        return np.asarray(self.counts.sum(axis=2) >= _MIN_ROWS - 1e-9)


def _tabulate(X: Floats, codes: Integers, n_classes: int, weights: Floats, worth: Floats) -> Iterator[_Table]:
    """Count values by class, some variables at a time, sorting each column once.

    A row counts as the part of a row that `worth` says, (n_features, n_classes).
    """
    n, d = X.shape
    step = max(1, _BLOCK // max(n_classes * min(n, _MAX_CELLS), n))
    for first in range(0, d, step):
        values = np.ascontiguousarray(X[:, first : first + step].T)
        order = np.argsort(values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        yield _count(values, codes[order], n_classes, weights[order], worth[first : first + step])


def _count(values: Floats, codes: Integers, n_classes: int, weights: Floats, worth: Floats) -> _Table:
    """Count sorted values (n_variables, n_rows), missing ones last, given class and weight of each."""
    m = len(values)
    present = ~np.isnan(values)
    rows = np.arange(m)[:, np.newaxis] * n_classes + codes
    effective = _effective(np.where(present, weights, 0.0), rows, m * n_classes) * worth.ravel()[rows]
    is_new = present.copy()
    is_new[:, 1:] &= values[:, 1:] != values[:, :-1]
    cells = np.maximum(is_new.cumsum(axis=1) - 1, 0)
    n_values = is_new.sum(axis=1)
    for j in np.flatnonzero(n_values > _MAX_CELLS):
        cells[j] = _coarse(cells[j], effective[j])
    n_cells = int(cells.max(initial=0)) + 1
    counts = np.bincount((rows * n_cells + cells).ravel(), effective.ravel(), m * n_classes * n_cells)
    # The middle one of its rows stands for a cell.
    variables = np.arange(m)[:, np.newaxis] * n_cells
    n_rows = np.bincount((variables + cells).ravel(), present.ravel(), m * n_cells).reshape(m, n_cells)
    middle = (n_rows.cumsum(axis=1) - n_rows + (n_rows - 1) // 2).astype(np.int64)
    return _Table(
        counts=counts.astype(np.float64).reshape(m, n_classes, n_cells),
        values=np.take_along_axis(values, np.clip(middle, 0, values.shape[1] - 1), axis=1),
        n_values=n_values,
    )


def _effective(weights: Floats, groups: Integers, n_groups: int) -> Floats:
    """Multiply weights so that those of a group sum to (sum w)^2 / sum w^2."""
    total = np.bincount(groups.ravel(), weights.ravel(), n_groups)
    squares = np.bincount(groups.ravel(), weights.ravel() ** 2, n_groups)
    factors = np.divide(total, squares, out=np.zeros(n_groups), where=squares > 0)
    return np.asarray(weights * factors[groups])


def _coarse(cells: Integers, weights: Floats) -> Integers:
    """Put neighbouring cells with nearly the same mid-rank into one; ties stay together."""
    counts = np.bincount(cells, weights)
    share = (counts.cumsum() - counts / 2.0) / counts.sum()
    # A hair is taken off the rounding, so that rounding errors do not choose between two cells.
    coarse = np.rint(np.round(_MAX_CELLS * share, 6))
    merged = np.concatenate([[0], (np.diff(coarse) != 0).cumsum()])
    return np.asarray(merged[cells])


# -------------------------------------------------------------------------------------- two samples
# Samples are counts of values (n_tests, n_cells), the same cells in both.


def _polynomials(counts: Floats) -> tuple[Floats, Bools]:
    """Orthonormal polynomials of the mid-ranks (n_degrees, n_tests, n_cells), and which of them exist.

    Those that do not exist, because there are too few distinct values, are zero.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    v = 2.0 * shares.cumsum(axis=1) - shares - 1.0
    n_values = (counts > 0).sum(axis=1)
    ones = np.ones_like(v)
    previous, current = np.zeros_like(v), ones
    polynomials = np.zeros((_N_DEGREES, *v.shape))
    exist = np.zeros((_N_DEGREES, len(v)), dtype=bool)
    for k in range(_N_DEGREES):
        following = v * current
        for lower in (current, previous, ones):
            following -= np.vecdot(shares * following, lower)[:, np.newaxis] * lower
        norm = np.sqrt(np.vecdot(shares * following, following))
        exist[k] = (n_values > k + 1) & (norm > _LEAST_NORM)
        following *= np.divide(1.0, norm, out=np.zeros_like(norm), where=exist[k])[:, np.newaxis]
        polynomials[k] = following
        previous, current = current, following
    return polynomials, exist


def _effects(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Cliff's delta (n_tests,), and the effects of all degrees (n_degrees, n_tests) in its units."""
    first = first / np.maximum(first.sum(axis=1, keepdims=True), 1e-300)
    second = second / np.maximum(second.sum(axis=1, keepdims=True), 1e-300)
    delta = (first * (2.0 * second.cumsum(axis=1) - second - 1.0)).sum(axis=1)
    polynomials, _ = _polynomials(first + second)
    return delta, 0.5 * _DELTA_UNITS * np.vecdot(polynomials, first - second)


def _size(first: Floats, second: Floats, effects: Floats) -> Floats:
    """Size of the difference (n_tests,) in the eyes of the first sample.

    To lack what is rare marks nothing, so there the effects lose their correction for ties.
    """
    first = first / np.maximum(first.sum(axis=1, keepdims=True), 1e-300)
    second = second / np.maximum(second.sum(axis=1, keepdims=True), 1e-300)
    halves = 0.5 * (first + second)
    lacks = (halves > 0.5) & (first > second)
    ties = np.sqrt(np.maximum(1.0 - (halves**3).sum(axis=1), 0.0))
    return np.asarray(np.abs(effects).max(axis=0) * np.where(lacks.any(axis=1), ties, 1.0))


def _log_pvalues(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Logarithms of p-values (n_tests,), and the largest squared standardised statistic of each test."""
    n1, n2 = first.sum(axis=1), second.sum(axis=1)
    polynomials, exist = _polynomials(first + second)
    exist &= (n1 > 0) & (n2 > 0)
    deviation = np.sqrt(np.maximum(n1 * n2, 1e-300) / np.maximum(n1 + n2 - 1.0, 1e-300))
    z = np.where(exist, np.vecdot(polynomials, first) / deviation, 0.0)
    log_p = np.log(2.0) + special.log_ndtr(-np.abs(z))
    degrees, tests = np.nonzero(np.abs(z) > _SMALL_STATISTIC)
    scores = polynomials[degrees, tests] * np.sign(z[degrees, tests])[:, np.newaxis]
    log_p[degrees, tests] = np.log(2.0) + _log_tails(first[tests], second[tests], scores)
    log_p = np.where(exist, np.minimum(log_p, 0.0), 0.0)
    is_dominated = 2.0 * (first + second).max(axis=1) > n1 + n2
    return np.log(_combine(log_p, exist.sum(axis=0), is_dominated)), (z**2).max(axis=0)


def _combine(log_p: Floats, n_degrees: Integers, is_dominated: Bools) -> Floats:
    """Make one p-value of those of the degrees (n_degrees, n_tests), of which the first so many exist."""
    squares = special.ndtri_exp(log_p - np.log(2.0)) ** 2
    least, level = np.ones(log_p.shape[1]), np.zeros(log_p.shape[1])
    fewer = 0
    for most, share in _SHARES.items():
        used = np.minimum(n_degrees, most)
        together = special.gammaincc(np.maximum(used, 1) / 2.0, squares[:most].sum(axis=0) / 2.0)
        bounded = used * np.exp(log_p[:most].min(axis=0))
        p = np.where(is_dominated, bounded, together)
        asked = n_degrees > fewer
        least = np.where(asked, np.minimum(least, p / share), least)
        level += np.where(asked, share, 0.0)
        fewer = most
    p = np.where(n_degrees > 0, least * level, 1.0)
    return np.clip(p, np.finfo(np.float64).tiny, 1.0)


# -------------------------------------------------------------------------------------------- tails


def _log_tails(first: Floats, second: Floats, scores: Floats) -> Floats:
    """Logarithm of the chance that rows drawn at random have a sum of scores as large as the first sample.

    As many rows as the first sample has are drawn, without replacement, from those of both samples.
    """
    n_values = (first + second > 0).sum(axis=1)
    lowest = np.where(first > 0, scores, np.inf).min(axis=1)
    highest = np.where(second > 0, scores, -np.inf).max(axis=1)
    separate = lowest >= highest - 1e-9
    whole = (np.abs(first - np.rint(first)) + np.abs(second - np.rint(second))).max(axis=1) < 1e-9
    binary = (n_values == 2) & whole & ~separate
    others = ~separate & ~binary
    log_p = np.empty(len(first))
    for these, method in ((separate, _separate_tail), (binary, _binary_tail), (others, _saddlepoint)):
        if these.any():
            log_p[these] = method(first[these], second[these], scores[these])
    return log_p


def _separate_tail(first: Floats, second: Floats, scores: Floats) -> Floats:
    """The exact probability where no sum is larger: the samples share at most one score, the border."""
    border = np.where(first > 0, scores, np.inf).min(axis=1, keepdims=True)
    at_border = np.abs(scores - border) < 1e-9
    drawn, left = (first * at_border).sum(axis=1), (second * at_border).sum(axis=1)
    return _log_choose(drawn, left) - _log_choose(first.sum(axis=1), second.sum(axis=1))


def _log_choose(drawn: Floats, left: Floats) -> Floats:
    """Logarithm of the number of ways to draw so many and leave so many."""
    return np.asarray(
        special.gammaln(drawn + left + 1.0) - special.gammaln(drawn + 1.0) - special.gammaln(left + 1.0)
    )


def _binary_tail(first: Floats, second: Floats, scores: Floats) -> Floats:
    """Fisher's exact test for two scores."""
    both = np.rint(first + second)
    top = np.where(both > 0, scores, -np.inf).argmax(axis=1)[:, np.newaxis]
    drawn, there = (np.take_along_axis(c, top, axis=1)[:, 0] for c in (np.rint(first), both))
    tail = hypergeom.sf(drawn - 1.0, both.sum(axis=1), there, np.rint(first).sum(axis=1))
    return np.asarray(np.log(np.maximum(tail, np.finfo(np.float64).tiny)))


def _saddlepoint(first: Floats, second: Floats, scores: Floats) -> Floats:
    r"""Skovgaard's double saddlepoint approximation to the tail, in the form of Barndorff-Nielsen.

    Rows that join the first sample independently with log odds :math:`\alpha + t \varphi_i` are drawn without
    replacement once their number is given. So the approximation needs the logistic regression of membership
    on the score. Let :math:`g` be the gain in log likelihood over :math:`t = 0`, and :math:`\rho` the
    determinant of the information in :math:`(\alpha, t)` over the information in :math:`\alpha` at
    :math:`t = 0`. Then

    .. math:: P \approx \Phi\left(-w - \frac{1}{w} \log \frac{u}{w}\right), \qquad
              w = \sqrt{2 g}, \quad u = t \sqrt{\rho}.

    It comes within a few percent of the mid-p-value even for classes of five rows. A column of two values
    only comes here if there are weights. With :math:`\delta` the distance of its two scores,
    :math:`(1 - e^{-\delta t}) / \delta` then takes the place of :math:`t` in :math:`u`, which counts the
    observed sum in full, as Fisher's test does.
    """
    both = first + second
    n1, n = first.sum(axis=1), both.sum(axis=1)
    slope, gain, determinant = _logistic(both, scores, n1, (first * scores).sum(axis=1))
    there = both > 0
    distance = np.where(there, scores, -np.inf).max(axis=1) - np.where(there, scores, np.inf).min(axis=1)
    slope = np.where(there.sum(axis=1) == 2, -np.expm1(-distance * slope) / distance, slope)
    w = np.sqrt(2.0 * gain)
    u = slope * np.sqrt(determinant / (n1 * (1.0 - n1 / n)))
    return np.asarray(special.log_ndtr(-w - np.log(u / w) / w))


def _logistic(counts: Floats, scores: Floats, n1: Floats, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Regress membership on scores by Newton's method.

    Parameters
    ----------
    counts, scores : (n_tests, n_cells)
    n1, total : (n_tests,) number of members and sum of their scores.

    Returns
    -------
    slope, gain, determinant : (n_tests,) coefficient of the score, log likelihood above that without it, and
        determinant of the information.
    """
    n = counts.sum(axis=1)
    intercept, slope = special.logit(n1 / n), np.zeros_like(n)
    start = n1 * np.log(n1 / n) + (n - n1) * np.log1p(-n1 / n)
    likelihood, determinant = start.copy(), np.ones_like(n)
    running = np.arange(n.size)
    for _ in range(_MAX_STEPS):
        data = counts[running], scores[running], n1[running], total[running]
        point = intercept[running], slope[running]
        step, slope_step, determinant[running], promised = _newton_step(*data, *point)
        step, slope_step, reached = _shorten(data, point, (step, slope_step), likelihood[running])
        more = promised > 1e-16
        running = running[more]
        intercept[running] += step[more]
        slope[running] += slope_step[more]
        likelihood[running] = reached[more]
        if not running.size:
            break
    return slope, np.maximum(likelihood - start, 1e-12), determinant


def _newton_step(
    counts: Floats, scores: Floats, n1: Floats, total: Floats, intercept: Floats, slope: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Newton's step in both coefficients, the determinant of the information and twice the gain promised."""
    p = special.expit(intercept[:, np.newaxis] + slope[:, np.newaxis] * scores)
    expected = counts * p
    gap, score_gap = n1 - expected.sum(axis=1), total - (expected * scores).sum(axis=1)
    expected *= 1.0 - p
    i00, i01 = expected.sum(axis=1), (expected * scores).sum(axis=1)
    i11 = (expected * scores**2).sum(axis=1)
    determinant = np.maximum(i00 * i11 - i01**2, 1e-300)
    step = (i11 * gap - i01 * score_gap) / determinant
    slope_step = (i00 * score_gap - i01 * gap) / determinant
    return step, slope_step, determinant, step * gap + slope_step * score_gap


def _shorten(
    data: tuple[Floats, Floats, Floats, Floats],
    point: tuple[Floats, Floats],
    steps: tuple[Floats, Floats],
    likelihood: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Halve the steps that do not raise the log likelihood; the steps and what they reach."""
    counts, scores, n1, total = data
    factor = np.ones_like(likelihood)
    for _ in range(_MAX_STEPS):
        a, t = point[0] + factor * steps[0], point[1] + factor * steps[1]
        log_odds = a[:, np.newaxis] + t[:, np.newaxis] * scores
        softplus = np.maximum(log_odds, 0.0) + np.log1p(np.exp(-np.abs(log_odds)))
        reached = a * n1 + t * total - (counts * softplus).sum(axis=1)
        falls = reached < likelihood - 1e-9
        if not falls.any():
            break
        factor[falls] *= 0.5
    return factor * steps[0], factor * steps[1], reached


# --------------------------------------------------------------------------------------- background


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Comparisons of all pairs of classes, each (n_variables, n_classes, n_classes).

    Attributes
    ----------
    log_p : logarithms of p-values, 0 where the difference is significant but negligible for the first class.
    statistic : largest squared standardised statistic.
    """

    log_p: Floats
    statistic: Floats


def _compare_pairs(table: _Table, level: float, min_effect: float) -> _Pairs:
    m, n_classes, n_cells = table.counts.shape
    pairs = _Pairs(*np.zeros((2, m, n_classes, n_classes)))
    a, b = np.triu_indices(n_classes, 1)
    step = max(1, _BLOCK // (m * n_cells))
    for first in range(0, a.size, step):
        some = slice(first, first + step)
        _compare_some_pairs(table, pairs, a[some], b[some], level, min_effect)
    return pairs


def _compare_some_pairs(
    table: _Table, pairs: _Pairs, a: Integers, b: Integers, level: float, min_effect: float
) -> None:
    """Compare each of the classes a with that of the classes b in the same place, and fill in the results."""
    m, _, n_cells = table.counts.shape
    first, second = (table.counts[:, of].reshape(-1, n_cells) for of in (a, b))
    log_p, squared = _log_pvalues(first, second)
    log_p[~(table.active[:, a] & table.active[:, b]).ravel()] = 0.0
    # Effects matter only where there is significance.
    doubtful = np.flatnonzero(log_p <= np.log(level))
    first, second = first[doubtful], second[doubtful]
    _, effects = _effects(first, second)
    of_second = log_p.copy()
    log_p[doubtful[_size(first, second, effects) < min_effect]] = 0.0
    of_second[doubtful[_size(second, first, effects) < min_effect]] = 0.0
    pairs.log_p[:, a, b], pairs.log_p[:, b, a] = log_p.reshape(m, -1), of_second.reshape(m, -1)
    pairs.statistic[:, a, b] = pairs.statistic[:, b, a] = squared.reshape(m, -1)


def _find_background(table: _Table, pairs: _Pairs, level: float, min_effect: float) -> Bools:
    """Classes that make up the background of each variable, (n_variables, n_classes)."""
    active = table.active
    n_active = active.sum(axis=1)
    n_pairs = np.maximum(n_active * (n_active - 1) // 2, 1)
    is_negligible = pairs.log_p > np.log(level / n_pairs)[:, np.newaxis, np.newaxis]
    alike = is_negligible & is_negligible.swapaxes(1, 2)
    alike &= active[:, :, np.newaxis] & active[:, np.newaxis, :]
    groups = _alike_groups(alike, pairs.statistic)
    sizes = groups.sum(axis=2)
    eligible = 2 * sizes > n_active[:, np.newaxis]
    undecided = np.flatnonzero(~eligible.any(axis=1))
    eligible[undecided] = _wider_than_rest(
        table.counts[undecided], groups[undecided], active[undecided], min_effect
    )
    eligible &= sizes >= 2
    background = _best_group(groups, eligible, pairs.statistic)
    background[n_active == 2] = active[n_active == 2]
    return background


def _alike_groups(alike: Bools, statistic: Floats) -> Bools:
    """From each class, the group that grows by the nearest class that is like all members so far."""
    n_classes = alike.shape[1]
    itself = np.eye(n_classes, dtype=bool)
    nearest = np.argsort(np.where(itself, -1.0, statistic), axis=2, kind="stable")
    groups = itself & alike
    for candidate in np.moveaxis(nearest, 2, 0)[1:]:
        like_candidate = np.take_along_axis(alike, candidate[:, :, np.newaxis], axis=1)
        joins = np.asarray((like_candidate | ~groups).all(axis=2) & groups.any(axis=2))
        groups |= itself[candidate] & joins[:, :, np.newaxis]
    return groups


def _wider_than_rest(counts: Floats, groups: Bools, active: Bools, min_effect: float) -> Bools:
    """Which groups are wide, more than high or low, against the rows of all other classes."""
    m, n_classes, n_cells = counts.shape
    rest = active[:, np.newaxis, :] & ~groups
    first, second = ((of.astype(np.float64) @ counts).reshape(-1, n_cells) for of in (groups, rest))
    _, effects = _effects(first, second)
    location, spread = effects[:2].reshape(2, m, n_classes)
    return np.asarray((spread >= min_effect) & (spread > np.abs(location)))


def _best_group(groups: Bools, eligible: Bools, statistic: Floats) -> Bools:
    """The largest eligible group, of equally large ones that whose classes are nearest to each other."""
    sizes = np.where(eligible, groups.sum(axis=2), 0)
    member = groups.astype(np.float64)
    within = np.einsum("jga,jab,jgb->jg", member, statistic, member)
    eligible &= sizes == sizes.max(axis=1, keepdims=True)
    within = np.where(eligible, within, np.inf)
    # Equal but for rounding: their union, so that the order of the classes does not matter.
    eligible &= within <= within.min(axis=1, keepdims=True) * (1.0 + 1e-9) + 1e-9
    return np.asarray((groups & eligible[:, :, np.newaxis]).any(axis=1))


# ------------------------------------------------------------------------------------------ classes


def _compare(table: _Table, level: float, min_effect: float) -> Contrast:
    """Compare classes with their background; p-values are not adjusted yet, `relevant` means noticeable."""
    m, n_classes, n_cells = table.counts.shape
    pairs = _compare_pairs(table, level, min_effect)
    background = _find_background(table, pairs, level, min_effect)
    has_background = np.asarray(background.any(axis=1, keepdims=True))
    compared = np.where(has_background, background, table.active)
    others = compared[:, np.newaxis, :] & ~np.eye(n_classes, dtype=bool)
    own, other = table.counts, others.astype(np.float64) @ table.counts
    tests = own.reshape(-1, n_cells), other.reshape(-1, n_cells)

    against_background = _log_pvalues(*tests)[0].reshape(m, n_classes)
    log_p = np.where(has_background, against_background, _differs_from_half(pairs, table.active))
    location, effects = _effects(*tests)
    location, effects = location.reshape(m, n_classes), effects.reshape(-1, m, n_classes)
    size = _size(*tests, effects.reshape(-1, m * n_classes)).reshape(m, n_classes)
    direction, effect = _direction(location, effects)
    known = table.active & others.any(axis=2) & (size > 1e-12)
    quantile = special.ndtri_exp(np.where(known, log_p, 0.0) - np.log(2.0))
    value, share, background_share = _most_typical_value(own, other, table.values)
    return Contrast(
        relevant=(known & (size >= min_effect)).T,
        pvalue=np.where(known, np.exp(log_p), 1.0).T,
        statistic=np.where(effect < 0, quantile, -quantile).T,
        effect=np.where(known, effect, 0.0).T,
        location=np.where(known, location, 0.0).T,
        spread=np.where(known, np.clip(effects[1], -1.0, 1.0), 0.0).T,
        size=np.where(known, size, 0.0).T,
        direction=np.where(known, direction, "").T,
        background=background.T,
        typical=_quantiles(own, table.values, 0.5).T,
        background_typical=_quantiles(other, table.values, 0.5).T,
        quartiles=np.stack([_quantiles(own, table.values, q).T for q in (0.25, 0.75)]),
        background_quartiles=np.stack([_quantiles(other, table.values, q).T for q in (0.25, 0.75)]),
        value=value.T,
        share=share.T,
        background_share=background_share.T,
        n_values=table.n_values,
    )


def _differs_from_half(pairs: _Pairs, active: Bools) -> Floats:
    """Logarithms of p-values of the hypothesis that a class differs from less than half of the others."""
    n_classes = active.shape[1]
    n_active = active.sum(axis=1)
    least = np.maximum(n_active // 2, 1)
    is_other = active[:, np.newaxis, :] & ~np.eye(n_classes, dtype=bool)
    ordered = np.sort(np.where(is_other, pairs.log_p, 0.0), axis=2)
    position = np.minimum(least, n_classes) - 1
    log_p = np.take_along_axis(ordered, position[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    return np.asarray(np.minimum(log_p + np.log(np.maximum(n_active - least, 1))[:, np.newaxis], 0.0))


def _direction(location: Floats, effects: Floats) -> tuple[NDArray[np.str_], Floats]:
    """Name the largest of the effects, and tell its strength; location is preferred if sizes are equal."""
    spread, others = np.clip(effects[1], -1.0, 1.0), np.abs(effects[2:]).max(axis=0)
    largest = np.stack([np.abs(effects[0]), np.abs(effects[1]), others]).argmax(axis=0)
    shift = np.where(location < 0, "low", "high")
    width = np.where(spread < 0, "narrow", "wide")
    direction = np.choose(largest, [shift, width, np.full(shift.shape, "shape")])
    return direction, np.choose(largest, [location, spread, np.minimum(others, 1.0)])


def _quantiles(counts: Floats, values: Floats, q: float) -> Floats:
    """Quantiles (n_variables, n_classes) of counted values, NaN where there are none.

    The mean of two neighbouring values where exactly a share q of the rows lies below both.
    """
    total = counts.sum(axis=2, keepdims=True)
    shares = counts.cumsum(axis=2) / np.where(total > 0, total, 1.0)
    bounds = (shares >= q - 1e-9).argmax(axis=2), (shares > q + 1e-9).argmax(axis=2)
    lower, upper = (np.take_along_axis(values, bound, axis=1) for bound in bounds)
    return np.where(total[:, :, 0] > 0, 0.5 * lower + 0.5 * upper, np.nan)


def _most_typical_value(own: Floats, other: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """The value whose share in the class exceeds that elsewhere by most, and both shares."""
    own, other = (of / np.maximum(of.sum(axis=2, keepdims=True), 1e-300) for of in (own, other))
    best = (own - other).argmax(axis=2)
    value = np.take_along_axis(values, best, axis=1)
    share, elsewhere = (
        np.take_along_axis(of, best[:, :, np.newaxis], axis=2)[:, :, 0] for of in (own, other)
    )
    return value, share, elsewhere

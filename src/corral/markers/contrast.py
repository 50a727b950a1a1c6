"""Which variables describe each class: how its values differ from those of its background.

Everything here is a function of ranks, so units and increasing transformations of a column change nothing.
How two samples are compared is said in `rank_tests`.

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from corral.array_types import Bools, Floats, Integers, check_array
from corral.data.dataset import LabelledRows
from corral.data.weights import effective_weights, weights_or_ones
from corral.markers.group_effects import Clusters, count_groups, effects_of_groups, pvalues_with_groups
from corral.markers.rank_tests import (
    effects_between,
    least_log_pvalue,
    log_pvalues,
    occupied_cells,
    size_of_difference,
)

# Conventionally, a Cliff's delta below 0.147 is negligible (Romano et al., 2006).
MIN_EFFECT = 0.15

LEVEL = 0.01

# A column with more distinct values is cut into so many cells of equal numbers of rows. The cells do not know
# of the classes, so all tests stay exact. Even, so that a column and its mirror image have the same cells.
_MAX_CELLS = 500

# Of a class with fewer rows nothing can be said.
_MIN_ROWS = 3

# A row of less than this share of the largest weight in its class changes no test, but none can be computed
# with it either: samples that it keeps from being separate have slopes without end.
_NEGLIGIBLE_SHARE = 1e-12

# Of a variable with at most so many values, single ones may say more than a direction.
FEW_VALUES = 10

# Levels that are looked at one by one, the most frequent ones.
_MAX_FLAGS = 50

# Quantiles that are shown beside a direction: quartiles and median.
_SHOWN_QUANTILES = (0.25, 0.5, 0.75)

_DIRECTIONS = ("", "high", "low", "narrow", "shape", "wide")

# Numbers in a block of variables that are compared at once.
_BLOCK = 200_000


@dataclass(frozen=True, eq=False)
class Contrast:
    """How each class differs from its background in each variable.

    Arrays have the shape (n_classes, n_features) unless another one is given. Where nothing can be said, as
    of a class of one or two rows or of a constant column, p-values are 1, effects are 0 and the direction is
    empty.

    Attributes
    ----------
    markers : which variables mark the class: significant at the level and not negligible.
    pvalue : p-values, adjusted for the number of variables of the class.
    statistic : the same before adjustment as normal quantiles, with the sign of the effect.
    effect : from -1 to 1, what `direction` says: `location`, `spread` or the size of another difference.
    location : Cliff's delta, P(class > background) - P(class < background).
    spread : the counterpart for spread; negative where the class is narrow.
    size : largest of all differences whatever its direction, in the units of Cliff's delta without ties. This
        is compared with `min_effect`; where there is no background, sizes between classes are as well.
    direction : "high", "low", "narrow" (also of a class that lies between the others), "wide", "shape" (such
        as two modes) or "": the word of the largest effect that medians and quartiles do not contradict.
    background : whether the class belongs to the background of the variable; nowhere if it has none.
    typical, background_typical : medians of the class and of the rows that it is compared with.
    quartiles, background_quartiles : (2, n_classes, n_features) lower and upper quartiles, likewise.
    value : the value whose share in the class exceeds that in the background by most; it says more than a
        direction where there are few values.
    share, background_share : these two shares.
    n_values : (n_features,) number of distinct values.
    """

    markers: Bools
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

    def validate(self) -> None:
        """Refuse arrays of other shapes, and numbers that are not finite; a class without rows has NaN."""
        shapes = {
            "quartiles": (2, *self.markers.shape),
            "background_quartiles": (2, *self.markers.shape),
            "n_values": self.markers.shape[1:],
        }
        for name, array in ((field.name, getattr(self, field.name)) for field in fields(self)):
            if name != "direction":
                check_array(name, array, shapes.get(name, self.markers.shape), nan=True)
        if self.direction.shape != self.markers.shape or not np.isin(self.direction, _DIRECTIONS).all():
            raise ValueError("direction holds something else than directions")

    def shares_of_ones(self) -> Floats:
        """(2, n_classes, n_features) shares of 1 in class and background, where values are flags."""
        shares = np.stack([self.share, self.background_share])
        return np.where(self.value == 1.0, shares, 1.0 - shares)


def contrast(
    X: Floats,
    codes: Integers,
    n_classes: int,
    *,
    levels: Integers | None = None,
    weights: Floats | None = None,
    groups: Integers | None = None,
    level: float = LEVEL,
    min_effect: float = MIN_EFFECT,
) -> Contrast:
    """Find the variables that describe each class.

    Each category counts as a flag, and a variable is described by its strongest one: the category that the
    class has most significantly more often or, if there is none, less often. Its number is the `value`, and
    `typical` is the most frequent category.

    Parameters
    ----------
    X : (n_rows, n_features) values, or numbers of categories; NaN where one is missing. A row is left out of
        the tests of variables in which it has no value.
    codes : (n_rows,) class numbers below `n_classes`.
    n_classes : number of classes, some perhaps without rows.
    levels : (n_features,) numbers of categories, 0 for measurements; None if all are.
    weights : (n_rows,) importance of the rows, only relative to others of their class. A class counts as
        (sum w)^2 / sum w^2 rows, which is Kish's effective number.
    groups : (n_rows,) numbers that rows of a group share; a class then counts as fewer rows, the more alike
        those of a group are, and no p-value is less than whole groups allow (see `group_effects`). None if
        each row stands alone.
    level : probability that a class gets a variable though it differs from the others in none.
    min_effect : least size of a difference that is worth mentioning. The default is where Cliff's delta
        conventionally stops being negligible, a shift of about a quarter of a standard deviation; a flag
        that no other class has must be there in 3.3 % of the class.

    Returns
    -------
    Contrast
        The same whatever the order of rows and classes, with class a in row a.
    """
    weights = weights_or_ones(weights, len(X))
    if levels is not None and levels.any():
        columns, variable, category = _flag_columns(X, levels)
        found = contrast(
            columns, codes, n_classes, weights=weights, groups=groups, level=level, min_effect=min_effect
        )
        found = _strongest_columns(found, variable, category, levels)
        return _with_modes(found, X, codes, weights, levels)
    # Only ratios of weights in a class count, and squares of very small or large ones do not exist.
    largest = np.zeros(n_classes)
    np.maximum.at(largest, codes, weights)
    shares = weights / np.where(largest > 0.0, largest, 1.0)[codes]
    present = shares > _NEGLIGIBLE_SHARE
    if groups is not None:
        groups = np.unique(groups[present], return_inverse=True)[1]
    blocks = _tabulate(X[present], codes[present], n_classes, shares[present], groups)
    found = _join([_compare(table, level, min_effect) for table in blocks])
    n_varying = max(int((found.n_values > 1).sum()), 1)
    pvalue = np.minimum(found.pvalue * n_varying, 1.0)
    return replace(found, pvalue=pvalue, markers=found.markers & (pvalue <= level))


def _flag_columns(X: Floats, levels: Integers) -> tuple[Floats, Integers, Integers]:
    """Columns (n_rows, n_columns) to compare, the variable of each, and the category that it flags.

    A variable of numbers is one column, whose category is -1.
    """
    columns, variable, category = [], [], []
    for j, n_levels in enumerate(levels.tolist()):
        x = X[:, j]
        categories = _frequent_levels(x, n_levels) if n_levels else [-1]
        columns += [np.where(np.isnan(x), np.nan, x == k) if n_levels else x for k in categories]
        variable += [j] * len(categories)
        category += categories
    return np.stack(columns, axis=1), np.array(variable), np.array(category)


def _frequent_levels(x: Floats, n_levels: int) -> list[int]:
    counts = np.bincount(x[~np.isnan(x)].astype(np.int64), minlength=n_levels)
    frequent = np.argsort(-counts, kind="stable")[:_MAX_FLAGS]
    return sorted(frequent.tolist())


def _strongest_columns(found: Contrast, variable: Integers, category: Integers, levels: Integers) -> Contrast:
    """Pick for each class and variable the strongest one of its columns; see `contrast`."""
    n_classes, is_category = len(found.markers), levels > 0
    strongest = np.zeros((n_classes, levels.size), dtype=np.int64)
    markers = np.zeros((n_classes, levels.size), dtype=np.bool_)
    for j in range(levels.size):
        columns = np.flatnonzero(variable == j)
        statistic, marked = found.statistic[:, columns], found.markers[:, columns]
        positive = np.where(marked & (statistic > 0.0), statistic, 0.0)
        more_often, any_way = positive.argmax(axis=1), np.abs(statistic).argmax(axis=1)
        strongest[:, j] = columns[np.where(positive.any(axis=1), more_often, any_way)]
        markers[:, j] = marked.any(axis=1)
    classes = np.arange(n_classes)[:, np.newaxis]
    arrays = {field.name: getattr(found, field.name) for field in fields(Contrast)}
    n_values = np.where(is_category, levels, arrays.pop("n_values")[strongest[0]])
    picked = Contrast(
        **{name: array[..., classes, strongest] for name, array in arrays.items()}, n_values=n_values
    )
    share, background_share = np.where(
        is_category, picked.shares_of_ones(), [picked.share, picked.background_share]
    )
    value = np.where(is_category, category[strongest], picked.value)
    return replace(picked, markers=markers, value=value, share=share, background_share=background_share)


def _with_modes(found: Contrast, X: Floats, codes: Integers, weights: Floats, levels: Integers) -> Contrast:
    """Typical values of categories are the most frequent ones of a class, and of all other rows."""
    typical, background_typical = found.typical.copy(), found.background_typical.copy()
    for j in np.flatnonzero(levels):
        modes = _modes(X[:, j], codes, len(typical), int(levels[j]), weights)
        typical[:, j], background_typical[:, j] = modes
    return replace(found, typical=typical, background_typical=background_typical)


def _modes(x: Floats, codes: Integers, n_classes: int, n_levels: int, weights: Floats) -> Floats:
    """Most frequent category (2, n_classes) of each class, and of all other rows; NaN where there is none."""
    known = ~np.isnan(x)
    cells = codes[known] * n_levels + x[known].astype(np.int64)
    counts = np.bincount(cells, weights[known], n_classes * n_levels).reshape(n_classes, n_levels)
    both = np.stack([counts, counts.sum(axis=0) - counts])
    return np.where(both.sum(axis=2) > 0, both.argmax(axis=2).astype(np.float64), np.nan)


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
    groups : the groups of each class; none where each row stands alone.
    """

    counts: Floats
    values: Floats
    n_values: Integers
    groups: Clusters

    def take(self, variables: Integers) -> _Table:
        """Pick variables by their numbers."""
        return _Table(
            counts=self.counts[variables],
            values=self.values[variables],
            n_values=self.n_values[variables],
            groups=self.groups.take_variables(variables),
        )

    @property
    def active(self) -> Bools:
        """Classes of which something can be said, (n_variables, n_classes)."""
        return np.asarray(self.counts.sum(axis=2) >= _MIN_ROWS - 1e-9)


def _tabulate(
    X: Floats, codes: Integers, n_classes: int, weights: Floats, groups: Integers | None
) -> Iterator[_Table]:
    """Count values by class, some variables at a time, sorting each column once."""
    n, d = X.shape
    n_groups = 0 if groups is None else int(groups.max(initial=0)) + 1
    step = max(1, _BLOCK // max(n_classes * max(min(n, _MAX_CELLS), n_groups), n))
    for first in range(0, d, step):
        block = X[:, first : first + step]
        values = np.ascontiguousarray(block.T)
        order = np.argsort(values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        worth, variance, error = np.ones((3, block.shape[1], n_classes))
        counts = np.empty((block.shape[1], n_classes, 0), dtype=np.int64)
        if groups is not None:
            worth, variance, error = effects_of_groups(block, codes, n_classes, weights, groups)
            counts = count_groups(~np.isnan(block.T), codes, n_classes, groups)
        clusters = Clusters(counts, variance, error)
        yield _count(values, codes[order], n_classes, weights[order], worth, clusters)


def _count(
    values: Floats, codes: Integers, n_classes: int, weights: Floats, worth: Floats, clusters: Clusters
) -> _Table:
    """Count sorted values (n_variables, n_rows), missing ones last, given class and weight of each.

    A row counts as the part of a row that `worth` says, (n_variables, n_classes).
    """
    m = len(values)
    present = ~np.isnan(values)
    rows = np.arange(m)[:, np.newaxis] * n_classes + codes
    effective = effective_weights(np.where(present, weights, 0.0), rows, m * n_classes) * worth.ravel()[rows]
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
        groups=clusters,
    )


def _coarse(cells: Integers, weights: Floats) -> Integers:
    """Put neighbouring cells with nearly the same mid-rank into one; ties stay together."""
    counts = np.bincount(cells, weights)
    share = (counts.cumsum() - counts / 2.0) / counts.sum()
    # A hair is taken off the rounding, so that rounding errors do not choose between two cells.
    coarse = np.rint(np.round(_MAX_CELLS * share, 6))
    merged = np.concatenate([[0], (np.diff(coarse) != 0).cumsum()])
    return np.asarray(merged[cells])


# --------------------------------------------------------------------------------------- background


class _Pairs(NamedTuple):
    """Comparisons of all pairs of classes, each (n_variables, n_classes, n_classes).

    Attributes
    ----------
    log_p : logarithms of p-values, 0 where the difference is significant but negligible for the first class.
    statistic : largest squared standardised statistic.
    """

    log_p: Floats
    statistic: Floats


def _compare_pairs(table: _Table, level: float, min_effect: float) -> _Pairs:
    """Compare all pairs of classes in the variables where some pair can differ significantly at all.

    In other variables, as where all classes have three rows, nothing is computed: p-values are 1.
    """
    n_variables, n_classes, n_cells = table.counts.shape
    pairs = _Pairs(*np.zeros((2, n_variables, n_classes, n_classes)))
    variables = np.flatnonzero(_may_differ(table, level))
    table = table.take(variables)
    active = table.active
    a, b = np.triu_indices(n_classes, 1)
    testable = (active[:, a] & active[:, b]).any(axis=0)
    a, b = a[testable], b[testable]
    step = max(1, _BLOCK // max(variables.size * max(n_cells, table.groups.counts.shape[2]), 1))
    variables = variables[:, np.newaxis]
    for first in range(0, a.size, step):
        one, two = a[first : first + step], b[first : first + step]
        log_p, log_p_of_two, statistic = _compare_some_pairs(table, one, two, level, min_effect)
        pairs.log_p[variables, one, two], pairs.log_p[variables, two, one] = log_p, log_p_of_two
        pairs.statistic[variables, one, two] = pairs.statistic[variables, two, one] = statistic
    return pairs


def _may_differ(table: _Table, level: float) -> Bools:
    """Whether the two largest classes of each variable (n_variables,) have enough rows for a small p-value.

    A p-value of a pair matters if it is at most the level over the number of classes that a class need not
    differ from (see `_differs_from_half`); the level over the number of pairs is less.
    """
    active = table.active
    n_active = active.sum(axis=1)
    sizes = np.sort(np.where(active, table.counts.sum(axis=2), 0.0), axis=1)
    if sizes.shape[1] < 2:
        return np.zeros(len(sizes), dtype=bool)
    least = least_log_pvalue(sizes[:, -1], sizes[:, -2])
    return np.asarray((n_active >= 2) & (least <= np.log(level / np.maximum(n_active - n_active // 2, 1))))


def _compare_some_pairs(
    table: _Table, a: Integers, b: Integers, level: float, min_effect: float
) -> tuple[Floats, Floats, Floats]:
    """Compare each of the classes a with that of the classes b in the same place.

    Returns log p-values as the first class sees them, as the second does, and squared statistics, each
    (n_variables, n_pairs).
    """
    m, _, n_cells = table.counts.shape
    first, second = occupied_cells(*(table.counts[:, of].reshape(-1, n_cells) for of in (a, b)))
    log_p, squared = log_pvalues(first, second)
    log_p = pvalues_with_groups(log_p, table.groups.take(a), table.groups.take(b))
    log_p[~(table.active[:, a] & table.active[:, b]).ravel()] = 0.0
    # Effects matter only where there is significance.
    doubtful = np.flatnonzero(log_p <= np.log(level))
    first, second = first[doubtful], second[doubtful]
    _, effects = effects_between(first, second)
    of_second = log_p.copy()
    log_p[doubtful[size_of_difference(first, second, effects) < min_effect]] = 0.0
    of_second[doubtful[size_of_difference(second, first, effects) < min_effect]] = 0.0
    return log_p.reshape(m, -1), of_second.reshape(m, -1), squared.reshape(m, -1)


def _find_background(table: _Table, pairs: _Pairs, level: float, min_effect: float) -> Bools:
    """Classes that make up the background of each variable, (n_variables, n_classes)."""
    active = table.active
    n_active = active.sum(axis=1)
    n_pairs = np.maximum(n_active * (n_active - 1) // 2, 1)
    is_negligible = pairs.log_p > np.log(level / n_pairs)[:, np.newaxis, np.newaxis]
    alike = is_negligible & is_negligible.swapaxes(1, 2)
    comparable = active[:, :, np.newaxis] & active[:, np.newaxis, :]
    alike &= comparable
    background = np.asarray(active & (n_active >= 2)[:, np.newaxis])
    differ = np.flatnonzero((alike != comparable).any(axis=(1, 2)) & (n_active > 2))
    background[differ] = _background_of_some(
        table.counts[differ], active[differ], alike[differ], pairs.statistic[differ], min_effect
    )
    return background


def _background_of_some(
    counts: Floats, active: Bools, alike: Bools, statistic: Floats, min_effect: float
) -> Bools:
    """Classes of the background (n_variables, n_classes) where some classes are not alike."""
    groups = _alike_groups(alike, statistic)
    sizes = groups.sum(axis=2)
    eligible = 2 * sizes > active.sum(axis=1, keepdims=True)
    undecided = np.flatnonzero(~eligible.any(axis=1))
    eligible[undecided] = _wider_than_rest(
        counts[undecided], groups[undecided], active[undecided], min_effect
    )
    eligible &= sizes >= 2
    return _best_group(groups, eligible, statistic)


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
    _, effects = effects_between(first, second)
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
    """Compare classes with their background; p-values are not adjusted yet, `markers` means noticeable."""
    m, n_classes, n_cells = table.counts.shape
    pairs = _compare_pairs(table, level, min_effect)
    background = _find_background(table, pairs, level, min_effect)
    has_background = np.asarray(background.any(axis=1, keepdims=True))
    compared = np.where(has_background, background, table.active)
    others = compared[:, np.newaxis, :] & ~np.eye(n_classes, dtype=bool)
    own, other = table.counts, others.astype(np.float64) @ table.counts
    tests = own.reshape(-1, n_cells), other.reshape(-1, n_cells)

    other_groups = table.groups.pool(others, own.sum(axis=2))
    against_background = pvalues_with_groups(log_pvalues(*tests)[0], table.groups, other_groups)
    against_background = against_background.reshape(m, n_classes)
    log_p = np.where(has_background, against_background, _differs_from_half(pairs, table.active))
    location, effects = effects_between(*tests)
    location, effects = location.reshape(m, n_classes), effects.reshape(-1, m, n_classes)
    size = size_of_difference(*tests, effects.reshape(-1, m * n_classes)).reshape(m, n_classes)
    quantiles = [np.stack([_quantiles(of, table.values, q) for q in _SHOWN_QUANTILES]) for of in (own, other)]
    direction, effect = _direction(location, effects, quantiles[0], quantiles[1], min_effect)
    known = table.active & others.any(axis=2) & (size > 1e-12)
    quantile = special.ndtri_exp(np.where(known, log_p, 0.0) - np.log(2.0))
    value, share, background_share = _most_typical_value(own, other, table.values)
    return Contrast(
        markers=(known & (size >= min_effect)).T,
        pvalue=np.where(known, np.exp(log_p), 1.0).T,
        statistic=np.where(effect < 0, quantile, -quantile).T,
        effect=np.where(known, effect, 0.0).T,
        location=np.where(known, location, 0.0).T,
        spread=np.where(known, np.clip(effects[1], -1.0, 1.0), 0.0).T,
        size=np.where(known, size, 0.0).T,
        direction=np.where(known, direction, "").T,
        background=background.T,
        typical=quantiles[0][1].T,
        background_typical=quantiles[1][1].T,
        quartiles=quantiles[0][::2].swapaxes(1, 2),
        background_quartiles=quantiles[1][::2].swapaxes(1, 2),
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


def _direction(
    location: Floats, effects: Floats, own: Floats, other: Floats, min_effect: float
) -> tuple[NDArray[np.str_], Floats]:
    """Name the largest effect that medians and quartiles do not contradict, and return its strength.

    Location is preferred if sizes are equal. Where the numbers contradict the word of the largest effect,
    another word may fit whose effect is not negligible; "shape" fits all numbers.

    Parameters
    ----------
    location, effects : (n_variables, n_classes) and (n_degrees, n_variables, n_classes) as in `rank_tests`.
    own, other : (3, n_variables, n_classes) lower quartile, median and upper quartile of class and
        background.
    min_effect : least size of an effect that takes the place of the largest one.
    """
    sizes = np.stack([np.abs(effects[0]), np.abs(effects[1]), np.abs(effects[2:]).max(axis=0)])
    largest = sizes.max(axis=0)
    spread = np.clip(effects[1], -1.0, 1.0)
    fits = np.stack(
        [
            _fits_shift(location, own, other),
            _fits_width(spread, own, other),
            np.ones(spread.shape, dtype=bool),
        ]
    )
    fits[:2] &= (sizes[:2] >= min_effect) | (sizes[:2] == largest)
    choice = np.where(fits, sizes, -1.0).argmax(axis=0)
    shift = np.where(location < 0, "low", "high")
    width = np.where(spread < 0, "narrow", "wide")
    direction = np.choose(choice, [shift, width, np.full(shift.shape, "shape")])
    return direction, np.choose(choice, [location, spread, np.minimum(largest, 1.0)])


def _fits_shift(location: Floats, own: Floats, other: Floats) -> Bools:
    """Whether the median lies where "high" or "low" says, or, if medians are equal, no quartile disagrees."""
    difference = np.where(location < 0, other - own, own - other)
    quartiles_agree = (difference[0] >= 0.0) & (difference[2] >= 0.0)
    return np.asarray((difference[1] > 0.0) | ((difference[1] == 0.0) & quartiles_agree))


def _fits_width(spread: Floats, own: Floats, other: Floats) -> Bools:
    """Whether the quartiles are closer together or further apart, as the word says, or the same."""
    difference = (own[2] - own[0]) - (other[2] - other[0])
    same = (own[::2] == other[::2]).all(axis=0)
    return np.asarray(np.where(spread < 0, difference < 0.0, difference > 0.0) | same)


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


def learn_contrast(data: LabelledRows, min_effect: float) -> Contrast:
    """Compare each class with its background; a row and its copies are one observation."""
    return contrast(
        data.X,
        data.codes,
        data.labels.size,
        levels=data.levels,
        weights=data.weights,
        groups=data.units if data.grouped else None,
        min_effect=min_effect,
    )


def learn_gap_contrast(data: LabelledRows, min_effect: float) -> Contrast | None:
    """Compare what each class and its background lack; None if nothing is missing."""
    gaps = np.isnan(data.X)
    if not gaps.any():
        return None
    return learn_contrast(replace(data, X=gaps.astype(np.float64), levels=None), min_effect)

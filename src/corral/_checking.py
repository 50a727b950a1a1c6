"""A look at a table before a classifier is fitted: what in it is likely to be a mistake, and what to do.

Each finding rests on a count or a measurement, not on names alone, and is told in one sentence. What sound
tables have, such as a variable that is far from normal or classes of unequal size, is no finding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral._core.copies import number_copies
from corral._core.settings import Bools, Floats, Integers

if TYPE_CHECKING:
    import pandas as pd

# In fewer rows a column may well be in order, or all its values differ, by chance.
_ENOUGH = 10
_CALLED_ID = re.compile(r"(?i:(^|[^a-z])(id|index|key|nr|no|number))$|[a-z]I[dD]$")

# A column is nearly constant if so small a share of rows, and so few of one class, differ.
_RARE = 0.005
_FEW_OF_CLASS = 5

# A column gives the label away if it leaves so small a share of the errors of the most frequent class.
_ERRORS_LEFT = 0.03
_ROWS_TRIED = 5000

# Values that stand in so many rows on average, and so many of which each class has, may name patients.
_ROWS_OF_PATIENT = 2
_PATIENTS_OF_CLASS = 3

# Fewer rows of a class say little of it, and less of how well it is recognised.
FEW_ROWS = 10

# Standard deviations within which two rows are nearly the same, and the radius that tells whether by chance.
_NEAR = 1e-3
_WIDER = 8.0
_MOST_STEPS = 1000

# What stands for a missing number in files of programs that have no other word for it.
_SENTINEL = re.compile(r"-1|-9|-?9{2,}")

_MOST_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """Something in a table that is likely to be a mistake.

    Attributes
    ----------
    kind : what it is, in one word or two.
    columns : which ones it is about, if any.
    rows : the first rows that it is about, if any, as the index of the table names them.
    found : what was found.
    advice : what to do.
    values : texts or numbers that seem to stand for nothing.
    """

    kind: str
    columns: tuple[str, ...]
    rows: tuple[Any, ...]
    found: str
    advice: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.found}: {self.advice}."


def check_table(
    table: pd.DataFrame,
    y: NDArray[Any] | None = None,
    *,
    ids: Sequence[str] = (),
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> list[Finding]:
    """Look for mistakes in a table.

    Parameters
    ----------
    table : DataFrame
        Columns of numbers or text; missing values are NaN or None.
    y : ndarray of shape (n_rows,), default=None
        Classes of the rows, if they are known; None or NaN where one is missing.
    ids : sequence of str
        Columns that name rows.
    group : str, default=None
        Column that names what rows belong to, such as a patient with several measurements.
    categorical : sequence of str
        Columns whose values are levels, whatever they look like.

    Returns
    -------
    findings : list of Finding
        In the order in which they should be mended.

    Examples
    --------
    >>> import pandas as pd
    >>> from corral._checking import check_table
    >>> heights, weights = [1.7, 1.6, -999.0, 1.8, -999.0, 1.9], [70.5, 66.1, 71.2, 80.3, 69.9, 84.0]
    >>> table = pd.DataFrame({"height": heights, "weight": weights, "site": 3})
    >>> for finding in check_table(table):
    ...     print(finding)
    column 'site' holds 3 in every row, which tells nothing: leave it out.
    column 'height' holds -999 in 2 rows and nothing else below 1.6: say that -999 stands for a missing value.
    """
    variables = table[[name for name in table.columns if name not in {*ids, group}]]
    numeric = {name: numbers_in(variables[name]) for name in variables.columns}
    numeric = {
        name: x
        for name, x in numeric.items()
        if name not in categorical
        and not hasattr(variables[name].dtype, "categories")
        and _is_numeric(variables[name], x)
    }
    known = None if y is None else ~_is_missing(y)
    findings = [*_labels(y)] if y is not None else []
    findings += _mostly_empty(variables)
    named = [*_identifiers(variables, numeric)]
    findings += named
    skipped = {name for finding in named for name in finding.columns}
    levels = [name for name in variables.columns if name not in (*numeric, *skipped)]
    findings += _text_among_numbers(variables[[name for name in levels if name not in categorical]])
    findings += _odd_levels(variables[levels])
    findings += _constants(variables, numeric, y)
    findings += _sentinels(variables, numeric)
    if y is not None and known is not None:
        findings += _giveaways(variables, numeric, y, known, skipped)
    numbers = {name: x for name, x in numeric.items() if name not in skipped}
    findings += _copies(numbers, variables[levels], y)
    findings += _repeated_ids(table, ids, group)
    if group is not None:
        findings += _groups(table[group], group, y)
    return findings


def listed(
    names: Sequence[Any], show: Callable[[Any], str] = repr, most: int = _MOST_NAMED, rest: str = ""
) -> str:
    """The first of some names, and how many more there are; `rest` says what of them."""
    more = f" and {len(names) - most} more{rest}" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more


def numbers_in(column: pd.Series[Any]) -> Floats:
    """A column as floats, NaN where there is none."""
    import pandas as pd

    if column.dtype.kind not in "biuf":
        # As text, or dates would become numbers; yes and no are numbers.
        column = column.map(lambda value: float(value) if isinstance(value, bool) else str(value))
        column = pd.to_numeric(column, errors="coerce")
    numbers: Floats = column.to_numpy(np.float64, na_value=np.nan)
    return numbers


def _is_numeric(column: pd.Series[Any], numbers: Floats) -> bool:
    return bool((np.isfinite(numbers) | column.isna().to_numpy()).all() and np.isfinite(numbers).any())


def _is_missing(y: NDArray[Any]) -> Bools:
    import pandas as pd

    missing: Bools = pd.isna(y)
    return missing


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


# Labels


def _labels(y: NDArray[Any]) -> Iterator[Finding]:
    missing = _is_missing(y)
    if missing.any():
        yield Finding(
            "missing labels",
            (),
            tuple(np.flatnonzero(missing)[:_MOST_NAMED].tolist()),
            f"the label is missing in {missing.sum()} of {_counted(y.size, 'row')}",
            "fill it in, or leave such rows out",
        )
    classes, counts = np.unique(y[~missing].astype(str), return_counts=True)
    groups = alike(classes.tolist())
    if groups:
        shown = ", ".join(f"({listed(group)})" for group in groups[:_MOST_NAMED])
        yield Finding(
            "labels alike",
            (),
            (),
            "labels that differ only by case, by spaces around them or in how a number is written are "
            f"classes of their own: {shown}",
            "write each class in one way",
        )
    yield from small_classes(dict(zip(classes.tolist(), counts.tolist(), strict=True)))


def small_classes(counts: dict[str, int]) -> Iterator[Finding]:
    """Classes of which there are too few rows to say much."""
    small = {label: n for label, n in counts.items() if n < FEW_ROWS}
    if not small:
        return
    shown = listed([f"{label!r} ({n})" for label, n in small.items()], str)
    fewest = min(small.values())
    margin = 0.98 / math.sqrt(max(fewest, 1))  # the half width of a 95 % interval around one half
    yield Finding(
        "few rows",
        (),
        (),
        f"fewer than {FEW_ROWS} rows have the class{'es' * (len(small) > 1)} {shown}, so that the "
        f"accuracy of a class of {fewest} is known to within {min(margin, 0.5):.2f} at best",
        "collect more rows, or leave such classes out",
    )


def alike(labels: Sequence[str]) -> list[list[str]]:
    """Groups of labels that differ only by case, by spaces around them or in how a number is written."""
    groups: dict[Hashable, list[str]] = {}
    for label in labels:
        groups.setdefault(_essence(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _essence(label: str) -> Hashable:
    """What labels have in common that look alike."""
    text = " ".join(label.split()).casefold()
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


# Columns


def _mostly_empty(variables: pd.DataFrame) -> Iterator[Finding]:
    counts = {name: int(n) for name, n in variables.isna().sum().items() if n}
    n = len(variables)
    mostly = [name for name, missing in counts.items() if 2 * missing > n]
    if mostly:
        shown = ", ".join(f"{name!r} ({counts[name]})" for name in mostly[:_MOST_NAMED])
        yield Finding(
            "mostly empty",
            tuple(mostly),
            (),
            f"more than half of {_counted(n, 'value')} are missing in {_counted(len(mostly), 'column')}: "
            f"{shown}",
            "leave them out" if len(mostly) > 1 else "leave it out",
        )


def _identifiers(variables: pd.DataFrame, numeric: dict[str, Floats]) -> Iterator[Finding]:
    for name in variables.columns:
        column = variables[name]
        if name in numeric:
            if names_rows(name, numeric[name]):
                yield Finding(
                    "identifier",
                    (name,),
                    (),
                    f"column {name!r} holds another whole number in every row"
                    + (", in order" if _is_in_order(numeric[name]) else ""),
                    "if it names rows, say so, or leave it out",
                )
        elif texts_name_rows(column):
            yield Finding(
                "identifier",
                (name,),
                (),
                f"column {name!r} holds another text in every row, as names of rows do",
                "say that it names rows, or leave it out",
            )


def texts_name_rows(column: pd.Series[Any]) -> bool:
    """Whether a column of text seems to name rows: another text in each of them."""
    different = len(column) >= _ENOUGH and column.notna().all() and column.is_unique
    return bool(different and not nearly_numeric(column))


def names_rows(name: str, values: Floats) -> bool:
    """Whether a column of numbers seems to name rows: whole numbers, all different, in order or called id."""
    if not np.isfinite(values).all() or (values != np.round(values)).any():
        return False
    return np.unique(values).size == values.size and (
        _is_in_order(values) or _CALLED_ID.search(name) is not None
    )


def _is_in_order(values: Floats) -> bool:
    steps = np.diff(values)
    return values.size >= _ENOUGH and bool((steps > 0.0).all() or (steps < 0.0).all())


def _not_numbers(column: pd.Series[Any]) -> Bools:
    wrong: Bools = ~np.isfinite(numbers_in(column)) & column.notna().to_numpy()
    return wrong


def nearly_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column would be numeric but for the text of a few rows, unlike columns of levels."""
    wrong = _not_numbers(column)
    return bool(wrong.any() and wrong.sum() <= 0.2 * column.notna().sum())


def _text_among_numbers(columns: pd.DataFrame) -> Iterator[Finding]:
    for name in columns.columns:
        column = columns[name]
        if hasattr(column.dtype, "categories") or not nearly_numeric(column):
            continue
        wrong = _not_numbers(column)
        held = column[wrong]
        distinct = held.astype(str).unique().tolist()
        values = f"row {held.index[0]} holds {str(held.iloc[0])[:40]!r}"
        rest = f", and {wrong.sum() - 1} more rows do not hold numbers either" if wrong.sum() > 1 else ""
        yield Finding(
            "text among numbers",
            (name,),
            tuple(held.index[:_MOST_NAMED]),
            f"column {name!r} would be numeric, but {values}{rest}",
            f"mend it, or say that {distinct[0][:40]!r} stands for a missing value"
            if len(distinct) == 1
            else "mend them",
            tuple(distinct) if len(distinct) == 1 else (),
        )


def _odd_levels(columns: pd.DataFrame) -> Iterator[Finding]:
    """Levels that may be one, and columns of so many levels that they are rather remarks."""
    for name in columns.columns:
        known = columns[name].dropna().astype(str)
        levels = sorted(known.unique().tolist())
        if nearly_numeric(columns[name]) and not hasattr(columns[name].dtype, "categories"):
            continue
        groups = alike(levels)
        if groups:
            shown = ", ".join(f"({listed(group)})" for group in groups[:_MOST_NAMED])
            yield Finding(
                "levels alike",
                (name,),
                (),
                f"levels of column {name!r} that differ only by case, by spaces around them or in how a "
                f"number is written are levels of their own: {shown}",
                "write each level in one way",
            )
        if _ENOUGH <= 0.5 * len(known) < len(levels):
            yield Finding(
                "many levels",
                (name,),
                (),
                f"column {name!r} holds {len(levels)} different texts in {_counted(len(known), 'row')}, so "
                "that most of a new table's will be unknown",
                "leave it out, or make a few levels of them",
            )


def _constants(
    variables: pd.DataFrame, numeric: dict[str, Floats], y: NDArray[Any] | None
) -> Iterator[Finding]:
    constant, nearly = [], []
    for name in variables.columns:
        codes, values = variables[name].factorize()
        counts = np.bincount(codes[codes >= 0], minlength=1)
        if len(values) == 1:
            constant.append((name, values[0]))
        elif name in numeric and len(values) > 1 and 0 < counts.sum() - counts.max() <= _RARE * counts.sum():
            rare = (codes != counts.argmax()) & (codes >= 0)
            if y is None or not _marks_a_class(rare, y):
                nearly.append((name, values[counts.argmax()], int(rare.sum())))
    if constant:
        one = len(constant) == 1
        said = [f"column {name!r} holds {_value(value)}" for name, value in constant]
        yield Finding(
            "constant",
            tuple(name for name, _ in constant),
            (),
            f"{listed(said, str, rest=' columns are constant')} in every row, which tells nothing",
            "leave it out" if one else "leave them out",
        )
    if nearly:
        one = len(nearly) == 1
        said = [
            f"column {name!r} holds {_value(value)} in all but {_counted(n, 'row')}"
            for name, value, n in nearly
        ]
        yield Finding(
            "nearly constant",
            tuple(name for name, _, _ in nearly),
            (),
            listed(said, str, rest=" columns do alike"),
            f"leave {'it' if one else 'them'} out, unless these rows matter",
        )


def _marks_a_class(rare: Bools, y: NDArray[Any]) -> bool:
    """Whether most rows with a rare value, and more than a few, are of one class."""
    counts = np.unique(y[rare].astype(str), return_counts=True)[1]
    return bool(counts.max() >= max(_FEW_OF_CLASS, 0.8 * rare.sum()))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:40])
    return f"{float(value):g}" if isinstance(value, int | float | np.number) else str(value)


def _sentinels(variables: pd.DataFrame, numeric: dict[str, Floats]) -> Iterator[Finding]:
    for name, x in numeric.items():
        finite = x[np.isfinite(x)]
        values, counts = np.unique(finite, return_counts=True)
        for end in {0, values.size - 1}:
            value, n = float(values[end]), int(counts[end])
            others = np.delete(values, end)
            if _is_sentinel(value, n, finite[finite != value], others):
                side, limit = ("below", others[0]) if end == 0 else ("above", others[-1])
                rows = variables.index[x == value]
                yield Finding(
                    "sentinel",
                    (name,),
                    tuple(rows[:_MOST_NAMED]),
                    f"column {name!r} holds {value:g} in {_counted(n, 'row')} and nothing else {side} "
                    f"{limit:g}",
                    f"say that {value:g} stands for a missing value",
                    (f"{value:g}",),
                )


def _is_sentinel(value: float, n: int, rest: Floats, others: Floats) -> bool:
    """Whether a value at the end of a column is written like a sentinel and lies far from all others."""
    if others.size < 3 or not _SENTINEL.fullmatch(f"{value:.17g}"):
        return False
    if n < 2 and abs(value) < 999:
        return False
    spread = float(np.subtract(*np.quantile(rest, [0.75, 0.25])))
    gap = float(np.abs(others - value).min())
    if value in (-1.0, -9.0):  # the only negative number, of a column that seems to have none
        return bool(others.size >= _ENOUGH and gap > max(0.25 * spread, abs(value)))
    return gap > max(spread, 0.25 * abs(value))


def _giveaways(
    variables: pd.DataFrame, numeric: dict[str, Floats], y: NDArray[Any], known: Bools, skipped: set[str]
) -> Iterator[Finding]:
    considered = [name for name in variables.columns if name not in skipped]
    rows = _distinct_rows(variables[considered], numeric, y, known)
    if rows.size > _ROWS_TRIED:
        rows = np.sort(np.random.default_rng(0).choice(rows, _ROWS_TRIED, replace=False))
    classes, codes, counts = np.unique(y[rows].astype(str), return_inverse=True, return_counts=True)
    if classes.size < 2 or rows.size < 2 * _ENOUGH:
        return
    baseline = counts.max() / rows.size
    for name in considered:
        x = _as_codes(variables[name], numeric)[rows]
        accuracy = _accuracy_of_one(x, codes, ordered=name in numeric)
        if 1.0 - accuracy <= _ERRORS_LEFT * (1.0 - baseline):
            names_groups = _may_name_groups(x, codes)
            yield Finding(
                "names groups" if names_groups else "gives the label away",
                (name,),
                (),
                f"column {name!r} alone gives {accuracy:.1%} of the rows their label, where the most "
                f"frequent class gives {baseline:.1%}"
                + (", and each of its values stands in several rows of one class" if names_groups else ""),
                "if it names patients or the like, name it as the group, otherwise leave it out"
                if names_groups
                else "leave it out, unless it will be known before the label is",
            )


def _as_codes(column: pd.Series[Any], numeric: dict[str, Floats]) -> Floats:
    """The numbers of a column, or numbers in place of its texts; NaN where there is none."""
    if column.name in numeric:
        return numeric[column.name]
    codes = column.factorize()[0].astype(np.float64)
    return np.where(codes < 0.0, np.nan, codes)


def _distinct_rows(
    variables: pd.DataFrame, numeric: dict[str, Floats], y: NDArray[Any], known: Bools
) -> Integers:
    """Positions of rows whose class is known, and of copies with the same class the first alone."""
    rows = np.flatnonzero(known)
    if not rows.size or not len(variables.columns):
        return rows
    X = np.column_stack([_as_codes(variables[name], numeric)[rows] for name in variables.columns])
    units = number_copies(X)
    if units is None:
        return rows
    labels = np.unique(y[rows].astype(str), return_inverse=True)[1]
    first = np.unique(np.column_stack([units, labels]), axis=0, return_index=True)[1]
    return rows[np.sort(first)]


def _may_name_groups(x: Floats, codes: Integers) -> bool:
    """Whether values may name what rows belong to: whole numbers or texts, each in several rows of one class.

    As many values as classes, or hardly more, are rather the classes in other words.
    """
    there = np.isfinite(x)
    if (x[there] != np.round(x[there])).any():
        return False
    pairs = np.unique(np.column_stack([x[there], codes[there]]), axis=0)
    values = np.unique(pairs[:, 0])
    of_class = np.bincount(pairs[:, 1].astype(np.int64), minlength=int(codes.max()) + 1)
    return bool(
        len(pairs) == values.size
        and there.sum() >= _ROWS_OF_PATIENT * values.size
        and of_class.min() >= _PATIENTS_OF_CLASS
    )


def _accuracy_of_one(x: Floats, codes: Integers, *, ordered: bool) -> float:
    """Share of rows whose class is that of most others with their value or, without any, of the nearest.

    Only numbers are `ordered`, so that a value has nearest ones. A missing value is a value, but has none.
    """
    values, which = np.unique(x, return_inverse=True)
    votes = np.zeros((values.size, codes.max() + 1))
    np.add.at(votes, (which, codes), 1.0)
    others = votes[which]
    rows = np.arange(codes.size)
    others[rows, codes] -= 1.0  # a row has no vote on itself
    own = others[rows, codes]
    others[rows, codes] = -1.0
    right = own > others.max(axis=1)
    alone = (votes.sum(axis=1)[which] == 1.0) & ~np.isnan(x)
    n_numbers = int(np.count_nonzero(~np.isnan(values)))  # a gap comes last
    if ordered and n_numbers > 1:
        gaps = np.append(np.diff(values[:n_numbers]), np.inf)
        before = np.append(np.inf, gaps[:-1])
        nearest = np.arange(n_numbers) + np.where(before <= gaps, -1, 1)
        right[alone] = votes.argmax(axis=1)[nearest[which[alone]]] == codes[alone]
    return float(right.mean())


# Rows


def _copies(numeric: dict[str, Floats], levels: pd.DataFrame, y: NDArray[Any] | None) -> Iterator[Finding]:
    if len(numeric) < 2:  # in one column, rows agree by chance
        return
    X = np.column_stack(list(numeric.values()))
    complete = np.isfinite(X).all(axis=1)
    X, index = X[complete], levels.index[complete]
    if len(X) < 2:
        return
    codes = np.array([levels[name].factorize()[0][complete] for name in levels.columns], dtype=np.int64)
    units = number_copies(np.column_stack([X, *codes.astype(np.float64)]))
    if units is not None:
        yield from _exact_copies(units, index, None if y is None else y[complete])
    pairs = _near_pairs(X)
    if codes.size and len(pairs):
        pairs = pairs[(codes[:, pairs[:, 0]] == codes[:, pairs[:, 1]]).all(axis=0)]
    if len(pairs):
        first, second = (index[i] for i in pairs[0])
        n = np.unique(pairs).size
        yield Finding(
            "near copies",
            (),
            (first, second),
            f"{n} of {len(X)} rows are nearly the same as another one, such as rows {first} and {second}",
            "if they are one measurement, keep one of them",
        )


def _exact_copies(units: Integers, index: Any, y: NDArray[Any] | None) -> Iterator[Finding]:
    order = np.argsort(units, kind="stable")
    again = np.flatnonzero(np.diff(units[order]) == 0)
    n = len(units) - np.unique(units).size
    first, second = index[order[again[0]]], index[order[again[0] + 1]]
    yield Finding(
        "copies",
        (),
        (first, second),
        f"{n} of {len(units)} rows {'is a copy' if n == 1 else 'are copies'} of another one, such as rows "
        f"{first} and {second}",
        "if they are one measurement, keep one of them",
    )
    if y is None:
        return
    labels = y[order].astype(str)
    torn = again[labels[again] != labels[again + 1]]
    if torn.size:
        first, second = index[order[torn[0]]], index[order[torn[0] + 1]]
        yield Finding(
            "copies of two classes",
            (),
            (first, second),
            f"{_counted(torn.size, 'pair')} of equal rows have different labels, such as rows {first} and "
            f"{second}",
            "look which label is right",
        )


def _near_pairs(X: Floats) -> Integers:
    """Pairs of rows that differ, but by far less than others do; empty if chance explains them."""
    import pandas as pd

    first = np.flatnonzero(~pd.DataFrame(X).duplicated().to_numpy())
    spread = _spread(X[first])
    if first.size < _ENOUGH or np.count_nonzero(spread) < 2:
        return np.empty((0, 2), dtype=np.int64)
    Z = X[first][:, spread > 0.0] / spread[spread > 0.0]
    near = _pairs_within(Z, _NEAR)
    if not len(near) or 2 * len(near) < len(_pairs_within(Z, _WIDER * _NEAR)):
        return np.empty((0, 2), dtype=np.int64)
    return first[near[np.lexsort((near[:, 1], near[:, 0]))]]


def _spread(X: Floats) -> Floats:
    """The standard deviation of each column, as its quartiles let expect it, which no outlier enlarges."""
    quartiles = np.quantile(X, [0.25, 0.75], axis=0)
    robust = (quartiles[1] - quartiles[0]) / 1.35
    spread: Floats = np.where(robust > 0.0, robust, X.std(axis=0))
    return spread


def _pairs_within(Z: Floats, radius: float) -> Integers:
    """Pairs of rows at a distance of at most `radius`, or many of them if there are very many.

    Rows are no nearer to each other than their projections are. So only those are compared that follow each
    other closely in the order of one projection, and of these only the ones that are near in two others.
    """
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(Z.shape[1], min(3, Z.shape[1]))))[0]
    shadow = Z @ axes
    order = np.argsort(shadow[:, 0])
    shadow = shadow[order]
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for k in range(1, min(len(Z), _MOST_STEPS)):
        at = np.flatnonzero(shadow[k:, 0] - shadow[:-k, 0] <= radius)
        if not at.size:
            break
        at = at[(np.abs(shadow[at + k] - shadow[at]) <= radius).all(axis=1)]
        found = np.sort(np.stack([order[at], order[at + k]], axis=1), axis=1)
        pairs.append(found[np.linalg.norm(Z[found[:, 0]] - Z[found[:, 1]], axis=1) <= radius])
    return np.concatenate(pairs)


def _repeated_ids(table: pd.DataFrame, ids: Sequence[str], group: str | None) -> Iterator[Finding]:
    for name in ids:
        n, distinct = int(table[name].notna().sum()), int(table[name].nunique())
        if distinct < n and name != group:
            row = table.index[table[name].duplicated().to_numpy() & table[name].notna().to_numpy()][0]
            yield Finding(
                "repeated ids",
                (name,),
                (row,),
                f"column {name!r} names {distinct} different things in {n} rows, one of them again in row "
                f"{row}",
                "rows of one belong together, so name it as the group",
            )


def _groups(groups: pd.Series[Any], name: str, y: NDArray[Any] | None) -> Iterator[Finding]:
    counts = groups.value_counts()
    if len(counts) == len(groups):
        yield Finding(
            "groups", (name,), (), f"column {name!r} names another group in every row", "name no group"
        )
        return
    yield Finding(
        "groups",
        (name,),
        (),
        f"column {name!r} names {len(counts)} groups of {counts.min()} to {counts.max()} rows, "
        f"{counts.median():g} in the middle",
        f"take it that there are {len(counts)} observations rather than {len(groups)}",
    )
    if y is None:
        return
    labels = y.astype(str)
    few = [label for label in np.unique(labels).tolist() if groups[labels == label].nunique() < 2]
    if few:
        yield Finding(
            "classes of one group",
            (name,),
            (),
            f"all rows of the class{'es' * (len(few) > 1)} {listed(few)} are of one group",
            "collect another group, or nothing can be said of new ones",
        )

"""Columns of tables as numbers: this is where it is decided what a column holds.

Measurements stay numbers, and NaN stands for a missing value. Categories, here called levels, become their
positions among those seen in `fit`. A column of dates becomes several variables; all others are one. Frames
of every library that narwhals supports are read by their types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.data.date_variables import WEEKDAYS, DateColumn, is_date, part_of_dates
from corral.sentences.numbers import begun, listed

# Up to here, integers that differ are different floats.
_LARGEST_EXACT = 2**53

_LARGEST_FLOAT = float(np.finfo(np.float64).max)

# Texts that are at most one in so many of a column's values are typing errors rather than levels.
_ONE_IN = 5

# Columns that a sentence names at most.
MOST_SHOWN = 3

# Types of cells that a column may hold, and types that no number has.
_TAKEN = (str, int, float, np.number, np.bool_)
_NO_NUMBERS = (str, bool, np.bool_)

Unknown = dict[str, Counter[str]]  # by column and value, how often categories occur that no training row has


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table."""

    name: str  # "x3" if it has none
    kind: str  # "number", "levels", "ordered" or, before it becomes variables, "dates"
    cells: NDArray[Any]  # (n_rows,) numbers, or objects of which some may be missing
    categories: list[Any] | None = None  # in order, if its type lists them; else they are those that it holds

    @cached_property
    def factorized(self) -> tuple[Integers, list[Any]]:
        """For each row the position of its value among the different values, or -1, and these values."""
        cells = self.cells.tolist()
        values: list[Any] = []
        positions: dict[Any, int] = {}
        for value in dict.fromkeys(cells):
            positions[value] = -1 if is_missing(value) else len(values)
            if not is_missing(value):
                values.append(value.item() if isinstance(value, np.generic) else value)
        return np.fromiter(map(positions.__getitem__, cells), np.int64, len(cells)), values

    @property
    def is_text(self) -> bool:
        """Whether it holds text alone, of which its type does not list the categories."""
        values = self.factorized[1] if self.kind == "levels" and self.categories is None else []
        return bool(values) and all(isinstance(value, str) for value in values)

    @property
    def counts(self) -> Integers:
        """How many rows hold each of the different values."""
        codes, values = self.factorized
        return np.bincount(codes[codes >= 0], minlength=len(values))

    def learnt_levels(self) -> list[Any]:
        """The levels of a column, in order."""
        values = self.factorized[1]
        if self.categories is not None:
            present = set(values)
            return [level for level in self.categories if self.kind == "ordered" or level in present]
        try:
            return sorted(values)
        except TypeError:  # text and numbers
            return sorted(values, key=lambda value: (isinstance(value, str), str(value)))

    def numbers(self) -> Floats:
        """Values of a column that held numbers in `fit`; any other is refused."""
        if self.cells.dtype.kind in "fiu":
            numbers = self.cells.astype(np.float64)
        else:
            numbers = np.empty(len(self.cells))
            for i, value in enumerate(self.cells.tolist()):
                try:
                    numbers[i] = np.nan if is_missing(value) else float(value)
                except OverflowError:
                    raise ValueError(
                        f"Column {self.name!r} holds a number in row {i} that is too large for a float."
                    ) from None
                except (TypeError, ValueError):
                    raise ValueError(
                        f"Column {self.name!r} held numbers in fit, but has {value!r} in row {i}."
                    ) from None
        refuse_infinite(self.name, numbers)
        return numbers

    def positions(self, categories: Sequence[Any]) -> tuple[Floats, NDArray[Any] | None]:
        """Positions (n_rows,) of values among categories, NaN where there is none, and the unknown values.

        The latter are objects (n_rows,), None for missing values and categories; None if there are no others.
        """
        codes, values = self.factorized
        position = {category: float(k) for k, category in enumerate(categories)}
        numbers = np.array([*(position.get(value, np.nan) for value in values), np.nan])
        if all(value in position for value in values):
            return numbers[codes], None
        unknown = as_objects([*(None if value in position else value for value in values), None])
        return numbers[codes], unknown[codes]


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of a table become numbers."""

    categories: Sequence[list[Any] | None]  # for each column its levels, or None for a column of numbers
    ordered: Bools  # (n_features,) whether the positions of levels count as measurements
    # positions of columns of numbers that had no value in `fit`, whatever type they had. Values of any type
    # that samples hold there are unknown, as categories are that no training row has.
    empty: frozenset[int] = frozenset()
    # columns of dates, in order; the variables of one follow each other. All other columns are one variable.
    dates: Sequence[DateColumn] = field(default_factory=list)

    def validate(self) -> None:
        """Refuse levels that are not different texts or numbers, or not those of as many columns."""
        positions = [column.position for column in self.dates]
        if positions != sorted(set(positions)) or positions[-1:] > [self.n_columns - 1]:
            raise ValueError("the columns of dates are not those of the table")
        d = len(self.categories)
        if self.ordered.shape != (d,) or any(
            j not in range(d) or self.categories[j] is not None for j in self.empty
        ):
            raise ValueError(f"the encoding is not one of {d} columns")
        for categories in (categories for categories in self.categories if categories is not None):
            plain = all(isinstance(level, str | int | float) for level in categories)
            if not plain or len(set(categories)) != len(categories):
                raise ValueError("levels are not different texts or numbers")

    @property
    def n_columns(self) -> int:
        """Number of columns of the table, of which those of dates may be several variables."""
        return len(self.categories) - sum(len(column.parts) - 1 for column in self.dates)

    def column_positions(self) -> Integers:
        """(n_features,) the position of the column in the table that each variable is made of."""
        sizes = np.ones(self.n_columns, dtype=np.int64)
        for column in self.dates:
            sizes[column.position] = len(column.parts)
        return np.repeat(np.arange(self.n_columns), sizes)

    def variable_names(self, columns: Sequence[str]) -> list[str]:
        """Names of the variables of columns that are called so."""
        names = [[name] for name in columns]
        for column in self.dates:
            names[column.position] = column.names(columns[column.position])
        return [name for each in names for name in each]

    def column_levels(self) -> list[list[Any] | None]:
        """For each column of the table its levels, or None for numbers and dates."""
        first = np.searchsorted(self.column_positions(), np.arange(self.n_columns))
        positions = {column.position for column in self.dates}
        return [None if j in positions else self.categories[k] for j, k in enumerate(first.tolist())]

    @property
    def counts(self) -> Integers | None:
        """(n_features,) numbers of levels, 0 for measurements; None if there are no levels."""
        each = [0 if categories is None else max(len(categories), 1) for categories in self.names_of_levels()]
        return np.array(each, dtype=np.int64) if any(each) else None

    @property
    def ignored(self) -> frozenset[int]:
        """Positions of columns without any value in `fit`, of numbers or of levels."""
        variables = self.empty | {j for j, categories in enumerate(self.categories) if categories == []}
        return frozenset(self.column_positions()[sorted(variables)].tolist())

    def names_of_levels(self) -> list[list[Any] | None]:
        """For each column its levels, or None for measurements and what counts as such."""
        pairs = zip(self.categories, self.ordered, strict=True)
        return [None if ordered else categories for categories, ordered in pairs]

    def decode(self, X: Floats) -> NDArray[Any]:
        """Numbers as values of the table again: the same if no column has levels, else objects."""
        return with_category_names(X, self.categories)

    @classmethod
    def of_numbers(cls, d: int) -> Encoding:
        """That of a table without levels."""
        return cls([None] * d, np.zeros(d, dtype=np.bool_))

    @classmethod
    def learn(cls, columns: Sequence[Column], named: Collection[int] = ()) -> Encoding:
        """Learn which columns hold dates, unless they are `named`, and the levels of those that have some."""
        dates = [
            found
            for j, column in enumerate(columns)
            if j not in named and (column.kind == "dates" or column.is_text)
            if (found := DateColumn.learn(j, column.cells.tolist())) is not None
        ]
        variables, _ = with_dates(columns, dates)
        categories = [None if column.kind == "number" else column.learnt_levels() for column in variables]
        ordered = np.array([column.kind == "ordered" for column in variables], dtype=np.bool_)
        return cls(categories, ordered, dates=dates)

    def extended(self, columns: Sequence[Column]) -> Encoding:
        """Add the levels of further rows, in the order that all rows together would give them."""
        joint, ordered = list(self.categories), self.ordered.copy()
        variables, _ = with_dates(columns, self.dates)
        for j, (column, known) in enumerate(zip(variables, self.categories, strict=True)):
            if known is not None:
                joint[j] = _joint_levels(known, column, ordered[j])
            elif j in self.empty and column.kind != "number":  # as if all rows came at once
                joint[j], ordered[j] = column.learnt_levels(), column.kind == "ordered"
        return Encoding(joint, ordered, dates=self.dates)

    def recoded(self, X: Floats, other: Encoding) -> Floats:
        """Turn numbers by this encoding into those by another one, which has all its levels."""
        X = X.copy()
        for j, (before, after) in enumerate(zip(self.categories, other.categories, strict=True)):
            if before is None or after is None or before == after:
                continue
            position = {level: float(k) for k, level in enumerate(after)}
            is_known = ~np.isnan(X[:, j])
            X[is_known, j] = [position[before[int(k)]] for k in X[is_known, j]]
        return X

    def encode(self, columns: Sequence[Column]) -> tuple[Floats, dict[int, NDArray[Any]], Unknown]:
        """Numbers (n_rows, n_features), categories that no training row has, and values that are no dates.

        The unknown categories are objects (n_rows,) by position of the variable, None in all other rows.
        """
        variables, undated = with_dates(columns, self.dates)
        unknown: dict[int, NDArray[Any]] = {}
        X = np.empty((len(columns[0].cells), len(variables)))
        for j, (column, categories) in enumerate(zip(variables, self.categories, strict=True)):
            if categories is None and j not in self.empty:
                X[:, j] = column.numbers()
                continue
            X[:, j], values = column.positions(categories or ())
            if values is not None:
                unknown[j] = values
        return X, unknown, undated


def with_dates(columns: Sequence[Column], dates: Sequence[DateColumn]) -> tuple[list[Column], Unknown]:
    """Columns with the variables of `dates` in place of their columns, and values there that are no dates.

    Other columns of dates become text.
    """
    variables = [[_dates_as_text(column)] for column in columns]
    unknown: Unknown = {}
    for each in dates:
        column = columns[each.position]
        times, strange = each.times(column.name, column.cells.tolist())
        values = [part_of_dates(part, times) for part in each.parts]
        variables[each.position] = [
            Column(name, "number", cells) if part != "weekday" else Column(name, "levels", cells, WEEKDAYS)
            for name, part, cells in zip(each.names(column.name), each.parts, values, strict=True)
        ]
        if strange:
            unknown[column.name] = strange
    return [variable for each in variables for variable in each], unknown


def _dates_as_text(column: Column) -> Column:
    """A column of dates as text, such as the name of a category; any other as it is."""
    if column.kind != "dates":
        return column
    texts = [None if is_missing(value) else str(value) for value in column.cells.tolist()]
    return replace(column, kind="levels", cells=as_objects(texts))


def with_category_names(X: Floats, categories: Sequence[list[Any] | None]) -> NDArray[Any]:
    """Numbers with the names of levels in place of their positions; the same array if there are none."""
    if all(of_column is None for of_column in categories):
        return X
    named: NDArray[Any] = X.astype(object)
    for j, of_column in enumerate(categories):
        if of_column is not None:
            named[:, j] = [None if np.isnan(k) else of_column[int(k)] for k in X[:, j]]
    return named


def encoded(X: Any) -> Floats:
    """Numbers (n_rows, n_features) of a table whose levels are those that it holds."""
    columns = columns_of(X)
    return Encoding.learn(columns).encode(columns)[0]


def _joint_levels(known: list[Any], column: Column, is_ordered: bool) -> list[Any]:
    """The levels of some rows and of further ones, in order; what is ordered takes no new ones."""
    earlier, present = set(known), column.factorized[1]
    new = [value for value in present if value not in earlier]
    if not new:
        return known
    if is_ordered:
        raise ValueError(
            f"Column {column.name!r} has the level {new[0]!r}, for which the order of levels in the rows so "
            "far has no place: fit all rows together."
        )
    declared = column.categories if earlier <= set(column.categories or ()) else None
    return Column(column.name, "levels", as_objects([*known, *present]), declared).learnt_levels()


# What a column holds


def is_frame(X: Any) -> bool:
    """Whether a table is a frame in memory: of pandas, polars, pyarrow or another library."""
    return bool(nw.dependencies.is_into_dataframe(X))


def series_of(X: Any) -> list[nw.Series[Any]]:
    """The columns of a frame, whose names all differ."""
    return list(nw.from_native(X, eager_only=True).iter_columns())


def names_of(X: Any, d: int) -> list[str]:
    """Names of the columns of a frame, or x0, x1, ..."""
    names = getattr(X, "column_names", None)  # those of pyarrow, whose `columns` are values
    if names is None:
        names = getattr(X, "columns", [f"x{j}" for j in range(d)])
    return [str(name) for name in names]


def columns_of(X: Any, ignored: Collection[int] = ()) -> list[Column]:
    """The columns of a frame, or of an array of any type.

    Columns at positions that are `ignored` may hold anything, as may columns without any value.
    """
    if is_frame(X):
        return [_of_series(series, j in ignored) for j, series in enumerate(series_of(X))]
    return [
        _of_anything(f"x{j}", cells.tolist()) if j in ignored else _of_cells(f"x{j}", cells)
        for j, cells in enumerate(X.T)
    ]


def _of_series(series: nw.Series[Any], is_ignored: bool) -> Column:
    name, kind = str(series.name), kind_of(series)
    if is_ignored or (kind in ("dates", "other") and series.is_null().all()):
        return _of_anything(name, series.to_list())
    match kind:
        case "objects":
            return _of_cells(name, as_objects(series.to_list()))
        case "number":
            return Column(name, kind, series.to_numpy())
        case "dates":
            return Column(name, kind, as_objects(series.to_list()))
        case "levels" | "ordered":
            return Column(name, kind, as_objects(series.to_list()), _listed_levels(series))
    raise ValueError(f"Column {name!r} holds values of type {_dtype(series)}; give numbers or text instead.")


def _of_anything(name: str, values: list[Any]) -> Column:
    """A column whose values, as text, are only counted."""
    return Column(name, "number", as_objects([None if is_missing(value) else str(value) for value in values]))


def _of_cells(name: str, cells: NDArray[Any]) -> Column:
    """A column of an array, or of objects: of numbers if all of them are, else of levels."""
    if cells.dtype.kind in "fiu":
        return Column(name, "number", cells)
    values = cells.tolist()
    types = set(map(type, values))
    if not all(issubclass(each, _TAKEN) for each in types):
        present = [i for i, value in enumerate(values) if not is_missing(value)]
        strange = [i for i in present if not isinstance(values[i], _TAKEN)]
        if strange and all(isinstance(values[i], str) or is_date(values[i]) for i in present):
            return Column(name, "dates", cells)
        if strange and all(is_date(values[i]) for i in strange):
            other = next(i for i in present if not is_date(values[i]))
            raise TypeError(
                f"Column {name!r} mixes dates and other values, such as {str(values[other])[:40]!r} in row "
                f"{other}: convert the column to dates, split it, or leave it out."
            )
        if strange:
            value = values[strange[0]]
            raise TypeError(
                f"Column {name!r} holds a {type(value).__name__} in row {strange[0]}, {str(value)[:40]!r}; "
                "an argument must be a string or a number, or a date: split the column, or leave it out."
            )
    is_number = not any(issubclass(each, _NO_NUMBERS) for each in types)
    return Column(name, "number" if is_number else "levels", cells)


def kind_of(series: nw.Series[Any]) -> str:
    """What the type of a column says: "objects" (look at them), "other", or the kind of a `Column`."""
    native, dtype = _dtype(series), series.dtype
    if native == np.dtype(object) or isinstance(dtype, nw.Object):  # narwhals looks at the first 100 only
        return "objects"
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, nw.Datetime | nw.Date):
        return "dates"
    if getattr(native, "ordered", False) is True:
        return "ordered"
    return "levels" if isinstance(dtype, nw.Boolean | nw.String | nw.Categorical | nw.Enum) else "other"


def _dtype(series: nw.Series[Any]) -> Any:
    """The type that the library of a column gives it."""
    native = series.to_native()
    return native.type if series.implementation.is_pyarrow() else native.dtype


def _listed_levels(series: nw.Series[Any]) -> list[Any] | None:
    """The levels that the type of a column lists in order; None if it lists none, as in polars."""
    is_listed = isinstance(series.dtype, nw.Enum) or (
        isinstance(series.dtype, nw.Categorical) and not series.implementation.is_polars()
    )
    return (series.cat.get_categories().to_list() or None) if is_listed else None


def as_objects(values: list[Any]) -> NDArray[np.object_]:
    """An array of objects, which may be of any type."""
    return np.fromiter(values, dtype=object, count=len(values))


def are_missing(values: NDArray[Any]) -> Bools:
    """Which values of a column are missing."""
    if values.dtype.kind in "fmM":
        missing: Bools = np.isnan(values)  # which is true of times that are none, too
        return missing
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.array([is_missing(value) for value in values.tolist()], dtype=np.bool_)


def is_missing(value: Any) -> bool:
    """None, NaN, a time that is none, or pandas' NA, which is not even equal to itself."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    has_nan = isinstance(value, float | np.floating | np.datetime64 | np.timedelta64)
    return has_nan and bool(np.isnan(value))


# What a user says of columns


def marked_columns(columns: Sequence[Column], categorical: Any) -> list[Column]:
    """Columns of which the user has said which hold levels."""
    if categorical is None:
        return [
            replace(each, kind="number", categories=None) if each.kind != "dates" else each
            for each in columns
        ]
    named = positions_of(categorical, [column.name for column in columns])
    marked = list(columns)
    for j, column in enumerate(columns):
        if j not in named:
            _refuse_few_texts(column)
        elif column.kind == "number":
            marked[j] = replace(column, kind="levels")
        elif column.kind == "dates":
            marked[j] = _dates_as_text(column)
    return marked


def positions_of(categorical: Any, names: list[str]) -> list[int]:
    """Positions of columns that are named, numbered or marked by a mask; of none by default."""
    must = "categorical_features must be"
    if isinstance(categorical, str | None):
        if categorical not in ("from_dtype", None):
            raise ValueError(f"{must} 'from_dtype', None or columns, got {categorical!r}.")
        return []
    given = np.asarray(categorical)
    if given.dtype.kind == "b":
        if given.shape != (len(names),):
            raise ValueError(f"{must} a mask of {len(names)} columns, got {categorical!r}.")
        return np.flatnonzero(given).tolist()
    positions = []
    for item in given.ravel().tolist():
        if isinstance(item, str) and item in names:
            positions.append(names.index(item))
        elif isinstance(item, int) and 0 <= item < len(names):
            positions.append(item)
        else:
            raise ValueError(f"categorical_features names {item!r}, which is not one of the columns.")
    return positions


# What is refused


def are_slips(n_texts: int, n_values: int) -> bool:
    """Whether texts among numbers are typing errors, which must not make levels of them all."""
    return 0 < _ONE_IN * n_texts <= n_values


def _refuse_few_texts(column: Column) -> None:
    """Refuse a column of numbers and a few texts, which would make levels of them all."""
    if column.kind != "levels" or column.categories is not None:
        return
    values, counts = column.factorized[1], column.counts
    are_text = np.array([isinstance(value, str) for value in values], dtype=np.bool_)
    has_booleans = any(isinstance(value, bool) for value in values)
    if not has_booleans and are_slips(int(counts[are_text].sum()), int(counts.sum())):
        text = values[int(are_text.argmax())]
        row = int((column.factorized[0] == are_text.argmax()).argmax())
        raise ValueError(
            f"Column {column.name!r} holds numbers, but {text!r} in row {row}: mend it, or name the column "
            "in categorical_features, which makes levels of all its values."
        )


def refuse_infinite(name: str, numbers: Floats) -> None:
    """Refuse a column of some name that holds an infinite value."""
    sentence = infinite_value(name, numbers, range(len(numbers)))
    if sentence:
        raise ValueError(f"{begun(sentence)}: put a number in its place, or NaN for a missing value.")


def infinite_value(name: str, numbers: Floats, rows: Sequence[Any]) -> str:
    """Say which of some rows is the first with an infinite value in a column; nothing if none has one."""
    is_infinite = np.isinf(numbers)
    if not is_infinite.any():
        return ""
    return f"column {name!r} holds an infinite value in row {rows[int(is_infinite.argmax())]}"


def lost_digits(X: Any, categorical: Collection[int] = ()) -> str:
    """Say which column holds two integers that differ but are the same float; nothing if none does.

    Columns `categorical` may hold such integers as objects, since levels are never made floats.
    """
    columns = _integers_by_column(X)
    for j, (name, integers) in enumerate(zip(names_of(X, len(columns)), columns, strict=True)):
        if integers.dtype.kind == "O" and j in categorical:
            continue
        if integers.size and max(int(integers.max()), -int(integers.min())) > _LARGEST_EXACT:
            values = np.unique(integers)
            same = np.diff(values.astype(np.float64)) == 0.0
            if same.any():
                first, second = values[same.argmax() :][:2].tolist()
                return (
                    f"column {name!r} holds the integers {first} and {second}, which are one number as floats"
                )
    return ""


def _integers_by_column(X: Any) -> list[NDArray[Any]]:
    """The integers of each column of a table; nothing of what has no columns, or no integers."""
    if is_frame(X):
        return [_integers_of(series) for series in series_of(X)]
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)  # floats would have lost the digits
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return []
    if X.dtype.kind == "O":
        return [_integers_among(column.tolist()) for column in X.T]
    return [np.ma.compressed(column) for column in X.T] if X.dtype.kind in "iu" else []


def _integers_of(series: nw.Series[Any]) -> NDArray[Any]:
    """The integers of a column of a frame, as objects if they are such."""
    if kind_of(series) == "objects":
        return _integers_among(series.to_list())
    return series.drop_nulls().to_numpy() if series.dtype.is_integer() else np.empty(0, dtype=np.int64)


def _integers_among(values: list[Any]) -> NDArray[np.object_]:
    """The integers among objects that floats reach; none if a text or boolean makes levels of all of them."""
    if any(issubclass(each, _NO_NUMBERS) for each in set(map(type, values))):
        return np.empty(0, dtype=object)
    integers = [int(value) for value in values if isinstance(value, int | np.integer)]
    return as_objects([value for value in integers if abs(value) <= _LARGEST_FLOAT])


def unknown_sentence(unknown: Unknown) -> str:
    """Say how many values are levels that training did not have."""
    n = sum(counts.total() for counts in unknown.values())
    of_columns = [
        f"{counts.total()} of {name!r} (such as {next(iter(counts))[:40]!r})"
        for name, counts in unknown.items()
    ]
    shown = listed(of_columns, str, MOST_SHOWN, " of the columns")
    return (
        f"{n} value{'s are categories' if n > 1 else ' is a category'} that no training row has, and "
        f"count{'s' * (n == 1)} as missing: {shown}."
    )

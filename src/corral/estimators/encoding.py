"""What the columns of a table hold, and how they become variables, which are numbers.

Measurements stay numbers, with NaN for a missing value. A category becomes its position in the list of the
categories of the training rows. A column of dates becomes one or more variables, any other column one
variable. In frames of all libraries that narwhals supports, the types of the columns decide what they hold.
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
from corral.sentences.numbers import begun

# Different integers up to this size are different floats.
_LARGEST_EXACT = 2**53

_LARGEST_FLOAT = float(np.finfo(np.float64).max)

# If at most one in five values of a column is text, the texts are typing errors rather than categories.
_ONE_IN = 5

# Largest number of columns that a message lists.
MOST_SHOWN = 3

# Types of values in columns of numbers or categories, and types whose values are never numbers.
_TAKEN = (str, int, float, np.number, np.bool_)
_NO_NUMBERS = (str, bool, np.bool_)

# For each column with values that no training row has, or that are no dates: how often each value occurs.
Unknown = dict[str, Counter[str]]


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column of a table."""

    name: str  # x and the position, as in "x3", if the column has no name
    kind: str  # "number", "categorical", "ordered" (categories) or "dates"
    cells: NDArray[Any]  # (n_rows,) numbers or objects; values may be missing
    categories: list[Any] | None = None  # in order, if the type of the column has a list of categories

    @cached_property
    def factorized(self) -> tuple[Integers, list[Any]]:
        """Positions (n_rows,) of the values in the list of distinct values, -1 if missing; and this list."""
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
        """Whether all values are text, and the type of the column has no list of categories."""
        values = self.factorized[1] if self.kind == "categorical" and self.categories is None else []
        return bool(values) and all(isinstance(value, str) for value in values)

    @property
    def counts(self) -> Integers:
        """Number of rows (n_values,) of each distinct value."""
        codes, values = self.factorized
        return np.bincount(codes[codes >= 0], minlength=len(values))

    def learnt_categories(self) -> list[Any]:
        """List the categories of the column, in order.

        Categories of the type without a value are left out, unless the categories are ordered.
        """
        values = self.factorized[1]
        if self.categories is not None:
            present = set(values)
            return [each for each in self.categories if self.kind == "ordered" or each in present]
        try:
            return sorted(values)
        except TypeError:  # text and numbers
            return sorted(values, key=lambda value: (isinstance(value, str), str(value)))

    def numbers(self) -> Floats:
        """Convert a column that held numbers in `fit`; raise ValueError for a value that is not a number.

        The numbers (n_rows,) are NaN for missing values.
        """
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
        """Find the positions (n_rows,) of the values in a list of categories.

        The position is NaN if a value is missing or unknown (not in the list). The second result is an array
        of the unknown values (n_rows,), None in all other rows; it is None if no value is unknown.
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
    """How the columns of a table become variables, which are numbers."""

    categories: Sequence[list[Any] | None]  # (n_features,) categories of each variable, or None for numbers
    ordered: Bools  # (n_features,) whether the categories are ordered, so that positions are measurements
    # positions of numeric variables without any value in `fit`. A value in a new row is an unknown category.
    empty: frozenset[int] = frozenset()
    # columns of dates, by position. The variables of a column are adjacent.
    dates: Sequence[DateColumn] = field(default_factory=list)

    def validate(self) -> None:
        """Raise ValueError if fields disagree, or if categories are repeated or neither text nor numbers."""
        positions = [column.position for column in self.dates]
        if positions != sorted(set(positions)) or positions[-1:] > [self.n_columns - 1]:
            raise ValueError("the positions of columns of dates are not positions of columns, in order")
        d = len(self.categories)
        if self.ordered.shape != (d,) or any(
            j not in range(d) or self.categories[j] is not None for j in self.empty
        ):
            raise ValueError(f"the fields of the encoding disagree: there are {d} variables")
        for categories in (categories for categories in self.categories if categories is not None):
            plain = all(isinstance(each, str | int | float) for each in categories)
            if not plain or len(set(categories)) != len(categories):
                raise ValueError("categories must be distinct texts or numbers")

    @property
    def n_columns(self) -> int:
        """Number of columns of the table; a column of dates may be several variables."""
        return len(self.categories) - sum(len(column.parts) - 1 for column in self.dates)

    def column_positions(self) -> Integers:
        """For each variable (n_features,), the position of its column in the table."""
        sizes = np.ones(self.n_columns, dtype=np.int64)
        for column in self.dates:
            sizes[column.position] = len(column.parts)
        return np.repeat(np.arange(self.n_columns), sizes)

    def variable_names(self, columns: Sequence[str]) -> list[str]:
        """List the names (n_features,) of the variables, from the names (n_columns,) of the columns."""
        names = [[name] for name in columns]
        for column in self.dates:
            names[column.position] = column.names(columns[column.position])
        return [name for each in names for name in each]

    def column_categories(self) -> list[list[Any] | None]:
        """List the categories of each column (n_columns,); None for columns of numbers or dates."""
        first = np.searchsorted(self.column_positions(), np.arange(self.n_columns))
        positions = {column.position for column in self.dates}
        return [None if j in positions else self.categories[k] for j, k in enumerate(first.tolist())]

    @property
    def counts(self) -> Integers | None:
        """Number of categories of each variable (n_features,), 0 for measurements; None if all are 0.

        Ordered categories are measurements. A variable with an empty list of categories counts as 1.
        """
        each = [
            0 if categories is None else max(len(categories), 1) for categories in self.unordered_categories()
        ]
        return np.array(each, dtype=np.int64) if any(each) else None

    @property
    def ignored(self) -> frozenset[int]:
        """Positions of the columns that had no value in `fit`."""
        variables = self.empty | {j for j, categories in enumerate(self.categories) if categories == []}
        return frozenset(self.column_positions()[sorted(variables)].tolist())

    def unordered_categories(self) -> list[list[Any] | None]:
        """List the categories of each variable (n_features,); None if it is numeric or ordered."""
        pairs = zip(self.categories, self.ordered, strict=True)
        return [None if ordered else categories for categories, ordered in pairs]

    def decode(self, X: Floats) -> NDArray[Any]:
        """Replace positions of categories in X (n_rows, n_features) by the categories."""
        return with_category_names(X, self.categories)

    @classmethod
    def all_numbers(cls, d: int) -> Encoding:
        """Make the encoding of a table with d columns of numbers."""
        return cls([None] * d, np.zeros(d, dtype=np.bool_))

    @classmethod
    def learn(cls, columns: Sequence[TableColumn], named: Collection[int] = ()) -> Encoding:
        """Learn which columns hold dates, and the categories of other columns.

        Columns at `named` positions are in `categorical_features`; they are not read as dates.
        """
        dates = [
            date_column
            for j, column in enumerate(columns)
            if j not in named and (column.kind == "dates" or column.is_text)
            if (date_column := DateColumn.learn(j, column.cells.tolist())) is not None
        ]
        variables, _ = with_dates(columns, dates)
        categories = [None if column.kind == "number" else column.learnt_categories() for column in variables]
        ordered = np.array([column.kind == "ordered" for column in variables], dtype=np.bool_)
        return cls(categories, ordered, dates=dates)

    def extended(self, columns: Sequence[TableColumn]) -> Encoding:
        """Add the categories of further training rows, in the same order as in a fit to all rows."""
        joint, ordered = list(self.categories), self.ordered.copy()
        variables, _ = with_dates(columns, self.dates)
        for j, (column, earlier) in enumerate(zip(variables, self.categories, strict=True)):
            if earlier is not None:
                joint[j] = _joint_categories(earlier, column, ordered[j])
            elif j in self.empty and column.kind != "number":  # as in a fit to all rows
                joint[j], ordered[j] = column.learnt_categories(), column.kind == "ordered"
        return Encoding(joint, ordered, dates=self.dates)

    def recoded(self, X: Floats, other: Encoding) -> Floats:
        """Convert numbers (n_rows, n_features) to the numbers of another encoding with more categories."""
        X = X.copy()
        for j, (before, after) in enumerate(zip(self.categories, other.categories, strict=True)):
            if before is None or after is None or before == after:
                continue
            position = {category: float(k) for k, category in enumerate(after)}
            has_value = ~np.isnan(X[:, j])
            X[has_value, j] = [position[before[int(k)]] for k in X[has_value, j]]
        return X

    def encode(self, columns: Sequence[TableColumn]) -> tuple[Floats, dict[int, NDArray[Any]], Unknown]:
        """Convert columns to numbers.

        Returns
        -------
        X : (n_rows, n_features) numbers, NaN for missing values and unknown categories.
        unknown : for the position of each variable with unknown categories, the unknown categories (n_rows,),
            None in all other rows.
        undated : for each column of dates with values that are no dates, how often each value occurs.
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


def with_dates(
    columns: Sequence[TableColumn], dates: Sequence[DateColumn]
) -> tuple[list[TableColumn], Unknown]:
    """Replace the columns in `dates` by their variables, and count their values that are no dates.

    Columns of dates that are not in `dates` become text.
    """
    variables = [[_dates_as_text(column)] for column in columns]
    unknown: Unknown = {}
    for each in dates:
        column = columns[each.position]
        times, strange = each.times(column.name, column.cells.tolist())
        values = [part_of_dates(part, times) for part in each.parts]
        variables[each.position] = [
            TableColumn(name, "number", cells)
            if part != "weekday"
            else TableColumn(name, "categorical", cells, WEEKDAYS)
            for name, part, cells in zip(each.names(column.name), each.parts, values, strict=True)
        ]
        if strange:
            unknown[column.name] = strange
    return [variable for each in variables for variable in each], unknown


def _dates_as_text(column: TableColumn) -> TableColumn:
    """Convert a column of dates to categories; return any other column unchanged."""
    if column.kind != "dates":
        return column
    texts = [None if is_missing(value) else str(value) for value in column.cells.tolist()]
    return replace(column, kind="categorical", cells=as_objects(texts))


def with_category_names(X: Floats, categories: Sequence[list[Any] | None]) -> NDArray[Any]:
    """Replace positions (n_rows, n_features) of categories by the categories; return X if there are none."""
    if all(names is None for names in categories):
        return X
    named: NDArray[Any] = X.astype(object)
    for j, names in enumerate(categories):
        if names is not None:
            named[:, j] = [None if np.isnan(k) else names[int(k)] for k in X[:, j]]
    return named


def encoded(X: Any) -> Floats:
    """Convert a table to numbers (n_rows, n_features) by the encoding that is learnt from it."""
    columns = columns_of(X)
    return Encoding.learn(columns).encode(columns)[0]


def _joint_categories(earlier: list[Any], column: TableColumn, is_ordered: bool) -> list[Any]:
    """Add the categories of further rows, in order; raise ValueError for a new ordered category."""
    present = column.factorized[1]
    new = [value for value in present if value not in set(earlier)]
    if not new:
        return earlier
    if is_ordered:
        raise ValueError(
            f"Column {column.name!r} has the new category {new[0]!r}, which has no place in the order of the "
            "earlier categories: fit all rows together."
        )
    declared = column.categories if set(earlier) <= set(column.categories or ()) else None
    cells = as_objects([*earlier, *present])
    return TableColumn(column.name, "categorical", cells, declared).learnt_categories()


# What a column holds


def is_frame(X: Any) -> bool:
    """Test whether a table is a frame in memory: of pandas, polars, pyarrow or another library."""
    return bool(nw.dependencies.is_into_dataframe(X))


def series_of(X: Any) -> list[nw.Series[Any]]:
    """List the columns of a frame with distinct column names."""
    return list(nw.from_native(X, eager_only=True).iter_columns())


def names_of(X: Any, d: int) -> list[str]:
    """List the names of the columns of a frame; for any other table x0, x1, ... for d columns."""
    names = getattr(X, "column_names", None)  # in pyarrow, where `columns` has the values
    if names is None:
        names = getattr(X, "columns", [f"x{j}" for j in range(d)])
    return [str(name) for name in names]


def columns_of(X: Any, ignored: Collection[int] = ()) -> list[TableColumn]:
    """List the columns of a frame, or of an array of any type.

    The type of columns at `ignored` positions does not matter: their values become text.
    """
    if is_frame(X):
        return [_series_column(series, j in ignored) for j, series in enumerate(series_of(X))]
    return [
        _uninterpreted_column(f"x{j}", cells.tolist()) if j in ignored else _cells_column(f"x{j}", cells)
        for j, cells in enumerate(X.T)
    ]


def _series_column(series: nw.Series[Any], is_ignored: bool) -> TableColumn:
    name, kind = str(series.name), kind_of(series)
    if is_ignored or (kind in ("dates", "other") and series.is_null().all()):
        return _uninterpreted_column(name, series.to_list())
    match kind:
        case "objects":
            return _cells_column(name, as_objects(series.to_list()))
        case "number":
            return TableColumn(name, kind, series.to_numpy())
        case "dates":
            return TableColumn(name, kind, as_objects(series.to_list()))
        case "categorical" | "ordered":
            return TableColumn(name, kind, as_objects(series.to_list()), _declared_categories(series))
    raise ValueError(f"Column {name!r} holds values of type {_dtype(series)}; give numbers or text instead.")


def _uninterpreted_column(name: str, values: list[Any]) -> TableColumn:
    """Make a column whose values, converted to text, become unknown categories."""
    return TableColumn(
        name, "number", as_objects([None if is_missing(value) else str(value) for value in values])
    )


def _cells_column(name: str, cells: NDArray[Any]) -> TableColumn:
    """Make a column of values of any type: numbers if all values are numbers, else dates or categories."""
    if cells.dtype.kind in "fiu":
        return TableColumn(name, "number", cells)
    values = cells.tolist()
    types = set(map(type, values))
    if not all(issubclass(each, _TAKEN) for each in types):
        present = [i for i, value in enumerate(values) if not is_missing(value)]
        strange = [i for i in present if not isinstance(values[i], _TAKEN)]
        if strange and all(isinstance(values[i], str) or is_date(values[i]) for i in present):
            return TableColumn(name, "dates", cells)
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
    return TableColumn(name, "number" if is_number else "categorical", cells)


def kind_of(series: nw.Series[Any]) -> str:
    """Return the kind of a `TableColumn` from the type of a series.

    It is "objects" if the values must be inspected, and "other" if columns of this type are not supported.
    """
    native, dtype = _dtype(series), series.dtype
    # narwhals infers the type of objects from the first 100 values only.
    if native == np.dtype(object) or isinstance(dtype, nw.Object):
        return "objects"
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, nw.Datetime | nw.Date):
        return "dates"
    if getattr(native, "ordered", False) is True:
        return "ordered"
    return "categorical" if isinstance(dtype, nw.Boolean | nw.String | nw.Categorical | nw.Enum) else "other"


def _dtype(series: nw.Series[Any]) -> Any:
    """Return the type of a column in its own library."""
    native = series.to_native()
    return native.type if series.implementation.is_pyarrow() else native.dtype


def _declared_categories(series: nw.Series[Any]) -> list[Any] | None:
    """List the categories of the type of a column, in order; None without a list, as in polars."""
    is_listed = isinstance(series.dtype, nw.Enum) or (
        isinstance(series.dtype, nw.Categorical) and not series.implementation.is_polars()
    )
    return (series.cat.get_categories().to_list() or None) if is_listed else None


def as_objects(values: list[Any]) -> NDArray[np.object_]:
    """Make a one-dimensional array of objects, even if the values are sequences."""
    return np.fromiter(values, dtype=object, count=len(values))


def are_missing(values: NDArray[Any]) -> Bools:
    """Test which values of an array are missing."""
    if values.dtype.kind in "fmM":
        missing: Bools = np.isnan(values)  # true for NaT as well
        return missing
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.array([is_missing(value) for value in values.tolist()], dtype=np.bool_)


def is_missing(value: Any) -> bool:
    """Test whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    has_nan = isinstance(value, float | np.floating | np.datetime64 | np.timedelta64)
    return has_nan and bool(np.isnan(value))


# The parameter `categorical_features`


def marked_columns(columns: Sequence[TableColumn], categorical: Any) -> list[TableColumn]:
    """Apply the parameter `categorical_features`: make the listed columns categorical.

    Raise ValueError if another column holds numbers and few texts. If `categorical` is None, all columns but
    dates become columns of numbers.
    """
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
            marked[j] = replace(column, kind="categorical")
        elif column.kind == "dates":
            marked[j] = _dates_as_text(column)
    return marked


def positions_of(categorical: Any, names: list[str]) -> list[int]:
    """List the positions of the columns that `categorical_features` lists by name, position or mask."""
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
            raise ValueError(f"categorical_features lists {item!r}, which is not one of the columns.")
    return positions


# What is refused


def are_slips(n_texts: int, n_values: int) -> bool:
    """Test whether texts among numbers are typing errors, since they are at most one in five values."""
    return 0 < _ONE_IN * n_texts <= n_values


def _refuse_few_texts(column: TableColumn) -> None:
    """Raise ValueError for a column of numbers and few texts, since its numbers would become categories."""
    if column.kind != "categorical" or column.categories is not None:
        return
    values, counts = column.factorized[1], column.counts
    are_text = np.array([isinstance(value, str) for value in values], dtype=np.bool_)
    has_booleans = any(isinstance(value, bool) for value in values)
    if not has_booleans and are_slips(int(counts[are_text].sum()), int(counts.sum())):
        text = values[int(are_text.argmax())]
        row = int((column.factorized[0] == are_text.argmax()).argmax())
        raise ValueError(
            f"Column {column.name!r} holds numbers, but {text!r} in row {row}: correct the value, or list "
            "the column in categorical_features if all its values are categories."
        )


def refuse_infinite(name: str, numbers: Floats) -> None:
    """Raise ValueError for a column with an infinite value."""
    sentence = infinite_value(name, numbers, range(len(numbers)))
    if sentence:
        raise ValueError(f"{begun(sentence)}: replace it by a number, or by NaN for a missing value.")


def infinite_value(name: str, numbers: Floats, rows: Sequence[Any]) -> str:
    """Write which row has the first infinite value of a column; empty if all values are finite.

    `rows` (n_rows,) are the names of the rows.
    """
    is_infinite = np.isinf(numbers)
    if not is_infinite.any():
        return ""
    return f"column {name!r} holds an infinite value in row {rows[int(is_infinite.argmax())]}"


def lost_digits(X: Any, categorical: Collection[int] = ()) -> str:
    """Write which column holds two different integers that become the same float; empty if there is none.

    Columns of objects at `categorical` positions are not tested: categories are not converted to floats.
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
                return f"column {name!r} holds the integers {first} and {second}, which become the same float"
    return ""


def _integers_by_column(X: Any) -> list[NDArray[Any]]:
    """List the integers of each column of a table; the list is empty if the table cannot hold integers."""
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
    """Return the integers of a column of a frame."""
    if kind_of(series) == "objects":
        return _integers_among(series.to_list())
    return series.drop_nulls().to_numpy() if series.dtype.is_integer() else np.empty(0, dtype=np.int64)


def _integers_among(values: list[Any]) -> NDArray[np.object_]:
    """Return the integers among objects that are no larger than the largest float.

    The array is empty if there is any text or boolean, since the column then holds categories.
    """
    if any(issubclass(each, _NO_NUMBERS) for each in set(map(type, values))):
        return np.empty(0, dtype=object)
    integers = [int(value) for value in values if isinstance(value, int | np.integer)]
    return as_objects([value for value in integers if abs(value) <= _LARGEST_FLOAT])

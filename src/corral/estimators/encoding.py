"""Columns of tables as numbers that the core takes: measurements, and levels.

Measurements stay numbers, and NaN stands for a gap. Levels become their positions among those seen in `fit`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers

# Up to here, integers that differ are different floats.
LARGEST_EXACT = 2**53

_LARGEST_FLOAT = float(np.finfo(np.float64).max)

# Texts that are at most one in so many of a column's values are typing errors rather than levels.
_ONE_IN = 5


class Column(NamedTuple):
    """One column of a table.

    Attributes
    ----------
    name : its name, or "x3" if it has none.
    values : (n_rows,) numbers, or objects with None for gaps.
    levels : its levels in order, if its type says what they are; None if that depends on the values.
    kind : "number", "levels" or "ordered".
    """

    name: str
    values: NDArray[Any]
    levels: list[Any] | None
    kind: str


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of a table become numbers.

    Attributes
    ----------
    levels : for each column its levels, or None for a column of numbers.
    ordered : (n_features,) whether the positions of levels count as measurements.
    empty : positions of columns of numbers that had no value in `fit`, whatever type they had. Samples may
        hold values of any type there, which are ignored.
    """

    levels: Sequence[list[Any] | None]
    ordered: Bools
    empty: frozenset[int] = frozenset()

    @property
    def counts(self) -> Integers | None:
        """(n_features,) numbers of levels, 0 for measurements; None if there are no levels."""
        counts = np.array(
            [
                0 if levels is None or ordered else max(len(levels), 1)
                for levels, ordered in zip(self.levels, self.ordered, strict=True)
            ],
            dtype=np.int64,
        )
        return counts if counts.any() else None

    @property
    def ignored(self) -> frozenset[int]:
        """Positions of columns without any value in `fit`, of numbers or of levels."""
        return self.empty | {j for j, levels in enumerate(self.levels) if levels == []}

    def names_of_levels(self) -> list[list[Any] | None]:
        """For each column its levels, or None for measurements and what counts as such."""
        pairs = zip(self.levels, self.ordered, strict=True)
        return [None if ordered else levels for levels, ordered in pairs]

    def decode(self, X: Floats) -> NDArray[Any]:
        """Numbers as values of the table again: the same if no column has levels, else objects."""
        return with_names_of_levels(X, self.levels)

    @classmethod
    def of_numbers(cls, d: int) -> Encoding:
        """That of a table without levels."""
        return cls([None] * d, np.zeros(d, dtype=np.bool_))

    @classmethod
    def learn(cls, columns: Sequence[Column]) -> Encoding:
        """Learn the levels of the columns that have some."""
        levels = [None if column.kind == "number" else _levels_of(column) for column in columns]
        return cls(levels, np.array([column.kind == "ordered" for column in columns], dtype=np.bool_))

    @classmethod
    def merged(
        cls, names: Sequence[str], dtypes: Sequence[Any], present: Sequence[set[Any] | None]
    ) -> Encoding:
        """Put together the levels that parts of a table hold, None for columns of numbers.

        Those that the type of a column names have its order.
        """
        columns = []
        for name, dtype, values in zip(names, dtypes, present, strict=True):
            if values is None:
                columns.append(Column(name, np.empty(0), None, "number"))
                continue
            kind = "ordered" if kind_of_dtype(dtype) == "ordered" else "levels"
            held = np.empty(len(values), dtype=object)
            held[:] = list(values)
            columns.append(Column(name, held, _declared(dtype), kind))
        return cls.learn(columns)

    def extended(self, columns: Sequence[Column]) -> Encoding:
        """Add the levels of further rows, in the order that all rows together would give them."""
        joint: list[list[Any] | None] = []
        ordered = self.ordered.copy()
        for j, (column, known) in enumerate(zip(columns, self.levels, strict=True)):
            if known is not None:
                joint.append(_joint_levels(known, column, ordered[j]))
            elif j in self.empty and column.kind != "number":  # as if all rows came at once
                joint.append(_levels_of(column))
                ordered[j] = column.kind == "ordered"
            else:
                joint.append(None)
        return Encoding(joint, ordered, frozenset(j for j in self.empty if joint[j] is None))

    def recoded(self, X: Floats, other: Encoding) -> Floats:
        """Turn numbers by this encoding into those by another one, which has all its levels."""
        X = X.copy()
        for j, (before, after) in enumerate(zip(self.levels, other.levels, strict=True)):
            if before is None or after is None or before == after:
                continue
            position = {level: float(k) for k, level in enumerate(after)}
            is_known = ~np.isnan(X[:, j])
            X[is_known, j] = [position[before[int(k)]] for k in X[is_known, j]]
        return X

    def encode(self, columns: Sequence[Column]) -> tuple[Floats, dict[str, int]]:
        """Numbers (n_rows, n_features), and how many values of each column are levels not known."""
        n = len(columns[0].values)
        X = np.empty((n, len(columns)))
        unknown: dict[str, int] = {}
        for j, (column, levels) in enumerate(zip(columns, self.levels, strict=True)):
            if j in self.empty:
                X[:, j], n_ignored = _numbers_or_missing(column)
                if n_ignored:
                    unknown[column.name] = n_ignored
                continue
            if levels is None:
                X[:, j] = numbers_of(column)
                continue
            position = {level: float(k) for k, level in enumerate(levels)}
            values = _as_levels(column)
            X[:, j] = [np.nan if value is None else position.get(value, np.inf) for value in values]
            is_unknown = np.isinf(X[:, j])
            if is_unknown.any():
                unknown[column.name] = int(is_unknown.sum())
                X[is_unknown, j] = np.nan
        return X, unknown


def with_names_of_levels(X: Floats, levels: Sequence[list[Any] | None]) -> NDArray[Any]:
    """Numbers with the names of levels in place of their positions; None stands for columns of numbers."""
    if all(of_column is None for of_column in levels):
        return X
    named: NDArray[Any] = X.astype(object)
    for j, of_column in enumerate(levels):
        if of_column is not None:
            named[:, j] = [None if np.isnan(k) else of_column[int(k)] for k in X[:, j]]
    return named


def columns_of_levels(names: list[str], dtypes: Sequence[Any], categorical: Any) -> list[int]:
    """Positions of the columns of a typed table that hold levels; a type that holds neither is refused."""
    for name, dtype in zip(names, dtypes, strict=True):
        if kind_of_dtype(dtype) in ("objects", "other"):
            raise ValueError(f"Column {name!r} holds values of type {dtype}; give numbers or text instead.")
        if categorical is None and kind_of_dtype(dtype) != "number" and not str(dtype).startswith("bool"):
            raise ValueError(
                f"Column {name!r} holds values of type {dtype}, "
                "but categorical_features=None asks for numbers."
            )
    if isinstance(categorical, str | None):
        check_categorical(categorical)
        if categorical is None:
            return []
        categorical = []
    named = positions_of(categorical, names)
    return [j for j, dtype in enumerate(dtypes) if j in named or kind_of_dtype(dtype) != "number"]


def encoded(X: Any) -> Floats:
    """Numbers (n_rows, n_features) of a frame whose levels are those that it holds."""
    columns = columns_of(X)
    return Encoding.learn(columns).encode(columns)[0]


def names_of(X: Any, d: int) -> list[str]:
    """Names of the columns of a frame, or x0, x1, ..."""
    return [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(d)])]


def columns_of(X: Any, ignored: Collection[int] = ()) -> list[Column]:
    """The columns of a pandas or polars frame, or of an array of objects.

    Columns at positions that are `ignored` may hold anything, as may columns without any value.
    """
    if not hasattr(X, "dtypes"):
        names = [f"x{j}" for j in range(X.shape[1])]
        if X.dtype.kind in "fiu":
            return [Column(name, X[:, j], None, "number") for j, name in enumerate(names)]
        return [
            Column(name, X[:, j], None, "number") if j in ignored else _of_objects(name, X[:, j])
            for j, name in enumerate(names)
        ]
    is_pandas = hasattr(X, "iloc")
    columns = []
    for j, dtype in enumerate(X.dtypes):
        name = str(X.columns[j])
        series = X.iloc[:, j] if is_pandas else X[X.columns[j]]
        kind = kind_of_dtype(dtype)
        if j in ignored or (kind == "other" and all(map(is_gap, series.to_list()))):
            columns.append(
                Column(name, np.array([*series.to_list(), None], dtype=object)[:-1], None, "number")
            )
        elif kind == "objects":
            columns.append(_of_objects(name, np.array(series.to_list(), dtype=object)))
        elif kind == "number":
            columns.append(Column(name, _floats(series), None, "number"))
        elif kind in ("levels", "ordered"):
            values = np.empty(len(series), dtype=object)
            values[:] = series.to_list()
            columns.append(Column(name, values, _declared(dtype), kind))
        else:
            raise ValueError(f"Column {name!r} holds values of type {dtype}; give numbers or text instead.")
    return columns


def integers_of(X: Any, j: int) -> NDArray[Any]:
    """The integers of column j of a frame, without gaps, as objects if they are such; none of other types."""
    if kind_of_dtype(X.dtypes.iloc[j] if hasattr(X, "iloc") else X.dtypes[j]) == "objects":
        return integers_among((X.iloc[:, j] if hasattr(X, "iloc") else X[X.columns[j]]).to_list())
    if not re.match(r"u?int\d", str(X.dtypes.iloc[j] if hasattr(X, "iloc") else X.dtypes[j]).lower()):
        return np.empty(0, dtype=np.int64)
    series = X.iloc[:, j].dropna() if hasattr(X, "iloc") else X[X.columns[j]].drop_nulls()
    values: NDArray[np.integer[Any]] = np.asarray(series.to_numpy())
    return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)


def integers_among(values: list[Any]) -> NDArray[np.object_]:
    """The integers among objects that floats reach; none if a text or boolean makes levels of all of them."""
    integers: list[int] = []
    for value in values:
        if isinstance(value, str | bool | np.bool_):
            return np.empty(0, dtype=object)
        if isinstance(value, int | np.integer) and abs(int(value)) <= _LARGEST_FLOAT:
            integers.append(int(value))
    return np.array(integers, dtype=object)


def one_float(integers: NDArray[Any]) -> list[int]:
    """Two of some integers that differ but are the same float; none if there are no such."""
    if not integers.size or max(int(integers.max()), -int(integers.min())) <= LARGEST_EXACT:
        return []
    values = np.sort(integers)
    same = (np.diff(values.astype(np.float64)) == 0.0) & (values[1:] != values[:-1])
    first = int(same.argmax())
    return values[first : first + 2].tolist() if same.any() else []


def kind_of_dtype(dtype: Any) -> str:
    """The kind of a pandas, numpy or polars column: of the type's name, so that neither is imported."""
    name = str(dtype).lower()
    if re.match(r"(sparse\[)?(u?int|float)\d|double|decimal|sparse\[bool", name):
        return "number"
    if name.startswith("enum"):
        return "levels"
    if name.startswith("categor"):
        return "ordered" if getattr(dtype, "ordered", False) is True else "levels"
    if re.match(r"(bool|boolean|str|string|utf8|large_string)(\[|$)", name):
        return "levels"
    return "objects" if name.startswith("object") else "other"


def _declared(dtype: Any) -> list[Any] | None:
    """The levels that the type of a column names."""
    categories = getattr(dtype, "categories", None)
    if categories is None or str(dtype).lower().startswith("categorical(") or not len(categories):
        return None
    return list(categories.to_list() if hasattr(categories, "to_list") else categories)


def _floats(series: Any) -> Floats:
    values = series.to_numpy()
    if values.dtype.kind not in "fiu":
        values = np.array([np.nan if value is None else value for value in series.to_list()], dtype=object)
        values = np.array([value if value == value else np.nan for value in values], dtype=object)  # noqa: PLR0124
    numbers: Floats = np.asarray(values, dtype=np.float64)
    return numbers


def _of_objects(name: str, values: NDArray[Any]) -> Column:
    """A column of any objects: of numbers if all of them are, else of levels."""
    known = [value for value in values.tolist() if not is_gap(value)]
    for value in known:
        if not isinstance(value, str | int | float | np.number | np.bool_):
            raise TypeError(
                f"Column {name!r} holds a {type(value).__name__}; an argument must be a string or a number."
            )
    is_number = all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
        for value in known
    )
    return Column(name, values, None, "number" if is_number else "levels")


def are_gaps(values: NDArray[Any]) -> Bools:
    """Which values of a column are gaps."""
    if values.dtype.kind in "mM":
        are_none: Bools = np.isnat(values)
        return are_none
    if values.dtype.kind not in "fO":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.array([is_gap(value) for value in values.tolist()], dtype=np.bool_)


def is_gap(value: Any) -> bool:
    """None, NaN, a time that is none, or pandas' NA, which is not even equal to itself."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _as_levels(column: Column) -> list[Any]:
    """Values as levels: None for gaps, and Python's numbers for those of numpy."""
    values = [None if is_gap(value) else value for value in column.values.tolist()]
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _levels_of(column: Column) -> list[Any]:
    """The levels of a column, in order."""
    present = {value for value in _as_levels(column) if value is not None}
    if column.levels is not None:
        return [level for level in column.levels if column.kind == "ordered" or level in present]
    try:
        return sorted(present)
    except TypeError:  # text and numbers
        return sorted(present, key=lambda value: (isinstance(value, str), str(value)))


def _joint_levels(known: list[Any], column: Column, is_ordered: bool) -> list[Any]:
    """The levels of some rows and of further ones, in order; what is ordered takes no new ones."""
    present = [value for value in _as_levels(column) if value is not None]
    earlier = set(known)
    new = [value for value in present if value not in earlier]
    if not new:
        return known
    if is_ordered:
        raise ValueError(
            f"Column {column.name!r} has the level {new[0]!r}, for which the order of levels in the rows so "
            "far has no place: fit all rows together."
        )
    values = np.empty(len(known) + len(present), dtype=object)
    values[:] = [*known, *present]
    declared = column.levels if earlier <= set(column.levels or ()) else None
    return _levels_of(Column(column.name, values, declared, "levels"))


def numbers_of(column: Column) -> Floats:
    """Values of a column that held numbers in `fit`."""
    if column.values.dtype.kind in "fiu":
        numbers = column.values.astype(np.float64)
    else:
        numbers = np.empty(len(column.values))
        for i, value in enumerate(column.values.tolist()):
            try:
                numbers[i] = np.nan if is_gap(value) else float(value)
            except OverflowError:
                raise ValueError(
                    f"Column {column.name!r} holds a number in row {i} that is too large for a float."
                ) from None
            except (TypeError, ValueError):
                raise ValueError(
                    f"Column {column.name!r} held numbers in fit, but has {value!r} in row {i}."
                ) from None
    refuse_infinite(column.name, numbers)
    return numbers


def _numbers_or_missing(column: Column) -> tuple[Floats, int]:
    """Finite numbers of a column, NaN in place of all other values, and how many of these are not missing."""
    numbers = np.full(len(column.values), np.nan)
    n_ignored = 0
    value: Any
    for i, value in enumerate(column.values.tolist()):
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if is_number and abs(value) <= _LARGEST_FLOAT:
            numbers[i] = value
        else:
            n_ignored += not is_gap(value)
    return numbers, n_ignored


def refuse_infinite(name: str, numbers: Floats) -> None:
    """Refuse a column of some name that holds an infinite value."""
    is_infinite = np.isinf(numbers)
    if is_infinite.any():
        raise ValueError(f"Column {name!r} holds an infinite value in row {int(is_infinite.argmax())}.")


def marked_columns(columns: Sequence[Column], categorical: Any) -> list[Column]:
    """Columns of which the user has said which hold levels."""
    if isinstance(categorical, str | None):
        check_categorical(categorical)
        if categorical == "from_dtype":
            for column in columns:
                _refuse_few_texts(column)
            return list(columns)
        return [column._replace(kind="number", levels=None) for column in columns]
    marked = list(columns)
    names = [column.name for column in columns]
    named = positions_of(categorical, names)
    for j, column in enumerate(columns):
        if j not in named:
            _refuse_few_texts(column)
        elif column.kind == "number":
            marked[j] = column._replace(kind="levels")
    return marked


def _refuse_few_texts(column: Column) -> None:
    """Refuse a column of numbers and a few texts, which would make levels of them all."""
    if column.kind != "levels" or column.levels is not None:
        return
    values = column.values.tolist()
    texts = [i for i, value in enumerate(values) if isinstance(value, str)]
    n_known = sum(not is_gap(value) for value in values)
    if (
        texts
        and len(texts) * _ONE_IN <= n_known
        and not any(isinstance(value, bool | np.bool_) for value in values)
    ):
        raise ValueError(
            f"Column {column.name!r} holds numbers, but {values[texts[0]]!r} in row {texts[0]}: mend it, or "
            "name the column in categorical_features, which makes levels of all its values."
        )


def check_categorical(categorical: Any) -> None:
    """Refuse a word or another value that does not say which columns hold levels."""
    if categorical not in ("from_dtype", None):
        raise ValueError(f"categorical_features must be 'from_dtype', None or columns, got {categorical!r}.")


def positions_of(categorical: Any, names: list[str]) -> list[int]:
    """Positions of columns that are named, numbered or marked by a mask."""
    given = np.asarray(categorical)
    if given.dtype.kind == "b":
        if given.shape != (len(names),):
            raise ValueError(
                f"categorical_features must be a mask of {len(names)} columns, got {categorical!r}."
            )
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

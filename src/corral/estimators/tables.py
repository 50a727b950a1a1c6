"""Reading of tables with missing values and categories: checks as in scikit-learn, and conversion to numbers.

A column is either of numbers, of categories or of dates. `encoding` finds out which; this module checks the
table and warns of columns that may be meant otherwise.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_X_y, validate_data

from corral.array_types import Floats
from corral.data.date_variables import DateColumn
from corral.data.written_numbers import written_numbers
from corral.estimators.encoding import (
    MOST_SHOWN,
    Encoding,
    TableColumn,
    Unknown,
    are_missing,
    columns_of,
    is_frame,
    lost_digits,
    marked_columns,
    names_of,
    positions_of,
    refuse_infinite,
    series_of,
)
from corral.estimators.validation import warn_user
from corral.sentences.numbers import begun, listed
from corral.sentences.tables import dates_as_variables, no_dates, numbers_as_text


class ColumnKindWarning(UserWarning):
    """A column may have been read in another way than it was meant.

    A column of dates becomes several variables: days, month, weekday and hour, if they vary. Numbers that are
    stored as text, such as "20.07%", are read as categories. Use `categorical_features` for columns whose
    values are categories.

    See Also
    --------
    corral.CorralClassifier : Warns in `fit`.
    """


class UnknownCategoriesWarning(UserWarning):
    """New rows have categories that no training row has, or texts that are no dates, which count as missing.

    The warning lists the columns, and how many of their values are unknown.

    See Also
    --------
    corral.CorralClassifier : Its parameter `categorical_features` lists the columns that hold categories.
    """


def validate_columns(estimator: Any, d: int) -> None:
    """Raise ValueError if `n_features_in_` is not d, the number of columns of the fitted arrays."""
    if estimator.n_features_in_ != d:
        raise ValueError(f"n_features_in_ is {estimator.n_features_in_}, but the arrays have {d} columns")


class CheckedTable(NamedTuple):
    """A table that was checked and converted to numbers."""

    X: Floats  # (n_rows, n_features) numbers, NaN for missing values
    y: NDArray[Any]  # (n_rows,) labels; empty without labels
    # by position of the variable: (n_rows,) categories that no training row has, None in rows without them;
    # only variables with such categories
    unknown: dict[int, NDArray[Any]]
    undated: Unknown  # for each column of dates with values that are no dates: how often each occurs
    names: list[str]  # (n_features,) names of the variables

    @property
    def unknown_counts(self) -> Unknown:
        """For each variable with unknown categories: how often each occurs."""
        return {
            self.names[j]: Counter(str(value) for value in values.tolist() if value is not None)
            for j, values in self.unknown.items()
        }


def read_table(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    categorical: Any = "from_dtype",
    reset: bool,
    extend: bool = False,
) -> CheckedTable:
    """Check a table as scikit-learn does, and convert it to numbers.

    Parameters
    ----------
    estimator : the estimator; its `encoding_` is read, or set.
    X : the table.
    y : labels (n_rows,), or "no_validation" if there are none.
    categorical : the parameter `categorical_features`, used with `reset` only.
    reset : whether this is a new fit, which sets `encoding_`.
    extend : whether these are further training rows, whose categories are added to `encoding_`.

    Without `reset`, an estimator without `encoding_` accepts only numbers without missing values.
    """
    learnt: Encoding | None = None if reset else getattr(estimator, "encoding_", None)
    if learnt is None and not reset:
        return CheckedTable(*read_numbers(estimator, X, y, reset=False), {}, {}, [])
    with_categories: list[int] = []
    if learnt is not None:
        with_categories = [j for j, categories in enumerate(learnt.categories) if categories is not None]
    elif isinstance(categorical, str | None):
        positions_of(categorical, [])  # raises an error for other strings
    elif len(getattr(X, "shape", ())) == 2:
        with_categories = positions_of(categorical, names_of(X, X.shape[1]))
    X = _checked(estimator, X, y, reset=reset, learns=reset or extend, categorical=with_categories)
    unknown: dict[int, NDArray[Any]] = {}
    undated: Unknown = {}
    if learnt is None:
        may_hold_categories = not isinstance(categorical, str | None)
    else:
        may_hold_categories = bool(with_categories or learnt.empty)
    if _is_plain(X) and not may_hold_categories:
        rows, labels = _validate(estimator, X, y, reset=reset)
        names = names_of(X, rows.shape[1])
        encoding = Encoding.all_numbers(rows.shape[1]) if learnt is None else learnt
    else:
        X, labels = _validate_columns(estimator, X, y, reset=reset)
        columns = columns_of(X, () if learnt is None or extend else learnt.ignored)
        if learnt is None:
            columns = marked_columns(columns, categorical)
            encoding = Encoding.learn(columns, with_categories)
            _warn_of_kinds(columns, encoding.dates, with_categories)
        else:
            encoding = learnt.extended(columns) if extend else learnt
        rows, unknown, undated = encoding.encode(columns)
        names = encoding.variable_names([column.name for column in columns])
        if reset or extend:
            for name, strange in undated.items():
                warn_user(f"{no_dates(name, strange)}.", UserWarning)
    if reset or extend:
        empty = np.flatnonzero(np.isnan(rows).all(axis=0)).tolist()
        if reset and empty:
            _warn_of_empty_columns([names[j] for j in empty], len(names))
        earlier = learnt.empty if learnt else range(len(names))
        still_empty = frozenset(j for j in empty if j in earlier and encoding.categories[j] is None)
        estimator.encoding_ = replace(encoding, empty=still_empty)
    return CheckedTable(rows, labels, unknown, undated, names)


def _warn_of_kinds(columns: Sequence[TableColumn], dates: Sequence[DateColumn], named: Sequence[int]) -> None:
    """Warn of columns of dates, and of text that is numbers, except in columns at `named` positions."""
    for each in dates:
        remedy = "list it in categorical_features if the dates are categories"
        sentence = dates_as_variables(columns[each.position].name, each.parts, each.assumed_order, remedy)
        warn_user(f"{begun(sentence)}.", ColumnKindWarning)
    positions = {each.position for each in dates}
    for j, column in enumerate(columns):
        if j in named or j in positions or not column.is_text:
            continue
        texts = column.factorized[1]
        written = written_numbers(texts)
        if written is not None:
            row = int((column.factorized[0] == texts.index(written.example)).argmax())
            sentence = numbers_as_text(column.name, written.example, row, written.beside)
            warn_user(
                f"{begun(sentence)}: each text is read as a category. Convert the column to numbers, or list "
                "it in categorical_features.",
                ColumnKindWarning,
            )


def _warn_of_empty_columns(empty: list[str], n_columns: int) -> None:
    """Warn of columns without any value in the training rows; raise ValueError if no column has a value."""
    if len(empty) == n_columns:
        raise ValueError("X holds no value: all cells of all rows are missing (NaN).")
    names = listed(empty, most=MOST_SHOWN, rest=" of the columns")
    verb = "is" if len(empty) == 1 else "are"
    warn_user(f"no training row has a value of {names}, which {verb} ignored.", UserWarning)


def _validate_columns(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
    """Check names and number of columns as scikit-learn does, for columns of any type; return X and y."""
    if not is_frame(X):
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    if not len(X):
        raise ValueError("Found array with 0 sample(s), while a minimum of 1 is required.")
    if isinstance(y, str) and y == "no_validation":
        return X, np.empty(0)
    return X, check_X_y(np.zeros((len(X), 1)), y, estimator=estimator)[1]


def read_numbers(
    estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool
) -> tuple[Floats, NDArray[Any]]:
    """Check a table for an estimator that accepts only numbers without missing values; return X and y."""
    who = type(estimator).__name__
    X = _checked(estimator, X, y, reset=reset, learns=reset)
    if not _is_plain(X):
        _refuse_text(X, who)
    rows, labels = _validate(estimator, X, y, reset=reset)
    refuse_missing_values(rows, names_of(X, rows.shape[1]), who)
    return rows, labels


def distinct_names(X: Any, table: str = "X") -> list[str]:
    """List the names of the columns of a frame; raise ValueError if two columns have the same name.

    Without column names the list is empty. `table` is the name of the frame in the message.
    """
    names = names_of(X, 0)
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"{table} has several columns named {twice!r}: rename them.")
    return names


def _checked(
    estimator: Any, X: Any, y: Any, *, reset: bool, learns: bool, categorical: Sequence[int] = ()
) -> Any:
    """Raise an error for tables that no estimator accepts; return the table without masks.

    If the estimator `learns`, different integers must be different floats, except in the columns at
    `categorical` positions. With `reset`, names and texts from an earlier fit are removed.
    """
    _refuse_no_table(X)
    names = distinct_names(X)
    lost = lost_digits(X, categorical) if learns else ""
    if lost:
        raise ValueError(
            f"{begun(lost)}: leave the column out if it identifies rows; otherwise convert it to text, or to "
            "numbers with fewer digits."
        )
    X = _unmasked(X)
    _refuse_missing_labels(y)
    if reset:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 2 and shape[0] and not shape[1]:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required by "
                f"{type(estimator).__name__}: X has no columns. Perhaps a selector selects no variable."
            )
        vars(estimator).pop("na_values_", None)  # texts for missing values, from an earlier fit
        _name_variables(estimator, X, names)
    return X


def _name_variables(estimator: Any, X: Any, names: list[str]) -> None:
    """Store column names of a pandas frame that are not text, which scikit-learn ignores.

    The names 0, 1, 2, ... are not stored, since they are the default.
    """
    vars(estimator).pop("variable_names_", None)
    if not hasattr(X, "iloc") or isinstance(X.columns[0], str):
        return
    if names != [str(j) for j in range(len(names))]:
        estimator.variable_names_ = names


def _refuse_no_table(X: Any) -> None:
    """Raise an error for a Series (a single column or row of a frame) and for sparse arrays."""
    if nw.dependencies.is_into_series(X):
        raise ValueError(
            "X must be a table, got a Series: pass X[['name']] for a table of one column, or X.iloc[[0]] for "
            "a table of one row."
        )
    if issparse(X):
        raise TypeError(
            "X is sparse, but must be dense: pass X.toarray() or, if X is a one-hot encoding, the columns of "
            "text before the encoding."
        )


def _validate(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Floats, NDArray[Any]]:
    """Check a table of numbers as scikit-learn does, but allow missing values; return X and y."""
    try:
        checked = validate_data(estimator, X, y, dtype=np.float64, reset=reset, ensure_all_finite=False)
    except OverflowError:
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:
            raise ValueError(f"X must be a table of rows and columns, got {cells.ndim} dimensions.") from None
        for name, values in zip(names_of(X, cells.shape[1]), cells.T, strict=True):
            TableColumn(name, "number", values).numbers()  # raises an error that says where it is
        raise
    rows, labels = checked if isinstance(checked, tuple) else (checked, np.empty(0))
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(rows.sum()):  # faster than a check of each column, which is rarely needed
            for name, column in zip(names_of(X, rows.shape[1]), rows.T, strict=True):
                refuse_infinite(name, column)
    return rows, labels


def _refuse_text(X: Any, who: str) -> None:
    """Raise ValueError if a column has text; the message contains `who`, the class of the estimator."""
    for column in columns_of(X):
        texts = [value for value in column.cells.tolist() if isinstance(value, str)]
        if texts:
            raise ValueError(
                f"Column {column.name!r} holds text, such as {texts[0]!r}: {who} accepts only numbers; "
                "encode the text as numbers, or use CorralClassifier, which accepts text."
            )


def refuse_missing_values(
    X: Floats, names: Sequence[str], who: str, instead: str = "CorralClassifier, which accepts them"
) -> None:
    """Raise ValueError if a value is missing; the message contains `who` and what to use `instead`."""
    has_missing = np.isnan(X).any(axis=0)
    if has_missing.any():
        raise ValueError(
            f"Column {names[int(has_missing.argmax())]!r} has missing values (NaN): {who} accepts none; "
            f"fill them, or use {instead}."
        )


def _refuse_missing_labels(y: Any) -> None:
    """Raise ValueError if a label is missing: NaN, NaT, None, pandas' NA or polars' null."""
    try:
        labels = np.asarray(y)
    except ValueError:  # lists of unequal lengths, for which scikit-learn raises an error
        return
    if labels.ndim != 1:
        return
    missing = np.flatnonzero(are_missing(labels))
    if missing.size:
        raise ValueError(
            f"{missing.size} of {labels.size} labels are missing, the first in row {missing[0]}: "
            "fill them in, or leave these rows out."
        )


def _unmasked(X: Any) -> Any:
    """Convert a table to a form that scikit-learn reads.

    NaN replaces hidden cells of masked arrays, and pandas' NA and NaT in arrays of objects. Arrays of dates
    become objects. Sparse columns of frames become dense.
    """
    pandas = nw.dependencies.get_pandas()  # if it has been imported
    if pandas is not None and isinstance(X, pandas.DataFrame):
        types = {name: dtype for name, dtype in X.dtypes.items() if isinstance(dtype, pandas.SparseDtype)}
        return X.astype({name: dtype.subtype for name, dtype in types.items()}) if types else X
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(np.float64 if X.dtype.kind in "fiub" else object), np.nan)
    if isinstance(X, np.ndarray) and X.dtype.kind == "M":
        return X.astype("datetime64[us]").astype(object)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        return np.where(are_missing(X.ravel()).reshape(X.shape), np.nan, X)
    return X


def _is_plain(X: Any) -> bool:
    """Test whether the checks of scikit-learn suffice: the table has numbers, perhaps with missing values.

    Frames and arrays of objects may hold categories. Lists of text are an error in scikit-learn.
    """
    if is_frame(X):
        return all(series.dtype.is_integer() or series.dtype.is_float() for series in series_of(X))
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O" or X.ndim != 2:
        return True
    types = set(map(type, X.ravel().tolist()))
    return not any(issubclass(each, str | bool | np.bool_ | datetime.date) for each in types)

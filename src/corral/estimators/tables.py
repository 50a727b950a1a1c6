"""Tables with missing values and categories: checked as scikit-learn does, and returned as numbers."""

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

    Columns of dates become variables: days, month, weekday and hour, as far as they vary. Numbers that are
    stored as text, such as "20.07%", are categories. `categorical_features` names columns whose values are
    categories, whatever they look like.

    See Also
    --------
    corral.CorralClassifier : Gives it in `fit`.
    """


class UnknownCategoriesWarning(UserWarning):
    """Samples have categories that no training row has, or texts that are no dates; they count as missing.

    The warning says how many values are unknown in which columns.

    See Also
    --------
    corral.CorralClassifier : Its parameter `categorical_features` says which columns hold categories.
    """


def validate_columns(estimator: Any, d: int) -> None:
    """Refuse a fitted estimator whose arrays do not have `n_features_in_` columns."""
    if estimator.n_features_in_ != d:
        raise ValueError(
            f"n_features_in_ is {estimator.n_features_in_}, and the arrays have another number of columns"
        )


class CheckedTable(NamedTuple):
    """A table that has been checked."""

    X: Floats  # (n_rows, n_features) numbers, NaN for missing values
    y: NDArray[Any]  # (n_rows,) labels, if they were given
    # by position of the variable (n_rows,) categories that no training row has, None in all other rows
    unknown: dict[int, NDArray[Any]]
    undated: Unknown  # which values of columns of dates are no dates, and how often, by column
    names: list[str]  # of the variables

    @property
    def unknown_counts(self) -> Unknown:
        """Categories that no training row has, and how often they occur, by variable."""
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
    """Check a table as scikit-learn does, and return it as numbers.

    A fit (`reset`) learns the `encoding_` of the estimator, where `categorical` says which columns hold
    categories. Further training rows (`extend`) add categories to it. An estimator without an encoding takes
    numbers without missing values.
    """
    learnt: Encoding | None = None if reset else getattr(estimator, "encoding_", None)
    if learnt is None and not reset:
        return CheckedTable(*read_numbers(estimator, X, y, reset=False), {}, {}, [])
    with_categories: list[int] = []
    if learnt is not None:
        with_categories = [j for j, categories in enumerate(learnt.categories) if categories is not None]
    elif isinstance(categorical, str | None):
        positions_of(categorical, [])  # refuses other words
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
    """Warn of columns of dates, and of text that is numbers, unless they are named as categories."""
    for each in dates:
        remedy = "name it in categorical_features to make categories of them"
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
                f"{begun(sentence)}: each counts as a category of its own. Make numbers of them, or name the "
                "column in categorical_features.",
                ColumnKindWarning,
            )


def _warn_of_empty_columns(empty: list[str], n_columns: int) -> None:
    """Warn of columns that have no value in training; refuse a table without any value."""
    if len(empty) == n_columns:
        raise ValueError("X holds no value: all cells of all rows are missing (NaN).")
    names = listed(empty, most=MOST_SHOWN, rest=" of the columns")
    verb = "is" if len(empty) == 1 else "are"
    warn_user(f"no training row has a value of {names}, which {verb} ignored.", UserWarning)


def _validate_columns(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
    """Check names and number of columns of any type, as scikit-learn does; return them and the labels."""
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
    """Check a table for an estimator that takes numbers without missing values; return it and the labels."""
    who = type(estimator).__name__
    X = _checked(estimator, X, y, reset=reset, learns=reset)
    if not _is_plain(X):
        _refuse_text(X, who)
    rows, labels = _validate(estimator, X, y, reset=reset)
    refuse_missing_values(rows, names_of(X, rows.shape[1]), who)
    return rows, labels


def distinct_names(X: Any, table: str = "X") -> list[str]:
    """Names of the columns of a frame, as `names_of` has them; several columns of one name are refused."""
    names = names_of(X, 0)
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"{table} has several columns named {twice!r}: each needs a name of its own.")
    return names


def _checked(
    estimator: Any, X: Any, y: Any, *, reset: bool, learns: bool, categorical: Sequence[int] = ()
) -> Any:
    """Refuse tables that no estimator takes, and return the table without masks; a reset forgets names.

    If the estimator `learns`, different integers must be different floats, but in `categorical` columns.
    """
    _refuse_no_table(X)
    names = distinct_names(X)
    lost = lost_digits(X, categorical) if learns else ""
    if lost:
        raise ValueError(
            f"{begun(lost)}: leave it out if it names rows, or make text of it, or numbers of fewer digits."
        )
    X = _unmasked(X)
    _refuse_missing_labels(y)
    if reset:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 2 and shape[0] and not shape[1]:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required by "
                f"{type(estimator).__name__}: there is nothing to learn from, as after a selector that "
                "selects no variable."
            )
        vars(estimator).pop("na_values_", None)  # texts for missing values of an earlier table
        _name_variables(estimator, X, names)
    return X


def _name_variables(estimator: Any, X: Any, names: list[str]) -> None:
    """Keep numbers as names of columns, which scikit-learn does not, unless they count from 0."""
    vars(estimator).pop("variable_names_", None)
    if not hasattr(X, "iloc") or isinstance(X.columns[0], str):
        return
    if names != [str(j) for j in range(len(names))]:
        estimator.variable_names_ = names


def _refuse_no_table(X: Any) -> None:
    """Refuse a single column or row of a frame, and sparse arrays."""
    if nw.dependencies.is_into_series(X):
        raise ValueError(
            "X must be a table, got a Series: give X[['name']] for a table of one column, or X.iloc[[0]] for "
            "one of one row."
        )
    if issparse(X):
        raise TypeError(
            "X is sparse, and a dense table is needed: give columns of text as they are, since they need no "
            "one-hot encoding, or X.toarray()."
        )


def _validate(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Floats, NDArray[Any]]:
    """Check numbers as scikit-learn does, missing values allowed; return them and the labels, if any."""
    try:
        checked = validate_data(estimator, X, y, dtype=np.float64, reset=reset, ensure_all_finite=False)
    except OverflowError:
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:
            raise ValueError(f"X must be a table of rows and columns, got {cells.ndim} dimensions.") from None
        for name, values in zip(names_of(X, cells.shape[1]), cells.T, strict=True):
            TableColumn(name, "number", values).numbers()  # refuses the first number that is too large
        raise
    rows, labels = checked if isinstance(checked, tuple) else (checked, np.empty(0))
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(rows.sum()):  # a quick check: mostly all are finite
            for name, column in zip(names_of(X, rows.shape[1]), rows.T, strict=True):
                refuse_infinite(name, column)
    return rows, labels


def _refuse_text(X: Any, who: str) -> None:
    """Refuse columns with text; the error names the estimator, `who`."""
    for column in columns_of(X):
        texts = [value for value in column.cells.tolist() if isinstance(value, str)]
        if texts:
            raise ValueError(
                f"Column {column.name!r} holds text, such as {texts[0]!r}: {who} takes numbers only; encode "
                "it as numbers, or use CorralClassifier, which takes text."
            )


def refuse_missing_values(
    X: Floats, names: Sequence[str], who: str, instead: str = "CorralClassifier, which takes them"
) -> None:
    """Refuse missing values; the error names the estimator, `who`, and what to use instead."""
    has_missing = np.isnan(X).any(axis=0)
    if has_missing.any():
        raise ValueError(
            f"Column {names[int(has_missing.argmax())]!r} has missing values (NaN): {who} takes none; "
            f"fill them, or use {instead}."
        )


def _refuse_missing_labels(y: Any) -> None:
    """Refuse missing labels: NaN, NaT, None, pandas' NA or polars' null."""
    try:
        labels = np.asarray(y)
    except ValueError:  # lists of unequal lengths, which are refused elsewhere
        return
    if labels.ndim != 1:
        return
    missing = np.flatnonzero(are_missing(labels))
    if missing.size:
        raise ValueError(
            f"{missing.size} of {labels.size} labels are missing, the first in row {missing[0]}: "
            "fill them in, or leave such rows out."
        )


def _unmasked(X: Any) -> Any:
    """The table as scikit-learn can read it, with NaN for the cells that a masked array hides.

    In arrays of objects NaN replaces pandas' NA and NaT. Sparse columns of frames become dense.
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
    """Whether scikit-learn's own checks can read the table: numbers, perhaps with missing values.

    They refuse lists of text. Frames and arrays of objects may hold categories.
    """
    if is_frame(X):
        return all(series.dtype.is_integer() or series.dtype.is_float() for series in series_of(X))
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O" or X.ndim != 2:
        return True
    types = set(map(type, X.ravel().tolist()))
    return not any(issubclass(each, str | bool | np.bool_ | datetime.date) for each in types)

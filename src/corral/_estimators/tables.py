"""Tables as they are given, with gaps and levels: checked as scikit-learn does, and returned as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from corral._core.settings import Floats
from corral._estimators.encoding import (
    LARGEST_EXACT,
    Column,
    Encoding,
    are_gaps,
    check_categorical,
    columns_of,
    integers_among,
    integers_of,
    kind_of_dtype,
    marked_columns,
    names_of,
    numbers_of,
    one_float,
    positions_of,
    refuse_infinite,
)
from corral._estimators.validation import warn_user

# Columns that a warning names at most.
_SHOWN = 3


class UnknownLevelsWarning(UserWarning):
    """Samples have levels that no training row has; they count as missing.

    A level is one of the values of a text column; the warning says how many samples have unknown ones.

    See Also
    --------
    corral.CorralClassifier : Its parameter `categorical_features` says which columns hold levels.
    """


class TableEstimator(BaseEstimator):
    """An estimator that takes tables as they are: with gaps and levels, in a fit and in samples."""

    def _check_samples(self, X: ArrayLike) -> Floats:
        """Validate samples of a fitted estimator, and warn of levels that it does not know."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        if table.unknown:
            warn_user(unknown_sentence(table.unknown), UnknownLevelsWarning)
        return table.X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


class Table(NamedTuple):
    """A table that has been checked.

    Attributes
    ----------
    X : (n_rows, n_features) numbers, NaN for gaps.
    y : (n_rows,) labels, if they were given.
    unknown : how many values of some columns are levels that no training row has.
    """

    X: Floats
    y: NDArray[Any]
    unknown: dict[str, int]


def read_table(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    categorical: Any = "from_dtype",
    reset: bool,
    extend: bool = False,
) -> Table:
    """Check a table as scikit-learn does, and return it as numbers.

    Parameters
    ----------
    estimator : whose names and numbers of columns are kept or compared; in a fit it learns its `encoding_`.
        Without one, it takes numbers without gaps.
    X : array-like or frame.
    y : labels, if any.
    categorical : "from_dtype", None, or which columns hold levels: their names, positions, or a mask.
    reset : whether this is a fit.
    extend : whether `encoding_` learns the levels that it lacks, as those of further training rows.
    """
    learnt: Encoding | None = None if reset else getattr(estimator, "encoding_", None)
    if reset or extend:
        _refuse_lost_digits(X, _columns_of_levels(X, categorical, learnt))
    X = _unmasked(X)
    _refuse_same_names(X)
    _refuse_missing_labels(y)
    if reset:
        _begin_fit(estimator, X)
    if learnt is None and not reset:
        rows, labels = read_numbers(estimator, X, y, reset=False)
        return Table(rows, labels, {})
    has_levels = learnt is not None and any(levels is not None for levels in learnt.levels)
    if reset and isinstance(categorical, str | None):
        check_categorical(categorical)
    by_column = has_levels or (reset and not isinstance(categorical, str | None)) or not _is_plain(X)
    has_labels = not (isinstance(y, str) and y == "no_validation")
    if not by_column:
        rows, labels = _validate(estimator, X, y, reset=reset)
        if extend and learnt is not None:
            estimator.encoding_ = _still_empty(learnt, rows)
        if reset:
            _refuse_emptiness(rows)
            encoding = Encoding.of_numbers(rows.shape[1])
            estimator.encoding_ = _without_empty_columns(encoding, rows, names_of(X, rows.shape[1]))
        return Table(rows, labels, {})
    if not hasattr(X, "dtypes"):
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    if not len(X):
        raise ValueError("Found array with 0 sample(s), while a minimum of 1 is required.")
    labels = np.empty(0)
    if has_labels:
        _, labels = check_X_y(np.zeros((len(X), 1)), y, estimator=estimator)
    columns = columns_of(X, () if learnt is None or extend else learnt.ignored)
    if learnt is None:
        learnt = Encoding.learn(marked_columns(columns, categorical))
    elif extend:
        estimator.encoding_ = learnt = learnt.extended(columns)
    rows, unknown = learnt.encode(columns)
    if extend:
        estimator.encoding_ = _still_empty(learnt, rows)
    if reset:
        _refuse_emptiness(rows)
        estimator.encoding_ = _without_empty_columns(learnt, rows, [column.name for column in columns])
    return Table(rows, labels, unknown)


def _still_empty(encoding: Encoding, X: Floats) -> Encoding:
    """Forget of columns that were empty so far if further training rows have values there."""
    return replace(encoding, empty=frozenset(j for j in encoding.empty if np.isnan(X[:, j]).all()))


def _without_empty_columns(encoding: Encoding, X: Floats, names: Sequence[str]) -> Encoding:
    """Note which columns have no value in training, and warn of them: samples may hold anything there."""
    empty = np.flatnonzero(np.isnan(X).all(axis=0)).tolist()
    if not empty:
        return encoding
    listed = ", ".join(repr(names[j]) for j in empty[:_SHOWN])
    more = f" and of {len(empty) - _SHOWN} more columns" if len(empty) > _SHOWN else ""
    verb = "is" if len(empty) == 1 else "are"
    warn_user(f"no training row has a value of {listed}{more}, which {verb} ignored.", UserWarning)
    return replace(encoding, empty=frozenset(j for j in empty if encoding.levels[j] is None))


def read_numbers(
    estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool
) -> tuple[Floats, NDArray[Any]]:
    """Check a table of an estimator that takes numbers only, without gaps; return it and the labels, if any.

    Parameters
    ----------
    estimator : whose names and numbers of columns are kept or compared.
    X : array-like or frame.
    y : labels, if any.
    reset : whether this is a fit.
    """
    who = type(estimator).__name__
    if reset:
        _refuse_lost_digits(X, ())
    X = _unmasked(X)
    _refuse_same_names(X)
    _refuse_missing_labels(y)
    if reset:
        _begin_fit(estimator, X)
    if not _is_plain(X):
        refuse_levels(X, who)
    rows, labels = _validate(estimator, X, y, reset=reset)
    refuse_gaps(rows, names_of(X, rows.shape[1]), who)
    return rows, labels


def _begin_fit(estimator: Any, X: Any) -> None:
    """Refuse a table that nothing can be learnt from; forget what stood for a gap in an earlier one."""
    _refuse_no_columns(X, type(estimator).__name__)
    vars(estimator).pop("na_values_", None)


def _validate(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Floats, NDArray[Any]]:
    """Check numbers as scikit-learn does, gaps allowed; return them and the labels, if any."""
    try:
        checked = validate_data(estimator, X, y, dtype=np.float64, reset=reset, ensure_all_finite=False)
    except OverflowError:
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:
            raise ValueError(f"X must be a table of rows and columns, got {cells.ndim} dimensions.") from None
        for name, values in zip(names_of(X, cells.shape[1]), cells.T, strict=True):
            numbers_of(Column(name, values, None, "number"))  # which refuses the first that is too large
        raise
    rows, labels = checked if isinstance(checked, tuple) else (checked, np.empty(0))
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(rows.sum()):  # a fast way to find nothing
            for name, column in zip(names_of(X, rows.shape[1]), rows.T, strict=True):
                refuse_infinite(name, column)
    return rows, labels


def refuse_levels(X: Any, who: str) -> None:
    """Refuse columns that hold something else than numbers or booleans, for an estimator of some name."""
    for column in columns_of(X):
        for value in column.values.tolist():
            if isinstance(value, str):
                raise ValueError(
                    f"Column {column.name!r} holds text, such as {value!r}: {who} takes numbers only; encode "
                    "it as numbers, or use CorralClassifier, which takes text."
                )


def refuse_gaps(
    X: Floats, names: Sequence[str], who: str, instead: str = "CorralClassifier, which takes them"
) -> None:
    """Refuse gaps, for an estimator of some name; say what to use instead."""
    gaps = np.isnan(X).any(axis=0)
    if gaps.any():
        raise ValueError(
            f"Column {names[int(gaps.argmax())]!r} has gaps (NaN): {who} takes none; fill them, or use "
            f"{instead}."
        )


def _refuse_missing_labels(y: Any) -> None:
    """Refuse labels of which some are NaN, NaT, None, pandas' NA or polars' null."""
    try:
        labels = np.asarray(y)
    except ValueError:  # lists of unequal lengths, which are refused elsewhere
        return
    if labels.ndim != 1:
        return
    missing = np.flatnonzero(are_gaps(labels))
    if missing.size:
        raise ValueError(
            f"{missing.size} of {labels.size} labels are missing, the first in row {missing[0]}: "
            "fill them in, or leave such rows out."
        )


def _refuse_no_columns(X: Any, who: str) -> None:
    """Refuse a table of rows without columns, for an estimator of some name."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[0] and not shape[1]:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required by "
            f"{who}: there is nothing to learn from, as behind a selector that has found no variable."
        )


def _refuse_lost_digits(X: Any, of_levels: Sequence[int]) -> None:
    """Refuse a column of integers of which two that differ are the same float.

    Columns `of_levels` may hold such integers as objects, since levels are never made floats.
    """
    columns = _integers_by_column(X)
    for j, (name, integers) in enumerate(zip(names_of(X, len(columns)), columns, strict=True)):
        pair = [] if integers.dtype.kind == "O" and j in of_levels else one_float(integers)
        if pair:
            raise ValueError(
                f"Column {name!r} holds the integers {pair[0]} and {pair[1]}, which are one number as "
                "floats: leave it out if it names rows, or make text of it, or numbers of fewer digits."
            )


def _integers_by_column(X: Any) -> list[NDArray[Any]]:
    """The integers of each column of a table; nothing of what has no columns, or no integers."""
    if hasattr(X, "dtypes"):
        return [integers_of(X, j) for j in range(X.shape[1])]
    if isinstance(X, list | tuple):
        try:
            floats = np.asarray(X, dtype=np.float64)
        except (OverflowError, TypeError, ValueError):  # which is refused elsewhere, or holds text
            return []
        if floats.ndim != 2 or not (np.abs(floats) >= LARGEST_EXACT).any():
            return []
        X = np.array([list(row) for row in X], dtype=object)
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return []
    if X.dtype.kind == "O":
        return [integers_among(column.tolist()) for column in X.T]
    return [np.ma.compressed(column) for column in X.T] if X.dtype.kind in "iu" else []


def _columns_of_levels(X: Any, categorical: Any, learnt: Encoding | None) -> list[int]:
    """Positions of the columns that have been learnt to hold levels, or that the user has named."""
    if learnt is not None:
        return [j for j, levels in enumerate(learnt.levels) if levels is not None]
    if isinstance(categorical, str | None) or len(getattr(X, "shape", ())) != 2:
        return []
    return positions_of(categorical, names_of(X, X.shape[1]))


def _refuse_same_names(X: Any) -> None:
    """Refuse a frame of which two columns have one name."""
    names = list(getattr(X, "columns", ()))
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"X has several columns named {str(twice)!r}: each needs a name of its own.")


def _refuse_emptiness(X: Floats) -> None:
    """Refuse to learn from rows of gaps."""
    if np.isnan(X).all():
        raise ValueError("X holds no value: all cells of all rows are gaps (NaN).")


def _unmasked(X: Any) -> Any:
    """The table with gaps for the cells that a masked array hides, and as scikit-learn reads it.

    NaN takes the place of pandas' NA and of times that are none in arrays of objects. Columns of frames that
    are stored sparsely become dense.
    """
    sparse = {
        name: dtype.subtype
        for name, dtype in zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=True)
        if str(dtype).startswith("Sparse[")
    }
    if sparse:
        return X.astype(sparse)
    if not isinstance(X, np.ma.MaskedArray):
        if isinstance(X, np.ndarray) and X.dtype.kind == "O":
            X = np.where(are_gaps(X.ravel()).reshape(X.shape), np.nan, X)
        return X
    are_numbers = X.dtype.kind in "fiub"
    values = np.array(X.data, dtype=np.float64 if are_numbers else object)
    values[np.ma.getmaskarray(X)] = np.nan if are_numbers else None
    return values


def _is_plain(X: Any) -> bool:
    """Whether scikit-learn's own checks understand the table: numbers, perhaps with gaps.

    What it refuses, such as lists of text, is left to it; frames and arrays of objects may hold levels.
    """
    dtypes = getattr(X, "dtypes", None)
    if dtypes is not None:
        return all(kind_of_dtype(dtype) == "number" for dtype in dtypes)
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O" or X.ndim != 2:
        return True
    return not any(isinstance(value, str | bool | np.bool_) for value in X.ravel().tolist())


def unknown_sentence(unknown: dict[str, int]) -> str:
    """Say how many values are levels that training did not have."""
    listed = ", ".join(f"{n} of {name!r}" for name, n in list(unknown.items())[:_SHOWN])
    more = f" and of {len(unknown) - _SHOWN} more columns" if len(unknown) > _SHOWN else ""
    return f"Values that no training row has count as missing: {listed}{more}."

"""Tables as they are given, with gaps and levels: checked as scikit-learn does, and returned as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from corral.array_types import Floats, Integers, equal_or_none
from corral.data.dataset import TrainingRows
from corral.estimators.encoding import (
    MOST_SHOWN,
    Column,
    Encoding,
    Unknown,
    are_gaps,
    columns_of,
    is_frame,
    lost_digits,
    marked_columns,
    names_of,
    positions_of,
    refuse_infinite,
    series_of,
    unknown_sentence,
)
from corral.estimators.validation import check_groups, check_sample_weight, warn_user
from corral.parallel import Computation


class UnknownLevelsWarning(UserWarning):
    """Samples have levels that no training row has; they count as missing.

    A level is one of the values of a text column; the warning says how many samples have unknown ones.

    See Also
    --------
    corral.CorralClassifier : Its parameter `categorical_features` says which columns hold levels.
    """


class TableEstimator(BaseEstimator):
    """An estimator that takes tables as they are: with gaps and levels, in a fit and in samples."""

    n_features_in_: int
    encoding_: Encoding
    na_values_: list[str]
    categorical_features: Any
    n_jobs: int | None
    verbose: int

    def _validate_columns(self, d: int, levels: Integers | None) -> None:
        """Refuse a fitted estimator of another number of columns, or with other numbers of levels."""
        validate_columns(self, d)
        if len(self.encoding_.levels) != d or not equal_or_none(self.encoding_.counts, levels):
            raise ValueError("levels are not as many as the encoding has")

    def _check_rows(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        *,
        reset: bool,
    ) -> TrainingRows:
        """Validate training rows, and learn their levels: all of them, or those of further rows."""
        table = read_table(self, X, y, categorical=self.categorical_features, reset=reset, extend=not reset)
        check_classification_targets(table.y)
        n = len(table.X)
        weights = check_sample_weight(sample_weight, n)
        return TrainingRows(table.X, table.y, weights, self.encoding_.counts, check_groups(groups, n))

    def _check_samples(self, X: ArrayLike) -> Floats:
        """Validate samples of a fitted estimator, and warn of levels that it does not know."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        if table.unknown:
            warn_user(unknown_sentence(table.unknown), UnknownLevelsWarning)
        return table.X

    def _computation(self) -> Computation:
        return Computation(self.n_jobs, self.verbose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


def validate_columns(estimator: Any, d: int) -> None:
    """Refuse a fitted estimator whose arrays have another number of columns than it says."""
    if estimator.n_features_in_ != d:
        raise ValueError(
            f"n_features_in_ is {estimator.n_features_in_}, and the arrays have another number of columns"
        )


class Table(NamedTuple):
    """A table that has been checked.

    Attributes
    ----------
    X : (n_rows, n_features) numbers, NaN for gaps.
    y : (n_rows,) labels, if they were given.
    unknown : which values are levels that no training row has, and how often, by column.
    """

    X: Floats
    y: NDArray[Any]
    unknown: Unknown


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
    if learnt is None and not reset:
        rows, labels = read_numbers(estimator, X, y, reset=False)
        return Table(rows, labels, {})
    _refuse_same_names(X)
    if reset or extend:
        _refuse_lost_digits(X, _columns_of_levels(X, categorical, learnt))
    X = _checked(estimator, X, y, reset=reset)
    unknown: Unknown = {}
    may_hold_levels = learnt.has_levels if learnt else _names_columns(categorical)
    if _is_plain(X) and not may_hold_levels:
        rows, labels = _validate(estimator, X, y, reset=reset)
        names = names_of(X, rows.shape[1])
        encoding = Encoding.of_numbers(rows.shape[1]) if learnt is None else learnt
    else:
        X, labels = _validate_columns(estimator, X, y, reset=reset)
        columns = columns_of(X, () if learnt is None or extend else learnt.ignored)
        names = [column.name for column in columns]
        if learnt is None:
            encoding = Encoding.learn(marked_columns(columns, categorical))
        else:
            encoding = learnt.extended(columns) if extend else learnt
        rows, unknown = encoding.encode(columns)
    if reset:
        _refuse_emptiness(rows)
        encoding = _without_empty_columns(encoding, rows, names)
    if extend:
        encoding = _still_empty(encoding, rows)
    if reset or extend:
        estimator.encoding_ = encoding
    return Table(rows, labels, unknown)


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


def _still_empty(encoding: Encoding, X: Floats) -> Encoding:
    """Forget of columns that were empty so far if further training rows have values there."""
    return replace(encoding, empty=frozenset(j for j in encoding.empty if np.isnan(X[:, j]).all()))


def _without_empty_columns(encoding: Encoding, X: Floats, names: Sequence[str]) -> Encoding:
    """Note which columns have no value in training, and warn of them: samples may hold anything there."""
    empty = np.flatnonzero(np.isnan(X).all(axis=0)).tolist()
    if not empty:
        return encoding
    listed = ", ".join(repr(names[j]) for j in empty[:MOST_SHOWN])
    more = f" and of {len(empty) - MOST_SHOWN} more columns" if len(empty) > MOST_SHOWN else ""
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
    _refuse_same_names(X)
    if reset:
        _refuse_lost_digits(X, ())
    X = _checked(estimator, X, y, reset=reset)
    if not _is_plain(X):
        refuse_levels(X, who)
    rows, labels = _validate(estimator, X, y, reset=reset)
    refuse_gaps(rows, names_of(X, rows.shape[1]), who)
    return rows, labels


def _checked(estimator: Any, X: Any, y: Any, *, reset: bool) -> Any:
    """The table as it can be read; what no estimator takes is refused, and an earlier fit forgotten."""
    X = _unmasked(X)
    _refuse_missing_labels(y)
    if reset:
        _refuse_no_columns(X, type(estimator).__name__)
        vars(estimator).pop("na_values_", None)  # what stood for a gap in an earlier table
    return X


def _validate(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Floats, NDArray[Any]]:
    """Check numbers as scikit-learn does, gaps allowed; return them and the labels, if any."""
    try:
        checked = validate_data(estimator, X, y, dtype=np.float64, reset=reset, ensure_all_finite=False)
    except OverflowError:
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:
            raise ValueError(f"X must be a table of rows and columns, got {cells.ndim} dimensions.") from None
        for name, values in zip(names_of(X, cells.shape[1]), cells.T, strict=True):
            Column(name, "number", values).numbers()  # which refuses the first that is too large
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
        texts = [value for value in column.cells.tolist() if isinstance(value, str)]
        if texts:
            raise ValueError(
                f"Column {column.name!r} holds text, such as {texts[0]!r}: {who} takes numbers only; encode "
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
    """Refuse a column of integers of which two that differ are the same float; see `lost_digits`."""
    said = lost_digits(X, of_levels)
    if said:
        raise ValueError(
            f"C{said[1:]}: leave it out if it names rows, or make text of it, or numbers of fewer digits."
        )


def _columns_of_levels(X: Any, categorical: Any, learnt: Encoding | None) -> list[int]:
    """Positions of the columns that have been learnt to hold levels, or that the user has named."""
    if learnt is not None:
        return [j for j, levels in enumerate(learnt.levels) if levels is not None]
    if not _names_columns(categorical) or len(getattr(X, "shape", ())) != 2:
        return []
    return positions_of(categorical, names_of(X, X.shape[1]))


def _names_columns(categorical: Any) -> bool:
    """Whether the user has named columns that hold levels; a word that names none is refused."""
    if isinstance(categorical, str | None):
        positions_of(categorical, [])
        return False
    return True


def _refuse_same_names(X: Any) -> None:
    """Refuse a frame of which two columns have one name."""
    names = names_of(X, 0)
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"X has several columns named {twice!r}: each needs a name of its own.")


def _refuse_emptiness(X: Floats) -> None:
    """Refuse to learn from rows of gaps."""
    if np.isnan(X).all():
        raise ValueError("X holds no value: all cells of all rows are gaps (NaN).")


def _unmasked(X: Any) -> Any:
    """The table with gaps for the cells that a masked array hides, and as scikit-learn reads it.

    NaN takes the place of pandas' NA and of times that are none in arrays of objects. Columns of frames that
    are stored sparsely become dense.
    """
    pandas = nw.dependencies.get_pandas()  # if it has been imported
    if pandas is not None and isinstance(X, pandas.DataFrame):
        types = {name: dtype for name, dtype in X.dtypes.items() if isinstance(dtype, pandas.SparseDtype)}
        return X.astype({name: dtype.subtype for name, dtype in types.items()}) if types else X
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
    if is_frame(X):
        return all(series.dtype.is_integer() or series.dtype.is_float() for series in series_of(X))
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O" or X.ndim != 2:
        return True
    types = set(map(type, X.ravel().tolist()))
    return not any(issubclass(each, str | bool | np.bool_) for each in types)

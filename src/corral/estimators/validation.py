"""Checks of parameters, labels, weights and groups, and names of rows and columns.

A function `check_...` raises ValueError for a bad value, with the parameter's `name` in the message. If `fit`
raises an error, `unchanged_by_errors` restores the estimator.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d

from corral.array_types import Floats, Integers
from corral.data.dataset import LabelledRows, TrainingRows
from corral.estimators.encoding import are_missing, as_objects, is_missing
from corral.rodeo.settings import RodeoSettings

# A warning shows the line outside these packages that caused it: it may be a call of a pipeline.
_LOOKED_PAST = ("corral", "joblib", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning that shows the line of the user's code."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LOOKED_PAST:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


def import_pandas() -> Any:
    """Import pandas and return it; if it is not installed, the error has the command that installs it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError('Frames need pandas: pip install "corral[cli]".') from error
    return pd


@contextmanager
def unchanged_by_errors(estimator: object) -> Iterator[None]:
    """Restore all attributes of the estimator if the body of the `with` statement raises an exception."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ValueError if a value is not one of the choices."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def check_number(name: str, value: Any, low: float, high: float, *, inclusive: bool) -> float:
    """Check that a value is a number between two bounds; return it as a float."""
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    inside = number and (low <= value <= high if inclusive else low < value < high)
    if not inside:
        bounds = "inclusive" if inclusive else "exclusive"
        raise ValueError(f"{name} must be a number between {low:g} and {high:g} ({bounds}), got {value!r}.")
    return float(value)


def check_integer(name: str, value: Any) -> int:
    """Check that a value is a positive integer; return it."""
    if not _is_integer(value) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)


def check_position(name: str, value: Any, n: int) -> int:
    """Check that a value is the position of one of n rows, from 0 to n - 1; return it."""
    if n == 0:
        raise ValueError(f"{name} must be the position of a row, but there are no rows.")
    if not _is_integer(value) or not 0 <= value < n:
        raise ValueError(f"{name} must be an integer from 0 to {n - 1}, got {value!r}.")
    return int(value)


def check_one_row(X: Floats) -> Floats:
    """Check that a table has one row; return this row (n_features,)."""
    if len(X) != 1:
        raise ValueError(f"X must hold one row, got {len(X)}.")
    row: Floats = X[0]
    return row


def check_numbers(name: str, values: Any, low: float, high: float) -> Floats:
    """Check a list of numbers between two bounds (inclusive); return an array."""
    if np.ndim(values) != 1 or len(values) == 0:
        raise ValueError(f"{name} must be a list of numbers, got {values!r}.")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return np.array([check_number(name, value, low, high, inclusive=True) for value in listed])


def check_n_jobs(n_jobs: Any) -> None:
    """Check the parameter `n_jobs`, which joblib reads."""
    if n_jobs is not None and (not _is_integer(n_jobs) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}.")


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def feature_names(estimator: Any) -> list[str]:
    """List the names of the variables of a fitted estimator; a column of dates may be several variables."""
    columns = column_names(estimator)
    encoding = getattr(estimator, "encoding_", None)
    return columns if encoding is None else encoding.variable_names(columns)


def column_names(estimator: Any) -> list[str]:
    """List the names of the columns of a fitted estimator, or x0, x1, ... if the columns had no names.

    The attribute `variable_names_` has names that were not text (scikit-learn stores only text). In the last
    step of a pipeline it has the names that the earlier steps return.
    """
    columns = [f"x{j}" for j in range(estimator.n_features_in_)]
    for attribute in ("feature_names_in_", "variable_names_"):
        columns = [str(name) for name in getattr(estimator, attribute, columns)]
    return columns


def take_names_from(fitted: Any, estimator: Any) -> None:
    """Copy names of columns and rows, and the encoding, from a fitted estimator to another one."""
    attributes = (
        "n_features_in_",
        "feature_names_in_",
        "variable_names_",
        "encoding_",
        "row_names_in_",
        "row_names_column_",
    )
    for name in attributes:
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))


def check_rodeo(estimator: Any, scales: Sequence[str | None]) -> RodeoSettings:
    """Check the parameters of an estimator that runs algorithm 1; return the settings of the algorithm."""
    check_choice("update", estimator.update, ("simultaneous", "sequential"))
    check_choice("scale", estimator.scale, scales)
    check_n_jobs(estimator.n_jobs)
    floor = estimator.min_bandwidth
    return RodeoSettings(
        estimator.update,
        check_number("beta", estimator.beta, 0.0, 1.0, inclusive=False),
        check_number("c0", estimator.c0, 1e-10, 1e10, inclusive=True),
        None
        if isinstance(floor, str) and floor == "auto"
        else check_number("min_bandwidth (unless 'auto')", floor, 1e-12, math.inf, inclusive=True),
    )


def sort_rows(training: TrainingRows, expected: NDArray[Any] | None = None) -> LabelledRows:
    """Sort training rows by class (`LabelledRows.sort`); raise ValueError if there is only one class."""
    data = LabelledRows.sort(training, expected)
    check_two_classes(data.labels)
    return data


def row_names(X: Any) -> NDArray[Any] | None:
    """Return the labels (n_rows,) in the index of a pandas frame as names of rows, or None.

    Integers stay integers, so that `X.loc` accepts them; other labels become text. The result is None if X is
    not a pandas frame, if its index is 0, 1, 2, ... without a name, or if a label is missing, empty or
    repeated.
    """
    if not hasattr(X, "iloc"):
        return None
    index = X.index
    is_whole = index.dtype.kind in "iu"
    if index.name is None and is_whole and np.array_equal(index, np.arange(len(index))):
        return None
    labels = index.tolist() if is_whole else [str(label) for label in index]
    if len(set(labels)) < len(labels) or any(is_missing(label) or not str(label).strip() for label in index):
        return None
    return as_objects(labels)


def index_name(X: Any) -> str | None:
    """Return the name of the index of a pandas frame; None if it has no name or X is not a pandas frame."""
    name = X.index.name if hasattr(X, "iloc") else None
    return None if name is None else str(name)


def check_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> Floats | None:
    """Check the parameter `sample_weight`; return weights (n_samples,), or None if all weights are 1."""
    if sample_weight is None:
        return None
    weights = check_weights(sample_weight, n_samples)
    if weights.max() == 0.0:
        raise ValueError("sample_weight must not be zero for every row.")
    return None if np.all(weights == 1.0) else weights


def check_weights(sample_weight: ArrayLike, n_samples: int) -> Floats:
    """Check the weights of a part of the rows; return them. There may be no rows, or only weights of 0."""
    weights: Floats = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", ensure_min_samples=0
    )
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have the shape ({n_samples},), got {weights.shape}.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError(f"sample_weight must have a finite sum, got weights up to {weights.max():g}.")
    if weights.min(initial=0.0) < 0.0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}.")
    return weights


def check_two_classes(classes: NDArray[Any]) -> None:
    """Raise ValueError if there are fewer than two classes."""
    if classes.size < 2:
        raise ValueError(f"y must hold at least two classes, got one class: {classes.tolist()[0]!r}.")


def check_groups(groups: ArrayLike | None, n: int) -> Integers | None:
    """Check the parameter `groups`; return the index (n_rows,) of the group of each row, or None."""
    if groups is None:
        return None
    given = np.asarray(groups)
    if given.shape != (n,):
        raise ValueError(f"groups must have the shape ({n},), got {given.shape}.")
    missing = are_missing(given)
    if missing.any():
        raise ValueError(f"groups must name a group for each row, but row {int(missing.argmax())} has none.")
    _, numbers = np.unique(given.astype(str) if given.dtype.kind == "O" else given, return_inverse=True)
    return np.asarray(numbers, dtype=np.int64).reshape(-1)


def refuse_groups_of_whole_classes(training: TrainingRows, data: LabelledRows) -> None:
    """Raise ValueError if the rows of each class are in one group: if it is left out, the class has no rows.

    In the sorted rows `data`, groups that have most of their rows in common are joined: they have the same
    `group_ids`.
    """
    if training.groups is None or not data.is_alone.all():
        return
    counts = slice(None) if training.weights is None else training.weights > 0.0
    n_groups = np.unique(data.group_ids).size
    are_joined = n_groups < np.unique(training.groups[counts]).size
    why = " (two groups are joined if they have more than half of the rows of the smaller group in common)"
    if n_groups < 2:
        raise ValueError(
            f"groups must have at least two groups, got one{why * are_joined}: no row can be predicted from "
            "other groups."
        )
    raise ValueError(
        "groups must have rows of some class in at least two groups, but each class is in a single group"
        f"{why * are_joined}: if this group is left out, the class has no rows."
    )


def check_known_labels(y: ArrayLike, n: int, classes: NDArray[Any]) -> NDArray[Any]:
    """Check that labels (n,) are among the classes; return the labels in the type of the classes."""
    labels: NDArray[Any] = column_or_1d(y)
    if len(labels) != n:
        raise ValueError(f"y must hold a label for each of the {n} rows of X, got {len(labels)}.")
    names = set(classes.tolist())
    for i, label in enumerate(labels.tolist()):
        if label not in names:
            raise ValueError(
                f"y holds the class {label!r} in row {i}, which is not a class of the estimator."
            )
    return labels.astype(classes.dtype)


def check_kind_of_labels(labels: NDArray[Any], classes: NDArray[Any], name: str) -> None:
    """Raise ValueError if labels and classes are of different kinds: numpy would convert numbers to text.

    `name` is the subject of the message for the classes.
    """
    kinds = _kind_of_labels(labels), _kind_of_labels(classes)
    if labels.size and classes.size and kinds[0] != kinds[1]:
        raise ValueError(
            f"y holds {kinds[0]} such as {labels.tolist()[0]!r}, and {name} {kinds[1]} such as "
            f"{classes.tolist()[0]!r}: all labels must be of one kind."
        )


def _kind_of_labels(labels: NDArray[Any]) -> str:
    """Return the kind of the labels: text, booleans, numbers, the name of another type, or mixed objects."""
    names = {str: "text", bool: "booleans", int: "numbers", float: "numbers"}
    kinds = {names.get(type(label), type(label).__name__) for label in labels.tolist()}
    return kinds.pop() if len(kinds) == 1 else "objects"

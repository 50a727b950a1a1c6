"""Variables and classes of a table, as the options of the command line ask for them.

What a user should know of it is a warning, which the command line tells as a note.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral._checking import alike, names_rows
from corral.cli.formats import TableFile
from corral.cli.tables import (
    as_labels,
    as_numbers,
    is_unnamed,
    may_mean_missing,
    missing_rows,
    numeric_columns,
    read_chunks,
    read_table,
    table_columns,
)

if TYPE_CHECKING:
    import pandas as pd

IF_MISSING = "leave such rows out by --missing drop-rows"
_IF_TEXT = "leave it out by --id if it names rows, by --drop, or all such columns by --numeric-only"
_IF_EMPTY = "leave it out by --drop"
MOST_NAMED = 12


@dataclass(frozen=True)
class Asked:
    """What a user says of a table.

    Attributes
    ----------
    left_out : columns that are no variables.
    numeric_only : whether to leave columns out that are not numeric.
    drop_rows : whether to leave rows out that lack a value.
    na_values : what stands for a missing value, besides the usual.
    least_rows : fewest rows of a class; those of smaller ones are left out.
    """

    left_out: Sequence[str] = ()
    numeric_only: bool = False
    drop_rows: bool = False
    na_values: Sequence[str] = ()
    least_rows: int = 1


def training_rows(
    path: TableFile, target: str, asked: Asked, on_progress: Callable[[float], None]
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Variables and classes; `on_progress` is called with the share of the file that has been read."""
    if target in asked.left_out:
        raise ValueError(f"the target, {target!r}, cannot be left out.")
    columns = table_columns(path)
    check_names(path, (target, *asked.left_out), columns)
    variables = [name for name in columns if name != target and name not in asked.left_out]
    for name in variables:
        if is_unnamed(name):
            raise ValueError(
                f"{path} has a column without a name: name it, or leave it out by --drop '{name}'."
            )
    table = read_table(path, variables, as_text=[target], na_values=asked.na_values, on_progress=on_progress)
    if asked.numeric_only:
        numeric = numeric_columns(table[variables])
        text = [name for name in variables if name not in numeric]
        if text:
            warnings.warn(f"left out, because not numeric: {listed(text)}", stacklevel=2)
        variables = numeric
    if not variables:
        raise ValueError(f"{path} has no variables beside the target.")
    table = _complete(table[[*variables, target]], path, asked, droppable=variables)
    y = as_labels(table[target], path, if_missing=IF_MISSING)
    kept = _large_classes(y, asked.least_rows)
    table, y = table[kept], y[kept]
    _warn_of_labels(y)
    X = as_numbers(table[variables], path, if_text=_IF_TEXT, if_missing=IF_MISSING, if_empty=_IF_EMPTY)
    for name in X.columns:
        if names_rows(name, X[name].to_numpy()):
            warnings.warn(
                f"column {name!r} seems to name rows, and is used as a variable; if it does, say "
                f"--id {name!r}.",
                stacklevel=2,
            )
    return X, y


def check_names(path: TableFile, names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a name that no column has."""
    for name in names:
        if name not in columns:
            raise ValueError(f"{path} has no column {name!r}; {_meant(name, columns)}")


def new_rows(
    path: TableFile,
    variables: list[str],
    target: str | None,
    classes: NDArray[Any],
    asked: Asked,
    on_progress: Callable[[float], None],
) -> tuple[pd.DataFrame, NDArray[Any] | None]:
    """Variables of a model and, if there is a target, which of its classes rows have."""
    labels = [] if target is None else [target]
    table = read_table(path, variables, as_text=labels, na_values=asked.na_values, on_progress=on_progress)
    table = _complete(table, path, asked)
    X = as_numbers(table[variables], path, if_missing=IF_MISSING)
    if target is None:
        return X, None
    return X, _as_classes(as_labels(table[target], path, if_missing=IF_MISSING), classes, table.index, path)


def read_row(path: TableFile, variables: list[str], number: int) -> pd.DataFrame:
    """Variables of one row."""
    for chunk in read_chunks(path, variables):
        if number in chunk.index:
            return as_numbers(chunk.loc[[number]], path)
    raise ValueError(f"{path} has rows 0 to {chunk.index[-1]}, and no row {number}.")


def class_called(text: str | None, classes: NDArray[Any]) -> Any:
    """The class that is written like that."""
    if text is None:
        return None
    for label in classes:
        if str(label) == text:
            return label
    raise ValueError(f"there is no class {text!r}; there are {listed(classes.tolist())}.")


def listed(names: Sequence[Any], show: Callable[[Any], str] = repr) -> str:
    """The first of some names."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(show, names[:MOST_NAMED])) + more


def _meant(name: str, columns: Sequence[str]) -> str:
    """The columns that a user may have meant, or else all."""
    near = get_close_matches(name.casefold(), [column.casefold() for column in columns], n=1)
    if near:
        return f"did you mean {next(column for column in columns if column.casefold() == near[0])!r}?"
    return f"it has {listed(columns)}."


def _warn_of_labels(y: NDArray[Any]) -> None:
    """Tell of labels that may not be meant as classes of their own."""
    if y.dtype.kind != "U":
        return
    labels = np.unique(y).tolist()
    for label in labels:
        if may_mean_missing(label):
            warnings.warn(
                f"the label {label!r}, in {(y == label).sum()} of {y.size} rows, counts as a class; if it "
                f"stands for a missing value, say so by --na-values {label!r}.",
                stacklevel=3,
            )
    groups = [f"({listed(group)})" for group in alike(labels)]
    if groups:
        warnings.warn(
            "labels that differ only by case, by spaces around them or in how a number is written are "
            f"classes of their own: {listed(groups, str)}.",
            stacklevel=3,
        )


def _complete(
    table: pd.DataFrame, path: TableFile, asked: Asked, *, droppable: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows that lack nothing, if others are to be left out; they keep their numbers."""
    if not asked.drop_rows:
        return table
    lacking = missing_rows(table)
    if lacking.all():
        empty = [name for name in table.columns if table[name].isna().all()]
        why = f": {listed(empty)} {'is' if len(empty) == 1 else 'are'} empty" if empty else ""
        advice = f"; {_IF_EMPTY}" if empty and set(empty) <= set(droppable) else ""
        raise ValueError(f"{path} has no row without missing values{why}{advice}.")
    if lacking.any():
        warnings.warn(
            f"left out {lacking.sum()} of {len(table)} rows, which lack a value; "
            "training rows are counted without them.",
            stacklevel=2,
        )
    return table[~lacking]


def _large_classes(y: NDArray[Any], least_rows: int) -> NDArray[np.bool_]:
    """Which rows are of classes of enough rows; the others are told of."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    small = counts < least_rows
    if small.any() and small.sum() > classes.size - 2:
        raise ValueError(
            f"--drop-small-classes {least_rows} would leave {(~small).sum()} of {classes.size} classes, and "
            "two are needed."
        )
    if small.any():
        shown = [f"{label!r} ({n})" for label, n in zip(classes[small].tolist(), counts[small], strict=True)]
        warnings.warn(
            f"left out {counts[small].sum()} of {y.size} rows, which are of classes of fewer than "
            f"{least_rows} rows: {listed(shown, str)}; training rows are counted without them.",
            stacklevel=3,
        )
    kept: NDArray[np.bool_] = ~small[codes]
    return kept


def _as_classes(
    y: NDArray[Any], classes: NDArray[Any], numbers: Sequence[int], path: TableFile
) -> NDArray[Any]:
    """The model's own classes: a table that has only some of them may have been read as another type."""
    known = {str(label): label for label in classes.tolist()}
    labels = [str(label) for label in y.tolist()]
    for number, label in zip(numbers, labels, strict=True):
        if label not in known:
            advice = "; if it stands for a missing value, say so by --na-values" * may_mean_missing(label)
            raise ValueError(
                f"{path}: row {number} has the class {label!r}, which the model does not know: it knows "
                f"{listed(classes.tolist())}{advice}."
            )
    return np.array([known[label] for label in labels], dtype=classes.dtype)

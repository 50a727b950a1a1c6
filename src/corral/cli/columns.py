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
    names : column that names rows, if there is one.
    """

    left_out: Sequence[str] = ()
    numeric_only: bool = False
    drop_rows: bool = False
    na_values: Sequence[str] = ()
    least_rows: int = 1
    names: str | None = None


def training_rows(
    path: TableFile, target: str, asked: Asked, on_progress: Callable[[float], None]
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Variables and classes; `on_progress` is called with the share of the file that has been read."""
    if target in asked.left_out:
        raise ValueError(f"the target, {target!r}, cannot be left out.")
    columns = table_columns(path)
    check_names(path, (target, *asked.left_out), columns)
    variables = [name for name in columns if name != target and name not in asked.left_out]
    whole = read_table(
        path,
        variables,
        as_text=[target],
        verbatim=[asked.names] if asked.names else [],
        na_values=asked.na_values,
        on_progress=on_progress,
    )
    table, variables = whole, _named_columns(whole, variables, path)
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
    return _named(X, whole, asked.names), y


def _named_columns(table: pd.DataFrame, variables: Sequence[str], path: TableFile) -> list[str]:
    """The variables that have names; of the others, empty ones are left out: a separator may end each row."""
    for name in filter(is_unnamed, variables):
        if not table[name].isna().all():
            raise ValueError(
                f"{path} has a column without a name: name it, or leave it out by --drop '{name}'."
            )
        warnings.warn(f"left out column {name!r}, which has no name and is empty.", stacklevel=3)
    return [name for name in variables if not is_unnamed(name)]


def _named(X: pd.DataFrame, whole: pd.DataFrame, column: str | None) -> pd.DataFrame:
    """The rows with their names as index, if a column of the table has them."""
    if column is None:
        return X
    return X.set_axis(whole.loc[X.index, column].astype(str).rename(column), axis=0)


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
    names = [] if asked.names is None else [asked.names]
    whole = read_table(
        path, variables, as_text=labels, verbatim=names, na_values=asked.na_values, on_progress=on_progress
    )
    table = _complete(whole[[*variables, *labels]], path, asked)
    X = as_numbers(table[variables], path, if_missing=IF_MISSING)
    named = _named(X, whole, asked.names)
    if target is None:
        return named, None
    y = as_labels(table[target], path, if_missing=IF_MISSING)
    return named, _as_classes(y, classes, table.index, path)


def read_rows(
    path: TableFile, variables: list[str], wanted: Sequence[str], names: str | None
) -> list[tuple[int, str | None, pd.DataFrame]]:
    """Number, name and variables of some rows, which are asked for by name or, if they have none, by number.

    Where no name is a whole number (and 0007 is none), a number is that of a row all the same.
    """
    found: dict[str, list[tuple[int, str | None, pd.DataFrame]]] = {text: [] for text in wanted}
    by_number: dict[int, tuple[int, str | None, pd.DataFrame]] = {}
    numbers = {int(text) for text in wanted if text.isdecimal()}
    any_whole, last = False, -1
    for chunk in read_chunks(path, variables, verbatim=[] if names is None else [names]):
        of_chunk = None if names is None else chunk[names].astype(str)
        last = int(chunk.index[-1])
        if of_chunk is not None:
            any_whole = any_whole or of_chunk.str.fullmatch("0|[1-9][0-9]*").any()
            for row in chunk.index[of_chunk.isin(list(found))]:
                found[of_chunk[row]].append((row, of_chunk[row], chunk.loc[[row], variables]))
        for row in numbers & set(chunk.index):
            by_number[row] = (row, None if of_chunk is None else of_chunk[row], chunk.loc[[row], variables])
        if names is None and numbers <= by_number.keys():
            break
    rows = []
    for text in wanted:
        if not found[text]:
            if not text.isdecimal() or any_whole:
                raise ValueError(_no_such_row(path, text, names))
            if int(text) not in by_number:
                raise ValueError(f"{path} has rows 0 to {last}, and no row {int(text)}.")
        rows += found[text] or [by_number[int(text)]]
    return [(row, name, as_numbers(sample, path)) for row, name, sample in rows]


def _no_such_row(path: TableFile, text: str, names: str | None) -> str:
    if names is None:
        return f"{path}: --row {text!r} is no number of a row, and the model knows no column that names rows."
    return f"{path} has no row whose {names!r} is {text!r}."


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

"""Variables, classes and groups of a table, as the options of the command line ask for them.

What a user should know of it is a warning, which the command line tells as a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from corral.array_types import Bools
from corral.cli.formats import TableFile
from corral.cli.labels import as_classes, as_groups, as_labels, note_labels_like_missing
from corral.cli.options import Missing
from corral.cli.shared import listed, note
from corral.cli.tables import (
    MISSING,
    is_index,
    missing_rows,
    near_name,
    read_chunks,
    read_table,
    text_columns,
)
from corral.cli.variables import ModelVariables, learnt_variables
from corral.sentences.tables import group_is_target, target_left_out


def training_rows(
    file: TableFile,
    target: str,
    *,
    ids: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    group: str | None = None,
    categorical: Sequence[str] = (),
    numeric_only: bool = False,
    missing: Missing = "keep",
    na_values: Sequence[str] = (),
    least_rows: int = 1,
) -> tuple[pd.DataFrame, NDArray[Any], NDArray[Any] | None]:
    """Variables, classes and groups, if a column has them, of rows to learn from.

    The first of `ids` names the rows. Rows of classes with fewer than `least_rows` rows are left out.
    """
    left_out = [*(ids or ()), *(drop or ()), *([] if group is None else [group])]
    if target == group:
        raise ValueError(f"--{group_is_target(target)}")
    if target in left_out:
        raise ValueError(target_left_out(target))
    check_names(file, (target, *left_out, *categorical))
    candidates = [
        name for name in file.columns if name not in (target, *left_out) and not is_index(name, file)
    ]
    texts = {name: [*MISSING, *na_values] for name in categorical}
    texts |= _roles(na_values, target, group, ids[0] if ids else None)
    whole = read_table(file, candidates, texts, na_values)
    variables = _usable(whole[candidates], file, categorical, numeric_only=numeric_only)
    table = _complete(whole[[*variables, target, *([] if group is None else [group])]], file, missing, target)
    y = as_labels(table[target], file)
    if least_rows > 1:
        compared = [*variables, target] if group is None else [group, target]
        unit = "rows, copies not counted" if group is None else "groups"
        kept = _large_classes(y, ~table.duplicated(compared).to_numpy(), least_rows, unit)
        table, y = table[kept], y[kept]
    X = learnt_variables(table[_filled(variables, table)], file, categorical)
    note_labels_like_missing(y)
    groups = None if group is None else as_groups(table[group], file)
    if groups is not None and len(set(groups)) == 1:
        raise ValueError(f"{file}: all rows are of one group {group!r}, {groups[0]!r}: two are needed.")
    return _named(X, whole, ids[0] if ids else None), y, groups


def new_rows(
    file: TableFile,
    variables: ModelVariables,
    target: str | None,
    classes: NDArray[Any],
    *,
    group: str | None,
    names: str | None,
    missing: Missing,
) -> tuple[pd.DataFrame, NDArray[Any] | None, NDArray[Any] | None]:
    """Variables of a model and, if there is a target, which of its classes rows have, and their groups."""
    texts = variables.texts | _roles(variables.na_values, target, group, names)
    whole = read_table(file, variables.names, texts, variables.na_values)
    others = [name for name in (target, group) if name is not None]
    table = _complete(whole[[*variables.names, *others]], file, missing, target)
    X = _named(variables.read(table, file), whole, names)
    variables.note_unknown_levels()
    variables.note_empty_columns()
    if target is None:
        return X, None, None
    y = as_classes(as_labels(table[target], file), classes, table.index, file)
    return X, y, None if group is None else as_groups(table[group], file)


def _roles(
    na_values: Sequence[str], target: str | None, group: str | None, names: str | None
) -> dict[str, list[str]]:
    """Columns read as text: "NA" may be a class or a group, and every text may name a row."""
    missing_in = {names: [], target: ["", *na_values], group: ["", *na_values]}
    return {name: markers for name, markers in missing_in.items() if name is not None}


def read_rows(
    file: TableFile, variables: ModelVariables, wanted: Sequence[str], names: str | None
) -> list[tuple[int, str | None, pd.DataFrame]]:
    """Number, name and variables of some rows, which are asked for by name or, if they have none, by number.

    Where no name is a whole number (and 0007 is none), a number is that of a row all the same.
    """
    numbers = {int(text) for text in wanted if text.isdecimal()}
    takes_numbers, n_rows, parts = True, 0, []
    texts = variables.texts | _roles((), None, None, names)
    for chunk in read_chunks(file, variables.names, texts, variables.na_values):
        n_rows += len(chunk)
        if names is None:
            parts.append(chunk[chunk.index.isin(numbers)])
            if all(number < n_rows for number in numbers):
                break
        else:
            parts.append(chunk[chunk.index.isin(numbers) | chunk[names].astype(str).isin(wanted)])
            is_whole = chunk[names].astype(str).str.fullmatch("0|[1-9][0-9]*")
            takes_numbers = takes_numbers and not is_whole.any()
    table = pd.concat(parts)
    called = table[names].astype(str) if names is not None else table.index.astype(str)
    found: list[int] = []
    for text in wanted:
        rows = table.index[called == text]
        if rows.empty and not (text.isdecimal() and takes_numbers):
            raise ValueError(_no_such_row(file, text, names))
        if rows.empty and int(text) >= n_rows:
            raise ValueError(f"{file} has rows 0 to {n_rows - 1}, and no row {int(text)}.")
        found += rows.tolist() or [int(text)]
    return [
        (row, None if names is None else called[row], variables.read(table.loc[[row]], file)) for row in found
    ]


def _no_such_row(file: TableFile, text: str, names: str | None) -> str:
    if names is None:
        return f"{file}: --row {text!r} is not a row number, and the model has no column that names rows."
    advice = "; where ids are whole numbers, --row takes ids only, not numbers of rows" * text.isdecimal()
    return f"{file} has no row whose {names!r} is {text!r}{advice}."


def check_names(file: TableFile, names: Sequence[str]) -> None:
    """Refuse a name that no column has, and say which may be meant."""
    for name in names:
        if name not in file.columns:
            near = near_name(name, file.columns)
            hint = f"did you mean {near!r}?" if near else f"it has {listed(file.columns)}."
            raise ValueError(f"{file} has no column {name!r}; {hint}")


def _usable(
    table: pd.DataFrame, file: TableFile, categorical: Sequence[str], *, numeric_only: bool
) -> list[str]:
    """Names of the columns that have names and values, and are numeric if others are to be left out."""
    usable = []
    for name in table.columns:
        if not name.startswith(("Unnamed: ", "__index_level_")):  # as pandas calls those without a name
            usable.append(name)
        elif table[name].isna().all():  # a separator may end each row
            note(f"left out column {name!r}, which has no name and is empty.")
        else:
            raise ValueError(
                f"{file} has a column without a name: name it, or leave it out by --drop '{name}'."
            )
    if numeric_only:
        text = [name for name in text_columns(table[usable]) if name not in categorical]
        if text:
            note(f"left out, because not numeric: {listed(text)}")
        usable = [name for name in usable if name not in text]
    usable = _filled(usable, table)
    if not usable:
        raise ValueError(f"{file} has no variables beside the target.")
    return usable


def _filled(names: Iterable[str], table: pd.DataFrame) -> list[str]:
    """Names of the columns that have a value; a note names the others."""
    empty = [name for name in names if table[name].isna().all()]
    if empty:
        note(f"left out, because empty in all rows: {listed(empty)}")
    return [name for name in names if name not in empty]


def _named(X: pd.DataFrame, whole: pd.DataFrame, column: str | None) -> pd.DataFrame:
    """The rows with their names as index, if a column of the table has them."""
    if column is None:
        return X
    return X.set_axis(whole.loc[X.index, column].astype(str).rename(column), axis=0)


def _complete(table: pd.DataFrame, file: TableFile, missing: Missing, target: str | None) -> pd.DataFrame:
    """The rows that lack nothing, or no class, if others are to be left out; they keep their numbers."""
    if missing == "drop-rows":
        lacking, what = missing_rows(table), "lack a value"
        if lacking.all():
            empty = [name for name in table.columns if table[name].isna().all()]
            why = f": {listed(empty)} {'is' if len(empty) == 1 else 'are'} empty" if empty else ""
            raise ValueError(f"{file} has no row without missing values{why}.")
    elif missing == "drop-unlabelled" and target is not None:
        lacking, what = missing_rows(table[[target]]), "have no class"
    else:
        return table
    if not lacking.any() or lacking.all():  # a target without any value is refused elsewhere
        return table
    note(f"left out {lacking.sum()} of {len(table)} rows, which {what}; training rows keep their numbers.")
    return table[~lacking]


def _large_classes(y: NDArray[Any], distinct: Bools, least_rows: int, unit: str) -> Bools:
    """Which rows are of classes of enough `distinct` rows; a note names the others and the unit counted."""
    classes, codes, n_rows = np.unique(y, return_inverse=True, return_counts=True)
    counts = np.bincount(codes[distinct], minlength=classes.size)
    small = counts < least_rows
    if small.any() and small.sum() > classes.size - 2:
        raise ValueError(
            f"--drop-small-classes {least_rows} would leave {(~small).sum()} of {classes.size} classes, and "
            "two are needed."
        )
    if small.any():
        shown = [f"{label!r} ({n})" for label, n in zip(classes[small].tolist(), counts[small], strict=True)]
        note(
            f"left out {n_rows[small].sum()} of {y.size} rows, which are of classes of fewer than "
            f"{least_rows} {unit}: {listed(shown, str)}; training rows keep their numbers."
        )
    kept: Bools = ~small[codes]
    return kept

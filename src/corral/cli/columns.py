"""Select the training rows or the new rows of a table according to the options of the command line.

A note is printed if rows or columns are left out.
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
    """Return the variables, the labels and the groups of training rows; groups are None if `group` is None.

    The first column of `ids` becomes the index. Classes are left out if they have fewer than `least_rows`
    rows, not counting duplicates, or fewer than `least_rows` groups if `group` is given.
    """
    left_out = [*(ids or ()), *(drop or ()), *([] if group is None else [group])]
    check_roles(file, target, group, left_out)
    check_names(file, categorical)
    columns = [name for name in file.columns if name not in (target, *left_out) and not is_index(name, file)]
    texts = {name: [*MISSING, *na_values] for name in categorical}
    texts |= _role_columns(na_values, target, group, ids[0] if ids else None)
    rows = read_table(file, columns, texts, na_values)
    variables = _usable(rows[columns], file, categorical, numeric_only=numeric_only)
    table = _complete(rows[[*variables, target, *([] if group is None else [group])]], file, missing, target)
    y = as_labels(table[target], file)
    if least_rows > 1:
        compared = [*variables, target] if group is None else [group, target]
        what = "rows, duplicates not counted" if group is None else "groups"
        kept = _in_large_classes(y, ~table.duplicated(compared).to_numpy(), least_rows, what)
        table, y = table[kept], y[kept]
    X = learnt_variables(table[_filled(variables, table)], file, categorical)
    note_labels_like_missing(y)
    groups = None if group is None else as_groups(table[group], file)
    if groups is not None and len(set(groups)) == 1:
        raise ValueError(
            f"{file}: all rows have the same value, {groups[0]!r}, in the group column {group!r}: at least "
            "two groups are needed."
        )
    return _named(X, rows, ids[0] if ids else None), y, groups


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
    """Return the variables, labels and groups of new rows; labels or groups are None without their column."""
    texts = variables.texts | _role_columns(variables.na_values, target, group, names)
    rows = read_table(file, variables.names, texts, variables.na_values)
    others = [name for name in (target, group) if name is not None]
    table = _complete(rows[[*variables.names, *others]], file, missing, target)
    X = _named(variables.read(table, file), rows, names)
    variables.note_unknown_categories()
    variables.note_empty_columns()
    if target is None:
        return X, None, None
    y = as_classes(as_labels(table[target], file), classes, table.index, file)
    return X, y, None if group is None else as_groups(table[group], file)


def _role_columns(
    na_values: Sequence[str], target: str | None, group: str | None, names: str | None
) -> dict[str, list[str]]:
    """Return what counts as missing in ids, labels and groups: "NA" may be an id, a class or a group."""
    missing = {names: [], target: ["", *na_values], group: ["", *na_values]}
    return {name: texts for name, texts in missing.items() if name is not None}


def read_rows(
    file: TableFile, variables: ModelVariables, wanted: Sequence[str], names: str | None
) -> list[tuple[int, str | None, pd.DataFrame]]:
    """Return the row number, the id and the variables of each wanted row, which is given as id or row number.

    `names` is the column of ids; None if rows have no ids. If any id in the table is a whole number (0007 is
    not), row numbers are not accepted.
    """
    numbers = {int(text) for text in wanted if text.isdecimal()}
    takes_numbers, n_rows, parts = True, 0, []
    texts = variables.texts | _role_columns((), None, None, names)
    for chunk in read_chunks(file, variables.names, texts, variables.na_values):
        n_rows += len(chunk)
        is_wanted = chunk.index.isin(numbers)
        if names is not None:
            chunk_names = chunk[names].astype(str)
            is_wanted |= chunk_names.isin(wanted).to_numpy()
            takes_numbers = takes_numbers and not chunk_names.str.fullmatch("0|[1-9][0-9]*").any()
        parts.append(chunk[is_wanted])
        if names is None and max(numbers, default=-1) < n_rows:
            break
    table = pd.concat(parts)
    row_names = table[names].astype(str) if names is not None else table.index.astype(str)
    rows: list[int] = []
    for text in wanted:
        matches = table.index[row_names == text].tolist()
        if not matches:
            matches = [_row_number(text, file, names, n_rows, takes_numbers=takes_numbers)]
        rows += matches
    return [
        (row, None if names is None else row_names[row], variables.read(table.loc[[row]], file))
        for row in rows
    ]


def _row_number(text: str, file: TableFile, names: str | None, n_rows: int, *, takes_numbers: bool) -> int:
    """Convert a text to a row number; raise ValueError if it is not the number of a row of the table."""
    if text.isdecimal() and takes_numbers:
        if int(text) < n_rows:
            return int(text)
        raise ValueError(f"{file} has rows 0 to {n_rows - 1}, and no row {int(text)}.")
    if names is None:
        raise ValueError(f"{file}: --row {text!r} is not a row number, and the model has no id column.")
    advice = "; if the ids are whole numbers, only ids are accepted, not row numbers" * text.isdecimal()
    raise ValueError(f"{file} has no row with the id {text!r} in column {names!r}{advice}.")


def check_roles(file: TableFile, target: str | None, group: str | None, left_out: Sequence[str]) -> None:
    """Raise ValueError if a column does not exist, or if the target is also the group or left out."""
    if target is not None and target == group:
        raise ValueError(f"--{group_is_target(target)}")
    if target is not None and target in left_out:
        raise ValueError(target_left_out(target))
    check_names(file, left_out if target is None else [target, *left_out])


def check_names(file: TableFile, names: Sequence[str]) -> None:
    """Raise ValueError for the name of a missing column, with the most similar name as a suggestion."""
    for name in names:
        if name not in file.columns:
            near = near_name(name, file.columns)
            hint = f"did you mean {near!r}?" if near else f"it has {listed(file.columns)}."
            raise ValueError(f"{file} has no column {name!r}; {hint}")


def _usable(
    table: pd.DataFrame, file: TableFile, categorical: Sequence[str], *, numeric_only: bool
) -> list[str]:
    """Return the names of the columns that can be variables; columns without a name or a value cannot."""
    usable = []
    for name in table.columns:
        if not name.startswith(("Unnamed: ", "__index_level_")):  # how pandas calls unnamed columns
            usable.append(name)
        elif table[name].isna().all():  # as if each line ends with a separator
            note(f"left out column {name!r}, which has no name and is empty.")
        else:
            raise ValueError(
                f"{file} has a column without a name: add a name, or leave the column out by --drop '{name}'."
            )
    if numeric_only:
        text = [name for name in text_columns(table[usable]) if name not in categorical]
        if text:
            note(f"left out columns that are not numeric: {listed(text)}.")
        usable = [name for name in usable if name not in text]
    usable = _filled(usable, table)
    if not usable:
        raise ValueError(f"{file} has no columns left that can be variables.")
    return usable


def _filled(names: Iterable[str], table: pd.DataFrame) -> list[str]:
    """Return the names of the columns that have a value; print a note about empty columns."""
    empty = [name for name in names if table[name].isna().all()]
    if empty:
        note(f"left out columns that are empty in all rows: {listed(empty)}.")
    return [name for name in names if name not in empty]


def _named(X: pd.DataFrame, rows: pd.DataFrame, column: str | None) -> pd.DataFrame:
    """Return the variables with the ids of the rows as index; unchanged if `column` is None."""
    if column is None:
        return X
    return X.set_axis(rows.loc[X.index, column].astype(str).rename(column), axis=0)


def _complete(table: pd.DataFrame, file: TableFile, missing: Missing, target: str | None) -> pd.DataFrame:
    """Return the table without the rows that the option `missing` drops."""
    if missing == "drop-rows":
        is_dropped, what = missing_rows(table), "lack a value"
        if is_dropped.all():
            empty = [name for name in table.columns if table[name].isna().all()]
            why = f": {listed(empty)} {'is' if len(empty) == 1 else 'are'} empty" if empty else ""
            raise ValueError(f"{file} has no row without missing values{why}.")
    elif missing == "drop-unlabelled" and target is not None:
        is_dropped, what = missing_rows(table[[target]]), "have no class"
    else:
        return table
    if not is_dropped.any() or is_dropped.all():  # `as_labels` refuses a target without any value
        return table
    note(
        f"left out {is_dropped.sum()} of {len(table)} rows, which {what}; the other rows keep their numbers."
    )
    return table[~is_dropped]


def _in_large_classes(y: NDArray[Any], is_distinct: Bools, least_rows: int, what: str) -> Bools:
    """Return whether the class of each row (n_rows,) has at least `least_rows` distinct rows or groups.

    A note lists the smaller classes. `what` is the text for what is counted: rows or groups.
    """
    classes, codes, n_rows = np.unique(y, return_inverse=True, return_counts=True)
    counts = np.bincount(codes[is_distinct], minlength=classes.size)
    small = counts < least_rows
    if small.any() and small.sum() > classes.size - 2:
        raise ValueError(
            f"--drop-small-classes {least_rows} would leave {(~small).sum()} of {classes.size} classes, but "
            "at "
            "least two are needed."
        )
    if small.any():
        shown = [f"{label!r} ({n})" for label, n in zip(classes[small].tolist(), counts[small], strict=True)]
        note(
            f"left out {n_rows[small].sum()} of {y.size} rows, whose classes have fewer than {least_rows} "
            f"{what}: {listed(shown, str)}; the other rows keep their numbers."
        )
    kept: Bools = ~small[codes]
    return kept

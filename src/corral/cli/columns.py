"""Variables and classes of a table, as the options of the command line ask for them.

What a user should know of it is a warning, which the command line tells as a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Integers
from corral.cli.formats import TableFile
from corral.cli.options import Missing
from corral.cli.shared import note
from corral.cli.tables import (
    as_labels,
    is_index,
    is_unnamed,
    may_mean_missing,
    missing_rows,
    read_chunks,
    read_table,
    refuse_missing,
    table_columns,
    text_columns,
)
from corral.cli.variables import (
    IF_TEXT,
    ModelVariables,
    as_numbers,
    columns_of_levels,
    learnt_variables,
    refuse_lost_digits,
)
from corral.sentences import listed as first_names

if TYPE_CHECKING:
    import pandas as pd

IF_MISSING = "leave such rows out by --missing drop-rows"
IF_UNLABELLED = "leave such rows out by --missing drop-unlabelled"
MOST_NAMED = 12


@dataclass(frozen=True)
class Asked:
    """What a user says of a table.

    Attributes
    ----------
    left_out : columns that are no variables.
    numeric_only : whether to leave columns out that are not numeric.
    categorical : columns whose values are levels, whatever they look like.
    complete : whether to take nothing but numbers without gaps.
    missing : which rows to leave out: those without a class, those that lack any value, or none.
    na_values : what stands for a missing value, besides the usual.
    least_rows : fewest rows of a class; those of smaller ones are left out.
    names : column that names rows, if there is one.
    group : column that names what rows belong to, if there is one.
    """

    left_out: Sequence[str] = ()
    numeric_only: bool = False
    categorical: Sequence[str] = ()
    complete: bool = False
    missing: Missing = Missing.keep
    na_values: Sequence[str] = ()
    least_rows: int = 1
    names: str | None = None
    group: str | None = None


class Training(NamedTuple):
    """Rows to learn from.

    Attributes
    ----------
    X : variables, in columns of floats and of categories.
    y : (n_rows,) classes.
    groups : (n_rows,) names of what rows belong to, if a column has them.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    groups: NDArray[Any] | None


def training_rows(
    path: TableFile, target: str, asked: Asked, on_progress: Callable[[float], None]
) -> Training:
    """Rows to learn from; `on_progress` is called with the share of the file that has been read."""
    from corral.evaluation.splits import Units

    if target in (*asked.left_out, asked.group):
        raise ValueError(f"the target, {target!r}, cannot be left out.")
    columns = table_columns(path)
    group = [] if asked.group is None else [asked.group]
    check_names(path, (target, *asked.left_out, *group, *asked.categorical), columns)
    options: dict[str, Any] = {
        "as_text": [target, *group],
        "verbatim": [asked.names] if asked.names and asked.names != asked.group else [],
        "na_values": asked.na_values,
        "on_progress": on_progress,
    }
    others = (target, *asked.left_out, *group)
    candidates = [name for name in columns if name not in others and not is_index(name, path)]
    whole = read_table(path, candidates, **options)
    variables = _usable(whole[candidates], path, asked)
    table = _complete(whole[[*variables, target, *group]], path, asked, target)
    y = as_labels(table[target], path, IF_UNLABELLED)
    kept = _large_classes(y, np.arange(y.size), asked.least_rows)
    table, y = table[kept], y[kept]
    X = _variables_of(table[variables], path, asked, options)
    if asked.least_rows > 1:  # again, without copies: only of rows that are sound it is known which are some
        kept = _large_classes(y, Units.of(X, y).distinct, asked.least_rows)
        table, y = table[kept], y[kept]
        X = X if kept.all() else _variables_of(table[variables], path, asked, options)
    _note_labels_like_gaps(y)
    groups = None if asked.group is None else _groups(table[asked.group], path)
    if groups is not None and len(set(groups)) == 1:
        raise ValueError(f"{path}: all rows are of one group {asked.group!r}, {groups[0]!r}: two are needed.")
    return Training(_named(X, whole, asked.names), y, groups)


def _variables_of(
    table: pd.DataFrame, path: TableFile, asked: Asked, options: Mapping[str, Any]
) -> pd.DataFrame:
    """The variables of rows to learn from, which are read again by `options` where columns hold levels.

    Columns may have lost all their values with rows that were left out.
    """
    table = table[_filled(table.columns, table)]
    refuse_lost_digits(table[[name for name in table.columns if name not in asked.categorical]], path)
    if asked.complete:
        return as_numbers(table, path, if_text=IF_TEXT, if_missing=IF_MISSING)
    levels = columns_of_levels(table, path, asked.categorical)
    if levels and not path.is_typed:  # as they are written: some may have been read as numbers
        table = read_table(path, table.columns, levels=levels, **options).loc[table.index, table.columns]
    return learnt_variables(table, path, levels, IF_MISSING)


def _usable(table: pd.DataFrame, path: TableFile, asked: Asked) -> list[str]:
    """Names of the columns that have names and values, and are numeric if others are to be left out."""
    named = _named_columns(table, list(table.columns), path)
    if asked.numeric_only:
        text = [name for name in text_columns(table[named]) if name not in asked.categorical]
        if text:
            note(f"left out, because not numeric: {listed(text)}")
        named = [name for name in named if name not in text]
    usable = _filled(named, table)
    if not usable:
        raise ValueError(f"{path} has no variables beside the target.")
    return usable


def _filled(names: Iterable[str], table: pd.DataFrame) -> list[str]:
    """Names of the columns that have a value; of others a warning tells."""
    empty = [name for name in names if table[name].isna().all()]
    if empty:
        note(f"left out, because empty in all rows: {listed(empty)}")
    return [name for name in names if name not in empty]


def _groups(column: pd.Series[Any], path: TableFile) -> NDArray[Any]:
    """Names of what rows belong to; all rows must have one."""
    refuse_missing(column, "group", path, IF_MISSING)
    names: NDArray[Any] = column.astype(str).to_numpy(object)
    return names


def _named_columns(table: pd.DataFrame, variables: Sequence[str], path: TableFile) -> list[str]:
    """The variables that have names; of the others, empty ones are left out: a separator may end each row."""
    for name in filter(is_unnamed, variables):
        if not table[name].isna().all():
            raise ValueError(
                f"{path} has a column without a name: name it, or leave it out by --drop '{name}'."
            )
        note(f"left out column {name!r}, which has no name and is empty.")
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
    variables: ModelVariables,
    target: str | None,
    classes: NDArray[Any],
    asked: Asked,
    on_progress: Callable[[float], None],
) -> tuple[pd.DataFrame, NDArray[Any] | None, NDArray[Any] | None]:
    """Variables of a model and, if there is a target, which of its classes rows have, and their groups."""
    labels = [] if target is None else [target]
    group = [] if asked.group is None else [asked.group]
    names = [] if asked.names is None else [asked.names]
    whole = read_table(
        path,
        variables.names,
        levels=list(variables.levels),
        as_text=[*labels, *group],
        verbatim=[name for name in names if name not in group],
        na_values=asked.na_values,
        on_progress=on_progress,
    )
    table = _complete(whole[[*variables.names, *labels, *group]], path, asked, target)
    named = _named(variables.read(table, path, IF_MISSING), whole, asked.names)
    variables.note_what_was_met()
    if target is None:
        return named, None, None
    y = as_labels(table[target], path, IF_UNLABELLED)
    groups = None if asked.group is None else _groups(table[asked.group], path)
    return named, _as_classes(y, classes, table.index, path), groups


def read_rows(
    path: TableFile,
    variables: ModelVariables,
    wanted: Sequence[str],
    na_values: Sequence[str],
    names: str | None,
) -> list[tuple[int, str | None, pd.DataFrame]]:
    """Number, name and variables of some rows, which are asked for by name or, if they have none, by number.

    Where no name is a whole number (and 0007 is none), a number is that of a row all the same.
    """
    found: dict[str, list[tuple[int, str | None, pd.DataFrame]]] = {text: [] for text in wanted}
    by_number: dict[int, tuple[int, str | None, pd.DataFrame]] = {}
    numbers = {int(text) for text in wanted if text.isdecimal()}
    any_whole, last = False, -1
    for chunk in read_chunks(
        path,
        variables.names,
        levels=list(variables.levels),
        verbatim=[] if names is None else [names],
        na_values=na_values,
    ):
        of_chunk = None if names is None else chunk[names].astype(str)
        last = int(chunk.index[-1])
        if of_chunk is not None:
            any_whole = any_whole or of_chunk.str.fullmatch("0|[1-9][0-9]*").any()
            for row in chunk.index[of_chunk.isin(list(found))]:
                found[of_chunk[row]].append((row, of_chunk[row], chunk.loc[[row]]))
        for row in numbers & set(chunk.index):
            by_number[row] = (row, None if of_chunk is None else of_chunk[row], chunk.loc[[row]])
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
    return [(row, name, variables.read(sample, path)) for row, name, sample in rows]


def _no_such_row(path: TableFile, text: str, names: str | None) -> str:
    if names is None:
        return f"{path}: --row {text!r} is no number of a row, and the model knows no column that names rows."
    said = f"{path} has no row whose {names!r} is {text!r}"
    if text.isdecimal():
        said += "; where ids are whole numbers, --row takes ids only, not numbers of rows"
    return f"{said}."


def class_called(text: str | None, classes: NDArray[Any]) -> Any:
    """The class that is written like that."""
    if text is None:
        return None
    for label in classes:
        if str(label) == text:
            return label
    raise ValueError(f"there is no class {text!r}; there are {listed(classes.tolist())}.")


def listed(names: Sequence[Any], show: Callable[[Any], str] = repr) -> str:
    """The first of some names, more than findings list."""
    return first_names(names, show, MOST_NAMED)


def _meant(name: str, columns: Sequence[str]) -> str:
    """The columns that a user may have meant, or else all."""
    near = get_close_matches(name.casefold(), [column.casefold() for column in columns], n=1)
    if near:
        return f"did you mean {next(column for column in columns if column.casefold() == near[0])!r}?"
    return f"it has {listed(columns)}."


def _note_labels_like_gaps(y: NDArray[Any]) -> None:
    """Tell of labels that may stand for a missing one."""
    for label in np.unique(y).tolist() if y.dtype.kind == "U" else ():
        if may_mean_missing(label):
            note(
                f"the label {label!r}, in {(y == label).sum()} of {y.size} rows, counts as a class; if it "
                f"stands for a missing value, say so by --na-values {label!r}."
            )


def _complete(table: pd.DataFrame, path: TableFile, asked: Asked, target: str | None) -> pd.DataFrame:
    """The rows that lack nothing, or no class, if others are to be left out; they keep their numbers."""
    if asked.missing is Missing.drop_rows:
        lacking, what = missing_rows(table), "lack a value"
        if lacking.all():
            empty = [name for name in table.columns if table[name].isna().all()]
            why = f": {listed(empty)} {'is' if len(empty) == 1 else 'are'} empty" if empty else ""
            raise ValueError(f"{path} has no row without missing values{why}.")
    elif asked.missing is Missing.drop_unlabelled and target is not None:
        lacking, what = missing_rows(table[[target]]), "have no class"
    else:
        return table
    if not lacking.any() or lacking.all():  # a target without any value is refused elsewhere
        return table
    note(
        f"left out {lacking.sum()} of {len(table)} rows, which {what}; training rows are counted without "
        "them."
    )
    return table[~lacking]


def _large_classes(y: NDArray[Any], distinct: Integers, least_rows: int) -> Bools:
    """Which rows are of classes of enough rows, of which the `distinct` ones count; others are told of."""
    classes, codes, n_rows = np.unique(y, return_inverse=True, return_counts=True)
    counts = np.bincount(codes[distinct], minlength=classes.size)
    small = counts < least_rows
    if small.any() and small.sum() > classes.size - 2:
        raise ValueError(
            f"--drop-small-classes {least_rows} would leave {(~small).sum()} of {classes.size} classes, and "
            "two are needed."
        )
    if small.any():
        of_small = zip(classes[small].tolist(), counts[small], n_rows[small], strict=True)
        shown = [
            f"{label!r} ({n})" if n == n_all else f"{label!r} ({n}, {n_all} with copies)"
            for label, n, n_all in of_small
        ]
        note(
            f"left out {n_rows[small].sum()} of {y.size} rows, which are of classes of fewer than "
            f"{least_rows} rows: {listed(shown, str)}; training rows are counted without them."
        )
    kept: Bools = ~small[codes]
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

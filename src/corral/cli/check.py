"""`corral check`: what in a table is likely to be a mistake, before anything is fitted to it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.app import program
from corral.cli.options import (
    AsJson,
    Categorical,
    Decimal,
    Drop,
    Encoding,
    Group,
    Ids,
    NaValues,
    Quiet,
    Separator,
    TablePath,
)
from corral.cli.shared import note

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral.checking.findings import Finding

# The column of labels that is added to a table; a name with a null character is no column of a file.
_LABELS = "\0labels"

# What corral fit tells of itself, or refuses.
_TOLD_BY_FIT = ("copies", "groups", "missing labels", "text among numbers")

# The option of corral fit that deals with a kind of finding.
_OPTIONS = {
    "dates": "--drop",
    "neither numbers nor text": "--drop",
    "constant": "--drop",
    "mostly empty": "--drop",
    "gives the label away": "--drop",
    "many levels": "--drop",
    "identifier": "--id",
    "names groups": "--group",
    "repeated ids": "--group",
    "sentinel": "--na-values",
    "text among numbers": "--na-values",
    "numbers with a comma": "--decimal ','",
    "missing labels": "--missing drop-unlabelled",
    "few rows": "--drop-small-classes 10",
    "near duplicates": "--group",
}


@program.command(
    short_help="Look for mistakes in a table.",
    epilog="\b\nExamples:\n  corral check penguins.csv --target species\n"
    "  corral check visits.xlsx -t diagnosis --id visit --group patient",
)
def check(
    table: TablePath,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COLUMN", help="Column with the classes, if there is one."),
    ] = None,
    ids: Ids = None,
    group: Group = None,
    drop: Drop = None,
    categorical: Categorical = None,
    na_values: NaValues = None,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Look for mistakes in a table, and say what to do about each.

    Among them are columns that name rows, are constant, nearly empty or give the label away, duplicates and
    near duplicates of rows, labels and levels that differ by case or spaces, numbers like -999 that stand for
    nothing, classes of few rows, text among numbers, numbers with units or marks of thousands, dates, and ids
    that repeat. 'corral fit' notes them as well. The answer also says which columns are levels, and where
    values are missing; neither is a mistake.
    """
    import numpy as np

    from corral.checking.table import check_table
    from corral.cli.columns import check_names
    from corral.cli.console import Output, kinds_in_words
    from corral.cli.formats import open_table
    from corral.cli.tables import is_index, read_table, table_columns

    out = Output(as_json, quiet)
    file = open_table(table, sep, decimal, encoding)
    columns, dropped = table_columns(file), drop or ()
    named = [name for name in (target, *(ids or ()), group) if name is not None]
    check_names(file, [*named, *dropped, *(categorical or ())], columns)
    if target in dropped:
        raise ValueError(f"the target, {target!r}, cannot be left out.")
    columns = [name for name in columns if name in named or not (name in dropped or is_index(name, file))]
    categorical = [name for name in categorical or () if name in columns]
    with out.share(f"Read {file.name}") as on_progress:
        whole = read_table(
            file,
            columns,
            levels=categorical,
            as_text=named,
            na_values=na_values or (),
            on_progress=on_progress,
        )
    infinite = [
        name for name in whole.columns if whole[name].dtype.kind == "f" and np.isinf(whole[name]).any()
    ]
    if infinite and not file.is_typed:  # as they are written, such as 1e400
        whole[infinite] = read_table(file, infinite, levels=infinite, na_values=na_values or ())
    with out.waiting("Look at the table"):
        found = check_table(whole, target, ids=ids or (), group=group, categorical=categorical)
    sentences = [sentence_of(finding) for finding in found]
    told = f"{len(found)} finding{'s' * (len(found) != 1)} in {len(whole)} rows and {len(columns)} columns"
    told += f" of {file}" + ("" if found else ": nothing to mend was found")
    facts: dict[str, Any] = {"table": str(file), "rows": len(whole), "columns": len(columns)}
    facts |= _kinds(whole.drop(columns=named), categorical)
    out.answer(
        {**facts, "findings": [_data(*pair) for pair in zip(found, sentences, strict=True)]},
        [told],
        [told, *(f"- {sentence}" for sentence in sentences), *kinds_in_words(facts)],
    )


def _kinds(variables: pd.DataFrame, categorical: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many levels columns have that hold levels, and how many values are missing, by column."""
    from corral.checking.columns import content_of

    levels = {
        str(name): int(column.nunique())
        for name, column in variables.items()
        if name in categorical or content_of(column).kind == "levels"
    }
    gaps = {name: int(n) for name, n in variables.isna().sum().items() if n}
    return {"levels": levels, "gaps": gaps}


def note_findings(
    X: pd.DataFrame,
    y: NDArray[Any],
    groups: NDArray[Any] | None = None,
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> None:
    """Tell of mistakes in rows that a classifier is fitted to, as far as nothing else does.

    `groups` are what the rows belong to, and `group` the column that says so, which is none of X; the columns
    of `categorical` are levels, whatever they look like. The index may name rows.
    """
    from corral.checking.table import check_table

    table = X if group is None else X.assign(**{group: groups})
    ids = [] if group is not None or X.index.name is None else [X.index.name]
    table = table.assign(**dict.fromkeys(ids, X.index))
    table = table.assign(**{_LABELS: y})
    for finding in check_table(table, _LABELS, ids=ids, group=group, categorical=categorical):
        if finding.kind not in _TOLD_BY_FIT:
            note(sentence_of(finding))


def sentence_of(finding: Finding) -> str:
    """What was found and what to do, with the option of `corral fit` that does it."""
    option = _option(finding)
    return f"{finding.found}: {finding.advice}{f' ({option})' if option else ''}."


def _option(finding: Finding) -> str:
    option = _OPTIONS.get(finding.kind, "")
    if option in ("--drop", "--id", "--group") and finding.columns:
        return _repeated(option, finding.columns)
    return _repeated(option, finding.values) if option == "--na-values" else option


def _repeated(option: str, values: Sequence[str]) -> str:
    """The option with each of a few values; of many, it alone."""
    if len(values) > 3:
        return option
    return " ".join(f"{option} {shlex.quote(value)}" for value in values)


def _data(finding: Finding, sentence: str) -> dict[str, Any]:
    return {"kind": finding.kind, "columns": finding.columns, "rows": finding.rows, "sentence": sentence}

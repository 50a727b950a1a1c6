"""`corral check`: what in a table is likely to be a mistake, before anything is fitted to it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corral.cli import options
from corral.cli.app import program
from corral.cli.shared import note
from corral.sentences.numbers import counted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral.checking.findings import Finding

# The column of labels that is added to a table; a name with a null character is no column of a file.
_LABELS = "\0labels"

# What corral fit tells of itself, or refuses.
_TOLD_BY_FIT = ("copies", "dates", "groups", "missing labels", "text among numbers")

# The option of corral fit that deals with a kind of finding.
_OPTIONS = {
    **dict.fromkeys(("times", "neither numbers nor text", "constant"), "--drop"),
    **dict.fromkeys(("mostly empty", "gives the label away", "many levels"), "--drop"),
    **dict.fromkeys(("names groups", "repeated ids", "near duplicates"), "--group"),
    **dict.fromkeys(("sentinel", "text among numbers"), "--na-values"),
    "identifier": "--id",
    "numbers with a comma": "--decimal ','",
    "missing labels": "--missing drop-unlabelled",
    "few rows": "--drop-small-classes 10",
}


@program.command(
    short_help="Look for mistakes in a table.",
    epilog="\b\nExamples:\n  corral check penguins.csv --target species\n"
    "  corral check visits.xlsx -t diagnosis --id visit --group patient",
)
def check(
    table: options.TablePath,
    target: options.OptionalTarget = None,
    ids: options.Ids = None,
    group: options.Group = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    na_values: options.NaValues = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Look for mistakes in a table, and say what to do about each.

    Among them are columns that name rows, are constant, nearly empty or give the label away, duplicates and
    near duplicates of rows, labels and levels that differ by case or spaces, numbers like -999 that stand for
    nothing, classes of few rows, text among numbers, numbers with units or marks of thousands, dates, and ids
    that repeat. 'corral fit' notes them as well. The answer also says which columns are levels, and where
    values are missing; neither is a mistake.
    """
    from corral.checking.table import check_table
    from corral.cli.columns import check_names
    from corral.cli.console import Output, kinds_in_words
    from corral.cli.tables import MISSING, is_index, open_table, read_table

    out = Output(as_json, quiet)
    file = open_table(table, sep, decimal, encoding)
    dropped, categorical, gaps = drop or (), categorical or [], na_values or []
    named = [name for name in (target, *(ids or ()), group) if name is not None]
    check_names(file, [*named, *dropped, *categorical])
    if target in dropped:
        raise ValueError(f"the target, {target!r}, cannot be left out.")
    others = [name for name in file.columns if name in dropped or is_index(name, file)]
    columns = [name for name in file.columns if name in named or name not in others]
    categorical = [name for name in categorical if name in columns]
    texts = {name: [*MISSING, *gaps] for name in categorical} | {name: ["", *gaps] for name in named}
    with out.progress(f"Read {file.name}"):
        whole = read_table(file, columns, texts, gaps)
    with out.progress("Look at the table"):
        found = check_table(whole, target, ids=ids or (), group=group, categorical=categorical)
    sentences = [sentence_of(finding) for finding in found]
    told = f"{counted(len(found), 'finding')} in {len(whole)} rows and {len(columns)} columns of {file}"
    told += "" if found else ": nothing to mend was found"
    facts: dict[str, Any] = {"table": str(file), "rows": len(whole), "columns": len(columns)}
    facts |= _kinds(whole.drop(columns=named), categorical)
    facts["findings"] = [
        {"kind": finding.kind, "columns": finding.columns, "rows": finding.rows, "sentence": sentence}
        for finding, sentence in zip(found, sentences, strict=True)
    ]
    out.answer(facts, [told], [told, *(f"- {sentence}" for sentence in sentences), *kinds_in_words(facts)])


def _kinds(variables: pd.DataFrame, categorical: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many different values dates and levels have, and how many values are missing, by column."""
    from corral.checking.columns import content_of
    from corral.cli.variables import holds_dates

    dates = [name for name, column in variables.items() if name not in categorical and holds_dates(column)]
    counts = {
        str(name): int(column.nunique())
        for name, column in variables.items()
        if name in categorical or name in dates or content_of(column).kind == "levels"
    }
    levels = {name: n for name, n in counts.items() if name not in dates}
    kinds = {"levels": levels, "dates": {str(name): counts[str(name)] for name in dates}}
    return kinds | {"gaps": {name: int(n) for name, n in variables.isna().sum().items() if n}}


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
    option = _OPTIONS.get(finding.kind, "")
    values = finding.values if option == "--na-values" else finding.columns
    if option in ("--drop", "--id", "--group", "--na-values") and 0 < len(values) <= 3:  # of more, it alone
        option = " ".join(f"{option} {shlex.quote(value)}" for value in values)
    return f"{finding.found}: {finding.advice}{f' ({option})' if option else ''}."

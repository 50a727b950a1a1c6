"""`corral check`: what in a table is likely to be a mistake, before anything is fitted to it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corral.cli import options
from corral.cli.app import program
from corral.cli.shared import note
from corral.sentences.numbers import counted
from corral.sentences.tables import group_is_target, target_left_out

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral.checking.findings import Finding

# The column of labels that is added to a table; a name with a null character is no column of a file.
_LABELS = "\0labels"

# What corral fit tells of itself, or refuses, or takes as it is.
_TOLD_BY_FIT = (
    "duplicates",
    "dates",
    "groups",
    "missing labels",
    "text among numbers",
    "text and numbers",
)

# The option of corral fit that deals with a kind of finding.
_OPTIONS = {
    **dict.fromkeys(("dates", "times", "neither numbers nor text", "constant", "functions"), "--drop"),
    **dict.fromkeys(("mostly empty", "leakage", "many categories"), "--drop"),
    **dict.fromkeys(("names groups", "nearly unique ids", "likely groups"), "--group or --drop"),
    **dict.fromkeys(("repeated ids", "near duplicates"), "--group"),
    **dict.fromkeys(("sentinel", "text among numbers", "zeros"), "--na-values"),
    "identifier": "--id",
    "numbers with a comma": "--decimal ','",
    "missing labels": "--missing drop-unlabelled",
    "few rows": "--drop-small-classes 10",
    "classes of one group": "--drop-small-classes 2",
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

    Among them are ids, likely groups, dates, leakage, duplicates and near duplicates, mixed units, numbers
    that stand for missing values, labels that are misspelled or contradicted by all other rows, columns that
    are constant, nearly empty or repeat another one, text among numbers, short rows, and rows in order of
    class or time. The answer lists all that was looked for. 'corral fit' notes what needs no model. The
    answer also says which columns are levels, and where values are missing; neither is a mistake.
    """
    from corral.checking.findings import LOOKED_FOR
    from corral.checking.table import check_table
    from corral.cli.columns import check_names
    from corral.cli.console import Output, kinds_in_words
    from corral.cli.short_rows import short_rows
    from corral.cli.tables import MISSING, is_index, open_table, read_table

    out = Output(as_json, quiet)
    file = open_table(table, sep, decimal, encoding)
    dropped, categorical, gaps = drop or (), categorical or [], na_values or []
    named = [name for name in (target, *(ids or ()), group) if name is not None]
    check_names(file, [*named, *dropped, *categorical])
    if target is not None and target == group:
        raise ValueError(f"--{group_is_target(target)}")
    if target is not None and target in dropped:
        raise ValueError(target_left_out(target))
    others = [name for name in file.columns if name in dropped or is_index(name, file)]
    columns = [name for name in file.columns if name in named or name not in others]
    categorical = [name for name in categorical if name in columns]
    texts = {name: [*MISSING, *gaps] for name in categorical} | {name: ["", *gaps] for name in named}
    with out.progress(f"Read {file.name}"):
        whole = read_table(file, columns, texts, gaps)
    with out.progress("Look at the table"):
        findings = [*short_rows(file)]
        findings += check_table(whole, target, ids=ids or (), group=group, categorical=categorical)
    sentences = [sentence_of(finding, group) for finding in findings]
    told = f"{counted(len(findings), 'finding')} in {len(whole)} rows and {len(columns)} columns of {file}"
    counting = "rows are counted from 0, without the line of names"
    facts: dict[str, Any] = {"table": str(file), "rows": len(whole), "columns": len(columns)}
    facts |= _kinds(whole.drop(columns=named), categorical)
    facts["findings"] = [
        {"kind": finding.kind, "columns": finding.columns, "rows": finding.rows, "sentence": sentence}
        for finding, sentence in zip(findings, sentences, strict=True)
    ]
    facts["looked_for"] = LOOKED_FOR
    told_more = [counting] if findings else []
    told_more += [*kinds_in_words(facts), f"looked for: {'; '.join(LOOKED_FOR)}"]
    out.answer(facts, [told], [told, *(f"- {sentence}" for sentence in sentences), *told_more])


def _kinds(variables: pd.DataFrame, categorical: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many different values dates and levels have, and how many values are missing, by column."""
    from corral.checking.columns import content_of
    from corral.checking.dates import dated_columns

    dates = dated_columns(variables, categorical)
    counts = {
        str(name): int(column.nunique())
        for name, column in variables.items()
        if name in categorical or name in dates or content_of(column).kind == "categories"
    }
    categories = {name: n for name, n in counts.items() if name not in dates}
    kinds = {"levels": categories, "dates": {str(name): counts[str(name)] for name in dates}}
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
    from corral.checking.table import table_findings

    table = X if group is None else X.assign(**{group: groups})
    ids = [] if group is not None or X.index.name is None else [X.index.name]
    table = table.assign(**dict.fromkeys(ids, X.index))
    table = table.assign(**{_LABELS: y})
    findings = table_findings(table, _LABELS, ids=ids, group=group, categorical=categorical, thorough=False)
    for finding in findings:
        if finding.kind not in _TOLD_BY_FIT:
            note(sentence_of(finding, group))


def sentence_of(finding: Finding, group: str | None = None) -> str:
    """What was found and what to do, with the option of `corral fit` that does it; `group` is its --group."""
    option = _OPTIONS.get(finding.kind, "")
    if finding.kind == "few rows" and group is not None:  # the option would count groups
        option = ""
    values = finding.values if option == "--na-values" else finding.columns
    if finding.kind == "zeros" and not values:  # the option would hold for other columns, too
        option = ""
    elif option.partition(" ")[0] in ("--drop", "--id", "--group", "--na-values") and 0 < len(values) <= 3:
        names = option.split(" or ")
        option = ", or ".join(" ".join(f"{name} {shlex.quote(value)}" for value in values) for name in names)
    return f"{finding.description}: {finding.advice}{f' ({option})' if option else ''}."

"""`corral check`: findings about a table before a fit. `corral fit` prints some of the findings as notes."""

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

# Name of the column of labels that is added to a table. The null character avoids an existing name.
_LABELS = "\0labels"

# Kinds of findings for which `corral fit` has a note or an error of its own, or that do not matter to a fit.
_HANDLED_BY_FIT = (
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
    short_help="Check a table for likely errors.",
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
    """Check a table for likely errors, and advise what to do about each finding.

    The command looks for ids, likely groups, dates, leakage, duplicates and near duplicates, mixed units,
    numbers that stand for missing values, labels that are misspelled or improbable, columns that are
    constant, mostly empty or computable from another column, text among numbers, short rows, and rows that
    are sorted by class or time. The output ends with the list of all checks. 'corral fit' prints the
    findings that need no model as notes, except the findings that it handles itself. The output also lists
    columns of categories and missing values, which are not findings.
    """
    from corral.checking.findings import LOOKED_FOR
    from corral.checking.table import check_table
    from corral.cli.columns import check_names, check_roles
    from corral.cli.console import Output, counts_in_words
    from corral.cli.short_rows import short_rows
    from corral.cli.tables import MISSING, is_index, open_table, read_table

    out = Output(as_json, quiet)
    file = open_table(table, sep, decimal, encoding)
    drop, na_values = drop or [], na_values or []
    named = [name for name in (target, *(ids or ()), group) if name is not None]
    check_roles(file, target, group, [*(ids or ()), *drop, *([] if group is None else [group])])
    check_names(file, categorical or ())
    others = [name for name in file.columns if name in drop or is_index(name, file)]
    columns = [name for name in file.columns if name in named or name not in others]
    categorical = [name for name in categorical or () if name in columns]
    texts = {name: [*MISSING, *na_values] for name in categorical}
    texts |= {name: ["", *na_values] for name in named}
    with out.progress(f"Read {file.name}"):
        rows = read_table(file, columns, texts, na_values)
    with out.progress("Check the table"):
        findings = [*short_rows(file)]
        findings += check_table(rows, target, ids=ids or (), group=group, categorical=categorical)
    sentences = [sentence_of(finding, group) for finding in findings]
    title = f"{counted(len(findings), 'finding')} in {len(rows)} rows and {len(columns)} columns of {file}"
    facts: dict[str, Any] = {"table": str(file), "rows": len(rows), "columns": len(columns)}
    facts |= _kinds(rows.drop(columns=named), categorical)
    facts["findings"] = [
        {"kind": finding.kind, "columns": finding.columns, "rows": finding.rows, "sentence": sentence}
        for finding, sentence in zip(findings, sentences, strict=True)
    ]
    facts["looked_for"] = LOOKED_FOR
    notes = ["rows are counted from 0; the line of column names is not counted"] if findings else []
    notes += [*counts_in_words(facts), f"looked for: {'; '.join(LOOKED_FOR)}"]
    out.answer(facts, [title], [title, *(f"- {sentence}" for sentence in sentences), *notes])


def _kinds(variables: pd.DataFrame, categorical: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the numbers of categories, of different dates and of missing values by column, without zeros."""
    from corral.checking.columns import content_of
    from corral.checking.dates import dated_columns

    dates = dated_columns(variables, categorical)
    categories = [
        name
        for name, column in variables.items()
        if name not in dates and (name in categorical or content_of(column).kind == "categories")
    ]
    return {
        "categories": {str(name): variables[name].nunique() for name in categories},
        "dates": {str(name): variables[name].nunique() for name in dates},
        "missing_values": {str(name): int(n) for name, n in variables.isna().sum().items() if n},
    }


def note_findings(
    X: pd.DataFrame,
    y: NDArray[Any],
    groups: NDArray[Any] | None = None,
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> None:
    """Print findings about the training rows as notes, except the kinds that `corral fit` handles itself.

    Parameters
    ----------
    X : (n_rows, n_variables) the variables; a named index contains the ids of the rows.
    y : (n_rows,) labels.
    groups : (n_rows,) group of each row; None if there are no groups.
    group : name of the column of groups, which is not in X.
    categorical : columns whose values are categories even if they look like numbers.
    """
    from corral.checking.table import table_findings

    table = X if group is None else X.assign(**{group: groups})
    ids = [] if group is not None or X.index.name is None else [X.index.name]
    table = table.assign(**dict.fromkeys(ids, X.index))
    table = table.assign(**{_LABELS: y})
    findings = table_findings(table, _LABELS, ids=ids, group=group, categorical=categorical, thorough=False)
    for finding in findings:
        if finding.kind not in _HANDLED_BY_FIT:
            note(sentence_of(finding, group))


def sentence_of(finding: Finding, group: str | None = None) -> str:
    """Return the finding, the advice and the option of `corral fit` that carries out the advice.

    `group` is the column given to --group, None if there is none.
    """
    option = _OPTIONS.get(finding.kind, "")
    if (
        finding.kind == "few rows" and group is not None
    ):  # with --group, this option counts groups instead of rows
        option = ""
    values = finding.values if option == "--na-values" else finding.columns
    if finding.kind == "zeros" and not values:  # the option would also apply to other columns
        option = ""
    elif option.partition(" ")[0] in ("--drop", "--id", "--group", "--na-values") and 0 < len(values) <= 3:
        names = option.split(" or ")
        option = ", or ".join(" ".join(f"{name} {shlex.quote(value)}" for value in values) for name in names)
    return f"{finding.description}: {finding.advice}{f' ({option})' if option else ''}."

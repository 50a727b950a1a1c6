"""`corral predict`: labels and probabilities of a table that may be larger than memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli import options
from corral.cli.app import program
from corral.cli.shared import STANDARD_STREAM, check_different, load_classifier, naming_column, note, threads
from corral.sentences.numbers import counted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral.array_types import Floats, Integers
    from corral.estimators.evaluated_rows import EvaluatedRows


# Novel rows that are explained, if they are more than chance makes: enough to see what they have in common.
_MOST_EXPLAINED = 50

_OUT_TEXT = "Table to write, in the format of its name, as TABLE; - is the standard output, as CSV."
_SET_TEXT = (
    "Also write which labels a row may have: sets that hold the right one with about this probability, such "
    "as 0.9, in each class."
)
_COSTS_TEXT = (
    "Also write the label of least expected cost. FILE is a table with the true classes in its first column "
    "and the classes to decide for in its header."
)
_TYPICALITY_TEXT = (
    "Whether to write how typical rows are, and which are novel. It takes about as long as the probabilities."
)
_KEEP_TEXT = "Also write all columns of TABLE, before the others."
_FORMULAS_TEXT = (
    "In a .csv or .tsv file, put an apostrophe before text that a spreadsheet may run as a formula."
)


@program.command(
    short_help="Write labels and probabilities of a table's rows.",
    epilog="\b\nExample:\n  corral predict penguins.corral new.csv --out labels.csv",
)
def predict(
    model: options.ModelPath,
    table: options.TablePath,
    to: Annotated[
        Path, options.output_option("--out", "-o", text=_OUT_TEXT, callback=options.output_or_stream)
    ],
    ids: options.Ids = None,
    keep: Annotated[bool, typer.Option("--keep", help=_KEEP_TEXT)] = False,
    coverage: Annotated[float | None, typer.Option("--set", metavar="COVERAGE", help=_SET_TEXT)] = None,
    costs: Annotated[
        Path | None,
        typer.Option("--costs", metavar="FILE", help=_COSTS_TEXT, callback=options.input_file),
    ] = None,
    reject_cost: Annotated[
        float | None,
        typer.Option("--reject-cost", metavar="COST", help="What it costs not to decide (with --costs)."),
    ] = None,
    typicality: Annotated[bool, typer.Option("--typicality/--no-typicality", help=_TYPICALITY_TEXT)] = True,
    missing: options.MissingInNewRows = "keep",
    na_values: options.NaValues = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    quote_formulas: Annotated[bool, typer.Option("--quote-formulas", help=_FORMULAS_TEXT)] = False,
    jobs: options.Jobs = 1,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the label and the probability of each class for every row, in the order of the table.

    Of class densities two more columns say how typical a row is of the class that it is most typical of (the
    share of training rows that are at most so) and whether it is novel: less typical than 99 in 100 training
    rows of all classes. About 1 in 100 rows that are like the training rows is novel, too. If more are, it is
    said by which variables, such as one in other units.

    Rows are read and written in chunks, so the table may be larger than memory. FILE is replaced when
    all rows are done, and not before; what goes to the standard output stops where an error is met. An Excel
    file is read whole. If no --id is given, the column that 'corral fit --id' was given is kept. If rows are
    left out and no column names the others, one numbers them. Columns are read as the model knows them; a
    level that no training row has counts as missing.
    """
    import pandas as pd

    from corral.cli.console import Output
    from corral.cli.tables import missing_rows, open_table, read_chunks
    from corral.cli.writing import (
        PREDICTIONS,
        check_kinds,
        formula_in,
        note_replaced,
        without_formulas,
        without_points,
        writing_table,
    )

    out = Output(as_json, quiet)
    check_different(model, table, to)
    check_kinds((to, PREDICTIONS))
    fitted, variables = load_classifier(model, table, na_values)
    _check_asked(fitted, model, coverage, costs, reject_cost)
    judges = typicality and hasattr(fitted, "assess")
    matrix = None if costs is None else read_costs(costs, fitted.classes_)
    file = open_table(table, sep, decimal, encoding)
    known = naming_column(fitted, file)
    kept = _kept_columns(
        ids or ([known] if known else []), variables.names, model, file.columns if keep else ()
    )
    drops = missing == "drop-rows"
    columns, n_rows, n_left_out, formula = [], 0, 0, None
    novel = _NovelRows()
    start = time.perf_counter()
    texts = variables.texts | {name: [] for name in kept if name not in variables.names}
    with writing_table(to) as add, threads(jobs), out.progress("Predict", total=1.0) as advance:
        for chunk in read_chunks(file, variables.names, texts, variables.na_values, on_progress=advance):
            rows = chunk[~missing_rows(chunk[variables.names])] if drops else chunk
            n_left_out += len(chunk) - len(rows)
            if not len(rows):
                continue
            n_rows += len(rows)
            X = variables.read(rows, file)
            answers, evaluated = _answers(
                fitted, X, judges=judges, coverage=coverage, costs=matrix, reject_cost=reject_cost
            )
            if judges:
                novel.add(evaluated, answers["novel"].to_numpy().nonzero()[0])
            written = pd.concat([without_points(rows[kept], to), _renamed(answers, kept)], axis=1)
            if drops and not kept:  # or nobody could tell which rows are there
                written.insert(0, "row", rows.index)
            if quote_formulas:
                written = without_formulas(written, to)
            formula = formula or formula_in(written, to)
            columns = list(written.columns)
            add(written)
        if n_rows == 0:
            raise ValueError(f"{file} has no row without missing values.")
        note_replaced(to)
    variables.note_unknown_levels()
    variables.note_empty_columns()
    _note_rows(n_rows, n_left_out, formula, to)
    novelty, why_novel = novel.sentences(fitted, n_rows) if judges else ([], "")
    if to == STANDARD_STREAM:
        return
    seconds = time.perf_counter() - start
    facts = {
        "rows": n_rows,
        "left_out": n_left_out,
        "unknown_levels": {name: counts.total() for name, counts in variables.unknown.items()},
        "novel": novel.n_rows if judges else None,
        "why_novel": why_novel,
        "seconds": seconds,
        "columns": columns,
        "out": to,
    }
    done = f"{counted(n_rows, 'row')} in {seconds:.1f} s; labels and probabilities are in {to}"
    out.answer(facts, [], [done, *novelty])


class _NovelRows:
    """Novel rows of all chunks: how many, and the first of them."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._first: list[EvaluatedRows] = []

    def add(self, rows: EvaluatedRows, novel: Integers) -> None:
        """Keep some of the novel rows of a chunk, by their positions."""
        kept = novel[: max(_MOST_EXPLAINED - self.n_rows, 0)]
        self._first += [rows.take(kept)] if kept.size else []
        self.n_rows += novel.size

    def sentences(self, fitted: Any, n_rows: int) -> tuple[list[str], str]:
        """Say how many rows of a table are novel, and note why if they are more than chance makes."""
        from corral.estimators.evaluated_rows import novelty_sentences

        number, *why = novelty_sentences(
            fitted,
            self.n_rows,
            n_rows,
            lambda: [each for rows in self._first for each in rows.unlike_values()],
        )
        for sentence in why:
            note(sentence)
        return [number], " ".join(why)


def _note_rows(n_rows: int, n_left_out: int, formula: str | None, to: Path) -> None:
    """Tell of rows that were left out, and of text that is a formula."""
    if n_left_out:
        note(f"left out {n_left_out} of {n_rows + n_left_out} rows, which lack a value.")
    if formula:
        note(
            f"{'the output' if to == STANDARD_STREAM else to} holds text that a spreadsheet may run as a "
            f"formula, such as {formula[:40]!r}; --quote-formulas writes an apostrophe before it."
        )


def _kept_columns(
    ids: Sequence[str], variables: Sequence[str], model: Path, others: Sequence[str]
) -> list[str]:
    """Check columns that name rows, and return them and others; each once."""
    for name in ids:
        if name in variables:
            raise ValueError(
                f"{name!r} is a variable of {model}, so it does not name rows; "
                f"to fit a model without it, give corral fit the option --id {name!r}."
            )
    return list(dict.fromkeys([*ids, *others]))


def _renamed(answers: pd.DataFrame, kept: Sequence[str]) -> pd.DataFrame:
    """Answers whose columns have names unlike those that are kept."""
    while set(answers.columns) & set(kept):
        answers = answers.add_prefix("predicted_")
    if answers.columns[0] != "label":
        note(f"the label is in the column {answers.columns[0]!r}, because names of kept columns are taken.")
    return answers


def _check_asked(
    fitted: Any, model: Path, coverage: float | None, costs: Path | None, reject_cost: float | None
) -> None:
    """Refuse what a model cannot answer, before any work."""
    from corral.estimators.decisions import check_reject_cost
    from corral.estimators.validation import check_number

    if coverage is not None:
        if not hasattr(fitted, "assess"):
            kind = type(fitted).__name__
            raise ValueError(f"{model} holds {kind}, and --set needs a model of class densities.")
        check_number("--set", coverage, 0.0, 1.0, inclusive=True)
    if reject_cost is not None:
        if costs is None:
            raise ValueError("--reject-cost needs --costs: what wrong labels cost.")
        check_reject_cost("--reject-cost", reject_cost)


def _answers(
    fitted: Any,
    X: pd.DataFrame,
    *,
    judges: bool,
    coverage: float | None,
    costs: Floats | None,
    reject_cost: float | None,
) -> tuple[pd.DataFrame, Any]:
    """Answer for some rows, whose densities are evaluated once, and are returned if they are.

    If it `judges`, it says how typical rows are; `coverage` asks for sets of labels, and `costs` (n_classes,
    n_classes) for decisions.
    """
    import pandas as pd

    from corral.estimators.assessment import probability_columns
    from corral.estimators.decisions import least_costly
    from corral.estimators.evaluated_rows import evaluate_rows

    rows = evaluate_rows(fitted, X) if judges or coverage is not None else None
    proba = fitted.predict_proba(X) if rows is None else rows.proba
    classes = fitted.classes_
    answers = probability_columns(classes, proba)
    if rows is not None and judges:
        assessment = rows.assessment()
        answers |= {"typicality": assessment.nearest_typicality, "novel": assessment.is_novel}
    if rows is not None and coverage is not None:
        sets = zip(classes.tolist(), rows.prediction_sets(coverage).T, strict=True)
        answers |= {f"in_set_{label}": column for label, column in sets}
    if costs is not None:
        answers["decision"] = least_costly(proba, costs, classes, reject_cost)
    return pd.DataFrame(answers, index=X.index), rows


def read_costs(path: Path, classes: NDArray[Any]) -> Floats:
    """Costs from a table with the true classes in its first column and those to decide for in its header."""
    from corral.cli.tables import open_table, read_table
    from corral.estimators.decisions import check_costs

    file = open_table(path)
    columns = file.columns
    table = read_table(file, columns, {columns[0]: []})
    called = {str(label): label for label in classes.tolist()}
    costs = table[columns[1:]]
    costs.index = [called.get(str(name), name) for name in table[columns[0]]]
    costs.columns = [called.get(name, name) for name in columns[1:]]
    try:
        return check_costs(costs, classes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None

"""`corral predict`: labels and probabilities for the rows of a table, which may be larger than memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli import options
from corral.cli.app import program
from corral.cli.options import file_option
from corral.cli.shared import STANDARD_STREAM, check_different, load_classifier, naming_column, note, threads
from corral.sentences.numbers import counted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral.array_types import Floats, Integers
    from corral.estimators.evaluated_rows import EvaluatedRows


# Number of novel rows that are explained, which is enough to see what they have in common.
_MOST_EXPLAINED = 50

_OUT_TEXT = "Table to write, in the format of its name, as TABLE; - is the standard output, as CSV."
_SET_TEXT = (
    "Also write prediction sets: labels that include the right one with about this probability, such as 0.9, "
    "in each class."
)
_COSTS_TEXT = (
    "Also write the label of least expected cost. FILE is a table with the true classes in its first column "
    "and the predicted classes in its header."
)
_REJECT_TEXT = "Cost of giving no label (with --costs)."
_TYPICALITY_TEXT = (
    "Whether to write how typical rows are, and which are novel. This takes about as long as the "
    "probabilities."
)
_KEEP_TEXT = "Also write all columns of TABLE, before the others."
_FORMULAS_TEXT = (
    "In a .csv or .tsv file, put an apostrophe before text that a spreadsheet may run as a formula."
)


@program.command(
    short_help="Write labels and probabilities for the rows of a table.",
    epilog="\b\nExample:\n  corral predict penguins.corral new.csv --out labels.csv",
)
def predict(
    model: options.ModelPath,
    table: options.TablePath,
    to: Annotated[Path, file_option("--out", "-o", text=_OUT_TEXT, callback=options.output_or_stream)],
    ids: options.Ids = None,
    keep: Annotated[bool, typer.Option("--keep", help=_KEEP_TEXT)] = False,
    coverage: Annotated[float | None, typer.Option("--set", metavar="COVERAGE", help=_SET_TEXT)] = None,
    costs: Annotated[
        Path | None, file_option("--costs", text=_COSTS_TEXT, callback=options.input_file)
    ] = None,
    reject_cost: Annotated[float | None, typer.Option(metavar="COST", help=_REJECT_TEXT)] = None,
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

    For models of class densities, two more columns are written: typicality, the share of training rows that
    are at most as typical of the class that the row is most typical of, and novel, whether the row is less
    typical than 99 in 100 training rows of all classes. About 1 in 100 rows that are like the training rows
    is novel, too. If more are, a note names the variables that make them novel, such as one in other units.

    Rows are read and written in chunks, so the table may be larger than memory; only an Excel file is read
    at once. FILE is replaced when all rows are done, and not before; the standard output ends where an error
    occurs. Without --id, the column that was given to 'corral fit --id' is kept. If rows are left out and no
    column names the others, a column of row numbers is added. The model decides what a column holds; a
    category that no training row has counts as missing.
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
    _check_options(fitted, model, coverage, costs, reject_cost)
    cost_matrix = None if costs is None else _read_costs(costs, fitted.classes_)
    predictions = _Predictions(
        fitted, typicality and hasattr(fitted, "assess"), coverage, cost_matrix, reject_cost
    )
    file = open_table(table, sep, decimal, encoding)
    kept = _id_columns(ids, naming_column(fitted, file), variables.names, model)
    kept = list(dict.fromkeys([*kept, *(file.columns if keep else ())]))
    drops_rows = missing == "drop-rows"
    columns, n_rows, n_left_out, formula = [], 0, 0, None
    start = time.perf_counter()
    texts = variables.texts | {name: [] for name in kept if name not in variables.names}
    with writing_table(to) as add, threads(jobs), out.progress("Predict", total=1.0) as advance:
        for chunk in read_chunks(file, variables.names, texts, variables.na_values, on_progress=advance):
            rows = chunk[~missing_rows(chunk[variables.names])] if drops_rows else chunk
            n_left_out += len(chunk) - len(rows)
            if not len(rows):
                continue
            n_rows += len(rows)
            added = _with_new_names(predictions.columns_of(variables.read(rows, file)), kept)
            written = pd.concat([without_points(rows[kept], to), added], axis=1)
            if drops_rows and not kept:  # otherwise nothing shows which rows are left
                written.insert(0, "row", rows.index)
            if quote_formulas:
                written = without_formulas(written, to)
            formula = formula or formula_in(written, to)
            columns = list(written.columns)
            add(written)
        if n_rows == 0:
            raise ValueError(f"{file} has no row without missing values.")
        note_replaced(to)
    variables.note_unknown_categories()
    variables.note_empty_columns()
    if n_left_out:
        note(f"left out {n_left_out} of {n_rows + n_left_out} rows, which lack a value.")
    if formula:
        _note_formula(formula, to)
    novelty = predictions.novelty(n_rows)
    for sentence in novelty[1:]:
        note(sentence)
    if to == STANDARD_STREAM:
        return
    seconds = time.perf_counter() - start
    facts = {
        "rows": n_rows,
        "left_out": n_left_out,
        "unknown_categories": {name: counts.total() for name, counts in variables.unknown.items()},
        "novel": predictions.n_novel if predictions.typicality else None,
        "why_novel": " ".join(novelty[1:]),
        "seconds": seconds,
        "columns": columns,
        "out": to,
    }
    done = f"{counted(n_rows, 'row')} in {seconds:.1f} s; labels and probabilities are in {to}"
    out.answer(facts, [], [done, *novelty[:1]])


@dataclass
class _Predictions:
    """The columns that the options ask for, chunk by chunk, and the novel rows of all chunks."""

    fitted: Any
    typicality: bool
    coverage: float | None
    costs: Floats | None  # (n_classes, n_classes)
    reject_cost: float | None
    n_novel: int = 0
    explained: list[EvaluatedRows] = field(default_factory=list)  # the first novel rows

    def columns_of(self, X: pd.DataFrame) -> pd.DataFrame:
        """Labels, probabilities and the other columns for the rows of a chunk."""
        import pandas as pd

        from corral.estimators.assessment import probability_columns
        from corral.estimators.decisions import least_costly
        from corral.estimators.evaluated_rows import evaluate_rows

        # Densities are evaluated once for all columns that need them.
        rows = evaluate_rows(self.fitted, X) if self.typicality or self.coverage is not None else None
        proba = self.fitted.predict_proba(X) if rows is None else rows.proba
        classes = self.fitted.classes_
        columns = probability_columns(classes, proba)
        if rows is not None and self.typicality:
            assessment = rows.assessment()
            columns |= {"typicality": assessment.nearest_typicality, "novel": assessment.is_novel}
            self._add_novel(rows, assessment.is_novel.nonzero()[0])
        if rows is not None and self.coverage is not None:
            sets = zip(classes.tolist(), rows.prediction_sets(self.coverage).T, strict=True)
            columns |= {f"in_set_{label}": is_in_set for label, is_in_set in sets}
        if self.costs is not None:
            columns["decision"] = least_costly(proba, self.costs, classes, self.reject_cost)
        return pd.DataFrame(columns, index=X.index)

    def _add_novel(self, rows: EvaluatedRows, positions: Integers) -> None:
        kept = positions[: max(_MOST_EXPLAINED - self.n_novel, 0)]
        self.explained += [rows.take(kept)] if kept.size else []
        self.n_novel += positions.size

    def novelty(self, n_rows: int) -> list[str]:
        """Sentences: how many of all rows are novel, and why if that is more than by chance."""
        from corral.estimators.evaluated_rows import novelty_sentences

        if not self.typicality:
            return []
        return novelty_sentences(
            self.fitted,
            self.n_novel,
            n_rows,
            lambda: [values for rows in self.explained for values in rows.unlike_values()],
        )


def _note_formula(formula: str, to: Path) -> None:
    note(
        f"{'the output' if to == STANDARD_STREAM else to} holds text that a spreadsheet may run as a "
        f"formula, such as {formula[:40]!r}; --quote-formulas writes an apostrophe before it."
    )


def _id_columns(
    ids: Sequence[str] | None, naming: str | None, variables: Sequence[str], model: Path
) -> Sequence[str]:
    """Columns that name rows, by default that of the fit; variables of the model are refused."""
    ids = ids or ([naming] if naming else [])
    for name in ids:
        if name in variables:
            raise ValueError(
                f"{name!r} is a variable of {model}, so it does not name rows; "
                f"to fit a model without it, give corral fit the option --id {name!r}."
            )
    return ids


def _with_new_names(predictions: pd.DataFrame, kept: Sequence[str]) -> pd.DataFrame:
    """Predictions with a prefix of their columns if a kept column has the name of one of them."""
    while set(predictions.columns) & set(kept):
        predictions = predictions.add_prefix("predicted_")
    label = predictions.columns[0]
    if label != "label":
        note(f"the label is in the column {label!r}, because names of kept columns are taken.")
    return predictions


def _check_options(
    fitted: Any, model: Path, coverage: float | None, costs: Path | None, reject_cost: float | None
) -> None:
    """Refuse options that the model or the other options do not allow."""
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


def _read_costs(path: Path, classes: NDArray[Any]) -> Floats:
    """Costs from a table with the true classes in its first column and the predicted ones in its header."""
    from corral.cli.tables import open_table, read_table
    from corral.estimators.decisions import check_costs

    file = open_table(path)
    columns = file.columns
    table = read_table(file, columns, {columns[0]: []})
    class_by_text = {str(label): label for label in classes.tolist()}
    costs = table[columns[1:]]
    costs.index = [class_by_text.get(str(name), name) for name in table[columns[0]]]
    costs.columns = [class_by_text.get(name, name) for name in columns[1:]]
    try:
        return check_costs(costs, classes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None

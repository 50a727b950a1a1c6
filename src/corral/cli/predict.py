"""`corral predict`: write labels and probabilities for the rows of a table."""

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


# Only so many novel rows are explained: enough to see which variables make rows novel.
_MOST_EXPLAINED = 50

_OUT_TEXT = "Table to write; its ending sets the format. - writes CSV to the standard output."
_SET_TEXT = (
    "Also write prediction sets: sets of labels that contain the right label with about this probability in "
    "each "
    "class, such as 0.9."
)
_COSTS_TEXT = (
    "Also write the label with the least expected cost. FILE is a table of costs with the true classes in "
    "its "
    "first column and the predicted classes in its header."
)
_REJECT_TEXT = "Cost of giving no label (with --costs)."
_TYPICALITY_TEXT = (
    "Whether to write the typicality of each row and whether the row is novel. This needs about as much time "
    "as "
    "the probabilities."
)
_KEEP_TEXT = "Also write all columns of TABLE, as the first columns."
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

    Models of class densities have two more columns. typicality refers to the nearest class, which has the
    highest score for the row: the share of the training rows of this class, counting the row as one of them,
    that are at most as typical of the class as the row. novel is True if the row is less typical than 99 in
    100 training rows of all classes. By chance, about 1 in 100 rows that resemble the training rows is also
    novel. If significantly more rows are novel, a note lists the variables in which they differ, for example
    because of other units.

    Rows are read and written in chunks, so the table may be larger than memory; only an Excel file is read as
    a whole. FILE is replaced when all rows are written, and stays as it is if an error occurs. Without --id,
    the column that was given to 'corral fit --id' is written. If rows are left out and no column identifies
    the other rows, a column of row numbers is added. Columns are read as numbers, categories or dates as in
    the training table; a category that no training row has counts as missing.
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
            if drops_rows and not kept:  # otherwise nothing identifies the rows that are left
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
        note(f"left out {n_left_out} of {n_rows + n_left_out} rows, which have missing values.")
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
    """Computes the columns of the output chunk by chunk, and collects novel rows."""

    fitted: Any
    typicality: bool
    coverage: float | None
    costs: Floats | None  # (n_classes, n_classes)
    reject_cost: float | None
    n_novel: int = 0
    explained: list[EvaluatedRows] = field(
        default_factory=list
    )  # the first novel rows, at most _MOST_EXPLAINED

    def columns_of(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return labels, probabilities and the columns of other options for the rows of a chunk."""
        import pandas as pd

        from corral.estimators.assessment import probability_columns
        from corral.estimators.decisions import least_costly
        from corral.estimators.evaluated_rows import evaluate_rows

        # Evaluate densities only once, because several columns need them.
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
        """Return sentences on the number of novel rows, and the reasons if they are more than by chance."""
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
        f"{'the output' if to == STANDARD_STREAM else to} contains text that a spreadsheet may run as a "
        f"formula, such as {formula[:40]!r}; --quote-formulas puts an apostrophe before such text."
    )


def _id_columns(
    ids: Sequence[str] | None, naming: str | None, variables: Sequence[str], model: Path
) -> Sequence[str]:
    """Return the id columns, by default the id column of the fit; raise ValueError for a variable."""
    ids = ids or ([naming] if naming else [])
    for name in ids:
        if name in variables:
            raise ValueError(
                f"{name!r} is a variable of {model}, so it cannot be an id; to fit a model without this "
                "variable, "
                f"use corral fit --id {name!r}."
            )
    return ids


def _with_new_names(predictions: pd.DataFrame, kept: Sequence[str]) -> pd.DataFrame:
    """Put a prefix before the names of prediction columns if a column of the table has such a name."""
    while set(predictions.columns) & set(kept):
        predictions = predictions.add_prefix("predicted_")
    label = predictions.columns[0]
    if label != "label":
        note(
            f"the label is in the column {label!r}, because TABLE has columns with the names of predictions."
        )
    return predictions


def _check_options(
    fitted: Any, model: Path, coverage: float | None, costs: Path | None, reject_cost: float | None
) -> None:
    """Raise ValueError for options that do not fit the model or other options."""
    from corral.estimators.decisions import check_reject_cost
    from corral.estimators.validation import check_number

    if coverage is not None:
        if not hasattr(fitted, "assess"):
            kind = type(fitted).__name__
            raise ValueError(f"--set needs a model of class densities, but {model} contains {kind}.")
        check_number("--set", coverage, 0.0, 1.0, inclusive=True)
    if reject_cost is not None:
        if costs is None:
            raise ValueError("--reject-cost needs --costs, the table of the costs of wrong labels.")
        check_reject_cost("--reject-cost", reject_cost)


def _read_costs(path: Path, classes: NDArray[Any]) -> Floats:
    """Read costs (n_classes, n_classes) of each true class (first column) and predicted class (header)."""
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

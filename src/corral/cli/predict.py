"""`corral predict`: labels and probabilities of a table that may be larger than memory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.app import program
from corral.cli.options import (
    AsJson,
    Decimal,
    Encoding,
    Ids,
    Jobs,
    MissingInNew,
    MissingInNewRows,
    ModelPath,
    MoreNaValues,
    Quiet,
    QuoteFormulas,
    Separator,
    TablePath,
    input_file,
    output_or_stream,
)
from corral.cli.shared import (
    STANDARD_STREAM,
    check_different,
    load_classifier,
    naming_column,
    note,
    threads,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from corral.array_types import Floats
    from corral.cli.formats import TableFile
    from corral.cli.variables import ModelVariables


@program.command(
    short_help="Write labels and probabilities of a table's rows.",
    epilog="\b\nExample:\n  corral predict penguins.corral new.csv --out labels.csv",
)
def predict(
    model: ModelPath,
    table: TablePath,
    to: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Table to write, in the format of its name, as TABLE; - is the standard output, as CSV.",
            callback=output_or_stream,
        ),
    ],
    ids: Ids = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--set",
            metavar="COVERAGE",
            help="Also write which labels a row may have: sets that hold the right one with about "
            "this probability, such as 0.9, in each class.",
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs",
            metavar="FILE",
            help="Also write the label of least expected cost. FILE is a table with the true classes in its "
            "first column and the classes to decide for in its header.",
            callback=input_file,
        ),
    ] = None,
    reject_cost: Annotated[
        float | None,
        typer.Option("--reject-cost", metavar="COST", help="What it costs not to decide (with --costs)."),
    ] = None,
    typicality: Annotated[
        bool,
        typer.Option(
            "--typicality/--no-typicality",
            help="Whether to write how typical rows are, and which are novel. It takes about as long "
            "as the probabilities.",
        ),
    ] = True,
    missing: MissingInNewRows = MissingInNew.keep,
    na_values: MoreNaValues = None,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quote_formulas: QuoteFormulas = False,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the label and the probability of each class for every row, in the order of the table.

    Of class densities two more columns say how typical a row is of the class that it is most typical of (the
    share of training rows that are at most so) and whether it is novel: less typical than 99 in 100 training
    rows of all classes. The label of a novel row means little.

    Rows are read and written in chunks, so the table may be larger than memory. FILE is replaced when
    all rows are done, and not before; what goes to the standard output stops where an error is met. An Excel
    file is read whole. If no --id is given, the column that 'corral fit --id' was given is kept. If rows are
    left out and no column names the others, one numbers them. Columns are read as the model knows them; a
    level that no training row has counts as missing.
    """
    import pandas as pd

    from corral.cli.console import Output
    from corral.cli.formats import open_table
    from corral.cli.outputs import PREDICTIONS, check_kinds, note_replaced
    from corral.cli.tables import table_columns
    from corral.cli.writing import formula_in, without_formulas, writing_table

    out = Output(as_json, quiet)
    check_different(model, table, to)
    check_kinds((None if to == STANDARD_STREAM else to, PREDICTIONS))
    fitted, variables = load_classifier(model)
    file = open_table(table, sep, decimal, encoding)
    known = naming_column(fitted, table_columns(file))
    kept = _kept_columns(ids or ([known] if known else []), variables.names, model)
    answers = Answers.of(
        fitted, model, typicality=typicality, coverage=coverage, costs=costs, reject_cost=reject_cost
    )
    added = _added_columns(answers.columns, kept)
    numbered = missing is MissingInNew.drop_rows and not kept  # or nobody could tell which rows are there

    def labelled(chunk: pd.DataFrame) -> pd.DataFrame:
        found = answers.of_rows(chunk[variables.names])
        rows = pd.DataFrame(dict(zip(added, found, strict=True)), index=chunk.index)
        if numbered:
            rows.insert(0, "row", chunk.index)
        rows = pd.concat([chunk[kept], rows], axis=1)
        return without_formulas(rows, to) if quote_formulas else rows

    gaps = variables.gap_marks(na_values)
    formula = formula_in(pd.DataFrame({"label": fitted.classes_}), to)
    start, n_rows, n_left_out = time.perf_counter(), 0, 0
    with writing_table(to) as add, threads(jobs), out.share("Predict") as on_progress:
        for n_lacking, chunk in _chunks(file, variables, kept, missing, gaps, on_progress):
            n_left_out += n_lacking
            n_rows += len(chunk)
            if len(chunk):
                add(labelled(chunk))
                formula = formula or formula_in(chunk[kept], to)
        if n_rows == 0:
            raise ValueError(f"{file} has no row without missing values.")
        note_replaced(to)
    variables.note_what_was_met()
    _note_what_to_know(n_rows, n_left_out, None if quote_formulas else formula, to)
    if to == STANDARD_STREAM:
        return
    written = pd.DataFrame(columns=[*(["row"] if numbered else kept), *added])
    columns = list((without_formulas(written, to) if quote_formulas else written).columns)
    facts = {
        "rows": n_rows,
        "left_out": n_left_out,
        "unknown_levels": {name: counts.total() for name, counts in variables.unknown.items()},
        "novel": answers.n_novel if answers.judges else None,
        "seconds": time.perf_counter() - start,
        "columns": columns,
        "out": to,
    }
    out.answer(facts, [], [_sentence(facts)])


def _sentence(facts: Mapping[str, Any]) -> str:
    """Say how many rows are done, how many of them are novel, and where they are."""
    said = [f"{facts['rows']} rows in {facts['seconds']:.1f} s"]
    if facts["novel"] is not None:
        said.append(f"{facts['novel']} of them {'is' if facts['novel'] == 1 else 'are'} novel")
    return "; ".join([*said, f"labels and probabilities are in {facts['out']}"])


def _chunks(
    file: TableFile,
    variables: ModelVariables,
    kept: Sequence[str],
    missing: MissingInNew,
    na_values: Sequence[str],
    on_progress: Callable[[float], None],
) -> Iterator[tuple[int, pd.DataFrame]]:
    """How many rows of a chunk were left out because they lack a value, and what is read of the others."""
    import pandas as pd

    from corral.cli.columns import IF_MISSING
    from corral.cli.tables import missing_rows, read_chunks

    for chunk in read_chunks(
        file,
        variables.names,
        levels=list(variables.levels),
        verbatim=kept,
        na_values=na_values,
        on_progress=on_progress,
    ):
        drops = missing is MissingInNew.drop_rows
        rows = chunk[~missing_rows(chunk[variables.names])] if drops else chunk
        read = pd.concat([variables.read(rows, file, IF_MISSING), rows[[*kept]]], axis=1)
        yield len(chunk) - len(rows), read


def _note_what_to_know(n_rows: int, n_left_out: int, formula: str | None, to: Path) -> None:
    """Note rows that were left out, and text that a spreadsheet may run."""
    if n_left_out:
        note(f"left out {n_left_out} of {n_rows + n_left_out} rows, which lack a value.")
    if formula:
        note(
            f"{'the output' if to == STANDARD_STREAM else to} holds text that a spreadsheet may run as a "
            f"formula, such as {formula[:40]!r}; --quote-formulas writes an apostrophe before it."
        )


def _kept_columns(ids: Sequence[str], variables: Sequence[str], model: Path) -> list[str]:
    """Check columns that name rows; each once."""
    for name in ids:
        if name in variables:
            raise ValueError(
                f"{name!r} is a variable of {model}, so it does not name rows; "
                f"to fit a model without it, give corral fit the option --id {name!r}."
            )
    return list(dict.fromkeys(ids))


def _added_columns(columns: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Name the columns of labels and all else, unlike those that are kept."""
    added = list(columns)
    while set(added) & set(kept):
        added = [f"predicted_{name}" for name in added]
    if added[0] != "label":
        note(f"the label is in the column {added[0]!r}, because names of kept columns are taken.")
    return added


# What is written of each row


@dataclass
class Answers:
    """Columns of answers, and the number of novel rows.

    Attributes
    ----------
    fitted : the classifier.
    judges : whether typicality and novelty are written: the classifier knows them, and they are wanted.
    coverage : of sets of labels, if they are asked for.
    costs : (n_classes, n_classes) by true and decided class, if decisions are asked for.
    reject_cost : what it costs not to decide, if that may be.
    n_novel : how many of the rows answered so far are novel.
    """

    fitted: Any
    judges: bool
    coverage: float | None
    costs: Floats | None
    reject_cost: float | None
    n_novel: int = 0

    @classmethod
    def of(
        cls,
        fitted: Any,
        model: Path,
        *,
        typicality: bool,
        coverage: float | None,
        costs: Path | None,
        reject_cost: float | None,
    ) -> Answers:
        """Check what is asked for, before any work."""
        from corral.estimators.decisions import check_reject_cost
        from corral.estimators.validation import check_number

        judges = hasattr(fitted, "assess")
        if coverage is not None:
            if not judges:
                kind = type(fitted).__name__
                raise ValueError(f"{model} holds {kind}, and --set needs a model of class densities.")
            check_number("--set", coverage, 0.0, 1.0, inclusive=True)
        if reject_cost is not None and costs is None:
            raise ValueError("--reject-cost needs --costs: what wrong labels cost.")
        if reject_cost is not None:
            check_reject_cost("--reject-cost", reject_cost)
        matrix = None if costs is None else read_costs(costs, fitted.classes_)
        return cls(fitted, judges and typicality, coverage, matrix, reject_cost)

    @property
    def columns(self) -> list[str]:
        """Their names."""
        labels = self.fitted.classes_.tolist()
        columns = ["label", *(f"p_{label}" for label in labels)]
        if self.judges:
            columns += ["typicality", "novel"]
        if self.coverage is not None:
            columns += [f"in_set_{label}" for label in labels]
        return columns if self.costs is None else [*columns, "decision"]

    def of_rows(self, X: pd.DataFrame) -> list[NDArray[Any]]:
        """Answer for some rows."""
        from corral.estimators.decisions import least_costly

        fitted = self.fitted
        judged = fitted.assess(X) if self.judges else None
        proba = fitted.predict_proba(X) if judged is None else judged.proba
        found = [fitted.classes_[proba.argmax(axis=1)], *proba.T]
        if judged is not None:
            self.n_novel += int(judged.is_novel.sum())
            found += [judged.typicality.max(axis=1), judged.is_novel]
        if self.coverage is not None:
            found += [*fitted.predict_set(X, self.coverage).T]
        if self.costs is not None:
            found.append(least_costly(proba, self.costs, fitted.classes_, self.reject_cost))
        return found


def read_costs(path: Path, classes: NDArray[Any]) -> Floats:
    """Costs from a table with the true classes in its first column and those to decide for in its header."""
    import numpy as np

    from corral.cli.tables import read_table, table_columns
    from corral.estimators.decisions import check_costs

    columns = table_columns(path)
    table = read_table(path, columns, verbatim=columns[:1])
    bad = [name for name in columns[1:] if table[name].dtype.kind not in "fiu"]
    if bad:
        raise ValueError(f"{path}: column {bad[0]!r} must hold costs, which are numbers.")
    called = {str(label): label for label in classes.tolist()}
    costs = table[columns[1:]].astype(np.float64)
    costs.index = [called.get(str(name), name) for name in table[columns[0]]]
    costs.columns = [called.get(name, name) for name in columns[1:]]
    try:
        return check_costs(costs, classes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None

"""`corral report`: a page about a model and a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.app import program
from corral.cli.options import (
    AsJson,
    Decimal,
    Encoding,
    Goal,
    Jobs,
    Missing,
    MissingRows,
    ModelPath,
    MoreNaValues,
    Quiet,
    Seed,
    Separator,
    TablePath,
    output_or_stream,
)
from corral.cli.shared import (
    STANDARD_STREAM,
    check_different,
    load_classifier,
    naming_column,
    note,
    refuse_two_questions,
    sample_sizes,
    threads,
)

if TYPE_CHECKING:
    from corral.evaluation.held_out import HeldOut
    from corral.planning import SampleSizes

_IF_TEXT = "--tolerance needs variables that are numbers"


@program.command(
    short_help="Write a page about a model and a table.",
    epilog="\b\nExamples:\n  corral report penguins.corral new.csv\n"
    "  corral report penguins.corral new.csv --target species --tolerance 0.6 --out penguins.html",
)
def report(
    model: ModelPath,
    table: TablePath,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COLUMN", help="Column with the classes, if there is one."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE.html",
            help="Page to write, - for the standard output; by default beside MODEL.",
            callback=output_or_stream,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Add the sample-size curve down to this bound; needs --target.", min=1e-10),
    ] = None,
    goal: Goal = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that names what several rows belong to, like a patient: intervals then count these "
            "instead of rows; needs --target.",
        ),
    ] = None,
    missing: MissingRows = Missing.keep,
    na_values: MoreNaValues = None,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about a model and the rows of a table: one HTML file that needs no network.

    With --target it says how well the model does, and shows and counts only the rows of the table that are
    equal to no training row. Rows are compared in every digit, so a training row that was rounded counts as
    new. If there are no other rows, it is not known whether rows are new: all count, and the page says so.
    """
    from corral.cli.columns import IF_MISSING, Asked, check_names, new_rows
    from corral.cli.console import Output
    from corral.cli.formats import open_table
    from corral.cli.outputs import REPORT, check_kinds, note_replaced
    from corral.cli.tables import table_columns
    from corral.cli.variables import as_numbers
    from corral.evaluation.held_out import unseen_predictions
    from corral.planning import LearningCurve

    out = Output(as_json, quiet)
    if tolerance is not None and target is None:
        raise ValueError("--tolerance needs --target: the sample-size curve is made from classes.")
    if group is not None and target is None:
        raise ValueError("--group needs --target: it is for intervals of how many labels are right.")
    refuse_two_questions(tolerance, goal)
    page = model.with_suffix(".html") if to is None else to
    check_different(model, table, page)
    check_kinds((None if page == STANDARD_STREAM else page, REPORT))
    fitted, variables = load_classifier(model)
    if goal is not None:
        _check_rows_for_goal(model, fitted)
    file = open_table(table, sep, decimal, encoding)
    asked = Asked(
        missing=missing,
        na_values=variables.gap_marks(na_values),
        names=naming_column(fitted, table_columns(file)),
        group=group,
    )
    if group is not None:
        check_names(file, (group,), table_columns(file))
        if group in (target, *variables.names):
            raise ValueError(f"--group {group!r} is the target or a variable of the model.")
    with out.share(f"Read {file.name}") as on_progress:
        X, y, groups = new_rows(file, variables, target, fitted.classes_, asked, on_progress)
    held_out: HeldOut | None = None
    sizes: SampleSizes | LearningCurve | None = None
    with threads(jobs):
        if y is not None:
            held_out = unseen_predictions(fitted, X, y, groups)
            _note_which_rows_count(fitted, len(y), held_out)
        if y is not None and tolerance is not None:
            with out.waiting("Add rows step by step"):
                numbers = as_numbers(X, file, if_text=_IF_TEXT, if_missing=IF_MISSING)
                sizes = sample_sizes(numbers, y, tolerance, seed=seed)
        elif goal is not None:
            with out.waiting("Take rows away"):
                sizes = LearningCurve.from_estimator(fitted, goal=goal, random_state=seed)
        note_replaced(page)
        with out.waiting("Write the report"):
            options = {"held_out": held_out, "sample_sizes": sizes}
            _write_page(page, fitted, X, y, source=file.name, random_state=seed, **options)
    if page != STANDARD_STREAM:
        out.answer(
            {"rows": len(X), "held_out": 0 if held_out is None else len(held_out.truth), "report": page},
            [],
            [f"The report on {len(X)} rows is in {page}"],
        )


def _check_rows_for_goal(path: Path, fitted: Any) -> None:
    """Refuse a goal where a file has not kept the rows that learning curves are made of."""
    if hasattr(fitted, "model_") and not fitted.model_.has_all_rows:
        raise ValueError(
            f"--goal needs all {fitted.model_.n_rows} training rows, and {path} has not kept them all: ask "
            "'corral fit --report --goal' instead."
        )


def _write_page(page: Path, *what: Any, **options: Any) -> None:
    """Write a report to a file, or to the standard output when it is whole."""
    from corral.report import write_report

    if page != STANDARD_STREAM:
        write_report(page, *what, **options)
        return
    typer.echo(write_report(None, *what, **options).html.encode("utf-8"), nl=False)


def _note_which_rows_count(fitted: Any, n: int, held_out: HeldOut | None) -> None:
    """Say which of n rows the errors in a report are of, unless all of them are new to the model."""
    n_new = 0 if held_out is None else len(held_out.truth)
    if held_out is not None and n_new < n:
        note(
            f"{n - n_new} of {n} rows are equal to training rows, in every digit; rows and errors in the "
            f"report are those of the other {n_new}."
        )
    elif held_out is None:
        note(
            f"it is not known whether any row is new to the model, because {_why_none_is_new(fitted, n)}; "
            "errors in the report are those of all rows, and 'corral fit --report' measures on rows held out."
        )


def _why_none_is_new(fitted: Any, n: int) -> str:
    """Say why none of n rows is known to be new to a model."""
    model = getattr(fitted, "model_", None)
    if model is None:
        return f"its {type(fitted).__name__} does not keep training rows as they were"
    if not model.has_all_rows:
        return f"of its {model.n_rows} training rows the model has kept only some"
    return f"all {n} rows are equal to training rows"

"""`corral report` and `corral sample-size`: pages about a model, and how many rows classes need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral._persist.files import STANDARD_STREAM, check_different
from corral.cli.app import program
from corral.cli.options import (
    AllocationName,
    AsJson,
    Decimal,
    Drop,
    Encoding,
    Goal,
    Ids,
    Jobs,
    Missing,
    MissingRows,
    ModelPath,
    NaValues,
    NumericOnly,
    Quiet,
    Seed,
    Separator,
    TablePath,
    Target,
    output_or_stream,
)
from corral.cli.shared import learning_curve, load_classifier, naming_column, note, sample_sizes, threads

if TYPE_CHECKING:
    from corral._evaluation import HeldOut
    from corral._planning import LearningCurve, SampleSizes

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
            help="Column that names what several rows belong to, like a patient: intervals are then for new "
            "groups; needs --target.",
        ),
    ] = None,
    missing: MissingRows = Missing.keep,
    na_values: NaValues = None,
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
    equal to no training row, even when rounded. If there are none, it is not known whether rows are new: all
    count, and the page says so.
    """
    from corral._evaluation import unseen_predictions
    from corral._planning import LearningCurve
    from corral.cli.columns import IF_MISSING, Asked, check_names, new_rows
    from corral.cli.console import Output
    from corral.cli.formats import Given, open_table
    from corral.cli.outputs import REPORT, check_kinds
    from corral.cli.tables import table_columns
    from corral.cli.variables import as_numbers

    out = Output(as_json, quiet)
    if tolerance is not None and target is None:
        raise ValueError("--tolerance needs --target: the sample-size curve is made from classes.")
    if group is not None and target is None:
        raise ValueError("--group needs --target: it is for intervals of how many labels are right.")
    if tolerance is not None and goal is not None:
        raise ValueError("--tolerance and --goal ask different questions: take one of them.")
    page = model.with_suffix(".html") if to is None else to
    check_different(model, table, page)
    check_kinds((None if page == STANDARD_STREAM else page, REPORT))
    fitted, variables = load_classifier(model)
    file = open_table(table, Given.checked(sep, decimal, encoding))
    asked = Asked(
        missing=missing,
        na_values=na_values or (),
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
            _note_of_novelty(fitted, len(y), held_out)
        if y is not None and tolerance is not None:
            with out.waiting("Add rows step by step"):
                numbers = as_numbers(X, file, if_text=_IF_TEXT, if_missing=IF_MISSING)
                sizes = sample_sizes(numbers, y, tolerance, seed=seed)
        elif goal is not None:
            with out.waiting("Take rows away"):
                sizes = LearningCurve.from_estimator(fitted, goal=goal, random_state=seed)
        with out.waiting("Write the report"):
            _write_page(
                page,
                fitted,
                X,
                y,
                held_out=held_out,
                sample_sizes=sizes,
                source=file.name,
                random_state=seed,
            )
    if page != STANDARD_STREAM:
        out.answer(
            {"rows": len(X), "held_out": 0 if held_out is None else len(held_out.truth), "report": page},
            [],
            [f"The report on {len(X)} rows is in {page}"],
        )


@program.command(
    "sample-size",
    short_help="Estimate how many rows each class needs.",
    epilog="\b\nExamples:\n  corral sample-size penguins.csv --target species --goal 0.97\n"
    "  corral sample-size penguins.csv --target species --numeric-only --missing drop-rows --tolerance 0.6",
)
def sample_size(
    table: TablePath,
    target: Target,
    goal: Goal = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Run algorithm 4 instead: largest acceptable bound on the excess error; it is loose.",
            min=1e-10,
        ),
    ] = None,
    initial_size: Annotated[
        int | None,
        typer.Option(
            help="Rows of each class to start with; by default 30, or fewer of small classes.", min=1
        ),
    ] = None,
    test_size: Annotated[
        int | None,
        typer.Option("--held-out", help="Test rows of each class; by default 50, or fewer.", min=1),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="Rows added in each step; by default 30, or one per class.", min=1)
    ] = None,
    allocation: Annotated[
        AllocationName, typer.Option(help="How rows are shared out: as in the paper, or at the least bound.")
    ] = AllocationName.proportional,
    ids: Ids = None,
    drop: Drop = None,
    numeric_only: NumericOnly = False,
    missing: MissingRows = Missing.keep,
    na_values: NaValues = None,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate what more rows would bring, and how many each class needs, from those in a table.

    Rows are predicted by halves, quarters and eighths of the others, and the curve is drawn on. With
    --tolerance, algorithm 4 of the paper bounds the error of its rule instead; the four options that follow
    it are for that. It takes numbers without gaps only: --numeric-only leaves out other columns, --missing
    drop-rows such rows.
    """
    from corral.cli.columns import Asked, training_rows
    from corral.cli.console import Output, learning_curve_data, sample_size_data
    from corral.cli.formats import Given, open_table

    out = Output(as_json, quiet)
    if goal is not None and tolerance is not None:
        raise ValueError("--tolerance and --goal ask different questions: take one of them.")
    asked = Asked(
        left_out=[*(ids or ()), *(drop or ())],
        numeric_only=numeric_only,
        complete=tolerance is not None,
        missing=missing,
        na_values=na_values or (),
    )
    file = open_table(table, Given.checked(sep, decimal, encoding))
    with out.share(f"Read {file.name}") as on_progress:
        X, y, _ = training_rows(file, target, asked, on_progress)
    if tolerance is None:
        with threads(jobs), out.waiting("Take rows away"):
            curve = learning_curve(X, y, goal, seed=seed)
        lines = str(curve).split("\n")
        out.answer(learning_curve_data(curve), lines[:1], lines)
        return
    with threads(jobs), out.waiting("Add rows step by step"):
        found = sample_sizes(
            X,
            y,
            tolerance,
            seed=seed,
            initial_size=initial_size,
            test_size=test_size,
            step=step,
            allocation=allocation.value,
        )
    lines = str(found).split("\n")
    out.answer(sample_size_data(found), lines[:1], lines)


def _write_page(page: Path, *what: Any, **options: Any) -> None:
    """Write a report to a file, or to the standard output when it is whole."""
    from corral.report import write_report

    if page != STANDARD_STREAM:
        write_report(page, *what, **options)
        return
    typer.echo(write_report(None, *what, **options).html.encode("utf-8"), nl=False)


def _note_of_novelty(fitted: Any, n: int, held_out: HeldOut | None) -> None:
    """Say which of n rows the errors in a report are of, unless all of them are new."""
    n_new = 0 if held_out is None else len(held_out.truth)
    if held_out is not None and n_new < n:
        note(
            f"{n - n_new} of {n} rows may be training rows, to the digits that are written; rows and "
            f"errors in the report are those of the other {n_new}, {held_out.claim}."
        )
    elif held_out is None:
        why = (
            f"all {n} rows may be training rows, to the digits that are written"
            if hasattr(fitted, "model_")
            else f"its {type(fitted).__name__} does not keep training rows as they were"
        )
        note(
            f"it is not known whether any row is new to the model, because {why}; errors in the report are "
            "those of all rows, and 'corral fit --report' measures on rows held out."
        )

"""`corral report`: write an HTML page about a model and the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli import options
from corral.cli.app import program
from corral.cli.options import file_option
from corral.cli.sample_size import bounded_sizes, refuse_two_questions
from corral.cli.shared import STANDARD_STREAM, check_different, load_classifier, naming_column, note, threads
from corral.sentences.numbers import counted

if TYPE_CHECKING:
    from corral.evaluation.held_out import HeldOut
    from corral.planning import SampleSizes


_OUT_TEXT = "Page to write, or - for the standard output; by default MODEL with the ending .html."
_OUT = file_option("--out", "-o", text=_OUT_TEXT, metavar="FILE.html", callback=options.output_or_stream)
_TOLERANCE_TEXT = (
    "Add the sample sizes of algorithm 4 down to this bound on the excess error; needs --target."
)


@program.command(
    short_help="Write an HTML page about a model and a table.",
    epilog="\b\nExamples:\n  corral report penguins.corral new.csv\n"
    "  corral report penguins.corral new.csv --target species --tolerance 0.6 --out penguins.html",
)
def report(
    model: options.ModelPath,
    table: options.TablePath,
    target: options.OptionalTarget = None,
    to: Annotated[Path | None, _OUT] = None,
    tolerance: Annotated[float | None, typer.Option(help=_TOLERANCE_TEXT, min=1e-10)] = None,
    goal: options.Goal = None,
    group: options.Group = None,
    missing: options.MissingRows = "keep",
    na_values: options.NaValues = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about a model and the rows of a table: one HTML file that needs no network.

    With --target, the page has scores of the model, and shows only rows that differ from every training row.
    Rows are compared in every digit, so a rounded training row counts as new. If no row can be recognized as
    new, the page shows and scores all rows, with a warning. With --group, which needs --target, the intervals
    of scores treat groups instead of rows as independent.
    """
    from corral.cli.columns import check_names, new_rows
    from corral.cli.console import Output
    from corral.cli.tables import open_table
    from corral.cli.variables import as_numbers
    from corral.cli.writing import REPORT, check_kinds, note_replaced
    from corral.evaluation.held_out import unseen_predictions
    from corral.planning import LearningCurve
    from corral.report import write_report

    out = Output(as_json, quiet)
    if tolerance is not None and target is None:
        raise ValueError("--tolerance needs --target, because sample sizes are estimated from labelled rows.")
    if group is not None and target is None:
        raise ValueError("--group needs --target, because groups are used for the intervals of scores.")
    refuse_two_questions(tolerance, goal)
    page = model.with_suffix(".html") if to is None else to
    check_different(model, table, page)
    check_kinds((page, REPORT))
    fitted, variables = load_classifier(model, table, na_values)
    if goal is not None and hasattr(fitted, "model_") and not fitted.model_.has_all_rows:
        raise ValueError(
            f"--goal needs all {fitted.model_.n_rows} training rows, but {model} contains only some of them: "
            "use "
            "'corral fit --report --goal' instead."
        )
    file = open_table(table, sep, decimal, encoding)
    if group is not None:
        check_names(file, (group,))
        if group in (target, *variables.names):
            raise ValueError(
                f"--group {group!r} cannot be used: it is the target or a variable of the model."
            )
    with out.progress(f"Read {file.name}"):
        X, y, groups = new_rows(
            file,
            variables,
            target,
            fitted.classes_,
            group=group,
            names=naming_column(fitted, file),
            missing=missing,
        )
    held_out: HeldOut | None = None
    sizes: SampleSizes | LearningCurve | None = None
    with threads(jobs):
        if y is not None:
            held_out = unseen_predictions(fitted, X, y, groups)
            _note_which_rows_count(fitted, len(y), held_out)
        if y is not None and tolerance is not None:
            with out.progress("Estimate sample sizes"):
                sizes = bounded_sizes(as_numbers(X, file), y, tolerance, seed)
        elif goal is not None:
            with out.progress("Fit smaller samples"):
                sizes = LearningCurve.from_estimator(fitted, goal=goal, random_state=seed)
        note_replaced(page)
        with out.progress("Write the report"):
            shown: Any = {"held_out": held_out, "sample_sizes": sizes, "source": file.name}
            if page != STANDARD_STREAM:
                write_report(fitted, X, y, page, **shown, random_state=seed)
            else:
                content = write_report(fitted, X, y, **shown, random_state=seed)
                typer.echo(content.html.encode("utf-8"), nl=False)
                return
    out.answer(
        {"rows": len(X), "held_out": 0 if held_out is None else len(held_out.truth), "report": page},
        [],
        [f"The report on {counted(len(X), 'row')} is in {page}"],
    )


def _note_which_rows_count(fitted: Any, n: int, held_out: HeldOut | None) -> None:
    """Print a note about which of the `n` rows a report shows and scores, unless all rows are new."""
    if held_out is not None:
        n_new = len(held_out.truth)
        if n_new < n:
            note(
                f"{n - n_new} of {n} rows are equal to training rows, in every digit; the report shows and "
                f"scores only the other {counted(n_new, 'row')}."
            )
        return
    if not hasattr(fitted, "model_"):
        why = f"the {type(fitted).__name__} does not contain the original training rows"
    elif not fitted.model_.has_all_rows:
        why = f"the model contains only some of its {fitted.model_.n_rows} training rows"
    else:
        why = f"all {n} rows are equal to training rows"
    note(
        f"no row can be recognized as new to the model, because {why}; the report scores all rows. 'corral "
        "fit "
        "--report' writes a report with scores on held-out rows."
    )

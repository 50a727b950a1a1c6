"""`corral sample-size`: how many rows each class needs."""

from __future__ import annotations

from typing import Annotated

import typer

from corral.cli.app import program
from corral.cli.check import note_findings
from corral.cli.options import (
    AllocationName,
    AsJson,
    Decimal,
    Drop,
    Encoding,
    Goal,
    Group,
    Ids,
    Jobs,
    Missing,
    MissingRows,
    NaValues,
    NumericOnly,
    Quiet,
    Seed,
    Separator,
    TablePath,
    Target,
)
from corral.cli.shared import refuse_two_questions, sample_sizes, threads


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
        AllocationName | None,
        typer.Option(
            help="How rows are shared out: as in the paper, which is the default, or at the least bound."
        ),
    ] = None,
    ids: Ids = None,
    drop: Drop = None,
    group: Group = None,
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
    from corral.cli.formats import open_table
    from corral.planning import estimate_sample_sizes

    out = Output(as_json, quiet)
    refuse_two_questions(tolerance, goal)
    for_bound = {
        "--initial-size": initial_size,
        "--held-out": test_size,
        "--step": step,
        "--allocation": allocation,
    }
    for option, value in for_bound.items():
        if tolerance is None and value is not None:
            raise ValueError(f"{option} is for --tolerance, which was not given.")
    if tolerance is not None and group is not None:
        raise ValueError("--group is not for --tolerance: algorithm 4 knows single rows only.")
    asked = Asked(
        left_out=[*(ids or ()), *(drop or ())],
        numeric_only=numeric_only,
        complete=tolerance is not None,
        missing=missing,
        na_values=na_values or (),
        group=group,
    )
    file = open_table(table, sep, decimal, encoding)
    with out.share(f"Read {file.name}") as on_progress:
        X, y, groups = training_rows(file, target, asked, on_progress)
    if not quiet:
        note_findings(X, y, groups, group)
    if tolerance is None:
        with threads(jobs), out.waiting("Take rows away"):
            curve = estimate_sample_sizes(X, y, method="curve", goal=goal, groups=groups, random_state=seed)
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
            allocation=None if allocation is None else allocation.value,
        )
    lines = str(found).split("\n")
    out.answer(sample_size_data(found), lines[:1], lines)

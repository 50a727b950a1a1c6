"""`corral sample-size`: estimate how many rows are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli import options
from corral.cli.app import program
from corral.cli.check import note_findings
from corral.cli.shared import threads

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral.planning import LearningCurve, SampleSizes


_TOLERANCE_TEXT = (
    "Run algorithm 4 of the paper instead, down to this bound on the excess error; the bound is loose."
)
_INITIAL_SIZE_TEXT = (
    "Rows per class at the start; by default 30, or a third of the smallest class if that is fewer."
)
_TEST_SIZE_TEXT = "Test rows per class; by default 50, or a third of the smallest class if that is fewer."
_STEP_TEXT = "Rows added in each step; by default 30, or one per class if there are more than 30 classes."
_ALLOCATION_TEXT = (
    "How added rows are divided among classes: proportional, as in the paper (the default), or optimal."
)


@program.command(
    "sample-size",
    short_help="Estimate how many rows are needed.",
    epilog="\b\nExamples:\n  corral sample-size penguins.csv --target species --goal 0.97\n"
    "  corral sample-size penguins.csv --target species --drop year --numeric-only --missing drop-rows"
    " --tolerance 0.6",
)
def sample_size(
    table: options.TablePath,
    target: options.Target,
    goal: options.Goal = None,
    tolerance: Annotated[float | None, typer.Option(help=_TOLERANCE_TEXT, min=1e-10)] = None,
    initial_size: Annotated[int | None, typer.Option(help=_INITIAL_SIZE_TEXT, min=1)] = None,
    test_size: Annotated[int | None, typer.Option("--held-out", help=_TEST_SIZE_TEXT, min=1)] = None,
    step: Annotated[int | None, typer.Option(help=_STEP_TEXT, min=1)] = None,
    allocation: Annotated[options.AllocationName | None, typer.Option(help=_ALLOCATION_TEXT)] = None,
    ids: options.Ids = None,
    drop: options.Drop = None,
    group: options.Group = None,
    numeric_only: options.NumericOnly = False,
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
    """Estimate how the scores would improve with more rows, and how many rows a goal needs.

    Models are fitted to halves, quarters and eighths of the rows and score other rows; the learning curve is
    extrapolated. With --tolerance, algorithm 4 of the paper bounds the excess error of the paper's classifier
    instead; the four options listed below --tolerance are for algorithm 4. It accepts only numbers without
    missing values: --numeric-only leaves out other columns, --missing drop-rows leaves out rows with missing
    values.
    """
    from corral.cli.columns import training_rows
    from corral.cli.console import Output, learning_curve_data, sample_size_data
    from corral.cli.tables import open_table
    from corral.cli.variables import as_numbers
    from corral.planning import estimate_sample_sizes

    out = Output(as_json, quiet)
    refuse_two_questions(tolerance, goal)
    bound = {"initial_size": initial_size, "test_size": test_size, "step": step, "allocation": allocation}
    given = {name: value for name, value in bound.items() if value is not None}
    if tolerance is None and given:
        raise ValueError("--initial-size, --held-out, --step and --allocation need --tolerance.")
    if tolerance is not None and group is not None:
        raise ValueError("--group cannot be used with --tolerance: algorithm 4 has no groups.")
    file = open_table(table, sep, decimal, encoding)
    with out.progress(f"Read {file.name}"):
        X, y, groups = training_rows(
            file,
            target,
            ids=ids,
            drop=drop,
            group=group,
            numeric_only=numeric_only,
            missing=missing,
            na_values=na_values or (),
        )
    if tolerance is not None:
        X = as_numbers(X, file)
    if not quiet:
        note_findings(X, y, groups, group)
    estimate: SampleSizes | LearningCurve
    if tolerance is None:
        with threads(jobs), out.progress("Fit smaller samples"):
            estimate = estimate_sample_sizes(X, y, goal=goal, groups=groups, random_state=seed)
        data = learning_curve_data(estimate)
    else:
        with threads(jobs), out.progress("Add rows step by step"):
            estimate = bounded_sizes(X, y, tolerance, seed, **given)
        data = sample_size_data(estimate)
    lines = str(estimate).split("\n")
    out.answer(data, lines[:1], lines)


def refuse_two_questions(tolerance: float | None, goal: float | None) -> None:
    """Raise ValueError if both a bound (algorithm 4) and a goal (learning curve) are given."""
    if tolerance is not None and goal is not None:
        raise ValueError("--tolerance and --goal are for different estimates: use only one of them.")


def bounded_sizes(X: pd.DataFrame, y: NDArray[Any], tolerance: float, seed: int, **given: Any) -> SampleSizes:
    """Run algorithm 4; by default at most a third of the smallest class is for the start, a third to test."""
    import numpy as np

    from corral.planning import estimate_sample_sizes

    classes, counts = np.unique(y, return_counts=True)
    third = max(int(counts.min()) // 3, 1)
    sizes = {"initial_size": min(30, third), "test_size": min(50, third), "step": max(30, classes.size)}
    return estimate_sample_sizes(
        X, y, method="bound", tolerance=tolerance, random_state=seed, **(sizes | given)
    )

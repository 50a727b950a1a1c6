"""`corral fit`: a model, its scores on held-out rows, and what describes each class."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli import options
from corral.cli.app import program
from corral.cli.check import note_findings
from corral.cli.shared import check_different, note, threads
from corral.sentences.scores import accuracy_interval, grouped_rows
from corral.sentences.tables import dates_as_variables, duplicate_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from corral.cli.console import Output
    from corral.evaluation.held_out import HeldOut
    from corral.evaluation.splits import RowGroups, Split

_ESTIMATOR_TEXT = (
    "cv pools several densities and calibrates them; rodeo is the paper's rule, in units of the range; lspc "
    "is its rival, on standardised columns."
)
_PRIORS_TEXT = (
    "Whether classes count by their rows, the default, so that probabilities fit tables like this one, or "
    "all alike. Not for lspc."
)
_SCALE_TEXT = (
    "Units in which bandwidths are chosen, by default range for rodeo and standard for lspc. Not for cv, "
    "which has several."
)
_TEST_SIZE_TEXT = (
    "Share of rows held out once to measure with, 0.25 by default; tables of fewer than 1000 rows have 5 "
    "folds instead."
)
_CV_TEXT = "Hold out each of so many folds in turn; 5 by default for fewer than 1000 rows."
_LEAST_ROWS_TEXT = (
    "Leave out classes of fewer than N rows, copies not counted, or with --group of fewer than N groups."
)


@program.command(
    short_help="Fit a classifier and measure it on held-out rows.",
    epilog="\b\nExamples:\n  corral fit penguins.csv --target species\n"
    "  corral fit penguins.csv -t species --cv 5 --model penguins.corral --report penguins.html\n"
    "  corral fit visits.xlsx -t diagnosis --id visit --group patient --na-values '?'",
)
def fit(
    table: options.TablePath,
    target: options.Target,
    model: Annotated[
        Path | None, options.output_option("--model", "-m", text="Write the model to this file.")
    ] = None,
    report: Annotated[
        Path | None,
        options.output_option("--report", "-r", metavar="FILE.html", text="Write a report to this file."),
    ] = None,
    estimator: Annotated[options.EstimatorName, typer.Option(help=_ESTIMATOR_TEXT)] = "cv",
    priors: Annotated[options.Priors | None, typer.Option(help=_PRIORS_TEXT)] = None,
    scale: Annotated[options.ScaleName | None, typer.Option(help=_SCALE_TEXT)] = None,
    test_size: Annotated[float | None, typer.Option(help=_TEST_SIZE_TEXT, min=0.01, max=0.99)] = None,
    goal: options.Goal = None,
    cv: Annotated[int | None, typer.Option(help=_CV_TEXT, min=2)] = None,
    ids: options.Ids = None,
    group: options.Group = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    numeric_only: options.NumericOnly = False,
    missing: options.MissingRows = "keep",
    na_values: options.NaValues = None,
    least_rows: Annotated[
        int, typer.Option("--drop-small-classes", metavar="N", help=_LEAST_ROWS_TEXT, min=1)
    ] = 1,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a classifier, measure it on held-out rows beside baselines, and show what describes each class.

    The model, and the variables shown, are those of all rows; the scores are those of held-out rows. Below
    1000 rows each row is held out once, in 5 folds; otherwise a quarter of the rows is held out. Columns of
    text are levels, and values may be missing: a gap says nothing for or against any class. lspc takes
    numbers without gaps only.
    """
    from corral.cli.columns import training_rows
    from corral.cli.console import Output
    from corral.cli.tables import open_table
    from corral.cli.variables import as_numbers
    from corral.cli.writing import MODEL, REPORT, check_kinds, note_replaced
    from corral.evaluation.splits import RowGroups, split_rows
    from corral.files.model_file import save_model

    out = Output(as_json, quiet)
    check_different(table, model, report)
    check_kinds((model, MODEL), (report, REPORT))
    _refuse_contradictions(estimator, priors, group, goal, report)
    _refuse_two_splits(cv, test_size)
    chosen = _estimator(estimator, priors or "empirical", scale, seed, out)
    file = open_table(table, sep, decimal, encoding)
    na_values = list(dict.fromkeys(na_values or ()))
    with out.progress(f"Read {file.name}"):
        X, y, groups = training_rows(
            file,
            target,
            ids=ids,
            drop=drop,
            group=group,
            categorical=categorical or (),
            numeric_only=numeric_only,
            missing=missing,
            na_values=na_values,
            least_rows=least_rows,
        )
    if estimator == "lspc":
        X = as_numbers(X, file)
    row_groups = RowGroups.of(X, y, groups)
    advice = f"leave such classes out by --drop-small-classes {cv or 2}"
    advice = f"take a smaller --cv, or {advice}" if cv else advice
    splits = split_rows(y, row_groups, test_size=test_size, cv=cv, seed=seed, if_few_rows=advice)
    if not quiet:
        note_findings(X, y, groups, group, categorical or ())
    with threads(jobs):
        fitted, held_out = _fit_and_measure(chosen, X, y, row_groups, splits, out)
    _note_dates(fitted)
    if na_values:
        fitted.na_values_ = na_values
    if row_groups.n_duplicates:
        note(duplicate_rows(row_groups.n_duplicates, row_groups.duplicates.size))
    name = type(fitted).__name__
    note_replaced(model, report)
    if model is not None:
        save_model(fitted, model)
    measured_on = f"{len(held_out[name].truth)} of {len(y)} rows"
    if len(splits) > 1:
        measured_on = f"each row once, in {len(splits)} folds"
    facts = {
        "table": str(file),
        "target": target,
        "rows": len(y),
        "held_out": measured_on,
        "folds": len(splits),
    }
    facts |= {} if group is None else {"group": group}
    with threads(jobs):
        if report is not None:
            with out.progress("Write the report"):
                others = {other: found for other, found in held_out.items() if other != name}
                own = replace(held_out[name], baselines=others)
                shown = {"held_out": own, "source": file.name, "random_state": seed}
                _write_report(report, fitted, X, y, goal, **shown)
        _answer(out, fitted, held_out, facts, {"model": model, "report": report})


def _refuse_two_splits(cv: int | None, test_size: float | None) -> None:
    if cv is not None and test_size is not None:
        raise ValueError(f"--cv {cv} and --test-size {test_size:g} are two ways to hold rows out: take one.")


def _fit_and_measure(
    chosen: Any, X: pd.DataFrame, y: NDArray[Any], row_groups: RowGroups, splits: Sequence[Split], out: Output
) -> tuple[Any, dict[str, HeldOut]]:
    """Fit all rows, and predict held-out rows by the same classifier and by baselines.

    Duplicates and dates are told of once, for the whole table, and not by each fit.
    """
    from corral.cli.variables import without_dates
    from corral.estimators.tables import ColumnKindWarning
    from corral.estimators.warned import CopiedRowsWarning, NearDuplicatesWarning
    from corral.evaluation.baselines import baselines
    from corral.evaluation.held_out import fit_by_groups, held_out_predictions

    name = type(chosen).__name__
    with warnings.catch_warnings():
        for category in (ColumnKindWarning, CopiedRowsWarning, NearDuplicatesWarning):
            warnings.simplefilter("ignore", category)
        held_out = held_out_predictions({name: chosen}, X, y, row_groups, splits, out.step)
        simple = without_dates(X)
        held_out |= held_out_predictions(baselines(simple), simple, y, row_groups, splits, out.step)
        held_out["most frequent class"] = held_out[name].frequencies()
        out.step(f"{name} with all rows")
        fitted = fit_by_groups(chosen, X, y, row_groups)
    if out.bars:  # which were for the fit
        for each in (fitted, *(part.estimator for part in held_out[name].parts)):
            if hasattr(each, "verbose"):
                each.verbose = 0
    return fitted, held_out


def _note_dates(fitted: Any) -> None:
    """Tell which variables the columns of dates have become."""
    for each in fitted.encoding_.dates if hasattr(fitted, "encoding_") else ():
        name = str(fitted.feature_names_in_[each.position])
        remedy = f"--categorical {shlex.quote(name)} makes categories of them"
        note(f"{dates_as_variables(name, each.parts, each.assumed_order, remedy)}.")


def _write_report(path: Path, fitted: Any, X: Any, y: Any, goal: float | None, **shown: Any) -> None:
    """Write a report, which says what more rows would bring if there is a goal."""
    from corral.planning import LearningCurve
    from corral.report import write_report  # loads what draws it

    curve = None
    if goal is not None:
        curve = LearningCurve.from_estimator(fitted, goal=goal, random_state=shown["random_state"])
    write_report(fitted, X, y, path, sample_sizes=curve, **shown)


def _refuse_contradictions(
    estimator: options.EstimatorName,
    priors: options.Priors | None,
    group: str | None,
    goal: float | None,
    report: Path | None,
) -> None:
    """Refuse options that do not go with the estimator, or that nothing would be done with."""
    if priors is not None and estimator == "lspc":
        raise ValueError(f"--priors {priors} is not for --estimator lspc, which has no priors.")
    if group is not None and estimator == "lspc":
        raise ValueError("--group is not for --estimator lspc, which chooses its parameters by single rows.")
    if goal is not None and (report is None or estimator != "cv"):
        raise ValueError(
            f"--goal {goal:g} is for the report of --estimator cv: say --report as well, or see 'corral "
            "sample-size'."
        )


def _answer(
    out: Output,
    fitted: Any,
    held_out: Mapping[str, HeldOut],
    facts: Mapping[str, Any],
    written: Mapping[str, Path | None],
) -> None:
    """Print the scores of a classifier and of baselines, and what it has learnt."""
    from dataclasses import asdict

    from corral.cli.console import class_score_table, describe, description, score_table
    from corral.evaluation.advice import advice_on_labels

    name, measured_on = type(fitted).__name__, facts["held_out"]
    scores = {each: predictions.scores() for each, predictions in held_out.items()}
    own = scores[name]
    for sentence in advice_on_labels(fitted, held_out[name]):
        note(sentence)
    described = describe(fitted)
    full: list[Any] = [score_table(scores, measured_on), class_score_table(own)]
    if "group" in facts:
        full.append(grouped_rows(facts["group"], held_out[name].n_groups or 0))
    full += description(described, measured=True)
    if written["model"] is not None:
        full.append(f"The model, fitted to all {facts['rows']} rows, is in {written['model']}")
    if written["report"] is not None:
        full.append(f"The report is in {written['report']}")
    interval = accuracy_interval(own.intervals["accuracy"])
    measured: dict[str, Any] = {"scores": {each: asdict(values) for each, values in scores.items()}}
    label = held_out[name].rarer_class
    if label is not None:
        consequences = [point._asdict() for point in held_out[name].thresholds(label)]
        measured["thresholds"] = {"class": label, "consequences": consequences}
    out.answer(
        {**facts, **measured, **described, **written},
        [f"{name}: accuracy {own.accuracy:.3f}, {interval}, held out {measured_on}"],
        full,
    )


def _estimator(name: str, priors: Any, scale: str | None, seed: int, out: Output) -> Any:
    from corral import CorralClassifier, LSPClassifier, RodeoClassifier

    scaled: Any = {} if scale is None else {"scale": None if scale == "none" else scale}
    if name == "lspc":
        # Columns of a table are seldom in the same units, which the paper's rule, None, takes them to be.
        return LSPClassifier(random_state=seed, **{"scale": "standard", **scaled})
    if name == "rodeo":
        return RodeoClassifier(priors=priors, random_state=seed, verbose=out.bars, **scaled)
    if scale is not None:
        raise ValueError(
            f"--scale {scale} is not for --estimator cv, which pools densities in several units."
        )
    return CorralClassifier(priors=priors, random_state=seed, verbose=out.bars)

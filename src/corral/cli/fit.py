"""`corral fit`: fit a model, score it on held-out rows, and show the variables that describe each class."""

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
from corral.cli.options import file_option
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

_MODEL_TEXT = "Write the model to this file."
_REPORT_TEXT = "Write a report to this file."
_ESTIMATOR_TEXT = (
    "cv is a calibrated pool of several density models; rodeo is the paper's classifier, on columns scaled "
    "by "
    "their range; lspc is the classifier that the paper compares with, on standardized columns."
)
_PRIORS_TEXT = (
    "Priors of the classes: empirical, the shares of the classes in the table (the default), or uniform, the "
    "same "
    "prior for every class. Not for lspc."
)
_SCALE_TEXT = (
    "How columns are scaled before bandwidths are chosen; by default range for rodeo and standard for lspc. "
    "Not "
    "for cv, which uses several scales."
)
_TEST_SIZE_TEXT = (
    "Share of the rows that is held out for the scores, 0.25 by default. Tables with fewer than 1000 rows "
    "have 5 "
    "folds by default instead."
)
_CV_TEXT = (
    "Number of folds for the scores; each fold is held out once. 5 by default for fewer than 1000 rows."
)
_LEAST_TEXT = (
    "Leave out classes with fewer than N rows, not counting duplicates; with --group, classes with fewer "
    "than N "
    "groups."
)


@program.command(
    short_help="Fit a classifier and score it on held-out rows.",
    epilog="\b\nExamples:\n  corral fit penguins.csv --target species\n"
    "  corral fit penguins.csv -t species --cv 5 --model penguins.corral --report penguins.html\n"
    "  corral fit visits.xlsx -t diagnosis --id visit --group patient --na-values '?'",
)
def fit(
    table: options.TablePath,
    target: options.Target,
    model: Annotated[Path | None, file_option("--model", "-m", text=_MODEL_TEXT)] = None,
    report: Annotated[
        Path | None, file_option("--report", "-r", metavar="FILE.html", text=_REPORT_TEXT)
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
        int, typer.Option("--drop-small-classes", metavar="N", help=_LEAST_TEXT, min=1)
    ] = 1,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a classifier, compare it with baselines on held-out rows, and show the variables of each class.

    The model is fitted to all rows. The scores are measured on held-out rows, by models that were fitted
    without them: with fewer than 1000 rows, each row is held out once, in 5 folds; otherwise a quarter of the
    rows is held out. Columns of text become categories. Values may be missing; a missing value is no evidence
    for or against any class. lspc accepts only numbers without missing values.
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
    if cv is not None and test_size is not None:
        raise ValueError(
            f"--cv {cv} and --test-size {test_size:g} are different ways to hold out rows: use only one of "
            "them."
        )
    unfitted = _estimator(estimator, priors or "empirical", scale, seed, out)
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
    row_groups = RowGroups.from_table(X, y, groups)
    advice = f"leave small classes out by --drop-small-classes {cv or 2}"
    advice = f"use a smaller --cv, or {advice}" if cv else advice
    splits = split_rows(y, row_groups, test_size=test_size, cv=cv, seed=seed, if_few_rows=advice)
    if not quiet:
        note_findings(X, y, groups, group, categorical or ())
    with threads(jobs):
        fitted, held_out = _fit_and_score(unfitted, X, y, row_groups, splits, out)
    _note_dates_and_duplicates(fitted, row_groups)
    if na_values:
        fitted.na_values_ = na_values
    name = type(fitted).__name__
    note_replaced(model, report)
    if model is not None:
        save_model(fitted, model)
    facts = {"table": str(file), "target": target, "rows": len(y)}
    facts["held_out"] = _rows_held_out(len(held_out[name].truth), len(y), len(splits))
    facts["folds"] = len(splits)
    facts |= {} if group is None else {"group": group}
    with threads(jobs):
        if report is not None:
            with out.progress("Write the report"):
                others = {other: predictions for other, predictions in held_out.items() if other != name}
                own = replace(held_out[name], baselines=others)
                _write_report(report, fitted, X, y, goal, held_out=own, source=file.name, random_state=seed)
        _answer(out, fitted, held_out, facts, {"model": model, "report": report})


def _fit_and_score(
    unfitted: Any,
    X: pd.DataFrame,
    y: NDArray[Any],
    row_groups: RowGroups,
    splits: Sequence[Split],
    out: Output,
) -> tuple[Any, dict[str, HeldOut]]:
    """Fit a classifier to all rows, and predict held-out rows by the same classifier and by baselines.

    Warnings about duplicates and dates are ignored here; `_note_dates_and_duplicates` prints them once.
    """
    from corral.cli.variables import without_dates
    from corral.estimators.tables import ColumnKindWarning
    from corral.estimators.warned import DuplicatesWarning, NearDuplicatesWarning
    from corral.evaluation.baselines import baselines
    from corral.evaluation.held_out import fit_by_groups, held_out_predictions

    name = type(unfitted).__name__
    with warnings.catch_warnings():
        for category in (ColumnKindWarning, DuplicatesWarning, NearDuplicatesWarning):
            warnings.simplefilter("ignore", category)
        held_out = held_out_predictions({name: unfitted}, X, y, row_groups, splits, out.step)
        undated = without_dates(X)
        held_out |= held_out_predictions(baselines(undated), undated, y, row_groups, splits, out.step)
        held_out["most frequent class"] = held_out[name].frequencies()
        out.step(f"{name} with all rows")
        fitted = fit_by_groups(unfitted, X, y, row_groups)
    if out.bars:  # progress is shown only during the fit, not by the model that is saved
        for each in (fitted, *(part.estimator for part in held_out[name].parts)):
            if hasattr(each, "verbose"):
                each.verbose = 0
    return fitted, held_out


def _rows_held_out(n_scored: int, n_rows: int, n_splits: int) -> str:
    """Say which rows are held out and scored; a duplicate is held out with its row, but not scored."""
    if n_splits == 1:
        return f"{n_scored} of {n_rows} rows"
    scored = "each row" if n_scored == n_rows else f"{n_scored} of {n_rows} rows (without duplicates), each"
    return f"{scored} once, in {n_splits} folds"


def _note_dates_and_duplicates(fitted: Any, row_groups: RowGroups) -> None:
    """Print notes about the variables made from dates, and about the number of duplicates."""
    for each in fitted.encoding_.dates if hasattr(fitted, "encoding_") else ():
        name = str(fitted.feature_names_in_[each.position])
        remedy = f"--categorical {shlex.quote(name)} makes the dates categories"
        note(f"{dates_as_variables(name, each.parts, each.assumed_order, remedy)}.")
    if row_groups.n_duplicates:
        note(duplicate_rows(row_groups.n_duplicates, row_groups.duplicates.size))


def _write_report(path: Path, fitted: Any, X: Any, y: Any, goal: float | None, **shown: Any) -> None:
    """Write a report, with a learning curve if there is a goal."""
    from corral.planning import LearningCurve
    from corral.report import write_report

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
    """Raise ValueError for options that the estimator does not have, and for a goal without a report."""
    if priors is not None and estimator == "lspc":
        raise ValueError(f"--priors {priors} is not for --estimator lspc, which has no priors.")
    if group is not None and estimator == "lspc":
        raise ValueError(
            "--group is not for --estimator lspc, which holds out single rows to choose its parameters."
        )
    if goal is not None and (report is None or estimator != "cv"):
        raise ValueError(
            f"--goal {goal:g} is for the report of --estimator cv: add --report, or see 'corral sample-size'."
        )


def _answer(
    out: Output,
    fitted: Any,
    held_out: Mapping[str, HeldOut],
    facts: Mapping[str, Any],
    written: Mapping[str, Path | None],
) -> None:
    """Print the scores of a classifier and of the baselines, and the description of the classifier."""
    from dataclasses import asdict

    from corral.cli.console import class_score_table, describe, description, score_table
    from corral.evaluation.advice import advice_on_labels

    name, rows_held_out = type(fitted).__name__, facts["held_out"]
    scores = {each: predictions.scores() for each, predictions in held_out.items()}
    own = scores[name]
    for sentence in advice_on_labels(fitted, held_out[name]):
        note(sentence)
    described = describe(fitted)
    full: list[Any] = [score_table(scores, rows_held_out), class_score_table(own)]
    if "group" in facts:
        full.append(grouped_rows(facts["group"], held_out[name].n_groups or 0))
    full += description(described, has_scores=True)
    if written["model"] is not None:
        full.append(f"The model, fitted to all {facts['rows']} rows, is in {written['model']}")
    if written["report"] is not None:
        full.append(f"The report is in {written['report']}")
    data: dict[str, Any] = {**facts, "scores": {each: asdict(values) for each, values in scores.items()}}
    label = held_out[name].rarer_class
    if label is not None:
        consequences = [point._asdict() for point in held_out[name].thresholds(label)]
        data["thresholds"] = {"class": label, "consequences": consequences}
    interval = accuracy_interval(own.intervals["accuracy"])
    brief = f"{name}: accuracy {own.accuracy:.3f}, {interval}, held out {rows_held_out}"
    out.answer({**data, **described, **written}, [brief], full)


def _estimator(name: str, priors: Any, scale: str | None, seed: int, out: Output) -> Any:
    """Return the unfitted estimator that the options describe."""
    from corral import CorralClassifier, LSPClassifier, RodeoClassifier

    scaling: Any = {} if scale is None else {"scale": None if scale == "none" else scale}
    if name == "lspc":
        # The paper uses no scaling, but columns of a table rarely have the same scale.
        return LSPClassifier(random_state=seed, **{"scale": "standard", **scaling})
    if name == "rodeo":
        return RodeoClassifier(priors=priors, random_state=seed, verbose=out.bars, **scaling)
    if scale is not None:
        raise ValueError(f"--scale {scale} is not for --estimator cv, which uses several scales.")
    return CorralClassifier(priors=priors, random_state=seed, verbose=out.bars)

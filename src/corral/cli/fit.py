"""`corral fit`: a model, its scores on held-out rows, and what describes each class."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.app import program
from corral.cli.check import note_findings
from corral.cli.options import (
    AsJson,
    Categorical,
    Decimal,
    Drop,
    Encoding,
    EstimatorName,
    Goal,
    Group,
    Ids,
    Jobs,
    Missing,
    MissingRows,
    NaValues,
    NumericOnly,
    Priors,
    Quiet,
    ScaleName,
    Seed,
    Separator,
    TablePath,
    Target,
    output,
)
from corral.cli.shared import check_different, note, threads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from corral.cli.console import Output
    from corral.evaluation.held_out import HeldOut
    from corral.evaluation.splits import Units
    from corral.planning import LearningCurve

_MOST_FREQUENT = "most frequent class"


@program.command(
    short_help="Fit a classifier and measure it on held-out rows.",
    epilog="\b\nExamples:\n  corral fit penguins.csv --target species\n"
    "  corral fit penguins.csv -t species --cv 5 --model penguins.corral --report penguins.html\n"
    "  corral fit visits.xlsx -t diagnosis --id visit --group patient --na-values '?'",
)
def fit(
    table: TablePath,
    target: Target,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", metavar="FILE", help="Write the model to this file.", callback=output),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", "-r", metavar="FILE.html", help="Write a report to this file.", callback=output
        ),
    ] = None,
    estimator: Annotated[
        EstimatorName,
        typer.Option(
            help="cv pools several densities and calibrates them; rodeo is the paper's rule, in units of the "
            "range; lspc is its rival, on standardised columns."
        ),
    ] = EstimatorName.cv,
    priors: Annotated[
        Priors,
        typer.Option(
            help="Whether classes count by their rows, so that probabilities fit tables like this one, "
            "or all alike. Not for lspc."
        ),
    ] = Priors.empirical,
    scale: Annotated[
        ScaleName | None,
        typer.Option(
            help="Units in which bandwidths are chosen, by default range for rodeo and standard for lspc. "
            "Not for cv, which has several."
        ),
    ] = None,
    test_size: Annotated[
        float, typer.Option(help="Share of rows held out to measure with.", min=0.01, max=0.99)
    ] = 0.25,
    goal: Goal = None,
    cv: Annotated[
        int | None, typer.Option(help="Hold out each of so many parts in turn instead.", min=2)
    ] = None,
    ids: Ids = None,
    group: Group = None,
    drop: Drop = None,
    categorical: Categorical = None,
    numeric_only: NumericOnly = False,
    missing: MissingRows = Missing.keep,
    na_values: NaValues = None,
    least_rows: Annotated[
        int,
        typer.Option(
            "--drop-small-classes",
            metavar="N",
            help="Leave out rows of classes of fewer than N rows, copies not counted.",
            min=1,
        ),
    ] = 1,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a classifier, measure it on rows held out beside two baselines, and show what describes each class.

    The model, and the variables shown, are those of all rows; the scores are those of held-out rows. Columns
    of text are levels, and values may be missing: a gap says nothing for or against any class. lspc takes
    numbers without gaps only.
    """
    from corral.cli.columns import Asked, training_rows
    from corral.cli.console import Output
    from corral.cli.formats import open_table
    from corral.cli.outputs import MODEL, REPORT, check_kinds, note_replaced
    from corral.evaluation.held_out import fit_by_groups, held_out_predictions
    from corral.evaluation.splits import Units, split_rows
    from corral.files.model_file import save_model

    out = Output(as_json, quiet)
    check_different(table, model, report)
    check_kinds((model, MODEL), (report, REPORT))
    chosen = _estimator(estimator, priors, scale, seed, out)
    _refuse_contradictions(estimator, group, goal, report)
    asked = Asked(
        left_out=[*(ids or ()), *(drop or ())],
        numeric_only=numeric_only,
        categorical=categorical or (),
        complete=estimator is EstimatorName.lspc,
        missing=missing,
        na_values=list(dict.fromkeys(na_values or ())),
        least_rows=least_rows,
        names=ids[0] if ids else None,
        group=group,
    )
    file = open_table(table, sep, decimal, encoding)
    with out.share(f"Read {file.name}") as on_progress:
        X, y, groups = training_rows(file, target, asked, on_progress)
    units = Units.of(X, y, groups)
    if_few_rows = f"leave such classes out by --drop-small-classes {cv or 2}"
    splits = split_rows(y, units, test_size=test_size, cv=cv, seed=seed, if_few_rows=if_few_rows)
    if not quiet:
        note_findings(X, y, groups, group, asked.categorical)
    name = type(chosen).__name__
    classifiers = {name: chosen, **_baselines(X)}
    n_fits = len(classifiers) * len(splits) + 1
    steps = out.steps(n_fits, own_bars=hasattr(chosen, "verbose"))
    with threads(jobs), steps as on_step, _copies_told_once():
        held_out = held_out_predictions(classifiers, X, y, units, splits, on_step)
        on_step(f"{name} with all rows")
        fitted = fit_by_groups(chosen, X, y, units)
    _finish(fitted, asked.na_values, units)
    for part in held_out[name].parts:
        _silence(part.estimator)
    note_replaced(model, report)
    if model is not None:
        save_model(fitted, model)
    if report is not None:
        from corral.report import write_report  # loads what draws it

        with threads(jobs), out.waiting("Write the report"):
            write_report(
                report,
                fitted,
                X,
                y,
                held_out=held_out[name],
                sample_sizes=_sample_sizes(fitted, goal, seed),
                source=file.name,
                random_state=seed,
            )
    facts: dict[str, Any] = {"table": str(file), "target": target, "rows": len(y)}
    facts["held_out"] = f"{cv} parts in turn" if cv else f"{len(held_out[name].truth)} of {len(y)} rows"
    if group is not None:
        facts["group"] = group
    with threads(jobs):
        _answer(out, fitted, held_out, facts, {"model": model, "report": report}, priors)


def _refuse_contradictions(
    estimator: EstimatorName, group: str | None, goal: float | None, report: Path | None
) -> None:
    """Refuse options that do not go with the estimator, or that nothing would be done with."""
    if group is not None and estimator is EstimatorName.lspc:
        raise ValueError("--group is not for --estimator lspc, which chooses its parameters by single rows.")
    if goal is not None and (report is None or estimator is not EstimatorName.cv):
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
    priors: Priors,
) -> None:
    """Tell of the scores of a classifier and of two others, and what it has learnt."""
    from dataclasses import asdict

    from corral.cli.console import describe, description, score_table
    from corral.sentences import accuracy_interval

    name, measured_on = type(fitted).__name__, facts["held_out"]
    scores = {of_name: found.scores() for of_name, found in held_out.items()}
    own = scores[name]
    note_if_useless(own.accuracy, scores[_MOST_FREQUENT].accuracy, name, priors)
    described = describe(fitted)
    full: list[Any] = [score_table(scores, measured_on)]
    if "group" in facts:
        full.append(f"rows that share {facts['group']!r} were held out together{_on_groups(held_out[name])}")
    full += [*description(described, own.accuracy_by_class), *_written(facts["rows"], **written)]
    interval = accuracy_interval(own.accuracy_interval)
    measured = {"scores": {of_name: asdict(of_all) for of_name, of_all in scores.items()}}
    out.answer(
        {**facts, **measured, **described, **written},
        [f"{name}: accuracy {own.accuracy:.3f}, {interval}, held out {measured_on}"],
        full,
    )


def _on_groups(held_out: HeldOut) -> str:
    """Say what intervals rest on where groups were held out."""
    if held_out.n_groups == 1:
        return "; all are of one group, which tells no interval: say --cv, or a larger --test-size"
    return f"; intervals are for new groups, of which {held_out.n_groups} were held out"


def _sample_sizes(fitted: Any, goal: float | None, seed: int) -> LearningCurve | None:
    """What more rows would bring, if a goal asks for that."""
    if goal is None:
        return None
    from corral.planning import LearningCurve

    return LearningCurve.from_estimator(fitted, goal=goal, random_state=seed)


def _written(n_rows: int, model: Path | None, report: Path | None) -> list[str]:
    """Say which files there are now."""
    said = [f"The model, fitted to all {n_rows} rows, is in {model}"] if model is not None else []
    return [*said, f"The report is in {report}"] if report is not None else said


def _baselines(X: pd.DataFrame) -> dict[str, Any]:
    """Classifiers to compare with."""
    from sklearn.dummy import DummyClassifier

    from corral.evaluation.naive_bayes import MixedNaiveBayes

    has_levels = any(hasattr(dtype, "categories") for dtype in X.dtypes)
    bayes = "naive Bayes" if has_levels else "Gaussian naive Bayes"
    return {bayes: MixedNaiveBayes(), _MOST_FREQUENT: DummyClassifier(strategy="prior")}


def _estimator(
    name: EstimatorName,
    priors: Priors,
    scale: ScaleName | None,
    seed: int,
    out: Output,
) -> Any:
    options: dict[str, Any] = (
        {} if scale is None else {"scale": None if scale is ScaleName.none else str(scale)}
    )
    match name:
        case EstimatorName.cv:
            from corral.estimators.corral_classifier import CorralClassifier

            if scale is not None:
                raise ValueError(
                    f"--scale {scale} is not for --estimator cv, which pools densities in several units."
                )
            return CorralClassifier(priors=priors.value, random_state=seed, verbose=out.bars)
        case EstimatorName.rodeo:
            from corral.estimators.rodeo_classifier import RodeoClassifier

            return RodeoClassifier(priors=priors.value, random_state=seed, verbose=out.bars, **options)
        case EstimatorName.lspc:
            from corral.estimators.lspc import LSPClassifier

            # Columns of a table are seldom in the same units, which the paper's rule, None, takes them to be.
            return LSPClassifier(random_state=seed, **{"scale": "standard", **options})


def note_if_useless(accuracy: float, baseline: float, name: str, priors: Priors) -> None:
    """Say that labels are worse than the same label for all rows, if they are."""
    from corral.sentences import NO_DIFFERENCE, below_most_frequent

    if priors is Priors.uniform:
        advice = "with --priors uniform all classes count alike, so look at the accuracy of each"
    elif name != "CorralClassifier":
        advice = "do not rely on its labels, and try --estimator cv, the default"
    else:
        advice = NO_DIFFERENCE
    sentence = below_most_frequent(accuracy, baseline, advice)
    if sentence:
        note(sentence)


@contextmanager
def _copies_told_once() -> Iterator[None]:
    """Warn of duplicates in no single fit: `_finish` and findings tell of those in the whole table."""
    from corral.estimators.warned import CopiedRowsWarning, NearDuplicatesWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CopiedRowsWarning)
        warnings.simplefilter("ignore", NearDuplicatesWarning)
        yield


def _finish(fitted: Any, na_values: Sequence[str], units: Units) -> None:
    """Tell a model what stood for a gap in its table, and the user of copies among its rows."""
    from corral.sentences import copied_rows

    if na_values:
        fitted.na_values_ = list(na_values)
    if units.n_copies:
        note(copied_rows(units.n_copies, units.copies.size))
    _silence(fitted)


def _silence(fitted: Any) -> None:
    """Show no more bars: they were for the fit."""
    if hasattr(fitted, "verbose"):
        fitted.verbose = 0

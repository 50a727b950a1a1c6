"""The command line: reads tables and models, calls the library, prints what it says."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import joblib
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from typer.core import TyperGroup

from corral._classifier import RodeoClassifier
from corral._evaluate import held_out_predictions, splitter
from corral._explain import Explanation
from corral._model_file import load_model, read_header, save_model
from corral._rodeo import progress
from corral._sample_size import Allocation, estimate_sample_sizes
from corral._search import RodeoClassifierCV
from corral._tables import (
    as_labels,
    as_numbers,
    is_unnamed,
    numeric_columns,
    read_chunks,
    read_table,
    table_columns,
    writing_table,
)
from corral.datasets import make_ten_groups

if TYPE_CHECKING:
    import pandas as pd

# Codes of the exit: 0 if all went well; 2, Typer's own, for a command line that makes no sense.
USER_ERROR = 1

_MOST_NAMED = 12


class _Commands(TyperGroup):
    """Commands whose errors are one sentence on the standard error stream."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what it warns of is told like its errors."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                return super().invoke(ctx)
            except (ImportError, MemoryError, OSError, ValueError) as error:
                _fail(str(error) or type(error).__name__)
            finally:
                for message in dict.fromkeys(str(warning.message) for warning in caught):
                    _say_error(f"note: {message}")


def _fail(message: str) -> NoReturn:
    _say_error(f"error: {message}")
    raise typer.Exit(USER_ERROR)


def _say_error(message: str) -> None:
    typer.echo(" ".join(message.split()), err=True)


app = typer.Typer(
    name="corral",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Classify the rows of a table; see which variables describe each class and why a row got its label.",
    epilog="\b\nStart with:\n  corral demo\n  corral fit iris.csv --target species --model iris.corral",
)


class EstimatorName(StrEnum):
    """What `corral fit` can fit."""

    cv = "cv"
    rodeo = "rodeo"


_TABLE_HELP = "Table with column names: .csv, .tsv or .parquet."
TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE_HELP)]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="File written by 'corral fit --model'.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the classes.")]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", "--id", metavar="COLUMN", help="Column that is no variable; may be repeated."),
]
NumericOnly = Annotated[bool, typer.Option("--numeric-only", help="Leave columns out that are not numeric.")]
Seed = Annotated[int, typer.Option(help="Seed of everything drawn at random.", min=0, max=2**32 - 1)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no tables.")]


@app.command(
    epilog="\b\nExamples:\n  corral fit iris.csv --target species\n"
    "  corral fit iris.csv -t species --cv 5 --drop flower_id --model iris.corral"
)
def fit(
    table: TablePath,
    target: Target,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", metavar="FILE", help="Write the model to this file.")
    ] = None,
    estimator: Annotated[
        EstimatorName,
        typer.Option(help="cv chooses units, bandwidths and variables itself; rodeo is the paper's rule."),
    ] = EstimatorName.cv,
    test_size: Annotated[
        float, typer.Option(help="Share of rows held out to measure with.", min=0.01, max=0.99)
    ] = 0.25,
    cv: Annotated[
        int | None, typer.Option(help="Hold out each of so many parts in turn instead.", min=2)
    ] = None,
    drop: Drop = None,
    numeric_only: NumericOnly = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a classifier, measure it on rows held out beside two baselines, and show what describes each class.

    The model, and the variables shown, are those of all rows; the scores are those of held-out rows.
    """
    X, y = _training_rows(table, target, drop or [], numeric_only, quiet)
    chosen: Any = (
        RodeoClassifierCV(random_state=seed)
        if estimator is EstimatorName.cv
        else RodeoClassifier(random_state=seed)
    )
    classifiers = {
        type(chosen).__name__: chosen,
        "Gaussian naive Bayes": GaussianNB(),
        "most frequent class": DummyClassifier(strategy="prior"),
    }
    split = splitter(y, test_size=test_size, cv=cv, seed=seed)
    n_fits = len(classifiers) * split.get_n_splits() + 1
    with _threads(jobs), progress(n_fits, "Fit and measure", _bars(quiet)) as advance:
        held_out = held_out_predictions(classifiers, X, y, split, advance)
        fitted = chosen.fit(X, y)
        advance(1)
    if model is not None:
        save_model(fitted, model)

    scores = {name: of_name.scores() for name, of_name in held_out.items()}
    n_test = len(next(iter(held_out.values())).truth)
    measured_on = f"{cv} parts in turn" if cv else f"{n_test} of {len(y)} rows"
    result = {
        "table": str(table),
        "target": target,
        "rows": len(y),
        "held_out": measured_on,
        "scores": {name: asdict(of_name) for name, of_name in scores.items()},
        **_description(fitted),
        "model": None if model is None else str(model),
    }
    if as_json:
        _print_json(result)
    elif not quiet:
        console = _console()
        shown = Table("held out: " + measured_on, "accuracy", "log loss", "calibration error")
        for name, of_name in scores.items():
            of_all = (of_name.accuracy, of_name.log_loss, of_name.calibration_error)
            shown.add_row(name, *(f"{value:.3f}" for value in of_all))
        console.print(shown)
        _print_description(console, fitted, next(iter(scores.values())).accuracy_by_class)
        if model is not None:
            console.print(f"The model, fitted to all {len(y)} rows, is in {model}")


@app.command(epilog="\b\nExample:\n  corral predict iris.corral new.csv --id flower_id --out labels.csv")
def predict(
    model: ModelPath,
    table: TablePath,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Table to write: .csv, .tsv or .parquet."),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="Column to keep beside the label; may be repeated."),
    ] = None,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the label and the probability of each class for every row, in the order of the table.

    Rows are read and written in chunks, so the table may be larger than memory. FILE is replaced when
    all rows are done, and not before.
    """
    import pandas as pd

    fitted, names = _load_classifier(model)
    kept = list(dict.fromkeys(keep or []))
    added = ["label", *(f"p_{label}" for label in fitted.classes_.tolist())]
    for name in kept:
        if name in added:
            raise ValueError(f"the column {name!r} cannot be kept: the result has one of that name.")
    start, n_rows = time.perf_counter(), 0
    with writing_table(out) as add, _threads(jobs), _counter(quiet) as advance:
        for chunk in read_chunks(table, names, as_text=kept):
            proba = fitted.predict_proba(as_numbers(chunk[names], table))
            labels = fitted.classes_[proba.argmax(axis=1)]
            rows = pd.DataFrame(dict(zip(added, (labels, *proba.T), strict=True)), index=chunk.index)
            add(pd.concat([chunk[kept], rows], axis=1))
            n_rows += len(chunk)
            advance(len(chunk))
    seconds = time.perf_counter() - start
    if as_json:
        _print_json({"rows": n_rows, "seconds": seconds, "out": str(out)})
    elif not quiet:
        _console().print(f"{n_rows} rows in {seconds:.1f} s; labels and probabilities are in {out}")


@app.command(epilog="\b\nExample:\n  corral explain iris.corral new.csv --row 12 --against virginica")
def explain(
    model: ModelPath,
    table: TablePath,
    row: Annotated[int, typer.Option(help="Which row of the table; the first one is 0.", min=0)],
    against: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Compare with this class, not the second most probable."),
    ] = None,
    rows: Annotated[int, typer.Option(help="How many training rows to list.", min=1)] = 5,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say why a row gets its label and not another: which variables and which training rows speak for it.

    The evidence of a variable is the logarithm of how much more probable its value is under the label
    than under the other class, all other variables given.
    """
    fitted, names = _load_classifier(model)
    if not hasattr(fitted, "explain"):
        raise ValueError(f"{model} holds a {type(fitted).__name__}, which does not explain its labels.")
    sample = _row(table, names, row)
    found = fitted.explain(sample, against=_label(against, fitted.classes_), n_rows=rows)
    if as_json:
        _print_json(_explanation(found, row))
    elif not quiet:
        _print_explanation(_console(), found, row)


@app.command(epilog="\b\nExample:\n  corral info iris.corral --json")
def info(model: ModelPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Say what is in a model file."""
    header = read_header(model)
    fitted = load_model(model)
    result = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "format": header["format"],
        "versions": header["versions"],
        **_description(fitted),
    }
    if as_json:
        _print_json(result)
    elif not quiet:
        console = _console()
        versions = ", ".join(f"{name} {number}" for name, number in header["versions"].items())
        console.print(f"{model}: {result['bytes']} bytes, written by {versions}")
        _print_description(console, fitted)


@app.command(
    "sample-size",
    epilog="\b\nExample:\n  corral sample-size iris.csv --target species --tolerance 0.6 --held-out 15",
)
def sample_size(
    table: TablePath,
    target: Target,
    tolerance: Annotated[
        float, typer.Option(help="Largest acceptable bound on the excess error; it is loose.", min=1e-10)
    ],
    initial_size: Annotated[int, typer.Option(help="Rows of each class to start with.", min=1)] = 30,
    test_size: Annotated[int, typer.Option("--held-out", help="Test rows of each class.", min=1)] = 50,
    step: Annotated[
        int | None, typer.Option(help="Rows added in each step; by default 30, or one per class.", min=1)
    ] = None,
    allocation: Annotated[
        str, typer.Option(help="How rows are shared out: proportional (the paper's) or optimal.")
    ] = "proportional",
    drop: Drop = None,
    numeric_only: NumericOnly = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate how many rows each class needs, from those in a table (algorithm 4 of the paper)."""
    X, y = _training_rows(table, target, drop or [], numeric_only, quiet)
    rule: Allocation = allocation  # type: ignore[assignment]  # checked where it is used
    with _threads(jobs), _status("Adding rows step by step", quiet):
        found = estimate_sample_sizes(
            X,
            y,
            tolerance=tolerance,
            initial_size=initial_size,
            test_size=test_size,
            step=max(30, np.unique(y).size) if step is None else step,
            allocation=rule,
            random_state=seed,
        )
    if as_json:
        guess = found.extrapolation
        _print_json(
            {
                "converged": found.converged,
                "reason": found.reason,
                "tolerance": found.tolerance,
                "epsilon": found.epsilon,
                "accuracy": found.accuracy,
                "rows": _by_class(found.classes, found.sizes),
                "extrapolation": None if guess is None else _by_class(found.classes, guess.sizes),
                "steps": [
                    {
                        "rows": int(of_step.sizes.sum()),
                        "epsilon": of_step.epsilon,
                        "accuracy": of_step.accuracy,
                    }
                    for of_step in found.steps
                ],
            }
        )
    elif not quiet:
        _console().print(str(found))


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the tables and the model are written.")
    ] = Path("corral-demo"),
    jobs: Jobs = -1,
) -> None:
    """Go the whole way on the paper's ten groups: fit, predict and explain, with files to look at.

    Thirty variables, x0 to x29. Group g gathers around 0.5 in six of them, from x(g-1) on; in the other
    24 it is uniform on (0, 1).
    """
    import pandas as pd

    console = _console()
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{j}" for j in range(30)]
    tables: dict[str, pd.DataFrame] = {}
    for name, n_per_class in (("groups", 100), ("new", 10)):
        X, y = make_ten_groups(n_per_class, random_state=len(tables))
        tables[name] = pd.DataFrame(X, columns=names).assign(group=y, id=[f"r{i:04}" for i in range(len(y))])
        with writing_table(folder / f"{name}.csv") as add:
            add(tables[name])
    groups, new, model, labels = (
        folder / file for file in ("groups.csv", "new.csv", "groups.corral", "labels.csv")
    )
    console.print(f"$ corral fit {groups} --target group --drop id --model {model}", style="bold")
    fit(groups, "group", model, drop=["id"], jobs=jobs)
    console.print(f"$ corral predict {model} {new} --id id --out {labels}", style="bold")
    predict(model, new, labels, keep=["id"], jobs=jobs)
    right = np.mean(pd.read_csv(labels)["label"] == tables["new"]["group"])
    console.print(f"{right:.0%} of these labels are right; the Bayes rule has about 91%, the paper 67%.")
    console.print(f"$ corral explain {model} {new} --row 0", style="bold")
    explain(model, new, 0)


# What commands share


def _training_rows(
    path: Path, target: str, drop: Sequence[str], numeric_only: bool, quiet: bool
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Variables and classes of a table."""
    columns = table_columns(path)
    for name in (target, *drop):
        if name not in columns:
            raise ValueError(f"{path} has no column {name!r}; it has {_listed(columns)}.")
    variables = [name for name in columns if name != target and name not in drop]
    for name in variables:
        if is_unnamed(name):
            raise ValueError(
                f"{path} has a column without a name: name it, or leave it out by --drop '{name}'."
            )
    table = read_table(path, [*variables, target])
    y = as_labels(table[target], path)
    if numeric_only:
        numeric = numeric_columns(table[variables])
        left_out = [name for name in variables if name not in numeric]
        if left_out and not quiet:
            _say_error(f"note: left out, because not numeric: {_listed(left_out)}")
        variables = numeric
    if not variables:
        raise ValueError(f"{path} has no variables beside the target.")
    try:
        return as_numbers(table[variables], path), y
    except ValueError as error:
        advice = "; leave it out by --drop, or all such columns by --numeric-only."
        if "is not numeric" in str(error):
            raise ValueError(str(error).removesuffix(".") + advice) from None
        raise


def _load_classifier(path: Path) -> tuple[Any, list[str]]:
    """A model that gives probabilities, and the columns that it reads."""
    fitted = load_model(path)
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"{path} holds a {type(fitted).__name__}, which gives no labels.")
    if not hasattr(fitted, "feature_names_in_"):
        raise ValueError(f"{path} was fitted to an array without names, so its columns are not known.")
    return fitted, fitted.feature_names_in_.tolist()


def _row(path: Path, names: list[str], row: int) -> pd.DataFrame:
    for chunk in read_chunks(path, names):
        if row in chunk.index:
            return as_numbers(chunk.loc[[row]], path)
    raise ValueError(f"{path} has rows 0 to {chunk.index[-1]}, and no row {row}.")


def _label(text: str | None, classes: NDArray[Any]) -> Any:
    """The class that is written like that."""
    if text is None:
        return None
    for label in classes:
        if str(label) == text:
            return label
    raise ValueError(f"there is no class {text!r}; there are {_listed(classes.tolist())}.")


def _bars(quiet: bool) -> int:
    """Bars are for people who watch; a log would be full of them."""
    return int(not quiet and sys.stderr.isatty())


@contextmanager
def _counter(quiet: bool) -> Iterator[Any]:
    """Counts rows while their number is not known."""
    if not _bars(quiet):
        yield lambda n: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} rows"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task("rows", total=None)
        yield lambda n: bar.advance(line, n)


@contextmanager
def _status(message: str, quiet: bool) -> Iterator[None]:
    if not _bars(quiet):
        yield
        return
    with Console(stderr=True).status(message):
        yield


def _threads(jobs: int) -> Any:
    """For estimators that leave n_jobs open, as loaded ones do."""
    if jobs == 0:
        raise ValueError("--jobs must not be 0.")
    return joblib.parallel_config(backend="threading", n_jobs=jobs)


def _console() -> Console:
    """Prints names as they are: [brackets] in them are no markup."""
    return Console(markup=False, highlight=False, soft_wrap=True)


def _print_json(result: Any) -> None:
    typer.echo(json.dumps(result, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(repr(name) for name in names[:_MOST_NAMED]) + more


def _by_class(classes: NDArray[Any], values: Any) -> dict[str, Any]:
    """Values by class; JSON has no infinity."""
    return {
        str(label): value if np.isfinite(value) else None
        for label, value in zip(classes.tolist(), np.asarray(values).tolist(), strict=True)
    }


def _names(fitted: Any) -> NDArray[Any]:
    return np.array(getattr(fitted, "feature_names_in_", [f"x{j}" for j in range(fitted.n_features_in_)]))


def _description(fitted: Any) -> dict[str, Any]:
    """What every estimator has, and what only some have."""
    described: dict[str, Any] = {
        "estimator": type(fitted).__name__,
        "params": fitted.get_params(),
        "variables": _names(fitted),
    }
    if hasattr(fitted, "best_params_"):
        described |= {"chosen": fitted.best_params_, "expected_accuracy": fitted.best_score_}
    if hasattr(fitted, "class_count_"):
        described["rows_by_class"] = _by_class(fitted.classes_, fitted.class_count_)
    relevant = getattr(fitted, "relevant_", getattr(fitted, "masks_", None))
    if relevant is not None:
        described["relevant"] = {
            str(label): _by_bandwidth(fitted, a, of_class)
            for a, (label, of_class) in enumerate(zip(fitted.classes_.tolist(), relevant, strict=True))
        }
    return described


def _by_bandwidth(fitted: Any, a: int, relevant: NDArray[np.bool_]) -> list[str]:
    """Names of the relevant variables of a class, the smallest bandwidth first."""
    order = np.argsort(fitted.bandwidths_[a], kind="stable")
    names: list[str] = _names(fitted)[order[relevant[order]]].tolist()
    return names


def _print_description(console: Console, fitted: Any, accuracy: Mapping[str, float] | None = None) -> None:
    """Print what a model is and which variables describe its classes, beside their held-out accuracy."""
    described = _description(fitted)
    console.print(f"{described['estimator']} of {fitted.n_features_in_} variables")
    if "chosen" in described:
        chosen = ", ".join(f"{name}={value!r}" for name, value in described["chosen"].items())
        console.print(f"chosen by leave-one-out: {chosen}")
    if "relevant" not in described:
        return
    shown = Table("class", "rows")
    if accuracy is not None:
        shown.add_column("accuracy")
    shown.add_column("variables that describe it, the most concentrated first")
    for label, names in described["relevant"].items():
        count = described.get("rows_by_class", {}).get(label)
        listed = ", ".join(names[:_MOST_NAMED]) or "none found"
        if len(names) > _MOST_NAMED:
            listed += f" and {len(names) - _MOST_NAMED} more"
        of_class = [] if accuracy is None else [f"{accuracy[label]:.2f}" if label in accuracy else ""]
        shown.add_row(label, "" if count is None else f"{count:g}", *of_class, listed)
    console.print(shown)


def _explanation(found: Explanation, row: int) -> dict[str, Any]:
    listed = found.rows[0] >= 0
    columns = {
        "value": found.values[0],
        "evidence": found.evidence[0],
        "bandwidth": found.bandwidths[0, 0],
        "bandwidth_rival": found.bandwidths[0, 1],
    }
    return {
        "row": row,
        "label": found.label[0],
        "rival": found.rival[0],
        "probability": found.probability[0, 0],
        "probability_rival": found.probability[0, 1],
        "variables": [
            {"variable": name, **{column: values[j] for column, values in columns.items()}}
            for j, name in enumerate(found.feature_names)
        ],
        "training_rows": [
            {"row": number, "share": share}
            for number, share in zip(found.rows[0][listed], found.shares[0][listed], strict=True)
        ],
    }


def _print_explanation(console: Console, found: Explanation, row: int) -> None:
    label, rival = found.label[0], found.rival[0]
    console.print(
        f"Row {row} is {label} with probability {found.probability[0, 0]:.3f}, rather than {rival} with "
        f"probability {found.probability[0, 1]:.3f}."
    )
    evidence = found.evidence[0]
    order = np.argsort(-np.abs(evidence), kind="stable")
    for sign, verb in ((1.0, "for"), (-1.0, "against")):
        strongest = [j for j in order if sign * evidence[j] > 0.05][:3]
        if strongest:
            named = ", ".join(f"{found.feature_names[j]} = {found.values[0, j]:.4g}" for j in strongest)
            console.print(f"What speaks most {verb} {label}: {named}.")
    shown = Table("variable", "value", "evidence", f"bandwidth in {label}", f"in {rival}")
    for j in order[:_MOST_NAMED]:
        numbers = (found.bandwidths[0, 0, j], found.bandwidths[0, 1, j])
        shown.add_row(
            found.feature_names[j],
            f"{found.values[0, j]:.4g}",
            f"{evidence[j]:+.2f}",
            *(f"{number:.3g}" for number in numbers),
        )
    console.print(shown)
    if order.size > _MOST_NAMED:
        console.print(f"and {order.size - _MOST_NAMED} more variables with less evidence")
    support = ", ".join(
        f"{number} ({share:.0%})"
        for number, share in zip(found.rows[0], found.shares[0], strict=True)
        if number >= 0
    )
    console.print(f"The training rows of {label} most like it, with their share of its density: {support}")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()

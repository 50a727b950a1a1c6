"""The command line: reads tables and models, calls the library, and has `_console` print what it says.

Only what `--help` needs is imported here; a command imports the rest when it runs.
"""

from __future__ import annotations

import json
import time
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, runtime_checkable

try:
    import typer
except ModuleNotFoundError:
    raise SystemExit('error: the command line needs more packages: pip install "corral[cli]"') from None
from typer.core import TyperGroup

from corral._persist.files import check_different
from corral.cli.options import (
    AllocationName,
    AsJson,
    Drop,
    EstimatorName,
    Ids,
    Jobs,
    Missing,
    MissingRows,
    ModelPath,
    NaValues,
    NumericOnly,
    Priors,
    Quiet,
    QuoteFormulas,
    Seed,
    TablePath,
    Target,
    output,
)
from corral.cli.text import visible

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral._evaluation import HeldOut
    from corral._planning import SampleSizes
    from corral.cli.console import Output

# Code of the exit for a command line, table or model that is not right; Typer's own for the first of these.
USER_ERROR = 2

_PLOTS = (".png", ".svg", ".pdf")


@runtime_checkable
class _UsageError(Protocol):
    """What Typer raises for a command line that is not right; it publishes some kinds of it, but not all."""

    exit_code: int

    def format_message(self) -> str:
        """What is not right, for people."""
        ...


class _Commands(TyperGroup):
    """Commands whose errors are one sentence on the standard error stream."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember how to speak, before anything can go wrong."""
        ctx.meta["json"] = "--json" in args
        ctx.meta["quiet"] = "--quiet" in args or "-q" in args
        help_is_the_answer = not args
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except Exception as error:
            if help_is_the_answer or not isinstance(error, _UsageError):
                raise
            _say("error", _sentence(error), as_json=ctx.meta["json"])
            raise typer.Exit(USER_ERROR) from None
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what it warns of is told at once, each sentence once."""
        told: set[str] = set()

        def tell(message: Warning | str, *_: Any, **__: Any) -> None:
            if not ctx.meta["quiet"] and str(message) not in told:
                told.add(str(message))
                _say("note", str(message), as_json=ctx.meta["json"])

        with warnings.catch_warnings():
            warnings.showwarning = tell
            warnings.simplefilter("ignore")
            for category in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", category)
            try:
                return super().invoke(ctx)
            except Exception as error:
                if not _is_told(error):
                    raise
                _say("error", _sentence(error), as_json=ctx.meta["json"])
        raise typer.Exit(USER_ERROR)


def _is_told(error: Exception) -> bool:
    """Whether an error is the user's to mend; all others are ours and end with a traceback."""
    if isinstance(error, BrokenPipeError):  # whoever reads the answer has had enough
        return False
    if isinstance(error, ImportError):  # of an extra that is missing, not of a part of corral
        return not (error.name or "").startswith("corral")
    return isinstance(error, MemoryError | OSError | ValueError | _UsageError)


def _say(kind: str, message: str, *, as_json: bool) -> None:
    """One line on the standard error stream: words, or an object of JSON."""
    sentence = " ".join(line.strip() for line in message.split("\n"))
    typer.echo(json.dumps({kind: sentence}) if as_json else visible(f"{kind}: {sentence}"), err=True)


def _sentence(error: Exception) -> str:
    """What went wrong, for people."""
    if isinstance(error, MemoryError):
        return "there is not enough memory."
    if isinstance(error, ModuleNotFoundError):
        return f'{error.name} is not installed: pip install "corral[cli]".'
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        said = error.format_message().removesuffix(".")
        return f"{said}." if context is None else f"{said}: see '{context.command_path} --help'."
    return str(error) or f"{type(error).__name__}."


app = typer.Typer(
    name="corral",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Classify the rows of a table; see which variables describe each class and why a row got its label.",
    epilog="\b\nStart with:\n  corral demo\n"
    "  corral fit iris.csv --target species --model iris.corral --report iris.html\n\n"
    "\b\nExit codes:\n  0    done\n"
    "  2    the command line, a table or a model is not right; no file is left half written\n"
    "  130  stopped by Ctrl-C\n\n"
    "A file that is there is replaced, with a note, by one of its kind: a model by a model, predictions by "
    "predictions. Any other is left alone, and the command refused.\n\n"
    "With --json, errors and notes are JSON as well, one object per line on the standard error stream.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"corral {version('corral')}")
        raise typer.Exit


@app.callback()
def _shared(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(
    short_help="Fit a classifier and measure it on held-out rows.",
    epilog="\b\nExamples:\n  corral fit iris.csv --target species\n"
    "  corral fit iris.csv -t species --id flower_id --cv 5 --model iris.corral --report iris.html\n"
    "  corral fit iris.csv -t species --missing drop-rows --na-values '?'",
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
            help="cv chooses units, bandwidths and variables; rodeo is the paper's rule, in units of the "
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
    test_size: Annotated[
        float, typer.Option(help="Share of rows held out to measure with.", min=0.01, max=0.99)
    ] = 0.25,
    cv: Annotated[
        int | None, typer.Option(help="Hold out each of so many parts in turn instead.", min=2)
    ] = None,
    ids: Ids = None,
    drop: Drop = None,
    numeric_only: NumericOnly = False,
    missing: MissingRows = Missing.error,
    na_values: NaValues = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a classifier, measure it on rows held out beside two baselines, and show what describes each class.

    The model, and the variables shown, are those of all rows; the scores are those of held-out rows.
    """
    from dataclasses import asdict

    from sklearn.dummy import DummyClassifier
    from sklearn.naive_bayes import GaussianNB

    from corral._estimators.base import copies_sentence
    from corral._evaluation import held_out_predictions, splitter
    from corral._persist.model_file import save_model
    from corral.cli.columns import Asked, training_rows
    from corral.cli.console import Output, describe, description, interval_words, score_table
    from corral.cli.outputs import MODEL, REPORT, check_kinds

    out = Output(as_json, quiet)
    check_different(table, model, report)
    check_kinds((model, MODEL), (report, REPORT))
    asked = Asked([*(ids or ()), *(drop or ())], numeric_only, missing is Missing.drop_rows, na_values or ())
    with out.share(f"Read {table.name}") as told:
        X, y = training_rows(table, target, asked, told)
    split = splitter(y, test_size=test_size, cv=cv, seed=seed)
    chosen = _estimator(estimator, priors, seed, out)
    name = type(chosen).__name__
    classifiers = {
        name: chosen,
        "Gaussian naive Bayes": GaussianNB(),
        "most frequent class": DummyClassifier(strategy="prior"),
    }
    n_fits = len(classifiers) * split.get_n_splits() + 1
    with _threads(jobs), out.steps(n_fits, own_bars=hasattr(chosen, "verbose")) as told:
        held_out = held_out_predictions(classifiers, X, y, split, told)
        told(f"{name} with all rows")
        fitted = chosen.fit(X, y)
    if getattr(fitted, "n_copies_", 0):
        _note(copies_sentence(fitted.n_copies_, len(y)))
    for each in (fitted, getattr(fitted, "best_estimator_", fitted)):
        if hasattr(each, "verbose"):
            each.verbose = 0  # its bars were for the fit
    if model is not None:
        save_model(fitted, model)
    if report is not None:
        from corral.report import write_report

        with _threads(jobs), out.waiting("Write the report"):
            write_report(report, fitted, X, y, held_out=held_out[name], source=table.name, random_state=seed)

    scores = {of_name: found.scores() for of_name, found in held_out.items()}
    own = scores[name]
    measured_on = f"{cv} parts in turn" if cv else f"{len(held_out[name].truth)} of {len(y)} rows"
    described = describe(fitted)
    full = [score_table(scores, measured_on), *description(described, own.accuracy_by_class)]
    if model is not None:
        full.append(f"The model, fitted to all {len(y)} rows, is in {model}")
    if report is not None:
        full.append(f"The report is in {report}")
    out.answer(
        {
            "table": table,
            "target": target,
            "rows": len(y),
            "held_out": measured_on,
            "scores": {of_name: asdict(of_all) for of_name, of_all in scores.items()},
            **described,
            "model": model,
            "report": report,
        },
        [f"{name}: accuracy {own.accuracy:.3f}, 95% interval {interval_words(own)}, held out {measured_on}"],
        full,
    )


@app.command(
    short_help="Write labels and probabilities of a table's rows.",
    epilog="\b\nExample:\n  corral predict iris.corral new.csv --id flower_id --out labels.csv",
)
def predict(
    model: ModelPath,
    table: TablePath,
    to: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Table to write: .csv, .tsv or .parquet.", callback=output
        ),
    ],
    ids: Ids = None,
    missing: MissingRows = Missing.error,
    na_values: NaValues = None,
    quote_formulas: QuoteFormulas = False,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the label and the probability of each class for every row, in the order of the table.

    Rows are read and written in chunks, so the table may be larger than memory. FILE is replaced when
    all rows are done, and not before. After a kill, Ctrl-C or a full disk, the same command goes on from
    what was done, which is kept in a hidden folder beside FILE. If rows are left out and no --id names the
    others, a column numbers them.
    """
    import pandas as pd

    from corral.cli.columns import IF_MISSING
    from corral.cli.console import Output
    from corral.cli.outputs import PREDICTIONS, check_kinds
    from corral.cli.tables import (
        as_numbers,
        formula_in,
        missing_rows,
        read_chunks,
        resuming_table,
        without_formulas,
    )

    out = Output(as_json, quiet)
    check_different(model, table, to)
    check_kinds((to, PREDICTIONS))
    fitted, names = _load_classifier(model)
    kept = list(dict.fromkeys(ids or ()))
    for name in kept:
        if name in names:
            raise ValueError(
                f"{name!r} is a variable of {model}, so it does not name rows; "
                f"to fit a model without it, give corral fit the option --id {name!r}."
            )
    added = ["label", *(f"p_{label}" for label in fitted.classes_.tolist())]
    numbered = missing is Missing.drop_rows and not kept  # or nobody could tell which rows are there
    while set(added) & set(kept):
        added = [f"predicted_{name}" for name in added]
    if added[0] != "label":
        _note(f"the label is in the column {added[0]!r}, because names of kept columns are taken.")

    def labelled(chunk: pd.DataFrame) -> pd.DataFrame:
        proba = fitted.predict_proba(as_numbers(chunk[names], table, if_missing=IF_MISSING))
        labels = fitted.classes_[proba.argmax(axis=1)]
        rows = pd.DataFrame(dict(zip(added, (labels, *proba.T), strict=True)), index=chunk.index)
        if numbered:
            rows.insert(0, "row", chunk.index)
        rows = pd.concat([chunk[kept], rows], axis=1)
        return without_formulas(rows, to) if quote_formulas else rows

    options = {"kept": kept, "missing": missing, "na_values": na_values, "quote_formulas": quote_formulas}
    job = _job(model, table, options)
    formula = formula_in(pd.DataFrame({"label": fitted.classes_}), to)
    start, n_rows, n_left_out = time.perf_counter(), 0, 0
    with resuming_table(to, job) as add, _threads(jobs), out.share("Predict") as told:
        for chunk in read_chunks(table, names, verbatim=kept, na_values=na_values or (), told=told):
            if missing is Missing.drop_rows:
                lacking = missing_rows(chunk[names])
                n_left_out += int(lacking.sum())
                chunk = chunk[~lacking]  # noqa: PLW2901
                if chunk.empty:
                    continue
            add(chunk, labelled)
            formula = formula or formula_in(chunk[kept], to)
            n_rows += len(chunk)
        if n_rows == 0:
            raise ValueError(f"{table} has no row without missing values.")
    seconds = time.perf_counter() - start
    if n_left_out:
        _note(f"left out {n_left_out} of {n_rows + n_left_out} rows, which lack a value.")
    if formula and not quote_formulas:
        _note(
            f"{to} holds text that a spreadsheet may run as a formula, such as {formula[:40]!r}; "
            "--quote-formulas writes an apostrophe before it."
        )
    written = pd.DataFrame(columns=[*(["row"] if numbered else kept), *added])
    columns = list((without_formulas(written, to) if quote_formulas else written).columns)
    out.answer(
        {"rows": n_rows, "left_out": n_left_out, "seconds": seconds, "columns": columns, "out": to},
        [],
        [f"{n_rows} rows in {seconds:.1f} s; labels and probabilities are in {to}"],
    )


@app.command(
    short_help="Say why a row gets its label.",
    epilog="\b\nExamples:\n  corral explain iris.corral new.csv --row 12 --against virginica\n"
    "  corral explain iris.corral new.csv --row 12 --plot why.png",
)
def explain(
    model: ModelPath,
    table: TablePath,
    row: Annotated[int, typer.Option(help="Which row of the table; the first one is 0.", min=0)],
    against: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Compare with this class, not the second most probable."),
    ] = None,
    n_rows: Annotated[int, typer.Option("--rows", help="How many training rows to list.", min=1)] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", "-p", metavar="FILE", help="Draw it as well: .png, .svg or .pdf.", callback=output
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say why a row gets its label and not another: which variables and which training rows speak for it.

    The evidence of a variable is the logarithm of how much more probable its value is under the label
    than under the other class, all other variables given.
    """
    from corral.cli.columns import class_called, read_row
    from corral.cli.console import Output, explanation_data, explanation_words
    from corral.cli.outputs import PLOT, check_kinds

    check_different(model, table, plot)
    if plot is not None and plot.suffix.lower() not in _PLOTS:
        raise ValueError(f"{plot} must end in {', '.join(_PLOTS)} to say what it is.")
    check_kinds((plot, PLOT))
    fitted, names = _load_classifier(model, explains=True)
    sample = read_row(table, names, row)
    rival = class_called(against, fitted.classes_)
    found = fitted.explain(sample, against=rival, n_rows=n_rows)
    if rival is not None and found.label[0] == rival:
        raise ValueError(
            f"row {row} has the label {against!r} itself: name another class by --against, or none."
        )
    if plot is not None:
        _draw(found, plot)
    words = list(explanation_words(found, row))
    if plot is not None:
        words.append(f"The plot is in {plot}")
    Output(as_json, quiet).answer({**explanation_data(found, row), "plot": plot}, words[:1], words)


@app.command(
    short_help="Write a page about a model and a table.",
    epilog="\b\nExamples:\n  corral report iris.corral new.csv\n"
    "  corral report iris.corral new.csv --target species --tolerance 0.6 --out iris.html",
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
            help="Page to write; by default beside MODEL.",
            callback=output,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Add the sample-size curve down to this bound; needs --target.", min=1e-10),
    ] = None,
    missing: MissingRows = Missing.error,
    na_values: NaValues = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about a model and the rows of a table: one HTML file that needs no network.

    With --target it says how well the model does, measured on the rows of the table that are equal to no
    training row, even when rounded. If there are none, it is not known whether rows are new: all count,
    and the page says so.
    """
    from corral._evaluation import unseen_predictions
    from corral.cli.columns import Asked, new_rows
    from corral.cli.console import Output
    from corral.cli.outputs import REPORT, check_kinds
    from corral.report import write_report

    out = Output(as_json, quiet)
    if tolerance is not None and target is None:
        raise ValueError("--tolerance needs --target: the sample-size curve is made from classes.")
    page = model.with_suffix(".html") if to is None else to
    check_different(model, table, page)
    check_kinds((page, REPORT))
    fitted, names = _load_classifier(model)
    asked = Asked(drop_rows=missing is Missing.drop_rows, na_values=na_values or ())
    with out.share(f"Read {table.name}") as told:
        X, y = new_rows(table, names, target, fitted.classes_, asked, told)
    held_out, sizes = None, None
    with _threads(jobs):
        if y is not None:
            held_out = unseen_predictions(fitted, X, y)
            _note_of_novelty(fitted, len(y), held_out)
        if y is not None and tolerance is not None:
            with out.waiting("Add rows step by step"):
                sizes = _sample_sizes(X, y, tolerance, seed=seed)
        with out.waiting("Write the report"):
            written = write_report(
                page,
                fitted,
                X,
                y,
                held_out=held_out,
                sample_sizes=sizes,
                source=table.name,
                random_state=seed,
            )
    out.answer(
        {"rows": len(X), "held_out": 0 if held_out is None else len(held_out.truth), "report": written},
        [],
        [f"The report on {len(X)} rows is in {written}"],
    )


@app.command(epilog="\b\nExample:\n  corral info iris.corral --json")
def info(model: ModelPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Say what is in a model file."""
    from corral._persist.model_file import load_model, read_header
    from corral.cli.console import Output, describe, description

    header = read_header(model)
    described = describe(load_model(model))
    size = model.stat().st_size
    versions = ", ".join(f"{name} {number}" for name, number in header["versions"].items())
    words = list(description(described))
    Output(as_json, quiet).answer(
        {
            "file": model,
            "bytes": size,
            "format": header["format"],
            "versions": header["versions"],
            **described,
        },
        words[:1],
        [f"{model}: {size} bytes, written by {versions}", *words],
    )


@app.command(
    "sample-size",
    short_help="Estimate how many rows each class needs.",
    epilog="\b\nExample:\n  corral sample-size iris.csv --target species --tolerance 0.6 --held-out 15",
)
def sample_size(
    table: TablePath,
    target: Target,
    tolerance: Annotated[
        float, typer.Option(help="Largest acceptable bound on the excess error; it is loose.", min=1e-10)
    ],
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
    missing: MissingRows = Missing.error,
    na_values: NaValues = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate how many rows each class needs, from those in a table (algorithm 4 of the paper)."""
    from corral.cli.columns import Asked, training_rows
    from corral.cli.console import Output, sample_size_data

    out = Output(as_json, quiet)
    asked = Asked([*(ids or ()), *(drop or ())], numeric_only, missing is Missing.drop_rows, na_values or ())
    with out.share(f"Read {table.name}") as told:
        X, y = training_rows(table, target, asked, told)
    with _threads(jobs), out.waiting("Add rows step by step"):
        found = _sample_sizes(
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


@app.command(short_help="Go the whole way on the paper's ten groups.")
def demo(
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the tables, the model and the report are written.")
    ] = Path("corral-demo"),
    jobs: Jobs = -1,
) -> None:
    """Go the whole way on the paper's ten groups: fit, predict and explain, with files to look at.

    Thirty variables, x0 to x29. Group g gathers around 0.5 in six of them, from x(g-1) on; in the other
    24 it is uniform on (0, 1).
    """
    import numpy as np
    import pandas as pd

    from corral.cli.outputs import MODEL, PLOT, PREDICTIONS, REPORT, check_kinds, table_of
    from corral.cli.tables import write_table
    from corral.datasets import make_ten_groups

    folder.mkdir(parents=True, exist_ok=True)
    files = ("groups.csv", "new.csv", "groups.corral", "labels.csv", "why.png", "report.html")
    groups, new, model, labels, plot, page = paths = [folder / file for file in files]
    names = [f"x{j}" for j in range(30)]
    groups_table = table_of("a table of the demo", lambda columns: columns == [*names, "group", "id"])
    kinds = (groups_table, groups_table, MODEL, PREDICTIONS, PLOT, REPORT)
    check_kinds(*zip(paths, kinds, strict=True))

    tables: dict[str, pd.DataFrame] = {}
    for name, n_per_class in (("groups", 100), ("new", 10)):
        X, y = make_ten_groups(n_per_class, random_state=len(tables))
        tables[name] = pd.DataFrame(X, columns=names).assign(group=y, id=[f"r{i:04}" for i in range(len(y))])
        write_table(folder / f"{name}.csv", tables[name])

    _show_command(f"fit {groups} --target group --id id --model {model} --report {page}")
    fit(groups, "group", model, page, ids=["id"], jobs=jobs)
    _show_command(f"predict {model} {new} --id id --out {labels}")
    predict(model, new, labels, ids=["id"], jobs=jobs)
    right = np.mean(pd.read_csv(labels)["label"] == tables["new"]["group"])
    typer.echo(f"{right:.0%} of these labels are right; the Bayes rule has about 91%, the paper 67%.")
    _show_command(f"explain {model} {new} --row 0 --plot {plot}")
    explain(model, new, 0, plot=plot)
    typer.echo(visible(f"Open the report in a browser: {page}"))


# What commands share


def _show_command(arguments: str) -> None:
    typer.secho(visible(f"$ corral {arguments}"), bold=True)


def _note(message: str) -> None:
    """Something that is good to know: told like a warning of the library."""
    warnings.warn(message, stacklevel=2)


def _estimator(name: EstimatorName, priors: Priors, seed: int, out: Output) -> Any:
    match name:
        case EstimatorName.cv:
            from corral._estimators.search import RodeoClassifierCV

            return RodeoClassifierCV(priors=priors.value, random_state=seed, verbose=out.bars)
        case EstimatorName.rodeo:
            from corral._estimators.classifier import RodeoClassifier

            return RodeoClassifier(priors=priors.value, random_state=seed, verbose=out.bars)
        case EstimatorName.lspc:
            from corral._estimators.lspc import LSPClassifier

            # Columns of a table are seldom in the same units, which the paper's rule, None, takes them to be.
            return LSPClassifier(scale="standard", random_state=seed)


def _note_of_novelty(fitted: Any, n: int, held_out: HeldOut | None) -> None:
    """Say which of n rows the errors in a report are of, unless all of them are new."""
    n_new = 0 if held_out is None else len(held_out.truth)
    if held_out is not None and n_new < n:
        _note(
            f"{n - n_new} of {n} rows may be training rows, to the digits that are written; errors in the "
            f"report are those of the other {n_new}, {held_out.claim}."
        )
    elif held_out is None:
        why = (
            f"all {n} rows may be training rows, to the digits that are written"
            if hasattr(fitted, "_training")
            else f"its {type(fitted).__name__} does not keep training rows as they were"
        )
        _note(
            f"it is not known whether any row is new to the model, because {why}; errors in the report are "
            "those of all rows, and 'corral fit --report' measures on rows held out."
        )


def _sample_sizes(
    X: pd.DataFrame,
    y: NDArray[Any],
    tolerance: float,
    *,
    seed: int,
    initial_size: int | None = None,
    test_size: int | None = None,
    step: int | None = None,
    allocation: Any = "proportional",
) -> SampleSizes:
    """`estimate_sample_sizes` with defaults that small tables allow: a third each to start and to test."""
    import numpy as np

    from corral._planning import estimate_sample_sizes

    classes, counts = np.unique(y, return_counts=True)
    third = max(int(counts.min()) // 3, 1)
    return estimate_sample_sizes(
        X,
        y,
        tolerance=tolerance,
        initial_size=min(30, third) if initial_size is None else initial_size,
        test_size=min(50, third) if test_size is None else test_size,
        step=max(30, classes.size) if step is None else step,
        allocation=allocation,
        random_state=seed,
    )


def _load_classifier(path: Path, *, explains: bool = False) -> tuple[Any, list[str]]:
    """A model that gives probabilities, and reasons if asked, and the columns that it reads."""
    from corral._persist.model_file import load_model

    fitted = load_model(path)
    kind = type(fitted).__name__
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"{path} holds a {kind}, which gives no labels.")
    if explains and not hasattr(fitted, "explain"):
        raise ValueError(f"{path} holds {kind}, which cannot explain its labels: only class densities can.")
    if not hasattr(fitted, "feature_names_in_"):
        raise ValueError(f"{path} was fitted to an array without names, so its columns are not known.")
    return fitted, fitted.feature_names_in_.tolist()


def _job(model: Path, table: Path, options: dict[str, Any]) -> dict[str, Any]:
    """All that the rows written by `predict` depend on."""
    import hashlib
    from importlib.metadata import version

    with model.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    of_table = table.stat()
    packages = ("corral", "numba", "numpy", "pandas", "pyarrow", "scikit-learn", "scipy")
    return {
        "model": checksum,
        "table": [str(table.resolve()), of_table.st_size, of_table.st_mtime_ns],
        "versions": {name: version(name) for name in packages},
        **options,
    }


def _draw(explanation: Any, path: Path) -> None:
    from io import BytesIO

    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from corral._display import ExplanationDisplay
    from corral._persist.files import replacing

    mpl.use("agg")  # no window is ever opened
    figure = ExplanationDisplay.from_explanation(explanation, sample=0).figure_
    drawn = BytesIO()  # not the file, of whose errors matplotlib makes others
    figure.savefig(drawn, format=path.suffix[1:].lower(), bbox_inches="tight")
    plt.close(figure)
    with replacing(path) as part:
        part.write_bytes(drawn.getvalue())


def _threads(jobs: int) -> AbstractContextManager[Any]:
    """For estimators that leave n_jobs open, as loaded ones do."""
    import joblib

    if jobs == 0:
        raise ValueError("--jobs must not be 0.")
    config: AbstractContextManager[Any] = joblib.parallel_config(backend="threading", n_jobs=jobs)
    return config


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()

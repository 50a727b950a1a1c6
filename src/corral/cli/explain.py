"""`corral explain` and `corral info`: why a row gets its label, and what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli import options
from corral.cli.app import program
from corral.cli.shared import check_different, load_classifier, naming_column

_PLOTS = (".png", ".svg", ".pdf")


@program.command(
    short_help="Say why a row gets its label.",
    epilog="\b\nExamples:\n  corral explain penguins.corral new.csv --row 12 --against Gentoo\n"
    "  corral explain penguins.corral new.csv --row P0004 --row P0017\n"
    "  corral explain penguins.corral new.csv --row 12 --plot why.png",
)
def explain(
    model: options.ModelPath,
    table: options.TablePath,
    row: Annotated[
        list[str],
        typer.Option(
            metavar="ROW",
            help="Which row of the table: its id in the column that 'corral fit --id' was given, or, unless "
            "ids are whole numbers, its number, from 0 on; may be repeated.",
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Compare with this class, not the one that comes next."),
    ] = None,
    n_rows: Annotated[int, typer.Option("--rows", help="How many training rows to list.", min=1)] = 5,
    plot: Annotated[
        Path | None, options.output_option("--plot", "-p", text="Draw it as well: .png, .svg or .pdf.")
    ] = None,
    na_values: options.NaValues = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say why a row gets its label and not another: which variables and which training rows speak for it.

    The evidence of a variable is what it adds to the logarithm of the odds of the label and the other class,
    on average over the orders in which variables may become known. With the priors it adds up to these odds.
    A row that is novel, unlike all training rows, is said to be so, with the variables that make it unlike
    the class nearest to it.
    """
    from corral.cli.columns import read_rows
    from corral.cli.console import Output, explanation_data, explanation_words
    from corral.cli.labels import class_called
    from corral.cli.tables import open_table
    from corral.cli.writing import PLOT, check_kinds, note_replaced

    check_different(model, table, plot)
    if plot is not None and plot.suffix.lower() not in _PLOTS:
        raise ValueError(f"{plot} must end in {', '.join(_PLOTS)} to say what it is.")
    check_kinds((plot, PLOT))
    fitted, variables = load_classifier(model, table, na_values, explains=True)
    file = open_table(table, sep, decimal, encoding)
    asked = read_rows(file, variables, row, naming_column(fitted, file))
    variables.note_unknown_levels()
    if plot is not None and len(asked) > 1:
        raise ValueError(f"--plot draws one row, and {len(asked)} are asked for.")
    rival = class_called(against, fitted.classes_)
    data, brief, full = [], [], list[Any]()
    for number, name, sample in asked:
        found = fitted.explain(sample, against=rival, n_rows=n_rows)
        if rival is not None and found.label[0] == rival:
            raise ValueError(
                f"row {name or number} has the label {against!r} itself: name another class by --against, or "
                "none."
            )
        if plot is not None:
            note_replaced(plot)
            _draw(found, plot)
        data.append(explanation_data(found, number, name))
        words = list(explanation_words(found, f"Row {number}" if name is None else f"{name} (row {number})"))
        brief.append(words[0])
        full += ["", *words] if full else words
    if plot is not None:
        full.append(f"The plot is in {plot}")
    answer = {**data[0], "plot": plot} if len(data) == 1 else {"explanations": data}
    Output(as_json, quiet).answer(answer, brief, full)


@program.command(epilog="\b\nExample:\n  corral info penguins.corral --json")
def info(model: options.ModelPath, as_json: options.AsJson = False, quiet: options.Quiet = False) -> None:
    """Say what is in a model file."""
    from corral.cli.console import Output, describe, description
    from corral.files.model_file import load_model, read_header

    header = read_header(model)
    described = describe(load_model(model))
    size = model.stat().st_size
    versions = ", ".join(f"{name} {number}" for name, number in header["versions"].items())
    words = list(description(described))
    facts = {"file": model, "bytes": size, "format": header["format"], "versions": header["versions"]}
    title = f"{model}: {size} bytes, written by {versions}"
    Output(as_json, quiet).answer({**facts, **described}, words[:1], [title, *words])


def _draw(explanation: Any, path: Path) -> None:
    from io import BytesIO

    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from corral.display import ExplanationDisplay
    from corral.files.atomic import replacing

    mpl.use("agg")  # no window is ever opened
    figure = ExplanationDisplay.from_explanation(explanation, sample=0).figure_
    drawn = BytesIO()  # not the file, of whose errors matplotlib makes others
    figure.savefig(drawn, format=path.suffix[1:].lower(), bbox_inches="tight")
    plt.close(figure)
    with replacing(path) as part:
        part.write_bytes(drawn.getvalue())

"""`corral explain` and `corral info`: why a row gets its label, and what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral._persist.files import check_different
from corral.cli.app import program
from corral.cli.options import (
    AsJson,
    Decimal,
    Encoding,
    ModelPath,
    Quiet,
    Separator,
    TablePath,
    output,
)
from corral.cli.shared import load_classifier

if TYPE_CHECKING:
    pass


_PLOTS = (".png", ".svg", ".pdf")


@program.command(
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
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say why a row gets its label and not another: which variables and which training rows speak for it.

    The evidence of a variable is the logarithm of how much more probable its value is under the label
    than under the other class, all other variables given.
    """
    from corral.cli.columns import class_called, read_row
    from corral.cli.console import Output, explanation_data, explanation_words
    from corral.cli.formats import Given, open_table
    from corral.cli.outputs import PLOT, check_kinds

    check_different(model, table, plot)
    if plot is not None and plot.suffix.lower() not in _PLOTS:
        raise ValueError(f"{plot} must end in {', '.join(_PLOTS)} to say what it is.")
    check_kinds((plot, PLOT))
    fitted, names = load_classifier(model, explains=True)
    file = open_table(table, Given.checked(sep, decimal, encoding))
    sample = read_row(file, names, row)
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


@program.command(epilog="\b\nExample:\n  corral info iris.corral --json")
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

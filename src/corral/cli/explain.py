"""`corral explain` and `corral info`: why a row gets its label, and what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.app import program
from corral.cli.options import (
    AsJson,
    Decimal,
    Encoding,
    ModelPath,
    MoreNaValues,
    Quiet,
    Separator,
    TablePath,
    output,
)
from corral.cli.shared import check_different, load_classifier, naming_column

_PLOTS = (".png", ".svg", ".pdf")


@program.command(
    short_help="Say why a row gets its label.",
    epilog="\b\nExamples:\n  corral explain penguins.corral new.csv --row 12 --against Gentoo\n"
    "  corral explain penguins.corral new.csv --row P0004 --row P0017\n"
    "  corral explain penguins.corral new.csv --row 12 --plot why.png",
)
def explain(
    model: ModelPath,
    table: TablePath,
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
        typer.Option(metavar="CLASS", help="Compare with this class, not the second most probable."),
    ] = None,
    n_rows: Annotated[int, typer.Option("--rows", help="How many training rows to list.", min=1)] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", "-p", metavar="FILE", help="Draw it as well: .png, .svg or .pdf.", callback=output
        ),
    ] = None,
    na_values: MoreNaValues = None,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say why a row gets its label and not another: which variables and which training rows speak for it.

    The evidence of a variable is what it adds to the logarithm of the odds of the label and the other class,
    on average over the orders in which variables may become known. With the priors it adds up to these odds.
    A row that is novel, unlike all training rows, is said to be so, with the variables that make it unlike
    the class nearest to it.
    """
    from corral.cli.columns import class_called, read_rows
    from corral.cli.console import Output, explanation_data, explanation_words
    from corral.cli.formats import open_table
    from corral.cli.outputs import PLOT, check_kinds, note_replaced
    from corral.cli.tables import table_columns

    check_different(model, table, plot)
    if plot is not None and plot.suffix.lower() not in _PLOTS:
        raise ValueError(f"{plot} must end in {', '.join(_PLOTS)} to say what it is.")
    check_kinds((plot, PLOT))
    fitted, variables = load_classifier(model, explains=True)
    file = open_table(table, sep, decimal, encoding)
    gaps = variables.gap_marks(na_values)
    asked = read_rows(file, variables, row, gaps, naming_column(fitted, table_columns(file)))
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
def info(model: ModelPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Say what is in a model file."""
    from corral.cli.console import Output, describe, description
    from corral.files.model_file import load_model, read_header

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

    from corral.display import ExplanationDisplay
    from corral.files.atomic import replacing

    mpl.use("agg")  # no window is ever opened
    figure = ExplanationDisplay.from_explanation(explanation, sample=0).figure_
    drawn = BytesIO()  # not the file, of whose errors matplotlib makes others
    figure.savefig(drawn, format=path.suffix[1:].lower(), bbox_inches="tight")
    plt.close(figure)
    with replacing(path) as part:
        part.write_bytes(drawn.getvalue())

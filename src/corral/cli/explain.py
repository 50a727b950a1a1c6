"""`corral explain` and `corral info`: the reasons for the label of a row, and the content of a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli import options
from corral.cli.app import program
from corral.cli.options import file_option
from corral.cli.shared import check_different, load_classifier, naming_column

_PLOTS = (".png", ".svg", ".pdf")

_ROW_TEXT = (
    "Which row of the table: its id in the column that was given to 'corral fit --id', or, unless ids are "
    "whole numbers, its number, from 0 on; may be repeated."
)
_AGAINST_TEXT = "Compare with this class instead of the second most probable."
_PLOT_TEXT = "Also draw it to a .png, .svg or .pdf file."


@program.command(
    short_help="Explain why a row gets its label.",
    epilog="\b\nExamples:\n  corral explain penguins.corral new.csv --row 12 --against Gentoo\n"
    "  corral explain penguins.corral new.csv --row P0004 --row P0017\n"
    "  corral explain penguins.corral new.csv --row 12 --plot why.png",
)
def explain(
    model: options.ModelPath,
    table: options.TablePath,
    row: Annotated[list[str], typer.Option(metavar="ROW", help=_ROW_TEXT)],
    against: Annotated[str | None, typer.Option(metavar="CLASS", help=_AGAINST_TEXT)] = None,
    n_rows: Annotated[int, typer.Option("--rows", help="How many training rows to list.", min=1)] = 5,
    plot: Annotated[Path | None, file_option("--plot", "-p", text=_PLOT_TEXT)] = None,
    na_values: options.NaValues = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Explain why a row gets its label rather than another, by the variables and by similar training rows.

    The evidence of a variable is what it adds to the logarithm of the odds of the label and the other class,
    averaged over the orders in which the variables can be added. With the priors it sums to these odds. If a
    row is novel, unlike all training rows, the answer says so and names the variables that make it unlike
    the class nearest to it.
    """
    from corral.cli.columns import read_rows
    from corral.cli.console import Output, explanation_data, explanation_words
    from corral.cli.labels import class_named
    from corral.cli.tables import open_table
    from corral.cli.writing import PLOT, check_kinds, note_replaced

    check_different(model, table, plot)
    if plot is not None and plot.suffix.lower() not in _PLOTS:
        raise ValueError(f"{plot} must end in {', '.join(_PLOTS)} to say what it is.")
    check_kinds((plot, PLOT))
    fitted, variables = load_classifier(model, table, na_values, explains=True)
    file = open_table(table, sep, decimal, encoding)
    rows = read_rows(file, variables, row, naming_column(fitted, file))
    variables.note_unknown_categories()
    if plot is not None and len(rows) > 1:
        raise ValueError(f"--plot draws one row, and --row names {len(rows)}.")
    rival = None if against is None else class_named(against, fitted.classes_)
    data, brief, full = [], [], list[Any]()
    for number, name, sample in rows:
        explanation = fitted.explain(sample, against=rival, n_rows=n_rows)
        if rival is not None and explanation.label[0] == rival:
            raise ValueError(
                f"row {name or number} has the label {against!r} itself: name another class by --against, or "
                "none."
            )
        if plot is not None:
            note_replaced(plot)
            _draw(explanation, plot)
        data.append(explanation_data(explanation, number, name))
        title = f"Row {number}" if name is None else f"{name} (row {number})"
        lines = list(explanation_words(explanation, title))
        brief.append(lines[0])
        full += ["", *lines] if full else lines
    if plot is not None:
        full.append(f"The plot is in {plot}")
    answer = {**data[0], "plot": plot} if len(data) == 1 else {"explanations": data}
    Output(as_json, quiet).answer(answer, brief, full)


@program.command(epilog="\b\nExample:\n  corral info penguins.corral --json")
def info(model: options.ModelPath, as_json: options.AsJson = False, quiet: options.Quiet = False) -> None:
    """Describe the content of a model file."""
    from corral.cli.console import Output, describe, description
    from corral.files.model_file import load_model, read_header

    header = read_header(model)
    described = describe(load_model(model))
    size = model.stat().st_size
    versions = ", ".join(f"{name} {number}" for name, number in header["versions"].items())
    lines = list(description(described))
    facts = {"file": model, "bytes": size, "format": header["format"], "versions": header["versions"]}
    title = f"{model}: {size} bytes, written by {versions}"
    Output(as_json, quiet).answer({**facts, **described}, lines[:1], [title, *lines])


def _draw(explanation: Any, path: Path) -> None:
    """Draw an explanation to a file, which is replaced as a whole."""
    from io import BytesIO

    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from corral.display import ExplanationDisplay
    from corral.files.atomic import replacing

    mpl.use("agg")  # without a window
    figure = ExplanationDisplay.from_explanation(explanation, sample=0).figure_
    content = BytesIO()  # not the file: matplotlib would replace its errors by others
    figure.savefig(content, format=path.suffix[1:].lower(), bbox_inches="tight")
    plt.close(figure)
    with replacing(path) as part:
        part.write_bytes(content.getvalue())

"""`corral explain` shows why a row gets its label; `corral info` shows the content of a model file."""

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
    "The row to explain: its id (in the column given to corral fit --id) or its row number, counted from 0. "
    "If "
    "the ids are whole numbers, only ids are accepted. Give --row again for further rows."
)
_AGAINST_TEXT = (
    "The class to compare the label with; by default the class with the next largest product of prior and "
    "density."
)
_PLOT_TEXT = "Also draw the explanation of a single row to this .png, .svg or .pdf file."


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
    n_rows: Annotated[
        int, typer.Option("--rows", help="The number of similar training rows to list.", min=1)
    ] = 5,
    plot: Annotated[Path | None, file_option("--plot", "-p", text=_PLOT_TEXT)] = None,
    na_values: options.NaValues = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Explain why a row gets its label, by its variables and by similar training rows.

    The evidence of a variable is what the variable adds to the log odds of the label against the other class,
    averaged over the orders in which the variables can be added. The log odds of the priors plus the evidence
    of all variables are the log odds of the label against the other class. If the row is novel, which means
    that it is unlike all training rows, the output lists the variables in which it differs from the nearest
    class.
    """
    from corral.cli.columns import read_rows
    from corral.cli.console import Output, explanation_data, explanation_words
    from corral.cli.labels import class_named
    from corral.cli.tables import open_table
    from corral.cli.writing import PLOT, check_kinds, note_replaced

    check_different(model, table, plot)
    if plot is not None and plot.suffix.lower() not in _PLOTS:
        raise ValueError(
            f"{plot} must end in {', '.join(_PLOTS[:-1])} or {_PLOTS[-1]}, because the ending sets the file "
            "format."
        )
    check_kinds((plot, PLOT))
    fitted, variables = load_classifier(model, table, na_values, explains=True)
    file = open_table(table, sep, decimal, encoding)
    rows = read_rows(file, variables, row, naming_column(fitted, file))
    variables.note_unknown_categories()
    if plot is not None and len(rows) > 1:
        raise ValueError(f"--plot draws a single row, but {len(rows)} rows were given by --row.")
    rival = None if against is None else class_named(against, fitted.classes_)
    data, brief, full = [], [], list[Any]()
    for number, name, sample in rows:
        explanation = fitted.explain(sample, against=rival, n_rows=n_rows)
        if rival is not None and explanation.label[0] == rival:
            raise ValueError(
                f"row {name or number} has the label {against!r}: give another class to --against, or leave "
                "--against out."
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
    """Draw an explanation to a file, which is replaced completely or not at all."""
    from io import BytesIO

    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from corral.display import ExplanationDisplay
    from corral.files.atomic import replacing

    mpl.use("agg")  # the backend that opens no window
    figure = ExplanationDisplay.from_explanation(explanation, sample=0).figure_
    content = (
        BytesIO()
    )  # not the file, because matplotlib would replace errors of the file by errors of its own
    figure.savefig(content, format=path.suffix[1:].lower(), bbox_inches="tight")
    plt.close(figure)
    with replacing(path) as part:
        part.write_bytes(content.getvalue())

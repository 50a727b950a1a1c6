"""`corral demo`: the whole way on the paper's ten groups and on the Palmer penguins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.app import program
from corral.cli.explain import explain
from corral.cli.fit import fit
from corral.cli.options import Jobs
from corral.cli.predict import predict
from corral.cli.text import visible

if TYPE_CHECKING:
    import pandas as pd

# A table, new rows, the model, labels of the new rows, a plot and the report.
_GROUPS = ("groups.csv", "new.csv", "groups.corral", "labels.csv", "why.png", "report.html")
_PENGUINS = (
    "penguins.csv",
    "new_penguins.csv",
    "penguins.corral",
    "penguin_labels.csv",
    "penguin.png",
    "penguins.html",
)
_NAMES = [f"x{j}" for j in range(30)]
_MEASURED = [
    "species",
    "island",
    "bill_length_mm",
    "bill_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
    "sex",
    "year",
]


@program.command(short_help="Go the whole way on the paper's ten groups and on penguins.")
def demo(
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the tables, the models and the reports are written.")
    ] = Path("corral-demo"),
    jobs: Jobs = -1,
) -> None:
    """Go the whole way on two tables: fit, predict and explain, with files to look at.

    The first is the paper's ten groups. They have thirty variables, x0 to x29. Group g gathers around 0.5 in
    six of them, from x(g-1) on; in the other 24 it is uniform on (0, 1). The second is the Palmer penguins, a
    table with gaps and columns of text, whose rows belong to three years.
    """
    from corral.cli.outputs import MODEL, PLOT, PREDICTIONS, REPORT, check_kinds, note_replaced, table_of

    folder.mkdir(parents=True, exist_ok=True)
    groups, penguins = ([folder / file for file in files] for files in (_GROUPS, _PENGUINS))
    for paths, columns in ((groups, [*_NAMES, "group", "id"]), (penguins, _MEASURED)):
        table = table_of("a table of the demo", columns.__eq__)
        check_kinds(*zip(paths, (table, table, MODEL, PREDICTIONS, PLOT, REPORT), strict=True))
    note_replaced(*groups, *penguins)
    _show_groups(groups, jobs)
    typer.echo()
    _show_penguins(penguins, jobs)
    typer.echo(visible(f"Open the reports in a browser: {groups[-1]} and {penguins[-1]}"))


def _show_groups(paths: list[Path], jobs: int) -> None:
    """Fit the ten groups, label new rows of them, and explain the first."""
    import numpy as np
    import pandas as pd

    from corral.cli.writing import write_table
    from corral.datasets import make_ten_groups

    table, new, model, labels, plot, page = paths
    tables: dict[Path, pd.DataFrame] = {}
    for path, n_per_class in ((table, 100), (new, 10)):
        X, y = make_ten_groups(n_per_class, random_state=len(tables))
        tables[path] = pd.DataFrame(X, columns=_NAMES).assign(group=y, id=[f"r{i:04}" for i in range(len(y))])
        write_table(path, tables[path])
    _show_command(f"fit {table} --target group --id id --model {model} --report {page}")
    fit(table, "group", model, page, ids=["id"], jobs=jobs)
    _show_command(f"predict {model} {new} --id id --out {labels}")
    predict(model, new, labels, ids=["id"], jobs=jobs)
    right = np.mean(pd.read_csv(labels)["label"] == tables[new]["group"])
    typer.echo(f"{right:.0%} of these labels are right; the Bayes rule has about 91%, the paper 67%.")
    _show_command(f"explain {model} {new} --row r0000 --plot {plot}")
    explain(model, new, ["r0000"], plot=plot)


def _show_penguins(paths: list[Path], jobs: int) -> None:
    """Fit penguins, whole years of them held out, label others, and explain one of which little is known."""
    table, new, model, labels, plot, page = paths
    write_penguins(table, new)
    _show_command(f"fit {table} --target species --group year --model {model} --report {page}")
    fit(table, "species", model, page, group="year", jobs=jobs)
    _show_command(f"predict {model} {new} --out {labels}")
    predict(model, new, labels, jobs=jobs)
    _show_command(f"explain {model} {new} --row 0 --plot {plot}")
    explain(model, new, ["0"], plot=plot)


def write_penguins(table: Path, new: Path) -> None:
    """Write the penguins to two tables, a tenth of them to the second."""
    from corral.cli.writing import write_table
    from corral.datasets import load_penguins

    measured, species = load_penguins(return_X_y=True)
    penguins = measured.assign(species=species)[_MEASURED]
    is_new = penguins.index % 10 == 3
    write_table(table, penguins[~is_new])
    write_table(new, penguins[is_new])


def _show_command(arguments: str) -> None:
    typer.secho(visible(f"$ corral {arguments}"), bold=True)

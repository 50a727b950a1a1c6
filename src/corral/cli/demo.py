"""`corral demo`: fit, predict and explain on the paper's ten groups and on the Palmer penguins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.app import program
from corral.cli.explain import explain
from corral.cli.fit import fit
from corral.cli.options import Jobs
from corral.cli.predict import predict
from corral.cli.shared import visible

if TYPE_CHECKING:
    import pandas as pd

# Row number of the penguin that is explained: a chinstrap with the longest bill of its species, 58 mm.
_LONG_BILL = "29"


@program.command(short_help="Fit, predict and explain on two example tables.")
def demo(
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the tables, the models and the reports.")
    ] = Path("corral-demo"),
    jobs: Jobs = -1,
) -> None:
    """Fit, predict and explain on two example tables; tables, models and reports are written to FOLDER.

    The first table has the paper's ten groups as classes, and thirty variables, x0 to x29. Group g is
    concentrated around 0.5 in the six variables from x(g-1) on, and uniform on (0, 1) in the other 24
    variables. The second table is the Palmer penguins, with missing values and columns of text; the year of
    the measurement is left out.
    """
    import pandas as pd

    from corral.cli.writing import MODEL, PLOT, PREDICTIONS, REPORT, check_kinds, note_replaced, write_table

    folder.mkdir(parents=True, exist_ok=True)
    tables = {"groups": (_groups(100, 0, "row"), _groups(10, 1, "new")), "penguins": penguins()}
    paths = {
        name: [
            *(folder / f"{name}.csv", folder / f"new_{name}.csv", folder / f"{name}.corral"),
            *(folder / f"{name}_labels.csv", folder / f"{name}_why.png", folder / f"{name}.html"),
        ]
        for name in tables
    }
    for name, (table, _) in tables.items():
        columns = list(table.columns)
        kinds = (columns, columns, MODEL, PREDICTIONS, PLOT, REPORT)
        check_kinds(*zip(paths[name], kinds, strict=True))
    note_replaced(*paths["groups"], *paths["penguins"])
    for name, both in tables.items():
        for path, table in zip(paths[name][:2], both, strict=True):
            write_table(path, table)
    _show(paths["groups"], "group", "--id id", "new0000", jobs)
    right = (pd.read_csv(paths["groups"][3])["label"] == tables["groups"][1]["group"]).mean()
    typer.echo(
        f"{right:.0%} of these labels are right; the Bayes rule reaches about 91%, the classifier of the "
        "paper 67%.\n"
    )
    _show(paths["penguins"], "species", "--drop year", _LONG_BILL, jobs)
    pages = f"{paths['groups'][-1]} and {paths['penguins'][-1]}"
    typer.echo(visible(f"Open the reports in a browser: {pages}"))


def _groups(n_per_class: int, seed: int, prefix: str) -> pd.DataFrame:
    """Return a table of the paper's ten groups, with ids that begin with `prefix`."""
    import pandas as pd

    from corral.datasets import make_ten_groups

    X, y = make_ten_groups(n_per_class, random_state=seed)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return table.assign(group=y, id=[f"{prefix}{i:04}" for i in range(len(y))])


def penguins() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training rows and new rows of the penguins; a tenth of the rows is new."""
    from corral.datasets import load_penguins

    measured, species = load_penguins(return_X_y=True)
    table = measured.assign(species=species)
    is_new = table.index % 10 == 3
    return table[~is_new], table[is_new]


def _show(paths: list[Path], target: str, column_option: str, row: str, jobs: int) -> None:
    """Run and print fit, predict and explain; `column_option` is --id or --drop with a column."""
    table, new, model, labels, plot, page = paths
    option, column = column_option.split()
    _show_command(f"fit {table} --target {target} {column_option} --model {model} --report {page}")
    ids, drop = ([column], None) if option == "--id" else (None, [column])
    fit(table, target, model, page, ids=ids, drop=drop, jobs=jobs)
    _show_command(f"predict {model} {new} --out {labels}")
    predict(model, new, labels, jobs=jobs)
    _show_command(f"explain {model} {new} --row {row} --plot {plot}")
    explain(model, new, [row], plot=plot)


def _show_command(arguments: str) -> None:
    typer.secho(visible(f"$ corral {arguments}"), bold=True)

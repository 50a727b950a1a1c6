"""`corral demo`: the whole way on the paper's ten groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.app import program
from corral.cli.explain import explain
from corral.cli.fit import fit
from corral.cli.options import (
    Jobs,
)
from corral.cli.predict import predict
from corral.cli.text import visible

if TYPE_CHECKING:
    import pandas as pd


@program.command(short_help="Go the whole way on the paper's ten groups.")
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
    from corral.cli.writing import write_table
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
    _show_command(f"explain {model} {new} --row r0000 --plot {plot}")
    explain(model, new, ["r0000"], plot=plot)
    typer.echo(visible(f"Open the report in a browser: {page}"))


def _show_command(arguments: str) -> None:
    typer.secho(visible(f"$ corral {arguments}"), bold=True)

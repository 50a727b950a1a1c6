"""The table of costs in the guide is one that `corral predict` takes."""

import re
import textwrap
from pathlib import Path

from corral.cli.demo import penguins
from support.cli import run

ROOT = Path(__file__).parents[2]
TABLES = ("penguins.csv", "new_penguins.csv")


def write_penguins():
    """As the demo does, which has a test of its own."""
    for name, table in zip(TABLES, penguins(), strict=True):
        table.to_csv(name, index=False)


def test_the_table_of_costs_is_taken_as_it_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_penguins()
    text = (ROOT / "docs/guide/command_line.md").read_text()
    [costs] = re.findall(r"^  ```text\n(.*?)^  ```", text, re.MULTILINE | re.DOTALL)
    Path("costs.csv").write_text(textwrap.dedent(costs))
    run("fit", "penguins.csv", "--target", "species", "--model", "penguins.corral")
    options = ["--set", "0.95", "--costs", "costs.csv", "--reject-cost", "2"]  # as the page names them
    run("predict", "penguins.corral", "new_penguins.csv", "--out", "labels.csv", *options)
    assert {"decision", "in_set_Adelie"} < set(Path("labels.csv").read_text().splitlines()[0].split(","))

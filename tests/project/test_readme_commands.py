"""The commands of README.md, of the guide and of the landing page run as they are written there."""

import re
import shlex
import textwrap
from pathlib import Path

import pytest

from corral.cli.demo import penguins
from support.cli import run

ROOT = Path(__file__).parents[2]
TABLES = ("penguins.csv", "new_penguins.csv")


def write_penguins():
    """As the demo does, which has a test of its own."""
    for name, table in zip(TABLES, penguins(), strict=True):
        table.to_csv(name, index=False)


def commands(page):
    """Commands of a page, those about making and installing left out."""
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    words = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [line for line in words if line[0] not in {"pip", "make"}]


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("README.md", {"penguins.corral", "penguins.html", "labels.csv"}),
        ("docs/index.md", {"penguins.corral", "penguins.html", "labels.csv"}),
        (
            "docs/guide/command_line.md",
            {"penguins.corral", "penguins.html", "labels.csv", "why.png", "new_penguins.html"},
        ),
    ],
)
def test_commands_run_as_they_are_written(page, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_penguins()
    for program, *arguments in commands(page):
        assert program in {"corral", "cd"}
        if program == "corral" and arguments[0] != "demo":
            run(*arguments)
    assert {path.name for path in tmp_path.iterdir()} == written.union(TABLES)


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

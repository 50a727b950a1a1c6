"""The commands of README.md run as they are written there."""

import re
import shlex
from pathlib import Path

from corral.cli.demo import write_penguins
from test_cli import run

README = Path(__file__).parents[1] / "README.md"


def commands():
    (section,) = re.findall(
        r"^## On the command line\n(.*?)^## ", README.read_text(), re.MULTILINE | re.DOTALL
    )
    (block,) = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def test_commands_run_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = commands()
    # The demo has a test of its own; of the files that it writes, these are read here.
    assert found[:2] == [["corral", "demo"], ["cd", "corral-demo"]]
    tables = ["penguins.csv", "new_penguins.csv"]
    write_penguins(*map(Path, tables))
    for program, *arguments in found[2:]:
        assert program == "corral"
        run(*arguments)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {
        *tables,
        "penguins.corral",
        "penguins.html",
        "labels.csv",
        "why.png",
        "new_penguins.html",
    }

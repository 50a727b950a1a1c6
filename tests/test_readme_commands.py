"""The commands of README.md run as they are written there."""

import re
import shlex
from pathlib import Path

from sklearn.datasets import load_iris

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
    flowers, species = load_iris(as_frame=True, return_X_y=True)
    flowers = flowers.assign(species=species, flower=[f"f{i:03}" for i in range(150)])
    flowers.to_csv("iris.csv", index=False)
    flowers[::7].to_csv("new.csv", index=False)
    found = commands()
    assert found[0] == ["corral", "demo"]  # which has a test of its own
    for program, *arguments in found[1:]:
        assert program == "corral"
        run(*arguments)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"iris.csv", "new.csv", "iris.corral", "iris.html", "labels.csv", "why.png", "new.html"}

"""The source distribution is the checkout; the conda recipe asks for the same packages."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / ".ci" / "conda" / "recipe.yaml"


def test_the_source_distribution_is_the_checkout(tmp_path):
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("only git knows which files belong to the project")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path], cwd=ROOT, check=True
    )
    [file] = tmp_path.iterdir()
    with tarfile.open(file) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    tracked = {name for name in listing.stdout.split("\0") if name and (ROOT / name).exists()}
    assert "tests/project/test_distribution.py" in shipped
    assert tracked - shipped == set()


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["cli"]
    wanted += project["optional-dependencies"]["plot"]
    named = {
        line.replace(" >=", ">=").replace("matplotlib-base", "matplotlib")
        for line in re.findall(r"^    - (\S+ >=[\d.]+)$", RECIPE.read_text(), re.MULTILINE)
    }
    assert named - {"hatchling>=1.27"} == {text for text in wanted if not text.startswith("corral[")}

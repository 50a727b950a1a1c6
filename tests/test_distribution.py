"""The source distribution holds all that a checkout has, so that its tests find what they import and read."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


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
    assert "tests/test_distribution.py" in shipped
    assert tracked - shipped == set()

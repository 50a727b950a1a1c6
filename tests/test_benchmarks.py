"""The benchmarks are too slow to run here; that they can be asked for at all is tested."""

import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import BENCHMARKS

ROOT = Path(__file__).parents[1]


def test_every_benchmark_is_listed():
    listed = subprocess.run(
        [sys.executable, "-m", "benchmarks", "list"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    modules = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    peers = {"numpy_rodeo", "kernel_naive_bayes"}  # what others are compared with
    assert set(BENCHMARKS) == modules - peers
    for name, module in BENCHMARKS.items():
        assert name in listed
        assert module.__doc__
        assert callable(module.run)

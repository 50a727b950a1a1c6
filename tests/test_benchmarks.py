"""The benchmarks are too slow to run here; that they can be asked for at all is tested."""

import sys
from pathlib import Path

from benchmarks.__main__ import BENCHMARKS, main

ROOT = Path(__file__).parents[1]


def test_every_benchmark_is_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "list"])
    main()
    listed = capsys.readouterr().out
    modules = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    peers = {"numpy_rodeo", "kernel_naive_bayes"}  # what others are compared with
    assert set(BENCHMARKS) == modules - peers
    assert {line.split()[0] for line in listed.splitlines()} >= set(BENCHMARKS)
    for module in BENCHMARKS.values():
        assert module.__doc__
        assert callable(module.run)

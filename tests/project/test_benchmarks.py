"""The benchmarks are too slow to run here; that they can be asked for at all is tested."""

import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks._trials import Trials
from experiments._lines import read_lines

ROOT = Path(__file__).parents[2]


def test_every_benchmark_is_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "list"])
    main()
    listed = capsys.readouterr().out
    modules = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    # a peer, and commands of their own
    others = {"check_faults", "kernel_naive_bayes", "same_numbers", "same_speed"}
    assert set(BENCHMARKS) == modules - others
    assert {line.split()[0] for line in listed.splitlines()} >= set(BENCHMARKS)
    for module in BENCHMARKS.values():
        assert module.__doc__
        assert callable(module.run)


def test_a_trial_cut_short_is_measured_again_and_no_other(tmp_path):
    file = tmp_path / "trials.jsonl"
    found = {0: {"accuracy": 0.9}, 1: {"accuracy": 0.8}}
    for seed, numbers in found.items():
        Trials(file).measure("iris", 50, seed, "5NN", lambda numbers=numbers: numbers)
    file.write_bytes(file.read_bytes()[:-3])
    resumed = Trials(file)
    assert resumed.measure("iris", 50, 0, "5NN", lambda: pytest.fail("it was in the file")) == found[0]
    assert resumed.measure("iris", 50, 1, "5NN", lambda: found[1]) == found[1]
    assert [line["found"] for line in read_lines(file)] == list(found.values())

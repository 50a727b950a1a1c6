"""Benchmarks take too long for tests; these check the command line, the file of trials and the sentences."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks._trials import Trials
from benchmarks.sentences import TABLES, Samples, fault_of_phrase
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
    results = {0: {"accuracy": 0.9}, 1: {"accuracy": 0.8}}
    for seed, numbers in results.items():
        Trials(file).measure("iris", 50, seed, "5NN", lambda numbers=numbers: numbers)
    file.write_bytes(file.read_bytes()[:-3])
    resumed = Trials(file)
    assert resumed.measure("iris", 50, 0, "5NN", lambda: pytest.fail("it was in the file")) == results[0]
    assert resumed.measure("iris", 50, 1, "5NN", lambda: results[1]) == results[1]
    assert [line["result"] for line in read_lines(file)] == list(results.values())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("x low (2; others 6.5)", "x low (2; others 5.5)"),
        (
            "x low (2; 5 in 1 of 2 other classes; 6.5 in all other rows)",
            "x low (2; 5 in 2 of 2 other classes; 6.5 in all other rows)",
        ),
        (
            "x low (2; 5 in 1 of 2 other classes; 6.5 in all other rows)",
            "x low (2; 6 in 1 of 2 other classes; 6.5 in all other rows)",
        ),
        ("x narrow (1.5 to 2.5; others 5.25 to 7.75)", "x wide (1.5 to 2.5; others 5.25 to 7.75)"),
        ("x 1.5 to 4 more often (67%; others 17%)", "x 1.5 to 4 more often (67%; others 33%)"),
        ("x at least 4 less often (0%; others 100%)", "x at most 4 less often (0%; others 100%)"),
        ("x = 3 more often (33%; others 0%)", "x high (2; others 6.5)"),
        ("x missing more often (25%; others 0%)", "x missing more often (24%; others 0%)"),
        ("x low (2; others 6.5)", "x low (2 in 30%; others in 3%)"),
    ],
)
def test_a_sentence_with_a_wrong_number_is_noticed(right, wrong):
    y = np.array(list("aaaabbbccc"))
    column = pd.Series([1.0, 2.0, 3.0, np.nan, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    samples = Samples(y == "a", y != "a", y == "b", 1, 2)
    assert not fault_of_phrase(right, "x", column, samples)
    assert fault_of_phrase(wrong, "x", column, samples)


def test_thirty_tables_are_fitted():
    assert len({table.name for table in TABLES}) == 30

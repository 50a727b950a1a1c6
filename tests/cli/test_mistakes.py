"""Errors on the command line: each is refused in one sentence that names the value and the remedy."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.cli import run


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"length": rng.normal(size=40), "width": rng.normal(size=40)})
    frame.assign(kind=np.repeat(["p", "q"], 20)).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.fixture
def model(table):
    run("fit", table, "-t", "kind", "--estimator", "rodeo", "-q", "-m", table.with_name("m.corral"))
    return table.with_name("m.corral")


def error(*arguments):
    result = run(*arguments, code=2)
    return result.stderr.strip().splitlines()[-1].removeprefix("error: ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--test-size", "2"], r"'--test-size': .*'?2(\.0)?'? .*0\.99"),
        (["--cv", "x"], "'--cv': 'x' "),
        (["--estimator", "foo"], "'--estimator': 'foo' is not one of 'cv', 'rodeo', 'lspc'"),
        (["--estimator", "lspc", "--priors", "uniform"], "--priors uniform is not for --estimator lspc"),
        (["--group", "kind"], "--group 'kind' is the target: a group is what several rows come from"),
        (["--cv", "1000"], "take a smaller --cv, or leave such classes out by --drop-small-classes 1000"),
        (["--report", "r.pdf"], r"r\.pdf must end in \.html"),
        (["--model", "m.pkl"], r"m\.pkl must not end in \.pkl"),
    ],
)
def test_a_wrong_option_is_named_with_its_value(options, sentence, table, monkeypatch):
    monkeypatch.chdir(table.parent)
    message = error("fit", table, "-t", "kind", *options)
    assert re.search(sentence, message), message
    assert "Value error" not in message
    assert "Input" not in message
    assert [path.name for path in table.parent.iterdir()] == ["t.csv"]


def test_model_and_table_in_the_wrong_order(table, model):
    sentence = f"{model} is a model, and {table} is none: name the model first, then the table."
    assert error("predict", table, model, "-o", table.with_name("o.csv")) == sentence
    assert error("explain", table, model, "--row", "0") == sentence
    assert error("report", table, model) == sentence


def test_columns_of_another_case_are_named(table, model):
    frame = pd.read_csv(table).rename(columns={"length": "Length", "width": "breadth"})
    frame.to_csv(table, index=False)
    message = error("predict", model, table, "-o", table.with_name("o.csv"))
    assert message.endswith("has no column 'length', 'width'; did you mean 'Length' for 'length'?")


def test_infinite_and_huge_numbers_have_a_remedy(table):
    frame = pd.read_csv(table)
    frame.assign(width=np.where(frame.index == 3, np.inf, 1.0)).to_csv(table, index=False)
    message = error("fit", table, "-t", "kind")
    assert message.endswith("in row 3: mend it, or say --na-values inf if it is a missing value.")
    assert "accuracy" in run("fit", table, "-t", "kind", "--na-values", "inf", "-q").stdout
    frame.assign(width=np.where(frame.index % 2, 1e308, -1e308)).to_csv(table, index=False)
    assert "column 'width' holds -1e+308 in row 0, which is too large" in error("fit", table, "-t", "kind")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can make a file")
def test_a_file_that_cannot_be_written_is_refused_before_the_fit(table):
    message = error("fit", table, "-t", "no such column", "-m", "/proc/self/m.corral")
    assert message.startswith("/proc/self/m.corral: ")  # and not about the column, which is looked for later


def test_an_interrupt_while_modules_are_loaded_prints_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ended = subprocess.run(
        [sys.executable, "-c", "import corral.cli"], capture_output=True, env=environment, check=False
    )
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr == b""
    import corral.cli  # noqa: F401

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_package_runs_as_a_command():
    ended = subprocess.run(
        [sys.executable, "-m", "corral", "--help"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "predict" in ended.stdout

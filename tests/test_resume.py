"""Tests of `corral predict` stopped half way: the same command goes on and writes the same bytes."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import corral.cli.tables
import corral.cli.writing
from corral import RodeoClassifier, save_model
from corral.cli import app

fcntl = pytest.importorskip("fcntl", reason="needs locks and signals of Unix")

NAMES = ["length", "width"]
PREDICT = RodeoClassifier.assess
OPTIONS = ("--id", "id", "--missing", "drop-rows")
NOTE = "going on from row 30, where a run was stopped."

# A run in a process of its own, with chunks of ten rows. It stands still before the third is predicted.
RUN = """
import signal, sys
import corral.cli.tables
from corral import RodeoClassifier
from corral.cli import app

signal.signal(signal.SIGINT, signal.default_int_handler)  # off where a shell runs the tests with "&"
assess, calls = RodeoClassifier.assess, 0

def counted(*args, **options):
    global calls
    calls += 1
    if calls == 3:
        print("here", flush=True)
        sys.stdin.read()
    return assess(*args, **options)

RodeoClassifier.assess = counted
corral.cli.tables.CHUNK = 10
app(sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A model, a table whose first chunk is all gaps, and an old file where the labels go."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(90, 2)), columns=NAMES)
    fit_to(rng.choice(["a", "b"], 90), table, tmp_path)
    table.loc[[*range(10), 34], "width"] = np.nan
    table.insert(0, "id", [f"{i:03}" for i in range(90)])
    table.to_csv(tmp_path / "t.csv", index=False)
    old = pd.DataFrame({"label": ["old"], "p_old": [1.0]})
    old.to_csv(tmp_path / "o.csv", index=False)
    old.to_csv(tmp_path / "o.tsv", index=False, sep="\t")
    old.to_parquet(tmp_path / "o.parquet")
    monkeypatch.setattr(corral.cli.tables, "CHUNK", 10)
    monkeypatch.chdir(tmp_path)


def fit_to(y, X, folder):
    save_model(RodeoClassifier(bandwidth="class").fit(X[NAMES], y), folder / "m.corral")


def command(out, *options):
    return ["predict", "m.corral", "t.csv", "--out", out, *(options or OPTIONS)]


def run(out, *options, code=0):
    result = CliRunner().invoke(app, command(out, *options))
    assert result.exit_code == code, (result.output, result.exception)
    return result


@dataclass
class Watch:
    """First rows of the chunks that a run predicts, and what it is stopped by after three of them."""

    rows: list[int] = field(default_factory=list)
    error: BaseException | None = None


@pytest.fixture
def watch(monkeypatch):
    watch = Watch()

    def assess(self, X):
        if watch.error is not None and len(watch.rows) == 3:
            error, watch.error, watch.rows = watch.error, None, []
            raise error
        watch.rows.append(X.index[0])
        return PREDICT(self, X)

    monkeypatch.setattr(RodeoClassifier, "assess", assess)
    return watch


def started(out):
    """A run that has come to the third chunk, and stands still there."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *command(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout.readline() == "here\n"
    return process


def stop(process, how=signal.SIGKILL):
    with process:
        process.send_signal(how)
        process.wait()  # before its standard input ends, and it would go on
    return process.returncode


def parts(out):
    return sorted(Path(f".{out}.parts").glob("*-*"), key=lambda path: int(path.name.split("-")[1]))


def press_ctrl_c(watch, out, *options):
    """A run that is stopped after three chunks."""
    watch.error = KeyboardInterrupt()
    run(out, *options, code=130)
    assert is_old(out)
    assert len(parts(out)) == 3


def is_old(out):
    read = {".csv": pd.read_csv, ".tsv": pd.read_table, ".parquet": pd.read_parquet}[Path(out).suffix]
    return read(out)["label"].tolist() == ["old"]


def assert_same(out, *options):
    """The file is that of a run that was not stopped, and nothing else is left."""
    Path("fresh").mkdir()
    run(f"fresh/{out}", *options)
    if out.endswith(".parquet"):
        pd.testing.assert_frame_equal(pd.read_parquet(out), pd.read_parquet(f"fresh/{out}"))
    else:
        assert Path(out).read_bytes() == Path(f"fresh/{out}").read_bytes()
    assert not [path for path in (*Path().iterdir(), *Path("fresh").iterdir()) if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("out", "how", "code"),
    [("o.csv", signal.SIGKILL, -signal.SIGKILL), ("o.parquet", signal.SIGINT, 130)],
)
def test_goes_on_where_it_was_stopped(out, how, code, watch):
    process = started(out)
    said = run(out, *OPTIONS, "--quiet", code=2).stderr
    assert said == f"error: another run is writing {out}: wait for its end, or write to another file.\n"
    assert stop(process, how) == code
    assert is_old(out)
    assert watch.rows == []

    result = run(out, *OPTIONS, "--json", "--jobs", "2")
    assert watch.rows == [30, 40, 50, 60, 70, 80]
    assert {"note": NOTE} in map(json.loads, result.stderr.splitlines())
    answer = json.loads(result.stdout)
    assert (answer["rows"], answer["left_out"]) == (79, 11)
    assert_same(out)


@pytest.mark.parametrize(
    ("call", "again"),
    [(3, [30, 40, 50, 60, 70, 80]), (9, [])],
    ids=["while a chunk is written", "while the whole is written"],
)
def test_may_be_killed_at_any_moment(call, again, watch, tmp_path, tmp_path_factory, monkeypatch):
    """What the disk holds at that moment is all that a killed process leaves."""
    left, fsync, calls = tmp_path_factory.mktemp("left") / "copy", os.fsync, itertools.count(1)

    def copied(file):
        if next(calls) == call:
            shutil.copytree(tmp_path, left)
        fsync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", copied)
        run("o.csv")
    shutil.copy(left / "o.csv", "o.csv")
    shutil.copytree(left / ".o.csv.parts", ".o.csv.parts")
    watch.rows.clear()
    assert is_old("o.csv")
    assert (NOTE in run("o.csv").stderr) == bool(again)
    assert watch.rows == again
    assert_same("o.csv")


def test_may_be_stopped_when_all_is_done(watch, monkeypatch):
    unlink = Path.unlink

    def stopped_at_the_first_part(path, **options):
        if path.parent.name == ".o.csv.parts" and "-" in path.name:
            raise KeyboardInterrupt
        unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stopped_at_the_first_part)
        run("o.csv", code=130)
    assert not is_old("o.csv")
    assert len(parts("o.csv")) == 8
    watch.rows.clear()
    run("o.csv")
    assert watch.rows == []
    assert_same("o.csv")


def empty(content):
    return b""


def cut(content):
    return content[: len(content) // 2]


def change_a_digit(content):
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


@pytest.mark.parametrize(
    ("out", "damage"),
    [("o.csv", cut), ("o.csv", change_a_digit), ("o.tsv", empty), ("o.parquet", change_a_digit)],
)
def test_a_damaged_chunk_is_predicted_again(out, damage, watch):
    press_ctrl_c(watch, out)
    part = parts(out)[1]
    part.write_bytes(damage(part.read_bytes()))
    run(out)
    assert watch.rows == [20, 40, 50, 60, 70, 80]
    assert_same(out)


def another_model(monkeypatch):
    table = pd.read_csv("t.csv").fillna(0.0)
    fit_to(table["width"] > 0, table, Path())


def another_table(monkeypatch):
    text = Path("t.csv").read_text()
    Path("t.csv").write_text(text.replace("010,", "O10,"))  # as long as before


def another_table_of_the_same_time(monkeypatch):
    """As cp -p and rsync -t make one."""
    before = Path("t.csv").stat()
    another_table(monkeypatch)
    os.utime("t.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert Path("t.csv").stat().st_mtime_ns == before.st_mtime_ns


def other_packages(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0")


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (another_model, OPTIONS),
        (another_table, OPTIONS),
        (another_table_of_the_same_time, OPTIONS),
        (other_packages, OPTIONS),
        (None, OPTIONS[2:]),
        (None, (*OPTIONS, "--na-values", "9")),
    ],
    ids=["model", "table", "table of the same time", "packages", "columns", "option"],
)
def test_another_job_starts_anew(change, options, watch, monkeypatch):
    press_ctrl_c(watch, "o.csv")
    old = parts("o.csv")
    if change is not None:
        change(monkeypatch)
    press_ctrl_c(watch, "o.csv", *options)
    assert not set(old) & set(parts("o.csv"))
    assert "going on from row 40" in run("o.csv", *options).stderr
    assert_same("o.csv", *options)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError(), ValueError("no.")])
def test_what_is_done_is_kept_unless_the_table_is_at_fault(error, watch):
    watch.error = error
    run("o.csv", code=2)
    assert is_old("o.csv")
    assert len(parts("o.csv")) == (0 if isinstance(error, ValueError) else 3)
    assert Path(".o.csv.parts").exists() != isinstance(error, ValueError)
    run("o.csv")
    assert_same("o.csv")


def test_two_runs_where_there_are_no_locks(monkeypatch):
    """One of them ends in an error, and the file is that of the other."""

    def flock(file, operation):
        raise OSError(95, "Operation not supported")

    def two_jobs():
        with corral.cli.writing.resuming_table(Path("o.csv"), {"another": "job"}) as add:
            add(pd.DataFrame({"x": [1.0]}), lambda chunk: chunk)
            run("o.csv")
            add(pd.DataFrame({"x": [2.0]}, index=[1]), lambda chunk: chunk)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(FileNotFoundError, match=r"there is no folder \.o\.csv\.parts"):
        two_jobs()
    assert_same("o.csv")


def test_help_says_so():
    shown = " ".join(CliRunner().invoke(app, ["predict", "--help"]).stdout.split())
    assert "After a kill, Ctrl-C or a full disk, the same command goes on from what was done" in shown

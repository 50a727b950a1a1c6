"""Tests of written files: whole, by several processes at once, and never over files of another kind."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

import corral.cli.tables
from corral import RodeoClassifier, RodeoDensity, load_model, save_model
from corral.datasets import load_penguins, make_shifted_groups, make_ten_groups
from corral.estimators.evaluated_rows import evaluate_rows
from corral.files.atomic import replacing
from support.cli import run

resource = pytest.importorskip("resource", reason="needs links, modes and limits of Unix")

NAMES = ["length", "width", "height"]
FIT = ("fit", "t.csv", "--target", "species", "--id", "id", "--estimator", "rodeo")
PREDICT = ("predict", "m.corral", "t.csv", "--out", "o.csv")

# A program that stops or is killed while it writes a file.
WRITER = """
import os, signal, sys
from corral.files.atomic import replacing
with replacing(sys.argv[1]) as part:
    part.write_bytes(b"half")
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print("here", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def frame():
    X, y = make_shifted_groups(30, groups=(1, 2, 5), random_state=0)
    species = np.array(["ant", "bee", "cat"])[np.searchsorted([1, 2, 5], y)]
    return pd.DataFrame(X[:, :3], columns=NAMES).assign(species=species, id=[f"{i:03}" for i in range(90)])


@pytest.fixture(scope="module")
def density(frame):
    return RodeoDensity().fit(frame[NAMES])


@pytest.fixture(scope="module")
def classifier(frame):
    return RodeoClassifier(bandwidth="class").fit(frame[NAMES], frame["species"])


@pytest.fixture
def folder(frame, classifier, tmp_path, monkeypatch):
    """The working folder, with a model and a table that is read in nine chunks."""
    save_model(classifier, tmp_path / "m.corral")
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(corral.cli.tables, "CHUNK", 10)
    return tmp_path


def contents(folder):
    """All files below a folder, also hidden ones, and links as links."""
    return {
        path: path.readlink() if path.is_symlink() else path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def refused(*arguments):
    """The error of a command that changes no file."""
    before = contents(".")
    message = run(*arguments, "--quiet", code=2).stderr
    assert contents(".") == before
    assert message.count("\n") == 1
    return message.removeprefix("error: ").removesuffix("\n")


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


# Files are written whole, by several processes at once


def test_threads_may_write_the_same_file_while_others_read_it(density, tmp_path):
    path = tmp_path / "m.corral"
    save_model(density, path)
    done = Event()

    def read_on():
        n = 0
        while not done.is_set() or n == 0:
            load_model(path)
            n += 1

    with ThreadPoolExecutor(10) as threads:
        reading = [threads.submit(read_on) for _ in range(2)]
        writing = [threads.submit(save_model, density, path) for _ in range(8 * 30)]
        try:
            for each in writing:
                each.result()
        finally:
            done.set()
        for each in reading:
            each.result()
    assert list(tmp_path.iterdir()) == [path]


@contextmanager
def another_writer(path, how):
    command = [sys.executable, "-c", WRITER, path, how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def test_files_of_a_killed_writer_do_no_harm(density, tmp_path):
    path = tmp_path / "a.corral"
    save_model(density, path)
    before = path.read_bytes()
    with another_writer(path, "die") as process:
        assert process.wait() == -signal.SIGKILL
    assert path.read_bytes() == before
    left = contents(tmp_path)
    save_model(density, path)
    assert contents(tmp_path) == left
    assert len(left) == 2


# A program that a signal stops while a command writes its output.
STOPPED = """
import os, signal, sys
import corral.cli
from corral.files.atomic import replacing
def app():
    with replacing(sys.argv[1]) as part:
        part.write_bytes(b"half")
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
corral.cli.app = app
corral.cli.main()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_command_that_is_ended_leaves_nothing_half_written(name, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", STOPPED, path, name], check=False)
    assert done.returncode == 128 + getattr(signal, name)
    assert contents(tmp_path) == {path: b"old"}


def test_two_processes_may_write_the_same_file(tmp_path):
    with another_writer(tmp_path / "a.corral", "wait") as process:
        assert process.stdout.readline() == "here\n"
        with replacing(tmp_path / "a.corral") as new:
            new.write_bytes(b"first")
        assert (tmp_path / "a.corral").read_bytes() == b"first"
        process.communicate()
    assert process.returncode == 0
    assert contents(tmp_path) == {tmp_path / "a.corral": b"half"}


@pytest.mark.parametrize(
    "error", [ValueError("no."), OSError(28, "No space left on device"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("is_there", [True, False])
def test_an_error_leaves_the_old_file_and_nothing_else(error, is_there, tmp_path):
    path = tmp_path / "a.corral"
    if is_there:
        path.write_bytes(b"old")
    before = contents(tmp_path)

    def write():
        with replacing(path) as new:
            new.write_bytes(b"half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert contents(tmp_path) == before


def test_a_file_that_cannot_be_replaced_in_the_end_leaves_nothing(tmp_path, monkeypatch):
    def replace(path, target):
        raise PermissionError(13, "Permission denied", str(path))

    path = tmp_path / "a.corral"
    path.write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", replace)
    with (
        pytest.raises(OSError, match=rf"Permission denied: '{re.escape(str(path))}'$"),
        replacing(path) as new,
    ):
        new.write_bytes(b"new")
    assert contents(tmp_path) == {path: b"old"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ValueError("no.")])
@pytest.mark.parametrize("out", ["o.csv", "o.csv.gz", "o.parquet", "o.xlsx"])
def test_predictions_that_are_stopped_leave_no_result(out, error, folder, monkeypatch):
    """The next run writes the same output."""
    predict = ("predict", "m.corral", "t.csv", "--out")
    run(*predict, f"expected_{out}")
    before, calls = contents("."), iter(range(3))

    def stopped(self, X, evaluate=evaluate_rows):
        if next(calls, None) is None:
            raise error
        return evaluate(self, X)

    with monkeypatch.context() as patch:
        patch.setattr("corral.estimators.evaluated_rows.evaluate_rows", stopped)
        run(*predict, out, code=130 if isinstance(error, KeyboardInterrupt) else 2)
    assert contents(".") == before
    run(*predict, out)
    read_excel = partial(pd.read_excel, engine="openpyxl")
    read = {".parquet": pd.read_parquet, ".xlsx": read_excel}.get(Path(out).suffix, pd.read_csv)
    pd.testing.assert_frame_equal(read(out), read(f"expected_{out}"))


def test_a_file_may_have_the_longest_name(density, tmp_path):
    save_model(density, tmp_path / ("m" * 255))
    assert isinstance(load_model(tmp_path / ("m" * 255)), RodeoDensity)


# Modes and links


@pytest.mark.parametrize("before", [0o600, 0o640, 0o444, 0o664, 0o6755])
def test_whoever_may_not_read_the_old_file_may_not_read_the_new_one(before, density, tmp_path):
    path = tmp_path / "m.corral"
    path.touch()
    path.chmod(before)
    assert mode(path) == before
    save_model(density, path)
    assert mode(path) == before & 0o777  # nobody runs the new file as its owner
    with replacing(path) as part:
        part.write_bytes(b"rows")
        assert mode(part) == 0o600
    assert mode(path) == before & 0o777


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_permissions_of_the_umask(umask, expected, density, tmp_path):
    before = os.umask(umask)
    try:
        save_model(density, tmp_path / "m.corral")
    finally:
        os.umask(before)
    assert mode(tmp_path / "m.corral") == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_root_leaves_files_to_whom_they_belong(density, tmp_path):
    path = tmp_path / "m.corral"
    path.touch()
    os.chown(path, 1234, 4321)
    save_model(density, path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_what_a_foreign_group_may_is_not_given_to_another(density, tmp_path, monkeypatch):
    def chown(path, uid, gid):
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "m.corral"
    path.touch()
    path.chmod(0o640)
    monkeypatch.setattr(os, "chown", chown)
    save_model(density, path)
    assert mode(path) == 0o600


def test_a_link_stays_and_what_it_leads_to_is_replaced(density, tmp_path):
    (tmp_path / "store").mkdir()
    real, link = tmp_path / "store" / "v1.corral", tmp_path / "m.corral"
    link.symlink_to("store/v1.corral")
    for _ in range(2):  # first there is nothing at its end
        save_model(density, link)
        assert link.is_symlink()
        assert not real.is_symlink()
        assert isinstance(load_model(real), RodeoDensity)
    assert [path.name for path in real.parent.iterdir()] == ["v1.corral"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.corral", "store"]


def test_links_that_lead_to_no_file(density, tmp_path):
    link = tmp_path / "m.corral"
    link.symlink_to(link)
    with pytest.raises(ValueError, match=r"m\.corral is not a file that can be replaced"):
        save_model(density, link)
    link.unlink()
    link.symlink_to(tmp_path / "none" / "m.corral")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none to write m\.corral to"):
        save_model(density, link)
    assert link.is_symlink()


# Errors name the file

WRITING = {
    "a model": (*FIT, "--model", "n.corral"),
    "a report": (*FIT, "--report", "n.html"),
    "a page": ("report", "m.corral", "t.csv", "--out", "n.html"),
    "a page beside the model": ("report", "m.corral", "t.csv"),
    "csv": ("predict", "m.corral", "t.csv", "--out", "n.csv"),
    "tsv": ("predict", "m.corral", "t.csv", "--out", "n.tsv"),
    "parquet": ("predict", "m.corral", "t.csv", "--out", "n.parquet"),
    "png": ("explain", "m.corral", "t.csv", "--row", "0", "--plot", "n.png"),
    "svg": ("explain", "m.corral", "t.csv", "--row", "0", "--plot", "n.svg"),
    "pdf": ("explain", "m.corral", "t.csv", "--row", "0", "--plot", "n.pdf"),
}


def written_by(arguments):
    return "m.html" if arguments[0] == "report" and "--out" not in arguments else arguments[-1]


@contextmanager
def no_file_larger_than(n_bytes):
    """Let writes fail as on a full disk: in the middle, and with an error that names no file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", sorted(WRITING.keys() - {"svg", "pdf"}))  # which are written as png is
def test_a_write_that_fails_names_the_file(kind, folder):
    arguments = WRITING[kind]
    file = written_by(arguments)
    before = contents(".")
    with no_file_larger_than(1000):
        message = run(*arguments, code=2).stderr
    assert message.splitlines()[-1] == f"error: {file}: File too large."
    assert contents(".") == before
    run(*arguments)
    assert contents(".").keys() == {*before, Path(file)}


def test_a_write_that_fails_in_python_names_the_link(density, tmp_path):
    path, link = tmp_path / "m.corral", tmp_path / "link.corral"
    save_model(density, path)
    link.symlink_to(path)
    before = contents(tmp_path)
    with (
        no_file_larger_than(100),
        pytest.raises(OSError, match=rf"File too large: '{re.escape(str(link))}'$"),
    ):
        save_model(density, link)
    assert contents(tmp_path) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_cannot_be_written(folder):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "corral", "info", "m.corral"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "the standard output: No space left on device." in done.stderr.splitlines()[0]


# What is replaced, and what is not

NOT_OF_ITS_KIND = "exists and is not {}: remove it, or write to another file."
KINDS = {
    "corral": "a model of corral",
    "html": "a report of corral",
    **dict.fromkeys(("csv", "tsv", "parquet"), "a table of predictions"),
    **dict.fromkeys(("png", "svg", "pdf"), "a plot"),
}


def foreign(frame, file):
    """Files of other kinds that have the name of an output."""
    suffix = Path(file).suffix[1:]
    if suffix == "parquet":
        frame.to_parquet(file)
    elif suffix in ("csv", "tsv"):
        frame.to_csv(file, index=False, sep="," if suffix == "csv" else "\t")
    elif suffix == "html":
        Path(file).write_text("<!DOCTYPE html>\n<html><head><title>My page</title></head></html>\n")
    else:
        Path(file).write_text("My notes on corral, a PNG, a PDF and an SVG.")


@pytest.mark.parametrize("arguments", WRITING.values(), ids=WRITING)
def test_a_file_of_another_kind_is_not_replaced(arguments, folder, frame):
    file = written_by(arguments)
    foreign(frame, file)
    kind = KINDS[Path(file).suffix[1:]]
    assert refused(*arguments) == f"{file} {NOT_OF_ITS_KIND.format(kind)}"


@pytest.mark.parametrize("arguments", WRITING.values(), ids=WRITING)
def test_a_file_of_the_same_kind_is_replaced_with_a_note(arguments, folder):
    file = Path(written_by(arguments))
    note = f"{file} exists and will be replaced."
    file.touch()
    assert note not in run(*arguments).stderr  # there was nothing in it
    number = file.stat().st_ino
    assert {"note": note} in map(json.loads, run(*arguments, "--json").stderr.splitlines())
    assert file.stat().st_ino != number
    assert run(*arguments, "--quiet").stderr == ""


@pytest.mark.parametrize("written", ["a model", "a report", "a page", "csv", "png"])
def test_a_file_that_stays_is_not_noted_as_replaced(written, folder, frame):
    """The files are checked before the table is read and refused."""
    arguments = WRITING[written]
    run(*arguments, "--quiet")
    before = Path(written_by(arguments)).read_bytes()
    frame.drop(columns=NAMES[0]).assign(species="ant").to_csv("t.csv", index=False)
    message = run(*arguments, code=2).stderr
    assert "will be replaced" not in message
    assert Path(written_by(arguments)).read_bytes() == before


def test_files_of_one_kind_are_no_files_of_another(folder):
    for arguments in WRITING.values():
        run(*arguments, "--quiet")
    others = ["n.csv", "n.png", "n.svg", "n.pdf", "n.parquet"]
    for file in ("n.html", *others):
        assert "is not a model of corral" in refused(*FIT, "--model", file)
    for file in ("n.corral", *others):
        assert f"{file} must end in .html" in refused(*FIT, "--report", file)
    Path("page.html").write_text("a page of somebody else")
    assert "is not a report of corral" in refused(*FIT, "--report", "page.html")
    Path("link.corral").symlink_to("n.csv")
    assert "link.corral exists and is not a model" in refused(*FIT, "--model", "link.corral")
    Path("n.csv").rename("n.svg")
    assert "is not a plot" in refused(*WRITING["svg"])
    save_file({"weights": np.zeros(3)}, "n.corral", {"format": "pt"})  # of another program
    assert "is not a model of corral" in refused(*WRITING["a model"])


@pytest.mark.parametrize(
    "header",
    [
        "label",
        "label,p_ant,species",
        "p_ant,label",
        "my_label,p_ant",
        "species,predicted_label,p_ant",
        "xlabel,p_",
    ],
)
def test_tables_that_only_look_like_predictions(header, folder):
    Path("o.csv").write_text(header + "\n" + header + "\n")
    assert refused(*PREDICT) == f"o.csv {NOT_OF_ITS_KIND.format('a table of predictions')}"


def test_the_demo_replaces_its_own_files_alone(tmp_path, frame, monkeypatch):
    # The default estimator and reports of many rows take long.
    monkeypatch.setattr("corral.cli.fit._estimator", lambda *options: RodeoClassifier(bandwidth="class"))
    groups, penguins = make_ten_groups(5, random_state=0), load_penguins(return_X_y=True)
    monkeypatch.setattr("corral.datasets.make_ten_groups", lambda *sizes, **seed: groups)
    monkeypatch.setattr("corral.datasets.load_penguins", lambda **_: [each[::3] for each in penguins])
    monkeypatch.setattr("corral.cli.demo._LONG_BILL", "3")
    monkeypatch.chdir(tmp_path)
    run("demo")
    files = sorted(path.name for path in Path("corral-demo").iterdir())
    replaced = [line for line in run("demo").stderr.splitlines() if line.endswith("will be replaced.")]
    assert sorted(replaced) == [f"note: corral-demo/{name} exists and will be replaced." for name in files]
    for name in files:
        old = Path("corral-demo", name).read_bytes()
        foreign(frame, f"corral-demo/{name}")
        before = contents(".")
        message = run("demo", code=2).stderr
        assert f"corral-demo/{name} exists and is not" in message
        assert contents(".") == before
        Path("corral-demo", name).write_bytes(old)

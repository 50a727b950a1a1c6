"""Compiled code on the disk: kept where a folder can be written, and never the reason why a call fails."""

from __future__ import annotations

import os
import resource
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from sklearn.datasets import load_iris

import corral
from corral import CorralClassifier, RodeoClassifier, kernels, save_model
from corral.compiling import compiled
from corral.datasets import make_shifted_groups


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where numba keeps compiled code."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def start() -> Any:
    """A function as a new process has it: nothing of it is compiled or read."""

    @compiled(error_model="numpy")
    def half(x: float) -> float:
        return x / 2

    return half


def hits(kernel: Any) -> int:
    return sum(kernel.stats.cache_hits.values())


def test_compiled_code_is_read_by_the_next_process(folder: Path) -> None:
    for expected in (0, 1):
        half = start()
        assert half(3.0) == 1.5
        assert hits(half) == expected


@pytest.mark.parametrize("size", [0, 20, -1])
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_truncated_file_is_replaced(folder: Path, suffix: str, size: int) -> None:
    start()(3.0)
    [file] = folder.rglob(f"*{suffix}")
    file.write_bytes(file.read_bytes()[:size])
    with pytest.warns(
        UserWarning, match=r"^corral compiles its kernels again, because the files in .* are damaged\.$"
    ) as message:
        assert start()(3.0) == 1.5
    assert len(message) == 1
    half = start()
    assert half(3.0) == 1.5
    assert hits(half) == 1


def test_without_memory_nothing_is_compiled_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM ends the process where it has no memory, without a word that people understand."""

    def fail(*_: Any) -> None:
        raise MemoryError

    start()(3.0)
    with monkeypatch.context() as patched:
        patched.setattr(numba.core.caching.FunctionCache, "load_overload", fail)
        with pytest.raises(MemoryError):
            start()(3.0)
    assert start()(3.0) == 1.5


def test_code_of_another_signature_is_not_run(folder: Path) -> None:
    """Exchange two files, as two processes do that find the same name free for them."""
    half = start()
    half(3.0)
    half(3)
    one, two = sorted(folder.rglob("*.nbc"))
    kept = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(kept)
    half = start()
    assert half(3) == 1.5
    assert half(3.0) == 1.5
    assert hits(half) == 0


EXPLAIN = """
import numpy as np
from corral import RodeoClassifier
random = np.random.default_rng(0)
y = np.arange(120) % 3
X = (random.normal(size=(120, 5)) + y[:, np.newaxis]) @ random.normal(size=(5, 5))
model = RodeoClassifier().fit(X, y)
print(model.predict_proba(X).tobytes().hex(), model.explain(X).evidence.tobytes().hex())
"""


def test_code_that_is_read_has_the_bits_of_code_that_was_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, read = (
        subprocess.check_output([sys.executable, "-c", EXPLAIN], env=environment) for _ in range(2)
    )
    assert compiled == read


@contextmanager
def full_disk() -> Iterator[None]:
    """Let a file have the size of an index but not that of compiled code, as where little space is left."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_folder_costs_a_warning(folder: Path) -> None:
    for _ in range(2):
        with full_disk(), pytest.warns(UserWarning, match="NUMBA_CACHE_DIR sets another folder") as message:
            assert start()(3.0) == 1.5
        assert len(message) == 1
        assert str(folder) in str(message[0].message)


def test_a_full_folder_does_not_bring_older_code_back(folder: Path) -> None:
    module = folder / "module.py"

    def start(term: int) -> Any:
        module.write_text(
            f"from corral.compiling import compiled\n@compiled()\ndef add(x):\n    return x + {term}\n"
        )
        return runpy.run_path(str(module))["add"]

    assert start(100)(1) == 101
    with full_disk(), pytest.warns(UserWarning, match="cannot write its compiled kernels"):
        assert start(2000)(1) == 2001
    assert start(2000)(1) == 2001


# A locked-down container


def prefix_of_a_stranger() -> list[str]:
    """How a command begins that is run by a user who owns no file here, has no entry and so no home."""
    if os.getuid() != 0:
        return []  # nobody else can be asked for, but what is read-only is so for this user, too
    stranger = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
    reader = [*stranger, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    for prefix in (stranger, reader):  # the latter where Python lies in a folder of root's
        done = subprocess.run(
            [*prefix, sys.executable, "-c", "import numpy"], capture_output=True, check=False
        )
        if done.returncode == 0:
            return prefix
    return pytest.skip("root can start this Python as no other user")


PREDICT = """
import corral
model = corral.load_model("../model")
print(corral.__file__)
print(model.predict_proba([[0.5] * 10]).tolist())
"""


def test_a_model_runs_from_a_read_only_installation_for_a_user_without_a_home() -> None:
    prefix = prefix_of_a_stranger()
    X, y = make_shifted_groups(20, groups=(1, 2), random_state=0)
    model = RodeoClassifier(bandwidth="class").fit(X, y)
    with tempfile.TemporaryDirectory() as name:  # pytest's folders are closed to other users
        folder = Path(name)
        here, installed = folder / "here", folder / "site" / "corral"
        shutil.copytree(Path(corral.__file__).parent, installed, ignore=shutil.ignore_patterns("__pycache__"))
        save_model(model, folder / "model")
        here.mkdir()
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        here.chmod(0o777)
        environment = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
        environment |= {"PYTHONPATH": str(installed.parent), "HOME": "/dev/null"}
        if prefix:
            del environment["HOME"]
        done = subprocess.run(
            [*prefix, sys.executable, "-c", PREDICT],
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        left = list(here.iterdir())
        for path in (folder, *folder.rglob("*/")):
            path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    file, proba = done.stdout.splitlines()
    assert Path(file).parent == installed
    assert proba == str(model.predict_proba(np.full((1, 10), 0.5)).tolist())
    assert done.stderr.count("Warning") == 1
    assert "corral finds no folder for its compiled kernels" in done.stderr
    assert left == []


def test_a_complete_table_of_numbers_takes_six_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each of the others would be compiled, for half a second or more, to do nothing.
    called: set[str] = set()

    def watched(name: str, loop: Any, *arguments: Any) -> Any:
        called.add(name)
        return loop(*arguments)

    for name, loop in list(vars(kernels).items()):
        if isinstance(loop, Dispatcher) and not name.startswith("_"):
            monkeypatch.setattr(kernels, name, partial(watched, name, loop))
    X, y = load_iris(return_X_y=True)
    model = CorralClassifier(random_state=0).fit(X[::3], y[::3])
    model.predict_proba(X[:5])
    model.explain(X[:5])
    explaining = {"walk_squares", "walk_products", "conditional_log_ratios"}
    assert called == {"shrunken_log_means", "kernel_weights", "pool_loss"} | explaining

"""Damaged and forged model files and tables: one sentence of ours or a right answer, whatever they hold.

No crash, no hang (a file may take ten seconds of the processor) and no memory blow-up (it may take one
gigabyte; only Linux can limit that). The suite tries the same few hundred files every time; `make fuzz` tries
CORRAL_FUZZ new model files and as many tables, 10,000 of each in about a quarter of an hour. The seed of a
file that fails becomes an example here.
"""

import csv
import faulthandler
import io
import os
import random
import signal
import struct
import sys
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

from corral import (
    CorralClassifier,
    LSPClassifier,
    MarkerSelector,
    RodeoClassifier,
    RodeoDensity,
    RodeoSelector,
    load_model,
    save_model,
)
from corral.cli import app
from corral.cli.tables import MISSING
from corral.datasets import make_shifted_groups
from support.forgery import put_together, take_apart

# Of forged names and selections; what numbers warn of is an error.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N_FILES = int(os.environ.get("CORRAL_FUZZ", "200"))
N_TABLES = int(os.environ.get("CORRAL_FUZZ", "40"))
SECONDS = 10
GIGABYTE = 2**30
NAMES = ["length", "width", "höhe"]
MODELS = {
    "search": CorralClassifier(random_state=0),
    "compressed": CorralClassifier(max_rows=5, random_state=0),
    "local": RodeoClassifier(priors=[0.2, 0.3, 0.5]),
    "class": RodeoClassifier(scale="rank", bandwidth="class", features="selected"),
    "lspc": LSPClassifier(scale="rank", sigmas=(0.5, 1.0), alphas=(0.1, 1.0), cv=3),
    "density": RodeoDensity(),
    "selector": RodeoSelector(),
    "marker selector": MarkerSelector(),
    "categories": RodeoClassifier(bandwidth="class"),
    "categories density": RodeoDensity(),
    "categories search": CorralClassifier(random_state=0),
}


class HangError(BaseException):
    """Not an Exception, which code under test may catch."""


@contextmanager
def limits():
    """Processor time for one file; one that waits forever, or never leaves a kernel, ends the process."""

    def give_up(*_):
        raise HangError

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    faulthandler.dump_traceback_later(30 * SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.fixture(scope="module")
def little_memory(folder):
    """After the first models, so that what has to be loaded and compiled is there."""
    if sys.platform != "linux":
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + GIGABYTE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.fixture(scope="module")
def frame():
    X, y = make_shifted_groups(12, groups=(1, 2, 5), random_state=0)
    species = np.array(["ant", "bee", "cat"])[np.searchsorted([1, 2, 5], y)]
    return pd.DataFrame(X[:, :3], columns=NAMES).assign(species=species, id=range(100, 100 + len(y)))


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "t.parquet")
    for name, model in MODELS.items():
        X, y = frame[NAMES], () if isinstance(model, RodeoDensity) else (frame["species"],)
        if name.startswith("categories"):
            X = X.assign(width=np.where(X["width"] > X["width"].median(), "large", "small"))
        weights = {"sample_weight": np.arange(len(frame)) % 3 / 2.0} if name == "local" else {}
        model.fit(X, *y, **weights)
        save_model(model, folder / f"{name}.corral")
        answers(model, frame)
    command("predict", folder / "search.corral", folder / "t.parquet", "--out", folder / "o.csv")
    return folder


@pytest.fixture(scope="module")
def outcomes():
    """How many files were read and how many refused, by test: where all are alike, little has been tried."""
    outcomes = defaultdict(Counter)
    yield outcomes
    for test, counts in outcomes.items():
        assert counts["read"] or counts.total() < 20, test
        assert counts["refused"] or counts.total() < 20, test


def loaded(path):
    """The model in a file, or None if it is refused in a sentence that names the file."""
    try:
        return load_model(path)
    except ValueError as error:
        messages = str(error)
    assert messages.startswith(str(path))
    assert "more memory" not in messages  # sizes are checked before anything is made of them
    return None


def answers(model, frame):
    """All that a model says of a table; numbers are finite and probabilities sum to 1."""
    X = frame[NAMES]
    computed = []
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all()
        assert np.abs(proba.sum(axis=1) - 1.0).max() < 1e-9
        computed.append(proba)
    if hasattr(model, "score_samples"):
        computed.append(model.score_samples(X))
        assert np.isfinite(computed[-1]).all()
    if hasattr(model, "transform"):
        computed.append(np.asarray(model.transform(X)))
    return computed


def tell(counts, read):
    """Count an outcome, here and for --hypothesis-show-statistics."""
    outcome = "read" if read else "refused"
    event(outcome)
    counts[outcome] += 1


def command(*arguments):
    """Run a command; it ends well or with one sentence."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--quiet"])
    messages = result.stderr.splitlines()
    assert result.exit_code in (0, 2), (arguments, result.exception)
    assert len(messages) == (1 if result.exit_code else 0), messages
    assert all(line.startswith("error: ") and line.endswith((".", "?")) for line in messages), messages
    assert "not enough memory" not in result.stderr
    return result.exit_code == 0


# Model files


def damaged(content, rng, head):
    """Bytes changed, put in, taken out, or cut; half of the time in the head, which says how to read."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(head if rng.random() < 0.5 else len(content))
        match rng.choice(["change", "change", "change", "insert", "delete", "cut"]):
            case "change":
                content[place] ^= rng.randrange(1, 256)
            case "insert":
                content[place:place] = bytes(rng.choices(b'0129.,-:{}[]"\x00\xff', k=rng.randint(1, 9)))
            case "delete":
                del content[place : place + rng.randint(1, 9)]
            case "cut":
                del content[max(place, 1) :]
        head = min(head, len(content))
    return bytes(content)


@settings(max_examples=N_FILES // 2)
@given(seed=st.integers(0, 2**64))
def test_damaged_models(seed, folder, frame, little_memory):
    """The checksum covers all, so that a file which is read is the same model."""
    rng = random.Random(seed)
    name = rng.choice(list(MODELS))
    content = (folder / f"{name}.corral").read_bytes()
    (n,) = struct.unpack("<Q", content[:8])
    path = folder / "damaged.corral"
    path.write_bytes(damaged(content, rng, 8 + n))
    with limits():
        model = loaded(path)
        event("refused" if model is None else "read")
        if model is not None:
            for computed, expected in zip(answers(model, frame), answers(MODELS[name], frame), strict=True):
                assert_array_equal(computed, expected)
        if rng.random() < 0.1:
            assert command("info", path) == (model is not None)


def nodes(tree, path=()):
    """Paths to all values of a JSON tree."""
    yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from nodes(value, (*path, key))


def changed(tree, path, value):
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = changed(tree[path[0]], path[1:], value)
    return copy


JUNK = (
    *(None, True, False, 0, 1, -1, 2, 10**9, 2**70, -(2**70), 0.0, 0.5, -1.0, 1e300, 1e-300),
    *(float("nan"), float("inf"), "", "a", "ä\x00", [], {}, [1, 2], {"a": 1}, [None] * 99),
    *("rank", "range", "local", "class", "selected", "auto", "loo", "all"),
    *({"!tuple": []}, {"!text": ["b", "a"]}, {"!objects": [None]}, {"!float": "nan"}, {"!other": 1}),
)
NUMBERS = (0, 1, 2, -1, 10**9, 2**62, -(2**62))
FLOATS = (1e300, 1e-300, 1e-21, 1e24, 1e11, 1e100, 1e150, float("nan"), float("inf"))


@settings(max_examples=N_FILES // 2)
@given(seed=st.integers(0, 2**64))
@example(seed=97592)  # a number that no integer can hold
def test_forged_models(seed, folder, frame, little_memory, outcomes):
    """Values and arrays that are not what they should be, in files whose checksum holds."""
    rng = random.Random(seed)
    header, arrays = take_apart(folder / f"{rng.choice(list(MODELS))}.corral")
    junk = (*JUNK, *({"!array": name} for name in arrays))
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.5:
            header = changed(header, rng.choice([path for path in nodes(header) if path]), rng.choice(junk))
        else:
            name = rng.choice(sorted(arrays))
            arrays[name] = forged(arrays[name], rng)
    path = folder / "forged.corral"
    put_together(path, header, arrays)
    with limits():
        model = loaded(path)
        tell(outcomes["forged models"], model is not None)
        # A model of other variables is a model.
        if model is not None and getattr(model, "feature_names_in_", np.array(NAMES)).tolist() == NAMES:
            answers(model, frame)
        if rng.random() < 0.1:
            command("info", path)
            command("predict", path, folder / "t.csv", "--out", folder / "o.csv")


@np.errstate(over="ignore", invalid="ignore")  # casts to what cannot hold the number
def forged(array, rng):
    match rng.choice(["number", "number", "number", "kind", "cut", "order"]):
        case "number" if array.size:
            array = array.copy()
            numbers = NUMBERS + FLOATS if array.dtype.kind == "f" else NUMBERS
            array.flat[rng.randrange(array.size)] = np.array(rng.choice(numbers)).astype(array.dtype)
        case "kind":
            array = array.astype(rng.choice([np.float64, np.int64, np.bool_, np.float32]))
        case "cut":
            array = array[: rng.randrange(len(array) + 1)] if array.ndim else array
        case "order":
            array = array[::-1] if array.ndim else array
    return array


# Tables

CELLS = (
    *("", "?", "NA", "nan", "inf", "-inf", "1e999", "-1e-999", "0x10", "1_000", "1,5", "1.5e", "--1", "True"),
    *(
        "9" * 30,
        "9" * 400,
        "0." + "1" * 99,
        "ä",
        "\x00",
        '"',
        '"a',
        "a\nb",
        "=1+1",
        " 1 ",
        "\ufeff",
        "1" * 9999,
    ),
)


def damaged_text(text, rng, separator):
    """Cells, rows and the names of columns that are not what they should be."""
    rows = [line.split(separator) for line in text.splitlines()]
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(rows))
        j = rng.randrange(len(rows[i])) if rows[i] else 0
        match rng.choice(
            ["cell", "cell", "cell", "longer", "shorter", "empty", "twice", "gone", "head", "cut"]
        ):
            case "cell" if rows[i]:
                rows[i][j] = rng.choice(CELLS)
            case "longer":
                rows[i].append(rng.choice(CELLS))
            case "shorter":
                rows[i] = rows[i][:j]
            case "empty":
                rows[i] = [""]
            case "twice":
                rows.insert(i, list(rows[i]))
            case "gone" if len(rows) > 1:
                del rows[i]
            case "head":
                rows[0][rng.randrange(len(rows[0]))] = rng.choice([*NAMES, "", "NA", "species", "\x00"])
            case "cut":
                del rows[max(i, 1) :]
        rows[0] = rows[0] or [""]
    return "\n".join(separator.join(row) for row in rows)


def numbers_of(path, separator):
    """The variables by Python's own reader; an empty cell is a missing value."""

    def number(row, name):
        cell = dict(zip(names, row, strict=False)).get(name, "")
        return np.nan if cell in MISSING else float(cell)

    rows = csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""), delimiter=separator)
    names, *values = [row for row in rows if row]
    if all(len(row) == len(names) + 1 for row in values):  # the first column has no name, as R writes it
        values = [row[1:] for row in values]
    return np.array([[number(row, name) for name in NAMES] for row in values])


@settings(max_examples=N_TABLES)
@given(seed=st.integers(0, 2**64))
def test_damaged_tables(seed, folder, frame, little_memory, outcomes):
    rng = random.Random(seed)
    name = rng.choice(["t.csv", "t.csv", "t.tsv", "t.parquet"])
    original = (folder / name).read_bytes()
    separator = "\t" if name == "t.tsv" else ","
    table, out = folder / f"damaged_{name}", folder / "labels.csv"
    if name != "t.parquet" and rng.random() < 0.7:
        table.write_bytes(damaged_text(original.decode(), rng, separator).encode("utf-8"))
    else:
        table.write_bytes(damaged(original, rng, len(original)))
    out.unlink(missing_ok=True)
    with limits():
        done = command("predict", folder / "search.corral", table, "--id", "id", "--out", out)
        if rng.random() < 0.2:
            options = rng.choice([(), ("--missing", "drop-rows"), ("--numeric-only",), ("--na-values", "?")])
            command("fit", table, "--target", "species", "--estimator", "rodeo", *options)
    tell(outcomes[f"damaged tables {table.suffix}"], done)
    assert out.exists() == done
    if not done:
        return
    proba = pd.read_csv(out).filter(regex="^p_").to_numpy()
    assert np.abs(proba.sum(axis=1) - 1.0).max() < 1e-9
    if name != "t.parquet":
        expected = MODELS["search"].predict_proba(pd.DataFrame(numbers_of(table, separator), columns=NAMES))
        assert_allclose(proba, expected, rtol=1e-9, atol=1e-12)

"""Tests of the command line: what it prints equals what the library says, and every fault is one sentence."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics import accuracy_score, log_loss, recall_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from corral import RodeoClassifier, RodeoClassifierCV, RodeoDensity, load_model, save_model
from corral._evaluate import calibration_error
from corral._tables import CHUNK, table_columns
from corral.cli import app
from corral.datasets import make_shifted_groups

NAMES = ["length", "[bold]width", "<img src=x>", "höhe"]
SPECIES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def frame():
    X, y = make_shifted_groups(30, groups=(1, 2, 5), random_state=0)
    species = SPECIES[np.searchsorted([1, 2, 5], y)]
    ids = [f"{i:04}" for i in range(len(y))]
    return pd.DataFrame(X[:, :4], columns=NAMES).assign(species=species, id=ids)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "t.parquet")
    save_model(RodeoClassifier().fit(frame[NAMES], frame["species"]), folder / "m.corral")
    return folder


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    assert "Traceback" not in result.output
    return result


def refused(*arguments):
    """The sentence that a command ends with."""
    result = run(*arguments, code=1)
    assert result.stdout == ""
    (said,) = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert said.startswith("error: ")
    return said.removeprefix("error: ")


def fit(folder, table, *arguments):
    return run("fit", folder / table, "--target", "species", "--drop", "id", *arguments)


# fit


@pytest.mark.parametrize("table", ["t.csv", "t.tsv", "t.parquet"])
def test_fit_writes_the_model_that_python_fits(table, folder, frame, tmp_path):
    fit(folder, table, "--estimator", "rodeo", "--model", tmp_path / "m.corral", "--quiet")
    loaded = load_model(tmp_path / "m.corral")
    expected = RodeoClassifier(random_state=0).fit(frame[NAMES], frame["species"])
    assert_array_equal(loaded.predict_proba(frame[NAMES]), expected.predict_proba(frame[NAMES]))
    assert loaded.classes_.tolist() == SPECIES.tolist()


@pytest.mark.parametrize("cv", [None, 3])
def test_scores_are_those_of_scikit_learn(cv, folder, frame):
    options = [] if cv is None else ["--cv", cv]
    result = json.loads(fit(folder, "t.csv", "--estimator", "rodeo", "--json", "--seed", 3, *options).stdout)
    X, y = frame[NAMES], frame["species"].to_numpy()
    if cv is None:
        [(train, test)] = StratifiedShuffleSplit(1, test_size=0.25, random_state=3).split(X, y)
        proba = GaussianNB().fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    else:
        split, test = StratifiedKFold(cv, shuffle=True, random_state=3), slice(None)
        proba = cross_val_predict(GaussianNB(), X, y, cv=split, method="predict_proba")
    scores = result["scores"]["Gaussian naive Bayes"]
    assert scores["accuracy"] == pytest.approx(accuracy_score(y[test], SPECIES[proba.argmax(axis=1)]))
    assert scores["log_loss"] == pytest.approx(log_loss(y[test], proba))
    by_class = recall_score(y[test], SPECIES[proba.argmax(axis=1)], labels=SPECIES, average=None)
    assert list(scores["accuracy_by_class"].values()) == pytest.approx(by_class)
    assert result["scores"]["most frequent class"]["log_loss"] == pytest.approx(np.log(3), abs=0.02)
    assert result["rows_by_class"] == {"ant": 30.0, "bee": 30.0, "cat": 30.0}


def test_fit_searches_by_default_and_shows_variables_of_each_class(folder, tmp_path):
    shown = fit(folder, "t.csv", "--model", tmp_path / "m.corral", "--jobs", 2).stdout
    loaded = load_model(tmp_path / "m.corral")
    assert isinstance(loaded, RodeoClassifierCV)
    for word in (
        "accuracy",
        "log loss",
        "calibration",
        "RodeoClassifierCV",
        "Gaussian naive Bayes",
        *SPECIES,
    ):
        assert word in shown
    for name in loaded.feature_names_in_[loaded.relevant_.any(axis=0)]:
        assert name in shown  # [brackets] are no markup
    assert f"scale={loaded.best_params_['scale']!r}" in shown


def test_calibration_error_by_plain_loops():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 3, 200)
    total = 0.0
    for k in range(10):
        inside = [i for i in range(200) if min(int(proba[i].max() * 10), 9) == k]
        if inside:
            hits = np.mean([proba[i].argmax() == codes[i] for i in inside])
            total += len(inside) / 200 * abs(hits - np.mean([proba[i].max() for i in inside]))
    assert calibration_error(proba, codes) == pytest.approx(total)
    certain = np.eye(3)[codes]
    assert calibration_error(certain, codes) == 0.0


def test_numeric_only_leaves_text_out_and_says_so(folder):
    options = ("--numeric-only", "--json", "--estimator", "rodeo")
    result = run("fit", folder / "t.parquet", "--target", "species", *options)
    assert json.loads(result.stdout)["variables"] == NAMES
    assert "note: left out, because not numeric: 'id'" in result.stderr


@pytest.mark.parametrize(
    ("column", "kind"), [([1, 2, 3], "i"), ([True, False, True], "b"), ([0.0, 1.0, 7.0], "f")]
)
def test_labels_of_other_types(column, kind, frame, tmp_path):
    labels = np.asarray(column)[np.searchsorted(SPECIES, frame["species"])]
    frame.assign(species=labels).to_csv(tmp_path / "t.csv", index=False)
    fit(tmp_path, "t.csv", "--estimator", "rodeo", "--model", tmp_path / "m.corral", "--quiet")
    assert load_model(tmp_path / "m.corral").classes_.dtype.kind == kind


def test_quiet_prints_nothing(folder):
    result = fit(folder, "t.csv", "--estimator", "rodeo", "--quiet")
    assert result.output == ""


# predict


@pytest.mark.parametrize("table", ["t.csv", "t.tsv", "t.parquet"])
@pytest.mark.parametrize("out", ["o.csv", "o.tsv", "o.parquet"])
def test_predict_in_chunks_equals_python(table, out, folder, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("corral._tables.CHUNK", 7)
    result = run("predict", folder / "m.corral", folder / table, "--id", "id", "--out", tmp_path / out)
    assert f"{len(frame)} rows" in result.stdout
    if out == "o.parquet":
        found = pd.read_parquet(tmp_path / out)
    else:
        found = pd.read_csv(tmp_path / out, sep="\t" if out == "o.tsv" else ",", dtype={"id": str})
    model = load_model(folder / "m.corral")
    assert found.columns.tolist() == ["id", "label", "p_ant", "p_bee", "p_cat"]
    assert found["id"].tolist() == frame["id"].tolist()  # with their zeros
    assert found["label"].tolist() == model.predict(frame[NAMES]).tolist()
    assert_array_equal(found.iloc[:, 2:].to_numpy(), model.predict_proba(frame[NAMES]))
    assert list(tmp_path.iterdir()) == [tmp_path / out]


def test_predict_needs_only_the_variables_in_any_order(folder, frame, tmp_path):
    frame[["id", *NAMES[::-1]]].replace({"id": {"0001": "NA"}}).to_csv(tmp_path / "t.csv", index=False)
    run("predict", folder / "m.corral", tmp_path / "t.csv", "--id", "id", "--out", tmp_path / "o.csv", "-q")
    found = pd.read_csv(tmp_path / "o.csv", dtype=str, keep_default_na=False)
    assert found["id"][1] == "NA"
    assert found["label"].tolist() == load_model(folder / "m.corral").predict(frame[NAMES]).tolist()


def test_predict_leaves_the_old_file_if_a_late_row_is_bad(folder, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("corral._tables.CHUNK", 10)
    text = frame.to_csv(index=False).splitlines()
    text[-1] = "1.0,oops,1.0,1.0,ant,0089"
    (tmp_path / "t.csv").write_text("\n".join(text), encoding="utf-8")
    (tmp_path / "o.csv").write_text("old")
    said = refused("predict", folder / "m.corral", tmp_path / "t.csv", "--out", tmp_path / "o.csv")
    assert said.endswith("column '[bold]width' is not numeric: row 89 holds 'oops'.")
    assert (tmp_path / "o.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.csv", "t.csv"]


# explain, info, sample-size, demo


def test_explain_says_what_python_says(folder, frame):
    arguments = ("explain", folder / "m.corral", folder / "t.csv", "--row", 5, "--rows", 3)
    result = json.loads(run(*arguments, "--json").stdout)
    expected = load_model(folder / "m.corral").explain(frame[NAMES].iloc[[5]], n_rows=3)
    assert result["row"] == 5
    assert (result["label"], result["rival"]) == (expected.label[0], expected.rival[0])
    assert [v["evidence"] for v in result["variables"]] == expected.evidence[0].tolist()
    assert [v["value"] for v in result["variables"]] == frame[NAMES].iloc[5].tolist()
    assert [r["row"] for r in result["training_rows"]] == expected.rows[0].tolist()
    words = run(*arguments).stdout
    assert f"Row 5 is {expected.label[0]} with probability {expected.probability[0, 0]:.3f}" in words
    assert all(name in words for name in NAMES)
    assert f"{expected.rows[0, 0]} ({expected.shares[0, 0]:.0%})" in words


def test_explain_against_a_class(folder):
    arguments = ("explain", folder / "m.corral", folder / "t.csv", "--row", 0, "--json", "--against")
    assert json.loads(run(*arguments, "cat").stdout)["rival"] == "cat"
    assert "there is no class 'dog'; there are 'ant', 'bee', 'cat'" in refused(*arguments, "dog")


def test_info(folder, tmp_path):
    result = json.loads(run("info", folder / "m.corral", "--json").stdout)
    assert result["estimator"] == "RodeoClassifier"
    assert result["variables"] == NAMES
    assert result["bytes"] == (folder / "m.corral").stat().st_size
    assert "written by corral 0" in run("info", folder / "m.corral").stdout
    save_model(RodeoDensity().fit(np.arange(20.0).reshape(10, 2)), tmp_path / "d.corral")
    assert "RodeoDensity of 2 variables" in run("info", tmp_path / "d.corral").stdout


def test_sample_size(folder):
    arguments = ["sample-size", folder / "t.csv", "-t", "species", "--drop", "id", "--tolerance", 0.2]
    arguments += ["--initial-size", 10, "--held-out", 10, "--step", 10]
    result = json.loads(run(*arguments, "--json").stdout)
    assert set(result["rows"]) == set(SPECIES)
    assert result["epsilon"] == result["steps"][-1]["epsilon"]
    assert "SampleSizes: " in run(*arguments).stdout
    assert "allocation must be one of" in refused(*arguments, "--allocation", "fair")


def test_demo_goes_the_whole_way(tmp_path, monkeypatch):
    chosen = RodeoClassifier(bandwidth="class", features="selected")  # the search takes its time
    monkeypatch.setattr("corral.cli.RodeoClassifierCV", lambda random_state: chosen)
    shown = run("demo", "--folder", tmp_path / "d").stdout
    assert "x0, x1, x2, x3, x4, x5 " in shown
    assert "of these labels are right" in shown
    assert "Row 0 is " in shown
    written = sorted(path.name for path in (tmp_path / "d").iterdir())
    assert written == ["groups.corral", "groups.csv", "labels.csv", "new.csv"]


# Faults


def test_bad_tables(folder, frame, tmp_path):
    def said(content, name="bad.csv", *options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return refused("fit", path, "--target", "y", *options).removeprefix(f"{path}").strip(" :")

    assert said("") == "is empty."
    assert said("a,y\n") == "has no rows."
    assert said("a,b\n1,2\n") == "has no column 'y'; it has 'a', 'b'."
    assert said("a,a,y\n1,2,u\n").startswith("has the column 'a' twice")
    assert said("a,y\n1,u\nx,v\n").startswith("column 'a' is not numeric: row 1 holds 'x'; leave it out by")
    assert said("a,y\n1,u\n,v\n,v\n").startswith("column 'a' has 2 missing values, the first in row 1")
    assert said("a,y\n1,u\n2,\n") == "the target 'y' is missing in 1 rows, the first of them row 1."
    assert said("a,y\n1,u\ninf,v\n") == "column 'a' is infinite in row 1."
    assert said("a,y\n1,u\n2,u\n") == "the target must hold at least two classes, got one class: 'u'."
    assert said("a,y\n1,u\n2,u\n3,v\n").startswith("class 'v' has 1 rows, fewer than the 2 needed")
    assert said("y\nu\nv\n") == "has no variables beside the target."
    assert said(",a,y\n0,1,u\n1,2,v\n").startswith("has a column without a name")
    assert said(b"a,y\n1,\xff\xfe\n") == "is not UTF-8 text (byte 0xff)."
    assert said("a,y\n1,u\n1,2,3,4\n").startswith("is not a proper table: Expected 2 fields in line 3, saw 4")
    assert said("a,y\n1,u,3\n1,v,3\n").startswith("is not a proper table: rows have more fields than")
    assert said("a,y\n", "bad.xlsx").startswith("must end in .csv, .tsv, .parquet, .pq")
    assert said(b"PAR1 and so on", "bad.parquet").startswith("cannot be read as Parquet")
    whole = (folder / "t.parquet").read_bytes()
    assert said(whole[: len(whole) // 2], "half.parquet").startswith("cannot be read as Parquet")
    assert "is not a file" in refused("fit", tmp_path, "--target", "y")
    assert "there is no file" in refused("fit", tmp_path / "none.csv", "--target", "y")


def test_bad_models_and_rows(folder, frame, tmp_path):
    model, table, out = folder / "m.corral", folder / "t.csv", tmp_path / "o.csv"
    assert "there is no file" in refused("predict", tmp_path / "none", table, "--out", out)
    assert "is not a model of corral" in refused("predict", table, table, "--out", out)
    assert "is not a model of corral" in refused("info", table)
    assert "no folder" in refused("predict", model, table, "--out", tmp_path / "none" / "o.csv")
    assert "must end in" in refused("predict", model, table, "--out", tmp_path / "o.txt")
    assert "has no column 'colour'" in refused("predict", model, table, "--out", out, "--id", "colour")
    frame[NAMES[1:]].to_csv(tmp_path / "less.csv", index=False)
    assert "has no column 'length'" in refused("predict", model, tmp_path / "less.csv", "--out", out)
    frame.assign(label=1).to_csv(tmp_path / "l.csv", index=False)
    assert "cannot be kept" in refused("predict", model, tmp_path / "l.csv", "--out", out, "--id", "label")
    assert "has rows 0 to 89, and no row 90" in refused("explain", model, table, "--row", 90)
    assert "--jobs must not be 0" in refused("predict", model, table, "--out", out, "--jobs", 0)
    save_model(RodeoClassifier().fit(frame[NAMES].to_numpy(), frame["species"]), tmp_path / "x.corral")
    assert "without names" in refused("predict", tmp_path / "x.corral", table, "--out", out)
    save_model(RodeoDensity().fit(frame[NAMES]), tmp_path / "d.corral")
    assert "gives no labels" in refused("predict", tmp_path / "d.corral", table, "--out", out)
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments", [("fit",), ("fit", "t.csv"), ("fit", "t.csv", "-t", "y", "--cv", "1"), ("fly",)]
)
def test_a_command_line_that_makes_no_sense(arguments):
    assert run(*arguments, code=2).stderr


@pytest.mark.parametrize("command", ["fit", "predict", "explain", "info", "sample-size"])
def test_help_has_examples(command):
    shown = run(command, "--help").stdout
    assert f"  corral {command} iris" in shown


@settings(max_examples=int(os.environ.get("CORRAL_FUZZ", "100")))
@given(seed=st.integers(0, 2**32))
def test_damaged_tables_give_a_sentence_or_labels(seed, folder):
    rng = random.Random(seed)
    name = rng.choice(["t.csv", "t.tsv", "t.parquet"])
    content = bytearray((folder / name).read_bytes())
    for _ in range(rng.randint(1, 5)):
        content[rng.randrange(len(content))] = rng.choice(
            [0, 10, 34, 44, 45, 46, 57, 101, rng.randrange(256)]
        )
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    damaged, out = folder / f"damaged{name}", folder / "damaged_labels.csv"
    damaged.write_bytes(content)
    out.unlink(missing_ok=True)
    result = CliRunner().invoke(
        app, ["predict", str(folder / "m.corral"), str(damaged), "--out", str(out), "-q"]
    )
    assert result.exit_code in (0, 1), (name, result.exception)
    assert out.exists() == (result.exit_code == 0)
    if result.exit_code == 0:
        proba = pd.read_csv(out).iloc[:, 1:].to_numpy()
        assert np.abs(proba.sum(axis=1) - 1.0).max() < 1e-9


def test_rows_are_numbered_across_chunks(tmp_path):
    text = "a,y\n" + "1,u\n" * (CHUNK + 5) + "x,u\n"
    (tmp_path / "t.csv").write_text(text)
    assert f"row {CHUNK + 5} holds 'x'" in refused("fit", tmp_path / "t.csv", "-t", "y")
    assert table_columns(tmp_path / "t.csv") == ["a", "y"]


def test_in_a_process_of_its_own(folder, tmp_path):
    command = [sys.executable, "-m", "corral.cli", "predict", folder / "m.corral", folder / "t.csv"]
    done = subprocess.run(
        [*command, "--out", tmp_path / "o.csv", "--json"], capture_output=True, text=True, check=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] == 90
    done = subprocess.run([*command, "--out", tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {tmp_path} must end in .csv, .tsv, .parquet, .pq to say what it is.\n"

"""Tests of rows that have names: an index in Python, a column of ids on the command line."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corral import (
    CorralClassifier,
    ExplanationDisplay,
    LSPClassifier,
    RodeoClassifier,
    explain,
    load_model,
    save_model,
    write_report,
)
from corral.datasets import make_shifted_groups
from support.cli import refused, run
from support.forgery import put_together, take_apart
from support.report_data import data_of

NAMES = ["length", "width", "height"]


@pytest.fixture(scope="module")
def frame():
    X, y = make_shifted_groups(30, groups=(1, 2), random_state=0)
    patients = [f"P{i:04}" for i in np.random.default_rng(0).permutation(60)]
    return pd.DataFrame(X[:, :3], columns=NAMES).assign(patient=patients, y=np.where(y == 1, "ill", "well"))


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The table, and a model fitted to it by the command."""
    folder = tmp_path_factory.mktemp("names")
    frame.to_csv(folder / "t.csv", index=False)
    options = ("--id", "patient", "--estimator", "rodeo", "--model", folder / "m.corral", "-q")
    run("fit", folder / "t.csv", "-t", "y", *options)
    return folder


# Python


@pytest.mark.parametrize("kind", [RodeoClassifier, CorralClassifier])
def test_an_index_names_training_rows(kind, frame, tmp_path):
    X = frame.set_index("patient")[NAMES]
    fitted = kind(random_state=0).fit(X, frame["y"])
    save_model(fitted, tmp_path / "m.corral")
    for model in (fitted, load_model(tmp_path / "m.corral")):
        assert model.row_names_in_.tolist() == frame["patient"].tolist()
        assert model.row_names_column_ == "patient"
        explanation = model.explain(X[:4])
        assert explanation.row_names.tolist() == frame["patient"].to_numpy()[explanation.rows].tolist()
        for member in getattr(model, "members_", ()):
            assert member.explain(X[:1]).row_names is not None
            assert member.feature_names_in_.tolist() == NAMES
        assert f"closest:  {explanation.row_names[0, 0]}, equal to this row (" in repr(explanation)
        assert explanation.support_to_frame()["name"].tolist() == explanation.row_names.ravel().tolist()


def test_names_of_fewer_rows_than_are_listed():
    X = pd.DataFrame({"a": [0.0, 0.1, 5.0, 5.1, 5.2]}, index=list("vwxyz"))
    explanation = RodeoClassifier(bandwidth="class").fit(X, [0, 0, 1, 1, 1]).explain(X[:1], n_rows=3)
    assert sorted(explanation.row_names[0].tolist()) == ["", "v", "w"]


def test_a_count_names_nothing(frame):
    X, y = frame[NAMES], frame["y"]
    for rows in (X, X[::2].reset_index(drop=True), pl.from_pandas(X), X.to_numpy(), X.to_numpy().tolist()):
        fitted = RodeoClassifier().fit(rows, y[::2] if len(rows) == 30 else y)
        assert not hasattr(fitted, "row_names_in_")
        explanation = fitted.explain(rows[:2])
        assert explanation.row_names is None
        assert explanation.sample_names is None
        assert fitted.assess(rows[:2]).to_frame().index.tolist() == [0, 1]
        assert "sample 1: " in repr(explanation)


@pytest.mark.parametrize(
    "labels",
    [
        [0] * 60,
        [""] * 60,
        ["", *range(59)],
        [None, *map(str, range(59))],
        [np.nan, *range(59)],
        [*range(59), "0"],
    ],
    ids=["repeated", "empty", "one empty", "missing", "NaN", "equal as text"],
)
def test_labels_that_do_not_tell_rows_apart_are_no_names(labels, frame, tmp_path):
    X, y = frame[NAMES].set_axis(labels, axis=0), frame["y"]
    fitted = RodeoClassifier().fit(X, y)
    assert not hasattr(fitted, "row_names_in_")
    explanation = fitted.explain(X)
    numbered = RodeoClassifier().fit(frame[NAMES], y).explain(frame[NAMES])
    assert repr(explanation) == repr(numbered)
    write_report(fitted, X, y, tmp_path / "r.html")
    page = data_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert {row["name"] for row in page["rows"]} == {str(row["position"]) for row in page["rows"]}


def test_a_file_keeps_the_column_of_names_that_repeat(frame, tmp_path):
    X = frame[NAMES].set_axis(pd.Index([f"P{i // 3}" for i in range(60)], name="patient"), axis=0)
    fitted = RodeoClassifier().fit(X, frame["y"])
    save_model(fitted, tmp_path / "m.corral")
    for model in (fitted, load_model(tmp_path / "m.corral")):
        assert model.row_names_column_ == "patient"
        assert model.explain(X[:2]).row_names is None


@pytest.mark.parametrize("kind", [RodeoClassifier, CorralClassifier])
def test_whole_numbers_of_a_divided_table_name_rows(kind, frame, tmp_path):
    """As `train_test_split` leaves them: `X.loc` takes them, for new and for training rows."""
    X, y = frame[NAMES], frame["y"]
    train, new = train_test_split(X, random_state=0, stratify=y)
    fitted = kind(random_state=0).fit(train, y[train.index])
    save_model(fitted, tmp_path / "m.corral")
    for model in (fitted, load_model(tmp_path / "m.corral")):
        explanation = model.explain(new)
        assert explanation.sample_names.tolist() == new.index.tolist()
        assert model.assess(new).to_frame().index.tolist() == new.index.tolist()
        assert_array_equal(X.loc[explanation.row_names[0]], train.iloc[explanation.rows[0]])
        label, first = new.index[0], explanation.row_names[0, 0]
        assert repr(explanation).startswith(f"sample {label}: ")
        assert f"closest:  row {first}" in repr(explanation)
        assert f"<td>{label}</td>" in explanation._repr_html_()
        assert explanation.sentences(0)["label"].startswith(f"Sample {label} is ")
        assert f"row {first}" in explanation.sentences(0)["nearest"]
        assert explanation.to_frame()["sample"].unique().tolist() == new.index.tolist()
        support = explanation.support_to_frame()
        assert support["sample"].unique().tolist() == new.index.tolist()
        assert support["name"].tolist() == explanation.row_names.ravel().tolist()
    drawn = ExplanationDisplay.from_explanation(explanation).axes_[1].get_yticklabels()
    assert drawn[0].get_text() == f"row {first}"


def test_a_pipeline_keeps_the_labels_of_samples(frame):
    X, y = frame.set_index("patient")[NAMES], frame["y"]
    pipeline = make_pipeline(StandardScaler(), RodeoClassifier()).fit(X, y)
    assert explain(pipeline, X[3:5]).sample_names.tolist() == frame["patient"][3:5].tolist()


def test_reports_name_rows_by_their_labels(frame, tmp_path):
    X, y = frame[NAMES], frame["y"]
    train, new = train_test_split(X, random_state=0, stratify=y)
    fitted = CorralClassifier(random_state=0).fit(train, y[train.index])
    write_report(fitted, new, y[new.index], tmp_path / "r.html")
    data = data_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert sorted(row["name"] for row in data["rows"]) == sorted(map(str, new.index))
    assert data["trainingNames"] == {i: train.index[int(i)] for i in data["training"]}


def test_names_of_another_fit_are_forgotten(frame):
    X, y = frame.set_index("patient")[NAMES], frame["y"]
    fitted = RodeoClassifier().fit(X, y)
    assert fitted.fit(frame[NAMES], y).explain(X[:1]).row_names is None
    fitted.fit(X, y).partial_fit(X[:1] + 0.01, y[:1])
    assert fitted.explain(X[:1]).row_names is None


@pytest.mark.parametrize(
    "forged",
    [
        ["a"],
        "P0001",
        {"column": 1, "names": []},
        {"column": None, "names": [1.5] * 60},
        {"column": None, "names": None},
        {"column": None, "names": [True] * 60},
        {},
    ],
)
def test_forged_names_are_refused(forged, folder, tmp_path):
    header, arrays = take_apart(folder / "m.corral")
    put_together(tmp_path / "forged.corral", header | {"row_names": forged}, arrays)
    with pytest.raises(ValueError, match=r"is damaged: "):
        load_model(tmp_path / "forged.corral")


def test_models_without_training_rows_have_no_names(frame, folder, tmp_path):
    fitted = LSPClassifier().fit(frame.set_index("patient")[NAMES], frame["y"])
    save_model(fitted, tmp_path / "m.corral")
    header, arrays = take_apart(tmp_path / "m.corral")
    assert header["row_names"] is None
    put_together(tmp_path / "m.corral", header | {"row_names": {"column": "a", "names": []}}, arrays)
    with pytest.raises(ValueError, match=r"is damaged: "):
        load_model(tmp_path / "m.corral")


# Commands


def test_explain_takes_a_name(folder, frame):
    model, table = folder / "m.corral", folder / "t.csv"
    name = frame["patient"][7]
    by_name, by_number = (
        json.loads(run("explain", model, table, "--row", row, "--json").stdout) for row in (name, 7)
    )
    assert by_name == by_number
    assert (by_name["row"], by_name["id"]) == (7, name)
    for line in by_name["training_rows"]:
        assert line["id"] == frame["patient"][line["row"]]
    shown = run("explain", model, table, "--row", name).stdout
    assert shown.startswith(f"{name} (row 7) is ")
    assert f"with their share of the class density: {by_name['training_rows'][0]['id']} (" in shown


def test_explain_takes_several_rows(folder, frame, tmp_path):
    explain = ("explain", folder / "m.corral", folder / "t.csv", "--row", frame["patient"][7], "--row", 3)
    answer = json.loads(run(*explain, "--json").stdout)["explanations"]
    assert [(each["row"], each["id"]) for each in answer] == [
        (7, frame["patient"][7]),
        (3, frame["patient"][3]),
    ]
    assert len(run(*explain, "-q").stdout.splitlines()) == 2
    message = refused(*explain, "--plot", tmp_path / "p.png")
    assert message == "--plot draws a single row, but 2 rows were given by --row."


def test_a_name_that_stands_twice(folder, frame, tmp_path):
    frame.assign(patient="P1").to_csv(tmp_path / "t.csv", index=False)
    answer = json.loads(
        run("explain", folder / "m.corral", tmp_path / "t.csv", "--row", "P1", "--json").stdout
    )
    assert [each["row"] for each in answer["explanations"]] == list(range(60))


def test_rows_that_are_not_there(folder, frame, tmp_path):
    model, table = folder / "m.corral", folder / "t.csv"
    assert (
        refused("explain", model, table, "--row", "P9")
        == f"{table} has no row with the id 'P9' in column 'patient'."
    )
    assert refused("explain", model, table, "--row", "60") == f"{table} has rows 0 to 59, and no row 60."
    # A number may be a name; where some are, it is none of a row.
    numbered = tmp_path / "numbered.csv"
    frame.assign(patient=np.arange(60) + 100).to_csv(numbered, index=False)
    assert refused("explain", model, numbered, "--row", 7) == (
        f"{numbered} has no row with the id '7' in column 'patient'; if the ids are whole numbers, only ids "
        "are accepted, not row numbers."
    )
    help_text = " ".join(re.sub("[│\n]", " ", run("explain", "--help").stdout).split())
    assert "If the ids are whole numbers, only ids are accepted." in help_text
    assert run("explain", model, numbered, "--row", 107, "-q").stdout.startswith("107 (row 7) is ")
    nameless = tmp_path / "nameless.csv"
    frame[NAMES].to_csv(nameless, index=False)
    assert run("explain", model, nameless, "--row", 7, "-q").stdout.startswith("Row 7 is ")
    assert refused("explain", model, nameless, "--row", "P0004") == (
        f"{nameless}: --row 'P0004' is not a row number, and the model has no id column."
    )


def test_predict_keeps_the_names(folder, frame, tmp_path):
    predict = ("predict", folder / "m.corral", folder / "t.csv", "--out", tmp_path / "o.csv", "-q")
    run(*predict)
    assert pd.read_csv(tmp_path / "o.csv")["patient"].tolist() == frame["patient"].tolist()
    run(*predict, "--id", "y")
    assert pd.read_csv(tmp_path / "o.csv").columns.tolist()[:2] == ["y", "label"]


def test_fit_tells_of_names_that_stand_twice(frame, tmp_path):
    frame.assign(patient=[f"P{i // 3}" for i in range(60)]).to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-t", "y", "--id", "patient", "--estimator", "rodeo")
    (note,) = run(*fit).stderr.splitlines()
    assert note == (
        "note: column 'patient' has 20 different ids in 60 rows; row P0 repeats an earlier one: use it as "
        "the group column; otherwise rows with the same id are both trained on and held out, and scores are "
        "too good (--group "
        "patient)."
    )
    assert run(*fit, "--group", "patient").stderr == ""


def test_the_report_of_a_fit_names_patients(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-t", "y", "--id", "patient", "--estimator", "rodeo", "--cv", 2)
    run(*fit, "--report", tmp_path / "r.html", "-q")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    data, names = data_of(page), frame["patient"].tolist()
    assert data["rowWord"] == "patient"
    assert [row["name"] for row in data["rows"]] == names
    assert data["trainingNames"] == {i: names[int(i)] for i in data["training"]}
    assert all(row["position"] not in row["support"] for row in data["rows"])


def test_names_follow_rows_that_are_left_out(frame, tmp_path):
    with_missing = frame.assign(length=frame["length"].where(frame.index % 7 > 0))
    with_missing.to_csv(tmp_path / "t.csv", index=False)
    options = ("--missing", "drop-rows", "--estimator", "rodeo", "--model", tmp_path / "m.corral", "-q")
    run("fit", tmp_path / "t.csv", "-t", "y", "--id", "patient", *options)
    assert load_model(tmp_path / "m.corral").row_names_in_.tolist() == (
        with_missing.dropna()["patient"].tolist()
    )

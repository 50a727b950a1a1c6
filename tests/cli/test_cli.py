"""Tests of the command line: it prints the results of the library, and every error is one sentence."""

import json
import os
import re
import subprocess
import sys
import types
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, precision_score, recall_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import corral
from corral import (
    CorralClassifier,
    LSPClassifier,
    RodeoClassifier,
    RodeoDensity,
    RodeoSelector,
    SampleSizes,
    load_model,
    save_model,
)
from corral.cli.tables import open_table, read_chunks
from corral.datasets import make_shifted_groups
from support.cli import answered, notes_of, refused, run
from support.forgery import put_together, take_apart

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


@pytest.fixture(scope="module")
def compressed(folder, frame):
    """A model file that has kept only some of its rows."""
    path = folder / "compressed.corral"
    save_model(CorralClassifier(max_rows=10, random_state=0).fit(frame[NAMES], frame["species"]), path)
    return path


def fitting(table):
    """The command that fits the model of a test."""
    return "fit", table, "--target", "species", "--id", "id", "--estimator", "rodeo"


def fitted_to(table, *arguments):
    return answered(*fitting(table), *arguments)


# fit


@pytest.mark.parametrize("options", [(), ("--cv", 3), ("--test-size", 0.25)], ids=str)
def test_scores_are_those_of_scikit_learn(options, folder, frame):
    result = fitted_to(folder / "t.csv", "--seed", 3, *options)
    X, y = frame[NAMES], frame["species"].to_numpy()
    model = make_pipeline(StandardScaler(), LogisticRegression())
    if "--test-size" in options:
        [(train, test)] = StratifiedShuffleSplit(1, test_size=0.25, random_state=3).split(X, y)
        proba = model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
        assert (result["held_out"], result["folds"]) == ("23 of 90 rows", 1)
    else:
        n_folds = 3 if options else 5
        split, test = StratifiedKFold(n_folds, shuffle=True, random_state=3), slice(None)
        proba = cross_val_predict(model, X, y, cv=split, method="predict_proba")
        assert (result["held_out"], result["folds"]) == (f"each row once, in {n_folds} folds", n_folds)
    scores, labels = result["scores"]["logistic regression"], SPECIES[proba.argmax(axis=1)]
    assert scores["accuracy"] == pytest.approx(accuracy_score(y[test], labels))
    assert scores["log_loss"] == pytest.approx(log_loss(y[test], proba), rel=1e-5)
    assert scores["auc"] == pytest.approx(roc_auc_score(y[test], proba, multi_class="ovr"), rel=1e-4)
    recalls = recall_score(y[test], labels, labels=SPECIES, average=None)
    assert [scores["by_class"][name]["recall"] for name in SPECIES] == pytest.approx(recalls)
    precisions = precision_score(y[test], labels, labels=SPECIES, average=None)
    assert [scores["by_class"][name]["precision"] for name in SPECIES] == pytest.approx(precisions)
    for name, (low, high) in scores["intervals"].items():
        assert low <= scores[name] <= high
    assert list(result["scores"]) == [
        "RodeoClassifier",
        "Gaussian naive Bayes",
        "logistic regression",
        "most frequent class",
    ]
    assert result["scores"]["most frequent class"]["log_loss"] == pytest.approx(np.log(3), abs=0.02)
    assert result["rows_by_class"] == {"ant": 30.0, "bee": 30.0, "cat": 30.0}
    assert "thresholds" not in result


def test_two_classes_have_thresholds_in_json(frame, tmp_path):
    frame[frame["species"] != "cat"][5:].to_csv(tmp_path / "t.csv", index=False)
    thresholds = fitted_to(tmp_path / "t.csv")["thresholds"]
    assert thresholds["class"] == "ant"  # 25 rows, and 30 are bee
    assert [point["threshold"] for point in thresholds["consequences"]][:3] == [0.01, 0.02, 0.05]
    assert all(point["n_rows"] == 25 for point in thresholds["consequences"])


def test_tables_of_scores_fit_into_80_letters(folder):
    lines = run(*fitting(folder / "t.csv")).stdout.splitlines()
    assert lines[0] == "Held out: each row once, in 5 folds; with 95% intervals"
    ends = [i for i, line in enumerate(lines) if line.startswith("RodeoClassifier of 4 variables")]
    assert all(len(line) <= 80 for line in lines[: ends[0]])
    text = "\n".join(lines[: ends[0]])
    for name in ("balanced accuracy", "AUC", "average precision", "Brier score", "calibration error"):
        assert re.search(rf" {name} +│ \d\.\d{{3}} \(\d\.\d{{3}} to \d\.\d{{3}}\) │ \d\.\d{{3}} ", text)
    assert "regression" in text
    assert re.search(r" ant +│ 30 +│ \d\.\d\d \(\d\.\d\d to \d\.\d\d\) │ ", text)
    assert [name for name in ("recall", "precision", "F1") if name not in text] == []


def test_fit_searches_by_default_and_shows_variables_of_each_class(folder, tmp_path):
    options = ("--id", "id", "--model", tmp_path / "m.corral", "--jobs", 2)
    shown = run("fit", folder / "t.csv", "-t", "species", *options).stdout
    loaded = load_model(tmp_path / "m.corral")
    assert isinstance(loaded, CorralClassifier)
    words = ("accuracy", "log loss", "calibration", "CorralClassifier", "logistic", *SPECIES)
    assert all(word in shown for word in words)
    description = loaded.describe()
    assert description.markers.any(axis=1).all()
    for a in range(3):
        assert description.phrase(a, description.order[a, 0]) in unwrapped(shown)  # [brackets] are no markup
    # The members of the pool are shown by `info`.
    assert "members of the pool" not in shown
    shown = unwrapped(run("info", tmp_path / "m.corral").stdout)
    assert all(name in shown for name in loaded.model_.pool.shares())


def unwrapped(shown):
    """The text of a printed table, without the line breaks and borders inside its cells."""
    return " ".join(re.split(r"[\s│┃]+", shown))


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """Three classes: one is high in seven of nine columns; two differ only in the signs of two columns."""
    rng = np.random.default_rng(0)
    y = np.repeat(["far", "same", "opposite"], 120)
    X = rng.uniform(-1.0, 1.0, size=(360, 9))
    X[120:240, 1] = np.abs(X[120:240, 1]) * np.sign(X[120:240, 0])
    X[240:, 1] = -np.abs(X[240:, 1]) * np.sign(X[240:, 0])
    X[:120, 2:] += 5.0 + 0.01 * np.arange(7)
    names = [f"a long name of column {j}" for j in range(9)]
    model = RodeoClassifier(bandwidth="class", c0=0.1).fit(pd.DataFrame(X, columns=names), y)
    path = tmp_path_factory.mktemp("marked") / "m.corral"
    save_model(model, path)
    return path, model.describe()


def test_the_table_of_classes_lists_their_markers(marked):
    path, description = marked
    shown = run("info", path).stdout
    assert max(len(line) for line in shown.splitlines() if line[0] in "│┃┏┡├└") <= 80
    words = unwrapped(shown)
    for k, j in enumerate(description.order[0].tolist()):
        assert (description.phrase(0, j) in words) == (k < 4)
    assert description.markers.sum(axis=1).tolist() == [7, 0, 0]
    assert "and 3 more" in words
    for a in (1, 2):
        assert sorted(description.also_rests_on(a)) == [0, 1]
        names = " and ".join(description.feature_names[j] for j in description.also_rests_on(a))
        assert f"no variable found {names} do not describe the class, but carry much evidence for it" in words
    assert "Variables that separate the class best from all other rows come first." in words


def test_json_lists_the_markers_of_classes(marked):
    path, description = marked
    result = answered("info", path)
    order = description.order[0, :7]
    far = [description.feature_names[j] for j in order]
    assert result["markers"] == {"far": far, "opposite": [], "same": []}
    assert [line["words"] for line in result["marker_details"]["far"]] == [
        description.phrase(0, j) for j in order
    ]
    for name in ("direction", "effect", "pvalue", "typical", "others", "background"):
        assert [line[name] for line in result["marker_details"]["far"]] == getattr(description, name)[
            0, order
        ].tolist()
    assert result["also_rests_on"]["same"] == [
        description.feature_names[j] for j in description.also_rests_on(2)
    ]
    assert result["relevant"].keys() == result["markers"].keys()  # of algorithm 2


def test_values_that_a_class_lacks_more_often_are_shown(tmp_path):
    """Six columns of noise: one class lacks most values of five of them, and nothing else describes it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    X[:60, :5][rng.random((60, 5)) < 0.8] = np.nan
    table = pd.DataFrame(X, columns=list("abcdef")).assign(y=np.repeat(["gone", "there"], 60))
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ("-t", "y", "--estimator", "rodeo", "--model", tmp_path / "m.corral")
    fitted = run("fit", tmp_path / "t.csv", *options).stdout
    phrases = load_model(tmp_path / "m.corral").describe().missing_phrases(0)
    assert len(phrases) == 5
    for shown in map(unwrapped, (fitted, run("info", tmp_path / "m.corral").stdout)):
        assert [phrase in shown for phrase in phrases] == [True] * 4 + [False]
        assert f"{phrases[3]} and 1 more" in shown
        assert "a missing less often (0%; others" in shown
        assert f"no variable found {phrases[0]}" in shown
    assert answered("info", tmp_path / "m.corral")["often_missing"]["gone"] == phrases


def test_a_selector_by_algorithm_2_names_its_variables(tmp_path):
    X, y = make_shifted_groups(100, groups=(3, 4, 5), random_state=0)
    selector = RodeoSelector().fit(X, y)
    save_model(selector, tmp_path / "s.corral")
    result = answered("info", tmp_path / "s.corral")
    assert result["relevant"]["3"] == [f"x{j}" for j in np.flatnonzero(selector.relevant_[0])]
    assert selector.relevant_.any(axis=1).all()
    assert "marker_details" not in result
    assert re.search(r"│ 3 +│ x\d", run("info", tmp_path / "s.corral").stdout)


def test_quiet_prints_the_essential_line(folder, tmp_path):
    own = fitted_to(folder / "t.csv")["scores"]["RodeoClassifier"]
    low, high = own["intervals"]["accuracy"]
    assert run(*fitting(folder / "t.csv"), "--quiet").output == (
        f"RodeoClassifier: accuracy {own['accuracy']:.3f}, 95% interval {low:.3f} to {high:.3f}, "
        "held out each row once, in 5 folds\n"
    )
    model, table = folder / "m.corral", folder / "t.csv"
    assert run("info", model, "-q").output == "RodeoClassifier of 4 variables\n"
    [line] = run("explain", model, table, "--row", 3, "-q").output.splitlines()
    assert line.startswith("Row 3 is ")
    assert run("predict", model, table, "--out", tmp_path / "o.csv", "-q").output == ""


def test_lspc_all_the_way(folder, frame, tmp_path):
    model, table = tmp_path / "m.corral", folder / "t.csv"
    shown = run(*fitting(table), "--estimator", "lspc", "--model", model).stdout
    loaded = load_model(model)
    assert isinstance(loaded, LSPClassifier)
    expected = LSPClassifier(scale="standard", random_state=0).fit(frame[NAMES], frame["species"])
    assert_array_equal(loaded.predict_proba(frame[NAMES]), expected.predict_proba(frame[NAMES]))
    assert f"sigma={loaded.best_params_['sigma']!r}" in shown
    assert "to expect by cross-validation" not in shown  # held-out rows say more
    run("predict", model, table, "--out", tmp_path / "o.csv", "-q")
    assert pd.read_csv(tmp_path / "o.csv")["label"].tolist() == loaded.predict(frame[NAMES]).tolist()
    shown = run("info", model).stdout
    assert "LSPClassifier of 4 variables" in shown
    assert "too good, because parameters were chosen by it" in shown
    assert refused("explain", model, table, "--row", 0).endswith(
        "contains LSPClassifier, which cannot explain labels: only models of class densities can."
    )


def test_missing_values(folder, frame, tmp_path):
    incomplete = frame.astype(object)
    incomplete.loc[3, "höhe"] = "?"
    incomplete.loc[[5, 7], "length"] = ""
    incomplete.loc[9, "species"] = "?"
    incomplete.to_csv(tmp_path / "g.csv", index=False)
    arguments = fitting(tmp_path / "g.csv")
    assert "replace it with NaN if it stands for a missing value" in refused(
        *arguments, "--missing", "drop-rows"
    )
    marked = (*arguments, "--na-values", "?")
    assert "the target 'species' is missing in 1 row, first in row 9" in refused(*marked)
    result = run(*marked, "--missing", "drop-rows", "--json", "--model", tmp_path / "m.corral")
    assert json.loads(result.stdout)["rows"] == 86
    assert notes_of(result) == [
        "left out 4 of 90 rows, which lack a value; the other rows keep their numbers."
    ]
    rows = frame.drop([3, 5, 7, 9])
    expected = RodeoClassifier(priors="empirical", random_state=0).fit(rows[NAMES], rows["species"])
    loaded = load_model(tmp_path / "m.corral")
    assert_array_equal(loaded.predict_proba(rows[NAMES]), expected.predict_proba(rows[NAMES]))

    options = ("predict", folder / "m.corral", tmp_path / "g.csv", "--out", tmp_path / "o.csv", "--id", "id")
    run(*options, "--na-values", "?")
    labels = pd.read_csv(tmp_path / "o.csv", dtype={"id": str})
    assert labels["id"].tolist() == frame["id"].tolist()
    assert np.isfinite(labels.filter(like="p_").to_numpy()).all()
    assert answered(*options, "--missing", "drop-rows", "--na-values", "?")["left_out"] == 3
    kept = pd.read_csv(tmp_path / "o.csv", dtype={"id": str})["id"]
    assert kept.tolist() == frame["id"].drop([3, 5, 7]).tolist()
    run(*options[:-2], "--missing", "drop-rows", "--na-values", "?")
    assert pd.read_csv(tmp_path / "o.csv")["row"].tolist() == frame.index.drop([3, 5, 7]).tolist()
    incomplete.assign(höhe="").to_csv(tmp_path / "g.csv", index=False)
    assert "has no row without missing values" in refused(*options, "--missing", "drop-rows")


def test_missing_values_in_parquet(folder, frame, tmp_path):
    incomplete = frame.assign(length=np.where(np.arange(90) < 3, -999.0, frame["length"]))
    incomplete["höhe"] = incomplete["höhe"].astype("Float64")
    incomplete.loc[8, "höhe"] = pd.NA
    incomplete.to_parquet(tmp_path / "g.parquet")
    actual = fitted_to(tmp_path / "g.parquet")
    assert (actual["rows"], actual["missing_values"]) == (90, {"höhe": 1})
    assert fitted_to(tmp_path / "g.parquet", "--missing", "drop-rows", "--na-values", "-999")["rows"] == 86


@pytest.fixture(scope="module")
def missing_marked(frame, tmp_path_factory):
    """A model whose table had -999 and >200 for missing values, and tables with and without these texts."""
    folder = tmp_path_factory.mktemp("marked")
    incomplete = frame.astype(object)
    incomplete.loc[[4, 40], "höhe"], incomplete.loc[50, "length"], incomplete.loc[60, "length"] = (
        -999,
        ">200",
        "?",
    )
    incomplete.drop(index=60).to_csv(folder / "m.csv", index=False)
    incomplete.loc[:59].to_csv(folder / "new.csv", index=False)
    incomplete.to_csv(folder / "more.csv", index=False)
    incomplete.replace({-999: "", ">200": "", "?": ""}).to_csv(folder / "plain.csv", index=False)
    notes = ("--na-values", "-999", "--na-values", ">200", "--na-values", "-999")
    run(*fitting(folder / "m.csv"), "--model", folder / "m.corral", *notes)
    return folder


def test_texts_for_missing_values_are_kept_in_the_model(missing_marked, tmp_path):
    model, out = missing_marked / "m.corral", ("--out", tmp_path / "o.csv")
    run("predict", model, missing_marked / "plain.csv", *out)
    expected = pd.read_csv(tmp_path / "o.csv")
    for table, notes in (("new.csv", ()), ("more.csv", ("--na-values", "?"))):
        run("predict", model, missing_marked / table, *out, *notes)
        labels = pd.read_csv(tmp_path / "o.csv")
        pd.testing.assert_frame_equal(labels, expected[: len(labels)])
    assert "row 60 holds '?'" in refused("predict", model, missing_marked / "more.csv", *out)
    actual = answered("explain", model, missing_marked / "new.csv", "--row", 4)
    assert [each["value"] for each in actual["variables"] if each["variable"] == "höhe"] == [None]
    run("report", model, missing_marked / "new.csv", "-t", "species", "--out", tmp_path / "r.html")
    message = "values that count as missing, also in new tables: '-999', '>200'"
    assert message in run("info", model).stdout
    assert answered("info", model)["na_values"] == ["-999", ">200"]


def test_texts_for_missing_values_are_kept_in_files_but_not_by_another_fit(missing_marked, frame, tmp_path):
    loaded = load_model(missing_marked / "m.corral")
    save_model(loaded, tmp_path / "again.corral")
    assert load_model(tmp_path / "again.corral").na_values_ == ["-999", ">200"]
    assert not hasattr(loaded.fit(frame[NAMES], frame["species"]), "na_values_")
    least_squares = LSPClassifier(sigmas=[1.0], alphas=[0.1]).fit(frame[NAMES], frame["species"])
    least_squares.na_values_ = ["?"]
    assert not hasattr(least_squares.fit(frame[NAMES], frame["species"]), "na_values_")


@pytest.mark.parametrize("forged", ["-999", None, [-999], {"a": "-999"}, [["-999"]]])
def test_forged_texts_for_missing_values_are_refused(forged, missing_marked, tmp_path):
    header, arrays = take_apart(missing_marked / "m.corral")
    header["state"]["na_values_"] = forged
    put_together(tmp_path / "forged.corral", header, arrays)
    with pytest.raises(ValueError, match=r"is damaged: na_values_ is not a (list|text)"):
        load_model(tmp_path / "forged.corral")


@pytest.mark.parametrize("parts", [(), ("--cv", 3)])
def test_duplicates_are_noted_once(parts, frame, tmp_path):
    """Fits to parts of the table print no notes about their own duplicates."""
    frame.iloc[[*range(90), 0, 1, 31, 62]].to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-t", "species", "--drop", "id", "--estimator", "rodeo", *parts)
    notes = [line for line in run(*fit).stderr.splitlines() if "duplicates" in line]
    assert notes == [
        "note: 4 of 94 rows are duplicates of other rows; a row and its duplicates are left out together."
    ]


def test_advice_where_no_variable_is_relevant(tmp_path):
    rng = np.random.default_rng(0)
    model = RodeoClassifier(scale=None, c0=0.01).fit(rng.normal(size=(60, 3)), ["a", "b"] * 30)
    save_model(model, tmp_path / "m.corral")
    shown = run("info", tmp_path / "m.corral").stdout
    assert "No single variable describes a class: in no variable do the values or a single category" in shown
    assert shown.count("no variable found") == 2


def test_bars_where_someone_watches(folder, tmp_path, monkeypatch):
    """Estimators with a progress bar show it; other commands have one bar for all fits."""
    assert run(*fitting(folder / "t.csv")).stderr == ""  # nobody watches a pipe
    monkeypatch.setattr("corral.cli.console.Output.bars", 1)
    # As on a terminal: rich draws moving bars nowhere else.
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    shown = run(*fitting(folder / "t.csv"), "--model", tmp_path / "m.corral").stderr
    assert "RodeoClassifier without held-out rows, 1 of 5\n" in shown
    assert "Leave-one-out" in shown
    assert "RodeoClassifier with all rows\n" in shown
    result = run("predict", tmp_path / "m.corral", folder / "t.csv", "--out", tmp_path / "o.csv", "--json")
    assert json.loads(result.stdout)["rows"] == 90
    assert "\rPredict " in plain(result.stderr)
    arguments = ("sample-size", folder / "t.csv", "-t", "species", "--id", "id", "--json", "--tolerance")
    result = run(*arguments, 1)
    assert json.loads(result.stdout)["converged"] is False
    assert "no variable is relevant" in json.loads(result.stdout)["caveats"][0]  # z-scores of few variables
    assert "\rAdd rows step by step " in plain(result.stderr)


def plain(shown):
    """Terminal output without colours and cursor movements."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_the_share_that_has_been_read_is_reported(name, folder, frame, monkeypatch):
    monkeypatch.setattr("corral.cli.tables.CHUNK", 30)
    notes = []
    list(read_chunks(open_table(folder / name), NAMES, on_progress=notes.append))
    assert len(notes) == 3
    assert notes == sorted(notes)
    assert notes[-1] == 1.0


# predict


@pytest.mark.parametrize("table", ["t.csv", "t.tsv", "t.parquet"])
@pytest.mark.parametrize("out", ["o.csv", "o.tsv", "o.parquet"])
def test_predict_in_chunks_equals_python(table, out, folder, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("corral.cli.tables.CHUNK", 7)
    result = run("predict", folder / "m.corral", folder / table, "--id", "id", "--out", tmp_path / out)
    assert f"{len(frame)} rows" in result.stdout
    if out == "o.parquet":
        actual = pd.read_parquet(tmp_path / out)
    else:
        actual = pd.read_csv(tmp_path / out, sep="\t" if out == "o.tsv" else ",", dtype=str)
    model = load_model(folder / "m.corral")
    assert actual.columns.tolist() == ["id", "label", "p_ant", "p_bee", "p_cat", "typicality", "novel"]
    assert actual["id"].tolist() == frame["id"].tolist()  # with their zeros
    assert actual["label"].tolist() == model.predict(frame[NAMES]).tolist()
    assert_allclose(actual.iloc[:, 2:5].to_numpy(float), model.predict_proba(frame[NAMES]), atol=1e-10)
    assert_allclose(
        actual["typicality"].to_numpy(float), model.assess(frame[NAMES]).nearest_typicality, atol=1e-10
    )
    assert_array_equal(actual["novel"].astype(str) == "True", model.is_novel(frame[NAMES]))
    assert list(tmp_path.iterdir()) == [tmp_path / out]


def test_predict_without_typicality(folder, frame, tmp_path):
    model, out = folder / "m.corral", tmp_path / "o.csv"
    command = ("predict", model, folder / "t.csv", "--no-typicality", "--set", "0.9", "--out", out)
    assert answered(*command)["novel"] is None
    actual = pd.read_csv(out)
    sets = [f"in_set_{name}" for name in ("ant", "bee", "cat")]
    assert actual.columns.tolist() == ["label", "p_ant", "p_bee", "p_cat", *sets]
    assert actual["label"].tolist() == load_model(model).predict(frame[NAMES]).tolist()


@pytest.mark.parametrize("out", ["o.csv", "o.parquet", "o.xlsx"])
def test_predict_keeps_the_columns_of_the_table(out, folder, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("corral.cli.tables.CHUNK", 7)
    given = frame.assign(year=2007, when="NA").astype({"höhe": object})
    given["höhe"] = np.arange(len(given))  # whole numbers, one of which is missing in a chunk
    text = given.to_csv(index=False).replace(",8,ant", ",,ant")
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    run("predict", folder / "m.corral", tmp_path / "t.csv", "--keep", "--out", tmp_path / out)
    if out == "o.csv":
        lines = (tmp_path / out).read_text(encoding="utf-8").splitlines()
        assert [line.rsplit(",", 6)[0] for line in lines] == text.splitlines()  # as they are
        assert lines[0].endswith(",when,label,p_ant,p_bee,p_cat,typicality,novel")
        return
    actual = (
        pd.read_parquet(tmp_path / out)
        if out == "o.parquet"
        else pd.read_excel(tmp_path / out, engine="calamine")
    )
    assert list(actual.columns[: len(given.columns)]) == list(given.columns)
    assert_allclose(actual["length"], given["length"], rtol=1e-14)
    assert actual["höhe"].isna().sum() == 1


def test_predict_needs_only_the_variables_in_any_order(folder, frame, tmp_path):
    frame[["id", *NAMES[::-1]]].replace({"id": {"0001": "NA"}}).to_csv(tmp_path / "t.csv", index=False)
    run("predict", folder / "m.corral", tmp_path / "t.csv", "--id", "id", "--out", tmp_path / "o.csv", "-q")
    actual = pd.read_csv(tmp_path / "o.csv", dtype=str, keep_default_na=False)
    assert actual["id"][1] == "NA"
    assert actual["label"].tolist() == load_model(folder / "m.corral").predict(frame[NAMES]).tolist()


def test_novel_rows_are_counted(folder, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("corral.cli.tables.CHUNK", 10)
    far = frame.copy()
    far.loc[::4, NAMES[0]] += 1e6
    far.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("predict", folder / "m.corral", tmp_path / "t.csv", "--out", tmp_path / "o.csv")
    expected = int(load_model(folder / "m.corral").is_novel(far[NAMES]).sum())
    assert expected >= len(far) / 4
    done = run(*arguments)
    assert f"{expected} of 90 rows are novel. " in done.stdout
    assert f"{expected} are significantly more (beta-binomial test at 0.01, p < 0.001)." in done.stdout
    why = (
        f"Novel rows are most often unlike the training rows in {NAMES[0]} (in {expected} of {expected}; med"
    )
    assert f"note: {why}" in done.stderr
    answer = answered(*arguments)
    assert answer["novel"] == expected
    assert answer["why_novel"].startswith(why)


def test_few_novel_rows_have_no_reason(folder, tmp_path):
    arguments = ("predict", folder / "m.corral", folder / "t.csv", "--out", tmp_path / "o.csv")
    assert run(*arguments).stderr == ""
    assert answered(*arguments)["why_novel"] == ""


def test_sets_and_decisions_equal_python(folder, frame, tmp_path):
    model = load_model(folder / "m.corral")
    costs = pd.DataFrame([[0.0, 5.0, 1.0], [1.0, 0.0, 2.5], [9.0, 1.0, 0.0]], ["cat", "ant", "bee"])
    costs.columns = ["ant", "cat", "bee"]
    costs.to_csv(tmp_path / "costs.csv", index_label="true")
    arguments = ("predict", folder / "m.corral", folder / "t.csv", "--out", tmp_path / "o.csv")
    run(*arguments, "--set", 0.8, "--costs", tmp_path / "costs.csv", "--reject-cost", 0.3)
    actual = pd.read_csv(tmp_path / "o.csv", keep_default_na=False)
    sets = actual[["in_set_ant", "in_set_bee", "in_set_cat"]].to_numpy()
    assert_array_equal(sets, model.predict_set(frame[NAMES], 0.8))
    decided = model.decide(frame[NAMES], costs, reject_cost=0.3)
    assert actual["decision"].tolist() == ["" if label is None else label for label in decided]


def test_predict_with_a_model_without_densities(folder, frame, tmp_path):
    X, y = frame[NAMES], load_model(folder / "m.corral").predict(frame[NAMES])
    model = LSPClassifier().fit(X, y)
    save_model(model, tmp_path / "m.corral")
    (tmp_path / "costs.csv").write_text("true,ant,bee,cat\nant,0,5,1\nbee,1,0,2\ncat,9,1,0\n")
    arguments = ("predict", tmp_path / "m.corral", folder / "t.csv", "--out", tmp_path / "o.csv")
    run(*arguments, "--costs", tmp_path / "costs.csv", "--reject-cost", 0.3)
    actual = pd.read_csv(tmp_path / "o.csv", keep_default_na=False)
    proba, costs = model.predict_proba(X), np.array([[0.0, 5.0, 1.0], [1.0, 0.0, 2.0], [9.0, 1.0, 0.0]])
    assert_allclose(actual[["p_ant", "p_bee", "p_cat"]], proba, rtol=1e-9)  # pandas may move last digits
    decided = np.where((proba @ costs).min(axis=1) > 0.3, "", model.classes_[(proba @ costs).argmin(axis=1)])
    assert_array_equal(actual["decision"], decided)
    assert "novel" not in actual
    assert "--set needs a model of class densities, but" in refused(*arguments, "--set", 0.8)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("true,ant,bee\nant,0,1\nbee,1,0\n", (), "must list each class once, but 'cat' is missing"),
        ("true,ant,bee,dog\nant,0,1,1\ndog,1,1,0\n", (), "must list classes, but 'dog' is not one of"),
        ("true,ant,bee,cat\nant,0,x,1\nbee,1,0,1\ncat,1,1,0\n", (), "costs must be numbers, got"),
        ("true,ant,bee,cat\nant,0,1,1\n", ("--set", 1.5), "--set must be a number between 0 and 1"),
        ("true,ant,bee,cat\nant,0,1,1\n", ("--reject-cost", "nan"), "--reject-cost must be a finite number"),
        ("true,ant,bee,cat\nant,0,1,1\n", ("--reject-cost", "inf"), "--reject-cost must be a finite number"),
    ],
)
def test_bad_costs_and_coverages_are_refused(text, options, message, folder, tmp_path):
    (tmp_path / "costs.csv").write_text(text)
    arguments = ("predict", folder / "m.corral", folder / "t.csv", "--out", tmp_path / "o.csv")
    assert message in refused(*arguments, "--costs", tmp_path / "costs.csv", *options)
    assert "--reject-cost needs --costs" in refused(*arguments, "--reject-cost", 1.0)


@pytest.mark.parametrize("names", [["label"], ["p_ant"], ["label", "p_ant"]])
def test_kept_columns_may_have_any_name(names, folder, frame, tmp_path):
    frame.assign(**dict.fromkeys(names, frame["id"])).to_csv(tmp_path / "t.csv", index=False)
    arguments = ["predict", folder / "m.corral", tmp_path / "t.csv", "--out", tmp_path / "o.csv"]
    for name in (*names, "species"):
        arguments += ["--id", name]
    for _ in range(2):  # the first table is known as one of predictions
        assert "the label is in the column 'predicted_label'" in run(*arguments).stderr
    actual = pd.read_csv(tmp_path / "o.csv")
    columns = ["label", "p_ant", "p_bee", "p_cat", "typicality", "novel"]
    assert actual.columns.tolist() == [*names, "species", *(f"predicted_{column}" for column in columns)]
    assert actual["species"].tolist() == frame["species"].tolist()


def test_a_file_that_is_read_is_not_overwritten(folder, stand_ins):
    model, table = folder / "m.corral", folder / "t.csv"
    before = table.read_bytes(), model.read_bytes()
    for arguments in (
        ("predict", model, table, "--out", table),
        ("predict", model, table, "--out", folder / ".." / folder.name / "m.corral"),
        ("fit", table, "-t", "species", "--model", table),
        ("fit", table, "-t", "species", "--model", folder / "new", "--report", folder / "new"),
        ("report", model, table, "--out", table),
        ("explain", model, table, "--row", 0, "--plot", table),
    ):
        assert refused(*arguments).endswith("is given twice: give a different name for each file.")
    assert (table.read_bytes(), model.read_bytes()) == before


def test_predict_leaves_the_old_file_if_a_late_row_is_bad(folder, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("corral.cli.tables.CHUNK", 10)
    text = frame.to_csv(index=False).splitlines()
    text[-1] = "1.0,oops,1.0,1.0,ant,0089"
    (tmp_path / "t.csv").write_text("\n".join(text), encoding="utf-8")
    (tmp_path / "o.csv").write_text("label,p_old")
    message = refused("predict", folder / "m.corral", tmp_path / "t.csv", "--out", tmp_path / "o.csv")
    assert "column '[bold]width' is not numeric: row 89 holds 'oops'; correct it" in message
    assert (tmp_path / "o.csv").read_text() == "label,p_old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.csv", "t.csv"]


# explain, report, info, sample-size, demo


@pytest.fixture
def stand_ins(monkeypatch):
    """Stand-ins for the report and the plot, which have tests of their own: the arguments of each call."""
    calls = []

    def write_report(estimator, X, y, path, **options):
        calls.append((path, estimator, X, y, options))
        path.write_text('<meta name="generator" content="corral">')
        return path

    class Display:
        @classmethod
        def from_explanation(cls, explanation, sample):
            calls.append((explanation, sample))
            display = cls()
            display.figure_ = Figure()
            return display

    monkeypatch.setitem(sys.modules, "corral.report", types.SimpleNamespace(write_report=write_report))
    monkeypatch.setattr("corral.display.ExplanationDisplay", Display, raising=False)
    return calls


def test_fit_writes_a_report_on_held_out_rows(folder, frame, tmp_path, stand_ins):
    page = tmp_path / "r.html"
    result = fitted_to(folder / "t.csv", "--report", page, "--seed", 3, "--test-size", 0.25)
    [(path, fitted, X, y, options)] = stand_ins
    assert (path, result["report"]) == (page, str(page))
    assert_array_equal(X.to_numpy(), frame[NAMES].to_numpy())
    assert y.tolist() == frame["species"].tolist()
    assert options.keys() == {"held_out", "sample_sizes", "source", "random_state"}
    assert (options["source"], options["random_state"]) == ("t.csv", 3)
    [(train, test)] = StratifiedShuffleSplit(1, test_size=0.25, random_state=3).split(X, y)
    model = RodeoClassifier(priors="empirical", random_state=3)
    train = np.sort(train)
    expected = model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    assert_array_equal(options["held_out"].proba, expected)
    others = ["Gaussian naive Bayes", "logistic regression", "most frequent class"]
    assert list(options["held_out"].baselines) == others
    assert_array_equal(fitted.predict_proba(X), model.fit(X, y).predict_proba(X))


def test_report_measures_only_on_rows_that_the_model_has_not_seen(folder, frame, tmp_path, stand_ins):
    new = frame.assign(length=np.where(np.arange(90) % 3, frame["length"], frame["length"] + 0.01))
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = ("report", folder / "m.corral", tmp_path / "new.csv", "--out", tmp_path / "r.html")
    result = run(*arguments, "--target", "species", "--tolerance", 0.9)
    assert result.stdout == f"The report on 90 rows is in {tmp_path / 'r.html'}\n"
    assert result.stderr == (
        "note: 60 of 90 rows are equal to training rows, in every digit; the report shows and scores only "
        "the other 30 rows.\n"
    )
    [(path, fitted, X, y, options)] = stand_ins
    assert path == tmp_path / "r.html"
    unseen = np.arange(90) % 3 == 0
    assert_array_equal(options["held_out"].truth, frame["species"][unseen])
    assert_array_equal(options["held_out"].proba, fitted.predict_proba(X[unseen]))
    assert isinstance(options["sample_sizes"], SampleSizes)
    assert y.tolist() == frame["species"].tolist()

    run("report", folder / "m.corral", tmp_path / "new.csv", "--out", tmp_path / "r.html")
    assert stand_ins[1][3] is stand_ins[1][4]["held_out"] is stand_ins[1][4]["sample_sizes"] is None
    assert refused(*arguments, "--tolerance", 1).startswith("--tolerance needs --target")


def test_report_notes_why_it_is_not_known_whether_rows_are_new(
    folder, frame, compressed, tmp_path, stand_ins
):
    X, y = frame[NAMES], frame["species"]
    lspc = tmp_path / "lspc.corral"
    save_model(LSPClassifier().fit(X, y), lspc)
    for model, why in (
        (folder / "m.corral", "all 90 rows are equal to training rows"),
        (compressed, "the model contains only some of its 90 training rows"),
        (lspc, "the LSPClassifier does not contain the original training rows"),
    ):
        message = run("report", model, folder / "t.csv", "-t", "species", "--out", tmp_path / "r.html").stderr
        assert message.splitlines()[0] == (
            f"note: no row can be recognized as new to the model, because {why}; the report scores all rows. "
            "'corral fit --report' writes a report with scores on held-out rows."
        )
        assert stand_ins[-1][4]["held_out"] is None


def test_fit_estimates_how_many_rows_a_goal_takes(folder, tmp_path, stand_ins):
    goal = ("--estimator", "cv", "--report", tmp_path / "f.html", "--goal", 0.9)
    run(*fitting(folder / "t.csv"), *goal, "-q")
    assert stand_ins[-1][4]["sample_sizes"].goal == 0.9
    for without in ((), ("--report", tmp_path / "f.html", "--estimator", "rodeo")):
        message = refused("fit", folder / "t.csv", "-t", "species", "--goal", 0.9, *without)
        assert message.startswith("--goal 0.9 is for the report of --estimator cv")


def test_report_counts_groups(folder, frame, tmp_path, stand_ins):
    unseen = np.arange(90) % 3 == 0
    new = frame.assign(length=frame["length"] + 0.01 * unseen, patient=[f"p{i // 6}" for i in range(90)])
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = ("report", folder / "m.corral", tmp_path / "new.csv", "--out", tmp_path / "r.html")
    run(*arguments, "-t", "species", "--group", "patient")
    assert_array_equal(stand_ins[0][4]["held_out"].groups, new["patient"][unseen])
    new.assign(patient="p").to_csv(tmp_path / "new.csv", index=False)
    run(*arguments, "-t", "species", "--group", "patient")
    assert stand_ins[1][4]["held_out"].n_groups == 1
    assert refused(*arguments, "--group", "patient").startswith("--group needs --target")
    for name in ("species", "length"):
        message = refused(*arguments, "-t", "species", "--group", name)
        assert message == f"--group {name!r} cannot be used: it is the target or a variable of the model."
    assert "nobody" in refused(*arguments, "-t", "species", "--group", "nobody")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_explain_draws(kind, folder, tmp_path, stand_ins):
    plot = tmp_path / f"why.{kind}"
    shown = run("explain", folder / "m.corral", folder / "t.csv", "--row", 5, "--plot", plot).stdout
    assert f"The plot is in {plot}" in shown
    [(explanation, sample)] = stand_ins
    assert (explanation.label.size, sample) == (1, 0)
    signature = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind]
    assert plot.read_bytes().startswith(signature)
    arguments = ("explain", folder / "m.corral", folder / "t.csv", "--row", 5, "--plot", tmp_path / "why.txt")
    assert refused(*arguments).endswith(
        "must end in .png, .svg or .pdf, because the ending sets the file format."
    )


def test_explain_prints_the_explanation_of_python(folder, frame):
    arguments = ("explain", folder / "m.corral", folder / "t.csv", "--row", 5, "--rows", 3)
    result = answered(*arguments)
    expected = load_model(folder / "m.corral").explain(frame[NAMES].iloc[[5]], n_rows=3)
    assert (result["row"], result["novel"], result["caution"]) == (5, False, expected.caution(0))
    for name in ("label", "rival", "log_odds", "effective_rows", "nearest", "typicality"):
        assert result[name] == getattr(expected, name)[0], name
    for name in ("evidence", "conditional", "novelty_parts"):
        assert [each[name] for each in result["variables"]] == getattr(expected, name)[0].tolist()
    together = result["base"] + sum(each["evidence"] for each in result["variables"])
    assert together == pytest.approx(np.log(result["probability"] / result["probability_rival"]))
    assert [each["value"] for each in result["variables"]] == frame[NAMES].iloc[5].tolist()
    assert [each["row"] for each in result["training_rows"]] == expected.rows[0].tolist()
    words = run(*arguments).stdout
    message = [sentence for sentence in expected.sentences(0, "Row 5").values() if sentence]
    assert len(message) >= 5
    assert all(sentence in words.splitlines() for sentence in message)
    assert all(name in words for name in NAMES)
    assert f"{expected.rows[0, 0]}, equal to this row ({expected.shares[0, 0]:.0%})" in words


def test_explain_shows_why_a_row_is_novel(folder, frame, tmp_path):
    frame.assign(**{NAMES[1]: 1e4}).to_csv(tmp_path / "far.csv", index=False)
    arguments = ("explain", folder / "m.corral", tmp_path / "far.csv", "--row", 5)
    result = answered(*arguments)
    assert result["novel"]
    nearest = f"the row differs from {result['nearest']}, the nearest class, most in {NAMES[1]} = 10000 ("
    words = unwrapped(run(*arguments).stdout)
    assert (
        f"This row is novel: less typical than 99 in 100 training rows; {nearest}{result['nearest']} from "
        in words
    )
    assert "). By chance, about 1 in 100 rows like the training rows is also novel." in words


def test_explain_against_a_class(folder):
    arguments = ("explain", folder / "m.corral", folder / "t.csv", "--row", 0, "--against")
    assert answered(*arguments, "cat")["rival"] == "cat"
    label = answered(*arguments[:-1])["label"]
    assert refused(*arguments, label) == (
        f"row 0 has the label {label!r}: give another class to --against, or leave --against out."
    )
    assert "the model has no class 'dog'; its classes are 'ant', 'bee', 'cat'" in refused(*arguments, "dog")


def test_info(folder, tmp_path):
    result = answered("info", folder / "m.corral")
    assert result["estimator"] == "RodeoClassifier"
    assert result["variables"] == NAMES
    assert result["bytes"] == (folder / "m.corral").stat().st_size
    assert "written by corral 0" in run("info", folder / "m.corral").stdout
    save_model(RodeoDensity().fit(np.arange(20.0).reshape(10, 2)), tmp_path / "d.corral")
    assert "RodeoDensity of 2 variables" in run("info", tmp_path / "d.corral").stdout


def test_sample_size(folder):
    arguments = ["sample-size", folder / "t.csv", "-t", "species", "--drop", "id", "--tolerance", 0.2]
    arguments += ["--initial-size", 10, "--held-out", 10, "--step", 10]
    result = answered(*arguments)
    assert set(result["rows"]) == set(SPECIES)
    assert result["epsilon"] == result["steps"][-1]["epsilon"]
    assert "SampleSizes: " in run(*arguments).stdout
    assert "'fair'" in refused(*arguments, "--allocation", "fair")
    assert run(*arguments, "-q").stdout.startswith("SampleSizes: ")
    assert "use only one of them" in refused(*arguments, "--goal", 0.9)
    assert "--group cannot be used with --tolerance" in refused(
        *arguments[:4], *arguments[6:], "--group", "id"
    )


@pytest.mark.parametrize(
    "option", ["--initial-size 10", "--held-out 10", "--step 30", "--allocation proportional"]
)
def test_options_of_the_bound_need_it(folder, option):
    message = refused("sample-size", folder / "t.csv", "-t", "species", "--drop", "id", *option.split())
    assert message.endswith("--step and --allocation need --tolerance.")


def test_learning_curve(folder, compressed):
    arguments = ["sample-size", folder / "t.csv", "-t", "species", "--drop", "id", "--goal", 0.95]
    result = answered(*arguments)
    assert set(result["rows"]) == set(SPECIES)
    assert [each["rows"] for each in result["expected"]][-1] is None
    assert [need["class"] for need in result["needed"]] == [None, *sorted(SPECIES)]
    for each in (*result["measured"], *(point["accuracy"] for point in result["expected"])):
        assert 0 <= each.get("accuracy", each.get("value")) <= 1
    shown = run(*arguments).stdout
    assert shown.startswith("LearningCurve: accuracy ")
    assert "accuracy 0.95: " in shown
    grouped = run(*arguments[:4], *arguments[6:], "--group", "id").stdout
    assert grouped.startswith("LearningCurve: accuracy ")
    assert grouped != shown  # groups are divided otherwise than rows
    page = (folder / "t.csv", "--goal", 0.9, "--out", folder / "curve.html")
    assert "must be a CorralClassifier" in refused("report", folder / "m.corral", *page)
    assert refused("report", compressed, *page) == (
        f"--goal needs all 90 training rows, but {compressed} contains only some of them: use 'corral fit "
        "--report --goal' instead."
    )


def test_demo_fits_predicts_and_explains(tmp_path, monkeypatch):
    # A fast estimator: the default one takes long.
    quick = RodeoClassifier(bandwidth="class", features="selected", priors="empirical", random_state=0)
    monkeypatch.setattr("corral.cli.fit._estimator", lambda *options: clone(quick))
    shown = run("demo", "--folder", tmp_path / "d").stdout
    assert all(f"x{j} narrow (" in shown for j in range(4))
    assert "and 2 more" in shown
    assert "of these labels are right" in shown
    assert "new0000 (row 0) is " in shown
    assert "Row 29 is Chinstrap with probability " in shown
    assert "bill_length_mm = 58 " in shown
    ids = [set(pd.read_csv(tmp_path / "d" / name)["id"]) for name in ("groups.csv", "new_groups.csv")]
    assert ids[0] & ids[1] == set()
    assert "categories: island (3), sex (2)" in shown
    assert "year" not in load_model(tmp_path / "d" / "penguins.corral").feature_names_in_
    reports = [str(tmp_path / "d" / name) for name in ("groups.html", "penguins.html")]
    assert shown.endswith(f"Open the reports in a browser: {' and '.join(reports)}\n")
    patterns = ("{}.csv", "new_{}.csv", "{}.corral", "{}_labels.csv", "{}_why.png", "{}.html")
    expected = {pattern.format(name) for pattern in patterns for name in ("groups", "penguins")}
    assert {path.name for path in (tmp_path / "d").iterdir()} == expected
    assert "groups.csv" in (tmp_path / "d" / "groups.html").read_text(encoding="utf-8")
    assert (tmp_path / "d" / "groups_why.png").read_bytes().startswith(b"\x89PNG")


# Errors


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens but cannot be read")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_table_that_cannot_be_read(name, folder, tmp_path):
    (tmp_path / name).symlink_to("/proc/self/mem")
    message = refused("predict", folder / "m.corral", tmp_path / name, "--out", tmp_path / "o.csv")
    assert message.startswith(f"{tmp_path / name} cannot be read")


DAYS = pd.date_range("2020-01-01", periods=90)
NO_VALUE = "column 'odd' holds {} in row 0, which is neither a number nor text: leave it out (--drop odd)."
NO_TIME = (
    "column 'odd' holds times, such as '{}' in row 0, which a fit refuses: leave the column out, or convert "
    "the times to numbers, such as hours (--drop odd)."
)


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([[1.0, 2.0]] * 90, NO_VALUE.format("'[1. 2.]'")),
        ([b"12"] * 90, NO_VALUE.format("\"b'12'\"")),
        (DAYS.time, NO_TIME.format("00:00:00")),
        (DAYS - DAYS[0], NO_TIME.format("0 days 00:00:00")),
    ],
    ids=["lists", "bytes", "times", "spans"],
)
def test_columns_of_parquet_that_are_not_taken(column, sentence, frame, tmp_path):
    frame.assign(odd=column).to_parquet(tmp_path / "t.parquet")
    arguments = (tmp_path / "t.parquet", "--target", "species", "--id", "id")
    shown = run("check", *arguments).stdout
    assert f"- {sentence}\n" in shown
    assert "odd (" not in shown.replace(sentence, "")
    assert refused("fit", *arguments) == f"{arguments[0]}: {sentence}"


DATES = "column 'odd' holds dates: days since 2000, month and weekday are its variables"


@pytest.mark.parametrize("column", [DAYS, DAYS.tz_localize("UTC"), DAYS.date, DAYS.astype(str)])
def test_dates_become_variables_in_every_command(column, frame, tmp_path):
    table, model, out = (tmp_path / name for name in ("t.parquet", "m.corral", "p.csv"))
    frame.assign(odd=column).to_parquet(table)
    arguments = (table, "--target", "species", "--id", "id")
    assert "dates, which a fit replaces with variables: odd (90)" in run("check", *arguments).stdout
    notes = run("fit", *arguments, "-m", model, "-r", tmp_path / "r.html").stderr
    assert notes.count(DATES) == 1
    assert f"{DATES}; --categorical odd makes the dates categories." in notes
    fitted = load_model(model)
    assert fitted.encoding_.variable_names(["odd"] * fitted.n_features_in_)[-3:] == [
        "odd (days since 2000)",
        "odd (month)",
        "odd (weekday)",
    ]
    frame.assign(odd=DAYS.astype(str)).to_csv(tmp_path / "t.csv", index=False)
    run("predict", model, tmp_path / "t.csv", "-o", out)
    expected = fitted.predict_proba(frame[NAMES].assign(odd=DAYS))
    assert np.array_equal(pd.read_csv(out).filter(like="p_").to_numpy(), expected)
    assert "odd (weekday)" in run("explain", model, tmp_path / "t.csv", "--row", frame["id"][0]).stdout
    run("fit", *arguments, "-m", model, "--categorical", "odd")
    assert not load_model(model).encoding_.dates


def test_dates_of_spreadsheets(frame, tmp_path):
    arguments = (tmp_path / "t.xlsx", "--target", "species", "--id", "id")
    days = pd.Series(DAYS, dtype=object).where(np.arange(90) > 0, "soon")
    frame.assign(odd=days).to_excel(tmp_path / "t.xlsx", index=False)
    notes = run("fit", *arguments).stderr
    assert DATES in notes
    assert "1 value of column 'odd', 'soon', cannot be read as a date and counts as missing" in notes
    # A few dates among numbers are errors.
    frame.assign(x=[DAYS[0], *range(1, 90)]).to_excel(tmp_path / "t.xlsx", index=False)
    sentence = "'x' would be numeric, but row 0 holds '2020-01-01 00:00:00'"
    assert sentence in run("check", *arguments).stdout
    assert sentence in refused("fit", *arguments)
    assert "categories: x (90)" in run("check", *arguments, "--categorical", "x").stdout


def test_types_of_parquet_decide_what_a_column_is(frame, tmp_path):
    odd = {
        "decimal": [Decimal(i % 7) for i in range(90)],
        "text": [str(3 * (i % 7)) for i in range(90)],
        "yes": pd.array([True, False] * 45, dtype="boolean"),
        "whole": pd.array([1, 2] * 45, dtype="Int64"),
    }
    frame.assign(**odd).to_parquet(tmp_path / "t.parquet")
    run(*fitting(tmp_path / "t.parquet"), "--model", tmp_path / "m.corral", "-q")
    loaded = load_model(tmp_path / "m.corral")
    table = pd.concat([frame[NAMES], pd.DataFrame(odd).astype({"decimal": float, "whole": float})], axis=1)
    expected = RodeoClassifier(random_state=0).fit(table, frame["species"])
    assert loaded.encoding_.categories == expected.encoding_.categories
    assert loaded.encoding_.categories[-3:] == [["0", "12", "15", "18", "3", "6", "9"], [False, True], None]
    assert_array_equal(loaded.model_.training.X, expected.model_.training.X)


def test_what_pandas_notes_in_parquet_is_not_read(folder, frame, tmp_path):
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata({"pandas": "{damaged"})
    pq.write_table(table, tmp_path / "t.parquet")
    run("predict", folder / "m.corral", tmp_path / "t.parquet", "--out", tmp_path / "o.csv")
    actual = pd.read_csv(tmp_path / "o.csv")["label"].tolist()
    assert actual == load_model(folder / "m.corral").predict(frame[NAMES]).tolist()


def test_out_of_memory_and_full_disks(folder, monkeypatch):
    def fail(error):
        def read_header(path):
            raise error

        monkeypatch.setattr("corral.files.model_file.read_header", read_header)
        return refused("info", folder / "m.corral")

    assert fail(MemoryError()) == "there is not enough memory."
    assert fail(OSError(28, "No space left on device", "m.corral")) == "m.corral: No space left on device."
    assert fail(ImportError("corral needs this.")) == "corral needs this."
    missing = ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
    assert fail(missing) == 'matplotlib is not installed: pip install "corral[cli]".'


def test_bad_models_and_rows(folder, frame, tmp_path):
    model, table, out = folder / "m.corral", folder / "t.csv", tmp_path / "o.csv"
    assert "there is no file" in refused("predict", tmp_path / "none", table, "--out", out)
    assert "is not a model of corral" in refused("predict", folder / "t.tsv", table, "--out", out)
    assert "is not a model of corral" in refused("info", table)
    for command in (("info", tmp_path), ("explain", model, tmp_path, "--row", 0)):
        assert refused(*command) == f"{tmp_path} is not a file."
    target = ("-t", "species", "--id", "id")
    assert "no folder" in refused("fit", table, *target, "--model", tmp_path / "none" / "m.corral")
    assert "not a file that can be replaced" in refused("fit", table, *target, "--report", tmp_path)
    assert "has no column 'colour'" in refused("predict", model, table, "--out", out, "--id", "colour")
    message = refused("predict", model, table, "--out", out, "--id", "höhe")
    assert message.startswith(f"'höhe' is a variable of {model}")
    assert "has rows 0 to 89, and no row 90" in refused("explain", model, table, "--row", 90)
    assert "--jobs must not be 0" in refused("predict", model, table, "--out", out, "--jobs", 0)
    save_model(RodeoClassifier().fit(frame[NAMES].to_numpy(), frame["species"]), tmp_path / "x.corral")
    assert "without column names" in refused("predict", tmp_path / "x.corral", table, "--out", out)
    save_model(RodeoDensity().fit(frame[NAMES]), tmp_path / "d.corral")
    assert "cannot predict labels" in refused("predict", tmp_path / "d.corral", table, "--out", out)
    assert not out.exists()


@pytest.mark.parametrize("line", ["fit", "fit {}", "fit {} --cv x", "fit {} -t y --cv 1", "fly", "--fly"])
def test_a_command_line_that_makes_no_sense(line):
    arguments = [word.format(__file__) for word in line.split()]
    message = refused(*arguments)
    assert message.endswith("--help'.")
    assert refused(*arguments, "--json") == message


def test_version_and_help():
    assert run("--version").stdout == f"corral {corral.__version__}\n"
    shown = run("--help").stdout
    assert all(words in shown for words in ("corral demo", "Exit codes", "Classify the rows of a table"))
    for command in ("check", "fit", "predict", "explain", "report", "info", "sample-size"):
        assert f"  corral {command} penguins" in run(command, "--help").stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("corral ", {"check", "fit", "predict", "explain", "report", "info", "sample-size", "demo"}),
        ("corral fit --estimator ", {"cv", "rodeo", "lspc"}),
        ("corral fit --miss", {"--missing"}),
    ],
)
def test_shell_completion(words, expected):
    answers = complete(words)
    assert {line.partition("\t")[0] for line in answers} >= expected


def complete(words):
    """Completions for bash, which are requested by the environment of a process."""
    request = {"_CORRAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code = "from corral.cli import app; app(prog_name='corral')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | request, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_completion_can_be_installed(monkeypatch):
    # Otherwise it depends on the shell that runs the tests.
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    assert "_CORRAL_COMPLETE=complete_bash" in run("--show-completion").stdout


def test_help_does_not_wait_for_the_library():
    code = "import sys\nfrom corral.cli import app\ntry: app(sys.argv[1:])\n"
    code += "finally: print(*sys.modules, file=sys.stderr)"
    for arguments in (["--help"], ["fit", "--help"], ["fit", "--no-such-option"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        loaded = set(done.stderr.splitlines()[-1].split())
        assert "typer" in loaded
        assert not loaded & {"numpy", "numba", "sklearn", "pandas", "rich"}


def test_without_the_extra():
    code = "import sys; sys.modules['typer'] = None; import corral.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == 'error: the command line needs more packages: pip install "corral[cli]"\n'


def test_rows_that_are_not_scored_are_counted(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.iloc[:3] = X.iloc[3:6].to_numpy()
    X.assign(label=y.map(["a", "b", "c"].__getitem__)).to_csv(tmp_path / "t.csv", index=False)
    output = run("fit", tmp_path / "t.csv", "-t", "label", "--estimator", "rodeo").stdout
    n_scored = len(X.assign(y=y).drop_duplicates())
    assert f"Held out: {n_scored} of 150 rows (without duplicates), each once, in 5 folds" in output

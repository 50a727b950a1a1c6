"""Categories, missing values and groups on the command line, in files of every format."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from typer.testing import CliRunner

from corral import RodeoClassifier, load_model
from corral.cli import app
from corral.evaluation.baselines import MixedNaiveBayes
from corral.evaluation.held_out import unseen_predictions
from support.cli import answered, refused, run
from support.exploring import seeds

N = 60
NAMES = ["a", "colour", "ward", "smokes"]


@pytest.fixture(scope="module")
def frame():
    """Columns of numbers, words, codes such as 01 and booleans, all with missing values; two classes."""
    rng = np.random.default_rng(5)
    y = np.repeat(["u", "v"], N // 2)
    is_v = y == "v"
    table = pd.DataFrame(
        {
            "a": np.round(rng.normal(size=N) + 1.5 * is_v, 2),
            "colour": rng.choice(["red", "green", "light blue"], N),
            "ward": np.where(rng.random(N) < 0.3 + 0.4 * is_v, "01", "1"),
            "smokes": pd.array(rng.random(N) < 0.5, dtype="boolean"),
        }
    )
    for j, name in enumerate(NAMES):
        table.loc[rng.choice(N, 4 + j, replace=False), name] = None
    return table.assign(y=y)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t", na_rep="NA")
    frame.to_csv(folder / "comma.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(folder / "t.parquet")
    frame.to_feather(folder / "t.feather")
    frame.to_excel(folder / "t.xlsx", index=False)
    fit(folder / "t.csv", "--model", folder / "m.corral")
    return folder


@pytest.fixture(scope="module")
def fitted(frame):
    """The model that Python fits to the same table."""
    return RodeoClassifier(priors="empirical", random_state=0).fit(frame[NAMES], frame["y"])


def fit(table, *options):
    return run("fit", table, "-t", "y", "--categorical", "ward", "--estimator", "rodeo", "--json", *options)


def predicted(model, table, out, *options):
    result = run("predict", model, table, "--out", out, "--json", *options)
    # Read as text: not every version of pandas reads the nearest float, as Python does.
    return pd.read_csv(out, dtype=str).filter(like="p_").map(float).to_numpy(float), result


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "comma.csv", "t.parquet", "t.feather", "t.xlsx"])
def test_every_format_gives_the_model_and_the_answers_of_python(name, folder, frame, fitted, tmp_path):
    actual = json.loads(fit(folder / name, "--model", tmp_path / "m.corral").stdout)
    assert actual["categories"] == {"colour": 3, "ward": 2, "smokes": 2}
    assert actual["missing_values"] == {"a": 4, "colour": 5, "ward": 6, "smokes": 7}
    loaded = load_model(tmp_path / "m.corral")
    assert loaded.encoding_.categories == [None, ["green", "light blue", "red"], ["01", "1"], [False, True]]
    assert_array_equal(loaded.predict_proba(frame[NAMES]), fitted.predict_proba(frame[NAMES]))
    proba, result = predicted(folder / "m.corral", folder / name, tmp_path / "o.csv")
    assert_array_equal(proba, fitted.predict_proba(frame[NAMES]))
    assert json.loads(result.stdout)["unknown_categories"] == {}


def test_unknown_categories_count_as_missing_and_are_noted(folder, frame, fitted, tmp_path):
    new = frame.astype(object).where(frame.notna(), None)
    new.loc[[3, 8, 9], "colour"] = ["black", "black", "Red"]
    new.loc[4, "smokes"] = "often"
    new.to_csv(tmp_path / "n.csv", index=False)
    proba, result = predicted(folder / "m.corral", tmp_path / "n.csv", tmp_path / "o.csv")
    assert json.loads(result.stdout)["unknown_categories"] == {"colour": 3, "smokes": 1}
    assert json.loads(result.stderr)["note"] == (
        "4 values are categories that no training row has, and count as missing: 3 of 'colour' (such as "
        "'black'), 1 of 'smokes' (such as 'often')."
    )
    incomplete = frame[NAMES].copy()
    incomplete.loc[[3, 8, 9], "colour"] = None
    incomplete.loc[4, "smokes"] = None
    assert_array_equal(proba, fitted.predict_proba(incomplete))
    result = run("explain", folder / "m.corral", tmp_path / "n.csv", "--row", 4)
    assert result.stderr == (
        "note: 1 value is a category that no training row has, and counts as missing: 1 of 'smokes' (such as "
        "'often').\n"
    )
    assert 'smokes = "often" is not in the training rows and counts as missing.' in result.stdout
    shown = [line.split("│")[1:3] for line in result.stdout.splitlines() if line.startswith("│ smokes")]
    assert [cell.strip() for cell in shown[0]] == ["smokes", "often (not in training rows)"]
    result = run("explain", folder / "m.corral", tmp_path / "n.csv", "--row", 3, "--row", 8)
    assert result.stderr.count("note: ") == 1  # a note on all rows, none on each


@pytest.mark.parametrize("value", ["true", "TRUE", "True", "1", "1.0"])
def test_truth_is_written_in_many_ways(value, folder, frame, fitted, tmp_path):
    new = frame.astype(object).assign(smokes=value)
    new.to_csv(tmp_path / "n.csv", index=False)
    proba, result = predicted(folder / "m.corral", tmp_path / "n.csv", tmp_path / "o.csv")
    assert result.stderr == ""
    assert_array_equal(proba, fitted.predict_proba(frame[NAMES].assign(smokes=True)))


def test_text_where_the_model_has_numbers_is_refused(folder, frame, tmp_path):
    new = frame.astype(object)
    new.loc[7, "a"] = "12,5x"
    new.to_csv(tmp_path / "n.csv", index=False)
    message = (
        f"{tmp_path / 'n.csv'}: column 'a' is not numeric: row 7 holds '12,5x'; correct it, or use "
        "--na-values "
    )
    message += "if it stands for a missing value."
    model, to = folder / "m.corral", tmp_path / "o.csv"
    assert refused("predict", model, tmp_path / "n.csv", "--out", to) == message
    assert refused("report", model, tmp_path / "n.csv", "--out", tmp_path / "o.html") == message
    assert refused("explain", model, tmp_path / "n.csv", "--row", 7) == message
    assert not to.exists()


def test_categories_are_as_written_in_all_parts_of_a_file(frame, monkeypatch, tmp_path):
    """The first part of a column looks like numbers, and a later one does not."""
    table = frame[["a", "y"]].assign(code=["007", "7.0"] * (N // 4) + ["x7", "7.0"] * (N // 4))
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr("corral.cli.tables.CHUNK", 10)
    arguments = ("-t", "y", "--estimator", "rodeo", "--model", tmp_path / "m.corral")
    note = run("fit", tmp_path / "t.csv", *arguments).stderr
    assert note.startswith(
        "note: column 'code' holds text in 15 of 60 rows, such as 'x7', and numbers in other rows"
    )
    loaded = load_model(tmp_path / "m.corral")
    assert loaded.encoding_.categories[1] == ["007", "7.0", "x7"]
    proba, result = predicted(tmp_path / "m.corral", tmp_path / "t.csv", tmp_path / "o.csv")
    assert_array_equal(proba, loaded.predict_proba(table[["a", "code"]]))
    assert result.stderr == ""


def test_ordered_categories_of_parquet_stay_ordered(frame, tmp_path):
    sizes = pd.CategoricalDtype(["small", "middle", "large"], ordered=True)
    table = frame[["a", "y"]].assign(size=pd.Series(["large", "small", "middle"] * (N // 3), dtype=sizes))
    table.to_parquet(tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "-t", "y", "--estimator", "rodeo", "--model", tmp_path / "m.corral")
    loaded = load_model(tmp_path / "m.corral")
    assert loaded.encoding_.categories[1] == ["small", "middle", "large"]
    assert loaded.encoding_.ordered.tolist() == [False, True]
    table.to_csv(tmp_path / "t.csv", index=False)
    proba, _ = predicted(tmp_path / "m.corral", tmp_path / "t.csv", tmp_path / "o.csv")
    assert_array_equal(proba, loaded.predict_proba(table[["a", "size"]]))


# Groups


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """Patients with five similar visits each; the diagnosis is random by patient."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(24), 5)
    X = rng.normal(size=(24, 3))[patient] + 0.05 * rng.normal(size=(120, 3))
    y = rng.permutation(np.repeat(["ill", "well"], 12))[patient]
    path = tmp_path_factory.mktemp("visits") / "v.csv"
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(patient=[f"P{i:02}" for i in patient], y=y)
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("options", [(), ("--cv", 3)])
def test_scores_are_those_of_new_groups(options, visits, tmp_path):
    fit = ("fit", visits, "-t", "y", "--estimator", "rodeo", *options)
    by_row = answered(*fit, "--drop", "patient")
    by_group = answered(*fit, "--group", "patient")
    assert by_row["scores"]["RodeoClassifier"]["accuracy"] > 0.75
    assert by_group["scores"]["RodeoClassifier"]["accuracy"] < 0.65
    assert (by_group["group"], by_group["groups"]) == ("patient", 24)
    assert by_group["variables"] == ["a", "b", "c"]


def test_a_model_of_groups_needs_no_groups_later(visits, tmp_path):
    fitted = ("fit", visits, "-t", "y", "--group", "patient", "--estimator", "rodeo")
    shown = run(*fitted, "--model", tmp_path / "m.corral", "--report", tmp_path / "r.html").stdout
    assert "rows that share 'patient' were held out together" in shown
    assert "groups of rows that are held out together: 24" in shown
    assert "in 5 folds, each once and together with its group" in (tmp_path / "r.html").read_text(
        encoding="utf-8"
    )
    assert "groups of rows that are held out together: 24" in run("info", tmp_path / "m.corral").stdout
    table = pd.read_csv(visits)
    expected = RodeoClassifier(priors="empirical", random_state=0)
    expected.fit(table[["a", "b", "c"]], table["y"], groups=table["patient"])
    table.drop(columns="patient").to_csv(tmp_path / "new.csv", index=False)
    proba, _ = predicted(tmp_path / "m.corral", tmp_path / "new.csv", tmp_path / "o.csv")
    assert_allclose(proba, expected.predict_proba(table[["a", "b", "c"]]), rtol=1e-9)
    run("report", tmp_path / "m.corral", tmp_path / "new.csv", "-t", "y")


def test_the_group_may_name_rows_as_well(visits, tmp_path):
    arguments = ("fit", visits, "-t", "y", "--id", "patient", "--group", "patient", "--estimator", "rodeo")
    assert "the id 'patient'" not in run(*arguments, "--model", tmp_path / "m.corral").stderr
    assert "P00 (row 0) is " in run("explain", tmp_path / "m.corral", visits, "--row", "P00").stdout


def test_one_group_gives_no_interval(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=60), "p": np.arange(60) // 20, "y": rng.choice(["u", "v"], 60)}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-t", "y", "--group", "p", "--estimator", "rodeo")
    shown = run(*fit, "--test-size", 0.33, "--report", tmp_path / "r.html").stdout
    assert (
        "all held-out rows are of one group, so there is no interval: use --cv, or a larger --test-size"
        in shown
    )
    assert "no interval, since all rows are of one group" in (tmp_path / "r.html").read_text(encoding="utf-8")
    brief = run(*fit, "--test-size", 0.33, "-q").stdout
    assert ", no interval, since all rows are of one group, held out 20 of 60 rows" in brief
    scores = answered(*fit, "--test-size", 0.33)["scores"]
    assert all(set(each["intervals"].values()) == {None} for each in scores.values())
    assert "3 groups were held out, and intervals are for new groups" in run(*fit, "--cv", 3).stdout


# Baselines and new rows


def test_naive_bayes_against_plain_loops(frame):
    X, y = frame[NAMES][:50].copy(), frame["y"].to_numpy()[:50]  # classes of unequal size
    for name in ("colour", "ward", "smokes"):
        X[name] = X[name].astype("category")
    proba = MixedNaiveBayes().fit(X, y).predict_proba(X)
    a = X["a"].fillna(X["a"].median()).to_numpy()
    for i in range(0, 50, 7):
        joint = []
        for label in ("u", "v"):
            own = y == label
            variance = (own.sum() * (a[own].var() + 1e-9 * a.var()) + a.var()) / (own.sum() + 1)
            likelihood = own.mean() * norm.pdf(a[i], a[own].mean(), np.sqrt(variance))
            for name in ("colour", "ward", "smokes"):
                column = X[name].astype(object).where(X[name].notna(), "missing").astype(str)
                n_levels = X[name].nunique() + 1
                likelihood *= (np.sum(column[own] == column[i]) + 1) / (own.sum() + n_levels)
            joint.append(likelihood)
        assert_allclose(proba[i], np.array(joint) / sum(joint), rtol=1e-8)


def test_new_rows_of_a_mixed_table_differ_from_training_rows(frame, fitted):
    table = frame[NAMES].copy()
    assert unseen_predictions(fitted, table, frame["y"].to_numpy()) is None
    row = table["a"].idxmax()
    table.loc[row, "colour"] = {"red": "green", "green": "red"}.get(table.loc[row, "colour"], "red")
    actual = unseen_predictions(fitted, table, frame["y"].to_numpy())
    assert actual.truth.tolist() == [frame["y"][row]]
    table.loc[row, "colour"] = None if pd.notna(frame["colour"][row]) else "red"
    assert len(unseen_predictions(fitted, table, frame["y"].to_numpy()).truth) == 1
    # A category that no training row has counts as missing; the row still equals no training row.
    row = frame.index[frame["colour"].isna()][0]
    table = frame[NAMES].copy()
    table.loc[row, "colour"] = "ultraviolet"
    with pytest.warns(UserWarning, match="no training row has"):
        actual = unseen_predictions(fitted, table, frame["y"].to_numpy())
    assert actual.truth.tolist() == [frame["y"][row]]


# Hostile tables: a fit or one sentence, never a traceback, and always valid probabilities.


def hostile_columns(rng, y):
    n = len(y)
    number = np.round(rng.normal(size=n), 2).astype(object)
    return [
        number,
        np.full(n, ""),
        np.full(n, "same"),
        np.full(n, 3),
        np.where(rng.random(n) < 0.9, "", number),
        np.where(y == "u", "", number),  # missing values in one class only
        np.where(y == "u", "only here", ""),
        np.where(rng.random(n) < 0.05, "oops", number),
        np.array([f"t{i}" for i in range(n)]),
        rng.choice(["1", "x", "", "2.5", "True"], n),
        rng.choice(["True", "false", "NA"], n),
        rng.choice(["é", "e\u0301", "=1+1", "a;b", " "], n),
    ]


@pytest.mark.hypothesis
@pytest.mark.parametrize("seed", seeds(12))
def test_hostile_tables(seed, tmp_path):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    y = rng.choice(["u", "v", "w"][: rng.integers(2, 4)], n)
    columns = [rng.choice(np.array(hostile_columns(rng, y), dtype=object)) for _ in range(rng.integers(1, 5))]
    table = pd.DataFrame({f"c{j}": column for j, column in enumerate(columns)})
    if rng.random() < 0.3:
        table.loc[rng.integers(n)] = ""  # a row without any value
    table.assign(y=y, g=rng.integers(0, 6, n)).to_csv(tmp_path / "t.csv", index=False)
    group = ("--group", "g") if seed % 3 == 0 else ("--drop", "g")
    model, out = tmp_path / "m.corral", tmp_path / "o.csv"
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "--estimator", "rodeo", "--json", *group)
    message = CliRunner().invoke(app, [str(argument) for argument in (*arguments, "--model", model)])
    assert message.exit_code in (0, 2), message.exception
    notes = [json.loads(line) for line in message.stderr.splitlines()]
    assert not [line for line in notes if "encountered" in line.get("note", "")]
    if message.exit_code:
        assert list(notes[-1]) == ["error"]
        assert not model.exists()
        return
    json.loads(message.stdout)
    proba, _ = predicted(model, tmp_path / "t.csv", out)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
    run("explain", model, tmp_path / "t.csv", "--row", 0)

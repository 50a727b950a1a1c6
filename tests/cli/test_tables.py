"""Tests of odd tables: training rows, labels, empty columns, control characters and formulas."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import binomtest

from corral import RodeoClassifier, load_model, save_model
from corral.cli.shared import visible
from corral.cli.writing import may_be_formula, quoted
from corral.evaluation.held_out import unseen_predictions
from support.cli import answered, notes_of, refused, run

# Rows that are equal to training rows


@pytest.fixture(scope="module")
def measured():
    """Two classes, and columns on very different scales, one of them often zero."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    X = rng.normal(size=(80, 4)) + (y == "b")[:, np.newaxis]
    X *= np.multiply([1.0, 100.0, 2e5, 1.0], [[1, 1, 1, i % 3 > 0] for i in range(80)])
    return X, y, RodeoClassifier(bandwidth="class").fit(frame_of(X), y)


@pytest.fixture(scope="module")
def new():
    """Rows without a class."""
    return np.random.default_rng(1).normal(size=(30, 4)) * [1.0, 100.0, 2e5, 1.0]


def frame_of(X):
    return pd.DataFrame(X, columns=["p", "q", "r", "s"])


def test_among_new_rows_those_equal_to_training_rows_are_found(measured, new):
    X, y, fitted = measured
    actual = unseen_predictions(fitted, frame_of(np.vstack([X, new])), np.append(y, ["a"] * 30))
    assert_array_equal(actual.proba, fitted.predict_proba(frame_of(new)))
    assert (actual.truth.tolist(), actual.claim) == (["a"] * 30, "equal to no training row")


def test_a_training_row_that_was_changed_in_its_last_digit_counts_as_new(measured):
    X, y, fitted = measured
    assert unseen_predictions(fitted, frame_of(X), y) is None
    assert unseen_predictions(fitted, frame_of(-np.where(X == 0.0, X, -X)), y) is None  # -0.0 equals 0.0
    changed = X.copy()
    changed[3, 0] = np.nextafter(X[3, 0], np.inf)
    assert unseen_predictions(fitted, frame_of(changed), y).truth.tolist() == [y[3]]


def test_a_report_says_whether_its_rows_are_new(measured, new, tmp_path):
    X, y, fitted = measured
    model, table, page = tmp_path / "m.corral", tmp_path / "t.csv", tmp_path / "r.html"
    save_model(fitted, model)
    frame_of(X).assign(y=y).to_csv(table, index=False)
    report = ("report", model, table, "--target", "y", "--out", page)
    run(*report)
    text = page.read_text(encoding="utf-8")
    assert "of the 80 rows given get the right label. If the model was fitted to these rows, expect" in text
    assert "compared in every digit" not in text
    assert "(95% interval" not in text  # the summary has it for new rows only

    frame_of(new).assign(y="a").to_csv(table, index=False)
    page.unlink()
    result = run(*report, "--json")
    assert (json.loads(result.stdout)["held_out"], result.stderr) == (30, "")
    text = page.read_text(encoding="utf-8")
    assert "Of 30 rows equal to no training row, " in text
    assert "Rows are compared in every digit, so a training row that was rounded" in text
    assert "took no part" not in text


# Labels


def table_of(labels, path):
    """A table with two numbers and a label in each row; labels are written as they are."""
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.6f},{b:.6f},{label}" for (a, b), label in zip(rng.normal(size=(60, 2)), labels, strict=True)
    ]
    path.write_text("\n".join(["a,b,y", *rows]) + "\n", encoding="utf-8")
    return path


def fitted_to(labels, folder, *options):
    """Rows by class, notes, and the model."""
    table, model = table_of(labels, folder / "t.csv"), folder / "m.corral"
    arguments = ("fit", table, "-t", "y", "--estimator", "rodeo", "--json", "--model", model)
    result = run(*arguments, *options)
    notes = [
        note for note in notes_of(result) if "most frequent class" not in note
    ]  # there is nothing to learn
    return json.loads(result.stdout)["rows_by_class"], notes, load_model(model)


@pytest.mark.parametrize(
    ("labels", "kind", "alike"),
    [
        (["1", "2", "-3"], "i", None),
        (["0.0", "1.0", "-20.0"], "f", None),
        (["True", "False"], "b", None),
        (["1", "01", "2"], "U", "('01', '1')"),
        (["01", "02"], "U", None),
        (["1", "1.0", "2"], "U", "('1', '1.0')"),
        (["1", "1.5"], "U", None),
        (["0.0", "-0.0"], "U", "('-0.0', '0.0')"),
        (["1e3", "2e3"], "U", None),
        (["1", "+1"], "U", "('+1', '1')"),
        (["inf", "1.0"], "U", None),
        (["12345678901234567890", "12345678901234567891"], "U", "12345678901234567891"),
        (["0.1", "0.10000000000000001"], "U", "('0.1', '0.10000000000000001')"),
        (["True", "False", "TRUE"], "U", "('TRUE', 'True')"),
        (["ant", "Ant", "bee", " bee"], "U", "(' bee', 'bee'), ('Ant', 'ant')"),
        (["ant", "ant "], "U", "('ant', 'ant ')"),
        (["ant", "ant  ", "bee"], "U", "('ant', 'ant  ')"),
    ],
)
def test_labels_stay_as_they_are_written(labels, kind, alike, tmp_path):
    each = (labels * 60)[:60]
    by_class, notes, model = fitted_to(each, tmp_path)
    assert by_class == {label: each.count(label) for label in labels}
    assert model.classes_.dtype.kind == kind
    if alike is None:
        assert notes == []
    else:
        (note,) = notes
        assert note.startswith(
            "some labels differ only by case, spaces or the way a number is written, and count as "
        )
        assert alike in note


@pytest.mark.parametrize("name", ["None", "NA", "nan", "null", "N/A", " "])
def test_a_class_may_be_called_like_a_missing_value(name, tmp_path):
    labels = ["u", "v", name] * 20
    by_class, notes, _ = fitted_to(labels, tmp_path)
    assert by_class == {"u": 20, "v": 20, name: 20}
    assert notes == [
        f"the label {name!r}, in 20 of 60 rows, counts as a class; if it stands for a missing value, use "
        f"--na-values {name!r}."
    ]
    options = ("--na-values", name, "--missing", "drop-rows")
    by_class, notes, _ = fitted_to(labels, tmp_path, *options)
    assert by_class == {"u": 20, "v": 20}
    assert [note[:22] for note in notes if "will be replaced" not in note] == ["left out 20 of 60 rows"]


def test_classes_of_parquet_called_like_a_missing_value(tmp_path):
    rng = np.random.default_rng(0)
    labels = [*["None", "NA"] * 20, None]
    table = pd.DataFrame(rng.normal(size=(41, 2)), columns=["a", "b"]).assign(y=labels)
    table.to_parquet(tmp_path / "t.parquet")
    arguments = ("fit", tmp_path / "t.parquet", "-t", "y", "--estimator", "rodeo")
    assert "the target 'y' is missing in 1 row, first in row 40" in refused(*arguments)
    assert answered(*arguments, "--missing", "drop-rows")["rows_by_class"] == {"NA": 20, "None": 20}


def test_a_label_that_the_model_does_not_know(tmp_path):
    fitted_to(["1", "2"] * 30, tmp_path)
    report = ("report", tmp_path / "m.corral", tmp_path / "t.csv", "-t", "y")
    table_of(["1", "02"] * 30, tmp_path / "t.csv")
    assert refused(*report).endswith(
        "row 1 has the class '02', which is not a class of the model: the model has 1, 2."
    )
    table_of(["1", "NA"] * 30, tmp_path / "t.csv")
    assert refused(*report).endswith("the model has 1, 2; if it stands for a missing value, use --na-values.")
    assert answered(*report, "--na-values", "NA", "--missing", "drop-rows")["rows"] == 30


# Empty columns


def test_a_column_without_values_is_left_out(tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.corral"
    fitted_to(["u", "v"] * 30, tmp_path)
    complete = pd.read_csv(table)
    complete.assign(c=np.nan).to_csv(table, index=False)
    fit = ("fit", table, "-t", "y", "--estimator", "rodeo", "--json")
    for options in ((), ("--missing", "drop-rows")):
        result = run(*fit, *options)
        first = json.loads(result.stderr.splitlines()[0])["note"]
        assert first == "left out columns that are empty in all rows: 'c'."
        assert json.loads(result.stdout)["rows"] == 60

    # A model predicts without a variable and notes it; the target cannot be left out.
    complete.assign(b=np.nan).to_csv(table, index=False)
    message = run("predict", model, table, "--out", tmp_path / "o.csv").stderr
    assert message == "note: column 'b' is empty in all rows, so labels are predicted without it.\n"
    message = refused("report", model, table, "--missing", "drop-rows")
    assert message == f"{table} has no row without missing values: 'b' is empty."
    complete.assign(y="").to_csv(table, index=False)
    assert refused(*fit) == f"{table}: the target 'y' is empty in all rows."
    message = refused(*fit, "--missing", "drop-rows")
    assert message == f"{table} has no row without missing values: 'y' is empty."


# Accuracy of few rows


def test_an_accuracy_comes_with_its_interval_by_wilson(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(["u", "v"], 50)
    numbers = rng.normal(size=100) + 1000.0 * (labels == "v")
    pd.DataFrame({"a": numbers, "y": labels}).to_csv(tmp_path / "t.csv", index=False)
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "--estimator", "rodeo", "--test-size", 0.25)
    scores = answered(*arguments)["scores"]
    assert scores["RodeoClassifier"]["accuracy"] == 1.0  # of 25 rows
    for each in scores.values():
        assert "standard_error" not in each
        expected = binomtest(round(25 * each["accuracy"]), 25).proportion_ci(method="wilson")
        assert each["intervals"]["accuracy"] == pytest.approx(list(expected), abs=1e-6)
    shown = run(*arguments, "--report", tmp_path / "r.html").stdout
    assert "1.000 (0.867 to 1.000)" in shown
    assert "±" not in shown
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "100.0% get the right label (95% interval 86.7% to 100.0%)" in page


# Control characters in text


HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202e"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A table and a model with such names of file, columns and classes."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    names = [f"{HOSTILE}{j}" for j in range(3)]
    labels = np.repeat([f"u{HOSTILE}", f"v{HOSTILE}"], 30)
    X = rng.normal(size=(60, 3)) + (labels == labels[-1])[:, np.newaxis]
    table = folder / f"{HOSTILE}.csv"
    pd.DataFrame(X, columns=names).assign(**{f"y{HOSTILE}": labels}).to_csv(table, index=False)
    model = folder / f"{HOSTILE}.corral"
    save_model(RodeoClassifier().fit(pd.DataFrame(X, columns=names), labels), model)
    return table, model, f"y{HOSTILE}"


def test_names_cannot_control_terminals(hostile, tmp_path, monkeypatch):
    table, model, target = hostile
    out = tmp_path / f"{HOSTILE}.csv"
    fit = ("fit", table, "-t", target, "--estimator", "rodeo", "--model", tmp_path / f"{HOSTILE}.m")
    commands = [
        (*fit, "--report", tmp_path / f"{HOSTILE}.html"),
        ("explain", model, table, "--row", 0),
        ("explain", model, table, "--row", 0, "--quiet"),
        ("info", model),
        ("predict", model, table, "--out", out),
        ("report", model, table, "-t", target),
        ("sample-size", table, "-t", target, "--tolerance", 0.5),
    ]
    faults = [
        ("fit", table, "-t", HOSTILE),
        ("fit", f"{HOSTILE}.csv", "-t", target),
        ("explain", model, table, "--row", 0, "--against", HOSTILE),
        ("info", table),
        (HOSTILE,),
    ]
    for bars in (0, 1):
        monkeypatch.setattr("corral.cli.console.Output.bars", bars)
        results = [run(*command) for command in commands] + [run(*fault, code=2) for fault in faults]
        for result in results:
            for stream in (result.stdout, result.stderr):
                assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", stream), stream
            assert r"\x1b]0;owned\x07\x1b[31mred\x9b2J\u202e" in result.output


def test_json_has_the_names_themselves(hostile):
    _, model, _ = hostile
    result = run("info", model, "--json")
    assert json.loads(result.stdout)["variables"] == [f"{HOSTILE}{j}" for j in range(3)]
    assert result.stdout.isascii()


def test_names_are_no_markup(tmp_path):
    fitted = RodeoClassifier().fit(np.arange(20.0).reshape(20, 1), np.repeat([":apple:", "[b]"], 10))
    save_model(fitted, tmp_path / "m.corral")
    shown = run("info", tmp_path / "m.corral").stdout
    assert ":apple:" in shown
    assert "[b]" in shown


@given(st.text())
def test_visible_text_can_be_printed(text):
    shown = visible(text)
    assert all(each.isprintable() or each.isspace() for each in shown)
    assert "\n" not in shown
    assert shown.encode().decode() == shown  # halves of characters would fail
    if text.isprintable():
        assert shown == text


# Formulas in text


FORMULA = "=cmd|' /C calc'!A0"


@pytest.mark.parametrize(
    "text", [FORMULA, "+1+1", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1+1", "+49 170 1234", "--", "=1"]
)
def test_what_may_be_a_formula(text):
    assert may_be_formula(text)
    assert quoted(text) == "'" + text
    assert not may_be_formula(quoted(text))


@pytest.mark.parametrize("value", ["", "-", "-1.5", "+2", "-1e-3", "a=1", "'=1", "0001", -1.5, None])
def test_what_is_no_formula(value):
    assert not may_be_formula(value)
    assert quoted(value) is value


@pytest.fixture(scope="module")
def named_by_formulas(tmp_path_factory):
    """A table and models in which an id, the name of a column of ids and a class are formulas."""
    folder = tmp_path_factory.mktemp("formulas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    labels = np.repeat(["@u", "v"], 20)
    save_model(RodeoClassifier().fit(X, labels), folder / "formula.corral")
    save_model(RodeoClassifier().fit(X, np.repeat([-1, 1], 20)), folder / "numbers.corral")
    ids = [f"r{i}" for i in range(39)]
    X.assign(id=[*ids, FORMULA], number=-X["a"], **{"=x": "u"}).to_csv(folder / "t.csv", index=False)
    return folder


def predicted(folder, model, out, *options):
    return run("predict", folder / model, folder / "t.csv", "--out", out, "--json", *options)


@pytest.mark.parametrize(
    ("model", "kept", "text"),
    [("numbers.corral", "id", FORMULA), ("numbers.corral", "=x", "=x"), ("formula.corral", "number", "@u")],
)
def test_formulas_are_mentioned_once(model, kept, text, named_by_formulas, tmp_path, monkeypatch):
    monkeypatch.setattr("corral.cli.tables.CHUNK", 7)
    out = tmp_path / "o.csv"
    assert notes_of(predicted(named_by_formulas, model, out, "--id", kept)) == [
        f"{out} contains text that a spreadsheet may run as a formula, such as {text!r}; --quote-formulas "
        "puts an apostrophe before such text."
    ]
    plain = pd.read_csv(out, dtype=str)
    out.unlink()
    result = predicted(named_by_formulas, model, out, "--id", kept, "--quote-formulas")
    safe = pd.read_csv(out, dtype=str)
    assert result.stderr == ""
    assert json.loads(result.stdout)["columns"] == safe.columns.tolist()
    assert not safe.map(may_be_formula).any(axis=None)
    assert not any(map(may_be_formula, safe.columns))
    assert safe.map(lambda cell: cell.removeprefix("'")).to_numpy().tolist() == plain.to_numpy().tolist()
    assert safe.to_numpy().tolist() != plain.to_numpy().tolist() or kept == "=x"


def test_numbers_and_parquet_hold_no_formulas(named_by_formulas, tmp_path):
    message = predicted(named_by_formulas, "numbers.corral", tmp_path / "o.csv", "--id", "number").stderr
    out = tmp_path / "o.parquet"
    message += predicted(named_by_formulas, "formula.corral", out, "--id", "id", "--quote-formulas").stderr
    assert message == ""
    assert pd.read_parquet(out)["id"].iloc[-1] == FORMULA

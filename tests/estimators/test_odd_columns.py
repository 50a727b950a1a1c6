"""Columns without any value in training, cells that stand for none, very long names and large numbers."""

import subprocess
import sys
from datetime import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from corral import (
    CorralClassifier,
    HeldOut,
    LSPClassifier,
    RodeoClassifier,
    RodeoDensity,
    UnknownCategoriesWarning,
    check_table,
    estimate_sample_sizes,
    load_model,
    save_model,
    write_report,
)
from corral.cli.shared import visible
from support.cli import run
from support.report_data import data_of

EMPTY = {
    "object": pd.Series([None] * 60, dtype=object),
    "str": pd.Series([None] * 60, dtype="str"),
    "category": pd.Series([None] * 60, dtype="category"),
    "float": pd.Series([np.nan] * 60),
    "date": pd.Series([pd.NaT] * 60),
}
LATER = ["north", 1.0, True, pd.Timestamp("2020-01-01"), pd.Series([[1]] * 60)]
ignored = pytest.warns(UserWarning, match="no training row has a value of 'site', which is ignored")
warns_of_unknown = pytest.warns(UserWarning, match="count as missing")


@pytest.fixture
def rows():
    """Rows of two classes, and their labels."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"]), np.arange(60) % 2


@pytest.mark.parametrize("kind", EMPTY)
def test_a_column_empty_in_training_may_hold_anything_later(kind, rows):
    X, y = rows
    with ignored:
        classifier = CorralClassifier(random_state=0).fit(X.assign(site=EMPTY[kind]), y)
    expected = classifier.predict_proba(X.assign(site=EMPTY[kind]))
    for value in LATER:
        with warns_of_unknown:
            assert_array_equal(classifier.predict_proba(X.assign(site=value)), expected)


@pytest.mark.parametrize("method", [RodeoClassifier.predict, RodeoDensity.score_samples])
def test_other_estimators_and_frames_ignore_it_as_well(method, rows):
    X, y = pl.from_pandas(rows[0]), rows[1]
    estimator = RodeoClassifier() if method is RodeoClassifier.predict else RodeoDensity()
    with ignored:
        estimator.fit(X.with_columns(site=pl.lit(None)), y)
    with warns_of_unknown:
        method(estimator, X.with_columns(site=pl.lit("north")))


def test_a_file_knows_which_columns_were_empty(rows, tmp_path):
    X, y = rows
    with ignored:
        save_model(CorralClassifier(random_state=0).fit(X.assign(site=np.nan), y), tmp_path / "m.corral")
    with warns_of_unknown:
        load_model(tmp_path / "m.corral").predict(X.assign(site="north"))
    X.assign(site="north").to_csv(tmp_path / "new.csv", index=False)
    message = run(
        "predict", tmp_path / "m.corral", tmp_path / "new.csv", "--out", tmp_path / "labels.csv"
    ).stderr
    assert "60 values are categories that no training row has" in message


@pytest.mark.filterwarnings("ignore::corral.NearDuplicatesWarning", "ignore:no training row")
@pytest.mark.parametrize("kind", ["text", "number"])
def test_further_rows_may_fill_an_empty_column(kind, rows):
    X, y = rows
    first = X.assign(site=None)
    second = -X.assign(site=np.nan)
    second["site"] = np.where(y == 1, "n", "s") if kind == "text" else np.arange(60.0)
    parts = CorralClassifier(random_state=0).fit(first, y).partial_fit(second, y)
    at_once = CorralClassifier(random_state=0).fit(pd.concat([first, second]), np.append(y, y))
    assert_array_equal(parts.predict_proba(second), at_once.predict_proba(second))


def test_a_column_that_is_empty_without_rows_left_out_is_left_out(rows, tmp_path):
    X, y = rows
    table = X.assign(site=pd.Series([1.0] * 3 + [np.nan] * 57), label=pd.Series(y).where(X.index >= 3))
    table.to_csv(tmp_path / "table.csv", index=False)
    X.assign(site="north").to_csv(tmp_path / "new.csv", index=False)
    options = ("--missing", "drop-unlabelled", "--model", tmp_path / "m.corral")
    message = run("fit", tmp_path / "table.csv", "-t", "label", *options).stderr
    assert "left out columns that are empty in all rows: 'site'" in message
    run("predict", tmp_path / "m.corral", tmp_path / "new.csv", "--out", tmp_path / "labels.csv")


@pytest.mark.parametrize("missing_value", [None, np.nan, pd.NA, pd.NaT], ids=str)
def test_what_stands_for_no_value_in_an_array_of_objects_is_missing(missing_value, rows):
    X, y = rows
    cells = np.array(X, dtype=object)
    cells[0, 0] = missing_value
    expected = np.array(X)
    expected[0, 0] = np.nan
    fitted = [CorralClassifier(random_state=0).fit(table, y) for table in (cells, expected)]
    assert_array_equal(fitted[0].predict_proba(cells), fitted[1].predict_proba(expected))


def test_columns_stored_sparsely_are_columns(rows):
    X, y = rows
    sparse = X.astype(pd.SparseDtype(float))
    fitted = [CorralClassifier(random_state=0).fit(table, y) for table in (sparse, X)]
    assert_array_equal(fitted[0].predict_proba(sparse), fitted[1].predict_proba(X))


def test_tables_of_other_libraries_give_the_numbers_of_pandas():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    mass = pd.array(rng.integers(0, 50, 60) + 20 * y, dtype="Int64")
    mass[::9] = None
    colours = pd.Categorical(rng.choice(["red", "blue", "amber"], 60), ["red", "blue", "amber"])
    X = pd.DataFrame({"length": rng.normal(size=60) + y, "mass": mass, "colour": colours, "wet": y == 0})
    X["site"] = pd.Series(np.where(rng.random(60) < 0.5, "n", None), dtype="str")
    arrow = pa.Table.from_pandas(X, preserve_index=False)
    tables = {"pandas": X, "pyarrow": arrow, "polars": pl.from_arrow(arrow)}
    outputs = {name: _everything_about(table, y) for name, table in tables.items()}
    for name in ("pyarrow", "polars"):
        for value, expected in zip(outputs[name][0], outputs["pandas"][0], strict=True):
            assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
        assert outputs[name][1] == outputs["pandas"][1]


def _everything_about(table, y):
    """What estimators, `check_table` and `estimate_sample_sizes` say of a table."""
    model = RodeoClassifier().fit(table, y)
    curve = estimate_sample_sizes(table, y, method="curve", random_state=0)
    length, mass = (
        table[[name]] if hasattr(table, "iloc") else table.select([name]) for name in ("length", "mass")
    )
    bound = estimate_sample_sizes(
        length, y, method="bound", tolerance=5.0, initial_size=5, test_size=5, step=5, random_state=0
    )
    with pytest.raises(ValueError, match="Column 'mass' has missing values"):
        LSPClassifier().fit(mass, y)
    numbers = [
        model.predict_proba(table),
        model.explain(table).evidence,
        HeldOut.of_folds(RodeoClassifier(), table, y, cv=2).proba,
        RodeoDensity().fit(table).score_samples(table),
    ]
    findings = [str(finding) for finding in check_table(table, ids=["site"])]
    return numbers, [*findings, str(curve), str(bound), *model.feature_names_in_]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_what_a_frame_cannot_hold_is_named_whatever_its_library(library, rows):
    X, y = rows
    good, bad = (library({"a": X["a"].to_list(), "when": when}) for when in (y, [time(12)] * 60))
    with pytest.raises((TypeError, ValueError), match="Column 'when' holds "):
        CorralClassifier().fit(bad, y)
    fitted = RodeoClassifier().fit(good, y)
    with pytest.raises((TypeError, ValueError), match="Column 'when' holds "):
        fitted.predict(bad)


def test_a_number_too_large_is_reported(rows, tmp_path):
    X, y = rows
    table = X.astype(str).assign(label=y)
    table.loc[7, "a"] = "1e400"
    table.to_csv(tmp_path / "table.csv", index=False)
    message = " ".join(run("check", tmp_path / "table.csv", "-t", "label").stdout.split())
    assert (
        "row 7 holds 'inf': correct the text, or replace it with NaN if it stands for a missing value "
        "(--na-values inf)." in message
    )
    for text in ("inf", "1e400"):
        outputs = run("check", tmp_path / "table.csv", "-t", "label", "--na-values", text).stdout
        assert "0 findings" in outputs


def test_very_long_names_are_shortened_when_they_are_printed(rows, tmp_path):
    X, y = rows
    X.assign(label=np.where(y == 1, "q" * 5000, "x")).to_csv(tmp_path / "table.csv", index=False)
    run("fit", tmp_path / "table.csv", "-t", "label", "--model", tmp_path / "m.corral")
    message = run("explain", tmp_path / "m.corral", tmp_path / "table.csv", "--row", "1").stdout
    assert "q" * 50 in message
    assert "q" * 100 not in message.replace("\n", "")
    assert len(visible("two words " * 500_000)) < 3000
    assert visible("/a" * 100) == "/a" * 100


@pytest.mark.parametrize("estimator", [RodeoClassifier(), CorralClassifier(random_state=0)])
def test_names_that_are_numbers_are_kept(estimator, rows, tmp_path):
    table, y = rows
    table = pd.DataFrame({2019: table["a"], 2020: table["b"]})
    model = estimator.fit(table, y)
    assert model.describe().feature_names == ["2019", "2020"]
    assert model.explain(table[:1]).feature_names == ["2019", "2020"]
    save_model(model, tmp_path / "model.corral")
    assert load_model(tmp_path / "model.corral").describe().feature_names == ["2019", "2020"]
    # A count from 0 is no name, and the names of an earlier table are removed.
    for nameless in (table.set_axis([0, 1], axis=1), table.to_numpy()):
        assert estimator.fit(nameless, y).describe().feature_names == ["x0", "x1"]


def test_what_is_no_table_is_named(rows):
    X, y = rows
    fitted = CorralClassifier(random_state=0).fit(X, y)
    for series in (X["a"], X.iloc[0], pl.Series(X["a"].to_list())):
        with pytest.raises(ValueError, match="X must be a table, got a Series"):
            CorralClassifier().fit(series, y)
        with pytest.raises(ValueError, match=r"X\.iloc\[\[0\]\]"):
            fitted.predict(series)
    with pytest.raises(TypeError, match=r"X is sparse, .* before the encoding"):
        CorralClassifier().fit(csr_array(X[["a"]].to_numpy()), y)
    with pytest.raises(ValueError, match=r"CorralClassifier.* requires y to be passed"):
        CorralClassifier().fit(X)
    with pytest.raises(TypeError, match=r"Column 'd' holds a list in row 0, '\[1, 2\]'.*split the column"):
        CorralClassifier().fit(X.assign(d=[[1, 2]] * len(X)), y)
    X.loc[4, "a"] = np.inf
    with pytest.raises(ValueError, match="in row 4: replace it by a number, or by NaN for a missing value"):
        CorralClassifier().fit(X, y)


def test_one_row_per_class_is_told():
    with pytest.warns(UserWarning, match="each class has one row"):
        CorralClassifier(random_state=0).fit([[0.0], [1.0]], ["a", "b"])


@pytest.mark.parametrize(
    ("missing", "code", "extra"),
    [
        ("pandas", "from corral.estimators.validation import import_pandas; import_pandas()", "corral[cli]"),
        ("dask", "import corral.dask", "corral[dask]"),
    ],
)
def test_an_extra_that_is_missing_is_named(missing, code, extra):
    blocked = f"import sys; sys.modules[{missing!r}] = None; {code}"
    ended = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f'pip install "{extra}"' in ended.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def coloured():
    """A classifier of rows with a size and a colour, and its training rows."""
    rng = np.random.default_rng(0)
    y = np.repeat(["p", "q"], 60)
    is_red = rng.random(120) < np.where(y == "q", 0.8, 0.4)
    X = pd.DataFrame({"size": rng.normal(size=120) + (y == "q"), "colour": np.where(is_red, "red", "blue")})
    return CorralClassifier(random_state=0).fit(X, y), X, y


def explain_black(coloured):
    classifier, X, _ = coloured
    with pytest.warns(UnknownCategoriesWarning, match="'black'"):
        return classifier.explain(X[:2].assign(colour=["black", "red"]))


def test_explanations_show_categories_that_no_training_row_has(coloured):
    explanation = explain_black(coloured)
    assert explanation.values[:, 1].tolist() == ["black", "red"]
    assert explanation.unknown.tolist() == [[False, True], [False, False]]
    assert explanation.evidence[0, 1] == 0.0
    frame = explanation.to_frame()
    assert frame.loc[frame["unknown"], ["variable", "value"]].to_numpy().tolist() == [["colour", "black"]]
    sentence = 'colour = "black" is not in the training rows and counts as missing'
    assert repr(explanation).count(sentence) == 1
    assert explanation.sentences(0)["reasons"].endswith(f" {sentence}.")
    assert "counts as missing" not in explanation.sentences(1)["reasons"]


def test_rows_with_unknown_categories_equal_no_training_row(coloured):
    _, X, y = coloured
    missing = CorralClassifier(random_state=0).fit(X.assign(colour=X["colour"].where(X.index > 0)), y)
    assert missing.explain(X[:1].assign(colour=None)).in_training[0]
    with pytest.warns(UnknownCategoriesWarning):
        explanation = missing.explain(X[:1].assign(colour="black"))
    assert not explanation.in_training[0]
    assert not explanation.equal.any()


def test_reports_show_categories_that_no_training_row_has(coloured, tmp_path):
    classifier, X, y = coloured
    with pytest.warns(UnknownCategoriesWarning):
        write_report(classifier, X[:2].assign(colour=["black", "red"]), y[:2], tmp_path / "r.html")
    data = data_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    black, red = data["rows"]
    assert black["values"][1] == "black"
    assert (black["unknown"], red["unknown"]) == ([1], [])
    assert "counts as missing" in black["words"]["reasons"]


def test_numbers_of_an_empty_column_are_shown_as_unknown(rows):
    X, y = rows
    with ignored:
        classifier = CorralClassifier(random_state=0).fit(X.assign(site=np.nan), y)
    with pytest.warns(UnknownCategoriesWarning, match=r"1 of 'site' \(such as '3.5'\)"):
        explanation = classifier.explain(X[:1].assign(site=3.5))
    assert explanation.values[0, -1] == "3.5"
    assert explanation.unknown[0].tolist() == [False] * X.shape[1] + [True]


def test_a_training_row_is_counted_once_among_the_rows_of_its_class(coloured):
    classifier, X, y = coloured
    explanation = classifier.explain(X)
    own = explanation.nearest == y
    n = 60
    np.testing.assert_allclose(explanation.typical_share[own] * n, explanation.typicality[own] * (n + 1) - 1)
    assert (explanation.typical_share >= 1 / n).all()
    assert f"{explanation.typical_share[0]:.0%} of the training rows of" in explanation.sentences(0)["place"]
    new = classifier.explain(X[:5].assign(size=X["size"] + 0.01))
    assert_array_equal(new.typical_share, new.typicality)

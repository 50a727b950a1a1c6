"""Pipelines that end in one of our estimators: explanations, displays, reports and model files of them."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

from corral import (
    BandwidthDisplay,
    CorralClassifier,
    ExplanationDisplay,
    LSPClassifier,
    MarkerSelector,
    RelevanceDisplay,
    RodeoClassifier,
    RodeoDensity,
    RodeoPathDisplay,
    describe,
    explain,
    load_model,
    save_model,
    write_report,
)
from support.report_data import data_of

NUMBERS = ["length", "width", "weight"]


def quick():
    return RodeoClassifier(bandwidth="class")


@pytest.fixture(scope="module")
def table():
    """Two classes that differ in length and colour; some values are missing."""
    rng = np.random.default_rng(0)
    n = 80
    y = np.repeat(["left", "right"], n // 2)
    is_right = y == "right"
    frame = pd.DataFrame(
        {
            "length": rng.normal(np.where(is_right, 3.0, 0.0)),
            "colour": np.where(rng.uniform(size=n) < 0.8, np.where(is_right, "red", "blue"), "green"),
            "width": rng.normal(size=n),
            "shape": rng.choice(["round", "square"], n),
            "weight": rng.normal(50.0, 5.0, n),
        },
        index=[f"row {i}" for i in range(n)],
    )
    frame.loc[rng.uniform(size=n) < 0.1, "width"] = np.nan
    frame.loc[rng.uniform(size=n) < 0.1, "shape"] = np.nan
    return frame, y


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def encoded(**options):
    """Columns filled, scaled and encoded, as tables were before estimators took them as they are."""
    text_steps = Pipeline(
        [
            ("fill", SimpleImputer(strategy="constant", fill_value="none")),
            ("encode", OneHotEncoder(handle_unknown="ignore")),
        ]
    )
    all_numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return ColumnTransformer(
        [("numbers", all_numbers, NUMBERS), ("text", text_steps, ["colour", "shape"])], **options
    )


# Names and values


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_explains_as_the_last_step_does_with_the_names_of_the_table(table, output):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), quick()).set_output(transform=output).fit(X[NUMBERS], y)
    explanation = explain(pipeline, X[NUMBERS][:3], against="left", n_rows=2)
    same = pipeline[-1].explain(pipeline[:-1].transform(X[NUMBERS][:3]), against="left", n_rows=2)
    assert explanation.feature_names == NUMBERS
    assert_array_equal(explanation.evidence, same.evidence)
    assert_array_equal(explanation.values, same.values)
    assert_array_equal(explanation.label, pipeline.predict(X[NUMBERS][:3]))
    assert describe(pipeline).feature_names == NUMBERS
    assert ("length" in pipeline[-1].describe().feature_names) == (output == "pandas")  # it stays as it was


def test_an_estimator_without_a_pipeline_is_explained_as_well(table):
    X, y = table
    classifier = CorralClassifier(random_state=0).fit(X, y)
    assert_array_equal(explain(classifier, X[:2]).evidence, classifier.explain(X[:2]).evidence)
    assert str(describe(classifier)) == str(classifier.describe())


def test_names_of_columns_without_those_of_transformers(table):
    X, y = table
    names = describe(make_pipeline(encoded(), quick()).fit(X, y)).feature_names
    assert names[:3] == NUMBERS
    assert names[3] == "colour_blue"
    both = make_column_transformer((StandardScaler(), NUMBERS), (MinMaxScaler(), ["length"]))
    names = describe(make_pipeline(both, quick()).fit(X, y)).feature_names
    assert names[0] == "standardscaler__length"  # since it would not be the only one
    assert describe(make_pipeline(PCA(2), quick()).fit(X[["length", "weight"]], y)).feature_names == [
        "pca0",
        "pca1",
    ]


def test_names_of_arrays_nested_pipelines_and_steps_that_do_not_tell(table):
    X, y = table
    values = X[["weight", "length"]].to_numpy()
    second = make_column_transformer((StandardScaler(), [1]), remainder="drop")
    assert describe(make_pipeline(second, quick()).fit(values, y)).feature_names == ["x1"]
    nested = make_pipeline(StandardScaler(), make_pipeline("passthrough", MinMaxScaler(), quick()))
    assert describe(nested.fit(X[["length", "weight"]], y)).feature_names == ["length", "weight"]
    assert describe(make_pipeline(quick()).fit(values, y)).feature_names == ["x0", "x1"]
    silent = make_pipeline(FunctionTransformer(np.tanh), quick()).fit(values, y)
    assert describe(silent).feature_names == ["x0", "x1"]


def test_categories_and_missing_values_pass_through_steps(table):
    X, y = table
    scaled = make_column_transformer((StandardScaler(), NUMBERS), remainder="passthrough")
    pipeline = make_pipeline(scaled, CorralClassifier(random_state=0)).fit(X, y)
    explanation = explain(pipeline, X[:5])
    assert explanation.feature_names == [*NUMBERS, "colour", "shape"]
    assert explanation.values[0, 3] == X["colour"].iloc[0]
    assert 'colour = "red" more often' in str(describe(pipeline))


def test_refuses_in_one_sentence_what_explains_nothing(table):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), LSPClassifier()).fit(X[["length"]], y)
    with pytest.raises(TypeError, match=r"^explain needs a corral estimator .* not LSPClassifier\(\)\.$"):
        explain(pipeline, X[["length"]])
    with pytest.raises(TypeError, match="describe needs"):
        describe(make_pipeline(StandardScaler(), "passthrough"))
    with pytest.raises(NotFittedError):
        describe(make_pipeline(StandardScaler(), quick()))


# Displays


def test_displays_take_pipelines(table):
    X, y = table
    X = X[["length", "weight"]]
    local = make_pipeline(StandardScaler(), RodeoClassifier()).fit(X, y)
    assert BandwidthDisplay.from_estimator(local, X).feature_names == ["length", "weight"]
    path = RodeoPathDisplay.from_estimator(local, X, sample=3, label="left")
    assert path.feature_names == ["length", "weight"]
    same = local[-1].bandwidth_path(local[0].transform(X[3:4]), "left")
    assert_array_equal(path.path.bandwidths, same.bandwidths)
    shown = ExplanationDisplay.from_estimator(local, X, sample=3)
    assert shown.axes_[0].get_yticklabels()[1].get_text().startswith("length = ")
    assert RelevanceDisplay.from_estimator(local).feature_names == ["length", "weight"]
    assert RelevanceDisplay.from_estimator(local, quantity="zscore").feature_names == ["length", "weight"]
    density = make_pipeline(MinMaxScaler(), RodeoDensity()).fit(X)
    assert len(BandwidthDisplay.from_estimator(density, X).axes_) == 1
    assert RodeoPathDisplay.from_estimator(density, X).title == "sample 0"
    selector = make_pipeline(MinMaxScaler(), MarkerSelector()).fit(X, y)
    assert RelevanceDisplay.from_estimator(selector).feature_names == ["length", "weight"]
    with pytest.raises(TypeError, match="ExplanationDisplay cannot draw a RodeoDensity: it has no explain"):
        ExplanationDisplay.from_estimator(density, X)


def test_displays_of_categories_and_missing_values(table):
    X, y = table
    classifier = RodeoClassifier().fit(X, y)
    row = int(np.flatnonzero(X["width"].isna())[0])
    shown = ExplanationDisplay.from_estimator(classifier, X, sample=row, max_variables=5)
    names = [text.get_text() for text in shown.axes_[0].get_yticklabels()]
    assert f"colour = {X['colour'].iloc[row]}" in names
    assert not any("width" in name for name in names)  # a missing value has no evidence
    assert not any("nan" in name for name in names)
    for h in BandwidthDisplay.from_estimator(classifier, X).bandwidths:
        assert np.isfinite(h).all()
    assert np.isfinite(RodeoPathDisplay.from_estimator(classifier, X, sample=row).path.bandwidths).all()
    assert np.isfinite(RelevanceDisplay.from_estimator(classifier).values).all()


# Reports


def page_of(tmp_path, *arguments, **options):
    """The page and its numbers, which must be numbers."""
    text = write_report(*arguments, path=tmp_path / "page.html", **options).read_text(encoding="utf-8")
    data = data_of(text)
    shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
    assert not re.search(r"\bnan\b", shown, re.IGNORECASE)
    return shown, data


def test_report_of_a_pipeline(table, tmp_path):
    X, y = table
    pipeline = make_pipeline(encoded(), quick()).fit(X, y)
    shown, data = page_of(tmp_path, pipeline, X, y)
    assert data["variables"] == describe(pipeline).feature_names
    assert "this page shows values after ColumnTransformer" in shown
    assert {row["name"] for row in data["rows"]} == set(X.index)  # though steps return arrays
    row = next(row for row in data["rows"] if row["name"] == "row 7")
    assert_array_equal(row["evidence"], explain(pipeline, X[7:8]).evidence[0].round(2) + 0.0)
    right = np.mean([row["truth"] == row["label"] for row in data["rows"]])
    assert right == pipeline.score(X, y)


def test_report_of_categories_and_missing_values(table, tmp_path):
    X, y = table
    X = X.assign(empty=np.nan, many=[f"<b>{i}" for i in range(len(X))], wet=X["length"] > 1.0)
    X.loc[y == "left", "weight"] = np.nan
    with pytest.warns(UserWarning, match="no training row has a value of 'empty', which is ignored"):
        classifier = CorralClassifier(random_state=0).fit(X, y)
    shown, data = page_of(tmp_path, classifier, X, y)
    positions = {name: j for j, name in enumerate(data["variables"])}
    assert data["isCategory"] == [0, 1, 0, 1, 0, 0, 1, 1]
    row = data["rows"][0]
    assert row["values"][positions["colour"]] == X["colour"].iloc[0]
    assert row["values"][positions["wet"]] == str(X["wet"].iloc[0])
    assert row["values"][positions["empty"]] is None
    assert data["training"][str(row["support"][0])][positions["colour"]] in {"red", "blue", "green"}
    bars = data["curves"][str(positions["colour"])]
    assert bars["categories"] == ["blue", "green", "red"]
    share = np.mean(X["colour"][y == "right"] == "red")
    assert bars["y"][1][2] == round(1000 * share)
    many = data["curves"][str(positions["many"])]
    assert len(many["categories"]) == 12
    assert many["nOthers"] == len(X) - 12
    assert data["curves"][str(positions["empty"])]["x"] == []
    assert "weight missing less often (0%; others 100%)" in shown
    assert "<b>" not in shown


def test_typical_rows_are_complete_ones(table, tmp_path):
    X, y = table
    _, data = page_of(tmp_path, quick().fit(X, y), X, y)
    for typical_rows in data["typical"]:
        assert not X.iloc[typical_rows].isna().any(axis=None)


# Model files


def test_a_file_holds_no_pipeline_but_its_last_step(table, tmp_path):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), quick()).fit(X[NUMBERS], y)
    path = tmp_path / "model.corral"
    message = (
        r"^a model file cannot contain a pipeline: "
        r"save the last step, save_model\(pipeline\[-1\], path\), .*\.$"
    )
    with pytest.raises(TypeError, match=message):
        save_model(pipeline, path)
    assert not list(tmp_path.iterdir())
    save_model(pipeline[-1], path)
    proba = load_model(path).predict_proba(pipeline[:-1].transform(X[NUMBERS]))
    assert_array_equal(proba, pipeline.predict_proba(X[NUMBERS]))


def test_a_file_cannot_hold_categories_that_are_no_text(table, tmp_path):
    X, y = table
    X = X.assign(part=pd.cut(X["length"], 3))
    with pytest.raises(
        ValueError, match="column 'part' has categories of type Interval, which cannot be written"
    ):
        save_model(quick().fit(X, y), tmp_path / "model.corral")

"""RodeoSelector and MarkerSelector, alone and in pipelines."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from corral import (
    CorralClassifier,
    LSPClassifier,
    MarkerSelector,
    RodeoClassifier,
    RodeoSelector,
)
from corral.datasets import make_shifted_groups, make_ten_groups

NAMES = [f"column {j}" for j in range(10)]


@pytest.fixture(scope="module")
def shifted():
    return make_shifted_groups(100, random_state=0)


NEW = {"update": "sequential", "scale": "rank", "beta": 0.5, "c0": 0.5, "min_bandwidth": 0.3, "cutpoint": 0.0}


@pytest.mark.parametrize("name", NEW)
def test_parameters_reach_the_classifier(name):
    X, y = make_shifted_groups(30, groups=(4, 5), random_state=0)
    plain = RodeoSelector(cutpoint=-0.5).fit(X, y)
    parameters = {"cutpoint": -0.5, name: NEW[name]}
    selector, classifier = RodeoSelector(**parameters).fit(X, y), RodeoClassifier(**parameters).fit(X, y)
    assert_array_equal(selector.bandwidths_, classifier.bandwidths_)
    assert_array_equal(selector.relevant_, classifier.relevant_)
    assert_array_equal(selector.zscores_, classifier.zscores_)
    assert_array_equal(selector.classes_, [4, 5])
    changed = (selector.bandwidths_ != plain.bandwidths_) | (selector.relevant_ != plain.relevant_)
    assert changed.any()  # or the parameter would not have mattered here


def selected_by(selector):
    return selector.relevant_ if isinstance(selector, RodeoSelector) else selector.markers_


@pytest.mark.parametrize("selector", [RodeoSelector(), MarkerSelector()], ids=repr)
def test_the_union_of_all_classes_is_kept(selector):
    # In ten groups no class has all of the 15 variables, and no variable belongs to all classes.
    X, y = make_ten_groups(100, random_state=0)
    selector.fit(X, y)
    assert_array_equal(selector.get_support(), selected_by(selector).any(axis=0))
    assert_array_equal(selector.get_support(indices=True), np.arange(15))
    assert selected_by(selector).sum(axis=1).max() < 15
    assert_array_equal(selector.transform(X), X[:, :15])
    restored = selector.inverse_transform(X[:3, :15])
    assert_array_equal(restored, np.hstack([X[:3, :15], np.zeros((3, 15))]))


def test_names_of_the_selected_columns(shifted):
    X, y = shifted
    selector = MarkerSelector()
    labels = np.array(["", "ant", "bee", "cat", "dog", "eel"])[y]
    named = selector.fit(pd.DataFrame(X, columns=NAMES), labels)
    assert named.classes_.tolist() == ["ant", "bee", "cat", "dog", "eel"]
    assert named.feature_names_in_.tolist() == NAMES
    assert named.get_feature_names_out().tolist() == ["column 0", "column 1"]
    assert selector.fit(X, y).get_feature_names_out().tolist() == ["x0", "x1"]
    assert selector.get_feature_names_out(NAMES).tolist() == ["column 0", "column 1"]


def test_weights_pass_through_a_pipeline(shifted):
    X, y = shifted
    weights = np.where(y == 1, 0.0, 1.0)  # as if the first group were not there
    pipeline = make_pipeline(RodeoSelector(cutpoint=-0.5), LogisticRegression())
    pipeline.fit(X, y, rodeoselector__sample_weight=weights)
    assert_array_equal(pipeline[0].classes_, [2, 3, 4, 5])
    assert_array_equal(pipeline[0].bandwidths_, RodeoSelector().fit(X[y > 1], y[y > 1]).bandwidths_)


@pytest.mark.parametrize("selector", [RodeoSelector(), MarkerSelector()], ids=repr)
def test_fit_needs_targets(selector, shifted):
    assert selector.__sklearn_tags__().target_tags.required
    with pytest.raises(ValueError, match="requires y"):
        selector.fit(shifted[0], None)


@pytest.mark.parametrize("output", ["pandas", "default"])
@pytest.mark.filterwarnings("ignore:No features were selected", "ignore::corral.EmptySelectionWarning")
def test_a_table_without_columns_is_refused_in_a_sentence(output):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")), np.arange(60) % 2
    for last in (CorralClassifier(), RodeoClassifier(), MarkerSelector(), LSPClassifier()):
        steps = make_pipeline(MarkerSelector(), last).set_output(transform=output)
        with pytest.raises(ValueError, match=r"0 feature\(s\) .*: X has no columns.* selects no variable\.$"):
            steps.fit(X, y)


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
@pytest.mark.parametrize(
    "kind", ["array", "masked", "pandas", "nullable", "polars", "list", "floats beside", "objects", "column"]
)
def test_integers_that_floats_cannot_tell_apart_are_refused(kind):
    ids = 90071992547409930 + np.arange(20)
    X = np.column_stack([np.arange(20) % 7, ids])
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    table = {
        "array": X,
        "masked": np.ma.masked_array(X, X == 3),
        "list": X.tolist(),
        "floats beside": [(x / 2, i) for x, i in X.tolist()],
        "objects": X.astype(object),
        "column": frame.astype({"x1": object}),
        "pandas": frame,
        "nullable": frame.astype({"x1": "Int64"}),
        "polars": pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1]}),
    }[kind]
    y = np.arange(20) % 2
    message = r"^Column 'x1' holds the integers 90071992547409930 and 90071992547409931, which become"
    for estimator in (MarkerSelector(), CorralClassifier(), LSPClassifier()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(table, y)
    apart = np.column_stack([X[:, 0], 1000 * np.arange(20) + 2**60])
    for table in (apart, apart.tolist(), apart.astype(object)):
        MarkerSelector().fit(table, y)


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning", "ignore::corral.DuplicatesWarning")
def test_levels_may_be_integers_of_any_number_of_digits():
    wards = pd.DataFrame({"ward": [2**53, 2**53 + 1] * 20, "x": np.arange(40.0)}, dtype=object)
    y = np.arange(40) % 2
    model = CorralClassifier(categorical_features=["ward"], random_state=0).fit(wards, y)
    assert model.score(wards, y) == 1.0
    model.partial_fit(wards, y)
    assert model.score(wards, y) == 1.0


@pytest.mark.parametrize("make", [np.array, list, lambda X: np.array(X, dtype=object), pd.DataFrame])
def test_integers_of_a_further_part_that_floats_cannot_tell_apart_are_refused(make):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = RodeoClassifier().fit(X if make is not pd.DataFrame else pd.DataFrame(X), y)
    with pytest.raises(ValueError, match=r"holds the integers 9007199254740992 and 9007199254740993"):
        model.partial_fit(make([[2**53, 1], [2**53 + 1, 2]]), [0, 1])


def test_wrong_parameters_are_named(shifted):
    with pytest.raises(ValueError, match="scale must be one of"):
        RodeoSelector(scale="score").fit(*shifted)
    with pytest.raises(ValueError, match=r"min_effect must be a number between 0 and 1 .*, got 2"):
        MarkerSelector(min_effect=2).fit(*shifted)

"""Priors by name, and class weights, as factors of the priors."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

from corral import CorralClassifier, LearningCurve, RodeoClassifier, load_model, save_model
from corral.datasets import make_shifted_groups

CLASSIFIERS = [CorralClassifier(random_state=0), RodeoClassifier(bandwidth="class")]
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def data():
    """Three classes of 10, 20 and 30 rows."""
    X, y = make_shifted_groups(30, groups=(1, 2, 5), random_state=0)
    kept = np.concatenate([np.flatnonzero(y == label)[: 10 * (k + 1)] for k, label in enumerate((1, 2, 5))])
    return X[kept, :3], NAMES[y[kept] // 2]


def fit(estimator, data, **parameters):
    return type(estimator)(**estimator.get_params() | parameters).fit(*data)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_priors_by_name_are_those_of_a_list(estimator, data):
    X, _ = data
    listed = fit(estimator, data, priors=[0.5, 0.2, 0.3])
    named = fit(estimator, data, priors={"cat": 0.3, "ant": 0.5, "bee": 0.2})
    assert_array_equal(named.class_prior_, [0.5, 0.2, 0.3])
    assert_array_equal(named.predict_proba(X), listed.predict_proba(X))


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_class_weights_are_factors_of_the_priors(estimator, data):
    weighted = fit(estimator, data, priors="empirical", class_weight={"ant": 6.0, "cat": 0.5})
    assert_allclose(weighted.class_prior_, np.array([60.0, 20.0, 15.0]) / 95.0)  # bee has weight 1
    given = fit(estimator, data, priors=weighted.class_prior_)
    assert_allclose(weighted.predict_proba(data[0]), given.predict_proba(data[0]), rtol=1e-12)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("priors", ["empirical", "uniform", [0.5, 0.2, 0.3]])
def test_balanced_classes_are_equal_whatever_the_priors(estimator, priors, data):
    balanced = fit(estimator, data, priors=priors, class_weight="balanced")
    assert_allclose(balanced.class_prior_, np.full(3, 1.0 / 3.0))
    uniform = fit(estimator, data, priors="uniform")
    assert_allclose(balanced.predict_proba(data[0]), uniform.predict_proba(data[0]), rtol=1e-9)


def test_a_class_that_is_ruled_out_stays_so(data):
    model = fit(CLASSIFIERS[1], data, priors=[0.0, 0.4, 0.6], class_weight="balanced")
    assert_array_equal(model.class_prior_, [0.0, 0.5, 0.5])


def test_class_weights_mean_what_scikit_learn_means(data):
    # There they multiply the weights of rows; densities of classes do not depend on such a factor.
    X, y = data
    class_weight = {"ant": 2.0, "bee": 0.3, "cat": 1.0}
    estimator = RodeoClassifier(priors="empirical", bandwidth="class")
    by_rows = estimator.fit(X, y, [class_weight[label] for label in y]).predict_proba(X)
    assert_allclose(fit(estimator, data, class_weight=class_weight).predict_proba(X), by_rows, rtol=1e-9)


def test_a_learning_curve_has_the_weighted_priors(data):
    model = fit(CLASSIFIERS[0], data, class_weight="balanced")
    uniform = LearningCurve.from_estimator(fit(CLASSIFIERS[0], data, priors="uniform"), random_state=0)
    curve = LearningCurve.from_estimator(model, random_state=0)
    assert_allclose(curve.measured.errors, uniform.measured.errors)


def test_a_fold_may_lack_a_class_that_has_a_weight(data):
    X, y = data
    model = RodeoClassifier(bandwidth="class", class_weight={"ant": 2.0, "bee": 1.0, "cat": 1.0, "dog": 9.0})
    assert np.isfinite(cross_val_score(model, X, y, cv=3, error_score="raise")).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"priors": {"ant": 0.5, "bee": 0.5}}, "priors must list each class once, but 'cat' is missing."),
        (
            {"priors": {"ant": 0.5, "bee": 0.2, "cta": 0.3}},
            "priors must list classes, but 'cta' is not one of ['ant', 'bee', 'cat'].",
        ),
        (
            {"priors": {"ant": 0.5, "bee": 0.2, "cat": 0.2}},
            "priors must not be negative and must sum to 1, got {'ant': 0.5, 'bee': 0.2, 'cat': 0.2}.",
        ),
        (
            {"class_weight": {"ant": 2.0, "cta": 3.0}},
            "class_weight must list classes, but 'cta' is not one of ['ant', 'bee', 'cat'].",
        ),
        (
            {"class_weight": {"ant": 0.0, "bee": 0, "cat": 0}},
            "class_weight must not be zero for every class that has a prior above 0.",
        ),
        ({"class_weight": "equal"}, "class_weight must be one of 'balanced', None, got 'equal'."),
    ],
)
def test_what_is_wrong_is_named(parameters, message, data):
    for estimator in CLASSIFIERS:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            fit(estimator, data, **parameters)


@pytest.mark.parametrize("labels", [[1, 2, 5], ["ant", "bee", "cat"], [0.0, 1.0, 7.0]])
def test_a_model_file_keeps_names_of_classes(labels, data, tmp_path):
    X, y = data
    classes = np.array(labels)
    weights = {"priors": dict(zip(labels, (0.5, 0.2, 0.3), strict=True)), "class_weight": {classes[0]: 2.0}}
    model = fit(CLASSIFIERS[1], (X, classes[np.searchsorted(NAMES, y)]), **weights)
    save_model(model, tmp_path / "model.corral")
    loaded = load_model(tmp_path / "model.corral")
    assert (loaded.priors, loaded.class_weight) == (model.priors, model.class_weight)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

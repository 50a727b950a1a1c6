"""Tests that the estimators behave as scikit-learn's own do, alone and in its tools."""

import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_class_weight_classifiers, parametrize_with_checks

from corral import (
    CorralClassifier,
    LSPClassifier,
    MarkerSelector,
    RodeoClassifier,
    RodeoDensity,
    RodeoSelector,
)
from corral.datasets import make_shifted_groups

# Small random data often have no variable that stands out; test_selection.py is about that warning.
pytestmark = pytest.mark.filterwarnings(
    "ignore::corral.EmptySelectionWarning",
    "ignore::corral.DuplicatesWarning",
    "ignore:No features were selected:UserWarning",  # scikit-learn's own, of the same
)

# Each value of a parameter that decides what is done with rows is in one of them.
RODEOS = [
    RodeoClassifier(),
    RodeoClassifier(scale="rank", update="sequential", n_jobs=2),
    RodeoClassifier(scale=None, bandwidth="class", features="selected", priors="empirical"),
    CorralClassifier(random_state=0),
    RodeoDensity(),
    RodeoDensity(scale="standard", update="sequential", n_jobs=2),
]
ESTIMATORS = [*RODEOS, RodeoSelector(), MarkerSelector(), LSPClassifier(scale="standard", n_jobs=2)]
CHECKED = list({type(estimator): estimator for estimator in ESTIMATORS}.values())


def expected_failures(estimator):
    """Checks of scikit-learn that cannot hold, with the reason."""
    if not isinstance(estimator, RodeoClassifier):
        return {}
    reason = "in raw units, bandwidths below 1 beside a spread of 20 make densities that no weight outweighs"
    return {"check_class_weight_classifiers": reason}


@pytest.mark.filterwarnings(
    "ignore:The least populated class in y"
)  # a check of scikit-learn 1.6 has few rows
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [RodeoClassifier(bandwidth="class"), CorralClassifier(random_state=0)])
def test_decision_function(estimator, data):
    X, y = data
    model = clone(estimator).fit(X, y)
    assert_array_equal(model.decision_function(X), model.predict_log_proba(X))
    two = y != 5
    model = clone(estimator).fit(X[two], y[two])
    proba = model.predict_proba(X)
    scores = model.decision_function(X)
    assert_allclose(scores, np.log(proba[:, 1] / proba[:, 0]), rtol=1e-6, atol=1e-9)
    assert_array_equal(np.where(scores > 0.0, 2, 1), model.predict(X))


def test_class_weights_decide_where_densities_do_not():
    check_class_weight_classifiers("RodeoClassifier", RodeoClassifier())


@pytest.fixture(scope="module")
def data():
    return make_shifted_groups(40, groups=(1, 2, 5), random_state=0)


# Parameters


@pytest.mark.parametrize("estimator", [LSPClassifier, RodeoClassifier, RodeoDensity])
def test_parameters_are_named(estimator):
    with pytest.raises(TypeError, match="positional argument"):
        estimator("sequential")


@pytest.mark.parametrize("estimator", CHECKED, ids=repr)
def test_a_fit_that_fails_changes_nothing(estimator, data):
    # Not even the number of columns, which is counted first.
    X, y = data
    refused = (np.ones(len(y)),) if not isinstance(estimator, RodeoDensity) else (None, -np.ones(len(y)))
    model = clone(estimator)
    message = r"y must hold at least two|sample_weight must not be negative|X has 2 features, but"
    for _ in ("before a fit", "after a fit"):
        before = dict(vars(model))
        for method in {"fit", "partial_fit"} & set(dir(model)):
            with pytest.raises(ValueError, match=message):
                getattr(model, method)(X[:, :2], *refused)
            assert vars(model) == before
        model.fit(X, y)


@pytest.mark.parametrize("estimator", CHECKED, ids=repr)
def test_what_scikit_learn_does_not_know_needs_a_fit(estimator):
    model = clone(estimator)
    calls = dict.fromkeys(["describe", "selection_frequency", "get_support", "sample"], ())
    calls |= dict.fromkeys(["explain", "typicality"], ([[0.0]],))
    for method in calls.keys() & set(dir(model)):
        with pytest.raises(NotFittedError):
            getattr(model, method)(*calls[method])
    assert not hasattr(model, "feature_importances_")


# Persistence


def test_pickle_keeps_every_bit(data):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    for estimator in RODEOS:
        model = clone(estimator).fit(X, y, sample_weight=weights)
        copy = pickle.loads(pickle.dumps(model))
        for name in ("predict", "predict_proba", "local_bandwidths", "score_samples"):
            if hasattr(model, name):
                assert_array_equal(getattr(copy, name)(X), getattr(model, name)(X))
        if isinstance(model, RodeoDensity):
            assert_array_equal(copy.sample(9, random_state=0), model.sample(9, random_state=0))
            continue
        assert_array_equal(copy.describe().markers, model.describe().markers)
        # A batch that arrives after loading is added to the rows from before.
        for each in (copy, model):
            each.partial_fit(X[:20] + 0.1, y[:20])
        assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


# scikit-learn's tools


def test_pipeline(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), RodeoClassifier(scale=None)).fit(X, y)
    expected = RodeoClassifier(scale="standard").fit(X, y)
    assert_allclose(pipeline.predict_proba(X), expected.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert pipeline.score(X, y) == expected.score(X, y)
    assert_array_equal(pipeline.classes_, [1, 2, 5])


def test_grid_search(data):
    X, y = data
    # c0 = 1e-3 makes nearest neighbours of all variables, noise included, and must lose.
    grid = {"c0": [1e-3, 1.0], "scale": ["range", "standard", None]}
    search = GridSearchCV(RodeoClassifier(), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["c0"] == 1.0
    best = RodeoClassifier(**search.best_params_).fit(X, y)
    assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    losses = search.cv_results_["mean_test_score"][search.cv_results_["param_c0"] == 1e-3]
    assert losses.max() < search.best_score_
    search = GridSearchCV(RodeoDensity(), {"c0": [0.01, 1.0]}, cv=3, error_score="raise").fit(X[:, :2])
    assert search.best_params_ == {"c0": 1.0}  # by the likelihood


# Threads that a caller asks for


def test_parallel_config_is_followed(data, monkeypatch):
    # The number of threads decides the size of a piece of work, so it shows there.
    X, y = data
    model = RodeoClassifier().fit(X, y)
    seen = []
    monkeypatch.setattr(
        "corral.parallel.effective_n_jobs",
        lambda n_jobs: seen.append(joblib.effective_n_jobs(n_jobs)) or seen[-1],
    )
    model.predict(X)
    with joblib.parallel_config("threading", n_jobs=2):
        model.predict(X)
    assert sorted(set(seen)) == [1, 2]


def test_threads_inside_processes(data):
    X, y = data
    one = cross_val_score(RodeoClassifier(), X, y, cv=2, n_jobs=1, error_score="raise")
    two = cross_val_score(RodeoClassifier(n_jobs=2), X, y, cv=2, n_jobs=2, error_score="raise")
    assert_array_equal(one, two)

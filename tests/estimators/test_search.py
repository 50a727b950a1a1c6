"""CorralClassifier: a pool as an estimator, what it says of itself, and that its score is honest.

tests/pool/test_pool.py compares the pool itself with plain loops.
"""

import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

from corral import CorralClassifier
from corral.datasets import make_shifted_groups
from corral.pool import search as search_module

pytestmark = pytest.mark.filterwarnings("ignore::corral.DuplicatesWarning")

PREDICTIONS = ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "log_density"]
SHARED = ["classes_", "class_count_", "class_prior_", "markers_", "member_weights_", "cv_recall_"]


@pytest.fixture(scope="module")
def data():
    """Three groups that overlap, in four variables, two of them noise."""
    X, y = make_shifted_groups(12, groups=(1, 3, 5), random_state=0)
    order = np.random.RandomState(0).permutation(y.size)
    return X[order, :4], y[order]


@pytest.fixture(scope="module")
def fitted(data):
    return CorralClassifier(random_state=0).fit(*data)


def assert_same_model(one, other, new_rows):
    """Equal to the last bit, in what was chosen and in every prediction."""
    for name in (*SHARED, "cv_balanced_accuracy_", "cv_accuracy_", "cv_log_loss_"):
        assert_array_equal(getattr(one, name), getattr(other, name), strict=True)
    pd.testing.assert_frame_equal(
        pd.DataFrame(one.member_scores_), pd.DataFrame(other.member_scores_), check_exact=True
    )
    for method in PREDICTIONS:
        assert_array_equal(getattr(one, method)(new_rows), getattr(other, method)(new_rows), strict=True)


def assert_sound(model, new_rows):
    """No NaN, and probabilities that are some."""
    numbers = [model.cv_accuracy_, model.cv_log_loss_, model.cv_balanced_accuracy_]
    numbers += [*model.member_scores_["log_loss"], *model.member_scores_["accuracy"]]
    assert np.isfinite(numbers).all()
    assert -1e-12 <= model.cv_accuracy_ <= 1.0
    proba = model.predict_proba(new_rows)
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert not np.isnan(model.predict_log_proba(new_rows)).any()
    assert_array_equal(model.predict(new_rows), model.classes_[proba.argmax(axis=1)])
    explanation = model.explain(new_rows)
    assert np.isfinite(explanation.evidence).all()
    assert np.isfinite(explanation.shares).all()


# The pool


@pytest.mark.parametrize("priors", ["empirical", "uniform", [0.2, 0.3, 0.5]])
def test_the_posterior_is_a_plain_loop_over_members(data, priors):
    X, y = data
    model = CorralClassifier(priors=priors, random_state=0).fit(X, y)
    new_rows = np.vstack([X, X + 0.2, X[:1] + 1e3])
    joint = np.log(model.class_prior_) + sum(
        weight * member.log_density(new_rows) / member.model_.pool.weights[0]
        for weight, member in zip(model.member_weights_, model.members_, strict=True)
    )
    assert_allclose(model.predict_joint_log_proba(new_rows), joint, rtol=1e-10, atol=1e-10)
    share = 1.0 / (y.size + 2.0)
    expected = (1.0 - share) * np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    assert_allclose(model.predict_proba(new_rows), expected + share * model.class_prior_, rtol=1e-9)


def test_members_stand_on_their_own(fitted, data):
    X, y = data
    assert 1 <= len(fitted.members_) == fitted.member_weights_.size <= 6
    table = pd.DataFrame(fitted.member_scores_)
    for member in fitted.members_:
        row = table[table["member"] == member.name].iloc[0]
        assert row["weight"] > 0.0
        assert_allclose(member.model_.pool.weights, [1.0 / row["temperature"]])
        assert_allclose(member.predict_proba(X).sum(axis=1), 1.0)
        assert member.score(X, y) > 0.5
        assert len(member.explain(X[:3])) == 3
    heaviest = table["member"][table["share"].argmax()]
    assert fitted.members_[0].name == heaviest
    with pytest.raises(TypeError, match="a member of a pool cannot be fitted by itself"):
        clone(fitted.members_[0]).fit(X, y)


def test_conditionals_are_weighted_sums_of_the_members(fitted, data):
    new_rows = data[0][:9] + 0.05
    expected = fitted.explain(new_rows)
    parts = np.zeros(expected.conditional.shape)
    for weight, member in zip(fitted.member_weights_, fitted.members_, strict=True):
        for i in range(len(new_rows)):
            codes = np.searchsorted(fitted.classes_, [expected.label[i], expected.rival[i]])
            (mixture,) = member.model_.pool.members
            x = mixture.scale.transform(new_rows[i : i + 1])
            own, other = (mixture.classes[c].conditionals(x)[0][0] for c in codes)
            parts[i] += weight * (own - other)
    assert_allclose(expected.conditional, parts, rtol=1e-9, atol=1e-9)
    assert expected.bandwidths is None
    assert "bandwidth" not in expected.to_frame()


# Scores


def test_it_is_as_good_as_it_says_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    model = CorralClassifier(random_state=0).fit(X, y)
    assert model.cv_accuracy_ > 0.96
    assert abs(model.cv_accuracy_ - cross_val_score(model, X, y, cv=4).mean()) < 0.015


def test_a_rare_class_shows_in_its_recall():
    random = np.random.RandomState(0)
    y = np.repeat([0, 1], [380, 20])
    model = CorralClassifier(random_state=0).fit(random.normal(size=(400, 3)), y)
    assert model.cv_accuracy_ > 0.9
    assert model.cv_recall_[1] < 0.3
    assert model.cv_balanced_accuracy_ == pytest.approx(model.cv_recall_.mean())
    uniform = CorralClassifier(priors="uniform", random_state=0).fit(random.normal(size=(400, 3)), y)
    assert uniform.cv_accuracy_ == pytest.approx(uniform.cv_balanced_accuracy_)


def test_probabilities_are_calibrated_where_variables_repeat():
    X, y = make_shifted_groups(150, groups=(1, 2), random_state=0)
    X = np.hstack([X[:, :2]] * 6)
    X_new, y_new = make_shifted_groups(1000, groups=(1, 2), random_state=1)
    model = CorralClassifier(random_state=0).fit(X, y)
    proba = model.predict_proba(np.hstack([X_new[:, :2]] * 6))
    assert abs(proba.max(axis=1).mean() - (model.classes_[proba.argmax(axis=1)] == y_new).mean()) < 0.04


def test_a_seed_and_any_number_of_threads_change_no_bit(data, fitted):
    assert_same_model(CorralClassifier(random_state=0, n_jobs=2).fit(*data), fitted, data[0])


def test_duplicates_are_one_row_with_their_weight_and_zero_is_removal(data):
    X, y = data
    weights = np.random.RandomState(1).randint(0, 4, y.size)
    model = CorralClassifier(random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    copied = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_allclose(copied.predict_proba(X), weighted.predict_proba(X), rtol=1e-6, atol=1e-9)
    assert copied.n_duplicates_ == weights.sum() - (weights > 0).sum()
    assert weighted.cv_accuracy_ == pytest.approx(copied.cv_accuracy_)


def test_the_search_reads_some_rows_only(monkeypatch):
    monkeypatch.setattr(search_module, "SEARCH_ROWS", 120)
    monkeypatch.setattr(search_module, "SEARCH_POINTS", 60)
    X, y = make_shifted_groups(200, groups=(4, 5), random_state=0)
    model = CorralClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    assert len(model.members_[0].model_.data.X) == 400  # members are fitted to all rows
    assert model.explain(X[:1]).rows.max() < 400


# Odd data


@pytest.mark.filterwarnings("ignore::corral.ShiftedTableWarning")
def test_far_samples(data, fitted):
    X, y = data
    new_rows = np.vstack(
        [[*(X[:4] + far), *(X[:4] - far), X[0] * [far, 1.0, 1.0, 1.0]] for far in (1e3, 1e6, 1e12, 1e300)]
    )
    assert_sound(fitted, new_rows)
    assert fitted.predict_proba(new_rows).min() >= 0.999 / 3.0 / (y.size + 2.0)


ROWS = {
    "one row per class": ([[0.0], [1.0]], ["a", "b"]),
    "a class of one row": ([[0.0, 1.0], [0.2, 1.0], [0.1, 3.0], [5.0, 1.0]], ["a", "a", "a", "b"]),
    "nothing but duplicates": ([[0.0, 1.0]] * 4 + [[2.0, 1.0]] * 3, ["a"] * 4 + ["b"] * 3),
    "nothing but constants": (np.ones((8, 3)), ["a", "b"] * 4),
    "one variable": (np.arange(10.0)[:, np.newaxis] ** 2, ["a"] * 5 + ["b"] * 5),
    "of all sizes": (np.outer([0.0, 1e-300, 1.0, -1e150, 1e300, 3.0], [1.0, 1e-9]), ["a", "b"] * 3),
}


@pytest.mark.filterwarnings("ignore:each class has one row")
@pytest.mark.parametrize("name", ROWS)
def test_odd_rows(name):
    X, y = ROWS[name]
    model = CorralClassifier(random_state=0).fit(X, y)
    assert_sound(model, np.vstack([X, np.asarray(X) + 1e6, np.asarray(X) - 7.0]))
    assert np.isfinite(model.feature_importances_).all()
    if name == "nothing but constants":
        assert_allclose(model.predict_proba(X), 0.5, rtol=1e-9)
        assert_array_equal(model.explain(X).evidence, 0.0)


def test_a_class_without_rows(data):
    X, y = data
    model = CorralClassifier(random_state=0).partial_fit(X, y, classes=[0, 1, 3, 5])
    assert_array_equal(model.classes_, [0, 1, 3, 5])
    assert_array_equal(model.class_count_, [0, 12, 12, 12])
    assert_sound(model, X)
    assert np.isnan(model.cv_recall_[0])
    assert_array_equal(model.predict_proba(X)[:, 0], 0.0)  # its prior is its share of the rows
    uniform = CorralClassifier(priors="uniform", random_state=0).partial_fit(X, y, classes=[0, 1, 3, 5])
    assert_allclose(uniform.predict_proba(X)[:, 0], 0.25 / (y.size + 2.0), rtol=1e-9)


def test_one_class_with_rows(data):
    X, y = data
    for rows in (X[y == 1], X[:1]):
        model = CorralClassifier(random_state=0).partial_fit(rows, np.ones(len(rows)), classes=[0, 1])
        assert_sound(model, X)
        assert set(model.predict(X)) == {1}


# What is refused

BAD = {
    "priors": ["equal", None, [0.5, 0.5], [0.5, 0.6, 0.7], [-1.0, 1.0, 1.0], {1: 0.5, 3: 0.25, 5: 0.5}],
    "class_weight": ["equal", [1.0, 2.0, 3.0], {1: -1.0}, {1: math.inf}, {1: "heavy"}],
    "min_effect": [-0.1, 1.5, math.nan, "0.2", None, True],
    "n_jobs": [0, "two", 1.5],
    "random_state": ["seed", 1.5],
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused(data, method):
    for name, values in BAD.items():
        for value in values:
            message = rf"^{name} .*, got {re.escape(repr(value))}\.$"
            if name == "random_state":  # of which scikit-learn's own sentence does not give the name
                message = f"^{value!r} cannot be used to seed"
            with pytest.raises(ValueError, match=message):
                getattr(CorralClassifier(**{name: value}), method)(*data)


def test_an_error_on_the_way_leaves_the_model_as_it_was(data, fitted, monkeypatch):
    X, y = data
    model = pickle.loads(pickle.dumps(fitted))

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(search_module, "judge", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[:9], y[:9])
    assert model.n_features_in_ == 4
    assert_same_model(model, fitted, X)

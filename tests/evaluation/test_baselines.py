"""Baselines: the scale of a column does not matter, and no table makes them fail or warn."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corral.evaluation.baselines import MixedLogisticRegression, MixedNaiveBayes, baselines

KINDS = [MixedNaiveBayes, MixedLogisticRegression]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat(["u", "v"], 60)
    X = pd.DataFrame(rng.normal(0.5 * (y == "u")[:, np.newaxis], size=(120, 3)), columns=list("abc"))
    return X, y


@pytest.mark.parametrize("kind", KINDS)
def test_one_column_of_large_numbers_changes_nothing(kind, rows):
    X, y = rows
    proba = kind().fit(X, y).predict_proba(X)
    large = X.assign(a=1e6 + 1e9 * X["a"])
    assert_allclose(kind().fit(large, y).predict_proba(large), proba, atol=1e-6)


def test_regression_is_that_of_scikit_learn_on_standardised_columns(rows):
    X, y = rows
    expected = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).predict_proba(X)
    assert_allclose(MixedLogisticRegression().fit(X, y).predict_proba(X), expected, atol=1e-6)


def test_a_column_that_is_constant_in_a_class_does_not_take_all_rows(rows):
    """Two rows of the frequent class are 1 in a column that is 0 elsewhere, as a rare mishap is."""
    X, _ = rows
    y = np.where(np.arange(120) < 100, "often", "seldom")
    X = X.assign(mishap=(np.arange(120) < 2) * 1.0)
    labels = MixedNaiveBayes().fit(X, y).predict_proba(X).argmax(axis=1)
    assert labels.mean() < 0.5
    standard = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    assert (standard.predict(X) == "seldom").mean() > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_odd_columns(kind, rows):
    X, y = rows
    names = np.array([f"name {i % 80}" for i in range(120)])
    odd = X.assign(
        huge=np.where(np.arange(120) % 2, 1e308, -1e308),
        empty=np.nan,
        same=7.0,
        gaps=np.where(np.arange(120) % 3, X["a"], np.nan),
        name=pd.Categorical(np.where(np.arange(120) % 7, names, None)),
    )
    fitted = kind().fit(odd[:100], y[:100])  # warnings are errors
    proba = fitted.predict_proba(odd[100:])
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_column_that_varies_classes_have_their_frequencies(kind):
    X, y = pd.DataFrame({"a": np.ones(10)}), np.repeat(["u", "v"], [7, 3])
    assert_allclose(kind().fit(X, y).predict_proba(X), np.tile([0.7, 0.3], (10, 1)))


def test_a_regression_that_does_not_converge_is_not_warned_of(rows):
    X, _ = rows
    wide = pd.concat([X, X.add_prefix("again") ** 3, X.add_prefix("more") ** 5], axis=1)
    labels = np.where(X["a"] > 0, "u", "v")  # separable: coefficients would grow without end
    MixedLogisticRegression().fit(wide, labels)


def test_names_of_baselines(rows):
    X, _ = rows
    assert list(baselines(X)) == ["Gaussian naive Bayes", "logistic regression"]
    mixed = X.assign(name=pd.Categorical(["p", "q"] * 60))
    assert next(iter(baselines(mixed))) == "naive Bayes"

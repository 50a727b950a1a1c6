"""Whitened units: the transformation itself, and that relevance and explanations stay with the variables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.covariance import oas

from corral import RodeoClassifier, RodeoClassifierCV, RodeoSelector, estimate_sample_sizes
from corral._core.scale import learn_scale


def correlated(n=60, d=3, seed=0):
    """Two classes that differ across a direction in which both are narrow."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b"], n)
    common = rng.normal(size=(2 * n, 1))
    X = common + 0.2 * rng.normal(size=(2 * n, d))
    X[:, 0] += 0.3 * (y == "b")
    return X, y


def within(X, codes):
    return np.concatenate([X[codes == a] - X[codes == a].mean(axis=0) for a in np.unique(codes)])


def test_covariance_within_classes_is_that_of_scikit_learn():
    X, y = correlated()
    codes = (y == "b").astype(int)
    standard = learn_scale(X, None, "standard").transform(X)
    covariance, _ = oas(within(standard, codes), assume_centered=True)
    mixing = learn_scale(X, None, "whiten", codes).mixing
    assert_allclose(mixing, mixing.T, atol=1e-12)
    assert_allclose(mixing @ covariance @ mixing, np.eye(3), atol=1e-10)


def test_weights_shrink_by_their_effective_number():
    X, y = correlated(20)
    codes = (y == "b").astype(int)
    w = np.random.default_rng(1).uniform(0.2, 3.0, len(X))
    scale = learn_scale(X, w, "whiten", codes)
    assert_allclose(learn_scale(X, 7.0 * w, "whiten", codes).transform(X), scale.transform(X), rtol=1e-9)
    # The covariance within classes, shrunk as `oas` shrinks that of as many rows.
    standard = learn_scale(X, w, "standard").transform(X)
    residuals = standard.copy()
    for a in (0, 1):
        residuals[codes == a] -= np.average(standard[codes == a], axis=0, weights=w[codes == a])
    covariance = np.cov(residuals.T, aweights=w, ddof=0)
    n, trace, square = w.sum() ** 2 / (w**2).sum(), np.trace(covariance) / 3, np.mean(covariance**2)
    share = min(1.0, (square + trace**2) / ((n + 1) * (square - trace**2 / 3)))
    shrunk = (1 - share) * covariance + share * trace * np.eye(3)
    assert_allclose(scale.mixing @ shrunk @ scale.mixing, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("X", [np.zeros((6, 2)), np.repeat([[0.0, 1.0], [2.0, 3.0]], 3, axis=0)])
def test_rows_of_a_class_all_alike(X):
    scale = learn_scale(X, None, "whiten", np.repeat([0, 1], 3))
    assert_array_equal(scale.mixing, np.eye(2))


def test_finds_what_correlation_hides():
    X, y = correlated(150)
    X_test, y_test = correlated(300, seed=1)
    plain = RodeoClassifier(scale="standard", bandwidth="class").fit(X, y).score(X_test, y_test)
    whitened = RodeoClassifier(scale="whiten", bandwidth="class").fit(X, y).score(X_test, y_test)
    assert whitened > plain + 0.1
    assert RodeoClassifierCV(random_state=0).fit(X, y).score(X_test, y_test) > plain + 0.08


def test_relevance_is_that_of_the_variables_in_range_units():
    X, y = correlated()
    whitened = RodeoClassifier(scale="whiten").fit(X, y)
    plain = RodeoClassifier(scale="range").fit(X, y)
    for name in ("relevant_", "zscores_", "bandwidths_", "initial_bandwidth_"):
        assert_array_equal(getattr(whitened, name), getattr(plain, name))
    assert not np.allclose(whitened.local_bandwidths(X[:3]), plain.local_bandwidths(X[:3]))


@pytest.mark.parametrize("bandwidth", ["local", "class", "initial"])
@pytest.mark.parametrize("far", [0.0, 3.0])
def test_conditionals_are_those_of_each_variable_given_the_others(bandwidth, far):
    X, y = correlated(30)
    fitted = RodeoClassifier(scale="whiten", bandwidth=bandwidth).fit(X, y)
    x = X[:1] + np.array([0.1, -0.2, 0.3]) + far
    explanation = fitted.explain(x)
    h = fitted.local_bandwidths(x)[0]

    def log_densities(points, label):
        """The mixture of kernels at many points, up to a constant, with the bandwidths at x."""
        a = np.flatnonzero(fitted.classes_ == label)[0]
        rows = fitted.model_.scale.transform(X[y == label])
        z = fitted.model_.scale.transform(points)
        return logsumexp(-0.5 * (((z[:, np.newaxis] - rows) / h[a]) ** 2).sum(axis=2), axis=1)

    for j in range(3):
        line = np.linspace(-40.0, 40.0, 8001)
        points = np.repeat(x, line.size, axis=0)
        points[:, j] += line
        conditional = [
            log_densities(x, label)[0] - logsumexp(log_densities(points, label))
            for label in (explanation.label[0], explanation.rival[0])
        ]
        assert_allclose(explanation.conditional[0, j], conditional[0] - conditional[1], rtol=1e-9, atol=1e-9)
    everyone = fitted.explain(x, n_rows=60)
    assert_allclose(everyone.shares.sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("features", ["selected", "separate"])
def test_needs_all_features(features):
    X, y = correlated(10)
    with pytest.raises(ValueError, match=f"needs features='all', got '{features}'"):
        RodeoClassifier(scale="whiten", bandwidth="class", features=features).fit(X, y)


def test_refused_where_variables_are_chosen():
    X, y = correlated(30)
    with pytest.raises(ValueError, match="scale must be one of 'range', 'standard', 'rank', None"):
        RodeoSelector(scale="whiten").fit(X, y)
    with pytest.raises(ValueError, match="must not have scale='whiten'"):
        estimate_sample_sizes(
            X,
            y,
            tolerance=0.5,
            initial_size=10,
            test_size=10,
            step=4,
            estimator=clone(RodeoClassifier(scale="whiten")),
        )

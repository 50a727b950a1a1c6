"""Transforms: means, covariances and variables of each class, learnt from rows."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import oas

from corral.data.scaling import learn_scale
from corral.pool.covariance import left_out_losses, likely_shrinkage, shared_inverse_root, shrunk
from corral.pool.transforms import learn_transforms, repeated
from corral.pool.variable_selection import rank_statistics
from pool import pool_oracle
from support.tables import table

COVARIANCES = ("own", "shared", "diagonal", "selected")


def learn(covariance, X, codes, weights, n_classes, variables):
    """Transforms of classes of a table without categories."""
    return learn_transforms(
        covariance, X, codes, weights, n_classes, variables, np.zeros(X.shape[1], dtype=int)
    )


@pytest.mark.parametrize("covariance", ["own", "diagonal"])
def test_transforms_whiten_their_classes(covariance):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 4000)
    X = rng.normal(size=(8000, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.9], [0.0, 0.0, 0.5]])
    X[y == 1] = X[y == 1, ::-1] * 2.0 + 1.0
    for k, transform in enumerate(learn(covariance, X, y, None, 2, np.arange(3))):
        actual = np.cov(transform.coordinates(transform.centered(X[y == k])).T)
        if covariance == "own":
            assert_allclose(actual, np.eye(3), atol=0.05)
        assert_allclose(np.diag(actual), 1.0, atol=0.05)
        assert transform.log_determinant == pytest.approx(
            np.linalg.slogdet(transform.full_factor)[1], abs=1e-9
        )


def test_classes_of_one_row_or_none_have_the_shared_covariance():
    X, y = table(40, n_classes=2)
    y = y.copy()
    y[0] = 2
    own = learn("own", X, y, None, 4, np.arange(4))
    shared = learn("shared", X, y, None, 4, np.arange(4))
    for k in (2, 3):
        assert_array_equal(own[k].factor, shared[k].factor)
    assert_array_equal(own[2].mean, X[0])
    assert_allclose(own[3].mean, X.mean(axis=0))


def test_class_covariances_are_shrunk_more_than_oas_does():
    """Class covariances are shrunk towards the shared one as if classes had fewer rows than they have."""
    rng = np.random.default_rng(0)
    stretches = np.array([[1.0, 2.0, 1.0, 0.5], [1.0, 0.5, 1.0, 2.0]])
    shrinkages = []
    for n in (30, 200, 5000):
        y = np.repeat([0, 1], n)
        X = rng.normal(size=(2 * n, 4)) * stretches[y]
        residuals = X - np.array([X[y == k].mean(axis=0) for k in (0, 1)])[y]
        own, shared = (learn(kind, X, y, None, 2, np.arange(4))[0] for kind in ("own", "shared"))
        whitened = residuals[y == 0] @ shared.factor
        sample = whitened.T @ whitened / n
        # In the coordinates of the shared covariance: (1 - s) sample + s t I.
        inverse = np.linalg.inv(shared.factor) @ own.factor
        actual = np.linalg.inv(inverse @ inverse.T)
        off_diagonal = ~np.eye(4, dtype=bool)
        shrinkage = 1.0 - (actual * sample)[off_diagonal].sum() / (sample**2)[off_diagonal].sum()
        expected = (1.0 - shrinkage) * sample + shrinkage * np.trace(sample) / 4.0 * np.eye(4)
        assert_allclose(actual, expected, atol=1e-9)
        assert 1.2 * oas(whitened, assume_centered=True)[1] < shrinkage < 1.0
        shrinkages.append(shrinkage)
    assert shrinkages[0] > shrinkages[1] > shrinkages[2]
    assert shrinkages[2] < 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_judged_by_the_normal_density_of_the_others(weighted):
    X, y = table(20, 3)
    weights = np.random.default_rng(1).uniform(0.3, 1.5, 20) if weighted else np.ones(20)
    means = np.array([np.average(X[y == k], axis=0, weights=weights[y == k]) for k in range(3)])
    residuals = X - means[y]
    covariance = (residuals * weights[:, np.newaxis]).T @ residuals / weights.sum()
    shrinkages = np.array([1e-3, 0.05, 0.4, 1.0])
    variances, directions = np.linalg.eigh(covariance)
    actual = left_out_losses(variances, residuals @ directions, weights, y, shrinkages)
    expected = [pool_oracle.left_out_normal_loss(X, y, weights, shrinkage) for shrinkage in shrinkages]
    assert_allclose(actual, expected, rtol=1e-9)


def test_directions_without_variance_are_not_blurred():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    thin = rng.normal(size=(100, 4)) @ np.linalg.qr(rng.normal(size=(4, 4)))[0].T * [1.0, 1.0, 1.0, 0.01]
    round_ = rng.normal(size=(100, 4))
    likely = []
    for X in (thin, round_):
        variances, directions = np.linalg.eigh(X.T @ X / 100.0)
        likely.append(likely_shrinkage(variances, X @ directions, np.ones(100), y))
    assert likely[0] < 0.01
    assert likely[1] > 0.3
    root = shared_inverse_root(thin.T @ thin / 100.0, thin, np.ones(100), y)
    oas_covariance = shrunk(thin.T @ thin / 100.0, 100.0)
    assert np.linalg.eigvalsh(root)[-1] ** -2.0 < 0.2 * np.linalg.eigvalsh(oas_covariance)[0]


def test_rows_without_variance_have_the_identity_as_covariance():
    assert_array_equal(
        shared_inverse_root(np.zeros((2, 2)), np.zeros((4, 2)), np.ones(4), np.array([0, 0, 1, 1])), np.eye(2)
    )


def test_variances_against_loops():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [4, 9, 20])
    X = rng.normal(size=(33, 4)) * np.array([0.1, 1.0, 2.0])[y][:, np.newaxis]
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = rng.integers(0, 3, 33)
    X[y == 0, 2] = 1.0
    for k, transform in enumerate(learn("diagonal", X, y, None, 3, np.arange(4))):
        expected = [pool_oracle.class_variance(X[:, j], y, k) for j in range(4)]
        assert_allclose(transform.factor**-2.0, expected, rtol=1e-12)


def test_repeated_values():
    X = np.column_stack([np.arange(5.0), np.ones(5), [0.0, 0.0, 1.0, np.nan, np.nan], np.full(5, np.nan)])
    assert_allclose(repeated(X), [0.0, 1.0, 0.5, 1.0])


def test_selected_variables_are_those_that_differ():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    X = rng.uniform(size=(300, 20))
    X[y == 0, 3] = rng.normal(0.5, 0.05, 100)  # narrow
    X[y == 2, 7] = rng.normal(0.9, 0.05, 100)  # high
    ranks = learn_scale(X, None, "rank").transform(X)
    transforms = learn("selected", ranks, y, None, 3, np.arange(20))
    assert 3 in transforms[0].variables
    assert 7 in transforms[2].variables
    assert all(transform.variables.size <= 4 for transform in transforms)


def test_rank_statistics_are_about_chi_squared_without_differences():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = np.hstack(
        [rng.normal(size=(200, 500)), rng.integers(0, 2, (200, 500)), rng.integers(0, 5, (200, 500))]
    )
    ranks = learn_scale(X, None, "rank").transform(X)
    actual = rank_statistics(ranks, y, None, 3)
    assert_allclose(actual[:, :500].mean(), 2.0, atol=0.15)
    assert_allclose(actual[:, 500:1000].mean(), 1.0, atol=0.15)  # two values have a location and no spread
    assert (actual > -2.0 * math.log(0.01)).mean() < 0.015


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_columns_that_hardly_vary_count_by_their_range(covariance):
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 100)
    X = np.column_stack([rng.normal(codes, 1.0), (rng.random(200) < 0.02) * 1.0])
    X[codes == 0, 1] = 0.0  # the first class never has it
    X[150:153, 1] = 1.0
    scaled = learn_scale(X, None, "standard").transform(X)
    transforms = learn(covariance, scaled, codes, None, 2, np.arange(2))
    for transform in transforms:
        for k in np.flatnonzero(transform.variables == 1):
            assert np.linalg.norm(transform.full_factor[k]) == pytest.approx(1.0 / np.ptp(scaled[:, 1]))


def test_missing_values_are_expected_given_the_others():
    # Two variables with a correlation of 0.95: what one lacks is known from the other.
    rng = np.random.default_rng(0)
    first = rng.normal(size=4000)
    X = np.column_stack([first, 0.95 * first + math.sqrt(1 - 0.95**2) * rng.normal(size=4000)])
    X[rng.random(4000) < 0.5, 1] = np.nan
    (transform,) = learn("shared", X, np.zeros(4000, dtype=int), None, 1, np.arange(2))
    covariance = np.linalg.inv(transform.factor @ transform.factor.T)
    assert_allclose(covariance, [[1.0, 0.95], [0.95, 1.0]], atol=0.06)

"""Class densities of members: every path against plain loops, integrals, and rows that are left out."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

from corral.data.scaling import learn_scale
from corral.data.weights import effective_number
from corral.pool.bandwidths import Refinement
from corral.pool.densities import Mixture
from corral.pool.exponents import NO_GROUP
from corral.pool.fold_plan import FoldPlan
from corral.pool.kernel_members import KernelMember
from corral.pool.member_kind import Kernels
from corral.pool.scaled_rows import ScaledRows
from corral.pool.transforms import ClassTransform, learn_transforms
from corral.posterior import finite_log_densities, log_posterior
from corral.shapley import Coalitions
from pool import pool_oracle
from support.tables import NO_CATEGORIES, assert_integrates, labelled

COVARIANCES = ("own", "shared", "diagonal", "selected", "none")
N_CATEGORIES = np.array([0, 3, 0, 2, 0])
TABLES = ("complete", "missing", "categories")


def make_rows(table, n, seed):
    """Correlated columns, of which some values may be missing and two may be categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) @ (np.eye(5) + 0.4 * rng.normal(size=(5, 5)))
    if table == "categories":
        for j, size in enumerate(N_CATEGORIES):
            X[:, j] = rng.integers(0, size, n) if size else X[:, j]
    if table != "complete":
        X[rng.random(X.shape) < 0.25] = np.nan
    return X


def make_class(table, covariance, *, bandwidth=0.6, shrinkage=0.8, weighted=True):
    """The density of the first of two classes, learnt from both."""
    X, codes = make_rows(table, 50, 0), np.arange(50) % 2
    X[codes == 0, 0] += 1.0
    weights = np.random.default_rng(1).uniform(0.2, 1.0, 50) if weighted else None
    sizes = N_CATEGORIES if table == "categories" else np.zeros(5, dtype=int)
    transforms = learn_transforms(covariance, X, codes, weights, 2, np.flatnonzero(sizes == 0), sizes)
    first = codes == 0
    return Mixture(X[first], weights[first] if weighted else None, transforms[0], bandwidth, shrinkage)


KERNELS = [(covariance, 0.6, 0.8) for covariance in COVARIANCES] + [
    ("none", 0.4, 1.0),
    ("own", 1.0, 0.0),
    ("diagonal", 1.0, 0.0),
]


@pytest.mark.parametrize(("covariance", "bandwidth", "shrinkage"), KERNELS)
@pytest.mark.parametrize("table", TABLES)
def test_densities_against_loops(table, covariance, bandwidth, shrinkage):
    density = make_class(table, covariance, bandwidth=bandwidth, shrinkage=shrinkage)
    if shrinkage > 0.0 and density.transform.variables.size == 5:
        assert density.kernel_rows.complete == (table == "complete")
    x = np.vstack(
        [make_rows(table, 6, 2), make_rows("categories" if table == "categories" else "missing", 6, 3)]
    )
    expected = [pool_oracle.mixture_log_density(density, row) for row in x]
    assert_allclose(density.log_density(x), expected, rtol=1e-10, atol=1e-10)
    # Rows are left out by groups.
    group_ids, group_of_x = np.arange(25) // 3, np.arange(12) - 1
    left = [np.where(group_ids == group, 0.0, density.weights) for group in group_of_x]
    expected = [pool_oracle.mixture_log_density(density, *each) for each in zip(x, left, strict=True)]
    assert_allclose(density.log_density_without(x, group_ids, group_of_x), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("covariance", "shrinkage"),
    [("own", 0.8), ("diagonal", 0.8), ("none", 0.8), ("own", 0.0), ("diagonal", 0.0)],
)
@pytest.mark.parametrize("table", TABLES)
def test_variables_one_by_one_and_in_sets(table, covariance, shrinkage):
    density = make_class(table, covariance, bandwidth=0.6 if shrinkage else 1.0, shrinkage=shrinkage)
    x = make_rows(table, 5, 2)
    conditional, shares = density.conditionals(x)
    assert_allclose(shares.sum(axis=1), 1.0)
    for row, row_values in zip(x, conditional, strict=True):
        for j in range(5):
            without = np.where(np.arange(5) == j, np.nan, row)
            expected = pool_oracle.mixture_log_density(density, row) - pool_oracle.mixture_log_density(
                density, without
            )
            assert_allclose(row_values[j], expected, rtol=1e-8, atol=1e-8)
    coalitions = Coalitions.all(np.arange(5), 5)
    group_ids, group_of_x = np.arange(25), np.array([NO_GROUP, 3, 4, NO_GROUP, 24])
    actual = density.marginals(coalitions, group_ids)(x, group_of_x, None)
    for row, group, row_values in zip(x, group_of_x, actual, strict=True):
        weights = density.weights if shrinkage == 0.0 else np.where(group_ids == group, 0.0, density.weights)
        for members, value in zip(coalitions.members[::5], row_values[::5], strict=True):
            expected = pool_oracle.mixture_log_density(density, np.where(members, row, np.nan), weights)
            assert_allclose(value, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("table", ["complete", "categories"])
@pytest.mark.parametrize("covariance", ["own", "diagonal", "none"])
def test_a_missing_value_of_a_sample_is_an_integral(covariance, table):
    log_density = make_class(table, covariance).log_density
    assert_integrates(
        log_density, [0.3, 1.0, 0.2, 0.0, -0.4], [0, 4], range(3) if table == "categories" else ()
    )


def test_far_away_samples_keep_their_digits():
    density = make_class("complete", "own")
    x = np.zeros((2, 5))
    x[0, :3], x[1, 0] = [1e8, -2e8, 3e8], 1e100
    log_density = density.log_density(x)
    assert log_density[0] == pytest.approx(pool_oracle.mixture_log_density(density, x[0]), rel=1e-12)
    assert np.isfinite(log_density).all()
    # Beside rows far from the mean of the class, and near the sample, products would lose all digits.
    beside = np.array([[1e6, 0.0, 0.0, 0.0, 0.0]])
    density = make_class("complete", "none", bandwidth=0.4, shrinkage=1.0)
    density = replace(density, rows=np.vstack([density.rows[1:], beside]))
    expected = pool_oracle.mixture_log_density(density, beside[0] + 0.01)
    assert density.log_density(beside + 0.01)[0] == pytest.approx(expected, rel=1e-9)


def test_classes_without_variables_or_rows():
    nothing = np.array([], dtype=int)
    transform = ClassTransform.standard(nothing, np.empty(0), np.empty(0), NO_CATEGORIES)
    assert_allclose(Mixture(np.ones((3, 2)), None, transform, 0.5, 0.5).log_density(np.zeros((2, 2))), 0.0)
    nobody = Mixture(np.ones((0, 2)), None, transform, 0.5, 0.5)
    assert np.isneginf(nobody.log_density(np.zeros((2, 2)))).all()


@pytest.mark.parametrize("bandwidth", [0.3, 0.8, 1.0])
def test_shrunk_rows_keep_mean_and_covariance(bandwidth):
    density = make_class("complete", "shared", weighted=False)
    rows = density.rows
    shrinkage = math.sqrt(1.0 - bandwidth**2)
    density = replace(density, bandwidth=bandwidth, shrinkage=shrinkage)
    centers = density.centers
    assert_allclose(centers.mean(axis=0), rows.mean(axis=0), atol=1e-12)
    if bandwidth == 1.0:
        assert len(centers) == 1
    else:
        spread = shrinkage**2 * np.cov(rows.T, bias=True)
        assert_allclose(np.cov(centers.T, bias=True), spread, atol=1e-12)


# -------------------------------------------------------------------------------------- leave one out


def test_nothing_is_known_of_a_class_that_leaves_as_a_whole():
    X, y = make_rows("complete", 30, 0), np.arange(30) % 2
    y[4] = 2
    data = labelled(X, y)
    transforms = learn_transforms("own", data.X, data.codes, None, 3, np.arange(5), np.zeros(5, dtype=int))
    kernels, member = Kernels(np.ones(1), np.zeros(1)), KernelMember("", "", "standard")
    actual = member.left_out(transforms, data, data.X, np.arange(30), kernels)[0]
    assert np.isneginf(actual[4, 2])
    assert np.isfinite(np.delete(actual, 4, axis=0)).all()
    assert np.exp(log_posterior(finite_log_densities(actual)))[4, 2] < 1e-100  # the class gets no probability
    assert FoldPlan.without_folds(data, np.arange(30), np.full(3, 1 / 3)).weights[4] == 0.0


# ------------------------------------------------------------------------------------ refined bandwidths


def make_refinement(table, n=45, *, weighted=True, seed=0):
    """Rows of three classes with groups, and the sample by which their bandwidths are refined."""
    X, y, rng = make_rows(table, n, seed), np.arange(n) % 3, np.random.default_rng(seed)
    X[np.isnan(X).all(axis=1), 0] = 0.0
    sizes = N_CATEGORIES if table == "categories" else None
    groups = np.where(np.arange(n) < 4, 0, np.arange(n))
    weights = rng.uniform(0.3, 2.0, n) if weighted else None
    data = labelled(X, y, weights, groups=groups, n_categories=sizes)
    prior, scaled = (
        np.array([0.5, 0.3, 0.2]),
        learn_scale(data.X, data.weights, "standard", n_categories=sizes),
    )
    return data, prior, refinement(data, scaled.transform(data.X), prior)


def refinement(data, scaled, prior):
    variables = np.flatnonzero(data.category_counts == 0)
    transforms = learn_transforms(
        "none", scaled, data.codes, data.weights, prior.size, variables, data.category_counts
    )
    rows = replace(ScaledRows.learn(data, []), scaled={"standard": scaled})
    return Refinement(rows, "standard", transforms, prior, 0)


def test_refined_loss_against_loops():
    data, prior, state = make_refinement("complete")
    theta, log_power = np.array([0.3, -0.2, 0.8, 0.1, -0.5]), -0.4
    order = np.argsort(data.codes, kind="stable")
    expected = pool_oracle.refined_loss(
        state.rows, data.codes[order], data.group_ids[order], data.weights[order], state.plan.weights,
        prior, theta, log_power, deviation=0.4, count=effective_number(data.weights),
    )  # fmt: skip
    loss, _ = state.loss(np.append(theta, log_power), 0.4)
    assert loss == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("table", TABLES)
def test_refined_gradient_against_differences(table, weighted):
    *_, state = make_refinement(table, weighted=weighted)
    rng = np.random.default_rng(3)
    for _ in range(3):
        parameters = rng.normal(0.0, 0.4, 6)
        _, gradient = state.loss(parameters, 0.3)
        numerical = approx_fprime(parameters, lambda p: state.loss(p, 0.3)[0], 1e-7)
        assert_allclose(gradient, numerical, atol=2e-6)


@pytest.mark.parametrize("table", TABLES)
def test_refined_bandwidths_are_judged_by_the_densities_that_they_give(table):
    data, _, state = make_refinement(table)
    order = np.argsort(data.codes, kind="stable")
    theta = np.array([0.3, -0.2, 0.5, 0.1, 0.4])
    _, log_mean, _ = state.weigh(theta)
    numeric, category_theta = state.split(theta)
    for y, transform in enumerate(state.transforms):
        part = slice(state.starts[y], state.starts[y + 1])
        refined = transform.with_bandwidths(np.exp(-numeric), np.exp(2.0 * category_theta))
        density = Mixture(state.rows[part], data.weights[order][part], refined, 1.0, 1.0)
        expected = density.log_density_without(
            state.points, data.group_ids[order][part], data.group_ids[order]
        )
        assert_allclose(log_mean[:, y], expected, rtol=1e-10)


def test_refined_bandwidths_find_the_variables_that_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)  # jointly: neither says anything alone
    state = refinement(labelled(X, y), X, np.full(2, 0.5))
    theta = np.log(state.fit(0.4)[0].factor)
    assert theta[:2].min() > theta[2:].max() + 0.3
    assert np.ptp(np.log(state.fit(0.01)[0].factor)) < 0.1

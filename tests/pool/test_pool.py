"""The pool: members, their marginals, leave-one-out, refined bandwidths and weights, against plain loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad, quad
from scipy.optimize import approx_fprime, minimize
from sklearn.covariance import oas

from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.scaling import learn_scale
from corral.data.weights import effective_number
from corral.parallel import Computation
from corral.pool.bandwidths import refine, refined_loss
from corral.pool.calibration import Target, fit_log_weights
from corral.pool.covariance import shrunk
from corral.pool.cross_fitting import Candidate, sample_for_refinement
from corral.pool.densities import Mixture
from corral.pool.fold_plan import Trial, make_target
from corral.pool.leave_one_out import left_out_log_densities
from corral.pool.member_specs import KINDS, Kind, RowsInUnits
from corral.pool.search import fit_pool, search
from corral.pool.transforms import (
    ClassFrame,
    learn_frames,
    left_out_losses,
    likely_shrinkage,
    rank_statistics,
    repeated,
    shared_covariance,
)
from corral.pool.weights import even_classes, fit_weights, log_prior_shares, shares_of
from corral.posterior import known, log_of_prior, log_posterior, log_probability
from pool import pool_oracle

COVARIANCES = ("own", "shared", "diagonal", "selected")


def log_score(pool, X, computation):
    """Log prior and weighted log densities."""
    return pool.log_densities(X, computation) + log_of_prior(pool.prior)


def posterior(pool, score):
    """Log probabilities from log scores."""
    return log_probability(score, pool.prior, pool.lapse)


def table(n=60, d=4, n_classes=3, seed=0):
    """Correlated columns in different units, and classes that differ in place and spread."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    mixing = rng.normal(size=(d, d)) + np.eye(d)
    X = (
        rng.normal(size=(n, d)) * (1.0 + 0.3 * y[:, np.newaxis]) + 1.5 * rng.normal(size=(n_classes, d))[y]
    ) @ mixing
    return X * np.logspace(-2.0, 2.0, d), y


def labelled(X, y, weights=None, expected=None):
    return LabelledRows.sort(TrainingRows(X, y, weights), expected)


def pooled(X, y, weights=None, *, prior=None, seed=0, n_jobs=None, data=None):
    """A pool with empirical priors, unless they are given."""
    data = labelled(X, y, weights) if data is None else data
    empirical = prior is None
    prior = data.counts / data.counts.sum() if prior is None else prior
    return fit_pool(data, prior, np.random.RandomState(seed), Computation(n_jobs), empirical=empirical)


def random_mixture(d, n_axes, n=7, seed=0):
    """A mixture of which nothing is special; its volume is that of a full factor."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, n_axes)) + np.eye(d, n_axes)
    volume = float(np.linalg.slogdet(factor)[1]) if d == n_axes else 0.3
    return Mixture(
        np.arange(d), rng.normal(size=(n, d)), rng.uniform(0.1, 1.0, n), factor, volume, np.zeros(d), 1.0
    )


# -------------------------------------------------------------------------------------------- members


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_mixtures_against_loops(n_axes):
    mixture = random_mixture(3, n_axes)
    x = np.random.default_rng(1).normal(size=(20, 3)) * 3.0
    expected = [
        pool_oracle.mixture_log_density(
            row, mixture.centres, mixture.factor, mixture.log_volume, weights=mixture.weights
        )
        for row in x
    ]
    assert_allclose(mixture.log_density(x), expected, rtol=1e-12, atol=1e-12)


def test_far_away_mixtures_keep_their_digits():
    mixture = random_mixture(3, 3)
    x = np.array([[1e8, -2e8, 3e8], [1e100, 0.0, 0.0]])
    near = pool_oracle.mixture_log_density(
        x[0], mixture.centres, mixture.factor, mixture.log_volume, weights=mixture.weights
    )
    found = mixture.log_density(x)
    assert found[0] == pytest.approx(near, rel=1e-12)
    assert np.isfinite(found).all()


def test_marginal_of_two_variables_in_one():
    mixture = random_mixture(2, 2)
    for j in (0, 1):
        marginal = mixture.marginal(np.array([j]))
        for value in (-1.3, 0.2, 2.0):

            def density(other, j=j, value=value):
                x = np.array([[value, other]] if j == 0 else [[other, value]])
                return math.exp(mixture.log_density(x)[0])

            integral = quad(
                density, -30.0, 30.0, points=[-2.0, 0.0, 2.0], epsabs=1e-13, epsrel=1e-11, limit=200
            )[0]
            x = np.full((1, 2), value)
            assert math.exp(marginal.log_density(x)[0]) == pytest.approx(integral, rel=1e-8)


def test_marginals_of_three_variables_in_one_and_two():
    mixture = random_mixture(3, 3, n=2, seed=4)
    x = np.array([[0.4, -0.3, 0.8]])

    def density(u, v, w):
        return math.exp(mixture.log_density(np.array([[u, v, w]]))[0])

    over_last = quad(
        lambda w: density(0.4, -0.3, w), -30.0, 30.0, points=[-2.0, 0.0, 2.0], epsabs=1e-13, epsrel=1e-11
    )
    found = math.exp(mixture.marginal(np.array([0, 1])).log_density(x)[0])
    assert found == pytest.approx(over_last[0], rel=1e-8)
    centre = mixture.centres.mean(axis=0)
    over_both, _ = dblquad(
        lambda w, v: density(0.4, v, w), centre[1] - 14, centre[1] + 14, centre[2] - 14, centre[2] + 14,
        epsabs=1e-11, epsrel=1e-10,
    )  # fmt: skip
    found = math.exp(mixture.marginal(np.array([0])).log_density(x)[0])
    assert found == pytest.approx(over_both, rel=1e-8)


def test_marginals_take_the_schur_complement():
    mixture = random_mixture(4, 4, seed=2)
    P = mixture.factor @ mixture.factor.T
    kept, others = np.array([0, 2]), np.array([1, 3])
    expected = P[np.ix_(kept, kept)] - P[np.ix_(kept, others)] @ np.linalg.solve(
        P[np.ix_(others, others)], P[np.ix_(others, kept)]
    )
    marginal = mixture.marginal(kept)
    assert_allclose(marginal.factor @ marginal.factor.T, expected, rtol=1e-10, atol=1e-12)
    assert_allclose(2.0 * marginal.log_volume, np.linalg.slogdet(expected)[1], rtol=1e-10)
    twice = mixture.marginal(np.array([0, 1, 2])).marginal(kept)
    x = np.random.default_rng(0).normal(size=(9, 4))
    assert_allclose(twice.log_density(x), marginal.log_density(x), rtol=1e-10)


def test_singular_precisions_lose_one_term():
    """Leaving variable j out takes (P d)_j^2 / P_jj from the quadratic form, where P has no inverse, too."""
    mixture = random_mixture(4, 2, n=1, seed=3)
    P = mixture.factor @ mixture.factor.T
    x = np.random.default_rng(5).normal(size=(6, 4))
    for j in range(4):
        marginal = mixture.marginal(np.delete(np.arange(4), j))
        differences = x - mixture.centres
        form = np.vecdot(differences @ P, differences) - (differences @ P)[:, j] ** 2 / P[j, j]
        expected = mixture.log_volume - 0.5 * math.log(P[j, j]) - 0.5 * form - 0.5 * math.log(2.0 * math.pi)
        assert_allclose(marginal.log_density(x), expected, rtol=1e-10)


def test_marginal_of_no_variable_is_one():
    assert_allclose(
        random_mixture(3, 3).marginal(np.array([], dtype=int)).log_density(np.zeros((2, 3))), 0.0, atol=1e-12
    )


def test_variables_that_take_no_part_are_uniform():
    mixture = Mixture(
        np.array([1]), np.array([[0.2], [0.4]]), None, np.array([[2.0]]), math.log(2.0), np.zeros(1), 1.0
    )
    x = np.array([[0.1, 0.3, 0.9], [0.7, 0.3, 0.1]])
    found = mixture.log_density(x)
    assert found[0] == found[1]
    assert_array_equal(mixture.marginal(np.array([0, 1])).log_density(x), found)


def test_pulled_rows_keep_mean_and_covariance():
    X, y = table(90)
    scaled = learn_scale(X, None, "standard").transform(X)
    frames = learn_frames("shared", scaled, y, None, 3, np.arange(4))
    for bandwidth in (0.3, 0.8, 1.0):
        pull = math.sqrt(1.0 - bandwidth**2)
        rows = scaled[y == 1]
        mixture = Mixture.of_rows(rows, None, frames[1], bandwidth, pull)
        assert_allclose(mixture.centres.mean(axis=0), rows.mean(axis=0), atol=1e-12)
        blur = np.linalg.inv(mixture.factor @ mixture.factor.T)
        spread = pull**2 * np.cov(rows.T, bias=True)
        of_frame = np.linalg.inv(frames[1].factor @ frames[1].factor.T)
        assert_allclose(blur, bandwidth**2 * of_frame, rtol=1e-8, atol=1e-12)
        if bandwidth == 1.0:
            assert len(mixture.centres) == 1
        else:
            assert_allclose(np.cov(mixture.centres.T, bias=True), spread, atol=1e-12)


# --------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("covariance", ["own", "diagonal"])
def test_frames_whiten_their_classes(covariance):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 4000)
    X = rng.normal(size=(8000, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.9], [0.0, 0.0, 0.5]])
    X[y == 1] = X[y == 1, ::-1] * 2.0 + 1.0
    for k, frame in enumerate(learn_frames(covariance, X, y, None, 2, np.arange(3))):
        found = np.cov(frame.coordinates(X[y == k]).T)
        if covariance == "own":
            assert_allclose(found, np.eye(3), atol=0.05)
        assert_allclose(np.diag(found), 1.0, atol=0.05)
        assert frame.log_volume == pytest.approx(np.linalg.slogdet(frame.factor)[1], abs=1e-9)


def test_classes_of_one_row_or_none_have_the_shared_covariance():
    X, y = table(40, n_classes=2)
    y = y.copy()
    y[0] = 2
    own = learn_frames("own", X, y, None, 4, np.arange(4))
    shared = learn_frames("shared", X, y, None, 4, np.arange(4))
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
        own, shared = (learn_frames(kind, X, y, None, 2, np.arange(4))[0] for kind in ("own", "shared"))
        whitened = residuals[y == 0] @ shared.factor
        sample = whitened.T @ whitened / n
        # In the coordinates of the shared covariance: (1 - s) sample + s t I.
        inverse = np.linalg.inv(shared.factor) @ own.factor
        found = np.linalg.inv(inverse @ inverse.T)
        off_diagonal = ~np.eye(4, dtype=bool)
        shrinkage = 1.0 - (found * sample)[off_diagonal].sum() / (sample**2)[off_diagonal].sum()
        expected = (1.0 - shrinkage) * sample + shrinkage * np.trace(sample) / 4.0 * np.eye(4)
        assert_allclose(found, expected, atol=1e-9)
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
    found = left_out_losses(covariance, residuals, weights, y, shrinkages)
    expected = [pool_oracle.left_out_normal_loss(X, y, weights, shrinkage) for shrinkage in shrinkages]
    assert_allclose(found, expected, rtol=1e-9)


def test_directions_without_variance_are_not_blurred():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    thin = rng.normal(size=(100, 4)) @ np.linalg.qr(rng.normal(size=(4, 4)))[0].T * [1.0, 1.0, 1.0, 0.01]
    round_ = rng.normal(size=(100, 4))
    likely = [likely_shrinkage(X.T @ X / 100.0, X, np.ones(100), y) for X in (thin, round_)]
    assert likely[0] < 0.01
    assert likely[1] > 0.3
    covariance = shared_covariance(thin.T @ thin / 100.0, thin, np.ones(100), y)
    usual = shrunk(thin.T @ thin / 100.0, 100.0)
    assert np.linalg.eigvalsh(covariance)[0] < 0.2 * np.linalg.eigvalsh(usual)[0]


def test_rows_without_variance_have_unit_covariance():
    assert_array_equal(
        shared_covariance(np.zeros((2, 2)), np.zeros((4, 2)), np.ones(4), np.array([0, 0, 1, 1])), np.eye(2)
    )


def test_variances_against_loops():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [4, 9, 20])
    X = rng.normal(size=(33, 4)) * np.array([0.1, 1.0, 2.0])[y][:, np.newaxis]
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = rng.integers(0, 3, 33)
    X[y == 0, 2] = 1.0
    for k, frame in enumerate(learn_frames("diagonal", X, y, None, 3, np.arange(4))):
        expected = [pool_oracle.class_variance(X[:, j], y, k) for j in range(4)]
        assert_allclose(np.diag(frame.factor) ** -2.0, expected, rtol=1e-12)


def test_few_rows_tell_that_a_class_varies_less():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    x = rng.normal(size=60) * np.array([0.02, 1.0, 1.0])[y]
    frames = learn_frames("diagonal", x[:, np.newaxis], y, None, 3, np.arange(1))
    assert 0.02 < 1.0 / frames[0].factor[0, 0] < 0.05  # 0.3 if two rows were added to the sum of squares
    flag = np.where(y == 0, 0.0, rng.integers(0, 2, 60))
    frames = learn_frames("diagonal", flag[:, np.newaxis], y, None, 3, np.arange(1))
    assert 1.0 / frames[0].factor[0, 0] > 0.1  # it may not have had a 1 yet


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
    frames = learn_frames("selected", ranks, y, None, 3, np.arange(20))
    assert 3 in frames[0].variables
    assert 7 in frames[2].variables
    assert all(frame.variables.size <= 4 for frame in frames)


def test_rank_statistics_are_about_chi_squared_without_differences():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = np.hstack(
        [rng.normal(size=(200, 500)), rng.integers(0, 2, (200, 500)), rng.integers(0, 5, (200, 500))]
    )
    ranks = learn_scale(X, None, "rank").transform(X)
    found = rank_statistics(ranks, y, None, 3)
    assert_allclose(found[:, :500].mean(), 2.0, atol=0.15)
    assert_allclose(found[:, 500:1000].mean(), 1.0, atol=0.15)  # two values have a location and no spread
    assert (found > -2.0 * math.log(0.01)).mean() < 0.015


# -------------------------------------------------------------------------------------- leave one out


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("weighted", [False, True])
def test_left_out_against_loops(covariance, weighted):
    X, y = table(36)
    rng = np.random.default_rng(2)
    data = labelled(X, y, rng.uniform(0.2, 2.0, 36) if weighted else None)
    units = np.arange(36) // 3  # groups of rows from all classes
    data = LabelledRows(data.X, data.codes, data.weights, data.labels, data.counts, data.numbers, units, None)
    scaled = learn_scale(data.X, data.weights, "rank").transform(data.X)
    frames = learn_frames(covariance, scaled, data.codes, data.weights, 3, np.arange(4))
    bandwidths, pulls = np.array([0.4, 1.0, 0.7]), np.array([0.9, 0.0, 1.0])
    points = np.arange(0, 36, 5)
    found = left_out_log_densities(frames, data, scaled, points, bandwidths, pulls)
    weights = np.ones(36) if data.weights is None else data.weights
    for k, (bandwidth, pull) in enumerate(zip(bandwidths, pulls, strict=True)):
        for i, point in enumerate(points):
            left = np.where(units == units[point], 0.0, weights)
            for a, frame in enumerate(frames):
                of_class = data.codes == a
                expected = pool_oracle.pulled_log_density(
                    scaled[point, frame.variables],
                    scaled[of_class][:, frame.variables],
                    frame.mean,
                    frame.factor,
                    frame.log_volume,
                    bandwidth=bandwidth,
                    pull=pull,
                    weights=left[of_class],
                )
                assert found[k, i, a] == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_nothing_is_known_of_a_class_that_leaves_as_a_whole():
    X, y = table(30)
    y = y.copy()
    y[y == 2] = 1
    y[4] = 2
    data = labelled(X, y)
    frames = learn_frames("own", data.X, data.codes, None, 3, np.arange(4))
    found = left_out_log_densities(frames, data, data.X, np.arange(30), np.ones(1), np.zeros(1))[0]
    assert np.isneginf(found[4, 2])
    assert np.isfinite(np.delete(found, 4, axis=0)).all()
    assert np.isfinite(known(found)).all()
    assert np.exp(log_posterior(known(found)))[4, 2] < 1e-100  # the class gets no probability
    assert make_target(data, np.arange(30), np.full(3, 1 / 3)).weights[4] == 0.0


def test_frames_do_not_see_the_fold_they_predict():
    """Labels of a fold may be anything: what is said of its rows in other classes' terms stays the same."""
    X, y = table(60, n_classes=2)
    data = labelled(X, y)
    prior = np.full(2, 0.5)
    trial = Trial.prepare(data, np.arange(60), prior, 0.01, np.random.RandomState(0))
    shuffled = y.copy()
    inside = np.flatnonzero(trial.divisions[0] == 0)
    shuffled[inside] = 1 - shuffled[inside]
    other = labelled(X, shuffled)
    for covariance in COVARIANCES:
        outside = trial.divisions[0] != 0
        first = learn_frames(covariance, data.X[outside], data.codes[outside], None, 2, np.arange(4))
        second = learn_frames(covariance, other.X[outside], other.codes[outside], None, 2, np.arange(4))
        for a, b in zip(first, second, strict=True):
            assert_array_equal(a.factor, b.factor)


# ------------------------------------------------------------------------------------ refined bandwidths


def in_units(data):
    return RowsInUnits.learn(data, KINDS)


def refinement(n=24, d=3, seed=0, weighted=True):
    X, y = table(n, d, seed=seed)
    rng = np.random.default_rng(seed)
    data = labelled(X, y, rng.uniform(0.3, 2.0, n) if weighted else None)
    units = np.where(np.arange(n) < 4, 0, np.arange(n))
    data = LabelledRows(data.X, data.codes, data.weights, data.labels, data.counts, data.numbers, units, None)
    prior = np.array([0.5, 0.3, 0.2])
    scaled = learn_scale(data.X, data.weights, "standard").transform(data.X)
    return data, scaled, prior, sample_for_refinement(in_units(data), scaled, prior, 0)


def test_refined_loss_against_loops():
    data, scaled, prior, sample = refinement()
    theta, log_power = np.array([0.3, -0.2, 0.8]), -0.4
    order = np.argsort(data.codes, kind="stable")
    expected = pool_oracle.refined_loss(
        scaled[order], data.codes[order], data.units[order], data.weights[order], sample.target.weights,
        prior, theta, log_power, deviation=0.4, count=effective_number(data.weights),
    )  # fmt: skip
    found, _ = refined_loss(np.append(theta, log_power), sample, 0.4)
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_refined_gradient_against_differences(weighted):
    *_, sample = refinement(40, 4, weighted=weighted)
    rng = np.random.default_rng(3)
    for _ in range(3):
        parameters = rng.normal(0.0, 0.4, 5)
        _, gradient = refined_loss(parameters, sample, 0.3)
        numerical = approx_fprime(parameters, lambda p: refined_loss(p, sample, 0.3)[0], 1e-7)
        assert_allclose(gradient, numerical, atol=2e-6)


def test_refined_bandwidths_find_the_variables_that_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)  # jointly: neither says anything alone
    data = labelled(X, y)
    theta = refine(sample_for_refinement(in_units(data), X, np.full(2, 0.5), 0), 0.4)
    assert theta[:2].min() > theta[2:].max() + 0.3
    strong = refine(sample_for_refinement(in_units(data), X, np.full(2, 0.5), 0), 0.01)
    assert np.ptp(strong) < 0.1


# ------------------------------------------------------------------------------------------- weights


def random_pool(n_members=3, n=50, n_classes=3):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, n)
    log_density = rng.normal(size=(n_members, n, n_classes))
    log_density[:, np.arange(n), codes] += np.arange(n_members)[:, np.newaxis]
    weights = rng.uniform(0.1, 1.0, n)
    prior = np.array([0.5, 0.3, 0.2])
    return log_density, Target(codes, weights / weights.sum(), np.log(prior), 40.0), prior


def test_weights_minimise_the_penalised_log_loss():
    log_density, target, prior = random_pool()
    center = np.array([-1.0, 0.3, 0.1])

    def loss(u):
        return pool_oracle.pooled_log_loss(
            log_density,
            u,
            target.codes,
            target.weights,
            prior,
            center=center,
            deviation=0.7,
            count=target.count,
        )

    found, value = fit_log_weights(log_density, target, center, 0.7)
    assert value == pytest.approx(loss(found), abs=1e-8)
    best = minimize(loss, center, method="BFGS", options={"gtol": 1e-7})
    assert loss(found) <= best.fun + 1e-9
    assert_allclose(found, best.x, atol=1e-4)
    elsewhere, _ = fit_log_weights(log_density, target, center, 0.7, start=center + 3.0)
    assert_allclose(elsewhere, found, atol=1e-4)


def test_a_weak_prior_lets_a_useless_member_go():
    log_density, target, _ = random_pool()
    found, _ = fit_log_weights(log_density, target, np.zeros(3), 3.0)
    assert found[0] < found[1] < found[2]


def test_points_without_weight_change_nothing():
    log_density, target, _ = random_pool()
    left_out = np.arange(50) < 10
    some = fit_log_weights(log_density, target.without(left_out), np.zeros(3), 1.0)
    kept = ~left_out
    weights = target.weights[kept] / target.weights[kept].sum()
    same = Target(target.codes[kept], weights, target.log_prior, target.count)
    expected = fit_log_weights(log_density[:, kept], same, np.zeros(3), 1.0)
    assert_allclose(some[0], expected[0], atol=1e-10)


def test_points_of_classes_that_are_ruled_out_change_nothing():
    log_density, target, _ = random_pool()
    possible = target.codes < 2
    log_prior = np.array([np.log(0.6), np.log(0.4), -np.inf])
    ruled_out = replace(target.without(~possible), log_prior=log_prior)
    found = fit_log_weights(log_density, ruled_out, np.zeros(3), 1.0)
    same = Target(target.codes[possible], ruled_out.weights[possible], log_prior[:2], target.count)
    expected = fit_log_weights(log_density[:, possible, :2], same, np.zeros(3), 1.0)
    assert_allclose(found[0], expected[0], atol=1e-10)
    assert found[1] == pytest.approx(expected[1], rel=1e-12)


def test_members_that_are_clearly_worse_are_expected_to_have_small_shares():
    shares = np.exp(log_prior_shares(np.array([0.5, 0.4, 0.4, 9.0])))
    assert shares.sum() == pytest.approx(1.0)
    assert_allclose(shares / shares[1], [math.exp(-1.0), 1.0, 1.0, math.exp(-4.0)])


def two_members(n, common, own, seed):
    """Members with log density ratios of -1 or 1, by class, plus an error of both and one of their own.

    If only the second kind of error exists, the log odds are the sum of 2 / own**2 times the ratios.
    """
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    tried = np.zeros((2, 1, n, 2))
    tried[:, 0, :, 1] = 2.0 * codes - 1.0 + common * rng.normal(size=n)
    tried[:, 0, :, 1] += np.broadcast_to(own, 2)[:, np.newaxis] * rng.normal(size=(2, n))
    target = Target(codes, np.full(n, 1.0 / n), np.log([0.5, 0.5]), float(n))
    return [
        Candidate.calibrate(kind, of_kind, target) for kind, of_kind in zip(KINDS, tried, strict=False)
    ], target


def test_weights_of_members_that_are_alike_stay_nearly_equal_in_small_tables():
    """Their log losses hardly differ: without a prior, chance would give one of them all the weight."""
    smaller = []
    for seed in range(20):
        members, target = two_members(30, 1.5, 0.3, seed)
        smaller.append(shares_of(members, fit_weights(members, target)).min())
    assert np.mean(smaller) > 0.3


def test_many_rows_give_members_the_weights_that_the_log_odds_have():
    own = np.array([1.0, 1.5])
    members, target = two_members(20_000, 0.0, own, 0)
    assert_allclose(np.exp(fit_weights(members, target)), 2.0 / own**2, rtol=0.1)


# ------------------------------------------------------------------------------------------- the pool


@pytest.fixture(scope="module")
def fitted():
    X, y = table(150, 5)
    return X, y, pooled(X, y)


def test_log_scores_against_a_loop_over_members(fitted):
    X, _, pool = fitted
    queries = X[:7] * 1.1 + 0.01
    found = log_score(pool, queries, Computation())
    for i, query in enumerate(queries):
        densities = []
        for member in pool.members:
            scaled = member.scale.transform(query[np.newaxis])[0]
            densities.append(
                [
                    pool_oracle.mixture_log_density(
                        scaled[m.variables], m.centres, m.factor, m.log_volume, weights=m.weights
                    )
                    for m in member.classes
                ]
            )
        expected = np.log(pool.prior) + pool.weights @ np.array(densities)
        assert_allclose(found[i], expected, rtol=1e-10, atol=1e-10)
    assert_allclose(np.exp(posterior(pool, found)).sum(axis=1), 1.0, rtol=1e-12)
    shares = np.exp(posterior(pool, found))
    assert (shares >= pool.lapse * pool.prior * (1.0 - 1e-12)).all()


def test_members_are_those_of_the_table(fitted):
    _, _, pool = fitted
    kept = pool.table["weight"] > 0.0
    assert len(pool.members) == kept.sum() <= 6
    assert_allclose(np.sort(pool.weights), np.sort(pool.table["weight"][kept]))
    assert {member.name for member in pool.members} == set(pool.table["member"][kept])
    assert pool.table["share"].sum() == pytest.approx(1.0)
    assert (pool.table["share"][kept] >= 0.02).all()
    shares = pool.weights * pool.temperatures
    assert (np.diff(shares) <= 0.0).all()
    assert pool.scores.log_loss < pool.table["log_loss"].min() + 0.05


def test_scores_agree_with_new_rows():
    X, y = table(900, 5, seed=1)
    pool = pooled(X[:300], y[:300])
    proba = posterior(pool, log_score(pool, X[300:], Computation()))
    accuracy = (proba.argmax(axis=1) == y[300:]).mean()
    log_loss = -proba[np.arange(600), y[300:]].mean()
    assert abs(pool.scores.accuracy - accuracy) < 0.05
    assert abs(pool.scores.log_loss - log_loss) < 0.08
    assert pool.scores.balanced_accuracy == pytest.approx(pool.scores.recall.mean())


def test_same_bits_on_any_number_of_threads(fitted):
    X, y, pool = fitted
    again = pooled(X, y, n_jobs=2)
    assert_array_equal(again.weights, pool.weights)
    assert_array_equal(log_score(again, X, Computation(2)), log_score(pool, X, Computation()))
    one = np.concatenate([log_score(pool, X[i : i + 1], Computation()) for i in range(9)])
    assert_allclose(one, log_score(pool, X[:9], Computation()), rtol=1e-10, atol=1e-10)


def test_progress_is_shown_if_asked_for(capsys):
    X, y = table(30)
    data = labelled(X, y)
    fit_pool(data, np.full(3, 1.0 / 3.0), np.random.RandomState(0), Computation(verbose=1))
    shown = capsys.readouterr()
    assert "Search" in shown.err
    assert not shown.out


def test_order_of_rows_changes_nothing():
    X, y = table(600, 5)  # more rows than are asked for refined bandwidths
    order = np.random.default_rng(0).permutation(600)
    first, second = pooled(X, y), pooled(X[order], y[order])
    assert_allclose(
        log_score(second, X, Computation()), log_score(first, X, Computation()), rtol=1e-5, atol=1e-5
    )
    assert second.scores.accuracy == pytest.approx(first.scores.accuracy, abs=1e-9)
    assert second.scores.log_loss == pytest.approx(first.scores.log_loss, abs=1e-6)


def test_rescaled_weights_change_nothing(fitted):
    X, y, _ = fitted
    weights = np.random.default_rng(0).uniform(0.2, 1.0, len(y))
    first, second = pooled(X, y, weights), pooled(X, y, 1e-9 * weights)
    assert_allclose(
        log_score(second, X, Computation()), log_score(first, X, Computation()), rtol=1e-6, atol=1e-6
    )
    assert second.lapse == pytest.approx(first.lapse)
    assert first.lapse == pytest.approx(1.0 / (effective_number(weights) + 2.0))


def test_weights_count():
    """Rows of hardly any weight might as well not be there."""
    X, y = table(450, 5)
    X, X_new, y, y_new = X[:150], X[150:], y[:150], y[150:]
    rng = np.random.default_rng(0)
    noise = np.vstack([X, rng.uniform(X.min(axis=0), X.max(axis=0), size=(150, 5))])
    light, heavy = (pooled(noise, np.tile(y, 2), np.repeat([1.0, w], 150)) for w in (1e-12, 1.0))
    assert light.scores.accuracy > heavy.scores.accuracy + 0.1
    accuracies = [
        (log_score(pool, X_new, Computation()).argmax(axis=1) == y_new).mean()
        for pool in (light, heavy, pooled(X, y))
    ]
    assert accuracies[0] > accuracies[1] + 0.03
    assert accuracies[0] == pytest.approx(accuracies[2], abs=0.02)


def test_copies_are_one_row(fitted):
    X, y, pool = fitted
    twice = pooled(np.vstack([X, X]), np.concatenate([y, y]))
    assert_allclose(twice.scores.accuracy, pool.scores.accuracy, atol=1e-12)
    assert_allclose(
        log_score(twice, X, Computation()), log_score(pool, X, Computation()), rtol=1e-9, atol=1e-9
    )


def test_units_leave_together():
    """Labels are random by group, and rows of a group alike: only groups that leave as a whole show it."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    X = rng.normal(size=(40, 4))[groups] + 0.05 * rng.normal(size=(200, 4))
    y = rng.integers(0, 2, 40)[groups]
    alone = labelled(X, y)
    together = LabelledRows(
        alone.X, alone.codes, None, alone.labels, alone.counts, alone.numbers, groups, None
    )
    assert pooled(X, y).scores.accuracy > 0.95
    assert pooled(X, y, data=together).scores.accuracy < 0.65


@pytest.mark.all_divisions
def test_noise_scores_at_chance():
    scores = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores.append(pooled(rng.normal(size=(120, 5)), rng.integers(0, 2, 120), seed=seed).scores)
    assert np.mean([score.accuracy for score in scores]) < 0.56  # of 60 seeds it is 0.512
    assert np.mean([score.log_loss for score in scores]) < 0.75


def test_wide_tables_select_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2000))
    y = np.arange(60) % 4
    pool = pooled(X, y)
    assert pool.scores.accuracy < 0.45  # selected inside the folds
    X[:, :10] += 2.0 * rng.normal(size=(4, 10))[y]
    pool = pooled(X, y)
    assert pool.scores.accuracy > 0.9
    assert all(mixture.variables.size <= 30 for member in pool.members for mixture in member.classes)


def test_uniform_priors_weigh_classes_alike():
    rng = np.random.default_rng(0)
    y = (np.arange(200) < 12).astype(int)
    X = rng.normal(size=(200, 3)) + 1.2 * y[:, np.newaxis]
    uniform = pooled(X, y, prior=np.full(2, 0.5))
    empirical = pooled(X, y)
    assert uniform.scores.recall[1] > empirical.scores.recall[1]
    assert uniform.scores.accuracy == pytest.approx(uniform.scores.balanced_accuracy)
    assert empirical.scores.accuracy > uniform.scores.accuracy


def test_classes_of_one_row_and_of_none():
    X, y = table(40, n_classes=2)
    y = y.copy()
    y[0] = 2
    data = labelled(X, y, expected=np.arange(4))
    pool = fit_pool(data, data.counts / data.counts.sum(), np.random.RandomState(0), Computation())
    score = log_score(pool, X, Computation())
    assert np.isneginf(score[:, 3]).all()
    assert np.isfinite(score[:, :3]).all()
    assert pool.scores.recall[2] == 0.0
    assert np.isnan(pool.scores.recall[3])
    assert np.isfinite(pooled(X, y).scores.log_loss)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(n):
    X, y = table(n)
    pool = pooled(X, y)
    log_proba = posterior(pool, log_score(pool, X + 1.0, Computation()))
    assert_allclose(np.exp(log_proba).sum(axis=1), 1.0)
    assert np.isfinite(pool.scores.log_loss)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "case", ["huge", "tiny", "outlier", "collinear", "class of one value", "wild weights"]
)
def test_awkward_tables(case):
    X, y = table(60, 4, 2)
    weights = None
    if case in ("huge", "tiny"):
        X = X * {"huge": 1e200, "tiny": 1e-200}[case]
    elif case == "outlier":
        X[0, 0] = 1e15
    elif case == "collinear":
        X[:, 1] = X[:, 0]
    elif case == "class of one value":
        X[y == 0, 1] = 0.0
    else:
        weights = 10.0 ** np.random.default_rng(0).uniform(-30.0, 3.0, 60)
    pool = pooled(X, y, weights)
    score = log_score(pool, np.vstack([X, 1e3 * X]), Computation())
    assert np.isfinite(score).all()
    if weights is None:
        assert pool.scores.accuracy > 0.6


@pytest.mark.parametrize("n_classes", [1, 2])
def test_constant_columns_say_nothing(n_classes):
    X, y = table(40, n_classes=2)
    y = y % n_classes
    with_constant = np.hstack([X, np.full((40, 1), 7.0)])
    pool = pooled(with_constant, y)
    score = log_score(pool, with_constant, Computation())
    other = with_constant.copy()
    other[:, -1] = -1e6
    assert_array_equal(log_score(pool, other, Computation()), score)
    assert np.isfinite(score).all()
    nothing = pooled(np.ones((40, 2)), y)
    assert_allclose(log_score(nothing, np.ones((1, 2)), Computation())[0], np.log(nothing.prior), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_stands_on_its_own(kind):
    X, y = table(60)
    data = labelled(X, y)
    pool = fit_pool(data, np.full(3, 1.0 / 3.0), np.random.RandomState(0), Computation(), [kind])
    assert [member.name for member in pool.members] == [kind.name]
    assert pool.scores.accuracy > 0.6
    assert_allclose(pool.weights * pool.temperatures, 1.0, rtol=0.1)  # its own temperature, nearly


def test_normal_densities_with_the_shared_covariance_are_linear_discriminants():
    X, y = table(90, 3)
    (kind,) = (kind for kind in KINDS if kind.normal and kind.covariance == "shared")
    pool = fit_pool(labelled(X, y), np.full(3, 1.0 / 3.0), np.random.RandomState(0), Computation(), [kind])
    (member,) = pool.members
    assert [len(of_class.centres) for of_class in member.classes] == [1, 1, 1]
    start, step = X[:5], np.array([0.3, -0.2, 0.1])
    scores = [log_score(pool, start + k * step, Computation()) for k in range(3)]
    odds = [score[:, 1:] - score[:, :1] for score in scores]
    assert_allclose(odds[2] - odds[1], odds[1] - odds[0], atol=1e-10)


def test_frames_without_variables():
    frame = ClassFrame(np.array([], dtype=int), np.empty(0), np.empty((0, 0)), 0.0)
    mixture = Mixture.of_rows(np.ones((3, 2)), None, frame, 0.5, 0.5)
    assert_allclose(mixture.log_density(np.zeros((2, 2))), 0.0)
    nobody = Mixture.of_rows(np.ones((0, 2)), None, frame, 0.5, 0.5)
    assert np.isneginf(nobody.log_density(np.zeros((2, 2)))).all()


@pytest.mark.parametrize("covariance", ["own", "shared", "diagonal", "selected"])
def test_columns_that_hardly_vary_count_by_their_range(covariance):
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 100)
    X = np.column_stack([rng.normal(codes, 1.0), (rng.random(200) < 0.02) * 1.0])
    X[codes == 0, 1] = 0.0  # the first class never has it
    X[150:153, 1] = 1.0
    scaled = learn_scale(X, None, "standard").transform(X)
    frames = learn_frames(covariance, scaled, codes, None, 2, np.arange(2))
    for frame in frames:
        for k in np.flatnonzero(frame.variables == 1):
            assert np.linalg.norm(frame.factor[k]) == pytest.approx(1.0 / np.ptp(scaled[:, 1]))


def test_a_rare_flag_does_not_decide():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 50)
    X = rng.normal(size=(150, 4)) + 4.0 * np.eye(3, 4)[codes]
    X[:, 3] = 0.0
    X[50, 3] = 1.0  # one row of the second class
    pool = pooled(X, codes)
    flagged = X.copy()
    flagged[:, 3] = 1.0
    score = log_score(pool, flagged, Computation())
    assert (score.argmax(axis=1) == codes).mean() > 0.8  # by variances of classes 0.33


def test_normal_scores():
    rng = np.random.default_rng(0)
    x, weights = rng.integers(0, 9, 200).astype(float), rng.uniform(0.1, 1.0, 200)
    scores = learn_scale(x[:, np.newaxis], weights, "score").transform(x[:, np.newaxis])[:, 0]
    assert np.average(scores, weights=weights) == pytest.approx(0.0, abs=1e-12)
    assert 0.5 < np.average(scores**2, weights=weights) < 1.0  # ties lower it
    again = learn_scale(np.exp(x)[:, np.newaxis], weights, "score").transform(np.exp(x)[:, np.newaxis])
    assert_allclose(again[:, 0], scores, atol=1e-12)
    assert (np.diff(scores[np.argsort(x, kind="stable")]) >= 0.0).all()
    normal = rng.normal(size=(5000, 1))
    assert_allclose(
        learn_scale(normal, None, "score").transform(normal),
        (normal - normal.mean()) / normal.std(),
        atol=0.5,
    )


# ------------------------------------------------------------------------------------------ seeds and names


def rearranged(X, y, seed=0):
    """The same rows in another order, columns in another order and some of them with the other sign."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    signs = rng.choice([-1.0, 1.0], X.shape[1])
    return rows, (X * signs)[rows][:, columns], (2 - y)[rows]


@pytest.mark.all_divisions
def test_probabilities_hardly_depend_on_seed_and_not_on_names():
    rng = np.random.default_rng(0)
    y = np.arange(540) % 2
    X = rng.normal(size=(540, 10)) + 0.5 * np.outer(y, np.arange(10) < 5)
    X_train, y_train, X_test = X[:40], y[:40], X[40:]

    def proba(X, y, X_test, seed):
        random, prior = np.random.RandomState(seed), np.full(2, 0.5)
        pool = fit_pool(labelled(X, y), prior, random, Computation(), KINDS[:6])
        return np.exp(posterior(pool, log_score(pool, X_test, Computation())))

    first = proba(X_train, y_train, X_test, 0)
    order = rng.permutation(10)
    renamed = proba(-X_train[::-1, order], 1 - y_train[::-1], -X_test[:, order], 0)
    assert_allclose(renamed[:, ::-1], first, atol=1e-6)
    assert np.abs(proba(X_train, y_train, X_test, 1) - first).mean() < 0.014  # with one division 0.019


@pytest.mark.all_divisions
def test_rows_left_out_are_ranked_by_one_division():
    X, y = table(50)
    data = labelled(X, y)
    whole = RowsInUnits.learn(data, KINDS)
    found = search(whole, np.full(3, 1 / 3), 0.02, np.random.RandomState(0), Computation(), KINDS[2:4])
    assert found.trial.n_divisions == 12
    assert_array_equal(found.points, np.arange(50))
    target = found.trial.target()
    assert target.count == pytest.approx(50.0)
    assert target.weights.sum() == pytest.approx(1.0)
    # New rows are judged by one fit: a mean over divisions would vary less.
    first = found.kept[0].log_density[found.trial.division == 0]
    assert_array_equal(found.log_density[0], first)


def test_one_weight_is_that_of_the_general_fit():
    """One member has compiled code of its own: a second one that says nothing leads to the other."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 40)
    log_density = 2.0 * rng.normal(size=(1, 40, 3))
    log_density[0, np.arange(40), codes] += 1.0
    target = Target(codes, np.where(np.arange(40) < 4, 0.0, 1 / 36), np.log([0.2, 0.3, 0.5]), 40.0)
    with_another = np.concatenate([log_density, np.zeros((1, 40, 3))])
    expected, loss = fit_log_weights(with_another, target, np.zeros(2), 1.0)
    for start in (None, np.full(1, -4.0), np.full(1, 4.0)):
        fitted, value = fit_log_weights(log_density, target, np.zeros(1), 1.0, start)
        assert_allclose(fitted, expected[:1], atol=1e-3)
        assert value == pytest.approx(loss, abs=1e-6)


# ---------------------------------------------------------------------- sizes of classes, fine patterns


def test_even_classes_were_chosen():
    rng = np.random.default_rng(0)
    chance = [even_classes(labelled(rng.normal(size=(100, 1)), rng.integers(0, 10, 100))) for _ in range(200)]
    assert np.mean(chance) < 0.1
    assert even_classes(labelled(rng.normal(size=(100, 1)), np.arange(100) % 10))
    assert even_classes(labelled(rng.normal(size=(99, 1)), np.arange(99) % 10))
    assert not even_classes(labelled(rng.normal(size=(100, 1)), np.arange(100) % 10, rng.uniform(1, 2, 100)))
    assert not even_classes(labelled(rng.normal(size=(100, 1)), np.zeros(100, dtype=int)))


@pytest.mark.all_divisions
def test_noise_in_small_classes_scores_as_chance():
    scores = []
    for seed in range(4):
        data = labelled(np.random.default_rng(seed).normal(size=(40, 3)), np.arange(40) % 10)
        random, kinds = np.random.RandomState(seed), KINDS[2:5]
        pool = fit_pool(data, np.full(10, 0.1), random, Computation(), kinds, empirical=True)
        scores.append(pool.scores.accuracy)
    assert 0.06 < np.mean(scores) < 0.16  # where priors come from other rows it is 0.01


def test_fine_patterns_of_few_columns():
    X = np.random.default_rng(0).random((2500, 1))
    y = (np.floor(60.0 * X[:, 0]) % 2).astype(int)
    kinds = [kind for kind in KINDS if kind.covariance == "none"]
    data = labelled(X[:2000], y[:2000])
    pool = fit_pool(data, np.full(2, 0.5), np.random.RandomState(0), Computation(), kinds)
    assert (log_score(pool, X[2000:], Computation()).argmax(axis=1) == y[2000:]).mean() > 0.9


@pytest.mark.parametrize(
    ("n", "d", "least"), [(1999, 1, -4.5), (2000, 2, -5.0), (20_000, 2, -7.0), (20_000, 4, -4.5)]
)
def test_bandwidths_go_down_to_neighbours(n, d, least):
    kind = Kind("range", "none").for_rows(n, d)
    bandwidths, _ = kind.kernels()
    assert_allclose(np.log2(bandwidths[[0, -1]]), [least, 0.5])
    assert kind.name == Kind("range", "none").name

"""The pool: members, their marginals, leave-one-out, refined bandwidths and weights, against plain loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from corral.data.weights import effective_number
from corral.parallel import Computation
from corral.pool.calibration import fit_log_weights
from corral.pool.cross_fitting import TriedMember
from corral.pool.fold_plan import FoldPlan
from corral.pool.kernel_members import PlainKernels
from corral.pool.members import MEMBER_KINDS, kind_of
from corral.pool.scaled_rows import ScaledRows
from corral.pool.search import fit_pool, make_pool, search
from corral.pool.weights import even_classes, fit_weights, log_prior_shares, shares_of
from corral.posterior import log_of_prior, log_probability
from pool import pool_oracle
from support.tables import labelled, table


def log_score(pool, X):
    """Log prior and weighted log densities."""
    return pool.log_densities(X, Computation()) + log_of_prior(pool.prior)


def posterior(pool, score):
    """Log probabilities from log scores."""
    return log_probability(score, pool.prior, pool.prior_mixing)


def pooled(X, y, weights=None, *, prior=None, seed=0, kinds=MEMBER_KINDS):
    """A pool with empirical priors, unless they are given."""
    data = labelled(X, y, weights)
    empirical = prior is None
    prior = data.counts / data.counts.sum() if prior is None else prior
    return fit_pool(data, prior, np.random.RandomState(seed), Computation(), kinds, empirical=empirical)


# ------------------------------------------------------------------------------------------- weights


def plan_of(codes, weights=None, prior=(0.5, 0.3, 0.2)):
    """A fold plan of rows that are all points, with these weights."""
    n, prior = codes.size, np.array(prior)
    weights = np.ones(n) if weights is None else weights
    data = labelled(np.arange(n)[:, np.newaxis] / 1.0, codes, weights, expected=np.arange(prior.size))
    return FoldPlan(data, np.arange(n), np.zeros((1, n), dtype=int), prior, 0.0, weights / weights.sum())


def random_pool(n_members=3, n=50, n_classes=3):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, n)
    log_density = rng.normal(size=(n_members, n, n_classes))
    log_density[:, np.arange(n), codes] += np.arange(n_members)[:, np.newaxis]
    return log_density, plan_of(codes, rng.uniform(0.1, 1.0, n))


@pytest.mark.parametrize("n_members", [1, 3])
def test_weights_minimise_the_penalised_log_loss(n_members):
    log_density, plan = random_pool(n_members)
    center = np.array([-1.0, 0.3, 0.1])[:n_members]

    def loss(u):
        return pool_oracle.pooled_log_loss(
            log_density, u, plan.codes, plan.weights, plan.prior,
            center=center, deviation=0.7, count=effective_number(plan.weights),
        )  # fmt: skip

    fitted, value = fit_log_weights(log_density, plan, center, 0.7)
    assert value == pytest.approx(loss(fitted), abs=1e-8)
    best = minimize(loss, center, method="BFGS", options={"gtol": 1e-7})
    assert loss(fitted) <= best.fun + 1e-9
    assert_allclose(fitted, best.x, atol=1e-4)
    for start in (center - 4.0, center + 3.0):
        elsewhere, _ = fit_log_weights(log_density, plan, center, 0.7, start)
        assert_allclose(elsewhere, fitted, atol=1e-4)


def test_points_without_weight_or_of_classes_that_are_ruled_out_change_nothing():
    log_density, plan = random_pool()
    out, prior = plan.codes == 2, np.array([0.6, 0.4, 0.0])
    left = replace(plan, prior=prior).without(out)
    fitted = fit_log_weights(log_density, left, np.zeros(3), 1.0)
    same = plan_of(plan.codes[~out], plan.data.weights[~out], prior[:2])
    vars(same)["count"] = plan.count  # the prior of the weights counts as one of all points
    expected = fit_log_weights(log_density[:, ~out, :2], same, np.zeros(3), 1.0)
    assert_allclose(fitted[0], expected[0], atol=1e-10)
    assert fitted[1] == pytest.approx(expected[1], rel=1e-12)


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
    plan = plan_of(codes, prior=(0.5, 0.5))
    return [
        TriedMember.calibrate(kind, kind_log_densities, plan)
        for kind, kind_log_densities in zip(MEMBER_KINDS, tried, strict=False)
    ], plan


def test_weights_of_members_that_are_alike_stay_nearly_equal_in_small_tables():
    """Their log losses hardly differ: without a prior, chance would give one of them all the weight."""
    smaller = []
    for seed in range(20):
        members, plan = two_members(30, 1.5, 0.3, seed)
        smaller.append(shares_of(members, fit_weights(members, plan)).min())
    assert np.mean(smaller) > 0.3


def test_many_rows_give_members_the_weights_that_the_log_odds_have():
    own = np.array([1.0, 1.5])
    members, plan = two_members(20_000, 0.0, own, 0)
    assert_allclose(np.exp(fit_weights(members, plan)), 2.0 / own**2, rtol=0.1)


# ------------------------------------------------------------------------------------------- the pool


@pytest.fixture(scope="module")
def fitted():
    X, y = table(150, 5)
    return X, y, pooled(X, y)


def test_members_are_those_of_the_table(fitted):
    _, _, pool = fitted
    kept = pool.table["weight"] > 0.0
    assert len(pool.members) == kept.sum() <= 6
    assert_allclose(np.sort(pool.weights), np.sort(pool.table["weight"][kept]))
    assert {member.identifier for member in pool.members} == set(pool.table["member"][kept])
    assert pool.table["share"].sum() == pytest.approx(1.0)
    assert (pool.table["share"][kept] >= 0.02).all()
    shares = pool.weights * pool.temperatures
    assert (np.diff(shares) <= 0.0).all()
    assert pool.scores.log_loss < pool.table["log_loss"].min() + 0.05


def test_scores_agree_with_new_rows():
    X, y = table(900, 5, seed=1)
    pool = pooled(X[:300], y[:300])
    proba = posterior(pool, log_score(pool, X[300:]))
    accuracy = (proba.argmax(axis=1) == y[300:]).mean()
    log_loss = -proba[np.arange(600), y[300:]].mean()
    assert abs(pool.scores.accuracy - accuracy) < 0.05
    assert abs(pool.scores.log_loss - log_loss) < 0.08
    assert pool.scores.balanced_accuracy == pytest.approx(pool.scores.recall.mean())


def test_order_of_rows_changes_nothing():
    X, y = table(600, 5)  # more rows than are asked for refined bandwidths
    order = np.random.default_rng(0).permutation(600)
    first, second = pooled(X, y), pooled(X[order], y[order])
    assert_allclose(log_score(second, X), log_score(first, X), rtol=1e-5, atol=1e-5)
    assert second.scores.accuracy == pytest.approx(first.scores.accuracy, abs=1e-9)
    assert second.scores.log_loss == pytest.approx(first.scores.log_loss, abs=1e-6)


def test_rescaled_weights_change_nothing(fitted):
    X, y, _ = fitted
    weights = np.random.default_rng(0).uniform(0.2, 1.0, len(y))
    first, second = pooled(X, y, weights), pooled(X, y, 1e-9 * weights)
    assert_allclose(log_score(second, X), log_score(first, X), rtol=1e-6, atol=1e-6)
    assert_allclose(second.weights, first.weights, rtol=1e-6)
    assert second.scores.log_loss == pytest.approx(first.scores.log_loss, rel=1e-9)
    assert second.prior_mixing == pytest.approx(first.prior_mixing)
    assert first.prior_mixing == pytest.approx(1.0 / (effective_number(weights) + 2.0))


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
    assert all(
        mixture.transform.variables.size <= 30 for member in pool.members for mixture in member.classes
    )


def test_classes_of_one_row_and_of_none():
    X, y = table(40, n_classes=2)
    y = y.copy()
    y[0] = 2
    data = labelled(X, y, expected=np.arange(4))
    pool = fit_pool(data, data.counts / data.counts.sum(), np.random.RandomState(0), Computation())
    score = log_score(pool, X)
    assert np.isneginf(score[:, 3]).all()
    assert np.isfinite(score[:, :3]).all()
    assert pool.scores.recall[2] == 0.0
    assert np.isnan(pool.scores.recall[3])
    assert np.isfinite(pooled(X, y).scores.log_loss)


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
    score = log_score(pool, np.vstack([X, 1e3 * X]))
    assert np.isfinite(score).all()
    if weights is None:
        assert pool.scores.accuracy > 0.6


@pytest.mark.parametrize("n_classes", [1, 2])
def test_constant_columns_say_nothing(n_classes):
    X, y = table(40, n_classes=2)
    y = y % n_classes
    with_constant = np.hstack([X, np.full((40, 1), 7.0)])
    pool = pooled(with_constant, y)
    score = log_score(pool, with_constant)
    other = with_constant.copy()
    other[:, -1] = -1e6
    assert_array_equal(log_score(pool, other), score)
    assert np.isfinite(score).all()
    nothing = pooled(np.ones((40, 2)), y)
    assert_allclose(log_score(nothing, np.ones((1, 2)))[0], np.log(nothing.prior), atol=1e-9)


@pytest.mark.parametrize("kind", MEMBER_KINDS, ids=lambda kind: kind.identifier)
def test_every_kind_stands_on_its_own(kind):
    X, y = table(60)
    pool = pooled(X, y, prior=np.full(3, 1.0 / 3.0), kinds=[kind])
    assert [member.identifier for member in pool.members] == [kind.identifier]
    assert pool.scores.accuracy > 0.6
    assert_allclose(pool.weights * pool.temperatures, 1.0, rtol=0.1)  # its own temperature, nearly


def test_normal_densities_with_the_shared_covariance_are_linear_discriminants():
    X, y = table(90, 3)
    pool = pooled(X, y, prior=np.full(3, 1.0 / 3.0), kinds=[kind_of("shared_normal")])
    (member,) = pool.members
    assert [len(density.centers) for density in member.classes] == [1, 1, 1]
    start, step = X[:5], np.array([0.3, -0.2, 0.1])
    scores = [log_score(pool, start + k * step) for k in range(3)]
    odds = [score[:, 1:] - score[:, :1] for score in scores]
    assert_allclose(odds[2] - odds[1], odds[1] - odds[0], atol=1e-10)


def test_a_rare_flag_does_not_decide():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 50)
    X = rng.normal(size=(150, 4)) + 4.0 * np.eye(3, 4)[codes]
    X[:, 3] = 0.0
    X[50, 3] = 1.0  # one row of the second class
    pool = pooled(X, codes)
    flagged = X.copy()
    flagged[:, 3] = 1.0
    score = log_score(pool, flagged)
    assert (score.argmax(axis=1) == codes).mean() > 0.8  # by variances of classes 0.33


# ------------------------------------------------------------------------------------------ seeds and names


@pytest.mark.all_divisions
def test_probabilities_hardly_depend_on_seed_and_not_on_names():
    rng = np.random.default_rng(0)
    y = np.arange(540) % 2
    X = rng.normal(size=(540, 10)) + 0.5 * np.outer(y, np.arange(10) < 5)
    X_train, y_train, X_test = X[:40], y[:40], X[40:]

    def proba(X, y, X_test, seed):
        pool = pooled(X, y, prior=np.full(2, 0.5), seed=seed, kinds=MEMBER_KINDS[:6])
        return np.exp(posterior(pool, log_score(pool, X_test)))

    first = proba(X_train, y_train, X_test, 0)
    order = rng.permutation(10)
    renamed = proba(-X_train[::-1, order], 1 - y_train[::-1], -X_test[:, order], 0)
    assert_allclose(renamed[:, ::-1], first, atol=1e-6)
    assert np.abs(proba(X_train, y_train, X_test, 1) - first).mean() < 0.014  # with one division 0.019


@pytest.mark.all_divisions
def test_rows_left_out_are_ranked_by_one_division():
    X, y = table(50)
    data = labelled(X, y)
    scaled_rows = ScaledRows.learn(data, [kind.scale for kind in MEMBER_KINDS])
    fitted = search(
        scaled_rows, np.full(3, 1 / 3), 0.02, np.random.RandomState(0), Computation(), MEMBER_KINDS[2:4]
    )
    assert fitted.plan.n_divisions == 12
    assert_array_equal(fitted.points, np.arange(50))
    assert fitted.plan.count == pytest.approx(50.0)
    assert fitted.plan.weights.sum() == pytest.approx(1.0)
    # New rows are judged by one fit: a mean over divisions would vary less.
    pool = make_pool(fitted, [], fitted.points)
    first = fitted.kept[0].log_density[fitted.plan.division == 0]
    assert_array_equal(pool.cross_fitted.log_density[0], first)


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
        X = np.random.default_rng(seed).normal(size=(40, 3))
        scores.append(pooled(X, np.arange(40) % 10, seed=seed, kinds=MEMBER_KINDS[2:5]).scores.accuracy)
    assert 0.06 < np.mean(scores) < 0.16  # where priors come from other rows it is 0.01


def test_fine_patterns_of_few_columns():
    X = np.random.default_rng(0).random((2500, 1))
    y = (np.floor(60.0 * X[:, 0]) % 2).astype(int)
    pool = pooled(X[:2000], y[:2000], prior=np.full(2, 0.5), kinds=[kind_of("plain_kernels")])
    assert (log_score(pool, X[2000:]).argmax(axis=1) == y[2000:]).mean() > 0.9


@pytest.mark.parametrize(
    ("n", "d", "least"), [(1999, 1, -4.5), (2000, 2, -5.0), (20_000, 2, -7.0), (20_000, 4, -4.5)]
)
def test_bandwidths_go_down_to_neighbours(n, d, least):
    kind = PlainKernels("plain", "plain kernels", "range").for_rows(n, d)
    bandwidths, _ = kind.kernels()
    assert_allclose(np.log2(bandwidths[[0, -1]]), [least, 0.5])

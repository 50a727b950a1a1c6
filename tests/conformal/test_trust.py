"""Typicality, novelty, sets of labels, decisions: against plain loops, by error rates, on odd tables."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import paper_oracle
from conformal import conformal_oracle
from corral import CorralClassifier, RodeoClassifier
from corral.conformal.missing_values import draw_removals, expected_changes, learn_changes
from corral.conformal.outlyingness import Columns, ColumnValues
from corral.conformal.typicality import (
    Distribution,
    excess_pvalue,
    shares_of_members,
    weigh_points,
    with_least_share,
)
from corral.data.dataset import LabelledRows, TrainingRows
from corral.datasets import make_shifted_groups
from corral.parallel import Computation
from corral.pool.model import PoolModel
from corral.posterior import odds_of_classes
from pool import pool_oracle

# No bandwidth shrinks.
INITIAL = {"bandwidth": "class", "min_bandwidth": 100.0}

KINDS = {
    "local": RodeoClassifier(),
    "class": RodeoClassifier(bandwidth="class", scale="standard"),
    "rank": RodeoClassifier(bandwidth="class", scale="rank"),
    "raw": RodeoClassifier(bandwidth="class", scale=None),
    "selected": RodeoClassifier(bandwidth="class", features="selected", cutpoint=-0.5),
    "pool": CorralClassifier(random_state=0),
}


def table(n=24, d=3, seed=0):
    """Rows of three classes, the last one smaller."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [n // 2, n // 3, n - n // 2 - n // 3])
    X = rng.normal(size=(n, d)) + 2.0 * rng.normal(size=(3, d))[y]
    X[0, 0] += 6.0  # alone in its column
    return np.round(X * np.logspace(-1.0, 1.0, d) * 64.0) / 64.0, y  # short fractions for the loops


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def models(iris):
    """All kinds, fitted to every other flower."""
    return {name: clone(model).fit(*iris[:2]) for name, model in KINDS.items()}


@pytest.fixture(params=KINDS)
def fitted(request, models):
    return models[request.param]


# ---------------------------------------------------------------------------------------- against loops


@pytest.mark.filterwarnings("ignore::corral.DuplicatesWarning")
@pytest.mark.parametrize(
    ("bandwidth", "case"),
    [
        ("fixed", "plain"),
        ("fixed", "weights"),
        ("fixed", "duplicates"),
        ("fixed", "groups"),
        ("fixed", "alone"),
        ("local", "plain"),
        ("local", "groups"),
    ],
)
def test_typicality_and_novelty_against_loops(case, bandwidth):
    X, y = table()
    weights = groups = None
    if case == "weights":
        weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(X))
    if case == "duplicates":  # also one with another label
        X, y = np.vstack([X, X[[3, 20]]]), np.append(y, [y[3], 0])
    if case == "groups":
        groups = np.arange(len(X)) // 2
    if case == "alone":
        X, y = np.vstack([X, X[:1] + 0.5]), np.append(y, 3)
    fixed = INITIAL if bandwidth == "fixed" else {"min_bandwidth": 0.3}
    model = RodeoClassifier(scale=None, **fixed)
    model.fit(X, y, sample_weight=weights, groups=groups)
    data = model.model_.data
    m = np.ones(len(data.X)) if data.weights is None else data.weights

    def log_density(x, a, group_id):
        in_class = data.codes == a
        left = in_class & (data.group_ids != group_id)
        if not left.any():
            return -np.inf
        h0 = float(model.initial_bandwidth_[a])
        if bandwidth == "fixed":
            return paper_oracle.kernel_log_density(data.X[left], x, [h0] * 3, weights=m[left])
        return paper_oracle.rodeo(data.X[left], x, h0=h0, floor=0.3, weights=m[left])[1]

    rng = np.random.default_rng(2)
    shift = np.array([3.0, 0.0, 0.0])
    samples = np.vstack([X[:4] + rng.integers(-32, 32, (4, 3)) / 64.0, X[4:6] + shift, X[:1] * 50.0])
    expected = conformal_oracle.judge(
        data.X, data.codes, data.group_ids, m, samples, log_density, data.labels.size
    )
    results = model.assess(samples)
    assert_allclose(results.typicality, expected[0], rtol=1e-12)
    assert_allclose(results.novelty, expected[1], rtol=1e-6)
    assert_array_equal(model.typicality(samples), results.typicality)
    assert_array_equal(model.is_novel(samples), results.is_novel)
    assert_allclose(results.proba, model.predict_proba(samples), rtol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_members_leave_rows_out_as_loops_do(grouped):
    X, y = table(30)
    groups = np.arange(30) // 3 if grouped else None
    model = CorralClassifier(random_state=0).fit(X, y, groups=groups).model_
    data, points = model.data, np.array([0, 7, 20, 29])
    for member in model.pool.members:
        results = member.log_densities_without(data, data.X[points], data.group_ids[points])
        scaled = member.scale.transform(data.X)
        for a, mixture in enumerate(member.classes):
            for k, i in enumerate(points):
                left = data.group_ids[data.codes == a] != data.group_ids[i]
                expected = pool_oracle.mixture_log_density(mixture, scaled[i], left)
                assert_allclose(results[k, a], expected, rtol=1e-9)


def test_pool_compares_with_rows_left_out_of_their_folds():
    model = CorralClassifier(random_state=0).fit(*make_shifted_groups(80, random_state=0)).model_
    kept, data = model.pool.cross_fitted, model.data
    left_out = model.leave_out(kept.points, Computation())
    codes = data.codes[kept.points]
    assert_array_equal(left_out.log_density, kept.log_density_of_pool)
    assert model.pool.refined.any()
    assert not model.pool.refined.all()
    # Refined bandwidths have another level in each fold, and take no part.
    members = [
        member for member, refined in zip(model.pool.members, model.pool.refined, strict=True) if not refined
    ]
    spreads, shares = [], []
    for member_log_density in kept.log_density[~model.pool.refined]:
        own = [[member_log_density[i, a] for i in np.flatnonzero(codes == a)] for a in range(5)]
        below = [max(0.0, sorted(values)[(len(values) - 1) // 2] - x) for values in own for x in values]
        spreads.append(2.0 * np.mean(below))
        shares.append(
            np.exp(conformal_oracle.told_apart(member_log_density, codes, np.ones(codes.size)) / 0.05)
        )
    correlated = np.array([member.sees_correlations for member in members])
    shares = with_least_share(np.array(shares) / np.sum(shares), correlated, 0.3)
    unscaled_score = np.tensordot(shares / spreads, kept.log_density[~model.pool.refined], 1)
    assert_allclose(left_out.unscaled_score, unscaled_score, rtol=1e-9)
    results = model.estimates(data.X[:7], Computation())
    assert_array_equal(results.log_density, model.log_densities(data.X[:7], Computation()))
    members = [member.log_densities(data.X[:7], Computation()) for member in model.pool.members]
    assert_allclose(results.unscaled_score, np.tensordot(model.score_weights, members, 1), rtol=1e-12)


def test_shares_of_members_against_loops():
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, 3, 60), rng.choice([0.5, 1.0, 2.0], 60)
    left_out = np.round(rng.normal(size=(2, 60, 3)), 1)  # with ties
    left_out[0, np.arange(60), codes] += 2.0
    own = [conformal_oracle.told_apart(log_density, codes, weights) for log_density in left_out]
    assert own[0] > own[1] + 0.1
    expected = np.exp(np.array(own) / 0.05)
    assert_allclose(shares_of_members(left_out, codes, weights), expected / expected.sum(), rtol=1e-9)
    alike = shares_of_members(left_out[:, :, :1], np.zeros(60, dtype=np.int64), weights)
    assert_array_equal(alike, 0.5)  # one class leaves nothing to distinguish


def test_rounding_errors_change_no_share_and_no_pvalue():
    """As where rows are summed in another order: ties stay ties."""
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, 3, 60), rng.uniform(0.2, 4.0, 60)
    left_out = np.round(rng.normal(size=(2, 60, 3)), 1)
    noisy = left_out * (1.0 + 1e-14 * rng.normal(size=left_out.shape))
    assert_allclose(
        shares_of_members(noisy, codes, weights), shares_of_members(left_out, codes, weights), rtol=1e-9
    )
    values = np.repeat([-3.7, -1.1, 0.4], 20)
    noisy = values * (1.0 + 1e-14 * rng.normal(size=60))
    expected, results = Distribution.from_values(values, weights), Distribution.from_values(noisy, weights)
    assert_array_equal(results.values, expected.values)
    x = np.append(np.linspace(-9.0, 1.0, 50), noisy)
    assert_allclose(results.interpolated_pvalues(x), expected.interpolated_pvalues(x), rtol=1e-7)


def test_the_number_of_novel_rows_has_the_probability_that_it_says():
    assert_allclose(excess_pvalue(3, 115, 0.01, 1e9), binom.sf(2, 115, 0.01), rtol=1e-4)
    assert excess_pvalue(0, 115, 0.01, 200) == 1.0
    rng = np.random.default_rng(0)
    pvalues = []
    for _ in range(2000):
        training, new = rng.normal(size=199), rng.normal(size=300)
        n_novel = int(
            (Distribution.from_values(training, np.ones(199)).interpolated_pvalues(new) <= 0.01).sum()
        )
        pvalues.append(excess_pvalue(n_novel, 300, 0.01, 199))
    for significance_level in (0.01, 0.05, 0.2):  # in counts, p-values are coarse
        share = np.mean(np.array(pvalues) <= significance_level)
        assert (
            0.4 * significance_level < share < significance_level + 3.0 * np.sqrt(significance_level / 2000)
        )


def test_sets_against_loops(iris):
    X, y, X_new, _ = iris
    model = RodeoClassifier(**INITIAL, scale=None, c0=0.3, priors=[0.5, 0.3, 0.2]).fit(X, y)
    data = model.model_.data

    def log_posterior(x, group_id):
        left = data.group_ids != group_id
        log_p = [
            paper_oracle.kernel_log_density(
                data.X[left & (data.codes == a)], x, [model.initial_bandwidth_[a]] * 4
            )
            for a in range(3)
        ]
        return np.log(paper_oracle.posterior(log_p, model.class_prior_))

    rows = zip(data.X, data.group_ids, data.codes, strict=True)
    own = np.array([log_posterior(x, group_id)[a] for x, group_id, a in rows])
    for coverage in (0.8, 0.95):
        sets = model.predict_set(X_new[30:50], coverage)
        for x, results in zip(X_new[30:50], sets, strict=True):
            log_p = log_posterior(x, None)
            expected = [
                conformal_oracle.conformal_pvalue(own[data.codes == a], np.ones(25), log_p[a])
                > 1.0 - coverage + 1e-9
                for a in range(3)
            ]
            if not any(expected):
                expected[int(np.argmax(log_p))] = True
            assert not results.any() or results.tolist() == expected


def test_shares_are_exact_and_count_ties():
    shares = Distribution.from_values(np.array([3.0, 1.0, 1.0, 2.0]), np.ones(4))
    assert_array_equal(shares.pvalues(np.array([0.0, 1.0, 2.5, 3.0])), [0.2, 0.6, 0.8, 1.0])
    weighted = Distribution.from_values(np.array([1.0, 2.0, 9.0]), np.array([1.0, 3.0, 0.0]))
    assert_allclose(weighted.pvalues(np.array([1.5])), (1.0 + 1.6 * 0.25) / 2.6)
    assert Distribution.from_values(np.empty(0), np.empty(0)).pvalues(np.array([1.0])) == 1.0


def test_interpolated_pvalues_of_few_numbers():
    four = Distribution.from_values(np.array([3.0, 1.0, 1.7, 1.5]), np.ones(4))
    # Ranks 1, 2 and 2.5 of five numbers, and above all; half and two thirds of the probability of the lowest.
    # Then the distance to the highest number, and three times as much.
    x = np.array([1.0, 1.5, 1.6, 3.1, 0.3, 0.5, -1.0, -5.0, -np.inf])
    expected = [0.2, 0.4, 0.5, 1.0, 0.1, 2 / 15, 2 / 25, 2 / 65, 4e-10]
    assert_allclose(four.interpolated_pvalues(x), expected, rtol=1e-7)
    assert_allclose(
        Distribution.from_values(np.ones(1), np.ones(1)).interpolated_pvalues(np.array([1.0, 0.9])),
        [1.0, 0.0],
        atol=1e-8,
    )
    assert Distribution.from_values(np.empty(0), np.empty(0)).interpolated_pvalues(np.array([0.5])) == 1.0
    weighted = Distribution.from_values(
        np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    )  # worth 8/3 rows
    assert_allclose(
        weighted.interpolated_pvalues(np.array([2.0])), (1.0 + 2.0 / 3.0) / (1.0 + 8.0 / 3.0), rtol=1e-7
    )


def test_interpolated_pvalues_are_never_far_from_ranks():
    rng = np.random.default_rng(0)
    for _ in range(50):
        shares = Distribution.from_values(rng.normal(size=30).round(1), rng.uniform(0.5, 2.0, 30))
        x = np.sort(rng.normal(size=200))
        results, ranks = shares.interpolated_pvalues(x), shares.pvalues(x)
        assert (np.diff(results) >= 0.0).all()
        assert (results <= ranks + 1e-9).all()


def test_levels_hold_whatever_ranks_a_small_table_can_reach():
    # Ranks of 40 rows reach multiples of 1/41 only.
    scores, significance_levels = (
        -np.random.default_rng(0).exponential(size=(8000, 41)),
        np.array([0.1, 0.05, 0.02, 0.01]),
    )
    pvalues = [
        Distribution.from_values(row[1:], np.ones(40)).interpolated_pvalues(row[:1])[0] for row in scores
    ]
    novel = np.mean(np.array(pvalues)[:, np.newaxis] <= significance_levels, axis=0)
    assert (np.abs(novel - significance_levels) < 0.15 * significance_levels + 0.002).all()


@pytest.mark.parametrize("n_rows", [75, 229])
def test_rows_of_equal_novelty_are_novel_together(n_rows):
    """Ranks among 229 rows are coarse, and is_novel interpolates between them, so novelty does as well."""
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(n_rows, 2)), 1.3 * rng.normal(size=(2000, 2))
    model = RodeoClassifier(bandwidth="class").fit(X, np.arange(n_rows) % 2)
    results = model.assess(X_new)
    for significance_level in (0.005, 0.01, 0.05, 3 / 230):
        assert_array_equal(model.is_novel(X_new, significance_level), results.novelty <= significance_level)
    assert_array_equal(results.is_novel, results.novelty <= 0.01)
    assert results.novelty[results.is_novel].max() < results.novelty[~results.is_novel].min()
    assert results.is_novel.any()


# --------------------------------------------------------------------------------------- what must hold


def test_rows_moved_in_any_column_are_novel_on_all_scales(fitted, iris):
    X, _, X_new, _ = iris
    deviation = X.std(axis=0)
    for j in range(4):
        for factor in (10.0, -10.0, 1e3, 1e6, -1e150):
            moved = X_new.copy()
            moved[:, j] += factor * deviation[j]
            assert fitted.is_novel(moved).all()
            assert not fitted.predict_set(moved).any()
            assert_array_equal(fitted.typicality(moved), np.full((75, 3), 1.0 / 26.0))


def test_levels_of_known_rows(fitted, iris):
    X_new = iris[2]
    novel = [
        fitted.is_novel(X_new, significance_level).mean() for significance_level in (0.01, 0.05, 0.2, 1.0)
    ]
    assert novel[0] <= 0.08
    assert novel[1] <= 0.14
    assert 0.05 <= novel[2] <= 0.4
    assert novel[3] == 1.0
    assert fitted.typicality(X_new).min() >= 1.0 / 26.0
    assert fitted.typicality(X_new).max() <= 1.0


def test_sets_hold_the_right_label_and_the_predicted_one(fitted, iris):
    _, _, X_new, y_new = iris
    beyond = fitted.is_novel(X_new, 0.5 / 76)  # half as often as one of 76 rows is the least typical
    for coverage in (0.8, 0.9, 0.95):
        sets = fitted.predict_set(X_new, coverage)
        for a in range(3):
            assert sets[y_new == a, a].mean() >= coverage - 4.0 * np.sqrt(coverage * (1 - coverage) / 12.5)
        predicted = np.searchsorted(fitted.classes_, fitted.predict(X_new))
        single = sets.sum(axis=1) == 1
        assert (sets[single, predicted[single]]).mean() > 0.9
        assert_array_equal(sets.any(axis=1), ~beyond)
    assert_array_equal(fitted.predict_set(X_new, 1.0).all(axis=1), ~beyond)


@pytest.mark.parametrize("constant", [7.0, 0.0, 1e-9, -1e15])
def test_values_other_than_a_constant_are_far_as_loops_have_it(constant):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=90), np.full(90, constant)])
    X[:5, 1] = np.nan
    data = LabelledRows.sort(TrainingRows(X, np.repeat([0, 1], 45), None))
    columns = Columns.learn(data)
    assert_array_equal(columns.deviations.n_equal, [0, 85])
    group_id = abs(constant) or 1.0
    other = constant + group_id * np.array([0.0, 1e-13, 1e-7, 1e-5, -0.1, 1.0, 1e3, np.nan])
    samples = np.column_stack([np.zeros(8), other])
    rows = data.X, data.codes, data.group_ids
    expected = [conformal_oracle.outlyingness(*rows, x, None, np.ones(90)) for x in samples]
    assert_allclose(columns.outlyingness(samples), expected, rtol=1e-9)
    assert np.sum(np.array(expected) > 0.0) == 2 * (5 if constant == 0.0 else 4)
    assert_allclose(columns.terms(samples, np.zeros(8, int)).sum(axis=1), np.array(expected)[:, 0], rtol=1e-9)


def test_the_first_to_differ_in_a_column_is_as_far_out_as_the_only_row_that_does():
    X = np.column_stack([np.arange(301) % 7, np.zeros(301)])
    X[0, 1] = 3.0
    data = LabelledRows.sort(TrainingRows(X[1:], np.repeat([0, 1], 150), None))
    new = Columns.learn(data).outlyingness(X[:1])
    data = LabelledRows.sort(TrainingRows(X, np.append(0, np.repeat([0, 1], 150)), None))
    positions = np.flatnonzero(data.X[:, 1])
    own = Columns.learn(data).outlyingness(data.X[positions], positions)
    assert_allclose(own, new, rtol=1e-9)
    assert new.min() > 100.0


@pytest.mark.parametrize(
    ("name", "far", "shift"),
    [("pool", [1e6], 100.0), ("class", [1e6], 100.0), ("rank", [1e6], 100.0), ("pool", [60.0, 61.0], 40.0)],
)
def test_a_few_values_far_out_do_not_make_all_between_seem_near(name, far, shift):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 3)) + y[:, np.newaxis]
    X[: len(far), 0] = far
    model = KINDS[name].fit(X, y)
    moved = rng.normal(size=(40, 3)) + np.array([shift, 0.0, 0.0])
    assert model.is_novel(moved, 0.015).all()
    assert model.is_novel(X[200:] + 0.01, 0.015).mean() <= 0.05


@pytest.mark.parametrize(("n", "grouped"), [(60, False), (300, False), (300, True)])
def test_the_strangest_values_against_loops(n, grouped):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    X[:2, 0], X[2:4, 1], X[4:6, 2], X[6, 2] = [40.0, 45.0], -40.0, [40.0, -40.0], 38.0
    X[rng.random((n, 5)) < 0.1] = np.nan
    X[:6, :3] = np.where(np.isnan(X[:6, :3]), 40.0, X[:6, :3])
    X[:, 4] = np.nan
    groups = np.arange(n) // 2 if grouped else None
    data = LabelledRows.sort(TrainingRows(X[:, [3, 1, 0, 2, 4]], rng.integers(0, 2, n), None, None, groups))
    columns, ones = Columns.learn(data), np.ones(n)
    bound = conformal_oracle.outlying_bound(data.X, data.group_ids, ones)
    far = np.argsort(-np.nan_to_num(np.abs(data.X)).max(axis=1))[:12]
    samples = np.vstack([8.0 * data.X[12:20], np.nan_to_num(data.X[:8]) + 50.0 * np.eye(8, 5)])
    samples[:, 4] = np.nan

    for results, ids in (
        (columns.outlyingness(data.X[far], far), [(data.X[i], data.group_ids[i]) for i in far]),
        (columns.outlyingness(samples), [(x, None) for x in samples]),
    ):
        extremes = [conformal_oracle.extremes(data.X, data.group_ids, *each, ones, bound) for each in ids]
        assert 0.0 < np.mean([conformal_oracle.extreme_term(max(apart)) for apart in extremes]) < 64.0
        rows = data.X, data.codes, data.group_ids
        expected = [conformal_oracle.outlyingness(*rows, *each, ones, bound) for each in ids]
        assert_allclose(results, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [19, 60])
def test_deviations_of_columns_against_loops(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4)) * [1.0, 1e3, 1e-3, 0.0] + [0.0, 1e3, 0.0, 7.0]
    X[0] = [1e5, 5e3, np.nan, 7.0]
    X[rng.random((n, 4)) < 0.1] = np.nan
    weights = rng.choice([0.5, 1.0, 2.0], n)
    data = LabelledRows.sort(TrainingRows(X, rng.integers(0, 2, n), weights))
    expected = [conformal_oracle.robust_deviation(x, data.weights) for x in data.X.T]
    assert_allclose(2.0 * Columns.learn(data).deviations.half_width, expected, rtol=1e-9)


# --------------------------------------------------------------------- missing values and categories


def wide_table(rng, n, centers):
    """Rows of classes with few rows, so that means and covariances depend much on each of them."""
    y = np.repeat(np.arange(len(centers)), n)
    return centers[y] + rng.normal(size=(y.size, centers.shape[1])), y


def test_pvalues_of_rows_with_missing_values_keep_their_level_in_wide_tables():
    """Training rows are compared without what members learnt from their fold, in other variables, too."""
    typicality, covered = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        centers = 0.4 * rng.normal(size=(4, 20))
        model = CorralClassifier(random_state=0).fit(*wide_table(rng, 12, centers))
        X_new, y_new = wide_table(rng, 60, centers)
        X_new[:, 0] = np.nan
        typicality.append(model.typicality(X_new)[np.arange(240), y_new])
        covered.append(model.predict_set(X_new, 0.8)[np.arange(240), y_new])
    assert np.mean(np.array(typicality) <= 0.2) < 0.25
    assert np.mean(covered) > 0.76


def test_a_constant_column_may_as_well_be_missing():
    rng = np.random.default_rng(0)
    centers = np.append(0.4 * rng.normal(size=(4, 15)), np.full((4, 1), 7.0), axis=1)
    (X, y), (X_new, _) = (wide_table(rng, n, centers) for n in (12, 30))
    X[:, -1] = X_new[:, -1] = 7.0
    model = CorralClassifier(random_state=0).fit(X, y)
    missing = X_new.copy()
    missing[:, -1] = np.nan
    assert_allclose(model.predict_proba(missing), model.predict_proba(X_new), atol=1e-9)
    assert np.abs(model.typicality(missing) - model.typicality(X_new)).mean() < 0.02
    assert (model.predict_set(missing, 0.8) == model.predict_set(X_new, 0.8)).mean() > 0.98


def mixed_table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b"], n // 2)
    frame = pd.DataFrame(
        {
            "size": rng.normal(np.where(y == "a", 0.0, 2.0), 1.0),
            "weight": rng.normal(size=n),
            "colour": np.where(rng.random(n) < np.where(y == "a", 0.8, 0.3), "red", "blue"),
        }
    )
    frame.loc[rng.random(n) < 0.2, "weight"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, y


@pytest.mark.parametrize("name", ["local", "class", "rank", "pool"])
def test_tables_with_missing_values_and_categories(name):
    frame, y = mixed_table()
    model = KINDS[name].fit(frame, y)
    new, y_new = mixed_table(seed=1)
    assert model.is_novel(new, 0.05).mean() <= 0.17
    far = new.assign(size=new["size"] + 30.0)
    assert model.is_novel(far).all()
    far = new.assign(weight=new["weight"] - 30.0)
    assert_array_equal(model.is_novel(far)[new["weight"].notna()], True)
    sets = model.predict_set(new, 0.9)
    codes = np.searchsorted(model.classes_, y_new)
    assert sets[np.arange(60), codes].mean() >= 0.8
    nothing = new.iloc[:1].reindex([-1])  # a row without values is as typical as any
    assert_array_equal(model.typicality(nothing), [[1.0, 1.0]])
    assert model.predict_set(nothing).all()
    assert not model.is_novel(nothing).any()


def test_calibration_rows_stand_for_all_rows_of_their_class():
    X = np.arange(11.0)[:, np.newaxis] ** 2
    y = np.repeat([0, 1, 2], [6, 4, 1])  # the last class has no other row
    data = LabelledRows.sort(TrainingRows(X, y, np.linspace(1.0, 2.0, 11)))
    points = np.array([0, 3, 7, 10])
    weights = weigh_points(data, points)
    given = data.all_weights
    assert_allclose(weights[:2], given[:6].sum() * given[[0, 3]] / given[[0, 3]].sum())
    assert_allclose(weights[2:], [given[6:10].sum(), 0.0])


# ------------------------------------------------------------------------------------- models and files


def test_members_judge_by_themselves(iris, models):
    X_new = iris[2]
    for member in models["pool"].members_:
        assert member.is_novel(X_new, 0.05).mean() <= 0.16
        assert member.is_novel(X_new + 50.0).all()
        assert member.predict_set(X_new).any(axis=1).mean() > 0.9


def test_classes_of_one_row_and_of_none():
    X, y = table()
    model = RodeoClassifier().fit(np.vstack([X, [[50.0, 0.0, 0.0]]]), np.append(y, 3))
    model.partial_fit(X[:1] + 0.1, [0], classes=[0, 1, 2, 3, 4])
    results = model.assess(np.vstack([X[:3] + 0.01, [[50.0, 0.0, 0.1]], [[1e5, 0.0, 0.0]]]))
    assert np.isfinite(results.typicality).all()
    assert (results.typicality[:, 4] == results.typicality[:, 4].min()).all()
    assert results.is_novel[-1]
    pairs = RodeoClassifier().fit([[0.0], [1.0]], [0, 1])  # nothing can be left out
    assert not pairs.is_novel([[1e9]])[0]
    assert_array_equal(pairs.typicality([[1e9]]), [[1.0, 1.0]])


def test_levels_and_coverages_are_checked(iris, models):
    model = models["class"]
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        model.is_novel(iris[2], 1.5)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        model.predict_set(iris[2], "much")


def test_distances_from_values_of_other_groups_against_loops():
    rng = np.random.default_rng(0)
    values, group_ids = np.round(30.0 * rng.normal(size=25)), rng.integers(0, 8, 25)
    values[rng.random(25) < 0.2] = np.nan
    x, ids = np.round(40.0 * rng.normal(size=60)), rng.integers(0, 9, 60)
    column = ColumnValues.sort(values, group_ids)
    expected = [
        conformal_oracle.nearest_distance(values, group_ids, *pair, 1.0) for pair in zip(x, ids, strict=True)
    ]
    assert_array_equal(column.distances(x, ids), expected)
    expected = [conformal_oracle.nearest_distance(values, group_ids, number, None, 1.0) for number in x]
    assert_array_equal(column.distances(x), expected)
    alone = ColumnValues.sort(values[:1] * 0.0, group_ids[:1])
    assert_array_equal(alone.distances(x, np.full(60, group_ids[0])), 0.0)


def test_outlyingness_begins_at_three_deviations_from_the_class():
    X = np.array([[-1.0, 5.0], [1.0, 5.0], [-1.0, 5.0], [1.0, np.nan]])
    data = LabelledRows.sort(TrainingRows(X, np.array([0, 0, 1, 2]), None))
    columns, nan = Columns.learn(data), np.nan
    samples = np.array([[4.0, nan], [5.0, nan], [nan, 8.0], [nan, 10.0], [-6.0, 1.0], [nan, 13.0]])
    results = columns.outlyingness(samples)
    expected = [[0.0, 16.0, 0.0], [4.0, 36.0, 4.0], [0.0] * 3, [16.0] * 3, [20.0, 20.0, 68.0], [132.0] * 3]
    assert_array_equal(results, expected)
    own = columns.terms(samples[-2:], np.array([2, 0]))
    assert_array_equal(own, [[64.0, 4.0], [0.0, 132.0]])


# -------------------------------------------------------------------------------------------- decisions


def test_decisions_have_the_least_expected_cost(iris):
    X, y, X_new, _ = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    model = KINDS["class"].fit(X, names[y])
    costs = np.random.default_rng(0).uniform(0.0, 10.0, (3, 3)) * (1.0 - np.eye(3))
    expected = names[(model.predict_proba(X_new) @ costs).argmin(axis=1)].tolist()
    assert model.decide(X_new, costs).tolist() == expected
    frame = pd.DataFrame(costs, names, names)
    assert model.decide(X_new, frame.iloc[::-1, [1, 2, 0]]).tolist() == expected
    assert model.decide(X_new, frame.T.to_dict()).tolist() == expected
    gains = -np.eye(3)  # a right label is worth 1
    for same in (1.0 - np.eye(3), gains, 1.79e308 * gains):
        assert model.decide(X_new, same).tolist() == model.predict(X_new).tolist()


def test_no_decision_where_it_costs_less(iris, models):
    X_new, model = iris[2], models["pool"]
    decided = model.decide(X_new, 1.0 - np.eye(3), reject_cost=0.2)
    certain = model.predict_proba(X_new).max(axis=1) >= 0.8
    assert [label is None for label in decided] == (~certain).tolist()
    assert decided[certain].tolist() == model.predict(X_new)[certain].tolist()
    assert None in model.decide(X_new, 1.0 - np.eye(3), reject_cost=-1.0)
    assert all(label is None for label in model.decide(X_new, -np.eye(3), reject_cost=-1.5))
    assert_array_equal(model.decide(X_new, -np.eye(3), reject_cost=1e308), model.predict(X_new))


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        (
            np.zeros((2, 2)),
            r"costs must have the shape \(3, 3\), a row and a column for each class, got \(2, 2\)",
        ),
        (
            [[0, 1, np.nan], [1, 0, 1], [1, 1, 0]],
            "costs must be finite, but the cost of label 2 for class 0 is nan",
        ),
        ("cheap", "costs must be numbers, got 'cheap'."),
        (None, r"costs must have the shape \(3, 3\), a row and a column for each class, got \(\)"),
        (
            np.eye(3) + 1j,
            r"costs must be numbers, got array\(\[\[1.+1.j, 0.+1.j, 0.+1.j\], \[0.+1.j, .* \.\.\.\.$",
        ),
        (csr_array(np.eye(3)), "costs must be numbers, got <"),
        ([[0, 1], [1, 0, 1], [1, 1, 0]], r"costs must be numbers, got \[\[0, 1\],"),
        (np.full((3, 3), -np.inf), "the cost of label 0 for class 0 is -inf"),
        ({0: {1: 1.0, 2: 1.0}, 1: {0: 1.0, 2: 1.0}}, "must list each class once, but 2 is missing"),
        (
            {0: {1: 1.0}, 1: {0: 1.0, 2: 1.0}, 2: {0: 1.0, 1: 1.0}},
            r"costs\[0\] must have the cost of label 2",
        ),
        ({0: {1: 1.0, 7: 1.0}, 1: {}, 2: {}}, "7 is not one of them"),
        ({0: 1.0, 1: 2.0, 2: 3.0}, "dict of dicts"),
        (pd.DataFrame(np.zeros((3, 3)), [0, 1, 3], [0, 1, 2]), "index of costs must list classes, but 3"),
        (pd.DataFrame(np.zeros((3, 3)), [0, 1, 2], [0, 1, 1]), "columns of costs must list each class once"),
    ],
)
def test_bad_costs_get_one_sentence(costs, sentence, iris, models):
    with pytest.raises(ValueError, match=sentence):
        models["class"].decide(iris[2], costs)


@pytest.mark.parametrize("cost", [np.nan, np.inf, -np.inf, "2", True, [1.0], 1j])
def test_bad_costs_of_no_decision_get_one_sentence(cost, iris, models):
    with pytest.raises(ValueError, match=r"^reject_cost must be a finite number, got .*\.$"):
        models["class"].decide(iris[2], np.zeros((3, 3)), reject_cost=cost)


# ------------------------------------------------------------------------------------------ collections


def test_arguments_reach_the_blocks_of_a_collection(iris, models):
    # tests/dask/test_dask.py compares every method without arguments.
    da = pytest.importorskip("dask.array")
    model, costs = models["class"], 1.0 - np.eye(3)
    blocks = da.from_array(iris[2], chunks=(20, 4))
    for method, arguments in (("is_novel", (0.2,)), ("predict_set", (0.8,)), ("decide", (costs, 0.1))):
        ask = getattr(model, method)
        assert ask(blocks, *arguments).compute().tolist() == ask(iris[2], *arguments).tolist()


def test_wine_of_a_kind_never_seen():
    X, y = load_wine(return_X_y=True)
    model = CorralClassifier(random_state=0).fit(X[y != 1], y[y != 1])
    assert model.is_novel(X[y == 1], 0.05).mean() > 0.7


def test_a_value_that_does_not_go_with_the_others_is_novel():
    X, y = load_breast_cancer(return_X_y=True)
    model = CorralClassifier(random_state=0).fit(X[::2], y[::2])
    new = X[1::2].copy()
    assert model.is_novel(new).mean() < 0.03
    new[:, 0] = 0.0  # the mean radius, beside perimeters and areas as they were
    assert model.is_novel(new).mean() > 0.8


TAILS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal": lambda rng, shape: np.exp(rng.normal(size=shape)),
    "t(2)": lambda rng, shape: rng.standard_t(2, size=shape),
}


@pytest.mark.parametrize("name", TAILS)
def test_few_rows_of_wide_tables_keep_the_level_of_novelty_and_sets(name):
    # Rows are left out of deviations of columns and of scales; members have as many variables without them.
    novel, covered, untypical, sizes = [], [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = TAILS[name](rng, (380, 60)), np.arange(380) % 2
        X[:, :3] += 1.5 * y[:, np.newaxis]
        model = CorralClassifier(random_state=0).fit(X[:80], y[:80])
        rows, y_new = np.arange(300), y[80:]
        sets = model.predict_set(X[80:], 0.9)
        novel.append(model.is_novel(X[80:]).mean())
        covered.append(sets[rows, y_new].mean())
        untypical.append((model.typicality(X[80:])[rows, y_new] <= 0.05).mean())
        sizes.append(sets.sum(axis=1).mean())
    assert np.mean(novel) <= 0.04
    assert np.mean(covered) >= 0.86
    assert np.mean(untypical) <= 0.09
    assert np.mean(sizes) < 1.95


@pytest.mark.parametrize("trained", [0.0, 0.1])
def test_rows_with_missing_values_keep_the_level(trained):
    # Training rows may lack no value at all: what new rows lack is then allowed for.
    novel, covered = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(460, 8)), np.arange(460) % 2
        X[:, :3] += 1.2 * y[:, np.newaxis]
        X[160:][rng.random((300, 8)) < 0.3] = np.nan
        X[:160][rng.random((160, 8)) < trained] = np.nan
        model = CorralClassifier(random_state=0).fit(X[:160], y[:160])
        novel.append(model.is_novel(X[160:], 0.05).mean())
        covered.append(model.predict_set(X[160:], 0.9)[np.arange(300), y[160:]].mean())
    assert 0.02 <= np.mean(novel) <= 0.08
    assert 0.86 <= np.mean(covered) <= 0.95


def test_combinations_of_missing_values_share_one_reference(iris):
    model = CorralClassifier(random_state=0).fit(*iris[:2])
    lacking = np.array([combination for combination in np.ndindex(2, 2, 2, 2) if sum(combination) < 4])
    with mock.patch.object(
        PoolModel, "leave_out_of", autospec=True, side_effect=PoolModel.leave_out_of
    ) as spy:
        model.assess(np.where(lacking == 1, np.nan, iris[2][:15]))
    n_rows = [len(call.args[2]) for call in spy.call_args_list]
    assert len(n_rows) == 2  # rows with values removed, and as they are, whatever the combinations
    assert sum(n_rows) <= 1100


def test_shares_are_raised_to_the_least_one():
    shares, chosen = np.array([0.7, 0.2, 0.1]), np.array([False, False, True])
    assert_allclose(with_least_share(shares, chosen, 0.3), [0.7 * 7 / 9, 0.2 * 7 / 9, 0.3])
    assert_array_equal(with_least_share(shares, chosen, 0.05), shares)
    assert_array_equal(with_least_share(shares, np.zeros(3, dtype=bool), 0.3), shares)


def test_log_odds_of_classes_against_loops():
    joint = np.array([[0.0, -1.0, -2.5], [-800.0, 3.0, -900.0], [1.0, -np.inf, -np.inf], [2.0, 2.0, -np.inf]])
    results = odds_of_classes(joint)
    for row, odds in zip(joint, results, strict=True):
        for a, log_odds in enumerate(odds):
            rest = np.logaddexp.reduce(np.delete(row, a))
            assert_allclose(log_odds, np.clip(row[a] - rest, -1e100, 1e100), rtol=1e-12)


def test_changes_by_missing_values_are_found_again():
    rng = np.random.default_rng(0)
    X, used = rng.normal(size=(200, 6)), np.array([True] * 5 + [False])
    rows, removed = draw_removals(X, used)
    assert not removed[:, 5].any()
    assert removed[:, :5].any(axis=1).mean() > 0.5
    assert not removed[:, :5].all(axis=1).any()
    changes = np.array([[1.0, 2.0, 0.5, 1.0, 1.5, 0.0], [1.0, 0.0, 0.5, 1.0, 1.5, 0.0]])
    codes = rows % 2
    difference = (removed * changes[codes]).sum(axis=1)
    results = learn_changes(difference, removed, codes, np.ones(rows.size), 2, used)
    assert_allclose(results, changes, atol=0.05)
    missing = np.array([[True, True, False, False, False, True], [True] * 6])
    expected = expected_changes(missing, used, np.array([results, 2.0 * results]))
    assert_allclose(expected.unscaled_score, [[3.0, 1.0], [6.0, 4.0]], atol=0.1)
    assert_array_equal(expected.odds, 2.0 * expected.unscaled_score)
    assert_allclose(expected.present, [0.6, 0.2])
    assert_array_equal(expected.has_none, [False, True])

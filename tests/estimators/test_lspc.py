"""LSPClassifier: the closed forms against refits by plain loops, and what it promises at the edges."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corral import LSPClassifier
from corral.datasets import make_shifted_groups, make_ten_groups
from corral.estimators.lspc import _tabulate
from estimators import estimators_oracle
from support.exploring import examples

SIGMAS, ALPHAS = (0.1, 0.3, 1.0), (0.01, 0.1, 1.0)
SMALL = {"sigmas": SIGMAS, "alphas": ALPHAS}


@pytest.fixture(scope="module")
def data():
    """Three classes that overlap, of different sizes, in an order that mixes them."""
    X, y = make_shifted_groups(14, groups=(1, 2, 4), random_state=0)
    order = np.random.default_rng(0).permutation(len(y))[:36]
    return X[order][:, :4], y[order]


@pytest.fixture(scope="module")
def new_rows():
    X, _ = make_shifted_groups(4, groups=(1, 2, 4), random_state=1)
    return X[:, :4]


# Coefficients and probabilities


@pytest.mark.parametrize(
    ("sigma", "alpha"), [(0.05, 0.01), (0.1, 0.1), (0.5, 1.0), (2.0, 0.01), (10.0, 1e-4), (0.3, 1e-6)]
)
def test_agrees_with_the_normal_equations(data, new_rows, sigma, alpha):
    X, y = data
    model = LSPClassifier(sigmas=[sigma], alphas=[alpha]).fit(X, y)
    outputs = estimators_oracle.least_squares_outputs(X, y, new_rows, sigma=sigma, lam=alpha)
    assert alpha > 1e-6 or (outputs < 0).any()  # so that some are clipped
    proba = estimators_oracle.least_squares_probabilities(outputs)
    assert_allclose(model.predict_proba(new_rows), proba, rtol=0, atol=1e-8)
    assert_array_equal(model.predict(new_rows), model.classes_[outputs.argmax(axis=1)])
    distances = ((new_rows[:, np.newaxis] - model.centers_) ** 2).sum(axis=2)
    kernel = np.exp(-distances / (2 * sigma**2 * 4))
    assert_allclose(kernel @ model.dual_coef_, outputs, rtol=0, atol=1e-8)


def test_centers_of_a_large_class_are_picked_at_random(data, new_rows):
    X, y = data
    model = LSPClassifier(sigmas=[0.2], alphas=[0.03], max_centers=5, random_state=0).fit(X, y)
    assert model.centers_.shape == (15, 4)
    positions = [int(np.flatnonzero((center == X).all(axis=1))[0]) for center in model.centers_]
    assert_array_equal(y[positions], np.repeat([1, 2, 4], 5))
    outputs = estimators_oracle.least_squares_outputs(X, y, new_rows, sigma=0.2, lam=0.03, centers=positions)
    expected = estimators_oracle.least_squares_probabilities(outputs)
    assert_allclose(model.predict_proba(new_rows), expected, rtol=0, atol=1e-8)
    again = LSPClassifier(sigmas=[0.2], alphas=[0.03], max_centers=5, random_state=0).fit(X, y)
    other = LSPClassifier(sigmas=[0.2], alphas=[0.03], max_centers=5, random_state=1).fit(X, y)
    assert_array_equal(again.centers_, model.centers_)
    assert not np.array_equal(other.centers_, model.centers_)


@pytest.mark.parametrize("scale", ["standard", "range", "rank"])
def test_scales(data, new_rows, scale):
    X, y = data
    factors = np.array([1e-5, 1.0, 1e3, 1e9])
    plain = LSPClassifier(**SMALL, scale=scale).fit(X, y)
    other = LSPClassifier(**SMALL, scale=scale).fit(X * factors, y)
    assert_allclose(other.predict_proba(new_rows * factors), plain.predict_proba(new_rows), atol=1e-9)
    if scale == "standard":
        pipeline = make_pipeline(StandardScaler(), LSPClassifier(**SMALL)).fit(X, y)
        assert_allclose(plain.predict_proba(new_rows), pipeline.predict_proba(new_rows), atol=1e-9)


# Selection


def test_folds_are_refits(data):
    X, y = data
    # Most rows train in the first splitter, few in the second: two ways to the same sums.
    for splitter in (KFold(3), ShuffleSplit(2, train_size=0.3, random_state=0)):
        results = LSPClassifier(**SMALL, cv=splitter).fit(X, y).cv_results_
        for k, (train, test) in enumerate(splitter.split(X)):
            for c, params in enumerate(results["params"]):
                outputs = estimators_oracle.least_squares_outputs(
                    X[train], y[train], X[test], sigma=params["sigma"], lam=params["alpha"]
                )
                expected = estimators_oracle.least_squares_score(outputs, np.searchsorted([1, 2, 4], y[test]))
                assert results[f"split{k}_test_score"][c] == pytest.approx(expected, abs=1e-12)


def test_results_of_selection(data):
    X, y = data
    model = LSPClassifier(**SMALL, cv=4).fit(X, y)
    results = model.cv_results_
    assert_array_equal(results["param_sigma"], np.repeat(SIGMAS, 3))
    assert_array_equal(results["param_alpha"], np.tile(ALPHAS, 3))
    scores = np.array([results[f"split{k}_test_score"] for k in range(4)])
    assert "split4_test_score" not in results
    assert_allclose(results["mean_test_score"], scores.mean(axis=0))
    assert_allclose(results["std_test_score"], scores.std(axis=0))
    assert results["rank_test_score"].min() == 1
    best = model.best_index_
    assert best == np.flatnonzero(results["rank_test_score"] == 1)[0]  # the first of those that tie
    assert model.best_score_ == results["mean_test_score"].max() == results["mean_test_score"][best]
    assert model.best_params_ == results["params"][best]
    only = LSPClassifier(sigmas=[model.best_params_["sigma"]], alphas=[model.best_params_["alpha"]])
    assert_array_equal(only.fit(X, y).predict_proba(X), model.predict_proba(X))


def test_the_order_of_folds_breaks_no_tie():
    scores = np.array([[0.3, 0.2, 0.1], [0.1, 0.2, 0.3]])
    results = _tabulate(np.array([1.0, 2.0]), np.array([0.1]), scores)
    assert results["mean_test_score"][0] != results["mean_test_score"][1]  # by one bit
    assert_array_equal(results["rank_test_score"], [1, 1])


def test_nothing_to_choose(data):
    X, y = data
    model = LSPClassifier(**SMALL).fit(X, y)
    model.set_params(sigmas=[0.3], alphas=[0.1], cv="not read").fit(X, y)
    assert model.best_params_ == {"sigma": 0.3, "alpha": 0.1}
    for attribute in ("cv_results_", "best_index_", "best_score_"):
        assert not hasattr(model, attribute)
    two_rows = LSPClassifier(sigmas=[0.3], alphas=[0.1]).fit([[0.0], [1.0]], ["a", "b"])
    assert_array_equal(two_rows.predict([[0.1], [0.9]]), ["a", "b"])


def test_widths_that_reach_no_row_are_not_chosen():
    # Far from everything else, a row's outputs are rounding errors, which must not pass for an answer.
    X, y = make_ten_groups(20, random_state=0)
    model = LSPClassifier(sigmas=[0.01, 0.3], alphas=[0.01, 0.1]).fit(X, y)
    assert_array_equal(model.cv_results_["mean_test_score"][:2], 0)
    assert model.best_params_["sigma"] == 0.3


def test_splits_are_those_of_scikit_learn(data):
    X, y = data
    folds = LSPClassifier(**SMALL, cv=3).fit(X, y)
    for cv in (StratifiedKFold(3), list(StratifiedKFold(3).split(X, y))):
        given = LSPClassifier(**SMALL, cv=cv).fit(X, y)
        assert_array_equal(given.cv_results_["mean_test_score"], folds.cv_results_["mean_test_score"])


def test_threads_change_no_bit():
    X, y = make_shifted_groups(100, random_state=0)
    one = LSPClassifier().fit(X, y)
    two = LSPClassifier(n_jobs=2).fit(X, y)
    assert_array_equal(two.dual_coef_, one.dual_coef_)
    for column in ("mean_test_score", "std_test_score", "param_sigma"):
        assert_array_equal(two.cv_results_[column], one.cv_results_[column])


def test_one_eigendecomposition_serves_all_regularisers(data, monkeypatch):
    decomposed = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: decomposed.append(matrix) or eigh(matrix))

    def cost(alphas):
        decomposed.clear()
        LSPClassifier(sigmas=SIGMAS, alphas=alphas, cv=4).fit(*data)
        return len(decomposed)

    assert cost([0.1]) == cost(ALPHAS) > 0


# Clipping, and answers at any distance


def test_the_largest_output_wins_where_all_are_clipped(data, new_rows):
    X, y = data
    model = LSPClassifier(sigmas=[0.3], alphas=[0.1]).fit(X, y)
    model.dual_coef_ = -np.abs(model.dual_coef_) * [3.0, 1.0, 2.0]
    proba = model.predict_proba(new_rows)
    assert_array_equal(np.sort(proba, axis=1), np.tile([0.0, 0.0, 1.0], (len(new_rows), 1)))
    assert_array_equal(model.predict(new_rows), model.classes_[proba.argmax(axis=1)])
    expected = estimators_oracle.least_squares_probabilities(model._outputs(new_rows))
    assert_array_equal(proba, expected)


def test_far_away_the_nearest_centers_decide(data):
    X, y = data
    model = LSPClassifier(sigmas=[0.1], alphas=[0.1]).fit(X, y)
    for distance in (10.0, 1e3):  # at which every kernel is zero to the last bit
        far = np.array([[distance, 0.5, 0.5, 0.5], [-distance, 0.5, 0.5, 0.5]])
        nearest = [((X - x) ** 2).sum(axis=1).argmin() for x in far]
        assert_array_equal(model.predict(far), y[nearest])


def test_chunks_of_new_rows_do_not_matter(data):
    X, y = data
    model = LSPClassifier(**SMALL).fit(X, y)
    many, _ = make_shifted_groups(2000, groups=(1, 2, 4), random_state=2)
    expected = model.predict_proba(many[:, :4])
    with config_context(working_memory=0.01):
        assert_allclose(model.predict_proba(many[:, :4]), expected, atol=1e-12)


# scikit-learn's own check adds them up, which must not overflow.
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1e-200, 1e200, 1e300]),
    st.floats(-1e300, 1e300, allow_nan=False),
)


@examples(60)
@given(
    st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=4, max_size=12),
    st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=4),
    st.sampled_from([None, "standard", "range", "rank"]),
    st.sampled_from([1e-10, 1.0, 1e10]),
)
@example([[0.0, 0.0]] * 4, [[0.0, 0.0]], None, 1e-10)
def test_no_finite_input_gives_nan(rows, new_rows, scale, extreme):
    y = np.arange(len(rows)) % 2
    model = LSPClassifier(sigmas=[extreme, 0.5], alphas=[extreme, 0.1], scale=scale, cv=KFold(2))
    proba = model.fit(rows, y).predict_proba([*new_rows, *rows])
    assert np.isfinite(proba).all()
    assert (proba >= 0).all()
    assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert_array_equal(model.predict([*new_rows, *rows]), proba.argmax(axis=1))
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


@examples(25)
@given(st.integers(0, 1000))
def test_labels_are_only_names(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(18, 2)), np.arange(18) % 3
    model = LSPClassifier(**SMALL, cv=3)
    numbered = model.fit(X, y).predict_proba(X)
    names = np.array(["c", "a", "b"])[y]  # in another order
    assert_allclose(model.fit(X, names).predict_proba(X)[:, [2, 0, 1]], numbered, atol=1e-9)


# Accuracy


# Table 4 of the paper, within 0.03, and ranges of other tables.
RANGES = {2: (0.7339, 0.7939), 3: (0.7035, 0.7635), 4: (0.6828, 0.7428), 5: (0.69, 0.75), 10: (0.19, 0.30)}


@pytest.mark.parametrize("n_groups", RANGES)
def test_accuracy_of_the_paper(n_groups):
    make, sizes = partial(make_shifted_groups, groups=tuple(range(1, n_groups + 1))), (200, 150)
    if n_groups == 10:
        make, sizes = make_ten_groups, (150, 100)
    random = np.random.RandomState(0)
    model = LSPClassifier().fit(*make(sizes[0], random_state=random))
    low, high = RANGES[n_groups]
    assert low < model.score(*make(sizes[1], random_state=random)) < high


# Input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sigmas": [0.1, 0.0]}, "sigmas must be a number between 1e-10 and 1e.10 .inclusive., got 0.0"),
        ({"sigmas": [0.1, "b"]}, "sigmas must be a number"),
        ({"sigmas": [0.1, np.nan]}, "sigmas must be a number .* got nan"),
        ({"sigmas": []}, r"sigmas must be a list of numbers, got \[\]"),
        ({"sigmas": [[0.1]]}, r"sigmas must be a list of numbers, got \[\[0.1\]\]"),
        ({"sigmas": 0.1}, "sigmas must be a list of numbers, got 0.1"),
        ({"alphas": [-1.0]}, "alphas must be a number between .*, got -1.0"),
        ({"max_centers": 0}, "max_centers must be a positive integer, got 0"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0, got 0"),
        ({"scale": "unit"}, "scale must be one of"),
        ({"cv": "10-fold"}, "Expected `?cv`? as an integer"),
        ({"cv": 1}, "k-fold cross-validation requires at least one train/test split"),
        ({"cv": 2.5}, "Expected `?cv`? as an integer"),
        ({"cv": [([0, 1], [])]}, "cv must leave rows for training and for testing, but split 0 does not"),
        ({"cv": [([], [1])]}, "cv must leave rows for training and for testing, but split 0 does not"),
    ],
)
def test_bad_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        LSPClassifier(**parameters).fit(*data)


def test_bad_rows(data):
    X, y = data
    with pytest.raises(
        ValueError,
        match=r"^Column 'x0' has missing values \(NaN\): LSPClassifier accepts none; fill them, .*\.$",
    ):
        LSPClassifier().fit(X * np.nan, y)
    with pytest.raises(
        ValueError, match=r"^Column 'a' holds text, such as 'b': LSPClassifier accepts only numbers"
    ):
        LSPClassifier().fit(pd.DataFrame(X).add_prefix("c").assign(a="b"), y)

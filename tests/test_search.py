"""RodeoClassifierCV: its candidates against plain loops, what it chooses, and that its score is honest."""

import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import rich.progress
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import naive
from corral import EmptySelectionWarning, RodeoClassifier, RodeoClassifierCV
from corral._core import trial as trials_module
from corral._core.copies import effective_number
from corral._core.rows import LabelledRows, TrainingRows
from corral._core.scale import learn_scale
from corral._core.trial import Trial
from corral._estimators import search as _search
from corral.datasets import make_shifted_groups
from exploring import examples

# Small random data often have no variable that stands out; tests/test_selection.py is about that warning.
pytestmark = pytest.mark.filterwarnings(
    "ignore::corral.EmptySelectionWarning", "ignore::corral.CopiedRowsWarning"
)

QUICK = {"scales": ("range",), "c0s": (0.5, 1.0), "rules": ("zscore",), "random_state": 0}
PREDICTIONS = ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "log_density"]
SHARED = [
    "classes_",
    "class_count_",
    "class_prior_",
    "initial_bandwidth_",
    "bandwidths_",
    "zscores_",
    "relevant_",
]
TEMPERATURES = [2.0 ** (k / 2) for k in range(-6, 17)]
KINDS = [("initial", "all"), ("class", "all"), ("class", "separate"), ("class", "selected")]


def three_classes(seed=0, n=12):
    """Three groups that overlap, in four variables, two of them noise."""
    X, y = make_shifted_groups(n, groups=(1, 3, 5), random_state=seed)
    order = np.random.RandomState(seed).permutation(y.size)
    return X[order, :4], y[order]


@pytest.fixture(scope="module")
def data():
    return three_classes()


@pytest.fixture(scope="module")
def fitted(data):
    return RodeoClassifierCV(**QUICK).fit(*data)


def fit_on_trial(model, *args, method="fit", **kwargs):
    """Fit; return the model and the trial that its candidates went through."""
    trials = []
    prepare = Trial.prepare
    with pytest.MonkeyPatch.context() as patch:
        keep = staticmethod(lambda *given: trials.append(prepare(*given)) or trials[-1])
        patch.setattr(Trial, "prepare", keep)
        getattr(model, method)(*args, **kwargs)
    (trial,) = trials
    return model, trial


def assert_same_model(one, other, queries):
    """Equal to the last bit, in what was chosen and in every prediction."""
    for name in (*SHARED, "temperature_", "best_score_", "best_log_loss_"):
        assert_array_equal(getattr(one, name), getattr(other, name), strict=True)
    assert one.best_params_ == other.best_params_
    pd.testing.assert_frame_equal(
        pd.DataFrame(one.cv_results_), pd.DataFrame(other.cv_results_), check_exact=True
    )
    for method in [*PREDICTIONS, "local_bandwidths"]:
        assert_array_equal(getattr(one, method)(queries), getattr(other, method)(queries), strict=True)


def assert_sound(model, queries):
    """No NaN, and probabilities that are some."""
    numbers = [model.best_score_, model.best_log_loss_, model.temperature_]
    numbers += [*model.cv_results_["log_loss"], *model.cv_results_["accuracy"]]
    assert np.isfinite(numbers).all()
    assert -1e-12 <= model.best_score_ <= 1.0 + 1e-12
    proba = model.predict_proba(queries)
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert not np.isnan(model.predict_log_proba(queries)).any()
    assert_array_equal(model.predict(queries), model.classes_[proba.argmax(axis=1)])


# Against the plain loops


@st.composite
def problems(draw):
    """A few rows, their classes and weights, all classes to expect, and priors."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=3))
    y = np.repeat(np.arange(len(sizes)), sizes)
    random = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    columns = []
    for kind in draw(
        st.lists(st.sampled_from(["wide", "narrow", "tied", "constant"]), min_size=1, max_size=3)
    ):
        columns.append(
            {
                "wide": random.uniform(size=y.size) + 0.4 * y,
                "narrow": random.normal(0.5, 0.02, y.size) + 0.01 * y,
                "tied": random.randint(0, 3, y.size) / 2.0,
                "constant": np.full(y.size, 0.3),
            }[kind]
        )
    X = np.column_stack(columns)
    if draw(st.booleans()):
        X[0] = X[-1] = X[y.size // 2]  # whole rows alike, in one class or several
    weights = draw(st.sampled_from([None, "copies", "fractions"]))
    if weights is not None:
        weights = random.choice([1.0, 2.0, 3.0] if weights == "copies" else [0.5, 1.0, 2.5], y.size)
    labels = np.arange(len(sizes) + draw(st.integers(0, 1)))
    priors = draw(st.sampled_from(["uniform", "empirical", "given"]))
    if priors == "given":
        priors = np.append(np.arange(labels.size - 1) + 1.0, 0.0)  # the last class cannot be
        priors /= priors.sum()
    order = random.permutation(y.size)
    return X[order], y[order], weights, labels, priors


def expected_prior(priors, y, weights, labels):
    if isinstance(priors, str):
        m = np.ones(y.size) if weights is None else weights
        counts = np.array([m[y == a].sum() for a in labels])
        return counts / counts.sum() if priors == "empirical" else np.full(labels.size, 1.0 / labels.size)
    return priors


def hit_bounds(tables, codes, weights, temperature, lapse, prior):
    """Smallest and largest weighted share of hits, since rounding decides between equal probabilities."""
    low = high = 0.0
    for row, code, weight in zip(tables, codes, weights, strict=True):
        proba = naive.posterior(row, prior, temperature=temperature, lapse=lapse)
        rival = max(p for a, p in enumerate(proba) if a != code)
        low += weight * (proba[code] > rival + 1e-9)
        high += weight * (proba[code] > rival - 1e-9)
    return low - 1e-9, high + 1e-9


@examples(16)
@given(problem=problems(), c0=st.sampled_from([0.2, 0.7]), seed=st.integers(0, 2**32 - 1))
def test_candidates_agree_with_the_plain_loops(problem, c0, seed):
    X, y, weights, labels, priors = problem
    model = RodeoClassifierCV(
        scales=(None,), c0s=(c0,), rules=("zscore",), cutpoint=-0.5, priors=priors, random_state=seed
    )
    model, trial = fit_on_trial(model, X, y, method="partial_fit", classes=labels, sample_weight=weights)
    prior = expected_prior(priors, y, weights, labels)
    # Copies are merged; tests/test_copies.py is about that.
    X, y, weights, units = trial.data.X, trial.data.codes, trial.data.weights, trial.data.units
    m = np.ones(y.size) if weights is None else weights
    lapse = 1.0 / (naive.effective_number(X, weights) + 2.0)
    tables = naive.log_densities_left_out(
        X, y, labels, trial.folds, KINDS, c0=c0, cutpoint=-0.5, weights=weights, units=units
    )
    found = pd.DataFrame(model.cv_results_)
    # Where nothing is selected anywhere, "selected" would repeat "all".
    kinds = list(zip(found["param_bandwidth"], found["param_features"], strict=True))
    assert kinds in (KINDS, KINDS[:3])
    if kinds == KINDS[:3]:
        assert_allclose(tables["class", "selected"], tables["class", "all"], rtol=1e-12)
    point_weights = m * (prior / np.bincount(y, m, labels.size).clip(1e-300))[y]
    point_weights /= point_weights.sum()
    objectives = []
    for kind, line in zip(kinds, found.itertuples(), strict=True):
        tried = [
            naive.penalised_log_loss(tables[kind], y, prior, temperature=T, lapse=lapse, weights=weights)
            for T in TEMPERATURES
        ]
        k = TEMPERATURES.index(line.temperature)
        assert_allclose(line.log_loss, tried[k][0], rtol=1e-9, atol=1e-9)
        assert tried[k][1] <= min(objective for _, objective in tried) + 1e-9
        low, high = hit_bounds(tables[kind], y, point_weights, line.temperature, lapse, prior)
        assert low <= line.accuracy <= high
        objectives.append(tried[k][1])
    assert objectives[int(np.flatnonzero(found["rank"] == 1)[0])] <= min(objectives) + 1e-9
    # The temperature is refined between those tried; at the first and last it stops a little short of them.
    best = tables[model.best_params_["bandwidth"], model.best_params_["features"]]
    _, refined = naive.penalised_log_loss(
        best, y, prior, temperature=model.temperature_, lapse=lapse, weights=weights
    )
    assert refined <= min(objectives) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_the_score_agrees_with_the_plain_loops(seed):
    # The choice of four fifths, for each fifth.
    X, y = three_classes(seed, 6)
    model, trial = fit_on_trial(
        RodeoClassifierCV(scales=(None,), c0s=(0.3,), rules=("zscore",), cutpoint=-0.5, random_state=seed),
        X,
        y,
    )
    codes = np.searchsorted([1, 3, 5], y)
    folds = trial.folds
    tables = naive.log_densities_left_out(X, y, [1, 3, 5], folds, KINDS, c0=0.3, cutpoint=-0.5)
    right, loss = 0, 0.0
    for fold in range(5):
        choices = {}
        for table in tables.values():
            for T in TEMPERATURES:
                proba = [naive.posterior(row, [1 / 3] * 3, temperature=T, lapse=1 / 20) for row in table]
                losses = [-math.log(p[c]) for p, c in zip(proba, codes, strict=True)]
                others = [losses[i] for i in range(18) if folds[i] != fold]
                # The classes weigh alike among all rows, and the weights of the other fifths sum to 1.
                choices[math.fsum(others) / len(others) + math.log(T) ** 2 / 2 / 18] = proba, losses
        proba, losses = choices[min(choices)]
        for i in np.flatnonzero(folds == fold):
            right += int(np.argmax(proba[i]) == codes[i])
            loss += losses[i]
    assert_allclose(model.best_score_, right / 18, rtol=1e-12)
    assert_allclose(model.best_log_loss_, loss / 18, rtol=1e-9)


@pytest.mark.parametrize("scale", ["range", "standard", "rank"])
def test_units_are_those_of_all_rows(data, scale):
    X, y = data
    weights = np.random.RandomState(0).uniform(0.5, 2.0, y.size)
    scaled = learn_scale(X, weights, scale).transform(X)
    found = RodeoClassifierCV(**{**QUICK, "scales": (scale,)}).fit(X, y, sample_weight=weights)
    plain = RodeoClassifierCV(**{**QUICK, "scales": (None,)}).fit(scaled, y, sample_weight=weights)
    for name in ("log_loss", "accuracy", "temperature", "rank"):
        assert_allclose(found.cv_results_[name], plain.cv_results_[name], rtol=1e-9)
    assert found.best_params_ == {**plain.best_params_, "scale": scale}
    assert_allclose(found.predict_proba(X), plain.predict_proba(scaled), rtol=1e-9, atol=1e-12)


# The score


def test_the_score_is_at_chance_where_labels_are_noise():
    scores, luckiest = [], []
    for seed in range(10):
        X, y = np.random.RandomState(seed).normal(size=(80, 4)), np.repeat([0, 1], 40)
        parameters = {"scales": ("range", "rank"), "c0s": (0.25, 1.0), "rules": ("zscore",)}
        model = RodeoClassifierCV(random_state=seed, **parameters).fit(X, y)
        scores.append(model.best_score_)
        luckiest.append(model.cv_results_["accuracy"].max())
    error = np.std(scores, ddof=1) / math.sqrt(10)
    assert abs(np.mean(scores) - 0.5) <= 3.0 * error
    assert error < 0.04
    # The best of many candidates, judged by what chose it, is not.
    assert np.mean(luckiest) - 0.5 > 3.0 * np.std(luckiest, ddof=1) / math.sqrt(10)


def test_the_score_is_that_of_new_rows():
    scores, new, losses, new_losses = [], [], [], []
    queries, labels = three_classes(99, 200)
    codes = np.searchsorted([1, 3, 5], labels)
    for seed in range(5):
        model = RodeoClassifierCV(**QUICK).fit(*three_classes(seed, 30))
        scores.append(model.best_score_)
        new.append(model.score(queries, labels))
        losses.append(model.best_log_loss_)
        new_losses.append(-model.predict_log_proba(queries)[np.arange(codes.size), codes].mean())
    assert np.mean(new) > 0.7  # chance is 1/3
    assert abs(np.mean(scores) - np.mean(new)) < 0.06
    assert abs(np.mean(losses) - np.mean(new_losses)) < 0.12


def test_probabilities_are_calibrated_where_variables_repeat():
    # Ten copies of two variables, taken as independent, are far too certain: the temperature finds out.
    X, y = make_shifted_groups(60, groups=(1, 2, 3), random_state=0)
    once, repeated = X[:, :2], np.tile(X[:, :2], 10)
    parameters = {**QUICK, "features": ("separate",)}
    model, plain = (RodeoClassifierCV(**parameters).fit(rows, y) for rows in (repeated, once))
    assert model.temperature_ > 4.0 * plain.temperature_
    assert_allclose(model.best_log_loss_, plain.best_log_loss_, atol=0.05)
    assert_allclose(model.predict_proba(repeated), plain.predict_proba(once), atol=0.15)


# Folds and weights


@examples(30)
@given(problem=problems(), seed=st.integers(0, 2**32 - 1))
def test_folds_keep_copies_together(problem, seed):
    X, y, weights, labels, priors = problem
    data = LabelledRows.sort(TrainingRows(X, y, weights), labels)
    prior = expected_prior(priors, y, weights, labels)
    y, weights = data.codes, data.weights
    trial = Trial.prepare(data, np.arange(y.size), prior, 0.1, 0.15, np.random.RandomState(seed))
    assert set(trial.folds.tolist()) <= set(range(5))
    for unit in data.units:
        assert np.ptp(trial.folds[data.units == unit]) == 0
    for a in labels:
        alone = (y == a) & np.isin(data.units, data.units[y != a], invert=True)
        sizes = np.bincount(trial.folds[alone], minlength=5)
        assert sizes.max() - sizes.min() <= 1 + np.sum((y == a) & ~alone)
    seen = np.bincount(y, trial.weights, labels.size)
    with_rows = np.bincount(y, minlength=labels.size) > 0
    assert_allclose(seen, np.where(with_rows, prior, 0.0) / prior[with_rows].sum(), atol=1e-12)
    assert_allclose(trial.count, naive.effective_number(data.X, weights), rtol=1e-12)


def test_rows_of_a_fold_do_not_choose_what_speaks_for_them(data):
    X, y = data
    _, trial = fit_on_trial(RodeoClassifierCV(**QUICK), X, y)
    for fold, units in enumerate(trial.arrange(None)):
        for a, rows in enumerate(units.others):
            assert_array_equal(rows.all(), X[(trial.folds != fold) & (trial.data.codes == a)])
    assert np.bincount(trial.folds).min() >= 6  # twelve rows of each class in five parts


@pytest.mark.parametrize("priors", ["uniform", "empirical"])
def test_copies_are_one_row_with_their_weight_and_zero_is_removal(data, priors):
    X, y = data
    weights = np.random.RandomState(1).randint(0, 4, y.size)
    copies = np.repeat(np.arange(y.size), weights)
    weighted = RodeoClassifierCV(priors=priors, **QUICK).fit(X, y, sample_weight=weights)
    copied = RodeoClassifierCV(priors=priors, **QUICK).fit(X[copies], y[copies])
    assert weighted.best_params_ == copied.best_params_
    for name in ("log_loss", "accuracy", "temperature", "rank"):
        assert_allclose(weighted.cv_results_[name], copied.cv_results_[name], rtol=1e-9)
    for name in ("best_score_", "best_log_loss_"):
        assert_allclose(getattr(weighted, name), getattr(copied, name), rtol=1e-9)
    assert_allclose(weighted.temperature_, copied.temperature_, rtol=1e-4)  # as far as it is searched for
    assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), rtol=1e-4, atol=1e-6)
    assert weighted.best_estimator_.lapse == copied.best_estimator_.lapse
    assert_allclose(copied.best_estimator_.lapse, 1.0 / (naive.effective_number(X, weights) + 2.0))


# What is chosen


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("features", [("all",), ("selected",), ("separate",)])
def test_the_winner_is_the_classifier_with_its_parameters(data, method, features):
    X, y = data
    weights = np.random.RandomState(0).randint(0, 3, y.size)
    parameters = {**QUICK, "features": features, "beta": 0.8, "cutpoint": -0.5, "priors": "empirical"}
    model = getattr(RodeoClassifierCV(**parameters), method)(X, y, sample_weight=weights)
    by_hand = RodeoClassifier(
        **{"rule": "contrast", **model.best_params_},
        temperature=model.temperature_,
        lapse=1.0 / (effective_number(weights.astype(float)) + 2.0),
        beta=0.8,
        cutpoint=-0.5,
        priors="empirical",
        random_state=0,
    ).fit(X, y, sample_weight=weights)
    assert isinstance(model.best_estimator_, RodeoClassifier)
    assert model.best_estimator_.get_params() == by_hand.get_params()
    for name in SHARED:
        assert_array_equal(getattr(model.best_estimator_, name), getattr(by_hand, name), strict=True)
    queries = np.vstack([X, X + 1e6])
    for predict in [*PREDICTIONS, "local_bandwidths"]:
        assert_array_equal(getattr(model, predict)(queries), getattr(by_hand, predict)(queries), strict=True)
    # Whatever it selects variables by, it is described by contrast.
    described = clone(by_hand).set_params(rule="contrast").fit(X, y, sample_weight=weights)
    assert_array_equal(model.relevant_, described.relevant_)
    assert_array_equal(
        model.selection_frequency(3, random_state=1), described.selection_frequency(3, random_state=1)
    )


def test_results_say_what_was_tried(data):
    X, y = data
    model = RodeoClassifierCV(scales=("rank", None), c0s=[0.5, 1], random_state=0).fit(X, y)
    results = model.cv_results_
    assert set(results) == {
        "params",
        "param_scale",
        "param_c0",
        "param_bandwidth",
        "param_features",
        "param_rule",
        "log_loss",
        "accuracy",
        "temperature",
        "rank",
    }
    for i, params in enumerate(results["params"]):
        for name in ("scale", "c0", "bandwidth", "features", "rule"):
            assert results[f"param_{name}"][i] == params.get(name)
    table = pd.DataFrame(results)
    assert sorted(table["rank"]) == list(range(1, len(table) + 1))
    assert len({tuple(params.items()) for params in table["params"]}) == len(table)
    (best,) = table[table["rank"] == 1].itertuples()
    assert best.params == model.best_params_
    # Refined between the neighbours of the one that did best.
    assert 0.5**0.5 <= model.temperature_ / best.temperature <= 2.0**0.5
    assert set(best.params) >= {"scale", "c0", "bandwidth", "features"}
    penalised = table["log_loss"] + 0.5 * np.log(table["temperature"]) ** 2 / len(y)
    assert_array_equal(table["rank"], penalised.rank(method="first"))
    assert table["accuracy"].between(0.0, 1.0).all()


@pytest.mark.parametrize(
    ("features", "rules", "kinds"),
    [
        (("all",), (), [("initial", "all", None), ("class", "all", None)]),
        (["separate"], ("zscore",), [("class", "separate", None)]),
        (("selected",), ("zscore",), [("class", "selected", "zscore")]),
        (("selected",), ["shadow"], [("class", "selected", "shadow")]),
        (
            ("selected", "separate", "all"),
            ("zscore", "shadow"),
            [
                ("initial", "all", None),
                ("class", "all", None),
                ("class", "separate", None),
                ("class", "selected", "zscore"),
                ("class", "selected", "shadow"),
            ],
        ),
    ],
)
def test_candidates_are_the_ones_asked_for(features, rules, kinds):
    random = np.random.RandomState(0)
    y = np.repeat([0, 1], 40)
    X = random.uniform(size=(80, 5))
    X[y == 0, 0] = random.normal(0.5, 0.02, 40)  # so that both rules find something
    model = RodeoClassifierCV(
        scales=("range",), c0s=(0.5, 1.0), features=features, rules=rules, random_state=0
    ).fit(X, y)
    results = model.cv_results_
    for c0 in (0.5, 1.0):
        of_c0 = np.flatnonzero(results["param_c0"] == c0)
        names = ("param_bandwidth", "param_features", "param_rule")
        assert [tuple(results[name][i] for name in names) for i in of_c0] == kinds
    assert len(results["rank"]) == 2 * len(kinds)


def test_shadows_are_drawn_where_other_candidates_did_best(data):
    X, y = three_classes(0, 20)
    model = RodeoClassifierCV(
        scales=("range", "rank"),
        c0s=(0.1, 0.5, 1.0),
        rules=("zscore", "shadow"),
        cutpoint=-0.5,
        random_state=0,
    )
    table = pd.DataFrame(model.fit(X, y).cv_results_)
    slow = table["param_rule"] == "shadow"
    penalised = table["log_loss"] + 0.5 * np.log(table["temperature"]) ** 2 / len(y)
    quick = table.assign(penalised=penalised)[~slow].sort_values("penalised", kind="stable")
    places = list(dict.fromkeys(zip(quick["param_scale"], quick["param_c0"], strict=True)))
    assert 1 <= slow.sum() <= 3
    tried = list(zip(table["param_scale"][slow], table["param_c0"][slow], strict=True))
    assert tried == [place for place in places[:3] if place in tried]


def test_the_plainest_wins_ties():
    # In one variable independent variables are no restriction, and nothing can be selected.
    X, y = three_classes()
    model = RodeoClassifierCV(**{**QUICK, "c0s": (0.5,)}).fit(X[:, :1], y)
    table = pd.DataFrame(model.cv_results_).set_index(["param_bandwidth", "param_features"])
    joint, separate = table.loc[("class", "all")], table.loc[("class", "separate")]
    assert joint["log_loss"] == separate["log_loss"]
    assert separate["rank"] == joint["rank"] + 1
    assert ("class", "selected") not in table.index


def test_good_bandwidths_are_found():
    # Nearest neighbours in all variables, noise included, must lose, and so must bandwidths that see nothing.
    X, y = three_classes(0, 40)
    model = RodeoClassifierCV(**{**QUICK, "c0s": (1e-3, 1.0, 1e3), "features": ("all",)}).fit(X, y)
    assert model.best_params_["c0"] == 1.0
    assert model.score(X, y) > 0.8


# Seeds and threads


@pytest.mark.parametrize("other", [{}, {"n_jobs": 2}, {"n_jobs": -1}])
def test_a_seed_and_any_number_of_threads_change_no_bit(data, other):
    X, y = data
    parameters = {**QUICK, "rules": ("zscore", "shadow")}
    one, two = RodeoClassifierCV(**parameters), RodeoClassifierCV(**parameters, **other)
    assert_same_model(one.fit(X, y), two.fit(X, y), X)


def test_another_seed_means_other_folds(data):
    one, trial = fit_on_trial(RodeoClassifierCV(**QUICK), *data)
    two, other = fit_on_trial(RodeoClassifierCV(**{**QUICK, "random_state": 1}), *data)
    assert np.any(trial.folds != other.folds)
    assert np.any(one.cv_results_["log_loss"] != two.cv_results_["log_loss"])


def test_a_random_state_is_drawn_from(data):
    seeded, drawn = (
        RodeoClassifierCV(**{**QUICK, "random_state": random}).fit(*data)
        for random in (7, np.random.RandomState(7))
    )
    assert_array_equal(seeded.cv_results_["log_loss"], drawn.cv_results_["log_loss"])


# Explanations


@pytest.mark.parametrize("features", ["all", "selected", "separate"])
def test_explanations_agree_with_the_predictions(data, features):
    X, y = data
    model = RodeoClassifierCV(**{**QUICK, "features": (features,)}).fit(X, y)
    queries = np.vstack([X[:6] + 0.01, X[:2] + 1e6])
    explanation, proba = model.explain(queries, n_rows=y.size), model.predict_proba(queries)
    assert_array_equal(explanation.label, model.predict(queries))
    at, label = np.arange(8), np.searchsorted(model.classes_, explanation.label)
    rival = np.searchsorted(model.classes_, explanation.rival)
    assert_allclose(explanation.probability, np.stack([proba[at, label], proba[at, rival]], 1), rtol=1e-12)
    assert_allclose(explanation.shares.sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(y[explanation.rows[:, 0]], explanation.label)
    assert_array_equal(explanation.evidence, model.best_estimator_.explain(queries).evidence)
    if features == "separate":
        log_density = model.log_density(queries)
        ratio = log_density[at, label] - log_density[at, rival]
        assert_allclose(explanation.evidence.sum(axis=1), ratio, rtol=1e-12, atol=1e-10)


def test_explanations_take_their_arguments(data, fitted):
    samples = data[0][fitted.predict(data[0]) != 5][:3]
    explanation = fitted.explain(samples, against=5, n_rows=2)
    assert_array_equal(explanation.rival, [5, 5, 5])
    assert explanation.rows.shape == (3, 2)


# Few rows, odd rows, far rows


@pytest.mark.parametrize("features", ["all", "selected", "separate"])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e12, 1e300])
def test_far_samples(data, features, far):
    X, y = data
    model = RodeoClassifierCV(**{**QUICK, "features": (features,)}).fit(X, y)
    queries = np.vstack([X[:4] + far, X[:4] - far, X[:1] * [far, 1.0, 1.0, 1.0]])
    assert_sound(model, queries)
    # With equal priors the largest density wins, however small it is.
    assert_array_equal(model.predict(queries), model.classes_[model.log_density(queries).argmax(axis=1)])
    # Certain, but for the lapse.
    assert model.predict_proba(queries).min() >= 0.999 / 3.0 / (y.size + 2.0)


ROWS = {
    "one row per class": ([[0.0], [1.0]], ["a", "b"]),
    "a class of one row": ([[0.0, 1.0], [0.2, 1.0], [0.1, 3.0], [5.0, 1.0]], ["a", "a", "a", "b"]),
    "nothing but copies": ([[0.0, 1.0]] * 4 + [[2.0, 1.0]] * 3, ["a"] * 4 + ["b"] * 3),
    "nothing but constants": (np.ones((8, 3)), ["a", "b"] * 4),
    "one variable": (np.arange(10.0)[:, np.newaxis] ** 2, ["a"] * 5 + ["b"] * 5),
    "of all sizes": (np.outer([0.0, 1e-300, 1.0, -1e150, 1e300, 3.0], [1.0, 1e-9]), ["a", "b"] * 3),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(
    ("scale", "features"),
    [("range", ("all", "selected", "separate")), ("standard", ("selected",)), ("rank", ("separate",))],
)
def test_odd_rows(name, scale, features):
    X, y = ROWS[name]
    model = RodeoClassifierCV(scales=(scale,), c0s=(0.5,), features=features, random_state=0).fit(X, y)
    assert_sound(model, np.vstack([X, np.asarray(X) + 1e6, np.asarray(X) - 7.0]))


def test_constants_tell_nothing():
    model = RodeoClassifierCV(**QUICK).fit(np.ones((12, 2)), [0, 1] * 6)
    assert_allclose(model.predict_proba([[1.0, 1.0]]), [[0.5, 0.5]], rtol=1e-9)
    assert_allclose(model.best_log_loss_, math.log(2.0), rtol=1e-9)


def test_where_nothing_is_selected_all_variables_are_kept(data):
    # And the caller, who asked for a selection, is told.
    X, y = data
    model = RodeoClassifierCV(**{**QUICK, "features": ("selected",), "cutpoint": -9.0})
    with pytest.warns(EmptySelectionWarning, match=r"\[1, 3, 5\]"):
        model.fit(X, y)
    joint = RodeoClassifier(scale="range", bandwidth="class", c0=model.best_params_["c0"]).fit(X, y)
    assert_array_equal(model.log_density(X), joint.log_density(X))


def test_a_class_without_rows(data):
    X, y = data
    model = RodeoClassifierCV(**QUICK).partial_fit(X, y, classes=[0, 1, 3, 5])
    without = RodeoClassifierCV(**QUICK).fit(X, y)
    assert_array_equal(model.classes_, [0, 1, 3, 5])
    assert_array_equal(model.class_count_, [0, 12, 12, 12])
    assert_sound(model, X)
    assert_array_equal(model.log_density(X)[:, 1:], without.log_density(X))
    # Its share of the lapse is all it gets.
    assert_allclose(model.predict_proba(X)[:, 0], 0.25 / (y.size + 2.0), rtol=1e-9)


def test_one_class_with_rows(data):
    X, y = data
    for rows in (X[y == 1], X[:1]):
        model = RodeoClassifierCV(**QUICK).partial_fit(rows, np.ones(len(rows)), classes=[0, 1])
        assert_sound(model, X)
        assert set(model.predict(X)) == {1}


# Priors


def test_priors_weigh_classes_in_the_search(data):
    X, y = data
    weights = np.where(y == 1, 3.0, 1.0)
    uniform, empirical, given_ = (
        RodeoClassifierCV(priors=priors, **QUICK).fit(X, y, sample_weight=weights)
        for priors in ("uniform", "empirical", [0.6, 0.2, 0.2])
    )
    assert_allclose(uniform.class_prior_, 1.0 / 3.0)
    assert_allclose(empirical.class_prior_, [0.6, 0.2, 0.2], rtol=1e-12)
    assert_allclose(given_.cv_results_["log_loss"], empirical.cv_results_["log_loss"], rtol=1e-9)
    assert_allclose(given_.predict_proba(X), empirical.predict_proba(X), rtol=1e-4, atol=1e-6)
    assert np.all(uniform.cv_results_["log_loss"] != empirical.cv_results_["log_loss"])


def test_a_class_of_prior_zero_counts_for_nothing(data):
    X, y = data
    model, trial = fit_on_trial(RodeoClassifierCV(priors=[0.5, 0.0, 0.5], **QUICK), X, y)
    assert_sound(model, X)
    assert_array_equal(trial.weights[y == 3], 0.0)
    assert_allclose(trial.weights.sum(), 1.0)
    assert not model.predict_proba(X)[:, 1].any()
    assert 3 not in model.predict(X)


def test_without_any_density_the_prior_is_left(data):
    X, y = data
    model = RodeoClassifierCV(priors=[1.0, 0.0, 0.0, 0.0], **QUICK).partial_fit(X, y, classes=[0, 1, 3, 5])
    assert_sound(model, X)
    assert_array_equal(model.predict_proba(X), np.tile([1.0, 0.0, 0.0, 0.0], (y.size, 1)))
    assert model.best_score_ == 0.0


# Batches, names, copies


@pytest.mark.parametrize(("start", "weighted"), [("fit", True), ("partial_fit", False)])
def test_batches_equal_one_fit(data, start, weighted):
    X, y = data
    weights = np.random.RandomState(0).randint(1, 3, y.size).astype(float)
    A, B = np.flatnonzero(y < 5), np.flatnonzero(y == 5)
    both = np.concatenate([A, B])
    model = RodeoClassifierCV(**QUICK)
    getattr(model, start)(X[A], y[A])
    assert_array_equal(model.classes_, [1, 3])
    model.partial_fit(X[B], y[B], sample_weight=weights[B] if weighted else None)
    weights[A] = 1.0
    expected = RodeoClassifierCV(**QUICK).fit(
        X[both], y[both], sample_weight=weights[both] if weighted else None
    )
    assert_same_model(model, expected, X)


def test_fit_forgets_batches(data, fitted):
    X, y = data
    model = RodeoClassifierCV(**QUICK).partial_fit(X[:, :2], y, classes=[1, 3, 5, 9]).fit(X, y)
    assert_same_model(model, fitted, X)
    assert model.n_features_in_ == 4


def test_names(data):
    X, y = data
    table = pd.DataFrame(X, columns=["length", "width", "height", "weight"])
    model = RodeoClassifierCV(**QUICK).fit(table, np.array(["ant", "bee", "cat"])[y // 2])
    assert_array_equal(model.feature_names_in_, table.columns)
    assert_array_equal(model.best_estimator_.feature_names_in_, table.columns)
    assert model.n_features_in_ == model.best_estimator_.n_features_in_ == 4
    assert model.explain(table[:2]).feature_names == table.columns.tolist()
    assert set(model.predict(table)) == {"ant", "bee", "cat"}
    for method in [*PREDICTIONS, "local_bandwidths", "explain"]:
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            getattr(model, method)(table[["width", "length", "height", "weight"]])
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model.best_estimator_, "feature_names_in_")


def test_copies(data, fitted):
    X, y = data
    again = pickle.loads(pickle.dumps(fitted))
    assert_same_model(again, fitted, X)
    fresh = clone(fitted)
    assert not hasattr(fresh, "best_estimator_")
    assert fresh.get_params() == fitted.get_params()
    assert_same_model(fresh.fit(X, y), fitted, X)
    # A batch that arrives after loading is added to the rows from before.
    both = RodeoClassifierCV(**QUICK).fit(np.vstack([X, X[:9] + 0.1]), np.append(y, y[:9]))
    assert_same_model(again.partial_fit(X[:9] + 0.1, y[:9]), both, X)


def test_labels_come_back_as_they_were(data, fitted):
    X, y = data
    for labels in (np.array(["a", "b", "c"], dtype=object), np.array([-1, 0, 7], dtype=np.int8)):
        model = RodeoClassifierCV(**QUICK).fit(X, labels[y // 2])
        assert model.predict(X).dtype == labels.dtype
        assert_array_equal(model.predict(X), labels[fitted.predict(X) // 2])


# Large data


def test_the_search_reads_some_rows_only(monkeypatch):
    X, y = make_shifted_groups(300, groups=(1, 3), random_state=0)
    X, y = X[np.r_[:300, 300:380], :3], y[np.r_[:300, 300:380]]
    monkeypatch.setattr(_search, "SEARCH_ROWS", 190)
    monkeypatch.setattr(_search, "SEARCH_POINTS", 80)
    model, trial = fit_on_trial(RodeoClassifierCV(**QUICK), X, y)
    # In proportion to the classes, but of each at least 50.
    assert_array_equal(trial.data.counts, [150, 50])
    assert_array_equal(np.bincount(trial.codes), [40, 40])
    assert_array_equal(trial.data.X, X[trial.data.numbers])
    assert (np.diff(trial.points) > 0).all()
    assert trial.count == 80.0
    # The winner has all rows.
    assert_array_equal(model.class_count_, [300, 80])
    assert model.best_estimator_.lapse == 1.0 / 382.0
    again, same = fit_on_trial(RodeoClassifierCV(**QUICK), X, y)
    assert_array_equal(trial.data.numbers, same.data.numbers)
    assert_same_model(model, again, X[:50])
    _, other = fit_on_trial(RodeoClassifierCV(**{**QUICK, "random_state": 1}), X, y)
    assert np.any(trial.data.numbers != other.data.numbers)
    assert np.any(trial.points != other.points)


def test_points_leave_themselves_out_of_the_rows_that_were_chosen(monkeypatch):
    # Positions among points, chosen rows, rows of a class and all rows must not be mixed up.
    X, y = make_shifted_groups(120, groups=(1, 3), random_state=0)
    order = np.random.RandomState(0).permutation(y.size)
    X, y = X[order, :2], y[order]
    weights = np.where(np.arange(y.size) % 7 == 0, 0.0, 1.0)
    monkeypatch.setattr(_search, "SEARCH_ROWS", 100)
    monkeypatch.setattr(_search, "SEARCH_POINTS", 8)
    model = RodeoClassifierCV(scales=(None,), c0s=(0.5,), features=("all",), random_state=0)
    model, trial = fit_on_trial(model, X, y, sample_weight=weights)
    assert len(trial.data.X) <= 102
    tables = naive.log_densities_left_out(
        trial.data.X[:, :2],
        trial.data.codes,
        [0, 1],
        # Only the initial bandwidth is compared, which depends on the sizes of the parts alone.
        trial.folds,
        [("initial", "all")],
        c0=0.5,
        cutpoint=-1.0,
    )["initial", "all"]
    at = [tables[i] for i in trial.points]
    T = model.cv_results_["temperature"][0]
    loss, _ = naive.penalised_log_loss(
        at, trial.codes, [0.5, 0.5], temperature=T, lapse=1.0 / (effective_number(weights) + 2.0)
    )
    assert_allclose(model.cv_results_["log_loss"][0], loss, rtol=1e-9)


def test_weights_do_not_cut_classes_short(monkeypatch):
    # Rows take time, however little they count.
    X, y = make_shifted_groups(80, groups=(1, 3), random_state=0)
    monkeypatch.setattr(_search, "SEARCH_ROWS", 160)
    weights = np.where(y == 1, 1e-3, 1.0)
    _, trial = fit_on_trial(RodeoClassifierCV(**QUICK), X[:, :2], y, sample_weight=weights)
    assert_array_equal(np.bincount(trial.data.codes), [80, 80])


def test_small_data_are_used_whole(data):
    X, y = data
    _, trial = fit_on_trial(RodeoClassifierCV(**QUICK), X, y)
    assert_array_equal(trial.data.numbers, np.arange(y.size))
    assert_array_equal(trial.points, np.arange(y.size))


# Progress


@pytest.mark.parametrize("verbose", [1, 2, True])
def test_verbose_shows_progress_on_the_error_stream(data, fitted, capsys, verbose):
    X, y = data
    model = RodeoClassifierCV(verbose=verbose, **QUICK).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Search" in shown.err
    assert "100%" in shown.err
    assert ("Candidates" in shown.err) == (verbose == 2)
    assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "100%" in shown.err


@pytest.mark.parametrize("parameters", [{}, {"rules": ("shadow",), "features": ("selected",)}])
def test_the_bar_ends_with_the_search(data, capsys, monkeypatch, parameters):
    ends = []

    class Recorded(rich.progress.Progress):
        def __exit__(self, *error):
            ends.extend((task.description, task.completed, task.total) for task in self.tasks)
            super().__exit__(*error)

    monkeypatch.setattr(rich.progress, "Progress", Recorded)
    grid = {"scales": ("range", "rank"), "c0s": (0.5, 1.0)}
    RodeoClassifierCV(**grid, **parameters, random_state=0, verbose=1).fit(*data)
    (search, _, n_steps), *of_winner = ends
    assert search == "Search"
    assert n_steps > 2
    assert {what for what, _, _ in of_winner} == {"Leave-one-out"}
    assert all(completed == total for _, completed, total in ends)


@pytest.mark.parametrize("verbose", [0, -1, False])
def test_silence(data, capsys, verbose):
    RodeoClassifierCV(verbose=verbose, **QUICK).fit(*data).predict(data[0])
    assert capsys.readouterr() == ("", "")


# What is refused


# Each value with the part of it that is named.
BAD = {
    "scales": [
        ("range", "range"),
        ((), ()),
        (None, None),
        (3, 3),
        (("range", "minmax"), "minmax"),
        ((1,), 1),
    ],
    "c0s": [((), ()), (1.0, 1.0), ("1", "1"), (None, None), ([[1.0], [2.0]], [[1.0], [2.0]]), ({1.0}, {1.0})]
    + [((1.0, bad), bad) for bad in (0.0, -1.0, math.nan, math.inf, True, "1", None)],
    "features": [("all", "all"), ((), ()), (None, None), (("all", "local"), "local"), ((None,), None)],
    "rules": [("shadow", "shadow"), ((), ()), (None, None), (("zscore", "gap"), "gap"), ((None,), None)],
    "update": [(bad, bad) for bad in ("both", None)],
    "beta": [(bad, bad) for bad in (0, 1.0, math.nan, "0.9", None)],
    "cutpoint": [(bad, bad) for bad in (math.nan, "-1", None)],
    "min_bandwidth": [(bad, bad) for bad in (0, -0.1, math.nan, "small", None)],
    "priors": [(bad, bad) for bad in ("equal", None, [0.5, 0.5], [0.5, 0.6, 0.7], [-1.0, 1.0, 1.0])],
    "n_jobs": [(bad, bad) for bad in (0, "two", 1.5)],
    "random_state": [(bad, bad) for bad in ("seed", 1.5)],
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused_and_nothing_changes(data, fitted, method, name):
    X, y = data
    model = pickle.loads(pickle.dumps(fitted))
    before = dict(vars(model))
    # Fewer columns must leave no trace either.
    rows = X[:, :2] if method == "fit" else X + 0.1
    for value, named in BAD[name]:
        model.set_params(**{name: value})
        said = rf"^{name.removesuffix('s')}s? .*, got {re.escape(repr(named))}\.$"
        if name == "random_state":  # of which scikit-learn's own sentence does not give the name
            said = f"^{named!r} cannot be used to seed"
        with pytest.raises(ValueError, match=said):
            getattr(model, method)(rows, y)
    model.set_params(**{name: getattr(fitted, name)})
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before if key.endswith("_"))
    assert_same_model(model, fitted, X)


def test_refused_rows_do_not_come_in_with_the_next_batch(data, fitted):
    X, y = data
    model = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(ValueError, match="beta"):
        model.set_params(beta=2.0).partial_fit(X[9:] - 0.1, y[9:])
    both = RodeoClassifierCV(**QUICK).fit(np.vstack([X, X[:9] + 0.1]), np.append(y, y[:9]))
    assert_same_model(model.set_params(beta=0.9).partial_fit(X[:9] + 0.1, y[:9]), both, X)


def test_an_error_on_the_way_leaves_the_model_as_it_was(data, fitted, monkeypatch):
    X, y = data
    model = pickle.loads(pickle.dumps(fitted))

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(trials_module, "leave_one_out_densities", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[:9], y[:9])
    assert model.n_features_in_ == 4
    assert_same_model(model, fitted, X)


def test_rules_are_read_for_a_selection_only(data):
    model = RodeoClassifierCV(**{**QUICK, "rules": (), "features": ("all", "separate")}).fit(*data)
    assert set(model.cv_results_["param_rule"]) == {None}


def test_bad_rows_get_the_errors_of_scikit_learn(data, fitted):
    X, y = data
    for rows, labels, message in [
        (np.full((36, 4), math.nan), y, "Input X contains NaN"),
        (X[:5], y, "inconsistent numbers of samples"),
        (X, np.full(36, 7), r"y must hold at least two classes, got one class: 7\."),
        (X, X[:, 0], "Unknown label type: continuous"),
    ]:
        with pytest.raises(ValueError, match=message):
            RodeoClassifierCV(**QUICK).fit(rows, labels)
    with pytest.raises(ValueError, match="X has 3 features, but RodeoClassifier"):
        fitted.predict(X[:, :3])


@pytest.mark.parametrize("method", [*PREDICTIONS, "local_bandwidths", "explain"])
def test_unfitted(method):
    with pytest.raises(NotFittedError, match="This RodeoClassifierCV instance is not fitted yet"):
        getattr(RodeoClassifierCV(), method)([[0.0]])
    with pytest.raises(NotFittedError, match="This RodeoClassifierCV instance is not fitted yet"):
        RodeoClassifierCV().selection_frequency()

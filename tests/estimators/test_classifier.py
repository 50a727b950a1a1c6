"""Tests of RodeoClassifier: against plain loops, invariances, weights, batches, and what it refuses."""

import itertools
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

import corral.kernels
import corral.parallel
import corral.rodeo.relevance
import paper_oracle
from corral import CorralClassifier, RodeoClassifier
from corral.datasets import make_shifted_groups
from data import data_oracle
from estimators import estimators_oracle
from support.exploring import examples, problems

# Small random data often have no variable that stands out; test_selection.py is about that warning.
pytestmark = pytest.mark.filterwarnings(
    "ignore::corral.EmptySelectionWarning", "ignore::corral.DuplicatesWarning"
)

SCALES = ["range", "standard", "rank", None]
UPDATES = ["simultaneous", "sequential"]
PREDICTIONS = ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "log_density"]
JUDGEMENTS = ["typicality", "is_novel", "predict_set", "assess", "explain"]
FITTED = [
    "classes_",
    "class_count_",
    "class_prior_",
    "initial_bandwidth_",
    "bandwidths_",
    "zscores_",
    "relevant_",
]


def by_class(X, y, scale, weights=None):
    """Scaled rows and weights of each class, as the oracles take them; duplicates are one row."""
    to_scale = estimators_oracle.scaling_function(X, scale, weights)
    X, y, merged, _ = data_oracle.merge_duplicates(X, y, weights)
    alike = weights is None and np.ptp(merged) == 0.0
    return {
        label: (to_scale(X[y == label]),) + (() if alike else (merged[y == label],)) for label in np.unique(y)
    }


def auto_floor(n, h0):
    return h0 / max(n, 1.0)


def own_bandwidths(rows, weights=None, update="simultaneous"):
    """Mean leave-one-out bandwidths of a class, by plain loops."""
    n = paper_oracle.effective_number(rows, weights)
    h0 = paper_oracle.initial_bandwidth(n)
    return paper_oracle.mean_bandwidths(rows, h0=h0, floor=auto_floor(n, h0), update=update, weights=weights)


def assert_same_model(one, other, new_rows):
    """Equal to the last bit, in what was learnt and in every prediction."""
    for name in FITTED:
        assert_array_equal(getattr(one, name), getattr(other, name), strict=True)
    for method in [*PREDICTIONS, "local_bandwidths"]:
        assert_array_equal(getattr(one, method)(new_rows), getattr(other, method)(new_rows), strict=True)


def assert_like_model(one, other, new_rows, *, classes=slice(None), columns=slice(None)):
    """Equal but for rounding; `other` may have its classes and columns in another order."""
    assert_allclose(one.bandwidths_, other.bandwidths_[classes][:, columns], rtol=1e-12)
    assert_allclose(one.zscores_, other.zscores_[classes][:, columns], rtol=1e-9, atol=1e-9)
    assert_array_equal(one.relevant_, other.relevant_[classes][:, columns])
    mine, theirs = new_rows
    expected = other.local_bandwidths(theirs)[:, classes][:, :, columns]
    assert_allclose(one.local_bandwidths(mine), expected, rtol=1e-12)
    for method in PREDICTIONS[1:]:
        expected = getattr(other, method)(theirs)[:, classes]
        assert_allclose(getattr(one, method)(mine), expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def groups():
    """A problem of five classes with rows to learn from and rows to judge."""
    X, y = make_shifted_groups(40, random_state=0)
    new_rows, labels = make_shifted_groups(20, random_state=1)
    return X, y, new_rows, labels


# Against the plain loops


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
@examples(10)
@given(problem=problems(max_rows=5), weighted=st.booleans(), seed=st.integers(0, 2**32))
def test_agrees_with_the_plain_loops(scale, update, problem, weighted, seed):
    X, y, new_rows = problem
    weights = np.random.default_rng(seed).choice([0.25, 1.0, 2.0, 5.5], y.size) if weighted else None
    classes, to_scale = (
        by_class(X, y, scale, weights),
        estimators_oracle.scaling_function(X, scale, weights),
    )
    w = np.ones(y.size) if weights is None else weights
    priors = {label: w[y == label].sum() / w.sum() for label in classes}
    model = RodeoClassifier(scale=scale, update=update, priors="empirical", cutpoint=-0.5)
    model.fit(X, y, sample_weight=weights)
    joint, proba = model.predict_joint_log_proba(new_rows), model.predict_proba(new_rows)
    h = model.local_bandwidths(new_rows)
    for q, x in enumerate(to_scale(new_rows)):
        expected_joint, expected_proba = paper_oracle.classify(
            classes, x, priors=priors, floor=auto_floor, update=update
        )
        assert_allclose(joint[q], list(expected_joint.values()), rtol=1e-9, atol=1e-9)
        assert_allclose(proba[q], list(expected_proba.values()), rtol=1e-9, atol=1e-9)
        for k, (rows, *rest) in enumerate(classes.values()):
            n = paper_oracle.effective_number(rows, *rest)
            h0 = paper_oracle.initial_bandwidth(n)
            expected_h, _ = paper_oracle.rodeo(
                rows, x, h0=h0, floor=auto_floor(n, h0), update=update, weights=rest[0] if rest else None
            )
            assert_allclose(h[q, k], expected_h, rtol=1e-12)
    for k, rows in enumerate(classes.values()):
        mean = own_bandwidths(*rows, update=update)
        assert_allclose(model.bandwidths_[k], mean, rtol=1e-12)
        z = np.array(paper_oracle.zscores(mean))
        assert_allclose(model.zscores_[k], z, rtol=1e-9, atol=1e-9)
        clear = np.abs(z + 0.5) > 1e-9
        varies = np.ptp(X, axis=0) > 0.0  # what is constant in all classes is never relevant
        assert_array_equal(model.relevant_[k, clear], (z <= -0.5)[clear] & varies[clear])


@pytest.mark.parametrize("update", UPDATES)
@examples(15)
@given(problem=problems(max_columns=2), far=st.sampled_from([30.0, 1e3, 1e6, -1e6]))
def test_agrees_with_the_plain_loops_far_away(update, problem, far):
    # In raw units, where both sides see the same numbers: far away the last digit of a scaled one counts.
    X, y, new_rows = problem
    model = RodeoClassifier(scale=None, update=update).fit(X, y)
    classes = by_class(X, y, None)
    priors = dict.fromkeys(classes, 1 / len(classes))
    joint = model.predict_joint_log_proba(new_rows + far)
    for q, x in enumerate(new_rows + far):
        expected, _ = paper_oracle.classify(classes, x, priors=priors, floor=auto_floor, update=update)
        assert_allclose(joint[q], list(expected.values()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "parameters", [{"beta": 0.6}, {"c0": 0.4}, {"min_bandwidth": 0.3}, {"update": "sequential"}]
)
def test_parameters_reach_the_algorithm(parameters):
    X, y = make_shifted_groups(8, groups=(1, 2), random_state=0)
    X = X[:, :3]
    classes = by_class(X, y, None)
    settings = {"beta": 0.9, "c0": 1.0, "update": "simultaneous", **parameters}
    given_floor = settings.pop("min_bandwidth", None)
    floor = auto_floor if given_floor is None else lambda n, h0: given_floor
    joint = RodeoClassifier(scale=None, **parameters).fit(X, y).predict_joint_log_proba(X[:4])
    for q, x in enumerate(X[:4]):
        expected, _ = paper_oracle.classify(classes, x, priors={1: 0.5, 2: 0.5}, floor=floor, **settings)
        assert_allclose(joint[q], list(expected.values()), rtol=1e-9)
    assert np.any(joint != RodeoClassifier(scale=None).fit(X, y).predict_joint_log_proba(X[:4]))


# Each prediction with the others


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("priors", ["uniform", [0.4, 0.1, 0.1, 0.1, 0.3]])
def test_predictions_follow_from_each_other(groups, scale, priors):
    X, y, new_rows, labels = groups
    model = RodeoClassifier(scale=scale, priors=priors).fit(X, y)
    joint, proba = model.predict_joint_log_proba(new_rows), model.predict_proba(new_rows)
    assert_allclose(joint, model.log_density(new_rows) + np.log(model.class_prior_), rtol=1e-14)
    total = np.logaddexp.reduce(joint, axis=1)
    assert_allclose(model.predict_log_proba(new_rows), joint - total[:, np.newaxis], rtol=1e-12, atol=1e-12)
    assert_allclose(proba, np.exp(joint - total[:, np.newaxis]), rtol=1e-12, atol=1e-15)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert_array_equal(model.predict(new_rows), model.classes_[joint.argmax(axis=1)])
    assert model.score(new_rows, labels) == (model.predict(new_rows) == labels).mean()


@pytest.mark.parametrize("seed", range(5))
def test_a_variable_is_relevant_up_to_the_cutpoint(seed):
    # Two z-scores are -+sqrt(1/2), whatever the bandwidths: rounding must not decide, and -1 selects none.
    X, y = make_shifted_groups(20, random_state=seed)
    model = RodeoClassifier(cutpoint=-math.sqrt(0.5)).fit(X[:, :2], y)
    assert_allclose(np.abs(model.zscores_), math.sqrt(0.5), rtol=1e-9)
    assert_array_equal(model.relevant_, model.zscores_ < 0)
    assert not RodeoClassifier().fit(X[:, :2], y).relevant_.any()
    z = RodeoClassifier().fit(X, y).zscores_
    for cutpoint in (float(z[2, 0]), 0, np.float32(0.25), -math.inf, math.inf):
        assert_array_equal(RodeoClassifier(cutpoint=cutpoint).fit(X, y).relevant_, z <= cutpoint)


# Priors


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_given_priors_are_in_the_order_of_the_classes(kind):
    X = np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [1.0]])
    model = RodeoClassifier(priors=kind([0.5, 0.3, 0.2])).fit(X, ["b", "b", "c", "c", "a", "a"])
    # The classes have the same rows, so that only the priors are left.
    assert_allclose(model.predict_proba([[0.4]]), [[0.5, 0.3, 0.2]], rtol=1e-12)
    assert_array_equal(model.classes_, ["a", "b", "c"])


def test_a_class_of_prior_zero_is_never_predicted(groups):
    X, y, new_rows, _ = groups
    model = RodeoClassifier(priors=[0.25, 0.25, 0, 0.25, 0.25]).fit(X, y)
    assert not np.any(model.predict_proba(new_rows)[:, 2])
    assert np.all(np.isneginf(model.predict_log_proba(new_rows)[:, 2]))
    assert 3 not in model.predict(new_rows)


@pytest.mark.parametrize(
    "priors",
    ["equal", None, 0.5, [0.2, 0.3, 0.5], [[0.5, 0.5]], [0.7, 0.7], [-0.5, 1.5], [math.nan, 1.0], ["a", "b"]],
)
def test_impossible_priors(priors):
    with pytest.raises(ValueError, match="priors must") as caught:
        RodeoClassifier(priors=priors).fit([[0.0], [1.0]], ["a", "b"])
    assert f"got {priors!r}." in str(caught.value)


# Weights


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
@examples(8)
@given(problem=problems(max_rows=8), seed=st.integers(0, 2**32))
def test_weights_equal_duplicates_and_zero_equals_removal(scale, update, problem, seed):
    X, y, new_rows = problem
    weights = np.random.default_rng(seed).integers(0, 4, y.size)
    duplicates = np.repeat(np.arange(y.size), weights)
    assume(np.unique(y[duplicates]).size > 1)
    # In a small table not all duplicates are recognised.
    duplicates_found, kept = data_oracle.number_duplicates(X[duplicates], y[duplicates]), X[weights > 0]
    again = data_oracle.number_duplicates(kept, y[weights > 0])
    is_unique = len(np.unique(kept, axis=0)) == len(kept)
    assume(weights.max() <= 1 if duplicates_found is None else again is not None or is_unique)
    parameters = {"scale": scale, "update": update, "priors": "empirical"}
    weighted = RodeoClassifier(**parameters).fit(X, y, sample_weight=weights)
    copied = RodeoClassifier(**parameters).fit(X[duplicates], y[duplicates])
    for name in ("classes_", "class_count_", "class_prior_", "initial_bandwidth_"):
        assert_array_equal(getattr(weighted, name), getattr(copied, name))
    assert_like_model(weighted, copied, (new_rows, new_rows))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"sample_weight must have the shape \(3,\), got \(2,\)\."),
        ([[1, 1, 1]], r"sample_weight must have the shape \(3,\), got \(1, 3\)\."),
        (["a", "b", "c"], r"could not convert string to float|dtype='numeric' is not compatible"),
        ([1, -0.5, 1], r"sample_weight must not be negative, got -0\.5\."),
        ([0, 0, 0], r"sample_weight must not be zero for every row\."),
        ([1, math.nan, 1], r"Input sample_weight contains NaN"),
        ([1, math.inf, 1], r"Input sample_weight contains infinity"),
        ([1, 0, 0], r"y must hold at least two classes, got one class: 'a'\."),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_impossible_weights(method, weights, message):
    with pytest.raises(ValueError, match=message):
        getattr(RodeoClassifier(), method)([[0.0], [1.0], [2.0]], ["a", "b", "b"], sample_weight=weights)


# Rows over which bandwidths are averaged


def test_large_classes_are_averaged_over_some_rows(groups, monkeypatch):
    X, y, new_rows, _ = groups
    everywhere = RodeoClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(corral.rodeo.relevance, "MAX_POINTS", 10)
    first, again, other = (RodeoClassifier(random_state=seed).fit(X, y) for seed in (0, 0, 1))
    assert_array_equal(first.bandwidths_, again.bandwidths_)
    assert np.all(np.any(first.bandwidths_ != other.bandwidths_, axis=1))
    # Each is a mean over ten of the class's rows, whose bandwidths are at most h0.
    assert np.all(first.bandwidths_ <= first.initial_bandwidth_[:, np.newaxis])
    assert_allclose(first.bandwidths_, everywhere.bandwidths_, atol=0.25)
    assert_array_equal(first.predict_proba(new_rows), everywhere.predict_proba(new_rows))
    monkeypatch.setattr(corral.rodeo.relevance, "MAX_POINTS", 40)
    assert_array_equal(RodeoClassifier(random_state=1).fit(X, y).bandwidths_, everywhere.bandwidths_)


def test_one_row_stands_for_its_class(monkeypatch):
    # With one row to average over, the mean must be the bandwidths at one of the rows, not a mixture.
    monkeypatch.setattr(corral.rodeo.relevance, "MAX_POINTS", 1)
    X, y = make_shifted_groups(12, groups=(1, 2), random_state=0)
    X = X[:, :3]
    model = RodeoClassifier(scale=None, random_state=3).fit(X, y)
    h0 = paper_oracle.initial_bandwidth(12)
    for k, (rows,) in enumerate(by_class(X, y, None).values()):
        leave_one_out = [paper_oracle.leave_one_out(rows, i, h0=h0, floor=h0 / 12)[0] for i in range(12)]
        assert np.isclose(leave_one_out, model.bandwidths_[k], rtol=1e-12).all(axis=1).any()


# Batches


@pytest.mark.parametrize(
    ("scale", "first_weights", "second_weights"),
    [("range", False, False), ("standard", True, False), ("rank", False, True), (None, True, True)],
)
def test_batches_equal_one_fit(groups, scale, first_weights, second_weights):
    X, y, new_rows, _ = groups
    rng = np.random.default_rng(5)
    # Classes 1 to 3 first, with some of their rows held back: classes 4 and 5 are news.
    first = (y <= 3) & (rng.uniform(size=y.size) < 0.7)
    weights = np.where(first, first_weights, second_weights) * rng.integers(0, 4, y.size)
    weights = np.where(np.where(first, first_weights, second_weights), weights, 1).astype(float)
    A = {"X": X[first], "y": y[first], "sample_weight": weights[first] if first_weights else None}
    B = {"X": X[~first], "y": y[~first], "sample_weight": weights[~first] if second_weights else None}
    both = RodeoClassifier(scale=scale, priors="empirical").fit(
        np.concatenate([X[first], X[~first]]),
        np.concatenate([y[first], y[~first]]),
        sample_weight=np.concatenate([weights[first], weights[~first]]),
    )
    for start in (RodeoClassifier.fit, RodeoClassifier.partial_fit):
        model = RodeoClassifier(scale=scale, priors="empirical")
        start(model, **A)
        assert_array_equal(model.classes_, [1, 2, 3])
        assert_same_model(model.partial_fit(**B), both, new_rows)


KINDS_OF_LABELS = {"numbers": [0, 1], "text": ["0", "1"], "booleans": [False, True]}


@pytest.mark.parametrize("names", list(itertools.permutations(KINDS_OF_LABELS, 2)), ids="-".join)
@pytest.mark.parametrize("kind", [RodeoClassifier, CorralClassifier])
def test_further_rows_do_not_change_the_kind_of_labels(kind, names):
    first, further = (KINDS_OF_LABELS[name] for name in names)
    message = f"y holds {names[1]} such as {further[0]!r}, and the classes so far are {names[0]} such as"
    X = np.random.RandomState(0).normal(size=(12, 2))
    model = kind(random_state=0).fit(X, np.tile(first, 6))
    classes = model.classes_
    with pytest.raises(ValueError, match=re.escape(message)):
        model.partial_fit(X[:4] + 0.1, np.tile(further, 2))
    with pytest.raises(ValueError, match="all labels must be of one kind"):
        kind().partial_fit(X[:4], np.tile(further, 2), classes=first)
    assert model.classes_ is classes
    assert model.partial_fit(X[:4] + 0.1, np.tile(first, 2)).classes_.dtype == classes.dtype


def test_whole_numbers_and_others_are_labels_of_one_kind():
    X = np.random.RandomState(0).normal(size=(12, 2))
    model = RodeoClassifier().fit(X, np.tile([1, 2], 6)).partial_fit(X[:4] + 0.1, [1.0, 2.0, 3.0, 3.0])
    assert model.classes_.tolist() == [1.0, 2.0, 3.0]


def test_fit_forgets_batches(groups):
    X, y, new_rows, _ = groups
    model = RodeoClassifier().partial_fit(X[y < 3], y[y < 3], classes=[1, 2, 9]).fit(X[y > 3], y[y > 3])
    assert_same_model(model, RodeoClassifier().fit(X[y > 3], y[y > 3]), new_rows)


@pytest.mark.parametrize("scale", SCALES)
def test_a_class_may_have_no_rows_yet(groups, scale):
    X, y, new_rows, _ = groups
    early, late = y < 3, y == 3
    model = RodeoClassifier(scale=scale).partial_fit(X[early], y[early], classes=[3, 2, 1])
    assert_array_equal(model.classes_, [1, 2, 3])
    assert_array_equal(model.class_count_, [40, 40, 0])
    assert_allclose(model.class_prior_, 1 / 3)
    assert np.all(np.isneginf(model.log_density(new_rows)[:, 2]))
    assert not np.any(model.predict_proba(new_rows)[:, 2])
    # Nothing is known of its variables: all stay at the bandwidth that a small class starts from.
    assert_allclose(model.bandwidths_[2], paper_oracle.initial_bandwidth(0))
    assert_array_equal(model.zscores_[2], np.zeros(10))
    without = RodeoClassifier(scale=scale).fit(X[early], y[early])
    assert_array_equal(model.log_density(new_rows)[:, :2], without.log_density(new_rows))
    assert_allclose(model.predict_proba(new_rows)[:, :2], without.predict_proba(new_rows), rtol=1e-12)

    empirical = RodeoClassifier(scale=scale, priors="empirical").partial_fit(
        X[early], y[early], classes=[1, 2, 3]
    )
    assert_array_equal(empirical.class_prior_, [0.5, 0.5, 0])
    assert_allclose(empirical.predict_proba(new_rows)[:, :2], without.predict_proba(new_rows), rtol=1e-12)

    model.partial_fit(X[late], y[late])
    both = np.concatenate([np.flatnonzero(early), np.flatnonzero(late)])
    assert_same_model(model, RodeoClassifier(scale=scale).fit(X[both], y[both]), new_rows)


def test_expected_classes_are_remembered(groups):
    X, y, new_rows, _ = groups
    early = y < 3
    model = RodeoClassifier().partial_fit(X[early], y[early], classes=[1, 2, 8])
    model.partial_fit(X[early], y[early])
    assert_array_equal(model.classes_, [1, 2, 8])
    model.partial_fit(X[y == 3], y[y == 3], classes=[1, 2, 3, 9])
    assert_array_equal(model.classes_, [1, 2, 3, 8, 9])
    assert_array_equal(model.class_count_, [80, 80, 40, 0, 0])
    assert set(model.predict(new_rows)) == {1, 2, 3}


def test_a_refused_batch_leaves_the_model_as_it_was(groups):
    X, y, new_rows, _ = groups
    model, expected = RodeoClassifier().fit(X[y < 3], y[y < 3]), RodeoClassifier().fit(X[y < 3], y[y < 3])
    with pytest.raises(ValueError, match=r"y holds the class 3, which is not in classes\."):
        model.partial_fit(X[y == 3], y[y == 3], classes=[1, 2])
    with pytest.raises(ValueError, match="X has 2 features, but RodeoClassifier is expecting 10"):
        model.partial_fit(X[y == 3, :2], y[y == 3])
    with pytest.raises(ValueError, match="holds an infinite value in row"):
        model.partial_fit(np.full((2, 10), math.inf), [1, 2])
    with pytest.raises(ValueError, match="beta must"):
        model.set_params(beta=2).partial_fit(X[y == 3], y[y == 3])
    assert_same_model(model.set_params(beta=0.9), expected, new_rows)
    # Nor do the refused rows come in with the next batch.
    assert_same_model(model.partial_fit(X[:9], y[:9]), expected.partial_fit(X[:9], y[:9]), new_rows)


def test_given_priors_must_fit_the_classes_of_all_batches(groups):
    X, y, _, _ = groups
    model = RodeoClassifier(priors=[0.5, 0.5]).partial_fit(X[y < 3], y[y < 3])
    with pytest.raises(ValueError, match=r"each of the 3 classes, got \[0\.5, 0\.5\]\."):
        model.partial_fit(X[y == 3], y[y == 3])


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["frog", "a toad"]),
        np.array(["frog", "a toad"], dtype=object),
        np.array([7, -3]),
        np.array([7, -3], dtype=np.int8),
        np.array([True, False]),
        np.array([2.0, 1.0]),
    ],
)
def test_labels_come_back_as_they_were(labels):
    X, y = make_shifted_groups(50, groups=(4, 5), random_state=0)
    model = RodeoClassifier().fit(X, labels[y - 4])
    assert_array_equal(model.classes_, np.sort(labels))
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype == labels.dtype
    assert (predicted == labels[y - 4]).mean() > 0.95
    assert_array_equal(model.predict_proba(X).argmax(axis=1), np.searchsorted(model.classes_, predicted))


# Frames


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_names(frame):
    X, y = make_shifted_groups(30, groups=(1, 2), random_state=0)
    X = X[:, :3]
    table = frame(dict(zip("abc", X.T, strict=True)))
    series = {pd.DataFrame: pd.Series, pl.DataFrame: pl.Series}[frame]
    for labels in (y, np.array(["one", "two"])[y - 1]):
        model = RodeoClassifier().fit(table, series(labels), sample_weight=series(np.full(60, 2)))
        expected = RodeoClassifier().fit(X, labels, sample_weight=np.full(60, 2))
        assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
        for method in [*PREDICTIONS, "local_bandwidths"]:
            assert_array_equal(getattr(model, method)(table), getattr(expected, method)(X))
            with pytest.raises(ValueError, match="Feature names must be in the same order"):
                getattr(model, method)(frame(dict(zip("bac", X.T, strict=True))))


# Progress


@pytest.mark.parametrize(
    ("verbose", "n_jobs"), [(1, None), (2, 2), (True, 2), (0, None), (-1, None), (False, 2)]
)
def test_verbose_shows_progress_on_the_error_stream(groups, capsys, verbose, n_jobs):
    X, y, new_rows, _ = groups
    model, pool = (kind(verbose=verbose, n_jobs=n_jobs) for kind in (RodeoClassifier, CorralClassifier))
    calls = {
        "Leave-one-out": lambda: model.fit(X, y),
        "Rodeo": lambda: model.predict_proba(new_rows),
        "Search": lambda: pool.fit(X[::5], y[::5]),
    }
    for title, call in calls.items():
        call()
        shown = capsys.readouterr()
        assert shown.out == ""
        assert bool(re.search(f"{title}.*100%", shown.err)) == (verbose > 0)
        assert verbose > 0 or shown.err == ""


# What is refused


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("update", ["both", None, True, 1, math.nan, b"sequential"]),
        ("scale", ["minmax", True, 0, math.nan, b"range"]),
        ("bandwidth", ["global", None, True, 0.5]),
        ("features", ["relevant", None, True, ("all",)]),
        ("beta", [0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, math.inf, True, "0.9", None, [0.5]]),
        ("c0", [0, -1.0, math.nan, math.inf, True, "1", None]),
        ("cutpoint", [math.nan, True, "-1", None, [-1.0]]),
        ("min_bandwidth", [0, -0.1, math.nan, False, "small", None]),
        ("n_jobs", [0, math.nan, "two"]),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_parameters_out_of_range_name_the_value(method, name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} .*must be .*, got {re.escape(repr(value))}\\.$"):
            getattr(RodeoClassifier(**{name: value}), method)([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match=r"^1\.5 cannot be used to seed"):  # scikit-learn's
        getattr(RodeoClassifier(random_state=1.5), method)([[0.0], [1.0]], ["a", "b"])


def test_numbers_of_every_kind_are_taken():
    X, y = make_shifted_groups(10, groups=(1, 2), random_state=0)
    expected = RodeoClassifier(beta=0.5, c0=2.0, cutpoint=-1.0, min_bandwidth=0.25).fit(X, y)
    model = RodeoClassifier(
        beta=np.float32(0.5), c0=np.int64(2), cutpoint=np.int8(-1), min_bandwidth=np.float16(0.25)
    )
    assert_same_model(model.fit(X, y), expected, X)


BAD_ROWS = [
    ([[0.0, math.inf]], ValueError, "holds an infinite value in row"),
    ([["a", "b"]], ValueError, "could not convert string to float: 'a'"),
    (np.array([[0.0, 1.0 + 2.0j]]), ValueError, "Complex data not supported"),
    ([0.0, 1.0], ValueError, "Expected 2D array, got 1D array instead"),
    ([[[0.0, 1.0]]], ValueError, "Found array with dim 3"),
    (np.empty((0, 2)), ValueError, r"Found array with 0 sample\(s\)"),
    (np.empty((2, 0)), ValueError, r"Found array with 0 feature\(s\)"),
    (sparse.csr_array([[0.0, 1.0]]), TypeError, "X is sparse, but must be dense"),
]


@pytest.mark.parametrize("method", [*PREDICTIONS, "local_bandwidths", *JUDGEMENTS])
def test_bad_new_rows_get_the_errors_of_scikit_learn(method):
    model = RodeoClassifier().fit([[0.0, 1.0], [2.0, 3.0]], [0, 1])
    more = ([[0.0] * 3], ValueError, "X has 3 features, but RodeoClassifier is expecting 2 features")
    for X, error, message in (*BAD_ROWS, more):
        with pytest.raises(error, match=message):
            getattr(model, method)(X)
    with pytest.raises(NotFittedError, match="This RodeoClassifier instance is not fitted yet"):
        getattr(RodeoClassifier(), method)([[0.0]])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], "Found input variables with inconsistent numbers of samples"),
        ([0.0, 1.0, math.nan], "labels are missing"),
        ([0.5, 1.5, 2.5], "Unknown label type: continuous"),
        ([[0, 1], [1, 0], [0, 0]], "y should be a 1d array"),
        ([4, 4, 4], r"y must hold at least two classes, got one class: 4\."),
        (["frog"] * 3, r"y must hold at least two classes, got one class: 'frog'\."),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_bad_classes(method, y, message):
    with pytest.raises(ValueError, match=message):
        getattr(RodeoClassifier(), method)([[0.0], [1.0], [2.0]], y)


# Properties


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
@examples(10)
@given(problem=problems(max_rows=12, max_columns=5), seed=st.integers(0, 2**32))
def test_order_of_rows_and_columns_and_names_of_classes(scale, update, problem, seed):
    X, y, new_rows = problem
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(y.size), np.arange(X.shape[1])
    if update == "simultaneous":  # the printed order of updates is that of the columns
        rng.shuffle(columns)
    names = rng.choice(list("pqrstuvwxyz"), 3, replace=False)[: y.max() + 1]
    one = RodeoClassifier(scale=scale, update=update).fit(X[:, columns], y)
    other = RodeoClassifier(scale=scale, update=update).fit(X[rows], names[y[rows]])
    classes = np.searchsorted(other.classes_, names)
    assert_like_model(one, other, (new_rows[:, columns], new_rows), classes=classes, columns=columns)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
@examples(10)
@given(
    problem=problems(max_rows=12),
    constants=st.lists(st.integers(-1000, 1000), min_size=3, max_size=3),
    factors=st.lists(st.floats(1e-100, 1e100), min_size=3, max_size=3),
)
def test_adding_a_constant_and_rescaling_a_column(scale, update, problem, constants, factors):
    X, y, new_rows = problem
    moved = np.array(constants[: X.shape[1]])
    one = RodeoClassifier(scale=scale, update=update).fit(X, y)
    other = RodeoClassifier(scale=scale, update=update).fit(X + moved, y)
    assert_like_model(one, other, (new_rows, new_rows + moved))
    if scale is not None:
        # A constant column has no spread to be measured by and keeps its own units.
        factor = np.where(np.ptp(X, axis=0) > 0, factors[: X.shape[1]], 1.0)
        other = RodeoClassifier(scale=scale, update=update).fit(X * factor, y)
        assert_like_model(one, other, (new_rows, new_rows * factor))


@pytest.mark.parametrize("update", UPDATES)
@examples(5)
@given(
    seed=st.integers(0, 2**32),
    n_jobs=st.sampled_from([None, 2, 3, -1]),
    chunk=st.sampled_from([1, 2000, 10_000, 10**9]),
    weighted=st.booleans(),
    bandwidth=st.sampled_from(["local", "class"]),
)
@pytest.mark.filterwarnings("ignore::corral.ShiftedTableWarning")
def test_threads_and_chunks_change_no_bit(update, seed, n_jobs, chunk, weighted, bandwidth):
    rng = np.random.default_rng(seed)
    X, y = make_shifted_groups(30, groups=(1, 2, 3), random_state=seed % 2**32)
    new_rows = rng.normal(size=(40, 10)) * 0.4
    weights = rng.integers(1, 3, y.size) if weighted else None
    settings = {"update": update, "bandwidth": bandwidth}
    one = RodeoClassifier(**settings).fit(X, y, sample_weight=weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corral.parallel, "_CHUNK", chunk)
        other = RodeoClassifier(**settings, n_jobs=n_jobs).fit(X, y, sample_weight=weights)
        assert_same_model(one, other, new_rows)


# No NaN, ever


def assert_sound(model, new_rows):
    for name in ("class_prior_", "initial_bandwidth_", "bandwidths_", "zscores_"):
        assert np.all(np.isfinite(getattr(model, name)))
    assert np.all(model.bandwidths_ > 0)
    proba = model.predict_proba(new_rows)
    assert np.all(np.isfinite(proba))
    assert np.all(proba >= 0)
    assert np.all(np.abs(proba.sum(axis=1) - 1) <= 1e-12)
    log_proba = model.predict_log_proba(new_rows)
    assert not np.any(np.isnan(log_proba))
    assert np.all(log_proba <= 0)
    for method in ("predict_joint_log_proba", "log_density"):
        assert np.all(np.isfinite(getattr(model, method)(new_rows)))
    h = model.local_bandwidths(new_rows)
    assert np.all(np.isfinite(h))
    assert np.all(h > 0)
    assert_array_equal(model.predict(new_rows), model.classes_[proba.argmax(axis=1)])


NASTY = {
    "normal": lambda rng, n: rng.normal(size=n),
    "constant": lambda rng, n: np.full(n, 3.0),
    "almost constant": lambda rng, n: np.where(np.arange(n) == n - 1, 3.0 + 4e-16, 3.0),
    "tied": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "huge": lambda rng, n: rng.choice([-1e300, 1e300, 3e299], n),
    # scikit-learn's own check for infinities adds all numbers up, so their sum must not overflow.
    "largest": lambda rng, n: rng.choice([-1e306, 1e306], n),
    "tiny": lambda rng, n: rng.choice([-1e-300, 1e-300, 0.0], n),
    "subnormal": lambda rng, n: rng.choice([0.0, 5e-324, 1e-323, 1e-310], n),
    "of all sizes": lambda rng, n: rng.choice([0.0, 1e-300, 1.0, -1e150, 1e300], n),
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
@examples(12)
@given(
    kinds=st.lists(st.sampled_from(sorted(NASTY)), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 7), min_size=2, max_size=4),
    duplicates=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_nasty_columns(scale, update, kinds, sizes, duplicates, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.column_stack([NASTY[kind](rng, y.size) for kind in kinds])
    if duplicates:
        X = X[rng.integers(0, y.size, y.size)]
    model = RodeoClassifier(scale=scale, update=update).fit(X, y)
    far = np.outer([1e6, -1e6, 1e154, -1e300, 1.7e308, 5e-324], np.ones(len(kinds)))
    assert_sound(model, np.vstack([X, far]))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
def test_opposite_ends_of_the_doubles(scale, update):
    X = np.array([[-1.7e308], [0.0], [1.7e308], [1e307]])
    model = RodeoClassifier(scale=scale, update=update).fit(X, [0, 0, 1, 1])
    assert_sound(model, X)
    assert_array_equal(model.predict([[-1.6e308], [1.6e308]]), [0, 1])


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
def test_classes_of_one_row(scale, update):
    X = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    model = RodeoClassifier(scale=scale, update=update).fit(X, ["a", "b", "c"])
    assert_sound(model, np.vstack([X, [[1e6, -1e6]]]))
    assert_array_equal(model.bandwidths_, np.full((3, 2), model.initial_bandwidth_[0]))
    proba = model.predict_proba([[0.0, 1.0]])[0]
    assert proba[0] == proba[2] > proba[1]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("weight", [1e-300, 1e-5, 1e15, 1e300])
def test_weights_of_all_sizes(groups, scale, weight):
    X, y, new_rows, _ = groups
    weights = np.where(np.arange(y.size) % 3 == 0, weight, 1.0)
    model = RodeoClassifier(scale=scale, priors="empirical").fit(X, y, sample_weight=weights)
    assert_sound(model, new_rows)

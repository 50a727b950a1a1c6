"""The same bits on any number of threads; a row alone, among others and in any order has the same numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from corral import CorralClassifier, LSPClassifier, RodeoClassifier, RodeoDensity

pytestmark = pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")

N_NEW_ROWS = 19


def tables(d=7, n=120):
    """Training rows, their classes and new rows: correlated columns with spreads from 1e-2 to 1e3."""
    rng = np.random.default_rng(d)
    mixing = rng.normal(size=(d, d)) * np.logspace(-2.0, 3.0, d)
    y = np.arange(n) % 3
    X = (rng.normal(size=(n, d)) + 0.7 * y[:, np.newaxis]) @ mixing
    return X, y, rng.normal(size=(N_NEW_ROWS, d)) @ mixing


def assert_close(actual, expected):
    assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def assert_rows_on_their_own(function, new_rows):
    """Compare the result for a whole table with those for rows, pieces, another layout and another order."""
    expected = function(new_rows)
    for size in (1, 7):
        parts = [function(new_rows[first : first + size]) for first in range(0, len(new_rows), size)]
        assert_close(np.concatenate(parts), expected)
    assert_close(function(np.asfortranarray(new_rows)), expected)
    assert_close(function(new_rows[::-1])[::-1], expected)


def assert_same_on_threads(model, function, new_rows):
    """Compare the bits of the result for one thread with those for several."""
    expected = function(new_rows)
    for n_jobs in (2, 3):
        model.set_params(n_jobs=n_jobs)
        assert_array_equal(function(new_rows), expected)


SETTINGS = [
    {"scale": scale, "bandwidth": bandwidth, "features": features, "update": update}
    for k, scale in enumerate(("range", "standard", "rank", None))
    for bandwidth, features, update in (
        ("local", ("all", "selected")[k % 2], "simultaneous"),
        ("local", ("selected", "all")[k % 2], "sequential"),
        ("class", ("all", "selected")[k % 2], "simultaneous"),
    )
]


def assessed_numbers(model, rows):
    assessment = model.assess(rows)
    return np.column_stack(
        [
            assessment.proba,
            assessment.scores,
            assessment.typicality,
            assessment.novelty,
            assessment.is_novel,
        ]
    )


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_classifier(settings):
    X, y, new_rows = tables()
    weights = 1.0 + np.arange(len(y)) % 2
    model = RodeoClassifier(**settings, cutpoint=-0.5).fit(X, y, weights)
    assert_rows_on_their_own(lambda rows: assessed_numbers(model, rows), new_rows)
    assert_rows_on_their_own(model.predict_proba, new_rows)
    assert_rows_on_their_own(model.local_bandwidths, new_rows)
    assert_same_on_threads(model, model.log_density, new_rows)


@pytest.mark.parametrize(
    ("scale", "bandwidth"), [("range", "local"), ("standard", "class"), ("rank", "local"), (None, "class")]
)
def test_explanations(scale, bandwidth):
    X, y, new_rows = tables(5)
    model = RodeoClassifier(scale=scale, bandwidth=bandwidth).fit(X, y)

    def numbers(rows):
        explanation = model.explain(rows)
        return np.hstack(
            [explanation.evidence, explanation.shares, explanation.rows, explanation.probability]
        )

    assert_rows_on_their_own(numbers, new_rows)


def test_search():
    X, y, new_rows = tables()
    model = CorralClassifier(random_state=0).fit(X, y)
    assert_rows_on_their_own(model.predict_proba, new_rows)
    assert_same_on_threads(model, model.predict_proba, new_rows)
    assert_same_on_threads(model, model.typicality, new_rows)


def test_search_with_missing_values_and_categories():
    X, y, new_rows = (np.array(a) for a in tables())
    random = np.random.default_rng(0)
    for table in (X, new_rows):
        table[:, 3] = random.integers(0, 3, size=len(table))
        table[random.random(table.shape) < 0.2] = np.nan
    model = CorralClassifier(random_state=0, categorical_features=[3]).fit(X, y)
    assert_rows_on_their_own(model.predict_proba, new_rows)
    assert_rows_on_their_own(lambda rows: assessed_numbers(model, rows), new_rows)
    assert_rows_on_their_own(lambda rows: model.explain(rows).evidence, new_rows)
    assert_same_on_threads(model, model.predict_proba, new_rows)


@pytest.mark.parametrize("scale", ["range", "standard", None])
@pytest.mark.parametrize("update", ["simultaneous", "sequential"])
def test_density(scale, update):
    X, _, new_rows = tables()
    model = RodeoDensity(scale=scale, update=update).fit(X)
    assert_rows_on_their_own(model.score_samples, new_rows)
    assert_rows_on_their_own(model.local_bandwidths, new_rows)
    assert_same_on_threads(model, model.score_samples, new_rows)
    assert_same_on_threads(model, lambda rows: model.sample(len(rows), random_state=0), new_rows)


@pytest.mark.parametrize("scale", ["range", "standard", "rank", None])
def test_least_squares(scale):
    X, y, new_rows = tables()
    model = LSPClassifier(scale=scale, sigmas=[1.0], alphas=[0.1]).fit(X, y)
    assert_rows_on_their_own(model.predict_proba, new_rows)


def test_accuracies_are_at_most_one():
    # Here the weights of the points sum to 1.0000000000000007.
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1, 2], rng.integers(5, 12, size=3))
    X = y[:, np.newaxis] + 0.01 * rng.normal(size=(len(y), 1))
    model = CorralClassifier(random_state=0).fit(X, y)
    assert model.cv_accuracy_ == pytest.approx(1.0, abs=1e-9)
    assert model.cv_accuracy_ <= 1.0
    assert model.member_scores_["accuracy"].max() <= 1.0

"""On a complete table of numbers, the code for missing values and categories gives the numbers of the other.

There are two implementations of most densities. One is fast and takes complete rows of numbers. The general
one also takes missing values, categories and rows that are left out together. Here the general one gets
tables that the fast one takes as well, and must agree with it to 1e-10 of the largest number.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from corral import CorralClassifier, RodeoClassifier, RodeoDensity
from corral.data.dataset import LabelledRows
from corral.data.tiles import ClassRows
from corral.datasets import make_shifted_groups
from corral.parallel import Computation
from corral.pool.exponents import KernelRows
from corral.rodeo.descent import kernel_density, rodeo
from corral.rodeo.path import rodeo_path
from corral.rodeo.relevance import leave_one_out_bandwidths
from corral.rodeo.settings import RodeoSettings

TOLERANCE = 1e-10

X, Y = make_shifted_groups(30, groups=(1, 4, 5), random_state=0)
NEW_ROWS, _ = make_shifted_groups(4, groups=(1, 4, 5), random_state=1)
X, NEW_ROWS = X[:, :4], NEW_ROWS[:, :4]
WEIGHTS = np.random.default_rng(0).uniform(0.2, 3.0, len(Y))
GROUPS = np.random.default_rng(1).integers(20, size=len(Y))


def assert_close(found, expected):
    """Compare arrays relative to their largest finite number; infinities and NaN must agree."""
    expected = np.asarray(expected)
    size = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=TOLERANCE * (size or 1.0))


@pytest.fixture
def general_path(monkeypatch):
    """Make every table fitted from now on take the general path, once it is called."""

    def force():
        monkeypatch.setattr(LabelledRows, "mixed", True)
        monkeypatch.setattr(ClassRows, "is_plain", False)
        monkeypatch.setattr(KernelRows, "complete", False)

    return force


# ------------------------------------------------------------------------------------- whole estimators


def numbers_of_classifier(model):
    """All numbers that a fitted classifier gives, by name."""
    explanation, description = model.explain(NEW_ROWS), model.describe()
    return {
        "log probabilities": model.predict_log_proba(NEW_ROWS),
        "log densities": model.log_density(NEW_ROWS),
        "typicality": model.typicality(NEW_ROWS),
        "typicality scores": model.assess(NEW_ROWS).scores,
        "evidence": explanation.evidence,
        "base": explanation.base,
        "conditional": explanation.conditional,
        "support": explanation.shares,
        "outlyingness": explanation.unlikeness,
        "evidence of classes": description.evidence,
        "effects": description.effect,
    }


@pytest.mark.parametrize(
    "given", [{}, {"sample_weight": WEIGHTS, "groups": GROUPS}], ids=["plain", "weights and groups"]
)
def test_pools(given, general_path):
    plain = CorralClassifier(random_state=0).fit(X, Y, **given)
    assert all(of.kernel_rows.complete for member in plain.model_.pool.members for of in member.classes)
    expected = numbers_of_classifier(plain)
    general_path()
    general = CorralClassifier(random_state=0).fit(X, Y, **given)
    for name, values in numbers_of_classifier(general).items():
        assert_close(values, expected[name])
    assert_close(general.member_weights_, plain.member_weights_)
    assert_close(general.cv_log_loss_, plain.cv_log_loss_)
    assert_close(general.member_scores_["log_loss"], plain.member_scores_["log_loss"])
    assert_close(general.member_scores_["temperature"], plain.member_scores_["temperature"])
    assert_array_equal(general.member_scores_["bandwidth"], plain.member_scores_["bandwidth"])


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"bandwidth": "class"}, {"update": "sequential"}, {"features": "selected", "cutpoint": -0.5}],
    ids=str,
)
def test_rodeo_classifiers(parameters, weights, general_path):
    plain = RodeoClassifier(**parameters).fit(X, Y, weights)
    assert all(density.rows.is_plain for density in plain.model_.densities)
    expected, local_bandwidths = numbers_of_classifier(plain), plain.local_bandwidths(NEW_ROWS)
    general_path()
    general = RodeoClassifier(**parameters).fit(X, Y, weights)
    for name, values in numbers_of_classifier(general).items():
        assert_close(values, expected[name])
    assert_close(general.bandwidths_, plain.bandwidths_)
    assert_close(general.local_bandwidths(NEW_ROWS), local_bandwidths)


def test_densities_of_one_sample(general_path):
    plain = RodeoDensity().fit(X, sample_weight=WEIGHTS)
    assert plain.density_.density.rows.is_plain
    scores, sample = plain.score_samples(NEW_ROWS), plain.sample(20, random_state=0)
    general_path()
    general = RodeoDensity().fit(X, sample_weight=WEIGHTS)
    assert_close(general.score_samples(NEW_ROWS), scores)
    assert_close(general.sample(20, random_state=0), sample)


# ------------------------------------------------------------------------------------------------- Rodeo


def rows_of_a_class(weighted):
    """One class, part of it concentrated in the first variable, for both paths."""
    random = np.random.default_rng(4)
    rows = random.normal(size=(60, 4))
    rows[:45, 0] = random.normal(0.0, 0.05, 45)
    weights = random.uniform(0.2, 3.0, 60) if weighted else None
    plain = ClassRows.arrange(rows, weights)
    general = replace(plain, groups=np.arange(60))
    assert plain.is_plain > general.is_plain
    return plain, general


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("update", ["simultaneous", "sequential"])
def test_the_descent_of_bandwidths(update, weighted):
    plain, general = rows_of_a_class(weighted)
    grid, own = RodeoSettings().grid(plain.n), np.arange(0, 60, 4)
    for new_rows, left_out in ((NEW_ROWS, None), (plain.take(own), own)):
        expected, expected_steps = rodeo(plain, grid, new_rows, update, left_out)
        log_density, steps = rodeo(general, grid, new_rows, update, left_out)
        assert expected_steps.max() > 3
        assert_array_equal(steps, expected_steps)
        assert_close(log_density, expected)
    with_gap = NEW_ROWS.copy()
    with_gap[1, 0] = np.nan  # one row with a missing value changes no other
    found, alone = rodeo(plain, grid, with_gap, update)[0], rodeo(plain, grid, NEW_ROWS, update)[0]
    assert_array_equal(np.delete(found, 1), np.delete(alone, 1))


@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_densities_with_given_bandwidths(weighted):
    plain, general = rows_of_a_class(weighted)
    own = np.arange(12)
    for new_rows, left_out, h in (
        (NEW_ROWS, None, np.array([0.3, 0.6, 0.5, 0.4])),
        (plain.take(own), own, np.array([0.1, np.inf, 2.0, 0.2])),
    ):
        expected = kernel_density(plain, new_rows, h, left_out)
        assert_close(kernel_density(general, new_rows, h, left_out), expected)


@pytest.mark.parametrize("update", ["simultaneous", "sequential"])
def test_paths_and_leave_one_out_bandwidths(update):
    plain, general = rows_of_a_class(weighted=True)
    settings, points = RodeoSettings(update=update), [np.arange(60)]
    expected, found = (
        leave_one_out_bandwidths([rows], points, settings, Computation(None, 0))[0]
        for rows in (plain, general)
    )
    assert_array_equal(found, expected)
    grid = settings.grid(plain.n)
    expected, found = (rodeo_path(rows, grid, NEW_ROWS[0], update) for rows in (plain, general))
    assert_array_equal(found.bandwidths, expected.bandwidths)
    assert_close(found.ratios, expected.ratios)

"""On a complete table of numbers, the code for missing values and categories gives the numbers of the other.

There are two implementations of most densities. One is fast and takes complete rows of numbers. The general
one also takes missing values, categories and rows that are left out together. Here the general one gets
tables that the fast one takes as well, and must agree with it to 1e-10 of the largest number.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from corral import CorralClassifier, RodeoClassifier, RodeoDensity
from corral.data.dataset import LabelledRows
from corral.data.tiles import ClassRows
from corral.datasets import make_shifted_groups
from corral.pool.exponents import KernelRows
from corral.rodeo.path import density_path

TOLERANCE = 1e-10

X, Y = make_shifted_groups(30, groups=(1, 4, 5), random_state=0)
NEW_ROWS, _ = make_shifted_groups(4, groups=(1, 4, 5), random_state=1)
X, NEW_ROWS = X[:, :4], NEW_ROWS[:, :4]
WEIGHTS = np.random.default_rng(0).uniform(0.2, 3.0, len(Y))
GROUPS = np.random.default_rng(1).integers(20, size=len(Y))


def assert_close(actual, expected):
    """Compare arrays relative to their largest finite number; infinities and NaN must agree."""
    expected = np.asarray(expected)
    size = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=TOLERANCE * (size or 1.0))


@pytest.fixture
def general_path(monkeypatch):
    """Make every table fitted from now on take the general path, once it is called."""

    def force():
        monkeypatch.setattr(LabelledRows, "mixed", True)
        monkeypatch.setattr(ClassRows, "is_plain", False)
        monkeypatch.setattr(KernelRows, "complete", False)

    return force


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
        "outlyingness": explanation.novelty_parts,
        "evidence of classes": description.evidence,
        "effects": description.effect,
    }


@pytest.mark.parametrize(
    "given", [{}, {"sample_weight": WEIGHTS, "groups": GROUPS}], ids=["plain", "weights and groups"]
)
def test_pools(given, general_path):
    plain = CorralClassifier(random_state=0).fit(X, Y, **given)
    assert all(
        density.kernel_rows.complete for member in plain.model_.pool.members for density in member.classes
    )
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
    assert (local_bandwidths < 0.8 * plain.initial_bandwidth_.min()).any()
    path = density_path(plain.model_.densities[0], NEW_ROWS[0], plain.update)
    with_missing = NEW_ROWS.copy()
    with_missing[1, 0] = np.nan  # changes no other row
    others = np.arange(len(NEW_ROWS)) != 1
    same = assert_close if "bandwidth" in parameters else assert_array_equal
    same(plain.log_density(with_missing)[others], expected["log densities"][others])
    general_path()
    general = RodeoClassifier(**parameters).fit(X, Y, weights)
    for name, values in numbers_of_classifier(general).items():
        assert_close(values, expected[name])
    assert_close(general.bandwidths_, plain.bandwidths_)
    assert_close(general.local_bandwidths(NEW_ROWS), local_bandwidths)
    actual = density_path(general.model_.densities[0], NEW_ROWS[0], plain.update)
    assert_array_equal(actual.bandwidths, path.bandwidths)
    assert_close(actual.ratios, path.ratios)


def test_densities_of_one_sample(general_path):
    plain = RodeoDensity().fit(X, sample_weight=WEIGHTS)
    assert plain.density_.density.rows.is_plain
    scores, sample = plain.score_samples(NEW_ROWS), plain.sample(20, random_state=0)
    general_path()
    general = RodeoDensity().fit(X, sample_weight=WEIGHTS)
    assert_close(general.score_samples(NEW_ROWS), scores)
    assert_close(general.sample(20, random_state=0), sample)

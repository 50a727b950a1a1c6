"""Explanations as objects of the package shap, and as pictures."""

import sys
import types

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from corral import CorralClassifier
from corral.datasets import load_penguins


@pytest.fixture(scope="module")
def birds():
    return load_penguins(return_X_y=True)


@pytest.fixture(scope="module")
def classifier(birds):
    X, y = birds
    return CorralClassifier(random_state=0).fit(X[::2], y[::2])


@pytest.fixture
def stand_in(monkeypatch):
    """In place of shap, which this project does not need: its Explanation keeps what it is given."""
    module = types.ModuleType("shap")
    module.Explanation = types.SimpleNamespace
    monkeypatch.setitem(sys.modules, "shap", module)


def test_values_and_base_add_up_to_the_log_odds(classifier, birds, stand_in):
    explanation = classifier.explain(birds[0][4:12])
    shown = explanation.to_shap()
    assert_array_equal(shown.values, explanation.evidence)
    assert_allclose(shown.base_values + shown.values.sum(axis=1), explanation.log_odds)
    assert_array_equal(shown.data, explanation.values)
    assert shown.feature_names == list(birds[0].columns)


def test_values_favour_one_class_in_all_samples(classifier, birds, stand_in):
    X = birds[0][1::40]
    explanation = classifier.explain(X, against="Adelie")
    shown = explanation.to_shap("Adelie")
    is_adelie = classifier.predict(X) == "Adelie"
    assert 0 < is_adelie.sum() < len(X)
    log_odds = shown.base_values + shown.values.sum(axis=1)
    assert_array_equal(log_odds > 0.0, is_adelie)
    assert_allclose(np.abs(log_odds), explanation.log_odds)
    with pytest.raises(ValueError, match=r"^sample \d+ compares .* not with Gentoo: .*against='Gentoo'\)\.$"):
        explanation.to_shap("Gentoo")


def test_a_missing_package_is_named(classifier, birds, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"^to_shap needs the package shap: pip install shap$"):
        classifier.explain(birds[0][:1]).to_shap()


@pytest.mark.filterwarnings("default")  # warnings of another package
def test_plots_of_shap_take_it(classifier, birds):
    shap = pytest.importorskip("shap", reason="shap is not installed")
    shown = classifier.explain(birds[0][1::10], against="Adelie").to_shap("Adelie")
    for draw, what in (
        (shap.plots.waterfall, shown[3]),
        (shap.plots.beeswarm, shown),
        (shap.plots.bar, shown),
    ):
        draw(what, show=False)
        names = {text.get_text().split(" = ")[-1] for text in plt.gcf().axes[0].get_yticklabels()}
        assert "bill_length_mm" in names
        plt.close("all")


def test_plot_draws_a_sample(classifier, birds):
    explanation = classifier.explain(birds[0][4:7])
    display = explanation.plot(2, max_variables=3)
    label, rival = explanation.label[2], explanation.rival[2]
    assert display.axes_[0].get_title().startswith(f"{label} (")
    assert f" rather than {rival} (" in display.axes_[0].get_title()
    assert len(display.axes_[0].get_yticklabels()) == 6  # priors, three variables, the others, log odds
    plt.close(display.figure_)

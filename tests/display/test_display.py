"""Drawings: what is drawn is what the estimators say, and it can be read."""

from __future__ import annotations

import io
import itertools
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import corral
from corral import (
    BandwidthDisplay,
    CorralClassifier,
    ExplanationDisplay,
    MarkerSelector,
    RelevanceDisplay,
    RodeoClassifier,
    RodeoDensity,
    RodeoPath,
    RodeoPathDisplay,
    RodeoSelector,
    load_model,
    save_model,
)
from corral.datasets import make_shifted_groups

matplotlib.use("agg")

NAMES = ["$\\frac{", "<img src=x>", "a_b^c", "a name that is much too long for an axis", "5%", "_id", *"wxyz"]
MODELS = {
    "range": RodeoClassifier(),
    "standard": RodeoClassifier(scale="standard", c0=0.5),
    "rank": RodeoClassifier(scale="rank", update="sequential"),
    "raw": RodeoClassifier(scale=None),
    "selected": RodeoClassifier(features="selected"),
    "class": RodeoClassifier(bandwidth="class"),
    "cv": CorralClassifier(random_state=0),
}


@pytest.fixture(scope="module")
def data():
    return make_shifted_groups(60, groups=(1, 2, 3), random_state=0)


@pytest.fixture(scope="module")
def X_test():
    return make_shifted_groups(10, groups=(1, 2, 3), random_state=1)[0]


@pytest.fixture(scope="module")
def fitted(data):
    return {name: model.fit(*data) for name, model in MODELS.items()}


@pytest.fixture(scope="module")
def named(data):
    """Columns and classes with names that mean something to matplotlib, or do not fit."""
    labels = np.array(["", "$x$", "b", "a class that is too long for an axis, too"], dtype=object)
    return RodeoClassifier().fit(pd.DataFrame(data[0], columns=NAMES), labels[data[1]])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def picture(display, size=None, dpi=50):
    """The pixels of a figure, which must not be blank."""
    if size is not None:
        display.figure_.set_size_inches(size)
    buffer = io.BytesIO()
    display.figure_.savefig(buffer, dpi=dpi)
    buffer.seek(0)
    pixels = plt.imread(buffer)[..., :3]
    assert 0.001 < (pixels.min(axis=2) < 0.9).mean() < 0.9
    return pixels


def texts(labels):
    return [label.get_text() for label in labels]


# Bandwidths


def boxes(axes):
    """Lower and upper end of each box, and its colour."""
    ends = [
        (box.get_path().vertices[:, 1].min(), box.get_path().vertices[:, 1].max()) for box in axes.patches
    ]
    return np.array(ends), [to_hex(box.get_facecolor()) for box in axes.patches]


def medians(axes):
    return [
        line.get_ydata()[0]
        for line in axes.lines
        if line.get_linestyle() == "-" and np.ptp(line.get_xdata()) > 0.5
    ]


@pytest.mark.parametrize("name", ["range", "standard", "rank", "raw", "class"])
def test_boxes_are_those_of_the_local_bandwidths(fitted, X_test, name):
    model = fitted[name]
    y = np.repeat([3, 1, 2], 10)  # not what is predicted
    display = BandwidthDisplay.from_estimator(model, X_test, y)
    h = model.local_bandwidths(X_test)
    for a, axes in enumerate(display.axes_):
        part = h[y == model.classes_[a], a]
        ends, colours = boxes(axes)
        assert_allclose(ends, np.percentile(part, [25, 75], axis=0).T, rtol=1e-12)
        assert_allclose(medians(axes), np.median(part, axis=0), rtol=1e-12)
        assert_array_equal(np.array(colours) != "#ffffff", model.relevant_[a])
        assert axes.get_title() == f"{a + 1} (10 rows)"
        assert axes.lines[0].get_ydata()[0] == model.initial_bandwidth_[a]
    assert_array_equal(display.figure_, display.axes_[0].figure)
    units = {"standard": "standard deviations", "rank": "ranks, 0 to 1", "raw": "units of the data"}
    assert display.figure_.get_supylabel() == f"bandwidth ({units.get(name, 'ranges')})"


def test_rows_belong_to_the_class_they_are_assigned_to(fitted, X_test):
    model = fitted["range"]
    display = BandwidthDisplay.from_estimator(model, X_test)
    assert [len(part) for part in display.bandwidths] == np.bincount(model.predict(X_test))[1:].tolist()
    display = BandwidthDisplay.from_estimator(model, X_test, np.full(30, 2))
    assert texts(display.axes_[0].texts) == texts(display.axes_[2].texts) == ["no rows"]
    assert display.axes_[0].get_title() == "1 (0 rows)"
    assert len(display.axes_[1].patches) == 10
    picture(display)


def test_panels_compare_and_nothing_is_cut_off(fitted, X_test):
    model = RodeoClassifier().fit(*make_shifted_groups(60, groups=(1, 2), random_state=0))
    bandwidths = replace(model.model_.bandwidths, initial=np.array([0.5, 2.0]))
    model.model_ = replace(model.model_, bandwidths=bandwidths)
    for axes in (None, plt.subplots(2)[1]):
        display = BandwidthDisplay.from_estimator(model, X_test, axes=axes)
        assert len({axis.get_ylim() for axis in display.axes_}) == 1
        low, high = display.axes_[0].get_ylim()
        assert low == 0.0
        assert high > 2.0


def test_bandwidths_of_a_density(data, X_test):
    density = RodeoDensity(scale="standard").fit(data[0])
    display = BandwidthDisplay.from_estimator(density, X_test)
    (axes,) = display.axes_
    assert_allclose(medians(axes), np.median(density.local_bandwidths(X_test), axis=0), rtol=1e-12)
    assert axes.lines[0].get_ydata()[0] == density.initial_bandwidth_
    assert axes.get_title() == "30 rows"
    picture(display)


# Relevance


def markers(display):
    """Cells that have a marker, class and variable, by the name of the marker in the legend."""
    return {line.get_label(): line.get_xydata()[:, ::-1].astype(int).tolist() for line in display.ax_.lines}


@pytest.mark.parametrize("name", ["range", "rank", "cv"])  # effects are of ranks, whatever the densities
def test_the_map_is_that_of_the_effects(fitted, name):
    model = fitted[name]
    display = RelevanceDisplay.from_estimator(model)
    assert_array_equal(display.im_.get_array(), model.describe().effect)
    marked = markers(display)
    assert sorted(itertools.chain(*marked.values())) == np.argwhere(display.relevant).tolist()
    assert display.im_.get_clim() == (-1.0, 1.0)
    assert texts(display.ax_.get_yticklabels()) == ["1", "2", "3"]
    assert texts(display.ax_.get_xticklabels()) == [f"x{j}" for j in range(10)]
    legend = display.ax_.get_legend()
    assert texts(legend.texts if legend else []) == list(marked)
    assert display.figure_ is display.ax_.figure


def test_markers_tell_how_a_class_differs():
    """Two classes: columns that are high, wide, of two modes, a flag, and nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    X[200:, 0] += 1.5
    X[200:, 1] *= 3.0
    X[200:, 2] = rng.choice([-1.0, 1.0], 200) * (1.0 + 0.1 * X[200:, 2])
    X[:, 3] = rng.random(400) < np.repeat([0.1, 0.6], 200)
    display = RelevanceDisplay.from_estimator(MarkerSelector().fit(X, np.repeat(["a", "b"], 200)))
    assert markers(display) == {
        "high or low": [[0, 0], [1, 0]],
        "narrow or wide": [[0, 1], [1, 1]],
        "otherwise": [[0, 2], [0, 3], [1, 2], [1, 3]],
    }
    shapes = [line.get_marker() for line in display.ax_.lines]
    assert all(one != other for one, other in itertools.combinations(shapes, 2))
    assert texts(display.ax_.get_legend().texts) == list(markers(display))
    heights, widths, others = display.ax_.images
    assert heights is display.im_
    assert [image.cmap.name for image in (heights, widths, others)] == ["RdBu_r", "PRGn_r", "BrBG_r"]
    assert_array_equal(~widths.get_array().mask[:, :4], [[False, True, False, False]] * 2)
    assert_array_equal(~others.get_array().mask[:, :4], [[False, False, True, True]] * 2)
    assert len(display.ax_.child_axes) == 3  # a scale for each
    picture(display)


@pytest.mark.parametrize("name", ["range", "rank"])
def test_the_map_of_bandwidths(fitted, name):
    display = RelevanceDisplay.from_estimator(fitted[name], quantity="zscore")
    assert_array_equal(display.im_.get_array(), fitted[name].zscores_)
    low, high = display.im_.get_clim()
    assert high == -low == max(1.0, np.abs(fitted[name].zscores_).max())
    red = display.im_.cmap(display.im_.norm(low))  # what marks a class is red in the paper's view, too
    assert red[0] > 2 * red[2]
    if fitted[name].relevant_.any():
        assert markers(display) == {"relevant": np.argwhere(fitted[name].relevant_).tolist()}
    (bar,) = display.ax_.child_axes
    assert "small bandwidth" in texts(bar.get_yticklabels())[0]


def test_the_maps_of_selectors(data):
    selector = MarkerSelector().fit(*data)
    display = RelevanceDisplay.from_estimator(selector)
    assert_array_equal(display.values, selector.describe().effect)
    assert_array_equal(display.relevant, selector.markers_)
    with pytest.raises(
        TypeError, match=r"^RelevanceDisplay cannot draw a MarkerSelector: it has no zscores_.$"
    ):
        RelevanceDisplay.from_estimator(selector, quantity="zscore")
    selector = RodeoSelector().fit(*data)
    assert_array_equal(RelevanceDisplay.from_estimator(selector, quantity="zscore").values, selector.zscores_)


def test_a_map_without_any_marker():
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.warns(corral.EmptySelectionWarning):
        selector = MarkerSelector().fit(X, np.arange(40) % 2)
    display = RelevanceDisplay.from_estimator(selector)
    assert markers(display) == {}
    picture(display)


# Explanations


@pytest.mark.parametrize("name", ["range", "selected", "class", "cv"])
def test_bars_are_those_of_the_explanation(fitted, X_test, name):
    model = fitted[name]
    explanation = model.explain(X_test, n_rows=4)
    display = ExplanationDisplay.from_estimator(model, X_test, sample=7, n_rows=4, max_variables=6)
    evidence_axes, rows_axes = display.axes_
    order = np.argsort(-np.abs(explanation.evidence[7]), kind="stable")
    order = order[np.abs(explanation.evidence[7, order]) >= 0.005][:6]
    bars = evidence_axes.patches
    others = np.delete(explanation.evidence[7], order).sum()
    expected = [explanation.base[7], *explanation.evidence[7, order], others, explanation.log_odds[7]]
    assert_allclose([bar.get_width() for bar in bars], expected, rtol=1e-9, atol=1e-9)
    assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == pytest.approx(range(order.size + 3))
    assert evidence_axes.yaxis_inverted()
    for bar in bars[:-1]:
        assert to_hex(bar.get_facecolor()) == ("#0072b2" if bar.get_width() >= 0.0 else "#d55e00")
    # Each bar begins where the one above it ends, and the last one has their sum.
    ends = np.cumsum(expected[:-1])
    assert_allclose([bar.get_x() for bar in bars], [0.0, *ends[:-1], 0.0], atol=1e-9)
    assert_allclose(ends[-1], expected[-1], atol=1e-9)
    names = [f"x{j} = {X_test[7, j]:.4g}" for j in order]
    others = f"{10 - order.size} other variable{'s' if order.size < 9 else ''}"
    assert texts(evidence_axes.get_yticklabels()) == ["priors", *names, others, "log odds"]
    assert evidence_axes.get_xlabel().endswith("natural logarithms")
    assert evidence_axes.get_title() == (
        f"{explanation.label[7]} ({explanation.probability[7, 0]:.2f}) rather than "
        f"{explanation.rival[7]} ({explanation.probability[7, 1]:.2f})"
    )
    assert_allclose([bar.get_width() for bar in rows_axes.patches], 100.0 * explanation.shares[7], rtol=1e-9)
    assert texts(rows_axes.get_yticklabels()) == [f"row {row}" for row in explanation.rows[7]]


def test_explanations_against_a_class_and_of_many_samples(fitted, X_test):
    model = fitted["range"]
    rival = model.classes_[model.predict_proba(X_test).argmin(axis=1)][5]
    explanation = model.explain(X_test, against=rival)
    one = ExplanationDisplay.from_explanation(explanation, sample=5)
    same = ExplanationDisplay.from_estimator(model, X_test, sample=5, against=rival)
    assert one.rival == same.rival == rival
    assert_allclose(one.evidence, same.evidence, rtol=1e-12)
    n_named = int((np.abs(explanation.evidence[5]) >= 0.005).sum())
    assert len(one.axes_[0].patches) == n_named + 2 + (n_named < 10)
    assert one.axes_[0].get_xlabel().endswith("natural logarithms")


def test_evidence_of_nothing(fitted, X_test):
    display = ExplanationDisplay.from_estimator(fitted["range"], X_test)
    display.evidence = np.zeros(10)
    display.rows, display.shares = display.rows[:0], display.shares[:0]
    display.plot()
    assert texts(display.axes_[0].get_yticklabels()) == ["priors", "10 other variables", "log odds"]
    display.base = np.inf  # the other class was ruled out before
    assert display.plot().axes_[0].patches[0].get_width() == 0.0
    picture(display)


def test_a_class_with_fewer_rows_than_are_listed(data):
    X = np.vstack([data[0], [[5.0] * 10]])
    model = RodeoClassifier().fit(X, np.append(data[1], 4))
    display = ExplanationDisplay.from_estimator(model, X, sample=180)
    assert display.label == 4
    assert texts(display.axes_[1].get_yticklabels()) == ["row 180"]
    assert_array_equal(display.shares, [1.0])
    picture(display)


# The path


@pytest.mark.parametrize("name", ["range", "standard", "rank", "raw", "selected"])
def test_the_path_ends_at_the_local_bandwidths(data, fitted, X_test, name):
    model = fitted[name]
    X_all = np.vstack([X_test[:3], data[0][:2]])  # a training row counts as a new one, as in predict
    h = model.local_bandwidths(X_all)
    for i in range(len(X_all)):
        for a, label in enumerate(model.classes_):
            path = model.bandwidth_path(X_all[i : i + 1], label)
            assert isinstance(path, RodeoPath)
            assert_array_equal(path.bandwidths[-1], h[i, a])
            assert_array_equal(path.bandwidths[0], model.model_.densities[a].grid[0])
            is_selected = name == "selected" and model.relevant_[a].any()
            assert_array_equal(path.tested[0], model.relevant_[a] if is_selected else [True] * 10)
            assert not path.at_floor.any()


def test_the_path_of_a_density_and_of_a_loaded_model(data, X_test, fitted, tmp_path):
    density = RodeoDensity().fit(data[0])
    path = density.bandwidth_path(X_test[:1])
    assert_array_equal(path.bandwidths[-1], density.local_bandwidths(X_test[:1])[0])
    assert RodeoPathDisplay.from_estimator(density, X_test, sample=2).axes_[0].get_title() == "sample 2"
    label, model = fitted["range"].predict(X_test)[25], fitted["range"]
    display = RodeoPathDisplay.from_estimator(model, X_test, sample=25)  # that of the predicted class
    assert display.axes_[0].get_title() == f"sample 25 in class {label}"
    save_model(fitted["range"], tmp_path / "model")
    expected = fitted["range"].bandwidth_path(X_test[:1], 2)
    assert_array_equal(load_model(tmp_path / "model").bandwidth_path(X_test[:1], 2).ratios, expected.ratios)


def stopped(axes):
    """By colour, the line of each variable, the place and the shape of its marker."""
    lines = [line for line in axes.lines if line.get_marker() not in (None, "None", "")]
    return [
        (line.get_xdata(), line.get_ydata(), line.get_markevery(), line.get_marker(), line.get_color())
        for line in lines
    ]


@pytest.mark.parametrize("name", ["range", "rank", "selected", "class"])
def test_lines_are_those_of_the_path(fitted, X_test, name):
    model = fitted[name]
    display = RodeoPathDisplay.from_estimator(model, X_test, sample=4, label=3, max_variables=2)
    path = model.bandwidth_path(X_test[4:5], 3)
    assert_array_equal(display.path.ratios, path.ratios)
    bandwidth_axes, ratio_axes = display.axes_
    assert bandwidth_axes.get_title() == "sample 4 in class 3"
    order = np.lexsort((path.bandwidths[-1], path.at_floor))
    first = [j for j in order if path.n_tests[j] > 1][:2]
    drawn = [j for j in range(10) if j not in first] + first  # grey ones first
    for j, (x, h, end, marker, colour) in zip(drawn, stopped(bandwidth_axes), strict=True):
        stop = path.n_tests[j]
        assert_array_equal(x, np.arange(stop + 1))
        assert_array_equal(h, path.bandwidths[: stop + 1, j])
        assert (end, marker) == ([stop], "o")
        assert (colour == "0.6") == (j not in first)
    tested = [j for j in drawn if path.n_tests[j]]
    for j, (x, ratio, end, _, _) in zip(tested, stopped(ratio_axes), strict=True):
        assert_array_equal(x, 1 + np.arange(path.n_tests[j]))
        assert_array_equal(ratio, path.ratios[: path.n_tests[j], j])
        assert end == [path.n_tests[j] - 1]
    listed = texts(bandwidth_axes.get_legend().texts)
    assert listed[:-1] == [f"x{j}: {path.bandwidths[-1, j]:.3g}" for j in first]
    assert listed[-1] == (f"{10 - len(first)} more" if first else "10 in all")


def test_where_rows_coincide_the_floor_is_told_from_the_test(data):
    X = np.column_stack([np.zeros(180), data[0]])  # a point mass
    model = RodeoClassifier().fit(X, data[1])
    display = RodeoPathDisplay.from_estimator(model, X, sample=0, label=1)
    assert display.path.at_floor.tolist() == [True] + [False] * 10
    assert [marker for *_, marker, _ in stopped(display.axes_[0])].count("v") == 1
    same = RodeoClassifier().fit(np.zeros((40, 3)), np.repeat([0, 1], 20))
    display = RodeoPathDisplay.from_estimator(same, np.zeros((1, 3)))
    assert np.isposinf(display.path.ratios).any()
    assert display.axes_[1].get_ylim()[1] <= 1000.0
    picture(display)


# Names, sizes and where to draw


def overlapping(labels):
    """Pairs of neighbouring labels that cover each other."""
    extents = [label.get_window_extent() for label in labels if label.get_text()]
    return [pair for pair in itertools.pairwise(extents) if pair[0].overlaps(pair[1])]


def all_displays(model, X):
    return [
        BandwidthDisplay.from_estimator(model, X),
        RelevanceDisplay.from_estimator(model),
        ExplanationDisplay.from_estimator(model, X),
        RodeoPathDisplay.from_estimator(model, X),
    ]


def test_labels_of_64_variables_do_not_overlap():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 15)
    X = pd.DataFrame(rng.uniform(size=(60, 64)), columns=[f"variable_{j}" for j in range(64)])
    X.iloc[:, :9] = rng.normal(0.5, 0.03, size=(60, 9)) + 0.1 * y[:, np.newaxis]
    for display in all_displays(RodeoClassifier().fit(X, y), X[::12]):
        picture(display)
        for axes in display.figure_.axes:
            assert overlapping(axes.get_xticklabels()) == []
            assert overlapping(axes.get_yticklabels()) == []
        if isinstance(display, BandwidthDisplay | RelevanceDisplay):  # every variable is named
            assert len(display.figure_.axes[0].get_xticks()) == 64


def test_names_are_shown_as_they_are(named, X_test):
    bandwidths, relevance, explanation, path = all_displays(named, pd.DataFrame(X_test, columns=NAMES))
    shown = [*NAMES[:3], "a name that is much\N{HORIZONTAL ELLIPSIS}", *NAMES[4:]]
    assert texts(bandwidths.axes_[-1].get_xticklabels()) == shown
    assert texts(relevance.ax_.get_xticklabels()) == shown
    labels = ["$x$", "a class that is too\N{HORIZONTAL ELLIPSIS}", "b"]
    assert texts(relevance.ax_.get_yticklabels()) == labels
    lines = {label.split(" = ")[0] for label in texts(explanation.axes_[0].get_yticklabels())}
    assert lines == {*shown, "priors", "log odds"}
    path.plot(max_variables=10)
    listed = texts(path.axes_[0].get_legend().texts)
    assert {name.split(":")[0] for name in listed if ":" in name} <= set(shown)
    assert any(name.startswith("_id: ") for name in listed)
    for display in (bandwidths, relevance, explanation, path):
        assert picture(display, (6, 5)).shape == (250, 300, 3)


def test_frames_of_pandas_and_polars_with_names(named, X_test):
    table = pd.DataFrame(X_test, columns=NAMES, index=np.linspace(3.0, 4.0, 30))  # positions are not labels
    for frame in (table, pl.DataFrame(X_test, schema=NAMES)):
        display = ExplanationDisplay.from_estimator(named, frame, sample=3)
        assert_array_equal(display.values, X_test[3])
        path = RodeoPathDisplay.from_estimator(named, frame, sample=3, label="b").path
        assert_array_equal(path.bandwidths[-1], named.local_bandwidths(table)[3, 2])
    display = ExplanationDisplay.from_estimator(
        RodeoClassifier().fit(X_test, np.arange(30) % 2), X_test.tolist()
    )
    assert_array_equal(display.values, X_test[0])


def test_drawing_in_given_axes(fitted, X_test):
    model = fitted["range"]
    figure, axes = plt.subplots(3, 3)
    assert BandwidthDisplay.from_estimator(model, X_test, axes=axes[0]).figure_ is figure
    assert axes[0, 0].get_ylabel() == "bandwidth (ranges)"
    assert RelevanceDisplay.from_estimator(model, ax=axes[1, 0]).ax_ is axes[1, 0]
    ExplanationDisplay.from_estimator(model, X_test, axes=axes[1, 1:])
    RodeoPathDisplay.from_estimator(model, X_test, axes=axes[2, :2])
    assert plt.get_fignums() == [figure.number]
    density = RodeoDensity().fit(X_test)
    assert BandwidthDisplay.from_estimator(density, X_test, axes=axes[2, 2]).axes_.tolist() == [axes[2, 2]]
    _, axes = plt.subplots(5)
    for display, n in ((BandwidthDisplay, 3), (ExplanationDisplay, 2), (RodeoPathDisplay, 2)):
        with pytest.raises(ValueError, match=f"^axes must have {n} matplotlib Axes, got 5.$"):
            display.from_estimator(model, X_test, axes=axes)
    assert not any(axis.has_data() for axis in axes)


# Bad input


METHODS = {
    BandwidthDisplay: "local_bandwidths",
    RelevanceDisplay: "describe",
    ExplanationDisplay: "explain",
    RodeoPathDisplay: "bandwidth_path",
}


@pytest.mark.parametrize("model", [RodeoClassifier(), CorralClassifier(), RodeoDensity(), MarkerSelector()])
@pytest.mark.parametrize("display", METHODS)
def test_estimators_that_are_not_fitted_or_of_another_kind(data, X_test, display, model):
    arguments = () if display is RelevanceDisplay else (X_test,)
    with pytest.raises((NotFittedError, TypeError)) as refused:
        display.from_estimator(clone(model), *arguments)
    if hasattr(model, METHODS[display]):
        assert refused.type is NotFittedError
    other = GaussianNB().fit(*data)
    with pytest.raises(TypeError, match=f"^{display.__name__} cannot draw a GaussianNB: it has no "):
        display.from_estimator(other, *arguments)
    assert plt.get_fignums() == []


def test_bad_arguments(fitted, X_test):
    model = fitted["range"]
    explanation = model.explain(X_test[:2])
    with pytest.raises(ValueError, match=r"^sample must be an integer from 0 to 1, got 2\.$"):
        ExplanationDisplay.from_explanation(explanation, sample=2)
    for tell in (explanation.sentences, explanation.caution, explanation.novelty, explanation.unlike):
        with pytest.raises(ValueError, match=r"^sample must be an integer from 0 to 1, got 99\.$"):
            tell(99)
    with pytest.raises(ValueError, match=r"^sample must be the position of a row, but there are no rows\.$"):
        ExplanationDisplay.from_estimator(model, X_test[:0])
    with pytest.raises(ValueError, match="against holds the class 7"):
        ExplanationDisplay.from_estimator(model, X_test, against=7)
    for display in (ExplanationDisplay, RodeoPathDisplay):
        for sample in (-1, 30, 1.0, "0", None, True):
            message = f"^sample must be an integer from 0 to 29, got {sample!r}.$"
            with pytest.raises(ValueError, match=message):
                display.from_estimator(model, X_test, sample=sample)
        with pytest.raises(ValueError, match=r"^max_variables must be a positive integer, got 0\.$"):
            display.from_estimator(model, X_test, max_variables=0)
    for label in (7, "1", [1], None):
        with pytest.raises(ValueError, match=r"^label must be one of classes_, got "):
            model.bandwidth_path(X_test[:1], label)
    with pytest.raises(ValueError, match=r"^X must hold one row, got 30\.$"):
        model.bandwidth_path(X_test, 1)
    with pytest.raises(ValueError, match=r"^label must be None for a RodeoDensity, got 1\.$"):
        RodeoPathDisplay.from_estimator(RodeoDensity().fit(X_test), X_test, label=1)
    with pytest.raises(ValueError, match=r"^y must hold a label for each of the 30 rows of X, got 3\.$"):
        BandwidthDisplay.from_estimator(model, X_test, [1, 2, 3])
    with pytest.raises(ValueError, match=r"^quantity must be one of 'effect', 'zscore', got 'size'\.$"):
        RelevanceDisplay.from_estimator(model, quantity="size")
    with pytest.raises(
        ValueError, match=r"^y holds the class 7 in row 0, which is not a class of the estimator\.$"
    ):
        BandwidthDisplay.from_estimator(model, X_test, np.full(30, 7))
    assert plt.get_fignums() == []


# matplotlib


def test_a_missing_matplotlib_is_named(fitted, X_test, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'^drawing needs matplotlib: pip install "corral\[plot\]"$'):
        RelevanceDisplay.from_estimator(fitted["range"])


def test_there_is_a_picture_of_every_display():
    pictures = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "pictures.py"))
    displays = dict(pictures["displays"]())
    assert {type(display).__name__ for display in displays.values()} == {
        name for name in corral.__all__ if name.endswith("Display")
    }
    files = {file.stem for file in pictures["IMAGES"].glob("*.png")}
    assert files == {*displays, *pictures["PARTS"], "report"}

"""Tests of the report as a file: numbers agree with the library, size is bounded, names are inert.

What it does in a browser is in test_report_browser.py.
"""

import base64
import hashlib
import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest, norm
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, confusion_matrix

from corral import (
    CorralClassifier,
    DuplicatesWarning,
    HeldOut,
    LSPClassifier,
    RodeoClassifier,
    RodeoDensity,
    estimate_sample_sizes,
    write_report,
)
from corral.datasets import make_shifted_groups
from corral.evaluation.held_out import NEW_GROUPS
from corral.evaluation.intervals import grouped_interval
from corral.evidence.explainers import factors_per_row
from corral.planning import LearningCurve
from corral.report.shown import affordable_rows
from corral.sentences import rows as rows_words
from corral.sentences import tables
from corral.sentences.scores import SCORES
from support.exploring import examples
from support.report_data import data_of

HOSTILE = "</script><img src=x onerror=alert(1)>'\"&\u2028"


def quick():
    return RodeoClassifier(bandwidth="class")


@pytest.fixture(scope="module")
def rows():
    X, y = make_shifted_groups(40, groups=(1, 2, 5), random_state=0)
    return pd.DataFrame(X[:, :6], columns=list("abcdef")), np.array(["one", "two", "five"])[y // 2]


@pytest.fixture(scope="module")
def classifier(rows):
    return quick().fit(*rows)


def page_of(*arguments, folder, max_samples=20, **options):
    path = write_report(*arguments, path=folder / "page.html", max_samples=max_samples, **options)
    return path.read_text(encoding="utf-8")


class Outline(HTMLParser):
    """Collects tags, identifiers and the text that a reader sees."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.attributes, self.text = [], [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        if self.tags[-1:] not in (["script"], ["style"]):
            self.text += data


def text_of(*arguments, **options):
    return Outline(page_of(*arguments, **options)).text


# Words


@pytest.mark.parametrize("estimator", [RodeoClassifier(), CorralClassifier(random_state=0)], ids=str)
def test_the_summary_says_what_marks_each_class(estimator, rows, tmp_path):
    fitted = estimator.fit(*rows)
    description = fitted.describe()
    text = text_of(fitted, rows[0], folder=tmp_path)
    assert "than in the background, by more than chance and not negligibly" in text
    for a in range(3):
        assert description.markers[a].any()
        markers = description.order[a, : description.markers[a].sum()]
        assert "\n".join(description.phrase(a, j) for j in markers[:4]) in text


def test_what_labels_rest_on_if_no_variable_describes_a_class(tmp_path):
    """Two classes that differ in no variable, but in the product of the first two; then noise."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 4))
    fitted = RodeoClassifier(bandwidth="class", c0=0.25)
    fitted.fit(X, np.where(X[:, 0] * X[:, 1] > 0, "same", "different"))
    page = page_of(fitted, X, folder=tmp_path)
    text = Outline(page).text
    assert "No single variable describes a class: in no variable do the values or a single category" in text
    assert text.count("no variable found\nx") == text.count("but carry much evidence for it") == 2
    assert data_of(page)["lines"] == [fitted.describe().lines(a) for a in range(2)]


# Numbers


@pytest.mark.parametrize("bandwidth", ["class", "local"])
def test_rows_equal_explain_and_predict_proba(rows, tmp_path, bandwidth):
    X, y = rows
    fitted = RodeoClassifier(bandwidth=bandwidth).fit(X, y)
    data = data_of(page_of(fitted, X, y, max_samples=200, folder=tmp_path))
    explanation, proba = fitted.explain(X), fitted.predict_proba(X)
    assert data["variables"] == list(X.columns)
    assert [row["position"] for row in data["rows"]] == list(range(len(X)))
    for i, row in enumerate(data["rows"]):
        assert data["classes"][row["truth"]] == y[i]
        assert data["classes"][row["label"]] == explanation.label[i]
        assert data["classes"][row["rival"]] == explanation.rival[i]
        assert [f"{p:.3f}" for p in row["proba"]] == [f"{p:.3f}" for p in proba[i]]
        assert [f"{e:.2f}" for e in row["evidence"]] == [f"{e + 0.0:z.2f}" for e in explanation.evidence[i]]
        assert f"{row['base']:.2f}" == f"{explanation.base[i]:z.2f}"
        assert f"{row['odds']:.2f}" == f"{explanation.log_odds[i]:z.2f}"
        sentence = explanation.sentences(i, f"Row {i}", fitted.describe())
        right = y[i] == explanation.label[i]
        judgement = "Right" if right else f"Wrong: recorded {y[i]}, predicted {explanation.label[i]}"
        assert row["words"].pop("label").startswith(f"{sentence.pop('label')} {judgement}")
        assert row["words"].pop("nearest").startswith(f"Nearest training rows of {explanation.label[i]}, ord")
        assert sentence.pop("nearest").startswith(f"Training rows of {explanation.label[i]} most like")
        assert row["words"] == sentence
        assert row["values"] == [float(f"{value:.4g}") for value in explanation.values[i]]
        assert row["support"] == explanation.rows[i].tolist()
        assert [f"{s:.3f}" for s in row["shares"]] == [f"{s:.3f}" for s in explanation.shares[i]]
    assert len(data["training"]) > 50
    for i, values in data["training"].items():
        assert values == [float(f"{value:.4g}") for value in X.iloc[int(i)]]


def test_where_nothing_can_be_said_the_page_says_nothing(rows, tmp_path):
    X, y = rows
    kept = np.flatnonzero((y != "one") | (np.cumsum(y == "one") <= 2))  # two rows of one
    fitted = quick().fit(X.iloc[kept].assign(c=1.0), y[kept])
    data = data_of(page_of(fitted, X.assign(c=1.0), folder=tmp_path))
    a = data["classes"].index("one")
    assert data["differences"][a] == [""] * 6
    assert [each[2] for each in data["differences"]] == [""] * 3
    clear = fitted.describe().direction != ""
    assert [[bool(text) for text in each] for each in data["differences"]] == clear.tolist()
    assert clear.sum() >= 8


@pytest.mark.parametrize("bandwidth", ["class", "local"])
def test_typical_rows_are_those_of_highest_density(rows, tmp_path, bandwidth):
    X, y = rows
    fitted = RodeoClassifier(bandwidth=bandwidth).fit(X, y)
    log_density = fitted.log_density(X)
    for a, typical in enumerate(data_of(page_of(fitted, X, folder=tmp_path))["typical"]):
        members = np.flatnonzero(y == fitted.classes_[a])
        assert typical == members[np.argsort(-log_density[members, a], kind="stable")[:5]].tolist()


def test_typical_rows_of_large_classes_are_looked_for_among_some(rows, classifier, tmp_path, monkeypatch):
    X, y = rows
    monkeypatch.setattr("corral.evidence.support._MOST_ROWS", 7)
    data = data_of(page_of(classifier, X, folder=tmp_path))
    for label, typical in zip(classifier.classes_, data["typical"], strict=True):
        examined = np.flatnonzero(y == label)[[0, 6, 13, 20, 26, 32, 39]]  # of 40, evenly spaced
        assert set(typical) < set(examined)


def test_curves_are_the_densities_of_single_variables(rows, classifier, tmp_path):
    X, y = rows
    data = data_of(page_of(classifier, X, folder=tmp_path))
    assert list(data["curves"]) == [str(j) for j in range(6)]
    x = X["b"].to_numpy()
    low, high = np.quantile(x, [0.005, 0.995])
    grid = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 49)
    expected = []
    for label in classifier.classes_:
        own = x[y == label]
        spread = min(own.std(), (np.quantile(own, 0.75) - np.quantile(own, 0.25)) / 1.34)
        h = max(0.9 * spread * own.size**-0.2, grid[1] - grid[0])
        expected.append(norm.pdf(grid[:, np.newaxis], own, h).mean(axis=1))
    curves = data["curves"]["1"]
    assert_allclose(curves["y"], 1000 * np.array(expected) / np.max(expected), atol=0.51)
    assert_allclose(curves["x"], grid, rtol=1e-3, atol=1e-6)


def test_errors_are_those_of_the_held_out_rows(rows, classifier, tmp_path):
    X, y = rows
    random = np.random.default_rng(0)
    proba = random.dirichlet([0.3, 0.3, 0.3], 200)
    held_out = HeldOut(classifier.classes_, random.choice(classifier.classes_, 200), proba)
    page = page_of(classifier, X, y, held_out=held_out, folder=tmp_path)
    errors = data_of(page)["errors"]
    assert_array_equal(errors["confusion"], confusion_matrix(held_out.truth, held_out.labels))
    points = errors["reliability"]
    assert sum(point["n_rows"] for point in points) == 200
    hits = held_out.labels == held_out.truth
    top = proba.max(axis=1)
    assert [point["low"] for point in points[-3:]] == [0.9, 0.95, 0.99]
    assert [point["high"] for point in points[-3:]] == [0.95, 0.99, 1.0]
    for point in points:
        inside = (top >= point["low"]) & (top < point["high"])
        assert point["n_rows"] == inside.sum()
        assert point["share_right"] == pytest.approx(hits[inside].mean(), abs=5e-4)
        assert point["confidence"] == pytest.approx(top[inside].mean(), abs=5e-4)
        assert point["interval"][0] <= point["share_right"] <= point["interval"][1]
    distances = [abs(point["share_right"] - point["confidence"]) * point["n_rows"] for point in points]
    assert sum(distances) / 200 == pytest.approx(held_out.scores().calibration_error, abs=1e-3)
    text = Outline(page).text
    assert f"Of 200 rows that took no part in fitting, {hits.mean():.1%} get the right label" in text
    assert "If they are training rows" not in text


def test_the_page_repeats_what_is_claimed_of_the_rows(rows, classifier, tmp_path):
    X, y = rows
    held_out = HeldOut(classifier.classes_, y[:3], classifier.predict_proba(X[:3]), "of another year")
    text = text_of(classifier, X, y, held_out=held_out, folder=tmp_path)
    assert "Of 3 rows of another year, " in text
    assert "Measured on rows of another year." in text
    assert "no part in fitting" not in text
    page = page_of(classifier, X, y, folder=tmp_path)
    labels = classifier.predict(X)
    assert_array_equal(data_of(page)["errors"]["confusion"], confusion_matrix(y, labels))
    accuracy = f"{accuracy_score(y, labels):.1%} of the {len(y)} rows given get the right label"
    assert f"{accuracy}. If the model was fitted to these rows, expect a lower" in Outline(page).text


def held_out_page(rows, folder, **options):
    """A page of rows that were held out in turn, what is known of them, and the page's data."""
    X, y = rows
    held_out = HeldOut.of_folds(quick(), X, y, cv=3)
    page = page_of(quick().fit(X, y), X, y, held_out=held_out, folder=folder, **options)
    return page, held_out, data_of(page)


def test_held_out_rows_are_explained_by_models_that_have_not_seen_them(rows, tmp_path):
    X, y = rows
    page, held_out, data = held_out_page(rows, tmp_path, max_samples=200)
    by_position = {row["position"]: row for row in data["rows"]}
    assert sorted(by_position) == list(range(len(y)))
    for part in held_out.parts:
        assert not np.isin(part.rows, part.learnt_from).any()
        explanation, trust = (
            method(X.iloc[part.rows]) for method in (part.estimator.explain, part.estimator.assess)
        )
        for i, position in enumerate(part.rows.tolist()):
            row = by_position[position]
            assert data["classes"][row["label"]] == explanation.label[i]
            assert row["proba"] == pytest.approx(trust.proba[i], abs=5.1e-4)
            assert row["typicality"] == pytest.approx(trust.typicality[i], abs=5.1e-4)
            assert row["evidence"] == pytest.approx(explanation.evidence[i], abs=5.1e-3)
            assert row["support"] == part.learnt_from[explanation.rows[i]].tolist()
            assert position not in row["support"]
            for number in row["support"]:
                assert data["training"][str(number)] == [float(f"{value:.4g}") for value in X.iloc[number]]
    assert (
        "explained by a model that was fitted without this row (3 models, one for each" in Outline(page).text
    )
    assert "The other sections show the final model, which is fitted to all rows." in Outline(page).text
    assert "adds to the density" not in Outline(page).text


def test_named_rows_keep_their_names(rows, tmp_path):
    X, y = rows
    table = X.set_index(pd.Index([f"P{i:03d}" for i in range(len(y))], name="patient"))
    _, held_out, data = held_out_page((table, y), tmp_path)
    assert data["rowWord"] == "patient"
    assert [row["name"] for row in data["rows"]] == [f"P{row['position']:03d}" for row in data["rows"]]
    assert data["trainingNames"] == {i: f"P{int(i):03d}" for i in data["training"]}
    named = {row["position"]: data["trainingNames"][str(row["support"][0])] for row in data["rows"]}
    for part in held_out.parts:
        for position in set(named) & set(part.rows.tolist()):
            assert named[position] == part.estimator.explain(table.iloc[[position]]).row_names[0, 0]
    assert data_of(page_of(RodeoClassifier().fit(X, y), X, folder=tmp_path))["trainingNames"] is None


@pytest.mark.parametrize("estimator", [quick(), LSPClassifier(random_state=0)], ids=str)
@pytest.mark.parametrize("has_classes", [True, False])
def test_five_questions_in_this_order(rows, tmp_path, estimator, has_classes):
    X, y = rows
    fitted = clone(estimator).fit(X, y)
    page = page_of(fitted, X, y if has_classes else None, folder=tmp_path)
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == [
        "Summary",
        "What describes each class?",
        "How good is the classifier, for each class?",
        "Why does a row have its label?",
        "Which rows to look at?",
        "What next?",
        "Parameters and versions",
    ]
    data, ids = data_of(page), set(Outline(page).ids)
    assert (data["errors"] is not None) == ("errors" in ids) == has_classes
    assert ({row["truth"] for row in data["rows"]} == {-1}) != has_classes
    assert ({"relevance", "classes"} <= ids) == data["explains"] == isinstance(estimator, RodeoClassifier)
    row = data["rows"][7]
    itself = X.iloc[[row["position"]]]
    assert_allclose(row["proba"], fitted.predict_proba(itself)[0], atol=5e-4)
    assert row["values"] == [float(f"{value:.4g}") for value in itself.to_numpy()[0]]


def test_scores_of_classes_with_their_intervals(rows, tmp_path):
    page, held_out, _ = held_out_page(rows, tmp_path)
    by_class = held_out.scores().by_class

    def cell(value, low, high):
        ends = f'<span class="ends">{low:.3f} to {high:.3f}</span>'
        return f'<td class="number" data-sort="{value:.3f}">{value:.3f}{ends}</td>'

    for label in held_out.classes:
        labels, each = held_out.labels[held_out.truth == label], by_class[label]
        line = page.split(f'<th scope="row">{label}</th><td class="number">{labels.size}</td>')[1].split(
            "</tr>"
        )[0]
        interval = binomtest((labels == label).sum(), labels.size).proportion_ci(method="wilson")
        assert line.startswith(cell(np.mean(labels == label), *interval))
        called = held_out.truth[held_out.labels == label]
        interval = binomtest((called == label).sum(), called.size).proportion_ci(method="wilson")
        assert f'<td class="number">{called.size}</td>{cell(np.mean(called == label), *interval)}' in line
        for name in ("f1", "auc", "average_precision"):
            assert cell(getattr(each, name), *each.intervals[name]) in line
        others = Counter(labels[labels != label].tolist())
        most = {f"<td>{other} ({n})</td>" for other, n in others.items() if n == max(others.values())}
        assert any(line.endswith(end) for end in most or {"<td></td>"})


def test_scores_stand_beside_those_of_baselines(rows, tmp_path):
    X, y = rows
    held_out = HeldOut.of_folds(quick(), X, y, cv=3)
    fitted = quick().fit(X, y)
    scores = held_out.scores()
    alone = Outline(page_of(fitted, X, y, held_out=held_out, folder=tmp_path)).text
    for key, (name, meaning) in SCORES.items():
        assert name in alone
        assert meaning in alone
        assert f"{getattr(scores, key):.3f}" in alone
        low, high = scores.intervals[key]
        assert f"{low:.3f} to {high:.3f}" in alone
    assert "baselines" not in alone
    both = replace(held_out, baselines={"a coin": held_out.frequencies()})
    page = page_of(fitted, X, y, held_out=both, folder=tmp_path)
    assert '<th scope="col" class="number">a coin</th>' in page
    assert f'<td class="number">{held_out.frequencies().scores().log_loss:.3f}</td>' in page


def test_curves_and_thresholds_are_those_of_the_predictions(rows, tmp_path):
    _, held_out, data = held_out_page(rows, tmp_path)
    assert data["errors"]["thresholds"] is None  # of more than two classes
    for curve, label in zip(data["errors"]["ranking"], held_out.classes.tolist(), strict=True):
        assert data["classes"][curve["class"]] == label
        scores = held_out.scores().by_class[label]
        assert f"AUC of {label}: {scores.auc:.3f} (" in curve["captions"][0]
        assert f"Average precision of {label}: {scores.average_precision:.3f} (" in curve["captions"][1]
        for point, expected in zip(curve["points"], held_out.ranking_curve(label), strict=True):
            assert point[1:3] == [expected.n_called, expected.n_right]
            shares = [expected.recall, expected.false_positive_rate, expected.precision]
            assert point[3:] == pytest.approx(shares, abs=5.1e-4)


def test_two_classes_have_a_threshold(rows, tmp_path):
    X, y = rows
    two = y != "five"
    X, y = X[two][:70], y[two][:70]
    _, held_out, data = held_out_page((X, y), tmp_path)
    rarer = min(np.unique(y).tolist(), key=y.tolist().count)
    assert [data["classes"][curve["class"]] for curve in data["errors"]["ranking"]] == [rarer]
    thresholds = data["errors"]["thresholds"]
    for point, sentence in zip(thresholds["points"], thresholds["sentences"], strict=True):
        called = held_out.truth[held_out.proba[:, held_out.classes.tolist().index(rarer)] >= point[0]]
        assert point[1:3] == [called.size, (called == rarer).sum()]
        assert sentence.startswith(
            f"With the threshold {point[0]:g}, {called.size} of 70 rows "
            f"{'is' if called.size == 1 else 'are'} called {rarer}."
        )
        n_right = int((called == rarer).sum())
        assert (
            f"{n_right} of the {(y == rarer).sum()} rows of {rarer} {'is' if n_right == 1 else 'are'} found"
            in sentence
        )


def test_intervals_are_for_new_groups_if_rows_have_groups(rows, classifier, tmp_path):
    X, y = rows
    random = np.random.default_rng(0)
    groups = np.where(y == "one", 0, random.integers(1, 9, len(y)))  # all rows of one class are of one group
    proba = random.dirichlet([1.0, 1.0, 1.0], len(y))
    held_out = HeldOut(classifier.classes_, y, proba, NEW_GROUPS, groups)
    page = page_of(classifier, X, y, held_out=held_out, folder=tmp_path)
    hits, confidence = held_out.labels == y, proba.max(axis=1)
    errors = data_of(page)["errors"]
    assert "intervals from 9 groups" in errors["caption"]
    for point in errors["reliability"]:
        inside = (confidence >= point["low"]) & (confidence < point["high"])
        expected = grouped_interval(hits[inside], groups[inside])
        assert point["interval"] == (None if expected is None else pytest.approx(expected, abs=5.1e-4))
    for label in ("two", "five"):
        low, high = grouped_interval(hits[y == label], groups[y == label])
        assert f"{low:.3f} to {high:.3f}</span>" in page
    text = Outline(page).text
    assert "none: one group" in text
    assert (
        "The recall of one is the least certain: all 40 rows of this class are of one group, so there is no "
        "interval." in text
    )
    assert "Intervals are for rows of new groups" in text
    unknown = page_of(classifier, X, y, held_out=replace(held_out, claim="given"), folder=tmp_path)
    assert "It is not known whether these groups took part in fitting" in Outline(unknown).text
    assert "Intervals are for rows of new groups" not in Outline(unknown).text


def test_what_next_of_a_table_with_noise_groups_and_duplicates(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [60, 8])
    X = pd.DataFrame({"far": rng.normal(8.0 * (y == "a")), "noise": 0.0})
    X.iloc[1] = X.iloc[0]
    with pytest.warns(DuplicatesWarning):
        fitted = quick().fit(X, y)
    text = text_of(fitted, X, folder=tmp_path)
    assert "Class with fewer than 10 rows: 'b' (8); " in text
    assert "1 of 68 rows is a duplicate of another row; " in text
    assert "No groups were given." in text
    fitted = CorralClassifier(random_state=0).fit(X[1:], y[1:], groups=np.arange(67) // 3)
    text = text_of(fitted, X[1:], y[1:], folder=tmp_path)
    sentence = (
        "1 of the 2 variables describes no class and, on average over the rows of each class, changes the "
        "odds by less than 5%"
    )
    assert f"{sentence}: noise. Evidence depends on the other values of a row, so this variable may" in text
    assert "The training rows belong to 23 groups" in text
    assert "is a duplicate of another" not in text
    assert "The recall of b is the least certain: " in text


def test_a_column_that_is_empty_in_training_is_no_variable_that_may_count(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    X = pd.DataFrame({"far": rng.normal(8.0 * (y == "a")), "noise": rng.normal(size=80), "blank": np.nan})
    with pytest.warns(UserWarning, match="no training row has a value of 'blank', which is ignored"):
        fitted = CorralClassifier(random_state=0).fit(X, y)
    text = text_of(fitted, X, y, folder=tmp_path)
    assert "1 of the 2 variables describes a class" in text
    assert "may matter in single rows" not in text


@pytest.mark.parametrize(("n_wrong", "useless"), [(12, True), (1, False)])
def test_labels_that_are_no_better_than_the_frequencies_are_told_of(
    n_wrong, useless, rows, classifier, tmp_path
):
    truth = np.repeat(["one", "two"], [30, 10])
    codes = np.where(np.arange(40) < n_wrong, 0, np.searchsorted(classifier.classes_, truth))
    held_out = HeldOut(classifier.classes_, truth, np.eye(3)[codes] * 0.97 + 0.01)
    fitted = clone(classifier).set_params(priors="empirical").fit(*rows)
    text = text_of(fitted, *rows, held_out=held_out, folder=tmp_path)
    assert ("The accuracy, 0.700, is not significantly above 0.750, the accuracy of" in text) == useless
    assert ("do not rely on the labels" in text) == useless


def test_every_error_that_is_counted_is_shown(rows, tmp_path):
    page, held_out, data = held_out_page(rows, tmp_path, max_samples=60)
    wrong = held_out.positions[held_out.labels != held_out.truth]
    assert 5 < wrong.size < 60
    shown = [row["position"] for row in data["rows"] if row["truth"] != row["label"]]
    assert sorted(shown) == sorted(wrong.tolist())
    assert len(data["rows"]) == 60
    assert np.sum(data["errors"]["confusion"]) - np.trace(data["errors"]["confusion"]) == wrong.size
    assert (
        "60 of the 120 rows that were held out in 3 folds, each once, all rows with a wrong label and"
        in Outline(page).text
    )
    few = held_out_page(rows, tmp_path, max_samples=wrong.size)[2]
    assert [row["position"] for row in few["rows"]] == sorted(wrong.tolist())
    text = Outline(held_out_page(rows, tmp_path, max_samples=4)[0]).text
    sentence = "4 of the 120 rows that were held out in 3 folds, each once, only rows with a wrong label"
    assert f"{sentence}, of which there are {wrong.size}" in text


def test_categories_that_only_a_held_out_row_has(rows, tmp_path):
    X, y = rows
    table = X.assign(f=np.where(np.arange(len(y)) == 7, "rare", "frequent"))
    _, _, data = held_out_page((table, y), tmp_path, max_samples=200)
    assert data["rows"][7]["values"][5] == "rare"
    assert data["rows"][7]["unknown"] == [5]
    assert data["rows"][8]["unknown"] == []


def test_sample_sizes(rows, classifier, tmp_path):
    X, y = rows
    result = estimate_sample_sizes(
        X, y, method="bound", tolerance=1e-3, initial_size=8, test_size=5, step=9, random_state=0
    )
    page = page_of(classifier, X, sample_sizes=result, folder=tmp_path)
    shown = data_of(page)["sampleSizes"]
    assert [step["total"] for step in shown["steps"]] == [int(step.sizes.sum()) for step in result.steps]
    assert shown["steps"][-1]["epsilon"] == float(f"{result.epsilon:.4g}")
    assert result.reason in Outline(page).text
    assert "sample-sizes" in Outline(page).ids
    assert "sample-sizes" not in Outline(page_of(classifier, X, folder=tmp_path)).ids


def test_a_learning_curve_beside_the_accuracy_of_the_summary(rows, tmp_path):
    X, y = rows
    fitted = CorralClassifier(random_state=3).fit(X[::2], y[::2])
    held_out = HeldOut(fitted.classes_, y[1::2], fitted.predict_proba(X[1::2]))
    curve = LearningCurve.from_estimator(fitted, goal=0.9, random_state=0)
    page = page_of(fitted, X[1::2], y[1::2], held_out=held_out, sample_sizes=curve, folder=tmp_path)
    text = Outline(page).text
    assert data_of(page)["sampleSizes"] is None
    assert "steps" not in Outline(page).ids
    assert f"the curve begins at the accuracy {curve.accuracy(curve.n_rows).value:.3f}, estimated" in text
    heads, lines = curve.table()
    assert all(cell in text for line in (heads, *lines) for cell in line)
    assert curve.needs_in_words()
    assert all(sentence in text for sentence in curve.needs_in_words())
    accuracy = held_out.scores().accuracy
    assert (
        f"The accuracy in the summary, {accuracy:.1%}, was measured on rows that took no part in fitting"
        in text
    )
    assert "In cross-validation" not in text
    text = text_of(fitted, X[::2], y[::2], folder=tmp_path)
    assert f"In cross-validation {fitted.cv_accuracy_:.1%} of the predicted labels were right" in text
    assert text.index("predicted labels were right") < text.index("If the model was fitted to these rows")


def test_the_expected_accuracy_says_which_priors_it_holds_for(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 120)
    X = pd.DataFrame({"v": rng.normal(size=120) + 1.5 * (y == "a")})
    fitted = CorralClassifier(random_state=0, priors={"a": 0.95, "b": 0.05}).fit(X, y, np.full(120, 0.5))
    text = text_of(fitted, X, y, folder=tmp_path)
    assert "if classes are as frequent as the priors say (log loss" in text
    assert "120 rows of 2 classes" in text
    with pytest.warns(UserWarning, match="each class has one row"):
        single = CorralClassifier(random_state=0).fit(X[:2], ["a", "b"])
    assert "predicted labels were right" not in text_of(single, X[:2], ["a", "b"], folder=tmp_path)


def test_words_on_rows_that_are_novel():
    assert tables.novel_rows(0, 3, 1.0) == (
        "None of 3 rows is novel. A row is novel if 99 in 100 training rows are more typical of their "
        "nearest class."
    )
    assert tables.novel_rows(1, 115, 0.7).endswith(
        "About 1.2 novel rows are expected by chance; 1 is not significantly more (beta-binomial test at "
        "0.01, p = 0.7)."
    )
    assert tables.novel_rows(9, 115, 1e-7, " on this page") == (
        "9 of 115 rows on this page are novel. A row is novel if 99 in 100 training rows are more typical of "
        "their nearest class. About 1.2 novel rows are expected by chance; 9 are significantly more "
        "(beta-binomial test at 0.01, p < 0.001)."
    )
    assert tables.novel_rows(1, 115, None).endswith(tables.CHANCE_OF_NOVELTY)
    counts = {"mass": 3, "length": 9}
    assert "training rows in length (in 9 of 9): check whether the rows" in tables.why_novel(9, 9, counts, {})
    for new, training, expected in (
        (19.7, 197.0, "; median 19.7, in training rows 197: about 10 times smaller"),
        (3.1e6, 2900.0, "; median 3100000, in training rows 2900: about 1000 times larger"),
        (30.0, 10.0, "; median 30, in training rows 10"),
        (-1.0, 10.0, "; median -1, in training rows 10"),
    ):
        sentence = tables.why_novel(90, 9, counts, {"length": (new, training)})
        assert sentence.startswith(
            "9 of the novel rows were explained. Novel rows are most often unlike the training rows"
        )
        assert f"training rows in length (in 9 of 9{expected}): check whether the rows" in sentence
        sentence = tables.shifted_table(10, counts, {"length": (new, training)})
        assert f"outside the range of the training rows in length (in 9 of 10{expected}): check" in sentence
    assert tables.why_novel(9, 9, {"length": 4}, {}) == ""


def test_advice_to_check_the_record_is_for_confident_errors():
    assert rows_words.wrong("a", "b", 0.95) == "recorded a, predicted b; check the record or the measurements"
    assert rows_words.wrong("a", "b", 0.6) == "recorded a, predicted b"


def test_a_nearest_class_that_lacks_a_variable_is_said_to_lack_it():
    rng = np.random.default_rng(0)
    y = np.repeat(["full", "half"], 40)
    X = pd.DataFrame({"a": rng.normal(size=80) + 3.0 * (y == "half"), "b": rng.normal(size=80)})
    X.loc[y == "half", "b"] = np.nan
    a, b = np.meshgrid(np.linspace(-3.0, 6.0, 20), np.linspace(-4.0, 4.0, 20))
    explanation = (
        CorralClassifier(random_state=0).fit(X, y).explain(pd.DataFrame({"a": a.ravel(), "b": b.ravel()}))
    )
    apart = (explanation.nearest == "half") & (explanation.label == "full") & ~explanation.novel
    assert 0 < apart.sum() < len(explanation)
    lacks = "No training row of half has a value of b, so only the other variables are compared."
    assert [lacks in explanation.sentences(i)["place"] for i in range(len(explanation))] == apart.tolist()


def test_summary_and_parameters_are_in_words(rows, tmp_path):
    X, y = rows
    fitted = CorralClassifier(random_state=3).fit(X, y)
    text = text_of(fitted, X, source="frogs.csv", folder=tmp_path)
    assert "CorralClassifier was fitted to 120 rows of 3 classes with 6 variables." in text
    assert "The rows on this page are of frogs.csv." in text
    assert f"In cross-validation {fitted.cv_accuracy_:.1%} of the predicted labels were right" in text
    assert f"(log loss {fitted.cv_log_loss_:.3f})" in text
    for name, share in fitted.model_.pool.shares().items():
        assert name in text
        assert f"{share:.0%}" in text
    for name, value in fitted.get_params().items():
        assert name in text
        assert repr(value) in text
    words = " ".join(text.split())
    assert "random_state3given" in words
    assert "n_jobsNonedefault" in words
    assert "numpy " + np.__version__ in text


# Which rows


def test_draws_as_many_rows_of_each_class(rows, classifier, tmp_path):
    X, y = rows
    few = np.concatenate([np.flatnonzero(y == "one")[:2], np.flatnonzero(y != "one")])
    data = data_of(page_of(classifier, X.iloc[few], y[few], max_samples=20, folder=tmp_path))
    labels = [data["classes"][row["truth"]] for row in data["rows"]]
    assert [labels.count(name) for name in ("one", "two", "five")] == [2, 9, 9]
    names = [int(row["name"]) for row in data["rows"]]
    assert_array_equal(y[names], labels)  # rows are called as in the table that they come from


def test_same_seed_same_page(rows, classifier, tmp_path):
    pages = [page_of(classifier, *rows, max_samples=9, random_state=s, folder=tmp_path) for s in (1, 1, 2)]
    assert pages[0] == pages[1] != pages[2]


@pytest.mark.parametrize("kind", ["array", "list", "polars"])
def test_kinds_of_tables(rows, tmp_path, kind):
    X, y = rows
    table = {"array": X.to_numpy(), "list": X.to_numpy().tolist(), "polars": pl.DataFrame(X.to_dict("list"))}
    fitted = quick().fit(table[kind], y)
    data = data_of(page_of(fitted, table[kind], y.tolist(), max_samples=15, folder=tmp_path))
    assert data["variables"] == (list("abcdef") if kind == "polars" else [f"x{j}" for j in range(6)])
    expected = fitted.predict_proba(X.to_numpy() if kind != "polars" else table[kind])
    for row in data["rows"]:
        assert_allclose(row["proba"], expected[row["position"]], atol=5e-4)


def test_weights_and_a_class_without_rows(rows, tmp_path):
    X, y = rows
    weights = np.where(np.arange(len(y)) % 4, 2.0, 0.0)
    fitted = RodeoClassifier(bandwidth="class")
    fitted.partial_fit(X, y, classes=["five", "none", "one", "two"], sample_weight=weights)
    data = data_of(page_of(fitted, X, y, folder=tmp_path))
    assert data["typical"][1] == []
    assert not np.any([curve["y"][1] for curve in data["curves"].values()])
    assert all(weights[i] > 0 for typical in data["typical"] for i in typical)


@pytest.mark.parametrize("factor", [1e-300, 1e300])
@pytest.mark.parametrize("scale", ["range", "rank", None])
def test_extreme_and_constant_columns(rows, tmp_path, factor, scale):
    X, y = rows
    table = X.assign(b=X["b"] * factor, c=1.0)
    fitted = RodeoClassifier(bandwidth="class", scale=scale).fit(table, y)
    data = data_of(page_of(fitted, table, folder=tmp_path))
    numbers = [number for row in data["rows"] for number in row["evidence"] + row["values"]]
    assert np.isfinite(numbers).all()
    assert np.isfinite(data["curves"]["1"]["x"]).all()
    assert data["curves"]["2"] == {
        "categories": ["1"],
        "y": [[1000]] * 3,
        "nOthers": 0,
    }  # few values are bars


# One file, not too large


def test_below_a_megabyte_for_ten_classes_of_64_variables_and_2000_rows(tmp_path):
    X, y = load_digits(return_X_y=True)
    again = np.arange(2000) % len(y)
    X, y = X[again], y[again]
    fitted = quick().fit(X[:100], y[:100])
    path = write_report(fitted, X, y, tmp_path / "page.html", max_samples=2000)
    data = data_of(path.read_text(encoding="utf-8"))
    assert len(data["curves"]) == 64
    assert len(data["rows"]) == 2000
    # Of 1,797 training rows instead of 100 the values take some 70 kB more.
    assert path.stat().st_size < 900_000


@pytest.fixture(scope="module")
def wide():
    """Noise, and columns in which three classes differ from others, each in its own and the third in two."""
    random = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c", "d"], 60)
    X = random.normal(size=(240, 260))
    X[y == "a", 250:] += 5.0
    X[y == "b", 240:250] += 4.0
    X[y == "c", 230:232] += 1.2
    X *= -1e-5
    return quick().fit(X, y), X


def test_wide_tables_show_fewer_variables_and_rows(wide, tmp_path, monkeypatch):
    fitted, X = wide
    monkeypatch.setattr("corral.report._MOST_BYTES", 310_000)
    page = page_of(fitted, X, max_samples=200, folder=tmp_path)
    data, description = data_of(page), fitted.describe()
    assert len(page) < 310_000
    assert "This page shows 200 of the 260 variables" in Outline(page).text
    assert {f"x{j}" for j in range(230, 232)} | {f"x{j}" for j in range(240, 260)} <= set(data["variables"])
    place = np.argsort(description.order, axis=1)
    # What is not shown marks no class, and stronger than no variable that is shown.
    shown = np.isin(description.feature_names, data["variables"])
    assert shown.sum() == 200
    assert place[:, ~shown].min() > 20
    assert not description.markers[:, ~shown].any()
    assert "and 6 more" in Outline(page).text
    assert f"{len(data['rows'])} of the 240 rows given" in Outline(page).text
    assert 20 <= len(data["rows"]) < 200
    assert f"of {len(data['rows'])} rows on this page" in Outline(page).text  # as many are novel as are shown


def test_the_strongest_variables_of_every_class_have_curves(wide, tmp_path, monkeypatch):
    monkeypatch.setattr("corral.report.contents._MOST_CURVE_POINTS", 4 * 49 * 14)  # of 14 variables
    data = data_of(page_of(*wide, folder=tmp_path))
    assert len(data["curves"]) == 14
    for a, n_strongest in enumerate((6, 6, 2)):
        assert sum(data["markers"][a]) >= n_strongest
        assert {str(j) for j in data["order"][a][:n_strongest]} <= set(data["curves"])


def test_many_classes_show_fewer_variables(tmp_path):
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(42), 2)
    X = random.normal(size=(42, 100))[y] + random.normal(size=(84, 100))
    path = write_report(quick().fit(X, y), X, y, tmp_path / "page.html")
    data = data_of(path.read_text(encoding="utf-8"))
    assert len(data["variables"]) == 95  # 42 times 95 cells of the map are fewer than 4,000
    assert path.stat().st_size < 1_000_000


def test_policy_allows_the_one_script_and_the_one_style(rows, classifier, tmp_path):
    page = page_of(classifier, *rows, folder=tmp_path)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    parts = dict(part.split(" ", 1) for part in policy.replace("&#39;", "'").split("; "))
    assert parts["default-src"] == "'none'"
    for tag, directive in (('script type="module"', "script-src"), ("style", "style-src")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag.split()[0]}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert parts[directive] == f"'sha256-{digest}'"
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_script_parses_no_markup_and_the_page_loads_nothing(rows, classifier, tmp_path):
    page = page_of(classifier, *rows, folder=tmp_path)
    for risky in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser"):
        assert risky not in page
    assert re.findall(r"https?://[^\"'\s]*", page) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"\b(src|srcset|action)=|url\(|@import|style=", page)


def test_names_stay_inert(rows, tmp_path):
    X, y = rows
    plain = quick().fit(X, y)
    hostile = X.rename(columns={"a": HOSTILE}).set_index(np.array([HOSTILE] * len(X)))
    labels = np.where(y == "one", HOSTILE, y)
    fitted = quick().fit(hostile, labels)
    page = page_of(fitted, hostile, labels, title=HOSTILE, source=HOSTILE, folder=tmp_path)
    expected = page_of(plain, X, y, title="t", source="s", folder=tmp_path)
    assert Outline(page).tags == Outline(expected).tags
    assert re.fullmatch(r"[\w+/=]+", page.partition('id="data">')[2].partition("<")[0], re.ASCII)
    data = data_of(page)
    assert HOSTILE in data["classes"]
    assert data["variables"][0] == HOSTILE
    assert HOSTILE in Outline(page).text


def page_of_two_columns(names, labels, title, folder):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=names)
    y = np.array(labels)[np.arange(20) % 2]
    fitted = RodeoClassifier().fit(X, y)
    return page_of(fitted, X, y, title=title, max_samples=2, folder=folder)


@pytest.fixture(scope="module")
def usual_tags(tmp_path_factory):
    return Outline(page_of_two_columns(["a", "b"], ["c", "d"], "t", tmp_path_factory.mktemp("usual"))).tags


def two_of(texts):
    return st.lists(texts, min_size=2, max_size=2, unique=True)


@examples(15)
@given(
    names=two_of(st.text(max_size=30)),
    labels=two_of(st.text(st.characters(exclude_characters="\0"), max_size=30)),  # which numpy drops
    title=st.text(min_size=1),
)
def test_any_text_may_be_a_name(tmp_path_factory, usual_tags, names, labels, title):
    page = page_of_two_columns(names, labels, title, tmp_path_factory.mktemp("any"))
    assert data_of(page)["variables"] == names
    assert data_of(page)["classes"] == sorted(labels)
    assert Outline(page).tags == usual_tags


def test_a_page_to_show_in_a_notebook(rows, classifier, tmp_path):
    shown = write_report(classifier, *rows, title=HOSTILE, max_samples=20)
    assert shown.html == page_of(classifier, *rows, title=HOSTILE, folder=tmp_path)
    frame = Outline(shown._repr_html_())
    assert frame.tags == ["iframe"]
    assert dict(frame.attributes)["srcdoc"] == shown.html
    assert dict(frame.attributes)["sandbox"] == "allow-scripts allow-downloads"
    assert repr(shown) == f"Page of {len(shown.html)} characters"


# What is refused


def refused(error, path, *arguments, **options):
    """The sentence; the file is as it was, and no other is left."""
    before = {file: file.read_bytes() for file in path.parent.glob("*")}
    with pytest.raises(error) as caught:
        write_report(*arguments, path=path, **options)
    assert {file: file.read_bytes() for file in path.parent.glob("*")} == before
    return str(caught.value)


def test_refuses_in_one_sentence(rows, classifier, tmp_path):
    X, y = rows
    page = tmp_path / "page.html"
    page.write_text("what was there before")
    other = HeldOut(np.array(["a", "b"]), np.array(["a"]), np.array([[1.0, 0.0]]))
    folds = HeldOut.of_folds(quick(), X, y, cv=2)
    assert refused(TypeError, page, RodeoDensity().fit(X), X).endswith("got a RodeoDensity.")
    assert refused(TypeError, page, "page.html", X).endswith(
        "a str; call write_report(estimator, X, y, path)."
    )
    sentence = refused(TypeError, page, classifier, "page.html", X)
    assert sentence == (
        "X must hold the rows to browse, got 'page.html'; call write_report(estimator, X, y, path)."
    )
    sentence = refused(TypeError, page, classifier, X, "page.html")
    assert (
        sentence == "y must hold the classes of the rows, got 'page.html'; pass the file as path='page.html'."
    )
    assert "is not fitted" in refused(NotFittedError, page, RodeoClassifier(), X)
    for arguments, options, sentence in (
        ((X, y[:5]), {}, "y must hold a label for each of the 120 rows of X, got 5."),
        (
            (X, np.where(np.arange(120) == 7, "six", y)),
            {},
            "y holds the class 'six' in row 7, which is not a class of the estimator.",
        ),
        ((X,), {"max_samples": 0}, "max_samples"),
        ((X,), {"held_out": other}, "held_out has the classes ['a'"),
        (
            (X,),
            {"held_out": folds},
            "held_out refers to rows of X, but y, the classes of these rows, is not given.",
        ),
        ((X[:50], y[:50]), {"held_out": folds}, "held_out refers to row 119 of X, which has 50 rows."),
        ((X, y[::-1]), {"held_out": folds}, "the classes in held_out differ from y"),
        ((X.assign(c=np.inf),), {}, "infinite"),
        ((X.drop(columns="c"),), {}, "feature names"),
    ):
        assert sentence in refused(ValueError, page, classifier, *arguments, **options)
    assert "there is no folder" in refused(FileNotFoundError, tmp_path / "none" / "page.html", classifier, X)


def test_says_which_package_is_missing(rows, classifier, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    sentence = refused(ImportError, tmp_path / "page.html", classifier, rows[0])
    assert sentence == 'Reports need jinja2: pip install "corral[cli]".'


def test_few_values_are_bars(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 30)
    X = pd.DataFrame({"far": rng.normal(8.0 * (y == "a")), "year": 2007.0 + np.arange(60) % 3})
    X.loc[5, "year"] = np.nan
    curves = data_of(page_of(quick().fit(X, y), X, folder=tmp_path))["curves"]
    assert curves["1"]["categories"] == ["2007", "2008", "2009"]
    assert curves["1"]["y"] == [[345, 345, 310], [333, 333, 333]]
    assert "categories" not in curves["0"]


def test_bars_and_the_map_are_those_of_the_table(tmp_path):
    """Of compressed classes, too, all rows count; filled marks are the leading markers."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [100, 200, 300])
    X = pd.DataFrame({f"x{j}": rng.normal(j * (y == "a")) for j in range(6)})
    X["color"] = pd.Categorical(np.where(rng.random(600) < np.where(y == "b", 0.7, 0.2), "red", "blue"))
    fitted = CorralClassifier(max_rows=40, random_state=0).fit(X, y)
    data = data_of(page_of(fitted, X, folder=tmp_path))
    shares = [[(X["color"][y == label] == color).mean() for color in ("blue", "red")] for label in "abc"]
    assert data["curves"]["6"]["y"] == np.rint(1000 * np.array(shares)).astype(int).tolist()
    description = fitted.describe()
    assert data["leading"] == [description.leading_markers(a) for a in range(3)]
    assert len(data["leading"][0]) == 4 < description.markers[0].sum()
    red = [f"{(X['color'][rows] == 'red').mean():.0%}" for rows in (y == "b", y != "b")]
    assert data["differences"][1][6] == '= "red" more often ({}; others {})'.format(*red)


def test_a_page_explains_as_many_rows_as_a_short_time_allows(monkeypatch):
    X, y = make_shifted_groups(60, groups=(4, 5), random_state=0)
    fitted = RodeoClassifier().fit(X, y)
    assert affordable_rows(fitted, 2000) == 2000
    assert affordable_rows(fitted, 10) == 10
    factors = factors_per_row(fitted.model_)
    assert factors >= 120 * X.shape[1]
    monkeypatch.setattr("corral.report.shown._MOST_FACTORS", 300 * factors)
    assert affordable_rows(fitted, 2000) == 300
    monkeypatch.setattr("corral.report.shown._MOST_FACTORS", 1)
    assert affordable_rows(fitted, 2000) == 200
    monkeypatch.setattr("corral.report.shown._MOST_VALUES", 90 * X.shape[1])
    assert affordable_rows(fitted, 2000) == 90

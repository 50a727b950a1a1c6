"""Scores against scikit-learn, influences against finite differences, and what intervals cover."""

from dataclasses import asdict

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest, norm
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    precision_recall_curve,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from corral import HeldOut
from corral.evaluation.intervals import Measure, Sampling
from corral.evaluation.ranking import auc, average_precision
from corral.evaluation.scores import calibration_errors, f1_measure, recall_measure

ROWS = Sampling(None)


def predictions(n_classes=3, n=200, seed=0, digits=2, **options):
    """Probabilities that know something of the truth, with ties."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum())
    scores = rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[codes]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    proba = np.round(proba, digits) + 1e-3
    classes = np.array([f"c{a}" for a in range(n_classes)])
    return HeldOut(classes, classes[codes], proba / proba.sum(axis=1, keepdims=True), **options)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_scores_are_those_of_scikit_learn(n_classes):
    held_out = predictions(n_classes)
    scores, one_hot = held_out.scores(), held_out.truth[:, np.newaxis] == held_out.classes
    assert scores.accuracy == pytest.approx(accuracy_score(held_out.truth, held_out.labels))
    assert scores.balanced_accuracy == pytest.approx(balanced_accuracy_score(held_out.truth, held_out.labels))
    assert scores.log_loss == pytest.approx(log_loss(held_out.truth, held_out.proba))
    assert scores.auc == pytest.approx(roc_auc_score(one_hot, held_out.proba, average="macro"))
    assert scores.average_precision == pytest.approx(average_precision_score(one_hot, held_out.proba))
    brier = [brier_score_loss(one_hot[:, a], held_out.proba[:, a]) for a in range(n_classes)]
    assert scores.brier_score == pytest.approx(sum(brier) / (2 if n_classes == 2 else 1))
    arguments = {
        "y_true": held_out.truth,
        "y_pred": held_out.labels,
        "labels": held_out.classes,
        "average": None,
    }
    by_class = scores.by_class.values()
    assert [each.recall for each in by_class] == pytest.approx(recall_score(**arguments))
    assert [each.precision for each in by_class] == pytest.approx(precision_score(**arguments))
    assert [each.f1 for each in by_class] == pytest.approx(f1_score(**arguments))
    for a, each in enumerate(by_class):
        assert each.auc == pytest.approx(roc_auc_score(one_hot[:, a], held_out.proba[:, a]))
        ap = average_precision_score(one_hot[:, a], held_out.proba[:, a])
        assert each.average_precision == pytest.approx(ap)
        assert each.n_called == (held_out.labels == f"c{a}").sum()
        assert each.n_rows == one_hot[:, a].sum()


def test_every_score_lies_in_its_interval():
    rng = np.random.default_rng(0)
    for groups in (None, rng.integers(0, 20, 200)):
        scores = predictions(groups=groups).scores()
        numbers = [asdict(scores), *(asdict(each) for each in scores.by_class.values())]
        for each in numbers:
            names = each.keys() - {"intervals", "by_class", "n_rows", "n_called"}
            assert names == each["intervals"].keys()
            for name in names:
                low, high = each["intervals"][name]
                assert low < each[name] < high


def test_scores_of_rows_of_one_group_have_no_interval():
    groups = np.zeros(200)
    scores = predictions(groups=groups).scores()
    assert set(scores.intervals.values()) == {None}
    assert set(scores.by_class["c0"].intervals.values()) == {None}
    one_class = predictions()
    groups = np.where(one_class.truth == "c0", 0, np.arange(200))
    scores = predictions(groups=groups).scores()
    assert scores.by_class["c0"].intervals["auc"] is None
    assert scores.intervals["auc"] is None
    assert scores.by_class["c1"].intervals["auc"] is not None


def test_labels_that_no_row_has_and_classes_without_rows():
    truth, proba = np.array(["a", "a", "b"]), np.tile([0.5, 0.3, 0.2], (3, 1))
    scores = HeldOut(np.array(["a", "b", "c"]), truth, proba).scores()
    assert list(scores.by_class) == ["a", "b"]
    assert (scores.by_class["b"].precision, scores.by_class["b"].f1) == (None, 0.0)
    assert "precision" not in scores.by_class["b"].intervals
    assert scores.auc == 0.5
    alone = HeldOut(np.array(["a", "b"]), np.array(["a", "a"]), np.tile([0.6, 0.4], (2, 1))).scores()
    assert alone.auc is alone.average_precision is alone.by_class["a"].auc is None
    assert alone.balanced_accuracy == 1.0


def weighted(score):
    """The value of a score of rows that are repeated."""

    def value(weights, proba, own):
        again = np.repeat(np.arange(own.size), weights)
        return score(proba[again], own[again], ROWS).value

    return value


@pytest.mark.parametrize(
    "score",
    [
        auc,
        average_precision,
        lambda proba, own, rows: recall_measure(proba > 0.4, own, rows),
        lambda proba, own, rows: f1_measure(proba > 0.4, own, rows),
    ],
    ids=["auc", "average precision", "recall", "f1"],
)
def test_influences_are_derivatives(score):
    """Each row counts 1000 times, and one of them once more."""
    held_out = predictions(n=40)
    proba, own = held_out.proba[:, 2], held_out.truth == "c2"
    measure, value = score(proba, own, ROWS), weighted(score)
    for i in range(0, 40, 3):
        weights = np.full(40, 1000)
        weights[i] += 1
        assert measure.influence[i] == pytest.approx(
            1000 * (value(weights, proba, own) - measure.value), abs=1e-4
        )
    assert measure.influence.sum() == pytest.approx(0.0, abs=1e-12)


def test_calibration_error_by_plain_loops():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 3, 200)
    total = 0.0
    for k in range(10):
        inside = [i for i in range(200) if min(int(proba[i].max() * 10), 9) == k]
        if inside:
            hits = np.mean([proba[i].argmax() == codes[i] for i in inside])
            total += len(inside) / 200 * abs(hits - np.mean([proba[i].max() for i in inside]))
    assert calibration_errors(proba, codes).mean() == pytest.approx(total)
    assert calibration_errors(np.eye(3)[codes], codes).mean() == 0.0


@pytest.mark.parametrize(("n_own", "n_others"), [(20, 20), (15, 300), (100, 100)])
@pytest.mark.parametrize("shift", [0.5, 1.5, 3.0])
def test_intervals_cover_the_auc(shift, n_own, n_others):
    """Two normal classes, whose AUC is known."""
    rng, truth, n_covered = np.random.default_rng(0), norm.cdf(shift / np.sqrt(2.0)), 0
    own = np.arange(n_own + n_others) < n_own
    for _ in range(400):
        low, high = ROWS.interval_of_share(auc(rng.normal(size=own.size) + shift * own, own, ROWS))
        n_covered += low <= truth <= high
    assert n_covered >= 0.92 * 400


@pytest.mark.parametrize("name", ["balanced_accuracy", "average_precision", "log_loss", "brier_score"])
def test_intervals_cover_other_scores(name):
    truth = getattr(predictions(n=40_000, digits=6).scores(), name)
    n_covered = 0
    for seed in range(200):
        low, high = predictions(n=120, seed=1 + seed, digits=6).scores().intervals[name]
        n_covered += low <= truth <= high
    assert 0.92 * 200 <= n_covered <= 200


def test_groups_widen_intervals():
    """Each row four times, as groups, is worth the rows once."""
    once = predictions(n=80)
    again = np.repeat(np.arange(80), 4)
    grouped = HeldOut(once.classes, once.truth[again], once.proba[again], groups=again)
    alone = HeldOut(once.classes, once.truth[again], once.proba[again])
    for name in ("auc", "balanced_accuracy", "log_loss", "brier_score", "average_precision"):
        assert_allclose(grouped.scores().intervals[name], once.scores().intervals[name], rtol=0.05)
        widths = [float(np.diff(held_out.scores().intervals[name])[0]) for held_out in (alone, grouped)]
        assert widths[1] > 1.5 * widths[0]


def test_intervals_cover_the_auc_of_new_groups():
    """Groups of 10 rows with a shift of their own, whose rows are ranked alike."""
    rng, n_covered = np.random.default_rng(0), 0

    def draw(n_groups):
        groups = np.repeat(np.arange(n_groups), 10)
        own = rng.random(groups.size) < 0.5
        return auc(
            1.5 * own + 0.7 * rng.normal(size=n_groups)[groups] + rng.normal(size=own.size),
            own,
            Sampling(groups),
        ), Sampling(groups)

    truth = draw(5000)[0].value
    for _ in range(300):
        measure, sampling = draw(20)
        low, high = sampling.interval_of_share(measure)
        n_covered += low <= truth <= high
    assert 0.93 * 300 <= n_covered < 300


def test_a_mean_of_scores_counts_for_no_row_if_one_of_them_does():
    measures = [Measure(1.0, np.zeros(4), np.array([4.0, n_groups])) for n_groups in (2.0, 0.0)]
    assert Measure.average(measures).most.tolist() == [8.0, 0.0]
    assert Measure.average(measures[:1] * 2).most.tolist() == [8.0, 4.0]


def test_perfect_scores_are_not_certain():
    codes = np.repeat([0, 1], 20)
    scores = HeldOut(np.array(["a", "b"]), np.array(["a", "b"])[codes], np.eye(2)[codes]).scores()
    for name in ("accuracy", "balanced_accuracy", "auc", "average_precision"):
        assert getattr(scores, name) == 1.0
        assert 0.8 < scores.intervals[name][0] < 0.95


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("n_classes", "highest"), [(2, 1.0), (3, 2.0)])
def test_intervals_of_losses_end_where_losses_do(n_classes, highest, grouped):
    codes, groups = np.arange(4) % 2, np.arange(4) if grouped else None
    classes, proba = np.array(["a", "b", "c"])[:n_classes], np.eye(n_classes)[[0, 0, 1, 0]]
    intervals = HeldOut(classes, classes[codes], proba, groups=groups).scores().intervals
    assert intervals["brier_score"] == (0.0, highest)
    assert intervals["calibration_error"] == (0.0, 1.0)
    assert intervals["log_loss"] == (0.0, pytest.approx(-np.log(np.finfo(float).eps)))


@pytest.mark.parametrize("n", [1, 9])
def test_equal_losses_tell_no_interval(n):
    for right in (0.2, 1.0):
        proba = np.tile([right, 1.0 - right], (n, 1))
        scores = HeldOut(np.array(["a", "b"]), np.full(n, "a"), proba).scores()
        assert scores.log_loss == pytest.approx(-np.log(right))
        means = [scores.intervals[name] for name in ("log_loss", "brier_score", "calibration_error")]
        assert means == [None, None, None]


# Curves and thresholds


def test_curves_are_those_of_scikit_learn():
    held_out = predictions(n=300)
    own, proba = held_out.truth == "c2", held_out.proba[:, 2]
    points = held_out.ranking_curve("c2", 1000)
    false_rate, recall, _ = roc_curve(own, proba, drop_intermediate=False)
    assert_allclose([point.recall for point in points], recall[1:])
    assert_allclose([point.false_positive_rate for point in points], false_rate[1:])
    precisions, recalls, thresholds = precision_recall_curve(own, proba)
    expected = {float(each): pair for *pair, each in zip(precisions, recalls, thresholds, strict=False)}
    for point in points:
        assert (point.precision, point.recall) == pytest.approx(expected[point.threshold])
    few = held_out.ranking_curve("c2", 30)
    assert len(few) <= 30
    assert set(few) <= set(points)
    assert few[-1].recall == few[-1].false_positive_rate == 1.0


def test_thresholds_by_plain_loops():
    held_out = predictions(2)
    assert held_out.rarer_class == "c0"
    for point in held_out.thresholds("c0"):
        called = [
            truth
            for truth, p in zip(held_out.truth, held_out.proba[:, 0], strict=True)
            if p >= point.threshold
        ]
        assert point.n_called == len(called) == point.n_right + point.n_false
        assert point.n_right == called.count("c0")
        assert point.n_rows == (held_out.truth == "c0").sum()
        assert point.precision == (called.count("c0") / len(called) if called else 1.0)
        assert point.recall == called.count("c0") / point.n_rows
    assert {0.05, 0.5, 0.95} <= {point.threshold for point in held_out.thresholds("c0")}
    assert predictions(3).rarer_class is None


# Against the frequencies of classes


def test_the_test_against_the_most_frequent_class():
    held_out = predictions(3)
    comparison = held_out.against_frequencies()
    hits, frequent = held_out.labels == held_out.truth, held_out.truth == "c2"
    better, worse = (hits & ~frequent).sum(), (~hits & frequent).sum()
    expected = binomtest(better, better + worse, alternative="greater").pvalue
    assert comparison.pvalue_better == pytest.approx(expected)
    assert comparison.share == frequent.mean() == held_out.most_frequent_share()
    counts = np.unique(held_out.truth, return_counts=True)[1]
    assert comparison.entropy == pytest.approx(log_loss(held_out.truth, np.tile(counts / 200, (200, 1))))
    assert not comparison.is_useless
    assert not comparison.is_worse


@pytest.mark.parametrize(("overconfident", "useless"), [(False, False), (True, True)])
def test_one_wrong_row_more_does_not_make_labels_useless(overconfident, useless):
    """39 rows, of which the most frequent class has 31; labels are right in 30, probabilities are better."""
    truth = np.repeat(["yes", "no"], [31, 8])
    p_yes = np.repeat([0.95, 0.3, 0.4, 0.6], [27, 4, 3, 5])
    if overconfident:
        p_yes = np.where(p_yes > 0.5, 0.999, 0.001)
    comparison = HeldOut(
        np.array(["no", "yes"]), truth, np.column_stack([1 - p_yes, p_yes])
    ).against_frequencies()
    assert comparison.accuracy < comparison.share
    assert comparison.pvalue_worse > 0.05
    assert comparison.is_useless == useless


def test_groups_count_once_in_the_test():
    held_out = predictions(3)
    grouped = predictions(3, groups=np.arange(200) // 40)
    assert grouped.against_frequencies().pvalue_better == pytest.approx(0.5**5)
    assert held_out.against_frequencies().pvalue_better < 1e-3


def test_a_rare_class_that_is_ranked_well_but_never_called():
    rng = np.random.default_rng(0)
    own = np.arange(1000) < 60
    p_rare = np.clip(rng.normal(0.05 + 0.15 * own, 0.05), 0.001, 0.45)
    held_out = HeldOut(
        np.array(["often", "rare"]), np.where(own, "rare", "often"), np.column_stack([1 - p_rare, p_rare])
    )
    by_class = held_out.scores().by_class
    assert by_class["rare"].is_rarely_called
    assert not by_class["often"].is_rarely_called
    shuffled = HeldOut(held_out.classes, rng.permutation(held_out.truth), held_out.proba).scores()
    assert not shuffled.by_class["rare"].is_rarely_called


def test_rows_of_one_class_do_not_make_labels_useless():
    """They cannot show whether the classes separate."""
    proba = np.tile([0.1, 0.9], (20, 1))
    comparison = HeldOut(np.array(["no", "yes"]), np.repeat("yes", 20), proba).against_frequencies()
    assert comparison.log_loss >= comparison.entropy
    assert not comparison.is_useless

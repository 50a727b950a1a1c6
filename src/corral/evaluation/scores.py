"""Scores of held-out rows: of all rows and by class, with intervals, recalls and reliability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from corral.array_types import Bools, Floats, Integers
from corral.evaluation.intervals import Interval, Measure, Sampling
from corral.evaluation.ranking import auc, average_precision

_N_BINS = 10

# Ends of the intervals of the label's probability, which are narrower near 1, where most probabilities lie.
RELIABILITY_ENDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)

# A class is rarely called if fewer rows have its label than this share of its rows.
_RARELY = 0.25

# Significance level of the tests against the most frequent class.
_SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class ClassScores:
    """Scores of one class against all others.

    Attributes
    ----------
    n_rows, n_called : numbers of rows of the class and of rows with its label.
    recall : share of the rows of the class that get its label.
    precision : share of the rows with its label that are of the class; None if there are no such rows.
    f1 : harmonic mean of precision and recall.
    auc : chance that a row of the class has a higher probability of the class than a row of another class.
    average_precision : mean precision over thresholds equal to the probabilities of the rows of the class.
        AUC and average precision are None if all rows are of the class.
    intervals : 95% intervals by the name of the score; None if the rows are of one group.
    """

    n_rows: int
    n_called: int
    recall: float
    precision: float | None
    f1: float
    auc: float | None
    average_precision: float | None
    intervals: dict[str, Interval | None]

    @property
    def is_rarely_called(self) -> bool:
        """Whether few rows get the label, although the probability of the class ranks its rows first."""
        interval = self.intervals.get("auc")
        return self.n_called < _RARELY * self.n_rows and interval is not None and interval[0] > 0.5


@dataclass(frozen=True)
class Scores:
    """Scores of one classifier on rows that took no part in fitting.

    Attributes
    ----------
    accuracy : share of rows with the right label.
    balanced_accuracy : mean recall of the classes.
    auc, average_precision : mean over the classes, each against all others; None if all rows are of one
        class.
    log_loss : mean of -log of the probability given to the right class.
    brier_score : mean squared distance of the probabilities from 1 for the right class and 0 for others,
        summed over the classes, which is at most 2; half of it for two classes, as in scikit-learn.
    calibration_error : mean difference between the probability of labels and the share of these labels that
        are right, in ten intervals of the probability.
    intervals : 95% intervals by the name of the score, for random samples of rows, or of groups if rows have
        groups. Other training rows would change scores further. None if all rows are of one group, and for
        means of losses that are the same in all rows.
    by_class : scores of each class that has rows.
    """

    accuracy: float
    balanced_accuracy: float
    auc: float | None
    average_precision: float | None
    log_loss: float
    brier_score: float
    calibration_error: float
    intervals: dict[str, Interval | None]
    by_class: dict[str, ClassScores]


class Recall(NamedTuple):
    """Recall of a class, with its most frequent error.

    Attributes
    ----------
    n_right, n_rows : numbers of rows with the right label and of all rows of the class.
    interval : 95% interval of the recall by Wilson, for groups if rows have groups; None if all rows of the
        class are of one group.
    mistaken_for : the most frequent wrong label of the rows of the class; None if all labels are right.
    n_mistaken : number of rows of the class with that wrong label.
    """

    n_right: int
    n_rows: int
    interval: Interval | None
    mistaken_for: Any
    n_mistaken: int

    @property
    def share(self) -> float:
        """Share of the rows that get the right label."""
        return self.n_right / self.n_rows


class Reliability(NamedTuple):
    """Share of right labels among labels whose probability lies in an interval.

    Attributes
    ----------
    n_rows : number of rows with such a label.
    low, high : ends of the interval of probabilities.
    confidence : mean probability of these labels.
    share_right, interval : share of right labels, and its 95% interval as in `Recall`.
    """

    n_rows: int
    low: float
    high: float
    confidence: float
    share_right: float
    interval: Interval | None


class FrequencyComparison(NamedTuple):
    """Comparison of a classifier with the frequencies of the classes.

    Attributes
    ----------
    accuracy, log_loss : scores of the classifier.
    share, entropy : accuracy of always predicting the most frequent class of the rows, and log loss of the
        class frequencies.
    pvalue_better, pvalue_worse : p-values of one-sided sign tests on the rows at which only one of classifier
        and most frequent class is right, or on the groups in which one of them is right more often.
    """

    accuracy: float
    share: float
    log_loss: float
    entropy: float
    pvalue_better: float
    pvalue_worse: float

    @property
    def is_useless(self) -> bool:
        """Whether labels are not significantly better, and the log loss is not better.

        False if all rows are of one class: such rows cannot show whether the classes separate.
        """
        is_worse = self.pvalue_better > _SIGNIFICANCE and self.log_loss >= self.entropy
        return self.share < 1.0 and is_worse

    @property
    def is_worse(self) -> bool:
        """Whether the labels are significantly worse than always predicting the most frequent class."""
        return self.pvalue_worse <= _SIGNIFICANCE


def compare_with_frequencies(proba: Floats, codes: Integers, sampling: Sampling) -> FrequencyComparison:
    """Compare labels with the most frequent class, and probabilities with the class frequencies."""
    counts = np.bincount(codes, minlength=proba.shape[1])
    shares = counts / codes.size
    hits, frequent = proba.argmax(axis=1) == codes, codes == counts.argmax()
    gains = hits.astype(np.float64) - frequent
    if sampling.groups is not None:
        gains = np.bincount(np.unique(sampling.groups, return_inverse=True)[1], gains)
    n_better, n_worse = int((gains > 0).sum()), int((gains < 0).sum())
    n = n_better + n_worse
    pvalues = [
        float(binomtest(count, n, alternative="greater").pvalue) if n else 1.0
        for count in (n_better, n_worse)
    ]
    entropy = -float(np.log(shares[codes]).mean())
    return FrequencyComparison(
        float(hits.mean()), float(shares.max()), float(log_losses(proba, codes).mean()), entropy, *pvalues
    )


def log_losses(proba: Floats, codes: Integers) -> Floats:
    """Return -log of the probability of the right class for each row; finite, as in scikit-learn."""
    right = proba[np.arange(codes.size), codes]
    losses: Floats = -np.log(np.clip(right, np.finfo(proba.dtype).eps, 1.0))
    return losses


def brier_scores(proba: Floats, codes: Integers) -> Floats:
    """Return the squared distance (n_rows,) of probabilities from 1 (right class) or 0 (other classes)."""
    distances = proba.copy()
    distances[np.arange(codes.size), codes] -= 1.0
    scores: Floats = (distances**2).sum(axis=1) / (2.0 if proba.shape[1] == 2 else 1.0)
    return scores


def calibration_errors(proba: Floats, codes: Integers) -> Floats:
    """Return terms (n_rows,) whose mean is the expected calibration error.

    The term of a row is 1 if the label is right, else 0, minus the probability of the label. If the sum of
    such terms over all rows with a probability in the same of ten equal intervals is negative, the sign is
    changed.
    """
    confidence = proba.max(axis=1)
    hits = proba.argmax(axis=1) == codes
    tenths = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    signs = np.sign(np.bincount(tenths, hits - confidence, minlength=_N_BINS))
    errors: Floats = signs[tenths] * (hits - confidence)
    return errors


def score_predictions(proba: Floats, codes: Integers, names: Sequence[str], sampling: Sampling) -> Scores:
    """Score probabilities (n_rows, n_classes) of rows with class `codes`, given the class names."""
    hits = proba.argmax(axis=1) == codes
    present = np.unique(codes).tolist()
    recalls = [recall_measure(hits, codes == code, sampling) for code in present]
    rankings = [ranking_measures(proba[:, code], codes == code, sampling) for code in present]
    shares = {"balanced_accuracy": Measure.average(recalls)}
    if len(present) > 1:
        # Each row is ranked as a row of its own class, and as another row for each other class.
        shares |= {name: Measure.average([each[name] for each in rankings], 2) for name in rankings[0]}
    means = {
        "log_loss": Measure.mean(log_losses(proba, codes)),
        "brier_score": Measure.mean(brier_scores(proba, codes)),
        "calibration_error": Measure.mean(calibration_errors(proba, codes)),
    }
    values: dict[str, Any] = dict.fromkeys(("auc", "average_precision"))
    values |= {name: measure.value for name, measure in (shares | means).items()}
    highest = {"log_loss": -math.log(np.finfo(proba.dtype).eps), "calibration_error": 1.0}
    highest["brier_score"] = 1.0 if proba.shape[1] == 2 else 2.0
    intervals = {
        "accuracy": sampling.interval_of_hits(hits, np.ones(codes.size, dtype=np.bool_)),
        **{name: sampling.interval_of_share(measure) for name, measure in shares.items()},
        **{name: sampling.interval_of_mean(measure, highest[name]) for name, measure in means.items()},
    }
    by_class = {
        names[code]: _score_class(proba.argmax(axis=1) == code, codes == code, ranking, sampling)
        for code, ranking in zip(present, rankings, strict=True)
    }
    return Scores(accuracy=float(hits.mean()), **values, intervals=intervals, by_class=by_class)


def _score_class(called: Bools, own: Bools, ranking: dict[str, Measure], sampling: Sampling) -> ClassScores:
    right, n_called = called & own, int(called.sum())
    shares = {"f1": f1_measure(called, own, sampling), **ranking}
    intervals = {"recall": sampling.interval_of_hits(right, own)}
    if n_called:
        intervals["precision"] = sampling.interval_of_hits(right, called)
    intervals |= {name: sampling.interval_of_share(measure) for name, measure in shares.items()}
    return ClassScores(
        int(own.sum()),
        n_called,
        float(right[own].mean()),
        float(right[called].mean()) if n_called else None,
        shares["f1"].value,
        ranking["auc"].value if ranking else None,
        ranking["average_precision"].value if ranking else None,
        intervals,
    )


def recall_measure(hits: Bools, own: Bools, sampling: Sampling) -> Measure:
    """Measure the share of the rows of a class that get its label."""
    value = float(hits[own].mean())
    return Measure(value, np.where(own, hits - value, 0.0) / own.sum(), sampling.numbers(own))


def f1_measure(called: Bools, own: Bools, sampling: Sampling) -> Measure:
    """Measure the harmonic mean of precision and recall."""
    both, total = called & own, int(called.sum() + own.sum())
    value = 2.0 * float(both.sum()) / total
    influence = (2.0 * both - value * (called.astype(np.float64) + own)) / total
    return Measure(value, influence, sampling.numbers(called | own))


def ranking_measures(proba: Floats, own: Bools, sampling: Sampling) -> dict[str, Measure]:
    """Measure how well probabilities rank rows of a class above other rows; empty if there are none."""
    if own.all():
        return {}
    return {
        "auc": auc(proba, own, sampling),
        "average_precision": average_precision(proba, own, sampling),
    }

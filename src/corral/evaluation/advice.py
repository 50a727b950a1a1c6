"""Advice on labels that are of little use."""

from __future__ import annotations

from typing import Any

from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.priors import are_empirical
from corral.evaluation.held_out import HeldOut
from corral.evaluation.scores import FrequencyComparison, Scores
from corral.sentences.scores import (
    NO_DIFFERENCE,
    TRY_POOL,
    rarely_called,
    useless_by_equal_priors,
    useless_labels,
    worse_by_equal_priors,
)


def advice_on_labels(estimator: Any, predictions: HeldOut) -> list[str]:
    """Say if labels are no better than the class frequencies, or if labels of some classes are rare."""
    advice = NO_DIFFERENCE if isinstance(estimator, CorralClassifier) else TRY_POOL
    comparison, scores = predictions.against_frequencies(), predictions.scores()
    if hasattr(estimator, "priors") and not are_empirical(estimator):
        return _advice_on_balanced_labels(comparison, scores, advice)
    if comparison.is_useless:
        return [
            useless_labels(
                comparison.accuracy, comparison.share, comparison.log_loss, comparison.entropy, advice
            )
        ]
    two_classes = predictions.classes.size == 2
    rare = [
        (label, each.n_called, each.n_rows, each.auc)
        for label, each in scores.by_class.items()
        if each.auc is not None and each.is_rarely_called
    ]
    if not rare:
        return []
    labels = [label for label, *_ in rare]
    never_right = [
        label for label, each in predictions.recalls().items() if not each.n_right and label not in labels
    ]
    return [rarely_called(rare, never_right, two_classes=two_classes)]


def _advice_on_balanced_labels(comparison: FrequencyComparison, scores: Scores, advice: str) -> list[str]:
    """Return advice if priors are not the class frequencies, so that labels do not aim at accuracy."""
    chance = 1.0 / len(scores.by_class)
    balanced, auc = scores.intervals["balanced_accuracy"], scores.intervals.get("auc")
    if scores.auc is not None and balanced and auc and balanced[0] <= chance and auc[0] <= 0.5:
        return [useless_by_equal_priors(scores.balanced_accuracy, chance, scores.auc, advice)]
    return [worse_by_equal_priors(comparison.accuracy, comparison.share)] if comparison.is_worse else []

"""Texts that the template shows: paragraphs, lines of tables, parameters and versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from corral.checking.labels import small_classes
from corral.estimators.description import Description
from corral.estimators.evaluated_rows import novelty_sentences
from corral.estimators.priors import are_empirical
from corral.estimators.validation import feature_names
from corral.evaluation.advice import advice_on_labels
from corral.evaluation.held_out import EQUAL_TO_NONE, HeldOut
from corral.evaluation.intervals import rows_to_halve_interval
from corral.evaluation.scores import ClassScores
from corral.planning import LearningCurve, SampleSizes
from corral.report.shown import ScoredPredictions, ShownRows
from corral.sentences.classes import RANKING, needless_variables, number_of_markers
from corral.sentences.numbers import begun, counted, interval_text, number_text
from corral.sentences.scores import (
    ASK_FOR_SAMPLE_SIZES,
    EVERY_DIGIT,
    SCORES,
    accuracy_interval,
    accuracy_of_known_rows,
    accuracy_of_new_rows,
    curve_begins,
    expected_accuracy,
    explained_without,
    fitted_model,
    most_frequent_error,
    other_accuracy,
    recall_known_least,
    recognised_least,
)
from corral.sentences.tables import duplicate_rows, groups_of_rows


def page_words(
    estimator: Any,
    description: Description | None,
    shown: ShownRows,
    rows: Sequence[Mapping[str, Any]],
    *,
    sample_sizes: SampleSizes | LearningCurve | None,
    source: str | None,
    steps_before: Sequence[str],
    n_shown_variables: int,
) -> dict[str, Any]:
    """Return the variables of the template; `steps_before` are pipeline steps before the classifier."""
    scored = shown.scored
    predictions = None if scored is None else scored.predictions
    n_folds = sum(part.training_positions is not None for part in shown.parts)
    return {
        "summary": [
            fitted_model(
                type(estimator).__name__,
                estimator.classes_.size,
                estimator.model_.n_rows if hasattr(estimator, "model_") else estimator.class_count_.sum(),
                len(feature_names(estimator)),
                steps_before,
                source,
            ),
            *_summary(estimator, description, shown, rows),
        ],
        "classes": [
            {
                "name": str(label),
                "rows": number_text(estimator.class_count_[a]),
                "variables": [] if description is None else description.lines_beside_others(a),
            }
            for a, label in enumerate(estimator.classes_.tolist())
        ],
        "scores": {} if predictions is None else _score_lines(predictions),
        "class_scores": [] if predictions is None else _class_lines(predictions),
        "what_next": _what_next(estimator, description, scored, sample_sizes),
        "kind": type(estimator).__name__,
        "explains": description is not None,
        "ranking": RANKING,
        "scored": scored,
        "sample_sizes": str(sample_sizes).removeprefix("SampleSizes: ").splitlines()
        if isinstance(sample_sizes, SampleSizes)
        else [],
        "curve": _curve(sample_sizes, scored) if isinstance(sample_sizes, LearningCurve) else None,
        "n_variables": len(feature_names(estimator)),
        "n_shown_variables": n_shown_variables,
        "n_wrong": 0 if predictions is None else int((predictions.labels != predictions.truth).sum()),
        "which": predictions.claim if predictions is not None and predictions.parts else "given",
        "parameters": _parameters(estimator),
        **_chosen(estimator),
        "versions": _versions(),
        "n_rows": shown.n_rows,
        "n_browsed": len(rows),
        "by_fold_models": explained_without(n_folds) if n_folds else "",
        "truth_known": bool((shown.truth >= 0).any()),
    }


# Summary


def _summary(
    estimator: Any, description: Description | None, shown: ShownRows, rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return sentences on the quality of the model, on novel rows, and on variables that describe classes."""
    sentences, scored = [], shown.scored
    if hasattr(estimator, "cv_log_loss_") and not (scored is not None and scored.unseen):
        by_shares = are_empirical(estimator)
        if not estimator.model_.data.is_alone.all():  # otherwise there is no leave-one-out prediction
            sentences.append(
                expected_accuracy(estimator.cv_accuracy_, estimator.cv_log_loss_, by_shares=by_shares)
            )
    if scored is not None:
        sentences += _quality(scored)
    if description is not None:
        sentences += _novelty(estimator, shown, rows)
        numbers, described = description.markers.sum(axis=1).tolist(), description.markers.any(axis=0)
        n_described, n_variables = int(described.sum()), int(description.has_values.sum())
        sentences.append(number_of_markers(n_described, n_variables, min(numbers), max(numbers)))
    return sentences


def _quality(scored: ScoredPredictions) -> list[str]:
    """Return sentences on right labels, with a warning if the rows may be training rows."""
    predictions = scored.predictions
    scores, recalls = predictions.scores(), predictions.recalls()
    label, worst = max(recalls.items(), key=lambda item: item[1].n_mistaken)
    error = most_frequent_error(label, worst.mistaken_for, worst.n_mistaken, worst.n_rows)
    if not scored.unseen:
        return [accuracy_of_known_rows(len(predictions.truth), scores.accuracy), error]
    accuracy = accuracy_of_new_rows(
        f"{counted(len(predictions.truth), 'row')} {predictions.claim}",
        scores.accuracy,
        accuracy_interval(scores.intervals["accuracy"], predictions.n_groups, ".1%"),
        predictions.most_frequent_share(),
        scores.auc,
        scores.log_loss,
        scores.calibration_error,
    )
    return [accuracy, *([EVERY_DIGIT] if predictions.claim == EQUAL_TO_NONE else []), error]


def _score_lines(predictions: HeldOut) -> dict[str, Any]:
    """Return heads and lines of the table of scores, which has a column for each baseline."""
    scores = predictions.scores()
    baselines = {name: each.scores() for name, each in (predictions.baselines or {}).items()}
    lines = [
        [
            name,
            _score_text(getattr(scores, key)),
            interval_text(scores.intervals.get(key)),
            *(_score_text(getattr(baseline, key)) for baseline in baselines.values()),
            meaning,
        ]
        for key, (name, meaning) in SCORES.items()
    ]
    return {"heads": ["value", "95% interval", *baselines], "lines": lines}


def _class_lines(predictions: HeldOut) -> list[dict[str, Any]]:
    """Return scores of each class with intervals, and the most frequent wrong label of its rows."""
    by_class, lines = predictions.scores().by_class, []
    for label, recall in predictions.recalls().items():
        each = by_class[str(label)]
        line = {
            name: (_score_text(getattr(each, name)), _interval(each, name))
            for name in ("recall", "precision", "f1", "auc", "average_precision")
        }
        mistaken = "" if recall.mistaken_for is None else f"{recall.mistaken_for} ({recall.n_mistaken})"
        lines.append(
            {"class": label, "n_rows": each.n_rows, "n_called": each.n_called, "mistaken": mistaken} | line
        )
    return lines


def _score_text(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _interval(scores: ClassScores, name: str) -> str:
    """Write an interval; empty if the score is not defined."""
    if getattr(scores, name) is None:
        return ""
    return interval_text(scores.intervals[name]) or "none: one group"


def _novelty(estimator: Any, shown: ShownRows, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on the number of novel rows, and on the variables that make rows novel."""
    unlike = [row["unlike"] for row in rows if row["novel"]]
    # If the page has only some of the rows, rows with wrong labels were chosen first.
    at_random = len(rows) == shown.n_rows or bool((shown.truth < 0).all())
    return novelty_sentences(
        estimator, len(unlike), len(rows), lambda: unlike, at_random=at_random, where=" on this page"
    )


# What next


def _what_next(
    estimator: Any,
    description: Description | None,
    scored: ScoredPredictions | None,
    sample_sizes: SampleSizes | LearningCurve | None,
) -> list[str]:
    """Return advice: on labels, classes with few rows, sample sizes, recalls, variables and groups."""
    sentences = []
    if scored is not None:
        sentences += [begun(sentence) for sentence in advice_on_labels(estimator, scored.predictions)]
    counts = map(int, estimator.class_count_)
    small = small_classes(dict(zip(map(str, estimator.classes_.tolist()), counts, strict=True)))
    sentences += [begun(str(finding)) for finding in small]
    if sample_sizes is None and hasattr(estimator, "cv_log_loss_"):
        sentences.append(ASK_FOR_SAMPLE_SIZES)
    if scored is not None:
        sentences += _least_known(scored.predictions)
    if description is not None:
        names, needless = description.feature_names, description.adds_nothing()
        unmarked = np.flatnonzero(~description.markers.any(axis=0) & description.has_values)
        carrying = [j for j in unmarked if j not in needless]
        n_variables = int(description.has_values.sum())
        sentences.append(
            needless_variables([names[j] for j in needless], [names[j] for j in carrying], n_variables)
        )
        groups = estimator.model_.training.groups
        sentences.append(groups_of_rows(None if groups is None else np.unique(groups).size))
        if estimator.n_duplicates_:
            sentences.append(duplicate_rows(estimator.n_duplicates_, estimator.model_.n_rows))
    return [sentence for sentence in sentences if sentence]


def _least_known(predictions: HeldOut) -> list[str]:
    """Return sentences on the class whose recall has the widest interval, and on the lowest recall."""
    recalls = predictions.recalls()
    label, widest = max(recalls.items(), key=lambda item: np.ptp(item[1].interval or (0.0, 1.0)))
    n_more = rows_to_halve_interval(widest.share, widest.n_rows) if predictions.groups is None else None
    sentences = [recall_known_least(label, widest.n_rows, widest.interval, n_more)]
    label, worst = min(recalls.items(), key=lambda item: item[1].share)
    if worst.mistaken_for is not None:
        sentences.append(recognised_least(label, worst.n_right, worst.n_rows, worst.mistaken_for))
    return sentences


def _curve(curve: LearningCurve, scored: ScoredPredictions | None) -> dict[str, Any]:
    """Return the table of a learning curve, rows needed for a goal, and why accuracies differ."""
    begin = curve_begins(curve.n_rows, curve.accuracy(curve.n_rows).value)
    if scored is not None and scored.unseen:
        accuracy, claim = scored.predictions.scores().accuracy, scored.predictions.claim
        begin += f" {other_accuracy(accuracy, claim)}"
    heads, lines = curve.table()
    return {"begin": begin, "heads": heads, "lines": lines, "needs": curve.needs_in_words()}


# Parameters and versions


def _chosen(estimator: Any) -> dict[str, Any]:
    """Return the table of the members of a pool, or of the parameters that `fit` chose; perhaps empty."""
    if hasattr(estimator, "members_"):
        return {
            "chosen_heading": "Members of the pool and their weights",
            "chosen_caption": "Kinds of class densities that the classifier combines",
            "chosen_heads": ("member", "weight"),
            "chosen": [(name, f"{weight:.0%}") for name, weight in estimator.model_.pool.shares().items()],
        }
    return {
        "chosen_heading": "Parameters used by fit",
        "chosen_caption": "Chosen by cross-validation if several values were given",
        "chosen_heads": ("parameter", "value"),
        "chosen": [(name, repr(value)) for name, value in getattr(estimator, "best_params_", {}).items()],
    }


def _parameters(estimator: Any) -> list[tuple[str, str, str]]:
    """Return name, value and origin of all parameters."""
    defaults = {name: repr(value) for name, value in type(estimator)().get_params().items()}
    params = {name: repr(value) for name, value in estimator.get_params().items()}
    return [
        (name, value, "default" if value == defaults[name] else "given") for name, value in params.items()
    ]


def _versions() -> list[tuple[str, str]]:
    """Return the versions of Python and of the packages that computed the page."""
    packages = ("corral", "numpy", "scipy", "scikit-learn", "numba")
    return [("Python", platform.python_version()), *((name, version(name)) for name in packages)]

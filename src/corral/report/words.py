"""What the template writes: paragraphs, lines of tables, facts."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from corral.array_types import Floats
from corral.checking.labels import small_classes
from corral.estimators.description import Description
from corral.estimators.validation import feature_names
from corral.evaluation.held_out import EQUAL_TO_NONE, HeldOut
from corral.evaluation.scores import Recall, rows_to_halve_interval
from corral.evidence.novelty import medians_where_unlike
from corral.planning import LearningCurve, SampleSizes
from corral.report.shown import Judged
from corral.sentences import (
    accuracy_interval,
    begun,
    below_most_frequent,
    copied_rows,
    counted,
    interval_text,
    label_precision,
    median_beside_training,
    needless_variables,
    novel_rows,
    number_of_markers,
    number_text,
)

# Share of novel rows, of which chance would make 1 in 100, beyond which a reason is looked for.
_MANY_NOVEL = 0.05
# Variables that this reason names.
_MOST_NAMED = 3


def page_words(
    estimator: Any,
    description: Description | None,
    judged: Judged | None,
    sample_sizes: SampleSizes | LearningCurve | None,
    rows: Sequence[Mapping[str, Any]],
    source: str | None,
    steps_before: Sequence[str],
) -> dict[str, Any]:
    """All words of the template; `steps_before` are those of a pipeline whose last step is on the page."""
    predictions = None if judged is None else judged.predictions
    unlike = [row.get("unlike", {}) for row in rows]
    medians = medians_where_unlike(unlike, _training_columns(estimator))
    return {
        "summary": [
            _what_was_fitted(estimator, source, steps_before),
            *(_quality(estimator, judged) if judged is not None else _expected(estimator)),
            *novelty([row["novel"] for row in rows if "novel" in row], unlike, medians),
            *([] if description is None else [_markers(description)]),
        ],
        "classes": [
            {
                "name": str(label),
                "rows": number_text(estimator.class_count_[a]),
                "variables": [] if description is None else description.lines(a),
            }
            for a, label in enumerate(estimator.classes_.tolist())
        ],
        "recalls": {} if predictions is None else predictions.recalls(),
        "interval_text": interval_text,
        "called": [] if predictions is None else _called(predictions),
        "what_next": _what_next(estimator, description, judged, sample_sizes),
        "kind": type(estimator).__name__,
        "explains": description is not None,
        "judged": judged,
        "sample_sizes": _sample_sizes(sample_sizes),
        "curve": _curve(sample_sizes, judged) if isinstance(sample_sizes, LearningCurve) else None,
        "n_variables": estimator.n_features_in_,
        "n_wrong": 0 if predictions is None else int((predictions.labels != predictions.truth).sum()),
        "which": predictions.claim if predictions is not None and predictions.parts else "given",
        "facts": _facts(estimator, source, steps_before, measured=judged is not None and judged.unseen),
        "parameters": _parameters(estimator),
        "versions": _versions(),
    }


# Summary


def _what_was_fitted(estimator: Any, source: str | None, steps_before: Sequence[str]) -> str:
    rows, variables = estimator.class_count_.sum(), estimator.n_features_in_
    said = (
        f"{type(estimator).__name__} learnt {estimator.classes_.size} classes from {counted(rows, 'row')} "
        f"with {counted(variables, 'variable')}."
    )
    if steps_before:
        said += f" It is the last step of a pipeline; values are those after {', '.join(steps_before)}."
    return f"{said} The rows on this page are of {source}." if source else said


def _expected(estimator: Any) -> list[str]:
    """Say what accuracy the search expects of new rows, if there was one."""
    if not hasattr(estimator, "cv_log_loss_"):
        return []
    return [
        f"Of new rows like the training rows, about {estimator.cv_accuracy_:.1%} should get the right label: "
        "so many training rows did in cross-validation, each predicted without itself."
    ]


def _quality(estimator: Any, judged: Judged) -> list[str]:
    """Say how many labels are right; those of rows that may be training rows tell little of new ones."""
    predictions = judged.predictions
    scores, rows = predictions.scores(), counted(len(predictions.truth), "row")
    if not judged.unseen:
        return [
            *_expected(estimator),
            f"The {rows} given may be training rows, which a model knows already: that {scores.accuracy:.1%} "
            "of them get the right label says little of new rows, of which fewer would.",
            _most_frequent_mistake(predictions),
        ]
    said = [
        f"Of {rows} {predictions.claim}, {scores.accuracy:.1%} get the right label "
        f"({accuracy_interval(scores.accuracy_interval, predictions.n_groups, '.1%')}); the most frequent "
        f"class has {predictions.most_frequent_share():.1%} of them. The log loss is {scores.log_loss:.3f}, "
        f"and the probability of a label is off by {scores.calibration_error:.3f} on average."
    ]
    if predictions.claim == EQUAL_TO_NONE:
        said.append(
            "Rows are compared in every digit, so a training row that was rounded or converted counts as new."
        )
    return [*said, _most_frequent_mistake(predictions)]


def _most_frequent_mistake(predictions: HeldOut) -> str:
    recalls = predictions.recalls()
    label, worst = max(recalls.items(), key=lambda item: item[1].n_mistaken)
    if not worst.n_mistaken:
        return "None is wrong."
    return (
        f"The most frequent mistake is to take {label} for {worst.mistaken_for}: {worst.n_mistaken} of "
        f"{counted(worst.n_rows, 'row')} of {label}."
    )


def novelty(
    novel: Sequence[int], unlike: Sequence[Mapping[str, Any]], medians: Mapping[str, tuple[float, float]]
) -> list[str]:
    """Say how many rows are novel, if that is known, and which variables most often make them so.

    Parameters
    ----------
    novel : whether each row drawn for the page is novel.
    unlike : for each, the variables that make it unlike the training rows.
    medians : of such variables, in these rows and in the training rows.
    """
    if not novel:
        return []
    n_novel = sum(novel)
    said = [novel_rows(n_novel, len(novel))]
    counts = Counter(name for names in unlike for name in names)
    beside = {name: f"; {median_beside_training(*pair)}" for name, pair in medians.items()}
    named = [
        f"{name} (in {n} of {n_novel}{beside.get(name, '')})"
        for name, n in counts.most_common(_MOST_NAMED)
        if n >= n_novel / 2.0
    ]
    if named and n_novel >= max(3.0, _MANY_NOVEL * len(novel)):
        said.append(
            "These are more than chance makes novel. What makes them unlike the training rows is most often "
            f"{', '.join(named)}: see whether the units are those of the training rows, and whether the rows "
            "were measured in the same way."
        )
    return said


def _training_columns(estimator: Any) -> dict[str, Floats]:
    """Training values by variable, if the classifier keeps them."""
    if not hasattr(estimator, "model_"):
        return {}
    return dict(zip(feature_names(estimator), estimator.model_.training.X.T, strict=True))


def _markers(description: Description) -> str:
    numbers = description.markers.sum(axis=1).tolist()
    described = description.markers.any(axis=0)
    return number_of_markers(int(described.sum()), described.size, min(numbers), max(numbers))


# Errors


def _called(predictions: HeldOut) -> list[str]:
    """Say of each label how many of the rows that got it are of the class, and what probabilities promise."""
    return [
        label_precision(label, found.n_right, found.n_rows, found.confidence)
        for label, found in predictions.precisions().items()
    ]


# What next


def _what_next(
    estimator: Any,
    description: Description | None,
    judged: Judged | None,
    sample_sizes: SampleSizes | LearningCurve | None,
) -> list[str]:
    """Say which classes lack rows, which variables add nothing, and whether rows belong together."""
    said = []
    if judged is not None:
        accuracy = judged.predictions.scores().accuracy
        useless = below_most_frequent(accuracy, judged.predictions.most_frequent_share())
        said += [begun(useless)] if useless else []
    said += _small_classes(estimator)
    if sample_sizes is None and hasattr(estimator, "cv_log_loss_"):
        said.append(
            "How many rows of each class a wanted accuracy takes is not on this page: ask for it by --goal, "
            "or hand over what estimate_sample_sizes returns."
        )
    if judged is not None:
        said += _least_known(judged.predictions)
    if description is not None:
        names, needless = description.feature_names, description.adds_nothing()
        carrying = [j for j in np.flatnonzero(~description.markers.any(axis=0)) if j not in needless]
        said.append(
            needless_variables([names[j] for j in needless], [names[j] for j in carrying], len(names))
        )
    return [*said, *_rows_that_belong_together(estimator)] if hasattr(estimator, "model_") else said


def _small_classes(estimator: Any) -> list[str]:
    counts = dict(
        zip(map(str, estimator.classes_.tolist()), estimator.class_count_.astype(int).tolist(), strict=True)
    )
    return [begun(str(finding)) for finding in small_classes(counts)] or [
        f"No class is small: each has at least {min(counts.values())} training rows."
    ]


def _least_known(predictions: HeldOut) -> list[str]:
    """Name the class whose recall is known least, and the one that is recognised least."""
    recalls = predictions.recalls()
    label, widest = max(recalls.items(), key=lambda item: _width(item[1]))
    rows = counted(widest.n_rows, "row")
    known = (
        f"from {interval_text(widest.interval)}, by {rows}"
        if widest.interval
        else f"there is no interval, by {rows} of one group"
    )
    n_more = rows_to_halve_interval(widest.share, widest.n_rows)
    more = (
        f"To know it twice as well, which does not raise it, judge about {n_more} more rows of {label}, "
        f"{n_more + widest.n_rows} in all"
        if predictions.groups is None
        else f"More rows of {label}, of new groups, would tell most"
    )
    said = [f"The recall known least is that of {label}: {known}. {more}."]
    label, worst = min(recalls.items(), key=lambda item: item[1].share)
    if worst.mistaken_for is not None:
        said.append(
            f"The class recognised least is {label}, with {worst.n_right} of {counted(worst.n_rows, 'row')} "
            f"right, most often taken for {worst.mistaken_for}: look for variables that tell these two apart."
        )
    return said


def _width(recall: Recall) -> float:
    """How little is known of a recall; everything is unknown if there is no interval."""
    return 1.0 if recall.interval is None else recall.interval[1] - recall.interval[0]


def _rows_that_belong_together(estimator: Any) -> list[str]:
    """Tell of groups and copies."""
    training = estimator.model_.training
    if training.groups is None:
        of_groups = (
            "Rows have no groups. If several come from one thing, such as a patient, name it (--group, or "
            "groups in fit): scores are too good otherwise."
        )
    else:
        of_groups = (
            f"The training rows are of {counted(np.unique(training.groups).size, 'group')}, and were left "
            "out by groups: rows of new groups tell more than further rows of these."
        )
    if not estimator.n_copies_:
        return [of_groups, "No training row is a copy of another."]
    copies = copied_rows(estimator.n_copies_, estimator.model_.n_rows)
    return [of_groups, f"{copies} Look whether rows were entered twice."]


def _sample_sizes(found: SampleSizes | LearningCurve | None) -> list[str]:
    """Lines on the bound on sample sizes."""
    if not isinstance(found, SampleSizes):
        return []
    return str(found).removeprefix(f"{type(found).__name__}: ").splitlines()


def _curve(curve: LearningCurve, judged: Judged | None) -> dict[str, Any]:
    """What more rows would bring, how many rows a goal takes, and why the summary has another accuracy."""
    begin = (
        f"With the {curve.n_rows} rows there are, the curve has the accuracy "
        f"{curve.accuracy(curve.n_rows).value:.3f}, estimated from training rows that are predicted "
        "by each other."
    )
    if judged is not None and judged.unseen:
        begin += (
            f" The {judged.predictions.scores().accuracy:.1%} of the summary were counted on rows "
            f"{judged.predictions.claim}: the two differ by chance and by how many rows were learnt from. "
            "Compare what more rows would bring with the first."
        )
    heads, lines = curve.table()
    return {"begin": begin, "heads": heads, "lines": lines, "needs": curve.needs_in_words()}


# Facts


def _facts(
    estimator: Any, source: str | None, steps_before: Sequence[str], *, measured: bool
) -> list[tuple[str, str]]:
    """What the page is about; what is expected of new rows only if that was not `measured`."""
    facts = [
        ("data", source or "not named"),
        ("training rows", number_text(estimator.class_count_.sum())),
        ("variables", str(estimator.n_features_in_)),
        ("classes", str(estimator.classes_.size)),
    ]
    if steps_before:
        facts.append(("steps before", ", ".join(steps_before)))
    if hasattr(estimator, "cv_log_loss_") and not measured:
        facts.append(("accuracy to expect by cross-validation", f"{estimator.cv_accuracy_:.3f}"))
        facts.append(("log loss to expect by cross-validation", f"{estimator.cv_log_loss_:.3f}"))
    return facts


def _parameters(estimator: Any) -> list[tuple[str, str, str]]:
    """Name, value and where it comes from."""
    if hasattr(estimator, "members_"):
        chosen = {name: f"counts for {share:.0%}" for name, share in estimator.model_.pool.shares().items()}
    else:
        chosen = {name: repr(value) for name, value in getattr(estimator, "best_params_", {}).items()}
    given = estimator.get_params()
    return [(name, value, "chosen") for name, value in chosen.items()] + [
        (name, repr(value), "given") for name, value in given.items()
    ]


def _versions() -> list[tuple[str, str]]:
    """What computed the page."""
    packages = ("corral", "numpy", "scipy", "scikit-learn", "numba")
    return [("Python", platform.python_version()), *((name, version(name)) for name in packages)]

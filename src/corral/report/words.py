"""Words for the page."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from corral.checking.findings import listed
from corral.checking.labels import small_classes
from corral.estimators.description import Description
from corral.estimators.number_text import different_texts, number_text
from corral.estimators.warned import copies_sentence
from corral.evaluation.held_out import EQUAL_TO_NONE, HeldOut
from corral.evaluation.scores import Scores, rows_to_halve_interval
from corral.planning import LearningCurve, SampleSizes
from corral.planning.bound import in_rows
from corral.planning.curve import FARTHEST, TIMES, Needed, number_in_words
from corral.report.numbers import Judged

# Variables that the line of a class names.
_MOST_NAMED = 3
# Share of novel rows, of which chance would make 1 in 100, beyond which a reason is looked for.
_MANY_NOVEL = 0.05
# Variables that a sentence lists.
_MOST_LISTED = 10
# A ratio whose decimal logarithm is so near to a whole number looks like another unit.
_NEAR_A_POWER = 0.1
# So many times its lower end, the upper end of an interval says that hardly anything is known.
_UNCERTAIN = 4.0


def summary(
    estimator: Any,
    description: Description | None,
    judged: Judged | None,
    source: str | None,
    of_novelty: Sequence[str],
    steps_before: Sequence[str] = (),
) -> list[str]:
    """Paragraphs that say what was fitted, how good it is, which rows are novel and what it found."""
    n, d, k = estimator.class_count_.sum(), estimator.n_features_in_, estimator.classes_.size
    paragraphs = [
        f"{type(estimator).__name__} learnt {k} classes from {_count(n, 'row')} with {_count(d, 'variable')}."
    ]
    if steps_before:
        paragraphs[0] += (
            f" It is the last step of a pipeline; values are those after {', '.join(steps_before)}."
        )
    if source:
        paragraphs[0] += f" The rows on this page are of {source}."
    if judged is not None:
        paragraphs += _quality(judged) if judged.unseen else _of_rows_perhaps_known(estimator, judged)
    else:
        paragraphs += _expected(estimator)
    paragraphs += of_novelty
    if description is not None:
        paragraphs.append(_markers_in_words(description))
    return paragraphs


def novelty(
    rows: Sequence[Mapping[str, Any]], medians: Mapping[str, tuple[float, float]] | None = None
) -> list[str]:
    """Say how many of the rows drawn for the page are novel, if that is known, and by which variables.

    `medians` are those of variables in the rows that they make unlike the training rows, and in these.
    """
    if not rows or "novel" not in rows[0]:
        return []
    n, n_rows = sum(row["novel"] for row in rows), len(rows)
    if not n:
        return [
            f"None of {_count(n_rows, 'row')} looked at one by one is novel, which means less typical than "
            "99 in 100 training rows of all classes together."
        ]
    return [
        f"{n} of {_count(n_rows, 'row')} looked at one by one {'is' if n == 1 else 'are'} novel: less "
        "typical, at the class that fits best, than 99 in 100 training rows of all classes together. "
        + ("Its label means little." if n == 1 else "Their labels mean little."),
        *_if_many_are_novel(rows, n, medians or {}),
    ]


def _if_many_are_novel(
    rows: Sequence[Mapping[str, Any]], n_novel: int, medians: Mapping[str, tuple[float, float]]
) -> list[str]:
    """Name the variables that make most novel rows unlike training rows, if more are novel than by chance."""
    if n_novel < max(3.0, _MANY_NOVEL * len(rows)):
        return []
    counts = Counter(name for row in rows for name in row.get("unlike_variables", ()))
    named = [
        f"{name} (in {n} of {n_novel}{_beside_training_rows(*medians[name]) if name in medians else ''})"
        for name, n in counts.most_common()
        if n >= n_novel / 2.0
    ]
    if not named:
        return []
    return [
        "These are more than chance makes novel. What makes them unlike the training rows is most often "
        f"{', '.join(named[:_MOST_NAMED])}: see whether the units are those of the training rows, and "
        "whether the rows were measured in the same way."
    ]


def _beside_training_rows(median: float, of_training: float) -> str:
    """Two medians; and the power of ten between them, if it is one, as where units differ."""
    here, there = different_texts([median, of_training])
    said = f"; median {here}, of training rows {there}"
    if median * of_training <= 0.0:
        return said
    power = math.log10(median / of_training)
    if round(power) == 0 or abs(power - round(power)) > _NEAR_A_POWER:
        return said
    return f"{said}: about {10 ** abs(round(power))} times {'larger' if power > 0.0 else 'smaller'}"


def _expected(estimator: Any) -> list[str]:
    """Say what accuracy the search expects of new rows, if there was one."""
    if not hasattr(estimator, "cv_log_loss_"):
        return []
    return [
        f"Of new rows like the training rows, about {estimator.cv_accuracy_:.1%} should get the right label: "
        "so many training rows did in cross-validation, each predicted without itself."
    ]


def _of_rows_perhaps_known(estimator: Any, judged: Judged) -> list[str]:
    """Say that labels of rows which may be training rows tell little of new ones."""
    predictions = judged.predictions
    accuracy, n = predictions.scores().accuracy, len(predictions.truth)
    return [
        *_expected(estimator),
        f"The {_count(n, 'row')} given may be training rows, which a model knows already: that "
        f"{accuracy:.1%} of them get the right label says little of new rows, of which fewer would.",
        *_mistakes(predictions),
    ]


def _quality(judged: Judged) -> list[str]:
    predictions = judged.predictions
    scores, n = predictions.scores(), len(predictions.truth)
    return [
        f"Of {_count(n, 'row')} {predictions.claim}, {scores.accuracy:.1%} get the right label "
        f"({_interval(predictions, scores)}); the most frequent class has "
        f"{predictions.most_frequent_share():.1%} of them. The log loss is {scores.log_loss:.3f}, "
        f"and the probability of a label is off by {scores.calibration_error:.3f} on average.",
        *_meaning_of_equal(predictions),
        *_mistakes(predictions),
    ]


def _meaning_of_equal(predictions: HeldOut) -> list[str]:
    """Say what is meant by rows that are equal to no training row."""
    if predictions.claim != EQUAL_TO_NONE:
        return []
    return [
        "Rows are compared in every digit, so a training row that was rounded or converted counts as new."
    ]


def _mistakes(predictions: HeldOut) -> list[str]:
    """Name the most frequent mistake."""
    wrong = confusion_matrix(predictions.truth, predictions.labels, labels=predictions.classes)
    in_class = wrong.sum(axis=1)
    np.fill_diagonal(wrong, 0)
    if not wrong.any():
        return ["None is wrong."]
    a, b = np.unravel_index(wrong.argmax(), wrong.shape)
    names = predictions.classes.tolist()
    return [
        f"The most frequent mistake is to take {names[a]} for {names[b]}: {wrong[a, b]} of "
        f"{_count(in_class[a], 'row')} of {names[a]}."
    ]


def _from_to(interval: tuple[float, float] | None) -> str:
    """The bounds of an interval; empty if there is none."""
    return "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _width(interval: tuple[float, float] | None) -> float:
    """How little is known of a share; everything is unknown if there is no interval."""
    return 1.0 if interval is None else interval[1] - interval[0]


def _interval(predictions: HeldOut, scores: Scores) -> str:
    """The 95 % interval of the accuracy, and how many groups it rests on, if rows have some."""
    if scores.accuracy_interval is None:
        return "no interval, since all are of one group"
    low, high = scores.accuracy_interval
    of_groups = "" if predictions.n_groups is None else f" from {predictions.n_groups} groups"
    return f"95% interval {low:.1%} to {high:.1%}{of_groups}"


def _markers_in_words(description: Description) -> str:
    numbers = description.markers.sum(axis=1)
    if not numbers.any():
        return (
            "No variable stands out as describing a class: no test of values or of single levels shows one "
            "to differ from the others by more than chance and not negligibly. Labels rest on variables "
            "together."
        )
    used = description.markers.sum(axis=0)
    some = int((used > 0).sum())
    low, high = int(numbers.min()), int(numbers.max())
    each = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"{_count(some, 'variable')} of {used.size} "
        f"{'describes' if some == 1 else 'describe'} at least one class, {each} in each class. A variable "
        "describes a class if its values there are higher, lower, closer together, further apart or "
        "otherwise distributed than in the background of the class, by more than chance and not negligibly. "
        "The background is all other classes; or, where most classes are alike in the variable, only these."
    )


def classes_at_a_glance(estimator: Any, description: Description | None) -> list[dict[str, Any]]:
    """One line per class: its rows, and what marks it."""
    return [
        {
            "name": str(label),
            "rows": number_text(estimator.class_count_[a]),
            "variables": [] if description is None else _marks(description, a),
        }
        for a, label in enumerate(estimator.classes_.tolist())
    ]


def recalls(judged: Judged) -> list[dict[str, str]]:
    """One line per class whose rows were judged: how many are right, and what others are taken for."""
    return [
        {
            "name": str(label),
            "right": f"{found.n_right} of {found.n_rows}",
            "recall": f"{found.share:.3f}",
            "interval": _from_to(found.interval) or "none, of one group",
            "mistaken": "" if found.mistaken_for is None else f"{found.mistaken_for} ({found.n_mistaken})",
        }
        for label, found in judged.predictions.recalls().items()
    ]


def called(judged: Judged) -> list[str]:
    """Say of each label how many of the rows that got it are of the class, and what probabilities promise."""
    predictions = judged.predictions
    labels, confidence = predictions.labels, predictions.proba.max(axis=1)
    said = []
    for label in np.unique(labels).tolist():
        of_label = labels == label
        right = int((predictions.truth[of_label] == label).sum())
        n = int(of_label.sum())
        said.append(
            f"Of {_count(n, 'row')} called {label}, {right} {'is' if right == 1 else 'are'} "
            f"({right / n:.1%}); by the probabilities it would be {confidence[of_label].mean():.1%}."
        )
    return said


def what_next(
    estimator: Any,
    description: Description | None,
    judged: Judged | None,
    sample_sizes: SampleSizes | LearningCurve | None,
) -> list[str]:
    """Say which classes lack rows, which variables add nothing, and whether rows belong together."""
    said = _small_classes(estimator)
    if sample_sizes is None and hasattr(estimator, "cv_log_loss_"):
        said.append(
            "How many rows of each class a wanted accuracy takes is not on this page: ask for it by --goal, "
            "or hand over what estimate_sample_sizes returns."
        )
    if judged is not None:
        said = [*_if_useless(judged), *said, *_least_known(judged)]
    if description is not None:
        said.append(_needless_variables(description))
    return [*said, *_rows_that_belong_together(estimator)] if hasattr(estimator, "model_") else said


def _if_useless(judged: Judged) -> list[str]:
    """Say that labels are worse than the same label for all rows, if they are."""
    accuracy, baseline = judged.predictions.scores().accuracy, judged.predictions.most_frequent_share()
    if accuracy >= baseline:
        return []
    return [
        f"The accuracy, {accuracy:.1%}, is below the {baseline:.1%} of these rows that are of the most "
        "frequent class: do not rely on labels. See whether these variables can tell the classes apart at "
        "all."
    ]


def _small_classes(estimator: Any) -> list[str]:
    counts = dict(
        zip(map(str, estimator.classes_.tolist()), estimator.class_count_.astype(int).tolist(), strict=True)
    )
    found = [f"{finding}" for finding in small_classes(counts)]
    return [said[:1].upper() + said[1:] for said in found] or [
        f"No class is small: each has at least {min(counts.values())} training rows."
    ]


def _least_known(judged: Judged) -> list[str]:
    """Name the class whose recall is known least, and the one that is recognised least."""
    found = judged.predictions.recalls()
    label, widest = max(found.items(), key=lambda item: _width(item[1].interval))
    known = (
        f"from {_from_to(widest.interval)}, by {_count(widest.n_rows, 'row')}"
        if widest.interval
        else f"there is no interval, by {_count(widest.n_rows, 'row')} of one group"
    )
    n_more = rows_to_halve_interval(widest.share, widest.n_rows)
    more = (
        f"To know it twice as well, which does not raise it, judge about {n_more} more rows of {label}, "
        f"{n_more + widest.n_rows} in all"
        if judged.predictions.groups is None
        else f"More rows of {label}, of new groups, would tell most"
    )
    said = [f"The recall known least is that of {label}: {known}. {more}."]
    label, worst = min(found.items(), key=lambda item: item[1].share)
    if worst.mistaken_for is not None:
        said.append(
            f"The class recognised least is {label}, with {worst.n_right} of {_count(worst.n_rows, 'row')} "
            f"right, most often taken for {worst.mistaken_for}: look for variables that tell these two apart."
        )
    return said


def _needless_variables(description: Description) -> str:
    needless = description.adds_nothing()
    if not needless:
        return "Every variable describes a class or carries evidence: none need be left out."
    describe, carry, they, them = (
        ("describes", "carries", "it", "it") if len(needless) == 1 else ("describe", "carry", "they", "them")
    )
    said = (
        f"{_count(len(needless), 'variable')} of {len(description.feature_names)} {describe} no class and, "
        f"on average over the rows of each class, {carry} no evidence: {_listed(description, needless)}. "
        f"Evidence depends on the other values of a row, so that {they} may count in single ones. Where "
        f"measuring is costly, try without {them}."
    )
    others = np.flatnonzero(~description.markers.any(axis=0))
    carrying = [j for j in others.tolist() if j not in needless]
    if carrying:
        said += (
            f" Others describe no class either, but labels rest on them: {_listed(description, carrying)}."
        )
    return said


def _listed(description: Description, variables: Sequence[int]) -> str:
    """Names of variables, the first of them if they are many."""
    return listed([description.feature_names[j] for j in variables], str, _MOST_LISTED)


def _rows_that_belong_together(estimator: Any) -> list[str]:
    """Tell of groups and copies."""
    training = estimator.model_.training
    if training.groups is None:
        of_groups = (
            "Rows have no groups. If several come from one thing, such as a patient, name it (--group, or "
            "groups in fit): scores are too good otherwise."
        )
    else:
        n_groups = np.unique(training.groups).size
        of_groups = (
            f"The training rows are of {_count(n_groups, 'group')}, and were left out by groups: rows of new "
            "groups tell more than further rows of these."
        )
    if not estimator.n_copies_:
        return [of_groups, "No training row is a copy of another."]
    copies = copies_sentence(estimator.n_copies_, estimator.model_.n_rows)
    return [of_groups, f"{copies} Look whether rows were entered twice."]


def _marks(description: Description, a: int) -> list[str]:
    """Say what marks a class, and what its labels also rest on."""
    markers = description.order[a, : description.markers[a].sum()].tolist()
    said = [description.phrase(a, j) for j in markers[:_MOST_NAMED]] or ["no variable found"]
    if len(markers) > _MOST_NAMED:
        said.append(f"and {len(markers) - _MOST_NAMED} more")
    said += description.missing_phrases(a)
    others = [description.feature_names[j] for j in description.also_rests_on(a)]
    return [*said, f"labels also rest on {', '.join(others)}"] if others else said


def facts(
    estimator: Any, source: str | None, n_rows: int, steps_before: Sequence[str], *, measured: bool
) -> list[tuple[str, str]]:
    """Tell what the page is about; what is expected of new rows only if that was not `measured`."""
    facts = [
        ("data", source or "not named"),
        ("training rows", number_text(estimator.class_count_.sum())),
        ("variables", str(estimator.n_features_in_)),
        ("classes", str(estimator.classes_.size)),
        ("rows given to browse", str(n_rows)),
    ]
    if steps_before:
        facts.append(("steps before", ", ".join(steps_before)))
    if hasattr(estimator, "cv_log_loss_") and not measured:
        facts.append(("accuracy to expect by cross-validation", f"{estimator.cv_accuracy_:.3f}"))
        facts.append(("log loss to expect by cross-validation", f"{estimator.cv_log_loss_:.3f}"))
    return facts


def parameters(estimator: Any) -> list[tuple[str, str, str]]:
    """Name, value and where it comes from."""
    chosen: dict[str, Any]
    if hasattr(estimator, "members_"):
        chosen = {name: f"counts for {share:.0%}" for name, share in estimator.model_.pool.shares().items()}
    else:
        chosen = dict(getattr(estimator, "best_params_", {}))
    given = estimator.get_params()
    return [
        (name, value if isinstance(value, str) else repr(value), "chosen") for name, value in chosen.items()
    ] + [(name, repr(value), "given") for name, value in given.items()]


def versions() -> list[tuple[str, str]]:
    """Name what computed the page."""
    packages = ("corral", "numpy", "scipy", "scikit-learn", "numba")
    return [("Python", platform.python_version()), *((name, version(name)) for name in packages)]


def _count(n: float, what: str) -> str:
    return f"{number_text(n)} {what}" + ("" if n == 1 else "s")


def in_words(found: SampleSizes) -> list[str]:
    """Say what the bound on sample sizes found."""
    return str(found).removeprefix(f"{type(found).__name__}: ").splitlines()


def outlook(curve: LearningCurve, judged: Judged | None) -> dict[str, Any]:
    """What more rows would bring, and how many a goal takes: sentences and tables."""
    times = (1, *TIMES, math.inf)
    found = [("accuracy", [curve.accuracy(each * curve.n_rows) for each in times])]
    for label, size in zip(curve.classes.tolist(), curve.sizes.tolist(), strict=True):
        if size:
            found.append((f"recall of {label}", [curve.recall(label, each * curve.n_rows) for each in times]))
    return {
        "begin": _where_the_curve_begins(curve, judged),
        "heads": [f"with {in_rows(each * curve.n_rows)} rows" for each in times[1:]],
        "n_rows": curve.n_rows,
        "lines": [(name, [number_in_words(each) for each in estimates]) for name, estimates in found],
        "goal": None if curve.goal is None else f"{curve.goal:g}",
        "needs": [goal_line(curve, need) for need in curve.needed],
    }


def _where_the_curve_begins(curve: LearningCurve, judged: Judged | None) -> str:
    """Say what accuracy the curve has with the rows there are, and why the summary may have another."""
    said = (
        f"With the {curve.n_rows} rows there are, the curve has the accuracy "
        f"{curve.accuracy(curve.n_rows).value:.3f}, estimated from training rows that are predicted "
        "by each other."
    )
    if judged is None or not judged.unseen:
        return said
    accuracy = judged.predictions.scores().accuracy
    return (
        f"{said} The {accuracy:.1%} of the summary were counted on rows {judged.predictions.claim}: the two "
        "differ by chance and by how many rows were learnt from. Compare what more rows would bring with "
        "the first."
    )


def goal_line(curve: LearningCurve, need: Needed) -> dict[str, str]:
    """One line of the table of rows that a goal takes: of the class whose recall is meant, or of all."""
    share = 1.0
    if need.label is not None:
        share = float(curve.sizes[curve.classes.tolist().index(need.label)]) / curve.n_rows
    now = share * curve.n_rows
    line = {
        "name": "accuracy, rows of all classes" if need.label is None else f"recall of {need.label}",
        "now": in_rows(now),
        "needed": "",
        "more": "",
        "interval": "",
    }
    match need.outcome(curve.n_rows):
        case "enough":
            return line | {
                "needed": in_rows(now),
                "more": "0",
                "remark": "the rows there are probably suffice",
            }
        case "never":
            return line | {"remark": f"probably no number of rows will do; {need.chance_in_words}"}
        case "far":
            return line | {
                "needed": f"more than {in_rows(FARTHEST * now)}",
                "remark": "if any number will do",
            }
    low, high = (share * max(end, curve.n_rows) for end in (need.rows.low, need.rows.high))
    needed = share * need.rows.value
    return line | {
        "needed": f"about {in_rows(needed)}",
        "more": f"about {in_rows(math.ceil(needed) - now)}",
        "interval": f"{in_rows(low)} to {in_rows(high)}",
        "remark": "very uncertain" if high > _UNCERTAIN * low else "",
    }

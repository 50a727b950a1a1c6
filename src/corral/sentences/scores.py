"""Sentences about models and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corral.sentences.numbers import counted, interval_text

EVERY_DIGIT = (
    "Rows are compared in every digit, so a training row that was rounded or converted counts as new."
)
ASK_FOR_SAMPLE_SIZES = (
    "How many rows of each class a wanted accuracy takes is not on this page: ask for it by --goal, or hand "
    "over what estimate_sample_sizes returns."
)


def fitted_model(
    name: str, n_classes: int, n_rows: float, n_variables: int, steps: Sequence[str], source: str | None
) -> str:
    """Say what a model was fitted to; `steps` come before it in a pipeline."""
    said = f"{name} learnt {n_classes} classes from {counted(n_rows, 'row')} with "
    said += f"{counted(n_variables, 'variable')}."
    if steps:
        said += f" It is the last step of a pipeline; values are those after {', '.join(steps)}."
    return f"{said} The rows on this page are of {source}." if source else said


def expected_accuracy(accuracy: float, log_loss: float) -> str:
    """Say what cross-validation lets expect of new rows."""
    return (
        f"Of new rows like the training rows, about {accuracy:.1%} should get the right label, with a log "
        f"loss of {log_loss:.3f}: so it was in cross-validation, each training row predicted without itself."
    )


def accuracy_of_known_rows(n_rows: int, accuracy: float) -> str:
    """Say how many labels of rows are right that a model may have been fitted to."""
    return (
        f"The {counted(n_rows, 'row')} given may be training rows, which a model knows already: that "
        f"{accuracy:.1%} of them get the right label says little of new rows, of which fewer would."
    )


def accuracy_of_new_rows(
    rows: str, accuracy: float, interval: str, baseline: float, log_loss: float, calibration_error: float
) -> str:
    """Say how many labels are right of rows that a model has not seen, and how good probabilities are."""
    return (
        f"Of {rows}, {accuracy:.1%} get the right label ({interval}); the most frequent class has "
        f"{baseline:.1%} of them. The log loss is {log_loss:.3f}, and the probability of a label is off by "
        f"{calibration_error:.3f} on average."
    )


def most_frequent_mistake(label: Any, mistaken_for: Any, n_mistaken: int, n_rows: int) -> str:
    """Say which class is taken for which other one most often."""
    if not n_mistaken:
        return "Every label is right."
    rows = f"{n_mistaken} of {counted(n_rows, 'row')} of {label}"
    return f"The most frequent mistake is to take {label} for {mistaken_for}: {rows}."


def recall_known_least(
    label: Any, n_rows: int, interval: tuple[float, float] | None, n_more: int | None
) -> str:
    """Say which recall has the widest interval, and how many more rows halve it; None if rows have groups."""
    rows = counted(n_rows, "row")
    certainty = f"{interval_text(interval)}, from {rows}"
    if interval is None:
        certainty = f"its {rows} are of one group, so there is no interval"
    more = f"More rows of {label}, of new groups, would tell most."
    if n_more is not None:
        more = (
            f"To know it twice as well, which does not raise it, judge about {n_more} more rows of {label}, "
            f"{n_more + n_rows} in all."
        )
    return f"The recall of {label} is the least certain: {certainty}. {more}"


def recognised_least(label: Any, n_right: int, n_rows: int, mistaken_for: Any) -> str:
    """Say which class has the lowest recall."""
    return (
        f"The class recognised least is {label}, with {n_right} of {counted(n_rows, 'row')} right, most "
        f"often taken for {mistaken_for}: look for variables that tell these two apart."
    )


def curve_begins(n_rows: int, accuracy: float) -> str:
    """Say where a learning curve begins."""
    return (
        f"With the {n_rows} rows there are, the curve has the accuracy {accuracy:.3f}, estimated from "
        "training rows that are predicted by each other."
    )


def other_accuracy(accuracy: float, claim: str) -> str:
    """Say why the accuracy on held-out rows is not that of a learning curve."""
    return (
        f"The {accuracy:.1%} of the summary were counted on rows {claim}: the two differ by chance and by "
        "how many rows were learnt from. Compare what more rows would bring with the first."
    )


def accuracy_interval(
    interval: tuple[float, float] | None, n_groups: int | None = None, style: str = ".3f"
) -> str:
    """Write the 95 % interval of an accuracy, and how many groups it rests on if rows have groups."""
    if interval is None:
        return "no interval, since all are of one group"
    groups = "" if n_groups is None else f" from {counted(n_groups, 'group')}"
    return f"95% interval {interval_text(interval, style)}{groups}"


def label_precision(label: Any, n_right: int, n_rows: int, confidence: float) -> str:
    """Say how many rows with a label are of its class, and how many would be by their probabilities."""
    return (
        f"Of {counted(n_rows, 'row')} called {label}, {n_right} {'is' if n_right == 1 else 'are'} "
        f"({n_right / n_rows:.1%}); by the probabilities it would be {confidence:.1%}."
    )


def reliability(n_groups: int | None) -> str:
    """Say how to read a picture of how often labels are right, by their probability."""
    groups = (
        ""
        if n_groups is None
        else f" from {counted(n_groups, 'group')}; where all rows are of one group there is none"
    )
    return (
        "On the diagonal, labels are right as often as they claim. A larger dot stands for more rows; bars "
        f"are 95 % intervals{groups}."
    )


NO_DIFFERENCE = "these variables may not tell the classes apart, so do not rely on its labels"


def below_most_frequent(accuracy: float, baseline: float, advice: str = NO_DIFFERENCE) -> str:
    """Say that labels are worse than the same label for all rows; empty if they are not."""
    if accuracy >= baseline:
        return ""
    return (
        f"the accuracy, {accuracy:.3f}, is below the {baseline:.3f} of always naming the most frequent "
        f"class: {advice}."
    )

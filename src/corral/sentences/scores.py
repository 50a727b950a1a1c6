"""Sentences about models and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corral.sentences.numbers import counted, interval_text, listed

EVERY_DIGIT = (
    "Rows are compared in every digit, so a training row that was rounded or converted counts as new."
)
# Names and meanings of scores.
SCORES = {
    "accuracy": ("accuracy", "share of rows with the right label"),
    "balanced_accuracy": ("balanced accuracy", "mean recall of the classes"),
    "auc": ("AUC", "probability that a row of a class ranks above another row; 0.5 is chance"),
    "average_precision": ("average precision", "mean precision over the thresholds of a class"),
    "log_loss": ("log loss", "mean of minus the log probability of the right class; lower is better"),
    "brier_score": (
        "Brier score",
        "squared error of the probabilities, from 0 to 1 (two classes) or 2 (more); lower is better",
    ),
    "calibration_error": (
        "calibration error",
        "mean distance between the probability of labels and the share that is right",
    ),
}
ASK_FOR_SAMPLE_SIZES = (
    "This page does not show how many rows of each class a wanted accuracy takes: ask for it by --goal, or "
    "pass the result of estimate_sample_sizes."
)


def fitted_model(
    name: str, n_classes: int, n_rows: float, n_variables: int, steps: Sequence[str], source: str | None
) -> str:
    """Say what a model was fitted to; `steps` come before it in a pipeline."""
    sentences = f"{name} learnt {n_classes} classes from {counted(n_rows, 'row')} with "
    sentences += f"{counted(n_variables, 'variable')}."
    if steps:
        sentences += (
            f" It is the last step of a pipeline; values are shown as they are after {', '.join(steps)}."
        )
    return f"{sentences} The rows on this page are of {source}." if source else sentences


# The condition under which scores hold if priors are not the class frequencies of the training rows.
IF_PRIORS_HOLD = "if classes are as frequent as the priors say"


def expected_accuracy(accuracy: float, log_loss: float, *, by_shares: bool) -> str:
    """Say what accuracy to expect for new rows; `by_shares` if priors are the class frequencies."""
    rows = "Of new rows like the training rows" if by_shares else f"Of new rows, {IF_PRIORS_HOLD}"
    return (
        f"{rows}, about {accuracy:.1%} should get the right label, with a log loss of {log_loss:.3f}. This "
        "is the result of cross-validation, in which each training row is predicted without itself."
    )


def accuracy_of_known_rows(n_rows: int, accuracy: float) -> str:
    """Say how many labels are right in rows that the model may have been fitted to."""
    return (
        f"{accuracy:.1%} of the {counted(n_rows, 'row')} given get the right label. If they are training "
        "rows, fewer new rows will: the model was fitted to these."
    )


def accuracy_of_new_rows(
    rows: str,
    accuracy: float,
    interval: str,
    baseline: float,
    auc: float | None,
    log_loss: float,
    calibration_error: float,
) -> str:
    """Say how many labels are right in rows that the model was not fitted to, and give other scores."""
    ranks = "" if auc is None else f"The AUC is {auc:.3f}. "
    return (
        f"Of {rows}, {accuracy:.1%} get the right label ({interval}); the most frequent class has "
        f"{baseline:.1%} of them. {ranks}The log loss is {log_loss:.3f}, and the probability of a label is "
        f"off by {calibration_error:.3f} on average."
    )


def most_frequent_error(label: Any, mistaken_for: Any, n_mistaken: int, n_rows: int) -> str:
    """Say which class is taken for which other one most often."""
    if not n_mistaken:
        return "Every label is right."
    rows = f"{n_mistaken} of {counted(n_rows, 'row')} of {label}"
    return f"The most frequent error is to take {label} for {mistaken_for}: {rows}."


def recall_known_least(
    label: Any, n_rows: int, interval: tuple[float, float] | None, n_more: int | None
) -> str:
    """Say which recall has the widest interval, and how many more rows halve it; None if rows have groups."""
    rows = counted(n_rows, "row")
    certainty = f"{interval_text(interval)}, from {rows}"
    if interval is None:
        certainty = f"its {rows} are of one group, so there is no interval"
    more = f"Rows of {label} in new groups would help most."
    if n_more is not None:
        more = (
            f"To halve the interval, predict about {n_more} more rows of {label}, {n_more + n_rows} in all."
        )
    return f"The recall of {label} is the least certain: {certainty}. {more}"


def recognised_least(label: Any, n_right: int, n_rows: int, mistaken_for: Any) -> str:
    """Say which class has the lowest recall."""
    return (
        f"The class with the lowest recall is {label}, with {n_right} of {counted(n_rows, 'row')} right. It "
        f"is most often taken for {mistaken_for}: look for variables that separate these two."
    )


def curve_begins(n_rows: int, accuracy: float) -> str:
    """Say where a learning curve begins."""
    return (
        f"With the {n_rows} rows there are, the curve has the accuracy {accuracy:.3f}, estimated by "
        "leave-one-out: each training row is predicted by the others."
    )


def other_accuracy(accuracy: float, claim: str) -> str:
    """Say why the accuracy on held-out rows is not that of a learning curve."""
    return (
        f"The {accuracy:.1%} of the summary were counted on rows {claim}. The two differ by chance and in "
        "the number of rows that the models were fitted to. Compare the effect of more rows with the first."
    )


def accuracy_interval(
    interval: tuple[float, float] | None, n_groups: int | None = None, style: str = ".3f"
) -> str:
    """Write the 95 % interval of an accuracy, and how many groups it rests on if rows have groups."""
    if interval is None:
        return "no interval, since all rows are of one group"
    groups = "" if n_groups is None else f" from {counted(n_groups, 'group')}"
    return f"95% interval {interval_text(interval, style)}{groups}"


def explained_without(n_models: int) -> str:
    """Say which models label and explain rows that were held out, and which one is the final model."""
    models = "one model" if n_models == 1 else f"{n_models} models, one for each fold"
    return (
        f"Each is labelled and explained by a model that was fitted without it ({models}), so that the "
        "errors here are the errors counted on this page. The final model, which the other "
        "sections show, is fitted to all rows."
    )


def ranking(
    label: Any,
    auc: float,
    auc_interval: tuple[float, float] | None,
    precision: float,
    precision_interval: tuple[float, float] | None,
    share: float,
) -> list[str]:
    """Say how to read the ROC curve and the precision-recall curve of a class."""
    first, second = (
        f"{value:.3f}" + (f" (95% interval {interval_text(interval)})" if interval else "")
        for value, interval in ((auc, auc_interval), (precision, precision_interval))
    )
    return [
        f"AUC of {label}: {first}. On the diagonal its rows would rank like all other rows.",
        f"Average precision of {label}: {second}. By chance it would be {share:.3f}, the share of {label} in "
        "the rows.",
    ]


def threshold_costs(label: Any) -> str:
    """Say how to use a threshold."""
    return (
        f"A row is called {label} if its probability of {label} is at least the threshold. To use a "
        f"threshold t, compare predict_proba with it, or decide by costs: t for a row that is falsely "
        f"called {label}, and 1 - t for a row of {label} that is missed."
    )


def grouped_rows(name: str, n_groups: int) -> str:
    """Say that rows of a group were held out together, and how many groups intervals rest on."""
    intervals = f"{n_groups} groups were held out, and intervals are for new groups"
    if n_groups == 1:
        intervals = "all are of one group, so there is no interval: use --cv, or a larger --test-size"
    return f"rows that share {name!r} were held out together; {intervals}"


def reliability(n_groups: int | None) -> str:
    """Say how to read the figure that compares the probability of labels with the share that is right."""
    groups = (
        ""
        if n_groups is None
        else f" from {counted(n_groups, 'group')}; where all rows are of one group there is none"
    )
    return (
        "On the diagonal, labels are right as often as their probability says. Larger dots stand for more "
        f"rows; bars are 95 % intervals{groups}."
    )


def useless_labels(accuracy: float, share: float, log_loss: float, entropy: float, advice: str) -> str:
    """Say that neither labels nor probabilities are better than the class frequencies."""
    return (
        f"the accuracy, {accuracy:.3f}, is not above the {share:.3f} of always naming the most frequent "
        f"class by more than chance, and the log loss, {log_loss:.3f}, is not below the {entropy:.3f} of the "
        f"class frequencies: {advice}."
    )


NO_DIFFERENCE = "these variables may not separate the classes, so do not rely on its labels"
TRY_POOL = "do not rely on its labels, and try CorralClassifier (--estimator cv)"


def useless_by_equal_priors(balanced_accuracy: float, chance: float, auc: float, advice: str) -> str:
    """Say that labels and ranks are no better than chance, where priors are not the class frequencies."""
    return (
        f"the balanced accuracy, {balanced_accuracy:.3f}, is not above the {chance:.3f} of guessing by more "
        f"than chance, nor is the AUC, {auc:.3f}, above 0.5: {advice}."
    )


def worse_by_equal_priors(accuracy: float, share: float) -> str:
    """Say that labels are worse than the most frequent class because priors are not the frequencies."""
    return (
        f"the accuracy, {accuracy:.3f}, is below the {share:.3f} of always naming the most frequent class: "
        "priors other than the class frequencies favor rare classes, so look at the recall of each class."
    )


def rarely_called(
    classes: Sequence[tuple[Any, int, int, float]], never_right: Sequence[Any], *, two_classes: bool
) -> str:
    """Say that rows of some classes hardly ever get their label, and what would change that.

    `classes` has for each the label, the number of rows that get it, the number of rows of the class, and the
    AUC. No row of the classes in `never_right` gets its label.
    """
    if len(classes) == 1:
        ((label, n_called, n_rows, auc),) = classes
        called = f"only {counted(n_called, 'row')} {'is' if n_called == 1 else 'are'}"
        finding = (
            f"{called if n_called else 'no row is'} called {label}, although {n_rows} are {label} and its "
            f"probability ranks them above others (AUC {auc:.3f}; chance is 0.5)"
        )
    else:
        shown = [f"{label} ({called} for {n}; AUC {auc:.3f})" for label, called, n, auc in classes]
        finding = (
            f"{len(classes)} classes are named too rarely, although their probabilities rank their rows "
            f"above others (labels for rows of the class; chance is an AUC of 0.5): {listed(shown, str, 10)}"
        )
    if never_right:
        finding += f"; no row of {listed(never_right, str, 10)} gets its label either"
    threshold = ", or choose a lower threshold than 0.5" if two_classes else ""
    uniform = "fit with priors='uniform' (--priors uniform)"
    costs = "state the costs of errors (decide, or corral predict --costs)"
    return (
        f"{finding}. To find more of them, with more false alarms, {uniform}{',' if threshold else ' or'} "
        f"{costs}{threshold}."
    )


def threshold_consequences(
    label: Any, threshold: float, n_called: int, n_right: int, n_rows: int, n_all: int
) -> str:
    """Say how many rows get a label, rightly and wrongly, if its probability need only reach a threshold."""
    precision = f", {n_right / n_called:.1%} of them rightly" if n_called else ""
    return (
        f"With the threshold {threshold:g}, {n_called} of {counted(n_all, 'row')} are called {label}"
        f"{precision}: {n_called - n_right} are not {label}. {n_right} of the {n_rows} rows of {label} are "
        f"found ({n_right / max(n_rows, 1):.1%})."
    )

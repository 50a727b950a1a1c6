"""Sentences about fitted models and their scores.

A row is called a class if its label is this class.
"""

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
    "balanced_accuracy": ("balanced accuracy", "mean of the recalls of the classes"),
    "auc": (
        "AUC",
        "chance that a row of a class has a higher probability of this class than a row of another class; "
        "mean over the classes; 0.5 if rows are ranked at random",
    ),
    "average_precision": (
        "average precision",
        "mean precision over the thresholds of a class, weighted by gains in recall; mean over the classes",
    ),
    "log_loss": (
        "log loss",
        "mean of -log of the probability given to the right class; lower is better",
    ),
    "brier_score": (
        "Brier score",
        "mean squared error of the probabilities, from 0 to 1 (two classes) or to 2 (more classes); lower is "
        "better",
    ),
    "calibration_error": (
        "calibration error",
        "mean difference between the probability of labels and the share of these labels that are right",
    ),
}
ASK_FOR_SAMPLE_SIZES = (
    "This page does not say how many rows a given accuracy needs. Set --goal, or pass the result of "
    "estimate_sample_sizes."
)


def fitted_model(
    name: str, n_classes: int, n_rows: float, n_variables: int, steps: Sequence[str], source: str | None
) -> str:
    """Say what a model was fitted to; `steps` are the steps of a pipeline before the model."""
    sentences = f"{name} was fitted to {counted(n_rows, 'row')} of {n_classes} classes with "
    sentences += f"{counted(n_variables, 'variable')}."
    if steps:
        sentences += (
            f" {name} is the last step of a pipeline; this page shows values after {', '.join(steps)}."
        )
    return f"{sentences} The rows on this page are of {source}." if source else sentences


# The condition under which scores hold if priors are not the class frequencies of the training rows.
IF_PRIORS_HOLD = "if classes are as frequent as the priors say"


def expected_accuracy(accuracy: float, log_loss: float, *, by_shares: bool) -> str:
    """Say what accuracy to expect for new rows; `by_shares` if priors are the class frequencies."""
    left_out = "predicted by a model fitted without it"
    if by_shares:
        result = f"In cross-validation {accuracy:.1%} of the predicted labels were right, each row {left_out}"
    else:
        result = f"In cross-validation, each row {left_out}, the accuracy is {accuracy:.1%} {IF_PRIORS_HOLD}"
    return f"{result} (log loss {log_loss:.3f}). Expect about the same for new rows of the same kind."


def accuracy_of_known_rows(n_rows: int, accuracy: float) -> str:
    """Say how many labels are right in rows that the model may have been fitted to."""
    return (
        f"{accuracy:.1%} of the {counted(n_rows, 'row')} given get the right label. If the model was fitted "
        "to these rows, expect a lower share of right labels on new rows."
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
    """Say how many labels are right in rows that the model was not fitted to, and state other scores."""
    ranks = "" if auc is None else f"The AUC is {auc:.3f}. "
    return (
        f"Of {rows}, {accuracy:.1%} get the right label ({interval}); {baseline:.1%} of these rows are of "
        f"the most frequent class. {ranks}The log loss is {log_loss:.3f}, and the calibration error "
        f"{calibration_error:.3f}."
    )


def most_frequent_error(label: Any, mistaken_for: Any, n_mistaken: int, n_rows: int) -> str:
    """Say which class gets which wrong label most often."""
    if not n_mistaken:
        return "Every label is right."
    rows = f"{n_mistaken} of {counted(n_rows, 'row')} of {label}"
    return f"The most frequent error: {rows} {'gets' if n_mistaken == 1 else 'get'} the label {mistaken_for}."


def recall_known_least(
    label: Any, n_rows: int, interval: tuple[float, float] | None, n_more: int | None
) -> str:
    """Say which recall has the widest interval. `n_more` rows would halve it; None if rows have groups."""
    rows = counted(n_rows, "row")
    certainty = f"95% interval {interval_text(interval)}, from {rows}"
    if interval is None:
        certainty = f"all {rows} of this class are of one group, so there is no interval"
    more = f"Labeled rows of {label} from new groups would narrow the interval most."
    if n_more is not None:
        more = (
            f"About {n_more} more labeled rows of {label} ({n_more + n_rows} in all) would halve this "
            "interval; they would not change the recall itself."
        )
    return f"The recall of {label} is the least certain: {certainty}. {more}"


def recognised_least(label: Any, n_right: int, n_rows: int, mistaken_for: Any) -> str:
    """Say which class has the lowest recall."""
    return (
        f"The class with the lowest recall is {label}: {n_right} of {counted(n_rows, 'row')} get its label. "
        f"The most frequent wrong label of these rows is {mistaken_for}: look for variables that separate "
        "these two classes."
    )


def curve_begins(n_rows: int, accuracy: float) -> str:
    """Say at which accuracy a learning curve begins."""
    return (
        f"With the present {n_rows} rows, the curve begins at the accuracy {accuracy:.3f}, estimated by "
        "leave-one-out: each training row is predicted from the other training rows."
    )


def other_accuracy(accuracy: float, claim: str) -> str:
    """Say why the accuracy on held-out rows differs from the accuracy of a learning curve."""
    return (
        f"The accuracy in the summary, {accuracy:.1%}, was measured on rows {claim}. The two accuracies "
        "differ by chance, and because the models were fitted to different numbers of rows. Compare the "
        "estimates for more rows with the leave-one-out estimate."
    )


def accuracy_interval(
    interval: tuple[float, float] | None, n_groups: int | None = None, style: str = ".3f"
) -> str:
    """Write the 95% interval of an accuracy, and the number of groups if rows have groups."""
    if interval is None:
        return "no interval, since all rows are of one group"
    groups = "" if n_groups is None else f" from {counted(n_groups, 'group')}"
    return f"95% interval {interval_text(interval, style)}{groups}"


def explained_without(n_models: int) -> str:
    """Say which models label and explain rows that were held out, and which one is the final model."""
    models = "one model" if n_models == 1 else f"{n_models} models, one for each fold"
    return (
        f"Each row is labeled and explained by a model that was fitted without this row ({models}), so the "
        "errors here are the errors counted on this page. The other sections show the final model, which is "
        "fitted to all rows."
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
        f"AUC of {label}: {first}. The diagonal is chance: rows of {label} would rank no higher than other "
        "rows.",
        f"Average precision of {label}: {second}. Chance gives {share:.3f}, the share of {label} among the "
        "rows.",
    ]


def threshold_costs(label: Any) -> str:
    """Say how to use a threshold of the probability of a class."""
    return (
        f"A row is called {label} if its probability of {label} is at least the threshold. To use a "
        f"threshold t, compare predict_proba with t, or call decide with these costs: t for a row that is "
        f"wrongly called {label}, and 1 - t for a row of {label} that is not called {label}."
    )


def grouped_rows(name: str, n_groups: int) -> str:
    """Say that rows of a group were held out together, and how many groups were held out."""
    intervals = f"{n_groups} groups were held out, and intervals are for new groups"
    if n_groups == 1:
        intervals = (
            "all held-out rows are of one group, so there is no interval: use --cv, or a larger --test-size"
        )
    return f"rows that share {name!r} were held out together; {intervals}"


def reliability(n_groups: int | None) -> str:
    """Say how to read the figure of the share of right labels against their probability."""
    groups = (
        ""
        if n_groups is None
        else f" from {counted(n_groups, 'group')}; a dot whose rows are all of one group has no bar"
    )
    return (
        "On the diagonal, the share of right labels equals their probability. Larger dots stand for more "
        f"rows; bars are 95% intervals{groups}."
    )


def useless_labels(accuracy: float, share: float, log_loss: float, entropy: float, advice: str) -> str:
    """Say that neither labels nor probabilities are better than the class frequencies."""
    return (
        f"the accuracy, {accuracy:.3f}, is not significantly above {share:.3f}, the accuracy of always "
        f"predicting the most frequent class, and the log loss, {log_loss:.3f}, is not below {entropy:.3f}, "
        f"the log loss of the class frequencies: {advice}."
    )


NO_DIFFERENCE = "these variables may not separate the classes, so do not rely on the labels"
TRY_POOL = "do not rely on the labels, and try CorralClassifier (--estimator cv)"


def useless_by_equal_priors(balanced_accuracy: float, chance: float, auc: float, advice: str) -> str:
    """Say that labels and ranks are no better than chance, if priors are not the class frequencies."""
    return (
        f"the balanced accuracy, {balanced_accuracy:.3f}, is not significantly above {chance:.3f}, its value "
        f"for random labels, and the AUC, {auc:.3f}, is not significantly above 0.5: {advice}."
    )


def worse_by_equal_priors(accuracy: float, share: float) -> str:
    """Say that accuracy is below always predicting the most frequent class, because of the priors."""
    return (
        f"the accuracy, {accuracy:.3f}, is below {share:.3f}, the accuracy of always predicting the most "
        "frequent class: priors that are not the class frequencies do not aim at accuracy, so look at the "
        "recall of each class."
    )


def rarely_called(
    classes: Sequence[tuple[Any, int, int, float]], never_right: Sequence[Any], *, two_classes: bool
) -> str:
    """Say that few rows get the labels of some classes, and how to find more rows of these classes.

    `classes` has for each class the label, the number of rows with this label, the number of rows of the
    class, and the AUC. No row of the classes in `never_right` gets its label.
    """
    if len(classes) == 1:
        ((label, n_called, n_rows, auc),) = classes
        called = f"only {counted(n_called, 'row')} {'is' if n_called == 1 else 'are'}"
        finding = (
            f"{called if n_called else 'no row is'} called {label}, although {counted(n_rows, 'row')} "
            f"{'is' if n_rows == 1 else 'are'} of {label} and the probability of {label} ranks rows of "
            f"{label} above other rows (AUC {auc:.3f}; chance is 0.5)"
        )
    else:
        shown = [
            f"{label} (label of {counted(called, 'row')}, class of {n}; AUC {auc:.3f})"
            for label, called, n, auc in classes
        ]
        finding = (
            f"{len(classes)} classes are predicted too rarely, although their probabilities rank their rows "
            f"above other rows (chance is an AUC of 0.5): {listed(shown, str, 10)}"
        )
    if never_right:
        finding += f"; no row of {listed(never_right, str, 10)} gets the label of its class"
    threshold = ", or choose a lower threshold than 0.5" if two_classes else ""
    uniform = "fit with priors='uniform' (--priors uniform)"
    costs = "state the costs of errors (decide, or corral predict --costs)"
    return (
        f"{finding}. To find more of these rows, with more false alarms, "
        f"{uniform}{',' if threshold else ' or'} {costs}{threshold}."
    )


def threshold_consequences(
    label: Any, threshold: float, n_called: int, n_right: int, n_rows: int, n_all: int
) -> str:
    """Say how many rows are called a class, and how many of these are of the class, with a threshold."""
    n_wrong = n_called - n_right
    belonging = (
        f"Of these, {n_right} ({n_right / n_called:.1%}) {'belongs' if n_right == 1 else 'belong'} to class "
        f"{label} and {n_wrong} {'does' if n_wrong == 1 else 'do'} not. "
        if n_called
        else ""
    )
    return (
        f"With the threshold {threshold:g}, {n_called} of {counted(n_all, 'row')} "
        f"{'is' if n_called == 1 else 'are'} called {label}. {belonging}{n_right} of the {n_rows} rows of "
        f"{label} {'is' if n_right == 1 else 'are'} found ({n_right / max(n_rows, 1):.1%})."
    )

"""Warnings of a fit and of predictions: duplicates, classes without markers, shifted tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats
from corral.data.dataset import TrainingRows
from corral.data.near_duplicates import NearDuplicates, near_duplicates
from corral.estimators.validation import column_names, warn_user
from corral.model import LocalModel
from corral.rodeo.model import FittedModel
from corral.sentences.tables import duplicate_rows, shifted_table

# A new value lies outside the range of n values with the probability 2 / (n + 1). With these numbers it is
# nearly impossible by chance that more than half of the rows do.
_FEWEST_ROWS = 10
_FEWEST_TRAINING_ROWS = 20


class EmptySelectionWarning(UserWarning):
    """No variable was found to describe a class.

    See Also
    --------
    corral.MarkerSelector : Finds the variables that differ between classes.
    corral.RodeoSelector : Finds those in which a class is concentrated.
    """


class DuplicatesWarning(UserWarning):
    """More than one training row in a hundred is a duplicate of another.

    Duplicates are left out together, so that no row predicts itself; `n_duplicates_` counts them.

    See Also
    --------
    corral.CorralClassifier : Gives it in `fit`.
    """


class NearDuplicatesWarning(UserWarning):
    """More than one training row in a hundred repeats another row, but not exactly.

    Such rows differ from another one in a single value, such as a counter, a date or a missing value, or by
    far less than from all others, as where rows were rounded. Each is predicted by its near duplicate, so
    that scores and probabilities are too good even for noise. Keep one of them, or pass `groups` that hold
    them together.

    See Also
    --------
    corral.DuplicatesWarning : Exact duplicates, which are left out together and do no harm.
    """


class ShiftedTableWarning(UserWarning):
    """Most rows of a table of ten rows or more lie outside the range of the training rows in a variable.

    Reasons may be other units of measurement, or rows from another time or place. The warning has the
    medians, and the power of ten between them if there is one. Labels and probabilities of such rows are
    extrapolated. `assess` and all methods that return labels, probabilities or densities warn.

    See Also
    --------
    corral.CorralClassifier.is_novel : Finds rows that are unlike all training rows.
    """


def warn_of_shift(model: LocalModel, X: Floats, names: Sequence[str]) -> None:
    """Warn if most rows of a table lie outside the range of the training rows in some variable."""
    if len(X) < _FEWEST_ROWS or model.class_ranges is None:
        return
    low, high = model.class_ranges[:, 0].min(axis=0), model.class_ranges[:, 1].max(axis=0)
    n_outside = ((low > X) | (high < X)).sum(axis=0)
    shifted = np.flatnonzero((n_outside > len(X) / 2.0) & (model.data.category_counts == 0)).tolist()
    training = {j: model.training.X[:, j] for j in shifted}
    medians = {
        names[j]: (float(np.nanmedian(X[:, j])), float(np.nanmedian(column)))
        for j, column in training.items()
        if np.count_nonzero(~np.isnan(column)) >= _FEWEST_TRAINING_ROWS
    }
    if medians:
        counts = {names[j]: int(n_outside[j]) for j in shifted if names[j] in medians}
        sentence = shifted_table(len(X), counts, medians, all_training_rows=model.has_all_rows)
        warn_user(sentence, ShiftedTableWarning)


def warn_of_empty_selections(model: FittedModel) -> None:
    """Warn of classes without relevant variables if densities use only these, and advise another scale.

    Bandwidths shrink most with the scales "range" and "rank".
    """
    scale = model.settings.scale
    without = model.labels[(model.data.counts > 0.0) & ~model.relevant.any(axis=1)].tolist()
    if without and model.settings.features == "selected":
        others = " or ".join(repr(other) for other in ("range", "rank") if other != scale)
        warn_user(
            f"no variable is relevant for the classes {without} in scale={scale!r}; where bandwidths hardly "
            f"shrink, try scale={others}.",
            EmptySelectionWarning,
        )


def warn_of_undescribed(labels: list[Any]) -> None:
    """Warn of classes without markers, if there are any."""
    if labels:
        warn_user(
            f"no variable was found to mark the classes {labels}: they may have too few rows, or differ from "
            "others in several variables together only.",
            EmptySelectionWarning,
        )


def warn_of_single_rows(y: NDArray[Any]) -> None:
    """Warn if no class has a second row, since then no row can be left out."""
    classes, counts = np.unique(y, return_counts=True)
    if classes.size > 1 and counts.max() == 1:
        warn_user(
            "each class has one row, so that nothing can be left out: probabilities, typicality and scores "
            "mean nothing. Collect more rows.",
            UserWarning,
        )


def warn_about_duplicates(n_duplicates: int, n_rows: int) -> None:
    """Warn if there are too many duplicates to be an accident."""
    if are_many(n_duplicates, n_rows):
        warn_user(duplicate_rows(n_duplicates, n_rows), DuplicatesWarning)


def are_many(n_repeated: int, n_rows: int) -> bool:
    """Whether rows that repeat others are too many to be an accident."""
    return n_repeated > 0.01 * n_rows


def warn_of_duplicates(estimator: Any, training: TrainingRows, n_duplicates: int) -> None:
    """Warn of duplicates, and of near duplicates that no group holds together, if they are too many.

    Rows are compared by the first variable of each column: the variables of a date agree if the first does.
    """
    warn_about_duplicates(n_duplicates, len(training.X))
    first = np.unique(estimator.encoding_.column_positions(), return_index=True)[1]
    X, groups = training.X[:, first], training.groups
    categories = None if training.n_categories is None else training.n_categories[first]
    if training.weights is not None:
        counts = training.weights > 0.0
        X, groups = X[counts], None if groups is None else groups[counts]
    duplicates = near_duplicates(X, categories, groups)
    if duplicates is not None and are_many(duplicates.n_rows, len(X)):
        words = near_duplicates_words(duplicates, len(X), column_names(estimator))
        drop = "" if duplicates.column is None else "leave the column out, "
        warn_user(
            f"{words}. A row is predicted by its duplicate, so do not believe scores and probabilities: "
            f"{drop}keep one of them, or pass groups that hold them together.",
            NearDuplicatesWarning,
        )


def near_duplicates_words(duplicates: NearDuplicates, n_rows: int, names: Sequence[str]) -> str:
    """Say how many rows are near duplicates, and what they differ in."""
    column = duplicates.column
    difference = duplicates.kind if column is None else f"column {names[column]!r}"
    return f"{duplicates.n_rows} of {n_rows} rows equal another row but for {difference} (near duplicates)"

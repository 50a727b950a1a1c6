"""Warnings about duplicates, classes without markers, and tables that differ from the training rows."""

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

# The probability that a new value lies outside the range of n training values is 2 / (n + 1). With at least
# these numbers of rows, more than half of the new values hardly lie outside by chance.
_FEWEST_ROWS = 10
_FEWEST_TRAINING_ROWS = 20


class EmptySelectionWarning(UserWarning):
    """A class has no markers, or no relevant variables.

    See Also
    --------
    corral.MarkerSelector : Warns of classes without markers.
    corral.RodeoSelector : Warns of classes without relevant variables.
    """


class DuplicatesWarning(UserWarning):
    """More than 1% of the training rows are duplicates of other training rows.

    A row is left out together with its duplicates, so that no row is predicted from its own values. The
    number of duplicates is in `n_duplicates_`.

    See Also
    --------
    corral.CorralClassifier : Warns in `fit`.
    """


class NearDuplicatesWarning(UserWarning):
    """More than 1% of the training rows nearly equal another training row.

    Two rows are near duplicates if they differ in a single column (such as a counter, a date or a missing
    value), or by much less than from all other rows (such as rounded rows). A row that is left out is then
    predicted from its near duplicate, so that scores and probabilities are too good even if labels are
    random. Remove one row of each pair, or pass `groups` in which near duplicates have the same group.

    See Also
    --------
    corral.DuplicatesWarning : Exact duplicates, which are left out together and do no harm.
    """


class ShiftedTableWarning(UserWarning):
    """In a table of ten or more new rows, most rows lie outside the range of the training rows in a variable.

    Reasons may be other units of measurement, or rows from another time or place. The warning has the medians
    of new rows and training rows, and their ratio if it is about a power of ten. Labels and probabilities of
    such rows are extrapolated. `assess` and all methods that return labels, probabilities or densities warn.

    See Also
    --------
    corral.CorralClassifier.is_novel : Finds rows that are unlike all training rows.
    """


def warn_of_shift(model: LocalModel, X: Floats, names: Sequence[str]) -> None:
    """Warn if most rows of `X` (n_rows, n_features) lie outside the range of the training rows in a variable.

    The variables have these `names`. Tables of fewer than ten rows and variables with fewer than 20 training
    values are not tested.
    """
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
    """Warn of classes without relevant variables if ``features="selected"``, and advise another scale.

    Bandwidths shrink most with the scales "range" and "rank".
    """
    scale = model.settings.scale
    without = model.labels[(model.data.counts > 0.0) & ~model.relevant.any(axis=1)].tolist()
    if without and model.settings.features == "selected":
        others = " or ".join(repr(other) for other in ("range", "rank") if other != scale)
        warn_user(
            f"no variable is relevant for the classes {without} with scale={scale!r}; if bandwidths hardly "
            f"shrink, try scale={others}.",
            EmptySelectionWarning,
        )


def warn_of_undescribed(labels: list[Any]) -> None:
    """Warn of classes without markers, if there are any."""
    if labels:
        warn_user(
            f"the classes {labels} have no markers: they may have too few rows, or differ from other classes "
            "only in combinations of variables.",
            EmptySelectionWarning,
        )


def warn_of_single_rows(y: NDArray[Any]) -> None:
    """Warn if each class has a single row, since the class has no rows if this row is left out."""
    classes, counts = np.unique(y, return_counts=True)
    if classes.size > 1 and counts.max() == 1:
        warn_user(
            "each class has one row, so that leave-one-out is not possible: do not use probabilities, "
            "typicality and scores. Collect more rows.",
            UserWarning,
        )


def warn_about_duplicates(n_duplicates: int, n_rows: int) -> None:
    """Warn if more than 1% of the rows are duplicates."""
    if are_many(n_duplicates, n_rows):
        warn_user(duplicate_rows(n_duplicates, n_rows), DuplicatesWarning)


def are_many(n_repeated: int, n_rows: int) -> bool:
    """Test whether more than 1% of the rows are duplicates or near duplicates."""
    return n_repeated > 0.01 * n_rows


def warn_of_duplicates(estimator: Any, training: TrainingRows, n_duplicates: int) -> None:
    """Warn if more than 1% of the training rows are duplicates, or near duplicates in different groups.

    Rows are compared by the first variable of each column, since equal dates have all variables in common.
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
            f"{words}. A row is predicted from its near duplicate, so scores and probabilities are too good: "
            f"{drop}remove one row of each pair, or pass groups in which both rows have the same group.",
            NearDuplicatesWarning,
        )


def near_duplicates_words(duplicates: NearDuplicates, n_rows: int, names: Sequence[str]) -> str:
    """Write how many rows are near duplicates, and in what they differ; `names` are column names."""
    column = duplicates.column
    difference = duplicates.kind if column is None else f"column {names[column]!r}"
    return f"{duplicates.n_rows} of {n_rows} rows equal another row except for {difference} (near duplicates)"

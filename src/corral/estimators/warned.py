"""What users are warned of: duplicates of rows, classes that nothing describes, columns empty in training."""

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
from corral.sentences.tables import copied_rows, shifted_table

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


class CopiedRowsWarning(UserWarning):
    """More than one training row in a hundred is a copy of another.

    Copies are left out together, so that no row votes for itself; `n_duplicates_` counts them.

    See Also
    --------
    corral.CorralClassifier : Gives it in `fit`.
    """


class NearDuplicatesWarning(UserWarning):
    """More than one training row in a hundred repeats another row, but not exactly.

    Such rows differ from another one in one value alone, as in a counter, a date or a missing value, or by
    far less than from all others, as where rows were rounded. Each is predicted by its twin, so that scores
    and probabilities are too good even for noise. Keep one of them, or pass `groups` that hold them together.

    See Also
    --------
    corral.CopiedRowsWarning : Exact copies, which are left out together and harm nothing.
    """


class ShiftedTableWarning(UserWarning):
    """Most rows of a table of ten rows or more lie outside the range of the training rows in a variable.

    As where the units are others, or where rows come from another time or place. The warning has the medians,
    and the power of ten between them if it is one. Labels and probabilities of such rows are extrapolated.
    `predict` and all other methods that return labels, probabilities or densities warn, and so does `assess`.

    See Also
    --------
    corral.CorralClassifier.is_novel : Tells rows that are unlike all training rows.
    """


def warn_of_shift(model: LocalModel, X: Floats, names: Sequence[str]) -> None:
    """Warn if most rows of a table lie outside the range of the training rows in some variable."""
    if len(X) < _FEWEST_ROWS or model.class_ranges is None:
        return
    low, high = model.class_ranges[:, 0].min(axis=0), model.class_ranges[:, 1].max(axis=0)
    n_outside = ((low > X) | (high < X)).sum(axis=0)
    candidates = np.flatnonzero((n_outside > len(X) / 2.0) & (model.data.category_counts == 0)).tolist()
    training = {j: model.training.X[:, j] for j in candidates}
    medians = {
        names[j]: (float(np.nanmedian(X[:, j])), float(np.nanmedian(column)))
        for j, column in training.items()
        if np.count_nonzero(~np.isnan(column)) >= _FEWEST_TRAINING_ROWS
    }
    if medians:
        counts = {names[j]: int(n_outside[j]) for j in candidates if names[j] in medians}
        sentence = shifted_table(len(X), counts, medians, all_training_rows=model.has_all_rows)
        warn_user(sentence, ShiftedTableWarning)


def warn_of_empty_selections(model: FittedModel) -> None:
    """Warn of classes without relevant variables where the densities use those only, and advise other units.

    Bandwidths shrink most in range and rank units.
    """
    scale = model.settings.scale
    without = model.labels[(model.data.counts > 0.0) & ~model.relevant.any(axis=1)].tolist()
    if without and model.settings.features == "selected":
        others = " or ".join(repr(unit) for unit in ("range", "rank") if unit != scale)
        warn_user(
            f"no variable is relevant for the classes {without} in scale={scale!r}; where bandwidths hardly "
            f"shrink, try scale={others}.",
            EmptySelectionWarning,
        )


def warn_of_undescribed(labels: list[Any]) -> None:
    """Warn of classes that no single variable tells from the others, if there are any."""
    if labels:
        warn_user(
            f"no variable was found to mark the classes {labels}: they may have too few rows, or differ from "
            "others in several variables together only.",
            EmptySelectionWarning,
        )


def warn_of_single_rows(y: NDArray[Any]) -> None:
    """Warn where no class has a second row: without it nothing can be left out to judge by."""
    classes, counts = np.unique(y, return_counts=True)
    if classes.size > 1 and counts.max() == 1:
        warn_user(
            "each class has one row, so that nothing can be left out: probabilities, typicality and scores "
            "mean nothing. Collect more rows.",
            UserWarning,
        )


def warn_about_duplicates(n_duplicates: int, n_rows: int) -> None:
    """Warn where copies are too many to be an accident."""
    if are_many(n_duplicates, n_rows):
        warn_user(copied_rows(n_duplicates, n_rows), CopiedRowsWarning)


def are_many(n_repeated: int, n_rows: int) -> bool:
    """Whether rows that repeat others are too many to be an accident."""
    return n_repeated > 0.01 * n_rows


def warn_of_duplicates(estimator: Any, training: TrainingRows, n_duplicates: int) -> None:
    """Warn of copies, and of near duplicates that no group holds together, if they are too many.

    Near duplicates are compared by column: of several variables of a column of dates, which are equal
    together, the first has all that the others have.
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

"""Choose the rows on the page, and the classifier that labels and explains each of them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corral.array_types import Floats, Integers
from corral.estimators.evaluated_rows import EvaluatedRows, evaluate_rows
from corral.estimators.lspc import LSPClassifier
from corral.estimators.pipelines import last_step, rows_of_last_step
from corral.estimators.tables import UnknownCategoriesWarning
from corral.estimators.validation import check_known_labels, index_name, row_names
from corral.evaluation.held_out import HeldOut, take_rows
from corral.evidence.explainers import factors_per_row

# Most factors of kernels in all explanations of a page: about 12 seconds of one core. If all rows need more
# factors, the page has fewer rows, but at least `_FEWEST_ROWS`.
_MOST_FACTORS = 1_200_000_000
_FEWEST_ROWS = 200

# Most variables on a page, which are the variables that describe some class best.
MOST_VARIABLES = 200

# Most values of rows on a page: each value with its evidence needs at least 5 bytes. Further rows would be
# explained and then left out, because the page would be too large.
_MOST_VALUES = 200_000


class ScoredPredictions(NamedTuple):
    """Predictions of rows whose classes are known."""

    predictions: HeldOut
    unseen: bool  # whether the caller states that the estimator was not fitted to these rows
    on_page: bool  # whether the predicted rows are the rows on the page, so that the page can list them


class ShownPart(NamedTuple):
    """Rows on the page that one classifier labels and explains."""

    estimator: Any  # the fitted classifier
    X: Any  # the rows
    places: Integers  # (n_part,) places of these rows in `ShownRows`
    evaluated: EvaluatedRows | None  # the rows with their densities; None if the classifier has no densities
    training_positions: (
        Integers | None
    )  # positions of its training rows in the table; None if these are all rows


class ShownRows(NamedTuple):
    """Rows on the page, in the order of the subsample: the first rows are kept if a page is too large."""

    scored: ScoredPredictions | None  # None if no classes are known
    parts: list[ShownPart]
    proba: Floats  # (n_shown, n_classes)
    positions: Integers  # (n_shown,) positions in the table
    names: list[Any]  # (n_shown,) index labels, or positions
    word: str  # name of the index, or "Row"
    truth: Integers  # (n_shown,) class codes, -1 if unknown
    n_rows: int  # number of rows that could be shown


def choose_rows(
    estimator: Any,
    X: Any,
    y: ArrayLike | None,
    held_out: HeldOut | None,
    max_rows: int,
    random: np.random.RandomState,
) -> ShownRows:
    """Choose at most `max_rows` rows for the page of a classifier or a pipeline.

    If the scored predictions are predictions of these rows, rows with wrong labels come first. Then one row
    of each class is chosen in turn, if classes are known, otherwise rows at random.
    """
    last, rows = last_step(estimator), rows_of_last_step(estimator, X)
    truth = None if y is None else check_known_labels(y, len(rows), last.classes_)
    if held_out is not None:
        _check_held_out(held_out, truth, len(rows), last.classes_)
    scored, evaluated = _scored(last, rows, truth, held_out)
    available = np.arange(len(rows))
    if held_out is not None and held_out.positions is not None:
        available = held_out.positions
    codes = np.full(len(rows), -1) if truth is None else np.searchsorted(last.classes_, truth)
    proba = scored.predictions.proba if scored is not None and scored.on_page else None
    max_rows = affordable_rows(last, max_rows)
    chosen = _subsample(codes[available], proba, np.argsort(available), random)[:max_rows]
    positions = available[chosen]
    if held_out is not None and held_out.parts:
        parts = _held_out_parts(X, held_out, positions)
    else:
        shown = take_rows(rows, positions)
        evaluated = _evaluated(last, shown) if evaluated is None else evaluated.take(positions)
        parts = [ShownPart(last, shown, np.arange(positions.size), evaluated, None)]
    names = row_names(X)
    return ShownRows(
        scored,
        parts,
        _proba(last, parts[0].X, parts[0].evaluated) if proba is None else proba[chosen],
        positions,
        positions.tolist() if names is None else names[positions].tolist(),
        "Row" if names is None else index_name(X) or "Row",
        codes[positions],
        available.size,
    )


def affordable_rows(estimator: Any, max_rows: int) -> int:
    """Return the number of rows, at most `max_rows`, that can be explained quickly and fit on a page."""
    if isinstance(estimator, LSPClassifier):  # which gives no explanations
        return max_rows
    affordable = _MOST_FACTORS // max(factors_per_row(estimator.model_), 1)
    n_values: int = min(estimator.n_features_in_, MOST_VARIABLES)
    return min(max_rows, max(affordable, _FEWEST_ROWS), _MOST_VALUES // n_values)


def _scored(
    estimator: Any, rows: Any, truth: NDArray[Any] | None, held_out: HeldOut | None
) -> tuple[ScoredPredictions | None, EvaluatedRows | None]:
    """Return predictions to score, and the densities of all rows if the predictions needed the densities."""
    if held_out is not None and held_out.positions is not None:
        return ScoredPredictions(held_out, unseen=True, on_page=True), None
    # If the classes differ, the predictions are of other rows, and the rows of X need not be predicted.
    if truth is None or (held_out is not None and not np.array_equal(held_out.truth, truth)):
        return None if held_out is None else ScoredPredictions(held_out, unseen=True, on_page=False), None
    evaluated = _evaluated(estimator, rows)
    proba = _proba(estimator, rows, evaluated)
    predictions = HeldOut(estimator.classes_, truth, proba) if held_out is None else held_out
    on_page = np.array_equal(predictions.proba, proba)
    return ScoredPredictions(predictions, held_out is not None, on_page), evaluated


def _evaluated(estimator: Any, rows: Any) -> EvaluatedRows | None:
    """Evaluate the densities of rows; None if the classifier has no densities."""
    return None if isinstance(estimator, LSPClassifier) else evaluate_rows(estimator, rows)


def _proba(estimator: Any, rows: Any, evaluated: EvaluatedRows | None) -> Floats:
    proba: Floats = estimator.predict_proba(rows) if evaluated is None else evaluated.proba
    return proba


def _held_out_parts(X: Any, held_out: HeldOut, positions: Integers) -> list[ShownPart]:
    """Divide the rows at these positions among the classifiers that were not fitted to them."""
    parts = []
    for part in held_out.parts:
        places = np.flatnonzero(np.isin(positions, part.rows))
        if not places.size:
            continue
        estimator = last_step(part.estimator)
        rows = rows_of_last_step(part.estimator, take_rows(X, positions[places]))
        with warnings.catch_warnings():
            if part.learnt_from is not None:  # a category may occur in held-out rows only
                warnings.simplefilter("ignore", UnknownCategoriesWarning)
            evaluated = _evaluated(estimator, rows)
        parts.append(ShownPart(estimator, rows, places, evaluated, part.learnt_from))
    return parts


def _check_held_out(held_out: HeldOut, truth: NDArray[Any] | None, n: int, classes: NDArray[Any]) -> None:
    """Raise ValueError if classes or positions of held-out rows do not agree with the estimator, X and y."""
    if not np.array_equal(held_out.classes, classes):
        raise ValueError(
            f"held_out has the classes {held_out.classes.tolist()}, but the estimator has {classes.tolist()}."
        )
    positions = held_out.positions
    if positions is None:
        return
    if truth is None:
        raise ValueError("held_out refers to rows of X, but y, the classes of these rows, is not given.")
    if positions.size and positions.max() >= n:
        raise ValueError(f"held_out refers to row {positions.max()} of X, which has {n} rows.")
    if not np.array_equal(held_out.truth, truth[positions]):
        raise ValueError(
            "the classes in held_out differ from y: pass the X and y that held_out was made from."
        )


def _subsample(
    codes: Integers, proba: Floats | None, by_position: Integers, random: np.random.RandomState
) -> Integers:
    """Return an order of rows: rows with wrong labels first if `proba` is given, then each class in turn.

    Within these conditions the order is random. `by_position` sorts the rows by position, so that the result
    does not depend on the order of `codes`.
    """
    order: Integers = by_position[random.permutation(codes.size)]
    if (codes < 0).all():
        return order
    right = (
        np.zeros(order.size, dtype=np.bool_) if proba is None else proba.argmax(axis=1)[order] == codes[order]
    )
    order, right = order[np.argsort(right, kind="stable")], np.sort(right)
    turn = np.empty(order.size, dtype=np.int64)  # number of rows of the same class before each row
    for code in np.unique(codes):
        own = codes[order] == code
        turn[own] = np.arange(own.sum())
    return order[np.lexsort((turn, right))]

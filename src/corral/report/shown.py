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

# Factors of kernels in all explanations of a page: about 12 seconds of one core. If all rows take more, the
# page has fewer rows, but at least `_FEWEST_ROWS`.
_MOST_FACTORS = 1_200_000_000
_FEWEST_ROWS = 200

# Variables on a page: those that describe some class best.
MOST_VARIABLES = 200

# Values of rows that a page has room for: each takes at least 5 bytes with its evidence. More rows would be
# explained and then left out.
_MOST_VALUES = 200_000


class ScoredPredictions(NamedTuple):
    """Predictions of rows whose classes are known."""

    predictions: HeldOut
    unseen: bool  # whether the caller states that the estimator was not fitted to these rows
    on_page: bool  # whether they are predictions of the rows on the page, which can then be listed


class ShownPart(NamedTuple):
    """Rows on the page that one classifier labels and explains."""

    estimator: Any  # the fitted classifier
    X: Any  # the rows
    places: Integers  # (n_part,) places of these rows in `ShownRows`
    evaluated: EvaluatedRows | None  # the rows with their densities; None of a classifier without densities
    training_positions: Integers | None  # positions of its training rows in the table; None if it has all


class ShownRows(NamedTuple):
    """Rows on the page, in the order of the subsample: the first rows are kept if a page is too large."""

    scored: ScoredPredictions | None  # None if no classes are known
    parts: list[ShownPart]
    proba: Floats  # (n_shown, n_classes)
    positions: Integers  # (n_shown,) positions in the table
    names: list[Any]  # (n_shown,) labels of the index, or positions
    word: str  # name of the index, or "Row"
    truth: Integers  # (n_shown,) numbers of the classes, -1 if unknown
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

    Rows with wrong labels come first, if classes are known, then one row of each class in turn.
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
    """Number of rows that a page can explain in a short time and has room for, at most `max_rows`."""
    if isinstance(estimator, LSPClassifier):  # which explains nothing
        return max_rows
    affordable = _MOST_FACTORS // max(factors_per_row(estimator.model_), 1)
    n_values: int = min(estimator.n_features_in_, MOST_VARIABLES)
    return min(max_rows, max(affordable, _FEWEST_ROWS), _MOST_VALUES // n_values)


def _scored(
    estimator: Any, rows: Any, truth: NDArray[Any] | None, held_out: HeldOut | None
) -> tuple[ScoredPredictions | None, EvaluatedRows | None]:
    """Return predictions to score, and the densities of all rows if these had to be evaluated for them."""
    if held_out is not None and held_out.positions is not None:
        return ScoredPredictions(held_out, unseen=True, on_page=True), None
    # If the classes differ, these are other rows: the rows need not be predicted to find that out.
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
    """Refuse predictions of other classes, and positions or classes that do not agree with X and y."""
    if not np.array_equal(held_out.classes, classes):
        raise ValueError(
            f"held_out has the classes {held_out.classes.tolist()}, and the estimator {classes.tolist()}."
        )
    positions = held_out.positions
    if positions is None:
        return
    if truth is None:
        raise ValueError("held_out names rows of X, but y, their classes, is not given.")
    if positions.size and positions.max() >= n:
        raise ValueError(f"held_out names row {positions.max()} of X, which has {n} rows.")
    if not np.array_equal(held_out.truth, truth[positions]):
        raise ValueError(
            "held_out has other classes of its rows than y: pass the X and y that it was made from."
        )


def _subsample(
    codes: Integers, proba: Floats | None, by_position: Integers, random: np.random.RandomState
) -> Integers:
    """Order rows at random: wrong ones first, if probabilities are given, then one row of each class in turn.

    `by_position` sorts the rows by their position, so that the order of `codes` does not matter.
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

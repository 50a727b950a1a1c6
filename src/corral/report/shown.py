"""Which rows the page shows, and which classifier labels and explains each of them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corral.array_types import Floats, Integers
from corral.estimators.evaluated_rows import EvaluatedRows, evaluate_rows
from corral.estimators.lspc import LSPClassifier
from corral.estimators.pipelines import last_step, rows_of_last_step
from corral.estimators.tables import UnknownLevelsWarning
from corral.estimators.validation import check_known_labels, index_name, row_names
from corral.evaluation.held_out import HeldOut, take_rows
from corral.evidence.explainers import factors_per_row

# Factors of kernels in all explanations of a page: about 12 seconds of one core. Of models that take more,
# fewer rows are browsed, but no fewer than this.
_MOST_FACTORS = 1_200_000_000
_FEWEST_ROWS = 200

# Variables on a page: those that describe some class best.
MOST_VARIABLES = 200

# Values of rows that a page has room for: they and their evidence take 5 bytes each at least. Rows beyond
# would be explained in vain.
_MOST_VALUES = 200_000


class Judged(NamedTuple):
    """Predictions whose truth is known."""

    predictions: HeldOut  # what was said of rows, and their labels
    unseen: bool  # whether these rows are new to the estimator, as they claim
    on_page: bool  # whether they are the estimator's own, of the rows on the page, so that these can be shown


class Judge(NamedTuple):
    """A classifier that labels and explains rows on the page."""

    estimator: Any  # the classifier, fitted
    X: Any  # the rows
    # (n_rows,) which of the rows on the page they are, in the order in which these were drawn
    shown: Integers
    # the rows with their densities; None if the classifier has none and explains nothing
    evaluated: EvaluatedRows | None
    # positions among all rows of its training rows, if it has learnt from some of them only
    learnt_from: Integers | None


class Shown(NamedTuple):
    """Rows that can be browsed, in the order in which they were drawn."""

    judged: Judged | None  # predictions whose truth is known, if there are any
    judges: list[Judge]  # who labels and explains which of the rows
    proba: Floats  # (n_shown, n_classes) their probabilities
    order: Integers  # (n_shown,) their positions among all rows
    names: list[Any]  # (n_shown,) what they are called
    word: str  # what such a name names, "Row" if that has no name
    truth: Integers  # (n_shown,) numbers of their classes, -1 if they are not known
    n_rows: int  # how many rows could be shown


def choose_rows(
    estimator: Any,
    X: Any,
    y: ArrayLike | None,
    held_out: HeldOut | None,
    max_rows: int,
    random: np.random.RandomState,
) -> Shown:
    """Choose rows for the page of a classifier or a pipeline, and find predictions whose truth is known.

    Rows with wrong labels come first, as far as they are known, then classes in turns.
    """
    last, rows = last_step(estimator), rows_of_last_step(estimator, X)
    truth = None if y is None else check_known_labels(y, len(rows), last.classes_)
    if held_out is not None:
        _check_held_out(held_out, truth, len(rows), last.classes_)
    judged, evaluated = _judged(last, rows, truth, held_out)
    positions = np.arange(len(rows))
    if held_out is not None and held_out.positions is not None:
        positions = held_out.positions
    codes = np.full(len(rows), -1) if truth is None else np.searchsorted(last.classes_, truth)
    known = judged.predictions.proba if judged is not None and judged.on_page else None
    most = affordable_rows(last, max_rows)
    chosen = _draw(codes[positions], known, np.argsort(positions), random)[:most]
    order = positions[chosen]
    if held_out is not None and held_out.parts:
        judges = _judges_of_parts(X, held_out, order)
    else:
        some = take_rows(rows, order)
        of_some = _evaluated(last, some) if evaluated is None else evaluated.take(order)
        judges = [Judge(last, some, np.arange(order.size), of_some, None)]
    names = row_names(X)
    return Shown(
        judged,
        judges,
        _proba(last, judges[0].X, judges[0].evaluated) if known is None else known[chosen],
        order,
        order.tolist() if names is None else names[order].tolist(),
        "Row" if names is None else index_name(X) or "Row",
        codes[order],
        positions.size,
    )


def affordable_rows(estimator: Any, max_rows: int) -> int:
    """How many rows a page can explain in a short time, at most `max_rows`."""
    if isinstance(estimator, LSPClassifier):  # which explains nothing
        return max_rows
    affordable = _MOST_FACTORS // max(factors_per_row(estimator.model_), 1)
    n_values = min(estimator.n_features_in_, MOST_VARIABLES)
    return min(max_rows, max(affordable, _FEWEST_ROWS), _MOST_VALUES // n_values)


def _judged(
    estimator: Any, rows: Any, truth: NDArray[Any] | None, held_out: HeldOut | None
) -> tuple[Judged | None, EvaluatedRows | None]:
    """Find predictions whose truth is known, and the densities of all rows if these had to be evaluated."""
    if held_out is not None and held_out.positions is not None:
        return Judged(held_out, unseen=True, on_page=True), None
    # Other labels tell without a prediction of all rows, which may take long.
    if truth is None or (held_out is not None and not np.array_equal(held_out.truth, truth)):
        return None if held_out is None else Judged(held_out, unseen=True, on_page=False), None
    evaluated = _evaluated(estimator, rows)
    proba = _proba(estimator, rows, evaluated)
    predictions = HeldOut(estimator.classes_, truth, proba) if held_out is None else held_out
    on_page = np.array_equal(predictions.proba, proba)
    return Judged(predictions, held_out is not None, on_page), evaluated


def _evaluated(estimator: Any, rows: Any) -> EvaluatedRows | None:
    """Rows with their densities, or None if the classifier has none."""
    return None if isinstance(estimator, LSPClassifier) else evaluate_rows(estimator, rows)


def _proba(estimator: Any, rows: Any, evaluated: EvaluatedRows | None) -> Floats:
    proba: Floats = estimator.predict_proba(rows) if evaluated is None else evaluated.proba
    return proba


def _judges_of_parts(X: Any, held_out: HeldOut, order: Integers) -> list[Judge]:
    """The classifiers that have not seen the rows that are shown."""
    judges = []
    for part in held_out.parts:
        shown = np.flatnonzero(np.isin(order, part.rows))
        if not shown.size:
            continue
        estimator = last_step(part.estimator)
        rows = rows_of_last_step(part.estimator, take_rows(X, order[shown]))
        with warnings.catch_warnings():
            if part.learnt_from is not None:  # categories that only rows left out have, as new rows may, too
                warnings.simplefilter("ignore", UnknownLevelsWarning)
            evaluated = _evaluated(estimator, rows)
        judges.append(Judge(estimator, rows, shown, evaluated, part.learnt_from))
    return judges


def _check_held_out(held_out: HeldOut, truth: NDArray[Any] | None, n: int, classes: NDArray[Any]) -> None:
    """Refuse predictions of other classes, and rows that were held out, but are not those on the page."""
    if not np.array_equal(held_out.classes, classes):
        raise ValueError(
            f"held_out has the classes {held_out.classes.tolist()}, and the estimator {classes.tolist()}."
        )
    positions = held_out.positions
    if positions is None:
        return
    if truth is None:
        raise ValueError("held_out names rows of X, and y, their labels, is not given.")
    if positions.size and positions.max() >= n:
        raise ValueError(f"held_out names row {positions.max()} of X, which has {n} rows.")
    if not np.array_equal(held_out.truth, truth[positions]):
        raise ValueError(
            "held_out has other labels of its rows than y: hand over the X and y it was made of."
        )


def _draw(
    codes: Integers, proba: Floats | None, in_order: Integers, random: np.random.RandomState
) -> Integers:
    """Rows in random order: wrong ones first, as far as probabilities are known, then classes in turns.

    `in_order` sorts the rows by their position, so that the order of `codes` does not matter.
    """
    order: Integers = in_order[random.permutation(codes.size)]
    if (codes < 0).all():
        return order
    right = (
        np.zeros(order.size, dtype=np.bool_) if proba is None else proba.argmax(axis=1)[order] == codes[order]
    )
    order, right = order[np.argsort(right, kind="stable")], np.sort(right)
    turn = np.empty(order.size, dtype=np.int64)  # how many rows of its class come before each
    for code in np.unique(codes):
        of_class = np.flatnonzero(codes[order] == code)
        turn[of_class] = np.arange(of_class.size)
    return order[np.lexsort((turn, right))]

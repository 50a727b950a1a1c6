"""Training rows in a model file: the rows, their units, and what marks each class."""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral._core.contrast import Contrast
from corral._core.model import LocalModel
from corral._core.pool import PoolModel
from corral._core.rows import LabelledRows, TrainingRows
from corral._core.scale import Scale
from corral._core.settings import Floats, Integers
from corral._persist.values import State, check_size_of_texts

# Bounds that every fitted model keeps; within them no square of a distance over a bandwidth overflows.
SMALLEST = float(np.finfo(np.float64).tiny)
BANDWIDTHS = (1e-21, 1e11)


def pack_scale(scale: Scale) -> dict[str, Any]:
    """Units of columns, with the knots of those that are ranks."""
    knots = None
    if scale.knots is not None:
        values, ranks = zip(*(of_column or (None, None) for of_column in scale.knots), strict=True)
        knots = {"values": list(values), "ranks": list(ranks)}
    return {"center": scale.center, "half_width": scale.half_width, "knots": knots}


def restore_scale(state: State, d: int, largest_rank: float = 1.0) -> Scale:
    """Restore units; ranks, or scores made of them, are at most `largest_rank`."""
    knots = None
    if "knots" in state:
        part = state.part("knots")
        knots = tuple(
            _restore_knots(x, ranks, largest_rank) if "values" in x else None
            for x, ranks in zip(part.arrays("values", d), part.arrays("ranks", d), strict=True)
        )
    return Scale(state.floats("center", (d,)), state.floats("half_width", (d,), SMALLEST), knots)


def _restore_knots(values: State, ranks: State, largest_rank: float) -> tuple[Floats, Floats]:
    """Distinct values of a column, and what each of them becomes."""
    x = values.floats("values", (None,))
    r = ranks.floats("ranks", (x.size,), min(0.0, 1.0 - largest_rank), largest_rank)
    if x.size < 1 or any((np.diff(rising) <= 0.0).any() for rising in (x, r)):
        raise ValueError("knots do not rise")
    return x, r


def pack_rows(model: LocalModel) -> dict[str, Any]:
    """Training rows, their classes, and what marks each class."""
    X, y, weights, levels, groups = model.training
    return {
        "X": X,
        "codes": np.searchsorted(model.labels, y),
        "weights": weights,
        "levels": levels,
        "groups": groups,
        "copies": model.data.copies,
        "classes_": model.labels,
        "class_prior_": model.prior,
        "contrast": pack_contrast(model.learnt_contrast),
    }


def restore_training(
    state: State, d: int, min_effect: float, known_levels: Integers | None
) -> dict[str, Any]:
    """Restore the same, as arguments of a model; `known_levels` are the numbers of levels by the encoding."""
    classes = state.labels("classes_")
    X = state.floats_or_nan("X", (None, d))
    weights = state.floats("weights", (len(X),), 0.0) if "weights" in state else None
    y = _labels_of_rows(classes, state.integers("codes", (len(X),), 0, classes.size - 1))
    levels = restore_levels(state, X, known_levels)
    groups = state.integers("groups", (len(X),), 0, sys.maxsize) if "groups" in state else None
    training = TrainingRows(X, y, weights, levels, groups)
    data = LabelledRows.sort(training, classes, find_copies=partial(_restore_copies, state))
    shape = classes.size, d
    return {
        "labels": data.labels,
        "counts": data.counts,
        "prior": _restore_prior(state, classes.size),
        "n_copies": data.n_copies,
        "training": training,
        "data": data,
        "min_effect": min_effect,
        "learnt_contrast": restore_contrast(state.part("contrast"), *shape) if "contrast" in state else None,
    }


def _restore_copies(state: State, X: Floats, codes: Integers) -> Integers | None:
    """Numbers that copies of rows share, None without any; they must be copies."""
    if "copies" not in state:
        return None
    copies = state.integers("copies", (len(X),), 0, len(X) - 1)
    _, first, which = np.unique(copies, return_index=True, return_inverse=True)
    if not np.array_equal(X[first][which], X, equal_nan=True):
        raise ValueError("copies are not copies")
    return copies


def pack_kept_rows(model: PoolModel) -> dict[str, Any]:
    """Rows that are kept of a model whose classes are thinned: those behind kernels, and those held out."""
    rows = model.compared_rows
    return {
        "X": rows.X,
        "codes": rows.codes,
        "weights": rows.weights,
        "numbers": rows.numbers,
        "units": rows.units,
        "levels": rows.levels,
        "grouped": rows.grouped,
        "class_count_": model.counts,
        "n_copies_": model.n_copies,
        "classes_": model.labels,
        "class_prior_": model.prior,
        "contrast": pack_contrast(model.learnt_contrast),
    }


def restore_kept_rows(
    state: State, d: int, min_effect: float, known_levels: Integers | None
) -> tuple[dict[str, Any], LabelledRows]:
    """Restore the same, as arguments of a model but for its data, and all rows together."""
    classes = state.labels("classes_")
    X = state.floats_or_nan("X", (None, d))
    n = len(X)
    levels = restore_levels(state, X, known_levels)
    rows = LabelledRows(
        X,
        state.integers("codes", (n,), 0, classes.size - 1),
        state.floats("weights", (n,), SMALLEST, 1.0) if "weights" in state else None,
        classes,
        state.floats("class_count_", (classes.size,), 0.0),
        state.integers("numbers", (n,), 0, sys.maxsize),
        state.integers("units", (n,), 0, sys.maxsize),
        None,
        levels,
        state.boolean("grouped"),
    )
    if np.unique(rows.numbers).size != n:
        raise ValueError("numbers are not different")
    arguments = {
        "labels": classes,
        "counts": rows.counts,
        "prior": _restore_prior(state, classes.size),
        "n_copies": state.integer("n_copies_", 0, sys.maxsize),
        "training": TrainingRows(
            X,
            _labels_of_rows(classes, rows.codes),
            rows.weights,
            levels,
            rows.units if rows.grouped else None,
        ),
        "min_effect": min_effect,
        "learnt_contrast": restore_contrast(state.part("contrast"), classes.size, d),
    }
    return arguments, rows


def _restore_prior(state: State, n_classes: int) -> Floats:
    prior = state.floats("class_prior_", (n_classes,), 0.0, 1.0)
    if abs(prior.sum() - 1.0) > 1e-8:
        raise ValueError("class_prior_ does not sum to 1")
    return prior


def _labels_of_rows(classes: NDArray[Any], codes: Integers) -> NDArray[Any]:
    """The labels (n_rows,) of rows; refused if they would be far larger than the file."""
    if classes.dtype.kind == "U":
        check_size_of_texts("classes_", codes.size, classes.itemsize)
    labels: NDArray[Any] = classes[codes]
    return labels


def restore_levels(state: State, X: Floats, known_levels: Integers | None) -> Integers | None:
    """Restore how many levels each column has, None if no column has any.

    Arrays of these lengths are made by predictions, so that the numbers must be those of the encoding, which
    lists the levels; and columns of levels must hold nothing but their numbers.
    """
    if "levels" not in state:
        if known_levels is not None:
            raise ValueError("levels are missing")
        return None
    levels = state.integers("levels", (X.shape[1],), 0, sys.maxsize)
    if known_levels is None or not np.array_equal(levels, known_levels):
        raise ValueError("levels are not as many as the encoding has")
    numbers = np.where(np.isnan(X), 0.0, X)[:, levels > 0]
    if (numbers < 0.0).any() or (numbers >= levels[levels > 0]).any() or (numbers % 1.0 != 0.0).any():
        raise ValueError("X holds something else than numbers of levels")
    return levels


_DIRECTIONS = np.array(["", "high", "low", "narrow", "shape", "wide"])


def pack_contrast(contrast: Contrast | None) -> dict[str, Any] | None:
    """What sets classes apart, with directions as numbers."""
    if contrast is None:
        return None
    kept = {of.name: getattr(contrast, of.name) for of in fields(Contrast)}
    return kept | {"direction": np.searchsorted(_DIRECTIONS, contrast.direction)}


def restore_contrast(part: State, k: int, d: int) -> Contrast:
    """Restore what sets classes apart; most of its arrays have one number for each class and variable."""
    arrays: dict[str, Any] = {
        "markers": part.bools("markers", (k, d)),
        "background": part.bools("background", (k, d)),
        "direction": _DIRECTIONS[part.integers("direction", (k, d), 0, _DIRECTIONS.size - 1)],
        "quartiles": part.floats_or_nan("quartiles", (2, k, d)),
        "background_quartiles": part.floats_or_nan("background_quartiles", (2, k, d)),
        "n_values": part.integers("n_values", (d,), 0, sys.maxsize),
    }
    names = [of.name for of in fields(Contrast) if of.name not in arrays]
    # A class without rows has no typical value.
    arrays.update({name: part.floats_or_nan(name, (k, d)) for name in names})
    return Contrast(**arrays)


def restore_grid(state: State) -> Floats:
    """The grid of bandwidths as the file has it: parameters may have been set since the fit."""
    grid = state.floats("h", (None,), *BANDWIDTHS)
    if grid.size < 1 or (np.diff(grid) >= 0.0).any():
        raise ValueError("h does not fall")
    return grid

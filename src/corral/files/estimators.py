"""What is kept of each estimator in a model file, and how it is put together again from checked values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from corral.data.tiles import AnyRows, ClassRows, GeneralRows
from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.lspc import LSPClassifier
from corral.estimators.marker_selector import MarkerSelector
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.rodeo_density import RodeoDensity
from corral.estimators.rodeo_selector import RodeoSelector
from corral.estimators.validation import check_choice, check_rodeo, feature_names
from corral.files.params import (
    MOST_NAMED_ROWS,
    construct,
    pack_encoding,
    params_of_fit,
    set_encoding,
    set_features,
    set_na_values,
    set_row_names,
)
from corral.files.pool import pack_search, restore_search
from corral.files.rodeo import pack_classifier, restore_classifier
from corral.files.training_rows import (
    BANDWIDTHS,
    SMALLEST,
    pack_contrast,
    pack_scale,
    restore_contrast,
    restore_grid,
    restore_levels,
    restore_scale,
)
from corral.files.values import State, positive
from corral.rodeo.density import ClassDensity, DensityPlan

# Within it no sum of products of coefficients and kernels overflows.
_LARGEST_COEFFICIENT = 1e150

# Only where there was something to choose.
_CHOSEN = ("cv_results_", "best_index_", "best_score_")


def _pack_density(estimator: RodeoDensity) -> dict[str, Any]:
    rows = estimator.density_.rows
    return {
        "rows": rows.all(),
        "weights": rows.weights,
        "levels": estimator.encoding_.counts,
        "h": estimator.density_.grid,
        "n_copies_": estimator.n_copies_,
        "scale": pack_scale(estimator.scale_),
    }


def _restore_rodeo_density(estimator: RodeoDensity, state: State, d: int) -> None:
    check_choice("scale", estimator.scale, ("range", "standard", None))
    estimator.settings_ = check_rodeo(estimator.update, estimator.beta, estimator.c0, estimator.min_bandwidth)
    rows = state.floats_or_nan("rows", (None, d))
    if len(rows) < 1:
        raise ValueError("rows are missing")
    state.within("rows", -1e100, 1e100)
    weights = state.floats("weights", (len(rows),), SMALLEST) if "weights" in state else None
    arranged: AnyRows
    levels = restore_levels(state, rows, estimator.encoding_.counts)
    if levels is not None or np.isnan(rows).any():
        counts = np.zeros(d, dtype=np.int64) if levels is None else levels
        arranged = GeneralRows.arrange(rows, weights, counts, np.arange(len(rows)))
    else:
        arranged = ClassRows.arrange(rows, weights)
    scale = restore_scale(state.part("scale"), d)
    if scale.knots is not None:
        raise ValueError("the scale is not one of a density")
    estimator.scale_ = scale
    estimator.n_copies_ = state.integer("n_copies_", 0, sys.maxsize)
    estimator.density_ = ClassDensity(arranged, restore_grid(state), DensityPlan(np.arange(d)))


def _pack_selector(model: RodeoSelector) -> dict[str, Any]:
    return {name: getattr(model, name) for name in ("classes_", "relevant_", "bandwidths_", "zscores_")}


def _restore_selector(model: RodeoSelector, state: State, d: int) -> None:
    model.classes_ = state.labels("classes_")
    k = model.classes_.size
    model.relevant_ = state.bools("relevant_", (k, d))
    model.bandwidths_ = state.floats("bandwidths_", (k, d), *BANDWIDTHS)
    model.zscores_ = state.floats("zscores_", (k, d))


def _pack_marker_selector(model: MarkerSelector) -> dict[str, Any]:
    return {
        "classes_": model.classes_,
        "markers_": model.markers_,
        "contrast": pack_contrast(model.contrast_),
        "gap_contrast": pack_contrast(model.gap_contrast_),
    }


def _restore_marker_selector(model: MarkerSelector, state: State, d: int) -> None:
    model.classes_ = state.labels("classes_")
    k = model.classes_.size
    model.markers_ = state.bools("markers_", (k, d))
    model.contrast_ = restore_contrast(state.part("contrast"), k, d)
    gaps = "gap_contrast" in state
    model.gap_contrast_ = restore_contrast(state.part("gap_contrast"), k, d) if gaps else None


def _pack_lspc(model: LSPClassifier) -> dict[str, Any]:
    learnt = ("classes_", "class_count_", "centers_", "dual_coef_", "best_params_", *_CHOSEN)
    return {
        "scale": pack_scale(model.scale_),
        **{name: getattr(model, name) for name in learnt if hasattr(model, name)},
    }


def _restore_lspc(model: LSPClassifier, state: State, d: int) -> None:
    model.check_parameters()
    model.classes_ = state.labels("classes_")
    k = model.classes_.size
    model.class_count_ = state.floats("class_count_", (k,), 0.0)
    model.centers_ = state.floats("centers_", (None, d), -1e100, 1e100)
    model.dual_coef_ = state.floats(
        "dual_coef_", (len(model.centers_), k), -_LARGEST_COEFFICIENT, _LARGEST_COEFFICIENT
    )
    chosen = state.part("best_params_")
    model.best_params_ = {name: chosen.number(name, 1e-10, 1e10) for name in ("sigma", "alpha")}
    model.scale_ = restore_scale(state.part("scale"), d)
    if "cv_results_" in state:
        model.cv_results_ = state.columns("cv_results_")
        n_tried = len(next(iter(model.cv_results_.values())))
        model.best_index_ = state.integer("best_index_", 0, n_tried - 1)
        model.best_score_ = state.number("best_score_", 0.0, 1.0)


class Kind(NamedTuple):
    """An estimator that files can hold.

    Attributes
    ----------
    type : its class.
    pack : gives what has been learnt, as values that `values.encode` takes.
    restore : checks such values, and the parameters, and sets them; is told the number of variables.
    by_variable : paths to an array with a number for each variable; a file has one of them.
    """

    type: type[BaseEstimator]
    pack: Callable[[Any], dict[str, Any]]
    restore: Callable[[Any, State, int], None]
    by_variable: tuple[str, ...]


KINDS = {
    kind.type.__name__: kind
    for kind in (
        Kind(RodeoClassifier, pack_classifier, restore_classifier, ("relevant_",)),
        Kind(
            CorralClassifier,
            pack_search,
            restore_search,
            ("rows/contrast/markers", "kept_rows/contrast/markers"),
        ),
        Kind(RodeoDensity, _pack_density, _restore_rodeo_density, ("rows",)),
        Kind(RodeoSelector, _pack_selector, _restore_selector, ("relevant_",)),
        Kind(MarkerSelector, _pack_marker_selector, _restore_marker_selector, ("markers_",)),
        Kind(LSPClassifier, _pack_lspc, _restore_lspc, ("centers_",)),
    )
}


def pack_estimator(estimator: Any) -> dict[str, Any]:
    """All that is kept of one of our estimators, which must be fitted; another one is refused."""
    kind = KINDS.get(type(estimator).__name__)
    if kind is None or type(estimator) is not kind.type:
        local = "; call its to_local() first" if hasattr(estimator, "to_local") else ""
        raise TypeError(f"a model file holds {' or '.join(KINDS)}, not {type(estimator).__name__}{local}.")
    check_is_fitted(estimator, msg="%(name)s is not fitted: call fit before saving it.")
    packed = {
        "estimator": type(estimator).__name__,
        "params": params_of_fit(estimator),
        "n_features_in_": estimator.n_features_in_,
        "feature_names_in_": getattr(estimator, "feature_names_in_", np.empty(0)).tolist() or None,
        "state": kind.pack(estimator),
    }
    if hasattr(estimator, "encoding_"):
        encoding = pack_encoding(estimator.encoding_, feature_names(estimator))
        if encoding is not None:
            packed["encoding"] = encoding
    thinned = getattr(getattr(estimator, "model_", None), "thinning", None) is not None
    if hasattr(estimator, "row_names_in_") and not (thinned and estimator.model_.n_rows > MOST_NAMED_ROWS):
        names = estimator.row_names_in_
        packed["row_names"] = {
            "column": estimator.row_names_column_,
            "names": (names[estimator.model_.compared_rows.numbers] if thinned else names).tolist(),
        }
    if hasattr(estimator, "na_values_"):
        packed["na_values"] = list(estimator.na_values_)
    return packed


def restore_estimator(packed: dict[str, Any]) -> Any:
    """Restore what `pack_estimator` has packed from values that it checks."""
    kind = KINDS[packed["estimator"]]
    estimator = construct(kind.type, packed["params"])
    d, state = positive(packed["n_features_in_"]), State(packed["state"])
    if d != state.n_columns(*kind.by_variable):  # before anything of this length is made
        raise ValueError(f"n_features_in_ is {d}, and the arrays have another number of columns")
    set_features(estimator, d, packed["feature_names_in_"])
    if kind.type is not LSPClassifier:
        set_encoding(estimator, d, packed.get("encoding"))
    kind.restore(estimator, state, d)
    if "row_names" in packed:
        set_row_names(estimator, packed["row_names"]["column"], packed["row_names"]["names"])
    if "na_values" in packed:
        set_na_values(estimator, packed["na_values"])
    return estimator

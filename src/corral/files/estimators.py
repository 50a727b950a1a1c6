"""What a model file contains of an estimator: parameters, and the annotated fitted attributes."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.lspc import LSPClassifier
from corral.estimators.marker_selector import MarkerSelector
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.rodeo_density import RodeoDensity
from corral.estimators.rodeo_selector import RodeoSelector
from corral.estimators.validation import feature_names
from corral.files.codec import build, check_keys
from corral.files.values import Arrays

KINDS: dict[str, type[BaseEstimator]] = {
    kind.__name__: kind
    for kind in (
        RodeoClassifier,
        CorralClassifier,
        RodeoDensity,
        RodeoSelector,
        MarkerSelector,
        LSPClassifier,
    )
}

# A model with compressed classes contains only some training rows, but its array of row names has an element
# for every training row. For larger tables, names are not saved: otherwise a forged file with a huge number
# of rows could exhaust the memory.
_MOST_NAMED_ROWS = 2**24

# Parameters that depend on the machine, not on the model.
_NOT_KEPT = ("n_jobs", "verbose")


def pack_estimator(estimator: Any) -> dict[str, Any]:
    """Return the content of a model file for a fitted estimator; raise TypeError for any other object."""
    name = type(estimator).__name__
    if KINDS.get(name) is not type(estimator):
        local = "; call its to_local() first" if hasattr(estimator, "to_local") else ""
        raise TypeError(f"a model file can contain {' or '.join(KINDS)}, not {name}{local}.")
    check_is_fitted(estimator, msg="%(name)s is not fitted: call fit before saving it.")
    _refuse_strange_categories(estimator)
    learnt = vars(estimator)
    return {
        "estimator": name,
        "params": _params_of_fit(estimator),
        "n_features_in_": estimator.n_features_in_,
        "feature_names_in_": getattr(estimator, "feature_names_in_", np.empty(0)).tolist() or None,
        "row_names": _pack_row_names(estimator),
        "state": {name: learnt[name] for name in _fitted_attributes(type(estimator)) if name in learnt},
    }


def _refuse_strange_categories(estimator: Any) -> None:
    """Raise ValueError if a category is neither text nor a number."""
    if not hasattr(estimator, "encoding_"):  # an estimator that accepts only numbers
        return
    for name, categories in zip(feature_names(estimator), estimator.encoding_.categories, strict=True):
        for category in categories or ():
            if not isinstance(category, str | int | float):
                raise ValueError(
                    f"column {name!r} has categories of type {type(category).__name__}, which cannot be "
                    "written "
                    "to a model file: convert them to text before the fit."
                )


def restore_estimator(packed: dict[str, Any], arrays: Arrays) -> Any:
    """Restore an estimator from the JSON of `pack_estimator`, and check every value."""
    kind = KINDS[packed["estimator"]]
    params = build(dict[str, Any], packed["params"], arrays, "params")
    check_keys("params", params.keys(), _kept_params(kind()).keys())
    estimator: Any = kind(**params)
    hints, state = _fitted_attributes(kind), packed["state"]
    if not isinstance(state, dict) or state.keys() - hints.keys():
        raise ValueError(f"its state has attributes that a {kind.__name__} does not have")
    estimator.n_features_in_ = build(int, packed["n_features_in_"], arrays, "n_features_in_")
    for name, value in state.items():
        setattr(estimator, name, build(hints[name], value, arrays, name))
    estimator.__corral_validate__()
    if packed["feature_names_in_"] is not None:
        names = _names("feature_names_in_", packed["feature_names_in_"], estimator.n_features_in_)
        estimator.feature_names_in_ = names
    if packed["row_names"] is not None:
        _set_row_names(estimator, **packed["row_names"])
    return estimator


def _fitted_attributes(kind: Any) -> dict[str, Any]:
    """Return the annotations of the attributes that `fit` sets, except `n_features_in_`."""
    hints = get_type_hints(kind)
    names = [name for name in hints if name.endswith("_") and not name.startswith("_")]
    return {name: hints[name] for name in sorted(names) if name != "n_features_in_"}


# Parameters


def _kept_params(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters that are written to a file."""
    return {k: v for k, v in estimator.get_params(deep=False).items() if k not in _NOT_KEPT}


def _params_of_fit(estimator: Any) -> dict[str, Any]:
    """Return the parameters, with the values of the fit if the fitted model depends on the parameter.

    `set_params` after `fit` does not change the fitted model, so it must not change a restored model either.
    """
    params = _kept_params(estimator)
    model: Any = getattr(estimator, "density_", getattr(estimator, "model_", None))
    settings = _flat(getattr(model, "settings", None))
    if hasattr(model, "min_effect"):
        settings["min_effect"] = model.min_effect
    if settings.get("min_bandwidth", "auto") is None:
        settings["min_bandwidth"] = "auto"
    for name in params.keys() & settings.keys():
        if not np.array_equal(params[name], settings[name]):
            params[name] = settings[name]
    return params


def _flat(settings: Any) -> dict[str, Any]:
    """Return the fields of a settings dataclass, with nested dataclasses flattened."""
    flat: dict[str, Any] = {}
    for name, value in ({} if settings is None else vars(settings)).items():
        flat |= _flat(value) if is_dataclass(value) else {name: value}
    return flat


# Names


def _names(name: str, names: Any, n: int, kinds: tuple[type, ...] = (str,)) -> NDArray[Any]:
    if not isinstance(names, list) or len(names) != n or not all(type(each) in kinds for each in names):
        raise ValueError(f"{name} is not a list of {n} names")
    return np.array(names, dtype=object)


def _pack_row_names(estimator: Any) -> dict[str, Any] | None:
    """Return the names of the rows in the file, and the name of their column; None if rows have no names."""
    if not hasattr(estimator, "row_names_column_"):
        return None
    names, numbers = getattr(estimator, "row_names_in_", None), estimator.model_.kept_rows
    if names is None:  # the estimator has only the name of the column
        return {"column": estimator.row_names_column_, "names": None}
    if numbers is not None and estimator.model_.n_rows > _MOST_NAMED_ROWS:
        return None
    kept = names if numbers is None else names[numbers]
    return {"column": estimator.row_names_column_, "names": kept.tolist()}


def _set_row_names(estimator: Any, column: Any, names: Any) -> None:
    """Set the names of the rows; if `names` is None, set only the name of their column."""
    model = estimator.model_
    if names is None and isinstance(column, str):
        estimator.row_names_column_ = column
        return
    all_names = _names("row_names", names, len(model.training.X), (str, int))
    if not isinstance(column, str | None):
        raise ValueError("the column of row_names is not a text")
    if model.kept_rows is not None:  # the rows are in another order, even if all rows were kept
        if model.n_rows > _MOST_NAMED_ROWS:
            raise ValueError(
                f"it has row_names for a table of {model.n_rows} rows, which is too large for names"
            )
        kept, all_names = all_names, np.full(model.n_rows, "", dtype=object)
        all_names[model.kept_rows] = kept
    estimator.row_names_in_, estimator.row_names_column_ = all_names, column

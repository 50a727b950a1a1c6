"""Parameters, names and levels of variables, names of rows, and marks of gaps in a model file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from corral._core.model import FittedModel
from corral._core.pool import PoolModel
from corral._core.settings import RodeoSettings
from corral._estimators.density import RodeoDensity
from corral._estimators.encoding import Encoding
from corral._persist.values import State

# A compressed model has kept few of the rows, but an array has a place for the name of each training row. Of
# larger tables names are not kept, so that no forged file can ask for all the memory.
MOST_NAMED_ROWS = 2**24

# How a model is computed belongs to the machine it runs on, not to the model.
_NOT_KEPT = ("n_jobs", "verbose")


def kept_params(estimator: BaseEstimator) -> dict[str, Any]:
    """Parameters that belong to the model, not to the machine."""
    return {k: v for k, v in estimator.get_params(deep=False).items() if k not in _NOT_KEPT}


def params_of_fit(estimator: Any) -> dict[str, Any]:
    """The same of a fitted estimator: as they were in the fit, where what it has learnt depends on them.

    `set_params` changes no fitted model, and a model that is restored must not be changed by it either.
    """
    params, settings = kept_params(estimator), _settings_of_fit(estimator)
    changed = {
        name: value
        for name, value in settings.items()
        if name in params and not np.array_equal(params[name], value)
    }
    return params | changed


def _settings_of_fit(estimator: Any) -> dict[str, Any]:
    """What a fitted estimator knows of the parameters that it was fitted with."""
    model = getattr(estimator, "model_", None)
    if isinstance(model, PoolModel):
        return {"min_effect": model.min_effect}
    if isinstance(model, FittedModel):
        settings = {of.name: getattr(model.settings, of.name) for of in fields(model.settings)}
        return settings | _settings_of_rodeo(settings.pop("rodeo"))
    return _settings_of_rodeo(estimator.settings_) if isinstance(estimator, RodeoDensity) else {}


def _settings_of_rodeo(settings: RodeoSettings) -> dict[str, Any]:
    named = {of.name: getattr(settings, of.name) for of in fields(settings)}
    return named | {"min_bandwidth": "auto" if settings.min_bandwidth is None else settings.min_bandwidth}


def construct(kind: type[BaseEstimator], params: Any) -> Any:
    """Make an unfitted estimator; its parameters must be all that a file holds of one."""
    expected = kept_params(kind()).keys()
    if params.keys() - expected:
        raise ValueError(f"{kind.__name__} has no parameter {min(params.keys() - expected)!r}")
    if expected - params.keys():
        raise ValueError(f"params lack {min(expected - params.keys())!r}")
    return kind(**params)


def set_features(estimator: BaseEstimator, d: int, names: Any) -> None:
    """Set the number of variables, and their names if they have some."""
    estimator.n_features_in_ = d
    if names is None:
        return
    if not isinstance(names, list) or len(names) != d or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names_in_ is not a list of {d} names")
    estimator.feature_names_in_ = np.array(names, dtype=object)


def pack_encoding(encoding: Encoding, names: list[str]) -> list[dict[str, Any] | str | None] | None:
    """Levels of all columns, "empty" for those without any value; None if all columns hold numbers."""
    if all(levels is None for levels in encoding.levels) and not encoding.empty:
        return None
    for name, levels in zip(names, encoding.levels, strict=True):
        for level in levels or ():
            if not isinstance(level, str | int | float):
                raise ValueError(
                    f"a model file cannot hold levels of type {type(level).__name__}, which the column "
                    f"{name!r} has: make them text before the fit."
                )
    packed: list[dict[str, Any] | str | None] = [
        None if levels is None else {"levels": levels, "ordered": ordered}
        for levels, ordered in zip(encoding.levels, encoding.ordered.tolist(), strict=True)
    ]
    for j in encoding.empty:
        packed[j] = "empty"
    return packed


def set_encoding(estimator: Any, d: int, columns: Any) -> None:
    """Restore levels; files without any are of numbers."""
    if columns is None:
        estimator.encoding_ = Encoding.of_numbers(d)
        return
    if not isinstance(columns, list) or len(columns) != d:
        raise ValueError(f"encoding is not a list of {d} columns")
    levels: list[list[Any] | None] = []
    ordered = np.zeros(d, dtype=np.bool_)
    for j, column in enumerate(columns):
        if column is None or column == "empty":
            levels.append(None)
            continue
        state = State(column)
        listed = column["levels"]
        plain = isinstance(listed, list) and all(isinstance(level, str | int | float) for level in listed)
        if not plain or len(set(listed)) != len(listed):
            raise ValueError("levels are not different texts or numbers")
        levels.append(listed)
        ordered[j] = state.boolean("ordered")
    empty = frozenset(j for j, column in enumerate(columns) if column == "empty")
    estimator.encoding_ = Encoding(levels, ordered, empty)


def set_na_values(estimator: Any, texts: Any) -> None:
    """Restore what stood for a missing value in the file of the training table."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("na_values is not a list of texts")
    estimator.na_values_ = texts


def set_row_names(estimator: Any, column: Any, names: Any) -> None:
    """Restore names of rows, a list of those that a file has kept."""
    model = estimator.model_
    n = len(model.training.X)
    if not isinstance(names, list) or len(names) != n or not all(isinstance(name, str) for name in names):
        raise ValueError(f"row_names is not a list of {n} names")
    if not isinstance(column, str | None):
        raise ValueError("row_names has a column that is no text")
    of_rows = np.array(names, dtype=object)
    if getattr(model, "thinning", None) is not None:  # then rows are in another order, even if all are kept
        if model.n_rows > MOST_NAMED_ROWS:
            raise ValueError(f"row_names are given of a table of {model.n_rows} rows")
        kept, of_rows = of_rows, np.full(model.n_rows, "", dtype=object)
        of_rows[model.compared_rows.numbers] = kept
    for each in (estimator, *getattr(estimator, "members_", ())):
        each.row_names_in_ = of_rows
        each.row_names_column_ = column

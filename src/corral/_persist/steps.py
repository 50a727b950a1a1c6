"""Steps of pipelines in model files: transformers of scikit-learn that numbers and text describe.

A file holds their parameters and what they have learnt. A step is restored by a fit to a small table that is
made for it, by which scikit-learn checks the parameters and sets what is its own; then it gets what it had
learnt, by public names. What cannot be restored so is refused when it is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from corral._estimators.marker_selector import MarkerSelector
from corral._estimators.selector import RodeoSelector
from corral._persist.kinds import pack_estimator, restore_estimator
from corral._persist.params import check_names
from corral._persist.values import State, positive

# What stands in place of a transformer.
_WORDS = ("passthrough", "drop")


class _Learnt(NamedTuple):
    """What a transformer of single columns has learnt.

    Attributes
    ----------
    type : its class.
    numbers : names of attributes with one number for each column, or None for all of them.
    factors : those of them that are positive.
    """

    type: type[BaseEstimator]
    numbers: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()


_LEARNT = {
    learnt.type.__name__: learnt
    for learnt in (
        _Learnt(StandardScaler, ("mean_", "var_", "scale_"), ("scale_",)),
        _Learnt(MinMaxScaler, ("min_", "scale_", "data_min_", "data_max_", "data_range_"), ("scale_",)),
        _Learnt(MaxAbsScaler, ("scale_", "max_abs_"), ("scale_",)),
        _Learnt(RobustScaler, ("center_", "scale_"), ("scale_",)),
        _Learnt(SimpleImputer),  # statistics_
        _Learnt(OneHotEncoder),  # categories_
        _Learnt(OrdinalEncoder),
    )
}
_ENCODERS = (OneHotEncoder, OrdinalEncoder)

# Parameters with which a transformer learns more than is kept here.
_PLAIN = {"add_indicator": False, "min_frequency": None, "max_categories": None}

# How a transformer is computed belongs to the machine that it runs on.
_NOT_KEPT = ("n_jobs", "verbose", "copy", "transformers", "remainder")

# More columns than any table has: a forged file must not ask for all the memory.
_MOST_COLUMNS = 1_000_000
# And cells of the table by which an encoder is restored, with a row for each category of the longest list.
_MOST_CELLS = 20_000_000


# Writing


def pack_steps(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Pack the steps of a fitted pipeline before its last one, and the name of the last one."""
    before = [{"name": name, "step": _pack(step, name)} for name, step in pipeline.steps[:-1]]
    name, last = pipeline.steps[-1]
    inner = {"steps": pack_steps(last)} if isinstance(last, Pipeline) else {}
    return [*before, {"name": name, **inner}]


def _pack(step: Any, name: str) -> Any:
    """Pack a step, which may hold others; words stand for themselves."""
    if step is None or isinstance(step, str):
        return step or "passthrough"
    kind = type(step).__name__
    if type(step) is Pipeline:
        return {"kind": kind, "steps": [{"name": of, "step": _pack(each, of)} for of, each in step.steps]}
    if type(step) in (RodeoSelector, MarkerSelector):
        return {"kind": kind, **pack_estimator(step)}
    is_known = kind in _LEARNT and type(step) is _LEARNT[kind].type
    if not is_known and type(step) is not ColumnTransformer:
        known = ", ".join([*_LEARNT, RodeoSelector.__name__, MarkerSelector.__name__])
        raise TypeError(
            f"a model file cannot hold the step {name!r}, a {kind}: it holds {known}, and pipelines and "
            "ColumnTransformers of these; save the last step alone and prepare the rows yourself."
        )
    check_is_fitted(step, msg=f"the step {name!r} is not fitted: call fit before saving its pipeline.")
    for parameter, value in _PLAIN.items():
        given = getattr(step, parameter, value)
        if given is not value:
            raise ValueError(f"a model file cannot hold the step {name!r} with {parameter}={given!r}.")
    packed = {
        "kind": kind,
        "params": _other_params(step),
        "n_features_in_": step.n_features_in_,
        "feature_names_in_": getattr(step, "feature_names_in_", np.empty(0)).tolist() or None,
    }
    if isinstance(step, ColumnTransformer):
        return packed | _pack_columns(step)
    return packed | {"learnt": _learnt_by(step)}


def _other_params(step: Any) -> dict[str, Any]:
    """Parameters that are not the default ones."""
    unchanged = ColumnTransformer([]) if isinstance(step, ColumnTransformer) else type(step)()
    default = unchanged.get_params(deep=False)
    given = step.get_params(deep=False)
    return {
        name: value
        for name, value in given.items()
        if name not in _NOT_KEPT and not _is_same(value, default[name])
    }


def _is_same(value: Any, default: Any) -> bool:
    is_plain = isinstance(value, str | bool | int | float | tuple | None)
    return value is default or (is_plain and type(value) is type(default) and bool(value == default))


def _learnt_by(step: Any) -> dict[str, Any]:
    if isinstance(step, SimpleImputer):
        return {"statistics_": step.statistics_}
    if isinstance(step, _ENCODERS):
        return {"categories_": list(step.categories_)}
    return {name: getattr(step, name) for name in _LEARNT[type(step).__name__].numbers}


def _pack_columns(step: ColumnTransformer) -> dict[str, Any]:
    """Pack the transformers of columns; columns that a function has found are listed."""
    given = {name: transformer for name, transformer, _ in step.transformers} | {"remainder": step.remainder}
    parts = []
    for name, fitted, columns in step.transformers_:
        listed = None if name == "remainder" else _listed(columns, step)  # it is found again
        word = given[name] if isinstance(given[name], str) else None
        if listed == []:
            word = "drop"  # without columns it has not been fitted, and does nothing
        parts.append({"name": name, "columns": listed, "step": word or _pack(fitted, name)})
    remainder = step.remainder if isinstance(step.remainder, str) else "drop"
    return {"parts": parts, "remainder": remainder, "sparse_output_": bool(step.sparse_output_)}


def _listed(columns: Any, step: Any) -> Any:
    """Columns as a list of names, positions or choices; a single one as it is."""
    if isinstance(columns, str | int):
        return columns
    if not isinstance(columns, slice):
        return np.asarray(columns, dtype=object).tolist()
    ends = (columns.start, columns.stop)
    if not any(isinstance(end, str) for end in ends):
        return list(range(step.n_features_in_)[columns])
    names = step.feature_names_in_.tolist()
    first = 0 if columns.start is None else names.index(columns.start)
    last = len(names) - 1 if columns.stop is None else names.index(columns.stop)
    return names[first : last + 1 : columns.step]


# Reading


def restore_pipeline(packed: Any, last: Any, format_: int) -> Pipeline:
    """Put a pipeline together whose last step has been restored."""
    if not isinstance(packed, list) or not packed:
        raise ValueError("its steps are not a list")
    *before, named = (State(each, format_) for each in packed)
    steps = [(each.text("name"), _restore(each.anything("step"), format_)) for each in before]
    if "steps" in named:
        last = restore_pipeline(named.anything("steps"), last, format_)
    return _joined([*steps, (named.text("name"), last)])


def _joined(steps: list[tuple[str, Any]]) -> Pipeline:
    """Join fitted steps; where one knows names of columns, the one before it returns frames."""
    fitted = [step for _, step in steps if not isinstance(step, str)]
    for step, following in pairwise(fitted):
        if hasattr(following, "feature_names_in_"):
            step.set_output(transform="pandas")
    return Pipeline(steps)


def _restore(packed: Any, format_: int) -> Any:
    """Restore a fitted step, which may hold others."""
    if isinstance(packed, str):
        if packed not in _WORDS:
            raise ValueError(f"a step is {packed!r}")
        return packed
    state = State(packed, format_)
    kind = state.text("kind")
    if kind == Pipeline.__name__:
        inner = [State(each, format_) for each in state.anything("steps")]
        return _joined([(each.text("name"), _restore(each.anything("step"), format_)) for each in inner])
    if kind in (RodeoSelector.__name__, MarkerSelector.__name__):
        return restore_estimator(packed, format_)
    d, names = positive(packed["n_features_in_"]), packed["feature_names_in_"]
    if d > _MOST_COLUMNS:
        raise ValueError(f"a step has {d} columns")
    if names is not None:
        check_names(names, d)
    if kind == ColumnTransformer.__name__:
        return _restore_columns(state, d, names)
    if kind not in _LEARNT:
        raise ValueError(f"a step is a {kind}")
    step = _LEARNT[kind].type(**state.table("params"))
    if any(getattr(step, parameter, value) is not value for parameter, value in _PLAIN.items()):
        raise ValueError("a step has parameters that no file holds")
    learnt = _restore_learnt(step, state.part("learnt"), d)
    step.fit(_table(_examples(step, learnt, d), names))
    for name, value in learnt.items():
        setattr(step, name, value)
    return step


def _restore_learnt(step: Any, state: State, d: int) -> dict[str, Any]:
    """Check what a transformer of d columns has learnt."""
    if isinstance(step, SimpleImputer):
        return {"statistics_": state.items("statistics_", d)}
    if isinstance(step, _ENCODERS):
        return {"categories_": [each.items("categories_") for each in state.arrays("categories_", d)]}
    known = _LEARNT[type(step).__name__]
    for name in known.factors:
        if name in state:
            state.within(name, float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max))
    return {name: state.real(name, (d,)) if name in state else None for name in known.numbers}


def _examples(step: Any, learnt: dict[str, Any], d: int) -> list[NDArray[Any]]:
    """Columns of a table that the step can be fitted to; an encoder finds its categories in them."""
    if isinstance(step, _ENCODERS):
        longest = max(len(of_column) for of_column in learnt["categories_"])
        if longest * d > _MOST_CELLS:
            raise ValueError(f"a step has {longest} categories in one of {d} columns")
        return [np.resize(of_column, longest) for of_column in learnt["categories_"]]
    if isinstance(step, SimpleImputer) and learnt["statistics_"].dtype == object:
        return [np.array([value], dtype=object) for value in learnt["statistics_"]]
    return [np.zeros(1)] * d


def _table(columns: Sequence[NDArray[Any]], names: list[str] | None) -> Any:
    """A frame, or an array if columns have no names."""
    if names is None:
        return np.stack(columns, axis=1)

    import pandas as pd

    return pd.DataFrame(dict(enumerate(columns))).set_axis(names, axis=1)


def _restore_columns(state: State, d: int, names: list[str] | None) -> ColumnTransformer:
    """Restore a transformer of columns around its parts, which stay as they are in its fit."""
    parts = [State(part, state.format) for part in state.anything("parts")]
    steps = [(part.text("name"), _restore(part.anything("step"), state.format)) for part in parts]
    columns = [part.anything("columns") for part in parts]
    example: list[Any] = [0.0] * d
    taken: set[int] = set()
    for (_, step), listed in zip(steps, columns, strict=True):
        at = sorted(set(range(d)) - taken) if listed is None else _positions(listed, names, d)
        taken.update(at)
        for j, value in zip(at, _example_row(step, len(at)), strict=True):
            if isinstance(value, str) or value != 0.0:  # others may take the column as well
                example[j] = value

    def transformers(of_step: Any) -> dict[str, Any]:
        """Name the transformers, what remains apart from the others."""
        named = {name: step if isinstance(step, str) else of_step(step) for name, step in steps}
        remainder = named.pop("remainder", state.text("remainder"))
        listed = [
            (name, named[name], of) for (name, _), of in zip(steps, columns, strict=True) if name in named
        ]
        return {"transformers": listed, "remainder": remainder}

    restored = ColumnTransformer(**transformers(FrozenEstimator), **state.table("params"))
    restored.fit(_table([np.array([value]) for value in example], names))
    restored.transformers_ = [
        (name, fitted.estimator if isinstance(fitted, FrozenEstimator) else fitted, of)
        for name, fitted, of in restored.transformers_
    ]
    restored.sparse_output_ = state.boolean("sparse_output_")
    return restored.set_params(**transformers(clone))


def _positions(columns: Any, names: list[str] | None, d: int) -> list[int]:
    """Positions of columns that are named, numbered or chosen."""
    listed = columns if isinstance(columns, list) else [columns]
    if listed and all(isinstance(item, bool) for item in listed):
        return np.flatnonzero(listed).tolist()
    return [range(d)[item if isinstance(item, int) else (names or []).index(item)] for item in listed]


def _example_row(step: Any, d: int) -> list[Any]:
    """One value for each column that a fitted step can transform."""
    if isinstance(step, Pipeline):
        inner = [each for _, each in step.steps if not isinstance(each, str)]
        encoders = [each for each in inner if isinstance(each, _ENCODERS)]
        return _example_row([*encoders, *inner, "passthrough"][0], d)
    if isinstance(step, _ENCODERS):
        return [of_column[0] for of_column in step.categories_]
    if isinstance(step, SimpleImputer) and step.statistics_.dtype == object:
        return list(step.statistics_)
    return [0.0] * d

"""Columns of text, categories and booleans on a cluster: their levels, and partitions as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import delayed
from sklearn.utils import check_array

from corral.array_types import Floats
from corral.dask.reductions import compute
from corral.estimators.encoding import Encoding, columns_of_levels, names_of

# A column with more levels is an id, and would have to be held in one place.
_MOST_LEVELS = 10_000


def learn_encoding(X: Any, categorical: Any, client: Any) -> Encoding:
    """Learn the levels of all columns that have some, in one pass over these columns alone."""
    names = names_of(X, X.shape[1])
    dtypes = [X.dtype] * X.shape[1] if isinstance(X, da.Array) else list(X.dtypes)
    at = columns_of_levels(names, dtypes, categorical)
    if not at:
        return Encoding.of_numbers(len(names))
    for j in at:
        if _is_unknown(dtypes[j]):
            if dtypes[j].ordered:
                raise ValueError(
                    f"Column {names[j]!r} is ordered, but its categories are not known; make them known by "
                    f"X[{names[j]!r}].cat.as_known()."
                )
            dtypes[j] = "str"  # in the order of their values, as text
    part = X[:, at] if isinstance(X, da.Array) else X.iloc[:, at]
    blocks = part.to_delayed().ravel() if isinstance(X, da.Array) else part.to_delayed()
    held = compute([_held(block, [names[j] for j in at]) for block in blocks], client)
    present: list[set[Any] | None] = [None] * len(names)
    for k, j in enumerate(at):
        present[j] = set().union(*(of_part[k] for of_part in held))
        _refuse_many(names[j], present[j] or ())
    return Encoding.merged(names, dtypes, present)


def _is_unknown(dtype: Any) -> bool:
    """Whether it is that of a categorical of which dask does not know the categories."""
    return isinstance(dtype, pd.CategoricalDtype) and (
        dtype.categories is None or "__UNKNOWN_CATEGORIES__" in dtype.categories
    )


@delayed
def _held(block: Any, names: list[str]) -> list[set[Any]]:
    """Different values of each column of a partition, but for gaps."""
    found = []
    for name, column in zip(names, _columns(block), strict=True):
        values = pd.unique(column.dropna())
        if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
            values = np.asarray(values, dtype=np.float64)
        _refuse_many(name, values)
        found.append(set(values.tolist()))
    return found


def _refuse_many(name: str, levels: Any) -> None:
    if len(levels) > _MOST_LEVELS:
        raise ValueError(
            f"Column {name!r} holds more than {_MOST_LEVELS} levels: leave it out if it names "
            "rows, or merge some."
        )


def encode_part(X: Any, names: Sequence[str], encoding: Encoding) -> Floats:
    """Numbers (n_rows, n_features) of a partition, NaN for gaps."""
    numbers: Floats
    if all(levels is None for levels in encoding.levels):
        numbers = check_array(
            X, dtype=np.float64, ensure_min_samples=0, input_name="X", ensure_all_finite=False
        )
    else:
        numbers = np.empty(X.shape)
        for j, (column, levels) in enumerate(zip(_columns(X), encoding.levels, strict=True)):
            numbers[:, j] = (
                pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)
                if levels is None
                else _positions(column, levels)
            )
    for name, column in zip(names, numbers.T, strict=True):
        if np.isinf(column).any():
            raise ValueError(f"Column {name!r} holds an infinite value.")
    return numbers


def _positions(column: pd.Series, levels: list[Any]) -> Floats:
    """Where the values of a column stand among its levels; each value is looked up once."""
    codes, values = pd.factorize(column)
    position = {level: float(k) for k, level in enumerate(levels)}
    of_values = np.array([position[value] for value in values.tolist()] + [np.nan])
    found: Floats = of_values[codes]  # gaps have the code -1
    return found


def _columns(block: Any) -> list[pd.Series]:
    """The columns of a frame or an array."""
    frame = block if hasattr(block, "iloc") else pd.DataFrame(block)
    return [frame.iloc[:, j] for j in range(frame.shape[1])]

"""Find the categories of columns on a cluster, and encode partitions as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import delayed

from corral.array_types import Floats
from corral.dask.reductions import compute
from corral.data.dates import parse_dates
from corral.estimators.encoding import (
    Encoding,
    TableColumn,
    as_objects,
    columns_of,
    kind_of,
    names_of,
    positions_of,
    series_of,
)
from corral.estimators.tables import ColumnKindWarning
from corral.estimators.validation import warn_user

# A column with more categories probably contains ids, and the ids may not fit into the memory of this
# process.
_MOST_CATEGORIES = 10_000


def learn_encoding(X: Any, categorical: Any, client: Any) -> Encoding:
    """Find the categories of all columns that are not numbers or are listed in `categorical`, in one pass."""
    names = names_of(X, X.shape[1])
    dtypes = [X.dtype] * X.shape[1] if isinstance(X, da.Array) else list(X.dtypes)
    columns = [_without_rows(name, dtype) for name, dtype in zip(names, dtypes, strict=True)]
    named = positions_of(categorical, names)
    if categorical is None:
        for column, dtype in zip(columns, dtypes, strict=True):
            if column.kind != "number" and not pd.api.types.is_bool_dtype(dtype):
                raise ValueError(
                    f"Column {column.name!r} holds values of type {dtype}, but categorical_features=None "
                    "asks for numbers."
                )
        return Encoding.all_numbers(len(names))
    positions = [j for j, column in enumerate(columns) if j in named or column.kind != "number"]
    if not positions:
        return Encoding.all_numbers(len(names))
    part = X[:, positions] if isinstance(X, da.Array) else X.iloc[:, positions]
    blocks = part.to_delayed().ravel() if isinstance(X, da.Array) else part.to_delayed()
    values = compute([_values(block, [names[j] for j in positions]) for block in blocks], client)
    for k, j in enumerate(positions):
        present = set().union(*(block_values[k] for block_values in values))
        _refuse_many(names[j], present)
        kind = "categorical" if columns[j].kind == "number" else columns[j].kind
        columns[j] = replace(columns[j], kind=kind, cells=as_objects(list(present)))
        if j not in named and columns[j].is_text and parse_dates(present) is not None:
            warn_user(
                f"Column {names[j]!r} holds dates as text. DaskCorralClassifier treats each date as a "
                "category; list the column in categorical_features if this is right. CorralClassifier "
                "derives variables from dates.",
                ColumnKindWarning,
            )
    return Encoding.learn(columns, range(len(columns)))


def _without_rows(name: str, dtype: Any) -> TableColumn:
    """Make a column of the given type without rows; raise ValueError if the type is not supported."""
    if isinstance(dtype, pd.CategoricalDtype) and (
        dtype.categories is None or "__UNKNOWN_CATEGORIES__" in dtype.categories
    ):
        if dtype.ordered:
            raise ValueError(
                f"Column {name!r} is ordered, but its categories are not known to dask; call "
                f"X[{name!r}].cat.as_known()."
            )
        # Text has its categories in alphabetical order. In pandas before version 3, "str" means objects.
        dtype = "string"
    frame = pd.DataFrame({name: pd.Series(dtype=dtype)})
    kind = kind_of(*series_of(frame))
    if kind == "dates":
        raise ValueError(
            f"Column {name!r} holds dates, which DaskCorralClassifier does not support: leave the column "
            "out, or replace it by numbers, such as days and months."
        )
    if kind in ("objects", "other"):
        raise ValueError(f"Column {name!r} holds values of type {dtype}; give numbers or text instead.")
    return columns_of(frame)[0]


@delayed
def _values(block: Any, names: list[str]) -> list[set[Any]]:
    """Return the distinct values of each column of a partition, without missing values."""
    values = []
    for name, column in zip(names, columns_of(block), strict=True):
        _refuse_many(name, column.factorized[1])
        values.append(set(column.factorized[1]))
    return values


def _refuse_many(name: str, categories: Any) -> None:
    if len(categories) > _MOST_CATEGORIES:
        raise ValueError(
            f"Column {name!r} holds more than {_MOST_CATEGORIES} categories: leave the column out if "
            "it identifies rows, or merge categories."
        )


def encode_part(X: Any, names: Sequence[str], encoding: Encoding) -> Floats:
    """Encode a partition as numbers (n_rows, n_features), NaN for missing values."""
    columns = columns_of(X if hasattr(X, "iloc") else np.asarray(X))
    named = [replace(column, name=name) for column, name in zip(columns, names, strict=True)]
    return encoding.encode(named)[0]

"""Methods that compute each row on its own also take dask collections: block by block, when asked to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

Method = TypeVar("Method", bound=Callable[..., Any])


def is_collection(X: Any) -> bool:
    """Tell a dask collection, without importing dask."""
    return hasattr(X, "__dask_graph__")


def by_rows(*axes: Literal["classes", "features"]) -> Callable[[Method], Method]:
    """Let a method of a classifier take dask collections, and return one with the same chunks and index.

    `axes` are those of its result behind the samples. Labels have none.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def of_any(self: Any, X: Any) -> Any:
            if not is_collection(X):
                return method(self, X)
            check_is_fitted(self)
            sizes = {"classes": self.classes_.size, "features": self.n_features_in_}
            empty = np.empty(
                (0, *(sizes[axis] for axis in axes)), np.float64 if axes else self.classes_.dtype
            )
            return _map(method.__name__, self, X, empty)

        return cast(Method, of_any)

    return decorate


def _map(method: str, estimator: Any, X: Any, empty: NDArray[Any]) -> Any:
    """Apply a method to the blocks of a collection; `empty` is its result for no rows."""
    import dask
    import dask.array as da

    # One copy of the estimator for all blocks, and no time spent on a hash of its rows.
    shared = dask.delayed(estimator, pure=False, traverse=False)
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}.")
        rows = X.rechunk({1: -1})
        behind = tuple((size,) for size in empty.shape[1:])
        return da.map_blocks(
            _of_block,
            rows,
            shared,
            method=method,
            empty=empty,
            dtype=empty.dtype,
            chunks=(rows.chunks[0], *behind),
            drop_axis=[1] if empty.ndim == 1 else [],
            new_axis=[2] if empty.ndim == 3 else [],
            meta=empty,
        )
    import dask.dataframe as dd
    import pandas as pd

    if not isinstance(X, dd.DataFrame):
        raise TypeError(f"X must be a dask array or dataframe, got {type(X).__name__}.")
    index = pd.Index([], dtype=X.index.dtype, name=X.index.name)
    framed = _framed(empty, index, estimator.classes_)
    return X.map_partitions(_of_frame, shared, method=method, empty=empty, meta=framed)


def _of_block(X: Any, estimator: Any, method: str, empty: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = getattr(estimator, method)(X) if len(X) else empty
    return found


def _of_frame(X: Any, estimator: Any, method: str, empty: NDArray[Any]) -> Any:
    return _framed(_of_block(X, estimator, method, empty), X.index, estimator.classes_)


def _framed(found: NDArray[Any], index: Any, classes: NDArray[Any]) -> Any:
    """Labels as a series, numbers per class as a frame, and what has a third axis as it is."""
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=index)
    return pd.DataFrame(found, index=index, columns=classes) if found.ndim == 2 else found

"""A decorator with which methods that compute rows independently also accept dask collections.

A dask collection is a lazy array or frame; it consists of blocks, which are chunks or partitions of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from corral.estimators.validation import feature_names

Method = TypeVar("Method", bound=Callable[..., Any])


def is_collection(X: Any) -> bool:
    """Test whether X is a dask collection; dask is not imported."""
    return hasattr(X, "__dask_graph__")


def by_rows(
    *axes: Literal["classes", "features"], dtype: type[Any] | None = None
) -> Callable[[Method], Method]:
    """Make a decorator for methods of classifiers, which applies the method to each block of a collection.

    The result for a dask collection is a dask collection with the same chunks and index. `axes` are the axes
    of the result after the first axis, the samples; a method that returns one label per sample has none. The
    default `dtype` is float64 if there are `axes`, otherwise the type of the labels.
    """

    def decorate(method: Method) -> Method:
        name = method.__name__  # tasks look the method up by its name, since it cannot be pickled

        @wraps(method)
        def rows_or_blocks(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
            if not is_collection(X):
                return method(self, X, *arguments, **options)
            check_is_fitted(self)
            sizes = {"classes": self.classes_.size, "features": len(feature_names(self))}
            result_type = dtype or (np.float64 if axes else self.classes_.dtype)
            empty = np.empty((0, *(sizes[axis] for axis in axes)), result_type)

            classes = self.classes_

            def compute_block(block: Any, estimator: Any) -> Any:
                result = getattr(estimator, name)(block, *arguments, **options) if len(block) else empty
                return _framed(result, block, classes)

            return _map_blocks(compute_block, self, X, empty)

        return cast(Method, rows_or_blocks)

    return decorate


def _map_blocks(compute_block: Callable[[Any, Any], Any], estimator: Any, X: Any, empty: Any) -> Any:
    """Apply a method to the blocks of a collection; `empty` is the result of the method for no rows."""
    import dask
    import dask.array as da

    # All blocks share one copy of the estimator. `pure=False` saves the time to hash its rows.
    shared = dask.delayed(estimator, pure=False, traverse=False)
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}.")
        rows = X.rechunk({1: -1})
        return da.map_blocks(
            compute_block,
            rows,
            shared,
            dtype=empty.dtype,
            chunks=(rows.chunks[0], *((size,) for size in empty.shape[1:])),
            drop_axis=[1] if empty.ndim == 1 else [],
            new_axis=[2] if empty.ndim == 3 else [],
            meta=empty,
        )
    import dask.dataframe as dd

    if not isinstance(X, dd.DataFrame):
        raise TypeError(f"X must be a dask array or dataframe, got {type(X).__name__}.")
    meta = _framed(empty, X._meta[:0], estimator.classes_)  # noqa: SLF001 (map_partitions uses _meta as well)
    return X.map_partitions(compute_block, shared, meta=meta)


def _framed(result: NDArray[Any], block: Any, classes: NDArray[Any]) -> Any:
    """Make a pandas result if the block is a frame: a series from one axis, a frame from two axes.

    Arrays with three axes stay arrays.
    """
    if not hasattr(block, "iloc") or result.ndim == 3:
        return result
    import pandas as pd

    if result.ndim == 1:
        return pd.Series(result, index=block.index)
    return pd.DataFrame(result, index=block.index, columns=classes)

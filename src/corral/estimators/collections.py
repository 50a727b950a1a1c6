"""Methods that compute each row on its own also take dask collections: block by block, when asked to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

Method = TypeVar("Method", bound=Callable[..., Any])


def is_collection(X: Any) -> bool:
    """Tell a dask collection, without importing dask."""
    return hasattr(X, "__dask_graph__")


def by_rows(
    *axes: Literal["classes", "features"], dtype: type[Any] | None = None
) -> Callable[[Method], Method]:
    """Let a method of a classifier take dask collections, and return one with the same chunks and index.

    `axes` are those of its result behind the samples; labels have none. `dtype` is that of the result, by
    default of numbers if it has axes, and else of labels.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def of_any(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
            if not is_collection(X):
                return method(self, X, *arguments, **options)
            check_is_fitted(self)
            sizes = {"classes": self.classes_.size, "features": self.n_features_in_}
            usual = np.float64 if axes else self.classes_.dtype
            empty = np.empty((0, *(sizes[axis] for axis in axes)), usual if dtype is None else dtype)
            return _map(_Call(method.__name__, arguments, options, empty), self, X)

        return cast(Method, of_any)

    return decorate


class _Call(NamedTuple):
    """A call of a method, but for the estimator and its rows.

    Attributes
    ----------
    method : its name.
    arguments, options : what it is given besides the rows.
    empty : its result for no rows.
    """

    method: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    empty: NDArray[Any]

    def of_block(self, X: Any, estimator: Any) -> NDArray[Any]:
        """Call the method for the rows of a block."""
        if not len(X):
            return self.empty
        found: NDArray[Any] = getattr(estimator, self.method)(X, *self.arguments, **self.options)
        return found


def _map(call: _Call, estimator: Any, X: Any) -> Any:
    """Apply a method to the blocks of a collection."""
    import dask
    import dask.array as da

    # One copy of the estimator for all blocks, and no time spent on a hash of its rows.
    shared = dask.delayed(estimator, pure=False, traverse=False)
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}.")
        rows = X.rechunk({1: -1})
        empty = call.empty
        behind = tuple((size,) for size in empty.shape[1:])
        return da.map_blocks(
            _of_block,
            rows,
            shared,
            call=call,
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
    framed = _framed(call.empty, index, estimator.classes_)
    return X.map_partitions(_of_frame, shared, call=call, meta=framed)


def _of_block(X: Any, estimator: Any, call: _Call) -> NDArray[Any]:
    return call.of_block(X, estimator)


def _of_frame(X: Any, estimator: Any, call: _Call) -> Any:
    return _framed(call.of_block(X, estimator), X.index, estimator.classes_)


def _framed(found: NDArray[Any], index: Any, classes: NDArray[Any]) -> Any:
    """Labels as a series, numbers per class as a frame, and what has a third axis as it is."""
    import pandas as pd

    if found.ndim == 1:
        return pd.Series(found, index=index)
    return pd.DataFrame(found, index=index, columns=classes) if found.ndim == 2 else found

"""Read the partitions of dask collections, and regroup their rows into blocks of one class.

Rows with weight 0 are left out. The remaining rows of a class are counted over all partitions: block b has
the rows bB to (b + 1)B - 1, and the last block may have fewer than B rows. So blocks depend neither on the
number of workers nor on the partitions, and a row between two cells is always assigned to the same cell,
because coordinates are rounded in the same way. Blocks are tasks, which dask repeats from the source if a
worker is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from corral.array_types import Floats, Integers
from corral.dask.categories import encode_part
from corral.dask.reductions import compute
from corral.estimators.collections import is_collection
from corral.estimators.encoding import Encoding, names_of
from corral.estimators.validation import check_two_classes, check_weights

Pieces = list[Delayed]


class Part(NamedTuple):
    """Rows of one partition."""

    X: Floats  # (n_rows, n_features) values
    y: NDArray[Any]  # (n_rows,) labels
    weights: Floats | None  # (n_rows,) or None if all rows have weight 1
    groups: NDArray[Any] | None  # (n_rows,) group labels, or None if there are no groups
    numbers: Integers  # (n_rows,) indices among the rows of all partitions

    def take(self, which: Any) -> Part:
        """Select rows by a mask, slice or index array."""
        return Part(*(None if column is None else column[which] for column in self))  # type: ignore[arg-type]

    def with_weight(self) -> Part:
        """Return the rows with positive weight."""
        return self if self.weights is None else self.take(self.weights > 0.0)


def concatenate(parts: Sequence[Part]) -> Part:
    """Concatenate at least one part in order."""
    columns = zip(*parts, strict=True)
    return Part(*(None if column[0] is None else np.concatenate(column) for column in columns))  # type: ignore[arg-type]


class Source(NamedTuple):
    """A partition that is not in memory; every task that needs the rows reads the partition again."""

    # tasks that return values, labels, weights and groups; or one task that returns a frame of all these
    # columns
    columns: tuple[Delayed, ...]
    names: list[str]  # names of the variables
    weighted: bool  # whether rows have weights
    grouped: bool  # whether rows have groups
    encoding: Encoding  # encodes values as numbers, NaN for missing values
    first: int = 0  # index of the first row of the partition among all rows, set by `survey`


class Overview(NamedTuple):
    """Labels, and numbers of rows of all partitions."""

    labels: NDArray[Any]  # (n_classes,) sorted class labels
    n_rows: Integers  # (n_parts, n_classes) rows with positive weight
    totals: Floats  # (n_classes,) sums of weights in all partitions
    n_given: int  # number of rows, including rows with weight 0
    has_missing: bool  # whether a row with positive weight has a missing value


def as_collection(X: Any, chunk: int) -> Any:
    """Return X as a two-dimensional dask array or a dask dataframe; a table in memory is cut into chunks."""
    if not is_collection(X):
        if hasattr(X, "iloc"):
            X = dd.from_pandas(X, chunksize=chunk, sort=False)
        else:
            numbers = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
            X = da.from_array(numbers, chunks=(chunk, -1))
    if isinstance(X, da.Array) and X.ndim == 2:
        return X.rechunk({1: -1})
    if isinstance(X, dd.DataFrame):
        return X
    raise ValueError(f"X must be a table, that is an array or frame of two dimensions, got {X!r}.")


def partitions(X: Any, y: Any, weights: Any, groups: Any, encoding: Encoding) -> list[Source]:
    """Make the sources of all partitions of X, with labels, weights and groups.

    X is a result of `as_collection`; the other columns are collections or in memory.
    """
    others = {"y": y, "sample_weight": weights, "groups": groups}
    others = {name: column for name, column in others.items() if column is not None}
    read: dict[str, Any] = {
        "names": names_of(X, X.shape[1]),
        "weighted": weights is not None,
        "grouped": groups is not None,
        "encoding": encoding,
    }
    if all(isinstance(column, dd.DataFrame | dd.Series) for column in (X, *others.values())):
        # X and the columns are joined, because dask may merge partitions of each of them differently.
        joined = dd.map_partitions(_join, X, *others.values(), align_dataframes=False)
        return [Source((part,), **read) for part in joined.to_delayed()]
    if isinstance(X, dd.DataFrame):
        X = X.to_dask_array(lengths=not all(map(is_collection, others.values())) or None)
    parts = [X.to_delayed().ravel()]
    parts += [_alike(name, column, X).to_delayed().ravel() for name, column in others.items()]
    return [Source(columns, **read) for columns in zip(*parts, strict=True)]


def _alike(name: str, column: Any, X: da.Array) -> da.Array:
    """Return a column as a dask array with the chunks of X."""
    chunks = X.chunks[0]
    has_sizes = not np.isnan(chunks).any()
    if not is_collection(column):
        column = column_or_1d(column)
        if not has_sizes:
            raise ValueError(f"{name} must be a dask collection like X, whose chunk sizes are not known.")
        if len(column) != len(X):
            raise ValueError(f"X has {len(X)} rows, but {name} has {len(column)}.")
        return da.from_array(column, chunks=(chunks,))
    array = column if isinstance(column, da.Array) else column.to_dask_array()
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if has_sizes and not np.isnan(array.chunks[0]).any():
        if len(array) != len(X):
            raise ValueError(f"X has {len(X)} rows, but {name} has {len(array)}.")
        return array.rechunk((chunks,))
    if len(array.to_delayed()) != len(chunks):
        raise ValueError(
            f"X has {len(chunks)} partitions, but {name} has {len(array.to_delayed())}; give both as frames, "
            "or as arrays with known chunk sizes."
        )
    return array


def _join(X: pd.DataFrame, *columns: pd.Series | pd.DataFrame) -> pd.DataFrame:
    """Join X and the columns by position into one frame with the column names 0, 1, ..."""
    for column in columns:
        if len(column) != len(X):
            raise ValueError(
                f"a partition of X has {len(X)} rows, but {len(column)} labels, weights or groups."
            )
    joined = pd.concat([part.reset_index(drop=True) for part in (X, *columns)], axis=1)
    return joined.set_axis(range(joined.shape[1]), axis=1)


def read_part(source: Source) -> Part:
    """Check a partition, whose tasks have been done; it may be empty."""
    columns: Any = source.columns
    if len(columns) == 1:
        frame, d = columns[0], len(source.names)
        columns = frame.iloc[:, :d], *(frame.iloc[:, j] for j in range(d, frame.shape[1]))
    X, y, *others = columns
    values = encode_part(X, source.names, source.encoding)
    labels = check_array(column_or_1d(y), ensure_2d=False, dtype=None, ensure_min_samples=0, input_name="y")
    if len(labels) != len(values):
        raise ValueError(f"a partition of X has {len(values)} rows, but {len(labels)} labels.")
    weights = check_weights(others[0], len(values)) if source.weighted else None
    groups = _names_of_groups(others[-1]) if source.grouped else None
    return Part(values, labels, weights, groups, source.first + np.arange(len(values)))


def _names_of_groups(column: Any) -> NDArray[Any]:
    """Return group labels (n_rows,); raise ValueError if a row has no group."""
    groups: NDArray[Any] = column_or_1d(np.asarray(column))
    if pd.isna(groups).any():
        raise ValueError("each row must have a group, but a row of a partition has none.")
    return groups.astype(str) if groups.dtype.kind == "O" else groups


def survey(sources: Sequence[Source], client: Any) -> tuple[list[Source], Overview]:
    """Count the rows of all partitions, and set the index of the first row of each partition.

    Raise ValueError if there are fewer than two classes.
    """
    n_given, labels, n_rows, counts, has_missing = zip(*compute(map(_counts, sources), client), strict=True)
    # The labels of an empty partition may have another type.
    filled = [p for p, names in enumerate(labels) if names.size]
    if not filled:
        raise ValueError("X and y must hold rows with a positive weight, got none.")
    classes = np.unique(np.concatenate([labels[p] for p in filled]))
    check_two_classes(classes)
    check_classification_targets(classes)
    part_rows, totals = np.zeros((len(sources), classes.size), dtype=np.int64), np.zeros(classes.size)
    for p in filled:
        codes = np.searchsorted(classes, labels[p])
        part_rows[p, codes] = n_rows[p]
        totals[codes] += counts[p]
    first = np.cumsum(n_given) - n_given
    numbered = [source._replace(first=int(n)) for source, n in zip(sources, first, strict=True)]
    return numbered, Overview(classes, part_rows, totals, sum(n_given), any(has_missing))


@delayed
def _counts(source: Source) -> tuple[int, NDArray[Any], Integers, Floats, bool]:
    """Return the number of rows, the labels, the row count and weight of each label, and `has_missing`.

    Only the number of rows includes rows with weight 0.
    """
    every = read_part(source)
    part = every.with_weight()
    labels, codes = np.unique(part.y, return_inverse=True)
    n_rows = np.bincount(codes, minlength=labels.size)
    weights = np.bincount(codes, part.weights, minlength=labels.size).astype(np.float64)
    return len(every.X), labels, n_rows, weights, bool(np.isnan(part.X).any())


def class_blocks(sources: Sequence[Source], overview: Overview, block_rows: int) -> list[list[Pieces]]:
    """Make tasks that return the pieces of each block of each class; a piece is a `Part` of one partition."""
    splits = [_split(source, overview.labels) for source in sources]
    blocks: list[list[Pieces]] = []
    for a, n_rows in enumerate(overview.n_rows.T):
        ends = n_rows.cumsum()
        blocks.append([])
        for first in range(0, int(ends[-1]), block_rows):
            # The rows low to high - 1 of the class in each partition belong to the block.
            low = np.clip(first - ends + n_rows, 0, n_rows)
            high = np.clip(first + block_rows - ends + n_rows, 0, n_rows)
            pieces = [_cut(splits[p], a, int(low[p]), int(high[p])) for p in np.flatnonzero(high > low)]
            blocks[-1].append(pieces)
    return blocks


@delayed
def _split(source: Source, labels: NDArray[Any]) -> list[Part]:
    part = read_part(source).with_weight()
    return [part.take(part.y == label) for label in labels]


@delayed
def _cut(split: list[Part], a: int, low: int, high: int) -> Part:
    return split[a].take(slice(low, high))

"""Collections become blocks: the rows of each class, in the order they came, so many to a block.

Block b of a class holds its rows bB to (b + 1)B - 1, counted over all partitions. So blocks depend neither on
the number of workers nor on how the rows were partitioned, and a row that lies between two cells falls into
the same one whatever the partitions. Nothing here is computed: blocks are tasks, which dask repeats from the
source where a worker is lost.
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
from corral.dask.levels import encode_part
from corral.estimators.collections import is_collection
from corral.estimators.encoding import Encoding, names_of
from corral.estimators.validation import check_two_classes, check_weights

Pieces = list[Delayed]


class Part(NamedTuple):
    """Rows of one partition.

    Attributes
    ----------
    X : (n_rows, n_features) values.
    y : (n_rows,) labels.
    weights : (n_rows,) or None where all rows count once.
    groups : (n_rows,) names of groups, or None where each row stands alone.
    numbers : (n_rows,) their positions among all rows.
    """

    X: Floats
    y: NDArray[Any]
    weights: Floats | None
    groups: NDArray[Any] | None
    numbers: Integers

    def take(self, which: Any) -> Part:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[which]
        groups = None if self.groups is None else self.groups[which]
        return Part(self.X[which], self.y[which], weights, groups, self.numbers[which])

    def weighty(self) -> Part:
        """Leave rows without weight aside, as `LabelledRows` does."""
        return self if self.weights is None else self.take(self.weights > 0.0)


def together(parts: Sequence[Part]) -> Part:
    """Put rows one behind the other; there must be at least one part."""
    columns = zip(*parts, strict=True)
    return Part(*(None if column[0] is None else np.concatenate(column) for column in columns))  # type: ignore[arg-type]


class Source(NamedTuple):
    """Where a partition comes from, and how it is read.

    The tasks below start from it and keep nothing in between: large partitions should be in memory once.

    Attributes
    ----------
    columns : tasks that make its values, labels, weights and groups, or one frame of them all.
    names : of the variables.
    joined : whether it is one frame.
    weighted, grouped : whether there are weights and groups.
    encoding : how values become numbers, NaN for gaps.
    first : position of its first row among all rows, once that is known.
    """

    columns: tuple[Delayed, ...]
    names: list[str]
    joined: bool
    weighted: bool
    grouped: bool
    encoding: Encoding
    first: int = 0


class Summary(NamedTuple):
    """What must be known of a partition before blocks can be cut: counts are per label.

    Attributes
    ----------
    n_given : number of rows, also of those that do not count.
    labels : (n_labels,)
    n_rows, counts : for each label the rows that count, and the sum of their weights.
    has_gaps : whether some value is missing.
    """

    n_given: int
    labels: NDArray[Any]
    n_rows: Integers
    counts: Floats
    has_gaps: bool


class Overview(NamedTuple):
    """What must be known of all partitions together.

    Attributes
    ----------
    labels : (n_classes,)
    n_rows : (n_parts, n_classes) rows that count.
    totals : (n_classes,) the same of all partitions, weights counted.
    first : (n_parts,) position of the first row of each partition, among all rows that were given.
    n_given : number of rows, also of those that do not count.
    has_gaps : whether some value is missing.
    """

    labels: NDArray[Any]
    n_rows: Integers
    totals: Floats
    first: Integers
    n_given: int
    has_gaps: bool


def as_collection(X: Any, chunk: int) -> Any:
    """X as a dask array of two dimensions or a dataframe; what is at hand is cut into chunks."""
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
    """The partitions of collections or columns at hand; X is what `as_collection` returns."""
    others = {"y": y, "sample_weight": weights, "groups": groups}
    others = {name: column for name, column in others.items() if column is not None}
    read: dict[str, Any] = {
        "names": names_of(X, X.shape[1]),
        "weighted": weights is not None,
        "grouped": groups is not None,
        "encoding": encoding,
    }
    if all(isinstance(column, dd.DataFrame | dd.Series) for column in (X, *others.values())):
        # Together, because dask may merge small partitions, and not the same ones of each.
        joined = dd.map_partitions(_join, X, *others.values(), align_dataframes=False)
        return [Source((part,), joined=True, **read) for part in joined.to_delayed()]
    if isinstance(X, dd.DataFrame):
        X = X.to_dask_array(lengths=not all(map(is_collection, others.values())) or None)
    parts = [X.to_delayed().ravel()]
    parts += [_alike(name, column, X).to_delayed().ravel() for name, column in others.items()]
    return [Source(of_part, joined=False, **read) for of_part in zip(*parts, strict=True)]


def _alike(name: str, column: Any, X: da.Array) -> da.Array:
    """A column as an array with the chunks of X."""
    chunks = X.chunks[0]
    known = not np.isnan(chunks).any()
    if not is_collection(column):
        column = column_or_1d(column)
        if not known:
            raise ValueError(f"{name} must be a dask collection like X, whose chunk sizes are not known.")
        if len(column) != len(X):
            raise ValueError(f"X has {len(X)} rows, but {name} has {len(column)}.")
        return da.from_array(column, chunks=(chunks,))
    array = column if isinstance(column, da.Array) else column.to_dask_array()
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if known and not np.isnan(array.chunks[0]).any():
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
    """One frame, its columns numbered; indices are left aside."""
    for column in columns:
        if len(column) != len(X):
            raise ValueError(f"a partition of X has {len(X)} rows, but {len(column)} labels or weights.")
    joined = pd.concat([part.reset_index(drop=True) for part in (X, *columns)], axis=1)
    return joined.set_axis(range(joined.shape[1]), axis=1)


def read_part(source: Source) -> Part:
    """Check a partition, whose tasks have been done; it may be empty."""
    columns: Any = source.columns
    if source.joined:
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
    """Names of the groups of some rows; each row must have one."""
    groups: NDArray[Any] = column_or_1d(np.asarray(column))
    if pd.isna(groups).any():
        raise ValueError("groups must name a group for each row, but a row of a partition has none.")
    return groups.astype(str) if groups.dtype.kind == "O" else groups


@delayed
def summary(source: Source) -> Summary:
    """Count the rows of each label."""
    given = read_part(source)
    part = given.weighty()
    labels, codes = np.unique(part.y, return_inverse=True)
    return Summary(
        len(given.X),
        labels,
        np.bincount(codes, minlength=labels.size),
        np.bincount(codes, part.weights, minlength=labels.size).astype(np.float64),
        bool(np.isnan(part.X).any()),
    )


def overview(summaries: Sequence[Summary]) -> Overview:
    """Put summaries together; there must be rows, of two classes at least."""
    # An empty partition may have lost the kind of its labels.
    filled = [(p, of_part) for p, of_part in enumerate(summaries) if of_part.labels.size]
    if not filled:
        raise ValueError("X and y must hold rows with a positive weight, got none.")
    labels = np.unique(np.concatenate([of_part.labels for _, of_part in filled]))
    check_two_classes(labels)
    check_classification_targets(labels)
    n_rows, counts = np.zeros((len(summaries), labels.size), dtype=np.int64), np.zeros(labels.size)
    for p, of_part in filled:
        at = np.searchsorted(labels, of_part.labels)
        n_rows[p, at] = of_part.n_rows
        counts[at] += of_part.counts
    n_given = np.array([of_part.n_given for of_part in summaries])
    return Overview(
        labels,
        n_rows,
        counts,
        n_given.cumsum() - n_given,
        int(n_given.sum()),
        any(of_part.has_gaps for of_part in summaries),
    )


def class_blocks(sources: Sequence[Source], of_all: Overview, block_rows: int) -> list[list[Pieces]]:
    """Tasks that make the pieces of each block of each class, a `Part` each."""
    splits = [_split(source, of_all.labels) for source in sources]
    ends = of_all.n_rows.cumsum(axis=0)
    blocks = []
    for a, (n_rows, end) in enumerate(zip(of_all.n_rows.T, ends.T, strict=True)):
        of_class = []
        for first in range(0, int(end[-1]), block_rows):
            # Where each partition meets the block: in none of its rows of the class, in some, or in all.
            low = np.clip(first - end + n_rows, 0, n_rows)
            high = np.clip(first + block_rows - end + n_rows, 0, n_rows)
            pieces = [_cut(splits[p], a, int(low[p]), int(high[p])) for p in np.flatnonzero(high > low)]
            of_class.append(pieces)
        blocks.append(of_class)
    return blocks


@delayed
def _split(source: Source, labels: NDArray[Any]) -> list[Part]:
    part = read_part(source).weighty()
    return [part.take(part.y == label) for label in labels]


@delayed
def _cut(split: list[Part], a: int, low: int, high: int) -> Part:
    return split[a].take(slice(low, high))

"""Hash keys of rows, cells and columns, which depend on values and not on the order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats, Integers

Words = NDArray[np.uint64]

_CHUNK = 4096


def row_keys(X: Floats, salt: Integers | Words) -> Words:
    """Return one key per row; equal rows have equal keys, different rows almost always different keys.

    `salt` (n_features,) has one integer per column, which is mixed with its values.
    """
    keys = np.empty(len(X), dtype=np.uint64)
    for first in range(0, len(X), _CHUNK):  # a chunk fits in the cache
        chunk = slice(first, first + _CHUNK)
        keys[chunk] = _mixed(_bits(X[chunk]), salt.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    return keys


def equality_keys(X: Floats) -> Words:
    """Return one key per row; rows with equal values and equal missing values have equal keys."""
    return row_keys(np.where(np.isnan(X), np.nan, X), np.arange(X.shape[1]))


def cell_keys(X: Floats) -> Words:
    """Return keys (n_rows, n_features) of single values; equal values of a column have equal keys."""
    return _mixed(_bits(X), np.arange(X.shape[1], dtype=np.uint64))


def content_keys(X: Floats) -> Words:
    """Return one key per row that does not depend on the order of rows, or on the order or signs of columns.

    The key of a column is computed from its values. The key of a row is computed from its values and the keys
    of the columns. Columns of few values may have equal keys. Therefore the keys of columns are computed
    again from their values and the keys of rows, and then the keys of rows are computed again. A column is
    negated if this makes its key larger; both keys are equal if values are symmetric around zero.
    """
    missing, salt = np.isnan(X), np.zeros(len(X), dtype=np.uint64)
    oriented = np.where(missing, np.nan, X)  # NaN has many bit patterns, and np.nan one
    columns, mirrored = _column_keys(oriented, salt), _column_keys(np.where(missing, np.nan, -X), salt)
    oriented = np.where(missing | (columns >= mirrored), oriented, -X)
    rows = row_keys(oriented, np.maximum(columns, mirrored))
    return row_keys(oriented, _column_keys(oriented, rows))


def _column_keys(X: Floats, salt: Words) -> Words:
    """Return one key per column from its values and the `salt` (n_rows,) of their rows, in any order."""
    keys = np.zeros(X.shape[1], dtype=np.uint64)
    for first in range(0, len(X), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        keys += _mixed(_bits(X[chunk]), salt[chunk, np.newaxis]).sum(axis=0, dtype=np.uint64)
    return keys


def _bits(X: Floats) -> Words:
    """Return the bits of doubles; a negative zero has the bits of zero."""
    return (X + 0.0).view(np.uint64)


def _mixed(bits: Words, salt: Words) -> Words:
    """Mix bits and salt (splitmix64): inputs that differ in few bits have results that differ in many."""
    z = bits + (salt + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = z ^ (z >> np.uint64(31))
    return mixed

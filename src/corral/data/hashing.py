"""Hashes of rows, cells and columns by their values, the same in any order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats, Integers

Words = NDArray[np.uint64]

_CHUNK = 4096


def row_keys(X: Floats, salt: Integers | Words) -> Words:
    """One number per row, which equal rows share and others hardly ever; `salt` has a number per column."""
    keys = np.empty(len(X), dtype=np.uint64)
    for first in range(0, len(X), _CHUNK):  # which stays in the cache
        chunk = slice(first, first + _CHUNK)
        keys[chunk] = _mixed(_bits(X[chunk]), salt.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    return keys


def equality_keys(X: Floats) -> Words:
    """One number per row, shared by rows with the same values and the same missing values."""
    return row_keys(np.where(np.isnan(X), np.nan, X), np.arange(X.shape[1]))


def cell_keys(X: Floats) -> Words:
    """Numbers (n_rows, n_features), which equal values of a column share and others hardly ever."""
    return _mixed(_bits(X), np.arange(X.shape[1], dtype=np.uint64))


def content_keys(X: Floats) -> Words:
    """One number per row, which depends on neither the order of rows nor the order or signs of columns.

    The key of a column is made of its values, and the key of a row of its values and the keys of its columns.
    This is done twice, since columns of few values may hold each value equally often. The sign of a column is
    the one with the larger key; both keys are equal if values are symmetric around zero.
    """
    missing, salt = np.isnan(X), np.zeros(len(X), dtype=np.uint64)
    oriented = np.where(missing, np.nan, X)  # NaN has many bit patterns, and np.nan one
    columns, mirrored = _column_keys(oriented, salt), _column_keys(np.where(missing, np.nan, -X), salt)
    oriented = np.where(missing | (columns >= mirrored), oriented, -X)
    rows = row_keys(oriented, np.maximum(columns, mirrored))
    return row_keys(oriented, _column_keys(oriented, rows))


def _column_keys(X: Floats, salt: Words) -> Words:
    """One number per column, shared by columns with the same values in rows of the same `salt` (n_rows,)."""
    keys = np.zeros(X.shape[1], dtype=np.uint64)
    for first in range(0, len(X), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        keys += _mixed(_bits(X[chunk]), salt[chunk, np.newaxis]).sum(axis=0, dtype=np.uint64)
    return keys


def _bits(X: Floats) -> Words:
    """The bits of doubles; both zeros have the bits of the positive one."""
    return (X + 0.0).view(np.uint64)


def _mixed(bits: Words, salt: Words) -> Words:
    """Scatter bits (splitmix64): numbers that differ in few of them become unlike each other."""
    z = bits + (salt + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = z ^ (z >> np.uint64(31))
    return mixed

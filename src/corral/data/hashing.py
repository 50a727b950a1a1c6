"""Hashes of rows, cells and columns by their values, the same in any order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats, Integers

Words = NDArray[np.uint64]

_CHUNK = 4096


def row_keys(X: Floats, salt: Integers | Words) -> Words:
    """One number per row, which equal rows share and others hardly ever do; `salt` numbers the columns."""
    keys = np.empty(len(X), dtype=np.uint64)
    for first in range(0, len(X), _CHUNK):  # which stays in the cache
        chunk = slice(first, first + _CHUNK)
        keys[chunk] = _mixed(_bits(X[chunk]), salt.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    return keys


def equality_keys(X: Floats) -> Words:
    """One number per row, which rows share that have the same values and the same gaps."""
    return row_keys(np.where(np.isnan(X), np.nan, X), np.arange(X.shape[1]))


def cell_keys(X: Floats) -> Words:
    """Numbers (n_rows, n_features), which equal values of a column share and others hardly ever do."""
    return _mixed(_bits(X), np.arange(X.shape[1], dtype=np.uint64))


def content_keys(X: Floats) -> Words:
    """One number per row, which depends on neither the order of rows nor the order or signs of columns.

    A column is told by the numbers of its rows, and a row by those of its columns: twice, since columns of
    few values may all hold each of them equally often. A column whose values lie symmetrically around zero
    has no sign that could be told from the other.
    """
    gaps, salt = np.isnan(X), np.zeros(len(X), dtype=np.uint64)
    oriented = np.where(gaps, np.nan, X)  # whose bits are the same in all gaps
    columns, mirrored = _column_keys(oriented, salt), _column_keys(np.where(gaps, np.nan, -X), salt)
    oriented = np.where(gaps | (columns >= mirrored), oriented, -X)
    rows = row_keys(oriented, np.maximum(columns, mirrored))
    return row_keys(oriented, _column_keys(oriented, rows))


def _column_keys(X: Floats, salt: Words) -> Words:
    """One number per column, which columns of the same values in the rows of the same salt share."""
    keys = np.zeros(X.shape[1], dtype=np.uint64)
    for first in range(0, len(X), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        keys += _mixed(_bits(X[chunk]), salt[chunk, np.newaxis]).sum(axis=0, dtype=np.uint64)
    return keys


def _bits(X: Floats) -> Words:
    """The bits of doubles; of both zeros those of the positive one."""
    return (X + 0.0).view(np.uint64)


def _mixed(bits: Words, salt: Words) -> Words:
    """Scatter bits (splitmix64): numbers that differ in few of them become unlike each other."""
    z = bits + (salt + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = z ^ (z >> np.uint64(31))
    return mixed

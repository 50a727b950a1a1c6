"""Types of arrays, as annotations name them, and the checks by which classes validate their fields.

A class that model files hold has a method `validate`, which refuses what no fit could have left: it is called
for every object that is read from a file, and not where a fit makes one, since it looks at every number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

# The smallest positive number with all its digits, and the largest number.
SMALLEST = float(np.finfo(np.float64).tiny)
LARGEST = float(np.finfo(np.float64).max)

# Squares of distances between such coordinates, over the smallest bandwidth, are still finite.
LARGEST_COORDINATE = 1e100

LARGEST_INTEGER = int(np.iinfo(np.int64).max)


def equal_or_none(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    """Whether two arrays are equal, or both are missing."""
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


def check_shape(name: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Refuse an array of another shape; None is any length."""
    same = array.ndim == len(shape)
    if not same or any(n not in (None, size) for n, size in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name} has the shape {array.shape} and not {shape}")


def check_array(
    name: str,
    array: NDArray[Any],
    shape: tuple[int | None, ...],
    low: float = -LARGEST,
    high: float = LARGEST,
    *,
    nan: bool = False,
) -> None:
    """Refuse an array of another shape or with numbers outside bounds; `nan` says if some may be missing."""
    check_shape(name, array, shape)
    if not array.size:
        return
    smaller, larger = (np.fmin, np.fmax) if nan else (np.minimum, np.maximum)
    least, largest = smaller.reduce(array, axis=None), larger.reduce(array, axis=None)
    if nan and np.isnan(least):  # all are missing
        return
    if not (low <= least and largest <= high):  # which NaN never is
        raise ValueError(f"{name} holds a number that is not between {low:g} and {high:g}")


def check_number(name: str, number: float, low: float = -LARGEST, high: float = LARGEST) -> None:
    """Refuse a number outside bounds."""
    if not low <= number <= high:
        raise ValueError(f"{name} is not a number between {low:g} and {high:g}")


def check_positions(name: str, positions: Integers, n: int) -> None:
    """Refuse what is not a rising list of positions below n: compiled loops do not look where they read."""
    check_array(name, positions, (None,), 0, n - 1)
    if (np.diff(positions) <= 0).any():
        raise ValueError(f"{name} do not rise")


def check_labels(name: str, labels: NDArray[Any]) -> None:
    """Refuse what is not a list of classes in order, each once."""
    if labels.ndim != 1 or labels.size < 1:
        raise ValueError(f"{name} is not a list of classes")
    plain = labels.dtype != object or all(isinstance(label, str | int | float) for label in labels)
    if not plain or not np.array_equal(np.unique(labels), labels):
        raise ValueError(f"{name} are not different classes in order")

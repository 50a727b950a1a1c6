"""Array types for annotations, and checks with which classes validate their fields.

Each class whose objects are stored in model files has a method `validate`, which raises ValueError if a fit
could not have made the object. It is called for every object that is read from a file. It is not called after
a fit, since it checks every element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

# The smallest positive number of full precision, and the largest number.
SMALLEST = float(np.finfo(np.float64).tiny)
LARGEST = float(np.finfo(np.float64).max)

# With coordinates up to this limit, squared distances divided by squared bandwidths are still finite.
LARGEST_COORDINATE = 1e100

LARGEST_INTEGER = int(np.iinfo(np.int64).max)


def equal_or_none(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    """Whether two arrays are equal, or both are None."""
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


def check_shape(name: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Raise ValueError if an array does not have this shape; None stands for any length."""
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
    """Raise ValueError if the shape of an array is wrong or an element is outside [`low`, `high`].

    NaN is allowed only if `nan` is true.
    """
    check_shape(name, array, shape)
    if not array.size:
        return
    smaller, larger = (np.fmin, np.fmax) if nan else (np.minimum, np.maximum)
    least, largest = smaller.reduce(array, axis=None), larger.reduce(array, axis=None)
    if nan and np.isnan(least):  # all elements are NaN
        return
    if not (low <= least and largest <= high):  # true if NaN is not allowed and an element is NaN
        raise ValueError(f"{name} holds a number that is not between {low:g} and {high:g}")


def check_number(name: str, number: float, low: float = -LARGEST, high: float = LARGEST) -> None:
    """Raise ValueError if a number is outside [`low`, `high`] or NaN."""
    if not low <= number <= high:
        raise ValueError(f"{name} is not a number between {low:g} and {high:g}")


def check_positions(name: str, positions: Integers, n: int) -> None:
    """Raise ValueError unless positions ascend within 0 to n - 1: compiled loops do not check indices."""
    check_array(name, positions, (None,), 0, n - 1)
    if (np.diff(positions) <= 0).any():
        raise ValueError(f"{name} are not in ascending order")


def check_labels(name: str, labels: NDArray[Any]) -> None:
    """Raise ValueError unless labels are a sorted list of distinct classes."""
    if labels.ndim != 1 or labels.size < 1:
        raise ValueError(f"{name} is not a list of classes")
    plain = labels.dtype != object or all(isinstance(label, str | int | float) for label in labels)
    if not plain or not np.array_equal(np.unique(labels), labels):
        raise ValueError(f"{name} are not distinct classes in ascending order")

"""Values of model files as JSON; arrays of numbers are kept aside, under the path that leads to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral._core.settings import Bools, Floats, Integers

_LARGEST = float(np.finfo(np.float64).max)

# Bytes that texts may take up: numpy makes all texts of an array as long as the longest one.
_MOST_BYTES_OF_TEXTS = 2**28


def encode(value: Any, where: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value as JSON knows it; arrays of numbers go to `arrays`, and what a file cannot hold is refused.

    `where` is the path that leads to the value. What JSON does not know has a name that begins with "!".
    """
    match value:
        case np.ndarray():
            return _encode_array(value, where, arrays)
        case np.generic():
            return encode(value.item(), where, arrays)
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"!float": repr(value)}
        case dict() if all(isinstance(key, str) and not key.startswith("!") for key in value):
            return {key: encode(of_key, f"{where}/{key}", arrays) for key, of_key in value.items()}
        case list() | tuple():
            items = [encode(item, f"{where}/{i}", arrays) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"!tuple": items}
    name = where.replace("/", ".")
    raise ValueError(
        f"{name} is a {type(value).__name__}, which a model file cannot hold: only numbers, text and arrays."
    )


def _encode_array(array: NDArray[Any], where: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if array.dtype.kind in "biuf" and array.itemsize <= 8:
        # Always in the byte order of the format, which is also what keeps the checksum the same.
        arrays[where] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        return {"!array": where}
    if array.dtype.kind == "U" and array.ndim == 1:
        check_size_of_texts(where.replace("/", "."), array.size, array.itemsize)
        return {"!text": array.tolist()}
    if array.dtype.kind == "O" and array.ndim == 1:
        return {"!objects": [encode(item, f"{where}/{i}", arrays) for i, item in enumerate(array)]}
    raise ValueError(
        f"{where.replace('/', '.')} is an array of {array.dtype}, which a model file cannot hold."
    )


def decode(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """What `encode` has written, from JSON and arrays; nothing in it is believed yet."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if any(key.startswith("!") for key in value):
        return _decode_tagged(value, arrays)
    return {key: decode(of_key, arrays) for key, of_key in value.items()}


def _decode_tagged(value: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    match value:
        case {"!array": str() as name}:
            return arrays[name]
        case {"!float": ("inf" | "-inf" | "nan") as text}:
            return float(text)
        case {"!tuple": list() as items}:
            return tuple(decode(item, arrays) for item in items)
        case {"!text": list() as items} if items and all(isinstance(item, str) for item in items):
            check_size_of_texts("an array", len(items), 4 * max(map(len, items)))
            return np.array(items)
        case {"!objects": list() as items}:
            objects = np.empty(len(items), dtype=object)
            objects[:] = [decode(item, arrays) for item in items]
            return objects
    raise ValueError(f"it holds {next(iter(value))!r}, which is not understood")


def check_size_of_texts(name: str, n: int, itemsize: int) -> None:
    """Refuse an array of texts that would be far larger than the texts themselves, before it is made."""
    if n * itemsize > _MOST_BYTES_OF_TEXTS:
        raise ValueError(f"{name} holds texts too long for so many: {n} of {itemsize // 4} characters")


def positive(value: Any) -> int:
    """Refuse what is no positive whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{value!r} is not a positive whole number")
    return value


class State:
    """What a file says of an estimator; each value is checked when it is asked for."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise ValueError("its state is not a table of values")
        self._values = values

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def part(self, name: str) -> State:
        return State(self._values[name])

    def parts(self, name: str, n: int) -> list[State]:
        return [State(values) for values in self._of_length(name, n)]

    def arrays(self, name: str, n: int) -> list[State]:
        """A list of arrays, each to be asked for by the same name."""
        return [State({name: array}) for array in self._of_length(name, n)]

    def _of_length(self, name: str, n: int) -> list[Any]:
        found = self._values[name]
        if not isinstance(found, list) or len(found) != n:
            raise ValueError(f"{name} is not a list of {n}")
        return found

    def floats(
        self, name: str, shape: tuple[int | None, ...], low: float = -_LARGEST, high: float = _LARGEST
    ) -> Floats:
        return self._array(name, np.dtype(np.float64), shape, low, high)

    def floats_or_nan(self, name: str, shape: tuple[int | None, ...]) -> Floats:
        """Numbers that need not be known."""
        known = State({name: np.nan_to_num(self._values[name], posinf=np.inf, neginf=-np.inf)})
        known.floats(name, shape)
        found: Floats = self._values[name]
        return found

    def within(self, name: str, low: float, high: float) -> None:
        """Refuse numbers outside bounds; those that are not known are."""
        found = self._values[name]
        if not np.all((found >= low) & (found <= high) | np.isnan(found)):
            raise ValueError(f"{name} holds a number that is not between {low:g} and {high:g}")

    def anything(self, name: str) -> Any:
        """A value that is checked by whoever asks for it."""
        return self._values[name]

    def n_columns(self, *paths: str) -> int:
        """The length of the last axis of an array that is not empty; one of the paths leads to it."""
        for path in paths:
            found: Any = self._values
            for name in path.split("/"):
                found = found.get(name) if isinstance(found, dict) else None
            if isinstance(found, np.ndarray) and found.ndim and found.size:
                return int(found.shape[-1])
        raise ValueError(f"{paths[0].rpartition('/')[2]} is not an array of numbers")

    def n_axes(self, name: str) -> int:
        """How many axes an array has."""
        return int(np.ndim(self._values[name]))

    def integers(self, name: str, shape: tuple[int | None, ...], low: int, high: int) -> Integers:
        return self._array(name, np.dtype(np.int64), shape, low, high)

    def bools(self, name: str, shape: tuple[int, ...]) -> Bools:
        return self._array(name, np.dtype(np.bool_), shape, False, True)

    def _array(
        self, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...], low: float, high: float
    ) -> NDArray[Any]:
        found = self._values[name]
        if not isinstance(found, np.ndarray) or found.dtype != dtype or found.ndim != len(shape):
            raise ValueError(f"{name} is not an array of {dtype} with {len(shape)} axes")
        if any(n not in (None, of_axis) for n, of_axis in zip(shape, found.shape, strict=True)):
            raise ValueError(f"{name} has the shape {found.shape} and not {shape}")
        if not np.all((found >= low) & (found <= high)):  # which NaN never is
            raise ValueError(f"{name} holds a number that is not between {low:g} and {high:g}")
        return found

    def number(self, name: str, low: float = -_LARGEST, high: float = _LARGEST) -> float:
        found = self._values[name]
        if not isinstance(found, float) or not low <= found <= high:
            raise ValueError(f"{name} is not a number between {low:g} and {high:g}")
        return found

    def integer(self, name: str, low: int, high: int) -> int:
        found = self._values[name]
        if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
            raise ValueError(f"{name} is not a whole number between {low} and {high}")
        return found

    def text(self, name: str) -> str:
        found = self._values[name]
        if not isinstance(found, str):
            raise ValueError(f"{name} is not a text")
        return found

    def boolean(self, name: str) -> bool:
        found = self._values[name]
        if not isinstance(found, bool):
            raise ValueError(f"{name} is neither true nor false")
        return found

    def columns(self, name: str) -> dict[str, Any]:
        """Results of a search: columns of one length."""
        found = self._values[name]
        if not isinstance(found, dict):
            raise ValueError(f"{name} is not a table of values")
        if len({len(column) for column in found.values()}) != 1:
            raise ValueError(f"{name} has columns of different lengths")
        return found

    def labels(self, name: str) -> NDArray[Any]:
        """Classes in order, each once."""
        found = self._values[name]
        if not isinstance(found, np.ndarray) or found.ndim != 1 or found.size < 1:
            raise ValueError(f"{name} is not a list of classes")
        plain = found.dtype != object or all(isinstance(label, str | int | float) for label in found)
        if not plain or not np.array_equal(np.unique(found), found):
            raise ValueError(f"{name} are not different classes in order")
        return found

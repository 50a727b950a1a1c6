"""Values of model files as JSON. Arrays are kept apart, under the path that leads to them.

An array, a tuple, a number that is not finite, or an object of a class with fields becomes a JSON object with
a key that begins with "!". `codec` builds the objects of classes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]

# Largest size of an array of texts in bytes: numpy makes all texts as long as the longest one.
_MOST_BYTES_OF_TEXTS = 2**28


class Writer:
    """Converts values to JSON and collects their arrays; equal arrays are kept once."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._names: dict[bytes, str] = {}

    @property
    def digests(self) -> dict[str, bytes]:
        """Checksums of the arrays by the paths under which they are kept."""
        return {name: checksum for checksum, name in self._names.items()}

    def encode(self, value: Any, where: str) -> Any:
        """A value as JSON; a type that a file cannot hold is refused. `where` is the path to the value."""
        encoded: Any
        match value.item() if isinstance(value, np.generic) else value:
            case None | bool() | int() | str() as encoded:
                pass
            case float() as number:
                encoded = number if math.isfinite(number) else {"!float": repr(number)}
            case np.ndarray() as array:
                encoded = self._encode_array(array, where)
            case dict() as table if all(isinstance(key, str) and not key.startswith("!") for key in table):
                encoded = {key: self.encode(item, f"{where}/{key}") for key, item in table.items()}
            case dict() as table:
                pairs = [*table.keys()], [*table.values()]
                encoded = {
                    "!keys": self._encode_items(pairs[0], where),
                    "items": self._encode_items(pairs[1], where),
                }
            case list() | frozenset() as items:
                encoded = self._encode_items(items, where)
            case tuple() as items if field_names(type(items)) is None:
                encoded = {"!tuple": self._encode_items(items, where)}
            case other:
                encoded = self._encode_object(other, where)
        return encoded

    def _encode_object(self, value: Any, where: str) -> dict[str, Any]:
        """Fields of an object under the name of its class."""
        packed = value.packed() if hasattr(value, "packed") else value
        names = field_names(type(packed))
        if names is None:
            raise ValueError(
                f"{where.replace('/', '.')} is a {type(value).__name__}, which a model file cannot hold: "
                "only numbers, text and arrays."
            )
        fields = {name: self.encode(getattr(packed, name), f"{where}/{name}") for name in names}
        return {"!class": type(packed).__name__, **fields}

    def _encode_items(self, items: Iterable[Any], where: str) -> list[Any]:
        return [self.encode(item, f"{where}/{i}") for i, item in enumerate(items)]

    def _encode_array(self, array: NDArray[Any], where: str) -> Any:
        if array.dtype.kind in "biuf" and array.itemsize <= 8:
            return {"!array": self._keep(array, where)}
        if array.dtype.kind not in "UO":
            raise ValueError(
                f"{where.replace('/', '.')} is an array of {array.dtype}, which a model file cannot hold."
            )
        kind = "!texts" if array.dtype.kind == "U" else "!objects"
        if kind == "!texts":
            check_size_of_texts(where.replace("/", "."), array.size, array.itemsize)
        # Distinct items in the order in which they come first, and the position of each item among them.
        items = [(type(item), item) for item in array.ravel().tolist()]
        distinct = {item: i for i, item in enumerate(dict.fromkeys(items))}
        positions = np.array([distinct[item] for item in items], dtype=np.int64).reshape(array.shape)
        listed = self._encode_items([item for _, item in distinct], where)
        return {kind: listed, "positions": self._keep(positions, f"{where}/positions")}

    def _keep(self, array: NDArray[Any], where: str) -> str:
        """Keep an array of numbers; return the path under which it, or an equal one, is kept."""
        # In the byte order of the format, so that the checksum is the same on every machine.
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        name = self._names.setdefault(digest(array), where)
        self.arrays.setdefault(name, array)
        return name


def digest(array: NDArray[Any]) -> bytes:
    """A checksum of the type, the shape and the values of an array."""
    checksum = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    checksum.update(np.ascontiguousarray(array).data if array.size else b"")
    return checksum.digest()


def field_names(kind: type[Any]) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass or a named tuple; None for any other type."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None)


def decode(value: Any, arrays: Arrays) -> Any:
    """The value that `Writer.encode` has written, except for objects of classes; it is not checked."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if any(key.startswith("!") for key in value):
        return _decode_tagged(value, arrays)
    return {key: decode(item, arrays) for key, item in value.items()}


def _decode_tagged(value: dict[str, Any], arrays: Arrays) -> Any:
    match value:
        case {"!array": str() as name}:
            return arrays[name]
        case {"!float": ("inf" | "-inf" | "nan") as text}:
            return float(text)
        case {"!keys": list() as keys, "items": list() as items}:
            return dict(zip(decode(keys, arrays), decode(items, arrays), strict=True))
        case {"!tuple": list() as items}:
            return tuple(decode(item, arrays) for item in items)
        case {"!texts": list() as items, "positions": str() as name} if {*map(type, items)} <= {str}:
            longest = max(map(len, items), default=0)
            check_size_of_texts(name.removesuffix("/positions"), arrays[name].size, 4 * longest)
            check_size_of_texts(name.removesuffix("/positions"), len(items), 4 * longest)
            return _taken(np.array(items, dtype=np.str_), arrays[name])
        case {"!objects": list() as items, "positions": str() as name}:
            distinct = np.empty(len(items), dtype=object)
            distinct[:] = [decode(item, arrays) for item in items]
            return _taken(distinct, arrays[name])
    raise ValueError(f"it holds {next(iter(value))!r}, which is not understood")


def _taken(distinct: NDArray[Any], positions: NDArray[Any]) -> NDArray[Any]:
    inside = positions.dtype == np.int64 and np.all((positions >= 0) & (positions < distinct.size))
    if not inside:
        raise ValueError(f"it has positions that are not whole numbers below {distinct.size}")
    taken: NDArray[Any] = distinct[positions]
    return taken


def check_size_of_texts(name: str, n: int, itemsize: int) -> None:
    """Refuse an array of texts that would be far larger than the texts themselves, before it is made."""
    if n * itemsize > _MOST_BYTES_OF_TEXTS:
        raise ValueError(
            f"{name.rpartition('/')[2]} holds texts too long for so many: {n} of {itemsize // 4} characters"
        )

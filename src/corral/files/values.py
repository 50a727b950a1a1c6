"""Convert the values of a model to JSON and arrays, and back.

JSON refers to an array by a name: the path of keys that leads to the array, such as "state/model_/X". Arrays,
tuples, numbers that are not finite, and objects become JSON objects with a key that begins with "!". `codec`
rebuilds the objects.
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

# Largest size in bytes of an array of texts, in which numpy makes every text as long as the longest text.
_MOST_BYTES_OF_TEXTS = 2**28


class Writer:
    """Converts values to JSON and collects their arrays; of equal arrays only one is stored."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._names: dict[bytes, str] = {}

    @property
    def digests(self) -> dict[str, bytes]:
        """Checksums of the arrays, by name."""
        return {name: checksum for checksum, name in self._names.items()}

    def encode(self, value: Any, where: str) -> Any:
        """Convert a value, whose path is `where`, to JSON; raise ValueError for an unsupported type."""
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
        """Convert an object to its fields and the name of its class."""
        packed = value.packed() if hasattr(value, "packed") else value
        names = field_names(type(packed))
        if names is None:
            raise ValueError(
                f"{where.replace('/', '.')} is a {type(value).__name__}, which cannot be written to a model "
                "file: "
                "only numbers, text and arrays can."
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
                f"{where.replace('/', '.')} is an array of {array.dtype}, which cannot be written to a model "
                "file."
            )
        kind = "!texts" if array.dtype.kind == "U" else "!objects"
        if kind == "!texts":
            check_size_of_texts(where.replace("/", "."), array.size, array.itemsize)
        # The distinct items in the order of first occurrence, and the position of each element among the
        # items.
        items = [(type(item), item) for item in array.ravel().tolist()]
        distinct = {item: i for i, item in enumerate(dict.fromkeys(items))}
        positions = np.array([distinct[item] for item in items], dtype=np.int64).reshape(array.shape)
        listed = self._encode_items([item for _, item in distinct], where)
        return {kind: listed, "positions": self._keep(positions, f"{where}/positions")}

    def _keep(self, array: NDArray[Any], where: str) -> str:
        """Store an array of numbers, unless an equal array is stored; return the name of the stored array."""
        # The byte order of safetensors, so that the checksum is the same on every machine.
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        name = self._names.setdefault(digest(array), where)
        self.arrays.setdefault(name, array)
        return name


def digest(array: NDArray[Any]) -> bytes:
    """Return a checksum of the type, the shape and the values of an array."""
    checksum = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    checksum.update(np.ascontiguousarray(array).data if array.size else b"")
    return checksum.digest()


def field_names(kind: type[Any]) -> tuple[str, ...] | None:
    """Return the names of the fields of a dataclass or a named tuple; None for any other type."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None)


def decode(value: Any, arrays: Arrays) -> Any:
    """Convert JSON of `Writer.encode` back to a value, without checks and without rebuilding objects."""
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
    raise ValueError(f"it contains the unknown key {next(iter(value))!r}")


def _taken(distinct: NDArray[Any], positions: NDArray[Any]) -> NDArray[Any]:
    inside = positions.dtype == np.int64 and np.all((positions >= 0) & (positions < distinct.size))
    if not inside:
        raise ValueError(f"it has positions that are not whole numbers below {distinct.size}")
    taken: NDArray[Any] = distinct[positions]
    return taken


def check_size_of_texts(name: str, n: int, itemsize: int) -> None:
    """Raise ValueError if an array of texts would be too large, as every text is as long as the longest."""
    if n * itemsize > _MOST_BYTES_OF_TEXTS:
        raise ValueError(
            f"{name.rpartition('/')[2]} is too large: {n} texts, the longest of {itemsize // 4} characters"
        )

"""Rebuild the objects of a model file from JSON, and check them against the annotations of their classes.

`Writer.encode` (in `values`) writes a dataclass or named tuple as its fields and the name of its class.
`build` creates the object again: the annotation of a field says which classes and which types of arrays are
allowed, and any other value raises an error. Then the method `validate` of the class checks shapes, bounds
and relations between fields. Classes need not be registered here, and a new field is written as soon as it is
declared.

A class may have two more methods. `packed` returns an object to be written in place of this one, for example
without attributes that can be recomputed. `unpacked` does the reverse after reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from corral.files.values import Arrays, decode, field_names

_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def build(annotation: Any, value: Any, arrays: Arrays, name: str) -> Any:
    """Build an object of the annotated type from JSON; `name` identifies the object in error messages."""
    if annotation is Any:
        return decode(value, arrays)
    return _BUILDERS.get(get_origin(annotation) or annotation, _build_object)(annotation, value, arrays, name)


def check_keys(name: str, keys: Set[str], expected: Set[str]) -> None:
    """Raise ValueError if a key is missing or unexpected."""
    for key in sorted(keys ^ expected):
        raise ValueError(f"{name} {'lacks' if key in expected else 'has no'} {key!r}")


def _build_plain(kind: Any, value: Any, arrays: Arrays, name: str) -> Any:
    plain = decode(value, arrays)
    if type(plain) is not kind:
        raise ValueError(f"{name} is not {_NOUNS[kind]}")
    return plain


def _build_literal(annotation: Any, value: Any, arrays: Arrays, name: str) -> Any:
    if value not in get_args(annotation):
        raise ValueError(f"{name} is {value!r}, and not one of {get_args(annotation)}")
    return value


def _build_array(annotation: Any, value: Any, arrays: Arrays, name: str) -> NDArray[Any]:
    array = decode(value, arrays)
    (scalar,) = get_args(get_args(annotation)[1])
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is not an array")
    if scalar is not Any and array.dtype.type is not scalar:
        raise ValueError(f"{name} is not an array of {np.dtype(scalar)}")
    return array


def _build_sequence(annotation: Any, value: Any, arrays: Arrays, name: str) -> Any:
    origin, types = get_origin(annotation), get_args(annotation)
    items = value.get("!tuple") if origin is tuple and isinstance(value, dict) else value
    if not isinstance(items, list):
        raise ValueError(f"{name} is not a list")
    if origin is not tuple or types[-1] is Ellipsis:
        types = types[:1] * len(items)
    if len(types) != len(items):
        raise ValueError(f"{name} is not a list of {len(types)}")
    built = [build(kind, item, arrays, name) for kind, item in zip(types, items, strict=True)]
    return built if origin is Sequence else origin(built)


def _build_mapping(annotation: Any, value: Any, arrays: Arrays, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a table of values")
    kind = get_args(annotation)[1]
    return {key: build(kind, item, arrays, key) for key, item in value.items()}


def _build_one_of(annotation: Any, value: Any, arrays: Arrays, name: str) -> Any:
    """Build a value of a union of types; an object with fields has the name of its class in the file."""
    if value is None and NoneType in get_args(annotation):
        return None
    types = [kind for kind in get_args(annotation) if kind is not NoneType]
    (plain,) = [kind for kind in types if not _classes(kind)] or [None]
    if plain is None or (isinstance(value, dict) and "!class" in value):
        return _build_object(annotation, value, arrays, name)
    return build(plain, value, arrays, name)


def _build_object(annotation: Any, value: Any, arrays: Arrays, name: str) -> Any:
    """Build an object of one of the annotated classes, and call its checks."""
    kinds: dict[Any, Any] = {kind.__name__: kind for kind in _classes(annotation)}
    kind = kinds.get(value.get("!class")) if isinstance(value, dict) else None
    if kind is None:
        raise ValueError(f"{name} is not a {' or '.join(kinds)}")
    hints = _hints(kind)
    check_keys(name, value.keys() - {"!class"}, hints.keys())
    built = kind(**{field: build(hint, value[field], arrays, field) for field, hint in hints.items()})
    if hasattr(built, "validate"):
        built.validate()
    return built.unpacked() if hasattr(built, "unpacked") else built


_BUILDERS: dict[Any, Callable[[Any, Any, Arrays, str], Any]] = {
    **dict.fromkeys(_NOUNS, _build_plain),
    Literal: _build_literal,
    np.ndarray: _build_array,
    **dict.fromkeys((tuple, list, frozenset, Sequence), _build_sequence),
    **dict.fromkeys((dict, Mapping), _build_mapping),
    **dict.fromkeys((Union, UnionType), _build_one_of),
}


def _classes(annotation: Any) -> list[Any]:
    """Return the classes with fields that an annotation allows, with subclasses and members of a union."""
    if not isinstance(annotation, type):
        return [kind for choice in get_args(annotation) for kind in _classes(choice)]
    children: list[Any] = annotation.__subclasses__()
    derived = [kind for child in children for kind in _classes(child)]
    return derived if field_names(annotation) is None else [annotation, *derived]


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a class; TypeError if it has arrays but no method `validate`."""
    hints = get_type_hints(kind)
    if "ndarray" in str(hints) and not hasattr(kind, "validate"):
        raise TypeError(f"{kind.__name__} has arrays and no method validate")
    return {name: hints[name] for name in field_names(kind) or ()}

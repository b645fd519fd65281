"""The values that a document may hold, and when two values are equal.

A document is a dict of text to values; a value is None, bool, int of 64 bits, float, str, bytes, list or dict.
"""

from __future__ import annotations

import enum
import struct
from typing import Any

_DOUBLE = struct.Struct("<d")


class ValueKind(enum.IntEnum):
    """The type of a value. MARKER and REST are kinds of columns in a schema; no value has them."""

    NULL = 0
    BOOLEAN = 1
    INTEGER = 2
    DOUBLE = 3
    TEXT = 4
    BINARY = 5
    ARRAY = 6
    OBJECT = 7
    MARKER = 8
    """A column without values, which marks an object or array that was always empty."""
    REST = 9
    """The single column of all paths beyond a schema's limit, as MessagePack."""


_KINDS: dict[type, ValueKind] = {
    type(None): ValueKind.NULL,
    bool: ValueKind.BOOLEAN,
    int: ValueKind.INTEGER,
    float: ValueKind.DOUBLE,
    str: ValueKind.TEXT,
    bytes: ValueKind.BINARY,
    list: ValueKind.ARRAY,
    dict: ValueKind.OBJECT,
}


def kind_of(value: object) -> ValueKind:
    """Return the kind of a value. Raises TypeError for values that a document cannot hold."""
    try:
        return _KINDS[type(value)]
    except KeyError:
        raise TypeError(
            f"a document cannot hold a {type(value).__name__}; allowed: {', '.join(sorted(k.__name__ for k in _KINDS))}"
        ) from None


def same(first: Any, second: Any) -> bool:
    """Return whether two values have the same type and bits. 1, 1.0 and True differ, and so do -0.0 and 0.0; NaN equals
    NaN.

    The order of fields is ignored."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return _DOUBLE.pack(first) == _DOUBLE.pack(second)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(value, second[name]) for name, value in first.items())
    return bool(first == second)

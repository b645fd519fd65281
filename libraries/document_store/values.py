"""The model of values: what a document may hold, and when two values are the same.

A document is a dict of text to values; a value is None, bool, int of 64 bits, float, str, bytes, list or dict.
"""

from __future__ import annotations

import enum
import struct
from typing import Any

_DOUBLE = struct.Struct("<d")


class ValueKind(enum.IntEnum):
    """The type of a value. The last two are columns of a schema, and no value has them."""

    NULL = 0
    BOOLEAN = 1
    INTEGER = 2
    DOUBLE = 3
    TEXT = 4
    BINARY = 5
    ARRAY = 6
    OBJECT = 7
    MARKER = 8
    """A column without values: it says that there is an object or array in which nothing was ever seen."""
    REST = 9
    """The one column of all paths beyond a schema's limit, as MessagePack."""


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
    """The kind of a value of the model. Raises TypeError for anything else."""
    try:
        return _KINDS[type(value)]
    except KeyError:
        raise TypeError(
            f"a document cannot hold a {type(value).__name__}: {sorted(k.__name__ for k in _KINDS)}"
        ) from None


def same(first: Any, second: Any) -> bool:
    """Whether both are of one type and of the same bits: 1, 1.0 and True differ, -0.0 and 0.0 too, a NaN is itself.
    The order of fields does not count."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return _DOUBLE.pack(first) == _DOUBLE.pack(second)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(value, second[name]) for name, value in first.items())
    return bool(first == second)

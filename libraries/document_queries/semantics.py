"""What a query means, value by value: the one page that all ways of execution answer to, and the reference for it.

*Values.* Null, boolean, integer (64 bits), double, text, binary, array, object; or missing, which is no value. A field
of something that is no object is missing. Missing and null are never the same.

*Comparisons* have three outcomes: true, false, null (unknown). Comparable are two booleans, two numbers, two texts (by
code point) and two binaries (by byte). Integer and double are both numbers and are compared exactly, without rounding
one to the other: 1 = 1.0 is true, and so is -0.0 = 0.0. Every other pair is null: unlike kinds, arrays, objects, and
whatever is missing, null or NaN. `Not` of null is null, so neither `x = 1` nor `Not(x = 1)` keeps a document without
x. `Exists`, `IsMissing`, `IsNull`, `IsType` and `AnyItem` are true or false, never null. A filter keeps what is true.

*Functions* give null for what they are not made for. `length`: characters of a text. `minus`: of two integers an
integer, or a double if it is beyond 64 bits; of other numbers a double. `floor_divide`, `modulo`: of an integer.

*Equality* (groups, distinct) is kind and bits: 1, 1.0 and True are three groups, 0.0 and -0.0 two, missing and null
two. All NaN are one. Objects are equal whatever the order of their fields.

*Order* (results, ties, min, max, TopK): missing, null, booleans (false first), numbers, texts, binaries, arrays (item
by item, then the shorter), objects (as their fields sorted by name). Numbers by value, integer before double where
equal, -0.0 before 0.0, NaN after infinity. Descending is the exact reverse. Rows of groups come in the order of their
keys; rows of projections and documents in the order of document keys, then of item positions. TopK keeps that order
among ties.

*Aggregates* skip missing and null; `sum` and `avg` skip all that is no number. `count` without an expression counts
tuples. Sums are exact and rounded once, at the end, so no way of execution and no order of documents changes a bit: of
integers an integer (QueryError beyond 64 bits), with at least one double a double. `avg` is that exact sum divided by
the count, rounded once. Nothing to aggregate: `count` and `count_distinct` are 0, all others null. A group without
keys has one row even when there are no tuples.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any, Final

from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST


class Missing:
    """The type of MISSING: no value, which is not null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

KIND_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "double",
    str: "text",
    bytes: "binary",
    list: "array",
    dict: "object",
}
"""Python type -> name of the kind. Missing has none."""

_COMPARED_AS: dict[type, int] = {bool: 1, int: 2, float: 2, str: 3, bytes: 4}
_NAN_BITS = struct.pack("<d", float("nan"))


def step_into(value: Any, path: tuple[str, ...]) -> Any:
    """The value at `path` within `value`, or MISSING."""
    for name in path:
        if type(value) is not dict:
            return MISSING
        value = value.get(name, MISSING)
    return value


def compare(left: Any, operator: str, right: Any) -> bool | None:
    """The outcome of a comparison; None: unknown."""
    kind = _COMPARED_AS.get(type(left))
    if kind is None or kind != _COMPARED_AS.get(type(right)) or left != left or right != right:
        return None
    if operator == "=":
        return bool(left == right)
    if operator == "!=":
        return bool(left != right)
    if operator == "<":
        return bool(left < right)
    if operator == "<=":
        return bool(left <= right)
    if operator == ">":
        return bool(left > right)
    return bool(left >= right)


def call(function: str, operands: list[Any]) -> Any:
    """The value of a function; None for operands it is not made for."""
    first = operands[0]
    if function == "length":
        return len(first) if type(first) is str else None
    second = operands[1]
    if function == "minus":
        return minus(first, second)
    if type(first) is not int:
        return None
    return first // second if function == "floor_divide" else first % second


def minus(left: Any, right: Any) -> int | float | None:
    """The difference of two numbers; None for anything else."""
    if type(left) is int and type(right) is int:
        difference = left - right
        return difference if INTEGER_LOWEST <= difference <= INTEGER_HIGHEST else float(difference)
    if type(left) in (int, float) and type(right) in (int, float):
        return float(left) - float(right)
    return None


def identity(value: Any) -> Hashable:
    """Something that is equal exactly for values of the same kind and bits."""
    kind = type(value)
    if kind is str or kind is int or kind is bytes or value is None or value is MISSING:
        return value
    if kind is float:
        return (float, struct.pack("<d", value) if value == value else _NAN_BITS)
    if kind is bool:
        return (bool, value)
    if kind is list:
        return (list, tuple(identity(item) for item in value))
    return (dict, frozenset((name, identity(part)) for name, part in value.items()))


def order_key(value: Any) -> tuple[Any, ...]:
    """Something that is ordered as values are ordered in results."""
    kind = type(value)
    if kind is int:
        return (3, 0, value, 0)
    if kind is str:
        return (4, value)
    if value is MISSING:
        return (0,)
    if value is None:
        return (1,)
    if kind is bool:
        return (2, value)
    if kind is float:
        if value != value:
            return (3, 1)
        return (3, 0, value, 1 if str(value)[0] == "-" else 2)
    if kind is bytes:
        return (5, value)
    if kind is list:
        return (6, [order_key(item) for item in value])
    return (7, sorted((name, order_key(part)) for name, part in value.items()))

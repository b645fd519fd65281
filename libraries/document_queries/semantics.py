"""The meaning of queries, value by value. Every way of execution has to follow it; this module is its reference.

*Values.* Null, boolean, integer (64 bits), double, text, binary, array, object; or missing, which is the absence of a
value. A field of anything but an object is missing. Missing and null always differ.

*Comparisons* are true, false or null (unknown). Two booleans, two numbers, two texts (by code point) and two binaries
(by byte) are comparable. Integers and doubles are both numbers and are compared exactly, without rounding: 1 = 1.0 is
true, and so is -0.0 = 0.0. All other pairs give null: different kinds, arrays, objects, and any side that is missing,
null or NaN. `Not` of null is null, so neither `x = 1` nor `Not(x = 1)` keeps a document without x. `Exists`,
`IsMissing`, `IsNull`, `IsType` and `AnyItem` are true or false, never null. A filter keeps tuples whose condition is
true.

*Functions* return null for operands that they do not support. `length`: characters of a text. `minus`: of two integers
an integer, or a double if the result exceeds 64 bits; of other numbers a double. `floor_divide`, `modulo`: of an
integer.

*Equality* (groups, distinct) is by kind and bits: 1, 1.0 and True are three groups, 0.0 and -0.0 two, missing and null
two. All NaN are equal. The order of an object's fields does not matter.

*Order* (results, ties, min, max, TopK): missing, null, booleans (false first), numbers, texts, binaries, arrays (item
by item, then the shorter first), objects (by their fields sorted by name). Numbers are ordered by value, integer before
double if equal, -0.0 before 0.0, NaN after infinity. Descending is the exact reverse. Rows of groups come in the order
of their keys; rows of projections and documents in the order of document keys, then of item positions. TopK keeps that
order among ties.

*Aggregates* skip missing and null; `sum` and `avg` skip everything but numbers. `count` without an expression counts
tuples. Sums are exact and rounded once at the end, so the result does not depend on the way of execution or the order
of documents. The sum of integers is an integer (QueryError beyond 64 bits); with at least one double it is a double.
`avg` is the exact sum divided by the count, rounded once. Without values, `count` and `count_distinct` are 0 and all
others null. A group without keys has one row even without tuples.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any, Final

from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST


class Missing:
    """The type of MISSING: the absence of a value, which differs from null."""

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
    """Return the value at `path` within `value`, or MISSING."""
    for name in path:
        if type(value) is not dict:
            return MISSING
        value = value.get(name, MISSING)
    return value


def compare(left: Any, operator: str, right: Any) -> bool | None:
    """Return the outcome of a comparison; None means unknown."""
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
    """Return the value of a function; None for operands that it does not support."""
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
    """Return the difference of two numbers; None for other values."""
    if type(left) is int and type(right) is int:
        difference = left - right
        return difference if INTEGER_LOWEST <= difference <= INTEGER_HIGHEST else float(difference)
    if type(left) in (int, float) and type(right) in (int, float):
        return float(left) - float(right)
    return None


def identity(value: Any) -> Hashable:
    """Return an object that is equal exactly for values of the same kind and bits."""
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
    """Return an object that sorts as values are ordered in results."""
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

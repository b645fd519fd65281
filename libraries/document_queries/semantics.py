"""The meaning of queries, value by value. This module is the reference for every implementation.

*Values.* A value is null, a boolean, an integer (64 bits), a double, a text, a binary, an array, an object, or missing
(the absence of a value). A field of a value that is not an object is missing. Missing and null always differ.

*Comparisons* are true, false or null (unknown). Two booleans, two numbers, two texts (by code point) and two binaries
(by byte) are comparable. Integers and doubles are both numbers and are compared exactly, without rounding: 1 = 1.0 is
true, and so is -0.0 = 0.0. All other pairs give null: values of different kinds, arrays, objects, and pairs in which
one side is missing, null or NaN. `Not` of null is null, so neither `x = 1` nor `Not(x = 1)` keeps a document without x.
`Exists`, `IsMissing`, `IsNull`, `IsType` and `AnyItem` are true or false, never null. A filter keeps tuples whose
condition is true.

*Functions* return null for operands that they do not support. `length` returns the number of characters of a text.
`minus` of two integers is an integer, or a double if the result exceeds 64 bits; `minus` of other numbers is a double.
`floor_divide` and `modulo` accept integers only.

*Equality* (in groups and distinct counts) is by kind and bits. So 1, 1.0 and True are three groups, 0.0 and -0.0 are
two groups, and missing and null are two groups. All NaN are equal. The order of an object's fields does not matter.

*Sort order* (of results and ties, and in min, max and TopK): missing, null, booleans (false first), numbers, texts,
binaries, arrays (item by item, then the shorter first), objects (by their fields sorted by name). Numbers are ordered
by value. An integer precedes an equal double, -0.0 precedes 0.0, and NaN follows infinity. Descending is the exact
reverse. Rows of groups are sorted by the groups' keys. Rows of projections and documents are sorted by document key,
then by item position. TopK keeps this order among ties.

*Aggregates* skip missing and null; `sum` and `avg` skip everything but numbers. `count` without an expression counts
tuples. Sums are exact and rounded once at the end, so the result does not depend on the implementation or the order of
documents. The sum of integers is an integer (QueryError beyond 64 bits); with at least one double it is a double. `avg`
is the exact sum divided by the count, rounded once. Without values, `count` and `count_distinct` are 0 and the other
aggregates are null. A GroupBy without keys returns one row even if there are no tuples.
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
    """Return the outcome of a comparison, or None if it is unknown."""
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
    """Return the value of a function, or None for operands that it does not support."""
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
    """Return the difference of two numbers, or None for other values."""
    if type(left) is int and type(right) is int:
        difference = left - right
        return difference if INTEGER_LOWEST <= difference <= INTEGER_HIGHEST else float(difference)
    if type(left) in (int, float) and type(right) in (int, float):
        return float(left) - float(right)
    return None


def identity(value: Any) -> Hashable:
    """Return a hashable object. The objects of two values are equal exactly if the values have the same kind and
    bits."""
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
    """Return a sort key that puts values in the sort order of results."""
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

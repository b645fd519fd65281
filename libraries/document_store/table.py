"""Convert nested Python values to Arrow arrays. Values of mixed types become JSON text."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from libraries.document_store.values import ValueKind, kind_of

_NUMBERS = {ValueKind.INTEGER, ValueKind.DOUBLE}
EXACT_INTEGERS = 1 << 53
"""Doubles represent all integers up to this size exactly."""


def array_of(values: list[Any], mixed: set[str], path: str) -> pa.Array:
    """Return an array of the values. Arrays become lists, and objects become structs with a field for each name.

    In positions with integers and doubles, the integers become doubles if this changes none of them. Other positions
    with values of several types become JSON text; the paths of these positions are added to `mixed`. `path` is the path
    of the values.
    """
    kinds = {kind_of(value) for value in values} - {ValueKind.NULL}
    if kinds == _NUMBERS and all(type(value) is not int or abs(value) <= EXACT_INTEGERS for value in values):
        return pa.array(values, pa.float64())
    if len(kinds) > 1:
        mixed.add(path)
        return pa.array([None if value is None else json_text(value) for value in values], pa.string())
    if kinds == {ValueKind.ARRAY}:
        return _lists(values, mixed, path)
    if kinds == {ValueKind.OBJECT}:
        return _objects(values, mixed, path)
    return pa.array(values)


def json_text(value: Any) -> str:
    """Return the JSON text of a value, with sorted names, so that equal values have equal texts.

    Binary values become base64. NaN and infinities are written as Python's json module writes them (NaN, Infinity).
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_as_text)


def _as_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _lists(values: list[Any], mixed: set[str], path: str) -> pa.Array:
    items = array_of([item for value in values if value is not None for item in value], mixed, f"{path}[*]")
    offsets: list[int | None] = []
    end = 0
    for value in values:
        offsets.append(None if value is None else end)
        end += 0 if value is None else len(value)
    return pa.ListArray.from_arrays(pa.array([*offsets, end], pa.int32()), items)


def _objects(values: list[Any], mixed: set[str], path: str) -> pa.Array:
    names = list(dict.fromkeys(name for value in values if value is not None for name in value))
    if not names:
        return pa.array(values, pa.struct([]))
    fields = [
        array_of([None if value is None else value.get(name) for value in values], mixed, f"{path}.{name}")
        for name in names
    ]
    return pa.StructArray.from_arrays(fields, names, mask=pa.array([value is None for value in values], pa.bool_()))

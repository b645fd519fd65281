"""Compute the decoded size of a value of each leaf column from the schema."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

_POINTER_BYTES = 16
"""Bytes per text or binary value for its view or offset."""
_LEVEL_BYTES = 4
"""Bytes per value in a list, during decoding."""
_PHYSICAL_BYTES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class Shape(NamedTuple):
    """The memory that a leaf column takes: bytes per value without the bytes of texts, and values per row.

    `slots` is the product of the sizes of all enclosing lists of fixed size, so each row has at least that many values.
    A null list of fixed size takes as many values as any other. Lists of variable size do not change `slots`.
    """

    value_bytes: int
    is_bytes: bool
    repeated: bool
    slots: int


def shapes(metadata: pq.FileMetaData, schema: pa.Schema) -> list[Shape]:
    """Return the shapes of all leaf columns of a file, in order."""
    leaves = [leaf for field in schema for leaf in _leaves(field.type, 1, False)]
    found = []
    for number, (type_, slots, repeated) in enumerate(leaves):
        column = metadata.schema.column(number)
        is_bytes = column.physical_type == "BYTE_ARRAY"
        stored = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        stored = _PHYSICAL_BYTES.get(column.physical_type, stored)
        try:
            decoded = -(-type_.bit_width // 8)
        except ValueError:
            decoded = _POINTER_BYTES
        # One byte stores whether the value is null.
        found.append(Shape(max(stored, decoded) + 1 + _LEVEL_BYTES * repeated, is_bytes, repeated, slots))
    return found


def _leaves(type_: pa.DataType, slots: int, repeated: bool) -> list[tuple[pa.DataType, int, bool]]:
    if isinstance(type_, pa.BaseExtensionType):
        return _leaves(type_.storage_type, slots, repeated)
    if pa.types.is_dictionary(type_):
        return _leaves(type_.value_type, slots, repeated)
    if not pa.types.is_nested(type_):
        return [(type_, slots, repeated)]
    if pa.types.is_fixed_size_list(type_):
        slots, repeated = slots * type_.list_size, True
    elif not pa.types.is_struct(type_):
        repeated = True
    inside = [type_.field(number).type for number in range(type_.num_fields)]
    return [leaf for each in inside for leaf in _leaves(each, slots, repeated)]

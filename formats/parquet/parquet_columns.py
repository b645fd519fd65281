"""Columns of Parquet files: the encodings that each type can have, and the paths of nested columns.

The encodings by type are from Parquet format 2.11, Encodings.md. No setting applies to categories and booleans, because
pyarrow stores them in its own way.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


ENCODINGS = {
    "plain": "PLAIN",
    "split": "BYTE_STREAM_SPLIT",
    "delta": "DELTA_BINARY_PACKED",
    "prefix": "DELTA_BYTE_ARRAY",
    "lengths": "DELTA_LENGTH_BYTE_ARRAY",
}
"""Name of a setting whose value is a list of columns -> Parquet's name for the encoding of these columns."""


def is_flat(kind: pa.DataType) -> bool:
    """Return whether a Parquet file stores a column of this type as a single column. Nested types become several
    columns."""
    import pyarrow.types as pt

    return not pt.is_nested(kind)


def encodings_of(kind: pa.DataType) -> frozenset[str]:
    """Return the settings in ENCODINGS that apply to a column of this type."""
    import pyarrow.types as pt

    whole = pt.is_integer(kind) or pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_time(kind) or pt.is_duration(kind)
    if whole:
        return frozenset({"plain", "split", "delta"})
    if pt.is_floating(kind) or pt.is_decimal(kind):
        return frozenset({"plain", "split"})
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind):
        return frozenset({"plain", "prefix", "lengths"})
    return frozenset()


def unfit(schema: pa.Schema, setting: str, numbers: Iterable[int]) -> str | None:
    """Return why a setting cannot apply to the columns with these numbers; None if it can. `setting` is 'raw', 'order'
    or a key of ENCODINGS."""
    for number in numbers:
        if number >= len(schema):
            return f"{setting} names column {number}, but the table has {len(schema):,} columns, counted from 0"
        kind = schema.field(number).type
        if not (setting in encodings_of(kind) if setting in ENCODINGS else is_flat(kind)):
            return f"{setting} does not apply to column {number} ({schema.names[number]!r}, {kind})"
    return None


def has_ordered_categories(kind: pa.DataType) -> bool:
    """Return whether a type is a dictionary with ordered values, or contains one at any depth."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return bool(kind.ordered)
    return any(has_ordered_categories(kind.field(number).type) for number in range(kind.num_fields))


def leaves(parquet: Any, schema: pa.Schema) -> tuple[str, ...]:
    """Return the path of each column of a file with this schema, such as 'tags.list.element'. `parquet` is the module
    pyarrow.parquet."""
    if all(is_flat(field.type) for field in schema):
        return tuple(schema.names)
    return _leaves(parquet, schema)


@lru_cache(maxsize=4)
def _leaves(parquet: Any, schema: pa.Schema) -> tuple[str, ...]:
    written = io.BytesIO()
    parquet.write_table(schema.empty_table(), written)
    found = parquet.ParquetFile(written).schema
    return tuple(found.column(number).path for number in range(len(found)))

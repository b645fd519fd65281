"""Functions that return the reason why a library cannot store a table. The functions look only at the table's schema,
so that the reason is known before anything is measured.

Every function returns None if it finds no such reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from formats.shared.sql import same_but_for_case

if TYPE_CHECKING:
    import pyarrow as pa


def of_bytes(schema: pa.Schema, library: str) -> str | None:
    """Return a reason if the schema has a column of bytes, for a library that wrongly writes bytes as text."""
    import pyarrow.types as of

    for field in schema:
        if of.is_binary(field.type) or of.is_large_binary(field.type):
            return f"{library} writes bytes as if they were text (column {field.name})"
    return None


def of_nested(schema: pa.Schema, reason: str) -> str | None:
    """Return `reason` with the name and type of a column if the schema has a column of lists, structs or maps."""
    import pyarrow.types as of

    nested = next((field for field in schema if of.is_nested(field.type)), None)
    return None if nested is None else f"{reason} (column {nested.name}: {nested.type})"


def of_printed_vectors(schema: pa.Schema) -> str | None:
    """Return a reason if the schema has a column of vectors (fixed-size lists), which pandas writes incompletely as
    text."""
    import pyarrow.types as of

    for field in schema:
        if of.is_fixed_size_list(field.type):
            return (
                f"pandas writes vectors as numpy prints them: at most 8 digits, and beyond 1,000 values only the first "
                f"and last three (column {field.name})"
            )
    return None


def of_half_floats(schema: pa.Schema, library: str) -> str | None:
    """Return a reason if the schema has a float16 column, for a library without float16."""
    import pyarrow.types as of

    for field in schema:
        if of.is_float16(field.type):
            return f"{library} has no float16 (column {field.name})"
    return None


def of_names_alike(schema: pa.Schema) -> str | None:
    """Return a reason if two names differ only by case. They may be names of two columns, or of two fields of one
    struct.

    DuckDB would rename such a column or field."""
    alike = (reason for names in _names_of(schema) if (reason := same_but_for_case(names)))
    return same_but_for_case(schema.names) or next(alike, None)


def _names_of(parent: pa.Schema | pa.DataType) -> Iterator[list[str]]:
    """Yield the field names of every struct in a schema or nested type, at any depth, as one list for each struct."""
    import pyarrow.types as of

    types = (
        parent.types if hasattr(parent, "types") else [parent.field(place).type for place in range(parent.num_fields)]
    )
    for each in types:
        if of.is_struct(each):
            yield [each.field(place).name for place in range(each.num_fields)]
        if of.is_nested(each):
            yield from _names_of(each)

"""Reasons why calls cannot store data, found from the schema before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from formats.shared.sql import same_but_for_case

if TYPE_CHECKING:
    import pyarrow as pa


def of_bytes(schema: pa.Schema, library: str) -> str | None:
    """Return why a library that writes bytes as text cannot hold the first column of bytes; None if there is none."""
    import pyarrow.types as of

    for field in schema:
        if of.is_binary(field.type) or of.is_large_binary(field.type):
            return f"{library} writes bytes as if they were text (column {field.name})"
    return None


def of_nested(schema: pa.Schema, reason: str) -> str | None:
    """Return `reason` with the name of the first column of lists, structs or maps; None if there is none."""
    import pyarrow.types as of

    nested = next((field for field in schema if of.is_nested(field.type)), None)
    return None if nested is None else f"{reason} (column {nested.name}: {nested.type})"


def of_printed_vectors(schema: pa.Schema) -> str | None:
    """Return why pandas' text cannot hold the first column of vectors; None if there is none."""
    import pyarrow.types as of

    for field in schema:
        if of.is_fixed_size_list(field.type):
            return (
                f"pandas writes vectors as numpy prints them: at most 8 digits, and beyond 1,000 values only the first "
                f"and last three (column {field.name})"
            )
    return None


def of_half_floats(schema: pa.Schema, library: str) -> str | None:
    """Return why a library without float16 cannot hold the first float16 column; None if there is none."""
    import pyarrow.types as of

    for field in schema:
        if of.is_float16(field.type):
            return f"{library} has no float16 (column {field.name})"
    return None


def of_names_alike(schema: pa.Schema) -> str | None:
    """Return why DuckDB cannot hold names that differ only by case (it renames one of them); None if there are none."""
    alike = (reason for names in _names_of(schema) if (reason := same_but_for_case(names)))
    return same_but_for_case(schema.names) or next(alike, None)


def _names_of(parent: pa.Schema | pa.DataType) -> Iterator[list[str]]:
    """Yield the names of the fields of each struct, at any depth."""
    import pyarrow.types as of

    types = (
        parent.types if hasattr(parent, "types") else [parent.field(place).type for place in range(parent.num_fields)]
    )
    for each in types:
        if of.is_struct(each):
            yield [each.field(place).name for place in range(each.num_fields)]
        if of.is_nested(each):
            yield from _names_of(each)

"""Converting JSON Lines to an Arrow table by pyarrow's JSON reader. Texts that look like times stay texts."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.json

from adapters.errors import RefusedData
from document_stores.shared import document_encoding

LEAST_BLOCK_BYTES = 1 << 20
"""Minimum size of the blocks into which pyarrow's reader divides its input. A line must fit into a block."""

MOST_LEVELS = 100
"""Maximum number of levels of a Parquet schema that pyarrow can read. In such a schema, an array takes two levels."""


def table_of(text: bytes, key: str, threads: bool) -> pa.Table:
    """Return all documents as one table. Raises RefusedData for documents that pyarrow cannot convert to a table, or
    could not read back from a Parquet file."""
    if not text.strip():
        return pa.table({key: pa.array([], pa.int64())})
    longest = max(map(len, text.split(b"\n")))
    reading = pa.json.ReadOptions(use_threads=threads, block_size=max(LEAST_BLOCK_BYTES, 2 * longest))
    try:
        table = pa.json.read_json(io.BytesIO(document_encoding.strict(text)), reading)
        said = pa.schema([pa.field(field.name, _without_times(field.type)) for field in table.schema])
        if said != table.schema:
            parsing = pa.json.ParseOptions(explicit_schema=said)
            table = pa.json.read_json(io.BytesIO(text), reading, parsing)
        table.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RefusedData(str(error)) from None
    _check(table, key)
    return table


def _check(table: pa.Table, key: str) -> None:
    if key not in table.column_names:
        raise RefusedData(f"no document has the key {key!r}")
    if (type_ := table.schema.field(key).type) not in (pa.int64(), pa.string()):
        raise RefusedData(f"the key {key!r} must be an int or a text in all documents (got {type_})")
    if table[key].null_count:
        raise RefusedData(f"a document has no value of the key {key!r}")
    for field in table.schema:
        if _levels(field.type) > MOST_LEVELS - 2:
            raise RefusedData(
                f"the field {field.name!r} is nested too deeply: pyarrow reads only {MOST_LEVELS} levels from Parquet"
            )


def _without_times(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _without_times(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_without_times(type_.value_type))
    return pa.string() if pa.types.is_temporal(type_) else type_


def _levels(type_: pa.DataType) -> int:
    if pa.types.is_struct(type_):
        return 1 + max((_levels(field.type) for field in type_), default=0)
    return 2 + _levels(type_.value_type) if pa.types.is_list(type_) else 1

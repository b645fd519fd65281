"""Prepare decoded rows (V1) for sending: convert types that Flight does not support, fix the memory layout, and hash
the result.

Flight streams of batches with metadata cannot carry dictionaries, so dictionary columns are sent as plain values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import xxhash

from libraries.near_storage.errors import DamagedError, RequestError
from libraries.near_storage.reading import working_types


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type without dictionaries that holds the same values."""
    return working_types.mapped(type_, lambda each: each.value_type if pa.types.is_dictionary(each) else None)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which rows of `schema` are sent, i.e. the schema without dictionaries."""
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])


def to_plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert rows to `schema`, which has no dictionaries (see `plain_schema`). Raises RequestError if Arrow does not
    support the conversion."""
    return _cast(batch, schema)


def from_plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert received rows back to the types of the table."""
    return _cast(batch, schema)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return working_types.cast(batch, schema)
    except pa.ArrowException as error:
        raise RequestError(f"the way 'v1' cannot convert these rows ({error}); choose the way 'v2'") from None


_WIDTHS = {
    type.id: type.bit_width // 8
    for type in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us")),
        *(pa.timestamp("us"), pa.duration("us")),
    )
}
"""Bytes per value, by Arrow's type id, for types with a single buffer of values."""


def _values(column: pa.Array) -> memoryview | None:
    """Return the value buffer of a column of fixed width without nulls, which is sent unchanged. Return None for other
    columns."""
    width = _WIDTHS.get(column.type.id)
    if width is None or column.null_count:
        return None
    stored = column.buffers()[1]
    if stored is None:
        return memoryview(b"")
    return memoryview(stored)[column.offset * width : (column.offset + len(column)) * width]


def without_empty_masks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drop the validity bitmaps of fixed-width columns without nulls. Decoders create such bitmaps, but nodes never
    send them."""
    columns = [
        pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], 0, column.offset)
        if column.type.id in _WIDTHS and not column.null_count
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch


def settled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows with their buffers cut and padded, as a client receives them. Fixed-width columns without
    nulls are not copied."""
    columns = batch.columns
    copied = [number for number, column in enumerate(columns) if _values(column) is None]
    if not copied:
        return batch
    some = batch.select(copied)
    some = pa.ipc.read_record_batch(some.serialize(), some.schema)
    for number, column in zip(copied, some.columns, strict=True):
        columns[number] = column
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def sealed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert rows from the types of `working_types.working` to the form in which they are sent: the types of `schema`,
    and the memory layout that `settled` makes.

    Buffers are cut before the conversion to view types (views refer to values in a buffer), because views carry the
    whole buffer.
    """
    own = settled(batch)
    return own if own.schema.equals(schema) else settled(to_plain(own, schema))


def digest_of(batch: pa.RecordBatch, place: Sequence[int] = ()) -> int:
    """Return xxh3 (64 bits) over the lengths, null counts and buffers of a settled batch, before or after sending.

    `place` are the numbers in the batch's metadata that state the batch's position in the answer. The digest covers
    these numbers, because otherwise a batch in a wrong position would pass as another part of the answer.
    """
    columns = batch.columns
    counts = np.array([*place, batch.num_rows, *(column.null_count for column in columns)], "<i8")
    hashing = xxhash.xxh3_64(counts.tobytes())
    for column in columns:
        values = _values(column)
        if values is not None:
            hashing.update(values)
            continue
        for buffer in column.buffers():
            if buffer is None:
                hashing.update(b"\0")
            else:
                hashing.update(buffer.size.to_bytes(8, "little"))
                hashing.update(buffer)
    return hashing.intdigest()


def check(batch: pa.RecordBatch, digest: int, place: Sequence[int] = ()) -> None:
    """Raise DamagedError if the batch or its `place` differs from what was sent. Call this before using the batch."""
    try:
        batch.validate()
        right = digest_of(batch, place) == digest
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise DamagedError(f"a batch is malformed: {str(error)[:200]}") from None
    if not right:
        raise DamagedError("a batch changed in transit: the digest of the batch differs")
    if any(pa.types.is_nested(field.type) for field in batch.schema):
        # Lengths inside nested columns are in no buffer, so the digest does not cover them.
        try:
            batch.validate(full=True)
        except pa.ArrowException as error:
            raise DamagedError(f"a batch is malformed: {str(error)[:200]}") from None

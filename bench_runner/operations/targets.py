"""Conversion of targets. A target is the object that the user has before a save and wants back from a read, such as a
DataFrame.

docs/data.md lists the pandas dtype for each Arrow type. Conversions depend on the types and null counts of the given
object. Conversions must not depend on the data set, and must not read the dtypes that pandas stores in a schema's
metadata.
"""

from __future__ import annotations

import ctypes
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.ctypeslib  # otherwise loaded on first use, which would be within the measured time
import pandas as pd
import pyarrow as pa

from adapters.contract import Images, Native, Records
from bench_runner import data_kinds
from bench_runner.data_kinds import DataKind, kind_of_target
from bench_runner.operations.pages.touching import touch_table
from data_generator.documents import lines_of

PAGE_BYTES = 4096
"""Page size. One byte in each page of a result is read within the measured time (rule 7)."""
PIECE_BYTES = 1_000_000
"""Approximate size of each piece of JSON text that a store receives. This size is realistic, because a program that
receives documents over a network also gets them in pieces."""
RECORDS_PER_BATCH = 65_536
"""Number of rows that are converted at a time between a table and records (Python dicts)."""

MASKED_DTYPES: Mapping[pa.DataType, Any] = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
"""The pandas dtype of a column with nulls, by Arrow type (method rule 8)."""

_LIST_ARRAYS = (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray, pa.ListViewArray, pa.LargeListViewArray)


@dataclass(frozen=True)
class Target:
    """The kind of object that the user saves and wants back.

    kind: 'pandas' (a DataFrame) | 'arrow' (a pyarrow Table) | 'images' (a list of arrays) | 'documents' (JSON Lines to
    store, a list of dicts when read).
    strings: the pandas dtype of text, 'str' | 'object'.
    nulls: the pandas dtypes of integers and booleans with nulls, 'masked' (Int64, boolean) | 'numpy' (float64, object).
    """

    kind: str = "pandas"
    strings: str = "str"
    nulls: str = "masked"

    @property
    def data_kind(self) -> DataKind:
        """The kind of data: tables, images or documents."""
        return kind_of_target(self.kind)


@dataclass(frozen=True)
class Documents:
    """Documents, or rows of a query result, that were read. Each row is a Python object in private memory."""

    rows: list[Any]

    @cached_property
    def nbytes(self) -> int:
        """Size of the documents as JSON text. Computed after timing only."""
        return len(msgspec.json.encode(self.rows))


@dataclass(frozen=True)
class DocumentTable(Documents):
    """Fields of documents as an Arrow table. `rows` is empty."""

    table: pa.Table

    @cached_property
    def nbytes(self) -> int:
        """Size of the table in bytes."""
        return int(self.table.nbytes)


@dataclass(frozen=True)
class Text:
    """The result of raw I/O: JSON Lines that have not been parsed."""

    text: bytes


def apply_strings(target: Target) -> None:
    """Set the pandas dtype of text for the whole process. Call it once, before any other work."""
    with warnings.catch_warnings():
        # pandas will remove this option in version 4. It is the only way to reproduce the measurements of the thesis.
        warnings.filterwarnings("ignore", message=".*future.infer_string.*")
        pd.set_option("future.infer_string", target.strings == "str")


def make(table: pa.Table, target: Target) -> Any:
    """Return the object that a user would save. A DataFrame has one block of memory for each dtype and a RangeIndex; a
    pyarrow Table has no metadata.

    Not timed. The result may share memory with `table`, which must be in private memory. Raises pyarrow's exceptions
    for values that pandas cannot hold.
    """
    return MAKERS[target.data_kind.name](table, target)


def _make_table(table: pa.Table, target: Target) -> Any:
    if target.kind == "arrow":
        return table.replace_schema_metadata(None)
    frame = _to_pandas(table, target)
    # `_to_pandas` inserts text columns one at a time. Copying joins the columns of one dtype in one block.
    return frame.copy() if target.strings == "object" else frame


def images_of(table: pa.Table) -> Images:
    """Return the images to save, each array in separate memory. Not timed."""
    arrays: list[np.ndarray] = []
    for batch in table.to_batches():
        arrays += [array.copy() for array in arrays_of(batch)]
    return Images(arrays, table.column("label").to_pylist())


def arrays_of(batch: pa.RecordBatch) -> Iterator[np.ndarray]:
    """Yield the images of a batch of data_generator.images.SCHEMA as read-only views of its buffer."""
    pixels, offsets = _pixels(batch)
    shapes = (batch.column(name).to_numpy().tolist() for name in ("height", "width", "channels"))
    for start, end, height, width, channels in zip(offsets, offsets[1:], *shapes, strict=False):
        yield pixels[start:end].reshape((height, width, channels) if channels else (height, width))


def _pixels(batch: pa.RecordBatch) -> tuple[np.ndarray, list[int]]:
    """Return the pixel buffer of a batch, and the offsets of the images in this buffer. Image i begins at offsets[i]
    and ends at offsets[i + 1]."""
    column = batch.column("pixels")
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8), places.tolist()


def pieces(lines: list[bytes], piece_bytes: int) -> Iterator[bytes]:
    """Yield pieces of about `piece_bytes` bytes, each of which consists of whole lines."""
    held: list[bytes] = []
    held_bytes = 0
    for line in lines:
        held.append(line)
        held_bytes += len(line)
        if held_bytes >= piece_bytes:
            yield b"".join(held)
            held, held_bytes = [], 0
    if held:
        yield b"".join(held)


MAKERS: dict[str, Callable[[pa.Table, Target], Any]] = {
    data_kinds.TABLES.name: _make_table,
    data_kinds.IMAGES.name: lambda table, target: images_of(table),
    data_kinds.DOCUMENTS.name: lambda table, target: list(pieces(lines_of(table), PIECE_BYTES)),
}
"""Functions that make the user's object from a cached table. The keys are names of kinds of data."""


def to_native(held: Any, target: Target, native: Native) -> Any:
    """Return the user's object converted to the engine's input. Timed, before a save."""
    if not target.data_kind.has_columns:
        return held
    if native is Native.PANDAS:
        return held if target.kind == "pandas" else _to_pandas(held, target)
    table = held if target.kind == "arrow" else pa.Table.from_pandas(held, preserve_index=False)
    if native is Native.POLARS:
        return _to_polars(table)
    return _to_records(table) if native is Native.RECORDS else table


def from_native(result: Any, target: Target, native: Native) -> Any:
    """Return the engine's result converted to the object that the user wants. Timed, after a read."""
    if not target.data_kind.has_columns:
        return result
    if native is Native.PANDAS:
        if target.kind == "pandas":
            return result
        return pa.Table.from_pandas(result, preserve_index=False).replace_schema_metadata(None)
    table = _to_table(result, native)
    return _to_pandas(table, target) if target.kind == "pandas" else table


def select(result: Any, native: Native, columns: list[str]) -> Any:
    """Return these columns of a result, in this order. Timed. Used for an engine that cannot read single columns."""
    if native is Native.RECORDS:
        schema = None if result.schema is None else pa.schema([result.schema.field(name) for name in columns])
        return Records(schema, ({name: row[name] for name in columns} for row in result.rows))
    # Both pandas and polars DataFrames take a list of names in brackets.
    return result.select(columns) if isinstance(result, pa.Table) else result[columns]


def _to_polars(table: pa.Table) -> Any:
    """Return a polars DataFrame that shares the table's values. The adapter has loaded polars already."""
    import polars

    return polars.from_arrow(table)


def _to_table(result: Any, native: Native) -> pa.Table:
    if native is Native.RECORDS:
        return _from_records(result)
    return result.to_arrow() if native is Native.POLARS else result


def _to_pandas(table: pa.Table, target: Target) -> pd.DataFrame:
    """Return the DataFrame that method rule 8 defines, by Arrow type and null count."""
    as_objects = _text_columns(table) if target.strings == "object" else {}
    rest = table.drop_columns(list(as_objects.values())) if as_objects else table
    dtypes = iter([_masked_dtype(column, target) for column in rest.columns])
    # pyarrow calls the mapper once for each field, in the order of the schema. The mapper's argument, a type, does not
    # show whether the column has nulls.
    frame = rest.to_pandas(ignore_metadata=True, types_mapper=lambda _: next(dtypes))
    for position, name in as_objects.items():
        # pyarrow converts text to `str` in pandas 3, whatever pandas option is set, so convert object text here.
        values = table.column(position).to_numpy(zero_copy_only=False)
        frame.insert(position, name, pd.Series(values, index=frame.index, dtype=object, copy=False))
    return frame


def _text_columns(table: pa.Table) -> dict[int, str]:
    return {position: field.name for position, field in enumerate(table.schema) if is_text(field.type)}


def is_text(arrow_type: pa.DataType) -> bool:
    """Return whether this is one of Arrow's three text types, which the verification treats as equal."""
    return arrow_type in (pa.string(), pa.large_string(), pa.string_view())


def _masked_dtype(column: pa.ChunkedArray, target: Target) -> Any:
    if target.nulls != "masked" or column.null_count == 0:
        return None
    return MASKED_DTYPES.get(column.type)


def _to_records(table: pa.Table) -> Records:
    """Return the rows as records. The records are made batch by batch while they are consumed. A field of the schema is
    nullable only if its column has nulls. A user would write the same schema for the data."""
    has_nulls = [column.null_count > 0 for column in table.columns]
    fields = [field.with_nullable(nulls) for field, nulls in zip(table.schema, has_nulls, strict=True)]
    return Records(pa.schema(fields), _rows(table))


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    names = table.column_names
    for batch in table.to_batches(max_chunksize=RECORDS_PER_BATCH):
        for values in zip(*(column.to_pylist(maps_as_pydicts="strict") for column in batch.columns), strict=True):
            yield dict(zip(names, values, strict=True))


def _from_records(records: Records) -> pa.Table:
    if records.schema is None:
        # Convert all rows together, because the type of a column depends on all of its values.
        values = list(records.rows)
        return pa.Table.from_struct_array(pa.array(values)) if values else pa.table({})
    rows = iter(records.rows)
    row_type = pa.struct(list(records.schema))
    batches = []
    while part := list(itertools.islice(rows, RECORDS_PER_BATCH)):
        batches.append(pa.RecordBatch.from_struct_array(pa.array(part, type=row_type)))
    return pa.Table.from_batches(batches, schema=records.schema)


def buffers(held: Any) -> Iterator[tuple[int, int]]:
    """Yield the address and size in bytes of every buffer of a DataFrame, a Table or images, without duplicates. For
    columns of Python objects, only the array of pointers is a buffer. Python created the objects in private memory."""
    if isinstance(held, Images):
        yield from ((array.__array_interface__["data"][0], array.nbytes) for array in held.arrays)
        return
    if isinstance(held, DocumentTable):
        yield from buffers(held.table)
        return
    if isinstance(held, Documents):
        # Python created each of the documents' objects in private memory.
        return
    if isinstance(held, Text):
        yield np.frombuffer(held.text, np.uint8).ctypes.data, len(held.text)
        return
    seen: set[tuple[int, int]] = set()
    for buffer in _frame_buffers(held) if isinstance(held, pd.DataFrame) else _table_buffers(held):
        if buffer[1] > 0 and buffer not in seen:
            seen.add(buffer)
            yield buffer


def _table_buffers(table: pa.Table) -> Iterator[tuple[int, int]]:
    for column in table.columns:
        yield from _chunk_buffers(column)


def _chunk_buffers(column: pa.ChunkedArray) -> Iterator[tuple[int, int]]:
    for chunk in column.chunks:
        for part in (chunk, *_dictionaries(chunk)):
            yield from ((buffer.address, buffer.size) for buffer in part.buffers() if buffer is not None)


def _dictionaries(array: pa.Array) -> Iterator[pa.Array]:
    """Yield every dictionary in an array, at any depth. buffers() includes buffers of children, but not of
    dictionaries."""
    if pa.types.is_dictionary(array.type):
        yield array.dictionary
        yield from _dictionaries(array.dictionary)
    elif pa.types.is_map(array.type):
        yield from _dictionaries(array.keys)
        yield from _dictionaries(array.items)
    elif pa.types.is_struct(array.type):
        for position in range(array.type.num_fields):
            yield from _dictionaries(array.field(position))
    elif isinstance(array, _LIST_ARRAYS):
        yield from _dictionaries(array.values)


def _frame_buffers(frame: pd.DataFrame) -> Iterator[tuple[int, int]]:
    for position in range(frame.shape[1]):
        yield from _series_buffers(frame.iloc[:, position].array)


def _series_buffers(values: Any) -> Iterator[tuple[int, int]]:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        yield _whole_array(values.codes)
        yield from _series_buffers(values.categories.array)
    elif isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow":
        arrow = values.__arrow_array__()
        yield from _chunk_buffers(arrow if isinstance(arrow, pa.ChunkedArray) else pa.chunked_array([arrow]))
    elif dtype in MASKED_DTYPES.values():
        # pandas has no public access to the two arrays of a masked array without copying them.
        yield _whole_array(values._data)
        yield _whole_array(values._mask)
    elif dtype.kind in "mM":
        yield _whole_array(values.view("i8"))
    else:
        yield _whole_array(values.to_numpy(copy=False))


def _whole_array(array: np.ndarray) -> tuple[int, int]:
    """Return the address and size of an array's memory. If the array is a view, such as a column of a pandas block,
    return the address and size of the whole block."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high - low


def touch(held: Any) -> int:
    """Read one byte in each 4 KiB page of every buffer (method rule 7) and return the sum of the bytes read. In an
    Arrow table, read only the pages that its rows occupy."""
    if isinstance(held, Images):
        return _touch_images(held)
    if isinstance(held, pa.Table) and (touched := touch_table(held)) is not None:
        return touched
    return sum(touch_pages(address, size_bytes) for address, size_bytes in buffers(held))


def _touch_images(held: Images) -> int:
    """Read at least one byte in each 4 KiB page of every array (method rule 7) and return the sum of the bytes read."""
    total = 0
    for array in held.arrays:
        # An array no larger than a page spans at most two pages: the pages of its first and of its last byte.
        total += array.item(0) + array.item(-1) if array.nbytes <= PAGE_BYTES else _touch_array(array.reshape(-1))
    return total


def _touch_array(array: np.ndarray) -> int:
    return int(array[::PAGE_BYTES].sum()) + int(array[-1])


def touch_pages(address: int, size_bytes: int) -> int:
    """Read one byte in each 4 KiB page of a piece of memory and return the sum of the bytes read."""
    if size_bytes <= PAGE_BYTES:
        # The memory spans at most two pages. Creating a numpy view would take longer than a short call.
        ends = address, address + size_bytes - 1
        return sum(ctypes.c_uint8.from_address(place).value for place in ends)
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))
    to_next_page = -address % PAGE_BYTES or PAGE_BYTES
    return int(memory[0]) + int(memory[to_next_page::PAGE_BYTES].sum())

"""Raw I/O: the speed of the machine without any format, as the yardstick for every figure.

The Arrow buffers of the table are written by plain writes as an Arrow IPC stream, with a few bytes of metadata before
each batch. A read fills fresh memory by one `readinto`, and the table refers to this memory without a copy. Columns are
read by one `readinto` per column and batch, from the offsets in the messages, and rows by one `preadv` each. A
condition reads its column, makes a mask, and applies the mask to the other columns. Nothing is encoded. Raw I/O is not
a format to use.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adapters.contract import Can, Maturity, Native, Stage, Stored, TabularFormat
from adapters.errors import AdapterError
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from formats.shared.arrow_ipc import Message
from formats.shared.arrow_rows import Runs, has_rows, read_rows
from formats.shared.conditions import arrow_mask
from formats.shared.rows import checked, starts_of
from formats.shared.streams import tables, whole_or_nothing

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = struct.Struct("<8sQ")
"""Magic, and the number of bytes that follow. 16 bytes preserve the alignment of buffers in an Arrow stream."""

_MAGIC = b"FB-FLOOR"

_PREFIX = struct.Struct("<II")
"""Prefix of the metadata of each message of a stream: a mark, and the length of the metadata. Length 0 ends the stream.
"""

_END = _PREFIX.pack(0xFFFFFFFF, 0)


@dataclass(frozen=True)
class _Layout:
    """The offsets of columns in a file, and by offset the other bytes that a stream needs."""

    schema: pa.Schema
    columns: tuple[list[tuple[int, int]], ...]
    """First byte and end of each batch of each column."""
    buffers: tuple[np.ndarray, ...]
    """Offset of each buffer of each column, int64 of shape (buffers, batches); -1 where a batch has none."""
    starts: np.ndarray
    """Number of the first row of each batch, followed by the number of all rows."""
    others: dict[int, bytes]


class RawIO(TabularFormat):
    """Arrow buffers by plain write and readinto."""

    format = "raw-io"
    engine = "readinto"
    title = "Raw I/O"
    distributions = ("pyarrow",)
    native = Native.BUFFERS
    suffix = ".raw"
    maturity = Maturity(Stage.EXPERIMENTAL, "a yardstick, not a format: nothing else reads it", ours=True)
    capabilities = frozenset({Can.APPEND, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.NO_PICKLE})
    # Reads other than of single rows use seek, and a file has only one position.
    offers = Offers(
        project=True,
        take=Reach.ROWS,
        scan=frozenset(Kind),
        append=True,
        sharing=Sharing.EACH,
        keeps_columns=True,
        batches=True,
        save_stream=True,
    )

    def load_library(self) -> None:
        """Import pyarrow."""
        import pyarrow

        self._arrow = pyarrow

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the header, the schema and each buffer."""
        self._write(table.schema, [table], location)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write the buffers of each batch as it arrives. The header records at the end that all have arrived."""
        with whole_or_nothing(location):
            self._write(schema, batches, location)

    def _write(self, schema: pa.Schema, data: Iterable[pa.Table | pa.RecordBatch], location: Path) -> None:
        with self._arrow.OSFile(str(location), "wb") as file:
            file.write(_HEADER.pack(_MAGIC, 0))
            with self._arrow.ipc.new_stream(file, schema) as stream:
                for each in data:
                    stream.write(each)
            size_bytes = file.tell()
        with location.open("r+b", buffering=0) as file:
            file.write(_HEADER.pack(_MAGIC, size_bytes - _HEADER.size))

    def read(self, location: Path) -> pa.Table:
        """Read the file into one fresh buffer and lay the table over it. Raises AdapterError for incomplete files."""
        buffer = self._arrow.allocate_buffer(location.stat().st_size)
        with FileIO(location) as file:
            view = memoryview(buffer)
            filled = _fill(file, view)
        self._check(location, view[: _HEADER.size].tobytes(), filled)
        with self._arrow.ipc.open_stream(buffer.slice(_HEADER.size)) as stream:
            return stream.read_all()

    def open(self, location: Path) -> Handle:
        """Open the file and find the columns from its messages. Raises AdapterError for incomplete files."""
        return self._opened(FileIO(location), location)

    def open_rows(self, location: Path) -> Handle:
        """Like `open`, without read-ahead: the system reads only the pages that hold requested rows.

        Raises AdapterError if `save` has not finished the file.
        """
        file = FileIO(location)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        return self._opened(file, location)

    def _opened(self, file: FileIO, location: Path) -> Handle:
        try:
            self._check(location, file.read(_HEADER.size), location.stat().st_size)
            layout = self._layout(file)
        except BaseException:
            file.close()
            raise
        size_bytes = location.stat().st_size

        def project(columns: Sequence[str]) -> pa.Table:
            places = [_place(layout.schema, column) for column in columns]
            # The buffer is as large as the file, but parts that are never touched take no memory.
            buffer = self._arrow.allocate_buffer(size_bytes)
            view = memoryview(buffer).cast("B")
            for start, piece in layout.others.items():
                view[start : start + len(piece)] = piece
            for place in places:
                for start, stop in layout.columns[place]:
                    file.seek(start)
                    _fill(file, view[start:stop])
            options = self._arrow.ipc.IpcReadOptions(included_fields=places)
            with self._arrow.ipc.open_stream(buffer.slice(_HEADER.size), options=options) as stream:
                return stream.read_all().select(columns)

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            checked(numbers, int(layout.starts[-1]))
            # If batches without rows start at the same number, this finds the last batch, which has the row.
            batches = np.searchsorted(layout.starts, numbers, side="right") - 1
            runs = Runs(batches, numbers - layout.starts[batches], np.ones(len(numbers), np.int64))
            fields = [layout.schema.field(_place(layout.schema, column)) for column in columns]
            arrays = []
            for field in fields:
                if has_rows(field.type):
                    buffers = iter(layout.buffers[_place(layout.schema, field.name)])
                    arrays.append(read_rows(file.fileno(), field.type, buffers, runs))
                else:
                    arrays.append(project([field.name]).column(0).take(self._arrow.array(numbers)))
            return self._arrow.Table.from_arrays(arrays, schema=self._arrow.schema(fields))

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            met = arrow_mask(project([predicate.column]).column(0), predicate)
            return project(columns).filter(met)

        def batches(columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
            places = [_place(layout.schema, column) for column in columns]
            options = self._arrow.ipc.IpcReadOptions(included_fields=places)
            with self._arrow.OSFile(str(location)) as source:
                source.seek(_HEADER.size)
                with self._arrow.ipc.open_stream(source, options=options) as stream:
                    yield from tables(stream, columns, rows)

        return Handle(project=project, take=take, scan=scan, batches=batches, close=file.close)

    def append(self, table: pa.Table, location: Path) -> None:
        """Write the buffers over the mark that ends the stream, and write the mark after them.

        Raises AdapterError if `save` has not finished the file.
        """
        sink = self._arrow.BufferOutputStream()
        with self._arrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        messages = memoryview(sink.getvalue())
        _, schema_bytes = _PREFIX.unpack(messages[: _PREFIX.size])
        with location.open("r+b", buffering=0) as file:
            self._check(location, file.read(_HEADER.size), location.stat().st_size)
            file.seek(-len(_END), os.SEEK_END)
            # Skip the schema, the first message, which the file has already.
            _write_all(file, messages[_PREFIX.size + schema_bytes :])
            size_bytes = file.tell()
            file.seek(0)
            file.write(_HEADER.pack(_MAGIC, size_bytes - _HEADER.size))

    def _layout(self, file: FileIO) -> _Layout:
        messages = _messages(file)
        start, head, _ = next(messages)
        others = {start: head}
        schema = self._arrow.ipc.read_schema(self._arrow.py_buffer(head))
        columns: tuple[list[tuple[int, int]], ...] = tuple([] for _ in schema)
        buffers: tuple[list[list[int]], ...] = tuple([] for _ in schema)
        rows = []
        for start, head, message in messages:
            others[start] = head
            body = start + len(head)
            if not message.is_record_batch:
                # Dictionaries are read whole, because they are small compared with their columns.
                others[body] = file.read(message.body_bytes)
                continue
            rows.append(message.rows)
            for column, places, found in zip(columns, buffers, message.buffers(schema), strict=True):
                first = body + found[0][0] if found else body
                column.append((first, max((body + offset + length for offset, length in found), default=first)))
                places.append([body + offset if length else -1 for offset, length in found])
        others[file.tell() - len(_END)] = _END
        # Batches may have different numbers of buffers for views, whose rows are never looked up.
        arrays = tuple(
            np.array(places, np.int64).T if places and has_rows(field.type) else np.empty((0, 0), np.int64)
            for field, places in zip(schema, buffers, strict=True)
        )
        return _Layout(schema, columns, arrays, starts_of(rows), others)

    def _check(self, location: Path, header: bytes, size_bytes: int) -> None:
        if len(header) < _HEADER.size or not header.startswith(_MAGIC):
            raise AdapterError(f"{location}: not a raw I/O file (it begins with {header[:8]!r}, not {_MAGIC!r})")
        _, body_bytes = _HEADER.unpack(header)
        if body_bytes != size_bytes - _HEADER.size:
            raise AdapterError(
                f"{location}: {size_bytes - _HEADER.size:,} bytes after the header, which states {body_bytes:,}; "
                "the save did not finish"
            )

    def stored(self, location: Path) -> Stored:
        """Return no codec, after checking the header."""
        with location.open("rb") as file:
            self._check(location, file.read(_HEADER.size), location.stat().st_size)
        return Stored()


def _messages(file: FileIO) -> Iterator[tuple[int, bytes, Message]]:
    """Yield for each message of the stream its offset, its prefix with metadata, and the parsed metadata.

    The file is then at the beginning of the message's body, at the end of the stream after its final mark.
    """
    start = _HEADER.size
    while True:
        file.seek(start)
        prefix = file.read(_PREFIX.size)
        _, metadata_bytes = _PREFIX.unpack(prefix)
        if not metadata_bytes:
            return
        metadata = file.read(metadata_bytes)
        message = Message(metadata)
        yield start, prefix + metadata, message
        start += len(prefix) + metadata_bytes + message.body_bytes


def _write_all(file: FileIO, view: memoryview) -> None:
    """Write all bytes. One call writes at most 2 GiB."""
    written = 0
    while written < len(view):
        written += file.write(view[written:])


def _place(schema: pa.Schema, column: str) -> int:
    place = int(schema.get_field_index(column))
    if place < 0:
        raise KeyError(column)
    return place


def _fill(file: FileIO, view: memoryview) -> int:
    """Read until the memory is full or the file ends; return the number of bytes. One call reads at most 2 GiB."""
    filled = 0
    while received := file.readinto(view[filled:]):
        filled += received
    return filled


ENGINES = (RawIO,)

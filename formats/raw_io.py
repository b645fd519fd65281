"""Raw I/O: write and read a table's bytes without any format, to measure how fast this machine can be.

The times of formats are compared with the times of raw I/O. Raw I/O is not a format to use. A file is an Arrow IPC
stream after a short header. The buffers of the table are written unchanged, with a few bytes of metadata before each
record batch. To read the table, one `readinto` fills new memory, and the table refers to this memory without a copy. To
read columns, one `readinto` for each column and record batch reads the column's bytes, whose positions are in the
metadata. To read single rows, the bytes of neighbouring rows are read by one `preadv`. A condition is tested on its
column, and the other columns are filtered by the result.
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
"""The header of a file: a text that identifies the format, and the number of bytes after the header.

The header has 16 bytes, so that the buffers of the Arrow stream after it keep their alignment."""

_MAGIC = b"FB-FLOOR"

_PREFIX = struct.Struct("<II")
"""The bytes before each message of an Arrow stream: a fixed number, and the length of the message's metadata. A length
of 0 marks the end of the stream."""

_END = _PREFIX.pack(0xFFFFFFFF, 0)


@dataclass(frozen=True)
class _Layout:
    """Where a file has the data of each column."""

    schema: pa.Schema
    columns: tuple[list[tuple[int, int]], ...]
    """For each column, a list with one range of bytes for each record batch. A range has all buffers of the column."""
    buffers: tuple[np.ndarray, ...]
    """For each column, an int64 array of shape (buffers, record batches) with the position of each buffer in the file,
    or -1 if the batch does not have this buffer."""
    starts: np.ndarray
    """Number of the first row of each record batch, followed by the total number of rows."""
    others: dict[int, bytes]
    """The other bytes of the stream, such as metadata and dictionaries, by their position in the file."""


class RawIO(TabularFormat):
    """Write a table's Arrow buffers unchanged, and read them by `readinto`."""

    format = "raw-io"
    engine = "readinto"
    title = "Raw I/O"
    distributions = ("pyarrow",)
    native = Native.BUFFERS
    suffix = ".raw"
    maturity = Maturity(Stage.EXPERIMENTAL, "a yardstick, not a format: nothing else reads it", ours=True)
    capabilities = frozenset({Can.APPEND, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.NO_PICKLE})
    # Each thread needs its own handle, because reading columns changes the file's position by `seek`.
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
        """Write the buffers of each batch when it arrives, and at the end the header, which then marks the file as
        complete."""
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
        """Read the file into one new buffer, and return a table that refers to this buffer.

        Raises AdapterError if `save` has not finished the file."""
        buffer = self._arrow.allocate_buffer(location.stat().st_size)
        with FileIO(location) as file:
            view = memoryview(buffer)
            filled = _fill(file, view)
        self._check(location, view[: _HEADER.size].tobytes(), filled)
        with self._arrow.ipc.open_stream(buffer.slice(_HEADER.size)) as stream:
            return stream.read_all()

    def open(self, location: Path) -> Handle:
        """Return a handle, which holds the open file and the positions of the columns in this file.

        Raises AdapterError if `save` has not finished the file."""
        return self._opened(FileIO(location), location)

    def open_rows(self, location: Path) -> Handle:
        """Return the same handle as `open`, but without read-ahead by the operating system.

        The system then reads only pages of the file that contain requested rows. Raises AdapterError if `save` has not
        finished the file.
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
            # The buffer is as large as the file, but the system assigns memory only to the parts that are written.
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
            # A batch without rows starts at the same row number as the next batch. `side="right"` finds the batch with
            # the row.
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
        """Replace the end mark of the stream by the buffers of the new rows and a new end mark.

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
            # The first message, which is the schema, is left out, because the file already has it.
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
                # A message without rows is a dictionary. It is read completely, because dictionaries are small.
                others[body] = file.read(message.body_bytes)
                continue
            rows.append(message.rows)
            for column, places, found in zip(columns, buffers, message.buffers(schema), strict=True):
                first = body + found[0][0] if found else body
                column.append((first, max((body + offset + length for offset, length in found), default=first)))
                places.append([body + offset if length else -1 for offset, length in found])
        others[file.tell() - len(_END)] = _END
        # The number of buffers of a column of views may differ between batches, so that no array is possible. Rows of
        # such columns are not read by buffers.
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
                f"{location}: {size_bytes - _HEADER.size:,} bytes follow the header, which announces {body_bytes:,}; "
                "the save did not finish"
            )

    def stored(self, location: Path) -> Stored:
        """Return that the file has no codec. Raises AdapterError if `save` has not finished the file."""
        with location.open("rb") as file:
            self._check(location, file.read(_HEADER.size), location.stat().st_size)
        return Stored()


def _messages(file: FileIO) -> Iterator[tuple[int, bytes, Message]]:
    """Yield three things for each message of the stream: the message's position in the file, the bytes of its prefix
    and metadata, and the parsed metadata.

    When a message is yielded, the file's position is the beginning of the message's body. After the last message, the
    position is the end of the stream.
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
    """Write all bytes of `view` by as many calls as needed, because one call writes at most 2 GiB."""
    written = 0
    while written < len(view):
        written += file.write(view[written:])


def _place(schema: pa.Schema, column: str) -> int:
    place = int(schema.get_field_index(column))
    if place < 0:
        raise KeyError(column)
    return place


def _fill(file: FileIO, view: memoryview) -> int:
    """Read until `view` is full or the file ends, and return the number of bytes.

    This takes several calls for large files, because one call reads at most 2 GiB."""
    filled = 0
    while received := file.readinto(view[filled:]):
        filled += received
    return filled


ENGINES = (RawIO,)

"""Raw I/O: what the machine can do without any format, for every figure to be set against.

The table's own Arrow buffers go to a file by plain writes, each after a few bytes that say what it is (an Arrow IPC
stream), and come back by one `readinto` into fresh memory that the table then lies in. Of some columns come the bytes
that the messages name, by one `readinto` for each column and batch; of some rows their bytes, by a `preadv` each; of a
condition its column, a mask of it, and what the mask leaves of the other columns. Nothing is encoded. It is a
yardstick, not a format to use.
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
"""Magic, and how many bytes follow; 16 bytes keep the alignment that an Arrow stream gives its buffers."""

_MAGIC = b"FB-FLOOR"

_PREFIX = struct.Struct("<II")
"""What precedes the metadata of each message of a stream: a mark, and their length; 0 ends the stream."""

_END = _PREFIX.pack(0xFFFFFFFF, 0)


@dataclass(frozen=True)
class _Layout:
    """Where the columns lie in a file, and what else a stream needs to be one: bytes by where they lie."""

    schema: pa.Schema
    columns: tuple[list[tuple[int, int]], ...]
    """From where to where, for each batch of each column."""
    buffers: tuple[np.ndarray, ...]
    """Where each buffer of each column begins, int64 of shape (buffers, batches); -1 where a batch has none."""
    starts: np.ndarray
    """The number of the first row of each batch, and behind the last one that of all rows."""
    others: dict[int, bytes]


class RawIO(TabularFormat):
    """Arrow buffers by plain write and readinto."""

    format = "raw-io"
    engine = "readinto"
    title = "Raw I/O"
    distributions = ("pyarrow",)
    native = Native.BUFFERS
    suffix = ".raw"
    maturity = Maturity(Stage.EXPERIMENTAL, "a yardstick and no format: nothing else reads it", ours=True)
    capabilities = frozenset({Can.APPEND, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.NO_PICKLE})
    # What is not read by rows is found by a seek, of which a file has one place.
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
        """Write the buffers of each batch as it comes; the header tells in the end that all have come."""
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
        """Read the whole file into one fresh buffer and lay the table over it.

        Raises AdapterError when the file is not one that `save` has finished.
        """
        buffer = self._arrow.allocate_buffer(location.stat().st_size)
        with FileIO(location) as file:
            view = memoryview(buffer)
            filled = _fill(file, view)
        self._check(location, view[: _HEADER.size].tobytes(), filled)
        with self._arrow.ipc.open_stream(buffer.slice(_HEADER.size)) as stream:
            return stream.read_all()

    def open(self, location: Path) -> Handle:
        """Open the file and learn from its messages where each column lies.

        Raises AdapterError when the file is not one that `save` has finished.
        """
        return self._opened(FileIO(location), location)

    def open_rows(self, location: Path) -> Handle:
        """As `open`, and nothing is read along: the system fetches the pages that a row lies in, and no others.

        Raises AdapterError when the file is not one that `save` has finished.
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
            # As large as the file: what is not filled is never touched, so it takes no memory.
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
            # Of batches without rows the last one is found, which is the one that has the row.
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
        """Write the buffers over the mark that ends the stream, and the mark behind them.

        Raises AdapterError when the file is not one that `save` has finished.
        """
        sink = self._arrow.BufferOutputStream()
        with self._arrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        messages = memoryview(sink.getvalue())
        _, schema_bytes = _PREFIX.unpack(messages[: _PREFIX.size])
        with location.open("r+b", buffering=0) as file:
            self._check(location, file.read(_HEADER.size), location.stat().st_size)
            file.seek(-len(_END), os.SEEK_END)
            # The first message is the schema, which is there.
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
                # Dictionaries come whole, whichever columns are asked for: they are small beside their columns.
                others[body] = file.read(message.body_bytes)
                continue
            rows.append(message.rows)
            for column, places, found in zip(columns, buffers, message.buffers(schema), strict=True):
                first = body + found[0][0] if found else body
                column.append((first, max((body + offset + length for offset, length in found), default=first)))
                places.append([body + offset if length else -1 for offset, length in found])
        others[file.tell() - len(_END)] = _END
        # Of views the number of buffers is not the same in all batches: nobody looks for their rows.
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
                f"{location}: {size_bytes - _HEADER.size:,} bytes after the header, which says {body_bytes:,}; "
                "the save did not finish"
            )

    def stored(self, location: Path) -> Stored:
        """No codec; the header must be sound."""
        with location.open("rb") as file:
            self._check(location, file.read(_HEADER.size), location.stat().st_size)
        return Stored()


def _messages(file: FileIO) -> Iterator[tuple[int, bytes, Message]]:
    """Where each message of the stream lies, its prefix with its metadata, and what they say. The file is left where
    its body begins, in the end behind the mark that ends the stream."""
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
    """One call takes at most 2 GiB."""
    written = 0
    while written < len(view):
        written += file.write(view[written:])


def _place(schema: pa.Schema, column: str) -> int:
    place = int(schema.get_field_index(column))
    if place < 0:
        raise KeyError(column)
    return place


def _fill(file: FileIO, view: memoryview) -> int:
    """Read until the memory is full or the file ends; how many bytes that were. One call takes at most 2 GiB."""
    filled = 0
    while received := file.readinto(view[filled:]):
        filled += received
    return filled


ENGINES = (RawIO,)

"""Raw I/O: what the machine can do without any format, for every figure to be set against.

The table's own Arrow buffers go to a file by plain writes, each after a few bytes that say what it is (an Arrow IPC
stream), and come back by one `readinto` into fresh memory that the table then lies in. Nothing is converted, encoded
or copied a second time. It is a yardstick, not a format to use.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Can, Native, Stored, TabularFormat
from adapters.errors import AdapterError

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = struct.Struct("<8sQ")
"""Magic, and how many bytes follow; 16 bytes keep the alignment that an Arrow stream gives its buffers."""

_MAGIC = b"FB-FLOOR"


class RawIO(TabularFormat):
    """Arrow buffers by plain write and readinto."""

    format = "raw-io"
    engine = "readinto"
    title = "Raw I/O"
    distributions = ("pyarrow",)
    native = Native.BUFFERS
    suffix = ".raw"
    capabilities = frozenset({Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.NO_PICKLE})

    def load_library(self) -> None:
        """Import pyarrow."""
        import pyarrow

        self._arrow = pyarrow

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the header, the schema and each buffer."""
        with self._arrow.OSFile(str(location), "wb") as file:
            file.write(_HEADER.pack(_MAGIC, 0))
            with self._arrow.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
            size_bytes = file.tell()
        with location.open("r+b", buffering=0) as file:
            file.write(_HEADER.pack(_MAGIC, size_bytes - _HEADER.size))

    def read(self, location: Path) -> pa.Table:
        """Read the whole file into one fresh buffer and lay the table over it.

        Raises AdapterError when the file is not one that `save` has finished.
        """
        buffer = self._arrow.allocate_buffer(location.stat().st_size)
        with location.open("rb", buffering=0) as file:
            view = memoryview(buffer)
            filled = 0
            # One call takes at most 2 GiB.
            while received := file.readinto(view[filled:]):
                filled += received
        self._check(location, view[: _HEADER.size].tobytes(), filled)
        with self._arrow.ipc.open_stream(buffer.slice(_HEADER.size)) as stream:
            return stream.read_all()

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


ENGINES = (RawIO,)

"""Feather v2: Arrow's own layout in a file (Arrow IPC), optionally mapped instead of read."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Calls, Can, Native, Setting, Stored, TabularFormat

if TYPE_CHECKING:
    import pyarrow as pa

_CODECS = {0: "lz4", 1: "zstd"}
"""BodyCompression.codec of Arrow's Message.fbs: LZ4_FRAME and ZSTD."""


class FeatherPyarrow(TabularFormat):
    """pyarrow.feather, the engine of pandas.to_feather."""

    format = "feather"
    engine = "pyarrow"
    title = "Feather"
    distributions = ("pyarrow",)
    native = Native.ARROW
    suffix = ".feather"
    settings: ClassVar = {
        "codec": Setting(("none", "lz4", "zstd"), "lz4", "codec of all buffers", always_spelled=True),
        "level": Setting(range(1, 23), None, "level of the codec; without it the codec's own default"),
        "mapped": Setting(("false", "true"), "false", "whether the result stays in a mapping of the file"),
    }
    levels: ClassVar = {"lz4": range(1, 13), "zstd": range(1, 23)}
    plain: ClassVar = {"codec": "none"}
    bare_call: ClassVar = {"codec": "lz4"}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        codec = "uncompressed" if self.values["codec"] == "none" else self.values["codec"]
        mapped = ", memory_map=True" if self.values["mapped"] == "true" else ""
        return Calls(
            ("from pyarrow import feather",),
            f'feather.write_feather({{held}}, {{path}}, compression="{codec}"{level})',
            f"feather.read_table({{path}}{mapped})",
        )

    def load_library(self) -> None:
        """Import pyarrow.feather."""
        import pyarrow.feather

        self._feather = pyarrow.feather

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
        codec = "uncompressed" if self.values["codec"] == "none" else self.values["codec"]
        self._feather.write_feather(table, location, compression=codec, compression_level=self.values["level"])

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file, or map them."""
        return self._feather.read_table(
            location, memory_map=self.values["mapped"] == "true", use_threads=self.threads is None
        )

    def stored(self, location: Path) -> Stored:
        """The codec of the first record batch: pyarrow writes all with one, and has no call that tells it."""
        import pyarrow as pa

        with pa.OSFile(str(location)) as file:
            # The file's magic and padding take 8 bytes; an IPC stream follows: schema, dictionaries, batches.
            file.seek(8)
            message = pa.ipc.read_message(file)
            while message.type != "record batch":
                message = pa.ipc.read_message(file)
        return Stored(_batch_codec(message.metadata.to_pybytes()))


def _batch_codec(message: bytes) -> str:
    """The codec in the flatbuffer of a record batch's message (Arrow's Message.fbs: Message.header is field 2,
    RecordBatch.compression is field 3, BodyCompression.codec is field 0; a field of value 0 is left out)."""
    (root,) = struct.unpack_from("<I", message)
    header = _field(message, root, 2)
    assert header is not None  # a message without a header is refused by pyarrow
    batch = header + struct.unpack_from("<I", message, header)[0]
    compression = _field(message, batch, 3)
    if compression is None:
        return "none"
    body = compression + struct.unpack_from("<I", message, compression)[0]
    codec = _field(message, body, 0)
    return _CODECS[0 if codec is None else message[codec]]


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer table lies; None when it has its default."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    (layout_bytes,) = struct.unpack_from("<H", data, layout)
    entry = 4 + 2 * number
    if entry >= layout_bytes:
        return None
    (offset,) = struct.unpack_from("<H", data, layout + entry)
    return table + offset if offset else None


ENGINES = (FeatherPyarrow,)

"""Feather v2, which is Arrow's own memory layout in a file (Arrow IPC), by pyarrow, pandas and polars.

Files can be read, or mapped into memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored, TabularFormat
from adapters.errors import AdapterError
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from formats.shared import pandas_losses as shared
from formats.shared.arrow_ipc import Message, batches_of
from formats.shared.conditions import arrow_expression, dataset_calls
from formats.shared.polars_engine import POLARS_CODECS, POLARS_LOSSES, LazyPolarsEngine, lazy_calls
from formats.shared.projection import ProjectsByOneCall, in_order
from formats.shared.rows import located, starts_of
from formats.shared.streams import gathered, tables, whole_or_nothing

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_CODEC = Setting(("none", "lz4", "zstd"), "lz4", "codec of all buffers", always_spelled=True)
_LEVEL = Setting(range(1, 23), None, "level of the codec; by default the codec's own default level")

DEFAULT_BATCH_ROWS = 65_536
"""Default number of rows of a record batch, as in write_feather."""


class _Feather(TabularFormat):
    """Base class of the adapters for Feather. The libraries write files with the same structure."""

    format = "feather"
    title = "Feather"
    suffix = ".feather"
    settings: ClassVar = {"codec": _CODEC, "level": _LEVEL}
    levels: ClassVar = {"lz4": range(1, 13), "zstd": range(1, 23)}
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "lz4"}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    maturity = Maturity(
        Stage.ESTABLISHED,
        "Arrow's IPC files, stable since 2020; implementations in C++, Java, Rust, Go, C# and JavaScript",
    )
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    @property
    def codec(self) -> Any:
        """The name of the codec in calls of the libraries. The type is Any because the libraries' type hints require
        literals."""
        return "uncompressed" if self.values["codec"] == "none" else self.values["codec"]

    def stored(self, location: Path) -> Stored:
        """Return the codec of the first record batch; all batches of a file have the same codec. The codec is read from
        the file's metadata, because pyarrow has no call that returns it."""
        import pyarrow as pa

        with pa.OSFile(str(location)) as file:
            file.seek(_places(file)[0])
            return Stored(Message(pa.ipc.read_message(file).metadata.to_pybytes()).codec())


def _places(file: pa.NativeFile) -> list[int]:
    """Return the offsets of the record batches in the file."""
    # A file ends with its footer, then the footer's length, then the 6 bytes "ARROW1".
    file.seek(file.size() - 10)
    (footer_bytes,) = struct.unpack("<I", file.read(4))
    file.seek(file.size() - 10 - footer_bytes)
    return batches_of(file.read(footer_bytes))


def _rows_of_batches(file: pa.NativeFile) -> list[int]:
    """Return the number of rows of each record batch. The number is read from the batch's metadata, because pyarrow's
    call would read the whole batch."""
    rows = []
    for place in _places(file):
        file.seek(place)
        _, metadata_bytes = struct.unpack("<II", file.read(8))
        rows.append(Message(file.read(metadata_bytes)).rows)
    return rows


class FeatherPyarrow(ProjectsByOneCall, _Feather):
    """Feather by pyarrow.feather's write_feather and read_table."""

    engine = "pyarrow"
    distributions = ("pyarrow",)
    native = Native.ARROW
    settings: ClassVar = {
        "codec": _CODEC,
        "level": _LEVEL,
        "mapped": Setting(
            ("false", "true"), "false", "whether the table that is read stays in a memory mapping of the file"
        ),
        "batch_rows": Setting(range(1, 2**31), None, "maximum number of rows of a record batch; by default 65,536"),
    }
    offers = Offers(
        project=True, take=Reach.GROUPS, scan=frozenset(Kind), batches=True, save_stream=True, sharing=Sharing.EACH
    )

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        mapped = ", memory_map=True" if self.values["mapped"] == "true" else ""
        rows = "" if self.values["batch_rows"] is None else f", chunksize={self.values['batch_rows']}"
        return Calls(
            ("from pyarrow import feather",),
            f'feather.write_feather({{held}}, {{path}}, compression="{self.codec}"{level}{rows})',
            f"feather.read_table({{path}}{mapped})",
            project=PartCall(
                f"feather.read_table({{path}}{mapped}).select(columns)"
                if mapped and self.values["codec"] == "none"
                else f"feather.read_table({{path}}, columns{mapped}).select(columns)"
            ),
            scan=dataset_calls("ipc"),
        )

    def load_library(self) -> None:
        """Import pyarrow.feather, and pyarrow.dataset, which filters the rows of Feather files."""
        import pyarrow.dataset
        import pyarrow.feather

        self._arrow, self._dataset, self._feather = pyarrow, pyarrow.dataset, pyarrow.feather

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        self._feather.write_feather(
            table,
            location,
            compression=self.codec,
            compression_level=self.values["level"],
            chunksize=self.values["batch_rows"],
        )

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as one file, one record batch at a time."""
        codec = None
        if self.values["codec"] != "none":
            codec = self._arrow.Codec(self.values["codec"], compression_level=self.values["level"])
        options = self._arrow.ipc.IpcWriteOptions(compression=codec, use_threads=self.threads is None)
        rows = int(self.values["batch_rows"] or DEFAULT_BATCH_ROWS)
        with whole_or_nothing(location), self._arrow.ipc.new_file(str(location), schema, options=options) as writer:
            for table in gathered(schema, batches, rows):
                # The chunks are combined, because the writer would write a record batch for each chunk.
                writer.write_table(table.combine_chunks())

    def stored(self, location: Path) -> Stored:
        """Return the codec of the first record batch. Raises AdapterError if a batch has more rows than the setting
        `batch_rows` allows."""
        asked = self.values["batch_rows"]
        with self._arrow.OSFile(str(location)) as file:
            rows = max(_rows_of_batches(file), default=0)
        if asked is not None and rows > int(asked):
            raise AdapterError(f"the file has a batch of {rows:,} rows, but batch_rows={asked} is the limit")
        return super().stored(location)

    def read(self, location: Path) -> pa.Table:
        """Return all columns of the file. With mapped=true and without a codec, the columns are not copied, but refer
        to the memory-mapped file."""
        return self._read(location)

    def project(self, location: Path, columns: list[str]) -> pa.Table:
        """Return only these columns. With mapped=true and without a codec, the columns are not copied, but refer to the
        memory-mapped file."""
        if self.values["mapped"] == "true" and self.values["codec"] == "none":
            # The columns are selected afterwards, because pyarrow copies data from the mapping if it gets column names.
            return self._read(location).select(columns)
        # The columns are selected again, because pyarrow ignores the requested order if it is the alphabetical order.
        return self._read(location, columns).select(columns)

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pa.Table:
        """Read the given columns and the column of the condition, and filter the rows."""
        table = self._dataset.dataset(str(location), format="ipc")
        return table.to_table(columns=columns, filter=arrow_expression(predicate), use_threads=self.threads is None)

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Yield the given columns of one record batch after the other. With mapped=true the file is mapped, otherwise
        read."""
        with self._opened(location) as source:
            names = self._arrow.ipc.open_file(source).schema.names
            if missing := set(columns).difference(names):
                raise KeyError(f"the file has no columns {sorted(missing)}; its columns: {', '.join(names)}")
            options = self._arrow.ipc.IpcReadOptions(
                use_threads=self.threads is None, included_fields=[names.index(name) for name in columns]
            )
            file = self._arrow.ipc.open_file(source, options=options)
            read = (file.get_batch(batch) for batch in range(file.num_record_batches))
            yield from tables(read, columns, rows)

    def _opened(self, location: Path) -> pa.NativeFile:
        """Open or map the file for pyarrow's readers, which change its position as needed."""
        mapped = self.values["mapped"] == "true"
        return self._arrow.memory_map(str(location)) if mapped else self._arrow.OSFile(str(location))

    def open_rows(self, location: Path) -> Handle:
        """Open or map the file, and read its footer once."""
        source = self._opened(location)
        file = self._arrow.ipc.open_file(source)
        names = file.schema.names
        starts = starts_of(_rows_of_batches(source))

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            batches, places = located(numbers, starts)
            reader = file
            if list(columns) != names:
                options = self._arrow.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
                reader = self._arrow.ipc.open_file(source, options=options)
            parts = [reader.get_batch(batch) for batch in batches]
            return self._arrow.Table.from_batches(parts, reader.schema).select(columns).take(places)

        return Handle(take=take, close=source.close)

    def _read(self, location: Path, columns: list[str] | None = None) -> pa.Table:
        mapped = self.values["mapped"] == "true"
        return self._feather.read_table(location, columns, memory_map=mapped, use_threads=self.threads is None)


class FeatherPandas(ProjectsByOneCall, _Feather):
    """Feather by pandas' DataFrame.to_feather and read_feather, which use pyarrow."""

    engine = "pandas"
    distributions = ("pandas",)
    native = Native.PANDAS
    losses = shared.BY_CONVERSION

    def load_library(self) -> None:
        """Import pandas, including modules that its first call would load."""
        import pandas

        import_module("pyarrow.feather")
        import_module("pandas.core.arrays.arrow.extension_types")
        self._pandas = pandas

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        return Calls(
            ("import pandas as pd",),
            f'{{held}}.to_feather({{path}}, compression="{self.codec}"{level})',
            "pd.read_feather({path})",
            project=PartCall("pd.read_feather({path}, columns)[columns]"),
        )

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file. pandas does not store a default index."""
        level: Any = self.values["level"]
        table.to_feather(location, compression=self.codec, compression_level=level)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns of the file."""
        return self._pandas.read_feather(location, use_threads=self.threads is None)

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Read only the data of these columns."""
        return in_order(self._pandas.read_feather(location, columns, use_threads=self.threads is None), columns)


class FeatherPolars(_Feather, LazyPolarsEngine):
    """Feather by polars' write_ipc and read_ipc."""

    settings: ClassVar = {"codec": Setting(_CODEC.allowed, "none", "codec of all buffers", always_spelled=True)}
    levels: ClassVar = {}
    library_default: ClassVar = {"codec": "none"}
    equal: ClassVar = {}
    losses = (shared.CATEGORIES_OF_NULLS, *POLARS_LOSSES)

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        codec = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        return lazy_calls(
            f'{{held}}.write_ipc({{path}}, compression="{codec}")', "pl.read_ipc({path})", "pl.scan_ipc({path})"
        )

    def save(self, table: pl.DataFrame, location: Path) -> None:
        """Write the whole table as one file."""
        codec: Any = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        with self.refusing():
            table.write_ipc(location, compression=codec)

    def read(self, location: Path) -> pl.DataFrame:
        """Read all columns of the file."""
        return self._polars.read_ipc(location)

    def sink(self, frame: pl.LazyFrame, location: Path) -> None:
        """Write a lazy frame as one file."""
        codec: Any = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        frame.sink_ipc(location, compression=codec)

    def lazy(self, location: Path) -> pl.LazyFrame:
        """Return the file as a lazy frame."""
        return self._polars.scan_ipc(location)

    reads_unseen = True
    """polars maps such files into memory. The measuring code counts read calls, so it does not see these reads."""


ENGINES = (FeatherPyarrow, FeatherPandas, FeatherPolars)

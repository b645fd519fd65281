"""Parquet by polars, DuckDB, fastparquet and DataFusion, whose code for Parquet is independent of pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import parquet_codecs
from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored
from adapters.errors import RefusedData
from adapters.offers import Handle, Offers, Reach, Sharing
from formats.parquet.common import DICTIONARY_AS_VALUES, MOST_ROWS, TIMESTAMPS_BY_DUCKDB, Parquet
from formats.shared import pandas_losses as shared
from formats.shared.datafusion_engine import DatafusionEngine
from formats.shared.duckdb_engine import DuckdbCopies
from formats.shared.polars_engine import POLARS_CODECS, POLARS_LOSSES, LazyPolarsEngine, lazy_calls
from formats.shared.projection import ProjectsByOneCall
from formats.shared.rows import located, starts_of

if TYPE_CHECKING:
    import datafusion
    import duckdb
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class ParquetPolars(Parquet, LazyPolarsEngine):
    """Parquet by polars' write_parquet and read_parquet."""

    reads_folders = True

    settings: ClassVar = {
        "codec": Setting(parquet_codecs.CODEC.allowed, "zstd", "codec of all pages", always_spelled=True),
        "level": parquet_codecs.LEVEL,
    }
    library_default: ClassVar = {"codec": "zstd"}
    losses = (shared.CATEGORIES_OF_NULLS, *POLARS_LOSSES)

    def load_library(self) -> None:
        """Import polars, including a module that its first call would import."""
        super().load_library()
        import_module("polars._utils.parquet")

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        codec = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        return lazy_calls(
            f'{{held}}.write_parquet({{path}}, compression="{codec}"{level})',
            "pl.read_parquet({path})",
            "pl.scan_parquet({path})",
        )

    def save(self, table: pl.DataFrame, location: Path) -> None:
        """Write the whole table as one file."""
        codec: Any = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        level: Any = self.values["level"]
        with self.refusing():
            table.write_parquet(location, compression=codec, compression_level=level)

    def read(self, location: Path) -> pl.DataFrame:
        """Read all columns of the file."""
        return self._polars.read_parquet(location)

    def sink(self, frame: pl.LazyFrame, location: Path) -> None:
        """Write a lazy frame as one file."""
        codec: Any = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        level: Any = self.values["level"]
        frame.sink_parquet(location, compression=codec, compression_level=level)

    def lazy(self, location: Path) -> pl.LazyFrame:
        """Return the file as a lazy frame."""
        return self._polars.scan_parquet(location)


class ParquetDuckdb(Parquet, DuckdbCopies):
    """Parquet by DuckDB's COPY statement and read_parquet."""

    # DuckDB accepts a level for every codec, but uses the level only for zstd.
    levels: ClassVar = {"zstd": range(1, 23)}
    reads_folders = True
    losses = (shared.CATEGORIES_OF_NULLS, DICTIONARY_AS_VALUES, shared.VECTORS_AS_LISTS, TIMESTAMPS_BY_DUCKDB)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has durations. DuckDB stores them in Parquet without their sign."""
        import pyarrow.types as of

        for field in schema:
            if of.is_duration(field.type):
                return f"DuckDB stores durations as Parquet intervals, which have no sign (column {field.name})"
        return super().refusal(schema, rows)

    def copy_options(self) -> str:
        """Return the options of COPY for Parquet: format, codec and level."""
        codec = "uncompressed" if self.values["codec"] == "none" else self.values["codec"]
        level = "" if self.values["level"] is None else f", COMPRESSION_LEVEL {self.values['level']}"
        return f"FORMAT parquet, COMPRESSION {codec}{level}"

    def relation(self, connection: duckdb.DuckDBPyConnection, location: Path) -> duckdb.DuckDBPyRelation:
        """Return the file as a DuckDB relation. If `location` is a folder, return all its files as one relation."""
        return connection.read_parquet(str(location / "*" if location.is_dir() else location))


class ParquetFastparquet(ProjectsByOneCall, Parquet):
    """Parquet by fastparquet's write and ParquetFile.to_pandas.

    fastparquet uses no threads, and cannot read single nested columns."""

    engine = "fastparquet"
    distributions = ("fastparquet",)
    extra = "engines"
    native = Native.PANDAS
    maturity = Maturity(Stage.YOUNG, "the format is established; its authors retired this library in March 2026")
    offers = Offers(project=True, take=Reach.GROUPS, append=True, batches=True, sharing=Sharing.EACH)
    capabilities = frozenset(
        {Can.PROJECTION, Can.APPEND, Can.TYPES, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )
    losses = (
        shared.objects_of_nulls("date-null"),
        shared.NAN_AS_NULL,
        shared.DECIMALS_AS_FLOAT64,
        shared.FLOAT16_AS_FLOAT32,
    )
    """Known changes by fastparquet, which infers the type of Python objects from the first values, and by the
    conversion of an Arrow table to a DataFrame."""

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has timestamps in seconds, which fastparquet stores with wrong values."""
        for field in schema:
            if str(field.type).startswith("timestamp[s"):
                return f"fastparquet stores timestamps in s as if they were ms (column {field.name})"
        return super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import fastparquet, and the module of fsspec with which it opens files."""
        import fastparquet
        import pandas

        import_module("fsspec.implementations.local")
        self._fastparquet, self._pandas = fastparquet, pandas

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        return Calls(
            ("import fastparquet",),
            f"fastparquet.write({{path}}, {{held}}, compression={self._compression()!r}, write_index=False)",
            "fastparquet.ParquetFile({path}).to_pandas()",
            project=PartCall("fastparquet.ParquetFile({path}).to_pandas(columns=columns)"),
            append=PartCall(
                f"fastparquet.write({{path}}, {{more}}, compression={self._compression()!r}, write_index=False, "
                "append=True)"
            ),
        )

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file, without the index of the DataFrame."""
        try:
            self._fastparquet.write(str(location), table, compression=self._compression(), write_index=False)
        except ValueError as error:
            if "object conversion" not in str(error):
                raise
            raise RefusedData(f"fastparquet refuses this data ({str(error).splitlines()[0]})") from error

    def append(self, table: pd.DataFrame, location: Path) -> None:
        """Append a row group and rewrite the footer."""
        how = self._compression()
        self._fastparquet.write(str(location), table, compression=how, write_index=False, append=True)

    def _compression(self) -> Any:
        codec, level = self.values["codec"], self.values["level"]
        if codec == "none":
            return None
        # For other libraries, lz4 means the codec LZ4_RAW of Parquet's specification. The specification's codec LZ4 has
        # an older framing.
        name = "LZ4_RAW" if codec == "lz4" else str(codec).upper()
        argument = "compresslevel" if codec == "gzip" else "level"
        return name if level is None else {"_default": {"type": name, "args": {argument: level}}}

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns of the file."""
        return self._fastparquet.ParquetFile(str(location)).to_pandas()

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Read only the chunks of these columns."""
        return self._fastparquet.ParquetFile(str(location)).to_pandas(columns=columns)

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        """Yield the rows in batches, reading one row group after the other."""
        for group in self._fastparquet.ParquetFile(str(location)).iter_row_groups(columns=columns):
            for start in range(0, len(group), rows):
                yield group.iloc[start : start + rows]

    def open_rows(self, location: Path) -> Handle:
        """Return a handle that keeps the file's footer in memory. Each call opens the file again."""
        file = self._fastparquet.ParquetFile(str(location))
        starts = starts_of([group.num_rows for group in file.row_groups])

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pd.DataFrame:
            groups, places = located(numbers, starts)
            if len(groups) < len(file.row_groups):
                parts = [file[group].to_pandas(columns=list(columns)) for group in groups or [0]]
                read = self._pandas.concat(parts, ignore_index=True)
            else:
                read = file.to_pandas(columns=list(columns))
            return read.iloc[places]

        return Handle(take=take)


class ParquetDatafusion(Parquet, DatafusionEngine):
    """Parquet by DataFusion's write_parquet and read_parquet, which use the parquet library of Rust.

    Files have a page index, and scans read only pages that may contain matching rows. DataFusion has no call that reads
    rows by their numbers.
    """

    settings: ClassVar = {
        "codec": Setting(parquet_codecs.CODEC.allowed, "zstd", "codec of all pages", always_spelled=True),
        "level": parquet_codecs.LEVEL,
        "row_group_rows": Setting(MOST_ROWS, None, "rows of a row group; by default 1,048,576"),
        "page_rows": Setting(MOST_ROWS, None, "maximum rows of a data page; by default 20,000"),
        "dictionary": Setting(
            ("true", "false"),
            "true",
            "whether to store columns with dictionaries, which are read in addition to the pages that a scan needs",
        ),
    }
    library_default: ClassVar = {"codec": "zstd"}
    losses = (shared.ORDER_OF_CATEGORIES,)

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        codec = {"none": "uncompressed", "lz4": "lz4_raw"}.get(str(self.values["codec"]), str(self.values["codec"]))
        level = self.values["level"] or self._datafusion.dataframe.Compression(codec).get_default_level()
        asked = {
            "max_row_group_size": self.values["row_group_rows"],
            "data_page_row_count_limit": self.values["page_rows"],
        }
        options = self._datafusion.ParquetWriterOptions(
            compression=codec if level is None else f"{codec}({level})",
            dictionary_enabled=self.values["dictionary"] == "true",
            **{key: value for key, value in asked.items() if value is not None},
        )
        # One partition keeps the rows in order. With several, DataFusion would write a table's chunks in any order.
        frame = self.session(partitions=1).from_arrow(table)
        frame.write_parquet_with_options(str(location), options)

    def stored(self, location: Path) -> Stored:
        """Return the codec and the encodings of all column chunks.

        Raises AdapterError if the file's footer contradicts the settings."""
        import pyarrow.parquet

        footer = pyarrow.parquet.read_metadata(location)
        parquet_codecs.check_layout(
            footer,
            row_group_rows=self.values["row_group_rows"],
            page_index=True,
            dictionary=self.values["dictionary"] == "true",
            statistics=True,
        )
        return parquet_codecs.stored_of(footer)

    def frame(self, location: Path) -> datafusion.DataFrame:
        """Return the file as a lazy frame."""
        return self.session().read_parquet(str(location))

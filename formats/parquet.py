"""Parquet: one file, the writer's own row groups and encodings, by the calls of all libraries that have both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import parquet_codecs
from adapters.contract import (
    Calls,
    Can,
    Handle,
    Maturity,
    Native,
    Offers,
    Reach,
    Setting,
    Stage,
    Stored,
    TabularFormat,
)
from adapters.errors import RefusedData
from adapters.losses import Cause, Loss, Relation
from adapters.predicate import Kind, Predicate
from adapters.relations import texts, times
from formats.shared import pandas_losses as shared
from formats.shared.conditions import arrow_expression
from formats.shared.datafusion_engine import DatafusionEngine
from formats.shared.duckdb_engine import DuckdbEngine
from formats.shared.polars_engine import POLARS_CODECS, POLARS_LOSSES, LazyPolarsEngine
from formats.shared.projection import ProjectsByOneCall
from formats.shared.rows import located, starts_of

if TYPE_CHECKING:
    import datafusion
    import duckdb
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_SECONDS_AS_MS = Loss(
    "timestamps in s become ms",
    "the same points in time",
    Cause.FORMAT,
    Relation(times.timestamps_in(["s"], "ms")),
    frozenset({"timestamp-s", "timestamp-s-zone"}),
)

_DICTIONARY_AS_VALUES = Loss(
    "categoricals become plain columns",
    "the same values",
    Cause.CALL,
    Relation(texts.dictionary_as_values),
    frozenset({"categorical", "categorical-ordered"}),
)


class _Parquet(TabularFormat):
    """What all calls have in common: a Parquet file is a Parquet file."""

    format = "parquet"
    title = "Parquet"
    suffix = ".parquet"
    settings: ClassVar = {"codec": parquet_codecs.CODEC, "level": parquet_codecs.LEVEL}
    levels: ClassVar = parquet_codecs.LEVELS
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "snappy"}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    maturity = Maturity(
        Stage.ESTABLISHED,
        "an Apache specification since 2013; implementations in Java, C++, Rust, Go, C# and DuckDB's own",
    )
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    def stored(self, location: Path) -> Stored:
        """Codec and encodings of all column chunks, from the footer."""
        # Whatever call is measured: pyarrow is there.
        import pyarrow.parquet

        return parquet_codecs.stored_of(pyarrow.parquet.read_metadata(location))


_MOST_ROWS = range(1, 2**31)


class ParquetPyarrow(ProjectsByOneCall, _Parquet):
    """pyarrow.parquet's write_table and read_table."""

    engine = "pyarrow"
    settings: ClassVar = {
        **_Parquet.settings,
        "row_group_rows": Setting(_MOST_ROWS, None, "rows of a row group; without it 1,048,576"),
        "page_rows": Setting(_MOST_ROWS, None, "most rows of a data page; without it 20,000"),
        "page_index": Setting(("false", "true"), "false", "whether statistics of pages lie beside the footer"),
        "dictionary": Setting(("true", "false"), "true", "whether columns may be stored by dictionaries"),
        "statistics": Setting(("true", "false"), "true", "whether column chunks tell their smallest and largest value"),
    }
    distributions = ("pyarrow",)
    native = Native.ARROW
    offers = Offers(project=True, take=Reach.GROUPS, scan=frozenset(Kind))

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Parquet has no seconds."""
        return (_SECONDS_AS_MS, shared.CATEGORIES_OF_NULLS)

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        more = "".join(f", {name}={value!r}" for name, value in self._writing().items())
        return Calls(
            ("import pyarrow.parquet as pq",),
            f'pq.write_table({{held}}, {{path}}, compression="{self.values["codec"]}"{level}{more})',
            "pq.read_table({path})",
        )

    def _writing(self) -> dict[str, Any]:
        """What write_table is told besides the codec: what is not its default."""
        asked: dict[str, Any] = {
            "row_group_size": self.values["row_group_rows"],
            "max_rows_per_page": self.values["page_rows"],
            "write_page_index": self.values["page_index"] == "true" or None,
            "use_dictionary": None if self.values["dictionary"] == "true" else False,
            "write_statistics": None if self.values["statistics"] == "true" else False,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def load_library(self) -> None:
        """Import pyarrow.parquet, and the data sets that its read call goes through."""
        import pyarrow.dataset
        import pyarrow.parquet

        self._parquet = pyarrow.parquet

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
        codec, level = self.values["codec"], self.values["level"]
        self._parquet.write_table(table, location, compression=codec, compression_level=level, **self._writing())

    def stored(self, location: Path) -> Stored:
        """Codec and encodings of all column chunks; the footer must tell what the settings say.

        Raises AdapterError where it does not.
        """
        footer = self._parquet.read_metadata(location)
        parquet_codecs.check_layout(
            footer,
            row_group_rows=self.values["row_group_rows"],
            page_index=self.values["page_index"] == "true",
            dictionary=self.values["dictionary"] == "true",
            statistics=self.values["statistics"] == "true",
        )
        return parquet_codecs.stored_of(footer)

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file."""
        return self._parquet.read_table(location, use_threads=self.threads is None)

    def project(self, location: Path, columns: list[str]) -> pa.Table:
        """Read the chunks of these columns alone."""
        return self._parquet.read_table(location, columns=columns, use_threads=self.threads is None)

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pa.Table:
        """Read the row groups whose statistics may meet the condition, and filter them."""
        met = arrow_expression(predicate)
        return self._parquet.read_table(location, columns=columns, filters=met, use_threads=self.threads is None)

    def open_rows(self, location: Path) -> Handle:
        """Open the file: its footer is read once."""
        file = self._parquet.ParquetFile(location)
        footer = file.metadata
        starts = starts_of([footer.row_group(group).num_rows for group in range(footer.num_row_groups)])

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            groups, places = located(numbers, starts)
            read = file.read_row_groups(groups, columns=list(columns), use_threads=self.threads is None)
            # Names asked for come in the file's order.
            return read.select(columns).take(places)

        return Handle(take=take, close=file.close)


class ParquetPandas(ProjectsByOneCall, _Parquet):
    """DataFrame.to_parquet and read_parquet, which use pyarrow."""

    engine = "pandas"
    distributions = ("pandas",)
    native = Native.PANDAS

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Parquet has no seconds, and an Arrow table has to become a DataFrame first."""
        return (
            shared.objects_of_nulls("date-null"),
            replace(shared.CATEGORIES_OF_NULLS, targets=frozenset({"pandas", "arrow"})),
            _SECONDS_AS_MS,
            shared.NAN_AS_NULL,
            shared.DECIMAL_PRECISION,
            shared.VECTORS_AS_LISTS,
            shared.INTEGERS_IN_MISSING_STRUCTS,
        )

    def load_library(self) -> None:
        """Import pandas with what it loads on the first call."""
        import pandas

        for module in ("pyarrow.dataset", "pyarrow.parquet", "pandas.core.arrays.arrow.extension_types"):
            import_module(module)
        self._pandas = pandas

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        codec = None if self.values["codec"] == "none" else self.values["codec"]
        return Calls(
            ("import pandas as pd",),
            f"{{held}}.to_parquet({{path}}, compression={codec!r}{level})",
            "pd.read_parquet({path})",
        )

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file; of the index, which is the default one, it keeps no column."""
        codec: Any = None if self.values["codec"] == "none" else self.values["codec"]
        table.to_parquet(location, compression=codec, compression_level=self.values["level"])

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns of the file."""
        return self._pandas.read_parquet(location, use_threads=self.threads is None)

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Read the chunks of these columns alone."""
        return self._pandas.read_parquet(location, columns=columns, use_threads=self.threads is None)


class ParquetPolars(_Parquet, LazyPolarsEngine):
    """polars' write_parquet and read_parquet."""

    settings: ClassVar = {
        "codec": Setting(parquet_codecs.CODEC.allowed, "zstd", "codec of all pages", always_spelled=True),
        "level": parquet_codecs.LEVEL,
    }
    library_default: ClassVar = {"codec": "zstd"}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What polars itself does not have."""
        return (*POLARS_LOSSES, shared.CATEGORIES_OF_NULLS)

    def load_library(self) -> None:
        """Import polars with what it loads on the first call."""
        super().load_library()
        import_module("polars._utils.parquet")

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        codec = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        return Calls(
            ("import polars as pl",),
            f'{{held}}.write_parquet({{path}}, compression="{codec}"{level})',
            "pl.read_parquet({path})",
        )

    def save(self, table: pl.DataFrame, location: Path) -> None:
        """Write one file."""
        codec: Any = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        level: Any = self.values["level"]
        with self.refusing():
            table.write_parquet(location, compression=codec, compression_level=level)

    def read(self, location: Path) -> pl.DataFrame:
        """Read all columns of the file."""
        return self._polars.read_parquet(location)

    def lazy(self, location: Path) -> pl.LazyFrame:
        """The file."""
        return self._polars.scan_parquet(location)


class ParquetDuckdb(_Parquet, DuckdbEngine):
    """DuckDB's COPY to Parquet and read_parquet."""

    # DuckDB takes a level for every codec, and uses it for this one alone.
    levels: ClassVar = {"zstd": range(1, 23)}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What DuckDB itself does not have."""
        return (
            shared.CATEGORIES_OF_NULLS,
            _DICTIONARY_AS_VALUES,
            shared.VECTORS_AS_LISTS,
            Loss(
                "timestamps in s and ms become us, and UTC where they have a zone",
                "the same points in time",
                Cause.CALL,
                Relation(times.timestamps_in(["s", "ms"], "us", "UTC")),
                frozenset({"timestamp-s", "timestamp-ms", *(f"timestamp-{u}-zone" for u in ("s", "ms", "us", "ns"))}),
            ),
        )

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """The first column of durations."""
        import pyarrow.types as of

        for field in schema:
            if of.is_duration(field.type):
                return f"DuckDB makes Parquet intervals of durations, which have no sign (column {field.name})"
        return super().refusal(schema, rows)

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
        codec = "uncompressed" if self.values["codec"] == "none" else self.values["codec"]
        level = "" if self.values["level"] is None else f", COMPRESSION_LEVEL {self.values['level']}"
        self.copy(table, location, f"FORMAT parquet, COMPRESSION {codec}{level}")

    def relation(self, connection: duckdb.DuckDBPyConnection, location: Path) -> duckdb.DuckDBPyRelation:
        """The file."""
        return connection.read_parquet(str(location))


class ParquetFastparquet(ProjectsByOneCall, _Parquet):
    """fastparquet's write and ParquetFile.to_pandas. It knows neither projection of nested columns nor threads."""

    engine = "fastparquet"
    distributions = ("fastparquet",)
    extra = "engines"
    native = Native.PANDAS
    maturity = Maturity(Stage.YOUNG, "the format is established; its authors retired this library in March 2026")
    offers = Offers(project=True, take=Reach.GROUPS, append=True)
    capabilities = frozenset(
        {Can.PROJECTION, Can.APPEND, Can.TYPES, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Objects are stored as what their first values suggest, and an Arrow table has to become a DataFrame first."""
        return (shared.objects_of_nulls("date-null"), shared.NAN_AS_NULL, shared.DECIMALS_AS_FLOAT64)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """The first column of timestamps in seconds."""
        for field in schema:
            if str(field.type).startswith("timestamp[s"):
                return f"fastparquet stores timestamps in s as if they were ms (column {field.name})"
        return super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import fastparquet, and the file system that its calls ask for."""
        import fastparquet
        import pandas

        import_module("fsspec.implementations.local")
        self._fastparquet, self._pandas = fastparquet, pandas

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        return Calls(
            ("import fastparquet",),
            f"fastparquet.write({{path}}, {{held}}, compression={self._compression()!r}, write_index=False)",
            "fastparquet.ParquetFile({path}).to_pandas()",
        )

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file without the index."""
        try:
            self._fastparquet.write(str(location), table, compression=self._compression(), write_index=False)
        except ValueError as error:
            if "object conversion" not in str(error):
                raise
            raise RefusedData(f"fastparquet does not take this data ({str(error).splitlines()[0]})") from error

    def append(self, table: pd.DataFrame, location: Path) -> None:
        """Write a row group behind the others, and the footer anew."""
        how = self._compression()
        self._fastparquet.write(str(location), table, compression=how, write_index=False, append=True)

    def _compression(self) -> Any:
        codec, level = self.values["codec"], self.values["level"]
        if codec == "none":
            return None
        # What other writers call LZ4 is LZ4_RAW in the specification; its LZ4 is an older framing.
        name = "LZ4_RAW" if codec == "lz4" else str(codec).upper()
        argument = "compresslevel" if codec == "gzip" else "level"
        return name if level is None else {"_default": {"type": name, "args": {argument: level}}}

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns of the file."""
        return self._fastparquet.ParquetFile(str(location)).to_pandas()

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Read the chunks of these columns alone."""
        return self._fastparquet.ParquetFile(str(location)).to_pandas(columns=columns)

    def open_rows(self, location: Path) -> Handle:
        """Read the footer; each call opens the file."""
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


class ParquetDatafusion(_Parquet, DatafusionEngine):
    """DataFusion's write_parquet and read_parquet, which are those of Rust: the index of pages is written, and a scan
    reads the pages alone that may hold rows that meet the condition. It has no call for rows by their numbers."""

    settings: ClassVar = {
        "codec": Setting(parquet_codecs.CODEC.allowed, "zstd", "codec of all pages", always_spelled=True),
        "level": parquet_codecs.LEVEL,
        "row_group_rows": Setting(_MOST_ROWS, None, "rows of a row group; without it 1,048,576"),
        "page_rows": Setting(_MOST_ROWS, None, "most rows of a data page; without it 20,000"),
        "dictionary": Setting(
            ("true", "false"), "true", "whether columns may be stored by dictionaries, which are read whatever page is"
        ),
    }
    library_default: ClassVar = {"codec": "zstd"}
    losses = (
        Loss(
            "ordered categories lose their order",
            "the same values",
            Cause.CALL,
            Relation(texts.dictionary_without_order),
            frozenset({"categorical-ordered"}),
        ),
    )

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
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
        self.session().from_arrow(table).write_parquet_with_options(str(location), options)

    def stored(self, location: Path) -> Stored:
        """Codec and encodings of all column chunks; the footer must tell what the settings say, and of an index of
        pages. Raises AdapterError where it does not."""
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
        """The file."""
        return self.session().read_parquet(str(location))


ENGINES = (ParquetPyarrow, ParquetPandas, ParquetPolars, ParquetDuckdb, ParquetFastparquet, ParquetDatafusion)

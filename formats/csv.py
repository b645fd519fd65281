"""CSV by pandas, pyarrow, polars, DuckDB and dask. A CSV file is text with one row on each line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored, TabularFormat
from adapters.errors import RefusedSetting
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Offers
from adapters.relations import times, written
from formats.shared import pandas_codecs, refusals
from formats.shared import pandas_losses as shared
from formats.shared import text_losses as text
from formats.shared.dask_engine import NOT_OFFERED, DaskEngine, number
from formats.shared.duckdb_engine import DuckdbCopies
from formats.shared.polars_engine import LazyPolarsEngine, lazy_calls
from formats.shared.projection import ProjectsByOneCall, in_order
from formats.shared.streams import tables, whole_or_nothing

if TYPE_CHECKING:
    import dask.dataframe as dd
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_ALWAYS = (shared.DICTIONARY_AS_VALUES,)
_TYPES = (
    shared.INTEGERS_AS_INT64,
    shared.FLOAT16_AS_WRITTEN,
    shared.float32_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
    shared.DECIMALS_AS_FLOAT64,
    shared.written_as_text(
        "binary", "date", "date-early", "time", "duration", "list", "struct", "map", *shared.TIMESTAMPS
    ),
)

_BY_PYARROW = (
    shared.NULLS_AS_FLOAT64,
    shared.DICTIONARY_AS_VALUES,
    shared.NAN_AS_NULL,
    shared.missing_words(shared.READ_CSV_WORDS),
    shared.NUMERIC_TEXT,
    shared.INTEGERS_AS_INT64,
    shared.INTEGERS_WITH_NULLS_AS_FLOAT64,
    text.LARGE_INTEGERS_AS_FLOAT64,
    shared.BOOLEANS_WITH_NULLS_AS_OBJECTS,
    shared.FLOAT16_AS_WRITTEN,
    shared.float32_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
    shared.DECIMALS_AS_FLOAT64,
    text.timestamps(
        "timestamps become ns where any has a fraction of a second, else s, and UTC where they have a zone",
        "the same points in time",
        times.timestamps_in_s_or_ns,
        "timestamp-ms",
        "timestamp-us",
    ),
    shared.written_as_text(
        *("binary", "time", "duration", "list", "struct", "map"),
        expect=written.of_types(*("binary", "large_binary", "time32", "time64", "duration", "list", "struct", "map")),
    ),
)
"""Known changes to data (losses) if pandas writes CSV, and pandas reads it with pyarrow's parser."""

SAMPLE_ROWS, SAMPLE_BYTES = 1_000, 2**20
"""dask guesses the types of columns from at most this number of rows and of bytes at the start of the data. dask's
default of 10 rows is too few, because they often have no missing value even if later rows do."""
_TIMES = ("date", "date-early", "time", *shared.TIMESTAMPS)


class _Csv(TabularFormat):
    format = "csv"
    title = "CSV"
    suffix = ".csv"
    maturity = Maturity(Stage.ESTABLISHED, "RFC 4180, though dialects differ; every program and language reads it")
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})


class CsvPandas(ProjectsByOneCall, _Csv):
    """CSV by pandas' to_csv and read_csv."""

    engine = "pandas"
    distributions = ("pandas",)
    native = Native.PANDAS
    lost_names = r"\A\Z|\r"
    settings: ClassVar = {
        "keep_default_na": Setting(("true", "false"), "true", "whether 'NA', 'null' and '' are read as missing"),
        "parser": Setting(("c", "pyarrow"), "c", "parser of read_csv, its argument `engine`"),
        **pandas_codecs.SETTINGS,
    }
    levels = pandas_codecs.LEVELS
    codec_distributions = pandas_codecs.DISTRIBUTIONS

    def _checked(self, given: Mapping[str, str]) -> dict[str, str | int | None]:
        values = super()._checked(given)
        if values.get("parser") == "pyarrow" and values["keep_default_na"] == "false":
            raise RefusedSetting("csv: parser=pyarrow requires keep_default_na=true (got keep_default_na=false)")
        return values

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Known changes to data because CSV stores no types, and because the reader reads some words as missing
        values."""
        if self.values.get("parser") == "pyarrow":
            return _BY_PYARROW
        if self.values["keep_default_na"] == "false":
            return (
                *_ALWAYS,
                shared.NULL_AS_EMPTY_TEXT,
                shared.NUMERIC_TEXT,
                shared.ANYTHING_WITH_NULLS_AS_TEXT,
                *_TYPES,
            )
        missing = shared.missing_words(shared.READ_CSV_WORDS, lossless="csv[engine=pandas,keep_default_na=false]")
        return (
            shared.NULLS_AS_FLOAT64,
            *_ALWAYS,
            shared.NAN_AS_NULL,
            missing,
            shared.NUMERIC_TEXT,
            *_TYPES,
            *shared.TEXT_TYPES_WITH_NULLS,
        )

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Kinds of columns that pandas 3.1 returns with wrong values, each with a description of the fault."""
        if self.values.get("parser") == "pyarrow":
            return {}
        return {"string-return": "to_csv does not quote a carriage return, and read_csv takes it for the end of a row"}

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        codec = pandas_codecs.argument(pandas_codecs.for_save(self.values))
        keep = "" if self.values["keep_default_na"] == "true" else ", keep_default_na=False"
        packed = pandas_codecs.argument(pandas_codecs.for_read(self.values))
        parser = ', engine="pyarrow"' if self.values["parser"] == "pyarrow" else ""
        return Calls(
            ("import pandas as pd",),
            f"{{held}}.to_csv({{path}}, index=False{codec})",
            f"pd.read_csv({{path}}{keep}{packed}{parser})",
            project=PartCall(f"pd.read_csv({{path}}, usecols=columns{keep}{packed}{parser})[columns]"),
            append=PartCall('{more}.to_csv({path}, mode="a", header=False, index=False)'),
        )

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return why the table cannot be stored, if it has vectors (columns of fixed-size lists), which pandas writes
        incompletely."""
        return refusals.of_printed_vectors(schema) or super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import pandas, including modules that its first save or read would import."""
        import pandas

        import_module("pandas.io.formats.csvs")
        pandas_codecs.load(self.values)
        if self.values.get("parser") == "pyarrow":
            import_module("pandas.io.parsers.arrow_parser_wrapper")
            import_module("pyarrow.csv")
        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file, without the index of the DataFrame."""
        table.to_csv(location, index=False, compression=pandas_codecs.for_save(self.values))

    @property
    def offers(self) -> Offers:
        """Appending is offered only without a codec, and reading in batches only with the C parser.

        Batches are not offered with keep_default_na=False, because the type of a column could differ between batches:
        a column of numbers is text in batches with missing values.
        """
        plain = self.values["codec"] == "none"
        batches = self.values["parser"] == "c" and self.values["keep_default_na"] == "true"
        return Offers(project=True, append=plain, batches=batches, save_stream=plain)

    def append(self, table: pd.DataFrame, location: Path) -> None:
        """Append the rows as lines, without another header."""
        table.to_csv(location, mode="a", header=False, index=False)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pd.DataFrame], location: Path) -> None:
        """Write a header, then the lines of each batch."""
        header = True
        with whole_or_nothing(location), location.open("w", newline="") as file:
            for batch in batches:
                batch.to_csv(file, header=header, index=False)
                header = False
            if header:
                self._pandas.DataFrame(columns=schema.names).to_csv(file, index=False)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns. The library guesses their types from the text."""
        return self._parsed(location)

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Parse only these columns, and return them in the given order."""
        return in_order(self._parsed(location, columns), columns)

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        """Yield batches of `rows` lines. pandas guesses the types of each batch separately."""
        with self._parsed(location, columns, rows) as chunks:
            # For a file without rows, pandas yields one empty chunk, which is left out.
            yield from (in_order(chunk, columns) for chunk in chunks if len(chunk))

    def _parsed(self, location: Path, columns: list[str] | None = None, rows: int | None = None) -> Any:
        in_chunks: Any = {} if rows is None else {"chunksize": rows}
        return self._pandas.read_csv(
            location,
            usecols=columns,
            **in_chunks,
            keep_default_na=self.values["keep_default_na"] == "true",
            compression=pandas_codecs.for_read(self.values),
            engine=self.values["parser"],  # type: ignore[arg-type]
        )

    def stored(self, location: Path) -> Stored:
        """Return the codec of the file."""
        return Stored(pandas_codecs.codec_of(location))


class CsvPyarrow(ProjectsByOneCall, _Csv):
    """CSV by pyarrow.csv's write_csv and read_csv."""

    offers = Offers(project=True, append=True, batches=True, save_stream=True)

    engine = "pyarrow"
    distributions = ("pyarrow",)
    native = Native.ARROW
    losses = (
        text.NULLS_AS_NULL,
        shared.DICTIONARY_AS_VALUES,
        shared.NAN_AS_NULL,
        text.NUMERIC_TEXT,
        shared.NULL_AS_EMPTY_TEXT,
        text.INTEGERS_AS_INT64,
        text.LARGE_INTEGERS_AS_FLOAT64,
        shared.float16_as_float64(bound="the same number as float64"),
        shared.float32_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
        text.WHOLE_FLOATS_AS_INT64,
        shared.DECIMALS_AS_FLOAT64,
        Loss(
            "durations become the number of their units (int64)",
            "the same spans",
            Cause.CALL,
            Relation(times.durations_as_integers),
            frozenset({"duration"}),
        ),
        text.timestamps(
            "timestamps in ms and us become ns, and UTC where they have a zone",
            "the same points in time",
            times.timestamps_in(["ms", "us"], "ns", "UTC"),
            "timestamp-ms",
            "timestamp-us",
        ),
        shared.written_as_text("time", expect=written.of_types("time32", "time64")),
    )
    """Known changes to data because CSV does not store types, so that the reader guesses them."""

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has lists, structs, maps or bytes, which pyarrow cannot write to CSV."""
        refused = refusals.of_nested(schema, "pyarrow cannot write nested columns to CSV")
        return refused or refusals.of_bytes(schema, "pyarrow") or super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import pyarrow.csv."""
        import pyarrow.csv

        self._csv = pyarrow.csv

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        asked, bare = "pv.ConvertOptions(include_columns=columns)", "pv.WriteOptions(include_header=False)"
        return Calls(
            ("import pyarrow.csv as pv",),
            "pv.write_csv({held}, {path})",
            "pv.read_csv({path})",
            project=PartCall(f"pv.read_csv({{path}}, convert_options={asked})"),
            append=PartCall(f'pv.write_csv({{more}}, open({{path}}, "ab"), {bare})'),
        )

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        self._csv.write_csv(table, location)

    def append(self, table: pa.Table, location: Path) -> None:
        """Append the rows as lines, without another header."""
        with location.open("ab") as file:
            self._csv.write_csv(table, file, self._csv.WriteOptions(include_header=False))

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a header, then the lines of each batch."""
        with whole_or_nothing(location), self._csv.CSVWriter(str(location), schema) as writer:
            for batch in batches:
                writer.write_batch(batch)

    def read(self, location: Path) -> pa.Table:
        """Read all columns. The library guesses their types from the text."""
        return self._parsed(location, self._csv.ConvertOptions())

    def project(self, location: Path, columns: list[str]) -> pa.Table:
        """Return only these columns. pyarrow splits all lines, but converts only these columns from text."""
        return self._parsed(location, self._csv.ConvertOptions(include_columns=columns))

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Yield the rows as tables. pyarrow parses one block of bytes at a time, and guesses the types from the first
        block."""
        read_options = self._csv.ReadOptions(use_threads=self.threads is None)
        convert_options = self._csv.ConvertOptions(include_columns=columns)
        with self._csv.open_csv(location, read_options, convert_options=convert_options) as reader:
            yield from tables(reader, columns, rows)

    def _parsed(self, location: Path, convert_options: Any) -> pa.Table:
        read_options = self._csv.ReadOptions(use_threads=self.threads is None)
        return self._csv.read_csv(location, read_options, convert_options=convert_options)


class CsvPolars(_Csv, LazyPolarsEngine):
    """CSV by polars' write_csv and read_csv."""

    # Names with a quotation mark are lost, because polars writes the mark twice and reads it as two marks.
    lost_names = r'\A\Z|[\0"]'

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has lists, structs or maps, which polars cannot write to CSV."""
        refused = refusals.of_nested(schema, "polars cannot write nested columns to CSV")
        return refused or super().refusal(schema, rows)

    losses = (
        text.NULLS_AS_TEXT,
        shared.DICTIONARY_AS_VALUES,
        text.NUMERIC_TEXT,
        text.INTEGERS_AS_INT64,
        shared.float16_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
        shared.float32_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
        shared.DECIMALS_AS_FLOAT64,
        shared.written_as_text(*_TIMES, expect=written.of_types("date", "time")),
    )
    """Known changes to data because CSV does not store types.

    polars' reader reads no words as missing, and returns dates and times as text."""

    calls = lazy_calls("{held}.write_csv({path})", "pl.read_csv({path})", "pl.scan_csv({path})")

    def save(self, table: pl.DataFrame, location: Path) -> None:
        """Write the whole table as one file."""
        with self.refusing():
            table.write_csv(location)

    def read(self, location: Path) -> pl.DataFrame:
        """Read all columns. The library guesses their types from the text."""
        return self._polars.read_csv(location)

    def sink(self, frame: pl.LazyFrame, location: Path) -> None:
        """Write a lazy frame as one file."""
        frame.sink_csv(location)

    def lazy(self, location: Path) -> pl.LazyFrame:
        """Return the file as a lazy frame. polars guesses the types of its columns."""
        return self._polars.scan_csv(location)


class CsvDuckdb(_Csv, DuckdbCopies):
    """CSV by DuckDB's COPY statement and read_csv."""

    lost_names = r"\A\Z|[\0\r]|\A\s|\s\Z"

    losses = (
        text.NULLS_AS_TEXT,
        shared.DICTIONARY_AS_VALUES,
        text.EMPTY_TEXT_AS_NULL,
        text.UNPADDED_NUMERIC_TEXT,
        shared.DECIMALS_AS_FLOAT64,
        text.INTEGERS_AS_INT64,
        text.LARGE_INTEGERS_AS_DECIMALS,
        shared.float32_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
        text.INFINITE_FLOATS_AS_TEXT,
        text.timestamps(
            "timestamps become us, and UTC where they have a zone",
            "fractions of a microsecond are lost",
            times.timestamps_cut_to_us,
            *("timestamp-s", "timestamp-ms", "timestamp-ns"),
        ),
        text.BLOBS_AS_TEXT,
        shared.written_as_text(
            *("duration", "list", "vector", "vector-long"),
            expect=written.of_types("duration", "list", "fixed_size_list"),
        ),
    )
    """Known changes to data because CSV does not store types, so that the reader guesses them."""

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Kinds of columns that DuckDB 2.0 returns with wrong values, each with a description of the fault."""
        text_of = "come back as text in DuckDB's own notation, which does not quote text inside"
        return {"struct": f"structs {text_of}", "map": f"maps {text_of}"}

    def copy_options(self) -> str:
        """Return the options of COPY for CSV with a header, which the other libraries also write."""
        return "FORMAT csv, HEADER"

    def relation(self, connection: duckdb.DuckDBPyConnection, location: Path) -> duckdb.DuckDBPyRelation:
        """Return the file as a DuckDB relation. DuckDB guesses the types of its columns.

        Without the option `hive_partitioning=False`, DuckDB would add columns for folders in the path with names such
        as 'year=2026'."""
        return connection.read_csv(str(location), hive_partitioning=False)


class CsvDask(DaskEngine, CsvPandas):
    """CSV by dask.dataframe's to_csv and read_csv, which call pandas."""

    settings: ClassVar = {"keep_default_na": CsvPandas.settings["keep_default_na"]}
    capabilities = _Csv.capabilities - NOT_OFFERED

    def write(self, frame: dd.DataFrame, folder: Path) -> None:
        """Write one file for each partition, without the index of the DataFrame."""
        frame.to_csv(f"{folder}/part-*.csv", index=False, name_function=number)

    def frame_of(self, files: list[str]) -> dd.DataFrame:
        """Return the files as one dask DataFrame, with one partition for each file. dask guesses the types from the
        first rows of the first file."""
        keep: Any = {"keep_default_na": False} if self.values["keep_default_na"] == "false" else {}
        return self._frames.read_csv(files, blocksize=None, sample=SAMPLE_BYTES, sample_rows=SAMPLE_ROWS, **keep)


ENGINES = (CsvPandas, CsvPyarrow, CsvPolars, CsvDuckdb, CsvDask)

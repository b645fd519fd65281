"""JSON Lines by pandas, polars, DuckDB and dask. A file has one JSON object for each row on a separate line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored, TabularFormat
from adapters.errors import RefusedSetting
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers
from adapters.relations import floats, integers, times, written
from formats.shared import pandas_codecs, refusals
from formats.shared import pandas_losses as shared
from formats.shared import text_losses as text
from formats.shared.dask_engine import NOT_OFFERED, DaskEngine, number
from formats.shared.duckdb_engine import DuckdbCopies
from formats.shared.polars_engine import LazyPolarsEngine, lazy_calls
from formats.shared.streams import whole_or_nothing

if TYPE_CHECKING:
    import dask.dataframe as dd
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_RELATIVE = 2e-15
"""Maximum relative error of pandas' JSON parser when it reads floats."""


def _guesses_of_pandas(tolerance: float) -> tuple[Loss, ...]:
    return (
        shared.WHOLE_FLOATS_AS_INT64,
        shared.decimals_as_float64(tolerance=tolerance, relative_tolerance=_RELATIVE),
        shared.NUMERIC_TEXT,
        shared.BOOLEANS_WITH_NULLS_AS_FLOAT64,
    )


_GUESSES_OF_PYARROW = (
    text.DECIMALS_AS_TEXT,
    text.LARGE_INTEGERS_AS_FLOAT64,
    shared.BOOLEANS_WITH_NULLS_AS_OBJECTS,
    shared.INTEGERS_IN_MISSING_STRUCTS,
)


class _Json(TabularFormat):
    format = "json"
    title = "JSON Lines"
    suffix = ".json"
    maturity = Maturity(Stage.ESTABLISHED, "RFC 8259, one object per line; every language reads it")
    capabilities = frozenset({Can.APPEND, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})


class JsonPandas(_Json):
    """JSON Lines by pandas' to_json and read_json with lines=True."""

    engine = "pandas"
    distributions = ("pandas",)
    native = Native.PANDAS
    lost_names = r"\0"
    settings: ClassVar = {
        "double_precision": Setting(("10", "15"), "10", "decimals of a float"),
        "parser": Setting(("ujson", "pyarrow"), "ujson", "parser of read_json, its argument `engine`"),
        **pandas_codecs.SETTINGS,
    }
    levels = pandas_codecs.LEVELS
    codec_distributions = pandas_codecs.DISTRIBUTIONS

    def _checked(self, given: Mapping[str, str]) -> dict[str, str | int | None]:
        values = super()._checked(given)
        if values.get("parser") == "pyarrow" and values["codec"] != "none":
            raise RefusedSetting(
                f"json: parser=pyarrow needs codec=none (got codec={values['codec']}): "
                "pyarrow recognizes a codec only by the file's name"
            )
        return values

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has columns of bytes, which pandas writes as if they were text."""
        return refusals.of_bytes(schema, "pandas") or super().refusal(schema, rows)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Known changes to values that JSON cannot express, and to floats, which pandas writes with few digits."""
        decimals = int(str(self.values["double_precision"]))
        lossless = "json[engine=pandas,double_precision=15]" if decimals == 10 else None
        by_pyarrow = self.values.get("parser") == "pyarrow"
        kinds = {"float64"} if by_pyarrow else {"float64", "float64-range", "float64-subnormal", "float64-zero"}
        tolerance = 10.0**-decimals
        bound = f"within 1e-{decimals}, and 2e-15 of the value; from 1e16 on {decimals} digits"
        return (
            text.NULLS_AS_NULL if by_pyarrow else shared.NULLS_AS_FLOAT64,
            shared.DICTIONARY_AS_VALUES,
            shared.NAN_AS_NULL,
            Loss(
                "infinite floats become missing",
                "only they",
                Cause.CALL,
                Relation(floats.infinite_as_null),
                frozenset({"float64-infinite"}),
            ),
            shared.float32_as_float64(tolerance=tolerance, relative_tolerance=_RELATIVE, bound=f"float64 {bound}"),
            Loss(
                f"floats keep {decimals} decimals",
                bound,
                Cause.CALL,
                Relation(floats.floats_of_decimals(decimals), tolerance=tolerance, relative_tolerance=_RELATIVE),
                frozenset(kinds),
                lossless=lossless,
            ),
            *(() if by_pyarrow else _guesses_of_pandas(tolerance)),
            shared.INTEGERS_AS_INT64,
            shared.INTEGERS_WITH_NULLS_AS_FLOAT64,
            *(_GUESSES_OF_PYARROW if by_pyarrow else ()),
            Loss(
                "dates and timestamps become milliseconds since 1970 (int64, with nulls float64)",
                "fractions of a millisecond, and the zone, are lost",
                Cause.CALL,
                Relation(times.times_as_ms_since_1970),
                frozenset({"date", *shared.TIMESTAMPS}),
            ),
            Loss(
                "durations become whole milliseconds (int64, with nulls float64)",
                "fractions of a millisecond are lost",
                Cause.CALL,
                Relation(times.durations_as_ms),
                frozenset({"duration"}),
            ),
            shared.written_as_text("time", expect=written.of_types("time32", "time64")),
            shared.vectors_as_lists_of_float64(tolerance=tolerance, relative_tolerance=_RELATIVE, bound=bound),
        )

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        how = f', orient="records", lines=True, double_precision={self.values["double_precision"]}'
        codec = pandas_codecs.argument(pandas_codecs.for_save(self.values))
        packed = pandas_codecs.argument(pandas_codecs.for_read(self.values))
        parser = ', engine="pyarrow"' if self.values["parser"] == "pyarrow" else ""
        return Calls(
            ("import pandas as pd",),
            f"{{held}}.to_json({{path}}{how}{codec})",
            f'pd.read_json({{path}}, orient="records", lines=True{packed}{parser})',
            append=PartCall(f'{{more}}.to_json({{path}}{how}, mode="a")'),
        )

    def load_library(self) -> None:
        """Import pandas, including modules that its first save or read would import."""
        import pandas
        import pandas.io.json

        pandas_codecs.load(self.values)
        if self.values.get("parser") == "pyarrow":
            import_module("pyarrow.json")
        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file, without the index of the DataFrame."""
        precision = int(str(self.values["double_precision"]))
        table.to_json(
            location,
            orient="records",
            lines=True,
            double_precision=precision,
            compression=pandas_codecs.for_save(self.values),
        )

    @property
    def offers(self) -> Offers:
        """Appending is offered only without a codec, and reading in batches only with the parser ujson."""
        plain = self.values["codec"] == "none"
        return Offers(append=plain, batches=self.values["parser"] == "ujson", save_stream=plain)

    def append(self, table: pd.DataFrame, location: Path) -> None:
        """Append the rows as lines."""
        precision = int(str(self.values["double_precision"]))
        table.to_json(location, orient="records", lines=True, double_precision=precision, mode="a")

    def save_stream(self, schema: pa.Schema, batches: Iterator[pd.DataFrame], location: Path) -> None:
        """Write the rows of each batch as lines."""
        precision = int(str(self.values["double_precision"]))
        nothing = self._pandas.DataFrame(columns=schema.names)
        with whole_or_nothing(location), location.open("w") as file:
            for batch in itertools.chain([next(batches, nothing)], batches):
                batch.to_json(file, orient="records", lines=True, double_precision=precision)

    def open(self, location: Path) -> Handle:
        """Return a handle that only remembers the location."""
        if not self.offers.batches:
            return Handle()

        def batches(columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
            compression: Any = pandas_codecs.for_read(self.values)
            read = self._pandas.read_json(
                location, orient="records", lines=True, chunksize=rows, compression=compression
            )
            with read as chunks:
                yield from (chunk[list(columns)] for chunk in chunks if len(chunk))

        return Handle(batches=batches)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns. The library guesses their types from the text."""
        if self.values["parser"] == "pyarrow":
            return self._pandas.read_json(location, orient="records", lines=True, engine="pyarrow")
        compression = pandas_codecs.for_read(self.values)
        return self._pandas.read_json(location, orient="records", lines=True, compression=compression)

    def stored(self, location: Path) -> Stored:
        """Return the codec of the file."""
        return Stored(pandas_codecs.codec_of(location))


class JsonPolars(_Json, LazyPolarsEngine):
    """JSON Lines by polars' write_ndjson and read_ndjson."""

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has columns of bytes, at which polars would stop with a Rust panic."""
        import pyarrow.types as of

        for field in schema:
            if of.is_binary(field.type) or of.is_large_binary(field.type):
                return f"polars cannot write bytes to JSON (column {field.name})"
        return super().refusal(schema, rows)

    losses = (
        text.NULLS_AS_NULL,
        shared.DICTIONARY_AS_VALUES,
        shared.NAN_AS_NULL,
        text.INFINITE_AS_NULL,
        text.INTEGERS_AS_INT64,
        shared.float16_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
        shared.float32_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
        text.DECIMALS_AS_TEXT,
        shared.vectors_as_lists_of_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
        shared.written_as_text(
            *("date", "date-early", "time", "duration", *shared.TIMESTAMPS),
            expect=written.of_types("date", "time", "duration"),
        ),
    )
    """Known changes to values that JSON cannot express. polars returns JSON strings as text, even if they are dates
    or times."""

    known_faults: ClassVar = {"map": "maps come back as structs that have every key of the column"}
    """Kinds of columns that polars 2.1 returns with wrong values, each with a description of the fault."""

    calls = lazy_calls("{held}.write_ndjson({path})", "pl.read_ndjson({path})", "pl.scan_ndjson({path})")

    def save(self, table: pl.DataFrame, location: Path) -> None:
        """Write the whole table as one file."""
        with self.refusing():
            table.write_ndjson(location)

    def read(self, location: Path) -> pl.DataFrame:
        """Read all columns. The library guesses their types from the text."""
        return self._polars.read_ndjson(location)

    def sink(self, frame: pl.LazyFrame, location: Path) -> None:
        """Write a lazy frame as one file."""
        frame.sink_ndjson(location)

    def lazy(self, location: Path) -> pl.LazyFrame:
        """Return the file as a lazy frame. polars guesses the types of its columns."""
        return self._polars.scan_ndjson(location)

    reads_unseen = True
    """polars maps such files into memory. The measuring code counts read calls, so it does not see these reads."""


class JsonDuckdb(_Json, DuckdbCopies):
    """JSON Lines by DuckDB's COPY statement and read_json."""

    losses = (
        text.NULLS_AS_NULL,
        shared.DICTIONARY_AS_VALUES,
        shared.DECIMALS_AS_FLOAT64,
        Loss(
            "integers of both signs become decimals, as do those beyond int64",
            "the same numbers",
            Cause.CALL,
            Relation(integers.integers_of_both_signs_as_decimals),
            frozenset({"int8", "int16", "int32", "int64", "int64-exact", "uint64"}),
        ),
        Loss(
            "other integers become int64",
            "the same numbers",
            Cause.FORMAT,
            Relation(integers.any_integers_as_int64),
            frozenset({"uint8", "uint16", "uint32"}),
        ),
        shared.float32_as_float64(bound="the same number as float64"),
        shared.vectors_as_lists_of_float64(bound="the same numbers as float64"),
        text.timestamps(
            "timestamps become us, and UTC where they have a zone",
            "fractions of a microsecond are lost if there is a zone",
            times.zoned_timestamps_cut_to_us,
            *("timestamp-s", "timestamp-ms"),
        ),
        text.BLOBS_AS_TEXT,
        shared.written_as_text(*("timestamp-ns", "duration"), expect=written.of_types("timestamp[ns]", "duration")),
    )
    """Known changes to values that JSON cannot express, and the changes because DuckDB guesses types."""

    known_faults: ClassVar = {"map": "maps come back as structs that have every key of the column"}
    """Kinds of columns that DuckDB 2.0 returns with wrong values, each with a description of the fault."""

    def copy_options(self) -> str:
        """Return the options of COPY for JSON, which DuckDB writes as one object on each line."""
        return "FORMAT json"

    def relation(self, connection: duckdb.DuckDBPyConnection, location: Path) -> duckdb.DuckDBPyRelation:
        """Return the file as a DuckDB relation. DuckDB guesses the types of its columns."""
        return connection.read_json(str(location), format="newline_delimited", hive_partitioning=False)


class JsonDask(DaskEngine, JsonPandas):
    """JSON Lines by dask.dataframe's to_json and read_json, which call pandas."""

    settings: ClassVar = {"double_precision": JsonPandas.settings["double_precision"]}
    capabilities = JsonPandas.capabilities - NOT_OFFERED

    def write(self, frame: dd.DataFrame, folder: Path) -> None:
        """Write one file of lines for each partition."""
        precision = int(str(self.values["double_precision"]))
        frame.to_json(
            f"{folder}/part-*.json", orient="records", lines=True, double_precision=precision, name_function=number
        )

    def frame_of(self, files: list[str]) -> dd.DataFrame:
        """Return the files as one dask DataFrame, with one partition for each file. dask guesses the types from the
        first file, and all files must have these types."""
        return self._frames.read_json(files, orient="records", lines=True)


ENGINES = (JsonPandas, JsonPolars, JsonDuckdb, JsonDask)

"""ORC by pyarrow, pandas and dask. An ORC file stores its rows in groups that are called stripes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored
from adapters.errors import AdapterError, RefusedData
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from adapters.relations import times
from formats.shared import pandas_losses as shared
from formats.shared.conditions import arrow_expression, dataset_calls
from formats.shared.dask_engine import NOT_OFFERED, DaskEngine
from formats.shared.projection import ProjectsByOneCall, in_order
from formats.shared.rows import located, starts_of
from formats.shared.streams import tables, whole_or_nothing

if TYPE_CHECKING:
    import dask.dataframe as dd
    import numpy as np
    import pandas as pd
    import pyarrow as pa

MOST_ROWS_OF_LEAST_STRIPE = 10_000
"""A stripe may have this number of rows even if it then exceeds the requested number of bytes. The reason is the
writer's index, which has one entry for every 10,000 rows."""

_TIMESTAMPS_AS_NS_IN_UTC = Loss(
    "timestamps become ns, and UTC where they have a zone",
    "the same points in time",
    Cause.FORMAT,
    Relation(times.timestamps_in(["s", "ms", "us"], "ns", "UTC")),
    frozenset(f"timestamp-{name}" for name in ("s", "ms", "us", "s-zone", "ms-zone", "us-zone", "ns-zone")),
)

_DATES_AS_TIMESTAMPS = Loss(
    "dates become timestamps at midnight (ms)",
    "the same days",
    Cause.CALL,
    Relation(times.dates_as_timestamps_in_ms),
    frozenset({"date", "date-early"}),
)


class _Orc(ProjectsByOneCall):
    """Base class of the adapters for ORC. The writer of ORC has codecs, but no level of compression."""

    format = "orc"
    title = "ORC"
    suffix = ".orc"
    settings: ClassVar = {
        "codec": Setting(("none", "snappy", "zlib", "lz4", "zstd"), "none", "codec of all streams", always_spelled=True)
    }
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "none"}
    equal: ClassVar = {"codec": "zstd"}
    maturity = Maturity(Stage.ESTABLISHED, "an Apache specification since 2013; implementations in Java, C++ and Rust")
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Return a context manager that raises RefusedData for pyarrow's error about timestamps that pyarrow cannot
        read.

        pyarrow reads ORC's timestamps only as nanoseconds. pyarrow also writes timestamps that do not fit into 64-bit
        nanoseconds, but cannot read these timestamps back.
        """
        try:
            yield
        except ValueError as error:
            if "out of range for nanosecond" not in str(error):
                raise
            raise RefusedData(
                f"pyarrow reads ORC's timestamps only as nanoseconds, and a timestamp does not fit ({error})"
            ) from error

    @property
    def codec(self) -> str:
        """pyarrow's name of the codec."""
        return "uncompressed" if self.values["codec"] == "none" else str(self.values["codec"])

    def stored(self, location: Path) -> Stored:
        """Return the codec and the number of stripes, from the metadata at the end of the file."""
        import pyarrow.orc

        with location.open("rb") as file:
            footer = pyarrow.orc.ORCFile(file)
            codec = footer.compression.lower()
            stripes = footer.nstripes
        return Stored("none" if codec in ("none", "uncompressed") else codec, (), {"stripes": str(stripes)})


class OrcPyarrow(_Orc):
    """ORC by pyarrow.orc's write_table and read_table."""

    engine = "pyarrow"
    distributions = ("pyarrow",)
    native = Native.ARROW
    settings: ClassVar = {
        **_Orc.settings,
        "stripe_bytes": Setting(range(65_536, 2**31), None, "bytes of a stripe before compression; by default 64 MiB"),
    }
    # Each thread needs its own handle. A file object has only one position, so threads that share the file object would
    # read wrong bytes.
    offers = Offers(
        project=True,
        take=Reach.GROUPS,
        scan=frozenset(Kind),
        sharing=Sharing.EACH,
        keeps_columns=True,
        batches=True,
        save_stream=True,
    )
    losses = (_TIMESTAMPS_AS_NS_IN_UTC, replace(shared.VECTORS_AS_LISTS, cause=Cause.FORMAT))
    """Known changes to data by ORC. ORC stores timestamps only in nanoseconds, and supports neither names of time zones
    nor vectors."""

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        stripe = "" if self.values["stripe_bytes"] is None else f", stripe_size={self.values['stripe_bytes']}"
        return Calls(
            ("from pyarrow import orc",),
            f'orc.write_table({{held}}, {{path}}, compression="{self.codec}"{stripe})',
            "orc.read_table({path})",
            project=PartCall("orc.read_table({path}, columns).select(columns)"),
            scan=dataset_calls("orc"),
        )

    def load_library(self) -> None:
        """Import pyarrow.orc, pyarrow.fs, which read_table uses to open files, and pyarrow.dataset, which filters."""
        import pyarrow.dataset
        import pyarrow.fs
        import pyarrow.orc

        self._arrow, self._dataset, self._orc = pyarrow, pyarrow.dataset, pyarrow.orc

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        self._orc.write_table(table, str(location), compression=self.codec, **self._stripes())

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as one file. The writer writes each stripe as soon as the stripe is full."""
        with (
            whole_or_nothing(location),
            self._orc.ORCWriter(str(location), compression=self.codec, **self._stripes()) as writer,
        ):
            # An empty table is written first, because without any table the writer would make no file.
            writer.write(schema.empty_table())
            for batch in batches:
                writer.write(self._arrow.Table.from_batches([batch]))

    def stored(self, location: Path) -> Stored:
        """Return the codec and the number of stripes. Raises AdapterError if stripes are much larger than requested."""
        asked = self.values["stripe_bytes"]
        with location.open("rb") as source:
            file = self._orc.ORCFile(source)
            stripes = max(file.nstripes, 1)
            mean_bytes, mean_rows = file.content_length // stripes, file.nrows // stripes
        if asked is not None and mean_bytes > 2 * int(asked) and mean_rows > MOST_ROWS_OF_LEAST_STRIPE:
            raise AdapterError(
                f"the stripes have {mean_bytes:,} bytes on average, more than twice the requested stripe_bytes={asked}"
            )
        return super().stored(location)

    def _stripes(self) -> dict[str, Any]:
        return {} if self.values["stripe_bytes"] is None else {"stripe_size": self.values["stripe_bytes"]}

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file."""
        with self.refusing():
            return self._orc.read_table(str(location))

    def project(self, location: Path, columns: list[str]) -> pa.Table:
        """Read only the data of these columns, and return them in the given order."""
        with self.refusing():
            return self._orc.read_table(str(location), columns).select(columns)

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Yield the rows of the given columns in batches, reading one stripe after the other."""
        with location.open("rb") as source:
            file = self._orc.ORCFile(source)
            if missing := set(columns).difference(file.schema.names):
                names = ", ".join(file.schema.names)
                raise KeyError(f"the file has no columns {sorted(missing)}; its columns: {names}")
            read = (file.read_stripe(stripe, columns) for stripe in range(file.nstripes))
            with self.refusing():
                yield from tables(read, columns, rows)

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pa.Table:
        """Read all rows of the needed columns, then filter the rows. pyarrow does not use the statistics of stripes."""
        table = self._dataset.dataset(str(location), format="orc")
        condition = arrow_expression(predicate)
        with self.refusing():
            return table.to_table(columns=columns, filter=condition, use_threads=self.threads is None)

    def open_rows(self, location: Path) -> Handle:
        """Return a handle that keeps the file open, and the number of rows of each stripe.

        pyarrow has no call for the number of rows of a stripe. If the file has several stripes, this method therefore
        reads one column of each stripe.
        """
        source = location.open("rb")
        file = self._orc.ORCFile(source)
        rows = [file.nrows]
        if file.nstripes > 1:
            first = [file.schema.names[0]]
            rows = [file.read_stripe(stripe, first).num_rows for stripe in range(file.nstripes)]
        starts = starts_of(rows)

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            stripes, places = located(numbers, starts)
            # A file without rows has no stripes. If no rows are requested, the first stripe is read for its types.
            if not file.nstripes:
                return file.read(list(columns)).select(columns)
            with self.refusing():
                parts = [file.read_stripe(stripe, list(columns)) for stripe in stripes or [0]]
            return self._arrow.Table.from_batches(parts).select(columns).take(places)

        return Handle(take=take, close=source.close)

    def open_columns(self, location: Path) -> Handle:
        """Return a handle that keeps the file open, and its footer in memory."""
        source = location.open("rb")
        file = self._orc.ORCFile(source)

        def project(columns: Sequence[str]) -> pa.Table:
            with self.refusing():
                return file.read(list(columns)).select(columns)

        return Handle(project=project, close=source.close)


class OrcPandas(_Orc):
    """ORC by pandas' DataFrame.to_orc and read_orc, which use pyarrow."""

    engine = "pandas"
    distributions = ("pandas",)
    native = Native.PANDAS
    losses: tuple[Loss, ...] = (
        shared.objects_of_nulls("bool-null"),
        _TIMESTAMPS_AS_NS_IN_UTC,
        shared.NAN_AS_NULL,
        shared.DECIMAL_PRECISION,
        shared.VECTORS_AS_LISTS,
        shared.integers_with_nulls_as_float64("int8", "int16", "int32", "int64", "int64-exact"),
        shared.BOOLEANS_WITH_NULLS_AS_OBJECTS,
        shared.INTEGERS_IN_MISSING_STRUCTS,
    )
    """Known changes to data. They affect columns of types that ORC lacks, and columns of types that only pandas has,
    because the file does not store pandas' types."""

    def load_library(self) -> None:
        """Import pandas, including modules that its first save or read would import."""
        import pandas

        for module in ("pyarrow.fs", "pyarrow.orc"):
            import_module(module)
        self._pandas = pandas

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        how = {"compression": self.codec}
        return Calls(
            ("import pandas as pd",),
            f"{{held}}.to_orc({{path}}, engine_kwargs={how})",
            "pd.read_orc({path})",
            project=PartCall("pd.read_orc({path}, columns)[columns]"),
        )

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file, without the index of the DataFrame."""
        table.to_orc(location, engine_kwargs={"compression": self.codec})

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns of the file."""
        with self.refusing():
            return self._pandas.read_orc(location)

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Read only the data of these columns, and return them in the given order."""
        with self.refusing():
            return in_order(self._pandas.read_orc(location, columns), columns)


class OrcDask(DaskEngine, OrcPandas):
    """ORC by dask.dataframe's to_orc and read_orc, which use pyarrow."""

    settings: ClassVar = {"codec": Setting(("none",), "none", "the only one of this call", always_spelled=True)}
    equal: ClassVar = {}
    capabilities = _Orc.capabilities - NOT_OFFERED
    modules = ("dask.dataframe.io.orc.arrow",)
    losses = (
        *(loss for loss in OrcPandas.losses if loss is not shared.INTEGERS_IN_MISSING_STRUCTS),
        *(_DATES_AS_TIMESTAMPS, shared.TEXT_AS_STR),
    )
    """Known changes to data. They are the changes that the pandas adapter declares, without the change to structs,
    because this adapter refuses structs. dask's conversion to pandas adds changes to dates and text."""

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has structs, which dask omits when it reads ORC."""
        import pyarrow.types as of

        for field in schema:
            if of.is_struct(field.type):
                return f"dask leaves columns of structs out when it reads ORC (column {field.name})"
        return super().refusal(schema, rows)

    def write(self, frame: dd.DataFrame, folder: Path) -> None:
        """Write one file for each partition, without the index of the DataFrame."""
        frame.to_orc(str(folder), write_index=False)

    def frame_of(self, files: list[str]) -> dd.DataFrame:
        """Return the files as one dask DataFrame, with one partition for each file. The schema is read from the first
        file."""
        return self._frames.read_orc(files, split_stripes=False)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all partitions."""
        with self.refusing():
            return super().read(location)


ENGINES = (OrcPyarrow, OrcPandas, OrcDask)

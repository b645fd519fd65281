"""Parquet by pyarrow, and by pandas and dask, which use pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import parquet_codecs
from adapters.column_numbers import COLUMN_NUMBERS, numbers_of
from adapters.contract import Calls, Can, Native, PartCall, Setting, Stored
from adapters.errors import AdapterError
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from adapters.relations import texts
from formats.parquet import parquet_columns
from formats.parquet.common import MOST_BYTES, MOST_ROWS, SECONDS_AS_MS, Parquet
from formats.parquet.parquet_columns import ENCODINGS
from formats.shared import pandas_losses as shared
from formats.shared.conditions import ARROW_TEXTS, IMPORT_COMPUTE, arrow_expression
from formats.shared.dask_engine import NOT_OFFERED, DaskEngine, number
from formats.shared.projection import ProjectsByOneCall
from formats.shared.rows import calls_of_groups, located, starts_of
from formats.shared.streams import gathered, tables, whole_or_nothing

if TYPE_CHECKING:
    import dask.dataframe as dd
    import numpy as np
    import pandas as pd
    import pyarrow as pa

STREAM_BUFFER_BYTES = 65_536
"""Size of the buffer for each column chunk when rows are read batch by batch. It is small, because wide tables have
thousands of column chunks."""
ROW_GROUP_ROWS = 1_048_576
"""pyarrow's default for the number of rows of a row group."""


COLUMN_SETTINGS = {
    **{name: f"with the encoding {encoding} instead of a dictionary" for name, encoding in ENCODINGS.items()},
    "raw": "without the codec",
}
"""Name of a setting whose value is a list of columns -> how these columns are stored."""


class ParquetPyarrow(ProjectsByOneCall, Parquet):
    """Parquet by pyarrow.parquet's write_table and read_table."""

    engine = "pyarrow"
    settings: ClassVar = {
        **Parquet.settings,
        "row_group_rows": Setting(MOST_ROWS, None, "rows of a row group; by default 1,048,576"),
        "page_rows": Setting(MOST_ROWS, None, "maximum rows of a data page; by default 20,000"),
        "page_index": Setting(("false", "true"), "false", "whether to store the statistics of pages (the page index)"),
        "dictionary": Setting(("true", "false"), "true", "whether columns may be stored with dictionaries"),
        "statistics": Setting(("true", "false"), "true", "whether to store the minimum and maximum of column chunks"),
        "page_bytes": Setting(MOST_BYTES, None, "bytes of a data page before compression; by default 1 MiB"),
        "page_version": Setting(("1.0", "2.0"), "1.0", "version of data pages"),
        "dictionary_bytes": Setting(MOST_BYTES, None, "largest dictionary of a column chunk; by default 1 MiB"),
        "files": Setting(range(2, 10_001), None, "files of a folder, at most one a row; by default one file"),
        "order": Setting(range(1 << 14), None, "number of the column by which rows are sorted before they are stored"),
        **{name: Setting(COLUMN_NUMBERS, None, f"columns {what}") for name, what in COLUMN_SETTINGS.items()},
    }
    distributions = ("pyarrow",)
    native = Native.ARROW
    reads_folders = True

    @property
    def capabilities(self) -> frozenset[Can]:  # type: ignore[override]
        """What a stored copy allows. A copy in several files is a folder."""
        return Parquet.capabilities - ({Can.SINGLE_FILE} if self.values["files"] is not None else frozenset())

    @property
    def offers(self) -> Offers:
        """The optional operations, which depend on two settings. With `order` the rows are sorted before they are
        stored, so operations that need the table's order are not offered. With `files`, only reading columns and
        filtering are offered."""
        if self.values["files"] is not None:
            return Offers(project=True, scan=frozenset(Kind) if self.values["order"] is None else frozenset())
        in_order = self.values["order"] is None
        # Each thread needs its own handle, because several threads that use one ParquetFile crash the process.
        return Offers(
            project=True,
            take=Reach.GROUPS if in_order else None,
            scan=frozenset(Kind) if in_order else frozenset(),
            sharing=Sharing.EACH if in_order else None,
            keeps_columns=True,
            batches=True,
            save_stream=in_order,
        )

    losses = (shared.CATEGORIES_OF_NULLS, shared.DICTIONARY_OF_NUMBERS_AS_VALUES, SECONDS_AS_MS)
    """Known changes to data. Parquet has no timestamps in seconds. pyarrow reads dictionaries only if their values are
    text or bytes."""

    @property
    def calls(self) -> Calls | None:
        """The code that a user writes to save and read the data without this adapter.

        None if the code takes more than one call (rows are sorted, or several files are written), or if it depends on
        the table (a setting names columns).
        """
        set_apart = self.values["order"] is not None or self.values["files"] is not None
        if set_apart or any(self._columns(setting) for setting in COLUMN_SETTINGS):
            return None
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        more = "".join(f", {name}={value!r}" for name, value in self._writing().items())
        before, taken = calls_of_groups(
            "file.num_row_groups",
            "file.metadata.row_group(group).num_rows",
            "file.read_row_groups(groups.tolist(), columns=columns).select(columns)",
        )
        return Calls(
            ("import pyarrow.parquet as pq",),
            f'pq.write_table({{held}}, {{path}}, compression="{self.values["codec"]}"{level}{more})',
            "pq.read_table({path})",
            project=PartCall("pq.read_table({path}, columns=columns)"),
            take=PartCall(taken, ("file = pq.ParquetFile({path})", *before), ("import numpy as np",)),
            scan={
                kind: PartCall(f"pq.read_table({{path}}, columns=columns, filters={met})", (), (IMPORT_COMPUTE,))
                for kind, met in ARROW_TEXTS.items()
            },
        )

    def _writing(self) -> dict[str, Any]:
        """Return the arguments of write_table that differ from pyarrow's defaults, except for codec and level."""
        asked: dict[str, Any] = {
            "row_group_size": self.values["row_group_rows"],
            "max_rows_per_page": self.values["page_rows"],
            "write_page_index": self.values["page_index"] == "true" or None,
            "use_dictionary": None if self.values["dictionary"] == "true" else False,
            "write_statistics": None if self.values["statistics"] == "true" else False,
            "data_page_size": self.values["page_bytes"],
            "data_page_version": None if self.values["page_version"] == "1.0" else self.values["page_version"],
            "dictionary_pagesize_limit": self.values["dictionary_bytes"],
        }
        return {name: value for name, value in asked.items() if value is not None}

    def _columns(self, setting: str) -> tuple[int, ...]:
        text = self.values[setting]
        return () if text is None else numbers_of(str(text))

    def arguments(self, schema: pa.Schema) -> dict[str, Any]:
        """Return the arguments with which pyarrow.parquet.write_table writes a table of this schema."""
        level = {} if self.values["level"] is None else {"compression_level": self.values["level"]}
        return {"compression": self.values["codec"], **level, **self._writing(), **self._by_column(schema)}

    def _by_column(self, schema: pa.Schema) -> dict[str, Any]:
        """Return the arguments of write_table that name columns. These arguments replace `compression` and
        `use_dictionary`, which otherwise apply to the whole table."""
        encoded = {
            schema.names[number]: encoding
            for setting, encoding in ENCODINGS.items()
            for number in self._columns(setting)
        }
        raw = {schema.names[number] for number in self._columns("raw")}
        if not encoded and not raw:
            return {}
        leaves = parquet_columns.leaves(self._parquet, schema)
        asked: dict[str, Any] = {}
        if encoded:
            with_dictionary = [leaf for leaf in leaves if leaf not in encoded]
            asked["use_dictionary"] = with_dictionary if self.values["dictionary"] == "true" else False
            asked["column_encoding"] = encoded
        if raw:
            codec, level = self.values["codec"], self.values["level"]
            asked["compression"] = {leaf: "none" if leaf in raw else codec for leaf in leaves}
            if level is not None:
                asked["compression_level"] = {leaf: level for leaf in leaves if leaf not in raw}
        return asked

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if a setting cannot apply to this table: if it names a column that does not exist or has an
        unsuitable type, if a column has two encodings, or if ordered categories would be stored without a dictionary.

        pyarrow then makes new categories from the values that it reads, in the order of their first appearance."""
        named = [number for setting in ENCODINGS for number in self._columns(setting)]
        twice = next((number for number in named if named.count(number) > 1), None)
        if twice is not None:
            return f"the settings name two encodings for column {twice}"
        order = self.values["order"]
        if order is not None and (reason := parquet_columns.unfit(schema, "order", [int(order)])):
            return reason
        for setting in COLUMN_SETTINGS:
            if reason := parquet_columns.unfit(schema, setting, self._columns(setting)):
                return reason
        ordered = [field.name for field in schema if parquet_columns.has_ordered_categories(field.type)]
        if ordered and self.values["dictionary"] == "false":
            return f"dictionary=false changes the order of the categories in column {ordered[0]!r}; use dictionary=true"
        return super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import pyarrow.parquet, and pyarrow.dataset, which read_table uses."""
        import pyarrow.dataset
        import pyarrow.parquet

        self._parquet = pyarrow.parquet

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file, or as a folder of files."""
        if (number := self.values["order"]) is not None:
            table = table.sort_by(table.schema.names[int(number)])
        arguments = self.arguments(table.schema)
        if (files := self.values["files"]) is None:
            self._parquet.write_table(table, location, **arguments)
            return
        location.mkdir()
        count = max(1, min(int(files), table.num_rows))
        ends = [table.num_rows * number // count for number in range(count + 1)]
        for number, (first, last) in enumerate(pairwise(ends)):
            part = table.slice(first, last - first)
            self._parquet.write_table(part, location / f"part-{number:05d}.parquet", **arguments)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as one file, one row group at a time.

        Batches are combined first, because the writer makes a row group of each table that it gets."""
        options = self.arguments(schema)
        rows = int(options.pop("row_group_size", ROW_GROUP_ROWS))
        with whole_or_nothing(location), self._parquet.ParquetWriter(location, schema, **options) as writer:
            for group in gathered(schema, batches, rows):
                writer.write_table(group, rows)

    def stored(self, location: Path) -> Stored:
        """Return the codec and the encodings of all column chunks.

        Raises AdapterError if the file's footer contradicts the settings."""
        paths = [location] if self.values["files"] is None else sorted(location.iterdir())
        footers = [self._parquet.read_metadata(path) for path in paths]
        if (files := self.values["files"]) is not None:
            count = max(1, min(int(files), sum(footer.num_rows for footer in footers)))
            if len(paths) != count:
                raise AdapterError(f"the copy has {len(paths):,} files, but must have {count:,} (files={files})")
        found = [self._stored(footer) for footer in footers]
        codec = "+".join(sorted({each.codec or "" for each in found}))
        return Stored(codec, tuple(sorted({name for each in found for name in each.encodings})), found[0].details)

    def _stored(self, footer: Any) -> Stored:
        parquet_codecs.check_layout(
            footer,
            row_group_rows=self.values["row_group_rows"],
            page_index=self.values["page_index"] == "true",
            dictionary=self.values["dictionary"] == "true",
            statistics=self.values["statistics"] == "true",
        )
        names = footer.schema.to_arrow_schema().names
        for setting, encoding in ENCODINGS.items():
            columns = {names[number] for number in self._columns(setting)}
            parquet_codecs.check_encoding(footer, columns, encoding, f"{setting}={self.values[setting]}")
        raw = {names[number] for number in self._columns("raw")}
        return parquet_codecs.stored_of(footer, raw)

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file."""
        return self._parquet.read_table(location, use_threads=self.threads is None)

    def project(self, location: Path, columns: list[str]) -> pa.Table:
        """Read only the chunks of these columns."""
        return self._parquet.read_table(location, columns=columns, use_threads=self.threads is None)

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pa.Table:
        """Read the row groups whose statistics allow matching rows, and filter the rows that were read."""
        met = arrow_expression(predicate)
        return self._parquet.read_table(location, columns=columns, filters=met, use_threads=self.threads is None)

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Yield the rows of the given columns in batches, reading the column chunks piece by piece.

        This needs two arguments. Without `pre_buffer=False`, pyarrow would keep every chunk in memory until the end.
        Without `buffer_size`, pyarrow would read each chunk as a whole.
        """
        with self._parquet.ParquetFile(location, pre_buffer=False, buffer_size=STREAM_BUFFER_BYTES) as file:
            read = file.iter_batches(rows, columns=columns, use_threads=self.threads is None)
            yield from tables(read, columns, rows)

    def open_rows(self, location: Path) -> Handle:
        """Return a handle that keeps the file open, and its footer in memory."""
        file = self._parquet.ParquetFile(location)
        footer = file.metadata
        starts = starts_of([footer.row_group(group).num_rows for group in range(footer.num_row_groups)])

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            groups, places = located(numbers, starts)
            read = file.read_row_groups(groups, columns=list(columns), use_threads=self.threads is None)
            # pyarrow returns the columns in the order of the file, so they are selected again.
            return read.select(columns).take(places)

        return Handle(take=take, close=file.close)

    def open_columns(self, location: Path) -> Handle:
        """Return a handle that keeps the file open, and its footer in memory."""
        file = self._parquet.ParquetFile(location)

        def project(columns: Sequence[str]) -> pa.Table:
            return file.read(columns=list(columns), use_threads=self.threads is None).select(columns)

        return Handle(project=project, close=file.close)


_THROUGH_PANDAS = (
    SECONDS_AS_MS,
    shared.NAN_AS_NULL,
    shared.DECIMAL_PRECISION,
    shared.VECTORS_AS_LISTS,
    shared.INTEGERS_IN_MISSING_STRUCTS,
)
"""Known changes to data by Parquet, which has no timestamps in seconds, and by the conversion of an Arrow table to a
DataFrame."""


class ParquetPandas(ProjectsByOneCall, Parquet):
    """Parquet by pandas' DataFrame.to_parquet and read_parquet, which use pyarrow."""

    engine = "pandas"
    distributions = ("pandas",)
    native = Native.PANDAS
    losses: tuple[Loss, ...] = (
        shared.objects_of_nulls("date-null"),
        replace(shared.CATEGORIES_OF_NULLS, targets=frozenset({"pandas", "arrow"})),
        Loss(
            "categoricals of integers with nulls become float64",
            "rounded to float64",
            Cause.CALL,
            Relation(texts.dictionary_of_integers_with_nulls_as_float64),
            frozenset({"categorical-int64"}),
        ),
        shared.DICTIONARY_OF_NUMBERS_AS_VALUES,
        *_THROUGH_PANDAS,
    )

    def load_library(self) -> None:
        """Import pandas, including modules that its first save or read would import."""
        import pandas

        for module in ("pyarrow.dataset", "pyarrow.parquet", "pandas.core.arrays.arrow.extension_types"):
            import_module(module)
        self._pandas = pandas

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        codec = None if self.values["codec"] == "none" else self.values["codec"]
        return Calls(
            ("import pandas as pd",),
            f"{{held}}.to_parquet({{path}}, compression={codec!r}{level})",
            "pd.read_parquet({path})",
            project=PartCall("pd.read_parquet({path}, columns=columns)"),
        )

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file. pandas does not store a default index."""
        codec: Any = None if self.values["codec"] == "none" else self.values["codec"]
        table.to_parquet(location, compression=codec, compression_level=self.values["level"])

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns of the file."""
        return self._pandas.read_parquet(location, use_threads=self.threads is None)

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Read only the chunks of these columns."""
        return self._pandas.read_parquet(location, columns=columns, use_threads=self.threads is None)


class ParquetDask(DaskEngine, ParquetPandas):
    """Parquet by dask.dataframe's to_parquet and read_parquet, which use pyarrow."""

    capabilities = Parquet.capabilities - NOT_OFFERED
    modules = ("dask.dataframe.io.parquet.arrow",)
    losses = (shared.objects_of_nulls("date-null"), *_THROUGH_PANDAS, shared.TEXT_AS_STR)
    """Known changes to data. They are the changes that the pandas adapter declares, without the changes to
    categoricals, which dask restores. dask adds a change to text."""

    def write(self, frame: dd.DataFrame, folder: Path) -> None:
        """Write one file for each partition, without the index of the DataFrame. Without `schema=None`, dask would
        refuse columns of objects, such as dates."""
        codec: Any = None if self.values["codec"] == "none" else self.values["codec"]
        frame.to_parquet(
            str(folder),
            write_index=False,
            schema=None,
            compression=codec,
            compression_level=self.values["level"],
            name_function=_name,
        )

    def frame_of(self, files: list[str]) -> dd.DataFrame:
        """Return the files as one dask DataFrame, with exactly one partition for each file. The names of folders do not
        become columns."""
        return self._frames.read_parquet(files, index=False, split_row_groups=False, dataset={"partitioning": None})


def _name(partition: int) -> str:
    return f"part-{number(partition)}.parquet"

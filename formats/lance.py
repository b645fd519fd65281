"""Lance, a format designed for random access. A stored copy is a folder of data files and of files with metadata."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import lance_pages
from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored, TabularFormat
from adapters.errors import AdapterError, RefusedData, RefusedSetting
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from formats.shared.conditions import SQL_TEXTS, minus_zero, sql_condition, sql_literal
from formats.shared.rows import checked
from formats.shared.streams import tables, whole_or_nothing

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def _without_order(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return None
    return column.cast(pa.dictionary(column.type.index_type, column.type.value_type))


_REFUSALS = ("does not encode struct validity", "is not enabled by the selected file format")
"""Parts of Lance's error messages about data that the requested version of its data files cannot store."""
_NO_SUCH_SCHEMA = ("LanceError(Schema): ", "Invalid user input: ")
"""Beginnings of Lance's error messages about schemas that no version can store. Lance raises OSError for such schemas,
as it does for a full disk, so only the message tells these errors apart."""
_RESERVED = frozenset(("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"))
"""Names of columns that Lance itself can add when it reads."""
_CATEGORIES_WITHOUT_ORDER = Loss(
    "ordered categoricals lose their order",
    "the same values",
    Cause.FORMAT,
    Relation(_without_order),
    frozenset({"categorical-ordered"}),
)


class LancePylance(TabularFormat):
    """Lance by the library pylance, which takes and returns Arrow tables."""

    format = "lance"
    engine = "pylance"
    title = "Lance"
    distributions = ("pylance",)
    native = Native.ARROW
    suffix = ".lance"
    settings: ClassVar = {
        "codec": Setting(
            ("auto", "none", "lz4", "zstd"), "auto", "general compression of all columns; auto: the writer's own choice"
        ),
        "level": Setting(range(1, 23), None, "level of the codec; by default the codec's own default level"),
        "version": Setting(("2.0", "2.1", "2.2"), "2.2", "version of the data files"),
        "structural": Setting(
            ("default", "miniblock", "fullzip"), "default", "layout of pages with values; needs version 2.1 or newer"
        ),
        "library_cache": Setting(
            ("on", "off"),
            "on",
            "whether metadata and indices stay in memory while a data set is open, within Lance's limits",
        ),
        "index": Setting(
            ("none", "btree"), "none", "btree: the save also makes an index of each column of numbers, times or text"
        ),
    }
    levels: ClassVar = {"zstd": range(1, 23)}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    maturity = Maturity(
        Stage.YOUNG, "one implementation, in Rust, which other languages bind; new versions of its files still appear"
    )
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.TYPES, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(
        project=True,
        take=Reach.ROWS,
        scan=frozenset(Kind),
        append=True,
        sharing=Sharing.ONE,
        keeps_columns=True,
        batches=True,
        save_stream=True,
    )
    losses = (_CATEGORIES_WITHOUT_ORDER,)
    """Known changes to data by Lance's writer. It stores dictionaries, but not whether their values are ordered."""

    @property
    def calls(self) -> Calls | None:
        """The code that a user writes to save and read the data without this adapter.

        None if the code takes more than one line: with a codec or page layout, which must be set in the metadata of
        every field, or with an index, which a separate call makes."""
        if self.values["codec"] != "auto" or self.values["structural"] != "default" or self.values["index"] != "none":
            return None
        version = "" if self.values["version"] == "2.2" else f', data_storage_version="{self.values["version"]}"'
        cache = "".join(f", {name}={value}" for name, value in self._caches().items())
        opened = f"lance.dataset({{path}}{cache})"
        return Calls(
            ("import lance",),
            f"lance.write_dataset({{held}}, {{path}}{version})",
            f"{opened}.to_table()",
            project=PartCall(f"{opened}.to_table(columns=columns).select(columns)"),
            take=PartCall(f"{opened}.take(rows, columns=columns).select(columns)"),
            scan={
                kind: PartCall(f"{opened}.to_table(columns=columns, filter={met}).select(columns)")
                for kind, met in SQL_TEXTS.items()
            },
            append=PartCall('lance.write_dataset({more}, {path}, mode="append")'),
        )

    def _checked(self, given: Mapping[str, str]) -> dict[str, str | int | None]:
        values = super()._checked(given)
        if values["version"] == "2.0" and values["structural"] != "default":
            raise RefusedSetting(f"lance: structural={values['structural']} needs version=2.1 or later (got 2.0)")
        return values

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return why the table cannot be stored, if Lance rejects a column's name or does not find it when it reads."""
        for name in schema.names:
            if name in _RESERVED:
                return f"Lance reserves the column name {name!r}"
            if "." in name:
                return f"the column name {name!r} contains '.', so Lance takes it for a field of a struct"
            if "`" in name or "\0" in name or not name:
                return f"Lance does not find a column named {name!r} when it reads"
        return super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import lance."""
        import lance
        import lance.file
        import lance.fragment

        self._lance, self._fragments = lance, lance.fragment

    def save(self, table: pa.Table, location: Path) -> None:
        """Write a data set with one version. The codec is set in the metadata of each field, where Lance expects it."""
        self._write(self._with_metadata(table), location)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as a data set, whose first version appears when the stream ends."""
        import pyarrow as pa

        stored = self._schema_with_metadata(schema)
        with whole_or_nothing(location):
            self._write(pa.RecordBatchReader.from_batches(stored, (batch.cast(stored) for batch in batches)), location)

    def _write(self, data: pa.Table | pa.RecordBatchReader, location: Path) -> None:
        version: Any = self.values["version"]
        try:
            self._lance.write_dataset(data, str(location), data_storage_version=version)
        except OSError as error:
            message = str(error)
            if "too wide for miniblock" in message:
                raise RefusedData(
                    "structural=miniblock: a value is too large: a chunk of 8,186 bytes must hold at least two values"
                ) from error
            if any(sign in message for sign in _REFUSALS):
                raise RefusedData(f"version={version}: {message}") from error
            if message.startswith(_NO_SUCH_SCHEMA):
                raise RefusedData(f"Lance refuses this data ({message})") from error
            raise
        if self.values["index"] != "none":
            # Every column that can have an index gets one, because any column may be used by a later condition.
            dataset = self._lance.dataset(str(location))
            for field in filter(_takes_index, data.schema):
                dataset.create_scalar_index(field.name, "BTREE")

    def _with_metadata(self, table: pa.Table) -> pa.Table:
        stored = self._schema_with_metadata(table.schema)
        # Tables that already have this schema are not cast, because even such a cast takes time.
        return table if stored.equals(table.schema, check_metadata=True) else table.cast(stored)

    def _schema_with_metadata(self, schema: pa.Schema) -> pa.Schema:
        metadata = {}
        if self.values["codec"] != "auto":
            metadata[lance_pages.CODEC_KEY] = str(self.values["codec"]).encode()
        if self.values["level"] is not None:
            metadata[lance_pages.LEVEL_KEY] = str(self.values["level"]).encode()
        if self.values["structural"] != "default":
            metadata[lance_pages.STRUCTURAL_KEY] = str(self.values["structural"]).encode()
        if not metadata:
            return schema
        import pyarrow as pa

        return pa.schema([field.with_metadata(metadata) for field in schema])

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the latest version."""
        return self._dataset(location).to_table()

    def _dataset(self, location: Path) -> Any:
        return self._lance.dataset(str(location), **self._caches())

    def _caches(self) -> dict[str, Any]:
        if self.values["library_cache"] == "on":
            return {}
        return {"index_cache_size_bytes": 0, "metadata_cache_size_bytes": 0}

    def open(self, location: Path) -> Handle:
        """Return a handle of the data set's latest version. A data set keeps no file open, so `close` does nothing."""
        dataset = self._dataset(location)
        rows = dataset.count_rows()

        def project(columns: Sequence[str]) -> pa.Table:
            # Lance takes names for expressions. The selection afterwards drops columns that the name '*' would add, and
            # raises an error for names that are other expressions.
            return dataset.to_table(columns=list(columns)).select(columns)

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            asked = checked(numbers, rows).tolist()
            return dataset.take(asked, columns=list(columns)).select(columns)

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            return dataset.to_table(columns=list(columns), filter=_condition(predicate)).select(columns)

        def batches(columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
            return tables(dataset.to_batches(columns=list(columns), batch_size=rows), columns, rows)

        return Handle(project=project, take=take, scan=scan, batches=batches)

    def part(self, folder: Path, number: int) -> tuple[TabularFormat, Path]:
        """Return two objects: an adapter that stores partition `number` as a fragment of a data set, and the folder of
        the data set."""
        settings = {key: str(value) for key, value in self.values.items() if value is not None}
        return LanceFragment(settings, number), folder

    def commit_parts(self, folder: Path, count: int) -> None:
        """Create the first version of the data set, which has the fragments of all partitions."""
        import pyarrow as pa

        places = [_description(folder, number) for number in range(count)]
        described = [json.loads(place.read_text()) for place in places]
        fragments = [self._fragments.FragmentMetadata.from_json(json.dumps(each["fragment"])) for each in described]
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described[0]["schema"])))
        self._lance.LanceDataset.commit(str(folder), self._lance.LanceOperation.Overwrite(schema, fragments))
        for place in places:
            place.unlink()

    def count_parts(self, folder: Path) -> int:
        """Return the number of fragments of the data set, which is the number of its partitions."""
        return len(self._dataset(folder).get_fragments())

    def append(self, table: pa.Table, location: Path) -> None:
        """Write the rows as a fragment, and a new version of the data set that includes the fragment.

        Indices do not include the new rows, so a condition tests each of the new rows."""
        self._lance.write_dataset(self._with_metadata(table), str(location), mode="append")

    def stored(self, location: Path) -> Stored:
        """Return the codec and the encodings of all pages. Raises AdapterError if the files contradict the settings."""
        dataset = self._lance.dataset(str(location))
        found = lance_pages.stored_of(location, dataset, self._lance.file.LanceFileReader)
        if found.details["file format"] != self.values["version"]:
            version = found.details["file format"]
            raise AdapterError(f"the files have version {version} instead of version={self.values['version']}")
        lance_pages.check_layout(found.encodings, str(self.values["structural"]))
        indexed = {name for index in dataset.describe_indices() for name in index.field_names}
        wanted = set() if self.values["index"] == "none" else {*filter(_takes_index, dataset.schema)}
        if indexed != (names := {field.name for field in wanted}):
            raise AdapterError(
                f"the data set has indices of the columns {sorted(indexed)}, but index={self.values['index']} "
                f"requires indices of {sorted(names)}"
            )
        return found


def _takes_index(field: pa.Field) -> bool:
    """Return whether this adapter makes a B-tree index of such a column. Booleans and nested columns get none."""
    import pyarrow.types as of

    kinds = (of.is_integer, of.is_floating, of.is_date, of.is_timestamp, of.is_string, of.is_large_string)
    return any(is_it(field.type) for is_it in kinds)


def _condition(predicate: Predicate) -> str:
    """Return the condition as a filter in Lance's SQL.

    In Lance's SQL, -0.0 is less than 0.0, and NaN is greater than all other numbers. The filter is written so that
    -0.0 equals 0.0, and so that a NaN in the condition matches nothing."""
    name = "`" + predicate.column.replace("`", "``") + "`"
    values = [value for value in predicate.present if value == value]
    if predicate.kind is Kind.RANGE and len(values) == 2:
        low, high = (minus_zero(value) for value in values)
        return f"{name} >= {sql_literal(low)} AND {name} < {sql_literal(high)}"
    if predicate.kind in (Kind.EQUAL, Kind.IN) and any(value == 0 and isinstance(value, float) for value in values):
        return " OR ".join(f"({name} >= {sql_literal(minus_zero(v))} AND {name} <= {sql_literal(v)})" for v in values)
    return sql_condition(predicate, name)


class LanceFragment(LancePylance):
    """Stores and reads one partition of a table, as a fragment of a Lance data set.

    Fragments become visible when `LancePylance.commit_parts` commits all of them together."""

    def __init__(self, settings: Mapping[str, str], number: int) -> None:
        super().__init__(settings, threads=1)
        self.number = number
        self.load_library()

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the file of the fragment, and a file with the fragment's description, which the commit reads and
        removes."""
        version: Any = self.values["version"]
        described = self._with_metadata(table)
        (fragment,) = self._fragments.write_fragments(
            described, str(location), data_storage_version=version, max_rows_per_file=max(len(table), 1)
        )
        schema = base64.b64encode(described.schema.serialize().to_pybytes()).decode()
        about = {"fragment": fragment.to_json(), "schema": schema}
        _description(location, self.number).write_text(json.dumps(about))

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the fragment."""
        return self._fragment(location).to_table()

    def open(self, location: Path) -> Handle:
        """Return a handle of the fragment, which supports only `scan`."""
        fragment = self._fragment(location)

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            return fragment.to_table(columns=list(columns), filter=_condition(predicate)).select(columns)

        return Handle(scan=scan)

    def _fragment(self, location: Path) -> Any:
        return self._dataset(location).get_fragments()[self.number]


def _description(location: Path, number: int) -> Path:
    return location / f"fragment-{number:05d}.json"


ENGINES = (LancePylance,)

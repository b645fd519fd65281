"""Avro by fastavro and polars. An Avro file has the schema of its rows, and then the rows in blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Records, Setting, Stage, Stored, TabularFormat
from adapters.errors import RefusedData
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.relations import integers, times
from formats.shared import pandas_losses as shared
from formats.shared.polars_engine import POLARS_CODECS, PolarsEngine
from formats.shared.rows import located, starts_of
from formats.shared.streams import whole_or_nothing

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    import pyarrow as pa

Schema = str | dict[str, Any] | list[Any]
"""An Avro schema: a type's name, a dict for one type, or a list of alternative types."""

_ROW_NAME = "row"

_HEADER_BYTES = 1 << 20
"""Number of bytes to read in order to get a file's header. The schemas of this project's tables are smaller."""

_TO_AVRO: Mapping[str, Schema] = {
    "null": "null",
    "bool": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "uint8": "int",
    "uint16": "int",
    "uint32": "long",
    "uint64": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "bytes",
    "large_binary": "bytes",
    "binary_view": "bytes",
    "date32[day]": {"type": "int", "logicalType": "date"},
    "time32[s]": {"type": "int", "logicalType": "time-millis"},
    "time32[ms]": {"type": "int", "logicalType": "time-millis"},
    "time64[us]": {"type": "long", "logicalType": "time-micros"},
    "timestamp[s]": {"type": "long", "logicalType": "local-timestamp-millis"},
    "timestamp[ms]": {"type": "long", "logicalType": "local-timestamp-millis"},
    "timestamp[us]": {"type": "long", "logicalType": "local-timestamp-micros"},
}
"""Maps the name of an Arrow type to an Avro schema. It has the logical types of the Avro 1.11 specification that
fastavro supports."""

_ZONED_LOGICAL_TYPES = {"s": "timestamp-millis", "ms": "timestamp-millis", "us": "timestamp-micros"}

_LOSSES = (
    replace(shared.DICTIONARY_AS_VALUES, cause=Cause.CALL),
    Loss(
        "integers become int (32 bits) or long (64 bits)",
        "the same numbers",
        Cause.FORMAT,
        Relation(integers.integers_as_int32_or_int64),
        frozenset({"int8", "int16", "uint8", "uint16", "uint32"}),
    ),
    Loss(
        "timestamps in s become ms, and UTC where they have a zone",
        "the same points in time",
        Cause.FORMAT,
        Relation(times.timestamps_in(["s"], "ms", "UTC")),
        frozenset({"timestamp-s", "timestamp-s-zone", "timestamp-ms-zone", "timestamp-us-zone"}),
    ),
)

_MATURITY = Maturity(
    Stage.ESTABLISHED, "an Apache specification since 2009; implementations in Java, C, C++, C#, Python and Rust"
)


class AvroFastavro(TabularFormat):
    """Avro by fastavro's writer and reader, which take and return rows as dicts (records)."""

    format = "avro"
    engine = "fastavro"
    title = "Avro"
    distributions = ("fastavro",)
    native = Native.RECORDS
    suffix = ".avro"
    settings: ClassVar = {
        "codec": Setting(
            ("none", "deflate", "snappy", "bzip2", "xz", "zstandard"),
            "none",
            "codec of all blocks",
            always_spelled=True,
        ),
        "level": Setting(range(1, 23), None, "level of the codec; by default the codec's own default level"),
    }
    # fastavro accepts a level for every codec, but uses the level only for these codecs.
    levels: ClassVar = {"deflate": range(1, 10), "zstandard": range(1, 23)}
    codec_names: ClassVar = {"zstd": "zstandard"}
    codec_distributions: ClassVar = {"snappy": "cramjam", "zstandard": "backports.zstd"}
    equal: ClassVar = {"codec": "zstandard", "level": "1"}
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "none"}
    maturity = _MATURITY
    capabilities = frozenset({Can.APPEND, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(project=True, take=Reach.GROUPS, append=True, batches=True, save_stream=True, sharing=Sharing.EACH)
    losses = (shared.CATEGORIES_OF_NULLS, *_LOSSES)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has columns of types that Avro cannot store."""
        try:
            avro_schema(schema)
        except RefusedData as refused:
            return str(refused)
        return super().refusal(schema, rows)

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        codec = "null" if self.values["codec"] == "none" else self.values["codec"]
        level = "" if self.values["level"] is None else f", codec_compression_level={self.values['level']}"
        schema = "avro_schema({held}.schema)"
        return Calls(
            ("import fastavro", "import pyarrow as pa", "from formats.avro import avro_schema"),
            f'fastavro.writer(open({{path}}, "wb"), {schema}, {{held}}.to_pylist(), codec="{codec}"{level})',
            'pa.Table.from_pylist(list(fastavro.reader(open({path}, "rb"))))',
        )

    def load_library(self) -> None:
        """Import fastavro."""
        import fastavro
        import pyarrow.types  # noqa: F401  # used to describe the schemas

        self._fastavro = fastavro

    def save(self, table: Records, location: Path) -> None:
        """Write all records as one file."""
        self._write(table.schema, table.rows, location)

    def save_stream(self, schema: pa.Schema, batches: Iterator[Records], location: Path) -> None:
        """Write a stream of records as one file. fastavro writes each block as soon as the block is full."""
        with whole_or_nothing(location):
            self._write(schema, (row for batch in batches for row in batch.rows), location)

    def _write(self, schema: pa.Schema, rows: Iterable[Mapping[str, Any]], location: Path) -> None:
        described = self._fastavro.parse_schema(avro_schema(schema))
        codec = "null" if self.values["codec"] == "none" else str(self.values["codec"])
        level: Any = self.values["level"]
        with location.open("wb") as file:
            self._fastavro.writer(file, described, rows, codec=codec, codec_compression_level=level)

    def read(self, location: Path) -> Records:
        """Return all records with their Arrow schema, which is derived from the file's Avro schema."""
        with location.open("rb") as file:
            reader = self._fastavro.reader(file)
            return Records(arrow_schema(reader.writer_schema), list(reader))  # type: ignore[arg-type]

    def open(self, location: Path) -> Handle:
        """Return a handle that keeps the file open, and keeps the schema from the file's header."""
        file = location.open("rb")
        try:
            schema: Any = self._fastavro.reader(file).writer_schema
        except BaseException:
            file.close()
            raise

        def project(columns: Sequence[str]) -> Records:
            asked = _with_fields(schema, columns)
            file.seek(0)
            return Records(arrow_schema(asked), list(self._fastavro.reader(file, reader_schema=asked)))

        def batches(columns: Sequence[str], rows: int) -> Iterator[Records]:
            asked = _with_fields(schema, columns)
            file.seek(0)
            records = iter(self._fastavro.reader(file, reader_schema=asked))
            while batch := list(itertools.islice(records, rows)):
                yield Records(arrow_schema(asked), batch)

        return Handle(project=project, batches=batches, close=file.close)

    def open_rows(self, location: Path) -> Handle:
        """Return a handle that keeps the file open, and the number of records of each block.

        To count the records, this method reads all blocks without decoding them."""
        file = location.open("rb")
        try:
            blocks = self._fastavro.block_reader(file)
            schema: Any = blocks.writer_schema
            starts = starts_of([block.num_records for block in blocks])
        except BaseException:
            file.close()
            raise

        def take(numbers: np.ndarray, columns: Sequence[str]) -> Records:
            needed, places = located(numbers, starts)
            asked = _with_fields(schema, columns)
            file.seek(0)
            chosen = iter(needed)
            following = next(chosen, None)
            rows: list[Any] = []
            for number, block in enumerate(self._fastavro.block_reader(file, reader_schema=asked)):
                if following is None:
                    break
                if number == following:
                    rows += block
                    following = next(chosen, None)
            return Records(arrow_schema(asked), [rows[place] for place in places.tolist()])

        return Handle(take=take, close=file.close)

    def append(self, table: Records, location: Path) -> None:
        """Append blocks of records. The records are written with the schema of the file."""
        with location.open("a+b") as file:
            self._fastavro.writer(file, None, table.rows)  # type: ignore[arg-type]

    def stored(self, location: Path) -> Stored:
        """Return the codec in the file's header."""
        with location.open("rb") as file:
            codec = self._fastavro.reader(file).codec
        return Stored("none" if codec == "null" else codec)


class AvroPolars(PolarsEngine):
    """Avro by polars' write_avro and read_avro."""

    format = "avro"
    title = "Avro"
    suffix = ".avro"
    settings: ClassVar = {
        "codec": Setting(("none", "deflate", "snappy"), "none", "codec of all blocks", always_spelled=True)
    }
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "none"}
    maturity = _MATURITY
    capabilities = frozenset({Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    losses = (
        shared.DICTIONARY_OF_NUMBERS_AS_VALUES,
        Loss(
            "timestamps in s become ms",
            "the same points in time",
            Cause.CALL,
            Relation(times.timestamps_in(["s"], "ms")),
            frozenset({"timestamp-s"}),
        ),
    )

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        codec = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        return Calls(
            ("import polars as pl",),
            f'{{held}}.write_avro({{path}}, compression="{codec}")',
            "pl.read_avro({path})",
            project=PartCall("pl.read_avro({path}, columns=columns).select(pl.selectors.by_name(*columns))"),
        )

    def save(self, table: pl.DataFrame, location: Path) -> None:
        """Write the whole table as one file."""
        codec: Any = POLARS_CODECS.get(str(self.values["codec"]), self.values["codec"])
        for name, dtype in table.schema.items():
            if dtype == self._polars.Null:
                raise RefusedData(f"polars cannot write a column of the type null to Avro (column {name})")
        with self.refusing():
            table.write_avro(location, compression=codec)

    def read(self, location: Path) -> pl.DataFrame:
        """Read all columns of the file."""
        return self._polars.read_avro(location)

    def project(self, location: Path, columns: list[str]) -> pl.DataFrame:
        """Return only these columns in the given order. polars decodes all columns."""
        return self._polars.read_avro(location, columns=columns).select(self._polars.selectors.by_name(*columns))

    def stored(self, location: Path) -> Stored:
        """Return the codec in the file's header."""
        with location.open("rb") as file:
            return Stored(_header_codec(file.read(_HEADER_BYTES)))


def _header_codec(header: bytes) -> str:
    """Return the codec that a file's header names, or 'none'. `header` are the first bytes of the file.

    The header has the text 'avro.codec' followed by the name of the codec. Before each of these texts is a byte with
    twice the length of the text (Avro 1.11 specification, object container files).
    """
    _, name, after = header.partition(b"\x14avro.codec")
    if not name:
        return "none"
    codec = after[1 : 1 + after[0] // 2].decode()
    return "none" if codec == "null" else codec


def _with_fields(schema: Mapping[str, Any], columns: Sequence[str]) -> Schema:
    """Return the Avro schema of a record with only these fields, in this order. Raises KeyError for a missing field."""
    by_name = {field["name"]: field for field in schema["fields"]}
    return {**schema, "fields": [by_name[column] for column in columns]}


def avro_schema(schema: pa.Schema) -> Schema:
    """Return the Avro schema for rows of this Arrow schema. Raises RefusedData for a type that Avro cannot store."""
    return _record(_ROW_NAME, schema)


def _record(name: str, fields: Iterable[pa.Field]) -> Schema:
    described = [{"name": field.name, "type": _field_type(field, f"{name}_{field.name}")} for field in fields]
    return {"type": "record", "name": name, "fields": described}


def _field_type(field: pa.Field, path: str) -> Schema:
    described = _avro_type(field.type, path)
    return ["null", described] if field.nullable and described != "null" else described


def _avro_type(arrow_type: pa.DataType, path: str) -> Schema:
    import pyarrow.types as of

    if described := _TO_AVRO.get(str(arrow_type)):
        return described
    if of.is_timestamp(arrow_type) and arrow_type.unit in _ZONED_LOGICAL_TYPES:
        return {"type": "long", "logicalType": _ZONED_LOGICAL_TYPES[arrow_type.unit]}
    if of.is_decimal(arrow_type) and arrow_type.scale >= 0:
        numbers = {"precision": arrow_type.precision, "scale": arrow_type.scale}
        return {"type": "bytes", "logicalType": "decimal", **numbers}
    if of.is_dictionary(arrow_type):
        return _avro_type(arrow_type.value_type, path)
    if of.is_map(arrow_type) and str(arrow_type.key_type) in ("string", "large_string"):
        return {"type": "map", "values": _field_type(arrow_type.item_field, path)}
    if of.is_list(arrow_type) or of.is_large_list(arrow_type):
        return {"type": "array", "items": _field_type(arrow_type.value_field, path)}
    if of.is_struct(arrow_type):
        return _record(path, arrow_type)
    raise RefusedData(f"fastavro cannot store the type {arrow_type} in Avro (column {path.removeprefix('row_')})")


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema for records of this Avro schema."""
    import pyarrow as pa

    return pa.schema([_arrow_field(field) for field in schema["fields"]])


def _arrow_field(field: Mapping[str, Any]) -> pa.Field:
    import pyarrow as pa

    described = field["type"]
    nullable = isinstance(described, list)
    return pa.field(
        field["name"], _arrow_type(described[1] if nullable else described), nullable or described == "null"
    )


def _arrow_type(described: Any) -> pa.DataType:
    import pyarrow as pa

    plain = {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "bytes": pa.binary(),
        "date": pa.date32(),
        "time-millis": pa.time32("ms"),
        "time-micros": pa.time64("us"),
        "local-timestamp-millis": pa.timestamp("ms"),
        "local-timestamp-micros": pa.timestamp("us"),
        "timestamp-millis": pa.timestamp("ms", "UTC"),
        "timestamp-micros": pa.timestamp("us", "UTC"),
    }
    if isinstance(described, str):
        return plain[described]
    kind = described.get("logicalType", described["type"])
    if kind == "decimal":
        return pa.decimal128(described["precision"], described["scale"])
    if kind == "map":
        return pa.map_(pa.string(), _arrow_field({"name": "value", "type": described["values"]}))
    if kind == "array":
        return pa.list_(_arrow_field({"name": "item", "type": described["items"]}))
    if kind == "record":
        return pa.struct([_arrow_field(field) for field in described["fields"]])
    return plain[kind]


ENGINES = (AvroFastavro, AvroPolars)

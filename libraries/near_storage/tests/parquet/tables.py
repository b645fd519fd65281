"""Files of every writer and type with every difficulty, in small row groups; and their rows as Python values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import fastparquet
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 24
"""Rows of a row group."""
DUCKDB_ROWS = 2048
"""DuckDB makes no smaller row groups, so its rows are repeated."""
GROUPS = 10
TROUBLES = ("plain", "nulls", "all null", "one value", "one value and nulls")

Row = dict[str, object]


def troubled(
    rng: random.Random, make: Callable[[int], object], special: Sequence[object] = (), nulls: bool = True
) -> list:
    """Return values for all row groups, each around its own centre; some have special values, nulls or one value."""
    values: list[object] = []
    for group in range(GROUPS):
        centre = rng.randrange(1000)
        found: list[object] = [make(centre + rng.randrange(20)) for _ in range(ROWS)]
        trouble = TROUBLES[group % len(TROUBLES)] if nulls else ("one value" if group % 4 == 3 else "plain")
        if trouble.startswith("one value"):
            found = [found[0]] * ROWS
        if special and group % 3 == 1:
            found = [rng.choice(special) if rng.random() < 0.4 else value for value in found]
        if trouble.endswith("nulls"):
            found = [None if rng.random() < 0.3 else value for value in found]
        values += [None] * ROWS if trouble == "all null" else found
    return values


def text(number: int) -> str:
    """Return text that is shorter than a code, as long, longer, or far longer than writers keep in bounds."""
    return (f"{number:05d}", f"text{number:04d}", f"a longer text {number:04d}", "ü" * (number % 7) + "z" * 300)[
        number % 4
    ]


FLOATS = (math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf)
EPOCH = datetime(2020, 1, 1)


def arrow_columns(rng: random.Random) -> dict[str, pa.Array]:
    """Return one column for each type that pyarrow writes."""

    def column(type_: pa.DataType, make: Callable[[int], object], special: Sequence[object] = ()) -> pa.Array:
        return pa.array(troubled(rng, make, special), type_)

    def small(number: int) -> int:
        return number % 100

    columns = {
        "bool": column(pa.bool_(), lambda number: number % 50 > 10),
        "int8": column(pa.int8(), small, (-128, 127)),
        "int16": column(pa.int16(), int, (-(2**15),)),
        "int32": column(pa.int32(), lambda number: number - 500, (2**31 - 1,)),
        "int64": column(pa.int64(), lambda number: number - 500, (-(2**63), 2**63 - 1)),
        "uint8": column(pa.uint8(), lambda number: number % 256, (255,)),
        "uint16": column(pa.uint16(), int, (2**16 - 1,)),
        "uint32": column(pa.uint32(), int, (2**32 - 1,)),
        "uint64": column(pa.uint64(), int, (2**64 - 1,)),
        "float16": column(pa.float16(), lambda number: float(number % 64), FLOATS),
        "float32": column(pa.float32(), lambda number: number / 4, FLOATS),
        "float64": column(pa.float64(), lambda number: number / 3 - 100, FLOATS),
        "string": column(pa.string(), text, ("", "\0", "a\0")),
        "large_string": column(pa.large_string(), text),
        "string_view": column(pa.string_view(), text),
        "dictionary": pa.array(troubled(rng, text)).dictionary_encode(),
        "binary": column(pa.binary(), lambda number: text(number).encode(), (b"", b"\xff" * 9)),
        "fixed4": column(pa.binary(4), lambda number: number.to_bytes(4, "big"), (b"\xff" * 4,)),
        "fixed12": column(pa.binary(12), lambda number: b"1234" + number.to_bytes(4, "big") + b"5678"),
        "date32": column(pa.date32(), int, (-719162,)),
        "time_ms": column(pa.time32("ms"), int),
        "time_us": column(pa.time64("us"), int),
        "time_ns": column(pa.time64("ns"), int),
        "timestamp_s": column(pa.timestamp("s"), int),
        "timestamp_ms": column(pa.timestamp("ms", "Europe/Berlin"), int, (-(10**12),)),
        "timestamp_us": column(pa.timestamp("us"), int, (2**63 - 1,)),
        "timestamp_ns": column(pa.timestamp("ns", "UTC"), lambda number: number * 10**15),
        "duration": column(pa.duration("us"), lambda number: number - 500),
        "decimal32": column(pa.decimal32(7, 2), lambda number: Decimal(number).scaleb(-2)),
        "decimal64": column(pa.decimal64(16, 3), lambda number: Decimal(number - 500).scaleb(-3)),
        "decimal128": column(pa.decimal128(38, 4), lambda number: Decimal(number - 500).scaleb(-4), (Decimal(10**30),)),
        "decimal256": column(pa.decimal256(60, 4), lambda number: Decimal(number - 500).scaleb(-4), (Decimal(10**50),)),
        "null": pa.nulls(ROWS * GROUPS),
    }
    lists = [None if value is None else [value] for value in columns["int64"].to_pylist()]
    structs = [{"x": value} for value in columns["int64"].to_pylist()]
    return columns | {"list": pa.array(lists), "struct": pa.array(structs)}


def by_pyarrow(path: Path, rng: random.Random, **options: object) -> None:
    """Write with an empty row group in the middle and another at the end."""
    table = pa.table(arrow_columns(rng))
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        writer.write_table(table.slice(0, 5 * ROWS), ROWS)
        writer.write_table(table.slice(0, 0))
        writer.write_table(table.slice(5 * ROWS), ROWS)
        writer.write_table(table.slice(0, 0))


def by_pyarrow_as_int96(path: Path, rng: random.Random) -> None:
    columns = {"timestamp": pa.array(troubled(rng, lambda number: number * 10**15), pa.timestamp("ns"))}
    pq.write_table(pa.table(columns), path, row_group_size=ROWS, use_deprecated_int96_timestamps=True)


def by_polars(path: Path, rng: random.Random) -> None:
    def column(make: Callable[[int], object], type_: object, special: Sequence[object] = ()) -> pl.Series:
        return pl.Series(troubled(rng, make, special), dtype=type_)

    frame = {
        "bool": column(lambda number: number % 50 > 10, pl.Boolean),
        "int8": column(lambda number: number % 100, pl.Int8, (-128,)),
        "int64": column(lambda number: number - 500, pl.Int64),
        "uint32": column(int, pl.UInt32, (2**32 - 1,)),
        "uint64": column(int, pl.UInt64, (2**64 - 1,)),
        "float32": column(lambda number: number / 4, pl.Float32, FLOATS),
        "float64": column(lambda number: number / 3 - 100, pl.Float64, FLOATS),
        "string": column(text, pl.String, ("", "a\0")),
        "categorical": column(lambda number: text(number), pl.Categorical),
        "binary": column(lambda number: text(number).encode(), pl.Binary, (b"", b"\xff" * 70)),
        "date": column(lambda number: date(2020, 1, 1) + timedelta(number), pl.Date),
        "time": column(lambda number: time(number % 24), pl.Time),
        "datetime": column(lambda number: EPOCH + timedelta(seconds=number), pl.Datetime("us")),
        "datetime_ns": column(lambda number: EPOCH + timedelta(seconds=number), pl.Datetime("ns")),
        "duration": column(lambda number: timedelta(seconds=number - 500), pl.Duration("us")),
        "decimal": column(lambda number: Decimal(number - 500).scaleb(-2), pl.Decimal(20, 2)),
        "list": pl.Series([[value] for value in troubled(rng, int)]),
    }
    pl.DataFrame(frame).write_parquet(path, row_group_size=ROWS, statistics="full")


DUCKDB_TYPES = {
    **{"bool": "boolean", "int8": "tinyint", "int32": "integer", "int64": "bigint", "uint8": "utinyint"},
    **{"uint32": "uinteger", "uint64": "ubigint", "float32": "float", "float64": "double", "string": "varchar"},
    **{"binary": "blob", "small": "decimal(4,2)", "middle": "decimal(9,2)", "large": "decimal(18,3)"},
    **{"huge": "decimal(38,3)", "date": "date", "time": "time", "timestamp": "timestamp", "zoned": "timestamptz"},
    **{"nanoseconds": "timestamp_ns"},
}


def by_duckdb(path: Path, rng: random.Random) -> None:
    def decimal(scale: int) -> Callable[[int], Decimal]:
        return lambda number: Decimal(number - 500).scaleb(-scale)

    values = {
        "bool": troubled(rng, lambda number: number % 50 > 10),
        "int8": troubled(rng, lambda number: number % 100, (-128,)),
        "int32": troubled(rng, lambda number: number - 500),
        "int64": troubled(rng, lambda number: number - 500, (-(2**63), 2**63 - 1)),
        "uint8": troubled(rng, lambda number: number % 256, (255,)),
        "uint32": troubled(rng, int, (2**32 - 1,)),
        "uint64": troubled(rng, int, (2**64 - 1,)),
        "float32": troubled(rng, lambda number: number / 4, FLOATS),
        "float64": troubled(rng, lambda number: number / 3 - 100, FLOATS),
        "string": troubled(rng, text, ("", "a\0")),
        "binary": troubled(rng, lambda number: text(number).encode(), (b"", b"\xff" * 300)),
        "small": troubled(rng, lambda number: Decimal(number).scaleb(-2)),
        "middle": troubled(rng, decimal(2)),
        "large": troubled(rng, decimal(3)),
        "huge": troubled(rng, decimal(3), (Decimal(10**30),)),
        "date": troubled(rng, lambda number: date(2020, 1, 1) + timedelta(number)),
        "time": troubled(rng, lambda number: time(number % 24)),
        "timestamp": troubled(rng, lambda number: EPOCH + timedelta(seconds=number)),
        "zoned": troubled(rng, lambda number: EPOCH.replace(tzinfo=UTC) + timedelta(seconds=number)),
        "nanoseconds": troubled(rng, lambda number: EPOCH + timedelta(seconds=number)),
    }
    rows = pa.table(values | {"uint64": pa.array(values["uint64"], pa.uint64())})
    each = DUCKDB_ROWS // ROWS + 1
    places = [group * ROWS + row % ROWS for group in range(GROUPS) for row in range(each * ROWS)[:DUCKDB_ROWS]]
    repeated = rows.take(places)  # noqa: F841, DuckDB finds it by its name
    casts = ", ".join(f'"{name}"::{type_} as "{name}"' for name, type_ in DUCKDB_TYPES.items())
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            f"copy (select {casts} from repeated) to '{path}' (format parquet, row_group_size {DUCKDB_ROWS})"
        )


def by_fastparquet(path: Path, rng: random.Random) -> None:
    count = ROWS * GROUPS
    frame = pd.DataFrame(
        {
            "int8": np.array(troubled(rng, lambda number: number % 100, (-128,), nulls=False), "i1"),
            "int64": np.array(troubled(rng, lambda number: number - 500, nulls=False), "i8"),
            "uint32": np.array(troubled(rng, int, (2**32 - 1,), nulls=False), "u4"),
            "uint64": np.array(troubled(rng, int, (2**64 - 1,), nulls=False), "u8"),
            "float32": np.array(troubled(rng, lambda number: number / 4, FLOATS, nulls=False), "f4"),
            "float64": np.array(troubled(rng, lambda number: number / 3, FLOATS, nulls=False), "f8"),
            "bool": np.array(troubled(rng, lambda number: number % 50 > 10, nulls=False), bool),
            "string": troubled(rng, text, ("", "a\0"), nulls=False),
            "binary": [value.encode() for value in troubled(rng, text, nulls=False)],
            "nullable": pd.array(troubled(rng, int), dtype="Int64"),
            "timestamp": pd.Timestamp(EPOCH) + pd.to_timedelta(troubled(rng, int, nulls=False), unit="s"),
            "category": pd.Categorical(troubled(rng, text, nulls=False)),
        },
        index=range(count),
    )
    encodings = {"string": "utf8", "binary": "bytes"}
    fastparquet.write(str(path), frame, row_group_offsets=ROWS, stats=True, object_encoding=encodings)


WRITERS: dict[str, Callable[[Path, random.Random], None]] = {
    "pyarrow": by_pyarrow,
    "pyarrow 1.0": lambda path, rng: by_pyarrow(path, rng, version="1.0", use_dictionary=False),
    "pyarrow, decimals as numbers": lambda path, rng: by_pyarrow(path, rng, store_decimal_as_integer=True),
    "pyarrow, few statistics": lambda path, rng: by_pyarrow(path, rng, write_statistics=["int64", "float64", "string"]),
    "pyarrow, int96": by_pyarrow_as_int96,
    "polars": by_polars,
    "duckdb": by_duckdb,
    "fastparquet": by_fastparquet,
}


def in_python(array: pa.ChunkedArray) -> list:
    """Return values as literals have them: counts for dates and times, text for dictionaries."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return array.cast(type_.value_type).to_pylist()
    if pa.types.is_temporal(type_):
        return array.cast(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist()
    return array.to_pylist()


def rows_of(path: Path, columns: Sequence[str]) -> list[list[Row]]:
    """Return the distinct rows of each row group."""
    file = pq.ParquetFile(path)
    found = []
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=list(columns))
        values = zip(*(in_python(table.column(name)) for name in columns), strict=True)
        distinct = {repr(row): row for row in values}.values()
        found.append([dict(zip(columns, row, strict=True)) for row in distinct])
    return found


def literal_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of literals that are compared with a column of this type."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_

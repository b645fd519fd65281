"""Random Parquet files of every writer, identified by a seed, with many small row groups, so that pruning matters."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import fastparquet
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from libraries.filters.tests.random_tables import PARQUET_TYPES, python_values, table

POLARS_TYPES = tuple(
    type
    for type in PARQUET_TYPES
    if not (pat.is_float16(type) or pat.is_dictionary(type) or pat.is_decimal256(type) or pat.is_time(type))
    and type not in (pa.binary(2), pa.timestamp("s"), pa.duration("ms"))
)
DUCKDB_TYPES = tuple(
    type
    for type in POLARS_TYPES
    if not (pat.is_string_view(type) or pat.is_binary_view(type) or type == pa.timestamp("ns", "Europe/Berlin"))
)
FASTPARQUET_TYPES = (
    pa.int8(),
    pa.uint16(),
    pa.int32(),
    pa.uint32(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
)
FASTPARQUET_TYPES += (pa.string(), pa.bool_(), pa.timestamp("ns"))


def write(rng: random.Random, folder: Path) -> tuple[list[Path], pa.Table]:
    """Write a few files of one schema; return them and their rows as read by pyarrow."""
    writer, types = rng.choice(
        [(_by_pyarrow, PARQUET_TYPES)] * 3
        + [(_by_duckdb, DUCKDB_TYPES), (_by_polars, POLARS_TYPES), (_by_fastparquet, FASTPARQUET_TYPES)]
    )
    rows = table(rng, rng.sample(types, rng.randint(1, 5)), rng.choice((0, 1, 30, 80)))
    if rng.random() < 0.6:
        rows = _clustered(rng, rows)
    cuts = sorted(rng.randint(0, rows.num_rows) for _ in range(rng.choice((0, 0, 1, 2)))) if rows.num_rows else []
    paths = []
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, rows.num_rows], strict=True)):
        paths.append(folder / f"{number}.parquet")
        try:
            writer(rng, rows.slice(start, end - start), paths[-1])
        except pa.ArrowInvalid:
            # Parquet has no seconds: the first and last seconds of int64 do not fit in milliseconds.
            return write(rng, folder)
    read = [pq.ParquetFile(path).read().replace_schema_metadata() for path in paths]
    # fastparquet converts integers with nulls to floats.
    same = 1 if any(not each.schema.equals(read[0].schema) for each in read) else len(paths)
    return paths[:same], pa.concat_tables(read[:same])


def _clustered(rng: random.Random, rows: pa.Table) -> pa.Table:
    """Sort by one column, so that row groups differ; nulls and NaN come last."""
    values = python_values(rows[rng.choice(rows.column_names)])
    order = sorted(range(len(values)), key=lambda row: (_place(values[row]), values[row] is not None and values[row]))
    return pa.concat_tables([rows.slice(0, 0), *(rows.slice(row, 1) for row in order)]).combine_chunks()


def _place(value: object) -> int:
    return 2 if value is None else 1 if value != value else 0


def _by_pyarrow(rng: random.Random, rows: pa.Table, path: Path) -> None:
    options = {
        "compression": rng.choice(("none", "snappy", "zstd")),
        "use_dictionary": rng.random() < 0.6,
        "write_statistics": rng.choice((True, True, True, False, rows.column_names[:1])),
        "data_page_version": rng.choice(("1.0", "2.0")),
        "data_page_size": rng.choice((50, 1 << 20)),
    }
    with pq.ParquetWriter(path, rows.schema, **options) as writer:
        for piece in _pieces(rng, rows):
            writer.write_table(piece, row_group_size=max(1, piece.num_rows))


def _pieces(rng: random.Random, rows: pa.Table) -> list[pa.Table]:
    """Split into row groups, some of them empty."""
    size = rng.choice((1, 3, 10, 100))
    pieces = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
    for _ in range(rng.choice((0, 0, 1, 2))):
        pieces.insert(rng.randint(0, len(pieces)), rows.slice(0, 0))
    return pieces


def _by_duckdb(rng: random.Random, rows: pa.Table, path: Path) -> None:
    codec = rng.choice(("uncompressed", "snappy", "zstd"))
    duckdb.sql(f"COPY rows TO '{path}' (FORMAT parquet, CODEC '{codec}', ROW_GROUP_SIZE 10)")


def _by_polars(rng: random.Random, rows: pa.Table, path: Path) -> None:
    compression = rng.choice(("uncompressed", "snappy", "zstd"))
    statistics = rng.choice((True, True, False, "full"))
    polars.from_arrow(rows).write_parquet(path, row_group_size=10, compression=compression, statistics=statistics)


def _by_fastparquet(rng: random.Random, rows: pa.Table, path: Path) -> None:
    frame = rows.to_pandas()
    frame.columns = [name.replace(".", "_") for name in frame.columns]
    fastparquet.write(str(path), frame, row_group_offsets=rng.choice((3, 10)), stats=rng.choice((True, False)))

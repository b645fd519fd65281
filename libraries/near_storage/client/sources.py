"""Turn the source of an upload into Parquet files, one per partition: existing files, or rows written to new files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from libraries.near_storage.errors import FooterError, RequestError

PARTITION_ROWS = 1_000_000
"""Default rows per partition of an Arrow table."""
GROUP_ROWS = 131_072
"""Rows per row group of files that are written here."""

TableSource: TypeAlias = "pa.Table | str | Path | Sequence[str | Path]"


def partitions(source: TableSource, rows_per_partition: int | None) -> Iterator[Path]:
    """Yield the files to upload, in the table's order. A file written here is removed when the next file is requested.

    Raises RequestError if there are no files or fewer than 1 row per partition, and FooterError for a file that must be
    rewritten but is not Parquet.
    """
    if rows_per_partition is not None and rows_per_partition < 1:
        raise RequestError(f"rows per partition must be at least 1 (got {rows_per_partition})")
    if not isinstance(source, pa.Table) and rows_per_partition is None:
        yield from _paths(source)
        return
    with tempfile.TemporaryDirectory(prefix="near-storage-") as folder:
        for number, table in enumerate(_tables(source, rows_per_partition or PARTITION_ROWS)):
            path = Path(folder) / f"{number}.parquet"
            try:
                pq.write_table(table, path, row_group_size=GROUP_ROWS)
            except (pa.ArrowException, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    # The error is about the disk, not about the table.
                    raise
                raise RequestError(f"the table cannot be written as Parquet: {str(error)[:200]}") from None
            yield path
            path.unlink()


def all_bytes(source: TableSource, rows_per_partition: int | None) -> int | None:
    """Return the total size of the files; None if they are written during the upload."""
    if isinstance(source, pa.Table) or rows_per_partition is not None:
        return None
    return sum(path.stat().st_size for path in _paths(source))


def _paths(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the named files. For a folder, return its files that end in .parquet, sorted by name."""
    found: list[Path] = []
    for named in [source] if isinstance(source, str | Path) else source:
        path = Path(named)
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise RequestError(
                f"{path}: has no file that ends in .parquet (subfolders are not searched)\n"
                "  name Parquet files, or a folder that contains some"
            )
        found += files
    if not found:
        raise RequestError("no file to upload: name Parquet files, or a folder that contains some")
    for path in found:
        if not path.is_file():
            raise RequestError(f"{path}: not a file; name Parquet files, or a folder that contains some")
    return found


def _tables(source: TableSource, rows: int) -> Iterator[pa.Table]:
    """Yield all rows as tables of `rows` rows; the last table may be shorter. Without rows, yield one empty table."""
    if isinstance(source, pa.Table):
        for start in range(0, max(1, source.num_rows), rows):
            yield source.slice(start, rows)
        return
    paths = _paths(source)
    held: list[pa.RecordBatch] = []
    count = given = 0
    for batch in _batches(paths):
        while count + batch.num_rows >= rows:
            head = batch.slice(0, rows - count)
            yield pa.Table.from_batches([*held, head])
            held, count, given, batch = [], 0, given + 1, batch.slice(head.num_rows)
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held:
        yield pa.Table.from_batches(held)
    elif not given:
        yield _schema(paths[0]).empty_table()


def _batches(paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    first = _schema(paths[0])
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                if not file.schema_arrow.equals(first):
                    raise RequestError(f"{path}: has other columns than {paths[0]}; upload it as a separate table")
                yield from file.iter_batches()
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> FooterError:
    return FooterError(f"{path}: cannot be read as Parquet ({str(error)[:200]})")

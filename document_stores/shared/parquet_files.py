"""Shared code of stores that use Parquet files: codecs, and reading a file as a DuckDB relation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapters.errors import AdapterError
from document_stores.sql.values import Quoted

CODECS = ("none", "snappy", "zstd")


def from_file(duckdb: Any, connection: Any, location: Path) -> tuple[str, Any]:
    """Return the SQL expression for FROM that reads the file under the name `documents`, and DuckDB's description of
    the file's columns.

    Raises AdapterError, and closes the connection, for a file that is missing or not Parquet.
    """
    if not location.is_file():
        connection.close()
        raise AdapterError(f"{location}: the file does not exist")
    # With hive partitioning, a parent folder named run=3 would add or replace the field `run` of all documents.
    relation = f"read_parquet({Quoted.text(_literally(location))}, hive_partitioning = false) AS documents"
    try:
        return relation, connection.execute(f"SELECT * FROM {relation} LIMIT 0").description
    except duckdb.Error as error:
        connection.close()
        raise AdapterError(f"{location}: cannot be read as Parquet ({error})") from None


def said_of(connection: Any, location: Path, name: str) -> str | None:
    """Return the value of the entry `name` in the file's footer, or None if there is no such entry."""
    found = connection.execute(
        f"SELECT decode(value) FROM parquet_kv_metadata({Quoted.text(_literally(location))}) WHERE decode(key) = ?",
        [name],
    ).fetchone()
    return None if found is None else str(found[0])


def _literally(location: Path) -> str:
    """Return the path with DuckDB's wildcard characters escaped by brackets."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(location))


def codec_of(parquet: Any, location: Path) -> str:
    """Return the codec of a file's columns. The file's footer contains the codec. Different codecs are joined by
    '+'."""
    with parquet.ParquetFile(location) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        found = {group.column(column).compression for group in groups for column in range(group.num_columns)}
    return "none" if not found or found == {"UNCOMPRESSED"} else "+".join(sorted(found - {"UNCOMPRESSED"})).lower()

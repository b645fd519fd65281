"""SQLite: a database with one table. The declared types of its columns identify Arrow's types.

SQLite itself has only 64-bit integers, floats, text and bytes. Values of other types are stored as one of these types:
timestamps and dates as ISO 8601 text, which sorts by time, decimals as text, and booleans as 0 and 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.contract import Can, Maturity, Native, Stage, Stored, TabularFormat
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach
from adapters.predicate import Kind, Predicate
from adapters.relations import floats, times
from formats.shared import pandas_losses as shared
from formats.shared import text_losses as text
from formats.shared.rows import ascending, checked
from formats.shared.sql import quoted, same_but_for_case, selected

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    import pyarrow as pa

_TABLE = "data"
_BATCH_ROWS = 65_536
"""Maximum number of rows that are Python objects at the same time."""
_MOST_COLUMNS = 2_000
"""SQLite's default for the maximum number of columns. SQLite can be compiled with another limit."""
_ROW_NUMBERS = ("rowid", "oid", "_rowid_")
"""SQLite's names for the number of a row. If a column has one of these names, the name means this column instead."""

_PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_TIMESTAMP = re.compile(r"TIMESTAMP(TZ)?\((\d)\)")
_DECIMAL = re.compile(r"DECIMAL_TEXT\((\d+),(-?\d+)\)")
"""Declared type of decimals. TEXT is part of the name, because SQLite converts numeric text to floats if a column is
declared as DECIMAL."""


class Sqlite(TabularFormat):
    """SQLite by Python's sqlite3 with SQLite's defaults: pages of 4 KiB, and every commit is synced to the disk."""

    format = "sqlite-table"
    engine = "sqlite3"
    title = "SQLite table"
    distributions = ("pyarrow",)
    native = Native.ARROW
    lost_names = r"\0"
    suffix = ".sqlite"
    parts = "a database is one file with one writer"
    maturity = Maturity(
        Stage.ESTABLISHED, "a published format, readable since 2004 and pledged until 2050; in use everywhere"
    )
    capabilities = frozenset(
        {Can.PROJECTION, Can.APPEND, Can.TYPES, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )
    offers = Offers(project=True, take=Reach.ROWS, scan=frozenset(Kind), append=True)
    syncs_on_save = True
    losses = (
        shared.CATEGORIES_OF_NULLS,
        shared.DICTIONARY_AS_VALUES,
        text.INTEGERS_AS_INT64,
        shared.float32_as_float64(bound="the same number as float64"),
        replace(shared.NAN_AS_NULL, cause=Cause.FORMAT),
        Loss(
            "-0.0 becomes 0.0",
            "only the sign of zero",
            Cause.FORMAT,
            Relation(floats.without_minus_zero),
            frozenset({"float64-zero"}),
        ),
        Loss(
            "timestamps with a zone become UTC",
            "the same points in time",
            Cause.FORMAT,
            Relation(times.zones_as_utc),
            frozenset(f"timestamp-{unit}-zone" for unit in _PLACES),
        ),
    )
    """Known changes to data by SQLite, which has one integer type and one float type, no NaN and no -0.0."""

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has types for which this adapter has no declared type, too many columns, or
        column names that SQL does not distinguish."""
        for field in schema:
            if _declared(field.type) is None:
                return f"SQLite has no type for {field.type} (column {field.name})"
        if len(schema) > _MOST_COLUMNS:
            return f"SQLite allows at most {_MOST_COLUMNS:,} columns; this table has {len(schema):,}"
        return same_but_for_case(schema.names) or super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import sqlite3."""
        import sqlite3

        import pyarrow

        self._sqlite3, self._arrow = sqlite3, pyarrow

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file, in one transaction. Until the commit, a journal is next to the file."""
        columns = ", ".join(f"{quoted(field.name)} {_declared(field.type)}" for field in table.schema)
        with closing(self._sqlite3.connect(location, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            connection.execute(f"CREATE TABLE {_TABLE} ({columns})")
            self._insert(connection, table)
            connection.execute("COMMIT")

    def append(self, table: pa.Table, location: Path) -> None:
        """Insert the rows in one transaction."""
        with closing(self._sqlite3.connect(location, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            self._insert(connection, table)
            connection.execute("COMMIT")

    def _insert(self, connection: sqlite3.Connection, table: pa.Table) -> None:
        names = selected(table.column_names, table.column_names)
        places = ", ".join("?" * table.num_columns)
        batches = (_rows(batch) for batch in table.to_batches(max_chunksize=_BATCH_ROWS))
        connection.executemany(f"INSERT INTO {_TABLE} ({names}) VALUES ({places})", chain.from_iterable(batches))

    def read(self, location: Path) -> pa.Table:
        """Read all rows in the order in which they were inserted."""
        with closing(self._opened(location)) as connection:
            schema = _schema(connection)
            return self._table(connection, schema, schema.names, f"ORDER BY {_row_number(schema.names)}")

    def open(self, location: Path) -> Handle:
        """Return a handle with an open connection. Rows are never removed, so row numbers follow the order of
        insertion."""
        connection = self._opened(location)
        schema = _schema(connection)
        number = _row_number(schema.names)
        (rows,) = connection.execute(f"SELECT coalesce(max({number}), 0) FROM {_TABLE}").fetchone()

        def project(columns: Sequence[str]) -> pa.Table:
            return self._table(connection, schema, columns, f"ORDER BY {number}")

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            unique, places = ascending(checked(numbers, rows))
            asked = json.dumps((unique + 1).tolist())
            wanted = f"WHERE {number} IN (SELECT value FROM json_each(?)) ORDER BY {number}"
            found = self._table(connection, schema, columns, wanted, (asked,))
            return found if places is None else found.take(self._arrow.array(places))

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            name = selected([predicate.column], schema.names)
            condition, values = _condition(predicate, name, schema.field(predicate.column).type)
            return self._table(connection, schema, columns, f"WHERE {condition} ORDER BY {number}", values)

        return Handle(project=project, take=take, scan=scan, close=connection.close)

    def _table(
        self,
        connection: sqlite3.Connection,
        schema: pa.Schema,
        columns: Sequence[str],
        rest: str,
        values: Sequence[Any] = (),
    ) -> pa.Table:
        rows = connection.execute(f"SELECT {selected(columns, schema.names)} FROM {_TABLE} {rest}", values)
        asked = self._arrow.schema([schema.field(name) for name in columns])
        batches = []
        while part := rows.fetchmany(_BATCH_ROWS):
            arrays = [
                _array(list(each), field.type) for each, field in zip(zip(*part, strict=True), asked, strict=True)
            ]
            batches.append(self._arrow.RecordBatch.from_arrays(arrays, schema=asked))
        return self._arrow.Table.from_batches(batches, schema=asked)

    def _opened(self, location: Path) -> sqlite3.Connection:
        # The file is opened read-only, because SQLite would otherwise create a missing file.
        return self._sqlite3.connect(f"{location.absolute().as_uri()}?mode=ro", uri=True)

    def stored(self, location: Path) -> Stored:
        """Return no codec, the size of the file's pages, and the version of the SQLite library in use."""
        with closing(self._opened(location)) as connection:
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        return Stored(details={"page bytes": str(page_bytes), "SQLite": self._sqlite3.sqlite_version})


# --- types -----------------------------------------------------------------------------------------------------------


def _declared(kind: pa.DataType) -> str | None:
    """Return the declared type for columns of an Arrow type; None if this adapter has no declared type for it."""
    import pyarrow as pa
    import pyarrow.types as of

    if of.is_dictionary(kind):
        return _declared(kind.value_type)
    if of.is_timestamp(kind):
        return f"TIMESTAMP{'TZ' if kind.tz else ''}({_PLACES[kind.unit]})"
    if of.is_decimal(kind):
        return f"DECIMAL_TEXT({kind.precision},{kind.scale})"
    if of.is_integer(kind):
        return None if kind == pa.uint64() else "INTEGER"
    kinds = {
        "REAL": kind in (pa.float32(), pa.float64()),
        "TEXT": kind in (pa.string(), pa.large_string(), pa.string_view()),
        "BLOB": kind in (pa.binary(), pa.large_binary()),
        "BOOLEAN": kind == pa.bool_(),
        "DATE": kind == pa.date32(),
        "": kind == pa.null(),
    }
    return next((name for name, is_it in kinds.items() if is_it), None)


def _schema(connection: sqlite3.Connection) -> pa.Schema:
    """Return the Arrow schema of the table, from its declared types."""
    import pyarrow as pa

    columns = connection.execute("SELECT name, type FROM pragma_table_info(?) ORDER BY cid", (_TABLE,)).fetchall()
    return pa.schema([(name, _type_of(declared)) for name, declared in columns])


def _type_of(declared: str) -> pa.DataType:
    import pyarrow as pa

    if found := _TIMESTAMP.fullmatch(declared):
        unit = next(unit for unit, places in _PLACES.items() if places == int(found[2]))
        return pa.timestamp(unit, "UTC" if found[1] else None)
    if found := _DECIMAL.fullmatch(declared):
        return pa.decimal128(int(found[1]), int(found[2]))
    return {
        "INTEGER": pa.int64(),
        "REAL": pa.float64(),
        "TEXT": pa.string(),
        "BLOB": pa.binary(),
        "BOOLEAN": pa.bool_(),
        "DATE": pa.date32(),
        "": pa.null(),
    }[declared]


def _is_text_for(kind: pa.DataType) -> bool:
    import pyarrow.types as of

    return bool(of.is_timestamp(kind) or of.is_decimal(kind) or of.is_date(kind))


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """Return the values of an Arrow column as Python objects that SQLite can store."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return (column.cast(pa.string()) if _is_text_for(column.type) else column).to_pylist()


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return an Arrow column of type `kind` from the values that SQLite returned."""
    import pyarrow as pa

    if _is_text_for(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, pa.int8()).cast(kind) if kind == pa.bool_() else pa.array(values, kind)


# --- conditions ------------------------------------------------------------------------------------------------------


def _row_number(names: Sequence[str]) -> str:
    taken = {name.lower() for name in names}
    return next(name for name in _ROW_NUMBERS if name not in taken)


def _condition(predicate: Predicate, name: str, kind: pa.DataType) -> tuple[str, list[Any]]:
    """Return the condition as SQL with placeholders, and the values for the placeholders.

    NaN and -0.0 need no special cases, because SQLite does not store them."""
    import pyarrow as pa

    if predicate.kind is Kind.NULL:
        return f"{name} IS NULL", []
    if predicate.kind is Kind.PREFIX:
        # GLOB and substr are not used, because they treat a NUL character as the end of the text.
        prefix = predicate.values[0]
        after = _after(prefix)
        return (f"{name} >= ?", [prefix]) if after is None else (f"{name} >= ? AND {name} < ?", [prefix, after])
    values = _values(pa.array(predicate.present, kind))
    if predicate.kind is Kind.RANGE:
        return f"{name} >= ? AND {name} < ?", values
    return f"{name} IN ({', '.join('?' * len(values))})", values


def _after(prefix: str) -> str | None:
    """Return the smallest text that sorts after all texts that begin with `prefix`; None if there is no such text."""
    for place in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[place]) + 1
        if following <= 0x10FFFF:
            # The range of surrogates, from 0xD800 to 0xDFFF, is skipped, because surrogates are not valid in UTF-8.
            return prefix[:place] + chr(0xE000 if following == 0xD800 else following)
    return None


ENGINES = (Sqlite,)

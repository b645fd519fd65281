"""DuckDB's own files: a database with one table, which DuckDB stores in row groups of 122,880 rows with statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Can, Maturity, Stage, Stored
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach
from adapters.predicate import Kind
from adapters.relations import times
from formats.shared import pandas_losses as shared
from formats.shared import refusals
from formats.shared.duckdb_engine import DuckdbEngine
from formats.shared.rows import checked
from formats.shared.sql import same_but_for_case, selected
from formats.shared.streams import whole_or_nothing

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import pyarrow as pa

_TABLE = "kept.data"
_ROW_NUMBER = "rowid"


class DuckdbTable(DuckdbEngine):
    """A table in a DuckDB file. To save or read, the file is attached to a database in memory."""

    format = "duckdb-table"
    title = "DuckDB table"
    distributions = ("duckdb", "pyarrow")
    suffix = ".duckdb"
    parts = "a database is one file with one writer"
    maturity = Maturity(
        Stage.YOUNG, "one implementation, in C++, which other languages bind; its files are kept readable since 2024"
    )
    capabilities = frozenset(
        {Can.PROJECTION, Can.APPEND, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )
    offers = Offers(project=True, take=Reach.GROUPS, scan=frozenset(Kind), append=True, batches=True, save_stream=True)
    syncs_on_save = True
    losses = (
        shared.CATEGORIES_OF_NULLS,
        replace(shared.DICTIONARY_AS_VALUES, cause=Cause.CALL),
        Loss(
            "timestamps with a zone become UTC, and us unless they are in ns",
            "the same points in time",
            Cause.FORMAT,
            Relation(times.zoned_in_us_or_ns_of_utc),
            frozenset(f"timestamp-{unit}-zone" for unit in ("s", "ms", "us", "ns")),
        ),
    )

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has durations or float16, column names that SQL does not distinguish, or a
        column named like DuckDB's row numbers."""
        import pyarrow.types as of

        for field in schema:
            if of.is_duration(field.type):
                return f"DuckDB stores durations as intervals, which have no sign (column {field.name})"
            if field.name.lower() == _ROW_NUMBER:
                return f"a column named {field.name} hides DuckDB's row numbers"
        reason = refusals.of_half_floats(schema, "DuckDB") or same_but_for_case(schema.names)
        return reason or super().refusal(schema, rows)

    def load_library(self) -> None:
        """Import duckdb and pyarrow. pyarrow makes the tables in which row numbers are passed to DuckDB."""
        super().load_library()
        import pyarrow

        self._arrow = pyarrow

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        self._change(location, f"CREATE TABLE {_TABLE} AS FROM given", table)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as one file."""
        with whole_or_nothing(location):
            reader = self._arrow.RecordBatchReader.from_batches(schema, batches)
            self._change(location, f"CREATE TABLE {_TABLE} AS FROM given", reader)

    def append(self, table: pa.Table, location: Path) -> None:
        """Insert the rows. DuckDB first fills the last row group, and then adds new row groups."""
        self._change(location, f"INSERT INTO {_TABLE} BY NAME FROM given", table)

    def _change(self, location: Path, statement: str, given: pa.Table | pa.RecordBatchReader) -> None:
        with self.connection() as connection:
            self._attach(connection, location, "")
            with self.refusing():
                connection.register("given", given)
                connection.execute(statement)
            # DuckDB first writes changes to a log next to the file. The checkpoint moves the changes into the file.
            connection.execute("CHECKPOINT kept")
            connection.execute("DETACH kept")

    def _attach(self, connection: duckdb.DuckDBPyConnection, location: Path, options: str) -> None:
        place = str(location).replace("'", "''")
        connection.execute(f"ATTACH '{place}' AS kept {options}")

    def relation(self, connection: duckdb.DuckDBPyConnection, location: Path) -> duckdb.DuckDBPyRelation:
        """Return the table as a DuckDB relation. The file is attached read-only."""
        self._attach(connection, location, "(READ_ONLY)")
        return connection.table(_TABLE)

    def open_rows(self, location: Path) -> Handle:
        """Return a handle with an open connection, which reads rows by their numbers.

        The handle joins a table of the requested numbers with the stored table. DuckDB skips row groups that are
        outside the range of these numbers. Rows are never removed, so row numbers follow the order of insertion.
        """
        with ExitStack() as opened:
            connection = opened.enter_context(self.connection())
            known = self.relation(connection, location).columns
            ((rows,),) = connection.sql(f"SELECT count(*) FROM {_TABLE}").fetchall()
            close = opened.pop_all().close

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            names = selected(columns, known, "stored")
            asked = self._arrow.table({"number": checked(numbers, rows), "place": range(len(numbers))})
            connection.register("asked", asked)
            joined = f"FROM asked JOIN {_TABLE} AS stored ON stored.{_ROW_NUMBER} = asked.number"
            return connection.sql(f"SELECT {names} {joined} ORDER BY asked.place").to_arrow_table()

        return Handle(take=take, close=close)

    def stored(self, location: Path) -> Stored:
        """Return the compression methods of all columns, by DuckDB's names, and the number of row groups."""
        with self.connection() as connection:
            self._attach(connection, location, "(READ_ONLY)")
            connection.execute("USE kept")
            segments = connection.execute(
                "SELECT DISTINCT compression, row_group_id FROM pragma_storage_info('data')"
            ).fetchall()
        encodings = sorted({name for name, _ in segments})
        return Stored(None, tuple(encodings), {"row groups": str(len({group for _, group in segments}))})


ENGINES = (DuckdbTable,)

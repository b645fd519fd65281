"""Base classes for formats that are read and written by DuckDB.

DuckDB takes and returns Arrow tables. Every save and every read opens a new connection.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Native, TabularFormat
from adapters.errors import RefusedData
from adapters.offers import Handle, Offers
from adapters.predicate import Kind, Predicate
from formats.shared import refusals
from formats.shared.conditions import sql_condition
from formats.shared.sql import selected
from formats.shared.streams import tables, until_it_breaks, whole_or_nothing

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class DuckdbEngine(TabularFormat):
    """Reads files by DuckDB. A subclass for a format adds the call that opens a file of this format."""

    engine = "duckdb"
    distributions: ClassVar[tuple[str, ...]] = ("duckdb",)
    extra = "engines"
    native = Native.ARROW
    offers = Offers(project=True, scan=frozenset(Kind), batches=True, save_stream=True)
    lost_names = r"\A\Z|\0"

    def load_library(self) -> None:
        """Import duckdb."""
        import duckdb

        self._duckdb = duckdb

    @contextmanager
    def connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Return a context manager that yields a connection to a new database in memory, and closes it at the end.

        The database uses `self.threads` threads, or DuckDB's default number if `self.threads` is None.
        """
        config: dict[str, Any] = {} if self.threads is None else {"threads": self.threads}
        with self._duckdb.connect(":memory:", config=config) as connection:
            # Without this setting, timestamps come back in the time zone of the machine.
            connection.execute("SET TimeZone = 'UTC'")
            yield connection

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Return a context manager that raises RefusedData for DuckDB's errors about unsupported types and values."""
        try:
            yield
        except (self._duckdb.NotSupportedError, self._duckdb.DataError) as error:
            raise RefusedData(f"DuckDB refuses this data ({str(error).splitlines()[0]})") from error

    @abstractmethod
    def relation(self, connection: duckdb.DuckDBPyConnection, location: Path) -> duckdb.DuckDBPyRelation:
        """Return the file as a DuckDB relation. This reads no more of the file than is needed to find its columns."""

    def read(self, location: Path) -> pa.Table:
        """Read all columns. For text formats, DuckDB guesses the types."""
        with self.connection() as connection:
            return self.relation(connection, location).to_arrow_table()

    def open(self, location: Path) -> Handle:
        """Return a handle with an open connection, which keeps the file as a relation."""
        with ExitStack() as opened:
            relation = self.relation(opened.enter_context(self.connection()), location)
            close = opened.pop_all().close

        def project(columns: Sequence[str]) -> pa.Table:
            return relation.project(selected(columns, relation.columns)).to_arrow_table()

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            condition = sql_condition(predicate, selected([predicate.column], relation.columns))
            return relation.filter(condition).project(selected(columns, relation.columns)).to_arrow_table()

        def batches(columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
            reader = relation.project(selected(columns, relation.columns)).to_arrow_reader(rows)
            return tables(reader, columns, rows)

        return Handle(project=project, scan=scan, batches=batches, close=close)


class DuckdbCopies(DuckdbEngine):
    """Reads and writes files by DuckDB, for formats that DuckDB's COPY statement writes."""

    @abstractmethod
    def copy_options(self) -> str:
        """Return the options of the COPY statement for the format, as text."""

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has float16, which DuckDB lacks, or names that differ only by case."""
        refused = refusals.of_half_floats(schema, "DuckDB") or refusals.of_names_alike(schema)
        return refused or super().refusal(schema, rows)

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        self._copy(table, location)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as one file.

        If `batches` raises an error, COPY first writes the batches before the error, and then the file is removed. COPY
        is not stopped halfway, because it could then wait forever for one of its own writing threads (seen with DuckDB
        2.0.0, `AsyncWriteQueue::AbortWrites`).
        """
        import pyarrow as pa

        broken: list[Exception] = []
        with whole_or_nothing(location):
            self._copy(pa.RecordBatchReader.from_batches(schema, until_it_breaks(batches, broken)), location)
            if broken:
                raise broken[0]

    def _copy(self, data: pa.Table | pa.RecordBatchReader, location: Path) -> None:
        place = str(location).replace("'", "''")
        with self.connection() as connection, self.refusing():
            connection.register("saved", data)
            connection.execute(f"COPY saved TO '{place}' ({self.copy_options()})")

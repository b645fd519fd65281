"""What the engines of all formats that DuckDB writes and reads have in common: one connection for each call.

DuckDB takes and returns Arrow tables.
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
    """A format's calls of DuckDB that read, without what the format adds."""

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
        """A database of its own in memory, closed afterwards, with one thread where that is the condition."""
        config: dict[str, Any] = {} if self.threads is None else {"threads": self.threads}
        with self._duckdb.connect(":memory:", config=config) as connection:
            # Otherwise points in time come back in the zone of the machine that reads them.
            connection.execute("SET TimeZone = 'UTC'")
            yield connection

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn DuckDB's errors about types and values that it does not have into RefusedData."""
        try:
            yield
        except (self._duckdb.NotSupportedError, self._duckdb.DataError) as error:
            raise RefusedData(f"DuckDB does not take this data ({str(error).splitlines()[0]})") from error

    @abstractmethod
    def relation(self, connection: duckdb.DuckDBPyConnection, location: Path) -> duckdb.DuckDBPyRelation:
        """The file as a relation, of which nothing is read but what tells its columns."""

    def read(self, location: Path) -> pa.Table:
        """Read all columns; of text the call guesses the types."""
        with self.connection() as connection:
            return self.relation(connection, location).to_arrow_table()

    def open(self, location: Path) -> Handle:
        """Keep a connection, and the relation that stands for the file."""
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
    """Those of formats that DuckDB's COPY writes."""

    @abstractmethod
    def copy_options(self) -> str:
        """What COPY is told of the format."""

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Name the first column of float16, which DuckDB does not have, or the first names that differ by case only."""
        refused = refusals.of_half_floats(schema, "DuckDB") or refusals.of_names_alike(schema)
        return refused or super().refusal(schema, rows)

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
        self._copy(table, location)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write one file of what comes. A COPY that is stopped halfway may wait for ever for a thread of its own that
        writes (seen with DuckDB 2.0.0, `AsyncWriteQueue::AbortWrites`), so it writes to its end what had come."""
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

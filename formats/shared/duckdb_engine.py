"""What the engines of all formats that DuckDB writes and reads have in common: one connection for each call.

DuckDB takes and returns Arrow tables. It knows formats only as options of its own COPY.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Native, TabularFormat

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class DuckdbEngine(TabularFormat):
    """A format's calls of DuckDB, without what the format adds."""

    engine = "duckdb"
    distributions: ClassVar = ("duckdb",)
    extra = "engines"
    native = Native.ARROW

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

    def copy(self, table: pa.Table, location: Path, options: str) -> None:
        """Write all rows to one file by COPY with these options."""
        place = str(location).replace("'", "''")
        with self.connection() as connection:
            connection.register("saved", table)
            connection.execute(f"COPY saved TO '{place}' ({options})")

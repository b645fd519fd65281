"""One DuckDB for hundreds of small round trips, which ask for a database in memory each.

A database takes 20 ms of CPU time to make (DuckDB 2.0): that was four fifths of the round trips of all kinds of
columns. Cursors of one database are connections of their own. Tests of what is left open, or of what a call loads, do
without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest


@contextmanager
def one_duckdb() -> Iterator[None]:
    """Within it `duckdb.connect(":memory:")` gives a connection to one database for each configuration."""
    connect, databases = duckdb.connect, {}

    def cursor(database: str = ":memory:", *, config: dict[str, Any] | None = None, **others: Any) -> Any:
        if database != ":memory:":
            return connect(database, config=config or {}, **others)
        made = tuple(sorted((config or {}).items()))
        if made not in databases:
            databases[made] = connect(database, config=config or {})
        return databases[made].cursor()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", cursor)
        try:
            yield
        finally:
            for database in databases.values():
                database.close()

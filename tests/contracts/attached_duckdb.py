"""Files of DuckDB that are attached to one database, for hundreds of small stores that open a file each.

Opening a file makes a database around it, for 20 ms of CPU time (DuckDB 2.0); attaching it takes 1 ms. Tests of what is
left open, of what a call loads, or of two handles on one file do without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from tests.contracts.one_duckdb import one_duckdb


class _Attached:
    """A connection to a file."""

    def __init__(self, connection: Any, name: str, path: str) -> None:
        self._connection, self._name = connection, name
        quoted = path.replace("'", "''")
        try:
            connection.execute(f"ATTACH '{quoted}' AS {name}; USE {name}")
        except duckdb.Error:
            connection.close()
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def cursor(self) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(f"USE {self._name}")
        return cursor

    def close(self) -> None:
        self._connection.execute(f"USE memory; DETACH {self._name}")
        self._connection.close()


@contextmanager
def attached_duckdb() -> Iterator[None]:
    """Within it `duckdb.connect` gives connections to one database, also for files."""
    numbers = itertools.count()
    with one_duckdb(), pytest.MonkeyPatch.context() as patch:
        connect = duckdb.connect

        def attached(database: str = ":memory:", *, config: dict[str, Any] | None = None, **others: Any) -> Any:
            if database == ":memory:":
                return connect(database, config=config, **others)
            return _Attached(connect(":memory:", config=config), f"file_{next(numbers)}", database)

        patch.setattr(duckdb, "connect", attached)
        yield

"""Attach DuckDB files to a reused database. Tests of hundreds of small stores that each open a file are faster this
way.

Opening a file creates a database, which takes 20 ms of CPU time (DuckDB 2.0). Attaching a file takes 1 ms. Tests of
files left open, of imports, or of two handles on one file do not use this module.
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
    """A connection to an attached file."""

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
    """Patch `duckdb.connect` to reuse databases and to attach files to them."""
    numbers = itertools.count()
    with one_duckdb(), pytest.MonkeyPatch.context() as patch:
        connect = duckdb.connect

        def attached(database: str = ":memory:", *, config: dict[str, Any] | None = None, **others: Any) -> Any:
            if database == ":memory:":
                return connect(database, config=config, **others)
            return _Attached(connect(":memory:", config=config), f"file_{next(numbers)}", database)

        patch.setattr(duckdb, "connect", attached)
        yield

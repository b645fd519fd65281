"""Reuse DuckDB's in-memory databases, for hundreds of small calls that each connect to a new database.

Creating a database takes 20 ms of CPU time (DuckDB 2.0), four fifths of such a call. Two connections that are open at
the same time never share a database. Tests of what a call imports do not use this module.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

_ATTACHED = "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'"


class _Borrowed:
    """A connection whose close detaches all files and frees the database for reuse."""

    def __init__(self, free: list[Any], config: dict[str, Any], connect: Any) -> None:
        self._free = free
        self._database = free.pop() if free else connect(":memory:", config=config)
        self._connection = self._database.cursor()
        self._is_open = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> _Borrowed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
        if not self._is_open:
            return
        self._is_open = False
        for (name,) in self._database.execute(_ATTACHED).fetchall():
            self._database.execute(f'DETACH "{name}"')
        self._free.append(self._database)


@contextmanager
def one_duckdb() -> Iterator[None]:
    """Patch `duckdb.connect(":memory:")` to return an unused database of the same configuration."""
    connect = duckdb.connect
    free: dict[tuple[tuple[str, Any], ...], list[Any]] = defaultdict(list)

    def borrowed(database: str = ":memory:", *, config: dict[str, Any] | None = None, **others: Any) -> Any:
        config = config or {}
        if database != ":memory:":
            return connect(database, config=config, **others)
        return _Borrowed(free[tuple(sorted(config.items()))], config, connect)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", borrowed)
        try:
            yield
        finally:
            for database in (each for databases in free.values() for each in databases):
                database.close()

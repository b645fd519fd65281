"""The catalog's SQLite file: tables, settings, and transactions that convert SQLite's errors.

With `synchronous=EXTRA` and a rollback journal, a commit that returned survives a power cut. With FULL, a power cut
could undo the deletion of the journal, and so the commit (sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from libraries.durable.calls import FileCalls
from libraries.near_storage.errors import DamagedError, FullError, NearStorageError
from libraries.near_storage.storing.disk_errors import own_folder

FORMAT = 3
APPLICATION = 0x6E656172
"""Marks the file as a catalog of near storage (PRAGMA application_id): 'near'."""

SETTINGS = (
    *("PRAGMA journal_mode = DELETE", "PRAGMA synchronous = EXTRA", "PRAGMA foreign_keys = ON"),
    *("PRAGMA temp_store = MEMORY", "PRAGMA cell_size_check = ON", "PRAGMA trusted_schema = OFF"),
)

TABLES = (
    "CREATE TABLE catalog (identity TEXT NOT NULL) STRICT",
    # `name` is for clients; `folder` identifies the folder, to distinguish two nodes with one name.
    """CREATE TABLE nodes (
        name TEXT PRIMARY KEY, uri TEXT NOT NULL, folder TEXT NOT NULL UNIQUE
    ) STRICT, WITHOUT ROWID""",
    # One description per partition, shared by all versions and uploads that refer to it.
    """CREATE TABLE partitions (
        digest TEXT PRIMARY KEY, stored_bytes INTEGER NOT NULL, rows INTEGER NOT NULL, info BLOB NOT NULL
    ) STRICT""",
    # A number is never reused, so that an old ticket cannot refer to a later version. replaced_s is NULL while current.
    """CREATE TABLE versions (
        number INTEGER PRIMARY KEY AUTOINCREMENT, table_name TEXT NOT NULL, upload TEXT NOT NULL UNIQUE,
        schema BLOB NOT NULL,
        rows INTEGER NOT NULL, stored_bytes INTEGER NOT NULL, replaced_s REAL
    ) STRICT""",
    "CREATE UNIQUE INDEX current_version ON versions (table_name) WHERE replaced_s IS NULL",
    """CREATE TABLE version_partitions (
        version INTEGER NOT NULL REFERENCES versions, position INTEGER NOT NULL,
        digest TEXT NOT NULL REFERENCES partitions, PRIMARY KEY (version, position)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX versions_of_partition ON version_partitions (digest)",
    # Acknowledged as synced by the node.
    """CREATE TABLE replicas (
        digest TEXT NOT NULL REFERENCES partitions, node TEXT NOT NULL REFERENCES nodes, PRIMARY KEY (digest, node)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX replicas_of_node ON replicas (node)",
    # An upload in progress: the nodes it may use in order, and the columns of its first partition.
    """CREATE TABLE uploads (
        id TEXT PRIMARY KEY, table_name TEXT NOT NULL, nodes TEXT NOT NULL, active_s REAL NOT NULL,
        schema BLOB, leaves_digest TEXT
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE upload_partitions (
        upload TEXT NOT NULL REFERENCES uploads, position INTEGER NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (upload, position)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE placements (
        upload TEXT NOT NULL REFERENCES uploads, digest TEXT NOT NULL, node TEXT NOT NULL REFERENCES nodes,
        stored_bytes INTEGER NOT NULL, acknowledged INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (upload, digest, node)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX uploads_of_partition ON placements (digest, node)",
    # Removals that were decided, and may not be done yet. Until then, uploads place the partition on other nodes.
    """CREATE TABLE removals (
        number INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL, node TEXT NOT NULL REFERENCES nodes,
        UNIQUE (digest, node)
    ) STRICT""",
)


class Database:
    """One connection to the file `catalog.sqlite` of a folder that this process owns, for one thread at a time."""

    def __init__(self, folder: Path, calls: FileCalls) -> None:
        self._calls = calls
        self._owned: int | None = own_folder(calls, folder)
        self._lock = RLock()
        self.moves = 0
        """Counter that increases when a partition may have moved to other nodes. Caches compare it to detect outdated
        entries."""
        with _told():
            self._connection = calls.connect(folder / "catalog.sqlite")
        try:
            with _told():
                for setting in SETTINGS:
                    self._connection.execute(setting).fetchall()
            self._make_tables()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, then release the folder. Repeated calls do nothing."""
        with self._lock:
            self._connection.close()
            owned, self._owned = self._owned, None
        if owned is not None:
            self._calls.close(owned)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection on which several queries see the same state."""
        with self._lock, _told():
            yield self._connection

    @contextmanager
    def transaction(self, moves: bool = False) -> Iterator[sqlite3.Connection]:
        """Run a transaction, which is done durably or not at all. Set `moves` if nodes or replicas change."""
        with self._lock, _told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself ends the transaction after some disk errors.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self.moves += moves

    def _make_tables(self) -> None:
        with self.transaction() as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if (application, version) == (APPLICATION, FORMAT):
                return
            if (application, version) != (0, 0):
                raise NearStorageError(
                    f"The catalog's file is of another program or release (mark {application:#x}, format {version}; "
                    f"this release needs {APPLICATION:#x}, {FORMAT}): use another folder with this release."
                )
            for table in TABLES:
                connection.execute(table)
            connection.execute("INSERT INTO catalog VALUES (?)", (secrets.token_hex(16),))
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")


@contextmanager
def _told() -> Iterator[None]:
    """Convert SQLite's errors to errors for users, without SQL and paths."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", type(error).__name__)
        if code == "SQLITE_FULL":
            raise FullError("The catalog's disk is full: free space on it. Nothing of the request was kept.") from error
        if code in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
            raise DamagedError(f"The catalog's file is damaged ({code}): restore a copy of its folder.") from error
        raise NearStorageError(
            f"The catalog's file cannot be used ({code}): check the disk, then whether the request has taken effect."
        ) from error

"""The catalog: tables, the partitions of each version, and the nodes that hold them.

Versions never change. A new version becomes current in one transaction, after nodes have reported every replica of
every partition as synced to disk (`uploads`). A reader therefore sees either the old or the new version. A replaced or
deleted version stays readable for a grace period and is then removed (`upkeep`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from libraries.durable.calls import FileCalls, OSCalls
from libraries.near_storage.errors import DamagedError, NotFoundError, RequestError, StaleError
from libraries.near_storage.parquet import compact
from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.storing.database import Database
from libraries.near_storage.storing.garbage import Upkeep
from libraries.near_storage.storing.names import check_digest, check_folder, check_node, check_table, check_uri
from libraries.near_storage.storing.partition_metadata import PartitionInfo, decode_schema
from libraries.near_storage.storing.recent import Recent
from libraries.near_storage.storing.uploads import Node, Uploads
from libraries.near_storage.words import number_of

METADATA_LIMIT_BYTES = 1 << 30
INFO_LIMIT_BYTES = 256 << 20
VERSIONS_LIMIT_BYTES = 64 << 20
PARTITION_BYTES = 700
"""Approximate memory of a `Partition` with two nodes."""
TABLES_NAMED = 5
"""Maximum number of tables that an error names."""


@dataclass(frozen=True)
class Partition:
    """One partition of a version, and the nodes that hold it."""

    position: int
    digest: str
    stored_bytes: int
    rows: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class TableVersion:
    """One version of a table. `partitions` are in the table's order; their positions are counted from 0."""

    table: str
    number: int
    schema: pa.Schema
    rows: int
    stored_bytes: int
    partitions: tuple[Partition, ...]

    @property
    def nbytes(self) -> int:
        """Approximate bytes of memory."""
        return PARTITION_BYTES * len(self.partitions)


@dataclass(frozen=True)
class TableSummary:
    """One entry of a list of tables."""

    table: str
    number: int
    rows: int
    stored_bytes: int
    partitions: int


class Catalog:
    """The catalog in a folder. Raises `BusyError` if another process owns the folder. Thread-safe.

    `replicas` is the number of nodes that must hold each partition of future uploads. A replaced or deleted version can
    be read for `grace_s` seconds. This time must be at least the lifetime of a ticket, the signed permission to read
    from a node. `upkeep.collect` aborts uploads without activity for `upload_idle_s` seconds.
    """

    def __init__(
        self,
        folder: Path,
        replicas: int = 2,
        grace_s: float = 3600.0,
        upload_idle_s: float = 3600.0,
        clock: Callable[[], float] = time.time,
        calls: FileCalls | None = None,
    ) -> None:
        if replicas < 1:
            raise RequestError(f"The number of replicas must be at least 1 (got {replicas}).")
        self._database = Database(folder, calls or OSCalls())
        self._grace_s = grace_s
        self._clock = clock
        self._infos: Recent[PartitionInfo] = Recent(INFO_LIMIT_BYTES)
        self._metadata: Recent[CompactMetadata] = Recent(METADATA_LIMIT_BYTES)
        self._versions: Recent[TableVersion] = Recent(VERSIONS_LIMIT_BYTES)
        self.uploads = Uploads(self._database, replicas, clock)
        self.upkeep = Upkeep(self._database, replicas, grace_s, upload_idle_s, clock)
        with self._database.reading() as connection:
            (self.identity,) = connection.execute("SELECT identity FROM catalog").fetchone()

    def close(self) -> None:
        """Release the folder."""
        self._database.close()

    # --- nodes -------------------------------------------------------------------------------------------

    def register_node(self, name: str, uri: str, folder: str) -> None:
        """Register the current address of a node. `folder` is the permanent identity of the node's folder.

        Raises `RequestError` if the name belongs to another folder, or if the folder has another name. Otherwise one
        node would replace another node, whose partitions could no longer be found.
        """
        row = check_node(name), check_uri(uri), check_folder(folder)
        with self._database.reading() as connection:
            if connection.execute("SELECT * FROM nodes WHERE name = ? AND uri = ? AND folder = ?", row).fetchone():
                return
        with self._database.transaction(moves=True) as connection:
            for known, other in connection.execute(
                "SELECT name, folder FROM nodes WHERE name = ? OR folder = ?", (name, folder)
            ).fetchall():
                if known != name:
                    raise RequestError(f"This folder belongs to node {known}: start the node with that name (--name).")
                if other != folder:
                    raise RequestError(
                        f"Node {name} is registered with a folder that is not this one: start this node with a new "
                        f"name (--name). If the registered node is gone for good, run 'store repair --forget {name}' "
                        "first."
                    )
            connection.execute(
                """INSERT INTO nodes VALUES (?, ?, ?)
                   ON CONFLICT (name) DO UPDATE SET uri = excluded.uri, folder = excluded.folder""",
                row,
            )

    def nodes(self) -> tuple[Node, ...]:
        """Return all registered nodes, by name."""
        with self._database.reading() as connection:
            return tuple(Node(*row) for row in connection.execute("SELECT name, uri FROM nodes ORDER BY name"))

    def forget_node(self, name: str) -> None:
        """Remove a node that is lost permanently. A repair then copies the partitions of this node from other nodes.

        Raises `RequestError` if the node has the only copy of a partition or if an upload uses the node,
        `NotFoundError` if the node is unknown.
        """
        with self._database.transaction(moves=True) as connection:
            alone = connection.execute(
                """SELECT DISTINCT digest, table_name FROM replicas
                   JOIN version_partitions USING (digest) JOIN versions ON version = number WHERE node = ?1
                   AND NOT EXISTS (SELECT * FROM replicas other WHERE other.digest = replicas.digest AND node <> ?1)""",
                (check_node(name),),
            ).fetchall()
            if alone:
                partitions = len({digest for digest, _ in alone})
                tables = sorted({table for _, table in alone})
                named = ", ".join(tables[:TABLES_NAMED]) + (" and others" if len(tables) > TABLES_NAMED else "")
                raise RequestError(
                    f"Node {name} has the only copy of {number_of(partitions, 'partition')} of {named}: start the "
                    "node and repair the store first. If the node is gone for good, put these tables again or delete "
                    "them, and forget the node once the grace period of the tables' old versions "
                    f"({self._grace_s:g} s) is over."
                )
            if connection.execute("SELECT * FROM placements WHERE node = ?", (name,)).fetchone():
                raise RequestError(f"An upload in progress uses node {name}: wait for the upload, or abort it.")
            for table in ("replicas", "removals"):
                connection.execute(f"DELETE FROM {table} WHERE node = ?", (name,))
            if connection.execute("DELETE FROM nodes WHERE name = ?", (name,)).rowcount == 0:
                raise NotFoundError(f"Node {name} does not exist.")

    # --- tables ------------------------------------------------------------------------------------------

    def tables(self) -> tuple[TableSummary, ...]:
        """Return all tables with their current versions, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(
                """SELECT table_name, number, rows, stored_bytes,
                          (SELECT count(*) FROM version_partitions WHERE version = number)
                   FROM versions WHERE replaced_s IS NULL ORDER BY table_name"""
            ).fetchall()
        return tuple(TableSummary(*row) for row in rows)

    def current(self, table: str) -> TableVersion:
        """Return the current version of a table. Raises `NotFoundError` for an unknown table."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT number FROM versions WHERE table_name = ? AND replaced_s IS NULL", (check_table(table),)
            ).fetchone()
            if found is None:
                raise NotFoundError(f"Table {table} does not exist: 'store tables' lists all tables.")
            return self._version(connection, found[0])

    def version(self, table: str, number: int) -> TableVersion:
        """Return a version that is current or in its grace period. Raises `StaleError` for other versions."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT replaced_s FROM versions WHERE number = ? AND table_name = ?", (number, check_table(table))
            ).fetchone()
            if found is None or (found[0] is not None and found[0] + self._grace_s <= self._clock()):
                raise StaleError(f"Version {number} of table {table} is no longer served: request the current one.")
            return self._version(connection, number)

    def delete(self, table: str) -> None:
        """Delete a table. The bytes of the table are removed after the grace period. Raises `NotFoundError` for an
        unknown table."""
        with self._database.transaction() as connection:
            gone = connection.execute(
                "UPDATE versions SET replaced_s = ? WHERE table_name = ? AND replaced_s IS NULL",
                (self._clock(), check_table(table)),
            )
            if gone.rowcount == 0:
                raise NotFoundError(f"Table {table} does not exist: 'store tables' lists all tables.")

    # --- what is known of partitions ---------------------------------------------------------------------

    def info(self, digest: str) -> PartitionInfo:
        """Return the description of a partition. Raises `DamagedError` if the stored description is damaged;
        `restore_info` can replace it."""
        return self._infos.get(check_digest(digest), lambda: self._load_info(digest))

    def restore_info(self, info: PartitionInfo) -> None:
        """Replace a damaged description by a description that a node computed from the partition's bytes. Raises
        `NotFoundError` if the catalog has no such partition."""
        with self._database.transaction() as connection:
            changed = connection.execute(
                "UPDATE partitions SET info = ? WHERE digest = ? AND stored_bytes = ? AND rows = ?",
                (info.encode(), check_digest(info.digest), info.stored_bytes, info.rows),
            )
            if changed.rowcount == 0:
                raise NotFoundError(
                    f"The catalog has no partition {info.digest} of {info.stored_bytes:,} bytes and {info.rows:,} rows."
                )

    def metadata(self, version: TableVersion) -> CompactMetadata:
        """Return the compact metadata of all partitions of a version. `file` in the result is a partition's position in
        the version."""
        digests = [partition.digest for partition in version.partitions]
        return self._metadata.get(
            version.number, lambda: compact.together([self.info(digest).compact for digest in digests])
        )

    def _load_info(self, digest: str) -> PartitionInfo:
        with self._database.reading() as connection:
            found = connection.execute("SELECT info FROM partitions WHERE digest = ?", (digest,)).fetchone()
        if found is None:
            raise NotFoundError(f"Partition {digest} does not exist.")
        info = PartitionInfo.decode(found[0])
        if info.digest != digest:
            raise DamagedError(f"The description of partition {digest} belongs to another partition.")
        return info

    def _version(self, connection: sqlite3.Connection, number: int) -> TableVersion:
        """Return a version from the cache. Read the version again only if nodes or replicas have changed."""
        key = number, self._database.moves
        return self._versions.get(key, lambda: self._read_version(connection, number))

    def _read_version(self, connection: sqlite3.Connection, number: int) -> TableVersion:
        table, schema, rows, stored_bytes = connection.execute(
            "SELECT table_name, schema, rows, stored_bytes FROM versions WHERE number = ?", (number,)
        ).fetchone()
        partitions: dict[int, Partition] = {}
        for position, digest, size, count, *node in connection.execute(
            """SELECT position, digest, partitions.stored_bytes, partitions.rows, node, uri
               FROM version_partitions JOIN partitions USING (digest) JOIN replicas USING (digest)
               JOIN nodes ON node = name WHERE version = ? ORDER BY position, node""",
            (number,),
        ):
            others = partitions[position].nodes if position in partitions else ()
            partitions[position] = Partition(position, digest, size, count, (*others, Node(*node)))
        return TableVersion(table, number, decode_schema(schema), rows, stored_bytes, tuple(partitions.values()))

"""Uploads, which bring a new version of a table into the catalog.

First call `begin`. For each partition, call `place`, which returns nodes, and send the bytes to these nodes. Call
`acknowledge` for each node that has synced the bytes to disk. Finally call `commit`. Two uploads to one table may run
at the same time. Each upload becomes a version when it commits, and the version of the last commit is current. Readers
see nothing of an upload before its commit.

Partitions are recorded here before their bytes are sent, so that a check does not report these partitions as unneeded.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass

import pyarrow as pa

from libraries.near_storage.errors import BusyError, DamagedError, RequestError, StaleError
from libraries.near_storage.storing.database import Database
from libraries.near_storage.storing.names import check_digest, check_node, check_table
from libraries.near_storage.storing.partition_metadata import PartitionInfo, decode_schema, encode_schema, same_fields
from libraries.near_storage.words import number_of

MOST_PARTITIONS = 100_000
MOST_PARTITION_BYTES = 1 << 40


@dataclass(frozen=True)
class Node:
    """A storage node: its permanent name, and its current Flight address."""

    name: str
    uri: str


class Uploads:
    """The uploads of one catalog. Calls for an upload that was committed, aborted or timed out raise `StaleError`,
    except a repeated `commit`."""

    def __init__(self, database: Database, replicas: int, clock: Callable[[], float]) -> None:
        self._database = database
        self._replicas = replicas
        self._clock = clock

    def begin(self, table: str, without: Collection[str] = ()) -> str:
        """Begin an upload to a new or existing table. Return the upload's unguessable name.

        `without` are names of nodes that are down or full. Raises `RequestError` if fewer nodes than replicas are left.
        """
        upload = secrets.token_hex(16)
        with self._database.transaction() as connection:
            emptiest_first = connection.execute(
                """SELECT nodes.name FROM nodes LEFT JOIN replicas ON node = nodes.name
                   LEFT JOIN partitions USING (digest)
                   GROUP BY nodes.name ORDER BY coalesce(sum(stored_bytes), 0), nodes.name"""
            )
            nodes = [name for (name,) in emptiest_first if name not in without]
            if len(nodes) < self._replicas:
                raise RequestError(
                    f"{number_of(self._replicas, 'replica is', 'replicas are')} required, but only "
                    f"{number_of(len(nodes), 'storage node')} can take one: start more nodes, or serve the catalog "
                    "with fewer replicas."
                )
            connection.execute(
                "INSERT INTO uploads VALUES (?, ?, ?, ?, NULL, NULL)",
                (upload, check_table(table), json.dumps(nodes), self._clock()),
            )
        return upload

    def place(self, upload: str, position: int, digest: str, stored_bytes: int) -> tuple[Node, ...]:
        """Announce the partition at `position` (from 0). Return the nodes that still need its bytes.

        A repeated call returns the nodes that have not acknowledged the partition yet. Raises `BusyError` if too few
        nodes are free because the same partition is being removed from other nodes.
        """
        check_digest(digest)
        if not 0 <= position < MOST_PARTITIONS or not 0 < stored_bytes <= MOST_PARTITION_BYTES:
            raise RequestError(
                f"Partition {position} of {stored_bytes:,} bytes is not allowed: a table has at most "
                f"{MOST_PARTITIONS:,} partitions, numbered from 0, each of 1 to {MOST_PARTITION_BYTES:,} bytes."
            )
        with self._database.transaction() as connection:
            nodes = self._open(connection, upload)
            connection.execute("INSERT OR IGNORE INTO upload_partitions VALUES (?, ?, ?)", (upload, position, digest))
            (known,) = connection.execute(
                "SELECT digest FROM upload_partitions WHERE upload = ? AND position = ?", (upload, position)
            ).fetchone()
            if known != digest:
                raise RequestError(
                    f"Partition {position} of this upload was announced as {known}, not as {digest}: begin a new "
                    "upload."
                )
            if not self._placed(connection, upload, digest):
                chosen = self._choose(connection, nodes, position, digest)
                connection.executemany(
                    "INSERT INTO placements VALUES (?, ?, ?, ?, 0)",
                    [(upload, digest, node, stored_bytes) for node in chosen],
                )
            rows = connection.execute(
                """SELECT name, uri FROM placements JOIN nodes ON node = name
                   WHERE upload = ? AND digest = ? AND NOT acknowledged ORDER BY name""",
                (upload, digest),
            )
            return tuple(Node(*row) for row in rows)

    def acknowledge(self, upload: str, digest: str, node: str, info: PartitionInfo) -> None:
        """Record that a node has synced the partition to disk. `info` is the node's description of the partition.

        Raises `DamagedError` if the description differs from the placed partition or from another node's description,
        `RequestError` if the partition's schema differs from the schema of the upload's other partitions.
        """
        with self._database.transaction() as connection:
            self._open(connection, upload)
            placed = connection.execute(
                "SELECT stored_bytes FROM placements WHERE upload = ? AND digest = ? AND node = ?",
                (upload, check_digest(digest), check_node(node)),
            ).fetchone()
            if placed is None:
                raise RequestError(f"Partition {digest} was not placed on node {node}: place it first.")
            if (info.digest, info.stored_bytes) != (digest, placed[0]):
                raise DamagedError(
                    f"Node {node} stored partition {info.digest} of {info.stored_bytes:,} bytes, but {digest} of "
                    f"{placed[0]:,} bytes was announced: send the announced partition to this node again."
                )
            self._check_columns(connection, upload, info)
            self._remember(connection, info, node)
            connection.execute(
                "UPDATE placements SET acknowledged = 1 WHERE upload = ? AND digest = ? AND node = ?",
                (upload, digest, node),
            )

    def commit(self, upload: str) -> int:
        """Make the new version current for all readers at once and return its number. If called again, return the same
        number.

        Raises `RequestError` if a position is missing or a node has not acknowledged; the upload can then continue.
        """
        with self._database.transaction() as connection:
            committed = connection.execute("SELECT number FROM versions WHERE upload = ?", (upload,)).fetchone()
            if committed is not None:
                return int(committed[0])
            self._open(connection, upload)
            self._check_whole(connection, upload)
            table, schema = connection.execute(
                "SELECT table_name, schema FROM uploads WHERE id = ?", (upload,)
            ).fetchone()
            connection.execute(
                "UPDATE versions SET replaced_s = ? WHERE table_name = ? AND replaced_s IS NULL", (self._clock(), table)
            )
            number = connection.execute(
                """INSERT INTO versions (table_name, upload, schema, rows, stored_bytes)
                   SELECT ?1, ?2, ?3, sum(rows), sum(stored_bytes)
                   FROM upload_partitions JOIN partitions USING (digest) WHERE upload = ?2""",
                (table, upload, schema),
            ).lastrowid
            connection.execute(
                "INSERT INTO version_partitions SELECT ?, position, digest FROM upload_partitions WHERE upload = ?",
                (number, upload),
            )
            connection.execute(
                "INSERT OR IGNORE INTO replicas SELECT digest, node FROM placements WHERE upload = ?", (upload,)
            )
            forget(connection, upload)
        assert number is not None
        return number

    def abort(self, upload: str) -> None:
        """Abort an upload. Its partitions on nodes are removed unless another version or upload needs them."""
        with self._database.transaction() as connection:
            self._open(connection, upload)
            give_up(connection, upload)

    def _open(self, connection: sqlite3.Connection, upload: str) -> list[str]:
        """Return the nodes that the upload may use, and mark the upload as active now. Raises `StaleError` if the
        upload is over."""
        found = connection.execute(
            "UPDATE uploads SET active_s = ? WHERE id = ? RETURNING nodes", (self._clock(), upload)
        ).fetchall()
        if not found:
            raise StaleError("This upload is over (committed, aborted, or idle for too long): begin a new one.")
        return list(json.loads(found[0][0]))

    def _check_columns(self, connection: sqlite3.Connection, upload: str, info: PartitionInfo) -> None:
        """Check that the partition has the same columns as the first acknowledged partition, both in Arrow and as
        Parquet leaves. Raises `RequestError` otherwise."""
        schema, leaves_digest = connection.execute(
            "SELECT schema, leaves_digest FROM uploads WHERE id = ?", (upload,)
        ).fetchone()
        if schema is None:
            connection.execute(
                "UPDATE uploads SET schema = ?, leaves_digest = ? WHERE id = ?",
                (encode_schema(info.schema), info.leaves_digest, upload),
            )
        elif not same_fields(decode_schema(schema), info.schema):
            difference = _difference(decode_schema(schema), info.schema)
            raise RequestError(
                f"Partition {info.digest} has other columns than the table's first partition: {difference}"
            )
        elif leaves_digest != info.leaves_digest:
            raise RequestError(
                f"Partition {info.digest} stores its columns as other Parquet types than the table's first partition: "
                "write all files of a table with one writer and the same settings."
            )

    def _placed(self, connection: sqlite3.Connection, upload: str, digest: str) -> bool:
        placed = connection.execute("SELECT * FROM placements WHERE upload = ? AND digest = ?", (upload, digest))
        return placed.fetchone() is not None

    def _choose(self, connection: sqlite3.Connection, nodes: list[str], position: int, digest: str) -> list[str]:
        """Return one node for each replica. The choice starts one node further for each position, which spreads the
        partitions."""
        removing = {
            name for (name,) in connection.execute("SELECT node FROM removals WHERE digest = ?", (digest,)).fetchall()
        }
        first = position % len(nodes)
        free = [node for node in nodes[first:] + nodes[:first] if node not in removing]
        if len(free) < self._replicas:
            raise BusyError(
                f"Partition {digest} is being removed from {', '.join(sorted(removing))}: try again in a moment; if "
                "that does not help, run 'store repair'."
            )
        return free[: self._replicas]

    def _remember(self, connection: sqlite3.Connection, info: PartitionInfo, node: str) -> None:
        known = connection.execute("SELECT info FROM partitions WHERE digest = ?", (info.digest,)).fetchone()
        if known is None:
            connection.execute(
                "INSERT INTO partitions VALUES (?, ?, ?, ?)", (info.digest, info.stored_bytes, info.rows, info.encode())
            )
        elif not PartitionInfo.decode(known[0]).same_content(info):
            raise DamagedError(f"Nodes disagree on what partition {info.digest} holds: check the memory of {node}.")

    def _check_whole(self, connection: sqlite3.Connection, upload: str) -> None:
        count, last = connection.execute(
            "SELECT count(*), max(position) FROM upload_partitions WHERE upload = ?", (upload,)
        ).fetchone()
        if count == 0:
            raise RequestError("This upload has no partitions: place at least one.")
        if last != count - 1:
            raise RequestError(
                f"This upload has {number_of(count, 'partition')}, but the last partition has number {last}, counted "
                "from 0: place the missing partitions."
            )
        missing = connection.execute(
            "SELECT digest, node FROM placements WHERE upload = ? AND NOT acknowledged LIMIT 1", (upload,)
        ).fetchone()
        if missing is not None:
            raise RequestError(f"Partition {missing[0]} is not yet acknowledged by node {missing[1]}: send it there.")


def forget(connection: sqlite3.Connection, upload: str) -> None:
    """Delete the records of an upload."""
    for table, column in (("placements", "upload"), ("upload_partitions", "upload"), ("uploads", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (upload,))


def give_up(connection: sqlite3.Connection, upload: str) -> None:
    """End an upload without a version. Remove its partitions unless another version or upload needs them."""
    placed = connection.execute("SELECT digest, node FROM placements WHERE upload = ?", (upload,)).fetchall()
    forget(connection, upload)
    for digest, node in placed:
        remove_unwanted(connection, digest, node)
    remove_unused(connection)


def remove_unwanted(connection: sqlite3.Connection, digest: str, node: str) -> None:
    """Record the decision to remove a partition from a node, unless the catalog records a replica on this node or an
    upload places the partition there."""
    connection.execute(
        """INSERT OR IGNORE INTO removals (digest, node) SELECT ?1, ?2
           WHERE EXISTS (SELECT * FROM nodes WHERE name = ?2)
           AND NOT EXISTS (SELECT * FROM replicas WHERE digest = ?1 AND node = ?2)
           AND NOT EXISTS (SELECT * FROM placements WHERE digest = ?1 AND node = ?2)""",
        (digest, node),
    )


def remove_unused(connection: sqlite3.Connection) -> None:
    """Delete the records of partitions that no version and no upload uses, and of which no node has a recorded
    replica."""
    connection.execute(
        """DELETE FROM partitions WHERE digest NOT IN (SELECT digest FROM version_partitions)
           AND digest NOT IN (SELECT digest FROM placements) AND digest NOT IN (SELECT digest FROM replicas)"""
    )


def _difference(first: pa.Schema, other: pa.Schema) -> str:
    for one, two in zip(first, other, strict=False):
        if not one.equals(two):
            return f"{str(two)[:80]} where the first has {str(one)[:80]}."
    return f"{len(other)} columns where the first has {len(first)}."

"""The catalog's decisions about unneeded bytes and repaired replicas.

A removal is recorded in the transaction that makes the bytes unneeded, and only then carried out on the node. Until the
removal is done, no upload places the same partition on this node, so a late removal cannot delete newly uploaded bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from libraries.near_storage.errors import BusyError, DamagedError, NotFoundError
from libraries.near_storage.storing.database import Database
from libraries.near_storage.storing.integrity import CatalogView, Discard, Removal, Wanted
from libraries.near_storage.storing.names import check_digest, check_node
from libraries.near_storage.storing.uploads import give_up, remove_unused, remove_unwanted


class Upkeep:
    """Decides for the catalog which bytes are removed from nodes, and records repaired replicas."""

    def __init__(
        self, database: Database, replicas: int, grace_s: float, upload_idle_s: float, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._replicas = replicas
        self._grace_s = grace_s
        self._upload_idle_s = upload_idle_s
        self._clock = clock

    def collect(self) -> tuple[Removal, ...]:
        """Abort idle uploads and forget versions whose grace period is over; return all removals to carry out now."""
        now_s = self._clock()
        with self._database.transaction() as connection:
            idle = connection.execute("SELECT id FROM uploads WHERE active_s <= ?", (now_s - self._upload_idle_s,))
            for (upload,) in idle.fetchall():
                give_up(connection, upload)
            over = (now_s - self._grace_s,)
            connection.execute(
                """DELETE FROM version_partitions WHERE version IN
                   (SELECT number FROM versions WHERE replaced_s <= ?)""",
                over,
            )
            connection.execute("DELETE FROM versions WHERE replaced_s <= ?", over)
            unneeded = connection.execute(
                """DELETE FROM replicas WHERE digest NOT IN (SELECT digest FROM version_partitions)
                   RETURNING digest, node"""
            ).fetchall()
            for digest, node in unneeded:
                remove_unwanted(connection, digest, node)
            remove_unused(connection)
        return self.removals()

    def removals(self) -> tuple[Removal, ...]:
        """Return removals that were decided and not yet confirmed, in order of decision."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT number, digest, node FROM removals ORDER BY number").fetchall()
        return tuple(Removal(*row) for row in rows)

    def removed(self, removal: Removal) -> None:
        """Record that the node removed the partition durably."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM removals WHERE number = ?", (removal.number,))

    def view(self) -> CatalogView:
        """Return the state that the catalog expects, for `integrity.check`. Raises `DamagedError` if the catalog's file
        is damaged."""
        with self._database.reading() as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise DamagedError(f"The catalog's file is damaged ({verdict}): restore a copy of its folder.")
            nodes = tuple(name for (name,) in connection.execute("SELECT name FROM nodes ORDER BY name"))
            replicas: dict[str, set[str]] = {}
            for digest, node in connection.execute("SELECT digest, node FROM replicas"):
                replicas.setdefault(digest, set()).add(node)
            tables: dict[str, tuple[int, list[str]]] = {}
            for digest, size, table in connection.execute(
                """SELECT DISTINCT digest, partitions.stored_bytes, table_name FROM version_partitions
                   JOIN versions ON version = number JOIN partitions USING (digest) ORDER BY digest, table_name"""
            ):
                tables.setdefault(digest, (size, []))[1].append(table)
            uploading = frozenset(connection.execute("SELECT digest, node FROM placements").fetchall())
            removals = frozenset(connection.execute("SELECT digest, node FROM removals").fetchall())
        wanted = {
            digest: Wanted(size, frozenset(replicas.get(digest, ())), tuple(names))
            for digest, (size, names) in tables.items()
        }
        return CatalogView(self._replicas, nodes, wanted, uploading, removals)

    def permit(self, discards: Iterable[Discard]) -> tuple[Removal, ...]:
        """Decide to remove orphans (unneeded partitions that a check found), except those that are needed by now.
        Return all pending removals."""
        with self._database.transaction() as connection:
            for discard in discards:
                remove_unwanted(connection, check_digest(discard.digest), check_node(discard.node))
        return self.removals()

    def record(self, digest: str, node: str) -> None:
        """Record that a node holds a good, synced replica of a partition, which was copied to the node or found on it.

        Raises `NotFoundError` if no version needs the partition any more, `BusyError` while the partition is being
        removed from that node.
        """
        with self._database.transaction(moves=True) as connection:
            place = (check_digest(digest), check_node(node))
            if not connection.execute("SELECT * FROM version_partitions WHERE digest = ?", place[:1]).fetchone():
                raise NotFoundError(f"No table needs partition {digest} any more.")
            if connection.execute("SELECT * FROM removals WHERE digest = ? AND node = ?", place).fetchone():
                raise BusyError(f"Partition {digest} is being removed from node {node}: repair again in a moment.")
            connection.execute("INSERT OR IGNORE INTO replicas VALUES (?, ?)", place)

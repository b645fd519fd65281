"""What the catalog decides about bytes that nobody needs any more, and about replicas that repair brought back.

A removal is decided here first, in one transaction with what makes the bytes unneeded, and only then done on the node.
As long as it is not done, no upload places the same partition there, so a late removal takes nothing that was put anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from libraries.near_storage.errors import BusyError, DamagedError, NotFoundError
from libraries.near_storage.storing.database import Database
from libraries.near_storage.storing.integrity import CatalogView, Discard, Removal, Wanted
from libraries.near_storage.storing.names import check_digest, check_node
from libraries.near_storage.storing.uploads import give_up, remove_unused, remove_unwanted


class Upkeep:
    """Collection and repair, as far as the catalog is concerned."""

    def __init__(
        self, database: Database, replicas: int, grace_s: float, upload_idle_s: float, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._replicas = replicas
        self._grace_s = grace_s
        self._upload_idle_s = upload_idle_s
        self._clock = clock

    def collect(self) -> tuple[Removal, ...]:
        """Give up idle uploads, forget versions whose grace is over; all removals that are to be done now."""
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
        """What was decided to be removed and is not yet known to be, in the order of the decisions."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT number, digest, node FROM removals ORDER BY number").fetchall()
        return tuple(Removal(*row) for row in rows)

    def removed(self, removal: Removal) -> None:
        """The node has removed it, durably."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM removals WHERE number = ?", (removal.number,))

    def view(self) -> CatalogView:
        """What the catalog wants now, for `checking.check`; `DamagedError` if its own file is not sound."""
        with self._database.reading() as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise DamagedError(f"The catalog's file is damaged ({verdict}): put back a copy of its folder.")
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
        """Decide to remove orphans of a check, without what was placed or recorded since; all removals to be done."""
        with self._database.transaction() as connection:
            for discard in discards:
                remove_unwanted(connection, check_digest(discard.digest), check_node(discard.node))
        return self.removals()

    def record(self, digest: str, node: str) -> None:
        """A node holds a good replica of a partition, synced: it was copied there, or found there.

        `NotFoundError` if no version needs the partition any more: then it is an orphan there. `BusyError` while it is
        being removed from that node.
        """
        with self._database.transaction(moves=True) as connection:
            place = (check_digest(digest), check_node(node))
            if not connection.execute("SELECT * FROM version_partitions WHERE digest = ?", place[:1]).fetchone():
                raise NotFoundError(f"Partition {digest} is needed by no table any more.")
            if connection.execute("SELECT * FROM removals WHERE digest = ? AND node = ?", place).fetchone():
                raise BusyError(f"Partition {digest} is being removed from node {node}: check again.")
            connection.execute("INSERT OR IGNORE INTO replicas VALUES (?, ?)", place)

"""A real process that stores and is killed: `kill -9` at any moment, on real files.

python -c "from libraries.near_storage.tests.storing.kills import main; print(main(300))"
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from libraries.durable.tests import kills as killing
from libraries.near_storage.errors import NotFoundError
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.integrity import check
from libraries.near_storage.storing.partitions import PartitionStore
from libraries.near_storage.tests.storing.files import LIMIT_BYTES, describe_here, digest_of, in_pieces, parquet

NODES = ("north", "south")
TABLES = ("a", "b")
GRACE_S = 0.02
FILES = [parquet(number) for number in range(8)]


class Stores:
    """A catalog and two nodes in one folder and one process."""

    def __init__(self, folder: Path) -> None:
        self.catalog = Catalog(folder / "catalog", 2, GRACE_S, GRACE_S)
        self.nodes = {name: PartitionStore(folder / name, describe=describe_here) for name in NODES}
        for name in NODES:
            self.catalog.register_node(name, f"grpc://{name}:1", f"folder-{name}")

    def close(self) -> None:
        self.catalog.close()
        for store in self.nodes.values():
            store.close()

    def put(self, table: str, numbers: list[int]) -> None:
        upload = self.catalog.uploads.begin(table)
        for position, number in enumerate(numbers):
            data = FILES[number]
            for node in self.catalog.uploads.place(upload, position, digest_of(data), len(data)):
                info = self.nodes[node.name].put(in_pieces(data), digest_of(data), LIMIT_BYTES)
                self.catalog.uploads.acknowledge(upload, digest_of(data), node.name, info)
        self.catalog.uploads.commit(upload)

    def collect(self) -> None:
        for removal in self.catalog.upkeep.collect():
            self.nodes[removal.node].remove(removal.digest, removal.number)
            self.catalog.upkeep.removed(removal)

    def numbers(self, table: str) -> list[str] | None:
        try:
            return [partition.digest for partition in self.catalog.current(table).partitions]
        except NotFoundError:
            return None


def work(folder: str, seed: int, told: Connection) -> None:
    """Put, delete and collect until killed; before and after each operation, report the intended state of a table."""
    chance = random.Random(seed)
    stores = Stores(Path(folder))
    told.send(("open", None, None))
    while True:
        table, numbers = chance.choice(TABLES), [chance.randrange(len(FILES)) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.2 and stores.numbers(table) is not None:
            told.send(("begin", table, None))
            stores.catalog.delete(table)
            told.send(("end", table, None))
        else:
            digests = [digest_of(FILES[number]) for number in numbers]
            told.send(("begin", table, digests))
            # A partition of these bytes may still be awaiting removal.
            stores.collect()
            stores.put(table, numbers)
            told.send(("end", table, digests))
        if chance.random() < 0.3:
            stores.collect()


def kill(folder: Path, seed: int, known: dict[str, list]) -> int:
    """Start a writer, kill it soon after some operations; return the number of those that it acknowledged."""
    chance = random.Random(seed)
    waited_for, pause_s = chance.randint(0, 3), chance.uniform(0.0, 0.03)
    return killing.kill(work, (str(folder), seed), lambda message: take_in(message, known), waited_for, pause_s)


def take_in(message: tuple, known: dict[str, list]) -> bool:
    """Update the allowed states of a table after a message; return whether it acknowledges an operation."""
    what, table, digests = message
    if what == "begin":
        known[table].append(digests)
    elif what == "end":
        known[table] = [digests]
    return what == "end"


def check_after(folder: Path, known: dict[str, list]) -> None:
    """Check that the store opens, tables are as acknowledged and on all nodes, and leftovers are gone."""
    stores = Stores(folder)
    for table, allowed in known.items():
        found = stores.numbers(table)
        assert found in allowed, f"{table} is {found}, allowed {allowed}"
        known[table] = [found]
        for digest in found or ():
            for store in stores.nodes.values():
                store.verify(digest)
                assert store.info(digest).digest == digest
    for name, store in stores.nodes.items():
        assert not [file for file in os.listdir(folder / name) if file.endswith(".part")]
        for digest in store.digests():
            store.verify(digest)
    time.sleep(GRACE_S)
    stores.collect()
    reports = {name: store.report(0.0, verify=True) for name, store in stores.nodes.items()}
    checked = check(stores.catalog.upkeep.view(), reports, 0.0)
    assert {finding.kind for finding in checked.findings} <= {"orphan"}, checked.findings
    stores.close()


def main(kills: int) -> int:
    """Kill that many writers of one store, one after the other; return how many operations were acknowledged."""
    known: dict[str, list] = {table: [None] for table in TABLES}
    acknowledged = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(kills):
            acknowledged += kill(Path(folder), seed, known)
            check_after(Path(folder), known)
    return acknowledged

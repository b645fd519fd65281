"""One life of a store: some work, a power cut during it, and what must hold when the power is back.

python -m libraries.near_storage.tests.storing.cuts 1000      runs lives 0 to 999 and prints the results
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, field

from libraries.durable.tests.simulated_disk import Power, PowerLoss, SimulatedDisk
from libraries.near_storage.errors import NearStorageError, NotFoundError
from libraries.near_storage.storing.catalog import TableVersion
from libraries.near_storage.tests.storing.cluster import GRACE_S, IDLE_S, NODES, Clock, Cluster, new_disks
from libraries.near_storage.tests.storing.files import LIMIT_BYTES, digest_of, parquet

TABLES = ("a", "b", "c")
CALLS = {"_put": 340, "_delete": 21, "_collect": 60, "_repair": 60, "_leave": 210, "_open": 3}
"""Approximate number of modifying calls of an operation; the power is cut at one of them."""


@dataclass
class Known:
    """The replies to callers. `allowed` are the possible states of each table: two while an operation runs."""

    allowed: dict[str, list[tuple[str, ...] | None]] = field(
        default_factory=lambda: {table: [None] for table in TABLES}
    )
    numbers: dict[int, tuple[str, tuple[str, ...], float | None]] = field(default_factory=dict)
    hurt: tuple[str, str] | None = None
    doing: str = "opening"


class Life:
    """A cluster at work until the power is cut."""

    def __init__(self, seed: int, disks: dict[str, SimulatedDisk], kind: type[Cluster], clock: Clock) -> None:
        self.chance = random.Random(seed)
        self.power = Power()
        self.kind, self.clock, self.known = kind, clock, Known()
        self.disks = {name: disk.copied(self.power) for name, disk in disks.items()}
        self.cluster: Cluster | None = None

    def run(self) -> None:
        """Work until the power is cut, check what is left, then check that the store is usable again."""
        try:
            self._work()
        except (PowerLoss, NearStorageError) as error:
            if not self.power.out:
                raise AssertionError(f"{self.known.doing}: {error}") from error
        if self.cluster is not None:
            self.cluster.end()
        self._power_on()
        try:
            self.cluster = Cluster(self.disks, self.clock)
            self._check_promises()
            self._check_use()
        except NearStorageError as error:
            raise AssertionError(f"after the cut: {error}") from error

    # --- work --------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Run a few operations, then repeat one kind until the power is cut during it."""
        self.cluster = self.kind(self.disks, self.clock)
        some = ("_put", "_put", "_delete", "_collect", "_repair", "_leave")
        for name in self.chance.choices(some, k=self.chance.randint(0, 5)):
            self._do(name)
        last = self.chance.choice(sorted(CALLS))
        while True:
            self._do("_put")
            self.power.cut_at = self.power.calls + self.chance.randint(1, CALLS[last])
            self._do(last)
            self.power.cut_at = None

    def _do(self, name: str) -> None:
        self.known.doing = name
        getattr(self, name)()
        self.clock.now_s += self.chance.choice([0.0, 1.0, GRACE_S / 2])

    def _open(self) -> None:
        """End the processes and start them again."""
        ended, self.cluster = self.cluster, None
        ended.end()
        for store in ended.stores.values():
            store.close()
        self.cluster = self.kind(self.disks, self.clock)

    def _put(self) -> None:
        table = self.chance.choice(TABLES)
        files = [parquet(self.chance.randint(0, 9)) for _ in range(self.chance.randint(1, 3))]
        digests = tuple(digest_of(data) for data in files)
        self.known.allowed[table].append(digests)
        self._replaced(table)
        number = self.cluster.put(table, files)
        self.known.allowed[table] = [digests]
        self.known.numbers[number] = table, digests, None

    def _delete(self) -> None:
        table = self.chance.choice(TABLES)
        if self.known.allowed[table] == [None]:
            return
        self.known.allowed[table].append(None)
        self._replaced(table)
        self.cluster.catalog.delete(table)
        self.known.allowed[table] = [None]

    def _replaced(self, table: str) -> None:
        for number, (name, digests, replaced_s) in self.known.numbers.items():
            if name == table and replaced_s is None:
                self.known.numbers[number] = name, digests, self.clock()

    def _collect(self) -> None:
        self.clock.now_s += self.chance.choice([1.0, GRACE_S, IDLE_S])
        self.cluster.collect()

    def _leave(self) -> None:
        """Begin an upload as a client that then disappears."""
        upload = self.cluster.catalog.uploads.begin("a")
        self.cluster.put_partition(upload, 0, parquet(self.chance.randint(0, 12)))
        if self.chance.random() < 0.5:
            self.cluster.catalog.uploads.abort(upload)
            self.cluster.remove(self.cluster.catalog.upkeep.removals())

    def _repair(self) -> None:
        """Repair after a replica is lost or has a changed byte, and a node holds an orphan."""
        orphan = parquet(self.chance.randint(20, 22))
        self.cluster.stores[self.chance.choice(NODES)].put([orphan], None, LIMIT_BYTES)
        wanted = self.cluster.catalog.upkeep.view().wanted
        if wanted:
            digest = self.chance.choice(sorted(wanted))
            node = self.chance.choice(sorted(wanted[digest].nodes))
            self.known.hurt = digest, node
            if self.chance.random() < 0.5:
                self.disks[node].rot(self.disks[node].root / "node" / f"{digest}.parquet", self.chance)
            else:
                self.cluster.stores[node].remove(digest, 0)
        self.cluster.repair()
        self.known.hurt = None

    # --- after the cut -----------------------------------------------------------------------------------

    def _power_on(self) -> None:
        """Restart after some machines lost power; on the others only the processes died."""
        power = Power()
        without = self.chance.choice([set(self.disks), {self.chance.choice(sorted(self.disks))}])
        self.disks = {
            name: disk.lost(self.chance, power) if name in without else disk.restarted(power)
            for name, disk in self.disks.items()
        }

    def _check_promises(self) -> None:
        for name in NODES:
            left = [file for file in self.disks[name].files(self.disks[name].root / "node") if file.endswith(".part")]
            assert not left, f"leftovers on {name}"
            for digest in self.cluster.stores[name].digests():
                assert self._is_hurt(digest, name) or self._is_good(digest, name), (
                    f"a partial partition shows on {name}"
                )
        for table, allowed in self.known.allowed.items():
            version = self._current(table)
            found = None if version is None else tuple(partition.digest for partition in version.partitions)
            assert found in allowed, f"{table} is {found}, allowed {allowed}"
            if version is not None:
                self._check_readable(version)
        for number, (table, digests, replaced_s) in self.known.numbers.items():
            if replaced_s is None or self.clock() < replaced_s + GRACE_S:
                self._check_version(table, number, digests)

    def _check_version(self, table: str, number: int, digests: tuple[str, ...]) -> None:
        version = self.cluster.catalog.version(table, number)
        assert tuple(partition.digest for partition in version.partitions) == digests
        self._check_readable(version)

    def _check_readable(self, version: TableVersion) -> None:
        for partition in version.partitions:
            assert len(partition.nodes) >= 2, "fewer replicas than promised"
            for node in partition.nodes:
                good = self._is_hurt(partition.digest, node.name) or self._is_good(partition.digest, node.name)
                assert good, f"{partition.digest} of {version.table} is not on {node.name}"
        groups = sum(self.cluster.catalog.info(partition.digest).compact.groups for partition in version.partitions)
        assert self.cluster.catalog.metadata(version).groups == groups

    def _check_use(self) -> None:
        """Check that a table can be put, repair finishes, and after the grace period nodes hold only what is needed."""
        files = [parquet(20), parquet(30)]
        number = self.cluster.put("a", files)
        assert self.cluster.catalog.current("a").number == number
        self.clock.now_s += GRACE_S + IDLE_S
        self.cluster.collect()
        self.cluster.repair()
        left = self.cluster.check()
        assert left.findings == (), f"repair leaves {left.findings}"
        held = {(digest, name) for name in NODES for digest in self.cluster.stores[name].digests()}
        needed = {
            (partition.digest, node.name)
            for table in TABLES
            if (version := self._current(table)) is not None
            for partition in version.partitions
            for node in partition.nodes
        }
        assert held == needed, "nodes hold what nothing needs"
        self.cluster.end()

    def _current(self, table: str) -> TableVersion | None:
        try:
            return self.cluster.catalog.current(table)
        except NotFoundError:
            return None

    def _is_hurt(self, digest: str, node: str) -> bool:
        return (digest, node) == self.known.hurt

    def _is_good(self, digest: str, node: str) -> bool:
        try:
            self.cluster.stores[node].verify(digest)
        except NearStorageError:
            return False
        return self.cluster.stores[node].info(digest).digest == digest


def prepared(disk: type[SimulatedDisk] = SimulatedDisk) -> dict[str, SimulatedDisk]:
    """Return disks of a store that was opened once and is empty; every life begins with a copy of them."""
    disks = new_disks(disk)
    Cluster(disks, Clock()).end()
    return disks


def live(seed: int, disks: dict[str, SimulatedDisk], kind: type[Cluster] = Cluster) -> Life:
    """Run one life; `AssertionError` names the broken promise."""
    life = Life(seed, disks, kind, Clock())
    life.run()
    return life


def main(lives: int) -> None:
    """Run lives and print in which operations the power was cut."""
    disks = prepared()
    during: Counter[str] = Counter()
    for seed in range(lives):
        try:
            during[live(seed, disks).known.doing] += 1
        except AssertionError as error:
            print(f"life {seed}: {error}")
            during["broken"] += 1
    print(lives, "lives;", dict(during))
    sys.exit(bool(during["broken"]))


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""A catalog and its nodes on simulated disks, operated in the same order as by the services.

The tests are about this order: data, fsync, rename, fsync of the folder, register. Each class at the end breaks it in
one place; a test of cuts that does not detect them is useless.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from libraries.durable.tests.simulated_disk import Power, SimulatedDisk
from libraries.near_storage.errors import NearStorageError
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.integrity import Check, Copy, Discard, Record, Removal, check
from libraries.near_storage.tests.storing.files import LIMIT_BYTES, description, digest_of, in_pieces, simulated_store

NODES = ("north", "south", "west")
GRACE_S, IDLE_S, ORPHAN_AGE_S = 100.0, 1000.0, 0.0


@dataclass
class Clock:
    now_s: float = 1e9

    def __call__(self) -> float:
        return self.now_s


class Cluster:
    """Opens catalog and stores on the given disks, by their names: 'catalog' and those of the nodes."""

    def __init__(self, disks: dict[str, SimulatedDisk], clock: Clock) -> None:
        self.disks, self.clock = disks, clock
        disk = disks["catalog"]
        self.catalog = Catalog(disk.root / "catalog", 2, GRACE_S, IDLE_S, clock, disk)
        self.stores = {name: simulated_store(disks[name]) for name in NODES}
        for name in NODES:
            self.stores[name].claim(self.catalog.identity)
            self.catalog.register_node(name, f"grpc://{name}:1", f"folder-{name}")

    def put(self, table: str, files: Iterable[bytes]) -> int:
        """Upload a table of these partitions; return its version."""
        upload = self.catalog.uploads.begin(table)
        for position, data in enumerate(files):
            self.put_partition(upload, position, data)
        return self.catalog.uploads.commit(upload)

    def put_partition(self, upload: str, position: int, data: bytes) -> None:
        for node in self.catalog.uploads.place(upload, position, digest_of(data), len(data)):
            info = self.stores[node.name].put(in_pieces(data), digest_of(data), LIMIT_BYTES)
            self.catalog.uploads.acknowledge(upload, digest_of(data), node.name, info)

    def collect(self) -> None:
        """Forget expired versions and remove their bytes."""
        self.remove(self.catalog.upkeep.collect())

    def remove(self, removals: Iterable[Removal]) -> None:
        for removal in removals:
            self.stores[removal.node].remove(removal.digest, removal.number)
            self.catalog.upkeep.removed(removal)

    def check(self, orphan_age_s: float = ORPHAN_AGE_S) -> Check:
        """Return the current findings, reading every byte."""
        reports = {name: store.report(self.clock(), verify=True) for name, store in self.stores.items()}
        return check(self.catalog.upkeep.view(), reports, orphan_age_s)

    def repair(self) -> None:
        steps = self.check().steps
        for step in steps:
            if isinstance(step, Copy):
                self.stores[step.target].put(self.pieces(step.source, step.digest), step.digest, LIMIT_BYTES)
                self.catalog.upkeep.record(step.digest, step.target)
            elif isinstance(step, Record):
                self.catalog.upkeep.record(step.digest, step.node)
        self.remove(self.catalog.upkeep.permit(step for step in steps if isinstance(step, Discard)))

    def pieces(self, node: str, digest: str) -> list[bytes]:
        with self.stores[node].opened(digest) as descriptor:
            return in_pieces(self.disks[node].read(descriptor, LIMIT_BYTES, 0))

    def end(self) -> None:
        """Release SQLite's file, whatever happened to the disk."""
        with suppress(NearStorageError):
            self.catalog.close()


def new_disks(kind: type[SimulatedDisk] = SimulatedDisk) -> dict[str, SimulatedDisk]:
    """Return empty disks of the catalog and all nodes, which lose power together. `kind` is for the nodes."""
    power = Power()
    return {"catalog": SimulatedDisk(power), **{name: kind(power) for name in NODES}}


class RegistersFirst(Cluster):
    """Commits the version, then stores its bytes."""

    def put(self, table: str, files: Iterable[bytes]) -> int:
        upload = self.catalog.uploads.begin(table)
        placed = []
        for position, data in enumerate(files):
            for node in self.catalog.uploads.place(upload, position, digest_of(data), len(data)):
                self.catalog.uploads.acknowledge(upload, digest_of(data), node.name, description(data))
                placed.append((node.name, data))
        number = self.catalog.uploads.commit(upload)
        for name, data in placed:
            self.stores[name].put(in_pieces(data), digest_of(data), LIMIT_BYTES)
        return number


class NoSync(SimulatedDisk):
    def fsync(self, descriptor: int) -> None:
        self.power.check()


class NoFolderSync(SimulatedDisk):
    def fsync_folder(self, folder: Path) -> None:
        self.power.check()


class SyncsLate(SimulatedDisk):
    """Files are synced only after they have their names."""

    def fsync(self, descriptor: int) -> None:
        self.power.check()

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.sync_file(self.file(target))

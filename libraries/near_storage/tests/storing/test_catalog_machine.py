"""The catalog and its nodes under any order of operations, restarts and power cuts, compared with a model of dicts."""

import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from libraries.durable.tests.simulated_disk import Power
from libraries.near_storage.errors import BusyError, NotFoundError, StaleError
from libraries.near_storage.tests.storing.cluster import GRACE_S, IDLE_S, NODES, Clock, Cluster, new_disks
from libraries.near_storage.tests.storing.files import digest_of, parquet

TABLE = st.sampled_from(["a", "b"])
FILES = st.lists(st.integers(0, 5), min_size=1, max_size=3)


class Store(RuleBasedStateMachine):
    """`tables`: current contents; `old`: replaced versions and their times of replacement; `open`: current uploads."""

    @initialize()
    def start(self) -> None:
        self.clock = Clock()
        self.cluster = Cluster(new_disks(), self.clock)
        self.tables: dict[str, tuple[int, list[int]]] = {}
        self.old: dict[int, tuple[str, list[int], float]] = {}
        self.open: list[tuple[str, str, list[int], float]] = []

    # --- operations --------------------------------------------------------------------------------------

    @rule(table=TABLE, numbers=FILES)
    def put(self, table: str, numbers: list[int]) -> None:
        self.begin(table, numbers)
        self.commit(0.999)

    @rule(table=TABLE, numbers=FILES)
    def begin(self, table: str, numbers: list[int]) -> None:
        """Upload a whole table without the commit."""
        upload = self.cluster.catalog.uploads.begin(table)
        try:
            for position, number in enumerate(numbers):
                self.cluster.put_partition(upload, position, parquet(number))
        except BusyError:
            assert self.cluster.catalog.upkeep.removals(), "nothing is being removed"
            self.cluster.catalog.uploads.abort(upload)
            return
        self.open.append((upload, table, numbers, self.clock()))

    @rule(which=st.floats(0, 0.999))
    def commit(self, which: float) -> None:
        if not self.open:
            return
        upload, table, numbers, active_s = self.open.pop(int(which * len(self.open)))
        try:
            number = self.cluster.catalog.uploads.commit(upload)
        except StaleError:
            assert self.clock() >= active_s + IDLE_S
            return
        assert number > max([0, *self.old, *(known for known, _ in self.tables.values())])
        self._replace(table)
        self.tables[table] = number, numbers

    @rule(which=st.floats(0, 0.999))
    def abort(self, which: float) -> None:
        if self.open:
            upload, _, _, active_s = self.open.pop(int(which * len(self.open)))
            try:
                self.cluster.catalog.uploads.abort(upload)
            except StaleError:
                assert self.clock() >= active_s + IDLE_S

    @rule(table=TABLE)
    def delete(self, table: str) -> None:
        if table in self.tables:
            self.cluster.catalog.delete(table)
            self._replace(table)
            return
        try:
            self.cluster.catalog.delete(table)
        except NotFoundError:
            return
        raise AssertionError("a missing table was deleted")

    @rule(seconds=st.sampled_from([1.0, GRACE_S / 2, GRACE_S, IDLE_S]))
    def wait(self, seconds: float) -> None:
        self.clock.now_s += seconds

    @rule(executed=st.booleans())
    def collect(self, executed: bool) -> None:
        removals = self.cluster.catalog.upkeep.collect()
        if executed:
            self.cluster.remove(removals)

    @rule()
    def repair(self) -> None:
        self.cluster.repair()

    @rule(seed=st.integers(0, 1000), node=st.sampled_from(NODES))
    def lose(self, seed: int, node: str) -> None:
        """Lose a replica of a node unnoticed; repair restores it."""
        held = sorted(self.cluster.stores[node].digests() & self.cluster.catalog.upkeep.view().wanted.keys())
        if held:
            digest = random.Random(seed).choice(held)
            self.cluster.disks[node].unlink(self.cluster.disks[node].root / "node" / f"{digest}.parquet")
            self.cluster.repair()

    @rule(seed=st.integers(0, 1000), kept=st.booleans())
    def restart(self, seed: int, kept: bool) -> None:
        """Kill all processes or cut the power; nothing is in progress, so nothing may be lost."""
        for disk in self.cluster.disks.values():
            disk.power.out = True
        self.cluster.end()
        power, chance = Power(), random.Random(seed)
        disks = {
            name: disk.restarted(power) if kept else disk.lost(chance, power)
            for name, disk in self.cluster.disks.items()
        }
        self.cluster = Cluster(disks, self.clock)

    def _replace(self, table: str) -> None:
        if table in self.tables:
            number, numbers = self.tables.pop(table)
            self.old[number] = table, numbers, self.clock()

    # --- what is always true -----------------------------------------------------------------------------

    @invariant()
    def tables_are_those_of_the_model(self) -> None:
        catalog = self.cluster.catalog
        assert {table.table: table.number for table in catalog.tables()} == {
            table: number for table, (number, _) in self.tables.items()
        }
        for table, (number, numbers) in self.tables.items():
            assert self._partitions(catalog.current(table)) == numbers
            assert catalog.current(table) == catalog.version(table, number)

    @invariant()
    def old_versions_are_there_for_their_grace_alone(self) -> None:
        for number, (table, numbers, replaced_s) in self.old.items():
            try:
                found = self._partitions(self.cluster.catalog.version(table, number))
            except StaleError:
                assert self.clock() >= replaced_s + GRACE_S
            else:
                assert self.clock() < replaced_s + GRACE_S
                assert found == numbers

    @invariant()
    def nothing_is_lost_or_damaged(self) -> None:
        kinds = {finding.kind for finding in self.cluster.check().findings}
        assert kinds <= {"orphan", "unrecorded"}

    def _partitions(self, version) -> list[int]:
        """Return the numbers of a version's files, which all its nodes have."""
        files = {digest_of(parquet(number)): number for number in range(6)}
        assert version.rows == 40 * len(version.partitions)
        for partition in version.partitions:
            assert len(partition.nodes) >= 2
            for node in partition.nodes:
                assert partition.digest in self.cluster.stores[node.name].digests()
        return [files[partition.digest] for partition in version.partitions]

    def teardown(self) -> None:
        """Check that nothing is left at the end."""
        if not hasattr(self, "cluster"):
            return
        for table in list(self.tables):
            self.delete(table)
        self.clock.now_s += GRACE_S + IDLE_S
        self.cluster.collect()
        self.cluster.repair()
        assert all(store.digests() == frozenset() for store in self.cluster.stores.values())
        assert self.cluster.check().findings == ()
        self.cluster.end()


TestStore = Store.TestCase
TestStore.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

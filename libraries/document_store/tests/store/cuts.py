"""One life of a store: some work, failing calls, power cuts during it, and what must hold afterwards.

python -m libraries.document_store.tests.store.cuts 1000      runs lives 0 to 999 and prints the results
"""

from __future__ import annotations

import errno
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy

from libraries.document_store.errors import CorruptError, DocumentStoreError
from libraries.document_store.layouts import LAYOUTS, LayoutName
from libraries.document_store.store import DocumentStore
from libraries.document_store.tests.store.model import Disk, Model, Trap, differs, document, opened, same_documents
from libraries.document_store.tree.manifest import NAME, leftovers
from libraries.durable.tests.simulated_disk import Power, PowerLoss

KEYS = 40
CALLS = {"_upsert": 3, "_delete": 3, "_flush": 30, "_merge": 60, "_reopen": 60, "_index": 40}
"""Approximate number of modifying calls of an operation; the power is cut, or calls fail, from one of them on."""
OPENING_CALLS = 8
DECIDING, DECIDING_CALLS = ("fsync", "fsync_folder", "rename"), 5
"""In half of all cases it is a call that decides about durability; an operation makes about 5 of each."""
OUTCOMES = 6
"""Number of outcomes to check for a cut right after opening, if only the process had died."""
FAILING = 0.25
"""Share of operations, and of openings, in which calls fail."""
OPENING_S = 2.0


class Life:
    """A store at work until the power is cut, three times.

    `states` are its possible contents: the last one is acknowledged; earlier ones count after a cut if the log is not
    synced. `older` count after a cut as long as nothing was written since the store was opened. `failed` are those of
    calls that did not return: the store may hold them when it is opened again, until a later call returns.
    """

    def __init__(self, seed: int, layout: LayoutName, disk: type[Disk] = Disk) -> None:
        self.chance = random.Random(seed)
        self.power = Power()
        self.disk = disk(self.power)
        self.layout, self.synced = layout, self.chance.random() < 0.75
        self.states: list[Model] = [{}]
        self.older: list[Model] = []
        self.failed: list[Model] = []
        self.doing = "_open"
        self.store: DocumentStore | None = None
        self.opening_s = 0.0
        self.merge_may_fail = False
        self.cuts: list[str] = []

    def run(self) -> None:
        """Work until the power is cut, check what is left, continue, and check again."""
        for cut in (True, True, False):
            try:
                self._work(cut)
            except (PowerLoss, DocumentStoreError) as error:
                if not self.power.out:
                    raise AssertionError(f"{self.doing}: {error!r}") from error
            if cut:
                assert self.power.out
                self.cuts.append(self.doing)
                self._open_after_cut()
        assert self.store is not None
        wrong = differs(self.store, self.states[-1])
        assert wrong is None, f"at the end: {wrong}"
        with suppress(DocumentStoreError):
            # The error of a merge while calls failed is raised once.
            self.store.wait_for_merges()
        self.store.close()

    # --- work --------------------------------------------------------------------------------------------

    def _work(self, cut: bool) -> None:
        """Run a few operations, then others until the power is cut during one of them."""
        if self.store is None:
            if cut and self.chance.random() < 0.1:
                self._cut_at_one_of(12)
            self._open()
            self.disk.traps.pop("cut", None)
        often = ("_upsert", "_upsert", "_upsert", "_delete", "_flush", "_merge", "_reopen", "_index")
        for name in self.chance.choices(often, k=self.chance.randint(0, 14)):
            self._do(name)
        if not cut:
            return
        while not self.power.out:
            last = self.chance.choice(sorted(CALLS))
            for _ in range(self.chance.randint(0, 2)):
                self._do("_upsert")
            self._cut_at_one_of(CALLS[last])
            self._do(last)
            self.disk.traps.pop("cut", None)

    def _do(self, name: str) -> None:
        """Run an operation; after failed calls, maybe run others and check what the process would leave."""
        if not self._tried(name, may_fail=True):
            return
        assert self.store is not None
        if self.chance.random() < 0.5:
            wrong = differs(self.store, self.states[-1])
            assert wrong is None, f"{name} with failing calls: {wrong}"
        for _ in range(self.chance.randint(0, 2)):
            self._tried(self.chance.choice(("_upsert", "_delete")), may_fail=False)
        self._look(self.disk.copied(Power()), lost=False)
        self._look(self.disk.lost(self.chance), lost=True)

    def _tried(self, name: str, may_fail: bool) -> bool:
        """Run an operation, perhaps with failing calls, which must change nothing; return whether they were to."""
        self.doing = name
        failing = may_fail and self._begin_to_fail(CALLS[name])
        try:
            getattr(self, name)()
        except CorruptError:
            raise
        except DocumentStoreError as error:
            merge = self.merge_may_fail and "A merge in the background failed" in str(error)
            if self.power.out or not (failing or merge):
                raise
            self.merge_may_fail = failing
        finally:
            self.disk.heal()
        if self.store is None or self.store._tree._closed:
            self._open()
            self._check_promises(lost=False)
        return failing

    def _begin_to_fail(self, calls: int) -> bool:
        """Decide at random whether calls fail, from which one on, and whether one or all of them."""
        if self.chance.random() >= FAILING:
            return False
        self.merge_may_fail = True
        number, most = self.chance.choice((errno.EIO, errno.ENOSPC)), self.chance.choice((1, sys.maxsize))
        self.disk.traps["fail"] = self._one_of(calls, lambda: self.disk.fail(0, number, most))
        return True

    def _cut_at_one_of(self, calls: int) -> None:
        self.disk.traps["cut"] = self._one_of(calls, self.power.cut)

    def _one_of(self, calls: int, act: Callable[[], None]) -> Trap:
        if self.chance.random() < 0.5:
            return Trap(act, self.chance.randrange(calls))
        return Trap(act, self.chance.randrange(DECIDING_CALLS), self.chance.choice(DECIDING))

    def _open(self) -> None:
        """Open at once, or after an attempt with failing calls."""
        self.store = None
        if self._begin_to_fail(OPENING_CALLS):
            try:
                self._opened()
            except CorruptError:
                raise
            except DocumentStoreError:
                if self.power.out:
                    raise
            finally:
                self.disk.heal()
        if self.store is None:
            self.merge_may_fail = False
            self._opened()

    def _opened(self) -> None:
        started = time.perf_counter()
        self.store = opened(self.disk, self.disk.root / "store", self.layout, self.synced, 1500)
        self.opening_s = max(self.opening_s, time.perf_counter() - started)

    def _reopen(self) -> None:
        # Closing takes effect even if it raises.
        self.store.close(wait=self.chance.random() < 0.5)
        self.states, self.older, self.failed = self.states[-1:], [], []
        self._open()

    def _upsert(self) -> None:
        documents = [document(self.chance, self.chance.randrange(KEYS)) for _ in range(self.chance.randint(1, 6))]
        after = {**self.states[-1], **{found["id"]: found for found in documents}}
        self._change(after, lambda: self.store.upsert(documents))

    def _delete(self) -> None:
        keys = [self.chance.randrange(KEYS) for _ in range(self.chance.randint(1, 4))]
        if self.store._tree.key_kind() is None:
            # The store never held anything, so this writes nothing: what failed before may still be found.
            self.store.delete(keys)
            return
        after = {key: found for key, found in self.states[-1].items() if key not in keys}
        self._change(after, lambda: self.store.delete(keys))

    def _change(self, after, act) -> None:
        self.failed.append(deepcopy(after))
        act()
        self.states = [*([] if self.synced else self.states), deepcopy(after)]
        self.older, self.failed = [], []

    def _flush(self) -> None:
        something = bool(self.store._tree._memtable.rows)
        self.store.flush()
        if something:
            self.states, self.older, self.failed = self.states[-1:], [], []

    def _merge(self) -> None:
        self._upsert()
        self._flush()
        self.store.wait_for_merges()

    def _index(self) -> None:
        self.store.index(self.chance.choice(("number", "tags[*].name", "a", "b")))

    # --- after the cut -----------------------------------------------------------------------------------

    def _open_after_cut(self) -> None:
        """Open, maybe after another cut while opening; check the store, and what a cut right afterwards would leave."""
        lost = self._power_on()
        try:
            if self.chance.random() < 0.3:
                self._cut_at_one_of(OPENING_CALLS)
                with suppress(PowerLoss):
                    self._opened()
                lost = self._power_on() or lost
            self._open()
            self._check_promises(lost)
            for _ in range(1 if lost else OUTCOMES):
                self._look(self.disk.lost(self.chance), lost=True)
        except DocumentStoreError as error:
            raise AssertionError(f"after the cut in {self.doing}: {error!r}") from error

    def _power_on(self) -> bool:
        """Cut the power or only end the process; return whether it was the power."""
        if self.store is not None:
            self.store._tree._merger.stop()
            self.store = None
        lost = self.chance.random() < 0.6
        self.power = Power()
        self.disk = self.disk.lost(self.chance, self.power) if lost else self.disk.restarted(self.power)
        return lost

    def _check_promises(self, lost: bool) -> None:
        assert self.store is not None
        assert self.opening_s < OPENING_S, f"opening took {self.opening_s} s"
        found = self._found(self.store, lost)
        # If only the process died, what it left may still be lost.
        self.older = [] if lost else [*self.older, *self.states]
        self.states, self.failed = [found], []
        if not self.merge_may_fail and self.chance.random() < 0.5:
            # Otherwise the next cut happens during merges.
            self._check_files(self.store)

    def _found(self, store: DocumentStore, lost: bool) -> Model:
        """Return the allowed state that the store holds."""
        found = {some["id"]: some for some in store.scan()}
        allowed = [*(self.older if lost else []), *(self.states if lost else self.states[-1:]), *self.failed]
        matching = [state for state in allowed if same_documents(found, state)]
        assert matching, f"{len(found)} documents after {self.doing} match none of {len(allowed)} allowed states"
        wrong = differs(store, matching[-1])
        assert wrong is None, f"after {self.doing}: {wrong}"
        return matching[-1]

    def _look(self, disk: Disk, lost: bool) -> None:
        """Check what would be found on a disk; the life continues with its own."""
        try:
            store = opened(disk, disk.root / "store", None, memtable_bytes=1500)
        except DocumentStoreError as error:
            raise AssertionError(f"after {self.doing}: {error!r}") from error
        try:
            self._found(store, lost)
        finally:
            store._tree._merger.stop()

    def _check_files(self, store: DocumentStore) -> None:
        store.wait_for_merges()
        names = list(self.disk.files(self.disk.root / "store"))
        tree = store._tree
        assert NAME in names
        assert leftovers(names, tree.manifest, set(tree._logs.numbers)) == [], "unnamed files are left"


def live(seed: int, layout: LayoutName, disk: type[Disk] = Disk) -> Life:
    """Run one life; `AssertionError` names the broken promise."""
    life = Life(seed, layout, disk)
    try:
        life.run()
    finally:
        if life.store is not None:
            life.store._tree._merger.stop()
    return life


def main(lives: int) -> None:
    """Run lives and print in which operations the power was cut."""
    during: Counter[str] = Counter()
    slowest_s = 0.0
    for seed in range(lives):
        try:
            life = live(seed, LAYOUTS[seed % len(LAYOUTS)])
            during.update(life.cuts)
            slowest_s = max(slowest_s, life.opening_s)
        except AssertionError as error:
            print(f"life {seed}: {error}")
            during["broken"] += 1
    print(lives, "lives;", dict(during), f"slowest opening {slowest_s:.3f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]))

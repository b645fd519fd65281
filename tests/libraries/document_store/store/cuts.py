"""One life of a store: some work, a power cut in the middle of it, and what must be true when the power is back.

python -m tests.libraries.document_store.store.cuts 1000      runs lives 0 to 999 and tells what they found
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from copy import deepcopy

from libraries.document_store.errors import DocumentStoreError
from libraries.document_store.layouts import LAYOUTS, LayoutName
from libraries.document_store.store import DocumentStore
from libraries.document_store.tree.manifest import NAME, leftovers
from tests.libraries.document_store.store.model import Disk, Model, differs, document, opened, same_documents
from tests.libraries.durable.simulated_disk import Power, PowerLoss

KEYS = 40
CALLS = {"_upsert": 3, "_delete": 3, "_flush": 30, "_merge": 60, "_reopen": 60, "_index": 40}
"""About how many calls an operation makes that change something: the power goes out at one of them."""
OPENING_S = 2.0


class Life:
    """A store at work until the power goes out. `states` are what it may hold: the last one is acknowledged, earlier
    ones count after a cut if the log is not synced."""

    def __init__(self, seed: int, layout: LayoutName, disk: type[Disk] = Disk) -> None:
        self.chance = random.Random(seed)
        self.power = Power()
        self.disk = disk(self.power)
        self.layout, self.synced = layout, self.chance.random() < 0.75
        self.states: list[Model] = [{}]
        self.under_way: Model | None = None
        self.doing = "_open"
        self.store: DocumentStore | None = None
        self.opening_s = 0.0

    def run(self) -> None:
        """Work until the power is out, look at what is left, work on, and look again."""
        for cut in (True, False):
            try:
                self._work(cut)
            except (PowerLoss, DocumentStoreError) as error:
                if not self.power.out:
                    raise AssertionError(f"{self.doing}: {error!r}") from error
            if cut:
                assert self.power.out
                self._power_on()
                try:
                    self._open()
                    self._check_promises()
                except DocumentStoreError as error:
                    raise AssertionError(f"after the cut in {self.doing}: {error!r}") from error
        assert self.store is not None
        wrong = differs(self.store, self.states[-1])
        assert wrong is None, f"at the end: {wrong}"
        self.store.close()

    # --- work --------------------------------------------------------------------------------------------

    def _work(self, cut: bool) -> None:
        """A few operations, then others until the power goes out within one of them."""
        if self.store is None:
            if cut and self.chance.random() < 0.1:
                self.power.cut_at = self.chance.randint(1, 12)
            self._open()
            self.power.cut_at = None
        often = ("_upsert", "_upsert", "_upsert", "_delete", "_flush", "_merge", "_reopen", "_index")
        for name in self.chance.choices(often, k=self.chance.randint(0, 14)):
            self._do(name)
        if not cut:
            return
        while not self.power.out:
            last = self.chance.choice(sorted(CALLS))
            for _ in range(self.chance.randint(0, 2)):
                self._do("_upsert")
            self.power.cut_at = self.power.calls + self.chance.randint(1, CALLS[last])
            self._do(last)
            self.power.cut_at = None

    def _do(self, name: str) -> None:
        self.doing = name
        getattr(self, name)()

    def _open(self) -> None:
        started = time.perf_counter()
        self.store = opened(self.disk, self.disk.root / "store", self.layout, self.synced, 1500)
        self.opening_s = max(self.opening_s, time.perf_counter() - started)

    def _reopen(self) -> None:
        self.store.close(wait=self.chance.random() < 0.5)
        self.states = self.states[-1:]
        self._open()

    def _upsert(self) -> None:
        documents = [document(self.chance, self.chance.randrange(KEYS)) for _ in range(self.chance.randint(1, 6))]
        after = {**self.states[-1], **{found["id"]: found for found in documents}}
        self._change(after, lambda: self.store.upsert(documents))

    def _delete(self) -> None:
        keys = [self.chance.randrange(KEYS) for _ in range(self.chance.randint(1, 4))]
        after = {key: found for key, found in self.states[-1].items() if key not in keys}
        self._change(after, lambda: self.store.delete(keys))

    def _change(self, after, act) -> None:
        self.under_way = deepcopy(after)
        act()
        self.under_way = None
        self.states = [*([] if self.synced else self.states), deepcopy(after)]

    def _flush(self) -> None:
        self.store.flush()
        self.states = self.states[-1:]

    def _merge(self) -> None:
        self._upsert()
        self._flush()
        self.store.wait_for_merges()

    def _index(self) -> None:
        path = self.chance.choice(("number", "tags[*].name"))
        new = path not in self.store.stats().indexes
        self.store.index(path)
        if new:
            # Only a new index flushes.
            self.states = self.states[-1:]

    # --- after the cut -----------------------------------------------------------------------------------

    def _power_on(self) -> None:
        """The machine lost power, or its process alone died."""
        if self.store is not None:
            self.store._tree._merger.stop()
        lost = self.chance.random() < 0.8
        if not lost:
            self.states = self.states[-1:]
        self.power = Power()
        self.disk = self.disk.lost(self.chance, self.power) if lost else self.disk.restarted(self.power)

    def _check_promises(self) -> None:
        assert self.store is not None
        assert self.opening_s < OPENING_S, f"it took {self.opening_s} s to open"
        found = {some["id"]: some for some in self.store.scan()}
        allowed = [*self.states, *([] if self.under_way is None else [self.under_way])]
        matching = [state for state in allowed if same_documents(found, state)]
        assert matching, f"{len(found)} documents after {self.doing}, which are none of {len(allowed)} allowed states"
        self.states, self.under_way = [matching[-1]], None
        wrong = differs(self.store, matching[-1])
        assert wrong is None, f"after {self.doing}: {wrong}"
        self.store.wait_for_merges()
        names = list(self.disk.files(self.disk.root / "store"))
        tree = self.store._tree
        assert NAME in names
        assert leftovers(names, tree.manifest, set(tree._logs.numbers)) == [], "files that nothing names are left"


def live(seed: int, layout: LayoutName, disk: type[Disk] = Disk) -> Life:
    """One life; `AssertionError` says which promise was broken."""
    life = Life(seed, layout, disk)
    try:
        life.run()
    finally:
        if life.store is not None:
            life.store._tree._merger.stop()
    return life


def main(lives: int) -> None:
    """Run lives and tell in which operations the power went out."""
    during: Counter[str] = Counter()
    slowest_s = 0.0
    for seed in range(lives):
        try:
            life = live(seed, LAYOUTS[seed % len(LAYOUTS)])
            during[life.doing] += 1
            slowest_s = max(slowest_s, life.opening_s)
        except AssertionError as error:
            print(f"life {seed}: {error}")
            during["broken"] += 1
    print(lives, "lives;", dict(during), f"slowest opening {slowest_s:.3f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""The store compared with a dict through any interleaving of writes, flushes, merges, reopenings and earlier scans.

python -m libraries.document_store.tests.store.machine 200      runs 200 interleavings of each layout
"""

from __future__ import annotations

import random
import sys
from copy import deepcopy

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.tests.random_documents import values
from libraries.document_store.tests.store.model import Disk, differs, document, opened, same_documents

KEYS = 30
SEEDS = st.integers(0, 2**32)


class Machine(RuleBasedStateMachine):
    """One store on a disk in memory; `text` makes its keys texts."""

    layout = "open"
    memtable_bytes = 3000

    @initialize(text=st.booleans())
    def open(self, text):
        self.disk, self.model, self.scans, self.text = Disk(), {}, [], text
        self.store = self._opened()

    def _opened(self):
        return opened(self.disk, self.disk.root / "store", self.layout, memtable_bytes=self.memtable_bytes)

    def key(self, number):
        return f"é{number}\0" * (1 + number % 3) if self.text else (number - 5) * 2**58 % 2**63

    @rule(seed=SEEDS, count=st.integers(1, 20), as_json=st.booleans())
    def upsert_some(self, seed, count, as_json):
        chance = random.Random(seed)
        self._upsert([document(chance, self.key(chance.randrange(KEYS))) for _ in range(count)])

    @rule(number=st.integers(0, KEYS - 1), value=values)
    def upsert_one(self, number, value):
        self._upsert([{"id": self.key(number), "a": value}])

    def _upsert(self, documents):
        self.store.upsert(documents)
        self.model.update({found["id"]: deepcopy(found) for found in documents})

    @rule(numbers=st.lists(st.integers(0, KEYS - 1), max_size=6))
    def delete(self, numbers):
        self.store.delete(map(self.key, numbers))
        for number in numbers:
            self.model.pop(self.key(number), None)

    @rule()
    def flush(self):
        self.store.flush()

    @rule()
    def merge(self):
        self.store.flush()
        self.store.wait_for_merges()

    @rule(wait=st.booleans())
    def reopen(self, wait):
        self.store.close(wait)
        self.store = self._opened()

    @rule()
    def die_and_open(self):
        """End the process without closing: what was not flushed is in the log."""
        self.store._tree._merger.stop()
        self.disk = self.disk.restarted()
        self.store = self._opened()

    @rule(path=st.sampled_from(["number", "tags[*].name", "a"]))
    def index(self, path):
        self.store.index(path)

    @precondition(lambda self: len(self.scans) < 3)
    @rule()
    def begin_scan(self):
        scan = self.store.scan()
        first = next(scan, None)
        self.scans.append((scan, first, deepcopy(self.model)))

    @precondition(lambda self: self.scans)
    @rule()
    def end_scan(self):
        """Check that it sees the store as of its start."""
        scan, first, model = self.scans.pop(0)
        found = [*([] if first is None else [first]), *scan]
        assert same_documents({some["id"]: some for some in found}, model)
        assert len(found) == len(model)

    @invariant()
    def equal(self):
        if hasattr(self, "store"):
            assert differs(self.store, self.model) is None

    def teardown(self):
        if hasattr(self, "store"):
            while self.scans:
                self.end_scan()
            self.store.close()
            names = set(self.disk.files(self.disk.root / "store"))
            components = len(self.store._tree.manifest.components)
            assert sum(name.startswith("component-") for name in names) == components, (
                "files remain after their readers"
            )


def run(layout_name: str, examples: int) -> None:
    kind = type("Machine", (Machine,), {"layout": layout_name})
    found = settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(kind, settings=found)


def is_found_out() -> bool:
    """Return whether the machine finds an error. It need not find the smallest example, which would take long."""
    once = settings(
        max_examples=200, stateful_step_count=25, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    try:
        run_state_machine_as_test(Machine, settings=once)
    except Exception:
        return True
    return False


if __name__ == "__main__":
    for name in LAYOUTS:
        run(name, int(sys.argv[1]))
        print(name, "is equal to a dict")

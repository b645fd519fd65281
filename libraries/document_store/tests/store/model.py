"""The store and a dict in memory side by side: both must return the same."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libraries.document_queries import Aggregate, Compare, Constant, Count, Filter, GroupBy, Named, Plan, Unnest, field
from libraries.document_queries.paths import parse
from libraries.document_queries.reference import run_over_documents
from libraries.document_store.indexes.path_values import values_at
from libraries.document_store.layouts import ComponentOptions, LayoutName
from libraries.document_store.queries.executor import execute
from libraries.document_store.store import DocumentStore
from libraries.document_store.tree.tree import Settings, Tree
from libraries.document_store.values import same
from libraries.durable.calls import FileCalls
from libraries.durable.tests.simulated_disk import SimulatedDisk

Model = dict[Any, dict[str, Any]]

PLANS = (
    Plan((Filter(Compare(field("number"), ">=", Constant(7))), Count())),
    Plan((GroupBy((Named("a", field("a.c")),), (Aggregate("n", "count"), Aggregate("m", "max", field("number")))),)),
    Plan((Unnest(("tags",), "t"), GroupBy((Named("t", field("name", "t")),), (Aggregate("n", "count"),)))),
)
"""Queries for both, by the store's default way: over columns or rows, with and without indexes."""
LEAF_RECORDS = 7
"""Few, so that small stores have several leaves."""

VALUES = (
    None,
    True,
    1,
    1.0,
    -0.0,
    float("nan"),
    2**62,
    "a",
    "a\0b",
    "é" * 90,
    b"\0\xff",
    [1, "x", None],
    {"c": {}},
    [],
)


def opened(
    calls: FileCalls, folder: Path, layout: LayoutName | None, synced: bool = True, memtable_bytes: int = 4000
) -> DocumentStore:
    """Open a store with small leaves, a small memtable and a small cache."""
    settings = Settings(
        key="id", layout=layout, compression=None, synced=synced, memtable_bytes=memtable_bytes, cache_bytes=20_000
    )
    tree = Tree(folder, settings, calls)
    tree.workshop.options = ComponentOptions(compression=tree.manifest.compression, leaf_records=LEAF_RECORDS)
    return DocumentStore(tree)


def document(chance: random.Random, key: Any) -> dict[str, Any]:
    """Make some fields of changing types; most documents have `number`."""
    found: dict[str, Any] = {"id": key}
    for name in chance.sample(("a", "b", "x.y", "long name"), chance.randint(0, 3)):
        found[name] = chance.choice(VALUES)
    if chance.random() < 0.8:
        found["number"] = chance.choice((chance.randrange(20), float(chance.randrange(20)), "20", None))
    if chance.random() < 0.5:
        found["tags"] = [{"name": chance.choice("abc")} for _ in range(chance.randint(0, 3))]
    return found


def differs(store: DocumentStore, model: Model) -> str | None:
    """Return a difference between the store and the dict, or None."""
    scanned = {found["id"]: found for found in store.scan()}
    if not same_documents(scanned, model):
        wrong = sorted(key for key in scanned.keys() | model.keys() if not same(scanned.get(key), model.get(key)))
        return f"scan: {[(key, scanned.get(key), model.get(key)) for key in wrong[:3]]}"
    if store.count() != len(model):
        return f"count is {store.count()}, not {len(model)}"
    keys = [*sorted(model)[::3], *(["none"] if model and isinstance(next(iter(model)), str) else [-7])]
    if not all(map(same, store.get_many(keys), [model.get(key) for key in keys])):
        return f"get of {keys}"
    with store.snapshot() as snapshot:
        for plan in PLANS:
            found, right = execute(snapshot, plan), run_over_documents(model.values(), plan)
            if sorted(map(repr, found)) != sorted(map(repr, right)):
                return f"{plan}: {found}, not {right}"
    return index_differs(store, model)


def same_documents(found: Model, model: Model) -> bool:
    """Compare by type and bits."""
    return found.keys() == model.keys() and all(same(found[key], model[key]) for key in model)


def index_differs(store: DocumentStore, model: Model) -> str | None:
    """Return a difference between an index and the dict, or None."""
    with store.snapshot() as snapshot:
        for path in store.stats().indexes:
            for low, high in ((3, 9.5), (None, 4), ("a", "b"), ("20", "20"), (None, "b"), (7, 7)):
                keys = snapshot.index_keys(path, low, high)
                assert keys is not None
                steps = parse(path)
                wanted = sorted(
                    key for key in model if any(_within(v, low, high) for v in values_at(model[key], steps))
                )
                if keys.tolist() != wanted:
                    return f"index {path} from {low!r} to {high!r}: {keys.tolist()}, not {wanted}"
    return None


def _within(value: Any, low: Any, high: Any) -> bool:
    kinds = (int, float) if isinstance(low if low is not None else high, int | float) else (str,)
    if type(value) not in kinds:
        return False
    return (low is None or low <= value) and (high is None or value <= high)


@dataclass
class Trap:
    """An event before a modifying call, `later` such calls from now, possibly only calls of one name."""

    act: Callable[[], None]
    later: int
    name: str | None = None


class Disk(SimulatedDisk):
    """The simulated disk for a store with a merge thread. A failing disk neither reads nor removes.

    `traps` are named; healing removes the one named 'fail'.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.traps: dict[str, Trap] = {}
        self._one_call = threading.RLock()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in _CALLS:
            return found

        def one_at_a_time(*arguments: Any) -> Any:
            with self._one_call:
                if name in _CHANGES:
                    self._spring(name)
                failing = self._failing
                if name in _READS and failing and failing[1] == errno.EIO and self.power.calls >= failing[0]:
                    self._fail_now()
                return found(*arguments)

        return one_at_a_time

    def _spring(self, name: str) -> None:
        for key, trap in list(self.traps.items()):
            if trap.name in (None, name):
                trap.later -= 1
                if trap.later < 0:
                    del self.traps[key]
                    trap.act()

    def heal(self) -> None:
        """Heal as `SimulatedDisk` does, and cancel pending failures."""
        super().heal()
        self.traps.pop("fail", None)


_CHANGES = frozenset(("mkdir", "create", "write", "fsync", "rename", "unlink", "fsync_folder"))
_READS = frozenset(("listdir", "status", "open", "read", "unlink"))
_CALLS = frozenset(
    (
        *("lock", "mkdir", "listdir", "status", "create", "open", "read", "write", "fsync", "close"),
        *("rename", "unlink", "fsync_folder", "copied", "lost"),
    )
)

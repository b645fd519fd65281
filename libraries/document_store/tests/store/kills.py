"""A real process that stores and is killed: `kill -9` at any moment, on real files.

python -m libraries.document_store.tests.store.kills 300
"""

from __future__ import annotations

import random
import sys
import tempfile
from copy import deepcopy
from multiprocessing.connection import Connection
from pathlib import Path

from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.tests.store.model import Model, differs, document, opened, same_documents
from libraries.durable.calls import OSCalls
from libraries.durable.tests import kills as killing

KEYS = 60


def work(folder: str, layout: str, seed: int, model: Model, told: Connection) -> None:
    """Write, flush and merge until killed; before and after each operation, report what the store should hold."""
    chance = random.Random(seed)
    store = opened(OSCalls(), Path(folder), layout, synced=chance.random() < 0.5, memtable_bytes=3000)
    told.send(("open", None))
    while True:
        model = dict(model)
        if chance.random() < 0.2:
            keys = [chance.randrange(KEYS) for _ in range(3)]
            for key in keys:
                model.pop(key, None)
            told.send(("begin", model))
            store.delete(keys)
        else:
            documents = [document(chance, chance.randrange(KEYS)) for _ in range(chance.randint(1, 10))]
            model.update({found["id"]: found for found in documents})
            told.send(("begin", model))
            store.upsert(documents)
        told.send(("end", model))
        if chance.random() < 0.1:
            store.index(chance.choice(("number", "tags[*].name")))
        if chance.random() < 0.1:
            store.flush()


def kill(folder: Path, layout: str, seed: int, allowed: list[Model]) -> int:
    """Start a writer and kill it soon after some operations; return the number of those that it acknowledged."""
    chance = random.Random(seed)
    waited_for, pause_s = chance.randint(0, 12), chance.uniform(0.0, 0.02)
    arguments = (str(folder), layout, seed, allowed[-1])
    return killing.kill(work, arguments, lambda message: take_in(message, allowed), waited_for, pause_s)


def take_in(message: tuple, allowed: list[Model]) -> bool:
    """Update the allowed contents of the store after a message; return whether it acknowledges an operation."""
    what, model = message
    if what == "begin":
        allowed.append(model)
    elif what == "end":
        allowed[:] = [model]
    return what == "end"


def check_after(folder: Path, layout: str, allowed: list[Model]) -> None:
    """Check that the store opens and holds what was acknowledged; `allowed` becomes that."""
    store = opened(OSCalls(), folder, layout, memtable_bytes=3000)
    found = {some["id"]: some for some in store.scan()}
    matching = [model for model in allowed if same_documents(found, model)]
    assert matching, f"{len(found)} documents match none of {len(allowed)} allowed states"
    allowed[:] = [deepcopy(matching[-1])]
    wrong = differs(store, allowed[-1])
    assert wrong is None, wrong
    # End as if killed, because closing would flush.
    store._tree._merger.stop()
    store._tree.calls.close(store._tree._lock)


def main(kills: int) -> int:
    """Kill that many writers of one store per layout; return how many operations were acknowledged."""
    states: dict[str, list[Model]] = {layout: [{}] for layout in LAYOUTS}
    acknowledged = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(kills):
            layout = LAYOUTS[seed % len(LAYOUTS)]
            acknowledged += kill(Path(folder) / layout, layout, seed, states[layout])
            check_after(Path(folder) / layout, layout, states[layout])
    return acknowledged


if __name__ == "__main__":
    print(main(int(sys.argv[1])), "operations acknowledged")

"""What is left on a disk that is really full."""

from libraries.durable.tests.full_disk import run_on_small_disk

FILL = """
import random, sys
from contextlib import suppress
from pathlib import Path
from libraries.document_store.errors import FullError
from libraries.document_store.store import DocumentStore

folder = Path(sys.argv[1]) / "store"
store = DocumentStore.open(folder, memtable_bytes=100_000)
store.index("number")
stored, told = {}, 0
while told < 3:
    documents = [{"id": len(stored) + n, "number": n, "pad": random.randbytes(600)} for n in range(20)]
    try:
        store.upsert(documents)
    except FullError as error:
        assert "the disk is full" in str(error) and sys.argv[1] not in str(error), error
        told += 1
        continue
    stored.update({found["id"]: found for found in documents})
assert len(stored) > 500, len(stored)
assert {found["id"]: found for found in store.scan()} == stored
for _ in range(2):
    with suppress(FullError):
        store.close()
    store = DocumentStore.open(folder)
    assert {found["id"]: found for found in store.scan()} == stored
"""


def test_a_store_on_a_full_disk_keeps_what_it_acknowledged(tmp_path):
    run_on_small_disk(FILL, tmp_path, "2m")

"""What is left on a disk that is really full."""

from libraries.durable.tests.full_disk import run_on_small_disk

FILL = """
import os, sys
from pathlib import Path
from libraries.near_storage.errors import FullError
from libraries.near_storage.storing.partitions import PartitionStore
from libraries.near_storage.tests.storing.files import describe_here, digest_of, in_pieces, parquet

folder = Path(sys.argv[1]) / "node"
store = PartitionStore(folder, describe=describe_here)
stored = []
while True:
    data = parquet(len(stored), 2000)
    try:
        store.put(in_pieces(data), digest_of(data), 1 << 20)
    except FullError as error:
        assert "the disk is full" in str(error) and sys.argv[1] not in str(error), error
        break
    stored.append(digest_of(data))
assert len(stored) > 2, stored
assert store.digests() == set(stored)
assert sorted(os.listdir(folder)) == sorted(["lock", *(f"{d}.{e}" for d in stored for e in ("parquet", "info"))])
for digest in stored:
    store.verify(digest)
store.remove(stored[0], 1)
store.put(in_pieces(data), digest_of(data), 1 << 20)
store.verify(digest_of(data))
store.close()
assert PartitionStore(folder, describe=describe_here).digests() == {*stored[1:], digest_of(data)}
"""


def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path):
    run_on_small_disk(FILL, tmp_path, "256k")

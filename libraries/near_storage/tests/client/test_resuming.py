"""Streams that break anywhere resume after the last good row: inside a partition or a row group."""

import itertools
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.client.streams import _in_order
from libraries.near_storage.errors import NearStorageError
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.tests.serving.cluster import Batches, Cluster, Fault, cluster

ROWS, FILES, GROUP_ROWS = 300_000, 3, 80_000
"""Row groups so large that each is decoded separately."""
FEW = 340_000
"""Rows of a table with two such files, each of which comes in five batches."""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    number = np.arange(FILES * ROWS, dtype=np.int32)
    return pa.table({"number": number, "part": (number % 7).astype(np.int8)})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, table: pa.Table):
    folder: Path = tmp_path_factory.mktemp("resuming")
    paths = [folder / f"{number}.parquet" for number in range(FILES)]
    for number, path in enumerate(paths):
        pq.write_table(table.slice(number * ROWS, ROWS), path, row_group_size=GROUP_ROWS, compression="none")
    few = [folder / f"few {number}.parquet" for number in range(2)]
    for number, path in enumerate(few):
        rows = table.slice(number * FEW // 2, FEW // 2)
        pq.write_table(rows, path, row_group_size=GROUP_ROWS, compression="none")
    with cluster(folder, limits=Limits(batch_bytes=120_000)) as made:
        made.client().put("t", paths)
        made.client().put("few", few)
        yield made


def breaking(rng: random.Random) -> Fault:
    """End each stream after at least one row group and a few more batches."""

    def fault(batches: Batches) -> Batches:
        yield from itertools.islice(batches, rng.randrange(3, 12))

    return fault


@pytest.mark.parametrize(
    ("way", "sql", "seed"),
    [(way, sql, seed) for seed, way in enumerate(("v1", "v2")) for sql in ("all", "some", "scattered")],
)
def test_streams_that_break_anywhere(served: Cluster, table: pa.Table, way: str, sql: str, seed: int):
    where, rows = {
        "all": ("", table),
        "some": (" WHERE number BETWEEN 70000 AND 390000", table.slice(70_000, 320_001)),
        "scattered": (" WHERE part = 3", table.filter(pc.equal(table["part"], 3))),
    }[sql]
    rng = random.Random(seed)
    for node in served.nodes:
        node.fault = breaking(rng)
    answer = served.client().answer(f"SELECT * FROM t{where}", way)
    assert answer.table.equals(rows)
    if sql == "all":
        assert answer.received.resumed >= 4


def note_bits(number: int, index: int, bit: int) -> Fault:
    """Flip one bit of the metadata of one batch."""

    def fault(batches: Batches) -> Batches:
        for at, (batch, note) in enumerate(batches):
            changed = bytearray(note)
            if at == number and index < len(changed):
                changed[index] ^= 1 << bit
            yield batch, bytes(changed)

    return fault


def _changed_notes() -> list[tuple[str, int, int, int]]:
    """Return ways, numbers of a note, bytes and bits in it: three of each byte of V1's position, else 0.5 %."""
    rng = random.Random(5)
    places = [("v1", number, index, bit) for number in (1, 2) for index in range(9, 18) for bit in (0, 3, 7)]
    others = [
        (way, number, index, bit)
        for way in ("v1", "v2", "all")
        for number in range(5)
        for index in range(45)
        for bit in range(8)
        if rng.random() < 0.005
    ]
    return places + others


def test_a_bit_that_flips_beside_a_batch(served: Cluster, table: pa.Table):
    """The other node works: the answer is complete or an error, and never lacks the rows of a position."""
    client, expected = served.client(), table.select(["part"]).slice(0, FEW)
    for way, number, index, bit in _changed_notes():
        served.nodes[1].fault = note_bits(number, index, bit)
        try:
            found = client.query("SELECT part FROM few", way)
        except NearStorageError:
            continue
        assert found.equals(expected), (way, number, index, bit)


def test_streams_are_put_in_order_without_waiting_for_those_whose_turn_it_is_not():
    def stream(*partitions: int):
        yield from ((partition, partition) for partition in partitions)

    def never():
        raise AssertionError("requested before its turn")
        yield

    taken = list(_in_order([(0, stream(0, 0, 2, 5)), (1, stream(3, 3)), (1, stream(1, 1, 4)), (9, stream())]))
    assert [each for each, _ in taken] == [0, 0, 1, 1, 2, 3, 3, 4, 5]
    assert list(itertools.islice(_in_order([(0, stream(0, 1)), (2, never())]), 2)) == [(0, 0), (1, 1)]

"""Small Parquet files and their descriptions without a child process, because the tests need thousands."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from libraries.durable.tests.simulated_disk import SimulatedDisk
from libraries.near_storage.parquet.footer import read_footer
from libraries.near_storage.storing.partition_metadata import PartitionInfo, describe
from libraries.near_storage.storing.partitions import PartitionStore

LIMIT_BYTES = 1 << 20


@lru_cache(maxsize=512)
def parquet(number: int, rows: int = 40, **columns: pa.DataType) -> bytes:
    """Return a file of two row groups that its number distinguishes from others."""
    kinds = columns or {"key": pa.int64(), "name": pa.string()}
    table = pa.table(
        {
            name: pa.array([number * 1000 + row if row % 7 else None for row in range(rows)]).cast(kind)
            for name, kind in kinds.items()
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=max(1, rows // 2))
    return sink.getvalue().to_pybytes()


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def in_pieces(data: bytes, piece_bytes: int = 700) -> list[bytes]:
    return [data[start : start + piece_bytes] for start in range(0, len(data), piece_bytes)]


def describe_open(descriptor: int, digest: str) -> PartitionInfo:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        footer = read_footer(file)
    return describe(descriptor, footer, digest)


def describe_here(path: Path, digest: str) -> PartitionInfo:
    """Describe a file of the operating system, in this process."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return describe_open(descriptor, digest)
    finally:
        os.close(descriptor)


@lru_cache(maxsize=512)
def description(data: bytes) -> PartitionInfo:
    descriptor = os.memfd_create("description")
    try:
        os.write(descriptor, data)
        return describe_open(descriptor, digest_of(data))
    finally:
        os.close(descriptor)


def simulated_store(disk: SimulatedDisk) -> PartitionStore:
    """Return a node's store on a simulated disk."""
    return PartitionStore(disk.root / "node", disk, lambda path, digest: description(bytes(disk.file(path).content)))

"""A catalog and storage nodes in threads of the test, on loopback, with free ports."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.client.connection import Client, connect
from libraries.near_storage.errors import UnavailableError
from libraries.near_storage.serving import security
from libraries.near_storage.serving.catalog_server import CatalogServer
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.serving.node import StorageNode
from libraries.near_storage.serving.node_streams import Stream
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.partitions import PartitionStore
from libraries.near_storage.tests.storing.files import describe_here

Batches = Iterator[tuple[pa.RecordBatch, bytes]]
Fault = Callable[[Batches], Batches]
"""Converts the stream of a working node into that of a broken one."""


class BrokenNode(StorageNode):
    """A node that breaks its streams on request."""

    def __init__(self, *arguments: object, **options: object) -> None:
        self.fault: Fault | None = None
        self.streams = 0
        self.closed_early = threading.Event()
        super().__init__(*arguments, **options)  # type: ignore[arg-type]

    def answer_get(self, context: flight.ServerCallContext, ticket: bytes) -> Stream:
        self.streams += 1
        schema, batches = super().answer_get(context, ticket)
        return schema, self._watched(batches if self.fault is None else self.fault(batches))

    def _watched(self, batches: Batches) -> Batches:
        try:
            yield from batches
        except (GeneratorExit, UnavailableError):
            # The second case is what a node itself detects between two batches.
            self.closed_early.set()
            raise


@dataclass
class Cluster:
    folder: Path
    secret: bytes
    token: str
    catalog: CatalogServer
    nodes: list[BrokenNode] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)

    @property
    def uri(self) -> str:
        return self.catalog.location

    def client(self, idle_s: float = 5.0, busy_s: float = 20.0, token: str | None = None) -> Client:
        client = connect(self.uri, token or self.token, idle_s=idle_s, busy_s=busy_s)
        self.clients.append(client)
        return client

    def stored_files(self, node: int) -> list[Path]:
        return sorted((self.folder / f"node{node}").glob("*.parquet"))


def has_ipv6() -> bool:
    """Return whether this machine has a loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as listening:
            listening.bind(("::1", 0))
    except OSError:
        return False
    return True


@contextmanager
def cluster(
    folder: Path,
    nodes: int = 2,
    replicas: int = 2,
    limits: Limits | None = None,
    orphan_age_s: float = 0.0,
    grace_s: float = 60.0,
    host: str = "127.0.0.1",
) -> Iterator[Cluster]:
    """Start all servers and register the nodes; close everything at the end."""
    secret, token = security.new_secret(), security.new_token()
    catalog = CatalogServer(
        Catalog(folder / "catalog", replicas=replicas, grace_s=grace_s),
        secret,
        [security.hash_token(token)],
        host,
        limits=limits,
        orphan_age_s=orphan_age_s,
    )
    made = Cluster(folder, secret, token, catalog)
    try:
        for number in range(nodes):
            store = PartitionStore(folder / f"node{number}", describe=describe_here)
            made.nodes.append(BrokenNode(store, f"node{number}", secret, host, limits=limits))
            made.nodes[-1].register(catalog.location)
        yield made
    finally:
        for client in made.clients:
            client.close()
        for server in (*made.nodes, catalog):
            server.close(within_s=2.0)


# --- faults ----------------------------------------------------------------------------------------------


def ending_early(after: int) -> Fault:
    """End the stream after some batches without an error."""
    return lambda batches: itertools.islice(batches, after)


def failing(after: int, error: Exception) -> Fault:
    def fault(batches: Batches) -> Batches:
        yield from itertools.islice(batches, after)
        raise type(error)(*error.args)

    return fault


def hanging(after: int, until: threading.Event) -> Fault:
    def fault(batches: Batches) -> Batches:
        yield from itertools.islice(batches, after)
        until.wait(60)

    return fault


def slow(pause_s: float) -> Fault:
    def fault(batches: Batches) -> Batches:
        for batch in batches:
            threading.Event().wait(pause_s)
            yield batch

    return fault


def losing(number: int) -> Fault:
    return lambda batches: (each for index, each in enumerate(batches) if index != number)


def doubling(number: int) -> Fault:
    def fault(batches: Batches) -> Batches:
        for index, each in enumerate(batches):
            yield each
            if index == number:
                yield each

    return fault


def flipping(number: int) -> Fault:
    """Flip one bit of the last column of one batch."""

    def fault(batches: Batches) -> Batches:
        for index, (batch, note) in enumerate(batches):
            yield (flipped(batch) if index == number and batch.num_rows else batch), note

    return fault


def nulling(number: int) -> Fault:
    """Replace the values of the first column of one batch by nulls."""

    def fault(batches: Batches) -> Batches:
        for index, (batch, note) in enumerate(batches):
            if index == number and batch.num_rows:
                nulls = pa.nulls(batch.num_rows, batch.schema.types[0])
                batch = pa.RecordBatch.from_arrays([nulls, *batch.columns[1:]], schema=batch.schema)
            yield batch, note

    return fault


def flipped(batch: pa.RecordBatch) -> pa.RecordBatch:
    # As sent: the memory of a slice is shared.
    batch = pa.ipc.read_record_batch(batch.serialize(), batch.schema)
    column = batch.column(batch.num_columns - 1)
    *others, data = column.buffers()
    changed = bytearray(data.to_pybytes())
    changed[len(changed) // 2] ^= 4
    broken = pa.Array.from_buffers(column.type, len(column), [*others, pa.py_buffer(bytes(changed))])
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], broken], schema=batch.schema)

"""Putting a table: each partition's file to its nodes, then one switch of the version.

The catalog says where a partition goes, nodes sign that they hold it, and the catalog counts their signatures. It knows
no query.
"""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.client.patience import Patience, coming_again
from libraries.near_storage.client.sources import TableSource, all_bytes, partitions
from libraries.near_storage.errors import DamagedError, NearStorageError, RequestError, UnavailableError
from libraries.near_storage.serving.calling import Caller
from libraries.near_storage.serving.guard import from_flight
from libraries.near_storage.serving.node import UPLOAD
from libraries.near_storage.serving.protocol import (
    RECEIPT_BYTES,
    Begin,
    Begun,
    Committed,
    OfUpload,
    Place,
    Placement,
    Placements,
    decode,
)
from libraries.near_storage.storing.describing import blake2b

PUT_S = 3600.0
"""How long a node may take to store one partition."""
PIECE_BYTES = 1 << 20

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes of the table that all their nodes hold, and with those of the whole table if it is known."""

ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True)
class Target:
    """The catalog that is put to."""

    caller: Caller
    uri: str
    patience: Patience
    closed: threading.Event

    def act(self, name: str, message: msgspec.Struct | bytes) -> bytes:
        """An action of the catalog, tried again while it is busy."""
        return coming_again(lambda: self.caller.act(self.uri, name, message), self.patience, self.closed)

    def ask(self, name: str, message: msgspec.Struct | bytes, kind: type[ReplyT]) -> ReplyT:
        """The same, with a message for an answer."""
        return decode(kind, self.act(name, message), RECEIPT_BYTES)


class _NodesLost(Exception):
    """Nodes did not take a partition; others may."""

    def __init__(self, errors: dict[str, NearStorageError]) -> None:
        super().__init__(*errors)
        self.errors = errors


def put(
    target: Target,
    table: str,
    source: TableSource,
    rows_per_partition: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Store a new version of a table; its number. See `Client.put`.

    If a node is lost meanwhile, all begins anew without it, as long as the catalog finds enough others.
    """
    lost: dict[str, NearStorageError] = {}
    while True:
        try:
            upload = target.ask("begin", Begin(table, tuple(lost)), Begun).upload
        except RequestError as error:
            if not lost:
                raise
            texts = "; ".join(f"{node}: {reason}" for node, reason in lost.items())
            raise UnavailableError(f"nodes were lost while the table was put ({texts}). {error}") from None
        try:
            _send_all(target, upload, source, rows_per_partition, progress)
            return target.ask("commit", OfUpload(upload), Committed).version
        except _NodesLost as error:
            lost |= error.errors
            _abort(target, upload)
        except BaseException:
            _abort(target, upload)
            raise


def _abort(target: Target, upload: str) -> None:
    try:
        target.act("abort", OfUpload(upload))
    except NearStorageError:
        # The catalog gives up by itself what it hears nothing of; the error that led here is the one to tell.
        return


def _send_all(
    target: Target, upload: str, source: TableSource, rows_per_partition: int | None, progress: Progress | None
) -> None:
    total, done = all_bytes(source, rows_per_partition), 0
    given_up = threading.Event()
    try:
        for position, path in enumerate(partitions(source, rows_per_partition)):
            digest, size = _digest(path)
            placed = target.ask("place", Place(upload, position, digest, size), Placements)
            sends = [_apart(partial(_send, target, node, placed.permit, path, given_up)) for node in placed.nodes]
            _raise_first(sends)
            for sent in sends:
                target.act("acknowledge", sent.result())
            done += size
            if progress is not None:
                progress(done, total)
    finally:
        # After Ctrl-C some are still on their way, perhaps to a node that hangs.
        given_up.set()


def _apart(work: Callable[[], bytes]) -> Future[bytes]:
    """What `work` returns, made in a thread that nobody has to wait for: Flight cannot cancel what it sends."""
    result: Future[bytes] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            # Whoever asks for the result is told, in his own thread.
            result.set_exception(error)

    threading.Thread(target=run, name="near-storage-put", daemon=True).start()
    return result


def _raise_first(sends: Sequence[Future[bytes]]) -> None:
    """What a node said of a partition itself; else all nodes that are lost."""
    errors = [error for error in (sent.exception() for sent in sends) if error is not None]
    for error in errors:
        if not isinstance(error, _NodesLost):
            raise error
    if errors:
        raise _NodesLost(dict(ChainMap(*(error.errors for error in errors if isinstance(error, _NodesLost)))))


def _digest(path: Path) -> tuple[str, int]:
    hashing, size = blake2b(), 0
    for piece in _pieces(path):
        hashing.update(piece)
        size += len(piece)
    return hashing.hexdigest(), size


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _send(target: Target, node: Placement, permit: bytes, path: Path, given_up: threading.Event) -> bytes:
    """Put a file on one node; the node's receipt. _NodesLost if another node should be tried."""
    try:
        return coming_again(lambda: _sent(target, node, permit, path, given_up), target.patience, given_up)
    except (UnavailableError, DamagedError) as error:
        raise _NodesLost({node.node: error}) from None


def _sent(target: Target, node: Placement, permit: bytes, path: Path, given_up: threading.Event) -> bytes:
    client = target.caller.client(node.location)
    descriptor = flight.FlightDescriptor.for_command(permit)
    try:
        writer, replies = client.do_put(descriptor, UPLOAD, target.caller.options(PUT_S, with_token=False))
        try:
            for piece in _pieces(path):
                if given_up.is_set():
                    raise UnavailableError("the upload was given up")
                writer.write_batch(_batch(piece))
            writer.done_writing()
            receipt = replies.read()
        finally:
            writer.close()
    except Exception as error:
        raise from_flight(error) from None
    if receipt is None:
        raise UnavailableError(f"node {node.node}: ended without a receipt")
    return bytes(receipt)


def _batch(piece: bytes) -> pa.RecordBatch:
    bounds = pa.py_buffer(np.array([0, len(piece)], np.int64))
    data = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, bounds, pa.py_buffer(piece)])
    return pa.RecordBatch.from_arrays([data], schema=UPLOAD)

"""Upload a table: send each partition's file to its nodes, then make the new version current in one step.

The catalog assigns nodes to each partition. A node that stored a partition signs a receipt, which the catalog checks.
"""

from __future__ import annotations

import math
import threading
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.client.backoff import Patience, coming_again
from libraries.near_storage.client.sources import TableSource, all_bytes, partitions
from libraries.near_storage.errors import (
    DamagedError,
    FooterError,
    FullError,
    NearStorageError,
    RequestError,
    UnavailableError,
)
from libraries.near_storage.serving import clock
from libraries.near_storage.serving.guard import from_call
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
from libraries.near_storage.serving.rpc import Caller
from libraries.near_storage.storing.partition_metadata import digest_of_file

PUT_S = 3600.0
"""Time limit for a node to store one partition."""
PIECE_BYTES = 1 << 20
STORED_BYTES_PER_S = 5e6
"""Minimum rate at which a node syncs a received partition to disk and reads its metadata. A slower node counts as
hung."""
WATCH_S = 0.5
"""Seconds between checks whether nodes make progress."""

Progress: TypeAlias = Callable[[int, int | None], None]
"""A function that is called with the number of bytes that all assigned nodes have received, and with the table's total
size if it is known."""

ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True)
class CatalogTarget:
    """The catalog that receives the upload."""

    caller: Caller
    uri: str
    patience: Patience
    closed: threading.Event

    def act(self, name: str, message: msgspec.Struct | bytes) -> bytes:
        """Run an action of the catalog. Retry while the catalog is busy."""
        return coming_again(lambda: self.caller.act(self.uri, name, message), self.patience, self.closed)

    def ask(self, name: str, message: msgspec.Struct | bytes, kind: type[ReplyT]) -> ReplyT:
        """Run an action of the catalog, like `act`, and decode its reply."""
        return decode(kind, self.act(name, message), RECEIPT_BYTES)


class _NodesLost(Exception):
    """Nodes did not accept a partition. Other nodes may accept it."""

    def __init__(self, errors: dict[str, NearStorageError]) -> None:
        super().__init__(*errors)
        self.errors = errors


def put(
    target: CatalogTarget,
    table: str,
    source: TableSource,
    rows_per_partition: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Store a new version of a table and return its number. See `Client.put`.

    If a node is lost or full, start again without this node, as long as the catalog finds enough other nodes.
    """
    if not isinstance(source, pa.Table | str | Path):
        # The source is iterated once for the total size and once per try.
        source = list(source)
    lost: dict[str, NearStorageError] = {}
    while True:
        try:
            return _put_without(lost, target, table, source, rows_per_partition, progress)
        except _NodesLost as error:
            lost |= error.errors
        except NearStorageError as error:
            if not lost:
                raise
            raise _after_losses(lost, error) from None


def _put_without(
    lost: Collection[str],
    target: CatalogTarget,
    table: str,
    source: TableSource,
    rows_per_partition: int | None,
    progress: Progress | None,
) -> int:
    """Try the upload once, without the nodes that were lost."""
    upload = target.ask("begin", Begin(table, tuple(lost)), Begun).upload
    try:
        _send_all(target, upload, source, rows_per_partition, progress)
        return _commit(target, upload)
    except BaseException:
        _abort(target, upload)
        raise


def _after_losses(lost: Mapping[str, NearStorageError], error: NearStorageError) -> NearStorageError:
    """Return the error to report if the catalog found no other nodes, or if the other nodes failed too."""
    texts = "; ".join(f"{node}: {reason}" for node, reason in lost.items())
    if any(isinstance(reason, FullError) for reason in lost.values()):
        return FullError(f"not all nodes had space for the table ({texts})\n  {error}")
    return UnavailableError(f"nodes were lost during the upload of the table ({texts})\n  {error}")


def _abort(target: CatalogTarget, upload: str) -> None:
    try:
        target.act("abort", OfUpload(upload))
    except NearStorageError:
        # The catalog drops idle uploads by itself, so ignore this error and report the error of the upload.
        return


def _commit(target: CatalogTarget, upload: str) -> int:
    """Make the new version current and return its number. If the reply is lost, ask again once; the catalog then
    returns the same number."""
    try:
        return target.ask("commit", OfUpload(upload), Committed).version
    except UnavailableError:
        pass
    try:
        return target.ask("commit", OfUpload(upload), Committed).version
    except UnavailableError as error:
        raise UnavailableError(
            "all data is stored, but the new version may not be current yet; check it when the catalog answers again "
            f"({error})"
        ) from None


def _send_all(
    target: CatalogTarget, upload: str, source: TableSource, rows_per_partition: int | None, progress: Progress | None
) -> None:
    total, done = all_bytes(source, rows_per_partition), 0
    given_up = threading.Event()
    try:
        for position, path in enumerate(partitions(source, rows_per_partition)):
            size = path.stat().st_size
            told = (lambda taken, done=done: progress(done + taken, total)) if progress is not None else None
            try:
                _send_one(target, upload, position, path, given_up, told)
            except (FooterError, RequestError) as error:
                if total is None:
                    # The file is a temporary file, so its path means nothing to the user.
                    raise
                raise type(error)(f"{path}: {error}") from None
            done += size
            if progress is not None:
                progress(done, total)
    finally:
        # After Ctrl-C, uploads may still be running, perhaps to a node that hangs.
        given_up.set()


def _send_one(
    target: CatalogTarget,
    upload: str,
    position: int,
    path: Path,
    given_up: threading.Event,
    told: Callable[[int], None] | None,
) -> None:
    """Send a partition to all its nodes, and pass their receipts to the catalog. Raises _NodesLost if nodes are lost,
    or a node's error about the file itself."""
    digest, size = digest_of_file(path)
    placed = target.ask("place", Place(upload, position, digest, size), Placements)
    sends = [_Sending(target, node, placed.permit, path, size, given_up) for node in placed.nodes]
    waiting = sends
    while waiting:
        ended, _ = wait([each.receipt for each in waiting], WATCH_S, FIRST_COMPLETED)
        waiting = [each for each in waiting if not each.receipt.done() and not each.hangs]
        if told is not None and not ended:
            told(min(each.taken_bytes for each in sends))
    _raise_first([each.error for each in sends])
    for each in sends:
        target.act("acknowledge", each.receipt.result())


class _Sending:
    """Sends a file to one node in a separate thread. The thread can be abandoned, because Arrow Flight cannot cancel an
    upload."""

    def __init__(
        self, target: CatalogTarget, node: Placement, permit: bytes, path: Path, size: int, given_up: threading.Event
    ) -> None:
        self._target, self._node, self._permit = target, node, permit
        self._path, self._size, self._given_up = path, size, given_up
        self._until_s = math.inf
        self.taken_bytes = 0
        self.receipt: Future[bytes] = Future()
        threading.Thread(target=self._run, name="near-storage-put", daemon=True).start()

    @property
    def hangs(self) -> bool:
        """Whether the node has accepted no bytes, or sent no reply, for longer than the time limit."""
        return clock.elapsed_s() > self._until_s

    @property
    def error(self) -> BaseException | None:
        """The error of the upload, including the error for a node that hangs. None if the node has the file."""
        if self.receipt.done():
            return self.receipt.exception()
        hung = f"node {self._node.node}: did not respond for at least {self._target.patience.idle_s:g} s"
        return _NodesLost({self._node.node: UnavailableError(hung)})

    def _run(self) -> None:
        try:
            self.receipt.set_result(coming_again(self._sent, self._target.patience, self._given_up))
        except (UnavailableError, DamagedError, FullError) as error:
            self.receipt.set_exception(_NodesLost({self._node.node: error}))
        except BaseException as error:
            # The thread that reads the receipt raises this error.
            self.receipt.set_exception(error)

    def _sent(self) -> bytes:
        """Send the file and return the node's receipt."""
        self.taken_bytes = 0
        client = self._target.caller.client(self._node.location)
        descriptor = flight.FlightDescriptor.for_command(self._permit)
        try:
            self._wait_for(0)
            writer, replies = client.do_put(descriptor, UPLOAD, self._target.caller.options(PUT_S, with_token=False))
            try:
                for piece in _pieces(self._path):
                    if self._given_up.is_set():
                        raise UnavailableError("the upload was abandoned")
                    self._wait_for(0)
                    writer.write_batch(_batch(piece))
                    self.taken_bytes += len(piece)
                # A busy node keeps the file and waits for memory.
                self._wait_for(self._size, self._target.patience.busy_s)
                writer.done_writing()
                receipt = replies.read()
            finally:
                writer.close()
        except Exception as error:
            raise from_call(self._node.location, error) from None
        finally:
            self._until_s = math.inf
        if receipt is None:
            raise UnavailableError(f"node {self._node.node}: the upload ended without a receipt")
        return bytes(receipt)

    def _wait_for(self, stored_bytes: int, busy_s: float = 0.0) -> None:
        """Extend the deadline of the next step by the time that a node may take to store this many bytes, and may be
        busy."""
        idle_s = self._target.patience.idle_s
        self._until_s = clock.elapsed_s() + idle_s + busy_s + stored_bytes / STORED_BYTES_PER_S


def _raise_first(found: Sequence[BaseException | None]) -> None:
    """Raise a node's error about the partition itself if there is one. Otherwise raise _NodesLost with all lost nodes,
    if any."""
    errors = [error for error in found if error is not None]
    for error in errors:
        if not isinstance(error, _NodesLost):
            raise error
    if errors:
        raise _NodesLost(dict(ChainMap(*(error.errors for error in errors if isinstance(error, _NodesLost)))))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _batch(piece: bytes) -> pa.RecordBatch:
    bounds = pa.py_buffer(np.array([0, len(piece)], np.int64))
    data = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, bounds, pa.py_buffer(piece)])
    return pa.RecordBatch.from_arrays([data], schema=UPLOAD)

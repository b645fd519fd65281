"""Putting a table: each partition's file to its nodes, then one switch of the version.

The catalog says where a partition goes, nodes sign that they hold it, and the catalog counts their signatures.
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
from libraries.near_storage.storing.partition_metadata import blake2b

PUT_S = 3600.0
"""How long a node may take to store one partition."""
PIECE_BYTES = 1 << 20
STORED_BYTES_PER_S = 5e6
"""A node that has all bytes of a partition syncs and describes them at least at this rate, or it counts as hung."""
WATCH_S = 0.5
"""How often it is looked at whether nodes get on."""

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes of the table that all their nodes took, and with those of the whole table if it is known."""

ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True)
class CatalogTarget:
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
    target: CatalogTarget,
    table: str,
    source: TableSource,
    rows_per_partition: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Store a new version of a table; its number. See `Client.put`.

    If a node is lost or full meanwhile, all begins anew without it, as long as the catalog finds enough others.
    """
    if not isinstance(source, pa.Table | str | Path):
        # It is gone through once for the bytes of all, and again for each try.
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
    """One try, on other nodes than these."""
    upload = target.ask("begin", Begin(table, tuple(lost)), Begun).upload
    try:
        _send_all(target, upload, source, rows_per_partition, progress)
        return _commit(target, upload)
    except BaseException:
        _abort(target, upload)
        raise


def _after_losses(lost: Mapping[str, NearStorageError], error: NearStorageError) -> NearStorageError:
    """What to tell where no others were found in place of nodes that did not take the table, or these failed too."""
    texts = "; ".join(f"{node}: {reason}" for node, reason in lost.items())
    if any(isinstance(reason, FullError) for reason in lost.values()):
        return FullError(f"not all nodes had room for the table ({texts})\n  {error}")
    return UnavailableError(f"nodes were lost while the table was put ({texts})\n  {error}")


def _abort(target: CatalogTarget, upload: str) -> None:
    try:
        target.act("abort", OfUpload(upload))
    except NearStorageError:
        # The catalog gives up by itself what it hears nothing of; the error that led here is the one to tell.
        return


def _commit(target: CatalogTarget, upload: str) -> int:
    """Switch the version in; its number. Where only the answer was lost, the catalog tells it once more."""
    try:
        return target.ask("commit", OfUpload(upload), Committed).version
    except UnavailableError:
        pass
    try:
        return target.ask("commit", OfUpload(upload), Committed).version
    except UnavailableError as error:
        raise UnavailableError(
            f"all is stored, and whether the new version is seen is not known: look when the catalog answers ({error})"
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
                    # It was written here: its path says nothing to whoever puts a table.
                    raise
                raise type(error)(f"{path}: {error}") from None
            done += size
            if progress is not None:
                progress(done, total)
    finally:
        # After Ctrl-C some are still on their way, perhaps to a node that hangs.
        given_up.set()


def _send_one(
    target: CatalogTarget,
    upload: str,
    position: int,
    path: Path,
    given_up: threading.Event,
    told: Callable[[int], None] | None,
) -> None:
    """A partition to all its nodes. _NodesLost if others should be tried, else what a node says of the file itself."""
    digest, size = _digest(path)
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
    """A file on its way to one node, in a thread that nobody has to wait for: Flight cannot cancel what it sends."""

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
        """Whether the node has taken nothing, or said nothing, for longer than patience is."""
        return clock.elapsed_s() > self._until_s

    @property
    def error(self) -> BaseException | None:
        """What became of it, of a node that hangs too; None: it has the file."""
        if self.receipt.done():
            return self.receipt.exception()
        hung = f"node {self._node.node}: took nothing for {self._target.patience.idle_s:g} s and more"
        return _NodesLost({self._node.node: UnavailableError(hung)})

    def _run(self) -> None:
        try:
            self.receipt.set_result(coming_again(self._sent, self._target.patience, self._given_up))
        except (UnavailableError, DamagedError, FullError) as error:
            self.receipt.set_exception(_NodesLost({self._node.node: error}))
        except BaseException as error:
            # Whoever asks for the receipt is told, in his own thread.
            self.receipt.set_exception(error)

    def _sent(self) -> bytes:
        """The node's receipt."""
        self.taken_bytes = 0
        client = self._target.caller.client(self._node.location)
        descriptor = flight.FlightDescriptor.for_command(self._permit)
        try:
            self._wait_for(0)
            writer, replies = client.do_put(descriptor, UPLOAD, self._target.caller.options(PUT_S, with_token=False))
            try:
                for piece in _pieces(self._path):
                    if self._given_up.is_set():
                        raise UnavailableError("the upload was given up")
                    self._wait_for(0)
                    writer.write_batch(_batch(piece))
                    self.taken_bytes += len(piece)
                self._wait_for(self._size)
                writer.done_writing()
                receipt = replies.read()
            finally:
                writer.close()
        except Exception as error:
            raise from_call(self._node.location, error) from None
        finally:
            self._until_s = math.inf
        if receipt is None:
            raise UnavailableError(f"node {self._node.node}: ended without a receipt")
        return bytes(receipt)

    def _wait_for(self, stored_bytes: int) -> None:
        """What comes next may take as long as patience is, and what storing so many bytes may take."""
        self._until_s = clock.elapsed_s() + self._target.patience.idle_s + stored_bytes / STORED_BYTES_PER_S


def _raise_first(found: Sequence[BaseException | None]) -> None:
    """What a node said of a partition itself; else all nodes that are lost."""
    errors = [error for error in found if error is not None]
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


def _batch(piece: bytes) -> pa.RecordBatch:
    bounds = pa.py_buffer(np.array([0, len(piece)], np.int64))
    data = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, bounds, pa.py_buffer(piece)])
    return pa.RecordBatch.from_arrays([data], schema=UPLOAD)

"""The folder of one storage node: immutable Parquet files named by their digest, with a description of each.

    lock                  held by the process that owns the folder
    catalog               the identity of the catalog whose partitions these are
    folder                the identity of this folder, wherever and under whatever name it is served
    <digest>.parquet      a partition, byte for byte as it came
    <digest>.info         its description (`partition_metadata.PartitionInfo`), which can be rebuilt
    <random>.part         unfinished file; removed when the folder is opened

A file gets a name ending in `.parquet` only after its bytes were checked and synced. A reader uses a file descriptor,
so a partition can be removed without waiting for readers.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from libraries.durable.calls import FileCalls, OSCalls
from libraries.near_storage.errors import DamagedError, NearStorageError, NotFoundError, RequestError
from libraries.near_storage.parquet.footer import MAGIC, MOST_METADATA_BYTES, TAIL_BYTES
from libraries.near_storage.storing.disk_errors import disk_error, own_folder
from libraries.near_storage.storing.names import check_digest
from libraries.near_storage.storing.partition_metadata import Describe, PartitionInfo, blake2b, describe_apart
from libraries.near_storage.storing.recent import Recent

PARTITION, INFO, UNFINISHED = ".parquet", ".info", ".part"
OWNER, IDENTITY = "catalog", "folder"
OTHER_CATALOG = (
    "This node's folder holds the partitions of another catalog: start the node with that catalog, or with an empty "
    "folder."
)
READ_BYTES = 1 << 20
HELD_BYTES = 64 << 20

Describing: TypeAlias = Callable[[int], AbstractContextManager[Any]]
"""A context that is entered with the bytes of a footer while the partition is described, which takes memory."""


@dataclass(frozen=True)
class Held:
    """One partition in the folder: its size, and how long it has been there."""

    stored_bytes: int
    age_s: float


@dataclass(frozen=True)
class NodeReport:
    """A node's report: its partitions by digest, and the partitions whose bytes were read and found wrong."""

    held: dict[str, Held]
    damaged: frozenset[str] = frozenset()


class PartitionStore:
    """A node's partitions. Thread-safe. Raises errors of near storage, whose messages contain no paths.

    Opening takes ownership of the folder (`BusyError` if another process has it) and removes unfinished files that a
    crash left.
    """

    def __init__(self, folder: Path, calls: FileCalls | None = None, describe: Describe = describe_apart) -> None:
        self._folder = folder
        self._calls: FileCalls = calls or OSCalls()
        self._describe = describe
        self._names = Lock()
        self._removed: dict[str, int] = {}
        self._infos: Recent[PartitionInfo] = Recent(HELD_BYTES)
        self._owned: int | None = own_folder(self._calls, folder)
        self._remove_leftovers()

    def close(self) -> None:
        """Release the folder. Repeated calls do nothing."""
        with self._names:
            owned, self._owned = self._owned, None
        if owned is not None:
            self._calls.close(owned)

    # --- partitions --------------------------------------------------------------------------------------

    def put(
        self,
        chunks: Iterable[bytes | memoryview],
        expected_digest: str | None,
        limit_bytes: int,
        describing: Describing = nullcontext,
    ) -> PartitionInfo:
        """Store a Parquet file that arrives in pieces. The file survives a power cut once this method returns.

        Raises `DamagedError` if the bytes do not match `expected_digest`, `FooterError` for unsupported files,
        `RequestError` above `limit_bytes`, `FullError` if the disk is full. After an error, no bytes are kept. An
        existing partition is rewritten, which repairs it if it is damaged.
        """
        if expected_digest is not None:
            check_digest(expected_digest)
        with self._unfinished() as partition, self._unfinished() as beside:
            digest, stored_bytes = self._write(partition, chunks, limit_bytes)
            if expected_digest not in (None, digest):
                raise DamagedError(
                    f"Partition {expected_digest} arrived changed, as {stored_bytes:,} bytes with the digest {digest}: "
                    "send it again."
                )
            with self._told("A partition could not be stored"):
                footer_bytes = self._footer_length(partition, stored_bytes)
                with describing(footer_bytes):
                    info = self._describe(partition, digest)
            if info.stored_bytes != stored_bytes:
                raise DamagedError(
                    f"Partition {digest}: {stored_bytes:,} bytes were written, but the file has {info.stored_bytes:,}."
                )
            self._write(beside, [info.encode()], None)
            with self._names, self._told(f"Partition {digest}"):
                self._publish(partition, beside, digest)
            return info

    def remove(self, digest: str, number: int) -> None:
        """Remove a partition permanently. A missing partition is not an error. Readers that opened it continue.

        `number` is the catalog's number of this removal. A removal that is requested twice is done only once, because
        the second call may arrive after the same partition was stored again.
        """
        check_digest(digest)
        self._infos.forget(digest)
        with self._names, self._told(f"Partition {digest}"):
            if number <= self._removed.get(digest, -1):
                return
            for path in (self._path(digest), self._beside(digest)):
                with suppress(FileNotFoundError):
                    self._calls.unlink(path)
            self._calls.fsync_folder(self._folder)
            self._removed[digest] = number

    @contextmanager
    def opened(self, digest: str) -> Iterator[int]:
        """Yield a descriptor of the partition, which stays valid if the file is removed. Raises `NotFoundError` if the
        partition is not in the folder."""
        check_digest(digest)
        with self._told(f"Partition {digest}"):
            descriptor = self._calls.open(self._path(digest))
        try:
            yield descriptor
        finally:
            self._calls.close(descriptor)

    def info(self, digest: str, describing: Describing = nullcontext) -> PartitionInfo:
        """Return the description of a partition. If it is missing or damaged, rebuild it from the partition's checked
        bytes.

        Raises `NotFoundError`, and `DamagedError` if the partition itself is damaged.
        """
        check_digest(digest)
        return self._infos.get(digest, lambda: self._load(digest, describing))

    def footer_bytes(self, digest: str) -> bytes:
        """Return the end of the file: the Thrift footer, the footer's length and `PAR1`. Raises `DamagedError` if these
        bytes changed."""
        # Callers have the description already. It is rebuilt here, without `describing`, only if its file is damaged in
        # between and the cache has no room for it.
        info = self.info(digest)
        with self.opened(digest) as descriptor, self._told(f"Partition {digest}"):
            end = self._calls.read(descriptor, info.footer_bytes, info.stored_bytes - info.footer_bytes)
        if blake2b(end).hexdigest() != info.footer_digest:
            raise DamagedError(f"The footer of partition {digest} is damaged on this node: use another replica.")
        return end

    def verify(self, digest: str) -> None:
        """Read all bytes of a partition. Raises `DamagedError` if the bytes changed since the partition was stored."""
        hashing = blake2b()
        with self.opened(digest) as descriptor, self._told(f"Partition {digest}"):
            offset = 0
            while piece := self._calls.read(descriptor, READ_BYTES, offset):
                hashing.update(piece)
                offset += len(piece)
        if hashing.hexdigest() != digest:
            raise DamagedError(
                f"Partition {digest} is damaged on this node: use another replica, and repair the store."
            )

    def digests(self) -> frozenset[str]:
        """Return the digests of the partitions that are in the folder now."""
        with self._told("The node's folder"):
            return frozenset(name.removesuffix(PARTITION) for name in self._listed(PARTITION))

    def total_bytes(self) -> int:
        """Return the total bytes of all partitions."""
        return sum(held.stored_bytes for held in self._held(0.0).values())

    def report(self, now_s: float, verify: bool = False) -> NodeReport:
        """Report the contents of the folder for `integrity`. With `verify`, read every byte. `now_s` is the current
        time in seconds since the epoch."""
        held = self._held(now_s)
        with self._told("The node's folder"):
            # Make all names durable. A failed `put` may have left a name that is not durable, and the catalog would
            # count this name as a replica.
            self._calls.fsync_folder(self._folder)
        if not verify:
            return NodeReport(held)
        return NodeReport(held, frozenset(digest for digest in held if self._is_damaged(digest)))

    def claim(self, catalog: str) -> None:
        """Bind the folder permanently to the catalog with this identity. Raises `RequestError` if the folder is bound
        to another catalog.

        A catalog's repair removes partitions that the catalog does not know, so a node shared by two catalogs would
        lose all partitions.
        """
        if self._kept(OWNER, catalog) != catalog:
            raise RequestError(OTHER_CATALOG)

    def owner(self) -> str | None:
        """Return the identity of the catalog that the folder is bound to, if any."""
        with self._names, self._told("The node's folder"):
            found = self._read_whole(self._folder / OWNER)
        return None if found is None else found.decode("ascii", "replace")

    def identity(self) -> str:
        """Return the identity of this folder, which is random and permanent from the first call on."""
        return self._kept(IDENTITY, secrets.token_hex(16))

    # --- inside ------------------------------------------------------------------------------------------

    def _kept(self, name: str, text: str) -> str:
        """Return the content of the file with this name. If the file is missing, write `text` to it durably."""
        path = self._folder / name
        with self._names, self._told("The node's folder"):
            found = self._read_whole(path)
            if found is None:
                found = text.encode()
                with self._unfinished() as unfinished:
                    self._write(unfinished, [found], None)
                    self._calls.rename(unfinished, path)
            # Sync even if the file existed, because an earlier call may have failed at this step.
            self._calls.fsync_folder(self._folder)
        return found.decode("ascii", "replace")

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}{PARTITION}"

    def _beside(self, digest: str) -> Path:
        return self._folder / f"{digest}{INFO}"

    def _listed(self, ending: str) -> list[str]:
        return [name for name in self._calls.listdir(self._folder) if name.endswith(ending)]

    def _held(self, now_s: float) -> dict[str, Held]:
        held = {}
        for digest in sorted(self.digests()):
            with self._told("The node's folder"), suppress(FileNotFoundError):
                status = self._calls.status(self._path(digest))
                held[digest] = Held(status.size_bytes, max(0.0, now_s - status.modified_s))
        return held

    def _is_damaged(self, digest: str) -> bool:
        try:
            self.verify(digest)
        except NotFoundError:
            return False
        except NearStorageError:
            # Bytes that cannot be read count as wrong.
            return True
        return False

    def _load(self, digest: str, describing: Describing) -> PartitionInfo:
        with self._told(f"Partition {digest}"):
            stored = self._read_whole(self._beside(digest))
        if stored is not None:
            with suppress(DamagedError):
                info = PartitionInfo.decode(stored)
                if info.digest == digest:
                    return info
        # Digests computed from damaged chunks would hide the damage.
        self.verify(digest)
        path = self._path(digest)
        with self._told(f"Partition {digest}"):
            footer_bytes = self._footer_length(path, self._calls.status(path).size_bytes)
            with describing(footer_bytes):
                info = self._describe(path, digest)
        with self._unfinished() as beside:
            self._write(beside, [info.encode()], None)
            with self._names, self._told(f"Partition {digest}"):
                self._calls.rename(beside, self._beside(digest))
                self._calls.fsync_folder(self._folder)
        return info

    def _publish(self, partition: Path, beside: Path, digest: str) -> None:
        """Give the synced files of a partition and its description their final names, durably. If renaming the
        partition fails, remove the description."""
        try:
            self._calls.rename(beside, self._beside(digest))
            self._calls.rename(partition, self._path(digest))
            self._calls.fsync_folder(self._folder)
        except OSError:
            if self._path(digest).name not in self._listed(PARTITION):
                with suppress(OSError):
                    self._calls.unlink(self._beside(digest))
            raise

    def _footer_length(self, path: Path, stored_bytes: int) -> int:
        """Return the bytes of the footer, or 0 if `read_footer` refuses the file before it reads the footer."""
        descriptor = self._calls.open(path)
        try:
            end = self._calls.read(descriptor, TAIL_BYTES, max(0, stored_bytes - TAIL_BYTES))
        finally:
            self._calls.close(descriptor)
        length = int.from_bytes(end[:4], "little")
        room = stored_bytes - len(MAGIC) - TAIL_BYTES
        return length if end[4:] == MAGIC and length <= min(room, MOST_METADATA_BYTES) else 0

    def _read_whole(self, path: Path) -> bytes | None:
        try:
            descriptor = self._calls.open(path)
        except FileNotFoundError:
            return None
        try:
            return self._calls.read(descriptor, self._calls.status(path).size_bytes, 0)
        finally:
            self._calls.close(descriptor)

    def _write(self, path: Path, chunks: Iterable[bytes | memoryview], limit_bytes: int | None) -> tuple[str, int]:
        """Write a new file and sync it; return its digest and size."""
        hashing, size = blake2b(), 0
        with self._told("A partition could not be stored"):
            descriptor = self._calls.create(path)
        try:
            for chunk in chunks:
                size += len(chunk)
                if limit_bytes is not None and size > limit_bytes:
                    raise RequestError(
                        f"A partition has more than {limit_bytes:,} bytes, the limit for this call: send only the "
                        "announced bytes, or split the table into smaller partitions."
                    )
                hashing.update(chunk)
                with self._told("A partition could not be stored"):
                    self._calls.write(descriptor, chunk)
            with self._told("A partition could not be stored"):
                self._calls.fsync(descriptor)
        finally:
            self._calls.close(descriptor)
        return hashing.hexdigest(), size

    @contextmanager
    def _unfinished(self) -> Iterator[Path]:
        """Yield a temporary name; the file is removed at the end unless it was renamed."""
        path = self._folder / f"{secrets.token_hex(16)}{UNFINISHED}"
        try:
            yield path
        finally:
            # A file that cannot be removed now is removed when the folder is opened the next time.
            with suppress(OSError):
                self._calls.unlink(path)

    def _remove_leftovers(self) -> None:
        with self._told("The node's folder"):
            whole = {name.removesuffix(PARTITION) for name in self._listed(PARTITION)}
            orphaned = [name for name in self._listed(INFO) if name.removesuffix(INFO) not in whole]
            for name in (*self._listed(UNFINISHED), *orphaned):
                self._calls.unlink(self._folder / name)
            self._calls.fsync_folder(self._folder)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Convert errors of the operating system to errors for users."""
        try:
            yield
        except OSError as error:
            raise disk_error(error, what) from error

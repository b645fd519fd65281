"""The folder of one storage node: immutable Parquet files named by their digest, and what is known of each.

    lock                  held by the process that owns the folder
    catalog               the identity of the catalog whose partitions these are
    folder                the identity of this folder, wherever it is served and under whatever name
    <digest>.parquet      a partition, byte for byte as it came
    <digest>.info         its description (`describing.PartitionInfo`), which can be rebuilt
    <random>.part         what is being written; removed when the folder is opened

A name that ends in `.parquet` stands for bytes that were checked and synced before they got it. A reader works on a
descriptor, so that nothing waits for it when a partition is removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from libraries.durable.calls import FileCalls, OSCalls
from libraries.near_storage.errors import DamagedError, NearStorageError, NotFoundError, RequestError
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


@dataclass(frozen=True)
class Held:
    """One partition as the folder shows it: its size, and for how long it has been there."""

    stored_bytes: int
    age_s: float


@dataclass(frozen=True)
class NodeReport:
    """What a node says of itself: its partitions by digest, and those whose bytes were read and found wrong."""

    held: dict[str, Held]
    damaged: frozenset[str] = frozenset()


class PartitionStore:
    """A node's partitions. Methods may be called from any thread; errors are those of `errors`, without paths.

    Opening takes the folder for this process (`BusyError` if another has it) and clears away what a crash left.
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
        """Give the folder up; a second call does nothing."""
        with self._names:
            owned, self._owned = self._owned, None
        if owned is not None:
            self._calls.close(owned)

    # --- partitions --------------------------------------------------------------------------------------

    def put(self, chunks: Iterable[bytes | memoryview], expected_digest: str | None, limit_bytes: int) -> PartitionInfo:
        """Store a Parquet file that comes in pieces; when this returns it is on the disk, and stays after a power cut.

        Raises `DamagedError` if the bytes are not those of `expected_digest`, `FooterError` if they are no Parquet file
        that we take, `RequestError` beyond `limit_bytes`, `FullError` if they do not fit. Then nothing of them is kept.
        A partition that is there already is written anew: that costs its writing, and mends a damaged one.
        """
        if expected_digest is not None:
            check_digest(expected_digest)
        with self._unfinished() as partition, self._unfinished() as beside:
            digest, stored_bytes = self._write(partition, chunks, limit_bytes)
            if expected_digest not in (None, digest):
                raise DamagedError(
                    f"Partition {expected_digest} arrived as {stored_bytes:,} other bytes ({digest}): send it again."
                )
            with self._told("A partition could not be stored"):
                info = self._describe(partition, digest)
            if info.stored_bytes != stored_bytes:
                raise DamagedError(f"Partition {digest}: {stored_bytes:,} bytes written, {info.stored_bytes:,} read.")
            self._write(beside, [info.encode()], None)
            with self._names, self._told(f"Partition {digest}"):
                self._publish(partition, beside, digest)
            return info

    def remove(self, digest: str, number: int) -> None:
        """Remove a partition for good; it is no error if it is not there. Readers that opened it go on.

        `number` is the catalog's for this removal. A removal that is asked for twice is done once: the second call may
        have hung on the way until the same partition was stored anew.
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
        """A descriptor to read the partition from, whatever happens to its name. `NotFoundError` if it is not here."""
        check_digest(digest)
        with self._told(f"Partition {digest}"):
            descriptor = self._calls.open(self._path(digest))
        try:
            yield descriptor
        finally:
            self._calls.close(descriptor)

    def info(self, digest: str) -> PartitionInfo:
        """What is known of a partition; rebuilt from its bytes, checked first, where it is missing or damaged.

        Raises `NotFoundError`, and `DamagedError` if the partition itself is damaged.
        """
        check_digest(digest)
        return self._infos.get(digest, lambda: self._load(digest))

    def footer_bytes(self, digest: str) -> bytes:
        """The end of the file: the Thrift footer, its length and `PAR1`. `DamagedError` if they changed."""
        info = self.info(digest)
        with self.opened(digest) as descriptor, self._told(f"Partition {digest}"):
            end = self._calls.read(descriptor, info.footer_bytes, info.stored_bytes - info.footer_bytes)
        if blake2b(end).hexdigest() != info.footer_digest:
            raise DamagedError(f"The footer of partition {digest} is damaged on this node: use another replica.")
        return end

    def verify(self, digest: str) -> None:
        """Read all bytes of a partition; `DamagedError` if they are not those that were stored."""
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
        """The partitions that are in the folder now."""
        with self._told("The node's folder"):
            return frozenset(name.removesuffix(PARTITION) for name in self._listed(PARTITION))

    def total_bytes(self) -> int:
        """The bytes of all partitions."""
        return sum(held.stored_bytes for held in self._held(0.0).values())

    def report(self, now_s: float, verify: bool = False) -> NodeReport:
        """What is here, for `checking`; `verify` reads every byte. `now_s` is the time of day, since the epoch."""
        held = self._held(now_s)
        with self._told("The node's folder"):
            # A name that a failed `put` left in memory alone would become a replica in the catalog.
            self._calls.fsync_folder(self._folder)
        if not verify:
            return NodeReport(held)
        return NodeReport(held, frozenset(digest for digest in held if self._is_damaged(digest)))

    def claim(self, catalog: str) -> None:
        """Bind the folder to the catalog of that identity, for ever; `RequestError` if it is bound to another.

        The repair of a catalog removes what it does not know: a node that it shared would lose everything.
        """
        if self._kept(OWNER, catalog) != catalog:
            raise RequestError(OTHER_CATALOG)

    def owner(self) -> str | None:
        """The identity of the catalog that the folder is bound to, if it is."""
        with self._names, self._told("The node's folder"):
            found = self._read_whole(self._folder / OWNER)
        return None if found is None else found.decode("ascii", "replace")

    def identity(self) -> str:
        """What tells this folder from all others: random, and the same for ever from the first call on."""
        return self._kept(IDENTITY, secrets.token_hex(16))

    # --- inside ------------------------------------------------------------------------------------------

    def _kept(self, name: str, text: str) -> str:
        """What the file of that name says: `text`, durably, if it was not there."""
        path = self._folder / name
        with self._names, self._told("The node's folder"):
            found = self._read_whole(path)
            if found is None:
                found = text.encode()
                with self._unfinished() as unfinished:
                    self._write(unfinished, [found], None)
                    self._calls.rename(unfinished, path)
            # Where it was there too: a call before may have failed at this.
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
            # Bytes that the disk does not give are as good as wrong.
            return True
        return False

    def _load(self, digest: str) -> PartitionInfo:
        with self._told(f"Partition {digest}"):
            stored = self._read_whole(self._beside(digest))
        if stored is not None:
            with suppress(DamagedError):
                info = PartitionInfo.decode(stored)
                if info.digest == digest:
                    return info
        # Digests made of damaged chunks would vouch for the damage.
        self.verify(digest)
        with self._told(f"Partition {digest}"):
            info = self._describe(self._path(digest), digest)
        with self._unfinished() as beside:
            self._write(beside, [info.encode()], None)
            with self._names, self._told(f"Partition {digest}"):
                self._calls.rename(beside, self._beside(digest))
                self._calls.fsync_folder(self._folder)
        return info

    def _publish(self, partition: Path, beside: Path, digest: str) -> None:
        """Give synced files their names, durably; a description without its partition does not stay."""
        try:
            self._calls.rename(beside, self._beside(digest))
            self._calls.rename(partition, self._path(digest))
            self._calls.fsync_folder(self._folder)
        except OSError:
            if self._path(digest).name not in self._listed(PARTITION):
                with suppress(OSError):
                    self._calls.unlink(self._beside(digest))
            raise

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
        """Write a new file and sync it; its digest and size."""
        hashing, size = blake2b(), 0
        with self._told("A partition could not be stored"):
            descriptor = self._calls.create(path)
        try:
            for chunk in chunks:
                size += len(chunk)
                if limit_bytes is not None and size > limit_bytes:
                    raise RequestError(
                        f"A partition is longer than the {limit_bytes:,} bytes that this node takes: split the table."
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
        """A name to write under, gone in the end if it was not given to a finished file."""
        path = self._folder / f"{secrets.token_hex(16)}{UNFINISHED}"
        try:
            yield path
        finally:
            # What the disk does not let go now, the next opening of the folder removes.
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
        """Errors of the operating system as errors for users."""
        try:
            yield
        except OSError as error:
            raise disk_error(error, what) from error

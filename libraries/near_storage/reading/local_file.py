"""A local Parquet file with its description. When the file is opened, a check ensures that the file did not change
since the description was made.

The files of nodes are partitions (see `storing`), which are never replaced.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from libraries.near_storage.errors import StaleError
from libraries.near_storage.parquet import compact, footer
from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.reading import digests, ranges
from libraries.near_storage.reading.footers import parse
from libraries.near_storage.storing.partition_metadata import PartitionInfo, blake2b

Identity: TypeAlias = tuple[int, int, int, int]
"""Device, inode, size and mtime in nanoseconds. A different value means another file, or a modified one."""


def identity_of(found: os.stat_result) -> Identity:
    """Return the identity and state of a file."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True)
class LocalFile:
    """A file and its description. `digests` are [row groups, leaf columns], `footer_digest` is blake2b-256 in hex."""

    path: Path
    identity: Identity
    schema: pa.Schema
    compact: CompactMetadata
    digests: digests.Digests
    footer_start: int
    footer_digest: str

    @classmethod
    def prepare(cls, path: Path) -> LocalFile:
        """Read the footer and compute the digests of all chunks. Raises FooterError for unsupported files."""
        with path.open("rb") as file:
            original = footer.read_footer(file)
            identity = identity_of(os.fstat(file.fileno()))
            end = _read(file.fileno(), original.start, original.file_bytes)
            described = compact.from_footer(original)
            chunk_digests = digests.of_file(file.fileno(), described)
        schema = parse(end).schema.remove_metadata()
        return cls(path, identity, schema, described, chunk_digests, original.start, blake2b(end).hexdigest())

    @classmethod
    def of(cls, path: Path, info: PartitionInfo) -> LocalFile:
        """Use a stored description of a file, without reading the file. Raises StaleError if the file's size
        differs."""
        identity = identity_of(path.stat())
        if identity[2] != info.stored_bytes:
            raise StaleError(
                f"{path.name}: has {identity[2]} bytes, but {info.stored_bytes} were stored; store the file again"
            )
        start = info.stored_bytes - info.footer_bytes
        return cls(path, identity, info.schema, info.compact, info.chunk_digests, start, info.footer_digest)

    @property
    def stored_bytes(self) -> int:
        """The size of the file."""
        return self.identity[2]

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Yield a descriptor for reading. Raises StaleError if the file was replaced or modified."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if identity_of(os.fstat(fd)) != self.identity:
                raise StaleError(
                    f"{self.path.name}: was replaced or changed since it was prepared; prepare the file again"
                )
            yield fd
        finally:
            os.close(fd)

    def footer_bytes(self, fd: int) -> bytes:
        """Return the end of the file: the footer, its length and `PAR1`."""
        return _read(fd, self.footer_start, self.stored_bytes)


def _read(fd: int, start: int, stop: int) -> bytes:
    content = bytearray(stop - start)
    ranges.fill(fd, start, [memoryview(content)])
    return bytes(content)

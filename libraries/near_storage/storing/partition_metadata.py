"""The description of one partition: its schema, compact metadata, and the digests of its column chunks.

The description is computed when a partition is stored. It is kept in a file next to the partition and in the catalog,
and can be rebuilt from the partition's bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from libraries.near_storage.errors import DamagedError, FooterError
from libraries.near_storage.parquet.compact import CompactMetadata, from_footer, load
from libraries.near_storage.parquet.footer import Footer
from libraries.near_storage.parquet.isolation import read_footer_apart
from libraries.near_storage.reading import digests, footers

DIGEST_BYTES = 32
DESCRIBED_PER_FOOTER = 52
"""Memory to describe a partition, per byte of its footer. Footers of minimal chunk metadata took 52 bytes, those with
statistics 37 (pyarrow 26). Many columns without row groups take more, but their number is limited: 60,000 columns took
130 MB."""
FORMAT = 2


@dataclass(frozen=True, eq=False)
class PartitionInfo:
    """The description of one partition. `encode` and `decode` convert it for the catalog and the file next to the
    partition.

    `digest` is the blake2b-256 of the whole file of `stored_bytes` bytes. `footer_digest` is the blake2b-256 of the
    last `footer_bytes` bytes: the Thrift footer, the footer's length in 4 bytes, and `PAR1`. `chunk_digests` has one
    row per row group and one column per leaf, as in `compact.chunks`.
    """

    digest: str
    stored_bytes: int
    rows: int
    schema: pa.Schema
    footer_digest: str
    footer_bytes: int
    compact: CompactMetadata
    chunk_digests: digests.Digests

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the schema."""
        return self.compact.nbytes + self.chunk_digests.nbytes

    @property
    def leaves_digest(self) -> str:
        """Digest of the paths and kinds of the leaf columns. The digest must be equal in all partitions of a table, so
        that row groups can be skipped."""
        return blake2b(msgspec.msgpack.encode(self.compact.columns)).hexdigest()

    def same_content(self, other: PartitionInfo) -> bool:
        """Return whether both descriptions are of the same bytes. Compact metadata are not compared, because they may
        differ between releases."""
        return (
            (self.digest, self.stored_bytes, self.rows) == (other.digest, other.stored_bytes, other.rows)
            and (self.footer_digest, self.footer_bytes) == (other.footer_digest, other.footer_bytes)
            and same_fields(self.schema, other.schema)
            and np.array_equal(self.chunk_digests, other.chunk_digests)
        )

    def encode(self) -> bytes:
        """Encode the description. The first 32 bytes are the blake2b-256 digest of all bytes that follow."""
        wire = _Wire(
            FORMAT,
            self.digest,
            self.stored_bytes,
            self.rows,
            encode_schema(self.schema),
            self.footer_digest,
            self.footer_bytes,
            self.compact.save(),
            self.chunk_digests.shape[0],
            self.chunk_digests.shape[1],
            np.ascontiguousarray(self.chunk_digests, "<u8").tobytes(),
        )
        rest = msgspec.msgpack.encode(wire)
        return blake2b(rest).digest() + rest

    @staticmethod
    def decode(data: bytes) -> PartitionInfo:
        """Decode the description in `data`. Raises `DamagedError` if the bytes changed since they were encoded."""
        rest = memoryview(data)[DIGEST_BYTES:]
        if blake2b(rest).digest() != bytes(data[:DIGEST_BYTES]):
            raise DamagedError("The description of a partition is damaged: the digest of its bytes differs.")
        try:
            wire = msgspec.msgpack.decode(rest, type=_Wire)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DamagedError(f"The description of a partition has an unsupported form ({error}).") from None
        compact = load(wire.compact)
        shape = (wire.row_groups, wire.columns)
        if compact.chunks.shape != shape or len(wire.chunk_digests) != 8 * wire.row_groups * wire.columns:
            raise DamagedError(
                f"The description of partition {wire.digest} has contradictory numbers of row groups, columns "
                "or digests."
            )
        return PartitionInfo(
            wire.digest,
            wire.stored_bytes,
            wire.rows,
            decode_schema(wire.schema),
            wire.footer_digest,
            wire.footer_bytes,
            compact,
            np.frombuffer(wire.chunk_digests, "<u8").reshape(shape).astype(np.uint64, copy=False),
        )


class _Wire(msgspec.Struct, array_like=True, frozen=True):
    format: int
    digest: str
    stored_bytes: int
    rows: int
    schema: bytes
    footer_digest: str
    footer_bytes: int
    compact: bytes
    row_groups: int
    columns: int
    chunk_digests: bytes

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format {self.format}, but this release reads only {FORMAT}")
        if min(self.stored_bytes, self.rows, self.footer_bytes, self.row_groups, self.columns) < 0:
            raise ValueError("a negative count")


Describe: TypeAlias = Callable[[Path, str], PartitionInfo]
"""Takes the path and digest of a partition. Returns its description, or raises `FooterError` for unsupported files."""


def describe_apart(path: Path, digest: str) -> PartitionInfo:
    """Describe an untrusted file. A child process reads the footer, because the footer may be hostile."""
    footer = read_footer_apart(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return describe(descriptor, footer, digest)
    finally:
        os.close(descriptor)


def describe(descriptor: int, footer: Footer, digest: str) -> PartitionInfo:
    """Describe the open file by its footer. Raises `DamagedError` if the file ends early."""
    end = os.pread(descriptor, footer.file_bytes - footer.start, footer.start)
    try:
        schema = footers.parse(end).schema.remove_metadata()
    except DamagedError as error:
        raise FooterError(f"The schema of the file cannot be read: {error}") from None
    compact = from_footer(footer)
    return PartitionInfo(
        digest,
        footer.file_bytes,
        footer.rows,
        schema,
        blake2b(end).hexdigest(),
        len(end),
        compact,
        digests.of_file(descriptor, compact),
    )


def blake2b(data: bytes | memoryview = b"") -> hashlib.blake2b:
    """Return the hash for partitions, footers and descriptions: blake2b-256."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES)


def digest_of_file(path: Path) -> tuple[str, int]:
    """Return the blake2b-256 digest of a file in hex, and its size in bytes. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, blake2b).hexdigest(), file.tell()


def same_fields(one: pa.Schema, other: pa.Schema) -> bool:
    """Return whether two schemas fit in one table: names, order, types and nullability are equal. Metadata may
    differ."""
    return bool(one.equals(other, check_metadata=False))


def encode_schema(schema: pa.Schema) -> bytes:
    """Encode a schema in Arrow's IPC format."""
    return schema.serialize().to_pybytes()


def decode_schema(data: bytes) -> pa.Schema:
    """Decode the schema in `data`. Raises `DamagedError` if the bytes are not a schema."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"A stored schema cannot be read: {error}") from None

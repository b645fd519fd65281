"""The ends of a file: the 32 bytes of the postscript, and the checksums (specification sections 1.1 and 1.2)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from libraries.f3.errors import F3Error

MAGIC = b"F3"
MAJOR, MINOR = 0, 1
POSTSCRIPT_BYTES = 32
_POSTSCRIPT = struct.Struct("<IIBBQQHH2s")
XXHASH = 0
"""The only checksum type: XXH64 with seed 0."""


@dataclass(frozen=True)
class Postscript:
    """Sizes of footer and metadata, and the checksums of the file's prefix and of the schema."""

    metadata_bytes: int
    footer_bytes: int
    data_checksum: int
    schema_checksum: int
    footer_compression: int = 0
    checksum_type: int = XXHASH
    major: int = MAJOR
    minor: int = MINOR

    def packed(self) -> bytes:
        """The 32 bytes that end a file."""
        return _POSTSCRIPT.pack(
            self.metadata_bytes,
            self.footer_bytes,
            self.footer_compression,
            self.checksum_type,
            self.data_checksum,
            self.schema_checksum,
            self.major,
            self.minor,
            MAGIC,
        )


def read_postscript(end: bytes, file_bytes: int) -> Postscript:
    """The postscript, from the last bytes of a file of that size. Raises F3Error for what is no F3 file, or one that
    says what cannot be."""
    if len(end) < POSTSCRIPT_BYTES:
        raise F3Error(f"{file_bytes} bytes are too few for an F3 file; its postscript alone takes {POSTSCRIPT_BYTES}")
    metadata, footer, compression, kind, data, schema, major, minor, magic = _POSTSCRIPT.unpack(end[-POSTSCRIPT_BYTES:])
    if magic != MAGIC:
        raise F3Error(f"ends with {magic!r}, an F3 file ends with {MAGIC!r}")
    # Before 1.0 a minor version may change everything as well.
    if (major, minor) != (MAJOR, MINOR):
        raise F3Error(f"is of version {major}.{minor}; version {MAJOR}.{MINOR} is read")
    if kind != XXHASH:
        raise F3Error(f"has checksums of type {kind}; {XXHASH} (XXH64) is read")
    if compression != 0:
        raise F3Error(f"has a compressed footer (type {compression}); uncompressed ones are read")
    if not 0 < footer <= metadata <= file_bytes - POSTSCRIPT_BYTES:
        raise F3Error(
            f"says that its footer has {footer} bytes of {metadata} of metadata, which do not fit into {file_bytes}"
        )
    return Postscript(metadata, footer, data, schema, compression, kind, major, minor)

"""The postscript (the last 32 bytes of a file) and the checksums (specification sections 1.1 and 1.2)."""

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
    """Sizes of footer and metadata, and two checksums: one of all bytes before the postscript, and one of the
    schema."""

    metadata_bytes: int
    footer_bytes: int
    data_checksum: int
    schema_checksum: int
    footer_compression: int = 0
    checksum_type: int = XXHASH
    major: int = MAJOR
    minor: int = MINOR

    def packed(self) -> bytes:
        """Return the 32 bytes that end a file."""
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
    """Read the postscript from the last bytes of a file of `file_bytes` bytes.

    Raises F3Error if the file is not an F3 file, has another version, or states impossible sizes.
    """
    if len(end) < POSTSCRIPT_BYTES:
        raise F3Error(f"{file_bytes} bytes are too few for an F3 file; its postscript alone takes {POSTSCRIPT_BYTES}")
    metadata, footer, compression, kind, data, schema, major, minor, magic = _POSTSCRIPT.unpack(end[-POSTSCRIPT_BYTES:])
    if magic != MAGIC:
        raise F3Error(f"is not an F3 file: it ends with {magic!r} instead of {MAGIC!r}")
    # Before version 1.0 any minor version may change the format.
    if (major, minor) != (MAJOR, MINOR):
        raise F3Error(f"has version {major}.{minor}; only version {MAJOR}.{MINOR} is supported")
    if kind != XXHASH:
        raise F3Error(f"has checksums of type {kind}; only type {XXHASH} (XXH64) is supported")
    if compression != 0:
        raise F3Error(f"has a compressed footer (type {compression}), which is not supported")
    if not 0 < footer <= metadata <= file_bytes - POSTSCRIPT_BYTES:
        most = file_bytes - POSTSCRIPT_BYTES
        raise F3Error(
            f"states a footer of {footer} bytes in {metadata} bytes of metadata "
            f"(required: 1 <= footer <= metadata <= {most})"
        )
    return Postscript(metadata, footer, data, schema, compression, kind, major, minor)

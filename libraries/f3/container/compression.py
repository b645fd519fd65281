"""Codecs over whole EncUnits (specification 5.4): a zstd frame, or an LZ4 block behind its length.

The uncompressed size is not in the metadata, so that a small unit could ask for any amount of memory: there is a limit.
"""

from __future__ import annotations

import struct

import pyarrow as pa
import zstandard

from libraries.f3.container.metadata import LZ4, UNCOMPRESSED, ZSTD
from libraries.f3.decoders import native
from libraries.f3.errors import F3Error

CODECS = {None: UNCOMPRESSED, "zstd": ZSTD, "lz4": LZ4}
_LENGTH = struct.Struct("<I")
_STEP_BYTES = 1024 * 1024
_ALWAYS_ALLOWED_BYTES = 64 * 1024 * 1024
_MOST_RATIO = 1024
_MOST_BYTES = 1 << 32
"""What no honest EncUnit reaches: its rows and its strings have limits."""


def compress(payload: bytes, codec: str | None) -> tuple[bytes, int]:
    """What to store, and its CompressionType: uncompressed where the codec saves nothing."""
    if codec == "zstd":
        packed = pa.compress(payload, codec="zstd", asbytes=True)
    elif codec == "lz4":
        packed = _LENGTH.pack(len(payload)) + pa.compress(payload, codec="lz4_raw", asbytes=True)
    else:
        return payload, UNCOMPRESSED
    return (packed, CODECS[codec]) if len(packed) < len(payload) else (payload, UNCOMPRESSED)


def decompress(stored: memoryview, compression: int, what: str) -> memoryview:
    """The payload. Raises F3Error for broken ones, and for what would take more than 64 MB and 1,024 times its size, or
    more than 4 GiB."""
    if compression == UNCOMPRESSED:
        return stored
    most = min(_MOST_BYTES, max(_ALWAYS_ALLOWED_BYTES, _MOST_RATIO * len(stored)))
    try:
        return _zstd(stored, most, what) if compression == ZSTD else _lz4(stored, most, what)
    except (pa.ArrowException, OSError, zstandard.ZstdError) as error:
        raise F3Error(f"{what}: cannot be decompressed: {error}") from None


def _zstd(stored: memoryview, most: int, what: str) -> memoryview:
    size = zstandard.frame_content_size(stored)
    if size > most:
        raise _too_much(what, size, len(stored))
    if size >= 0:
        return memoryview(zstandard.ZstdDecompressor().decompress(stored, max_output_size=size))
    # Not by zstandard, which takes the end of a cut frame for its end.
    parts: list[bytes] = []
    total = 0
    with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as reader:
        while part := reader.read(_STEP_BYTES):
            total += len(part)
            if total > most:
                raise _too_much(what, total, len(stored))
            parts.append(part)
    return memoryview(b"".join(parts))


def _lz4(stored: memoryview, most: int, what: str) -> memoryview:
    if len(stored) < _LENGTH.size:
        raise F3Error(f"{what}: {len(stored)} bytes are too few for an LZ4 block with its length")
    (size,) = _LENGTH.unpack_from(stored)
    if size > most:
        raise _too_much(what, size, len(stored))
    block = stored[_LENGTH.size :]
    if not _unpacks_to(block, size):
        raise F3Error(f"{what}: cannot be decompressed: the LZ4 block does not hold the {size} bytes that it says")
    return memoryview(pa.Codec("lz4_raw").decompress(block, decompressed_size=size, asbytes=True))


def _unpacks_to(block: memoryview, size: int) -> bool:
    """Whether a block has so many bytes: the codec takes fewer without a word, and what lay in memory before would be
    read as if it were the file's."""
    kernels = native.library()
    if kernels is not None:
        return native.lz4_bytes(kernels, block) == size
    if size == 0:
        return bytes(block) == b"\0"
    try:
        pa.Codec("lz4_raw").decompress(block, decompressed_size=size - 1, asbytes=True)
    except OSError:
        return True  # what does not fit into one byte less; what is broken is found when it is unpacked
    return False


def _too_much(what: str, size: int, stored: int) -> F3Error:
    return F3Error(f"{what}: {stored} bytes say that they hold {size}, which is more than is read")

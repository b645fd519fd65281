"""Compress and decompress whole EncUnits, the smallest parts of a column that can be decoded (specification 5.4).

A compressed EncUnit is a zstd frame, or a length followed by an LZ4 block. The metadata do not contain the uncompressed
size, so a small unit could expand to any amount of memory. `decompress` therefore has a limit.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import pyarrow as pa
import zstandard

from libraries.f3.container.metadata import LZ4, UNCOMPRESSED, ZSTD
from libraries.f3.decoders import native
from libraries.f3.errors import F3Error

ADAPTIVE: Final = "adaptive"
CODECS = {None: UNCOMPRESSED, "zstd": ZSTD, "lz4": LZ4}
"""Codec -> CompressionType in the metadata."""
_SMALLER, _MAY_SAVE = 0.8, 0.9
_LEAST_SAVED_BYTES, _SAMPLED_BYTES = 1 << 14, 1 << 14
_LENGTH = struct.Struct("<I")
_STEP_BYTES = 1024 * 1024
_ALWAYS_ALLOWED_BYTES = 64 * 1024 * 1024
_MOST_RATIO = 1024
_MOST_BYTES = 1 << 32
"""Maximum bytes of an uncompressed EncUnit. Valid ones are smaller, because their numbers of rows and of string bytes
are limited."""


def compress(payload: bytes, codec: str | None) -> tuple[bytes, int]:
    """Return the bytes to store, and the number of their compression (CompressionType in the metadata).

    If the codec saves nothing, the payload is stored uncompressed. `ADAPTIVE` uses zstd if that saves a fifth, and
    enough bytes to pay for starting zstd. For large payloads a sample decides whether zstd is tried.
    """
    if codec is None or (codec == ADAPTIVE and not _may_save(payload)):
        return payload, UNCOMPRESSED
    if codec == "lz4":
        packed = _LENGTH.pack(len(payload)) + pa.compress(payload, codec="lz4_raw", asbytes=True)
    else:
        packed = pa.compress(payload, codec="zstd", asbytes=True)
    most = min(_SMALLER * len(payload), len(payload) - _LEAST_SAVED_BYTES) if codec == ADAPTIVE else len(payload)
    if len(packed) >= most or len(payload) > _most_unpacked(len(packed)):
        return payload, UNCOMPRESSED
    return packed, LZ4 if codec == "lz4" else ZSTD


def _most_unpacked(stored_bytes: int) -> int:
    """Return the largest size to which `decompress` expands a unit of `stored_bytes`. Payloads that are larger are
    stored uncompressed."""
    return min(_MOST_BYTES, max(_ALWAYS_ALLOWED_BYTES, _MOST_RATIO * stored_bytes))


def zstd_bytes(data: Any) -> int:
    """Return the size of a buffer's bytes as zstd packs them."""
    return len(pa.compress(pa.py_buffer(data), codec="zstd", asbytes=True))


def _may_save(payload: bytes) -> bool:
    if len(payload) < _LEAST_SAVED_BYTES:
        return False
    if len(payload) <= 2 * _SAMPLED_BYTES:
        return True
    start = (len(payload) - _SAMPLED_BYTES) // 2
    sample = memoryview(payload)[start : start + _SAMPLED_BYTES]
    return zstd_bytes(sample) < _MAY_SAVE * _SAMPLED_BYTES


def decompress(stored: memoryview, compression: int, what: str) -> memoryview:
    """Return the uncompressed payload.

    Raises F3Error if the unit is broken, if the payload is larger than both 64 MiB and 1,024 times the stored size, or
    if it is larger than 4 GiB.
    """
    if compression == UNCOMPRESSED:
        return stored
    most = _most_unpacked(len(stored))
    try:
        return _zstd(stored, most, what) if compression == ZSTD else _lz4(stored, most, what)
    except (pa.ArrowException, OSError, zstandard.ZstdError) as error:
        raise F3Error(f"{what}: cannot be decompressed: {error}") from None


def _zstd(stored: memoryview, most: int, what: str) -> memoryview:
    size = zstandard.frame_content_size(stored)
    if size > most:
        raise _too_much(what, f"claim to unpack to {size}", len(stored))
    if size >= 0:
        return memoryview(zstandard.ZstdDecompressor().decompress(stored, max_output_size=size))
    # Do not use `zstandard.decompress`, which accepts a truncated frame.
    parts: list[bytes] = []
    total = 0
    with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as reader:
        while part := reader.read(_STEP_BYTES):
            total += len(part)
            if total > most:
                raise _too_much(what, f"unpack to at least {total}", len(stored))
            parts.append(part)
    return memoryview(b"".join(parts))


def _lz4(stored: memoryview, most: int, what: str) -> memoryview:
    if len(stored) < _LENGTH.size:
        raise F3Error(f"{what}: {len(stored)} bytes are too few for an LZ4 block, which begins with a 4-byte size")
    (size,) = _LENGTH.unpack_from(stored)
    if size > most:
        raise _too_much(what, f"claim to unpack to {size}", len(stored))
    block = stored[_LENGTH.size :]
    if not _unpacks_to(block, size):
        raise F3Error(f"{what}: cannot be decompressed: the LZ4 block does not unpack to the stated {size} bytes")
    return memoryview(pa.Codec("lz4_raw").decompress(block, decompressed_size=size, asbytes=True))


def _unpacks_to(block: memoryview, size: int) -> bool:
    """Return whether a block decompresses to exactly `size` bytes.

    If a block yields fewer bytes, the codec raises no error and returns uninitialized memory after them.
    """
    kernels = native.library()
    if kernels is not None:
        return native.lz4_bytes(kernels, block) == size
    if size == 0:
        return bytes(block) == b"\0"
    try:
        pa.Codec("lz4_raw").decompress(block, decompressed_size=size - 1, asbytes=True)
    except OSError:
        # The content needs more than size - 1 bytes. If the block is invalid, the later decompression fails.
        return True
    return False


def _too_much(what: str, unpacked: str, stored: int) -> F3Error:
    return F3Error(f"{what}: {stored} bytes {unpacked}, which exceeds the limit of {_most_unpacked(stored)} bytes")

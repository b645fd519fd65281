"""The codecs of pages, the same for all layouts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import cramjam
import zstandard

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.layout import COMPRESSIONS, CompressionName

_ZSTD_LEVEL = 3
"""zstd's default level. Compared with level 1, flushes take a tenth more CPU time and files are a twentieth smaller."""

_threads = threading.local()
"""Holds zstandard's objects, one per thread, because they are not thread-safe."""


def compress(codec: CompressionName, data: bytes | bytearray) -> bytes | bytearray:
    """Compress bytes. The result may be longer than `data`."""
    return _COMPRESS[codec](data)


def decompress(codec: CompressionName, data: memoryview, length_bytes: int) -> bytes:
    """Decompress to exactly `length_bytes` bytes. Raises CorruptError, without allocating more memory than that, if the
    data have another length."""
    try:
        return _DECOMPRESS[codec](data, length_bytes)
    except (cramjam.DecompressionError, zstandard.ZstdError) as error:
        raise CorruptError(f"cannot decompress {len(data)} bytes of {codec} to {length_bytes} bytes: {error}") from None


def _compress_snappy(data: bytes | bytearray) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def _decompress_snappy(data: memoryview, length_bytes: int) -> bytes:
    out = bytearray(length_bytes)
    if cramjam.snappy.decompress_raw_into(data, out) != length_bytes:
        raise CorruptError(f"{len(data)} bytes of snappy decompress to less than {length_bytes} bytes")
    return bytes(out)


def _compress_zstd(data: bytes | bytearray) -> bytes:
    if not hasattr(_threads, "compressor"):
        _threads.compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
    compressed: bytes = _threads.compressor.compress(data)
    return compressed


def _decompress_zstd(data: memoryview, length_bytes: int) -> bytes:
    if zstandard.frame_content_size(data) != length_bytes:
        raise CorruptError(
            f"{len(data)} bytes of zstd must decompress to {length_bytes} bytes, but do not declare this size"
        )
    if not hasattr(_threads, "decompressor"):
        _threads.decompressor = zstandard.ZstdDecompressor()
    raw: bytes = _threads.decompressor.decompress(data)
    if len(raw) != length_bytes:
        raise CorruptError(f"{len(data)} bytes of zstd decompress to {len(raw)} bytes, not to {length_bytes}")
    return raw


def _copy(data: bytes | bytearray) -> bytes | bytearray:
    return data


def _take(data: memoryview, length_bytes: int) -> bytes:
    if len(data) != length_bytes:
        raise CorruptError(f"{len(data)} bytes are stored uncompressed, expected {length_bytes}")
    return bytes(data)


_COMPRESS: dict[CompressionName, Callable[[bytes | bytearray], bytes | bytearray]] = {
    "none": _copy,
    "snappy": _compress_snappy,
    "zstd": _compress_zstd,
}
_DECOMPRESS: dict[CompressionName, Callable[[memoryview, int], bytes]] = {
    "none": _take,
    "snappy": _decompress_snappy,
    "zstd": _decompress_zstd,
}
assert _COMPRESS.keys() == _DECOMPRESS.keys() == set(COMPRESSIONS)

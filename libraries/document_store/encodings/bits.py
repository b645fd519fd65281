"""Read untrusted bytes sequentially, and encode variable-length integers and values of a few bits.

A read beyond the end raises CorruptError.
"""

from __future__ import annotations

import numpy as np

from libraries.document_store.errors import CorruptError

_MOST_VARINT_BYTES = 10
_64_BITS = (1 << 64) - 1


class ByteReader:
    """A reader of bytes that may be hostile."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data, self.place = memoryview(data), 0

    @property
    def left(self) -> int:
        """Number of unread bytes."""
        return len(self._data) - self.place

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes. Raises CorruptError if there are fewer."""
        if not 0 <= size <= self.left:
            raise CorruptError(f"a column's chunk is truncated: {size} bytes are expected, {self.left} are left")
        self.place += size
        return self._data[self.place - size : self.place]

    def varint(self) -> int:
        """Read an unsigned number of at most 64 bits, stored with 7 bits per byte, lowest bits first."""
        value = 0
        for position in range(_MOST_VARINT_BYTES):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:
                if value > _64_BITS:
                    break
                return value
        raise CorruptError("a column's chunk has a number of more than 64 bits")

    def zigzag(self) -> int:
        """Read a signed number of 64 bits. 0, -1, 1, -2 ... are stored as 0, 1, 2, 3 ..."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)


def varint(value: int) -> bytes:
    """Encode a number for `ByteReader.varint`."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def zigzag(value: int) -> bytes:
    """Encode a number from -2**63 to 2**63 - 1 for `ByteReader.zigzag`."""
    return varint((value << 1 ^ value >> 63) & _64_BITS)


def packed(values: np.ndarray, width: int) -> bytes:
    """Pack unsigned values (uint64) into `width` bits each, lowest bit first."""
    if width == 0:
        return b""
    bits = values[:, None] >> np.arange(width, dtype=np.uint64) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little").tobytes()


def unpacked(data: memoryview, width: int, count: int) -> np.ndarray:
    """Unpack `count` values of `width` bits each into uint64."""
    if width == 0:
        return np.zeros(count, np.uint64)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=count * width, bitorder="little")
    weights = np.uint64(1) << np.arange(width, dtype=np.uint64)
    return np.asarray((bits.reshape(count, width).astype(np.uint64) * weights).sum(axis=1, dtype=np.uint64))

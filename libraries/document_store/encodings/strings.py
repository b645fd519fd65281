"""Encode byte strings with shared prefixes (Parquet's DELTA_BYTE_ARRAY), or plain, each string after its length.

The C kernel writes the same bytes. Decoding never produces more text than the given maximum.
"""

from __future__ import annotations

import struct

import numpy as np

from libraries.document_store.encodings import delta
from libraries.document_store.encodings.bits import ByteReader
from libraries.document_store.errors import CorruptError
from libraries.document_store.shredding.columns import Texts

_LENGTH = struct.Struct("<I")


def encode_delta(texts: Texts) -> bytes:
    """Encode the length of the prefix that each string shares with the previous string, then the lengths of all
    suffixes, then the suffixes."""
    prefixes, suffixes, before = [], [], b""
    for text in texts.tolist():
        shared = _shared(before, text)
        prefixes.append(shared)
        suffixes.append(text[shared:])
        before = text
    lengths = np.fromiter(map(len, suffixes), np.int64, len(suffixes))
    return delta.encode(np.array(prefixes, np.int64)) + delta.encode(lengths) + b"".join(suffixes)


def _shared(first: bytes, second: bytes) -> int:
    longest = min(len(first), len(second))
    if first[:longest] == second[:longest]:
        return longest
    low, high = 0, longest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if first[low:middle] == second[low:middle] else (low, middle)
    return low


def decode_delta(reader: ByteReader, count: int, most_bytes: int) -> Texts:
    """Decode all remaining bytes to `count` strings. Raises CorruptError."""
    prefixes, lengths = delta.decode(reader, count).tolist(), delta.decode(reader, count).tolist()
    if len(prefixes) != count or len(lengths) != count:
        raise CorruptError(
            f"a column's chunk has {len(prefixes)} prefixes and {len(lengths)} lengths for {count} texts"
        )
    texts, before, total = [], b"", 0
    for shared, length in zip(prefixes, lengths, strict=True):
        if not 0 <= shared <= len(before):
            raise CorruptError("a column's chunk has a text whose shared prefix is longer than the previous text")
        before = before[:shared] + reader.take(length)
        total += len(before)
        if total > most_bytes:
            raise CorruptError(f"a column's chunk has more than {most_bytes} bytes of text")
        texts.append(before)
    return Texts.of(texts)


def encode_plain(texts: Texts) -> bytes:
    """Encode each string after its length of 4 bytes."""
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts.tolist())


def decode_plain(reader: ByteReader, count: int) -> Texts:
    """Decode `count` strings. Raises CorruptError."""
    return Texts.of([bytes(reader.take(_LENGTH.unpack(reader.take(4))[0])) for _ in range(count)])

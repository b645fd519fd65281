"""Leaves of whole rows, for `vector` and `open`. A leaf has as many rows as fit on a page; a larger row uses several
pages.

    16 bytes  numbers of entries, of anti-matter entries, of bytes of the keys, and of bytes of all rows
              the keys; then, if there is anti-matter, one bit per entry (highest bit first)
              4 bytes per row: its end, counted from the start of the first row
              the rows, as encoded by the layout

Anti-matter are deletion markers. Numbers are little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.keys import decode_keys, encode_keys
from libraries.document_store.layouts.layout import PAGE_BYTES, KeyKind, Keys

_HEADER = struct.Struct("<4I")
_END_BYTES = 4
ENTRY_BYTES = _END_BYTES + 1
"""Maximum bytes of an entry in addition to its key and its row."""
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True)
class RowLeaf:
    """A decoded leaf. Records are the entries not marked as deleted. Record i is `rows[ends[i - 1] : ends[i]]`."""

    keys: Keys
    antimatter: np.ndarray
    ends: np.ndarray
    rows: memoryview

    def pieces(self, records: np.ndarray | None = None) -> list[memoryview]:
        """Return the encoded rows of these records, by default of all."""
        ends = self.ends.tolist()
        starts = [0, *ends[:-1]]
        chosen = range(len(ends)) if records is None else records.tolist()
        return [self.rows[starts[record] : ends[record]] for record in chosen]


def antimatter_bits(antimatter: np.ndarray) -> bytes:
    """Return one bit per entry, set for deleted keys. Return no bytes if no entry is marked as deleted."""
    return np.packbits(antimatter).tobytes() if antimatter.any() else b""


def antimatter_of(count: int, antimatter_count: int, bits: memoryview) -> np.ndarray:
    """Decode `antimatter_bits`. Raises CorruptError if the number of set bits is not `antimatter_count`."""
    if antimatter_count == 0 and len(bits) == 0:
        return np.zeros(count, np.bool_)
    if len(bits) != (count + 7) // 8:
        raise CorruptError(
            f"the anti-matter bits of {count} entries need {(count + 7) // 8} bytes, but have {len(bits)}"
        )
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(np.bool_)
    if int(flags.sum()) != antimatter_count or antimatter_count == 0:
        raise CorruptError(f"{int(flags.sum())} entries are anti-matter, expected {antimatter_count}")
    return flags


def encode_leaf(keys: Keys, antimatter: np.ndarray, rows: Sequence[bytes | memoryview]) -> list[bytes]:
    """Return the pages of one leaf. `rows` has a row for each entry that is not marked as deleted."""
    key_bytes = encode_keys(keys)
    ends = np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)))
    rows_bytes = int(ends[-1]) if len(ends) else 0
    header = _HEADER.pack(len(keys), int(antimatter.sum()), len(key_bytes), rows_bytes)
    leaf = b"".join((header, key_bytes, antimatter_bits(antimatter), ends.astype("<u4").tobytes(), *rows))
    return [leaf[start : start + PAGE_BYTES] for start in range(0, len(leaf), PAGE_BYTES)]


def decode_leaf(kind: KeyKind, pages: Sequence[bytes]) -> RowLeaf:
    """Decode a leaf from its pages. Raises CorruptError if they are malformed."""
    data = memoryview(pages[0] if len(pages) == 1 else b"".join(pages))
    if len(data) < HEADER_BYTES:
        raise CorruptError(f"a leaf has {len(data)} bytes, but its header needs {HEADER_BYTES}")
    count, antimatter_count, key_bytes, rows_bytes = _HEADER.unpack_from(data)
    if not antimatter_count <= count:
        raise CorruptError(f"a leaf declares {antimatter_count} anti-matter entries, but {count} entries in all")
    records = count - antimatter_count
    bits_bytes = (count + 7) // 8 if antimatter_count else 0
    if HEADER_BYTES + key_bytes + bits_bytes + _END_BYTES * records + rows_bytes != len(data):
        raise CorruptError(f"a leaf has {len(data)} bytes, which does not match the sizes that its header declares")
    bits_start = HEADER_BYTES + key_bytes
    ends_start = bits_start + bits_bytes
    rows_start = len(data) - rows_bytes
    ends = np.frombuffer(data[ends_start:rows_start], "<u4").astype(np.int64)
    if (int(ends[-1]) if records else 0) != rows_bytes or bool(np.any(ends[1:] < ends[:-1])):
        raise CorruptError(f"the row ends of a leaf do not match its {rows_bytes} bytes of rows")
    return RowLeaf(
        decode_keys(kind, count, data[HEADER_BYTES:bits_start]),
        antimatter_of(count, antimatter_count, data[bits_start:ends_start]),
        ends,
        data[rows_start:],
    )

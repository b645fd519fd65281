"""Two faults in files of the F3 authors' program: how to recognize them, and their messages (specification 12).

An EncUnit is the smallest part of a column that can be decoded. An IOUnit is a group of EncUnits of a column that were
written together. In files with several row groups, the program marks IOUnits with local dictionaries as having no
dictionary. With a codec, it marks EncUnits of shared dictionaries as compressed but stores them raw. Such files are
read if the bytes allow no other interpretation.
"""

from __future__ import annotations

from collections.abc import Sequence

from libraries.f3.container import metadata
from libraries.f3.container.compression import CODECS
from libraries.f3.container.metadata import Chunk, EncUnit

_CODEC_NAMES = {number: name for name, number in CODECS.items()}
_ZSTD_FRAME = bytes.fromhex("28b52ffd")
_ZSTD_SKIPPABLE = bytes.fromhex("2a4d18")
"""Bytes 2 to 4 of a skippable zstd frame. The upper four bits of byte 1 are 5."""
FRONT_BYTES = 4
"""Number of bytes at the start of a unit that `is_no_packed_unit` needs."""


def may_be_pairs(chunk: Chunk) -> bool:
    """Return whether an IOUnit that is marked as having no dictionary could consist of pairs of a dictionary and its
    indices.

    This is possible only if the indices of all pairs are together as many as the rows of the IOUnit, and if no
    dictionary has more entries than its pair has indices.
    """
    if chunk.scope != metadata.NO_DICTIONARY or len(chunk.units) % 2:
        return False
    entries, indices = ([unit.rows for unit in chunk.units[first::2]] for first in (0, 1))
    return 0 < chunk.rows == sum(indices) and all(few <= many for few, many in zip(entries, indices, strict=True))


def wrong_rows(chunk: Chunk, rows: int) -> str:
    """Return the message for an IOUnit whose units have `rows` rows, which is not the number of rows that the IOUnit
    states."""
    if not may_be_pairs(chunk):
        return f"the IOUnit at {chunk.offset} has {chunk.rows} rows, but its units have {rows}"
    return (
        f"the IOUnit at {chunk.offset} is marked as having no dictionary, and its units have {rows} rows instead of "
        f"{chunk.rows}. The rows of every second unit add up to {chunk.rows}, as in pairs of a dictionary and its "
        f"indices, but the column's first row group has no such pairs; {_PAIRS_AGAIN}"
    )


def wrong_pair(start: int) -> str:
    """Return the message for an EncUnit that does not belong to the dictionary that seems to precede it."""
    return (
        f"EncUnit at {start}: does not hold indices into the EncUnit before it. Its IOUnit is marked as having no "
        f"dictionary, but has the row counts of such pairs; {_PAIRS_AGAIN}"
    )


def unmarked_pairs(what: str, chunks: Sequence[Chunk]) -> str:
    """Return the message for a column that can be read although these IOUnits are wrongly marked as having no
    dictionary."""
    return (
        f"{what}: {len(chunks)} IOUnits, the first at {chunks[0].offset}, are marked as having no dictionary but hold "
        "pairs of a dictionary and its indices; they are read as pairs"
    )


def is_no_packed_unit(front: bytes, unit: EncUnit) -> bool:
    """Return whether the first bytes of a unit prove that it is not compressed, although it is marked as compressed.

    For zstd, the proof is a missing magic number. For LZ4, the proof is a block longer than any compressed form of the
    uncompressed length that the unit states. A raw blob of the built-in encoding is always recognized.
    """
    if unit.compression == metadata.ZSTD:
        return front != _ZSTD_FRAME and not (front[1:] == _ZSTD_SKIPPABLE and front[0] >> 4 == 5)
    if unit.compression == metadata.LZ4:
        unpacked = int.from_bytes(front, "little")
        return unit.size_bytes - FRONT_BYTES > unpacked + unpacked // 255 + 16
    return False


def not_unpacked(data: memoryview, unit: EncUnit, why: str) -> str:
    """Return the message for a unit of a shared dictionary that cannot be decompressed. `why` is the reason."""
    front = bytes(data[:FRONT_BYTES])
    # A broken zstd frame still begins with the magic number. LZ4 blocks have hardly any such mark.
    if unit.compression == metadata.ZSTD and not is_no_packed_unit(front, unit):
        return why
    begins = f"is marked {_marked(unit)} and {f'begins with {front.hex()}' if front else 'is empty'}"
    allowed = f", but a zstd frame begins with {_ZSTD_FRAME.hex()}" if unit.compression == metadata.ZSTD else ""
    return f"{why}; the EncUnit of a shared dictionary {begins}{allowed}; {_RAW_AGAIN}"


def raw_units(units: Sequence[tuple[int, EncUnit]], among: int) -> str:
    """Return the message for shared dictionaries with raw units. `units` lists the offset of each raw unit with the
    unit; `among` is the number of examined units."""
    start, first = units[0]
    return (
        f"shared dictionaries: {len(units)} of {among} examined EncUnits, the first at {start}, are marked compressed "
        f"(the first as {_marked(first)}) but are not; those that are blobs of the built-in encoding are read as blobs"
    )


def _marked(unit: EncUnit) -> str:
    return str(_CODEC_NAMES[unit.compression])


_PAIRS_AGAIN = (
    "the F3 authors' writer makes this error in local dictionaries from the second row group on: write the file again "
    "with one row group, or without local dictionaries"
)
_RAW_AGAIN = (
    "the F3 authors' writer stores dictionaries uncompressed despite this mark, and then only blobs of the built-in "
    "encoding can be read: write the file again without a codec"
)

"""Two faults of the original's writer: how a file shows them, and what is said of them (specification 12).

In several row groups it marks IOUnits of local dictionaries as if they had none; with a codec it marks the units of
shared dictionaries as packed and stores them raw. Such files are read where nothing else can be meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from libraries.f3.container import metadata
from libraries.f3.container.compression import CODECS
from libraries.f3.container.metadata import Chunk, EncUnit

_CODEC_NAMES = {number: name for name, number in CODECS.items()}
_ZSTD_FRAME = bytes.fromhex("28b52ffd")
_ZSTD_SKIPPABLE = bytes.fromhex("2a4d18")
"""What follows the first byte, of which the upper half is 5, of a frame that is passed over."""
FRONT_BYTES = 4
"""Of a unit: what `is_no_packed_unit` looks at."""


def may_be_pairs(chunk: Chunk) -> bool:
    """Whether an IOUnit that is marked as without a dictionary has the counts of pairs of a dictionary and its indices:
    only the indices' rows are its own, and no dictionary has more entries than there are indices."""
    if chunk.scope != metadata.NO_DICTIONARY or len(chunk.units) % 2:
        return False
    entries, indices = ([unit.rows for unit in chunk.units[first::2]] for first in (0, 1))
    return 0 < chunk.rows == sum(indices) and all(few <= many for few, many in zip(entries, indices, strict=True))


def wrong_rows(chunk: Chunk, rows: int) -> str:
    """What is said of an IOUnit whose units have other rows than it has."""
    if not may_be_pairs(chunk):
        return f"the units of an IOUnit of {chunk.rows} rows have {rows}"
    return (
        f"the IOUnit at {chunk.offset} is marked as without a dictionary, and its units have {rows} rows where "
        f"{chunk.rows} are allowed. Every second unit together has these, as in pairs of a dictionary and its indices, "
        f"which the column's first row group does not have; {_PAIRS_AGAIN}"
    )


def wrong_pair(start: int) -> str:
    """What is said of an EncUnit that is not of the dictionary that seems to stand before it."""
    return (
        f"EncUnit at {start}: does not hold indices into the EncUnit before it; its IOUnit is marked as without a "
        f"dictionary, and has the rows of pairs of both; {_PAIRS_AGAIN}"
    )


def unmarked_pairs(what: str, chunks: Sequence[Chunk]) -> str:
    """What is said of a column that is read although these IOUnits of it are marked wrongly."""
    return (
        f"{what}: {len(chunks)} IOUnits, the first at {chunks[0].offset}, are marked as without a dictionary and hold "
        "pairs of a dictionary and its indices; they are read as such"
    )


def is_no_packed_unit(front: bytes, unit: EncUnit) -> bool:
    """Whether the first bytes say that a unit is certainly not packed as it is marked: no magic number of zstd, or an
    LZ4 block with more bytes than any has of that length. A raw blob of the built-in encoding is always told."""
    if unit.compression == metadata.ZSTD:
        return front != _ZSTD_FRAME and not (front[1:] == _ZSTD_SKIPPABLE and front[0] >> 4 == 5)
    if unit.compression == metadata.LZ4:
        unpacked = int.from_bytes(front, "little")
        return unit.size_bytes - FRONT_BYTES > unpacked + unpacked // 255 + 16
    return False


def not_unpacked(data: memoryview, unit: EncUnit, why: str) -> str:
    """What is said of a shared dictionary's unit that cannot be unpacked, and why."""
    front = bytes(data[:FRONT_BYTES])
    # A broken frame of zstd is a frame all the same; of LZ4 hardly anything tells.
    if unit.compression == metadata.ZSTD and not is_no_packed_unit(front, unit):
        return why
    begins = f"is marked {_marked(unit)} and begins with {front.hex()}"
    allowed = f", a frame with {_ZSTD_FRAME.hex()}" if unit.compression == metadata.ZSTD else ""
    return f"{why}; the EncUnit of a shared dictionary {begins}{allowed}; {_RAW_AGAIN}"


def raw_units(units: Sequence[tuple[int, EncUnit]], among: int) -> str:
    """What is said of shared dictionaries of which so many units were looked at: these, and where they begin, are not
    packed."""
    start, first = units[0]
    return (
        f"shared dictionaries: {len(units)} of {among} EncUnits that were looked at, the first at {start}, are marked "
        f"{_marked(first)} and are not packed so; those that are blobs of the built-in encoding are read as such"
    )


def _marked(unit: EncUnit) -> str:
    return str(_CODEC_NAMES[unit.compression])


_PAIRS_AGAIN = (
    "the original's writer marks local dictionaries so from the second row group on: write the file again with one row "
    "group, or without local dictionaries"
)
_RAW_AGAIN = (
    "the original's writer stores dictionaries raw under that mark, of which only blobs of the built-in encoding are "
    "read: write the file again without a codec"
)

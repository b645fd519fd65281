"""Choose the rows of a sample. A sample consists of blocks of contiguous rows, which preserve order and repetitions.

This module handles only row numbers. It does not depend on files or tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BLOCKS = 16
"""Number of blocks in a sample, if the sample is smaller than the table."""


@dataclass(frozen=True)
class Block:
    """Contiguous rows. `start` is the index of the first row, counted from 0, and `rows` is the number of rows."""

    start: int
    rows: int

    @property
    def end(self) -> int:
        """Return the index of the first row after the block."""
        return self.start + self.rows


def blocks(input_rows: int, wanted_rows: int) -> tuple[Block, ...]:
    """Return the blocks of a sample of `wanted_rows` rows (at least 1) in ascending order.

    If the table has at most `wanted_rows` rows, one block with all rows is returned. The blocks are evenly spread, and
    their lengths differ by at most one row. The first block begins with the table's first row, and the last block ends
    with the table's last row.
    """
    if input_rows <= wanted_rows:
        return (Block(0, input_rows),) if input_rows else ()
    count = min(BLOCKS, wanted_rows)
    spare = input_rows - wanted_rows
    found: list[Block] = []
    taken = 0
    for number in range(count):
        rows = wanted_rows // count + (number < wanted_rows % count)
        before = spare * number // (count - 1) if count > 1 else 0
        found.append(Block(taken + before, rows))
        taken += rows
    return tuple(found)


def shortened(whole: Sequence[Block], share: float) -> tuple[Block, ...]:
    """Return the blocks without their last rows.

    `share` (above 0, at most 1) is the share of rows that each block keeps. Each block keeps at least one row.
    """
    return tuple(Block(block.start, max(1, round(block.rows * share))) for block in whole)


def places(whole: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks with their row numbers in the sample, instead of those in the table. In the sample, the blocks
    follow each other without gaps."""
    found: list[Block] = []
    start = 0
    for block in whole:
        found.append(Block(start, block.rows))
        start += block.rows
    return tuple(found)


def overlaps(whole: Sequence[Block], start: int, rows: int) -> Iterator[Block]:
    """Yield the parts of the blocks that are within a range: `rows` rows of the table, beginning with row `start`.

    The parts are counted from the beginning of the range, so its first row is 0.
    """
    for block in whole:
        first, end = max(block.start, start), min(block.end, start + rows)
        if first < end:
            yield Block(first - start, end - first)


def row_at(whole: Sequence[Block], place: int) -> int:
    """Return the row number in the table of the row at index `place` of the sample.

    Raises IndexError if the index is out of range.
    """
    for block, lies in zip(whole, places(whole), strict=True):
        if place < lies.end:
            return block.start + place - lies.start
    raise IndexError(place)

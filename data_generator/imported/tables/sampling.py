"""Choose the rows of a sample. They are contiguous blocks, so that runs of equal values and sortedness are preserved.

This module handles only numbers; it does not depend on files or tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BLOCKS = 16
"""Number of blocks in the sample of a table that is larger than its sample."""


@dataclass(frozen=True)
class Block:
    """Contiguous rows: `rows` of them from `start`, counted from 0."""

    start: int
    rows: int

    @property
    def end(self) -> int:
        """Return the first row after it."""
        return self.start + self.rows


def blocks(input_rows: int, wanted_rows: int) -> tuple[Block, ...]:
    """Return the blocks of a sample of `wanted_rows` rows (at least 1) in order; the whole table if it has no more.

    Their lengths differ by at most one row, and they are evenly spread. The first block begins with the table's first
    row, and the last block ends with the table's last row.
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
    """Return each block cut to its first `share` (over 0, at most 1), with at least one row."""
    return tuple(Block(block.start, max(1, round(block.rows * share))) for block in whole)


def places(whole: Sequence[Block]) -> tuple[Block, ...]:
    """Return the positions of the blocks in the sample, one after the other."""
    found: list[Block] = []
    start = 0
    for block in whole:
        found.append(Block(start, block.rows))
        start += block.rows
    return tuple(found)


def overlaps(whole: Sequence[Block], start: int, rows: int) -> Iterator[Block]:
    """Yield the parts of the blocks within the `rows` rows from `start`, counted from `start`."""
    for block in whole:
        first, end = max(block.start, start), min(block.end, start + rows)
        if first < end:
            yield Block(first - start, end - first)


def row_at(whole: Sequence[Block], place: int) -> int:
    """Return the row of the table at index `place` of the sample. Raises IndexError if the index is out of range."""
    for block, lies in zip(whole, places(whole), strict=True):
        if place < lies.end:
            return block.start + place - lies.start
    raise IndexError(place)

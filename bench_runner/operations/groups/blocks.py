"""Filters that meet a known share of the blocks of a table, and their answers.

A filter follows from the data alone: from a column of which each block has values of its own. Where these ascend from
block to block, what is asked lies beside each other, *clustered*; where they do not, it lies *scattered*. It knows
Arrow's columns, and no engine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapters.errors import RefusedData
from adapters.offers import Offers, Sifts
from adapters.predicate import Kind, Predicate
from data_generator.cache import read_table

CLUSTERED, SCATTERED = "clustered", "scattered"
FEW_BLOCKS = 10
"""Of fewer blocks their order tells nothing."""
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """A column whose values tell blocks apart, with the first value of each block in ascending order."""

    column: str
    type: pa.DataType
    lows: Integers
    end: int
    """Above the largest value."""

    @property
    def count(self) -> int:
        """Of blocks."""
        return len(self.lows)

    def condition(self, first: int, blocks: int) -> Predicate:
        """Met by all rows of so many blocks from the one of this rank on, and by no others; by none where `blocks` is
        0: then by values below all of them, other ones for each rank."""
        if blocks == 0:
            low, high = int(self.lows[0]) - first - 1, int(self.lows[0]) - first
        else:
            behind = first + blocks
            low, high = int(self.lows[first]), int(self.lows[behind]) if behind < self.count else self.end
        values = tuple(pa.scalar(value, pa.int64()).cast(self.type).as_py() for value in (low, high))
        return Predicate(self.column, Kind.RANGE, values)


@lru_cache(maxsize=1)
def blocks_of(dataset: Path, rows: int, block_rows: int, place: str) -> Blocks:
    """The first column whose values tell blocks of so many rows apart, and lie so. Raises RefusedData without one."""
    schema = read_table(dataset, 0).schema
    starts = np.arange(0, rows, block_rows)
    for field in schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type) or pa.types.is_date32(field.type)):
            continue
        column = read_table(dataset, rows, [field.name]).column(0)
        if column.null_count or not rows:
            continue
        values = integers(column)
        least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        # Neighbours may share a value where the table is sorted by it; two blocks of which one is all of it may not.
        ascending = bool((most[:-1] <= least[1:]).all() and (np.diff(least) > 0).all())
        order = np.argsort(least)
        apart = bool((most[order][:-1] < least[order][1:]).all())
        # Few blocks, as those of a pilot round, may ascend by chance: then the rows within tell that nothing is sorted.
        scattered = apart and (not ascending or (len(starts) < FEW_BLOCKS and bool((np.diff(values) < 0).any())))
        if ascending if place == CLUSTERED else scattered:
            return Blocks(field.name, field.type, least[order], int(most.max()) + 1)
    raise RefusedData(
        f"no column has other values in each block of {block_rows:,} rows that lie {place}; scan[selectivity=0.01] "
        "asks for a share of the rows"
    )


def conditions(blocks: Blocks, share: float, repetitions: int, seed: str) -> Iterator[Predicate]:
    """So many filters, each met by this share of the blocks, and by one at least unless it is 0; by other blocks each
    while there are enough."""
    met = max(round(share * blocks.count), 1) if share else 0
    if not met:
        yield from (blocks.condition(number, 0) for number in range(repetitions))
        return
    draw = random.Random(seed)
    left: list[int] = []
    for _ in range(repetitions):
        if not left:
            left = list(range(blocks.count // met))
            draw.shuffle(left)
        yield blocks.condition(left.pop() * met, met)


def everything(blocks: Blocks) -> Predicate:
    """Met by all rows."""
    return blocks.condition(0, blocks.count)


def given_rows(column: pa.ChunkedArray, asked: Predicate, offers: Offers) -> Integers:
    """The numbers of the rows that an engine gives which sifts so much, ascending."""
    rows = len(column)
    if offers.sifts is Sifts.NOTHING:
        return np.arange(rows)
    values = integers(column)
    low, high = (int(pa.scalar(value, column.type).cast(pa.int64()).as_py()) for value in asked.values)
    if offers.sifts is Sifts.ROWS:
        return np.flatnonzero((values >= low) & (values < high))
    assert offers.group_rows is not None
    starts = np.arange(0, rows, offers.group_rows)
    may = (np.minimum.reduceat(values, starts) < high) & (np.maximum.reduceat(values, starts) >= low)
    return np.flatnonzero(np.repeat(may, offers.group_rows)[:rows])


def integers(column: pa.ChunkedArray) -> Integers:
    """Whole numbers and points in time as int64, in the column's own unit."""
    numbers: Integers = (
        column.cast(pa.int32()).cast(pa.int64()).to_numpy()
        if pa.types.is_date32(column.type)
        else (column.cast(pa.int64()).to_numpy())
    )
    return numbers

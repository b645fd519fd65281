"""Filters that meet a known share of the blocks of a table, and their answers.

A filter follows from the data alone: from a column of which each block has values of its own. Where these ascend from
block to block, what is asked lies beside each other, *clustered*; where they do not, it lies *scattered*.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapters.errors import RefusedData
from adapters.offers import Offers, Sifts
from adapters.predicate import Kind, Predicate
from data_generator.cache import read_table

CLUSTERED, SCATTERED = "clustered", "scattered"
MOST_BELOW = 64
"""Conditions that no row meets are so many at most, each of a value below all: more than a block has calls."""
FEW_BLOCKS = 10
"""Of fewer blocks their order tells nothing."""
MOST_OFF = 0.05
"""A share that whole blocks cannot give nearer than this part of it is not asked for."""
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """A column whose values tell blocks apart, with the first value of each block in ascending order."""

    column: str
    type: pa.DataType
    lows: Integers
    end: int
    """Above the largest value."""
    shared: frozenset[int] = frozenset()
    """The ranks of blocks whose least value the block before ends with."""

    @property
    def count(self) -> int:
        """Of blocks."""
        return len(self.lows)

    def condition(self, first: int, blocks: int) -> Predicate:
        """Met by the rows of so many blocks from the one of this rank on, but for those of a value that a block beside
        them has too, and by no others; by none where `blocks` is 0: then by values below all of them, other ones for
        each rank."""
        if blocks == 0:
            low, high = int(self.lows[0]) - first - 1, int(self.lows[0]) - first
        else:
            low, high = self.bounds(first, blocks)
        return Predicate(self.column, Kind.RANGE, _values((low, high), self.type))

    def bounds(self, first: int, blocks: int) -> tuple[int, int]:
        """From which value on, and below which, those of so many blocks lie."""
        behind = first + blocks
        low = int(self.lows[first]) + (first in self.shared)
        return low, int(self.lows[behind]) if behind < self.count else self.end


def _values(numbers: Sequence[int], of: pa.DataType) -> tuple[Any, ...]:
    # Days are no 64 bits to Arrow.
    return tuple(pa.array(numbers, pa.int32() if pa.types.is_date32(of) else pa.int64()).cast(of).to_pylist())


def _can_be(numbers: Sequence[int], of: pa.DataType) -> bool:
    try:
        return None not in _values(numbers, of)
    except (pa.ArrowException, OverflowError, ValueError):
        return False


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
        values = _numbers(column)
        # What lies beside all values is asked for too.
        if values is None or not _can_be((int(values.min()) - MOST_BELOW, int(values.max()) + 1), field.type):
            continue
        least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        # Neighbours may share a value where the table is sorted by it, as long as each block has others too.
        shared = np.append(False, most[:-1] == least[1:])
        ends = np.append(least[1:], most[-1] + 1)
        sizes = np.diff(np.append(starts, len(values)))
        own = (values >= np.repeat(least + shared, sizes)) & (values < np.repeat(ends, sizes))
        ascending = bool((most[:-1] <= least[1:]).all() and np.logical_or.reduceat(own, starts).all())
        order = np.argsort(least)
        apart = bool((most[order][:-1] < least[order][1:]).all())
        # Few blocks, as those of a pilot round, may ascend by chance: then the rows within tell that nothing is sorted.
        scattered = apart and (not ascending or (len(starts) < FEW_BLOCKS and bool((np.diff(values) < 0).any())))
        if ascending if place == CLUSTERED else scattered:
            ties = frozenset(np.flatnonzero(shared).tolist()) if place == CLUSTERED else frozenset()
            return Blocks(field.name, field.type, least[order], int(most.max()) + 1, ties)
    raise RefusedData(
        f"no column has other values in each block of {block_rows:,} rows that lie {place}; scan[selectivity=0.01] "
        "asks for a share of the rows"
    )


def met_by(share: float, blocks: int) -> int:
    """How many of so many blocks a share is: whole ones, and one at least unless it is 0."""
    return max(round(share * blocks), 1) if share else 0


def cannot_give(share: float, rows: int, block_rows: int) -> str | None:
    """Why whole blocks of a table are no such share of it; None where they are, nearly enough."""
    blocks = -(-rows // block_rows)
    off = abs(met_by(share, blocks) / blocks - share) if blocks else share
    if off <= MOST_OFF * share:
        return None
    told = f"{share * 100:g} % of {blocks:,} block{'s' * (blocks != 1)} of {block_rows:,} rows"
    return f"{told} is no whole number of them; take {round(1 / share) * block_rows:,} rows or more"


def conditions(blocks: Blocks, share: float, repetitions: int, seed: str) -> Iterator[Predicate]:
    """So many filters, each met by this share of the blocks, and by one at least unless it is 0; by other blocks each
    while there are enough."""
    met = met_by(share, blocks.count)
    if not met:
        yield from (blocks.condition(number, 0) for number in range(repetitions))
        return
    for first in _firsts(blocks.count, met, repetitions, random.Random(seed)):
        yield blocks.condition(first, met)


def of_values(
    blocks: Blocks, column: pa.ChunkedArray, share: float, values: int, repetitions: int, seed: str
) -> Iterator[Predicate]:
    """So many lists of `values` values, spread evenly over this share of the blocks, so that a part of the rows of each
    meets the condition. Raises RefusedData for a share of 0, for fewer values than blocks, and where a block has not
    twice as many values as are asked of it."""
    met = met_by(share, blocks.count)
    if not 0 < met <= values:
        raise RefusedData(f"{values} values are asked of {met} blocks: each must have one of them at least")
    known = np.unique(integers(column))
    draw = random.Random(seed)
    for first in _firsts(blocks.count, met, repetitions, draw):
        asked: list[int] = []
        for place in range(met):
            low, high = blocks.bounds(first + place, 1)
            own = known[np.searchsorted(known, low) : np.searchsorted(known, high)]
            wanted = (place + 1) * values // met - place * values // met
            if len(own) < 2 * wanted:
                raise RefusedData(f"{wanted} of {len(own)} values of a block would be more than half of them")
            asked += draw.sample(own.tolist(), wanted)
        yield Predicate(blocks.column, Kind.IN, _values(sorted(asked), blocks.type))


def _firsts(count: int, met: int, repetitions: int, draw: random.Random) -> Iterator[int]:
    """Ranks of blocks from which on `met` of them are asked for."""
    left: list[int] = []
    for _ in range(repetitions):
        if not left:
            left = list(range(count // met))
            draw.shuffle(left)
        yield left.pop() * met


def everything(blocks: Blocks) -> Predicate:
    """Met by all rows."""
    return blocks.condition(0, blocks.count)


def given_rows(column: pa.ChunkedArray, asked: Predicate, offers: Offers) -> Integers:
    """The numbers of the rows that an engine gives which sifts so much, ascending."""
    rows = len(column)
    if offers.sifts is Sifts.NOTHING:
        return np.arange(rows)
    values = integers(column)
    bounds = integers(pa.chunked_array([pa.array(asked.values, column.type)]))
    # Groups are met in which a value of the range, or of the list, may lie by their least and their largest.
    if offers.sifts is Sifts.ROWS and asked.kind is Kind.IN:
        # Of a list few rows lie between its ends: looking all of them up took half a second.
        between = np.flatnonzero((values >= bounds.min()) & (values <= bounds.max()))
        return between[np.isin(values[between], bounds)]
    if offers.sifts is Sifts.ROWS:
        return np.flatnonzero((values >= bounds[0]) & (values < bounds[1]))
    assert offers.group_rows is not None
    starts = np.arange(0, rows, offers.group_rows)
    least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    if asked.kind is Kind.IN:
        listed = np.sort(bounds)
        may = np.searchsorted(listed, most, side="right") > np.searchsorted(listed, least)
    else:
        may = (least < bounds[1]) & (most >= bounds[0])
    return np.flatnonzero(np.repeat(may, offers.group_rows)[:rows])


def _numbers(column: pa.ChunkedArray) -> Integers | None:
    """None where 64 bits with a sign do not hold them."""
    try:
        return integers(column)
    except pa.ArrowInvalid:
        return None


def integers(column: pa.ChunkedArray) -> Integers:
    """Whole numbers and points in time as int64, in the column's own unit."""
    numbers: Integers = (
        column.cast(pa.int32()).cast(pa.int64()).to_numpy()
        if pa.types.is_date32(column.type)
        else (column.cast(pa.int64()).to_numpy())
    )
    return numbers

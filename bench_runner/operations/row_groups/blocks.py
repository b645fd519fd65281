"""Choose conditions that are met in a known share of a table's blocks and nowhere else, and compute which rows meet
them.

A block is a group of consecutive rows. A condition depends only on the data. It tests a column in which each block has
values that no other block has. If these values ascend from block to block, the blocks that meet a condition are
neighbours; such blocks are called *clustered*. Otherwise they are called *scattered*.
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
"""Number of unused values below the smallest value of the column, for conditions that no row meets. Each call of a
sample needs another such value, and no sample has as many calls."""
FEW_BLOCKS = 10
"""If a table has fewer blocks than this, the order of the blocks does not show whether the column is sorted."""
MOST_OFF = 0.05
"""Largest relative difference between the share wanted and the nearest share that whole blocks can give."""
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """A column in which each block has its own range of values. `lows` has the smallest value of each block, in
    ascending order. The position of a block in `lows` is its rank."""

    column: str
    type: pa.DataType
    lows: Integers
    end: int
    """A value above the largest value of the column."""
    shared: frozenset[int] = frozenset()
    """Ranks of the blocks whose smallest value is also the largest value of the preceding block."""

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.lows)

    def condition(self, first: int, blocks: int) -> Predicate:
        """Return a condition that only rows of certain blocks meet: `blocks` blocks with consecutive ranks, starting at
        rank `first`.

        All rows of these blocks meet the condition, except rows with a value that also occurs in a neighbouring block.
        If `blocks` is 0, no row meets the condition. The condition is then a range below all values of the column. The
        range is different for each rank.
        """
        if blocks == 0:
            low, high = int(self.lows[0]) - first - 1, int(self.lows[0]) - first
        else:
            low, high = self.bounds(first, blocks)
        return Predicate(self.column, Kind.RANGE, _values((low, high), self.type))

    def bounds(self, first: int, blocks: int) -> tuple[int, int]:
        """Return the lower limit and the excluded upper limit of the values in `blocks` blocks with consecutive ranks,
        starting at rank `first`. The lower limit is the smallest value of the first block, or 1 more if the preceding
        block also has this value. The upper limit is the smallest value of the next block, or `end` if there is
        none."""
        behind = first + blocks
        low = int(self.lows[first]) + (first in self.shared)
        return low, int(self.lows[behind]) if behind < self.count else self.end


def _values(numbers: Sequence[int], of: pa.DataType) -> tuple[Any, ...]:
    # Arrow cannot cast 64-bit integers to 32-bit dates.
    return tuple(pa.array(numbers, pa.int32() if pa.types.is_date32(of) else pa.int64()).cast(of).to_pylist())


def _can_be(numbers: Sequence[int], of: pa.DataType) -> bool:
    try:
        return None not in _values(numbers, of)
    except (pa.ArrowException, OverflowError, ValueError):
        return False


@lru_cache(maxsize=1)
def blocks_of(dataset: Path, rows: int, block_rows: int, place: str) -> Blocks:
    """Return the blocks of the first column that has a separate range of values in each block of `block_rows` rows.

    The ranges of two blocks must not overlap. With `place` 'clustered' the ranges must ascend from block to block. With
    'scattered', columns whose ranges ascend are passed over. Raises RefusedData if there is no such column.
    """
    schema = read_table(dataset, 0).schema
    starts = np.arange(0, rows, block_rows)
    for field in schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type) or pa.types.is_date32(field.type)):
            continue
        column = read_table(dataset, rows, [field.name]).column(0)
        if column.null_count or not rows:
            continue
        values = _numbers(column)
        # Conditions may contain values just below and just above the values of the column.
        if values is None or not _can_be((int(values.min()) - MOST_BELOW, int(values.max()) + 1), field.type):
            continue
        least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        # If the table is sorted by the column, neighbouring blocks may share one value, if each block also has values
        # that no other block has.
        shared = np.append(False, most[:-1] == least[1:])
        ends = np.append(least[1:], most[-1] + 1)
        sizes = np.diff(np.append(starts, len(values)))
        own = (values >= np.repeat(least + shared, sizes)) & (values < np.repeat(ends, sizes))
        ascending = bool((most[:-1] <= least[1:]).all() and np.logical_or.reduceat(own, starts).all())
        order = np.argsort(least)
        apart = bool((most[order][:-1] < least[order][1:]).all())
        # A few blocks may ascend by chance. Then the order of the rows within the blocks decides.
        scattered = apart and (not ascending or (len(starts) < FEW_BLOCKS and bool((np.diff(values) < 0).any())))
        if ascending if place == CLUSTERED else scattered:
            ties = frozenset(np.flatnonzero(shared).tolist()) if place == CLUSTERED else frozenset()
            return Blocks(field.name, field.type, least[order], int(most.max()) + 1, ties)
    direction = "ascending" if place == CLUSTERED else "not ascending"
    raise RefusedData(
        f"no column has a separate range of values in each block of {block_rows:,} rows, {direction} from block to "
        f"block, as place={place} requires; to read a share of the rows, use scan[selectivity=0.01]"
    )


def met_by(share: float, blocks: int) -> int:
    """Return the number of blocks that is nearest to this share of `blocks` blocks. It is at least 1, unless the share
    is 0."""
    return max(round(share * blocks), 1) if share else 0


def cannot_give(share: float, rows: int, block_rows: int) -> str | None:
    """Return why no whole number of blocks is close to this share of the table, or None if there is such a number."""
    blocks = -(-rows // block_rows)
    off = abs(met_by(share, blocks) / blocks - share) if blocks else share
    if off <= MOST_OFF * share:
        return None
    part = f"{share * 100:g} % of {blocks:,} block{'s' * (blocks != 1)} of {block_rows:,} rows"
    return f"{part} is not a whole number of blocks; use at least {round(1 / share) * block_rows:,} rows"


def cannot_name(values: int, met: int) -> str | None:
    """Return why a condition cannot name this number of values of `met` blocks, or None if it can."""
    if met == 0:
        return f"values={values} is not possible for a share of 0, because no block contains the values"
    if met > values:
        return f"values={values} is not possible for {met:,} blocks: each block needs at least one value"
    return None


def conditions(blocks: Blocks, share: float, repetitions: int, seed: str) -> Iterator[Predicate]:
    """Yield `repetitions` conditions. The rows that meet a condition are in about this share of the blocks. They are in
    at least one block, unless the share is 0. Blocks are used a second time only when too few unused blocks are left
    for a condition."""
    met = met_by(share, blocks.count)
    if not met:
        yield from (blocks.condition(number, 0) for number in range(repetitions))
        return
    for first in _firsts(blocks.count, met, repetitions, random.Random(seed)):
        yield blocks.condition(first, met)


def of_values(
    blocks: Blocks, column: pa.ChunkedArray, share: float, values: int, repetitions: int, seed: str
) -> Iterator[Predicate]:
    """Yield `repetitions` conditions that test for one of `values` values. The values occur in the column and are
    spread evenly over this share of the blocks.

    Raises RefusedData if the share is 0, if `values` is smaller than the number of blocks, or if the condition would
    take more than half of the values of a block.
    """
    met = met_by(share, blocks.count)
    if reason := cannot_name(values, met):
        raise RefusedData(reason)
    known = np.unique(integers(column))
    draw = random.Random(seed)
    for first in _firsts(blocks.count, met, repetitions, draw):
        asked: list[int] = []
        for place in range(met):
            low, high = blocks.bounds(first + place, 1)
            own = known[np.searchsorted(known, low) : np.searchsorted(known, high)]
            wanted = (place + 1) * values // met - place * values // met
            if len(own) < 2 * wanted:
                raise RefusedData(
                    f"the condition needs {wanted} of the {len(own)} values of a block (allowed: at most half)"
                )
            asked += draw.sample(own.tolist(), wanted)
        yield Predicate(blocks.column, Kind.IN, _values(sorted(asked), blocks.type))


def _firsts(count: int, met: int, repetitions: int, draw: random.Random) -> Iterator[int]:
    """Yield the rank of the first block for each condition. A condition is met in `met` blocks with consecutive ranks,
    starting at this rank."""
    left: list[int] = []
    for _ in range(repetitions):
        if not left:
            left = list(range(count // met))
            draw.shuffle(left)
        yield left.pop() * met


def everything(blocks: Blocks) -> Predicate:
    """Return a condition that all rows meet."""
    return blocks.condition(0, blocks.count)


def given_rows(column: pa.ChunkedArray, asked: Predicate, offers: Offers) -> Integers:
    """Return the ascending numbers of the rows that a correct engine returns for a condition.

    These are all rows, the rows of the row groups that may contain matching rows, or only the matching rows, depending
    on how the engine filters (`offers.sifts`).
    """
    rows = len(column)
    if offers.sifts is Sifts.NOTHING:
        return np.arange(rows)
    values = integers(column)
    bounds = integers(pa.chunked_array([pa.array(asked.values, column.type)]))
    if offers.sifts is Sifts.ROWS and asked.kind is Kind.IN:
        # Look up only the few rows between the smallest and largest listed value. Looking up all rows takes too long.
        between = np.flatnonzero((values >= bounds.min()) & (values <= bounds.max()))
        return between[np.isin(values[between], bounds)]
    if offers.sifts is Sifts.ROWS:
        return np.flatnonzero((values >= bounds[0]) & (values < bounds[1]))
    assert offers.group_rows is not None
    # An engine reads a row group if a value of the range or list can be between the group's minimum and maximum.
    starts = np.arange(0, rows, offers.group_rows)
    least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    if asked.kind is Kind.IN:
        listed = np.sort(bounds)
        may = np.searchsorted(listed, most, side="right") > np.searchsorted(listed, least)
    else:
        may = (least < bounds[1]) & (most >= bounds[0])
    return np.flatnonzero(np.repeat(may, offers.group_rows)[:rows])


def _numbers(column: pa.ChunkedArray) -> Integers | None:
    """Return the column as int64 values, or None if they do not fit."""
    try:
        return integers(column)
    except pa.ArrowInvalid:
        return None


def integers(column: pa.ChunkedArray) -> Integers:
    """Return whole numbers, dates or timestamps as int64, in the column's unit."""
    numbers: Integers = (
        column.cast(pa.int32()).cast(pa.int64()).to_numpy()
        if pa.types.is_date32(column.type)
        else (column.cast(pa.int64()).to_numpy())
    )
    return numbers

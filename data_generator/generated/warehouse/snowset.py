"""A stand-in for Snowset, the queries of a data warehouse over 14 days: 93 columns of its names and kinds.

What decides about reading near the storage is arranged, so that the answer of a filter is known without looking at the
rows. Rows lie in blocks, of which each holds

- times of its own part of the 14 days: what is asked of `createdTime` lies in blocks beside each other, *clustered*;
- warehouses of its own, in an order that is not theirs: what is asked of `warehouseId` lies *scattered* over the table,
  block by block;
- any of the queries' identifiers: what is asked of `queryId` is a row here and there.

All else is drawn value by value as snowset_columns says, by integers alone, so that every machine makes the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_generator.dataset import Dataset, batch_sizes
from data_generator.errors import DataError
from data_generator.generated import columns, streams
from data_generator.generated.warehouse.snowset_columns import COUNTERS, SCHEMA, Counter

VERSION = 1
BATCH_ROWS = 131_072
"""Rows of one batch: about 100 MB."""
BEGIN_US = 1_519_171_200_000_000
"""2018-02-21 00:00 UTC, when the original begins."""
DAYS_14_US = 14 * 24 * 3600 * 10**6
WAREHOUSES = 1_024
"""Warehouses of a block: so many identifiers one behind the other."""
FIRST_WAREHOUSE = 1 << 40
DATABASES = 2_000
MISSING_DATABASE = 0.2
"""Share of the queries that belong to no database."""


@dataclass(frozen=True)
class Blocks:
    """How many rows lie in how many blocks, and in which order those were filled that hold the warehouses."""

    rows: int
    block_rows: int

    @property
    def count(self) -> int:
        """Of blocks; the last one may be shorter."""
        return -(-self.rows // self.block_rows)

    def ranks(self, name: str) -> NDArray[np.int64]:
        """Whose turn each block's warehouses are: int64 of shape (count,), every number once."""
        return streams.permutation(self.count, name, VERSION, "blocks")


@dataclass(frozen=True)
class Condition:
    """`column` < `below` is met by `rows` rows, which are all rows of `blocks` (ascending numbers) and no others."""

    column: str
    below: int
    blocks: tuple[int, ...]
    rows: int


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """`rows` queries in blocks of `block_rows`. Raises DataError for more blocks than can be put into an order."""
    blocks = Blocks(rows, int(parameters["block_rows"]))
    if blocks.count > 1 << 21:
        raise DataError(f"{name}: {blocks.count:,} blocks are too many\n  ask for fewer rows, or for larger blocks")

    def batches() -> Iterator[pa.RecordBatch]:
        ranks = blocks.ranks(name)
        start = 0
        for number, count in enumerate(batch_sizes(rows, BATCH_ROWS)):
            yield _batch(name, number, np.arange(start, start + count), blocks, ranks)
            start += count

    return Dataset(name, rows, SCHEMA, VERSION, batches)


def condition(name: str, rows: int, block_rows: int, share: float, *, scattered: bool) -> Condition:
    """A filter whose rows are known: the share of the blocks that lie in front, or that hold the first warehouses.

    `name` is the data set's canonical spelling. `share` is from 0 to 1; so many blocks, rounded, are met whole. `below`
    of createdTime are microseconds since 1970.
    """
    blocks = Blocks(rows, block_rows)
    met = round(share * blocks.count)
    if scattered:
        chosen = np.flatnonzero(blocks.ranks(name) < met)
        column, below = "warehouseId", FIRST_WAREHOUSE + met * WAREHOUSES
    else:
        chosen = np.arange(met)
        column, below = "createdTime", BEGIN_US + met * block_rows * _share_us(rows)
    sizes = np.minimum(rows - chosen * block_rows, block_rows)
    return Condition(column, below, tuple(chosen.tolist()), int(sizes.sum()))


def _share_us(rows: int) -> int:
    return DAYS_14_US // rows


def _batch(
    name: str, number: int, places: NDArray[np.int64], blocks: Blocks, ranks: NDArray[np.int64]
) -> pa.RecordBatch:
    count = len(places)

    def words(*path: object) -> streams.Words:
        return streams.raw_words(count, name, VERSION, number, *path)

    share_us = _share_us(blocks.rows)
    within_us = (streams.unit_floats(words("createdTime")) * share_us).astype(np.int64)
    created_us = BEGIN_US + places * share_us + within_us
    total_ms = _counted(Counter(1.0, 4, 20), words("durationTotal"), words("durationTotal", "share"))
    warehouses = FIRST_WAREHOUSE + ranks[places // blocks.block_rows] * WAREHOUSES
    drawn = {
        # Two columns of identifiers that ascend would be one column twice.
        "queryId": columns.numbers((words("queryId") >> np.uint64(1)).view(np.int64)),
        "warehouseId": columns.numbers(warehouses + streams.integers(words("warehouseId"), 0, WAREHOUSES - 1)),
        "databaseId": _databases(words("databaseId"), words("databaseId", "nulls")),
        "createdTime": columns.numbers(created_us).cast(pa.timestamp("us")),
        "endTime": columns.numbers(created_us + total_ms * 1_000).cast(pa.timestamp("us")),
        "durationTotal": columns.numbers(total_ms),
    }
    for label, counter in COUNTERS.items():
        valid = None
        if counter.nulls:
            valid = streams.unit_floats(words(label, "nulls")) >= counter.nulls
        values = columns.numbers(_counted(counter, words(label), words(label, "share")), valid)
        drawn[label] = values.cast(counter.type)
    return pa.RecordBatch.from_arrays([drawn[label] for label in SCHEMA.names], schema=SCHEMA)


def _counted(counter: Counter, words: streams.Words, shares: streams.Words) -> NDArray[np.int64]:
    """Whole numbers of which each power of two is as frequent: what bytes and times of queries are like, nearly.

    By shifts alone: logarithms differ from one machine's library to the next.
    """
    powers = streams.integers(shares << np.uint64(32), counter.low, counter.high - 1).view(np.uint64)
    ones = np.uint64(1) << powers
    values = ones | (words & (ones - np.uint64(1)))
    # Of the word for the share the upper half decides whether, the lower half how large.
    if counter.share < 1:
        values[streams.unit_floats(shares & ~np.uint64(0xFFFFFFFF)) >= counter.share] = 0
    return values.view(np.int64)


def _databases(words: streams.Words, nulls: streams.Words) -> pa.Array:
    """Identifiers of 19 digits, as texts: a few thousand of them, and none for some queries."""
    known = [str(10**18 + number * 4_398_046_511_093) for number in range(DATABASES)]
    letters = np.frombuffer("".join(known).encode(), np.uint8).reshape(DATABASES, -1)
    valid = streams.unit_floats(nulls) >= MISSING_DATABASE
    places = streams.integers(words, 0, DATABASES - 1)
    lengths = np.full(len(words), letters.shape[1], dtype=np.int64) * valid
    return columns.strings(letters[places[valid]].tobytes(), lengths, valid)

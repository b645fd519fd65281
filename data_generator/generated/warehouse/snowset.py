"""A stand-in for Snowset, the queries of a data warehouse over 14 days.

The 93 columns are named and typed as in Snowset. The arrangement of the rows determines in advance which rows match a
filter. The table is for measuring filters that run near the storage. Rows form blocks, and each block has

- a range of times of the 14 days: matches of a filter on `createdTime` are in adjacent blocks, *clustered*;
- a range of warehouses, which are not in the order of the times: matches of a filter on `warehouseId` are in blocks
  all over the table, *scattered*;
- random query identifiers: matches of a filter on `queryId` are single rows.

All other values are random, as defined in snowset_columns. Only integers are used, so every machine makes the same
values.
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
"""Number of rows in a batch, which take about 100 MB."""
BEGIN_US = 1_519_171_200_000_000
"""2018-02-21 00:00 UTC, the start of the original."""
DAYS_14_US = 14 * 24 * 3600 * 10**6
WAREHOUSES = 1_024
"""Number of warehouses in a block. The identifiers of these warehouses are consecutive."""
FIRST_WAREHOUSE = 1 << 40
DATABASES = 2_000
MISSING_DATABASE = 0.2
"""Share of the queries without a database."""


@dataclass(frozen=True)
class Blocks:
    """Number of rows of the table and of each block. The blocks are in a random order by warehouse."""

    rows: int
    block_rows: int

    @property
    def count(self) -> int:
        """Return the number of blocks. The last block may be shorter than the others."""
        return -(-self.rows // self.block_rows)

    def ranks(self, name: str) -> NDArray[np.int64]:
        """Return the place of each block in the order by warehouse: int64 of shape (count,), each number once."""
        return streams.permutation(self.count, name, VERSION, "blocks")


@dataclass(frozen=True)
class Condition:
    """A filter `column` < `below`. It matches all rows of the blocks numbered in `blocks` (ascending), and no others.

    `rows` is the number of rows that match.
    """

    column: str
    below: int
    blocks: tuple[int, ...]
    rows: int


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` queries in blocks of `block_rows`. Raises DataError for more than 2**21 blocks."""
    blocks = Blocks(rows, int(parameters["block_rows"]))
    if blocks.count > 1 << 21:
        raise DataError(
            f"{name}: {blocks.count:,} blocks are too many (allowed: at most {1 << 21:,}).",
            "Request fewer rows, or more rows per block (block_rows=).",
        )

    def batches() -> Iterator[pa.RecordBatch]:
        ranks = blocks.ranks(name)
        start = 0
        for number, count in enumerate(batch_sizes(rows, BATCH_ROWS)):
            yield _batch(name, number, np.arange(start, start + count), blocks, ranks)
            start += count

    return Dataset(name, rows, SCHEMA, VERSION, batches)


def condition(name: str, rows: int, block_rows: int, share: float, *, scattered: bool) -> Condition:
    """Return a filter that matches a known `share` (0 to 1) of the blocks.

    If `scattered`, these are the blocks with the lowest warehouse identifiers, all over the table. Otherwise, they are
    the first blocks of the table. All rows of these blocks match, and no other rows. The number of blocks is rounded.
    `name` is the data set's full name with its parameters. For the column createdTime, `below` is in microseconds since
    1970.
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
        # Identifiers are random, because an ascending column would have the same properties as `createdTime`.
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
    """Return whole numbers like the bytes and times of queries: each power of two is about equally frequent.

    Uses only shifts, because logarithms differ between machines.
    """
    powers = streams.integers(shares << np.uint64(32), counter.low, counter.high - 1).view(np.uint64)
    ones = np.uint64(1) << powers
    values = ones | (words & (ones - np.uint64(1)))
    # The upper half of the word determines whether the value is 0, and the lower half determines how large it is.
    if counter.share < 1:
        values[streams.unit_floats(shares & ~np.uint64(0xFFFFFFFF)) >= counter.share] = 0
    return values.view(np.int64)


def _databases(words: streams.Words, nulls: streams.Words) -> pa.Array:
    """Return identifiers of databases, which are texts of 19 digits; null for some queries. There are DATABASES
    different identifiers."""
    known = [str(10**18 + number * 4_398_046_511_093) for number in range(DATABASES)]
    letters = np.frombuffer("".join(known).encode(), np.uint8).reshape(DATABASES, -1)
    valid = streams.unit_floats(nulls) >= MISSING_DATABASE
    places = streams.integers(words, 0, DATABASES - 1)
    lengths = np.full(len(words), letters.shape[1], dtype=np.int64) * valid
    return columns.strings(letters[places[valid]].tobytes(), lengths, valid)

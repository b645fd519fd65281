"""The realistic table `core` plus an ascending time and a unique key, as event tables have.

The added columns allow filters that select a day or a key. `core` lacks such columns, because its columns are only as
ordered as real columns are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from data_generator.dataset import Dataset
from data_generator.generated import columns, realistic, streams

VERSION = 1
BEGIN_US = 1_735_689_600_000_000
"""2025-01-01 00:00 UTC."""
YEAR_US = 365 * 24 * 3600 * 10**6
"""Time span of all events, independent of their number."""


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` events. The year is divided into `rows` equal intervals, each with one event at a random time.

    Times are timestamps in microseconds without a time zone.
    """
    core = realistic.build("core", rows, parameters)
    schema = pa.schema([("when", pa.timestamp("us")), ("key", pa.int64()), *core.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for number, batch in enumerate(core.batches()):
            count = batch.num_rows
            share_us = YEAR_US // rows
            within = streams.unit_floats(streams.raw_words(count, name, VERSION, number, "when"))
            when = BEGIN_US + np.arange(start, start + count) * share_us + (within * share_us).astype(np.int64)
            key = start + streams.permutation(count, name, VERSION, number, "key")
            added = [columns.numbers(when).cast(pa.timestamp("us")), columns.numbers(key)]
            yield pa.RecordBatch.from_arrays([*added, *batch.columns], schema=schema)
            start += count

    return Dataset(name, rows, schema, VERSION + 1_000 * core.version, batches)

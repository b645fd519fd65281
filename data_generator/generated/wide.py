"""Tables of many float64 columns, for readers that need only a few of the columns, such as features for training.

The authors of F3 measure what a file's metadata cost such a reader (Zeng et al., SIGMOD 2025, section 7.2). The values
do not matter for this question. Therefore, all columns have the same distribution, which no codec makes smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from data_generator.dataset import Dataset, batch_sizes
from data_generator.generated import columns, streams

VERSION = 1
BATCH_BYTES = 1 << 29
"""Approximate upper limit of a batch's bytes: a million values in each of 64 columns, or 65,536 in each of 1,000."""


def build(name: str, rows: int | None, parameters: Mapping[str, str]) -> Dataset:
    """Return a table with float64 columns f0, f1, ..., each with other random values, uniform in [0, 1).

    The parameter `columns` is the number of columns. The number of rows is the smaller of the argument `rows` and the
    parameter `rows`.
    """
    count, width = int(parameters["rows"]), int(parameters["columns"])
    count = count if rows is None else min(rows, count)
    schema = pa.schema([(f"f{number}", pa.float64()) for number in range(width)])

    def batches() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(batch_sizes(count, max(BATCH_BYTES // (8 * width), 1))):
            drawn = (streams.raw_words(part, name, VERSION, number, column) for column in schema.names)
            values = [columns.numbers(streams.unit_floats(words)) for words in drawn]
            yield pa.RecordBatch.from_arrays(values, schema=schema)

    return Dataset(name, count, schema, VERSION, batches)

"""Tables of many columns of float64, of which a reader wants a few: features of which a training run needs some.

F3's authors ask what a file's metadata cost such a reader (Zeng et al., SIGMOD 2025, section 7.2). What lies in a
column is of no matter there, so all are drawn alike, and no codec makes them smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from data_generator.dataset import Dataset, batch_sizes
from data_generator.generated import columns, streams

VERSION = 1
BATCH_BYTES = 1 << 29
"""One batch has at most about so many bytes: a million values in each of 64 columns, or 65,536 in each of 1,000."""


def build(name: str, rows: int | None, parameters: Mapping[str, str]) -> Dataset:
    """`columns` columns f0, f1, ... of float64, uniform in [0, 1), each of a stream of its own; `rows` rows, or as many
    as the parameter of that name says where they are fewer."""
    count, width = int(parameters["rows"]), int(parameters["columns"])
    count = count if rows is None else min(rows, count)
    schema = pa.schema([(f"f{number}", pa.float64()) for number in range(width)])

    def batches() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(batch_sizes(count, max(BATCH_BYTES // (8 * width), 1))):
            drawn = (streams.raw_words(part, name, VERSION, number, column) for column in schema.names)
            values = [columns.numbers(streams.unit_floats(words)) for words in drawn]
            yield pa.RecordBatch.from_arrays(values, schema=schema)

    return Dataset(name, count, schema, VERSION, batches)

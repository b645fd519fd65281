"""Select rows of a batch by a mask, for every type that Parquet supports."""

from __future__ import annotations

import pyarrow as pa

from libraries.near_storage.reading import working_types


def matching(batch: pa.RecordBatch, matches: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows for which `matches` is true, in order. Drop rows for which it is false or null."""
    if matches.true_count == batch.num_rows:
        return batch
    return working_types.cast(working_types.working(batch).filter(matches), batch.schema)

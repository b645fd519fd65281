"""Rows of a batch by a mask, for every type that Parquet holds. It knows neither filters nor files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def matching(batch: pa.RecordBatch, matches: pa.BooleanArray) -> pa.RecordBatch:
    """The rows where `matches` is true, in their order; those where it is null or false go."""
    if matches.true_count == batch.num_rows:
        return batch
    try:
        return batch.filter(matches)
    except pa.ArrowNotImplementedError:
        return _by_runs(batch, matches)


def _by_runs(batch: pa.RecordBatch, matches: pa.BooleanArray) -> pa.RecordBatch:
    """Runs of rows put together: views of text and bytes are sliced and joined by Arrow, not filtered (pyarrow 26)."""
    true = pc.fill_null(matches, False).to_numpy(zero_copy_only=False).astype(np.int8)
    edges = np.flatnonzero(np.diff(true, prepend=0, append=0)).reshape(-1, 2).tolist()
    return pa.concat_batches([batch.slice(0, 0), *(batch.slice(start, end - start) for start, end in edges)])

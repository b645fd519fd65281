"""The rows of a table for which a bound filter is true, as near storage selects them: masked, then filtered."""

from __future__ import annotations

import pyarrow as pa

from libraries.near_storage.predicates.filter_evaluation import mask
from libraries.near_storage.predicates.tree import Predicate
from libraries.near_storage.reading.row_mask import matching


def keep(bound: Predicate, data: pa.Table) -> pa.Table:
    kept = [matching(batch, mask(bound, batch)) for batch in data.to_batches()]
    return pa.Table.from_batches(kept, data.schema)

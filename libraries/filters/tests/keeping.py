"""The rows of a table for which a bound filter is true."""

from __future__ import annotations

import pyarrow as pa

from libraries.filters.filter_evaluation import mask
from libraries.filters.tree import Predicate


def keep(bound: Predicate, data: pa.Table) -> pa.Table:
    # Arrow does not filter columns of all types.
    kept = [data.slice(number, 1) for number, is_true in enumerate(mask(bound, data).to_pylist()) if is_true]
    return pa.concat_tables([data.slice(0, 0), *kept])

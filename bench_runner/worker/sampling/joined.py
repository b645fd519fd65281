"""Join the tables that a block of calls returned. The results are a few larger tables, which are faster to verify.

Tables that have only some rows of the data set are joined vertically. Tables that have all rows, but only some of the
columns, are joined horizontally.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from bench_runner.worker.names import columns_differ
from bench_runner.worker.verification import Pair
from bench_runner.worker.verify import Mismatch


def joined(parts: Sequence[Pair], rows: int) -> list[Pair]:
    """Join the pairs in `parts` to fewer pairs. Each pair has a table that was returned, and the rows that it should
    have.

    `rows` is the number of rows of the data set. Raises Mismatch if a call returned a wrong number of rows or wrong
    columns.
    """
    for place, part in enumerate(parts, 1):
        if part.rows is None and part.given.column_names != list(part.columns):
            raise Mismatch(f"call {place}: {columns_differ(part.columns, part.given.column_names)}")
        wanted = rows if part.rows is None else len(part.rows)
        if len(part.given) != wanted:
            raise Mismatch(f"call {place} returned {len(part.given):,} rows, expected {wanted:,}")
    return [
        *_rows(part for part in parts if part.rows is not None),
        *_columns(part for part in parts if part.rows is None),
    ]


def _rows(parts: Iterable[Pair]) -> Iterator[Pair]:
    """Join tables with the same column types vertically. Yield one joined table for each combination of types. Types
    can differ between calls: a text column without any value, for example, may get another type."""
    by_types: dict[str, list[Pair]] = {}
    for part in parts:
        by_types.setdefault(str(part.given.schema.remove_metadata()), []).append(part)
    for alike in by_types.values():
        numbers = np.concatenate([part.rows for part in alike if part.rows is not None])
        yield replace(alike[0], given=pa.concat_tables([part.given for part in alike]), rows=numbers)


def _columns(parts: Iterable[Pair]) -> Iterator[Pair]:
    """Join tables horizontally, and yield the joined tables. A new joined table begins when a column is already in the
    current one."""
    together: dict[str, pa.ChunkedArray] = {}
    for part in parts:
        if together.keys() & set(part.columns):
            yield Pair(None, pa.table(together), list(together))
            together = {}
        together |= dict(zip(part.columns, part.given.columns, strict=True))
    if together:
        yield Pair(None, pa.table(together), list(together))

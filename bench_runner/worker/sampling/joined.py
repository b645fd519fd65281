"""The answers of a block of calls as few tables, so that comparing them takes no longer than comparing one.

Rows of several calls are joined below each other, columns of all rows next to each other.
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
    """All that was asked for of a table of so many rows, and all that was given. Raises Mismatch where a call gave
    another number of rows than it should, or other columns."""
    for place, part in enumerate(parts, 1):
        if part.rows is None and part.given.column_names != list(part.columns):
            raise Mismatch(f"call {place}: {columns_differ(part.columns, part.given.column_names)}")
        wanted = rows if part.rows is None else len(part.rows)
        if len(part.given) != wanted:
            raise Mismatch(f"call {place} gave {len(part.given):,} rows, {wanted:,} were asked for")
    return [
        *_rows(part for part in parts if part.rows is not None),
        *_columns(part for part in parts if part.rows is None),
    ]


def _rows(parts: Iterable[Pair]) -> Iterator[Pair]:
    """What has other types, as few rows of missing text may have, is a table of its own."""
    by_types: dict[str, list[Pair]] = {}
    for part in parts:
        by_types.setdefault(str(part.given.schema.remove_metadata()), []).append(part)
    for alike in by_types.values():
        numbers = np.concatenate([part.rows for part in alike if part.rows is not None])
        yield replace(alike[0], given=pa.concat_tables([part.given for part in alike]), rows=numbers)


def _columns(parts: Iterable[Pair]) -> Iterator[Pair]:
    """A column that is asked for again begins another table."""
    together: dict[str, pa.ChunkedArray] = {}
    for part in parts:
        if together.keys() & set(part.columns):
            yield Pair(None, pa.table(together), list(together))
            together = {}
        together |= dict(zip(part.columns, part.given.columns, strict=True))
    if together:
        yield Pair(None, pa.table(together), list(together))

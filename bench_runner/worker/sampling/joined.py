"""The answers of a block of calls as few tables, so that comparing them takes no longer than comparing one.

Rows of several calls stand below each other, columns beside each other. It knows what was asked for and what was given,
and nothing of what is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bench_runner.operations import RepeatedOperation
from bench_runner.worker.names import columns_differ
from bench_runner.worker.verification import Part
from bench_runner.worker.verify import Mismatch


def joined(operation: RepeatedOperation, rows: int, asked: Sequence[Any], given: Sequence[pa.Table]) -> list[Part]:
    """All that was asked for of a table of so many rows, and all that was given. Raises Mismatch where a call gave
    another number of rows than it should, or other columns."""
    return list(_rows(asked, given) if operation.adds_up else _columns(rows, asked, given))


def _rows(asked: Sequence[np.ndarray], given: Sequence[pa.Table]) -> Iterator[Part]:
    """What has other types, as few rows of missing text may have, stands by itself."""
    by_types: dict[str, list[Part]] = {}
    for place, (numbers, result) in enumerate(zip(asked, given, strict=True)):
        _check_rows(place, len(result), len(numbers))
        by_types.setdefault(str(result.schema.remove_metadata()), []).append((numbers, result))
    for each in by_types.values():
        yield np.concatenate([numbers for numbers, _ in each]), pa.concat_tables([table for _, table in each])


def _columns(rows: int, asked: Sequence[Sequence[str]], given: Sequence[pa.Table]) -> Iterator[Part]:
    """A column that is asked for again begins another table."""
    together: dict[str, pa.ChunkedArray] = {}
    for place, (names, result) in enumerate(zip(asked, given, strict=True)):
        if result.column_names != list(names):
            raise Mismatch(f"call {place + 1}: {columns_differ(names, result.column_names)}")
        _check_rows(place, len(result), rows)
        if together.keys() & set(names):
            yield tuple(together), pa.table(together)
            together = {}
        together |= dict(zip(names, result.columns, strict=True))
    yield tuple(together), pa.table(together)


def _check_rows(place: int, given: int, asked: int) -> None:
    if given != asked:
        raise Mismatch(f"call {place + 1} gave {given:,} rows, {asked:,} were asked for")

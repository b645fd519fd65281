"""Selecting rows of a result in memory, for engines that cannot select rows themselves. The selection is timed.

The module predicates decides which rows meet a condition, so that all libraries are compared on the same rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adapters.contract import Native, Records, TabularFormat
from adapters.offers import Handle
from adapters.predicate import Predicate
from bench_runner.operations import targets
from bench_runner.operations.tables import predicates

_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def rows_of(result: Any, native: Native, numbers: np.ndarray) -> Any:
    """Return the rows with these numbers, in the order of the numbers."""
    if native is Native.RECORDS:
        rows = list(result.rows)
        return Records(result.schema, [rows[number] for number in numbers.tolist()])
    if native is Native.PANDAS:
        return result.iloc[numbers]
    return _without_views(result).take(pa.array(numbers)) if isinstance(result, pa.Table) else result[numbers]


def matching(result: Any, native: Native, predicate: Predicate, columns: Sequence[str]) -> Any:
    """Return the rows that meet a condition, with these columns in this order."""
    if native is Native.RECORDS:
        rows = list(result.rows)
        kind = None if result.schema is None else result.schema.field(predicate.column).type
        asked = pa.chunked_array([pa.array([row[predicate.column] for row in rows], kind)])
        met = predicates.mask(asked, predicate).to_numpy()
        return targets.select(Records(result.schema, list(itertools.compress(rows, met))), native, list(columns))
    if native is Native.PANDAS:
        asked = pa.chunked_array([pa.array(result[predicate.column].array, from_pandas=True)])
        return result.loc[predicates.mask(asked, predicate).to_numpy(), list(columns)]
    if isinstance(result, pa.Table):
        met = predicates.mask(_without_views(result.select([predicate.column])).column(0), predicate)
        return _without_views(result.select(list(columns))).filter(met)
    asked = result.get_column(predicate.column).to_arrow()
    met = predicates.mask(pa.chunked_array([asked]), predicate)
    return result.select(list(columns)).filter(met.to_numpy())


def scanned(
    adapter: TabularFormat, handle: Handle | None, location: Path, predicate: Predicate, columns: list[str]
) -> Any:
    """Return the rows that meet a condition. If `handle` is None, the whole table is read and filtered in memory.
    Otherwise the engine evaluates the condition on its open handle."""
    if handle is None:
        return matching(adapter.read(location), adapter.native_read, predicate, columns)
    assert handle.scan is not None
    return handle.scan(predicate, columns)


def _without_views(table: pa.Table) -> pa.Table:
    """Return the table with plain text and bytes instead of view types. pyarrow cannot take rows of columns with view
    types."""
    fields = [field.with_type(_PLAIN.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)) if fields != list(table.schema) else table

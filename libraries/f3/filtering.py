"""Read the rows that meet a filter: skip zones in which no row can, test the others, and read what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from libraries.f3.columns.rows import Rows
from libraries.f3.columns.shredding import rows_alone
from libraries.f3.container.zones import ZoneMaps
from libraries.f3.errors import F3Error
from libraries.filters.expression_calls import names_in
from libraries.filters.expressions import Translated, translate
from libraries.filters.filter_evaluation import mask
from libraries.filters.pruning import prune

_AT_ONCE_ROWS = 1 << 20
"""Rows that are tested at a time, which bounds the memory that the columns of the filter take."""
_NUMBERS = "row numbers"


class Reads(Protocol):
    """Reads rows of columns, as `File.read` does."""

    def __call__(self, columns: Sequence[str], rows: Rows) -> pa.Table:
        """Return the rows."""


@dataclass(frozen=True)
class _Range:
    """Consecutive rows. `certain` states that all of them meet the filter."""

    start: int
    stop: int
    certain: bool


@dataclass(frozen=True)
class _Tested:
    """The rows of a range that meet the filter: their numbers, and their values in the filter's columns (None if these
    were not read)."""

    numbers: np.ndarray
    values: pa.Table | None


def filtered(
    where: pc.Expression, columns: Sequence[str], schema: pa.Schema, rows: int, zones: ZoneMaps | None, read: Reads
) -> pa.Table:
    """Return the columns of all rows that meet a filter, in the order of the file.

    Raises F3Error if the filter is no filter of these columns.
    """
    if not isinstance(where, pc.Expression):
        raise F3Error(f"where must be a pyarrow expression such as pc.field('x') > 5 (got {where!r:.60})")
    used = names_in(where)
    tested_names = sorted(schema.names if used is None else used)
    read(tested_names, range(0))  # Refuses columns that the file does not have.
    translated = translate(where, schema)
    found = [_tested(where, translated, tested_names, part, read) for part in _ranges(translated, rows, zones)]
    numbers = np.concatenate([each.numbers for each in found]) if found else np.empty(0, np.int64)
    known = [each.values for each in found if each.values is not None]
    # Columns of the filter are in memory already, unless a range was certain.
    at_hand = pa.concat_tables(known) if known and len(known) == len(found) else None
    missing = [name for name in dict.fromkeys(columns) if at_hand is None or name not in tested_names]
    fetched = read(missing, numbers if len(numbers) else range(0)) if missing else None
    if not columns:
        return rows_alone(pa.schema([], schema.metadata), len(numbers))
    arrays = []
    for name in columns:
        source = fetched if name in missing else at_hand
        assert source is not None  # A column is missing, or at hand.
        arrays.append(source.column(name))
    kept = pa.schema([schema.field(name) for name in columns], schema.metadata)
    return pa.Table.from_arrays(arrays, schema=kept)


def _ranges(translated: Translated, rows: int, zones: ZoneMaps | None) -> Iterator[_Range]:
    """Yield the rows that may meet the filter, in ranges of a limited length."""
    edges, certain = np.array([0, rows]), np.zeros(1, np.bool_)
    places = np.arange(1)
    if zones is not None and translated.predicate is not None:
        outcomes = prune(zones, translated.predicate)
        edges = np.concatenate(([0], np.cumsum(zones.rows)))
        certain = outcomes.certain & translated.complete
        places = np.flatnonzero(outcomes.may_be_true)
    # Neighbouring zones that are alike make one range.
    ends = np.flatnonzero((np.diff(places) != 1) | (certain[places][1:] != certain[places][:-1])) + 1
    for run in np.split(places, ends) if len(places) else ():
        start, stop = int(edges[run[0]]), int(edges[run[-1] + 1])
        for first in range(start, stop, _AT_ONCE_ROWS):
            yield _Range(first, min(first + _AT_ONCE_ROWS, stop), bool(certain[run[0]]))


def _tested(where: pc.Expression, translated: Translated, names: Sequence[str], part: _Range, read: Reads) -> _Tested:
    numbers = np.arange(part.start, part.stop)
    if part.certain:
        return _Tested(numbers, None)
    values = read(names, range(part.start, part.stop))
    if translated.complete and translated.predicate is not None:
        kept = pc.fill_null(mask(translated.predicate, values), False)
        return _Tested(numbers[kept.to_numpy(zero_copy_only=False)], values.filter(kept))
    # A part of the filter is left to Arrow, which may return rows in any order.
    name = _unused(values.column_names)
    try:
        kept_rows = values.append_column(name, pa.array(numbers)).filter(where).sort_by(name)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError) as error:
        raise F3Error(f"where does not fit the columns: {' '.join(str(error).split())}") from None
    return _Tested(kept_rows.column(name).to_numpy(), kept_rows.drop_columns([name]))


def _unused(names: Sequence[str]) -> str:
    name = _NUMBERS
    while name in names:
        name += "'"
    return name

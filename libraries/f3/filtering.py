"""Read the rows that meet a filter.

Zones (ranges of rows with stored bounds) in which no row can match are skipped. The rows of the other zones are tested.
The columns that the filter does not use are then read for the matching rows.
"""

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
"""Maximum number of rows to test at a time. This number limits the memory for the columns that the filter uses."""
_DENSE = 8
"""If at least one in this many rows matches, the range is read whole. Reading the rows by their numbers would take
longer."""
_NUMBERS = "row numbers"


class Reads(Protocol):
    """A function that reads rows of columns, like `File.read`."""

    def __call__(self, columns: Sequence[str] | None, rows: Rows) -> pa.Table:
        """Return these rows of the columns (None: all columns)."""


@dataclass(frozen=True)
class Filter:
    """A filter of a file's rows.

    `where` is the caller's expression, and `translated` is the part of it that this project evaluates itself. `names`
    are the columns that the expression uses; all columns if the expression does not reveal which columns it uses.
    """

    where: pc.Expression
    translated: Translated
    names: Sequence[str]


@dataclass(frozen=True)
class _Range:
    """Consecutive rows. `certain` is True if stored bounds prove that all of these rows meet the filter."""

    start: int
    stop: int
    certain: bool

    @property
    def rows(self) -> range:
        return range(self.start, self.stop)


@dataclass(frozen=True)
class _Tested:
    """The rows of a range that meet the filter: their positions in the range, and a table of the tested columns for
    these rows."""

    places: np.ndarray
    values: pa.Table


def filter_of(where: pc.Expression, schema: pa.Schema) -> Filter:
    """Translate an expression to a filter of columns with this schema. Raises F3Error if `where` is not an
    expression."""
    if not isinstance(where, pc.Expression):
        raise F3Error(f"where must be a pyarrow expression such as pc.field('x') > 5 (got {where!r:.60})")
    used = names_in(where)
    # An expression that does not reveal its columns may refer to them by position, so all columns are read.
    return Filter(where, translate(where, schema), schema.names if used is None else sorted(used))


def filtered(
    chosen: Filter, columns: Sequence[str] | None, schema: pa.Schema, rows: int, zones: ZoneMaps | None, read: Reads
) -> pa.Table:
    """Return all rows that meet a filter, with the given columns (None: all), in the order of the file.

    `rows` is the number of rows of the file. Raises F3Error if the filter does not fit the columns.
    """
    if columns is None and len(set(schema.names)) == len(schema):
        columns = schema.names
    pieces: list[pa.Table] = []
    few: list[_Found] = []
    for part in _ranges(chosen.translated, rows, zones):
        found = None if part.certain else _tested(chosen, part, read)
        if found is not None and len(found.places) * _DENSE < len(part.rows):
            few.append(_Found(found.places + part.start, found.values))
            continue
        pieces += _fetched(few, columns, read)
        few = []
        pieces.append(_dense(part, found, columns, read))
    pieces += _fetched(few, columns, read)
    if columns is not None and not columns:
        return rows_alone(pa.schema([], schema.metadata), sum(piece.num_rows for piece in pieces))
    return pa.concat_tables(pieces) if pieces else read(columns, range(0))


@dataclass(frozen=True)
class _Found:
    """The few matching rows of a range: their numbers in the file, and a table of the tested columns for these rows."""

    numbers: np.ndarray
    values: pa.Table


def _dense(part: _Range, found: _Tested | None, columns: Sequence[str] | None, read: Reads) -> pa.Table:
    """Read a whole range and return its matching rows. If `found` is None, all rows of the range match."""
    if found is None or len(found.places) == len(part.rows):
        return read(columns, part.rows)
    if columns is None:
        return read(None, part.rows).take(found.places)
    missing = [name for name in dict.fromkeys(columns) if name not in found.values.column_names]
    whole = read(missing, part.rows)
    # Filtering by a mask is faster than by row numbers.
    is_kept = np.zeros(len(part.rows), np.bool_)
    is_kept[found.places] = True
    kept = whole.filter(pa.array(is_kept)) if missing else whole
    return _joined(columns, kept, found.values)


def _fetched(few: Sequence[_Found], columns: Sequence[str] | None, read: Reads) -> list[pa.Table]:
    """Return the matching rows of several ranges. Columns that were not tested are read by row number."""
    numbers = np.concatenate([each.numbers for each in few]) if few else np.empty(0, np.int64)
    if not len(numbers):
        return []
    if columns is None:
        return [read(None, numbers)]
    values = pa.concat_tables([each.values for each in few])
    missing = [name for name in dict.fromkeys(columns) if name not in values.column_names]
    return [_joined(columns, read(missing, numbers) if missing else values, values)]


def _joined(columns: Sequence[str], fetched: pa.Table, values: pa.Table) -> pa.Table:
    """Return a table of the named columns, in this order. Each column comes from `values` (the tested columns) if it is
    there, else from `fetched`."""
    if not columns:
        return rows_alone(pa.schema([]), values.num_rows)
    sources = [values if name in values.column_names else fetched for name in columns]
    fields = [source.schema.field(name) for source, name in zip(sources, columns, strict=True)]
    arrays = [source.column(name) for source, name in zip(sources, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, values.schema.metadata))


def _ranges(translated: Translated, rows: int, zones: ZoneMaps | None) -> Iterator[_Range]:
    """Yield the ranges of rows that may meet the filter. A range has at most `_AT_ONCE_ROWS` rows."""
    edges, certain = np.array([0, rows]), np.zeros(1, np.bool_)
    places = np.arange(1)
    if zones is not None and translated.predicate is not None:
        outcomes = prune(zones, translated.predicate)
        edges = np.concatenate(([0], np.cumsum(zones.rows)))
        certain = outcomes.certain & translated.complete
        places = np.flatnonzero(outcomes.may_be_true)
    # Neighbouring zones with the same outcome make one range.
    ends = np.flatnonzero((np.diff(places) != 1) | (certain[places][1:] != certain[places][:-1])) + 1
    for run in np.split(places, ends) if len(places) else ():
        start, stop = int(edges[run[0]]), int(edges[run[-1] + 1])
        for first in range(start, stop, _AT_ONCE_ROWS):
            yield _Range(first, min(first + _AT_ONCE_ROWS, stop), bool(certain[run[0]]))


def _tested(chosen: Filter, part: _Range, read: Reads) -> _Tested:
    values = read(chosen.names, part.rows)
    translated = chosen.translated
    if translated.complete and translated.predicate is not None:
        kept = pc.fill_null(mask(translated.predicate, values), False)
        return _Tested(np.flatnonzero(kept.to_numpy(zero_copy_only=False)), values.filter(kept))
    # A part of the filter is left to Arrow, which may return rows in any order.
    name = _unused(values.column_names)
    try:
        numbered = values.append_column(name, pa.array(np.arange(len(part.rows))))
        kept_rows = numbered.filter(chosen.where).sort_by(name)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError) as error:
        raise F3Error(f"the filter does not fit the columns: {' '.join(str(error).split())}") from None
    return _Tested(kept_rows.column(name).to_numpy(), kept_rows.drop_columns([name]))


def _unused(names: Sequence[str]) -> str:
    name = _NUMBERS
    while name in names:
        name += "'"
    return name

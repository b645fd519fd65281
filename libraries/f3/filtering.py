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
_DENSE = 8
"""A range is read whole if at least one of this many rows matches, because rows by their numbers take longer."""
_NUMBERS = "row numbers"


class Reads(Protocol):
    """Reads rows of columns, as `File.read` does."""

    def __call__(self, columns: Sequence[str] | None, rows: Rows) -> pa.Table:
        """Return the rows."""


@dataclass(frozen=True)
class Filter:
    """A filter of a file's rows: the expression, what of it is translated, and the columns that it tests."""

    where: pc.Expression
    translated: Translated
    names: Sequence[str]


@dataclass(frozen=True)
class _Range:
    """Consecutive rows. `certain` states that all of them meet the filter."""

    start: int
    stop: int
    certain: bool

    @property
    def rows(self) -> range:
        return range(self.start, self.stop)


@dataclass(frozen=True)
class _Tested:
    """The rows of a range that meet the filter: their places in the range, and their values in the tested columns."""

    places: np.ndarray
    values: pa.Table


def filter_of(where: pc.Expression, schema: pa.Schema) -> Filter:
    """Return the filter that an expression is for these columns. Raises F3Error for any other object."""
    if not isinstance(where, pc.Expression):
        raise F3Error(f"where must be a pyarrow expression such as pc.field('x') > 5 (got {where!r:.60})")
    used = names_in(where)
    # An expression that does not reveal its columns may name them by their places in the file.
    return Filter(where, translate(where, schema), schema.names if used is None else sorted(used))


def filtered(
    chosen: Filter, columns: Sequence[str] | None, schema: pa.Schema, rows: int, zones: ZoneMaps | None, read: Reads
) -> pa.Table:
    """Return the columns (None: all) of all rows that meet a filter, in the order of the file.

    Raises F3Error if the filter does not fit the columns.
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
    """Few rows that were found: their numbers, and their values in the tested columns."""

    numbers: np.ndarray
    values: pa.Table


def _dense(part: _Range, found: _Tested | None, columns: Sequence[str] | None, read: Reads) -> pa.Table:
    """Return what was found in a range of which all columns are read whole; all of it if `found` is None."""
    if found is None or len(found.places) == len(part.rows):
        return read(columns, part.rows)
    if columns is None:
        return read(None, part.rows).take(found.places)
    missing = [name for name in dict.fromkeys(columns) if name not in found.values.column_names]
    whole = read(missing, part.rows)
    # A mask costs less than numbers.
    is_kept = np.zeros(len(part.rows), np.bool_)
    is_kept[found.places] = True
    kept = whole.filter(pa.array(is_kept)) if missing else whole
    return _joined(columns, kept, found.values)


def _fetched(few: Sequence[_Found], columns: Sequence[str] | None, read: Reads) -> list[pa.Table]:
    """Return the rows that were found in several ranges, read by their numbers."""
    numbers = np.concatenate([each.numbers for each in few]) if few else np.empty(0, np.int64)
    if not len(numbers):
        return []
    if columns is None:
        return [read(None, numbers)]
    values = pa.concat_tables([each.values for each in few])
    missing = [name for name in dict.fromkeys(columns) if name not in values.column_names]
    return [_joined(columns, read(missing, numbers) if missing else values, values)]


def _joined(columns: Sequence[str], fetched: pa.Table, values: pa.Table) -> pa.Table:
    """Return the columns in their order, from the tested ones or else from the fetched ones."""
    if not columns:
        return rows_alone(pa.schema([]), values.num_rows)
    sources = [values if name in values.column_names else fetched for name in columns]
    fields = [source.schema.field(name) for source, name in zip(sources, columns, strict=True)]
    arrays = [source.column(name) for source, name in zip(sources, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, values.schema.metadata))


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
        raise F3Error(f"where does not fit the columns: {' '.join(str(error).split())}") from None
    return _Tested(kept_rows.column(name).to_numpy(), kept_rows.drop_columns([name]))


def _unused(names: Sequence[str]) -> str:
    name = _NUMBERS
    while name in names:
        name += "'"
    return name

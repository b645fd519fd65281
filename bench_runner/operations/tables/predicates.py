"""Choosing conditions that filter a data set, and computing in memory which rows meet a condition.

A condition depends only on the data, so that all variants, rounds and machines evaluate the same condition. The tested
column is chosen so that about the wanted number of rows meet the condition. If several columns are equally suitable,
the digest of the data decides.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.errors import RefusedData
from adapters.predicate import Kind, Predicate

MOST_OFF = 2.0
"""Factor by which the number of rows that meet a condition may differ from the number wanted, in either direction."""
MOST_VALUES = 20
"""Largest number of values in an IN condition."""
MOST_PREFIX = 8
"""Largest number of letters in the prefix that a condition on text tests."""


@dataclass(frozen=True)
class Chosen:
    """A condition and the number of rows that meet it."""

    predicate: Predicate
    rows: int


def mask(column: pa.ChunkedArray, predicate: Predicate) -> pa.ChunkedArray:
    """Return, for each row, whether the row meets a condition. The booleans are never null. NaN meets no condition,
    null meets only IS NULL, and -0.0 equals 0.0."""
    if predicate.kind is Kind.NULL:
        return pc.is_null(column)
    values = [pa.scalar(value, column.type) for value in predicate.present]
    if predicate.kind is Kind.RANGE:
        low, high = values
        met = pc.and_(pc.greater_equal(column, low), pc.less(column, high))
    elif predicate.kind is Kind.PREFIX:
        met = pc.starts_with(column, pattern=predicate.values[0])
    else:
        # is_in is wrong here: it treats -0.0 and 0.0 as two values, and NaN as equal to itself.
        met = pa.chunked_array([pa.repeat(False, len(chunk)) for chunk in column.chunks] or [[]], pa.bool_())
        for value in values:
            met = pc.or_kleene(met, pc.equal(column, value))
    return pc.fill_null(met, False)


def choose(table: pa.Table, kind: Kind, selectivity: float, *, stored: str, digest: str) -> Chosen:
    """Return a condition of this kind that about the share `selectivity` of the table's rows meet.

    `stored` is 'sorted' to choose a column with ascending values, 'shuffled' to choose any other column. Raises
    RefusedData, with the nearest share found, if no condition is met by half to twice the number of rows wanted.
    """
    names = list(table.column_names)
    random.Random(f"{digest}/scan").shuffle(names)
    wanted = max(selectivity * table.num_rows, 1.0)
    best: Chosen | None = None
    for name in names:
        column = table.column(name).combine_chunks()
        if not _takes(column.type, kind) or _is_sorted(column) != (stored == "sorted"):
            continue
        for values in _candidates(column, kind, wanted):
            predicate = Predicate(name, kind, values)
            rows = int(pc.sum(mask(pa.chunked_array([column]), predicate)).as_py() or 0)
            if rows and (best is None or _off(rows, wanted) < _off(best.rows, wanted)):
                best = Chosen(predicate, rows)
        if best is not None and _off(best.rows, wanted) < 1.1:
            break
    if best is None:
        raise RefusedData(f"no {stored} column supports a {kind.value} condition")
    if _off(best.rows, wanted) > MOST_OFF:
        raise RefusedData(
            f"no {stored} column has a {kind.value} condition that selects about {selectivity:g} of the rows; "
            f"the nearest share is {best.rows / table.num_rows:.2g}, on column {best.predicate.column}"
        )
    return best


def _off(rows: int, wanted: float) -> float:
    return max(rows / wanted, wanted / rows)


def _takes(kind_of_column: pa.DataType, kind: Kind) -> bool:
    of = pa.types
    number = of.is_integer(kind_of_column) or kind_of_column in (pa.float32(), pa.float64())
    text = of.is_string(kind_of_column) or of.is_large_string(kind_of_column)
    time = of.is_timestamp(kind_of_column) or of.is_date32(kind_of_column)
    if kind is Kind.NULL:
        return True
    if kind is Kind.RANGE:
        return bool(number or time)
    if kind is Kind.PREFIX:
        return bool(text)
    # Floats are excluded: users rarely test floats that were read from a file for equality.
    return bool(of.is_integer(kind_of_column) or text)


def _is_sorted(column: pa.Array) -> bool:
    """Return whether values never descend. A column with nulls or with only one value is not considered sorted."""
    if column.null_count or len(column) < 2 or not _takes(column.type, Kind.RANGE):
        return False
    ascending = pc.all(pc.less_equal(column[:-1], column[1:])).as_py()
    return bool(ascending and column[0] != column[-1])


def _candidates(column: pa.Array, kind: Kind, wanted: float) -> Iterator[tuple[Any, ...]]:
    if kind is Kind.NULL:
        yield ()
    elif kind is Kind.RANGE:
        yield from _ranges(column, wanted)
    elif kind is Kind.PREFIX:
        yield from _prefixes(column, wanted)
    else:
        yield from _sets(column, wanted, 1 if kind is Kind.EQUAL else MOST_VALUES)


def _ranges(column: pa.Array, wanted: float) -> Iterator[tuple[Any, ...]]:
    """Yield a range that begins about a third of the way through the sorted values. If the column is sorted, the rows
    in this range are neither at an end nor in the middle of the file."""
    present = column.drop_null()
    if pa.types.is_floating(present.type):
        present = present.filter(pc.invert(pc.is_nan(present)))
    if len(present) < 2:
        return
    ordered = present.take(pc.sort_indices(present))
    start = max(min(len(ordered) // 3, len(ordered) - 1 - round(wanted)), 0)
    stop = min(start + max(round(wanted), 1), len(ordered) - 1)
    low, high = ordered[start].as_py(), ordered[stop].as_py()
    if low != high:
        yield low, high


def _sets(column: pa.Array, wanted: float, most: int) -> Iterator[tuple[Any, ...]]:
    """Yield one tuple of at most `most` values that together occur in about `wanted` rows. The values are sorted from
    frequent to rare. If `most` is 1, yield the value whose number of rows is nearest to `wanted`."""
    counted = sorted(
        ((each["counts"], each["values"]) for each in pc.value_counts(column.drop_null()).to_pylist()),
        key=lambda each: (-each[0], str(each[1])),
    )
    if not counted:
        return
    if most == 1:
        yield (min(counted, key=lambda each: _off(each[0], wanted))[1],)
        return
    chosen: list[Any] = []
    left = wanted
    for rows, value in counted:
        if rows <= left * MOST_OFF and len(chosen) < most:
            chosen.append(value)
            left -= rows
        if left <= 0:
            break
    if chosen:
        yield tuple(chosen)


def _prefixes(column: pa.Array, wanted: float) -> Iterator[tuple[Any, ...]]:
    present = column.drop_null()
    for letters in range(1, MOST_PREFIX + 1):
        yield from ((text,) for (text,) in _sets(pc.utf8_slice_codeunits(present, 0, letters), wanted, 1) if text)

"""Compute aggregates in parts. A part is a small table of partial aggregates, computed from one partition or batch.

Parts are merged into the answer. The rules follow Weigand 2025, section 6.3. SQL decides what that section leaves open:

- Nulls count only in count(*) and as a separate group. Over no rows or only nulls, count is 0 and all other aggregates
  are null. Without GROUP BY the answer has one row; with it, one row per group in order of first occurrence.
- Sums of integers and decimals are exact. They are computed with 76 digits; a sum that does not fit its result type is
  an error and never wraps. The result type is int64 for integers of up to 32 bits, decimal128(38, 0) for 64-bit
  integers, decimal128(38, scale) for decimals of up to 38 digits, and decimal256(76, scale) for wider decimals.
- Sums of floats are float64, added within a part by Arrow and across parts in the order of the parts. The same parts in
  the same order give the same bits. If the rows are divided into other parts, the last bits of a sum may differ.
- avg is float64: the exact sum divided by the count, rounded once. For floats, the float64 sum divided by the count.
- min and max have the type of their column. As in Arrow, they skip NaN unless all values are NaN; -0.0 equals 0.0.
- Group keys compare as in SQL: null equals null, NaN equals NaN, -0.0 equals 0.0. At most 100,000 groups.

Callers apply filters before they call this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from libraries.filters.binding import field_of
from libraries.filters.comparable_types import comparable, comparable_type, is_null, restored
from libraries.filters.kinds import TypeFamily, kind_of, value_type
from libraries.filters.values import MOST_DIGITS
from libraries.near_storage.errors import DamagedError, PredicateError, RequestError
from libraries.near_storage.query import Aggregate, Query

MOST_GROUPS = 100_000

MOST_AGGREGATES = 1_000

MOST_ROWS_OF_A_PART = 2**31 - 1
"""Maximum rows of a part. Integers are summed as two 32-bit halves, and the sum of this many halves fits in 64 bits."""

_DIGITS_OF_128_BITS = 38
_HALF_BITS = 32
_LOW = "low"
_FUNCTIONS = {"min": "min", "max": "max"}
_SUMMED = frozenset({TypeFamily.INTEGER, TypeFamily.FLOAT, TypeFamily.DECIMAL})

Piece: TypeAlias = OneOf["rows", "count", "sum", "min", "max"]


@dataclass(frozen=True)
class State:
    """One column of partial aggregates in a part. For each group it has the number of rows, or the count, sum, min or
    max of a column."""

    piece: Piece
    column: str
    type: pa.DataType


@dataclass(frozen=True)
class AggregatePlan:
    """How a query's aggregates are computed.

    Tables passed to `part` must have the columns `columns`. Parts (tables of partial aggregates) have the schema
    `part_schema`: grouping columns k0, k1, ... and states s0, s1, ...
    """

    query: Query
    schema: pa.Schema
    columns: tuple[str, ...]
    states: tuple[State, ...]
    part_schema: pa.Schema
    answer_schema: pa.Schema


def plan(query: Query, schema: pa.Schema) -> AggregatePlan:
    """Return the plan for a query with aggregates or groups, on a table with this schema.

    Raises PredicateError for unknown columns, types that an aggregate does not accept and duplicate names.
    """
    _check(query)
    keys = [_key_type(schema, column) for column in query.group_by]
    states = tuple(dict.fromkeys(state for each in query.aggregates for state in _states(each, schema)))
    fields = [pa.field(f"k{number}", comparable_type(type)) for number, type in enumerate(keys)]
    fields += [pa.field(f"s{number}", state.type) for number, state in enumerate(states)]
    shown = {name: value_type(field_of(schema, name).type) for name in query.columns or ()}
    shown |= {each.name: _answer_type(each, schema) for each in query.aggregates}
    return AggregatePlan(
        query=query,
        schema=schema,
        columns=tuple(dict.fromkeys((*query.group_by, *(state.column for state in states if state.piece != "rows")))),
        states=states,
        part_schema=pa.schema(fields),
        answer_schema=pa.schema([(name, shown[name]) for name in query.order or shown]),
    )


def part(plan: AggregatePlan, table: pa.Table) -> pa.Table:
    """Return the partial aggregates of rows that passed the filter: one row per group, in order of first occurrence.

    Without GROUP BY, return one row, or none if the table is empty. Raises RequestError above 100,000 groups.
    """
    if table.num_rows > MOST_ROWS_OF_A_PART:
        raise RequestError(
            f"a part has {table.num_rows} rows, but at most {MOST_ROWS_OF_A_PART} are allowed: make smaller parts"
        )
    if table.num_rows == 0:
        return plan.part_schema.empty_table()
    keys = {f"k{number}": _key(table[column]) for number, column in enumerate(plan.query.group_by)}
    inputs: dict[str, pa.ChunkedArray] = {}
    for number, state in enumerate(plan.states):
        inputs |= _inputs(f"s{number}", state, table)
    grouped = _grouped(keys, inputs, plan.states, table.num_rows)
    return _assembled(plan, grouped)


def merged(plan: AggregatePlan, parts: Iterable[pa.Table]) -> pa.Table:
    """Merge parts in the given order into one part. Without parts, return an empty part.

    At most a few hundred thousand rows are held in memory. Raises DamagedError if a part has another schema, and
    RequestError if there are more than 100,000 groups or a sum has more than 76 digits.
    """
    waiting, rows = [plan.part_schema.empty_table()], 0
    for each in parts:
        if each.schema != plan.part_schema:
            raise DamagedError(
                "a partial aggregate has other columns or types than this query needs: use the same release on client "
                "and server"
            )
        if each.num_rows > MOST_GROUPS:
            raise DamagedError(
                f"a partial aggregate has {each.num_rows} groups, but at most {MOST_GROUPS} are allowed: use the same "
                "release on client and server"
            )
        waiting.append(each)
        rows += each.num_rows
        if rows > 2 * MOST_GROUPS or len(waiting) > 1_000:
            waiting = [_merged(plan, pa.concat_tables(waiting))]
            rows = waiting[0].num_rows
    return _merged(plan, pa.concat_tables(waiting))


def counts_rows(plan: AggregatePlan) -> bool:
    """Return whether the answer is only the number of rows, so that no row needs to be read."""
    return not plan.query.group_by and all(state.piece == "rows" for state in plan.states)


def counted(plan: AggregatePlan, rows: int) -> pa.Table:
    """Return the partial aggregates of a table with `rows` rows, without reading the table. `counts_rows` must be true
    for the plan."""
    return pa.table([[rows]] if rows else [[]], schema=plan.part_schema)


def finish(plan: AggregatePlan, merged: pa.Table) -> pa.Table:
    """Return the answer from a merged part: the query's columns and aggregates by name, at most `limit` rows.

    Raises RequestError for a sum that does not fit its type.
    """
    if not plan.query.group_by and merged.num_rows == 0:
        merged = pa.table([pa.nulls(1, field.type) for field in plan.part_schema], schema=plan.part_schema)
    merged = merged.slice(0, plan.query.limit)
    columns = {
        name: restored(
            merged[f"k{plan.query.group_by.index(name)}"].combine_chunks(), plan.answer_schema.field(name).type
        )
        for name in plan.query.columns or ()
    }
    found = {state: merged[f"s{number}"].combine_chunks() for number, state in enumerate(plan.states)}
    columns |= {each.name: _answer(each, plan, found) for each in plan.query.aggregates}
    return pa.table([columns[name] for name in plan.answer_schema.names], schema=plan.answer_schema)


def _check(query: Query) -> None:
    if not query.aggregated:
        raise RequestError("the query has neither aggregates nor GROUP BY; query its rows instead")
    if len(query.aggregates) > MOST_AGGREGATES or len(query.group_by) > MOST_AGGREGATES:
        raise RequestError(
            f"the query has {len(query.aggregates)} aggregates and {len(query.group_by)} grouping columns; at most "
            f"{MOST_AGGREGATES} of each are allowed"
        )
    if query.columns is None and query.group_by:
        raise RequestError("a query with GROUP BY cannot return all columns: name the columns to return")
    names = [*(query.columns or ()), *(each.name for each in query.aggregates)]
    if twice := _repeated(names):
        raise PredicateError(f"each name must occur once in the answer, but these repeat: {', '.join(twice)[:100]}")
    if twice := _repeated(query.group_by):
        raise PredicateError(f"GROUP BY must name each column once, but these repeat: {', '.join(twice)[:100]}")
    beside = sorted(set(query.columns or ()) - set(query.group_by))
    if beside:
        raise PredicateError(f"the column {beside[0]!r} must be in GROUP BY or inside an aggregate: add it to GROUP BY")
    if query.order is not None and sorted(query.order) != sorted(names):
        raise PredicateError(
            f"order must list each column of the answer once: {', '.join(names)[:100]} "
            f"(got {', '.join(query.order)[:100]})"
        )


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted(name for name in set(names) if names.count(name) > 1)


def _key_type(schema: pa.Schema, column: str) -> pa.DataType:
    type = value_type(field_of(schema, column).type)
    if kind_of(type) is None:
        raise PredicateError(
            f"GROUP BY {column!r}: cannot group by values of type {str(type)[:60]}; group on the client instead"
        )
    return type


def _states(aggregate: Aggregate, schema: pa.Schema) -> list[State]:
    """Return the state columns that an aggregate needs."""
    function, column = aggregate.function, aggregate.column
    if function == "count":
        if column is not None:
            field_of(schema, column)
        return [State("rows" if column is None else "count", column or "", pa.int64())]
    if column is None:
        raise PredicateError(f"{function}(*) is not supported: name a column")
    type = value_type(field_of(schema, column).type)
    kind = kind_of(type)
    if kind is None or (function in ("sum", "avg") and kind not in _SUMMED and kind is not TypeFamily.NULL):
        raise PredicateError(
            f"{function}({column}) is not supported for type {str(type)[:60]}; compute it on the client instead"
        )
    if function in ("min", "max"):
        return [State("min" if function == "min" else "max", column, comparable_type(type))]
    total = State("sum", column, _sum_type(type))
    return [total] if function == "sum" else [total, State("count", column, pa.int64())]


def _sum_type(type: pa.DataType) -> pa.DataType:
    if kind_of(type) in (TypeFamily.FLOAT, TypeFamily.NULL):
        return pa.float64()
    return pa.decimal256(MOST_DIGITS, max(type.scale, 0) if pat.is_decimal(type) else 0)


def _answer_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    if aggregate.function == "count" or aggregate.column is None:
        return pa.int64()
    type = value_type(field_of(schema, aggregate.column).type)
    if aggregate.function in ("min", "max"):
        return type
    if aggregate.function == "avg" or kind_of(type) in (TypeFamily.FLOAT, TypeFamily.NULL):
        return pa.float64()
    if pat.is_decimal(type):
        wide = pat.is_decimal256(type)
        return pa.decimal256(MOST_DIGITS, max(type.scale, 0)) if wide else pa.decimal128(38, max(type.scale, 0))
    return pa.decimal128(38, 0) if type.bit_width == 64 else pa.int64()


def _key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a grouping column to its comparable type. All NaNs become equal and -0.0 becomes 0.0, so that equal keys
    form one group."""
    found = _comparable(column)
    if not pat.is_floating(found.type):
        return found
    return pc.if_else(pc.is_nan(found), pa.scalar(float("nan"), found.type), pc.add(found, pa.scalar(0.0, found.type)))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type = value_type(column.type)
    chunks = [comparable(chunk.cast(type) if pat.is_dictionary(chunk.type) else chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, comparable_type(type))


def _inputs(name: str, state: State, table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns to aggregate for a state, by name. A row count needs none. A sum of integers that could exceed
    64 bits needs two: the high and the low 32-bit halves of the values."""
    if state.piece == "rows":
        return {}
    column = table[state.column]
    if state.piece == "count":
        valid = [pc.invert(is_null(chunk)).cast(pa.int64()) for chunk in column.chunks]
        return {name: pa.chunked_array(valid, pa.int64())}
    if state.piece in ("min", "max"):
        return {name: _comparable(column)}
    return _summed(name, state, column)


def _summed(name: str, state: State, column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    type = value_type(column.type)
    if not pat.is_integer(type):
        chunks = [chunk.dictionary_decode() if pat.is_dictionary(chunk.type) else chunk for chunk in column.chunks]
        column = pa.chunked_array(chunks, type)
        if pat.is_decimal128(type) and type.scale >= 0 and _largest(column) * len(column) < 10**_DIGITS_OF_128_BITS:
            return {name: column}
        return {name: _within_digits(column.cast(state.type), state)}
    column = _comparable(column)
    if _largest(column) * len(column) < 2**63:
        return {name: column}
    high = pc.shift_right(column, pa.scalar(_HALF_BITS, type))
    low = pc.bit_wise_and(column, pa.scalar(2**_HALF_BITS - 1, type))
    return {name: high, name + _LOW: low}


def _within_digits(column: pa.ChunkedArray, state: State) -> pa.ChunkedArray:
    """Return the column, or raise RequestError if the sum of its decimals could exceed decimal256."""
    if pat.is_decimal(column.type) and _largest(column) * len(column) >= 10**MOST_DIGITS:
        raise RequestError(
            f"the sum of {state.column!r} could have more than {MOST_DIGITS} digits: compute it on the client"
        )
    return column


def _largest(column: pa.ChunkedArray) -> int:
    """Return the largest absolute value of integers or unscaled decimals; 0 if there are none."""
    ends = [each for each in pc.min_max(column).as_py().values() if each is not None]
    scale = column.type.scale if pat.is_decimal(column.type) else 0
    return max((abs(int(Fraction(end) * 10**scale)) for end in ends), default=0)


def _grouped(
    keys: dict[str, pa.ChunkedArray], inputs: dict[str, pa.ChunkedArray], states: Sequence[State], rows: int
) -> dict[str, pa.Array]:
    """Return keys and states by name, one row per group in order of first occurrence, without threads.

    Arrow does not specify the order of groups. Therefore the number of each group's first row is computed as well, and
    the groups are sorted by this number.
    """
    pieces = {f"s{number}": state.piece for number, state in enumerate(states)}
    functions = {name: _FUNCTIONS.get(pieces[name.removesuffix(_LOW)], "sum") for name in inputs}
    if not keys:
        whole = {name: getattr(pc, functions[name])(column) for name, column in inputs.items()}
        whole |= {name: pa.scalar(rows) for name, piece in pieces.items() if piece == "rows"}
        return {name: pa.array([scalar], scalar.type) for name, scalar in whole.items()}
    table = pa.table({**keys, **inputs, "row": np.arange(rows)})
    wanted = [*functions.items(), ([], "count_all"), ("row", "min")]
    found = table.group_by(list(keys), use_threads=False).aggregate(wanted)
    if found.num_rows > MOST_GROUPS:
        raise RequestError(
            f"the query has more than {MOST_GROUPS} groups: group by fewer columns, filter the rows, or group on the "
            "client"
        )
    found = found.sort_by("row_min")
    named = {name: found[name] for name in keys} | {name: found[f"{name}_{functions[name]}"] for name in inputs}
    counted = {name: found["count_all"] for name, piece in pieces.items() if piece == "rows" and name not in inputs}
    return {name: column.combine_chunks() for name, column in (named | counted).items()}


def _assembled(plan: AggregatePlan, grouped: dict[str, pa.Array]) -> pa.Table:
    """Return the part with these keys and states. Sums of integers that were computed as two halves are combined."""
    columns = []
    for field in plan.part_schema:
        column = grouped[field.name]
        low = grouped.get(field.name + _LOW)
        columns.append(column.cast(field.type) if low is None else _joined(column, low, field.type))
    return pa.table(columns, schema=plan.part_schema)


def _joined(high: pa.Array, low: pa.Array, type: pa.DataType) -> pa.Array:
    pairs = zip(high.to_pylist(), low.to_pylist(), strict=True)
    return pa.array([None if above is None else Decimal((above << _HALF_BITS) + below) for above, below in pairs], type)


def _merged(plan: AggregatePlan, table: pa.Table) -> pa.Table:
    """Merge concatenated parts into one part. Without GROUP BY, all rows form one group and are added in order."""
    names = plan.part_schema.names
    keys = {name: table[name] for name in names if name.startswith("k")}
    states = {f"s{number}": table[f"s{number}"] for number in range(len(plan.states))}
    states |= {
        name: _within_digits(states[name], state)
        for name, state in zip(states, plan.states, strict=True)
        if state.piece == "sum"
    }
    one = {"one": pa.chunked_array([pa.repeat(pa.scalar(0, pa.int8()), table.num_rows)])}
    grouped = _grouped(keys or one, states, plan.states, table.num_rows)
    return _assembled(plan, grouped)


def _answer(aggregate: Aggregate, plan: AggregatePlan, found: dict[State, pa.Array]) -> pa.Array:
    states = [found[state] for state in _states(aggregate, plan.schema)]
    type = plan.answer_schema.field(aggregate.name).type
    if aggregate.function == "count":
        return pc.fill_null(states[0], 0)
    if aggregate.function in ("min", "max"):
        return restored(states[0], type)
    if aggregate.function == "avg":
        return _average(states[0], states[1])
    try:
        return states[0].cast(type)
    except pa.ArrowInvalid:
        raise RequestError(
            f"{aggregate.name} does not fit its type {type}: sum the column {aggregate.column!r} on the client"
        ) from None


def _average(total: pa.Array, count: pa.Array) -> pa.Array:
    if pat.is_floating(total.type):
        return pc.divide(total, count.cast(pa.float64()))
    pairs = zip(total.to_pylist(), count.to_pylist(), strict=True)
    return pa.array([None if each is None else float(Fraction(each) / rows) for each, rows in pairs], pa.float64())

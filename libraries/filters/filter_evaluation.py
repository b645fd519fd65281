"""Evaluate a bound filter on rows with Arrow's kernels: true, false or null for each row, exactly.

Filters must be bound with `binding.py` first. Both sides of a comparison then have the same type, so no kernel casts.
Dates and times are compared as integers, float16 as float32, decimals unchanged.
"""

from __future__ import annotations

import functools

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from libraries.filters.comparable_types import comparable, is_null
from libraries.filters.kinds import COUNTED, TypeFamily, kind_of, value_type
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix

_KERNELS = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def mask(bound: Predicate, data: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """Return true, false or null for each row, in order. `bound` is the result of `bind` with the schema of `data`."""
    batches = [data] if isinstance(data, pa.RecordBatch) else data.to_batches()
    masks = [_mask(bound, batch) for batch in batches]
    return masks[0] if len(masks) == 1 else pa.concat_arrays([pa.array([], pa.bool_()), *masks])


def _mask(bound: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    match bound:
        case And(parts):
            # Combine masks one by one, because all masks of a long filter together would be many times the size of the
            # batch.
            return functools.reduce(pc.and_kleene, (_mask(part, batch) for part in parts), _repeated(True, batch))
        case Or(parts):
            return functools.reduce(pc.or_kleene, (_mask(part, batch) for part in parts), _repeated(False, batch))
        case Not(part):
            return pc.invert(_mask(part, batch))
        case Constant(value):
            return _repeated(value, batch)
    column = batch.column(bound.column)
    if isinstance(bound, IsNull):
        return is_null(column)
    if pat.is_dictionary(column.type):
        return _leaf(bound, column.dictionary).take(column.indices)
    return _leaf(bound, column)


def _repeated(value: bool | None, batch: pa.RecordBatch) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value, pa.bool_()), batch.num_rows)


def _leaf(bound: Predicate, column: pa.Array) -> pa.BooleanArray:
    match bound:
        case Known(_, value):
            return _where_valid(pa.repeat(pa.scalar(value), len(column)), column)
        case Comparison(operator, _, literal):
            return _KERNELS[operator](comparable(column), comparable(_array([literal]))[0])
        case In(_, literals):
            return _in(literals, column)
        case Prefix(_, text):
            pattern = text if kind_of(column.type) is TypeFamily.TEXT else text.encode()
            return pc.starts_with(comparable(column), pattern)
    raise TypeError(f"{type(bound).__name__} is not a bound filter")


def _in(literals: tuple[Literal, ...], column: pa.Array) -> pa.BooleanArray:
    given = [literal for literal in literals if literal.value is not None]
    found = pc.is_in(comparable(column), value_set=_set(given))
    if len(given) < len(literals):
        found = pc.if_else(found, True, pa.scalar(None, pa.bool_()))
    return _where_valid(found, column)


def _set(literals: list[Literal]) -> pa.Array:
    # Arrow's is_in distinguishes 0.0 and -0.0, so search for both values.
    values = comparable(_array(literals))
    if kind_of(values.type) is TypeFamily.FLOAT and any(literal.value == 0 for literal in literals):
        return pa.concat_arrays([values, pa.array([-0.0, 0.0], values.type)])
    return values


def _where_valid(values: pa.BooleanArray, column: pa.Array) -> pa.BooleanArray:
    return pc.if_else(pc.is_valid(column), values, pa.scalar(None, pa.bool_()))


def _array(literals: list[Literal]) -> pa.Array:
    type = value_type(literals[0].type)
    values = [literal.value for literal in literals]
    if kind_of(type) in COUNTED:
        return pa.array(values, pa.int32() if type.bit_width == 32 else pa.int64()).view(type)
    return pa.array(values, type)

"""Translate conditions (adapters.predicate) into the predicate trees that near storage's queries use."""

from __future__ import annotations

import pyarrow as pa

from adapters.predicate import Kind, Predicate
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Or, Prefix
from libraries.filters.tree import Predicate as Tree
from libraries.filters.values import literal


def tree_of(asked: Predicate, kind: pa.DataType) -> Tree:
    """Return a condition as a predicate tree. `kind` is the type of the condition's column.

    NaN satisfies no condition, because every comparison with NaN is false."""
    column = asked.column
    if asked.kind is Kind.NULL:
        return IsNull(column)
    if asked.kind is Kind.PREFIX:
        return Prefix(column, asked.values[0])
    values = [literal(pa.scalar(value, kind)) for value in asked.present]
    if asked.kind is Kind.RANGE:
        return And((Comparison(">=", column, values[0]), Comparison("<", column, values[1])))
    if pa.types.is_floating(kind):
        # The predicate `In` is not used for floats, because it may distinguish -0.0 from 0.0.
        return Or(tuple(Comparison("==", column, value) for value in values))
    return In(column, tuple(values)) if values else Constant(False)

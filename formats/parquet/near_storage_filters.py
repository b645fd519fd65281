"""Conditions as near storage's trees. adapters.predicate defines their meaning."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from adapters.predicate import Kind, Predicate
from libraries.near_storage.predicates.tree import And, Comparison, Constant, In, IsNull, Literal, Or, Prefix
from libraries.near_storage.predicates.tree import Predicate as Tree
from libraries.near_storage.predicates.values import literal


def tree_of(asked: Predicate, kind: pa.DataType) -> Tree:
    """Return the tree of a condition on a column of this type. NaN matches nothing, like in comparisons."""
    column = asked.column
    if asked.kind is Kind.NULL:
        return IsNull(column)
    if asked.kind is Kind.PREFIX:
        return Prefix(column, asked.values[0])
    values = [_literal(value, kind) for value in asked.present]
    if asked.kind is Kind.RANGE:
        return And((Comparison(">=", column, values[0]), Comparison("<", column, values[1])))
    if pa.types.is_floating(kind):
        # In a list, -0.0 and 0.0 could count as two values.
        return Or(tuple(Comparison("==", column, value) for value in values))
    return In(column, tuple(values)) if values else Constant(False)


def _literal(value: Any, kind: pa.DataType) -> Literal:
    return literal(pa.scalar(value, kind))

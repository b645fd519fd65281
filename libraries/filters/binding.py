"""Bind a filter to a schema: convert every literal to an exact value of its column's type.

Comparisons across types are converted with exact numbers (`i < 2.5` on integers becomes `i <= 2`), because some of
Arrow's implicit casts raise or round.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from libraries.filters import limits
from libraries.filters.errors import PredicateError
from libraries.filters.kinds import TypeFamily, kind_of, value_type
from libraries.filters.literal_position import At, Between, Nowhere, place
from libraries.filters.tree import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Known,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    Prefix,
)
from libraries.filters.values import checked, is_utf8


def bind(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """Return an equivalent filter whose literals have the types of the schema's columns. Binding the result again
    changes nothing.

    In the result, no comparison is with null, NaN or -0.0. Every In has at least one literal; the literals of an In are
    sorted and unique, with at most one null, at the end. Columns are top-level names; a dot is part of a name. Raises
    RequestError for trees beyond the limits, and PredicateError for an unknown column, a type without an order or a
    literal that does not fit.
    """
    limits.check(predicate)
    return _bound(predicate, schema)


def field_of(schema: pa.Schema, name: str) -> pa.Field:
    """Return the top-level column of that name. Raises PredicateError unless there is exactly one."""
    found = schema.get_all_field_indices(name)
    if len(found) == 1:
        return schema.field(found[0])
    if found:
        raise PredicateError(
            f"{len(found)} columns are named {_shown(name)}: rename all but one before you filter by this name"
        )
    top, dot, _ = name.partition(".")
    if dot and schema.get_field_index(top) >= 0:
        raise PredicateError(
            f"{_shown(name)} is inside the column {_shown(top)}: nodes filter by whole columns only; "
            "apply this filter on the client"
        )
    some = ", ".join(_shown(each) for each in schema.names[:8])
    raise PredicateError(f"no column {_shown(name)}; the columns are {some}{' ...' if len(schema) > 8 else ''}")


def _bound(predicate: Predicate, schema: pa.Schema) -> Predicate:
    match predicate:
        case And(parts):
            return And(tuple(_bound(part, schema) for part in parts))
        case Or(parts):
            return Or(tuple(_bound(part, schema) for part in parts))
        case Not(part):
            return Not(_bound(part, schema))
        case Constant():
            return predicate
        case IsNull(column) | Known(column):
            field_of(schema, column)
            return predicate
        case Comparison(operator, column, literal):
            return _comparison(operator, column, literal, _ordered_type(schema, column))
        case In(column, literals):
            return _in(column, literals, _ordered_type(schema, column))
        case Prefix(column, text):
            return _prefix(column, text, _ordered_type(schema, column))
    raise PredicateError(f"a filter cannot contain an object of type {type(predicate).__name__}")


def _ordered_type(schema: pa.Schema, column: str) -> pa.DataType:
    type = value_type(field_of(schema, column).type)
    if kind_of(type) is None:
        raise PredicateError(
            f"the column {_shown(column)} of type {_shown(str(type))} cannot be compared: nodes support only IS NULL "
            "on this column; apply other filters on the client"
        )
    return type


def _comparison(operator: Operator, column: str, literal: Literal, type: pa.DataType) -> Predicate:
    if literal.value is None or kind_of(type) is TypeFamily.NULL:
        return Constant(None)
    where = _place(column, literal, type)
    if isinstance(where, At):
        return Comparison(operator, column, Literal(where.value, type))
    if operator in ("==", "!=") or isinstance(where, Nowhere):
        return Known(column, operator == "!=")
    if operator in ("<", "<="):
        return _one_sided("<=", column, where.below, where.above, type)
    return _one_sided(">=", column, where.above, where.below, type)


def _one_sided(operator: Operator, column: str, bound: object, beyond: object, type: pa.DataType) -> Predicate:
    """Return `column operator bound`, or `Known` if the type decides the result for all non-null rows: false if no
    value of the type matches (`bound` is None), true if all values match (`beyond` is None)."""
    if bound is None or beyond is None:
        return Known(column, bound is not None)
    return Comparison(operator, column, Literal(bound, type))


def _in(column: str, literals: tuple[Literal, ...], type: pa.DataType) -> Predicate:
    if not literals:
        return Known(column, False)
    if kind_of(type) is TypeFamily.NULL:
        return Constant(None)
    places = [_place(column, literal, type) for literal in literals if literal.value is not None]
    found = sorted({where.value for where in places if isinstance(where, At)})  # type: ignore[type-var]
    with_null = any(literal.value is None for literal in literals)
    if not found:
        return Constant(None) if with_null else Known(column, False)
    kept = [Literal(value, type) for value in found]
    return In(column, (*kept, Literal(None, type)) if with_null else tuple(kept))


def _prefix(column: str, text: str, type: pa.DataType) -> Predicate:
    if kind_of(type) is TypeFamily.NULL:
        return Constant(None)
    if kind_of(type) not in (TypeFamily.TEXT, TypeFamily.BINARY):
        raise PredicateError(f"the column {_shown(column)} has type {type}: a prefix needs a text or binary column")
    if not is_utf8(text):
        raise PredicateError(
            f"the prefix for the column {_shown(column)} is not valid UTF-8: remove its unpaired surrogates"
        )
    if pat.is_fixed_size_binary(type) and len(text.encode()) > type.byte_width:
        return Known(column, False)
    return Prefix(column, text) if text else Known(column, True)


def _place(column: str, literal: Literal, type: pa.DataType) -> At | Between | Nowhere:
    try:
        return place(checked(literal), type)
    except PredicateError as error:
        raise PredicateError(f"column {_shown(column)}: {error}") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")

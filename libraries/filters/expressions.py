"""Translate pyarrow filters (`pc.field("x") > 5`), which users, DuckDB and Polars create, to the tree of `tree.py`.

The tree omits parts of a conjunction that it cannot express exactly. Without these parts the tree may keep too many
rows, but never too few, so the client must evaluate the omitted parts. Parts are omitted where Arrow rounds, for
example when Arrow compares a decimal with a float. Where Arrow raises an error instead of comparing (an int64 beyond
2**53 with a fraction), the tree gives the exact answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from libraries.filters import limits
from libraries.filters.binding import bind, field_of
from libraries.filters.errors import RequestError
from libraries.filters.expression_calls import Call, Field, Node, Value, read
from libraries.filters.kinds import COUNTED, TypeFamily, kind_of, value_type
from libraries.filters.literal_position import NUMBERS, At, place
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
from libraries.filters.values import from_scalar, is_nan, literal

_OPERATORS: dict[str, Operator] = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_FLIPPED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NULL_MATCHES, _NULL_SKIPPED = range(2)
"""The values of Arrow's SetLookupOptions::NullMatchingBehavior that Python can request."""


@dataclass(frozen=True)
class Translated:
    """A translated filter. `predicate` is bound and keeps every row that the expression keeps; None keeps all rows.

    If `complete` is true, `predicate` keeps no other rows. Otherwise the client must apply the expression to the rows.
    """

    predicate: Predicate | None
    complete: bool


class _Left(Exception):
    """Raised for a part of an expression that the client must evaluate."""


def translate(
    expression: pc.Expression | None, schema: pa.Schema, check: Callable[[Predicate], object] = limits.check
) -> Translated:
    """Translate as much of a pyarrow filter as the tree can express exactly. Never raises for a filter.

    `check` raises RequestError for a tree that is too large. In this case, conditions of the conjunction are omitted,
    half of them at a time, until `check` accepts the tree.
    """
    if expression is None:
        return Translated(None, True)
    # A column name with line breaks could be mistaken for other entries of an expression.
    node = None if any("\n" in name for name in schema.names) else read(expression)
    if node is None:
        return Translated(None, False)
    conjuncts = _chain(node, "and_kleene")
    found = [bound for bound in (_bound(conjunct, schema) for conjunct in conjuncts) if bound is not None]
    while found and not _is_accepted(And(tuple(found)), check):
        found = found[: len(found) // 2]
    if not found:
        return Translated(None, False)
    return Translated(found[0] if len(found) == 1 else And(tuple(found)), len(found) == len(conjuncts))


def _bound(conjunct: Node, schema: pa.Schema) -> Predicate | None:
    try:
        return bind(_condition(conjunct, schema, 0), schema)
    except (_Left, RequestError, UnicodeDecodeError):
        return None


def _is_accepted(predicate: Predicate, check: Callable[[Predicate], object]) -> bool:
    try:
        check(predicate)
    except RequestError:
        return False
    return True


def _chain(node: Node, function: str) -> list[Node]:
    """Return the operands of nested calls of one connective, such as `a & b & c`, from left to right. Not recursive."""
    operands: list[Node] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == function and len(part.arguments) == 2:
            waiting += reversed(part.arguments)
        else:
            operands.append(part)
    return operands


def _condition(node: Node, schema: pa.Schema, depth: int) -> Predicate:
    if depth > limits.MOST_DEPTH:
        raise _Left
    match node:
        case Field(name):
            return Comparison("==", name, literal(True))
        case Value(scalar):
            return _constant(scalar)
        case Call(("and_kleene" | "or_kleene") as function):
            parts = tuple(_condition(part, schema, depth + 1) for part in _chain(node, function))
            return And(parts) if function == "and_kleene" else Or(parts)
        case Call("invert", [part]):
            return Not(_condition(part, schema, depth + 1))
        case Call(function, [left, right]) if function in _OPERATORS:
            return _comparison(_OPERATORS[function], left, right, schema)
        case Call("is_valid", [Field(name)]):
            return Not(IsNull(name))
        case Call("is_null", [Field(name)]):
            return _is_null(name, node, schema)
        case Call("is_nan", [Field(name)]):
            return _is_nan(name, schema)
        case Call("is_in", [Field(name)]):
            return _is_in(name, node, schema)
        case Call("starts_with", [Field(name)]):
            return _starts_with(name, node)
        case Call("if_else", [Call("is_valid", [Field(name)]), then, Value(scalar)]) if not scalar.is_valid:
            return _null_where_null(name, _condition(then, schema, depth + 1))
    raise _Left


def _constant(scalar: pa.Scalar) -> Predicate:
    if scalar.type != pa.bool_() and not (pa.types.is_null(scalar.type)):
        raise _Left
    return Constant(scalar.as_py())


def _comparison(operator: Operator, left: Node, right: Node, schema: pa.Schema) -> Predicate:
    if isinstance(right, Field):
        left, right, operator = right, left, _FLIPPED[operator]
    if not isinstance(left, Field):
        raise _Left
    given = from_scalar(_scalar(right))
    if _is_elsewhere(field_of(schema, left.name).type, given):
        raise _Left
    return Comparison(operator, left.name, given)


def _scalar(node: Node) -> pa.Scalar:
    """Return the scalar of a node: a literal, or a literal in a lossless cast."""
    match node:
        case Value(scalar):
            return scalar
        case Call("cast", [inner], options) if options is not None:
            scalar = _scalar(inner)
            try:
                return scalar.cast(options["to_type"].type)
            except pa.ArrowException:
                raise _Left from None
    raise _Left


def _is_null(name: str, call: Call, schema: pa.Schema) -> Predicate:
    nan_is_null = call.options is not None and call.options["nan_is_null"].as_py()
    if nan_is_null and kind_of(field_of(schema, name).type) is TypeFamily.FLOAT:
        return Or((IsNull(name), _is_nan(name, schema)))
    return IsNull(name)


def _is_nan(name: str, schema: pa.Schema) -> Predicate:
    """Build a test for NaN. The test is 'not at most infinity', because only NaN fails this comparison. Null stays
    null."""
    if kind_of(field_of(schema, name).type) is not TypeFamily.FLOAT:
        raise _Left
    return Not(Comparison("<=", name, literal(math.inf)))


def _starts_with(name: str, call: Call) -> Predicate:
    if call.options is None or call.options["ignore_case"].as_py():
        raise _Left
    return Prefix(name, call.options["pattern"].as_py())


def _is_in(name: str, call: Call, schema: pa.Schema) -> Predicate:
    if call.options is None:
        raise _Left
    listed = call.options["value_set"].values
    if len(listed) > limits.MOST_LITERALS:
        raise _Left
    given = [from_scalar(each) for each in listed]
    behaviour = call.options["null_matching_behavior"].as_py()
    with_null = any(each.value is None for each in given)
    found = _found(name, [each for each in given if each.value is not None], value_type(field_of(schema, name).type))
    if behaviour == _NULL_MATCHES and with_null:
        return Or((IsNull(name), found))
    if behaviour in (_NULL_MATCHES, _NULL_SKIPPED):
        return And((Not(IsNull(name)), found))
    raise _Left


def _found(name: str, given: list[Literal], type: pa.DataType) -> Predicate:
    """Build an IN condition that is null where the column is null.

    Raises _Left for literals for which Arrow's `is_in` gives another result than IN: NaN, which `is_in` matches with
    NaN; zeros, because `is_in` distinguishes 0.0 and -0.0; and literals that `is_in` truncates to the column's type
    (timestamps to dates, doubles to floats).
    """
    kind = kind_of(type)
    for each in given:
        by_bits = kind is TypeFamily.FLOAT and (is_nan(each) or each.value == 0)
        cut = kind_of(each.type) is not kind and not {kind, kind_of(each.type)} <= NUMBERS
        if by_bits or cut or _is_elsewhere(type, each) or not isinstance(place(each, type), At):
            raise _Left
    return In(name, tuple(given))


def _is_elsewhere(type: pa.DataType, given: Literal) -> bool:
    """Return whether Arrow compares these types differently from the tree, so that the client must compare them. Arrow
    rounds decimals to floats and parses no dates in text."""
    kind, other = kind_of(type), kind_of(given.type)
    return {kind, other} == {TypeFamily.DECIMAL, TypeFamily.FLOAT} or (other is TypeFamily.TEXT and kind in COUNTED)


def _null_where_null(name: str, then: Predicate) -> Predicate:
    """Return a condition that is null where the column is null and `then` elsewhere. DuckDB writes IN in this form."""
    parts = then.parts if isinstance(then, Or) else (then,)
    plain = [_null_with(name, part) for part in parts]
    if plain and all(each is not None for each in plain):
        known = tuple(each for each in plain if each is not None)
        return known[0] if len(known) == 1 else Or(known)
    return Or((And((then, Known(name, True))), Known(name, False)))


def _null_with(name: str, part: Predicate) -> Predicate | None:
    """Return a condition that is null where the column is null and `part` elsewhere. Return None if a single leaf of
    the tree cannot express this condition."""
    match part:
        case And((Not(IsNull(column)), In() as listed)) if column == name == listed.column:
            return listed
        case Comparison(_, column, _) | In(column, _) if column == name:
            return part
    return None

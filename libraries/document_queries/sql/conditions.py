"""Translate constants and conditions of SQL to the query language."""

from __future__ import annotations

from sqlglot import exp

from libraries.document_queries.sql.names import FIELD, FieldPath
from libraries.document_queries.steps import (
    And,
    Compare,
    Condition,
    Constant,
    Field,
    In,
    IsMissing,
    IsNull,
    Not,
    Operator,
    Or,
    Prefix,
    Scalar,
)
from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST

OPERATORS: dict[type[exp.Expr], Operator] = {
    **{exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<"},
    **{exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="},
}


_PARTS: dict[type[exp.Expr], set[str]] = {
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Like: {"this", "expression", "negate"},
    exp.Is: {"this", "expression", "negate"},
}
"""Type of a condition -> the parts that are translated. For types not listed, these are `this` and `expression`."""


class NoPlan(Exception):
    """No plan can express the query. The message says which part of the query is the reason."""


def number_of(node: exp.Expr) -> int | None:
    """Return the number of the field that a node names; None if the node is not a field."""
    node = node.unnest()
    found: int | None = node.meta.get(FIELD) if isinstance(node, exp.Column) else None
    return found


def is_constant(node: exp.Expr) -> bool:
    """Return whether a node is a number, text, true, false or null."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal) and not node.this.is_string
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null)


def constant_of(node: exp.Expr) -> Scalar:
    """Return the value of a constant. Numbers with a point or exponent, and integers beyond 64 bits, are doubles."""
    node = node.unnest()
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    sign = ""
    if isinstance(node, exp.Neg):
        sign, node = "-", node.this
    if node.is_string:
        return str(node.this)
    text = sign + str(node.this).replace("_", "")
    if text.lstrip("-").isdigit() and len(text) < 30 and INTEGER_LOWEST <= int(text) <= INTEGER_HIGHEST:
        return int(text)
    return float(text)


def condition_of(node: exp.Expr, fields: list[FieldPath]) -> Condition:
    """Return the condition of the query language with the same meaning. Raises NoPlan."""
    if number_of(node) is None and parts_of(node) - _PARTS.get(type(node), {"this", "expression"}):
        raise NoPlan(f"WHERE has {told(node)}")
    found = _condition_of(node, fields)
    return Not(found) if node.args.get("negate") else found


def _condition_of(node: exp.Expr, fields: list[FieldPath]) -> Condition:
    if isinstance(node, exp.Paren):
        return condition_of(node.this, fields)
    if isinstance(node, exp.And | exp.Or):
        parts = tuple(condition_of(part, fields) for part in node.flatten())
        return And(parts) if isinstance(node, exp.And) else Or(parts)
    if isinstance(node, exp.Not):
        return Not(condition_of(node.this, fields))
    if number_of(node) is not None:
        return Compare(_field(node, fields), "=", Constant(True))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        field = _field(node.this, fields)
        return Or((IsMissing(field), IsNull(field)))
    if isinstance(node, exp.Between):
        field = _field(node.this, fields)
        low, high = _constant(node.args["low"]), _constant(node.args["high"])
        return And((Compare(field, ">=", low), Compare(field, "<=", high)))
    if isinstance(node, exp.In):
        return In(_field(node.this, fields), tuple(_constant(each).value for each in node.expressions))
    if isinstance(node, exp.Like):
        return _like(node, fields)
    operator = OPERATORS.get(type(node))
    if operator is None:
        raise NoPlan(f"WHERE has {told(node)}")
    left, right = (
        Constant(constant_of(side)) if is_constant(side) else _field(side, fields)
        for side in (node.this, node.expression)
    )
    return Compare(left, operator, right)


def _like(node: exp.Like, fields: list[FieldPath]) -> Condition:
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise NoPlan("WHERE has LIKE without a constant pattern")
    text = str(pattern.this)
    beginning = text.removesuffix("%")
    if any(special in beginning for special in "%_\\"):
        raise NoPlan(f"WHERE has LIKE with a pattern other than 'text%' ({text[:20]!r})")
    field = _field(node.this, fields)
    return Prefix(field, beginning) if text.endswith("%") else Compare(field, "=", Constant(text))


def _field(node: exp.Expr, fields: list[FieldPath]) -> Field:
    number = number_of(node)
    if number is None:
        raise NoPlan(f"WHERE has {told(node)}")
    return Field(fields[number])


def _constant(node: exp.Expr) -> Constant:
    if not is_constant(node):
        raise NoPlan(f"WHERE has {told(node)} instead of a constant")
    return Constant(constant_of(node))


def parts_of(node: exp.Expr) -> set[str]:
    """Return the names of the parts that a node has. Callers refuse a part that they do not translate, because it may
    change the node's meaning."""
    return {name for name, value in node.args.items() if value}


def told(node: exp.Expr) -> str:
    """Describe a node in an error message, such as 'the function lower'."""
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name[:40].lower()}"
    if isinstance(node, exp.Func) and not isinstance(node, exp.And | exp.Or):
        return f"the function {node.sql_name().lower()}"
    return "an unsupported expression"

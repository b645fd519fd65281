"""Translate a WHERE clause into a filter: comparisons of a column with a constant, combined by AND, OR and NOT.

Works on sqlglot's tree without a schema; `sql.py` parses the statement around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Literal, Not, Operator, Or, Predicate, Prefix
from libraries.filters.values import literal
from libraries.near_storage.errors import PredicateError
from libraries.near_storage.predicates.sql_literals import literal_of

_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Scope:
    """The table, and the name that may qualify its columns in the SQL text. This name is the table's alias, or the
    table's own name if it has no alias."""

    table: str
    alias: str


def refused(node: exp.Expression, instead: str) -> PredicateError:
    """Return the error for unsupported SQL. The message names the SQL, what is supported, and the alternative."""
    return PredicateError(
        f"{_shown(node)} is not supported by near storage: {instead}. For full SQL pass connect(...).dataset(table) "
        "to DuckDB, Polars or pyarrow"
    )


def only(node: exp.Expression, *allowed: str) -> None:
    """Raise PredicateError if a node has arguments that are not in `allowed`, the arguments that the caller handles."""
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, []):
            part = name.strip("_").upper()
            if isinstance(value, exp.Expression):
                raise refused(value, f"remove this {part}")
            raise refused(node, f"remove its {part}")


def condition(node: exp.Expression, scope: Scope) -> Predicate:
    """Translate a condition into a filter. Raises PredicateError for a condition that is not supported."""
    node = _bare(node)
    kind = type(node)
    if kind in (exp.And, exp.Or):
        parts = tuple(condition(part, scope) for part in _chain(node))
        return And(parts) if kind is exp.And else Or(parts)
    if kind is exp.Not:
        only(node, "this")
        return Not(condition(node.this, scope))
    if kind in _OPERATORS:
        only(node, "this", "expression")
        return _comparison(node, scope)
    if kind is exp.Column:
        return Comparison("==", column_of(node, scope), literal(True))
    if kind in (exp.Boolean, exp.Null):
        return Constant(None if kind is exp.Null else bool(node.this))
    if kind is exp.Is:
        return _is_null(node, scope)
    if kind is exp.In:
        return _in(node, scope)
    if kind is exp.Between:
        return _between(node, scope)
    if kind is exp.Like:
        return _like(node, None, scope)
    if kind is exp.Escape and type(node.this) is exp.Like:
        return _escaped_like(node, scope)
    raise refused(
        node,
        "WHERE compares columns with constants, and supports AND, OR, NOT, BETWEEN, IN, IS NULL, LIKE 'prefix%'",
    )


def column_of(node: exp.Expression, scope: Scope) -> str:
    """Return the name of the column to which an expression refers. Raises PredicateError if the expression is not a
    column of the table."""
    node = _bare(node)
    if type(node) is not exp.Column or type(node.this) is not exp.Identifier:
        raise refused(node, "a column of the table is required here")
    only(node, "this", "table")
    qualifier = node.args.get("table")
    if qualifier is not None and qualifier.this != scope.alias:
        raise refused(
            node,
            f"{scope.alias} is the only table; if {qualifier.this[:60]} is a column, filter its fields on the client; "
            f'if the dot is part of a column\'s name, write "{qualifier.this[:60]}.{node.this.this[:60]}"',
        )
    return str(node.this.this)


def _bare(node: exp.Expression) -> exp.Expression:
    while type(node) is exp.Paren:
        only(node, "this")
        node = node.this
    return node


def _chain(node: exp.Expression) -> list[exp.Expression]:
    """Return all operands of a chain of ANDs or of ORs, from left to right. The function is not recursive, because
    chains can be long."""
    operands = []
    waiting = [node]
    while waiting:
        part = _bare(waiting.pop())
        if type(part) is type(node):
            only(part, "this", "expression")
            waiting += [part.expression, part.this]
        else:
            operands.append(part)
    return operands


def _constant(node: exp.Expression) -> Literal:
    found = literal_of(node)
    if found is None:
        raise refused(
            node,
            "a constant is required here, e.g. a number, 'text', TRUE, NULL, DATE '2020-12-31' or TIMESTAMP '...'",
        )
    return found


def _comparison(node: exp.Expression, scope: Scope) -> Predicate:
    left, right = _bare(node.this), _bare(node.expression)
    operator = _OPERATORS[type(node)]
    if type(left) is exp.Column:
        return Comparison(operator, column_of(left, scope), _constant(right))
    if type(right) is exp.Column:
        return Comparison(_FLIPPED[operator], column_of(right, scope), _constant(left))
    raise refused(node, "compare a column with a constant")


def _negated(node: exp.Expression, found: Predicate) -> Predicate:
    return Not(found) if node.args.get("negate") else found


def _is_null(node: exp.Expression, scope: Scope) -> Predicate:
    only(node, "this", "expression", "negate")
    if type(node.expression) is not exp.Null:
        raise refused(node, "IS takes NULL or NOT NULL")
    return _negated(node, IsNull(column_of(node.this, scope)))


def _in(node: exp.Expression, scope: Scope) -> Predicate:
    only(node, "this", "expressions")
    if not node.expressions:
        raise refused(node, "IN takes constants in brackets")
    return In(column_of(node.this, scope), tuple(_constant(each) for each in node.expressions))


def _between(node: exp.Expression, scope: Scope) -> Predicate:
    only(node, "this", "low", "high")
    column = column_of(node.this, scope)
    low, high = _constant(node.args["low"]), _constant(node.args["high"])
    return And((Comparison(">=", column, low), Comparison("<=", column, high)))


def _escaped_like(node: exp.Expression, scope: Scope) -> Predicate:
    only(node, "this", "expression")
    escape = node.expression
    if type(escape) is not exp.Literal or not escape.is_string or len(escape.this) != 1:
        raise refused(node, "ESCAPE takes one character")
    return _like(node.this, escape.this, scope)


def _like(node: exp.Expression, escape: str | None, scope: Scope) -> Predicate:
    only(node, "this", "expression", "negate")
    pattern = node.expression
    if type(pattern) is not exp.Literal or not pattern.is_string:
        raise refused(node, "LIKE takes a constant text, e.g. 'prefix%'")
    column = column_of(node.this, scope)
    text, rest = _before_wildcard(pattern.this, escape, node)
    if rest.strip("%"):
        raise refused(node, "LIKE supports only one wildcard: % at the end of the pattern")
    found: Predicate = Prefix(column, text) if rest else Comparison("==", column, literal(text))
    return _negated(node, found)


def _before_wildcard(pattern: str, escape: str | None, node: exp.Expression) -> tuple[str, str]:
    """Return the text before the first wildcard, without escapes, and the rest of the pattern."""
    text: list[str] = []
    position = 0
    while position < len(pattern) and (pattern[position] == escape or pattern[position] not in "%_"):
        if pattern[position] == escape:
            position += 1
            if position == len(pattern):
                raise refused(node, "the pattern ends with its ESCAPE character")
        text.append(pattern[position])
        position += 1
    return "".join(text), pattern[position:]


def _shown(node: exp.Expression) -> str:
    try:
        text = " ".join(node.sql(dialect="duckdb", comments=False).split())
    except (RecursionError, ValueError, KeyError):
        text = type(node).__name__.upper()
    return f"`{text if len(text) <= 100 else text[:100] + ' ...'}`"

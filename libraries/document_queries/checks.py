"""Check that a plan can be executed: types, names, order of steps and operands. Error messages state what is allowed.

Plans come from users and from JSON, so every part of them is checked.
"""

from __future__ import annotations

from typing import Any

from libraries.document_queries.errors import QueryError
from libraries.document_queries.steps import (
    FUNCTIONS,
    KINDS,
    MOST_NESTING,
    MOST_UNNESTS,
    OPERANDS,
    OPERATORS,
    Aggregate,
    And,
    AnyItem,
    Call,
    Compare,
    Compute,
    Constant,
    Count,
    Exists,
    Field,
    Filter,
    GroupBy,
    In,
    IsMissing,
    IsNull,
    IsType,
    Limit,
    Named,
    Not,
    Or,
    Order,
    Prefix,
    Project,
    TopK,
    Unnest,
    arrays_in,
    step_place,
)
from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST, MAX_DEPTH, shown

_STEPS = (Unnest, Filter, Project, GroupBy, Count, Compute, TopK, Limit)


def check_steps(steps: Any) -> None:
    """Raise QueryError for the first part of these steps that cannot be executed."""
    if not isinstance(steps, tuple):
        raise QueryError(f"a plan's steps must be a tuple (got {type(steps).__name__})")
    names: set[str] = set()
    columns: list[str] | None = None
    taken: set[int] = set()
    highest = 0
    for number, step in enumerate(steps):
        where = f"step {number + 1} ({type(step).__name__})"
        if not isinstance(step, _STEPS):
            allowed = ", ".join(kind.__name__ for kind in _STEPS)
            raise QueryError(f"{where}: unknown step; allowed are {allowed}")
        place = step_place(step)
        if place < highest or (place in taken and place > 0):
            raise QueryError(
                f"{where} is not allowed at this position: a plan is (Unnest | Filter)*, then at most one of Project, "
                "GroupBy and Count, then Compute, TopK and Limit, each at most once"
            )
        highest = place
        taken.add(place)
        if isinstance(step, Unnest | Filter):
            _check_gathering(step, names, where)
        else:
            columns = _check_result(step, names, columns, where)
    unnests = sum(isinstance(step, Unnest) for step in steps)
    if unnests > MOST_UNNESTS:
        raise QueryError(f"a plan may have at most {MOST_UNNESTS} Unnests (got {unnests})")
    given = [array.name for array in arrays_in(steps)]
    for name in given:
        if given.count(name) > 1:
            raise QueryError(f"the name {name!r} is given to two arrays of the plan; choose different names")
    if columns is None and any(isinstance(step, Unnest) for step in steps):
        raise QueryError("a plan with an Unnest needs a Project, GroupBy or Count, which make rows of the array items")


def _check_gathering(step: Unnest | Filter, names: set[str], where: str) -> None:
    if isinstance(step, Filter):
        _check_condition(step.condition, names, where, 0)
        return
    _check_array(step, names, where)
    names.add(step.name)
    if step.distinct is not None:
        _check_expression(step.distinct, names, f"{where}, distinct", 0)
        if any(part.of != step.name for part in _fields(step.distinct)):
            raise QueryError(f"{where}: distinct may only read fields of the unnested item, {step.name!r}")


def _check_result(step: Any, names: set[str], columns: list[str] | None, where: str) -> list[str] | None:
    if isinstance(step, Count):
        return [_name(step.name, where)]
    if isinstance(step, Project):
        return _check_named(step.columns, names, where)
    if isinstance(step, GroupBy):
        found = _check_named(step.keys, names, f"{where}, keys", may_be_empty=True)
        for aggregate in _tuple(step.aggregates, Aggregate, f"{where}, aggregates"):
            found.append(_check_aggregate(aggregate, names, where))
        if not found:
            raise QueryError(f"{where}: has neither keys nor aggregates; give at least one key or aggregate")
        return _unique(found, where)
    if isinstance(step, Limit):
        _rows(step.rows, where)
        return columns
    if columns is None:
        raise QueryError(f"{where}: reads columns, so the plan needs a Project, GroupBy or Count before this step")
    if isinstance(step, Compute):
        for column in _tuple(step.columns, Named, where):
            _check_expression(column.expression, {""}, where, 0)
            for part in _fields(column.expression):
                if len(part.path) != 1 or part.path[0] not in columns:
                    raise QueryError(f"{where}: the result has no column {'.'.join(part.path)!r}, only {columns}")
            columns = _unique([*columns, _name(column.name, where)], where)
        return columns
    if step.rows is not None:
        _rows(step.rows, where)
    for order in _tuple(step.by, Order, where, may_be_empty=False):
        if order.name not in columns:
            raise QueryError(f"{where}: the result has no column {order.name!r}, only {columns}")
        if not isinstance(order.descending, bool):
            raise QueryError(f"{where}: descending must be true or false (got {order.descending!r})")
    return columns


def _check_named(named: Any, names: set[str], where: str, may_be_empty: bool = False) -> list[str]:
    found = []
    for column in _tuple(named, Named, where, may_be_empty):
        _check_expression(column.expression, names, where, 0)
        found.append(_name(column.name, where))
    return _unique(found, where)


def _check_aggregate(aggregate: Aggregate, names: set[str], where: str) -> str:
    if aggregate.function not in FUNCTIONS:
        raise QueryError(f"{where}: unknown aggregate {aggregate.function!r}; allowed are {', '.join(FUNCTIONS)}")
    if aggregate.expression is not None:
        _check_expression(aggregate.expression, names, where, 0)
    elif aggregate.function != "count":
        raise QueryError(f"{where}: {aggregate.function} needs an expression; only count works without one")
    return _name(aggregate.name, where)


def _check_array(array: Unnest | AnyItem, names: set[str], where: str) -> None:
    _check_path(array.path, where)
    if not array.path and not array.of:
        raise QueryError(f"{where}: the document itself is not an array; give the path of an array")
    if array.of and array.of not in names:
        raise QueryError(f"{where}: no item is named {array.of!r}; items here: {_listed(names)}")
    if _name(array.name, where) in names:
        raise QueryError(f"{where}: another array is named {array.name!r} already; choose a different name")


def _listed(names: set[str]) -> str:
    """Return the names of items as text. The empty name means the document or the result, and is omitted."""
    return ", ".join(repr(name) for name in sorted(names) if name) or "none"


def _check_condition(condition: Any, names: set[str], where: str, depth: int, within_item: bool = False) -> None:
    if depth > MOST_NESTING:
        raise QueryError(
            f"{where}: conditions are nested more than {MOST_NESTING} deep; write And(a, And(b, c)) as And(a, b, c)"
        )
    if isinstance(condition, And | Or):
        parts = condition.conditions
        if not isinstance(parts, tuple) or not parts:
            raise QueryError(f"{where}: {type(condition).__name__} takes a tuple of at least one condition")
        for part in parts:
            _check_condition(part, names, where, depth + 1, within_item)
    elif isinstance(condition, Not):
        _check_condition(condition.condition, names, where, depth + 1, within_item)
    elif isinstance(condition, AnyItem):
        if within_item:
            raise QueryError(f"{where}: an AnyItem cannot be inside another AnyItem; unnest the outer array instead")
        _check_array(condition, names, where)
        _check_condition(condition.condition, names | {condition.name}, where, depth + 1, within_item=True)
    elif isinstance(condition, Compare):
        if condition.operator not in OPERATORS:
            raise QueryError(f"{where}: unknown operator {condition.operator!r}; allowed are {' '.join(OPERATORS)}")
        _check_expression(condition.left, names, where, depth)
        _check_expression(condition.right, names, where, depth)
    elif isinstance(condition, In | Prefix | Exists | IsMissing | IsNull | IsType):
        _check_expression(condition.expression, names, where, depth)
        _check_parameter(condition, where)
    else:
        raise QueryError(f"{where}: {type(condition).__name__} is not a condition; use e.g. Compare, In, And or Not")


def _check_parameter(condition: In | Prefix | Exists | IsMissing | IsNull | IsType, where: str) -> None:
    if isinstance(condition, In):
        if not isinstance(condition.values, tuple):
            raise QueryError(f"{where}: In takes a tuple of values (got {type(condition.values).__name__})")
        for value in condition.values:
            _check_constant(value, where)
    elif isinstance(condition, Prefix):
        _check_text(condition.text, f"{where}: Prefix")
    elif isinstance(condition, IsType) and condition.kind not in KINDS:
        raise QueryError(f"{where}: unknown kind {condition.kind!r}; allowed are {', '.join(KINDS)}")


def _check_expression(expression: Any, names: set[str], where: str, depth: int) -> None:
    if depth > MOST_NESTING:
        raise QueryError(f"{where}: expressions are nested more than {MOST_NESTING} deep; simplify the expression")
    if isinstance(expression, Field):
        _check_path(expression.path, where)
        if expression.of and expression.of not in names:
            raise QueryError(f"{where}: no item is named {expression.of!r}; items here: {_listed(names)}")
    elif isinstance(expression, Constant):
        _check_constant(expression.value, where)
    elif isinstance(expression, Call):
        _check_call(expression, names, where, depth)
    else:
        raise QueryError(f"{where}: {type(expression).__name__} is not an expression; use Field, Constant or Call")


def _check_call(call: Call, names: set[str], where: str, depth: int) -> None:
    if call.function not in OPERANDS:
        raise QueryError(f"{where}: unknown function {call.function!r}; allowed are {', '.join(OPERANDS)}")
    count = OPERANDS[call.function]
    if not isinstance(call.operands, tuple) or len(call.operands) != count:
        raise QueryError(f"{where}: {call.function} takes a tuple of {count} operands")
    for operand in call.operands:
        _check_expression(operand, names, where, depth + 1)
    if call.function in ("floor_divide", "modulo"):
        divisor = call.operands[1]
        positive = isinstance(divisor, Constant) and type(divisor.value) is int and divisor.value > 0
        if not positive:
            raise QueryError(f"{where}: {call.function} divides by a positive integer constant (got {divisor})")


def _check_constant(value: Any, where: str) -> None:
    if value is not None and type(value) not in (bool, int, float, str, bytes):
        raise QueryError(
            f"{where}: a constant must be null, boolean, integer, double, text or bytes (got {type(value).__name__})"
        )
    if type(value) is int and not INTEGER_LOWEST <= value <= INTEGER_HIGHEST:
        raise QueryError(f"{where}: the constant {shown(value)} is beyond 64 bits; use a double")
    if isinstance(value, str):
        _check_text(value, f"{where}: the constant")


def _check_path(path: Any, where: str) -> None:
    if not isinstance(path, tuple) or not all(isinstance(name, str) for name in path):
        raise QueryError(f"{where}: a path must be a tuple of field names (got {path!r})")
    if len(path) > MAX_DEPTH:
        problem = f"a path of {len(path)} names reaches nothing; documents are at most {MAX_DEPTH} deep"
        raise QueryError(f"{where}: {problem}")
    for name in path:
        _check_text(name, f"{where}: the field name")


def _check_text(text: Any, where: str) -> None:
    try:
        text.encode()
    except (AttributeError, UnicodeEncodeError):
        raise QueryError(f"{where} {text!r} cannot be encoded as UTF-8") from None


def _fields(expression: Any) -> list[Field]:
    if isinstance(expression, Call):
        return [part for operand in expression.operands for part in _fields(operand)]
    return [expression] if isinstance(expression, Field) else []


def _tuple(parts: Any, kind: type, where: str, may_be_empty: bool = True) -> tuple[Any, ...]:
    if not isinstance(parts, tuple) or not all(isinstance(part, kind) for part in parts):
        raise QueryError(f"{where}: needs a tuple of {kind.__name__} objects")
    if not parts and not may_be_empty:
        raise QueryError(f"{where}: needs at least one {kind.__name__}")
    return parts


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str) or not name:
        raise QueryError(f"{where}: a name must be a text of at least one character (got {name!r})")
    _check_text(name, f"{where}: the name")
    return name


def _unique(names: list[str], where: str) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"{where}: the name {name!r} is given twice; columns need different names")
    return names


def _rows(rows: Any, where: str) -> None:
    if type(rows) is not int or not 0 <= rows <= INTEGER_HIGHEST:
        raise QueryError(f"{where}: rows must be an integer of 64 bits that is at least 0 (got {shown(rows)})")

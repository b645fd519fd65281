"""Interpret a plan tuple by tuple over documents given as dicts. All other implementations must return the same
results.

Each operator of a plan takes and yields tuples. A tuple maps names to values: '' to the document, and the name of each
unnest to an item of its array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from libraries.document_queries.aggregates import CountState, State, new_state
from libraries.document_queries.plan import Plan
from libraries.document_queries.semantics import KIND_NAMES, MISSING, call, compare, identity, step_into
from libraries.document_queries.steps import (
    And,
    AnyItem,
    Call,
    Compare,
    Condition,
    Constant,
    Exists,
    Expression,
    Field,
    Filter,
    GroupBy,
    In,
    IsMissing,
    IsNull,
    IsType,
    Not,
    Or,
    Prefix,
    Project,
    Unnest,
)

Tuple = dict[str, Any]
Groups = dict[tuple[Any, ...], tuple[tuple[Any, ...], list[State]]]
"""Identity of a group's keys (`semantics.identity`) -> the keys themselves, and one state per aggregate."""


def evaluate(expression: Expression, row: Tuple) -> Any:
    """Return the value of an expression for one tuple, or MISSING."""
    if isinstance(expression, Field):
        return step_into(row[expression.of], expression.path)
    if isinstance(expression, Constant):
        return expression.value
    assert isinstance(expression, Call)
    return call(expression.function, [evaluate(operand, row) for operand in expression.operands])


def outcome(condition: Condition, row: Tuple) -> bool | None:
    """Return whether the condition is true, or None if that is unknown."""
    if isinstance(condition, Compare):
        return compare(evaluate(condition.left, row), condition.operator, evaluate(condition.right, row))
    if isinstance(condition, And):
        return _all([outcome(part, row) for part in condition.conditions])
    if isinstance(condition, Or):
        return _negated(_all([_negated(outcome(part, row)) for part in condition.conditions]))
    if isinstance(condition, Not):
        return _negated(outcome(condition.condition, row))
    if isinstance(condition, AnyItem):
        items = step_into(row[condition.of], condition.path)
        if type(items) is not list:
            return False
        return any(outcome(condition.condition, {**row, condition.name: item}) is True for item in items)
    return _test(condition, evaluate(condition.expression, row))


def _test(condition: In | Prefix | Exists | IsMissing | IsNull | IsType, value: Any) -> bool | None:
    if isinstance(condition, In):
        return _negated(_all([_negated(compare(value, "=", other)) for other in condition.values]))
    if isinstance(condition, Prefix):
        return value.startswith(condition.text) if type(value) is str else None
    if isinstance(condition, IsType):
        return value is not MISSING and KIND_NAMES[type(value)] == condition.kind
    if isinstance(condition, IsNull):
        return value is None
    return (value is MISSING) is isinstance(condition, IsMissing)


def _all(outcomes: list[bool | None]) -> bool | None:
    if False in outcomes:
        return False
    return None if None in outcomes else True


def _negated(known: bool | None) -> bool | None:
    return None if known is None else not known


def tuples(plan: Plan, documents: Iterable[dict[str, Any]]) -> Iterator[Tuple]:
    """Apply a plan's filters and unnests to documents and yield the resulting tuples in order."""
    flow: Iterator[Tuple] = ({"": document} for document in documents)
    for step in plan.gathering:
        flow = _filtered(step, flow) if isinstance(step, Filter) else _unnested(step, flow)
    return flow


def _filtered(step: Filter, flow: Iterator[Tuple]) -> Iterator[Tuple]:
    return (row for row in flow if outcome(step.condition, row) is True)


def _unnested(step: Unnest, flow: Iterator[Tuple]) -> Iterator[Tuple]:
    for row in flow:
        items = step_into(row[step.of], step.path)
        if type(items) is not list:
            continue
        seen = set()
        for item in items:
            joined = {**row, step.name: item}
            if step.distinct is not None:
                value = identity(evaluate(step.distinct, joined))
                if value in seen:
                    continue
                seen.add(value)
            yield joined


def projected(project: Project, flow: Iterable[Tuple]) -> Iterator[dict[str, Any]]:
    """Yield one row per tuple. Missing values are left out of the row."""
    for row in flow:
        values = ((column.name, evaluate(column.expression, row)) for column in project.columns)
        yield {name: value for name, value in values if value is not MISSING}


def add_to_groups(group_by: GroupBy, flow: Iterable[Tuple], groups: Groups) -> None:
    """Add each tuple to its group. Create groups that do not exist."""
    for row in flow:
        keys = tuple(evaluate(key.expression, row) for key in group_by.keys)
        found = tuple(identity(key) for key in keys)
        if found not in groups:
            groups[found] = (keys, [new_state(aggregate.function) for aggregate in group_by.aggregates])
        for aggregate, state in zip(group_by.aggregates, groups[found][1], strict=True):
            if aggregate.expression is not None:
                state.add(evaluate(aggregate.expression, row))
            elif isinstance(state, CountState):
                state.count += 1

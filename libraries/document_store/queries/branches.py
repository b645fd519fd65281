"""Locate a plan's fields in one schema: the branches of each position, and the leaves to read.

A position may hold values of several kinds. Each kind is a branch with its own schema leaves (columns). To test whether
an object or array exists, it suffices to read one leaf below it.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from libraries.document_queries.paths import Items, Path
from libraries.document_queries.plan import Plan, absolute, arrays_of
from libraries.document_queries.steps import (
    And,
    AnyItem,
    Call,
    Compare,
    Condition,
    Exists,
    Expression,
    Field,
    Filter,
    GroupBy,
    IsMissing,
    IsNull,
    IsType,
    Not,
    Or,
)
from libraries.document_store.schema import ROOT, Leaf, Schema
from libraries.document_store.values import ValueKind

NESTED = (ValueKind.ARRAY, ValueKind.OBJECT)


class Use(enum.IntFlag):
    """What a plan needs to know about a field."""

    KINDS = 1
    """Whether the field exists, and its kind."""
    SCALARS = 2
    """The field's value, with arrays and objects counted as missing."""
    WHOLE = 4
    """The field's value of any kind, including arrays and objects."""


@dataclass(frozen=True)
class Branch:
    """One kind of value at a position."""

    kind: ValueKind
    node: int
    leaf: Leaf
    """The leaf of this branch. For an array or object, a leaf below it that shows whether the array or object
    exists."""


class Places:
    """Positions within one schema, each looked up once."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def branches(self, path: Path) -> tuple[Branch, ...]:
        """Return the branches at a path. Return no branches if no document of the schema has a value there."""
        nodes = [ROOT]
        for step in path:
            kind, name = (ValueKind.ARRAY, None) if isinstance(step, Items) else (ValueKind.OBJECT, step)
            inner = [node for node in nodes if self.schema.nodes[node].kind is kind]
            nodes = [below for node in inner for below in self.schema.slots[node].get(name, ())]
        return tuple(Branch(self.schema.nodes[node].kind, node, self.witness(node)) for node in nodes)

    def array(self, path: Path) -> Branch | None:
        """Return the branch of arrays at a path."""
        return next((branch for branch in self.branches(path) if branch.kind is ValueKind.ARRAY), None)

    def leaves(self, node: int) -> Iterator[Leaf]:
        """Yield the leaves at and below a node. Omit the marker of a node that has other leaves."""
        nodes = self.schema.leaf_nodes
        number = bisect_left(nodes, node)
        if number < len(nodes) and nodes[number] == node:
            yield self.schema.leaves[number]
            return
        inner = [below for branches in self.schema.slots[node].values() for below in branches]
        for below in inner or [index for index, other in enumerate(self.schema.nodes) if other.parent == node]:
            yield from self.leaves(below)

    def witness(self, node: int) -> Leaf:
        """Return a leaf that shows whether a node exists, and that is fast to read: a leaf in the fewest arrays, and
        among such leaves one with the smallest values."""
        return min(self.leaves(node), key=lambda leaf: (len(leaf.array_levels), _COSTS[leaf.kind], leaf.number))


_COSTS = {
    **{ValueKind.MARKER: 0, ValueKind.NULL: 0, ValueKind.BOOLEAN: 1, ValueKind.INTEGER: 2, ValueKind.DOUBLE: 3},
    **{ValueKind.TEXT: 4, ValueKind.BINARY: 5, ValueKind.REST: 6},
}


def uses_of(plan: Plan) -> dict[Field, Use]:
    """Return what a plan needs of each field that it reads, in order of first use."""
    uses: dict[Field, Use] = {}
    for expression, use in _uses(plan):
        if isinstance(expression, Field):
            uses[expression] = uses.get(expression, Use(0)) | use
    return uses


def paths_of(plan: Plan) -> Iterator[Path]:
    """Yield the paths of all fields and arrays that a plan reads, from the root."""
    yield from (absolute(plan, read.of, read.path) for read in uses_of(plan))
    yield from (absolute(plan, array.name, ()) for array in arrays_of(plan))


def _uses(plan: Plan) -> Iterator[tuple[Expression, Use]]:
    for step in plan.gathering:
        if isinstance(step, Filter):
            yield from condition_uses(step.condition)
        elif step.distinct is not None:
            yield from _operand_uses(step.distinct, Use.WHOLE)
    result = plan.result
    if isinstance(result, GroupBy):
        for key in result.keys:
            yield from _operand_uses(key.expression, Use.WHOLE)
        for aggregate in result.aggregates:
            use = _AGGREGATES.get(aggregate.function, Use.WHOLE)
            if aggregate.expression is not None:
                yield from _operand_uses(aggregate.expression, use)
    elif result is not None:
        for column in result.columns:
            yield from _operand_uses(column.expression, Use.WHOLE)


_AGGREGATES = {"count": Use.KINDS, "sum": Use.SCALARS, "avg": Use.SCALARS}


def condition_uses(condition: Condition) -> Iterator[tuple[Expression, Use]]:
    """Yield each expression that a condition reads, and what the condition needs of it."""
    if isinstance(condition, And | Or):
        for part in condition.conditions:
            yield from condition_uses(part)
    elif isinstance(condition, Not | AnyItem):
        yield from condition_uses(condition.condition)
    elif isinstance(condition, Compare):
        yield from _operand_uses(condition.left, Use.SCALARS)
        yield from _operand_uses(condition.right, Use.SCALARS)
    else:
        kinds = isinstance(condition, Exists | IsMissing | IsNull | IsType)
        yield from _operand_uses(condition.expression, Use.KINDS if kinds else Use.SCALARS)


def _operand_uses(expression: Expression, use: Use) -> Iterator[tuple[Expression, Use]]:
    yield expression, use
    if isinstance(expression, Call):
        for operand in expression.operands:
            yield from _operand_uses(operand, Use.SCALARS)


def needed_leaves(plan: Plan, places: Places) -> set[int]:
    """Return the numbers of the schema leaves from which the plan's fields and items are read, including the leaf of
    the key."""
    needed = {0}
    for read, use in uses_of(plan).items():
        for branch in places.branches(absolute(plan, read.of, read.path)):
            if use & Use.WHOLE:
                needed.update(leaf.number for leaf in places.leaves(branch.node))
            elif use & Use.KINDS or branch.kind not in NESTED:
                needed.add(branch.leaf.number)
    for array in arrays_of(plan):
        needed.update(branch.leaf.number for branch in places.branches(absolute(plan, array.name, ())))
    return needed


def wants_nested_values(plan: Plan, places: Places) -> bool:
    """Return whether the plan needs a whole array or object of this schema as a value, e.g. in a group key, a row, or a
    maximum."""
    return any(
        use & Use.WHOLE and any(b.kind in NESTED for b in places.branches(absolute(plan, read.of, read.path)))
        for read, use in uses_of(plan).items()
    )

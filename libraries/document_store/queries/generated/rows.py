"""Generated code over rows. Each plan becomes one Python loop that decodes only the fields that the plan reads.

Filters, unnests, projections and groups are fused into the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from libraries.document_queries.aggregates import CountState, new_state
from libraries.document_queries.interpreter import Groups
from libraries.document_queries.paths import ITEMS
from libraries.document_queries.plan import Plan, absolute
from libraries.document_queries.results import Place, Row
from libraries.document_queries.semantics import MISSING, call, compare, identity
from libraries.document_queries.steps import (
    Aggregate,
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
    Scalar,
    Unnest,
    expressions_of,
)
from libraries.document_store.messagepack import decode as decode_whole
from libraries.document_store.queries.generated.conditions import MIRRORED, OPPOSITE
from libraries.document_store.queries.generated.function_source import Cache, FunctionSource
from libraries.document_store.queries.generated.row_types import Decode, Shape, decoder_of, shape_of

Function = Callable[[Iterable[bytes], Iterable[Any], dict[Any, list[Any]], list[tuple[Place, Row]]], None]

_GIVEN: dict[str, Any] = {
    **{"MISSING": MISSING, "Struct": msgspec.Struct, "call": call, "compare": compare, "identity": identity},
    **{"new_state": new_state, "decode_whole": decode_whole},
}
_TYPES = {**{"boolean": "bool", "integer": "int", "double": "float", "text": "str", "binary": "bytes", "array": "list"}}
_PYTHON = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

_functions = Cache()


class RowLoop:
    """The compiled loop of one plan, and the groups that it has made so far."""

    def __init__(self, plan: Plan, spelled: str) -> None:
        """`spelled` is the plan as JSON. It is the key under which the function is cached."""
        self.plan = plan
        self._function: Function = _functions.get(spelled, lambda: _generated(plan))
        self._groups: dict[Any, list[Any]] = {}

    def add(self, keys: Iterable[Any], rows: Iterable[bytes], placed: list[tuple[Place, Row]]) -> None:
        """Process rows. Append the result rows of plans without groups to `placed`."""
        self._function(rows, keys, self._groups, placed)

    def merge_into(self, groups: Groups) -> None:
        """Merge the groups that the loop has made so far into `groups`."""
        result = self.plan.result
        assert isinstance(result, GroupBy)
        for values, *figures in self._groups.values():
            states = [CountState(figure) if isinstance(figure, int) else figure for figure in figures]
            name = tuple(map(identity, values))
            if name not in groups:
                groups[name] = (values, states)
                continue
            for state, other in zip(groups[name][1], states, strict=True):
                state.merge(other)
        self._groups = {}


def _generated(plan: Plan) -> Function:
    shape = shape_of(plan)
    source = FunctionSource()
    _Writer(plan, shape, source).write()
    decode: Decode = decoder_of(shape)
    return source.compiled("rows, keys, groups, placed", {**_GIVEN, "decode": decode})


class _Writer:
    """Writes the steps of one plan. The steps after an Unnest are inside the loop over the items of the array."""

    def __init__(self, plan: Plan, shape: Shape, source: FunctionSource) -> None:
        self.plan, self.shape, self.source = plan, shape, source
        self.scopes: dict[str, str] = {"": "d"}
        """Name of an item ('' for the document) -> the variable that holds it."""
        self.read: dict[Field, str] = {}
        """Field -> the variable that already holds its value."""

    def write(self) -> None:
        with self.source.block("for key, row in zip(keys, rows, strict=True):"):
            self.source.line("d = decode(row)")
            self._steps(0)

    def _steps(self, number: int) -> None:
        if number == len(self.plan.gathering):
            self._result()
            return
        step = self.plan.gathering[number]
        if isinstance(step, Filter):
            with self.source.block(f"if not ({self._true(step.condition)}):"):
                self.source.line("continue")
            self._steps(number + 1)
            return
        items, seen = self._items(step), ""
        if step.distinct is not None:
            seen = self.source.variable("s", "set()")
        item = self.source.name("i")
        with self.source.block(f"for {item} in {items}:"):
            self.scopes[step.name] = item
            if step.distinct is not None:
                value = self.source.variable("k", f"identity({self._value(step.distinct)})")
                with self.source.block(f"if {value} in {seen}:"):
                    self.source.line("continue")
                self.source.line(f"{seen}.add({value})")
            self._steps(number + 1)

    def _items(self, array: Unnest | AnyItem) -> str:
        found = self._value(Field(array.path, array.of))
        return f"({found} if type({found}) is list else ())"

    def _shape_at(self, of: str) -> Shape:
        shape = self.shape
        for step in absolute(self.plan, of, ()):
            below = shape.items if step is ITEMS else shape.fields[str(step)]
            assert below is not None
            shape = below
        return shape

    def _value(self, expression: Expression) -> str:
        """Return the name of a variable with the value of an expression."""
        if isinstance(expression, Constant):
            return self.source.value(expression.value)
        if isinstance(expression, Call):
            operands = ", ".join(self._value(operand) for operand in expression.operands)
            return self.source.variable("v", f"call({expression.function!r}, [{operands}])")
        if expression not in self.read:
            self.read[expression] = self._field(expression)
        return self.read[expression]

    def _field(self, read: Field) -> str:
        if not read.path:
            return self.scopes[read.of]
        outer = Field(read.path[:-1], read.of)
        holder, name = self._value(outer), read.path[-1]
        shape = self._shape_at(read.of)
        for step in outer.path:
            shape = shape.fields[step]
        if shape.whole:
            got = f"{holder}.get({self.source.value(name)}, MISSING) if type({holder}) is dict else MISSING"
        elif outer == Field(()):
            got = f"{holder}.{shape.attribute(name)}"
        else:
            got = f"{holder}.{shape.attribute(name)} if isinstance({holder}, Struct) else MISSING"
        return self.source.variable("v", got)

    def _true(self, condition: Condition, negated: bool = False) -> str:
        """Return source that is true where the condition is true or, if `negated`, where the condition is false."""
        if isinstance(condition, Not):
            return self._true(condition.condition, not negated)
        if isinstance(condition, And | Or):
            word = " and " if isinstance(condition, And) is not negated else " or "
            return f"({word.join(self._true(part, negated) for part in condition.conditions)})"
        if isinstance(condition, AnyItem):
            return self._any_item(condition, negated)
        if isinstance(condition, Compare):
            return self._comparison(
                condition.left, OPPOSITE[condition.operator] if negated else condition.operator, condition.right
            )
        value = self._value(condition.expression)
        if isinstance(condition, In):
            return self._among(condition, value, negated)
        if isinstance(condition, Prefix):
            word = "not " if negated else ""
            return f"(type({value}) is str and {word}{value}.startswith({self.source.value(condition.text)}))"
        known = self._kind(condition, value)
        return f"(not {known})" if negated else known

    def _comparison(self, left: Expression, operator: str, right: Expression) -> str:
        if isinstance(left, Constant) and not isinstance(right, Constant):
            return self._comparison(right, MIRRORED[operator], left)
        if not isinstance(right, Constant) or isinstance(left, Constant):
            return f"(compare({self._value(left)}, {operator!r}, {self._value(right)}) is True)"
        return self._with_constant(self._value(left), operator, right.value)

    def _with_constant(self, value: str, operator: str, constant: Scalar) -> str:
        if constant is None or constant != constant:
            return "False"
        test = f"{value} {_PYTHON[operator]} {self.source.value(constant)}"
        if type(constant) in (int, float):
            known = f" and {value} == {value}" if operator == "!=" else ""
            return f"((type({value}) is int or type({value}) is float) and {test}{known})"
        return f"(type({value}) is {type(constant).__name__} and {test})"

    def _among(self, condition: In, value: str, negated: bool) -> str:
        if condition.values and all(isinstance(other, str) for other in condition.values):
            word = "not in" if negated else "in"
            return f"(type({value}) is str and {value} {word} {self.source.value(frozenset(condition.values))})"
        tests = [self._with_constant(value, "!=" if negated else "=", other) for other in condition.values]
        return f"({(' and ' if negated else ' or ').join(tests)})" if tests else str(negated)

    def _kind(self, condition: Exists | IsMissing | IsNull | IsType, value: str) -> str:
        if isinstance(condition, Exists):
            return f"({value} is not MISSING)"
        if isinstance(condition, IsMissing):
            return f"({value} is MISSING)"
        if isinstance(condition, IsNull) or condition.kind == "null":
            return f"({value} is None)"
        if condition.kind == "object":
            return f"(type({value}) is dict or isinstance({value}, Struct))"
        return f"(type({value}) is {_TYPES[condition.kind]})"

    def _any_item(self, condition: AnyItem, negated: bool) -> str:
        items, found = self._items(condition), self.source.variable("m", "False")
        # Before the loop starts, read the values that every iteration needs.
        for expression in expressions_of(condition.condition):
            if isinstance(expression, Field) and expression.of != condition.name:
                self._value(expression)
        item = self.source.name("i")
        outside = dict(self.read)
        with self.source.block(f"for {item} in {items}:"):
            self.scopes[condition.name] = item
            with self.source.block(f"if {self._true(condition.condition)}:"):
                self.source.line(f"{found} = True")
                self.source.line("break")
        self.read = outside
        return f"(not {found})" if negated else found

    def _result(self) -> None:
        result = self.plan.result
        if isinstance(result, GroupBy):
            self._group(result)
        elif isinstance(result, Project):
            self._row(result)
        else:
            self.source.line("placed.append((key, decode_whole(row)))")

    def _row(self, project: Project) -> None:
        row = self.source.variable("r", "{}")
        for column in project.columns:
            value = self._value(column.expression)
            with self.source.block(f"if {value} is not MISSING:"):
                self.source.line(f"{row}[{self.source.value(column.name)}] = {value}")
        self.source.line(f"placed.append((key, {row}))")

    def _group(self, result: GroupBy) -> None:
        keys = [self._value(key.expression) for key in result.keys]
        told = [f"{key} if type({key}) is str or type({key}) is int else identity({key})" for key in keys]
        name = self.source.variable("k", f"({', '.join(told)},)" if len(keys) != 1 else told[0]) if keys else "0"
        self.source.line(f"g = groups.get({name})")
        with self.source.block("if g is None:"):
            begins = [_beginning(aggregate) for aggregate in result.aggregates]
            values = f"({''.join(f'{key}, ' for key in keys)})"
            self.source.line(f"g = groups[{name}] = [{', '.join([values, *begins])}]")
        for place, aggregate in enumerate(result.aggregates, start=1):
            self._aggregate(aggregate, place)

    def _aggregate(self, aggregate: Aggregate, place: int) -> None:
        if aggregate.expression is None:
            self.source.line(f"g[{place}] += 1")
            return
        value = self._value(aggregate.expression)
        if aggregate.function == "count":
            with self.source.block(f"if {value} is not None and {value} is not MISSING:"):
                self.source.line(f"g[{place}] += 1")
            return
        self.source.line(f"s = g[{place}]")
        if aggregate.function in ("min", "max"):
            sign = "<" if aggregate.function == "min" else ">"
            with self.source.block(f"if type({value}) is int and type(s.value) is int:"):
                self.source.line(f"if {value} {sign} s.value: s.value, s.key = {value}, (3, 0, {value}, 0)")
        elif aggregate.function == "count_distinct":
            with self.source.block(f"if type({value}) is str or type({value}) is int:"):
                self.source.line(f"s.seen.add({value})")
        else:
            with self.source.block(f"if type({value}) is int:"):
                self.source.line(f"s.integers += {value}")
                self.source.line("s.count += 1")
        with self.source.block("else:"):
            self.source.line(f"s.add({value})")


def _beginning(aggregate: Aggregate) -> str:
    return "0" if aggregate.function == "count" else f"new_state({aggregate.function!r})"

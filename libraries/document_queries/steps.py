"""What plans are made of: expressions, conditions and steps, as frozen dataclasses; and what lies within them.

Users build these by hand or read them from JSON; plan.py puts them together. What they mean, value by value, is said
in semantics.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Scalar: TypeAlias = bool | int | float | str | bytes | None

AggregateFunction: TypeAlias = Literal["count", "sum", "min", "max", "avg", "count_distinct"]
FunctionName: TypeAlias = Literal["length", "minus", "floor_divide", "modulo"]
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
KindName: TypeAlias = Literal["null", "boolean", "integer", "double", "text", "binary", "array", "object"]

OPERANDS = {"length": 1, "minus": 2, "floor_divide": 2, "modulo": 2}
"""Function -> how many operands it takes."""

MOST_NESTING = 64
"""Conditions and expressions are nested at most so deep: generated source stays within what Python's compiler takes."""

MOST_UNNESTS = 16
"""Unnests of one plan: each is a loop of generated source within that of the last, and Python takes 20."""


@dataclass(frozen=True)
class Field:
    """The value at `path`, a chain of field names, in the document (`of` empty) or in the item that `of` names.

    An empty path is the document or item itself. Where something on the way is no object, the value is missing.
    """

    path: tuple[str, ...]
    of: str = ""


@dataclass(frozen=True)
class Constant:
    """One value, the same for every tuple."""

    value: Scalar


@dataclass(frozen=True)
class Call:
    """A function of values: `length` (characters), `minus`, `floor_divide` and `modulo` (by a constant above 0)."""

    function: FunctionName
    operands: tuple[Expression, ...]


Expression: TypeAlias = Field | Constant | Call


@dataclass(frozen=True)
class Compare:
    """Both sides compared; null where they are of unlike kinds, or one is missing, null or NaN."""

    left: Expression
    operator: Operator
    right: Expression


@dataclass(frozen=True)
class In:
    """Equal to one of `values`: as that many comparisons joined by `Or`."""

    expression: Expression
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Prefix:
    """A text that begins with `text`; null where the value is no text."""

    expression: Expression
    text: str


@dataclass(frozen=True)
class Exists:
    """There is a value, perhaps null: never null itself."""

    expression: Expression


@dataclass(frozen=True)
class IsMissing:
    """There is no value: never null itself."""

    expression: Expression


@dataclass(frozen=True)
class IsNull:
    """The value is there and null: never null itself."""

    expression: Expression


@dataclass(frozen=True)
class IsType:
    """The value is of this kind; false, never null, for all else."""

    expression: Expression
    kind: KindName


@dataclass(frozen=True)
class And:
    """False if one is false, else null if one is null, else true."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """True if one is true, else null if one is null, else false."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """True for false, false for true, null for null."""

    condition: Condition


@dataclass(frozen=True)
class AnyItem:
    """Some item of the array at `path` makes the condition true; false for all else, never null.

    `condition` reads the item under `name`, and everything around it. Tests of items are not nested in one another.
    """

    path: tuple[str, ...]
    name: str
    condition: Condition
    of: str = ""


Condition: TypeAlias = Compare | In | Prefix | Exists | IsMissing | IsNull | IsType | And | Or | Not | AnyItem


@dataclass(frozen=True)
class Named:
    """A column of the result, or a key of groups."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Aggregate:
    """A figure of a group. `count` without an expression counts tuples."""

    name: str
    function: AggregateFunction
    expression: Expression | None = None


@dataclass(frozen=True)
class Order:
    """A column of the result to order by."""

    name: str
    descending: bool = False


@dataclass(frozen=True)
class Unnest:
    """One tuple for each item of the array at `path`, beside all that the tuple had; the item goes by `name`.

    What is no array gives no tuple. With `distinct`, only the first stays of the items whose expression is the same.
    """

    path: tuple[str, ...]
    name: str
    of: str = ""
    distinct: Expression | None = None


@dataclass(frozen=True)
class Filter:
    """Keeps the tuples for which the condition is true, neither false nor null."""

    condition: Condition


@dataclass(frozen=True)
class Project:
    """One row for each tuple. Missing values are left out of the row."""

    columns: tuple[Named, ...]


@dataclass(frozen=True)
class GroupBy:
    """One row for each group of equal keys (type and bits). Without keys: one row, also of no tuples at all."""

    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...] = ()


@dataclass(frozen=True)
class Count:
    """One row: how many tuples. Of whole documents it reads keys alone."""

    name: str = "count"


@dataclass(frozen=True)
class Compute:
    """More columns, from those of the result's rows."""

    columns: tuple[Named, ...]


@dataclass(frozen=True)
class TopK:
    """The rows in order, all or the first `rows`. Ties keep the order that rows have without this step."""

    by: tuple[Order, ...]
    rows: int | None = None


@dataclass(frozen=True)
class Limit:
    """The first rows."""

    rows: int


Step: TypeAlias = Unnest | Filter | Project | GroupBy | Count | Compute | TopK | Limit

_PLACES: dict[type, int] = {Unnest: 0, Filter: 0, Project: 1, GroupBy: 1, Count: 1, Compute: 2, TopK: 3, Limit: 4}


def operands_of(expression: Expression) -> Iterator[Expression]:
    """An expression and all below it."""
    yield expression
    if isinstance(expression, Call):
        for operand in expression.operands:
            yield from operands_of(operand)


def expressions_of(condition: Condition) -> Iterator[Expression]:
    """The expressions that a condition reads, at any depth."""
    if isinstance(condition, And | Or):
        for part in condition.conditions:
            yield from expressions_of(part)
    elif isinstance(condition, Not | AnyItem):
        yield from expressions_of(condition.condition)
    elif isinstance(condition, Compare):
        yield from operands_of(condition.left)
        yield from operands_of(condition.right)
    else:
        yield from operands_of(condition.expression)


def any_items_of(condition: Condition) -> Iterator[AnyItem]:
    """The tests of items within a condition."""
    if isinstance(condition, AnyItem):
        yield condition
    elif isinstance(condition, And | Or):
        for part in condition.conditions:
            yield from any_items_of(part)
    elif isinstance(condition, Not):
        yield from any_items_of(condition.condition)


@dataclass(frozen=True)
class Array:
    """An array whose items a plan reads: under which name, where it lies, and in what."""

    name: str
    path: tuple[str, ...]
    of: str


def arrays_in(steps: Iterable[Step]) -> tuple[Array, ...]:
    """The arrays whose items are read, outer ones first. Two may be the same array under two names."""
    arrays = []
    for step in steps:
        if isinstance(step, Unnest):
            arrays.append(Array(step.name, step.path, step.of))
        elif isinstance(step, Filter):
            arrays.extend(Array(test.name, test.path, test.of) for test in any_items_of(step.condition))
    return tuple(arrays)


def step_place(step: Step) -> int:
    """Where in a plan a step may stand: places never fall, and only place 0 is taken more than once."""
    return _PLACES[type(step)]


FUNCTIONS = get_args(AggregateFunction)
OPERATORS = get_args(Operator)
KINDS = get_args(KindName)

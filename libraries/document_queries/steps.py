"""Parts of plans (expressions, conditions and steps) as frozen dataclasses, and functions to walk through them.

Users write these parts in Python or JSON, and plan.py combines them. semantics.py defines what they mean.
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
"""Function -> number of operands."""

MOST_NESTING = 64
"""Maximum nesting of conditions and expressions, so that Python can compile the generated source."""

MOST_UNNESTS = 16
"""Maximum number of Unnests in a plan. Each is a nested loop of the generated source, and Python allows 20 nested
blocks."""


@dataclass(frozen=True)
class Field:
    """The value at `path`, a chain of field names, in the document (if `of` is empty) or in the item named `of`.

    An empty path is the document or item itself. The result is missing if the path leads through a value that is not an
    object.
    """

    path: tuple[str, ...]
    of: str = ""


@dataclass(frozen=True)
class Constant:
    """A constant value."""

    value: Scalar


@dataclass(frozen=True)
class Call:
    """A function of values: `length` (in characters), `minus`, `floor_divide` or `modulo` (by a constant above 0)."""

    function: FunctionName
    operands: tuple[Expression, ...]


Expression: TypeAlias = Field | Constant | Call


@dataclass(frozen=True)
class Compare:
    """A comparison. The result is null (unknown) if the kinds differ, or if one side is missing, null or NaN."""

    left: Expression
    operator: Operator
    right: Expression


@dataclass(frozen=True)
class In:
    """Whether the expression equals any of `values`. Equivalent to comparisons with `=` that are joined by `Or`."""

    expression: Expression
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Prefix:
    """Whether a text begins with `text`. The result is null for values that are not texts."""

    expression: Expression
    text: str


@dataclass(frozen=True)
class Exists:
    """Whether the value is not missing; it may be null. The result is never null."""

    expression: Expression


@dataclass(frozen=True)
class IsMissing:
    """Whether the value is missing. The result is never null."""

    expression: Expression


@dataclass(frozen=True)
class IsNull:
    """Whether the value exists and is null. The result itself is never null."""

    expression: Expression


@dataclass(frozen=True)
class IsType:
    """Whether the value is of this kind. The result is never null."""

    expression: Expression
    kind: KindName


@dataclass(frozen=True)
class And:
    """False if any condition is false, else null if any is null, else true."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """True if any condition is true, else null if any is null, else false."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """Swaps true and false; null stays null."""

    condition: Condition


@dataclass(frozen=True)
class AnyItem:
    """Whether the condition is true for at least one item of the array at `path`. The result is false for values that
    are not arrays, and never null.

    `condition` reads the item under `name`, and may also read the document and the items that surround the AnyItem. An
    AnyItem cannot contain another AnyItem.
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
    """An aggregate of a group. `count` without an expression counts tuples."""

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
    """Yields one tuple per item of the array at `path`. The tuple has the item as `name`, and everything it had before.

    A value that is not an array gives no tuple. `distinct` is an expression. If it is given, items with the same value
    of the expression give only one tuple, which has the first of these items.
    """

    path: tuple[str, ...]
    name: str
    of: str = ""
    distinct: Expression | None = None


@dataclass(frozen=True)
class Filter:
    """Keeps the tuples for which the condition is true (not false or null)."""

    condition: Condition


@dataclass(frozen=True)
class Project:
    """Yields one row per tuple, without missing values."""

    columns: tuple[Named, ...]


@dataclass(frozen=True)
class GroupBy:
    """Yields one row per group of equal keys (same kind and bits).

    Without keys it yields one row, even without tuples.
    """

    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...] = ()


@dataclass(frozen=True)
class Count:
    """Yields one row with the number of tuples. A count of whole documents reads only keys."""

    name: str = "count"


@dataclass(frozen=True)
class Compute:
    """Adds columns that are computed from other columns of the result."""

    columns: tuple[Named, ...]


@dataclass(frozen=True)
class TopK:
    """Sorts the rows, and keeps the first `rows` of them (None: all). Ties keep the order that the rows had before this
    step."""

    by: tuple[Order, ...]
    rows: int | None = None


@dataclass(frozen=True)
class Limit:
    """Keeps the first rows."""

    rows: int


Step: TypeAlias = Unnest | Filter | Project | GroupBy | Count | Compute | TopK | Limit

_PLACES: dict[type, int] = {Unnest: 0, Filter: 0, Project: 1, GroupBy: 1, Count: 1, Compute: 2, TopK: 3, Limit: 4}


def operands_of(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all expressions nested in it."""
    yield expression
    if isinstance(expression, Call):
        for operand in expression.operands:
            yield from operands_of(operand)


def expressions_of(condition: Condition) -> Iterator[Expression]:
    """Yield the expressions that a condition reads, including those of nested conditions."""
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
    """Yield the AnyItem tests within a condition."""
    if isinstance(condition, AnyItem):
        yield condition
    elif isinstance(condition, And | Or):
        for part in condition.conditions:
            yield from any_items_of(part)
    elif isinstance(condition, Not):
        yield from any_items_of(condition.condition)


@dataclass(frozen=True)
class Array:
    """An array whose items a plan reads: the name of its items, its path, and the item or document that contains it."""

    name: str
    path: tuple[str, ...]
    of: str


def arrays_in(steps: Iterable[Step]) -> tuple[Array, ...]:
    """Return the arrays whose items the steps read, outer arrays before inner arrays.

    The same array may occur under two names.
    """
    arrays = []
    for step in steps:
        if isinstance(step, Unnest):
            arrays.append(Array(step.name, step.path, step.of))
        elif isinstance(step, Filter):
            arrays.extend(Array(test.name, test.path, test.of) for test in any_items_of(step.condition))
    return tuple(arrays)


def step_place(step: Step) -> int:
    """Return the rank of a step type. Within a plan, ranks must never decrease, and each rank except 0 may occur only
    once."""
    return _PLACES[type(step)]


FUNCTIONS = get_args(AggregateFunction)
OPERATORS = get_args(Operator)
KINDS = get_args(KindName)

"""Find the ranges in which the values of single fields must be, according to a plan's filters. With these ranges,
queries skip parts of the store or use an index.

Only conditions that every tuple must meet are used, which are the parts of top-level `And`s. A range may be wider than
the condition, never narrower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from libraries.document_queries.paths import ITEMS, Path
from libraries.document_queries.plan import Plan, absolute
from libraries.document_queries.steps import And, AnyItem, Compare, Condition, Constant, Field, Filter, In, Scalar
from libraries.document_store.queries.branches import Places
from libraries.document_store.queries.comparing import for_doubles, for_integers
from libraries.document_store.queries.parts import QueryPart
from libraries.document_store.values import ValueKind, kind_of

_NUMBERS = (ValueKind.INTEGER, ValueKind.DOUBLE)
_MIRRORED = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Range:
    """The value at `path` must be from `low` to `high`. Both bounds have the same kind, or one is an integer and one a
    double."""

    path: Path
    low: Scalar
    """The lower bound; None means unbounded."""
    high: Scalar
    """The upper bound; None means unbounded."""

    @property
    def is_of_documents(self) -> bool:
        """Whether the value belongs to the document itself, not to items of an array."""
        return ITEMS not in self.path


def ranges_of(plan: Plan) -> tuple[Range, ...]:
    """Return the ranges that a plan's filters require. Several ranges of the same document field are intersected."""
    steps = (step for step in plan.gathering if isinstance(step, Filter))
    found: dict[tuple[Path, ValueKind] | int, Range] = {}
    for number, wanted in enumerate(found for step in steps for found in _demanded(plan, step.condition)):
        kind = _kind(wanted)
        # Each range may be met by a different item, so ranges of items are not combined.
        like = ValueKind.DOUBLE if kind in _NUMBERS else kind
        place = (wanted.path, like) if wanted.is_of_documents else number
        found[place] = _both(found[place], wanted) if place in found else wanted
    return tuple(found.values())


def _kind(wanted: Range) -> ValueKind:
    return kind_of(wanted.low if wanted.low is not None else wanted.high)


def _both(one: Range, other: Range) -> Range:
    lows = [each.low for each in (one, other) if each.low is not None]
    highs = [each.high for each in (one, other) if each.high is not None]
    return Range(one.path, max(lows, default=None), min(highs, default=None))


def _demanded(plan: Plan, condition: Condition) -> Iterator[Range]:
    if isinstance(condition, And):
        for part in condition.conditions:
            yield from _demanded(plan, part)
    elif isinstance(condition, AnyItem):
        yield from _demanded(plan, condition.condition)
    elif isinstance(condition, Compare):
        left, operator, right = condition.left, str(condition.operator), condition.right
        if isinstance(left, Constant):
            left, operator, right = right, _MIRRORED.get(operator, "!="), left
        if not isinstance(left, Field) or not isinstance(right, Constant) or operator == "!=":
            return
        if right.value is not None and right.value == right.value:
            low = None if operator in ("<", "<=") else right.value
            high = None if operator in (">", ">=") else right.value
            yield Range(absolute(plan, left.of, left.path), low, high)
    elif isinstance(condition, In) and isinstance(condition.expression, Field):
        texts = [value for value in condition.values if isinstance(value, str)]
        if texts and len(texts) == len(condition.values):
            field = condition.expression
            yield Range(absolute(plan, field.of, field.path), min(texts), max(texts))


Bounds = tuple[int, Scalar, Scalar]
"""The number of a schema leaf, and both ends of a range as values of the leaf's kind. None means unbounded."""


def bounds_of(places: Places, wanted: Range) -> tuple[Bounds, ...]:
    """Return the leaves of a schema that may have values within a range. Each leaf comes with both ends of the range,
    converted to the leaf's kind."""
    kind = _kind(wanted)
    like = _NUMBERS if kind in _NUMBERS else (kind,)
    found = []
    for branch in places.branches(wanted.path):
        ends = _ends(branch.kind, wanted) if branch.kind in like else None
        if ends is not None:
            found.append((branch.leaf.number, *ends))
    return tuple(found)


def may_match(part: QueryPart, bounds: Iterable[Bounds]) -> bool:
    """Return False only if no document of the part has a value within the bounds."""
    return any(part.may_match(number, low, high) for number, low, high in bounds)


def _ends(kind: ValueKind, wanted: Range) -> tuple[Scalar, Scalar] | None:
    """Return both ends of a range as values of the kind. Return None if no value of the kind is in the range."""
    if kind not in _NUMBERS:
        return wanted.low, wanted.high
    ends: list[Scalar] = []
    for operator, value in ((">=", wanted.low), ("<=", wanted.high)):
        if not isinstance(value, int | float):
            ends.append(None)
            continue
        known = for_integers(operator, value) if kind is ValueKind.INTEGER else for_doubles(operator, value)
        if known is False:
            return None
        ends.append(None if known is True else known[1])
    return ends[0], ends[1]

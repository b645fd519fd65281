"""Generated code over columns. Each plan becomes one function in Python and numpy for the branches (kinds of values) of
a schema.

Scans, filters, unnests and projections are fused into straight-line code over whole columns; no array is assembled.
Groups are computed from the results of the function, outside the generated code (section 5 of the paper).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from libraries.document_queries.paths import Path
from libraries.document_queries.plan import Plan, absolute, arrays_of, result_expressions
from libraries.document_queries.steps import (
    Aggregate,
    Expression,
    Field,
    Filter,
    GroupBy,
    Unnest,
    any_items_of,
    expressions_of,
    operands_of,
)
from libraries.document_store.queries.branches import Branch, Places, uses_of
from libraries.document_store.queries.generated.conditions import ColumnSource, Scope, Tuples
from libraries.document_store.queries.generated.function_source import Cache, FunctionSource
from libraries.document_store.queries.parts import QueryPart
from libraries.document_store.queries.vectors import codes, unnesting, vector
from libraries.document_store.queries.vectors.codes import Codes
from libraries.document_store.queries.vectors.slots import View
from libraries.document_store.queries.vectors.vector import Index, Vector
from libraries.document_store.shredding import CodedColumn, Column


class Receiver(Protocol):
    """Receives the results of generated functions."""

    def tuples(self, count: int, keys: Sequence[Codes | Vector], operands: Sequence[Vector | None]) -> None:
        """Receive `count` tuples: the values of each group key, and the operand of each aggregate."""

    def rows(self, index: Index, vectors: Sequence[Vector]) -> None:
        """Receive rows of a projection. `index` is the position of each row's document; `vectors` are the columns."""

    def documents(self, index: Index) -> None:
        """Receive the positions of documents that are returned whole."""


class Columns:
    """The columns of one part that were read so far, and views of these columns (their values by slot, see
    `slots.py`)."""

    def __init__(self, part: QueryPart) -> None:
        self.count = part.count
        self._part = part
        self._columns: dict[int, Column | CodedColumn] = {}
        self._views: dict[tuple[int, int], View] = {}

    def load(self, leaf_numbers: Iterable[int]) -> None:
        """Read the columns of these leaves that were not read before."""
        wanted = [number for number in leaf_numbers if number not in self._columns]
        if wanted:
            self._columns.update(self._part.coded_columns(wanted))

    def view(self, leaf_number: int, depth: int) -> View:
        """Return the view of a loaded column at a depth of arrays."""
        key = (leaf_number, depth)
        if key not in self._views:
            self._views[key] = View(self._columns[leaf_number], depth)
        return self._views[key]


Function = Callable[[Columns, Receiver], None]

_GIVEN = {
    name: getattr(module, name)
    for module, names in (
        (vector, ("absent", "compare", "compare_texts", "constant", "floor_divide", "is_among", "is_prefix")),
        (
            vector,
            ("kinds_of", "length", "minus", "modulo", "of_view", "of_views", "only_kinds", "spelled_out", "spread"),
        ),
        (codes, ("key_of_view",)),
        (unnesting, ("any_of", "first_of_each", "items", "joined", "narrowed")),
    )
    for name in names
} | {"flatnonzero": vector.np.flatnonzero}

_functions = Cache()


def function_for(plan: Plan, spelled: str, places: Places) -> Function | None:
    """Return a plan's compiled function, which schemas with the same branches share. Return None if no tuple can come
    from such schemas.

    `spelled` is the plan as JSON, a part of the cache key. Plans that are equal in Python may differ, because 1, 1.0
    and True are equal.
    """
    function: Function | None = _functions.get((spelled, signature(plan, places)), lambda: _generated(plan, places))
    return function


def signature(plan: Plan, places: Places) -> tuple[Any, ...]:
    """Return the cache key of a schema for this plan: the branches of all positions that the plan reads."""
    paths = [absolute(plan, read.of, read.path) for read in uses_of(plan)]
    paths += [absolute(plan, array.name, ()) for array in arrays_of(plan)]
    return tuple(tuple(map(_told, places.branches(path))) for path in paths)


def _told(branch: Branch) -> tuple[int, int, int]:
    return branch.leaf.number, int(branch.kind), len(branch.leaf.array_levels)


class _Nothing(Exception):
    """Raised when no tuple can come from the schema."""


def _generated(plan: Plan, places: Places) -> Function | None:
    source = FunctionSource()
    try:
        _Writer(plan, ColumnSource(source, places)).write()
    except _Nothing:
        return None
    return source.compiled("w, out", _GIVEN)


class _Writer:
    """Writes the steps of one plan, in order."""

    def __init__(self, plan: Plan, columns: ColumnSource) -> None:
        self.plan, self.columns, self.source = plan, columns, columns.source
        self.tuples = Tuples("n", {"": Scope(Path(), 0, "t0")})

    def write(self) -> None:
        self.source.line("n, t0 = w.count, None")
        for number, step in enumerate(self.plan.gathering):
            place = self.source.place()
            if isinstance(step, Filter):
                self._filter(step)
            else:
                self._unnest(step, _names_after(self.plan, number), number == 0)
            self._load(place)
        place = self.source.place()
        self._result()
        self._load(place)

    def _load(self, place: int) -> None:
        if self.columns.leaves:
            self.source.insert(place, f"w.load({tuple(sorted(self.columns.leaves))})")
            self.columns.leaves.clear()

    def _filter(self, step: Filter) -> None:
        known = self.columns.mask(step.condition, self.tuples)
        if known is False:
            raise _Nothing
        if known is not True:
            self._narrow(self.source.variable("o", f"flatnonzero({known})"))

    def _narrow(self, kept: str) -> None:
        with self.source.block(f"if len({kept}) == 0:"):
            self.source.line("return")
        with self.source.block(f"if len({kept}) < n:"):
            self.source.line(f"n = len({kept})")
            for scope in self.tuples.scopes.values():
                self.source.line(f"{scope.index} = narrowed({scope.index}, {kept})")

    def _unnest(self, step: Unnest, names: set[str], is_first: bool) -> None:
        found = self.columns.items(step, self.tuples)
        if found is None:
            raise _Nothing
        scope, slots, view = found
        outer = self.tuples.scopes[step.of].index
        index = self.source.name("t")
        kept = {name: other for name, other in self.tuples.scopes.items() if name in names}
        if kept or step.distinct is not None or not is_first:
            old = self.source.name("o")
            self.source.line(f"{old}, {index} = joined({outer}, {view}.parents({scope.depth}), {slots})")
            for other in kept.values():
                self.source.line(f"{other.index} = narrowed({other.index}, {old})")
            self.source.line(f"n = len({old})")
        else:
            # No later step uses the document to which an item belongs.
            old = ""
            self.source.line(f"{index} = {slots}")
            self.source.line(f"n = len({view}) if {index} is None else len({index})")
        self.tuples = Tuples("n", {**kept, step.name: Scope(scope.path, scope.depth, index)})
        with self.source.block("if n == 0:"):
            self.source.line("return")
        if step.distinct is not None:
            values = self.columns.vector(step.distinct, self.tuples)
            self._narrow(self.source.variable("o", f"first_of_each({old}, {values})"))

    def _result(self) -> None:
        result = self.plan.result
        if result is None:
            self.source.line("out.documents(t0)")
            return
        made: dict[tuple[str, Expression], str] = {}
        if isinstance(result, GroupBy):
            names = [self.columns.key(key.expression, self.tuples) for key in result.keys]
            operands = [self._operand(aggregate, made) for aggregate in result.aggregates]
            self.source.line(f"out.tuples(n, [{', '.join(names)}], [{', '.join(operands)}])")
        else:
            names = [self._made(column.expression, made) for column in result.columns]
            self.source.line(f"out.rows(t0, [{', '.join(names)}])")

    def _operand(self, aggregate: Aggregate, made: dict[tuple[str, Expression], str]) -> str:
        if aggregate.expression is None:
            return "None"
        if aggregate.function == "count":
            return self.source.variable("v", f"only_kinds({self.columns.kinds(aggregate.expression, self.tuples)})")
        return self._made(aggregate.expression, made)

    def _made(self, expression: Expression, made: dict[tuple[str, Expression], str]) -> str:
        # The repr distinguishes constants that are equal in Python.
        key = (repr(expression), expression)
        if key not in made:
            made[key] = self.columns.vector(expression, self.tuples)
        return made[key]


def _names_after(plan: Plan, number: int) -> set[str]:
    """Return the names whose positions are still needed after the Unnest at step `number`. A name is '' for the
    document, or the name that an Unnest gives to its items."""
    parts = (part for whole in result_expressions(plan.result) for part in operands_of(whole))
    names = {part.of for part in parts if isinstance(part, Field)}
    if not isinstance(plan.result, GroupBy):
        names.add("")
    for step in plan.gathering[number + 1 :]:
        if isinstance(step, Unnest):
            names.add(step.of)
        else:
            names.update(part.of for part in expressions_of(step.condition) if isinstance(part, Field))
            names.update(test.of for test in any_items_of(step.condition))
    return names

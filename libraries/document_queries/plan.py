"""Queries: chains of steps over documents, as frozen dataclasses that are checked on construction.

    Plan((Unnest(("readings",), "r"), GroupBy((Named("sensor", field("sensor_id")),),
          (Aggregate("highest", "max", field("value", of="r")),)), TopK((Order("highest", descending=True),), 10)))

A plan names fields and does not depend on rows, columns, schemas or execution. semantics.py defines its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from libraries.document_queries.checks import check_steps
from libraries.document_queries.errors import QueryError
from libraries.document_queries.paths import ITEMS, Path, parse
from libraries.document_queries.steps import (
    Aggregate,
    Array,
    Count,
    Expression,
    Field,
    Filter,
    GroupBy,
    Project,
    Step,
    Unnest,
    arrays_in,
    expressions_of,
    operands_of,
)


@dataclass(frozen=True)
class Plan:
    """A query: any number of Unnest and Filter steps, then at most one of Project, GroupBy and Count, then optionally
    Compute, TopK and Limit, in this order.

    Without Project, GroupBy and Count, the rows of the result are the documents. Raises QueryError if the plan cannot
    be executed.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        """Check the plan as a whole, because the validity of a part depends on the other parts."""
        check_steps(self.steps)

    @property
    def gathering(self) -> tuple[Unnest | Filter, ...]:
        """The steps that make tuples: all Unnest and Filter steps."""
        return tuple(step for step in self.steps if isinstance(step, Unnest | Filter))

    @property
    def result(self) -> Project | GroupBy | None:
        """The step that turns tuples into rows, or None if the rows are whole documents. Count is returned as a GroupBy
        without keys."""
        for step in self.steps:
            if isinstance(step, Count):
                return GroupBy((), (Aggregate(step.name, "count"),))
            if isinstance(step, Project | GroupBy):
                return step
        return None

    @property
    def counts_documents_only(self) -> bool:
        """Whether the answer is the number of all documents. Such a query needs to read no document."""
        return (
            not self.gathering
            and isinstance(self.result, GroupBy)
            and not self.result.keys
            and all(a.function == "count" and a.expression is None for a in self.result.aggregates)
        )


def field(text: str, of: str = "") -> Field:
    """Return a field given the text of its path, such as a.b (escape dots in names with a backslash). Raises
    QueryError."""
    steps = tuple(parse(text)) if text else ()
    names = tuple(step for step in steps if isinstance(step, str))
    if len(names) != len(steps):
        raise QueryError(
            f"field {text!r} goes through an array; add Unnest(path of the array, name), and use field(..., of=name)"
        )
    return Field(names, of)


def arrays_of(plan: Plan) -> tuple[Array, ...]:
    """Return the arrays whose items the plan reads, outer arrays before inner arrays.

    The same array may occur under two names.
    """
    return arrays_in(plan.gathering)


def fields_of(plan: Plan) -> tuple[Field, ...]:
    """Return the distinct fields of documents and items that the plan reads, in the order of the plan."""
    found: dict[Field, None] = {}
    for expression in _read(plan):
        for part in operands_of(expression):
            if isinstance(part, Field):
                found[part] = None
    return tuple(found)


def absolute(plan: Plan, of: str, path: tuple[str, ...]) -> Path:
    """Return the path from the document's root to a value. The value is at `path` in the item named `of`, or in the
    document if `of` is empty."""
    arrays = {array.name: array for array in arrays_of(plan)}
    steps: tuple[object, ...] = path
    while of:
        steps = (*arrays[of].path, ITEMS, *steps)
        of = arrays[of].of
    return Path(steps)  # type: ignore[arg-type]


def _read(plan: Plan) -> Iterator[Expression]:
    for step in plan.gathering:
        if isinstance(step, Filter):
            yield from expressions_of(step.condition)
        elif step.distinct is not None:
            yield step.distinct
    yield from result_expressions(plan.result)


def result_expressions(result: Project | GroupBy | None) -> tuple[Expression, ...]:
    """Return the expressions evaluated per tuple: the columns of a projection, or the keys of groups and then the
    operands of the aggregates."""
    if result is None:
        return ()
    if isinstance(result, Project):
        return tuple(column.expression for column in result.columns)
    operands = tuple(a.expression for a in result.aggregates if a.expression is not None)
    return (*(key.expression for key in result.keys), *operands)

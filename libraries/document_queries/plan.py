"""What a query is: a chain of steps over documents, as frozen dataclasses that are checked when they are made.

    Plan((Unnest(("readings",), "r"), GroupBy((Named("sensor", field("sensor_id")),),
          (Aggregate("highest", "max", field("value", of="r")),)), TopK((Order("highest", descending=True),), 10)))

A plan names fields and says nothing of rows, columns, schemas or execution. What its parts mean, value by value, is
said in semantics.py.
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
    """A query: (Unnest | Filter)*, then at most one of Project, GroupBy and Count, then Compute?, TopK?, Limit?.

    Without Project, GroupBy and Count the rows are the documents. Raises QueryError for what cannot be executed.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        """Check the whole; every part is only right or wrong within it."""
        check_steps(self.steps)

    @property
    def gathering(self) -> tuple[Unnest | Filter, ...]:
        """The steps that make tuples."""
        return tuple(step for step in self.steps if isinstance(step, Unnest | Filter))

    @property
    def result(self) -> Project | GroupBy | None:
        """The step that makes rows of tuples; Count is a group without keys; None: whole documents."""
        for step in self.steps:
            if isinstance(step, Count):
                return GroupBy((), (Aggregate(step.name, "count"),))
            if isinstance(step, Project | GroupBy):
                return step
        return None

    @property
    def counts_documents_only(self) -> bool:
        """Whether the answer is the number of documents: no document has to be read."""
        return (
            not self.gathering
            and isinstance(self.result, GroupBy)
            and not self.result.keys
            and all(a.function == "count" and a.expression is None for a in self.result.aggregates)
        )


def field(text: str, of: str = "") -> Field:
    """A field by the text of its path ('a.b'; a dot within a name is spelled with a backslash). Raises QueryError."""
    steps = tuple(parse(text)) if text else ()
    names = tuple(step for step in steps if isinstance(step, str))
    if len(names) != len(steps):
        raise QueryError(f"field {text!r} goes through an array: unnest the array, and name the field of its item")
    return Field(names, of)


def arrays_of(plan: Plan) -> tuple[Array, ...]:
    """The arrays whose items are read, outer ones first. Two may be the same array under two names."""
    return arrays_in(plan.gathering)


def fields_of(plan: Plan) -> tuple[Field, ...]:
    """The fields that are read of documents and items, each once, in the order in which the plan names them."""
    found: dict[Field, None] = {}
    for expression in _read(plan):
        for part in operands_of(expression):
            if isinstance(part, Field):
                found[part] = None
    return tuple(found)


def absolute(plan: Plan, of: str, path: tuple[str, ...]) -> Path:
    """A path from the document's root: of a field of the document, or of the item that `of` names."""
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
    """What is evaluated for each tuple: columns of a projection, or keys and then operands of aggregates."""
    if result is None:
        return ()
    if isinstance(result, Project):
        return tuple(column.expression for column in result.columns)
    operands = tuple(a.expression for a in result.aggregates if a.expression is not None)
    return (*(key.expression for key in result.keys), *operands)

"""What a client asks of one table: columns or aggregates, a filter, groups, a limit. Data alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from libraries.near_storage.predicates.tree import Predicate

Function: TypeAlias = OneOf["min", "max", "sum", "count", "avg"]
FUNCTIONS: tuple[Function, ...] = ("min", "max", "sum", "count", "avg")


@dataclass(frozen=True)
class Aggregate:
    """`function(column)`, called `name` in the answer; `column` is None for count(*)."""

    function: Function
    column: str | None
    name: str


@dataclass(frozen=True)
class Query:
    """One table's rows, or their aggregates.

    `columns` are those of the answer, in its order (None: all of the table); of a query with aggregates they are the
    grouping columns that the answer shows. `aggregates` come after them, unless `order` names the answer's columns in
    another order. `limit` stops reading early; None: no limit.
    """

    table: str
    columns: tuple[str, ...] | None = None
    where: Predicate | None = None
    aggregates: tuple[Aggregate, ...] = ()
    group_by: tuple[str, ...] = ()
    limit: int | None = None
    order: tuple[str, ...] | None = None

    @property
    def aggregated(self) -> bool:
        """Whether the answer is made of groups: one row for each, or one in all, in place of stored rows."""
        return bool(self.aggregates or self.group_by)

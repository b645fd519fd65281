"""A query on one table: columns or aggregates, a filter, groups, a limit. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from libraries.filters.tree import Predicate

Function: TypeAlias = OneOf["min", "max", "sum", "count", "avg"]
FUNCTIONS: tuple[Function, ...] = ("min", "max", "sum", "count", "avg")


@dataclass(frozen=True)
class Aggregate:
    """An aggregate `function(column)`, called `name` in the answer. `column` is None for count(*)."""

    function: Function
    column: str | None
    name: str


@dataclass(frozen=True)
class Query:
    """Rows of one table, or aggregates of these rows.

    `columns` names the columns of the answer in order; None means all columns. In a query with aggregates, `columns`
    names the grouping columns of the answer. The aggregates follow these columns, unless `order` names all columns of
    the answer in another order. `limit` is the maximum number of rows of the answer; None means no limit.
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
        """Whether the answer consists of one row per group, or one row in total, instead of stored rows."""
        return bool(self.aggregates or self.group_by)

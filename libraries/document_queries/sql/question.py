"""Translate SQL to a plan without looking at documents, so that any store that answers plans can answer the query."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.errors import SqlglotError

from libraries.document_queries.errors import QueryError
from libraries.document_queries.plan import Plan
from libraries.document_queries.sql.conditions import NoPlan
from libraries.document_queries.sql.errors import SQLError, unprocessed
from libraries.document_queries.sql.names import Resolver
from libraries.document_queries.sql.parsing import parse
from libraries.document_queries.sql.planning import planned
from libraries.document_queries.steps import Count, GroupBy, Limit, Order, Step, TopK


def plan_of(text: str) -> Plan:
    """Return the plan of a query.

    Where plans differ from SQL, the rules of plans apply: missing and null are two groups, both come first in ascending
    order, and fields with values of several types are allowed everywhere. The columns of the answer are named by
    position. Raises SQLError for a query that is wrong or that no plan can express.
    """
    tree = parse(text)
    try:
        statement = Resolver(lambda path: False, _no_names).statement(tree)
        # Without documents no field has a kind that a plan refuses.
        found = planned(statement, lambda path: frozenset())
        if found.offset:
            raise NoPlan("it has OFFSET")
        steps = tuple(map(_count_if_only_that, found.plan.steps))
        by = tuple(Order(column, descends) for column, descends, _ in found.sorting.columns)
        if by:
            steps = (*steps, TopK(by, found.limit))
        elif found.limit is not None and not isinstance(steps[-1], Limit):
            steps = (*steps, Limit(found.limit))
        return Plan(steps)
    except NoPlan as why:
        allowed = "fields or aggregates, WHERE, GROUP BY, ORDER BY, LIMIT"
        raise SQLError(
            f"this SQL cannot be asked in every store: {why}; write SELECT with {allowed}", "limit"
        ) from None
    except SQLError:
        raise
    except (SqlglotError, RecursionError, QueryError) as error:
        raise unprocessed(error) from None


def _no_names() -> Sequence[str]:
    raise NoPlan("it has *, but the names of the fields are not known in advance")


def _count_if_only_that(step: Step) -> Step:
    """Return Count if the step only counts rows, and otherwise the step itself. Stores answer Count faster, because
    they then read only keys."""
    if isinstance(step, GroupBy) and not step.keys and len(step.aggregates) == 1:
        (figure,) = step.aggregates
        if figure.function == "count" and figure.expression is None:
            return Count(figure.name)
    return step

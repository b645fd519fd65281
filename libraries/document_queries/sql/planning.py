"""Translate a query to a plan, and to the order and number of its rows. Raises NoPlan for queries that no plan can
express. Supported are

    SELECT [DISTINCT] fields FROM docs [WHERE ...] [ORDER BY ...] [LIMIT n] [OFFSET n]
    SELECT fields, aggregates FROM docs [WHERE ...] [GROUP BY fields] [ORDER BY ...] [LIMIT n] [OFFSET n]

Aggregates are count(*), and count, count(DISTINCT), sum, avg, min and max of a field. Conditions are comparisons of a
field with a constant or a field, IN, BETWEEN, LIKE 'text%', IS NULL, AND, OR, NOT. A field in ORDER BY, in GROUP BY, or
in min and max must have values of one type; sum and avg accept integers and doubles. GROUP BY and count(DISTINCT)
accept booleans, integers and texts, but no doubles, because SQL treats 0.0 and -0.0 as equal and plans do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from libraries.document_queries.plan import Plan
from libraries.document_queries.semantics import KIND_NAMES
from libraries.document_queries.sql.conditions import NoPlan, condition_of, number_of, parts_of, told
from libraries.document_queries.sql.names import FieldPath, Statement, column_name
from libraries.document_queries.steps import (
    Aggregate,
    AggregateFunction,
    Field,
    Filter,
    GroupBy,
    Limit,
    Named,
    Project,
    Step,
)

Kinds = frozenset[int]
"""Kinds of values, without null. The number of a kind is its position in KIND_NAMES."""

BOOLEAN, INTEGER, DOUBLE, TEXT = map(tuple(KIND_NAMES).index, (bool, int, float, str))
_KEYS = {BOOLEAN, INTEGER, TEXT}
_ORDERED = {*_KEYS, DOUBLE}
_NUMBERS = {INTEGER, DOUBLE}
_FUNCTIONS: dict[type[exp.Expr], AggregateFunction] = {
    **{exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"},
}
_WHOLE = re.compile("[0-9]{1,18}")
"""A number of rows, short enough to fit in 64 bits."""
_PARTS = {"kind", "hint", "expressions", "from_", "where", "group", "order", "limit", "offset", "distinct"}
"""Parts of a SELECT that are translated, or that do not change the answer."""


@dataclass(frozen=True)
class Sorting:
    """The order of the rows."""

    columns: tuple[tuple[str, bool, bool], ...] = ()
    """For each sort key: its column in the plan's result, whether the order is descending, and whether nulls come
    first."""


@dataclass(frozen=True)
class Planned:
    """A query as a plan, and what remains to be done with the rows of the plan."""

    plan: Plan
    columns: tuple[str, ...]
    """The columns of the plan that the query returns, in order."""
    names: tuple[str, ...]
    """The names of these columns in the answer."""
    sorting: Sorting
    limit: int | None
    offset: int
    kinds: dict[str, Kinds] = field(default_factory=dict)
    """Maps each column to the kinds of values that it may have. A sum of integers and doubles has the kind double."""


@dataclass(frozen=True)
class GroupsPlanned:
    """A plan that computes the groups of a query. DuckDB then evaluates the query's other expressions and conditions on
    these groups."""

    plan: Plan
    kinds: dict[str, Kinds]
    """Maps each column to the kinds of values that it may have. A sum of integers and doubles has the kind double."""


def planned(statement: Statement, kinds_of: Callable[[FieldPath], Kinds]) -> Planned:
    """Return the plan of a query. `kinds_of` returns the kinds that a field may have. Raises NoPlan."""
    return _Translation(statement, kinds_of).result()


def groups_planned(statement: Statement, kinds_of: Callable[[FieldPath], Kinds]) -> GroupsPlanned:
    """Return the plan that computes a query's groups. Change the query's tree so that it reads the groups: columns
    replace the aggregates, HAVING becomes WHERE, and GROUP BY is removed.

    Raises NoPlan, and then leaves the tree unchanged.
    """
    return _Translation(statement, kinds_of).groups()


class _Translation:
    """Translates one SELECT: to a plan of the whole query (`result`), or to a plan of its groups (`groups`)."""

    def __init__(self, statement: Statement, kinds_of: Callable[[FieldPath], Kinds]) -> None:
        if not isinstance(statement.tree, exp.Select):
            raise NoPlan("it is not a single SELECT")
        self.select, self.fields, self._kinds_of = statement.tree, statement.fields, kinds_of
        self.names = tuple(statement.names or ())
        self._made: dict[str, str] = {}
        self._outputs: list[Named | Aggregate] = []
        self._kinds: dict[str, Kinds] = {}

    def result(self) -> Planned:
        self._check_parts(_PARTS)
        gathering: tuple[Step, ...] = ()
        where = self.select.args.get("where")
        if where is not None:
            gathering = (Filter(condition_of(where.this, self.fields)),)
        items = [item.this for item in self.select.expressions]
        keys = self._group_keys(items)
        is_grouped = keys is not None or any(self._is_aggregate(item) for item in items)
        allowed = {*map(self._text, keys or ())} if is_grouped else None
        columns = tuple(self._column(item, allowed) for item in items)
        sorting = self._sorting(items, allowed, is_distinct=self.select.args.get("distinct") is not None)
        if not is_grouped:
            projected = tuple(output for output in self._outputs if isinstance(output, Named))
            step: Step = Project(projected)
        else:
            for key in keys or ():
                self._column(key, allowed)
            named = tuple(output for output in self._outputs if isinstance(output, Named))
            figures = tuple(output for output in self._outputs if isinstance(output, Aggregate))
            for output in named:
                if not self._kinds[output.name] <= _KEYS and isinstance(output.expression, Field):
                    path = ".".join(output.expression.path)
                    raise NoPlan(f"GROUP BY or DISTINCT has {path}, whose values are not booleans, integers or texts")
            step = GroupBy(named, figures)
        limit, offset = (self._rows(name) for name in ("limit", "offset"))
        steps: tuple[Step, ...] = (step,)
        if isinstance(step, Project) and limit is not None and not sorting.columns:
            steps = (step, Limit(limit + (offset or 0)))
        return Planned(
            Plan((*gathering, *steps)), columns, self.names, sorting, limit, offset or 0, dict(self._kinds)
        )  # fmt: skip

    def groups(self) -> GroupsPlanned:
        self._check_parts(_PARTS | {"having"})
        where = self.select.args.get("where")
        gathering = () if where is None else (Filter(condition_of(where.this, self.fields)),)
        items = [item.this for item in self.select.expressions]
        rest = [*self.select.expressions, *filter(None, map(self.select.args.get, ("having", "order")))]
        if self.select.args.get("distinct") or any(part.find(exp.Query, exp.Window, exp.Filter) for part in rest):
            raise NoPlan("it has subqueries, windows, FILTER or DISTINCT")
        unknown = next(filter(None, (part.find(exp.Anonymous) for part in rest)), None)
        if unknown is not None:
            raise NoPlan(f"{told(unknown)} may be an aggregate")
        keys = [number_of(key) for key in self._group_keys(items) or ()]
        used = {number_of(node) for part in rest for node in part.find_all(exp.Column) if not _within_aggregate(node)}
        if None in keys or not used - {None} <= set(keys):
            raise NoPlan("a field is neither in GROUP BY nor in an aggregate")
        paths = {key: self.fields[key] for key in keys if key is not None}
        for key, path in paths.items():
            self._kinds[column_name(key)] = self._kinds_of(path)
            if len(self._kinds[column_name(key)]) > 1 or not self._kinds[column_name(key)] <= _KEYS:
                raise NoPlan(
                    f"the values of {'.'.join(path)} in GROUP BY are of several types, or not booleans, integers or "
                    "texts"
                )
        named = tuple(Named(column_name(key), Field(path)) for key, path in paths.items())
        nodes = [node for part in rest for node in part.find_all(exp.AggFunc)]
        figures = {self._text(node): node for node in nodes}
        names = {text: f"#a{place}" for place, text in enumerate(figures)}
        made = tuple(self._aggregate(node, names[text]) for text, node in figures.items())
        if not named and not made:
            raise NoPlan("it has neither GROUP BY nor aggregates")
        plan = Plan((*gathering, GroupBy(named, made)))
        self._put_groups_into_tree(nodes, names, {figure.name: figure for figure in made})
        return GroupsPlanned(plan, dict(self._kinds))

    def _put_groups_into_tree(
        self, nodes: list[exp.Expr], names: dict[str, str], figures: dict[str, Aggregate]
    ) -> None:
        table = exp.to_identifier(self.select.args["from_"].this.alias, quoted=True)
        for node in nodes:
            name = names[self._text(node)]
            column: exp.Expr = exp.column(exp.to_identifier(name, quoted=True), table=table.copy())
            # DuckDB adds integers in 128 bits.
            is_wide = figures[name].function == "sum" and self._kinds.get(name) == {INTEGER}
            node.replace(exp.cast(column, "HUGEINT") if is_wide else column)
        having = self.select.args.get("having")
        self.select.set("where", None if having is None else exp.Where(this=having.this))
        self.select.set("having", None)
        self.select.set("group", None)

    def _check_parts(self, allowed: set[str]) -> None:
        for name, value in self.select.args.items():
            if value and name not in allowed:
                raise NoPlan(f"it has {name.rstrip('_').upper()}")
        if self.select.args.get("from_") is None:
            raise NoPlan("it has no FROM")
        table = self.select.args["from_"].this
        if not isinstance(table, exp.Table) or parts_of(table) - {"this", "alias"}:
            raise NoPlan("FROM is more than docs")
        distinct = self.select.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise NoPlan("it has DISTINCT ON")

    def _group_keys(self, items: list[exp.Expr]) -> list[exp.Expr] | None:
        group = self.select.args.get("group")
        if group is None:
            if self.select.args.get("distinct") is None:
                return None
            if any(self._is_aggregate(item) for item in items):
                raise NoPlan("it has DISTINCT with aggregates")
            return items
        if parts_of(group) - {"expressions"}:
            raise NoPlan("GROUP BY is more than a list of fields")
        if self.select.args.get("distinct") is not None:
            raise NoPlan("it has DISTINCT with GROUP BY")
        return [self._meant(each, items) for each in group.expressions]

    def _meant(self, node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
        """Return the expression that a term of GROUP BY or ORDER BY refers to. The term may be the position or name of
        a column."""
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            place = int(str(node.this)) - 1
            if place not in range(len(items)):
                raise NoPlan("GROUP BY or ORDER BY has a position beyond the columns of SELECT")
            return items[place]
        if isinstance(node, exp.Column) and number_of(node) is None and len(node.parts) == 1:
            named = [item for item, name in zip(items, self.names, strict=True) if name == node.name]
            if named:
                return named[0]
        return node

    def _is_aggregate(self, node: exp.Expr) -> bool:
        return node.find(exp.AggFunc) is not None

    def _text(self, node: exp.Expr) -> str:
        return node.unnest().sql(dialect="duckdb")

    def _column(self, node: exp.Expr, keys: set[str] | None) -> str:
        """Return the name of the plan's column for an expression. `keys` are the texts of the group keys; None without
        groups."""
        node = node.unnest()
        text = self._text(node)
        if text in self._made:
            return self._made[text]
        name = f"c{len(self._outputs)}"
        number = number_of(node)
        if number is not None:
            if keys is not None and text not in keys:
                raise NoPlan("a field is neither in GROUP BY nor in an aggregate")
            path = self.fields[number]
            self._kinds[name] = self._kinds_of(path)
            if keys is not None and len(self._kinds[name]) > 1:
                raise NoPlan(f"{'.'.join(path)} has values of several types")
            self._outputs.append(Named(name, Field(path)))
        elif keys is not None:
            self._outputs.append(self._aggregate(node, name))
        else:
            raise NoPlan(f"SELECT has {told(node)}")
        self._made[text] = name
        return name

    def _aggregate(self, node: exp.Expr, name: str) -> Aggregate:
        function = _FUNCTIONS.get(type(node))
        if function is None or isinstance(node.parent, exp.Filter | exp.Window | exp.WithinGroup):
            raise NoPlan(f"SELECT has {told(node)}")
        if parts_of(node) - {"this", "big_int"}:
            raise NoPlan(f"{function} has several arguments")
        operand = node.this
        if function == "count":
            self._kinds[name] = frozenset({INTEGER})
            if isinstance(operand, exp.Star):
                return Aggregate(name, "count")
        allowed: set[int] | None = {"sum": _NUMBERS, "avg": _NUMBERS, "min": _ORDERED, "max": _ORDERED}.get(function)
        if isinstance(operand, exp.Distinct):
            if function != "count" or len(operand.expressions) != 1 or operand.args.get("on"):
                raise NoPlan("an aggregate has DISTINCT")
            function, operand, allowed = "count_distinct", operand.expressions[0], _KEYS
        number = number_of(operand) if operand is not None else None
        if number is None:
            raise NoPlan(f"{node.key} does not have a field as its argument")
        path = self.fields[number]
        kinds = self._kinds_of(path)
        adds = function in ("sum", "avg")
        if allowed is not None and (not kinds <= allowed or (len(kinds) > 1 and not adds)):
            raise NoPlan(f"{function} does not support the types of values in {'.'.join(path)}")
        if function in ("min", "max"):
            self._kinds[name] = kinds
        elif adds:
            self._kinds[name] = frozenset({DOUBLE}) if function == "avg" or len(kinds) > 1 else kinds
        return Aggregate(name, function, Field(path))

    def _sorting(self, items: list[exp.Expr], keys: set[str] | None, is_distinct: bool) -> Sorting:
        order = self.select.args.get("order")
        if order is None:
            return Sorting()
        if parts_of(order) - {"expressions"}:
            raise NoPlan("ORDER BY is more than a list of columns")
        columns = []
        for each in order.expressions:
            if not isinstance(each, exp.Ordered) or parts_of(each) - {"this", "desc", "nulls_first"}:
                raise NoPlan("ORDER BY is more than a list of columns")
            meant = self._meant(each.this, items)
            if is_distinct and self._text(meant) not in map(self._text, items):
                raise NoPlan("a SELECT DISTINCT is ordered by a field that it does not select")
            name = self._column(meant, keys)
            kinds = self._kinds.get(name, frozenset())
            if len(kinds) > 1 or not kinds <= _ORDERED:
                what = "values of several types" if len(kinds) > 1 else "arrays, objects or bytes"
                raise NoPlan(f"ORDER BY has a column of {what}")
            columns.append((name, bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
        return Sorting(tuple(columns))

    def _rows(self, name: str) -> int | None:
        found = self.select.args.get(name)
        if found is None:
            return None
        node: Any = found.args.get("expression")
        if (
            parts_of(found) - {"expression"}
            or not isinstance(node, exp.Literal)
            or node.is_string
            or not _WHOLE.fullmatch(str(node.this))
        ):
            raise NoPlan(f"{name.upper()} is not a whole number")
        return int(str(node.this))


def _within_aggregate(node: exp.Expr) -> bool:
    return node.find_ancestor(exp.AggFunc) is not None

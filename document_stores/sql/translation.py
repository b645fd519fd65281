"""Translating a query plan to one SELECT that returns the rows of the result in order.

The inner SELECT returns groups, or documents with projected fields. The outer SELECT adds computed columns, sorts the
rows (with ties in the order that the plan defines), and limits the number of rows. If SQL would give another result
than the plan defines, the plan is refused: in advance if possible, otherwise when a column of the SELECT shows that the
result would differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from adapters.document_store import FieldPath, RefusedQuery
from document_stores.sql.answer import Column, Selection, average, of_json, of_kinds, plain
from document_stores.sql.known_values import Kinds, KnownValue
from document_stores.sql.results import Result, difference, extreme
from document_stores.sql.statement_limits import MOST_PARAMETERS, joined, short
from document_stores.sql.values import EXACT, NOTHING, Value, exactly, is_nothing
from libraries.document_queries import plan as plans
from libraries.document_queries import steps
from libraries.document_queries.errors import QueryError

TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""For each comparison operator, the operator that gives the same result after the two sides are exchanged."""

_CONTAINERS = "the SQL of this store would compare arrays and objects as text"
_MERGED = "this store does not distinguish a missing field from a null"
_CONSTANT = "in the SQL of this store, a constant can only be compared with a field or function, or be a divisor"
_DROPPED = "the store has dropped empty objects, so a missing field may have been an empty object"

_CANONICAL, _PLAIN = "\0canonical", "\0plain"
"""Placeholders in SQL for a constant as JSON text and as an SQL value, until a parameter replaces them. The
placeholders contain a NUL, so that no name in SQL is equal to one."""

Known = Mapping[steps.Field, Kinds]
"""Type of mappings from a field of a plan to the kinds that its values have."""


class Dialect(ABC):
    """The differences between the SQL of database engines, except for expressions of values."""

    division: str
    """The operator for integer division that rounds towards zero."""

    @abstractmethod
    def parameter(self, name: str) -> str:
        """Return the placeholder of a parameter."""

    @abstractmethod
    def of_json(self, text: str) -> Value:
        """Return the value of a JSON text."""

    @abstractmethod
    def prefix(self, text: str, parameter: str) -> str:
        """Return the condition that a text begins with a parameter."""

    def length(self, text: str) -> str:
        """Return SQL for the number of characters of a text."""
        return f"length({text})"

    def extreme(self, function: str, part: str, kind: str) -> str:
        """Return SQL for the `max` or `min` (given by `function`) of `part`, whose values are of one kind or NULL."""
        return f"{function}({part})"

    @abstractmethod
    def unnested(self, relation: str, value: Value, alias: str, distinct: FieldPath | None) -> Unnested:
        """Return the table `relation` with a row for each item of the array `value`.

        `distinct` is the path of a field of the items, or None. If it is given, only the first of several items with
        the same value of this field is kept.
        """

    @abstractmethod
    def with_column(self, relation: str, expression: str, alias: str, kind: str) -> Unnested | None:
        """Return the table `relation` with the expression as an additional column. Return None if the engine would
        evaluate the expression only where the column is used, so that the column has no advantage."""

    @abstractmethod
    def any_item(self, value: Value, alias: str) -> tuple[Value, Callable[[str], str]]:
        """Return a value that stands for an item of the array, and a function. The function takes an SQL condition on
        this item and returns SQL that is true if at least one item meets the condition."""


@dataclass(frozen=True)
class Unnested:
    """A table for FROM with a row for each item of an array, the item as a value, and a condition that rows must
    meet."""

    relation: str
    item: Value
    condition: str = ""


class Translation:
    """The translation of a plan to the SQL of one engine. Raises RefusedQuery if SQL would give another result than the
    plan defines."""

    def __init__(
        self,
        plan: plans.Plan,
        dialect: Dialect,
        relation: str,
        document: Value,
        key: str,
        known: Known,
    ) -> None:
        """`relation` is the table for FROM, `key` is the SQL expression of a document's key, and `known` are the kinds
        of the plan's fields in all documents."""
        self._known = known
        self._columns: dict[steps.Field, Value] = {}
        self._plan, self._dialect, self._relation, self._key = plan, dialect, relation, key
        self._values: dict[str, Value] = {"": document}
        self._parameters: dict[str, Any] = {}
        self._conditions: list[str] = []
        self._selected: list[str] = []
        self._answer: dict[str, Column] = {}
        self._results: dict[str, Result] = {}
        self._refusals: dict[str, tuple[type[Exception], str]] = {}
        """Maps an SQL condition to an error and the error's message. The error is raised if a row meets the
        condition."""
        self._computes = False
        """Whether the translation has reached a `compute` step. From this step on, fields refer to columns of the
        result instead of fields of documents."""

    def selection(self) -> Selection:
        """Return the SELECT of the whole plan."""
        try:
            for number, step in enumerate(self._plan.gathering):
                if isinstance(step, steps.Filter):
                    self._conditions.append(self.is_true(step.condition))
                else:
                    self._unnest(step, f"item{number}")
            result = self._plan.result
            if isinstance(result, steps.GroupBy):
                return self._groups(result)
            if result is None or any(isinstance(step, steps.Unnest) for step in self._plan.gathering):
                raise RefusedQuery(
                    "the SQL of this store can return neither whole documents nor one row per item of an array"
                )
            return self._projection(result)
        except ValueError as error:
            raise RefusedQuery(f"a name cannot be expressed in the SQL of this store ({error})") from None

    def _unnest(self, step: steps.Unnest, alias: str) -> None:
        distinct = step.distinct
        if distinct is not None and not (isinstance(distinct, steps.Field) and distinct.of == step.name):
            raise RefusedQuery("the SQL of this store finds distinct items only by a field of the items")
        self._read_once()
        value = self._reached(steps.Field(step.path, step.of))
        path = distinct.path if isinstance(distinct, steps.Field) else None
        unnested = self._dialect.unnested(self._relation, value, alias, path)
        self._relation = unnested.relation
        self._values[step.name] = unnested.item
        if isinstance(distinct, steps.Field):
            self._refuse_merged(distinct)
            if self._field(distinct).may_hold():
                raise RefusedQuery(
                    "to find distinct items, the SQL of this store would compare arrays and objects as text"
                )
        if unnested.condition:
            self._conditions.append(unnested.condition)

    def _read_once(self) -> None:
        """Add columns for the plan's fields before rows are repeated for the items of an array, so that each field is
        extracted only once per document."""
        for part, kinds in self._known.items():
            plain = self._field(part).plain() if part.of == "" and part not in self._columns else None
            if plain is None:
                continue
            kind = "integer" if "integer" in kinds else "text"
            column = self._dialect.with_column(self._relation, plain, f"field{len(self._columns)}", kind)
            if column is not None:
                self._relation, self._columns[part] = column.relation, column.item

    def _field(self, expression: steps.Field) -> Value:
        if expression in self._columns:
            return self._columns[expression]
        value = self._reached(expression)
        return KnownValue(value, self._known[expression]) if expression in self._known else value

    def _reached(self, expression: steps.Field) -> Value:
        value = self._values[expression.of]
        for name in expression.path:
            value = value.step(name)
            short(value.kind())
        return value

    def _merges(self, expression: steps.Expression) -> bool:
        """Return whether the expression is a field for which this store possibly cannot distinguish null from
        missing."""
        if not isinstance(expression, steps.Field) or not self._values[""].holds_nulls:
            return False
        return not self._field(expression).tells_null

    def _refuse_merged(self, expression: steps.Expression) -> None:
        if self._merges(expression):
            raise RefusedQuery(_MERGED)

    def _refuse_dropped(self, expression: steps.Expression | None) -> None:
        """Raise RefusedQuery if a missing value of this field may have been an empty object."""
        if isinstance(expression, steps.Field) and self._field(expression).drops_empty:
            raise RefusedQuery(_DROPPED)

    def questions(self) -> Iterator[tuple[steps.Field, str]]:
        """Yield each field of the plan with a SELECT that returns the kinds of the field's values, one kind per row.
        Raises RefusedQuery if SQL cannot express a name."""
        try:
            yield from self._kinds_of("", self._relation)
            relations = {"": self._relation}
            for number, array in enumerate(plans.arrays_of(self._plan)):
                value = self._reached(steps.Field(array.path, array.of))
                unnested = self._dialect.unnested(relations[array.of], value, f"item{number}", None)
                relations[array.name], self._values[array.name] = unnested.relation, unnested.item
                yield from self._kinds_of(array.name, unnested.relation)
        except ValueError as error:
            raise RefusedQuery(f"a name cannot be expressed in the SQL of this store ({error})") from None

    def _kinds_of(self, of: str, relation: str) -> Iterator[tuple[steps.Field, str]]:
        for part in plans.fields_of(self._plan):
            if part.of == of:
                yield part, f"SELECT DISTINCT {self._reached(part).kind()} FROM {relation}"

    def _bound(self, value: Any) -> str:
        if len(self._parameters) == MOST_PARAMETERS:
            raise RefusedQuery(f"the query has more than {MOST_PARAMETERS:,} constants")
        name = f"bound_{len(self._parameters):03}"
        self._parameters[name] = value
        return self._dialect.parameter(name)

    # --- conditions ------------------------------------------------------------------------------------------------

    def is_true(self, condition: steps.Condition) -> str:
        """Return SQL that is true if the condition is true. If the condition is false or unknown, the SQL is false or
        NULL."""
        if isinstance(condition, steps.And):
            return joined(" AND ", map(self.is_true, condition.conditions), "true")
        if isinstance(condition, steps.Or):
            return joined(" OR ", map(self.is_true, condition.conditions), "false")
        if isinstance(condition, steps.In):
            return joined(" OR ", (self._equal(condition.expression, v) for v in condition.values), "false")
        if isinstance(condition, steps.Compare) and condition.operator == "=":
            if isinstance(condition.right, steps.Constant):
                return self._equal(condition.left, condition.right.value)
            if isinstance(condition.left, steps.Constant):
                return self._equal(condition.right, condition.left.value)
        if isinstance(condition, steps.Compare) and condition.operator in TURNED:
            if isinstance(condition.right, steps.Constant):
                return self._found(condition.left, condition.operator, condition.right.value, self.outcome(condition))
            if isinstance(condition.left, steps.Constant):
                turned = TURNED[condition.operator]
                return self._found(condition.right, turned, condition.left.value, self.outcome(condition))
        return self.outcome(condition)

    def _equal(self, expression: steps.Expression, value: Any) -> str:
        if isinstance(value, str) and isinstance(expression, steps.Field):
            sql = self._of_constant(value, self._field(expression).is_text(_CANONICAL, _PLAIN))
        else:
            sql = self._compared(expression, "=", value)
        return self._found(expression, "=", value, sql)

    def _found(self, expression: steps.Expression, operator: str, value: Any, sql: str) -> str:
        """Return the comparison `sql`. If there is an index, prepend a condition for which the engine can use the
        index."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < EXACT
        # For large numbers the order may depend on how they are written.
        if not isinstance(expression, steps.Field) or not (is_number or isinstance(value, str)):
            return sql
        found = self._field(expression).found_by(operator, _CANONICAL, _PLAIN)
        return sql if found is None else f"({self._of_constant(value, found)} AND {sql})"

    def _of_constant(self, value: Any, sql: str) -> str:
        """Replace placeholders in `sql` by parameters for the constant. A parameter is added only for a placeholder
        that occurs, because engines refuse unused parameters."""
        if _CANONICAL in sql:
            sql = sql.replace(_CANONICAL, self._bound(msgspec.json.encode(value).decode()))
        return sql.replace(_PLAIN, self._bound(value)) if _PLAIN in sql else sql

    def outcome(self, condition: steps.Condition) -> str:
        """Return SQL that is true if the condition is true, false if it is false, and NULL if it is unknown."""
        if isinstance(condition, steps.And):
            return joined(" AND ", map(self.outcome, condition.conditions), "true")
        if isinstance(condition, steps.Or):
            return joined(" OR ", map(self.outcome, condition.conditions), "false")
        if isinstance(condition, steps.Not):
            return f"(NOT {self.outcome(condition.condition)})"
        if isinstance(condition, steps.In):
            parts = (self._compared(condition.expression, "=", value) for value in condition.values)
            return joined(" OR ", parts, "false")
        if isinstance(condition, steps.Compare):
            return self._comparison(condition)
        if isinstance(condition, steps.AnyItem):
            value = self._reached(steps.Field(condition.path, condition.of))
            item, some = self._dialect.any_item(value, "some_item")
            outer = self._values
            self._values = {**outer, condition.name: item}
            sql = some(self.is_true(condition.condition))
            self._values = outer
            return sql
        return self._test(condition)

    def _test(self, condition: steps.Prefix | steps.Exists | steps.IsMissing | steps.IsNull | steps.IsType) -> str:
        if not isinstance(condition.expression, steps.Field):
            raise RefusedQuery("in the SQL of this store, only a field can be tested for its kind, presence or prefix")
        value = self._field(condition.expression)
        if isinstance(condition, steps.Prefix):
            return self._dialect.prefix(value.text(), self._bound(condition.text))
        if not value.tells_null and not (isinstance(condition, steps.IsType) and condition.kind != "null"):
            raise RefusedQuery(_MERGED)
        if isinstance(condition, steps.IsType):
            if condition.kind == "object":
                self._refuse_dropped(condition.expression)
            return f"coalesce({value.kind()} = {self._bound(condition.kind)}, false)"
        if isinstance(condition, steps.IsNull):
            return f"coalesce({value.kind()} = {self._bound('null')}, false)"
        return f"({value.kind()} IS {'' if isinstance(condition, steps.IsMissing) else 'NOT '}NULL)"

    def _comparison(self, condition: steps.Compare) -> str:
        if isinstance(condition.right, steps.Constant):
            return self._compared(condition.left, condition.operator, condition.right.value)
        if isinstance(condition.left, steps.Constant):
            return self._compared(
                condition.right, TURNED.get(condition.operator, condition.operator), condition.left.value
            )
        if not isinstance(condition.left, steps.Field) or not isinstance(condition.right, steps.Field):
            raise RefusedQuery("in the SQL of this store, a function can be compared only with a constant")
        left, right = self._field(condition.left), self._field(condition.right)
        operator = "<>" if condition.operator == "!=" else condition.operator
        comparisons = [
            f"{one} {operator} {other}"
            for one, other in (
                *((left.text(), right.text()), (left.integer(), right.integer())),
                *((left.double(), right.double()), (left.boolean(), right.boolean())),
            )
        ]
        comparisons.append(exactly(left.integer(), operator, right.double()))
        comparisons.append(exactly(right.integer(), TURNED.get(operator, operator), left.double()))
        return f"coalesce({', '.join(comparisons)})"

    def _compared(self, expression: steps.Expression, operator: str, value: Any) -> str:
        operator = "<>" if operator == "!=" else operator
        if isinstance(value, bool):
            return f"({self._scalar(expression, 'boolean')} {operator} {self._bound(value)})"
        if isinstance(value, str):
            return f"({self._scalar(expression, 'text')} {operator} {self._bound(value)})"
        if not isinstance(value, int | float) or value != value:
            # Null, NaN and bytes: no stored value here is comparable with them.
            return "(NULL = 1)"
        integer, double = self._scalar(expression, "integer"), self._scalar(expression, "double")
        bound = self._bound(value)
        of_integers, of_doubles = f"{integer} {operator} {bound}", f"{double} {operator} {bound}"
        if abs(value) >= EXACT and isinstance(value, float):
            of_integers = exactly(integer, operator, f"CAST({bound} AS DOUBLE PRECISION)")
        elif abs(value) >= EXACT:
            of_doubles = exactly(f"CAST({bound} AS BIGINT)", TURNED.get(operator, operator), double)
        return f"coalesce({of_integers}, {of_doubles})"

    # --- expressions -----------------------------------------------------------------------------------------------

    def _scalar(self, expression: steps.Expression, kind: str) -> str:
        """Return SQL for the value of an expression if it is of this kind, else NULL."""
        if isinstance(expression, steps.Field):
            if self._computes:
                return self._result(expression.path[0]).part(kind)
            sql: str = getattr(self._field(expression), kind)()
            return sql
        if isinstance(expression, steps.Constant):
            raise RefusedQuery(_CONSTANT)
        if kind != "integer":
            return NOTHING[kind]
        return self._call(expression)

    def _call(self, call: steps.Call) -> str:
        first = call.operands[0]
        if call.function == "length":
            return self._dialect.length(self._scalar(first, "text"))
        if call.function == "minus":
            raise RefusedQuery(
                "the SQL of this store subtracts only columns of the result, and never inside another function"
            )
        divisor = call.operands[1]
        if not isinstance(divisor, steps.Constant) or not isinstance(divisor.value, int):
            raise RefusedQuery("the SQL of this store divides by constant whole numbers only")
        whole = self._scalar(first, "integer")
        bound = self._bound(divisor.value)
        if call.function == "floor_divide":
            return short(self._floor(whole, bound))
        below = f"{bound} - 1 - ((-1 - {whole}) % {bound})"
        return short(f"(CASE WHEN {whole} >= 0 THEN {whole} % {bound} ELSE {below} END)")

    def _floor(self, whole: str, divisor: str) -> str:
        """Return SQL that divides an integer by a positive integer and rounds down. Intermediate results fit into 64
        bits."""
        divide = self._dialect.division
        below = f"-((-1 - {whole}) {divide} {divisor}) - 1"
        return f"(CASE WHEN {whole} >= 0 THEN {whole} {divide} {divisor} ELSE {below} END)"

    def _value(self, expression: steps.Expression) -> Value | str:
        """Return the value of a field, or SQL for the integer result of a function. If this SQL is NULL, the result is
        null, not missing."""
        if isinstance(expression, steps.Constant):
            raise RefusedQuery(_CONSTANT)
        return self._call(expression) if isinstance(expression, steps.Call) else self._field(expression)

    # --- results ---------------------------------------------------------------------------------------------------

    def _where(self) -> str:
        sql = " AND ".join(self._conditions)
        return f" WHERE {sql}" if sql else ""

    def _projection(self, result: steps.Project) -> Selection:
        ordered = {order.name for step in self._plan.steps if isinstance(step, steps.TopK) for order in step.by}
        is_computed = any(isinstance(step, steps.Compute) for step in self._plan.steps)
        key = self._selecting(self._key)
        for column in result.columns:
            value = self._value(column.expression)
            if isinstance(value, str):
                self._answer_parts(column.name, Result({"integer": self._selecting(value)}))
                continue
            sql = self._answer_json(column.name, value, column.expression)
            if ordered and (is_computed or column.name in ordered):
                if self._merges(column.expression):
                    self._refuse_where(f"{sql} IS NULL", _MERGED)
                self._refuse_containers(sql, value)
        return self._finished("", [f"{key} ASC"])

    def _groups(self, result: steps.GroupBy) -> Selection:
        order = []
        for key in result.keys:
            value = self._value(key.expression)
            if isinstance(value, str):
                self._answer_parts(key.name, Result({"integer": self._selecting(value)}))
            elif (sql := value.plain()) is not None:
                name = self._selecting(sql)
                kind = "integer" if is_nothing(value.text()) else "text"
                self._results[key.name], self._answer[key.name] = Result({kind: name}), Column(key.name, (name,), plain)
            else:
                name = self._answer_json(key.name, value, key.expression)
                self._refuse_containers(name, value)
            if self._merges(key.expression):
                self._refuse_where(f"{name} IS NULL", _MERGED)
            order += [f"{term} ASC NULLS FIRST" for term in self._results[key.name].order()]
        for aggregate in result.aggregates:
            self._aggregate(aggregate)
        # Refer to columns by number, because an alias could also be the name of a user's column.
        numbers = ", ".join(str(place + 1) for place in range(len(result.keys)))
        return self._finished(f" GROUP BY {numbers}" if numbers else "", order)

    def _finished(self, grouping: str, order: Sequence[str]) -> Selection:
        """Return the whole SELECT: with computed columns, sorted by the plan's order and then by `order`, and with a
        limit for the number of rows."""
        terms: list[str] = []
        rows: int | None = None
        for step in self._plan.steps:
            if isinstance(step, steps.Compute):
                self._compute(step)
            elif isinstance(step, steps.TopK):
                for by in step.by:
                    direction = "DESC NULLS LAST" if by.descending else "ASC NULLS FIRST"
                    terms += [f"{term} {direction}" for term in self._result(by.name).order()]
            if isinstance(step, steps.TopK | steps.Limit) and step.rows is not None:
                rows = step.rows if rows is None else min(rows, step.rows)
        terms += [term for term in order if term not in terms]
        cells = [cell for column in self._answer.values() for cell in column.cells]
        if self._refusals:
            cases = " ".join(f"WHEN {where} THEN {number}" for number, where in enumerate(self._refusals))
            cells.append(f"(CASE {cases} END) AS refusal")
            terms.insert(0, "refusal ASC NULLS LAST")
        selected = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(self._selected)) or "count(*) AS c0"
        inner = f"SELECT {selected} FROM {self._relation}{self._where()}{grouping}"
        text = f"SELECT {', '.join(cells) or '0'} FROM ({inner}) AS selected"
        text += f" ORDER BY {', '.join(terms)}" if terms else ""
        # Return at least one row, so that a refused row is found even if no rows are requested.
        text += "" if rows is None else f" LIMIT {max(rows, 1)}"
        return Selection(text, self._parameters, tuple(self._answer.values()), rows, tuple(self._refusals.values()))

    def _selecting(self, expression: str) -> str:
        """Add an expression to the inner SELECT and return the name of its column."""
        self._selected.append(expression)
        return f"c{len(self._selected) - 1}"

    def _refuse_where(self, condition: str, reason: str) -> None:
        self._refusals[condition] = RefusedQuery, reason

    def _refuse_containers(self, sql: str, value: Value) -> None:
        if value.may_hold():
            self._refuse_where(f"substr({sql}, 1, 1) IN ('[', '{{')", _CONTAINERS)

    def _answer_json(self, name: str, value: Value, expression: steps.Expression) -> str:
        """Add a column of the result that the SELECT returns as JSON text. Return its name in the SELECT."""
        sql = self._selecting(value.canonical())
        spelled = self._dialect.of_json(sql)
        known = self._known.get(expression) if isinstance(expression, steps.Field) else None
        if known is not None:
            spelled = KnownValue(spelled, known)
        has_both = known is None or known >= {"null", None}
        parts = {kind: str(getattr(spelled, kind)()) for kind in NOTHING}
        self._results[name] = Result(parts, sql, f"{sql} IS NOT NULL" if has_both else None)
        self._answer[name] = Column(name, (sql,), of_json)
        return sql

    def _answer_parts(self, name: str, result: Result) -> None:
        """Add a column of the result that the SELECT returns as several parts, one for each kind of value."""
        self._results[name] = result
        self._answer[name] = Column(name, tuple(result.parts.values()), of_kinds(tuple(result.parts)))

    def _result(self, name: str) -> Result:
        if name not in self._results:
            raise RefusedQuery("averages are computed after the SELECT, which cannot sort by them or compute with them")
        return self._results[name]

    def _compute(self, step: steps.Compute) -> None:
        self._computes = True
        for column in step.columns:
            if isinstance(column.expression, steps.Field):
                (source,) = column.expression.path
                self._results[column.name] = self._result(source)
                self._answer[column.name] = replace(self._answer[source], name=column.name)
            else:
                self._answer_parts(column.name, self._computed(column.expression))

    def _computed(self, expression: steps.Expression) -> Result:
        if isinstance(expression, steps.Field):
            return self._result(expression.path[0])
        if isinstance(expression, steps.Constant):
            raise RefusedQuery(_CONSTANT)
        if expression.function != "minus":
            return Result({"integer": self._call(expression)})
        left, right = map(self._computed, expression.operands)
        found, beyond = difference(left, right)
        if beyond is not None:
            self._refuse_where(beyond, "a difference of integers may exceed 64 bits")
        for part in found.parts.values():
            short(part)
        return found

    def _aggregate(self, aggregate: steps.Aggregate) -> None:
        value, function = aggregate.expression, aggregate.function
        if value is None or function == "count":
            self._answer_parts(aggregate.name, Result({"integer": self._selecting(self._count(value))}))
        elif function == "count_distinct":
            self._refuse_dropped(value)
            counted = self._value(value)
            sql = counted if isinstance(counted, str) else counted.plain()
            if sql is None and not isinstance(counted, str):
                canonical = counted.canonical()
                sql = f"CASE WHEN {canonical} <> 'null' THEN {canonical} END"
                self._refuse_counted(value)
            self._answer_parts(aggregate.name, Result({"integer": self._selecting(f"count(DISTINCT {sql})")}))
        elif function in ("sum", "avg"):
            self._sum(aggregate.name, value, is_average=function == "avg")
        else:
            parts = {kind: self._scalar(value, kind) for kind in NOTHING}
            extremes = {
                kind: self._selecting(self._dialect.extreme(function, part, kind))
                for kind, part in parts.items()
                if not is_nothing(part)
            }
            self._refuse_counted(value)
            self._answer_parts(aggregate.name, extreme(extremes, function == "max"))

    def _count(self, value: steps.Expression | None) -> str:
        if value is None:
            return "count(*)"
        self._refuse_dropped(value)
        counted = self._value(value)
        sql = counted if isinstance(counted, str) else f"CASE WHEN {counted.kind()} <> 'null' THEN 1 END"
        return f"count({sql})"

    def _sum(self, name: str, value: steps.Expression, is_average: bool) -> None:
        integer, double = self._scalar(value, "integer"), self._scalar(value, "double")
        if not is_nothing(double):
            doubles = self._selecting(f"count({double})")
            self._refuse_where(f"{doubles} > 0", "SQL rounds sums of doubles at each step; plans need exact sums")
        if is_nothing(integer):
            self._answer_parts(name, Result({}))
            return
        # Sum the high and low 32 bits separately. Each sum of fewer than 2 ** 31 halves fits 64 bits.
        part = self._floor(integer, "4294967296")
        high = self._selecting(f"sum({part})")
        low = self._selecting(f"sum({integer} - {part} * 4294967296)")
        if is_average:
            self._answer[name] = Column(name, (high, low, self._selecting(f"count({integer})")), average)
            return
        low = f"CAST({low} AS BIGINT)"
        carried = f"(CAST({high} AS BIGINT) + {low} {self._dialect.division} 4294967296)"
        fits = f"({carried} BETWEEN -2147483648 AND 2147483647)"
        self._refusals[f"NOT {fits}"] = (
            QueryError,
            "a sum is beyond 64 bits; use avg, or sum doubles instead of integers",
        )
        exact = f"(CASE WHEN {fits} THEN {carried} * 4294967296 + {low} % 4294967296 END)"
        self._answer_parts(name, Result({"integer": exact}))

    def _refuse_counted(self, expression: steps.Expression) -> None:
        self._refuse_dropped(expression)
        if isinstance(expression, steps.Field) and (value := self._field(expression)).may_hold():
            sql = f"count(CASE WHEN substr({value.canonical()}, 1, 1) IN ('[', '{{') THEN 1 END)"
            self._refuse_where(f"{self._selecting(sql)} > 0", _CONTAINERS)


def kinds_by_field(answers: Iterable[tuple[steps.Field, Iterable[Sequence[Any]]]]) -> Known:
    """Return the kinds of each field, given the fields and rows of the SELECTs of `questions`. If a field occurs
    several times, because items of several arrays have this field, all of its kinds are combined."""
    found: dict[steps.Field, Kinds] = {}
    for part, rows in answers:
        found[part] = found.get(part, frozenset()) | {kind for (kind,) in rows}
    return found

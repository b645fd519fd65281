"""From a plan to one SELECT whose rows are those of the answer, in its order.

Inside is a SELECT of groups, or of documents with what is projected; around it lie computed columns, the order with
ties, and the first rows. What SQL would answer otherwise than the plan means is refused: before it is asked where that
is known, else by a column of the SELECT.
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
"""Operator -> the one that means the same with its sides exchanged."""

_CONTAINERS = "arrays and objects are compared by their text here"

_CANONICAL, _PLAIN = "\0canonical", "\0plain"
"""What stands for a constant until it is bound: no name in SQL holds a NUL."""

Known = Mapping[steps.Field, Kinds]
"""The kinds that fields have."""


class Dialect(ABC):
    """What engines write differently beside values."""

    division: str
    """The operator that divides one integer by another, towards zero."""

    @abstractmethod
    def parameter(self, name: str) -> str:
        """The place of a parameter."""

    @abstractmethod
    def of_json(self, text: str) -> Value:
        """The value that a JSON text spells."""

    @abstractmethod
    def prefix(self, text: str, parameter: str) -> str:
        """Whether a text begins so."""

    def extreme(self, function: str, part: str, kind: str) -> str:
        """The `max` or `min` of values that are all of one kind, or NULL."""
        return f"{function}({part})"

    @abstractmethod
    def unnested(self, relation: str, value: Value, alias: str, distinct: FieldPath | None) -> Unnested:
        """With a row for each item of the array that `value` is. With `distinct`, the path of a field of the items,
        only the first ones stay of those that are alike in it."""

    @abstractmethod
    def with_column(self, relation: str, expression: str, alias: str, kind: str) -> Unnested | None:
        """With an expression of this kind as one more column; None where the engine would evaluate it later all the
        same."""

    @abstractmethod
    def any_item(self, value: Value, alias: str) -> tuple[Value, Callable[[str], str]]:
        """An item as a value, and what makes of a condition on it one that some item meets it."""


@dataclass(frozen=True)
class Unnested:
    """What stands after FROM, the item as a value, and a condition that rows have to meet."""

    relation: str
    item: Value
    condition: str = ""


class Translation:
    """One plan for one engine. Raises RefusedQuery for what SQL there does not answer as the plan means."""

    def __init__(
        self,
        plan: plans.Plan,
        dialect: Dialect,
        relation: str,
        document: Value,
        key: str,
        known: Known,
    ) -> None:
        """`relation` stands after FROM, `key` is the expression of a document's key in it. `known` are the kinds that
        fields of the plan have in all documents."""
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
        """Condition on a row -> the error that it is, and its text."""
        self._computes = False
        """Whether fields are those of results."""

    def selection(self) -> Selection:
        """The SELECT of the whole plan."""
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
                raise RefusedQuery("only groups, counts and fields of documents are selected by SQL here")
            return self._projection(result)
        except ValueError as error:
            raise RefusedQuery(f"a name cannot be said in this SQL ({error})") from None

    def _unnest(self, step: steps.Unnest, alias: str) -> None:
        distinct = step.distinct
        if distinct is not None and not (isinstance(distinct, steps.Field) and distinct.of == step.name):
            raise RefusedQuery("items are distinct by one of their own fields here, not by another expression")
        self._read_once()
        value = self._reached(steps.Field(step.path, step.of))
        path = distinct.path if isinstance(distinct, steps.Field) else None
        unnested = self._dialect.unnested(self._relation, value, alias, path)
        self._relation = unnested.relation
        self._values[step.name] = unnested.item
        if isinstance(distinct, steps.Field):
            self._refuse_merged(distinct)
            if self._field(distinct).may_hold():
                raise RefusedQuery("items that are arrays or objects are compared by their text here")
        if unnested.condition:
            self._conditions.append(unnested.condition)

    def _read_once(self) -> None:
        """Fields of the document as columns before there is a row for each item: else each item reads them anew."""
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
        """Whether a null and something missing may be the same here."""
        if not isinstance(expression, steps.Field) or not self._values[""].holds_nulls:
            return False
        return not self._field(expression).tells_null

    def _refuse_merged(self, expression: steps.Expression) -> None:
        if self._merges(expression):
            raise RefusedQuery("missing and null are one in columns of one schema")

    def questions(self) -> Iterator[tuple[steps.Field, str]]:
        """For each field that the plan reads a SELECT of the kinds that it has, one a row. Raises RefusedQuery."""
        try:
            yield from self._kinds_of("", self._relation)
            relations = {"": self._relation}
            for number, array in enumerate(plans.arrays_of(self._plan)):
                value = self._reached(steps.Field(array.path, array.of))
                unnested = self._dialect.unnested(relations[array.of], value, f"item{number}", None)
                relations[array.name], self._values[array.name] = unnested.relation, unnested.item
                yield from self._kinds_of(array.name, unnested.relation)
        except ValueError as error:
            raise RefusedQuery(f"a name cannot be said in this SQL ({error})") from None

    def _kinds_of(self, of: str, relation: str) -> Iterator[tuple[steps.Field, str]]:
        for part in plans.fields_of(self._plan):
            if part.of == of:
                yield part, f"SELECT DISTINCT {self._reached(part).kind()} FROM {relation}"

    def _bound(self, value: Any) -> str:
        if len(self._parameters) == MOST_PARAMETERS:
            raise RefusedQuery(f"there are more than {MOST_PARAMETERS:,} constants")
        name = f"bound_{len(self._parameters):03}"
        self._parameters[name] = value
        return self._dialect.parameter(name)

    # --- conditions ------------------------------------------------------------------------------------------------

    def is_true(self, condition: steps.Condition) -> str:
        """True exactly where the condition is; false or NULL for false and for unknown."""
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
            told = self._of_constant(value, self._field(expression).is_text(_CANONICAL, _PLAIN))
        else:
            told = self._compared(expression, "=", value)
        return self._found(expression, "=", value, told)

    def _found(self, expression: steps.Expression, operator: str, value: Any, told: str) -> str:
        """What is told of a comparison, with the words before it by which an engine takes its index."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < EXACT
        # Whether a larger number is above another one may depend on how it is written down.
        if not isinstance(expression, steps.Field) or not (is_number or isinstance(value, str)):
            return told
        found = self._field(expression).found_by(operator, _CANONICAL, _PLAIN)
        return told if found is None else f"({self._of_constant(value, found)} AND {told})"

    def _of_constant(self, value: Any, told: str) -> str:
        """With the constant bound in the spelling that is asked for: engines refuse parameters without a place."""
        if _CANONICAL in told:
            told = told.replace(_CANONICAL, self._bound(msgspec.json.encode(value).decode()))
        return told.replace(_PLAIN, self._bound(value)) if _PLAIN in told else told

    def outcome(self, condition: steps.Condition) -> str:
        """True, false or NULL, as the condition is true, false or unknown."""
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
            told = some(self.is_true(condition.condition))
            self._values = outer
            return told
        return self._test(condition)

    def _test(self, condition: steps.Prefix | steps.Exists | steps.IsMissing | steps.IsNull | steps.IsType) -> str:
        if not isinstance(condition.expression, steps.Field):
            raise RefusedQuery("only fields are tested for what they are here")
        value = self._field(condition.expression)
        if isinstance(condition, steps.Prefix):
            return self._dialect.prefix(value.text(), self._bound(condition.text))
        if not value.tells_null and not (isinstance(condition, steps.IsType) and condition.kind != "null"):
            raise RefusedQuery("missing and null are one in columns of one schema")
        if isinstance(condition, steps.IsType):
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
            raise RefusedQuery("fields are compared with fields and with constants here, not functions of them")
        left, right = self._field(condition.left), self._field(condition.right)
        operator = "<>" if condition.operator == "!=" else condition.operator
        told = [
            f"{one} {operator} {other}"
            for one, other in (
                *((left.text(), right.text()), (left.integer(), right.integer())),
                *((left.double(), right.double()), (left.boolean(), right.boolean())),
            )
        ]
        told.append(exactly(left.integer(), operator, right.double()))
        told.append(exactly(right.integer(), TURNED.get(operator, operator), left.double()))
        return f"coalesce({', '.join(told)})"

    def _compared(self, expression: steps.Expression, operator: str, value: Any) -> str:
        operator = "<>" if operator == "!=" else operator
        if isinstance(value, bool):
            return f"({self._scalar(expression, 'boolean')} {operator} {self._bound(value)})"
        if isinstance(value, str):
            return f"({self._scalar(expression, 'text')} {operator} {self._bound(value)})"
        if not isinstance(value, int | float) or value != value:
            # Null, NaN and bytes: nothing stored here compares with them.
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
        """The value if it is of this kind, else NULL."""
        if isinstance(expression, steps.Field):
            if self._computes:
                return self._result(expression.path[0]).part(kind)
            told: str = getattr(self._field(expression), kind)()
            return told
        if isinstance(expression, steps.Constant):
            raise RefusedQuery("constants stand beside fields here")
        if kind != "integer":
            return NOTHING[kind]
        return self._call(expression)

    def _call(self, call: steps.Call) -> str:
        first = call.operands[0]
        if call.function == "length":
            return f"length({self._scalar(first, 'text')})"
        if call.function == "minus":
            raise RefusedQuery("differences are of results here, not of fields")
        divisor = call.operands[1]
        if not isinstance(divisor, steps.Constant) or not isinstance(divisor.value, int):
            raise RefusedQuery("divisors are whole constants here")
        whole = self._scalar(first, "integer")
        bound = self._bound(divisor.value)
        if call.function == "floor_divide":
            return short(self._floor(whole, bound))
        below = f"{bound} - 1 - ((-1 - {whole}) % {bound})"
        return short(f"(CASE WHEN {whole} >= 0 THEN {whole} % {bound} ELSE {below} END)")

    def _floor(self, whole: str, divisor: str) -> str:
        """An integer divided by one above 0, rounded down, without leaving 64 bits on the way."""
        divide = self._dialect.division
        below = f"-((-1 - {whole}) {divide} {divisor}) - 1"
        return f"(CASE WHEN {whole} >= 0 THEN {whole} {divide} {divisor} ELSE {below} END)"

    def _value(self, expression: steps.Expression) -> Value | str:
        """A field's value, or what a function gives: an integer, or NULL for null, which is never missing."""
        if isinstance(expression, steps.Constant):
            raise RefusedQuery("constants stand beside fields here")
        return self._call(expression) if isinstance(expression, steps.Call) else self._field(expression)

    # --- results ---------------------------------------------------------------------------------------------------

    def _where(self) -> str:
        told = " AND ".join(self._conditions)
        return f" WHERE {told}" if told else ""

    def _projection(self, result: steps.Project) -> Selection:
        ordered = {order.name for step in self._plan.steps if isinstance(step, steps.TopK) for order in step.by}
        is_computed = any(isinstance(step, steps.Compute) for step in self._plan.steps)
        key = self._selecting(self._key)
        for column in result.columns:
            value = self._value(column.expression)
            if isinstance(value, str):
                self._answer_parts(column.name, Result({"integer": self._selecting(value)}))
                continue
            told = self._answer_json(column.name, value, column.expression)
            if ordered and (is_computed or column.name in ordered):
                self._refuse_merged(column.expression)
                self._refuse_containers(told, value)
        return self._finished("", [f"{key} ASC"])

    def _groups(self, result: steps.GroupBy) -> Selection:
        order = []
        for key in result.keys:
            value = self._value(key.expression)
            if isinstance(value, str):
                self._answer_parts(key.name, Result({"integer": self._selecting(value)}))
            elif (told := value.plain()) is not None:
                name = self._selecting(told)
                kind = "integer" if is_nothing(value.text()) else "text"
                self._results[key.name], self._answer[key.name] = Result({kind: name}), Column(key.name, (name,), plain)
            else:
                name = self._answer_json(key.name, value, key.expression)
                self._refuse_containers(name, value)
            if self._merges(key.expression):
                self._refuse_where(f"{name} IS NULL", "missing and null are one group in columns of one schema")
            order += [f"{term} ASC NULLS FIRST" for term in self._results[key.name].order()]
        for aggregate in result.aggregates:
            self._aggregate(aggregate)
        # By number: a column of the user's may have any name, and would be meant.
        numbers = ", ".join(str(place + 1) for place in range(len(result.keys)))
        return self._finished(f" GROUP BY {numbers}" if numbers else "", order)

    def _finished(self, grouping: str, order: Sequence[str]) -> Selection:
        """What is computed of the columns that are there, their order before that of the plan, and the first rows."""
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
        selected = ", ".join(f"{told} AS c{place}" for place, told in enumerate(self._selected)) or "count(*) AS c0"
        inner = f"SELECT {selected} FROM {self._relation}{self._where()}{grouping}"
        text = f"SELECT {', '.join(cells) or '0'} FROM ({inner}) AS selected"
        text += f" ORDER BY {', '.join(terms)}" if terms else ""
        # A row that is refused is seen even where none is asked for.
        text += "" if rows is None else f" LIMIT {max(rows, 1)}"
        return Selection(text, self._parameters, tuple(self._answer.values()), rows, tuple(self._refusals.values()))

    def _selecting(self, expression: str) -> str:
        """The name of an expression that is selected of documents or groups."""
        self._selected.append(expression)
        return f"c{len(self._selected) - 1}"

    def _refuse_where(self, condition: str, reason: str) -> None:
        self._refusals[condition] = RefusedQuery, reason

    def _refuse_containers(self, told: str, value: Value) -> None:
        if value.may_hold():
            self._refuse_where(f"substr({told}, 1, 1) IN ('[', '{{')", _CONTAINERS)

    def _answer_json(self, name: str, value: Value, expression: steps.Expression) -> str:
        """A column that comes as JSON; the name of its cell."""
        told = self._selecting(value.canonical())
        spelled = self._dialect.of_json(told)
        known = self._known.get(expression) if isinstance(expression, steps.Field) else None
        if known is not None:
            spelled = KnownValue(spelled, known)
        has_both = known is None or known >= {"null", None}
        parts = {kind: str(getattr(spelled, kind)()) for kind in NOTHING}
        self._results[name] = Result(parts, told, f"{told} IS NOT NULL" if has_both else None)
        self._answer[name] = Column(name, (told,), of_json)
        return told

    def _answer_parts(self, name: str, result: Result) -> None:
        """A column that comes in parts by kind."""
        self._results[name] = result
        self._answer[name] = Column(name, tuple(result.parts.values()), of_kinds(tuple(result.parts)))

    def _result(self, name: str) -> Result:
        if name not in self._results:
            raise RefusedQuery("averages are rounded behind the SELECT, and nothing is ordered by them here")
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
            raise RefusedQuery("constants stand beside fields here")
        if expression.function != "minus":
            return Result({"integer": self._call(expression)})
        left, right = map(self._computed, expression.operands)
        found, beyond = difference(left, right)
        if beyond is not None:
            self._refuse_where(beyond, "a difference of integers may have more than 64 bits")
        for part in found.parts.values():
            short(part)
        return found

    def _aggregate(self, aggregate: steps.Aggregate) -> None:
        value, function = aggregate.expression, aggregate.function
        if value is None or function == "count":
            self._answer_parts(aggregate.name, Result({"integer": self._selecting(self._count(value))}))
        elif function == "count_distinct":
            counted = self._value(value)
            told = counted if isinstance(counted, str) else counted.plain()
            if told is None and not isinstance(counted, str):
                canonical = counted.canonical()
                told = f"CASE WHEN {canonical} <> 'null' THEN {canonical} END"
                self._refuse_counted(value)
            self._answer_parts(aggregate.name, Result({"integer": self._selecting(f"count(DISTINCT {told})")}))
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
        counted = self._value(value)
        told = counted if isinstance(counted, str) else f"CASE WHEN {counted.kind()} <> 'null' THEN 1 END"
        return f"count({told})"

    def _sum(self, name: str, value: steps.Expression, is_average: bool) -> None:
        integer, double = self._scalar(value, "integer"), self._scalar(value, "double")
        if not is_nothing(double):
            doubles = self._selecting(f"count({double})")
            self._refuse_where(f"{doubles} > 0", "SQL rounds sums of doubles at each step, and the plan does not")
        if is_nothing(integer):
            self._answer_parts(name, Result({}))
            return
        # Halves of the bits: no sum of fewer than 2 ** 31 of them leaves 64 bits.
        part = self._floor(integer, "4294967296")
        high = self._selecting(f"sum({part})")
        low = self._selecting(f"sum({integer} - {part} * 4294967296)")
        if is_average:
            self._answer[name] = Column(name, (high, low, self._selecting(f"count({integer})")), average)
            return
        low = f"CAST({low} AS BIGINT)"
        carried = f"(CAST({high} AS BIGINT) + {low} {self._dialect.division} 4294967296)"
        fits = f"({carried} BETWEEN -2147483648 AND 2147483647)"
        self._refusals[f"NOT {fits}"] = QueryError, "a sum is beyond 64 bits; use avg, or sum doubles"
        exact = f"(CASE WHEN {fits} THEN {carried} * 4294967296 + {low} % 4294967296 END)"
        self._answer_parts(name, Result({"integer": exact}))

    def _refuse_counted(self, expression: steps.Expression) -> None:
        if isinstance(expression, steps.Field) and (value := self._field(expression)).may_hold():
            told = f"count(CASE WHEN substr({value.canonical()}, 1, 1) IN ('[', '{{') THEN 1 END)"
            self._refuse_where(f"{self._selecting(told)} > 0", _CONTAINERS)


def kinds_by_field(answers: Iterable[tuple[steps.Field, Iterable[Sequence[Any]]]]) -> Known:
    """What the answers to `Translation.questions` say. A name that several arrays' items have stands for all."""
    found: dict[steps.Field, Kinds] = {}
    for part, rows in answers:
        found[part] = found.get(part, frozenset()) | {kind for (kind,) in rows}
    return found

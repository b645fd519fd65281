"""From a plan to one SELECT whose rows are groups, or documents' keys with what is projected.

SQL does what reads documents: filters, unnesting, grouping, aggregates, and the first rows of a long list. The order of
results, ties and computed columns are of few rows, and are left to the library's own finish, so that they mean the
same everywhere. What SQL would answer otherwise than the plan means is refused. It knows no engine's functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from adapters.document_store import FieldPath, RefusedQuery
from document_stores.sql.answering import Selection
from document_stores.sql.known_values import Kinds, KnownValue
from document_stores.sql.values import Value
from document_stores.sql.wording import MOST_PARAMETERS, joined, short
from libraries.document_queries import plan as plans
from libraries.document_queries import steps

EXACT = 2**53
"""Integers below it are doubles without rounding."""

TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Operator -> the one that means the same with its sides exchanged."""

_NOTHING = {
    "double": "CAST(NULL AS DOUBLE PRECISION)",
    "text": "CAST(NULL AS VARCHAR)",
    "boolean": "(NULL = 1)",
}
"""What a function of whole numbers is as another kind."""

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
        known: Known | None = None,
    ) -> None:
        """`relation` stands after FROM, `key` is the expression of a document's key in it. `known` are the kinds that
        fields of the plan have in all documents."""
        self._known = known or {}
        self._columns: dict[steps.Field, Value] = {}
        self._plan, self._dialect, self._relation, self._key = plan, dialect, relation, key
        self._values: dict[str, Value] = {"": document}
        self._parameters: dict[str, Any] = {}
        self._conditions: list[str] = []

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
            told: str = getattr(self._field(expression), kind)()
            return told
        if isinstance(expression, steps.Constant):
            raise RefusedQuery("constants stand beside fields here")
        if kind != "integer":
            return _NOTHING[kind]
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

    def _canonical(self, expression: steps.Expression) -> str:
        if isinstance(expression, steps.Field):
            return self._field(expression).canonical()
        if isinstance(expression, steps.Constant):
            raise RefusedQuery("constants stand beside fields here")
        # A function of what it is not made for is null, which is a value.
        return f"coalesce(CAST({self._call(expression)} AS VARCHAR), 'null')"

    def _plain(self, expression: steps.Expression) -> str | None:
        return self._field(expression).plain() if isinstance(expression, steps.Field) else None

    # --- results ---------------------------------------------------------------------------------------------------

    def _where(self) -> str:
        told = " AND ".join(self._conditions)
        return f" WHERE {told}" if told else ""

    def _projection(self, result: steps.Project) -> Selection:
        ordered = {order.name for step in self._plan.steps if isinstance(step, steps.TopK) for order in step.by}
        is_computed = any(isinstance(step, steps.Compute) for step in self._plan.steps)
        for column in result.columns:
            if ordered and (is_computed or column.name in ordered):
                self._refuse_merged(column.expression)
        columns = [self._canonical(column.expression) for column in result.columns]
        selected = ", ".join([self._key, *columns])
        text = f"SELECT {selected} FROM {self._relation}{self._where()}"
        return Selection(text, self._parameters, self._plan, [column.name for column in result.columns])

    def _groups(self, result: steps.GroupBy) -> Selection:
        plain = [self._plain(key.expression) for key in result.keys]
        keys = [told or self._canonical(key.expression) for told, key in zip(plain, result.keys, strict=True)]
        columns = [f"{told} AS k{place}" for place, told in enumerate(keys)]
        reading: list[Any] = []
        for aggregate in result.aggregates:
            parts = self._aggregate(aggregate)
            columns += [f"{part} AS a{len(reading)}_{place}" for place, part in enumerate(parts)]
            reading.append(len(parts))
        text = f"SELECT {', '.join(columns) or 'count(*)'} FROM {self._relation}{self._where()}"
        if keys:
            # By number: a column of the user's may have any name, and would be meant.
            text += f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}"
            text = self._first_of(text, result)
        merged = tuple(self._merges(key.expression) for key in result.keys)
        are_plain = tuple(told is not None for told in plain)
        return Selection(text, self._parameters, self._plan, reading, are_plain, merged)

    def _first_of(self, text: str, result: steps.GroupBy) -> str:
        """Only the groups that can be among the first by a count: those that rank so, ties and all."""
        top = next((step for step in self._plan.steps if isinstance(step, steps.TopK)), None)
        if top is None or top.rows is None:
            return text
        for place, aggregate in enumerate(result.aggregates):
            if aggregate.name != top.by[0].name or aggregate.function in ("sum", "avg"):
                continue
            direction = "DESC" if top.by[0].descending else "ASC"
            counted = aggregate.function in ("count", "count_distinct")
            order = [f"a{place}_0"] if counted else order_of_extreme(f"a{place}", aggregate.function == "max")
            told = ", ".join(f"{part} {direction}" for part in order)
            # What would be refused has to be seen.
            seen = "" if aggregate.function == "count" else f" OR a{place}_{1 if counted else 4} > 0"
            for number, key in enumerate(result.keys):
                seen += f" OR k{number} IS NULL" if self._merges(key.expression) else ""
                if isinstance(key.expression, steps.Field) and self._field(key.expression).may_hold():
                    seen += f" OR substr(k{number}, 1, 1) IN ('[', '{{')"
            ranked = f"SELECT *, rank() OVER (ORDER BY {told}) AS place FROM ({text}) AS grouped"
            return f"SELECT * FROM ({ranked}) AS ranked WHERE place <= {int(top.rows)}{seen}"
        return text

    def _aggregate(self, aggregate: steps.Aggregate) -> list[str]:
        if aggregate.expression is None:
            return ["count(*)"]
        value = aggregate.expression
        if aggregate.function == "count":
            if isinstance(value, steps.Call):
                return [f"count({self._call(value)})"]
            kind = self._field(value).kind() if isinstance(value, steps.Field) else self._canonical(value)
            return [f"count(CASE WHEN {kind} <> 'null' THEN 1 END)"]
        if aggregate.function == "count_distinct":
            if (plain := self._plain(value)) is not None:
                return [f"count(DISTINCT {plain})", "0"]
            canonical = self._canonical(value)
            distinct = f"count(DISTINCT CASE WHEN {canonical} <> 'null' THEN {canonical} END)"
            return [distinct, self._containers(value)]
        kinds = ("integer", "double", "text", "boolean")
        parts = [self._scalar(value, kind) for kind in kinds]
        integer, double, *_ = parts
        if aggregate.function in ("sum", "avg"):
            # Halves of the bits: no sum of fewer than 2 ** 31 of them leaves 64 bits.
            high = self._floor(integer, "4294967296")
            return [f"sum({high})", f"sum({integer} - {high} * 4294967296)", f"count({integer})", f"count({double})"]
        extremes = map(self._dialect.extreme, [aggregate.function] * len(parts), parts, kinds)
        return [*extremes, self._containers(value)]

    def _containers(self, expression: steps.Expression) -> str:
        if not isinstance(expression, steps.Field) or not self._field(expression).may_hold():
            return "0"
        canonical = self._canonical(expression)
        return f"count(CASE WHEN substr({canonical}, 1, 1) IN ('[', '{{') THEN 1 END)"


def exactly(integer: str, operator: str, double: str) -> str:
    """An integer compared with a double, neither of them rounded: a double from 2 ** 53 on is a whole number."""
    return (
        f"(CASE WHEN {integer} IS NULL THEN NULL WHEN {double} >= 9223372036854775808e0 THEN 0 {operator} 1"
        f" WHEN {double} < -9223372036854775808e0 THEN 1 {operator} 0"
        f" WHEN abs({double}) >= {EXACT}e0 THEN {integer} {operator} CAST({double} AS BIGINT)"
        f" ELSE CAST({integer} AS DOUBLE PRECISION) {operator} {double} END)"
    )


def order_of_extreme(name: str, highest: bool) -> list[str]:
    """What the figures of a `max` or `min` are ordered by, given the columns of its parts: first their kind, then
    numbers as doubles, then texts. It makes more ties than there are, and no other order."""
    integer, double, text, boolean = (f"{name}_{place}" for place in range(4))
    kinds = [(text, 3), (f"coalesce({integer}, {double})", 2), (boolean, 1)]
    cases = " ".join(f"WHEN {part} IS NOT NULL THEN {rank}" for part, rank in (kinds if highest else kinds[::-1]))
    kind = f"(CASE {cases} ELSE 0 END)"
    whole = f"CAST({integer} AS DOUBLE PRECISION)"
    number = (
        f"(CASE WHEN {double} IS NULL OR {whole} {'>' if highest else '<'} {double} THEN {whole} ELSE {double} END)"
    )
    return [kind, f"(CASE WHEN {kind} = 2 THEN {number} END)", f"(CASE WHEN {kind} = 3 THEN {text} END)"]


def kinds_by_field(answers: Iterable[tuple[steps.Field, Iterable[Sequence[Any]]]]) -> Known:
    """What the answers to `Translation.questions` say. A name that several arrays' items have stands for all."""
    found: dict[steps.Field, Kinds] = {}
    for part, rows in answers:
        found[part] = found.get(part, frozenset()) | {kind for (kind,) in rows}
    return found

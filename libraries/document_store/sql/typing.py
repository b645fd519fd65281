"""The types of fields in SQL: values of different types never match.

A field whose values have one type in the whole store is a column of that type. A field of integers and doubles is a
column of doubles if the integers that the query reads are exact as doubles. Other fields of mixed types have a column
with the JSON text of all values, and a further column for each of their scalar types. The place of the field in the
query decides which of these columns is used:

- in a comparison: the values that have the type of the other side
- in arithmetic, sum and avg: the numbers
- in LIKE: the texts
- alone, in count and in GROUP BY: the JSON text
- in CAST: the text of the value

In other places a field of mixed types is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from libraries.document_queries.paths import Path
from libraries.document_queries.sql.conditions import OPERATORS, constant_of, is_constant, number_of
from libraries.document_queries.sql.errors import SQLError
from libraries.document_queries.sql.names import FieldPath, column_name
from libraries.document_queries.sql.parsing import DIALECT
from libraries.document_queries.steps import Scalar
from libraries.document_store.queries.comparing import for_doubles, for_integers
from libraries.document_store.queries.vectors.arrow_columns import (
    Chunks,
    column_of,
    has_exact_integers,
    json_of,
    kinds_in,
    numbers_of,
    part_of,
)
from libraries.document_store.queries.vectors.vector import BINARY, BOOLEAN, DOUBLE, INTEGER, TEXT
from libraries.document_store.values import ValueKind

_SCALARS = {BOOLEAN: "BOOLEAN", INTEGER: "BIGINT", DOUBLE: "DOUBLE", TEXT: "VARCHAR", BINARY: "BLOB"}
"""Kind of scalar values -> type in DuckDB. Only these kinds can be compared."""
NUMBERS = (INTEGER, DOUBLE)
_OF_NUMBERS = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Sum, exp.Avg, exp.Abs, exp.Round),
    *(exp.Floor, exp.Ceil, exp.Sqrt, exp.Stddev, exp.Variance, exp.Median),
)
_OF_TEXTS = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.Lower, exp.Upper, exp.Length, exp.StartsWith)
_OF_BOOLEANS = (exp.Where, exp.And, exp.Or, exp.Not, exp.Having, exp.Filter)
_OF_ANY = (exp.Alias, exp.Group, exp.Count, exp.Distinct, exp.Tuple)
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class TypedField:
    """A field with its values, as columns for DuckDB."""

    number: int
    path: FieldPath
    kinds: frozenset[int]
    """Kinds of the field's values. If all integers are exact as doubles, a field of integers and doubles has only the
    kind double."""
    has_nan: bool
    columns: dict[str, pa.ChunkedArray]
    """The columns of the field by name."""

    @property
    def is_mixed(self) -> bool:
        """Whether the values have several types. The column named after the field then has JSON text."""
        return len(self.kinds) > 1

    def part(self, kind: int, alias: str) -> exp.Expr:
        """Return an expression for the field's values of one kind. The expression is null where the value has another
        kind."""
        if kind not in self.kinds:
            return exp.cast(exp.null(), _SCALARS[kind])
        name = part_name(self.number, kind) if self.is_mixed else column_name(self.number)
        return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))


def part_name(number: int, kind: int) -> str:
    """Return the name of the column that has a mixed field's values of one kind."""
    return f"{column_name(number)} {ValueKind(kind).name.lower()}"


def typed(number: int, path: FieldPath, chunks: Chunks, kinds: frozenset[int], mixed: set[str]) -> TypedField:
    """Return a field for DuckDB. `kinds` are the kinds that the field has in the whole store, so that its type does not
    depend on WHERE, except for fields of integers and doubles (see `own_column`). Arrays and objects may contain values
    of mixed types; add the paths of these values to `mixed`."""
    own, kinds = own_column(chunks, kinds, mixed, str(Path(path)))
    columns = {column_name(number): own}
    if len(kinds) > 1:
        columns |= {part_name(number, kind): part_of(chunks, kind) for kind in kinds if kind in _SCALARS}
    has_nan = any(np.isnan(vector.values[DOUBLE]).any() for vector in chunks if DOUBLE in vector.values)
    return TypedField(number, path, kinds, has_nan, columns)


def own_column(
    chunks: Chunks, kinds: frozenset[int], mixed: set[str], path: str
) -> tuple[pa.ChunkedArray, frozenset[int]]:
    """Return the column of a field whose values have these kinds in the whole store, and the kinds of the column.

    Integers and doubles become doubles if all integers in `chunks` are exact as doubles. Other fields of several kinds
    become JSON text. Chunks that WHERE or LIMIT shortened may therefore be doubles although the whole field is JSON
    text: whether all integers of the store are exact is known only after reading all of them.
    """
    kinds = kinds | kinds_in(chunks)
    if kinds == set(NUMBERS) and has_exact_integers(chunks):
        return numbers_of(chunks), frozenset({DOUBLE})
    if len(kinds) > 1:
        return json_of(chunks), kinds
    if kinds and kinds <= _SCALARS.keys():
        return part_of(chunks, next(iter(kinds))), kinds
    return column_of(chunks, mixed, path), kinds


class Typing:
    """Rewrites a tree so that DuckDB compares only values of the same type."""

    def __init__(self, fields: Sequence[TypedField | None]) -> None:
        self._fields = fields
        self.as_json: set[str] = set()
        """Paths of mixed fields whose JSON text the query uses."""

    def rewrite(self, tree: exp.Expr) -> None:
        """Rewrite a tree in place. Raises SQLError for a mixed field in a place that needs one type."""
        for node in list(tree.walk(bfs=False)):
            if isinstance(node, exp.Between) and self._field(node.this) is not None:
                within = _between(node.this, node.args["low"], node.args["high"])
                if node.args.get("symmetric"):
                    within = exp.or_(within, _between(node.this, node.args["high"], node.args["low"]), copy=False)
                node.replace(exp.paren(within))
            elif isinstance(node, exp.In) and self._field(node.this) is not None and node.args.get("expressions"):
                parts: list[exp.Expr] = [
                    exp.EQ(this=node.this.copy(), expression=each.copy()) for each in node.expressions
                ]
                node.replace(exp.paren(exp.or_(*parts, copy=False)))
            elif isinstance(node, exp.Case) and node.this is not None and self._field(node.this) is not None:
                for branch in node.args["ifs"]:
                    branch.set("this", exp.EQ(this=node.this.copy(), expression=branch.this.copy()))
                node.set("this", None)
            elif isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ) and (
                self._field(node.this) is not None or self._field(node.expression) is not None
            ):
                node.replace(_same(node))
        for node in list(tree.walk(bfs=False)):
            if type(node) in OPERATORS:
                self._comparison(node)
        for node in list(tree.find_all(exp.Column)):
            found = self._field(node)
            if found is not None and node.parent is not None:
                self._in_place(node, found)

    def _field(self, node: exp.Expr) -> TypedField | None:
        number = number_of(node)
        return None if number is None else self._fields[number]

    def _comparison(self, node: exp.Expr) -> None:
        left, right = node.this, node.expression
        operator = str(OPERATORS[type(node)])
        if self._field(left) is None:
            left, right, operator = right, left, _MIRRORED[operator]
        field = self._field(left)
        if field is None:
            return
        alias = left.unnest().table
        other = self._field(right)
        if other is not None:
            found = self._of_fields(field, alias, operator, other, right.unnest().table)
        elif is_constant(right):
            found = self._with_constant(field, alias, operator, constant_of(right))
        elif field.is_mixed:
            raise self._refused(field, node)
        else:
            return
        node.replace(found)

    def _of_fields(self, field: TypedField, alias: str, operator: str, other: TypedField, other_alias: str) -> exp.Expr:
        pairs = [
            (one, two)
            for one in sorted(field.kinds)
            for two in sorted(other.kinds)
            if one in _SCALARS and (one == two or (one in NUMBERS and two in NUMBERS))
        ]
        return _either(
            [
                _compared_exactly(
                    operator, one, self._value(field, one, alias), two, self._value(other, two, other_alias)
                )
                for one, two in pairs
            ]
        )

    def _with_constant(self, field: TypedField, alias: str, operator: str, value: Scalar) -> exp.Expr:
        if value is None or value != value:
            return _either([])
        found: list[exp.Expr] = []
        for kind in sorted(field.kinds):
            if kind in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
                known = (for_integers if kind == INTEGER else for_doubles)(operator, value)
                column = self._value(field, kind, alias)
                if isinstance(known, bool):
                    outcome: exp.Expr = exp.Boolean(this=known)
                    found.append(exp.case().when(exp.Not(this=exp.Is(this=column, expression=exp.null())), outcome))
                else:
                    found.append(_compared(known[0], column, _number(known[1])))
            elif (kind, type(value)) in ((BOOLEAN, bool), (TEXT, str)):
                constant = exp.Boolean(this=value) if kind == BOOLEAN else exp.Literal.string(value)
                found.append(_compared(operator, self._value(field, kind, alias), constant))
        return _either(found)

    def _value(self, field: TypedField, kind: int, alias: str) -> exp.Expr:
        part = field.part(kind, alias)
        if kind != DOUBLE or not field.has_nan:
            return part
        # DuckDB treats NaN as a number above all others. Here it compares with nothing.
        return exp.Nullif(this=part, expression=_number(math.nan))

    def _in_place(self, node: exp.Column, field: TypedField) -> None:
        alias, parent = node.table, node.parent
        while isinstance(parent, exp.Paren):
            parent = parent.parent
        if isinstance(parent, _OF_BOOLEANS) or (
            isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Boolean)
        ):
            node.replace(field.part(BOOLEAN, alias))
        elif isinstance(parent, exp.Like | exp.ILike) and TEXT not in field.kinds:
            node.replace(field.part(TEXT, alias))
        elif not field.is_mixed:
            return
        elif isinstance(parent, _OF_NUMBERS):
            node.replace(_numbers(field, alias))
        elif isinstance(parent, _OF_TEXTS):
            node.replace(field.part(TEXT, alias))
        elif isinstance(parent, exp.Cast | exp.TryCast):
            if parent.to.is_type("json"):
                return
            texts = [field.part(TEXT, alias)] if TEXT in field.kinds else []
            node.replace(_first([*texts, node.copy()]))
        elif isinstance(parent, exp.Is) or (isinstance(parent, exp.Count) and parent.this is node):
            return
        elif isinstance(parent, _OF_ANY) or (isinstance(parent, exp.Window) and node in parent.args["partition_by"]):
            self.as_json.add(str(Path(field.path)))
        else:
            raise self._refused(field, parent)

    def _refused(self, field: TypedField, node: exp.Expr | None) -> SQLError:
        path = str(Path(field.path))
        types = ", ".join(ValueKind(kind).name.lower() for kind in sorted(field.kinds))
        where = node.sql(dialect=DIALECT, normalize_functions="lower") if node is not None else path
        for other in self._fields:
            if other is not None:
                where = where.replace(f'"{column_name(other.number)}"', str(Path(other.path)))
        where = where.replace('"docs".', "")[:80]
        return SQLError(
            f"{path} has values of several types ({types}), but one type is needed in {where}; "
            f"write e.g. TRY_CAST({path} AS {'DOUBLE' if field.kinds <= set(NUMBERS) else 'BIGINT'})",
            "type",
        )


def _between(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    above = exp.GTE(this=value.copy(), expression=low.copy())
    return exp.And(this=above, expression=exp.LTE(this=value.copy(), expression=high.copy()))


def _same(node: exp.Expr) -> exp.Expr:
    """Rewrite IS [NOT] DISTINCT FROM with `=` and IS NULL."""
    sides = (node.this, node.expression)
    equal = exp.EQ(this=sides[0].copy(), expression=sides[1].copy())
    nulls = [exp.Is(this=exp.paren(side.copy()), expression=exp.null()) for side in sides]
    same = exp.Coalesce(this=equal, expressions=[exp.and_(*nulls, copy=False)])
    return same if isinstance(node, exp.NullSafeEQ) else exp.paren(exp.Not(this=same))


def _compared(operator: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    made: Callable[..., exp.Expr] = next(kind for kind, name in OPERATORS.items() if name == operator)
    return exp.paren(made(this=left, expression=right), copy=False)


def _compared_exactly(operator: str, one: int, left: exp.Expr, two: int, right: exp.Expr) -> exp.Expr:
    """Compare a value of kind `one` with a value of kind `two`: both of the same kind, or both numbers."""
    if one == two:
        return _compared(operator, left, right)
    if one == DOUBLE:
        left, right, operator = right, left, _MIRRORED[operator]
    # DuckDB rounds an integer that it compares with a double. Rounding may make the two equal, but never reverses their
    # order. Only numbers that are equal after rounding are therefore compared as integers.
    rounded = exp.cast(left, "DOUBLE")
    whole = exp.TryCast(this=right.copy(), to=exp.DataType.build("HUGEINT", dialect=DIALECT))
    is_near = _compared("=", rounded, right)
    if operator in ("=", "!="):
        # Without CASE, DuckDB can join by a hash table.
        same = exp.paren(exp.And(this=is_near, expression=_compared("=", left.copy(), whole)))
        return same if operator == "=" else exp.paren(exp.Not(this=same))
    as_integers = _compared(operator, left.copy(), whole)
    return exp.case().when(is_near, as_integers).else_(_compared(operator, rounded.copy(), right.copy()))


def _either(conditions: list[exp.Expr]) -> exp.Expr:
    """Combine conditions on one value, one condition for each type. A value has one type, so at most one condition is
    not null. The combination has the result of that condition, or is null."""
    return _first(conditions) if conditions else exp.cast(exp.null(), "BOOLEAN")


def _first(values: list[exp.Expr]) -> exp.Expr:
    return values[0] if len(values) == 1 else exp.Coalesce(this=values[0], expressions=values[1:])


def _numbers(field: TypedField, alias: str) -> exp.Expr:
    parts = [field.part(kind, alias) for kind in NUMBERS if kind in field.kinds]
    if len(parts) == 1:
        return parts[0]
    return _first([exp.cast(part, "DOUBLE") for part in parts] or [field.part(DOUBLE, alias)])


def _number(value: int | float) -> exp.Expr:
    if isinstance(value, int):
        return exp.cast(exp.Literal.string(str(value)), "BIGINT")
    return exp.cast(exp.Literal.string(repr(value)), "DOUBLE")

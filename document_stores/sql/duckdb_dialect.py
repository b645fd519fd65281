"""How DuckDB's SQL differs from the SQL of other engines. Arrays are lists. The SELECT unnests lists, and lambda
functions test their items."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

from adapters.document_store import FieldPath
from document_stores.sql.duckdb_values import ColumnValue, JsonValue
from document_stores.sql.translation import Dialect, Unnested
from document_stores.sql.values import Quoted, Value


class DuckdbDialect(Dialect):
    """DuckDB's SQL, for the values that duckdb_values defines. In SQL, the table has the name `documents` at each
    step."""

    division = "//"

    def __init__(self, taken: Collection[str] = ()) -> None:
        """`taken` are the names of the table's columns in lower case, which must not be used for other columns."""
        self._taken = taken

    def _named(self, alias: str) -> str:
        name = f"{alias} of the plan"
        while name in self._taken:
            name += "'"
        return Quoted.name(name)

    def parameter(self, name: str) -> str:
        """Return the placeholder of a named parameter."""
        return f"${name}"

    def of_json(self, text: str) -> Value:
        """Return the value of a JSON text, whose fields are found by JSON pointers."""
        return JsonValue(text)

    def prefix(self, text: str, parameter: str) -> str:
        """Return the condition that a text begins with a parameter, by starts_with, which has no wildcards."""
        return f"starts_with({text}, {parameter})"

    def unnested(self, relation: str, value: Value, alias: str, distinct: FieldPath | None) -> Unnested:
        """Return the table wrapped in another SELECT, which has a row for each item, in an additional column."""
        arrays = cast("Any", value)
        items = arrays.items()
        if distinct is not None:
            here, other = (_canonical(arrays.of_item(name), distinct) for name in ("here", "other"))
            first = f"list_position(list_transform({items}, lambda other: {other}), {here})"
            items = f"list_filter({items}, lambda here, place: {first} = place)"
        name = self._named(alias)
        return Unnested(
            f"(SELECT *, unnest({items}) AS {name} FROM {relation}) AS documents", arrays.of_item(f"documents.{name}")
        )

    def with_column(self, relation: str, expression: str, alias: str, kind: str) -> Unnested | None:
        """Return the table wrapped in another SELECT, which adds the expression as a column."""
        name = self._named(alias)
        column = ColumnValue(f"documents.{name}", kind)
        return Unnested(f"(SELECT *, {expression} AS {name} FROM {relation}) AS documents", column)

    def any_item(self, value: Value, alias: str) -> tuple[Value, Callable[[str], str]]:
        """Return an item of the array, and a function that returns SQL with list_filter for a condition on this
        item."""
        arrays = cast("Any", value)

        def some(condition: str) -> str:
            met = f"list_filter({arrays.items()}, lambda {alias}: coalesce({condition}, false))"
            return f"coalesce(len({met}) > 0, false)"

        return arrays.of_item(alias), some


def _canonical(item: Value, path: FieldPath) -> str:
    for name in path:
        item = item.step(name)
    # JSON text is never empty.
    return f"coalesce({item.canonical()}, '')"

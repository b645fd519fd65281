"""Translate plans to DuckDB's SQL. Arrays are lists, which are unnested in the SELECT and tested by lambdas."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

from adapters.document_store import FieldPath
from document_stores.sql.duckdb_values import ColumnValue, JsonValue
from document_stores.sql.translation import Dialect, Unnested
from document_stores.sql.values import Quoted, Value


class DuckdbDialect(Dialect):
    """Values are those of duckdb_values. The relation is called `documents` at each step."""

    division = "//"

    def __init__(self, taken: Collection[str] = ()) -> None:
        """`taken` are the relation's column names in lower case."""
        self._taken = taken

    def _named(self, alias: str) -> str:
        name = f"{alias} of the plan"
        while name in self._taken:
            name += "'"
        return Quoted.name(name)

    def parameter(self, name: str) -> str:
        """Return a named parameter."""
        return f"${name}"

    def of_json(self, text: str) -> Value:
        """Return a value that uses JSON pointers into the text."""
        return JsonValue(text)

    def prefix(self, text: str, parameter: str) -> str:
        """Use starts_with, which has no patterns."""
        return f"starts_with({text}, {parameter})"

    def unnested(self, relation: str, value: Value, alias: str, distinct: FieldPath | None) -> Unnested:
        """Wrap the relation in another SELECT, with a column for the item."""
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
        """Wrap the relation in another SELECT."""
        name = self._named(alias)
        column = ColumnValue(f"documents.{name}", kind)
        return Unnested(f"(SELECT *, {expression} AS {name} FROM {relation}) AS documents", column)

    def any_item(self, value: Value, alias: str) -> tuple[Value, Callable[[str], str]]:
        """Use list_filter."""
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

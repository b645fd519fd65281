"""How SQLite's SQL differs from the SQL of other engines. Items of arrays are rows of json_each."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from adapters.document_store import FieldPath
from document_stores.sql.sqlite_values import SqliteValue
from document_stores.sql.translation import Dialect, Unnested
from document_stores.sql.values import Value


class SqliteDialect(Dialect):
    """SQLite's SQL, for values of the class SqliteValue."""

    division = "/"

    def parameter(self, name: str) -> str:
        """Return the placeholder of a named parameter."""
        return f":{name}"

    def of_json(self, text: str) -> Value:
        """Return the value of a JSON text, whose fields are found by SQLite's paths."""
        return SqliteValue(text)

    def prefix(self, text: str, parameter: str) -> str:
        """Return the condition that a text begins with a parameter, by substr: LIKE would ignore case."""
        return f"(substr({text}, 1, length({parameter})) = {parameter})"

    def unnested(self, relation: str, value: Value, alias: str, distinct: FieldPath | None) -> Unnested:
        """Return the table joined with the items of the array, by json_each."""
        items = cast("SqliteValue", value).items()
        item = SqliteValue(alias, item=True)
        relation = f"{relation}, json_each({items}) AS {alias}"
        if distinct is None:
            return Unnested(relation, item)
        before = f"{alias}_before"
        alike = f"{_canonical(SqliteValue(before, item=True), distinct)} IS {_canonical(item, distinct)}"
        earlier = f"SELECT 1 FROM json_each({items}) AS {before} WHERE {before}.key < {alias}.key AND {alike}"
        return Unnested(relation, item, f"NOT EXISTS ({earlier})")

    def with_column(self, relation: str, expression: str, alias: str, kind: str) -> Unnested | None:
        """Return None, because SQLite would evaluate the expression only where it is used."""
        return None

    def any_item(self, value: Value, alias: str) -> tuple[Value, Callable[[str], str]]:
        """Return an item of the array, and a function that returns SQL with EXISTS for a condition on this item."""
        items = cast("SqliteValue", value).items()
        return SqliteValue(
            alias, item=True
        ), lambda met: f"EXISTS (SELECT 1 FROM json_each({items}) AS {alias} WHERE {met})"


def _canonical(item: Value, path: FieldPath) -> str:
    for name in path:
        item = item.step(name)
    return item.canonical()

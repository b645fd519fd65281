"""How ClickHouse's SQL differs from the SQL of other engines. Queries that read the items of arrays are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from adapters.document_store import FieldPath, RefusedQuery
from document_stores.sql.clickhouse_values import JsonText, literal
from document_stores.sql.translation import Dialect, Unnested
from document_stores.sql.values import Value

_PARAMETER = re.compile("\0(.+?)\0")

_ITEMS = "ClickHouse changes types in arrays, such as integers next to doubles, so items of arrays cannot be queried"


class ClickhouseDialect(Dialect):
    """ClickHouse's SQL, for the values that clickhouse_values defines."""

    division = "DIV"

    def parameter(self, name: str) -> str:
        """Return a placeholder that `bound` replaces. The placeholder contains a NUL, so that no name in SQL is equal
        to it."""
        return f"\0{name}\0"

    def of_json(self, text: str) -> Value:
        """Return the value of a JSON text."""
        return JsonText(text)

    def prefix(self, text: str, parameter: str) -> str:
        """Return the condition that a text begins with a parameter, by startsWith, which has no wildcards."""
        return f"startsWith({text}, {parameter})"

    def length(self, text: str) -> str:
        """Return the number of characters by lengthUTF8, because `length` counts bytes."""
        return f"lengthUTF8({text})"

    def unnested(self, relation: str, value: Value, alias: str, distinct: FieldPath | None) -> Unnested:
        """Raise RefusedQuery, because items of arrays are not supported."""
        raise RefusedQuery(_ITEMS)

    def with_column(self, relation: str, expression: str, alias: str, kind: str) -> Unnested | None:
        """Return None: an additional column would help only if rows were repeated for the items of an array."""
        return None

    def any_item(self, value: Value, alias: str) -> tuple[Value, Callable[[str], str]]:
        """Raise RefusedQuery, because items of arrays are not supported."""
        raise RefusedQuery(_ITEMS)


def bound(text: str, parameters: Mapping[str, Any]) -> str:
    """Return an SQL text with its placeholders replaced by constants. ClickHouse's own parameters are not used, because
    the SQL would have to state the type of each parameter."""
    return _PARAMETER.sub(lambda found: literal(parameters[found[1]]), text)

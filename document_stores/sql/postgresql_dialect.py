"""How PostgreSQL's SQL differs from the SQL of other engines. Parameters have psycopg's form, and items of arrays are
rows of jsonb_array_elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from adapters.document_store import FieldPath
from document_stores.sql.postgresql_values import JsonbValue
from document_stores.sql.translation import Dialect, Unnested
from document_stores.sql.values import Value


def as_psycopg_takes_it(text: str) -> str:
    """Return the statement with each modulo operator (% and a blank) doubled, because psycopg would treat % as the
    start of a parameter.

    No literal contains a percent sign, and parameters have no blank after %."""
    return text.replace(" % ", " %% ")


class PostgresqlDialect(Dialect):
    """PostgreSQL's SQL, for values of the class JsonbValue."""

    division = "/"

    def parameter(self, name: str) -> str:
        """Return the placeholder of a named parameter."""
        return f"%({name})s"

    def of_json(self, text: str) -> Value:
        """Return the value of a JSON text, cast to jsonb."""
        return JsonbValue(f"CAST({text} AS jsonb)")

    def prefix(self, text: str, parameter: str) -> str:
        """Return the condition that a text begins with a parameter, by starts_with, which has no wildcards."""
        return f"starts_with({text}, {parameter})"

    def extreme(self, function: str, part: str, kind: str) -> str:
        """Return the `max` or `min` of values. For booleans, return other functions, because PostgreSQL has no max and
        min of booleans."""
        if kind == "boolean":
            return f"{'bool_or' if function == 'max' else 'bool_and'}({part})"
        return super().extreme(function, part, kind)

    def unnested(self, relation: str, value: Value, alias: str, distinct: FieldPath | None) -> Unnested:
        """Return the table joined with the items of the array."""
        items = cast("JsonbValue", value).items()
        item = JsonbValue(f"{alias}.value")
        relation = f"{relation} CROSS JOIN LATERAL {_elements(items, alias)}"
        if distinct is None:
            return Unnested(relation, item)
        before = f"{alias}_before"
        alike = (
            f"{_canonical(JsonbValue(f'{before}.value'), distinct)} IS NOT DISTINCT FROM {_canonical(item, distinct)}"
        )
        earlier = f"SELECT 1 FROM {_elements(items, before)} WHERE {before}.place < {alias}.place AND {alike}"
        return Unnested(relation, item, f"NOT EXISTS ({earlier})")

    def with_column(self, relation: str, expression: str, alias: str, kind: str) -> Unnested | None:
        """Return None, because PostgreSQL would evaluate the expression only where it is used."""
        return None

    def any_item(self, value: Value, alias: str) -> tuple[Value, Callable[[str], str]]:
        """Return an item of the array, and a function that returns SQL with EXISTS for a condition on this item."""
        items = cast("JsonbValue", value).items()
        return (
            JsonbValue(f"{alias}.value"),
            lambda met: f"EXISTS (SELECT 1 FROM {_elements(items, alias)} WHERE {met})",
        )


def _elements(items: str, alias: str) -> str:
    return f"jsonb_array_elements({items}) WITH ORDINALITY AS {alias}(value, place)"


def _canonical(item: Value, path: FieldPath) -> str:
    for name in path:
        item = item.step(name)
    return item.canonical()

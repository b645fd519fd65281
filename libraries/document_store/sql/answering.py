"""Answer SQL over a snapshot. If a plan of the query language can express the query, the store answers it, otherwise
DuckDB."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from sqlglot.errors import SqlglotError

from libraries.document_queries.errors import QueryError
from libraries.document_queries.json_form import to_json
from libraries.document_queries.paths import Path
from libraries.document_queries.plan import Plan, fields_of
from libraries.document_queries.sql.conditions import NoPlan
from libraries.document_queries.sql.errors import SQLError, unprocessed
from libraries.document_queries.sql.names import Resolver
from libraries.document_queries.sql.parsing import parse
from libraries.document_queries.sql.planning import Planned, planned
from libraries.document_store.snapshot import Snapshot
from libraries.document_store.sql import duckdb_way, planned_way
from libraries.document_store.sql.fields import StoreFields


@dataclass(frozen=True)
class Explanation:
    """How a query is answered."""

    way: Literal["plan", "duckdb"]
    reason: str
    """Why no plan answers the query; '' if a plan answers it."""
    plan: Plan
    """The plan that answers the query. If DuckDB answers it, the plan that reads the fields for DuckDB."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The paths of the fields that the query reads."""
        return tuple(str(Path(found.path)) for found in fields_of(self.plan))

    def __str__(self) -> str:
        """Return a text of three lines: how the query is answered, the fields that are read, and the steps of the plan.
        Characters that control a terminal are escaped."""
        way = "the store's plan" if self.way == "plan" else f"DuckDB, because {self.reason}"
        words = (way, ", ".join(self.fields) or "keys", to_json(self.plan))
        return "\n".join(
            f"{name:<7} {_escaped(text)}" for name, text in zip(("way", "reads", "steps"), words, strict=True)
        )


def answer(snapshot: Snapshot, text: str) -> pa.Table:
    """Return the answer to SQL as a table. Raises SQLError."""
    query = _Prepared(snapshot, text)
    mixed: set[str] = set()
    try:
        if query.planned is not None:
            table = planned_way.answer(snapshot, query.planned, mixed)
        else:
            table = duckdb_way.answer(snapshot, query.statement, query.reading, query.fields.kinds, mixed)
    except (SqlglotError, RecursionError) as error:
        raise unprocessed(error) from None
    except SQLError:
        raise
    except QueryError as error:
        raise SQLError(str(error), "engine") from None
    notes = [f"{path} has values of several types, and becomes JSON text" for path in sorted(mixed)]
    for note in [*query.unknown_fields(), *notes]:
        warnings.warn(note, stacklevel=3)
    return table


def explanation(snapshot: Snapshot, text: str) -> Explanation:
    """Return how SQL would be answered. Raises SQLError."""
    query = _Prepared(snapshot, text)
    return Explanation("duckdb" if query.planned is None else "plan", query.reason, query.plan)


class _Prepared:
    """A query for which it is decided whether a plan or DuckDB answers it."""

    def __init__(self, snapshot: Snapshot, text: str) -> None:
        tree = parse(text)
        self.fields = StoreFields(snapshot)
        self.planned: Planned | None = None
        self.reason = ""
        try:
            self.statement = Resolver(self.fields.has, self.fields.names).statement(tree)
            try:
                self.planned = planned(self.statement, self.fields.certain_kinds)
                self.plan = self.planned.plan
            except NoPlan as why:
                kinds_of = self.fields.certain_kinds
                self.reading = duckdb_way.reading_plan(self.statement, snapshot.key_field, kinds_of)
                self.plan = self.reading.plan
                self.reason = str(why)
        except (SqlglotError, RecursionError) as error:
            raise unprocessed(error) from None
        except SQLError:
            raise
        except QueryError as error:
            # A plan has limits that SQL lacks, such as the nesting of conditions.
            raise SQLError(str(error), "limit") from None

    def unknown_fields(self) -> list[str]:
        """Return a note for each field that no document has. Such a field is NULL, and often a mistake."""
        if self.fields.is_empty:
            return []
        unknown = [str(Path(path)) for path in self.statement.fields if not self.fields.has(path)]
        return [
            f"no document has the field {path}, so it is NULL; if it is a text, put it in single quotes"
            for path in unknown
        ]


def _escaped(text: str) -> str:
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)

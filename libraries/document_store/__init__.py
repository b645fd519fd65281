"""A store for documents whose fields may differ and change. It is an LSM tree that stores columns or rows.

    from libraries.document_store import DocumentStore

    with DocumentStore.open("events", key="id") as store:
        store.upsert([{"id": 1, "kind": "commit"}])

"The paper" in this package is Alkowaileet and Carey, VLDB 2022, whose columnar layout AMAX is implemented here. The
package imports only two other packages of the project: `libraries.durable` and `libraries.document_queries` (the query
language). Each name is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libraries.document_queries.errors import QueryError
    from libraries.document_queries.sql.errors import SQLError
    from libraries.document_store.errors import CorruptError, DocumentError
    from libraries.document_store.store import DocumentStore

__all__ = ["CorruptError", "DocumentError", "DocumentStore", "QueryError", "SQLError"]

_HOMES = {
    "DocumentStore": "document_store.store",
    **dict.fromkeys(("CorruptError", "DocumentError"), "document_store.errors"),
    "QueryError": "document_queries.errors",
    "SQLError": "document_queries.sql.errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"libraries.{_HOMES[name]}"), name)

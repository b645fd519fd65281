"""The right answer to a query over documents that are at hand: what every store's own answer has to equal, and what
stands for it where a store has none. It asks our library's reference, and knows no store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from libraries.document_store.queries.rows import run_over_documents
from libraries.document_store.queries.spelling import from_json


def answer(plan: str, documents: Iterable[dict[str, Any]], key: str = "id") -> list[dict[str, Any]]:
    """The rows that a plan, in JSON, gives over documents in any order. Raises QueryError for what is no plan."""
    return run_over_documents(documents, from_json(plan), key)

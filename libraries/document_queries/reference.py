"""Reference answers: interpret a plan over documents given as dicts.

The tests compare the answers of stores and of other implementations with these answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from libraries.document_queries.interpreter import Groups, add_to_groups, projected, tuples
from libraries.document_queries.plan import Plan
from libraries.document_queries.results import Place, Row, finish, rows_of_groups
from libraries.document_queries.steps import GroupBy, Project

Document = dict[str, Any]
_T = TypeVar("_T")


class Interpretation:
    """Interpret a plan over documents that arrive in batches."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.groups: Groups = {}
        self.placed: list[tuple[Place, Row]] = []

    def add(self, keys: Iterable[Any], documents: Iterable[Document]) -> None:
        """Process documents and their keys."""
        result = self.plan.result
        if isinstance(result, GroupBy):
            add_to_groups(result, tuples(self.plan, documents), self.groups)
            return
        key: list[Any] = [None]
        flow = tuples(self.plan, _noting(zip(keys, documents, strict=True), key))
        rows = projected(result, flow) if isinstance(result, Project) else (row[""] for row in flow)
        self.placed.extend((key[0], row) for row in rows)

    def answer(self) -> list[Row]:
        """Return the rows of the result."""
        result = self.plan.result
        return finish(self.plan, rows_of_groups(result, self.groups) if isinstance(result, GroupBy) else self.placed)


def _noting(pairs: Iterable[tuple[Any, _T]], key: list[Any]) -> Iterator[_T]:
    for key[0], document in pairs:
        yield document


def run_over_documents(documents: Iterable[Document], plan: Plan, key: str = "id") -> list[Row]:
    """Answer a plan over dicts whose field `key` is the document's key. Raises QueryError."""
    interpretation = Interpretation(plan)
    for document in documents:
        interpretation.add((document[key],), (document,))
    return interpretation.answer()

"""The base class of handles that answer query plans by SQL. The SELECT of a plan is prepared once, before timing,
because users also write their statements in advance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from adapters.document_store import DocumentHandle, Plan
from document_stores.sql.answer import Selection
from document_stores.sql.translation import Known, Translation, kinds_by_field
from libraries.document_queries import plan as plans
from libraries.document_queries.json_form import from_json


class StatementHandle(DocumentHandle):
    """A handle that answers query plans by SELECTs. Facts about the documents, such as the kinds of fields, are kept in
    memory until the documents change."""

    asks_for_kinds: bool = True
    """Whether the kinds of fields must be queried. Typed columns determine the kinds without a query."""

    def __init__(self) -> None:
        """Start without any prepared statements."""
        self._written: dict[Plan, Selection] = {}
        self._found: dict[str, list[Sequence[Any]]] = {}
        """SQL text of a query for the kinds of a field -> the query's result. Results are kept so that similar plans
        need not run the same query again."""

    @abstractmethod
    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Return the translation of a plan to this engine's SQL, given the kinds of its fields."""

    @abstractmethod
    def selected(self, text: str) -> Iterable[Sequence[Any]]:
        """Return the rows of a SELECT without parameters."""

    def check(self, selection: Selection) -> None:
        """Raise RefusedQuery if this SELECT would give a wrong result for the stored documents."""
        return

    def prepare(self, plan: Plan) -> None:
        """Query the kinds of the plan's fields, translate the plan to a SELECT, and keep the SELECT."""
        self.statement(plan)

    def learn_from(self, other: DocumentHandle) -> None:
        """Copy the translated statements of another handle, and the facts about documents on which the statements
        depend."""
        assert isinstance(other, StatementHandle)
        self._written, self._found = dict(other._written), dict(other._found)

    def statement(self, plan: Plan) -> Selection:
        """Return the SELECT of a plan. Raises RefusedQuery if SQL would give another result than the plan defines."""
        if plan not in self._written:
            parsed = from_json(plan)
            questions = tuple(self.translation(parsed, {}).questions()) if self.asks_for_kinds else ()
            for _, text in questions:
                if text not in self._found:
                    self._found[text] = list(self.selected(text))
            known = kinds_by_field((part, self._found[text]) for part, text in questions)
            selection = self.translation(parsed, known).selection()
            self.check(selection)
            self._written[plan] = selection
        return self._written[plan]

    def write_anew(self) -> None:
        """Drop the translated statements. Called after an index was created, because the SQL must then use the
        index."""
        self._written.clear()

    def forget(self) -> None:
        """Drop the translated statements and the facts about the documents. Called after documents have changed."""
        self._written.clear()
        self._found.clear()

"""SELECTs of plans. A SELECT is prepared once, before it is timed, because users also write statements in advance."""

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
    """A handle that answers plans by SELECTs. Facts about the documents are kept until the documents change."""

    asks_for_kinds: bool = True
    """Whether kinds of fields have to be queried; typed columns determine them."""

    def __init__(self) -> None:
        """Begin without statements."""
        self._written: dict[Plan, Selection] = {}
        self._found: dict[str, list[Sequence[Any]]] = {}
        """Results of the queries for kinds of fields. Plans that differ only in their constants share them."""

    @abstractmethod
    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """Translate the plan for this engine, given the kinds of its fields."""

    @abstractmethod
    def selected(self, text: str) -> Iterable[Sequence[Any]]:
        """Return the rows of a SELECT without parameters."""

    def check(self, selection: Selection) -> None:
        """Raise RefusedQuery for a SELECT that these documents do not allow."""
        return

    def prepare(self, plan: Plan) -> None:
        """Query the kinds of the plan's fields and write the SELECT."""
        self.statement(plan)

    def learn_from(self, other: DocumentHandle) -> None:
        """Copy the other handle's statements and the facts that they depend on."""
        assert isinstance(other, StatementHandle)
        self._written, self._found = dict(other._written), dict(other._found)

    def statement(self, plan: Plan) -> Selection:
        """Return the SELECT of a plan. Raises RefusedQuery if SQL's answer would differ from the plan's meaning."""
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
        """Forget the statements, because an index was added."""
        self._written.clear()

    def forget(self) -> None:
        """Forget everything, because documents have changed."""
        self._written.clear()
        self._found.clear()

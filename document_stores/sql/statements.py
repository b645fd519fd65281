"""SELECTs of plans, written once: before a question is asked, as a user has written the statement down."""

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
    """Open documents that answer plans by SELECTs. What was found of the documents holds until they change."""

    asks_for_kinds: bool = True
    """Whether the kinds of fields are asked for; columns tell them themselves."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._written: dict[Plan, Selection] = {}
        self._found: dict[str, list[Sequence[Any]]] = {}
        """What the questions about kinds gave: plans that differ in their constants ask the same."""

    @abstractmethod
    def translation(self, plan: plans.Plan, known: Known) -> Translation:
        """The plan for this engine, given the kinds that its fields have."""

    @abstractmethod
    def selected(self, text: str) -> Iterable[Sequence[Any]]:
        """The rows of a SELECT without parameters."""

    def check(self, selection: Selection) -> None:
        """Raise RefusedQuery for a SELECT that these documents do not allow."""
        return

    def prepare(self, plan: Plan) -> None:
        """Look the kinds up that the plan's fields have, and write the SELECT."""
        self.statement(plan)

    def learn_from(self, other: DocumentHandle) -> None:
        """The statements that it has written, and what was found for them."""
        assert isinstance(other, StatementHandle)
        self._written, self._found = dict(other._written), dict(other._found)

    def statement(self, plan: Plan) -> Selection:
        """The SELECT of a plan. Raises RefusedQuery for what SQL would answer otherwise than the plan means."""
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
        """Forget the statements: there is another index."""
        self._written.clear()

    def forget(self) -> None:
        """Forget all: the documents have changed."""
        self._written.clear()
        self._found.clear()

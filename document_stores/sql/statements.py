"""SELECTs of plans, written once: before a question is asked, as a user has written the statement down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adapters.document_store import Plan
from document_stores.sql.answering import Selection
from document_stores.sql.translating import Known, Translation, kinds_by_field
from libraries.document_queries import plan as plans
from libraries.document_queries.json_form import from_json


class Statements:
    """Of one handle. What was found of the documents holds until they change."""

    def __init__(
        self,
        translation: Callable[[plans.Plan, Known], Translation],
        rows: Callable[[str], Iterable[Sequence[Any]]],
        check: Callable[[Selection], None] = lambda selection: None,
        asks_for_kinds: bool = True,
    ) -> None:
        """`rows` answers a SELECT without parameters; `check` raises RefusedQuery for one that these documents do not
        allow. Kinds are asked for where columns do not tell them."""
        self._translation, self._rows, self._check, self._asks_for_kinds = translation, rows, check, asks_for_kinds
        self._written: dict[Plan, Selection] = {}
        self._found: dict[str, list[Sequence[Any]]] = {}
        """What the questions about kinds gave: plans that differ in their constants ask the same."""

    def of(self, plan: Plan) -> Selection:
        """The SELECT of a plan. Raises RefusedQuery for what SQL would answer otherwise than the plan means."""
        if plan not in self._written:
            parsed = from_json(plan)
            questions = tuple(self._translation(parsed, {}).questions()) if self._asks_for_kinds else ()
            for _, text in questions:
                if text not in self._found:
                    self._found[text] = list(self._rows(text))
            known = kinds_by_field((part, self._found[text]) for part, text in questions)
            selection = self._translation(parsed, known).selection()
            self._check(selection)
            self._written[plan] = selection
        return self._written[plan]

    def learn_from(self, other: Statements) -> None:
        """Take over the statements of another handle, and what was found for them."""
        self._written, self._found = dict(other._written), dict(other._found)

    def write_anew(self) -> None:
        """Forget the statements: there is another index."""
        self._written.clear()

    def forget(self) -> None:
        """Forget all: the documents have changed."""
        self._written.clear()
        self._found.clear()

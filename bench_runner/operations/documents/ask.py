"""Answering questions about all documents. The questions are in `bench_runner/suites/document_questions.py`, or are
derived from the documents (`bench_runner/operations/documents/derived.py`).

A question is passed to the store as a query plan in JSON. If the store cannot run the plan, all documents are read and
our reference implementation computes the answer, as a user's program would have to do. The query language is imported
only inside functions. The project's own store imports it, too, and the time of that import must be part of the store's
measured import time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

import pyarrow as pa

from adapters.document_store import Document, DocumentHandle, DocumentLoss, RefusedQuery
from adapters.errors import RefusedData
from adapters.offers import Handle
from bench_runner.operations.documents import derived, source
from bench_runner.operations.documents.operation import (
    DocumentReading,
    document_handle,
    first_unlike,
    store_of,
)
from bench_runner.operations.operation import READ_ALL, OperationContext
from bench_runner.operations.parameters import free_text, word
from bench_runner.operations.targets import Documents
from bench_runner.suites.document_questions import NAMES, questions_of

if TYPE_CHECKING:
    from libraries.document_queries.plan import Plan


LONGEST_TITLE = 60
"""Largest number of characters of a query in a title."""
INSTALL = "pip install 'format-bench[documents]'"

Plans = str | tuple[str, ...]
"""The input of a call: one query plan as JSON, or several."""


@dataclass(frozen=True)
class Asking(DocumentReading):
    """An operation whose input is a query plan, or a tuple of plans that run one after the other. The store runs a
    plan. If the store cannot run it, the project's reference implementation runs the plan on all documents."""

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the store cannot run query plans."""
        return "" if adapter.offers.operators else READ_ALL

    def fallback_in(self, stage: OperationContext) -> str:
        """Return READ_ALL if the store cannot run this plan."""
        return READ_ALL if self._reads_all(stage, self.take_input(stage, stage.rows)) else ""

    def _reads_all(self, stage: OperationContext, held: Plans) -> bool:
        return not all(steps_of(plan) <= store_of(stage).offers.operators for plan in plans_of(held))

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[Plans]) -> None:
        """Translate each plan into the store's own query language. Not timed, because users write their queries in the
        store's language from the start."""
        super().make_ready(stage, handle, inputs)
        native = (held for held in dict.fromkeys(inputs) if not self._reads_all(stage, held))
        for plan in dict.fromkeys(plan for held in native for plan in plans_of(held)):
            with _refusals():
                document_handle(handle).prepare(plan)

    def needs_values(self, held: Plans) -> bool:
        """Return False for a count of all documents, which many stores answer without reading values."""
        return any(steps_of(plan) != {"count"} for plan in plans_of(held))

    def open_again(self, stage: OperationContext, handle: Handle, location: Path) -> Handle:
        """Close the handle and return a new one, to which the translated plans are copied."""
        handle.close()
        again = self.open(stage, location)
        assert again is not None
        document_handle(again).learn_from(document_handle(handle))
        return again

    def asked(self, stage: OperationContext, handle: DocumentHandle, held: Plans) -> list[Any]:
        """Return the rows of the answers. Raises RefusedData if the store would interpret a plan in another way than
        the query language defines."""
        if self._reads_all(stage, held):
            everything: Iterable[Document] = (document for batch in handle.scan() for document in batch)
            if not isinstance(held, str):
                # A program reads the documents once for all answers.
                everything = list(everything)
            return [row for plan in plans_of(held) for row in _answer(plan, everything, source.key_field(stage))]
        with _refusals():
            return [row for plan in plans_of(held) for row in handle.query(plan)]

    def difference(
        self, stage: OperationContext, held: Plans, result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return a description of the first row that differs from the right answers, or None."""
        right = (row for plan in plans_of(held) for row in self.right(stage, plan))
        return first_unlike(right, result.rows, losses)

    def right(self, stage: OperationContext, plan: str) -> list[dict[str, Any]]:
        """Return the right answer, which the reference implementation computes from the documents of the data set."""
        return _right(stage, plan)


def plans_of(held: Plans) -> tuple[str, ...]:
    """Return the plans of an input."""
    return (held,) if isinstance(held, str) else held


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except RefusedQuery as refused:
        raise RefusedData(str(refused)) from refused


@lru_cache(maxsize=64)
def steps_of(plan: str) -> frozenset[str]:
    """Return the names of the steps of a plan. An earlier call, before timing starts, fills the cache, so that only a
    lookup is timed."""
    return frozenset(step["is"] for step in json.loads(plan))


@lru_cache(maxsize=64)
def _right(stage: OperationContext, plan: str) -> list[dict[str, Any]]:
    return _answer(plan, source.documents(stage, stage.rows), source.key_field(stage))


def _answer(plan: str, documents: Iterable[Document], key: str) -> list[dict[str, Any]]:
    from libraries.document_queries.reference import run_over_documents

    return run_over_documents(documents, _plan(plan), key)


@lru_cache(maxsize=64)
def _plan(text: str) -> Plan:
    """Return the parsed plan. An earlier call, before timing starts, fills the cache, as for `steps_of`."""
    from libraries.document_queries.json_form import from_json

    return from_json(text)


@dataclass(frozen=True)
class Ask(Asking):
    """Answer one question about the documents, or the three questions that are derived from the documents, on an open
    store."""

    query: str = word(*derived.NAMES, *NAMES, spelled=True)

    name: ClassVar[str] = "ask"
    meaning: ClassVar[str] = (
        "answer questions about all documents: derived from the data, from the paper's table 2, or from JSONBench"
    )
    use: ClassVar[str] = "ask [{query}]"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'ask q2' or 'ask 3 questions'."""
        return _TITLES.get(self.query, f"ask {self.query}")

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Return whether this question exists for these documents."""
        known = (*derived.NAMES, *questions_of(dataset.partition("[")[0]))
        return super().concerns(dataset, network) and self.query in known

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Plans]:
        """Return a list with the query plan or plans of each repetition, which are the same in all repetitions."""
        return [self._plans(stage)] * repetitions

    def in_words(self, dataset: Path, rows: int) -> tuple[str, ...]:
        """Return the derived questions in words, with the names of fields; empty for questions of publications.
        `dataset` is the path of the cached data set, and `rows` is the number of documents."""
        return tuple(question.words for question in self._derived(dataset, rows))

    def _derived(self, dataset: Path, rows: int) -> Iterable[derived.Derived]:
        if self.query not in derived.NAMES:
            return ()
        found = derived.derived_questions(dataset, rows)
        return found.values() if self.query == derived.USUAL else (found[self.query],)

    def _plans(self, stage: OperationContext) -> Plans:
        if plans := tuple(question.plan for question in self._derived(stage.dataset, stage.rows)):
            return plans
        return questions_of(stage.name.partition("[")[0])[self.query].plan


@dataclass(frozen=True)
class Sql(Asking):
    """Answer an SQL query of the user about the documents, on an open store."""

    query: str = free_text("SELECT count(*) FROM docs", "SELECT count(*) FROM docs")

    name: ClassVar[str] = "sql"
    meaning: ClassVar[str] = "answer an SQL query about the table docs, whose columns are paths of fields"
    use: ClassVar[str] = "sql {query}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The distribution sqlglot, which parses the query."""
        return ("sqlglot",)

    @property
    def text(self) -> str:
        """The query as the user wrote it."""
        return unquote(self.query)

    @property
    def title(self) -> str:
        """The name shown to people, such as "sql 'SELECT count(*) FROM docs'". A long query is shortened."""
        text = " ".join("".join(each if each.isprintable() else " " for each in self.text).split())
        return f"sql '{text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 3] + '...'}'"

    @property
    def plan(self) -> str:
        """The query's plan as JSON. Raises RefusedData if no plan can express the query, or sqlglot is not
        installed."""
        return _plan_of_sql(self.text)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the data are not documents, or no plan answers the query."""
        try:
            return super().refusal(schema, rows) or (None if self.plan else "")
        except RefusedData as refused:
            return str(refused)

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Plans]:
        """Return a list with the query's plan for each repetition."""
        return [self.plan] * repetitions


@lru_cache(maxsize=64)
def _plan_of_sql(text: str) -> str:
    try:
        from libraries.document_queries.json_form import to_json
        from libraries.document_queries.sql.errors import SQLError
        from libraries.document_queries.sql.question import plan_of
    except ModuleNotFoundError as error:
        raise RefusedData(f"SQL needs {error.name}, which is not installed: {INSTALL}") from None
    try:
        return to_json(plan_of(text))
    except SQLError as error:
        raise RefusedData(str(error)) from None


_TITLES = {
    derived.USUAL: "ask 3 questions",
    derived.GROUP: "count by group",
    derived.FILTER: "count with a filter",
    derived.TOP: f"top {derived.ROWS}",
}
"""Titles of the derived questions. The answer of `recommend` has the questions in words instead, with the names of
fields."""

"""Answering a question about all documents. The questions are in `bench_runner/suites/document_questions.py`.

A question is passed to the store as a query plan in JSON. If the store cannot run the plan, all documents are read and
our reference implementation computes the answer, as a user's program would have to do. The query language is imported
only inside functions, because its import must count as import time of the project's own store, which uses it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.document_store import Document, DocumentHandle, DocumentLoss, RefusedQuery
from adapters.errors import RefusedData
from adapters.offers import Handle
from bench_runner.operations.documents import source
from bench_runner.operations.documents.operation import (
    DocumentReading,
    document_handle,
    first_unlike,
    store_of,
)
from bench_runner.operations.operation import READ_ALL, OperationContext
from bench_runner.operations.parameters import word
from bench_runner.operations.targets import Documents
from bench_runner.suites.document_questions import NAMES, questions_of

if TYPE_CHECKING:
    from libraries.document_queries.plan import Plan


@dataclass(frozen=True)
class Asking(DocumentReading):
    """An operation whose input is a query plan. The store runs the plan or, if it cannot, the reference implementation
    runs it on all documents."""

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the store cannot run query plans."""
        return "" if adapter.offers.operators else READ_ALL

    def fallback_in(self, stage: OperationContext) -> str:
        """Return READ_ALL if the store cannot run this plan."""
        return READ_ALL if self._reads_all(stage, self.take_input(stage, stage.rows)) else ""

    def _reads_all(self, stage: OperationContext, plan: str) -> bool:
        return not steps_of(plan) <= store_of(stage).offers.operators

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[str]) -> None:
        """Translate each plan into the store's own query language. Not timed, because users write their queries in
        that language."""
        super().make_ready(stage, handle, inputs)
        for plan in dict.fromkeys(inputs):
            if not self._reads_all(stage, plan):
                with _refusals():
                    document_handle(handle).prepare(plan)

    def needs_values(self, held: str) -> bool:
        """Return False for a count of all documents, which many stores answer without reading values."""
        return steps_of(held) != {"count"}

    def open_again(self, stage: OperationContext, handle: Handle, location: Path) -> Handle:
        """Close the handle and return a new one, to which the translated plans are copied."""
        handle.close()
        again = self.open(stage, location)
        assert again is not None
        document_handle(again).learn_from(document_handle(handle))
        return again

    def asked(self, stage: OperationContext, handle: DocumentHandle, held: str) -> list[Any]:
        """Return the rows of the answer. Raises RefusedData if the store would interpret the plan in another way than
        the query language defines."""
        if self._reads_all(stage, held):
            everything = (document for batch in handle.scan() for document in batch)
            return _answer(held, everything, source.key_field(stage))
        with _refusals():
            return handle.query(held)

    def difference(
        self, stage: OperationContext, held: str, result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return a description of the first row that differs from the right answer, or None."""
        return first_unlike(self.right(stage, held), result.rows, losses)

    def right(self, stage: OperationContext, plan: str) -> list[dict[str, Any]]:
        """Return the right answer, which the reference implementation computes from the documents of the data set."""
        return _right(stage, plan)


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
    """Answer one of the questions that are defined for these documents, on an open store."""

    query: str = word(*NAMES, spelled=True)

    name: ClassVar[str] = "ask"
    meaning: ClassVar[str] = "answer a question about all documents, from the paper's table 2 or from JSONBench"

    @property
    def title(self) -> str:
        """For example 'ask q2'."""
        return f"ask {self.query}"

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Return whether this question exists for these documents."""
        return super().concerns(dataset, network) and self.query in questions_of(dataset.partition("[")[0])

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[str]:
        """Return a list with the query plan of each repetition, which is the same in all repetitions."""
        return [questions_of(stage.name.partition("[")[0])[self.query].plan] * repetitions

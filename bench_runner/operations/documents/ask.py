"""Asking a question of all documents, one of `bench_runner/suites/document_questions.py`.

A plan goes to the store as JSON. Where the store has no call for it, all documents are read and the reference answers:
that is what a user would have to do. The language is imported where it is needed: our own store has it in the time that
its import takes.
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
    """What questions have in common: a plan, who answers it, and the right answer."""

    def fallback(self, adapter: Any) -> str:
        """What stands for a store that answers nothing itself."""
        return "" if adapter.offers.operators else READ_ALL

    def fallback_in(self, stage: OperationContext) -> str:
        """What stands for the store's own answer to this very plan."""
        return READ_ALL if self._reads_all(stage, self.take_input(stage, stage.rows)) else ""

    def _reads_all(self, stage: OperationContext, plan: str) -> bool:
        return not steps_of(plan) <= store_of(stage).offers.operators

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[str]) -> None:
        """Each of the plans is put into the store's own language: users ask in it, and know their data."""
        super().make_ready(stage, handle, inputs)
        for plan in dict.fromkeys(inputs):
            if not self._reads_all(stage, plan):
                with _refusals():
                    document_handle(handle).prepare(plan)

    def needs_values(self, held: str) -> bool:
        """Not to count all documents: many stores know how many they are."""
        return steps_of(held) != {"count"}

    def open_again(self, stage: OperationContext, handle: Handle, location: Path) -> Handle:
        """Another handle, told what this one knows of the plans."""
        handle.close()
        again = self.open(stage, location)
        assert again is not None
        document_handle(again).learn_from(document_handle(handle))
        return again

    def asked(self, stage: OperationContext, handle: DocumentHandle, held: str) -> list[Any]:
        """The rows of the answer. Raises RefusedData where the store means a condition otherwise."""
        if self._reads_all(stage, held):
            everything = (document for batch in handle.scan() for document in batch)
            return _answer(held, everything, source.key_field(stage))
        with _refusals():
            return handle.query(held)

    def difference(
        self, stage: OperationContext, held: str, result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Row by row, in the order that the plan has."""
        return first_unlike(self.right(stage, held), result.rows, losses)

    def right(self, stage: OperationContext, plan: str) -> list[dict[str, Any]]:
        """The reference's answer over the documents in memory."""
        return _right(stage, plan)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except RefusedQuery as refused:
        raise RefusedData(str(refused)) from refused


@lru_cache(maxsize=64)
def steps_of(plan: str) -> frozenset[str]:
    """What a plan does. Parsed while the operation is primed: inside the clock it is only looked up."""
    return frozenset(step["is"] for step in json.loads(plan))


@lru_cache(maxsize=64)
def _right(stage: OperationContext, plan: str) -> list[dict[str, Any]]:
    return _answer(plan, source.documents(stage, stage.rows), source.key_field(stage))


def _answer(plan: str, documents: Iterable[Document], key: str) -> list[dict[str, Any]]:
    from libraries.document_queries.reference import run_over_documents

    return run_over_documents(documents, _plan(plan), key)


@lru_cache(maxsize=64)
def _plan(text: str) -> Plan:
    """Parsed while the operation is primed, as steps_of is."""
    from libraries.document_queries.json_form import from_json

    return from_json(text)


@dataclass(frozen=True)
class Ask(Asking):
    """From an open store to the answer of a question that is known of such documents."""

    query: str = word(*NAMES, spelled=True)

    name: ClassVar[str] = "ask"
    meaning: ClassVar[str] = "answer a question about all documents, of the paper's table 2 or of JSONBench"

    @property
    def title(self) -> str:
        """'ask q2'."""
        return f"ask {self.query}"

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Whether there is such a question about these documents."""
        return super().concerns(dataset, network) and self.query in questions_of(dataset.partition("[")[0])

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[str]:
        """The same plan for each repetition."""
        return [questions_of(stage.name.partition("[")[0])[self.query].plan] * repetitions

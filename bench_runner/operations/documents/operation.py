"""The base classes of operations on documents, which call a document store and define the right answer.

Operations that read some documents are short. Such an operation is therefore called several times in one process, on a
store that stays open (method rule 19).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from adapters.document_store import DocumentHandle, DocumentLoss, DocumentStoreAdapter, identical, seen
from adapters.offers import Handle
from bench_runner.clock import Laps
from bench_runner.operations.documents import source
from bench_runner.operations.operation import Calls, Operation, OperationContext
from bench_runner.operations.targets import Documents
from bench_runner.variants import is_raw_io
from data_generator.documents import is_documents

RAW_IO_REFUSAL = "raw I/O writes and reads all of the text, and cannot find documents in it"


def store_of(stage: OperationContext) -> DocumentStoreAdapter:
    """Return the document store that a worker measures."""
    return cast(DocumentStoreAdapter, stage.adapter)


class DocumentOperation(Operation):
    """Something that a user does with stored documents."""

    target_kinds = ("documents",)

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Return True if there is no network. No document store is measured through services."""
        return not network

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the data are not documents."""
        return None if is_documents(schema) else "it needs documents, and the data are not documents"

    def unfit(self, adapter: Any) -> str | None:
        """Return a refusal reason for raw I/O, which stores text without parsing documents."""
        return RAW_IO_REFUSAL if is_raw_io(adapter.format) else None

    @abstractmethod
    def difference(
        self, stage: OperationContext, held: Any, result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return how the result differs from the right answer, or None if it does not differ. Differences that `losses`
        declare are ignored. Not timed."""


@dataclass(frozen=True)
class DocumentReading(DocumentOperation, Calls):
    """An operation that reads some documents, or a result computed from documents, from a store that stays open."""

    def handles(self, adapter: Any) -> int:
        """Return 1, because every store can stay open."""
        return 1

    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """Open the store."""
        return cast(Handle, store_of(stage).open(location, source.key_field(stage)))

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """Finish pending merges."""
        document_handle(handle).settle()

    def call(self, stage: OperationContext, handle: Handle | None, held: Any, location: Path, laps: Laps) -> Documents:
        """Call the store once and return its result."""
        found = self.asked(stage, document_handle(handle), held)
        laps.lap("engine_ns")
        return Documents(found)

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Documents:
        """Open the store, prepare it, call it once, close it, and return the result."""
        handle = self.open(stage, location)
        assert handle is not None
        self.make_ready(stage, handle, [held])
        result = self.call(stage, handle, held, location, laps)
        handle.close()
        laps.lap("engine_ns")
        return result

    @abstractmethod
    def asked(self, stage: OperationContext, handle: DocumentHandle, held: Any) -> list[Any]:
        """Return the store's result for one call. Timed."""


def document_handle(handle: Handle | None) -> DocumentHandle:
    """Narrow the generic handle to a DocumentHandle."""
    return cast(DocumentHandle, handle)


def first_unlike(expected: Iterable[Any], found: Sequence[Any], losses: Sequence[DocumentLoss]) -> str | None:
    """Return how two ordered lists of rows differ, or None if all values have equal types and equal bits."""
    wanted = list(expected)
    if len(wanted) != len(found):
        return f"{len(found):,} rows were read, but there must be {len(wanted):,}"
    for number, (right, came) in enumerate(zip(wanted, found, strict=True)):
        if not identical(seen(right, losses), seen(came, losses)):
            return f"row {number}: expected {_short(right)}, read {_short(came)}"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."

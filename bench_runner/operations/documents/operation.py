"""What the operations on documents have in common: they are called on an open store, and say what is right.

Reading in part is short: it is called several times in one process, on a copy that stays open (method rule 19).
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

RAW_IO_REFUSAL = "raw I/O writes and reads all of the text, and finds no document in it"


def store_of(stage: OperationContext) -> DocumentStoreAdapter:
    """The store that a worker measures."""
    return cast(DocumentStoreAdapter, stage.adapter)


class DocumentOperation(Operation):
    """One thing that a user does with stored documents."""

    @property
    def target_kinds(self) -> tuple[str, ...]:
        """Documents are neither rows nor images."""
        return ("documents",)

    def concerns(self, dataset: str, network: str = "") -> bool:
        """No store is measured through services."""
        return not network

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """The data must be documents."""
        return None if is_documents(schema) else "it is about documents, and the data are none"

    def unfit(self, adapter: Any) -> str | None:
        """Raw I/O stores text and knows no documents."""
        return RAW_IO_REFUSAL if is_raw_io(adapter.format) else None

    @abstractmethod
    def difference(
        self, stage: OperationContext, held: Any, result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """After the clock: how what came back differs from the right answer, but for these losses; None where it does
        not."""


@dataclass(frozen=True)
class DocumentReading(DocumentOperation, Calls):
    """Reading some of the stored documents, or an answer from them, on a store that stays open."""

    def handles(self, adapter: Any) -> int:
        """One: every store can stay open, whatever it has calls for."""
        return 1

    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """The store, open."""
        return cast(Handle, store_of(stage).open(location, source.key_field(stage)))

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """Merges that are due come to their end."""
        document_handle(handle).settle()

    def call(self, stage: OperationContext, handle: Handle | None, held: Any, location: Path, laps: Laps) -> Documents:
        """Ask once."""
        found = self.asked(stage, document_handle(handle), held)
        laps.lap("engine_ns")
        return Documents(found)

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Documents:
        """Open, make ready, ask once, close."""
        handle = self.open(stage, location)
        assert handle is not None
        self.make_ready(stage, handle, [held])
        result = self.call(stage, handle, held, location, laps)
        handle.close()
        laps.lap("engine_ns")
        return result

    @abstractmethod
    def asked(self, stage: OperationContext, handle: DocumentHandle, held: Any) -> list[Any]:
        """Inside the clock: what the store gives."""


def document_handle(handle: Handle | None) -> DocumentHandle:
    """The open store that the worker hands through as what it knows of open copies."""
    return cast(DocumentHandle, handle)


def first_unlike(expected: Iterable[Any], found: Sequence[Any], losses: Sequence[DocumentLoss]) -> str | None:
    """How rows in a certain order differ; None where they are the same by type and bits."""
    wanted = list(expected)
    if len(wanted) != len(found):
        return f"{len(found):,} rows came back, {len(wanted):,} are right"
    for number, (right, came) in enumerate(zip(wanted, found, strict=True)):
        if not identical(seen(right, losses), seen(came, losses)):
            return f"row {number}: right is {_short(right)}, came back {_short(came)}"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."

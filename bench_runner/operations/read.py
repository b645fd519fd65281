"""Reading all of the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from adapters.document_store import DocumentStoreAdapter
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.document_target import Documents, Text
from bench_runner.operations.operation import Operation, Stage
from bench_runner.variants import is_raw_io
from data_generator.documents import key_of


@dataclass(frozen=True)
class Read(Operation):
    """Until every byte of the target lies in private memory."""

    name: ClassVar[str] = "read"
    sees_all: ClassVar[bool] = True
    kinds: ClassVar[None] = None
    meaning: ClassVar[str] = "read all of the data back into what the user holds"

    def take_input(self, stage: Stage, rows: int) -> None:
        """A read has no input but the stored copy."""

    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> Any:
        """Read, convert to the target, touch one byte in each page of the result."""
        if isinstance(stage.adapter, DocumentStoreAdapter):
            return _all_documents(stage, location, laps)
        return stage.answer(lambda: stage.adapter.read(location), laps)

    def expected_columns(self, stage: Stage) -> list[str]:
        """All, as they are stored."""
        return list(stage.schema.names)


def _all_documents(stage: Stage, location: Path, laps: Laps) -> Documents | Text:
    """Open the store, take all of its documents, close it; of raw I/O the text alone."""
    store = cast(DocumentStoreAdapter, stage.adapter)
    if is_raw_io(store.format):
        text = Text(cast(Any, store).text(location))
        laps.lap("engine_ns")
        targets.touch(text)
        laps.lap("touch_ns")
        return text
    handle = store.open(location, key_of(stage.schema))
    try:
        found = [document for batch in handle.scan() for document in batch]
    finally:
        handle.close()
    laps.lap("engine_ns")
    return Documents(found)

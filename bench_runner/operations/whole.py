"""Saving all of the data, which makes the stored copy that a chain reads; and reading all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from adapters.document_store import DocumentStoreAdapter
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import Operation, Stage
from bench_runner.operations.targets import Documents, Text
from bench_runner.refusing import REFUSING, refusal
from bench_runner.variants import is_raw_io
from data_generator.documents import key_of


@dataclass(frozen=True)
class Save(Operation):
    """From the user's object in hand until the call has returned and every handle is closed."""

    name: ClassVar[str] = "save"
    writes: ClassVar[bool] = True
    kinds: ClassVar[None] = None
    meaning: ClassVar[str] = "store all of the data in a fresh place"

    def take_input(self, stage: Stage, rows: int) -> Any:
        """Return the target, made from the cached table. Raises RefusedData for values that pandas cannot hold."""
        table = stage.table(rows)
        if stage.target.kind != "pandas":
            return targets.make(table, stage.target)
        try:
            return targets.make(table, stage.target)
        except REFUSING as error:
            raise refusal(error, stage.adapter, "pandas", "; measure it with --target arrow") from error

    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> None:
        """Convert to what the engine takes, and store it.

        Raises RefusedData where the library reports that it does not take this data: only here is such an error a
        refusal, in a read or in our own code it is a fault.
        """
        if isinstance(stage.adapter, DocumentStoreAdapter):
            _ingest(stage, held, location, laps)
            return
        try:
            native = targets.to_native(held, stage.target, stage.adapter.native)
            laps.lap("convert_ns")
            stage.adapter.save(native, location)
        except REFUSING as error:
            raise refusal(error, stage.adapter) from error
        laps.lap("engine_ns")

    def expected_columns(self, stage: Stage) -> list[str]:
        """Nothing: an operation that sees all of the data verifies the save of its chain."""
        return []


def _ingest(stage: Stage, held: Sequence[bytes], location: Path, laps: Laps) -> None:
    """Store documents. The clock ends when the merges that are due are done; `accepted_ns` is when all were taken."""
    store = cast(DocumentStoreAdapter, stage.adapter)
    store.ingest(held, location, key_of(stage.schema), lambda: laps.lap("accepted_ns"))
    laps.lap("settled_ns")
    settled_ns = laps.parts.pop("settled_ns")
    laps.note("engine_ns", laps.parts.get("accepted_ns", 0) + settled_ns)
    laps.note("input_bytes", sum(map(len, held)))


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

"""Saving all data, which makes the stored copy that the other operations read, and reading all data."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from adapters.document_store import DocumentLoss, DocumentStoreAdapter, first_difference
from bench_runner.clock import Laps
from bench_runner.conditions import Conditions
from bench_runner.operations import targets
from bench_runner.operations.documents.source import documents
from bench_runner.operations.operation import Operation, OperationContext, Writes
from bench_runner.operations.targets import Documents, Text
from bench_runner.refusals import REFUSING, refusal
from bench_runner.variants import is_raw_io
from data_generator.documents import key_of


class _Whole(Operation):
    target_kinds = None

    @property
    def use_title(self) -> str:
        """The name in a list of what the user does with the data, such as 'save all' or 'read all'."""
        return f"{self.name} all"


@dataclass(frozen=True)
class Save(_Whole, Writes):
    """Save the user's object. Timing ends when the call has returned and every handle is closed."""

    name: ClassVar[str] = "save"
    meaning: ClassVar[str] = "store all of the data in a new place"
    use: ClassVar[str] = "save [all]"

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """Return the target (the object to save), made from the cached table. Raises RefusedData for values that pandas
        cannot hold."""
        table = stage.table(rows)
        if stage.target.kind != "pandas":
            return targets.make(table, stage.target)
        try:
            return targets.make(table, stage.target)
        except REFUSING as error:
            raise refusal(error, stage.adapter, "pandas", "; measure it with --target arrow") from error

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Path:
        """Convert the data to the engine's input, store the result and return its path. Raises RefusedData if the
        library reports that it does not accept these data. If a read or the project's own code raises such an error,
        the error is a fault, not a refusal."""
        if isinstance(stage.adapter, DocumentStoreAdapter):
            _ingest(stage, held, location, laps)
            return location
        try:
            native = targets.to_native(held, stage.target, stage.adapter.native)
            laps.lap("convert_ns")
            stage.adapter.save(native, location)
        except REFUSING as error:
            raise refusal(error, stage.adapter) from error
        laps.lap("engine_ns")
        return location

    def answer(self, stage: OperationContext, result: Path, location: Path) -> None:
        """Return None, because a later read of the same copy verifies the save."""
        return None


def _ingest(stage: OperationContext, held: Sequence[bytes], location: Path, laps: Laps) -> None:
    """Store documents. Timing ends when the store has finished its pending merges. The lap `accepted_ns` is the time
    until the store had accepted all documents."""
    store = cast(DocumentStoreAdapter, stage.adapter)
    store.ingest(held, location, key_of(stage.schema), lambda: laps.lap("accepted_ns"))
    laps.lap("settled_ns")
    settled_ns = laps.parts.pop("settled_ns")
    laps.note("engine_ns", laps.parts.get("accepted_ns", 0) + settled_ns)
    laps.note("input_bytes", sum(map(len, held)))


@dataclass(frozen=True)
class Read(_Whole):
    """Read all data. Timing ends when every byte of the target (the user's object) is in private memory."""

    name: ClassVar[str] = "read"
    meaning: ClassVar[str] = "read all of the data back into what the user holds"
    use: ClassVar[str] = "read [all [rows]]"

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Any:
        """Read, convert to the target, and touch one byte in each page of the result."""
        if isinstance(stage.adapter, DocumentStoreAdapter):
            return _all_documents(stage, location, laps)
        return stage.answer(lambda: stage.adapter.read(location), laps)

    def difference(
        self, stage: OperationContext, held: None, result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return a description of the first difference between the documents read and the documents stored, or None if
        there is none. Differences that `losses` declares are ignored."""
        return first_difference(documents(stage, stage.rows), result.rows, losses, key_of(stage.schema))


def _all_documents(stage: OperationContext, location: Path, laps: Laps) -> Documents | Text:
    """Open the store, read all of its documents and close it. For raw I/O, return the text without parsing it."""
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


class Changes(Writes):
    """An operation that stores data in a separate folder next to the stored copy, so that the other operations find the
    stored copy unchanged."""

    def refused_under(self, conditions: Conditions) -> str | None:
        """Return a refusal reason for a cold cache, because the operation works on a copy that was written just
        before."""
        reason = super().refused_under(conditions)
        if reason is None and conditions.cache != "warm":
            reason = f"{self.name} changes a copy made just before, which is in the page cache: measure it warm"
        return reason

    def refused_by_asv(self) -> str | None:
        """Return a refusal reason, because a second call would find what the first call stored."""
        return f"{self.name} changes its copy, and asv repeats calls"

    def works_at(self, location: Path) -> Path:
        """Return a path with the same file name in a folder next to the folder of the stored copy."""
        return location.parent.with_name(f"{location.parent.name}-{self.name}") / location.name

    def prepare(self, location: Path) -> None:
        """Make the folder in which the operation works. If the operation extends stored data, copy the data into this
        folder."""
        place, before = self.works_at(location), self.adds_to(location)
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir()
        if before is not None and before.is_dir():
            shutil.copytree(before, place)
        elif before is not None:
            shutil.copyfile(before, place)

    def answer(self, stage: OperationContext, result: Path, location: Path) -> Any:
        """Return all data that are stored after the operation."""
        return Read().run(stage, None, result, Laps())

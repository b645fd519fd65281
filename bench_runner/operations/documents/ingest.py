"""Storing documents while earlier ones are changed and deleted, with indexes that stay right.

Alkowaileet and Carey's section 6.3: the clock ends when the merges that are due are done and the store is closed; what
it took until all was accepted is a figure beside it. The copy that a chain's other operations read is made by `save`.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from adapters.document_store import Document, DocumentLoss, Key, first_difference
from bench_runner.clock import Laps
from bench_runner.operations.document_target import PIECE_BYTES, Documents
from bench_runner.operations.documents import source
from bench_runner.operations.documents.operation import DocumentOperation, store_of
from bench_runner.operations.operation import Stage
from bench_runner.operations.parameters import count, share
from data_generator.document_updates import Call, calls
from data_generator.documents import lines_of

NO_INDEXES = "none"

FEWEST_CALLS = 20
"""Changes are of documents of earlier calls: with one call there are none, with few there are too few."""


@dataclass(frozen=True)
class Ingest(DocumentOperation):
    """From the first call until merges are done and the store is closed. For each document `updates` earlier ones are
    replaced or deleted."""

    updates: float = share(0.5, none=True)
    indexes: int | str = count(NO_INDEXES, NO_INDEXES, spelled=True)

    name: ClassVar[str] = "ingest"
    changes: ClassVar[bool] = True
    makes_anew: ClassVar[bool] = True
    meaning: ClassVar[str] = "store all documents by calls of at most 1 MB, with changes of earlier ones among them"

    @property
    def title(self) -> str:
        """'ingest, 50% updates, 2 indexes'."""
        told = ["ingest", f"{self.updates * 100:g}% updates"]
        return ", ".join([*told, f"{self.indexes} indexes"] if self.indexes != NO_INDEXES else told)

    def unfit(self, adapter: Any) -> str | None:
        """Earlier documents must be replaced and removed, and fields given an index where that is asked for."""
        offers = adapter.offers
        if self.updates and not (offers.upsert and offers.delete):
            return "it has no calls that replace and remove documents"
        if not offers.upsert:
            return "it has no call that adds documents to those that are there"
        if self.indexes != NO_INDEXES and not offers.index:
            return "it has no index of fields: measure it with indexes=none"
        return super().unfit(adapter)

    def take_input(self, stage: Stage, rows: int) -> list[Call]:
        """The calls, in private memory."""
        lines = lines_of(stage.table(rows))
        call_bytes = min(PIECE_BYTES, -(-sum(map(len, lines)) // FEWEST_CALLS))
        return list(calls(lines, source.key_field(stage), self.updates, call_bytes))

    def works_at(self, location: Path) -> Path:
        """Where it stores them: beside the folder of the stored copy, which no reader looks into."""
        return location.parent.with_name(f"{location.parent.name}-ingested") / location.name

    def prepare(self, location: Path) -> None:
        """Before the clock: an empty folder."""
        place = self.works_at(location)
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir()

    def run(self, stage: Stage, held: Sequence[Call], location: Path, laps: Laps) -> Path:
        """The first call makes the store, the others add to it. Returns where it lies."""
        store, key, place = store_of(stage), source.key_field(stage), self.works_at(location)
        store.ingest([held[0].upserts], place, key)
        handle = store.open(place, key)
        try:
            for path in self._indexed(stage):
                handle.index(path)
            for each in held[1:]:
                handle.upsert(each.upserts)
                if each.deletes:
                    handle.delete(each.deletes)
            laps.lap("accepted_ns")
            handle.settle()
        finally:
            handle.close()
        laps.lap("settled_ns")
        laps.note("input_bytes", sum(len(each.upserts) for each in held))
        laps.note("engine_ns", laps.parts["accepted_ns"] + laps.parts.pop("settled_ns"))
        return place

    def _indexed(self, stage: Stage) -> Sequence[tuple[str, ...]]:
        return source.ordered_fields(stage, int(self.indexes)) if self.indexes != NO_INDEXES else ()

    def answer(self, stage: Stage, result: Path, location: Path) -> Documents:
        """All that lies there."""
        handle = store_of(stage).open(result, source.key_field(stage))
        try:
            return Documents([document for batch in handle.scan() for document in batch])
        finally:
            handle.close()

    def difference(
        self, stage: Stage, held: Sequence[Call], result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Against a dict that the same calls have changed."""
        key = source.key_field(stage)
        return first_difference(after(held, key).values(), result.rows, losses, key)


def after(made: Sequence[Call], key: str) -> dict[Key, Document]:
    """What is there when all calls are done."""
    there: dict[Key, Document] = {}
    for each in made:
        there.update((document[key], document) for document in msgspec.json.Decoder().decode_lines(each.upserts))
        for deleted in each.deletes:
            there.pop(deleted, None)
    return there

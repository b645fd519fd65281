"""Storing documents while documents stored earlier are changed and deleted, with indexes kept up to date.

As in Alkowaileet and Carey, section 6.3, timing ends when pending merges are done and the store is closed. The time
until all documents were accepted is a separate figure. This operation works on a separate store; the other operations
read the copy that `save` made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from adapters.document_store import (
    Document,
    DocumentHandle,
    DocumentLoss,
    FieldPath,
    Key,
    first_difference,
    value_at,
)
from bench_runner.clock import Laps
from bench_runner.operations.documents import source
from bench_runner.operations.documents.ask import steps_of
from bench_runner.operations.documents.operation import DocumentOperation, store_of
from bench_runner.operations.documents.ranges import plan as plan_of_range
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.parameters import count, share
from bench_runner.operations.targets import PIECE_BYTES, Documents
from bench_runner.operations.whole import Changes
from data_generator.document_updates import Call, calls
from data_generator.documents import lines_of

NO_INDEXES = "none"

LOOK_UPS = 20
"""Number of values of each indexed field that are looked up after storing."""

FEWEST_CALLS = 20
"""Smallest number of calls. A call changes only documents of earlier calls, so few calls would contain few changes."""


@dataclass(frozen=True)
class LookUp:
    """The result of one look-up: the number of documents for which the store finds `value` in the field at `path`."""

    path: FieldPath
    value: int
    documents: int


@dataclass(frozen=True)
class Ingested(Documents):
    """All stored documents, the results of looking up values in the indexes, and the fields whose index is missing."""

    look_ups: tuple[LookUp, ...] = ()
    without_index: tuple[FieldPath, ...] = ()


@dataclass(frozen=True)
class Ingest(DocumentOperation, Changes):
    """Store all documents by several calls. The measured time ends when merges are done and the store is closed.
    `updates` is the share of documents that replace or delete an earlier document."""

    updates: float = share(0.5, none=True)
    indexes: int | str = count(NO_INDEXES, NO_INDEXES, spelled=True)

    name: ClassVar[str] = "ingest"
    meaning: ClassVar[str] = "store all documents by calls of at most 1 MB, with changes of earlier ones among them"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'ingest, 50% updates, 2 indexes'."""
        words = ["ingest", f"{self.updates * 100:g}% updates"]
        return ", ".join([*words, f"{self.indexes} indexes"] if self.indexes != NO_INDEXES else words)

    def unfit(self, adapter: Any) -> str | None:
        """Return a refusal reason if the store lacks the calls or indexes that this operation needs."""
        offers = adapter.offers
        if self.updates and not (offers.upsert and offers.delete):
            return "it has no calls that replace and remove documents"
        if not offers.upsert:
            return "it has no call that adds documents to a store"
        if self.indexes != NO_INDEXES and not offers.index:
            return "it has no index of fields: measure it with indexes=none"
        return super().unfit(adapter)

    def take_input(self, stage: OperationContext, rows: int) -> list[Call]:
        """Return the list of calls, with their documents in private memory."""
        lines = lines_of(stage.table(rows))
        call_bytes = min(PIECE_BYTES, -(-sum(map(len, lines)) // FEWEST_CALLS))
        return list(calls(lines, source.key_field(stage), self.updates, call_bytes))

    def run(self, stage: OperationContext, held: Sequence[Call], location: Path, laps: Laps) -> Path:
        """Create the store with the first call and apply the other calls to it. Return its path."""
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

    def _indexed(self, stage: OperationContext) -> Sequence[FieldPath]:
        return source.ordered_fields(stage, int(self.indexes)) if self.indexes != NO_INDEXES else ()

    def answer(self, stage: OperationContext, result: Path, location: Path) -> Ingested:
        """Return all stored documents and the number of documents that the store's indexes find for some values."""
        key, indexed = source.key_field(stage), self._indexed(stage)
        handle = store_of(stage).open(result, key)
        try:
            there = [document for batch in handle.scan() for document in batch]
            without = tuple(path for path in indexed if not handle.has_index(path))
            found = tuple(each for path in indexed for each in _looked_up(stage, handle, there, path, key))
            return Ingested(there, found, without)
        finally:
            handle.close()

    def difference(
        self, stage: OperationContext, held: Sequence[Call], result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return the first difference between the stored documents and a Python dict to which the same calls were
        applied, or None if there is no difference."""
        key = source.key_field(stage)
        there = after(held, key).values()
        difference = first_difference(there, result.rows, losses, key)
        return difference or (_difference_by_index(there, result) if isinstance(result, Ingested) else None)


def _looked_up(
    stage: OperationContext, handle: DocumentHandle, there: Sequence[Document], path: FieldPath, key: str
) -> Iterator[LookUp]:
    """Yield the result of looking up values of a field in the store. The values are spread over all values of the
    field, because an index may be wrong for any document."""
    held = sorted({value for document in there if type(value := value_at(document, path)) is int})
    for value in held[:: max(len(held) // LOOK_UPS, 1)]:
        plan = plan_of_range(path, value, value, [(key,)])
        if steps_of(plan) <= store_of(stage).offers.operators:
            ((counted,),) = (row.values() for row in handle.query(plan))
            yield LookUp(path, value, counted)


def _difference_by_index(there: Iterable[Document], result: Ingested) -> str | None:
    if result.without_index:
        return f"an index of {'.'.join(result.without_index[0])} was created, but the store has none"
    counts = {each.path: Counter[Any]() for each in result.look_ups}
    for document in there:
        for path, counted in counts.items():
            if type(value := value_at(document, path)) in (int, float):
                counted[value] += 1
    for each in result.look_ups:
        right = counts[each.path][each.value]
        if each.documents != right:
            name = ".".join(each.path)
            return f"its index of {name} finds {each.documents} documents with {each.value}, but there are {right}"
    return None


def after(made: Sequence[Call], key: str) -> dict[Key, Document]:
    """Return the documents that remain after all calls, by key."""
    there: dict[Key, Document] = {}
    for each in made:
        there.update((document[key], document) for document in msgspec.json.Decoder().decode_lines(each.upserts))
        for deleted in each.deletes:
            there.pop(deleted, None)
    return there

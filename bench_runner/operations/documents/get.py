"""Finding documents by their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from adapters.document_store import DocumentHandle, DocumentLoss, Key
from bench_runner.operations.document_target import Documents
from bench_runner.operations.documents import source
from bench_runner.operations.documents.operation import DocumentReading, first_unlike
from bench_runner.operations.operation import READ_ALL, Stage
from bench_runner.operations.parameters import count
from bench_runner.operations.take import generator

MISSING_OF = 10
"""One in so many keys is one that no document has, as programs look whether something is there."""


@dataclass(frozen=True)
class Get(DocumentReading):
    """From an open store to the documents of some keys, in the order asked; one key in ten has none."""

    documents: int = count(100, spelled=True)

    name: ClassVar[str] = "get"
    meaning: ClassVar[str] = "find documents by their keys, one in ten of which no document has"

    @property
    def title(self) -> str:
        """'get 100 documents'."""
        return f"get {self.documents:,} document{'s' * (self.documents != 1)}"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """There must be as many documents."""
        if self.documents > rows:
            return f"{self.documents:,} documents are asked for, there are {rows:,}"
        return super().refusal(schema, rows)

    def fallback(self, adapter: Any) -> str:
        """What stands for a store's own call where it has none."""
        return "" if adapter.offers.get else READ_ALL

    def inputs(self, stage: Stage, rows: int, repetitions: int) -> list[list[Key]]:
        """The keys of each repetition, uniform among those of the first `rows` documents."""
        (keys,) = source.values(stage, rows, (source.key_field(stage),))
        known = set(keys)
        random = generator(stage.digest, self.spelled)
        wanted = min(self.documents, rows)
        asked = [[keys[place] for place in random.permutation(len(keys))[:wanted].tolist()] for _ in range(repetitions)]
        for hand in asked:
            for place in range(MISSING_OF - 1, wanted, MISSING_OF):
                hand[place] = _unknown(hand[place], known)
        return asked

    def asked(self, stage: Stage, handle: DocumentHandle, held: Sequence[Key]) -> list[Any]:
        """The documents, None for a key that none has."""
        return handle.get(held)

    def difference(
        self, stage: Stage, held: Sequence[Key], result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Document by document, in the order of the keys."""
        there = source.lines_by_key(stage)
        right = (source.document_of(there[asked]) if asked in there else None for asked in held)
        return first_unlike(right, result.rows, losses)


def _unknown(key: Key, known: set[Key]) -> Key:
    while key in known:
        key = f"{key}x" if isinstance(key, str) else key + 1
    return key

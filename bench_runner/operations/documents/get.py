"""Finding documents by their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from adapters.document_store import DocumentHandle, DocumentLoss, Key
from bench_runner.operations.documents import source
from bench_runner.operations.documents.operation import DocumentReading, first_unlike
from bench_runner.operations.operation import READ_ALL, OperationContext
from bench_runner.operations.parameters import count
from bench_runner.operations.tables.take import dealt, generator
from bench_runner.operations.targets import Documents

MISSING_OF = 10
"""One of this many requested keys is missing from the data, because programs also check whether a document exists."""


@dataclass(frozen=True)
class Get(DocumentReading):
    """Find the documents with some keys in an open store, in the order of the keys. One key in ten is missing from the
    data."""

    documents: int = count(100, spelled=True)

    name: ClassVar[str] = "get"
    meaning: ClassVar[str] = "find documents by their keys, one in ten of which is missing"
    use: ClassVar[str] = "get {documents:N} documents"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'get 100 documents'."""
        return f"get {self.documents:,} document{'s' * (self.documents != 1)}"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if there are fewer documents than one call looks up."""
        if self.documents > rows:
            return f"it finds {self.documents:,} documents, but there are {rows:,}"
        return super().refusal(schema, rows)

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the store has no call to find documents."""
        return "" if adapter.offers.get else READ_ALL

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[list[Key]]:
        """Return a list of keys for each repetition.

        One key in ten is missing from the data. The other keys are drawn uniformly from the first `rows` documents;
        keys are used a second time only when too few unused keys are left for a repetition.
        """
        (keys,) = source.values(stage, rows, (source.key_field(stage),))
        random = generator(stage.digest, self.spelled)
        wanted = min(self.documents, rows)
        asked = _hands(keys, wanted, repetitions, random)
        missing = wanted // MISSING_OF
        unknown = _unknown(keys, missing * repetitions)
        for hand, others in zip(asked, _hands(unknown, missing, repetitions, random), strict=True):
            hand[MISSING_OF - 1 :: MISSING_OF] = others
        return asked

    def asked(self, stage: OperationContext, handle: DocumentHandle, held: Sequence[Key]) -> list[Any]:
        """Return the documents, with None for a missing key."""
        return handle.get(held)

    def difference(
        self, stage: OperationContext, held: Sequence[Key], result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return a description of the first document that differs from the expected document, or None."""
        there = source.lines_by_key(stage)
        right = (source.document_of(there[asked]) if asked in there else None for asked in held)
        return first_unlike(right, result.rows, losses)


def _hands(keys: Sequence[Key], wanted: int, repetitions: int, random: np.random.Generator) -> list[list[Key]]:
    hands = dealt(lambda: random.permutation(len(keys)), wanted, repetitions)
    return [[keys[place] for place in hand.tolist()] for hand in hands]


def _unknown(keys: Sequence[Key], least: int) -> list[Key]:
    """Return at least `least` different keys that no document has.

    Most of these keys are between existing keys, so that a store cannot exclude these keys by its smallest and largest
    key. If there are too few gaps between existing keys, some keys are after the last existing key.
    """
    known, last = set(keys), max(keys)
    found = [other for key in keys if key != last and (other := _behind(key, 1)) not in known]
    return found + [_behind(last, step) for step in range(1, 1 + least - len(found))]


def _behind(key: Key, step: int) -> Key:
    return f"{key}x{step}" if isinstance(key, str) else key + step

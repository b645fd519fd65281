"""Reading some fields of all documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from adapters.document_store import Document, DocumentHandle, DocumentLoss, FieldPath, first_difference, parts
from bench_runner.operations.document_target import Documents
from bench_runner.operations.documents import source
from bench_runner.operations.documents.operation import DocumentReading
from bench_runner.operations.operation import READ_ALL, Stage
from bench_runner.operations.parameters import count


@dataclass(frozen=True)
class Fields(DocumentReading):
    """From an open store to the key and some fields of every document, in any order."""

    paths: int = count(2, spelled=True)

    name: ClassVar[str] = "fields"
    meaning: ClassVar[str] = "read the key and some other fields of all documents, chosen by the digest of the data"

    @property
    def title(self) -> str:
        """'2 fields of all documents'."""
        return f"{self.paths} field{'s' * (self.paths != 1)} of all documents"

    def fallback(self, adapter: Any) -> str:
        """What stands for a store's own call where it has none."""
        return "" if adapter.offers.project else READ_ALL

    def inputs(self, stage: Stage, rows: int, repetitions: int) -> list[list[FieldPath]]:
        """The same fields for each repetition."""
        chosen = [(source.key_field(stage),), *source.chosen_paths(stage, self.paths, self.spelled)]
        return [chosen] * repetitions

    def asked(self, stage: Stage, handle: DocumentHandle, held: Sequence[FieldPath]) -> list[Any]:
        """Of each document what the paths reach."""
        return [document for batch in handle.scan(held) for document in batch]

    def difference(
        self, stage: Stage, held: Sequence[FieldPath], result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Document by document, told apart by their keys."""
        return first_difference(_right(stage, tuple(held)), result.rows, losses, source.key_field(stage))


@lru_cache(maxsize=1)
def _right(stage: Stage, paths: tuple[FieldPath, ...]) -> list[Document]:
    return [parts(document, paths) for document in source.documents(stage, stage.rows)]

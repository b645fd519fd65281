"""Reading some fields of all documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from adapters.document_store import Document, DocumentHandle, DocumentLoss, FieldPath, first_difference, parts, seen
from adapters.losses import Cause
from bench_runner.operations.documents import source
from bench_runner.operations.documents.operation import DocumentReading
from bench_runner.operations.operation import READ_ALL, OperationContext
from bench_runner.operations.parameters import count
from bench_runner.operations.targets import Documents


@dataclass(frozen=True)
class Fields(DocumentReading):
    """Read the key and some fields of every document of an open store, in any order."""

    paths: int = count(2, spelled=True)

    name: ClassVar[str] = "fields"
    meaning: ClassVar[str] = "read the key and some other fields of all documents, chosen by the digest of the data"
    use: ClassVar[str] = "read {paths:K} fields"

    @property
    def title(self) -> str:
        """For example '2 fields of all documents'."""
        return f"{self.paths} field{'s' * (self.paths != 1)} of all documents"

    @property
    def use_title(self) -> str:
        """For example 'read 2 fields'."""
        return f"read {self.paths} field{'s' * (self.paths != 1)}"

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the store has no call to read fields."""
        return "" if adapter.offers.project else READ_ALL

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[list[FieldPath]]:
        """Return a list with the paths to read in each repetition, which are the same in all repetitions."""
        chosen = [(source.key_field(stage),), *source.chosen_paths(stage, self.paths, self.spelled)]
        return [chosen] * repetitions

    def asked(self, stage: OperationContext, handle: DocumentHandle, held: Sequence[FieldPath]) -> list[Any]:
        """Return a dict for each document that contains only the fields at the paths."""
        return [document for batch in handle.scan(held) for document in batch]

    def difference(
        self, stage: OperationContext, held: Sequence[FieldPath], result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return a description of the first difference between documents with the same key, or None."""
        if seen({"": None}, losses) == {}:
            losses = (*losses, _bare_objects(held))
        return first_difference(_right(stage, tuple(held)), result.rows, losses, source.key_field(stage))


def _bare_objects(paths: Sequence[FieldPath]) -> DocumentLoss:
    """Return an additional loss of a store that does not distinguish a null field from a missing field. In such a
    store, an object that has only null fields is equal to a missing object."""
    return DocumentLoss(
        "an object on the way to a field that is missing",
        "no other object",
        Cause.FORMAT,
        frozenset(),
        lambda document: _without_bare(document, paths),
    )


def _without_bare(value: Document, paths: Sequence[FieldPath]) -> Document:
    kept: Document = {}
    for name, inner in value.items():
        below = [path[1:] for path in paths if path[0] == name and len(path) > 1]
        if below and isinstance(inner, dict):
            inner = _without_bare(inner, below)
            if not inner and (name,) not in paths:
                continue
        kept[name] = inner
    return kept


@lru_cache(maxsize=1)
def _right(stage: OperationContext, paths: tuple[FieldPath, ...]) -> list[Document]:
    return [parts(document, paths) for document in source.documents(stage, stage.rows)]

"""Reading some fields of all documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from adapters.document_store import (
    Document,
    DocumentHandle,
    DocumentLoss,
    FieldPath,
    TypedField,
    first_difference,
    parts,
    seen,
)
from adapters.losses import Cause
from adapters.offers import Handle
from bench_runner.clock import Laps
from bench_runner.operations.documents import source
from bench_runner.operations.documents.operation import DocumentReading, document_handle
from bench_runner.operations.operation import READ_ALL, OperationContext
from bench_runner.operations.parameters import count, word
from bench_runner.operations.targets import Documents, DocumentTable, touch

DICTS, TABLE = "dicts", "table"
_TYPES = {
    "boolean": (pa.bool_(),),
    "integer": (pa.int64(),),
    "double": (pa.float64(),),
    "text": (pa.string(), pa.large_string()),
}


@dataclass(frozen=True)
class Fields(DocumentReading):
    """Read the key and some fields of every document of an open store, in any order. The result is a dict for each
    document, or one Arrow table. In an Arrow table, all values of a field have the same kind."""

    paths: int = count(2, spelled=True)
    form: str = word(DICTS, TABLE)

    name: ClassVar[str] = "fields"
    meaning: ClassVar[str] = (
        "read the key and some other fields of all documents, chosen by the digest of the data, as dicts or as a table"
    )
    use: ClassVar[str] = "read {paths:K} fields [as a {form:table}]"

    @property
    def title(self) -> str:
        """The name shown to people, such as '2 fields of all documents'."""
        return f"{self.paths} field{'s' * (self.paths != 1)} of all documents{self._as_a_table}"

    @property
    def use_title(self) -> str:
        """The name in a list of what the user does with the data, such as 'read 2 fields'."""
        return f"read {self.paths} field{'s' * (self.paths != 1)}{self._as_a_table}"

    @property
    def _as_a_table(self) -> str:
        return " as a table" if self.form == TABLE else ""

    def fallback(self, adapter: Any) -> str:
        """Return '' if the store has a call to read fields, else READ_ALL."""
        return "" if adapter.offers.project else READ_ALL

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Any]:
        """Return a list with the paths (or typed fields) to read in each repetition, which are the same in all."""
        if self.form == TABLE:
            return [list(source.typed_fields(stage, self.paths, self.spelled))] * repetitions
        chosen = [(source.key_field(stage),), *source.chosen_paths(stage, self.paths, self.spelled)]
        return [chosen] * repetitions

    def call(self, stage: OperationContext, handle: Handle | None, held: Any, location: Path, laps: Laps) -> Documents:
        """Call the store once and return its result. Timed."""
        if self.form == DICTS:
            return super().call(stage, handle, held, location, laps)
        table = document_handle(handle).read_table(held)
        laps.lap("engine_ns")
        touch(table)
        laps.lap("touch_ns")
        return DocumentTable([], table)

    def asked(self, stage: OperationContext, handle: DocumentHandle, held: Sequence[FieldPath]) -> list[Any]:
        """Return a dict for each document that contains only the fields at the paths."""
        return [document for batch in handle.scan(held) for document in batch]

    def difference(
        self, stage: OperationContext, held: Sequence[Any], result: Documents, losses: Sequence[DocumentLoss]
    ) -> str | None:
        """Return a description of the first difference between documents with the same key, or None."""
        if isinstance(result, DocumentTable):
            return _difference_of_tables(stage, held, result.table, losses)
        if seen({"": None}, losses) == {}:
            losses = (*losses, _bare_objects(held))
        return first_difference(_right(stage, tuple(held)), result.rows, losses, source.key_field(stage))


def _bare_objects(paths: Sequence[FieldPath]) -> DocumentLoss:
    """Return an additional loss, for a store that does not distinguish a null field from a missing field. In such a
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


def _difference_of_tables(
    stage: OperationContext, fields: Sequence[TypedField], table: pa.Table, losses: Sequence[DocumentLoss]
) -> str | None:
    """Return how a table differs from the right table, or None if it does not differ. A missing field and null are both
    null in a table."""
    types = [column.type for column in table.columns]
    if len(types) != len(fields):
        return f"{len(types)} columns were read, but there must be {len(fields)}"
    for field, type_ in zip(fields, types, strict=True):
        if type_ not in _TYPES[field.kind]:
            return f"the column of {'.'.join(field.path)} is {type_}, but its values are {field.kind}"
    table.validate(full=True)
    right = source.values(stage, stage.rows, *(field.path for field in fields))
    found = [column.to_pylist() for column in table.columns]
    return first_difference(_rows(right), _rows(found), losses, "0")


def _rows(columns: Sequence[Sequence[Any]]) -> Iterator[Document]:
    """Yield each row as a dict without nulls. The names in the dict are the positions of the columns, because two paths
    may have the same name."""
    for row in zip(*columns, strict=True):
        yield {str(place): value for place, value in enumerate(row) if value is not None}


@lru_cache(maxsize=1)
def _right(stage: OperationContext, paths: tuple[FieldPath, ...]) -> list[Document]:
    return [parts(document, paths) for document in source.documents(stage, stage.rows)]

"""Choose between the C and the Python code that splits documents into columns (shredder), and define the result that
both return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from libraries.document_store import kernels, messagepack
from libraries.document_store.errors import DocumentError
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import native, reference
from libraries.document_store.shredding.columns import Column


@dataclass(frozen=True, slots=True)
class Shredded:
    """Records as columns."""

    schema: Schema
    """The given schema, extended by the paths and types of the records."""
    columns: list[Column]
    """One column for each leaf of the schema, by number."""
    count: int
    """Number of records."""


def shred(rows: Sequence[bytes], schema: Schema, *, use_native: bool | None = None) -> Shredded:
    """Convert rows (whole documents as MessagePack) to columns. `use_native` selects C or Python; by default, C is used
    if it was built.

    Raises DocumentError for a row that cannot be stored. The error names the row's position in `rows` and the path.
    """
    if kernels.NATIVE if use_native is None else use_native:
        found = native.shred(rows, schema)
        if isinstance(found, int):
            raise _refused(rows, schema, found)
        return Shredded(*found, len(rows))
    documents = _documents(rows, schema)
    larger = reference.infer(documents, schema)
    shredder = reference.Shredder(larger)
    for document in documents:
        shredder.add(document)
    return Shredded(larger, shredder.columns(), len(rows))


def infer(rows: Sequence[bytes], schema: Schema, *, use_native: bool | None = None) -> Schema:
    """Return the schema that `shred` returns, without the columns. Raises the same errors."""
    if kernels.NATIVE if use_native is None else use_native:
        found = native.infer(rows, schema)
        if isinstance(found, int):
            raise _refused(rows, schema, found)
        return found
    return reference.infer(_documents(rows, schema), schema)


def _documents(rows: Sequence[bytes], schema: Schema) -> list[dict[str, Any]]:
    messagepack.check_rows(rows, schema.key, schema.nodes[1].kind)
    return [messagepack.decode(row) for row in rows]


def _refused(rows: Sequence[bytes], schema: Schema, number: int) -> DocumentError:
    try:
        messagepack.check_rows(rows[: number + 1], schema.key, schema.nodes[1].kind)
    except DocumentError as error:
        return error
    return DocumentError("cannot be shredded", number)

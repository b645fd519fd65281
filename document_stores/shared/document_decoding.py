"""Decoding documents from a store that returns a JSON text for each document, or for each requested field of a
document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.document_store import Document, FieldPath
from document_stores.shared import document_encoding


def whole(rows: Sequence[tuple[str]]) -> list[Document]:
    """Return the document of each row. The only value of a row is the document's JSON text."""
    return document_encoding.values_of("\n".join(text for (text,) in rows).encode())


def assembled(rows: Sequence[tuple[Any, ...]], paths: Sequence[FieldPath]) -> list[Document]:
    """Return documents assembled from their fields. A row has the JSON text of the field at each path in `paths`, or
    None if the document has no such field."""
    documents: list[Document] = [{} for _ in rows]
    for path, column in zip(paths, zip(*rows, strict=True), strict=True):
        there = [(document, text) for document, text in zip(documents, column, strict=True) if text is not None]
        values = document_encoding.values_of("\n".join(text for _, text in there).encode())
        for (document, _), value in zip(there, values, strict=True):
            inner = document
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
            inner[path[-1]] = value
    return documents

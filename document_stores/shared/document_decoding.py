"""Decode documents from a store that returns JSON texts: one for each document, or one for each of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.document_store import Document, FieldPath
from document_stores.shared import document_encoding


def whole(rows: Sequence[tuple[str]]) -> list[Document]:
    """Decode the only text of each row."""
    return document_encoding.values_of("\n".join(text for (text,) in rows).encode())


def assembled(rows: Sequence[tuple[Any, ...]], paths: Sequence[FieldPath]) -> list[Document]:
    """Assemble documents from the texts of their parts, in the order of `paths`; None means missing."""
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

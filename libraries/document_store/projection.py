"""Parts of documents: what lies at some paths, read from columns where there are columns.

A path here is made of fields alone: arrays are not entered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from libraries.document_queries.paths import Path
from libraries.document_store.assembly import assemble_rows
from libraries.document_store.messagepack import decode
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import Column


class ProjectedPart(Protocol):
    """What is needed of a snapshot's part."""

    @property
    def count(self) -> int:
        """Documents."""

    @property
    def schema(self) -> Schema:
        """Of its columns."""

    @property
    def columnar(self) -> bool:
        """Whether columns are stored."""

    def rows(self) -> list[bytes]:
        """The documents as MessagePack."""

    def columns(self, leaf_numbers: Iterable[int]) -> dict[int, Column]:
        """Those columns."""


def documents_under(part: ProjectedPart, paths: Sequence[Path]) -> list[dict[str, Any]]:
    """For each document of the part what these paths reach, as `cut` has it."""
    # One document at a time: thousands of them would keep the collector of garbage busy.
    rows = rows_under(part, paths) if part.columnar else part.rows()
    return [cut(decode(row), paths) for row in rows]


def rows_under(part: ProjectedPart, paths: Sequence[Path]) -> list[bytes]:
    """For each document of a columnar part what these paths reach, and perhaps some of what lies around it, as
    MessagePack."""
    schema = part.schema
    numbers = {leaf.number for path in paths for leaf in schema.leaves_under(path)}
    return assemble_rows(schema, part.columns(sorted(numbers)), part.count, paths)


def cut(document: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """What these paths reach, in objects like those around it; what one does not reach leaves nothing behind."""
    found: dict[str, Any] = {}
    for path in paths:
        value: Any = document
        for name in path:
            if not isinstance(value, dict) or name not in value:
                break
            value = value[name]
        else:
            _put(found, path, value)
    return found


def _put(found: dict[str, Any], path: Path, value: Any) -> None:
    inner: Any = found
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value

"""Return parts of documents: the values under some paths. The values are read from columns if the layout has columns.

Paths consist of fields only, so arrays are not entered.
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
    """One part of a snapshot, with the members that projections need."""

    @property
    def count(self) -> int:
        """Number of documents."""

    @property
    def schema(self) -> Schema:
        """Schema of the part's columns."""

    @property
    def columnar(self) -> bool:
        """Whether columns are stored."""

    def rows(self) -> list[bytes]:
        """Return the documents as MessagePack."""

    def columns(self, leaf_numbers: Iterable[int]) -> dict[int, Column]:
        """Return the columns of these schema leaves."""


def documents_under(part: ProjectedPart, paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return for each document of the part the values at these paths, inside their enclosing objects (see `cut`)."""
    # Decode one document at a time, because thousands of documents would slow down the garbage collector.
    rows = rows_under(part, paths) if part.columnar else part.rows()
    return [cut(decode(row), paths) for row in rows]


def rows_under(part: ProjectedPart, paths: Sequence[Path]) -> list[bytes]:
    """Return for each document of a columnar part the values at these paths, as MessagePack. A row may contain other
    values too."""
    schema = part.schema
    numbers = {leaf.number for path in paths for leaf in schema.leaves_under(path)}
    return assemble_rows(schema, part.columns(sorted(numbers)), part.count, paths)


def cut(document: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """Return the values at these paths, inside their enclosing objects. A path without a value adds nothing."""
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

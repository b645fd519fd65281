"""Find the values at one path in many documents, without decoding whole documents where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from libraries.document_queries.paths import ITEMS, Path


class Finder:
    """Finds the values at a path in a document: at most one value, or any number if the path has `[*]`."""

    def __init__(self, path: Path) -> None:
        """`path` has at least one step; the first step is a field."""
        self.path = path
        fields = next((place for place, step in enumerate(path) if step is ITEMS), len(path))
        self._rest = path[fields:]
        self._names = [str(step) for step in path[:fields]]
        self._decoder = _decoder_of(self._names)

    def in_rows(self, rows: Sequence[bytes]) -> list[list[Any]]:
        """Return for each row the values at the path."""
        return [self._in_row(row) for row in rows]

    def _in_row(self, row: bytes) -> list[Any]:
        if self._decoder is None:
            return values_at(msgspec.msgpack.decode(row), self.path)
        try:
            found = self._decoder.decode(row)
            for _ in self._names:
                found = found.field
                if found is msgspec.UNSET:
                    return []
        except msgspec.ValidationError:
            # A field on the path is not an object in this document.
            return values_at(msgspec.msgpack.decode(row), self.path)
        return values_at(found, self._rest)


def _decoder_of(names: Sequence[str]) -> msgspec.msgpack.Decoder[Any] | None:
    """Return a decoder for nested objects with only these fields. Return None if msgspec does not allow one of the
    names as field of a struct."""
    kind: Any = Any
    try:
        for name in reversed(names):
            kind = msgspec.defstruct("Step", [("field", kind, msgspec.UNSET)], rename={"field": name})
    except ValueError:
        return None
    return msgspec.msgpack.Decoder(kind)


def values_at(value: Any, steps: Sequence[Any]) -> list[Any]:
    """Return the values within `value` that the steps lead to, in order."""
    found = [value]
    for step in steps:
        if step is ITEMS:
            found = [item for some in found if isinstance(some, list) for item in some]
        else:
            found = [some[step] for some in found if isinstance(some, dict) and step in some]
    return found

"""The paths at which a store has dropped nulls or empty objects. A value that is missing at any other path was missing
in the original document, too."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from adapters.document_store import FieldPath
from adapters.errors import AdapterError
from document_stores.shared import document_encoding

MOST_PATHS = 1_000
"""Maximum number of paths that are recorded. If there are more, every path counts as recorded."""

_MAY_BE_DROPPED = re.compile(rb":\s*(?:null|\{\s*\})")
"""Pattern of JSON text in which a field may be null or an empty object. Texts may contain the same letters."""


class DroppedPaths:
    """Records the paths at which a store drops nulls and empty objects. Paths into arrays are not recorded."""

    def __init__(self) -> None:
        """Create an object without any recorded path."""
        self._nulls: set[FieldPath] = set()
        self._empty: set[FieldPath] = set()

    @classmethod
    def of_json(cls, text: str) -> DroppedPaths:
        """Return the paths in a text that the method `json` returned earlier. Raises AdapterError for another text."""
        found = cls()
        try:
            nulls, empty = msgspec.json.decode(text, type=tuple[set[FieldPath], set[FieldPath]])
        except msgspec.MsgspecError as error:
            raise AdapterError(
                f"the store's list of fields with dropped nulls or empty objects cannot be read ({error})"
            ) from None
        found._nulls, found._empty = nulls, empty
        return found

    def json(self) -> str:
        """Return the paths as JSON text. If there are more than MOST_PATHS, the text has only the first of them."""
        return msgspec.json.encode([sorted(paths)[: MOST_PATHS + 1] for paths in (self._nulls, self._empty)]).decode()

    def add(self, lines: bytes) -> None:
        """Record the paths of nulls and of empty objects in JSON Lines. Raises RefusedData for a line that is not a
        JSON object."""
        if not self._are_too_many() and _MAY_BE_DROPPED.search(lines):
            for document in document_encoding.parsed(lines):
                self._add(document, ())

    def _add(self, value: Any, path: FieldPath) -> bool:
        """Record the paths in a value, and return whether the value itself is dropped."""
        if value is None:
            self._nulls.add(path)
            return True
        if not isinstance(value, dict):
            return False
        # An object is dropped if all its fields are dropped.
        kept = [name for name, inner in value.items() if not self._add(inner, (*path, name))]
        if not kept and path:
            self._empty.add(path)
        return not kept

    def _are_too_many(self) -> bool:
        return len(self._nulls) + len(self._empty) > MOST_PATHS

    def hides_null(self, path: FieldPath) -> bool:
        """Return whether a missing value at this path may have been a null or an empty object."""
        return path in self._nulls or self.hides_empty(path)

    def hides_empty(self, path: FieldPath) -> bool:
        """Return whether a missing value at this path may have been an empty object."""
        return path in self._empty or self._are_too_many()

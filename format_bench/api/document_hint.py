"""Whether a user's JSON Lines file looks like documents: a hint, told by its first lines.

Nothing is checked here, and nothing is refused: what cannot be read says nothing, and the import tells why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENDINGS = (".jsonl", ".ndjson")
LOOKED_AT_BYTES = 64 * 1024
"""Of the start of the file."""
_KINDS = {bool: "true or false", int: "number", float: "number", str: "text", list: "array"}


def document_hint(file: Path) -> str | None:
    """What no table has: a field that holds an object, or an array with an object in it ("'user' nests"), or one whose
    kind changes ("'size' is number here and text there"). None where no line looked at shows either, or the file's
    name does not say JSON Lines."""
    if file.suffix.lower() not in ENDINGS:
        return None
    try:
        with file.open("rb") as opened:
            lines = opened.read(LOOKED_AT_BYTES).split(b"\n")
    except OSError:
        return None
    kinds: dict[str, str] = {}
    for field, value in (field for line in lines for field in _fields(line)):
        if _holds_object(value):
            return f"{field!r} nests"
        kind = _KINDS.get(type(value))
        if kind is not None and kinds.setdefault(field, kind) != kind:
            return f"{field!r} is {kinds[field]} here and {kind} there"
    return None


def _fields(line: bytes) -> list[tuple[str, Any]]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        # The last line is cut, as a rule.
        return []
    return list(document.items()) if isinstance(document, dict) else []


def _holds_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))

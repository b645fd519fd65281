"""Guess from the first lines whether a user's JSON Lines file holds documents rather than table rows.

The result is only a hint. Lines that are not valid JSON are skipped, because reading the file later reports them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENDINGS = (".jsonl", ".ndjson")
LOOKED_AT_BYTES = 64 * 1024
"""Bytes read from the start of the file."""
_KINDS = {bool: "true or false", int: "number", float: "number", str: "text", list: "array"}


def document_hint(file: Path) -> str | None:
    """Return why the file seems to hold documents, such as "'user' holds objects"; None if nothing suggests documents.

    Documents are suggested by a field with an object or an array of objects, or by a field whose kind of value changes
    between lines ("'size' is number in one line and text in another"). Return None for a file without the suffix of
    JSON Lines.
    """
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
            return f"{field!r} holds objects"
        kind = _KINDS.get(type(value))
        if kind is not None and kinds.setdefault(field, kind) != kind:
            return f"{field!r} is {kinds[field]} in one line and {kind} in another"
    return None


def _fields(line: bytes) -> list[tuple[str, Any]]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        # This is usually the last line, because only the first LOOKED_AT_BYTES were read.
        return []
    return list(document.items()) if isinstance(document, dict) else []


def _holds_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))

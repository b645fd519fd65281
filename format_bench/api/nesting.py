"""Whether a user's JSON Lines file looks like documents: a hint, told by its first lines.

Nothing is checked here, and nothing is refused: what cannot be read says nothing, and the import tells why.
"""

from __future__ import annotations

import json
from pathlib import Path

ENDINGS = (".jsonl", ".ndjson")
LOOKED_AT_BYTES = 64 * 1024
"""Of the start of the file."""


def nesting_field(file: Path) -> str | None:
    """The first field that holds an object, or an array with an object in it; None where no line has one, or the
    file's name does not say JSON Lines."""
    if file.suffix.lower() not in ENDINGS:
        return None
    try:
        with file.open("rb") as opened:
            lines = opened.read(LOOKED_AT_BYTES).split(b"\n")
    except OSError:
        return None
    return next((field for line in lines if (field := _nests(line))), None)


def _nests(line: bytes) -> str | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        # The last line is cut, as a rule.
        return None
    if not isinstance(document, dict):
        return None
    return next((name for name, value in document.items() if _holds_object(value)), None)


def _holds_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))

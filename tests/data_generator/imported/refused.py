"""The messages of processes that refuse a user's file."""

from __future__ import annotations

import json
from collections.abc import Iterable

from data_generator.imported.import_process import REFUSAL


def two_lines(answered: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the reason and the next step from answers that end with a refusal."""
    *_, (kind, content) = answered
    assert kind == REFUSAL, "it is taken"
    said = json.loads(content)
    text = f"{said['where']}: {said['reason']}\n  {said['step']}"
    assert text.count("\n") == 1
    assert text.replace("\n", "").isprintable()
    return text

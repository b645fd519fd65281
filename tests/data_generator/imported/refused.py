"""What the processes that open users' files say of one that they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterable

from data_generator.imported.import_process import REFUSAL


def two_lines(answered: Iterable[tuple[bytes, bytes]]) -> str:
    """The reason and the next step, of answers that end with a refusal."""
    *_, (kind, content) = answered
    assert kind == REFUSAL, "it is taken"
    said = json.loads(content)
    text = f"{said['where']}: {said['reason']}\n  {said['step']}"
    assert text.count("\n") == 1
    assert text.replace("\n", "").isprintable()
    return text

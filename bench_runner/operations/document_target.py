"""The target of documents: JSON Lines are in hand before a save, a list of dicts is wanted back.

docs/target.md says the same to the reader. Nothing here knows which data set it is, nor which store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa

from data_generator.documents import lines_of

PIECE_BYTES = 1_000_000
"""Documents are handed over in pieces of about so much JSON text: what a program holds that receives them."""


@dataclass(frozen=True)
class Documents:
    """What came back: documents, or rows of an answer. They are Python objects in private memory, each its own."""

    rows: list[Any]

    @cached_property
    def nbytes(self) -> int:
        """What they take as JSON text; asked for after the clock alone."""
        return len(msgspec.json.encode(self.rows))


@dataclass(frozen=True)
class Text:
    """What raw I/O gives: JSON Lines of which nobody has made documents."""

    text: bytes


def make(table: pa.Table) -> list[bytes]:
    """What is in hand before a save: JSON Lines in pieces. Outside the clock; each piece has memory of its own."""
    return list(pieces(lines_of(table), PIECE_BYTES))


def pieces(lines: list[bytes], piece_bytes: int) -> Iterator[bytes]:
    """The lines together, as many at a time as make about so many bytes."""
    held: list[bytes] = []
    held_bytes = 0
    for line in lines:
        held.append(line)
        held_bytes += len(line)
        if held_bytes >= piece_bytes:
            yield b"".join(held)
            held, held_bytes = [], 0
    if held:
        yield b"".join(held)

"""A stream of calls to a document store: new documents, mixed with upserts and deletes of earlier documents.

Each upsert or delete changes one of the documents that were new in earlier calls. It is chosen at random, all with the
same probability, as in Alkowaileet and Carey (VLDB 2022, section 6.3). The stream is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from data_generator.generated import streams

Key = int | str

_VERSION = 1
_DECODER = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True)
class Call:
    """The changes that a document store gets in one call: documents to upsert, as JSON Lines, and keys to delete.

    No key occurs twice in a call.
    """

    upserts: bytes
    deletes: tuple[Key, ...]


def calls(lines: Iterable[bytes], key: str, updates: float, call_bytes: int = 1_000_000) -> Iterator[Call]:
    """Yield the documents (JSON texts with line ends), divided into calls of about `call_bytes` bytes.

    For each new document there are on average `updates` (0 to 1) changes to documents of earlier calls. Half of these
    changes are upserts, and half are deletes. The first calls have slightly fewer changes, because no call changes a
    document twice. An upsert has the key of an earlier document and the content of a new document. An upsert may choose
    a deleted key, which then exists again. Keys are kept in memory; documents are not. Raises ValueError for `updates`
    outside 0 to 1.
    """
    if not 0 <= updates <= 1:
        raise ValueError(f"updates must be a share from 0 to 1 (got {updates}).")
    earlier: list[Key] = []
    for number, together in enumerate(_together(lines, call_bytes)):
        if not updates:
            yield Call(b"".join(together), ())
            continue
        parsed = [_DECODER.decode(line) for line in together]
        upserts, deletes = _changes(parsed, key, updates, earlier, number)
        yield Call(b"".join([*together, *upserts]), deletes)
        earlier.extend(document[key] for document in parsed)


def _together(lines: Iterable[bytes], call_bytes: int) -> Iterator[list[bytes]]:
    held: list[bytes] = []
    held_bytes = 0
    for line in lines:
        held.append(line)
        held_bytes += len(line)
        if held_bytes >= call_bytes:
            yield held
            held, held_bytes = [], 0
    if held:
        yield held


def _changes(
    parsed: list[dict[str, Any]], key: str, updates: float, earlier: list[Key], number: int
) -> tuple[list[bytes], tuple[Key, ...]]:
    """Return the upserts (JSON lines) and the keys to delete of call `number`. All of them change documents of earlier
    calls."""
    if not earlier:
        return [], ()
    count = len(parsed)
    words = streams.raw_words(3 * count, "updates", _VERSION, number).reshape(3, count)
    happens = streams.unit_floats(words[0]) < updates
    places = (streams.unit_floats(words[1]) * len(earlier)).astype("int64")
    chosen = dict.fromkeys(earlier[place] for place in places[happens].tolist())
    deleted = (words[2] >> 63).astype(bool).tolist()
    lines: list[bytes] = []
    deletes: list[Key] = []
    for place, changed in enumerate(chosen):
        if deleted[place]:
            deletes.append(changed)
        else:
            lines.append(msgspec.json.encode({**parsed[place], key: changed}) + b"\n")
    return lines, tuple(deletes)

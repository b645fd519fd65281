"""The process that opens the user's documents.

    python -m data_generator.imported.documents.document_import PARENT MEMORY_BYTES PROGRESS

It takes a sample of JSON Lines, checks each line of the sample, and answers as described in
data_generator.imported.import_process, where a letter is a kind of
message. The additional letters are:

p  number of documents seen so far, as JSON
n  facts, as JSON: `input_rows`, `rows` and `blocks` of the sample, `key`, and `numbered`, which is whether line
   numbers are added as keys
b  documents of the sample, as lines with their ends

This module does not depend on caches or data sets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from data_generator.imported import byte_stream
from data_generator.imported.byte_stream import ByteStream, Line
from data_generator.imported.documents import line_check
from data_generator.imported.import_process import Progress, Reader, Task, opened, serve
from data_generator.imported.refusal import Refused
from data_generator.imported.tables import sampling
from data_generator.imported.tables.json_lines.records import is_over_lines

ROWS, FACTS, BATCH = b"p", b"n", b"b"

USUAL_KEY = "id"
"""Default key field. If documents lack this field, it is added as the first field of each, and contains the line
number."""


def frames(task: Task, progress: Progress) -> Iterator[tuple[bytes, Any]]:
    """Yield (letter, content) for each message of the answer to a task, except the final message.

    The task has `path`, `files`, `rows` and `key`. Raises Refused for a file that is not JSON Lines, and for documents
    that are invalid or repeat a key.
    """
    (file,) = task["files"]
    progress.at(task["path"])
    with opened(file["path"]) as stream:
        documents = _Documents(stream, task["path"], file["size_bytes"], progress)
        documents.check_beginning()
        input_rows = 0
        first = None
        for lines in documents.parts():
            first = first or next(iter(lines), None)
            input_rows += len(lines)
            yield ROWS, json.dumps(input_rows).encode()
        if first is None:
            raise Refused("holds no documents", "Name a file with one JSON object per line.", task["path"])
        blocks = sampling.blocks(input_rows, task["rows"])
        numbered = not task["key"] and not _has_usual_key(first, task["path"])
        rows = sum(block.rows for block in blocks)
        facts = {
            "input_rows": input_rows,
            "rows": rows,
            "blocks": len(blocks),
            "key": task["key"] or USUAL_KEY,
            "numbered": numbered,
        }
        yield FACTS, json.dumps(facts).encode()
        yield from _sample(documents, task, blocks, numbered)


def _has_usual_key(first: Line, path: str) -> bool:
    try:
        return line_check.has_field(first.content, USUAL_KEY)
    except Refused as refused:
        raise _at(refused, path, first.number) from None


def _at(refused: Refused, path: str, number: int) -> Refused:
    return Refused(refused.reason, refused.step, f"{path}, line {number:,}")


@dataclass(frozen=True)
class _Documents:
    """The file with the documents. `path` is the name of the file in messages."""

    stream: IO[bytes]
    path: str
    size_bytes: int
    progress: Progress

    def check_beginning(self) -> None:
        """Raise Refused unless the file has one object per line."""
        byte_stream.check_packing(self.path, os.pread(self.stream.fileno(), 16, 0))
        beginning = byte_stream.first_bytes(self._content()).decode("utf-8", "replace")
        if beginning.lstrip().startswith("["):
            raise Refused(
                "begins with '[': it is one JSON array, not one object per line (JSON Lines)",
                "Convert it: jq -c '.[]' FILE > NEW",
                f"{self.path}, line 1",
            )
        if is_over_lines(beginning):
            raise Refused(
                "begins with an object over several lines, not one object per line (JSON Lines)",
                "Convert it: jq -c . FILE > NEW",
                f"{self.path}, line 1",
            )

    def _content(self) -> ByteStream:
        return ByteStream(self.stream.fileno(), self.path, self.size_bytes)

    def parts(self) -> Iterator[list[Line]]:
        """Yield the lines of the file that are not blank, block by block. Raises Refused for a line that is too
        long."""
        content = self._content()
        for lines in content.lines():
            yield [Line(number, line.strip()) for number, line in lines]
            self.progress.at(f"{self.path}, line {content.newlines + 1:,}")


def _sample(
    documents: _Documents, task: Task, blocks: Sequence[sampling.Block], numbered: bool
) -> Iterator[tuple[bytes, Any]]:
    """Check the documents of the sample and yield messages with them."""
    seen: dict[line_check.Key, int] = {}
    row = 0
    for lines in documents.parts():
        chosen = [line for part in sampling.overlaps(blocks, row, len(lines)) for line in lines[part.start : part.end]]
        if chosen:
            taken = [_taken(line, task, seen, numbered) for line in chosen]
            yield BATCH, b"\n".join([*taken, b""])
        row += len(lines)
    if row < blocks[-1].end:
        raise Refused("changed while it was read", "Try again.", task["path"])


def _taken(line: Line, task: Task, seen: dict[line_check.Key, int], numbered: bool) -> bytes:
    """Return the document in the form in which it is stored, with a number as key if `numbered`.

    `seen` has the keys so far. Raises Refused, naming the line, for an invalid document or a repeated key.
    """
    try:
        if numbered:
            return _numbered(line)
        key = line_check.key_of(line.content, task["key"] or USUAL_KEY)
        before = next(iter(seen.values()), line.number)
        if type(key) is not type(next(iter(seen), key)):
            given = "an integer" if isinstance(key, int) else "a text"
            raise Refused(f"its key is {given}, unlike the key of line {before:,}", "Set `key` to another field.")
        if seen.setdefault(key, line.number) != line.number:
            raise Refused(
                f"repeats the key {str(key)[:60]!r} of line {seen[key]:,}",
                "Set `key` to a field with a different value in each document.",
            )
    except Refused as refused:
        raise _at(refused, task["path"], line.number) from None
    return line.content


def _numbered(line: Line) -> bytes:
    if line_check.has_field(line.content, USUAL_KEY):
        raise Refused(
            f"has a field {USUAL_KEY!r}, which other documents lack", "Set `key` to a field that all documents have."
        )
    inside = line.content[1:].lstrip()
    return b'{"%s":%d%s%s' % (USUAL_KEY.encode(), line.number, b"" if inside == b"}" else b",", inside)


READER = Reader(frames, install={}, smaller="Request fewer documents by `rows`, or name a part of the file.")

if __name__ == "__main__":
    serve(READER)

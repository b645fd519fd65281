"""The same batches through the kernels repeatedly: the memory of the process must not grow.

`python -m libraries.document_store.tests.leaks 3000 [FUNCTION ...]` prints the minimum growth of resident memory in
each third of that many calls, one line per kind of call, for valid and broken batches. Pools grow once; a leak grows in
every third. Named C functions are not called: what they would have freed is lost and must be detected.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import cycle, islice

import numpy as np
import psutil

from libraries.document_store import json_text, kernels, messagepack
from libraries.document_store.assembly import assemble_rows
from libraries.document_store.encodings import decode_coded, decode_column, encode_column
from libraries.document_store.errors import CorruptError, DocumentError
from libraries.document_store.layouts.vector_rows import VectorRows
from libraries.document_store.record_selection import take_of
from libraries.document_store.shredding import Column, infer, shred
from libraries.document_store.tests.fuzzing import COLUMNS, EMPTY, JSON, ROWS, SCHEMA, mutated

BROKEN = 20
"""Different broken batches of a kind, because kernels stop at different places."""

Call = Callable[[], object]


class Without:
    """The library with some functions that do nothing."""

    def __init__(self, library: ctypes.CDLL, lost: Sequence[str]) -> None:
        self._library, self._lost = library, lost

    def __getattr__(self, name: str) -> object:
        found = getattr(self._library, name)
        return (lambda *arguments: None) if name in self._lost else found


def kinds() -> Iterator[tuple[str, Sequence[Call]]]:
    """Yield the batches of each kind of call."""
    dice = random.Random(5)
    vector = VectorRows(sorted({node.name for node in SCHEMA.nodes if isinstance(node.name, str)}))
    compacted = vector.encode(ROWS)
    # One column per kind of leaf.
    columns = list({column.leaf.kind: column for column in COLUMNS}.values())
    chunks = [(column, encode_column(column)) for column in columns]
    by_number = {column.leaf.number: column for column in COLUMNS}
    places = np.arange(len(ROWS))[::-1].copy()

    def broken_rows() -> list[bytes]:
        return [*ROWS, mutated(dice.choice(ROWS), dice)]

    def with_broken(column: Column) -> dict[int, Column]:
        return by_number | {column.leaf.number: replace(column, levels=column.levels[: len(column.levels) // 2])}

    broken = [mutated(data, dice) for _, data in chunks for _ in range(3)]
    yield "rows checked", [partial(messagepack.check_rows, ROWS, "id")]
    yield "broken rows checked", [partial(messagepack.check_rows, broken_rows()) for _ in range(BROKEN)]
    yield "rows shredded", [partial(shred, ROWS, EMPTY), partial(infer, ROWS, EMPTY)]
    yield "broken rows shredded", [partial(shred, broken_rows(), EMPTY) for _ in range(BROKEN)]
    yield "JSON parsed", [partial(json_text.rows_of, JSON)]
    yield "broken JSON parsed", [partial(json_text.rows_of, mutated(JSON, dice)) for _ in range(BROKEN)]
    yield "columns encoded", [partial(encode_column, column) for column in columns]
    yield (
        "columns decoded",
        [partial(decode, column.leaf, data) for column, data in chunks for decode in (decode_column, decode_coded)],
    )
    yield (
        "broken columns decoded",
        [
            partial(decode, column.leaf, data)
            for (column, _), data in zip(np.repeat(np.array(chunks, object), 3, axis=0), broken, strict=True)
            for decode in (decode_column, decode_coded)
        ],
    )
    yield "records taken", [partial(take_of, [column, column], places) for column in columns]
    yield "records that do not exist", [partial(take_of, [column], places + 9) for column in columns]
    yield "rows assembled", [partial(assemble_rows, SCHEMA, by_number, len(ROWS))]
    yield (
        "broken columns assembled",
        [partial(assemble_rows, SCHEMA, with_broken(column), len(ROWS)) for column in columns],
    )
    yield "rows compacted", [partial(vector.encode, ROWS), partial(vector.decode, compacted)]
    yield "broken rows expanded", [partial(vector.decode, [mutated(row, dice) for row in compacted]) for _ in range(9)]


def repeat(calls: Sequence[Call], times: int) -> None:
    """Run each in turn; broken batches are refused."""
    for call in islice(cycle(calls), times):
        with suppress(DocumentError, CorruptError):
            call()


def main(times: int, *lost: str) -> None:
    if lost:
        kernels.library = Without(kernels.loaded(), lost)  # type: ignore[assignment]
    process = psutil.Process()
    for name, calls in kinds():
        repeat(calls, times // 4)
        grown = []
        for _ in range(3):
            before = process.memory_info().rss
            repeat(calls, times // 3)
            grown.append(process.memory_info().rss - before)
        print(min(grown), name, sep="\t", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])

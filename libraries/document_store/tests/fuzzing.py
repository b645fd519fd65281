"""Deliberately broken rows, JSON, schemas and chunks: each gives the same result as in Python, or an error.

`python -m libraries.document_store.tests.fuzzing 10000` breaks that many of each kind. If gcc is available, the kernels
are built again with its address sanitiser, which ends the process at the first access outside its memory.
"""

from __future__ import annotations

import collections
import ctypes
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from libraries.document_store import json_text, kernels, messagepack
from libraries.document_store.assembly import assemble_rows
from libraries.document_store.encodings import MOST_TEXT_BYTES, MOST_TOKENS, decode_coded, decode_column, encode_column
from libraries.document_store.encodings.chunks import Chunks
from libraries.document_store.encodings.native import decode as decode_natively
from libraries.document_store.errors import CorruptError, DocumentError
from libraries.document_store.record_selection import record_starts, take, take_of
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import CodedColumn, Column, Texts, infer, shred
from libraries.document_store.shredding.columns import KEY
from libraries.document_store.values import ValueKind, same

NUMBERS = (0, 1, 2, 7, 31, 127, 128, 255, 256, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
SANITIZED = "DOCUMENT_STORE_SANITIZED"
"""Names the library to use in the process that this one starts."""
EMPTY = Schema.new("id", ValueKind.INTEGER)
FEW_LEAVES = 6
"""Few, so that broken rows have paths beyond a schema's limit."""

DOCUMENTS: list[dict[str, Any]] = [
    {"id": 1, "a": {"b": [1, None, 2.5, {"c": "x" * 40}], "é": True}, "t": "some text", "n": None, "e": {}, "l": []},
    {"id": -(2**63), "a": [[[1, 2], []], [[3]], None, "mixed"], "t": "some texts", "b": b"\x00\xff" * 9},
    {"id": 300, **{f"field {number}": number * 1_000_003 for number in range(40)}},
    {"id": 7, "walk": [10**6 + number % 7 for number in range(150)], "words": ["same", "sample", "samples"] * 9},
    {"id": 8, "deep": {"er": {"and": {"er": [{"x": 1.5}, {"x": None}, {}]}}}, "t": {"now": "an object"}},
]
DOCUMENTS += [
    # More distinct texts than codes allow, and longer ones than coded decoding allows.
    {"id": 9, "many": [f"text {number * 7_919 % 300}" for number in range(320)], "few": ["a", "b", "a", "a"] * 20},
    {"id": 10, "wide": ["x" * (240 + number) + str(number) for number in range(40)]},
]
ROWS = messagepack.encode_all(DOCUMENTS)
JSON = (
    b'{"id": 1, "a": [1.5e3, -0.0, 12345678901234567890.5, {"b": "\\u00e9\\ud83d\\ude00\\n"}], "c": null}\n\n'
    b'{"id": 2, "long": "' + b"abcdefgh" * 9 + b'", "t": true, "f": false, "e": {}, "n": -9223372036854775808}\n'
)


def mutated(whole: bytes, dice: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        place = dice.randrange(len(data) + 1)
        kind = dice.randrange(6)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << dice.randrange(8)
        elif kind == 1 and place < len(data):
            data[place] = dice.randrange(256)
        elif kind == 2:
            data[place : place + dice.randrange(9)] = b""
        elif kind == 3:
            data[place:place] = data[dice.randrange(len(data) + 1) :][: dice.randrange(1, 9)]
        elif kind == 4:
            size = dice.choice((1, 2, 4))
            data[place : place + size] = (dice.choice(NUMBERS) % (1 << 8 * size)).to_bytes(
                size, dice.choice(("big", "little"))
            )
        else:
            del data[place:]
    return bytes(data)


def outcome(call: Callable[[], Any], refused: type[Exception]) -> Any:
    """Return the result of a call, or the class of the error that is allowed."""
    try:
        return call()
    except refused:
        return refused


def in_both(call: Callable[[bool], Any], refused: type[Exception]) -> list[Any]:
    return [outcome(partial(call, way), refused) for way in (True, False)]


def break_a_row(dice: random.Random) -> str:
    rows = [mutated(dice.choice(ROWS), dice)]

    def checked(native: bool) -> list[bytes]:
        kernels.NATIVE = native
        try:
            messagepack.check_rows(rows, "id", ValueKind.INTEGER)
        finally:
            kernels.NATIVE = True
        return rows

    native, python = in_both(checked, DocumentError)
    assert native == python, (rows, native, python)
    # Keys of unchecked rows may be wrong, but never outside the row.
    outcome(lambda: kernels.keys_of(rows, b"id"), UnicodeDecodeError)
    columns = in_both(lambda way: shred(rows, replace(EMPTY, limit=FEW_LEAVES), use_native=way), DocumentError)
    assert (columns[0] is DocumentError) == (native is DocumentError), rows
    if native is DocumentError:
        assert outcome(lambda: infer(rows, EMPTY), DocumentError) is DocumentError, rows
        return "refused"
    assert all(map(alike, columns[0].columns, columns[1].columns)), rows
    return "taken"


def break_json(dice: random.Random) -> str:
    lines = mutated(JSON, dice)

    def parsed(native: bool) -> list[bytes]:
        kernels.NATIVE = native
        try:
            return json_text.rows_of(lines)
        finally:
            kernels.NATIVE = True

    native, python = in_both(parsed, DocumentError)
    assert native == python, (lines, native, python)
    return "refused" if native is DocumentError else "taken"


def break_a_schema(dice: random.Random) -> str:
    data = mutated(SCHEMA.to_bytes(), dice)
    schema = outcome(lambda: Schema.from_bytes(data), CorruptError)
    if schema is CorruptError:
        return "refused"
    assert Schema.from_bytes(schema.to_bytes()) == schema
    native, python = in_both(lambda way: shred(ROWS, schema, use_native=way), DocumentError)
    assert (native is DocumentError) == (python is DocumentError), data
    if native is DocumentError:
        return "taken, but its rows refused"
    assert native.schema == python.schema
    assert all(map(alike, native.columns, python.columns)), data
    return "taken"


def break_a_chunk(dice: random.Random) -> str:
    column = dice.choice(COLUMNS)
    data = mutated(encode_column(column), dice)
    native, python = in_both(lambda way: decode_column(column.leaf, data, use_native=way), CorruptError)
    coded = outcome(lambda: decode_coded(column.leaf, data), CorruptError)
    chosen = np.flatnonzero([dice.random() < 0.4 for _ in ROWS])
    some, rows = some_records(column, data, chosen)
    if native is CorruptError or python is CorruptError:
        assert native is python is coded, (column.leaf, data, native, python, coded)
        return "refused"
    assert alike(native, python), (column.leaf, data)
    expected = outcome(lambda: take(native, chosen), CorruptError)
    if some is not CorruptError:
        assert alike(some, expected), (column.leaf, data, chosen)
    elif column.leaf.number != KEY:
        assert expected is CorruptError or len(record_starts(native)) - 1 != len(ROWS), (column.leaf, data, chosen)
    if rows is not None:
        parts = {each.leaf.number: take(each, chosen) for each in COLUMNS} | {column.leaf.number: expected}
        wanted = assemble_rows(SCHEMA, parts, len(chosen))
        assert same(*[[messagepack.decode(row) for row in each] for each in (rows, wanted)]), (
            column.leaf,
            data,
            chosen,
        )
    if isinstance(coded, CodedColumn):
        different, has_text = coded.different.tolist(), coded.levels == coded.leaf.max_level
        assert ((coded.codes == len(different)) != has_text).all(), (column.leaf, data)
        texts = [different[code] for code in coded.codes[has_text].tolist()]
        coded = Column(coded.leaf, coded.levels, Texts.of(texts))
    assert alike(native, coded), (column.leaf, data)
    ordinals = np.array([dice.randrange(-1 if dice.random() < 0.1 else 0, len(ROWS)) for _ in range(4)])

    def taken(native: bool) -> Column:
        kernels.NATIVE = native
        try:
            return take_of([column, native_column], ordinals)
        finally:
            kernels.NATIVE = True

    native_column = native
    parts = in_both(taken, CorruptError)
    assert parts[0] is parts[1] or alike(*parts), (column.leaf, data, ordinals)
    broken = {each.leaf.number: each for each in COLUMNS} | {column.leaf.number: native}
    rows, documents = in_both(
        lambda way: [messagepack.decode(row) for row in assemble_rows(SCHEMA, broken, len(ROWS), use_native=way)],
        CorruptError,
    )
    assert rows is documents or same(rows, documents), (column.leaf, data, rows, documents)
    return "taken, but not assembled" if rows is CorruptError else "taken"


def some_records(column: Column, data: bytes, chosen: np.ndarray) -> tuple[Any, list[bytes] | None]:
    """Read some records from a broken chunk: the column, and whole documents."""
    given = (chosen, len(ROWS))
    some = outcome(lambda: decode_natively(column.leaf, data, MOST_TOKENS, MOST_TEXT_BYTES, given), CorruptError)
    if column.leaf.number == KEY:
        return some, None
    chunks = {each.leaf.number: memoryview(encode_column(each)) for each in COLUMNS[1:]}
    chunks[column.leaf.number] = memoryview(data)
    return some, Chunks(len(COLUMNS), chunks).rows(SCHEMA, take(COLUMNS[KEY], chosen), *given)


def alike(first: Column, second: Column) -> bool:
    """Return whether two columns are equal; equal values of the rest may have different MessagePack."""
    lists = [column.values.tolist() for column in (first, second)]
    if first.leaf.kind is ValueKind.REST:
        lists = [[msgspec.msgpack.decode(value) for value in values] for values in lists]
    return first.leaf == second.leaf and np.array_equal(first.levels, second.levels) and same(*lists)


KINDS = (break_a_row, break_json, break_a_schema, break_a_chunk)
_whole = shred(ROWS, EMPTY)
SCHEMA, COLUMNS = _whole.schema, _whole.columns


def counted(count: int, seed: int) -> Iterator[tuple[str, collections.Counter[str]]]:
    """Yield the outcomes of each kind, for `count` mutations each."""
    for kind in KINDS:
        dice = random.Random(f"{seed} {kind.__name__}")
        yield kind.__name__.replace("_", " "), collections.Counter(kind(dice) for _ in range(count))


def sanitized(into: Path) -> dict[str, str] | None:
    """Return the environment of a process with sanitized kernels; None without a suitable gcc."""
    if shutil.which("gcc") is None:
        return None
    asan = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(asan).is_absolute():
        return None
    sources = sorted(kernels.FOLDER.glob("*.c"))
    options = ["-std=c11", "-O1", "-g", "-shared", "-fPIC", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *options, "-o", into / "watched.so", *sources], check=True)
    return os.environ | {
        "LD_PRELOAD": asan,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        SANITIZED: str(into / "watched.so"),
    }


def main(count: int) -> int:
    """Break `count` of each kind; return the exit code."""
    if SANITIZED in os.environ:
        kernels.library, kernels.NATIVE = ctypes.CDLL(os.environ[SANITIZED]), True
        assert kernels.library.ds_version() == kernels.VERSION
    else:
        with tempfile.TemporaryDirectory() as folder:
            environment = sanitized(Path(folder))
            if environment is not None:
                command = [sys.executable, "-m", "libraries.document_store.tests.fuzzing", str(count)]
                return subprocess.run(command, env=environment).returncode
    print(
        "with gcc's address sanitiser" if SANITIZED in os.environ else "without gcc's address sanitiser: gcc not found"
    )
    for kind, outcomes in counted(count, seed=1):
        print(f"{kind}: {', '.join(f'{number} {what}' for what, number in sorted(outcomes.items()))}")
    # Imported here, because earlier imports would keep the other library.
    from libraries.document_store.tests.layouts.fuzzing import fuzz
    from libraries.document_store.tests.store.test_log import break_logs

    refused, read = fuzz(count, seed=1)
    print(f"break a page: {refused} refused, {read} taken")
    print(f"break a log: {break_logs(count, seed=1)} refused or cut, the others taken")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

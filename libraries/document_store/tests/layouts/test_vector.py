"""Compact rows and back: C writes the same bytes as Python, and damaged rows give an error or a document."""

import random
import struct

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_store import kernels
from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts import vector
from libraries.document_store.layouts.vector_rows import VectorRows
from libraries.document_store.tests.random_documents import NAMES, documents

EDGES = [sign * (1 << bits) + off for bits in (5, 7, 8, 15, 16, 31, 32) for sign in (1, -1) for off in (-1, 0, 1)]
WAYS = [False, pytest.param(True, marks=pytest.mark.skipif(not kernels.NATIVE, reason="the kernels are not built"))]
WIDE = {
    "id": 1,
    "integers": [*EDGES, 2**63 - 1, -(2**63)],
    "texts": ["é" * length for length in (0, 15, 16, 127, 128, 40_000)],
    "binaries": [bytes(length) for length in (0, 255, 256, 70_000)],
    "wide": {f"n{number}": number for number in range(300)},
    "long": list(range(70_000)),
    "empty": [{}, []],
}


@settings(max_examples=40, deadline=None)
@given(documents(), st.sets(st.sampled_from((*NAMES, "id"))))
def test_rows_come_back(found, names):
    rows = [msgspec.msgpack.encode(document) for document in found]
    wanted = [vector.encode(row, {name: place for place, name in enumerate(sorted(names))}) for row in rows]
    for native in (False, True) if kernels.NATIVE else (False,):
        vectors = VectorRows(sorted(names), use_native=native)
        compacted = vectors.encode(rows)
        assert vectors.decode(compacted) == rows
        assert compacted == wanted


@pytest.mark.parametrize("native", WAYS)
def test_edges(native):
    odd_double = struct.unpack("<d", b"\1" * 8)[0]
    rows = [msgspec.msgpack.encode(document) for document in (WIDE, nested(64), {"x": odd_double})]
    for names in ((), (*(f"m{number}" for number in range(200)), "n7", "wide", "in")):
        vectors = VectorRows(names, use_native=native)
        assert vectors.decode(vectors.encode(rows)) == rows


def nested(steps):
    value = 1
    for step in range(steps, 0, -1):
        value = {"in": value} if step == 1 or step % 2 == 0 else [value]
    return value


@pytest.mark.parametrize("native", WAYS)
def test_deeper_than_allowed(native):
    too_deep = vector.encode(msgspec.msgpack.encode(nested(65)), {})
    with pytest.raises(CorruptError, match="deep"):
        VectorRows((), use_native=native).decode([too_deep])


def test_compacted_is_smaller():
    row = msgspec.msgpack.encode({"temperature": 7, "place": "north", "reported_by": "a", "at": [1, 2, 3]})
    names = ["temperature", "place", "reported_by", "at"]
    # 4 lengths; 1 + 1 object, 4 values and 1 array's count and 3 items; 4 names; 4 integers; 2 lengths; 6 of text.
    assert len(VectorRows(names).encode([row])[0]) == 4 + 10 + 4 + 4 + 2 + 6


def outcome(vectors, row):
    try:
        (decoded,) = vectors.decode([row])
    except CorruptError:
        return None
    return msgspec.msgpack.decode(decoded)


def test_mutated_rows_end_in_an_error_or_a_document():
    chosen = random.Random(3)
    names = ("id", "a", "b", "c")
    start = {"id": 5, "a": [1, 2.5, None, True, {"b": "text", "x": b"\0\1"}], "c": {"é": -300}, "long name": ["", {}]}
    whole = vector.encode(msgspec.msgpack.encode(start), {name: place for place, name in enumerate(names)})
    ways = [VectorRows(names, use_native=False)]
    if kernels.NATIVE:
        ways.append(VectorRows(names, use_native=True))
    refused = 0
    for _ in range(3000):
        row = bytearray(whole)
        for _ in range(chosen.randrange(1, 4)):
            row[chosen.randrange(len(row))] = chosen.choice([0, 1, 127, 128, 255, chosen.randrange(256)])
        row = bytes(row[: chosen.randrange(len(row)) + 1] if chosen.random() < 0.2 else row)
        found = [outcome(way, row) for way in ways]
        assert all(repr(other) == repr(found[0]) for other in found)
        refused += found[0] is None
    assert 500 < refused < 3000


def test_a_number_that_no_name_has():
    compacted = VectorRows(("id", "a")).encode([msgspec.msgpack.encode({"id": 1, "a": 2})])
    for native in (False, None):
        with pytest.raises(CorruptError):
            VectorRows(("id",), use_native=native).decode(compacted)

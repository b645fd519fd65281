"""The C kernel makes the same chunks, codes and rows for a whole leaf as column by column."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from libraries.document_store import kernels, messagepack
from libraries.document_store.assembly import assemble_rows
from libraries.document_store.encodings import encode_column
from libraries.document_store.encodings.chunks import Chunks
from libraries.document_store.layouts.amax import chunk_of, chunks_of, merged_chunk
from libraries.document_store.record_selection import take, take_of
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import shred
from libraries.document_store.tests.random_documents import documents
from libraries.document_store.values import ValueKind

pytestmark = pytest.mark.skipif(not kernels.NATIVE, reason="python -m libraries.build")
EMPTY = Schema.new("id", ValueKind.INTEGER)
EXTREMES = [
    {"id": 0, "a": -0.0, "b": "", "c": -(2**63), "d": False},
    {"id": 1, "a": float("nan"), "b": "a\0", "c": 2**63 - 1},
    {"id": 2, "a": float("-inf"), "b": "ninebytes", "c": 0, "d": True},
]
ZEROS = [{"id": 0, "a": -0.0}, {"id": 1, "a": -0.0}]
BEGINNINGS = [{"id": number, "a": text} for number, text in enumerate(("ab", "abcd", "abcdef", "abcdefgh", "abx", ""))]


def shredded(found, schema=EMPTY):
    return shred([messagepack.encode(document) for document in found], schema)


def told(chunks):
    return [(chunk.number, bytes(chunk.data), chunk.codes) for chunk in chunks if chunk is not None and chunk.data]


@settings(max_examples=60, deadline=None)
@given(documents())
@example(EXTREMES)
@example(ZEROS)
def test_all_columns_of_a_flush(found):
    whole = shredded(found)
    assert told(chunks_of(whole.schema, whole.columns)) == told(map(chunk_of, whole.columns[1:]))


@settings(max_examples=60, deadline=None)
@given(documents(), documents(), st.randoms(use_true_random=False))
@example(EXTREMES, ZEROS, None)
def test_columns_of_two_leaves_that_are_merged(first, second, dice):
    schema = shredded([*first, *second]).schema
    counts = [len(first), len(second)]
    ordinals = [number for number in range(sum(counts)) if dice is None or dice.random() < 0.7]
    if dice is not None:
        dice.shuffle(ordinals)
    chosen = np.array(ordinals, np.int64)
    parts = shredded(first, schema).columns, shredded(second, schema).columns
    for leaf, *columns in zip(schema.leaves[1:], *(part[1:] for part in parts), strict=True):
        chunks = [memoryview(encode_column(column)) if column.levels.any() else None for column in columns]
        merged = merged_chunk(leaf, chunks, counts, chosen)
        assert merged is not None
        assert told([merged]) == told([chunk_of(take_of(columns, chosen))])


@settings(max_examples=60, deadline=None)
@given(documents(), st.randoms(use_true_random=False))
@example(BEGINNINGS, None)
def test_rows_of_some_records(found, dice):
    whole = shredded(found)
    chunks = {chunk.number: memoryview(chunk.data) for chunk in chunks_of(whole.schema, whole.columns)}
    chosen = np.array([n for n in range(len(found)) if n == 3 or (dice and dice.random() < 0.4)], np.int64)
    keys, *others = [take(column, chosen) for column in whole.columns]
    rows = Chunks(len(whole.columns), chunks).rows(whole.schema, keys, chosen, len(found))
    assert rows == assemble_rows(whole.schema, dict(enumerate([keys, *others])), len(chosen))


def test_a_faulty_chunk_is_left_to_the_decoder_that_explains_it():
    whole = shredded(EXTREMES)
    chunks = {chunk.number: bytes(chunk.data) for chunk in chunks_of(whole.schema, whole.columns)}
    some = np.array([1], np.int64)
    for number, data in chunks.items():
        views = {each: memoryview(chunk) for each, chunk in chunks.items()} | {number: memoryview(data[:-1])}
        keys = take(whole.columns[0], some)
        assert Chunks(len(whole.columns), views).rows(whole.schema, keys, some, len(EXTREMES)) is None
        leaf = whole.schema.leaves[number]
        assert merged_chunk(leaf, [views[number]], [len(EXTREMES)], some) is None
        assert merged_chunk(leaf, [memoryview(data)], [len(EXTREMES) + 1], some) is None

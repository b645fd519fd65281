"""Entries of indexes sort like their values and survive a round trip; files are read only where needed, and checked."""

import math
import random
from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from libraries.document_queries.errors import QueryError
from libraries.document_queries.paths import Path, parse
from libraries.document_store.errors import CorruptError
from libraries.document_store.files import FileReader, written
from libraries.document_store.indexes.entries import encode_value, entries, key_of, ranges
from libraries.document_store.indexes.index_files import ENTRIES_IN_BLOCK, IndexFile, newest, write_index
from libraries.document_store.indexes.path_values import Finder, values_at
from libraries.document_store.messagepack import encode
from libraries.document_store.tests.random_documents import documents
from libraries.document_store.tests.store.model import Disk

integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.one_of(integers, st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, 2.0**53, 2**53 + 1]))
texts = st.text(st.characters(codec="utf-8"), max_size=6)
scalars = st.one_of(numbers, texts, st.binary(max_size=6), st.booleans())


@settings(max_examples=300, deadline=None)
@given(value=scalars, key=st.one_of(integers, texts))
def test_a_key_comes_back(value, key):
    (entry,) = entries([value, value, None, float("nan"), [1], {}], key)
    assert key_of(entry, isinstance(key, str)) == key


@settings(max_examples=500, deadline=None)
@given(value=scalars, low=scalars, high=scalars, key=st.one_of(integers, texts), open_end=st.integers(0, 2))
def test_a_range_has_what_lies_within_and_of_short_values_no_more(value, low, high, key, open_end):
    bounds = (None if open_end == 1 else low, None if open_end == 2 else high)
    try:
        found = ranges(*bounds)
    except QueryError:
        assert open_end == 0
        assert kind(low) != kind(high)
        return
    (entry,) = entries([value], key)
    is_found = any(first <= entry <= last for first, last in found)
    is_within = kind(value) == kind(next(b for b in bounds if b is not None)) and (
        (bounds[0] is None or bounds[0] <= value) and (bounds[1] is None or value <= bounds[1])
    )
    # An integer bound beyond 2**53 is rounded when compared with doubles.
    rounded = isinstance(value, float) and any(type(b) is int and abs(b) > 2**53 for b in bounds)
    assert is_found == is_within or (rounded and is_found)


def kind(value):
    return "number" if type(value) in (int, float) else type(value).__name__


@pytest.mark.parametrize("bound", [2.0, -2.0, -0.0, 1.5, -1.5, 2.0**53, -(2.0**53)])
def test_integers_beside_a_bound_that_is_a_double(bound):
    for value in {math.floor(bound) - 1, math.floor(bound), math.ceil(bound), math.ceil(bound) + 1}:
        (entry,) = entries([value], 1)
        for low, high in ((bound, None), (None, bound), (bound, bound)):
            is_found = any(first <= entry <= last for first, last in ranges(low, high))
            assert is_found == ((low is None or low <= value) and (high is None or value <= high)), (value, low, high)


def test_long_texts_are_found_by_their_beginnings():
    first, second = "x" * 300 + "a", "x" * 300 + "b"
    (bounds,) = ranges(first, first)
    for text in (first, second):
        assert bounds[0] <= entries([text], 1)[0] <= bounds[1]
    assert len(encode_value(first)) < 300


@pytest.mark.parametrize(("low", "high"), [(None, None), (1, "a"), (None, []), (float("nan"), 1), ({}, {})])
def test_bounds_that_mean_nothing_are_refused(low, high):
    with pytest.raises(QueryError, match="an index"):
        ranges(low, high)


@pytest.mark.parametrize(
    "entry", [b"", b"\x02", b"\x04abc", b"\x04abc\0\0", b"\x04a\0\0\xff\xfe\0\0", b"\x01\x01abc\0\0x"]
)
def test_bytes_that_are_no_entry_are_refused(entry):
    with pytest.raises(CorruptError, match="an entry of an index"):
        key_of(entry, text_keys=True)


@settings(max_examples=100, deadline=None)
@given(found=documents(), path=st.sampled_from(["a", "a.b", "b[*]", "b[*].c", "a.b[*][*].c", r"x\.y\[*\]", '"".c']))
def test_values_in_rows_are_those_in_documents(found, path):
    steps = parse(path)
    rows = [encode(document) for document in found]
    assert repr(Finder(steps).in_rows(rows)) == repr([values_at(document, steps) for document in found])


@pytest.mark.parametrize("name", ['a "name"', "a\\b", "a\nb", "it's", "field", ""])
def test_a_field_may_have_any_name(name):
    finder = Finder(Path([name, "b"]))
    assert finder.in_rows([encode({name: {"b": 1}}), encode({name: 2}), encode({"b": 3})]) == [[1], [], []]


def written_index(disk, name, some):
    with written(disk, disk.root / name) as writer:
        write_index(writer, some)
    return IndexFile(FileReader(disk, disk.root / name))


def test_a_file_reads_the_blocks_of_a_range():
    disk = Disk()
    some = [(f"{number:06}".encode(), number % 7 != 0) for number in range(5 * ENTRIES_IN_BLOCK + 3)]
    index = written_index(disk, "index", some)
    assert index.count == len(some)
    assert list(index.all()) == some
    assert list(index.between(b"001500", b"001502")) == some[1500:1503]
    assert list(index.between(b"1", b"2")) == []
    disk.file(disk.root / "index").content[-300] ^= 1
    assert list(index.between(b"000000", b"000002")) == some[:3]


def test_the_newest_word_on_an_entry_counts():
    newer, older = [(b"a", False), (b"b", True)], [(b"a", True), (b"c", False), (b"d", True)]
    assert list(newest([newer, older], drop_removed=False)) == [
        *[(b"a", False), (b"b", True), (b"c", False), (b"d", True)]
    ]
    assert list(newest([newer, older], drop_removed=True)) == [(b"b", True), (b"d", True)]


def test_mutated_files_end_in_their_entries_or_an_error():
    chance = random.Random(1)
    disk = Disk()
    some = [(f"{number:06}".encode(), True) for number in range(3000)]
    written_index(disk, "index", some)
    content = disk.file(disk.root / "index").content
    kept = bytes(content)
    for _ in range(500):
        for _ in range(chance.randint(1, 3)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        if chance.random() < 0.2:
            del content[chance.randrange(len(content)) :]
        with suppress(CorruptError):
            assert list(IndexFile(FileReader(disk, disk.root / "index")).all()) == some
        content[:] = kept

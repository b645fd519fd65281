"""Selected, merged and derived columns equal those of shredding the records."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_store import kernels, messagepack
from libraries.document_store.errors import CorruptError
from libraries.document_store.record_selection import absent, gather, joined, record_starts, stand_in, take, take_of
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import Column, key_column, shred
from libraries.document_store.tests.random_documents import documents
from libraries.document_store.values import ValueKind

EMPTY = Schema.new("id", ValueKind.INTEGER)


BUILT = kernels.NATIVE
both = pytest.mark.parametrize("way", ["both"], indirect=True)
"""For random documents, which take longer to make than to test: a test calls `ways()` itself."""


@pytest.fixture(params=[False, True], ids=["python", "native"], autouse=True)
def way(request, monkeypatch):
    if request.param is True and not BUILT:
        pytest.skip("the kernels are not built: python -m libraries.build")
    monkeypatch.setattr(kernels, "NATIVE", BUILT if request.param == "both" else request.param)


def ways():
    """Set one way after the other; the fixture resets it."""
    for native in (False, True) if BUILT else (False,):
        kernels.NATIVE = native
        yield


def columns_of(found, schema=EMPTY):
    return shred([messagepack.encode(document) for document in found], schema, use_native=False)


def tokens(column):
    return column.levels.tolist(), np.array(column.values.tolist()).tobytes()


@both
@settings(max_examples=40, deadline=None)
@given(documents(), st.data())
def test_some_records(found, data):
    ordinals = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=10)) if found else []
    whole = columns_of(found)
    wanted = columns_of([found[ordinal] for ordinal in ordinals], whole.schema)
    pairs = list(zip(whole.columns, wanted.columns, strict=True))
    for _ in ways():
        for column, expected in pairs:
            assert_taken(column, expected, ordinals, len(found))


def test_neighbours_that_lie_in_two_components():
    """Consecutive records, from inside the first component to inside the second."""
    values = [7, None, [1, 2], "x", {"y": 1.5}]
    parts = [[{"id": 10 * part + number, "a": value} for number, value in enumerate(values)] for part in (0, 1)]
    schema = columns_of([*parts[0], *parts[1]]).schema
    components = [columns_of(part, schema).columns for part in parts]
    wanted = columns_of([*parts[0][3:], *parts[1][:4]], schema).columns
    for first, second, expected in zip(*components, wanted, strict=True):
        assert tokens(take_of([first, second], np.arange(3, 9))) == tokens(expected)


def assert_taken(column, expected, ordinals, count):
    """Check records of one column, and of two that are concatenated."""
    assert len(record_starts(column)) == count + 1
    assert tokens(take(column, np.array(ordinals, np.int64))) == tokens(expected)
    twice = take_of([column, column], np.array([*ordinals, *(one + count for one in ordinals)], np.int64))
    assert tokens(twice) == tokens(joined([expected, expected]))


@both
@settings(max_examples=40, deadline=None)
@given(documents(), documents(), st.data())
def test_runs_of_two_components(first, second, data):
    schema = columns_of(second, columns_of(first).schema).schema
    components = [columns_of(part, schema).columns for part in (first, second)]
    left, runs, kept = [list(first), list(second)], [], []
    while any(left):
        component = data.draw(st.sampled_from([number for number in (0, 1) if left[number]]))
        count = data.draw(st.integers(1, len(left[component])))
        is_copied = data.draw(st.booleans())
        runs.append((component, count if is_copied else ~count))
        kept += left[component][:count] if is_copied else []
        left[component] = left[component][count:]
    runs = np.array(runs, np.int64).reshape(-1, 2)
    expected = columns_of(kept, schema).columns
    for _ in ways():
        for pieces, column in zip(zip(*components, strict=True), expected, strict=True):
            assert tokens(gather(pieces, runs)) == tokens(column)


def test_a_null_beside_a_column_that_came_later_is_none_of_its_own():
    """Neither in the same object nor in one of an array."""
    values = [{"x": 1}, {"x": None}, None, {}, {"z": [None, {"x": None}, {"x": 3}]}]
    first = [{"id": number, "p": value, "q": [value, 7]} for number, value in enumerate(values)]
    for late in ({"y": 2}, {"y": {"x": 2}}, {"z": [{"y": 2}]}, {"x": "text"}):
        assert_stood_in(first, [{"id": 9, "p": late, "q": [late]}])


@both
@settings(max_examples=60, deadline=None)
@given(documents(), documents())
def test_columns_that_came_later(first, second):
    assert_stood_in(first, second)


def assert_stood_in(first, second):
    """Check that columns which only the second documents have get the right tokens for the first ones."""
    early = columns_of(first)
    late = columns_of(second, early.schema).schema
    expected = columns_of(first, late).columns
    for _, leaf in itertools.product(ways(), late.leaves[len(early.columns) :]):
        beside = stand_in(late, leaf, len(early.columns))
        column = absent(leaf, None if beside is None else early.columns[beside.number], len(first), late)
        assert (leaf, tokens(column)) == (leaf, tokens(expected[leaf.number]))


def test_runs_that_ask_for_more_records_than_there_are():
    columns = columns_of([{"id": 0, "a": [1, 2]}, {"id": 1}]).columns
    for column in columns:
        gather([column], np.array([[0, 2]]))
        with pytest.raises(CorruptError, match="too few records"):
            gather([column], np.array([[0, 1], [0, ~2]]))
        with pytest.raises(CorruptError, match="record 2"):
            take(column, np.array([2]))
        with pytest.raises(CorruptError, match="record -1"):
            take(column, np.array([-1]))


def test_an_array_without_its_end():
    column = columns_of([{"id": 0, "a": [1, 2]}]).columns[1]
    with pytest.raises(CorruptError, match="inside an array"):
        record_starts(Column(column.leaf, column.levels[:-1], column.values))
    with pytest.raises(CorruptError, match="inside an array"):
        take(Column(column.leaf, column.levels[:-1], column.values), np.array([0]))
    with pytest.raises(CorruptError, match=r"1 values.* 2$"):
        take(Column(column.leaf, column.levels, column.values[:1]), np.array([0, 0]))


def test_deleted_records_have_keys_alone():
    leaf = EMPTY.leaves[0]
    column = key_column(leaf, [3, 5, 8], np.array([False, True, False]))
    assert column.levels.tolist() == [1, 0, 1]

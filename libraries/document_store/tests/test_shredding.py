"""Documents become columns and documents again, whatever their shape; and the tokens are those of the paper."""

import itertools
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_queries.paths import ITEMS, Path
from libraries.document_queries.values import MAX_DEPTH
from libraries.document_store import kernels, messagepack
from libraries.document_store.assembly import assemble
from libraries.document_store.encodings import decode_column, encode_column
from libraries.document_store.errors import CorruptError, DocumentError
from libraries.document_store.schema import Schema, merged
from libraries.document_store.shredding import Texts, native, shred
from libraries.document_store.tests.random_documents import documents
from libraries.document_store.values import ValueKind, same

EMPTY = Schema.new("id", ValueKind.INTEGER)


BOTH = (False, True) if kernels.NATIVE else (False,)
WAYS = [False, pytest.param(True, marks=pytest.mark.skipif(not kernels.NATIVE, reason="python -m libraries.build"))]


def shredded(found, schema=EMPTY, **options):
    return shred([messagepack.encode(document) for document in found], schema, **options)


def by_number(result):
    return {column.leaf.number: column for column in result.columns}


def levels(result):
    """Return path and kind of each leaf -> its tokens and values."""
    return {
        (str(column.leaf.path), column.leaf.kind.name): (column.levels.tolist(), column.values.tolist())
        for column in result.columns
    }


@settings(max_examples=80, deadline=None)
@given(documents(), st.integers(1, 6))
def test_documents_come_back(found, limit):
    """Including documents with more columns than allowed."""
    whole = shredded(found, use_native=False)
    limited = shredded(found, Schema.new("id", ValueKind.INTEGER, limit), use_native=False)
    assert len(limited.schema.leaves) <= limit + 1
    for result, use_native in itertools.product((whole, limited), BOTH):
        assert same(assemble(result.schema, by_number(result), len(found), use_native=use_native), found)


@pytest.mark.skipif(not kernels.NATIVE, reason="the kernels are not built: python -m libraries.build")
@settings(max_examples=60, deadline=None)
@given(documents(), st.sampled_from([3, 4000]), st.lists(st.integers(0, 40), min_size=1, max_size=3))
def test_both_assemble_the_same_parts(found, limit, numbers):
    result = shredded(found, Schema.new("id", ValueKind.INTEGER, limit))
    paths = [result.schema.paths[number % len(result.schema.paths)] for number in numbers]
    parts = [assemble(result.schema, by_number(result), len(found), paths, use_native=way) for way in (False, True)]
    assert same(*parts)


@settings(max_examples=40, deadline=None)
@given(documents(), documents())
def test_schemas_only_grow(first, second):
    one = shredded(first, use_native=False).schema
    two = shredded(second, one, use_native=False).schema
    assert two.leaves[: len(one.leaves)] == one.leaves
    assert merged(one, two) == merged(two, one) == two
    assert Schema.from_bytes(two.to_bytes()) == two
    assert shredded(first, two, use_native=False).schema == two


@pytest.mark.skipif(not kernels.NATIVE, reason="the kernels are not built: python -m libraries.build")
@settings(max_examples=100, deadline=None)
@given(st.lists(documents(), min_size=1, max_size=3), st.sampled_from([1, 2, 4, 7, 4000]))
def test_c_gives_what_the_reference_gives_token_for_token(batches, limit):
    schema = Schema.new("id", ValueKind.INTEGER, limit)
    for batch in batches:
        expected = shredded(batch, schema, use_native=False)
        found = native.shred([messagepack.encode(document) for document in batch], schema)
        assert not isinstance(found, int)
        assert found[0] == native.infer([messagepack.encode(document) for document in batch], schema) == expected.schema
        for column, wanted in zip(found[1], expected.columns, strict=True):
            assert column.leaf == wanted.leaf
            assert column.levels.tolist() == wanted.levels.tolist()
            assert np.array(column.values.tolist()).tobytes() == np.array(wanted.values.tolist()).tobytes()
        schema = expected.schema


def test_the_gamers_of_the_paper():
    """Figure 3c, and the third record's absent array."""
    result = shredded(
        [
            {"id": 0, "games": [{"title": "NBA", "consoles": ["PC"]}]},
            {
                "id": 1,
                "name": {"first": "John", "last": "Smith"},
                "games": [{"title": "NBA", "consoles": ["PS4", "PC"]}, {"title": "NFL", "consoles": ["PS4"]}],
            },
            {"id": 2},
        ],
        use_native=False,
    )
    assert levels(result) == {
        ("id", "INTEGER"): ([1, 1, 1], [0, 1, 2]),
        ("games[*].title", "TEXT"): ([3, 0, 3, 3, 0, 0], [b"NBA", b"NBA", b"NFL"]),
        ("games[*].consoles[*]", "TEXT"): ([4, 0, 4, 4, 2, 4, 0, 0], [b"PC", b"PS4", b"PC", b"PS4"]),
        ("name.first", "TEXT"): ([0, 2, 0], [b"John"]),
        ("name.last", "TEXT"): ([0, 2, 0], [b"Smith"]),
    }


def test_a_union_has_no_level_of_its_own():
    """Figure 4."""
    result = shredded(
        [{"id": 0, "name": "John"}, {"id": 1, "name": {"first": "Ann", "last": "Brown"}}], use_native=False
    )
    assert levels(result) == {
        ("id", "INTEGER"): ([1, 1], [0, 1]),
        ("name", "TEXT"): ([1, 0], [b"John"]),
        ("name.first", "TEXT"): ([0, 2], [b"Ann"]),
        ("name.last", "TEXT"): ([0, 2], [b"Brown"]),
    }


def test_null_goes_to_all_leaves_below_and_missing_is_not_null():
    result = shredded(
        [{"id": 0, "a": {"b": 1, "c": [2]}}, {"id": 1, "a": None}, {"id": 2}, {"id": 3, "a": {"b": None, "c": []}}],
        use_native=False,
    )
    # 4 is the null flag above levels up to 3 ...
    assert levels(result)["a.b", "INTEGER"] == ([2, 4, 0, 1 | 4], [1])
    # ... and an empty array is its own level, then its delimiter.
    assert levels(result)["a.c[*]", "INTEGER"] == ([3, 1, 4, 0, 2, 1], [2])


@pytest.mark.parametrize("use_native", WAYS)
def test_only_the_parts_under_some_paths(use_native):
    found = [{"id": 0, "a": {"b": 1, "c": "x"}, "d": 2}, {"id": 1, "a": [3, {"b": 4}]}, {"id": 2, "a": None}]
    result = shredded(found, use_native=False)
    some = [Path(("a", "b")), Path(("a", ITEMS, "b"))]
    wanted = {leaf.number for path in some for leaf in result.schema.leaves_under(path)}
    columns = {number: column for number, column in by_number(result).items() if number in wanted}
    parts = assemble(result.schema, columns, 3, some, use_native=use_native)
    assert parts == [{"a": {"b": 1}}, {"a": [{}, {"b": 4}]}, {"a": None}]


@pytest.mark.parametrize("use_native", WAYS)
def test_as_deep_as_documents_go(use_native):
    """Levels up to 64, with the null flag above them, fill a byte."""
    arrays, objects = None, None
    for _ in range(MAX_DEPTH - 1):
        arrays, objects = [arrays], {"o": objects}
    found = [{"id": 0, "a": arrays, "o": objects}, {"id": 1, "a": [], "o": {}}, {"id": 2, "a": None}]
    result = shredded(found, use_native=use_native)
    assert max(leaf.max_level for leaf in result.schema.leaves) == MAX_DEPTH
    columns = {
        number: decode_column(column.leaf, encode_column(column, use_native=use_native), use_native=use_native)
        for number, column in by_number(result).items()
    }
    assert same(assemble(result.schema, columns, len(found), use_native=use_native), found)
    with pytest.raises(DocumentError, match="64 steps"):
        shred([msgspec.msgpack.encode({"id": 0, "a": [arrays]})], EMPTY, use_native=use_native)


@pytest.mark.parametrize("use_native", WAYS)
def test_columns_that_do_not_fit_each_other_are_refused(use_native):
    result = shredded([{"id": 0, "a": {"b": 1, "c": ["x"]}}, {"id": 1, "a": None}], use_native=False)
    columns = by_number(result)
    assert len(assemble(result.schema, columns, 2, use_native=use_native)) == 2
    for count in (1, 3):
        with pytest.raises(CorruptError):
            assemble(result.schema, columns, count, use_native=use_native)
    for number, column in columns.items():
        fewer = replace(column, levels=column.levels[:-1])
        without = replace(column, values=column.values[:-1] if number < 2 else Texts.of([]))
        for broken in (fewer, without, *([replace(column, values=Texts.of([b"\xff"]))] if number == 2 else [])):
            with pytest.raises(CorruptError):
                assemble(result.schema, columns | {number: broken}, 2, use_native=use_native)


@pytest.mark.parametrize(
    ("first", "second"), [({"id": 1}, {"id": "x"}), ({"id": 1}, {"a": 1}), ({"id": 1}, {"id": None}), ({"id": 1.0}, {})]
)
def test_keys_are_of_one_kind(first, second):
    with pytest.raises(DocumentError, match="id"):
        shredded([first, second], use_native=False)

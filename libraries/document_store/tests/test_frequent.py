"""If documents bring more paths than columns, the most frequent ones get the columns; nothing is lost."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_store import messagepack
from libraries.document_store.assembly import assemble
from libraries.document_store.layouts import open_component
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import becomes_full, infer, most_frequent, shred
from libraries.document_store.tests.layouts.components import new_schema, read_back, write
from libraries.document_store.tests.random_documents import documents
from libraries.document_store.values import ValueKind, same

ONCE = 40
"""Documents with one unique field each, before those with the usual fields."""


def stream():
    """Make data used as field names: a new name in each document, and at the end the fields that most have."""
    found = {key: {"id": key, f"n{key}": {"x": key}} for key in range(ONCE)}
    usual = {"in": {"a": 1, "b": ["x"]}, "t": "text"}
    return found | {key: {"id": key, **usual} for key in range(ONCE, 3 * ONCE)}


def paths_of(schema):
    return {str(leaf.path) for leaf in schema.leaves}


@pytest.mark.parametrize("layout", ["amax", "vector"])
def test_the_rarest_paths_share_the_rest_whenever_they_come(layout):
    found = stream()
    file, schema = write(layout, found, new_schema(limit=6))
    assert {"id", "in.a", "in.b[*]", "t"} < paths_of(schema)
    assert schema.rest is not None
    assert len(schema.leaves) == 6 + 1
    assert read_back(open_component(file)) == found


def test_columns_that_are_there_keep_their_numbers_and_later_paths_share_the_rest():
    _, before = write("amax", {1: {"id": 1, "old": 1}}, new_schema(limit=6))
    _, full = write("amax", stream(), before)
    assert full.nodes[: len(before.nodes)] == before.nodes
    file, later = write("amax", {key: {"id": key, "late": key, "old": "text"} for key in range(500)}, full)
    assert later == full
    assert read_back(open_component(file))[7] == {"id": 7, "late": 7, "old": "text"}


def test_a_leaf_that_is_written_decides_for_those_behind_it():
    """Several leaves of one component: columns of the first remain, and the second fills the rest by frequency."""
    found = {key: {"id": key, "first": key} for key in range(10)} | {key + 10: doc for key, doc in stream().items()}
    found = {key: {**document, "id": key} for key, document in found.items()}
    file, schema = write("amax", found, new_schema(limit=6), leaf_records=10)
    assert {"id", "first"} < paths_of(schema)
    assert read_back(open_component(file)) == found


def test_of_equals_the_first_have_the_columns():
    rows = messagepack.encode_all([{"id": 1, **{f"n{number}": number for number in range(9)}}])
    schema = new_schema(limit=4)
    assert becomes_full(schema, infer(rows, schema))
    assert paths_of(most_frequent(rows, schema)) == {"id", "n0", "n1", "n2"}
    assert not becomes_full(new_schema(limit=10), infer(rows, new_schema(limit=10)))


@settings(max_examples=80, deadline=None)
@given(documents(), st.integers(1, 6))
def test_documents_come_back_by_the_chosen_columns(found, limit):
    rows = [msgspec.msgpack.encode(document) for document in found]
    schema = Schema.new("id", ValueKind.INTEGER, limit)
    if not becomes_full(schema, infer(rows, schema)):
        return
    chosen = most_frequent(rows, schema)
    assert len(chosen.leaves) == limit
    assert Schema.from_bytes(chosen.to_bytes()) == chosen
    native, python = shred(rows, chosen), shred(rows, chosen, use_native=False)
    assert native.schema == python.schema
    assert len(native.schema.leaves) == limit + 1
    columns = {column.leaf.number: column for column in native.columns}
    assert same(assemble(native.schema, columns, len(rows)), found)

"""All layouts return what was written: all kinds of values and keys, anti-matter, single records, every codec."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_store.errors import CorruptError
from libraries.document_store.key_filter import hash_keys
from libraries.document_store.layouts import COMPRESSIONS, LAYOUTS, open_component
from libraries.document_store.layouts.layout import PAGE_BYTES
from libraries.document_store.tests.layouts.components import alike, component_of, read_back, write
from libraries.document_store.tests.random_documents import documents


@st.composite
def versions(draw, text_keys=False):
    keys = st.text(max_size=6) if text_keys else st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)
    found = {}
    for document in draw(documents(12)):
        key = draw(keys)
        found[key] = None if draw(st.integers(0, 4)) == 0 else document | {"id": key}
    return found


@pytest.mark.parametrize("text_keys", [False, True])
def test_all_kinds_come_back(text_keys):
    @settings(max_examples=30, deadline=None)
    @given(versions(text_keys), st.sampled_from(COMPRESSIONS), st.integers(1, 5), st.randoms(use_true_random=False))
    def check(wanted, compression, leaf_records, chosen):
        options = {"compression": compression, "leaf_records": leaf_records, "batch": 3}
        some = {key for key in wanted if chosen.random() < 0.5}
        for layout in LAYOUTS:
            comes_back(wanted, some, *write(layout, wanted, text_keys=text_keys, **options))

    check()


def comes_back(wanted, some, file, schema):
    """Check everything that was written, and for each leaf some rows separately."""
    component = open_component(file)
    found = read_back(component)
    assert list(found) == sorted(wanted)
    assert alike(found, {key: wanted[key] for key in sorted(wanted)})
    assert component.info.antimatter_count == sum(document is None for document in wanted.values())
    assert component.schema == schema
    assert component.info.schema == schema
    for number, leaf in enumerate(component.leaves):
        keys, gone = leaf.keys()
        assert component.leaves_of(keys).tolist() == [number] * len(keys)
        assert component.key_filter.may_contain(hash_keys(keys)).all()
        ordinals = np.flatnonzero(~gone & np.array([key in some for key in keys.tolist()], np.bool_))
        rows = [msgspec.msgpack.decode(row) for row in leaf.rows(ordinals)]
        assert alike(rows, [wanted[key] for key in keys[ordinals].tolist()])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_entry_and_nothing_but_antimatter(layout):
    empty = component_of(layout, {})
    assert (empty.info.count, empty.info.min_key, list(empty.leaves)) == (0, None, [])
    assert empty.leaves_of(np.array([1], np.int64)).tolist() == [-1]
    gone = component_of(layout, {5: None, 7: None})
    assert read_back(gone) == {5: None, 7: None}
    assert (gone.info.count, gone.info.antimatter_count) == (2, 2)
    assert gone.leaves_of(np.array([4, 5, 6, 8], np.int64)).tolist() == [-1, 0, 0, -1]


@pytest.mark.parametrize("layout", ["vector", "open"])
def test_leaves_of_rows_are_one_page_and_larger_rows_several(layout):
    found = {key: {"id": key, "text": chr(97 + key % 26) * 900} for key in range(500)}
    found[250]["text"] = "large" * PAGE_BYTES
    component = component_of(layout, found, compression="none")
    assert read_back(component) == found
    assert component.info.leaf_count == pytest.approx(500 * 920 / PAGE_BYTES + 1, abs=2)
    large = component.leaf(int(component.leaves_of(np.array([250]))[0]))
    component.counters.pages_read = 0
    large.rows()
    assert component.counters.pages_read == 6
    for leaf in component.leaves[:2]:
        component.counters.pages_read = 0
        leaf.keys()
        leaf.rows()
        assert component.counters.pages_read == 1, "keys and rows must share a page"
    with pytest.raises(TypeError, match="a row layout stores no columns"):
        large.columns([1])


def test_names_are_stored_once_in_vector():
    found = {key: {"id": key, "a rather long name of a field": key, "another name": [key]} for key in range(1000)}
    sizes = {layout: write(layout, found, compression="none")[0].size_bytes for layout in LAYOUTS}
    assert sizes["amax"] < sizes["vector"] / 1.5 < sizes["open"] / 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_flipped_bit_of_a_file_is_refused(layout):
    file, _ = write(layout, {key: {"id": key, "text": "x" * key, "in": {"a": [key]}} for key in range(30)})
    whole = bytes(file.data)
    for place in range(0, len(whole), 7):
        file.data[:] = whole
        file.data[place] ^= 1 << place % 8
        with pytest.raises(CorruptError, match=r"00000001\.component"):
            read_back(open_component(file))
    for length in range(0, len(whole), 11):
        file.data[:] = whole[:length]
        with pytest.raises(CorruptError, match=r"00000001\.component"):
            read_back(open_component(file))
